# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a capture, of a probe or of a recording, until what was asked for has come.

What a recording does without (links, rings, filters) is loaded only where it is used: else that takes longer than a million
frames.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from liteprobe.host.base import extras, interrupt
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.output import OutputError, words_of
from liteprobe.host.base.validate import validated
from liteprobe.host.capture.decode import BlockDecoder
from liteprobe.host.capture.request import BEFORE_NS, PCAP, SNAP_MOST, CaptureRequest, CaptureResult
from liteprobe.host.capture.session import WINDOW_NS, CaptureSession, Selection, Sink
from liteprobe.host.capture.sources import BlockSource, RecordedSource
from liteprobe.host.capture.write.output import Output
from liteprobe.host.capture.write.pcap import PcapWriter
from liteprobe.host.capture.write.pcapng import PcapngWriter, PortInterface, Statistics

if TYPE_CHECKING:
    from liteprobe.host.capture import live
    from liteprobe.host.capture.trigger import Trigger
    from liteprobe.host.packets.batch import Batch
    from liteprobe.host.packets.filter.expression import Passes

ONE_CHANNEL_NS = 200_000  # Both ports of a channel are that near to one another: the longest frame takes 73 us.
RECORDED_PORTS = 2
QUIET_S = 0.01  # Without a block of any channel: nothing comes any more that belongs before what is held back.
STILL_S = 1.0  # The same, of several channels: a block is asked for again for half a second.

#: Called with the frames written so far, and with a line that a person should see.
Progress = Callable[[int], None]
Remark = Callable[[str], None]
T = TypeVar("T")


class CaptureCompanion(Protocol):
    """Does something while a capture runs, and says when it ends."""

    @property
    def sinks(self) -> Sequence[Sink]:
        """Takers of records beside the files."""

    def is_wanted(self) -> bool:
        """Return whether the capture is to go on; called again and again from its start on."""

    def stop(self) -> None:
        """Bring what it does to an end, because a signal came; `is_wanted` says when nothing more can come of it."""


@dataclass
class Setup:
    """Holds what a capture is made of."""

    source: BlockSource
    finish: Callable[[], dict[str, Any]] = field(default=dict)
    ports: list[PortInterface] = field(default_factory=list)
    hardware: str = ""
    comment: str = ""
    shift_ns: int = 0
    first_numbers: dict[int, int] | None = None
    window_ns: int = WINDOW_NS
    clock_s: Callable[[], float] = time.monotonic
    passes: Passes | None = None
    companion: CaptureCompanion | None = None


def capture_probe(
    probe: live.CaptureDevice,
    request: CaptureRequest,
    progress: Progress | None = None,
    remark: Remark | None = None,
    companion: CaptureCompanion | None = None,
) -> CaptureResult:
    """Capture what a probe sees, as `Probe.capture` says; at the first Ctrl-C what is on its way is still taken.

    Raises OutputError, which has the result, when files could not be written to the end; beside a companion, ``failed`` says so.
    """
    from liteprobe.host.capture.ring import CaptureRing

    CaptureRing(probe.registers)  # Refuses a probe that captures nothing.
    trigger = _trigger(request)
    _remark_differences(request, remark)
    with ExitStack() as stack:
        setup = _live(probe, request, stack, remark)
        setup.companion = companion
        found = _run(request, setup, trigger, progress, stack)
    return found if companion else _checked(found)


@validated
def capture_recording(
    path: Path, request: CaptureRequest, progress: Progress | None = None, remark: Remark | None = None
) -> CaptureResult:
    """Make files of blocks that were written by a capture with ``blocks``; of ``request``, what a recording can still give.

    Raises UsageError when the recording can't be read, or TAI - UTC is to come from a probe.
    """
    if request.tai_utc_s == "probe":
        raise UsageError("a recording doesn't know TAI - UTC: give --utc 37, or what it was")
    trigger = _trigger(request)
    _remark_differences(request, remark)
    setup = Setup(
        RecordedSource(path),
        ports=[PortInterface(f"port{number}", filter=request.filter or "") for number in range(RECORDED_PORTS)],
        comment=f"From the recording {path}",
        shift_ns=-(request.tai_utc_s or 0) * 10**9,
        passes=request.passing.passes() if request.passing else None,
    )
    with ExitStack() as stack:
        return _checked(_run(request, setup, trigger, progress, stack))


