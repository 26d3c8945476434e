# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What was set and read at a device, and when: rows that are kept beside a measurement."""

from dataclasses import dataclass
from typing import Any

from liteprobe.host.agent.message import Scalar, Status, Times, type_of


@dataclass(frozen=True)
class Event:
    """A setting that was set, a value that was read or pushed, or why not.

    Attributes
    ----------
    action : str
        "set", "get" or "push".
    name : str
    asked : bool, int, float, str or bytes, or None
        What was asked for, of a set.
    value : bool, int, float, str or bytes, or None
        What the device took, or has; None: an error.
    status : Status
    why : str
        The text of an error.
    times : Times
        Of the device, when its callback had ended; of an error that no callback made, when it was found.
    sent_ns, received_ns : int or None
        Time of this host (UTC, ns) just before the request was sent, and just after its answer came; None of a push.
    number : int
        Of the request, or of a push since the agent's start.
    missed : int
        Pushes of this value that are missing before this one.
    """

    action: str
    name: str
    asked: Scalar | None
    value: Scalar | None
    status: Status
    why: str
    times: Times
    sent_ns: int | None
    received_ns: int | None
    number: int
    missed: int = 0

    @property
    def offset_bounds_ns(self) -> tuple[int, int] | None:
        """Least and greatest difference of the device's clock to this host's (UTC, ns); None of a push.

        The callback ended after the request was sent and before the answer came, so the difference lies between.
        """
        if self.sent_ns is None or self.received_ns is None:
            return None
        return self.times.utc_ns - self.received_ns, self.times.utc_ns - self.sent_ns


def row(event: Event) -> dict[str, Any]:
    """Return an event as plain data that JSON can hold: octets are hexadecimal text, times whole nanoseconds."""
    return {
        "action": event.action,
        "name": event.name,
        "type": None if event.value is None else type_of(event.value).name.lower(),
        "asked": _plain(event.asked),
        "value": _plain(event.value),
        "status": event.status.name.lower(),
        "error": event.why or None,
        "sent_utc_ns": event.sent_ns,
        "received_utc_ns": event.received_ns,
        "agent_utc_ns": event.times.utc_ns,
        "agent_monotonic_ns": event.times.monotonic_ns,
        "agent_duration_ns": event.times.duration_ns,
        "number": event.number,
        "missed": event.missed,
    }


def _plain(value: Scalar | None) -> int | float | bool | str | None:
    return value.hex() if isinstance(value, bytes) else value
