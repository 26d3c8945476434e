# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends and receives octets on the serial line of a GNSS receiver.

Stands alone: tests drive its pins without a probe.
"""

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from litex.soc.interconnect import stream

OCTET_BITS = 10 # With start and stop bit.

class SerialLine(LiteXModule):
    """Sends and receives octets: a start bit, eight bits with the lowest first, a stop bit. A part of LiteX's UART.

    Parameters
    ----------
    pads : ``tx``, out; ``rx``, in, asynchronous
    clk_freq, baud : float, Hz
        A bit takes whole cycles, so the rate is off by half a cycle at most.

    Attributes
    ----------
    sink : Endpoint([("data", 8)]), in
        Taken as the stop bit ends.
    source : Endpoint([("data", 8)]), out
        One cycle for each octet, in the middle of its stop bit; none where the line is low there. Nobody may stall it.

    Source: RS-232, as LiteX's RS232PHY, whose accumulators of 32 bits it does without.
    """
    def __init__(self, pads, clk_freq, baud):
        self.sink   = sink   = stream.Endpoint([("data", 8)])
        self.source = source = stream.Endpoint([("data", 8)])

        # # #

        cycles = round(clk_freq/baud)

        # Send.
        # -----
        out      = Signal(OCTET_BITS, reset=2**OCTET_BITS - 1) # The lowest bit is on the line.
        out_left = Signal(max=OCTET_BITS + 1)
        out_end  = self.add_bit(cycles, out_left != 0, 0)
        self.comb += [
            pads.tx.eq(out[0]),
            sink.ready.eq(out_end & (out_left == 1)),
        ]
        self.sync += If(out_left == 0,
            If(sink.valid,
                out.eq(Cat(0, sink.data, 1)),
                out_left.eq(OCTET_BITS),
            ),
        ).Elif(out_end,
            out.eq(Cat(out[1:], 1)),
            out_left.eq(out_left - 1),
        )

        # Receive.
        # --------
        line    = Signal(reset=1)
        line_d  = Signal(reset=1)
        octet   = Signal(8, reset_less=True)
        in_left = Signal(max=OCTET_BITS + 1)
        in_end  = self.add_bit(cycles, in_left != 0, cycles - cycles//2) # In the middle of each bit.
        self.specials += MultiReg(pads.rx, line, reset=1)
        self.comb += [
            source.data.eq(octet),
            source.valid.eq(in_end & (in_left == 1) & line),
        ]
        self.sync += [
            line_d.eq(line),
            If(in_left == 0,
                If(line_d & ~line, in_left.eq(OCTET_BITS)),
            ).Elif(in_end,
                octet.eq(Cat(octet[1:], line)),
                in_left.eq(in_left - 1),
            ),
        ]

    def add_bit(self, cycles, runs, first):
        """Count the cycles of each bit while ``runs``, those of the first one from ``first`` on; return whether one ends."""
        cycle  = Signal(max=cycles, reset_less=True)
        is_end = Signal()
        self.comb += is_end.eq(cycle == cycles - 1)
        self.sync += If(~runs, cycle.eq(first)).Elif(is_end, cycle.eq(0)).Else(cycle.eq(cycle + 1))
        return is_end
