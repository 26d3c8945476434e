# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes one row of figures from the result of one program of trains: what tables, JSON, CSV and reports show."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.analysis import arrivals, capacity, confidence, delay, rows, sequence, theory
from liteprobe.host.analysis.arrivals import ArrivedPackets
from liteprobe.host.analysis.result import PartFigures
from liteprobe.host.base.line import GIGABIT, Line
from liteprobe.host.traffic.train import TrainProgram, TrainRecords

SQUARE_LIMIT_NS = 2**32 - 1  # A greater delay enters the probe's sum of squares as this.
SOURCE = (
    "accumulators: counts, delay mean, std, least and greatest; records that are there: trains that are whole, and "
    "pairs for the capacity"
)
#: Figures of a sample of delays, in the order of tables.
NO_SAMPLE = cast(rows.Sample, dict.fromkeys(rows.Sample.__annotations__))
NO_RATES = cast(rows.Rates, dict.fromkeys(rows.Rates.__annotations__))


class TrainResult(rows.RowsResult, PartFigures, TrainRecords):
    """Holds what came of a train, and makes its figures: all of `Result`, and delays with their bounds.

    >>> from liteprobe.host import TrainProgram
    >>> import numpy as np
    >>> from liteprobe.cores.formats import RECORD_DTYPE
    >>> result = TrainResult(TrainProgram(60, 2), np.empty(0, RECORD_DTYPE), {}, 2, 0, "free-running", 8.0, True, ())
    >>> result
    <TrainResult: 2 sent, 0 received, 2 lost>
    >>> result.loss_ratio, result.p99
    (1.0, None)
    """

    sent: int  # Frames that left.

    @cached_property
    def row(self) -> rows.Row:
        """All its figures, as JSON has them, for any waiting time."""
        return row(self)

    @property
    def parts(self) -> dict[str, rows.Row]:
        """The train itself."""
        return {"train": self.row}

    @property
    def delay_figures(self) -> dict[str, Any]:
        """Figures of its delays, with the error of the clock."""
        return self.figures["train"]

    @property
    def delays_by_part(self) -> dict[str, NDArray[np.int64]]:
        """Delays of the packets that count, in the order of their arrival (ns)."""
        return {"train": arrivals.packets(self).owd_ns}

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data, as ``liteprobe train --json`` has them of one program."""
        return dict(self.row)

    def table(self) -> dict[str, Any]:
        """Return a row for each frame that came: its number, stamps, delay (ns), length and flags."""
        names = ("sequence", "tx_stamp", "rx_stamp", "length", "flags")
        of_records = {name: self.records[name] for name in names}
        return of_records | {"delay_ns": delay.owd(self.records["tx_stamp"], self.records["rx_stamp"])}


def sample(values: NDArray[np.number]) -> rows.Sample:
    """Return the figures of a sample of delays (ns); all None when it is empty."""
    if not len(values):
        return NO_SAMPLE.copy()
    return {
        "mean": float(np.mean(values)),
        "std": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        "min": int(values.min()),
        "max": int(values.max()),
        "p50": delay.percentile(values, 50),
        "p99": delay.percentile(values, 99),
        "p99_9": delay.percentile(values, 99.9),
    }


def rates(values: NDArray[np.floating], tick_error: float = 0.0, line: Line = GIGABIT) -> rows.Rates:
    """Return mean, scatter and 95 % interval of the dispersion rates of many trains (b/s); all None without any.

    ``tick_error``: what a tick makes of a rate, as a part of it (`theory.tick_error`); ``line``: which carries no more.
    """
    known = values[np.isfinite(values)]
    if not len(known):
        return NO_RATES.copy()
    low, high = confidence.bounded_mean_interval(known, 0.0, line.rate_bps, 2 * tick_error)
    return {
        "mean": float(np.mean(known)),
        "std": float(np.std(known, ddof=1)) if len(known) > 1 else 0.0,
        "median": float(np.median(known)),
        "ci95_low": rows.finite(low),
        "ci95_high": rows.finite(high),
    }


def capacity_of(result: TrainRecords, arrived: ArrivedPackets) -> rows.CapacityFigures:
    """Return the capacity by the least sum of delays, as a row has it."""
    stamps = arrived.tx_stamp, arrived.rx_stamp
    program, rate_bps = result.program, result.line.rate_bps
    return capacity.pair_capacity(arrived.sequence, program.count, *stamps, program.length, rate_bps).figures()


def of_train(number: int, arrived: ArrivedPackets, train: NDArray[np.intp], rate_bps: float) -> rows.TrainFigures:
    """Return the figures of one train of which every record is there; ``train`` are its rows of ``arrived``."""
    dispersion = capacity.dispersions(arrived.rx_stamp[train])
    return {
        "number": number,
        "received": len(train),
        "dispersion_rate_bps": rows.finite(rate_bps),
        "owd_mean_ns": float(arrived.owd_ns[train].mean()) if len(train) else None,
        "dispersion_ns": {
            "total": int(dispersion.sum()),
            "mean": float(dispersion.mean()) if len(dispersion) else None,
            "std": float(dispersion.std(ddof=1)) if len(dispersion) > 1 else None,
            "min": int(dispersion.min()) if len(dispersion) else None,
            "max": int(dispersion.max()) if len(dispersion) else None,
        },
    }


def row(result: TrainRecords, waiting_time_ns: int | None = None) -> rows.Row:
    """Return all figures of one program.

    Parameters
    ----------
    waiting_time_ns : int or None
        T_max of RFC 7680: a packet that took longer is lost. None: as long as the probe listened.

    Returns
    -------
    rows.Row
        Where records are missing
        (``records``: held of counted), figures are those of the probe's accumulators and of trains that are whole,
        and None where neither knows: see ``source``.
    """
    arrived = arrivals.packets(result, waiting_time_ns)
    program = result.program
    is_whole, held = arrivals.has_all_records(result), arrivals.held(result)
    measured = _of_records(result, arrived) if is_whole else _partial_figures(result, arrived, waiting_time_ns)
    per_octet = measured["dispersion_rate_bps"]["mean"]
    figures: rows.TrainRow = {
        **_asked(result),
        "frame_bps": _scaled(per_octet, program, program.length),
        "ip_bps": _scaled(per_octet, program, program.length - program.headers.network_offset),
        "udp_payload_bps": _scaled(per_octet, program, program.length - program.headers.payload_offset),
        "resolution_ppm": rows.finite(1e6 * _tick_error(result)),
        **measured,
        **_probe_counts(result),
        "waiting_time_ns": waiting_time_ns,
        "clock_state": result.clock_state,
        "uncertainty_ns": rows.finite(result.uncertainty_ns),
        "complete": result.complete and is_whole,
        "records": {"held": held, "counted": result.counters.get("frames", held)},
        "notes": list(result.notes),
    }
    return cast(rows.Row, figures)


def _of_records(result: TrainRecords, arrived: ArrivedPackets) -> rows.MeasuredFigures:
    """Return the figures of a program of which every record is there."""
    program = result.program
    per_train = arrivals.trains(result, arrived)
    rate = np.array([capacity.dispersion_rate(arrived.rx_stamp[train], program.length) for train in per_train])
    order = sequence.reordering(arrived.sequence)
    return {
        "dispersion_rate_bps": rates(rate, _tick_error(result), result.line),
        "capacity": capacity_of(result, arrived),
        "owd_ns": sample(arrived.owd_ns),
        "ipdv_ns": sample(_ipdv(arrived, program)),
        "pdv_ns": sample(delay.pdv(arrived.owd_ns) if len(arrived.owd_ns) else arrived.owd_ns),
        "jitter_ns": _last(delay.interarrival_jitter(arrived.owd_ns)),
        "sent": result.sent,
        "received": len(arrived.sequence),
        "lost": max(result.sent - len(arrived.sequence), 0),
        "duplicated": arrived.duplicated,
        "reordered": len(order.positions),
        "reordering_extent_max": int(order.extents.max()) if len(order.extents) else 0,
        "expired": arrived.expired,
        "source": "records",
        "trains": [of_train(number, arrived, train, rate[number]) for number, train in enumerate(per_train)],
    }


def _tick_error(result: TrainRecords) -> float:
    return theory.tick_error(result.program.length, result.program.count, float(result.line.quantum_octets))


def _asked(result: TrainRecords) -> rows.Asked:
    program, rate_bps = result.program, result.line.rate_bps
    utilisation = theory.utilisation(program.length, program.interval_ns, rate_bps)
    return {
        "length": program.length,
        "count": program.count,
        "repeat": program.repeats,
        "interval_ns": program.interval_ns or theory.slot_ns(program.length, rate_bps),
        "utilisation": utilisation,
        "theory_bps": utilisation * rate_bps,
    }


#: Counters of the probe that a row shows as they are.
PROBE_COUNTS = tuple(name for name in rows.ProbeCounts.__annotations__ if name != "late")


def _probe_counts(result: TrainRecords) -> rows.ProbeCounts:
    return cast(
        rows.ProbeCounts, {"late": result.late, **{name: result.counters.get(name, 0) for name in PROBE_COUNTS}}
    )


def _ipdv(arrived: ArrivedPackets, program: TrainProgram) -> NDArray[np.int64]:
    """Return the IPDV within trains: from one train to the next there is no interval that was asked for."""
    # One number left out between trains keeps the pairs of two trains apart.
    return delay.ipdv(arrived.sequence + arrived.sequence // program.count, arrived.owd_ns)


def _scaled(rate_bps: float | None, program: TrainProgram, octets: int) -> float | None:
    return None if rate_bps is None else rate_bps * theory.share(program.length, octets)


def _last(values: NDArray[np.float64]) -> float | None:
    return float(values[-1]) if len(values) else None


# Missing records ----------------------------------------------------------------------------------
#
# The probe's accumulators count every frame, but know neither packets that came twice from those that came once, nor a
# waiting time, nor trains. So each figure has its own condition.


@dataclass(frozen=True)
class _Program:
    """A program, and what may be said of it without all of its records."""

    result: TrainRecords
    arrived: ArrivedPackets
    waiting_time_ns: int | None

    @property
    def counters(self) -> dict[str, int]:
        return self.result.counters

    @cached_property
    def is_ours(self) -> bool:
        """Whether all that was counted can be of this program."""
        return self.counters["expected"] <= self.result.program.total

    @cached_property
    def is_tracked(self) -> bool:
        """Whether copies were recognised: no frame came later than the probe remembers."""
        return self.is_ours and self.counters["beyond_window"] == 0

    @cached_property
    def is_in_time(self) -> bool:
        return self.waiting_time_ns is None or self.counters["delay_max"] <= self.waiting_time_ns

    @cached_property
    def is_plain(self) -> bool:
        """Whether every frame counted is a packet that counts: accumulators and records are of the same packets."""
        return self.is_tracked and self.is_in_time and self.counters["duplicated"] == 0

    @cached_property
    def received(self) -> int | None:
        if not (self.is_tracked and self.is_in_time):
            return None
        return self.counters["frames"] - self.counters["duplicated"]


def _partial_figures(
    result: TrainRecords, arrived: ArrivedPackets, waiting_time_ns: int | None
) -> rows.MeasuredFigures:
    """Return the figures of a program of which records are missing."""
    program = _Program(result, arrived, waiting_time_ns)
    owd = _delays(program)
    trains = _trains(program, owd["mean"])
    return {
        "dispersion_rate_bps": _rates(trains, result),
        "capacity": _capacity(program),
        "owd_ns": owd,
        "ipdv_ns": NO_SAMPLE.copy(),
        "pdv_ns": _over_least(owd),
        "jitter_ns": None,
        **_counts(program),
        "source": SOURCE,
        "trains": trains,
    }


def _counts(program: _Program) -> rows.Counts:
    counters, sent, received = program.counters, program.result.sent, program.received
    reordered = counters["reordered"] if program.is_tracked and program.is_in_time else None
    return {
        "sent": sent,
        "received": received,
        "lost": None if received is None else max(sent - received, 0),
        "duplicated": counters["duplicated"] if program.is_tracked else None,
        "reordered": reordered,
        "reordering_extent_max": 0 if reordered == 0 else None,
        "expired": 0 if program.is_in_time else None,
    }


def _delays(program: _Program) -> rows.Sample:
    """Return the figures of the delays; a copy never comes sooner than its packet, so the least holds with copies."""
    found: rows.Sample = NO_SAMPLE.copy()
    counters, waiting_ns = program.counters, program.waiting_time_ns
    frames = counters["frames"]
    if frames and program.is_ours and (waiting_ns is None or counters["delay_min"] <= waiting_ns):
        found["min"] = counters["delay_min"]
    if frames and program.is_plain:
        found["mean"] = counters["delay_sum"] / frames
        found["max"] = counters["delay_max"]
        square = counters["delay_square_sum"] * frames - counters["delay_sum"] ** 2  # Exact: these are integers.
        if max(abs(counters["delay_min"]), abs(counters["delay_max"])) < SQUARE_LIMIT_NS:
            found["std"] = (square / (frames * (frames - 1))) ** 0.5 if frames > 1 else 0.0
    return found


def _over_least(owd: rows.Sample) -> rows.Sample:
    """Return the figures of the PDV: delays over their least."""
    least, mean, most = owd["min"], owd["mean"], owd["max"]
    found: rows.Sample = NO_SAMPLE.copy()
    if least is not None and mean is not None and most is not None:
        found |= {"mean": mean - least, "std": owd["std"], "min": 0, "max": most - least}
    return found


def _capacity(program: _Program) -> rows.CapacityFigures:
    """Return the capacity by the pairs that are there; without copies a missing record can't make a wrong pair."""
    if program.is_plain:
        return capacity_of(program.result, program.arrived)
    return capacity.Capacity(None, None, None, 0, 0, "records are missing of packets that came twice or late").figures()


