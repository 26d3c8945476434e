# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The unified parser as a Verilog module with plain pins, for a compiled bench."""

from migen import *

from litex.gen import *
from litex.gen.fhdl.verilog import convert

from liteprobe.cores.receive.unified import UnifiedParser

# Unified Bench ------------------------------------------------------------------------------------

class UnifiedBench(LiteXModule):
    """A parser on pins: ``sys_clk``, ``sys_rst``, ``sink_*``, ``source_*``, ``lost``.

    The stamp of each frame is its length, and more of the same: enough to tell them apart.
    """
    def __init__(self):
        self.cd_sys = ClockDomain("sys")
        self.pins   = {self.cd_sys.clk, self.cd_sys.rst}
        self.parser = parser = UnifiedParser(port=1)
        sink, source = parser.sink, parser.source
        for name in ("valid", "last", "data", "last_be", "fcs_error", "symbol_error", "overflow"):
            signal = getattr(sink, name)
            self.comb += signal.eq(self.add_pin(f"sink_{name}", len(signal)))
        self.comb += source.ready.eq(self.add_pin("source_ready", 1))
        for name in ("valid", "last", "data"):
            signal = getattr(source, name)
            self.comb += self.add_pin(f"source_{name}", len(signal)).eq(signal)
        self.comb += [
            self.add_pin("lost", 1).eq(parser.lost),
            parser.noted.eq(1),
            # A known note of each frame.
            parser.note.snap_length.eq(parser.length),
            parser.note.stamp.eq(Cat(parser.length, Constant(0x1234, 16), parser.length)),
        ]

    def add_pin(self, name, width):
        """Return a new pin of that name."""
        pin = Signal(width, name=name, name_override=name)
        self.pins.add(pin)
        return pin

def write_verilog(path):
    """Write the bench to ``path`` as module ``unified_bench``."""
    bench = UnifiedBench()
    convert(bench, ios=bench.pins, name="unified_bench", regular_comb=False).write(path)
