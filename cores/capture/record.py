# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Keeps a record of each probe frame in a ring that the host drains while it fills."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

from liteprobe.cores.formats import RECORD_WORDS

# Split Memory -------------------------------------------------------------------------------------

class SplitMemory(LiteXModule):
    """A memory of 6 * 2^n words as one of 4 * 2^n and one of 2 * 2^n.

    A power of two needs no multiplexer between block RAMs: each holds a few bits of every word. In one piece, 6144 words
    cost 12 block RAMs and a multiplexer of 12; so they cost the same 12, and one of 2.

    Attributes
    ----------
    write, write_address, write_data : Signal(), Signal(n), Signal(32), in
    read_address : Signal(n), in
    read_data : Signal(32), out
        In the next cycle.
    """
    def __init__(self, words):
        assert words % 3 == 0 and words//3 & (words//3 - 1) == 0
        bits = bits_for(words - 1)
        self.write         = Signal()
        self.write_address = Signal(bits)
        self.write_data    = Signal(32)
        self.read_address  = Signal(bits)
        self.read_data     = Signal(32)

        # # #

        top     = self.write_address[-1]
        was_top = Signal()
        self.sync += was_top.eq(self.read_address[-1])
        low  = self.add_part(2*words//3, self.write & ~top)
        high = self.add_part(words//3, self.write & top)
        self.comb += self.read_data.eq(Mux(was_top, high, low))

    def add_part(self, words, write):
        """Return what a memory of ``words`` words reads."""
        memory = Memory(32, words)
        writer = memory.get_port(write_capable=True)
        reader = memory.get_port()
        self.specials += memory, writer, reader
        self.comb += [
            writer.we.eq(write),
            writer.adr.eq(self.write_address),
            writer.dat_w.eq(self.write_data),
            reader.adr.eq(self.read_address),
        ]
        return reader.dat_r

class PairMemory(LiteXModule):
    """A memory of 6 * 2^n words that takes two of them a cycle, the first of which is even.

    Attributes
    ----------
    write, write_address, write_data : Signal(), Signal(n), Signal(64), in
        Of pairs of words, the first one in the lower half.
    read_address : Signal(n + 1), in
    read_data : Signal(32), out
        In the next cycle.
    """
    def __init__(self, words):
        bits = bits_for(words//2 - 1)
        self.write         = Signal()
        self.write_address = Signal(bits)
        self.write_data    = Signal(64)
        self.read_address  = Signal(bits + 1)
        self.read_data     = Signal(32)

        # # #

        memory = Memory(64, words//2)
        writer = memory.get_port(write_capable=True)
        reader = memory.get_port()
        is_odd = Signal()
        self.specials += memory, writer, reader
        self.sync += is_odd.eq(self.read_address[0])
        self.comb += [
            writer.we.eq(self.write),
            writer.adr.eq(self.write_address),
            writer.dat_w.eq(self.write_data),
            reader.adr.eq(self.read_address[1:]),
            self.read_data.eq(Mux(is_odd, reader.dat_r[32:], reader.dat_r[:32])),
        ]

# Record Reader ------------------------------------------------------------------------------------

class RecordReader(LiteXModule):
    """Lets the bus read a memory, with a register after the block RAMs. Reads have no side effects.

    Parameters
    ----------
    memory : SplitMemory or PairMemory

    Attributes
    ----------
    bus : wishbone.Interface, slave
        Read only, 32 bits, words; writes are acknowledged and do nothing. Answers in the third cycle.
    """
    def __init__(self, memory):
        self.bus = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")

        # # #

        wait = Signal(2)
        self.comb += memory.read_address.eq(bus.adr[:len(memory.read_address)])
        self.sync += [
            bus.dat_r.eq(memory.read_data),
            wait.eq(0),
            bus.ack.eq(0),
            If(bus.cyc & bus.stb,
                wait.eq(Cat((wait == 0) & ~bus.ack, wait[0])),
                bus.ack.eq(wait[1]),
            ),
        ]

# Record Ring --------------------------------------------------------------------------------------

class RecordRing(LiteXModule):
    """Keeps a record of each frame, as laid out in docs/design/interfaces.md ("Record").

    Parameters
    ----------
    depth : int
        Records that it holds; a power of two. 1024 take 12 block RAMs of ECP5.
    width : int
        Bits that it writes in a cycle, 32 or 64.

    Attributes
    ----------
    sequence, tx_stamp, rx_stamp, length, flags : Signal(32), Signal(64), Signal(64), Signal(16), Signal(16), in
        The record. Must stand still from ``keep`` for six cycles; three, where ``width`` is 64.
    keep : Signal(), in
        One cycle: write the record, or count it as lost where the ring is full. From 8 cycles apart; 5, where ``width`` is 64.
    clear : Signal(), in
        Empties the ring and forgets the losses, and what is being written.
    read : Signal(32), in
        Records that the host has read, free-running.
    written : Signal(32), out
        Records that can be read, free-running.
    lost : Signal(32), out
        Records that found the ring full. Wraps.
    bus : wishbone.Interface, slave
        The ring: ``words`` words of 32 bits, read only.

    A ring that seems to hold more than ``depth`` (``read`` set beyond ``written``) counts as full. Both count modulo twice
    ``depth`` here.
    """
    def __init__(self, depth=1024, width=32):
        self.sequence = Signal(32)
        self.tx_stamp = Signal(64)
        self.rx_stamp = Signal(64)
        self.length   = Signal(16)
        self.flags    = Signal(16)
        self.keep     = Signal()
        self.clear    = Signal()
        self.read     = Signal(32)
        self.written  = Signal(32)
        self.lost     = Signal(32)
        self.words    = RECORD_WORDS*depth

        # # #

        self.memory = memory = (SplitMemory if width == 32 else PairMemory)(self.words)
        self.reader = RecordReader(memory)
        self.bus    = self.reader.bus

        # Room.
        # -----
        level   = Signal(log2_int(depth) + 1, reset_less=True)
        is_full = Signal()
        self.sync += level.eq(self.written - self.read)
        self.comb += is_full.eq(level[-1])

        # Write.
        # ------
        # ``word`` is one-hot while a record is written; ``address`` goes on where the last record ended.
        steps   = RECORD_WORDS*32//width
        word    = Signal(steps)
        address = Signal(max=self.words*32//width)
        self.comb += [
            memory.write.eq(word != 0),
            memory.write_address.eq(address),
        ]
        words = [
            self.sequence,
            self.tx_stamp[:32], self.tx_stamp[32:],
            self.rx_stamp[:32], self.rx_stamp[32:],
            Cat(self.length, self.flags),
        ]
        if width == 64:
            words = [Cat(*pair) for pair in zip(words[0::2], words[1::2])]
        for number, data in enumerate(words):
            self.comb += If(word[number], memory.write_data.eq(data))
        self.sync += [
            word.eq(Cat(self.keep & ~is_full, word)),
            If(memory.write, address.eq(Mux(address == self.words*32//width - 1, 0, address + 1))),
            self.written.eq(self.written + word[-1]),
            self.lost.eq(self.lost + (self.keep & is_full)),
            If(self.clear,
                word.eq(0), address.eq(0), self.written.eq(0), self.lost.eq(0),
            ),
        ]
