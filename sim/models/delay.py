# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for the delay accumulator."""

from dataclasses import dataclass

SQUARE_LIMIT_NS = (1 << 32) - 1
"""Greatest delay that enters the sum of squares as it is (ns)."""


def signed(value: int, bits: int = 64) -> int:
    """Return ``value`` modulo 2^bits as a two's complement number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


@dataclass
class DelayModel:
    """Least, most, sum (ns) and sum of squares (ns^2) of the delays; all 0 before the first."""

    count: int = 0
    least: int = 0
    most: int = 0
    total: int = 0
    squares: int = 0

    def arrive(self, rx_stamp: int, tx_stamp: int) -> None:
        """Take one frame by its stamps (ns)."""
        delay = signed(rx_stamp - tx_stamp)
        self.least = delay if self.count == 0 else min(self.least, delay)
        self.most = delay if self.count == 0 else max(self.most, delay)
        self.count += 1
        self.total = signed(self.total + delay)
        self.squares = (self.squares + min(abs(delay), SQUARE_LIMIT_NS) ** 2) % (1 << 96)
