# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Stores unified headers in a block RAM, each in a place of its own until it was read, or dropped."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.formats import RECORD_HEAD_WORDS, UNIFIED_PLACES, UNIFIED_WORDS, Layer3

# Numbers ------------------------------------------------------------------------------------------

headers = 16 # That a block RAM of 512 words holds.

status_word = UNIFIED_PLACES["ethertype"][0] # This one and the next are known at a frame's end.
hash_word   = UNIFIED_PLACES["hash"][0]

def internal_layout():
    """Return the fields of a frame by which the store hides words that came to nothing: in the place of ``reserved``."""
    return [("has_link", 1), ("has_fragment", 1), ("has_transport", 1), ("is_tcp", 1), ("is_probe", 1)]

# Free Places --------------------------------------------------------------------------------------

class FreePlaces(LiteXModule):
    """Numbers that nobody uses: at first all, one more in each of the first cycles.

    Attributes
    ----------
    number, is_there : Signal(4), Signal(), out
        The next one.
    take : Signal(), in
        It is used from now on.
    give, given : Signal(), Signal(4), in
        One is free again; not in the first ``count`` cycles.
    """
    def __init__(self, count=headers):
        self.number   = Signal(max=count)
        self.is_there = Signal()
        self.take     = Signal()
        self.give     = Signal()
        self.given    = Signal(max=count)

        # # #

        memory = Memory(len(self.number), count)
        writer, reader = memory.get_port(write_capable=True), memory.get_port(async_read=True)
        self.specials += memory, writer, reader
        written   = Signal(len(self.number) + 1)
        read      = Signal(len(self.number) + 1)
        is_filled = Signal() # Each number is in use or in the memory.
        self.comb += [
            writer.we.eq(self.give | ~is_filled),
            writer.adr.eq(written[:-1]),
            writer.dat_w.eq(Mux(is_filled, self.given, written[:-1])),
            reader.adr.eq(read[:-1]),
            self.number.eq(reader.dat_r),
            self.is_there.eq(written != read),
        ]
        self.sync += [
            If(writer.we, written.eq(written + 1)),
            If(written == count - 1, is_filled.eq(1)),
            If(self.take, read.eq(read + 1)),
        ]

# Header Store -------------------------------------------------------------------------------------

