# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Estimates from the dispersion of packet trains the rate of a train, and the capacity by the pairs that were not queued."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Annotated, cast

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import LINE_RATE_BPS, MIN_LENGTH, OVERHEAD, TICK_NS
from liteprobe.host.analysis.rows import CapacityFigures
from liteprobe.host.analysis.theory import slot_ns
from liteprobe.host.base.validate import Between, Length, Rate, validated

Floats = NDArray[np.float64]

NEAR_NS = 2 * TICK_NS  # Sums of two delays that differ by less are alike: a receive stamp is up to a tick late.
SHORT = 100  # Frames of so many octets or fewer are short: others seldom come between two of them.
BESIDE = 1514  # A length to send beside short ones.
APART_NS = 100_000  # Frames so far apart met other queues: more than the longest frame (9000 octets) takes.
OCCASIONS = 2  # At which pairs had the least sum: one alone may be chance.
CHANCE = 1e-2  # That so many delays are the least, to a tick, and are of frames that were queued: at the most.
WAIT_LEAST = 3  # Dispersions that some train waited: other frames were many, or long.
AGREE = 0.004  # To which dispersions of two lengths must agree: a frame between would be far more.
OCCASIONS_SHORT = 8  # At which a train began without a queue: with so many, in some no frame came between, either.


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

    bps: float | None  # Capacity (b/s); None: it can't be known, and ``reason`` says why.
    #: ``low_bps``, ``high_bps``: what a tick (8 ns) more or less in the dispersion of any of the pairs would make of it
    #: (b/s).
    low_bps: float | None
    high_bps: float | None
    #: ``pairs``, ``near``: pairs that arrived whole; those among them whose sum of delays was the least, to within two
    #: ticks.
    pairs: int
    near: int
    reason: str = ""  # Why there is no capacity, and what to do; empty where there is one.
    at_least_bps: float | None = None  # Where it can't be known: it is at least this (b/s); None: nothing is known.
    #: ``near_ns``, ``near_off_ns``: mean dispersion of the pairs near the least sum, and how far one of them is from it at
    #: the most (ns); None where they may have been queued.
    near_ns: float | None = field(default=None, compare=False)
    near_off_ns: float | None = field(default=None, compare=False)
    #: Frames whose pairs have the capacity (octets without FCS); None without one.
    length: int | None = field(default=None, compare=False)

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

    @cached_property
    def delays(self) -> tuple[Floats, Floats]:
        """Delays of the first and the second of each pair (ns, from any origin)."""
        delay = self.arrived_ns - self.sent_ns
        return delay[self.first], delay[self.first + 1]

    @cached_property
    def dispersion_ns(self) -> Floats:
        return self.arrived_ns[self.first + 1] - self.arrived_ns[self.first]

    @cached_property
    def spacing_ns(self) -> Floats:
        return self.sent_ns[self.first + 1] - self.sent_ns[self.first]

    @cached_property
    def is_near(self) -> NDArray[np.bool_]:
        """The pairs that have the least sum of delays, to two ticks."""
        total = self.delays[0] + self.delays[1]
        return np.asarray(total <= total.min() + NEAR_NS)

    @cached_property
    def is_prompt(self) -> NDArray[np.bool_]:
        """The pairs whose first frame has the least delay, to a tick."""
        return np.asarray(self.delays[0] <= self.delays[0].min() + TICK_NS)

    def occasions(self, chosen: NDArray[np.bool_]) -> int:
        """Return on how many occasions the chosen pairs were sent: trains that are apart, or, of one train, its parts."""
        times = np.sort(self.sent_ns[self.first[chosen]])
        if self.train[0] != self.train[-1]:
            _, at = np.unique(self.train[self.first[chosen]], return_index=True)
            times = np.sort(self.sent_ns[self.first[chosen]][at])
        found, place = 0, 0
        while place < len(times) and found < OCCASIONS_SHORT:
            found, place = found + 1, int(np.searchsorted(times, times[place] + APART_NS))
        return found

    @cached_property
    def is_by_chance(self) -> bool:
        """Whether so few trains with the least delay may be chance: each queued, two of them alike to a tick.

        Those that were queued say how close together such delays are.
        """
        _, starts = np.unique(self.train[self.first], return_index=True)
        waits = np.minimum.reduceat(self.delays[0], starts) - self.delays[0].min()
        queued = waits[waits > TICK_NS]
        mean = len(queued) * NEAR_NS / float(np.median(queued)) if len(queued) else 0.0
        found = self.occasions(self.is_prompt)
        fewer = sum(math.exp(-mean) * mean**others / math.factorial(others) for others in range(found - 1))
        return found < OCCASIONS or 1 - fewer > CHANCE

    @cached_property
    def is_in_step(self) -> bool:
        """Whether other frames may have come between all pairs in the same way.

        Then all pairs that began without a queue are alike, and none waited for more than such a pair lasts.
        """
        place = self.place[self.first]
        spread = np.ptp(self.dispersion_ns[self.is_prompt])
        waits = self.delays[0][np.isin(place, place[self.is_near])] - self.delays[0].min()
        return bool(spread <= NEAR_NS and waits.max() < WAIT_LEAST * self.dispersion_ns[self.is_near].mean())


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
    line_rate_bps: Rate = LINE_RATE_BPS,
) -> Capacity:
    """Return the capacity of a path by the pairs whose sum of delays is the least: those that were not queued.

    A pair of frames that were sent back to back leaves the narrowest link with the time of one frame between them.
    Queues change that, and delay at least one of the two. So the pair with the least sum of delays is right, if it
    was not queued itself. That is so where such pairs came as fast as the line itself, on two occasions. A longer
    dispersion may be of frames that came between, in every pair: short frames between long ones. So it needs the
    shortest frames, and 8 trains that began without a queue, among trains that differ; or two lengths that agree:
    see `together`. Else the capacity is at least what the fastest frames after one that was not queued had.

    Limits: traffic that keeps step with the trains, behind a narrower link, can make all pairs as fast as the line.

    Source: Kapoor, Chen, Lao, Gerla, Sanadidi, CapProbe, SIGCOMM 2004, section 3; docs/accuracy.md.

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
    line_rate_bps : float
        Of the line that sends and receives (b/s).
    """
    line_ns = slot_ns(length, line_rate_bps)
    pairs = _pairs(sequences, count, tx_ns, rx_ns)
    if not len(pairs.first):
        return Capacity(None, None, None, 0, 0, "no two frames that follow each other are in the records")
    spread = pairs.dispersion_ns[pairs.is_near]
    near, dispersion = int(pairs.is_near.sum()), float(spread.mean())
    if dispersion <= TICK_NS:
        return Capacity(None, None, None, len(pairs.first), near, "frames arrived all at once")
    reason = _paced(pairs, line_ns) or _doubt(pairs)
    ends = (None, None) if reason else (dispersion, float(np.abs(spread - dispersion).max()))
    reason = reason or _hidden(pairs, length, line_ns)
    found = Capacity(None, None, None, len(pairs.first), near, reason, _at_least(pairs, length), *ends)
    return found if reason else _claim(found, length)


