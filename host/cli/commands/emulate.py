# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Joins two ports by a degraded network, shows it while it runs, and what came of it."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from liteprobe.host.base.defaults import FIGURES_OF_CLASSES
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.interrupt import Interrupted, is_ctrl_c
from liteprobe.host.base.probe_url import is_simulated
from liteprobe.host.base.text import read_text, say
from liteprobe.host.cli.arguments import (
    add,
    add_expect,
    add_probe,
    add_results,
    every_s,
    is_plain,
    open_probe,
    take_old,
)
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, rate_bps

with lazily():
    import rich.console
    import rich.panel
    import rich.text

    from liteprobe.host.analysis import columns
    from liteprobe.host.base import units
    from liteprobe.host.cli import results, tables
    from liteprobe.host.device.link import sim_stations
    from liteprobe.host.report import emulate_page, files
    from liteprobe.host.run import emulate as runs
    from liteprobe.host.traffic import presets
    from liteprobe.host.traffic.network import document, netem, store
    from liteprobe.host.traffic.network import network as networks

HELP = "join two ports by a degraded network: queues, rate, delay, loss, background traffic"
EXAMPLES = """
liteprobe emulate --preset dsl --check
liteprobe emulate --from-netem delay 20ms 2ms loss 1% --duration 50ms
liteprobe emulate network.yaml --probe etherbone://192.168.1.50 --duration 10min --report emulate.html
"""
DEFAULT_PROBE = "sim://emulator"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    take_old(parser, {"--interval": "--refresh"})
    what = parser.add_argument_group("network (one of these)")
    add(what, "network FILE.yaml", Path, "a network, as docs/emulator.md shows", nargs="?")
    add(what, "--preset NAME", str, "one that is ready: datacentre-incast, dsl, lte, satellite, wifi-bursty")
    text = "words of tc's netem, from port 0 to port 1, up to the next option: --from-netem delay 20ms loss 1%%"
    add(what, "--from-netem WORDS", str, text, nargs="+")
    add(what, "--netem-back WORDS", str, "with --from-netem: of the way back (default: nothing)", nargs="+")
    add(what, "--expected BPS", rate_bps, "with --from-netem: what comes each way at most, for the store")
    add(what, "--attach", bool, "the one that runs: look at it, and leave it running")
    add(
        what,
        "--set SETTING",
        str,
        "with --attach: change it, in words of the document, like there.voice.delay=5ms or both.rate=2Mbit; "
        "several are taken in one switch",
        action="append",
    )
    add_probe(parser, DEFAULT_PROBE)
    run = parser.add_argument_group("run")
    add(
        run,
        "--duration TIME",
        duration_ns,
        "stop after it, like 10s (default: Ctrl-C; of sim://emulator its stations)",
    )
    add(run, "--refresh TIME", duration_ns, "between looks (default: 1s; of a simulated probe 10ms)")
    add(run, "--detach", bool, "start it, and leave it running; liteprobe stop ends it")
    add(run, "--check", bool, "only check it, and show what it does")
    add(run, "--limits", bool, "show delays and queues that the probe can have, or --board, and end")
    add(
        run,
        "--board NAME",
        str,
        "with --check and --limits: as of a board, and no probe (default of --check: sim://emulator)",
    )
    add(run, "--yaml", bool, "print it as a document, and end")
    add(run, "--schema", bool, "print the JSON schema of such a file, and end")
    add_results(parser, "write a report", "class of a direction")
    add_expect(parser, FIGURES_OF_CLASSES)


DIRECTION_HEADS = {"there": "port 0 → port 1", "back": "port 1 → port 0"}
LENGTHS, RATES = (60, 128, 512, 1514, 9014), (10**9, 10**8, 10**7, 10**6)  # Octets, b/s, of the table of limits.
BAR = 10  # Characters of a full queue.
SIMULATED_LOOK_S = 0.01
BRIEF_HEADS = {"arrived_bps": "Mb/s\nin", "sent_bps": "Mb/s\nout", "frames": "wait"}


