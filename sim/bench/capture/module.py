# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""BlockCapture, ring and export as a Verilog module with plain pins, for a compiled bench."""

from types import SimpleNamespace

from migen import *

from litex.gen import *
from litex.soc.interconnect import wishbone

from litedram.phy.dfi import Interface

from liteprobe.cores.capture.ring_memory import BlockRamRing, BurstRing
from liteprobe.cores.capture.capture import BlockCapture
from liteprobe.cores.capture.export import BlockExport, FrameArbiter
from liteprobe.cores.formats import RECORD_HEAD_WORDS
from liteprobe.cores.transmit.management import ManagementTransmit
from liteprobe.sim.bench.tools.module import write_module
from liteprobe.cores.memory.ports import BurstPorts, MemoryCrossing
from liteprobe.cores.memory.sdram import SdramController

PORTS = 2
CLK_FREQ, MEMORY_FREQ = 50e6, 125e6
MAC, IP = 0x10E2D5000000, "192.168.1.50"
PEER_MAC, PEER_IP = 0x024C50000007, 0xC0A80163
CL = 2
RING_WORD = 256 * 1024  # Of the SDRAM: where the ring begins.
RAM_BLOCKS, SDRAM_BLOCKS = 8, 2048

# BlockCapture Bench ------------------------------------------------------------------------------------


