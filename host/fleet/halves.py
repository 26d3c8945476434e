# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures one end of a pair while the other probe is somewhere else, and makes a pair's figures of what came of both ends.

A run is written for two probes (`OneWay` of a train, `PlannedStreams`). Here one of them is an `AbsentProbe`: what is sent there
is never asked for, and a meter meters nothing. So an end is a run like any other, and both ends joined, as a run of two absent
probes of which is known what they would say, give what one host with both probes would have.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    MAX_LENGTH,
    OVERHEAD,
    RECORD_DTYPE,
    STREAMS,
    TICK_NS,
    ClockError,
    ClockMode,
    ClockState,
    Part,
    TransmitState,
)
from liteprobe.host.analysis import arrivals, delay
from liteprobe.host.analysis.summary import TrainResult
from liteprobe.host.base.errors import DataError, ProbeError
from liteprobe.host.base.line import GIGABIT, INCREMENT_ONE
from liteprobe.host.clock.clock import ClockReport, ClockVerdict, ClockWatch
from liteprobe.host.clock.timebase import Timebase
from liteprobe.host.device.lease import HostLease
from liteprobe.host.device.link.base import Link, Words
from liteprobe.host.device.phy import Links
from liteprobe.host.device.registers import Registers
from liteprobe.host.fleet.experiment import PairFigures, PlannedWay, take, take_streams
from liteprobe.host.fleet.plan import ExperimentPlan, PlannedPair
from liteprobe.host.fleet.streams import PlannedStreams
from liteprobe.host.fleet.turns import Sleep
from liteprobe.host.measure.percentiles import Cells
from liteprobe.host.measure.streams import ReceivedStream
from liteprobe.host.run.engine import PortEnd, RunDevice
from liteprobe.host.run.figures import TrafficResult
from liteprobe.host.run.port import ProbePort
from liteprobe.host.run.receive import ReceivePort, concatenated
from liteprobe.host.run.streams import StreamCounts, StreamMeters, StreamReading, StreamsPort, TimeWindow
from liteprobe.host.run.trains import Route, RunningTrain, joined_counters, result_of
from liteprobe.host.suites.owd import line_of, one_way, row, verdict_of
from liteprobe.host.traffic.due import UnknownDueError
from liteprobe.host.traffic.layout import PortWords
from liteprobe.host.traffic.stream import Stream
from liteprobe.host.traffic.train import Schedule, TrainProgram, schedule

SLOT_MOST = MAX_LENGTH + OVERHEAD  # Ticks that the longest frame takes.
MANY = 1 << 63  # Frames of a stream of which nobody here knows how many it has.
SENDS, HEARS = "sends", "hears"
SUITE, CAPTURE = "suite", "capture"  # In the place of an end: what is whole at one probe.

# The probe that is somewhere else -----------------------------------------------------------------


class _AbsentTransmit(StreamsPort):
    """Sends what was planned, as far as anybody here can know; ``kept``: what its own station knows of its streams."""

    def __init__(self, timebase: Timebase, kept: Mapping[str, Any]) -> None:
        self._timebase, self._kept = timebase, kept
        self._state, self._total, self._end_ns = TransmitState.IDLE, 0, 0
        self._ends: list[int] = []  # Frames of each stream.
        self._span_ns = self._most_ns = 0  # That the streams take; where no stream says when it ends.

    def load(self, program: TrainProgram, schedule: Schedule, is_attached: bool = True) -> None:
        self._total = program.total
        self._end_ns = (program.start_time_ns or 0) + int(schedule.duration_ns)

    def check(self, streams: Sequence[Stream]) -> None:
        """Do nothing: the station that has the port knows what it can send."""

    def load_streams(self, words: PortWords, is_attached: bool) -> None:
        """Keep how many frames each stream has, and for how long all go on."""
        self._ends = [MANY if end is None else end for end in words.ends]
        tick_ns = Fraction(self._timebase.increment, INCREMENT_ONE)
        try:
            ticks = [due.due(end - 1) + SLOT_MOST for due, end in zip(words.dues, words.ends, strict=True) if end]
        except UnknownDueError:
            ticks = []
        self._span_ns = int(max(ticks, default=0) * tick_ns) if MANY not in self._ends else 0

    def attach(self, start_ns: int | None = None, is_attached: bool = True) -> None:
        self._end_ns = (start_ns or 0) + (self._span_ns or self._most_ns)

    def last_until(self, span_ns: int) -> None:
        """Send until so long after the start (ns), where no stream says when it ends."""
        self._most_ns = span_ns

    def clear(self) -> None:
        self._total = 0

    def arm(self) -> None:
        self._state = TransmitState.READY

    def arm_streams(self) -> None:
        self.arm()

    def let_end(self) -> None:
        """Do nothing: it ends by itself."""

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

    def look_streams(self) -> tuple[TransmitState, bool, int]:
        state = self.look()[0]
        return state, True, (1 << len(self._ends)) - 1 if state == TransmitState.RUNNING else 0

    def counts(self, streams: int = STREAMS) -> list[StreamCounts]:
        if self._kept:
            return [StreamCounts(*one) for one in self._kept["counts"].values()]
        is_over = self._state == TransmitState.IDLE
        return [StreamCounts(end if is_over else 0, 0, None) for end in self._ends]

    @property
    def is_link_up(self) -> bool:
        return True

    def counters(self) -> dict[str, int]:
        return dict(self._kept.get("counters", {}))


