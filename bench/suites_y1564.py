# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the bench ``suites`` about Y.1564: policers and shapers whose profiles are known, and services that must fail.

Rates, bursts, lengths and faults are drawn; steps are scaled so that thousands of frames come at the rates. Two rows are at
the pins: ``y1564_pins`` (a device) and ``y1564_gateware`` (the emulator). In the others the tester is one of plain Python, and
the emulator is its reference.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.host.probe import Probe
from liteprobe.host.suites.suite import Verdict
from liteprobe.host.suites.y1564 import Y1564, EthernetService, StepFigures, Y1564Request, Y1564Result
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.network.document import read_network
from liteprobe.host.traffic.network.store import Limits
from liteprobe.host.traffic.network.words import words_of
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.suites.fake_probe import FakeProbe, FakeTraffic
from liteprobe.sim.drivers.tools.figures import Figure, drawn, note, row
from liteprobe.sim.models.emulator.direction import Direction
from liteprobe.sim.models.emulator.settings import Settings
from liteprobe.sim.models.forwarder import SLOT, Device

RATE_OFF_MOST = 0.001  # Of a rate.
FRAMES = 6_000  # Of a step.
LONG = 100_000_000  # Ticks in which all that waits has left.


def service_of(chance: random.Random, name: str = "service") -> EthernetService:
    """Return a service of a drawn length and profile, whose rates the line holds, even a third above."""
    length = chance.randrange(60, 1515)
    line = 10**9 * (length + 4) / (length + 24)
    cir = round(chance.uniform(0.02, 0.45) * line)
    eir = chance.choice([0, round(chance.uniform(0.02, 0.25) * line)])
    cbs, ebs = (chance.randrange(4 * (length + 4), 60_000) for _ in range(2))
    stream = Stream(name, 1, Fixed(length))
    return EthernetService(name, stream, cir_bps=cir, eir_bps=eir, cbs=cbs, ebs=ebs if eir else 0)


def seconds_for(service: EthernetService, frames: int = FRAMES) -> float:
    """Return for how long a service sends so many frames at its rates."""
    return frames * 8 * float(service.octets) / float(service.total_bps)


def run(probe: FakeProbe, service: EthernetService) -> Y1564Result:
    """Run the configuration test, and the performance test with the one service."""
    seconds = seconds_for(service)
    return Y1564(probe, Y1564Request((service,), step_s=seconds, performance_s=seconds, pause_s=0.0)).run()


def settled_off(result: Y1564Result, rate: float, test: str = "policing") -> float:
    """Return by which part of it the settled rate is off."""
    found = result.parts[f"{result.request.services[0].name}/{test}"].settled
    return 1.0 if found is None else abs(found.middle / rate - 1)


# Policers -----------------------------------------------------------------------------------------


class Policer(Device):
    """MEF 10.3's two buckets, in fractions: what `sim/models/device.py` has at the pins, for a probe of plain Python."""

    def __init__(self, service: EthernetService) -> None:
        super().__init__()
        self.service = service
        self._tokens = [Fraction(service.cbs), Fraction(service.ebs)]
        self._tick = 0

    def forward(self, tick: int, port: int, length: int) -> int | None:
        """Return when a frame leaves, or None where both buckets lack tokens."""
        one, passed, self._tick = self.service, Fraction(tick - self._tick, 10**9), tick
        pairs = zip(self._tokens, (one.cir_bps, one.eir_bps), (one.cbs, one.ebs), strict=True)
        self._tokens = [min(now + passed * Fraction(rate), Fraction(most)) for now, rate, most in pairs]
        for place, tokens in enumerate(self._tokens):
            if tokens >= length + 4:
                self._tokens[place] -= length + 4
                return tick + self._held(length)
        return None


