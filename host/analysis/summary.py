# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""One row of figures from the result of one program of trains: what tables, JSON, CSV and reports show."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import DAMAGE, RecordFlag
from liteprobe.host.analysis import capacity, confidence, delay, sequence, theory
from liteprobe.host.train import TrainProgram, TrainResult

Row = dict[str, Any]

#: Figures of a sample of delays, in the order of tables.
DELAY_FIGURES = ("mean", "std", "min", "max", "p50", "p99", "p99_9")
RATE_FIGURES = ("mean", "std", "half_sample_mode", "median", "ci95_low", "ci95_high")


@dataclass(frozen=True)
class Packets:
    """The packets of a program that arrived whole and in time, each once, in order of arrival.

    Attributes
    ----------
    sequence : array, shape (packets,)
        Number of each over the whole program; its train is ``sequence // count``.
    tx_stamp, rx_stamp : array, shape (packets,)
        Departure and arrival (SFD, ns).
    owd_ns : array, shape (packets,)
        One-way delay (ns).
    duplicated : int
        Further arrivals of packets that had come already.
    expired : int
        Packets that came after the waiting time: lost.
    """

    sequence: NDArray[np.int64]
    tx_stamp: NDArray[np.uint64]
    rx_stamp: NDArray[np.uint64]
    owd_ns: NDArray[np.int64]
    duplicated: int
    expired: int


def packets(result: TrainResult, waiting_time_ns: int | None = None) -> Packets:
    """Return the packets of ``result`` that count: whole, of this program, each once, within the waiting time T_max.

    A packet that arrived twice counts once, at its first arrival; one beyond ``waiting_time_ns`` is lost (RFC 7680).
    """
    records = result.records
    refused = np.uint16(DAMAGE | RecordFlag.FOREIGN_STREAM)
    records = records[(records["flags"] & refused == 0) & (records["sequence"] < result.program.total)]
    is_first = sequence.first_arrivals(records["sequence"])
    firsts = records[is_first]
    owd_ns = delay.owd(firsts["tx_stamp"], firsts["rx_stamp"])
    is_in_time = sequence.in_time(owd_ns, waiting_time_ns)
    firsts = firsts[is_in_time]
    return Packets(
        sequence=firsts["sequence"].astype(np.int64),
        tx_stamp=firsts["tx_stamp"],
        rx_stamp=firsts["rx_stamp"],
        owd_ns=owd_ns[is_in_time],
        duplicated=int((~is_first).sum()),
        expired=int((~is_in_time).sum()),
    )


def trains(result: TrainResult, arrived: Packets) -> list[NDArray[np.intp]]:
    """Return the rows of ``arrived`` that belong to each train of the program, in order of arrival."""
    number = arrived.sequence // result.program.count
    order = np.argsort(number, kind="stable")
    bounds = np.searchsorted(number[order], np.arange(1, result.program.repeats))
    return np.split(order, bounds)


def sample(values: NDArray[np.number]) -> Row:
    """Return the figures of a sample of delays (ns); all None when it is empty."""
    if not len(values):
        return dict.fromkeys(DELAY_FIGURES)
    return {
        "mean": float(np.mean(values)),
        "std": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        "min": int(values.min()),
        "max": int(values.max()),
        "p50": delay.percentile(values, 50),
        "p99": delay.percentile(values, 99),
        "p99_9": delay.percentile(values, 99.9),
    }


def rates(values: NDArray[np.floating]) -> Row:
    """Return the estimators of METHODS over the capacities of many trains (b/s); all None when there are none."""
    known = values[np.isfinite(values)]
    if not len(known):
        return dict.fromkeys(RATE_FIGURES)
    low, high = confidence.mean_interval(known)
    return {
        "mean": float(np.mean(known)),
        "std": float(np.std(known, ddof=1)) if len(known) > 1 else 0.0,
        "half_sample_mode": capacity.half_sample_mode(known),
        "median": float(np.median(known)),
        "ci95_low": _finite(low),
        "ci95_high": _finite(high),
    }


