# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Drives the cores of 10 Gb/s at XGMII."""
