# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs trains: load, arm, start together, drain while they run, wait for the last frame, count."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import NO_SEQUENCE, TICK_NS, TransmitState
from liteprobe.host.device.link.base import Link
from liteprobe.host.device.registers import Registers
from liteprobe.host.device.timebase import Timebase
from liteprobe.host.errors import ProbeError, UsageError
from liteprobe.host.interrupt import Interrupted
from liteprobe.host.run.port import Port, concatenated, joint_counters
from liteprobe.host.traffic.train import Schedule, TrainProgram, TrainResult, check, gap_for, schedule

Progress = Callable[[int, int], None]

RECORDS_MAX = 20_000_000  # Half a gigabyte on the host; longer programs are measured by the accumulators alone.
READY_TIMEOUT_NS = 20_000_000
START_MARGIN_NS = 1_000_000  # From the last look at the clock to the start: a few datagrams.
FETCH_MARGIN = 1.25  # For what else is asked while records are fetched.
SETTLE_PARTS = 100  # Of the arrival timeout: a duplicate follows its original sooner than that.


@dataclass(frozen=True)
class Devices:
    """What a run works with: the parts of a probe."""

    link: Link
    registers: Registers
    timebase: Timebase
    ports: Sequence[Port]


@dataclass
class _Job:
    """A program on its way from one port to another."""

    program: TrainProgram
    schedule: Schedule
    transmit: Port
    receive: Port
    records: list[NDArray[np.void]] = field(default_factory=list)
    drained: int = 0
    sent: int = 0
    is_running: bool = True
    is_cut: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def with_records(self) -> bool:
        return self.receive.receive.depth > 0 and self.program.total <= RECORDS_MAX

    @property
    def fits(self) -> bool:
        """Whether the ring holds the whole program, so that nobody need drain it."""
        return not self.with_records or self.program.total <= self.receive.receive.depth

    @property
    def rest_ns(self) -> float:
        """Time in which the ring may be left alone: none after a drain that found a quarter of it full."""
        quarter = self.receive.receive.depth // 4
        interval_ns = self.program.interval_ns or 8.0 * self.program.slot_ticks
        return quarter * interval_ns if self.drained < quarter else 0.0

    def drain(self) -> None:
        if self.with_records:
            records = self.receive.receive.drain()
            self.records.append(records)
            self.drained = len(records)


