# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The simulated wires in plain Python: when each frame arrives, and what befell it. All times in ticks of 8 ns.

Written apart from sim/system/harness/wire/wire.cpp, from the same page (docs/simulation.md): exact fractions instead of scaled
integers, and whole traffic at once instead of event by event.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil
from urllib.parse import parse_qsl

# Random numbers -----------------------------------------------------------------------------------


MASK = 2**64 - 1
PPB = 10**9


class SplitMix:
    """SplitMix64 with one state for each seed and stream.

    Parameters
    ----------
    seed : of the wire, 0 to 2^64 - 1.
    stream : 16 * port + purpose; purpose 0 frames, 1 cross traffic of the first hop, 2 of the last.

    Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """

    def __init__(self, seed: int, stream: int) -> None:
        self._state = seed ^ ((stream + 1) * 0xD1B54A32D192ED03 & MASK)
        self.next()  # The first value of near seeds is near; it is thrown away.

    def next(self) -> int:
        """Return 64 bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & MASK
        z = self._state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        return z ^ z >> 31

    def below(self, bound: int) -> int:
        """Return a number from 0 to bound - 1."""
        return self.next() * bound >> 64

    def happens(self, ppb: int) -> bool:
        """Return True in ``ppb`` of 10^9 cases."""
        return self.below(PPB) < ppb

    def exponential(self) -> int:
        """Return an exponential variate of mean 1, times 2^64.

        Source: von Neumann, "Various techniques used in connection with random digits", 1951: only comparisons,
        so it is exact on every machine.
        """
        whole = 0
        while True:
            first = self.next()
            run = [first]
            while (value := self.next()) < run[-1]:
                run.append(value)
            if len(run) % 2:
                return (whole << 64) + first
            whole += 1


# Wires --------------------------------------------------------------------------------------------


TICK_NS = 8
LINE_RATE = 10**9
PREAMBLE, FCS, IFG = 8, 4, 12
SHORTEST = 64  # Octets with FCS: a cut-through wire corrupts only among these.
DELIVERED, LOST, QUEUE_DROP, DUPLICATE, CORRUPTED, CUT, IN_FLIGHT, REFUSED, TAKEN = range(9)
STREAMS = 16
FRAMES, CROSS_FIRST, CROSS_LAST = range(3)


@dataclass(frozen=True)
class Wire:
    """Describes a wire: delays in ticks, parts in ppb, rate in bits a second."""

    kind: str = "loopback"
    delay: int = 1
    latency: int = 375
    latency2: int = 0
    rate: int = LINE_RATE
    queue: int = 64
    loss: int = 0
    corrupt: int = 0
    duplicate: int = 0
    reorder: int = 0
    reorder_by: int = 250
    cross: int = 0
    cross2: int = 0
    cross_size: int = 1514
    cross_model: str = "poisson"
    cross_deliver: int = 0
    cut_after: int = 0
    seed: int = 1

    @property
    def two_hops(self) -> bool:
        """Whether frames pass a slow or loaded first hop and then one of line rate."""
        return self.rate != LINE_RATE or self.cross2 > 0


@dataclass(frozen=True)
class Departure:
    """A frame that left the probe: tick of its first octet, all its octets from preamble to FCS, those before the SFD."""

    first_tick: int
    octets: int
    before_sfd: int = PREAMBLE - 1

    @property
    def sfd_tick(self) -> int:
        """Tick of the SFD on the pins."""
        return self.first_tick + self.before_sfd

    @property
    def content(self) -> int:
        """Octets from the destination MAC to the FCS."""
        return self.octets - self.before_sfd - 1


@dataclass(frozen=True)
class Arrival:
    """A frame that came to the probe; ``number`` is that of its departure, ``flipped`` the octet and bit gone wrong."""

    number: int
    sfd_tick: int
    fate: int
    flipped: tuple[int, int] | None = None


@dataclass
class Passage:
    """Holds the outcomes of all frames of one direction."""

    fates: list[int]  # Of each departure.
    arrivals: list[Arrival] = field(default_factory=list)  # In the order of the pins.
    cross: list[int] = field(default_factory=list)  # SFD ticks of cross frames, where they are delivered.


# Spec ---------------------------------------------------------------------------------------------


def scaled(text: str, units: dict[str, int]) -> Decimal:
    """Return a number in the unit that it names."""
    for unit in sorted(units, key=len, reverse=True):
        if text.endswith(unit):
            return Decimal(text[: len(text) - len(unit)]) * units[unit]
    raise ValueError(text)


def ticks_of(text: str) -> int:
    """Return a time in ticks, half a tick upwards."""
    ns = scaled(text, {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9})
    return int((ns / TICK_NS + Decimal("0.5")) // 1)


def part_of(text: str) -> int:
    """Return a part of one, or a percentage, in ppb."""
    return int(Decimal(text[:-1]) * PPB / 100 if text.endswith("%") else Decimal(text) * PPB)


def rate_of(text: str) -> int:
    """Return a rate (bits a second)."""
    return int(scaled(text, {"G": 10**9, "M": 10**6, "k": 10**3, "": 1}))


def parse(spec: str) -> Wire:
    """Return the wire of a valid spec."""
    readers: dict[str, Callable[[str], int | str]] = {
        **dict.fromkeys(("delay", "latency", "latency2", "reorder_by"), ticks_of),
        **dict.fromkeys(("loss", "corrupt", "duplicate", "reorder", "cross", "cross2"), part_of),
        "rate": rate_of,
        "cross_model": str,
    }
    kind, _, options = spec.partition("?")
    values = {name: readers.get(name, int)(text) for name, text in parse_qsl(options, strict_parsing=bool(options))}
    known = {entry.name for entry in fields(Wire)}
    if not set(values) <= known:
        raise ValueError(spec)
    return replace(Wire(kind=kind), **values)  # type: ignore[arg-type]


# Queue --------------------------------------------------------------------------------------------


class CrossTraffic:
    """Arrival ticks of the cross traffic of one hop; a tick is the floor of a time kept in 2^-32 ticks."""

    def __init__(self, wire: Wire, load: int, octet_ticks: Fraction, stream: int) -> None:
        self._random = SplitMix(wire.seed, stream)
        self._poisson = wire.cross_model == "poisson"
        self._mean = 0
        if load:
            octets = wire.cross_size + FCS + PREAMBLE + IFG
            self._mean = int(octets * octet_ticks * 2**32 * Fraction(PPB, load))
            self._time = self._interval() if self._poisson else self._mean * (self._random.next() >> 32) >> 32

    def _interval(self) -> int:
        return self._mean * (self._random.exponential() >> 32) >> 32 if self._poisson else self._mean

    def until(self, tick: int) -> Iterable[int]:
        """Yield the arrival ticks up to ``tick``, each once."""
        while self._mean and self._time >> 32 <= tick:
            yield self._time >> 32
            self._time += self._interval()


class Queue:
    """An output queue of so many frames, served in order at a rate. Octets count from preamble to FCS; IFG comes on top."""

    def __init__(self, wire: Wire, rate: int, load: int, stream: int) -> None:
        self._octet_ticks = Fraction(LINE_RATE, rate)
        self._limit = wire.queue
        self._cross = CrossTraffic(wire, load, self._octet_ticks, stream)
        self._cross_octets = wire.cross_size + FCS + PREAMBLE
        self._waiting: deque[Fraction] = deque()  # Starts of those that have not started.
        self._free = Fraction(0)
        self.cross_starts: list[Fraction] = []

    def cross_until(self, tick: int) -> None:
        """Serve the cross traffic that has come by ``tick``."""
        for arrival in self._cross.until(tick):
            service = self._serve(arrival, self._cross_octets)
            if service:
                self.cross_starts.append(service[0])

    def serve(self, tick: int, octets: int) -> tuple[Fraction, Fraction] | None:
        """Return start and end of a frame that comes at ``tick``; None when the queue is full."""
        self.cross_until(tick)
        return self._serve(tick, octets)

    def _serve(self, tick: int, octets: int) -> tuple[Fraction, Fraction] | None:
        while self._waiting and self._waiting[0] <= tick:
            self._waiting.popleft()
        if len(self._waiting) >= self._limit:
            return None
        start = max(Fraction(tick), self._free)
        end = start + octets * self._octet_ticks
        self._free = end + IFG * self._octet_ticks
        self._waiting.append(start)
        return start, end


# Wires --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draws:
    """Draws what chance decides of one frame; all draws are always made, in this order."""

    lost: bool
    corrupt: bool
    where: int
    duplicate: bool = False
    reorder: bool = False


def _draw(random: SplitMix, wire: Wire, corruptible: int) -> Draws:
    lost, corrupt = random.happens(wire.loss), random.happens(wire.corrupt)
    where = random.below(8 * corruptible)
    if wire.kind != "switch":
        return Draws(lost, corrupt, where)
    return Draws(lost, corrupt, where, random.happens(wire.duplicate), random.happens(wire.reorder))


def _fate(wire: Wire, number: int, draws: Draws) -> int:
    if wire.cut_after and number >= wire.cut_after:
        return CUT
    if draws.lost:
        return LOST
    return CORRUPTED if draws.corrupt else DELIVERED


def _flipped(fate: int, draws: Draws) -> tuple[int, int] | None:
    return (draws.where // 8, draws.where % 8) if fate == CORRUPTED else None


def _cable(wire: Wire, port: int, departures: list[Departure]) -> Passage:
    random = SplitMix(wire.seed, STREAMS * port + FRAMES)
    passage = Passage([])
    for number, departure in enumerate(departures):
        draws = _draw(random, wire, SHORTEST)
        fate = _fate(wire, number, draws)
        if fate == CORRUPTED and draws.where // 8 >= departure.content:
            fate = DELIVERED  # A runt ended before that octet.
        passage.fates.append(fate)
        if fate in (DELIVERED, CORRUPTED):
            passage.arrivals.append(Arrival(number, departure.sfd_tick + wire.delay, fate, _flipped(fate, draws)))
    return passage


@dataclass(frozen=True)
class _Copy:
    """A frame on its way through the switch: tick at which it reaches the next queue."""

    tick: int
    number: int
    is_duplicate: bool


def _enter(wire: Wire, port: int, departures: list[Departure]) -> tuple[list[int], list[Draws], list[_Copy]]:
    random = SplitMix(wire.seed, STREAMS * port + FRAMES)
    fates, chances, copies = [], [], []
    for number, departure in enumerate(departures):
        draws = _draw(random, wire, departure.content)
        fate = _fate(wire, number, draws)
        fates.append(fate)
        chances.append(draws)
        if fate in (CUT, LOST):
            continue
        tick = departure.first_tick + departure.octets + wire.latency + (wire.reorder_by if draws.reorder else 0)
        copies.append(_Copy(tick, number, False))
        if draws.duplicate:
            copies.append(_Copy(tick, number, True))
    return fates, chances, copies


def _switch(wire: Wire, port: int, departures: list[Departure], until: int) -> Passage:
    fates, chances, copies = _enter(wire, port, departures)
    passage = Passage(fates)
    if wire.two_hops:
        first = Queue(wire, wire.rate, wire.cross, STREAMS * port + CROSS_FIRST)
        onward = []
        for copy in sorted(copies, key=lambda copy: copy.tick):
            service = first.serve(copy.tick, departures[copy.number].octets)
            if service:
                onward.append(replace(copy, tick=ceil(service[1]) + wire.latency2))
            elif not copy.is_duplicate:
                fates[copy.number] = QUEUE_DROP
        copies = onward
    last = Queue(wire, LINE_RATE, wire.cross2 if wire.two_hops else wire.cross, STREAMS * port + CROSS_LAST)
    for copy in sorted(copies, key=lambda copy: copy.tick):
        departure, draws = departures[copy.number], chances[copy.number]
        service = last.serve(copy.tick, departure.octets)
        if service:
            fate = DUPLICATE if copy.is_duplicate else fates[copy.number]
            flipped = _flipped(CORRUPTED if draws.corrupt else fate, draws)
            passage.arrivals.append(Arrival(copy.number, int(service[0]) + departure.before_sfd, fate, flipped))
        elif not copy.is_duplicate:
            fates[copy.number] = QUEUE_DROP
    if wire.cross_deliver:
        last.cross_until(until)
        passage.cross = [int(start) + PREAMBLE - 1 for start in last.cross_starts]
    return passage


def passage(spec: str, port: int, departures: list[Departure], until: int = 0) -> Passage:
    """Return what a wire does with the frames that leave the probe at ``port``.

    Parameters
    ----------
    spec : valid wire spec.
    port : test port that the frames leave; it names the random streams.
    departures : all frames of this direction, in order.
    until : last tick of cross traffic that has reached its queue, where it is delivered.

    Limits: equal clocks, links up, nothing injected into the receiving port, no management in band.
    """
    wire = parse(spec)
    return _switch(wire, port, departures, until) if wire.kind == "switch" else _cable(wire, port, departures)
