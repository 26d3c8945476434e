# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends streams of traffic, shows them while they run, and what came of each."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import partial
from pathlib import Path

from liteprobe.host.base.defaults import FIGURES_OF_STREAMS, FILLS
from liteprobe.host.base.errors import LeaseLostError, ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.base.text import read_text, say
from liteprobe.host.cli.arguments import (
    add,
    add_expect,
    add_lengths,
    add_pace,
    add_probe,
    add_results,
    add_waiting_time,
    every_s,
    is_plain,
    of_options,
    open_probe,
)
from liteprobe.host.cli.commands.train import HEADER_OPTIONS, add_headers, add_hosts, headers_of
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import NumberRange, duration_ns, pps, share, spans, time_ns, whole

with lazily():
    import rich.console
    import rich.text

    from liteprobe.cores import formats
    from liteprobe.host.analysis import columns
    from liteprobe.host.base import line as lines
    from liteprobe.host.cli import results, tables
    from liteprobe.host.clock import timebase
    from liteprobe.host.measure import delay_bins
    from liteprobe.host.report import files, traffic_page
    from liteprobe.host.run import figures
    from liteprobe.host.run import streams as runs
    from liteprobe.host.traffic import document, intervals, layout, lengths, load, stream

HELP = "send streams of traffic, many at once, and measure each"
EXAMPLES = """
liteprobe send --length imix --rate 300M --duration 10ms
liteprobe send --frame-size 64-1518 --rate 10kpps --exponential --count 50
liteprobe send streams.yaml --probe etherbone://192.168.1.50 --duration 10s --json send.json
"""
DEFAULT_PROBE = "sim://loopback?preset=tester"  # The usual one sends trains alone.
#: Options that describe one stream, in the place of a file.
OF_ONE = "length interval rate pps share count exponential burst fill stream_id seed transmit from via"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "streams FILE.yaml", Path, "streams, as docs/traffic.md shows; or one by options", nargs="?")
    add_probe(parser, DEFAULT_PROBE)
    add_stream(parser)
    add_headers(parser, "up to four times")
    group = parser.add_argument_group("run")
    add(group, "--receive PORT", whole, "port that measures (default: where the wire leads)")
    add(group, "--duration TIME", duration_ns, "stop after this time, like 10s (default: when all is sent)")
    add(group, "--latency-range LEAST,MOST", _range, "of histograms, like 0,100us (default: what comes)")
    add_waiting_time(group, "frame")
    add(group, "--detach", bool, "let them go on without this host (liteprobe stop ends them)")
    add(group, "--check", bool, "only check them, and show the share of the line of each")
    add(group, "--schema", bool, "print the JSON schema of such a file, and end")
    add_results(parser, "write a report with plots", "stream")
    add_expect(parser, FIGURES_OF_STREAMS)


def add_stream(parser: argparse.ArgumentParser, fill: str = "zero") -> None:
    """Add what describes one stream; ``fill``: what its payload is by default."""
    group = parser.add_argument_group("one stream, without a file")
    what = "octets without FCS; 64-1514: at random, 64-1514:50: in steps; 64,1514: in turn; imix (default: 1514)"
    add_lengths(group, "L[,L...]", (_lengths, _frame_sizes), what)
    pace = group.add_mutually_exclusive_group()
    add_pace(pace)
    add(pace, "--pps N", pps, "frames a second, like 20k")
    add(pace, "--share PERCENT", share, "of the line, up to 100%%")
    add(group, "--exponential", bool, "intervals of a Poisson process, of that mean")
    add(group, "--burst N", whole, "frames come in bursts of N, at that mean rate")
    add(group, "--count N", whole, "frames (default: without an end)")
    add(group, "--fill", str, f"rest of the payload (default: {fill})", choices=list(FILLS))
    add(group, "--stream-id ID", whole, "number that the frames carry (default: 1)")
    add(group, "--seed N", whole, "of what is random (default: 1)")
    add(group, "--transmit PORT", whole, "port that sends (default: 0)")
    add_hosts(group)


