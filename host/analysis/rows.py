# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds a row of figures: what is known of one program of trains, as tables, JSON, CSV and reports have it.

Lengths in octets, times in ns, rates in b/s; None where a run gave no figure. JSON has the same names.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite
from typing import Any, ClassVar, NotRequired, TypedDict, cast

from liteprobe.host.analysis.columns import MEGA, Column, Columns, delays, shown
from liteprobe.host.analysis.result import Result, ratio
from liteprobe.host.measure.percentiles import Bounds, Measured


class Sample(TypedDict):
    """Figures of a sample of delays (ns)."""

    mean: float | None
    std: float | None
    min: float | None
    max: float | None
    p50: float | None
    p99: float | None
    p99_9: float | None


class Rates(TypedDict):
    """Mean, scatter and 95 % interval of the mean of dispersion rates (b/s)."""

    mean: float | None
    std: float | None
    median: float | None
    ci95_low: float | None
    ci95_high: float | None


class CapacityFigures(TypedDict):
    """As of `capacity.Capacity`."""

    bps: float | None
    low_bps: float | None
    high_bps: float | None
    pairs: int
    near: int
    reason: str
    at_least_bps: float | None
    near_ns: float | None
    near_off_ns: float | None
    length: int | None


class Dispersion(TypedDict):
    """Times between the arrivals of a train (ns); ``total``: from the first to the last."""

    total: int | None
    mean: float | None
    std: float | None
    min: int | None
    max: int | None


class TrainFigures(TypedDict):
    """Holds what is known of one train of a program."""

    number: int
    received: int | None
    dispersion_rate_bps: float | None
    owd_mean_ns: float | None
    dispersion_ns: Dispersion


class Counts(TypedDict):
    """Packets of a program; ``reordering_extent_max`` in packets."""

    sent: int
    received: int | None
    lost: int | None
    duplicated: int | None
    reordered: int | None
    reordering_extent_max: int | None
    expired: int | None


class MeasuredFigures(Counts):
    """Holds what records, or accumulators in their place, say; ``source`` says which."""

    dispersion_rate_bps: Rates
    capacity: CapacityFigures
    owd_ns: Sample
    ipdv_ns: Sample
    pdv_ns: Sample
    jitter_ns: float | None
    source: str
    trains: list[TrainFigures]


class Held(TypedDict):
    """Records that are here, of frames that the probe counted."""

    held: int
    counted: int


class Deviation(TypedDict):
    """Measured less true delay of all packets (ns)."""

    mean: float | None
    min: int | None
    max: int | None


class PinFigures(TypedDict):
    """The same formula over the times at the pins, and how far delays are from there."""

    dispersion_rate_bps: float | None
    deviation_ns: Deviation


class WireFigures(TypedDict):
    """Counts what the simulated wire did to a program's packets."""

    capacity_bps: NotRequired[float | None]
    owd_ns: float | None
    received: int
    lost: int


class LineFigures(TypedDict):
    """The clock of a line."""

    rate_ppm: float
    rate_error_ppm: float | None  # 95 %.
    error_ns: float
    is_resolved: bool
    latches: int


class ClockFigures(TypedDict):
    """The clock of a probe."""

    clock_state: str
    uncertainty_ns: float | None
    offset_ns: float | None
    rate_ppb: float
    rejected: int


class Asked(TypedDict):
    """Holds what was asked for, and what theory says of it."""

    length: int
    count: int
    repeat: int
    interval_ns: float
    utilisation: float
    theory_bps: float


class ProbeCounts(TypedDict):
    """Counts of the probe, as they are."""

    late: int
    fcs_errors: int
    length_errors: int
    runts: int
    giants: int
    overflows: int
    records_lost: int


class TrainRow(MeasuredFigures, Asked, ProbeCounts):
    """All figures of a program that need no path to be known."""

    frame_bps: float | None
    ip_bps: float | None
    udp_payload_bps: float | None
    resolution_ppm: float | None
    waiting_time_ns: int | None
    clock_state: str
    uncertainty_ns: float | None  # None: a clock's error is not known.
    complete: bool
    records: Held
    notes: list[str]