class _AbsentMeters(StreamMeters):
    """Measures no stream; or has measured what its own station ``kept``."""

    def __init__(self, kept: Mapping[str, Any]) -> None:
        self._kept = kept
        self.is_saturated = bool(kept.get("is_saturated"))

    def begin(self) -> None:
        """Do nothing."""

    def events(self) -> dict[str, int]:
        return dict(self._kept["events"])

    def look(self) -> dict[str, StreamReading]:
        return {name: _reading(one) for name, one in self._kept.get("readings", {}).items()}

    def streams(self) -> dict[str, ReceivedStream]:
        return {}

    def follow(self, measured: Mapping[str, StreamReading]) -> bool:
        return True


def _reading(kept: Mapping[str, Any]) -> StreamReading:
    cells = Cells(*(np.array(part, np.int64) for part in kept["cells"]))
    return StreamReading(ReceivedStream(**kept["stream"]), cells, kept["outside"])


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


class _KeptTimebase:
    """Has of a timebase what is kept of a run that is over."""

    def __init__(self, increment: int) -> None:
        self.increment, self.now_ns = increment, 0


class AbsentProbe:
    """Stands for the probe at the other end of a pair; time is that of the one that is ``here``, if any is.

    ``kept``: what its own station knows of its end, where the run is over.
    """

    def __init__(self, name: str, here: RunDevice | None, ports: int, kept: "Half | None" = None) -> None:
        self.url = name
        self.link: Link = _AbsentLink(here.link if here else None)
        flows = kept.flows if kept else {}
        self.timebase = here.timebase if here else cast(Timebase, _KeptTimebase(flows.get("increment", INCREMENT_ONE)))
        keeps_records = kept is not None and kept.keeps_records
        self.ports = [
            ProbePort(number, _AbsentTransmit(self.timebase, flows), _AbsentReceive(keeps_records))
            for number in range(ports)
        ]
        self.port_count = ports
        self.line = here.line if here else GIGABIT
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
    """Holds what one end of a pair has measured; ``why``: why it has not.

    Or what came of a suite at a probe, or of a capture: ``sender`` is the probe, ``receiver`` the suite, ``flows`` its figures.
    """

    sender: str
    receiver: str
    end: str  # `SENDS` or `HEARS`; `SUITE` or `CAPTURE`.
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
    flows: dict[str, Any] = field(default_factory=dict)  # What it knows of streams, as plain data (`HalfStreams`).
    notes: list[str] = field(default_factory=list)
    verdict: ClockVerdict | None = None
    clock: ClockReport | None = None  # At the end.
    off_ns: list[int] = field(
        default_factory=list
    )  # The probe's time less this machine's UTC, before the start and after the end.

    @property
    def of_what(self) -> str:
        """Name of the pair, of the suite, or of the capture."""
        names = {SUITE: self.receiver, CAPTURE: f"capture at {self.sender}"}
        return names.get(self.end, f"{self.sender} to {self.receiver}")

    @property
    def probe(self) -> str:
        """Name of the probe that measured it."""
        return self.receiver if self.end == HEARS else self.sender

    @property
    def name(self) -> str:
        """Name of the pair, and which end of it this is."""
        return f"{self.of_what}, {self.end}"

    @property
    def cells(self) -> dict[str, Cells]:
        """Delays by both clocks as they are (ns), in bins, by pair and stream, of the end that hears; none where it has none."""
        pair = self.of_what
        delays_ns = delay.owd(self.records["tx_stamp"], self.records["rx_stamp"])
        found = {pair: Cells(delays_ns, delays_ns, np.ones(len(delays_ns), np.int64))} if len(delays_ns) else {}
        return found | {f"{pair}, {name}": _reading(one).delays for name, one in self.flows.get("readings", {}).items()}

    @property
    def received(self) -> int:
        """Frames that came, of the end that hears."""
        of_streams: int = sum(one["stream"]["frames"] for one in self.flows.get("readings", {}).values())
        return of_streams + len(self.records)

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


