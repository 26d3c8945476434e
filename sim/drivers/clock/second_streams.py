# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Receivers of all kinds and with all faults on a serial line, each from a seed; truth is the second that its pulses begin.

The line brings octet by octet at its baud rate, so a receiver that says too much is late, and later from epoch to epoch.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.drivers.clock.clock_runs import UNSURE, Feed
from liteprobe.sim.models.clock.receiver import sentence, tim_tp, timels

EARLIEST_MS = 10  # After its pulse, a sentence that names it.
FIRST_MS = 5000
LOOK_MS = 990  # After its pulse: what it leads to is known by then.
TAI_UTC, GPS_UTC = 37, 18
POSITION = "5542.1234,N,01233.5678,E"


@dataclass
class Says:
    """Holds what a receiver says in one epoch, and when it begins after its pulse."""

    late_ms: float = 100.0
    octets: bytes = b""


@dataclass(frozen=True)
class Kind:
    """Describes a receiver that is well: what it says each second, in this order, at which baud rate, how long after its pulse."""

    order: tuple[str, ...]
    baud: int
    late_ms: float
    jitter_ms: float = 5.0
    talker: str = "GN"
    rate_hz: int = 1
    witness: str = ""  # TIM-TP in "gps" or "utc" time, and NAV-TIMELS each ten seconds; "": none.

    def text(self, name: str, utc: datetime, fraction: int = 0, fix: bool = True) -> bytes:
        """Return a sentence; ``fraction``: tenths of a second."""
        clock = f"{utc:%H%M%S}.{fraction}0"
        match name:
            case "RMC":
                body = f"{clock},{'A' if fix else 'V'},{POSITION},0.01,,{utc:%d%m%y},,,{'A' if fix else 'N'},V"
            case "GGA":
                body = f"{clock},{POSITION},{1 if fix else 0},12,0.80,10.0,M,40.0,M,,"
            case "ZDA":
                body = f"{clock},{utc:%d},{utc:%m},{utc:%Y},00,00"
            case "PUBX":
                body = f"{clock},5542.12340,N,01233.56780,E,40.123,G3,2.1,2.0,0.007,77.52,-0.007,,0.92,1.19,0.77,9,0,0"
                return sentence(f"PUBX,00,{body}")
            case "GSA":
                body = "A,3,05,13,15,18,20,24,28,29,,,,,1.19,0.77,0.92,1"
            case "VTG":
                body = "77.52,T,,M,0.004,N,0.008,K,A"
            case _:
                body = "3,1,12,05,51,287,38,13,72,118,41,15,40,060,35,18,12,311,30,1"
        return sentence(f"{self.talker}{name},{body}")

    def says(self, utc: datetime, generator: random.Random, fix: bool = True) -> Says:
        """Return what it says of the second that begins at ``utc``, when nothing is wrong."""
        octets = b"".join(self.text(name, utc, 0, fix) for name in self.order)
        return Says(self.late_ms + generator.uniform(0, self.jitter_ms), octets)

    @property
    def line_ms(self) -> float:
        """Return how long the line takes for one epoch."""
        return 10_000 * len(self.says(datetime(2026, 3, 4, tzinfo=UTC), random.Random(0)).octets) / self.baud


