# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads and makes messages between a measuring script and the agent at a device: frames of ZeroMQ (docs/agent.md).

A frame of ZeroMQ has its own length, so no field of a message says how long something is. Numbers are little-endian.
"""

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from liteprobe.host.base.errors import ProbeError

MAGIC = b"LPAG"
VERSION = 1
NAME = re.compile(rb"[A-Za-z][A-Za-z0-9_.-]{0,62}")
OCTETS_MOST = 1024  # Of a text, and of octets.
WHY_MOST = 256  # Octets of the text of an error.
FRAME_MOST = 2048  # Octets of a frame: what is longer ends the connection.
ITEMS_MOST = 256
INTEGER_LEAST, INTEGER_MOST = -(1 << 63), (1 << 63) - 1
TOPIC_END = b"\0"  # So that the topic "drops" is not the beginning of "drops_of_port_1".

REQUEST = struct.Struct("<4sBBHQQ")
ANSWER = struct.Struct("<4sBBHQQQQQ")
DESCRIPTION = struct.Struct("<IHH")
ITEM = struct.Struct("<BB")
ANSWER_BIT = 0x80

Scalar = int | float | bool | str | bytes


class MessageKind(IntEnum):
    """Names what a message is for; an answer has `ANSWER_BIT`, too."""

    HELLO = 1
    SET = 2
    GET = 3
    PUSH = 4


#: Frames of a request.
FRAMES = {MessageKind.HELLO: 1, MessageKind.SET: 3, MessageKind.GET: 2}


class AgentStatus(IntEnum):
    """Names how a request ended."""

    OK = 0
    MALFORMED = 1
    VERSION = 2
    NUMBER = 3
    UNKNOWN = 4
    READ_ONLY = 5
    TYPE = 6
    RANGE = 7
    NOT_SET = 8
    BUSY = 9
    REFUSED = 10
    TIMEOUT = 11


class Type(IntEnum):
    """Names the type of a value."""

    INT = 1
    FLOAT = 2
    BOOL = 3
    TEXT = 4
    OCTETS = 5


PYTHON_TYPES: dict[type, Type] = {
    int: Type.INT,
    float: Type.FLOAT,
    bool: Type.BOOL,
    str: Type.TEXT,
    bytes: Type.OCTETS,
}


class MessageError(ProbeError):
    """A message, or a value that is to stand in one, is not as the protocol says."""

    def __init__(self, why: str, status: AgentStatus = AgentStatus.MALFORMED) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class AgentRequest:
    """Holds what a controller asks for."""

    kind: MessageKind  # HELLO, SET or GET.
    session: int  # Number that a controller draws at its start, 1 to 2**64 - 1.
    number: int  # Of this request in its session, from 1, rising.
    name: str = ""  # Of a setting or value; "" of a HELLO.
    value: Scalar | None = None  # Of a SET.


@dataclass(frozen=True)
class Times:
    """Tells when a callback ended at the device, on its clocks, and how long it ran (ns)."""

    monotonic_ns: int
    utc_ns: int
    duration_ns: int = 0


@dataclass(frozen=True)
class AgentAnswer:
    """Holds what an agent answers, or pushes: a value, a description, or an error with its text."""

    kind: int  # Of the request.
    status: AgentStatus
    session: int  # Of the request; of a push: that of the agent.
    number: int  # Of the request; of a push: of this value since the agent's start.
    times: Times
    body: tuple[bytes, ...] = ()  # Frames that follow the header.

    @property
    def value(self) -> Scalar:
        """The value; MessageError when there isn't one, or not as the protocol says."""
        if self.status != AgentStatus.OK or len(self.body) != 1:
            raise MessageError("the answer has no value")
        return value_of(self.body[0])

    @property
    def why(self) -> str:
        """The text of an error."""
        return self.body[0].decode("utf-8", "replace") if len(self.body) == 1 else ""


# Values -------------------------------------------------------------------------------------------


def type_of(value: Scalar) -> Type:
    """Return the type of a value; raises MessageError for one that no message can hold."""
    if type(value) not in PYTHON_TYPES:
        raise MessageError(
            f"a {type(value).__name__} is not a value: give int, float, bool, str or bytes", AgentStatus.TYPE
        )
    return PYTHON_TYPES[type(value)]


