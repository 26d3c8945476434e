# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""One-way delay between two probes, each with a disciplined clock of its own."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import TICK_NS, ClockState, Part, TransmitState
from liteprobe.host.analysis import arrivals, line_clock
from liteprobe.host.analysis.arrivals import Packets
from liteprobe.host.analysis.line_clock import LineClock
from liteprobe.host.clock.clock import ClockStatus
from liteprobe.host.errors import ProbeError, UsageError
from liteprobe.host.probe import Probe
from liteprobe.host.run.execute import READY_TIMEOUT_NS, RECORDS_MAX
from liteprobe.host.run.port import HALT_TIMEOUT_NS, Port, concatenated, joint_counters
from liteprobe.host.traffic.train import TrainProgram, TrainResult, check, schedule

Tend = Callable[[], None]

LEAD_LOOKS = 20  # From the first look at the clocks to the start, at least: both probes get their start in it.
LATCHES_EACH = 6  # At each look.
LATCHES = 128  # Of the line's clock: its error falls with their number.
FETCH_MARGIN = 2.5  # For the servos, the line's latches and the other direction.
LOOKS = 100  # Of the waiting time: between two looks at what has come.
TRUSTED = (ClockState.LOCKED, ClockState.HOLDOVER)


@dataclass(frozen=True)
class Direction:
    """A program on its way from a port of one probe to a port of another.

    Attributes
    ----------
    program : TrainProgram
        What is sent; its start time is chosen here.
    sender, receiver : Probe
    transmit, receive : int
        Ports.
    """

    program: TrainProgram
    sender: Probe
    receiver: Probe
    transmit: int = 0
    receive: int = 0


@dataclass(frozen=True)
class OneWayResult:
    """What came of a direction.

    Attributes
    ----------
    train : TrainResult
        Records of the receiver, counters of both; the clock state is the worse one, the uncertainty of both clocks.
    arrived : Packets
        Packets that count, each once; their stamps are raw.
    owd_ns : array, shape (packets,)
        One-way delay of each, the tick of the receive stamp resolved by the line's clock.
    line : LineClock or None
        Clock of the receiver's line; None: not to be had.
    start_time_ns : int
        When the first frame was to leave: a whole period of the PPS.
    sender, receiver : ClockStatus
        At the end.
    """

    train: TrainResult
    arrived: Packets
    owd_ns: NDArray[np.float64]
    line: LineClock | None
    start_time_ns: int
    sender: ClockStatus
    receiver: ClockStatus


@dataclass
class _Job:
    direction: Direction
    program: TrainProgram
    transmit: Port
    receive: Port
    duration_ns: int = 0
    notes: tuple[str, ...] = ()
    records: list[NDArray[np.void]] = field(default_factory=list)
    latches: list[tuple[int, int]] = field(default_factory=list)
    sent: int = 0
    is_running: bool = True

    def drain(self) -> None:
        self.records.append(self.receive.receive.drain())

    def latch(self) -> None:
        """Read the clock of the line that the receiver gets, where the gateware has such a latch."""
        registers = self.direction.receiver.registers
        prefix = f"port{self.receive.number}_rx_line_"
        registers.write(prefix + "latch", 1)
        count, now = registers.read_many((prefix + "count", prefix + "now")).values()
        self.latches.append((count, now))


