# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tests Ethernet services as ITU-T Y.1564 asks: each alone in steps up to its rates and above, then all at once.

Rates are information rates: octets from the destination MAC to the FCS, as bandwidth profiles count them (MEF 10.3).
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import groupby
from math import ceil, inf
from typing import Any

from liteprobe.cores.formats import FCS, LINE_RATE_BPS, OVERHEAD
from liteprobe.host.analysis.columns import MEGA, Column, Columns
from liteprobe.host.analysis.result import PartFigures
from liteprobe.host.base.document import (
    NAME,
    DocumentName,
    Entries,
    Flag,
    Key,
    Quantity,
    Schema,
    Section,
    Several,
    Whole,
    check_fields,
    key,
    keys,
    keys_of,
)
from liteprobe.host.base.errors import UsageError, nearest
from liteprobe.host.base.probe_url import is_simulated
from liteprobe.host.base.units import PER_CENT, PREFIXES, RATES, Number, exact
from liteprobe.host.base.validate import validated
from liteprobe.host.measure.percentiles import Bounds
from liteprobe.host.suites.suite import Suite, SuiteLook, SuiteRequest, SuiteResult, Verdict
from liteprobe.host.suites.trials import (
    MEASURED,
    Journal,
    Offer,
    Sender,
    SuitePlan,
    SuiteStep,
    Trial,
    TrialStream,
    lasting,
)
from liteprobe.host.traffic.document import STREAM_GROUPS, stream_of, write_document
from liteprobe.host.traffic.intervals import START, TIME, Interval
from liteprobe.host.traffic.stream import STREAM, Stream

TESTS = ("configuration", "performance")
STEPS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1))  # Of the CIR: Y.1564, 8.1.2.
#: A service may send so much above its excess rate, or its committed rate where the excess is less than a fifth of it.
POLICED = Fraction(5, 4)
STEP_S, PERFORMANCE_S, PAUSE_S = 60.0, 900.0, 2.0  # Y.1564, 8.1 and 8.2: 15 min, 2 h or 24 h.
SIMULATED_S = (0.02, 0.02, 0.001)
STEP_LEAST_S = 1.0
SPENT_WITHIN = 2.5  # Times as long as its bursts take is the policing step: they are spent in the first half.
HIDDEN_MOST = 0.01  # Of a rate: by so much more it could be too low, and a step not show it.
SETTLED_MOST = Fraction(1001, 1000)  # Of the rates: the rate that settles where no burst is given.
QUEUE_FILLS = ": a queue fills"  # How the reason of a trial ends whose tester was right.
SEVERE = 0.5  # Loss ratio of a block that is severely errored: Y.1563.
UNAVAILABLE = 10  # Such blocks in a row that make a service unavailable.
BLOCKS = 100  # Of a performance test that has fewer seconds.

RATE = Quantity("a rate", "b/s, with k, M or G, up to 1G", {**PREFIXES, **RATES}, Fraction(LINE_RATE_BPS), True, "")
RATIO = Quantity("a share", "per cent like 0.1%, up to 100%", PER_CENT, Fraction(1), True)
OCTETS = Whole(0, 100_000_000)


# Services ---------------------------------------------------------------------------------------


