# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends records through the capture of the gateware, compiled by Verilator, and holds what comes out against them."""

import json
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.cores.formats import CHANNELS
from liteprobe.sim.bench.capture.module import write_verilog
from liteprobe.sim.bench.tools.compiled import compiled_program
from liteprobe.sim.models.capture import BrokenBlockError, CaptureRecord, Gap, decode

MAIN = Path(__file__).with_name("capture_run.cpp")
PARTS = [MAIN.with_name(f"capture_{part}.h") for part in ("host", "line", "parts")]
PARTS += [MAIN.parents[1] / "memory" / name for name in ("chip.h", "checks.h")]
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
    """What a run gave: blocks of each channel that the host took, and what bench and gateware counted.

    ``order``: numbers of the records that the writer took, as it took them.
    """

    blocks: list[list[tuple[int, ...]]]
    cycles: list[int]
    order: list[int]
    counts: dict[str, int] = field(default_factory=dict)
    channels: dict[str, list[int]] = field(default_factory=dict)
    has_all: bool = False


@cache
def build(with_sdram: bool, number: int = 0, is_shared: bool = False) -> Path:
    """Return the executable, compiled if need be; ``number``: of the first block of each channel."""
    write = partial(write_verilog, with_sdram=with_sdram, number=number, is_shared=is_shared)
    return compiled_program("capture_bench", write, MAIN, PARTS)


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
    options : of the bench, see capture_run.cpp; ``hog``: the SDRAM has a clock of its own, and with 2 another user that bursts.
    """
    executable = build(with_sdram, number, "hog" in options)
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
        order = blocks.with_suffix(".order").read_bytes()
    counts = json.loads(done.stdout.splitlines()[-1])
    lists = {name: value for name, value in counts.items() if isinstance(value, list)}
    numbers = {name: value for name, value in counts.items() if isinstance(value, int) and not isinstance(value, bool)}
    taken = list(struct.unpack(f"<{len(order) // 4}I", order))
    return CaptureRun(found, cycles, taken, numbers, lists, counts["has_all"])


def differences(sent: Sequence[CaptureRecord], got: Sequence[CaptureRecord | Gap], untold: int = 0) -> list[str]:
    """Return where a channel's stream isn't what the writer took, frame by frame; a gap stands for as many of them.

    ``untold``: frames at the end, dropped, that no gap record could tell of.
    """
    at = 0
    for number, one in enumerate(got):
        count = one.count if isinstance(one, Gap) else 1
        is_right = at + count <= len(sent) and count > 0
        if isinstance(one, Gap):
            is_right = is_right and sent[at].stamp == one.stamp
        else:
            is_right = is_right and sent[at] == one
        if not is_right:
            return [f"record {number}: {one} where frame {at} of {len(sent)} was due"]
        at += count
    return [] if at + untold == len(sent) else [f"{len(sent) - at} frames at the end are missing, {untold} were dropped"]


def compare(sent: Sequence[Sent], run_: CaptureRun, number: int = 0) -> list[str]:
    """Return what is wrong with a run: a frame that is neither in its channel's stream nor reported, or a count.

    Where nobody frees room, drops at the end can't be told by a gap record; the channel's count tells of them.
    """
    found = [] if run_.has_all else ["blocks are missing"]
    if len(run_.order) + run_.counts["missed"] != len(sent):
        found.append(f"{len(run_.order)} records were taken, {run_.counts['missed']} came too fast for staging, of {len(sent)}")
    for channel, blocks in enumerate(run_.blocks):
        try:
            got = list(decode(blocks, channel, number))
        except BrokenBlockError as error:
            found.append(f"channel {channel}: {error}")
            continue
        wanted = [sent[place].record for place in run_.order if sent[place].record.channel == channel]
        untold = run_.channels["dropped"][channel] - sum(one.count for one in got if isinstance(one, Gap))
        found += [f"channel {channel}: {text}" for text in differences(wanted, got, untold)]
    return found
