# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Estimates from the dispersion of packet trains the rate of a train, and the capacity by the pairs that were not queued."""

from dataclasses import asdict, dataclass
from typing import Annotated, cast

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import OVERHEAD, TICK_NS
from liteprobe.host.analysis.rows import CapacityFigures
from liteprobe.host.analysis.theory import slot_ns
from liteprobe.host.base.validate import Between, Length, validated

Floats = NDArray[np.float64]

NEAR_NS = 2 * TICK_NS  # Sums of two delays that differ by less are alike: a receive stamp is up to a tick late.
NEAR_LEAST = 2  # Pairs near the least sum; one alone may have been queued.
UNQUEUED_LEAST = 8  # Pairs whose first packet did not wait: with so many, some second did not wait, either.
FOLLOWERS_LEAST = 30  # Frames after a pair in its train that came: so many contradict a pair that was queued,
UNQUEUED_LONG = 4  # and then so few will do.


Overhead = Annotated[int, Between(-62, 1000)]
Count = Annotated[int, Between(1, 2**32 - 1)]


@validated
def dispersion_rate(
    stamps_ns: NDArray[np.unsignedinteger], length: Length, overhead: Annotated[int, Between(-62, 1000)] = OVERHEAD
) -> float:
    """Return the dispersion rate of one train (b/s): octets after the first frame, over the time that they took.

    With other traffic on the way it is neither the capacity nor what is left of it.

    Limits: frames lost within the train don't count as carried. A train that lost its ends is shorter, not wrong.

    Source: Dovrolis, Ramanathan, Moore, INFOCOM 2001, section III.

    Parameters
    ----------
    stamps_ns : array, shape (frames received,)
        Arrivals (SFD, ns) of the frames of one train, each once, in any order.
    length : int
        Frame length without FCS (octets).
    overhead : int
        What is counted beside it: 24 for the link, 0 for frames, -14 for IP, -42 for UDP payload over IPv4.

    Returns
    -------
    float
        Rate (b/s); NaN when fewer than two frames arrived, or all in one tick.
    """
    if len(stamps_ns) < 2:
        return float("nan")
    return span_rate(len(stamps_ns), int(np.max(stamps_ns)) - int(np.min(stamps_ns)), length, overhead)


@validated
def span_rate(
    frames: Annotated[int, Between(0)],
    span_ns: int,
    length: Length,
    overhead: Annotated[int, Between(-62, 1000)] = OVERHEAD,
) -> float:
    """Return the rate (b/s) of so many frames from the first arrival to the last; NaN when there is no time between."""
    return (frames - 1) * 8e9 * (length + overhead) / span_ns if frames > 1 and span_ns > 0 else float("nan")


