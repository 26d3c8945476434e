# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a suite of an experiment by the suite's own code: its first frame leaves at the start, time passes for all others, too.

What comes of it is kept as plain data, the same here and from a station.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from liteprobe.cores.formats import TICK_NS
from liteprobe.host.analysis.columns import Column, Columns
from liteprobe.host.analysis.expect import Values
from liteprobe.host.analysis.result import Result
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.fleet.plan import ExperimentPlan
from liteprobe.host.fleet.streams import IsLost, SharedTraffic
from liteprobe.host.fleet.suites import STAMP, PlannedSuite
from liteprobe.host.fleet.turns import InTurns, Sleep
from liteprobe.host.measure.percentiles import Bounds, Cells, Measured
from liteprobe.host.probe import Probe
from liteprobe.host.run.figures import TrafficResult
from liteprobe.host.run.stamp import StampResult, StampRun, StampSession
from liteprobe.host.run.streams import SendOptions
from liteprobe.host.suites.rfc2544 import Rfc2544, Rfc2544Result
from liteprobe.host.suites.soak import Soak, SoakResult
from liteprobe.host.suites.suite import Suite, Verdict
from liteprobe.host.suites.trials import Journal
from liteprobe.host.suites.y1564 import Y1564, Y1564Result
from liteprobe.host.traffic.stream import Stream

SUITES: Mapping[str, Callable[..., Suite]] = {"rfc2544": Rfc2544, "y1564": Y1564, "soak": Soak, "bert": Soak}
RESULTS: Mapping[str, type[Result]] = {
    "rfc2544": Rfc2544Result, "y1564": Y1564Result, "soak": SoakResult, "bert": SoakResult, STAMP: StampResult
}  # fmt: skip
TRUSTED = ("locked", "holdover")
TURN_S = 0.005  # From one look at what has come to the next, while answers of STAMP are captured.
Say = Callable[[str], None]

# Results ------------------------------------------------------------------------------------------


