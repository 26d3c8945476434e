# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A trace holds frames of any number, each due at a time of its own, from a file or made up, and read as they are needed."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import LINE_RATE_BPS, MAX_LENGTH, OVERHEAD, STAMP_OCTETS, TICK_NS, TICKS_PER_SECOND
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.line import FASTEST, GIGABIT, Line
from liteprobe.host.base.units import Number, exact
from liteprobe.host.base.validate import TickIncrement, validated
from liteprobe.host.packets.files import FileSource
from liteprobe.host.packets.frames import PARTS, SLACK, Frames, Index, joined, normal
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.intervals import NOMINAL, Interval, head_ticks
from liteprobe.host.traffic.lengths import IMIX, Fixed, Length, RandomLength
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.records import Summary, Words, check_stamp, records, starts_of, summarize

OVER_MAX, UNDER_MAX = 1 << 50, 1 << 60  # Numerator and denominator for which ``scaled`` is exact.


def fitting(ratio: Fraction) -> Fraction:
    """Return ``ratio``, or the nearest one that ``scaled`` can take: off by less than 1 part in 2^58, from 2^-40 to 2^40."""
    if ratio.denominator == 1 or (ratio.numerator < OVER_MAX and ratio.denominator < UNDER_MAX):
        return ratio
    return ratio.limit_denominator(max(min(int(OVER_MAX / 2 / ratio), UNDER_MAX - 1), 1))


