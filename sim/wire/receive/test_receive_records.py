# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Records, sequence and registers of the receive path at the pins."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles

from liteprobe.cores.formats import STREAM_ACCUMULATORS
from liteprobe.sim.drivers.frames.gmii import carrier, idle, on_wire, with_fcs
from liteprobe.sim.drivers.frames.gmii import probe_frame
from liteprobe.sim.drivers.receive.driver import VARIANTS, ReceiveDriver, run_receive_test, train
from liteprobe.sim.models.receive.port import PortModel


@pytest.mark.parametrize("clocks", VARIANTS)
def test_records_and_registers_agree_with_the_model(clocks):
    run_receive_test(__file__, clocks)


@cocotb.test()
async def sequence_faults_carry_their_flags(dut):
    bench = ReceiveDriver(dut)
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
    bench = ReceiveDriver(dut)
    await bench.reset()
    model = PortModel()
    wire = []
    for number in range(134):
        wire += on_wire(with_fcs(probe_frame(number, 0)))
    await bench.source.send(wire)
    await bench.check(model)
    assert (model.ring.written, model.ring.lost, model.stream["frames"]) == (128, 6, 134)
    dut.records_read.value = 10
    more = []
    for number in range(134, 146):
        more += on_wire(with_fcs(probe_frame(number, 0)))
    await bench.source.send(more)
    await ClockCycles(dut.sys_clk, 60)
    assert (int(dut.records_written.value), int(dut.records_lost.value)) == (138, 8)
    assert [record.sequence for record in await bench.records(124, 14)] == [*range(124, 128), *range(134, 144)]


@cocotb.test()
async def host_that_drains_while_the_train_runs_loses_nothing(dut):
    bench = ReceiveDriver(dut)
    await bench.reset()
    sending = cocotb.start_soon(bench.source.send(train(200)))  # More than the ring holds.
    sequences = []
    while len(sequences) < 200:
        written = int(dut.records_written.value)
        count = min(written - len(sequences), 50)
        sequences += [record.sequence for record in await bench.records(len(sequences), count)]
        dut.records_read.value = len(sequences)
        await ClockCycles(dut.sys_clk, 2)
    await sending
    assert sequences == list(range(200))
    assert int(dut.records_lost.value) == 0


@cocotb.test()
async def foreign_streams_are_flagged_and_not_measured(dut):
    bench = ReceiveDriver(dut)
    await bench.reset(stream_id=3)
    wire = []
    for number, stream_id in enumerate([3, 3, 4, 3, 0x0103, 3]):
        wire += on_wire(with_fcs(probe_frame(number, 0, stream_id=stream_id)))
    await bench.source.send(wire)
    model = PortModel(stream_id=3)
    await bench.check(model)
    assert (model.meter.streams[0].counts.frames, model.stream["frames"], model.stream["lost"]) == (2, 4, 2)
    assert [int(record.flags) for record in await bench.records(0, 6)] == [0, 0, 256, 0, 256, 0]


@cocotb.test()
async def clear_forgets_everything_at_once(dut):
    bench = ReceiveDriver(dut)
    await bench.reset()
    for _ in range(3):
        await bench.source.send(on_wire(with_fcs(probe_frame(0, 0))) * 3 + carrier(b"\x55") + idle())
        await ClockCycles(dut.sys_clk, 60)
        shown = await bench.registers(["frames", "duplicated", "preamble_errors", "all_frames"])
        assert shown == {"frames": 3, "duplicated": 2, "preamble_errors": 1, "all_frames": 3}
        await bench.pulse("clear")
        shown = await bench.registers([*PortModel().counters, *STREAM_ACCUMULATORS])
        assert {name: value for name, value in shown.items() if value != 0} == {}
        assert (int(dut.records_written.value), int(dut.records_lost.value)) == (0, 0)
