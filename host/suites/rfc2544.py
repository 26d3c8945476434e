# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Benchmarks a device as RFC 2544 asks: throughput, latency, loss, back-to-back frames, recovery, reset, for each frame size.

Latency is that of RFC 8219, of every frame; back-to-back that of RFC 9004; the search is MLRsearch or bisection.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from statistics import fmean, median, pstdev
from typing import Any

from liteprobe.cores.formats import FCS, LINE_RATE_BPS, OVERHEAD, TICK_NS
from liteprobe.host.analysis.columns import MEGA, Column, Columns
from liteprobe.host.analysis.result import PartFigures
from liteprobe.host.base.errors import ProbeError, UsageError, nearest
from liteprobe.host.base.probe_url import is_simulated
from liteprobe.host.base.validate import validated
from liteprobe.host.measure.percentiles import Bounds, Measured
from liteprobe.host.suites.rfc2889 import NEEDS_MORE, AddressSettings, AddressTests
from liteprobe.host.suites.search import METHODS, Found, Goal, goal_of
from liteprobe.host.suites.suite import Suite, SuiteLook, SuiteRequest, SuiteResult
from liteprobe.host.suites.trials import (
    MEASURED,
    Journal,
    Offer,
    Sender,
    SuitePlan,
    SuiteStep,
    Trial,
    Trials,
    TrialSettings,
    TrialStream,
    conformance,
    lasting,
)
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import IMIX, Fixed, Length, Lengths
from liteprobe.host.traffic.modifiers import Increment
from liteprobe.host.traffic.stream import Stream

TESTS = ("throughput", "latency", "loss", "back-to-back", "recovery", "reset")
#: Of RFC 2889; its forwarding rates (5.6) come with the test of loss.
TESTS_2889 = ("broadcast", "oversize", "address-capacity", "learning-rate")
OVERSIZE = (1519, 1522, 1600, 2000, 9004)  # With FCS, without a tag: longer than IEEE 802.3 allows.
OVERSIZE_LOAD = 0.1
BROADCAST = "ff:ff:ff:ff:ff:ff"
USUAL_TESTS = ("throughput", "latency", "loss", "back-to-back")
SIZES = ("64", "128", "256", "512", "1024", "1280", "1518")  # RFC 2544, section 9.1 (octets with FCS).
#: Letters of an IMIX genome, and sizes with FCS (RFC 6985, section 3).
GENOME = {"a": 64, "b": 128, "c": 256, "d": 512, "e": 1024, "f": 1280, "g": 1518, "h": 2112, "i": 9000}
ADDRESSES_MOST = 65_536
OVERLOAD = 1.1  # Of the throughput, in the test of recovery (RFC 2544, section 26.5).
RECOVERED_AT = 0.5  # Of that.
CHECK_FRAMES, CHECK_LOAD = 40, 0.01  # What is sent each way before all else.
SEARCH_MOST = 14  # Trials of a search, about, at most.
LEARNING_MOST = 20  # Trials of the search of a learning rate.
LONG_S = 8 * 3600.0  # A plan of more says what shortens it.


def length_of(size: str) -> Length:
    """Return the lengths of frames of a size with FCS: octets, ``imix``, or a genome of RFC 6985 like ``aaaadg``."""
    if size.isdecimal() and 64 <= int(size) <= 9004:
        return Fixed(int(size) - FCS)
    if size == "imix":
        return IMIX
    if size and all(letter in GENOME for letter in size):
        return Lengths(tuple(GENOME[letter] - FCS for letter in size))
    raise UsageError(
        f"'{size}' is not a frame size: give 64 to 9004 (with FCS), imix, or letters of RFC 6985 like aaaadg "
        f"({', '.join(f'{letter} {octets}' for letter, octets in GENOME.items())})"
    )


#: What is asked for where no option says it: by the RFCs, and of a simulated probe, whose 60 s would take hours.
OF_RFCS: dict[str, float] = {
    "duration": 60.0,
    "latency_duration": 120.0,
    "latency_repeats": 20,
    "burst_duration": 2.0,
    "burst_repeats": 50,
    "pause": 7.0,
    "ageing": 300.0,
    "addresses_most": 16_384,
    "teach_rate": 1_000.0,
}
SIMULATED: dict[str, float] = {
    "duration": 0.02, "latency_duration": 0.02, "latency_repeats": 2, "burst_duration": 0.02, "burst_repeats": 2, "pause": 0.001,
    "ageing": 0.005, "addresses_most": 256, "teach_rate": 200_000.0,
}  # fmt: skip


def usual(url: str) -> dict[str, float]:
    """Return times, repeats and rates of a suite on the probe of a URL, where nobody asks for others."""
    return SIMULATED if is_simulated(url) else OF_RFCS


