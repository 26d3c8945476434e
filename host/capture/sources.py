# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Brings the blocks of a capture: of a probe by UDP, by DMA or over its bus, or of a file that they were written to."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import BLOCK_WORDS, DMA_SLOTS
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.text import CAPTURES
from liteprobe.host.capture.decode import BLOCK_OCTETS, Blocks, are_whole, block_headers, no_blocks
from liteprobe.host.capture.resequence import ResendPolicy, Resequencer

if TYPE_CHECKING:
    from liteprobe.host.capture.receive import Receiver
    from liteprobe.host.capture.ring import CaptureRing
    from liteprobe.host.device.link.dma import DmaCapture

BATCH = 1024  # Blocks at once: 1.5 MB, what the caches like best.
FILL_S = 0.01  # Without an octet from a pipe, time after which what has come is handed on.
LOOK_S = 0.05  # From one look at the pointers of the ring to the next.
FREE_S = 0.01
DMA_LOOK_S = 0.0005  # Two lines at line rate fill a ring of 256 blocks in 1.4 ms.
DMA_END_LOOKS = 4000  # After the end, looks without a block after which none is waited for: 2 s.
LINGER_S = 0.3  # After the end, time without a block after which none is waited for.
FETCH = 16  # Blocks over the bus at once: over a UART a quarter of a second.


Batches = Iterator[tuple[Blocks, NDArray[np.uint32] | None]]


class BlockSource(Protocol):
    """Brings blocks."""

    def batches(self) -> Batches:
        """Yield blocks, and their lengths (octets) where they may be cut; nothing now and then."""

    def stop(self) -> None:
        """Have the capture end; `batches` goes on until all has come."""


