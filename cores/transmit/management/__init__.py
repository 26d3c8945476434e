# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Management frames: stored, and sent beside a program or on a port of their own."""