def scaled(times: Index, ratio: Fraction, rest: Index | None = None) -> Index:
    """Return ``(times + rest / PARTS) * ratio``, each rounded to the nearest whole number; halves upwards.

    Parameters
    ----------
    times : array of int64, 0 or more
    ratio : Fraction
        As ``fitting`` returns it.
    rest : array of int64 or None
        From -`PARTS` to `PARTS`; None: nothing.
    """
    over, under = ratio.numerator, ratio.denominator
    whole, left = (times * over, 0 * times) if under == 1 else _product(times, over, under)
    if rest is None or not rest.any():
        return np.asarray(whole + (2 * left + under) // (2 * under))
    if under == 1 and PARTS % (2 * over) == 0:
        part = PARTS // over
        return np.asarray(whole + (rest + part // 2) // part)
    more, least = _product(rest, over, PARTS)
    return np.asarray(whole + (2 * (left + more) + under + 2 * least // PARTS) // (2 * under))


def _product(times: Index, over: int, under: int) -> tuple[Index, Index]:
    """Return ``times * over / under`` rounded down, and what is left of it, in 1/``under``."""
    whole, rest = np.divmod(times, under)
    # The quotient is off by one at most; what is left of the product, modulo 2^64, says by how much.
    near = (rest.astype(np.float64) * over / under).astype(np.int64)
    left = rest * over - near * under
    carry = left // under
    return whole * over + near + carry, left - carry * under


FACTOR_LEAST, FACTOR_MOST = Fraction(1, 10**9), 10**6  # Of what ``fitting`` has: beyond, times end at 0 or overflow.
SORTED_FRAMES = 4096  # A frame may be so many places from where it belongs.
GAP_MOST_S = 3600  # Longer ones are a mistake more often than not: who wants them says so.
GAP_RANGE_S = 3_600_000  # Of what can be asked for.


def checked(chunks: Iterator[Frames], source: "TraceSource") -> Iterator[Frames]:
    """Yield what comes, sure that no time goes back; UsageError when one does."""
    last: Frames | None = None
    for chunk in chunks:
        time, rest = _since(chunk, last)
        if (back := (time < 0) | ((time == 0) & (rest < 0))).any():
            first = int(np.argmax(back))
            raise _went_back(source, chunk, first, (time, rest), "sort them with --sort, or leave it out")
        last = chunk
        yield chunk


def _since(chunk: Frames, last: Frames | None) -> tuple[Index, Index]:
    """Return the times between frames and those before them, whole units and 1/`PARTS`; ``last``: has the one before them all."""
    before = chunk if last is None else last
    at = 0 if last is None else -1
    return np.diff(chunk.time, prepend=before.time[at]), np.diff(chunk.rest, prepend=before.rest[at])


def in_order(chunks: Iterator[Frames], source: "TraceSource") -> Iterator[Frames]:
    """Yield frames in the order of their times; those of equal time in the order in which they came.

    Raises UsageError when one comes more than ``SORTED_FRAMES`` frames after its place.
    """
    held: Frames | None = None
    last: tuple[int, int] | None = None
    for chunk in chunks:
        if last is not None:
            time, rest = chunk.time - last[0], chunk.rest - last[1]
            if (back := (time < 0) | ((time == 0) & (rest < 0))).any():
                first = int(np.argmax(back))
                advice = f"it belongs more than {SORTED_FRAMES} packets before: sort the file with reordercap"
                raise _went_back(source, chunk, first, (time, rest), advice)
        both = chunk if held is None else joined(held, chunk)
        both = both.select(np.lexsort((both.rest, both.time)))
        done = max(len(both) - SORTED_FRAMES, 0)
        held = both.select(slice(done, None)).compact()
        if done:
            last = int(both.time[done - 1]), int(both.rest[done - 1])
            yield both.select(slice(0, done))
    if held is not None and len(held):
        yield held


def _went_back(source: "TraceSource", chunk: Frames, first: int, since: tuple[Index, Index], advice: str) -> UsageError:
    back_ns = -(since[0][first] + since[1][first] / PARTS) * float(source.ticks_per_unit * TICK_NS)
    return UsageError(
        f"{source.name}: the time of packet {chunk.number[first]} (at octet {chunk.place[first]}) is {back_ns:,.0f} ns before that "
        f"of the one before it: {advice}"
    )


class Gaps:
    """Limits the times between frames: a longer one is an error, or is shortened and counted.

    Parameters
    ----------
    name : str
        What messages call the trace.
    most_s : Number or None
        Longest time (s), as it is replayed: longer ones are shortened; None: longer ones than ``GAP_MOST_S`` are an error.
    units_per_second : Fraction
        Units of the frames' times in a second of the replay.
    """

    def __init__(self, name: str, most_s: Number | None, units_per_second: Fraction) -> None:
        self._name, self._per_second, self._shortens = name, units_per_second, most_s is not None
        self._most_s = exact(GAP_MOST_S if most_s is None else most_s)
        self.shortened = 0  # Times, and by how much in all (s).
        self.saved_s = Fraction(0)

    @property
    def notes(self) -> list[str]:
        """Note of the times that were shortened."""
        if not self.shortened:
            return []
        return [
            f"{self.shortened} gaps are shortened to {_in_words(self._most_s)}, by {_in_words(self.saved_s)} in all"
        ]

    def limited(self, chunks: Iterator[Frames]) -> Iterator[Frames]:
        """Yield what comes, with no time between frames that is too long; UsageError where one is and they are not shortened."""
        self.shortened = saved = 0
        most = int(self._most_s * self._per_second * PARTS)
        most_time, most_rest = divmod(most, PARTS)
        last: Frames | None = None
        for chunk in chunks:
            time, rest = normal(*_since(chunk, last))
            last = chunk
            too_long = (time > most_time) | ((time == most_time) & (rest > most_rest))
            if too_long.any() and not self._shortens:
                first = int(np.argmax(too_long))
                gap_s = (int(time[first]) + Fraction(int(rest[first]), PARTS)) / self._per_second
                raise UsageError(
                    f"{self._name}: packet {chunk.number[first]} (at octet {chunk.place[first]}) comes {_in_words(gap_s)} after "
                    "the one before: give --max-gap 1s, or another time, to shorten longer gaps to it, or --rate or --top"
                )
            if too_long.any() or saved:
                steps = [saved]
                for at in np.flatnonzero(too_long).tolist():
                    steps.append(steps[-1] + int(time[at]) * PARTS + int(rest[at]) - most)
                whole, part = np.array([divmod(one, PARTS) for one in steps], np.int64).T[:, np.cumsum(too_long)]
                time, rest = normal(chunk.time - whole, chunk.rest - part)
                chunk, saved = replace(chunk, time=time, rest=rest), steps[-1]
                self.shortened += int(np.count_nonzero(too_long))
                self.saved_s = Fraction(saved, PARTS) / self._per_second
            yield chunk


def _in_words(seconds: Fraction) -> str:
    """Return a time as a person has it."""
    name, size = next((one for one in (("days", 86400), ("hours", 3600), ("s", 1)) if seconds >= 3 * one[1]), ("s", 1))
    return f"{float(seconds / size):,.6g} {name}"


CHUNK = 1 << 14  # Frames at once.
DRAWN = 1 << 10  # Parts of a tick that exponential intervals are drawn in.
SEQUENCE_OCTETS = 4


@validated
@dataclass(frozen=True)
class MadeSource:
    """Probe frames whose sequence numbers count from 0; a monitor tells by them what was lost.

    Raises UsageError when it can't be made.
    """

    interval: Interval  # From start to start; bursts are not made.
    length: Length
    count: int | None  # Frames; None: without an end.
    headers: Headers = field(default_factory=Headers)  # Of IPv4.
    stream_id: int = 1
    seed: int = 1  # Of what is random.
    ticks_per_unit: Fraction = field(init=False)  # Of the times of its frames, by a clock without an error.
    follows_line: bool = field(init=False)  # Its times are shares of the line, whatever the probe's clock does.
    notes: list[str] = field(default_factory=list, init=False, compare=False)
    counts: dict[str, int] = field(default_factory=dict, init=False, compare=False)  # There is nothing to count.

    def __post_init__(self) -> None:
        interval = self.interval
        if self.count is not None and self.count < 1:
            raise UsageError(
                f"a trace of {self.count} frames is out of range: give 1 or more, or None for one without an end"
            )
        if interval.burst:
            raise UsageError("a trace is made without bursts: send them as a stream, or write them to a pcap")
        if self.headers.is_ipv6:
            raise UsageError("a trace is made with IPv4 headers alone: send IPv6 as a stream, or write it to a pcap")
        is_line = interval.is_back_to_back or interval.share is not None
        if interval.is_back_to_back or interval.exponential:
            unit = Fraction(1, DRAWN) if interval.exponential else Fraction(1)
        else:
            unit = head_ticks(interval, self.length, NOMINAL)
        object.__setattr__(self, "ticks_per_unit", unit)
        object.__setattr__(self, "follows_line", is_line)
        self._templates()

    name = "the trace"

    @property
    def is_endless(self) -> bool:
        """Whether it has no last frame."""
        return self.count is None

    def frames(self, with_times: bool = True) -> Iterator[Frames]:
        """Yield all frames, some at once; the same ones each time."""
        chance = np.random.default_rng(self.seed)
        templates = self._templates()
        lengths = np.array(list(templates), np.int64)
        order = np.argsort(lengths)
        rows = np.frombuffer(b"".join(templates.values()), np.uint8).reshape(len(templates), -1)[order]
        first = time = 0
        while self.count is None or first < self.count:
            count = CHUNK if self.count is None else min(CHUNK, self.count - first)
            length = self._lengths(chance, first, count)
            octets = self._octets(rows[np.searchsorted(lengths[order], length)], first)
            times = self._times(chance, length, first, time)
            time = int(times[-1])
            width = rows.shape[1]
            kept = np.minimum(width, length)
            at, none = width * np.arange(count), np.zeros(count, np.int64)
            yield Frames(octets, at, kept, length, length, times[:-1], none, first + 1 + np.arange(count), at)
            first += count

    # # #

    def _templates(self) -> dict[int, bytes]:
        """Return the octets up to the stamp, by length."""
        cycle = self.length.cycle
        lengths = (
            range(self.length.least, self.length.greatest + 1)
            if isinstance(self.length, RandomLength)
            else set(cycle or self._entries())
        )
        return {
            length: self.headers.octets(length, self.stream_id) + bytes(SEQUENCE_OCTETS + STAMP_OCTETS)
            for length in lengths
        }

    def _entries(self) -> tuple[int, ...]:
        return self.length.entries if hasattr(self.length, "entries") else ()

    def _lengths(self, chance: np.random.Generator, first: int, count: int) -> Index:
        if isinstance(self.length, RandomLength):
            return chance.integers(self.length.least, self.length.greatest, count, np.int64, endpoint=True)
        if self.length.cycle is None:
            return chance.choice(np.array(self._entries(), np.int64), count)
        return np.array(self.length.cycle, np.int64)[(first + np.arange(count)) % len(self.length.cycle)]

    def _times(self, chance: np.random.Generator, length: Index, first: int, time: int) -> Index:
        """Return when these frames and the one after them start, in units; ``time``: when the first one does."""
        if self.interval.is_back_to_back:
            gaps = length + OVERHEAD
        elif self.interval.exponential:
            mean = float(head_ticks(self.interval, self.length, NOMINAL) * DRAWN)
            gaps = np.rint(chance.exponential(mean, len(length))).astype(np.int64)
        else:
            return first + np.arange(len(length) + 1)
        return np.concatenate([[time], time + np.cumsum(gaps)])

    def _octets(self, rows: NDArray[np.uint8], first: int) -> NDArray[np.uint8]:
        """Return frames one after the other, with their sequence numbers."""
        sequences = np.arange(first, first + len(rows)).astype(">u4").view(np.uint8).reshape(-1, SEQUENCE_OCTETS)
        at = rows.shape[1] - STAMP_OCTETS
        rows[:, at - SEQUENCE_OCTETS : at] = sequences
        return np.concatenate([rows.reshape(-1), np.zeros(SLACK, np.uint8)])


PPM = 10**6


class TraceSource(Protocol):
    """Gives the frames of a trace, the same ones each time."""

    @property
    def name(self) -> str:
        """Name of it in messages."""

    @property
    def ticks_per_unit(self) -> Fraction:
        """Ticks of a unit of the frames' times, by a clock without an error."""

    @property
    def follows_line(self) -> bool:
        """Whether times are shares of the line, whatever the probe's clock does."""

    @property
    def is_endless(self) -> bool:
        """Whether it has no last frame."""

    @property
    def notes(self) -> list[str]:
        """Notes of packets that are not sent as they stand in the file."""

    @property
    def counts(self) -> dict[str, int]:
        """Count of these, by kind."""

    def frames(self, with_times: bool = True) -> Iterator[Frames]:
        """Yield all frames, some at once; ``with_times``: UsageError where one has no time."""


@validated
@dataclass(frozen=True)
class Trace:
    """Frames to be replayed, and when: ``from_pcap``, ``cbr``, ``poisson``, ``imix`` make one; others change it.

    Nothing is read or made before it is needed, and nothing is kept: a trace may be longer than any memory. Each start is
    rounded to a tick (8 ns) by itself, counted from the first frame, so that nothing drifts.
    """

    source: TraceSource
    factor: Fraction = Fraction(1)  # By which all times are stretched.
    #: In the place of the times of the source: each frame is due when the one before has ended on a line of this rate.
    rate_bps: Number | None = None
    is_top: bool = False  # Likewise, on the line as it is: back to back.
    repeats: int | None = 1  # How often all is sent; None: without an end.
    snap_length: int = MAX_LENGTH  # Octets that are sent of each frame at most; the rest is zero.
    stamp: Stamp | None = None  # Where frames get the time of their start.
    is_sorted: bool = False  # Frames whose times go back are brought into order; else that is an error.
    #: Longest time between frames (s), as it is replayed: longer ones are shortened; None: longer ones than an hour are an error.
    max_gap_s: Number | None = None

    # Made from -------------------------------------------------------------------------------

    @classmethod
    def from_pcap(
        cls, path: str | Path, sort: bool = False, repair: bool = False, with_damaged: bool = False
    ) -> "Trace":
        """Return the frames of a pcap or pcapng file, packed or not, at its times.

        Parameters
        ----------
        path : str or Path
            ``-``: standard input. That, a pipe, and a packed file (gzip, bzip2, xz, zstd, lz4) are copied to a temporary file
            first, which lasts as long as the trace.
        sort : bool
            Bring packets into order whose times go back, over 4096 packets at most; else that is an error.
        repair : bool
            Let a file that is cut or corrupt end before that; else it is an error.
        with_damaged : bool
            Send frames that the file calls damaged, with a right FCS; else they are left out.

        Raises
        ------
        UsageError
            Here when the file can't be read or is of another kind; later, when it is read, for what is wrong in it.
        """
        return cls(FileSource(Path(path), repair, with_damaged), is_sorted=sort)

    @classmethod
    def cbr(
        cls,
        interval: Interval,
        length: Length | int,
        count: int | None,
        headers: Headers | None = None,
        stream_id: int = 1,
        seed: int = 1,
    ) -> "Trace":
        """Return probe frames at a constant interval or rate.

        Parameters
        ----------
        interval : Interval
            Without bursts; where it is ``exponential``, it is as of ``poisson``.
        length : Length or int
            Octets without FCS.
        count : int or None
            Frames; None: without an end.
        headers : Headers or None
            Of IPv4.
        """
        fixed = Fixed(length) if isinstance(length, int) else length
        return cls(MadeSource(interval, fixed, count, headers or Headers(), stream_id, seed))

    @classmethod
    def poisson(
        cls,
        interval: Interval,
        length: Length | int,
        count: int | None,
        headers: Headers | None = None,
        stream_id: int = 1,
        seed: int = 1,
    ) -> "Trace":
        """Return probe frames at intervals that are drawn from an exponential distribution; else as ``cbr``."""
        return cls.cbr(replace(interval, exponential=True), length, count, headers, stream_id, seed)

    @classmethod
    def imix(cls, interval: Interval, count: int | None, headers: Headers | None = None, seed: int = 1) -> "Trace":
        """Return probe frames of 60, 590 and 1514 octets, 7 : 4 : 1; else as ``cbr``."""
        return cls.cbr(interval, IMIX, count, headers, seed=seed)

    # Changed to ------------------------------------------------------------------------------

    def stretched(self, factor: Number) -> "Trace":
        """Return it with all times ``factor`` (above 0) as long: 2 is half the speed."""
        if exact(factor) <= 0:
            raise UsageError(f"times can't be stretched by {factor}: give more than 0")
        if not FACTOR_LEAST <= self.factor * exact(factor) <= FACTOR_MOST:
            raise UsageError(f"times can't be stretched by {float(factor):g}: give 1e-9 to 1e6 in all")
        return replace(self, factor=self.factor * exact(factor))

    def with_margin(self, ppm: Number) -> "Trace":
        """Return it slower by ``ppm`` parts in a million, for a device whose clock is slower than the probe's."""
        return self.stretched(1 + exact(ppm) / PPM)

    def at_rate(self, rate_bps: Number) -> "Trace":
        """Return it at a constant rate on the wire (b/s, frame + 24 octets), whatever its times were."""
        if not 1 <= exact(rate_bps) <= FASTEST.rate_bps:
            raise UsageError(
                f"a rate of {rate_bps} b/s is out of range: give 1 to 1e9 (1e10 at 10 Gb/s), or have it back to back (--top)"
            )
        return replace(self, rate_bps=rate_bps, is_top=False)

    def at_top(self) -> "Trace":
        """Return it with its frames back to back."""
        return replace(self, rate_bps=None, is_top=True)

    def repeated(self, repeats: int | None) -> "Trace":
        """Return it so often, one after the other, a mean interval between them; None: without an end."""
        if repeats is not None and repeats < 1:
            raise UsageError(f"a trace can't be sent {repeats} times: give 1 or more, or None for one without an end")
        return replace(self, repeats=repeats)

    def limited(self, max_gap_s: Number) -> "Trace":
        """Return it with times between frames of ``max_gap_s`` (s, as it is replayed) at most: longer ones are shortened."""
        if not 0 < exact(max_gap_s) <= GAP_RANGE_S:
            raise UsageError(f"a gap of {max_gap_s} s at most is out of range: give more than 0, up to {GAP_RANGE_S} s")
        return replace(self, max_gap_s=max_gap_s)

    def snapped(self, snap_length: int) -> "Trace":
        """Return it with ``snap_length`` octets of each frame; the rest is zero."""
        if not 0 <= snap_length <= MAX_LENGTH:
            raise UsageError(f"snap length {snap_length} is out of range: give 0 to {MAX_LENGTH}")
        return replace(self, snap_length=snap_length)

    def stamped(self, stamp: Stamp | None) -> "Trace":
        """Return it with the time of its start in each frame that has the place."""
        if stamp is not None:
            check_stamp(stamp)
        return replace(self, stamp=stamp)

    # What a probe gets -----------------------------------------------------------------------

    def due(self, increment: TickIncrement = NOMINAL, gaps: Gaps | None = None) -> Iterator[tuple[Frames, Index]]:
        """Yield frames, and the tick at which each is due, from the first one on (tick 0).

        Parameters
        ----------
        increment : int or Fraction
            Nanoseconds a tick of a program, by the probe's clock, in 8.40 fixed point (`Line.program_increment`).
        gaps : Gaps or None
            Limits and counts times between frames; None: as of ``gaps``.

        Raises
        ------
        UsageError
            When a packet can't be replayed, or there is none.
        """
        ratio = self._ratio(increment)
        turn, shift = 0, 0  # Of the times of a turn, in parts.
        while self.repeats is None or turn < self.repeats:
            first: tuple[int, int] | None = None
            span = count = slots = 0
            for chunk in self._frames(gaps or self.gaps()):
                time, rest, slots = self._times(chunk, slots)
                first = first or (int(time[0]), int(rest[0]))
                time, rest = time - first[0], rest - first[1]
                span, count = int(time[-1]) * PARTS + int(rest[-1]), count + len(chunk)
                units, parts = divmod(shift, PARTS)
                time, rest = normal(time + units, rest + parts)
                yield chunk, scaled(time, ratio, rest)
            if first is None:
                why = "; ".join(["the trace has no frame", *self.source.notes])
                raise UsageError(f"{why}: nothing would be sent")
            shift += span + self._pause(span, count, slots, ratio)
            turn += 1

    def records(self, increment: TickIncrement = NOMINAL, first_ticks: int = 0) -> Iterator[Words]:
        """Yield the words of its records, some at once; the last one ends the program. Else as ``due``.

        Parameters
        ----------
        increment : int or Fraction
            As of ``due``.
        first_ticks : int
            From the start of the program to the first frame.
        """
        return records(self.due(increment), self.stamp, first_ticks)

    def starts(self, increment: TickIncrement = NOMINAL) -> Iterator[Index]:
        """Yield the tick at which each frame starts, max(due, line free), from the first one on; some at once. Else as ``due``."""
        free = 0
        for frames, due in self.due(increment):
            start, free = starts_of(due, frames.length + OVERHEAD, free)
            yield start

    def summary(self, increment: TickIncrement = NOMINAL, line: Line = GIGABIT) -> Summary:
        """Read all of it once, and return what it comes to, and how many frames can't start when they are due.

        ``line``: whose octets its ticks are. Of one without an end, this is one turn.

        Raises
        ------
        UsageError
            For all that is wrong in it.
        """
        if self.source.is_endless:
            raise UsageError("a trace without an end has no summary: give it a count")
        once = self if self.repeats is not None else replace(self, repeats=1)
        gaps = self.gaps()
        found = summarize(once.due(increment, gaps), self.stamp)
        counts = {**self.source.counts, "shortened": gaps.shortened}
        asked = {"--sort": self.is_sorted, "--max-gap": self.max_gap_s is not None}
        idle = [name for name, is_asked in asked.items() if is_asked and self._is_paced]
        said = f"without effect: {' and '.join(idle)}; at a rate, and back to back, frames go as they stand in the file"
        notes = (*self.source.notes, *gaps.notes, *([said] if idle else []))
        return replace(found, notes=notes, counts=counts, line=line)

    def gaps(self) -> Gaps:
        """Return what limits the times between its frames."""
        return Gaps(self.source.name, self.max_gap_s, TICKS_PER_SECOND / (self.source.ticks_per_unit * self.factor))

    def turn_ticks(self, increment: TickIncrement = NOMINAL) -> int:
        """Return the ticks from the last frame of a turn to the first one of the next."""
        twice, last = replace(self, repeats=2).due(increment), 0
        size = sum(len(chunk) for chunk in self._frames(self.gaps()))
        seen = 0
        for chunk, due in twice:
            if seen >= size:
                return int(due[0]) - last
            seen, last = seen + len(chunk), int(due[-1])
        raise UsageError("the trace has no frame: nothing would be sent")

    # # #

    def _ratio(self, increment: int | Fraction) -> Fraction:
        """Return the ticks of a unit of time."""
        by_clock = Fraction(NOMINAL, increment)
        if self.is_top:
            return fitting(self.factor)
        if self.rate_bps is not None:
            return fitting(LINE_RATE_BPS / exact(self.rate_bps) * self.factor * by_clock)
        ratio = self.source.ticks_per_unit * self.factor
        return fitting(ratio if self.source.follows_line else ratio * by_clock)

    def _frames(self, gaps: Gaps) -> Iterator[Frames]:
        chunks = self.source.frames(with_times=not self._is_paced)
        if not self._is_paced:
            chunks = gaps.limited((in_order if self.is_sorted else checked)(chunks, self.source))
        for chunk in chunks:
            kept = np.minimum(chunk.kept, self.snap_length) if self.snap_length < MAX_LENGTH else chunk.kept
            yield replace(chunk, kept=kept)

    @property
    def _is_paced(self) -> bool:
        return self.is_top or self.rate_bps is not None

    def _times(self, chunk: Frames, slots: int) -> tuple[Index, Index, int]:
        """Return when frames are due, in units and parts, and the octets of the line up to the end of the last one."""
        ends = slots + np.cumsum(chunk.length + OVERHEAD)
        if self._is_paced:
            return ends - (chunk.length + OVERHEAD), np.zeros_like(ends), int(ends[-1])
        return chunk.time, chunk.rest, int(ends[-1])

    def _pause(self, span: int, count: int, slots: int, ratio: Fraction) -> int:
        """Return the parts of a unit from the last frame of a turn to the first one of the next: the mean interval."""
        if self._is_paced:
            return slots * PARTS - span
        if span:
            return -(-span // (count - 1))
        return -int(-slots * PARTS // ratio)


Replay = Trace  # A short name, for scripts.


@dataclass(frozen=True)
class TraceWords:
    """The words of a trace, as they go along to the process that prepares them."""

    trace: Trace
    increment: TickIncrement = NOMINAL  # As of `Trace.due`.
    first_ticks: int = 0  # From the start of the program to the first frame.

    def chunks(self) -> Iterator[Words]:
        """Yield all words, some at once."""
        return self.trace.records(self.increment, self.first_ticks)
