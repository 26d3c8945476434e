# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A port that monitors: hashes of each frame, sampling, channels, and what becomes of it."""
