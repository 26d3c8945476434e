# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes and reads the raw log of a PPS: one line an edge, as the gateware stamped it, with what the clock reported then."""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import TICK_NS, TICK_PS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.text import read_text
from liteprobe.host.base.validate import validated
from liteprobe.host.clock.clock import ClockReport, Edge

# Logs from before the capture was finer than a tick have no quantum.
HEADING_FORM = re.compile(r"# liteprobe-pps 1, period_ns (\d+)(?:, quantum_ps (\d+))?", re.ASCII)
STAMP = ("count", "now_ns", "now_fraction", "ticks", "width_ticks", "is_spurious", "early_ps")
COLUMNS = (*STAMP, "qerr_ps", "state", "offset_ns", "uncertainty_ns")
NEEDED = ("count", "now_ns", "now_fraction", "ticks", "is_spurious")
FRACTION_ONE = 2**32


@dataclass(frozen=True)
class ClockLog:
    """A PPS as it was logged, spurious edges left out; each array has shape (edges,)."""

    period_ns: int  # Nominal.
    index: NDArray[np.int64]  # Number of the period of each edge, from 0; where periods are missing, it jumps.
    now_ns: NDArray[np.int64]
    fraction_ns: NDArray[np.float64]  # With ``now_ns``: the time of the edge's tick, by the probe's clock.
    ticks: NDArray[np.int64]  # Of the oscillator, at the same moment.
    #: How much later than the receiver's own second the edge came, as the receiver says; NaN: it says nothing.
    qerr_ns: NDArray[np.float64]
    #: The edge came so long after the beginning of that tick: the middle of the part of the tick that was captured.
    late_ns: NDArray[np.float64]
    quantum_ns: float  # That part.
    #: 95 % bound of the clock's error as it was reported then; NaN: not known, or not logged.
    bound_ns: NDArray[np.float64]
    state: tuple[str, ...]  # Of the clock, as it was reported then; empty where it was not logged.

    @property
    def offset_ns(self) -> NDArray[np.float64]:
        """Clock less PPS (ns) at each edge, which lies ``late_ns`` behind the beginning of the tick that stamps it.

        The nearest whole period is taken for the true time: whole periods that the clock is off stay unseen.
        """
        ahead = (self.now_ns + self.period_ns // 2) % self.period_ns - self.period_ns // 2
        return np.asarray(ahead + self.fraction_ns + self.late_ns - np.nan_to_num(self.qerr_ns), np.float64)

    @property
    def oscillator_ns(self) -> NDArray[np.float64]:
        """Oscillator at 8 ns a tick less PPS (ns), from 0 at the first edge: it grows by the oscillator's rate error."""
        passed = TICK_NS * (self.ticks - self.ticks[0]) - self.period_ns * self.index
        late = self.late_ns - np.nan_to_num(self.qerr_ns)
        return np.asarray(passed + (late - late[0]), np.float64)


class Writer:
    """Writes a log, a line an edge, flushed at once.

    ``quantum_ps``: what the capture of an edge is rounded to.
    """

    def __init__(self, stream: TextIO, period_ns: int, quantum_ps: int = TICK_PS) -> None:
        self._stream = stream
        stream.write(f"# liteprobe-pps 1, period_ns {period_ns}, quantum_ps {quantum_ps}\n")
        self._lines = csv.writer(stream, lineterminator="\n")
        self._lines.writerow(COLUMNS)

    def write(self, edge: Edge, status: ClockReport, qerr_ps: int | None = None) -> None:
        """Write an edge, and what was reported of the clock last."""
        bound = "" if status.uncertainty_ns is None else f"{status.uncertainty_ns:.3f}"
        reported = (status.name, f"{status.offset_ns:.3f}", bound)
        self._lines.writerow([*map(int, astuple(edge)), "" if qerr_ps is None else qerr_ps, *reported])
        self._stream.flush()


@validated
def read(path: Path) -> ClockLog:
    """Return a log from its file.

    Raises UsageError when it can't be read, is not a log, is damaged, or holds fewer than three edges.
    """
    text = read_text(path, "one that 'liteprobe clock log --out FILE' has made")
    lines = text.splitlines()
    heading = HEADING_FORM.fullmatch(lines[0]) if lines else None
    if heading is None:
        raise UsageError(f"{path} is not a PPS log: make one by 'liteprobe clock log --out FILE'")
    if not text.endswith("\n"):
        lines.pop()  # Still being written.
    rows = [(row, reported) for row, reported in _rows(path, lines[1:]) if not row["is_spurious"]]
    if len(rows) < 3:
        raise UsageError(f"{path} holds {len(rows)} edges: log for longer, three periods at least")
    return _log(
        int(heading[1]), int(heading[2] or TICK_PS), [row for row, _ in rows], [reported for _, reported in rows]
    )


class _Reported(NamedTuple):
    """Holds what the clock reported at an edge."""

    state: str
    bound_ns: float


def _rows(path: Path, lines: Iterable[str]) -> Iterator[tuple[dict[str, int | None], _Reported]]:
    for number, row in enumerate(csv.DictReader(lines), 3):
        try:
            found: dict[str, int | None] = {name: int(row[name]) for name in NEEDED}
            found["qerr_ps"] = int(row["qerr_ps"]) if row.get("qerr_ps") else None
            found["early_ps"] = int(row.get("early_ps") or 0)
            reported = _Reported(row.get("state") or "", float(row.get("uncertainty_ns") or "nan"))
        except (KeyError, TypeError, ValueError):
            raise UsageError(f"line {number} of {path} is not an edge: cut it off there, or log anew") from None
        yield found, reported


def _log(period_ns: int, quantum_ps: int, rows: list[dict[str, int | None]], reported: list[_Reported]) -> ClockLog:
    def column(name: str) -> list[int]:
        return [value for row in rows if (value := row[name]) is not None]

    # Python's integers: now is beyond what a double holds.
    now, fraction, ticks, early = (column(name) for name in ("now_ns", "now_fraction", "ticks", "early_ps"))
    qerr = [np.nan if row["qerr_ps"] is None else row["qerr_ps"] / 1e3 for row in rows]
    return ClockLog(
        period_ns=period_ns,
        index=_indices(period_ns, ticks),
        now_ns=np.array(now, np.int64),
        fraction_ns=np.array([float(Fraction(part, FRACTION_ONE)) for part in fraction]),
        ticks=np.array(ticks, np.int64),
        qerr_ns=np.array(qerr),
        late_ns=(TICK_PS - quantum_ps / 2 - np.array(early, np.float64)) / 1e3,
        quantum_ns=quantum_ps / 1e3,
        bound_ns=np.array([row.bound_ns for row in reported]),
        state=tuple(row.state for row in reported),
    )


def _indices(period_ns: int, ticks: list[int]) -> NDArray[np.int64]:
    """Return the period that each edge belongs to, counted on from edge to edge, so that no rate error adds up."""
    steps = [round(Fraction(TICK_NS * (b - a), period_ns)) for a, b in pairwise(ticks)]
    return np.concatenate([[0], np.cumsum(np.array(steps, np.int64))])
