# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measurements made of many runs: sweeps, one-way delay between two probes."""
