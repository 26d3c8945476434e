# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Drives the host side of the emulator: networks at random, and a probe that isn't there."""
