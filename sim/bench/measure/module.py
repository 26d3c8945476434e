# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The meters of a port as a Verilog module with plain pins, for a compiled bench."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import STREAM_SLOTS, STREAM_WINDOW
from liteprobe.cores.measure.measured import measured_layout
from liteprobe.cores.measure.histogram import Histograms
from liteprobe.cores.measure.streams import StreamMeter
from liteprobe.sim.bench.tools.module import write_module

# Measure Bench ------------------------------------------------------------------------------------

class MeasureBench(LiteXModule):
    """Meters on pins: fields of ``measured``, settings, ``latch``, ``clear``, and one bus: bit 16 of ``adr`` chooses bins.

    As `PortMeter` has them, but that with fields ``is_bare`` is a pin, too.
    """
    def __init__(self, count_bits, slots, window, with_fields):
        self.cd_sys     = ClockDomain("sys")
        self.pins       = {self.cd_sys.clk, self.cd_sys.rst}
        self.meter      = meter      = StreamMeter(slots, window, with_fields)
        self.histograms = histograms = Histograms(count_bits, slots)
        self.comb += histograms.sample.eq(meter.sample), histograms.clear.eq(meter.clear)
        for name, width in [("valid", 1), *measured_layout]:
            self.comb += getattr(meter.measured, name).eq(self.add_pin(f"frame_{name}", width))
        for name, width in [("latch", 1), ("clear", 1), ("stream_base", 16), ("measure_passed", 1), ("prbs", 32)]:
            self.comb += getattr(meter, name).eq(self.add_pin(name, width))
        for kind, width in [("length", 16), ("delay", 64), ("arrival", 32)]:
            self.comb += getattr(histograms, f"{kind}_origin").eq(self.add_pin(f"{kind}_origin", width))
            self.comb += getattr(histograms, f"{kind}_shift").eq(self.add_pin(f"{kind}_shift", 5))
        adr, stb      = self.add_pin("adr", 17), self.add_pin("stb", 1)
        ack, dat_r    = self.add_pin("ack", 1), self.add_pin("dat_r", 32)
        for n, bus in enumerate((meter.bus, histograms.bus)):
            chosen = adr[16] == n
            self.comb += [
                bus.adr.eq(adr),
                bus.stb.eq(stb & chosen),
                bus.cyc.eq(stb & chosen),
                If(chosen, ack.eq(bus.ack), dat_r.eq(bus.dat_r)),
            ]
        self.comb += self.add_pin("saturated", 1).eq(histograms.saturated)

    def add_pin(self, name, width):
        """Return a new pin of that name."""
        pin = Signal(width, name=name, name_override=name)
        self.pins.add(pin)
        return pin

def write_verilog(path, count_bits=32, slots=STREAM_SLOTS, window=STREAM_WINDOW, with_fields=False):
    """Write the bench to ``path`` as module ``measure_bench``."""
    bench = MeasureBench(count_bits, slots, window, with_fields)
    write_module(bench, "measure_bench", path)
