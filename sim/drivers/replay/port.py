# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Replays traces on a port, from the memory to the PHY's octets, and compares each octet and each start with the truth."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from migen import *

from litex.gen import *

from liteprobe.cores.memory.sdram import BurstPort
from liteprobe.cores.transmit.sources.replay import ReplayPort, ReplaySource
from liteprobe.cores.transmit.sources.streams.streams import StreamSource
from liteprobe.sim.drivers.replay.traces import DATAGRAM
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.traffic import port
from liteprobe.sim.drivers.traffic.port import FCS, NEVER, NS_A_TICK, SYS_PS, Pins, PortBench, frames_of
from liteprobe.sim.models.traffic import replay

RING_ADDRESS = 0x50040 # Of the ring in the memory, words.
RING_WORDS   = 1 << 13 # Far fewer than a probe has, so that it goes round often.

# Replay Port Bench --------------------------------------------------------------------------------

class ReplayPortBench(PortBench):
    """A port that replays, at pins of a `BurstPort` and of what fills the ring.

    Pins: those of `PortBench`; of `ReplayPort` by their names after ``replay_``; ``asks``, ``takes``, ``address``, ``rest``,
    ``gives``, ``word``.
    """
    def __init__(self, with_streams=False):
        PortBench.__init__(self, [*([StreamSource()] if with_streams else []), ReplaySource()])
        self.port   = memory = BurstPort()
        self.replay = replay = ReplayPort(self.path, memory, RING_ADDRESS, RING_WORDS)
        self.add_inputs(replay, ["open", "arm", "prime", "loops", "restart", "written"], "replay_")
        self.add_outputs(replay, ["opens", "is_restarted", "fetched", "keeps", "frames", "errors", "underruns", "first_underrun",
            "is_starved", "is_running"], "replay_")
        self.add_output("asks", memory.request.valid)
        self.add_outputs(memory.request, ["address", "rest"])
        self.add_input("takes", memory.request.ready)
        self.add_inputs(memory, ["gives"])
        self.add_input("word", memory.read_data)

BENCH = CompiledBench(ReplayPortBench, Path(__file__).with_name("port.cpp"))

# Runs ---------------------------------------------------------------------------------------------

