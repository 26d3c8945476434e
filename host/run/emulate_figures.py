# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the figures of an emulated network: counters, queues and delays of each class, now and at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from liteprobe.cores.formats.emulate import (
    COUNTER_WORDS,
    HISTOGRAM_BINS,
    HISTOGRAM_WORD,
    NO_LIMIT,
    ClassCounter,
    ClassGauge,
)
from liteprobe.host.analysis.columns import MEGA, Column, Columns
from liteprobe.host.device.link.sim_stations import Stations, StationsReport
from liteprobe.host.traffic.network.document import network_document
from liteprobe.host.traffic.network.network import Network

WRAP = 1 << 32
#: Counters of octets, and of the frames that they are of.
OCTETS = {ClassCounter.ARRIVED_OCTETS: ClassCounter.ARRIVED, ClassCounter.SENT_OCTETS: ClassCounter.SENT}
#: Counters of frames that don't leave, in the order of tables.
DROPS = ("discarded", "lost", "full", "early", "no_store")


@dataclass(frozen=True)
class ClassCounts:
    """What was counted of a class since the start.

    Attributes
    ----------
    arrived, sent : int
        Frames that came, and whose departure is settled, a duplicate too; what is neither waits or was dropped.
    arrived_octets, sent_octets : int or None
        Without FCS; None: too long a time passed without a look to be sure.
    discarded, lost, full, early, no_store : int
        Dropped: by the class, by loss, by its full queue, by RED, for want of the probe's memory.
    duplicated, corrupted, held_back : int
    background, background_dropped : int
        Frames of the background.
    late, waited : int
        Left after their tick: because the probe wasn't ready; because the line was busy.
    """

    arrived: int
    arrived_octets: int | None
    sent: int
    sent_octets: int | None
    discarded: int
    lost: int
    full: int
    early: int
    no_store: int
    duplicated: int
    corrupted: int
    held_back: int
    background: int
    background_dropped: int
    late: int
    waited: int

    @property
    def dropped(self) -> int:
        """Frames that don't leave."""
        return sum(getattr(self, name) for name in DROPS)


@dataclass(frozen=True)
class ClassQueue:
    """What waits for the link: frames and octets now, and the most frames since the start."""

    frames: int
    octets: int
    most: int


@dataclass(frozen=True)
class ClassDelays:
    """Delays from SFD to SFD as they were due, since the start.

    Attributes
    ----------
    least_ns, most_ns : float or None
        None: no frame yet.
    late_most_ns : float
        By how much a frame left after its tick at most.
    counts : tuple of int
        Of 32 bins: bin b has delays of 2^(b-1) to 2^b - 1 ticks.
    tick_ns : float
    """

    least_ns: float | None
    most_ns: float | None
    late_most_ns: float
    counts: tuple[int, ...]
    tick_ns: float

    @property
    def edges_ns(self) -> list[float]:
        """Edges of the bins: one more than these."""
        return [0.0, *(self.tick_ns * (1 << number) for number in range(HISTOGRAM_BINS))]


@dataclass(frozen=True)
class ClassLook:
    """A class at a moment; rates are of the time since the look before, None in the first."""

    number: int
    name: str
    match: str | None
    counts: ClassCounts
    queue: ClassQueue
    delays: ClassDelays
    arrived_bps: float | None
    sent_bps: float | None


@dataclass(frozen=True)
class DirectionLook:
    """A direction at a moment.

    Attributes
    ----------
    way : str
    seconds : float
        Since the start.
    state : int
        How many changes have taken place.
    is_running, is_link_up : bool
        Of the port out.
    damaged, overflows, management : int
        Frames that no class has: with bad FCS, runts and giants; that found no space on their way in; for the probe itself.
    classes : tuple of ClassLook
    """

    way: str
    seconds: float
    state: int
    is_running: bool
    is_link_up: bool
    damaged: int
    overflows: int
    management: int
    classes: tuple[ClassLook, ...]


@dataclass(frozen=True)
class EmulationLook:
    """All directions at a moment; ``back`` is None where the probe has one alone. ``changes``: how many are asked for."""

    there: DirectionLook
    back: DirectionLook | None
    changes: int

    @property
    def ways(self) -> tuple[DirectionLook, ...]:
        """Those that there are."""
        return (self.there,) if self.back is None else (self.there, self.back)


@dataclass(frozen=True)
class EmulationResult:
    """What came of a network.

    Attributes
    ----------
    network : Network or None
        None: another host began it.
    last : EmulationLook
    samples : tuple of EmulationLook
        Looks on the way, some hundred at most.
    end : str
        ``done``, ``finished`` (its stations had done all), ``stopped``, ``interrupted`` or ``detached``.
    clock_state : str
    notes : tuple of str
        What the reader must know, a sentence each.
    stations : StationsReport or None
        What the stations at the ports of a simulated emulator saw.
    """

    network: Network | None
    last: EmulationLook
    samples: tuple[EmulationLook, ...]
    end: str
    clock_state: str
    notes: tuple[str, ...]
    stations: StationsReport | None = None

    def document(self) -> dict[str, Any]:
        """Return the result as what JSON can hold."""
        return {
            "network": network_document(self.network) if self.network else None,
            "end": self.end,
            "clock_state": self.clock_state,
            "notes": list(self.notes),
            **({"stations": self.stations.document()} if self.stations else {}),
            **look_document(self.last),
        }


