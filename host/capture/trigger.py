# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Records nothing until a frame matches, then so much before it and after it: on this host, or waiting in the probe."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from liteprobe.cores.formats import CHANNELS, TRIGGER_BEFORE_BIT, TRIGGER_CHANNELS_BIT, TRIGGER_WANTED
from liteprobe.host.base.errors import UsageError
from liteprobe.host.capture.decode import Blocks, block_headers, channels_of, no_blocks
from liteprobe.host.capture.ring import CaptureRing
from liteprobe.host.capture.sources import Batches, BlockSource
from liteprobe.host.packets.batch import Batch, empty_batch, joined
from liteprobe.host.packets.filter.expression import Matches, matching

HELD_OCTETS = 512 << 20  # Of the memory of this host, for what was before.


class Trigger:
    """Passes the records from ``before_ns`` before the first match to ``after_ns`` after it.

    Parameters
    ----------
    matches : callable
        From unified headers, shape (frames,), to which of them match.
    before_ns, after_ns : int
        By stamps; ``after_ns`` None: to the end.
    held_octets : int
        Most that is held of what was before.
    """

    def __init__(
        self, matches: Matches, before_ns: int, after_ns: int | None = None, held_octets: int = HELD_OCTETS
    ) -> None:
        self.stamp: int | None = None  # Of the frame that matched.
        self.reach_ns = 0  # How long before it the first record was that passed.
        self.is_done = False  # All that is wanted has passed.
        self.given_up = 0  # Records that were near enough to a match, and of which too many had to be held.
        self._matches = matches
        self._before_ns, self._after_ns = before_ns, after_ns
        self._held_octets = held_octets
        self._held: list[Batch] = []

    def push(self, batch: Batch) -> Batch:
        """Take records in the order of their stamps; return those that pass."""
        if not len(batch) or self.is_done:
            return empty_batch()
        if self.stamp is None:
            found = np.flatnonzero(matching(batch, self._matches))
            if not len(found):
                self._hold(batch)
                return empty_batch()
            self.stamp = int(batch.heads["stamp"][found[0]])
            batch, self._held = joined([*self._held, batch]), []
            self.reach_ns = self.stamp - int(batch.stamp[np.searchsorted(batch.stamp, self._earliest())])
        stamps = batch.stamp
        passes = stamps >= self._earliest()
        if self._after_ns is not None:
            is_over = stamps > np.uint64(self.stamp + self._after_ns)
            self.is_done = bool(is_over.any())
            passes &= ~is_over
        return batch.select(passes)

    def _earliest(self) -> np.uint64:
        assert self.stamp is not None
        return np.uint64(max(self.stamp - self._before_ns, 0))

    def _hold(self, batch: Batch) -> None:
        self._held.append(batch.compact())
        oldest = int(batch.heads["stamp"][-1]) - self._before_ns
        while self._held and int(self._held[0].heads["stamp"][-1]) < oldest:
            self._held.pop(0)
        while self._held and sum(held.words.nbytes for held in self._held) > self._held_octets:
            self.given_up += len(self._held.pop(0))


QUARTERS = 3  # Of the ring, for what came before; the rest takes what comes until the host has begun to read.
LOOK_S = 0.02  # From one look whether it has fired to the next.
SILENT_S = 3.0  # Without a block, after which what the ring held is taken for complete.


@dataclass(frozen=True)
class ProbeTrigger:
    """Says what fires."""

    channel: int  # To which the filter sends frames that fire.
    quarters: int = QUARTERS  # Of a channel's blocks that are for what came before, 1 to 4.

    @property
    def word(self) -> int:
        """Register ``capture_trigger``."""
        channels = 1 << self.channel << TRIGGER_CHANNELS_BIT
        return TRIGGER_WANTED | self.quarters - 1 << TRIGGER_BEFORE_BIT | channels


def free_channel(channels: Sequence[int]) -> int:
    """Return a channel that no flow goes to; UsageError when there is none."""
    free = [channel for channel in range(CHANNELS) if channel not in channels]
    if not free:
        raise UsageError("a trigger takes a channel of its own: give 7 --channels at the most, or --host-trigger")
    return free[0]


class TriggeredSource:
    """Blocks of a probe that waits for a trigger; none before it has fired, then what its ring held at once.

    Parameters
    ----------
    ring : CaptureRing
        Started with a trigger.
    channels : sequence of int
        Channels that the capture uses.
    wait : callable
        Lets so many seconds of the probe's time pass.
    open_source : callable
        From the number of the first block of each channel to where blocks come from.
    """

    def __init__(
        self,
        ring: CaptureRing,
        channels: Sequence[int],
        wait: Callable[[float], None],
        open_source: Callable[[dict[int, int]], BlockSource],
    ) -> None:
        #: Blocks of each channel that gave way to newer ones before the trigger fired.
        self.overwritten = dict.fromkeys(channels, 0)
        self._ring = ring
        self._wait = wait
        self._open_source = open_source
        self._source: BlockSource | None = None
        self._is_stopping = False

    def stop(self) -> None:
        """Have the capture end, fired or not."""
        self._is_stopping = True
        if self._source:
            self._source.stop()
        else:
            self._ring.stop(self._wait)

    def batches(self) -> Batches:
        """Yield blocks once it has fired, and nothing now and then.

        What the ring held then comes at once, because its channels reach back differently far.
        """
        while not self._ring.has_fired:
            if self._is_stopping:
                return
            yield no_blocks(), None
            self._wait(LOOK_S)
        states = self._ring.states()
        self.overwritten = {channel: states[channel].read for channel in self.overwritten}
        for channel, first in self.overwritten.items():
            self._ring.resend(channel, first)
        self._source = self._open_source(self.overwritten)
        if self._is_stopping:
            self._source.stop()
        batches = self._source.batches()
        yield from self._held(batches, {channel: states[channel].written for channel in self.overwritten})
        yield from batches

    def _held(self, batches: Batches, ends: dict[int, int]) -> Batches:
        """Yield nothing until the blocks before ``ends`` have come, then those that came."""
        waiting = {channel for channel, first in self.overwritten.items() if first != ends[channel]}
        parts: list[Blocks] = []
        silent_since = time.monotonic()
        while waiting and time.monotonic() - silent_since < SILENT_S:
            blocks, _ = next(batches, (None, None))
            if blocks is None:
                break
            if len(blocks):
                silent_since = time.monotonic()
                parts.append(blocks.copy())
                headers = block_headers(blocks)
                for channel, number in zip(channels_of(headers).tolist(), headers["number"].tolist(), strict=True):
                    if channel in waiting and (number + 1 - ends[channel]) % 2**32 < 1 << 31:
                        waiting.discard(channel)
            yield no_blocks(), None
        if parts:
            yield np.concatenate(parts), None
