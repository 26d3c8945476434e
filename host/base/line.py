# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Says what the line of a probe's ports carries, and what its clock counts: of 1 Gb/s, or of 10."""

from dataclasses import dataclass
from fractions import Fraction

from liteprobe.cores.formats import LINE_RATE_BPS
from liteprobe.cores.formats.xgmii import COLUMN, LANES, XGMII_RATE_BPS

INCREMENT_ONE = 2**40  # One nanosecond a tick, in the 8.40 fixed point of the clock's increment.
GIGA = 10**9


@dataclass(frozen=True)
class Line:
    """A line of test ports. A tick of a program is an octet of it; a tick of the clock may be several.

    >>> GIGABIT.octet_ns, TEN_GIGABIT.octet_ns, TEN_GIGABIT.tick_ns, str(TEN_GIGABIT)
    (Fraction(8, 1), Fraction(4, 5), Fraction(32, 5), '10 Gb/s')
    """

    rate_bps: int  # Preamble, SFD, FCS and IFG included.
    octets_per_tick: int = 1  # Octets in a tick of the probe's clock.

    @property
    def octet_ns(self) -> Fraction:
        """Time of an octet (ns), where the clock is right."""
        return Fraction(8 * GIGA, self.rate_bps)

    @property
    def tick_ns(self) -> Fraction:
        """Time of a tick of the probe's clock (ns), where that is right."""
        return self.octets_per_tick * self.octet_ns

    @property
    def cut_ns(self) -> int:
        """Return what stamps, whole nanoseconds, leave out at most (ns): ticks of 8 ns are whole ones."""
        return int(self.tick_ns.denominator != 1)

    @property
    def column(self) -> int:
        """Octets in which a frame may start in one place alone."""
        return min(self.octets_per_tick, COLUMN)

    @property
    def quantum_octets(self) -> Fraction:
        """Return what an interval may be off, in octets: stamps are those of a tick or a column, and whole nanoseconds."""
        return Fraction(self.column) + self.cut_ns / self.octet_ns

    @property
    def increment(self) -> int:
        """Nanoseconds that a right clock counts a tick, in 8.40 fixed point."""
        return round(self.tick_ns * INCREMENT_ONE)

    def octets_of(self, time_ns: float | Fraction, increment: int) -> Fraction:
        """Return the octets that a time of the probe's clock has; ``increment``: of that clock, in 8.40 fixed point."""
        return Fraction(time_ns) * self.octets_per_tick * INCREMENT_ONE / increment

    def program_increment(self, increment: int) -> int | Fraction:
        """Return what a tick of a program has, an octet, of the increment of a probe's clock, in 8.40 fixed point."""
        return increment if self.octets_per_tick == 1 else Fraction(increment, self.octets_per_tick)

    @property
    def nominal(self) -> Fraction:
        """Nanoseconds that a right clock counts an octet, in 8.40 fixed point."""
        return self.octet_ns * INCREMENT_ONE

    def of_octets(self, increment: int) -> Fraction:
        """Return the nanoseconds that a clock of this increment a tick counts an octet, in 8.40 fixed point."""
        return self.nominal if increment == self.increment else Fraction(self.program_increment(increment))

    @property
    def most(self) -> str:
        """The rate, as in a URL or a document: ``1G``."""
        return f"{self.rate_bps // GIGA}G"

    def __str__(self) -> str:
        return f"{self.rate_bps // GIGA} Gb/s"


GIGABIT = Line(LINE_RATE_BPS)
TEN_GIGABIT = Line(XGMII_RATE_BPS, LANES)
FASTEST = TEN_GIGABIT


def line_of_url(url: str) -> Line | None:
    """Return the line of the probe of a URL; None: the probe itself must say it."""
    scheme = url.partition("://")[0]
    return {"sim": GIGABIT, "sim10g": TEN_GIGABIT}.get(scheme)
