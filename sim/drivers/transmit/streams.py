# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Brings a port with streams to pins, runs scripts of descriptors with cocotb, and knows by arithmetic what they send."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cocotb.triggers import FallingEdge

from migen import *

from litex.gen import *
from litex.soc.interconnect.stream import Endpoint

from liteprobe.cores.formats import NO_SEQUENCE, SENT_WORDS, STREAMS, Fill, TransmitState, slot_octets
from liteprobe.cores.transmit.frames import descriptor_description
from liteprobe.cores.transmit.path import TransmitPath
from liteprobe.cores.transmit.sources.source import ProgramSource
from liteprobe.cores.transmit.sources.streams.streams import SentCounters, StreamSource
from liteprobe.sim.drivers.tools.pins import write_bench
from liteprobe.sim.drivers.transmit.driver import TransmitBench, TransmitDriver
from liteprobe.sim.models.traffic.trains import fill_octets, ones_sum

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
        self.source        = source = Endpoint(descriptor_description())
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
            self.add_input(f"p0_{name}", signals[name])
        self.add_output("p0_sent_dat", bus.dat_r)
        self.add_output("p0_sent_ack", bus.ack)

write_verilog = partial(write_bench, StreamsBench, "streams_bench")

# Driver -------------------------------------------------------------------------------------------

TICK_NS = 8
IPV4_OCTETS = 20
IDENTIFICATION = 4  # In a header of IPv4.


