# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Replays traces: their words, a start at a time, and the delays of captured frames, those without a stamp too.

The rule. A frame is known by its length on the wire and by its first octets, as many as the capture keeps. Of a frame that the
trace has once, the first copy that came is it, wherever it came. Frames that the trace has several times are told apart by their
order, and only where nothing speaks against it: each frame of the trace came exactly once, in order, and none was dropped on
the way into the capture. Otherwise none of them has a delay. Nothing is guessed: what the device under test has changed, added or
doubled has no delay either.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import MAX_LENGTH, OVERHEAD, RING_WORDS, TICK_NS, Part
from liteprobe.host.analysis.columns import MEGA, Column, Columns
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.line import GIGABIT, INCREMENT_ONE, Line
from liteprobe.host.base.validate import validated
from liteprobe.host.capture.session import Sink
from liteprobe.host.clock.timebase import Timebase
from liteprobe.host.packets.batch import Batch
from liteprobe.host.packets.frames import MASKS, WORD_OCTETS, Index, move, starts
from liteprobe.host.replay.streamer import Target
from liteprobe.host.run.engine import START_MARGIN_NS, ErrorWording, RunDevice, check_ports
from liteprobe.host.run.streamed import (
    Delays,
    PortFigures,
    ReplayCounts,
    ScheduledDelays,
    Show,
    StreamedPort,
    StreamedResult,
    StreamedRun,
    StreamOptions,
    target_of,
)
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.records import NOWHERE, Summary, stamp_offsets, starts_of
from liteprobe.host.traffic.trace.trace import Trace, TraceWords

LOOPS_MOST = 0xFFFF  # Of a trace in the ring.
MARGIN_NS = 5 * START_MARGIN_NS  # From the choice of the start to it: the ports get ready in between.
STEP_NS = 1000.0  # From look to look; a servo changes less.
NEARLY = 1e-5  # Of a tick: rounding of what is exact.
FRACTIONS = 1 << 32  # Of a nanosecond, in a look.
MATCHED_MOST = 4_000_000  # Frames: 64 MB of a trace, and as much of a capture.
Keys = NDArray[np.uint64]
NO_TIME = np.iinfo(np.int64).min  # Of a frame that started nobody knows when.

