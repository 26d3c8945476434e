# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends records through capture, ring and export of the gateware, and holds what comes out against them."""

import json
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from migen import *

from litex.gen import *
from litex.soc.interconnect import wishbone

from litedram.phy.dfi import Interface

from liteprobe.cores.capture.capture import BlockCapture
from liteprobe.cores.capture.export import BlockExport, FrameArbiter
from liteprobe.cores.capture.ring_memory import BlockRamRing, BurstRing
from liteprobe.cores.formats import CHANNELS, RECORD_HEAD_WORDS, UNIFIED_WORDS, UnifiedFlag
from liteprobe.cores.memory.ports import BurstPorts, MemoryCrossing
from liteprobe.cores.memory.sdram import SdramController
from liteprobe.cores.transmit.management import ManagementTransmit
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.models.receive.capture import BrokenBlockError, CaptureRecord, Gap, decode

PORTS     = 2
CLK_FREQ, MEMORY_FREQ = 50e6, 125e6
MAC, IP   = 0x10E2D5000000, "192.168.1.50"
PEER_MAC, PEER_IP = 0x024C50000007, 0xC0A80163
CL        = 2
RING_WORD = 256*1024 # Of the SDRAM: where the ring begins.
RAM_BLOCKS, SDRAM_BLOCKS = 8, 2048

# Capture Bench ------------------------------------------------------------------------------------

