# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the figures of streams while they run and at the end: a row each, every figure with its error or left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import OVERHEAD
from liteprobe.host.analysis.columns import MEGA, Column, Columns, delays
from liteprobe.host.analysis.result import PartFigures, Result, of_cells
from liteprobe.host.measure.percentiles import Bounds, Cells
from liteprobe.host.traffic.load import share_of
from liteprobe.host.traffic.stream import Stream

PERCENTILES = (50, 99, 99.9)
RATIO_CONFIDENCE = 3.0  # Bits without an error, times the ratio of errors, at which 95 % would have shown one.

NONE_CAME = "none of its"  # Begins the note on a stream of which nothing came.


@dataclass(frozen=True)
class Latency:
    """Delays of a stream, arrival less departure."""

    #: ``least_ns``, ``mean_ns``, ``std_ns``, ``most_ns``: None where they aren't known, because delays pass the end of the range of
    #: a stamp; the least and the greatest are then known by the bins (`figures`). Std is of the sample; NaN where a delay was
    #: beyond 2^32 - 1 ns.
    least_ns: int | None
    mean_ns: float | None
    std_ns: float | None
    most_ns: int | None
    #: Percentiles (ns), known by the bins; None where one was full, or they are of other frames, too.
    p50: Bounds | None
    p99: Bounds | None
    p99_9: Bounds | None
    cells: Cells  # The histogram.
    outside: int  # Delays outside of its bins.
    modulo_ns: int | None = None  # All delays are known modulo this alone, the range of a stamp; None: they are known.

    @property
    def longest_ns(self) -> int:
        """The longest delay, either way, as far as it is known."""
        ends = [abs(end) for end in (self.least_ns, self.most_ns) if end is not None]
        return max([*ends, *np.abs(self.cells.highs).tolist()] if len(ends) < 2 else ends, default=0)

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of the sample by the names that they have in JSON."""
        ends: dict[str, Any] = {"least": self.least_ns, "mean": self.mean_ns, "std": self.std_ns, "most": self.most_ns}
        first, last = self.cells.percentile(0), self.cells.percentile(100)
        if self.most_ns is None and self.mean_ns is not None and first and last:  # Known by the bins alone.
            ends["least"] = Bounds(first.least, min(first.most, self.mean_ns))
            ends["most"] = Bounds(max(last.least, self.mean_ns), last.most)
        return ends | {"p50": self.p50, "p99": self.p99, "p99_9": self.p99_9, "modulo": self.modulo_ns}

    def document(self) -> dict[str, Any]:
        """Return the figures and the histogram as what JSON can hold."""
        order = np.argsort(self.cells.lows, kind="stable")
        cells = (part[order].tolist() for part in (self.cells.lows, self.cells.highs, self.cells.counts))
        histogram = [list(cell) for cell in zip(*cells, strict=True)]
        figures = DELAYS_OF.document(self, list(self.figures))
        return {**figures, "histogram": histogram, "outside_of_bins": self.outside}


@dataclass(frozen=True)
class StreamFigures(PartFigures):
    """A stream, as far as it is known; ``p99`` and the like are numbers with ``.bounds`` (ns)."""

    stream: Stream  # What was asked for.
    receive: int | None  # Port that measures it; None: none does.
    is_active: bool  # Whether it still has frames.
    sent: int  # Frames that left.
    #: Frames that the tester started after their tick though the line was free: a fault. None: not known (see ``delayed``).
    late: int | None
    first_late: int | None  # Number of the first late one; None: there is none, or it isn't known.
    received: int | None = None  # Frames that came, duplicates too; None: not measured.
    octets: int | None = None  # Of these, without FCS.
    #: While it runs those that are missing before the last one that came; at the end all that were sent and didn't
    #: come.
    lost: int | None = None
    duplicated: int | None = None  # RFC 5560.
    reordered: int | None = None  # RFC 4737, section 3.
    beyond_window: int | None = None  # Those that came so late that they may be either.
    bit_errors: int | None = None  # Bits of the fill that are wrong, in good frames; None where it is not PRBS.
    damaged_bit_errors: int | None = None  # In frames with a bad FCS, likewise.
    checked_bits: int | None = None  # Bits of the fill in good frames.
    latency: Latency | None = None
    sent_fps: Bounds | None = None  # Frames a second: since the look before while it runs, of all at the end.
    received_fps: Bounds | None = None  # Likewise.
    received_bps: Bounds | None = None  # Of the line, with overhead, likewise (b/s).
    #: Frames that waited, as planned, for a frame of this port that was due before them. None: not known.
    waited: int | None = None
    delayed: int = 0  # Frames that started after their tick, late or waiting: always known.
    #: Arrival of the first and of the last frame (ns of the probe's clock); None: none came, or it isn't measured.
    first_arrival_ns: int | None = None
    last_arrival_ns: int | None = None

    @property
    def delay_figures(self) -> Mapping[str, Any]:
        """Figures of its delays by their names (ns)."""
        return self.latency.figures if self.latency else {}

    @property
    def name(self) -> str:
        """The stream's."""
        return self.stream.name

    @property
    def share(self) -> Fraction:
        """Share of the line that it takes, by what was asked for."""
        return share_of(self.stream)

    @property
    def offered_bps(self) -> float:
        """Rate on the line that was asked for (b/s), the mean where it is random."""
        return float(self.share * self.stream.line.rate_bps)

    @property
    def offered_fps(self) -> float:
        """Frames a second that were asked for, the mean where that is random."""
        return float(self.share * 10**9 / (self.stream.line.octet_ns * (self.stream.length.mean + OVERHEAD)))

    @property
    def loss_ratio(self) -> float | None:
        """Lost over sent; None where it isn't known."""
        return None if self.lost is None or not self.sent else self.lost / self.sent

    @property
    def bit_error_ratio(self) -> Bounds | None:
        """Ratio of bit errors in good frames; without errors what it is below, with a confidence of 95 %.

        Source: ITU-T O.201, appendix; Poisson statistics.
        """
        if not self.checked_bits or self.bit_errors is None:
            return None
        if not self.bit_errors:
            return Bounds(0.0, min(1.0, RATIO_CONFIDENCE / self.checked_bits))
        ratio, error = self.bit_errors / self.checked_bits, 1.96 * self.bit_errors**0.5 / self.checked_bits
        return Bounds(max(0.0, ratio - error), ratio + error)


