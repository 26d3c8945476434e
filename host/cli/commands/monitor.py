# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shows the figures that a probe takes while frames come: rates, streams, histograms, the ring, and losses with their cause."""

from __future__ import annotations

import argparse
import math
import os
import re
import select
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial

from liteprobe.host.base.defaults import FIGURES_OF_LOOKS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.interrupt import is_ctrl_c
from liteprobe.host.base.output import STDOUT, Lines, Outputs
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_expect, add_json, add_probe, add_store, open_probe, take_old
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, whole, wholes

with lazily():
    import rich.console
    import rich.live
    import rich.panel
    import rich.progress_bar
    import rich.rule
    import rich.table
    import rich.text

    from liteprobe.cores import formats
    from liteprobe.host import probe as probes
    from liteprobe.host.analysis import columns
    from liteprobe.host.capture import protocols, ring
    from liteprobe.host.cli import tables, verdicts
    from liteprobe.host.clock import timebase
    from liteprobe.host.measure import monitor
    from liteprobe.host.measure import streams as received
    from liteprobe.host.serve import metrics as served
    from liteprobe.host.serve import poll

History = Mapping[int, Sequence[float]]  # Rates of each port that came before (bits/s on the line), the oldest first.
HELP = "show live what a probe measures: rates, streams, histograms, drops"
EXAMPLES = """
liteprobe monitor --probe 'sim://loopback?preset=monitor&play=east.pcap,west.pcap' --once
liteprobe monitor --probe 192.168.1.50 --port 0 --refresh 500ms --rates 10ms
liteprobe monitor --probe 192.168.1.50 --json looks.jsonl --metrics 9100
"""
LOCAL = "127.0.0.1"
KEEP = ("keep", 0, 0)
KINDS = ("length", "delay", "arrival")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    take_old(parser, {"--ports": "--port", "--interval": "--refresh"})
    add(parser, "--port N[,N...]", wholes, "which ports (default: all)")
    add(
        parser,
        "--streams ID",
        whole,
        "measure the streams from ID on, 7, 15 or 31 by the build; clears what was measured",
    )
    add(
        parser,
        "--bins KIND=ORIGIN:WIDTH|keep",
        _bins,
        "histogram bins, like delay=0:64 (width a power of two, in octets or ns), or 'keep': as they are (default: "
        "chosen from what comes; not with --once); each choice clears streams and histograms",
        [],
        action="append",
    )
    add(parser, "--refresh TIME", duration_ns, "between looks (default: 1s)", 1e9, dest="interval")
    add(parser, "--rates TIME", duration_ns, "count rates over this time of the probe, from 1ms")
    add(
        parser,
        "--from-start",
        bool,
        "streams begin after the meters were cleared: count what is missing from number 0 on as lost (else: from the "
        "first look at a stream on)",
    )
    add(
        parser,
        "--protocols ONE_OF",
        whole,
        "count what frames carry, of every frame (1), or every 2nd, 4th, 8th or 16th; takes the probe's capture and clears "
        "its filter (not with --once)",
    )
    add(parser, "--once", bool, "look once, and end")
    add_json(parser, "each look, a line a look,", "--json --jsonl FILE")
    add(
        parser,
        "--metrics [ADDRESS:]PORT",
        metrics_place,
        "serve the same numbers to Prometheus (address: 127.0.0.1; 0.0.0.0: to everybody)",
    )
    add_store(parser)
    add_probe(parser)
    add_expect(parser, FIGURES_OF_LOOKS)


def metrics_place(text: str) -> tuple[str, int]:
    """Return the address and the TCP port that metrics are served on."""
    address, _, port = text.rpartition(":")
    return address or LOCAL, whole(port)


def _bins(text: str) -> tuple[str, int, int]:
    """Return kind, origin and the logarithm of the width; KEEP where bins stay as they are."""
    if text == KEEP[0]:
        return KEEP
    match = re.fullmatch(r"(\w+)=(-?\d+):(\d+)", text, re.ASCII)
    if not match or match[1] not in KINDS or int(match[3]).bit_count() != 1:
        raise argparse.ArgumentTypeError(
            f"invalid histogram '{text}': give {', '.join(KINDS)} like delay=0:64 (origin:width), the width a power of two, "
            "or 'keep'"
        )
    return match[1], int(match[2]), int(match[3]).bit_length() - 1


