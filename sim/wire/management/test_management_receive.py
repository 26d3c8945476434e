# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A port that only carries management, from the pins to the stream: each good frame whole, each drop counted."""

import os
import random
from typing import Any

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from liteprobe.sim.drivers.frames.gmii import GmiiSource, carrier, idle, on_wire, with_fcs
from liteprobe.sim.drivers.management.stack import write_receive
from liteprobe.sim.drivers.receive.driver import CLOCKS, PPM_FS, TICK_FS, watch_management
from liteprobe.sim.drivers.tools.wire import is_full, run_wire_test

# Without FCS: all in a full run; else all remainders of 16 near the shortest, and one of each 16 above.
LENGTHS = range(60, 1519) if is_full() else [*range(60, 192), *(n + n // 16 % 16 for n in range(192, 1503, 16)), 1518]
STORE_OCTETS = 4096
FATES = ("stored", "dropped", "cut", "refused")


def run(clocks: str, filter_: str) -> None:
    name = f"test_management_receive_{clocks}_{filter_.partition('|')[0]}"
    run_wire_test(__file__, "management_receive_bench", write_receive, name, {"LITEPROBE_CLOCKS": clocks}, filter_)


@pytest.mark.parametrize("clocks", ["asynchronous", pytest.param("slow_wire", marks=pytest.mark.full)])
def test_frames_leave_whole_or_are_counted(clocks: str) -> None:
    run(clocks, "broken|overlong|without_a_reader|slow_reader")


def test_frames_of_every_length_pass() -> None:
    run("asynchronous", "every_length")


def test_a_sys_too_slow_cuts_frames_and_counts_each() -> None:
    run("slow_sys", "too_slow")


class Bench:
    """A management port on clocks, and what left it."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        sys_mhz, _, wire_ppm = CLOCKS[os.environ["LITEPROBE_CLOCKS"]]
        Clock(dut.sys_clk, round(1e9 / sys_mhz / 2) * 2, unit="fs").start(start_high=False)
        Clock(dut.eth_rx_clk, TICK_FS + (wire_ppm or 0) * PPM_FS, unit="fs").start(start_high=False)
        self.source = GmiiSource(dut.eth_rx_clk, dut.rx_dv, dut.rx_data, dut.rx_er, lambda: None)
        self.frames: list[bytes] = []
        self.random = random.Random(cocotb.RANDOM_SEED)

    async def reset(self) -> None:
        """Reset, and watch what leaves."""
        self.dut.management_ready.value = 1
        for level in (1, 0):
            self.dut.sys_rst.value = self.dut.eth_rx_rst.value = level
            await ClockCycles(self.dut.sys_clk, 10)
        cocotb.start_soon(watch_management(self.dut, self.frames))

    def frame(self, length: int) -> bytes:
        """Return a frame without FCS, of any content."""
        return self.random.randbytes(length)

    async def fates(self) -> dict[str, int]:
        """Return how many frames found which end, once the last one has; those that found none are left out."""
        await ClockCycles(self.dut.sys_clk, 30)
        counts = {name: int(getattr(self.dut, name).value) for name in FATES}
        await ClockCycles(self.dut.sys_clk, STORE_OCTETS // 4 + 30)
        return {name: count for name, count in counts.items() if count}


@cocotb.test()
async def frames_of_every_length_pass_back_to_back(dut):
    bench = Bench(dut)
    await bench.reset()
    frames = [bench.frame(length) for length in LENGTHS]
    bench.random.shuffle(frames)
    await bench.source.send([symbol for frame in frames for symbol in on_wire(with_fcs(frame))])
    assert await bench.fates() == {"stored": len(LENGTHS)}
    assert bench.frames == frames


@cocotb.test()
async def broken_frames_leave_no_trace_between_good_ones(dut):
    bench = Bench(dut)
    await bench.reset()
    base = with_fcs(bench.frame(64))
    flipped = [bench.random.randrange(8 * len(base)) for _ in range(30)] + [0, 8 * len(base) - 1]
    wrong = [on_wire((int.from_bytes(base, "big") ^ 1 << bit).to_bytes(len(base), "big")) for bit in flipped]
    wrong += [on_wire(with_fcs(bench.frame(length))) for length in range(60)]  # Runts with a good FCS.
    wrong += [on_wire(base[:length]) for length in range(68)]  # Cut by the wire.
    wrong += [on_wire(base, errors=[place]) for place in (0, 33, 67)]
    refused = [carrier(b"\x55" * 9) + idle(1), on_wire(base)[1:7] + on_wire(b"\x00" + base)[8:]]
    good = [bench.frame(60 + number % 9) for number in range(len(wrong) + len(refused))]
    bench.random.shuffle(wrong)
    wire = [
        symbol for bad, frame in zip(wrong + refused, good, strict=True) for symbol in bad + on_wire(with_fcs(frame))
    ]
    await bench.source.send(wire)
    assert await bench.fates() == {"stored": len(good), "refused": len(refused)}
    assert bench.frames == good


@cocotb.test()
async def overlong_frames_pass_while_they_fit_and_are_counted_where_not(dut):
    bench = Bench(dut)
    await bench.reset()
    lengths = [1519, 60, 9018, 61, STORE_OCTETS, 62, STORE_OCTETS + 1, 63, 20_000, 64]
    frames = [bench.frame(length) for length in lengths]
    for frame in frames:
        # The store is empty again when the next one comes.
        await bench.source.send(on_wire(with_fcs(frame), gap=3 * STORE_OCTETS))
    assert await bench.fates() == {"stored": 7, "dropped": 3}
    assert bench.frames == [frame for frame in frames if len(frame) <= STORE_OCTETS]


@cocotb.test()
async def frames_without_a_reader_are_dropped_whole_once_the_store_is_full(dut):
    bench = Bench(dut)
    await bench.reset()
    dut.management_ready.value = 0
    frames = [bench.frame(1518) for _ in range(5)] + [bench.frame(60) for _ in range(70)]
    await bench.source.send([symbol for frame in frames for symbol in on_wire(with_fcs(frame))])
    # Two of 380 words, 17 of 15 into the 264 that are left, and of these into the one word that waits at the source.
    fit = 2 + (STORE_OCTETS // 4 + 1 - 2 * 380) // 15
    await ClockCycles(dut.sys_clk, 30)
    dut.management_ready.value = 1
    assert await bench.fates() == {"stored": fit, "dropped": len(frames) - fit}
    assert bench.frames == frames[:2] + frames[5 : 5 + fit - 2]


@cocotb.test()
async def frames_that_a_slow_reader_leaves_no_room_are_dropped_and_counted(dut):
    bench = Bench(dut)
    await bench.reset()

    async def read_now_and_then() -> None:
        while True:
            await RisingEdge(dut.sys_clk)
            dut.management_ready.value = bench.random.random() < 0.3

    reader = cocotb.start_soon(read_now_and_then())
    frames = [bench.frame(bench.random.choice([60, 61, 100, 700, 1518])) for _ in range(60)]
    await bench.source.send([symbol for frame in frames for symbol in on_wire(with_fcs(frame))])
    reader.cancel()
    await RisingEdge(dut.sys_clk)
    dut.management_ready.value = 1
    fates = await bench.fates()
    assert fates == {"stored": len(bench.frames), "dropped": len(frames) - len(bench.frames)}
    rest = iter(frames)
    assert all(frame in rest for frame in bench.frames), "a frame is not what was sent, or out of order"


@cocotb.test()
async def frames_are_cut_and_counted_where_sys_is_too_slow(dut):
    bench = Bench(dut)
    await bench.reset()
    # The longer ones lose their end behind octet 60: what is left of them is not a runt.
    frames = [bench.frame(bench.random.choice([60, 61, 150, 300])) for _ in range(200)]
    await bench.source.send([symbol for frame in frames for symbol in on_wire(with_fcs(frame))])
    fates = await bench.fates()
    assert fates["cut"] > 20 and fates["stored"] > 20, "some must be cut and some not, or this measures nothing"
    assert fates == {"stored": len(bench.frames), "cut": len(frames) - len(bench.frames)}
    rest = iter(frames)
    assert all(frame in rest for frame in bench.frames), "a frame is not what was sent, or out of order"
