# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures one end of a pair while the other probe is somewhere else, and makes a pair's figures of what came of both ends.

A run is written for two probes (`OneWay`). Here one of them is an `AbsentProbe`: a train that is never asked for, and a meter
that meters nothing. So an end is a run like any other, and both ends joined give what one host with both probes would have.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import RECORD_DTYPE, TICK_NS, ClockError, ClockMode, ClockState, Part, TransmitState
from liteprobe.host.analysis import arrivals, delay
from liteprobe.host.analysis.summary import TrainResult
from liteprobe.host.base.errors import DataError, ProbeError
from liteprobe.host.clock.clock import ClockReport, ClockVerdict
from liteprobe.host.clock.timebase import INCREMENT_ONE, Timebase
from liteprobe.host.device.lease import HostLease
from liteprobe.host.device.link.base import Link, Words
from liteprobe.host.device.phy import Links
from liteprobe.host.device.registers import Registers
from liteprobe.host.fleet.experiment import PairFigures, PlannedWay, take
from liteprobe.host.fleet.plan import ExperimentPlan, PlannedPair
from liteprobe.host.fleet.turns import Sleep
from liteprobe.host.run.engine import PortEnd, RunDevice
from liteprobe.host.run.port import ProbePort, TransmitPort
from liteprobe.host.run.receive import ReceivePort, concatenated
from liteprobe.host.run.trains import Route, RunningTrain, joined_counters, result_of
from liteprobe.host.suites.owd import line_of, one_way, row, verdict_of
from liteprobe.host.traffic.train import Schedule, TrainProgram, schedule

SENDS, HEARS = "sends", "hears"

# The probe that is somewhere else -----------------------------------------------------------------


class _AbsentTransmit(TransmitPort):
    """Sends what was planned, as far as anybody here can know."""

    def __init__(self, timebase: Timebase) -> None:
        self._timebase = timebase
        self._state, self._total, self._end_ns = TransmitState.IDLE, 0, 0

    def load(self, program: TrainProgram, schedule: Schedule, is_attached: bool = True) -> None:
        self._total = program.total
        self._end_ns = (program.start_time_ns or 0) + int(schedule.duration_ns)

    def clear(self) -> None:
        self._total = 0

    def arm(self) -> None:
        self._state = TransmitState.READY

    def start(self) -> None:
        """Begin, when the time comes."""
        self._state = TransmitState.RUNNING

    def stop(self) -> None:
        self._state = TransmitState.IDLE

    def look(self) -> tuple[TransmitState, int, bool]:
        is_over = self._timebase.now_ns >= self._end_ns
        if self._state == TransmitState.RUNNING and is_over:
            self._state = TransmitState.IDLE
        return self._state, self._total if is_over else 0, True

    @property
    def is_link_up(self) -> bool:
        return True

    def counters(self) -> dict[str, int]:
        return {}


class _AbsentReceive(ReceivePort):
    """Meters nothing; ``keeps_records``: whether the one that it stands for does."""

    def __init__(self, keeps_records: bool = False) -> None:
        super().__init__(cast(Registers, None), 0, "rx")
        self.keeps_records = keeps_records

    def start(self, program: TrainProgram, with_records: bool = True) -> None:
        """Do nothing."""

    def counters(self) -> dict[str, int]:
        return {}

    @property
    def is_link_up(self) -> bool:
        return True

    def latch_line(self) -> tuple[int, int]:
        return 0, 0

    def missing(self, sent: int) -> int:
        return 0


class _AbsentRegisters:
    """Takes the start of the run, and nothing else."""

    def __init__(self, ports: Sequence[ProbePort]) -> None:
        self._ports = ports

    def own(self) -> None:
        """Do nothing: nobody asks for it here."""

    def write(self, name: str, mask: int) -> None:
        for port in self._ports:
            if mask >> port.number & 1:
                cast(_AbsentTransmit, port.transmit).start()


