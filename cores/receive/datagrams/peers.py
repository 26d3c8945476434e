# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Who is to be answered."""

from migen import *

from litex.gen import *

PEER_WORDS = 4

# Peers --------------------------------------------------------------------------------------------

class DatagramPeers(LiteXModule):
    """Remembers who sent the last datagram to each of several owners.

    Each frame's addresses are written where no owner's are; where it counts for one, the two places are exchanged.

    Parameters
    ----------
    owners : int
        Up to 3.

    Attributes
    ----------
    take, line, word : Signal(), Signal(4), Signal(32), in
        As of `DatagramHead`.
    assign, owner : Signal(), Signal(2), in
        The last frame's sender is this owner's peer now.
    find, find_owner : Signal(), Signal(2), in
        Whose peer is read; the four words in the next four cycles are those of one frame.
    read_word, data : Signal(2), Signal(32), in and out
        Of that peer: octets 0 to 3 of the MAC address, 4 and 5, UDP port (15:0), IP address; as on the wire.
    """
    def __init__(self, owners):
        self.take       = Signal()
        self.line       = Signal(4)
        self.word       = Signal(32)
        self.assign     = Signal()
        self.owner      = Signal(2)
        self.find       = Signal()
        self.find_owner = Signal(2)
        self.read_word  = Signal(2)
        self.data       = Signal(32)

        # # #

        memory = Memory(32, 4*PEER_WORDS)
        write  = memory.get_port(write_capable=True, mode=READ_FIRST)
        read   = memory.get_port(async_read=True)
        spare  = Signal(2, reset=owners)
        places = [Signal(2, reset=n, name=f"place{n}") for n in range(owners)]
        found  = Signal(2)
        self.autocsr_exclude = {"memory"}
        self.specials += memory, write, read
        self.comb += [
            write.adr.eq(Cat(self.line[1], self.line[2] | self.line[3], spare)), # Lines 1, 2, 8 and 6.
            write.dat_w.eq(self.word),
            write.we.eq(self.take & ((self.line == 1) | (self.line == 2) | (self.line == 6) | (self.line == 8))),
            read.adr.eq(Cat(self.read_word, found)),
            self.data.eq(read.dat_r),
        ]
        self.sync += [
            If(self.find, found.eq(Array(places)[self.find_owner])),
            If(self.assign,
                spare.eq(Array(places)[self.owner]),
                [If(self.owner == n, place.eq(spare)) for n, place in enumerate(places)],
            ),
        ]
