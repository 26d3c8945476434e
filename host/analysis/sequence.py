# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Counts loss, duplication and reordering, from the sequence numbers in order of arrival."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.base.errors import DataError
from liteprobe.host.base.validate import Between, validated

Integers = NDArray[np.int64]


@validated
def arrivals(sequences: NDArray[np.integer], sent: Annotated[int, Between(0, 2**28)]) -> Integers:
    """Return how often each packet arrived, shape (sent,): 0 lost, 1 once, more: duplicated.

    Source: RFC 5560, section 3.2; loss: RFC 7680, section 2.

    Raises DataError if a sequence number was never sent.
    """
    if len(sequences) and int(sequences.min()) < 0:
        raise DataError(f"sequence {int(sequences.min())} is below 0: give sequence numbers from 0")
    if len(sequences) and int(sequences.min()) < 0:
        raise DataError(f"sequence {int(sequences.min())} is below 0: give numbers from 0")
    if len(sequences) and int(sequences.max()) >= sent:
        raise DataError(f"sequence {int(sequences.max())} arrived, but {sent} frames were sent")
    return np.bincount(sequences.astype(np.int64), minlength=sent).astype(np.int64)


@validated
def in_time(owd_ns: Integers, waiting_time_ns: int | None) -> NDArray[np.bool_]:
    """Return which packets came within T_max, shape (packets,); the others are lost. None: no limit.

    Source: RFC 7680, section 2.5 (the threshold of time that parts lost from late).
    """
    return np.full(len(owd_ns), True) if waiting_time_ns is None else owd_ns <= waiting_time_ns


@validated
def first_arrivals(sequences: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return which rows are the first arrival of their packet, shape (rows,)."""
    is_first = np.full(len(sequences), False)
    is_first[np.unique(sequences, return_index=True)[1]] = True
    return is_first


@dataclass(frozen=True)
class Reordering:
    """Reordered packets of a stream, in order of arrival; positions count from 0.

    Source: RFC 4737.
    """

    positions: Integers  # Shape (reordered,): position of each reordered packet among the arrivals.
    extents: Integers  # Shape (reordered,): packets back to the earliest arrival with a greater sequence (4.2).
    n_reordering: Integers  # Shape (reordered,): how many packets right before it have all a greater sequence (5.3).
    gaps: Integers  # Shape (discontinuities - 1,): packets from one reordering discontinuity to the next (4.5).
    runs: Integers  # Shape (reordered,): packets in order that each reordered packet ended (4.6).

    @property
    def discontinuities(self) -> Integers:
        """Position of the earliest greater arrival of each reordered packet, shape (reordered,)."""
        return self.positions - self.extents

    def late_times(self, stamps_ns: NDArray[np.unsignedinteger]) -> Integers:
        """Return how long after its discontinuity each reordered packet came (ns), from all arrival stamps (4.3)."""
        stamps = stamps_ns.astype(np.int64)
        return stamps[self.positions] - stamps[self.discontinuities]

    def byte_offsets(self, sequences: NDArray[np.integer], octets: NDArray[np.integer]) -> Integers:
        """Return what a receiver must store until each reordered packet comes (octets), from all arrivals (4.4).

        It is the octets of the packets with a greater sequence that came before.
        """
        spans = zip(self.discontinuities.tolist(), self.positions.tolist(), strict=True)
        stored = [octets[j:i][sequences[j:i] > sequences[i]].sum() for j, i in spans]
        return np.array(stored, dtype=np.int64)


@validated
def reordering(sequences: NDArray[np.integer]) -> Reordering:
    """Find the reordered packets of a stream.

    Source: RFC 4737, sections 3.3 (reordered: less than NextExp), 4.2, 4.5, 4.6 and 5.3.

    Parameters
    ----------
    sequences : array, shape (arrivals,)
        Sequence numbers in order of arrival, duplicates left out.
    """
    numbers = sequences.astype(np.int64)
    highest = np.maximum.accumulate(numbers) if len(numbers) else numbers
    positions = np.flatnonzero(numbers < highest)
    # The greatest so far never falls, so the earliest greater arrival is where it first passes the packet's number.
    discontinuities = np.searchsorted(highest, numbers[positions], side="right")
    runs = np.diff(positions, prepend=-1) - 1
    return Reordering(
        positions=positions.astype(np.int64),
        extents=(positions - discontinuities).astype(np.int64),
        n_reordering=_n_reordering(numbers, positions),
        gaps=np.diff(np.unique(discontinuities)).astype(np.int64),
        runs=runs.astype(np.int64),
    )


def _n_reordering(numbers: Integers, positions: NDArray[np.intp]) -> Integers:
    """Return for each position how many packets right before it have a greater number, in one pass with a stack."""
    lower: list[int] = []  # Positions of ever greater numbers: the nearest lower one is on top.
    found = {}
    is_asked = np.full(len(numbers), False)
    is_asked[positions] = True
    for position, number in enumerate(numbers.tolist() if len(positions) else []):
        while lower and numbers[lower[-1]] > number:
            lower.pop()
        if is_asked[position]:
            found[position] = position - (lower[-1] if lower else -1) - 1
        lower.append(position)
    return np.array([found[int(position)] for position in positions], dtype=np.int64)
