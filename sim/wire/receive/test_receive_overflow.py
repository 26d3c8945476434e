# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The receive path with a ``sys`` too slow for the wire: frames are cut, and each is counted."""

import cocotb
from cocotb.triggers import ClockCycles

from liteprobe.sim.drivers.frames.gmii import idle
from liteprobe.sim.drivers.receive.driver import ReceiveDriver, run_receive_test, train


def test_a_sys_too_slow_cuts_frames_and_counts_each():
    run_receive_test(__file__, "slow_sys")


@cocotb.test()
async def each_frame_is_either_whole_or_counted_as_cut(dut):
    bench = ReceiveDriver(dut)
    await bench.reset()
    await bench.source.send(train(200))
    await ClockCycles(dut.sys_clk, 60)
    shown = await bench.registers(["all_frames", "overflows", "frames", "all_octets", "fcs_errors", "length_errors"])
    assert shown["all_frames"] + shown["overflows"] == 200
    assert shown["overflows"] > 20, "a wire at twice the speed of sys must cut frames, or this measures nothing"
    # What is left is whole.
    assert shown["frames"] == shown["all_frames"] and shown["all_octets"] == 60 * shown["all_frames"]
    assert (shown["fcs_errors"], shown["length_errors"]) == (0, 0)


@cocotb.test()
async def frames_far_enough_apart_pass_after_the_flood(dut):
    bench = ReceiveDriver(dut)
    await bench.reset()
    await bench.source.send(train(50))
    await ClockCycles(dut.sys_clk, 60)
    await bench.pulse("clear")
    await bench.source.send(train(1, 1000) + idle(1000)) # A lost end marks the next frame too.
    await bench.pulse("clear")
    bench.stamps.clear()
    for number in range(10):
        await bench.source.send(train(1, number) + idle(400))
    await ClockCycles(dut.sys_clk, 60)
    shown = await bench.registers(["frames", "overflows", "stamp_errors", "expected"])
    assert shown == {"frames": 10, "overflows": 0, "stamp_errors": 0, "expected": 10}
    assert len(bench.stamps) == 10
