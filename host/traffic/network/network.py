# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A degraded network between two ports, as plain data: directions, their classes, and what changes when."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import GIANT_LENGTH, LINE_RATE_BPS, MIN_LENGTH, OVERHEAD
from liteprobe.cores.formats.emulate import CLASSES, DELAY_ENTRIES, PATTERN_WORDS, UNMATCHED_CLASS
from liteprobe.cores.formats.emulate import BackgroundKind as Kind
from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.intervals import Number, exact

JITTERS = ("uniform", "normal", "pareto", "paretonormal", "table")
PARETO_SHAPE = 3
PARETO_MEAN, PARETO_SCALE = 1.5, 4 / 3
SPREADS_MOST = 32767 / 8192  # Where netem's tables end.
PERCENT = 100


def check_share(share: Number, what: str) -> None:
    """Raise UsageError unless ``share`` lies from 0 to 1."""
    if not 0 <= exact(share) <= 1:
        raise UsageError(f"{what} of {float(share) * PERCENT:g} % is out of range: give 0 % to 100 %")


@dataclass(frozen=True)
class Jitter:
    """How the delays of the frames of a class differ. Frames of a class keep their order all the same.

    Source: iproute2, netem/pareto.c and paretonormal.c (after NIST Net).

    Parameters
    ----------
    kind : str
        ``uniform``, ``normal``, ``pareto``, ``paretonormal`` or ``table``. The middle three are those of netem.
    spread_ns : number
        Half the width of the uniform distribution, the standard deviation of the others (netem scales its Pareto's alike).
    table_ns : tuple of number
        Of ``table``: what comes on top of the delay, each entry for an equal share of the frames; 1 to 1024 entries.
    correlation : number
        Share of the frames, from 0 to 1, that have the delay of the one before: the correlation of two frames n apart is its
        n-th power.
    """

    kind: str
    spread_ns: Number = 0
    table_ns: tuple[Number, ...] = ()
    correlation: Number = 0

    def __post_init__(self) -> None:
        if self.kind not in JITTERS:
            raise UsageError(f"no jitter is called '{self.kind}': give one of {', '.join(JITTERS)}")
        check_share(self.correlation, "a correlation of delays")
        if self.kind == "table":
            if not 1 <= len(self.table_ns) <= DELAY_ENTRIES:
                raise UsageError(f"a table of {len(self.table_ns)} delays is out of range: give 1 to {DELAY_ENTRIES}")
            if min(exact(one) for one in self.table_ns) < 0:
                raise UsageError("a table of delays has one below 0: give what comes on top of the delay, from 0")
        elif self.table_ns:
            raise UsageError(f"jitter '{self.kind}' has no table: leave it out, or give 'table'")
        elif exact(self.spread_ns) <= 0:
            raise UsageError(f"a spread of {self.spread_ns} ns is out of range: give more than 0")

    def quantiles_ns(self) -> list[Fraction]:
        """Return what each quantile adds to the delay (ns, below 0 where it takes away), ascending."""
        if self.kind == "table":
            table = sorted(exact(one) for one in self.table_ns)
            return [table[number * len(table) // DELAY_ENTRIES] for number in range(DELAY_ENTRIES)]
        spread = exact(self.spread_ns)
        middles = [Fraction(2 * number + 1, 2 * DELAY_ENTRIES) for number in range(DELAY_ENTRIES)]
        return [spread * spreads_of(self.kind, middle) for middle in middles]


def spreads_of(kind: str, share: Fraction) -> Fraction:
    """Return the quantile of a distribution of mean 0 and spread 1, below which lies ``share`` of it."""
    if kind == "uniform":
        return 2 * share - 1
    normal = NormalDist().inv_cdf(float(share))
    pareto = ((1 - float(share)) ** (-1 / PARETO_SHAPE) - PARETO_MEAN) * PARETO_SCALE
    pareto = min(pareto, SPREADS_MOST)
    value = {"normal": normal, "pareto": pareto, "paretonormal": (normal + 3 * pareto) / 4}[kind]
    return Fraction(value)


@dataclass(frozen=True)
class Reorder:
    """Frames that are held back, so that later ones overtake them.

    The extent is a time; the extent in frames follows from it: as many overtake as come within it. What is held back keeps its
    order among itself, over all classes of the direction.

    Parameters
    ----------
    share : number
        Of the frames, from 0 to 1.
    extent_ns : number
        How long they are held back, on top of their delay.
    """

    share: Number
    extent_ns: Number

    def __post_init__(self) -> None:
        check_share(self.share, "a share of frames that are held back")
        if exact(self.extent_ns) <= 0:
            raise UsageError(
                f"an extent of {self.extent_ns} ns is out of range: give more than 0, the time to hold back"
            )


BITS = 32
NUMBER_MAX = 2**32 - 1


@dataclass(frozen=True)
class Bernoulli:
    """Each frame is lost by itself.

    Parameters
    ----------
    share : number
        Of the frames, from 0 to 1.
    """

    share: Number

    def __post_init__(self) -> None:
        check_share(self.share, "a loss")


@dataclass(frozen=True)
class GilbertElliott:
    """Losses come in bursts: the path is in a good or in a bad state, and goes over with each frame.

    With the defaults of ``h`` and ``k`` it is Gilbert's model: what comes in the bad state is lost, all else isn't. The loss is
    (r (1-k) + p (1-h)) / (p + r), a stay in the bad state has a mean of 1/r frames.

    Source: Gilbert, Capacity of a Burst-Noise Channel, 1960; Elliott, Estimates of Error Rates for Codes on Burst-Noise Channels,
    1963; in the letters of Salsano, Ludovici and Ordine, 2009, which netem has.

    Parameters
    ----------
    p, r : number
        Probability with each frame of going over to the bad state, and back, from 0 to 1.
    h, k : number
        Share of the frames that the bad, and the good state let pass.
    """

    p: Number
    r: Number
    h: Number = 0
    k: Number = 1

    def __post_init__(self) -> None:
        for name in ("p", "r", "h", "k"):
            check_share(getattr(self, name), f"'{name}'")
        if exact(self.p) and not exact(self.r):
            raise UsageError("with 'r' of 0 % the bad state never ends: give more, or 'loss' as one share")


@dataclass(frozen=True)
class LossPattern:
    """Frames are lost as bits say: the first bit is the first frame of the class; behind the last the pattern repeats.

    Parameters
    ----------
    bits : str
        ``1``: lost.
    """

    bits: str

    def __post_init__(self) -> None:
        if not re.fullmatch("[01]+", self.bits):
            raise UsageError(f"'{self.bits[:40]}' is not a pattern of losses: give 0 and 1, like 00010")
        if len(self.bits) > PATTERN_WORDS * BITS:
            raise UsageError(
                f"a pattern of {len(self.bits)} frames is out of range: give {PATTERN_WORDS * BITS} at most; it repeats"
            )

    @property
    def count(self) -> int:
        """Frames until it repeats."""
        return len(self.bits)

    def words(self) -> tuple[int, ...]:
        """Return its words of the pattern memory."""
        parts = [self.bits[first : first + BITS] for first in range(0, len(self.bits), BITS)]
        return tuple(int(part[::-1], 2) for part in parts)


@dataclass(frozen=True)
class LossList:
    """These frames of the class are lost, once.

    Parameters
    ----------
    numbers : sequence of int
        From 0, ascending.
    """

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


BACKGROUNDS = {
    "constant": Kind.CONSTANT,
    "exponential": Kind.EXPONENTIAL,
    "on-off": Kind.ON_OFF,
    "random on-off": Kind.RANDOM_ON_OFF,
    "pattern": Kind.PATTERN,
}
BURSTS = ("on-off", "random on-off")
ENTRIES_MAX = PATTERN_WORDS // 2
BURST_MAX = 2**32 - 1


@dataclass(frozen=True)
class Background:
    """Frames of the background of a class.

    Parameters
    ----------
    kind : str
        ``constant`` (at each interval), ``exponential`` (a Poisson process), ``on-off`` (bursts of a fixed number of frames, then a
        pause), ``random on-off`` (bursts of a geometric number, exponential pauses) or ``pattern``.
    length : int
        Of each frame, octets without FCS.
    rate_bps, share, interval_ns : number or None
        One of them, but for ``pattern``: the rate of the frames with the class's overhead, which may be above that of the link; a
        share of the link's rate; or from frame to frame. Of bursts it is that within a burst.
    burst : number
        Of bursts: frames of one, or their mean.
    pause_ns : number
        Of bursts: from the last frame of one to the first of the next, or its mean.
    entries : tuple of (number, int)
        Of ``pattern``: time since the frame before (ns), length; they repeat.
    phase_ns : number
        From the start to the first frame; exponential ones draw it.
    """

    kind: str
    length: int = 1514
    rate_bps: Number | None = None
    share: Number | None = None
    interval_ns: Number | None = None
    burst: Number = 0
    pause_ns: Number = 0
    entries: tuple[tuple[Number, int], ...] = ()
    phase_ns: Number = 0

    def __post_init__(self) -> None:
        if self.kind not in BACKGROUNDS:
            raise UsageError(f"no background is called '{self.kind}': give one of {', '.join(BACKGROUNDS)}")
        for length in (self.length, *(length for _, length in self.entries)):
            if not MIN_LENGTH <= length <= GIANT_LENGTH:
                raise UsageError(
                    f"background frames of {length} octets are out of range: give {MIN_LENGTH} to {GIANT_LENGTH}"
                )
        given = [name for name in ("rate_bps", "share", "interval_ns") if getattr(self, name) is not None]
        self._check_pattern(given) if self.kind == "pattern" else self._check_pace(given)
        if exact(self.phase_ns) < 0 or exact(self.pause_ns) < 0:
            raise UsageError("a time of the background is below 0: give 0 or more")
        if self.kind == "exponential" and exact(self.phase_ns):
            raise UsageError("the first frame of an exponential background is drawn, too: leave out 'phase'")

    def _check_pattern(self, given: list[str]) -> None:
        if given:
            raise UsageError("a pattern of the background has its own times: leave out rate, share and interval")
        if not 1 <= len(self.entries) <= ENTRIES_MAX:
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
        if exact(getattr(self, given[0])) <= 0:
            raise UsageError(f"the {given[0].split('_')[0]} of a background is out of range: give more than 0")
        if self.kind not in BURSTS:
            if exact(self.burst) or exact(self.pause_ns):
                raise UsageError(
                    f"a background '{self.kind}' has no bursts: leave out burst and pause, or give 'on-off'"
                )
            return
        burst = exact(self.burst)
        if not 1 <= burst <= BURST_MAX or (self.kind == "on-off" and burst.denominator != 1):
            raise UsageError(f"bursts of {float(burst):g} background frames are out of range: give 1 to {BURST_MAX}")
        if not exact(self.pause_ns):
            raise UsageError("bursts of the background need a pause: give 'pause', or 'constant' for none")

    def ticks_between(self, rate_bps: Fraction | None, overhead: int, ticks_per_ns: Fraction) -> Fraction:
        """Return the (mean) ticks from frame to frame, within a burst, of a link of ``rate_bps``.

        Raises
        ------
        UsageError
            When it is a share of a link that has no rate.
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
        return 8 * (self.length + overhead) * 10**9 * ticks_per_ns / rate


OPPORTUNITY = 1500  # Octets that a line stands for.
MS = 10**6
STAMP_MAX = 2**40  # 34 years.
TICKS_MAX = 2**32 - 1
OPPORTUNITY_MAX = 2**32 - 1


@dataclass(frozen=True)
class BandwidthTrace:
    """Opportunities to deliver octets; what isn't used of one is lost, and the trace repeats when its last one has passed.

    Parameters
    ----------
    stamps_ms : tuple of int
        Of the opportunities, ascending.
    octets : tuple of int
        Of each.
    name : str
        Of the file.
    """

    stamps_ms: tuple[int, ...]
    octets: tuple[int, ...]
    name: str = "trace"

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
        """Return the trace of a file in the format of Mahimahi: a stamp in ms a line, for 1500 octets each.

        Raises
        ------
        UsageError
            With its line, where the file isn't one.
        """
        try:
            with path.open(encoding="utf-8") as file:
                return cls.from_lines(file, str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"can't read {path} ({error}): name a trace of Mahimahi, a stamp in ms a line") from None

    @classmethod
    def from_lines(cls, lines: Iterable[str], name: str = "trace") -> "BandwidthTrace":
        """Return the trace of lines; the same stamp on several lines is one opportunity."""
        found: dict[int, int] = {}
        last = 0
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text.isascii() or not text.isdigit():
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

        Raises
        ------
        UsageError
            When a pause in it is longer than an entry can say.
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


DIRECTIONS = ("there", "back")
SERVICES = ("strict", "weighted")
REST = "rest"
FRAMES_MAX = 2**16 - 1
OCTETS_MAX = 2**32 - 2  # One more is for no limit.
OVERHEAD_MAX = 255
WEIGHT_MAX = 255
RED_WEIGHT_MAX = 15
SEED_MAX = 2**64 - 1
CHANGES_MAX = 10_000
LONGEST_USUAL = 1514  # Octets of the longest frame without a tag: those that a burst must let pass.


@dataclass(frozen=True)
class Red:
    """Random early detection: frames are dropped before the queue is full, the more, the longer it was of late.

    Source: Floyd and Jacobson, Random Early Detection Gateways for Congestion Avoidance, 1993.

    Parameters
    ----------
    least, most : int
        Frames of the mean queue from which some, and from which all are dropped.
    share : number
        That is dropped just below ``most``, from 0 to 1.
    weight : int
        With each frame the mean takes on 2^-weight of the difference.
    """

    least: int
    most: int
    share: Number
    weight: int = 9

    def __post_init__(self) -> None:
        if not 0 <= self.least < self.most <= FRAMES_MAX:
            raise UsageError(
                f"RED from {self.least} to {self.most} frames is out of range: give 0 to {FRAMES_MAX}, the lower first"
            )
        if not 0 <= self.weight <= RED_WEIGHT_MAX:
            raise UsageError(f"a RED weight of {self.weight} is out of range: give 0 to {RED_WEIGHT_MAX}")
        check_share(self.share, "a RED share")


@dataclass(frozen=True)
class Queue:
    """What waits for the link, without the frame in service.

    Parameters
    ----------
    frames : int or None
        At most, background among them; None: as many as the probe's store holds.
    octets : int or None
        At most, without FCS; None: no limit.
    red : Red or None
    """

    frames: int | None = None
    octets: int | None = None
    red: Red | None = None

    def __post_init__(self) -> None:
        if self.frames is not None and not 1 <= self.frames <= FRAMES_MAX:
            raise UsageError(f"a queue of {self.frames} frames is out of range: give 1 to {FRAMES_MAX}")
        if self.octets is not None and not MIN_LENGTH <= self.octets <= OCTETS_MAX:
            raise UsageError(f"a queue of {self.octets} octets is out of range: give {MIN_LENGTH} to {OCTETS_MAX}")


@dataclass(frozen=True)
class Bucket:
    """A token bucket: the rate of a class beside that of the link.

    Parameters
    ----------
    rate_bps : number
    burst : int
        Octets with overhead that may pass at once: at least a frame of 1514 octets. A longer frame overdraws the bucket.
    """

    rate_bps: Number
    burst: int

    def __post_init__(self) -> None:
        check_rate(self.rate_bps, "a token bucket")


@dataclass(frozen=True)
class TrafficClass:
    """Frames that are treated alike. Classes have priority in their order, and a frame is of the first one that matches.

    Parameters
    ----------
    name : str
    match : str or None
        A filter expression, as of `liteprobe capture`; None: what no other class matches. One class of a direction has none.
    discard : bool
        All its frames are dropped at once.
    queue : Queue
    weight : int
        Frames in a row, of weighted service.
    bucket : Bucket or None
    overhead : int
        Octets that each frame takes on the link beside its own length without FCS: 24 are preamble, FCS and gap; 0 counts what a
        capture shows.
    delay_ns : number or None
        From the end of its service on the link; None: the least that the probe can.
    jitter : Jitter or None
    loss : Bernoulli, GilbertElliott or None
    pattern : LossPattern, LossList or None
        What is lost, too.
    is_lost_late : bool
        What is lost takes space in the queue and time of the link, and is lost behind it.
    duplicate, corrupt : number
        Shares of the frames that leave twice; that leave with one wrong bit.
    is_mended : bool
        The FCS of a corrupted frame is good.
    reorder : Reorder or None
    background : Background or None
    expected_bps : number or None
        What comes of it at most, for the division of the probe's store; None: as much as its link or bucket lets pass.
    seed : int or None
        Of its draws; None: from that of the network.
    """

    name: str = REST
    match: str | None = None
    discard: bool = False
    queue: Queue = Queue()
    weight: int = 1
    bucket: Bucket | None = None
    overhead: int = OVERHEAD
    delay_ns: Number | None = None
    jitter: Jitter | None = None
    loss: Loss | None = None
    pattern: Pattern | None = None
    is_lost_late: bool = False
    duplicate: Number = 0
    corrupt: Number = 0
    is_mended: bool = False
    reorder: Reorder | None = None
    background: Background | None = None
    expected_bps: Number | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise UsageError("a class needs a name: give one")
        if not 1 <= self.weight <= WEIGHT_MAX:
            raise UsageError(f"a weight of {self.weight} is out of range: give 1 to {WEIGHT_MAX} frames in a row")
        if not 0 <= self.overhead <= OVERHEAD_MAX:
            raise UsageError(f"an overhead of {self.overhead} octets is out of range: give 0 to {OVERHEAD_MAX}")
        if self.delay_ns is not None and exact(self.delay_ns) < 0:
            raise UsageError(f"a delay of {self.delay_ns} ns is out of range: give 0 or more")
        check_share(self.duplicate, "a share of duplicates")
        check_share(self.corrupt, "a share of corrupted frames")
        if self.seed is not None:
            check_seed(self.seed)
        if self.expected_bps is not None:
            check_rate(self.expected_bps, "what is expected")
        if self.bucket and self.bucket.burst < LONGEST_USUAL + self.overhead:
            raise UsageError(
                f"a burst of {self.bucket.burst} octets lets no frame of {LONGEST_USUAL} pass: "
                f"give {LONGEST_USUAL + self.overhead} or more"
            )


@dataclass(frozen=True)
class Direction:
    """From one port to the other.

    Parameters
    ----------
    rate_bps : number or None
        Of the link, overheads counted; None: service takes no time.
    service : str
        ``strict``: the first class with something that waits; ``weighted``: in turn, so many frames each.
    classes : sequence of TrafficClass
        Up to 7 that match, in the order of their priority, and one without; what that one says holds for all the rest.
    trace : BandwidthTrace or None
        In the place of a rate.
    """

    rate_bps: Number | None = None
    service: str = "strict"
    classes: Sequence[TrafficClass] = ()
    trace: BandwidthTrace | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        if self.service not in SERVICES:
            raise UsageError(f"no service is called '{self.service}': give one of {', '.join(SERVICES)}")
        if self.rate_bps is not None:
            check_rate(self.rate_bps, "a link")
            if self.trace:
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

    @property
    def numbered(self) -> dict[int, TrafficClass]:
        """Its classes by the number that the probe has for them; the last is that of frames that no other matches."""
        found = dict(enumerate(one for one in self.classes if one.match is not None))
        rest = [one for one in self.classes if one.match is None]
        return found | {UNMATCHED_CLASS: rest[0] if rest else TrafficClass()}

    @property
    def waits(self) -> bool:
        """Whether frames may have to wait for the link."""
        return self.rate_bps is not None or self.trace is not None


@dataclass(frozen=True)
class Change:
    """What holds from a time on; frames that are in the network keep their place.

    Parameters
    ----------
    at_ns : number
        Since the start.
    there, back : Direction or None
        The whole direction as it is then; None: as before.
    """

    at_ns: Number
    there: Direction | None = None
    back: Direction | None = None

    def __post_init__(self) -> None:
        if exact(self.at_ns) <= 0:
            raise UsageError(f"a change at {self.at_ns} ns is out of range: give a time after the start")


@dataclass(frozen=True)
class Network:
    """A network between port 0 and port 1.

    Parameters
    ----------
    there, back : Direction
        From port 0 to port 1, and back.
    changes : sequence of Change
        By their times.
    seed : int
        Of all draws: the same network with the same seed gives the same frames the same fates.
    name, about : str
        For people.
    """

    there: Direction = field(default_factory=Direction)
    back: Direction = field(default_factory=Direction)
    changes: Sequence[Change] = ()
    seed: int = 1
    name: str = "network"
    about: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "changes", tuple(self.changes))
        check_seed(self.seed)
        if len(self.changes) > CHANGES_MAX:
            raise UsageError(f"{len(self.changes)} changes are out of range: give {CHANGES_MAX} at most")
        times = [exact(one.at_ns) for one in self.changes]
        if any(low >= high for low, high in pairwise(times)):
            raise UsageError("changes follow each other in time: sort them, and put what changes at one time together")
        for way in DIRECTIONS:
            for one in self.states(way)[1:]:
                _check_change(self.states(way)[0], one, way)
            _check_reorder(self.states(way), way)

    def states(self, way: str) -> list[Direction]:
        """Return a direction at the start and from each change on."""
        found: list[Direction] = [getattr(self, way)]
        for change in self.changes:
            found.append(getattr(change, way) or found[-1])
        return found

    def at(self, state: int) -> "Network":
        """Return the network as it is from a change on, 0 being the start, without its changes."""
        return replace(self, there=self.states("there")[state], back=self.states("back")[state], changes=())


# # #


def check_rate(rate_bps: Number, what: str) -> None:
    """Raise UsageError unless a rate is above 0 and not above the line's."""
    if not 0 < exact(rate_bps) <= LINE_RATE_BPS:
        raise UsageError(
            f"{what} of {rate_bps} b/s is out of range: give more than 0, up to {LINE_RATE_BPS // 10**9} Gb/s"
        )


def check_seed(seed: int) -> None:
    """Raise UsageError unless a seed is one."""
    if not 0 <= seed <= SEED_MAX:
        raise UsageError(f"a seed of {seed} is out of range: give 0 to {SEED_MAX}")


def _check_change(first: Direction, later: Direction, way: str) -> None:
    """Raise UsageError where a change names what the probe can't change while it runs."""
    named = [[(one.name, one.match) for one in direction.numbered.values()] for direction in (first, later)]
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
