# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reaches the probe as a device: links to it, its registers, its owner, its firmware."""
