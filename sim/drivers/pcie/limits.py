# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Measures how much a capture over PCIe carries: frames of two lines, faster and faster, every octet held against what was sent.

Run as a cocotb test by `measure`.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles
from cocotb.utils import get_sim_time

from liteprobe.sim.drivers.tools.compiled import REPOSITORY
from liteprobe.sim.drivers.pcie.probes import LINES, TOP, PcieCapture, writer
from liteprobe.sim.drivers.pcie.capturing import CHANNELS, GAP_AND_PREAMBLE, Capturing
from liteprobe.sim.drivers.tools.wire import run_wire_test

LENGTHS = {60: 400, 252: 160, 1516: 40} # Octets, and frames of each line.
PACES = (1.0, 1.5, 2.0) # Of two gigabit lines.


@dataclass(frozen=True)
class Pace:
    """Counts frames that came at a pace. ``offered``: frame octets, Mb/s."""

    length: int
    pace: float
    offered: float
    sent: int
    told: int # In gaps.
    counted: int # By the probe.
    tlp_beats: float # Of all cycles, in which the probe sent a word of 64 bits; up to the last block.


@cocotb.test()
@cocotb.parametrize(length=list(LENGTHS), pace=PACES)
async def limit(dut: Any, length: int, pace: float) -> None:
    """Measure one pace, and note it."""
    count, host = LENGTHS[length], Capturing(dut)
    await host.begin(range(CHANNELS))
    beats, start = host.endpoint.busy_beats, get_sim_time("ns")
    spacing = max(1, round((length + GAP_AND_PREAMBLE) / pace))
    await host.lines(length, count, spacing)
    while not await host.are_sent(count):
        await host.collect()
    cycles = (get_sim_time("ns") - start) / 8
    share = (host.endpoint.busy_beats - beats) / cycles
    await host.end()
    told = sum(host.check(length, count))
    counted = sum([await host.dropped(channel) for channel in range(CHANNELS)])
    found = Pace(length, pace, LINES * length * 1000 / spacing, LINES * count, told, counted, share)
    with Path(os.environ["PCIE_LIMITS"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(found)) + "\n")
    await ClockCycles(dut.clk_sys, 1)


def measure() -> list[Pace]:
    """Return what became of frames of all lengths at all paces."""
    folder = REPOSITORY / "build" / "wire" / "pcie_capture"
    folder.mkdir(parents=True, exist_ok=True)
    limits, map_file = folder / "limits.jsonl", folder / "csr.json"
    limits.unlink(missing_ok=True)
    values = {"PCIE_MAP": str(map_file), "PCIE_LIMITS": str(limits)}
    run_wire_test(__file__, TOP, writer(PcieCapture, map_file), "pcie_limits", values)
    return [Pace(**json.loads(line)) for line in limits.read_text(encoding="utf-8").splitlines()]