HISTORY = 16  # Rates that are shown.
STEP_LOOKS = 20  # A wait goes in steps of so many of the link's: 2 ms of a simulated probe, 100 ms of a board.
REDRAW_S = 0.25
GOOD_CLOCK = ("locked",)
HELP_TEXT = """?  this help, or not     q, Ctrl-C  end     p  next page, where the terminal is too low for all
b  choose bins anew: clears streams and histograms     c  clear what was worst
rate       of the last interval that ended (--rates), with FCS, preamble and gap; bars: the rates before
counters   of all frames since the probe began; red: frames that were refused, damaged or lost
streams    probe frames by stream, since the meters were cleared (--streams, --bins, b); lost: since the first look
before     numbers missing at the first look at a stream: sent before the meters were cleared, or lost (--from-start)
histograms values by bin (--bins); what lies outside of the bins is counted below and above
worst      of all looks since it was cleared: rate, frames lost in one look, blocks that waited"""
STORE_S = 60.0  # Of this machine, of which a store keeps what came.
PROTOCOLS_SHOWN = 16  # Of a port, those of most frames.
FEW = 8  # Rates that are shown beside others.
PLENTY = 0.75  # Of a line or a ring: yellow from here on.


def run(args: argparse.Namespace) -> None:
    """Look until Ctrl-C, which is the end that is meant once something was shown, or until nothing takes looks any more."""
    if args.once and args.store:
        raise UsageError(
            "--store keeps what comes from one look to the next, and --once looks once: leave one of them out"
        )
    if args.once and args.protocols is not None:
        raise UsageError("--protocols counts what comes from now on, and --once looks once: leave one of them out")
    out = Outputs()
    look: poll.Look | None = None
    with ExitStack() as stack:
        probe = stack.enter_context(open_probe(args))
        sampler = None
        if args.protocols is not None:
            sampler = stack.enter_context(protocols.ProtocolSampler(probe, protocols.sampling_of(args.protocols)))
        looker = poll.Poller(probe, args.port, args.from_start, sampler)
        kinds = {name: kind for kind, name in monitor.NAMES.items()}
        bins = {kinds[kind]: monitor.BinSetting(origin, shift) for kind, origin, shift in args.bins if kind in kinds}
        looker.set(args.streams, bins, None if args.rates is None else round(args.rates))
        if not args.once and KEEP not in args.bins:
            looker.follow(kind for kind in kinds.values() if kind not in bins)
        screen = Screen(args, stack, out)
        serve = _served(args.metrics, stack) if args.metrics is not None else None
        is_seen = False
        stored: poll.Look | None = None  # The look up to which the store has what came.
        due_s = time.monotonic() + STORE_S
        try:
            while not (args.once and is_seen):
                look = looker.look()
                is_seen = True  # From its first word on: Ctrl-C may come while it is written.
                takes = screen.show(look)
                if serve:
                    serve(look)
                stored = stored or look
                if time.monotonic() >= due_s:
                    _keep(args, out, stored, look)
                    stored, due_s = look, due_s + STORE_S
                if not (takes or serve):
                    break
                if not args.once and screen.waits(probe, looker, args.interval / 1e9):
                    break
        except KeyboardInterrupt as end:
            if args.once or not is_seen or not is_ctrl_c(end):
                raise
    screen.leave()
    if look is not None and stored is not look and stored is not None:
        _keep(args, out, stored, look)
    verdict = verdicts.judged(args, look)  # Of the last look.
    if verdict is not None:
        verdicts.publish(args, verdict, out)
    out.end()
    if verdict is not None:
        verdict.require()


def _keep(args: argparse.Namespace, out: Outputs, before: poll.Look, look: poll.Look) -> None:
    """Keep what came between two looks, where a store was given."""
    if keeper := getattr(args, "keeper", None):
        keeper.keep(out, poll.SpanBetweenLooks(before, look), None, None, began_ns=None)


def _served(where: tuple[str, int], stack: ExitStack) -> Callable[[poll.Look], None]:
    """Return what gives looks to those who ask for metrics."""
    metrics = served.Metrics()
    server = served.serve(metrics, where[1], where[0])
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    say(f"metrics: http://{where[0]}:{server.server_port}/metrics", stream=sys.stderr)

    def take(look: poll.Look) -> None:
        metrics.look = look

    return take


