# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shows, logs, draws and sets a probe's clock, and disciplines it from here where no firmware does."""

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.live import Live
from rich.table import Table

from liteprobe.cores.formats import ClockMode, ClockState
from liteprobe.host import clock_log
from liteprobe.host.analysis import clock_smooth
from liteprobe.host.cli import tables
from liteprobe.host.cli.arguments import add_probe, output, time_ns, whole
from liteprobe.host.clock import ClockStatus
from liteprobe.host.errors import UsageError
from liteprobe.host.probe import Probe

HELP = "show, log, plot, set or discipline the probe's clock"
MODES = {"discipline": ClockMode.DISCIPLINE, "leave-alone": ClockMode.LEAVE_ALONE, "reacquire": ClockMode.REACQUIRE}
COLOURS = {"locked": "green", "holdover": "yellow", "acquiring": "yellow", "free-running": "red", "unknown": "red"}
TAI_UTC_S = 37  # Since 2017-01-01 (IERS Bulletin C 52).
LATE_NS = 100_000_000  # A host's own time is good to that, where it follows NTP.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_status(actions.add_parser("status", help="state, offset, rate, holdover and error bound"))
    _add_log(actions.add_parser("log", help="write a line for each PPS edge"))
    _add_plot(actions.add_parser("plot", help="draw a log: offset, rate, Allan deviation"))
    _add_set(actions.add_parser("set", help="set the time, or what the servo shall do"))
    _add_discipline(actions.add_parser("discipline", help="run the firmware's servo on this host"))


def _add_status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--watch", metavar="TIME", type=time_ns, help="go on for so long (probe time), 4 looks a period"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, a line a look")
    parser.set_defaults(act=_status)
    add_probe(parser)


def _add_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE", type=output, required=True, help="file of the log (CSV)")
    parser.add_argument("--for", dest="span", metavar="TIME", type=time_ns, required=True, help="probe time, like 60s")
    parser.set_defaults(act=_log)
    add_probe(parser)


