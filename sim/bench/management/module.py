# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The management stack over a small RAM as a Verilog module with plain pins, for cocotb."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import wishbone

from liteprobe.sim.bench.tools.module import write_module
from liteprobe.cores.management.stack import ManagementStack

MAC_ADDRESS = 0x10e2d5000000
IP_ADDRESS  = "192.168.1.50"
RAM_WORDS   = 256

# Management Bench ---------------------------------------------------------------------------------

class ManagementBench(LiteXModule):
    """The stack and what its Etherbone reads and writes.

    Pins: ``sys_clk``, ``sys_rst``; ``sink_*`` and ``source_*`` (valid, ready, last, data, last_be), ``lease``, ``is_held``,
    ``granted``, ``heard``, ``skipped`` of the stack.
    """
    def __init__(self):
        self.cd_sys = ClockDomain()
        self.pins   = {self.cd_sys.clk, self.cd_sys.rst}
        self.stack  = stack = ManagementStack(MAC_ADDRESS, IP_ADDRESS)
        self.ram    = wishbone.SRAM(4*RAM_WORDS)

        # # #

        self.comb += stack.bus.connect(self.ram.bus)
        for name in ["lease", "is_held", "granted", "heard", "skipped"]:
            signal = getattr(stack, name)
            pin    = Signal(len(signal), name_override=name)
            self.pins.add(pin)
            self.comb += pin.eq(signal) if name in ["heard", "skipped"] else signal.eq(pin)
        for prefix, endpoint, driven in [
            ("sink",   stack.sink,   ["valid", "last", "data", "last_be"]),
            ("source", stack.source, ["ready"]),
        ]:
            for name in ["valid", "ready", "last", "data", "last_be"]:
                signal = getattr(endpoint, name)
                pin    = Signal(len(signal), name_override=f"{prefix}_{name}")
                self.pins.add(pin)
                self.comb += signal.eq(pin) if name in driven else pin.eq(signal)

def write_verilog(path):
    """Write the bench to ``path`` as module ``management_bench``."""
    bench = ManagementBench()
    # Verilator never evaluates ``always @(*)`` blocks of constants; see docs/design.
    write_module(bench, "management_bench", path)
