# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for a port that sends streams: when each frame is due and starts, and every octet of it.

All of it follows from the streams as they are asked for, by arithmetic of its own: never from the words of the memories.

Source: docs/traffic.md; Marsaglia, Xorshift RNGs, 2003; IEEE 802.3-2022, 4.4.2 (what a frame takes on the line).
"""

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.traffic.stream import Fixed, Length, Lengths, RandomLength, Stepped, Stream
from liteprobe.sim.models.traffic.octets import FrameOctets

MASK = 2**32 - 1
AROUND = 24
"""Octets that a frame takes on the line beyond its own: preamble, SFD, FCS, interpacket gap."""
EXACT: Final = 8 << 40
"""Increment of a clock without an error: 8 ns a tick, in 2^-40 ns."""

FRAME_DTYPE: Final = np.dtype(
    [
        ("stream", "u1"),
        ("sequence", "u4"),
        ("due", "i8"),
        ("start", "i8"),
        ("late", "?"),
        ("length", "u2"),
    ]
)
"""A frame: number of its stream, ticks from the start of the program, length without FCS."""


def schedule(streams: Sequence[Stream], count: int, increment: int = EXACT) -> NDArray[np.void]:
    """Return the first frames of a port whose streams all begin with the program, in order of leaving.

    Parameters
    ----------
    streams : the first one is stream 0.
    count : frames to return; fewer when all streams end before.
    increment : nanoseconds a tick of the probe's clock, in 2^-40 ns.

    Returns
    -------
    array, shape (frames,), of ``FRAME_DTYPE``
        Whichever stream is due first sends next, the lowest number of several; it starts when it is due and the line is free.
    """
    stretched = stretch(streams, increment)
    sources = [dues(stream, increment, stretched) for stream in streams]
    waiting = [(*next(source), number) for number, source in enumerate(sources)]
    heads = [(due, number, length) for due, length, number in waiting]
    heapq.heapify(heads)
    number_of: list[int] = []
    due_of: list[int] = []
    length_of: list[int] = []
    while heads and len(due_of) < count:
        due, number, length = heads[0]
        number_of.append(number)
        due_of.append(due)
        length_of.append(length)
        following = next(sources[number], None)
        if following is None:
            heapq.heappop(heads)
        else:
            heapq.heapreplace(heads, (following[0], number, following[1]))
    frames = np.zeros(len(due_of), FRAME_DTYPE)
    frames["stream"], frames["due"], frames["length"] = number_of, due_of, length_of
    free = 0
    starts = []
    for due, length in zip(due_of, length_of, strict=True):
        start = due if due > free else free
        starts.append(start)
        free = start + length + AROUND
    frames["start"] = starts
    frames["late"] = frames["start"] > frames["due"]
    for number in range(len(streams)):
        its = np.flatnonzero(frames["stream"] == number)
        frames["sequence"][its] = np.arange(len(its)) & MASK
    return frames


def octets(streams: Sequence[Stream], frames: NDArray[np.void], stamp_ns: Callable[[int], int]) -> Iterator[bytes]:
    """Yield the octets of frames as ``schedule`` returns them, from the first on, without FCS.

    ``stamp_ns``: time at the SFD (ns) of a frame that starts in this tick of the program.
    """
    writers = [FrameOctets(stream, [Xorshift(state_of(stream, 2 + n)) for n in range(4)]) for stream in streams]
    for number, length, start in zip(
        frames["stream"].tolist(), frames["length"].tolist(), frames["start"].tolist(), strict=True
    ):
        yield writers[number].next(length, stamp_ns(start))


# Random numbers ----------------------------------------------------------------------------------------


class Xorshift:
    """Draws 32-bit numbers, never 0, from a state that isn't 0."""

    def __init__(self, state: int) -> None:
        self.state = state

    def draw(self) -> int:
        """Return the next number."""
        x = self.state
        x ^= (x << 13) & MASK
        x ^= x >> 17
        x ^= (x << 5) & MASK
        self.state = x
        return x

    def below(self, bound: int) -> int:
        """Return a number from 0 to bound - 1."""
        return (self.draw() >> 16) * bound >> 16


