# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Capacity from the dispersion of packet trains, and the estimators over many trains."""

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.analysis.theory import OVERHEAD


def train_capacity(stamps_ns: NDArray[np.unsignedinteger], length: int, overhead: int = OVERHEAD) -> float:
    """Return the capacity that one train saw (b/s): octets after the first frame, over the time that they took.

    Parameters
    ----------
    stamps_ns : array, shape (frames received,)
        Arrivals (SFD, ns) of the frames of one train, each once, in any order.
    length : int
        Frame length without FCS (octets).
    overhead : int
        What is counted beside it: 24 for the link, 0 for frames, -14 for IP, -42 for UDP payload over IPv4.

    Returns
    -------
    float
        Rate (b/s); NaN when fewer than two frames arrived, or all in one tick.

    Limits: frames lost within the train don't count as carried. A train that lost its ends is shorter, not wrong.
    """
    if len(stamps_ns) < 2:
        return float("nan")
    span_ns = int(np.max(stamps_ns)) - int(np.min(stamps_ns))
    return (len(stamps_ns) - 1) * 8e9 * (length + overhead) / span_ns if span_ns else float("nan")


def dispersions(stamps_ns: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """Return the times between consecutive arrivals (ns), shape (frames - 1,)."""
    return np.diff(np.sort(stamps_ns)).astype(np.int64)


def half_sample_mode(values: NDArray[np.floating]) -> float:
    """Return the mode of a continuous sample, by halving it to its densest half again and again.

    Cross traffic stretches some trains and squeezes others: mean and median follow it, the densest place stays at
    the capacity. Of halves that are equally dense the middle one is taken.

    Parameters
    ----------
    values : array, shape (sample,)
        Finite numbers, in any order.

    Raises
    ------
    ValueError
        If the sample is empty.

    Source: Bickel and Fruehwirth, On a fast, robust estimator of the mode, 2006, section 2.
    """
    sample = np.sort(np.asarray(values, dtype=np.float64))
    if not len(sample):
        raise ValueError("an empty sample has no mode")
    while len(sample) > 3:
        half = (len(sample) + 1) // 2
        widths = sample[half - 1 :] - sample[: len(sample) - half + 1]
        densest = np.flatnonzero(widths == widths.min())
        start = densest[len(densest) // 2]
        sample = sample[start : start + half]
    if len(sample) == 3:
        low, high = np.diff(sample)
        if low == high:
            return float(sample[1])
        sample = sample[:2] if low < high else sample[1:]
    return float(sample.mean())
