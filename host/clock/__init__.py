# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the probe's clock: its state, the log of its reference, the servo."""
