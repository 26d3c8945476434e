# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the streams of a pair: one probe sends them from a given instant on, the other measures them, each by its own clock."""

from collections.abc import Callable, Sequence

from liteprobe.cores.formats import TICK_NS
from liteprobe.host.base.errors import NoProbeError
from liteprobe.host.clock.clock import ClockReport, ClockVerdict, ClockWatch
from liteprobe.host.fleet.plan import ExperimentPlan, PlannedPair
from liteprobe.host.fleet.turns import Sleep
from liteprobe.host.run.engine import START_MARGIN_NS, PortRun, RunDevice
from liteprobe.host.run.figures import StreamFigures, TrafficResult
from liteprobe.host.run.streams import MakeMeters, SendOptions, StreamMeters, Traffic
from liteprobe.host.suites.owd import LateError, verdict_of
from liteprobe.host.traffic.stream import Stream

IsLost = Callable[[RunDevice], bool]


class PlannedRun(PortRun):
    """Has a run of a pair, the class behind this one, let time pass for all others, too."""

    _sleep: Sleep
    _is_lost: IsLost

    def let_pass(self, seconds: float) -> None:
        """Let others go on; NoProbeError where one of the two was lost meanwhile."""
        self._sleep(seconds)
        for probe in self.probes:
            if self._is_lost(probe):
                raise NoProbeError(f"{probe.url} was lost")

    def stop_ports(self, probe: RunDevice) -> bool:
        """Stop what it sends, unless nobody answers there."""
        return not self._is_lost(probe) and super().stop_ports(probe)


class SharedTraffic(PlannedRun, Traffic):
    """Streams from a probe that another one measures, or itself; beside others, with whom it shares the time.

    Parameters
    ----------
    ends : the probe that sends, and the one that measures.
    when : the start (TAI, ns), None: at once; and what lets time pass.
    is_lost : returns whether nobody answers at a probe any more.
    """

    def __init__(
        self,
        ends: tuple[RunDevice, RunDevice],
        streams: Sequence[Stream],
        options: SendOptions,
        when: tuple[int | None, Sleep],
        is_lost: IsLost,
        meters_of: MakeMeters = StreamMeters,
    ) -> None:
        self._planned_ns, self._sleep = when
        self._is_lost, self._ends = is_lost, ends
        receiver = None if ends[0] is ends[1] else ends[1]
        super().__init__(ends[0], streams, options, receiver, meters_of)

    @property
    def last_clocks(self) -> tuple[ClockReport, ClockReport]:
        """The clocks of sender and receiver at the last look."""
        sender, receiver = (self.clocks[id(probe)].last for probe in self._ends)
        assert sender and receiver  # Both have such a clock, or they would not take part.
        return sender, receiver

    # What is other than of one probe ------------------------------------------------------------

    def start_ns(self) -> int | None:
        """Return the instant of the plan, or as of `Traffic`."""
        return super().start_ns() if self._planned_ns is None else self._planned_ns

    def starting(self, probe: RunDevice, now_ns: int) -> float:
        """Note the start, as of `Traffic`; LateError where it is too near by now."""
        if self._planned_ns is not None and self._planned_ns < now_ns + START_MARGIN_NS:
            raise LateError("the probes took too long to get ready for the start: run it again")
        return super().starting(probe, now_ns)

    @property
    def clock(self) -> ClockVerdict:
        """Verdict of both clocks until now; its bound is that of a delay whose tick is known (ns)."""
        if self._ends[0] is self._ends[1]:
            return super().clock
        watches = [self.clocks.get(id(probe)) or ClockWatch(probe.timebase.clock) for probe in self._ends]
        return verdict_of([one.end() for one in watches], None)

    def _bound_ns(self, rows: Sequence[StreamFigures], clock: ClockVerdict) -> float:
        """Return the bound of a delay: meters take the tick's end for an arrival, so it has half a tick more (ns)."""
        if self._ends[0] is self._ends[1]:
            return super()._bound_ns(rows, clock)
        return float("inf") if clock.bound_ns is None else clock.bound_ns + TICK_NS / 2


class PlannedStreams(SharedTraffic):
    """One pair's streams, whose start is given; ``ends``, ``when`` and ``is_lost`` as of `SharedTraffic`."""

    def __init__(
        self,
        pair: PlannedPair,
        ends: tuple[RunDevice, RunDevice],
        plan: ExperimentPlan,
        when: tuple[int, Sleep],
        is_lost: IsLost,
        meters_of: MakeMeters = StreamMeters,
    ) -> None:
        seconds = None if plan.duration_ns is None else float(plan.duration_ns) / 1e9
        options = SendOptions(plan.by_name[pair.receiver].port, seconds)
        super().__init__(ends, pair.streams, options, when, is_lost, meters_of)
        if plan.waiting_time_ns is not None:
            self.patience_s = float(plan.waiting_time_ns) / 1e9

    def measure(self) -> TrafficResult:
        """Send all, and return what came; ProbeError when a link is down, LateError when the start was missed."""
        self.begin()
        found = self.result()
        for end in (*self.senders, *self.receivers):
            if not end.port.transmit.is_link_up:
                self.lose_link(end.name, f"{sum(row.sent for row in found.rows)} frames had been sent")
        return found
