# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Confidence intervals: how far a figure may be from what an endless run would give."""

import numpy as np
from numpy.typing import NDArray
from scipy import special  # Not scipy.stats, which takes a second to load.


def student(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution."""
    return float(special.stdtrit(freedom, probability))


def mean_interval(values: NDArray[np.floating], confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of the mean, by Student's t about a mean mended for skewness; NaN for fewer than two values.

    Limits: it knows the scatter of the sample only, not an error that all values share.

    Source: N. J. Johnson, "Modified t tests and confidence intervals for asymmetrical populations", JASA 73 (1978).
    """
    count = len(values)
    if count < 2:
        return float("nan"), float("nan")
    mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
    shift = 0.0
    if count > 2 and deviation > 0:
        third = float(np.sum((values - mean) ** 3)) * count / ((count - 1) * (count - 2))
        shift = third / (6 * deviation**2 * count)
    reach = student((1 + confidence) / 2, count - 1) * deviation / float(np.sqrt(count))
    return mean + shift - reach, mean + shift + reach


def percentile_interval(values: NDArray[np.number], percent: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of a percentile, whatever the distribution: two values of the sample.

    NaN at an end that the sample is too small to bound.

    Source: David and Nagaraja, Order Statistics, 7.1 (ranks from the binomial distribution).
    """
    ordered = np.sort(values)
    count, part = len(ordered), percent / 100
    tail = (1 - confidence) / 2
    # B of the values, binomial, lie below the percentile; value k (from 0) is above it when B <= k, below when B > k.
    below = special.bdtr(np.arange(count, dtype=np.float64), count, part)
    low = int(np.searchsorted(below, tail, side="right")) - 1
    high = int(np.searchsorted(below, 1 - tail, side="left"))
    return (
        float(ordered[low]) if low >= 0 else float("nan"),
        float(ordered[high]) if high < count else float("nan"),
    )