def _lengths(text: str) -> list[NumberRange | str]:
    """Return lengths and ranges of them, or a word."""
    try:
        return ["imix"] if text.lower() == "imix" else [*spans(text)]
    except argparse.ArgumentTypeError:
        form = "write it like 512, 64-1514 (at random) or imix"
        raise argparse.ArgumentTypeError(f"'{text}' is not a length: {form}") from None


def _frame_sizes(text: str) -> list[NumberRange | str]:
    """Return the same of sizes with FCS."""
    return [one if isinstance(one, str) else one.less(formats.FCS) for one in _lengths(text)]


def _range(text: str) -> tuple[int, int]:
    """Return the least and the greatest delay (ns)."""
    parts = text.split(",")
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f"'{text}' is not a range: write it like 0,100us")
    least, most = (round(time_ns(part)) for part in parts)
    if least >= most:
        raise argparse.ArgumentTypeError(f"'{text}' holds nothing: give the least delay first")
    return least, most


REFRESH_S = 0.25


def run(args: argparse.Namespace) -> None:
    """Send, show, print and write."""
    if args.schema:
        print(json.dumps(document.schema(), indent=2))
        return
    streams = streams_of(args)
    _check(args)
    seconds = None if args.duration is None else args.duration / 1e9
    if args.check:
        if args.latency_range:
            delay_bins.fitting(*args.latency_range)
        said = layout.check_all(streams, seconds, args.detach, args.receive, args.probe)
        tables.console().print(asked(streams, args.duration), said)
        return
    with open_probe(args) as probe:
        traffic = probe.send(streams, args.receive, seconds, args.detach, args.latency_range)
        if args.detach:
            _say_detached(streams)
            return
        facts = probe.info()
        with _published(args, traffic, facts):
            with tables.watched(
                not is_plain(args), partial(_screen, args), REFRESH_S, line_of=(line, every_s(args))
            ) as show:
                traffic.follow(results.looks_of(args).beside(show, figures.TrafficLook.to_dict))
            result = traffic.result()
        finish(args, result, facts)


# What is sent -------------------------------------------------------------------------------------


def streams_of(args: argparse.Namespace) -> list[stream.Stream]:
    """Return the streams of the file, or the one that options describe, checked.

    Raises UsageError when no probe can send them.
    """
    given = [f"--{name.replace('_', '-')}" for name in OF_ONE.split() if getattr(args, name) not in (None, False)]
    given += [option for option, field, *_, preset in HEADER_OPTIONS if getattr(args, field) != preset]
    given += ["--vlan"] * bool(args.vlan)
    line = lines.line_of_url(args.probe) or lines.GIGABIT
    if args.streams is None:
        made = _stream(args, line)
        load.check_port([made])
        return [made]
    if given:
        raise UsageError(f"{args.streams} says what is sent, so {given[0]} can't: leave one of them out")
    return document.read_document(read_text(args.streams, "a file of streams"), str(args.streams), line)


def _stream(args: argparse.Namespace, line: lines.Line) -> stream.Stream:
    with of_options("burst"):
        burst = None if args.burst is None else intervals.Burst(args.burst)
    with of_options():
        interval = intervals.Interval(
            interval_ns=args.interval,
            **{"pps": args.pps, "share": args.share} | (args.rate or {}),
            exponential=args.exponential,
            burst=burst,
        )
    return stream.Stream(
        name="stream",
        stream_id=1 if args.stream_id is None else args.stream_id,
        length=_length_of(args.length),
        interval=interval,
        count=args.count,
        port=args.transmit or 0,
        headers=headers_of(args),
        source=getattr(args, "from"),
        via=args.via,
        fill=args.fill or "zero",
        seed=1 if args.seed is None else args.seed,
        line=line,
    )


