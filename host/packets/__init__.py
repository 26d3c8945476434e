# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Packets in memory and in capture files: read in parts, moved without a copy for each, whatever wants them."""
