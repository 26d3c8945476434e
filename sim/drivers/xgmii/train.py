# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs programs of trains on a port of 10 Gb/s, and holds each start, octet and stamp against arithmetic."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from migen import *

from litex.gen import *

from liteprobe.cores.formats import Fill
from liteprobe.cores.timebase.clock import TimebaseClock
from liteprobe.cores.xgmii.train import XgmiiTrainPort
from liteprobe.cores.xgmii.transmit import XgmiiTransmitMAC
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.models import xgmii
from liteprobe.sim.models.traffic.trains import ProbeFrame, starts
from liteprobe.sim.models.xgmii import WORD, Line

INCREMENT = round(6.4 * 2**40) # ns a cycle, 8.40 fixed point.

# Train Bench --------------------------------------------------------------------------------------

class XgmiiTrainBench(PinnedBench):
    """A clock, a port of trains and its MAC, on pins of their names."""

    def __init__(self):
        PinnedBench.__init__(self, "timebase")
        self.clock = clock = TimebaseClock()
        self.port  = port  = XgmiiTrainPort()
        self.mac   = mac   = XgmiiTransmitMAC()
        write = port.header.get_port(write_capable=True, clock_domain="timebase")
        self.specials += write
        self.comb += [
            port.source.connect(mac.sink),
            port.starts.eq(mac.starts),
            port.starts_in_lane_4.eq(mac.starts_in_lane_4),
            port.now.eq(clock.now),
            port.fraction.eq(clock.fraction),
        ]
        self.add_inputs(clock, ["increment", "set_time", "set"])
        self.add_outputs(clock, ["now", "fraction"])
        self.add_inputs(port.dues, ["count", "repeats", "interval", "gap", "length", "header_words", "fill"])
        self.add_input("fraction_of_interval", port.dues.fraction)
        self.add_inputs(port, ["start", "stop"])
        self.add_outputs(port, ["is_running"])
        self.add_outputs(port.pacer, ["sent_count", "late_count"])
        self.add_inputs(write, ["adr", "dat_w", "we"], "header_")
        self.add_outputs(mac, ["data", "control", "sfd", "sfd_high"], "tx_")


BENCH = CompiledBench(XgmiiTrainBench, Path(__file__).with_name("train.cpp"))

# Runs ---------------------------------------------------------------------------------------------

SFD = np.dtype([("cycle", "<u8"), ("now", "<u8"), ("fraction", "<u4"), ("is_high", "<u4")])


#: 16 ps, in 2^-32 ns: of ten cycles that count as 6.4 ns each at 100 ppm, and of 2^-8 ns.
TOLERANCE = 2**26


@dataclass(frozen=True)
class Program:
    """A program of trains; times in octets of the line (0.8 ns), ``stop_after`` and ``wait`` in cycles."""

    count: int
    repeats: int = 1
    interval: int = 0
    fraction: int = 0
    gap: int = 0
    length: int = 60
    header_words: int = 12
    fill: Fill = Fill.ZERO
    stop_after: int = 0
    wait: int = 0

    @property
    def dues(self) -> list[int]:
        """Octet of each start from the first."""
        whole = self.interval + Fraction(self.fraction, 2**32) or Fraction(self.length + 24)
        return starts(self.count, self.repeats, whole, self.gap)


@dataclass(frozen=True)
class TrainRun:
    """Holds the places of starts on the line, frames, times of the SFDs in 2^-32 ns by the clock, counts of each program."""

    starts: list[int]
    frames: list[bytes]
    times: list[int]
    counts: list[tuple[int, int]]


def run(programs: Sequence[Program], frame: ProbeFrame, time_ns: int = 10**18, increment: int = INCREMENT) -> TrainRun:
    """Run programs, one after the other, with the header of a frame."""
    files = {
        "programs": np.array([astuple(one) for one in programs], "<u4").tobytes(),
        "header": frame.header().ljust(128, b"\xee"),
    }
    done = BENCH.run(files, {"increment": increment, "time": time_ns})
    places, frames = xgmii.frames_on(Line.read(done.array("sent", WORD)))
    sfds = done.array("sfds", SFD)
    times = [
        (int(one["now"]) << 32) + int(one["fraction"]) + (int(3.2 * 2**32) if one["is_high"] else 0) for one in sfds
    ]
    numbers = iter(done.numbers)
    return TrainRun(places, frames, times, list(zip(numbers, numbers, strict=True)))


def wrong(programs: Sequence[Program], frame: ProbeFrame, done: TrainRun) -> list[str]:
    """Return what left otherwise than the programs say: starts by their column, octets, sequence, FCS, the time of the SFD."""
    found, first = [], 0
    for number, program in enumerate(programs):
        count, late = done.counts[number]
        places = done.starts[first : first + count]
        dues = [due // 4 * 4 for due in program.dues[:count]]
        off = [n for n, (place, due) in enumerate(zip(places, dues)) if place - places[0] != due - dues[0]]
        found += [f"program {number}, frame {n} starts at {places[n] - places[0]}, not {dues[n]}" for n in off]
        if late:
            found.append(f"program {number}: {late} late")
        if not program.stop_after and count != program.count * program.repeats:
            found.append(f"program {number}: {count} frames, not {program.count * program.repeats}")
        place = frame.payload_offset + 10
        for n in range(count):
            octets, time = done.frames[first + n], done.times[first + n]
            stamp = int.from_bytes(octets[place : place + 8], "big")
            if not -TOLERANCE <= time - (stamp << 32) < 2**32 + TOLERANCE:
                found.append(f"program {number}, frame {n}: stamp {stamp}, SFD at {time / 2**32}")
            if octets != xgmii.with_fcs(frame.octets(n, stamp)):
                found.append(f"program {number}, frame {n}: {octets.hex()}")
        first += count
    if len(done.frames) != first:
        found.append(f"{len(done.frames)} frames, {first} counted")
    return found