class CaptureBench(LiteXModule):
    """A capture on pins, 50 MHz ``sys`` and 125 MHz ``timebase``, with SDRAM controller or block RAM.

    ``to_udp`` sends blocks to the export, and so to ``gmii_*``; else they come out at ``block_*``. ``is_shared``: the SDRAM's
    controller runs at 125 MHz, and another user of it bursts all the time while ``hog`` is 1.
    """

    def __init__(self, with_sdram, number=0, is_shared=False):
        self.cd_sys = ClockDomain("sys")
        self.cd_timebase = ClockDomain("timebase")
        self.cd_memory = ClockDomain("memory")
        self.pins = {
            signal for domain in (self.cd_sys, self.cd_timebase, self.cd_memory) for signal in (domain.clk, domain.rst)
        }
        hog = self.add_pin("hog", 1)
        if is_shared:
            memory = BurstRing(self.add_shared_sdram(hog), SDRAM_BLOCKS, RING_WORD)
        elif with_sdram:
            self.add_sdram()
            self.add_bus("cpu", self.sdram.bus)
            memory = BurstRing(self.sdram.burst, SDRAM_BLOCKS, RING_WORD)
        else:
            memory = BlockRamRing(RAM_BLOCKS)
            self.add_unused_sdram()
        self.capture = capture = BlockCapture(PORTS, memory, CLK_FREQ, first_number=number)
        for name in ("enable", "flush_us"):
            signal = getattr(capture, name)
            self.comb += signal.eq(self.add_pin(name, len(signal)))
        trigger = capture.trigger
        for name in ("wanted", "channels", "before"):
            signal = getattr(trigger, name)
            self.comb += signal.eq(self.add_pin(f"trigger_{name}", len(signal)))
        self.comb += [
            self.add_pin("running", 1).eq(capture.running),
            self.add_pin("discards", 1).eq(capture.writer.records.discard),
            self.add_pin("trigger_waits", 1).eq(trigger.waits),
            self.add_pin("trigger_fired", 1).eq(trigger.fired),
        ]
        for number, port in enumerate(capture.ports):
            self.add_port(f"p{number}", port)
        self.add_bus("table", capture.bus)
        if is_shared:
            pass  # Its bus reads the ring, too.
        elif memory.bus is None:
            self.add_unused_bus("ring")
        else:
            self.add_bus("ring", memory.bus)
        self.add_export()

    def add_pin(self, name, width):
        """Return a new pin of that name."""
        pin = Signal(width, name=name, name_override=name)
        self.pins.add(pin)
        return pin

    def add_sink(self, name, endpoint, fields):
        """Give an endpoint that takes pins."""
        for field in ["valid", "last", *fields]:
            signal = getattr(endpoint, field)
            self.comb += signal.eq(self.add_pin(f"{name}_{field}", len(signal)))
        self.comb += self.add_pin(f"{name}_ready", 1).eq(endpoint.ready)

    def add_port(self, name, port):
        """Give what a port's staging has pins."""
        heads = [f"head{n}" for n in range(RECORD_HEAD_WORDS)]
        self.add_sink(f"{name}_descriptor", port.descriptor, [*heads, "has_header", "lost", "words"])
        self.add_sink(f"{name}_header", port.header, ["data"])
        self.add_sink(f"{name}_data", port.data, ["data"])
        self.comb += self.add_pin(f"{name}_skip", 1).eq(port.skip)

    def add_bus(self, name, bus):
        """Give a bus pins."""
        self.comb += [
            getattr(bus, field).eq(self.add_pin(f"{name}_{field}", len(getattr(bus, field))))
            for field in ("adr", "dat_w", "we", "stb")
        ]
        self.comb += [
            bus.cyc.eq(bus.stb),
            bus.sel.eq(0b1111),
            self.add_pin(f"{name}_ack", 1).eq(bus.ack),
            self.add_pin(f"{name}_dat_r", 32).eq(bus.dat_r),
        ]

    def add_unused_bus(self, name):
        """Have the pins of a bus that isn't there."""
        for field, width in [("adr", 32), ("dat_w", 32), ("we", 1), ("stb", 1)]:
            self.add_pin(f"{name}_{field}", width)
        self.comb += [self.add_pin(f"{name}_ack", 1).eq(1), self.add_pin(f"{name}_dat_r", 32).eq(0)]

    def add_sdram(self, domain="sys", clk_freq=CLK_FREQ):
        """Give the controller its pins to the chip."""
        dfi = Interface(11, 1, 1, 32)
        phy = SimpleNamespace(dfi=dfi, settings=SimpleNamespace(cl=CL, read_latency=CL + 1))
        self.sdram = ClockDomainsRenamer(domain)(SdramController(phy, clk_freq, with_bursts=True))
        for name in ("address", "bank", "ras_n", "cas_n", "we_n", "wrdata", "wrdata_en"):
            signal = getattr(dfi.p0, name)
            self.comb += self.add_pin(f"dfi_{name}", len(signal)).eq(signal)
        self.comb += dfi.p0.rddata.eq(self.add_pin("dfi_rddata", 32))
        self.comb += self.add_pin("sdram_ready", 1).eq(self.sdram.ready)

    def add_shared_sdram(self, hog):
        """Run the controller in ``memory`` with two ports and two masters of the bus; return the port that is free."""
        self.add_sdram("memory", MEMORY_FREQ)
        self.crossing = crossing = MemoryCrossing(self.sdram)
        self.ports = ports = BurstPorts(crossing.burst, 2)
        cpu, ring = [wishbone.Interface(data_width=32, address_width=32, addressing="word") for _ in range(2)]
        of_ring = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.bus_arbiter = wishbone.Arbiter([cpu, of_ring], crossing.bus)
        self.add_bus("cpu", cpu)
        self.add_bus("ring", ring)
        self.comb += [ring.connect(of_ring, omit={"adr"}), of_ring.adr.eq(ring.adr + RING_WORD)]
        # Writes and reads whole bursts between what the processor uses and the ring.
        request = ports.ports[1].request
        line = Signal(10)
        self.comb += [
            request.valid.eq(hog),
            request.address.eq(Cat(C(0, 6), line, C(0b10, 2))),
            request.rest.eq(63),
            request.write.eq(line[0]),
            ports.ports[1].write_data.eq(0x5A5A5A5A),
        ]
        self.sync += If(request.valid & request.ready, line.eq(line + 1))
        return ports.ports[0]

    def add_unused_sdram(self):
        """Have the pins of a chip that isn't there: it does nothing."""
        for name, width in [("address", 11), ("bank", 1), ("wrdata", 32), ("wrdata_en", 1)]:
            self.comb += self.add_pin(f"dfi_{name}", width).eq(0)
        for name in ("ras_n", "cas_n", "we_n", "sdram_ready"):
            pin = name if name == "sdram_ready" else f"dfi_{name}"
            self.comb += self.add_pin(pin, 1).eq(1)
        self.add_pin("dfi_rddata", 32)
        self.add_unused_bus("cpu")

    def add_export(self):
        """Send blocks to pins or to a line, beside answers from pins."""
        block, to_udp = self.capture.block, self.add_pin("to_udp", 1)
        self.export = export = BlockExport(MAC, IP)
        self.arbiter = arbiter = FrameArbiter()
        self.transmit = transmit = ManagementTransmit()
        for name in ("valid", "last", "data", "channel", "words"):
            signal = getattr(block, name)
            self.comb += self.add_pin(f"block_{name}", len(signal)).eq(
                signal & ~Replicate(to_udp & (name == "valid"), len(signal))
            )
        self.comb += [
            block.connect(export.sink, omit={"valid", "ready"}),
            export.sink.valid.eq(block.valid & to_udp),
            block.ready.eq(Mux(to_udp, export.sink.ready, self.add_pin("block_ready", 1))),
            self.capture.send.eq(Mux(to_udp, export.send, self.add_pin("send", 8))),
            export.start.eq(self.add_pin("start", 1)),
            export.mask.eq(self.add_pin("mask", 8)),
            export.udp_port.eq(self.add_pin("udp_port", 16)),
            export.peer_mac.eq(int.from_bytes(PEER_MAC.to_bytes(6, "big"), "little")),
            export.peer_ip.eq(int.from_bytes(PEER_IP.to_bytes(4, "big"), "little")),
            export.source.connect(arbiter.second),
            arbiter.source.connect(transmit.sink),
            arbiter.has_room.eq(transmit.has_room),
            self.add_pin("gmii_valid", 1).eq(transmit.source.valid),
            self.add_pin("gmii_data", 8).eq(transmit.source.data),
            self.add_pin("dropped", 1).eq(transmit.dropped),
        ]
        self.add_sink("answer", arbiter.first, ["data", "last_be"])


def write_verilog(path, with_sdram, number=0, is_shared=False):
    """Write the bench to ``path`` as module ``capture_bench``; ``number``: of the first block of each channel."""
    bench = CaptureBench(with_sdram, number, is_shared)
    write_module(bench, "capture_bench", path)
