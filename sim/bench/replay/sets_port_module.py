# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A transmit port with its source of configuration sets as a Verilog module with plain pins, from words to the PHY's octets."""

from migen import *

from litex.gen import *

from liteprobe.cores.memory.sdram import BurstPort
from liteprobe.cores.transmit.sources.sets import SdramTable, SetsSource
from liteprobe.sim.bench.replay.sets_module import TABLE_ADDRESS
from liteprobe.sim.bench.tools.module import write_module
from liteprobe.sim.bench.traffic.port_module import PortBench
from liteprobe.sim.system.combinatorial import own_combinatorial_blocks

PROGRAM  = {
    "interval": "interval_ticks", "fraction": "interval_fraction", "count": "count", "repeats": "repeats", "length": "length"}
SETTINGS = [("written", 32), ("prime", 32), ("fields", 6), ("places", 48), ("first_repeats_allowed", 16)]
COUNTERS = [("sets", 32), ("repeats", 32), ("underruns", 32), ("first_underrun", 32), ("error", 3)]

# Sets Port Bench ----------------------------------------------------------------------------------

class SetsPortBench(PortBench):
    """A port with sets, and with streams or without.

    Pins: those of `PortBench`; ``word_*``; SETTINGS; ``template_*``; COUNTERS as ``sets_<name>``; the table's port as of
    `SetsBench`; ``program_*``; ``sets_arm``.
    """
    def __init__(self, with_streams):
        port = BurstPort()
        sets = SetsSource(SdramTable(port, TABLE_ADDRESS), with_templates=not with_streams)
        PortBench.__init__(self, sets=sets, with_streams=with_streams)
        path = self.path
        for name, width in SETTINGS:
            self.comb += getattr(sets, name).eq(self.pin(name, width))
        for n, word in enumerate(sets.template):
            self.comb += word.eq(self.pin(f"template_{n}", 32))
        for name, width in COUNTERS:
            self.comb += self.pin(f"sets_{name}", width).eq(getattr(sets, name))
        for pin, name in PROGRAM.items():
            signal = getattr(path.program, name)
            self.comb += signal.eq(self.pin(f"program_{pin}", len(signal)))
        self.comb += [
            sets.request.eq(self.pin("sets_arm", 1)),
            sets.words.valid.eq(self.pin("word_valid", 1)),
            sets.words.data.eq(self.pin("word_data", 32)),
            self.pin("word_ready", 1).eq(sets.words.ready),
            self.pin("request_valid", 1).eq(port.request.valid),
            self.pin("request_address", len(port.request.address)).eq(port.request.address),
            self.pin("request_rest", len(port.request.rest)).eq(port.request.rest),
            self.pin("request_write", 1).eq(port.request.write),
            port.request.ready.eq(self.pin("request_ready", 1)),
            port.gives.eq(self.pin("gives", 1)),
            port.read_data.eq(self.pin("read_data", 32)),
        ]

def write_verilog(path, with_streams=False):
    """Write the bench to ``path`` as module ``sets_port_bench``."""
    bench = SetsPortBench(with_streams)
    with own_combinatorial_blocks():
        write_module(bench, "sets_port_bench", path)
