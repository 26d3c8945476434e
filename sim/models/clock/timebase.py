# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Models what the clock must show, in whole numbers of 2^-40 ns."""

from dataclasses import dataclass

FRACTION = 1 << 40
WRAP = 1 << 104


@dataclass
class ClockModel:
    """Adds up the increment; a set loads, an adjustment (32.32 ns) adds once."""

    increment: int = 8 * FRACTION
    total: int = 0

    def tick(self, ticks: int = 1) -> None:
        """Let ``ticks`` pass."""
        self.total = (self.total + ticks * self.increment) % WRAP

    def set(self, time_ns: int) -> None:
        """Load a time."""
        self.total = time_ns * FRACTION

    def adjust(self, fixed_32_32: int) -> None:
        """Add a signed number of 2^-32 ns."""
        self.total = (self.total + (fixed_32_32 << 8)) % WRAP

    @property
    def now_ns(self) -> int:
        """Whole nanoseconds."""
        return self.total // FRACTION

    @property
    def fraction(self) -> int:
        """Rest, in 2^-40 ns."""
        return self.total % FRACTION
