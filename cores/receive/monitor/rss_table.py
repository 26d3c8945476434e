# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Which of the channels a flow goes to."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import CHANNELS

# Channel Table ------------------------------------------------------------------------------------

entries = 128 # A flow's is the last seven bits of its hash.

class RssTable(LiteXModule):
    """Says which channel a flow goes to; a host writes it.

    At power-up entry n is channel n mod 8. A reset leaves the table as it is.

    Attributes
    ----------
    hash : Signal(32), in
        Of the flow.
    channel : Signal(3), out
        Two cycles later.
    write, number, value : Signal(), Signal(7), Signal(3), in
        Entry ``number`` becomes ``value``.
    """
    def __init__(self):
        self.hash    = Signal(32)
        self.channel = Signal(max=CHANNELS)
        self.write   = Signal()
        self.number  = Signal(max=entries)
        self.value   = Signal(max=CHANNELS)

        # # #

        memory = Memory(len(self.value), entries, init=[number % CHANNELS for number in range(entries)])
        writer, reader = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
        self.specials += memory, writer, reader
        self.comb += [
            writer.we.eq(self.write),
            writer.adr.eq(self.number),
            writer.dat_w.eq(self.value),
            reader.adr.eq(self.hash[:len(reader.adr)]),
        ]
        self.sync += self.channel.eq(reader.dat_r)