@dataclass
class Stream:
    """Holds pulses and octets, what each pulse begins, and when looks are."""

    start: datetime
    seconds: int
    baud: int
    events: list[tuple[float, int, bytes | None]] = field(default_factory=list)  # Time, place among equals, octets.

    def pulse(self, number: int, late_ms: float = 0.0) -> None:
        """Let the pulse of second ``number`` come."""
        self.events.append((FIRST_MS + 1000 * number + late_ms, 0, None))

    def say(self, number: int, late_ms: float, octets: bytes) -> None:
        """Put octets on the line so long after second ``number`` begins."""
        self.events.append((FIRST_MS + 1000 * number + late_ms, 1, octets))

    def utc(self, number: int) -> datetime:
        """Return the second that a pulse begins."""
        return self.start + timedelta(seconds=number)

    def feed(self, feed: Feed) -> list[int]:
        """Feed it, and return which answers are those of the looks, one a second."""
        feed.restart(self.baud)
        looks = []
        look_ms = FIRST_MS + LOOK_MS
        last_ms = FIRST_MS + 1000 * (self.seconds - 1) + LOOK_MS
        for at_ms, _, octets in [*sorted(self.events), (last_ms + 1, 2, b"")]:
            while look_ms <= min(at_ms, last_ms):
                feed.octets(look_ms, b"")
                looks.append(feed.count - 1)
                look_ms += 1000
            if octets is None:
                feed.pulse(round(at_ms))
            elif octets:
                feed.octets(round(at_ms), octets)
        return looks

    def tai(self) -> NDArray[np.int64]:
        """Return the second of TAI of each look."""
        return np.arange(self.seconds) + int(self.start.timestamp()) + TAI_UTC


def run(streams: Iterable[Stream], **options: datetime) -> list[NDArray[np.void]]:
    """Run streams, one after the other in one process of the sanitized library; return what is known at their looks."""
    feed = Feed()
    looks = [stream.feed(feed) for stream in streams]
    answers = feed.run(TAI_UTC, **options)
    return [answers[one] for one in looks]


