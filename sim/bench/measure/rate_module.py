# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The rate meter of two ports, and the clock, as a Verilog module with plain pins, for a compiled bench."""

from migen import *

from litex.gen import *

from liteprobe.cores.measure.rate import RateMeter
from liteprobe.cores.timebase.clock import ProbeClock
from liteprobe.sim.bench.tools.module import write_module

PORTS = 2

# Rate Bench ---------------------------------------------------------------------------------------


class RateBench(LiteXModule):
    """A clock that is set and adjusted, and a rate meter, on pins of their names."""

    def __init__(self):
        self.cd_sys = ClockDomain("sys")
        self.cd_timebase = ClockDomain("timebase")
        self.pins = {signal for domain in (self.cd_sys, self.cd_timebase) for signal in (domain.clk, domain.rst)}
        self.clock = clock = ProbeClock()
        self.meter = meter = RateMeter(clock, PORTS, with_csr=False)
        inputs = [("set_time", clock.set_time), ("set", clock.set), ("adjust", clock.adjust)]
        inputs += [("adjust_apply", clock.adjust_apply), ("increment", clock.increment)]
        inputs += [("interval", meter.interval), ("restart", meter.restart)]
        outputs = [
            ("now", clock.now),
            ("tick", meter.ticker.tick),
            ("number", meter.number),
            ("is_whole", meter.is_whole),
        ]
        for n in range(PORTS):
            inputs += [(f"valid{n}", meter.ended[n].valid), (f"length{n}", meter.ended[n].length)]
            outputs += [(f"frames{n}", meter.frames[n]), (f"octets{n}", meter.octets[n])]
        self.comb += [signal.eq(self.add_pin(name, len(signal))) for name, signal in inputs]
        self.comb += [self.add_pin(name, len(signal)).eq(signal) for name, signal in outputs]

    def add_pin(self, name, width):
        """Return a new pin of that name."""
        pin = Signal(width, name=name, name_override=f"pin_{name}")
        self.pins.add(pin)
        return pin


def write_verilog(path):
    """Write the bench to ``path`` as module ``rate_bench``."""
    bench = RateBench()
    write_module(bench, "rate_bench", path)
