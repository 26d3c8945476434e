# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a replay: open, fill the rings, start all ports in one tick, stream and capture meanwhile, count."""

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from liteprobe.cores.formats import NO_SEQUENCE, REPLAY_PORT, RING_WORDS, Part, TransmitState
from liteprobe.host.capture.request import CaptureRequest, CaptureResult
from liteprobe.host.errors import ProbeError, UsageError
from liteprobe.host.interrupt import Interrupted
from liteprobe.host.replay.datagrams import Session
from liteprobe.host.replay.streamer import Streamer, Target
from liteprobe.host.replay.words import TraceWords
from liteprobe.host.run.plan import IN_BAND_PORT, is_shared
from liteprobe.host.run.port import Port, check_own
from liteprobe.host.run.replay_delays import DelaySink
from liteprobe.host.run.replay_figures import PortReplay, ReplayResult, Sent, margin_note, notes_of
from liteprobe.host.run.replay_matching import ArrivalSink, scheduled_delays
from liteprobe.host.run.replay_port import ReplayPort
from liteprobe.host.run.replay_schedule import ReplaySchedule
from liteprobe.host.run.routes import Devices, check_ports
from liteprobe.host.run.start import await_ready, check_links, start_together
from liteprobe.host.run.streamed import look_at
from liteprobe.host.traffic.trace.summary import Summary
from liteprobe.host.traffic.trace.trace import Trace

PRIME_WORDS = RING_WORDS - RING_WORDS // 16  # All that is sure to be taken: the rest may be in the next datagram.
PRIME_S = 30.0
LOOK_S = 0.005
CAPTURE_LOOK_S = 0.02  # While this host has a capture to take.
LOOPS_MOST = 0xFFFF  # Of a trace in the ring.
SHARED_LOAD = 0.9  # Of a line that the probe's answers leave by, too.
INTERRUPTED = "interrupted: the replay was stopped before its end"


@dataclass(frozen=True)
class ReplayLook:
    """How a replay is while it runs: frames and words by port, and what it is to be (None: not known)."""

    frames: dict[int, int]
    asked: dict[int, int | None]
    underruns: dict[int, int]
    resent: dict[int, int]


Show = Callable[[ReplayLook], None]


class ReplayDevice(Devices, Protocol):
    """What a replay works with: a `Probe`, or what stands for one."""

    port_count: int

    def wait(self, seconds: float) -> None:
        """Let ``seconds`` of the probe's time pass."""


@dataclass(frozen=True)
class ReplayOptions:
    """How a replay is run.

    Parameters
    ----------
    loops : int or None
        How often all is sent; None: until it is stopped.
    capture : CaptureRequest or None
        What to capture meanwhile, on all ports.
    prime_words : int
        Words that are in the ring before it starts, or all.
    with_summary : bool
        Read each trace once before: what is wrong in it is said before anything is sent, and late frames are counted.
    patience_s : float or None
        Without an answer for so long, the probe is gone; None: as the link says.
    remark : callable or None
        Called with a line on what isn't as fast as it could be.
    """

    loops: int | None = 1
    capture: CaptureRequest | None = None
    prime_words: int = PRIME_WORDS
    with_summary: bool = True
    patience_s: float | None = None
    remark: Callable[[str], None] | None = None


@dataclass
class Job:
    """A trace on its port."""

    port: Port
    replay: ReplayPort
    trace: Trace
    session: Session
    words: TraceWords
    loops: int
    prime: int
    asked: int | None
    summary: Summary | None
    state: TransmitState = TransmitState.IDLE
    frames: int = 0
    sent: Sent = field(default_factory=lambda: Sent(0, 0, 0, 0, False))


