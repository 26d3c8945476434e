# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The unified parser as a Verilog module with plain pins, for a compiled bench."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import RECORD_HEAD_WORDS
from liteprobe.cores.receive.unified.parser import UnifiedParser
from liteprobe.sim.bench.tools.module import write_module
from liteprobe.sim.bench.tools.pins import PinnedBench

# Unified Bench ------------------------------------------------------------------------------------

PORT = 1 # That the headers say.
HASH = 0xfee1600d

class UnifiedBench(PinnedBench):
    """A parser on pins: ``sys_clk``, ``sys_rst``, ``sink_*``, ``source_*``, ``lost``.

    All headers are read, one after the other. What the parser leaves to others is added: the stamp of each frame is its
    length, and more of the same, enough to tell them apart; the flow hash is always `HASH`.
    """
    def __init__(self):
        PinnedBench.__init__(self)
        self.parser = parser = UnifiedParser()
        sink = parser.sink
        for name in ("valid", "last", "data", "last_be", "fcs_error", "symbol_error", "overflow"):
            signal = getattr(sink, name)
            self.comb += signal.eq(self.add_pin(f"sink_{name}", len(signal)))
        self.source = source = stream.Endpoint([("data", 32)])
        self.comb += source.ready.eq(self.add_pin("source_ready", 1))
        for name in ("valid", "last", "data"):
            signal = getattr(source, name)
            self.comb += self.add_pin(f"source_{name}", len(signal)).eq(signal)
        headers = parser.headers
        self.waiting = waiting = stream.SyncFIFO([("length", 16), ("flags", 16), ("place", 4)], 32)
        self.comb += [
            # What is not classified, and what has no place.
            self.add_pin("lost", 1).eq((parser.seen & ~parser.ended) | (parser.ended & ~headers.has_place)),
            waiting.sink.valid.eq(parser.ended & headers.has_place),
            waiting.sink.length.eq(parser.length),
            waiting.sink.flags.eq(parser.flags),
            waiting.sink.place.eq(headers.place),
        ]
        self.add_reader()

    def add_reader(self):
        """Give whole headers: the words that the parser knows nothing of, then those that it keeps."""
        source, headers, waiting = self.source, self.parser.headers, self.waiting.source
        word, is_head = Signal(3), Signal()
        self.comb += [
            is_head.eq(word < RECORD_HEAD_WORDS),
            headers.hash.eq(HASH),
            headers.opened.eq(waiting.place),
            # Its words are there once the head has gone.
            headers.open.eq(source.valid & source.ready & (word == 0)),
            If(is_head,
                source.valid.eq(waiting.valid & ((word != 0) | ~(headers.is_open | headers.busy))),
                Case(word, {
                    0 : source.data.eq(Cat(waiting.length, Constant(0x1234, 16))),
                    1 : source.data.eq(waiting.length),
                    2 : source.data.eq(Cat(waiting.length, waiting.length)),
                    3 : source.data.eq(Cat(waiting.flags, Constant(0, 8), Constant(PORT << 4, 8))),
                }),
            ).Else(
                headers.source.connect(source),
                waiting.ready.eq(source.valid & source.ready & source.last),
            ),
        ]
        self.sync += If(source.valid & source.ready,
            If(is_head, word.eq(word + 1)).Elif(source.last, word.eq(0)),
        )

def write_verilog(path):
    """Write the bench to ``path`` as module ``unified_bench``."""
    bench = UnifiedBench()
    write_module(bench, "unified_bench", path)
