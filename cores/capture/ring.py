# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Keeps the ring of each channel: blocks in a memory, from the writer on to whoever takes them away."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.capture.channels import *
from liteprobe.cores.capture.ring_memory import WORDS_BITS
from liteprobe.cores.formats import *

def block_description():
    """Return a word of a block; ``words``: of the block with its header."""
    return stream.EndpointDescription([("data", 32)], [("channel", CHANNEL_BITS), ("words", WORDS_BITS)])

class BlockRing(LiteXModule):
    """Keeps the blocks of all channels, and gives away those that are closed.

    Parameters
    ----------
    channels : ChannelMemory
        Its ``landing`` and ``reader`` are driven here.
    memory : BlockRamRing or BurstRing
        Where the blocks lie; becomes a part of this.

    Attributes
    ----------
    sink : Endpoint(word_description()), in
        From `BlockWriter`.
    is_still : Signal(), out
        All words that came are in the memory, and ``written`` says so.
    block : Endpoint(block_description()), out
        Closed blocks, header first, each with ``first`` and ``last``: channels in turns, of each from ``sent`` to ``written``.
        May be stalled. When the last word was taken ``sent`` steps, unless the host has written it meanwhile.
    send : Signal(8), in
        Channels whose blocks are given away. A block under way is finished.
    """
    def __init__(self, channels, memory):
        self.memory   = memory
        self.sink     = memory.sink
        self.is_still = Signal()
        self.block    = stream.Endpoint(block_description())
        self.send     = Signal(CHANNELS)

        # # #

        self.channels = channels
        self.add_landing()
        self.add_reader()

    def add_landing(self):
        """Count a block as written once it is in the memory."""
        access, landing = self.channels.landing, self.memory.landing
        is_waiting = Signal()
        self.sync += [
            If(access.ready, is_waiting.eq(0)),
            If(landing.landed, is_waiting.eq(1), access.data.eq(landing.number + 1), access.channel.eq(landing.channel)),
        ]
        self.comb += [
            access.valid.eq(is_waiting),
            access.write.eq(1),
            access.word.eq(ChannelWord.WRITTEN),
            self.is_still.eq(self.memory.is_still & ~landing.landed & ~is_waiting),
        ]

    def add_reader(self):
        """Look at one channel after the other, and give its next block away."""
        access, read, clear = self.channels.reader, self.channels.read_data, self.channels.clear
        channel = Signal(CHANNEL_BITS)
        # ``host``: what the host has read.
        sent = Signal(32, reset_less=True)
        host = Signal(32, reset_less=True)
        # To send; not read.
        written = Signal(16, reset_less=True)
        left    = Signal(16, reset_less=True)
        held    = Signal(16, reset_less=True)
        place   = Signal(PLACE_BITS, reset_less=True)
        asked   = Signal(3)
        got     = Signal(3)
        arrives = Signal(2)
        words   = [ChannelWord.SENT, ChannelWord.WRITTEN, ChannelWord.READ, ChannelWord.TAKEN, ChannelWord.BASE]
        self.comb += [
            access.channel.eq(channel),
            self.memory.fetch.unit.eq(unit_of_place(place)),
            self.memory.source.connect(self.block, omit={"channel"}),
            self.block.channel.eq(channel),
        ]
        self.fsm = fsm = FSM(reset_state="CHOOSE")
        self.sync += arrives.eq(Cat(access.valid & access.ready & ~access.write, arrives[0]))
        fsm.act("CHOOSE",
            NextValue(asked, 0),
            NextValue(got, 0),
            If((self.send >> channel)[0] & ~clear, NextState("LOAD")).Else(NextValue(channel, channel + 1))
        )
        fsm.act("LOAD",
            access.valid.eq(asked != len(words)),
            Case(asked, {number: access.word.eq(word) for number, word in enumerate(words)}),
            If(access.valid & access.ready,
                NextValue(asked, asked + 1),
                If(asked == 0, self.channels.seen.eq(1 << channel)),
            ),
            If(arrives[1],
                NextValue(got, got + 1),
                Case(got, {
                    0: NextValue(sent, read),
                    1: [NextValue(written, read[:16]), NextValue(left, read[:16] - sent[:16])],
                    2: [NextValue(host, read), NextValue(held, written - read[:16])],
                    3: NextValue(place, sent[:PLACE_BITS] & (read - 1)[:PLACE_BITS]),
                    4: [NextValue(place, place + read[:PLACE_BITS]), NextState("DECIDE")],
                })
            ),
        )
        self.add_give(fsm, channel, sent, host, left, held)

    def add_give(self, fsm, channel, sent, host, left, held):
        """Give a block away, or set right what the host has asked for."""
        access = self.channels.reader
        resent = Signal()
        self.comb += resent.eq((self.channels.resent >> channel)[0])
        fsm.act("DECIDE",
            NextState("FETCH"),
            If(left > held, NextState("LATE")),
            If((left == 0) | self.channels.clear, NextState("NEXT")),
        )
        fsm.act("LATE", # What the host has read already, or never was.
            access.valid.eq(~resent),
            access.write.eq(1),
            access.word.eq(ChannelWord.SENT),
            access.data.eq(host),
            If(access.ready | resent, NextState("NEXT")),
        )
        fsm.act("FETCH",
            self.memory.fetch.valid.eq(1),
            If(self.memory.fetch.ready, NextState("STEP")),
        )
        fsm.act("STEP",
            access.valid.eq(~resent),
            access.write.eq(1),
            access.word.eq(ChannelWord.SENT),
            access.data.eq(sent + 1),
            If(access.ready | resent, NextState("NEXT")),
        )
        fsm.act("NEXT", NextValue(channel, channel + 1), NextState("CHOOSE"))
