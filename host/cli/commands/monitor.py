# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shows what a probe measures while frames come: rates, streams, histograms, the ring, and what was lost and why."""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
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
from liteprobe.host.cli.output import Lines
from liteprobe.host.clock.timebase import bound_words
from liteprobe.host.measure.monitor import NAMES, BinSetting, Histogram, PortMeasurement
from liteprobe.host.measure.streams import Stream
from liteprobe.host.probe import Probe
from liteprobe.host.serve.poll import Look, Poller, document

KINDS = {name: kind for kind, name in NAMES.items()}
GOOD_CLOCK = ("locked",)
PLENTY = 0.75  # Of a line or a ring: yellow from here on.
#: Events of a port that are not a loss; all others are shown when they aren't 0.
PLAIN = (
    "all_frames",
    "all_octets",
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
        take = [_shown(args, stack)]
        if args.metrics is not None:
            take.append(_served(args.metrics, stack))
        is_seen = False
        try:
            while not (args.once and is_seen):
                look = looker.look()
                for each in take:
                    each(look)
                is_seen = True
                probe.wait(0 if args.once else args.interval / 1e9)
        except KeyboardInterrupt:
            if args.once or not is_seen:
                raise


def _served(port: int, stack: ExitStack) -> Callable[[Look], None]:
    """Return what gives looks to those who ask for metrics."""
    from liteprobe.host.serve.metrics import Metrics, serve  # A web server, for those who want one.

    metrics = Metrics()
    server = serve(metrics, port)
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    print(f"metrics: http://0.0.0.0:{server.server_port}/metrics", file=sys.stderr)

    def take(look: Look) -> None:
        metrics.look = look

    return take


def _shown(args: argparse.Namespace, stack: ExitStack) -> Callable[[Look], None]:
    """Return what shows looks as was asked for."""
    lines = stack.enter_context(closing(Lines(args.json))) if args.json else None
    if lines and args.json == STDOUT:
        return lambda look: lines.write(document(look))
    console = tables.console()
    if args.once or not console.is_terminal:
        live = None
    else:
        live = stack.enter_context(Live(console=console, auto_refresh=False, screen=True))

    def both(look: Look) -> None:
        if lines:
            lines.write(document(look))
        if live:
            live.update(view(look), refresh=True)
        else:
            console.print(view(look))

    return both


# What is shown ------------------------------------------------------------------------------------


def view(look: Look) -> RenderableType:
    """Return a look as a screen."""
    colour = "green" if look.clock_state in GOOD_CLOCK else "yellow"
    head = Text.assemble(
        ("liteprobe ", "bold"),
        look.url,
        "   clock ",
        (look.clock_state, colour),
        f", {bound_words(look.uncertainty_ns)}",
    )
    parts: list[RenderableType] = [head]
    parts += [_port(port, events) for port, events in zip(look.ports, look.events, strict=True)]
    if look.channels:
        parts.append(_ring(look.channels))
    return Group(*parts)


def _port(port: PortMeasurement, events: dict[str, int]) -> RenderableType:
    parts: list[RenderableType] = [_rates(port)]
    lost = {name: count for name, count in events.items() if count and name not in PLAIN}
    if lost:
        words = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in lost.items())
        parts.append(Text.assemble(("! ", "bold red"), (words, "red")))
    streams = [stream for stream in port.streams if stream.frames]
    if streams:
        parts.append(_streams(streams))
    if port.histograms:
        parts.append(_histograms(list(port.histograms[0].values()), port.is_saturated))
    return Panel(Group(*parts), title=f"port {port.port}", title_align="left", border_style="cyan")


def _rates(port: PortMeasurement) -> RenderableType:
    counts = f"{port.counters['frames']:,} frames, {port.counters['octets']:,} octets"
    if not port.has_rates:
        return Text(counts)
    line_bps = port.rate.line_bits_per_s if port.rate else math.nan
    known = line_bps if math.isfinite(line_bps) else 0.0
    style = "yellow" if known > PLENTY * LINE_RATE_BPS else "green"
    shown = Table.grid(padding=(0, 2))
    rate = "no whole interval yet" if not math.isfinite(line_bps) else f"{line_bps / 1e6:,.3f} Mb/s on the line"
    frames_per_s = f"{port.rate.frames_per_s:,.0f} frames/s" if port.rate and math.isfinite(line_bps) else ""
    counts = f"{frames_per_s}, {counts}" if frames_per_s else counts
    bar = ProgressBar(total=LINE_RATE_BPS, completed=known, width=24, complete_style=style, finished_style=style)
    shown.add_row(bar, f"{100 * known / LINE_RATE_BPS:5.1f} %", rate)
    return Group(shown, counts)


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
        style = "yellow" if histogram.below or histogram.above else "dim"
        name, low, high = NAMES[histogram.kind], f"{edges[0]:,.0f}", f"{edges[-1]:,.0f} {histogram.unit}"
        parts.append(
            Text.assemble(
                f"{name:<8}{low:<{widest}} ", tables.bars(histogram.counts.tolist()), f" {high}", no_wrap=True
            )
        )
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
