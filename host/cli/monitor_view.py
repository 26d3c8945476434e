# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A look of a monitor as a screen: all of it, or where the terminal is too low, pages, of which the first is in short."""

import math
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from liteprobe.cores.formats import LINE_RATE_BPS
from liteprobe.host.capture.ring import ChannelState
from liteprobe.host.cli import tables
from liteprobe.host.clock.timebase import bound_words
from liteprobe.host.measure.monitor import NAMES, Histogram, PortMeasurement
from liteprobe.host.measure.streams import STREAM_IDS, ReceivedStream
from liteprobe.host.serve.poll import Look, losses, totals
from liteprobe.host.serve.worst import Worst

History = Mapping[int, Sequence[float]]  # Rates of each port that came before (bits/s on the line), the oldest first.
GOOD_CLOCK = ("locked",)
HELP_TEXT = """?  this help, or not     q, Ctrl-C  end     p  next page, where the terminal is too low for all
b  choose bins anew: clears streams and histograms     c  clear what was worst
rate       of the last interval that ended (--rates), with FCS, preamble and gap; bars: the rates before
counters   of all frames since the probe began; red: frames that were refused, damaged or lost
streams    probe frames by stream, since the meters were cleared (--streams, --bins, b)
histograms values by bin (--bins); what lies outside of the bins is counted below and above
worst      of all looks since it was cleared: rate, frames lost in one look, blocks that waited"""
FEW = 8  # Rates that are shown beside others.
FRAME_COLUMNS, FRAME_ROWS = 4, 2  # Of a panel.
PLENTY = 0.75  # Of a line or a ring: yellow from here on.


