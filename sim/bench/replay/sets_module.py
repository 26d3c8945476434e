# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The source of configuration sets as a Verilog module with plain pins, for a compiled bench."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import OVERHEAD
from liteprobe.cores.memory.sdram import BurstPort
from liteprobe.cores.transmit.sources.sets import BlockTable, SdramTable, SetsSource
from liteprobe.cores.transmit.sources.templates import FrameTemplates
from liteprobe.cores.transmit.sources.train import TrainSchedule
from liteprobe.sim.bench.tools.module import write_module
from liteprobe.sim.bench.tools.pins import PinnedBench

INPUTS = [("written", 32), ("prime", 32), ("elapsed", 64), ("arm", 1), ("stop", 1), ("template_length", 14), ("fields", 6),
    ("places", 48), ("first_repeats_allowed", 16)]
OUTPUTS = [("is_primed", 1), ("is_active", 1), ("is_starved", 1), ("sets", 32), ("repeats", 32), ("underruns", 32),
    ("first_underrun", 32), ("error", 3), ("shows", 1), ("is_repeat", 1)]
TABLE_ADDRESS = 0x12000 # Words.

# Sets Bench ---------------------------------------------------------------------------------------

class SetsBench(PinnedBench):
    """A source with its schedule and its templates on pins.

    Descriptor ``source_*`` and builder as of the bench of streams; ``word_*``; ``interval``, ``fraction``, ``count`` of the
    schedule; ``request_*``, ``gives``, ``read_data`` of the table's port; a bus, whose bit 16 of ``adr`` chooses the table.
    """
    def __init__(self, with_sdram):
        PinnedBench.__init__(self)
        self.port   = BurstPort()
        table       = SdramTable(self.port, TABLE_ADDRESS) if with_sdram else BlockTable()
        self.core   = core = SetsSource(table)
        self.templates = FrameTemplates([core.user])
        for name, width in INPUTS:
            self.comb += getattr(core, name).eq(self.add_pin(name, width))
        for name, width in OUTPUTS:
            self.comb += self.add_pin(name, width).eq(getattr(core, name))
        for n, word in enumerate(core.template):
            self.comb += word.eq(self.add_pin(f"template_{n}", 32))
        self.comb += [
            core.words.valid.eq(self.add_pin("word_valid", 1)),
            core.words.data.eq(self.add_pin("word_data", 32)),
            self.add_pin("word_ready", 1).eq(core.words.ready),
        ]
        self.add_schedule()
        self.add_source()
        self.add_table(with_sdram)

    def add_schedule(self):
        """Let a schedule say when frames are due, by intervals that are resolved as in `TransmitPath`."""
        core, resolved = self.core, Signal(32)
        self.schedule  = schedule = TrainSchedule()
        interval, fraction = self.add_pin("interval", 32), self.add_pin("fraction", 32)
        self.sync += [
            resolved.eq(interval),
            If((interval == 0) & (fraction == 0), resolved.eq(core.length + OVERHEAD)),
        ]
        self.comb += [
            schedule.count.eq(self.add_pin("count", 32)),
            schedule.repeats.eq(1),
            schedule.interval.eq(resolved),
            schedule.interval_gap.eq(resolved),
            schedule.interval_fraction.eq(fraction),
            schedule.start.eq(core.arm),
            schedule.stop.eq(core.stop | core.ends),
            schedule.source.connect(core.slots),
        ]

    def add_source(self):
        """Bring the templates to pins."""
        templates, headers = self.templates, self.templates.headers
        source = templates.source
        for name, width in source.description.payload_layout:
            self.comb += self.add_pin(f"source_{name}", width).eq(getattr(source, name))
        self.comb += [
            self.add_pin("source_valid", 1).eq(source.valid),
            source.ready.eq(self.add_pin("source_ready", 1)),
            templates.header_read.adr.eq(self.add_pin("header_adr", 9)),
            templates.header_read.re.eq(self.add_pin("header_re", 1)),
            self.add_pin("header_dat", 32).eq(templates.header_read.dat),
            *[getattr(templates, name).eq(self.add_pin(name, width))
                for name, width in (("builds", 1), ("build_stream", 4), ("build_word", 5))],
            self.add_pin("collides", 1).eq(templates.header_read.re & headers.edit & Reduce("OR", [
                headers.writes[n] & (adr == templates.header_read.adr) for n, adr in enumerate(headers.adrs)])),
        ]

    def add_table(self, with_sdram):
        """Bring the bus to the headers and to a table in block RAM; a table in SDRAM has its port on pins."""
        self.add_bus([self.templates.bus] + ([] if with_sdram else [self.core.table.bus]))
        port, request = self.port, self.port.request
        self.comb += [
            self.add_pin("request_valid", 1).eq(request.valid),
            self.add_pin("request_address", len(request.address)).eq(request.address),
            self.add_pin("request_rest", len(request.rest)).eq(request.rest),
            self.add_pin("request_write", 1).eq(request.write),
            request.ready.eq(self.add_pin("request_ready", 1)),
            port.gives.eq(self.add_pin("gives", 1)),
            port.read_data.eq(self.add_pin("read_data", 32)),
        ]

def write_verilog(path, with_sdram=True):
    """Write the bench to ``path`` as module ``sets_bench``."""
    write_module(SetsBench(with_sdram), "sets_bench", path)
