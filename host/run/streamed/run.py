# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs ports that send what this host streams to them: open, fill the rings, start all in one tick, stream and capture, count."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Generic

from liteprobe.cores.formats import REPLAY_PORT, TransmitState
from liteprobe.host.capture.request import CaptureRequest, CaptureResult
from liteprobe.host.clock.watch import ClockWatch
from liteprobe.host.errors import ProbeError, UsageError
from liteprobe.host.interrupt import Interrupted
from liteprobe.host.replay.dma import DmaTarget, PortAddresses
from liteprobe.host.replay.streamer import Streamer, Target
from liteprobe.host.replay.udp import Pace, UdpTarget
from liteprobe.host.run.plan import IN_BAND_PORT, is_shared
from liteprobe.host.run.port import check_own
from liteprobe.host.run.start import await_ready, check_links, start_together
from liteprobe.host.run.streamed.delays import DelaySink
from liteprobe.host.run.streamed.figures import FiguresT, Sent, StreamedResult
from liteprobe.host.run.streamed.program import Show, StreamedDevice, StreamedPort, StreamLook, StreamOptions
from liteprobe.host.run.streamed.replay_matching import ArrivalSink
from liteprobe.host.run.streamed.replay_schedule import ReplaySchedule

PRIME_S = 30.0
LOOK_S = 0.005
CAPTURE_LOOK_S = 0.02  # While this host has a capture to take.
SHARED_LOAD = 0.9  # Of a line that the probe's answers leave by, too.


