# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs trains of one probe or several: load, arm, start together, drain while they run, wait for the last frame, count."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import NO_SEQUENCE, TICK_NS, Part, TransmitState
from liteprobe.host.clock.clock import ClockVerdict, ClockWatch, look_at, watch_all
from liteprobe.host.errors import ProbeError, UsageError
from liteprobe.host.interrupt import Interrupted
from liteprobe.host.run.port import Port, joint_counters
from liteprobe.host.run.records import concatenated
from liteprobe.host.run.routes import Job, Route, check_ports
from liteprobe.host.run.start import SETTLE_PARTS, START_MARGIN_NS, await_ready, check_links, settle, start_together
from liteprobe.host.traffic.train import TrainProgram, TrainResult, check, gap_for, schedule

Progress = Callable[[int, int], None]

LOOK_NS = 500_000_000  # From one look at the clocks to the next.
FETCH_MARGIN = 1.25  # For what else is asked while records are fetched.


class Execution:
    """One start of one program or several, on one probe or several, all in the same tick.

    Parameters
    ----------
    routes : sequence of Route
    progress : callable or None
        Called with the frames sent and the frames to send, now and then.

    Raises
    ------
    UsageError
        When a program or a port can't be.
    """

    halt_s = 0.0  # A program that is over by so much, and sends nothing, stands still.

    def __init__(self, routes: Sequence[Route], progress: Progress | None = None) -> None:
        self._count = len(routes)
        self._progress = progress or (lambda sent, total: None)
        self.probes = list({id(p): p for route in routes for p in (route.sender, route.receiver)}.values())
        self.patience_s = self.probes[0].link.arrival_timeout_s
        for probe in self.probes:
            probe.need(Part.GENERATE)
        check_ports([(route.sender, route.transmit) for route in routes], "transmit", len(self.probes) > 1)
        check_ports([(route.receiver, route.receive) for route in routes], "receive", len(self.probes) > 1)
        for route in routes:
            check(route.program)
        self.jobs: list[Job] = []
        self._phy_notes: tuple[str, ...] = ()
        self._left_notes: tuple[str, ...] = ()
        self.clocks: dict[int, ClockWatch] = {}  # By the id of the probe.
        for route in routes:
            program = self._with_gap(route)
            self.jobs.append(Job(route, program, schedule(program, route.sender.timebase.increment)))

    def launch(self) -> int:
        """Start everything, detached from this host, and return when it ends (ns of the probe's clock).

        Raises
        ------
        ProbeError
            When a link is down.
        """
        self._check_links()
        for job in self.jobs:
            self._load(job, is_measured=False)
        try:
            return self._start()  # In band, silence is expected until the last train ends.
        except BaseException:
            self._stop()
            raise

    def run(self) -> list[TrainResult]:
        """Send everything, and return a result for each program.

        Raises
        ------
        ProbeError
            When a link is down, or nothing comes back.
        KeyboardInterrupt
            Passed on after the trains were stopped; Interrupted has what was measured until then.
        """
        self._check_links()
        self.prepare()
        try:
            for job in self.jobs:
                job.receive.receive.end()  # What a run that failed may have left.
            for job in self.jobs:
                self._load(job)
            self.clocks = watch_all({id(probe): (probe.url, probe.timebase.clock) for probe in self.probes})
            end_ns = self._start()
            self._follow(end_ns)
            self._collect()
        except Interrupted as end:
            self._stop()
            end.results = self._cut()
            raise
        except BaseException:
            self._stop()
            raise
        finally:
            self._expect_silence(0)
            self._let_go()
        return [self._result(job) for job in self.jobs]

    # What a suite adds ------------------------------------------------------------------------

    def prepare(self) -> None:
        """Change what is asked for, before it is loaded: nothing here."""

    def gap_ns(self, route: Route, record_ns: float) -> float:
        """Return the gap between trains in which their records are fetched, one in ``record_ns``."""
        link = route.receiver.link
        return gap_for(route.program, FETCH_MARGIN * self._count * record_ns, link.look_ns, link.is_in_band)

    def pause(self, left_ns: float, rest_ns: float) -> None:
        """Let time pass until the next look: at the most until the end, and until a ring could be full."""
        wait_ns = min(left_ns, rest_ns, self.patience_s * 1e9 / 2)  # Progress is shown between.
        if wait_ns > 0:
            self.wait(wait_ns / 1e9)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.probes[0].link.wait(seconds)

    def seen(self, job: Job) -> None:
        """Do what a look at a job is for, besides: nothing here."""

    def clock_of(self, job: Job, counters: dict[str, int]) -> ClockVerdict:
        """Return what is to be said of the clock that measured; its bound is that of the error of a delay (ns)."""
        verdict = self.clocks[id(job.route.receiver)].end()
        most_ns = max(map(abs, _delays(counters)))
        return replace(verdict, bound_ns=job.route.receiver.timebase.delay_bound_ns(most_ns, verdict))

    # Before -----------------------------------------------------------------------------------

    def _with_gap(self, route: Route) -> TrainProgram:
        program, receive = route.program, route.receiver.ports[route.receive].receive
        if program.gap_ns is not None:
            return program
        if program.repeats == 1 or not receive.keeps_records or program.total <= receive.depth:
            return replace(program, gap_ns=0.0)
        return replace(program, gap_ns=self.gap_ns(route, receive.record_ns(route.receiver.timebase)))

    def _check_links(self) -> None:
        for job in self.jobs:
            ends = ((job.route.sender, job.transmit), (job.route.receiver, job.receive))
            check_links((probe, port, job.name_of(port)) for probe, port in ends)
        for probe in self.probes:
            self._phy_notes += probe.links.notes()

    def _load(self, job: Job, is_measured: bool = True) -> None:
        """Load a program; one that isn't measured goes on without this host, and leaves the meters to others."""
        self._left_notes += job.transmit.free(job.route.sender.timebase)
        job.transmit.sends_for = self
        if is_measured:
            job.receive.measures_for = self
            job.receive.receive.start(job.program, job.with_records)
        job.transmit.transmit.clear()
        job.transmit.transmit.load(job.program, job.schedule, is_attached=is_measured)
        job.transmit.transmit.arm()

    def _start(self) -> int:
        """Start all programs, and return when the last of them ends (ns of its probe's clock)."""
        senders = {id(job.route.sender): job.route.sender for job in self.jobs}.values()
        starts = []
        for sender in senders:
            jobs = [job for job in self.jobs if job.route.sender is sender]
            now_ns = await_ready(sender, [job.transmit for job in jobs], "its first frames")
            starts.append((sender, jobs, now_ns))
        ends_ns = []
        for sender, jobs, now_ns in starts:
            starts_ns = [self._start_ns(job.program, now_ns) for job in jobs]
            end_ns = max(start + int(job.schedule.duration_ns) + 1 for start, job in zip(starts_ns, jobs, strict=True))
            start_together(sender, [job.transmit for job in jobs], (end_ns + START_MARGIN_NS - now_ns) / 1e9)
            ends_ns.append(end_ns)
        return max(ends_ns)

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

    # While it runs ----------------------------------------------------------------------------

    def _follow(self, end_ns: int) -> None:
        """Drain and wait until every frame has been sent, or none has for the arrival timeout."""
        patience_ns = int(max(self.patience_s, self.halt_s) * 1e9)
        now_ns = self.probes[0].timebase.now_ns
        overdue_ns, looked_ns = end_ns + patience_ns, now_ns
        while True:
            rest_ns = min((job.rest_ns for job in self.jobs if not job.fits), default=float("inf"))
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
                self._stop()
                return

    def _look(self) -> bool:
        """Drain the rings, see what was sent, and return whether anything was."""
        sent_before = sum(job.sent for job in self.jobs)
        for job in self.jobs:
            self.seen(job)
            if not job.fits:
                job.drain()
            state, job.sent, is_up = job.transmit.transmit.look()
            job.is_running = state != TransmitState.IDLE
            if state in (TransmitState.ARMED, TransmitState.READY):
                raise ProbeError("the probe did not start the train: was a port stopped from its console? Run again")
            if not (is_up and job.receive.receive.is_link_up):
                self._lose(job, job.receive if is_up else job.transmit)
        sent = sum(job.sent for job in self.jobs)
        self._progress(sent, sum(job.program.total for job in self.jobs))
        return sent > sent_before

    @staticmethod
    def _lose(job: Job, port: Port) -> NoReturn:
        """Say that the link of ``port`` is gone."""
        frames = job.receive.receive.counters()["frames"]
        raise ProbeError(
            f"the link of {job.name_of(port)} went down during the train ({frames} of {job.sent} frames had come): "
            f"plug in its cable, and run again"
        )

    def _stop(self) -> None:
        """Stop all programs, whatever state the link is in."""
        self._expect_silence(0)  # A stopped train holds no reply back.
        for job in self.jobs:
            with suppress(ProbeError):
                job.transmit.halt(job.route.sender.timebase)

    def _let_go(self) -> None:
        """End what records, whatever state the link is in."""
        for job in self.jobs:
            with suppress(ProbeError):
                job.receive.receive.end()

    def _expect_silence(self, seconds: float) -> None:
        for probe in self.probes:
            probe.link.expect_silence(seconds)

    # Afterwards -------------------------------------------------------------------------------

    def _collect(self) -> None:
        """Drain until every frame has come, or none has for the arrival timeout: a slow queue empties slowly."""
        settle(self._missing, self.wait, self.patience_s)
        for job in self.jobs:
            job.finish()

    def _missing(self) -> int:
        """Drain the rings, and return how many frames that were sent have not come."""
        missing = 0
        for job in self.jobs:
            job.drain()
            missing += job.receive.receive.missing(job.sent)
        return missing

    def _cut(self) -> list[TrainResult]:
        """Return what came of the trains that were sent before they were stopped; nothing when none was, or none came."""
        try:
            self.wait(self.patience_s / SETTLE_PARTS)
            for job in self.jobs:
                job.sent = job.transmit.transmit.look()[1]
                job.finish()
                asked, sent = job.program, -(-job.sent // job.program.count)
                job.program, job.is_cut = replace(asked, repeats=max(1, sent)), True
                job.notes.append(f"interrupted: {job.sent} of {asked.total} frames were sent")
            return [self._result(job) for job in self.jobs]
        except ProbeError:
            return []

    def _result(self, job: Job) -> TrainResult:
        counters = joint_counters(job.transmit.transmit, job.receive.receive)
        self._check_arrival(job, counters)
        records = concatenated(job.records)
        is_whole = job.sent == job.program.total and not job.is_cut
        is_complete = is_whole and job.with_records and counters["records_lost"] == 0
        clock = self.clock_of(job, counters)
        return TrainResult(
            program=job.program,
            records=records,
            counters=counters,
            sent=job.sent,
            late=counters["late"],
            clock_state=clock.state,
            uncertainty_ns=float("inf") if clock.bound_ns is None else clock.bound_ns,
            complete=is_complete,
            notes=(
                *job.notes,
                *self._left_notes,
                *self._phy_notes,
                *job.schedule.notes,
                *clock.notes,
                *_start_notes(job.program, records),
                *_notes(job, counters),
            ),
        )

    def _check_arrival(self, job: Job, counters: dict[str, int]) -> None:
        for port in (job.transmit, job.receive):
            if not port.transmit.is_link_up:
                self._lose(job, port)
        if not counters["frames"]:
            what = "came back" if job.route.sender is job.route.receiver else f"came to {job.route.receiver.url}"
            raise ProbeError(
                f"nothing {what}: {job.sent} frames left port {job.transmit.number}, none reached port "
                f"{job.receive.number} whole ({counters['fcs_errors']} with a bad FCS, {counters['foreign_streams']} "
                f"of other streams): check the cable and what is on the way, or name the port it leads to (--receive)"
            )


def _delays(counters: dict[str, int]) -> tuple[int, int]:
    return counters["delay_min"], counters["delay_max"]


def _start_notes(program: TrainProgram, records: NDArray[np.void]) -> list[str]:
    """Return what is to be said of the start time: a start that reached the probe too late starts at once."""
    heads = records["tx_stamp"][records["sequence"] == 0]
    if program.start_time_ns is None or not len(heads):
        return []
    late_ns = int(heads[0]) - program.start_time_ns
    return [f"the first frame left {late_ns} ns after its start time: ask for a later one"] if late_ns > TICK_NS else []


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


def _notes(job: Job, counters: dict[str, int]) -> list[str]:
    """Return what the reader of the figures must know."""
    missing = job.program.total - job.sent
    notes = {
        f"{missing} frames were not sent: the train stood still": missing and not job.notes,
        f"{counters['late']} frames started after their tick, number {counters['first_late']} first": counters["late"]
        and counters["first_late"] != NO_SEQUENCE,
        f"{counters['underruns']} frames were built too late for the line": counters["underruns"],
        f"program or headers were written {counters['disturbed']} times while it ran, so what was sent is not what was asked for: "
        f"let one host at a time use the port": counters["disturbed"],
        f"{counters['records_lost']} {_fate_of_records(counters)}": counters["records_lost"],
        f"{counters['overflows']} frames were dropped in the receiver": counters["overflows"],
        f"{counters['unclassified']} frames came too close behind others to be measured": counters["unclassified"],
        f"{counters['length_errors']} frames had a length that belies their headers": counters["length_errors"],
        "this probe keeps no records of frames: measured by accumulators": job.route.is_recorded
        and not job.receive.receive.keeps_records,
        f"{job.program.total} frames are too many for records: measured by accumulators": job.route.is_recorded
        and job.receive.receive.keeps_records
        and not job.with_records,
    }
    return [note for note, holds in notes.items() if holds]
