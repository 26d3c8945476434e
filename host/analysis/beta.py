# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Computes the incomplete beta function, which the distributions of Student and of Bernoulli's trials are made of.

SciPy has it, too, and is twice as large as all else that a host needs. Stands alone: a test compares the two.
"""

import math
from itertools import count
from typing import Annotated

from liteprobe.host.base.errors import DataError
from liteprobe.host.base.validate import Between, Share, validated

TINY = 1e-300
PRECISION = 1e-15


Shape = Annotated[float, Between(0, 10**9, is_above=True)]  # A larger one takes too many steps.


@validated
def incomplete_beta(x: Share, a: Shape, b: Shape) -> float:
    """Return the regularised incomplete beta function I_x(a, b).

    Raises DataError when an argument is out of range.

    Parameters
    ----------
    x : float
        From 0 to 1.
    a, b : float
        Above 0.

    Returns
    -------
    float
        From 0 to 1; its relative error is below 1e-8 for a + b up to a million.

    Source: DLMF 8.17.22 (continued fraction), 8.17.4 (symmetry); W. J. Lentz, Applied Optics 15 (1976), 668.
    """
    if not (0 <= x <= 1 and a > 0 and b > 0):
        raise DataError(f"I_{x}({a}, {b}) is not defined: give x from 0 to 1, and a and b above 0")
    if x in (0, 1):
        return float(x)
    if x > (a + 1) / (a + b + 2):  # Where the fraction would converge slowly.
        return 1 - incomplete_beta(1 - x, b, a)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(logarithm) / a * _fraction(x, a, b)


def _fraction(x: Share, a: Shape, b: Shape) -> float:
    """Return the continued fraction, from its first convergent on, by the method of Lentz."""
    above, below = 1.0, 1 / (1 - (a + b) * x / (a + 1) or TINY)
    value = below
    for m in count(1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            below = 1 / (1 + term * below or TINY)
            above = 1 + term / above or TINY
            value *= above * below
        if abs(above * below - 1) < PRECISION:
            break
    return value