def state_of(stream: Stream, purpose: int) -> int:
    """Return the first state: purpose 0 lengths, 1 intervals, 2 to 5 modifiers."""
    return fmix32(fmix32(stream.seed) ^ (stream.stream_id << 3) + purpose) or 1


def fmix32(h: int) -> int:
    """Return the finalizer of MurmurHash3 (Appleby, 2011)."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ h >> shift) * factor & MASK
    return h ^ h >> 16


@cache
def logarithms() -> tuple[int, tuple[int, ...]]:
    """Return ln 2, and -ln of the middle of each of 512 parts of [1/2, 1); in 2^-27, by decimal arithmetic."""
    with localcontext() as context:
        context.prec = 40
        one = Decimal(2**27)
        table = [-((2 * Decimal(512 + i) + 1) / 2048).ln() for i in range(512)]
        return round(Decimal(2).ln() * one), tuple(round(entry * one) for entry in table)


def exponential(u: int) -> int:
    """Return an exponential variate of mean 1, in 2^-27, from a 32-bit number that isn't 0."""
    ln2, table = logarithms()
    zeros = 32 - u.bit_length()
    mantissa = u << zeros & MASK  # Its highest bit is 1: [1/2, 1).
    return zeros * ln2 + table[(mantissa >> 22) - 512]


# Schedule of one stream ---------------------------------------------------------------------------------


def lengths(stream: Stream) -> Iterator[int]:
    """Yield the length of each frame."""
    draw = Xorshift(state_of(stream, 0))
    match stream.length:
        case Fixed(length):
            while True:
                yield length
        case Stepped(least, greatest, step):
            while True:
                yield from range(least, greatest + 1, step)
        case RandomLength(least, greatest):
            while True:
                yield least + draw.below(greatest - least + 1)
        case Lengths(entries, random):
            while random:
                yield entries[draw.below(len(entries))]
            while True:
                yield from entries


def dues(stream: Stream, increment: int, stretched: Fraction = Fraction(1)) -> Iterator[tuple[int, int]]:
    """Yield when each frame of a stream is due (ticks), and its length."""
    frames = range(stream.count) if stream.count is not None else iter(int, 1)
    taken = lengths(stream)
    size, inner = bursts(stream, increment)
    left = size
    due = start = nearest(ticks(decimal(stream.start_ns), increment))
    passed = 0  # 2^-32 ticks from the start to the head of this burst.
    gaps = gaps_of(stream, increment, stretched)
    for _ in frames:
        length = next(taken)
        yield due, length
        left -= 1
        if left:
            due += inner or length + AROUND
        else:
            left = size
            passed += next(gaps)
            due = start + (passed >> 32)


def gaps_of(stream: Stream, increment: int, stretched: Fraction) -> Iterator[int]:
    """Yield the time from head to head, in 2^-32 ticks."""
    mean = spacing(stream, increment) * (stretched if follows_clock(stream) else 1)
    if not stream.interval.exponential:
        constant = nearest(mean * 2**32)
        while True:
            yield constant
    factor = max(1, nearest(mean * 32))
    draw = Xorshift(state_of(stream, 1))
    while True:
        yield factor * exponential(draw.draw())


def bursts(stream: Stream, increment: int) -> tuple[int, int]:
    """Return the frames from one head to the next, and the ticks between them (0: back to back)."""
    burst = stream.interval.burst
    if fills_line(stream):
        return len(one_round(stream.length)), 0
    if burst is None:
        return 1, 0
    if burst.inner_ns is None:
        return burst.count, 0
    inner = nearest(ticks(decimal(burst.inner_ns), increment))
    # What is shorter than a frame by a slow clock alone, is back to back.
    return burst.count, max(inner, stream.length.least + AROUND) if isinstance(stream.length, Fixed) else inner


