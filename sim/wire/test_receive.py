# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The receive path at the pins, with asynchronous clocks, against the model of a port."""

import os
import random
from functools import partial

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

from liteprobe.cores.ethernet import OCTET_NS
from liteprobe.cores.formats import RECORD_WORDS
from liteprobe.sim.bench.gmii_source import GmiiSource, carrier, idle, on_wire, with_fcs
from liteprobe.sim.bench.probe_frames import other_frame, probe_frame
from liteprobe.sim.bench.receive import write_verilog
from liteprobe.sim.bench.wire import run_wire_test
from liteprobe.sim.models.delay import signed
from liteprobe.sim.models.receive import PortModel, frames_of
from liteprobe.sim.models.record import record_of

TICK_FS = 8_000_000
PPM_FS = TICK_FS // 1_000_000

# Clocks: sys (MHz), and how far timebase and eth_rx are off (ppm). ``None``: one clock for both.
CLOCKS = {
    "synchronous": (50.0, 0, None),
    "asynchronous": (50.0, -50, 50),
    "slow_wire": (62.5, 50, -50),
}
VARIANTS = [("synchronous", 32), ("asynchronous", 32), ("slow_wire", 64)]


@pytest.mark.parametrize(("clocks", "data_width"), VARIANTS)
def test_receive_path_agrees_with_the_model(clocks, data_width):
    is_synchronous = CLOCKS[clocks][2] is None
    run_wire_test(
        __file__,
        "receive_bench",
        partial(write_verilog, data_width=data_width, is_synchronous=is_synchronous),
        f"receive_{clocks}_{data_width}",
        {"LITEPROBE_CLOCKS": clocks},
    )


