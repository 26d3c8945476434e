# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""When the frames of a program start, in absolute time."""

from fractions import Fraction


def starts(count: int, repeats: int, interval_ticks: Fraction, gap_ticks: int = 0) -> list[int]:
    """Return the tick of each start, from the first.

    Parameters
    ----------
    count, repeats : int
        Frames of a train and trains.
    interval_ticks : Fraction
        From start to start, within a train and, with the gap on top, between trains.
    gap_ticks : int
        Between the slot of a train's last frame and the next head.

    Returns
    -------
    list of int
        Frame k starts in the tick in which ``k * interval`` plus the gaps before it falls.
    """
    return [int(k * interval_ticks) + k // count * gap_ticks for k in range(count * repeats)]
