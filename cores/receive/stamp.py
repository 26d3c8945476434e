# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Stamps arrivals in ``timebase``, and pairs stamps with their frames by number in ``sys``."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.crossing import NumberCrossing, StreamCrossing
from liteprobe.cores.receive.frames import number_bits

# Arrival Stamper ----------------------------------------------------------------------------------

# From the tick in which the SFD stands on the PHY's source to the tick in which its number stands in timebase, where
# both run from one clock: pads' register, Gray register, two registers of the crossing.
latency_ticks = 4

class ArrivalStamper(LiteXModule):
    """Stamps each SFD in ``timebase`` with the tick in which it stood at the PHY's pads.

    Parameters
    ----------
    pad_ticks : int
        Whole ticks from the pads to the PHY's source.

    With asynchronous clocks the stamp is that of the tick in which the SFD began to stand there, or, by the metastability
    of the crossing, of the next one.

    Attributes
    ----------
    sfd : Signal(), in, eth_rx
        From `ReceiveMAC`.
    past : Signal(64), in, timebase
        Time (ns) of ``past_ticks`` ticks ago.
    source : Endpoint([("stamp", 64), ("number", number_bits)]), out, sys
        One for each SFD, in order. Where 16 wait, the next ones are lost; their frames find none and tell.
    waiting : Signal(64), out, timebase
        ``now`` as late as the SFD is in the tick in which its stamp goes to ``source``.
    """
    def __init__(self, pad_ticks=0):
        self.sfd    = Signal()
        # The time waits as long as the number takes; the last tick of it here. A subtraction would round.
        self.past_ticks = pad_ticks + latency_ticks
        self.past       = Signal(64)
        self.waiting    = Signal(64, reset_less=True)
        layout      = [("stamp", 64), ("number", number_bits)]
        self.source = stream.Endpoint(layout)

        # # #

        self.number = number = NumberCrossing(number_bits, "eth_rx", "timebase")
        self.fifo   = fifo   = StreamCrossing(layout, "timebase", "sys", depth=16, rests="timebase")

        seen = Signal(number_bits)
        self.comb += [
            number.step.eq(self.sfd),
            fifo.source.connect(self.source),
        ]
        self.sync.timebase += [
            seen.eq(number.o),
            fifo.sink.valid.eq(seen != number.o),
            # The count with this SFD in it: the frame's end knows the same.
            fifo.sink.number.eq(number.o),
            self.waiting.eq(self.past),
        ]
        self.comb += fifo.sink.stamp.eq(self.waiting)

# Stamp Pairing ------------------------------------------------------------------------------------

class StampPairing(LiteXModule):
    """Gives each frame that was reported the stamp of its own SFD, by number.

    Stamps of frames that nobody reported (cut, or too short to wait for their stamp) are thrown away when a later frame
    is paired, so a mismatch never lasts.

    Attributes
    ----------
    report, number : Signal(), Signal(number_bits), in
        One cycle for each frame, and which SFD was its own.
    is_wanted : Signal(), in
        With ``report``: the frame's stamp is asked for.
    stamps : Endpoint, in
        From `ArrivalStamper`.
    stamp : Signal(64), out
        Arrival of the frame (ns), valid from ``paired`` to the next one.
    paired : Signal(), out
        One cycle for each frame whose stamp is wanted and found. From two cycles after its report.
    """
    def __init__(self):
        self.report    = Signal()
        self.number    = Signal(number_bits)
        self.is_wanted = Signal()
        self.stamps    = stamps = stream.Endpoint([("stamp", 64), ("number", number_bits)])
        self.stamp     = Signal(64, reset_less=True)
        self.paired    = Signal()

        # # #

        number = Signal(number_bits, reset_less=True)
        wanted = Signal()
        ahead  = Signal(number_bits)

        self.comb += ahead.eq(stamps.number - number)
        take = [
            NextValue(number, self.number),
            NextValue(wanted, self.is_wanted),
        ]
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            If(self.report, *take, NextState("SEARCH"))
        )
        fsm.act("SEARCH",
            stamps.ready.eq((ahead == 0) | ahead[-1]),
            If(~stamps.valid | ~ahead[-1],
                If(self.report, *take).Else(NextState("IDLE")),
            # Stale stamps without end: only broken clocks can do this.
            ).Elif(self.report, *take)
        )
        found = Signal()
        self.comb += found.eq(fsm.ongoing("SEARCH") & stamps.valid & (ahead == 0) & wanted)
        self.sync += [
            self.paired.eq(found),
            If(found, self.stamp.eq(stamps.stamp)),
        ]
