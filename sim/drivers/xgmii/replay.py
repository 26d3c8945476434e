# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Replays traces on a port of 10 Gb/s, from a memory to the line, and holds each octet and each start against arithmetic."""

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from migen import *

from litex.gen import *

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import NO_SEQUENCE
from liteprobe.cores.formats.xgmii import COLUMN
from liteprobe.cores.xgmii.replay import PairPort, XgmiiReplaySource
from liteprobe.cores.xgmii.train import LEAD_CYCLES, XgmiiTrainPort
from liteprobe.cores.xgmii.transmit import START_CYCLES, XgmiiTransmitMAC
from liteprobe.sim.drivers.replay import traces
from liteprobe.sim.drivers.replay.traces import DATAGRAM
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.models import xgmii
from liteprobe.sim.models.traffic.replay import TraceFrame, dues

RING_ADDRESS = 0x50040 # Of the ring in the memory, pairs.
RING_WORDS   = 1 << 15 # Far fewer than a probe has, so that it goes round often.

# Replay Bench -------------------------------------------------------------------------------------

class XgmiiReplayBench(PinnedBench):
    """A port of 10 Gb/s that replays, at pins of its memory and of what fills the ring."""

    def __init__(self):
        PinnedBench.__init__(self, "timebase")
        memory = PairPort()
        self.replay = replay = XgmiiReplaySource(memory, RING_ADDRESS, RING_WORDS)
        self.port   = port   = XgmiiTrainPort([replay])
        self.mac    = mac    = XgmiiTransmitMAC()
        self.comb += [
            port.source.connect(mac.sink),
            *copied(port, mac, "starts", "starts_in_lane_4"),
        ]
        self.add_inputs(replay, ["written", "wraps", "restart", "loops", "begins", "is_chosen"])
        self.add_outputs(replay, ["is_restarted", "fetched", "is_primed", "is_active", "due"])
        self.add_outputs(replay, ["frames", "underruns", "first_underrun", "is_bad", "is_starved"])
        self.add_inputs(port, ["start", "stop"])
        self.add_outputs(port, ["is_running"])
        self.add_outputs(port.pacer, ["sent_count", "late_count"])
        self.add_output("port_asks", memory.cmd.valid)
        self.add_output("port_address", memory.cmd.addr)
        self.add_input("port_takes", memory.cmd.ready)
        self.add_input("port_gives", memory.rdata.valid)
        self.add_input("port_data", memory.rdata.data)
        self.add_outputs(mac, ["data", "control"], "tx_")


BENCH = CompiledBench(XgmiiReplayBench, Path(__file__).with_name("replay.cpp"))

# Runs ---------------------------------------------------------------------------------------------

PROGRAM = struct.Struct("<10I")
CHUNK = struct.Struct("<QQ")
HEAD = struct.Struct("<QI")
START_OCTETS = 8 * (LEAD_CYCLES + START_CYCLES + 3)  # From the start of a program to tick 0 at the pins.
LATENCY = 8 * 400  # Octets at most from when a word is in the ring to when its frame starts, where nothing is in its way.


@dataclass(frozen=True)
class Memory:
    """A memory: cycles to what is asked for, of 256 so many in which it takes nothing, pairs from stall to stall, their cycles."""

    latency: int = 12
    turn: int = 0
    stall_every: int = 0
    stall: int = 0


@dataclass(frozen=True)
class Program:
    """Says what is streamed and asked for.

    Attributes
    ----------
    frames : that must leave, of one loop.
    words : octets of their records, in this program.
    loops : as of `XgmiiReplaySource`.
    arrivals : sequence of (cycle after the start, words) or None
        At once, as far as there is space.
    opens : a session begins with it.
    stop_after, stop_frames : cycles after the start; frames, in the midst of the next one; 0: not stopped.
    end_gap : of a WAIT that is the end.
    """

    frames: Sequence[TraceFrame]
    words: bytes
    loops: int = 1
    arrivals: Sequence[tuple[int, int]] | None = None
    opens: bool = True
    stop_after: int = 0
    stop_frames: int = 0
    end_gap: int = 0
    memory: Memory = Memory()

    @property
    def chunks(self) -> Sequence[tuple[int, int]]:
        """Return what comes into the ring at once, and when."""
        if self.arrivals is not None:
            return self.arrivals
        count = len(self.words) // 4
        return [(0, min(DATAGRAM, count - first)) for first in range(0, count, DATAGRAM)]

    @property
    def prime(self) -> int:
        """Words in the ring before it begins."""
        at_once = sum(words for cycle, words in self.chunks if not cycle)
        return min(at_once, RING_WORDS - DATAGRAM) if self.loops == 1 else len(self.words) // 4


@dataclass(frozen=True)
class ReplayRun:
    """Holds places of starts and frames on the line, when the program started (octets), and what the port counted.

    ``came``: place at which each word of the program came into the ring; ``first_due``: octets from the start to the first frame.
    """

    places: list[int]
    frames: list[bytes]
    start: int
    came: list[int]
    sent: int
    late: int
    taken: int
    underruns: int
    first_underrun: int
    is_bad: int
    is_starved: int
    primed: int
    first_due: int


