# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Times to ticks, exactly: each time is rounded by itself, so nothing drifts."""

from fractions import Fraction

import numpy as np

from liteprobe.host.packets.copy_ranges import Index

OVER_MAX, UNDER_MAX = 1 << 50, 1 << 60  # Numerator and denominator for which ``scaled`` is exact.


def fitting(ratio: Fraction) -> Fraction:
    """Return ``ratio``, or the nearest one that ``scaled`` can take: off by less than 1 part in 2^58, from 2^-40 to 2^40."""
    if ratio.denominator == 1 or (ratio.numerator < OVER_MAX and ratio.denominator < UNDER_MAX):
        return ratio
    return ratio.limit_denominator(max(min(int(OVER_MAX / 2 / ratio), UNDER_MAX - 1), 1))


def scaled(times: Index, ratio: Fraction) -> Index:
    """Return ``times * ratio``, each rounded to the nearest whole number; halves upwards.

    Parameters
    ----------
    times : array of int64, 0 or more
    ratio : Fraction
        As ``fitting`` returns it.
    """
    over, under = ratio.numerator, ratio.denominator
    if under == 1:
        return times * over
    whole, rest = np.divmod(times, under)
    # The quotient is off by one at most; what is left of the product, modulo 2^64, says by how much.
    near = (rest.astype(np.float64) * over / under).astype(np.int64)
    left = rest * over - near * under
    return np.asarray(whole * over + near + (2 * left + under) // (2 * under))