@dataclass(frozen=True)
class TrafficLook:
    """All streams at one time, while they run."""

    rows: tuple[StreamFigures, ...]  # In the order in which they were given.
    now_ns: int  # Time of the probe's clock.
    elapsed_s: float  # Since the start.
    is_running: bool  # Whether a stream still has frames.
    clock_state: str  # ``free-running``, ``locked`` or ``holdover``.
    uncertainty_ns: float  # Bound of the error of one delay.

    def to_dict(self) -> dict[str, Any]:
        """Return the look as plain data."""
        names = ("elapsed_s", "now_ns", "is_running", "clock_state", "uncertainty_ns")
        return {name: getattr(self, name) for name in names} | {"streams": [STREAMS.document(row) for row in self.rows]}


@dataclass(frozen=True, repr=False)
class TrafficResult(Result):
    """Holds the figures of streams at their end: all of `Result`; its parts are the streams.

    >>> result = TrafficResult((), 0.5, "sent", True, "locked", 8.0, ())
    >>> result, result.to_dict()["streams"]
    (<TrafficResult: 0 sent, 0 received, 0 lost>, [])
    """

    rows: tuple[StreamFigures, ...]  # In the order in which they were given.
    duration_s: float  # From the start to the last look at what was sent.
    end: str  # Why it ended: ``sent`` (all streams had sent all of their frames), ``stopped`` or ``interrupted``.
    is_complete: bool  # Whether it ended as was asked for, and all that came was measured.
    clock_state: str  # ``free-running``, ``locked`` or ``holdover``.
    uncertainty_ns: float  # Bound of the error of one delay.
    notes: tuple[str, ...]  # What the reader of the figures must know, a sentence each.

    def __getitem__(self, name: str) -> StreamFigures:
        """Return the row of a stream; KeyError where there is none."""
        return {row.name: row for row in self.rows}[name]

    @property
    def parts(self) -> dict[str, StreamFigures]:
        """Streams by name."""
        return {row.name: row for row in self.rows}

    @property
    def delays_by_part(self) -> dict[str, NDArray[np.int64]]:
        """Delays by the bins of the histogram of each stream, the middle of its bin each (ns)."""
        return {row.name: of_cells(row.latency.cells) for row in self.rows if row.latency}

    @property
    def records_by_part(self) -> dict[str, NDArray[np.int64]]:
        """Nothing: the meter has bins."""
        return {}

    @property
    def cells_by_part(self) -> dict[str, Cells]:
        """Histograms of the streams, but for those whose delays are known modulo the range of a stamp alone."""
        return {row.name: row.latency.cells for row in self.rows if row.latency and row.latency.modulo_ns is None}

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {**RESULTS.document(self), "streams": [STREAMS.document(row) for row in self.rows]}


