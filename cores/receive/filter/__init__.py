# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Filters frames: tables once for all ports of a probe, and a matcher for each."""