def _rates(trains: list[rows.TrainFigures], result: TrainRecords) -> rows.Rates:
    """Return the dispersion rates of all trains, or none: those of some would be another sample."""
    known = [train["dispersion_rate_bps"] for train in trains]
    return rates(np.array([] if None in known else known, dtype=np.float64), _tick_error(result), result.line)


def _trains(program: _Program, owd_mean_ns: float | None) -> list[rows.TrainFigures]:
    of_trains = arrivals.trains(program.result, program.arrived)
    return [_train(program, number, train, owd_mean_ns) for number, train in enumerate(of_trains)]


def _train(program: _Program, number: int, train: NDArray[np.intp], owd_mean_ns: float | None) -> rows.TrainFigures:
    """Return what is known of one train: all, when its records are all there; its span, when its ends are known."""
    asked, counters = program.result.program, program.counters
    stamps = program.arrived.rx_stamp[train]
    if program.is_plain and len(train) == asked.count:
        return of_train(number, program.arrived, train, capacity.dispersion_rate(stamps, asked.length))
    if program.is_plain and asked.repeats == 1:
        return _spanned(
            number, counters["frames"], counters["last_stamp"] - counters["first_stamp"], asked.length, owd_mean_ns
        )
    places = program.arrived.sequence[train] - number * asked.count
    has_ends = {0, asked.count - 1} <= set(places.tolist())
    is_all = program.is_plain and counters["frames"] == asked.total and counters["reordered"] == 0
    if is_all:
        span_ns = int(stamps.max()) - int(stamps.min()) if has_ends else None
        return _spanned(number, asked.count, span_ns, asked.length, None)
    return _spanned(number, None, None, asked.length, None)


def _spanned(
    number: int, frames: int | None, span_ns: int | None, length: int, owd_mean_ns: float | None
) -> rows.TrainFigures:
    """Return the figures of a train of which the count of its frames and the time that they took are known, or not."""
    is_known = frames is not None and frames > 1 and span_ns is not None
    dispersion: rows.Dispersion = {"total": None, "mean": None, "std": None, "min": None, "max": None}
    rate = None
    if frames is not None and is_known and span_ns is not None:
        rate = rows.finite(capacity.span_rate(frames, span_ns, length))
        dispersion |= {"total": span_ns, "mean": span_ns / (frames - 1)}
    return {
        "number": number,
        "received": frames,
        "dispersion_rate_bps": rate,
        "owd_mean_ns": owd_mean_ns,
        "dispersion_ns": dispersion,
    }