@validated
def together(found: Sequence[tuple[int, Capacity]]) -> list[Capacity]:
    """Return what programs of several lengths tell together of the path that all of them took, for each of them.

    What a link adds to a dispersion is linear in the length, and what other frames add isn't. So where the pairs of
    short frames and of longer ones agree, to a tick of each, neither had frames between. A program that knows nothing
    has the capacity that another one found, else what the capacity is at the least. Programs that contradict each other
    have none.

    Parameters
    ----------
    found : sequence of (int, Capacity)
        Length of the frames (octets without FCS), and what its pairs alone tell (`pair_capacity`).
    """
    made = [one for _, one in found]
    for (at, (length, one)), (beside, (longer, other)) in product(enumerate(found), repeat=2):
        if length <= SHORT < longer and one.near_ns is not None and other.near_ns is not None:
            ratio = slot_ns(longer) / slot_ns(length)
            error_ns = TICK_NS * (1 + ratio)
            if abs(other.near_ns - ratio * one.near_ns) <= error_ns <= AGREE * other.near_ns:
                made[at] = _claim(one, length)
                made[beside] = _claim(replace(other, near_off_ns=error_ns), longer) if other.bps is None else other
    claims = [one for one in made if one.bps is not None]
    least = max((one.at_least_bps or 0.0 for one in made), default=0.0)
    floor = max([least, *(one.low_bps or 0.0 for one in claims)])
    best = min(claims, key=lambda one: one.high_bps or 0.0, default=None)
    if best and best.high_bps and floor > best.high_bps:
        reason = f"lengths disagree, {best.high_bps / 1e6:.3f} and {floor / 1e6:.3f} Mb/s: send more trains (--repeat)"
        none = Capacity(None, None, None, 0, 0, reason, least or None)
        made = [one if one.reason else replace(none, pairs=one.pairs, near=one.near) for one in made]
        best = None
    if best is None:
        return [replace(one, at_least_bps=least or None) if one.pairs else one for one in made]
    return [one if one.bps or not one.pairs else replace(best, pairs=one.pairs, near=one.near) for one in made]


