# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Joins two ports by a degraded network, shows it while it runs, and what came of it."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from liteprobe.host.cli.arguments import (
    STDOUT,
    add_json,
    add_probe,
    duration_ns,
    open_probe,
    output,
    rate_bps,
    read_text,
)
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.output import named, write_json
from liteprobe.host.errors import UsageError
from liteprobe.host.machine.interrupt import Interrupted

with lazily():
    from liteprobe.host.cli import emulate_view, tables
    from liteprobe.host.report import emulate_page, files
    from liteprobe.host.run import emulate as runs
    from liteprobe.host.run import emulate_figures
    from liteprobe.host.traffic import document, presets
    from liteprobe.host.traffic.network import netem
    from liteprobe.host.traffic.network import network as networks

if TYPE_CHECKING:
    from liteprobe.host.device.link.sim_stations import Stations
    from liteprobe.host.run.emulate import Emulation, Show
    from liteprobe.host.run.emulate_figures import EmulationLook, EmulationResult
    from liteprobe.host.traffic.network import Network

HELP = "join two ports by a degraded network: queues, rate, delay, loss, background traffic"
DEFAULT_PROBE = "sim://emulator"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    what = parser.add_argument_group("network (one of these)")
    what.add_argument("network", metavar="FILE.yaml", nargs="?", type=Path, help="a network, as docs/emulator.md shows")
    what.add_argument(
        "--preset", metavar="NAME", help="one that is ready: datacentre-incast, dsl, lte, satellite, wifi-bursty"
    )
    what.add_argument(
        "--from-netem", metavar="WORDS", help='what tc would be told, from port 0 to port 1, like "delay 20ms loss 1%%"'
    )
    what.add_argument("--netem-back", metavar="WORDS", help="with --from-netem: of the way back (default: nothing)")
    what.add_argument(
        "--expected", metavar="BPS", type=rate_bps, help="with --from-netem: what comes each way at most, for the store"
    )
    what.add_argument("--attach", action="store_true", help="the one that runs: look at it, and leave it running")
    add_probe(parser, DEFAULT_PROBE)
    run = parser.add_argument_group("run")
    run.add_argument(
        "--duration",
        metavar="TIME",
        type=duration_ns,
        help="stop after it, like 10s (default: Ctrl-C; of sim://emulator its stations)",
    )
    run.add_argument(
        "--interval", metavar="TIME", type=duration_ns, help="between looks (default: 1s; of sim://emulator 10ms)"
    )
    run.add_argument("--detach", action="store_true", help="start it, and leave it running; liteprobe stop ends it")
    run.add_argument("--check", action="store_true", help="only check it, and show what it does")
    run.add_argument("--yaml", action="store_true", help="print it as a document, and end")
    run.add_argument("--schema", action="store_true", help="print the JSON schema of such a file, and end")
    results = parser.add_argument_group("results")
    add_json(results, "all figures")
    results.add_argument("--report", metavar="FILE.html", type=output, help="write a report")


STATIONS_LOOK_S = 0.01
TURN_S = 3.0  # Of each direction, where a terminal is too low for both.


def run(args: argparse.Namespace) -> None:
    """Start, show, print and write."""
    if args.schema:
        print(json.dumps(document.network_schema(), indent=2))
        return
    network = network_of(args)
    if args.yaml or args.check:
        if network is None:
            raise UsageError("--attach has no network to show: leave out --check and --yaml")
        _show_asked(args, network)
        return
    with open_probe(args) as probe:
        facts = probe.info()
        emulation = probe.emulate(network)
        if args.detach:
            emulation.detach()
            where = f"--probe {shlex.quote(args.probe)}"
            print(f"running; liteprobe emulate --attach {where} looks at it, liteprobe stop {where} ends it")
            return
        _follow(args, emulation, facts, probe.link.stations)


def network_of(args: argparse.Namespace) -> Network | None:
    """Return the network that is asked for, checked as far as it can be without a probe; None: the one that runs.

    Raises
    ------
    UsageError
        When none or several are given, or no probe can do it.
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
    if args.detach and (args.attach or args.duration or args.json or args.report):
        raise UsageError("--detach leaves at once: leave out --attach, --duration, --json and --report")
    if args.duration and args.duration > networks.CHANGE_MOST:
        raise UsageError("a probe counts the time of a network up to 26 days: give --duration less, or leave it out")
    if args.attach:
        return None
    network = _read(args)
    runs.filter_of(network)
    return network


def _read(args: argparse.Namespace) -> Network:
    if args.preset is not None:
        return presets.preset(args.preset)
    if args.from_netem is not None:
        network, differences = netem.from_netem(args.from_netem, args.netem_back, args.expected)
        for line in differences:
            print(line, file=sys.stderr)
        return network
    text = read_text(args.network, "a network, or give --preset")
    return document.read_network(text, str(args.network), args.network.parent)


def _show_asked(args: argparse.Namespace, network: Network) -> None:
    if args.yaml:
        print(document.write_network(network), end="")
    else:
        tables.console().print(emulate_view.asked(network))


def _follow(
    args: argparse.Namespace,
    emulation: Emulation,
    facts: dict[str, int | float | str | bool],
    stations: Stations | None = None,
) -> None:
    """Look until the end; without a duration that is Ctrl-C, or when simulated stations have done all."""
    seconds = None if args.duration is None else args.duration / 1e9
    try:
        with _shown(args) as show:
            look_s = args.interval / 1e9 if args.interval else STATIONS_LOOK_S if stations else runs.LOOK_S
            is_done = partial(emulate_figures.have_done, stations) if stations and seconds is None else None
            result = emulation.wait(seconds, show, look_s, is_done)
    except Interrupted as end:
        _let_go(args, emulation)
        is_meant = seconds is None and end.exit_code == Interrupted().exit_code
        for part in end.results:
            finish(args, _ended(args, replace(part, end="stopped")) if is_meant else part, facts)
        if is_meant and end.results:
            return
        end.args = (f"{end}; what is shown is until then",)
        raise
    finally:
        _let_go(args, emulation)
    finish(args, _ended(args, result), facts)


def _ended(args: argparse.Namespace, result: EmulationResult) -> EmulationResult:
    """Return a result with the end of its network: one that was only looked at runs on."""
    return replace(result, end="detached") if args.attach else result


def _let_go(args: argparse.Namespace, emulation: Emulation) -> None:
    """Stop the network, unless it is another host's."""
    if not args.attach:
        emulation.stop()


@contextmanager
def _shown(args: argparse.Namespace) -> Iterator[Show | None]:
    """Give what shows looks while a network runs; nothing where nobody looks."""
    console = tables.console()
    if args.json == STDOUT or not console.is_terminal:
        yield None
        return
    with tables.live(screen=True) as screen:

        def show(look: EmulationLook) -> None:
            screen.update(emulate_view.live(look, args.probe, int(time.monotonic() / TURN_S)), refresh=True)

        yield show


def finish(args: argparse.Namespace, result: EmulationResult, facts: dict[str, int | float | str | bool]) -> None:
    """Print and write a result."""
    if args.json != STDOUT:
        tables.console().print(emulate_view.final(result))
    content = files.emulation_document(result, args.probe, facts, ["liteprobe", *sys.argv[1:]])
    if args.json:
        write_json(args.json, content)
    if args.report:
        with named(args.report):
            emulate_page.write(args.report, result, content)
        print(f"report: {args.report}", file=sys.stderr)
