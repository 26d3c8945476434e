# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Keeps the one time of the whole probe."""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import *

from liteprobe.cores.crossing import HeldCrossing, PulseCrossing, StillCrossing
from liteprobe.cores.bus import WriteOnlyCSR

FRACTION_BITS = 40
INCREMENT     = 8 << FRACTION_BITS # ns per tick at exactly 125 MHz.
LOW_BITS      = 48                 # Where the accumulator is cut: 40 of fraction, 8 of nanoseconds.
HIGH_BITS     = 64 + FRACTION_BITS - LOW_BITS

# Past Time ----------------------------------------------------------------------------------------

class PastTime(LiteXModule):
    """Remembers the time of some ticks ago; all who ask share its registers.

    Attributes
    ----------
    now : Signal(64), in, timebase
    """
    def __init__(self, now):
        self.now  = now
        self.past = [now]

    def ago(self, ticks):
        """Return what ``now`` was so many ticks ago; ask before the logic is finalized."""
        while len(self.past) <= ticks:
            past = Signal(64, name=f"now_{len(self.past)}_ago", reset_less=True)
            self.sync.timebase += past.eq(self.past[-1])
            self.past.append(past)
        return self.past[ticks]

# Clock --------------------------------------------------------------------------------------------

class TimebaseClock(LiteXModule):
    """Counts nanoseconds and ticks; all in ``timebase``.

    ``now`` advances by ``increment`` each tick. The sum is cut in two so that it closes timing; the
    low part is delayed, so ``now`` and ``fraction`` are always of one tick.

    Parameters
    ----------
    nominal : int
        What ``increment`` is at power-up.

    Attributes
    ----------
    now : Signal(64), out
        Present time (ns since the PTP epoch once set; since reset before). Wraps.
    fraction : Signal(40), out
        Of the nanosecond, in 2^-40 ns.
    past : PastTime
        ``now`` of some ticks ago.
    ticks : Signal(64), out
        Ticks since reset; nothing sets or adjusts it.
    increment : Signal(48), in
        ns per tick, 8.40 fixed point; sampled each tick.
    set_time : Signal(64), in
    set : Signal(), in
        Loads ``set_time`` (fraction 0): ``now`` equals it two ticks later and goes on from there.
    adjust : Signal(64), in
        Signed ns, 32.32 fixed point; must stand still from ``adjust_apply`` for three ticks.
    adjust_apply : Signal(), in
        Adds ``adjust`` once; done five ticks later.

    The PPS input (``timebase/pps.py``) stamps edges with ``now``; firmware steers ``increment`` and ``adjust`` by them.

    Limits: ``set`` and ``adjust_apply`` within five ticks of each other may lose the adjustment. Never
    step ``now`` while a train runs.
    """
    def __init__(self, nominal=INCREMENT):
        self.nominal      = nominal
        self.now          = Signal(64)
        self.past         = PastTime(self.now)
        self.fraction     = Signal(FRACTION_BITS)
        self.ticks        = Signal(64)
        self.increment    = Signal(LOW_BITS, reset=nominal, reset_less=True)
        self.set_time     = Signal(64)
        self.set          = Signal()
        self.adjust       = Signal(64)
        self.adjust_apply = Signal()

        # # #

        step_low  = Signal(LOW_BITS, reset=nominal, reset_less=True) # Follows the increment in a reset, too.
        step_high = Signal(HIGH_BITS)
        self.add_step(step_low, step_high)
        self.add_accumulator(step_low, step_high)
        self.sync.timebase += self.ticks.eq(self.ticks + 1)

    def add_step(self, step_low, step_high):
        """Form what the next tick adds: the increment, once with the adjustment on top."""
        sum_low  = Signal(LOW_BITS + 1, reset_less=True)
        sum_high = Signal(HIGH_BITS, reset_less=True)
        addend   = Signal((LOW_BITS + HIGH_BITS, True))
        apply    = Signal(4)
        self.comb += addend.eq(Cat(Constant(0, FRACTION_BITS - 32), self.adjust, Replicate(self.adjust[-1], 32)))
        self.sync.timebase += [
            apply.eq(Cat(self.adjust_apply, apply)),
            sum_low.eq(self.increment + addend[:LOW_BITS]),
            sum_high.eq(addend[LOW_BITS:] + sum_low[LOW_BITS]),
            # The high part is added one tick after the low part, like its carry.
            step_low.eq(Mux(apply[1], sum_low[:LOW_BITS], self.increment)),
            step_high.eq(Mux(apply[2], sum_high, 0)),
        ]

    def add_accumulator(self, step_low, step_high):
        """Add up low and high part, a tick apart, and bring them together again."""
        low        = Signal(LOW_BITS)
        low_d      = Signal(LOW_BITS, reset_less=True)
        carry      = Signal()
        high       = Signal(HIGH_BITS)
        unused     = Signal()
        set_d      = Signal()
        set_time_d = Signal(HIGH_BITS, reset_less=True)
        ns_bits    = LOW_BITS - FRACTION_BITS
        self.sync.timebase += [
            Cat(low, carry).eq(low + step_low),
            # One adder: the carry comes in through an extra lowest bit.
            Cat(unused, high).eq(Cat(Constant(1, 1), high) + Cat(carry, step_high)),
            low_d.eq(low),
            set_d.eq(self.set),
            set_time_d.eq(self.set_time[ns_bits:]),
            If(self.set,
                low.eq(Cat(Constant(0, FRACTION_BITS), self.set_time[:ns_bits])),
                carry.eq(0),
            ),
            If(set_d, high.eq(set_time_d)),
        ]
        self.comb += [
            self.fraction.eq(low_d[:FRACTION_BITS]),
            self.now.eq(Cat(low_d[FRACTION_BITS:], high)),
        ]

    # Registers ------------------------------------------------------------------------------------

    def add_csr(self):
        """Add the registers of the contract ("Registers", ``timebase``), in ``sys``."""
        self._latch         = CSRStorage(1, name="latch", description="Write: take the snapshot.")
        self._now           = CSRStatus(64, name="now", description="Snapshot of now (ns).")
        self._now_fraction  = CSRStatus(32, name="now_fraction", description="Snapshot, 2^-32 ns.")
        self._ticks         = CSRStatus(64, name="ticks", description="Snapshot of the tick counter.")
        self._increment     = WriteOnlyCSR(48, name="increment", reset=self.nominal,
            description="ns per tick, 8.40 fixed point; taken as the low word is written.")
        self._set_time      = WriteOnlyCSR(64, name="set_time", description="Time to set (ns).")
        self._set           = CSRStorage(1, name="set", description="Write: load set_time.")
        self._adjust        = WriteOnlyCSR(64, name="adjust", description="Signed ns, 32.32 fixed point.")
        self._adjust_apply  = CSRStorage(1, name="adjust_apply", description="Write: add adjust once.")

        # # #

        self.add_snapshot()
        for register, word, strobe in [
            (self._increment.re,    self._increment.storage, None),
            (self._set.re,          self._set_time.storage,  self.set),
            (self._adjust_apply.re, self._adjust.storage,    self.adjust_apply),
        ]:
            # 104 ns after the strobe the word was used. To write it again a bus master must go back in its addresses: six cycles.
            crossing = StillCrossing(len(word), "sys", "timebase")
            self.submodules += crossing
            self.comb += [crossing.i.eq(word), crossing.take.eq(register)]
            if strobe is None:
                self.sync.timebase += If(crossing.taken, self.increment.eq(crossing.o))
            else:
                target = self.set_time if strobe is self.set else self.adjust
                self.comb += [target.eq(crossing.o), strobe.eq(crossing.taken)]

    def add_snapshot(self):
        """Hold now, fraction and ticks of one tick where ``sys`` can read them."""
        self.latch    = latch    = PulseCrossing("sys", "timebase")
        self.snapshot = snapshot = HeldCrossing(64 + 32 + 64, "timebase", "sys")
        self.comb += [
            latch.i.eq(self._latch.re),
            # Still again eight cycles of ``sys`` after the write, long before a bus can ask.
            snapshot.take.eq(latch.o),
            snapshot.i.eq(Cat(self.now, self.fraction[FRACTION_BITS - 32:], self.ticks)),
            Cat(self._now.status, self._now_fraction.status, self._ticks.status).eq(snapshot.o),
        ]
