# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Frames for the management stack, from the pins to the stream."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles

from liteprobe.sim.drivers.frames.gmii import on_wire, with_fcs
from liteprobe.sim.drivers.frames.gmii import other_frame, probe_frame
from liteprobe.sim.drivers.receive.driver import VARIANTS, ReceiveDriver, run_receive_test
from liteprobe.sim.models.receive.port import PortModel


@pytest.mark.parametrize("clocks", VARIANTS)
def test_management_frames_leave_whole_or_not_at_all(clocks):
    run_receive_test(__file__, clocks)


@cocotb.test()
async def management_frames_are_forwarded_from_between_probe_frames(dut):
    bench = ReceiveDriver(dut)
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
    bench = ReceiveDriver(dut)
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