_CHANCE = np.random.default_rng(0x4C50)
_ADDED, _FIRST, _SECOND = (
    _CHANCE.integers(0, 1 << 64, MAX_LENGTH // WORD_OCTETS + 1, np.uint64) | np.uint64(1) for _ in range(3)
)
_OF_LENGTH = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
CLOCK_PPM = 100  # Of an end, as IEEE 802.3 allows.
ROUNDING = 5e-6  # Of starts to ticks, in a short trace.


@dataclass(frozen=True, kw_only=True)
class PortReplay(PortFigures):
    """Figures of what a port sent of a trace; the rest as of `PortFigures`."""

    trace: Trace
    #: Nanoseconds a tick of the program, in 8.40 fixed point, by which its times became ticks.
    increment: int | Fraction
    summary: Summary | None  # What the trace comes to, once; None: it has no end.
    #: Frames that waited, as planned: the line can't start them when they are due, by arithmetic; None: not known.
    waited: int | None
    delayed: int  # All that started after their tick.
    counts: ReplayCounts
    fetched_late: int = 0  # Frames whose octets the probe did not have in time for its line.
    #: Where frames had no stamp and were captured; None, too, where it isn't known when they started.
    scheduled: ScheduledDelays | None = None

    @property
    def known_delays(self) -> Delays | None:
        """Delays by stamps, or else by the trace's schedule."""
        return self.delays or (self.scheduled.delays if self.scheduled else None)

    @property
    def received(self) -> int | None:
        """Frames that came, by their stamps or by the schedule; None: nothing was captured, or it isn't known of each."""
        frames, stamped = (self.summary.frames, self.summary.stamped or 0) if self.summary else (None, 0)
        with_stamp = self.delays.frames if self.delays else 0
        if self.scheduled is None:
            return with_stamp if self.delays and stamped == frames else None
        return with_stamp + self.frames - stamped - self.scheduled.missing if self.frames == frames else None

    def planned_starts(self) -> Iterator[NDArray[np.int64]]:
        """Yield the tick at which each frame of the trace starts, from the first one on, some thousands at once."""
        return self.trace.starts(self.increment)

    @property
    def is_whole(self) -> bool:
        """Whether all frames were sent, each when the line let it."""
        return not (
            self.late or self.underruns or self.counts.errors or (self.asked is not None and self.frames != self.asked)
        )

    @property
    def rate_bps(self) -> float | None:
        """Of its frames, as planned (on the wire)."""
        return self.summary.rate_bps if self.summary else None

    def notes(self, was_stopped: bool) -> list[str]:
        """Return what the reader of the figures must know, a sentence each."""
        asked = self.asked or 0
        first = f", number {self.first_late} first"
        said = {
            f"{self.underruns} frames came too late from this host, number {self.first_underrun} first: give --snap, a lower "
            "--speed, or a faster network to the probe": self.underruns,
            f"{self.late} frames left late, though the line was free{first}": self.late,
            f"{self.waited} frames waited until the frame before had left the line, as the trace has it": self.waited,
            f"{self.delayed} frames started after their tick{first}; which of them had to wait for the one before isn't known": (
                self.late is None
            ),
            f"{self.fetched_late} frames were fetched from the ring too late for the line: report this with the file": (
                self.fetched_late
            ),
            f"{self.counts.errors} records were no frames, so it ended there: report this with the file": self.counts.errors,
            f"{asked - self.frames} of {asked} frames were not sent": self.frames < asked and not was_stopped,
        }
        found = [note for note, holds in said.items() if holds] + self.without_stamp() + self._without_delay()
        return found + list(self.summary.notes if self.summary else ()) + _margin(self.summary)

    def row(self) -> dict[str, Any]:
        """Return the figures as what JSON can hold."""
        return {
            **super().row(),
            "waited": self.waited,
            "delayed": self.delayed,
            "fetched_late": self.fetched_late,
            "planned": _planned(self.summary) if self.summary else None,
            "counts": asdict(self.counts),
            "latency_by_schedule_ns": self.scheduled.document() if self.scheduled else None,
        }

    # # #

    def _without_delay(self) -> list[str]:
        found = self.scheduled
        if found is None or not found.delays.without:
            return []
        return [
            f"{found.delays.without} captured frames without a stamp have no delay: {found.strange} are not in the trace, "
            f"{found.repeated} are copies, of {found.ambiguous} it isn't known which they are; {found.missing} did not come"
        ]


def _margin(summary: Summary | None) -> list[str]:
    """Return what must be said of a load that a slower device can't take."""
    if summary is None or summary.load * (1 + 2 * CLOCK_PPM / 1e6) <= 1 + ROUNDING:
        return []
    return [
        f"{100 * summary.load:.3f} % of the line; clocks of both ends may be {CLOCK_PPM} ppm off, so a device that is "
        f"{2 * CLOCK_PPM} ppm slower drops frames that it has no fault in: give --margin-ppm {2 * CLOCK_PPM}"
    ]


ReplayResult = StreamedResult[PortReplay]
#: Of a replay alone: of a port, and of the summary of what it was to send.
WAITED = Column("waited", "waited", "Waited for\nthe line")
TRACES = Columns(
    Column("frames", "frames", "Frames"),
    Column("octets", "octets", "Octets"),
    Column("duration_s", "s", "Time, s", 6),
    Column("rate_bps", "Mb/s", "Mb/s", 3, MEGA),
    Column("share", "of the line", "Of the line,\n%", 3, 0.01),
    Column("expected_late", "can't start\nin time", "Can't start\nin time"),
    Column("cut", "cut", "Cut"),
)


def _planned(summary: Summary) -> dict[str, Any]:
    names = ("frames", "octets", "duration_s", "share", "rate_bps", "cut", "stamped")
    tick_ns = summary.line.octet_ns
    starts = {name: _plain(getattr(summary, name) * tick_ns) for name in ("last_due", "last_start")}
    starts = {f"{name}_ns": value for name, value in starts.items()}
    return {name: getattr(summary, name) for name in names} | starts | dict(summary.counts)


def _plain(value: Fraction) -> int | float:
    """Return a whole number as one."""
    return int(value) if value.denominator == 1 else float(value)


@validated
@dataclass(frozen=True)
class ReplayOptions(StreamOptions):
    """Options of a replay; the rest as of `StreamOptions`."""

    loops: int | None = 1  # How often all is sent; None: until it is stopped.
    #: Read each trace once before: what is wrong in it is said before anything is sent, and late frames are counted.
    with_summary: bool = True


PORTS_MOST = 2  # Test ports of any board, and of a simulated probe.


class PlannedTrace:
    """A trace as a port is to send it: looked through, and what finds space in the ring is repeated there.

    ``clock``: nanoseconds a tick of the probe's clock, in 8.40 fixed point; ``line``: of its ports. Raises UsageError for what
    is wrong in it.
    """

    def __init__(self, trace: Trace, options: ReplayOptions, clock: int | None = None, line: Line = GIGABIT) -> None:
        if trace.rate_bps is not None and trace.rate_bps > line.rate_bps:
            raise UsageError(
                f"a rate of {trace.rate_bps:g} b/s is more than a line of {line}: give a lower --rate, or --top"
            )
        increment = line.program_increment(line.increment if clock is None else clock)
        self.trace, self.increment, self.loops_asked = trace, increment, options.loops
        loops = options.loops
        has_end = not trace.source.is_endless and trace.repeats is not None
        self.summary = trace.summary(increment, line) if has_end and options.with_summary else None
        self.asked = self.summary.frames * loops if self.summary and loops is not None else None
        self.expected_late = self.summary.expected_late if self.summary and loops == 1 else None
        if has_end and loops != 1 and (loops or 0) <= LOOPS_MOST:
            self.words = TraceWords(trace, increment, trace.turn_ticks(increment))
            self.loops, self.prime = loops or 0, _count(self.words, RING_WORDS + 1)
            if self.prime <= RING_WORDS:
                if self.summary and self.summary.free_ticks <= self.summary.last_due + trace.turn_ticks(
                    increment
                ):  # All turns are alike.
                    self.expected_late = loops and loops * self.summary.expected_late
                return
        repeats = None if loops is None or trace.repeats is None else trace.repeats * loops
        self.words = TraceWords(trace.repeated(repeats), increment)
        self.loops, self.prime = 1, _count(self.words, options.prime_words)

    def notes(self) -> list[str]:
        """Return what must be known before it is sent, a sentence each."""
        found = []
        if self.loops_asked != 1:
            often = f"{self.loops_asked} times, {self.asked:,} frames in all" if self.asked else "until it is stopped"
            found.append(f"the figures are of one turn; it is to be sent {often}")
        one = self.summary
        if one is None:
            return found
        if one.expected_late:
            found.append(
                f"{one.expected_late:,} frames can't start when they are due, number {one.first_late} first: the frame before is "
                "still on the line"
            )
        if one.stamped is not None and one.stamped < one.frames:
            found.append(f"{one.frames - one.stamped:,} frames have no place for the stamp")
        return [*found, *one.notes, *_margin(one)]


@dataclass(frozen=True)
class CheckedTrace:
    """A trace that was looked through for a port, and not sent."""

    port: int
    plan: PlannedTrace

    @property
    def summary(self) -> Summary | None:
        """Sum of what it comes to, once; None: it has no end."""
        return self.plan.summary

    def row(self) -> dict[str, Any]:
        """Return the figures as what JSON can hold."""
        planned = _planned(self.summary) if self.summary else None
        return {
            "port": self.port,
            "asked": self.plan.asked,
            "planned": planned,
        }


@dataclass(frozen=True)
class ReplayCheck:
    """Traces that were prepared as for a replay, and not sent."""

    ports: tuple[CheckedTrace, ...]

    @property
    def notes(self) -> list[str]:
        """Sentences that the reader must know."""
        return [f"port {one.port}: {note}" for one in self.ports for note in one.plan.notes()]

    def document(self) -> dict[str, Any]:
        """Return the result as what JSON can hold."""
        return {"end": "checked", "ports": [one.row() for one in self.ports], "notes": self.notes}


class ReplayedTrace(StreamedPort[PortReplay]):
    """A trace on its port."""

    leaves, slower = "this trace leaves", "a lower --speed"

    def __init__(self, probe: RunDevice, number: int, trace: Trace, options: ReplayOptions) -> None:
        super().__init__(probe, number)
        self.trace, self.stamp = trace, trace.stamp
        if trace.stamp is not None and probe.line.octets_per_tick != 1:
            raise UsageError(f"a probe of {probe.line} replays frames without a stamp: leave --stamp out")
        self.is_once = options.loops == 1
        self.plan = PlannedTrace(trace, options, probe.timebase.increment, probe.line)
        self.loops, self.prime, self.asked = self.plan.loops, self.plan.prime, self.plan.asked
        if self.plan.summary:
            self.load = self.plan.summary.load

    @property
    def words(self) -> TraceWords:
        """Its records."""
        return self.plan.words

    def arm(self) -> None:
        """Take the first records as soon as they are there."""
        self.ring.arm()

    def figures(self, delays: Delays | None) -> PortReplay:
        """Return what the port sent."""
        counters = self.port.transmit.counters()
        counts = self.ring.counts()
        late, waited = self._told_apart(counters["sent"], counters["late"])
        return PortReplay(
            **self.common_figures(counters["sent"], late, counters["first_late"], delays),
            underruns=counts.underruns,
            first_underrun=counts.first_underrun,
            trace=self.trace,
            increment=self.plan.increment,
            summary=self.plan.summary,
            waited=waited,
            delayed=counters["late"],
            counts=counts,
            fetched_late=counters["underruns"],
        )

    def _told_apart(self, sent: int, delayed: int) -> tuple[int | None, int | None]:
        """Return how many of the frames that started after their tick were late, and how many waited; None: not known."""
        planned = self.plan.expected_late
        if not delayed or planned is None or (sent != self.asked and planned):
            return (0, 0) if not delayed else (None, None)
        return max(delayed - planned, 0), min(delayed, planned)


class ReplayRun(StreamedRun[PortReplay]):
    """A streamed run of traces; beside a capture it starts at a time, so that frames without a stamp have a delay, too."""

    wording = ErrorWording("the replay", "while it replayed", "replay")

    def __init__(
        self,
        probe: RunDevice,
        jobs: Sequence[ReplayedTrace],
        target: Target,
        options: ReplayOptions,
        show: Show | None = None,
    ) -> None:
        super().__init__(probe, jobs, target, options, show)
        self._increment = probe.timebase.increment
        self._arrivals: ArrivalSink | None = None  # Where it can be known when each frame started.
        if options.capture and all(job.is_once for job in jobs):
            self._arrivals = ArrivalSink({job.receive: job.stamp for job in jobs}, options.capture.wanted.snap_length)
        self._schedule: ReplaySchedule | None = None

    @property
    def sinks(self) -> list[Sink]:
        """Takers of records beside the files of a capture."""
        return [*super().sinks, *([self._arrivals] if self._arrivals else [])]

    @property
    def start_ns(self) -> int | None:
        """Time at which the first SFD is to leave; None: at once."""
        return self._schedule.start_ns if self._schedule else None

    def start_all(self) -> None:
        """Start all ports in one tick; at a time, where it is to be known when each frame started."""
        if self._arrivals is not None:
            self._schedule = ReplaySchedule(self._probe.timebase, self._increment)
        super().start_all()
        if self._schedule:
            self._schedule.begin()

    def look_at_clock(self) -> int:
        """Return the time of the probe's clock (ns), and keep it."""
        return self._schedule.look() if self._schedule else super().look_at_clock()

    def figures_of(self, job: StreamedPort[PortReplay]) -> PortReplay:
        """Return what a port sent, with the delays of frames without a stamp, where they are known."""
        found = super().figures_of(job)
        if self._arrivals is None or self._schedule is None:
            return found
        scheduled = scheduled_delays(found, self._schedule, self._arrivals)
        if isinstance(scheduled, str):
            self.notes.append(f"port {found.port}: no delays of frames without a stamp: {scheduled}")
            return found
        return replace(found, scheduled=scheduled)


@validated
def replay(
    probe: RunDevice, traces: Mapping[int, Trace], options: ReplayOptions, show: Show | None = None
) -> ReplayResult:
    """Replay traces by port, all from the same tick, and return what came of it.

    Raises UsageError when the probe, its link or a port can't, or a trace is wrong; ProbeError, KeyboardInterrupt as of
    `StreamedRun`.
    """
    return _prepared(probe, traces, options, show)[0].run()


def check(traces: Mapping[int, Trace], options: ReplayOptions, probe: RunDevice | None = None) -> ReplayCheck:
    """Do all that ``replay`` does before it starts, and return what would be sent; None: without a probe.

    Raises UsageError as of ``replay``.
    """
    if probe is not None:
        plans = {job.port.number: job.plan for job in _prepared(probe, traces, options)[1]}
    else:
        _check_asked(traces, options)
        if strange := [number for number in traces if not 0 <= number < PORTS_MOST]:
            raise UsageError(f"there is no transmit port {strange[0]}: give 0 to {PORTS_MOST - 1}")
        plans = {number: PlannedTrace(trace, options) for number, trace in sorted(traces.items())}
    return ReplayCheck(tuple(CheckedTrace(number, plan) for number, plan in plans.items()))


def _check_asked(traces: Mapping[int, Trace], options: ReplayOptions) -> None:
    if not traces:
        raise UsageError("there is no trace to replay: give one or more")
    if options.loops is not None and options.loops < 1:
        raise UsageError(f"a trace can't be sent {options.loops} times: give 1 or more, or None for without an end")


def _prepared(
    probe: RunDevice, traces: Mapping[int, Trace], options: ReplayOptions, show: Show | None = None
) -> tuple["ReplayRun", list[ReplayedTrace]]:
    probe.need(Part.REPLAY)
    _check_asked(traces, options)
    check_ports([(probe, number) for number in traces], "transmit")
    target = target_of(probe, options.patience_s)
    jobs = [ReplayedTrace(probe, number, trace, options) for number, trace in sorted(traces.items())]
    return ReplayRun(probe, jobs, target, options, show), jobs


class ReplaySchedule:
    """Knows when frames of a replay started: from a start at a time of the probe's clock, and looks at it while the ports send.

    ``increment``: nanoseconds a tick by which the trace's times became ticks, in 8.40 fixed point.
    """

    def __init__(self, timebase: Timebase, increment: int) -> None:
        self._timebase = timebase
        self._tick_ns = increment / INCREMENT_ONE
        self._looks: list[tuple[int, int, int]] = []
        self._is_in_time = False
        self.start_ns = self.look() + MARGIN_NS  # Time of the first SFD.

    def look(self) -> int:
        """Keep what the clock is now, and return it (ns)."""
        self._looks.append(self._timebase.moment())
        return self._looks[-1][0]

    def begin(self) -> None:
        """Note that the start has reached the probe: in time or not, as the clock says."""
        self._is_in_time = self.look() < self.start_ns

    @property
    def trouble(self) -> str:
        """Why it isn't known when frames started; empty: it is."""
        if not self._is_in_time:
            return "the start reached the probe too late for its time"
        now, ticks = self._clock()
        if np.any(np.abs(np.diff(now) - np.diff(ticks) * self._tick_ns) > STEP_NS):
            return "the probe's clock was set while it replayed"
        return ""

    def starts_ns(self, ticks: Index) -> Index:
        """Return the times of SFDs (ns); ``ticks``: of each, from the first SFD on."""
        now, at = self._clock()
        base_ns = self._looks[0][0]
        first = np.ceil(np.interp(self.start_ns - base_ns, now, at) - NEARLY)
        wanted = first + ticks
        found = np.interp(wanted, at, now)
        found = np.where(wanted > at[-1], now[-1] + (wanted - at[-1]) * self._tick_ns, found)
        return np.asarray(base_ns + np.floor(found + NEARLY).astype(np.int64))

    # # #

    def _clock(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return time (ns) and tick of each look, from the whole ns and the tick of the first one on."""
        base_ns, _, base_tick = self._looks[0]
        now = np.array([now - base_ns + part / FRACTIONS for now, part, _ in self._looks])
        return now, np.array([float(tick - base_tick) for _, _, tick in self._looks])


def frame_keys(octets: NDArray[np.uint8], at: Index, snap: Index, length: Index) -> Keys:
    """Return a hash of each frame: of 64 bits, the same whether zeros at the end are there or not.

    Parameters
    ----------
    octets : array of u1
        Where frames lie, and a word after the last one.
    at, snap : array, shape (frames,)
        First octet of each, and how many are to be looked at.
    length : array, shape (frames,)
        Octets of each on the wire.
    """
    counts = (snap + WORD_OCTETS - 1) // WORD_OCTETS
    first = starts(counts)
    words = np.zeros(int(counts.sum()) + 1, np.uint32)
    move(octets, at, words, first, counts)
    is_cut = snap % WORD_OCTETS != 0
    words[(first + counts - 1)[is_cut]] &= MASKS[(snap % WORD_OCTETS)[is_cut]]
    place = np.arange(len(words) - 1) - np.repeat(first, counts)
    sums = np.zeros(len(words), np.uint64)
    np.cumsum(_mixed(words[:-1], place) - _mixed(np.uint32(0), place), out=sums[1:])
    return np.asarray(sums[first + counts] - sums[first] + length.astype(np.uint64) * _OF_LENGTH)


@dataclass(frozen=True)
class UnstampedFrames:
    """Frames of a trace that have no stamp: key of each, and the tick of its start, from the first frame of all on."""

    keys: Keys
    ticks: Index
    numbers: Index


def sent_frames(trace: Trace, increment: int | Fraction, prefix: int, most: int) -> UnstampedFrames:
    """Return the frames of a trace that have no stamp, of its first ``most``; ``prefix``: octets that a capture keeps."""
    keys, ticks, numbers, free, seen = [], [], [], 0, 0
    for frames, due in trace.due(increment):
        start, free = starts_of(due, frames.length + OVERHEAD, free)
        offsets = stamp_offsets(trace.stamp, frames.octets, frames.at, frames.kept) if trace.stamp else None
        number = seen + np.arange(len(frames))
        own = number < most if offsets is None else (number < most) & (offsets == NOWHERE)
        some = frames.select(own)
        keys.append(frame_keys(some.octets, some.at, np.minimum(some.kept, prefix), some.length))
        ticks.append(start[own])
        numbers.append(number[own])
        seen += len(frames)
        if seen >= most:
            break
    return UnstampedFrames(np.concatenate(keys), np.concatenate(ticks), np.concatenate(numbers))


class ArrivalSink:
    """Takes records of a capture, and keeps key and time of the frames that have no stamp.

    ``stamps``: by the port that frames come to; ``prefix``: octets that the capture keeps of a frame.
    """

    def __init__(self, stamps: Mapping[int, Stamp | None], prefix: int) -> None:
        self._stamps, self.prefix = dict(stamps), prefix
        self._keys: dict[int, list[Keys]] = {port: [] for port in stamps}
        self._times: dict[int, list[Index]] = {port: [] for port in stamps}
        self._came = dict.fromkeys(stamps, 0)
        self._has_gap = dict.fromkeys(stamps, False)

    def write(self, batch: Batch) -> None:
        """Take records."""
        octets, is_gap, ports = batch.words.view(np.uint8), batch.is_gap, batch.port
        length = batch.heads["length"].astype(np.int64)
        for port, stamp in self._stamps.items():
            own = ports == port
            self._has_gap[port] |= bool((own & is_gap).any())
            own &= ~is_gap
            at, snap = WORD_OCTETS * batch.octets_at[own], batch.snap_length[own]
            self._came[port] += len(at)
            if self._came[port] > MATCHED_MOST:
                continue
            looked = np.minimum(length[own], self.prefix)
            is_free = snap >= looked
            if stamp is not None:
                is_free &= stamp_offsets(stamp, octets, at, snap) == NOWHERE
            self._keys[port].append(frame_keys(octets, at[is_free], looked[is_free], length[own][is_free]))
            self._times[port].append(batch.stamp[own][is_free].astype(np.int64))

    def arrivals(self, port: int) -> tuple[Keys, Index, bool] | None:
        """Return keys and times (ns) of what came to a port, in the order of their times, and whether some is missing.

        None where more came than are held.
        """
        if self._came[port] > MATCHED_MOST:
            return None
        keys = np.concatenate([np.empty(0, np.uint64), *self._keys[port]])
        times = np.concatenate([np.empty(0, np.int64), *self._times[port]])
        order = np.argsort(times, kind="stable")
        return keys[order], times[order], self._has_gap[port]


def scheduled_delays(one: PortReplay, schedule: ReplaySchedule, arrivals: ArrivalSink) -> ScheduledDelays | str | None:
    """Return the delays of what a port sent without a stamp; why there are none; None: all of it has one, or nothing was sent.

    Frames from the first underrun on have none: when they started, this host doesn't know.
    """
    if one.summary is None or one.asked is None:
        return "the trace was not looked through before, or has no end"
    if one.summary.stamped == one.frames or not one.frames:
        return None
    came = arrivals.arrivals(one.receive)
    if came is None or one.summary.frames > MATCHED_MOST:
        return f"more than {MATCHED_MOST:,} frames"
    is_late = one.late != 0 and not one.underruns
    if trouble := schedule.trouble or ("frames started later than they should have" if is_late else ""):
        return trouble
    if one.fetched_late or one.counts.errors:
        return "the probe did not send the frames as they are"
    sent = sent_frames(one.trace, one.increment, arrivals.prefix, one.frames)
    started = schedule.starts_ns(sent.ticks)
    if one.first_underrun is not None:
        started[sent.numbers >= one.first_underrun] = NO_TIME
    return matched(sent.keys, started, *came)


def matched(sent: Keys, started_ns: Index, came: Keys, came_ns: Index, has_gap: bool) -> ScheduledDelays:
    """Return the delays of the frames that were found, by the rule of this file.

    Parameters
    ----------
    sent : array, shape (frames,)
        Key of each frame of the trace, in order.
    started_ns : array, shape (frames,)
        When each started; NO_TIME: nobody knows.
    came, came_ns : array, shape (captured,)
        Key and time of each captured frame, in the order of the times.
    has_gap : bool
        Whether frames are missing in the capture itself.
    """
    kinds, kind, copies = np.unique(sent, return_inverse=True, return_counts=True)
    place = np.minimum(np.searchsorted(kinds, came), max(len(kinds) - 1, 0))
    is_known = kinds[place] == came if len(kinds) else np.zeros(len(came), np.bool_)
    known = place[is_known]
    arrived = np.bincount(known, minlength=len(kinds))
    number = _numbers(kind, copies, known)
    is_first = number >= 0
    is_whole = bool((arrived == copies).all()) and not has_gap and bool((np.diff(number[is_first]) > 0).all())
    is_told = is_first & ((copies[known] == 1) | is_whole)
    times = came_ns[is_known][is_told]
    started = started_ns[number[is_told]]
    is_right = (started != NO_TIME) & (times >= started - TICK_NS)
    values = (times - started)[is_right]
    repeated = int(np.maximum(arrived - copies, 0).sum())
    strange = int(np.count_nonzero(~is_known))
    delays = Delays(len(values), len(came) - len(values), values)
    return ScheduledDelays(
        delays,
        missing=int(np.maximum(copies - arrived, 0).sum()),
        repeated=repeated,
        strange=strange,
        ambiguous=len(came) - strange - repeated - len(values),
    )


# # #


def _count(words: TraceWords, most: int) -> int:
    """Return how many words there are, or ``most`` where there are more."""
    count = 0
    for chunk in words.chunks():
        count += len(chunk)
        if count >= most:
            return most
    return count


def _mixed(words: NDArray[np.uint32] | np.uint32, place: Index) -> Keys:
    found = (words + _ADDED[place]) * _FIRST[place]
    found ^= found >> _HALF
    return np.asarray(found * _SECOND[place])


def _numbers(kind: Index, copies: Index, known: Index) -> Index:
    """Return the number of the frame that each arrival is: the n-th copy of its kind; -1 where the trace has fewer."""
    by_kind = np.argsort(kind, kind="stable")
    first = np.cumsum(copies) - copies
    order = np.argsort(known, kind="stable")
    arrived = np.bincount(known, minlength=len(copies))
    which = np.empty(len(known), np.int64)
    which[order] = np.arange(len(known)) - np.repeat(np.cumsum(arrived) - arrived, arrived)
    is_one = which < copies[known]
    found = np.full(len(known), -1, np.int64)
    found[is_one] = by_kind[first[known[is_one]] + which[is_one]]
    return found