class Replay:
    """One start of a trace or several, all in the same tick.

    Parameters
    ----------
    probe : ReplayDevice
    traces : mapping of int to Trace
        By port.
    options : ReplayOptions
    show : callable or None
        Given a look, now and then.

    Raises
    ------
    UsageError
        When the probe, its link or a port can't, or a trace is wrong.
    """

    def __init__(
        self, probe: ReplayDevice, traces: Mapping[int, Trace], options: ReplayOptions, show: Show | None = None
    ) -> None:
        self._probe, self._options, self._show = probe, options, show
        probe.need(Part.REPLAY)
        if not traces:
            raise UsageError("there is no trace to replay: give one or more")
        if options.loops is not None and options.loops < 1:
            raise UsageError(f"a trace can't be sent {options.loops} times: give 1 or more, or None for without an end")
        check_ports([(probe, number) for number in traces], "transmit", False)
        self._target = target_of(probe, options.patience_s)
        self._increment = probe.timebase.increment
        self._jobs = [self._job(number, trace) for number, trace in sorted(traces.items())]
        count = len(probe.ports)
        self._receivers = {one.port.number: probe.link.receive_port(one.port.number, count) for one in self._jobs}
        stamps = {self._receivers[one.port.number]: one.trace.stamp for one in self._jobs}
        self._delays = DelaySink({port: stamp for port, stamp in stamps.items() if stamp is not None})
        capture = options.capture
        self._arrivals = ArrivalSink(stamps, capture.wanted.snap_length) if capture and options.loops == 1 else None
        self._schedule: ReplaySchedule | None = None
        self._check_line()
        self._streamer: Streamer | None = None
        self._began_ns = self._ended_ns = 0
        self._settles_s: float | None = None
        self._look_due_s = 0.0
        self._look_s = min(LOOK_S, probe.link.arrival_timeout_s / 10)  # Time of a simulated probe is dear.
        self._end = ""
        self._notes: list[str] = []

    def run(self) -> ReplayResult:
        """Replay, and return what came of it.

        Raises
        ------
        ProbeError
            When a link is down, nothing answers or what is streamed is wrong: all ports have stopped then.
        KeyboardInterrupt
            Passed on after the ports were stopped; Interrupted has the result until then.
        """
        probe = self._probe
        ports = [job.port for job in self._jobs]
        check_links((probe, port, f"port {port.number}") for port in ports)
        self._notes += probe.links.notes()
        captured: CaptureResult | None = None
        try:
            self._open()
            sources = {job.session: job.words for job in self._jobs}
            with Streamer(self._target, sources) as self._streamer:
                try:
                    self._prime()
                    if self._options.capture:
                        captured = self._capture(self._options.capture)
                    else:
                        self._follow()
                finally:
                    self._halt()
        except Interrupted as end:
            self._end = "interrupted"
            with suppress(ProbeError):
                end.results = [self._result(captured)]
            raise
        return self._result(captured)

    # # #

    def _job(self, number: int, trace: Trace) -> Job:
        """Return a trace as it will be streamed: what finds room in the ring is repeated there."""
        loops = self._options.loops
        has_end = not trace.source.is_endless and trace.repeats is not None
        summary = trace.summary(self._increment) if has_end and self._options.with_summary else None
        asked = summary.frames * loops if summary and loops is not None else None
        port = self._probe.ports[number]
        session = Session(number, secrets.randbelow(0xFFFF) + 1, 0)
        replay = ReplayPort(self._probe.registers, number)
        if has_end and loops != 1 and (loops or 0) <= LOOPS_MOST:
            kept = TraceWords(trace, self._increment, trace.turn_ticks(self._increment))
            if (count := _count(kept, RING_WORDS + 1)) <= RING_WORDS:
                return Job(port, replay, trace, session, kept, loops or 0, count, asked, summary)
        repeats = None if loops is None or trace.repeats is None else trace.repeats * loops
        words = TraceWords(trace.repeated(repeats), self._increment)
        prime = _count(words, self._options.prime_words)
        return Job(port, replay, trace, session, words, 1, prime, asked, summary)

    def _check_line(self) -> None:
        """Raise UsageError where the probe's answers share a line that has no room for them."""
        for job in self._jobs:
            is_full = job.summary is None or job.summary.load > SHARED_LOAD
            if job.port.number == IN_BAND_PORT and is_full and is_shared(self._probe):
                raise UsageError(
                    f"port {IN_BAND_PORT} is the one by which the probe answers this host, and this trace leaves no room for that "
                    f"on its line (more than {100 * SHARED_LOAD:g} %): use another port, or a lower --speed"
                )

    def _open(self) -> None:
        """Open the sessions, under this host's lease."""
        probe = self._probe
        probe.registers.own()
        for job in self._jobs:
            job.port.halt(probe.timebase)  # What was detached may still run.
            job.port.sends_for = self
            job.session = replace(job.session, lease=probe.link.lease & 0xFFFF)
            job.port.transmit.clear()
            job.replay.open(job.session.number, job.loops, job.prime)

    def _prime(self) -> None:
        """Wait until the rings are full, or hold all."""
        ends_s = time.monotonic() + PRIME_S
        while not all(self._is_primed(job) for job in self._jobs):
            if time.monotonic() > ends_s:
                raise ProbeError(
                    f"the rings of the probe were not full after {PRIME_S:g} s: find out what makes the network to it this slow"
                )
            self._probe.link.wait(self._look_s)

    def _is_primed(self, job: Job) -> bool:
        assert self._streamer
        state = self._streamer.state(job.port.number)
        return state.accepted >= job.prime

    def _start(self) -> None:
        """Start all ports in one tick; beside a capture at a time, so that it is known when each frame started."""
        if self._arrivals is not None:
            self._schedule = ReplaySchedule(self._probe.timebase, self._increment)
        for job in self._jobs:
            job.port.transmit.attach(self._schedule.start_ns if self._schedule else None)
            job.replay.arm()
        ports = [job.port for job in self._jobs]
        self._began_ns = self._ended_ns = await_ready(self._probe, ports, "its first frames")
        start_together(self._probe, ports, 0.0)
        if self._schedule:
            self._schedule.begin()

    def _follow(self) -> None:
        """Look until all ports have ended."""
        self._start()
        while self._look():
            self._probe.link.wait(self._look_s)
        self._end = self._end or "sent"

    def _capture(self, request: CaptureRequest) -> CaptureResult:
        """Capture while the ports send, and until what they sent has come."""
        from liteprobe.host.capture.run import capture_probe  # Its files take a while to load.

        return capture_probe(self._probe, request, remark=self._options.remark, meanwhile=self)

    @property
    def sinks(self) -> list[DelaySink | ArrivalSink]:
        """What takes records beside the files of a capture."""
        return [self._delays, *([self._arrivals] if self._arrivals else [])]

    def is_wanted(self) -> bool:
        """Start when the capture does; return whether it is to go on: until frames that were sent have had time to come."""
        link = self._probe.link
        if not self._began_ns:
            self._start()
        if not self._end and time.monotonic() < self._look_due_s:
            return True  # A look takes a millisecond, in which blocks wait.
        self._look_due_s = time.monotonic() + CAPTURE_LOOK_S
        if not self._end and self._look():
            return True
        self._end = self._end or "sent"
        if self._settles_s is None:
            self._settles_s = link.now_s() + link.arrival_timeout_s
        return link.now_s() < self._settles_s

    def _look(self) -> bool:
        """Return whether a port still sends."""
        assert self._streamer
        check_own(self, [job.port for job in self._jobs], [])
        look_at(self._jobs, self._streamer, ("replayed", "been sent", "replay"))
        self._ended_ns = self._schedule.look() if self._schedule else self._probe.timebase.now_ns
        if self._show:
            self._show(self._seen())
        return any(job.state != TransmitState.IDLE for job in self._jobs)

    def _seen(self) -> ReplayLook:
        assert self._streamer
        states = {job.port.number: self._streamer.state(job.port.number) for job in self._jobs}
        return ReplayLook(
            {job.port.number: job.frames for job in self._jobs},
            {job.port.number: job.asked for job in self._jobs},
            {port: state.underruns for port, state in states.items()},
            {port: state.resent for port, state in states.items()},
        )

    def _halt(self) -> None:
        """Stop all ports, whatever state they are in, and close their sessions."""
        with suppress(ProbeError):
            for job in self._jobs:
                if job.port.sends_for is self:
                    was_running = job.port.halt(self._probe.timebase)
                    self._end = "stopped" if was_running and not self._end else self._end
                    job.replay.close()

    # What came of it --------------------------------------------------------------------------

    def _result(self, captured: CaptureResult | None) -> ReplayResult:
        ports = tuple(self._port_result(job) for job in self._jobs)
        was_stopped = self._end != "sent"
        notes = [*self._notes, *[INTERRUPTED] * (self._end == "interrupted")]
        notes += ["stopped before the end of the trace"] if self._end == "stopped" else []
        notes += [note for one in ports for note in notes_of(one, was_stopped)]
        notes += [note for one in ports if (note := margin_note(one))]
        if captured and not captured.is_complete:
            notes.append("the capture is incomplete: liteprobe capture says what is counted where")
        is_complete = (
            not was_stopped and all(one.is_whole for one in ports) and (captured is None or captured.is_complete)
        )
        timebase = self._probe.timebase
        most_ns = max((one.known_delays.most_ns or 0 for one in ports if one.known_delays), default=0)
        clock = (timebase.clock_state, timebase.uncertainty_ns(most_ns))
        duration_s = (self._ended_ns - self._began_ns) / 1e9
        return ReplayResult(ports, duration_s, self._end, is_complete, *clock, captured, tuple(notes))

    def _port_result(self, job: Job) -> PortReplay:
        counters = job.port.transmit.counters()
        counts = job.replay.counts()
        late, first_late = counters["late"], counters["first_late"]
        is_once = self._options.loops == 1 and job.summary is not None
        receive = self._receivers[job.port.number]
        found = PortReplay(
            port=job.port.number,
            trace=job.trace,
            increment=self._increment,
            summary=job.summary,
            asked=job.asked,
            frames=counts.frames,
            late=late,
            first_late=None if first_late == NO_SEQUENCE else first_late,
            expected_late=job.summary.expected_late if job.summary and is_once else None,
            underruns=counts.underruns,
            first_underrun=counts.first_underrun,
            sent=job.sent,
            counts=counts,
            receive=receive,
            fetched_late=counters["underruns"],
            delays=self._delays.delays(receive) if self._options.capture else None,
        )
        if self._arrivals is None or self._schedule is None:
            return found
        scheduled = scheduled_delays(found, self._schedule, self._arrivals)
        if isinstance(scheduled, str):
            self._notes.append(f"port {found.port}: no delays of frames without a stamp: {scheduled}")
            return found
        return replace(found, scheduled=scheduled)


def _count(words: TraceWords, most: int) -> int:
    """Return how many words there are, or ``most`` where there are more."""
    count = 0
    for chunk in words.chunks():
        count += len(chunk)
        if count >= most:
            return most
    return count


def target_of(probe: ReplayDevice, patience_s: float | None) -> Target:
    """Return where words go to.

    Raises
    ------
    UsageError
        When the link has no way for them.
    """
    address = probe.link.replay_address()
    if address is None:
        raise UsageError(
            f"what is replayed is streamed by UDP port {REPLAY_PORT} of the probe, and {probe.url} is another way to it (over PCIe "
            "it would take LitePCIe's DMA reader, which is not built in): connect the probe's management port, and give "
            "--probe etherbone://ADDRESS"
        )
    return Target(*address, probe.link.silence_s if patience_s is None else patience_s)
