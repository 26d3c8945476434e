# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs an experiment on many probes: one-way delay and loss of each pair, all started at one TAI instant.

Each pair is a run of its own (`OneWay` of a train, `Traffic` of streams), each suite, too, and all of them go on in turns
(`in_turns`): what fails in one ends it alone.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import PRESETS, TICK_NS, Part, preset_of
from liteprobe.host.analysis import arrivals
from liteprobe.host.analysis.columns import Column, Columns, delays
from liteprobe.host.analysis.expect import Values
from liteprobe.host.analysis.result import Result, of_cells
from liteprobe.host.analysis.rows import Row, finite
from liteprobe.host.base.errors import BusyError, LeaseLostError, NoProbeError, ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.base.probe_url import is_simulated
from liteprobe.host.clock.clock import ClockReport
from liteprobe.host.fleet.captures import CaptureBeside, CaptureFigures, unable
from liteprobe.host.fleet.plan import ExperimentPlan, Planned, PlannedCapture, PlannedPair
from liteprobe.host.fleet.probes import PlannedProbe
from liteprobe.host.fleet.streams import IsLost, PlannedRun, PlannedStreams
from liteprobe.host.fleet.suite_runs import SuiteFigures, SuiteRun, suite_values
from liteprobe.host.fleet.suites import PlannedSuite
from liteprobe.host.fleet.turns import Sleep, in_turns
from liteprobe.host.measure.percentiles import Cells
from liteprobe.host.probe import Probe
from liteprobe.host.run.engine import START_MARGIN_NS, RunDevice
from liteprobe.host.run.figures import NONE_CAME, STREAMS, StreamFigures, TrafficResult
from liteprobe.host.run.trains import Route, RunningTrain
from liteprobe.host.suites.owd import LEAD_LOOKS, TRUSTED, LateError, OneWay, OneWayResult, clock_figures, row

Open = Callable[[PlannedProbe], Probe]
Tend = Callable[[], None]
OPENERS = 32  # Probes that are opened at the same time.
STEPS_PER_PERIOD = 8  # Of what else must go on meanwhile.
LEAD_READINGS = 60  # Of a probe's time, which take as long as it takes to load it.
ATTEMPTS = 3  # Of a start that comes before some pairs are loaded.
TRUSTED_NAMES = ("locked", "holdover")
SECOND_NS = 10**9

# Results ------------------------------------------------------------------------------------------


@dataclass
class PairFigures:
    """Holds what came of one pair's train, or of one of its streams; ``why``: why it has no figures, or no delays."""

    sender: str
    receiver: str
    stream: str = ""  # Name of the stream; empty: it is a train.
    start_time_ns: int | None = None  # TAI, when its first frame was due; None: it was not started.
    row: Row | None = None  # All figures of a train, as `suites.owd.row` has them.
    flow: StreamFigures | None = None  # All figures of a stream.
    of_clocks: dict[str, Any] = field(
        default_factory=dict
    )  # Of a stream: bound, state, both clocks, notes, as a row has them.
    why: str = ""
    note: str = ""  # What is to be known of figures that are right.
    owd_ns: NDArray[np.float64] | None = None  # Shape (packets,): each delay, known or not, as `OneWayResult` has it.

    @property
    def name(self) -> str:
        """Both names, and that of the stream."""
        return f"{self.sender} to {self.receiver}" + f", {self.stream}" * bool(self.stream)

    @property
    def is_measured(self) -> bool:
        """Whether it has figures."""
        return self.row is not None or self.flow is not None

    @property
    def figures(self) -> dict[str, Any] | None:
        """All its figures as plain data."""
        if self.flow is not None:
            return {**STREAMS.document(self.flow), **self.of_clocks}
        return None if self.row is None else dict(self.row)

    @property
    def delays(self) -> Mapping[str, Any] | None:
        """Figures of its delays (ns), by the names of columns; None: they are not known."""
        if self.why or not self.is_measured:
            return None
        if self.row is not None:
            sample = self.row["owd_ns"]
            return {**sample, "least": sample["min"], "most": sample["max"]}
        return self.flow.delay_figures if self.flow and self.flow.latency else None

    @property
    def cells(self) -> Cells:
        """Histogram of its delays; nothing where they are not known."""
        if self.bound_ns is None:
            return Cells.of(())
        if self.owd_ns is not None:
            return Cells.of_values(np.rint(self.owd_ns))
        return self.flow.latency.cells if self.flow and self.flow.latency else Cells.of(())

    @property
    def bound_ns(self) -> float | None:
        """Bound (95 %) of the error of a delay, of both clocks while it was measured; None: the delay is not known."""
        if self.why or not self.is_measured:
            return None
        bound_ns: float | None = (self.row or self.of_clocks)["uncertainty_ns"]
        return bound_ns

    def count(self, name: str) -> int | None:
        """Return a count of its row; None where there is none."""
        if self.flow is not None:
            found: int | None = getattr(self.flow, name)
            return found
        return None if self.row is None else self.row[name]  # type: ignore[literal-required]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, with all figures under ``figures``; ``stream`` is None of a train."""
        return {
            **ExperimentResult.COLUMNS.document(self),
            "from": self.sender,
            "to": self.receiver,
            "stream": self.stream or None,
            "start_time_ns": self.start_time_ns,
            "figures": self.figures,
        }