class Fitting:
    """A look with its keys: all of it where it fits into the terminal, else a page of it.

    Parameters
    ----------
    look : Look
    history : dict of int to sequence of float
    worst : Worst
    left_s : float
        Until the next look, of the probe's time; 0: not known.
    has_help : bool
    page : int
        Which, counted on and on.
    """

    def __init__(
        self, look: Look, history: History, worst: Worst, left_s: float = 0.0, has_help: bool = False, page: int = 0
    ) -> None:
        self.look, self.history, self.worst = look, history, worst
        self.left_s, self.has_help, self.page = left_s, has_help, page

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what is shown."""
        whole = Group(*self._head(""), view(self.look, self.history, self.worst))
        if len(console.render_lines(whole, options.update(height=None))) <= options.max_height:
            yield whole
            return
        pages = self._pages(console, options)
        number = self.page % len(pages)
        yield from self._head(f"p: page {number + 1}/{len(pages)}")
        yield pages[number]

    def _head(self, pages: str) -> list[RenderableType]:
        """Return the line above: a low terminal cuts the end off."""
        left = f"{self.left_s * 1e3:,.0f} ms" if self.left_s else ""
        said = "choosing bins" if self.look.is_choosing else left and f"next look in {left}"
        keys = [pages, "?: help", "b: bins", "c: clear worst", "q: end"]
        of_probe = " of the probe's time" * said.startswith("next")
        lines = ["   ".join(filter(None, [said + more, *keys])) for more in (of_probe, "")]
        short = "  ".join(filter(None, [pages, "?", "b", "c", "q", left]))
        wide, middle, narrow = (Text(line, "dim", no_wrap=True) for line in (*lines, short))
        parts: list[RenderableType] = [tables.Either(wide, tables.Either(middle, narrow))]
        return [*parts, Text(HELP_TEXT)] if self.has_help else parts

    def _pages(self, console: Console, options: ConsoleOptions) -> list[RenderableType]:
        """Return all in short, then all of each port, on as many pages as it takes."""
        inner = options.update(height=None, max_width=options.max_width - FRAME_COLUMNS)
        most = options.max_height - FRAME_ROWS - len(console.render_lines(Group(*self._head("p: page 1/9")), inner))
        found: list[RenderableType] = [short_view(self.look, self.history, self.worst)]
        for port, events in zip(self.look.ports, self.look.events, strict=True):
            page: list[RenderableType] = []
            taken = 0
            at_once = max(1, min(most // 2 - 4, most // 3))  # Streams: a row in each of two tables, or three lines.
            for part in _port_parts(port, events, self.history.get(port.port, ()), self.worst, at_once):
                rows = len(console.render_lines(part, inner))
                if page and taken + rows > most:
                    found.append(_framed(port.port, page))
                    page, taken = [], 0
                page.append(part)
                taken += rows
            found.append(_framed(port.port, page))
        return found


# All of it ----------------------------------------------------------------------------------------


def view(look: Look, history: History | None = None, worst: Worst | None = None) -> RenderableType:
    """Return a look as a screen."""
    parts: list[RenderableType] = [Text.assemble(("liteprobe ", "bold"), look.url, "   ", _clock(look))]
    parts += [
        _port(port, events, (history or {}).get(port.port, ()), worst)
        for port, events in zip(look.ports, look.events, strict=True)
    ]
    if look.channels:
        parts.append(_ring(look.channels, worst))
    return Group(*parts)


def _clock(look: Look) -> Text:
    colour = "green" if look.clock_state in GOOD_CLOCK else "yellow"
    return Text.assemble("clock ", (look.clock_state, colour), f", {bound_words(look.uncertainty_ns)}")


def _port(
    port: PortMeasurement, events: dict[str, int], history: Sequence[float], worst: Worst | None
) -> RenderableType:
    return _framed(port.port, _port_parts(port, events, history, worst))


def _framed(number: int, parts: Sequence[RenderableType]) -> RenderableType:
    return Panel(Group(*parts), title=f"port {number}", title_align="left", border_style="cyan")


def _port_parts(
    port: PortMeasurement,
    events: dict[str, int],
    history: Sequence[float],
    worst: Worst | None,
    streams_at_once: int = STREAM_IDS,
) -> list[RenderableType]:
    """Return what there is to show of a port; so many streams are one part."""
    frames, octets = totals(port, events)
    parts: list[RenderableType] = [_rates(port, frames, octets)]
    if len(history) > 1:
        recent = [round(rate) for rate in history]
        parts.append(Text.assemble(tables.bars(recent), f" up to {max(recent) / 1e6:,.3f} Mb/s"))
    if worst:
        parts.append(_worst(port.port, worst))
    lost = [(name.replace("_", " "), count) for name, count in losses(events).items()]
    if lost:
        words = [(f"{count:,} {name}{', ' * (name != lost[-1][0])}", "red" if count else "dim") for name, count in lost]
        parts.append(Text.assemble(*words))
    if port.counters["frames"] != frames:
        counted = f"streams and histograms: of {port.counters['frames']:,} frames, since they were cleared"
        parts.append(Text(counted, "dim"))
    streams = [stream for stream in port.streams if stream.frames]
    parts += [_streams(streams[at : at + streams_at_once]) for at in range(0, len(streams), streams_at_once)]
    parts += _histograms(list(port.histograms[0].values()), port.is_saturated) if port.histograms else []
    return parts


def _worst(number: int, worst: Worst, name: str = "") -> Text:
    """Return what was worst at a port."""
    rate_bps, lost = worst.rate_bps.get(number), worst.lost.get(number, 0)
    rate = "" if rate_bps is None else f"{rate_bps / 1e6:,.3f} Mb/s, "
    return Text.assemble(
        (f"{name or f'worst since {worst.since}: '}{rate}", "dim"),
        (f"{lost:,} lost in a look", "red" if lost else "dim"),
    )


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


def _streams(streams: list[ReceivedStream]) -> RenderableType:
    with_errors = any(stream.bit_errors is not None for stream in streams)
    counts = ["frames", "lost", "%", "dup", "reord", "late"] + ["bit errors", "damaged"] * with_errors
    delays = ["delay min", "mean", "max", "std ns"]
    wide = tables.table("stream", *counts, *delays, text=0)
    lines = []
    narrow = [tables.table("stream", *counts, text=0), tables.table("stream", *delays, text=0)]
    for name, found in _rows(streams, with_errors):
        wide.add_row(name, *found)
        narrow[0].add_row(name, *found[: len(counts)])
        narrow[1].add_row(name, *found[len(counts) :])
        words = [f"{value} {head}" for head, value in zip(counts, found, strict=False) if value != "-"]
        least, mean, most, std = found[len(counts) :]
        lines.append(f"[bold]{name}:[/bold] {', '.join(words)}; delay {least}..{most} ns, mean {mean}, std {std}")
    return tables.Either(wide, tables.Either(Group(*narrow), Group(*lines)))


def _rows(streams: list[ReceivedStream], with_errors: bool) -> Iterator[tuple[str, list[str]]]:
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


def _histograms(found: list[Histogram], is_saturated: bool) -> list[RenderableType]:
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
        narrow = Group(Text(f"{name}, {low} to {high}"), tables.bars(pairs))
        below = Text.assemble(" " * 8, (where, "dim"), (outside, style))
        parts.append(Group(tables.Either(wide, narrow), below))
    if is_saturated:
        parts.append("[red]a bin was full[/red]")
    return parts


def _ring(channels: dict[int, ChannelState], worst: Worst | None = None) -> RenderableType:
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
        if worst and channel in worst.waiting:
            blocks += f", {worst.waiting[channel]} at most"
        shown.add_row(f"channel {channel}", bar, blocks, f"{state.written:,} written", dropped)
    return Panel(shown, title="capture", title_align="left", border_style="cyan")


# In short -----------------------------------------------------------------------------------------


def short_view(look: Look, history: History, worst: Worst) -> RenderableType:
    """Return a look in a few lines a port."""
    parts: list[RenderableType] = [_clock(look)]
    for port, events in zip(look.ports, look.events, strict=True):
        parts += _short_port(port, events, history.get(port.port, ()), worst)
    for channel, state in look.channels.items():
        style = "red" if state.dropped else ""
        words = f"channel {channel}: {state.waiting}/{state.taken} blocks, {state.dropped:,} dropped"
        parts.append(Text(words, style, no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


def _short_port(
    port: PortMeasurement, events: dict[str, int], history: Sequence[float], worst: Worst
) -> Iterator[RenderableType]:
    bps = port.rate.line_bits_per_s if port.rate else math.nan
    rate = f"{bps / 1e6:,.3f} Mb/s, {100 * bps / LINE_RATE_BPS:.1f} %" if math.isfinite(bps) else "no rate yet"
    bars = [round(one) for one in history]
    wide, narrow = (
        Text.assemble((f"port {port.port} ", "bold cyan"), f"{rate} ", tables.bars(shown))
        for shown in (bars, bars[-FEW:])
    )
    yield tables.Either(wide, narrow)
    frames, octets = totals(port, events)
    yield tables.Either(Text(f"{frames:,} frames, {octets:,} octets"), Text(f"{frames:,} frames"))
    lost = {name.replace("_", " "): count for name, count in losses(events).items() if count}
    words = ", ".join(f"{count:,} {name}" for name, count in lost.items())
    yield Text(words or "0 refused, damaged or lost", "red" if lost else "dim")
    yield tables.Either(_worst(port.port, worst), _worst(port.port, worst, "worst "))
    if streams := [stream for stream in port.streams if stream.frames]:
        missing = sum(stream.lost for stream in streams if stream.stream_id is not None)
        least, most = min(one.delay_min_ns for one in streams), max(one.delay_max_ns for one in streams)
        style = "red" if missing else "dim"
        yield Text(f"{len(streams)} streams, {missing:,} lost, delay {_ns(least)}..{_ns(most)} ns", style)
    for found in port.histograms[0].values() if port.histograms else ():
        if found.total:
            yield _short_histogram(found)


def _short_histogram(found: Histogram) -> RenderableType:
    counts, edges = found.counts.tolist(), found.edges
    outside = 100 * (found.below + found.above) / found.total
    low, high = f"{NAMES[found.kind]:<8}{edges[0]:,.0f} ", f" {edges[-1]:,.0f} {found.unit}"
    share = (f", {outside:.1f} % out" if outside else ", 0 out", "yellow" if outside else "dim")
    pairs = tables.bars([sum(counts[at : at + 2]) for at in range(0, len(counts), 2)])
    span = f"{edges[0]:,.0f}..{edges[-1]:,.0f}"
    return tables.Either(
        Text.assemble(low, tables.bars(counts), high, share),
        Group(Text.assemble(f"{NAMES[found.kind]} {span}", share), pairs),
    )