class CaptureBench(PinnedBench):
    """A capture on pins, 50 MHz ``sys`` and 125 MHz ``timebase``, with SDRAM controller or block RAM.

    ``to_udp`` sends blocks to the export, and so to ``gmii_*``; else they come out at ``block_*``. ``is_shared``: the SDRAM's
    controller runs at 125 MHz, and another user of it bursts all the time while ``hog`` is 1.
    """
    def __init__(self, with_sdram, number=0, is_shared=False):
        PinnedBench.__init__(self, "sys", "timebase", "memory")
        hog = self.add_pin("hog")
        if is_shared:
            memory = BurstRing(self.add_shared_sdram(hog), SDRAM_BLOCKS, RING_WORD)
        elif with_sdram:
            self.add_sdram()
            self.add_named_bus("cpu", self.sdram.bus)
            memory = BurstRing(self.sdram.burst, SDRAM_BLOCKS, RING_WORD)
        else:
            memory = BlockRamRing(RAM_BLOCKS)
            self.add_unused_sdram()
        self.capture = capture = BlockCapture(PORTS, memory, CLK_FREQ, first_number=number)
        self.add_inputs(capture, ["enable", "flush_us"])
        trigger = capture.trigger
        self.add_inputs(trigger, ["wanted", "channels", "before"], "trigger_")
        self.add_outputs(trigger, ["waits", "fired"], "trigger_")
        self.add_outputs(capture, ["running"])
        self.add_output("discards", capture.writer.records.discard)
        for number, port in enumerate(capture.ports):
            self.add_port(f"p{number}", port)
        self.add_named_bus("table", capture.bus)
        if is_shared:
            pass # Its bus reads the ring, too.
        elif memory.bus is None:
            self.add_unused_bus("ring")
        else:
            self.add_named_bus("ring", memory.bus)
        self.add_export()

    def add_port(self, name, port):
        """Give what a port's staging has pins."""
        heads = [f"head{n}" for n in range(RECORD_HEAD_WORDS)]
        self.add_sink(f"{name}_descriptor", port.descriptor, ["last", *heads, "has_header", "lost", "words"])
        self.add_sink(f"{name}_header", port.header, ["last", "data"])
        self.add_sink(f"{name}_data", port.data, ["last", "data"])
        self.add_output(f"{name}_skip", port.skip)

    def add_named_bus(self, name, bus):
        """Give a bus pins of its own."""
        self.add_inputs(bus, ["adr", "dat_w", "we", "stb"], f"{name}_")
        self.add_outputs(bus, ["ack", "dat_r"], f"{name}_")
        self.comb += bus.cyc.eq(bus.stb), bus.sel.eq(0b1111)

    def add_unused_bus(self, name):
        """Have the pins of a bus that isn't there."""
        for name_, width in [("adr", 32), ("dat_w", 32), ("we", 1), ("stb", 1)]:
            self.add_pin(f"{name}_{name_}", width)
        self.comb += [self.add_pin(f"{name}_ack").eq(1), self.add_pin(f"{name}_dat_r", 32).eq(0)]

    def add_sdram(self, domain="sys", clk_freq=CLK_FREQ):
        """Give the controller its pins to the chip."""
        dfi = Interface(11, 1, 1, 32)
        phy = SimpleNamespace(dfi=dfi, settings=SimpleNamespace(cl=CL, read_latency=CL + 1))
        self.sdram = ClockDomainsRenamer(domain)(SdramController(phy, clk_freq, with_bursts=True))
        self.add_outputs(dfi.p0, ["address", "bank", "ras_n", "cas_n", "we_n", "wrdata", "wrdata_en"], "dfi_")
        self.add_input("dfi_rddata", dfi.p0.rddata)
        self.add_output("sdram_ready", self.sdram.ready)

    def add_shared_sdram(self, hog):
        """Run the controller in ``memory`` with two ports and two masters of the bus; return the port that is free."""
        self.add_sdram("memory", MEMORY_FREQ)
        self.crossing = crossing = MemoryCrossing(self.sdram)
        self.ports    = ports    = BurstPorts(crossing.burst, 2)
        cpu, ring = [wishbone.Interface(data_width=32, address_width=32, addressing="word") for _ in range(2)]
        of_ring   = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.bus_arbiter = wishbone.Arbiter([cpu, of_ring], crossing.bus)
        self.add_named_bus("cpu", cpu)
        self.add_named_bus("ring", ring)
        self.comb += [ring.connect(of_ring, omit={"adr"}), of_ring.adr.eq(ring.adr + RING_WORD)]
        # Writes and reads whole bursts between what the processor uses and the ring.
        request = ports.ports[1].request
        line    = Signal(10)
        self.comb += [
            request.valid.eq(hog),
            request.address.eq(Cat(C(0, 6), line, C(0b10, 2))),
            request.rest.eq(63),
            request.write.eq(line[0]),
            ports.ports[1].write_data.eq(0x5a5a5a5a),
        ]
        self.sync += If(request.valid & request.ready, line.eq(line + 1))
        return ports.ports[0]

    def add_unused_sdram(self):
        """Have the pins of a chip that isn't there: it does nothing."""
        for name, width in [("address", 11), ("bank", 1), ("wrdata", 32), ("wrdata_en", 1)]:
            self.comb += self.add_pin(f"dfi_{name}", width).eq(0)
        for name in ("ras_n", "cas_n", "we_n", "sdram_ready"):
            pin = name if name == "sdram_ready" else f"dfi_{name}"
            self.comb += self.add_pin(pin).eq(1)
        self.add_pin("dfi_rddata", 32)
        self.add_unused_bus("cpu")

    def add_export(self):
        """Send blocks to pins or to a line, beside answers from pins."""
        block, to_udp = self.capture.block, self.add_pin("to_udp")
        self.export  = export  = BlockExport(MAC, IP)
        self.arbiter = arbiter = FrameArbiter()
        self.transmit = transmit = ManagementTransmit()
        for name in ("valid", "last", "data", "channel", "words"):
            signal = getattr(block, name)
            self.comb += self.add_pin(f"block_{name}", len(signal)).eq(signal & ~Replicate(to_udp & (name == "valid"), len(signal)))
        self.comb += [
            block.connect(export.sink, omit={"valid", "ready"}),
            export.sink.valid.eq(block.valid & to_udp),
            block.ready.eq(Mux(to_udp, export.sink.ready, self.add_pin("block_ready"))),
            self.capture.send.eq(Mux(to_udp, export.send, self.add_pin("send", 8))),
            export.start.eq(self.add_pin("start")),
            export.mask.eq(self.add_pin("mask", 8)),
            export.udp_port.eq(self.add_pin("udp_port", 16)),
            export.peer_mac.eq(int.from_bytes(PEER_MAC.to_bytes(6, "big"), "little")),
            export.peer_ip.eq(int.from_bytes(PEER_IP.to_bytes(4, "big"), "little")),
            export.source.connect(arbiter.second),
            arbiter.source.connect(transmit.sink),
            arbiter.has_space.eq(transmit.has_space),
            self.add_pin("gmii_valid").eq(transmit.source.valid),
            self.add_pin("gmii_data", 8).eq(transmit.source.data),
            self.add_pin("dropped").eq(transmit.dropped),
        ]
        self.add_sink("answer", arbiter.first, ["last", "data", "last_be"])

BENCH = CompiledBench(CaptureBench, Path(__file__).with_name("capture.cpp"))

# Runs ---------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Sent:
    """A record of a port at a cycle; ``is_lost``: its octets found no free space before."""

    cycle: int
    port: int
    record: CaptureRecord
    is_lost: bool = False


@dataclass(frozen=True)
class CaptureRun:
    """Holds the result of a run: blocks of each channel that the host took, and the counts of bench and gateware.

    ``order``: numbers of the records that the writer took, as it took them.
    """

    blocks: list[list[tuple[int, ...]]]
    cycles: list[int]
    order: list[int]
    counts: dict[str, int] = field(default_factory=dict)
    channels: dict[str, list[int]] = field(default_factory=dict)
    has_all: bool = False


