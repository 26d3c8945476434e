# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Filter expressions as a capture uses them: in the probe's tables, or on this host."""

from functools import partial

import numpy as np

from liteprobe.cores.formats import UNIFIED_DTYPE
from liteprobe.host.capture.filter import clear_filter, fit_trigger, parse, write_filter
from liteprobe.host.capture.filter.differences import said
from liteprobe.host.capture.filter.libpcap import FrameFilter
from liteprobe.host.capture.trigger import Matches, Passes, matching
from liteprobe.host.device.registers import Registers


def header_filter(expression: str) -> Matches:
    """Return what tells which unified headers match.

    Raises
    ------
    UsageError
        When the expression can't be understood, or looks at octets.
    """
    found = parse(expression)
    found.matches(np.empty(0, UNIFIED_DTYPE))  # Raises where these can't tell.
    return found.matches


def host_filter(expression: str | None, by_octets: bool) -> Passes | None:
    """Return what tells which records pass (None: all of them), by libpcap where ``by_octets``, else by their headers.

    Raises
    ------
    UsageError
        When the expression can't be understood; or libpcap isn't installed.
    """
    if not expression:
        return None
    return FrameFilter(expression) if by_octets else partial(matching, matches=header_filter(expression))


def differing(expression: str | None, by_octets: bool, is_trigger: bool = False) -> str:
    """Return one line that says for which frames a filter or trigger is other than tcpdump's; "" where it is the same."""
    return "" if by_octets or not expression else said(parse(expression).differences(), is_trigger)


def set_trigger(registers: Registers, expression: str | None, trigger: str, channel: int) -> None:
    """Have the probe filter by ``expression``, and send what ``trigger`` matches of it to a channel.

    Raises
    ------
    UsageError
        When one of them can't be understood, or they don't fit.
    """
    write_filter(registers, fit_trigger(parse(expression or ""), parse(trigger), channel))


def set_filter(registers: Registers, expression: str | None) -> None:
    """Have the probe filter by ``expression`` (None: everything passes).

    Raises
    ------
    UsageError
        When the expression can't be understood, or doesn't fit into the probe's tables.
    """
    if expression:
        write_filter(registers, parse(expression).fit())
    else:
        clear_filter(registers)
