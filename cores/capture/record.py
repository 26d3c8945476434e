# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A record of each probe frame, in a ring that the host drains while it fills."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

from liteprobe.cores.formats import RECORD_WORDS

# Record Reader ------------------------------------------------------------------------------------

class RecordReader(LiteXModule):
    """Lets the bus read a memory, with a register behind the block RAMs. Reads have no side effects.

    Attributes
    ----------
    bus : wishbone.Interface, slave
        Read only, 32 bits, words; writes are acknowledged and do nothing. Answers in the third cycle.
    """
    def __init__(self, memory):
        self.bus = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")

        # # #

        port = memory.get_port()
        self.specials += port
        wait = Signal(2)
        self.comb += port.adr.eq(bus.adr[:len(port.adr)])
        self.sync += [
            bus.dat_r.eq(port.dat_r),
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

    Attributes
    ----------
    sequence, tx_stamp, rx_stamp, length, flags : Signal(32), Signal(64), Signal(64), Signal(16), Signal(16), in
        The record. Must stand still from ``keep`` for six cycles.
    keep : Signal(), in
        One cycle: write the record, or count it as lost where the ring is full. From 8 cycles apart.
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

    A ring that seems to hold more than ``depth`` (``read`` set beyond ``written``) counts as full.
    """
    def __init__(self, depth=1024):
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

        memory = Memory(32, self.words)
        port   = self.port = memory.get_port(write_capable=True)
        self.specials += memory, port
        self.reader = RecordReader(memory)
        self.bus    = self.reader.bus

        # Room.
        # -----
        level   = Signal(32)
        is_full = Signal()
        self.sync += level.eq(self.written - self.read)
        self.comb += is_full.eq(level[log2_int(depth):] != 0)

        # Write.
        # ------
        # ``word`` is one-hot while a record is written; ``address`` goes on where the last record ended.
        word    = Signal(RECORD_WORDS)
        address = Signal(max=self.words)
        self.comb += [
            port.we.eq(word != 0),
            port.adr.eq(address),
        ]
        for number, data in enumerate([
            self.sequence,
            self.tx_stamp[:32], self.tx_stamp[32:],
            self.rx_stamp[:32], self.rx_stamp[32:],
            Cat(self.length, self.flags),
        ]):
            self.comb += If(word[number], port.dat_w.eq(data))
        self.sync += [
            word.eq(Cat(self.keep & ~is_full, word)),
            If(port.we,
                address.eq(Mux(address == self.words - 1, 0, address + 1))
            ),
            self.written.eq(self.written + word[-1]),
            self.lost.eq(self.lost + (self.keep & is_full)),
            If(self.clear,
                word.eq(0), address.eq(0), self.written.eq(0), self.lost.eq(0),
            ),
        ]
