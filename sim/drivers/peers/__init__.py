# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Stations in Python at the ends of a simulated probe's lines."""