class RecordedSource:
    """Blocks of a file, one after the other, as `--blocks` wrote them; ``-`` is stdin.

    Raises UsageError when there is no such file, or no blocks are in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_stopping = False
        self._blocks = np.empty((BATCH, BLOCK_WORDS), np.uint32)
        self._octets = self._blocks.reshape(-1).view(np.uint8)
        try:
            self._file: io.BufferedReader = sys.stdin.buffer if str(path) == "-" else path.open("rb")  # type: ignore[assignment]
        except OSError as error:
            raise UsageError(f"can't read {path} ({error.strerror}): give a file that --blocks wrote") from None
        # Before any file is made; what comes by a pipe is waited for later, when Ctrl-C is heard.
        self._is_pipe = _is_pipe(self._file)
        self._begin = 0 if self._is_pipe or str(path) == "-" else self._fill(0)[0]
        self._check(self._begin)

    def batches(self) -> Batches:
        """Yield blocks, and their lengths (octets) where one isn't whole; they are overwritten when the next are asked for."""
        with self._file:
            held, is_over, is_first = self._begin, False, not self._begin
            while not is_over:
                if held < len(self._octets):
                    held, is_over = self._fill(held)
                octets = held if is_over else held - held % BLOCK_OCTETS
                if is_first and octets:
                    self._check(octets)
                    is_first = False
                if octets or not is_over:
                    yield self._part(octets)
                held -= octets
                self._octets[:held] = self._octets[octets : octets + held].copy()
                is_over |= self._is_stopping

    def _fill(self, held: int) -> tuple[int, bool]:
        """Read behind the octets that are held; return how many are then, and whether no more come."""
        space = self._octets.data
        if not self._is_pipe:
            count = self._file.readinto(space[held:])
            return held + count, not count
        while held < len(space) and select.select([self._file], [], [], FILL_S)[0]:
            count = self._file.raw.readinto(space[held:]) or 0
            if not count:
                return held, True
            held += count
        return held, False

    def _part(self, octets: int) -> tuple[Blocks, NDArray[np.uint32] | None]:
        """Return the first blocks, and their lengths if the last one is cut."""
        count, rest = -(-octets // BLOCK_OCTETS), octets % BLOCK_OCTETS
        if not rest:
            return self._blocks[:count], None
        lengths = np.full(count, BLOCK_OCTETS, np.uint32)
        lengths[-1] = rest
        self._octets[octets : count * BLOCK_OCTETS] = 0
        return self._blocks[:count], lengths

    def _check(self, octets: int) -> None:
        """Raise UsageError where there is no block among the first octets. An empty recording is one, of no frames."""
        if octets and not are_whole(block_headers(self._blocks[: octets // BLOCK_OCTETS])).any():
            self._file.close()
            is_capture = self._octets[:4].tobytes() in CAPTURES
            advice = "; it is a capture: tshark shows it, 'liteprobe replay' sends it" * is_capture
            what = f"{self.path} is not a recording (no blocks are in it)"
            raise UsageError(f"{what}: give a file that --blocks wrote{advice}")

    def stop(self) -> None:
        """Read no further."""
        self._is_stopping = True


def _is_pipe(file: io.BufferedReader) -> bool:
    """Return whether octets come when somebody writes them; what stands in for stdin in a script is a file."""
    try:
        return not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, AttributeError):
        return False


class UdpSource:
    """Blocks that a probe sends; those that the network loses are asked for again, and what has come is freed.

    Parameters
    ----------
    ring : CaptureRing
        Started.
    channels : sequence of int
        Channels that the capture uses.
    idle : callable or None
        Called when no block has come: a simulated probe's time passes only then.
    first : mapping or None
        Number of the first block of each channel; 0 where nothing was freed before.
    """

    def __init__(
        self,
        ring: CaptureRing,
        receiver: Receiver,
        channels: Sequence[int],
        patience: ResendPolicy | None = None,
        idle: Callable[[], None] | None = None,
        first: Mapping[int, int] | None = None,
    ) -> None:
        self._ring = ring
        self._idle = idle or (lambda: None)
        self._receiver = receiver
        self._channels = list(channels)
        begins = dict.fromkeys(channels, 0) | dict(first or {})
        states = ring.states()
        self._share = {channel: states[channel].taken for channel in channels}
        #: Knows what was asked for, and what never came.
        self.order = Resequencer(begins, patience, ring=max(self._share.values(), default=0))
        self._freed = dict(begins)
        self._freed_at = self._looked_at = 0.0
        self._is_stopping = False

    def stop(self) -> None:
        """Take no more frames; `batches` ends when all that was taken has come."""
        self._is_stopping = True
        self._ring.stop(self._pause)
        self._looked_at = 0.0

    def batches(self) -> Batches:
        """Yield blocks in order; none now and then. What was yielded last is overwritten soon after the next is asked for."""
        silent_since = time.monotonic()
        while True:
            blocks, lengths = self._receiver.look(BATCH)
            now_s = time.monotonic()
            due = self.order.push(blocks, lengths, now_s) if len(blocks) else no_blocks()
            if len(due):
                yield due, None
            self._receiver.free(len(blocks))
            if len(left := self.order.give_up(now_s)):
                yield left, None
            self._tend(now_s)
            if len(blocks):
                silent_since = now_s
            elif self._is_stopping and self._is_all(now_s - silent_since):
                return
            else:
                self._idle()
                yield no_blocks(), None

    def _pause(self, seconds: float) -> None:
        time.sleep(seconds)
        self._idle()

    def _tend(self, now_s: float) -> None:
        """Free what has come, see what the probe has sent, and ask for what is missing."""
        unfreed = {channel: (self.order.expected(channel) - self._freed[channel]) % 2**32 for channel in self._channels}
        is_time = now_s - self._freed_at >= FREE_S
        for channel, count in unfreed.items():
            if count and (is_time or 4 * count >= self._share[channel]):
                self._freed[channel] = self.order.expected(channel)
                self._ring.free(channel, self._freed[channel])
        if is_time:
            self._freed_at = now_s
        if now_s - self._looked_at >= LOOK_S:
            self._looked_at = now_s
            for channel, state in enumerate(self._ring.states()):
                self.order.note_sent(channel, state.sent, now_s)
        for channel, number in self.order.overdue(now_s):
            self._ring.resend(channel, number)

    def _is_all(self, silent_s: float) -> bool:
        """Return whether nothing more can come."""
        if silent_s < LINGER_S:
            return False
        states = self._ring.states()
        return all(states[channel].written == self.order.expected(channel) for channel in self._channels)


class BusSource:
    """Blocks read over the probe's bus: slower than UDP, and all that a UART has.

    Parameters
    ----------
    ring : CaptureRing
        Started.
    wait : callable
        Lets so many seconds of the probe's time pass.
    first : mapping or None
        Number of the first block of each channel; 0 where nothing was freed before.
    """

    def __init__(
        self,
        ring: CaptureRing,
        channels: Sequence[int],
        wait: Callable[[float], None],
        first: Mapping[int, int] | None = None,
    ) -> None:
        self._ring = ring
        self._wait = wait
        self._read = dict.fromkeys(channels, 0) | dict(first or {})
        self._is_stopping = False

    def stop(self) -> None:
        """Take no more frames; `batches` ends when all that was taken has been read."""
        self._is_stopping = True
        self._ring.stop(self._wait)

    def batches(self) -> Batches:
        """Yield blocks in order; none now and then, so that who takes them sees the time pass."""
        while True:
            was_stopping = self._is_stopping
            states = self._ring.states()
            count = 0
            for channel, first in self._read.items():
                waiting = (states[channel].written - first) % 2**32
                if waiting > states[channel].taken:
                    raise ProbeError(f"channel {channel} began anew while it was read: is another host capturing, too?")
                if part := min(waiting, FETCH):
                    yield self._ring.fetch(channel, range(first, first + part)), None
                    self._read[channel] = (first + part) % 2**32
                    self._ring.free(channel, self._read[channel])
                count += part
            if not count:
                if was_stopping:
                    return
                yield no_blocks(), None
                self._wait(LOOK_S)


class DmaSource:
    """Blocks that a probe in a PCIe slot has written into rings in this machine's memory.

    Parameters
    ----------
    ring : CaptureRing
        Started. Its pointers are written by the gateware: here they are only read.
    dma : DmaCapture
        Of the channels wanted; started after ``ring``.
    wait : callable
        Lets so many seconds of the probe's time pass.
    """

    def __init__(self, ring: CaptureRing, dma: DmaCapture, wait: Callable[[float], None]) -> None:
        self._ring = ring
        self._dma = dma
        self._wait = wait
        self._is_stopping = False
        self._copied = np.empty((DMA_SLOTS * len(dma.rings), BLOCK_WORDS), np.uint32)
        self.stalls = 0  # Times that a ring was found full: this host was too slow.

    def stop(self) -> None:
        """Take no more frames; `batches` ends when all that was taken has come."""
        self._is_stopping = True
        self._ring.stop()

    def batches(self) -> Batches:
        """Yield blocks, those of a channel in order; none now and then, so that who takes them sees the time pass.

        What was yielded last, shape (blocks, 368), is overwritten when the next is asked for. Raises ProbeError when
        the probe was reset, or doesn't hand over at the end what it has.
        """
        idle_looks = 0
        while True:
            is_closed = self._is_stopping and not self._ring.is_running
            if count := self._copy():
                idle_looks = 0
                yield self._copied[:count], None
                continue
            left = self._left() if is_closed else {}
            if is_closed and not any(left.values()):
                return
            idle_looks += self._is_stopping
            if idle_looks > DMA_END_LOOKS:
                raise ProbeError(
                    f"the probe doesn't end its capture: blocks left of each channel {left}; "
                    f"does another program capture with it, too? Start anew"
                )
            yield no_blocks(), None
            self._wait(DMA_LOOK_S)

    def _copy(self) -> int:
        """Copy what is in the rings, give the slots back, and return how many blocks it is.

        So the probe has whole rings while records are looked for, and those of all channels are looked for at once.
        """
        count = 0
        for ring in self._dma.rings.values():
            begin = count
            for part in ring.blocks():
                self._copied[count : count + len(part)] = part
                count += len(part)
            if count > begin:
                ring.take(count - begin)
            self.stalls += count - begin == DMA_SLOTS
        return count

    def _left(self) -> dict[int, int]:
        """Return how many blocks of each channel haven't been taken: pointers of both begin at 0."""
        states = self._ring.states()
        return {channel: (states[channel].written - ring.taken) % 2**32 for channel, ring in self._dma.rings.items()}