def run(args: argparse.Namespace) -> None:
    """Start, show, print and write."""
    if args.schema:
        print(json.dumps(document.network_schema(), indent=2))
        return
    if args.limits:
        _show_limits(args)
        return
    if args.board is not None and not args.check:
        raise UsageError("--board goes with --check or --limits: give one of them")
    network = network_of(args)
    if args.yaml or args.check:
        if network is None:
            raise UsageError("--attach has no network to show: leave out --check and --yaml")
        _show_asked(args, network)
        return
    with open_probe(args) as probe:
        facts = probe.info()
        emulation = probe.emulate(network)
        if args.set:
            seconds = emulation.set_words(*args.set)
            say(f"holds from {seconds:,.6f} s on", stream=sys.stderr if is_plain(args) else sys.stdout)
            if not (args.duration or args.json or args.jsonl or args.csv or args.report):
                emulation.detach()
                return
        if args.detach:
            emulation.detach()
            where = f"--probe {shlex.quote(args.probe)}"
            say(f"running; liteprobe emulate --attach {where} looks at it, liteprobe stop {where} ends it")
            return
        _follow(args, emulation, facts, probe.link.stations)


def network_of(args: argparse.Namespace) -> networks.Network | None:
    """Return the network that is asked for, checked as far as it can be without a probe; None: the one that runs.

    Raises UsageError when none or several are given, or no probe can do it.
    """
    given = {
        "a file": args.network is not None,
        "--preset": args.preset is not None,
        "--from-netem": args.from_netem is not None,
        "--attach": args.attach,
    }
    names = [name for name, is_given in given.items() if is_given]
    if len(names) != 1:
        what = f"{' and '.join(names)} are given" if names else "no network is given"
        raise UsageError(f"{what}: give one of {', '.join(given)}")
    for option, value in {"--netem-back": args.netem_back, "--expected": args.expected}.items():
        if value is not None and args.from_netem is None:
            raise UsageError(f"{option} goes with --from-netem: give that, too")
    if args.detach and (args.attach or args.duration or args.json or args.jsonl or args.csv or args.report):
        raise UsageError("--detach leaves at once: leave out --attach, --duration, --json and --report")
    if args.duration and args.duration > networks.CHANGE_MOST:
        raise UsageError("a probe counts the time of a network up to 26 days: give --duration less, or leave it out")
    if args.set and not args.attach:
        raise UsageError("--set changes a network that runs: give --attach, too, or write it into the network")
    if args.attach:
        return None
    network = _read(args)
    runs.rules_of(network)
    if args.detach:
        runs.check_detached(len(network.changes), network.moves_link)
    return network


def _read(args: argparse.Namespace) -> networks.Network:
    if args.preset is not None:
        return presets.preset(args.preset)
    if args.from_netem is not None:
        back = args.netem_back and " ".join(args.netem_back)
        network, differences = netem.from_netem(" ".join(args.from_netem), back, args.expected)
        for line in differences:
            say(line, stream=sys.stderr)
        return network
    text = read_text(args.network, "a network, or give --preset")
    return document.read_network(text, str(args.network), args.network.parent)


def _show_asked(args: argparse.Namespace, network: networks.Network) -> None:
    if args.yaml:
        print(document.write_network(network), end="")
    else:
        lines = runs.check_network(network, args.board or "emulator")
        tables.console().print(asked(network), *map(rich.text.Text, lines), sep="\n")


def _show_limits(args: argparse.Namespace) -> None:
    if args.board is not None:
        held = runs.limits_of(args.board)
    else:
        with open_probe(args) as probe:
            held = tuple(one.limits for one in runs.directions_of(probe.registers))
    tables.console().print(limits_table(held), rich.text.Text(runs.held_by(held)), sep="\n")


