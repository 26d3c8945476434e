# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The receive side of a management port as a Verilog module with plain pins, for cocotb."""

from migen import *

from litex.gen import *

from liteprobe.cores.receive.management import ManagementReceive
from liteprobe.sim.bench.tools.module import write_module

# Management Receive Bench -------------------------------------------------------------------------

class ManagementReceiveBench(LiteXModule):
    """A ManagementReceive, and what becomes of frames, counted.

    Pins: ``<domain>_clk``, ``<domain>_rst`` of ``sys`` and ``eth_rx``; ``rx_dv``, ``rx_data``, ``rx_er``; ``management_*``
    of the source; ``stored``, ``dropped`` (frames that were kept, or found no room), ``cut`` (``sys`` was too slow) and
    ``refused`` (carriers without SFD).
    """
    def __init__(self):
        self.pins = set()
        for name in ["sys", "eth_rx"]:
            domain = ClockDomain(name)
            setattr(self, f"cd_{name}", domain)
            self.pins |= {domain.clk, domain.rst}
        self.receive = receive = ManagementReceive()

        # # #

        sink, source = receive.sink, receive.source
        for name, signal in [
            ("rx_dv", sink.valid), ("rx_data", sink.data), ("rx_er", sink.error), ("management_ready", source.ready),
        ]:
            self.comb += signal.eq(self.add_pin(name, len(signal)))
        for name in ["valid", "last", "data", "last_be"]:
            signal = getattr(source, name)
            self.comb += self.add_pin(f"management_{name}", len(signal)).eq(signal)
        for name in ["stored", "dropped", "cut", "refused"]:
            count = self.add_pin(name, 32)
            self.sync += count.eq(count + getattr(receive, name))

    def add_pin(self, name, width):
        """Return a new pin of that name."""
        pin = Signal(width, name=name, name_override=name)
        self.pins.add(pin)
        return pin

def write_verilog(path):
    """Write the bench to ``path`` as module ``management_receive_bench``."""
    bench = ManagementReceiveBench()
    # Verilator never evaluates ``always @(*)`` blocks of constants; see docs/design.
    write_module(bench, "management_receive_bench", path)