class _AbsentLink(Link):
    """Has the times of another link; nothing is read or written."""

    is_in_band = False

    def __init__(self, link: Link | None) -> None:
        if link:
            self.look_ns, self.arrival_timeout_s = link.look_ns, link.arrival_timeout_s
        self._link = link

    def wait(self, seconds: float) -> None:
        """Let time pass here."""
        if self._link:
            self._link.wait(seconds)

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        raise ProbeError("this probe is somewhere else: its own station reads it")

    def write(self, address: int, words: Sequence[int]) -> Words:
        raise ProbeError("this probe is somewhere else: its own station writes to it")

    def close(self) -> None:
        """Nothing is open."""


class _AbsentLease:
    steals, leaves_running, before = False, False, ""

    def left_out(self) -> int:
        return 0


class _AbsentLinks:
    def check(self, port: int, latch: object) -> None:
        """Do nothing."""

    def notes(self) -> list[str]:
        return []


class AbsentProbe:
    """Stands for the probe at the other end of a pair; time is that of the one that is ``here``, if any is."""

    def __init__(self, name: str, here: RunDevice | None, ports: int, keeps_records: bool = False) -> None:
        self.url = name
        self.link: Link = _AbsentLink(here.link if here else None)
        self.timebase = here.timebase if here else cast(Timebase, None)
        self.ports = [
            ProbePort(number, _AbsentTransmit(self.timebase), _AbsentReceive(keeps_records)) for number in range(ports)
        ]
        self.port_count = ports
        self.registers = cast(Registers, _AbsentRegisters(self.ports))
        self.lease = cast(HostLease, _AbsentLease())
        self.links = cast(Links, _AbsentLinks())

    def wait(self, seconds: float) -> None:
        """Let time pass here."""
        self.link.wait(seconds)

    def need(self, part: Part) -> None:
        """Have every part."""


# One end ------------------------------------------------------------------------------------------


@dataclass
class Half:
    """Holds what one end of a pair has measured; ``why``: why it has not."""

    sender: str
    receiver: str
    end: str  # `SENDS` or `HEARS`.
    start_ns: int  # TAI, when the first frame was due.
    why: str = ""
    counters: dict[str, int] = field(default_factory=dict)
    sent: int = 0  # Of the end that sends.
    is_cut: bool = False
    keeps_records: bool = False
    records: NDArray[np.void] = field(default_factory=lambda: np.empty(0, RECORD_DTYPE))  # Shape (frames,).
    latches: list[tuple[int, int]] = field(
        default_factory=list
    )  # Of the line that comes here: its count, and time (ns).
    notes: list[str] = field(default_factory=list)
    verdict: ClockVerdict | None = None
    clock: ClockReport | None = None  # At the end.
    off_ns: list[int] = field(
        default_factory=list
    )  # The probe's time less this machine's UTC, before the start and after the end.

    @property
    def name(self) -> str:
        """Name of the pair, and which end of it this is."""
        return f"{self.sender} to {self.receiver}, {self.end}"

    @property
    def delays_ns(self) -> NDArray[np.int64]:
        """Delays by both clocks as they are (ns), shape (frames,), of the end that hears; nothing where it has none."""
        return delay.owd(self.records["tx_stamp"], self.records["rx_stamp"])

    def octets(self) -> bytes:
        """Return it as a file: a line of JSON, then the records, all compressed; its CRC is that of zlib."""
        known = {key: value for key, value in vars(self).items() if key != "records"}
        for key in ("verdict", "clock"):
            known[key] = None if known[key] is None else asdict(known[key])
        return zlib.compress(json.dumps(known).encode() + b"\n" + self.records.tobytes())

    @classmethod
    def of(cls, octets: bytes) -> "Half":
        """Read it; raises DataError where the file is damaged, or of another version."""
        try:
            head, _, tail = zlib.decompress(octets).partition(b"\n")
            known: dict[str, Any] = json.loads(head)
            if (clock := known["clock"]) is not None:
                enums = {"state": ClockState(clock["state"]), "errors": ClockError(clock["errors"])}
                mode = None if clock["mode"] is None else ClockMode(clock["mode"])
                known["clock"] = ClockReport(**{**clock, **enums, "mode": mode})
            if (verdict := known["verdict"]) is not None:
                known["verdict"] = ClockVerdict(**{**verdict, "notes": tuple(verdict["notes"])})
            known["latches"] = [(count, now_ns) for count, now_ns in known["latches"]]
            return cls(**known, records=np.frombuffer(tail, RECORD_DTYPE))
        except (zlib.error, ValueError, KeyError, TypeError) as error:
            raise DataError(f"what a station kept is damaged, or of another version ({error})") from None


