# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Shows what a transmit path has in memories side by side, for benches on pins: its counters, and the numbers of its program."""

from migen import *

from litex.gen import *

from liteprobe.cores.transmit.counters import COUNTER_BITS, COUNTERS
from liteprobe.cores.transmit.sources.train import NUMBERS, WORD_BITS

class ShownCounters(LiteXModule):
    """Reads one counter after the other, as a bus would, and keeps what it read last: up to 16 cycles old.

    Attributes
    ----------
    sent, late, ... : Signal(32) or Signal(16), out
        By the names of COUNTERS.
    """
    def __init__(self, counters):
        turn = Signal(2 * len(COUNTERS), reset=1)
        self.sync += turn.eq(Cat(turn[-1], turn[:-1]))
        for number, name in enumerate(COUNTERS):
            shown = Signal(COUNTER_BITS.get(name, 32), name=f"shown_{name}")
            setattr(self, name, shown)
            self.comb += counters.asks[number].eq(turn[2 * number])
            self.sync += If(turn[2 * number], shown.eq(counters.word))

class StillNumbers(LiteXModule):
    """Gives a schedule the numbers of its program.

    Attributes
    ----------
    count, repeats, interval_ticks, interval_fraction, gap_ticks : Signal(32), in
    """
    def __init__(self, schedule):
        for name in NUMBERS:
            setattr(self, name, Signal(WORD_BITS, name=f"still_{name}"))
        cases = {number: schedule.number.eq(getattr(self, name)) for number, name in enumerate(NUMBERS)}
        self.comb += Case(schedule.address, cases)