#: What a device may do that was not agreed on, and the steps that must fail then.
FAULTS: Mapping[str, tuple[object, set[str]]] = {
    "none": (lambda one: one, set()),
    "less CIR": (
        lambda one: replace(one, cir_bps=one.cir_bps * 0.9, eir_bps=0, ebs=0),
        {"cir-100", "policing", "performance"},
    ),
    "more CIR": (lambda one: replace(one, cir_bps=one.cir_bps * 1.2), {"policing"}),
    "half the CBS": (lambda one: replace(one, cbs=one.cbs // 2, ebs=0, eir_bps=0), {"burst"}),
}


@row("suites")
def test_y1564_policers(is_full: bool) -> Iterator[Figure]:
    """Policers of drawn profiles: CIR and EIR within 0.1 %, the burst within what is stated, each verdict right."""
    chance, off, wrong, bursts, count = drawn(), 0.0, 0, 0, 0
    for number in range(60 if is_full else 16):
        service = service_of(chance)
        for name, (make, failing) in FAULTS.items():
            given = make(service)  # type: ignore[operator]
            if given.cbs < 2 * service.octets:
                continue  # A bucket that lets not even two frames pass is another test.
            result = run(FakeProbe(Policer(given)), service)
            failed = {one.test for one in result.steps if one.verdict == Verdict.FAILED}
            unknown = {one.test for one in result.steps if one.verdict == Verdict.UNKNOWN}
            count += 1
            if not (failing <= failed) or unknown or (not failing and failed):
                wrong += 1
                reasons = [f"{one.test}: {one.verdict} {one.reason}" for one in result.steps if one.reason]
                note(f"# {number}, {name}: {service}: {reasons}")
            if name == "none":
                off = max(off, settled_off(result, float(service.total_bps)))
                burst = result.parts["service/burst"].burst
                is_right = burst is not None and burst.least <= service.cbs + service.ebs <= burst.most
                bursts += not is_right
    yield Figure("y1564_rate_off", off, "of the rate", RATE_OFF_MOST)
    yield Figure("y1564_wrong_bursts", bursts, "services", 0)
    yield Figure("y1564_wrong_verdicts", wrong, f"of {count} services", 0)


# The emulator -------------------------------------------------------------------------------------


class EmulatedProbe(FakeProbe):
    """A probe with the emulator's reference between its ports; each trial finds it as it is at the start."""

    def __init__(self, network: str) -> None:
        super().__init__(Device())
        read = read_network(network)
        limits = Limits(1 << 22, 1 << 15, 1514, 20)
        self.settings = [
            Settings(words.banks[0], words.delays, words.patterns) for words in words_of(read, [limits] * 2)
        ]

    def send(self, streams: Sequence[Stream], receive: Mapping[int, int] | None = None) -> "EmulatedTraffic":
        """Send streams through the emulator."""
        self.sends += 1
        return EmulatedTraffic(self, streams, receive or {0: 1, 1: 0})


class EmulatedTraffic(FakeTraffic):
    """Streams that go through the emulator: all frames are given to it before it says what becomes of them."""

    probe: EmulatedProbe

    def _pass(self, count: int | None) -> None:
        kept = vars(self).setdefault("kept", [])
        for due, port, length, name, _ in islice(self._frames_left, count):
            tick = max(due, self._free.get(port, 0))
            self._free[port] = tick + length + SLOT
            self._seen[name].sent.append(tick)
            self._end = max(self._end, self._free[port])
            kept.append((tick, length, name))
        if count is not None:
            return
        one = Direction(self.probe.settings[0])
        left = {
            number: tick
            for tick, number in one.finish([(tick, length, 7) for tick, length, _ in kept], self._end + LONG)
        }
        for number, (tick, length, name) in enumerate(kept):
            seen = self._seen[name]
            if number not in left:
                seen.lost += 1
                continue
            seen.came.append(left[number])
            seen.delays[left[number] - tick] += 1
            seen.octets += length
            self._last = max(self._last, left[number])


NETWORK = "there: {{classes: [{{name: all, overhead: 4, bucket: {{rate: {rate}, burst: {burst}}}, queue: {{frames: {frames}}}}}]}}"


class Shaping:
    """Judges services that an emulator's token bucket polices (a queue of a frame) or shapes (a long one)."""

    def __init__(self) -> None:
        self.off = {"policer": 0.0, "shaper": 0.0}  # Of the rate, at most.
        self.wrong = self.count = 0

    def judge(self, service: EthernetService, burst: int, run: Callable[[EthernetService, str], Y1564Result]) -> None:
        """Have a service tested four times: policed and shaped, at its rate and with too little; ``run``: through a network."""
        for kind, frames in (("policer", 1), ("shaper", 1_000)):
            asked = replace(service, cbs=burst - 1514 if kind == "policer" else 0, is_policed=True)
            for has_too_little in (False, True):
                rate = round(float(asked.cir_bps) * (0.93 if has_too_little else 1.0005))
                result = run(asked, NETWORK.format(rate=f"{rate}bit", burst=burst, frames=frames))
                self.count += 1
                failed = {one.test for one in result.steps if one.verdict == Verdict.FAILED}
                if not ("cir-100" in failed if has_too_little else not failed - {"burst", "policing"}):
                    self.wrong += 1
                    reasons = [(one.name, one.reason) for one in result.steps if one.reason]
                    note(f"# {kind}, {rate} b/s, burst {burst}: {asked}: {reasons}")
                self.off[kind] = max(self.off[kind], settled_off(result, rate))

    def figures(self, name: str) -> Iterator[Figure]:
        """Yield what came of all."""
        for kind, value in self.off.items():
            yield Figure(f"{name}_{kind}_rate_off", value, "of the rate", RATE_OFF_MOST)
        yield Figure(f"{name}_wrong_verdicts", self.wrong, f"of {self.count} services", 0)


@row("suites")
def test_y1564_emulator(is_full: bool) -> Iterator[Figure]:
    """The emulator's token bucket, its reference in plain Python, as a policer and as a shaper: rates, verdicts."""
    chance, found = drawn(), Shaping()
    for _ in range(20 if is_full else 6):
        service = replace(service_of(chance), eir_bps=0, ebs=0)
        found.judge(service, chance.randrange(3_100, 20_000), lambda one, network: run(EmulatedProbe(network), one))
    yield from found.figures("y1564_emulator")


@row("suites")
def test_y1564_gateware(is_full: bool) -> Iterator[Figure]:
    """The same at the pins: a simulated tester, and the emulator's gateware between its ports (``sim://emulated``)."""

    def at_the_pins(service: EthernetService, network: str) -> Y1564Result:
        # The settled rate is of half a step: in 10 ms a frame is up to 0.11 % of it, more than is asked for.
        request = Y1564Request((service,), steps=(Fraction(1),), step_s=0.06, performance_s=0.005, pause_s=0.0005)
        with TemporaryDirectory() as folder:
            document = Path(folder) / "network.yaml"
            document.write_text(network)
            with Probe(f"sim://emulated?by={document}") as probe:
                return Y1564(probe, request).run()

    chance, found = drawn(), Shaping()
    for _ in range(3 if is_full else 1):
        stream = Stream("one", 1, Fixed(chance.randrange(80, 200)))
        service = EthernetService("one", stream, cir_bps=chance.randrange(150, 350) * 10**6)
        found.judge(service, chance.randrange(3_100, 8_000), at_the_pins)
    yield from found.figures("y1564_gateware")


# At the pins --------------------------------------------------------------------------------------


@row("suites")
def test_y1564_pins(is_full: bool) -> Iterator[Figure]:
    """The simulated tester, and a device that polices by VLAN: one service as agreed, one with less; rates, delays, verdicts."""
    chance = drawn()
    off, delays_off, wrong = 0.0, 0.0, 0
    for _ in range(4 if is_full else 1):
        length, latency_ns = chance.randrange(68, 200), 8 * chance.randrange(24, 1_000)
        cir, eir = (chance.randrange(150, 300) * 10**6, chance.randrange(50, 100) * 10**6)
        good, short = (
            EthernetService(
                name,
                Stream(name, number, Fixed(length), headers=Headers(vlan_tags=(vlan,))),
                cir_bps=cir,
                eir_bps=eir,
                cbs=6_000,
                ebs=4_000,
            )
            for number, (name, vlan) in enumerate((("good", 100), ("short", 101)), 1)
        )
        buckets = f"cbs:6000,eir:{eir},ebs:4000"
        services = f"service0=vlan:100,cir:{cir},{buckets}&service1=vlan:101,cir:{round(0.9 * cir)},cbs:6000"
        request = Y1564Request((good, short), steps=(Fraction(1),), step_s=0.008, performance_s=0.004, pause_s=0.0005)
        with Probe(f"sim://device?preset=tester&cpu=0&latency={latency_ns}ns&{services}") as probe:
            result = Y1564(probe, request).run()
        found: dict[str, StepFigures] = dict(result.parts)
        off = max(off, settled_off(result, cir + eir))
        truth_ns = 8 * (length + 12) + latency_ns
        delays_off = max(delays_off, *(abs((one.mean_ns or 0) - truth_ns) for one in found.values()))
        failed = {one.name for one in result.steps if one.verdict == Verdict.FAILED}
        expected = {f"short/{test}" for test in ("cir-100", "eir", "policing", "performance")}
        if not expected <= failed or any(name.startswith("good") for name in failed):
            wrong += 1
            note(f"# {[(one.name, one.verdict, one.reason) for one in result.steps]}")
    yield Figure("y1564_pins_rate_off", off, "of the rate", RATE_OFF_MOST)
    yield Figure("y1564_pins_delay_off", delays_off, "ns", 8.0)
    yield Figure("y1564_pins_wrong_verdicts", wrong, "devices", 0)