# Columns ------------------------------------------------------------------------------------------

#: Of the result of a run that sends.
RESULTS = Columns(
    *(Column(name) for name in ("duration_s", "end", "is_complete", "clock_state", "uncertainty_ns")),
    Column("notes", of=lambda result: list(result.notes)),
)
#: Of a `Latency`, and of the row of a stream.
DELAYS_OF = delays(lambda latency: latency.figures, modulo=True)
DELAYS = delays(lambda row: row.latency and row.latency.figures, modulo=True)
OUTSIDE = Column("outside_of_bins", "", "Outside\nof bins", of=lambda row: row.latency and row.latency.outside)
STREAMS = Columns(
    Column("name", "stream", "Stream"),
    Column("stream_id", "", "Id", of=lambda row: row.stream.stream_id),
    Column("port", of=lambda row: row.stream.port),
    Column("receive"),
    Column("is_active"),
    Column("share", of=lambda row: float(row.share)),
    Column("offered_bps", "Mb/s", "Asked for,\nMb/s", 3, MEGA),
    Column("offered_fps", "frames/s", "", 1),
    Column("sent", "sent", "Sent"),
    Column("waited", "waited", "Waited for\nthe line"),
    Column("late", "late", "Late", is_fault=True),
    Column("first_late"),
    Column("delayed"),
    Column("received", "received", "Received"),
    Column("octets"),
    Column("lost", "lost", "Lost", is_fault=True),
    Column("duplicated", "dup", "Doubled", is_fault=True),
    Column("reordered", "reord", "Reordered", is_fault=True),
    Column("beyond_window", "", "Too late\nto say"),
    Column("bit_errors", "bit err", "Bit errors", is_fault=True),
    Column("damaged_bit_errors"),
    Column("checked_bits"),
    Column("loss_ratio"),
    Column("bit_error_ratio", "", "Error ratio"),
    Column("sent_fps"),
    Column("received_fps"),
    Column("received_bps", "Mb/s", "Came,\nMb/s", 3, MEGA),
    Column("latency_ns", of=lambda row: row.latency and row.latency.document()),
)


#: Figures of conditions, and of the table of a notebook.
TrafficResult.COLUMNS = Columns(
    *STREAMS.of(
        "sent received lost duplicated reordered waited late bit_errors checked_bits loss_ratio bit_error_ratio"
    ),
    replace(STREAMS["received_bps"], key="rate", of=lambda row: row.received_bps),
    replace(STREAMS["received_fps"], key="fps", of=lambda row: row.received_fps),
    *DELAYS.of("least mean std p50 p99 p99_9 most"),
)


def delay_columns(rows: Sequence[StreamFigures], keys: str) -> list[Column]:
    """Return columns of delays, and what these are modulo where that is short."""
    is_short = any(row.latency and row.latency.modulo_ns is not None for row in rows)
    return DELAYS.of(keys + " modulo" * is_short)


def longest_ns(rows: Sequence[StreamFigures]) -> float:
    """Return the longest delay of all, either way; 0 where none was measured."""
    return max((row.latency.longest_ns for row in rows if row.latency), default=0)


def totals(rows: Sequence[StreamFigures]) -> Mapping[str, int | None]:
    """Return sent, received, lost, waited and late of all rows together; None where one of them doesn't know it."""
    found: dict[str, int | None] = {}
    for name in ("sent", "received", "lost", "waited", "late"):
        values = [getattr(row, name) for row in rows]
        found[name] = None if None in values else sum(values)
    return found
