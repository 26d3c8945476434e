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
TAIL = 1.5  # Part of one value of the sample, and one more, that a tail goes on for,
FEW = 25  # And more of fewer values.
SKEW_MOST = 10
POISSON_EXACT = 1000  # Counts whose probabilities are summed.
FEWEST = 5  # Values that show how they scatter.
OTHERS_LEAST = 8  # Values that are not as most: so many show what such values are,
OTHERS_MOST = 20  # And so many, how many they are.


@validated
@cache
def student(probability: Share, freedom: Annotated[int, Between(1, 10**9)]) -> float:
    """Return the quantile of Student's t distribution.

    Raises DataError when an argument is out of range.

    Source: DLMF 8.17(vi) with 26.7.1 of Abramowitz and Stegun for the distribution; solved by Newton's method. It is concave
    above 0 and the normal quantile lies below it, so that every step comes closer from below.

    Parameters
    ----------
    probability : float
        From 0.5 up to, but not including, 1.
    freedom : int
        Degrees of freedom, 1 or more.
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


@cache
def _greatest_share(found: int, count: int, confidence: float = 0.95) -> float:
    """Return the greatest share of all that is credible where ``found`` of ``count`` are such (0 to 1).

    Source: Clopper and Pearson, Biometrika 26 (1934); of none it is 1 - (1 - confidence)^(1 / count), some 3 / count.
    """
    low, high = found / count, 1.0
    while found < count and high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if incomplete_beta(middle, found + 1, count - found) >= confidence else (middle, high)
    return high


@validated
def share_interval(
    found: Annotated[int, Between(0, 10**15)], count: Annotated[int, Between(0, 10**15)], of: int | None = None
) -> tuple[float, float]:
    """Return the 95 % interval of a share (0 to 1), where ``found`` of ``count`` that were drawn are such; 0 to 1 of none.

    ``of``: how many there are in all, drawn or not; the interval is a point where all were drawn. None: without end.

    Limits: members are drawn by chance. One in each 16 is not, where what comes repeats with the same period.

    Source: E. B. Wilson, JASA 22 (1927), 209-212 (score interval); Cochran, Sampling Techniques, 3.2 (finite population).

    >>> share_interval(3, 10, 10)
    (0.3, 0.3)
    """
    if not count:
        return 0.0, 1.0
    left = 1.0 if of is None else max(1.0 - count / of, 0.0) if of else 0.0
    square = NormalDist().inv_cdf(0.975) ** 2 * left
    share = found / count
    middle = (share + square / (2 * count)) / (1 + square / count)
    reach = math.sqrt(square * (share * (1 - share) / count + square / (4 * count**2))) / (1 + square / count)
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


@validated
def bounded_mean_interval(
    values: NDArray[np.floating], least: float, most: float, same: float = 0.0
) -> tuple[float, float]:
    """Return the 95 % interval of the mean of values that have bounds; NaN for fewer than two.

    Values that are all alike, or nearly all, prove nothing of others that are rare. So where most are alike, or fewer
    than 8 are not, the interval holds what a share of others that is credible could do, those unseen at the bounds.
    Elsewhere it is `mean_interval`, longer on each side by part of what the sample reaches there, as tails go on.

    Limits: coverage by measurement, not by proof: docs/accuracy.md. Where rare values are most of it, it is above 99 %.

    Source: K. W. Stringer, "Practical aspects of statistical sampling in auditing", 1963 (bound of a mean, most of whose
    parts are 0); the length of tails from 20,000 samples of queues.

    Parameters
    ----------
    values : array, shape (values,)
    least, most : float
        Bounds of a value.
    same : float
        Values are alike that differ by up to this part of them, as by a tick of a clock.
    """
    ordered = np.sort(values)
    count = len(ordered)
    low, high = mean_interval(ordered)
    if count < 2:
        return low, high
    reach = TAIL / (count + 1) * max(1.0, FEW / count)
    below, above = float(np.median(ordered) - ordered[0]), float(ordered[-1] - np.median(ordered))
    skew = min(max(above / below, 1 / SKEW_MOST), SKEW_MOST) if below > 0 and above > 0 else 1.0
    low, high = low - reach * below * max(1.0, 1 / skew), high + reach * above * max(1.0, skew)
    alike = np.searchsorted(ordered, ordered * (1 + same), side="right") - np.arange(count)
    others = count - int(alike.max())
    if (alike.max() > 1 or count < FEWEST) and (others < OTHERS_LEAST or (2 * others < count and others < OTHERS_MOST)):
        usual = float(ordered[alike.argmax() + alike.max() // 2])
        low = min(low, usual - _credible_mean(usual - ordered, usual - least))
        high = max(high, usual + _credible_mean(ordered - usual, most - usual))
    return max(low, least), min(high, most)


def _credible_mean(parts: NDArray[np.floating], most: float) -> float:
    """Return the greatest credible mean of parts that are 0, or less, but for some, and ``most`` at the most."""
    count, some = len(parts), np.sort(parts[parts > 0])[::-1]
    shares = [_greatest_share(found, count) for found in range(len(some) + 1)]
    return shares[0] * max(most, 0.0) + float(np.dot(np.diff(shares), some))


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


@validated
def poisson_bounds(found: Annotated[int, Between(0, 10**15)], confidence: Share = 0.95) -> tuple[float, float]:
    """Return the least and the greatest mean of a Poisson count that is credible where ``found`` were counted.

    Each bound alone holds with the confidence; of none the greatest is ``-log(1 - confidence)``, 3.0 for 95 %.

    Source: Garwood, Biometrika 28 (1936); above 1,000 by the cube root of Wilson and Hilferty.
    """
    if found > POISSON_EXACT:
        quantile = NormalDist().inv_cdf(confidence)
        low, high = (
            count * (1 - 1 / (9 * count) + sign * quantile / (3 * math.sqrt(count))) ** 3
            for count, sign in ((found, -1), (found + 1, 1))
        )
        return low, high
    return _poisson_mean(found - 1, confidence) if found else 0.0, _poisson_mean(found, 1 - confidence)


def _poisson_mean(count: int, share: float) -> float:
    """Return the mean at which so many or fewer are counted with a probability of ``share``."""
    low, high = 0.0, 10.0 + 3.0 * count + 40.0
    while high - low > 1e-12 * high:
        mean = (low + high) / 2
        below = math.fsum(math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(count + 1))
        low, high = (mean, high) if below > share else (low, mean)
    return (low + high) / 2
