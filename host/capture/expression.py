# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Filter expressions as a capture uses them: in the probe's tables, or on this host."""

from liteprobe.host.capture.filter import FilterDoesNotFit, clear_filter, fit_trigger, parse, write_filter
from liteprobe.host.capture.trigger import Matches
from liteprobe.host.device.registers import Registers


def host_filter(expression: str) -> Matches:
    """Return what tells which unified headers match.

    Raises
    ------
    UsageError
        When the expression can't be understood.
    """
    return parse(expression).matches


def set_trigger(registers: Registers, expression: str | None, trigger: str, channel: int) -> None:
    """Have the probe filter by ``expression``, and send what ``trigger`` matches of it to a channel.

    Raises
    ------
    UsageError
        When one of them can't be understood, or they don't fit.
    """
    write_filter(registers, fit_trigger(parse(expression or ""), parse(trigger), channel))


def set_filter(registers: Registers, expression: str | None, on_host: bool) -> Matches | None:
    """Have the probe filter by ``expression`` (None: everything passes).

    Returns
    -------
    callable or None
        What is left to this host, with ``on_host``, where the probe's tables can't hold it.

    Raises
    ------
    UsageError
        When the expression can't be understood, or, without ``on_host``, doesn't fit.
    """
    if not expression:
        clear_filter(registers)
        return None
    parsed = parse(expression)
    try:
        wanted = parsed.fit()
    except FilterDoesNotFit:
        if not on_host:
            raise
        clear_filter(registers)
        return parsed.matches
    write_filter(registers, wanted)
    return None
