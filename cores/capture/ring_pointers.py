# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Tells the capture's ring what the DMA has done with its blocks, in the words that a host would write."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

from liteprobe.cores.capture.channels import WORD_BITS
from liteprobe.cores.formats import ChannelWord

# Ring Pointers ------------------------------------------------------------------------------------

class RingPointers(LiteXModule):
    """Writes ``read`` of a channel when a block of it is in the host's memory, and ``sent`` when blocks must be given again.

    Attributes
    ----------
    done, rewind : Signal(channels), in
        One cycle each: the oldest block that was given is done; all that were given and aren't done are lost.
    in_flight : list of Signal(n), in
        Of each channel, blocks that were given and are neither done nor lost.
    clear : Signal(), in
        The ring starts anew: all pointers are 0. What is in flight is of before.
    bus : wishbone.Interface, master
        For the table of the ring's channels.
    """
    def __init__(self, channels):
        self.done      = Signal(channels)
        self.rewind    = Signal(channels)
        self.in_flight = [Signal(4, name=f"channel{number}_in_flight") for number in range(channels)]
        self.clear     = Signal()
        self.bus       = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")

        # # #

        freed    = Array(Signal(32, name=f"channel{number}_freed") for number in range(channels))
        to_free  = Signal(channels) # ``read`` is to be written.
        to_wind  = Signal(channels) # ``sent`` is to be written, behind it.
        channel  = Signal(max=max(2, channels))
        is_sent  = Signal() # The word under way is ``sent``.
        for n in range(channels):
            stale = Signal(4)
            self.sync += [
                If(self.done[n],
                    If(stale != 0,
                        stale.eq(stale - 1),
                    ).Else(
                        freed[n].eq(freed[n] + 1),
                        to_free[n].eq(1),
                    )
                ),
                If(self.rewind[n], stale.eq(0), to_wind[n].eq(1)),
                If(self.clear,
                    freed[n].eq(0),
                    stale.eq(self.in_flight[n]),
                    to_free[n].eq(0),
                    to_wind[n].eq(0),
                ),
            ]

        has_free = Signal()
        has_wind = Signal()
        self.comb += [
            has_free.eq((to_free >> channel)[0]),
            has_wind.eq((to_wind >> channel)[0]),
            bus.adr.eq(Cat(Mux(is_sent, C(ChannelWord.SENT, WORD_BITS), C(ChannelWord.READ, WORD_BITS)), channel)),
            bus.sel.eq(0b1111),
            bus.we.eq(1),
        ]
        self.fsm = fsm = FSM(reset_state="LOOK")
        fsm.act("LOOK",
            NextValue(bus.dat_w, freed[channel]),
            NextValue(is_sent, ~has_free),
            If(self.clear,
                NextState("LOOK"),
            ).Elif(has_free | has_wind,
                NextState("WRITE"),
            ).Else(
                NextState("NEXT"),
            )
        )
        fsm.act("WRITE",
            # What would land behind the clearing is of before.
            bus.cyc.eq(~self.clear),
            bus.stb.eq(~self.clear),
            If(bus.ack | self.clear, NextState("NEXT")),
        )
        fsm.act("NEXT",
            NextValue(channel, Mux(channel == channels - 1, 0, channel + 1)),
            NextState("LOOK"),
        )
        # Taken as it is read: what comes from now on is written the next time.
        for n in range(channels):
            self.sync += If(fsm.ongoing("LOOK") & (channel == n),
                If(has_free, to_free[n].eq(self.done[n])).Elif(has_wind, to_wind[n].eq(self.rewind[n])),
            )
