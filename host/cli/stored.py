# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Keeps what came of a command in the store that it was given: ``--store``. Stands alone: it loads Arrow, which takes a while."""

import argparse
import shlex
import sys
import time
from collections.abc import Mapping
from typing import Any

from liteprobe.host.analysis.result import Result
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.output import Outputs
from liteprobe.host.base.text import say
from liteprobe.host.cli.verdicts import IDLE
from liteprobe.host.store.store import ResultStore, new_name
from liteprobe.host.store.tables import StoredRun


class Keeper:
    """Keeps the runs of one command line in a store; raises UsageError where that is none, OSError where it can't be reached."""

    def __init__(self, args: argparse.Namespace) -> None:
        if idle := next((name for name in IDLE if getattr(args, name, False)), ""):
            raise UsageError(f"--{idle} measures nothing that --store could keep: leave one of them out")
        self.store = ResultStore(args.store)
        self._command = args.command
        self.url: str = getattr(args, "probe", "")  # By which the store knows what was measured.
        self._has_records = bool(getattr(args, "store_records", False))
        self._began_ns = self._segment_ns = time.time_ns()
        self._name: str | None = None  # Of what its segments are within.
        self._segments = Outputs()

    def keep(
        self, out: Outputs, result: Result, content: Mapping[str, Any] | None, cause: BaseException | None, **more: Any
    ) -> None:
        """Keep a result, and leave it to ``out`` to say where it could not be.

        ``content``: its document; ``cause``: what ended it too soon; ``more``: fields of `StoredRun` that are other ones.
        """
        ended = "" if cause is None else str(cause) or type(cause).__name__
        own: dict[str, Any] = {"url": self.url, "line": shlex.join(["liteprobe", *sys.argv[1:]]), "ended": ended}
        records = result.records_by_part if self._has_records else {}
        if self._has_records and not any(map(len, records.values())):
            say("no delay is known one by one here: the store has histograms alone", stream=sys.stderr)
        own |= {"document": content, "began_ns": self._began_ns, "records": records}
        run = StoredRun.of(result, more.pop("command", self._command), **{**own, **more})
        out.take(self._segments)
        out.write(self.store.place, lambda: self.store.keep(run, name=self._name))

    def keep_segment(self, result: Result) -> None:
        """Keep what came of a while of a run, as it ends; `keep` says where it could not be."""
        at_ns = time.time_ns()
        self._name = self._name or new_name(self._began_ns)
        own = {"url": self.url, "within": self._name, "began_ns": self._segment_ns}
        run = StoredRun.of(result, f"{self._command} segment", **own)
        self._segments.write(self.store.place, lambda: self.store.keep(run, at_ns))
        self._segment_ns = at_ns