def half_of(
    pair: PlannedPair, here: RunDevice, plan: ExperimentPlan, end: str, when: tuple[int, Sleep]
) -> "HalfWay | HalfStreams":
    """Return the run of one end of a pair's train or streams, at a time that comes; `half` has what comes of it."""
    return (HalfStreams if pair.streams else HalfWay)(pair, here, plan, end, when)


def _with_absent(pair: PlannedPair, here: RunDevice, plan: ExperimentPlan, end: str) -> tuple[RunDevice, RunDevice]:
    """Return the probes that send and hear, of which one is absent."""
    there = AbsentProbe(pair.receiver if end == SENDS else pair.sender, here, _ports(plan))
    return (here, there) if end == SENDS else (there, here)


def _ports(plan: ExperimentPlan) -> int:
    return 1 + max(one.port for one in plan.probes)


class HalfWay(PlannedWay):
    """Runs one end of a pair's train; `half` has what came of it."""

    def __init__(
        self, pair: PlannedPair, here: RunDevice, plan: ExperimentPlan, end: str, when: tuple[int, Sleep]
    ) -> None:
        ends = _with_absent(pair, here, plan, end)
        sends, hears = (plan.by_name[name].port for name in pair.ends)
        start_ns, sleep = when
        self.here = here
        self.half = Half(pair.sender, pair.receiver, end, start_ns)
        assert pair.program
        super().__init__(Route(pair.program, *ends, sends, hears), plan, start_ns, sleep, lambda probe: False)

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


class HalfStreams(PlannedStreams):
    """Runs one end of a pair's streams; `half` has what came of it, as plain data: counts of who sends, readings of meters."""

    def __init__(
        self, pair: PlannedPair, here: RunDevice, plan: ExperimentPlan, end: str, when: tuple[int, Sleep]
    ) -> None:
        self.here = here
        self.half = Half(pair.sender, pair.receiver, end, when[0])
        ends = _with_absent(pair, here, plan, end)
        for port in ends[0].ports if end == HEARS else ():
            cast(_AbsentTransmit, port.transmit).last_until(int(pair.longest_ns(plan.duration_ns)))
        meters_of = (lambda *of: _AbsentMeters({})) if end == SENDS else StreamMeters
        super().__init__(pair, ends, plan, when, lambda probe: False, meters_of)

    def run(self) -> TrafficResult:
        """Measure it, as of `PlannedStreams`."""
        return self.measure()

    @property
    def clock(self) -> ClockVerdict:
        """Verdict of the clock that is here, until now."""
        return (self.clocks.get(id(self.here)) or ClockWatch(self.here.timebase.clock)).end()

    def _make_result(self) -> TrafficResult:
        half, verdict = self.half, self.clock
        own = self.senders if half.end == SENDS else self.receivers
        half.flows = self._sent() if half.end == SENDS else self._came()
        half.is_cut = self.end == "interrupted"
        half.notes, half.verdict, half.clock = self.all_notes(), verdict, self.clocks[id(self.here)].last
        if not own[0].port.transmit.is_link_up:
            self.lose_link(own[0].name, f"{half.sent} frames had left, {half.received} had come")
        return TrafficResult((), 0.0, self.end, False, verdict.state, float("inf"), ())

    def _sent(self) -> dict[str, Any]:
        (sender,) = self._plan.senders
        samples = self._read_at_end()
        self.half.sent = sum(one.counts.sent for one in samples.values())
        self.half.counters = sender.transmit.counters()
        windows = {"started": self._started, "stopped": self._stopped}
        return {
            "counts": {name: [*astuple(one.counts)] for name, one in samples.items()},
            "counters": self.half.counters,
            "increment": self._probe.timebase.increment,
            "last_ns": self._last_ns,
            "end": self.end,
            **{name: one and [*astuple(one)] for name, one in windows.items()},
        }

    def _came(self) -> dict[str, Any]:
        ((_, meters),) = self._plan.meters.items()
        readings = {
            name: {
                "stream": asdict(one.stream),
                "cells": [part.tolist() for part in (one.delays.lows, one.delays.highs, one.delays.counts)],
                "outside": one.outside,
            }
            for name, one in meters.look().items()
        }
        return {"readings": readings, "events": meters.events(), "is_saturated": meters.is_saturated}


