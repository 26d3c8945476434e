# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Allan deviation of an oscillator, and of the clock that is made of it, from the log of a PPS."""

from dataclasses import dataclass

import allantools
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST = 4  # Edges from which there is a deviation at all.


@dataclass(frozen=True)
class Stability:
    """Overlapping Allan deviation; each array has shape (averaging times,).

    Attributes
    ----------
    tau_s : averaging times, in octaves of the period.
    deviation : of the fractional frequency.
    error : its standard error.
    edges : int
        That it was computed from.
    """

    tau_s: Floats
    deviation: Floats
    error: Floats
    edges: int


def longest_run(index: NDArray[np.int64]) -> slice:
    """Return the longest run of edges in which no period is missing."""
    breaks = np.flatnonzero(np.diff(index) != 1) + 1
    starts, ends = np.concatenate([[0], breaks]), np.concatenate([breaks, [len(index)]])
    longest = int(np.argmax(ends - starts))
    return slice(int(starts[longest]), int(ends[longest]))


def allan_deviation(phase_ns: Floats, period_ns: float) -> Stability:
    """Return the overlapping Allan deviation of a phase.

    Parameters
    ----------
    phase_ns : array, shape (edges,)
        Clock less PPS at edges that are one period apart, without a gap.
    period_ns : float
        Between two edges.

    Raises
    ------
    ValueError
        If there are fewer than four edges.

    Source: D. A. Howe, D. W. Allan, J. A. Barnes, "Properties of signal sources and measurement methods" (1981), as
    computed by allantools.
    """
    if len(phase_ns) < LEAST:
        raise ValueError(f"an Allan deviation needs {LEAST} edges in a row or more, not {len(phase_ns)}")
    tau_s, deviation, error, _ = allantools.oadev(
        np.asarray(phase_ns, np.float64) * 1e-9, rate=1e9 / period_ns, data_type="phase", taus="octave"
    )
    return Stability(np.asarray(tau_s), np.asarray(deviation), np.asarray(error), len(phase_ns))
