# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Brings the management stack over a small RAM, and the receive side of a management port, to pins for cocotb."""

from functools import partial

from migen import *

from litex.gen import *
from litex.soc.interconnect import wishbone

from liteprobe.cores.management.stack import ManagementStack
from liteprobe.cores.receive.management import ManagementReceive
from liteprobe.sim.drivers.tools.pins import PinnedBench, write_bench

MAC_ADDRESS = 0x10e2d5000000
IP_ADDRESS  = "192.168.1.50"
RAM_WORDS   = 256

# Management Bench ---------------------------------------------------------------------------------

class ManagementBench(PinnedBench):
    """The stack and what its Etherbone reads and writes.

    Pins: ``sys_clk``, ``sys_rst``; ``sink_*`` and ``source_*`` (valid, ready, last, data, last_be), ``lease``, ``is_held``,
    ``granted``, ``heard``, ``skipped`` of the stack.
    """
    def __init__(self):
        PinnedBench.__init__(self)
        self.stack  = stack = ManagementStack(MAC_ADDRESS, IP_ADDRESS)
        self.ram    = wishbone.SRAM(4*RAM_WORDS)

        self.comb += stack.bus.connect(self.ram.bus)
        self.add_inputs(stack, ["lease", "is_held", "granted"])
        self.add_outputs(stack, ["heard", "skipped"])
        self.add_sink("sink", stack.sink, ["last", "data", "last_be"])
        self.add_source("source", stack.source, ["last", "data", "last_be"])

# Management Receive Bench -------------------------------------------------------------------------

class ManagementReceiveBench(PinnedBench):
    """A ManagementReceive, and what becomes of frames, counted.

    Pins: ``<domain>_clk``, ``<domain>_rst`` of ``sys`` and ``eth_rx``; ``rx_dv``, ``rx_data``, ``rx_er``; ``management_*``
    of the source; ``stored``, ``dropped`` (frames that were stored, or found no free space), ``cut`` (``sys`` was too slow) and
    ``refused`` (carriers without SFD).
    """
    def __init__(self):
        PinnedBench.__init__(self, "sys", "eth_rx")
        self.receive = receive = ManagementReceive()
        for name, signal in zip(["dv", "data", "er"], [receive.sink.valid, receive.sink.data, receive.sink.error]):
            self.add_input(f"rx_{name}", signal)
        self.add_source("management", receive.source, ["last", "data", "last_be"])
        for name in ["stored", "dropped", "cut", "refused"]:
            count = self.add_pin(name, 32)
            self.sync += count.eq(count + getattr(receive, name))

write_management = partial(write_bench, ManagementBench, "management_bench")
write_receive    = partial(write_bench, ManagementReceiveBench, "management_receive_bench")
