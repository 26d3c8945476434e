# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Answers questions about a store by DuckDB: SQL, and those that are ready: runs, percentiles, two runs, a day's promise."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, TypeVar

import numpy as np

from liteprobe.host.analysis.expect import Condition, Value
from liteprobe.host.analysis.result import ratio, widened
from liteprobe.host.base import extras
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.text import visible
from liteprobe.host.measure.percentiles import Bounds, Cells, Measured
from liteprobe.host.store.store import ResultStore, StoredFile
from liteprobe.host.store.tables import DAYS, DELAY, HISTOGRAMS, RUNS, TABLES

with extras.named():
    import duckdb
    import pyarrow as pa
    import pyarrow.dataset as ds

AnswerT = TypeVar("AnswerT")
PATIENCE_S = 30.0  # With files that go while they are read: a compaction is at it.
PAUSE_S = 0.02  # Before the second try; each later one waits so much longer.
DELAYS = "delays"  # Histograms as they are read the fastest: of compacted days those of all their runs together.
HELD = {True: "held", False: "NOT HELD", None: "not known"}
OF_DAYS = ("sent", "received", "lost", "loss_ratio", "least", "p50", "p99", "p99_9", "most")
FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)
PLACE = pa.schema({"date": pa.date32(), "probe": pa.string()})  # Columns that the path of a file says.


@dataclass(frozen=True)
class Answer:
    """Holds rows of an answer, by column: plain values, or numbers with bounds."""

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    left_out: tuple[str, ...] = ()  # Damaged files, of which it knows nothing.

    def plain(self) -> list[dict[str, Any]]:
        """Return the rows as JSON and CSV have them: bounds as ``..._low`` and ``..._high`` beside the number."""
        return [_plain(row) for row in self.rows]


