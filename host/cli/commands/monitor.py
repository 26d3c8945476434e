# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shows what a probe measures while frames come: rates, streams, histograms, the ring, and what was lost and why."""

import argparse
import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing

from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from liteprobe.cores.formats import LINE_RATE_BPS
from liteprobe.host.capture.ring import ChannelState
from liteprobe.host.cli import tables
from liteprobe.host.cli.arguments import STDOUT
from liteprobe.host.cli.keys import pressed
from liteprobe.host.cli.output import Lines
from liteprobe.host.clock.timebase import bound_words
from liteprobe.host.measure.monitor import NAMES, BinSetting, Histogram, PortMeasurement
from liteprobe.host.measure.streams import Stream
from liteprobe.host.probe import Probe
from liteprobe.host.serve.poll import ALL, Look, Poller, document, totals

KINDS = {name: kind for kind, name in NAMES.items()}
GOOD_CLOCK = ("locked",)
HISTORY = 16  # Rates that are shown.
STEP_LOOKS = 20  # A wait goes in steps of so many of the link's: 2 ms of a simulated probe, 100 ms of a board.
REDRAW_S = 0.25
HELP_TEXT = """?  this help, or not        q, Ctrl-C  end
rate       of the last interval that ended (--rates), with FCS, preamble and gap; bars: the rates before
counters   of all frames since the probe began; red: frames that were refused, damaged or lost
streams    probe frames by stream, since the meters were cleared (--streams, --bins)
histograms values by bin (--bins); what lies outside of the bins is counted below and above"""
PLENTY = 0.75  # Of a line or a ring: yellow from here on.
#: Events of a port that are not a loss; all others are shown, red where they aren't 0.
PLAIN = (
    *ALL,
    "management_frames",
    "classified",
    "matched",
    "passed",
    "sampled",
    "kept",
    "own_frames",
)


def run(args: argparse.Namespace) -> None:
    """Look until Ctrl-C, which is the end that is meant once something was shown."""
    with ExitStack() as stack:
        probe = stack.enter_context(Probe(args.probe, args.map, args.steal))
        looker = Poller(probe, args.ports)
        bins = {KINDS[kind]: BinSetting(origin, shift) for kind, origin, shift in args.bins}
        looker.set(args.streams, bins, None if args.rates is None else round(args.rates))
        screen = Screen(args, stack)
        take: list[Callable[[Look], None]] = [screen.show]
        if args.metrics is not None:
            take.append(_served(args.metrics, stack))
        is_seen = False
        try:
            while not (args.once and is_seen):
                look = looker.look()
                is_seen = True  # From its first word on: Ctrl-C may come while it is written.
                for each in take:
                    each(look)
                if not args.once and screen.waits(probe, args.interval / 1e9):
                    return
        except KeyboardInterrupt:
            if args.once or not is_seen:
                raise


def _served(where: tuple[str, int], stack: ExitStack) -> Callable[[Look], None]:
    """Return what gives looks to those who ask for metrics."""
    from liteprobe.host.serve.metrics import Metrics, serve  # A web server, for those who want one.

    metrics = Metrics()
    server = serve(metrics, where[1], where[0])
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    print(f"metrics: http://{where[0]}:{server.server_port}/metrics", file=sys.stderr)

    def take(look: Look) -> None:
        metrics.look = look

    return take


