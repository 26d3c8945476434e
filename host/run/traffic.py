# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the streams of one or several ports: load, start in one tick, look while they run, stop and start single ones, count."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType

from liteprobe.cores.formats import TransmitState
from liteprobe.host.clock.clock import ClockVerdict, ClockWatch
from liteprobe.host.errors import ProbeError, UsageError
from liteprobe.host.interrupt import Interrupted
from liteprobe.host.run import rows
from liteprobe.host.run.figures import StreamFigures, TrafficLook, TrafficResult, longest_ns
from liteprobe.host.run.meters import Measured
from liteprobe.host.run.plan import Plan, SendOptions
from liteprobe.host.run.port import HALT_TIMEOUT_NS, check_own
from liteprobe.host.run.routes import Devices
from liteprobe.host.run.rows import Moment, Point
from liteprobe.host.run.start import START_MARGIN_NS, await_ready, check_links, lose_link, settle, start_together

Show = Callable[[TrafficLook], None]

LOOKS = 4  # In an arrival timeout, while somebody watches.
PLACING_LOOKS = 8  # For delays by which the histograms are placed.
INTERRUPTED = "interrupted: the streams were stopped before their end"
SILENCE_MARGIN = 1.1  # Of the time that streams take: where it is random, it is the mean.


class Traffic:
    """Streams that run, until their result is taken; a context manager that stops them, unless they are detached.

    Parameters
    ----------
    probe : Devices
    plan : Plan
        What is sent, and where it is measured.
    options : SendOptions
        Those that the plan was made with.
    """

    def __init__(self, probe: Devices, plan: Plan, options: SendOptions) -> None:
        self._probe, self._plan, self._options = probe, plan, options
        self._active = {sender.port.number: sender.words.mask for sender in plan.senders}
        self._points: dict[str, Point] = {}  # Of the last look.
        self._touched: set[str] = set()  # Streams that somebody stopped or started.
        self._last_ns = 0
        self._started = Moment(0, 0)
        self._stopped: Moment | None = None
        self._end = ""
        self._notes = [note for sender in plan.senders for note in sender.words.notes]
        self._result: TrafficResult | None = None

    def begin(self) -> None:
        """Load, start all ports in one tick, and place the histograms.

        Raises
        ------
        ProbeError
            When a link is down, or the probe does not get ready.
        """
        probe, plan = self._probe, self._plan
        ends = dict.fromkeys([*plan.ports, *(probe.ports[number] for number in plan.meters)])
        check_links((probe, port, f"port {port.number}") for port in ends)
        self._notes += probe.links.notes()
        try:
            for sender in plan.senders:
                self._notes += sender.port.free(probe.timebase)
                sender.port.sends_for = self
            for number, meters in plan.meters.items():
                probe.ports[number].measures_for = self
                meters.begin()
            for sender in plan.senders:
                sender.transmit.clear()
                sender.transmit.load_streams(sender.words, not self._options.is_detached)
                sender.transmit.arm_streams()
            self._begin()
        except BaseException:
            self._halt()
            raise

    # What a script uses -----------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether a stream still had frames at the last look."""
        return not self._end and any(self._active.values())

    def look(self) -> TrafficLook:
        """Return how all streams are now.

        Raises
        ------
        UsageError
            When a port was given something else to send or to measure since.
        ProbeError
            When a link is down, or the streams did not start: they are stopped then.
        """
        self._check_own()
        try:
            return self._look()
        except ProbeError:
            self._halt()
            raise

    def stop(self, name: str | None = None) -> None:
        """Stop all streams, or the one of this name while the others go on; what is committed still leaves.

        Raises
        ------
        UsageError
            When there is no such stream, or a port was given something else to send since.
        """
        if name is None:
            self._halt()
            return
        self._check_own()
        sender, number = self._plan.find(name)
        self._touched.add(name)
        sender.transmit.end(number)

    def start(self, name: str) -> None:
        """Start a stream again that was stopped, or that has sent all of its frames: then it sends as many more.

        Its sequence numbers go on, and so does what is random in it. One that still has frames just goes on.

        Raises
        ------
        UsageError
            When there is no such stream, or the program of its port has ended.
        """
        self._check_own()
        sender, number = self._plan.find(name)
        port = sender.port.number
        state, _, active = sender.transmit.look_streams()
        if self._end or state == TransmitState.IDLE:
            raise UsageError(f"port {port} has ended, so stream '{name}' can't start again: send all of them anew")
        if active >> number & 1:
            return  # The probe works on its words.
        self._touched.add(name)
        sender.transmit.begin(number, sender.words)
        self._active[port] |= 1 << number

    def wait(self, show: Show | None = None) -> None:
        """Wait until all streams have sent all of their frames, or the time is over that they were given; look now and then.

        Parameters
        ----------
        show : callable or None
            Given each look.

        Raises
        ------
        UsageError
            When that would never be, or a port was given something else to send or to measure since.
        KeyboardInterrupt
            Passed on after the streams were stopped; Interrupted has the result until then.
        """
        self._check_own()
        endless = self._endless()
        if endless and self._options.seconds is None:
            raise UsageError(f"streams without an end ({endless}) are not waited for: call stop, or give seconds")
        self.follow(show)

    def _endless(self) -> str:
        """Return which streams run without an end, as a message says it."""
        if self._end or self._plan.duration_ns(None) is not None:
            return ""
        self._read()
        endless = []
        for stream in self._plan.streams:
            sender, number = self._plan.find(stream.name)
            if stream.count is None and self._active[sender.port.number] >> number & 1:
                endless.append(f"'{stream.name}'")
        return ", ".join(endless)

    def follow(self, show: Show | None = None) -> None:
        """Wait as ``wait`` does, for streams without an end, too: until something interrupts it."""
        link, seconds = self._probe.link, self._options.seconds
        try:
            if self._plan.is_quiet and self.is_running:
                link.wait(self._plan_s())
            while self.is_running:
                look = self._look()
                if show:
                    show(look)
                left_s = float("inf") if seconds is None else seconds - look.elapsed_s
                if look.is_running and left_s > 0:
                    link.wait(min(link.arrival_timeout_s / (LOOKS if show else 1), left_s))
                elif look.is_running:
                    self._halt()
        except Interrupted as end:
            self._halt("interrupted")
            end.results = self._cut()
            raise
        except BaseException:
            self._halt()
            raise

    def result(self) -> TrafficResult:
        """Return what came of the streams, when the last frame has come or none has for the arrival timeout.

        Raises
        ------
        UsageError
            When they have no end, and were not stopped; or a port was given something else to send or to measure since.
        KeyboardInterrupt
            Passed on; Interrupted has the result of what had come.
        """
        if self._result is None:
            self._check_own()
            if self.is_running:
                self.wait()
            try:
                self._finish()
                settle(self._missing, self._probe.link.wait, self._probe.link.arrival_timeout_s)
            except Interrupted as end:
                self._end = "interrupted"
                end.results = [self._make_result()]
                raise
            self._result = self._make_result()
        return self._result

    def __enter__(self) -> "Traffic":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._options.is_detached and not self._end:
            self._halt()

    # # #

    def _begin(self) -> None:
        """Start what is loaded, and look until the histograms are placed."""
        probe, plan = self._probe, self._plan
        before_ns = await_ready(probe, plan.ports, "its first frames")
        self._clock = ClockWatch(probe.timebase.clock)
        silence_s = SILENCE_MARGIN * self._plan_s() + START_MARGIN_NS / 1e9 if plan.is_quiet else 0.0
        start_together(probe, plan.ports, silence_s)
        self._started = Moment(before_ns, before_ns + START_MARGIN_NS if plan.is_quiet else probe.timebase.now_ns)
        if plan.is_quiet:
            return
        for _ in range(PLACING_LOOKS):
            placed = [meters.follow(meters.look()) for meters in plan.meters.values()]
            if all(placed):
                return
            probe.link.wait(probe.link.arrival_timeout_s / LOOKS / PLACING_LOOKS)

    def _check_own(self) -> None:
        """Raise UsageError where a port sends or measures something else by now."""
        check_own(self, self._plan.ports, [self._probe.ports[number] for number in self._plan.meters])

    def _plan_s(self) -> float:
        """Return how long the streams take; 0 where that is without an end."""
        return float(self._plan.duration_ns(self._options.seconds) or 0) / 1e9

    # While they run ---------------------------------------------------------------------------

    def _look(self) -> TrafficLook:
        before, points, measured = self._points, self._read(), self._measure()
        now_ns = self._last_ns = max(point.at.most_ns for point in points.values())
        found = []
        for stream in self._plan.streams:
            row = self._row(stream.name, points, measured)
            found.append(rows.since(row, before[stream.name], points[stream.name]) if before else row)
        for number, meters in self._plan.meters.items():
            meters.follow(measured[number])
        elapsed_s = (now_ns - self._started.least_ns) / 1e9
        return TrafficLook(tuple(found), now_ns, elapsed_s, self.is_running, *self._trust(self._clock.end(), found))

    def _read(self) -> dict[str, Point]:
        """Return what ports have sent, and keep which streams are active.

        Raises
        ------
        ProbeError
            When a link is down, or the streams did not start.
        """
        timebase, found = self._probe.timebase, dict[str, Point]()
        for sender in self._plan.senders:
            before_ns = timebase.now_ns
            state, is_up, self._active[sender.port.number] = sender.transmit.look_streams()
            counts = sender.transmit.counts(len(sender.streams))
            at = Moment(before_ns, timebase.now_ns)
            if state in (TransmitState.ARMED, TransmitState.READY):
                raise ProbeError(
                    "the probe did not start the streams: was a port stopped from its console? Send them again"
                )
            if not is_up:
                lose_link(sender.port.number, sum(one.sent for one in counts))
            found |= {stream.name: Point(at, one) for stream, one in zip(sender.streams, counts, strict=True)}
        for number in self._plan.meters:
            if not self._probe.ports[number].receive.is_link_up:
                lose_link(number, sum(point.counts.sent for point in found.values()))
        self._points = found
        return found

    def _measure(self) -> dict[int, dict[str, Measured]]:
        """Return what each port has measured, and keep it with what was sent."""
        found = {number: meters.look() for number, meters in self._plan.meters.items()}
        for measured in found.values():
            for name, one in measured.items():
                self._points[name] = replace(self._points[name], received=one.stream)
        return found

    def _row(self, name: str, points: Mapping[str, Point], measured: dict[int, dict[str, Measured]]) -> StreamFigures:
        sender, number = self._plan.find(name)
        meters = self._plan.meters[sender.receive]
        row = rows.row(sender, sender.streams[number], points[name], measured[sender.receive].get(name))
        row = rows.without_percentiles(row) if meters.is_saturated else row
        return replace(row, is_active=bool(self._active[sender.port.number] >> number & 1))

    def _trust(self, clock: ClockVerdict, found: Sequence[StreamFigures]) -> tuple[str, float]:
        """Return the worst state of the clock, and the bound of the error of a delay (ns)."""
        return clock.state, self._probe.timebase.delay_bound_ns(longest_ns(found), clock)

    # The end ----------------------------------------------------------------------------------

    def _halt(self, why: str = "stopped") -> None:
        """Stop all streams, whatever state the links are in."""
        if self._end:
            return
        self._end = why
        link, timebase = self._probe.link, self._probe.timebase
        link.expect_silence(0)  # Who is stopped holds no answer back.
        with suppress(ProbeError):
            before_ns = timebase.now_ns
            for sender in self._plan.senders:
                if sender.port.sends_for is self:
                    sender.port.halt(timebase)
            self._stopped = Moment(before_ns, timebase.now_ns)

    def _finish(self) -> None:
        """Let ports whose streams have ended end, too, and wait until their last frames have left."""
        if self._end:
            return
        self._end = "sent"
        timebase = self._probe.timebase
        for sender in self._plan.senders:
            if not self._options.is_detached:
                sender.transmit.let_end()
            deadline_ns = timebase.now_ns + HALT_TIMEOUT_NS
            while sender.transmit.look_streams()[0] != TransmitState.IDLE:
                self._last_ns = timebase.now_ns
                if self._last_ns > deadline_ns:
                    raise ProbeError(f"port {sender.port.number} doesn't end: reset the probe, and report this")

    def _missing(self) -> int:
        """Return how many frames that were sent have not come."""
        points, missing = self._read_at_end(), 0
        for meters in self._plan.meters.values():
            for name, stream in meters.streams().items():
                came = stream.frames - stream.duplicated - stream.beyond_window
                missing += max(points[name].counts.sent - came, 0)
        return missing

    def _read_at_end(self) -> dict[str, Point]:
        """Return what was sent, whatever state the links are in."""
        found: dict[str, Point] = {}
        for sender in self._plan.senders:
            counts = sender.transmit.counts(len(sender.streams))
            found |= {
                stream.name: Point(self._started, one) for stream, one in zip(sender.streams, counts, strict=True)
            }
        return found

    def _make_result(self) -> TrafficResult:
        points = self._points = self._read_at_end()
        self._active = dict.fromkeys(self._active, 0)
        measured = self._measure()
        end = self._stopped if self._end != "sent" else None
        found = []
        for stream in self._plan.streams:
            row = rows.at_the_end(self._row(stream.name, points, measured))
            is_stopped = stream.count is None or row.sent < stream.count
            until = end if is_stopped and stream.name not in self._touched else None
            found.append(rows.over_all(row, self._started, until, points[stream.name].received))
        unsent = rows.unsent(found, self._touched) if self._end == "sent" else []
        notes = [*self._notes, *unsent, *[INTERRUPTED] * (self._end == "interrupted")]
        notes += [note for sender in self._plan.senders for note in rows.sender_notes(sender, not self._touched)]
        notes += rows.notes(found, self._options.latency_range_ns is not None)
        is_whole = self._end != "interrupted" and not unsent
        for number, meters in self._plan.meters.items():
            events = meters.events()
            notes += rows.port_notes(number, events, meters.is_saturated)
            is_whole &= not (events["overflows"] or events["unclassified"] or meters.is_saturated)
        ended_ns = self._stopped.least_ns if self._stopped else self._last_ns
        duration_s = (ended_ns - self._started.most_ns) / 1e9
        clock = self._clock.end()
        trust = (*self._trust(clock, found), (*notes, *clock.notes))
        return TrafficResult(tuple(found), duration_s, self._end, is_whole, *trust)

    def _cut(self) -> list[TrafficResult]:
        """Return what came of streams that were interrupted; nothing when the probe doesn't answer."""
        with suppress(ProbeError):
            return [self.result()]
        return []
