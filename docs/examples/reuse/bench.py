# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The device in simulation: cocotb drives its pins with the patterns, at their ticks, and holds what leaves against them."""

import os
import shutil
import sys
from itertools import count
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

sys.path.insert(0, str(Path(__file__).resolve().parent))

from patterns import PATTERNS, check

from liteprobe.sim.drivers.frames.gmii import with_fcs
from liteprobe.sim.drivers.tools.wire import run_wire_test
from liteprobe.sim.models.traffic import streams as traffic

HERE = Path(__file__).resolve().parent
PREAMBLE = bytes([0x55] * 7 + [0xD5])
TICK_NS = 8
SETTLE = 5000  # Ticks, for what waits in the device.


def symbols() -> list[int | None]:
    """Return what stands on the pins in each tick, None between frames."""
    line: list[int | None] = []
    frames = traffic.schedule(PATTERNS, 1000)
    contents = traffic.octets(PATTERNS, frames, lambda start: TICK_NS * start)
    for start, content in zip(frames["start"].tolist(), contents, strict=True):
        line += [None] * (start - len(line))
        line += PREAMBLE + with_fcs(content)
    return line


async def listen(clock: Any, valid: Any, data: Any, seen: list[tuple[int, bytes]]) -> None:
    """Keep tick of the SFD and octets of each frame on some pins."""
    octets = bytearray()
    for tick in count():
        await RisingEdge(clock)
        await ReadOnly()
        if valid.value:
            octets.append(int(data.value))
        elif octets:
            seen.append((tick - len(octets) + len(PREAMBLE), bytes(octets)))
            octets.clear()


@cocotb.test()
async def every_frame_comes_out_as_it_was_when_it_is_due(dut: Any) -> None:
    """Send all patterns, and check what comes of each stream as `on_probe` does."""
    there, here = list[tuple[int, bytes]](), list[tuple[int, bytes]]()
    cocotb.start_soon(Clock(dut.clk, TICK_NS, unit="ns").start())
    dut.rst.value, dut.rx_dv.value, dut.rxd.value = 1, 0, 0
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    cocotb.start_soon(listen(dut.clk, dut.rx_dv, dut.rxd, there))
    cocotb.start_soon(listen(dut.clk, dut.tx_en, dut.txd, here))
    for symbol in [None, *symbols(), *[None] * SETTLE]:
        dut.rx_dv.value, dut.rxd.value = symbol is not None, symbol or 0
        await RisingEdge(dut.clk)
    assert [octets for _, octets in here] == [octets for _, octets in there]
    frames = traffic.schedule(PATTERNS, 1000)
    for number, stream in enumerate(PATTERNS):
        own = np.flatnonzero(frames["stream"] == number)
        delays_ns = [TICK_NS * (here[place][0] - there[place][0]) for place in own]
        check(stream, len(own), len(delays_ns), stream.count - len(delays_ns), delays_ns)


def run() -> None:
    """Compile the device, and run the test above in cocotb."""
    run_wire_test(__file__, "hop", lambda path: shutil.copy(HERE / "hop.v", path), "example_hop")


if __name__ == "__main__":
    os.chdir(HERE)
    run()
