# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Keeps the pointers and counts of each channel in one block RAM, which writer, reader and bus share."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream, wishbone

from liteprobe.cores.formats import BLOCK_WORDS, CHANNELS, CHANNEL_WORDS, ChannelWord

CHANNEL_BITS = log2_int(CHANNELS)
WORD_BITS    = log2_int(CHANNEL_WORDS)
PLACE_BITS   = 13 # Of the number of a block in the ring: up to 11 MiB.
UNIT_BITS    = 4  # Blocks begin at multiples of 16 words.

# Of the host's words; the others it only reads.
HOST_WORDS = (ChannelWord.BASE, ChannelWord.BLOCKS, ChannelWord.READ, ChannelWord.SENT)

def access_description():
    """Return what is asked of the memory: a word of a channel."""
    return [("channel", CHANNEL_BITS), ("word", WORD_BITS), ("write", 1), ("data", 32)]

def unit_of_place(place):
    """Return the expression of the first word of a block, in units of 16 words: 23 times its number in the ring."""
    assert BLOCK_WORDS == 23 << UNIT_BITS
    return ((place + (place << 1)) << 3) - place

class ChannelMemory(LiteXModule):
    """Keeps 16 words of each channel (`formats.ChannelWord`); one access a cycle, of whoever goes first.

    Attributes
    ----------
    writer, landing, reader : Endpoint(access_description()), in
        Ways in for gateware; ``writer`` goes first and never waits, then the others in this order, and the bus before
        ``reader``.
    read_data : Signal(32), out
        What was asked for, in the second cycle after the access was taken.
    resent : Signal(8), out
        Of each channel: the host has written ``sent``, or all was cleared, since ``seen``.
    seen, clear : Signal(8), Signal(), in
    bus : wishbone.Interface, slave
        All words, 128; those that aren't the host's are written without effect.
    """
    words = CHANNELS*CHANNEL_WORDS

    def __init__(self):
        self.writer    = stream.Endpoint(access_description())
        self.landing   = stream.Endpoint(access_description())
        self.reader    = stream.Endpoint(access_description())
        self.read_data = Signal(32, reset_less=True)
        self.resent    = Signal(CHANNELS)
        self.seen      = Signal(CHANNELS)
        self.clear     = Signal()
        self.bus       = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")

        # # #

        self.autocsr_exclude = {"memory"}
        host   = stream.Endpoint(access_description())
        memory = Memory(32, self.words, init=[0]*self.words)
        port   = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += memory, port

        # Who goes first.
        # ---------------
        chosen = If(self.writer.valid, *self.choose(port, self.writer))
        for endpoint in (self.landing, host):
            chosen = chosen.Elif(endpoint.valid, *self.choose(port, endpoint))
        self.comb += chosen.Else(*self.choose(port, self.reader))
        self.sync += self.read_data.eq(port.dat_r)

        # Bus.
        # ----
        step = Signal(2) # Behind the access.
        self.comb += [
            host.word.eq(bus.adr[:WORD_BITS]),
            host.channel.eq(bus.adr[WORD_BITS:]),
            host.data.eq(bus.dat_w),
            host.write.eq(bus.we & Reduce("OR", [host.word == word for word in HOST_WORDS])),
            host.valid.eq(bus.cyc & bus.stb & (step == 0)),
            bus.dat_r.eq(self.read_data),
            bus.ack.eq(step[1]),
        ]
        self.sync += step.eq(Cat(host.valid & host.ready, step[0]))

        # Who wrote ``sent`` last.
        # ------------------------
        is_sent = host.valid & host.ready & host.write & (host.word == ChannelWord.SENT)
        for channel in range(CHANNELS):
            self.sync += [
                If(self.seen[channel], self.resent[channel].eq(0)),
                If(self.clear | (is_sent & (host.channel == channel)), self.resent[channel].eq(1)),
            ]

    def choose(self, port, endpoint):
        """Return what gives ``endpoint`` the memory in this cycle."""
        return [
            endpoint.ready.eq(1),
            port.adr.eq(Cat(endpoint.word, endpoint.channel)),
            port.dat_w.eq(endpoint.data),
            port.we.eq(endpoint.valid & endpoint.write),
        ]
