# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Filter expressions as a capture uses them: in the probe's tables, or on this host."""

import importlib

from liteprobe.host.capture.trigger import Matches
from liteprobe.host.errors import UsageError
from liteprobe.host.probe import Probe


def host_filter(expression: str) -> Matches:
    """Return what tells which unified headers match.

    Raises
    ------
    UsageError
        When the expression can't be understood.
    """
    try:
        filters = importlib.import_module("liteprobe.host.capture.filter")
    except ModuleNotFoundError:
        raise UsageError("filters are not there yet") from None
    matches: Matches = filters.parse(expression).matches
    return matches


def set_filter(probe: Probe, expression: str | None, on_host: bool) -> Matches | None:
    """Have the probe filter by ``expression`` (None: everything passes); return what is left to this host."""
    return host_filter(expression) if expression and on_host else None