class Screen:
    """Shows looks as was asked for: live in a terminal, else below one another, or as JSON.

    Parameters
    ----------
    args : argparse.Namespace
    stack : ExitStack
        What is open for it until the end.
    """

    def __init__(self, args: argparse.Namespace, stack: ExitStack) -> None:
        self._lines = stack.enter_context(closing(Lines(args.json))) if args.json else None
        self._is_json_alone = bool(args.json) and args.json == STDOUT
        self._console = tables.console()
        is_live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live: Live | None = None
        if is_live and not args.once and not self._is_json_alone:
            self._live = stack.enter_context(Live(console=self._console, auto_refresh=False, screen=True))
            self._key = stack.enter_context(pressed())
        self._history: dict[int, deque[float]] = {}
        self._numbers: dict[int, int] = {}
        self._look: Look | None = None
        self._has_help = False

    def show(self, look: Look) -> None:
        """Show a look."""
        self._look = look
        for port in look.ports:
            rate = port.rate
            if rate and rate.is_whole and self._numbers.get(port.port) != rate.number:
                self._numbers[port.port] = rate.number
                self._history.setdefault(port.port, deque(maxlen=HISTORY)).append(rate.line_bits_per_s)
        if self._lines:
            self._lines.write(document(look))
        if self._live:
            self._draw(0.0)
        elif not self._is_json_alone:
            self._console.print(view(look, self._history))

    def waits(self, probe: Probe, seconds: float) -> bool:
        """Let time of the probe pass, say how much is left, and obey keys; return whether the end was asked for."""
        if not self._live:
            probe.wait(seconds)
            return False
        step_s, left_s, drawn = STEP_LOOKS * probe.link.look_ns / 1e9, seconds, time.monotonic()
        while left_s > 0:
            probe.wait(min(step_s, left_s))
            left_s -= step_s
            key = self._key()
            if key == "q":
                return True
            self._has_help ^= key == "?"
            if key or time.monotonic() - drawn > REDRAW_S:
                drawn = time.monotonic()
                self._draw(max(left_s, 0.0))
        return False

    def _draw(self, left_s: float) -> None:
        assert self._live and self._look
        wait = f"next look in {left_s * 1e3:,.0f} ms of the probe's time   " if left_s else ""
        head: list[RenderableType] = [Text(f"{wait}?: help   q: end", "dim")]  # Above: a low terminal cuts the end off.
        head += [Text(HELP_TEXT)] * self._has_help
        self._live.update(Group(*head, view(self._look, self._history)), refresh=True)


# What is shown ------------------------------------------------------------------------------------


def view(look: Look, history: Mapping[int, Sequence[float]] | None = None) -> RenderableType:
    """Return a look as a screen; ``history``: rates of each port (bits/s on the line) that came before, the oldest first."""
    colour = "green" if look.clock_state in GOOD_CLOCK else "yellow"
    head = Text.assemble(
        ("liteprobe ", "bold"),
        look.url,
        "   clock ",
        (look.clock_state, colour),
        f", {bound_words(look.uncertainty_ns)}",
    )
    parts: list[RenderableType] = [head]
    parts += [
        _port(port, events, (history or {}).get(port.port, ()))
        for port, events in zip(look.ports, look.events, strict=True)
    ]
    if look.channels:
        parts.append(_ring(look.channels))
    return Group(*parts)


def _port(port: PortMeasurement, events: dict[str, int], history: Sequence[float]) -> RenderableType:
    frames, octets = totals(port, events)
    parts: list[RenderableType] = [_rates(port, frames, octets)]
    if len(history) > 1:
        recent = list(history)
        parts.append(
            Text.assemble(tables.bars([round(rate) for rate in recent]), f" up to {max(recent) / 1e6:,.3f} Mb/s")
        )
    if port.counters["frames"] != frames:
        parts.append(
            Text(f"streams and histograms: of {port.counters['frames']:,} frames, since they were cleared", "dim")
        )
    lost = [(name.replace("_", " "), count) for name, count in events.items() if name not in PLAIN]
    if lost:
        words = [(f"{count:,} {name}{', ' * (name != lost[-1][0])}", "red" if count else "dim") for name, count in lost]
        parts.append(Text.assemble(*words))
    streams = [stream for stream in port.streams if stream.frames]
    if streams:
        parts.append(_streams(streams))
    if port.histograms:
        parts.append(_histograms(list(port.histograms[0].values()), port.is_saturated))
    return Panel(Group(*parts), title=f"port {port.port}", title_align="left", border_style="cyan")


def _rates(port: PortMeasurement, frames: int, octets: int) -> RenderableType:
    counts = f"{frames:,} frames, {octets:,} octets"
    if not port.has_rates:
        return Text(counts)
    line_bps = port.rate.line_bits_per_s if port.rate else math.nan
    known = line_bps if math.isfinite(line_bps) else 0.0
    style = "yellow" if known > PLENTY * LINE_RATE_BPS else "green"
    shown = Table.grid(padding=(0, 2))
    rate = (
        "no rate yet: no whole interval has ended (--rates 1ms)"
        if not math.isfinite(line_bps)
        else f"{line_bps / 1e6:,.3f} Mb/s on the line"
    )
    frames_per_s = f"{port.rate.frames_per_s:,.0f} frames/s" if port.rate and math.isfinite(line_bps) else ""
    counts = f"{frames_per_s}, {counts}" if frames_per_s else counts
    bar = ProgressBar(total=LINE_RATE_BPS, completed=known, width=24, complete_style=style, finished_style=style)
    shown.add_row(bar, f"{100 * known / LINE_RATE_BPS:5.1f} %", rate)
    narrow = Group(Text(f"{100 * known / LINE_RATE_BPS:.1f} % of the line"), Text(rate))
    return Group(tables.Either(shown, narrow), Text(counts))