def _follow(
    args: argparse.Namespace,
    emulation: runs.Emulation,
    facts: dict[str, int | float | str | bool],
    stations: sim_stations.Stations | None = None,
) -> None:
    """Look until the end; without a duration that is Ctrl-C, or when simulated stations have done all."""
    seconds = None if args.duration is None else args.duration / 1e9
    try:
        with tables.watched(
            not is_plain(args), partial(_screen, args), is_alone=True, line_of=(line, every_s(args))
        ) as show:
            look_s = (
                args.refresh / 1e9 if args.refresh else SIMULATED_LOOK_S if is_simulated(args.probe) else runs.LOOK_S
            )
            is_done = partial(runs.have_done, stations) if stations and seconds is None else None
            result = emulation.wait(seconds, results.looks_of(args).beside(show, runs.look_document), look_s, is_done)
    except Interrupted as end:
        _let_go(args, emulation)
        is_meant = seconds is None and is_ctrl_c(end)
        end.args = (f"{end}; what is shown is until then",)
        for part in end.results:
            shown = _ended(args, replace(part, end="stopped")) if is_meant else part
            finish(args, shown, facts, None if is_meant else end)
        if is_meant and end.results:
            return
        raise
    finally:
        _let_go(args, emulation)
    finish(args, _ended(args, result), facts)


def _ended(args: argparse.Namespace, result: runs.EmulationResult) -> runs.EmulationResult:
    """Return a result with the end of its network: one that was only looked at runs on."""
    return replace(result, end="detached") if args.attach else result


def _let_go(args: argparse.Namespace, emulation: runs.Emulation) -> None:
    """Stop the network, unless it is another host's."""
    if not args.attach:
        emulation.stop()


def finish(
    args: argparse.Namespace,
    result: runs.EmulationResult,
    facts: dict[str, int | float | str | bool],
    cause: BaseException | None = None,
) -> None:
    """Print and write a result; ``cause``: what ended it too soon."""
    content = files.of_run(files.EMULATION_FORMAT, args.probe, facts, results.typed()) | result.to_dict()

    def write_page(path: Path, plain: dict[str, object]) -> None:
        emulate_page.write(path, result, plain)

    results.publish(args, final(result), content, write_page, cause, result)


def _screen(args: argparse.Namespace, look: runs.EmulationLook) -> rich.console.RenderableType:
    return live(look, args.probe, int(time.monotonic() / tables.TURN_S))


# What is shown ------------------------------------------------------------------------------------


def asked(network: networks.Network) -> rich.console.RenderableType:
    """Return what a network does, a table a direction, and what changes when."""
    parts: list[rich.console.RenderableType] = [rich.text.Text(network.name, "bold")]
    if network.about:
        parts.append(rich.text.Text(network.about))
    for name in networks.DIRECTIONS:
        parts.append(_asked(name, getattr(network, name)))
    changes = ((at, name, said) for name in networks.DIRECTIONS for at, said in document.change_words(network, name))
    for at, name, said in sorted(changes, key=lambda one: one[0]):
        parts += [rich.text.Text(f"from {at:g} s, {name}: {line}") for line in said]
    return rich.console.Group(*parts)


def limits_table(held: Sequence[store.Limits]) -> rich.console.RenderableType:
    """Return the longest delay of each rate, and the longest queue, by the length of frames."""
    one = held[0]
    lengths = [length for length in LENGTHS if length <= one.longest]
    shown = tables.table("frames of", *(f"{length}" for length in lengths), "octets", text=1)
    for rate in RATES:
        figures = (f"{store.most_delay_us(one, rate, length) / 1000:.3f}" for length in lengths)
        shown.add_row(f"delay at {units.rate_text(rate)}, at most", *figures, "ms")
    shown.add_row("queue, at most", *(f"{store.most_queue(one, length):,}" for length in lengths), "frames")
    return shown


def live(look: runs.EmulationLook, url: str, turn: int = 0) -> rich.console.RenderableType:
    """Return a screen of a network that runs; ``turn``: which page, where the terminal is too low for all of it."""
    now = columns.time_text(1e9 * look.there.seconds)
    changes = f"change {look.there.state} of {look.changes}" if look.changes else ""

    def above(page: str) -> rich.console.RenderableType:
        turns = page and f"{page}, in turn"
        said = ([url, now, changes, turns, "Ctrl-C stops it"], [now, changes, turns, "Ctrl-C stops it"], [now, page])
        lines = ["   ".join(filter(None, words)) for words in said]
        full = rich.text.Text.assemble(("liteprobe emulate ", "bold"), lines[0])
        return tables.Either(full, *lines[1:]) if page else full

    panels = [_panel(direction) for direction in look.directions]
    parts = [(_title(direction), _parts(direction)) for direction in look.directions]
    parts[0][1].insert(0, rich.text.Text(url))
    return tables.Paged(above, rich.console.Group(*panels), _brief(look), parts, turn)


