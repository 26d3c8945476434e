# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Computes confidence intervals: how far a figure may be from what an endless run would give."""

import math
from bisect import bisect_left, bisect_right
from functools import cache
from statistics import NormalDist
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.analysis.beta import incomplete_beta
from liteprobe.host.base.errors import DataError
from liteprobe.host.base.validate import Between, Percent, Share, validated

NEWTON_STEPS = 100
PRECISION = 1e-14


@validated
@cache
def student(probability: Share, freedom: Annotated[int, Between(1, 10**9)]) -> float:
    """Return the quantile of Student's t distribution.

    Raises DataError when an argument is out of range.

    Parameters
    ----------
    probability : float
        From 0.5 up to, but not including, 1.
    freedom : int
        Degrees of freedom, 1 or more.

    Source: DLMF 8.17(vi) with 26.7.1 of Abramowitz and Stegun for the distribution; solved by Newton's method. It is concave
    above 0 and the normal quantile lies below it, so that every step comes closer from below.
    """
    if not (0.5 <= probability < 1 and freedom >= 1):
        raise DataError(f"no quantile at {probability} with {freedom} degrees of freedom: give 0.5 to 1, and 1 or more")
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    quantile = NormalDist().inv_cdf(probability)
    for _ in range(NEWTON_STEPS):
        above = incomplete_beta(freedom / (freedom + quantile**2), freedom / 2, 0.5) / 2
        density = math.exp(scale - (freedom + 1) / 2 * math.log1p(quantile**2 / freedom))
        step = (above - (1 - probability)) / density
        quantile += step
        if abs(step) <= PRECISION * quantile:
            break
    return quantile


@validated
def mean_interval(values: NDArray[np.floating], confidence: Share = 0.95) -> tuple[float, float]:
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


@validated
def percentile_interval(values: NDArray[np.number], percent: Percent, confidence: Share = 0.95) -> tuple[float, float]:
    """Return the interval of a percentile, whatever the distribution: two values of the sample.

    NaN at an end that the sample is too small to bound.

    Source: David and Nagaraja, Order Statistics, 7.1 (ranks from the binomial distribution).
    """
    ordered = np.sort(values)
    count, part = len(ordered), percent / 100
    tail = (1 - confidence) / 2
    # B of the values, binomial, lie below the percentile; value k (from 0) is above it when B <= k, below when B > k.
    low = bisect_right(range(count), tail, key=lambda k: incomplete_beta(1 - part, count - k, k + 1)) - 1
    high = bisect_left(range(count), 1 - tail, key=lambda k: incomplete_beta(1 - part, count - k, k + 1))
    return (float(ordered[low]) if low >= 0 else float("nan"), float(ordered[high]) if high < count else float("nan"))