def _add_plot(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", type=Path, help="what 'liteprobe clock log' wrote")
    parser.add_argument("--out", metavar="FILE", type=output, required=True, help="picture: .svg, .png or .pdf")
    parser.set_defaults(act=_plot)


def _add_set(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--time", metavar="NS|now", help="TAI in ns since 1970; now: the time of this host")
    what.add_argument("--mode", choices=list(MODES), help="what the servo shall do")
    parser.add_argument("--tai-utc", metavar="S", type=whole, default=TAI_UTC_S, help="for now (default: %(default)s)")
    parser.set_defaults(act=_set)
    add_probe(parser)


def _add_discipline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--for", dest="span", metavar="TIME", type=time_ns, help="probe time (default: until Ctrl-C)")
    parser.add_argument("--period", metavar="TIME", type=time_ns, help="of the PPS (default: what is set, 1s)")
    parser.add_argument("--log", metavar="FILE", type=output, help="write a line for each PPS edge, too")
    parser.set_defaults(act=_discipline)
    add_probe(parser)


def run(args: argparse.Namespace) -> None:
    """Do what was asked for."""
    args.act(args)


# Status -------------------------------------------------------------------------------------------


def rows(status: ClockStatus, now_ns: int) -> dict[str, str]:
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
    if status.state == ClockState.HOLDOVER:
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


def _table(status: ClockStatus, now_ns: int) -> Table:
    shown = Table(box=None, show_header=False, pad_edge=False)
    shown.add_column(style="cyan", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in rows(status, now_ns).items():
        shown.add_row(name, value)
    for fault in status.faults:
        shown.add_row("[red]fault[/red]", fault)
    return shown


def _document(status: ClockStatus, now_ns: int) -> dict[str, Any]:
    mode = None if status.mode is None else status.mode.name.lower()
    words = {"state": status.name, "errors": [bit.name.lower() for bit in status.errors if bit.name], "mode": mode}
    return {**asdict(status), **words, "faults": status.faults, "now_ns": now_ns}


def _status(args: argparse.Namespace) -> None:
    with Probe(args.probe, args.map) as probe:
        clock, timebase = probe.timebase.clock, probe.timebase
        status = clock.status()
        if args.json:
            print(json.dumps(_document(status, timebase.now_ns)))
        elif args.watch is None:
            tables.console().print(_table(status, timebase.now_ns))
        if args.watch is None:
            return
        step_s = status.period_ns / 4e9
        with Live(console=tables.console(), auto_refresh=False, transient=False) as live:
            for _ in range(max(1, round(args.watch / 1e9 / step_s))):
                if not args.json:
                    live.update(_table(clock.status(), timebase.now_ns), refresh=True)
                probe.wait(step_s)
                if args.json:
                    print(json.dumps(_document(clock.status(), timebase.now_ns)), flush=True)


# Log ----------------------------------------------------------------------------------------------


def _log(args: argparse.Namespace) -> None:
    with Probe(args.probe, args.map) as probe, args.out.open("w", encoding="utf-8") as stream:
        clock = probe.timebase.clock
        writer = clock_log.Writer(stream, clock.status().period_ns, clock.quantum_ps)
        count = 0
        for edge in clock.edges(args.span / 1e9, probe.wait):
            qerr_ps = clock.qerr_ps(edge, probe.wait)  # Before the status, which is that of this edge then.
            writer.write(edge, clock.status(), qerr_ps)
            count += 1
    print(f"{count} edges in {args.out}", file=sys.stderr)


def smooth(log: clock_log.ClockLog) -> clock_smooth.Smoothed:
    """Return the oscillator of a log, smoothed."""
    time_s = log.index * log.period_ns / 1e9
    model = clock_smooth.NoiseModel(quantum_ns=log.quantum_ns)
    return clock_smooth.smooth(time_s, log.oscillator_ns, ~np.isnan(log.qerr_ns), model)


def _plot(args: argparse.Namespace) -> None:
    from liteprobe.host.report import clock_plots  # Plots take a second to load.

    log = clock_log.read(args.log)
    smoothed = smooth(log)
    clock_plots.write(args.out, args.log.name, log, smoothed)
    error = log.offset_ns - (log.oscillator_ns - smoothed.phase_ns)
    rest = error[len(error) // 4 :]
    print(
        f"{len(error)} edges of {log.period_ns} ns, {log.index[-1] + 1 - len(error)} missing, "
        f"{len(error) - int(smoothed.is_used.sum())} outliers; oscillator {smoothed.rate_ppb.mean() / 1e3:+.4f} ppm; "
        f"clock error {np.sqrt(np.mean(rest**2)):.2f} ns RMS, {np.abs(rest).max():.1f} ns worst (last three quarters)"
    )
    print(f"plot: {args.out}", file=sys.stderr)


# Set ----------------------------------------------------------------------------------------------


def _set(args: argparse.Namespace) -> None:
    if args.mode is None and args.time != "now" and not args.time.isdecimal():
        raise UsageError(f"time '{args.time}' is no time: give nanoseconds since 1970 (TAI), or now")
    with Probe(args.probe, args.map) as probe:
        if args.mode is not None:
            probe.timebase.clock.set_mode(MODES[args.mode])
            print(f"mode: {args.mode}")
            return
        wanted_ns = time.time_ns() + args.tai_utc * 10**9 if args.time == "now" else int(args.time)
        probe.set_time(wanted_ns)
        print(f"time: {probe.timebase.now_ns} ns")


# Discipline ---------------------------------------------------------------------------------------


def _discipline(args: argparse.Namespace) -> None:
    from liteprobe.host.discipline import Discipline  # Needs a C compiler, once.

    with Probe(args.probe, args.map) as probe:
        discipline = Discipline(probe, None if args.period is None else round(args.period))
        stream = args.log.open("w", encoding="utf-8") if args.log else None
        writer = (
            None if stream is None else clock_log.Writer(stream, discipline.period_ns, probe.timebase.clock.quantum_ps)
        )
        try:
            with Live(console=tables.console(), auto_refresh=False) as live:
                for edge in discipline.run(None if args.span is None else args.span / 1e9):
                    status = probe.timebase.clock.status()
                    if writer and edge:
                        writer.write(edge, status)
                    live.update(_table(status, probe.timebase.now_ns), refresh=True)
        finally:
            if stream:
                stream.close()
        print(flush=True)  # What was shown last ends without a line's end where nobody looks.
