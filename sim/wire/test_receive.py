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
        shown = await self.registers(expected)
        assert {name: value for name, value in shown.items() if value != expected[name]} == {}, expected
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


@cocotb.test()
async def frames_and_stamps_pair_whatever_garbage_comes_between(dut):
    bench = Bench(dut)
    await bench.reset()
    wire = []
    for number in range(150):
        frame = with_fcs(probe_frame(number, number, 60 + bench.random.randrange(8)))
        for _ in range(bench.random.randrange(6)):
            wire += bench.random.choice(GARBAGE)(bench.random)
        wire += on_wire(frame, bench.random.choice([0, 1, 7, 15]), bench.random.choice([1, 2, 12]))
    await bench.source.send(wire)
    model = PortModel()
    await bench.check(model)
    # A few good frames start too near to garbage, and are refused.
    assert model.counters["frames"] + model.counters["preamble_errors"] >= 150
    assert model.sequence.expected == model.counters["frames"] + model.sequence.lost


GARBAGE = [
    lambda random: on_wire(random.randbytes(random.randrange(9)), random.randrange(8), random.randrange(1, 3)),
    lambda random: carrier(b"\x55" * random.randrange(1, 9)) + idle(1),
    lambda random: carrier(b"\x55\x55\x54\x55\xd5" + random.randbytes(20)) + idle(1),
    lambda random: carrier(b"\xd5") + idle(1) + carrier(b"\xd5\xd5") + idle(1) + carrier(b"\x55\xd5") + idle(1),
    lambda random: (carrier(b"\xd5" + random.randbytes(6)) + idle(1)) * random.randrange(1, 25),
    lambda random: on_wire(random.randbytes(random.randrange(9, 64)), 7, 1),
    lambda random: on_wire(b"\xd5" * random.randrange(64), 3, 1),
]


@cocotb.test()
async def storm_of_shortest_carriers_leaves_no_mark_on_the_next_train(dut):
    bench = Bench(dut)
    await bench.reset()
    wire = (carrier(b"\xd5" + bytes(6)) + idle(1)) * 2000
    for number in range(20):
        wire += on_wire(with_fcs(probe_frame(number, number)))
    await bench.source.send(wire)
    model = PortModel()
    await bench.check(model)
    assert (model.counters["runts"], model.counters["frames"]) == (2000, 20)


@cocotb.test()
async def bad_frames_are_told_apart_and_measured_by_nobody(dut):
    bench = Bench(dut)
    await bench.reset()
    good = probe_frame(0, 5)
    short = probe_frame(1, 5)[:56]
    long = probe_frame(2, 5, 9019)
    wire = on_wire(with_fcs(good))
    wire += on_wire(with_fcs(good)[:-1] + bytes([with_fcs(good)[-1] ^ 1]))  # FCS.
    wire += on_wire(bytes([with_fcs(good)[0] ^ 0x80]) + with_fcs(good)[1:])  # FCS, by its first bit.
    wire += on_wire(with_fcs(short)) + on_wire(with_fcs(short)[:-2])  # Runts, with and without good FCS.
    wire += on_wire(with_fcs(good), errors=[63]) + on_wire(with_fcs(good), errors=[0])  # RX_ER.
    wire += on_wire(with_fcs(probe_frame(1, 6, 9018))) + on_wire(with_fcs(long))  # Longest, giant.
    wire += on_wire(with_fcs(probe_frame(2, 7)))
    await bench.source.send(wire)
    model = PortModel()
    await bench.check(model)
    counters = {name: model.counters[name] for name in ("frames", "fcs_errors", "runts", "giants", "symbol_errors")}
    assert counters == {"frames": 3, "fcs_errors": 3, "runts": 2, "giants": 1, "symbol_errors": 2}
    records = await bench.records(0, model.ring.written)
    assert [word for record in records for word in record.words()] == list(model.ring.memory.values())
    assert [int(record.flags) for record in records] == [0, 1, 1, 6, 7, 128, 128, 0, 8, 0]


