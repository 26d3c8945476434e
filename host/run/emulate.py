# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs an emulated network: settings, start of both directions in one tick, looks, changes at their ticks, stop."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import TICK_NS, TransmitState
from liteprobe.cores.formats.emulate import (
    BANK_WORDS,
    COUNTER_WORDS,
    DELAY_ENTRIES,
    HISTOGRAM_BINS,
    HISTOGRAM_WORD,
    NO_LIMIT,
    RULES,
    RULES_MOST,
    UNMATCHED_CLASS,
    ClassCounter,
    ClassGauge,
    Feature,
)
from liteprobe.cores.formats.emulate import CLASSES as CLASSES_MOST
from liteprobe.cores.formats.probe import EyeState
from liteprobe.host.analysis.columns import MEGA, Column, Columns, time_text
from liteprobe.host.analysis.result import PartFigures, Result, of_cells, ratio
from liteprobe.host.base.document import Entries
from liteprobe.host.base.errors import ProbeError, UsageError, nearest
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.base.units import exact
from liteprobe.host.base.validate import validated
from liteprobe.host.device.bitstreams import how_to_get
from liteprobe.host.device.eye import memory_eye
from liteprobe.host.device.link.sim_stations import Stations, StationsReport
from liteprobe.host.device.phy import Carriers
from liteprobe.host.device.registers import Registers
from liteprobe.host.measure.percentiles import Bounds, Cells, Measured
from liteprobe.host.packets.filter.rules import ClassRules, class_rules
from liteprobe.host.run.engine import IN_BAND_PORT, ErrorWording, PortEnd, PortRun, RunDevice, check_link
from liteprobe.host.run.port import ProbePort
from liteprobe.host.traffic.network.described import MARK, TEXT_WORD, Described, described, description_of
from liteprobe.host.traffic.network.document import (
    LiveDirection,
    change_of,
    network_document,
    set_by_words,
)
from liteprobe.host.traffic.network.network import (
    CHANGES_MAX,
    DIRECTIONS,
    DOWN,
    FORWARDED,
    REST,
    Change,
    Direction,
    Network,
    check_states,
)
from liteprobe.host.traffic.network.store import Limits, size_text
from liteprobe.host.traffic.network.words import (
    SETTINGS_WORDS,
    DirectionMaker,
    DirectionWords,
    LiveWords,
    makers_of,
    switch_ticks,
    words_of,
)

DELAYS_WORD = 2 * BANK_WORDS
PATTERNS_WORD = DELAYS_WORD + DELAY_ENTRIES
EVENTS = ("damaged", "overflows", "management", "reserved")
BANK_BIT, TO_COME = 1, 2  # Of ``bank``: which holds, whether a switch is to come.
SPARE_TICKS = 2500  # From the writing of a switch to its tick, beside what the link takes.
TAKE_LOOKS = 1000  # Until a switch whose tick has passed must have taken place.
PORTS = len(DIRECTIONS)
LOOK_S = 1.0
LOOK_MOST_S = 10.0  # Counters of octets come round in 34 s.
SAMPLES_MOST = 400
SETS_SHOWN = 8
WRAP = 1 << 32
#: Counters of octets, and of the frames that they are of.
OCTETS = {ClassCounter.ARRIVED_OCTETS: ClassCounter.ARRIVED, ClassCounter.SENT_OCTETS: ClassCounter.SENT}
OCTETS_OF: dict[int, int] = {frames: octets for octets, frames in OCTETS.items()}
#: Words of a class in the order in which they are read: delays and lateness are of frames that have left, none has left that waits,
#: and what waits or has left has come. A last word that was read before shows that nothing was counted in it between the two, so
#: what was read between goes with it.
READS: tuple[tuple[int, ...], ...] = (
    (ClassCounter.LATE, ClassCounter.WAITED, *range(HISTOGRAM_WORD, COUNTER_WORDS)),
    (
        *range(ClassCounter.DISCARDED, ClassCounter.NO_STORE + 1),
        *(ClassCounter.BACKGROUND_DROPPED, ClassCounter.MARKED),
        *(ClassCounter.SENT, ClassCounter.SENT_OCTETS, ClassCounter.SENT),
    ),
    (
        ClassGauge.DELAY_LEAST,
        ClassGauge.DELAY_MOST,
        ClassGauge.LATE_MOST,
        *(ClassGauge.QUEUE_FRAMES, ClassGauge.QUEUE_OCTETS, ClassGauge.QUEUE_FRAMES),
    ),
    (
        *range(ClassCounter.DUPLICATED, ClassCounter.BACKGROUND + 1),
        ClassGauge.QUEUE_MOST,
        *(ClassCounter.ARRIVED, ClassCounter.ARRIVED_OCTETS, ClassCounter.ARRIVED),
    ),
)
READ_TRIES = 8
DELAYS_OF_CLASS = {"least": "Least", "mean": "Mean", "p50": "p50", "p99": "p99", "p99_9": "p99.9", "most": "Greatest"}
#: Counters of frames that don't leave, in the order of tables.
DROPS = ("discarded", "lost", "full", "early", "no_store")
RATES = ("arrived_bps", "sent_bps")


@dataclass(frozen=True)
class ClassCounts:
    """Holds the counters of a class since the start."""

    arrived: int  # Frames that came.
    arrived_octets: int | None  # Without FCS; None: too long a time passed without a look to be sure.
    sent: int  # Those whose departure is settled, duplicates too; others wait or were dropped.
    sent_octets: int | None  # Likewise.
    discarded: int  # Dropped by the class.
    lost: int  # By loss.
    full: int  # By its full queue.
    early: int  # By RED, CoDel or PIE.
    no_store: int  # For want of the probe's memory.
    duplicated: int
    corrupted: int
    held_back: int
    background: int  # Frames of the background.
    background_dropped: int  # Of these.
    late: int  # Left after their tick, because the probe wasn't ready.
    waited: int  # Left after their tick, because the line was busy.
    marked: int  # By ECN, of those that are sent.

    @property
    def dropped(self) -> int:
        """Frames that don't leave."""
        return sum(getattr(self, name) for name in DROPS)


@dataclass(frozen=True)
class ClassQueue:
    """Holds the queue for the link: frames and octets now, and the most frames since the start."""

    frames: int
    octets: int
    most: int


@dataclass(frozen=True)
class ClassDelays:
    """Delays from SFD to SFD as they were due, since the start."""

    least_ns: float | None  # None: no frame yet.
    most_ns: float | None  # Likewise.
    mean_ns: float | None  # Likewise: the middle of its bounds.
    mean_bounds_ns: Bounds | None  # Likewise: by the bins, whose frames have their lowest delay, or their highest.
    deviation_ns: float | None  # Likewise: delays of a bin count as even.
    late_most_ns: float  # By how much a frame left after its tick at most.
    counts: tuple[int, ...]  # Of 32 bins: bin b has delays of 2^(b-1) to 2^b - 1 ticks.
    tick_ns: float

    @property
    def cells(self) -> Cells:
        """The bins between the least and the greatest delay (ns)."""
        ends = ((1 << number >> 1, (1 << number) - 1) for number in range(len(self.counts)))  # In ticks.
        cells = Cells.of(
            (math.floor(low * self.tick_ns), math.ceil(high * self.tick_ns), count)
            for (low, high), count in zip(ends, self.counts, strict=True)
        )
        if self.least_ns is None or self.most_ns is None:
            return cells
        return cells.within(math.floor(self.least_ns), math.ceil(self.most_ns))

    @property
    def figures(self) -> dict[str, Any]:
        """Figures of its delays by their names (ns)."""
        percentiles = {
            f"p{name}": self.cells.percentile(float(name.replace("_", "."))) for name in ("50", "99", "99_9")
        }
        mean = (
            None if self.mean_bounds_ns is None or self.mean_ns is None else Measured(self.mean_ns, self.mean_bounds_ns)
        )
        return {"least": self.least_ns, "mean": mean, **percentiles, "most": self.most_ns}

    @property
    def edges_ns(self) -> list[float]:
        """Edges of the bins: one more than these."""
        return [0.0, *(self.tick_ns * (1 << number) for number in range(HISTOGRAM_BINS))]


