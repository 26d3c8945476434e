# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives the processor its timer and its console: registers as LiteX's drivers know them, without what nobody uses of them."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import *
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceProcess

from liteprobe.cores.bus import WriteOnlyCSR

# Tick Timer ---------------------------------------------------------------------------------------

TIMER_BITS  = 32
UPTIME_BITS = 56 # In cycles: 45 years at 50 MHz.

class TickTimer(LiteXModule):
    """Interrupts the processor again and again, and counts the cycles since power-up.

    Registers are those of LiteX's timer with ``uptime``, as Zephyr's driver has them: it writes the same to ``load`` and
    ``reload``. There is no ``value``, and a period that is 0 gives no event at all: the timer has no single shots.

    Attributes
    ----------
    load : WriteOnlyCSR(32)
        Taken for ``reload``'s.
    reload : WriteOnlyCSR(32), the period less one (cycles)
    en : CSRStorage(1)
    uptime_latch : CSRStorage(1), write: take the cycles.
    uptime_cycles : CSRStatus(64)
        Cycles from power-up to the latch; its high word is right for 2^31 cycles after that. Wraps after 2^56 cycles.
    ev.zero : EventSourceProcess, ends of periods
    uptime_low : Signal(32), uptime_high : Signal(24), out
        Cycles since power-up. A carry may wait for half of the low word's way, or for a latch.
    """
    def __init__(self):
        self._load          = WriteOnlyCSR(TIMER_BITS, name="load", description="Periods are those of ``reload``.")
        self._reload        = WriteOnlyCSR(TIMER_BITS, name="reload", description="Cycles of a period, less one.")
        self._en            = CSRStorage(1, name="en", description="1: runs; 0: the next period is a whole one.")
        self.ev             = EventManager()
        self.ev.zero        = EventSourceProcess(edge="rising", description="A period has ended.")
        self.ev.finalize()
        self._uptime_latch  = CSRStorage(1, name="uptime_latch", description="Write: take uptime_cycles.")
        self._uptime_cycles = CSRStatus(64, name="uptime_cycles", description="Cycles since power-up, at the latch.")

        # # #

        # Period.
        # -------
        left = Signal(TIMER_BITS, reset_less=True)
        less = Signal(TIMER_BITS + 1) # The borrow says that nothing is left.
        self.comb += [
            less.eq(left - 1),
            self.ev.zero.trigger.eq(less[-1]),
        ]
        self.sync += If(self._en.storage & ~less[-1], left.eq(less)).Else(left.eq(self._reload.storage))

        # Uptime.
        # -------
        # The high word waits for the next latch, or for half of the low word's way: so nobody has to hold it.
        self.uptime_low  = low  = Signal(32, reset_less=True)
        self.uptime_high = high = Signal(UPTIME_BITS - 32, reset_less=True)
        carry      = Signal(reset_less=True)
        is_carried = Signal(reset_less=True)
        held       = Signal(32, reset_less=True)
        latch      = self._uptime_latch.re
        self.sync += [
            Cat(low, carry).eq(low + 1),
            If(carry, is_carried.eq(1)),
            If((carry | is_carried) & (latch | low[-1]),
                is_carried.eq(0),
                high.eq(high + 1),
            ),
            If(latch, held.eq(low)),
        ]
        self.comb += self._uptime_cycles.status.eq(Cat(held, high))

# Crossover Console --------------------------------------------------------------------------------

CONSOLE_OCTETS = 16 # Each way.

class CrossoverHost(LiteXModule):
    """Has the host's registers of a console, with the names of LiteX's crossover UART.

    Attributes
    ----------
    rxtx : CSR(8)
        Read: the oldest octet, which this takes out. Write: send one.
    txfull, rxempty : CSRStatus(1)
    """
    def __init__(self):
        self._rxtx    = CSR(8, name="rxtx")
        self._txfull  = CSRStatus(1, name="txfull", description="There is no space to send.")
        self._rxempty = CSRStatus(1, name="rxempty", description="No octet waits.")

class CrossoverConsole(LiteXModule):
    """Joins the processor's console to the host's, by one FIFO each way, in place of two UARTs with two each.

    Attributes
    ----------
    rxtx : CSR(8)
        Read: the oldest octet of the host, which stays. Write: send one; lost where there is no space.
    txfull, rxempty : CSRStatus(1)
    ev_pending : CSR(2)
        Write, bit 1: take the oldest octet out.
    xover : CrossoverHost
    """
    def __init__(self):
        self._rxtx       = CSR(8, name="rxtx")
        self._txfull     = CSRStatus(1, name="txfull", description="There is no space to send.")
        self._rxempty    = CSRStatus(1, name="rxempty", description="No octet waits.")
        self._ev_pending = CSR(2, name="ev_pending")
        self.xover = xover = CrossoverHost()

        # # #

        self.out = out = stream.SyncFIFO([("data", 8)], CONSOLE_OCTETS)
        self.back = back = stream.SyncFIFO([("data", 8)], CONSOLE_OCTETS)
        for fifo, writer, reader, taken in [
            (out,  self,  xover, xover._rxtx.we),
            (back, xover, self,  self._ev_pending.re & self._ev_pending.r[1]),
        ]:
            self.comb += [
                fifo.sink.valid.eq(writer._rxtx.re),
                fifo.sink.data.eq(writer._rxtx.r),
                fifo.source.ready.eq(taken),
                writer._txfull.status.eq(~fifo.sink.ready),
                reader._rxtx.w.eq(fifo.source.data),
                reader._rxempty.status.eq(~fifo.source.valid),
            ]