@cocotb.test()
async def jabber_is_one_giant_and_its_length_saturates(dut):
    bench = Bench(dut)
    await bench.reset()
    await bench.source.send(on_wire(with_fcs(probe_frame(0, 0, 2000) + bytes(70_000))))
    await bench.source.send(on_wire(with_fcs(probe_frame(0, 0))))
    model = PortModel()
    await bench.check(model)
    assert (model.counters["giants"], model.counters["all_octets"]) == (1, 65535 + 60)


@cocotb.test()
async def broken_lengths_are_recorded_and_not_measured(dut):
    bench = Bench(dut)
    await bench.reset()
    base = probe_frame(0, 9, 64)
    wire = on_wire(with_fcs(base))
    for offset, value in [(16, 51), (16, 49), (16, 0), (16, 0xFFFF), (38, 29), (38, 31), (38, 0), (38, 8)]:
        wire += on_wire(with_fcs(base[:offset] + value.to_bytes(2) + base[offset + 2 :]))
    six = probe_frame(1, 9, 90, version=6)
    for offset, value in [(18, 0), (18, 35), (58, 37), (58, 0)]:
        wire += on_wire(with_fcs(six[:offset] + value.to_bytes(2) + six[offset + 2 :]))
    wire += on_wire(with_fcs(base + b"\0"))  # Padding is only allowed up to 60.
    for end in range(60, 80):  # The frame ends in the probe header.
        wire += on_wire(with_fcs(probe_frame(1, 0x1122334455667788, 90, version=6)[:end]))
    await bench.source.send(wire)
    model = PortModel()
    await bench.check(model)
    assert model.counters["frames"] == 1
    assert model.counters["length_errors"] == 8 + 4 + 1 + 12
    records = await bench.records(0, model.ring.written)
    assert [word for record in records for word in record.words()] == list(model.ring.memory.values())


@cocotb.test()
async def frames_that_only_look_like_probes_are_not_measured(dut):
    bench = Bench(dut)
    await bench.reset()
    base = probe_frame(0, 9, 80)
    wire = []
    for offset, value in [
        (12, b"\x08\x06"), (14, b"\x46"), (14, b"\x65"), (20, b"\x20\x00"), (20, b"\x00\x01"), (23, b"\x06"),
        (42, b"\x4d"), (43, b"\x51"), (44, b"\x53"), (45, b"\x4e"),
    ]:
        wire += on_wire(with_fcs(base[:offset] + value + base[offset + len(value) :]))
    wire += on_wire(with_fcs(base[:20] + b"\x40\x00" + base[22:]))  # Don't fragment: is a probe.
    three_tags = probe_frame(0, 9, 80, tags=2)
    wire += on_wire(with_fcs(three_tags[:12] + b"\x88\xa8\x00\x01" + three_tags[12:]))
    await bench.source.send(wire)
    model = PortModel()
    await bench.check(model)
    assert (model.counters["frames"], model.counters["all_frames"]) == (1, 12)


@cocotb.test()
async def management_frames_are_forwarded_from_between_probe_frames(dut):
    bench = Bench(dut)
    await bench.reset()
    wire = []
    for number in range(60):
        wire += on_wire(with_fcs(probe_frame(number, number)))
        if number % 3 == 0:
            wire += on_wire(with_fcs(other_frame(number, 60 + number)))
        if number % 7 == 0:
            wire += on_wire(with_fcs(other_frame(number))[:-1] + b"\0")
    await bench.source.send(wire)
    model = PortModel()
    await bench.check(model)
    assert bench.management == model.management
    assert bench.management == [other_frame(number, 60 + number) for number in range(0, 60, 3)]


@cocotb.test()
async def management_without_a_reader_is_dropped_and_counted_whole(dut):
    bench = Bench(dut)
    await bench.reset()
    dut.management_ready.value = 0
    wire = []
    for number in range(8):
        wire += on_wire(with_fcs(other_frame(number, 1500)))
    wire += on_wire(with_fcs(probe_frame(0, 0)))
    await bench.source.send(wire)
    await ClockCycles(dut.sys_clk, 60)
    shown = await bench.registers(["management_frames", "management_dropped", "frames"])
    assert shown == {"management_frames": 2, "management_dropped": 6, "frames": 1}
    dut.management_ready.value = 1
    await ClockCycles(dut.sys_clk, 1000)
    assert bench.management == [other_frame(0, 1500), other_frame(1, 1500)]
    await bench.source.send(on_wire(with_fcs(other_frame(9, 1500))))
    await ClockCycles(dut.sys_clk, 600)
    assert bench.management[2:] == [other_frame(9, 1500)]


