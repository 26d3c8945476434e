# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Confidence intervals: how far a figure may be from what an endless run would give."""

import numpy as np
from numpy.typing import NDArray
from scipy import stats


def mean_interval(values: NDArray[np.floating], confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of the mean, by Student's t; NaN for fewer than two values.

    Limits: it knows the scatter of the sample only, not an error that all values share.
    """
    if len(values) < 2:
        return float("nan"), float("nan")
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))
    reach = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1)) * error
    return mean - reach, mean + reach


def percentile_interval(values: NDArray[np.number], percent: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of a percentile, whatever the distribution: two values of the sample.

    NaN at an end that the sample is too small to bound.

    Source: David and Nagaraja, Order Statistics, 7.1 (ranks from the binomial distribution).
    """
    ordered = np.sort(values)
    count, part = len(ordered), percent / 100
    tail = (1 - confidence) / 2
    low = int(stats.binom.ppf(tail, count, part)) - 1 if count else -1
    high = int(stats.binom.ppf(1 - tail, count, part))
    # Rank r (from 1) bounds the percentile from below with P(B >= r), from above with P(B < r).
    while low >= 0 and stats.binom.cdf(low, count, part) > tail:
        low -= 1
    while high < count and stats.binom.sf(high, count, part) > tail:
        high += 1
    return (
        float(ordered[low]) if low >= 0 else float("nan"),
        float(ordered[high]) if high < count else float("nan"),
    )