def _length_of(given: list[NumberRange | str] | None) -> lengths.Length:
    """Return the lengths of a stream: of one range at random or in steps, of several in turn."""
    if given is None:
        return lengths.Fixed(1514)
    found = [one for one in given if isinstance(one, NumberRange)]
    if len(found) < len(given):
        if len(given) > 1:
            raise UsageError("--length imix has its own lengths: give it alone")
        return lengths.IMIX
    least, most, step = found[0]
    if len(found) > 1:
        return lengths.Lengths(tuple(number for one in found for number in one.numbers[: formats.LIST_ENTRIES_MAX + 1]))
    if least == most:
        return lengths.Fixed(least)
    return lengths.Stepped(least, most, step) if step else lengths.RandomLength(least, most)


def _check(args: argparse.Namespace) -> None:
    if args.check and (args.json or args.jsonl or args.csv or args.report):
        raise UsageError("--check measures nothing that --json or --report could have: leave it out, or these")
    wanted = [
        name
        for name in ("json", "jsonl", "csv", "store", "report", "receive", "latency_range")
        if getattr(args, name) is not None
    ]
    if args.detach and wanted:
        raise UsageError(
            f"detached streams have no result, so --{wanted[0].replace('_', '-')} is not available with --detach: "
            "leave one of them out"
        )


def _say_detached(streams: list[stream.Stream]) -> None:
    for port in sorted({stream.port for stream in streams}):
        own = [stream for stream in streams if stream.port == port]
        endless = sum(stream.count is None for stream in own)
        what, them = ("1 stream", "it") if len(own) == 1 else (f"{len(own)} streams", "them")
        end = (
            "until all frames are sent"
            if not endless
            else "without an end"
            if len(own) == endless
            else f"{endless} of them without an end"
        )
        say(f"port {port} sends {what}, {end}; liteprobe stop --port {port} shows and ends {them}")


# What is shown ------------------------------------------------------------------------------------


@contextmanager
def _published(
    args: argparse.Namespace, traffic: runs.Traffic, facts: dict[str, int | float | str | bool]
) -> Iterator[None]:
    """Show and write what was measured when the body fails after streams were sent."""
    try:
        yield
    except Interrupted as end:
        for result in end.results:
            end.args = (f"{end}; what was measured until then is incomplete",)
            finish(args, result, facts, end)
        raise
    except LeaseLostError:
        raise  # Another host's figures, perhaps.
    except ProbeError as end:
        with suppress(ProbeError):
            traffic.stop()
            finish(args, traffic.result(), facts, end)
        raise


def finish(
    args: argparse.Namespace,
    result: figures.TrafficResult,
    facts: dict[str, int | float | str | bool],
    cause: BaseException | None = None,
) -> None:
    """Print and write a result; ``cause``: what ended it too soon."""
    content = {
        **files.of_run(files.TRAFFIC_FORMAT, args.probe, facts, results.typed()),
        "document": document.write_document([row.stream for row in result.rows]),
        **result.to_dict(),
    }

    def write_page(path: Path, plain: dict[str, object]) -> None:
        traffic_page.write(path, result, plain)

    results.publish(args, final(result), content, write_page, cause, result)


def _screen(args: argparse.Namespace, look: figures.TrafficLook) -> rich.console.RenderableType:
    return live(look, args.probe, int(time.monotonic() / tables.TURN_S))


