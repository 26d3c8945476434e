# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes frames of two ports and steps of the clock through the rate meter of the gateware, and compares all intervals."""

import random
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from migen import *

from litex.gen import *

from liteprobe.cores.measure.rate import RateMeter
from liteprobe.cores.timebase.clock import TimebaseClock
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench

PORTS = 2

# Rate Bench ---------------------------------------------------------------------------------------

class RateBench(PinnedBench):
    """A clock that is set and adjusted, and a rate meter, on pins of their names."""

    def __init__(self):
        PinnedBench.__init__(self, "sys", "timebase")
        self.clock = clock = TimebaseClock()
        self.meter = meter = RateMeter(clock, PORTS, with_csr=False)
        self.add_inputs(clock, ["set_time", "set", "adjust", "adjust_apply", "increment"])
        self.add_inputs(meter, ["interval", "restart"])
        self.add_outputs(clock, ["now"])
        self.add_outputs(meter, ["number", "is_whole"])
        self.add_output("tick", meter.ticker.tick)
        for n in range(PORTS):
            self.add_input(f"valid{n}", meter.ended[n].valid)
            self.add_input(f"length{n}", meter.ended[n].length)
            self.add_output(f"frames{n}", meter.frames[n])
            self.add_output(f"octets{n}", meter.octets[n])


BENCH = CompiledBench(RateBench, Path(__file__).with_name("rate.cpp"))

# Runs ---------------------------------------------------------------------------------------------

STEP = np.dtype([("cycle", "<u8"), ("value", "<u8"), ("kind", "<u4"), ("port", "<u4")])
TICK = np.dtype([("now", "<u8"), ("is_tick", "<u4"), ("is_stepped", "<u4")])
SHOWN = np.dtype(
    [("cycle", "<u8"), ("number", "<u4"), ("is_whole", "<u4"), ("frames", "<u4", PORTS), ("octets", "<u4", PORTS)]
)
LATE = (5, 7)
"""Ticks from the first one after a multiple to the tick that says so."""

DIVISION_TICKS = 220
CROSSING_NS = 160
SYS_NS, TICK_NS, SYS_PHASE_NS = 20, 8, 3


Kind = IntEnum("Kind", "FRAME SET ADJUST INCREMENT INTERVAL", start=0)  # Of steps.


@dataclass(frozen=True)
class RateRun:
    """Holds what happened: ``ticks`` of timebase, and what was ``shown`` when the number changed."""

    ticks: NDArray[np.void]
    shown: NDArray[np.void]


def run(steps: NDArray[np.void], cycles: int) -> RateRun:
    """Run steps, in the order of their cycles."""
    done = BENCH.run({"script": steps.tobytes()}, {"cycles": cycles})
    return RateRun(done.array("ticks", TICK), done.array("shown", SHOWN))