def _checked(found: CaptureResult) -> CaptureResult:
    if found.failed:
        raise OutputError(found.failed, [found])
    return found


def _remark_differences(request: CaptureRequest, remark: Remark | None) -> None:
    for expression in (request.passing, request.firing):
        line = expression.remark(is_trigger=expression is request.firing) if expression else ""
        if line and remark:
            remark(line)


def _trigger(request: CaptureRequest) -> Trigger | None:
    if not request.firing:
        return None
    from liteprobe.host.capture.trigger import Trigger

    before_ns = BEFORE_NS if request.before_ns is None else request.before_ns
    return Trigger(request.firing.matches, before_ns, request.after_ns)


def _live(probe: live.CaptureDevice, request: CaptureRequest, stack: ExitStack, remark: Remark | None) -> Setup:
    """Return a capture from a probe that has its settings and has started."""
    from liteprobe.host.capture import live
    from liteprobe.host.capture.ring import clear_filter, write_filter
    from liteprobe.host.capture.trigger import ProbeTrigger, free_channel
    from liteprobe.host.clock.clock import ClockWatch
    from liteprobe.host.packets.filter.expression import fit_trigger, parse

    wanted = request.wanted
    transport = live.open_transport(probe, request.transport, wanted.channels, stack)
    if transport.remark and remark:
        remark(transport.remark)
    trigger = None
    passing, firing = request.passing, request.firing
    passes = passing.passes() if passing and request.host_filter else None
    if firing and not request.host_trigger and transport.kind != "dma":  # By DMA all frames come here as it is.
        if passes:
            raise UsageError("the probe can't look for a trigger among what this host filters: give --host-trigger")
        trigger = ProbeTrigger(free_channel(wanted.channels))
        marks = fit_trigger(passing or parse(""), firing, trigger.channel, request.probe_ports)
        write_filter(probe.registers, marks)
    elif request.ports is not None or (passing and not passes):
        wanted_here = parse("") if passes or not passing else passing
        write_filter(probe.registers, wanted_here.fit(probe_ports=request.probe_ports))
    else:
        clear_filter(probe.registers)
    status, watch = live.clock_words(probe), ClockWatch(probe.timebase.clock)
    tai_utc_s = live.tai_utc_s(probe) if request.tai_utc_s == "probe" else request.tai_utc_s or 0
    running = live.begin(probe, wanted, transport, stack, trigger)
    if running.remark and remark:
        remark(running.remark)
    snap = 0 if wanted.snap_length == SNAP_MOST else wanted.snap_length
    ports = [
        PortInterface(f"port{number}", f"port {number} of {probe.url}", request.filter or "", status, snap)
        for number in range(running.ports)
    ]
    is_utc = request.tai_utc_s is not None
    return Setup(
        running.source,
        lambda: running.finish() | {"clock": live.watched_words(watch)},
        ports,
        hardware=f"liteprobe {probe.url}",
        comment="Stamps are UTC." if is_utc else "Stamps are of the probe's own time, TAI where its clock is set.",
        shift_ns=-tai_utc_s * 10**9,
        first_numbers=None if trigger else dict.fromkeys(wanted.channels, 0),
        window_ns=ONE_CHANNEL_NS if len(wanted.channels) == 1 and not trigger else WINDOW_NS,
        clock_s=running.clock_s,
        passes=passes,
    )