class HalfWay(PlannedWay):
    """Runs one end of a pair; `half` has what came of it."""

    def __init__(
        self, pair: PlannedPair, here: RunDevice, plan: ExperimentPlan, end: str, when: tuple[int, Sleep]
    ) -> None:
        there = AbsentProbe(
            f"{pair.receiver if end == SENDS else pair.sender}", here, 1 + max(p.port for p in plan.probes)
        )
        ends = (here, there) if end == SENDS else (there, here)
        ports = [plan.by_name[name].port for name in (pair.sender, pair.receiver)]
        start_ns, sleep = when
        self.here = here
        self.half = Half(pair.sender, pair.receiver, end, start_ns)
        super().__init__(Route(pair.program, *ends, *ports), plan, start_ns, sleep, lambda probe: False)

    def seen(self, job: RunningTrain) -> None:
        """Read the clock of the line, at the end that hears."""
        if self.half.end == HEARS:
            super().seen(job)

    def _lose(self, job: RunningTrain, end: PortEnd) -> None:
        had = (
            f"{job.sent} frames had left"
            if self.half.end == SENDS
            else f"{job.meter.counters()['frames']} frames had come"
        )
        self.lose_link(end.name, had)

    def _result(self, job: RunningTrain) -> TrainResult:
        half, verdict = self.half, self.clocks[id(self.here)].end()
        here = job.sender if half.end == SENDS else job.receiver
        if not here.port.transmit.is_link_up:
            self._lose(job, here)
        half.counters = (job.transmit if half.end == SENDS else job.meter).counters()
        half.sent, half.is_cut, half.keeps_records = job.sent, job.is_cut, job.meter.keeps_records
        half.records, half.latches = concatenated(job.records), list(self.latches[id(job)])
        half.notes = [*job.notes, *self.all_notes()]
        half.verdict, half.clock = verdict, self.clocks[id(self.here)].last
        late = half.counters.get("late", 0)
        return TrainResult(
            job.program, half.records, half.counters, job.sent, late, verdict.state, float("inf"), False, ()
        )


# Both ends ----------------------------------------------------------------------------------------


def joined(pair: PlannedPair, halves: Mapping[str, Half], plan: ExperimentPlan) -> PairFigures:
    """Return the figures of a pair by both of its ends (`SENDS`, `HEARS`)."""
    found = PairFigures(pair.sender, pair.receiver)
    gone = [
        f"{name}: {halves[end].why if end in halves else 'its station has no result of it'}"
        for end, name in ((SENDS, pair.sender), (HEARS, pair.receiver))
        if end not in halves or halves[end].why
    ]
    if gone:
        found.why = "; ".join(gone)
        return found
    sends, hears = halves[SENDS], halves[HEARS]
    assert sends.verdict and hears.verdict and sends.clock and hears.clock
    ports = 1 + max(one.port for one in plan.probes)
    here, there = (AbsentProbe(name, None, ports, hears.keeps_records) for name in (pair.sender, pair.receiver))
    sends_by, hears_by = (plan.by_name[name].port for name in (pair.sender, pair.receiver))
    route = Route(pair.program, here, there, sends_by, hears_by)
    program = replace(pair.program, start_time_ns=sends.start_ns, gap_ns=0.0)
    job = RunningTrain(route, program, schedule(program, TICK_NS * INCREMENT_ONE), [hears.records])
    job.sent, job.is_cut = sends.sent, sends.is_cut or hears.is_cut
    line = line_of(hears.latches)
    verdict = verdict_of([sends.verdict, hears.verdict], line)
    notes = list(dict.fromkeys([*sends.notes, *hears.notes]))
    train = result_of(job, joined_counters(sends.counters, hears.counters), verdict, notes)
    waiting_ns = None if plan.waiting_time_ns is None else int(plan.waiting_time_ns)
    way = one_way(train, (sends.clock, hears.clock), line, waiting_ns, sends.start_ns)
    found.start_time_ns = sends.start_ns
    found.owd_ns = way.owd_ns if arrivals.has_all_records(train) else None
    take(found, row(way, waiting_ns), plan)
    return found
