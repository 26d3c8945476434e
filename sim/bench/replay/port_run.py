# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Replays traces on a compiled port, and compares each octet and each start with the truth."""

import struct
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.bench.replay.port_module import RING_WORDS, write_verilog
from liteprobe.sim.bench.replay.traces import DATAGRAM
from liteprobe.sim.bench.tools.compiled import compiled_program
from liteprobe.sim.bench.traffic.port_run import FCS, METER, NEVER, NS_A_TICK, SYS_PS, read_frames
from liteprobe.sim.models import replay

MAIN = Path(__file__).with_name("port_run.cpp")
PROGRAM = struct.Struct("<6IQ")
CHUNK = struct.Struct("<qII")
DUE_TO_SFD = 18  # Ticks from the start of a frame, as the port knows it, to its SFD at the pins.
LATENCY = 3000  # Ticks at most from the ring to the line for a frame: those before it in its datagram are read, too.
TURN = 80  # Cycles of sys from burst to burst of the memory.
Arrivals = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Program:
    """What is streamed and asked for.

    Attributes
    ----------
    frames : sequence of TraceFrame
        That must leave, of one loop.
    words : sequence of int
        That come into the ring in this program.
    arrivals : sequence of (tick after the start, words), or None
        At once, as far as there is room; ticks of 0 and less are before the start.
    prime, loops, opens : as of `ReplaySource`; prime None: half of the ring, or all words.
    end_gap : int or None
        Of a WAIT that is the end.
    most, stop_tick : int
        Stopped in the midst of the frame after so many, or so many ticks after the start; 0: not stopped.
    turn : int
        Cycles of sys from burst to burst of the memory, at the mean.
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
        """What comes into the ring at once, and when."""
        return in_datagrams(len(self.words)) if self.arrivals is None else self.arrivals

    @property
    def used_prime(self) -> int:
        """Words that must be in the ring before it begins."""
        if self.prime is not None:
            return self.prime
        return min(RING_WORDS // 2, len(self.words))


@dataclass(frozen=True)
class Run:
    """What was on the pins in a program, and what the port counted.

    Attributes
    ----------
    ticks, now_ns, lengths : array, shape (frames,)
        Tick of each SFD, the time in it, octets behind it with FCS.
    frames : list of bytes
        These octets.
    start_tick : int
    came : array, shape (words,)
        Tick in which each word came into the ring.
    primed, sent, late, first_late, cut, frames_taken, is_bad, underruns, first_underrun, is_starved : int
        ``primed``: words written as the port was ready. ``cut``: frames that were cut on the line.
    """

    ticks: NDArray[np.int64]
    now_ns: NDArray[np.int64]
    lengths: NDArray[np.int64]
    frames: list[bytes]
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
class Compared:
    """How far a run is from the truth: what should be 0, and what was compared.

    Attributes
    ----------
    frames, octets : int
        That were compared.
    missing, starts_off, octets_off, fcs_off, counters_off : int
        Frames that are only in one of the two; that started in another tick; that have another octet; a wrong FCS; counters.
    late, underruns, unsaid : int
        Of the truth. ``unsaid``: frames of which it doesn't say whether they are an underrun.
    utilisation : float
        Octets of all frames, with 24 around each, over the ticks from the first start to the end of the last slot.
    """

    frames: int
    octets: int
    missing: int
    starts_off: int
    octets_off: int
    fcs_off: int
    counters_off: int
    late: int
    underruns: int
    unsaid: int
    utilisation: float

    @property
    def off(self) -> int:
        """All that should be 0."""
        return self.missing + self.starts_off + self.octets_off + self.fcs_off + self.counters_off


def in_datagrams(words: int, tick: int = 0, every: int = 0) -> list[tuple[int, int]]:
    """Return words that come in datagrams, from ``tick`` on, ``every`` so many ticks."""
    starts = range(0, words, DATAGRAM)
    return [(tick + number * every, min(DATAGRAM, words - start)) for number, start in enumerate(starts)]


@cache
def build(with_streams: bool = False) -> Path:
    """Return the executable, compiled if need be; ``with_streams``: of a port that sends streams, too."""
    return compiled_program("replay_bench", partial(write_verilog, with_streams=with_streams), MAIN, [METER])


def run(programs: Sequence[Program], sys_ps: int = SYS_PS, seed: int = 0, with_streams: bool = False) -> list[Run]:
    """Replay programs, one after the other."""
    executable = build(with_streams)
    with TemporaryDirectory(dir=executable.parent) as name:
        folder = Path(name)
        given = [
            PROGRAM.pack(one.opens, one.used_prime, one.loops, len(one.chunks), one.most, one.turn, one.stop_tick)
            for one in programs
        ]
        (folder / "programs").write_bytes(b"".join(given))
        (folder / "chunks").write_bytes(b"".join(CHUNK.pack(*chunk, 0) for one in programs for chunk in one.chunks))
        (folder / "words").write_bytes(b"".join(np.array(one.words, np.uint32).tobytes() for one in programs))
        files = [str(folder / file) for file in ("programs", "chunks", "words", "frames", "arrived")]
        done = subprocess.run(
            [str(executable), *files, str(sys_ps), str(seed)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"the bench ended with {done.returncode}: {done.stderr}")
        seen = read_frames((folder / "frames").read_bytes(), with_octets=True)
        arrived = np.frombuffer((folder / "arrived").read_bytes(), np.int64)
    return _split(programs, seen, arrived, done.stdout)


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
    ticks = int(found.ticks[-1] - found.ticks[0] + found.lengths[-1]) + replay.AROUND - FCS if count else 1
    return Compared(
        both,
        int(found.lengths.sum()),
        missing,
        verdict.starts_off,
        octets_off,
        sum(struct.pack("<I", zlib.crc32(one[:-FCS])) != one[-FCS:] for one in found.frames),
        _counters_off(program, found, start > due, verdict),
        verdict.late,
        verdict.underruns,
        verdict.underruns_unsaid,
        float(np.sum(found.lengths + replay.AROUND - FCS)) / ticks,
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