def _run(
    request: CaptureRequest, setup: Setup, trigger: Trigger | None, progress: Progress | None, stack: ExitStack
) -> CaptureResult:
    """Run; close the files whatever happens. One that can't be written ends by itself, and the others go on."""
    files: list[OutputFile] = []
    by_header: OutputFile | None = None  # Lacks something of a frame without a header.
    pcapng: PcapWriter | PcapngWriter | None = None
    header_files: list[Path] = []
    if request.write:
        written = Output(Path(request.write))
        files.append(OutputFile(written.name, written.close, lambda: written.parts))
        stack.callback(files[-1].close)
        if Path(request.write).suffix.lower() == PCAP:
            writer: Callable[[], PcapWriter | PcapngWriter] = partial(PcapWriter, written, setup.shift_ns)
        else:
            writer = partial(PcapngWriter, written, setup.ports, setup.hardware, setup.comment, setup.shift_ns)
        pcapng = files[-1].attempt(writer)
        files[-1].sink = pcapng
    if request.lines:
        from liteprobe.host.capture.write.lines import LineWriter  # Loads names of protocols.

        shown = Output(Path(request.lines))
        lines = LineWriter(shown, setup.shift_ns)
        by_header = OutputFile(shown.name, shown.close, lambda: shown.parts, lines)
        files.append(by_header)
        stack.callback(files[-1].close)
    if request.headers:
        with extras.named():
            from liteprobe.host.capture.write.parquet import HeaderWriter  # Loading Arrow takes a while.
        headers = HeaderWriter(Path(request.headers), {"liteprobe": setup.comment}, setup.shift_ns)
        header_files = headers.paths
        by_header = OutputFile(str(request.headers), headers.close, lambda: headers.written, headers, of_headers=True)
        files.append(by_header)
        stack.callback(files[-1].close)
    if request.blocks:
        blocks = Output(Path(request.blocks))
        files.append(OutputFile(blocks.name, blocks.close, blocks=blocks))
        stack.callback(files[-1].close)
    choice = Selection(setup.passes, trigger, request.count, request.ports)
    sinks = [*(setup.companion.sinks if setup.companion else ()), *(one for one in files if one.blocks is None)]
    capture = CaptureSession(sinks, choice, BlockDecoder(setup.first_numbers), setup.window_ns)
    try:
        signal = _loop(request.duration_s, setup, capture, files, progress)
    except interrupt.Interrupted as second:  # While what was on its way was taken.
        second.args = (
            f"{second}; {capture.frames:,} frames were written, and what was still to come of the probe is lost",
        )
        raise
    counts = _counts(capture, choice) | setup.finish()
    if pcapng:
        statistics = _statistics(setup, counts)
        files[0].attempt(lambda: pcapng.close(statistics))
    for one in files:
        one.close()
    if by_header:
        counts["without_header"] = by_header.without_header
    counts["unwritten"] = {one.name: one.unwritten for one in files if one.error}
    return CaptureResult(counts, signal, header_files, tuple(one.words() for one in files if one.error))


class OutputFile:
    """A file of a capture that ends by itself where it can't be written: the others go on.

    Parameters
    ----------
    held : callable or None
        Returns the frames that are in it; None: it holds blocks.
    sink : Sink or None
        Writes records into it.
    of_headers : bool
        It takes only frames that have a header.
    blocks : Output or None
        Takes blocks as they come.
    """

    def __init__(
        self,
        name: str,
        close: Callable[[], None],
        held: Callable[[], int] | None = None,
        sink: Sink | None = None,
        of_headers: bool = False,
        blocks: Output | None = None,
    ) -> None:
        self.name, self.sink, self.blocks = name, sink, blocks
        self.error = ""  # Why it has ended; empty: it has not.
        self._close, self._held, self._of_headers = close, held, of_headers
        self._came = 0
        self.without_header = 0  # Frames that came without one: under load a probe leaves it out.

    def write(self, batch: Batch) -> None:
        """Take records."""
        frames, headers = np.count_nonzero(~batch.is_gap), np.count_nonzero(batch.has_header)
        self._came += int(headers if self._of_headers else frames)
        self.without_header += int(frames - headers)
        if sink := self.sink:
            self.attempt(lambda: sink.write(batch))

    def attempt(self, act: Callable[[], T]) -> T | None:
        """Have something written, and return what that gives, unless the file has ended; where it fails it ends now: None."""
        if self.error:
            return None
        try:
            return act()
        except (ProbeError, OSError) as error:
            self.error = words_of(error) if isinstance(error, OSError) else str(error)
            self.close()
            return None

    def close(self) -> None:
        """Close it; closing twice is harmless."""
        try:
            self._close()
        except (ProbeError, OSError) as error:
            self.error = self.error or (words_of(error) if isinstance(error, OSError) else str(error))

    @property
    def unwritten(self) -> int | None:
        """Frames that came and are not in it; None: it holds blocks, so nobody has counted."""
        return self._came - self._held() if self._held else None

    def words(self) -> str:
        """Return why it has ended, and what is missing in it."""
        return f"{self.error} ({self.unwritten:,} frames are missing in it)" if self._held else self.error


