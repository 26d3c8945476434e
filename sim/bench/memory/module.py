# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Burst ports, bus and SDRAM controller as a Verilog module with plain pins, for a compiled bench."""

from types import SimpleNamespace

from migen import *

from litex.gen import *

from litedram.phy.dfi import Interface

from liteprobe.cores.memory.ports import BurstPorts, MemoryCrossing
from liteprobe.cores.memory.sdram import SdramController
from liteprobe.sim.bench.tools.module import write_module

CL    = 2
PORTS = 4

# Memory Bench -------------------------------------------------------------------------------------

class MemoryBench(LiteXModule):
    """Has PORTS burst ports and the bus at ``sys``, and the chip's pins; ``with_crossing``: the controller is in ``memory``.

    ``late`` : int, cycles that a word takes more from the chip to the controller: 2 with the boards' late pins.
    """
    def __init__(self, clk_freq, with_crossing, late=0):
        self.cd_sys    = ClockDomain("sys")
        self.cd_memory = ClockDomain("memory")
        self.pins = {self.cd_sys.clk, self.cd_sys.rst, self.cd_memory.clk, self.cd_memory.rst}
        dfi   = Interface(11, 1, 1, 32)
        phy   = SimpleNamespace(dfi=dfi, settings=SimpleNamespace(cl=CL, read_latency=CL + 1 + late))
        sdram = SdramController(phy, clk_freq, with_bursts=True)
        lost, empty = Signal(), Signal()
        if with_crossing:
            self.sdram    = ClockDomainsRenamer("memory")(sdram)
            self.crossing = crossing = MemoryCrossing(sdram)
            memory, bus   = crossing.burst, crossing.bus
            self.comb += [
                lost.eq(crossing.read_queue.sink.valid & ~crossing.read_queue.sink.ready),
                empty.eq(sdram.burst.takes & ~crossing.write_queue.source.valid),
            ]
        else:
            self.sdram  = sdram
            memory, bus = sdram.burst, sdram.bus
        self.ports = ports = BurstPorts(memory, PORTS)
        self.comb += [
            self.add_pin("sdram_ready", 1).eq(sdram.ready),
            self.add_pin("lost", 1).eq(lost),
            self.add_pin("empty", 1).eq(empty),
        ]
        for name in ("address", "bank", "ras_n", "cas_n", "we_n", "wrdata", "wrdata_en"):
            signal = getattr(dfi.p0, name)
            self.comb += self.add_pin(f"dfi_{name}", len(signal)).eq(signal)
        words = [self.add_pin("dfi_rddata", 32), *[Signal(32) for _ in range(late)]]
        self.comb += dfi.p0.rddata.eq(words[-1])
        sync = self.sync.memory if with_crossing else self.sync
        sync += [word.eq(before) for before, word in zip(words, words[1:])]
        for number, port in enumerate(ports.ports):
            self.add_port(f"p{number}", port)
        self.add_bus(bus)

    def add_pin(self, name, width):
        """Return a new pin of that name."""
        pin = Signal(width, name=name, name_override=name)
        self.pins.add(pin)
        return pin

    def add_port(self, name, port):
        """Give a burst port pins."""
        request = port.request
        for field in ("valid", "address", "rest", "write"):
            signal = getattr(request, field)
            self.comb += signal.eq(self.add_pin(f"{name}_{field}", len(signal)))
        self.comb += [
            self.add_pin(f"{name}_ready", 1).eq(request.ready),
            port.write_data.eq(self.add_pin(f"{name}_write_data", 32)),
            self.add_pin(f"{name}_takes", 1).eq(port.takes),
            self.add_pin(f"{name}_read_data", 32).eq(port.read_data),
            self.add_pin(f"{name}_gives", 1).eq(port.gives),
            self.add_pin(f"{name}_busy", 1).eq(port.busy),
        ]

    def add_bus(self, bus):
        """Give the bus pins."""
        for field in ("adr", "dat_w", "sel", "we", "stb"):
            signal = getattr(bus, field)
            self.comb += signal.eq(self.add_pin(f"bus_{field}", len(signal)))
        self.comb += [
            bus.cyc.eq(bus.stb),
            self.add_pin("bus_ack", 1).eq(bus.ack),
            self.add_pin("bus_dat_r", 32).eq(bus.dat_r),
        ]

def write_verilog(path, clk_freq, with_crossing, late=0):
    """Write the bench to ``path`` as module ``memory_bench``."""
    write_module(MemoryBench(clk_freq, with_crossing, late), "memory_bench", path)
