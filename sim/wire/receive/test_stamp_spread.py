# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""RX stamps against the moment of the SFD in continuous time, with every clock domain 100 ppm from the others."""

import json
import os
from pathlib import Path

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from cocotb.utils import get_sim_time

from liteprobe.sim.drivers.frames.gmii import GmiiSource, on_wire, with_fcs
from liteprobe.sim.drivers.frames.gmii import probe_frame
from liteprobe.sim.drivers.receive.driver import INPUTS, write_verilog
from liteprobe.sim.drivers.tools.wire import REPOSITORY, run_wire_test

TICK_FS  = 8_000_000
TICK_NS  = 8
PPM_FS   = TICK_FS // 1_000_000
FRAMES   = 300 # 25,000 ticks: at 100 ppm, two clocks slide past each other by two ticks and a half.
PERIODS  = {"fast_wire": (20_002_000, TICK_FS, TICK_FS - 100*PPM_FS), "slow_wire": (19_998_000, TICK_FS, TICK_FS + 100*PPM_FS)}
RESULTS  = REPOSITORY / "build" / "wire" / "stamp_spread"

@pytest.mark.parametrize("clocks", list(PERIODS))
def test_rx_stamps_spread_by_one_tick_at_most(clocks):
    RESULTS.mkdir(parents=True, exist_ok=True)
    result = RESULTS / f"{clocks}.json"
    result.unlink(missing_ok=True)
    run_wire_test(
        __file__,
        "receive_bench",
        write_verilog,
        f"stamp_spread_{clocks}",
        {"LITEPROBE_CLOCKS": clocks, "LITEPROBE_RESULT": str(result)},
    )
    found = json.loads(result.read_text())
    assert found["frames"] == FRAMES
    assert found["spread_ns"] <= TICK_NS
    assert found["spread_ns"] > TICK_NS/2, "the clocks must slide past each other, or this measures nothing"

@cocotb.test()
async def rx_stamps_are_held_against_continuous_time(dut):
    sys_fs, timebase_fs, wire_fs = PERIODS[os.environ["LITEPROBE_CLOCKS"]]
    for name in [*INPUTS, "records_enable"]:
        getattr(dut, name).value = 0
    dut.management_ready.value = 1
    for pin, period_fs in [(dut.sys_clk, sys_fs), (dut.timebase_clk, timebase_fs), (dut.eth_rx_clk, wire_fs)]:
        Clock(pin, period_fs, unit="fs").start(start_high=False)
    source = GmiiSource(dut.eth_rx_clk, dut.rx_dv, dut.rx_data, dut.rx_er, lambda: get_sim_time("fs"))
    await ClockCycles(dut.sys_clk, 10)
    for name in ["sys_rst", "timebase_rst", "eth_rx_rst"]:
        getattr(dut, name).value = 0
    await ClockCycles(dut.sys_clk, 10)
    stamps = []

    async def watch():
        while True:
            await RisingEdge(dut.paired)
            await ReadOnly()
            stamps.append(int(dut.stamp.value))

    cocotb.start_soon(watch())
    for sequence in range(FRAMES):
        await source.send(on_wire(with_fcs(probe_frame(sequence, tx_stamp=0))))
    await ClockCycles(dut.sys_clk, 100)
    slot = len(source.symbols)//FRAMES # Octets may look like an SFD: only those in their place are one.
    sfds = [source.sfd_now[slot*number + 7] for number in range(FRAMES)]
    errors_ns = [stamp - TICK_NS*sfd/timebase_fs for stamp, sfd in zip(stamps, sfds, strict=True)]
    result = {"frames": len(errors_ns), "spread_ns": max(errors_ns) - min(errors_ns)}
    Path(os.environ["LITEPROBE_RESULT"]).write_text(json.dumps(result))
