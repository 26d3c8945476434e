# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The open block of a channel: words in, a gap record where something was dropped, and its end."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.capture.channels import *
from liteprobe.cores.capture.record_ports import CHANNEL_BIT, RecordPorts
from liteprobe.cores.formats import *

ADDRESS_BITS = PLACE_BITS + 9 # Of a word of the ring.
FILL_BITS    = 9              # Of a word of a block.
NO_FIRST     = 2**FILL_BITS - 1
COUNT_BITS   = 16             # Of the blocks of a channel.
TIME_BITS    = 16             # Of microseconds.
# Cycles between two looks at open blocks: where no record waits, and at the most.
SOON, LATEST = 64, 512

def word_description():
    """Return a word on its way into the ring.

    The header of a block comes last, as four words in their order, the first with ``head``, the last with ``close``.
    """
    return [("address", ADDRESS_BITS), ("data", 32), ("head", 1), ("close", 1)]

# Open Block ---------------------------------------------------------------------------------------

class OpenBlock(LiteXModule):
    """What `BlockWriter` knows of the channel that it works on, and how it writes into the channel's open block.

    Parameters
    ----------
    channels : ChannelMemory
        Its ``writer`` is driven here.
    ports : int
    clk_freq : float, Hz
        Of ``sys``.

    Attributes
    ----------
    source : Endpoint(word_description()), out
    """
    resumes = ("END", "RECORD", "GAP-READ") # What goes on behind the end of a block.

    def __init__(self, channels, ports, clk_freq):
        self.source  = stream.Endpoint(word_description())
        self.records = RecordPorts(ports)

        # # #

        self.memory = channels
        self.access = channels.writer
        self.out    = stream.Buffer(word_description())
        self.comb  += self.out.source.connect(self.source)
        self.fsm    = FSM(reset_state="OFF")
        self.add_state()
        self.add_time(clk_freq)
        self.add_words()
        self.add_gap()
        self.add_close()

    def add_state(self):
        """Hold what is known of the present channel."""
        self.step    = Signal(4)
        self.part    = self.records.part
        self.channel = Signal(CHANNEL_BITS)
        self.is_scan = Signal()                          # No record: a look at the open block.
        self.active  = Signal()                          # Records are taken.
        self.left    = Signal(max=CHANNELS + 1)          # Channels to close before the end.
        self.number  = Signal(32, reset_less=True)
        self.blocks  = Signal(COUNT_BITS, reset_less=True)
        self.used    = Signal(COUNT_BITS, reset_less=True) # Closed blocks that the host has not read.
        self.told    = Signal(32, reset_less=True)
        self.total   = Signal(15, reset_less=True)       # Words that there must be room for.
        self.wanted  = Signal(COUNT_BITS + 1, reset_less=True)
        self.excess  = Signal(COUNT_BITS + 2, reset_less=True) # Signed: blocks that are too many.
        self.fits    = Signal()
        self.is_aged = Signal()
        self.dropped = Signal(32, reset_less=True)
        self.value   = Signal(32, reset_less=True)
        # The word ``POSITION``. ``fill``: words of the block with its header, of which ``first`` are before the first record.
        self.place    = Signal(PLACE_BITS)
        self.pending  = Signal()                         # There are drops that no gap record has reported.
        self.first    = Signal(FILL_BITS)
        self.fill     = Signal(FILL_BITS)
        self.position = Cat(self.fill, self.first, self.pending, self.place)
        self.resume   = Signal(2)
        self.words    = Signal(FILL_BITS)
        self.has_data = Signal()
        self.is_full  = Signal()
        self.is_empty = Signal()
        self.comb += [
            self.access.channel.eq(self.channel),
            self.is_full.eq(self.fill == BLOCK_WORDS),
            self.is_empty.eq(self.fill == BLOCK_HEADER_WORDS),
            self.words.eq(self.fill - BLOCK_HEADER_WORDS),
        ]

    def ask(self, word):
        """Return what reads a word of the present channel."""
        return [self.access.valid.eq(1), self.access.word.eq(word)]

    def keep(self, word, data):
        """Return what writes a word of the present channel."""
        return [*self.ask(word), self.access.write.eq(1), self.access.data.eq(data)]

    def add_time(self, clk_freq):
        """Count microseconds, and say when an open block is to be looked at."""
        period      = round(clk_freq/1e6)
        cycle       = Signal(max=period)
        self.now    = Signal(TIME_BITS)
        timer       = Signal(max=LATEST)
        self.soon   = Signal()
        self.latest = Signal()
        self.sync += [
            cycle.eq(cycle + 1),
            If(cycle == period - 1, cycle.eq(0), self.now.eq(self.now + 1)),
            timer.eq(timer + 1),
            If(timer[:log2_int(SOON)] == 0, self.soon.eq(1)),
            If(timer == 0, self.latest.eq(1)),
        ]

    def add_words(self):
        """Put words where the present block lies, and count them."""
        sink, fsm = self.out.sink, self.fsm
        unit = Signal(PLACE_BITS + 5, reset_less=True)
        self.closing = Signal(2) # Word of the block's header.
        self.sync += unit.eq(unit_of_place(self.place))
        closes = fsm.ongoing("CLOSE")
        self.comb += sink.address.eq((unit << UNIT_BITS) + Mux(closes, self.closing, self.fill))
        self.given = Signal() # A word of the stream was taken.
        self.comb += If(fsm.ongoing("RECORD"), sink.data.eq(self.records.source.data)).Else(sink.data.eq(self.value))

    def emit(self, valid):
        """Return what gives a word away, if the block isn't full; ``self.given`` is 1 when it was taken."""
        return [
            self.out.sink.valid.eq(valid & ~self.is_full),
            self.given.eq(valid & ~self.is_full & self.out.sink.ready),
            If(self.is_empty, *self.keep(ChannelWord.OPENED, self.now)),
            If(self.given,
                NextValue(self.fill, self.fill + 1),
                If((self.part == 0) & (self.first == NO_FIRST), NextValue(self.first, self.fill - BLOCK_HEADER_WORDS)),
            ),
        ]

    def add_gap(self):
        """Write a gap record for what was dropped since the last one."""
        fsm, part, read = self.fsm, self.part, self.memory.read_data
        fsm.act("GAP-READ",
            Case(part, {0: self.ask(ChannelWord.STAMP_LOW), 1: self.ask(ChannelWord.STAMP_HIGH), 2: self.ask(ChannelWord.TOLD)}),
            NextState("GAP-WAIT"),
            If(self.is_full, *self.close("GAP-READ")),
        )
        fsm.act("GAP-WAIT", NextState("GAP-TAKE"))
        fsm.act("GAP-TAKE",
            Case(part, {
                2:         NextValue(self.value, self.dropped - read),
                3:         NextValue(self.value, Cat(C(UnifiedFlag.GAP, CHANNEL_BIT), self.channel)),
                "default": NextValue(self.value, read),
            }),
            NextState("GAP"),
        )
        fsm.act("GAP",
            *self.emit(1),
            If(self.given,
                NextValue(part, part + 1),
                NextState("GAP-READ"),
                If(part == RECORD_HEAD_WORDS - 1, NextState("GAP-END")),
            )
        )
        fsm.act("GAP-END",
            *self.keep(ChannelWord.TOLD, self.dropped),
            NextValue(self.pending, 0),
            NextValue(part, 0),
            NextState("RECORD"),
            If(self.is_scan,
                NextState("END"),
                If(~self.active, *self.close("END")),
            )
        )

    def close(self, state):
        """Return what closes the block and then goes on with a state."""
        return [
            NextValue(self.resume, self.resumes.index(state)),
            NextState("CLOSE-READ"),
        ]

    def add_close(self):
        """Write the header of a block, and open the next one."""
        fsm, sink, number, closing = self.fsm, self.out.sink, self.number, self.closing
        arrives = Signal(2)
        is_none = self.first == NO_FIRST
        kind    = Cat(C(0, 8), self.channel, C(0, 4 - CHANNEL_BITS), C(BLOCK_VERSION, 4))
        self.sync += [
            arrives.eq(Cat(fsm.ongoing("CLOSE-READ"), arrives[0])),
            If(arrives[1], self.told.eq(self.memory.read_data)),
        ]
        fsm.act("CLOSE-READ",
            *self.ask(ChannelWord.TOLD),
            NextValue(self.value, number),
            NextValue(closing, 0),
            NextState("CLOSE-WAIT"),
        )
        fsm.act("CLOSE-WAIT", NextState("CLOSE"))
        fsm.act("CLOSE",
            sink.valid.eq(1),
            sink.head.eq(closing == 0),
            sink.close.eq(closing == 3),
            If(sink.ready,
                NextValue(closing, closing + 1),
                Case(closing, {
                    0: NextValue(self.value, Cat(C(0, 16), self.first, Replicate(is_none, 16 - FILL_BITS)) | self.words),
                    1: NextValue(self.value, self.told),
                    2: NextValue(self.value, Cat(kind, C(BLOCK_MAGIC, 16))),
                    3: NextState("CLOSE-STEP"),
                })
            )
        )
        fsm.act("CLOSE-STEP",
            *self.keep(ChannelWord.NUMBER, number + 1),
            NextValue(number, number + 1),
            NextValue(self.place, self.place + 1),
            NextValue(self.fill, BLOCK_HEADER_WORDS),
            NextValue(self.first, NO_FIRST),
            NextState("CLOSE-WRAP"),
        )
        fsm.act("CLOSE-WRAP",
            If((number[:COUNT_BITS] & (self.blocks - 1)[:COUNT_BITS]) == 0, NextValue(self.place, self.place - self.blocks)),
            NextState("CLOSE-PLACE"),
        )
        fsm.act("CLOSE-PLACE", Case(self.resume, {number: NextState(state) for number, state in enumerate(self.resumes)}))