@dataclass(frozen=True, repr=False)
class ExperimentResult(Result):
    """Result of an experiment: all of `Result`, a part for each pair's train, or for each of its streams.

    ``is_complete``: whether every pair has its delays, every capture its frames, and every suite its end.
    """

    pairs: Sequence[PairFigures]
    faults: Mapping[str, str]  # Why a probe was left out, by its name.
    notes: Sequence[str] = ()
    captures: Sequence[CaptureFigures] = ()
    suites: Sequence[SuiteFigures] = ()
    missing: frozenset[str] = frozenset()  # Of these probes, which are among the faults, the station has given nothing.

    COLUMNS: ClassVar[Columns] = Columns(
        Column("name", "pair", "Pair"),
        Column("sent", "sent", "Sent", of=lambda one: one.count("sent")),
        Column("received", "received", "Received", of=lambda one: one.count("received")),
        Column("lost", "lost", "Lost", is_fault=True, of=lambda one: one.count("lost")),
        Column("duplicated", "dup", "Doubled", is_fault=True, of=lambda one: one.count("duplicated")),
        Column("reordered", "reord", "Reordered", is_fault=True, of=lambda one: one.count("reordered")),
        *delays(lambda one: one.delays).values(),
        #: The greatest error of a delay (95 %), of both clocks at that time.
        Column("bound", "bound", "Bound", 1, of=lambda one: one.bound_ns),
        Column("why", "why not", "Why not", of=lambda one: one.why or one.note or None),
    )

    @property
    def parts(self) -> dict[str, PairFigures]:
        """All pairs by their names."""
        return {one.name: one for one in self.pairs}

    @property
    def of_what(self) -> str:
        """Its parts, in words."""
        return "pairs' streams" if any(one.stream for one in self.pairs) else "pairs"

    @property
    def measured(self) -> list[PairFigures]:
        """Pairs whose delays are known."""
        return [one for one in self.pairs if one.bound_ns is not None]

    @property
    def delays_by_part(self) -> dict[str, NDArray[np.int64]]:
        """Delays of pairs whose delays are known, rounded to whole ns; of streams each is the middle of its bin."""
        binned = {one.name: of_cells(one.cells) for one in self.measured if one.flow is not None}
        return self.records_by_part | binned

    @property
    def records_by_part(self) -> dict[str, NDArray[np.int64]]:
        """Delays of trains, which are known one by one."""
        return {one.name: np.rint(one.owd_ns).astype(np.int64) for one in self.measured if one.owd_ns is not None}

    @property
    def cells_by_part(self) -> dict[str, Cells]:
        """Histograms of the delays that are known."""
        return {one.name: cells for one in self.measured if len((cells := one.cells).counts)}

    @property
    def uncertainty_ns(self) -> float | None:
        """The greatest bound of a delay of all pairs that have some (ns); None: none has."""
        return max((one.bound_ns or 0.0 for one in self.measured), default=None)

    @property
    def is_complete(self) -> bool:
        """Whether every pair has its delays, every capture its frames, and every suite its end."""
        is_measured = not self.faults and all(one.bound_ns is not None for one in self.pairs)
        return is_measured and all(
            [*(one.is_complete for one in self.captures), *(one.is_complete for one in self.suites)]
        )

    def error_ns(self, part: PairFigures) -> float:
        """Return the bound of a delay of a pair."""
        return float("inf") if part.bound_ns is None else part.bound_ns

    @property
    def figures(self) -> dict[str, dict[str, Any]]:
        """All figures by pair and name, but for words."""
        return {
            name: {key: one for key, one in found.items() if key not in ("name", "why")}
            for name, found in super().figures.items()
        }

    @property
    def judged_figures(self) -> Mapping[str, Values]:
        """Figures of pairs, and those of suites, which are called by the suite and its part."""
        return {**self.figures, **suite_values(self.suites)}

    def table(self) -> dict[str, Any]:
        """Return a table by its columns, as of `Result`, and why a pair has no delays."""
        return super().table() | {"why": [one.why or one.note for one in self.pairs]}

    def distribution(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return delays of a part in order (ns), shape (values,), and how many frames came within each.

        Of streams a delay is the middle of its bin. Raises KeyError where there is no such part.
        """
        part = self.parts[name]
        if part.owd_ns is not None:
            return np.sort(part.owd_ns), np.arange(len(part.owd_ns)) + 1
        middles = (part.cells.lows + part.cells.highs) / 2
        order = np.argsort(middles, kind="stable")
        return middles[order], np.cumsum(part.cells.counts[order])

    def matrix(self, stream: str | None = None) -> dict[str, dict[str, float | None]]:
        """Return the mean delay (ns) by who sends and who receives; None: it is not known.

        ``stream``: of the stream of this name; None: of trains, and of the first stream of each pair.
        """
        found: dict[str, dict[str, float | None]] = {}
        for one in self.pairs:
            if stream is None or stream == one.stream:
                found.setdefault(one.sender, {}).setdefault(one.receiver, one.delays["mean"] if one.delays else None)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data, as ``liteprobe experiment --json`` has it."""
        return {
            "pairs": [one.to_dict() for one in self.pairs],
            "captures": [one.to_dict() for one in self.captures],
            "suites": [one.to_dict() for one in self.suites],
            "faults": dict(self.faults),
            "notes": list(self.notes),
            "is_complete": self.is_complete,
        }


def unit_of(found: ExperimentResult) -> tuple[str, float, int]:
    """Return the unit in which the delays of a result are shown: its name, its size (ns), and digits of a figure."""
    most = max((one.delays["most"] for one in found.pairs if one.delays), default=0.0)
    if most < 1e5:
        return "ns", 1.0, 1
    return ("µs", 1e3, 3) if most < 1e8 else ("ms", 1e6, 3)


@dataclass(frozen=True)
class ExperimentLook:
    """Says how far an experiment is."""

    rounds: int
    of_rounds: int
    pairs: Sequence[PairFigures]
    faults: Mapping[str, str]
    doing: Mapping[str, str] = field(default_factory=dict)  # How far suites are that run, by their names.

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        suites = {"suites": dict(self.doing)} if self.doing else {}
        return {"rounds": self.rounds, "of_rounds": self.of_rounds, "faults": dict(self.faults), **suites}


# A pair -------------------------------------------------------------------------------------------


class PlannedWay(PlannedRun, OneWay):
    """One pair's train, whose start is given."""

    def __init__(self, route: Route, plan: ExperimentPlan, start_ns: int, sleep: Sleep, is_lost: IsLost) -> None:
        self._planned_ns, self._sleep, self._is_lost = start_ns, sleep, is_lost
        waiting_ns = plan.waiting_time_ns
        super().__init__([route], None if waiting_ns is None else int(waiting_ns))

    def start_ns(self) -> int:
        """Return the instant that is common to all pairs."""
        return self._planned_ns

    def _check_arrival(self, job: RunningTrain, counters: dict[str, int]) -> None:
        if counters["frames"]:
            super()._check_arrival(job, counters)
            return
        # A way on which all is lost is a result; a link that is down is a fault.
        for end in (job.sender, job.receiver):
            if not end.port.transmit.is_link_up:
                self._lose(job, end)


# All of them --------------------------------------------------------------------------------------


class Experiment:
    """An experiment on many probes; ``with Experiment(plan) as experiment: experiment.run()``.

    Probes that can't take part are named in ``faults``, and the rest goes on.

    Parameters
    ----------
    plan : ExperimentPlan
    tend : callable or None
        Called now and then, every eighth of a PPS period at the latest: what else must go on meanwhile.
    steal : bool
        Take probes from other hosts that have them.
    opener : callable or None
        Opens a probe of the plan; None: by its URL.

    Attributes
    ----------
    probes : dict of str and Probe
        Those that take part, by their names.
    faults : dict of str and str
        Why others don't.
    """

    def __init__(
        self, plan: ExperimentPlan, tend: Tend | None = None, steal: bool = False, opener: Open | None = None
    ) -> None:
        self.plan, self.tend = plan, tend
        self._open_one = opener or (lambda one: Probe(one.url, one.map, steal))
        self.probes: dict[str, Probe] = {}
        self._opened: list[Probe] = []
        self.faults: dict[str, str] = {}
        self._figures = {one.ends: [PairFigures(*one.ends, name) for name in one.flows] for one in plan.pairs}
        self._period_ns = SECOND_NS
        self._suites = {one.title: SuiteFigures.of(one) for one in plan.suites}
        self._started: list[Planned] = []  # What began with the last start.
        self._late: list[Planned] = []  # What missed the last start.
        self._doing: Callable[[dict[str, str]], None] = lambda doing: None  # Given how far suites are.
        self._captures = [CaptureFigures(one.probe, one.files) for one in plan.captures]
        self._sleep: Sleep = self._wait  # What lets time pass for all.
        self._reading_ns: dict[str, int] = {}  # How long it takes to read the time of a probe, by its name.

    def __enter__(self) -> Self:
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Before -----------------------------------------------------------------------------------

    def open(self) -> None:
        """Open all probes, those that aren't simulated at the same time; those that don't answer are named."""
        planned = self.plan.probes
        apart = [one for one in planned if not is_simulated(one.url)]
        with ThreadPoolExecutor(OPENERS) as pool:
            later = {one.name: pool.submit(self._open_one, one) for one in apart}
        errors: list[BaseException] = []
        for one in planned:
            try:
                probe = later[one.name].result() if one.name in later else self._open_one(one)
            except ProbeError as error:
                self._leave_out(one.name, lost(error))
            except BaseException as error:  # What is open is known first, so that it is closed.
                errors.append(error)
            else:
                self._opened.append(probe)
                self.probes[one.name] = probe
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Let go of all probes."""
        for probe in self._opened:
            with suppress(ProbeError):
                probe.close()
        self._opened.clear()
        self.probes.clear()

    def check(self) -> dict[str, str]:
        """Look at every probe before a start, and return those that are left out from now on, with the reason of each.

        Delays that were just measured by a clock which tells another time since are taken away.
        """
        before = set(self.faults)
        for name, probe in list(self.probes.items()):
            try:
                self._check_one(name, probe)
            except ProbeError as error:
                self._leave_out(name, lost(error))
        self._compare_clocks()
        found = {name: why for name, why in self.faults.items() if name not in before}
        self._void(found)
        return found

    def _check_one(self, name: str, probe: Probe) -> None:
        if why := unfit(self.plan, self.plan.by_name[name], probe):
            self._leave_out(name, why)
            return
        self._period_ns = probe.timebase.clock.status().period_ns or SECOND_NS
        before_ns = probe.timebase.now_ns
        self._reading_ns[name] = probe.timebase.now_ns - before_ns

    def _compare_clocks(self) -> None:
        """Leave out those whose clocks tell another time than most.

        All are read twice, the second time backwards: what passes between two readings is in neither mean.
        """
        readings: dict[str, list[int]] = {name: [] for name in self.probes}
        is_real = not any(is_simulated(probe.url) for probe in self.probes.values())
        for name in [*readings, *reversed(readings)]:
            if name not in self.probes:
                continue
            try:
                before = time.monotonic_ns()
                now = self.probes[name].timebase.now_ns
                between = (before + time.monotonic_ns()) // 2 if is_real else 0
            except ProbeError as error:
                self._leave_out(name, lost(error))
                continue
            readings[name].append(now - between)
        times = {name: sum(both) / len(both) for name, both in readings.items() if name in self.probes}
        for name, why in disagreeing(times, self._period_ns).items():
            self._leave_out(name, why)

    def _leave_out(self, name: str, why: str) -> None:
        self.probes.pop(name, None)
        self.faults.setdefault(name, why)

    # The run ----------------------------------------------------------------------------------

    def run(self, show: Callable[[ExperimentLook], None] | None = None) -> ExperimentResult:
        """Run all rounds, and return what came of each pair.

        Raises UsageError when the start is past; ProbeError where too few probes are left for any pair; Interrupted, after all
        ports were stopped, whose ``results`` are what there is: an `ExperimentResult`.
        """
        if not self.plan.captures:
            return self._run(show)
        self.check()
        beside = {one.probe: CaptureBeside(one, self.probes[one.probe]) for one in self.plan.captures if self._can(one)}
        self._captures = [beside[one.probe].figures if one.probe in beside else one for one in self._captures]

        def conduct(sleep: Sleep) -> None:
            self._sleep = sleep
            try:
                self._run(show)
            finally:
                self._sleep = self._wait
                for one in beside.values():
                    one.end()

        try:
            in_turns([*(one.run for one in beside.values()), conduct], self._wait)
        except KeyboardInterrupt as stop:
            if isinstance(stop, Interrupted):
                stop.results = [self.result()]
            raise
        return self.result()

    @property
    def refused_captures(self) -> dict[str, str]:
        """Why there is no capture at probes, by their names."""
        return {one.probe: one.why for one in self._captures if one.why and one.result is None}

    def _can(self, planned: PlannedCapture) -> bool:
        """Return whether a probe can capture, and keep why it can't."""
        figures = next(one for one in self._captures if one.probe == planned.probe)
        if planned.probe not in self.probes:
            figures.why = self.faults[planned.probe]
        else:
            figures.why = unable(self.probes[planned.probe])
        return not figures.why

    def _run(self, show: Callable[[ExperimentLook], None] | None) -> ExperimentResult:
        """Run all rounds."""
        rounds = self.plan.all_rounds()

        def see(number: int, doing: dict[str, str]) -> None:
            if show:
                show(ExperimentLook(number, len(rounds), self._all, self.faults, doing))

        try:
            for number, all_of_one in enumerate(rounds):
                self.check()
                see(number, {})
                self._doing = partial(see, number)
                self._round([one for one in all_of_one if self._has(one)], is_first=number == 0)
            self.check()
        except KeyboardInterrupt as stop:
            if isinstance(stop, Interrupted):
                stop.results = [self.result()]
            raise
        if not any(one.start_time_ns is not None for one in self._parts):
            said = "; ".join(f"{name}: {why}" for name, why in self.faults.items())
            is_lost = all(why.startswith("lost") for why in self.faults.values())
            kind = NoProbeError if is_lost and self.faults else ProbeError
            raise kind(f"no {'pair has two probes' if self._all else 'suite has probes'} that can take part: {said}")
        return self.result()

    def result(self) -> ExperimentResult:
        """Return what came of each pair so far."""
        for one in self._parts:
            if not one.is_measured and not one.why:
                ends = dict.fromkeys((one.sender, one.receiver))
                gone = [f"{name}: {self.faults[name]}" for name in ends if name in self.faults]
                one.why = "; ".join(gone) or "it was not started"
        captures = [
            one if one.result or one.why else replace(one, why=self.faults.get(one.probe, "it was not started"))
            for one in self._captures
        ]
        suites = [replace(one) for one in self._suites.values()]
        return ExperimentResult(
            [replace(one) for one in self._all], dict(self.faults), captures=captures, suites=suites
        )

    @property
    def _parts(self) -> list[PairFigures | SuiteFigures]:
        return [*self._all, *self._suites.values()]

    @property
    def _all(self) -> list[PairFigures]:
        return [one for pair in self._figures.values() for one in pair]

    def _has(self, one: Planned) -> bool:
        return one.sender in self.probes and one.receiver in self.probes

    def _found(self, one: Planned) -> Sequence[PairFigures | SuiteFigures]:
        """Return what comes of a pair, or of a suite."""
        return [self._suites[one.title]] if isinstance(one, PlannedSuite) else self._figures[one.ends]

    def _void(self, faults: Mapping[str, str]) -> None:
        """Take away the delays of the last start whose clocks tell another time since, and all of such suites."""
        for started in self._started:
            for name in started.ends:
                if "disagree" in faults.get(name, ""):
                    for one in self._found(started):
                        if isinstance(one, SuiteFigures):
                            one.void(f"{name}: {faults[name]}")
                        else:
                            one.why = f"{name}: {faults[name]}"

    def _round(self, all_of_one: Sequence[Planned], is_first: bool) -> None:
        """Start pairs and suites together; those that weren't loaded in time start later, and are noted."""
        todo = list(all_of_one)
        for attempt in range(ATTEMPTS):
            if attempt:
                self.check()
                todo = [one for one in self._late if self._has(one)]
            if not todo:
                return
            self._started, self._late = todo, []
            start_ns = self._start_ns(todo, is_first and not attempt)
            acts = [partial(self._one, one, start_ns, attempt > 0) for one in todo]
            in_turns(acts, self._sleep)

    def _start_ns(self, pairs: Sequence[Planned], is_first: bool) -> int:
        """Return the instant of the next start (TAI, ns)."""
        ends = [name for one in pairs for name in dict.fromkeys(one.ends)]
        now_ns = self.probes[ends[0]].timebase.now_ns
        lead_ns = START_MARGIN_NS + sum(self._lead_ns(name) for name in ends) // 2
        if is_first and self.plan.start_tai_s is not None:
            start_ns = self.plan.start_tai_s * SECOND_NS
            if start_ns < now_ns + lead_ns:
                what = f"{len(pairs)} {'suites' if isinstance(pairs[0], PlannedSuite) else 'pairs'}"
                raise UsageError(
                    f"start_tai {self.plan.start_tai_s} is past, or less than {lead_ns / 1e9:.3f} s ahead, in which {what} are "
                    f"loaded: the clocks read {now_ns / 1e9:.3f} s, give a later one"
                )
            return start_ns
        ahead_ns = max(lead_ns, int(self.plan.start_in_ns)) if is_first else lead_ns
        return -(-(max(now_ns, 0) + ahead_ns) // self._period_ns) * self._period_ns

    def _lead_ns(self, name: str) -> int:
        """Return how long it takes to load a probe, with a margin (ns)."""
        return max(LEAD_LOOKS * int(self.probes[name].link.look_ns), LEAD_READINGS * self._reading_ns.get(name, 0))

    def _wait(self, seconds: float) -> None:
        """Let time pass for all probes."""
        left_ns = seconds * 1e9
        while left_ns > 0:
            step_ns = min(left_ns, self._period_ns / STEPS_PER_PERIOD if self.tend else left_ns)
            next(iter(self.probes.values()), self._opened[0]).link.wait(step_ns / 1e9)
            left_ns -= step_ns
            if self.tend:
                self.tend()

    def _one(self, planned: Planned, start_ns: int, is_again: bool, sleep: Sleep) -> None:
        """Measure one pair, or run one suite, whatever comes of the others."""
        found = self._found(planned)
        if not self._has(planned):  # Lost since the others were loaded.
            return
        for one in found:
            one.why = ""
        try:
            if isinstance(planned, PlannedSuite):
                self._suite(planned, start_ns, sleep)
            else:
                (self._streams if planned.streams else self._train)(
                    planned, self._figures[planned.ends], start_ns, sleep
                )
        except LateError as error:
            self._late.append(planned)
            for one in found:
                one.why = f"late: {error}"
            return
        for one in found if is_again else ():
            if one.is_measured and not one.note:
                one.note = "late: it was not loaded in time for the start of the others, and started after them"

    def _suite(self, planned: PlannedSuite, start_ns: int, sleep: Sleep) -> None:
        found = self._suites[planned.title]
        ends = (self.probes[planned.sender], self.probes[planned.receiver])

        def say(words: str) -> None:
            self._doing({planned.title: words})

        try:
            SuiteRun(planned, ends, self.plan, (start_ns, sleep), self._is_lost, found, say).run()
        except LateError:
            raise
        except ProbeError as error:
            self._fail(planned, [found], error)

    def _train(self, pair: PlannedPair, found: Sequence[PairFigures], start_ns: int, sleep: Sleep) -> None:
        sends, hears = (self.plan.by_name[name].port for name in pair.ends)
        assert pair.program
        route = Route(pair.program, self.probes[pair.sender], self.probes[pair.receiver], sends, hears)
        way = None
        measured: Sequence[OneWayResult] = ()
        try:
            way = PlannedWay(route, self.plan, start_ns, sleep, self._is_lost)
            measured = way.measure()
        except Interrupted as stop:
            found[0].why = "interrupted"
            measured = way.results_of(stop.results) if way else ()
        except LateError:
            raise
        except ProbeError as error:
            self._fail(pair, found, error)
        if way and way.is_started:
            found[0].start_time_ns = start_ns
        for one in measured:
            found[0].owd_ns = one.owd_ns if arrivals.has_all_records(one.train) else None
            take(found[0], row(one, self._waiting_ns), self.plan)

    def _streams(self, pair: PlannedPair, found: Sequence[PairFigures], start_ns: int, sleep: Sleep) -> None:
        ends = (self.probes[pair.sender], self.probes[pair.receiver])
        way = None
        measured: Sequence[TrafficResult] = ()
        try:
            way = PlannedStreams(pair, ends, self.plan, (start_ns, sleep), self._is_lost)
            measured = [way.measure()]
        except Interrupted as stop:
            for one in found:
                one.why = "interrupted"
            measured = stop.results
        except LateError:
            raise
        except ProbeError as error:
            self._fail(pair, found, error)
        if way and way.is_started:
            for one in found:
                one.start_time_ns = start_ns
        for result in measured:
            assert way
            take_streams(found, result, way.last_clocks, self.plan)

    @property
    def _waiting_ns(self) -> int | None:
        waiting_ns = self.plan.waiting_time_ns
        return None if waiting_ns is None else int(waiting_ns)

    def _is_lost(self, probe: RunDevice) -> bool:
        return all(one is not probe for one in self.probes.values())

    def _fail(self, pair: Planned, found: Sequence[PairFigures | SuiteFigures], error: ProbeError) -> None:
        """Say what ended a pair or a suite, and which of its probes is lost."""
        for name in dict.fromkeys(pair.ends):
            if name in self.probes:
                try:
                    self.probes[name].registers.own()
                    self.probes[name].timebase.moment()
                except ProbeError as fault:
                    self._leave_out(name, lost(fault))
        gone = [f"{name}: {self.faults[name]}" for name in dict.fromkeys(pair.ends) if name in self.faults]
        for one in found:
            one.why = "; ".join(gone) or str(error)


def take(found: PairFigures, figures: Row, plan: ExperimentPlan) -> None:
    """Keep the figures of a pair's train, and say why its delays are not known, where they aren't."""
    found.row = figures
    late = [note for note in figures["notes"] if "after its start time" in note or "after their tick" in note]
    notes = [f"late: {'; '.join(late)}"] if late else []
    _judge(found, figures, figures["received"], notes, 2 * plan.clock_bound_ns + TICK_NS)


def take_streams(
    found: Sequence[PairFigures],
    result: TrafficResult,
    clocks: tuple[ClockReport, ClockReport],
    plan: ExperimentPlan,
) -> None:
    """Keep the figures of a pair's streams, as `take` does; ``clocks``: of its sender and receiver, at the end."""
    bound_ns = finite(result.uncertainty_ns)
    of_clocks: dict[str, Any] = {
        "uncertainty_ns": bound_ns,
        "clock_state": result.clock_state,
        "sender": clock_figures(clocks[0]),
        "receiver": clock_figures(clocks[1]),
        "notes": list(result.notes),
    }
    for one in found:
        one.flow, one.of_clocks = result[one.stream], of_clocks
        own = (f"stream '{one.stream}': ", "port ")
        notes = [note.removeprefix(own[0]) for note in result.notes if note.startswith(own) and NONE_CAME not in note]
        late = [f"late: {one.flow.late} frames left after their tick"] if one.flow.late else []
        _judge(one, of_clocks, one.flow.received, [*late, *notes], 2 * plan.clock_bound_ns + 2 * TICK_NS)


def _judge(
    found: PairFigures,
    figures: Mapping[str, Any],
    received: int | None,
    notes: Sequence[str],
    most_ns: Fraction,
) -> None:
    """Say why the delays of figures are not known, or what is to be known of them; ``most_ns``: of their error."""
    bound_ns, state = figures["uncertainty_ns"], figures["clock_state"]
    if bound_ns is None or state not in TRUSTED_NAMES:
        of_clocks = [note for note in figures["notes"] if "clock" in note]
        found.why = "; ".join([f"the delay is not known: a clock was {state}, or stepped", *of_clocks])
    elif bound_ns > most_ns:
        found.why = f"the delay is not known: the clocks' error grew to {bound_ns:,.1f} ns"
    elif not received:
        found.why = found.why or "no frame came: see to the path, and to `port` and addresses in the plan"
    elif found.why:
        found.note, found.why = found.why, ""
    elif notes:
        found.note = "; ".join(notes)


def unfit(plan: ExperimentPlan, planned: PlannedProbe, probe: Probe) -> str:
    """Return why a probe can't take part in a plan as it is now; empty: it can. Raises ProbeError where nobody answers."""
    preset = preset_of(probe.parts)
    if plan.preset and preset != plan.preset:
        return f"of another preset: it is a {preset}, the plan says {plan.preset}"
    if not probe.ports and planned.name in plan.in_pairs:
        return f"of another preset: a {preset} sends nothing"
    if plan.parts_of(planned.name) & Part.STREAMS & ~probe.parts:
        names = [name for name, parts in PRESETS.items() if Part.STREAMS in parts]
        return f"of another preset: a {preset} sends no streams, and measures none: load {' or '.join(names)}"
    if planned.port >= len(probe.ports) and planned.name in plan.in_pairs:
        return f"it has no port {planned.port}: give 0 to {len(probe.ports) - 1}"
    probe.registers.own()
    status = probe.timebase.clock.status()
    bound_ns = status.uncertainty_ns
    if status.state not in TRUSTED:
        why = "; ".join(status.faults) or "wait until it is locked"
        return f"not locked: its clock is {status.name}: {why}"
    if bound_ns is None or bound_ns > plan.clock_bound_ns:
        known = "not known" if bound_ns is None else f"{bound_ns:,.1f} ns"
        allowed = f"the plan allows {float(plan.clock_bound_ns):,.1f} ns"
        return f"not locked well: the error of its clock is {known}, {allowed}"
    return ""


def disagreeing(times: Mapping[str, float], period_ns: int) -> dict[str, str]:
    """Return which clocks tell another time than most, by half a period of the PPS or more, and why that is said.

    ``times``: what each read at one instant (ns).
    """
    near = {name: sum(abs(other - mine) <= period_ns / 2 for other in times.values()) for name, mine in times.items()}
    most = max(near, key=lambda name: near[name], default="")
    if most and 2 * near[most] <= len(times):
        why = "the clocks disagree, and no time is that of most: set them, or give each receiver a fix"
        return dict.fromkeys(times, why)
    off_ns = {name: mine - times[most] for name, mine in times.items() if abs(mine - times[most]) > period_ns / 2}
    said = "its clock disagrees with the others by {:+.3f} s: set it, or give its receiver a fix"
    return {name: said.format(off / SECOND_NS) for name, off in off_ns.items()}


def lost(error: ProbeError) -> str:
    """Return how a probe is called that can't be used for an error: busy, or lost."""
    return f"busy: {error}" if isinstance(error, BusyError | LeaseLostError) else f"lost: {error}"