def packed(sent: Sequence[Sent]) -> bytes:
    """Return the records for the bench."""
    parts = []
    for one in sent:
        record = one.record
        flags = bool(record.rest) | one.is_lost << 1
        parts.append(struct.pack("<QII4II", one.cycle, one.port, flags, *record.head, len(record.octets)))
        parts.append(struct.pack(f"<{len(record.rest) + len(record.octets)}I", *record.rest, *record.octets))
    return b"".join(parts)


def read_blocks(octets: bytes) -> tuple[list[list[tuple[int, ...]]], list[int]]:
    """Return the blocks of each channel, and when each was taken."""
    blocks: list[list[tuple[int, ...]]] = [[] for _ in range(CHANNELS)]
    cycles = []
    at = 0
    while at < len(octets):
        channel, words, cycle = struct.unpack_from("<IIQ", octets, at)
        blocks[channel].append(struct.unpack_from(f"<{words}I", octets, at + 16))
        cycles.append(cycle)
        at += 16 + 4 * words
    return blocks, cycles


def run(
    sent: Sequence[Sent], tables: Sequence[tuple[int, int]], with_sdram: bool = False, number: int = 0, **options: int | str
) -> CaptureRun:
    """Send records, and return what the host got.

    Parameters
    ----------
    sent : records, those of a port in the order of time.
    tables : base and blocks of each channel.
    with_sdram : the ring is in SDRAM, not in block RAM.
    number : of the first block of each channel.
    options : of the bench, see capture.cpp; ``hog``: the SDRAM has a clock of its own, and with 2 another user that bursts.
    """
    channels = ",".join(f"{base}.{count}" for base, count in tables)
    parameters = {"with_sdram": with_sdram, "number": number, "is_shared": "hog" in options}
    done = BENCH.run({"records": packed(sent)}, {**options, "number": number, "channels": channels}, **parameters)
    found, cycles = read_blocks(done.files["blocks"])
    counts = json.loads(done.output)
    lists = {name: value for name, value in counts.items() if isinstance(value, list)}
    numbers = {name: value for name, value in counts.items() if isinstance(value, int) and not isinstance(value, bool)}
    taken = done.array("order", np.uint32).tolist()
    return CaptureRun(found, cycles, taken, numbers, lists, counts["has_all"])


def differences(sent: Sequence[CaptureRecord], got: Sequence[CaptureRecord | Gap], untold: int = 0) -> list[str]:
    """Return where a channel's stream isn't what the writer took, frame by frame; a gap stands for as many of them.

    ``untold``: frames at the end, dropped, that no gap record could report.
    """
    at = 0
    for number, one in enumerate(got):
        count = one.count if isinstance(one, Gap) else 1
        is_right = at + count <= len(sent) and count > 0
        if isinstance(one, Gap):
            is_right = is_right and sent[at].stamp == one.stamp
        else:
            is_right = is_right and sent[at] == one
        if not is_right:
            return [f"record {number}: {one} where frame {at} of {len(sent)} was due"]
        at += count
    return [] if at + untold == len(sent) else [f"{len(sent) - at} frames at the end are missing, {untold} were dropped"]


def compare(sent: Sequence[Sent], run_: CaptureRun, number: int = 0) -> list[str]:
    """Return what is wrong with a run: a frame that is neither in its channel's stream nor reported, or a count.

    Where nobody frees blocks, no gap record reports drops at the end; the channel's count does.
    """
    found = [] if run_.has_all else ["blocks are missing"]
    if len(run_.order) + run_.counts["missed"] != len(sent):
        found.append(f"{len(run_.order)} records were taken, {run_.counts['missed']} came too fast for staging, of {len(sent)}")
    for channel, blocks in enumerate(run_.blocks):
        try:
            got = list(decode(blocks, channel, number))
        except BrokenBlockError as error:
            found.append(f"channel {channel}: {error}")
            continue
        wanted = [sent[place].record for place in run_.order if sent[place].record.channel == channel]
        untold = run_.channels["dropped"][channel] - sum(one.count for one in got if isinstance(one, Gap))
        found += [f"channel {channel}: {text}" for text in differences(wanted, got, untold)]
    return found


# Random records -----------------------------------------------------------------------------------

START = 100  # Cycle of the first one.


@dataclass(frozen=True)
class Mix:
    """Describes the records that come: ports, channels, mean cycles between two records of a port, lengths.

    ``snap_lengths``: of which one is drawn; ``headers``, ``lost``: parts of the records that have a header, that are lost before.
    """

    ports: int = 2
    channels: int = CHANNELS
    interval: int = 100
    snap_lengths: Sequence[int] = (0, 60, 64, 333)
    headers: float = 0.3
    lost: float = 0.02