class Screen:
    """Shows looks as was asked for: live in a terminal, else below one another, or as JSON.

    ``stack``: what is open for it until the end; ``out``: keeps what can't be written.
    """

    def __init__(self, args: argparse.Namespace, stack: ExitStack, out: Outputs) -> None:
        self._out, self._path = out, args.json
        self._lines = stack.enter_context(closing(Lines(args.json))) if args.json else None
        self._is_json_alone = bool(args.json) and args.json == STDOUT
        self._console = tables.console()
        is_live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live: rich.live.Live | None = None
        if is_live and not args.once and not self._is_json_alone:
            self._live = stack.enter_context(tables.live(screen=True))
            self._key = stack.enter_context(pressed())
        self._history: dict[int, deque[float]] = {}
        self._numbers: dict[int, int] = {}
        self._worst = poll.Worst()
        self._look: poll.Look | None = None
        self._has_help = False
        self._page = 0

    def show(self, look: poll.Look) -> bool:
        """Show a look; return whether anything took it."""
        self._look = look
        self._worst.take(look)
        for port in look.ports:
            rate = port.rate
            if rate and rate.is_whole and self._numbers.get(port.port) != rate.number:
                self._numbers[port.port] = rate.number
                self._history.setdefault(port.port, deque(maxlen=HISTORY)).append(rate.line_bits_per_s)
        lines, written = self._lines, False
        if lines:
            written = self._out.write(self._path, lambda: lines.write(poll.document(look)))
        if self._live:
            return self._out.write(STDOUT, lambda: self._draw(0.0)) or written
        if self._is_json_alone:
            return written
        return self._out.write(STDOUT, lambda: self._console.print(view(look, self._history))) or written

    def leave(self) -> None:
        """Leave the last look on the terminal, where a screen of its own had looks."""
        if self._live and self._look:
            last = view(self._look, self._history, self._worst)
            self._out.write(STDOUT, lambda: self._console.print(last))

    def waits(self, probe: probes.Probe, looker: poll.Poller, seconds: float) -> bool:
        """Let time of the probe pass, say how much is left, and obey keys; return whether the end was asked for."""
        if not self._live:
            looker.wait(seconds)
            return False
        step_s, left_s, drawn = STEP_LOOKS * probe.link.look_ns / 1e9, seconds, time.monotonic()
        while left_s > 0:
            looker.wait(min(step_s, left_s))
            left_s -= step_s
            key = self._key()
            if key == "q":
                return True
            self._obey(key, looker)
            if key or time.monotonic() - drawn > REDRAW_S:
                drawn = time.monotonic()
                self._draw(max(left_s, 0.0))
        return False

    def _obey(self, key: str, looker: poll.Poller) -> None:
        self._has_help ^= key == "?"
        self._page += key == "p"
        if key == "b":
            looker.follow()
        elif key == "c":
            self._worst.clear()

    def _draw(self, left_s: float) -> None:
        assert self._live and self._look
        shown = fitting(self._look, self._history, self._worst, left_s, self._has_help, self._page)
        self._live.update(shown, refresh=True)


@contextmanager
def pressed() -> Iterator[Callable[[], str]]:
    """Give what returns the key that was pressed, or nothing; keys aren't echoed meanwhile. Ctrl-C stays a signal."""
    if not sys.stdin.isatty():
        yield lambda: ""
        return
    import termios  # Not on Windows.
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield lambda: os.read(terminal, 1).decode(errors="ignore") if select.select([terminal], [], [], 0)[0] else ""
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def fitting(
    look: poll.Look,
    history: History,
    worst: poll.Worst,
    left_s: float = 0.0,
    has_help: bool = False,
    page: int = 0,
) -> tables.Paged:
    """Return a look with its keys: all of it where it fits into the terminal, else a page of it.

    ``left_s``: until the next look, of the probe's time; 0: not known.
    ``page``: which, counted on and on.
    """
    aid = [rich.text.Text(HELP_TEXT)] * has_help
    rest: list[tuple[rich.console.RenderableType | None, Sequence[rich.console.RenderableType]]] = [
        (None, [*aid, short_view(look, history, worst)])
    ]
    for port, events in zip(look.ports, look.events, strict=True):
        parts = _port_parts(port, events, history.get(port.port, ()), worst)
        parts += _protocols(look.protocols, port.port)
        url = [rich.text.Text(look.url)] * (len(rest) == 1)
        rest.append((rich.rule.Rule(f"port {port.port}", align="left", style="cyan"), [*url, *parts]))
    rest += [(None, [_ring(look.channels, worst)])] * bool(look.channels)
    whole = rich.console.Group(*aid, view(look, history, worst))
    return tables.Paged(partial(_head, look, left_s), whole, None, rest, page)


