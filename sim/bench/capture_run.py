# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends records through the capture of the gateware, compiled by Verilator, and holds what comes out against them."""

import json
import os
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.cores.formats import CHANNELS
from liteprobe.sim.bench.capture import write_verilog
from liteprobe.sim.bench.compiled import compiled, verilator_environment
from liteprobe.sim.models.capture import CaptureRecord, Gap, decode

MAIN = Path(__file__).with_name("capture_run.cpp")
COMMAND = ["verilator", "--cc", "--exe", "--build", "-O3", "-CFLAGS", "-O2", "-Wno-fatal", "-Wno-WIDTH"]
COMMAND += ["-Wno-CASEINCOMPLETE", "--top-module", "capture_bench", "--Mdir", "obj"]
CLK_FREQ = 50e6


@dataclass(frozen=True)
class Sent:
    """A record of a port at a cycle; ``is_lost``: its octets found no room before."""

    cycle: int
    port: int
    record: CaptureRecord
    is_lost: bool = False


@dataclass(frozen=True)
class CaptureRun:
    """What a run gave: blocks of each channel that the host took, and what bench and gateware counted."""

    blocks: list[list[tuple[int, ...]]]
    cycles: list[int]
    counts: dict[str, int] = field(default_factory=dict)
    channels: dict[str, list[int]] = field(default_factory=dict)
    has_all: bool = False


def compile_run(folder: Path) -> None:
    """Compile the bench in ``folder``."""
    environment = {**os.environ, **verilator_environment()}
    command = [*COMMAND, str(MAIN), "capture_bench.v"]
    run_ = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if run_.returncode:
        raise RuntimeError(f"Verilator failed: {run_.stdout[-2000:]}{run_.stderr[-2000:]}")


def build(with_sdram: bool, number: int = 0) -> Path:
    """Return the executable, compiled if need be; ``number``: of the first block of each channel."""
    write = partial(write_verilog, with_sdram=with_sdram, number=number)
    return compiled("capture_bench", write, compile_run, [MAIN.read_text(), *COMMAND]) / "obj" / "Vcapture_bench"


def write_records(path: Path, sent: Sequence[Sent]) -> None:
    """Write the records for the bench."""
    with path.open("wb") as file:
        for one in sent:
            record = one.record
            flags = bool(record.rest) | one.is_lost << 1
            file.write(struct.pack("<QII4II", one.cycle, one.port, flags, *record.head, len(record.octets)))
            file.write(struct.pack(f"<{len(record.rest)}I", *record.rest))
            file.write(struct.pack(f"<{len(record.octets)}I", *record.octets))


def read_blocks(path: Path) -> tuple[list[list[tuple[int, ...]]], list[int]]:
    """Return the blocks of each channel, and when each was taken."""
    blocks: list[list[tuple[int, ...]]] = [[] for _ in range(CHANNELS)]
    cycles = []
    octets = path.read_bytes()
    at = 0
    while at < len(octets):
        channel, words, cycle = struct.unpack_from("<IIQ", octets, at)
        blocks[channel].append(struct.unpack_from(f"<{words}I", octets, at + 16))
        cycles.append(cycle)
        at += 16 + 4 * words
    return blocks, cycles


def run(
    sent: Sequence[Sent], tables: Sequence[tuple[int, int]], with_sdram: bool = False, number: int = 0, **options: int | str
) -> CaptureRun:
    """Send records, and return what the host got.

    Parameters
    ----------
    sent : records, those of a port in the order of time.
    tables : base and blocks of each channel.
    with_sdram : the ring is in SDRAM, not in block RAM.
    number : of the first block of each channel.
    options : of the bench, see capture_run.cpp.
    """
    executable = build(with_sdram, number)
    with TemporaryDirectory(dir=executable.parent) as folder:
        records, blocks = Path(folder) / "records", Path(folder) / "blocks"
        write_records(records, sent)
        channels = ",".join(f"{base}.{count}" for base, count in tables)
        settings = {**options, "number": number, "channels": channels}
        command = [str(executable), str(records), str(blocks), *[f"{name}={value}" for name, value in settings.items()]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the bench ended with {done.returncode}: {done.stderr[-1000:]}")
        found, cycles = read_blocks(blocks)
    counts = json.loads(done.stdout.splitlines()[-1])
    lists = {name: value for name, value in counts.items() if isinstance(value, list)}
    numbers = {name: value for name, value in counts.items() if isinstance(value, int) and not isinstance(value, bool)}
    return CaptureRun(found, cycles, numbers, lists, counts["has_all"])


def compare(sent: Sequence[CaptureRecord], got: Sequence[CaptureRecord | Gap]) -> list[str]:
    """Return where a channel's stream isn't what was sent, frame by frame; a gap stands for as many of them.

    ``sent``: of the channel, in the order in which the writer took them. Frames behind the last record must be told by a gap,
    too, or be left over: the number of those is told by the last entry's absence.
    """
    found = []
    at = 0
    for number, one in enumerate(got):
        if isinstance(one, Gap):
            if at + one.count > len(sent) or one.count == 0 or sent[at].stamp != one.stamp:
                found.append(f"record {number}: {one} where frame {at} of {len(sent)} was due")
                break
            at += one.count
        elif at >= len(sent) or sent[at] != one:
            found.append(f"record {number}: {one} where frame {at} of {len(sent)} was due")
            break
        else:
            at += 1
    if not found and at != len(sent):
        found.append(f"{len(sent) - at} frames at the end are neither there nor told of")
    return found


def streams(run_: CaptureRun, number: int = 0) -> list[list[CaptureRecord | Gap]]:
    """Return records and gaps of each channel."""
    return [list(decode(blocks, channel, number)) for channel, blocks in enumerate(run_.blocks)]
