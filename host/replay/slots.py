# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Datagrams that are ready to be sent, in memory that the process that makes them shares with the one that sends them."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from liteprobe.host import interrupt
from liteprobe.host.capture.receive import SharedMemory
from liteprobe.host.errors import ProbeError
from liteprobe.host.replay.datagrams import DATAGRAM, Session, Shape, write_headers

SLOTS = 1 << 14  # Datagrams: 24 MB, 0.2 s of a line at the least.
WAIT_S = 0.0005
TEXT_OCTETS = 1024
NICENESS = -10  # Of what makes them.
REAL_TIME = 1  # Likewise; what sends goes first.
LOOK_S, SHARE_MOST = 0.5, 0.8  # Of a core, that it may have so.


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
    STARVED = 10  # Times that there was room at the probe, and no datagram ready.
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
    """Why nothing is sent any more."""

    NONE = 0
    SILENT = 1  # No answer at all.
    GONE = 2  # Answers have ceased.
    LEASE = 3
    SESSION = 4
    BROKEN = 5  # An answer contradicts what was sent.
    PREPARATION = 6
    SOCKET = 7
    DEVICE = 8  # The text says what is wrong with it.


CELLS = 32
TEXT_AT = 8 * CELLS
SLOTS_AT = TEXT_AT + TEXT_OCTETS


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

    Parameters
    ----------
    count : int
    memory : SharedMemory or None
        Of another process; None: it is made.
    shape : Shape
        Of a datagram.

    Attributes
    ----------
    cells : memoryview of u8
        By `Cell`.
    octets : memoryview
        All datagrams, one after the other.
    words : array, shape (datagrams, words)
        The same.
    """

    def __init__(self, count: int = SLOTS, memory: SharedMemory | None = None, shape: Shape = DATAGRAM) -> None:
        self.count, self.shape = count, shape
        self.memory = memory or SharedMemory(SLOTS_AT + count * shape.octets)
        shared = memoryview(self.memory.buffer)
        self.cells = shared[:TEXT_AT].cast("Q")
        self._text = shared[TEXT_AT:SLOTS_AT]
        self.octets = shared[SLOTS_AT:]
        self.words = np.frombuffer(self.octets, np.uint32).reshape(count, shape.header + shape.words)
        self._shared = shared
        self.urgency: Urgency | None = None  # Of the process that fills it.

    @property
    def error(self) -> str:
        """What went wrong while datagrams were made; empty: nothing."""
        return bytes(self._text[: self.cells[Cell.ERROR]]).decode(errors="replace")

    def fail(self, text: str) -> None:
        """Say what went wrong."""
        octets = text.encode()[:TEXT_OCTETS]
        self._text[: len(octets)] = octets
        self.cells[Cell.ERROR] = len(octets)

    def fill(self, source: WordSource, session: Session, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Make all datagrams of ``source`` as there is room, until all are made, STOP is set or they are not wanted."""
        header, most = self.shape.header, self.shape.words
        begun = 0  # Words in the datagram that is being made.
        for words in source.chunks():
            done = 0
            while done < len(words):
                written = self.cells[Cell.WRITTEN]
                room = self._wait_for_room(written, is_wanted)
                if not room:
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
                some = min((len(words) - done) // most, room, self.count - first)
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

    def _wait_for_room(self, written: int, is_wanted: Callable[[], bool]) -> int:
        """Return how many datagrams can be made; 0: none is wanted any more."""
        if self.urgency:
            self.urgency.look()
        while not self.cells[Cell.STOP] and is_wanted():
            room = self.count - (written - self.cells[Cell.FREED])
            if room > 0:
                return int(room)
            time.sleep(WAIT_S)
        return 0

    def _publish(self, session: Session, first: int, count: int, words: int = 0) -> None:
        """Give datagrams to the sender; ``words``: of the last one of all, where it is shorter."""
        at = first % self.count
        write_headers(self.words[at : at + count], session, first, self.shape, words or self.shape.words)
        self.cells[Cell.WORDS] += words or count * self.shape.words
        if words:
            self.cells[Cell.IS_ALL] = 1
        self.cells[Cell.WRITTEN] = first + count


def prepare(source: WordSource, session: Session, count: int, memory: SharedMemory, shape: Shape, parent: int) -> None:
    """Make datagrams until all are made, or somebody has stopped them: the other process."""
    interrupt.be_worker()
    slots = Slots(count, memory, shape)
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
