# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes one row of figures from the result of one program of trains: what tables, JSON, CSV and reports show."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import LINE_RATE_BPS
from liteprobe.host.analysis import arrivals, capacity, delay, partial, sequence, theory
from liteprobe.host.analysis.arrivals import ArrivedPackets
from liteprobe.host.analysis.rows import Asked, MeasuredFigures, ProbeCounts, Row, TrainRow, finite
from liteprobe.host.analysis.samples import capacity_of, of_train, rates, sample
from liteprobe.host.traffic.train import TrainProgram, TrainResult


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
    Row
        Where records are missing
        (``records``: held of counted), figures are those of the probe's accumulators and of trains that are whole,
        and None where neither knows: see ``source``.
    """
    arrived = arrivals.packets(result, waiting_time_ns)
    program = result.program
    is_whole, held = arrivals.has_all_records(result), arrivals.held(result)
    measured = _of_records(result, arrived) if is_whole else partial.figures(result, arrived, waiting_time_ns)
    per_octet = measured["dispersion_rate_bps"]["mean"]
    figures: TrainRow = {
        **_asked(program),
        "frame_bps": _scaled(per_octet, program, program.length),
        "ip_bps": _scaled(per_octet, program, program.length - program.headers.network_offset),
        "udp_payload_bps": _scaled(per_octet, program, program.length - program.headers.payload_offset),
        "resolution_ppm": finite(1e6 * theory.tick_error(program.length, program.count)),
        **measured,
        **_probe_counts(result),
        "waiting_time_ns": waiting_time_ns,
        "clock_state": result.clock_state,
        "uncertainty_ns": finite(result.uncertainty_ns),
        "complete": result.complete and is_whole,
        "records": {"held": held, "counted": result.counters.get("frames", held)},
        "notes": list(result.notes),
    }
    return cast(Row, figures)


def _of_records(result: TrainResult, arrived: ArrivedPackets) -> MeasuredFigures:
    """Return the figures of a program of which every record is there."""
    program = result.program
    per_train = arrivals.trains(result, arrived)
    rate = np.array([capacity.dispersion_rate(arrived.rx_stamp[train], program.length) for train in per_train])
    order = sequence.reordering(arrived.sequence)
    return {
        "dispersion_rate_bps": rates(rate),
        "capacity": capacity_of(program, arrived),
        "owd_ns": sample(arrived.owd_ns),
        "ipdv_ns": sample(_ipdv(arrived, program)),
        "pdv_ns": sample(delay.pdv(arrived.owd_ns) if len(arrived.owd_ns) else arrived.owd_ns),
        "jitter_ns": _last(delay.interarrival_jitter(arrived.owd_ns)),
        "sent": result.sent,
        "received": len(arrived.sequence),
        "lost": result.sent - len(arrived.sequence),
        "duplicated": arrived.duplicated,
        "reordered": len(order.positions),
        "reordering_extent_max": int(order.extents.max()) if len(order.extents) else 0,
        "expired": arrived.expired,
        "source": "records",
        "trains": [of_train(number, arrived, train, rate[number]) for number, train in enumerate(per_train)],
    }


def _asked(program: TrainProgram) -> Asked:
    utilisation = theory.utilisation(program.length, program.interval_ns)
    return {
        "length": program.length,
        "count": program.count,
        "repeat": program.repeats,
        "interval_ns": program.interval_ns or theory.slot_ns(program.length),
        "utilisation": utilisation,
        "theory_bps": utilisation * LINE_RATE_BPS,
    }


#: Counters of the probe that a row shows as they are.
PROBE_COUNTS = tuple(name for name in ProbeCounts.__annotations__ if name != "late")


def _probe_counts(result: TrainResult) -> ProbeCounts:
    return cast(ProbeCounts, {"late": result.late, **{name: result.counters.get(name, 0) for name in PROBE_COUNTS}})


def _ipdv(arrived: ArrivedPackets, program: TrainProgram) -> NDArray[np.int64]:
    """Return the IPDV within trains: from one train to the next there is no interval that was asked for."""
    # One number left out between trains keeps the pairs of two trains apart.
    return delay.ipdv(arrived.sequence + arrived.sequence // program.count, arrived.owd_ns)


def _scaled(rate_bps: float | None, program: TrainProgram, octets: int) -> float | None:
    return None if rate_bps is None else rate_bps * theory.share(program.length, octets)


def _last(values: NDArray[np.float64]) -> float | None:
    return float(values[-1]) if len(values) else None
