# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Keeps the datagrams that carry words to a probe in memory that the process that makes them shares with the one that sends.

Source: cores/formats/replay.py ("Datagrams").
"""

import contextlib
import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    DATAGRAM_HEADER_WORDS,
    DATAGRAM_MAGIC,
    DATAGRAM_WORDS,
    SLOT_HEADER_WORDS,
    SLOT_WORDS,
    STATUS_WORDS,
    DatagramFlag,
    StatusFlag,
)
from liteprobe.host.base import interrupt
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.shared_memory import SharedMemory


@dataclass(frozen=True)
class Shape:
    """A carrier of words to a probe: words of its header, and after it at most."""

    header: int
    words: int

    @property
    def octets(self) -> int:
        """Octets of one."""
        return 4 * (self.header + self.words)


DATAGRAM = Shape(DATAGRAM_HEADER_WORDS, DATAGRAM_WORDS)
DMA_SLOT = Shape(SLOT_HEADER_WORDS, SLOT_WORDS)  # Its header is that of a datagram, and its length.
HEADER_OCTETS = 4 * DATAGRAM_HEADER_WORDS
SLOT_OCTETS = DATAGRAM.octets
STATUS = struct.Struct(f"<{STATUS_WORDS}I")
FLAGS_OCTET = 1  # Of a datagram, in which its flags are.
POSITIONS = 1 << 32
SLOTS = 1 << 14  # Datagrams: 24 MB, 0.2 s of a line at the least.
WAIT_S = 0.0005
NICENESS = -10  # Of what makes them.
REAL_TIME = 1  # Likewise; what sends goes first.
LOOK_S, SHARE_MOST = 0.5, 0.8  # Of a core, that it may have so.
CELLS = 32
TEXT_AT, TEXT_OCTETS = 8 * CELLS, 1024
SLOTS_AT = TEXT_AT + TEXT_OCTETS


@dataclass(frozen=True)
class ReplaySession:
    """Identifies all datagrams of a port."""

    port: int  # Of the probe.
    number: int  # Of the session, 16 bits.
    lease: int  # Under which this host has the probe, 16 bits.


@dataclass(frozen=True)
class ReplayStatus:
    """An answer of the probe."""

    session: ReplaySession
    flags: StatusFlag
    accepted: int  # Position (words, modulo 2^32) up to which the probe has all words.
    limit: int  # Position up to which it has space.
    refused: int  # Datagrams that were not accepted; modulo 2^16.
    underruns: int  # Frames that came too late; modulo 2^16.
    frames: int  # Frames that were sent.


Parts = Sequence[tuple[ReplaySession, SharedMemory]]  # Of each port its session, and the memory of its slots.


def decode_status(datagram: bytes | memoryview) -> ReplayStatus | None:
    """Return an answer taken apart, or None when ``datagram`` is something else."""
    if len(datagram) != STATUS.size:
        return None
    first, second, accepted, limit, counts, frames = STATUS.unpack(datagram)
    if first >> 16 != DATAGRAM_MAGIC:
        return None
    session = ReplaySession(first & 0xFF, second >> 16, second & 0xFFFF)
    return ReplayStatus(session, StatusFlag(first >> 8 & 0xFF), accepted, limit, counts >> 16, counts & 0xFFFF, frames)


def write_headers(slots: NDArray[Any], session: ReplaySession, first: int, shape: Shape, words: int) -> None:
    """Write the headers of datagrams of ``words`` words, or of slots of a DMA: those from number ``first`` of the session on."""
    positions = shape.words * (first + np.arange(len(slots), dtype=np.int64))
    slots[:, 0] = DATAGRAM_MAGIC << 16 | session.port
    slots[:, 1] = session.number << 16 | session.lease
    slots[:, 2] = positions & (POSITIONS - 1)
    slots[:, 3 : shape.header] = words


def ask(octets: memoryview, at: int) -> None:
    """Let the datagram that begins at octet ``at`` ask for an answer at once."""
    octets[at + FLAGS_OCTET] |= DatagramFlag.ASK


class WordSource(Protocol):
    """Words that are streamed to a port; it goes along to the process that makes them."""

    def chunks(self) -> Iterator[NDArray[np.uint32]]:
        """Yield all words, some at once."""


class Cell(IntEnum):
    """Numbers of 64 bits that all processes see."""

    WRITTEN = 0  # Datagrams that were made.
    FREED = 1  # Those whose places may be used again.
    WORDS = 2  # Words in all datagrams that were made.
    IS_ALL = 3  # No datagram follows.
    STOP = 4
    ERROR = 5  # Octets of the text of what went wrong.
    SENT = 6  # Datagrams, each as often as it was sent.
    RESENT = 7  # Those that had been sent before.
    GAPS = 8  # Times that the probe said that one was missing.
    TIMEOUTS = 9  # Times that no answer came in time.
    STARVED = 10  # Times that the probe had space, and no datagram was ready.
    ANSWERS = 11
    ACCEPTED = 12  # Words.
    LIMIT = 13  # Words.
    FLAGS = 14  # Of the last answer.
    REFUSED = 15  # Datagrams that the probe did not take.
    UNDERRUNS = 16
    FRAMES = 17
    FAULT = 18  # Why sending has ended.
    ROUND_TRIP_NS = 19


class Fault(IntEnum):
    """Reasons why nothing is sent any more."""

    NONE = 0
    SILENT = 1  # No answer at all.
    GONE = 2  # Answers have ceased.
    LEASE = 3
    SESSION = 4
    BROKEN = 5  # An answer contradicts what was sent.
    PREPARATION = 6
    SOCKET = 7
    DEVICE = 8  # The text says what is wrong with it.


class Urgency:
    """Gives the process that makes datagrams a real-time class, where the system lets it, unless it would take a core.

    Niceness counts only within a session where the kernel groups tasks, so among other programs it isn't enough. A source that
    is faster than the line sleeps most of the time. One that isn't goes without: it would hold up all else, and be late anyhow.
    """

    def __init__(self) -> None:
        self._began_s, self._used_s = time.monotonic(), time.process_time()
        self._is_asked = True
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(REAL_TIME))

    def look(self) -> None:
        """Give it back, for good, once this process has used most of the time since it last looked."""
        now_s, used_s = time.monotonic(), time.process_time()
        if not self._is_asked or now_s - self._began_s < LOOK_S:
            return
        if used_s - self._used_s > SHARE_MOST * (now_s - self._began_s):
            self._is_asked = False
            with contextlib.suppress(OSError):
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        self._began_s, self._used_s = now_s, used_s


class Slots:
    """A ring of datagrams.

    ``memory``: of another process, with its datagrams; None: it is made; ``shape``: of a datagram.
    """

    def __init__(self, count: int = SLOTS, memory: SharedMemory | None = None, shape: Shape = DATAGRAM) -> None:
        self.memory = memory or SharedMemory(SLOTS_AT + count * shape.octets)
        self.count, self.shape = (len(self.memory.buffer) - SLOTS_AT) // shape.octets, shape
        shared = memoryview(self.memory.buffer)
        self.cells = shared[:TEXT_AT].cast("Q")  # By `Cell`.
        self._text = shared[TEXT_AT:SLOTS_AT]
        self.octets = shared[SLOTS_AT:]  # All datagrams, one after the other.
        #: Shape (datagrams, words). The same.
        self.words = np.frombuffer(self.octets, np.uint32).reshape(self.count, shape.header + shape.words)
        self._shared = shared
        self.urgency: Urgency | None = None  # Of the process that fills it.

    @property
    def error(self) -> str:
        """Error while datagrams were made; empty: none."""
        return bytes(self._text[: self.cells[Cell.ERROR]]).decode(errors="replace")

    def fail(self, text: str) -> None:
        """Say what went wrong."""
        octets = text.encode()[:TEXT_OCTETS]
        self._text[: len(octets)] = octets
        self.cells[Cell.ERROR] = len(octets)

    def fill(self, source: WordSource, session: ReplaySession, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Make all datagrams of ``source`` as there is space, until all are made, STOP is set or they are not wanted."""
        header, most = self.shape.header, self.shape.words
        begun = 0  # Words in the datagram that is being made.
        for words in source.chunks():
            done = 0
            while done < len(words):
                written = self.cells[Cell.WRITTEN]
                space = self._wait_for_space(written, is_wanted)
                if not space:
                    return
                first = written % self.count
                if begun or len(words) - done < most:
                    size = min(most - begun, len(words) - done)
                    at = header + begun
                    self.words[first, at : at + size] = words[done : done + size]
                    begun, done = (begun + size) % most, done + size
                    if not begun:
                        self._publish(session, written, 1)
                    continue
                some = min((len(words) - done) // most, space, self.count - first)
                end = done + some * most
                self.words[first : first + some, header:] = words[done:end].reshape(some, most)
                self._publish(session, written, some)
                done = end
        if begun:
            self._publish(session, self.cells[Cell.WRITTEN], 1, begun)
        self.cells[Cell.IS_ALL] = 1

    def close(self) -> None:
        """Give the memory back."""
        del self.words
        for view in (self.cells, self._text, self.octets, self._shared):
            view.release()
        self.memory.close()

    # # #

    def _wait_for_space(self, written: int, is_wanted: Callable[[], bool]) -> int:
        """Return how many datagrams can be made; 0: none is wanted any more."""
        if self.urgency:
            self.urgency.look()
        while not self.cells[Cell.STOP] and is_wanted():
            space = self.count - (written - self.cells[Cell.FREED])
            if space > 0:
                return int(space)
            time.sleep(WAIT_S)
        return 0

    def _publish(self, session: ReplaySession, first: int, count: int, words: int = 0) -> None:
        """Give datagrams to the sender; ``words``: of the last one of all, where it is shorter."""
        at = first % self.count
        write_headers(self.words[at : at + count], session, first, self.shape, words or self.shape.words)
        self.cells[Cell.WORDS] += words or count * self.shape.words
        if words:
            self.cells[Cell.IS_ALL] = 1
        self.cells[Cell.WRITTEN] = first + count


def prepare(source: WordSource, session: ReplaySession, memory: SharedMemory, shape: Shape, parent: int) -> None:
    """Make datagrams until all are made, or somebody has stopped them: the other process."""
    interrupt.be_worker()
    slots = Slots(memory=memory, shape=shape)
    slots.urgency = Urgency()
    try:
        slots.fill(source, session, lambda: os.getppid() == parent)
    except ProbeError as error:
        slots.fail(str(error))
    except (OSError, MemoryError) as error:
        slots.fail(f"what is replayed can't be read on ({error}): check the file, and start again")
    while not slots.cells[Cell.STOP] and os.getppid() == parent:
        time.sleep(0.05)
    slots.close()


@contextlib.contextmanager
def taken(parts: Parts, shape: Shape) -> Iterator[list[Slots]]:
    """Be the process that sends, whose slots are those of ``parts``: in a real-time class, where the system lets it."""
    interrupt.be_worker()
    with contextlib.suppress(OSError):  # The probe holds 4 ms of a line, and this process mostly sleeps.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(REAL_TIME + 1))
    slots = [Slots(memory=memory, shape=shape) for _, memory in parts]
    yield slots
    for one in slots:
        one.close()
