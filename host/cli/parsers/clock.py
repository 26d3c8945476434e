# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``clock``."""

import argparse
from pathlib import Path

from liteprobe.host.cli.arguments import add_json, add_probe, duration_ns, output, whole

HELP = "show, log, plot, set or discipline the probe's clock"
MODES = ("discipline", "leave-alone", "reacquire")
TAI_UTC_S = 37  # Since 2017-01-01 (IERS Bulletin C 52).


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
        "--watch", metavar="TIME", type=duration_ns, help="go on for so long (probe time), 4 looks a period"
    )
    add_json(parser, "the status, a line a look,")
    add_probe(parser)


def _add_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE", type=output, required=True, help="file of the log (CSV)")
    parser.add_argument(
        "--for", dest="span", metavar="TIME", type=duration_ns, required=True, help="probe time, like 60s"
    )
    add_probe(parser)


def _add_plot(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", type=Path, help="what 'liteprobe clock log' wrote")
    parser.add_argument("--out", metavar="FILE", type=output, required=True, help="picture: .svg, .png or .pdf")


def _add_set(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--time", metavar="NS|now", help="TAI in ns since 1970; now: the time of this host")
    what.add_argument("--mode", choices=MODES, help="what the servo shall do")
    parser.add_argument("--tai-utc", metavar="S", type=whole, default=TAI_UTC_S, help="for now (default: %(default)s)")
    add_probe(parser)


def _add_discipline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--for", dest="span", metavar="TIME", type=duration_ns, help="probe time (default: until Ctrl-C)"
    )
    parser.add_argument("--period", metavar="TIME", type=duration_ns, help="of the PPS (default: what is set, 1s)")
    parser.add_argument(
        "--receiver",
        metavar="NAME",
        default="timing",
        help="what its pulses are like: timing (default), navigation, ideal",
    )
    parser.add_argument("--oscillator", metavar="NAME", default="xo", help="of the probe: xo (default), tcxo, ocxo")
    parser.add_argument("--log", metavar="FILE", type=output, help="write a line for each PPS edge, too")
    add_probe(parser)