def _head(look: poll.Look, left_s: float, page: str) -> rich.console.RenderableType:
    """Return the line above: a low terminal cuts the end off."""
    pages = page and f"p: {page}"
    left = f"{left_s * 1e3:,.0f} ms" if left_s else ""
    said = "choosing bins" if look.is_choosing else left and f"next look in {left}"
    keys = [pages, "?: help", "b: bins", "c: clear worst", "q: end"]
    of_probe = " of the probe's time" * said.startswith("next")
    lines = ["   ".join(filter(None, [said + more, *keys])) for more in (of_probe, "")]
    short = "  ".join(filter(None, [pages, "?", "b", "c", "q", left]))
    wide, middle, compact = (rich.text.Text(line, "dim") for line in (*lines, short))
    return tables.Either(wide, middle, compact)


# All of it ----------------------------------------------------------------------------------------


def view(
    look: poll.Look, history: History | None = None, worst: poll.Worst | None = None
) -> rich.console.RenderableType:
    """Return a look as a screen."""
    parts: list[rich.console.RenderableType] = [
        rich.text.Text.assemble(("liteprobe ", "bold"), look.url, "   ", _clock(look))
    ]
    for port, events in zip(look.ports, look.events, strict=True):
        shown = _port_parts(port, events, (history or {}).get(port.port, ()), worst)
        parts.append(_framed(port.port, [*shown, *_protocols(look.protocols, port.port)]))
    if look.channels:
        parts.append(_ring(look.channels, worst))
    return rich.console.Group(*parts)


def _clock(look: poll.Look) -> rich.text.Text:
    colour = "green" if look.clock_state in GOOD_CLOCK else "yellow"
    return rich.text.Text.assemble(
        "clock ", (look.clock_state, colour), f", {timebase.bound_words(look.uncertainty_ns)}"
    )


def _framed(number: int, parts: Sequence[rich.console.RenderableType]) -> rich.console.RenderableType:
    return rich.panel.Panel(rich.console.Group(*parts), title=f"port {number}", title_align="left", border_style="cyan")


def _port_parts(
    port: monitor.PortMeasurement,
    events: dict[str, int],
    history: Sequence[float],
    worst: poll.Worst | None,
) -> list[rich.console.RenderableType]:
    """Return what there is to show of a port."""
    frames, octets = poll.totals(port, events)
    parts: list[rich.console.RenderableType] = [_rates(port, frames, octets)]
    if len(history) > 1:
        recent = [round(rate) for rate in history]
        parts.append(rich.text.Text.assemble(tables.bars(recent), f" up to {max(recent) / 1e6:,.3f} Mb/s"))
    if worst:
        parts.append(_worst(port.port, worst))
    lost = [(name.replace("_", " "), count) for name, count in poll.losses(events).items()]
    if lost:
        words = [(f"{count:,} {name}{', ' * (name != lost[-1][0])}", "red" if count else "dim") for name, count in lost]
        parts.append(rich.text.Text.assemble(*words))
    if port.counters["frames"] != frames:
        counted = f"streams and histograms: of {port.counters['frames']:,} frames, since they were cleared"
        parts.append(rich.text.Text(counted, "dim"))
    streams = [stream for stream in port.streams if stream.frames]
    parts += [_streams(streams)] * bool(streams)
    parts += _histograms(list(port.histograms[0].values()), port.is_saturated) if port.histograms else []
    return parts


def _worst(number: int, worst: poll.Worst, name: str = "") -> rich.text.Text:
    """Return what was worst at a port."""
    rate_bps, lost = worst.rate_bps.get(number), worst.lost.get(number, 0)
    rate = "" if rate_bps is None else f"{rate_bps / 1e6:,.3f} Mb/s, "
    return rich.text.Text.assemble(
        (f"{name or f'worst since {worst.since}: '}{rate}", "dim"),
        (f"{lost:,} lost in a look", "red" if lost else "dim"),
    )