@validated
@dataclass(frozen=True)
class EthernetService:
    """A service: what its frames are, its bandwidth profile, and what was agreed on; limits that are None aren't judged.

    Raises
    ------
    UsageError
        When it can't be: no rate, a rate above the line's, or frames without a probe header.
    """

    name: str = keys({"name": Key(NAME, "For people: in tables and reports.", "service-<id>")})
    stream: Stream = keys({})  # Its frames, but for when they are sent.
    cir_bps: Number = key("cir", RATE, "Committed information rate: octets from MAC to FCS.", 0)
    eir_bps: Number = key("eir", RATE, "Excess information rate, on top of it.", 0)
    cbs: int = key("cbs", OCTETS, "Committed burst size (octets); 0: it isn't tested.", 0)
    ebs: int = key("ebs", OCTETS, "Excess burst size (octets).", 0)
    is_policed: bool = key("policed", Flag(), "Frames above CIR and EIR must not pass.", True)
    loss_ratio: Number = key("loss", RATIO, "Frames that may be lost, of those sent within the CIR.", 0)
    delay_ns: Number | None = key("delay", TIME, "Mean delay, at most.", None, "not judged")
    delay_most_ns: Number | None = key("delay_most", TIME, "Delay of any frame, at most.", None, "not judged")
    variation_ns: Number | None = key(
        "variation", START, "Delay variation, P99.9 less the least, at most.", None, "not judged"
    )
    availability: Number | None = key(
        "availability", RATIO, "Share of the time in which it is available, at least.", None, "not judged"
    )

    def __post_init__(self) -> None:
        try:
            check_fields(self)
            self._check()
        except UsageError as error:
            raise UsageError(f"service '{self.name}': {error}") from None

    def _check(self) -> None:
        if not self.stream.probe:
            raise UsageError("its frames have no probe header, so nobody can count them: set probe to true")
        if not self.cir_bps and not self.eir_bps:
            raise UsageError("it has no rate: give cir, eir or both")
        if self.share_at(self.total_bps) > 1:
            raise UsageError(
                f"cir and eir of {float(self.total_bps) / MEGA:g} Mb/s don't go on the line with frames of "
                f"{float(self.stream.length.mean):g} octets: give {float(self.information(Fraction(1))) / MEGA:.3f} Mb/s at most"
            )

    @property
    def total_bps(self) -> Fraction:
        """CIR and EIR (b/s)."""
        return exact(self.cir_bps) + exact(self.eir_bps)

    @property
    def octets(self) -> Fraction:
        """Mean octets of a frame from MAC to FCS."""
        return Fraction(self.stream.length.mean) + FCS

    def share_at(self, bps: Fraction) -> Fraction:
        """Return the share of the line that an information rate takes."""
        return bps / self.information(Fraction(1))

    def information(self, share: Fraction) -> Fraction:
        """Return the information rate of a share of the line (b/s)."""
        return share * LINE_RATE_BPS * self.octets / (Fraction(self.stream.length.mean) + OVERHEAD)

    def at(self, bps: Fraction, seconds: float, number: int = 1) -> Stream:
        """Return its frames at an information rate, for a time; ``number``: of the stream."""
        cycle = len(self.stream.length.cycle or (0,))
        frames = int(bps / 8 / self.octets * Fraction(str(seconds)))
        count = max(frames // cycle, 1) * cycle
        return replace(self._named(number), interval=Interval(share=self.share_at(bps)), count=count)

    def burst(self, octets: int, number: int = 1) -> Stream:
        """Return at least so many octets of its frames, back to back."""
        return replace(self._named(number), interval=Interval(), count=max(ceil(octets / self.octets), 1))

    @property
    def policed_bps(self) -> Fraction:
        """Rate of the step that a policer must cut: Y.1564, 8.1.2."""
        cir, eir = exact(self.cir_bps), exact(self.eir_bps)
        return cir + POLICED * eir if 5 * eir >= cir else POLICED * cir + eir

    @property
    def spent_s(self) -> float:
        """Time of the policing step until both buckets are empty (s)."""
        return 8 * (self.cbs + self.ebs) / float(self.policed_bps - self.total_bps)

    @property
    def refill_s(self) -> float:
        """Time until its buckets are full again (s)."""
        pairs = [(self.cbs, self.cir_bps), (self.ebs, self.eir_bps)]
        return max((8 * octets / float(rate) for octets, rate in pairs if rate), default=0.0)

    def _named(self, number: int) -> Stream:
        return replace(self.stream, name=self.name, stream_id=number)


_OF_STREAM = {
    name: one
    for name, one in STREAM.keys.items()
    if name not in ("name", "id", "interval", "rate", "pps", "share", "exponential", "burst", "count", "start")
}
SERVICE = Section("service", {**keys_of(EthernetService), **_OF_STREAM})
SERVICES_DOCUMENT = Section(
    "services",
    {
        "defaults": Key(
            Section("service", {name: one for name, one in SERVICE.keys.items() if name != "name"}),
            "Keys that all services have, unless they give them.",
        ),
        "services": Key(Several(SERVICE, MEASURED), f"The services; up to {MEASURED}.", is_needed=True),
    },
)

#: Of docs/y1564.md; a service has the keys of a stream, too.
SECTIONS = (SERVICES_DOCUMENT, Section("service", keys_of(EthernetService)))


def usual_s(url: str) -> tuple[float, float, float]:
    """Return how long a step, the performance test and a pause are on the probe of a URL, where nobody says it (s)."""
    return SIMULATED_S if is_simulated(url) else (STEP_S, PERFORMANCE_S, PAUSE_S)


@validated
def read_services(text: str, name: str = "services.yaml") -> list[EthernetService]:
    """Return the services of a YAML document.

    ``name``: of the file, for messages. Raises UsageError with name and line where something isn't as docs/y1564.md says.
    """
    source = DocumentName(name)
    return services_of(
        SERVICES_DOCUMENT.read(source.compose(text, "services, as docs/y1564.md shows"), "document", source)
    )


def services_of(document: Entries) -> list[EthernetService]:
    """Return the services of the keys ``services`` and ``defaults``; raises UsageError as `read_services` does."""
    source = document.source
    common = document.get("defaults", Entries({}, {}, document.line, source))
    own, found = keys_of(EthernetService), list[EthernetService]()
    fields = {name: one.name for one in dataclasses.fields(EthernetService) for name in one.metadata["keys"]}
    for number, entries in enumerate(document.get("services"), 1):
        given = entries.over(common, STREAM_GROUPS)
        stream = stream_of(given.only(_OF_STREAM), number)
        values = {fields[name]: value for name, value in given.values.items() if name in own}
        with source.line(given.line_of(*own)):
            found.append(EthernetService(**{"name": f"service-{number}", **values}, stream=stream))
    with source.line(document.line_of("services")):
        check_services(found)
    return found


def schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a document of services."""
    return SERVICES_DOCUMENT.document_schema("services.json", "LiteProbe services")


def check_services(services: Sequence[EthernetService]) -> None:
    """Raise UsageError where services can't be sent together."""
    if not services:
        raise UsageError("there is no service: give one at least")
    again = [name for name, count in Counter(one.name for one in services).items() if count > 1]
    if again:
        raise UsageError(f"two services are called '{again[0]}': give each a name of its own")
    for port in sorted({one.stream.port for one in services}):
        share = sum(one.share_at(exact(one.cir_bps)) for one in services if one.stream.port == port)
        if share > 1:
            raise UsageError(
                f"the committed rates of port {port} take {float(100 * share):.2f} % of its line: lower some cir"
            )


# What is asked for ------------------------------------------------------------------------------


@validated
@dataclass(frozen=True)
class Y1564Request(SuiteRequest):
    """Says what is asked for."""

    source = "Y.1564 asks"
    services: tuple[EthernetService, ...]
    tests: tuple[str, ...] = TESTS
    steps: tuple[Number, ...] = STEPS  # Of the CIR.
    step_s: float = STEP_S
    performance_s: float = PERFORMANCE_S
    pause_s: float = PAUSE_S  # After each step, at least; buckets are full again when it ends.
    receive: Mapping[int, int] | None = None

    def __post_init__(self) -> None:
        check_services(self.services)
        for test in self.tests:
            if test not in TESTS:
                raise UsageError(f"there is no test '{test}': {nearest(test, TESTS)}")
        for step in self.steps:
            if not 0 < exact(step) <= 1:
                raise UsageError(f"a step of {float(step):g} is out of range: give more than 0, up to 1 (of the CIR)")
        for name in ("step_s", "performance_s"):
            if not 0 < getattr(self, name) <= 10**7:
                raise UsageError(f"{name} {getattr(self, name):g} is out of range: give more than 0 s")

    @property
    def shortfalls(self) -> list[str]:
        """Sentences that say where it asks for less than Y.1564 does; empty: nowhere."""
        said = []
        if "configuration" in self.tests and self.step_s < STEP_LEAST_S:
            said.append(f"{lasting(self.step_s)} steps: not conformant")
        if "performance" in self.tests and self.performance_s < PERFORMANCE_S:
            said.append(f"a performance test of {lasting(self.performance_s)}: Y.1564 asks for 15 min, 2 h or 24 h")
        return said

    @property
    def settled_s(self) -> float:
        """Pause after each step (s)."""
        return max([self.pause_s, *(1.01 * service.refill_s for service in self.services)])

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data: a suite goes on only with the same."""
        services = [
            {
                **{name: value for name, value in asdict(replace(one, stream=one.stream)).items() if name != "stream"},
                "stream": write_document([one.stream]),
            }
            for one in self.services
        ]
        for one in services:
            one.update({name: float(value) for name, value in one.items() if isinstance(value, Fraction)})
        return {
            "services": services,
            "tests": list(self.tests),
            "steps": [float(step) for step in self.steps],
            "step_s": self.step_s,
            "performance_s": self.performance_s,
            "pause_s": self.pause_s,
        }

    def seconds_of(self, service: EthernetService, test: str) -> float:
        """Return how long a step is; policing is as long as it takes to see what comes after the bursts (s)."""
        return max(self.step_s, SPENT_WITHIN * service.spent_s) if test == "policing" else self.step_s

    def plan(self) -> SuitePlan:
        """Return how many trials it takes, and how long."""
        steps = []
        if "configuration" in self.tests:
            for service in self.services:
                for test, bps in self.tests_of(service):
                    if service.share_at(bps) <= 1:
                        seconds = 0.0 if test == "burst" else self.seconds_of(service, test)
                        most = 2 if test.startswith("cir") else 1
                        steps.append(SuiteStep(f"{service.name}/{test}", 1, most, seconds))
        if "performance" in self.tests:
            steps.append(SuiteStep("performance", 1, 1, self.performance_s))
        return SuitePlan(tuple(steps), self.settled_s)

    def tests_of(self, service: EthernetService) -> Iterator[tuple[str, Fraction]]:
        """Yield the steps of a service: the name of each, and its information rate (b/s)."""
        if service.cir_bps:
            for step in self.steps:
                yield f"cir-{float(100 * exact(step)):g}", exact(step) * exact(service.cir_bps)
        if service.eir_bps:
            yield "eir", service.total_bps
        if service.is_policed:
            yield "policing", service.policed_bps
        if service.cbs:
            yield "burst", service.information(Fraction(1))


# Figures ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepFigures(PartFigures):
    """Holds what came of a step of a service."""

    service: str
    test: str  # ``cir-25`` to ``cir-100``, ``eir``, ``policing``, ``burst``, ``performance``.
    offered_bps: float  # Information rate.
    verdict: str
    reason: str  # Why it isn't passed; of a burst also what it measured.
    sent: int | None = None
    received: int | None = None
    lost: int | None = None
    rate: Bounds | None = None  # Information rate that came, of the whole step (b/s): to a frame at each end.
    settled: Bounds | None = None  # Of its second half, when the bursts are spent.
    burst: Bounds | None = None  # Octets that passed at once above the rates.
    mean_ns: float | None = None
    least_ns: float | None = None
    most_ns: float | None = None
    variation: Bounds | None = None  # P99.9 less the least (ns).
    available_ratio: float | None = None

    @property
    def name(self) -> str:
        """Of the part: the service and the test."""
        return f"{self.service}/{self.test}"

    @property
    def loss_ratio(self) -> float | None:
        """Lost over sent."""
        return None if self.lost is None or not self.sent else self.lost / self.sent

    @property
    def delay_figures(self) -> Mapping[str, Any]:
        """Figures of its delays (ns)."""
        return {"least": self.least_ns, "mean": self.mean_ns, "most": self.most_ns}

    def counts(self, verdict: Verdict) -> int:
        """Return 1 where this is its verdict, else 0."""
        return int(self.verdict == verdict)


STEPS_COLUMNS = Columns(
    Column("service", "service", "Service"),
    Column("test", "test", "Test"),
    Column("offered_bps", "asked Mb/s", "Asked for,\nMb/s", 3, MEGA),
    Column("rate", "came Mb/s", "Came,\nMb/s", 3, MEGA),
    Column("settled", "settled Mb/s", "Settled,\nMb/s", 3, MEGA),
    Column("burst", "burst", "Burst,\noctets"),
    Column("sent", "sent", "Sent"),
    Column("received", "received", "Received"),
    Column("lost", "lost", "Lost"),
    Column("loss_ratio", "", "Loss ratio", 6),
    Column("mean", "mean ns", "Mean,\nns", 1, of=lambda row: row.mean_ns),
    Column("least", "", "Least,\nns", of=lambda row: row.least_ns),
    Column("most", "most ns", "Greatest,\nns", of=lambda row: row.most_ns),
    Column("variation", "variation ns", "Variation,\nns"),
    Column("available_ratio", "available %", "Available,\n%", 3, 0.01),
    Column("verdict", "verdict", "Verdict"),
    Column("reason"),
)

STEP = Column("name", "step", "Step")  # Service and test in one.
OF_SOME = "settled burst available_ratio"  # Figures that some steps have.


@dataclass(frozen=True, repr=False)
class Y1564Result(SuiteResult):
    """Holds what came of the suite: all of `Result`; its parts are the steps, like ``voice/cir-100``."""

    steps: tuple[StepFigures, ...]

    @property
    def parts(self) -> dict[str, StepFigures]:
        """Steps by service and test."""
        return {one.name: one for one in self.steps}

    def verdict_of(self, service: str) -> Verdict:
        """Return the verdict on a service: failed where a step is, passed where all are that were done."""
        return Verdict.of_all((one.verdict for one in self.steps if one.service == service), self.is_complete)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Verdict on each service."""
        return {one.name: self.verdict_of(one.name) for one in self.request.services}

    def __repr__(self) -> str:
        said = ", ".join(f"{name} {verdict.lower()}" for name, verdict in self.verdicts.items())
        return f"<Y1564Result: {said}{'; incomplete' * (not self.is_complete)}>"

    def figures_dict(self) -> dict[str, Any]:
        """Return its own figures as plain data."""
        return {
            "verdicts": {name: str(verdict) for name, verdict in self.verdicts.items()},
            "steps": [STEPS_COLUMNS.document(one) for one in self.steps],
        }


def _count_of(verdict: Verdict) -> Callable[[StepFigures], int]:
    return lambda row: row.counts(verdict)


Y1564Result.COLUMNS = Columns(
    *STEPS_COLUMNS.of("rate sent received lost loss_ratio least mean most available_ratio"),
    replace(STEPS_COLUMNS["variation"], key="pdv", of=lambda row: row.variation),
    Column("passed", of=_count_of(Verdict.PASSED)),
    Column("failed", of=_count_of(Verdict.FAILED)),
    Column("not_done", of=lambda row: row.counts(Verdict.SKIPPED) + row.counts(Verdict.UNKNOWN)),
)


# The suite --------------------------------------------------------------------------------------


class Y1564(Suite):
    """Runs the suite on a probe whose ports the services connect: see `Suite`."""

    def __init__(
        self,
        probe: Sender,
        request: Y1564Request,
        journal: Journal | None = None,
        show: Callable[[SuiteLook], None] | None = None,
    ) -> None:
        super().__init__(probe, request, journal, show, request.settled_s)

    def run(self) -> Y1564Result:
        """Run all that is asked for; raises ProbeError when a link goes down: `result` has what was measured until then."""
        if "configuration" in self._request.tests:
            for service in self._request.services:
                for test, bps in self._request.tests_of(service):
                    self._rows.append(self._step(service, test, bps))
        if "performance" in self._request.tests:
            self._rows += self._performance()
        return self.result(is_complete=True)

    def result(self, is_complete: bool = False) -> Y1564Result:
        """Return what was measured until now."""
        return Y1564Result(steps=tuple(self._rows), **self._common(is_complete))

    # # #

    def _step(self, service: EthernetService, test: str, bps: Fraction) -> StepFigures:
        """Run a step of the configuration test."""
        if service.share_at(bps) > 1:
            return StepFigures(service.name, test, float(bps), Verdict.SKIPPED, "the line is too slow for it")
        is_committed = test.startswith("cir")
        if test == "burst":
            stream = service.burst(2 * (service.cbs + service.ebs))
        else:
            stream = service.at(bps, self._request.seconds_of(service, test))
        offer = Offer(f"{service.name}/{test}", (stream,), self._request.receive, is_sustained=test != "burst")
        # Above the CIR a queue may fill, for what it then loses may be lost.
        trial = self._trials.run(offer, float(service.loss_ratio) if is_committed else -1.0)
        figures = _figures(service, test, bps, trial, 0)
        if trial.reason and not trial.reason.endswith(QUEUE_FILLS):
            return replace(figures, verdict=Verdict.UNKNOWN, reason=trial.reason)
        if is_committed:
            queued = [(Verdict.FAILED, trial.reason)] * (not trial.is_valid)
            hidden = [] if service.is_policed else _hidden(service, bps, self._request.step_s)
            return _judged(figures, [*queued, *_agreed(service, figures, trial.uncertainty_ns), *hidden])
        judge = {"eir": _excess, "policing": _policing, "burst": _burst}[test]
        return _judged(figures, judge(service, figures, trial))

    def _performance(self) -> Iterator[StepFigures]:
        """Run all services at once, at their committed rates."""
        request = self._request
        services = [one for one in request.services if one.cir_bps]
        if not services:
            return
        streams = tuple(
            one.at(exact(one.cir_bps), request.performance_s, number) for number, one in enumerate(services, 1)
        )
        block_s = min(1.0, request.performance_s / BLOCKS)
        offer = Offer("performance", streams, request.receive, block_s=block_s)
        trial = self._trials.run(offer, -1.0)
        for number, service in enumerate(services):
            figures = _figures(service, "performance", exact(service.cir_bps), trial, number)
            figures = replace(figures, available_ratio=available(trial, number))
            if trial.reason and not trial.reason.endswith(QUEUE_FILLS):
                yield replace(figures, verdict=Verdict.UNKNOWN, reason=trial.reason)
                continue
            queued = [(Verdict.FAILED, trial.reason)] * (f"'{service.name}'" in trial.reason)
            is_policed = service.is_policed and "configuration" in request.tests
            hidden = [] if is_policed else _hidden(service, exact(service.cir_bps), request.performance_s)
            yield _judged(figures, [*queued, *_agreed(service, figures, trial.uncertainty_ns), *hidden])


def available(trial: Trial, number: int) -> float | None:
    """Return the share of a trial in which a stream was available; None: its blocks weren't kept.

    A block that loses more than a half is severely errored; ten of them in a row, and more, are unavailable.

    Source: ITU-T Y.1563, section 9, with blocks of a second, or of a hundredth of a shorter trial.
    """
    total = sum(block.seconds for block in trial.blocks)
    if not total:
        return None
    severe = [
        block.sent[number] > 0 and 1 - block.received[number] / block.sent[number] > SEVERE for block in trial.blocks
    ]
    down_s, place = 0.0, 0
    for is_severe, of in groupby(severe):
        run = len(list(of))
        if is_severe and run >= UNAVAILABLE:
            down_s += sum(block.seconds for block in trial.blocks[place : place + run])
        place += run
    return 1 - down_s / total


def _figures(service: EthernetService, test: str, bps: Fraction, trial: Trial, number: int) -> StepFigures:
    stream = trial.streams[number]
    bits = 8 * float(service.octets)
    variation = None
    if stream.p99_9_ns is not None and stream.least_ns is not None:
        variation = Bounds(max(stream.p99_9_ns[0] - stream.least_ns, 0.0), stream.p99_9_ns[1] - stream.least_ns)
    return StepFigures(
        service=service.name,
        test=test,
        offered_bps=float(bps),
        verdict=Verdict.PASSED,
        reason="",
        sent=stream.sent,
        received=stream.received,
        lost=stream.lost,
        rate=_rate(stream.received, bits, sum(part.seconds for part in stream.parts)),
        settled=_settled(stream, bits) if test in ("eir", "policing") else None,
        burst=_passed_at_once(service, stream) if test == "burst" else None,
        mean_ns=stream.mean_ns,
        least_ns=stream.least_ns,
        most_ns=stream.most_ns,
        variation=variation,
    )


def _rate(frames: int, bits: float, seconds: float) -> Bounds | None:
    """Return the information rate of frames that came within a time, to a frame (b/s)."""
    if seconds <= 0:
        return None
    return Bounds(max(frames - 1, 0) * bits / seconds, (frames + 1) * bits / seconds)


def _settled(stream: TrialStream, bits: float) -> Bounds | None:
    """Return the information rate of the end of a stream.

    Of a device that polices it is what passes of what was sent then; of one that shapes, what comes in time.
    """
    end = stream.end_parts
    if len(end) == len(stream.parts):
        return None  # It was too short to be parted.
    sent, received = sum(part.sent for part in end), sum(part.received for part in end)
    if not sent or not received:
        return Bounds(0.0, 0.0) if sent else None
    spaced = [(part.received - 1) / part.received_fps for part in end if part.received_fps and part.received > 1]
    took_s = max(sum(part.seconds for part in end), sum(spaced))
    return _rate(received, bits, took_s)


def _passed_at_once(service: EthernetService, stream: TrialStream) -> Bounds:
    """Return the octets of a burst that passed, less what CIR and EIR let pass meanwhile.

    Known to the frame that each bucket lacked tokens for; and the excess bucket, which is full at first, takes nothing
    until the committed one is empty, which a device that couples both doesn't wait for.
    """
    octets, seconds = float(service.octets), sum(part.seconds for part in stream.parts)
    slot_s = seconds / stream.sent if stream.sent else 0.0
    filled_s = seconds - slot_s  # From the first frame to the last.
    cir, eir = float(service.cir_bps) / 8, float(service.eir_bps) / 8
    line = float(service.information(Fraction(1))) / 8
    came = stream.received * octets - cir * filled_s
    full_s = min(service.cbs / (line - cir) + slot_s, filled_s) if line > cir else filled_s
    frames = 1 + bool(service.eir_bps or service.ebs)
    return Bounds(max(came - eir * filled_s, 0.0), came - eir * (filled_s - full_s) + frames * octets)


# Verdicts ---------------------------------------------------------------------------------------

Finding = tuple[Verdict, str]


def _judged(figures: StepFigures, findings: Sequence[Finding]) -> StepFigures:
    """Return figures with the worst of what was found, and all that is as bad."""
    for verdict in (Verdict.FAILED, Verdict.UNKNOWN):
        said = [reason for found, reason in findings if found is verdict]
        if said:
            return replace(figures, verdict=verdict, reason="; ".join(said))
    return figures


def _limit(what: str, bounds: Bounds, limit: Number, scale: float, unit: str, counts: bool = False) -> list[Finding]:
    """Judge a figure that must not be above a limit; ``counts``: it is of frames counted, and one more is none."""
    most = float(limit)
    if (bounds.least if counts else bounds.most) <= most:
        return []
    verdict = Verdict.FAILED if bounds.least > most else Verdict.UNKNOWN
    value = bounds.least if verdict is Verdict.FAILED else bounds.most
    return [
        (
            verdict,
            f"{what} {'is' if verdict is Verdict.FAILED else 'may be'} {value / scale:,.6g} {unit}, above {most / scale:,.6g}",
        )
    ]


def _agreed(service: EthernetService, figures: StepFigures, error_ns: float) -> list[Finding]:
    """Judge a step by what was agreed on."""
    ratio = figures.loss_ratio or 0.0
    found = _limit("loss", Bounds(ratio, ratio), service.loss_ratio, 0.01, "%")
    if not figures.received:
        return [*found, (Verdict.FAILED, "nothing came")]
    for what, value, limit in (
        ("mean delay", figures.mean_ns, service.delay_ns),
        ("greatest delay", figures.most_ns, service.delay_most_ns),
    ):
        if limit is not None:
            ends = Bounds(0.0, inf) if value is None else Bounds(value - error_ns, value + error_ns)
            found += _limit(what, ends, limit, 1e3, "µs")
    if service.variation_ns is not None:
        found += _limit("delay variation", figures.variation or Bounds(0.0, inf), service.variation_ns, 1e3, "µs")
    if service.availability is not None and figures.test == "performance":
        share = figures.available_ratio
        if share is None:
            found.append((Verdict.UNKNOWN, "its availability is not known"))
        elif share < service.availability:
            found.append(
                (
                    Verdict.FAILED,
                    f"it was available for {100 * share:.4g} %, below {100 * float(service.availability):g}",
                )
            )
    return found


def _hidden(service: EthernetService, bps: Fraction, seconds: float) -> list[Finding]:
    """Judge whether a step was so short that a bucket of the CBS could hide that its rate is too low."""
    share = 8 * service.cbs / (float(bps) * seconds)
    if share <= HIDDEN_MOST:
        return []
    needed = 8 * service.cbs / (float(bps) * HIDDEN_MOST)
    return [
        (
            Verdict.UNKNOWN,
            f"in {lasting(seconds)} a burst of the CBS could hide a rate that is {100 * share:.3g} % too low: give steps of "
            f"{lasting(needed)}",
        )
    ]


def _least(service: EthernetService, rate: Bounds | None) -> list[Finding]:
    """Judge that at least the CIR came, but for what may be lost of it."""
    least = float(exact(service.cir_bps) * (1 - exact(service.loss_ratio)))
    if rate is None or rate.most >= least:
        return []
    return [
        (
            Verdict.FAILED,
            f"only {rate.most / MEGA:,.6g} Mb/s came, less than the CIR of {float(service.cir_bps) / MEGA:,.6g}",
        )
    ]


def _excess(service: EthernetService, figures: StepFigures, trial: Trial) -> list[Finding]:
    """Judge frames at CIR and EIR: those of the CIR must come, the others may (Y.1564, 8.1.2, not colour-aware)."""
    del trial
    return _least(service, figures.rate)


def _policing(service: EthernetService, figures: StepFigures, trial: Trial) -> list[Finding]:
    """Judge frames above CIR and EIR: no more must pass, but for one burst of each bucket."""
    total, rate = float(service.total_bps), figures.rate
    found = _least(service, figures.settled or rate)
    if rate is None:
        return found
    seconds = sum(part.seconds for part in trial.streams[0].parts)
    if service.cbs or service.ebs:
        most = total + 8 * (service.cbs + service.ebs) / seconds
        found += _limit("rate", rate, most, MEGA, "Mb/s", counts=True)
    else:
        found += _limit("rate", figures.settled or rate, total * float(SETTLED_MOST), MEGA, "Mb/s", counts=True)
    return found


def _burst(service: EthernetService, figures: StepFigures, trial: Trial) -> list[Finding]:
    """Judge a burst of twice CBS and EBS: CBS must pass, no more than both may."""
    del trial
    burst = figures.burst
    if burst is None:
        return []
    found = []
    if burst.most < service.cbs:
        found.append(
            (
                Verdict.FAILED,
                f"only {burst.most:,.0f} octets of a burst passed, less than the CBS of {service.cbs:,}",
            )
        )
    if service.is_policed:
        found += _limit("a burst", burst, service.cbs + service.ebs, 1.0, "octets", counts=True)
    return found
