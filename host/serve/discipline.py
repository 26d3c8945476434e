# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Disciplines a probe's clock from the host: what the firmware does, where there is none.

The edges are stamped by the gateware, so a slow way to the probe costs no accuracy; it only delays what is done about them.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from liteprobe.cores import formats
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.clock.clock import LOOKS_PER_PERIOD, Edge
from liteprobe.host.clock.servo import Servo, ServoEdge, ServoOutput, ServoStamp
from liteprobe.host.clock.timebase import ADJUST_ONE
from liteprobe.host.probe import Probe

WATCHDOG_PERIODS = 8
WATCHDOG_LEAST_MS = 100
PUBLISH_EVERY_NS = 500_000_000
NS_PER_MS = 10**6
WRITE_TICKS = 1000  # From the look at the clock until an increment has been written: a datagram.


class Discipline:
    """A servo on this host for one probe.

    ``period_ns``: of the PPS; None: the one that the link knows of, or that is set.
    ``settings``: further fields of ``ServoConfig``.

    ``out``: what the servo said last.
    Raises ProbeError when the gateware has no such clock, or somebody else disciplines it, UsageError when no servo can
    follow this period.
    """

    def __init__(self, probe: Probe, period_ns: int | None = None, **settings: int) -> None:
        self._probe = probe
        self._timebase = probe.timebase
        self._clock = probe.timebase.clock
        status = self._clock.status()
        if status.is_alive:
            raise ProbeError(
                "the firmware of this probe, or another host, disciplines its clock already: let it, or stop it first"
            )
        self.period_ns = period_ns or probe.link.pps_period_ns or status.period_ns
        self._servo = Servo(self.period_ns, **{"quantum_ps": self._clock.quantum_ps, **settings})
        self._clock.enable_pps(self.period_ns)
        self.out = ServoOutput(state=int(formats.ClockState.FREE_RUNNING), uncertainty=formats.UNCERTAINTY_UNKNOWN)
        self._error = formats.ClockError.NONE
        self._steps = 0
        self._last = self._clock.edge()
        self._heard_ticks = self._timebase.ticks
        self._published_ns, self._published_state = 0, -1
        watchdog_ms = max(WATCHDOG_LEAST_MS, WATCHDOG_PERIODS * self.period_ns // NS_PER_MS)
        probe.registers.write_many({"clock_watchdog": min(watchdog_ms, 0xFFFF)})

    def run(self, seconds: float | None = None) -> Iterator[Edge | None]:
        """Go on for ``seconds`` (probe time; None: for ever); give each edge as it was taken, None for news without one."""
        step_s = self.period_ns / 1e9 / LOOKS_PER_PERIOD
        end = None if seconds is None else self._timebase.ticks + round(seconds * 1e9 / formats.TICK_NS)
        while end is None or self._timebase.ticks < end:
            self.wait(step_s)
            edge = self.look()
            if edge is not None or self._is_time():
                self.publish()
                yield edge

    def wait(self, seconds: float) -> None:
        self._probe.wait(seconds)

    def tend(self) -> Edge | None:
        """Do what is to be done by now; return the edge that came, if any. Call it eight times a period."""
        edge = self.look()
        if edge is not None or self._is_time():
            self.publish()
        return edge

    def look(self) -> Edge | None:
        """Take the edge that has come since the last look, if any, and do what the servo says."""
        edge = self._clock.edge()
        is_new = edge.count != self._last.count
        self._last = edge
        if not self._may_steer():
            return edge if is_new else None
        if is_new and not edge.is_spurious:
            self._take(edge)
        else:
            self._miss()
        return edge if is_new else None

    def publish(self) -> None:
        """Tell the probe, and so every host, what is known of its clock."""
        out = self.out
        present = self._clock.status().is_pps_present
        self._published_ns, self._published_state = self._timebase.now_ns, out.state
        self._clock.publish(
            {
                "state": out.state,
                "uncertainty": out.uncertainty,
                "offset": out.offset,
                "rate": out.rate,
                "drift": out.drift,
                "edges": out.edges,
                "rejected": out.rejected,
                "holdover": out.holdover * self.period_ns // 10**9,
                "error": int(self._error | (formats.ClockError.NONE if present else formats.ClockError.NO_PPS))
                | (self._servo.jumps & formats.CLOCK_COUNT_MASK) << formats.CLOCK_JUMPS_BIT
                | (self._steps & formats.CLOCK_COUNT_MASK) << formats.CLOCK_STEPS_BIT,
            }
        )

    # # #

    def _is_time(self) -> bool:
        """Whether the state is news, or nothing has been reported for long enough to worry the watchdog."""
        if self.out.state != self._published_state:
            return True
        every_ns = min(PUBLISH_EVERY_NS, 2 * self.period_ns)
        return self._timebase.now_ns - self._published_ns >= every_ns

    def _may_steer(self) -> bool:
        mode = self._probe.registers.read("clock_mode")
        if mode == formats.ClockMode.REACQUIRE:
            self._servo.reacquire()
            self._clock.set_mode(formats.ClockMode.DISCIPLINE)
        elif mode == formats.ClockMode.LEAVE_ALONE:
            self.out = ServoOutput(state=int(formats.ClockState.FREE_RUNNING), uncertainty=formats.UNCERTAINTY_UNKNOWN)
            self._servo.reacquire()
        return mode != formats.ClockMode.LEAVE_ALONE

    def _take(self, edge: Edge) -> None:
        stamp = ServoStamp(now=edge.now_ns, fraction=edge.fraction, ticks=edge.ticks)
        latency = self._timebase.ticks - edge.ticks + WRITE_TICKS
        self.out = self._servo.edge(ServoEdge(stamp=stamp, early_ps=edge.early_ps, latency=latency))
        self._heard_ticks = edge.ticks
        self._obey(is_edge=True)

    def _miss(self) -> None:
        """Tell the servo of each period without an edge, half a period after it was due."""
        now, fraction, ticks = self._timebase.moment()
        period = self.period_ns // formats.TICK_NS
        since_edge = self._heard_ticks == self._last.ticks
        if ticks - self._heard_ticks < (period + period // 2 if since_edge else period):
            return
        self.out = self._servo.silence(ServoStamp(now=now, fraction=fraction, ticks=ticks), WRITE_TICKS)
        self._heard_ticks = ticks
        self._obey(is_edge=False)

    def _is_sending(self) -> bool:
        """Whether frames of a program leave now: at a step they would leave at another time than they were asked to."""
        return any(port.transmit.look()[0] == formats.TransmitState.RUNNING for port in self._probe.ports)

    def _obey(self, is_edge: bool) -> None:
        self._error = formats.ClockError.NONE
        if self.out.has_adjust and self._is_sending():
            self._error = formats.ClockError.STEP_REFUSED
            self.out = self._servo.refuse(self.out)
        if self._servo.has_jumped(self.out, is_edge):
            self._error |= formats.ClockError.REFERENCE_JUMPED
        if self.out.increment:
            self._timebase.increment = self.out.increment
        if self.out.has_adjust:
            self._timebase.adjust(Fraction(self.out.adjust, ADJUST_ONE))
            self._steps += 1


def settle(servos: Sequence[Discipline], seconds: float) -> None:
    """Let ``seconds`` of the probes' common time pass, while each servo does its work."""
    step_s = servos[0].period_ns / 1e9 / LOOKS_PER_PERIOD
    for _ in range(round(seconds / step_s)):
        servos[0].wait(step_s)
        for servo in servos:
            servo.tend()