@dataclass(frozen=True)
class ScriptedFrame:
    """A frame of a stream; fields as those of its descriptor, ``header`` in octets, a multiple of 4."""

    stream: int
    sequence: int
    length: int
    due: int
    header: bytes
    with_probe: bool = False
    fill: Fill = Fill.ZERO
    payload_offset: int = 42
    checksum_enable: bool = False
    checksum_seed: int = 0
    stamp_enable: bool = False
    stamp_offset: int = 52
    stamp_octets: int = 8
    stamp_shift: int = 0
    stamp_nibble: bool = False
    stamp_mend: bool = False

    def descriptor(self) -> int:
        """Return its descriptor as a word of the script."""
        values = {name: int(getattr(self, name)) for name, _ in SCRIPT_LAYOUT if hasattr(self, name)}
        values |= {"header_words": len(self.header) // 4, "stamp_octets": self.stamp_octets - 1}
        word, place = 0, 0
        for name, width in SCRIPT_LAYOUT:
            word |= (values.get(name, 0) & (1 << width) - 1) << place
            place += width
        return word

    def octets(self, time_ns: int) -> bytes:
        """Return the frame, without FCS, as it must leave with its SFD at ``time_ns``."""
        frame = bytearray(self.header)
        if self.with_probe:
            frame += self.sequence.to_bytes(4, "big") + bytes(8)
        frame += fill_octets(self.fill, self.length - len(frame))
        if self.stamp_enable:
            self.write_stamp(frame, time_ns)
        if self.checksum_enable:
            payload = bytes(frame[self.payload_offset : -2])
            complement = ones_sum(payload, self.checksum_seed) ^ 0xFFFF
            frame[-2:] = complement.to_bytes(2, "big" if len(payload) % 2 == 0 else "little")
        return bytes(frame)

    def write_stamp(self, frame: bytearray, time_ns: int) -> None:
        """Write the stamp, and the checksum of IPv4 where that is asked for."""
        value = time_ns // 16**self.stamp_shift % 256**self.stamp_octets
        stamp = bytearray(value.to_bytes(self.stamp_octets, "big"))
        if self.stamp_nibble:
            stamp[0] = frame[self.stamp_offset] // 16 * 16 + stamp[0] % 16
        frame[self.stamp_offset : self.stamp_offset + self.stamp_octets] = stamp
        if self.stamp_mend:
            begin = self.stamp_offset - IDENTIFICATION
            ipv4 = frame[begin : begin + IPV4_OCTETS]
            ipv4[10:12] = bytes(2)
            frame[begin + 10 : begin + 12] = (ones_sum(bytes(ipv4)) ^ 0xFFFF).to_bytes(2, "big")


def starts_of(frames: Sequence[ScriptedFrame]) -> list[int]:
    """Return the tick of each start: its due tick, or as soon as the line is free."""
    found, free = [], None
    for frame in frames:
        start = frame.due if free is None else max(frame.due, free)
        found.append(start)
        free = start + slot_octets(frame.length)
    return found


def counts_of(frames: Sequence[ScriptedFrame]) -> dict[int, tuple[int, int, int]]:
    """Return (sent, late, first late) of each stream; the first frame of all is never late."""
    counts = dict.fromkeys(range(STREAMS), (0, 0, NO_SEQUENCE))
    for number, (frame, start) in enumerate(zip(frames, starts_of(frames), strict=True)):
        sent, late, first = counts[frame.stream]
        if number > 0 and start > frame.due:
            late, first = late + 1, frame.sequence if late == 0 else first
        counts[frame.stream] = (sent + 1, late, first)
    return counts


class StreamsDriver(TransmitDriver):
    """Drives port 0, which has streams; port 1 is as ever."""

    async def reset(self) -> None:
        """Start the clocks, all inputs 0, and watch both ports."""
        for name, _ in STREAM_INPUTS:
            self.pin(0, name).value = 0
        await TransmitDriver.reset(self)

    async def write_header(self, stream: int, octets: bytes) -> None:
        """Write the header of a stream."""
        for word in range(len(octets) // 4):
            self.pin(0, "header_adr").value = 32 * stream + word
            self.pin(0, "header_dat").value = int.from_bytes(octets[4 * word : 4 * word + 4], "little")
            self.pin(0, "header_we").value = 1
            await self.cycles(1)
        self.pin(0, "header_we").value = 0

    async def arm_streams(
        self, frames: Sequence[ScriptedFrame], hold: bool = False, start_time: int | None = None
    ) -> None:
        """Write headers and script, and arm."""
        for stream, header in {frame.stream: frame.header for frame in frames}.items():
            await self.write_header(stream, header)
        for number, frame in enumerate(frames):
            self.pin(0, "script_adr").value = number
            self.pin(0, "script_dat").value = frame.descriptor()
            self.pin(0, "script_we").value = 1
            await self.cycles(1)
        self.pin(0, "script_we").value = 0
        self.pin(0, "script_count").value = len(frames)
        self.pin(0, "streams_hold").value = int(hold)
        self.pin(0, "timed").value = int(start_time is not None)
        self.pin(0, "start_time").value = start_time or 0
        await self.pulse(self.pin(0, "streams_arm"))
        await self.cycles(5)

    async def run_streams(self, frames: Sequence[ScriptedFrame], limit_us: float = 3000) -> None:
        """Arm, start, and wait for the end."""
        await self.arm_streams(frames)
        await self.start([0])
        await self.until(0, TransmitState.IDLE, limit_us)

    async def read_sent(self, word: int) -> int:
        """Read a word of the memory of what was sent."""
        bus: Any = self.pin(0, "sent_stb")
        self.pin(0, "sent_adr").value = word
        bus.value = 1
        while True:
            await FallingEdge(self.dut.sys_clk)
            if self.pin(0, "sent_ack").value:
                break
        bus.value = 0
        return int(self.pin(0, "sent_dat").value)

    async def sent(self, stream: int) -> tuple[int, int, int]:
        """Return (sent, late, first late) of a stream."""
        low, high, late, first = [await self.read_sent(SENT_WORDS * stream + word) for word in range(SENT_WORDS)]
        return high << 32 | low, late, first

    def expected(self, frame: ScriptedFrame, sfd_now: int) -> bytes:
        """Return the octets of a frame whose SFD left the port at ``sfd_now``: its stamp is of PAD_TICKS later."""
        return frame.octets(sfd_now + PAD_TICKS * TICK_NS)
