# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Takes a capture from its blocks to its files: decodes, chooses, brings channels into order, hands on, counts."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.capture.decode import BlockDecoder, Blocks
from liteprobe.host.packets.batch import Batch, joined

if TYPE_CHECKING:
    from liteprobe.host.capture.trigger import Trigger
    from liteprobe.host.packets.filter.expression import Passes

#: How far channels may be apart (ns): a block is held open for some milliseconds, and asked for again when it gets lost.
WINDOW_NS = 10_000_000
#: Most that is held back (words, 16 MB): six times what two ports at line rate bring in a window. It bounds memory where
#: stamps stand still.
HELD_WORDS = 1 << 22
PIECES = 64  # Batches held as they came, after which they become one.


class Merger:
    """Holds records back until none can come any more that belongs before them.

    ``window_ns``: how much later than a record's stamp one with an earlier stamp may come.
    """

    def __init__(self, window_ns: int = WINDOW_NS) -> None:
        self.window_ns = window_ns
        self.disordered = 0  # Records that came too late for their place: they are handed on behind it.
        self._held: deque[Batch] = deque()  # In order; the words of what was handed on of them are kept as well.
        self._last = 0

    @property
    def held(self) -> int:
        """Frames that are held back."""
        return sum(int(np.count_nonzero(~batch.is_gap)) for batch in self._held)

    @property
    def held_words(self) -> int:
        """Words that are kept for what is held back."""
        return sum(len(batch.words) for batch in self._held)

    def push(self, batch: Batch) -> list[Batch]:
        """Take some records, and return those, of these and of earlier ones, that are due, in order.

        Those in order, as nearly always, are handed on as they are, without a copy.
        """
        if not len(batch):
            return []
        stamps = batch.stamp
        in_order = not self._held or stamps[0] >= self._held[-1].heads["stamp"][-1]
        self._held.append(batch)
        if not in_order or (stamps[1:] < stamps[:-1]).any():
            self._put_in_order()
        # A window before the newest; stamps are unsigned.
        newest = int(self._held[-1].heads["stamp"][-1])
        due = self._due(np.uint64(max(newest - self.window_ns, 0)))
        if len(self._held) > PIECES or self.held_words > HELD_WORDS:
            self._held = deque([joined(self._held).compact()])  # So that the octets of what was handed on aren't kept.
        if self.held_words > HELD_WORDS:
            all_held = self._held.pop()
            half = len(all_held) // 2
            due.append(self._handed_on(all_held.select(slice(0, half))))
            self._held.append(all_held.select(slice(half, None)).compact())
        return due

    def finish(self) -> list[Batch]:
        """Return all that is left."""
        left, self._held = [*self._held], deque()
        return [self._handed_on(batch) for batch in left]

    def _put_in_order(self) -> None:
        found = joined(self._held)
        self._held = deque([found.select(np.argsort(found.stamp, kind="stable"))])

    def _due(self, until: np.uint64) -> list[Batch]:
        """Take what is held up to a stamp."""
        due = []
        while self._held and self._held[0].heads["stamp"][0] <= until:
            first = self._held.popleft()
            is_whole = first.heads["stamp"][-1] <= until
            count = len(first) if is_whole else int(np.searchsorted(first.stamp, until, side="right"))
            due.append(self._handed_on(first.select(slice(0, count))))
            if count < len(first):
                self._held.appendleft(first.select(slice(count, None)))
                break
        return due

    def _handed_on(self, batch: Batch) -> Batch:
        stamps = batch.heads["stamp"]
        if stamps[0] < self._last:
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
    ports: tuple[int, ...] | None = None  # Of the probe, whose frames are wanted; None: of all.


class CaptureSession:
    """Takes blocks and writes records.

    ``window_ns``: how far channels may be apart.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        choice: Selection | None = None,
        decoder: BlockDecoder | None = None,
        window_ns: int = WINDOW_NS,
    ) -> None:
        self.decoder = decoder or BlockDecoder()
        self.merger = Merger(window_ns)
        #: Frames that were written, their octets on the wire without FCS, frames that the filter on the host took out.
        self.frames = self.octets = self.filtered = 0
        self.is_done = False  # All that was wanted has come.
        self._sinks = sinks
        self._choice = choice or Selection()

    def take(self, blocks: Blocks, lengths: NDArray[Any] | None = None) -> None:
        """Take blocks, shape (blocks, 368); ``lengths`` (octets) where they may be cut.

        Raises UsageError when a filter or a trigger is to look at what these frames came without.
        """
        batch = self.decoder.decode(blocks, lengths)
        if self._choice.passes and len(batch):
            passes = batch.is_gap | self._choice.passes(batch)
            self.filtered += int(np.count_nonzero(~passes))
            batch = batch.select(passes)
        if self._choice.ports is not None and len(batch):
            passes = batch.is_gap | np.isin(batch.port, self._choice.ports)
            self.filtered += int(np.count_nonzero(~passes))
            batch = batch.select(passes)
        for due in self.merger.push(batch):
            self._hand_on(due)

    @property
    def is_enough(self) -> bool:
        """Whether the frames that were asked for have come, some of them held back for those that may belong before them."""
        count = self._choice.count
        return count is not None and not self._choice.trigger and self.frames + self.merger.held >= count

    def finish(self) -> None:
        """Hand on what was held back."""
        for due in self.merger.finish():
            self._hand_on(due)

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
        self.octets += int(batch.heads["length"].sum(dtype=np.int64, where=True if batch.step else is_frame))