def value_frame(value: Scalar) -> bytes:
    """Return a value as a frame.

    Raises MessageError when it is of another type, out of the bounds of its type, or not finite.
    """
    kind = type_of(value)
    head = bytes([kind])
    if isinstance(value, bool):
        return head + bytes([value])
    if isinstance(value, int):
        if not INTEGER_LEAST <= value <= INTEGER_MOST:
            raise MessageError(f"{value} has more than 64 bits: give a float or a text", AgentStatus.RANGE)
        return head + struct.pack("<q", value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise MessageError(f"{value} is not a number that can be sent: give a finite one", AgentStatus.RANGE)
        return head + struct.pack("<d", value)
    octets = value.encode() if isinstance(value, str) else value
    if len(octets) > OCTETS_MOST:
        raise MessageError(f"{len(octets)} octets are too many for a value: {OCTETS_MOST} at most", AgentStatus.RANGE)
    if isinstance(value, str) and "\0" in value:
        raise MessageError("a text has no NUL: send octets", AgentStatus.RANGE)
    return head + octets


def value_of(frame: bytes) -> Scalar:
    """Return the value of a frame; raises MessageError where it is none."""
    if not frame or frame[0] not in list(Type):
        raise MessageError("the value has none of the types 1 to 5")
    kind, octets = Type(frame[0]), frame[1:]
    if kind == Type.INT and len(octets) == 8:
        return int.from_bytes(octets, "little", signed=True)
    if kind == Type.FLOAT and len(octets) == 8:
        number = float(struct.unpack("<d", octets)[0])
        if math.isfinite(number):
            return number
    if kind == Type.BOOL and octets in (b"\0", b"\1"):
        return octets == b"\1"
    if kind == Type.OCTETS and len(octets) <= OCTETS_MOST:
        return octets
    if kind == Type.TEXT and len(octets) <= OCTETS_MOST and 0 not in octets:
        try:
            return octets.decode()
        except UnicodeDecodeError:
            pass
    raise MessageError(f"the value is not a {kind.name.lower()} as the protocol has it")


# Requests -----------------------------------------------------------------------------------------


def request_frames(request: AgentRequest) -> list[bytes]:
    """Return a request as frames."""
    frames = [REQUEST.pack(MAGIC, VERSION, request.kind, 0, request.session, request.number)]
    if request.kind != MessageKind.HELLO:
        frames.append(request.name.encode())
    if request.value is not None:
        frames.append(value_frame(request.value))
    return frames


def is_addressed(frames: Sequence[bytes]) -> bool:
    """Return whether a message can be answered: it begins as one of this protocol, of whichever version."""
    return bool(frames) and len(frames[0]) >= REQUEST.size and frames[0][:4] == MAGIC


def request_of(frames: Sequence[bytes]) -> AgentRequest:
    """Return the request of a message that `is_addressed`.

    Raises MessageError with the status and the text that the controller gets.
    """
    _, version, kind, zero, session, number = REQUEST.unpack_from(frames[0])
    if version != VERSION:
        raise MessageError(
            f"this agent speaks version {VERSION}, not {version}: install the same version at both ends",
            AgentStatus.VERSION,
        )
    if len(frames[0]) != REQUEST.size or zero or not session or not number or kind not in FRAMES:
        raise MessageError("the header is not one of a request")
    if len(frames) != FRAMES[MessageKind(kind)]:
        raise MessageError(f"a request of kind {kind} has {FRAMES[MessageKind(kind)]} frames, not {len(frames)}")
    if kind == MessageKind.HELLO:
        return AgentRequest(MessageKind(kind), session, number)
    if not NAME.fullmatch(frames[1]):
        raise MessageError("a name is a letter, then up to 62 letters, digits, and _ . -")
    return AgentRequest(
        MessageKind(kind), session, number, frames[1].decode(), value_of(frames[2]) if kind == MessageKind.SET else None
    )


# Answers ------------------------------------------------------------------------------------------


def answer_frames(answer: AgentAnswer) -> list[bytes]:
    """Return an answer as frames."""
    times = (answer.times.monotonic_ns, answer.times.utc_ns, answer.times.duration_ns)
    kind = answer.kind | ANSWER_BIT
    return [
        ANSWER.pack(MAGIC, VERSION, kind, answer.status, answer.session, answer.number, *times),
        *answer.body,
    ]


def answer_of(frames: Sequence[bytes]) -> AgentAnswer:
    """Return an answer or a push; raises MessageError where it is none."""
    if not frames or len(frames[0]) != ANSWER.size or frames[0][:4] != MAGIC:
        raise MessageError("what came is not of a LiteProbe agent: is the address that of another program?")
    _, version, kind, status, session, number, *times = ANSWER.unpack(frames[0])
    if version != VERSION:
        raise MessageError(f"the agent speaks version {version}, not {VERSION}: install the same version at both ends")
    if not kind & ANSWER_BIT or status not in list(AgentStatus):
        raise MessageError(f"the agent's answer of kind {kind} and status {status} is not known here")
    return AgentAnswer(kind & ~ANSWER_BIT, AgentStatus(status), session, number, Times(*times), tuple(frames[1:]))


def why_frame(why: str) -> bytes:
    """Return the text of an error as a frame, cut at a whole character."""
    return why.replace("\0", "").encode("utf-8", "replace")[:WHY_MOST].decode("utf-8", "ignore").encode()
