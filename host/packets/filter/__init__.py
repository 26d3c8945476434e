# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Filters in tcpdump's syntax: for the tables of the probe, or for this host."""
