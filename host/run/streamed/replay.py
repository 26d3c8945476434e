# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Replays traces: what a trace is as a program of a streamed run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from liteprobe.cores.formats import NO_SEQUENCE, RING_WORDS, Part
from liteprobe.host.errors import UsageError
from liteprobe.host.replay.slots import TraceWords
from liteprobe.host.run.routes import check_ports
from liteprobe.host.run.streamed.figures import Delays
from liteprobe.host.run.streamed.program import Show, StreamedDevice, StreamedPort, StreamOptions, Terms
from liteprobe.host.run.streamed.replay_figures import PortReplay, ReplayResult
from liteprobe.host.run.streamed.replay_matching import ArrivalSink, scheduled_delays
from liteprobe.host.run.streamed.replay_schedule import ReplaySchedule
from liteprobe.host.run.streamed.run import StreamedRun, target_of
from liteprobe.host.traffic.trace.trace import Trace

LOOPS_MOST = 0xFFFF  # Of a trace in the ring.


@dataclass(frozen=True)
class ReplayOptions(StreamOptions):
    """How a replay is run; the rest as of `StreamOptions`.

    Parameters
    ----------
    loops : int or None
        How often all is sent; None: until it is stopped.
    with_summary : bool
        Read each trace once before: what is wrong in it is said before anything is sent, and late frames are counted.
    """

    loops: int | None = 1
    with_summary: bool = True


class ReplayedTrace(StreamedPort[PortReplay]):
    """A trace on its port: what finds room in the ring is repeated there.

    Parameters
    ----------
    probe, number : as of `StreamedPort`
    trace : Trace
    options : ReplayOptions
    """

    terms = Terms("this trace leaves", "a lower --speed", "replayed", "been sent", "replay")

    def __init__(self, probe: StreamedDevice, number: int, trace: Trace, options: ReplayOptions) -> None:
        super().__init__(probe, number)
        self.trace, self.stamp, self._increment = trace, trace.stamp, probe.timebase.increment
        self._is_once = self.has_schedule = options.loops == 1
        loops = options.loops
        has_end = not trace.source.is_endless and trace.repeats is not None
        self.summary = trace.summary(self._increment) if has_end and options.with_summary else None
        if self.summary:
            self.load = self.summary.load
            self.asked = self.summary.frames * loops if loops is not None else None
        if has_end and loops != 1 and (loops or 0) <= LOOPS_MOST:
            self._words = TraceWords(trace, self._increment, trace.turn_ticks(self._increment))
            self.loops, self.prime = loops or 0, _count(self._words, RING_WORDS + 1)
            if self.prime <= RING_WORDS:
                return
        repeats = None if loops is None or trace.repeats is None else trace.repeats * loops
        self._words = TraceWords(trace.repeated(repeats), self._increment)
        self.loops, self.prime = 1, _count(self._words, options.prime_words)

    @property
    def words(self) -> TraceWords:
        """Its records."""
        return self._words

    def arm(self) -> None:
        """Take the first records as soon as they are there."""
        self.ring.arm()

    def figures(self, delays: Delays | None) -> PortReplay:
        """Return what the port sent."""
        counters = self.port.transmit.counters()
        counts = self.ring.counts()
        first_late = counters["first_late"]
        return PortReplay(
            port=self.port.number,
            asked=self.asked,
            frames=counts.frames,
            late=counters["late"],
            first_late=None if first_late == NO_SEQUENCE else first_late,
            underruns=counts.underruns,
            first_underrun=counts.first_underrun,
            sent=self.sent,
            receive=self.receive,
            delays=delays,
            trace=self.trace,
            increment=self._increment,
            summary=self.summary,
            expected_late=self.summary.expected_late if self.summary and self._is_once else None,
            counts=counts,
            fetched_late=counters["underruns"],
        )

    def by_schedule(self, found: PortReplay, schedule: ReplaySchedule, arrivals: ArrivalSink) -> PortReplay | str:
        """Return figures with delays by the trace's schedule, or why there are none."""
        scheduled = scheduled_delays(found, schedule, arrivals)
        return scheduled if isinstance(scheduled, str) else replace(found, scheduled=scheduled)


def replay(
    probe: StreamedDevice, traces: Mapping[int, Trace], options: ReplayOptions, show: Show | None = None
) -> ReplayResult:
    """Replay traces by port, all from the same tick, and return what came of it.

    Raises
    ------
    UsageError
        When the probe, its link or a port can't, or a trace is wrong.
    ProbeError, KeyboardInterrupt
        As of `StreamedRun`.
    """
    probe.need(Part.REPLAY)
    if not traces:
        raise UsageError("there is no trace to replay: give one or more")
    if options.loops is not None and options.loops < 1:
        raise UsageError(f"a trace can't be sent {options.loops} times: give 1 or more, or None for without an end")
    check_ports([(probe, number) for number in traces], "transmit", False)
    target = target_of(probe, options.patience_s)
    jobs = [ReplayedTrace(probe, number, trace, options) for number, trace in sorted(traces.items())]
    return StreamedRun(probe, jobs, target, options, show).run()


# # #


def _count(words: TraceWords, most: int) -> int:
    """Return how many words there are, or ``most`` where there are more."""
    count = 0
    for chunk in words.chunks():
        count += len(chunk)
        if count >= most:
            return most
    return count