@validated
def dispersions(stamps_ns: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """Return the times between consecutive arrivals (ns), shape (frames - 1,)."""
    return np.diff(np.sort(stamps_ns)).astype(np.int64)


@dataclass(frozen=True)
class Capacity:
    """Says what pairs of packets tell of the narrowest link."""

    bps: float | None  # Capacity (b/s); None: not to be had, and ``reason`` says why.
    #: ``low_bps``, ``high_bps``: what one tick (8 ns) more or less in the dispersion of a pair would make of it (b/s).
    low_bps: float | None
    high_bps: float | None
    #: ``pairs``, ``near``: pairs that arrived whole; those among them whose sum of delays was the least, to within two
    #: ticks.
    pairs: int
    near: int
    reason: str = ""  # Why there is no capacity; empty where there is one.

    def figures(self) -> CapacityFigures:
        return cast(CapacityFigures, asdict(self))


@dataclass(frozen=True)
class _Pairs:
    """Frames in order of their number, and the places of those whose successor of the same train is there, too."""

    train: NDArray[np.int64]
    place: NDArray[np.int64]  # Of a frame in its train, from 0.
    sent_ns: Floats
    arrived_ns: Floats
    first: NDArray[np.intp]

    @property
    def delays(self) -> tuple[Floats, Floats]:
        """Delays of the first and the second of each pair (ns, from any origin)."""
        delay = self.arrived_ns - self.sent_ns
        return delay[self.first], delay[self.first + 1]

    @property
    def dispersion_ns(self) -> Floats:
        return self.arrived_ns[self.first + 1] - self.arrived_ns[self.first]

    @property
    def spacing_ns(self) -> Floats:
        return self.sent_ns[self.first + 1] - self.sent_ns[self.first]


def _pairs(sequences: NDArray[np.int64], count: int, tx_ns: NDArray[np.uint64], rx_ns: NDArray[np.uint64]) -> _Pairs:
    order = np.argsort(sequences, kind="stable")
    number, origin = sequences[order], tx_ns.min() if len(tx_ns) else np.uint64(0)
    train = number // count
    follows = (np.diff(number) == 1) & (np.diff(train) == 0)
    sent, arrived = ((stamps[order] - origin).astype(np.int64).astype(np.float64) for stamps in (tx_ns, rx_ns))
    return _Pairs(train, number % count, sent, arrived, np.flatnonzero(follows))


@validated
def pair_capacity(
    sequences: NDArray[np.int64],
    count: Count,
    tx_ns: NDArray[np.uint64],
    rx_ns: NDArray[np.uint64],
    length: Length,
) -> Capacity:
    """Return the capacity of a path by the pairs whose sum of delays is the least: those that were not queued.

    A pair of frames that were sent back to back leaves the narrowest link with the time of one frame between them.
    Queues change that, and delay at least one of the two. So the pair with the least sum of delays is right, if it
    was not queued itself. That holds where several pairs agree, where the least sum is made of the least delay of a
    first and the least delay of a second packet, and where no later frame of the same trains came sooner than such a
    link could have sent it.

    Limits: traffic that keeps step with the trains can delay all pairs alike.

    Source: Kapoor, Chen, Lao, Gerla, Sanadidi, CapProbe, SIGCOMM 2004, section 3.

    Parameters
    ----------
    sequences : array, shape (packets,)
        Sequence numbers over all trains, each once.
    count : int
        Frames in a train.
    tx_ns, rx_ns : array, shape (packets,)
        Departure and arrival (SFD, ns); the two clocks may differ by a constant.
    length : int
        Frame length without FCS (octets).
    """
    pairs = _pairs(sequences, count, tx_ns, rx_ns)
    if not len(pairs.first):
        return Capacity(None, None, None, 0, 0, "no two frames that follow each other arrived")
    first, second = pairs.delays
    is_near = first + second <= (first + second).min() + NEAR_NS
    spread = pairs.dispersion_ns[is_near]
    near = int(is_near.sum())
    reason = _doubt(pairs, is_near) or _paced(pairs, is_near, length)
    dispersion = float(spread.mean())
    if reason or dispersion <= TICK_NS:
        return Capacity(None, None, None, len(first), near, reason or "frames arrived all at once")
    bits = 8e9 * (length + OVERHEAD)
    low, high = bits / (dispersion + TICK_NS), bits / (dispersion - TICK_NS)
    return Capacity(bits / dispersion, low, high, len(first), near)


def _doubt(pairs: _Pairs, is_near: NDArray[np.bool_]) -> str:
    """Return why the pairs near the least sum may have been queued; empty: nothing speaks for it."""
    first, second = pairs.delays
    more = "send more trains"
    if is_near.sum() < NEAR_LEAST:
        return f"one pair alone has the least sum of delays: {more}"
    excess_ns = float((first + second).min() - first.min() - second.min())
    if excess_ns > NEAR_NS:
        return f"every pair was queued, the least by {excess_ns:.0f} ns: {more}"
    spread = pairs.dispersion_ns[is_near]
    if float(np.ptp(spread)) > NEAR_NS:
        return f"pairs with the least sum of delays are {spread.min():.0f} to {spread.max():.0f} ns long: {more}"
    if _is_contradicted(pairs, is_near, float(spread.min()) - TICK_NS):
        return f"frames after the pairs with the least sum of delays came too soon for them: {more}"
    unqueued = int((first <= first.min() + NEAR_NS).sum())
    seconds = pairs.first[is_near] + 1
    followers = np.searchsorted(pairs.train, pairs.train[seconds], side="right") - seconds - 1
    needed = UNQUEUED_LONG if (followers >= FOLLOWERS_LEAST).sum() >= NEAR_LEAST else UNQUEUED_LEAST
    if unqueued < needed:
        return f"only {unqueued} pairs began without a queue, {needed} are needed: {more}"
    return ""


def _is_contradicted(pairs: _Pairs, is_near: NDArray[np.bool_], least_ns: float) -> bool:
    """Tell whether a frame came sooner after a near pair of its train than a link of this dispersion could send it."""
    seconds = pairs.first[is_near] + 1
    early_ns = pairs.arrived_ns - least_ns * pairs.place
    starts = np.flatnonzero(np.diff(pairs.train, prepend=-1))
    for start, end in zip(starts, np.append(starts[1:], len(pairs.train)), strict=True):
        of_train = seconds[np.searchsorted(seconds, start) : np.searchsorted(seconds, end)]
        least_later = np.minimum.accumulate(early_ns[start:end][::-1])[::-1]
        if (least_later[of_train - start] < early_ns[of_train] - NEAR_NS).any():
            return True
    return False


def _paced(pairs: _Pairs, is_near: NDArray[np.bool_], length: int) -> str:
    """Return why the spacing at which frames were sent hides the narrowest link; empty: it doesn't."""
    spacing_ns = float(pairs.spacing_ns[is_near].max())
    is_paced = spacing_ns > slot_ns(length) + TICK_NS
    if is_paced and float(pairs.dispersion_ns[is_near].mean()) <= spacing_ns + NEAR_NS:
        return "frames came as slowly as they were sent: send them back to back, without --rate and --interval"
    return ""
