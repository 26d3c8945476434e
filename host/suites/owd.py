# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the one-way delay between two probes, each with a disciplined clock of its own."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import TICK_NS, ClockState
from liteprobe.host.analysis import arrivals, line_clock, summary
from liteprobe.host.analysis.arrivals import ArrivedPackets
from liteprobe.host.analysis.line_clock import LineClock
from liteprobe.host.analysis.rows import ClockFigures, Row, RowsResult, Sample, finite, shifted
from liteprobe.host.analysis.summary import TrainResult, sample
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.validate import validated
from liteprobe.host.clock.clock import BEST_LAST, NAMES, ClockReport, ClockVerdict
from liteprobe.host.run.engine import START_MARGIN_NS, RunDevice
from liteprobe.host.run.port import HALT_TIMEOUT_NS
from liteprobe.host.run.trains import RECORDS_MAX, Route, RunningTrain, TrainRun
from liteprobe.host.traffic.train import schedule

Tend = Callable[[], None]

LEAD_LOOKS = 20  # From the first look at the clocks to the start, at least: both probes get their start in it.
LATCHES_EACH = 6  # At each look.
LATCHES = 128  # Of the line's clock: its error falls with their number.
FETCH_MARGIN = 2.5  # For the servos, the line's latches and the other direction.
TRUSTED = (ClockState.LOCKED, ClockState.HOLDOVER)


class LateError(ProbeError):
    """The start came before all was loaded."""


@dataclass(frozen=True, repr=False)
class OneWayResult(RowsResult):
    """Result of a direction: all of `Result`."""

    #: Records of the receiver, counters of both; the clock state is the worse one, the uncertainty of both clocks.
    train: TrainResult
    arrived: ArrivedPackets  # Packets that count, each once; their stamps are raw.
    #: Shape (packets,). One-way delay of each, the tick of the receive stamp resolved by the line's clock.
    owd_ns: NDArray[np.float64]
    line: LineClock | None  # Clock of the receiver's line; None: the gateware has no latch for it.
    start_time_ns: int  # When the first frame was to leave: a whole period of the PPS.
    sender: ClockReport  # At the end.
    receiver: ClockReport  # At the end.

    @property
    def parts(self) -> dict[str, Row]:
        """The direction itself."""
        return {"way": row(self)}

    @property
    def delays_by_part(self) -> dict[str, NDArray[np.int64]]:
        """Delays of the packets that count, rounded to whole ns."""
        return {"way": np.rint(self.owd_ns).astype(np.int64)}

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data, as ``liteprobe owd --json`` has them of one direction."""
        return dict(row(self))


class _EndClocks(NamedTuple):
    """The clocks at the end of a direction: of both probes, and of the receiver's line."""

    sender: ClockReport
    receiver: ClockReport
    line: LineClock | None


