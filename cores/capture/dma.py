# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Writes blocks of the capture into rings in the host's memory, a ring and a DMA writer a channel, and tells the capture's ring."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream, wishbone
from litex.soc.interconnect.csr import *

from litepcie.frontend.dma import LitePCIeDMAWriter

from liteprobe.cores.capture.channels import WORD_BITS
from liteprobe.cores.formats import CHANNELS, DMA_BLOCK_BYTES, DMA_SLOTS, ChannelWord

WORDS = DMA_BLOCK_BYTES//8 # Of 64 bits.

def block_layout():
    """Return what is needed of the stream of blocks."""
    return [("data", 32), ("channel", log2_int(CHANNELS))]

# Channel ------------------------------------------------------------------------------------------

class DmaChannel(LiteXModule):
    """Writes blocks into the ring of one channel, and keeps count of the slots that are free.

    Every block fills a descriptor, from its beginning, and ends it by ``last``: block n of this run lies in slot n mod DMA_SLOTS.

    Parameters
    ----------
    endpoint : LitePCIeEndpoint
    address_width : int, bits

    Attributes
    ----------
    sink : Endpoint([("data", 64)]), in
        Blocks of WORDS words, the last one with ``last``. Begin one only while ``is_open``.
    is_open : Signal(), out
        The DMA runs and a slot is free for the next block. Falls in the cycle after a block's last word, if it must.
    is_running : Signal(), out
    taken : Signal(32), in
        Blocks that the host has taken out of its ring.
    done : Signal(), out
        One cycle: a block has left for the host's memory, all of it. Whoever reads a register over PCIe afterwards reads it after
        the block (PCI Express Base 2.0, 2.4.1: a completion doesn't pass a posted write).
    in_flight : Signal(4), out
        Blocks that were given, whole, and are not done.
    stopped : Signal(), out
        One cycle: the DMA was stopped, and what is in flight is lost.
    written : Signal(32), out
        Blocks since the DMA was last started; stays when it is stopped, so that none of them is missed.
    """
    def __init__(self, endpoint, address_width):
        port = endpoint.crossbar.get_master_port(write_only=True)
        self.writer     = writer = LitePCIeDMAWriter(endpoint, port, table_depth=DMA_SLOTS, address_width=address_width)
        self.sink       = writer.sink
        self.is_open    = Signal()
        self.is_running = Signal()
        self.taken      = Signal(32)
        self.done       = Signal()
        self.in_flight  = Signal(4)
        self.stopped    = Signal()
        self.written    = Signal(32)

        # # #

        begun       = Signal(32) # Blocks that were given to the writer.
        sink        = self.sink
        is_room     = Signal()
        was_running = Signal()
        last_sent   = Signal()
        self.comb += [
            self.is_running.eq(writer.enable),
            self.is_open.eq(writer.enable & is_room),
            self.done.eq(last_sent & writer.enable),
            self.stopped.eq(was_running & ~writer.enable),
            If(was_running, self.in_flight.eq(begun - self.written)),
        ]
        self.sync += [
            is_room.eq((begun - self.taken) < DMA_SLOTS),
            was_running.eq(writer.enable),
            # The last of a block's requests: every block is whole requests, whatever their largest size is.
            last_sent.eq(port.source.valid & port.source.ready & port.source.last & writer.data_fifo.source.last),
            If(self.done, self.written.eq(self.written + 1)),
            If(sink.valid & sink.ready & sink.last,
                begun.eq(begun + 1),
                is_room.eq(0), # Known two cycles later.
            ),
            If(~writer.enable | ~was_running,
                begun.eq(0),
                is_room.eq(0),
            ),
            If(writer.enable & ~was_running, self.written.eq(0)),
        ]

# Capture DMA --------------------------------------------------------------------------------------