def line(before: runs.EmulationLook, look: runs.EmulationLook) -> str:
    """Return what became of each direction since a look before, in a line."""
    said = [columns.time_text(1e9 * look.there.seconds)]
    row = runs.series_of([before, look])[-1]
    for direction in look.directions:
        classes = row[direction.way]["classes"]
        rates = (sum(one[name] or 0.0 for one in classes) / 1e6 for name in runs.RATES)
        sums = (sum(one[name] for one in classes) for name in ("queue_frames", "dropped"))
        words = ("{:,.3f} Mb/s in, {:,.3f} out, {:,} wait, {:,} dropped").format(*rates, *sums)
        said.append(f"{direction.way} {words}{'' if direction.is_link_up else ', link down'}")
    if look.changes:
        said.append(f"change {look.there.state} of {look.changes}")
    return "   ".join(said)


def final(result: runs.EmulationResult) -> rich.console.RenderableType:
    """Return what came of a network."""
    last = result.last
    ended = columns.ended(last.there.seconds, result.end or "running")
    by_host = " by this host" * (result.end == "done")
    said = f"{ended}{by_host}. Clock {result.clock_state}."
    stations = [_stations(result.stations)] if result.stations else []
    parts = [one for one in _parts(last.there, True) if isinstance(one, tables.FittingTable)]
    shown = sum(one.columns - 1 for one in parts) + 2  # A name, and a histogram.
    more = tables.more(shown, runs.look_document(last)["there"]["classes"][0], "class")
    lines = [rich.text.Text(said), more, *map(rich.text.Text, result.notes)]
    return rich.console.Group(*(_panel(direction, True) for direction in last.directions), *stations, *lines)


# # #


def _stations(report: sim_stations.StationsReport) -> rich.console.RenderableType:
    shown, rows = [*runs.STATIONS.values()], runs.stations_of(report)
    return rich.console.Group(tables.figures(shown, rows, lambda row: "bold"), rich.text.Text(report.sentence))


def _asked(name: str, direction: networks.Direction) -> rich.console.RenderableType:
    link = "no rate: nothing waits" if direction.rate_bps is None else units.rate_text(direction.rate_bps)
    if direction.trace:
        link = f"trace {direction.trace.name}, {units.rate_text(direction.trace.rate_bps)} in the mean"
    link += f"; link {direction.link}" * (direction.link != networks.UP)
    service = f", {direction.service}" if len(direction.numbered) > 1 else ""
    shown = tables.table(
        "class", "matches", "what its frames meet", title=f"{name}: {DIRECTION_HEADS[name]}, {link}{service}", text=3
    )
    for one in direction.numbered.values():
        shown.add_row(
            rich.text.Text(one.name),
            rich.text.Text(one.match_text or "the rest"),
            rich.text.Text(document.treatment(one)),
        )
    return shown


def _title(direction: runs.DirectionLook) -> rich.text.Text:
    state = "" if direction.is_link_up else ", its link is down"
    state += "" if direction.is_running else ", not running"
    style = "cyan" if direction.is_running and direction.is_link_up else "red"
    return rich.text.Text(f"{direction.way}: {DIRECTION_HEADS[direction.way]}{state}", style)


def _panel(direction: runs.DirectionLook, is_end: bool = False) -> rich.console.RenderableType:
    title = _title(direction)
    content = rich.console.Group(*_outside(direction), *_parts(direction, is_end))
    return rich.panel.Panel(content, title=title, title_align="left", border_style=title.style)


def _outside(direction: runs.DirectionLook, name: str = "") -> list[rich.console.RenderableType]:
    """Return what is counted of frames that no class has, if there are any."""
    counts = {
        "bad FCS or length": direction.damaged,
        "no space at the input": direction.overflows,
        "that no bridge forwards": direction.reserved,
    }
    lost = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return [rich.text.Text.assemble(("! ", "bold red"), (name + lost, "red"))] * bool(lost)