class Row(TrainRow):
    """All figures of a program."""

    # Of a path of which theory is known, and of a simulated wire.
    theory_owd_ns: NotRequired[float]
    wire: NotRequired[WireFigures]
    pins: NotRequired[PinFigures]
    # Of corrected delays, and of a one-way delay.
    calibration_ns: NotRequired[float]
    start_time_ns: NotRequired[int]
    line_clock: NotRequired[LineFigures | None]
    sender: NotRequired[ClockFigures]
    receiver: NotRequired[ClockFigures]


def shifted(delays: Sample, by_ns: float) -> Sample:
    """Return the figures of delays that are all longer by ``by_ns``: a constant moves all of them alike but the scatter."""
    values = cast(Mapping[str, float | None], delays)
    moved = {name: value if value is None or name == "std" else value + by_ns for name, value in values.items()}
    return cast(Sample, moved)


def half_width(row: Row) -> float | None:
    """Return how far the 95 % interval of the mean dispersion rate reaches from it, on the longer side (b/s)."""
    interval, mean = interval_of(row), row["dispersion_rate_bps"]["mean"]
    return None if interval is None or mean is None else max(interval[1] - mean, mean - interval[0])


def interval_of(row: Row) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean dispersion rate (b/s); None: not known."""
    low, high = row["dispersion_rate_bps"]["ci95_low"], row["dispersion_rate_bps"]["ci95_high"]
    return None if low is None or high is None else (low, high)


def ends_of(row: Row) -> tuple[int | None, int | None]:
    """Return the least and the greatest deviation of delays from the times at the pins (ns), where they are known."""
    deviation = row["pins"]["deviation_ns"] if "pins" in row else None
    return (None, None) if deviation is None else (deviation["min"], deviation["max"])


def count_of(row: Row, name: str) -> int | None:
    """Return one of the counts of a row, by its name."""
    found: int | None = cast(Mapping[str, Any], row)[name]
    return found


def incomplete(row: Row) -> str:
    """Return what is to be said of a row that misses something; empty where it doesn't."""
    held, counted = row["records"]["held"], row["records"]["counted"]
    if held != counted:
        return f"results are incomplete: {held:,} of {counted:,} records are there, figures that need the others are left out"
    return "" if row["complete"] else "results are incomplete"


def remarks(row: Row) -> list[str]:
    """Return what must be known of a row before its figures, its notes included."""
    return [*filter(None, [incomplete(row)]), *row["notes"]]


def finite(value: float) -> float | None:
    """Return ``value``, or None where it is infinite or not a number, which JSON can't say."""
    return float(value) if isfinite(value) else None


def worst_bound_ns(rows: Sequence[Row]) -> float | None:
    """Return the greatest bound of a delay; None where one of the rows doesn't know its own."""
    bounds = [row["uncertainty_ns"] for row in rows]
    known = [bound for bound in bounds if bound is not None]
    return max(known) if bounds and len(known) == len(bounds) else None


# Columns ------------------------------------------------------------------------------------------

COUNTS = ("lost", "duplicated", "reordered", "late")
CAPACITY = ("bps", "low_bps", "high_bps")


def _at(*path: str) -> Callable[[Row], Any]:
    """Return what finds a figure of a row, None where the row hasn't got it."""

    def of(row: Row) -> Any:
        found: Any = row
        for name in path:
            found = None if found is None else found.get(name)
        return found

    return of


def _off_pins(row: Row) -> str:
    least, most = ends_of(row)
    return shown(least) if least == most else f"{least} to {most}"


def _counts(row: Row) -> str:
    return " · ".join(shown(count_of(row, name)) for name in COUNTS)


def _capacity(row: Row) -> float | str | None:
    """Return the capacity (b/s), or, in words, what it is at the least (Mb/s)."""
    found = row["capacity"]
    least = found["at_least_bps"] if found["bps"] is None else None
    return found["bps"] if least is None else f"at least {shown(least, 3, MEGA)}"


def capacity_doubt(row: Row) -> str:
    """Return what is to be said of a capacity that is not known, or that frames of another length found; else nothing."""
    found = row["capacity"]
    if found["bps"] is None:
        return f"{'no capacity' if found['at_least_bps'] is None else 'capacity not known'}: {found['reason']}"
    by = found["length"]
    return "" if by in (None, row["length"]) else f"capacity by the frames of {by} octets"