@dataclass(frozen=True)
class ClassLook(PartFigures):
    """A class at a moment; rates without ``mean`` are of the time since the look before, None in the first.

    Those with it are since the start; of a network that another host began, since this host's first look.
    """

    number: int
    name: str
    match: str | None
    counts: ClassCounts
    queue: ClassQueue
    delays: ClassDelays
    arrived_bps: float | None
    sent_bps: float | None
    arrived_mean_bps: float | None  # Without FCS.
    sent_mean_bps: float | None

    @property
    def delay_figures(self) -> Mapping[str, Any]:
        """Figures of its delays by their names (ns)."""
        return self.delays.figures


@dataclass(frozen=True)
class DirectionLook:
    """A direction at a moment."""

    way: str  # ``there`` or ``back``.
    seconds: float  # Since the start.
    state: int  # How many changes have taken place, those that were set while it ran among them.
    is_running: bool  # Of the port out.
    is_link_up: bool  # Likewise.
    damaged: int  # Frames that no class has: with bad FCS, runts and giants.
    overflows: int  # Frames for which there was no space at the input.
    management: int  # For the probe itself.
    reserved: int  # That no bridge forwards (IEEE 802.1D), PAUSE among them: dropped.
    classes: tuple[ClassLook, ...]


@dataclass(frozen=True)
class EmulationLook:
    """All directions at a moment; ``back`` is None where the probe has one alone. ``changes``: how many are asked for."""

    there: DirectionLook
    back: DirectionLook | None
    changes: int
    since_s: float = (
        0.0  # From when on means are, since the start: of a network of another host from this one's first look.
    )

    @property
    def directions(self) -> tuple[DirectionLook, ...]:
        """Those that there are."""
        return (self.there,) if self.back is None else (self.there, self.back)


@dataclass(frozen=True, repr=False)
class EmulationResult(Result):
    """Holds the figures of a network that was emulated: all of `Result`.

    Its parts are the classes of each direction, like ``there.voice``. ``sent`` is what came to the network, ``received``
    what left it, ``lost`` what it dropped, for whatever reason. Percentiles of delays are known by bins that double.
    """

    network: Network | None  # None: another host began it.
    last: EmulationLook
    samples: tuple[EmulationLook, ...]  # Looks on the way, some hundred at most.
    end: str  # ``done``, ``finished`` (its stations had done all), ``stopped``, ``interrupted`` or ``detached``.
    clock_state: str
    notes: tuple[str, ...]  # What the reader must know, a sentence each.
    stations: StationsReport | None = None  # What the stations at the ports of a simulated emulator saw.

    @property
    def series(self) -> list[dict[str, Any]]:
        """Series of samples."""
        return series_of(self.samples)

    @property
    def parts(self) -> dict[str, ClassLook]:
        """Classes by direction and name."""
        return {f"{way.way}.{one.name}": one for way in self.last.directions for one in way.classes}

    @property
    def delays_by_part(self) -> dict[str, NDArray[np.int64]]:
        """Delays by their bins, the middle of its bin each (ns)."""
        return {name: of_cells(cells) for name, cells in self.cells_by_part.items()}

    @property
    def records_by_part(self) -> dict[str, NDArray[np.int64]]:
        """Nothing: the meter has bins."""
        return {}

    @property
    def cells_by_part(self) -> dict[str, Cells]:
        """Histograms of the classes."""
        return {name: one.delays.cells for name, one in self.parts.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "network": network_document(self.network) if self.network else None,
            "end": self.end,
            "clock_state": self.clock_state,
            "notes": list(self.notes),
            **({"stations": self.stations.document()} if self.stations else {}),
            **look_document(self.last),
            "series": self.series,
        }


def _count(key: str, head: str, title: str, is_fault: bool = True) -> Column:
    return Column(key, head, title, is_fault=is_fault, of=lambda one: getattr(one.counts, key))


def _queue(key: str, head: str, title: str) -> Column:
    return Column(key, head, title, of=lambda one: getattr(one.queue, key))


def _delay(key: str, title: str, head: str = "", digits: int = 6) -> Column:
    return Column(key, head, title, digits, 1e6, of=lambda one: getattr(one.delays, key))


#: Of a class.
CLASSES = Columns(
    Column("name", "class", "Class"),
    _count("arrived", "arrived", "Arrived", False),
    _count("sent", "sent", "Sent", False),
    _count("dropped", "dropped", ""),
    _count("discarded", "discarded", "Discarded"),
    _count("lost", "lost", "Lost"),
    _count("full", "full", "Queue full"),
    _count("early", "early", "Early"),
    _count("no_store", "no store", "No store"),
    _count("marked", "marked", "Marked", False),
    _count("duplicated", "", "Twice"),
    _count("corrupted", "", "Corrupt"),
    _count("held_back", "", "Held back"),
    _count("late", "late", "Late"),
    _count("background", "background", "Background", False),
    _count("background_dropped", "dropped", "Of it\ndropped", False),
    Column("arrived_mean_bps", "Mb/s in,\nmean", "Mb/s in,\nmean", 3, MEGA),
    Column("sent_mean_bps", "Mb/s out,\nmean", "Mb/s out,\nmean", 3, MEGA),
    Column("arrived_bps", "Mb/s in,\nlately", "Mb/s in,\nlately", 3, MEGA),
    Column("sent_bps", "Mb/s out,\nlately", "Mb/s out,\nlately", 3, MEGA),
    _queue("frames", "frames", "Waits"),
    _queue("octets", "octets", ""),
    _queue("most", "most", "Waited\nat most"),
    _delay("least_ns", "Least\ndelay, ms", "delay, ms\nleast"),
    _delay("mean_bounds_ns", "Mean\ndelay, ms", "mean"),
    _delay("deviation_ns", "Deviation,\nms", "deviation"),
    _delay("most_ns", "Greatest\ndelay, ms", "most"),
)


def _of_delays(key: str, title: str) -> Column:
    return Column(key, "", title, of=lambda one: one.delay_figures[key])


EmulationResult.COLUMNS = Columns(
    Column("sent", "", "Arrived", of=lambda one: one.counts.arrived),
    Column("received", "", "Sent", of=lambda one: one.counts.sent),
    Column("lost", "", "Dropped", of=lambda one: one.counts.dropped),
    Column("loss_ratio", "", "Loss ratio", 6, of=lambda one: ratio(one.counts.dropped, one.counts.arrived)),
    *CLASSES.of("discarded full early no_store marked duplicated corrupted late"),
    replace(CLASSES["sent_mean_bps"], key="rate", of=lambda one: one.sent_mean_bps),
    *(_of_delays(key, title) for key, title in DELAYS_OF_CLASS.items()),
)
#: Of a station: its name, its port, and what it saw.
STATIONS = Columns(
    Column("name", "station", "Station", of=lambda one: one[0]),
    Column("port", "port", "Port", of=lambda one: one[1]),
    Column("sent", "sent", "Frames\nsent", of=lambda one: one[2].sent + one[2].played),
    Column("received", "received", "Received", of=lambda one: one[2].frames),
    Column("octets", "octets", "Octets\nreceived", of=lambda one: one[2].octets),
    Column("wrong", "wrong FCS", "Wrong FCS", is_fault=True, of=lambda one: one[2].wrong),
    Column("resent", "sent again", "Segments\nsent again", of=lambda one: one[2].resent),
)


