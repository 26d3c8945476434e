# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Frames of two lines through capture, ring and DMA into the host's memory: all of them, or exactly counted."""

import os

import cocotb
from cocotb.triggers import ClockCycles

from liteprobe.cores.formats import CHANNEL_WORDS, DMA_SLOTS, ChannelWord
from liteprobe.sim.bench.compiled import REPOSITORY
from liteprobe.sim.bench.pcie import Host, map_of_run
from liteprobe.sim.bench.pcie_capture import LINES, RING_BLOCKS, TOP, record, writer
from liteprobe.sim.bench.wire import run_wire_test
from liteprobe.sim.models.capture import Gap, decode

CHANNELS = 2 * LINES
BLOCKS = RING_BLOCKS // CHANNELS # Of each channel's ring in the probe.
GAP_AND_PREAMBLE = 24 # Octets, with FCS; one octet a cycle at 125 MHz is line rate.


def test_capture_over_pcie():
    folder = REPOSITORY / "build" / "wire" / "pcie_capture"
    folder.mkdir(parents=True, exist_ok=True)
    map_file = folder / "csr.json"
    run_wire_test(__file__, TOP, writer(map_file), "pcie_capture", {"PCIE_MAP": str(map_file)}, os.environ.get("ONLY"), is_large=True)


class Capturing(Host):
    """A host that takes what the probe captures."""

    def __init__(self, dut, slots=DMA_SLOTS, **options):
        super().__init__(dut, map_of_run(), **options)
        self.table = int(self.map["memories"]["capture_channels"]["base"])
        self.hidden = DMA_SLOTS - slots # Slots that the host says it hasn't taken, ever.
        self.taken = [0] * CHANNELS
        self.found = [[] for _ in range(CHANNELS)]
        self.running = set()

    async def begin(self, channels):
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

    async def run(self, channel):
        """Start a channel's DMA."""
        self.taken[channel] = 0
        await self.start(channel)
        await self.give_back(channel)
        self.running.add(channel)

    async def halt(self, channel):
        """Stop it, and take what has come."""
        self.running.remove(channel)
        await self.look(channel, await self.stop(channel))

    async def give_back(self, channel):
        """Say what the host has taken."""
        await self.write(f"capture_dma_taken{channel}", (self.taken[channel] - self.hidden) & 0xFFFFFFFF)

    async def look(self, channel, written):
        """Copy what came."""
        for number in range(self.taken[channel], written):
            words = [int.from_bytes(self.block(channel, number)[n : n + 4], "little") for n in range(0, 4 * 368, 4)]
            self.found[channel].append(words[: 4 + (words[1] & 0xFFFF)])
        self.taken[channel] = written

    async def collect(self):
        """Take blocks of all channels, once."""
        for channel in sorted(self.running):
            await self.look(channel, await self.read(f"capture_dma_written{channel}"))
            await self.give_back(channel)

    async def lines(self, length, count, spacing=None, mask=1, lines=LINES):
        """Let frames come."""
        for line in range(lines):
            await self.write(f"line{line}_length", length)
            await self.write(f"line{line}_spacing", spacing or length + GAP_AND_PREAMBLE)
            await self.write(f"line{line}_mask", mask)
        for line in range(lines):
            await self.write(f"line{line}_count", count)

    async def are_sent(self, count, lines=LINES):
        """Return whether all frames have come."""
        return all([await self.read(f"line{line}_sent") == count for line in range(lines)])

    async def end(self):
        """End the capture and take the rest."""
        await self.write("capture_enable", 0)
        while await self.read("capture_running"):
            await self.collect()
        before = None
        while before != self.taken:
            before = list(self.taken)
            await self.collect()
            await ClockCycles(self.dut.clk_sys, 2000)

    async def dropped(self, channel):
        """Return the drops that the probe counts."""
        return await self.read_address(self.table + 4 * (CHANNEL_WORDS * channel + ChannelWord.DROPPED))

    def check(self, length, count, mask=1, lines=LINES):
        """Hold every octet against what was sent; return how many frames gaps tell of, of each channel."""
        gaps = [0] * CHANNELS
        for line in range(lines):
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
                        assert found == wanted, (found.head, wanted.head, found.octets[:3], wanted.octets[:3], len(found.octets), len(wanted.octets))
                assert next(expected, None) is None, "frames without a trace"
        return gaps


