# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Takes a capture from its blocks to its files: decodes, chooses, brings channels into order, hands on, counts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.capture.decode import BlockDecoder, Blocks
from liteprobe.host.capture.trigger import Trigger
from liteprobe.host.packets.batch import Batch, empty_batch, joined
from liteprobe.host.packets.filter.expression import Passes

#: How far channels may be apart (ns): a block is held open for some milliseconds, and asked for again when it gets lost.
WINDOW_NS = 10_000_000
#: Most that is held back (words, 16 MB): six times what two ports at line rate bring in a window. It bounds memory where
#: stamps stand still.
HELD_WORDS = 1 << 22


class Merger:
    """Holds records back until none can come any more that belongs before them.

    ``window_ns``: how much later than a record's stamp one with an earlier stamp may come.
    """

    def __init__(self, window_ns: int = WINDOW_NS) -> None:
        self.window_ns = window_ns
        self.disordered = 0  # Records that came too late for their place: they are handed on behind it.
        self._held = empty_batch()
        self._last = 0

    @property
    def held(self) -> int:
        """Frames that are held back."""
        return int(np.count_nonzero(~self._held.is_gap))

    def push(self, batch: Batch) -> Batch:
        """Take some records, and return those, of these and of earlier ones, that are due, in order."""
        if not len(batch):
            return batch
        found = self._sorted(batch)
        stamps = found.stamp
        # A window before the newest; stamps are unsigned.
        due = int(np.searchsorted(stamps, np.uint64(max(int(stamps[-1]) - self.window_ns, 0)), side="right"))
        # What is held is copied, so that the octets of what is handed on needn't be kept.
        self._held = found.select(slice(due, None)).compact()
        if len(self._held.words) > HELD_WORDS:
            due += len(self._held) // 2
            self._held = found.select(slice(due, None)).compact()
        return self._handed_on(found.select(slice(None, due)))

    def finish(self) -> Batch:
        """Return all that is left."""
        left, self._held = self._held, empty_batch()
        return self._handed_on(left)

    def _sorted(self, batch: Batch) -> Batch:
        found = joined([self._held, batch])
        stamps = found.stamp
        if (stamps[1:] >= stamps[:-1]).all():
            return found
        return found.select(np.argsort(stamps, kind="stable"))

    def _handed_on(self, batch: Batch) -> Batch:
        if len(batch):
            stamps = batch.stamp
            self.disordered += int(np.searchsorted(stamps, np.uint64(self._last), side="left"))
            self._last = max(self._last, int(stamps[-1]))
        return batch


class Sink(Protocol):
    """Takes records."""

    def write(self, batch: Batch) -> None:
        """Take records."""


@dataclass(frozen=True)
class Selection:
    """Says what of a capture is wanted."""

    passes: Passes | None = None  # Filter on the host, from records to which of them pass; None: all pass.
    trigger: Trigger | None = None
    count: int | None = None  # Frames after which the capture ends.


class CaptureSession:
    """Takes blocks and writes records.

    ``window_ns``: how far channels may be apart; ``progress``: called with the frames written so far.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        choice: Selection | None = None,
        decoder: BlockDecoder | None = None,
        window_ns: int = WINDOW_NS,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.decoder = decoder or BlockDecoder()
        self.merger = Merger(window_ns)
        #: Frames that were written, their octets on the wire without FCS, frames that the filter on the host took out.
        self.frames = self.octets = self.filtered = 0
        self.is_done = False  # All that was wanted has come.
        self._sinks = sinks
        self._choice = choice or Selection()
        self._progress = progress

    def take(self, blocks: Blocks, lengths: NDArray[Any] | None = None) -> None:
        """Take blocks, shape (blocks, 368); ``lengths`` (octets) where they may be cut.

        Raises UsageError when a filter or a trigger is to look at what these frames came without.
        """
        batch = self.decoder.decode(blocks, lengths)
        if self._choice.passes and len(batch):
            passes = batch.is_gap | self._choice.passes(batch)
            self.filtered += int(np.count_nonzero(~passes))
            batch = batch.select(passes)
        self._hand_on(self.merger.push(batch))

    @property
    def is_enough(self) -> bool:
        """Whether the frames that were asked for have come, some of them held back for those that may belong before them."""
        count = self._choice.count
        return count is not None and not self._choice.trigger and self.frames + self.merger.held >= count

    def finish(self) -> None:
        """Hand on what was held back."""
        self._hand_on(self.merger.finish())

    def _hand_on(self, batch: Batch) -> None:
        if self._choice.trigger:
            batch = self._choice.trigger.push(batch)
            self.is_done |= self._choice.trigger.is_done
        is_frame = ~batch.is_gap
        if self._choice.count is not None:
            left = self._choice.count - self.frames
            places = np.flatnonzero(is_frame)
            if len(places) >= left:
                self.is_done = True
                end = int(places[left - 1]) + 1 if left else 0
                batch, is_frame = batch.select(slice(0, end)), is_frame[:end]
        if not len(batch):
            return
        for sink in self._sinks:
            sink.write(batch)
        self.frames += int(np.count_nonzero(is_frame))
        self.octets += int(batch.heads["length"][is_frame].sum(dtype=np.int64))
        if self._progress:
            self._progress(self.frames)
