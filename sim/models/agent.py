# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Answers messages as an agent with the example device does: the grammar of docs/agent.md, written apart from both agents.

Only single messages, each of a session of its own: what comes of duplicates and of time is asserted where it is tried.
"""

import re
import struct
from dataclasses import dataclass, field

Value = int | float | bool | str | bytes

HEADER = re.compile(rb"LPAG(.)(.)(..)(.{8})(.{8})", re.DOTALL)
NAME = re.compile(rb"[a-zA-Z](?:[-._]|\w){0,62}", re.ASCII)
OK, MALFORMED, VERSION, UNKNOWN, READ_ONLY, TYPE, RANGE, NOT_SET, REFUSED = 0, 1, 2, 4, 5, 6, 7, 8, 10
INT, FLOAT, BOOL, TEXT, OCTETS = range(1, 6)
SETTINGS: dict[bytes, tuple[int, float, float]] = {
    b"queue_length": (INT, 1, 1000),
    b"gain": (FLOAT, -10, 10),
    b"enabled": (BOOL, 0, 1),
    b"label": (TEXT, 0, 0),
    b"blob": (OCTETS, 0, 0),
    b"any": (INT, -(2**63), 2**63 - 1),
    b"fuse": (INT, -(2**63), 2**63 - 1),
    b"hang_ms": (INT, 0, 60000),
}
COUNTERS = [f"agent.{name}".encode() for name in (
    "requests", "malformed", "duplicates", "timeouts", "late", "denied", "unsent", "skipped",
)]  # fmt: skip
VALUES = [b"sets", b"reads", b"broken", *COUNTERS]


def parsed(frame: bytes) -> tuple[int, Value] | None:
    """Return type and value of a frame, None when it is none."""
    kind, rest = frame[:1], frame[1:]
    if kind == b"\x01" and len(rest) == 8:
        return INT, struct.unpack("<q", rest)[0]
    if kind == b"\x02" and len(rest) == 8:
        exponent = (int.from_bytes(rest, "little") >> 52) & 0x7FF
        return None if exponent == 0x7FF else (FLOAT, struct.unpack("<d", rest)[0])
    if kind == b"\x03" and rest in (b"\x00", b"\x01"):
        return BOOL, rest == b"\x01"
    if kind == b"\x04" and len(rest) <= 1024 and b"\x00" not in rest and is_utf8(rest):
        return TEXT, rest.decode()
    if kind == b"\x05" and len(rest) <= 1024:
        return OCTETS, rest
    return None


def is_utf8(octets: bytes) -> bool:
    """Return whether octets are UTF-8, by the table of RFC 3629, section 4."""
    tail = rb"[\x80-\xbf]"
    table = (
        rb"[\x00-\x7f]|[\xc2-\xdf]" + tail
        + rb"|\xe0[\xa0-\xbf]" + tail + rb"|[\xe1-\xec\xee\xef]" + tail + rb"{2}|\xed[\x80-\x9f]" + tail
        + rb"|\xf0[\x90-\xbf]" + tail + rb"{2}|[\xf1-\xf3]" + tail + rb"{3}|\xf4[\x80-\x8f]" + tail + rb"{2}"
    )  # fmt: skip
    return re.fullmatch(rb"(?:" + table + rb")*", octets) is not None


@dataclass(frozen=True)
class Expected:
    """An answer: what its header says of the request, and what follows.

    ``values``: one of these is the value; empty: the model does not know it.
    """

    kind: int
    status: int
    session: int
    number: int
    values: tuple[Value, ...] = ()


@dataclass
class AgentModel:
    """The example device.

    Attributes
    ----------
    last : what each setting may have been set to since the last `settle`.
    sets : settings that were taken.
    requests, malformed : as the agent counts them.
    """

    last: dict[bytes, list[Value]] = field(default_factory=dict)
    sets: int = 0
    requests: int = 0
    malformed: int = 0

    def settle(self) -> None:
        """All requests so far are answered."""
        self.last = {name: values[-1:] for name, values in self.last.items()}

    def expect(self, frames: list[bytes]) -> Expected | None:
        """Return the answer to a message; None: there is none."""
        header = HEADER.match(frames[0]) if frames else None
        if header is None:
            self.malformed += 1
            return None
        self.requests += 1
        version, kind, zero, session, number = (int.from_bytes(part, "little") for part in header.groups())
        status = VERSION
        values: tuple[Value, ...] = ()
        if version == 1:
            good = header.end() == len(frames[0]) and zero == 0 and session > 0 and number > 0
            status, values = self._judge(kind, frames[1:]) if good else (MALFORMED, ())
        self.malformed += status in (MALFORMED, VERSION)
        return Expected(kind | 0x80, status, session, number, values)

    def _judge(self, kind: int, rest: list[bytes]) -> tuple[int, tuple[Value, ...]]:
        if {1: 0, 2: 2, 3: 1}.get(kind) != len(rest):
            return MALFORMED, ()
        if kind == 1:
            return OK, ()
        name, typed = rest[0], parsed(rest[1]) if kind == 2 else None
        if not NAME.fullmatch(name) or (kind == 2 and typed is None):
            return MALFORMED, ()
        if name not in SETTINGS and name not in VALUES:
            return UNKNOWN, ()
        if typed is not None:
            return self._set(name, *typed)
        if name in SETTINGS:
            known = tuple(self.last.get(name, ()))
            return (OK, known) if known else (NOT_SET, ())
        return (REFUSED if name == b"broken" else OK), ()

    def _set(self, name: bytes, kind: int, value: Value) -> tuple[int, tuple[Value, ...]]:
        if name in VALUES:
            return READ_ONLY, ()
        wanted, low, high = SETTINGS[name]
        if kind != wanted:
            return TYPE, ()
        if not isinstance(value, str | bytes) and not low <= value <= high:
            return RANGE, ()
        if name == b"fuse":
            return REFUSED, ()
        if isinstance(value, float):
            value = round(2 * value) / 2
        self.sets += 1
        self.last.setdefault(name, []).append(value)
        return OK, (value,)
