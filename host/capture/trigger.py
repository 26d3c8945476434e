# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Keeps nothing until a frame matches; then so much before it, and so much after."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.capture.decode.batch import Batch, empty_batch, joined
from liteprobe.host.errors import UsageError

Matches = Callable[[NDArray[np.void]], NDArray[np.bool_]]  # From unified headers to which of them match.
Passes = Callable[[Batch], NDArray[np.bool_]]  # The same from records.

HELD_OCTETS = 512 << 20  # Of the memory of this host, for what was before.


def matching(batch: Batch, matches: Matches) -> NDArray[np.bool_]:
    """Return which records match; gaps don't.

    Raises
    ------
    UsageError
        When frames came without their unified headers.
    """
    if not (batch.has_header | batch.is_gap).all():
        raise UsageError(
            "a filter and a trigger on this host look at unified headers, which these frames came without: capture "
            "with --keep both, or give --host-filter for the filter to look at octets"
        )
    found = np.zeros(len(batch), bool)
    has_header = batch.has_header
    found[has_header] = matches(batch.headers())
    return found


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

    Attributes
    ----------
    stamp : int or None
        Of the frame that matched.
    reach_ns : int
        How long before it the first record was that passed.
    is_done : bool
        All that is wanted has passed.
    given_up : int
        Records that were near enough to a match, and of which too many had to be held.
    """

    def __init__(
        self, matches: Matches, before_ns: int, after_ns: int | None = None, held_octets: int = HELD_OCTETS
    ) -> None:
        self.stamp: int | None = None
        self.reach_ns = 0
        self.is_done = False
        self.given_up = 0
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