class Execution:
    """One start of one program or several, all in the same tick.

    Parameters
    ----------
    devices : Devices
        Parts of the probe.
    requests : sequence of (TrainProgram, int, int)
        Programs, each with its transmit and receive port.
    progress : callable or None
        Called with the frames sent and the frames to send, now and then.

    Raises
    ------
    UsageError
        When a program or a port can't be.
    """

    def __init__(
        self,
        devices: Devices,
        requests: Sequence[tuple[TrainProgram, int, int]],
        progress: Progress | None = None,
    ) -> None:
        self._devices = devices
        self._count = len(requests)
        self._progress = progress or (lambda sent, total: None)
        self._check_ports([transmit for _, transmit, _ in requests], "transmit")
        self._check_ports([receive for _, _, receive in requests], "receive")
        for program, _, _ in requests:
            check(program)
        increment = devices.timebase.increment
        self._jobs = []
        for asked, transmit, receive in requests:
            program = self._with_gap(asked)
            times = schedule(program, increment)
            self._jobs.append(_Job(program, times, devices.ports[transmit], devices.ports[receive]))

    def launch(self) -> int:
        """Start everything, detached from this host, and return when it ends (ns of the probe's clock).

        Raises
        ------
        ProbeError
            When a link is down.
        """
        self._check_links()
        for job in self._jobs:
            self._load(job, is_measured=False)
        try:
            return self._start()  # In band, silence is expected until the last train ends.
        except BaseException:
            self._stop()
            self._devices.link.expect_silence(0)
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
        for job in self._jobs:
            self._load(job)
        try:
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
            self._devices.link.expect_silence(0)
        return [self._result(job) for job in self._jobs]

    # Before -----------------------------------------------------------------------------------

    def _check_ports(self, numbers: Sequence[int], direction: str) -> None:
        ports = len(self._devices.ports)
        for number in numbers:
            if not 0 <= number < ports:
                raise UsageError(f"there is no {direction} port {number}: give 0 to {ports - 1}")
        if len(set(numbers)) != len(numbers):
            raise UsageError(f"a {direction} port is given twice: each takes one program at a time")

    def _with_gap(self, program: TrainProgram) -> TrainProgram:
        if program.gap_ns is not None:
            return program
        receive, link = self._devices.ports[0].receive, self._devices.link
        if program.repeats == 1 or program.total <= receive.depth:
            return replace(program, gap_ns=0.0)
        record_ns = FETCH_MARGIN * self._count * receive.record_ns(self._devices.timebase)
        return replace(program, gap_ns=gap_for(program, record_ns, link.look_ns, link.is_in_band))

    def _check_links(self) -> None:
        for job in self._jobs:
            for port in (job.transmit, job.receive):
                if not port.transmit.is_link_up:
                    raise ProbeError(
                        f"the link of port {port.number} is down: plug in its cable, and check the other end"
                    )

    def _load(self, job: _Job, is_measured: bool = True) -> None:
        """Load a program; one that isn't measured goes on without this host, and leaves the meters to others."""
        job.transmit.halt(self._devices.timebase)  # A program that was detached may still run.
        if is_measured:
            job.receive.receive.start(job.program.stream_id, job.with_records)
        job.transmit.transmit.clear()
        job.transmit.transmit.load(job.program, job.schedule, is_attached=is_measured)
        job.transmit.transmit.arm()

    def _start(self) -> int:
        """Start all programs, and return when the last of them ends (ns of the probe's clock)."""
        timebase = self._devices.timebase
        now_ns = timebase.now_ns
        deadline_ns = now_ns + READY_TIMEOUT_NS
        while any(job.transmit.transmit.look()[0] != TransmitState.READY for job in self._jobs):
            now_ns = timebase.now_ns
            if now_ns > deadline_ns:
                raise ProbeError(
                    "the probe doesn't get its first frames ready: reset it, and report this with the command"
                )
        starts_ns = [self._start_ns(job.program, now_ns) for job in self._jobs]
        end_ns = max(
            start + int(job.schedule.duration_ns) + 1 for start, job in zip(starts_ns, self._jobs, strict=True)
        )
        self._devices.link.expect_silence((end_ns + START_MARGIN_NS - now_ns) / 1e9)
        mask = sum(1 << job.transmit.number for job in self._jobs)
        self._devices.registers.write("probe_start", mask)
        return end_ns

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
        patience_ns = int(self._devices.link.arrival_timeout_s * 1e9)
        now_ns = self._devices.timebase.now_ns
        overdue_ns = end_ns + patience_ns
        while True:
            self._wait(end_ns - now_ns)
            has_moved = self._look()
            if not any(job.is_running for job in self._jobs):
                return
            now_ns = self._devices.timebase.now_ns
            if has_moved:
                overdue_ns = max(end_ns, now_ns) + patience_ns
            if now_ns > overdue_ns:
                self._stop()
                return

    def _wait(self, left_ns: int) -> None:
        """Wait for the end, but not so long that a ring could fill up."""
        wait_ns = min(left_ns, self._step_ns, *(job.rest_ns for job in self._jobs if not job.fits))
        if wait_ns > 0:
            self._devices.link.wait(wait_ns / 1e9)

    @property
    def _step_ns(self) -> int:
        """Longest wait between two looks, for the sake of progress: half the arrival timeout."""
        return int(self._devices.link.arrival_timeout_s * 1e9 / 2)

    def _look(self) -> bool:
        """Drain the rings, see what was sent, and return whether anything was."""
        sent_before = sum(job.sent for job in self._jobs)
        for job in self._jobs:
            if not job.fits:
                job.drain()
            state, job.sent, is_up = job.transmit.transmit.look()
            job.is_running = state != TransmitState.IDLE
            if state in (TransmitState.ARMED, TransmitState.READY):
                raise ProbeError("the probe did not start the train: was a port stopped from its console? Run again")
            if not (is_up and job.receive.receive.is_link_up):
                self._lose(job, job.receive if is_up else job.transmit)
        sent = sum(job.sent for job in self._jobs)
        self._progress(sent, sum(job.program.total for job in self._jobs))
        return sent > sent_before

    @staticmethod
    def _lose(job: _Job, port: Port) -> NoReturn:
        """Say that the link of ``port`` is gone."""
        frames = job.receive.receive.counters()["frames"]
        raise ProbeError(
            f"the link of port {port.number} went down during the train ({frames} of {job.sent} frames had come): "
            f"plug in its cable, and run again"
        )

    def _stop(self) -> None:
        """Stop all programs, whatever state the link is in."""
        self._devices.link.expect_silence(0)  # A stopped train holds no reply back.
        for job in self._jobs:
            with suppress(ProbeError):
                job.transmit.halt(self._devices.timebase)

    # Afterwards -------------------------------------------------------------------------------

    def _collect(self) -> None:
        """Drain until every frame has come, or none has for the arrival timeout: a slow queue empties slowly."""
        timeout_s = self._devices.link.arrival_timeout_s
        step_s = settle_s = timeout_s / SETTLE_PARTS
        silence_s = 0.0
        missing = self._missing()
        while missing > 0 and silence_s < timeout_s:
            self._devices.link.wait(step_s)
            before, missing = missing, self._missing()
            silence_s = 0.0 if missing < before else silence_s + step_s
            step_s = settle_s if missing < before else min(2 * step_s, max(timeout_s - silence_s, settle_s))
        self._devices.link.wait(settle_s)
        for job in self._jobs:
            job.drain()

    def _missing(self) -> int:
        """Drain the rings, and return how many frames that were sent have not come."""
        missing = 0
        for job in self._jobs:
            job.drain()
            missing += job.receive.receive.missing(job.sent)
        return missing

    def _cut(self) -> list[TrainResult]:
        """Return what came of the trains that were sent before they were stopped; nothing when none was, or none came."""
        link = self._devices.link
        try:
            link.wait(link.arrival_timeout_s / SETTLE_PARTS)
            for job in self._jobs:
                job.sent = job.transmit.transmit.look()[1]
                job.drain()
                asked, sent = job.program, -(-job.sent // job.program.count)
                job.program, job.is_cut = replace(asked, repeats=max(1, sent)), True
                job.notes.append(f"interrupted: {job.sent} of {asked.total} frames were sent")
            return [self._result(job) for job in self._jobs]
        except ProbeError:
            return []

    def _result(self, job: _Job) -> TrainResult:
        counters = joint_counters(job.transmit.transmit, job.receive.receive)
        self._check_arrival(job, counters)
        records = concatenated(job.records)
        is_whole = job.sent == job.program.total and not job.is_cut
        is_complete = is_whole and job.with_records and counters["records_lost"] == 0
        return TrainResult(
            program=job.program,
            records=records,
            counters=counters,
            sent=job.sent,
            late=counters["late"],
            clock_state=self._devices.timebase.clock_state,
            uncertainty_ns=self._devices.timebase.uncertainty_ns(max(map(abs, _delays(counters)))),
            complete=is_complete,
            notes=(*job.notes, *job.schedule.notes, *_start_notes(job.program, records), *_notes(job, counters)),
        )

    def _check_arrival(self, job: _Job, counters: dict[str, int]) -> None:
        for port in (job.transmit, job.receive):
            if not port.transmit.is_link_up:
                self._lose(job, port)
        if not counters["frames"]:
            raise ProbeError(
                f"nothing came back: {job.sent} frames left port {job.transmit.number}, none reached port "
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


def _notes(job: _Job, counters: dict[str, int]) -> list[str]:
    """Return what the reader of the figures must know."""
    missing = job.program.total - job.sent
    notes = {
        f"{missing} frames were not sent: the train stood still": missing and not job.notes,
        f"{counters['late']} frames started after their tick, number {counters['first_late']} first": counters["late"]
        and counters["first_late"] != NO_SEQUENCE,
        f"{counters['underruns']} frames were built too late for the line": counters["underruns"],
        f"program or headers were written {counters['disturbed']} times while it ran, so what was sent is not what was asked for: "
        f"let one host at a time use the port": counters["disturbed"],
        f"{counters['records_lost']} records found the ring full, so per-packet figures are incomplete: "
        f"send fewer frames at once, or a gap between trains": counters["records_lost"],
        f"{counters['overflows']} frames were dropped in the receiver": counters["overflows"],
        f"{counters['length_errors']} frames had a length that belies their headers": counters["length_errors"],
        f"more than {RECORDS_MAX} frames: measured by accumulators, without records": job.program.total > RECORDS_MAX,
        "this probe keeps no records of trains: measured by accumulators alone": not job.receive.receive.depth,
    }
    return [note for note, holds in notes.items() if holds]