def steps_of(frames: int, interval_ns: int, seed: int) -> tuple[NDArray[np.void], int]:
    """Return frames of both ports, up to two cycles close, with steps of the clock between them; and the cycles of it all."""
    rng = random.Random(seed)
    steps: list[tuple[int, int, Kind, int]] = [(50, interval_ns, Kind.INTERVAL, 0)]
    last = 0
    for port in range(PORTS):
        cycle = 100
        for _ in range(frames // PORTS):
            cycle += rng.choice([2, 2, 3, 32, 34, 34 + rng.randrange(60)])
            steps.append((cycle, rng.randrange(1 << 16), Kind.FRAME, port))
        last = max(last, cycle)
    steps.append((200, rng.getrandbits(60), Kind.SET, 0))
    cycle = 200
    while (cycle := cycle + rng.randrange(8 * interval_ns // SYS_NS)) < last:
        kind = rng.choice([Kind.SET, Kind.ADJUST, Kind.INCREMENT])
        value = {
            Kind.SET: rng.getrandbits(rng.randrange(20, 63)),
            Kind.ADJUST: rng.getrandbits(56) * rng.choice([1, -1]) % (1 << 64),
            Kind.INCREMENT: (8 << 40) + rng.randrange(-(1 << 34), 1 << 34),
        }[kind]
        steps.append((cycle, value, kind, 0))
    return np.array(sorted(steps), dtype=STEP), last + interval_ns


@dataclass(frozen=True)
class RateOutcome:
    """Counts intervals that were compared, and those that were wrong; ``found`` says how."""

    frames: int
    intervals: int
    whole: int
    off: int
    found: list[str]


def reached(ticks: NDArray[np.void], interval_ns: int) -> NDArray[np.intp]:
    """Return the ticks in which ``now`` was the first at or after a multiple, without a jump."""
    number = (ticks["now"] // np.uint64(interval_ns)).astype(np.int64)
    advance = np.diff(ticks["now"].astype(np.int64))
    return np.flatnonzero((np.diff(number) == 1) & (advance < 64) & (advance > 0)) + 1


def compare(steps: NDArray[np.void], interval_ns: int, done: RateRun) -> RateOutcome:
    """Hold the intervals of the gateware against the clock, and their counts against the frames.

    A tick comes LATE ticks after the multiple. Those near a step may be missed, and then the next one ends an interval that is
    not whole; no others may.
    """
    found: list[str] = []
    got = np.flatnonzero(done.ticks["is_tick"])
    wanted = reached(done.ticks, interval_ns)
    stepped = np.concatenate([[0], np.flatnonzero(done.ticks["is_stepped"])])
    since = wanted - stepped[np.searchsorted(stepped, wanted) - 1]
    matched = {}
    for at in got.tolist():
        near = wanted[(wanted <= at) & (at - wanted <= LATE[1])]
        if not near.size or not LATE[0] <= at - near[-1]:
            recent = at - stepped[np.searchsorted(stepped, at) - 1]
            if recent > DIVISION_TICKS + LATE[1]:
                found.append(f"tick {at} is at no multiple")
        else:
            matched[int(near[-1])] = at
    missed = [int(at) for at, ago in zip(wanted, since, strict=True) if int(at) not in matched and ago > DIVISION_TICKS]
    missed = [
        at for at in missed if not ((stepped >= at) & (stepped <= at + LATE[1])).any() and at + 50 < len(done.ticks)
    ]
    found += [f"no tick at the multiple of tick {at}" for at in missed]
    whole = 0
    for number, shown in enumerate(done.shown):
        at = int(got[number])
        before = int(got[number - 1]) if number else 0
        is_still = not ((stepped > before - LATE[1] - 2) & (stepped <= at)).any()
        lasted = int(done.ticks["now"][at]) - int(done.ticks["now"][before])
        if shown["is_whole"] and not (number and is_still and abs(lasted - interval_ns) <= 3 * TICK_NS):
            found.append(f"interval {number} is not whole, but called so")
        if not shown["is_whole"] and number and not ((stepped > before - DIVISION_TICKS) & (stepped <= at)).any():
            found.append(f"interval {number} is whole, but not called so")
        whole += bool(shown["is_whole"])
        sampled = int(shown["cycle"]) * SYS_NS + SYS_PHASE_NS
        if not 0 < sampled - at * TICK_NS <= CROSSING_NS:
            found.append(f"interval {number} is sampled {sampled - at * TICK_NS} ns after its tick")
    found += wrong_counts(steps, done.shown)
    count = int((steps["kind"] == Kind.FRAME).sum())
    return RateOutcome(count, len(done.shown), whole, len(found), found[:20])


def wrong_counts(steps: NDArray[np.void], shown: NDArray[np.void]) -> list[str]:
    """Return which intervals don't have the frames that ended between the cycles in which they were sampled."""
    found = []
    if shown["number"].tolist() != list(range(1, len(shown) + 1)):
        found.append("a number is missing")
    for port in range(PORTS):
        frames = steps[(steps["kind"] == Kind.FRAME) & (steps["port"] == port)]
        # Of frames up to three cycles before the new number shows.
        bounds = np.searchsorted(frames["cycle"], shown["cycle"].astype(np.int64) - 3, side="right")
        counts = np.diff(np.concatenate([[0], bounds]))
        sums = np.diff(
            np.concatenate([[0], np.concatenate([[0], np.cumsum(frames["value"].astype(np.int64))])[bounds]])
        )
        for name, expected in (("frames", counts), ("octets", sums)):
            wrong = np.flatnonzero(shown[name][:, port] != expected)
            found += [f"{name} of port {port}, interval {n}: {shown[name][n, port]}, not {expected[n]}" for n in wrong]
    return found


def random_run(frames: int, seed: int, interval_ns: int = 100_000) -> RateOutcome:
    """Send frames and step the clock, and compare all intervals."""
    steps, cycles = steps_of(frames, interval_ns, seed)
    return compare(steps, interval_ns, run(steps, cycles))
