# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Drivers of suites: a probe whose frames go through a device of plain Python, in no time of this machine."""