def _rates(port: monitor.PortMeasurement, frames: int, octets: int) -> rich.console.RenderableType:
    counts = f"{frames:,} frames, {octets:,} octets"
    if not port.has_rates:
        return rich.text.Text(counts)
    line_bps = port.rate.line_bits_per_s if port.rate else math.nan
    known = line_bps if math.isfinite(line_bps) else 0.0
    style = "yellow" if known > PLENTY * formats.LINE_RATE_BPS else "green"
    shown = rich.table.Table.grid(padding=(0, 2))
    rate = (
        "no rate yet: no whole interval has ended (--rates 1ms)"
        if not math.isfinite(line_bps)
        else f"{line_bps / 1e6:,.3f} Mb/s on the line"
    )
    frames_per_s = f"{port.rate.frames_per_s:,.0f} frames/s" if port.rate and math.isfinite(line_bps) else ""
    counts = f"{frames_per_s}, {counts}" if frames_per_s else counts
    bar = _bar(formats.LINE_RATE_BPS, known, 24, style)
    shown.add_row(bar, f"{100 * known / formats.LINE_RATE_BPS:5.1f} %", rate)
    compact = rich.console.Group(
        rich.text.Text(f"{100 * known / formats.LINE_RATE_BPS:.1f} % of the line"), rich.text.Text(rate)
    )
    return rich.console.Group(tables.Either(shown, compact), rich.text.Text(counts))


def _bar(total: float, completed: float, width: int, style: str) -> rich.console.RenderableType:
    return rich.progress_bar.ProgressBar(total, completed, width, complete_style=style, finished_style=style)


def _streams(streams: list[received.ReceivedStream]) -> rich.console.RenderableType:
    name = poll.RECEIVED.of("stream_id")
    with_errors = any(stream.bit_errors is not None for stream in streams)
    has_before = any(stream.missing_before for stream in streams if stream.slot)
    counts = poll.RECEIVED.of(
        poll.COUNTS + " missing_before" * has_before + f" {poll.BIT_ERRORS}" * with_errors,
    )
    delays = poll.delay_columns(streams)
    return tables.figures([*name, *counts, *delays], streams, text=0)


def _protocols(table: protocols.ProtocolTable | None, port: int) -> list[rich.console.RenderableType]:
    """Return what frames of a port carry, where headers are sampled."""
    if table is None:
        return []
    rows = [row for row in table.rows if row.port == port]
    left = f"; {len(rows) - PROTOCOLS_SHOWN} more in --json" * (len(rows) > PROTOCOLS_SHOWN)
    names = protocols.PROTOCOLS.of("protocol frames octets share")
    head = rich.text.Text(f"what frames carry, {table.said(port)}{left}", "dim")
    return [head, *([tables.figures(names, rows[:PROTOCOLS_SHOWN])] if rows else [])]


def _modulo(modulo_ns: int | None) -> str:
    """Return the mark of delays by short stamps."""
    return "" if modulo_ns is None else f" modulo {modulo_ns:,} ns"


def _histograms(found: list[monitor.Histogram], is_saturated: bool) -> list[rich.console.RenderableType]:
    parts: list[rich.console.RenderableType] = []
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
        name, low = monitor.NAMES[histogram.kind], f"{edges[0]:,.0f}"
        high = f"{edges[-1]:,.0f} {histogram.unit}{_modulo(histogram.modulo_ns)}"
        counts = histogram.counts.tolist()
        wide = rich.text.Text.assemble(f"{name:<8}{low:<{widest}} ", tables.bars(counts), f" {high}")
        pairs = [sum(counts[at : at + 2]) for at in range(0, len(counts), 2)]
        compact = rich.console.Group(rich.text.Text(f"{name}, {low} to {high}"), tables.bars(pairs))
        below = rich.text.Text.assemble(" " * 8, (where, "dim"), (outside, style))
        parts.append(rich.console.Group(tables.Either(wide, compact), below))
    if is_saturated:
        parts.append("[red]a bin was full[/red]")
    return parts


