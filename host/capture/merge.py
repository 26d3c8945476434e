# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Brings the records of several channels into the order of their stamps, within a window."""

import numpy as np

from liteprobe.host.capture.decode.batch import Batch, empty_batch, joined

#: How far channels may be apart (ns): a block is held open for some milliseconds, and asked for again when it gets lost.
WINDOW_NS = 10_000_000
#: Most that is held back (words, 16 MB): six times what two ports at line rate bring in a window. It bounds memory where
#: stamps stand still.
HELD_WORDS = 1 << 22


class Merger:
    """Holds records back until none can come any more that belongs before them.

    Parameters
    ----------
    window_ns : int
        How much later than a record's stamp one with an earlier stamp may come.

    Attributes
    ----------
    disordered : int
        Records that came too late for their place: they are handed on behind it.
    """

    def __init__(self, window_ns: int = WINDOW_NS) -> None:
        self.window_ns = window_ns
        self.disordered = 0
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