@cocotb.test()
async def sequence_faults_carry_their_flags(dut):
    bench = Bench(dut)
    await bench.reset()
    arrivals = [1, 2, 3, 5, 6, 7, 8, 4, 9, 10, 10, 4, 2000, 11, 976, 975, 12, 976, 2001]
    wire = []
    for sequence in arrivals:
        wire += on_wire(with_fcs(probe_frame(sequence, 0)))
    await bench.source.send(wire)
    model = PortModel()
    await bench.check(model)
    records = await bench.records(0, model.ring.written)
    assert [record.sequence for record in records] == arrivals
    duplicate, reordered, beyond = 16, 32, 64
    assert [int(record.flags) for record in records] == [
        0, 0, 0, 0, 0, 0, 0, reordered, 0, 0, duplicate, duplicate, 0, beyond, beyond, beyond, beyond, beyond, 0
    ]


@cocotb.test()
async def full_ring_loses_records_and_says_how_many(dut):
    bench = Bench(dut)
    await bench.reset()
    model = PortModel()
    wire = []
    for number in range(1030):
        wire += on_wire(with_fcs(probe_frame(number, 0)))
    await bench.source.send(wire)
    await bench.check(model)
    assert (model.ring.written, model.ring.lost, model.counters["frames"]) == (1024, 6, 1030)
    dut.records_read.value = 10
    more = []
    for number in range(1030, 1042):
        more += on_wire(with_fcs(probe_frame(number, 0)))
    await bench.source.send(more)
    await ClockCycles(dut.sys_clk, 60)
    assert (int(dut.records_written.value), int(dut.records_lost.value)) == (1034, 8)
    assert [record.sequence for record in await bench.records(1020, 14)] == [*range(1020, 1024), *range(1030, 1040)]


@cocotb.test()
async def host_that_drains_while_the_train_runs_loses_nothing(dut):
    bench = Bench(dut)
    await bench.reset()
    train = [symbol for number in range(1500) for symbol in on_wire(with_fcs(probe_frame(number, number)))]
    sending = cocotb.start_soon(bench.source.send(train))
    sequences = []
    while len(sequences) < 1500:
        written = int(dut.records_written.value)
        count = min(written - len(sequences), 50)
        sequences += [record.sequence for record in await bench.records(len(sequences), count)]
        dut.records_read.value = len(sequences)
        await ClockCycles(dut.sys_clk, 2)
    await sending
    assert sequences == list(range(1500))
    assert int(dut.records_lost.value) == 0


@cocotb.test()
async def foreign_streams_are_flagged_and_not_measured(dut):
    bench = Bench(dut)
    await bench.reset(stream_id=3)
    wire = []
    for number, stream_id in enumerate([3, 3, 4, 3, 0x0103, 3]):
        wire += on_wire(with_fcs(probe_frame(number, 0, stream_id=stream_id)))
    await bench.source.send(wire)
    model = PortModel(stream_id=3)
    await bench.check(model)
    assert (model.counters["foreign_streams"], model.counters["frames"], model.sequence.lost) == (2, 4, 2)
    assert [int(record.flags) for record in await bench.records(0, 6)] == [0, 0, 256, 0, 256, 0]


@cocotb.test()
async def clear_forgets_everything_at_once(dut):
    bench = Bench(dut)
    await bench.reset()
    for _ in range(3):
        await bench.source.send(on_wire(with_fcs(probe_frame(0, 0))) * 3 + carrier(b"\x55") + idle())
        await ClockCycles(dut.sys_clk, 60)
        shown = await bench.registers(["frames", "duplicated", "preamble_errors", "all_frames"])
        assert shown == {"frames": 3, "duplicated": 2, "preamble_errors": 1, "all_frames": 3}
        await bench.pulse("clear")
        shown = await bench.registers(PortModel().registers())
        assert {name: value for name, value in shown.items() if value != 0} == {}
        assert (int(dut.records_written.value), int(dut.records_lost.value)) == (0, 0)