def _brief(look: runs.EmulationLook) -> rich.console.RenderableType:
    """Return a line of each class of both directions."""
    rows = [(direction, one) for direction in look.directions for one in direction.classes]

    def of_row(one: columns.Column) -> columns.Column:
        return replace(one, head=BRIEF_HEADS.get(one.key, one.head), of=lambda row: one.value(row[1]))

    all_of = columns.Columns(
        columns.Column("name", "class", of=lambda row: f"{row[0].way} {row[1].name}"),
        *map(of_row, runs.CLASSES.of("arrived sent dropped late arrived_bps sent_bps frames")),
        columns.Column("delay", "delay,\nms", of=lambda row: _span_ms(row[1].delays)),
    )
    keys = (
        "arrived sent dropped late arrived_bps sent_bps frames delay",
        "sent dropped arrived_bps sent_bps frames",
        "sent dropped sent_bps frames",
    )
    shown = [all_of.of(f"name {one}") for one in keys]
    fitting = [tables.figures(one, rows, lambda row: "bold", True, "dim") for one in shown]
    marks: list[rich.console.RenderableType] = [
        rich.text.Text(f"{direction.way}: its link is down", "red")
        for direction in look.directions
        if not direction.is_link_up
    ]
    marks += [part for direction in look.directions for part in _outside(direction, f"{direction.way}: ")]
    return rich.console.Group(*marks, tables.Either(*fitting), "")


def _parts(direction: runs.DirectionLook, is_end: bool = False) -> list[rich.console.RenderableType]:
    classes = direction.classes
    return [
        _figures(runs.CLASSES.of(f"arrived sent {' '.join(runs.DROPS)} late"), classes),
        _queues(classes, is_end),
        *(_delays(one) for one in classes if any(one.delays.counts)),
    ]


def _figures(shown: Sequence[columns.Column], classes: Sequence[runs.ClassLook]) -> rich.console.RenderableType:
    named = [*runs.CLASSES.of("name"), *shown]
    return tables.figures(named, classes, lambda row: "bold", False, "dim")


def _queues(classes: Sequence[runs.ClassLook], is_end: bool) -> rich.console.RenderableType:
    """Return rates and queues: of now, or at the end of all the time, and delays."""
    background = " background background_dropped" * any(one.counts.background for one in classes)
    if is_end:
        shown = runs.CLASSES.of(f"arrived_mean_bps sent_mean_bps most{background}")
        shown = [replace(one, head="waited\nat most") if one.key == "most" else one for one in shown]
        delays = runs.CLASSES.of("least_ns mean_bounds_ns most_ns")
        return _figures([*shown, *(replace(one, digits=3) for one in delays)], classes)
    shown = runs.CLASSES.of(f"arrived_bps sent_bps frames octets most{background}")
    wide = tables.table("class", "queue", *(column.head for column in shown), text=2)
    for one in classes:
        full = -(-BAR * one.queue.frames // max(one.queue.most, 1))
        bar = rich.text.Text.assemble(("━" * full, "cyan"), ("·" * (BAR - full), "dim"))  # Without colours, too.
        wide.add_row(rich.text.Text(one.name, "bold"), bar, *(column.text(one) for column in shown))
    return tables.Either(wide, _figures(shown, classes))


def _delays(one: runs.ClassLook) -> rich.console.RenderableType:
    """Return the histogram of a class: a bar for each doubling of the delay."""
    delays = one.delays
    used = [number for number, count in enumerate(delays.counts) if count]
    first, last = used[0], used[-1]
    edges = delays.edges_ns
    text = rich.text.Text.assemble((f"{one.name:<6} ", "bold"), f"delay {columns.time_text(edges[first])} ")
    text.append_text(tables.bars(delays.counts[first : last + 1]))
    text.append(f" {columns.time_text(edges[last + 1])}   {span(delays)}")
    return text


def span(delays: runs.ClassDelays) -> str:
    """Return the ends of delays."""
    if delays.least_ns is None or delays.most_ns is None:
        return columns.NONE
    return f"{columns.time_text(delays.least_ns)} to {columns.time_text(delays.most_ns)}"


def _span_ms(delays: runs.ClassDelays) -> str | None:
    ends = delays.least_ns, delays.most_ns
    return None if None in ends else "..".join(columns.shown(one, 3, 1e6) for one in ends)
