# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Delays of a network, fixed or of a distribution, as quantiles."""

from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from liteprobe.cores.formats.emulate import DELAY_ENTRIES
from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.intervals import Number, exact

KINDS = ("uniform", "normal", "pareto", "paretonormal", "table")
PARETO_SHAPE = 3
PARETO_MEAN, PARETO_SCALE = 1.5, 4 / 3
SPREADS_MOST = 32767 / 8192  # Where netem's tables end.
PERCENT = 100


def check_share(share: Number, what: str) -> None:
    """Raise UsageError unless ``share`` lies from 0 to 1."""
    if not 0 <= exact(share) <= 1:
        raise UsageError(f"{what} of {float(share) * PERCENT:g} % is out of range: give 0 % to 100 %")


@dataclass(frozen=True)
class Jitter:
    """How the delays of the frames of a class differ. Frames of a class keep their order all the same.

    Source: iproute2, netem/pareto.c and paretonormal.c (after NIST Net).

    Parameters
    ----------
    kind : str
        ``uniform``, ``normal``, ``pareto``, ``paretonormal`` or ``table``. The middle three are those of netem.
    spread_ns : number
        Half the width of the uniform distribution, the standard deviation of the others (netem scales its Pareto's alike).
    table_ns : tuple of number
        Of ``table``: what comes on top of the delay, each entry for an equal share of the frames; 1 to 1024 entries.
    correlation : number
        Share of the frames, from 0 to 1, that have the delay of the one before: the correlation of two frames n apart is its
        n-th power.
    """

    kind: str
    spread_ns: Number = 0
    table_ns: tuple[Number, ...] = ()
    correlation: Number = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"no jitter is called '{self.kind}': give one of {', '.join(KINDS)}")
        check_share(self.correlation, "a correlation of delays")
        if self.kind == "table":
            if not 1 <= len(self.table_ns) <= DELAY_ENTRIES:
                raise UsageError(f"a table of {len(self.table_ns)} delays is out of range: give 1 to {DELAY_ENTRIES}")
            if min(exact(one) for one in self.table_ns) < 0:
                raise UsageError("a table of delays has one below 0: give what comes on top of the delay, from 0")
        elif self.table_ns:
            raise UsageError(f"jitter '{self.kind}' has no table: leave it out, or give 'table'")
        elif exact(self.spread_ns) <= 0:
            raise UsageError(f"a spread of {self.spread_ns} ns is out of range: give more than 0")

    def quantiles_ns(self) -> list[Fraction]:
        """Return what each quantile adds to the delay (ns, below 0 where it takes away), ascending."""
        if self.kind == "table":
            table = sorted(exact(one) for one in self.table_ns)
            return [table[number * len(table) // DELAY_ENTRIES] for number in range(DELAY_ENTRIES)]
        spread = exact(self.spread_ns)
        middles = [Fraction(2 * number + 1, 2 * DELAY_ENTRIES) for number in range(DELAY_ENTRIES)]
        return [spread * spreads_of(self.kind, middle) for middle in middles]


def spreads_of(kind: str, share: Fraction) -> Fraction:
    """Return the quantile of a distribution of mean 0 and spread 1, below which lies ``share`` of it."""
    if kind == "uniform":
        return 2 * share - 1
    normal = NormalDist().inv_cdf(float(share))
    pareto = ((1 - float(share)) ** (-1 / PARETO_SHAPE) - PARETO_MEAN) * PARETO_SCALE
    pareto = min(pareto, SPREADS_MOST)
    value = {"normal": normal, "pareto": pareto, "paretonormal": (normal + 3 * pareto) / 4}[kind]
    return Fraction(value)


@dataclass(frozen=True)
class Reorder:
    """Frames that are held back, so that later ones overtake them.

    The extent is a time; the extent in frames follows from it: as many overtake as come within it. What is held back keeps its
    order among itself, over all classes of the direction.

    Parameters
    ----------
    share : number
        Of the frames, from 0 to 1.
    extent_ns : number
        How long they are held back, on top of their delay.
    """

    share: Number
    extent_ns: Number

    def __post_init__(self) -> None:
        check_share(self.share, "a share of frames that are held back")
        if exact(self.extent_ns) <= 0:
            raise UsageError(
                f"an extent of {self.extent_ns} ns is out of range: give more than 0, the time to hold back"
            )
