# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes results into the files that a command was given, as they come, so that an interrupt or a fault keeps them."""

import argparse
import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.output import STDOUT, named, write_json, write_text
from liteprobe.host.cli import tables
from liteprobe.host.report import files
from liteprobe.host.suites.sweep import Sweep

AGAIN_S = 1.0  # A long run is written as often, so that little is lost even when the program is killed.


class Results:
    """Sweeps that grow: written now and then, and whole at the end, whatever the end is.

    ``args`` have ``json``, ``csv`` and ``report``; ``asked``: programs that were asked for, in all sweeps; ``report`` writes
    the report, from its path, the sweeps and their document.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        asked: int,
        show: Callable[[list[Sweep]], None],
        report: Callable[[Path, list[Sweep], dict[str, Any]], None],
    ) -> None:
        self._args, self._asked, self._show, self._report = args, asked, show, report
        self._sweeps: list[Sweep] = []
        self._due_s = time.monotonic() + AGAIN_S

    @property
    def measured(self) -> int:
        return sum(len(sweep.rows) for sweep in self._sweeps)

    def take(self, sweeps: list[Sweep]) -> None:
        self._sweeps = sweeps
        now_s = time.monotonic()
        if now_s >= self._due_s:
            self._write(is_end=False)
            took_s = time.monotonic() - now_s
            self._due_s = now_s + took_s + max(AGAIN_S, 20 * took_s)

    @contextmanager
    def written(self) -> Iterator[None]:
        """Print and write when the body is done, or when it fails after something was measured."""
        try:
            yield
        except (ProbeError, KeyboardInterrupt) as end:
            if self.measured:
                is_cut = bool(getattr(end, "results", []))
                self._finish(is_whole=False)
                last = ", the last one in part" if is_cut else ""
                end.args = (f"{end}; {self.measured} of {self._asked} programs were measured{last}", *end.args[1:])
            raise
        self._finish()
        if self._args.report:
            print(f"report: {self._args.report}", file=sys.stderr)

    def _finish(self, is_whole: bool = True) -> None:
        if self._args.json != STDOUT:
            self._show(self._sweeps)
        content = self._write(is_end=True, is_whole=is_whole)
        if self._args.report:
            with named(self._args.report):
                self._report(self._args.report, self._sweeps, content)

    def _write(self, is_end: bool, is_whole: bool = True) -> dict[str, Any]:
        content = files.document(self._sweeps, typed())
        content["is_complete"] = is_whole and self.measured == self._asked
        if self._args.json and (is_end or _can_be_written_anew(self._args.json)):
            write_json(self._args.json, content)
        if self._args.csv and (is_end or _can_be_written_anew(self._args.csv)):
            write_text(self._args.csv, _csv(self._sweeps))
        return content


def typed() -> list[str]:
    """Return the command line, for documents."""
    return ["liteprobe", *sys.argv[1:]]


def publish(
    args: argparse.Namespace,
    table: RenderableType,
    content: Any,
    write_page: Callable[[Path, dict[str, Any]], None] | None = None,
) -> None:
    """Print and write what came of a command: its table, unless JSON takes its place, its document, and its page."""
    if args.json != STDOUT:
        tables.console().print(table)
    if args.json:
        write_json(args.json, content)
    if write_page and args.report:
        with named(args.report):
            write_page(args.report, content)
        print(f"report: {args.report}", file=sys.stderr)


def _can_be_written_anew(path: Path) -> bool:
    """Return whether what is written replaces what was; in a pipe, a device or standard output one follows the other."""
    return path != STDOUT and (path.is_file() or not path.exists())


def _csv(sweeps: list[Sweep]) -> str:
    text = io.StringIO()
    files.write_csv(text, sweeps)
    return text.getvalue()