class OneWay:
    """One start of one direction or both, on a PPS.

    Parameters
    ----------
    directions : sequence of Direction
        Their programs start in the same tick of time.
    waiting_time_ns : int or None
        T_max of RFC 7680: a packet that takes longer is lost. None: as long as the link waits by itself.
    tend : callable or None
        Called now and then, every eighth of a PPS period at the latest: what else must go on meanwhile.
    any_clock : bool
        Whether clocks that nobody disciplines will do: the delays are then off by what the clocks differ.

    Raises
    ------
    UsageError
        When a program or a port can't be.
    ProbeError
        When a clock is not to be trusted, or the two tell different times.
    """

    def __init__(
        self,
        directions: Sequence[Direction],
        waiting_time_ns: int | None = None,
        tend: Tend | None = None,
        any_clock: bool = False,
    ) -> None:
        self._tend = tend
        self._probes = list({id(p): p for d in directions for p in (d.sender, d.receiver)}.values())
        self._states = {id(probe): self._trusted(probe, any_clock) for probe in self._probes}
        self._period_ns = self._states[id(directions[0].sender)].period_ns
        self._waiting_ns = waiting_time_ns or int(self._probes[0].link.arrival_timeout_s * 1e9)
        self._asked_ns = waiting_time_ns
        self._random = random.Random(1)
        self._jobs = [self._job(direction) for direction in directions]
        self._start_ns = 0

    def run(self) -> list[OneWayResult]:
        """Send, receive, and return a result for each direction.

        Raises
        ------
        ProbeError
            When a link is down, or nothing comes.
        """
        try:
            for job in self._jobs:
                self._load(job)
            self._start()
            self._follow()
            self._collect()
        except BaseException:
            for job in self._jobs:
                job.transmit.transmit.stop()
            raise
        return [self._result(job) for job in self._jobs]

    # Before -----------------------------------------------------------------------------------

    @staticmethod
    def _trusted(probe: Probe, any_clock: bool) -> ClockStatus:
        status = probe.timebase.clock.status()
        if status.state not in TRUSTED and not any_clock:
            why = "; ".join(status.faults) or "wait until it is locked"
            raise ProbeError(
                f"the clock of {probe.url} is {status.name}, so a delay would be what the clocks differ: {why}"
            )
        return status

    def _job(self, direction: Direction) -> _Job:
        for name, probe, number in (
            ("transmit", direction.sender, direction.transmit),
            ("receive", direction.receiver, direction.receive),
        ):
            probe.need(Part.GENERATE)
            if not 0 <= number < len(probe.ports):
                raise UsageError(f"there is no {name} port {number} in {probe.url}: give 0 to {len(probe.ports) - 1}")
        check(direction.program)
        if direction.program.total > RECORDS_MAX:
            raise UsageError(f"{direction.program.total} frames are too many for records: give {RECORDS_MAX} at most")
        receive = direction.receiver.ports[direction.receive]
        program = direction.program
        if program.gap_ns is None:
            needs_gap = program.repeats > 1 and program.total > receive.receive.depth
            program = replace(program, gap_ns=self._fetch_ns(direction) if needs_gap else 0.0)
        return _Job(direction, program, direction.sender.ports[direction.transmit], receive)

    def _fetch_ns(self, direction: Direction) -> float:
        """Return the time in which a train's records are fetched, whoever else is asked meanwhile, by fetching some."""
        probe = direction.receiver
        record_ns = probe.ports[direction.receive].receive.record_ns(probe.timebase)
        return FETCH_MARGIN * direction.program.count * record_ns + LATCHES_EACH * probe.link.look_ns

    def _load(self, job: _Job) -> None:
        for port, probe in ((job.transmit, job.direction.sender), (job.receive, job.direction.receiver)):
            if not port.transmit.is_link_up:
                raise ProbeError(f"the link of port {port.number} of {probe.url} is down: plug in its cable")
        job.transmit.transmit.stop()
        job.receive.receive.start(job.program.stream_id)
        job.transmit.transmit.clear()

    def _start(self) -> None:
        """Choose a PPS, and have every program wait for it."""
        first, *others = (probe.timebase.now_ns for probe in self._probes)
        if any(abs(other - first) > self._period_ns / 2 for other in others):
            raise ProbeError(
                f"the clocks of the two probes differ by {max(abs(other - first) for other in others) / 1e9:.3f} s: "
                "set both (liteprobe clock set --time now), or give each receiver a fix"
            )
        lead_ns = LEAD_LOOKS * int(max(probe.link.look_ns for probe in self._probes))
        self._start_ns = -(-(max(first, *others, 0) + lead_ns) // self._period_ns) * self._period_ns
        for job in self._jobs:
            job.program = replace(job.program, start_time_ns=self._start_ns)
            times = schedule(job.program, job.direction.sender.timebase.increment)
            job.duration_ns, job.notes = int(times.duration_ns), times.notes
            job.transmit.transmit.load(job.program, times)
            job.transmit.transmit.arm()
        for job in self._jobs:
            self._await_ready(job)
        for probe in self._probes:
            mask = sum(1 << job.transmit.number for job in self._jobs if job.direction.sender is probe)
            if not mask:
                continue
            if probe.timebase.now_ns > self._start_ns - lead_ns // 4:
                raise ProbeError("the probes took too long to get ready for the PPS: run it again")
            probe.registers.write("probe_start", mask)

    def _await_ready(self, job: _Job) -> None:
        timebase = job.direction.sender.timebase
        deadline_ns = timebase.now_ns + READY_TIMEOUT_NS
        while job.transmit.transmit.look()[0] != TransmitState.READY:
            if timebase.now_ns > deadline_ns:
                raise ProbeError("a probe doesn't get its first frames ready: reset it, and report this")

    # While it runs ----------------------------------------------------------------------------

    def _now_ns(self) -> int:
        return self._probes[0].timebase.now_ns

    def _wait(self, seconds: float) -> None:
        """Let time pass, in steps that let everything else go on."""
        left_ns = seconds * 1e9
        while left_ns > 0:
            step_ns = min(left_ns, self._period_ns / 8 if self._tend else left_ns)
            self._probes[0].wait(step_ns / 1e9)
            left_ns -= step_ns
            if self._tend:
                self._tend()

    def _follow(self) -> None:
        """Drain and latch until everything has been sent."""
        end_ns = self._start_ns + max(job.duration_ns for job in self._jobs)
        # As many latches as asked for until the end, at random: at even intervals the two clocks may beat with them.
        mean_ns = max((end_ns - self._now_ns()) * LATCHES_EACH / LATCHES, 1.0)
        overdue_ns = end_ns + max(self._waiting_ns, HALT_TIMEOUT_NS)
        while any(job.is_running for job in self._jobs):
            quarter_ns = min(self._rest_ns(job) for job in self._jobs)
            self._wait(min(self._random.uniform(0.2, 1.8) * mean_ns, quarter_ns) / 1e9)
            for job in self._jobs:
                for _ in range(LATCHES_EACH):
                    job.latch()
                if job.program.total > job.receive.receive.depth:
                    job.drain()
                state, job.sent, is_up = job.transmit.transmit.look()
                job.is_running = state != TransmitState.IDLE
                if not (is_up and job.receive.receive.is_link_up):
                    raise ProbeError("a link went down during the train: plug in its cable, and run again")
            if self._now_ns() > overdue_ns:
                raise ProbeError("a train doesn't end: its probe stands still, reset it")

    def _rest_ns(self, job: _Job) -> float:
        """Time in which a quarter of the ring fills up."""
        interval_ns = job.program.interval_ns or 8.0 * job.program.slot_ticks
        depth = job.receive.receive.depth
        return 1e18 if job.program.total <= depth else interval_ns * depth / 4

    def _collect(self) -> None:
        """Drain until every frame has come, or none has for the waiting time."""
        silence_ns = 0.0
        missing = self._missing()
        while missing > 0 and silence_ns < self._waiting_ns:
            self._wait(self._waiting_ns / LOOKS / 1e9)
            before, missing = missing, self._missing()
            silence_ns = 0.0 if missing < before else silence_ns + self._waiting_ns / LOOKS
        self._wait(self._waiting_ns / LOOKS / 1e9)
        for job in self._jobs:
            job.drain()

    def _missing(self) -> int:
        missing = 0
        for job in self._jobs:
            job.drain()
            missing += job.receive.receive.missing(job.sent)
        return missing

    # Afterwards -------------------------------------------------------------------------------

    def _result(self, job: _Job) -> OneWayResult:
        counters = joint_counters(job.transmit.transmit, job.receive.receive)
        if not counters["frames"]:
            raise ProbeError(
                f"nothing arrived: {job.sent} frames left port {job.transmit.number}, none reached port "
                f"{job.receive.number} of the other probe: check the way between them, and the ports"
            )
        ends = [probe.timebase.clock.status() for probe in (job.direction.sender, job.direction.receiver)]
        records = concatenated(job.records)
        line = _line_of(job.latches)
        train = TrainResult(
            program=job.program,
            records=records,
            counters=counters,
            sent=job.sent,
            late=counters["late"],
            clock_state=min(ends, key=_trust).name,
            uncertainty_ns=_uncertainty_ns(ends, line),
            complete=job.sent == job.program.total and counters["records_lost"] == 0,
            notes=(*job.notes, *self._notes(job, ends, records)),
        )
        arrived = arrivals.packets(train, self._asked_ns)
        late_ns = np.full(len(arrived.rx_stamp), TICK_NS / 2) if line is None else line.correction(arrived.rx_stamp)
        return OneWayResult(train, arrived, arrived.owd_ns + late_ns, line, self._start_ns, ends[0], ends[1])

    def _notes(self, job: _Job, ends: Sequence[ClockStatus], records: NDArray[np.void]) -> list[str]:
        notes = []
        for probe, end in zip((job.direction.sender, job.direction.receiver), ends, strict=True):
            before = self._states[id(probe)]
            if (before.state, before.mode) != (end.state, end.mode):
                notes.append(f"the clock of {probe.url} was {before.name} at first, {end.name} at the end")
        heads = records["tx_stamp"][records["sequence"] == 0]
        if len(heads) and abs(late := int(heads[0]) - self._start_ns) > TICK_NS:
            notes.append(f"the first frame left {late} ns after its PPS: run again")
        return notes


def _trust(status: ClockStatus) -> int:
    order = (ClockState.UNKNOWN, ClockState.FREE_RUNNING, ClockState.ACQUIRING, ClockState.HOLDOVER, ClockState.LOCKED)
    return order.index(status.state)


def _uncertainty_ns(ends: Sequence[ClockStatus], line: LineClock | None) -> float:
    """Return the bound of a delay's error (ns): both clocks, and the tick of the receive stamp; infinite: not known."""
    capture_ns = TICK_NS / 2 if line is None or not line.is_resolved else 2 * line.error_ns
    return capture_ns + sum(float("inf") if end.uncertainty_ns is None else end.uncertainty_ns for end in ends)


def _line_of(latches: Sequence[tuple[int, int]]) -> LineClock | None:
    counts, now = np.array(latches, dtype=np.int64).T
    try:
        return line_clock.fit(counts, now)
    except ValueError:
        return None