class StoreQuery:
    """Asks a store.

    >>> import tempfile
    >>> from liteprobe.host.store.tables import StoredRun
    >>> store = ResultStore(tempfile.mkdtemp())
    >>> name = store.keep(StoredRun("send", {"voice": {"lost": 2}}, {"voice": Cells.of_values([1000, 9000])}))
    >>> query = StoreQuery(store)
    >>> query.sql("SELECT part, value FROM figures").rows
    ({'part': 'voice', 'value': 2.0},)
    >>> query.percentiles([50]).plain()
    [{'probe': 'unknown', 'part': 'voice', 'samples': 2, 'p50': 1001.5, 'p50_low': 1000.0, 'p50_high': 1003.0, 'error_ns': None}]

    Parameters
    ----------
    store : ResultStore
    since, until : datetime or None
        From when, and until when runs count that ended then, the second one not included (UTC where it has no zone).
    probe, part : str or None
        Of which probe, and of which stream, port, class or program of ready questions; None: of all.
    """

    def __init__(
        self,
        store: ResultStore,
        since: datetime | None = None,
        until: datetime | None = None,
        probe: str | None = None,
        part: str | None = None,
    ) -> None:
        self._store = store
        self._since, self._until = (one and (one if one.tzinfo else one.replace(tzinfo=UTC)) for one in (since, until))
        self._probe, self._part = probe, part

    def sql(self, text: str) -> Answer:
        """Return the answer to SQL about the tables runs, figures, histograms, records, and delays, which is the quick one.

        Raises
        ------
        UsageError
            When it can't be understood, in DuckDB's words, or the store is empty.
        ProbeError
            When it fails.
        """
        return self._asked((*(name for name in TABLES if name != DAYS), DELAYS), lambda base: _select(base, text))

    def runs(self) -> Answer:
        """Return a row for each run, the last one first."""
        text = "SELECT run, time, probe, command, is_complete, ended, line FROM runs ORDER BY time DESC, run"
        return self._asked((RUNS,), lambda base: _select(base, text))

    def percentiles(self, percents: Sequence[float], by_date: bool = False) -> Answer:
        """Return percentiles of the delays of all runs together, a row for each probe and part, and each day with ``by_date``.

        Each has the bounds of its bin; ``error_ns``: greatest bound of the error of one delay beside that, null: not known.
        """
        for one in percents:
            if not 0 <= one <= 100:
                raise UsageError(f"there is no percentile {one:g}: give 0 to 100")
        keys = ("date", "probe", "part") if by_date else ("probe", "part")

        def answer(base: "duckdb.DuckDBPyConnection") -> list[dict[str, Any]]:
            errors = _errors(base, keys[:-1])
            rows = []
            for key, cells in self._cells(base, keys).items():
                row: dict[str, Any] = dict(zip(keys, key, strict=True)) | {"samples": cells.total}
                row |= {named(one): Measured.of(cells.percentile(one)) for one in percents}
                rows.append(row | {"error_ns": _finite(errors.get(key[:-1], math.inf))})
            return rows

        columns = (*keys, "samples", *(named(one) for one in percents), "error_ns")
        return self._asked((DELAYS, RUNS), answer, columns)

    def compare(self, first: str, second: str) -> Answer:
        """Return the figures of two runs side by side, and whether they differ: they do where their bounds don't meet.

        ``first``, ``second``: names, or how they begin. Raises UsageError where there is no such run, or several.
        """

        def answer(base: "duckdb.DuckDBPyConnection") -> list[dict[str, Any]]:
            found = [_run_of(base, one) for one in (first, second)]
            sides = [_figures(base, one) for one in found]
            rows = []
            for key in dict.fromkeys([*sides[0], *sides[1]]):
                a, b = (side.get(key) for side in sides)
                known = a is not None and b is not None
                row = dict(zip(("part", "name", "unit"), key, strict=True)) | {"first": a, "second": b}
                rows.append(row | {"difference": b - a if known else None, "differs": _differs(a, b)})  # type: ignore[operator]
            return rows

        return self._asked(
            ("figures", RUNS), answer, ("part", "name", "unit", "first", "second", "difference", "differs")
        )

    def delays_of(self, run: str) -> dict[str, Cells]:
        """Return the histogram of delays of each part of one run; ``run``: its name, or how it begins.

        Raises UsageError where there is no such run, or several.
        """

        def answer(base: "duckdb.DuckDBPyConnection") -> list[dict[str, Any]]:
            text = "SELECT part, low, high, count FROM histograms WHERE run = $1 AND name = $2 ORDER BY part, low"
            found = base.execute(text, [_run_of(base, run), DELAY]).fetchall()
            by_part: dict[str, list[tuple[int, int, int]]] = {}
            for part, *cell in found:
                by_part.setdefault(part, []).append(tuple(cell))
            return [{"part": part, "cells": Cells.of(cells)} for part, cells in by_part.items()]

        return {row["part"]: row["cells"] for row in self._asked((HISTOGRAMS, RUNS), answer, ("part", "cells")).rows}

    def days(self, conditions: Sequence[str] = ()) -> Answer:
        """Return counts and delays by day, probe and part, and whether conditions like ``p99 < 10ms`` held on each day.

        Delays have the bounds of their bin and of the clock; a condition whose limit lies within them is not known.
        Raises UsageError where a condition can't be read, or is about what days don't have.
        """
        asked = [Condition.of(text) for text in conditions]
        for one in asked:
            if one.name not in OF_DAYS:
                raise UsageError(f"days don't have {one.name} of '{one.text}': give one of {', '.join(OF_DAYS)}")
        keys = ("date", "probe", "part")

        def answer(base: "duckdb.DuckDBPyConnection") -> list[dict[str, Any]]:
            counts, cells = self._counts(base, keys), self._cells(base, keys)
            errors = _errors(base, keys[:-1])
            rows = []
            for key in sorted({*counts, *cells}):
                values: dict[str, Value] = dict(counts.get(key, {"sent": None, "received": None, "lost": None}))
                values["loss_ratio"] = Measured.of(ratio(values["lost"], values["sent"]))  # type: ignore[arg-type]
                if key in cells:
                    ends = {"least": 0, "p50": 50, "p99": 99, "p99_9": 99.9, "most": 100}
                    delays: dict[str, Value] = {
                        name: Measured.of(cells[key].percentile(at)) for name, at in ends.items()
                    }
                    values |= widened(delays, errors.get(key[:-1], math.inf))
                row = dict(zip(keys, key, strict=True)) | {name: values.get(name) for name in OF_DAYS}
                rows.append(
                    row | {text: _verdict(one, key[-1], values) for text, one in zip(conditions, asked, strict=True)}
                )
            return rows

        columns = (*keys, *OF_DAYS, *conditions)
        return self._asked(("figures", DELAYS, RUNS), answer, columns)

    # # #

    def _asked(
        self,
        tables: Sequence[str],
        answer: Callable[["duckdb.DuckDBPyConnection"], Any],
        columns: tuple[str, ...] = (),
    ) -> Answer:
        """Return an answer from the files that count; one that is damaged is left out, and named."""
        left_out: list[str] = []
        end_s, pause_s = time.monotonic() + PATIENCE_S, 0.0
        while time.monotonic() < end_s:
            time.sleep(pause_s)
            pause_s += PAUSE_S  # A compaction beside it deletes what was listed.
            files = [one for one in self._store.files() if one.path not in left_out and self._is_in_span(one)]
            if not files and not left_out:
                raise UsageError(
                    f"{self._store.place} has no runs of then: look at --since, --until and --probe, or keep some"
                )
            with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as base:
                for name in tables:
                    base.register(name, self._relation(name, files))
                try:
                    found = answer(base)
                except (duckdb.Error, pa.ArrowException, OSError) as error:
                    damaged = self._damaged(tables, files, left_out)
                    if not damaged and not _is_missing(error):
                        kind = UsageError if isinstance(error, duckdb.ProgrammingError) else ProbeError
                        raise kind(f"the store can't answer that: {visible(str(error))}") from None
                    continue
            if isinstance(found, Answer):
                return Answer(found.columns, found.rows, tuple(left_out))
            return Answer(columns, tuple(found), tuple(left_out))
        raise ProbeError(
            f"{self._store.place} changes faster than it can be read: ask again when no compaction is at it"
        )

    def _damaged(self, tables: Sequence[str], files: Sequence[StoredFile], left_out: list[str]) -> bool:
        """Add the files of tables that can't be read; return whether there are any."""
        before = len(left_out)
        wanted = {*tables, *((HISTOGRAMS, DAYS) if DELAYS in tables else ())}
        for one in files:
            if one.table in wanted:
                try:
                    self._store.read(one)
                except FileNotFoundError:
                    continue  # Another has come in its place.
                except (pa.ArrowException, OSError):
                    left_out.append(one.path)
        return len(left_out) > before

    def _is_in_span(self, one: StoredFile) -> bool:
        """Return whether a file may have rows that are asked for."""
        first = self._since and self._since.astimezone(UTC).date().isoformat()
        last = self._until and self._until.astimezone(UTC).date().isoformat()
        is_near = (not first or one.date >= first) and (not last or one.date <= last)
        return is_near and self._probe in (None, one.probe)

    def _relation(self, name: str, files: Sequence[StoredFile]) -> Any:
        """Return a table: of ``delays`` the histograms of whole days, where a compaction has made them."""
        chosen = [one for one in files if one.table == name]
        if name == DELAYS:
            whole = {one.name for one in files if one.table == DAYS and self._has_whole(one.date)}
            chosen = [one for one in files if one.table == (DAYS if one.name in whole else HISTOGRAMS)]
        kinds = pa.schema([*TABLES[HISTOGRAMS if name == DELAYS else name], *PLACE])
        if not chosen:
            return kinds.empty_table()
        parts = [FORMAT.make_fragment(one.path, self._store.system, _where(one)) for one in chosen]
        found = ds.FileSystemDataset(parts, kinds, FORMAT, self._store.system)
        if self._since:
            found = found.filter(ds.field("time") >= pa.scalar(self._since, pa.timestamp("us", "UTC")))
        if self._until:
            found = found.filter(ds.field("time") < pa.scalar(self._until, pa.timestamp("us", "UTC")))
        return found

    def _has_whole(self, day: str) -> bool:
        """Return whether all of a day is asked for."""
        begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
        is_begun = self._since is None or self._since <= begin
        return is_begun and (self._until is None or (self._until - begin).total_seconds() >= 86_400)

    def _cells(self, base: "duckdb.DuckDBPyConnection", keys: Sequence[str]) -> dict[tuple[Any, ...], Cells]:
        """Return merged histograms of delays by ``keys``."""
        by = ", ".join(keys)
        where = "name = $delay AND ($part IS NULL OR part = $part)"
        text = (
            f"SELECT {by}, low, high, sum(count)::BIGINT AS count FROM delays WHERE {where} GROUP BY ALL ORDER BY {by}"
        )
        table: Any = base.sql(text, params={"delay": DELAY, "part": self._part}).to_arrow_table()
        columns = [table[name].to_numpy() for name in ("low", "high", "count")]
        groups: dict[tuple[Any, ...], list[int]] = {}
        for place, key in enumerate(zip(*(table[name].to_pylist() for name in keys), strict=True)):
            groups.setdefault(key, []).append(place)
        return {key: Cells(*(one[np.array(places)] for one in columns)) for key, places in groups.items()}

    def _counts(
        self, base: "duckdb.DuckDBPyConnection", keys: Sequence[str]
    ) -> dict[tuple[Any, ...], dict[str, Value]]:
        """Return sums of counts by ``keys``; what segments have isn't counted again by the run that they are of."""
        names = ("sent", "received", "lost")
        sums = ", ".join(f"sum(value) FILTER (name = '{name}')::BIGINT AS {name}" for name in names)
        text = (
            f"SELECT {', '.join(keys)}, {sums} FROM figures WHERE name IN {names} AND ($part IS NULL OR part = $part) "
            "AND run NOT IN (SELECT within FROM runs WHERE within IS NOT NULL) GROUP BY ALL"
        )
        found = base.execute(text, {"part": self._part}).fetchall()
        return {row[: len(keys)]: dict(zip(names, row[len(keys) :], strict=True)) for row in found}