class CaptureDma(LiteXModule):
    """Takes blocks from the capture's ring, one after the other, and gives each to the DMA of its channel.

    A block is filled up with zeros to DMA_BLOCK_BYTES. A DMA that is stopped within a block gets no more of it: the rest is
    thrown away here, and the ring must give the block again (``rewind``).

    Limits: a DMA must not be started within 100 cycles after it was stopped (the driver takes a millisecond).

    Parameters
    ----------
    endpoint : LitePCIeEndpoint
    channels : int, from 1 to CHANNELS
    address_width : int, bits

    Attributes
    ----------
    sink : Endpoint(block_layout()), in
        Blocks of 1 to 2*WORDS words; ``channel`` stands still from the first word to the last.
    is_open : Signal(CHANNELS), out
        Channels of which a block may begin.
    done : Signal(CHANNELS), out
        One cycle: the oldest block of this channel that was given is in the host's memory.
    rewind : Signal(CHANNELS), out
        One cycle: what was given of this channel and is not ``done`` is lost; give it again.
    in_flight : list of Signal(4), out
        Of each channel, blocks that were given, or are under way, and aren't done.
    """
    def __init__(self, endpoint, channels, address_width=64):
        assert 1 <= channels <= CHANNELS
        self.sink      = sink = stream.Endpoint(block_layout())
        self.is_open   = Signal(CHANNELS)
        self.done      = Signal(CHANNELS)
        self.rewind    = Signal(CHANNELS)
        self.in_flight = [Signal(4, name=f"channel{number}_in_flight") for number in range(channels)]
        self.channels  = [DmaChannel(endpoint, address_width) for _ in range(channels)] # Modules of the SoC: `add_pcie`.

        # # #

        number  = Signal.like(sink.channel)
        count   = Signal(max=2*WORDS)
        low     = Signal(32)
        words   = stream.Endpoint([("data", 64)])
        stops   = Signal()
        is_cut  = Signal() # Its DMA was stopped since the block began.
        is_busy = Signal(channels) # A block of this channel is under way.

        # Words of 64 bits.
        # -----------------
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            NextValue(number, sink.channel),
            NextValue(count, 0),
            NextValue(is_cut, 0),
            If(sink.valid, NextState("BLOCK")),
        )
        fsm.act("BLOCK",
            If(count[0] | sink.last,
                words.valid.eq(sink.valid),
                sink.ready.eq(words.ready),
            ).Else(
                sink.ready.eq(1),
            ),
            If(count[0], words.data.eq(Cat(low, sink.data))).Else(words.data.eq(sink.data)),
            If(sink.valid & sink.ready,
                NextValue(low, sink.data),
                NextValue(count, count + 1),
                If(sink.last,
                    NextValue(count, (count | 1) + 1),
                    NextState("FILL"),
                    If(words.last, NextState("IDLE")),
                )
            ),
        )
        fsm.act("FILL",
            words.valid.eq(1),
            If(words.ready,
                NextValue(count, count + 2),
                If(words.last, NextState("IDLE")),
            )
        )
        self.comb += words.last.eq(count[1:] == WORDS - 1)

        # Channels.
        # ---------
        self.comb += Case(number, {n: [
            words.connect(channel.sink, omit={"valid", "ready"}),
            channel.sink.valid.eq(words.valid & ~is_cut),
            words.ready.eq(channel.sink.ready | is_cut),
            stops.eq(~channel.is_running),
        ] for n, channel in enumerate(self.channels)})
        self.sync += If(stops & ~fsm.ongoing("IDLE"), is_cut.eq(1))
        for n, channel in enumerate(self.channels):
            self.comb += [
                is_busy[n].eq(~fsm.ongoing("IDLE") & (number == n)),
                self.is_open[n].eq(channel.is_open & ~is_busy[n]),
                self.done[n].eq(channel.done),
                self.rewind[n].eq(channel.stopped),
                self.in_flight[n].eq(channel.in_flight + (is_busy[n] & ~is_cut)),
            ]

        self.add_csr()

    def add_csr(self):
        """Add the pointers of each ring, and what its slots are."""
        self._slots       = CSRStatus(16, name="slots", reset=DMA_SLOTS, description="Slots of each ring in the host's memory.")
        self._block_bytes = CSRStatus(16, name="block_bytes", reset=DMA_BLOCK_BYTES, description="Octets written of a slot.")
        for n, channel in enumerate(self.channels):
            written = CSRStatus(32,  name=f"written{n}", description="Blocks in the host's memory, since the DMA's start. Wraps.")
            taken   = CSRStorage(32, name=f"taken{n}",   description="Blocks that the host has taken out. Write 0 before a start.")
            setattr(self, f"_written{n}", written)
            setattr(self, f"_taken{n}", taken)
            self.comb += [
                written.status.eq(channel.written),
                channel.taken.eq(taken.storage),
            ]

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
        to_wind  = Signal(channels) # ``sent`` is to be written, after it.
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
            # What would land after the clearing is of before.
            bus.cyc.eq(~self.clear),
            bus.stb.eq(~self.clear),
            If(bus.ack | self.clear, NextState("NEXT")),
        )
        fsm.act("NEXT", NextValue(channel, Mux(channel == channels - 1, 0, channel + 1)), NextState("LOOK"))
        # Taken as it is read: what comes from now on is written the next time.
        for n in range(channels):
            self.sync += If(fsm.ongoing("LOOK") & (channel == n),
                If(has_free, to_free[n].eq(self.done[n])).Elif(has_wind, to_wind[n].eq(self.rewind[n])),
            )