def words_of(frames: Sequence[TraceFrame], seed: int = 0, end_gap: int = 0, waits: float = 0) -> bytes:
    """Return the octets of the records of a trace, whose last words are filled with anything."""
    chance = random.Random(seed)
    records = traces.trace(frames, chance, waits, end_gap or None)
    return b"".join(struct.pack(f"<{len(record)}I", *record) for record in records)


def run(programs: Sequence[Program], seed: int = 0) -> list[ReplayRun]:
    """Replay programs, one after the other."""
    files = {
        "programs": b"".join(
            PROGRAM.pack(
                one.opens, one.loops, len(one.chunks), one.prime if one.opens else 0, one.stop_after, one.stop_frames,
                one.memory.latency, one.memory.turn, one.memory.stall_every, one.memory.stall,
            ) for one in programs
        ),
        "words": b"".join(one.words for one in programs),
        "chunks": b"".join(CHUNK.pack(*chunk) for one in programs for chunk in one.chunks),
    }
    done = BENCH.run(files, {"seed": seed})
    octets, arrived = done.files["frames"], (8 * done.array("arrived", "<u8").astype(np.int64)).tolist()
    found, at = [], 0
    for program, text in zip(programs, done.output.splitlines(), strict=True):
        count, start, *counts = map(int, text.split())
        places, frames = [], []
        for _ in range(count):
            place, length = HEAD.unpack_from(octets, at)
            at += HEAD.size + length
            places.append(place)
            frames.append(octets[at - length : at])
        came = [place for place, (_, words) in zip(arrived, program.chunks) for _ in range(words)]
        arrived = arrived[len(program.chunks) :]
        found.append(ReplayRun(places, frames, 8 * start, came, *counts))
    return found


def expected(program: Program, count: int) -> tuple[list[int], list[bytes]]:
    """Return when so many frames of a program are due (octets), and what stands on the line."""
    loops = program.loops or count // max(1, len(program.frames)) + 1
    frames = [*program.frames] * loops
    lines = {id(one): xgmii.with_fcs(one.octets.ljust(one.length, b"\0")) for one in program.frames}
    return dues(program.frames, loops, program.end_gap), [lines[id(one)] for one in frames]


def wrong(program: Program, done: ReplayRun, is_fed: bool = True) -> list[str]:
    """Return what left otherwise than the program says.

    ``is_fed``: neither host nor memory keep it waiting. Else frames may start later, and each that does is counted; and of those
    that are early in the ring none does for long.
    """
    count = len(done.frames)
    due, octets = expected(program, count)
    is_cut = bool(program.stop_after or program.stop_frames)
    found = [f"{count} frames of {len(octets)}"] * (count > len(octets) if is_cut or not program.loops else count != len(octets))
    found += [f"frame {n} is {one.hex()[:80]}, not {other.hex()[:80]}" for n, (one, other) in enumerate(zip(done.frames, octets))
        if one != other]
    if not count:
        return found
    first = done.start + START_OCTETS
    wishes = [first + one // COLUMN * COLUMN for one in due[:count]]
    lengths = [len(one) - 4 for one in octets[:count]]
    theory = xgmii.started(wishes, [False] * count, lengths)
    late = sum(place > wish for place, wish in zip(done.places, wishes))
    found += [f"{done.late} late, not {late}"] * (done.late != late)
    found += [f"{done.sent} sent, {done.taken} taken, {count} on the line"] * (not done.sent == done.taken == count)
    if is_fed:
        found += [f"frame {n} starts at {place - first}, not {right - first}"
            for n, (place, right) in enumerate(zip(done.places, theory)) if place != right]
        found += [f"{done.underruns} underruns, first {done.first_underrun}"] * (
            (done.underruns, done.first_underrun, done.is_starved) != (0, NO_SEQUENCE, 0))
        return found
    found += [f"frame {n} starts at {place - first}, due at {wish - first}"
        for n, (place, wish) in enumerate(zip(done.places, wishes)) if place < wish]
    found += ["the frames are not as far apart as they must be"] * (
        xgmii.started(done.places, [False] * count, lengths) != done.places)
    found += [f"starved {done.is_starved}, {done.underruns} underruns, first {done.first_underrun}"] * (
        not done.is_starved == (done.underruns > 0) == (done.first_underrun != NO_SEQUENCE))
    found += [f"{done.underruns} underruns of {late} late frames"] * (done.underruns > late)
    return found


def off_schedule(program: Program, done: ReplayRun) -> int:
    """Return how many frames did not start in the column of their time, or not at all."""
    due, _ = expected(program, len(done.places))
    first = done.start + START_OCTETS
    return abs(len(due) - len(done.places)) + sum(
        place != first + wish // COLUMN * COLUMN for place, wish in zip(done.places, due))


def poisson(count: int, load: float, seed: int, least: int = 60, most: int = 1514) -> list[TraceFrame]:
    """Return frames of random octets whose gaps beyond their slots are exponential, at a load of the line."""
    chance = random.Random(seed)
    lengths = [chance.randint(least, most) for _ in range(count)]
    mean = ((least + most) / 2 + 24) * (1 / load - 1)
    due, before, found = 0.0, 0, []
    for length in lengths:
        found.append(TraceFrame(int(due) - before, length, chance.randbytes(length)))
        before = int(due)
        due += length + 24 + chance.expovariate(1 / mean)
    return found
