# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends streams through a port, from the bus to the PHY's octets, and compares each octet and each start with the truth."""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from migen import *

from litex.gen import *

from liteprobe.cores.timebase.clock import TimebaseClock
from liteprobe.cores.transmit.pace import StartGate
from liteprobe.cores.transmit.path import TransmitPath
from liteprobe.cores.transmit.sources.streams.streams import StreamSource
from liteprobe.host.traffic.layout import port_words
from liteprobe.host.traffic.stream import Decrement, Increment, Random, Stream, Values
from liteprobe.sim.drivers.tools.compiled import CompiledBench, Done
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.drivers.transmit.shown import ShownCounters, StillNumbers
from liteprobe.sim.models.traffic import streams as traffic

# Port Bench ---------------------------------------------------------------------------------------

class PortBench(PinnedBench):
    """A port of `TransmitPath` with the sources that are given.

    Pins: inputs and outputs of the path by their names, those of streams after ``streams_``; ``start_request``; ``now``;
    ``tx_valid``, ``tx_data``; one bus for all memories of `StreamSource`, or for the headers of sets alone (3 in bits 18..16
    of ``adr``).
    """
    def __init__(self, sources):
        PinnedBench.__init__(self, "sys", "timebase")
        self.clock = clock = TimebaseClock()
        self.gate  = gate  = StartGate(1)
        self.path  = path  = TransmitPath(clock, sources=sources)
        self.add_inputs(path, ["stop", "clear"])
        self.shown   = ShownCounters(path.counters)
        self.numbers = StillNumbers(path)
        self.add_outputs(path, ["state"])
        self.add_outputs(self.shown, ["sent", "late", "first_late", "underruns"])
        self.add_outputs(clock, ["now"])
        self.add_outputs(path.source, ["valid", "data"], "tx_")
        self.comb += [
            gate.mask.eq(1),
            gate.request.eq(self.add_pin("start_request")),
            path.start_strobe.eq(gate.strobe[0]),
            gate.ready[0].eq(path.ready),
        ]
        if "streams" in path.sources:
            streams = path.streams
            self.add_inputs(streams, ["mask", "hold", "begin", "end"], "streams_")
            self.add_input("streams_arm", streams.request)
            self.add_outputs(streams, ["active"], "streams_")
            buses = [streams.streams_bus, streams.modifiers_bus, streams.lists_bus, streams.headers_bus]
            self.add_bus([*buses, streams.sent_counters.bus])
        elif "sets" in path.sources:
            self.add_bus({3: path.sets.headers_bus})

class StreamsPortBench(PortBench):
    """A port that sends streams."""
    def __init__(self):
        PortBench.__init__(self, [StreamSource()])

BENCH = CompiledBench(StreamsPortBench, Path(__file__).with_name("port.cpp"))

# Runs ---------------------------------------------------------------------------------------------

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
class Pins:
    """Frames on the pins of a PHY.

    Attributes
    ----------
    ticks, now_ns : array, shape (frames,); tick of each SFD, and the time in it.
    lengths : array, shape (frames,); octets from after the SFD to the end of TX_EN: with FCS.
    frames : these octets; empty where they were not asked for.
    """

    ticks: NDArray[np.int64]
    now_ns: NDArray[np.int64]
    lengths: NDArray[np.int64]
    frames: list[bytes]

    @property
    def fcs_off(self) -> int:
        """Frames with a wrong FCS."""
        return sum(struct.pack("<I", zlib.crc32(one[:-FCS])) != one[-FCS:] for one in self.frames)

    @property
    def utilisation(self) -> float:
        """Octets of all frames, with 24 around each, over the ticks from the first start to the end of the last slot."""
        ticks = int(self.ticks[-1] - self.ticks[0] + self.lengths[-1]) + OVERHEAD - FCS if len(self.ticks) else 1
        return float(np.sum(self.lengths + OVERHEAD - FCS)) / ticks


@dataclass(frozen=True)
class PortRun(Pins):
    """Holds what was on the pins, and what the port counted.

    ``streams``: of each stream: sent, late, sequence of the first late one.
    """

    sent: int
    late: int
    underruns: int
    streams: list[tuple[int, int, int]]


@dataclass(frozen=True)
class Compared:
    """Counts how far a run is from the truth: what should be 0, and how much was compared.

    Attributes
    ----------
    frames, octets : that were compared.
    missing, starts_off, octets_off, fcs_off, counters_off : frames that are only in one of the two; frames that started
        in another tick; that have another octet; a wrong FCS; counters that say something else.
    utilisation : as of `Pins`.
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


def run(streams: Sequence[Stream], most: int = 0, sys_ps: int = SYS_PS, with_octets: bool = True) -> PortRun:
    """Send ``streams`` until they end, or until ``most`` frames have left."""
    words = port_words(streams)
    pairs = np.array(
        [
            (number << 16 | place, word)
            for number, memory in enumerate((words.schedule, words.modifiers, words.lists, words.headers))
            for place, word in enumerate(memory)
        ],
        np.uint32,
    )
    options = {"mask": words.mask, "most": most, "sys_ps": sys_ps, "octets": int(with_octets)}
    done = BENCH.run({"words": pairs.tobytes()}, options)
    sent, late, underruns, *of_streams = done.numbers
    streams_counts = list(zip(of_streams[0::3], of_streams[1::3], of_streams[2::3], strict=True))
    return PortRun(*frames_of(done, with_octets), sent, late, underruns, streams_counts)


def frames_of(
    done: Done, with_octets: bool = True
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], list[bytes]]:
    """Return what ``port.h`` wrote: tick of each SFD, the time in it (ns), octets after it, and these octets."""
    octets = done.files["frames"]
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


# Comparison ---------------------------------------------------------------------------------------

def compared(streams: Sequence[Stream], found: PortRun, is_cut: bool = False) -> Compared:
    """Compare a run with the truth; ``is_cut``: it was stopped, so the truth goes on after its end."""
    count = len(found.ticks)
    frames = traffic.schedule(streams, count + (0 if is_cut else 1))
    both = min(count, len(frames))
    lengths = found.lengths[:both] - FCS
    starts_off = np.diff(found.ticks[:both]) != np.diff(frames["start"][:both])
    origin = (int(found.now_ns[0]), int(frames["start"][0])) if both else (0, 0)
    truth = traffic.octets(streams, frames, lambda start: origin[0] + NS_A_TICK * (start - origin[1]))
    octets_off = int(np.sum(lengths != frames["length"][:both]))
    octets_off += sum(one[:-FCS] != other for one, other in zip(found.frames, truth, strict=False))
    return Compared(
        both,
        int(found.lengths.sum()),
        abs(count - len(frames)),
        int(np.sum(starts_off)),
        octets_off,
        found.fcs_off,
        _counters_off(frames[:both], found) if both == count else 1,
        found.utilisation,
    )


# # #


def _counters_off(frames: NDArray[np.void], found: PortRun) -> int:
    off = (found.sent != len(frames)) + (found.late != int(frames["late"].sum())) + (found.underruns != 0)
    for stream, (sent, late, first) in enumerate(found.streams):
        its = frames[frames["stream"] == stream]
        its_late = its[its["late"]]
        expected = (len(its), len(its_late), int(its_late["sequence"][0]) if len(its_late) else NEVER)
        off += (sent, late, first) != expected
    return int(off)
