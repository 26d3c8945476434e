# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Simulated stations with a real TCP/IP stack, lwIP, whose clock is the simulation's."""