def named(percent: float) -> str:
    """Return the name of a percentile.

    >>> named(99), named(99.9)
    ('p99', 'p99_9')
    """
    return f"p{percent:g}".replace(".", "_")


# # #


def _select(base: "duckdb.DuckDBPyConnection", text: str) -> Answer:
    found = base.execute(text)
    columns = tuple(one[0] for one in found.description or ())
    return Answer(columns, tuple(dict(zip(columns, row, strict=True)) for row in found.fetchall()))


def _where(one: StoredFile) -> ds.Expression:
    day = pa.scalar(date.fromisoformat(one.date), pa.date32())
    return (ds.field("date") == day) & (ds.field("probe") == one.probe)


def _is_missing(error: BaseException) -> bool:
    return isinstance(error, FileNotFoundError) or "No such file" in str(error) or "Path does not exist" in str(error)


def _errors(base: "duckdb.DuckDBPyConnection", keys: Sequence[str]) -> dict[tuple[Any, ...], float]:
    """Return the greatest bound of the error of one delay by ``keys`` (ns)."""
    text = f"SELECT {', '.join(keys)}, max(uncertainty_ns) FROM runs WHERE uncertainty_ns IS NOT NULL GROUP BY ALL"
    return {row[:-1]: row[-1] for row in base.execute(text).fetchall()}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _run_of(base: "duckdb.DuckDBPyConnection", name: str) -> str:
    found = [row[0] for row in base.execute("SELECT run FROM runs WHERE starts_with(run, $1)", [name]).fetchall()]
    if len(found) != 1 or not name:
        what = f"{len(found):,} runs begin" if found and name else "no run begins"
        raise UsageError(f"{what} with '{visible(name)}': see the names with --runs")
    return str(found[0])


def _figures(base: "duckdb.DuckDBPyConnection", run: str) -> dict[tuple[str, str, str], Measured]:
    text = "SELECT part, name, unit, value, low, high FROM figures WHERE run = $1"
    found = base.execute(text, [run]).fetchall()
    return {row[:3]: Measured(row[3], Bounds(row[4], row[5])) for row in found}


def _differs(a: Measured | None, b: Measured | None) -> str:
    if a is None or b is None:
        return "not known"
    return "yes" if a.bounds.most < b.bounds.least or b.bounds.most < a.bounds.least else "no"


def _verdict(one: Condition, part: str, values: Mapping[str, Value]) -> str:
    return HELD[one.holds(values.get(one.name))] if one.part in ("", part) else ""


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as JSON and CSV can hold it."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Measured):
            ends = (_finite(value.bounds.least), _finite(value.bounds.most))
            found |= {name: float(value), f"{name}_low": ends[0], f"{name}_high": ends[1]}
        elif isinstance(value, float):
            found[name] = _finite(value)
        else:
            found[name] = value if value is None or isinstance(value, int | str) else str(value)
    return found
