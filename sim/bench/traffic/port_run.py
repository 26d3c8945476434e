# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends streams through a compiled transmit port, and compares each octet and each start with the truth."""

import struct
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.traffic.layout import port_words
from liteprobe.host.traffic.stream import Decrement, Increment, Random, Stream, Values
from liteprobe.sim.bench.tools.compiled import compiled_program
from liteprobe.sim.bench.traffic.port_module import write_verilog
from liteprobe.sim.models import traffic

MAIN = Path(__file__).with_name("port_run.cpp")
PORT = Path(__file__).with_name("port.h")
METER = Path(__file__).with_name("port_meter.h")
HEAD = struct.Struct("<QQI")
HEAD_DTYPE = np.dtype([("tick", "<u8"), ("now", "<u8"), ("length", "<u4")])
SYS_PS = 20_000  # 50 MHz; the timebase has 125.
NS_A_TICK = 8
STREAMS = 16
FCS, OVERHEAD = 4, 24  # Octets; of a frame on the line beyond its length, FCS included.
NEVER = 0xFFFFFFFF
#: Four modifiers of a stream, one of each kind: the most that a frame can ask of the engine.
CHANGES = (
    Random("ipv4.source"),
    Increment("ipv4.destination", step=3, count=1000),
    Values("udp.source", tuple(range(1000, 1064)), random=True),
    Decrement("mac.source"),
)


@dataclass(frozen=True)
class PortRun:
    """What was on the pins, and what the port counted.

    Attributes
    ----------
    ticks, now_ns : array, shape (frames,)
        Tick of each SFD, and the time in it.
    lengths : array, shape (frames,)
        Octets from behind the SFD to the end of TX_EN: with FCS.
    frames : list of bytes
        These octets; empty where they were not asked for.
    sent, late, underruns : int
    streams : list of (int, int, int)
        Of each stream: sent, late, sequence of the first late one.
    """

    ticks: NDArray[np.int64]
    now_ns: NDArray[np.int64]
    lengths: NDArray[np.int64]
    frames: list[bytes]
    sent: int
    late: int
    underruns: int
    streams: list[tuple[int, int, int]]


@dataclass(frozen=True)
class Compared:
    """How far a run is from the truth: what should be 0, and how much was compared.

    Attributes
    ----------
    frames, octets : int
        That were compared.
    missing, starts_off, octets_off, fcs_off, counters_off : int
        Frames that are only in one of the two; frames that started in another tick; that have another octet; a wrong FCS;
        counters of streams that say something else.
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
    utilisation: float

    @property
    def off(self) -> int:
        """All that should be 0."""
        return self.missing + self.starts_off + self.octets_off + self.fcs_off + self.counters_off


@cache
def build() -> Path:
    """Return the executable, compiled if need be."""
    return compiled_program("port_bench", write_verilog, MAIN, [PORT, METER])


def run(streams: Sequence[Stream], most: int = 0, sys_ps: int = SYS_PS, with_octets: bool = True) -> PortRun:
    """Send ``streams`` until they end, or until ``most`` frames have left."""
    words = port_words(streams)
    pairs = np.array(
        [
            (number << 28 | place, word)
            for number, memory in enumerate((words.schedule, words.modifiers, words.lists, words.headers))
            for place, word in enumerate(memory)
        ],
        np.uint32,
    )
    executable = build()
    with TemporaryDirectory(dir=executable.parent) as folder:
        given, got = Path(folder) / "words", Path(folder) / "frames"
        given.write_bytes(pairs.tobytes())
        arguments = [str(executable), str(given), str(got), *map(str, (words.mask, most, sys_ps, int(with_octets)))]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the bench ended with {done.returncode}: {done.stderr}")
        octets = got.read_bytes()
    numbers = [int(word) for word in done.stdout.split()]
    sent, late, underruns, *of_streams = numbers
    streams_counts = list(zip(of_streams[0::3], of_streams[1::3], of_streams[2::3], strict=True))
    return PortRun(*read_frames(octets, with_octets), sent, late, underruns, streams_counts)


def compared(streams: Sequence[Stream], found: PortRun, is_cut: bool = False) -> Compared:
    """Compare a run with the truth; ``is_cut``: it was stopped, so the truth goes on behind its end."""
    count = len(found.ticks)
    frames = traffic.schedule(streams, count + (0 if is_cut else 1))
    both = min(count, len(frames))
    lengths = found.lengths[:both] - FCS
    starts_off = np.diff(found.ticks[:both]) != np.diff(frames["start"][:both])
    origin = (int(found.now_ns[0]), int(frames["start"][0])) if both else (0, 0)
    truth = traffic.octets(streams, frames, lambda start: origin[0] + NS_A_TICK * (start - origin[1]))
    octets_off = int(np.sum(lengths != frames["length"][:both]))
    octets_off += sum(one[:-FCS] != other for one, other in zip(found.frames, truth, strict=False))
    ticks = int(found.ticks[-1] - found.ticks[0] + found.lengths[-1]) + OVERHEAD - FCS if count else 1
    return Compared(
        both,
        int(found.lengths.sum()),
        abs(count - len(frames)),
        int(np.sum(starts_off)),
        octets_off,
        sum(struct.pack("<I", zlib.crc32(one[:-FCS])) != one[-FCS:] for one in found.frames),
        _counters_off(frames[:both], found) if both == count else 1,
        float(np.sum(found.lengths + OVERHEAD - FCS)) / ticks,
    )


def read_frames(
    octets: bytes, with_octets: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], list[bytes]]:
    """Return what ``port_meter.h`` wrote: tick of each SFD, the time in it (ns), octets behind it, and these octets."""
    if not with_octets:
        rows = np.frombuffer(octets, HEAD_DTYPE)
        return rows["tick"].astype(np.int64), rows["now"].astype(np.int64), rows["length"].astype(np.int64), []
    heads, frames = [], []
    place = 0
    while place < len(octets):
        heads.append(HEAD.unpack_from(octets, place))
        place += HEAD.size
        frames.append(octets[place : place + heads[-1][2]])
        place += heads[-1][2]
    columns = np.array(heads, np.int64).reshape(-1, 3).T
    return columns[0], columns[1], columns[2], frames


# # #


def _counters_off(frames: NDArray[np.void], found: PortRun) -> int:
    off = (found.sent != len(frames)) + (found.late != int(frames["late"].sum())) + (found.underruns != 0)
    for stream, (sent, late, first) in enumerate(found.streams):
        its = frames[frames["stream"] == stream]
        its_late = its[its["late"]]
        expected = (len(its), len(its_late), int(its_late["sequence"][0]) if len(its_late) else NEVER)
        off += (sent, late, first) != expected
    return int(off)