def _loop(
    duration_s: float | None,
    setup: Setup,
    capture: CaptureSession,
    files: Sequence[OutputFile],
    progress: Progress | None,
) -> int:
    """Take blocks until the end, or until no file takes any more; the first Ctrl-C ends it, and what is on its way is still taken.

    ``progress`` is called where nothing comes, too; what it interrupts ends like that. Returns the signal that ended it, or 0.
    """
    came_s = setup.clock_s()
    ends_s = None if duration_s is None else came_s + duration_s
    is_stopping, is_orderly = False, setup.window_ns == ONE_CHANNEL_NS
    with interrupt.stop_requests() as request:
        for blocks, lengths in setup.source.batches():
            for one in files if len(blocks) else ():
                if raw := one.blocks:
                    one.attempt(partial(raw.write, blocks.reshape(-1)))
            capture.take(blocks, lengths)
            if not setup.companion and all(one.error for one in files):
                setup.source.stop()
                return 0
            if len(blocks):
                came_s = setup.clock_s()
            elif setup.clock_s() - came_s >= (QUIET_S if is_orderly or capture.is_enough else STILL_S):
                capture.finish()
            if capture.is_done:
                setup.source.stop()
                return 0
            if progress:
                try:
                    progress(capture.frames)
                except interrupt.Interrupted as stop:
                    if is_stopping:
                        raise
                    request.number = stop.exit_code - 128
            if is_stopping:
                continue
            is_over = ends_s is not None and setup.clock_s() >= ends_s
            if setup.companion:
                if request.is_made:
                    setup.companion.stop()  # Frames are on their way: the capture ends behind them.
                is_over |= not setup.companion.is_wanted()
            elif request.is_made:
                is_over = True
            if is_over:
                is_stopping = True
                setup.source.stop()
    capture.finish()
    return 0 if ends_s is not None and setup.clock_s() >= ends_s else request.number


def _counts(capture: CaptureSession, choice: Selection) -> dict[str, Any]:
    """Return what became of everything, by name."""
    found: dict[str, Any] = {"frames": capture.frames, "octets": capture.octets, "filtered": capture.filtered}
    found |= asdict(capture.decoder.counters) | {"disordered": capture.merger.disordered}
    if (cut := getattr(choice.passes, "cut", None)) is not None:  # Of libpcap's filter alone.
        found["filter_cut"] = cut
    if choice.trigger:
        trigger = choice.trigger
        found |= {"trigger_stamp": trigger.stamp, "before_given_up": trigger.given_up, "before_ns": trigger.reach_ns}
    return found


def _statistics(setup: Setup, counts: dict[str, Any]) -> list[Statistics]:
    """Return what the probe knows of each port."""
    return [
        Statistics(received=seen.get("received"), accepted=seen.get("accepted"), comment=counts.get("clock", ""))
        for seen in counts.get("ports", [{} for _ in setup.ports])  # A recording doesn't know.
    ]