def silent_wrong(stream: Stream, found: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return the looks at which TAI is believed, wrong, and no fault says so (that a leap second may have been is none)."""
    is_wrong = found["tai"].astype(np.int64) != stream.tai()
    return np.asarray((found["is_known"] == 1) & is_wrong & (found["faults"] & ~np.uint32(UNSURE) == 0))


# Receivers that are well --------------------------------------------------------------------------

ORDERS = (
    ("RMC", "VTG", "GGA", "GSA", "GSV"),  # u-blox
    ("GGA", "GSA", "GSV", "RMC"),  # SiRF, MTK
    ("GGA", "GSA", "GSV", "GSV", "GSV", "RMC", "ZDA"),
    ("PUBX", "RMC"),
    ("RMC",),
    ("ZDA", "GGA"),
    ("GSV", "GSV", "GSA", "RMC"),
    ("ZDA",),
)
BAUDS = (4800, 9600, 38400, 115200)
TALKERS = ("GN", "GP", "BD")


def receiver(generator: random.Random) -> Kind:
    """Return any receiver whose line has time for what it says, and that begins within the time after its pulse."""
    while True:
        kind = Kind(
            generator.choice(ORDERS),
            generator.choice(BAUDS),
            generator.choice((15.0, 60.0, 150.0, 400.0, 650.0, generator.uniform(12, 780))),
            generator.choice((0.0, 5.0, 15.0)),
            generator.choice(TALKERS),
            generator.choice((1, 1, 1, 2, 5, 10)),
            generator.choice(("", "", "gps", "utc")),
        )
        if kind.rate_hz * kind.line_ms < 900 and kind.late_ms < 1000 / kind.rate_hz and kind.jitter_ms < 20:
            return kind


def healthy_kinds(count: int) -> list[Kind]:
    """Return so many kinds: each order at each baud rate that has time for it, then any."""
    generator = random.Random(count)
    kinds = [Kind(order, baud, late_ms) for late_ms in (60.0, 15.0, 650.0) for baud in BAUDS for order in ORDERS]
    kinds = [kind for kind in kinds if kind.line_ms < 900][: max(count // 2, len(ORDERS))]
    return kinds + [receiver(generator) for _ in range(count - len(kinds))]


def healthy(kind: Kind, start: datetime, seconds: int, seed: int) -> Stream:
    """Return what a receiver says that is well."""
    generator = random.Random(seed)
    stream = Stream(start, seconds, kind.baud)
    for number in range(seconds):
        stream.pulse(number, generator.uniform(-0.4, 0.4))
        say_epoch(stream, kind, number, kind.says(stream.utc(number), generator))
    return stream


def say_epoch(stream: Stream, kind: Kind, number: int, says: Says) -> None:
    """Put an epoch on the line, and what comes between it and the next."""
    stream.say(number, says.late_ms, says.octets)
    utc = stream.utc(number)
    for part in range(1, kind.rate_hz):
        tenth = part * 10 // kind.rate_hz
        octets = b"".join(kind.text(name, utc, tenth) for name in kind.order if name not in ("GSV", "GSA"))
        stream.say(number, 1000 * part / kind.rate_hz + says.late_ms, octets)
    if kind.witness:
        late_ms = says.late_ms + 1
        stream.say(number, late_ms, tim_tp(utc + timedelta(seconds=1), 0, gps_utc=GPS_UTC if kind.witness == "gps" else None))
        if number % 10 == 3:
            stream.say(number, late_ms, timels(GPS_UTC, 0, 0))


# Receivers with faults ----------------------------------------------------------------------------

FAULTS = ("late", "early", "missing", "doubled", "wrong", "stale", "cut", "no_fix", "no_pulse")


@dataclass(frozen=True)
class Case:
    """Holds a stream with faults, and the number of its first second that is named right after its pulse."""

    stream: Stream
    name: str
    first_right: int


def faulty(seed: int, seconds: int = 24) -> Case:
    """Return any receiver, or three on one line, with any faults, from a seed."""
    generator = random.Random(seed)
    kind = receiver(generator)
    start = datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=generator.randrange(15_000_000))
    stream = Stream(start, seconds, kind.baud)
    share = generator.choice((0.0, 0.05, 0.2, 0.5))
    faults = generator.sample(FAULTS, generator.randint(1, 4))
    wrong_s = generator.choice((-2, -1, 1, 2, 18, 3600))
    others = [talker for talker in TALKERS if talker != kind.talker][: generator.choice((0, 0, 0, 1, 2))]
    strangers = [
        (
            Kind(generator.choice(ORDERS[3:6]), kind.baud, generator.uniform(10, 790), 5.0, talker),
            generator.choice((0, 0, -1, 1, 18)),
        )
        for talker in others
    ]
    falling_ms = generator.choice((0, 0, 0, 0, 100, 200))
    overload = generator.random() < 0.1
    if overload:
        kind = Kind((*kind.order, *["GSV"] * generator.randint(4, 16)), kind.baud, kind.late_ms, 5.0, kind.talker)
    first_right = seconds
    for number in range(seconds):
        fault = generator.choice(faults) if generator.random() < share else ""
        if fault != "no_pulse":
            stream.pulse(number, falling_ms + generator.uniform(-0.4, 0.4))
        off_s = {"wrong": wrong_s, "stale": -1}.get(fault, 0)
        says = kind.says(stream.utc(number + off_s), generator, fault != "no_fix")
        if fault == "late":
            says.late_ms += generator.choice((200, 600, 900, 1000, 1500))
        elif fault == "early":
            says.late_ms -= generator.choice((100, 300, 900))
        elif fault == "doubled":
            says.octets += says.octets
        elif fault == "cut":
            says.octets = says.octets[: generator.randrange(len(says.octets))]
        elif fault == "missing":
            says.octets = b""
        says.late_ms = max(says.late_ms, 1.0 - 1000 * number - FIRST_MS + 10)
        if (not fault or fault == "doubled") and says.late_ms >= falling_ms + EARLIEST_MS:
            first_right = min(first_right, number)
        say_epoch(stream, kind, number, says)
        for stranger, off_s in strangers:
            other = stranger.says(stream.utc(number + off_s), generator)
            stream.say(number, other.late_ms, other.octets)
    name = f"{kind}, {share:.0%} of {faults} by {wrong_s} s, PPS {falling_ms} ms late, beside {strangers}"
    return Case(stream, name, first_right)
