# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends configuration sets through a compiled transmit port, and compares each octet and each start with the truth."""

import subprocess
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.bench.frames.gmii_source import with_fcs
from liteprobe.sim.bench.replay.sets_maker import Made
from liteprobe.sim.bench.replay.sets_port_module import write_verilog
from liteprobe.sim.bench.replay.sets_run import PARTS, SetsProgram, packed
from liteprobe.sim.bench.tools.compiled import compiled_program
from liteprobe.sim.bench.traffic.port_run import FCS, METER, OVERHEAD, PORT, SYS_PS, PortRun, read_frames
from liteprobe.sim.models.sets import Frame, outcome
from liteprobe.sim.models.traffic_octets import FrameOctets

MAIN = Path(__file__).with_name("sets_port_run.cpp")
COUNTERS = ("sets", "repeats", "underruns", "first_underrun", "error", "words")


@dataclass(frozen=True)
class SetsPortRun:
    """What was on the pins, and what the source of sets counted; COUNTERS."""

    port: PortRun
    counters: dict[str, int]


@dataclass(frozen=True)
class Compared:
    """How far a run is from the truth: what should be 0, and how much was compared; utilisation of the line, 0 to 1."""

    frames: int
    missing: int
    starts_off: int
    octets_off: int
    counters_off: int
    utilisation: float

    @property
    def off(self) -> int:
        """All that should be 0."""
        return self.missing + self.starts_off + self.octets_off + self.counters_off


@cache
def build(with_streams: bool = False) -> Path:
    """Return the executable, compiled if need be."""
    parts = [PORT, METER, *PARTS]
    return compiled_program("sets_port_bench", partial(write_verilog, with_streams=with_streams), MAIN, parts)


def run(program: SetsProgram, most: int = 0, sys_ps: int = SYS_PS, with_streams: bool = False) -> SetsPortRun:
    """Send sets until they end, or until ``most`` frames have left; arrivals are ticks since the start, about."""
    executable = build(with_streams)
    with TemporaryDirectory(dir=executable.parent) as folder:
        given, got = Path(folder) / "program", Path(folder) / "frames"
        given.write_bytes(packed(program))
        arguments = [str(executable), str(given), str(got), str(most), str(sys_ps), "1"]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the bench ended with {done.returncode}: {done.stderr}")
        octets = got.read_bytes()
    sent, late, underruns, *counters = [int(word) for word in done.stdout.split()]
    return SetsPortRun(
        PortRun(*read_frames(octets, True), sent, late, underruns, []), dict(zip(COUNTERS, counters, strict=True))
    )


class SetOctets(FrameOctets):
    """Writes whole frames around the headers that the model of sets gives."""

    def __init__(self, stream: Stream) -> None:
        self.present = b""
        super().__init__(stream, ())

    def whole_headers(self) -> bytes:
        """Return the headers of the present frame, and what stands behind them before the fill or the sequence."""
        return self.present or super().whole_headers()

    def frame(self, frame: Frame, stamp_ns: int) -> bytes:
        """Return a frame without FCS."""
        present, ip = bytearray(frame.header), self.shape.ip
        if self.shape.version == 4:
            present[ip + 10 : ip + 12] = bytes(2)  # Is worked out behind the stamp.
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
    octets = SetOctets(made.sets.stream)
    octets_off = sum(
        got != with_fcs(octets.frame(frame, int(stamp)))
        for got, frame, stamp in zip(port.frames, truth.frames, port.now_ns, strict=False)
    )
    expected = {"sets": truth.sets, "repeats": truth.repeats, "underruns": 0}
    counters_off = 0 if is_cut else sum(counters[name] != value for name, value in expected.items())
    counters_off += (port.sent != count) + (port.underruns != 0)
    counters_off += not is_cut and port.late != sum(start > frame.due for start, frame in zip(starts, truth.frames, strict=True))
    ticks = int(port.ticks[-1] - port.ticks[0] + port.lengths[-1]) + OVERHEAD - FCS
    used = float(np.sum(port.lengths + OVERHEAD - FCS)) / ticks
    return Compared(count, missing, starts_off, octets_off, int(counters_off), used)