class StreamedRun(Generic[FiguresT]):
    """One start of one port or several, all in the same tick.

    Parameters
    ----------
    probe : StreamedDevice
    jobs : sequence of StreamedPort
        In the order of their ports.
    target : Target
        Where words go to (``target_of``).
    options : StreamOptions
    show : callable or None
        Given a look, now and then.

    Raises
    ------
    UsageError
        When the probe's answers share a line that has no room for them.
    """

    def __init__(
        self,
        probe: StreamedDevice,
        jobs: Sequence[StreamedPort[FiguresT]],
        target: Target,
        options: StreamOptions,
        show: Show | None = None,
    ) -> None:
        self._probe, self._jobs, self._target, self._options, self._show = probe, jobs, target, options, show
        stamps = {one.receive: one.stamp for one in jobs if one.stamp}
        self._delays = DelaySink(stamps, {one.receive: one.signature for one in jobs if one.signature is not None})
        self._arrivals = self._arrival_sink()
        self._schedule: ReplaySchedule | None = None
        self._check_line()
        self._increment = probe.timebase.increment
        self._clock = ClockWatch(probe.timebase.clock)  # Anew at the start.
        self._streamer: Streamer | None = None
        self._began_ns = self._ended_ns = 0
        self._settles_s: float | None = None
        self._look_due_s = 0.0
        self._look_s = min(LOOK_S, probe.link.arrival_timeout_s / 10)  # Time of a simulated probe is dear.
        self._end = ""
        self._notes: list[str] = []

    def run(self) -> StreamedResult[FiguresT]:
        """Send all, and return what came of it.

        Raises
        ------
        ProbeError
            When a link is down, nothing answers or what is streamed is wrong: all ports have stopped then.
        KeyboardInterrupt
            Passed on after the ports were stopped; Interrupted has the result until then.
        """
        probe = self._probe
        check_links((probe, job.port, f"port {job.port.number}") for job in self._jobs)
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

    def _check_line(self) -> None:
        """Raise UsageError where the probe's answers share a line that has no room for them."""
        for job in self._jobs:
            if job.port.number == IN_BAND_PORT and job.load > SHARED_LOAD and is_shared(self._probe):
                raise UsageError(
                    f"port {IN_BAND_PORT} is the one by which the probe answers this host, and {job.terms.subject} no room for "
                    f"that on its line (more than {100 * SHARED_LOAD:g} %): use another port, or {job.terms.slower}"
                )

    def _arrival_sink(self) -> ArrivalSink | None:
        """Return what keeps when frames without a stamp came, where it can be known when each of them started."""
        capture = self._options.capture
        if capture is None or not all(job.has_schedule for job in self._jobs):
            return None
        return ArrivalSink({job.receive: job.stamp for job in self._jobs}, capture.wanted.snap_length)

    def _by_schedule(self, job: StreamedPort[FiguresT], found: FiguresT) -> FiguresT:
        """Return figures with the delays of frames without a stamp, where they are known."""
        if self._arrivals is None or self._schedule is None:
            return found
        scheduled = job.by_schedule(found, self._schedule, self._arrivals)
        if isinstance(scheduled, str):
            self._notes.append(f"port {found.port}: no delays of frames without a stamp: {scheduled}")
            return found
        return scheduled

    def _open(self) -> None:
        """Open the sessions, under this host's lease."""
        probe = self._probe
        probe.registers.own()
        for job in self._jobs:
            job.port.halt(probe.timebase)  # What was detached may still run.
            job.port.sends_for = self
            job.session = replace(job.session, lease=probe.link.lease & 0xFFFF)
            job.port.transmit.clear()
            job.ring.open(job.session.number, job.loops, job.prime)
            job.load_port()

    def _prime(self) -> None:
        """Wait until the rings are full, or hold all."""
        ends_s = time.monotonic() + PRIME_S
        while not all(self._is_primed(job) for job in self._jobs):
            if time.monotonic() > ends_s:
                raise ProbeError(
                    f"the rings of the probe were not full after {PRIME_S:g} s: find out what makes the network to it this slow, "
                    "or what the words wait for"
                )
            self._probe.link.wait(self._look_s)

    def _is_primed(self, job: StreamedPort[FiguresT]) -> bool:
        assert self._streamer
        state = self._streamer.state(job.port.number)
        if state.is_done and state.accepted < job.prime:
            job.prime = state.accepted  # There are no more.
            job.ring.prime(job.prime)
        return state.accepted >= job.prime

    def _start(self) -> None:
        """Start all ports in one tick; beside a capture at a time, where it is to be known when each frame started."""
        if self._arrivals is not None:
            self._schedule = ReplaySchedule(self._probe.timebase, self._increment)
        for job in self._jobs:
            job.port.transmit.attach(self._schedule.start_ns if self._schedule else None)
            job.arm()
        ports = [job.port for job in self._jobs]
        self._began_ns = self._ended_ns = await_ready(self._probe, ports, "its first frames")
        self._clock = ClockWatch(self._probe.timebase.clock)
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
        check_own(self, [job.port for job in self._jobs], [])
        for job in self._jobs:
            self._look_at(job)
        self._ended_ns = self._schedule.look() if self._schedule else self._probe.timebase.now_ns
        if self._show:
            self._show(self._seen())
        return any(job.state != TransmitState.IDLE for job in self._jobs)

    def _look_at(self, job: StreamedPort[FiguresT]) -> None:
        """Keep how far a port and its stream are."""
        assert self._streamer
        number = job.port.number
        job.state, job.frames, is_up = job.port.transmit.look()
        state = self._streamer.state(number)
        job.sent = Sent(state.datagrams, state.resent, state.starved, state.accepted, state.is_done)
        if not is_up and job.state != TransmitState.IDLE:
            terms = job.terms
            raise ProbeError(
                f"the link of port {number} went down while it {terms.did} ({job.frames} frames had {terms.had}): plug in its "
                f"cable, and {terms.again} again"
            )

    def _seen(self) -> StreamLook:
        assert self._streamer
        states = {job.port.number: self._streamer.state(job.port.number) for job in self._jobs}
        return StreamLook(
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
                    job.ring.close()

    def _result(self, captured: CaptureResult | None) -> StreamedResult[FiguresT]:
        has_delays = self._options.capture is not None
        found = [job.figures(self._delays.delays(job.receive) if has_delays else None) for job in self._jobs]
        ports = tuple(self._by_schedule(job, one) for job, one in zip(self._jobs, found, strict=True))
        was_stopped = self._end != "sent"
        notes = [*self._notes, *[f"{self._end} before its end"] * (self._end in ("interrupted", "stopped"))]
        notes += [f"port {one.port}: {note}" for one in ports for note in one.notes(was_stopped)]
        if captured and not captured.is_complete:
            notes.append("the capture is incomplete: liteprobe capture says what is counted where")
        is_complete = not was_stopped and all(one.is_whole for one in ports)
        clock = self._clock.end()
        notes += clock.notes
        most_ns = max((one.known_delays.most_ns or 0 for one in ports if one.known_delays), default=0)
        return StreamedResult(
            ports,
            duration_s=(self._ended_ns - self._began_ns) / 1e9,
            end=self._end,
            is_complete=is_complete and (captured is None or captured.is_complete),
            clock_state=clock.state,
            uncertainty_ns=self._probe.timebase.delay_bound_ns(most_ns, clock),
            capture=captured,
            notes=tuple(notes),
        )


def target_of(probe: StreamedDevice, patience_s: float | None) -> Target:
    """Return where words go to.

    Raises
    ------
    UsageError
        When the link has no way for them.
    """
    link = probe.link
    address, device = link.replay_address(), link.replay_device()
    if address is not None:
        pace = Pace(link.silence_s if patience_s is None else patience_s, link.replay_flight, link.replay_timeout_s)
        return UdpTarget(*address, pace)
    if device is not None and "replay_dma_filled0" in probe.registers.names:
        return DmaTarget(device, tuple(PortAddresses.of(probe.registers, port.number) for port in probe.ports))
    raise UsageError(
        f"what is replayed is streamed by UDP port {REPLAY_PORT} of the probe, or over PCIe where its gateware has a DMA reader, "
        f"and {probe.url} is another way to it: connect the probe's management port, and give --probe etherbone://ADDRESS"
    )