@cocotb.test()
@cocotb.parametrize((("length", "count"), [(60, 600), (252, 250), (1516, 60)]))
async def both_lines_at_line_rate_arrive_octet_for_octet(dut, length, count):
    host = Capturing(dut)
    await host.begin(range(CHANNELS))
    await host.lines(length, count)
    while not await host.are_sent(count):
        await host.collect()
    await host.end()
    assert host.check(length, count) == [0] * CHANNELS
    assert [await host.dropped(channel) for channel in range(CHANNELS)] == [0] * CHANNELS


@cocotb.test()
async def host_that_takes_nothing_costs_its_own_frames_and_every_one_is_counted(dut):
    host = Capturing(dut, slots=8)
    await host.begin([0, 2])
    await host.lines(1020, 60, mask=0)
    while not await host.are_sent(60):
        for channel in (2,): # Channel 0 has nobody who takes it.
            await host.look(channel, await host.read(f"capture_dma_written{channel}"))
            await host.give_back(channel)
    assert host.taken[0] == 0 and await host.read("capture_dma_written0") == 8
    lost = await host.dropped(0)
    assert lost > 30 and await host.dropped(2) == 0
    await host.end()
    gaps = host.check(1020, 60, mask=0)
    assert gaps == [await host.dropped(channel) for channel in range(CHANNELS)] and gaps[0] == lost


@cocotb.test()
async def host_that_comes_back_finds_the_place_of_the_gap(dut):
    host = Capturing(dut, slots=8)
    await host.begin([0, 2])
    await host.lines(508, 250, mask=0)
    for _ in range(3):
        await ClockCycles(dut.clk_sys, 15_000) # Away.
        for _ in range(8): # Back.
            await host.collect()
    await host.end()
    gaps = host.check(508, 250, mask=0)
    assert gaps == [await host.dropped(channel) for channel in range(CHANNELS)]
    assert gaps[0] > 0 and sum(isinstance(one, Gap) for one in decode(host.found[0], 0)) >= 2


@cocotb.test()
@cocotb.parametrize(part=[0.1, 0.5])
async def slow_root_complex_loses_nothing_uncounted(dut, part):
    host = Capturing(dut)
    await host.begin(range(CHANNELS))
    turn = iter(range(1 << 60))
    host.endpoint.stall = lambda: next(turn) % 10 >= 10 * part
    await host.lines(252, 300)
    while not await host.are_sent(300):
        await host.collect()
    await host.end()
    gaps = host.check(252, 300)
    assert gaps == [await host.dropped(channel) for channel in range(CHANNELS)]
    assert (sum(gaps) > 0) == (part == 0.1)


@cocotb.test()
async def stop_and_restart_in_full_flow_lose_nothing_uncounted(dut):
    host = Capturing(dut)
    await host.begin([0, 2])
    await host.lines(252, 300, mask=0)
    for cycles in (3000, 5000, 7000):
        await ClockCycles(dut.clk_sys, cycles)
        await host.collect()
        for channel in (0, 2):
            await host.halt(channel)
        for channel in (0, 2):
            await host.run(channel)
    while not await host.are_sent(300):
        await host.collect()
    await host.end()
    gaps = host.check(252, 300, mask=0)
    assert gaps == [await host.dropped(channel) for channel in range(CHANNELS)]


@cocotb.test()
async def second_capture_begins_anew(dut):
    host = Capturing(dut)
    await host.begin([0, 2])
    for _ in range(2):
        await host.lines(60, 100, mask=0)
        while not await host.are_sent(100):
            await host.collect()
        await host.end()
        assert host.check(60, 100, mask=0) == [0] * CHANNELS
        for line in range(LINES):
            await host.write(f"line{line}_count", 0)
            await host.write(f"line{line}_clear", 1)
        host.found = [[] for _ in range(CHANNELS)]
        await host.write("capture_enable", 1)
        await ClockCycles(dut.clk_sys, 1000)