def random_record(rng: random.Random, mix: Mix, port: int, number: int) -> CaptureRecord:
    """Return a record; its stamp says port and number."""
    length = rng.choice(mix.snap_lengths)
    flags = rng.getrandbits(16) & ~(UnifiedFlag.HEADER | UnifiedFlag.GAP)
    place = rng.getrandbits(8) << 16 | rng.randrange(mix.channels) << 24 | port << 28
    head = (rng.getrandbits(32), port << 24 | number, rng.randrange(60, 1515) | length << 16, flags | place)
    rest = UNIFIED_WORDS - RECORD_HEAD_WORDS if rng.random() < mix.headers else 0
    words = [tuple(rng.getrandbits(32) for _ in range(count)) for count in (rest, -(-length // 4))]
    return CaptureRecord(head, *words)


def random_records(rng: random.Random, mix: Mix, count: int) -> list[Sent]:
    """Return so many records, by port in the order of time."""
    sent = []
    for port in range(mix.ports):
        cycle = START
        for number in range(count // mix.ports):
            cycle += rng.randrange(1, 2 * mix.interval)
            record = random_record(rng, mix, port, number)
            sent.append(Sent(cycle, port, record, rng.random() < mix.lost))
    return sent


# Limits: the greatest rate at which every frame is kept, by frame length and transport -------------

LENGTHS = (60, 64, 128, 256, 512, 1024, 1514, 9000)
OCTETS = 400_000
"""That a run keeps: several times what the rings of the runs hold."""

MOST_BPS = 1.6e9
"""A word in each cycle."""


@dataclass(frozen=True)
class Transport:
    """A way out: where the ring is, blocks of its one channel, and options of the bench."""

    with_sdram: bool
    blocks: int
    way: str


TRANSPORTS = {
    "blockram": Transport(False, 8, "pins"),
    "sdram": Transport(True, 64, "pins"),
    "udp": Transport(True, 64, "udp"),
    "udp_blockram": Transport(False, 8, "udp"),
}

LEAST_BLOCKS = {"blockram": 1250.0, "sdram": 730.0, "udp": 730.0, "udp_blockram": 950.0}
"""Mb/s of blocks that a way out is held to."""


def frames(length: int, rate_bps: float, octets: int = OCTETS) -> list[Sent]:
    """Return whole frames of a length at even distances on both ports, all of channel 0; ``rate_bps``: of their octets."""
    interval = 8 * length / rate_bps * CLK_FREQ
    words = -(-length // 4)
    sent = []
    for number in range(max(20, octets // length)):
        head = (number, 0, length | length << 16, number % PORTS << 28)
        octets_ = tuple((number << 12 | word) * 0x9E3779B1 & 0xFFFFFFFF for word in range(words))
        sent.append(Sent(100 + int(number * interval), number % PORTS, CaptureRecord(head, (), octets_)))
    return sorted(sent, key=lambda one: one.port)


def capture(way: Transport, sent: Sequence[Sent], **options: int) -> CaptureRun:
    """Send frames through a way out."""
    # Staging holds a frame of 9000 octets and one that comes.
    return run(sent, [(0, way.blocks)], way.with_sdram, way=way.way, room=4096, **options)


def keeps_all(run_: CaptureRun) -> bool:
    """Whether every frame was kept."""
    return run_.has_all and not any(run_.channels["dropped"]) and not run_.counts["missed"] and not run_.counts["overflowed"]


def limit(way: Transport, length: int, octets: int = OCTETS) -> float:
    """Return the greatest rate (bits of frames a second) at which every frame is kept, to 2 %; 0 where none is."""
    low, high = 0.0, MOST_BPS
    if not keeps_all(capture(way, frames(length, 20e6, 0))):
        return 0.0
    while high - low > 0.02 * high:
        middle = (low + high) / 2
        if keeps_all(capture(way, frames(length, middle, octets))):
            low = middle
        else:
            high = middle
    return low


def beyond(way: Transport, length: int, rate_bps: float) -> tuple[int, list[str]]:
    """Return how many frames are dropped at a rate, and what is wrong with what is kept and reported.

    Short frames may come faster than the writer takes them: those that staging has no place for count, too.
    """
    sent = frames(length, rate_bps, OCTETS // 4)
    run_ = capture(way, sent)
    return sum(run_.channels["dropped"]) + run_.counts["missed"], compare(sent, run_)


def block_rate(way: Transport, length: int) -> float:
    """Return the bits of blocks a second that a way out gives where too much comes."""
    run_ = capture(way, frames(length, MOST_BPS, 3 * OCTETS))
    # From the first block on, without it.
    octets = run_.counts["octets"] - 4 * len(run_.blocks[0][0])
    return 8 * octets / (run_.counts["last"] - run_.counts["first"]) * CLK_FREQ
