# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs programs on the ports of a probe."""
