# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Emits the frames that a port sends: each source describes frames, and when each is due."""