#: Of a program of trains, and of its delays; the wire's and the pins' are known in simulation alone.
TRAINS = Columns(
    Column("length", "length", "Length without FCS", of=lambda row: str(row["length"])),
    Column("count", "count", of=_at("count")),
    Column("repeat", "repeat", of=_at("repeat")),
    Column("trains", "", "Trains", of=lambda row: f"{row['repeat']} × {row['count']}"),
    Column("load", "load %", "", 2, of=lambda row: 100 * row["utilisation"]),
    Column("rate", "Mb/s", "Dispersion rate", 3, MEGA, of=_at("dispersion_rate_bps", "mean")),
    Column("half_width", "+-95 %", "± 95 %", 3, MEGA, of=half_width),
    Column("rate_std", "", "Std", 3, MEGA, of=_at("dispersion_rate_bps", "std")),
    Column("theory", "sent at", "Theory", 3, MEGA, of=_at("theory_bps")),
    Column("pins_rate", "", "At the pins", 3, MEGA, of=_at("pins", "dispersion_rate_bps")),
    Column("tick", "", "One tick, ppm", 2, of=_at("resolution_ppm")),
    Column("capacity", "capacity", "Capacity", 3, MEGA, of=_capacity),
    Column("wire_capacity", "", "Of the wire", 3, MEGA, of=_at("wire", "capacity_bps")),
    Column("pairs", "", "Pairs near", of=lambda row: f"{row['capacity']['near']} of {row['capacity']['pairs']}"),
    Column("theory_delay", "theory", "Theory", 1, of=_at("theory_owd_ns")),
    Column("wire_delay", "", "On the wire", 1, of=_at("wire", "owd_ns")),
    Column("off_pins", "stamps\noff, ns", "Stamps\noff pins", of=_off_pins),
    Column("ipdv_std", "ipdv std", "IPDV std", 1, of=_at("ipdv_ns", "std")),
    Column("bound", "", "Bound (95 %)", 1, of=_at("uncertainty_ns")),
    Column("counts", "lost/dup/\nord/late", "Lost, doubled,\nreordered, late", of=_counts),
    Column("wire_lost", "", "Lost on\nthe wire", of=_at("wire", "lost")),
    Column("lost", "lost", of=_at("lost")),
    Column("duplicated", "dup", of=_at("duplicated")),
    Column("reordered", "reord", of=_at("reordered")),
    Column("late", "late", of=_at("late")),
)
DELAYS = delays(lambda row: {**row["owd_ns"], "least": row["owd_ns"]["min"], "most": row["owd_ns"]["max"]})


def _measured(mean: float | None, low: float | None, high: float | None) -> Measured | None:
    return None if mean is None or low is None or high is None else Measured(mean, Bounds(low, high))


def _rate(row: Row) -> Measured | float | None:
    rates = row["dispersion_rate_bps"]
    return _measured(rates["mean"], rates["ci95_low"], rates["ci95_high"])


#: Figures of conditions: rates (b/s) with their 95 % interval, all else as it is.
FIGURES = Columns(
    Column("sent", "", "Sent", of=_at("sent")),
    Column("received", "", "Received", of=_at("received")),
    Column("lost", "", "Lost", of=_at("lost")),
    Column("duplicated", "", "Doubled", of=_at("duplicated")),
    Column("reordered", "", "Reordered", of=_at("reordered")),
    Column("late", "", "Late", of=_at("late")),
    Column("loss_ratio", "", "Loss ratio", 6, of=lambda row: ratio(row["lost"], row["sent"])),
    Column("rate", "", "Mb/s", 3, MEGA, of=_rate),
    Column(
        "capacity",
        "",
        "Capacity,\nMb/s",
        3,
        MEGA,
        of=lambda row: _measured(*(_at("capacity", key)(row) for key in CAPACITY)),
    ),
    *DELAYS.values(),
    Column("jitter", "", "Jitter", 1, of=_at("jitter_ns")),
)


class RowsResult(Result):
    """Makes a result of rows: of one train, one way or a sweep."""

    COLUMNS: ClassVar[Columns] = FIGURES

    def error_ns(self, part: Row) -> float:
        """Return the bound of the error of one delay of a row (ns); infinite where no clock knows it."""
        return inf if part["uncertainty_ns"] is None else part["uncertainty_ns"]
