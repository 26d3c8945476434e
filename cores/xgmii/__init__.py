# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Brings frames to 10 Gb/s, at XGMII, and back: 64 bits at 156.25 MHz."""
