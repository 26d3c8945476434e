# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Many probes as their registers show them, each with a crystal, a phase and a clock of its own, on a network that is known.

The truth for tests of experiments: every frame's way is noted, in true time, which no probe knows. Source: arithmetic.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from liteprobe.cores.formats import HEADER_WORDS_OF_STREAM, ClockState
from liteprobe.sim.models.probe.streams import TrafficFrame, TrafficProbe
from liteprobe.sim.models.probe.trains import (
    CLOCK,
    HEADER_BASE,
    INCREMENT_ONE,
    PORT_STRIDE,
    WRITTEN,
    ModelFrame,
    ModelProbe,
    registers,
)

TICK_NS = 8.0
TAI_NS = 1_800_000_000 * 10**9  # Of the moment at which true time is 0.
LINE = registers("line_latch:1 line_count line_now:64")
DESTINATION = 30  # Octet of the header at which the destination's IPv4 address begins.
BOUND_SIGMAS = 1.96  # A bound holds with 95 %.
CLOCK_LSB = 2**8  # A nanosecond, as clocks publish it.
KEPT = 0.8  # Of a clock's error, from a second to the next.
SECOND_NS = 1e9

Event = tuple[float, Callable[[], None]]


@dataclass(frozen=True)
class Passage:
    """A frame's way: from whom to whom, its stream id and number, and when its SFD left and came (true ns); None: it was lost."""

    sender: int
    receiver: int
    stream_id: int
    sequence: int
    left_ns: float
    came_ns: float | None


@dataclass(frozen=True)
class Path:
    """The network from one probe to another."""

    delay_ns: float
    jitter_ns: float = 0.0
    loss: float = 0.0


class FleetProbe(ModelProbe):
    """A probe of a fleet; its clock is off by ``error_ns``, and says that it is within ``bound_ns``."""

    def __init__(
        self, fleet: "Fleet", number: int, ppm: float, bound_ns: float, error_ns: float, phase_ns: float
    ) -> None:
        super().__init__(ports=2, with_clock=True)
        self.fleet, self.number = fleet, number
        self.tick_ns, self.phase_ns = TICK_NS / (1 + ppm * 1e-6), phase_ns
        self.error_ns, self.bound_ns = error_ns, bound_ns
        for port in range(2):
            self.extend(f"port{port}_rx", LINE, WRITTEN | {"line_latch"})
        self.values["timebase_increment"] = round(INCREMENT_ONE * self.tick_ns)
        self._set_clock(TAI_NS + Fraction(phase_ns + error_ns))
        self.values |= {
            "clock_state": int(ClockState.LOCKED),
            "clock_alive": 1,
            "clock_updates": 9,
            "clock_tai_utc": 37,
            "clock_uncertainty": round(bound_ns * CLOCK_LSB),
            "clock_edges": 99,
            "pps_period": 10**9,
            "pps_control": 1,
            "pps_present": 1,
        }
        assert all(f"clock_{name}" in self.values for name in CLOCK)
        self.wire = self._carry
        self.line = random.Random(number)
        self.line_ns = TICK_NS / (
            1 + self.line.uniform(-40, 40) * 1e-6
        )  # A tick of the switch that the receiver hears.

    def at_ns(self, tick: int) -> float:
        """Return the true time at which a tick begins."""
        return self.phase_ns + tick * self.tick_ns

    def tick_at(self, time_ns: float) -> int:
        """Return the tick that a true time is in."""
        return math.floor((time_ns - self.phase_ns) / self.tick_ns)

    def advance(self, ticks: int) -> None:
        """Let time pass for the whole fleet."""
        self.fleet.advance(ticks * TICK_NS)
        self.catch_up()

    def catch_up(self) -> None:
        """Come to the present tick."""
        super().advance(max(self.tick_at(self.fleet.now_ns) - self.tick, 0))

    def next_ns(self) -> float:
        """Return when something happens next (true ns)."""
        return self.at_ns(self._events[0][0]) if self._events else math.inf

    def step(self) -> None:
        """Let the next thing happen."""
        super().advance(max(self._events[0][0] - self.tick, 0))

    def come(self, time_ns: float, frame: ModelFrame) -> None:
        """Let a frame's SFD come at a true time, to port 0: it has the stamp of the tick that it came in."""
        self._at(max(self.tick_at(time_ns), self.tick), lambda: self._receive(0, frame))

    def slew(self, offset_ns: float) -> None:
        """Move the clock by so much, at once."""
        self._set_clock(self._now() + Fraction(offset_ns))

    def _carry(self, frame: ModelFrame) -> list[tuple[int, int, ModelFrame]]:
        place = HEADER_WORDS_OF_STREAM * frame.number if isinstance(frame, TrafficFrame) else 0
        base = HEADER_BASE + PORT_STRIDE * frame.port + 4 * place
        octets = [
            self._memory.get(base + at - at % 4, 0) >> 8 * (at % 4) & 0xFF for at in range(DESTINATION, DESTINATION + 4)
        ]
        self.fleet.carry(self, frame, octets[3] - 1)
        return []

    def _act(self, name: str, word: int) -> None:
        if not name.endswith("_line_latch"):
            super()._act(name, word)
            return
        prefix = name.removesuffix("latch")
        # The line's last edge is up to a tick of this probe old: time is that of the tick it is in.
        self.values[prefix + "count"] = math.floor(self.fleet.now_ns / self.line_ns) & 0xFFFFFFFF
        self.values[prefix + "now"] = self.now()


