# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends frames of any lengths at any times at 10 Gb/s, as a source of descriptors would, and compares their starts."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from migen import *

from litex.gen import *

from liteprobe.cores.assign import copied
from liteprobe.cores.xgmii.train import ColumnPacer, ProbeBuilder
from liteprobe.cores.xgmii.transmit import XgmiiTransmitMAC
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench

# Schedule Bench -----------------------------------------------------------------------------------

class XgmiiScheduleBench(PinnedBench):
    """Builder, pacer and MAC, whose descriptors come by pins."""

    def __init__(self):
        PinnedBench.__init__(self, "timebase")
        header = Memory(64, 16, init=[0]*16, name="header")
        self.specials += header
        self.builder = builder = ProbeBuilder(header)
        self.pacer   = pacer   = ColumnPacer()
        self.mac     = mac     = XgmiiTransmitMAC()
        self.comb += [
            builder.source.connect(pacer.sink),
            pacer.source.connect(mac.sink),
            builder.starts.eq(mac.starts),
            *copied(pacer, mac, "starts", "starts_in_lane_4"),
            pacer.in_frame.eq(builder.in_frame),
            pacer.due.eq(builder.descriptors.due),
            pacer.is_there.eq(builder.descriptors.valid),
        ]
        self.add_inputs(builder.descriptors, ["valid", "due", "length", "sequence", "header_words"], "descriptor_")
        self.add_output("descriptor_ready", builder.descriptors.ready)
        self.add_inputs(pacer, ["runs"])
        self.add_outputs(pacer, ["sent_count", "late_count"])
        self.add_outputs(mac, ["data", "control"], "tx_")


BENCH = CompiledBench(XgmiiScheduleBench, Path(__file__).with_name("schedule.cpp"))

# Runs ---------------------------------------------------------------------------------------------

FRAME = np.dtype([("due", "<u8"), ("length", "<u4")])


@dataclass(frozen=True)
class ScheduleRun:
    """Holds where frames started, in octets from the first, how many, and how many late by the pacer's count."""

    starts: NDArray[np.int64]
    sent: int
    late: int


def run(frames: NDArray[np.void]) -> ScheduleRun:
    """Send an array of FRAME, whose times (octets from the start) rise."""
    done = BENCH.run({"frames": frames.tobytes()})
    starts = done.array("starts", "<i8")
    return ScheduleRun(starts - starts[0], *done.numbers)


def poisson(count: int, load: float, seed: int) -> NDArray[np.void]:
    """Return frames of 60 to 1514 octets whose gaps beyond their slots are exponential, at a load of the line."""
    chance = np.random.default_rng(seed)
    lengths = chance.integers(60, 1515, count)
    slots = lengths + 24
    gaps = chance.exponential(slots.mean() * (1 / load - 1), count)
    dues = np.concatenate([[0], np.cumsum(slots + gaps)[:-1]])
    return np.array(list(zip(dues.astype(np.int64).tolist(), lengths.tolist())), FRAME)


def off_schedule(frames: NDArray[np.void], done: ScheduleRun) -> int:
    """Return how many frames started in another column than that of their time."""
    return int((done.starts != frames["due"].astype(np.int64) // 4 * 4).sum()) + abs(done.sent - len(frames)) + done.late
