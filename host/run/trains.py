# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs trains of one probe or several: what each port sends and measures, drained while it runs, counted at the end."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import NO_SEQUENCE, Part, TransmitState
from liteprobe.host.analysis.summary import TrainResult
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.clock.clock import ClockVerdict, look_at
from liteprobe.host.run.engine import (
    SETTLE_PARTS,
    START_MARGIN_NS,
    ErrorWording,
    PortEnd,
    PortRun,
    RunDevice,
    check_ports,
    noted,
)
from liteprobe.host.run.port import TransmitPort
from liteprobe.host.run.receive import ReceivePort, concatenated
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.stream import Stream
from liteprobe.host.traffic.train import Schedule, TrainProgram, gap_for, schedule

Progress = Callable[[int, int], None]

RECORDS_MAX = 20_000_000  # Half a gigabyte on the host; longer programs are measured by the accumulators alone.
LEAD_NS = 20_000  # From a start to the first frame, as the pacer takes it, and some.
LOOK_NS = 500_000_000  # From one look at the clocks to the next.
NEVER_NS = 1e15  # Longer than any run: nothing has to be drained.
FETCH_MARGIN = 1.25  # For what else is asked while records are fetched.


@dataclass(frozen=True)
class Route:
    """A program on its way from a port of a probe to a port of the same one, or of another."""

    program: TrainProgram
    sender: RunDevice
    receiver: RunDevice
    transmit: int = 0  # Port of the sender.
    receive: int = 0  # Port of the receiver.
    is_recorded: bool = True  # Each frame has a record; else it is measured by accumulators alone.

    @property
    def asking(self) -> Stream:
        """Stream that has its addresses: who asks for the MAC address of whom."""
        program = self.program
        name, length = f"train of port {self.transmit}", Fixed(program.length)
        return Stream(
            name,
            1,
            length,
            Interval(),
            1,
            port=self.transmit,
            headers=program.headers,
            source=program.source,
            via=program.via,
        )

    def end(self, probe: RunDevice, number: int) -> PortEnd:
        """Return a port of it; messages name its probe, too, where there are two."""
        return PortEnd.of(probe, number, is_named=self.sender is not self.receiver)


@dataclass
class RunningTrain:
    """A route while its program runs."""

    route: Route
    program: TrainProgram
    schedule: Schedule
    records: list[NDArray[np.void]] = field(default_factory=list)
    drained: int = 0
    sent: int = 0
    is_running: bool = True
    is_cut: bool = False
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sender = self.route.end(self.route.sender, self.route.transmit)
        self.receiver = self.route.end(self.route.receiver, self.route.receive)

    @property
    def transmit(self) -> TransmitPort:
        """The side that sends."""
        return self.sender.port.transmit

    @property
    def meter(self) -> ReceivePort:
        """The side that measures."""
        return self.receiver.port.receive

    @property
    def with_records(self) -> bool:
        """Whether each frame has a record."""
        return self.route.is_recorded and self.meter.keeps_records and self.program.total <= RECORDS_MAX

    @property
    def fits(self) -> bool:
        """Whether the ring holds the whole program, so that nobody need drain it."""
        return not self.with_records or self.program.total <= self.meter.depth

    @property
    def rest_ns(self) -> float:
        """Time in which the ring may be left alone: none after a drain that found a quarter of it full."""
        quarter = self.meter.depth // 4
        octet_ns = self.route.sender.line.octet_ns
        interval_ns = self.program.interval_ns or float(octet_ns * self.program.slot_ticks)
        return quarter * interval_ns if self.drained < quarter else 0.0

    def drain(self, is_last: bool = False) -> None:
        """Fetch what is in the ring; ``is_last``: no records come any more."""
        if self.with_records:
            self.records.append(self.meter.finish() if is_last else self.meter.drain())
            self.drained = len(self.records[-1])


