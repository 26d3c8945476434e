# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a station beside a probe: it keeps plans of experiments, runs them at their second without a host, and keeps results."""

from __future__ import annotations

import argparse
import math
import platform
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.interrupt import is_ctrl_c
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_probe, add_store, open_probe
from liteprobe.host.cli.commands.monitor import metrics_place
from liteprobe.host.cli.lazy import lazily

if TYPE_CHECKING:
    from liteprobe.host.store.tables import StoredRun

with lazily():
    from liteprobe.host.agent import agent as agents
    from liteprobe.host.agent import keys
    from liteprobe.host.fleet import halves, suite_runs
    from liteprobe.host.fleet import station as stations

HELP = "run experiments beside a probe, at their second, while no host is there"
EXAMPLES = """
liteprobe station results --probe 192.168.1.50 --address tcp://10.8.0.2:5582 --keys berlin.key_secret --clients lab.key
liteprobe station results --probe 192.168.1.50 --metrics 9101 --store months
liteprobe station --unit
"""
ADDRESS = "tcp://127.0.0.1:5582"
UNIT = """\
# A station beside a probe: edit the address of the probe, that of this machine, and the names of the keys; then
#   cp liteprobe-station.service /etc/systemd/system/ && systemctl enable --now liteprobe-station
[Unit]
Description=LiteProbe station: runs experiments at their second
Wants=network-online.target time-sync.target
After=network-online.target time-sync.target

[Service]
ExecStart=/usr/bin/env liteprobe station /var/lib/liteprobe-station --probe 192.168.1.50 --address tcp://127.0.0.1:5582
Restart=always
RestartSec=2
DynamicUser=yes
StateDirectory=liteprobe-station
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
NoNewPrivileges=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX

[Install]
WantedBy=multi-user.target
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "folder", Path, "where plans and results are kept", nargs="?")
    add_probe(parser)
    group = parser.add_argument_group("hosts")
    add(group, "--address URL", str, f"where to listen: a private address, with keys, or loopback (default: {ADDRESS})")
    add(group, "--keys FILE", Path, "the station's own keys (NAME.key_secret; liteprobe agent keys NAME)")
    what = "public key of a host that may hand out plans (NAME.key), or a folder of them; again for more"
    add(group, "--clients FILE", Path, what, [], action="append")
    group = parser.add_argument_group("results")
    what = "answer Prometheus there: what was done, and the last start (default: none; without ADDRESS 127.0.0.1)"
    add(group, "--metrics [ADDRESS:]PORT", metrics_place, what)
    add_store(group)
    add(parser, "--unit", bool, "print a unit of systemd for this command, and end")


def run(args: argparse.Namespace) -> None:
    """Serve until Ctrl-C, which is the end that is meant."""
    if args.unit:
        print(UNIT, end="")
        return
    if args.folder is None:
        raise UsageError("give a folder for plans and results: liteprobe station FOLDER --probe URL")
    address = args.address or ADDRESS
    stations.check_private(address, args.keys is not None)
    own_keys = None if args.keys is None else keys.Keys.read(args.keys)
    station = stations.ProbeStation(args.folder, lambda: open_probe(args))
    agent = agents.Agent(platform.node() or "station", address, own_keys, args.clients)
    station.offer(agent)
    if args.store:
        station.seen.append(lambda half: keep(args, half))
    ended: KeyboardInterrupt | None = None
    with ExitStack() as stack:
        if args.metrics is not None:
            _serve(args, station, stack)
        stack.enter_context(agent)
        try:
            say(
                f"station of {args.probe} at {agent.address}, {len(station.plans)} plans kept in {args.folder}",
                flush=True,
            )
            station.run()
        except KeyboardInterrupt as end:
            ended = end
    said = ", ".join(f"{count} {what}" for what, count in station.counts.items() if count)
    say(said or "nothing was measured", stream=sys.stderr)
    if ended and not is_ctrl_c(ended):
        raise ended


def _serve(args: argparse.Namespace, station: stations.ProbeStation, stack: ExitStack) -> None:
    from liteprobe.host.serve import metrics, station_metrics  # Need an extra.

    address, port = args.metrics
    found = station_metrics.StationMetrics(station)
    server = metrics.serve(found, port, address)
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    station.seen.append(found.take)
    say(f"metrics: http://{address}:{server.server_port}/metrics", stream=sys.stderr)


def keep(args: argparse.Namespace, half: halves.Half) -> None:
    """Keep what came to this end in the store: the other clock isn't known here, so the bound isn't, either."""
    from liteprobe.host.store.tables import StoredRun

    if not half.why and half.end == halves.SUITE:
        suite = suite_runs.SuiteFigures.of_plain(half.flows["suite"])
        if suite.is_measured:
            known = {"url": args.probe, "document": suite.document}
            _put(args, StoredRun.of(suite, f"station {suite.kind}", **known), suite.name)
        return
    if half.why or half.end != halves.HEARS:
        return
    pair, known = f"{half.sender} to {half.receiver}", {name: one for name, one in half.cells.items() if one.total}
    figures: dict[str, dict[str, Any]] = {pair: {"received": half.received}}
    for name, one in known.items():
        ends = {"least": int(one.lows.min()), "most": int(one.highs.max())}
        figures[name] = {"received": one.total, **figures.get(name, {}), **ends}
    cells = {name: one.log_linear() for name, one in known.items()}
    state = half.verdict.state if half.verdict else None
    own = partial(StoredRun, "station", url=args.probe, is_complete=False, clock_state=state, uncertainty_ns=math.inf)
    _put(args, own(figures=figures, cells=cells), pair)


def _put(args: argparse.Namespace, run: StoredRun, what: str) -> None:
    try:
        args.keeper.store.keep(run)
    except OSError as error:
        say(f"{error.filename}: what came of {what} can't be kept there ({error.strerror})", stream=sys.stderr)
