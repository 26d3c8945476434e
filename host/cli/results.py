# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes results into the files that a command was given, as they come, so that an interrupt or a fault keeps them."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from rich.console import RenderableType

from liteprobe.host.analysis.result import Result
from liteprobe.host.analysis.rows import worst_bound_ns
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.output import STDOUT, Lines, Outputs, outputs, write_json, write_text
from liteprobe.host.base.text import say
from liteprobe.host.cli import tables, verdicts
from liteprobe.host.cli.arguments import is_plain
from liteprobe.host.report import files
from liteprobe.host.suites.sweep import Sweep, Sweeps

LookT = TypeVar("LookT")
LOOK_S = 0.1  # Of this machine, from one look that is written to the next, at least.
AGAIN_S = 1.0  # A long run is written as often, so that little is lost even when the program is killed.


class Looks:
    """Writes looks while something runs, a line of JSON each, and last the result: ``--jsonl``."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lines: Lines | None = None
        self._outputs = Outputs()
        self._due_s, self._again_s = 0.0, time.monotonic() + AGAIN_S

    def beside(self, show: Callable[[LookT], None] | None, document: Callable[[LookT], dict[str, Any]]) -> Any:
        """Return what shows a look and writes it, but for those that come too fast; None where neither is wanted."""
        if self._path is None:
            return show

        def both(look: LookT) -> None:
            if show:
                show(look)
            if time.monotonic() >= self._due_s:
                self._due_s = time.monotonic() + LOOK_S
                self.write(document(look))

        return both

    def write_now_and_then(self, content: dict[str, Any]) -> None:
        """Write a look of something that takes long, but for those that come too fast."""
        if self._path and time.monotonic() >= self._again_s:
            self._again_s = time.monotonic() + AGAIN_S
            self.write(content)

    def write(self, content: dict[str, Any], kind: str = "look") -> None:
        """Write a look."""
        self._outputs.write(self._path, lambda: self._line({"kind": kind, **content}))

    def end(self, out: Outputs, content: dict[str, Any]) -> None:
        """Write the result, and leave it to ``out`` to say what could not be written."""
        self.write(content, "result")
        out.take(self._outputs)
        if self._lines:
            out.write(self._path, self._lines.close)

    def _line(self, content: dict[str, Any]) -> None:
        if self._lines is None and self._path:
            self._lines = Lines(self._path)
        if self._lines:
            self._lines.write(content)


def looks_of(args: argparse.Namespace) -> Looks:
    """Return what writes looks, one for a command line."""
    found: Looks = vars(args).setdefault("looks", Looks(getattr(args, "jsonl", None)))
    return found


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
        self._looks = looks_of(args)
        self._due_s = time.monotonic() + AGAIN_S

    @property
    def measured(self) -> int:
        return sum(len(sweep.rows) for sweep in self._sweeps)

    def take(self, sweeps: list[Sweep]) -> None:
        self._sweeps = sweeps
        for one in sweeps:
            self._looks.write({"name": one.name, **one.rows[-1]})
        now_s = time.monotonic()
        if now_s >= self._due_s:
            # What can't be written now is tried again at the end.
            self._write(Outputs(), self._document(), is_end=False)
            took_s = time.monotonic() - now_s
            self._due_s = now_s + took_s + max(AGAIN_S, 20 * took_s)

    @contextmanager
    def written(self) -> Iterator[None]:
        """Print and write when the body is done, or when it fails after something was measured."""
        try:
            yield
        except (ProbeError, KeyboardInterrupt, OSError) as end:
            if self.measured:
                is_cut = bool(getattr(end, "results", []))
                if not isinstance(end, OSError):
                    last = ", the last one in part" if is_cut else ""
                    said = f"{end}; {self.measured} of {self._asked} programs were measured{last}"
                    end.args = (said, *end.args[1:])
                self._finish(end)
            raise
        self._finish()

    def _finish(self, cause: BaseException | None = None) -> None:
        sweeps = self._sweeps
        both = Sweeps(dict(zip(("there", "back"), sweeps, strict=False)))
        verdict = verdicts.judged(self._args, both if len(sweeps) > 1 else sweeps[0] if sweeps else None)
        with outputs(cause) as out:
            if not is_plain(self._args):
                out.write(STDOUT, lambda: self._show(self._sweeps))
            content = self._document(is_whole=cause is None)
            content |= {"expect": verdict.document()} if verdict is not None else {}
            self._write(out, content, is_end=True)
            self._looks.end(out, content)
            if keeper := getattr(self._args, "keeper", None):
                for one in sweeps:
                    is_whole = content["is_complete"] and all(row["complete"] for row in one.rows)
                    known = {"is_complete": is_whole, "url": one.url, "uncertainty_ns": worst_bound_ns(one.rows)}
                    keeper.keep(out, one, one.to_dict(), cause, **known)
            report = self._args.report
            if out.write(report, lambda: self._report(report, self._sweeps, content)) and cause is None:
                say(f"report: {report}", stream=sys.stderr)
            if verdict is not None:
                verdicts.publish(self._args, verdict, out)
        if verdict is not None and cause is None:
            verdict.require()

    def _document(self, is_whole: bool = True) -> dict[str, Any]:
        content = files.document(self._sweeps, typed())
        return content | {"is_complete": is_whole and self.measured == self._asked}

    def _write(self, out: Outputs, content: dict[str, Any], is_end: bool) -> None:
        def wanted(path: Path | None) -> Path | None:
            return path if path and (is_end or _can_be_written_anew(path)) else None

        out.write(wanted(self._args.json), lambda: write_json(self._args.json, content))
        out.write(wanted(self._args.csv), lambda: write_text(self._args.csv, files.as_csv(self._sweeps)))


def typed() -> list[str]:
    """Return the command line, for documents."""
    return ["liteprobe", *sys.argv[1:]]


def publish(
    args: argparse.Namespace,
    table: RenderableType,
    content: Any,
    write_page: Callable[[Path, dict[str, Any]], None] | None = None,
    cause: BaseException | None = None,
    result: Result | None = None,
) -> None:
    """Print and write what came of a command: its table, unless JSON takes its place, its document, and its page.

    ``cause``: what ended it, where it did not end as it was to. ``result``: what ``--expect`` is about; raises
    ExpectationError, after all is written, where a condition doesn't hold.
    """
    verdict = verdicts.judged(args, result)
    content = {**content, "expect": verdict.document()} if verdict is not None else content
    with outputs(cause) as out:
        if not is_plain(args):
            out.write(STDOUT, lambda: tables.console().print(table))
        out.write(args.json, lambda: write_json(args.json, content))
        looks_of(args).end(out, content)
        if result is not None and (keeper := getattr(args, "keeper", None)):
            keeper.keep(out, result, content, cause)
        if result is not None:
            out.write(args.csv, lambda: write_text(args.csv, files.table_as_csv(result.table())))
        elif path := getattr(args, "csv", None):
            rows = [files.flat(row) for row in content.get("ports", ())]
            out.write(path, lambda: write_text(path, files.csv_of(rows)))
        if write_page and out.write(args.report, lambda: write_page(args.report, content)):
            say(f"report: {args.report}", stream=sys.stderr)
        if verdict is not None:
            verdicts.publish(args, verdict, out)
    if verdict is not None and cause is None:
        verdict.require()


def publish_run(
    args: argparse.Namespace,
    form: str,
    facts: Mapping[str, Any],
    final: Callable[[Any], RenderableType],
    write_page: Callable[[Path, Any, Mapping[str, Any]], None],
    result: Any,
    cause: BaseException | None = None,
) -> None:
    """Print and write the result of one run as `publish` does; ``facts``: of the probe, ``form``: the format of its JSON."""
    content = files.of_run(form, args.probe, facts, typed()) | result.to_dict()
    publish(args, final(result), content, lambda path, plain: write_page(path, result, plain), cause, result)


def _can_be_written_anew(path: Path) -> bool:
    """Return whether what is written replaces what was; in a pipe, a device or standard output one follows the other."""
    return path != STDOUT and (path.is_file() or not path.exists())
