# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a SDRAM, its commands one after the other, can do at most, and how long a user waits at most: by hand, in cycles."""

from dataclasses import dataclass
from math import ceil

WORD_BITS = 32
LONGEST, LEAST = 64, 16  # Words of a burst; so many before it gives way.
READ_LATENCY = 3  # From a column to its word, at CL 2.
REQUESTS = 8  # Behind a crossing.
REFRESH_US = 64e3 / 4096
GRANT = 1  # Of a port.
CROSSING = 12  # Of ``sys``: a request to the controller, and its last word back.


@dataclass(frozen=True)
class Arithmetic:
    """Of a controller at ``mhz``; ``sys_mhz`` is None where that is ``sys`` itself, else what its ports run at.

    Words that are read come ``late`` cycles after READ_LATENCY.
    """

    mhz: float
    sys_mhz: float | None = None
    late: int = 0

    def cycles(self, ns: float) -> int:
        """Return cycles of at least so many nanoseconds."""
        return ceil(ns * self.mhz / 1000 - 1e-9)

    @property
    def column(self) -> int:
        """From activate to the first column: tRCD."""
        return self.cycles(20)

    @property
    def close(self) -> int:
        """From the last column to precharge: tWR, or what is left of tRAS after one word."""
        return max(self.cycles(30), self.cycles(49) - self.column)

    @property
    def open(self) -> int:
        """From precharge to activate: tRP."""
        return self.cycles(20)

    @property
    def refresh(self) -> int:
        """From a refresh to the next command: tRFC."""
        return self.cycles(80)

    @property
    def _ratio(self) -> float:
        return 1 if self.sys_mhz is None else self.sys_mhz / self.mhz

    def burst(self, words: float) -> float:
        """From the activate of a burst to that of the next."""
        return self.column + words + self.close + self.open - 1

    @property
    def access(self) -> int:
        """The same of an access of the bus: octets are read, then written."""
        return self.column + READ_LATENCY + self.late + self.close + self.open

    def mbps(self, words: float = LONGEST) -> float:
        """Return what bursts of so many words move, reads and writes together; at the ports it is a word a cycle each way."""
        share = words / self.burst(words) * (1 - self.refresh / (REFRESH_US * self.mhz))
        at_ports = float("inf") if self.sys_mhz is None else 2 * WORD_BITS * self.sys_mhz
        return min(WORD_BITS * self.mhz * share, at_ports)

    @property
    def bus(self) -> int:
        """Return the longest that the bus waits for its answer (cycles of ``sys``).

        An access before it ends, a burst has just begun and goes on for 16 words, then a refresh is due.
        """
        last = self.close + self.open - 1
        waits = last + int(self.burst(LEAST)) + self.refresh + self.column + READ_LATENCY + self.late
        # Ask, two registers, the answer, two registers.
        return waits if self.sys_mhz is None else 1 + ceil((2 + waits + 1) * self._ratio) + 2

    def request(self, with_bus: bool) -> int:
        """Return the longest that a request of 64 words holds others up (cycles of ``sys``): its words, or its commands."""
        pieces = LONGEST // LEAST
        commands = pieces * (self.burst(LEAST) + self.access) if with_bus else self.burst(LONGEST) + self.burst(0)
        cycles = ceil((commands + self.refresh) * self._ratio)
        return (cycles if self.sys_mhz is None else max(cycles, LONGEST)) + GRANT

    def wait(self, ports: int, with_bus: bool) -> int:
        """Return the longest until a port's request is taken: one of each port goes before, the first has just begun."""
        return ports * self.request(with_bus) + CROSSING

    def whole(self, ports: int, with_bus: bool) -> int:
        """Return the longest from a request to its last word."""
        before = 1 if self.sys_mhz is None else REQUESTS + 1
        return self.wait(ports, with_bus) + before * self.request(with_bus) + CROSSING
