# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Frames for benches: makers, sources and sinks at the pins, witnesses of what they hold."""