def stations_of(report: StationsReport) -> list[tuple[str, int, Any]]:
    """Return the rows of `STATIONS`."""
    return [(name, port, one) for port, (name, one) in enumerate(zip(report.names, report.ports, strict=True))]


class Extended:
    """Counters of 32 bits that go on, as long as they are looked at before they come round twice."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._last: list[int] | None = None
        self._totals: list[int] = []
        self._lost_sight: set[int] = set()

    def take(self, words: Sequence[int]) -> list[int | None]:
        """Return totals; None where octets may have come round without being seen."""
        if self._last is None:
            self._totals = list(words)
        else:
            grown = [(word - before) % WRAP for word, before in zip(words, self._last, strict=True)]
            self._totals = [total + more for total, more in zip(self._totals, grown, strict=True)]
            frames = {octets: grown[of] for octets, of in OCTETS.items()} if len(words) > len(OCTETS) else {}
            self._lost_sight |= {octets for octets, count in frames.items() if count * self._longest >= WRAP}
        self._last = list(words)
        return [None if number in self._lost_sight else total for number, total in enumerate(self._totals)]


class ClassCounters:
    """The counters of a class, from look to look."""

    def __init__(self, number: int, name: str, match: str | None, longest: int, is_own: bool = True) -> None:
        self.number, self.name, self.match = number, name, match
        self._counts = Extended(longest)
        self._bins = Extended(longest)
        self._before: tuple[int, ClassCounts] | None = None
        self._start: tuple[int, ClassCounts] | None = (0, ClassCounts(*[0] * len(ClassCounter))) if is_own else None

    def look(self, words: Sequence[int], now: int, tick_ns: Fraction) -> ClassLook:
        """Return the class at tick ``now`` from the words of its memory."""
        totals = self._counts.take(words[: len(ClassCounter)])
        counts = ClassCounts(**{one.name.lower(): totals[one] for one in ClassCounter})  # type: ignore[arg-type]
        bins = self._bins.take(words[HISTOGRAM_WORD:COUNTER_WORDS])
        gauges = {one: words[one] for one in ClassGauge}
        ends = [
            None if gauges[ClassGauge.DELAY_LEAST] == NO_LIMIT or not any(bins) else float(gauges[one] * tick_ns)
            for one in (ClassGauge.DELAY_LEAST, ClassGauge.DELAY_MOST)
        ]
        drawn = tuple(count or 0 for count in bins)
        late_ns = float(gauges[ClassGauge.LATE_MOST] * tick_ns)
        mean, deviation = _moments(drawn, ends, float(tick_ns))
        middle = mean.middle if mean else None
        delays = ClassDelays(ends[0], ends[1], middle, mean, deviation, late_ns, drawn, float(tick_ns))
        queue = ClassQueue(
            gauges[ClassGauge.QUEUE_FRAMES], gauges[ClassGauge.QUEUE_OCTETS], gauges[ClassGauge.QUEUE_MOST]
        )
        before, self._before = self._before, (now, counts)
        rates = [
            _rate(since, now, counts, octets, tick_ns)
            for since in (before, self._start)
            for octets in ("arrived_octets", "sent_octets")
        ]
        self._start = self._start or (now, counts)
        if (
            self._start[0] >= WRAP
        ):  # No line has more than an octet a tick: those before the first look may have come round.
            counts = replace(counts, arrived_octets=None, sent_octets=None)
        return ClassLook(self.number, self.name, self.match, counts, queue, delays, *rates)


def have_done(stations: Stations, look: EmulationLook) -> bool:
    """Return whether simulated stations have done all, and nothing of theirs waited or was under way at a look before."""
    report = stations.report()
    if not report.are_done:
        return False
    for port, direction in enumerate(look.directions):
        counts = [one.counts for one in direction.classes]
        taken = sum(one.arrived for one in counts) + direction.damaged + direction.overflows
        left = sum(one.arrived - one.dropped + one.duplicated for one in counts)
        sent, seen = report.ports[port], report.ports[1 - port]
        if (sent.sent + sent.played, left) != (taken, seen.frames + seen.wrong):
            return False
    return True


def look_document(look: EmulationLook) -> dict[str, Any]:
    """Return a look as plain data."""
    found = asdict(look)
    for direction in look.directions:
        for one, plain in zip(direction.classes, found[direction.way]["classes"], strict=True):
            del plain["delays"]["tick_ns"]
            plain["delays"]["edges_ns"] = one.delays.edges_ns
            plain["delays"]["counts"] = list(one.delays.counts)
            mean = one.delays.mean_bounds_ns
            plain["delays"]["mean_bounds_ns"] = mean and [mean.least, mean.most]
    return found


def series_of(samples: Sequence[EmulationLook]) -> list[dict[str, Any]]:
    """Return what became of each class from sample to sample, as plain data, from ``since_s`` on; None: not known.

    Counts of all samples are together those of the last; delays are of the frames that left meanwhile.
    """
    rows = []
    before: EmulationLook | None = None
    for look in samples:
        row: dict[str, Any] = {"seconds": look.there.seconds}
        for direction in look.directions:
            first = None if before is None else getattr(before, direction.way)
            earlier = {one.number: one for one in first.classes} if first else {}
            times = (first.seconds - look.since_s if first else 0.0), direction.seconds - look.since_s
            row[direction.way] = {
                "state": direction.state,
                "is_link_up": direction.is_link_up,
                "classes": [
                    _span(one, earlier.get(one.number), times) for one in direction.classes if first or not look.since_s
                ],
            }
        rows.append(row)
        before = look
    return rows


def _span(now: ClassLook, before: ClassLook | None, times: tuple[float, float]) -> dict[str, Any]:
    """Return what became of a class since a look before, or since the start, as plain data; ``times``: of both (s)."""
    looks = before, now
    counts = {
        name: getattr(now.counts, name) - (getattr(before.counts, name) if before else 0)
        for name in ("arrived", "sent", "dropped")
    }
    rates: dict[str, float | None] = {}
    for name in RATES:
        means = [
            getattr(one, name.replace("_", "_mean_")) if one and time else 0.0
            for one, time in zip(looks, times, strict=True)
        ]
        known = None not in means and times[1] > times[0]
        octets = round((means[1] * times[1] - means[0] * times[0]) / 8) if known else 0
        rates[name] = 8 * octets / (times[1] - times[0]) if known else None
    bins = [
        later - earlier
        for later, earlier in zip(
            now.delays.counts, before.delays.counts if before else (0,) * HISTOGRAM_BINS, strict=True
        )
    ]
    mean, deviation = _moments(bins, (now.delays.least_ns, now.delays.most_ns), now.delays.tick_ns)
    return {
        "name": now.name,
        **counts,
        **rates,
        "delay_mean_ns": mean and mean.middle,
        "delay_mean_bounds_ns": mean and [mean.least, mean.most],
        "delay_deviation_ns": deviation,
        "queue_frames": now.queue.frames,
    }


def notes_of(look: EmulationLook) -> list[str]:
    """Return what the reader of the figures must know, a sentence each."""
    notes = []
    for direction in look.directions:
        for one in direction.classes:
            where = f"'{one.name}' of '{direction.way}'"
            if one.counts.no_store:
                notes.append(
                    f"{one.counts.no_store:,} frames of {where} found no space in the probe's memory, which the "
                    "network doesn't ask for: give less delay or queue, or less traffic"
                )
            if one.counts.late:
                notes.append(
                    f"{one.counts.late:,} frames of {where} left up to {one.delays.late_most_ns:,.0f} ns after their tick"
                )
            if one.counts.sent_octets is None or one.counts.arrived_octets is None:
                notes.append(
                    f"the octets of {where} are not known, nor its mean rate: the host didn't look often enough"
                )
        events: Mapping[str, int] = {
            "with bad FCS, too short or too long": direction.damaged,
            "for want of space": direction.overflows,
        }
        notes += [
            f"{count:,} frames of '{direction.way}' were dropped at the input, {why}"
            for why, count in events.items()
            if count
        ]
        if direction.reserved:
            notes.append(
                f"{direction.reserved:,} frames of '{direction.way}' were not let through, as by any bridge (IEEE 802.1D): "
                "PAUSE, LACP, STP, LLDP or the like; 'reserved: forwarded' lets them through"
            )
    return notes


# # #


def _moments(
    counts: Sequence[int], ends_ns: Sequence[float | None], tick_ns: float
) -> tuple[Bounds | None, float | None]:
    """Return bounds of the mean and the deviation of delays (ns) by the bins of a histogram; for that they count as even in a bin.

    ``ends_ns``: the least and the longest delay.
    """
    count, (least, most) = sum(counts), ends_ns
    if not count or least is None or most is None:
        return None, None
    parts = []
    for number, times in enumerate(counts):
        top = most if number == HISTOGRAM_BINS - 1 else min(tick_ns * ((1 << number) - 1), most)
        low = max(tick_ns * (1 << number >> 1), least)
        parts += [(times, min(low, top), max(low, top))] * bool(times)
    lowest, highest = (sum(part[0] * part[end] for part in parts) / count for end in (1, 2))
    middle = (lowest + highest) / 2
    square = sum(times * (((low + high) / 2 - middle) ** 2 + (high - low) ** 2 / 12) for times, low, high in parts)
    return Bounds(lowest, highest), math.sqrt(square / count)


def _rate(before: Sequence[Any] | None, now: int, counts: ClassCounts, name: str, tick_ns: Fraction) -> float | None:
    """Return the rate (b/s) of a counter of octets since the look before."""
    if before is None or now <= before[0]:
        return None
    then, value = getattr(before[1], name), getattr(counts, name)
    return None if then is None or value is None else float(8 * (value - then) * 10**9 / ((now - before[0]) * tick_ns))


Show = Callable[[EmulationLook], None]
T = TypeVar("T")


class EmulatorDirection:
    """Holds the registers of a direction of the emulator: from the port of its number to the other one.

    Raises UsageError when the probe has no emulator.
    """

    def __init__(self, registers: Registers, number: int) -> None:
        self._registers = registers
        self._prefix = f"direction{number}_"
        self.number = number
        self._longest = 0
        if self._prefix + "arm" not in registers.names:
            raise UsageError(
                f"this probe was built without an emulator: {how_to_get(registers.identifier, ['emulator'])}"
            )

    @staticmethod
    def count(registers: Registers) -> int:
        """Return how many directions a probe emulates."""
        return sum(f"direction{number}_arm" in registers.names for number in range(2))

    @property
    def limits(self) -> Limits:
        """Limits of what it holds."""
        values = self._read(*self._built("store_words", "entries", "longest", "least_delay", "waiting"))
        trace = self._prefix + "trace"
        has_trace = trace in self._registers.memory_names
        features = Feature(self._read(*self._built("features")).get("features", 0))
        return Limits(**values, trace_words=self._registers.memory(trace).words if has_trace else 0, features=features)

    def _built(self, *names: str) -> list[str]:
        """Return those of the registers that the probe has: not all gateware knows all of them."""
        return [name for name in names if self._prefix + name in self._registers.names]

    @property
    def longest(self) -> int:
        """Octets of the longest frame."""
        self._longest = self._longest or self._read("longest")["longest"]
        return self._longest

    @property
    def rules(self) -> int:
        """Rules that name its classes, so many."""
        return self._read("rules")["rules"]

    def load_rules(self, rules: ClassRules, forwards_reserved: bool) -> None:
        """Write what names its classes, and whether frames that no bridge forwards are taken."""
        self._registers.write(self._prefix + "rule_words", 0)
        for first, words in rules.blocks(self.rules):
            self._registers.write_memory(self._prefix + "rules", first, words)
        self._registers.write(self._prefix + "rule_words", rules.looks)
        self._registers.write(self._prefix + "forward_reserved", int(forwards_reserved))

    def load(self, words: DirectionWords) -> None:
        """Write what holds at the start, into bank 0, and what both banks share."""
        self.write_bank(0, words.banks[0])
        self._write_settings(DELAYS_WORD, words.delays)
        self._write_settings(PATTERNS_WORD, words.patterns)
        if words.trace:
            self._registers.write_memory(self._prefix + "trace", 0, list(words.trace))
        if self._prefix + "trace_entries" in self._registers.names:
            self._registers.write_many({self._prefix + "trace_entries": len(words.trace) // 2})

    def write_bank(self, bank: int, words: Sequence[int]) -> None:
        """Write the settings of a bank that doesn't hold now."""
        self._write_settings(BANK_WORDS * bank, words)

    def arm(self) -> None:
        """Take the settings of bank 0 for the next start."""
        self._registers.write(self._prefix + "arm", 1)

    def write_live(self, bank: int, words: LiveWords, whole: Sequence[int]) -> None:
        """Write what a switch to a bank will need; ``whole``: the bank, described."""
        if words.delays:
            self._write_settings(DELAYS_WORD, words.delays)
        for first, patterns in words.patterns.items():
            self._write_settings(PATTERNS_WORD + first, patterns)
        self.write_bank(bank, whole)

    def read_bank(self, bank: int) -> list[int]:
        """Return the words of a bank."""
        return [
            int(one) for one in self._registers.read_memory(self._prefix + "settings", BANK_WORDS * bank, BANK_WORDS)
        ]

    def read_changes(self, bank: int) -> int | None:
        """Return how many changes a bank says that were made; None: it says nothing, or it isn't sure."""
        first = BANK_WORDS * bank + TEXT_WORD
        mark, changes = self._registers.read_memory(self._prefix + "settings", first, 2).tolist()
        return int(changes) if mark >> 16 == MARK else None

    def switch(self, ticks: int) -> None:
        """Let the other bank hold from a tick since the start on; at once where that has passed."""
        self._registers.write_burst({self._prefix + "switch_at": ticks})  # It doesn't read as it was written.
        self._registers.write(self._prefix + "switch", 1)

    def look(self) -> tuple[int, bool, int]:
        """Return the bank that holds now, whether a switch is to come, and the ticks since the start."""
        # One datagram, read in this order: a read of the bank latches the time.
        values = self._read("bank", "now")
        return values["bank"] & BANK_BIT, bool(values["bank"] & TO_COME), values["now"]

    def events(self) -> dict[str, int]:
        """Return what is counted of frames that no class has (modulo 2^32)."""
        return self._read(*EVENTS)

    def counts(self, number: int) -> list[int]:
        """Return the words of a class's counters, which say nothing that they could not say at one instant.

        They have no snapshot: what follows from something is read before that (`READS`).
        """
        first = self._registers.memory(self._prefix + "counts").address + 4 * COUNTER_WORDS * number
        words = [0] * COUNTER_WORDS
        for places in READS:
            for _ in range(READ_TRIES):
                found = self._registers.link.read_scattered([first + 4 * place for place in places]).tolist()
                before = found[places.index(places[-1])]
                if before == found[-1]:
                    break
            for place, word in zip(places[::-1], found[::-1], strict=True):
                words[place] = word
            octets = OCTETS_OF.get(places[-1])
            if before != found[-1] and octets is not None and before * self.longest < WRAP:
                words[places[-1]] = max(before, -(-words[octets] // self.longest))  # No frame has more octets.
        return words

    def _read(self, *names: str) -> dict[str, int]:
        values = self._registers.read_many([self._prefix + name for name in names])
        return {name.removeprefix(self._prefix): value for name, value in values.items()}

    def _write_settings(self, first: int, words: Sequence[int]) -> None:
        self._registers.write_memory(self._prefix + "settings", first, list(words))


def directions_of(registers: Registers) -> list[EmulatorDirection]:
    """Return the directions of a probe; raises UsageError where it has none."""
    return [EmulatorDirection(registers, number) for number in range(max(1, EmulatorDirection.count(registers)))]


USUAL = Limits(1 << 19, 1 << 15, 1536, 6404, 1 << 17, 1 << 15)  # Of a direction of the preset.
IN_BLOCK = Limits(1 << 14, 1024, 1536, 2820, 0, 512, Feature.NONE)
# Of what is placed and routed: without traces, CoDel, PIE and marks; on the smaller boards with lists in block RAM.
LEAN = replace(USUAL, trace_words=0, features=Feature.NONE)
SMALL = replace(LEAN, entries=1024, waiting=512)
#: Directions of a probe as docs/emulator.md builds it for a board; the first: of ``sim://emulator``.
BOARDS: dict[str, tuple[Limits, ...]] = {
    "emulator": (USUAL, USUAL),
    "colorlight_i9": (LEAN, LEAN),
    **dict.fromkeys(
        (
            *("colorlight_5a_75b", "colorlight_5a_75b_v7_0", "colorlight_5a_75b_v8_2"),
            *("colorlight_5a_75e", "colorlight_5a_75e_v6_0", "colorlight_5a_75e_v8_0", "colorlight_i5"),
        ),
        (SMALL,),
    ),
    "versa_ecp5": (IN_BLOCK,),
}


def limits_of(board: str) -> tuple[Limits, ...]:
    """Return the limits of the directions of a probe as it is built for a board.

    Raises UsageError when no emulator is built for it.
    """
    if board not in BOARDS:
        raise UsageError(f"no emulator is built for board '{board}': {nearest(board, tuple(BOARDS))}")
    return BOARDS[board]


def check_network(network: Network, board: str = "emulator") -> list[str]:
    """Check all that a host checks before it writes to a probe, and return what must be known, then as of what probe.

    Raises UsageError when that probe couldn't do it.
    """
    limits = limits_of(board)
    rules_of(network, [RULES] * PORTS)
    _check_directions(network, len(limits), board)
    words = words_of(network, limits)
    switch_ticks(network)
    notes = dict.fromkeys(_read_as_inner(network) + [note for one in words for note in one.notes])
    return [*notes, f"Checked as of {board}: {held_by(limits)}"]


def held_by(limits: Sequence[Limits]) -> str:
    """Return what the directions of a probe hold, in words."""
    one = limits[0]
    trace = f"traces of {one.trace_words // 2:,} opportunities" if one.trace_words else "no traces"
    return (
        f"{len(limits)} direction{'s' * (len(limits) > 1)}, each of {size_text(one.store_words)} and {one.entries:,} frames, "
        f"{one.most_waiting:,} of which wait, up to {one.longest:,} octets each; delays from "
        f"{one.least_delay * TICK_NS / 1000:g} us to 8.589 s; {trace}."
    )


def _check_directions(network: Network, count: int, probe: str) -> None:
    if count < PORTS and any(one != Direction() for one in network.states("back")):
        raise UsageError(
            f"{probe} emulates a network from port 0 to port 1 alone: say what is wanted under 'there', nothing of 'back'"
        )


def _read_as_inner(network: Network) -> list[str]:
    """Return a note for each expression whose ``vlan`` or ``mpls`` behind ``or`` is not what its words seem to say."""
    found = []
    for name in DIRECTIONS:
        for one in getattr(network, name).classes:
            differences = one.expression.differences() if one.expression else ()
            found += [
                f"'{one.match_text}' of '{name}': as in tcpdump, what stands behind 'or' means an inner tag or label: give "
                "each a class of its own"
                for joined in differences
                if "joined by 'or'" in joined.text
            ][:1]
    return found


def rules_of(network: Network, most: Sequence[int] = (RULES_MOST,) * PORTS) -> list[ClassRules]:
    """Return the rules that name the classes of each direction, of which there are ``most``.

    Raises UsageError where there are too many: says how many each class needs; or where a header doesn't have what a class asks.
    """
    found = []
    for name, count in zip(DIRECTIONS, most, strict=False):
        numbered = getattr(network, name).numbered
        asked = {place: (one.name, one.expression) for place, one in numbered.items() if one.expression is not None}
        try:
            found.append(class_rules(asked, count))
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None
    return found


@dataclass(frozen=True)
class _Planned:
    """A change that is to come."""

    ticks: int  # Since the start.
    live: LiveDirection  # The direction after it.
    words: LiveWords


@dataclass
class _Direction:
    """A direction that runs, with the changes that are still to be made in it."""

    way: str
    port: EmulatorDirection
    out: ProbePort
    counters: list[ClassCounters]
    events: Extended
    maker: DirectionMaker | None = None  # None: what holds isn't known.
    words: DirectionWords | None = None  # At the start, where this host begins it.
    live: LiveDirection = field(default_factory=lambda: LiveDirection.of(Direction()))  # What holds.
    held: str = ""  # The class that has held frames back since the start.
    bank: int = 0  # That holds.
    state: int = 0  # Changes that hold.
    ahead: deque[_Planned] = field(default_factory=deque)
    is_armed: bool = False  # The first of them is set in the probe.
    is_down: bool = False  # The link of the port out, by `link`.


@validated
class Emulation(PortRun):
    """An emulated network on a probe.

    It goes on when this host is gone. As a context it is stopped at the end, unless it was detached.

    Parameters
    ----------
    network : Network or None
        None: the one that another host has started, with the names that it stored in the probe.

    Raises
    ------
    UsageError
        When the probe can't: the message has the limit, and what to do.
    """

    wording = ErrorWording("the network", "while it ran", "start it", prepared="the network")

    def __init__(self, probe: RunDevice, network: Network | None = None) -> None:
        self._probe, self.network = probe, network
        ports = directions_of(probe.registers)
        count = len(ports)
        if len(probe.ports) < PORTS:
            raise UsageError(f"{probe.url} has {len(probe.ports)} ports that send, and an emulator needs {PORTS}")
        limits = [port.limits for port in ports]
        eye = memory_eye(probe.registers)
        if network and eye and eye.state == EyeState.FAILED:
            raise ProbeError(
                f"the SDRAM of {probe.url}, where frames wait, isn't read right ({eye.text}): try another board"
            )
        self._tick_ns = probe.timebase.tick_ns
        increment = probe.timebase.increment
        if network:
            _check_directions(network, count, probe.url)
        self._rules = rules_of(network, [port.rules for port in ports]) if network else []
        self._increment = increment
        makers = makers_of(network, limits, increment) if network else ()
        ticks = switch_ticks(network, increment) if network else []
        self._directions = [
            _Direction(
                name,
                ports[number],
                probe.ports[1 - number],
                _counters(network, name, limits[number].longest, network is not None),
                Extended(limits[number].longest),
            )
            for number, name in enumerate(DIRECTIONS[:count])
        ]
        for one, maker in zip(self._directions, makers, strict=False):
            assert network
            one.maker, one.words = maker, maker.made()
            first, *later = network.states(one.way)
            one.held = class_held_by([first, *later])
            one.live = LiveDirection.of(first)
            planned = zip(ticks, later, one.words.banks[1:], strict=True)
            one.ahead.extend(
                _Planned(at, LiveDirection.of(to), LiveWords(bank, (), {}, ())) for at, to, bank in planned
            )
        self._is_own = network is not None
        self._carriers: Carriers | None = None
        for one in self._directions:
            self._need_carriers(one, network.states(one.way) if network else [])
        self._sets: list[tuple[float, str]] = []  # Those of this host: seconds since the start, what was set.
        self._made: list[tuple[int, str, Direction]] = []  # Changes that took place: tick, direction, what held then.
        super().__init__([PortEnd.of(probe, 1 - number) for number in range(count)])
        self.notes += _read_as_inner(network) if network else []
        self.notes += dict.fromkeys(note for one in self._directions if one.words for note in one.words.notes)
        if eye and eye.state == EyeState.SLOW:
            self.notes.append(
                f"the eye of the SDRAM: {eye.text}; two full lines are too much for it then, and frames may be late"
            )
        self._samples: list[EmulationLook] = []
        self._since_s: float | None = 0.0 if self._is_own else None
        self._every = 1  # Of so many looks one is a sample.
        self._looks = 0
        self._last: EmulationLook | None = None
        if network is None and not any(self._is_running(one) for one in self._directions):
            raise UsageError("no network runs on this probe: start one")
        if network is None:
            self._attach()

    def __enter__(self) -> "Emulation":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        with suppress(ProbeError) if kind else nullcontext():  # The first error is the one to hear of.
            self.stop()

    # Start and end ------------------------------------------------------------------------------------

    @classmethod
    def started(cls, probe: RunDevice, network: Network | None) -> "Emulation":
        """Return a network that has begun, or the one that runs."""
        emulation = cls(probe, network)
        emulation.begin()
        return emulation

    def begin(self, is_measured: bool = False) -> None:
        """Start both directions in one tick; nothing, where another host has.

        Raises
        ------
        ProbeError
            When a link is down.
        """
        if not self._is_own:
            return
        with self.stopped_at_errors():
            super().begin(is_measured)
            if self._probe.link.stations:
                self._probe.link.stations.begin()
            for one in self._directions:
                self._arm_next(one)
                self._set_link(one)

    def check_links(self) -> None:
        """Raise ProbeError where a link is down; at what speed it is doesn't matter here."""
        for end in self.senders:
            check_link(*end)

    def load(self) -> None:
        """Write the rules and the settings of both directions."""
        assert self.network
        for one, rules in zip(self._directions, self._rules, strict=True):
            assert one.words
            one.port.load_rules(rules, self.network.reserved == FORWARDED)
            one.port.load(one.words)
            first = _Planned(0, one.live, LiveWords(one.words.banks[0], (), {}, ()))
            one.port.write_bank(0, self._described(one, first, 0))
            one.port.arm()

    def stop(self) -> None:
        """End both directions: frames that wait or are under way are gone."""
        if self.end:
            return
        self.end = "stopped"
        if not self._is_own:
            for end in self.senders:
                end.port.halt(self._probe.timebase)
            self._raise_links()
            return
        try:
            if all(end.port.sends_for is self for end in self.senders):
                with suppress(ProbeError):
                    self.look()
        finally:
            self.stop_ports(self._probe)

    def stop_ports(self, probe: RunDevice) -> bool:
        """Stop both directions, and let links come up again that were taken down, whatever else fails."""
        try:
            return super().stop_ports(probe)
        finally:
            self._raise_links()

    def detach(self) -> None:
        """Let it go on when this host lets go of the probe; the change that comes next takes place all the same.

        Raises UsageError when more than one is to come: a probe holds one. It runs on as before.
        """
        self.look()
        moves_link = any(
            (planned.live.direction.link == DOWN) != one.is_down for one in self._directions for planned in one.ahead
        )
        check_detached(max(len(one.ahead) for one in self._directions), moves_link)
        self.end = "detached"
        self._probe.lease.leaves_running = True

    # Changes while it runs ----------------------------------------------------------------------------

    def set(self, direction: str, name: str | None = None, **values: Any) -> float:
        """Change what a class meets, or, without ``name``, the direction and what no class matches; return since when (s).

        It switches between two frames. All that isn't named stays: queues, what is under way, draws, and changes to come, which
        then change what was set.

        Parameters
        ----------
        direction : str
            ``there``, ``back`` or ``both``.
        values
            Keys of a changed direction or class, as docs/emulator.md has them, with values as a document has them.

        Raises
        ------
        UsageError
            When it can't be: the network runs on as it was.
        BusyError
            When another host has the probe.
        """
        of = {"classes": {name: values}} if name else values
        change = change_of({direction: of}, "set")
        said = ", ".join(f"{'.'.join(filter(None, (direction, name, key)))}={value}" for key, value in values.items())
        return self._set({way: [entries] for way, entries in change.items() if entries.values}, said)

    def set_words(self, *words: str) -> float:
        """Change several things in one switch, each like ``there.voice.delay=5ms``; otherwise as `set`."""
        return self._set(words, ", ".join(words))

    def background(self, direction: str, name: str = REST) -> "BackgroundControl":
        """Return what starts and stops the background of a class."""
        return BackgroundControl(self, direction, name)

    def wait(
        self,
        seconds: float | None = None,
        show: Show | None = None,
        look_s: float = LOOK_S,
        is_done: Callable[[EmulationLook], bool] | None = None,
    ) -> EmulationResult:
        """Look now and then for so many seconds of the probe's time, or until it ends, and return what came of it.

        Parameters
        ----------
        show : callable or None
            Given each look.
        look_s : float
            Between looks; up to 10 s.
        is_done : callable or None
            Given each look: whether that is the end, before its time.

        Raises
        ------
        KeyboardInterrupt
            Passed on; `Interrupted` has the result until then. The network runs on until it is stopped.
        """
        look_s, came = min(look_s, LOOK_MOST_S), "stopped"
        try:
            look = self.look()
            while any(direction.is_running for direction in look.directions):
                if show:
                    show(look)
                left = look_s if seconds is None else seconds - look.there.seconds
                if left <= 0:
                    came = "done"
                    break
                if is_done and is_done(look):
                    came = "finished"
                    break
                self._probe.wait(min(look_s, left, self._until_change(look)))
                look = self.look()
            if show:
                show(look)
        except Interrupted as end:
            self.end = "interrupted"
            with suppress(ProbeError):
                end.results = [self.result()]
            self.end = ""
            raise
        return self.result(came)

    # Figures ------------------------------------------------------------------------------------------

    def look(self) -> EmulationLook:
        """Return how it is now, and set the change that comes next.

        Raises
        ------
        UsageError
            When a port was given something else since.
        """
        if self._is_own:
            self.check_own()
        found = {one.way: self._look_at(one) for one in self._directions}
        changes = max(one.state + len(one.ahead) for one in self._directions)
        self._since_s = found["there"].seconds if self._since_s is None else self._since_s
        look = EmulationLook(found["there"], found.get("back"), changes, self._since_s)
        self._last = look
        if self._looks % self._every == 0:
            self._samples.append(look)
            if len(self._samples) > SAMPLES_MOST:
                self._samples, self._every = self._samples[::2], 2 * self._every
        self._looks += 1
        return look

    @property
    def now(self) -> Network | None:
        """The network as it was at the last look, without changes; None: that isn't known."""
        if not self.network or any(one.maker is None for one in self._directions):
            return None
        there, back = self._lives()
        return replace(self.network, there=there, back=back, changes=())

    @property
    def counts(self) -> dict[str, dict[str, ClassCounts]]:
        """Counters of now, by direction and class."""
        return self._by_class(lambda one: one.counts)

    @property
    def queues(self) -> dict[str, dict[str, ClassQueue]]:
        """Queues of now, by direction and class."""
        return self._by_class(lambda one: one.queue)

    @property
    def delays(self) -> dict[str, dict[str, ClassDelays]]:
        """Delays until now, by direction and class."""
        return self._by_class(lambda one: one.delays)

    def _by_class(self, taken: Callable[[ClassLook], T]) -> dict[str, dict[str, T]]:
        looks = self.look().directions
        return {direction.way: {one.name: taken(one) for one in direction.classes} for direction in looks}

    def result(self, end: str = "") -> EmulationResult:
        """Return what came of it until now; ``end``: how it ended, if that isn't known yet."""
        last = self._last or self.look()
        samples = self._samples if self._samples and self._samples[-1] is last else [*self._samples, last]
        means = f"mean rates are since this host's first look, {time_text(1e9 * last.since_s)} after the start"
        notes = (*self.all_notes(), *self._set_notes(), *notes_of(last), *[means] * bool(last.since_s))
        clock_state = self._probe.timebase.clock_state
        seen = self._probe.link.stations.report() if self._probe.link.stations else None
        return EmulationResult(self._recorded(), last, tuple(samples), self.end or end, clock_state, notes, seen)

    # # #

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _is_running(self, one: _Direction) -> bool:
        return one.out.transmit.look()[0] in (TransmitState.WAITING, TransmitState.RUNNING)

    def _look_at(self, one: _Direction) -> DirectionLook:
        state, _, is_up = one.out.transmit.look()
        bank, is_to_come, now = one.port.look()
        classes = [each.look(one.port.counts(each.number), now, self._tick_ns) for each in one.counters]
        events = dict(zip(EVENTS, one.events.take(list(one.port.events().values())), strict=True))
        if not is_up:
            self._note(f"the link of port {one.out.number} was down for a time: frames to it were lost on the line")
        self._see(one, bank, is_to_come)
        is_running = state in (TransmitState.WAITING, TransmitState.RUNNING)
        if one.maker is None:
            classes = [
                each
                for each in classes
                if each.counts.arrived or each.counts.background or each.number == UNMATCHED_CLASS
            ]
        return DirectionLook(
            one.way,
            float(now * self._tick_ns) / 1e9,
            one.state,
            is_running,
            is_up,
            **{name: count or 0 for name, count in events.items()},
            classes=tuple(classes),
        )

    # Changes ------------------------------------------------------------------------------------------

    def _lives(self) -> tuple[Direction, Direction]:
        """Return what holds there and back."""
        found = [one.live.direction for one in self._directions]
        return found[0], found[1] if len(found) > 1 else Direction()

    def _described(self, one: _Direction, planned: _Planned, changes: int) -> tuple[int, ...]:
        assert self.network
        said = Described(self.network.name, self.network.seed, one.held, changes, planned.ticks, planned.live)
        return described(said, planned.words.bank)

    def _arm_next(self, one: _Direction) -> None:
        """Write the settings of the next change into the bank that is free, and set its tick."""
        if not one.ahead or one.is_armed:
            return
        next_one, number = one.ahead[0], one.state + 1
        one.port.write_live(1 - one.bank, next_one.words, self._described(one, next_one, number))
        one.port.switch(next_one.ticks)
        one.is_armed = True
        now = one.port.look()[2]
        if now > next_one.ticks:
            late_ms = float((now - next_one.ticks) * self._tick_ns) / 1e6
            self._note(
                f"change {number} of '{one.way}' was made up to {late_ms:,.3f} ms late: the host looked too late, "
                "leave more time between changes"
            )

    def _see(self, one: _Direction, bank: int, is_to_come: bool) -> None:
        """Note that a change took place, and set the next one; of a network of another host, see what it changed."""
        if one.is_armed and bank != one.bank and not is_to_come:
            self._took_place(one, one.ahead.popleft())
            self._arm_next(one)
        elif not self._is_own and one.maker and one.port.read_changes(bank) != one.state:
            self._attach()

    def _took_place(self, one: _Direction, made: _Planned) -> None:
        one.bank, one.is_armed = 1 - one.bank, False
        one.state += 1
        one.live = made.live
        self._made.append((made.ticks, one.way, made.live.direction))
        self._set_link(one)

    def _need_carriers(self, one: _Direction, states: Sequence[Direction]) -> None:
        """Raise UsageError where a link is to go down that can't."""
        if all(state.link != DOWN for state in states):
            return
        if self._probe.link.is_in_band and one.out.number == IN_BAND_PORT:
            raise UsageError(
                f"'{one.way}' leaves by port {IN_BAND_PORT}, over which this host reaches the probe: its link can't go down; "
                "give 'discard: true' in place of 'link: down', or build with --link uart"
            )
        self._carriers = self._carriers or Carriers(self._probe.registers, self._probe.link, PORTS)

    def _set_link(self, one: _Direction) -> None:
        """Take the link of the port out down or up, where that isn't as it should be."""
        is_down = one.live.direction.link == DOWN
        if is_down != one.is_down and self._carriers and not self.end:
            one.is_down = True  # Until it is known to be up.
            self._carriers.set(one.out.number, not is_down)
            one.is_down = is_down

    def _raise_links(self) -> None:
        """Let all links come up again."""
        for one in self._directions:
            if one.is_down:
                self._carriers = self._carriers or Carriers(self._probe.registers, self._probe.link, PORTS)
                self._carriers.set(one.out.number, True)
                one.is_down = False

    def _attach(self) -> None:
        """Learn from the probe what holds, with its names."""
        found = []
        for one in self._directions:
            for _ in range(READ_TRIES):
                bank, is_to_come, _ = before = one.port.look()
                banks = [one.port.read_bank(bank), one.port.read_bank(1 - bank)]
                if one.port.look()[:2] == before[:2] and (seen := description_of(banks[0])):
                    break
            else:
                self._forget()
                return
            found.append((one, bank, banks, seen))
            one.ahead.clear()
            one.is_armed = is_to_come
            if is_to_come and (next_one := description_of(banks[1])):
                words = LiveWords(tuple(banks[1][:SETTINGS_WORDS]), (), {}, ())
                one.ahead.append(_Planned(next_one.at_ticks, next_one.live, words))
        first = found[0][3]
        self._made.clear()  # What is seen now has it.
        for one, _, _, seen in found:
            one.live = seen.live
        self.network = Network(*self._lives(), seed=first.seed, name=first.network)
        for number, (one, bank, banks, seen) in enumerate(found):
            maker = DirectionMaker(self.network, number, one.way, one.port.limits, self._increment)
            maker.adopt(banks[0])
            names = [each.name for each in seen.live.direction.numbered.values()]
            if one.maker is None or [each.name for each in one.counters] != names:
                one.counters = _counters(self.network, one.way, one.port.longest, False)
                self._samples, self._since_s = [], None
            one.maker, one.bank, one.state, one.held = maker, bank, seen.changes, seen.held
            one.is_down = seen.live.direction.link == DOWN

    def _forget(self) -> None:
        self._note(
            "what holds isn't known: the host that began the network left no description in the probe, or one that is too long "
            "for it; classes have numbers for names"
        )
        for one in self._directions:
            one.maker = None

    def _set(self, settings: Mapping[str, list[Entries]] | Sequence[str], said: str) -> float:
        """Change what holds now by keys of each direction, or by words; all of it in one switch."""
        self._probe.registers.own()
        if not all(self._is_running(one) for one in self._directions):
            raise UsageError("the network doesn't run any more, so nothing can be set: start one")
        if self._is_own:
            self.check_own()
        for one in self._directions:
            self._see(one, *one.port.look()[:2])
        if any(one.maker is None or (one.is_armed and not one.ahead) for one in self._directions):
            raise UsageError(
                "what holds or is to come isn't known here, so it can't be changed: set it from the host that began it"
            )
        plans = self._plans(settings)
        at = self._switch_now(plans)
        for one, planned in plans:
            self._await_switch(one)
            self._took_place(one, replace(planned, ticks=at))
        for note in dict.fromkeys(note for _, planned in plans for note in planned.words.notes):
            self._note(note)
        seconds = float(at * self._tick_ns) / 1e9
        self._sets.append((seconds, said))
        return seconds

    def _plans(self, settings: Mapping[str, list[Entries]] | Sequence[str]) -> list[tuple[_Direction, _Planned]]:
        """Return for each direction that changes what holds after the change. What the probe is to change stays."""
        before = {one.way: one.live for one in self._directions}
        after = dict(before)
        if isinstance(settings, Mapping):
            for way, several in settings.items():
                if way not in after:
                    raise UsageError(f"{self._probe.url} emulates from port 0 to port 1 alone: set what is of 'there'")
                for entries in several:
                    after[way] = after[way].changed(entries)
        else:
            for word in settings:
                after = set_by_words(after, word)
        plans = []
        for one in self._directions:
            if after[one.way] is before[one.way]:
                continue
            if one.is_armed:
                at = f"{float(one.ahead[0].ticks * self._tick_ns) / 1e9:,.3f} s"
                raise UsageError(
                    f"a change of '{one.way}' at {at} is in the probe, which can't take it back: set it after that, or begin the "
                    "network without 'changes'"
                )
            now, live = one.live.direction, after[one.way]
            check_states([now, live.direction], one.way)
            self._need_carriers(one, [now, live.direction])
            held = class_held_by([live.direction])
            if held and one.held and held != one.held:
                raise UsageError(
                    f"class '{held}' of '{one.way}' can't hold frames back: '{one.held}' has since the network began, and one "
                    "class of a direction can, always the same"
                )
            assert one.maker
            (words,) = one.maker.changed([live.direction], [now])
            one.held = one.held or held
            plans.append((one, _Planned(0, live, words)))
        if not plans:
            raise UsageError("nothing is set: give what changes, like there.voice.delay=5ms")
        return plans

    def _switch_now(self, plans: Sequence[tuple[_Direction, _Planned]]) -> int:
        """Write and switch directions in one tick that is just to come, and return it."""
        first = plans[0][0].port
        began = first.look()[2]
        for one, planned in plans:
            one.port.write_live(1 - one.bank, planned.words, self._described(one, planned, one.state + 1))
        now = first.look()[2]
        at = now + 2 * (now - began) + SPARE_TICKS
        for one, _ in plans:
            one.port.switch(at)
        late = first.look()[2] - at
        if late > 0 and len(plans) > 1:
            self._note(
                f"what was set for both directions at {float(at * self._tick_ns) / 1e9:,.6f} s may hold in one of them "
                f"{float(late * self._tick_ns) / 1e6:,.3f} ms later: the link to the probe was too slow"
            )
        return at

    def _await_switch(self, one: _Direction) -> None:
        for _ in range(TAKE_LOOKS):
            bank, is_to_come, _ = one.port.look()
            if bank != one.bank and not is_to_come:
                return
        raise ProbeError(
            "the probe doesn't go over to what was set: stop the network, and report this with the command"
        )

    def _recorded(self) -> Network | None:
        """Return the network with all changes that took place or are to come."""
        if not self.network or not self._made or (self._is_own and not self._sets):
            return self.network
        first = {way: getattr(self.network, way) for way in DIRECTIONS}
        changes: dict[int, dict[str, Direction]] = {}
        to_come = [
            (planned.ticks, one.way, planned.live.direction) for one in self._directions for planned in one.ahead
        ]
        for ticks, way, direction in [*self._made, *to_come]:
            changes.setdefault(max(ticks, 1), {})[way] = direction
        made = [Change(ticks * self._tick_ns, **changes[ticks]) for ticks in sorted(changes)]
        return replace(self.network, **first, changes=made[-CHANGES_MAX:])

    def _set_notes(self) -> list[str]:
        if not self._sets:
            return []
        shown = "; ".join(f"{said} at {seconds:,.6f} s" for seconds, said in self._sets[-SETS_SHOWN:])
        more = ", the last ones" if len(self._sets) > SETS_SHOWN else ""
        return [f"changes that were set while it ran: {len(self._sets)}{more} ({shown})"]

    def _until_change(self, look: EmulationLook) -> float:
        """Return the seconds until just after the next change that is set, for the one after it to be set soon."""
        left = [
            float(one.ahead[0].ticks * self._tick_ns) / 1e9 - direction.seconds
            for one, direction in zip(self._directions, look.directions, strict=True)
            if len(one.ahead) > 1
            or any((next_one.live.direction.link == DOWN) != one.is_down for next_one in one.ahead)
        ]
        return max(0.0, min(left)) + 1e-4 if left else LOOK_MOST_S


class BackgroundControl:
    """Starts and stops the background of a class, on its own; each start begins it anew, ``phase`` after it."""

    def __init__(self, emulation: Emulation, direction: str, name: str) -> None:
        self._emulation, self._place = emulation, f"{direction}.{name}.background.stopped"

    def start(self) -> float:
        """Start it, and return since when it runs (s). Raises UsageError when the class has none."""
        return self._emulation.set_words(f"{self._place}=false")

    def stop(self) -> float:
        """Stop it; what of it waits for the link goes on. Return since when (s)."""
        return self._emulation.set_words(f"{self._place}=true")


def check_detached(changes: int, moves_link: bool = False) -> None:
    """Raise UsageError when so many changes are to come that a probe without its host can't make them all, or one of a link."""
    if moves_link:
        raise UsageError(
            "a change takes a link down or up, and that its host does: keep this host at it (leave out --detach), or give "
            "'discard: true' in place of 'link: down'"
        )
    if changes > 1:
        raise UsageError(
            f"{changes} changes are to come, and a probe that its host has left makes one: keep this host at it (leave out "
            "--detach), or detach when one is left"
        )


def class_held_by(states: Sequence[Direction]) -> str:
    """Return the name of the class that holds frames back in one of the states of a direction; "": none does."""
    return next(
        (one.name for state in states for one in state.numbered.values() if one.reorder and exact(one.reorder.share)),
        "",
    )


def _counters(network: Network | None, name: str, longest: int, is_own: bool) -> list[ClassCounters]:
    if network is None:
        names = {number: f"class {number}" for number in range(CLASSES_MOST)} | {UNMATCHED_CLASS: REST}
        return [ClassCounters(number, name, None, longest, is_own) for number, name in names.items()]
    numbered = getattr(network, name).numbered
    return [ClassCounters(number, one.name, one.match_text, longest, is_own) for number, one in numbered.items()]
