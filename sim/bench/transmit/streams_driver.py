# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs scripts of descriptors on the pins of a StreamsBench, and knows by its own arithmetic what they must send."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cocotb.triggers import FallingEdge

from liteprobe.cores.formats import NO_SEQUENCE, SENT_WORDS, STREAMS, Fill, TransmitState, slot_octets
from liteprobe.sim.bench.transmit.driver import TransmitDriver
from liteprobe.sim.bench.transmit.streams_module import PAD_TICKS, SCRIPT_LAYOUT, STREAM_INPUTS
from liteprobe.sim.models.probe_frame import fill_octets, ones_sum

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
