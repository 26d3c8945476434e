# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A probe that replays, for tests of the host: the model of its registers, and its datagrams on a real socket.

The receiver of datagrams is one as docs/design/replay.md has it, in plain Python, apart from what sends them.
"""

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.replay import ReplayModel

# Receiver of datagrams ----------------------------------------------------------------------------

MAGIC, ASK = 0x4C52, 1
GAP, STRANGER, RUNNING, UNDERRUN = 1, 2, 4, 8
KEEP_ALIVE_S = 0.01
REAL_S = 0.001
POSITIONS = 1 << 32


@dataclass
class Ring:
    """The ring of a port.

    Attributes
    ----------
    words : its size.
    words_a_second : how fast it is emptied; None: at once.
    position : of the first word of the session: 0 but for tests of what wraps.
    """

    session: int
    lease: int
    words: int = 1 << 17
    words_a_second: float | None = None
    position: int = 0
    octets: bytearray = field(default_factory=bytearray)
    is_running: bool = False
    underruns: int = 0
    refused: int = 0
    repeated: int = 0
    is_missing: bool = False  # Since the last datagram that was taken one was ahead.
    early: int = 0
    full: int = 0
    taken: int = 0
    peer: tuple[str, int] | None = None
    answered_s: float = 0.0
    freed: int = 0
    answered_freed: int = 0
    since_s: float = 0.0

    @property
    def accepted(self) -> int:
        """Words that were taken."""
        return len(self.octets) // 4

    def drain(self, now_s: float) -> None:
        """Empty it as far as time has passed."""
        if self.words_a_second is None:
            self.freed = self.accepted
            return
        allowed = int((now_s - self.since_s) * self.words_a_second)
        if self.accepted > self.freed:
            step = min(allowed, self.accepted - self.freed)
            self.freed += step
            self.since_s += step / self.words_a_second
        if self.accepted == self.freed:
            self.since_s = now_s


class FakeReceiver:
    """Takes words into rings, and answers; a context manager.

    Parameters
    ----------
    rings : by port.
    answer_each : datagrams after which it answers.
    """

    def __init__(self, rings: dict[int, Ring], answer_each: int = 4) -> None:
        self.rings = rings
        self.strange = 0
        self.answer_each = answer_each
        self.is_mute = False
        self._stranger_s = 0.0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.port = int(self._socket.getsockname()[1])
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "FakeReceiver":
        for ring in self.rings.values():
            ring.since_s = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ended.set()
        self._thread.join()
        self._socket.close()

    # # #

    def _run(self) -> None:
        while not self._is_ended.is_set():
            select.select([self._socket], [], [], 0.002)
            now_s = time.monotonic()
            for _ in range(256):
                try:
                    datagram, peer = self._socket.recvfrom(65536)
                except (BlockingIOError, ConnectionRefusedError):
                    break
                self._take(datagram, peer, now_s)
            for port, ring in self.rings.items():
                ring.drain(now_s)
                has_space = ring.freed - ring.answered_freed >= ring.words // 16
                if ring.peer and (has_space or now_s - ring.answered_s >= KEEP_ALIVE_S):
                    self._answer(port, ring, 0, ring.peer)

    def _take(self, datagram: bytes, peer: tuple[str, int], now_s: float) -> None:
        if len(datagram) < 12 or len(datagram) % 4:
            self.strange += 1
            return
        first, second, position = struct.unpack_from("<III", datagram)
        ring = self.rings.get(first & 0xFF)
        if first >> 16 != MAGIC or ring is None:
            self.strange += 1
            return
        if second != ring.session << 16 | ring.lease:
            self.strange += 1
            if now_s - self._stranger_s >= KEEP_ALIVE_S:
                self._stranger_s = now_s
                self._answer(first & 0xFF, ring, STRANGER, peer)
            return
        ring.peer = peer
        ring.drain(now_s)
        count = (len(datagram) - 12) // 4
        ahead = (position - ring.position - ring.accepted) % POSITIONS
        is_cause = bool(first >> 8 & ASK)
        if ahead == 0 and count <= ring.words - (ring.accepted - ring.freed):
            ring.octets += datagram[12:]
            ring.taken += 1
            ring.is_missing = False
            is_cause |= ring.taken % self.answer_each == 0
        else:
            is_early = 0 < ahead < POSITIONS // 2
            ring.refused += 1
            ring.full += ahead == 0
            ring.repeated += ahead >= POSITIONS // 2
            ring.early += is_early
            is_cause |= is_early and not ring.is_missing  # Once: a flag in other answers says it again.
            ring.is_missing |= is_early
        if is_cause:
            self._answer(first & 0xFF, ring, 0, peer)

    def _answer(self, port: int, ring: Ring, flags: int, peer: tuple[str, int]) -> None:
        if self.is_mute:
            return
        flags |= GAP * ring.is_missing | RUNNING * ring.is_running | UNDERRUN * (ring.underruns > 0)
        accepted = (ring.position + ring.accepted) % POSITIONS
        limit = (ring.position + ring.freed + ring.words) % POSITIONS
        counts = (ring.refused & 0xFFFF) << 16 | ring.underruns & 0xFFFF
        words = (MAGIC << 16 | flags << 8 | port, ring.session << 16 | ring.lease, accepted, limit, counts, 0)
        ring.answered_s, ring.answered_freed = time.monotonic(), ring.freed
        with contextlib.suppress(OSError):  # Nobody is there: the answer is lost.
            self._socket.sendto(struct.pack("<6I", *words), peer)


# Probe --------------------------------------------------------------------------------------------

Model = TypeVar("Model", bound=ReplayModel)


class ReplayLink(FakeLink):
    """A link to a model, beside a socket that takes datagrams.

    ``receiver``: none: this way has none.
    """

    def __init__(self, model: ReplayModel, folder: Path, receiver: FakeReceiver | None) -> None:
        super().__init__(model, folder)
        self._receiver = receiver

    def wait(self, seconds: float) -> None:
        """Let time pass; the processes that stream are real ones, and whoever waits for them leaves the processor to them."""
        super().wait(seconds)
        time.sleep(REAL_S)

    def replay_address(self) -> tuple[str, int] | None:
        """Return where the socket is."""
        return ("127.0.0.1", self._receiver.port) if self._receiver else None


@contextmanager
def fake_probe(
    folder: Path, kind: type[Model] = ReplayModel  # type: ignore[assignment]
) -> Iterator[tuple[Model, ReplayLink, FakeReceiver]]:
    """Give a model of some kind, the link to it and the socket; the map is written to a folder."""
    rings: dict[int, Ring] = {}

    def words(port: int) -> list[int]:
        octets = bytes(rings[port].octets) if port in rings else b""
        return [int(word) for word in np.frombuffer(octets[: len(octets) // 4 * 4], "<u4")]

    def open_ring(port: int, session: int, lease: int) -> None:
        rings[port] = Ring(session, lease)

    with FakeReceiver(rings) as receiver:
        model = kind(words, open_ring)
        yield model, ReplayLink(model, folder, receiver), receiver


# Words to stream ----------------------------------------------------------------------------------



@dataclass(frozen=True)
class RandomWords:
    """Random words in chunks of random size."""

    seed: int
    count: int
    pause_s: float = 0.0

    def all(self) -> NDArray[np.uint32]:
        """Return all words."""
        return np.random.default_rng(self.seed).integers(0, 2**32, self.count, np.uint32)

    def chunks(self) -> Iterator[NDArray[np.uint32]]:
        """Yield them, some at once."""
        words, chance, at = self.all(), np.random.default_rng(self.seed), 0
        while at < len(words):
            size = int(chance.integers(1, 3000))
            yield words[at : at + size]
            at += size
            time.sleep(self.pause_s)
