# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shows what a probe measures while frames come: rates, streams, histograms, the ring, and what was lost and why."""

import argparse
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, closing

from rich.live import Live

from liteprobe.host.cli import tables
from liteprobe.host.cli.arguments import STDOUT
from liteprobe.host.cli.keys import pressed
from liteprobe.host.cli.monitor_view import Fitting, view
from liteprobe.host.cli.output import Lines
from liteprobe.host.cli.parsers.monitor import KEEP
from liteprobe.host.measure.monitor import NAMES, BinSetting
from liteprobe.host.probe import Probe
from liteprobe.host.serve.poll import Look, Poller, document
from liteprobe.host.serve.worst import Worst

KINDS = {name: kind for kind, name in NAMES.items()}
HISTORY = 16  # Rates that are shown.
STEP_LOOKS = 20  # A wait goes in steps of so many of the link's: 2 ms of a simulated probe, 100 ms of a board.
REDRAW_S = 0.25


def run(args: argparse.Namespace) -> None:
    """Look until Ctrl-C, which is the end that is meant once something was shown."""
    with ExitStack() as stack:
        probe = stack.enter_context(Probe(args.probe, args.map, args.steal))
        looker = Poller(probe, args.ports)
        bins = {KINDS[kind]: BinSetting(origin, shift) for kind, origin, shift in args.bins if kind in KINDS}
        looker.set(args.streams, bins, None if args.rates is None else round(args.rates))
        if not args.once and KEEP not in args.bins:
            looker.follow(kind for kind in KINDS.values() if kind not in bins)
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
        self._worst = Worst()
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
            self._lines.write(document(look))
        if self._live:
            self._draw(0.0)
        elif not self._is_json_alone:
            self._console.print(view(look, self._history))

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
        shown = Fitting(self._look, self._history, self._worst, left_s, self._has_help, self._page)
        self._live.update(shown, refresh=True)