# Both ends ----------------------------------------------------------------------------------------


def joined(pair: PlannedPair, halves: Mapping[str, Half], plan: ExperimentPlan) -> list[PairFigures]:
    """Return the figures of a pair's train, or of its streams, by both of its ends (`SENDS`, `HEARS`)."""
    found = [PairFigures(pair.sender, pair.receiver, name) for name in pair.flows]
    gone = [
        f"{name}: {halves[end].why if end in halves else 'its station has no result of it'}"
        for end, name in ((SENDS, pair.sender), (HEARS, pair.receiver))
        if end not in halves or halves[end].why
    ]
    if gone:
        for one in found:
            one.why = "; ".join(gone)
        return found
    sends, hears = halves[SENDS], halves[HEARS]
    assert sends.verdict and hears.verdict and sends.clock and hears.clock
    for one in found:
        one.start_time_ns = sends.start_ns
    if pair.streams:
        take_streams(found, _JoinedStreams(pair, sends, hears, plan).join(), (sends.clock, hears.clock), plan)
    else:
        _join_train(found[0], pair, sends, hears, plan)
    return found


class _JoinedStreams(PlannedStreams):
    """A run of streams that is over, by what both of its ends kept."""

    def __init__(self, pair: PlannedPair, sends: Half, hears: Half, plan: ExperimentPlan) -> None:
        ends = [AbsentProbe(half.name, None, _ports(plan), half) for half in (sends, hears)]
        self._halves = (sends, hears)
        super().__init__(
            pair,
            (ends[0], ends[1]),
            plan,
            (sends.start_ns, lambda seconds: None),
            lambda probe: False,
            lambda *of: _AbsentMeters(hears.flows),
        )

    @property
    def clock(self) -> ClockVerdict:
        """Verdict of both clocks."""
        assert all(half.verdict for half in self._halves)
        return verdict_of([half.verdict for half in self._halves if half.verdict], None)

    def join(self) -> TrafficResult:
        """Return what one host with both probes would have."""
        kept = self._halves[0].flows
        self.end, self._last_ns = kept["end"], kept["last_ns"]
        self._started = TimeWindow(*kept["started"])
        self._stopped = TimeWindow(*kept["stopped"]) if kept["stopped"] else None
        self.notes = list(dict.fromkeys(note for half in self._halves for note in half.notes))
        return self._make_result()


def _join_train(found: PairFigures, pair: PlannedPair, sends: Half, hears: Half, plan: ExperimentPlan) -> None:
    """Take the figures of a pair's train."""
    assert pair.program and sends.verdict and hears.verdict and sends.clock and hears.clock
    here, there = (AbsentProbe(name, None, _ports(plan), hears) for name in pair.ends)
    sends_by, hears_by = (plan.by_name[name].port for name in pair.ends)
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
    found.owd_ns = way.owd_ns if arrivals.has_all_records(train) else None
    take(found, row(way, waiting_ns), plan)