@dataclass(repr=False)
class SuiteFigures(Result):
    """Holds what came of a suite: all of `Result`; ``why``: why it has no result, or why that has an end too soon."""

    name: str  # As of `PlannedSuite.title`.
    kind: str
    sender: str
    receiver: str  # The same where it ran at one probe.
    start_time_ns: int | None = None  # TAI, when its first frame was due; None: it was not started.
    document: dict[str, Any] | None = None  # As its command's JSON has it.
    outcome: str = ""  # Its verdict; empty: it has none.
    marks: tuple[str, ...] = ()  # What must stand above all figures.
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)  # Figures by part, each alone or as (least, most).
    bins: dict[str, list[list[int]]] = field(default_factory=dict)  # Delays by part: lows, highs, counts.
    uncertainty_ns: float | None = None  # Bound of the error of a delay.
    is_whole: bool = False  # It ended as was asked for.
    why: str = ""
    note: str = ""

    COLUMNS: ClassVar[Columns] = Columns()

    @classmethod
    def of(cls, planned: PlannedSuite, why: str = "") -> "SuiteFigures":
        """Return those of a suite that has not been started."""
        return cls(planned.title, planned.kind, *planned.ends, why=why)

    def take(self, result: Any) -> None:
        """Keep a result as plain data."""
        self.document, self.is_whole = result.to_dict(), bool(result.is_complete)
        request = getattr(result, "request", None)
        self.marks = tuple(request.marks) if request is not None else ()
        verdicts = getattr(result, "verdicts", None)
        outcome = (
            getattr(result, "outcome", None) if verdicts is None else Verdict.of_all(verdicts.values(), self.is_whole)
        )
        self.outcome = "" if outcome is None else str(outcome)
        self.uncertainty_ns = result.uncertainty_ns if math.isfinite(result.uncertainty_ns) else None
        self.rows = {
            part: {name: _plain(one) for name, one in row.items() if one is not None}
            for part, row in result.figures.items()
        }
        self.bins = {
            part: [one.lows.tolist(), one.highs.tolist(), one.counts.tolist()]
            for part, one in result.cells_by_part.items()
        }

    def plain(self) -> dict[str, Any]:
        """Return all of it as plain data, for `of_plain`."""
        return dict(vars(self))

    @classmethod
    def of_plain(cls, known: Mapping[str, Any]) -> "SuiteFigures":
        """Return what `plain` gave."""
        return cls(**{**known, "marks": tuple(known["marks"])})

    def void(self, why: str) -> None:
        """Take away what can't be believed."""
        self.document, self.rows, self.bins, self.outcome, self.is_whole, self.why = None, {}, {}, "", False, why

    @property
    def is_measured(self) -> bool:
        """Whether it has figures."""
        return self.document is not None

    @property
    def is_complete(self) -> bool:
        """Whether it ended as was asked for."""
        return self.is_whole and not self.why

    @property
    def parts(self) -> dict[str, dict[str, Any]]:
        """Figures by part."""
        return self.rows

    @property
    def figures(self) -> dict[str, dict[str, Any]]:
        """All figures by part and name, each with its bounds."""
        return {part: {name: _figure(one) for name, one in row.items()} for part, row in self.rows.items()}

    @property
    def cells_by_part(self) -> dict[str, Cells]:
        """Delays by part, in bins (ns)."""
        return {part: Cells.of(zip(*one, strict=True)) for part, one in self.bins.items()}

    def count(self, name: str) -> int | None:
        """Return the sum of a count over all parts; None where one of them doesn't know it."""
        values = [row.get(name) for row in self.rows.values()]
        return None if None in values or not values else sum(one for one in values if isinstance(one, int))

    def table(self) -> dict[str, Any]:
        """Return a table: a row for each part, a column for each figure that some part has."""
        names = list(dict.fromkeys(name for row in self.rows.values() for name in row))
        return {"name": list(self.rows)} | {name: [row.get(name) for row in self.figures.values()] for name in names}

    @property
    def shown(self) -> list[Column]:
        """Columns of its figures, in their commands' units: of items of ``rows``."""
        own = RESULTS[self.kind].COLUMNS

        def column(key: str) -> Column:
            known = own[key] if key in own else Column(key, key, key, 6)
            # All have a name here, those too that a list of the command leaves out.
            head = known.head or known.title.lower().replace(",\n", " ") or key.replace("_", " ")
            title = known.title or head.capitalize()
            return replace(known, head=head, title=title, of=lambda item: _figure(item[1].get(key)))

        names = dict.fromkeys(name for row in self.rows.values() for name in row)
        part = Column("part", "part", "Part", of=lambda item: item[0])
        return [part, *(column(name) for name in names)] if names else []

    @property
    def words(self) -> str:
        """Verdict, and why it has none, in a line."""
        if not self.is_measured:
            return f"{self.name}: {self.why}"
        said = [self.outcome or ("done" if self.is_complete else "incomplete"), *([self.why] if self.why else [])]
        return f"{self.name}: {', '.join([*said, *([self.note] if self.note else [])])}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data; the document of its command under ``result``."""
        return {
            "name": self.name,
            "suite": self.kind,
            "at": self.sender,
            "to": None if self.sender == self.receiver else self.receiver,
            "start_time_ns": self.start_time_ns,
            "verdict": self.outcome or None,
            "is_complete": self.is_complete,
            "why": self.why or self.note or None,
            "marks": list(self.marks),
            "uncertainty_ns": self.uncertainty_ns,
            "result": self.document,
        }


def _plain(one: Any) -> Any:
    if isinstance(one, Measured):
        return [float(one), one.bounds.least, one.bounds.most]
    return one


def _figure(one: Any) -> Any:
    return Measured(one[0], Bounds(one[1], one[2])) if isinstance(one, list) else one


# Runs ---------------------------------------------------------------------------------------------


class _Trial(SharedTraffic):
    """Streams of a trial; ProbeError where a clock was stepped meanwhile, or, of two, can't be trusted."""

    most_ns = math.inf  # Of the error of a delay.

    def result(self) -> TrafficResult:
        found = super().result()
        state, bound_ns = found.clock_state, found.uncertainty_ns
        is_between = self._ends[0] is not self._ends[1]
        if not math.isfinite(bound_ns) or (is_between and state not in TRUSTED):
            raise ProbeError(f"the delay is not known: a clock was {state}, or stepped")
        if is_between and bound_ns > self.most_ns:
            raise ProbeError(f"the delay is not known: the clocks' error grew to {bound_ns:,.1f} ns")
        return found


