# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Garbage at line rate with the slowest ``sys``, while snapshots are taken over and over: every event is counted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import cocotb
from cocotb.triggers import ClockCycles

from liteprobe.sim.drivers.frames.gmii import carrier, idle, on_wire, with_fcs
from liteprobe.sim.drivers.frames.gmii import probe_frame
from liteprobe.sim.drivers.receive.driver import ReceiveDriver, run_receive_test
from liteprobe.sim.drivers.tools.wire import is_full
from liteprobe.sim.models.receive.port import PortModel, Symbol

SHORTEST = carrier(b"\xd5" + bytes(6)) + idle(1)  # As close as the detector takes SFDs.
REFUSED = carrier(b"\x00") + idle(1)
MANY = 3000 if is_full() else 999


def test_no_event_is_lost_while_snapshots_are_taken() -> None:
    run_receive_test(__file__, "slowest_sys")


@asynccontextmanager
async def snapshots(bench: ReceiveDriver) -> AsyncIterator[None]:
    """Latch again and again, before the last snapshot is done and after, until the body is through."""

    async def latch() -> None:
        while True:
            await bench.pulse("latch")
            await ClockCycles(bench.dut.sys_clk, bench.random.randrange(1, 120))

    task = cocotb.start_soon(latch())
    yield
    task.cancel()
    bench.dut.latch.value = 0


def closest(number: int) -> list[Symbol]:
    """Return a good probe frame without preamble, 32 cycles of ``sys`` behind what was before."""
    return idle(18) + on_wire(with_fcs(probe_frame(number, number)), preamble=0, gap=1)


@cocotb.test()
async def runts_of_six_octets_as_close_as_can_be_are_all_counted(dut):
    bench = ReceiveDriver(dut)
    await bench.reset()
    async with snapshots(bench):
        await bench.source.send(SHORTEST * MANY)
    model = PortModel()
    await bench.check(model)
    names = ("all_frames", "runts", "fcs_errors", "preamble_errors")
    assert [model.counters[name] for name in names] == [MANY, MANY, MANY, 0]


@cocotb.test()
async def runts_of_one_octet_as_close_as_can_be_are_all_counted(dut):
    bench = ReceiveDriver(dut)
    await bench.reset()
    wire = (carrier(b"\xd5\x00") + idle(1)) * MANY
    async with snapshots(bench):
        await bench.source.send(wire)
    model = PortModel()
    await bench.check(model)
    # Three octets apart: the detector takes every third one, and refuses the others.
    assert [model.counters[name] for name in ("runts", "preamble_errors")] == [MANY // 3, 2 * MANY // 3]


@cocotb.test()
async def carriers_of_one_octet_in_every_other_octet_time_are_all_counted(dut):
    bench = ReceiveDriver(dut)
    await bench.reset()
    async with snapshots(bench):
        await bench.source.send(REFUSED * (4 * MANY))
    model = PortModel()
    await bench.check(model)
    assert (model.counters["all_frames"], model.counters["preamble_errors"]) == (0, 4 * MANY)


@cocotb.test()
async def garbage_between_the_closest_good_frames_is_all_counted(dut):
    bench = ReceiveDriver(dut)
    await bench.reset()
    wire: list[Symbol] = []
    for number in range(MANY // 6):
        wire += closest(number)
        if bench.random.random() < 0.5:
            wire += bench.random.choice([SHORTEST, REFUSED]) * bench.random.randrange(1, 25)
    async with snapshots(bench):
        await bench.source.send(wire)
    model = PortModel()
    await bench.check(model)
    assert model.stream["frames"] == MANY // 6
    assert model.counters["runts"] > MANY // 3 < model.counters["preamble_errors"]