class TrainRun(PortRun):
    """One start of one program or several, on one probe or several, all in the same tick.

    ``progress``: called with the frames sent and the frames to send, now and then; ``tend``: at each look, for what must go on
    beside the trains. Raises UsageError when a program or
    a port can't be.
    """

    wording = ErrorWording("the train", "during the train", "run")
    halt_s = 0.0  # A program that is over by so much, and sends nothing, stands still.

    def __init__(
        self, routes: Sequence[Route], progress: Progress | None = None, tend: Callable[[], None] | None = None
    ) -> None:
        if not routes:
            raise UsageError("there is no train to send: give one or more")
        self._count = len(routes)
        self._progress = progress or (lambda sent, total: None)
        self._remind = tend or (lambda: None)
        probes = {id(probe): probe for route in routes for probe in (route.sender, route.receiver)}.values()
        for probe in probes:
            probe.need(Part.GENERATE)
        check_ports([(route.sender, route.transmit) for route in routes], "transmit", len(probes) > 1)
        check_ports([(route.receiver, route.receive) for route in routes], "receive", len(probes) > 1)
        self.jobs: list[RunningTrain] = []
        for route in routes:
            program, sender = self._with_gap(route), route.sender
            self.jobs.append(RunningTrain(route, program, schedule(program, sender.timebase.increment, sender.line)))
        self._ends_ns: list[int] = []  # Of each probe that sends, of its clock.
        super().__init__([job.sender for job in self.jobs], [job.receiver for job in self.jobs])

    def launch(self) -> int:
        """Start everything, detached from this host, and return when it ends (ns of the probe's clock).

        In band, silence is expected until the last train ends. Raises ProbeError when a link is down.
        """
        with self.stopped_at_errors():
            self.begin(is_measured=False)
        for probe in self.probes:
            probe.lease.leaves_running = True
        return max(self._ends_ns)

    def run(self) -> list[TrainResult]:
        """Send everything, and return a result for each program.

        Raises ProbeError when a link is down, or nothing comes back; KeyboardInterrupt passed on after the trains were
        stopped; Interrupted has what was measured until then.
        """
        try:
            with self.stopped_at_errors():
                self.begin()
                self._follow(max(self._ends_ns))
                self.settle(self._missing)
                for job in self.jobs:
                    job.drain(is_last=True)
        finally:
            for probe in self.probes:
                probe.link.expect_silence(0)
            for job in self.jobs:
                with suppress(ProbeError):
                    job.meter.end()
        return [self._result(job) for job in self.jobs]

    # What a suite adds ----------------------------------------------------------------------------

    def gap_ns(self, route: Route, record_ns: float) -> float:
        """Return the gap between trains in which their records are fetched, one in ``record_ns``."""
        link = route.receiver.link
        return gap_for(
            route.program, FETCH_MARGIN * self._count * record_ns, link.look_ns, link.is_in_band, route.sender.line
        )

    def pause(self, left_ns: float, rest_ns: float) -> None:
        """Let time pass until the next look: at the most until the end, and until a ring could be full."""
        wait_ns = min(left_ns, rest_ns, self.patience_s * 1e9 / 2)  # Progress is shown between.
        if wait_ns > 0:
            self.let_pass(wait_ns / 1e9)

    def seen(self, job: RunningTrain) -> None:
        """Do what a look at a job is for, besides: nothing here."""

    def clock_of(self, job: RunningTrain, counters: dict[str, int]) -> ClockVerdict:
        """Return what is to be said of the clock that measured; its bound is that of the error of a delay (ns)."""
        probe = job.receiver.probe
        verdict = self.clocks[id(probe)].end()
        most_ns = max(abs(counters["delay_min"]), abs(counters["delay_max"]))
        return replace(verdict, bound_ns=probe.timebase.delay_bound_ns(most_ns, verdict))

    # Before ---------------------------------------------------------------------------------------

    def _with_gap(self, route: Route) -> TrainProgram:
        program, meter = route.program, route.receiver.ports[route.receive].receive
        if program.gap_ns is not None:
            return program
        if program.repeats == 1 or not meter.keeps_records or program.total <= meter.depth:
            return replace(program, gap_ns=0.0)
        return replace(program, gap_ns=self.gap_ns(route, meter.record_ns(route.receiver.timebase)))

    def load(self) -> None:
        """Load all programs; those that aren't measured go on without this host, and leave the meters to others."""
        for job in self.jobs:
            if self.is_measured:
                job.meter.end()  # What a run that failed may have left.
        for job in self.jobs:
            if self.is_measured:
                job.meter.start(job.program, job.with_records)
            job.transmit.clear()
            job.transmit.load(job.program, job.schedule, is_attached=self.is_measured)
            job.transmit.arm()

    def starting(self, probe: RunDevice, now_ns: int) -> float:
        """Keep when the programs of a probe end, which may be silent until then."""
        ends_ns = [
            self._start_ns(job.program, now_ns) + int(job.schedule.duration_ns) + 1
            for job in self.jobs
            if job.sender.probe is probe
        ]
        self._ends_ns.append(max(ends_ns))
        return (max(ends_ns) + START_MARGIN_NS - now_ns) / 1e9

    @staticmethod
    def _start_ns(program: TrainProgram, now_ns: int) -> int:
        if program.start_time_ns is None:
            return now_ns
        if program.start_time_ns < now_ns + START_MARGIN_NS:
            raise UsageError(
                f"start time {program.start_time_ns} ns is past or too near (the probe's clock reads {now_ns} ns): "
                f"give one {START_MARGIN_NS // 1000} us ahead or more"
            )
        return program.start_time_ns

    # While it runs --------------------------------------------------------------------------------

    def _follow(self, end_ns: int) -> None:
        """Drain and wait until every frame has been sent, or none has for the arrival timeout."""
        patience_ns = int(max(self.patience_s, self.halt_s) * 1e9)
        now_ns = self.probes[0].timebase.now_ns
        # The start was somewhen before now, and first frames leave later still.
        end_ns = max(end_ns, now_ns + LEAD_NS + max(int(job.schedule.duration_ns) for job in self.jobs))
        overdue_ns, looked_ns = end_ns + patience_ns, now_ns
        while True:
            rest_ns = min((job.rest_ns for job in self.jobs if not job.fits), default=NEVER_NS)
            self.pause(end_ns - now_ns, rest_ns)
            has_moved = self._look()
            if not any(job.is_running for job in self.jobs):
                return
            now_ns = self.probes[0].timebase.now_ns
            if now_ns - looked_ns > LOOK_NS:
                looked_ns = now_ns
                look_at(self.clocks.values())
            if has_moved:
                overdue_ns = max(end_ns, now_ns) + patience_ns
            if now_ns > overdue_ns:
                self.halt()
                self._recount()
                return

    def _look(self) -> bool:
        """Drain the rings, see what was sent, and return whether anything was."""
        self._remind()
        sent_before = sum(job.sent for job in self.jobs)
        for job in self.jobs:
            self.seen(job)
            if not job.fits:
                job.drain()
            state, job.sent, is_up = job.transmit.look()
            job.is_running = state != TransmitState.IDLE
            self.check_started(state)
            if not (is_up and job.meter.is_link_up):
                self._lose(job, job.receiver if is_up else job.sender)
        sent = sum(job.sent for job in self.jobs)
        self._progress(sent, sum(job.program.total for job in self.jobs))
        return sent > sent_before

    def _recount(self) -> None:
        """Take what was sent of programs that have ended: no less than what came, and comes."""
        for job in self.jobs:
            job.sent = job.transmit.look()[1]

    def _lose(self, job: RunningTrain, end: PortEnd) -> None:
        self.lose_link(end.name, f"{job.meter.counters()['frames']} of {job.sent} frames had come")

    # Afterwards -----------------------------------------------------------------------------------

    def _missing(self) -> int:
        """Drain the rings, and return how many frames that were sent have not come."""
        missing = 0
        for job in self.jobs:
            job.drain()
            missing += job.meter.missing(job.sent)
        return missing

    def partial_results(self) -> list[TrainResult]:
        """Return what came of the trains that were sent before they were stopped; nothing when none was, or none came."""
        if not (self.is_started and self.is_measured):
            return []
        self.let_pass(self.patience_s / SETTLE_PARTS)
        self._recount()
        for job in self.jobs:
            job.drain(is_last=True)
            asked, sent = job.program, -(-job.sent // job.program.count)
            job.program, job.is_cut = replace(asked, repeats=max(1, sent)), True
            job.notes.append(f"interrupted: {job.sent} of {asked.total} frames were sent")
        return [self._result(job) for job in self.jobs]

    def _result(self, job: RunningTrain) -> TrainResult:
        counters = joined_counters(job.transmit.counters(), job.meter.counters())
        self._check_arrival(job, counters)
        clock = self.clock_of(job, counters)
        return result_of(job, counters, clock, self.all_notes())

    def _check_arrival(self, job: RunningTrain, counters: dict[str, int]) -> None:
        for end in (job.sender, job.receiver):
            if not end.port.transmit.is_link_up:
                self._lose(job, end)
        if not counters["frames"]:
            here, there = job.sender, job.receiver
            what = "came back" if here.probe is there.probe else f"came to {there.probe.url}"
            raise ProbeError(
                f"nothing {what}: {job.sent} frames left port {here.port.number}, none reached port "
                f"{there.port.number} whole ({counters['fcs_errors']} with a bad FCS, {counters['foreign_streams']} "
                "of other streams): check the cable and what is on the way, name the port it leads to (--receive), or "
                "wait longer (--waiting-time)"
            )


def joined_counters(sent: dict[str, int], received: dict[str, int]) -> dict[str, int]:
    """Return the counters of both ends; where both have one of a name, the sender's is ``transmit_<name>``."""
    return {("transmit_" + name if name in received else name): value for name, value in sent.items()} | received


def result_of(job: RunningTrain, counters: dict[str, int], clock: ClockVerdict, notes: Sequence[str]) -> TrainResult:
    """Return the result of a train that is over, by the counters of both of its ends."""
    records = concatenated(job.records)
    is_whole = job.sent == job.program.total and not job.is_cut
    said = (*job.notes, *notes, *job.schedule.notes, *clock.notes)
    return TrainResult(
        program=job.program,
        records=records,
        counters=counters,
        sent=job.sent,
        late=counters["late"],
        clock_state=clock.state,
        uncertainty_ns=float("inf") if clock.bound_ns is None else clock.bound_ns,
        complete=is_whole and job.with_records and counters["records_lost"] == 0,
        notes=(*said, *_start_notes(job, records), *_notes(job, counters)),
        line=job.route.sender.line,
    )


def _start_notes(job: RunningTrain, records: NDArray[np.void]) -> list[str]:
    """Return what is to be said of the start time: a start that reached the probe too late starts at once."""
    program, tick_ns = job.program, job.route.sender.line.tick_ns
    heads = records["tx_stamp"][records["sequence"] == 0]
    if program.start_time_ns is None or not len(heads):
        return []
    late_ns = int(heads[0]) - program.start_time_ns
    return [f"the first frame left {late_ns} ns after its start time: ask for a later one"] if late_ns > tick_ns else []


def _fate_of_records(counters: dict[str, int]) -> str:
    """Return what became of records that are not here, and what helps."""
    if counters.get("records_refused"):
        return (
            "records came faster than the capture takes them, so per-packet figures are incomplete: send longer frames, "
            "an interval, or from one port at a time"
        )
    if counters.get("records_dropped", 1):
        return (
            "records found the ring full, so per-packet figures are incomplete: "
            "send fewer frames at once, or a gap between trains"
        )
    return (
        "frames came or went while counts were read, so per-packet figures are incomplete: wait longer (--waiting-time)"
    )


def _notes(job: RunningTrain, counters: dict[str, int]) -> list[str]:
    """Return what the reader of the figures must know."""
    missing, total = job.program.total - job.sent, job.program.total
    is_late = counters["late"] and counters["first_late"] != NO_SEQUENCE
    keeps_records = job.meter.keeps_records
    said = {
        f"{missing} frames were not sent: the train stood still": missing and not job.notes,
        f"{counters['late']} frames started after their tick, number {counters['first_late']} first": is_late,
        f"{counters['underruns']} frames were built too late for the line": counters["underruns"],
        f"program or headers were written {counters['disturbed']} times while it ran, so what was sent is not what was asked for: "
        f"let one host at a time use the port": counters["disturbed"],
        f"{counters['records_lost']} {_fate_of_records(counters)}": counters["records_lost"],
        f"{counters['overflows']} frames were dropped in the receiver": counters["overflows"],
        f"{counters['unclassified']} frames came too close after others to be measured": counters["unclassified"],
        f"{counters['length_errors']} frames had a length that does not match their headers": counters["length_errors"],
        "this probe keeps no records of frames: measured by accumulators": job.route.is_recorded and not keeps_records,
        f"{total} frames are too many for records: measured by accumulators": (
            job.route.is_recorded and keeps_records and not job.with_records
        ),
    }
    return noted(said)
