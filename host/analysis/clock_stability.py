# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Computes Allan deviation, time deviation and MTIE of an oscillator, and of the clock made of it, from the log of a PPS.

Stands alone: the figures are a script's to take, without the plots.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.base import extras
from liteprobe.host.base.errors import DataError
from liteprobe.host.base.validate import Between, validated

with extras.named():
    import allantools

Floats = NDArray[np.float64]
LOCKED = "locked"
LEAST = 4  # Edges from which there is a deviation at all.


Period = Annotated[float, Between(1, 10**15)]


@dataclass(frozen=True)
class Stability:
    """Holds the overlapping Allan deviation; each array has shape (averaging times,)."""

    tau_s: Floats  # Averaging times, in octaves of the period.
    deviation: Floats  # Of the fractional frequency.
    error: Floats  # Its standard error.
    edges: int  # That it was computed from.


@validated
def longest_run(index: NDArray[np.int64], states: Sequence[str] = ()) -> slice:
    """Return the longest run of edges in which no period is missing; of those at which the clock was locked, where any was."""
    if not len(index) or len(states) not in (0, len(index)):
        raise DataError(
            f"{len(index)} edges have {len(states)} states: give a state for each edge, and one edge or more"
        )
    is_locked = np.array([state == LOCKED for state in states], bool)
    if is_locked.any():
        # A run of another state is as good as a missing edge.
        index = index + np.cumsum(np.concatenate([[False], np.diff(is_locked)]) | ~is_locked)
        locked = np.flatnonzero(is_locked)
        run = longest_run(index[locked])
        return slice(int(locked[run.start]), int(locked[run.stop - 1]) + 1)
    breaks = np.flatnonzero(np.diff(index) != 1) + 1
    starts, ends = np.concatenate([[0], breaks]), np.concatenate([breaks, [len(index)]])
    longest = int(np.argmax(ends - starts))
    return slice(int(starts[longest]), int(ends[longest]))


@validated
def allan_deviation(phase_ns: Floats, period_ns: Period) -> Stability:
    """Return the overlapping Allan deviation of a phase.

    Source: D. A. Howe, D. W. Allan, J. A. Barnes, "Properties of signal sources and measurement methods" (1981), as
    computed by allantools.

    Raises DataError if there are fewer than four edges.

    Parameters
    ----------
    phase_ns : array, shape (edges,)
        Clock less PPS at edges that are one period apart, without a gap.
    period_ns : float
        Between two edges.
    """
    if len(phase_ns) < LEAST:
        raise DataError(f"an Allan deviation needs {LEAST} edges in a row or more, not {len(phase_ns)}")
    tau_s, deviation, error, _ = allantools.oadev(
        np.asarray(phase_ns, np.float64) * 1e-9, rate=1e9 / period_ns, data_type="phase", taus="octave"
    )
    return Stability(np.asarray(tau_s), np.asarray(deviation), np.asarray(error), len(phase_ns))


@dataclass(frozen=True)
class Wander:
    """Tells how far a phase strays in a time, in ns; each array has shape (times,)."""

    #: ``tau_s``, ``tdev_ns``, ``tdev_error_ns``: averaging times, the time deviation and its standard error.
    tau_s: Floats
    tdev_ns: Floats
    tdev_error_ns: Floats
    #: ``window_s``, ``mtie_ns``: observation times, and the maximum time interval error: the greatest peak to peak
    #: within one.
    window_s: Floats
    mtie_ns: Floats


@validated
def wander(phase_ns: Floats, period_ns: Period) -> Wander:
    """Return time deviation and MTIE of a phase.

    Source: ITU-T G.810 (08/96), appendix II.3 (TDEV) and II.5 (MTIE), as computed by allantools.

    Raises DataError if there are fewer than four edges.

    Parameters
    ----------
    phase_ns, period_ns : as of `allan_deviation`.
    """
    if len(phase_ns) < LEAST:
        raise DataError(f"a time deviation needs {LEAST} edges in a row or more, not {len(phase_ns)}")
    rate, phase_s = 1e9 / period_ns, np.asarray(phase_ns, np.float64) * 1e-9
    tau_s, deviation, error, _ = allantools.tdev(phase_s, rate=rate, data_type="phase", taus="octave")
    window_s, mtie, _, _ = allantools.mtie(phase_s, rate=rate, data_type="phase", taus="octave")
    return Wander(
        np.asarray(tau_s),
        1e9 * np.asarray(deviation),
        1e9 * np.asarray(error),
        np.asarray(window_s),
        1e9 * np.asarray(mtie),
    )
