# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Filters frames: tables once for all ports of a probe, and a matcher for each."""

from liteprobe.cores.receive.filter.matcher import FilterMatcher
from liteprobe.cores.receive.filter.tables import FilterTables

__all__ = ["FilterMatcher", "FilterTables"]