def _streams(streams: list[Stream]) -> RenderableType:
    with_errors = any(stream.bit_errors is not None for stream in streams)
    counts = ["frames", "lost", "%", "dup", "reord", "late"] + ["bit errors", "damaged"] * with_errors
    delays = ["delay min", "mean", "max", "std ns"]
    wide = tables.table("stream", *counts, *delays, text=0)
    narrow = [tables.table("stream", *counts, text=0), tables.table("stream", *delays, text=0)]
    for name, found in _rows(streams, with_errors):
        wide.add_row(name, *found)
        narrow[0].add_row(name, *found[: len(counts)])
        narrow[1].add_row(name, *found[len(counts) :])
    return tables.Either(wide, Group(*narrow))


def _rows(streams: list[Stream], with_errors: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield of each stream its name, what is counted of it, with bit errors where any are, and its delays."""
    for stream in streams:
        name = "others" if stream.stream_id is None else str(stream.stream_id)
        counts = [stream.lost, stream.duplicated, stream.reordered, stream.beyond_window]
        if stream.stream_id is None:
            order, ratio = ["-"] * 4, "-"  # Of many streams at once, numbers say nothing.
        else:
            order = [f"[red]{count:,}[/red]" if count else "0" for count in counts]
            ratio = f"{100 * stream.loss_ratio:.3f}"
        if with_errors:
            bits = [stream.bit_errors, stream.damaged_bit_errors]
            order += ["-" if count is None else f"[red]{count:,}[/red]" if count else "0" for count in bits]
        delays = [stream.delay_min_ns, stream.delay_mean_ns, stream.delay_max_ns, stream.delay_std_ns]
        yield name, [f"{stream.frames:,}", order[0], ratio, *order[1:], *(_ns(value) for value in delays)]


def _ns(value: float) -> str:
    return "-" if not math.isfinite(value) else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _histograms(found: list[Histogram], is_saturated: bool) -> RenderableType:
    parts: list[RenderableType] = []
    shown = [histogram for histogram in found if histogram.total]
    widest = max((len(f"{histogram.edges[0]:,.0f}") for histogram in shown), default=0)
    for histogram in shown:
        edges = histogram.edges
        peak = int(histogram.counts.argmax())
        where = f"peak {edges[peak]:,.0f}..{edges[peak + 1] - 1:,.0f}: {int(histogram.counts[peak]):,}, "
        outside = f"below {histogram.below:,}, above {histogram.above:,}"
        if histogram.below or histogram.above:
            outside += f": {100 * (histogram.below + histogram.above) / histogram.total:.1f} % outside"
        style = "yellow" if histogram.below or histogram.above else "dim"
        name, low, high = NAMES[histogram.kind], f"{edges[0]:,.0f}", f"{edges[-1]:,.0f} {histogram.unit}"
        counts = histogram.counts.tolist()
        wide = Text.assemble(f"{name:<8}{low:<{widest}} ", tables.bars(counts), f" {high}", no_wrap=True)
        pairs = [sum(counts[at : at + 2]) for at in range(0, len(counts), 2)]
        parts.append(tables.Either(wide, Group(Text(f"{name}, {low} to {high}"), tables.bars(pairs))))
        parts.append(Text.assemble(" " * 8, (where, "dim"), (outside, style)))
    if is_saturated:
        parts.append("[red]a bin was full[/red]")
    return Group(*parts)


def _ring(channels: dict[int, ChannelState]) -> RenderableType:
    shown = Table.grid(padding=(0, 2))
    for channel, state in channels.items():
        style = (
            "red" if state.waiting >= state.taken - 1 else "yellow" if state.waiting > PLENTY * state.taken else "green"
        )
        bar = ProgressBar(
            total=state.taken, completed=state.waiting, width=10, complete_style=style, finished_style=style
        )
        dropped = Text(f"{state.dropped:,} frames dropped", "red" if state.dropped else "dim")
        blocks = f"{state.waiting}/{state.taken} blocks"
        shown.add_row(f"channel {channel}", bar, blocks, f"{state.written:,} written", dropped)
    return Panel(shown, title="capture", title_align="left", border_style="cyan")
