# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads and sets the probe's clock, and says how far to trust it."""

from fractions import Fraction
from math import isfinite

from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.line import GIGABIT, INCREMENT_ONE, Line
from liteprobe.host.base.validate import validated
from liteprobe.host.clock.clock import ClockVerdict, ProbeClock
from liteprobe.host.device.registers import Registers

ADJUST_ONE = 2**32  # 1 ns in the 32.32 fixed point of an adjustment.
INCREMENT_BITS = 48
FREE_RUNNING = "free-running"


def bound_words(bound_ns: float | None) -> str:
    """Return the bound of a clock's error in words; None: nobody knows it."""
    return "error not known" if bound_ns is None else f"within {bound_ns:.1f} ns (95 %)"


def delay_words(bound_ns: float | None) -> str:
    """Return the bound of a delay's error in words; None or infinite: nobody knows it."""
    if bound_ns is None or not isfinite(bound_ns):
        return "the error of a delay is not known (see the notes)"
    return f"a delay is within {bound_ns:.1f} ns"


@validated
class Timebase:
    """Reads and sets the clock that stamps all frames.

    ``oscillator_ppm``: bound of the rate error of its oscillator while nothing disciplines it.

    ``clock``: what disciplines it, where the gateware can; ``line``: of the ports, whose frames it stamps.
    """

    def __init__(self, registers: Registers, oscillator_ppm: float, line: Line = GIGABIT) -> None:
        self._registers = registers
        self.line = line
        self.clock = ProbeClock(registers)
        self.oscillator_ppm = oscillator_ppm

    @property
    def now_ns(self) -> int:
        """Present time (ns), as it was when the request reached the probe."""
        self._registers.write("timebase_latch", 1)
        return self._registers.read("timebase_now")

    @property
    def ticks(self) -> int:
        """Ticks since reset, never set or adjusted."""
        self._registers.write("timebase_latch", 1)
        return self._registers.read("timebase_ticks")

    def moment(self) -> tuple[int, int, int]:
        """Return time (ns), its fraction (2^-32 ns) and ticks, of one moment: when the request reached the probe."""
        self._registers.write("timebase_latch", 1)
        names = ("timebase_now", "timebase_now_fraction", "timebase_ticks")
        now, fraction, ticks = self._registers.read_many(names).values()
        return now, fraction, ticks

    @property
    def increment(self) -> int:
        """Nanoseconds a tick, in 8.40 fixed point."""
        return self._registers.read("timebase_increment")

    @increment.setter
    def increment(self, increment: int) -> None:
        if not 0 < increment < 1 << INCREMENT_BITS:
            raise UsageError(f"increment {increment} is out of range: give nanoseconds a tick x 2^40, below 256 ns")
        self._registers.write_many({"timebase_increment": increment})

    @property
    def tick_ns(self) -> Fraction:
        """Nanoseconds a tick, exact."""
        return Fraction(self.increment, INCREMENT_ONE)

    def set_time(self, time_ns: int) -> None:
        """Set the clock to ``time_ns``, at the moment when the request reaches the probe."""
        self._registers.write_many({"timebase_set_time": time_ns})
        self._registers.write("timebase_set", 1)

    def adjust(self, offset_ns: float | Fraction) -> None:
        """Add ``offset_ns`` to the clock once, to 2^-32 ns; up to 2^31 ns either way."""
        self._registers.write_many({"timebase_adjust": round(Fraction(offset_ns) * ADJUST_ONE)})
        self._registers.write("timebase_adjust_apply", 1)

    @property
    def clock_state(self) -> str:
        """``free-running``, ``acquiring``, ``locked`` or ``holdover``; ``unknown`` when the firmware fell silent."""
        return self.trust()[0]

    def trust_words(self) -> str:
        """Return the state of the clock and the bound of its error in words, as a reader of stamps must know them."""
        state, bound_ns = self.trust()
        return f"{state}, {bound_words(bound_ns)}"

    def uncertainty_ns(self, delay_ns: float = 0.0) -> float:
        """Bound of the error of a measured delay (ns), PHY delays aside, which are for the calibration.

        A TX stamp is exact. An RX stamp comes up to a tick late, because its SFD crosses clocks. Both are of one
        clock: a free-running oscillator measures ``delay_ns`` by its own rate, which is wrong by up to
        ``oscillator_ppm``; a disciplined clock is within its own bound at either end of the delay, too.
        """
        return self.delay_bound_ns(delay_ns, ClockVerdict(*self.trust()))

    def delay_bound_ns(self, delay_ns: float, verdict: ClockVerdict) -> float:
        """Return `uncertainty_ns` for a clock of which this is to be said; infinite where it was stepped."""
        if not verdict.is_whole:
            return float("inf")
        clock_ns = verdict.bound_ns
        by_rate_ns = abs(delay_ns) * self.oscillator_ppm * 1e-6
        return (
            float(self.tick_ns) + self.line.cut_ns + (by_rate_ns if clock_ns is None else min(by_rate_ns, 2 * clock_ns))
        )

    def trust(self) -> tuple[str, float | None]:
        """Return the state of the clock and the 95 % bound of the error of ``now`` (ns; None: not known)."""
        if not (self.clock.has_status and self.clock.has_pps):
            return FREE_RUNNING, None
        status = self.clock.status()
        return status.name, status.uncertainty_ns