def asked(streams: Sequence[stream.Stream], duration_ns: float | None = None) -> rich.console.RenderableType:
    """Return what streams are, and the share of the line that each takes; those without an end are sent for ``duration_ns``."""
    end = "no end" if duration_ns is None else f"for {columns.time_text(duration_ns)}"
    shown = tables.table("stream", "id", "port", "length", "frames", "frames/s", "Mb/s", "of the line", text=1)
    for each in streams:
        share = load.share_of(each)
        frames_per_s = share * 10**9 / (each.line.octet_ns * (each.length.mean + formats.OVERHEAD))
        least, greatest = each.length.least, each.length.greatest
        shown.add_row(
            rich.text.Text(each.name),
            str(each.stream_id) if each.probe else columns.NONE,
            str(each.port),
            str(least) if least == greatest else f"{least} to {greatest}",
            end if each.count is None else f"{each.count:,}",
            columns.shown(float(frames_per_s), 1),
            columns.shown(float(share * each.line.rate_bps), 3, columns.MEGA),
            load.percent(share),
        )
    sums = [tables.OF_LENGTHS]
    for port in sorted({each.port for each in streams}):
        total = sum((load.share_of(each) for each in streams if each.port == port), Fraction(0))
        sums.append(f"port {port}: {load.percent(total)} of the line, where all are sent at once")
    return rich.console.Group(shown, *sums)


def live(look: figures.TrafficLook, url: str, turn: int = 0) -> rich.console.RenderableType:
    """Return a screen of streams that run; ``turn``: which page, where the terminal is too low for all of it."""
    colour = "green" if look.clock_state == "locked" else "yellow"

    def head(page: str) -> rich.console.RenderableType:
        return rich.text.Text.assemble(
            ("liteprobe send ", "bold"),
            url,
            f"   {columns.time_text(1e9 * look.elapsed_s)}   clock ",
            (look.clock_state, colour),
            f", {timebase.delay_words(look.uncertainty_ns)}",
            f"   {page}" * bool(page),
        )

    note = rich.text.Text("Delays ± by the width of a bin. Ctrl-C stops.")
    shown = table_of(look.rows)
    return tables.Paged(head, rich.console.Group(shown, note), note, [(None, [shown])], turn)


def line(before: figures.TrafficLook, look: figures.TrafficLook) -> str:
    """Return what all streams together did until a look, and their rate since the look before, in a line."""
    sums = figures.totals(look.rows)
    words = [f"{sums[name]:,} {name}" for name in ("sent", "received", "lost") if sums[name] is not None]
    rates = [row.received_bps.middle for row in look.rows if row.received_bps]
    words += [f"{sum(rates) / columns.MEGA:,.3f} Mb/s"] * bool(rates)
    count = "1 stream" if len(look.rows) == 1 else f"{len(look.rows)} streams"
    return f"{columns.time_text(1e9 * look.elapsed_s)}   {count}: {', '.join(words)}"


def final(result: figures.TrafficResult) -> rich.console.RenderableType:
    """Return what came of streams."""
    said = (
        f"{columns.ended(result.duration_s, result.end, result.is_complete)}. Clock {result.clock_state}; "
        f"{timebase.delay_words(result.uncertainty_ns)}. Delays ± by the width of a bin; Mb/s on the wire, frame + 24 octets."
    )
    table, rows = table_of(result.rows), result.to_dict()["streams"]
    more = [tables.more(table.columns, row, "stream") for row in rows[:1]]
    return rich.console.Group(table, rich.text.Text(said), *more, *map(rich.text.Text, result.notes))


def table_of(rows: Sequence[figures.StreamFigures]) -> tables.FittingTable:
    """Return streams as a table."""
    waited = "waited " * any(row.waited != 0 for row in rows)
    shown = figures.STREAMS.of(f"name sent received lost duplicated reordered {waited}late bit_errors received_bps")
    delays = figures.delay_columns(rows, "least mean p50 p99 p99_9 most")
    shown += columns.in_unit(delays, *unit_of(rows))
    return tables.figures(shown, rows, lambda row: "bold" if row.is_active else "")


def unit_of(rows: Sequence[figures.StreamFigures]) -> tuple[str, float, int]:
    """Return the unit in which the greatest delay has few digits, its length (ns), and the digits after the point."""
    most = max((row.latency.longest_ns for row in rows if row.latency), default=0)
    if most < 10**6:
        return "ns", 1.0, 0
    return ("µs", 1e3, int(most < 10**7)) if most < 10**9 else ("ms", 1e6, int(most < 10**10))