def fills_line(stream: Stream) -> bool:
    """Whether each frame is due when the one before has ended: the lengths come in turn, and nothing is between them."""
    timing = stream.interval
    if timing.interval_ns is timing.rate_bps is timing.pps is timing.share is None:
        return True
    if timing.exponential or timing.burst or not one_round(stream.length):
        return False
    return spacing(stream, EXACT, is_asked=True) == mean_slot(stream)


def spacing(stream: Stream, increment: int, is_asked: bool = False) -> Fraction:
    """Return the (mean) ticks from head to head, before any stretching; ``is_asked``: by the words of the interval alone."""
    if not is_asked and fills_line(stream):
        return Fraction(sum(length + AROUND for length in one_round(stream.length)))
    timing = stream.interval
    frames = timing.burst.count if timing.burst else 1
    if timing.share is not None:
        return frames * mean_slot(stream) / decimal(timing.share)
    if timing.interval_ns is not None:
        return ticks(decimal(timing.interval_ns), increment)
    if timing.pps is not None:
        return ticks(Fraction(10**9) * frames / decimal(timing.pps), increment)
    assert timing.rate_bps is not None
    bits = 8 * mean_slot(stream) * frames
    return ticks(Fraction(10**9) * bits / decimal(timing.rate_bps), increment)


def follows_clock(stream: Stream) -> bool:
    """Whether its times are those of the probe's clock, not of the line."""
    return stream.interval.share is None and not fills_line(stream)


def stretch(streams: Sequence[Stream], increment: int) -> Fraction:
    """Return by how much times of the clock are stretched, where they add up to more than the line by a slow clock alone."""
    most = Fraction(1)
    for begun in streams:
        moment = decimal(begun.start_ns) / 8
        line, clock, asked = Fraction(0), Fraction(0), Fraction(0)
        for stream in streams:
            start, share = decimal(stream.start_ns) / 8, load(stream, EXACT)
            lasts = math.inf if stream.count is None else start + stream.count * mean_slot(stream) / share
            if not start <= moment < lasts:
                continue
            asked += share
            if follows_clock(stream):
                clock += load(stream, increment)
            else:
                line += share
        if clock and asked <= 1:
            most = max(most, clock / (1 - line))
    return most


def load(stream: Stream, increment: int) -> Fraction:
    """Return the share of the line that a stream takes."""
    burst = stream.interval.burst
    frames = len(one_round(stream.length)) if fills_line(stream) else burst.count if burst else 1
    return frames * mean_slot(stream) / spacing(stream, increment)


def one_round(length: Length) -> Sequence[int]:
    """Return lengths until they come again, none where they are drawn."""
    match length:
        case Fixed(only):
            return [only]
        case Stepped(least, greatest, step):
            return range(least, greatest + 1, step)
        case Lengths(entries, False):
            return entries
    return []


def mean_slot(stream: Stream) -> Fraction:
    """Return the mean octets that a frame takes on the line."""
    match stream.length:
        case RandomLength(least, greatest):
            return Fraction(least + greatest, 2) + AROUND
        case Lengths(entries, _):
            return Fraction(sum(entries), len(entries)) + AROUND
    table = one_round(stream.length)
    return Fraction(sum(table), len(table)) + AROUND


def ticks(time_ns: Fraction, increment: int) -> Fraction:
    """Return the ticks of a time by a clock of this increment."""
    return time_ns * 2**40 / increment


def decimal(number: int | float | Fraction) -> Fraction:
    """Return a number as it is written in decimal."""
    return number if isinstance(number, Fraction) else Fraction(repr(number))


def nearest(number: Fraction) -> int:
    """Return the nearest whole number, the even one of two."""
    low = number.numerator // number.denominator
    rest = number - low
    return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1))