def _count(key: str, head: str, title: str, is_fault: bool = True) -> Column:
    return Column(key, head, title, is_fault=is_fault, of=lambda one: getattr(one.counts, key))


def _queue(key: str, head: str, title: str) -> Column:
    return Column(key, head, title, of=lambda one: getattr(one.queue, key))


def _delay(key: str, title: str) -> Column:
    return Column(key, "", title, 6, 1e6, of=lambda one: getattr(one.delays, key))


#: Of a class.
CLASSES = Columns(
    Column("name", "class", "Class"),
    _count("arrived", "arrived", "Arrived", False),
    _count("sent", "sent", "Sent", False),
    _count("dropped", "dropped", ""),
    _count("discarded", "discarded", "Discarded"),
    _count("lost", "lost", "Lost"),
    _count("full", "full", "Queue full"),
    _count("early", "early", "RED"),
    _count("no_store", "no store", "No store"),
    _count("duplicated", "", "Twice"),
    _count("corrupted", "", "Corrupt"),
    _count("held_back", "", "Held back"),
    _count("late", "late", "Late"),
    _count("background", "background", "Background", False),
    _count("background_dropped", "dropped", "Of it\ndropped", False),
    Column("arrived_bps", "Mb/s in", "", 3, MEGA),
    Column("sent_bps", "Mb/s out", "", 3, MEGA),
    _queue("frames", "frames", "Waits"),
    _queue("octets", "octets", ""),
    _queue("most", "most", "Waited\nat most"),
    _delay("least_ns", "Least\ndelay, ms"),
    _delay("most_ns", "Greatest\ndelay, ms"),
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

    def __init__(self, number: int, name: str, match: str | None, longest: int) -> None:
        self.number, self.name, self.match = number, name, match
        self._counts = Extended(longest)
        self._bins = Extended(longest)
        self._before: tuple[int, ClassCounts] | None = None

    def look(self, words: Sequence[int], now: int, tick_ns: Fraction) -> ClassLook:
        """Return the class at tick ``now`` from the words of its memory."""
        totals = self._counts.take(words[: len(ClassCounter)])
        counts = ClassCounts(**{one.name.lower(): totals[one] for one in ClassCounter})  # type: ignore[arg-type]
        bins = self._bins.take(words[HISTOGRAM_WORD:COUNTER_WORDS])
        gauges = {one: words[one] for one in ClassGauge}
        ends = [
            None if gauges[ClassGauge.DELAY_LEAST] == NO_LIMIT else float(gauges[one] * tick_ns)
            for one in (ClassGauge.DELAY_LEAST, ClassGauge.DELAY_MOST)
        ]
        delays = ClassDelays(
            ends[0],
            ends[1],
            float(gauges[ClassGauge.LATE_MOST] * tick_ns),
            tuple(count or 0 for count in bins),
            float(tick_ns),
        )
        queue = ClassQueue(*(gauges[one] for one in list(ClassGauge)[:3]))
        before, self._before = self._before, (now, counts)
        rates = [_rate(before, now, counts, name, tick_ns) for name in ("arrived_octets", "sent_octets")]
        return ClassLook(self.number, self.name, self.match, counts, queue, delays, *rates)


def have_done(stations: Stations, look: EmulationLook) -> bool:
    """Return whether simulated stations have done all, and nothing of theirs waited or was under way at a look before."""
    report = stations.report()
    if not report.are_done:
        return False
    for port, way in enumerate(look.ways):
        counts = [one.counts for one in way.classes]
        taken = sum(one.arrived for one in counts) + way.damaged + way.overflows
        left = sum(one.arrived - one.dropped + one.duplicated for one in counts)
        sent, seen = report.ports[port], report.ports[1 - port]
        if (sent.sent + sent.played, left) != (taken, seen.frames + seen.wrong):
            return False
    return True


def look_document(look: EmulationLook) -> dict[str, Any]:
    """Return a look as plain data."""
    found = asdict(look)
    for way in look.ways:
        for one, plain in zip(way.classes, found[way.way]["classes"], strict=True):
            del plain["delays"]["tick_ns"]
            plain["delays"]["edges_ns"] = one.delays.edges_ns
            plain["delays"]["counts"] = list(one.delays.counts)
    return found


def notes_of(look: EmulationLook) -> list[str]:
    """Return what the reader of the figures must know, a sentence each."""
    notes = []
    for way in look.ways:
        for one in way.classes:
            where = f"'{one.name}' of '{way.way}'"
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
                notes.append(f"the octets of {where} are not known: the host didn't look often enough")
        events: Mapping[str, int] = {
            "with bad FCS, too short or too long": way.damaged,
            "for want of space": way.overflows,
        }
        notes += [
            f"{count:,} frames of '{way.way}' were dropped on their way in, {why}"
            for why, count in events.items()
            if count
        ]
    return notes


# # #


def _rate(
    before: tuple[int, ClassCounts] | None, now: int, counts: ClassCounts, name: str, tick_ns: Fraction
) -> float | None:
    """Return the rate (b/s) of a counter of octets since the look before."""
    if before is None or now <= before[0]:
        return None
    then, value = getattr(before[1], name), getattr(counts, name)
    return None if then is None or value is None else float(8 * (value - then) * 10**9 / ((now - before[0]) * tick_ns))
