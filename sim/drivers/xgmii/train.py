# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs programs of trains on a port of 10 Gb/s, and holds each start, octet and stamp against arithmetic."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from migen import *

from litex.gen import *

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import FAULTS, Fill
from liteprobe.cores.timebase.clock import TimebaseClock
from liteprobe.cores.xgmii.mac import XgmiiMAC
from liteprobe.cores.xgmii.record import XgmiiRecordPath, record_layout
from liteprobe.cores.xgmii.train import XgmiiTrainPort
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.drivers.xgmii.mac import LINK, RECEIVED, SENT
from liteprobe.sim.models import xgmii
from liteprobe.sim.models.traffic.trains import ProbeFrame, starts
from liteprobe.sim.models.xgmii import WORD, Line

INCREMENT = round(6.4 * 2**40) # ns a cycle, 8.40 fixed point.

# Train Bench --------------------------------------------------------------------------------------

class XgmiiTrainBench(PinnedBench):
    """A clock and a port of 10 Gb/s that sends trains and keeps records, on pins of their names."""

    def __init__(self):
        PinnedBench.__init__(self, "timebase", "eth_rx")
        self.clock = clock = TimebaseClock()
        self.port  = port  = XgmiiTrainPort()
        self.mac   = mac   = XgmiiMAC()
        self.path  = path  = XgmiiRecordPath()
        write = port.header.get_port(write_capable=True, clock_domain="timebase")
        self.specials += write
        self.comb += [
            port.source.connect(mac.transmit.sink),
            *copied(port, mac.transmit, "starts", "starts_in_lane_4"),
            *copied(port, clock, "now", "fraction"),
            mac.receive.source.connect(path.sink),
            *copied(path, mac.receive, "sfd", "sfd_high"),
            *copied(path, clock, "now", "fraction"),
        ]
        self.add_inputs(clock, ["increment", "set_time", "set"])
        self.add_outputs(clock, ["now", "fraction"])
        self.add_inputs(port.dues, ["count", "repeats", "interval", "gap", "length", "header_words", "fill"])
        self.add_input("fraction_of_interval", port.dues.fraction)
        self.add_inputs(port, ["start", "stop", "timed", "start_time"])
        self.add_outputs(port, ["is_running"])
        self.add_outputs(port.pacer, ["sent_count", "late_count"])
        self.add_inputs(write, ["adr", "dat_w", "we"], "header_")
        self.add_outputs(mac.transmit, ["data", "control", "sfd", "sfd_high"], "tx_")
        self.add_inputs(mac.receive, ["data", "control"], "rx_")
        self.add_outputs(path.source, ["valid", *(name for name, _ in record_layout())], "record_")
        self.comb += path.source.ready.eq(1)
        self.add_outputs(path, ["lost_count", "dropped_count"])
        for part, names in [(mac.transmit, SENT), (mac.receive, RECEIVED), (mac.link, LINK)]:
            self.add_outputs(part, names, "mac_")


BENCH = CompiledBench(XgmiiTrainBench, Path(__file__).with_name("train.cpp"))

# Runs ---------------------------------------------------------------------------------------------

RECORD = np.dtype(
    [("sent", "<u8"), ("arrival", "<u8"), ("sequence", "<u4"), ("stream", "<u2"), ("length", "<u2"), ("flags", "<u2"),
     ("is_probe", "u1")])
SFD = np.dtype([("cycle", "<u8"), ("now", "<u8"), ("fraction", "<u4"), ("is_high", "<u4")])


#: 16 ps, in 2^-32 ns: of ten cycles that count as 6.4 ns each at 100 ppm, and of 2^-8 ns.
TOLERANCE = 2**26
COLUMN = int(3.2 * 2**32)


@dataclass(frozen=True)
class Program:
    """A program of trains; times in octets of the line (0.8 ns), ``stop_after`` and ``wait`` in cycles, ``ahead`` in ns."""

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
    ahead: int = 0

    @property
    def dues(self) -> list[int]:
        """Octet of each start from the first."""
        whole = self.interval + Fraction(self.fraction, 2**32) or Fraction(self.length + 24)
        return starts(self.count, self.repeats, whole, self.gap)


@dataclass(frozen=True)
class TrainRun:
    """Holds the places of starts on the line, frames, times of the SFDs by the clock in 2^-32 ns, counts of each program; what
    came back: times of SFDs at the receiver's pins, records; when programs were asked to start.
    """

    starts: list[int]
    frames: list[bytes]
    times: list[int]
    counts: list[tuple[int, int]]
    arrivals: list[int]
    records: NDArray[np.void]
    lost: int
    asked: list[int]


@dataclass(frozen=True)
class Loop:
    """A line that leads back: its delay in cycles, the period of the receiver's clock; the time at the start, and its rate."""

    delay: int = 1
    rx_fs: int = 6_400_000
    time: int = 10**18
    increment: int = INCREMENT


def run(programs: Sequence[Program], frame: ProbeFrame, loop: Loop = Loop(), before: Line | None = None) -> TrainRun:
    """Run programs, one after the other, with the header of a frame; a line may come to the receiver before it all.

    That line's faults are answered: a program must ``wait`` until it is over to have its frames sent.
    """
    words = before.words() if before else np.empty(0, WORD)
    files = {
        "before": words.tobytes(),
        "programs": np.array([astuple(one) for one in programs], "<u4").tobytes(),
        "header": frame.header().ljust(128, b"\xee"),
    }
    done = BENCH.run(files, vars(loop))
    places, frames = xgmii.frames_on(Line.read(done.array("sent", WORD)[len(words) :]))
    *numbers, lost = done.numbers
    counts = list(zip(numbers[::2], numbers[1::2], strict=True))
    times, arrivals = (
        [(int(one["now"]) << 32) + int(one["fraction"]) + (COLUMN if one["is_high"] else 0) for one in done.array(name, SFD)]
        for name in ("sfds", "came")
    )
    asked = done.array("asked", "<u8").tolist()
    return TrainRun(places, frames, times, counts, arrivals, done.array("records", RECORD), lost, asked)


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


def wrong_records(frame: ProbeFrame, done: TrainRun, early_ns: float) -> list[str]:
    """Return what the records have otherwise than what came to the pins; arrivals may be so many ns early."""
    found = [f"{done.lost} records lost"] * bool(done.lost)
    if not len(done.records) == len(done.frames) == len(done.arrivals):
        found.append(f"{len(done.records)} records of {len(done.frames)} frames, {len(done.arrivals)} of which arrived")
    most = int((1 + early_ns) * 2**32) + TOLERANCE
    for n, (record, octets, time) in enumerate(zip(done.records, done.frames, done.arrivals)):
        place = frame.payload_offset + 6
        fields = (int.from_bytes(octets[place : place + 4], "big"), int.from_bytes(octets[place + 4 : place + 12], "big"))
        if fields != (record["sequence"], record["sent"]) or record["stream"] != frame.stream_id or not record["is_probe"]:
            found.append(f"record {n} is {record}, the frame has {fields}")
        if record["length"] != len(octets) - 4 or record["flags"] & int(FAULTS):
            found.append(f"record {n} is {record} of {len(octets)} octets")
        if not -TOLERANCE <= time - (int(record["arrival"]) << 32) < most:
            found.append(f"record {n} arrived at {record['arrival']}, not {time / 2**32}")
    return found