class Bench:
    """A receive path on clocks, and the truth of what it was sent."""

    def __init__(self, dut):
        self.dut = dut
        sys_mhz, timebase_ppm, wire_ppm = CLOCKS[os.environ["LITEPROBE_CLOCKS"]]
        self.tolerance_ns = 0 if wire_ppm is None else OCTET_NS
        self.start_clock(dut.sys_clk, round(1e9 / sys_mhz / 2) * 2)
        self.start_clock(dut.timebase_clk, TICK_FS + timebase_ppm * PPM_FS)
        wire_clock = dut.timebase_clk
        if wire_ppm is not None:
            wire_clock = dut.eth_rx_clk
            self.start_clock(wire_clock, TICK_FS + wire_ppm * PPM_FS)
        self.source = GmiiSource(wire_clock, dut.rx_dv, dut.rx_data, dut.rx_er, lambda: int(dut.now.value))
        self.stamps = []
        self.management = []
        self.random = random.Random(cocotb.RANDOM_SEED)

    def start_clock(self, pin, period_fs):
        Clock(pin, period_fs, unit="fs").start(start_high=False)

    async def reset(self, stream_id=None):
        dut = self.dut
        for name in ["clear", "latch", "records_read", "records_stb", "records_adr"]:
            getattr(dut, name).value = 0
        dut.records_enable.value = dut.management_ready.value = 1
        dut.stream_any.value = stream_id is None
        dut.stream_id.value = stream_id or 0
        for name in ["sys_rst", "timebase_rst", "eth_rx_rst"]:
            if hasattr(dut, name):
                getattr(dut, name).value = 1
        await ClockCycles(dut.sys_clk, 10)
        for name in ["sys_rst", "timebase_rst", "eth_rx_rst"]:
            if hasattr(dut, name):
                getattr(dut, name).value = 0
        await ClockCycles(dut.sys_clk, 10)
        cocotb.start_soon(self.watch_stamps())
        cocotb.start_soon(self.watch_management())

    async def watch_stamps(self):
        while True:
            await RisingEdge(self.dut.paired)
            await ReadOnly()
            self.stamps.append(int(self.dut.stamp.value))

    async def watch_management(self):
        frame, dut = b"", self.dut
        while True:
            await RisingEdge(dut.sys_clk)
            await ReadOnly()
            if not (int(dut.management_valid.value) and int(dut.management_ready.value)):
                continue
            word = int(dut.management_data.value).to_bytes(4, "little")
            if int(dut.management_last.value):
                word = word[: int(dut.management_last_be.value).bit_length()]
                self.management.append(frame + word)
                frame = b""
            else:
                frame += word

    async def pulse(self, name):
        await RisingEdge(self.dut.sys_clk)
        getattr(self.dut, name).value = 1
        await RisingEdge(self.dut.sys_clk)
        getattr(self.dut, name).value = 0
        await ClockCycles(self.dut.sys_clk, 2)

    async def registers(self, names):
        await self.pulse("latch")
        shown = {name: int(getattr(self.dut, f"{name}_1" if hasattr(self.dut, f"{name}_1") else name).value)
            for name in names}
        return {name: signed(value) if name in ("delay_min", "delay_max", "delay_sum") else value
            for name, value in shown.items()}

    async def records(self, start, count, depth=1024):
        words = []
        for number in range(start, start + count):
            for word in range(RECORD_WORDS):
                words.append(await self.read_word(RECORD_WORDS * (number % depth) + word))
        return [record_of(words[k : k + RECORD_WORDS]) for k in range(0, len(words), RECORD_WORDS)]

    async def read_word(self, address):
        self.dut.records_adr.value = address
        self.dut.records_stb.value = 1
        while True:
            await RisingEdge(self.dut.sys_clk)
            if int(self.dut.records_ack.value):
                break
        value = int(self.dut.records_data.value)
        self.dut.records_stb.value = 0
        return value


    async def check(self, model):
        """Compare everything with the model, fed with stamps that were checked to be near the truth."""
        await ClockCycles(self.dut.sys_clk, 60)
        frames, refused = frames_of(self.source.symbols)
        model.counters["preamble_errors"] = refused
        stamps = list(self.stamps)
        errors = []
        for frame in frames:
            truth = self.source.sfd_now[frame.sfd_tick]
            is_probe = model.is_probe(frame)
            stamp = stamps.pop(0) if is_probe else truth
            errors.append(stamp - truth)
            model.receive(frame, stamp)
        assert stamps == []
        assert max(map(abs, errors), default=0) <= self.tolerance_ns, errors
        assert max(errors, default=0) - min(errors, default=0) <= self.tolerance_ns, errors
        expected = model.registers()
        assert await self.registers(expected) == expected
        assert int(self.dut.records_written.value) == model.ring.written
        assert int(self.dut.records_lost.value) == model.ring.lost
        return errors


@cocotb.test()
async def probe_frames_of_every_layout_are_recorded(dut):
    bench = Bench(dut)
    await bench.reset()
    sequence = 0
    for tags in (0, 1, 2):
        for version in (4, 6):
            for extra in range(9):
                length = len(probe_frame(0, 0, 60, 1, tags, version)) + extra
                frame = probe_frame(sequence, 1000 + sequence, length, 7, tags, version)
                await bench.source.send(on_wire(with_fcs(frame)))
                sequence += 1
    model = PortModel()
    await bench.check(model)
    assert model.sequence.expected == model.counters["frames"] == sequence == 54
    records = await bench.records(0, model.ring.written)
    assert [word for record in records for word in record.words()] == list(model.ring.memory.values())
    assert [record.sequence for record in records] == list(range(54))


@cocotb.test()
async def train_of_1000_shortest_frames_needs_no_host(dut):
    bench = Bench(dut)
    await bench.reset()
    train = [symbol for number in range(1000) for symbol in on_wire(with_fcs(probe_frame(number, number)))]
    assert len(train) == 1000 * 84
    await bench.source.send(train)
    model = PortModel()
    await bench.check(model)
    assert (model.ring.written, model.ring.lost) == (1000, 0)
    records = await bench.records(0, 1000)
    assert [word for record in records for word in record.words()] == list(model.ring.memory.values())