class FleetTester(FleetProbe, TrafficProbe):
    """A probe of a fleet that sends and measures streams, and no trains; preset ``generator``."""


@dataclass
class Fleet:
    """Probes, the network between them, and what it did.

    Parameters
    ----------
    count : probes, at 10.0.0.1 and so on.
    seed : of crystals, phases, clocks and paths.
    loss : greatest share of frames that a path loses.
    kind : of its probes.
    """

    count: int
    seed: int
    loss: float = 0.02
    now_ns: float = 0.0
    passages: list[Passage] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)  # What befalls it, in the order of time.
    kind: type[FleetProbe] = FleetProbe

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.probes = []
        for number in range(self.count):
            bound_ns = self.random.uniform(15, 60)
            error_ns = self.random.gauss(0, bound_ns / BOUND_SIGMAS)
            ppm, phase_ns = self.random.uniform(-50, 50), self.random.uniform(0, 8)
            self.probes.append(self.kind(self, number, ppm, bound_ns, error_ns, phase_ns))
        ends = [(a, b) for a in range(self.count) for b in range(self.count) if a != b]
        self.paths = {one: self._path() for one in ends}
        self.events.append((SECOND_NS / 2, self._wander))

    def _path(self) -> Path:
        return Path(self.random.uniform(5e3, 5e5), self.random.uniform(0, 2e3), self.random.choice([0, self.loss]))

    def _wander(self) -> None:
        """Let each servo move its clock, between two seconds: its error is normal, and forgets itself in some seconds."""
        for probe in self.probes:
            new_ns = KEPT * probe.error_ns + math.sqrt(1 - KEPT**2) * self.random.gauss(
                0, probe.bound_ns / BOUND_SIGMAS
            )
            probe.catch_up()
            probe.slew(new_ns - probe.error_ns)
            probe.error_ns = new_ns
        self.befall(self.now_ns + SECOND_NS, self._wander)

    def befall(self, time_ns: float, act: Callable[[], None]) -> None:
        """Have something happen at a true time."""
        self.events = sorted([*self.events, (time_ns, act)], key=lambda one: one[0])

    def advance(self, span_ns: float) -> None:
        """Let time pass: what happens happens in the order of true time."""
        end_ns = self.now_ns + span_ns
        while True:
            first = min(self.probes, key=FleetProbe.next_ns)
            own_ns = self.events[0][0] if self.events else math.inf
            if min(first.next_ns(), own_ns) > end_ns:
                break
            if own_ns <= first.next_ns():
                time_ns, act = self.events.pop(0)
                self.now_ns = max(time_ns, self.now_ns)
                act()
            else:
                self.now_ns = max(first.next_ns(), self.now_ns)
                first.step()
        self.now_ns = end_ns

    def carry(self, sender: FleetProbe, frame: ModelFrame, receiver: int) -> None:
        """Carry a frame to whom it is sent, on an edge of the line's clock there, or lose it."""
        left_ns = sender.at_ns(sender.tick)
        path = self.paths.get((sender.number, receiver), Path(0, 0, 1))
        came_ns = None
        if self.random.random() >= path.loss:
            other = self.probes[receiver]
            due_ns = left_ns + path.delay_ns + self.random.uniform(0, path.jitter_ns)
            came_ns = math.ceil(due_ns / other.line_ns) * other.line_ns
            other.come(came_ns, frame)
        self.passages.append(Passage(sender.number, receiver, frame.stream_id, frame.sequence, left_ns, came_ns))

    def true_ns(self, tai_ns: int) -> float:
        """Return a TAI instant as true time."""
        return float(tai_ns - TAI_NS)
