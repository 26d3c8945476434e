# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Filters in tcpdump's syntax: for the tables of the probe, or for this host."""

from liteprobe.host.capture.filter.boxes import FilterDoesNotFit
from liteprobe.host.capture.filter.classes import Rule, RuleFilter, fit_rules
from liteprobe.host.capture.filter.expression import (
    Expression,
    Filter,
    clear_filter,
    fit_trigger,
    parse,
    read_hits,
    write_filter,
)

__all__ = [
    "Expression",
    "Filter",
    "FilterDoesNotFit",
    "Rule",
    "RuleFilter",
    "clear_filter",
    "fit_rules",
    "fit_trigger",
    "parse",
    "read_hits",
    "write_filter",
]
