# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shows the figures that a probe takes while frames come: rates, streams, histograms, the ring, and losses with their cause."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from liteprobe.host.cli.arguments import STDOUT, add_json, add_probe, duration_ns, open_probe, whole, wholes
from liteprobe.host.cli.keys import pressed
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.output import Lines

with lazily():
    from liteprobe.host.cli import monitor_view, tables
    from liteprobe.host.measure import monitor
    from liteprobe.host.serve import metrics as served
    from liteprobe.host.serve import poll, worst

if TYPE_CHECKING:
    from rich.live import Live

    from liteprobe.host.probe import Probe
    from liteprobe.host.serve.poll import Look, Poller

HELP = "show live what a probe measures: rates, streams, histograms, drops"
LOCAL = "127.0.0.1"
KEEP = ("keep", 0, 0)
KINDS = ("length", "delay", "arrival")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument("--ports", metavar="N[,N...]", type=wholes, help="which ports (default: all)")
    parser.add_argument(
        "--streams",
        metavar="ID",
        type=whole,
        help="measure the streams from ID on, 7, 15 or 31 by the build; clears what was measured",
    )
    parser.add_argument(
        "--bins", metavar="KIND=ORIGIN:WIDTH|keep", type=_bins, action="append", default=[],
        help="histogram bins, like delay=0:64 (width a power of two, in octets or ns), or 'keep': as they are (default: "
        "chosen from what comes; not with --once); each choice clears streams and histograms",
    )  # fmt: skip
    parser.add_argument("--interval", metavar="TIME", type=duration_ns, default=1e9, help="between looks (default: 1s)")
    parser.add_argument(
        "--rates", metavar="TIME", type=duration_ns, help="count rates over this time of the probe, from 1ms"
    )
    parser.add_argument("--once", action="store_true", help="look once, and end")
    add_json(parser, "each look, a line a look,")
    parser.add_argument(
        "--metrics",
        metavar="[ADDRESS:]PORT",
        type=_address,
        help="serve the same numbers to Prometheus (address: 127.0.0.1; 0.0.0.0: to everybody)",
    )
    add_probe(parser)


def _address(text: str) -> tuple[str, int]:
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


def run(args: argparse.Namespace) -> None:
    """Look until Ctrl-C, which is the end that is meant once something was shown."""
    with ExitStack() as stack:
        probe = stack.enter_context(open_probe(args))
        looker = poll.Poller(probe, args.ports)
        kinds = {name: kind for kind, name in monitor.NAMES.items()}
        bins = {kinds[kind]: monitor.BinSetting(origin, shift) for kind, origin, shift in args.bins if kind in kinds}
        looker.set(args.streams, bins, None if args.rates is None else round(args.rates))
        if not args.once and KEEP not in args.bins:
            looker.follow(kind for kind in kinds.values() if kind not in bins)
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
                if not args.once and screen.waits(probe, looker, args.interval / 1e9):
                    return
        except KeyboardInterrupt:
            if args.once or not is_seen:
                raise


def _served(where: tuple[str, int], stack: ExitStack) -> Callable[[Look], None]:
    """Return what gives looks to those who ask for metrics."""
    metrics = served.Metrics()
    server = served.serve(metrics, where[1], where[0])
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
            self._live = stack.enter_context(tables.live(screen=True))
            self._key = stack.enter_context(pressed())
        self._history: dict[int, deque[float]] = {}
        self._numbers: dict[int, int] = {}
        self._worst = worst.Worst()
        self._look: Look | None = None
        self._has_help = False
        self._page = 0

    def show(self, look: Look) -> None:
        """Show a look."""
        self._look = look
        self._worst.take(look)
        for port in look.ports:
            rate = port.rate
            if rate and rate.is_whole and self._numbers.get(port.port) != rate.number:
                self._numbers[port.port] = rate.number
                self._history.setdefault(port.port, deque(maxlen=HISTORY)).append(rate.line_bits_per_s)
        if self._lines:
            self._lines.write(poll.document(look))
        if self._live:
            self._draw(0.0)
        elif not self._is_json_alone:
            self._console.print(monitor_view.view(look, self._history))

    def waits(self, probe: Probe, looker: Poller, seconds: float) -> bool:
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
            self._obey(key, looker)
            if key or time.monotonic() - drawn > REDRAW_S:
                drawn = time.monotonic()
                self._draw(max(left_s, 0.0))
        return False

    def _obey(self, key: str, looker: Poller) -> None:
        """Do what a key says."""
        self._has_help ^= key == "?"
        self._page += key == "p"
        if key == "b":
            looker.follow()
        elif key == "c":
            self._worst.clear()

    def _draw(self, left_s: float) -> None:
        assert self._live and self._look
        shown = monitor_view.Fitting(self._look, self._history, self._worst, left_s, self._has_help, self._page)
        self._live.update(shown, refresh=True)
