# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Finds what LiteProbe has on this machine: folders, packages, programs, signals, memory that processes share."""
