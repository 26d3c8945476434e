# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Traces through a compiled port, the datagrams that bring them, and what stands for a probe and for a bad network."""
