# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A host that takes what a probe in its slot captures, and holds it against what was sent, for cocotb.

The host library runs as it is on device files of a driver in front of the root complex of the bench; what uses them runs in a
thread, by `cocotb.task.bridge`.
"""

import struct
from collections.abc import Callable
from typing import Any

from cocotb.task import resume
from cocotb.triggers import ClockCycles

from liteprobe.cores.formats import BAR0_SEGMENTS, CHANNEL_WORDS, DMA_SLOT_BYTES, DMA_SLOTS, ChannelWord
from liteprobe.host.device.link.dma import IOCTL_DMA_INFO, IOCTL_DMA_WRITER, IOCTL_LOCK
from liteprobe.host.device.link.pcie import IOCTL_REG, REG, PcieLink
from liteprobe.sim.drivers.pcie.host import Host, map_of_run
from liteprobe.sim.drivers.pcie.probes import LINES, RING_BLOCKS, record
from liteprobe.sim.models.receive.capture import Gap, decode

# Device files -------------------------------------------------------------------------------------

PATH = "/dev/litepcie"
RING_BYTES = DMA_SLOT_BYTES * DMA_SLOTS
LOOK_CYCLES = 1000 # That pass where the library waits.

class DriverFile:
    """The device file of a channel.

    ``host``: booted.
    """

    def __init__(self, host: Host, path: str) -> None:
        self._host = host
        self._channel = int(path.removeprefix(PATH))
        self._is_running = False

    def ioctl(self, request: int, argument: bytearray) -> None:
        """Do as the driver does."""
        if request == IOCTL_REG:
            address, word, is_write = REG.unpack(argument)
            offset, window = address - BAR0_SEGMENTS[0], self._host.slot.bar_window[0]
            if is_write:
                resume(window.write_dword)(offset, word)
            else:
                argument[:] = REG.pack(address, resume(window.read_dword)(offset), False)
        elif request == IOCTL_LOCK:
            argument[4:] = bytes([1, 1])
        elif request == IOCTL_DMA_INFO:
            argument[:] = struct.pack("=6Q", 0, DMA_SLOT_BYTES, DMA_SLOTS, RING_BYTES, DMA_SLOT_BYTES, DMA_SLOTS)
        else:
            assert request == IOCTL_DMA_WRITER
            self._is_running = bool(argument[0])
            resume(self._host.start if self._is_running else self._host.stop)(self._channel)

    def map(self, length: int, offset: int, is_writable: bool = False) -> memoryview:
        """Return the memory of the ring."""
        assert length == offset == RING_BYTES
        return memoryview(self._host.ring(self._channel)[1])

    def close(self) -> None:
        """Stop what runs."""
        if self._is_running:
            self.ioctl(IOCTL_DMA_WRITER, bytearray(24))

class BenchLink(PcieLink):
    """The link of the library; where it waits, cycles pass."""

    def __init__(self, host: Host) -> None:
        super().__init__(DriverFile(host, f"{PATH}0"), f"{PATH}0")
        self._dut: Any = host.dut

    def wait(self, seconds: float) -> None:
        """Let some cycles pass, however long is asked for."""
        resume(self._pass)()

    def beat(self, act: Callable[[], None], period_s: float) -> Callable[[], None]:
        """Keep no lease: no test lasts two seconds of the probe's time, and cocotb takes calls of one thread alone."""
        return lambda: None

    async def _pass(self) -> None:
        await ClockCycles(self._dut.clk_sys, LOOK_CYCLES)


# Host ---------------------------------------------------------------------------------------------

CHANNELS = 2 * LINES
SLOTS = 64 # Of a ring in the host's memory: the bench needs no more, and each is three writes.
BLOCKS = RING_BLOCKS // CHANNELS # Of each channel's ring in the probe.
GAP_AND_PREAMBLE = 24 # Octets, with FCS; one octet a cycle at 125 MHz is line rate.