def _claim(one: Capacity, length: int) -> Capacity:
    """Return the capacity by the pairs near the least sum."""
    bits = 8e9 * (length + OVERHEAD)
    assert one.near_ns is not None
    off_ns = TICK_NS + (one.near_off_ns or 0.0)
    low, high = bits / (one.near_ns + off_ns), bits / (one.near_ns - off_ns)
    return replace(one, bps=bits / one.near_ns, low_bps=low, high_bps=high, reason="", at_least_bps=None, length=length)


def _doubt(pairs: _Pairs) -> str:
    """Return why the pairs near the least sum may have been queued; empty: nothing speaks for it."""
    first, second = pairs.delays
    more = "send more trains (--repeat)"
    heads = first[pairs.place[pairs.first] == 0]
    if len(heads) > 2 * OCCASIONS and (np.diff(heads) > NEAR_NS).all():
        return "each train waited for the one before: leave more time between them (--gap)"
    if pairs.is_near.sum() < OCCASIONS:
        return f"one pair alone has the least sum of delays: {more}"
    excess_ns = float((first + second).min() - first.min() - second.min())
    if excess_ns > NEAR_NS:
        return f"every pair was queued, the least by {excess_ns:.0f} ns: {more}"
    spread = pairs.dispersion_ns[pairs.is_near]
    if float(np.ptp(spread)) > NEAR_NS:
        return f"pairs with the least sum of delays are {spread.min():.0f} to {spread.max():.0f} ns long: {more}"
    if _is_contradicted(pairs, pairs.is_near, float(spread.min()) - TICK_NS):
        return f"frames after the pairs with the least sum of delays came too soon for them: {more}"
    if pairs.is_by_chance or pairs.occasions(pairs.is_near) < OCCASIONS:
        return f"too few trains began without a queue: {more}"
    return ""


def _hidden(pairs: _Pairs, length: int, line_ns: float) -> str:
    """Return why frames may have come between all pairs near the least sum; empty: none has."""
    if float(pairs.dispersion_ns[pairs.is_near].mean()) <= line_ns + TICK_NS:
        return ""  # As fast as the line: nothing came between.
    if length > SHORT:
        lengths = ",".join(map(str, sorted({MIN_LENGTH, min(length, BESIDE), length})))
        return f"shorter frames may have come between all pairs: send short ones, too (--length {lengths})"
    beside = f"send a second length, too (--length {length},{BESIDE})"
    if pairs.is_in_step:
        return f"trains are alike, so frames in step with them may have come between all pairs: {beside}"
    if (found := pairs.occasions(pairs.is_prompt)) < OCCASIONS_SHORT:
        return f"only {found} trains began without a queue, {OCCASIONS_SHORT} are needed: send more (--repeat), or {beside}"
    return ""


def _at_least(pairs: _Pairs, length: int) -> float | None:
    """Return what the capacity is at the least (b/s), by frames that came soon after one that was not queued.

    Such a frame left the narrowest link at the earliest, so no link that is slower can have sent the frames after it so
    soon. None where no two trains began with the same, least delay: then all may have been queued.
    """
    if pairs.is_by_chance:
        return None
    firsts, last = pairs.first[pairs.is_prompt], int(pairs.place.max())
    span_ns = float("inf")
    for after in {*(2**power for power in range(last.bit_length())), last}:
        starts = firsts[firsts + after < len(pairs.train)]
        starts = starts[pairs.train[starts + after] == pairs.train[starts]]
        if len(starts):
            spans = pairs.arrived_ns[starts + after] - pairs.arrived_ns[starts] + TICK_NS
            span_ns = min(span_ns, float((spans / (pairs.place[starts + after] - pairs.place[starts])).min()))
    return 8e9 * (length + OVERHEAD) / span_ns


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


def _paced(pairs: _Pairs, line_ns: float) -> str:
    """Return why the spacing at which frames were sent hides the narrowest link; empty: it doesn't."""
    spacing_ns = float(pairs.spacing_ns[pairs.is_near].max())
    is_paced = spacing_ns > line_ns + TICK_NS
    if is_paced and float(pairs.dispersion_ns[pairs.is_near].mean()) <= spacing_ns + NEAR_NS:
        return "frames came as slowly as they were sent: send them back to back, without --rate and --interval"
    return ""
