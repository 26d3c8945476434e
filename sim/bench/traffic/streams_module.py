# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The source of streams as a Verilog module with plain pins, for a compiled bench."""

from migen import *

from litex.gen import *

from liteprobe.cores.transmit.sources.streams.streams import StreamSource
from liteprobe.sim.bench.tools.module import write_module
from liteprobe.sim.bench.tools.pins import PinnedBench

KEYWORDS = {"begin": "begin_", "end": "end_"} # Of Verilog.
INPUTS = [("arm", 1), ("mask", 16), ("stop", 1), ("hold", 1), ("begin", 16), ("end", 16), ("elapsed", 64),
    ("builds", 1), ("build_stream", 4), ("build_word", 5)]
OUTPUTS = [("is_primed", 1), ("is_active", 1), ("active", 16)]

# Streams Bench ------------------------------------------------------------------------------------

class StreamsBench(PinnedBench):
    """A source on pins: descriptor ``source_*``, builder, and one bus, whose bits 17..16 of ``adr`` choose the memory."""
    def __init__(self):
        PinnedBench.__init__(self)
        self.core   = core = StreamSource()
        for name, width in INPUTS:
            self.comb += getattr(core, name).eq(self.add_pin(KEYWORDS.get(name, name), width))
        for name, width in OUTPUTS:
            self.comb += self.add_pin(name, width).eq(getattr(core, name))
        for name, width in core.source.description.payload_layout:
            self.comb += self.add_pin(f"source_{name}", width).eq(getattr(core.source, name))
        self.comb += self.add_pin("source_valid", 1).eq(core.source.valid), core.source.ready.eq(self.add_pin("source_ready", 1))
        read = core.header_read
        self.comb += read.adr.eq(self.add_pin("header_adr", 9)), read.re.eq(self.add_pin("header_re", 1))
        self.comb += self.add_pin("header_dat", 32).eq(read.dat)
        headers = core.templates.headers
        self.comb += self.add_pin("collides", 1).eq(read.re & headers.edit & Reduce("OR", [
            headers.writes[n] & (adr == read.adr) for n, adr in enumerate(headers.adrs)]))
        self.add_bus([core.streams_bus, core.modifiers_bus, core.lists_bus, core.headers_bus])

def write_verilog(path):
    """Write the bench to ``path`` as module ``streams_bench``."""
    write_module(StreamsBench(), "streams_bench", path)
