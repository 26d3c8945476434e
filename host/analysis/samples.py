# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Works out figures of samples, as rows have them: of delays, of dispersion rates, of one train."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.analysis import capacity, confidence, delay
from liteprobe.host.analysis.arrivals import ArrivedPackets
from liteprobe.host.analysis.rows import CapacityFigures, Rates, Sample, TrainFigures, finite
from liteprobe.host.traffic.train import TrainProgram

#: Figures of a sample of delays, in the order of tables.
NO_SAMPLE = cast(Sample, dict.fromkeys(Sample.__annotations__))
NO_RATES = cast(Rates, dict.fromkeys(Rates.__annotations__))


def sample(values: NDArray[np.number]) -> Sample:
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


def rates(values: NDArray[np.floating]) -> Rates:
    """Return mean, scatter and 95 % interval of the dispersion rates of many trains (b/s); all None without any."""
    known = values[np.isfinite(values)]
    if not len(known):
        return NO_RATES.copy()
    low, high = confidence.mean_interval(known)
    return {
        "mean": float(np.mean(known)),
        "std": float(np.std(known, ddof=1)) if len(known) > 1 else 0.0,
        "median": float(np.median(known)),
        "ci95_low": finite(low),
        "ci95_high": finite(high),
    }


def capacity_of(program: TrainProgram, arrived: ArrivedPackets) -> CapacityFigures:
    """Return the capacity by the least sum of delays, as a row has it."""
    stamps = arrived.tx_stamp, arrived.rx_stamp
    return capacity.pair_capacity(arrived.sequence, program.count, *stamps, program.length).figures()


def of_train(number: int, arrived: ArrivedPackets, train: NDArray[np.intp], rate_bps: float) -> TrainFigures:
    """Return the figures of one train of which every record is there; ``train`` are its rows of ``arrived``."""
    dispersion = capacity.dispersions(arrived.rx_stamp[train])
    return {
        "number": number,
        "received": len(train),
        "dispersion_rate_bps": finite(rate_bps),
        "owd_mean_ns": float(arrived.owd_ns[train].mean()) if len(train) else None,
        "dispersion_ns": {
            "total": int(dispersion.sum()),
            "mean": float(dispersion.mean()) if len(dispersion) else None,
            "std": float(dispersion.std(ddof=1)) if len(dispersion) > 1 else None,
            "min": int(dispersion.min()) if len(dispersion) else None,
            "max": int(dispersion.max()) if len(dispersion) else None,
        },
    }
