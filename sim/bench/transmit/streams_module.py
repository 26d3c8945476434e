# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A transmit port with streams as a Verilog module with plain pins; descriptors come from a script."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import STREAMS
from liteprobe.cores.transmit.frames import descriptor_description
from liteprobe.cores.transmit.path import TransmitPath
from liteprobe.cores.transmit.sources.source import ProgramSource
from liteprobe.cores.transmit.sources.streams.streams import SentCounters, StreamSource
from liteprobe.sim.bench.tools.module import write_module
from liteprobe.sim.bench.transmit.module import TransmitBench
from liteprobe.sim.system.build import own_combinatorial_blocks

PAD_TICKS     = 2 # The most that a port with streams may have.
SCRIPT_DEPTH  = 512
SCRIPT_LAYOUT = descriptor_description().payload_layout
SCRIPT_BITS   = sum(width for _, width in SCRIPT_LAYOUT)

STREAM_INPUTS = [
    ("script_adr", log2_int(SCRIPT_DEPTH)), ("script_dat", SCRIPT_BITS), ("script_we", 1), ("script_count", 10),
    ("streams_arm", 1), ("streams_hold", 1), ("sent_adr", 6), ("sent_stb", 1),
]

# Scripted Streams ---------------------------------------------------------------------------------

class ScriptedStreams(ProgramSource):
    """Stands in for `StreamSource`: emits the descriptors of a script, then an empty one.

    Attributes are those of `StreamSource`, and:

    script, count : Memory(SCRIPT_BITS, SCRIPT_DEPTH), Signal(10)
        Descriptors as SCRIPT_LAYOUT has them, the first field in the lowest bits.
    headers : Memory(32, 512)
    """
    name          = "streams"
    keeps_headers = False
    join          = StreamSource.join

    def __init__(self):
        ProgramSource.__init__(self)
        self.source        = source = stream.Endpoint(descriptor_description())
        self.sent_counters = SentCounters()
        self.elapsed      = Signal((64, True))
        self.mask         = Signal(STREAMS)
        self.hold         = Signal()
        self.begin        = Signal(STREAMS)
        self.end          = Signal(STREAMS)
        self.is_primed    = Signal()
        self.is_active    = Signal()
        self.active       = Signal(STREAMS)
        self.builds       = Signal()
        self.build_stream = Signal(4)
        self.build_word   = Signal(5)
        self.header_read  = Record([("adr", 9), ("re", 1), ("dat", 32)])
        self.count        = Signal(10)
        self.script       = Memory(SCRIPT_BITS, SCRIPT_DEPTH)
        self.headers      = Memory(32, 512)

        # # #

        script, header = self.script.get_port(mode=READ_FIRST), self.headers.get_port(has_re=True, mode=READ_FIRST)
        self.specials += self.script, self.headers, script, header
        index    = Signal(10)
        self.fsm = fsm = FSM(reset_state="IDLE")
        self.comb += [
            header.adr.eq(self.header_read.adr),
            header.re.eq(self.header_read.re),
            self.header_read.dat.eq(header.dat_r),
            script.adr.eq(index),
            self.is_active.eq(~fsm.ongoing("IDLE")),
            self.is_primed.eq(self.is_active),
            self.active.eq(self.is_active),
        ]
        fsm.act("IDLE",
            NextValue(index, 0),
            If(self.arm, NextState("LOAD")),
        )
        fsm.act("LOAD",
            If(self.stop | ((index == self.count) & ~self.hold),
                NextState("END"),
            ).Elif(index != self.count,
                NextState("SHOW"),
            ),
        )
        fsm.act("SHOW",
            source.valid.eq(1),
            source.payload.raw_bits().eq(script.dat_r),
            If(source.ready,
                NextValue(index, index + 1),
                NextState("LOAD"),
            ),
        )
        fsm.act("END",
            source.valid.eq(1),
            source.final.eq(1),
            source.empty.eq(1),
            If(source.ready, NextState("IDLE")),
        )

# Streams Bench ------------------------------------------------------------------------------------

class StreamsBench(TransmitBench):
    """Two ports as of TransmitBench, the first with streams; its pins also those of STREAM_INPUTS, ``sent_dat``, ``sent_ack``."""
    def path(self, number, clock, data_width, with_management):
        if number > 0:
            return TransmitPath(clock, data_width, with_management)
        return TransmitPath(clock, data_width, with_management, pad_ticks=PAD_TICKS, sources=[ScriptedStreams()])

    def header_port(self, path):
        if not path.sources:
            return TransmitBench.header_port(self, path)
        self.add_stream_pins(path)
        return path.streams.headers.get_port(write_capable=True)

    def add_stream_pins(self, path):
        """Bring out what a port with streams has beside others."""
        write = path.streams.script.get_port(write_capable=True)
        self.specials += write
        bus     = path.streams.sent_counters.bus
        signals = {
            "script_adr": write.adr, "script_dat": write.dat_w, "script_we": write.we, "script_count": path.streams.count,
            "streams_arm": path.streams.request, "streams_hold": path.streams.hold, "sent_adr": bus.adr, "sent_stb": bus.stb,
        }
        self.comb += bus.cyc.eq(bus.stb)
        for name, _ in STREAM_INPUTS:
            self.add_pin(f"p0_{name}", signals[name], is_input=True)
        self.add_pin("p0_sent_dat", bus.dat_r, is_input=False)
        self.add_pin("p0_sent_ack", bus.ack, is_input=False)

def write_verilog(path):
    """Write the bench to ``path`` as module ``streams_bench``."""
    bench = StreamsBench()
    with own_combinatorial_blocks():
        write_module(bench, "streams_bench", path)
