# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Describes the tables of a store, and makes their rows of results: runs, figures with bounds and units, histograms, records."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.analysis.expect import Values, kind_of
from liteprobe.host.analysis.result import Result
from liteprobe.host.base import extras
from liteprobe.host.measure.percentiles import Cells, Measured

with extras.named():
    import pyarrow as pa

SCHEMA = 1  # Of what is written; a change that old programs would read wrongly takes the next number.
RUNS = "runs"  # Written last: what is in no file of runs isn't there.
DAYS = "days"  # Histograms of all runs of a compacted file together, in the place of each run's.
HISTOGRAMS, FIGURES, RECORDS = "histograms", "figures", "records"
DELAY = "delay"  # Name of what histograms are of.

_RUN = {"run": pa.string(), "time": pa.timestamp("us", "UTC")}
_PART = {**_RUN, "part": pa.string()}
_NAME = {**_PART, "name": pa.string(), "unit": pa.string()}
_CELLS = {**_NAME, "low": pa.int64(), "high": pa.int64(), "count": pa.int64()}
#: Columns of each table, as files have them.
TABLES = {
    FIGURES: pa.schema({**_NAME, **dict.fromkeys(("value", "low", "high"), pa.float64())}),
    HISTOGRAMS: pa.schema(_CELLS),
    DAYS: pa.schema(_CELLS),
    RECORDS: pa.schema({**_PART, "number": pa.int64(), "delay_ns": pa.int64()}),
    RUNS: pa.schema(
        {
            **_RUN,
            "within": pa.string(),
            "began": pa.timestamp("us", "UTC"),
            **dict.fromkeys(("command", "line", "url"), pa.string()),
            "is_complete": pa.bool_(),
            **dict.fromkeys(("ended", "clock_state"), pa.string()),
            "uncertainty_ns": pa.float64(),
            **dict.fromkeys(("version", "document"), pa.string()),
        }
    ),
}


@dataclass(frozen=True)
class StoredRun:
    """Holds what is kept of a run, of a segment of one, or of a look.

    >>> one = StoredRun("send", figures={"voice": {"lost": 2}}, cells={"voice": Cells.of_values([1000, 1001])})
    >>> [(row["name"], row["value"], row["unit"]) for row in one.tables("07", 0)["figures"].to_pylist()]
    [('lost', 2.0, '')]
    >>> [(row["low"], row["high"], row["count"]) for row in one.tables("07", 0)["histograms"].to_pylist()]
    [(1000, 1003, 2)]
    """

    command: str  # ``send``, ``soak segment``.
    figures: Mapping[str, Values]  # By part and name; one that isn't known has no row.
    cells: Mapping[str, Cells] = field(default_factory=dict)  # Delays by part (ns).
    records: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)  # By part: each delay (ns), shape (frames,).
    line: str = ""  # As it was typed.
    url: str = ""  # Of the probe.
    is_complete: bool = True
    ended: str = ""  # By what, where it did not end by itself.
    clock_state: str | None = None
    uncertainty_ns: float | None = (
        None  # Bound of the error of one delay: infinite where it isn't known; None: no delays.
    )
    document: Mapping[str, Any] | None = None  # All of it, as ``--json`` has it.
    within: str | None = None  # Name of the run that it is a part of; None: it stands alone.
    began_ns: int | None = None  # Since 1970, UTC; None: not known.

    @classmethod
    def of(cls, result: Result, command: str, **more: Any) -> "StoredRun":
        """Return what is kept of a result: its figures, and its delays in log-linear bins."""
        whole = [bool(getattr(result, name, True)) for name in ("is_complete", "complete")]
        known: dict[str, Any] = {"is_complete": all(whole), "clock_state": getattr(result, "clock_state", None)}
        known |= {"uncertainty_ns": getattr(result, "uncertainty_ns", None), **more}
        cells = {name: one.log_linear() for name, one in result.cells_by_part.items()}
        if known["uncertainty_ns"] is None and cells:
            known["uncertainty_ns"] = math.inf  # Nobody knows how far off these delays are.
        return cls(command, result.figures, cells, **known)

    def tables(self, run: str, at_ns: int) -> dict[str, pa.Table]:
        """Return its rows by table; ``run``: its name, ``at_ns``: since 1970, UTC."""
        found = {FIGURES: list(self._figures()), HISTOGRAMS: list(self._cells()), RUNS: [self._run()]}
        own = {"run": run, "time": at_ns // 1000}
        made = {name: pa.Table.from_pylist([own | row for row in rows], TABLES[name]) for name, rows in found.items()}
        made[RECORDS] = pa.concat_tables([TABLES[RECORDS].empty_table(), *self._records(own)])
        return {name: table for name, table in made.items() if len(table)}

    # # #

    def _figures(self) -> Iterator[dict[str, Any]]:
        for part, values in self.figures.items():
            for name, value in values.items():
                if value is not None:
                    ends = (value.bounds.least, value.bounds.most) if isinstance(value, Measured) else (value, value)
                    row = {"value": float(value), "low": float(ends[0]), "high": float(ends[1])}
                    yield {"part": part, "name": name, "unit": kind_of(name).unit, **row}

    def _cells(self) -> Iterator[dict[str, Any]]:
        for part, cells in self.cells.items():
            parts = (each.tolist() for each in (cells.lows, cells.highs, cells.counts))
            for low, high, count in zip(*parts, strict=True):
                yield {"part": part, "name": DELAY, "unit": "ns", "low": low, "high": high, "count": count}

    def _records(self, own: Mapping[str, Any]) -> Iterator[pa.Table]:
        for part, delays in self.records.items():
            same = {
                name: pa.repeat(pa.scalar(value, _PART[name]), len(delays))
                for name, value in {**own, "part": part}.items()
            }
            yield pa.table({**same, "number": np.arange(len(delays)), "delay_ns": delays}, TABLES[RECORDS])

    def _run(self) -> dict[str, Any]:
        from importlib import metadata

        names = "within command line url is_complete ended clock_state uncertainty_ns"
        document = None if self.document is None else json.dumps(self.document)
        row = {name: getattr(self, name) for name in names.split()}
        began = None if self.began_ns is None else self.began_ns // 1000
        return row | {"began": began, "document": document, "version": metadata.version("liteprobe")}
