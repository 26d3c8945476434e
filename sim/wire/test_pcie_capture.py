# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Frames of two lines through capture, ring and DMA into the host's memory: all of them, or exactly counted."""

import cocotb
from cocotb.triggers import ClockCycles

from liteprobe.sim.bench.compiled import REPOSITORY
from liteprobe.sim.bench.pcie_capture import LINES, TOP, writer
from liteprobe.sim.bench.pcie_capturing import CHANNELS, Capturing
from liteprobe.sim.bench.wire import run_wire_test
from liteprobe.sim.models.capture import Gap, decode


def test_capture_over_pcie():
    folder = REPOSITORY / "build" / "wire" / "pcie_capture"
    folder.mkdir(parents=True, exist_ok=True)
    map_file = folder / "csr.json"
    run_wire_test(__file__, TOP, writer(map_file), "pcie_capture", {"PCIE_MAP": str(map_file)}, is_large=True)


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
        await ClockCycles(dut.clk_sys, 30_000) # Away.
        for _ in range(8): # Back.
            await host.collect()
    while not await host.are_sent(250):
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
    host.endpoint.stall = lambda: False # What is under way then comes soon.
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