@validated
@dataclass(frozen=True)
class Rfc2544Request(SuiteRequest):
    """Says what is asked for. The defaults are those of the RFCs, where a trial takes 60 s."""

    source = "the RFCs ask"
    tests: tuple[str, ...] = USUAL_TESTS
    sizes: tuple[str, ...] = SIZES  # With FCS; ``imix``, or a genome of RFC 6985.
    ways: tuple[tuple[int, int], ...] = ((0, 1),)  # Ports that send and measure, all at once.
    goal: Goal = field(default_factory=Goal)  # Its ``seconds`` are those of all trials but latency.
    search: str = "mlrsearch"  # Or ``bisection``.
    latency_s: float = 120.0
    latency_repeats: int = 20
    load: float | None = None  # Share of the line, for latency; None: the throughput.
    loss_step: float = 0.1
    burst_s: float = 2.0  # The longest burst.
    burst_repeats: int = 50
    pause_s: float = 7.0  # After each trial: 2 s for what is still on the way, 5 s to settle (RFC 2544, section 23).
    addresses: int = 1  # Destinations, one after the other, from that of the headers on.
    headers: Headers = field(default_factory=Headers)
    #: Address of the port that sends the first way, then of that which measures it: the probe then finds MAC addresses by itself.
    hosts: tuple[str, ...] = ()
    routers: tuple[str, ...] = ()  # That each of them goes by; none: the other end is a neighbour.
    table: AddressSettings = field(default_factory=AddressSettings)  # Of the tests of the address table.

    def __post_init__(self) -> None:
        for what, addresses in (("host", self.hosts), ("router", self.routers)):
            if len(addresses) > 2:
                raise UsageError(f"{len(addresses)} addresses of {what}s are too many: give one for each port")
        if len(self.routers) > len(self.hosts):
            raise UsageError("a router is asked from an address of the port: give one with --from for each router")
        for test in self.tests:
            if test in NEEDS_MORE:
                raise UsageError(f"'{test}' of RFC 2889 {NEEDS_MORE[test]}")
            if test not in (*TESTS, *TESTS_2889):
                raise UsageError(f"there is no test '{test}': {nearest(test, (*TESTS, *TESTS_2889))}")
        if self.hosts and (own := sorted({*TESTS_2889} & {*self.tests})):
            raise UsageError(f"'{own[0]}' has MAC addresses of its own, and none is asked for: leave out --from")
        for size in self.sizes:
            length_of(size)
        if not self.tests or not self.sizes or not self.ways:
            raise UsageError("nothing is asked for: give a test, a size and a way")
        for what, given in (("test", self.tests), ("size", self.sizes), ("port that sends", [a for a, _ in self.ways])):
            if len(set(given)) < len(given):
                raise UsageError(f"a {what} is given twice: give each once")
        if self.search not in METHODS:
            raise UsageError(f"there is no search '{self.search}': {nearest(self.search, list(METHODS))}")
        for name, least, most in (
            ("latency_repeats", 1, 10_000),
            ("burst_repeats", 1, 10_000),
            ("addresses", 1, ADDRESSES_MOST),
            ("loss_step", 0.001, 0.1),
        ):
            if not least <= getattr(self, name) <= most:
                raise UsageError(f"{name} {getattr(self, name):g} is out of range: give {least:g} to {most:g}")
        for name in ("latency_s", "burst_s"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} {getattr(self, name):g} is out of range: give more than 0 s")
        if self.load is not None and not 0 < self.load <= 1:
            raise UsageError(f"load {self.load:g} is out of range: give more than 0, up to 1 (the whole line)")

    @property
    def shortfalls(self) -> list[str]:
        """Sentences that say where it asks for less than the RFCs do; empty: nowhere."""
        timed = {*self.tests} - {"address-capacity", "learning-rate"}
        short = conformance(self.goal.seconds) if timed else ""
        said = [short] if short else []
        if timed != {*self.tests}:
            said.append("the address table is seen through two ports: RFC 2889 asks for three")
        if "latency" in self.tests and (self.latency_repeats < 20 or self.latency_s < 120):
            said.append(
                f"latency of {self.latency_repeats} runs of {lasting(self.latency_s)}: RFC 2544 asks for 20 of 120 s"
            )
        if "back-to-back" in self.tests and (self.burst_repeats < 50 or self.burst_s < 2):
            said.append(
                f"back-to-back of {self.burst_repeats} runs, bursts up to {lasting(self.burst_s)}: RFC 9004 asks for 50 of 2 s"
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data: a suite goes on only with the same."""
        return asdict(self)

    def streams(self, size: str, share: float, seconds: float, is_broadcast: bool = False) -> tuple[Stream, ...]:
        """Return the streams of all ways at a load, for a time; ``is_broadcast``: to all who are there."""
        length = length_of(size)
        cycle = len(length.cycle or (0,))
        frames = int(Fraction(str(seconds)) * 10**9 / TICK_NS * Fraction(str(share)) / (length.mean + OVERHEAD))
        found = self.counted(size, share, max(frames // cycle, 1) * cycle)
        if not is_broadcast:
            return found
        return tuple(replace(one, headers=replace(one.headers, destination_mac=BROADCAST)) for one in found)

    def counted(self, size: str, share: float, frames: int) -> tuple[Stream, ...]:
        """Return the streams of all ways at a load, of so many frames each."""
        return tuple(
            Stream(
                name=f"{sends} to {measures}",
                stream_id=1 + number,
                length=length_of(size),
                interval=Interval(share=Fraction(str(share))),
                count=frames,
                port=sends,
                headers=headers,
                modifiers=self._modifiers(headers),
                source=headers.source_ip if self.hosts else None,
                via=self.routers[number] if number < len(self.routers) else None,
            )
            for number, ((sends, measures), headers) in enumerate(zip(self.ways, self._headers(), strict=True))
        )

    @property
    def receive(self) -> dict[int, int]:
        """Port that measures what each port sends."""
        return dict(self.ways)

    def _headers(self) -> Iterator[Headers]:
        """Yield the headers of each way: those of the second one have the addresses the other way round."""
        one = self.headers
        if self.hosts:
            one = replace(one, source_ip=self.hosts[0], destination_ip=[one.destination_ip, *self.hosts[1:]][-1])
        ends = [("source_mac", "destination_mac"), ("source_ip", "destination_ip"), ("source_port", "destination_port")]
        for number, _ in enumerate(self.ways):
            turned = {a: getattr(one, b) for pair in ends for a, b in (pair, pair[::-1])} if number % 2 else {}
            yield replace(one, **turned)

    def _modifiers(self, headers: Headers) -> tuple[Increment, ...]:
        if self.addresses < 2:
            return ()
        return (Increment(f"ipv{6 if headers.is_ipv6 else 4}.destination", count=self.addresses),)

    # The plan -----------------------------------------------------------------------------------

    def plan(self) -> SuitePlan:
        """Return how many trials it takes, and how long."""
        goal, steps, sizes = self.goal, [SuiteStep("check", 1, 1, 0.01)], len(self.sizes)
        if self.needs_throughput:
            steps.append(SuiteStep("throughput", sizes * goal.sums, sizes * SEARCH_MOST * goal.sums, goal.seconds))
        if "latency" in self.tests:
            steps.append(
                SuiteStep("latency", sizes * self.latency_repeats, sizes * self.latency_repeats, self.latency_s)
            )
        if "loss" in self.tests:
            steps.append(SuiteStep("loss", 2 * sizes, (math.ceil(1 / self.loss_step) + 1) * sizes, goal.seconds))
        if "back-to-back" in self.tests:
            longest = max(math.ceil(math.log2(self.burst_s * 1.5e6)), 1)
            most = longest + 1 + 2 * (self.burst_repeats - 1)
            steps.append(SuiteStep("back-to-back", sizes, sizes * most, self.burst_s))
        if "recovery" in self.tests:
            steps.append(SuiteStep("recovery", sizes, sizes, 2 * goal.seconds))
        if "reset" in self.tests:
            steps.append(SuiteStep("reset", 1, 1, goal.seconds))
        if "broadcast" in self.tests:
            steps.append(
                SuiteStep("broadcast", sizes * (goal.sums + 1), sizes * (SEARCH_MOST * goal.sums + 1), goal.seconds)
            )
        if "oversize" in self.tests:
            steps.append(SuiteStep("oversize", len(OVERSIZE), len(OVERSIZE), goal.seconds))
        table = self.table
        for test, most, count in (
            ("address-capacity", math.ceil(math.log2(table.most)) + 1, table.most),
            ("learning-rate", LEARNING_MOST, table.learned),
        ):
            if test in self.tests:
                steps.append(SuiteStep(test, 3, most + 2, table.ageing_s + 2 * count / table.fps))
        return SuitePlan(tuple(steps), self.pause_s, tuple(self._shorter(steps)))

    @property
    def needs_throughput(self) -> bool:
        """Whether the throughput is searched: other tests need it, too."""
        needs = {"throughput", "back-to-back", "recovery"} | ({"latency", "reset"} if self.load is None else set())
        return bool(needs & set(self.tests))

    def _shorter(self, steps: Sequence[SuiteStep]) -> Iterator[str]:
        """Yield what would make a long plan shorter, each with what is left."""
        whole = SuitePlan(tuple(steps), self.pause_s)
        if whole.seconds[1] < LONG_S:
            return
        for name, most in (("latency", 3), ("back-to-back", 5)):
            step = next((one for one in steps if one.name == name), None)
            repeats = self.latency_repeats if name == "latency" else self.burst_repeats
            if step and repeats > most:
                option = "--latency-repeats" if name == "latency" else "--burst-repeats"
                less = replace(step, least=step.least * most // repeats or 1, most=step.most * most // repeats or 1)
                left = SuitePlan(tuple(less if one is step else one for one in steps), self.pause_s)
                yield f"{option} {most}: up to {lasting(left.seconds[1])}"
        if self.goal.seconds > 10:
            short = [replace(one, seconds=min(one.seconds, 10.0)) for one in steps]
            yield f"--duration 10s, which is not conformant: up to {lasting(SuitePlan(tuple(short), self.pause_s).seconds[1])}"
        if len(self.sizes) > 3:
            share = Fraction(3, len(self.sizes))
            few = [replace(one, least=int(one.least * share), most=int(one.most * share)) for one in steps]
            chosen = ",".join((self.sizes[0], self.sizes[3], self.sizes[-1]))
            yield f"--frame-size {chosen}: up to {lasting(SuitePlan(tuple(few), self.pause_s).seconds[1])}"


def request_of(usual: Mapping[str, float], given: Mapping[str, Any], **others: Any) -> Rfc2544Request:
    """Return what a command line or a plan asks for, by the names of options; None, or no value: as ``usual`` says.

    Times are in ns, shares of 1. ``others``: fields that are no options. Raises UsageError for what no suite can do.
    """

    def seconds(name: str) -> float:
        return float(usual[name] if given.get(name) is None else given[name] / 10**9)

    def number(name: str) -> float:
        return float(usual[name] if given.get(name) is None else given[name])

    def chosen(names: Mapping[str, str], kind: Callable[[Any], Any]) -> dict[str, Any]:
        return {to: kind(given[name]) for name, to in names.items() if given.get(name) is not None}

    goal = chosen({"precision": "width", "loss_ratio": "loss_ratio"}, float)
    return Rfc2544Request(
        goal=goal_of(given.get("goal") or "rfc2544", seconds=seconds("duration"), **goal),
        latency_s=seconds("latency_duration"),
        latency_repeats=int(number("latency_repeats")),
        burst_s=seconds("burst_duration"),
        burst_repeats=int(number("burst_repeats")),
        pause_s=seconds("pause"),
        table=AddressSettings(
            seconds("ageing"),
            int(number("addresses_most")),
            number("teach_rate"),
            **chosen({"learned": "learned"}, int),
        ),
        **chosen({"tests": "tests", "sizes": "sizes"}, tuple),
        **chosen({"search": "search"}, str),
        **chosen({"load": "load", "loss_step": "loss_step"}, float),
        **chosen({"addresses": "addresses"}, int),
        **others,
    )


# Figures ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Throughput:
    """Holds the greatest load without loss: between two ends, shares of the line each way."""

    method: str
    lower: float | None  # Greatest load that passed; None: none did, so it is not shown.
    upper: float | None  # Least load above it that did not; None: the line is full.
    trials: int
    lied: int  # Of these.
    seconds: float  # Of all trials, of the probe's time.
    why: str  # Why it is no more.

    @property
    def share(self) -> Measured | None:
        """Share of the line, each way: what was shown, up to what was shown not to pass; None: not shown."""
        return _between((self.lower, self.upper))


@dataclass(frozen=True)
class LatencyWay:
    """Holds the delays of a way at a load (ns): figures of each run, and of these the median; bounds are (least, most)."""

    name: str
    load: float
    runs: int
    #: ``typical``, ``worst``, ``pdv``: TL (median), WCL (P99.9) and PDV (P99.9 less least) of RFC 8219.
    typical: tuple[float, float]
    worst: tuple[float, float]
    pdv: tuple[float, float]
    typical_of_runs: tuple[float, float]  # P1 and P99 of the runs' medians.
    worst_of_runs: tuple[float, float]
    least: float
    most: float
    frames: int


@dataclass(frozen=True)
class LossStep:
    """Holds what was lost at a load."""

    load: float
    loss_ratio: float  # Of the way that lost the most.
    lost: int
    sent: int
    is_shown: bool  # Whether it can be believed.
    reason: str
    forwarded_fps: float | None = None  # Of the slower way, at the end of the trial; None: too few frames came.


@dataclass(frozen=True)
class Oversize:
    """Holds what became of frames that are longer than IEEE 802.3 allows."""

    size: int  # With FCS.
    sent: int
    received: int


@dataclass(frozen=True)
class BackToBack:
    """Holds the longest bursts at line rate without loss, and what buffer time follows."""

    bursts: tuple[int, ...]  # Frames, of each run.
    is_limit: bool  # Whether a longer one loses frames; else the longest that was sent passed.
    implied_ns: float  # RFC 9004: burst over the greatest frame rate.
    corrected_ns: float | None  # The same less what leaves meanwhile; None: the throughput is not shown.

    @property
    def average(self) -> float:
        """Mean burst of all runs (frames)."""
        return fmean(self.bursts)

    @property
    def deviation(self) -> float:
        """Standard deviation of the bursts of all runs (frames)."""
        return pstdev(self.bursts)


@dataclass(frozen=True)
class SizeFigures(PartFigures):
    """Holds all figures of a frame size."""

    size: str
    frame_rate_max: float  # Of the line (frames a second).
    throughput: Throughput | None = None
    latency: tuple[LatencyWay, ...] = ()
    loss: tuple[LossStep, ...] = ()
    back_to_back: BackToBack | None = None
    recovery_ns: tuple[float, float] | None = None  # Between what it lies.
    reset_ns: tuple[float, float] | None = None
    broadcast: Throughput | None = None
    broadcast_latency: tuple[LatencyWay, ...] = ()
    #: ``oversize``, ``addresses``, ``learning_fps``: of the device, with its first size; the last two between what was shown
    #: and what was shown not to be.
    oversize: tuple[Oversize, ...] = ()
    addresses: tuple[int, int | None] | None = None
    learning_fps: tuple[float | None, float | None] | None = None
    notes: tuple[str, ...] = ()

    @property
    def share(self) -> Measured | None:
        """Throughput as a share of the line, each way: what was shown, up to what was shown not to pass; None: not shown."""
        return self.throughput.share if self.throughput else None

    @property
    def forwarding(self) -> tuple[LossStep, LossStep] | None:
        """Steps of loss at the maximum offered load, and at the maximum forwarding rate (RFC 2889, 5.6); None: not measured."""
        known = [step for step in self.loss if step.forwarded_fps is not None]
        if not known or known[0] is not self.loss[0]:
            return None
        return known[0], max(known, key=lambda step: step.forwarded_fps or 0.0)

    @property
    def delay_figures(self) -> Mapping[str, Any]:
        """Delays of the slowest way, by their names: TL is the median, WCL the P99.9."""
        if not self.latency:
            return {}
        worst = max(self.latency, key=lambda one: one.worst)
        return {"p50": Bounds(*worst.typical), "p99_9": Bounds(*worst.worst), "least": worst.least, "most": worst.most}


@dataclass(frozen=True, repr=False)
class Rfc2544Result(SuiteResult):
    """Holds what came of the suite: all of `Result`; its parts are the frame sizes, like ``64``."""

    sizes: tuple[SizeFigures, ...]

    def __getitem__(self, size: str) -> SizeFigures:
        """Return the figures of a frame size; KeyError where there is none."""
        return self.parts[size]

    @property
    def parts(self) -> dict[str, SizeFigures]:
        """Figures by frame size."""
        return {one.size: one for one in self.sizes}

    @property
    def conformance(self) -> str:
        """Words that must stand beside every figure; empty: it is as the RFCs ask."""
        return "; ".join(self.request.shortfalls)

    def table(self) -> dict[str, Any]:
        """Return a table by its columns, as of `Result`: a row for each frame size; the last column says what is not conformant."""
        made = super().table()
        return made | {"conformance": [self.conformance or "conformant"] * len(self.sizes)}

    def __repr__(self) -> str:
        found = [
            f"{one.size} " + (f"{100 * one.share:.4g} %" if one.share else "not shown")
            for one in self.sizes
            if one.throughput
        ]
        said = [f"throughput {', '.join(found)}"] * bool(found) + [
            f"{len(self.trials)} trials",
            *self.request.shortfalls[:1],
        ]
        return f"<Rfc2544Result: {'; '.join([*said, *['incomplete'] * (not self.is_complete)])}>"

    def figures_dict(self) -> dict[str, Any]:
        """Return its own figures as plain data."""
        return {"sizes": [{**asdict(one), **COLUMNS.document(one)} for one in self.sizes]}


def _between(ends: tuple[float | None, float | None] | None) -> Measured | None:
    """Return what was shown, with bounds up to what was shown not to be; None: nothing was."""
    if not ends or ends[0] is None:
        return None
    return Measured(ends[0], Bounds(ends[0], ends[0] if ends[1] is None else ends[1]))


def _times(of: Callable[[SizeFigures], float]) -> Callable[[SizeFigures], Measured | None]:
    """Return what returns the throughput times a factor."""

    def found(one: SizeFigures) -> Measured | None:
        share, factor = one.share, of(one)
        if share is None:
            return None
        return Measured(share * factor, Bounds(share.bounds.least * factor, share.bounds.most * factor))

    return found


def _pdv(one: SizeFigures) -> Bounds | None:
    found = [Bounds(*way.pdv) for way in one.latency]
    return max(found, key=lambda bounds: bounds.most, default=None)


def _pair(name: str) -> Callable[[SizeFigures], Bounds | None]:
    def found(one: SizeFigures) -> Bounds | None:
        ends = getattr(one, name)
        return None if ends is None else Bounds(*ends)

    return found


COLUMNS = Columns(
    Column("size", "size", "Size", of=lambda one: one.size),
    Column("share", "of line %", "Throughput,\n% of the line", 3, 0.01),
    Column("rate", "Mb/s", "Mb/s", 2, MEGA, of=_times(lambda one: LINE_RATE_BPS)),
    Column("fps", "frames/s", "Frames/s", of=_times(lambda one: one.frame_rate_max)),
    Column("p50", "TL ns", "TL,\nns", of=lambda one: one.delay_figures.get("p50")),
    Column("p99_9", "WCL ns", "WCL,\nns", of=lambda one: one.delay_figures.get("p99_9")),
    Column("pdv", "PDV ns", "PDV,\nns", of=_pdv),
    Column("least", "least ns", "Least,\nns", of=lambda one: one.delay_figures.get("least")),
    Column("most", "most ns", "Greatest,\nns", of=lambda one: one.delay_figures.get("most")),
    Column("burst", "burst", "Burst,\nframes", 1, of=lambda one: one.back_to_back and one.back_to_back.average),
    Column("buffer", "buffer µs", "Buffer time,\nµs", 2, 1e3, of=lambda one: one.back_to_back and one.back_to_back.corrected_ns),
    Column("recovery", "recovery µs", "Recovery,\nµs", 2, 1e3, of=_pair("recovery_ns")),
    Column("reset", "reset ms", "Reset,\nms", 3, 1e6, of=_pair("reset_ns")),
    Column("frmol", "FRMOL/s", "FRMOL,\nframes/s", of=lambda one: one.forwarding and one.forwarding[0].forwarded_fps),
    Column("mfr", "MFR/s", "MFR,\nframes/s", of=lambda one: one.forwarding and one.forwarding[1].forwarded_fps),
    Column(
        "broadcast", "broadcast %", "Broadcast,\n% of the line", 3, 0.01,
        of=lambda one: one.broadcast.share if one.broadcast else None,
    ),
    Column("addresses", "addresses", "Addresses", of=lambda one: one.addresses and one.addresses[0]),
    Column("learning", "learned/s", "Learned\na second", of=lambda one: _between(one.learning_fps)),
)  # fmt: skip


def loss_columns(sizes: Sequence[SizeFigures]) -> list[Column]:
    """Return the columns of loss (%) at each load, from the greatest on; none: it was not measured."""
    loads = sorted({step.load for one in sizes for step in one.loss}, reverse=True)

    def column(load: float) -> Column:
        def of(one: SizeFigures) -> str | None:
            step = next((step for step in one.loss if step.load == load), None)
            return None if step is None else f"{100 * step.loss_ratio:.4f}{' ?' * (not step.is_shown)}"

        return Column(f"{load:g}", f"{100 * load:g} %", f"{100 * load:g} %", of=of)

    return [COLUMNS["size"], *map(column, loads)] if loads else []


Rfc2544Result.COLUMNS = Columns(*(column for key, column in COLUMNS.items() if key not in ("size", "share")))


# The suite --------------------------------------------------------------------------------------


class Rfc2544(Suite):
    """Runs the suite on a probe whose ports the device connects: see `Suite`.

    ``reset``: resets the device, for the test of that name; None: somebody does it by hand, while the trial is sent. Raises
    UsageError when there is no such port.
    """

    lies_fail = True

    def __init__(
        self,
        probe: Sender,
        request: Rfc2544Request | None = None,
        journal: Journal | None = None,
        show: Callable[[SuiteLook], None] | None = None,
        reset: Callable[[], None] | None = None,
    ) -> None:
        request = request or Rfc2544Request()
        for port in sorted({port for way in request.ways for port in way}):
            if not 0 <= port < probe.port_count:
                raise UsageError(f"there is no port {port}: give 0 to {probe.port_count - 1}")
        super().__init__(probe, request, journal, show, request.pause_s)
        self._reset = reset

    def run(self) -> Rfc2544Result:
        """Run all that is asked for.

        Raises
        ------
        ProbeError
            When no frame comes through the device, or a link goes down; `result` has what was measured until then.
        """
        self._check()
        for size in self._request.sizes:
            self._rows.append(SizeFigures(size, _frame_rate(size)))
            self._measure(size)
        return self.result(is_complete=True)

    def result(self, is_complete: bool = False) -> Rfc2544Result:
        """Return what was measured until now."""
        return Rfc2544Result(sizes=tuple(self._rows), **self._common(is_complete))

    # # #

    def _update(self, **figures: Any) -> None:
        self._rows[-1] = replace(self._rows[-1], **figures)

    def _note(self, note: str) -> None:
        self._update(notes=(*self._rows[-1].notes, note))

    def _run(
        self,
        name: str,
        size: str,
        load: float,
        seconds: float,
        loss_most: float = 0.0,
        during: Callable[[], None] | None = None,
    ) -> Trial:
        self._doing = f"{name} {size} at {100 * load:.4g} %"
        streams = self._request.streams(size, load, seconds, name == "broadcast")
        filtered = tuple(one.name for one in streams) if name == "oversize" else ()
        offer = Offer(f"{name} {size}", streams, self._request.receive, filtered=filtered)
        return self._trials.run(offer, loss_most, during)

    def _measure(self, size: str) -> None:
        """Measure all of a size; what needs a throughput that is not shown is left out, with a note."""
        request = self._request
        if request.needs_throughput:
            self._update(throughput=self._searched("throughput", size))
        share = self._rows[-1].share
        load = request.load if request.load is not None else share and float(share)
        is_shown = {"latency": load is not None, "recovery": share is not None, "reset": load is not None}
        for test in TESTS:
            if test in request.tests and not is_shown.get(test, True):
                self._note(f"{test} is not measured: no load was shown to pass")
        if "latency" in request.tests and load is not None:
            self._latency(size, load)
        if "loss" in request.tests:
            self._loss(size)
        if "back-to-back" in request.tests:
            self._back_to_back(size, share)
        if "recovery" in request.tests and share is not None:
            self._recovery(size, share)
        if "reset" in request.tests and load is not None and size == request.sizes[0]:
            self._outage(size, load)
        if "broadcast" in request.tests:
            self._broadcast(size)
        if size == request.sizes[0]:
            self._oversize()
            self._addresses()

    # Before all else ----------------------------------------------------------------------------

    def _check(self) -> None:
        """Raise ProbeError, naming what the device does, unless frames come through it each way."""
        request, size = self._request, self._request.sizes[0]
        self._doing = "are frames forwarded?"
        offer = Offer("check", request.counted(size, CHECK_LOAD, CHECK_FRAMES), request.receive)
        found = Trials(self._probe, TrialSettings(lengthened=1)).run(offer)
        for way in found.streams:
            if way.received:
                continue
            mirrored = replace(request, ways=((way.port, way.port),))
            back = Trials(self._probe, TrialSettings(lengthened=1)).run(
                Offer("check", mirrored.counted(size, CHECK_LOAD, CHECK_FRAMES), mirrored.receive)
            )
            if way.receive != way.port and back.received:
                raise ProbeError(
                    f"the device sends what port {way.port} sends back to port {way.port}, not to port {way.receive}: see to its "
                    "forwarding, or name the port that measures (--receive)"
                )
            raise ProbeError(
                f"none of {way.sent} frames came from port {way.port} to port {way.receive} at {100 * CHECK_LOAD:g} % of the line: "
                "see to the device's forwarding and addresses (--dst-mac, --dst-ip), and to the cables"
            )

    # Tests --------------------------------------------------------------------------------------

    def _searched(self, name: str, size: str) -> Throughput:
        """Return the greatest load at which nothing is lost, with notes on what must be known about it."""
        goal = self._request.goal

        def measure(load: float, seconds: float) -> Trial:
            return self._run(name, size, load, seconds, goal.loss_ratio)

        before = len(self._trials.done)
        found = METHODS[self._request.search](measure, goal)
        done = self._trials.done[before:]
        below = [
            (load, trial)
            for trial, load in zip(found.trials, found.loads, strict=True)
            if found.lower is not None and load <= found.lower and trial.shown_loss > goal.loss_ratio
        ]
        if below:
            load, trial = below[0]
            self._note(
                f"the device does not repeat itself: trial {trial.number} lost {trial.lost:,} frames at {100 * load:.4g} %, "
                "where others lost none"
            )
        if found.lower is None:
            what = "no load" if name == "throughput" else f"no load of {name}"
            self._note(f"{what} down to {100 * goal.least:g} % of the line was shown to pass: {_why(found, goal)}")
        return Throughput(
            found.method,
            found.lower,
            found.upper,
            len(done),
            sum(not trial.is_valid for trial in done),
            sum(trial.seconds for trial in done),
            _why(found, goal),
        )

    def _latency(self, size: str, load: float) -> None:
        runs = [self._run("latency", size, load, self._request.latency_s) for _ in range(self._request.latency_repeats)]
        self._update(latency=_latencies(runs, load))
        if bad := [run for run in runs if not run.is_valid or run.lost]:
            self._note(
                f"latency: {len(bad)} of {len(runs)} runs lost frames or lied: {bad[0].reason or f'{bad[0].lost:,} lost'}"
            )

    def _loss(self, size: str) -> None:
        load, step, clean = 1.0, self._request.loss_step, 0
        steps: list[LossStep] = []
        while load >= step / 2 and clean < 2:
            trial = self._run("loss", size, load, self._request.goal.seconds, loss_most=1.0)
            steps.append(
                LossStep(
                    load, trial.loss_ratio, trial.lost, trial.sent, trial.is_valid, trial.reason, _forwarded_fps(trial)
                )
            )
            clean = clean + 1 if trial.is_valid and not trial.lost else 0
            load = round(load - step, 9)
            self._update(loss=tuple(steps))

    def _burst(self, size: str, frames: int) -> bool:
        """Return whether a burst of so many frames comes whole, each way."""
        self._doing = f"back-to-back {size}, {frames:,} frames"
        streams = self._request.counted(size, 1.0, frames)
        return (
            self._trials.run(Offer(f"back-to-back {size}", streams, self._request.receive, is_sustained=False)).lost
            == 0
        )

    def _back_to_back(self, size: str, share: Measured | None) -> None:
        longest = max(int(self._request.burst_s * _frame_rate(size)), 1)
        if self._burst(size, longest):
            bursts, is_limit = [longest], False
        else:
            bursts, is_limit = [_greatest(lambda n: self._burst(size, n), 0, longest)], True
            for _ in range(self._request.burst_repeats - 1):
                bursts.append(self._again(size, bursts[-1], longest))
        implied_ns = 1e9 * fmean(bursts) / _frame_rate(size)
        corrected_ns = None if share is None or not is_limit else implied_ns * (1 - share)
        self._update(back_to_back=BackToBack(tuple(bursts), is_limit, implied_ns, corrected_ns))
        if not is_limit:
            self._note(
                f"back-to-back: the longest burst of {longest:,} frames ({lasting(self._request.burst_s)}) lost none"
            )

    def _again(self, size: str, before: int, longest: int) -> int:
        """Return the longest burst again, from what it was before on."""
        if before and not self._burst(size, before):
            return _greatest(lambda n: self._burst(size, n), 0, before)
        step = 1
        while before + step < longest and self._burst(size, before + step):
            before, step = before + step, 2 * step
        return _greatest(lambda n: self._burst(size, n), before, min(before + step, longest))

    def _recovery(self, size: str, share: Measured) -> None:
        """Overload the device, then send half as much: how long it goes on losing frames (RFC 2544, section 26.5)."""
        high = min(round(OVERLOAD * share, 9), 1.0)
        low = round(RECOVERED_AT * high, 9)
        self._doing = f"recovery {size} from {100 * high:.4g} %"
        seconds = self._request.goal.seconds
        pieces = [seconds * 2.0**-power for power in range(MEASURED - 2, -1, -1)]  # Ends of each, from the change on.
        spans = [pieces[0], *(end - start for start, end in pairwise(pieces))]
        streams: list[Stream] = []
        for number, way in enumerate(self._request.streams(size, high, seconds)):
            slot = length_of(size).mean + OVERHEAD
            start = math.ceil((way.count or 0) * slot / Fraction(str(high)))
            streams.append(replace(way, stream_id=1 + number * MEASURED))
            for place, span in enumerate(spans, 1):
                frames = self._request.streams(size, low, span)[number].count or 1
                streams.append(
                    replace(
                        way, name=f"{way.name} {place}", stream_id=1 + number * MEASURED + place, count=frames,
                        interval=Interval(share=Fraction(str(low))), start_ns=start * TICK_NS,
                    )
                )  # fmt: skip
                start += math.ceil(frames * slot / Fraction(str(low)))
        trial = self._trials.run(Offer(f"recovery {size}", tuple(streams), self._request.receive, is_sustained=False))
        each_ns = 1e9 / (low * _frame_rate(size))
        found = [
            _last_loss(trial.streams[first + 1 : first + MEASURED], each_ns)
            for first in range(0, len(trial.streams), MEASURED)
        ]
        if any(trial.streams[first].lost for first in range(0, len(trial.streams), MEASURED)):
            self._update(recovery_ns=max(found, key=lambda ends: ends[1]))
        else:
            self._note(f"recovery: {100 * high:.4g} % of the line lost nothing, so there was nothing to recover from")

    # Tests of RFC 2889 --------------------------------------------------------------------------

    def _broadcast(self, size: str) -> None:
        """Search the throughput of frames to all, and measure their delays there (RFC 2889, section 5.10)."""
        found = self._searched("broadcast", size)
        self._update(broadcast=found)
        if found.lower is not None:
            run = self._run("broadcast", size, found.lower, self._request.goal.seconds)
            self._update(broadcast_latency=_latencies([run], found.lower))

    def _oversize(self) -> None:
        """Send frames that are too long: a device must not forward them (RFC 2889, section 5.9)."""
        found: list[Oversize] = []
        for size in OVERSIZE if "oversize" in self._request.tests else ():
            trial = self._run("oversize", str(size), OVERSIZE_LOAD, self._request.goal.seconds, loss_most=-1.0)
            found.append(Oversize(size, trial.sent, trial.received))
            self._update(oversize=tuple(found))

    def _addresses(self) -> None:
        """Measure the address table (RFC 2889, sections 5.7 and 5.8)."""
        request, settings = self._request, self._request.table
        if not {"address-capacity", "learning-rate"} & {*request.tests}:
            return

        def run(offer: Offer) -> Trial:
            self._doing = f"{offer.name}, {offer.streams[0].count:,} addresses"
            return self._trials.run(offer, -1.0)

        tests, count = AddressTests(settings, request.ways[0], request.headers, run), settings.learned
        if why := tests.floods():
            self._note(f"the address table is not measured: {why}")
            return
        if "address-capacity" in request.tests:
            found = tests.capacity()
            self._update(addresses=found)
            count = min(count, found[0])
            if found[1] is None:
                self._note(f"address capacity: {found[0]:,} or more, as many as were asked for (--addresses-most)")
        if "learning-rate" in request.tests:
            self._update(learning_fps=tests.learning_rate(count, request.goal.width))

    def _outage(self, size: str, load: float) -> None:
        """Reset the device while frames are sent: what is lost says how long it was away (RFC 6201, section 4)."""
        trial = self._run("reset", size, load, self._request.goal.seconds, during=self._reset)
        each_ns = 1e9 / (load * _frame_rate(size))
        lost = max(way.lost for way in trial.streams)
        self._update(reset_ns=(max(lost - 1, 0) * each_ns, (lost + 1) * each_ns))
        if not lost:
            self._note("reset: no frame was lost, so the device was not seen to reset")


# # #


def _frame_rate(size: str) -> float:
    """Return how many frames of a size the line carries (frames a second)."""
    return float(10**9 / (TICK_NS * (length_of(size).mean + OVERHEAD)))


def _why(found: Found, goal: Goal) -> str:
    """Return why the load above the throughput did not pass."""
    if found.upper is None:
        return "the line is full"
    for trial in found.at(found.upper):
        if not trial.is_valid:
            return trial.reason
        if trial.shown_loss > goal.loss_ratio:
            return f"{trial.lost:,} of {trial.sent:,} frames lost at {100 * found.upper:.4g} %"
    return f"{100 * found.upper:.4g} % did not pass"


def _greatest(passes: Callable[[int], bool], lower: int, upper: int) -> int:
    """Return the greatest number that passes, where ``lower`` does and ``upper`` does not."""
    while upper - lower > 1:
        middle = (lower + upper) // 2
        lower, upper = (middle, upper) if passes(middle) else (lower, middle)
    return lower


def _last_loss(pieces: Sequence[TrialStream], each_ns: float) -> tuple[float, float]:
    """Return between what times after the first of some pieces the last frame was lost; zeros: none was."""
    at_ns, found = 0.0, (0.0, 0.0)
    for piece in pieces:
        end_ns = at_ns + piece.sent * each_ns
        if piece.lost:
            found = (at_ns + (piece.lost - 1) * each_ns, end_ns)
        at_ns = end_ns
    return found


def _latency_of(runs: Sequence[TrialStream]) -> LatencyWay | None:
    """Return the delays of a way over its runs; None: nothing came."""
    known = [
        run for run in runs if run.p50_ns and run.p99_9_ns and run.least_ns is not None and run.most_ns is not None
    ]
    if not known:
        return None
    least = [run.least_ns or 0.0 for run in known]
    p50, p99_9 = [run.p50_ns or (0.0, 0.0) for run in known], [run.p99_9_ns or (0.0, 0.0) for run in known]
    pdv = [(low - floor, high - floor) for (low, high), floor in zip(p99_9, least, strict=True)]
    return LatencyWay(
        name=known[0].name,
        load=0.0,
        runs=len(known),
        typical=_median(p50),
        worst=_median(p99_9),
        pdv=_median(pdv),
        typical_of_runs=_ends(p50),
        worst_of_runs=_ends(p99_9),
        least=min(least),
        most=max(run.most_ns or 0.0 for run in known),
        frames=sum(run.received for run in known),
    )


def _latencies(runs: Sequence[Trial], load: float) -> tuple[LatencyWay, ...]:
    """Return the delays of each way over its runs at a load."""
    ways = [_latency_of(way) for way in zip(*(run.streams for run in runs), strict=True)]
    return tuple(replace(way, load=load) for way in ways if way)


def _forwarded_fps(trial: Trial) -> float | None:
    """Return the rate at which frames left the device in the last half of a trial, of the slower way; None: not known."""
    found = []
    for way in trial.streams:
        parts = [part for part in way.end_parts if part.received > 1 and part.received_fps]
        seconds = sum((part.received - 1) / (part.received_fps or 1.0) for part in parts)
        found.append(sum(part.received - 1 for part in parts) / seconds if seconds else None)
    known = [one for one in found if one is not None]
    return min(known) if len(known) == len(found) else None


def _median(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return median(low for low, _ in pairs), median(high for _, high in pairs)


def _ends(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return P1 and P99 of the middles of pairs, by nearest rank."""
    middles = sorted((low + high) / 2 for low, high in pairs)
    return middles[max(math.ceil(0.01 * len(middles)), 1) - 1], middles[math.ceil(0.99 * len(middles)) - 1]