class SuiteSender:
    """A probe as trials see it (`Sender`), or two: the first trial begins at an instant, the others when they are due.

    ``is_started``: whether the first one has.
    """

    def __init__(
        self,
        planned: PlannedSuite,
        ends: tuple[Probe, Probe],
        plan: ExperimentPlan,
        when: tuple[int | None, Sleep],
        is_lost: IsLost,
    ) -> None:
        self.url, self.port_count = ends[0].url, max(one.port_count for one in ends)
        self._planned, self._ends, self._plan, self._is_lost = planned, ends, plan, is_lost
        self._start_ns, self._sleep = when
        self.is_started = self._start_ns is None

    def send(self, streams: Sequence[Stream], receive: Mapping[int, int] | None = None) -> _Trial:
        """Start streams."""
        there = self._plan.by_name[self._planned.receiver].port
        options = SendOptions(there if self._planned.is_between else receive)
        traffic = _Trial(self._ends, streams, options, (self._start_ns, self._sleep), self._is_lost)
        traffic.most_ns = float(2 * self._plan.clock_bound_ns + 2 * TICK_NS)
        if self._plan.waiting_time_ns is not None:
            traffic.patience_s = float(self._plan.waiting_time_ns) / 1e9
        traffic.begin()
        self._start_ns, self.is_started = None, True
        return traffic

    def wait(self, seconds: float) -> None:
        """Let time pass for all."""
        self._sleep(max(seconds, 0.0))


class _Session(StampRun):
    """A session of STAMP that begins at an instant, beside others."""

    def __init__(self, probe: Probe, session: StampSession, when: tuple[int | None, Sleep], is_lost: IsLost) -> None:
        self._when, self._is_lost = when, lambda found: is_lost(probe)
        super().__init__(InTurns(probe, when[1], lambda: self.stop()), session)

    def traffic_of(self, stream: Stream, options: SendOptions) -> SharedTraffic:
        return SharedTraffic((self._probe, self._probe), [stream], options, self._when, self._is_lost)

    @property
    def is_started(self) -> bool:
        return self._traffic.is_started

    def is_wanted(self) -> bool:
        is_wanted = super().is_wanted()
        if is_wanted:
            self._probe.wait(TURN_S)
        return is_wanted


@dataclass
class SuiteRun:
    """Runs a suite, and keeps what comes of it, in ``figures``; LateError where its start was missed, before it was sent.

    ``journal``: where its trials are kept as they end, and from which it goes on; ``say``: given how far it is, in words.
    """

    planned: PlannedSuite
    ends: tuple[Probe, Probe]
    plan: ExperimentPlan
    when: tuple[int | None, Sleep]
    is_lost: IsLost
    figures: SuiteFigures
    say: Say = field(default=lambda words: None)

    def run(self, journal: Journal | None = None) -> None:
        """Run all of it; what was measured before a ProbeError, which is raised, is kept."""
        probe, asked = self.ends[0], self.planned.request(*self._ports())
        if self.planned.kind == STAMP:
            session = _Session(probe, asked, self.when, self.is_lost)
            self._follow(session, session.run, lambda stop: stop.results if stop else [])
            return
        sender = SuiteSender(self.planned, self.ends, self.plan, self.when, self.is_lost)
        one = SUITES[self.planned.kind](sender, asked, journal, lambda look: self.say(look.words))
        self._follow(sender, one.run, lambda stop: [found for found in [one.result()] if found.trials])

    def _follow(
        self,
        started: "SuiteSender | _Session",
        run: Callable[[], Any],
        partial_of: Callable[[Interrupted | None], Sequence[Any]],
    ) -> None:
        """Run it, and keep its result; ``partial_of``: returns what there is of it where something ends it too soon."""
        try:
            found = run()
            if not math.isfinite(found.uncertainty_ns):
                raise ProbeError("the delay is not known: the clock was stepped")
            self.figures.take(found)
        except Interrupted as stop:
            self.figures.why = "interrupted"
            for found in partial_of(stop):
                self.figures.take(found)
        except ProbeError:
            for found in partial_of(None) if started.is_started else ():
                self.figures.take(found)
            raise
        finally:
            if started.is_started:
                self.figures.start_time_ns = self.when[0]

    def _ports(self) -> tuple[int, int]:
        planned, probe = self.planned, self.ends[0]
        port = self.plan.by_name[planned.sender].port
        if planned.receive is not None:
            return port, planned.receive
        return port, probe.link.receive_port(port, probe.port_count)


def suite_values(found: Sequence[SuiteFigures]) -> dict[str, Values]:
    """Return the figures of suites by their name and part, for conditions."""
    return {f"{one.name}, {part}": values for one in found for part, values in one.figures.items()}