class HeaderStore(LiteXModule):
    """Collects the words of a unified header as they pass, and gives them away later: but for words 0 to 3.

    Attributes
    ----------
    write, address, data : Signal(), Signal(5), Signal(32), in
        Words of the frame that passes.
    is_idle : Signal(), in
        No frame passes: its words may go elsewhere.
    close, status : Signal(), Signal(64), in
        The frame ends with this cycle, and its header is wanted: words 4 and 5, with ``internal_layout()`` in
        ``reserved``, from two cycles later until ``busy`` falls. Not while ``busy``.
    busy : Signal(), out
        They wait for cycles without a word.
    place, has_place : Signal(4), Signal(), out
        Where that header is, from the cycle after ``close`` to the next one; or there was no space for it.
    drop, dropped : Signal(), Signal(4), in
        Nobody wants the header at this place.
    open, skip : Signal(), in
        Give the header at ``opened``, or nobody wants it. Not while ``is_open``.
    opened, hash : Signal(4), Signal(32), in
        With ``open`` or ``skip``: its place, and what becomes its word 6.
    is_open : Signal(), out
        A header is given, or its place is not free yet.
    source : Endpoint([("data", 32)]), out
        Words 4 to 31, with ``last`` on the 28th. The place is free afterwards.
    """
    def __init__(self):
        self.write     = Signal()
        self.address   = Signal(5)
        self.data      = Signal(32)
        self.is_idle   = Signal()
        self.close     = Signal()
        self.status    = Signal(64)
        self.busy      = Signal()
        self.place     = Signal(max=headers)
        self.has_place = Signal()
        self.drop      = Signal()
        self.dropped   = Signal(max=headers)
        self.open      = Signal()
        self.skip      = Signal()
        self.opened    = Signal(max=headers)
        self.hash      = Signal(32)
        self.is_open   = Signal()
        self.source    = stream.Endpoint([("data", 32)])

        # # #

        self.free    = FreePlaces()
        memory       = Memory(32, headers*UNIFIED_WORDS) # Not public: a SoC would put it on the bus.
        self.returns = Signal() # The last word of a header is on its way out.
        self.waits   = Signal() # Its place will be free.
        self.waiting = Signal(max=headers, reset_less=True) # Which one.
        self.specials += memory
        self.add_places()
        self.add_writer(memory)
        self.add_reader(memory)

    def add_places(self):
        """Find a place for the frame that passes; what is dropped comes back at once, what was read a little later."""
        free, waits, waiting = self.free, self.waits, self.waiting
        # Of the frame that passes.
        self.present   = Signal(max=headers)
        self.is_placed = Signal()
        self.comb += [
            free.take.eq(free.is_there & (self.close | (~self.is_placed & self.is_idle))),
            free.give.eq(self.drop | waits),
            free.given.eq(Mux(self.drop, self.dropped, waiting)),
        ]
        self.sync += [
            If(self.close, self.place.eq(self.present), self.has_place.eq(self.is_placed), self.is_placed.eq(0)),
            If(free.take, self.present.eq(free.number), self.is_placed.eq(1)),
            If(~self.drop, waits.eq(0)),
            If(self.returns, waits.eq(1)),
            If(self.skip, waits.eq(1)),
            If(self.open | self.skip, waiting.eq(self.opened)),
        ]

    def add_writer(self, memory):
        """Write words of the frame as they pass, and the last one's status between them."""
        writer = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += writer
        takes    = Signal()
        writes   = Signal()
        is_known = Signal()
        step     = Signal()
        self.comb += [
            takes.eq(self.write & (self.address != 0)),
            writes.eq(~takes & self.busy & is_known),
            writer.we.eq((takes & self.is_placed) | writes),
            If(takes,
                writer.adr.eq(Cat(self.address, self.present)),
                writer.dat_w.eq(self.data),
            ).Else(
                writer.adr.eq(Cat(step, Constant(status_word >> 1, 4), self.place)),
                writer.dat_w.eq(Mux(step, self.status[32:], self.status[:32])),
            ),
        ]
        self.sync += [
            is_known.eq(self.busy),
            If(writes, step.eq(~step), If(step, self.busy.eq(0))),
            If(self.close, self.busy.eq(self.is_placed), step.eq(0)),
        ]

    def add_reader(self, memory):
        """Give words, with zeros in the place of those that came to nothing."""
        self.buffer = buffer = stream.Buffer([("data", 32)])
        reader = memory.get_port(mode=READ_FIRST)
        self.specials += reader
        word      = Signal(5)
        next_word = Signal(5)
        is_given  = Signal()
        passes    = Signal()
        is_there  = Signal()
        hash_     = Signal(32, reset_less=True)
        out       = buffer.sink
        layers    = Signal(8, reset_less=True)
        internal  = Record(internal_layout(), reset_less=True)
        bits      = len(internal.raw_bits())
        self.comb += [
            out.valid.eq(is_there),
            out.last.eq(word == UNIFIED_WORDS - 1),
            passes.eq(is_there & out.ready),
            next_word.eq(word + passes),
            reader.adr.eq(Cat(next_word, self.waiting)),
            out.data.eq(reader.dat_r & Replicate(self.holds(word, internal, layers), 32)),
            If(word == status_word + 1, out.data[8:8 + bits].eq(0)),
            If(word == hash_word, out.data.eq(hash_)),
            self.returns.eq(passes & out.last),
            self.is_open.eq(is_given | self.waits),
            buffer.source.connect(self.source),
        ]
        self.sync += [
            word.eq(next_word),
            is_there.eq(is_given & ~self.returns),
            If(word == status_word, layers.eq(reader.dat_r[24:])),
            If(word == status_word + 1, internal.raw_bits().eq(reader.dat_r[8:8 + bits])),
            If(self.returns, is_given.eq(0)),
            If(self.open, is_given.eq(1), word.eq(RECORD_HEAD_WORDS), hash_.eq(self.hash)),
        ]

    def holds(self, word, internal, layers):
        """Return whether a word of the header came to something."""
        layer3, tags, labels = layers[:2], layers[2:5], layers[5:]
        is_any, is_ip, is_ipv6 = layer3 != Layer3.NONE, layer3[1], layer3 == Layer3.IPV6
        is_extra = internal.is_tcp | internal.is_probe
        holds    = Signal()
        self.comb += Case(word[2:], {
            1         : holds.eq((word[:2] != 3) | is_extra),
            2         : holds.eq(word[:2] < tags),
            3         : holds.eq(word[:2] < labels),
            4         : holds.eq(is_ipv6 | (is_any & (word[:2] == 0))),
            5         : holds.eq(is_ipv6 | (is_any & (word[:2] == 0))),
            6         : Case(word[:2], {
                0 : holds.eq(internal.has_transport),
                1 : holds.eq(is_any),
                2 : holds.eq(is_ip),
                3 : holds.eq((layer3 == Layer3.IPV4) | (is_ipv6 & internal.has_fragment)),
            }),
            7         : holds.eq(Mux(word[:2] == 3, is_extra, internal.has_link)),
        })
        return holds
