# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Talks to an agent in plain octets, so that what is tested isn't tested with itself."""

import struct
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import zmq

from liteprobe.sim.models.agent import BOOL, FLOAT, INT, OCTETS, TEXT, Value, parsed

HELLO, SET, GET, PUSH = 1, 2, 3, 4
WAIT_S = 10.0


def header(kind: int, session: int, number: int, version: int = 1, zero: int = 0) -> bytes:
    """Return the header of a request."""
    return b"LPAG" + struct.pack("<BBHQQ", version, kind, zero, session, number)


def frame(value: Value) -> bytes:
    """Return a value as a frame."""
    if isinstance(value, bool):
        return bytes([BOOL, value])
    if isinstance(value, int):
        return bytes([INT]) + struct.pack("<q", value)
    if isinstance(value, float):
        return bytes([FLOAT]) + struct.pack("<d", value)
    return bytes([TEXT]) + value.encode() if isinstance(value, str) else bytes([OCTETS]) + value


@dataclass(frozen=True)
class Reply:
    """An answer, or a push.

    ``octets``: all of it.
    """

    kind: int
    status: int
    session: int
    number: int
    monotonic_ns: int
    utc_ns: int
    duration_ns: int
    body: list[bytes]
    octets: bytes

    @classmethod
    def of(cls, frames: list[bytes]) -> "Reply":
        """Return what came."""
        assert frames[0][:5] == b"LPAG\1"
        kind, status, session, number, *times = struct.unpack("<5xBHQQQQQ", frames[0])
        monotonic_ns, utc_ns, duration_ns = times
        octets = b"|".join(frames)
        return cls(kind, status, session, number, monotonic_ns, utc_ns, duration_ns, frames[1:], octets)

    @property
    def value(self) -> Value:
        """Its value."""
        assert self.status == 0 and len(self.body) == 1, (self.status, self.body)
        found = parsed(self.body[0])
        assert found
        return found[1]

    @property
    def why(self) -> str:
        """Its error."""
        assert self.status and len(self.body) == 1 and len(self.body[0]) <= 256
        return self.body[0].decode()


class Controller:
    """A controller that sends anything.

    ``session``: of requests that are made by `ask`.
    """

    def __init__(self, address: str, session: int = 1) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.connect(address)
        self.session, self.number = session, 0

    def send(self, *frames: bytes) -> None:
        """Send frames."""
        self.socket.send_multipart(frames)

    def take(self, wait_s: float = WAIT_S) -> Reply | None:
        """Return the next answer; None: none comes in time."""
        if not self.socket.poll(round(wait_s * 1e3)):
            return None
        return Reply.of(self.socket.recv_multipart())

    def answer(self, *frames: bytes, wait_s: float = WAIT_S) -> Reply:
        """Send frames, and return the answer."""
        self.send(*frames)
        reply = self.take(wait_s)
        assert reply is not None, "no answer"
        return reply

    def ask(self, kind: int, name: str = "", value: Value | None = None) -> Reply:
        """Send the next request of the session, and return the answer."""
        self.number += 1
        frames = [header(kind, self.session, self.number)]
        frames += [name.encode()] if kind != HELLO else []
        frames += [frame(value)] if value is not None else []
        began_s = time.monotonic()
        reply = self.answer(*frames)
        assert (reply.kind, reply.session, reply.number) == (kind | 0x80, self.session, self.number)
        assert 0 <= reply.duration_ns <= (time.monotonic() - began_s) * 1e9 + 1e6
        return reply

    def watcher(self, *topics: bytes) -> "zmq.Socket[bytes]":
        """Return a socket on which values of topics are pushed."""
        port = struct.unpack("<IHH", self.ask(HELLO).body[0])[1]
        address = self.socket.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[0]
        socket: zmq.Socket[bytes] = self.context.socket(zmq.SUB)
        socket.setsockopt(zmq.LINGER, 0)
        for topic in topics:
            socket.setsockopt(zmq.SUBSCRIBE, topic)
        socket.connect(f"{address}:{port}")
        return socket

    def __enter__(self) -> Self:
        """Use it in a ``with`` statement."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.context.destroy(linger=0)
