# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A degraded network between two ports is plain data: directions, their classes, and what changes when."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, floor
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import GIANT_LENGTH, LINE_RATE_BPS, MIN_LENGTH, OVERHEAD
from liteprobe.cores.formats.emulate import CLASSES, DELAY_ENTRIES, PATTERN_WORDS, UNMATCHED_CLASS
from liteprobe.cores.formats.emulate import BackgroundKind as Kind
from liteprobe.host.base.document import (
    NAME,
    ByShape,
    Entries,
    Flag,
    Key,
    Made,
    NoneWord,
    OneOf,
    Quantity,
    Section,
    Several,
    Text,
    Whole,
    WordOr,
    build,
    check_fields,
    key,
    keys,
    part,
    section_of,
    values_of,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.text import read_text
from liteprobe.host.base.units import PER_CENT, RATES, TIMES, Number, exact, rate_text, time_text
from liteprobe.host.base.validate import validated
from liteprobe.host.packets.filter.expression import Expression, parse

DIRECTIONS = ("there", "back")
SERVICES = ("strict", "weighted")
REST = "rest"
FRAMES_MAX = 2**16 - 1
OCTETS_MAX = 2**32 - 2  # One more is for no limit.
OVERHEAD_MIN, OVERHEAD_MAX = -59, 255  # Of octets, so that each frame takes one at least.
SEED_MAX = 2**64 - 1
CHANGES_MAX = 10_000
BACKGROUND_MAX = (1 << 14) - 1  # Octets of a background frame: of its word, `background_length`.
LONGEST_USUAL = 1514  # Octets of the longest frame without a tag: those that a burst must let pass.
OPPORTUNITY = 1504  # Octets of a line of a trace, as mm-link has it: an IP packet with 4 octets before it,
TRACE_OVERHEAD = 4 - 14  # and no Ethernet header.
NUMBER_MAX = 2**32 - 1
BURST_MAX = 2**32 - 1

# Kinds of values ---------------------------------------------------------------------------------------

DELAY_MOST, PAUSE_MOST, CHANGE_MOST = Fraction(8_589_000_000), Fraction(34_359_000_000), Fraction(26 * 86400 * 10**9)


def _time(written: str, most: Fraction, may_be_0: bool = True) -> Quantity:
    return Quantity("a time", f"a time with ns, us, ms or s, {written}", TIMES, most, may_be_0, is_short=True)


def _rate(most: str, most_bps: int) -> Quantity:
    return Quantity(
        "a rate", f"a rate with bit, kbit, Mbit or Gbit a second{most}", RATES, Fraction(most_bps), is_short=True
    )


DELAY, SPREAD = _time("up to 8.589 s", DELAY_MOST), _time("above 0, up to 8.589 s", DELAY_MOST, False)
WAIT = _time("above 0, up to 1 s", Fraction(10**9), False)
PIE_WAIT, BURST = _time("above 0, up to 0.5 s", Fraction(5 * 10**8), False), _time("up to 8.589 s", DELAY_MOST)
UPDATES_MAX = 255
PAUSE, AT = _time("up to 34.359 s", PAUSE_MOST), _time("above 0, up to 26 days", CHANGE_MOST, False)
RATE, BACKGROUND_RATE = _rate(", up to 1Gbit", LINE_RATE_BPS), _rate("", 10**11)
SHARE = Quantity("a share", "per cent like 12.5%, 0% to 100%", PER_CENT, Fraction(1), True, is_short=True)
LOAD = Quantity(
    "a share", "per cent of the link, like 80%, above 0%; above 100% too", PER_CENT, Fraction(1000), is_short=True
)
FRAMES_OF_BURST = Quantity("a number", "a number from 1", {"": 1}, Fraction(BURST_MAX), plain="")
NONE, LEAST, USUAL, KEEP = NoneWord("none"), NoneWord("least"), NoneWord("usual"), NoneWord("keep")
LENGTH, FRAMES, OCTETS = Whole(MIN_LENGTH, GIANT_LENGTH), Whole(1, FRAMES_MAX), Whole(MIN_LENGTH, OCTETS_MAX)
SEED = Whole(0, SEED_MAX)
UP, DOWN = "up", "down"  # The link of the port that a direction leaves by.
EATEN, FORWARDED = "eaten", "forwarded"  # What becomes of frames that no bridge forwards.
NOTHING = "nothing"
NO_FRAME = replace(parse("less 1"), text=NOTHING)


def match_of(text: str) -> Expression:
    """Return the expression of a class; `nothing` is what no frame is: shorter than 1 octet. Raises UsageError as `parse`."""
    return NO_FRAME if text.strip() == NOTHING else parse(text)


MATCH = Text(f"a filter expression, in tcpdump's words, or {NOTHING}", r".*\S.*", match_of, lambda one: one.text)

# Delays ------------------------------------------------------------------------------------------------

JITTERS = ("uniform", "normal", "pareto", "paretonormal", "table")
PARETO_SHAPE = 3
PARETO_MEAN, PARETO_SCALE = 1.5, 4 / 3
SPREADS_MOST = 32767 / 8192  # Where netem's tables end.


@validated
@dataclass(frozen=True)
class Jitter:
    """Jitter makes the delays of the frames of a class differ. Frames of a class keep their order all the same.

    Source: iproute2, netem/pareto.c and paretonormal.c (after NIST Net).

    ``spread_ns`` (ns) is half the width of the uniform distribution, the standard deviation of the others (netem scales its
    Pareto's alike); ``table_ns`` (ns) comes on top of the delay. The correlation of two frames n apart is the n-th power of
    ``correlation``; None: the least with which order changes neither mean nor deviation by more than `KEPT` of the deviation.
    """

    kind: str = keys({"distribution": Key(OneOf(JITTERS), "Of the delays.", "normal; table with `table`")})
    spread_ns: Number = keys(
        {"spread": Key(SPREAD, "Half the width of `uniform`, the standard deviation of the others.")}, 0
    )
    table_ns: tuple[Number, ...] = keys(
        {
            "table": Key(
                Several(DELAY, DELAY_ENTRIES),
                "In the place of `spread`: what comes on top of `delay`, in equal shares.",
            )
        },
        (),
    )
    correlation: Number | None = key(
        "correlation",
        WordOr(KEEP, SHARE),
        "Share of the frames that have the delay of the one before; `keep`: as many as the distribution needs.",
        0,
    )

    def __post_init__(self) -> None:
        check_fields(self, " of a jitter")
        if self.table_ns and self.kind != "table":
            raise UsageError(f"jitter '{self.kind}' has no table: leave it out, or give 'table'")
        if not (self.table_ns if self.kind == "table" else self.spread_ns):
            raise UsageError("jitter needs 'spread', or 'table' in its place: give one of them")

    def quantiles_ns(self) -> list[Fraction]:
        """Return what each quantile adds to the delay (ns, below 0 where it takes away), ascending."""
        if self.kind == "table":
            table = sorted(exact(one) for one in self.table_ns)
            return [table[number * len(table) // DELAY_ENTRIES] for number in range(DELAY_ENTRIES)]
        spread = exact(self.spread_ns)
        middles = [Fraction(2 * number + 1, 2 * DELAY_ENTRIES) for number in range(DELAY_ENTRIES)]
        return [spread * spreads_of(self.kind, middle) for middle in middles]


def _jitter(given: Entries) -> Jitter:
    kind = given.get("distribution", "table" if "table" in given.values else "normal")
    if ("table" in given.values) == ("spread" in given.values):
        raise UsageError("jitter needs 'spread', or 'table' in its place: give one of them")
    made: Jitter = build(Jitter, given, kind=kind)
    return made


JITTER = Made(section_of(Jitter, "jitter"), _jitter, values_of, lambda one: isinstance(one, Jitter))


def spreads_of(kind: str, share: Fraction) -> Fraction:
    """Return the quantile of a distribution of mean 0 and spread 1, below which lies ``share`` of it."""
    if kind == "uniform":
        return 2 * share - 1
    normal = NormalDist().inv_cdf(float(share))
    pareto = ((1 - float(share)) ** (-1 / PARETO_SHAPE) - PARETO_MEAN) * PARETO_SCALE
    pareto = min(pareto, SPREADS_MOST)
    value = {"normal": normal, "pareto": pareto, "paretonormal": (normal + 3 * pareto) / 4}[kind]
    return Fraction(value)


KEPT = 0.01  # Of the deviation: by how much order may move the mean and the deviation of a distribution that is kept.
GRID = 4096  # Steps of the range of a distribution.


def in_order(delays: NDArray[np.float64], gap: float, correlation: float) -> tuple[float, float]:
    """Return mean and deviation of the delays of frames that keep their order, one each ``gap``, drawn from ``delays``.

    A frame leaves at once after those before it: its delay is at most x where its own is, and that of the frame k before it at
    most x + k gap, which counts where it wasn't repeated by the next one. Source: docs/design/emulator.md, "Jitter in order".
    """
    values = np.sort(delays)
    span = values[-1] - values[0]
    if gap >= span:
        return float(values.mean()), float(values.std())
    stride = int(np.ceil(GRID * gap / span))
    step = gap / stride
    rows = int(span / gap) + 2
    grid = values[0] + step * np.arange(rows * stride)
    below = np.searchsorted(values, grid, side="right") / len(values)
    drawn = np.log(correlation + (1 - correlation) * below).reshape(rows, stride)
    later = (drawn[::-1].cumsum(axis=0)[::-1] - drawn).ravel()  # Of all frames before it.
    above = 1 - below * np.exp(later)
    mean = above.sum() * step
    square = 2 * (above * step * (np.arange(len(grid)) + 0.5)).sum() * step
    return float(values[0] + mean), float(np.sqrt(max(square - mean * mean, 0)))


def keeping(delays: NDArray[np.float64], gap: float) -> Fraction | None:
    """Return the least correlation with which order moves mean and deviation by `KEPT` at most; None: none does."""
    mean, deviation = float(delays.mean()), float(delays.std())

    def is_kept(change: int) -> bool:
        found = in_order(delays, gap, 1 - 2 ** -(change / 8))
        return max(abs(found[0] - mean), abs(found[1] - deviation)) <= KEPT * deviation

    for change in range(0, 8 * 20):
        if is_kept(change):
            return 1 - Fraction(1, round(2 ** (change / 8)))
    return None


@validated
@dataclass(frozen=True)
class Reorder:
    """Frames that are held back, so that later ones overtake them.

    The extent is a time; the extent in frames follows from it: as many overtake as come within it. What is held back keeps its
    order among itself, over all classes of the direction.

    """

    share: Number = key("share", SHARE, "Share of the frames that are held back.")
    extent_ns: Number = key(
        "extent", SPREAD, "How long, on top of `delay`; how many frames overtake follows from their rate."
    )

    def __post_init__(self) -> None:
        check_fields(self, " of frames that are held back")


REORDER = part(Reorder, "reorder")

# Losses ------------------------------------------------------------------------------------------------

PATTERN_BITS = 32


@validated
@dataclass(frozen=True)
class Bernoulli:
    """Each frame is lost by itself: ``share``, from 0 to 1, of the frames."""

    share: Number

    def __post_init__(self) -> None:
        SHARE.check(self.share, "loss")


@validated
@dataclass(frozen=True)
class GilbertElliott:
    """Losses come in bursts: the path is in a good or in a bad state, and goes over with each frame.

    With the defaults of ``h`` and ``k`` it is Gilbert's model: what comes in the bad state is lost, all else isn't. The loss is
    (r (1-k) + p (1-h)) / (p + r), a stay in the bad state has a mean of 1/r frames.

    Source: Gilbert, Capacity of a Burst-Noise Channel, 1960; Elliott, Estimates of Error Rates for Codes on Burst-Noise Channels,
    1963; in the letters of Salsano, Ludovici and Ordine, 2009, which netem has.

    """

    p: Number = key("p", SHARE, "With each frame: from the good to the bad state,")
    r: Number = key("r", SHARE, "and back.")
    h: Number = key("h", SHARE, "What the bad state lets pass.", 0)
    k: Number = key("k", SHARE, "What the good state lets pass.", 1)

    def __post_init__(self) -> None:
        check_fields(self, " of a loss")
        if exact(self.p) and not exact(self.r):
            raise UsageError("with 'r' of 0 % the bad state never ends: give more, or 'loss' as one share")


@validated
@dataclass(frozen=True)
class LossPattern:
    """Frames are lost as ``bits`` say (1: lost): the first is the first frame of the class; after the last the pattern repeats."""

    bits: str

    def __post_init__(self) -> None:
        if not re.fullmatch("[01]+", self.bits):
            raise UsageError(f"'{self.bits[:40]}' is not a pattern of losses: give 0 and 1, like 00010")
        if len(self.bits) > PATTERN_WORDS * PATTERN_BITS:
            raise UsageError(
                f"a pattern of {len(self.bits)} frames is out of range: give {PATTERN_WORDS * PATTERN_BITS} at most; it repeats"
            )

    @property
    def count(self) -> int:
        """Frames until it repeats."""
        return len(self.bits)

    def words(self) -> tuple[int, ...]:
        """Return its words of the pattern memory."""
        parts = [self.bits[first : first + PATTERN_BITS] for first in range(0, len(self.bits), PATTERN_BITS)]
        return tuple(int(part[::-1], 2) for part in parts)


@validated
@dataclass(frozen=True)
class LossList:
    """These frames of the class are lost, once: their numbers ascend from 0."""

    numbers: Sequence[int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", tuple(self.numbers))
        if not 1 <= len(self.numbers) <= PATTERN_WORDS:
            raise UsageError(
                f"a list of {len(self.numbers)} lost frames is out of range: give 1 to {PATTERN_WORDS}, or a pattern"
            )
        ascends = all(low < high for low, high in pairwise(self.numbers))
        if not ascends or self.numbers[0] < 0 or self.numbers[-1] > NUMBER_MAX:
            raise UsageError(f"numbers of lost frames ascend from 0 to {NUMBER_MAX}: sort them, each once")

    @property
    def count(self) -> int:
        """Frames that are lost."""
        return len(self.numbers)

    def words(self) -> tuple[int, ...]:
        """Return its words of the pattern memory."""
        return tuple(self.numbers)


Loss = Bernoulli | GilbertElliott
Pattern = LossPattern | LossList
GE = part(GilbertElliott, "loss")
LOSS = ByShape(
    Made(SHARE, Bernoulli, lambda one: one.share if one else 0, lambda one: not isinstance(one, GilbertElliott)), GE
)
PATTERN = WordOr(
    NONE,
    Made(
        Text("0 and 1, like 00010, in quotes", "[01]+"),
        LossPattern,
        lambda one: one.bits,
        lambda one: isinstance(one, LossPattern),
    ),
)
LOST = Made(
    Several(Whole(0, NUMBER_MAX), PATTERN_WORDS),
    LossList,
    lambda one: one.numbers,
    lambda one: isinstance(one, LossList),
)


BACKGROUNDS = {
    "constant": Kind.CONSTANT,
    "exponential": Kind.EXPONENTIAL,
    "on-off": Kind.ON_OFF,
    "random on-off": Kind.RANDOM_ON_OFF,
    "pattern": Kind.PATTERN,
}
BURSTS = ("on-off", "random on-off")
ENTRIES_MAX = PATTERN_WORDS // 2
ENTRY = Made(
    Section(
        "entry",
        {
            "after": Key(PAUSE, "Since the one before.", is_needed=True),
            "length": Key(LENGTH, "Octets without FCS.", is_needed=True),
        },
    ),
    lambda given: (given.values["after"], given.values["length"]),
    lambda one: dict(zip(("after", "length"), one, strict=True)),
)


@validated
@dataclass(frozen=True)
class Background:
    """Frames of the background of a class.

    ``constant`` (at each interval), ``exponential`` (a Poisson process), ``on-off`` (bursts of a fixed number of frames, then a
    pause), ``random on-off`` (bursts of a geometric number, exponential pauses) or ``pattern``: (time since the frame before,
    length), which repeat. One of ``rate_bps``, ``share`` (of the link's rate) and ``interval_ns`` (from frame to frame) is
    given, but for ``pattern``; of bursts it is that within a burst. Times are in ns, lengths in octets without FCS.
    """

    kind: str = key("kind", OneOf(tuple(BACKGROUNDS)), "How its frames follow each other.")
    length: int = key("length", LENGTH, "Octets of each, without FCS.", 1514)
    rate_bps: Number | None = key(
        "rate", BACKGROUND_RATE, "Of its frames with `overhead`; of bursts, within one.", None
    )
    share: Number | None = key("share", LOAD, "In the place of `rate`: a share of the direction's.", None)
    interval_ns: Number | None = key(
        "interval", PAUSE, "In the place of `rate`: from frame to frame, or the mean.", None
    )
    burst: Number = keys(
        {"burst": Key(FRAMES_OF_BURST, "Of `on-off`: frames of a burst; of `random on-off`: their mean.")}, 0
    )
    pause_ns: Number = keys({"pause": Key(PAUSE, "From the last frame of a burst to the next burst, or the mean.")}, 0)
    entries: tuple[tuple[Number, int], ...] = keys(
        {"entries": Key(Several(ENTRY, ENTRIES_MAX), "Of `pattern`; they repeat.")}, ()
    )
    phase_ns: Number = key("phase", PAUSE, "From the start to the first frame; `exponential` draws it.", 0, "0s")
    is_stopped: bool = key("stopped", Flag(), "No frame comes until a change starts it; then it begins anew.", False)
    takes_ns: Number | None = key("takes", PAUSE, "In the place of `length`: the time of each on the link.", None)

    def __post_init__(self) -> None:
        check_fields(self, " of a background")
        for _, length in self.entries:
            LENGTH.check(length, "length", " of a background")
        given = [name for name in ("rate_bps", "share", "interval_ns") if getattr(self, name) is not None]
        self._check_pattern(given) if self.kind == "pattern" else self._check_pace(given)
        if self.kind == "exponential" and exact(self.phase_ns):
            raise UsageError("the first frame of an exponential background is drawn, too: leave out 'phase'")
        if self.takes_ns is not None and (self.kind == "pattern" or self.length != LONGEST_USUAL):
            raise UsageError(
                "a background with 'takes' has its length from that: leave out 'length', and a pattern's 'entries'"
            )

    def _check_pattern(self, given: list[str]) -> None:
        if given:
            raise UsageError("a pattern of the background has its own times: leave out rate, share and interval")
        if not self.entries:
            raise UsageError(f"a pattern of {len(self.entries)} background frames: give 1 to {ENTRIES_MAX}; it repeats")
        times = [exact(time) for time, _ in self.entries]
        if min(times) < 0 or not sum(times):
            raise UsageError(
                "the times of a background pattern are 0 or more, and not all 0: give times since the frame before"
            )

    def _check_pace(self, given: list[str]) -> None:
        if self.entries:
            raise UsageError(f"a background '{self.kind}' has no entries: leave them out, or give 'pattern'")
        if len(given) != 1:
            raise UsageError(f"a background '{self.kind}' needs one of rate, share and interval: give one of them")
        if self.interval_ns is not None and not exact(self.interval_ns):
            raise UsageError("the interval of a background is out of range: give more than 0")
        if self.kind not in BURSTS:
            if exact(self.burst) or exact(self.pause_ns):
                raise UsageError(
                    f"a background '{self.kind}' has no bursts: leave out burst and pause, or give 'on-off'"
                )
            return
        burst = exact(self.burst)
        if not burst or (self.kind == "on-off" and burst.denominator != 1):
            raise UsageError(f"bursts of {float(burst):g} background frames are out of range: give 1 to {BURST_MAX}")
        if not exact(self.pause_ns):
            raise UsageError("bursts of the background need a pause: give 'pause', or 'constant' for none")

    def octets(self, rate_bps: Fraction | None, overhead: int) -> int:
        """Return the octets of each frame, without FCS, on a link of ``rate_bps``.

        Raises UsageError when it takes a time that no frame can.
        """
        if self.takes_ns is None:
            return self.length
        if rate_bps is None:
            raise UsageError(
                "how long a background frame takes on a link without a rate is not known: give the direction one"
            )
        length = round(exact(self.takes_ns) * rate_bps / (8 * 10**9)) - overhead
        if not MIN_LENGTH <= length <= BACKGROUND_MAX:
            least, most = (8e9 * (octets + overhead) / float(rate_bps) for octets in (MIN_LENGTH, BACKGROUND_MAX))
            raise UsageError(
                f"background frames of {time_text(self.takes_ns)} are out of range on a link of {rate_text(rate_bps)}: give "
                f"{time_text(ceil(least))} to {time_text(floor(most))}; 'on-off' with a burst joins several"
            )
        return length

    def ticks_between(self, rate_bps: Fraction | None, overhead: int, ticks_per_ns: Fraction) -> Fraction:
        """Return the (mean) ticks from frame to frame, within a burst, of a link of ``rate_bps``.

        Raises UsageError when it is a share of a link that has no rate.
        """
        if self.interval_ns is not None:
            return exact(self.interval_ns) * ticks_per_ns
        if self.rate_bps is not None:
            rate = exact(self.rate_bps)
        elif rate_bps is None:
            raise UsageError(
                "a share of a link without a rate is not known: give the background a rate, or the direction one"
            )
        else:
            assert self.share is not None
            rate = exact(self.share) * rate_bps
        return 8 * (self.octets(rate_bps, overhead) + overhead) * 10**9 * ticks_per_ns / rate


BACKGROUND = part(Background, "background")

# Bandwidth traces --------------------------------------------------------------------------------------

MS = 10**6
STAMP_MAX = 2**40  # 34 years.
TICKS_MAX = 2**32 - 1
OPPORTUNITY_MAX = 2**32 - 1


@validated
@dataclass(frozen=True)
class BandwidthTrace:
    """Opportunities to deliver octets, as Mahimahi has them; what isn't used of one is lost, and it repeats after its last."""

    stamps_ms: tuple[int, ...]  # Of the opportunities, ascending.
    octets: tuple[int, ...]  # Of each.
    name: str = "trace"  # Of the file.

    def __post_init__(self) -> None:
        if len(self.stamps_ms) != len(self.octets) or not self.stamps_ms:
            raise UsageError("a bandwidth trace needs one or more opportunities, each with its octets: give some")
        ascends = all(low < high for low, high in pairwise(self.stamps_ms))
        if not ascends or self.stamps_ms[0] < 0 or self.stamps_ms[-1] == 0:
            raise UsageError("the stamps of a bandwidth trace ascend from 0 ms, and the last is above 0: sort them")
        if min(self.octets) < 0 or max(self.octets) > OPPORTUNITY_MAX:
            raise UsageError(f"an opportunity has 0 to {OPPORTUNITY_MAX} octets: give fewer at once")

    @classmethod
    def from_file(cls, path: Path) -> "BandwidthTrace":
        """Return the trace of a file in the format of Mahimahi: a stamp in ms a line, for 1504 octets each.

        Raises UsageError with its line, where the file isn't one.
        """
        return cls.from_lines(read_text(path, "a trace of Mahimahi, a stamp in ms a line").splitlines(), str(path))

    @classmethod
    def from_lines(cls, lines: Iterable[str], name: str = "trace") -> "BandwidthTrace":
        """Return the trace of lines; the same stamp on several lines is one opportunity."""
        found: dict[int, int] = {}
        last = 0
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text:
                continue
            if not text.isascii() or not text.isdigit() or len(text) > 20:
                raise UsageError(f"{name}:{number}: '{text[:40]}' is not a stamp: give whole milliseconds, one a line")
            stamp = int(text)
            if stamp > STAMP_MAX:
                raise UsageError(f"{name}:{number}: {stamp} ms is out of range: give {STAMP_MAX} ms at most")
            if stamp < last:
                raise UsageError(
                    f"{name}:{number}: {stamp} ms is before the {last} ms of the line above: sort the lines"
                )
            last = stamp
            found[stamp] = found.get(stamp, 0) + OPPORTUNITY
        if not found:
            raise UsageError(f"{name}:1: the file is empty: give a stamp in ms a line, each for {OPPORTUNITY} octets")
        if not last:
            raise UsageError(f"{name}:{number}: the last stamp is 0 ms, so the trace takes no time: give a later one")
        return cls(tuple(found), tuple(found.values()), name)

    @property
    def rate_bps(self) -> Fraction:
        """The mean rate."""
        return Fraction(8 * sum(self.octets) * 1000, self.stamps_ms[-1])

    @cached_property
    def _twice(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Its stamps, and again those of the next turn; what came before each, and in all."""
        stamps = np.array(self.stamps_ms, np.int64)
        sums = np.cumsum(np.array(self.octets * 2, np.int64))
        return np.concatenate([stamps, stamps + self.stamps_ms[-1]]), np.concatenate([[0], sums])

    def most_octets(self, time_ms: Fraction) -> int:
        """Return the most octets that opportunities within ``time_ms`` bring, both ends counted."""
        stamps, sums = self._twice
        count = len(self.stamps_ms)
        turns, rest = divmod(int(time_ms), self.stamps_ms[-1])
        ends = np.searchsorted(stamps, stamps[:count] + rest, side="right")
        return turns * int(sums[count]) + int((sums[ends] - sums[:count]).max())

    def words(self, ticks_per_ns: Fraction) -> list[int]:
        """Return its entries: ticks since the one before, octets. Rounding never adds up.

        Raises UsageError when a pause in it is longer than an entry can say.
        """
        ends = [round(stamp * MS * ticks_per_ns) for stamp in self.stamps_ms]
        words: list[int] = []
        for before, end, octets in zip([0, *ends], ends, self.octets, strict=False):
            if end - before > TICKS_MAX:
                most_ms = int(TICKS_MAX / ticks_per_ns / MS)
                raise UsageError(
                    f"{self.name} has a pause of {float((end - before) / ticks_per_ns) / MS:g} ms: give pauses of {most_ms} ms "
                    "at most"
                )
            words += [end - before, octets]
        return words


@validated
@dataclass(frozen=True)
class Red:
    """Random early detection: frames are dropped before the queue is full, the more, the longer it was of late.

    Source: Floyd and Jacobson, Random Early Detection Gateways for Congestion Avoidance, 1993.

    """

    least: int = key("least", Whole(0, FRAMES_MAX), "Frames of the mean queue from which some are dropped,")
    most: int = key("most", Whole(1, FRAMES_MAX), "and from which all are.")
    share: Number = key("share", SHARE, "Dropped just below `most`; from `least` on the share grows evenly.")
    weight: int = key("weight", Whole(0, 15), "With each frame the mean takes on 2^-weight of the difference.", 9)
    has_ecn: bool = key("ecn", Flag(), "Below `most`, frames that can be are marked and not dropped.", False)

    def __post_init__(self) -> None:
        check_fields(self, " of RED")
        if self.least >= self.most:
            raise UsageError(
                f"RED from {self.least} to {self.most} frames is out of range: give 0 to {FRAMES_MAX}, the lower first"
            )


RED = part(Red, "RED")


@validated
@dataclass(frozen=True)
class Codel:
    """CoDel drops frames that have waited too long, more and more of them, where all have for an interval.

    Source: RFC 8289, of which the defaults are; RFC 3168 (ECN).

    """

    target_ns: Number = key("target", WAIT, "That frames may wait.", Fraction(5_000_000), "5ms")
    interval_ns: Number = key("interval", WAIT, "For so long they may wait longer.", Fraction(100_000_000), "100ms")
    has_ecn: bool = key("ecn", Flag(), "Frames that can be are marked and not dropped.", False)

    def __post_init__(self) -> None:
        check_fields(self, " of CoDel")


CODEL = part(Codel, "CoDel")


@validated
@dataclass(frozen=True)
class Pie:
    """PIE drops a share of what comes, which grows and shrinks with the wait of frames.

    Source: RFC 8033, of which the defaults are; RFC 3168 (ECN).

    """

    target_ns: Number = key("target", PIE_WAIT, "That frames may wait.", Fraction(15_000_000), "15ms")
    update_ns: Number = key("update", WAIT, "So often the share changes.", Fraction(15_000_000), "15ms")
    burst_ns: Number = key("burst", BURST, "Nothing is dropped for so long at first.", Fraction(150_000_000), "150ms")
    has_ecn: bool = key("ecn", Flag(), "Below 10 %, frames that can be are marked and not dropped.", False)

    def __post_init__(self) -> None:
        check_fields(self, " of PIE")
        if self.updates > UPDATES_MAX:
            raise UsageError(f"a burst of {self.updates} updates is out of range: give {UPDATES_MAX} at most")

    @property
    def updates(self) -> int:
        """Updates that the burst lasts."""
        return round(exact(self.burst_ns) / exact(self.update_ns))


PIE = part(Pie, "PIE")


@validated
@dataclass(frozen=True)
class Queue:
    """A queue holds the frames that wait for the link."""

    frames: int | None = key(
        "frames", FRAMES, "That wait, background too, the one in service not.", None, "as the store has space for"
    )
    octets: int | None = key("octets", OCTETS, "Likewise, without FCS.", None, "no limit")
    red: Red | None = key("red", ByShape(NONE, RED), "Random early detection.", None)
    codel: Codel | None = key("codel", ByShape(NONE, CODEL), "Controlled delay.", None)
    pie: Pie | None = key("pie", ByShape(NONE, PIE), "Proportional integral controller enhanced.", None)

    def __post_init__(self) -> None:
        check_fields(self, " of a queue")
        given = [name for name in ("red", "codel", "pie") if getattr(self, name)]
        if len(given) > 1:
            raise UsageError(f"a queue has '{given[0]}' and '{given[1]}': leave one out")


QUEUE = part(Queue, "queue")
QUEUES = ByShape(
    Made(FRAMES, Queue, lambda one: one.frames, lambda one: one == Queue(one.frames) and one.frames is not None), QUEUE
)


@validated
@dataclass(frozen=True)
class Bucket:
    """A token bucket: the rate of a class beside that of the link. A frame longer than 1514 octets overdraws it."""

    rate_bps: Number = key("rate", RATE, "At which tokens come.")
    burst: int = key(
        "burst", OCTETS, "Octets, with `overhead`, that may pass at once: a frame of 1514 octets at least."
    )

    def __post_init__(self) -> None:
        check_fields(self, " of a token bucket")


BUCKET = part(Bucket, "bucket")


@validated
@dataclass(frozen=True)
class TrafficClass:
    """Frames that are treated alike. Classes have priority in their order, and a frame is of the first one that matches.

    Without a ``delay_ns`` (ns) frames have the least delay that the probe can; what is expected (b/s) is what comes at most, for
    the division of the probe's store. What is lost late (``is_lost_late``) is lost after the queue; an ``overhead`` of 24 is
    preamble, FCS and gap, 0 counts what a capture shows, -10 what Mahimahi does; None: 24, with a trace -10.
    """

    name: str = keys({"name": Key(NAME, "For people: in tables and reports.", is_needed=True)}, REST)
    match: Expression | str | None = key(
        "match", MATCH, "Which frames. One class may have none: what no other matches.", None
    )
    discard: bool = key("discard", Flag(), "All frames are dropped.", False)
    queue: Queue = key(
        "queue", QUEUES, "What waits for the link; a number is of frames.", Queue(), "what the store holds"
    )
    weight: int = key("weight", Whole(1, 255), "Frames in a row, of weighted service.", 1)
    bucket: Bucket | None = key(
        "bucket", ByShape(NONE, BUCKET), "Token bucket: a rate of the class's own.", None, "none"
    )
    overhead: int | None = key(
        "overhead",
        WordOr(USUAL, Whole(OVERHEAD_MIN, OVERHEAD_MAX)),
        "Octets of each frame on the link beside those of a capture.",
        None,
        f"usual: {OVERHEAD}; with `trace` {TRACE_OVERHEAD}",
    )
    delay_ns: Number | None = key(
        "delay", WordOr(LEAST, DELAY), "From the end of its time on the link.", None, "the least of the probe"
    )
    jitter: Jitter | None = key(
        "jitter", ByShape(NONE, JITTER), "How delays differ; frames of a class keep their order.", None, "none"
    )
    loss: Loss | None = key(
        "loss", LOSS, "A share, each frame by itself; or the model of Gilbert and Elliott.", None, "0%"
    )
    pattern: Pattern | None = keys(
        {
            "loss_pattern": Key(
                PATTERN, "1: this frame is lost; the first is the first of the class, and they repeat."
            ),
            "loss_list": Key(LOST, "In the place of `loss_pattern`: numbers of lost frames, from 0."),
        },
        None,
    )
    is_lost_late: bool = key("loss_late", Flag(), "What is lost takes space in the queue and time of the link.", False)
    duplicate: Number = key("duplicate", SHARE, "Share of the frames that leave twice, one right after the other.", 0)
    corrupt: Number = key("corrupt", SHARE, "Share of the frames that leave with one wrong bit.", 0)
    is_mended: bool = key("mended", Flag(), "The FCS of a corrupted frame is good.", False)
    reorder: Reorder | None = key(
        "reorder", ByShape(NONE, REORDER), "Frames that are held back, so that others overtake them.", None, "none"
    )
    background: Background | None = key(
        "background", ByShape(NONE, BACKGROUND), "Frames that nobody sends: they take queue and link.", None, "none"
    )
    expected_bps: Number | None = key(
        "expected",
        WordOr(NONE, RATE),
        "What comes at most; the store is divided by it.",
        None,
        "what link and bucket let pass",
    )
    seed: int | None = key("seed", SEED, "Of its draws.", None, "from that of the network")

    def __post_init__(self) -> None:
        if isinstance(self.match, str):
            object.__setattr__(self, "match", match_of(self.match))
        check_fields(self, " of a class")
        if not self.name.strip():
            raise UsageError("a class needs a name: give one")
        if self.bucket and self.bucket.burst < LONGEST_USUAL + self.around:
            raise UsageError(
                f"a burst of {self.bucket.burst} octets lets no frame of {LONGEST_USUAL} pass: "
                f"give {LONGEST_USUAL + self.around} or more"
            )

    @property
    def around(self) -> int:
        """Octets of each frame on the link beside its own; of a link with a trace `Direction.numbered` has them."""
        return OVERHEAD if self.overhead is None else self.overhead

    @property
    def expression(self) -> Expression | None:
        """Expression that it matches; it was read when the class was made, also where its text was given."""
        assert not isinstance(self.match, str)
        return self.match

    @property
    def has_frames(self) -> bool:
        """Whether frames can be of it; else it has a background alone."""
        return self.match_text != NOTHING

    @property
    def match_text(self) -> str | None:
        """Expression that it matches, as it is written."""
        expression = self.expression
        return None if expression is None else expression.text


@validated
@dataclass(frozen=True)
class Direction:
    """From one port to the other: a link with a rate (b/s) or a bandwidth trace, and up to 7 classes that match, and one without.

    Without a rate service takes no time. What the class without a match says holds for all the rest.
    """

    rate_bps: Number | None = key(
        "rate", WordOr(NONE, RATE), "Of the link: frames with their `overhead`.", None, "none: nothing waits"
    )
    service: str = key(
        "service", OneOf(SERVICES), "`strict`: the first class that waits; `weighted`: in turn.", "strict"
    )
    classes: Sequence[TrafficClass] = ()
    trace: BandwidthTrace | None = None
    link: str = key("link", OneOf((UP, DOWN)), "`down`: the port that it leaves by has no carrier; in a change.", UP)
    said: Any = field(default=None, compare=False, repr=False)  # Where a document has it: its `LiveDirection`.

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        check_fields(self, " of a link")
        if self.rate_bps is not None and self.trace:
            raise UsageError("a link has a rate or a trace: leave out one")
        names = [one.name for one in self.classes]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"{names.count(name)} classes are called '{name}': give each a name of its own")
        rest = [one.name for one in self.classes if one.match is None]
        if len(rest) > 1:
            raise UsageError(f"classes '{rest[0]}' and '{rest[1]}' match nothing: give 'match' to all but one")
        if len(names) - len(rest) > CLASSES - 1:
            raise UsageError(
                f"{len(names) - len(rest)} classes that match are out of range: give {CLASSES - 1} at most"
            )

    @cached_property
    def numbered(self) -> dict[int, TrafficClass]:
        """Its classes by the number that the probe has for them; the last is that of frames that no other matches."""
        found = dict(enumerate(one for one in self.classes if one.match is not None))
        rest = [one for one in self.classes if one.match is None]
        found |= {UNMATCHED_CLASS: rest[0] if rest else TrafficClass()}
        if not self.trace:
            return found
        return {
            number: replace(one, overhead=TRACE_OVERHEAD) if one.overhead is None else one
            for number, one in found.items()
        }

    @property
    def waits(self) -> bool:
        """Whether frames may have to wait for the link."""
        return self.rate_bps is not None or self.trace is not None


@validated
@dataclass(frozen=True)
class Change:
    """A change holds from a time on (``at_ns``, ns since the start); frames that are in the network keep their place.

    ``there`` and ``back`` are the whole direction as it is then; None: as before.
    """

    at_ns: Number = key("at", AT, "Since the start.")
    there: Direction | None = None
    back: Direction | None = None

    def __post_init__(self) -> None:
        check_fields(self, " of a change")


@validated
@dataclass(frozen=True)
class Network:
    """A network between port 0 and port 1: ``there``, from port 0 to port 1, and ``back``; changes by their times."""

    there: Direction = field(default_factory=Direction)
    back: Direction = field(default_factory=Direction)
    changes: Sequence[Change] = ()
    seed: int = key("seed", SEED, "Of all draws: the same seed gives the same frames the same fates.", 1)
    name: str = key("name", NAME, "For people.", "network", "that of the file")
    reserved: str = key(
        "reserved",
        OneOf((EATEN, FORWARDED)),
        "Frames that no bridge forwards: PAUSE, LACP, STP, LLDP and the like.",
        EATEN,
    )
    about: str = keys({"about": Key(NAME, "For people: what it is, where its figures come from.")}, "")

    def __post_init__(self) -> None:
        object.__setattr__(self, "changes", tuple(self.changes))
        check_fields(self, " of a network")
        if len(self.changes) > CHANGES_MAX:
            raise UsageError(f"{len(self.changes)} changes are out of range: give {CHANGES_MAX} at most")
        times = [exact(one.at_ns) for one in self.changes]
        if any(low >= high for low, high in pairwise(times)):
            raise UsageError("changes follow each other in time: sort them, and put what changes at one time together")
        for way in DIRECTIONS:
            check_states(self.states(way), way)

    def states(self, way: str) -> list[Direction]:
        """Return a direction at the start and from each change on."""
        OneOf(tuple(DIRECTIONS)).check(way, "direction")
        found: list[Direction] = [getattr(self, way)]
        for change in self.changes:
            found.append(getattr(change, way) or found[-1])
        return found

    @property
    def moves_link(self) -> bool:
        """Whether a change takes a link down or up."""
        return any(len({one.link for one in self.states(way)}) > 1 for way in DIRECTIONS)

    def at(self, state: int) -> "Network":
        """Return the network as it is from a change on, 0 being the start, without its changes."""
        Whole(0, len(self.changes)).check(state, "state")
        now = {way: getattr(self, way) for way in DIRECTIONS}
        for change in self.changes[:state]:
            now |= {way: one for way in DIRECTIONS if (one := getattr(change, way))}
        return replace(self, **now, changes=())


def check_states(states: Sequence[Direction], way: str) -> None:
    """Raise UsageError where a direction changes in a way that the probe can't do while it runs; the first is as it began."""
    different = list({id(one): one for one in states}.values())
    for one in different[1:]:
        _check_change(different[0], one, way)
    _check_reorder(different, way)


# # #


def _check_change(first: Direction, later: Direction, way: str) -> None:
    """Raise UsageError where a change names what the probe can't change while it runs."""
    named = [[(one.name, one.match_text) for one in direction.numbered.values()] for direction in (first, later)]
    if named[0] != named[1]:
        raise UsageError(
            f"a change of '{way}' has other classes: keep their names, matches and order, and change what they do"
        )
    if first.trace != later.trace:
        raise UsageError(f"a change of '{way}' has another bandwidth trace: a trace stays from the start to the end")
    seeds = [[one.seed for one in direction.numbered.values()] for direction in (first, later)]
    if seeds[0] != seeds[1]:
        raise UsageError(
            f"a change of '{way}' has other seeds: draws go on from where they are, leave the seeds as they are"
        )


def _check_reorder(states: Sequence[Direction], way: str) -> None:
    """Raise UsageError where several classes hold frames back: the octets of those lie in one ring, as they came."""
    classes = [one for state in states for one in state.numbered.values()]
    names = list(dict.fromkeys(one.name for one in classes if one.reorder and exact(one.reorder.share)))
    if len(names) > 1:
        raise UsageError(
            f"classes '{names[0]}' and '{names[1]}' of '{way}' have 'reorder', and one class of a direction can hold frames "
            "back, always the same: leave it out of all others, in all changes too"
        )
