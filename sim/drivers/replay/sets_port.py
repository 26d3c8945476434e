# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends configuration sets through a transmit port, from words to the PHY's octets, and compares each octet and each start."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from migen import *

from litex.gen import *

from liteprobe.cores.memory.sdram import BurstPort
from liteprobe.cores.transmit.sources.sets import SdramTable, SetsSource
from liteprobe.cores.transmit.sources.streams.streams import StreamSource
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.frames.gmii import with_fcs
from liteprobe.sim.drivers.replay.sets import TABLE_ADDRESS, SetsPins, SetsProgram, packed
from liteprobe.sim.drivers.replay.sets_maker import Made
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.traffic.port import OVERHEAD, SYS_PS, Compared, PortBench, PortRun, frames_of
from liteprobe.sim.models.traffic.sets import Frame, outcome
from liteprobe.sim.models.traffic.octets import FrameOctets

PROGRAM = {"interval": "interval_ticks", "fraction": "interval_fraction"} | {name: name for name in ("count", "repeats", "length")}
COUNTERS = ("sets", "repeats", "underruns", "first_underrun", "error", "words")

class SetsPortBench(PortBench, SetsPins):
    """A port with sets, and with streams or without: pins as of `PortBench` and `SetsBench`, ``sets_<counter>``, ``program_*``."""
    def __init__(self, with_streams):
        port = BurstPort()
        sets = SetsSource(SdramTable(port, TABLE_ADDRESS), with_templates=not with_streams)
        PortBench.__init__(self, [*([StreamSource([sets.user])] if with_streams else []), sets])
        self.add_sets(sets, port)
        self.add_outputs(sets, COUNTERS[:-1], "sets_")
        for pin, name in PROGRAM.items():
            self.add_input(f"program_{pin}", getattr(self.path.program if name == "length" else self.numbers, name))
        self.add_input("sets_arm", sets.request)

BENCH = CompiledBench(SetsPortBench, Path(__file__).with_name("sets_port.cpp"))

@dataclass(frozen=True)
class SetsPortRun:
    """Holds what was on the pins, and what the source of sets counted; COUNTERS."""

    port: PortRun
    counters: dict[str, int]


def run(program: SetsProgram, most: int = 0, sys_ps: int = SYS_PS, with_streams: bool = False) -> SetsPortRun:
    """Send sets until they end, or until ``most`` frames have left; arrivals are ticks since the start, about."""
    done = BENCH.run({"program": packed(program)}, {"most": most, "sys_ps": sys_ps}, with_streams=with_streams)
    sent, late, underruns, *counters = done.numbers
    port = PortRun(*frames_of(done), sent, late, underruns, [])
    return SetsPortRun(port, dict(zip(COUNTERS, counters, strict=True)))


class SetOctets(FrameOctets):
    """Writes whole frames around the headers that the model of sets gives."""

    def __init__(self, stream: Stream) -> None:
        self.present = b""
        super().__init__(stream, ())

    def whole_headers(self) -> bytes:
        """Return the headers of the present frame, and what stands after them before the fill or the sequence."""
        return self.present or super().whole_headers()

    def frame(self, frame: Frame, stamp_ns: int) -> bytes:
        """Return a frame without FCS."""
        present, ip = bytearray(frame.header), self.shape.ip
        if self.shape.version == 4:
            present[ip + 10 : ip + 12] = bytes(2)  # Is worked out after the stamp.
        self.present = bytes(present)
        return self.next(frame.length, stamp_ns)


def compared(made: Made, found: SetsPortRun, repeated: list[bool] | None = None, is_cut: bool = False) -> Compared:
    """Compare a run of sets that were all there in time, or frames of which are repeated, with the truth."""
    port, counters = found.port, found.counters
    count = len(port.ticks)
    decisions = [False] * count if repeated is None else repeated[:count]
    truth = outcome(made.octets, made.template, made.table.tolist(), made.interval, made.sets.repeats, decisions)
    missing = abs(count - len(truth.frames)) + (not is_cut and truth.error == "more sets")
    starts, free = [], 0
    for frame in truth.frames:
        starts.append(max(frame.due, free))
        free = starts[-1] + frame.length + OVERHEAD
    starts_off = int(np.sum(np.diff(port.ticks) != np.diff(np.array(starts, np.int64)[:count])))
    writer = SetOctets(made.sets.stream)
    octets_off = sum(
        got != with_fcs(writer.frame(frame, int(stamp)))
        for got, frame, stamp in zip(port.frames, truth.frames, port.now_ns, strict=False)
    )
    expected = {"sets": truth.sets, "repeats": truth.repeats, "underruns": 0}
    counters_off = 0 if is_cut else sum(counters[name] != value for name, value in expected.items())
    counters_off += (port.sent != count) + (port.underruns != 0)
    counters_off += not is_cut and port.late != sum(start > frame.due for start, frame in zip(starts, truth.frames, strict=True))
    octets = int(port.lengths.sum())
    return Compared(count, octets, missing, starts_off, octets_off, port.fcs_off, int(counters_off), port.utilisation)