PROGRAM = struct.Struct("<6IQ")
CHUNK = struct.Struct("<qII")
DUE_TO_SFD = 18  # Ticks from the start of a frame, as the port knows it, to its SFD at the pins.
LATENCY = 3000  # Ticks at most from the ring to the line for a frame: those before it in its datagram are read, too.
TURN = 80  # Cycles of sys from burst to burst of the memory.
Arrivals = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Program:
    """Describes what is streamed and asked for.

    Attributes
    ----------
    frames : that must leave, of one loop.
    words : that come into the ring in this program.
    arrivals : sequence of (tick after the start, words), or None
        At once, as far as there is free space; ticks of 0 and less are before the start.
    prime, loops, opens : as of `ReplaySource`; prime None: half of the ring, or all words.
    end_gap : of a WAIT that is the end.
    most, stop_tick : stopped in the midst of the frame after so many, or so many ticks after the start; 0: not stopped.
    turn : cycles of sys from burst to burst of the memory, at the mean.
    """

    frames: Sequence[replay.TraceFrame]
    words: Sequence[int]
    arrivals: Arrivals | None = None
    prime: int | None = None
    loops: int = 1
    opens: bool = True
    end_gap: int | None = None
    most: int = 0
    stop_tick: int = 0
    turn: int = TURN

    @property
    def chunks(self) -> Arrivals:
        """Return what comes into the ring at once, and when."""
        return in_datagrams(len(self.words)) if self.arrivals is None else self.arrivals

    @property
    def used_prime(self) -> int:
        """Words that must be in the ring before it begins."""
        if self.prime is not None:
            return self.prime
        return min(RING_WORDS // 2, len(self.words))


@dataclass(frozen=True)
class Run(Pins):
    """Holds what was on the pins in a program, and what the port counted.

    Attributes
    ----------
    came : array, shape (words,); tick in which each word came into the ring.
    primed, sent, late, first_late, cut, frames_taken, is_bad, underruns, first_underrun, is_starved : int
        ``primed``: words written as the port was ready. ``cut``: frames that were cut on the line.
    """

    start_tick: int
    came: NDArray[np.int64]
    primed: int
    sent: int
    late: int
    first_late: int
    cut: int
    frames_taken: int
    is_bad: int
    underruns: int
    first_underrun: int
    is_starved: int


@dataclass(frozen=True)
class Compared(port.Compared):
    """Counts how far a run is from the truth.

    Attributes
    ----------
    late, underruns, unsaid : of the truth. ``unsaid``: frames of which it doesn't say whether they are an underrun.
    """

    late: int
    underruns: int
    unsaid: int


def in_datagrams(words: int, tick: int = 0, every: int = 0) -> list[tuple[int, int]]:
    """Return words that come in datagrams, from ``tick`` on, ``every`` so many ticks."""
    starts = range(0, words, DATAGRAM)
    return [(tick + number * every, min(DATAGRAM, words - start)) for number, start in enumerate(starts)]


def run(programs: Sequence[Program], sys_ps: int = SYS_PS, seed: int = 0, with_streams: bool = False) -> list[Run]:
    """Replay programs, one after the other."""
    given = [
        PROGRAM.pack(one.opens, one.used_prime, one.loops, len(one.chunks), one.most, one.turn, one.stop_tick) for one in programs
    ]
    files = {
        "programs": b"".join(given),
        "chunks": b"".join(CHUNK.pack(*chunk, 0) for one in programs for chunk in one.chunks),
        "words": b"".join(np.array(one.words, np.uint32).tobytes() for one in programs),
    }
    done = BENCH.run(files, {"sys_ps": sys_ps, "seed": seed}, with_streams=with_streams)
    return _split(programs, frames_of(done), done.array("arrived", np.int64), done.output)


# Comparison ---------------------------------------------------------------------------------------

def compared(program: Program, found: Run) -> Compared:
    """Compare a run with the truth."""
    loops = program.loops or found.frames_taken // max(1, len(program.frames)) + 1
    count = len(found.ticks)
    frames = [*program.frames] * loops
    is_cut = bool(program.most or program.stop_tick)
    missing = max(0, count - len(frames)) if is_cut else abs(count - len(frames))
    both = min(count, len(frames))
    due = np.array(replay.dues(program.frames, loops, program.end_gap or 0)[:both], np.int64)
    length = np.array([frame.length for frame in frames[:both]], np.int64)
    origin = int(found.ticks[0] - due[0]) if both else 0
    start = found.ticks[:both] - origin
    verdict = replay.judged(due, length, _came(program, found, loops)[:both] - origin + DUE_TO_SFD, start, LATENCY)
    octets_off = int(np.sum(np.diff(found.now_ns) != NS_A_TICK * np.diff(found.ticks)))
    octets_off += sum(
        one[:-FCS] != replay.octets(frame, now)
        for one, frame, now in zip(found.frames, frames, found.now_ns.tolist(), strict=False)
    )
    return Compared(
        both,
        int(found.lengths.sum()),
        missing,
        verdict.starts_off,
        octets_off,
        found.fcs_off,
        _counters_off(program, found, start > due, verdict),
        found.utilisation,
        verdict.late,
        verdict.underruns,
        verdict.underruns_unsaid,
    )


# # #


def _came(program: Program, found: Run, loops: int) -> NDArray[np.int64]:
    """Return the tick in which the last word of each frame came into the ring."""
    ends, place = [], 0
    words = program.words
    for frame in program.frames:
        while words[place + 1] >> 28 & 1:  # A WAIT.
            place += 2
        place += 2 + (frame.stamp is not None) + -(-len(frame.octets) // 4)
        ends.append(place - 1)
    return np.tile(found.came[ends], loops) if ends else np.zeros(0, np.int64)


def _counters_off(program: Program, found: Run, is_late: NDArray[np.bool_], verdict: replay.Verdict) -> int:
    count = len(found.ticks)
    first_late = int(np.argmax(is_late)) if is_late.any() else NEVER
    least, unsaid = verdict.underruns, verdict.underruns_unsaid
    is_cut = bool(program.most or program.stop_tick)
    first = found.first_underrun if unsaid or verdict.first_underrun is None else verdict.first_underrun
    is_right = [
        (found.sent, found.late, found.first_late, found.cut) == (count, int(is_late.sum()), first_late, 0),
        found.primed >= program.used_prime,
        least <= found.underruns <= least + unsaid + is_cut,
        found.is_starved == (found.underruns > 0) == (found.first_underrun != NEVER),
        found.first_underrun == first,
        # A frame is taken from the source as it starts; of a stopped program, one that was thrown away.
        count <= found.frames_taken <= count + is_cut,
    ]
    return is_right.count(False)


def _split(
    programs: Sequence[Program],
    seen: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], list[bytes]],
    arrived: NDArray[np.int64],
    output: str,
) -> list[Run]:
    found, frame, chunk = [], 0, 0
    for program, line in zip(programs, output.splitlines(), strict=True):
        count, start_tick, *counters = map(int, line.split())
        chunks = [words for _, words in program.chunks]
        came = np.repeat(arrived[chunk : chunk + len(chunks)], chunks)
        these = slice(frame, frame + count)
        found.append(Run(seen[0][these], seen[1][these], seen[2][these], seen[3][these], start_tick, came, *counters))
        frame, chunk = frame + count, chunk + len(chunks)
    return found