def row(result: TrainResult, waiting_time_ns: int | None = None) -> Row:
    """Return all figures of one program.

    Parameters
    ----------
    result : TrainResult
        What came of it.
    waiting_time_ns : int or None
        T_max of RFC 7680: a packet that took longer is lost. None: as long as the probe listened.

    Returns
    -------
    dict
        Lengths in octets, times in ns, rates in b/s; None where the run gave no figure. When records are missing
        (``complete`` false), what the probe's accumulators counted stands in their place: see ``source``.
    """
    arrived = packets(result, waiting_time_ns)
    program = result.program
    per_train = trains(result, arrived)
    rate = np.array([capacity.train_capacity(arrived.rx_stamp[train], program.length) for train in per_train])
    payload = program.length - program.headers.payload_offset
    per_octet = rates(rate)["mean"]
    figures: Row = {
        **_asked(program),
        "throughput_bps": rates(rate),
        "frame_bps": _scaled(per_octet, program, program.length),
        "ip_bps": _scaled(per_octet, program, program.length - program.headers.network_offset),
        "udp_payload_bps": _scaled(per_octet, program, payload),
        "resolution_ppm": _finite(1e6 * theory.tick_error(program.length, program.count)),
        "owd_ns": sample(arrived.owd_ns),
        "ipdv_ns": sample(_ipdv(arrived, program)),
        "pdv_ns": sample(delay.pdv(arrived.owd_ns) if len(arrived.owd_ns) else arrived.owd_ns),
        "jitter_ns": _last(delay.interarrival_jitter(arrived.owd_ns)),
        **_counts(result, arrived),
        "waiting_time_ns": waiting_time_ns,
        "clock_state": result.clock_state,
        "uncertainty_ns": result.uncertainty_ns,
        "complete": result.complete,
        "source": "records",
        "notes": list(result.notes),
        "trains": [_train(number, arrived, train, rate[number]) for number, train in enumerate(per_train)],
    }
    if not result.complete:
        _use_accumulators(figures, result.counters)
    return figures


def _asked(program: TrainProgram) -> Row:
    utilisation = theory.utilisation(program.length, program.interval_ns)
    return {
        "length": program.length,
        "count": program.count,
        "repeat": program.repeats,
        "interval_ns": program.interval_ns or theory.slot_ns(program.length),
        "utilisation": utilisation,
        "theory_bps": utilisation * theory.LINE_RATE_BPS,
    }


def _counts(result: TrainResult, arrived: Packets) -> Row:
    """Return what was lost, doubled, reordered or damaged; a port's counters come from the probe."""
    order = sequence.reordering(arrived.sequence)
    counters = result.counters
    return {
        "sent": result.sent,
        "received": len(arrived.sequence),
        "lost": result.sent - len(arrived.sequence),
        "duplicated": arrived.duplicated,
        "reordered": len(order.positions),
        "reordering_extent_max": int(order.extents.max()) if len(order.extents) else 0,
        "expired": arrived.expired,
        "late": result.late,
        "fcs_errors": counters.get("fcs_errors", 0),
        "length_errors": counters.get("length_errors", 0),
        "runts": counters.get("runts", 0),
        "giants": counters.get("giants", 0),
        "overflows": counters.get("overflows", 0),
        "records_lost": counters.get("records_lost", 0),
    }


def _ipdv(arrived: Packets, program: TrainProgram) -> NDArray[np.int64]:
    """Return the IPDV within trains: from one train to the next there is no interval that was asked for."""
    # One number left out between trains keeps the pairs of two trains apart.
    return delay.ipdv(arrived.sequence + arrived.sequence // program.count, arrived.owd_ns)


def _train(number: int, arrived: Packets, train: NDArray[np.intp], rate_bps: float) -> Row:
    dispersion = capacity.dispersions(arrived.rx_stamp[train])
    return {
        "number": number,
        "received": len(train),
        "throughput_bps": _finite(rate_bps),
        "owd_mean_ns": float(arrived.owd_ns[train].mean()) if len(train) else None,
        "dispersion_ns": {
            "total": int(dispersion.sum()),
            "mean": float(dispersion.mean()) if len(dispersion) else None,
            "std": float(dispersion.std(ddof=1)) if len(dispersion) > 1 else None,
            "min": int(dispersion.min()) if len(dispersion) else None,
            "max": int(dispersion.max()) if len(dispersion) else None,
        },
    }


def _use_accumulators(figures: Row, counters: dict[str, int]) -> None:
    """Put the probe's own sums in the place of figures that missing records would falsify."""
    frames = counters.get("frames", 0)
    if not frames:
        return
    mean = counters["delay_sum"] / frames
    square = counters["delay_square_sum"] * frames - counters["delay_sum"] ** 2  # Exact: these are integers.
    figures["owd_ns"].update(
        mean=mean,
        std=(square / (frames * (frames - 1))) ** 0.5 if frames > 1 and square > 0 else 0.0,
        min=counters["delay_min"],
        max=counters["delay_max"],
    )
    figures.update(
        received=frames - counters["duplicated"],
        lost=figures["sent"] - (frames - counters["duplicated"]),
        duplicated=counters["duplicated"],
        reordered=counters["reordered"],
        source="accumulators: delay mean, std, min, max, and counts; records: the rest, of what was kept",
    )


def _scaled(rate_bps: float | None, program: TrainProgram, octets: int) -> float | None:
    return None if rate_bps is None else rate_bps * theory.share(program.length, octets)


def _finite(value: float) -> float | None:
    """Return ``value``, or None where it is none: JSON has no NaN."""
    return float(value) if np.isfinite(value) else None


def _last(values: NDArray[np.float64]) -> float | None:
    return float(values[-1]) if len(values) else None