def _ring(channels: dict[int, ring.ChannelState], worst: poll.Worst | None = None) -> rich.console.RenderableType:
    shown, lines = rich.table.Table.grid(padding=(0, 2)), []
    for channel, state in channels.items():
        style = (
            "red" if state.waiting >= state.taken - 1 else "yellow" if state.waiting > PLENTY * state.taken else "green"
        )
        bar = _bar(state.taken, state.waiting, 10, style)
        dropped = rich.text.Text(f"{state.dropped:,} frames dropped", "red" if state.dropped else "dim")
        blocks = f"{state.waiting}/{state.taken} blocks"
        if worst and channel in worst.waiting:
            blocks += f", {worst.waiting[channel]} at most"
        words = f"channel {channel}", f"{blocks}", f"{state.written:,} written"
        shown.add_row(words[0], bar, *words[1:], dropped)
        lines.append(rich.text.Text.assemble(", ".join(words), ", ", dropped))
    return rich.panel.Panel(
        tables.Either(shown, rich.console.Group(*lines)), title="capture", title_align="left", border_style="cyan"
    )


# In short -----------------------------------------------------------------------------------------


def short_view(look: poll.Look, history: History, worst: poll.Worst) -> rich.console.RenderableType:
    """Return a look in a few lines a port."""
    parts: list[rich.console.RenderableType] = [_clock(look)]
    for port, events in zip(look.ports, look.events, strict=True):
        parts += _short_port(port, events, history.get(port.port, ()), worst)
    for channel, state in look.channels.items():
        style = "red" if state.dropped else ""
        words = f"channel {channel}: {state.waiting}/{state.taken} blocks, {state.dropped:,} dropped"
        parts.append(rich.text.Text(words, style))
    return rich.console.Group(*parts)


def _short_port(
    port: monitor.PortMeasurement, events: dict[str, int], history: Sequence[float], worst: poll.Worst
) -> Iterator[rich.console.RenderableType]:
    bps = port.rate.line_bits_per_s if port.rate else math.nan
    rate = f"{bps / 1e6:,.3f} Mb/s, {100 * bps / formats.LINE_RATE_BPS:.1f} %" if math.isfinite(bps) else "no rate yet"
    bars = [round(one) for one in history]
    wide, compact = (
        rich.text.Text.assemble((f"port {port.port} ", "bold cyan"), f"{rate} ", tables.bars(shown))
        for shown in (bars, bars[-FEW:])
    )
    yield tables.Either(wide, compact)
    frames, octets = poll.totals(port, events)
    yield tables.Either(rich.text.Text(f"{frames:,} frames, {octets:,} octets"), rich.text.Text(f"{frames:,} frames"))
    lost = {name.replace("_", " "): count for name, count in poll.losses(events).items() if count}
    words = ", ".join(f"{count:,} {name}" for name, count in lost.items())
    yield rich.text.Text(words or "0 refused, damaged or lost", "red" if lost else "dim")
    yield tables.Either(_worst(port.port, worst), _worst(port.port, worst, "worst "))
    if streams := [stream for stream in port.streams if stream.frames]:
        losses = [stream.lost for stream in streams if stream.stream_id is not None]
        missing = None if None in losses else sum(count or 0 for count in losses)
        least, most = min(one.delay_min_ns for one in streams), max(one.delay_max_ns for one in streams)
        style = "red" if missing else "dim"
        yield rich.text.Text(
            f"{len(streams)} streams, {columns.shown(missing)} lost, delay {columns.shown(least)}..{columns.shown(most)} ns"
            f"{_modulo(received.modulo_of(streams))}",
            style,
        )
    for found in port.histograms[0].values() if port.histograms else ():
        if found.total:
            yield _short_histogram(found)


def _short_histogram(found: monitor.Histogram) -> rich.console.RenderableType:
    counts, edges = found.counts.tolist(), found.edges
    outside = 100 * (found.below + found.above) / found.total
    modulo = _modulo(found.modulo_ns)
    low, high = f"{monitor.NAMES[found.kind]:<8}{edges[0]:,.0f} ", f" {edges[-1]:,.0f} {found.unit}{modulo}"
    share = (f", {outside:.1f} % out" if outside else ", 0 out", "yellow" if outside else "dim")
    pairs = tables.bars([sum(counts[at : at + 2]) for at in range(0, len(counts), 2)])
    span = f"{edges[0]:,.0f}..{edges[-1]:,.0f}"
    return tables.Either(
        rich.text.Text.assemble(low, tables.bars(counts), high, share),
        rich.console.Group(rich.text.Text.assemble(f"{monitor.NAMES[found.kind]} {span}{modulo}", share), pairs),
    )
