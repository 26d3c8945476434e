# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the conditions of ``--expect`` before anything is measured, and says what became of each, also as a file of JUnit."""

import argparse
import sys
from pathlib import Path

from liteprobe.host.analysis.expect import Condition, Judgement, junit
from liteprobe.host.analysis.result import Result
from liteprobe.host.base.errors import UsageError, nearest
from liteprobe.host.base.output import STDOUT, Outputs, write_text
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import is_plain

IDLE = ("check", "detach", "schema", "yaml")  # Options with which nothing is measured.


def check(args: argparse.Namespace) -> None:
    """Raise UsageError for conditions that can't be judged, as far as it is known before."""
    if not args.expect:
        raise UsageError(f"{'--junit' if args.junit else '--lenient'} is of conditions: give --expect 'lost == 0', too")
    if idle := next((name for name in IDLE if getattr(args, name, False)), ""):
        raise UsageError(f"--{idle} measures nothing that --expect could judge: leave one of them out")
    for one in map(Condition.of, args.expect):
        if one.name not in (names := args.figures.split()):
            raise UsageError(f"'{args.command}' doesn't measure {one.name} of '{one.text}': {nearest(one.name, names)}")


def judged(args: argparse.Namespace, result: Result | None) -> Judgement | None:
    """Return what becomes of the conditions that were given; None: none were."""
    conditions = getattr(args, "expect", None)
    return result.verdict(*conditions, lenient=args.lenient) if conditions and result is not None else None


def publish(args: argparse.Namespace, verdict: Judgement, out: Outputs) -> None:
    """Print each condition, held or not, and write the file of JUnit."""
    is_taken = is_plain(args) or getattr(args, "write", None) == STDOUT  # By what a program reads.
    for one in verdict.checks:
        out.write(STDOUT, lambda line=one.line: say(line, stream=sys.stderr if is_taken else sys.stdout))  # type: ignore[misc]
    out.write(args.junit, lambda: write_text(args.junit, verdict.junit(_suite(args))))


def fail(args: argparse.Namespace, said: str) -> None:
    """Write the file of JUnit of a run that failed: an error for each condition, which can't be judged."""
    path: Path = args.junit
    write_text(path, junit(_suite(args), [(text, "error", said) for text in args.expect or ["run"]]))


def _suite(args: argparse.Namespace) -> str:
    return f"liteprobe {args.command}"
