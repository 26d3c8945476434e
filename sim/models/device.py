# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The simulated devices in plain Python: what each frame meets, and what a device can do at all.

Written apart from sim/system/harness/wire/device.cpp, from the same page (docs/simulation.md, "Devices"): exact fractions in
the place of scaled integers, and whole traffic at once instead of event by event. All times in ticks of 8 ns.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from urllib.parse import parse_qsl

from liteprobe.sim.models.switch import (
    CORRUPTED,
    DELIVERED,
    DUPLICATE,
    FRAMES,
    IFG,
    LINE_RATE,
    LOST,
    PPB,
    QUEUE_DROP,
    REFUSED,
    SHORTEST,
    STREAMS,
    Arrival,
    Departure,
    SplitMix,
    part_of,
    rate_of,
    ticks_of,
)

TICKS_A_SECOND = 125_000_000
LINE_OVERHEAD = 24  # Octets of the line beside a frame without its FCS: preamble, SFD, FCS, gap.
FCS = 4
ENDLESS = 10**12  # Frames: more than any trial has.


@dataclass(frozen=True)
class Window:
    """A part of time, in ticks: from ``at`` on for ``length``; again every ``every``, where that isn't 0."""

    length: int = 0
    at: int = 0
    every: int = 0

    def last_begin(self, tick: Fraction | int) -> int | None:
        """Return when the last one up to ``tick`` began; None: none has."""
        if not self.length or tick < self.at:
            return None
        return self.at + (int(tick) - self.at) // self.every * self.every if self.every else self.at

    def end_if_in(self, tick: Fraction | int) -> int | None:
        """Return the end of the one that ``tick`` is in; None: it is in none."""
        begin = self.last_begin(tick)
        return begin + self.length if begin is not None and tick < begin + self.length else None

    def next_begin(self, tick: int) -> int | None:
        """Return when the first one after ``tick`` begins; None: none does."""
        if not self.length:
            return None
        if tick < self.at:
            return self.at
        return self.at + ((tick - self.at) // self.every + 1) * self.every if self.every else None


@dataclass(frozen=True)
class Service:
    """A bandwidth profile: rates in bits a second, bursts in octets."""

    match: str = "all"
    value: int = 0
    cir: int = 0
    cbs: int = 0
    eir: int = 0
    ebs: int = 0
    couple: int = 0


@dataclass(frozen=True)
class Device:
    """Describes a device: delays in ticks, parts in ppb, rate in bits a second, sizes in octets with FCS."""

    mode: str = "store"
    latency: int = 375
    rate: int = LINE_RATE
    pps: int = 0
    queue: int = 0
    buffer: int = 0
    loss: int = 0
    corrupt: int = 0
    cut_after: int = 0
    seed: int = 1
    fault_size: int = 0
    load: int = 0
    load_burst: int = 3076
    pause: Window = Window()
    reboot: Window = Window()
    does: str = "forward"
    copies: int = 1
    services: tuple[Service, ...] = ()
    table: int = 0
    learn: int = 0
    age: int = 0
    largest: int = 0
    storm: int = 0

    def service_ticks(self, length: int) -> Fraction:
        """Return how long the server has one frame of ``length`` octets without FCS."""
        line = Fraction((length + LINE_OVERHEAD) * LINE_RATE, self.rate)
        return max(line, Fraction(TICKS_A_SECOND, self.pps)) if self.pps else line

    def frames_waiting(self, length: int) -> int:
        """Return how many frames of ``length`` octets without FCS may wait."""
        of_octets = self.buffer // (length + FCS) if self.buffer else ENDLESS
        return min(self.queue or (ENDLESS if self.buffer else 64), of_octets)


def parse(spec: str) -> Device:
    """Return the device of a valid spec, ``device?rate=600M&buffer=64000``."""
    kind, _, options = spec.partition("?")
    if kind not in ("device", "router"):
        raise ValueError(spec)
    texts = dict(parse_qsl(options, strict_parsing=bool(options)))
    readers: dict[str, Callable[[str], int | str]] = {
        **dict.fromkeys(("latency", "age"), ticks_of),
        **dict.fromkeys(("loss", "corrupt", "load"), part_of),
        **dict.fromkeys(("rate", "pps", "learn", "storm"), rate_of),
        **dict.fromkeys(("mode", "does"), str),
    }
    values: dict[str, object] = {}
    services: dict[int, Service] = {}
    for name, text in texts.items():
        base, _, what = name.partition("_")
        if name.startswith("service"):
            services[len(services)] = _service(text)
        elif base in ("pause", "reboot") and what in ("", "at", "every"):
            window = values.get(base, Window())
            values[base] = replace(window, **{what or "length": ticks_of(text)})  # type: ignore[type-var]
        else:
            values[name] = readers.get(name, int)(text)
    return Device(**values, services=tuple(services.values()))  # type: ignore[arg-type]


def _service(text: str) -> Service:
    words = dict(word.split(":") for word in text.split(","))
    match = next(name for name in ("all", "vlan", "dscp", "port") if name in words)
    rates = {name: rate_of(words[name]) for name in ("cir", "eir") if name in words}
    counts = {name: int(words[name]) for name in ("cbs", "ebs", "couple") if name in words}
    return Service(match, int(words[match]), **rates, **counts)


# What a device can do -----------------------------------------------------------------------------


def throughput(device: Device, length: int) -> Fraction:
    """Return the greatest load, as a part of the line, at which no frame of one length is ever lost; 0: there is none.

    Exact for equal intervals, but for a device that pauses: its queue may end up to one frame off.

    Parameters
    ----------
    device : see docs/simulation.md.
    length : of the frames, without FCS.

    Source: arithmetic; RFC 2544, section 26.1 for what it stands for.
    """
    if device.does != "forward" or device.loss or device.fault_size == length + FCS or device.reboot.length:
        return Fraction(0)
    if device.largest and length + FCS > device.largest:
        return Fraction(0)
    octets = length + LINE_OVERHEAD
    served = octets / device.service_ticks(length)
    limits = [Fraction(1), served]
    if device.load:
        limits.append(Fraction(device.load, PPB) if device.load_burst >= octets else Fraction(0))
    if device.pause.length:
        share = Fraction(device.pause.length, device.pause.every) if device.pause.every else Fraction(0)
        limits.append(served * (1 - share))
        limits.append(Fraction(device.frames_waiting(length) * octets, device.pause.length))
    for service in device.services:
        if service.match == "all":
            passes = Fraction(service.cir * (service.cbs >= length + FCS) + service.eir * (service.ebs >= length + FCS))
            limits.append(passes / LINE_RATE * octets / (length + FCS))
    return min(limits)


def latency_ticks(device: Device, length: int) -> int:
    """Return the delay, SFD to SFD, of a frame that finds the device idle; the delay of every frame up to the throughput.

    Frames that come closer than the server's time wait on top of it.
    """
    received = 8 + length + FCS if device.mode == "store" else 0
    return received + device.latency


def burst(device: Device, length: int) -> int:
    """Return the longest burst of frames, back to back at the line's rate, of which none is lost; ``ENDLESS``: any.

    Frame k (from 0) comes at k A, and starts at k S: it finds k - 1 - floor(k A / S) frames that wait.

    Limits: nothing is lost by chance, and the device doesn't pause.
    """
    interval = length + LINE_OVERHEAD
    service = device.service_ticks(length)
    found = ENDLESS
    if service > interval:
        room = device.frames_waiting(length)
        found = bisect_left(range(ENDLESS), room, key=lambda k: k - 1 - int(k * interval / service))
    if device.load:
        refill = 1 - Fraction(device.load, PPB)
        spare = device.load_burst - interval
        by_load = ENDLESS if not refill else int(spare / (interval * refill)) + 1
        found = min(found, by_load if spare >= 0 else 0)
    return 0 if throughput(replace(device, load=0), length) == 0 else found


# What each frame meets ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame(Departure):
    """A frame that left the probe, and what a policer sees of it."""

    labels: tuple[tuple[str, int], ...] = ()  # Such as ``("vlan", 100)``.
    is_sound: bool = True  # Its FCS is right.


@dataclass
class Outcome:
    """Holds what befell the frames of both directions."""

    fates: list[list[int]]  # Of each departure, by port.
    arrivals: list[list[Arrival]] = field(
        default_factory=lambda: [[], []]
    )  # At each port; ``number`` is of its origin.
    origins: list[list[int]] = field(default_factory=lambda: [[], []])  # The port that each of them left.


class _Bucket:
    def __init__(self, service: Service) -> None:
        self.service = service
        self.committed, self.excess = Fraction(service.cbs), Fraction(service.ebs)
        self.tick = 0

    def passes(self, tick: int, octets: int) -> bool:
        """Whether a frame is green or yellow."""
        passed = Fraction(tick - self.tick, 10**9)
        self.tick = tick
        grown = self.committed + passed * self.service.cir
        self.committed = min(grown, Fraction(self.service.cbs))
        more = passed * self.service.eir + (grown - self.committed if self.service.couple else 0)
        self.excess = min(self.excess + more, Fraction(self.service.ebs))
        if self.committed >= octets:
            self.committed -= octets
            return True
        if self.excess >= octets:
            self.excess -= octets
            return True
        return False


class AddressTable:
    """The addresses that a device knows: by whom it learned them, and when."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.entries: dict[int, tuple[int, int]] = {}  # Port and tick of each; the oldest is the first.
        self.free = Fraction(0)
        self.begin: int | None = None  # Of the last reboot, which has it forget all.

    def filters(self, port: int, source: int, destination: int, tick: int) -> bool:
        """Learn the source of a frame; return whether its destination is at its own port, so that it goes nowhere."""
        if (begin := self.device.reboot.last_begin(tick)) != self.begin:
            self.begin, self.free = begin, Fraction(0)
            self.entries.clear()
        while self.device.age and self.entries:
            oldest = next(iter(self.entries))
            if self.entries[oldest][1] + self.device.age > tick:
                break
            del self.entries[oldest]
        if not source >> 40 & 1 and self._has_space(source, tick):
            self.entries.pop(source, None)
            self.entries[source] = port, tick
        known = self.entries.get(destination)
        return known is not None and known[0] == port

    def _has_space(self, source: int, tick: int) -> bool:
        if source in self.entries:
            return True
        if len(self.entries) >= self.device.table or tick < self.free:
            return False
        if self.device.learn:
            self.free = tick + Fraction(TICKS_A_SECOND, self.device.learn)
        return True


class _Ingress:
    """Faults and policers that a frame meets before the queue; ``table``: of both ports."""

    def __init__(self, device: Device, port: int, table: AddressTable) -> None:
        self.device, self.port, self.table = device, port, table
        self.storm_free = Fraction(0)
        self.random = SplitMix(device.seed, STREAMS * port + FRAMES)
        self.buckets = [_Bucket(service) for service in device.services]
        self.tokens, self.tick = Fraction(device.load_burst), 0
        self.entered = 0

    def fate(self, frame: Frame, tick: int) -> tuple[int, tuple[int, int] | None]:
        """Return the fate so far, and the octet and bit that go wrong."""
        device = self.device
        corruptible = frame.content if device.mode == "store" else SHORTEST
        lost, corrupt = self.random.happens(device.loss), self.random.happens(device.corrupt)
        where = self.random.below(8 * corruptible)
        self.entered += 1
        if lost or self._is_faulty(frame, tick):
            return LOST, None
        for bucket in self.buckets:
            service = bucket.service
            if service.match == "all" or (service.match, service.value) in frame.labels:
                if not bucket.passes(tick, frame.content):
                    return REFUSED, None
                break
        labels = dict(frame.labels)
        destination = labels.get("destination", 0)
        if device.storm and destination >> 40 & 1:
            if tick < self.storm_free:
                return LOST, None
            self.storm_free = tick + Fraction(TICKS_A_SECOND, device.storm)
        if device.table and self.table.filters(self.port, labels.get("source", 0), destination, tick):
            return REFUSED, None
        if corrupt and where // 8 < frame.content:
            return CORRUPTED, (where // 8, where % 8)
        return DELIVERED, None

    def _is_faulty(self, frame: Frame, tick: int) -> bool:
        device = self.device
        if device.mode == "store" and not frame.is_sound:
            return True
        if device.largest and frame.content > device.largest:
            return True
        if device.does == "drop" or device.fault_size == frame.content or device.reboot.end_if_in(tick) is not None:
            return True
        return bool(device.load) and not self._has_tokens(frame.octets + IFG, tick)

    def _has_tokens(self, octets: int, tick: int) -> bool:
        grown = self.tokens + Fraction(self.device.load, PPB) * (tick - self.tick)
        self.tokens, self.tick = min(grown, Fraction(self.device.load_burst)), tick
        if self.tokens < octets:
            return False
        self.tokens -= octets
        return True


class _Egress:
    """A queue, its server and the line."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.waiting: deque[tuple[Fraction, int]] = deque()  # Start and octets of what has not started.
        self.octets = 0  # Of these.
        self.free = Fraction(0)
        self.last = 0

    def serve(self, tick: int, frame: Frame) -> Fraction | int:
        """Return when the first octet leaves, or the fate of a frame that doesn't (an int)."""
        device = self.device
        begin = device.reboot.last_begin(tick)
        if begin is not None and begin > self.last:
            self.waiting.clear()
            self.octets, self.free = 0, Fraction(0)
        self.last = tick
        if device.reboot.end_if_in(tick) is not None:
            return LOST
        while self.waiting and self.waiting[0][0] <= tick:
            self.octets -= self.waiting.popleft()[1]
        limit = device.queue or (ENDLESS if device.buffer else 64)
        if len(self.waiting) >= limit or (device.buffer and self.octets + frame.content > device.buffer):
            return QUEUE_DROP
        start = max(Fraction(tick), self.free)
        resumed = device.pause.end_if_in(start)
        start = Fraction(resumed) if resumed is not None else start
        if start > tick:
            self.waiting.append((start, frame.content))
            self.octets += frame.content
        self.free = start + device.service_ticks(frame.octets + IFG - LINE_OVERHEAD)
        dies = device.reboot.next_begin(tick)
        return LOST if dies is not None and start >= dies else start


def passage(spec: str, departures: tuple[list[Frame], list[Frame]]) -> Outcome:
    """Return what a device does with the frames that leave the probe at both ports.

    Limits: equal clocks, links up, nothing else on the lines; not a router.
    """
    device = parse(spec)
    outcome = Outcome([[DELIVERED] * len(left) for left in departures])
    decided = sorted(
        (frame.first_tick + (frame.octets if device.mode == "store" else 0), port, number)
        for port, left in enumerate(departures)
        for number, frame in enumerate(left)
    )
    table = AddressTable(device)
    ingress = [_Ingress(device, port, table) for port in range(2)]
    egress = [_Egress(device) for _ in range(2)]
    for tick, port, number in decided:
        frame = departures[port][number]
        fate, flipped = ingress[port].fate(frame, tick)
        outcome.fates[port][number] = fate
        if fate in (LOST, REFUSED):
            continue
        for copy, out in enumerate(_ways(device, port)):
            start = egress[out].serve(tick + device.latency, frame)
            if not isinstance(start, Fraction):
                if not copy:
                    outcome.fates[port][number] = start
                continue
            came = Arrival(number, ceil(start) + frame.before_sfd, DUPLICATE if copy else fate, flipped)
            outcome.arrivals[out].append(came)
            outcome.origins[out].append(port)
    return outcome


def _ways(device: Device, port: int) -> list[int]:
    """Return the ports that a frame leaves by, its own way first."""
    if device.does == "return":
        return [port]
    if device.does == "flood":
        return [1 - port] * device.copies + [port] * device.copies
    return [1 - port]
