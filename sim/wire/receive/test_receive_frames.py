# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The receive path at the pins, with asynchronous clocks: good, bad and broken frames, against the model of a port."""

import cocotb
import pytest

from liteprobe.sim.drivers.frames.gmii import carrier, idle, on_wire, with_fcs
from liteprobe.sim.drivers.frames.gmii import probe_frame
from liteprobe.sim.drivers.receive.driver import VARIANTS, ReceiveDriver, run_receive_test, train
from liteprobe.sim.models.receive.port import PortModel


@pytest.mark.parametrize("clocks", VARIANTS)
def test_frames_of_all_kinds_agree_with_the_model(clocks):
    run_receive_test(__file__, clocks)


@cocotb.test()
async def probe_frames_of_every_layout_are_recorded(dut):
    bench = ReceiveDriver(dut)
    await bench.reset(stream_id=7)
    sequence = 0
    for tags in (0, 1, 2):
        for version in (4, 6):
            for extra in range(9):
                length = len(probe_frame(0, 0, 60, 1, tags, version)) + extra
                frame = probe_frame(sequence, 1000 + sequence, length, 7, tags, version)
                await bench.source.send(on_wire(with_fcs(frame)))
                sequence += 1
    model = PortModel(stream_id=7)
    await bench.check(model)
    assert model.stream["expected"] == model.stream["frames"] == sequence == 54
    records = await bench.check_records(model)
    assert [record.sequence for record in records] == list(range(54))


@cocotb.test()
async def train_that_the_ring_holds_needs_no_host(dut):
    bench = ReceiveDriver(dut)
    await bench.reset()
    wire = train(128)
    assert len(wire) == 128 * 84
    await bench.source.send(wire)
    model = PortModel()
    await bench.check(model)
    assert (model.ring.written, model.ring.lost) == (128, 0)
    await bench.check_records(model)


@cocotb.test()
async def bad_frames_are_told_apart_and_measured_by_nobody(dut):
    bench = ReceiveDriver(dut)
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
    assert model.stream["frames"] == 3
    counters = {name: model.counters[name] for name in ("fcs_errors", "runts", "giants", "symbol_errors")}
    assert counters == {"fcs_errors": 3, "runts": 2, "giants": 1, "symbol_errors": 2}
    records = await bench.check_records(model)
    assert [int(record.flags) for record in records] == [0, 1, 1, 128, 128, 0, 8, 0]  # The runts end in the stamp.


@cocotb.test()
async def jabber_is_one_giant_and_its_length_saturates(dut):
    bench = ReceiveDriver(dut)
    await bench.reset()
    await bench.source.send(on_wire(with_fcs(probe_frame(0, 0, 2000) + bytes(70_000))))
    await bench.source.send(on_wire(with_fcs(probe_frame(0, 0))))
    model = PortModel()
    await bench.check(model)
    assert (model.counters["giants"], model.counters["all_octets"]) == (1, 65535 + 60)


@cocotb.test()
async def broken_lengths_are_recorded_and_not_measured(dut):
    bench = ReceiveDriver(dut)
    await bench.reset()
    base = probe_frame(0, 9, 64)
    wire = on_wire(with_fcs(base))
    # IP's own length must fit into the frame; UDP's is not asked.
    for offset, value in [(16, 51), (16, 49), (16, 0), (16, 0xFFFF), (38, 29), (38, 31), (38, 0), (38, 8)]:
        wire += on_wire(with_fcs(base[:offset] + value.to_bytes(2) + base[offset + 2 :]))
    six = probe_frame(1, 9, 90, version=6)
    for offset, value in [(18, 0), (18, 35), (58, 37), (58, 0)]:
        wire += on_wire(with_fcs(six[:offset] + value.to_bytes(2) + six[offset + 2 :]))
    wire += on_wire(with_fcs(base + b"\0"))  # Padding.
    for end in range(60, 80):  # The frame ends in the probe header.
        wire += on_wire(with_fcs(probe_frame(1, 0x1122334455667788, 90, version=6)[:end]))
    await bench.source.send(wire)
    model = PortModel()
    await bench.check(model)
    assert model.stream["frames"] == 1 + 5 + 3 + 1
    assert model.counters["length_errors"] == 3 + 6
    await bench.check_records(model)


@cocotb.test()
async def frames_that_only_look_like_probes_are_not_measured(dut):
    bench = ReceiveDriver(dut)
    await bench.reset()
    base = probe_frame(0, 9, 80)
    wire = []
    for offset, value in [
        (12, b"\x08\x06"), (14, b"\x46"), (14, b"\x65"), (20, b"\x20\x00"), (20, b"\x00\x01"), (23, b"\x06"),
        (42, b"\x4d"), (43, b"\x51"), (44, b"\x53"), (45, b"\x4e"),
    ]:
        wire += on_wire(with_fcs(base[:offset] + value + base[offset + len(value) :]))
    wire += on_wire(with_fcs(base[:20] + b"\x40\x00" + base[22:]))  # Don't fragment: is a probe.
    # So are the first fragment of a packet (20 00 above), and a frame with three tags.
    three_tags = probe_frame(0, 9, 80, tags=2)
    wire += on_wire(with_fcs(three_tags[:12] + b"\x88\xa8\x00\x01" + three_tags[12:]))
    await bench.source.send(wire)
    model = PortModel()
    await bench.check(model)
    assert (model.stream["frames"], model.counters["all_frames"]) == (3, 12)


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
async def frames_and_stamps_pair_whatever_garbage_comes_between(dut):
    bench = ReceiveDriver(dut)
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
    # A few good frames start or end too near to garbage, and are refused or not classified.
    assert model.stream["frames"] + model.counters["preamble_errors"] + model.counters["unclassified"] >= 150
    assert model.stream["expected"] == model.stream["frames"] + model.stream["lost"]


@cocotb.test()
async def storm_of_shortest_carriers_leaves_no_mark_on_the_next_train(dut):
    bench = ReceiveDriver(dut)
    await bench.reset()
    wire = (carrier(b"\xd5" + bytes(6)) + idle(1)) * 2000
    for number in range(20):
        wire += on_wire(with_fcs(probe_frame(number, number)))
    await bench.source.send(wire)
    model = PortModel()
    await bench.check(model)
    assert (model.counters["runts"], model.stream["frames"]) == (2000, 20)
