# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Where the table of configuration sets is: in the SDRAM, or in a block RAM."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import BLOCK_TABLE_ENTRIES, TABLE_ENTRIES
from liteprobe.cores.transmit.sources.engine_memory import EngineMemory


class SdramTable(LiteXModule):
    """Reads entries from the SDRAM, where the host writes them by the bus.

    Parameters
    ----------
    port : BurstPort
    address : int
        First word of the table at the port.

    Attributes
    ----------
    entries, port : int, BurstPort
    sink : Endpoint([("index", 16)]), in
        One at a time: the next one once the entry is there.
    gives, data : Signal(), Signal(32), out
        The entry, in this cycle.
    """
    def __init__(self, port, address):
        self.entries = TABLE_ENTRIES
        self.port    = port
        self.sink    = sink = stream.Endpoint([("index", 16)])
        self.gives   = Signal()
        self.data    = Signal(32)

        # # #

        request = port.request
        self.comb += [
            request.valid.eq(sink.valid),
            sink.ready.eq(request.ready),
            request.address.eq(address + sink.index),
            request.rest.eq(0),
            request.write.eq(0),
            self.gives.eq(port.gives),
            self.data.eq(port.read_data),
        ]


class BlockTable(LiteXModule):
    """Keeps entries in a block RAM, for boards without SDRAM; an entry is there two cycles later.

    Attributes
    ----------
    entries, sink, gives, data
        As of `SdramTable`.
    bus : wishbone.Interface, slave
        Words of 32 bits; those that no set asks for may be written at any time. ``sel`` is ignored.
    """
    def __init__(self):
        self.entries = BLOCK_TABLE_ENTRIES
        self.sink    = sink = stream.Endpoint([("index", 16)])
        self.gives   = Signal()
        self.memory  = memory = EngineMemory(BLOCK_TABLE_ENTRIES)
        self.data    = memory.values[0]
        self.bus     = memory.bus

        # # #

        was_read = Signal()
        self.comb += [
            sink.ready.eq(1),
            memory.read.eq(sink.valid),
            memory.read_adr.eq(sink.index),
        ]
        self.sync += Cat(was_read, self.gives).eq(Cat(memory.read, was_read))
