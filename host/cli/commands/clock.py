# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shows, logs, draws and sets a probe's clock, and disciplines it from here where no firmware does."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from liteprobe.host.base import extras
from liteprobe.host.base.defaults import FIGURES_OF_CLOCKS, TAI_UTC_S
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.interrupt import is_ctrl_c
from liteprobe.host.base.output import STDOUT, Lines, Outputs, named
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_expect, add_json, add_probe, every_s, open_probe, take_old
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, output, whole

with lazily():
    import numpy as np
    import rich.console
    import rich.table

    from liteprobe.cores import formats
    from liteprobe.host.analysis import clock_smooth
    from liteprobe.host.cli import tables, verdicts
    from liteprobe.host.clock import clock as clocks
    from liteprobe.host.clock import leap, servo
    from liteprobe.host.clock import log as clock_log
    from liteprobe.host.device.firmware import Console
    from liteprobe.host.report import clock_plots
    from liteprobe.host.serve import discipline as disciplines

HELP = "show, log, plot, set or discipline the probe's clock"
EXAMPLES = """
liteprobe clock status --probe 192.168.1.50 --duration 10s
liteprobe clock log --probe 192.168.1.50 --out clock.csv --duration 1h
liteprobe clock discipline --probe 'sim://loopback?pps=1ms&cpu=0' --period 1ms --duration 30ms --log clock.csv
"""
EXAMPLES_OF = {
    "status": """
liteprobe clock status --probe 192.168.1.50
liteprobe clock status --probe 192.168.1.50 --duration 10s --expect 'unlocked == 0' --expect 'bound < 100ns'
liteprobe clock status --probe sim://loopback --json
""",
    "log": """
liteprobe clock log --probe 192.168.1.50 --out clock.csv --duration 1h
liteprobe clock log --probe uart:///dev/ttyUSB0 --out clock.csv --duration 60s
liteprobe clock log --probe 'sim://loopback?pps=1ms' --out clock.csv --duration 20ms
""",
    "plot": """
liteprobe clock plot clock.csv --out clock.svg
liteprobe clock plot clock.csv --out clock.png
liteprobe clock plot clock.csv --out clock.pdf
""",
    "set": """
liteprobe clock set --time now --probe 192.168.1.50
liteprobe clock set --mode reacquire --probe 192.168.1.50
liteprobe clock set --leap system --probe 192.168.1.50
""",
    "discipline": """
liteprobe clock discipline --probe 192.168.1.50 --receiver timing --oscillator tcxo
liteprobe clock discipline --probe 192.168.1.50 --duration 10min --log clock.csv
liteprobe clock discipline --probe 'sim://loopback?pps=1ms&cpu=0' --period 1ms --duration 30ms
""",
}
MODES = ("discipline", "leave-alone", "reacquire")
OLD = {"--for": "--duration", "--watch": "--duration"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    takes = {
        "status": (_add_status, "state, offset, rate, holdover and error bound"),
        "log": (_add_log, "write a line for each PPS edge"),
        "plot": (_add_plot, "draw a log: offset, rate, Allan deviation"),
        "set": (_add_set, "set the time, or what the servo shall do"),
        "discipline": (_add_discipline, "run the firmware's servo on this host"),
    }
    for name, (add_to, what) in takes.items():
        add_to(actions.add_parser(name, help=what, description=f"{what}.", examples=EXAMPLES_OF[name]))


def _add_status(parser: argparse.ArgumentParser) -> None:
    take_old(parser, OLD)
    add(parser, "--duration TIME", duration_ns, "go on for so long (probe time), 4 looks a period", dest="watch")
    add_json(parser, "the status, a line a look,", "--json --jsonl FILE")
    add_probe(parser)
    add_expect(parser, FIGURES_OF_CLOCKS)


def _add_log(parser: argparse.ArgumentParser) -> None:
    take_old(parser, OLD)
    add(parser, "--out FILE", output, "file of the log (CSV)", required=True)
    add(parser, "--duration TIME", duration_ns, "probe time, like 60s", dest="span", required=True)
    add_probe(parser)
    add_expect(parser, FIGURES_OF_CLOCKS)


def _add_plot(parser: argparse.ArgumentParser) -> None:
    add(parser, "log", Path, "what 'liteprobe clock log' wrote")
    add(parser, "--out FILE", output, "picture: .svg, .png or .pdf", required=True)


def _add_set(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    add(what, "--time NS|now", str, "TAI in ns since 1970; now: the time of this host")
    add(what, "--mode", str, "what the servo shall do", choices=MODES)
    add(
        what,
        "--leap FILE|system",
        str,
        "tell the firmware TAI less UTC, by the system's list of leap seconds or another",
    )
    add(parser, "--tai-utc S", whole, "for now (default: %(default)s)", TAI_UTC_S)
    add_probe(parser)


def _add_discipline(parser: argparse.ArgumentParser) -> None:
    take_old(parser, OLD)
    add(parser, "--duration TIME", duration_ns, "probe time (default: until Ctrl-C)", dest="span")
    add(parser, "--period TIME", duration_ns, "of the PPS (default: what is set, 1s)")
    add(parser, "--receiver NAME", str, "what its pulses are like: timing (default), navigation, ideal", "timing")
    add(parser, "--oscillator NAME", str, "of the probe: xo (default), tcxo, ocxo", "xo")
    add(parser, "--log FILE", output, "write a line for each PPS edge, too")
    add_probe(parser)
    add_expect(parser, FIGURES_OF_CLOCKS)


COLOURS = {"locked": "green", "holdover": "yellow", "acquiring": "yellow", "free-running": "red", "unknown": "red"}
LATE_NS = 100_000_000  # A host's own time is good to that, where it follows NTP.


def run(args: argparse.Namespace) -> None:
    """Do what was asked for."""
    ACTIONS[args.action](args)


# Status -------------------------------------------------------------------------------------------


def rows(status: clocks.ClockReport, now_ns: int) -> dict[str, str]:
    """Return what a person wants to read of a clock, name by name."""
    colour = COLOURS[status.name]
    bound = "not known" if status.uncertainty_ns is None else f"{status.uncertainty_ns:.1f} ns (95 %)"
    shown = {"state": f"[{colour}]{status.name}[/{colour}]", "error bound": bound, "now": f"{now_ns} ns"}
    if status.was_ever_alive:
        shown |= {
            "offset": f"{status.offset_ns:+.2f} ns at the last edge",
            "rate": f"{status.rate_ppb / 1e3:+.6f} ppm of the oscillator",
            "drift": f"{status.drift_ppt_s:+.2f} ppt/s",
            "edges": f"{status.edges} used, {status.rejected} rejected",
        }
    if status.state == formats.ClockState.HOLDOVER:
        shown["holdover"] = f"{status.holdover_s} s since the last edge used"
    if status.tai_utc_s:
        shown["TAI - UTC"] = f"{status.tai_utc_s} s"
    pps = "off" if not status.is_pps_enabled else "present" if status.is_pps_present else "absent"
    shown["PPS"] = (
        f"{pps}, period {status.period_ns} ns; {status.missing} missing, {status.spurious} spurious, "
        f"{status.glitches} glitches"
    )
    shown["mode"] = "not known" if status.mode is None else status.mode.name.lower().replace("_", " ")
    return shown


Look = tuple["clocks.ClockReport", int]  # State, and time (ns).


def _table(look: Look) -> rich.table.Table:
    status, now_ns = look
    faults = [("[red]fault[/red]", fault) for fault in status.faults]
    return tables.fact_table([*rows(status, now_ns).items(), *faults])


def _screen(look: Look) -> rich.console.RenderableType:
    shown, turn = _table(look), int(time.monotonic() / tables.TURN_S)
    return tables.Paged(lambda page: f"liteprobe clock   {page}   Ctrl-C ends", shown, None, [(None, [shown])], turn)


def _line(_: Look, look: Look) -> str:
    shown = rows(*look)
    names = ("error bound", "offset", "rate", "edges")
    said = [f"{name} {shown[name]}" for name in names if name in shown]
    return "   ".join([f"{look[1] / 1e9:.3f} s", look[0].name, *said])


def _document(status: clocks.ClockReport, now_ns: int) -> dict[str, Any]:
    mode = None if status.mode is None else status.mode.name.lower()
    words = {"state": status.name, "errors": [bit.name.lower() for bit in status.errors if bit.name], "mode": mode}
    return {**asdict(status), **words, "faults": status.faults, "now_ns": now_ns}


@contextmanager
def _judged(args: argparse.Namespace, out: Outputs) -> Iterator[list[clocks.ClockReport]]:
    """Take looks at a clock, which the body appends, and judge them at its end; errors of outputs are raised before."""
    looks: list[clocks.ClockReport] = []
    yield looks
    verdict = verdicts.judged(args, clocks.ClockResult(looks))
    if verdict is not None:
        verdicts.publish(args, verdict, out)
    out.end()
    if verdict is not None:
        verdict.require()


def _status(args: argparse.Namespace) -> None:
    out = Outputs()
    with _judged(args, out) as seen:
        _show_status(args, out, seen)


def _show_status(args: argparse.Namespace, out: Outputs, seen: list[clocks.ClockReport]) -> None:
    """Show and write looks at a clock, and keep them."""
    with ExitStack() as stack:
        probe = stack.enter_context(open_probe(args))
        lines = stack.enter_context(closing(Lines(args.json))) if args.json else None
        is_shown = args.json != STDOUT
        show = stack.enter_context(tables.watched(is_shown, _screen, line_of=(_line, every_s(args))))
        period_s = probe.timebase.clock.status().period_ns / 1e9
        last = 0 if args.watch is None else max(1, round(4 * args.watch / 1e9 / period_s))
        for number in range(last + 1):
            if number:
                probe.wait(period_s / 4)
            status, now_ns = probe.timebase.clock.status(), probe.timebase.now_ns
            seen.append(status)
            took = False
            if lines:
                verdict = verdicts.judged(args, clocks.ClockResult(seen)) if number == last else None
                said = {} if verdict is None else {"expect": verdict.document()}
                took = out.write(args.json, partial(lines.write, _document(status, now_ns) | said))
            if is_shown:
                took |= out.write(STDOUT, partial(show, (status, now_ns)) if show else lambda: None)
            if not took:
                break
    if is_shown:
        out.write(STDOUT, lambda: tables.console().print(_table((status, now_ns))))


# Log ----------------------------------------------------------------------------------------------


def _log(args: argparse.Namespace) -> None:
    with _judged(args, Outputs()) as seen:
        _write_log(args, seen)


def _write_log(args: argparse.Namespace, seen: list[clocks.ClockReport]) -> None:
    """Write the edges of a clock, and keep what was seen of it at each."""
    count = 0
    try:
        with open_probe(args) as probe, args.out.open("w", encoding="utf-8") as stream:
            clock = probe.timebase.clock
            with named(args.out):
                writer = clock_log.Writer(stream, clock.status().period_ns, clock.quantum_ps)
                for edge in clock.edges(args.span / 1e9, probe.wait):
                    qerr_ps = clock.qerr_ps(edge, probe.wait)  # Before the status, which is that of this edge then.
                    seen.append(clock.status())
                    writer.write(edge, seen[-1], qerr_ps)
                    count += 1
    except (ProbeError, KeyboardInterrupt) as end:
        if count:
            end.args = (f"{end}; {count} edges are in {args.out}",)
        raise
    say(f"{count} edges in {args.out}", stream=sys.stderr)


def smooth(log: clock_log.ClockLog) -> clock_smooth.Smoothed:
    """Return the oscillator of a log, smoothed."""
    time_s = log.index * log.period_ns / 1e9
    model = clock_smooth.NoiseModel(quantum_ns=log.quantum_ns)
    return clock_smooth.smooth(time_s, log.oscillator_ns, ~np.isnan(log.qerr_ns), model)


def _plot(args: argparse.Namespace) -> None:
    extras.require("clock")

    log = clock_log.read(args.log)
    smoothed = smooth(log)
    clock_plots.write(args.out, args.log.name, log, smoothed)
    error = log.offset_ns - (log.oscillator_ns - smoothed.phase_ns)
    rest = error[len(error) // 4 :]
    say(
        f"{len(error)} edges of {log.period_ns} ns, {log.index[-1] + 1 - len(error)} missing, "
        f"{len(error) - int(smoothed.is_used.sum())} outliers; oscillator {smoothed.rate_ppb.mean() / 1e3:+.4f} ppm; "
        f"clock error {np.sqrt(np.mean(rest**2)):.2f} ns RMS, {np.abs(rest).max():.1f} ns worst (last three quarters)"
    )
    say(f"plot: {args.out}", stream=sys.stderr)


# Set ----------------------------------------------------------------------------------------------


def _set(args: argparse.Namespace) -> None:
    if args.time is not None and args.time != "now" and not args.time.isdecimal():
        raise UsageError(f"'{args.time}' is not a time: give nanoseconds since 1970 (TAI), or now")
    if args.leap is not None:
        _set_leap(args)
        return
    with open_probe(args) as probe:
        if args.mode is not None:
            probe.timebase.clock.set_mode(formats.ClockMode[args.mode.replace("-", "_").upper()])
            say(f"mode: {args.mode}")
            return
        wanted_ns = time.time_ns() + args.tai_utc * 10**9 if args.time == "now" else int(args.time)
        probe.set_time(wanted_ns)
        say(f"time: {probe.timebase.now_ns} ns")


def _set_leap(args: argparse.Namespace) -> None:
    known, path = leap.find(time.time(), None if args.leap == "system" else Path(args.leap))
    with open_probe(args) as probe:
        leap.tell(Console(probe.registers), known)
    until = datetime.fromtimestamp(known.until, UTC)
    say(f"TAI - UTC: {known.tai_utc_s} s until {until:%Y-%m-%d}, then {known.then_s} s as far as {path} knows")


# Discipline ---------------------------------------------------------------------------------------


def _discipline(args: argparse.Namespace) -> None:
    out = Outputs()  # A log that can't be written leaves the clock disciplined.
    with _judged(args, out) as seen:
        _run_discipline(args, out, seen)


def _run_discipline(args: argparse.Namespace, out: Outputs, seen: list[clocks.ClockReport]) -> None:
    """Discipline a clock, and keep what was seen of it at the last edge."""
    look: Look | None = None
    with ExitStack() as stack:
        probe = stack.enter_context(open_probe(args))
        settings = servo.profile(args.receiver, args.oscillator)
        discipline = disciplines.Discipline(probe, None if args.period is None else round(args.period), **settings)
        writer = None
        if args.log:
            stream = args.log.open("w", encoding="utf-8")
            stack.callback(out.write, args.log, stream.close)
            writer = clock_log.Writer(stream, discipline.period_ns, probe.timebase.clock.quantum_ps)
        show = stack.enter_context(tables.watched(True, _screen, line_of=(_line, every_s(args))))
        try:
            for edge in discipline.run(None if args.span is None else args.span / 1e9):
                status = probe.timebase.clock.status()
                seen[:] = [status]  # Nothing is locked at first: the end counts.
                if writer and edge:
                    out.write(args.log, partial(writer.write, edge, status))
                look = status, probe.timebase.now_ns
                out.write(STDOUT, partial(show, look) if show else lambda: None)
        except KeyboardInterrupt as end:
            if args.span is not None or look is None or not is_ctrl_c(end):
                raise
    if look:
        out.write(STDOUT, lambda: tables.console().print(_table(look)))


ACTIONS = {"status": _status, "log": _log, "plot": _plot, "set": _set, "discipline": _discipline}
