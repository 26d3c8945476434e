# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Devices with an agent, in Python and in C, and messages that agents never should be content with."""