class Capturing(Host):
    """A host that takes what the probe captures."""

    takes_pins = False

    def __init__(self, dut: Any, slots: int = SLOTS, **options: Any) -> None:
        super().__init__(dut, map_of_run(), **options)
        self.table = int(self.map["memories"]["capture_channels"]["base"])
        self.slots = slots
        self.hidden = DMA_SLOTS - slots # Of the slots that a driver has, those that this host has not.
        self.taken = [0] * CHANNELS
        self.found: list[list[list[int]]] = [[] for _ in range(CHANNELS)]
        self.running: set[int] = set()

    async def begin(self, channels: Any) -> None:
        """Boot, share the probe's ring out, start the capture, then the DMA of some channels."""
        await self.boot()
        for channel in range(CHANNELS):
            base = self.table + 4 * CHANNEL_WORDS * channel
            await self.write_address(base + 4 * ChannelWord.BASE, BLOCKS * channel)
            await self.write_address(base + 4 * ChannelWord.BLOCKS, BLOCKS)
        # The capture first: what an earlier one has left in the ring must not come.
        await self.write("capture_enable", 1)
        await self.read("capture_running")
        for channel in channels:
            await self.run(channel)

    async def run(self, channel: int) -> None:
        """Start a channel's DMA."""
        self.taken[channel] = 0
        await self.start(channel, self.slots)
        await self.give_back(channel)
        self.running.add(channel)

    async def halt(self, channel: int) -> None:
        """Stop it, and take what has come."""
        self.running.remove(channel)
        await self.look(channel, await self.stop(channel))

    async def give_back(self, channel: int) -> None:
        """Say what the host has taken."""
        await self.write(f"capture_dma_taken{channel}", (self.taken[channel] - self.hidden) & 0xFFFFFFFF)

    async def look(self, channel: int, written: int) -> None:
        """Copy what came."""
        for number in range(self.taken[channel], written):
            words = [int.from_bytes(self.block(channel, number)[n : n + 4], "little") for n in range(0, 4 * 368, 4)]
            self.found[channel].append(words[: 4 + (words[1] & 0xFFFF)])
        self.taken[channel] = written

    async def collect(self) -> None:
        """Take blocks of all channels, once, after a while."""
        await ClockCycles(self.dut.clk_sys, 1000)
        for channel in sorted(self.running):
            await self.look(channel, await self.read(f"capture_dma_written{channel}"))
            await self.give_back(channel)

    async def lines(self, length: int, count: int, spacing: int | None = None, mask: int = 1) -> None:
        """Let frames come."""
        for line in range(LINES):
            await self.write(f"line{line}_length", length)
            await self.write(f"line{line}_spacing", spacing or length + GAP_AND_PREAMBLE)
            await self.write(f"line{line}_mask", mask)
        for line in range(LINES):
            await self.write(f"line{line}_count", count)

    async def are_sent(self, count: int) -> bool:
        """Return whether the capture has taken all frames, or dropped them."""
        return all([await self.read(f"line{line}_sent") == count for line in range(LINES)])

    async def end(self) -> None:
        """End the capture and take the rest."""
        await self.write("capture_enable", 0)
        while await self.read("capture_running"):
            await self.collect()
        before: list[int] = []
        while before != self.taken:
            before = list(self.taken)
            await self.collect()
            await ClockCycles(self.dut.clk_sys, 2000)

    async def dropped(self, channel: int) -> int:
        """Return the drops that the probe counts."""
        return await self.read_address(self.table + 4 * (CHANNEL_WORDS * channel + ChannelWord.DROPPED))

    def check(self, length: int, count: int, mask: int = 1) -> list[int]:
        """Hold every octet against what was sent; return how many frames are missing, of each channel: all of them in gaps."""
        gaps = [0] * CHANNELS
        for line in range(LINES):
            for part in range(mask + 1):
                channel = 2 * line + part
                expected = iter(number for number in range(count) if number & mask == part)
                for found in decode(self.found[channel], channel):
                    if isinstance(found, Gap):
                        missing = [next(expected) for _ in range(found.count)]
                        assert found.stamp == missing[0] | line << 32
                        gaps[channel] += found.count
                    else:
                        wanted = record(line, next(expected), length, channel)
                        assert found == wanted, (found.head, wanted.head, found.octets[:3], wanted.octets[:3])
                # Where the ring is full when the capture ends no gap tells of the last ones; the counter does.
                gaps[channel] += sum(1 for _ in expected)
        return gaps