@validated
class OneWay(TrainRun):
    """One start of one direction or both, on a PPS.

    Raises UsageError when a program or a port can't be; ProbeError when a clock is not to be trusted, or the two tell
    different times.

    Parameters
    ----------
    routes : sequence of Route
        Their programs start in the same tick of time, which is chosen here.
    waiting_time_ns : int or None
        T_max of RFC 7680: a packet that takes longer is lost. None: as long as the link waits by itself.
    tend : callable or None
        Called now and then, every eighth of a PPS period at the latest: what else must go on meanwhile.
    any_clock : bool
        Whether clocks that nobody disciplines will do: the delays are then off by what the clocks differ.
    """

    halt_s = HALT_TIMEOUT_NS / 1e9

    def __init__(
        self,
        routes: Sequence[Route],
        waiting_time_ns: int | None = None,
        tend: Tend | None = None,
        any_clock: bool = False,
    ) -> None:
        self._tend = tend
        before = {id(p): _trusted(p, any_clock) for route in routes for p in (route.sender, route.receiver)}
        self._period_ns = before[id(routes[0].sender)].period_ns
        for route in routes:
            if route.program.total > RECORDS_MAX:
                raise UsageError(f"{route.program.total} frames are too many for records: give {RECORDS_MAX} at most")
        super().__init__(routes)
        self._asked_ns = waiting_time_ns
        if waiting_time_ns:
            self.patience_s = waiting_time_ns / 1e9
        self._random = random.Random(1)
        self.latches: dict[int, list[tuple[int, int]]] = {id(job): [] for job in self.jobs}
        self._clocks: dict[int, _EndClocks] = {}
        self._start_time_ns = 0
        self._mean_ns: float | None = None  # From look to look.

    def measure(self) -> list[OneWayResult]:
        """Send, receive, and return a result for each direction; ProbeError when a link is down, or nothing comes."""
        return self.results_of(self.run())

    def results_of(self, trains: Sequence[TrainResult]) -> list[OneWayResult]:
        """Return a result for each direction that has a train, in their order."""
        return [self._one_way(job, train) for job, train in zip(self.jobs, trains, strict=False)]

    # Before -----------------------------------------------------------------------------------

    def gap_ns(self, route: Route, record_ns: float) -> float:
        """Return the time in which a train's records are fetched, whoever else is asked meanwhile."""
        return FETCH_MARGIN * route.program.count * record_ns + LATCHES_EACH * route.receiver.link.look_ns

    def load(self) -> None:
        """Have every program wait for the start, and load them."""
        self._start_time_ns = self.start_ns()
        for job in self.jobs:
            job.program = replace(job.program, start_time_ns=self._start_time_ns)
            job.schedule = schedule(job.program, job.sender.probe.timebase.increment)
        super().load()

    def start_ns(self) -> int:
        """Return when all start (ns): on a PPS that both probes can still get ready for."""
        first, *others = (probe.timebase.now_ns for probe in self.probes)
        if any(abs(other - first) > self._period_ns / 2 for other in others):
            raise ProbeError(
                f"the clocks of the two probes differ by {max(abs(other - first) for other in others) / 1e9:.3f} s: "
                "set both (liteprobe clock set --time now), or give each receiver a fix"
            )
        lead_ns = LEAD_LOOKS * int(max(probe.link.look_ns for probe in self.probes)) + START_MARGIN_NS
        return -(-(max(first, *others, 0) + lead_ns) // self._period_ns) * self._period_ns

    def start_all(self) -> None:
        """Start both probes; LateError where the PPS is too near by now."""
        try:
            super().start_all()
        except UsageError:
            raise LateError("the probes took too long to get ready for the PPS: run it again") from None

    # While it runs ----------------------------------------------------------------------------

    def pause(self, left_ns: float, rest_ns: float) -> None:
        """Wait for the next latches of the line's clock, at random: at even intervals the two clocks may beat with them."""
        self._mean_ns = self._mean_ns or max(left_ns * LATCHES_EACH / LATCHES, 1.0)
        self.let_pass(min(self._random.uniform(0.2, 1.8) * self._mean_ns, rest_ns) / 1e9)

    def let_pass(self, seconds: float) -> None:
        """Let time pass, in steps that let everything else go on."""
        left_ns = seconds * 1e9
        while left_ns > 0:
            step_ns = min(left_ns, self._period_ns / 8 if self._tend else left_ns)
            super().let_pass(step_ns / 1e9)
            left_ns -= step_ns
            if self._tend:
                self._tend()

    def seen(self, job: RunningTrain) -> None:
        """Read the clock of the line that the receiver gets, where the gateware has such a latch."""
        self.latches[id(job)] += [job.meter.latch_line() for _ in range(LATCHES_EACH)]

    # Afterwards -------------------------------------------------------------------------------

    def clock_of(self, job: RunningTrain, counters: dict[str, int]) -> ClockVerdict:
        """Return what is to be said of both clocks; the bound is that of both and of the tick of the receive stamp (ns)."""
        del counters
        ends = [self.clocks[id(probe)].end() for probe in (job.route.sender, job.route.receiver)]
        line = line_of(self.latches[id(job)])
        sender, receiver = (self.clocks[id(probe)].last for probe in (job.route.sender, job.route.receiver))
        assert sender and receiver  # Both have such a clock, or nothing would have begun.
        self._clocks[id(job)] = _EndClocks(sender, receiver, line)
        return verdict_of(ends, line)

    def _one_way(self, job: RunningTrain, train: TrainResult) -> OneWayResult:
        clocks = self._clocks[id(job)]
        return one_way(train, (clocks.sender, clocks.receiver), clocks.line, self._asked_ns, self._start_time_ns)


def verdict_of(ends: Sequence[ClockVerdict], line: LineClock | None) -> ClockVerdict:
    """Return what is to be said of the clocks of both ends; the bound is that of a delay (ns)."""
    names = [NAMES[state] for state in BEST_LAST]
    return ClockVerdict(
        state=min((end.state for end in ends), key=names.index),
        bound_ns=_uncertainty_ns(ends, line),
        is_whole=all(end.is_whole for end in ends),
        notes=tuple(note for end in ends for note in end.notes),
    )


def one_way(
    train: TrainResult,
    clocks: tuple[ClockReport, ClockReport],
    line: LineClock | None,
    waiting_ns: int | None,
    start_ns: int,
) -> OneWayResult:
    """Return the result of a direction, by a train from a probe to another; ``clocks``: of its sender and receiver, at the end."""
    arrived = arrivals.packets(train, waiting_ns)
    late_ns = np.full(len(arrived.rx_stamp), TICK_NS / 2) if line is None else line.correction(arrived.rx_stamp)
    return OneWayResult(train, arrived, arrived.owd_ns + late_ns, line, start_ns, *clocks)


def _trusted(probe: RunDevice, any_clock: bool) -> ClockReport:
    status = probe.timebase.clock.status()
    if status.state not in TRUSTED and not any_clock:
        why = "; ".join(status.faults) or "wait until it is locked"
        raise ProbeError(
            f"the clock of {probe.url} is {status.name}, so a delay would be what the clocks differ: {why}"
        )
    return status


def _uncertainty_ns(ends: Sequence[ClockVerdict], line: LineClock | None) -> float | None:
    """Return the bound of a delay's error (ns): both clocks, and the tick of the receive stamp; None: not known.

    Of two receivers, noise is independent and what is common cancels out, so locked clocks count by the root of the sum
    of squares. Where something is to be noted, a bound may have a known distance in it: then they add up.
    """
    capture_ns = TICK_NS / 2 if line is None or not line.is_resolved else 2 * line.error_ns
    known = [end.bound_ns for end in ends if end.bound_ns is not None and end.is_whole]
    if len(known) != len(ends):
        return None
    is_random = all(end.state == NAMES[ClockState.LOCKED] and not end.notes for end in ends)
    return capture_ns + (math.hypot(*known) if is_random else sum(known))


def line_of(latches: Sequence[tuple[int, int]]) -> LineClock | None:
    """Return the clock of a line by latches of its count and the time (ns); None: there is no such latch."""
    counts, now = np.array(latches, dtype=np.int64).reshape(-1, 2).T
    try:
        return line_clock.fit(counts, now)
    except ValueError:
        return None


# Figures ------------------------------------------------------------------------------------------


def row(result: OneWayResult, waiting_time_ns: int | None = None) -> Row:
    """Return all figures of one direction, as ``summary.row`` has them; delays are resolved within the tick.

    ``uncertainty_ns`` is None where a clock's error is not known. Where records are missing, delays are those of the
    probe's accumulators: in the middle of the tick, with half a tick more of uncertainty.
    """
    figures = summary.row(result.train, waiting_time_ns)
    if arrivals.has_all_records(result.train):
        _resolve(figures, result)
    else:
        _move(figures, result.line)
    line = result.line
    figures["start_time_ns"] = result.start_time_ns
    figures["line_clock"] = None if line is None else {
        "rate_ppm": line.rate_ppm, "rate_error_ppm": finite(line.rate_error_ppm), "error_ns": line.error_ns,
        "is_resolved": line.is_resolved, "latches": line.points,
    }  # fmt: skip
    figures["sender"], figures["receiver"] = clock_figures(result.sender), clock_figures(result.receiver)
    bound_ns = figures["uncertainty_ns"]
    figures["uncertainty_ns"] = None if bound_ns is None else finite(bound_ns)
    return figures


def clock_figures(status: ClockReport) -> ClockFigures:
    """Return what a row has of a clock."""
    return {
        "clock_state": status.name,
        "uncertainty_ns": status.uncertainty_ns,
        "offset_ns": status.offset_ns,
        "rate_ppb": status.rate_ppb,
        "rejected": status.rejected,
    }


def _resolve(figures: Row, result: OneWayResult) -> None:
    """Put the delays of each packet, resolved within the tick, in the place of those of raw stamps."""
    owd = result.owd_ns
    order = np.argsort(result.arrived.sequence, kind="stable")
    numbers = result.arrived.sequence[order] + result.arrived.sequence[order] // result.train.program.count
    ipdv = np.diff(owd[order])[np.diff(numbers) == 1]
    figures["owd_ns"], figures["ipdv_ns"] = _sample(owd), _sample(ipdv)
    figures["pdv_ns"] = _sample(owd - owd.min() if len(owd) else owd)
    trains = arrivals.trains(result.train, result.arrived)
    for train, members in zip(figures["trains"], trains, strict=True):
        train["owd_mean_ns"] = float(owd[members].mean()) if len(members) else None


def _move(figures: Row, line: LineClock | None) -> None:
    """Move the delays of raw stamps into the middle of the tick."""
    figures["owd_ns"] = shifted(figures["owd_ns"], TICK_NS / 2)
    for train in figures["trains"]:
        mean_ns = train["owd_mean_ns"]
        train["owd_mean_ns"] = None if mean_ns is None else mean_ns + TICK_NS / 2
    bound_ns = figures["uncertainty_ns"]
    if line is not None and line.is_resolved and bound_ns is not None:
        figures["uncertainty_ns"] = bound_ns + TICK_NS / 2 - 2 * line.error_ns


def _sample(values: NDArray[np.float64]) -> Sample:
    """Return the figures of ``samples.sample``, of values that are not whole ns."""
    found = sample(values)
    if len(values):
        found |= {"min": float(values.min()), "max": float(values.max())}
    return found
