# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the bench ``tengig``: cores and probe of 10 Gb/s in simulation, against models of the line, and their area by Yosys.

No board, no transceiver and no route is in any of these figures.
"""

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from litex.gen.fhdl.verilog import convert
from parsed_frames import captured, parsed

from liteprobe.cores.formats import OVERHEAD
from liteprobe.cores.formats.xgmii import COLUMN
from liteprobe.host.base.line import TEN_GIGABIT
from liteprobe.host.suites import sweep
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.stream import Stream
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.frames import stacks, truth
from liteprobe.sim.drivers.receive.unified import UnifiedRun
from liteprobe.sim.drivers.tools import native_yosys
from liteprobe.sim.drivers.tools.figures import Figure, Size, drawn, note, row
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.drivers.tools.processes import run_group
from liteprobe.sim.drivers.xgmii import parse, pcs, replay, schedule, streams, train
from liteprobe.sim.drivers.xgmii.mac import Sending, XgmiiBench, run, wrong_received, wrong_sent
from liteprobe.sim.drivers.xgmii.replay import XgmiiReplayBench
from liteprobe.sim.drivers.xgmii.train import Loop, Program, XgmiiTrainBench
from liteprobe.sim.models import baser, xgmii
from liteprobe.sim.models.traffic.trains import ProbeFrame
from liteprobe.sim.system.build import write_verilog
from liteprobe.sim.system.xgmii.build import build_probe, make_soc

LENGTHS = (*range(60, 1515), 9000)
SIZES = (60, 124, 252, 508, 1020, 1276, 1514)  # The seven of RFC 2544, without FCS.
DELAY_CYCLES = 2001  # Of which one is none: a word is taken in the cycle in which it was sent.
CHUNK = 200  # Lengths in one run.
OCTET_NS, SWITCH_NS = 0.8, 3000
MANY = 10**7  # More frames than any run has.
WIRES = {"loopback": "sim10g://loopback", "switch": f"sim10g://switch?latency={SWITCH_NS}ns"}
DEVICE_LUTS = 203_800  # XC7K325T.
#: LUTs of two ports of FlueNT10G, all of it; a quarter is what two ports of ours may take with all of theirs.
OTHERS_LUTS = 102_636
LUTS = {
    **{f"LUT{n}": 1 for n in range(1, 7)},
    "SRL16E": 1,
    "SRLC32E": 1,
    "RAM32M": 4,
    "RAM64M": 4,
    "RAM32X1D": 2,
    "RAM64X1D": 2,
}
TOP = "core"
YOSYS = f"read_verilog -sv *.v; synth_xilinx -family xc7 -flatten -abc9 -noiopad -top {TOP}; write_json core.json"
BLOCK_RAMS = {"RAMB36E1": 1.0, "RAMB18E1": 0.5}


def of_bench(make: Callable[[], PinnedBench]) -> Callable[[Path], None]:
    """Return what writes the Verilog of a bench into a folder."""

    def write(folder: Path) -> None:
        bench = make()
        with contextlib.chdir(folder):  # Initial values of memories come beside it.
            convert(bench, ios=bench.pins, name=TOP).write(f"{TOP}.v")

    return write


def of_probe(folder: Path) -> None:
    """Write the Verilog of the simulated probe of two ports into a folder: all but transceivers and their clocks."""
    write_verilog(make_soc(), folder, TOP)


def of_generator(folder: Path) -> None:
    """Write the Verilog of one that sends 16 streams a port and measures 31, with histograms."""
    write_verilog(make_soc("generator"), folder, TOP)


#: Modules, and what each may take: LUTs, flip-flops, LUTs between two registers.
PARTS: dict[str, tuple[Callable[[Path], None], int, int, int]] = {
    "mac": (of_bench(XgmiiBench), OTHERS_LUTS // 4 // 8, 2_500, 8),
    "pcs": (of_bench(pcs.PcsBench), OTHERS_LUTS // 4 // 8, 2_500, 8),
    "port": (of_bench(XgmiiTrainBench), OTHERS_LUTS // 4 // 4, 6_000, 8),
    "replay": (of_bench(XgmiiReplayBench), OTHERS_LUTS // 4 // 4, 6_000, 8),
    "probe": (of_probe, OTHERS_LUTS // 4, 30_000, 30),
    "generator": (of_generator, OTHERS_LUTS // 4, 40_000, 30),
}


# The line ------------------------------------------------------------------------------------------


@row("tengig")
def test_utilisation(size: Size) -> Iterator[Figure]:
    """Frames of each length from 60 to 1514 octets and of 9000, back to back: starts, octets, FCS and the share of the line."""
    chance, each = drawn(), size.of(4, 64, 256)
    wrong, off, slots, span, frames = 0, 0, 0, 0, 0
    for first in range(0, len(LENGTHS), CHUNK):
        lengths = [length for length in LENGTHS[first : first + CHUNK] for _ in range(each)]
        sent = [Sending(chance.randbytes(length)) for length in lengths]
        done = run(sent)
        starts, _ = xgmii.frames_on(done.sent)
        wrong += len(wrong_sent(sent, done))
        off += sum(start - starts[0] != due for start, due in zip(starts, xgmii.back_to_back(lengths), strict=True))
        slots += sum(length + 24 for length in lengths[:-1])
        span += starts[-1] - starts[0]
        frames += len(starts)
    yield Figure("utilisation_frames", frames, "frames", each * len(LENGTHS), is_least=True)
    yield Figure("utilisation", round(100 * slots / span, 3), "%", 100, is_least=True)
    yield Figure("utilisation_starts_off_theory", off, "frames", 0)
    yield Figure("utilisation_octets_fcs_or_starts_wrong", wrong, "", 0)


@row("tengig")
def test_hostile(size: Size) -> Iterator[Figure]:
    """Runts, gaps from one octet on, wrong lanes, error characters, faults and noise: counts and frames against the model."""
    chance = drawn()
    wrong, seen, faults, errors = 0, 0, 0, Counter[str]()
    for _ in range(size.of(1, 4, 40)):
        line = xgmii.hostile(size.of(5_000, 25_000), chance.randrange(2**32))
        done = run([Sending(chance.randbytes(60 + n % 99)) for n in range(1000)], line)
        found = wrong_received(line, done)
        note(*(f"# {one[:200]}" for one in found[:5]))
        wrong += len(found)
        seen += done.counts["frame_count"]
        faults += len(done.faults)
        errors.update(done.counts)
    note("# " + ", ".join(f"{name} {count}" for name, count in errors.items()))
    yield Figure("hostile_frames", seen, "frames", 90_000 if size else 4_000, is_least=True)
    yield Figure("hostile_changes_of_the_link", faults, "", 100 if size else 10, is_least=True)
    yield Figure("hostile_differences", wrong, "", 0)


@row("tengig")
def test_pcs(size: Size) -> Iterator[Figure]:
    """The hostile line as blocks of 66 bits, from each bit on that a gearbox may begin at, clocks 100 ppm apart both ways."""
    chance, wrong, words, stray = drawn(), 0, 0, 0
    for offset in range(0, 66, size.of(22, 1, 1)):
        line = pcs.after_idle(xgmii.Line.read(xgmii.hostile(size.of(100, 500, 5_000), offset).words()), 6_000)
        rows = baser.encoded(line)
        done = pcs.run(line, baser.scrambled(rows).reshape(-1), offset, chance.choice((-100, 0, 100)))
        received, wanted = pcs.trimmed(done.received), pcs.trimmed(baser.decoded(rows))
        wrong += int(received != wanted) + int(len(done.slips) % 66 != -offset % 66)
        sent = done.bits().reshape(-1, 66)
        wrong += int(rows.tobytes() not in baser.plain(sent).tobytes())
        stray += sum(done.counts[name] for name in ("tx_lost", "tx_missed", "rx_lost", "rx_missed"))
        words += len(wanted[0]) + len(rows)
    yield Figure("pcs_words", words, "words", 500_000 if size else 1_000, is_least=True)
    yield Figure("pcs_lines_that_differ", wrong, "", 0)
    yield Figure("pcs_blocks_lost_or_missed", stray, "", 0)


@row("tengig")
def test_parser(size: Size) -> Iterator[Figure]:
    """Foreign frames back to back through receiver and parser: each unified header as the model's, and as tshark has it.

    As a test a few of those that are made; in the bench all of the captures, and the broken ones of the row `monitor fuzz`.
    """
    frames = [*stacks.fuzz(size.of(500, 100_000), seed=4), *(captured() if size else ())]
    spans = list[float]()

    def parser(sent: Sequence[bytes]) -> UnifiedRun:
        done = parse.run(sent)
        spans.append(done.cycles * 8 / sum(len(frame) + 24 for frame in sent))
        return done

    yield from parsed("parser", frames, parser)
    yield Figure("parser_line", round(100 / spans[0], 3), "%", 99.99, is_least=True)


# Trains -------------------------------------------------------------------------------------------


@row("tengig")
def test_trains(size: Size) -> Iterator[Figure]:
    """Trains of 100 and 1000 frames of seven sizes over a loop of 12.8 us: starts, records, span and one-way delay.

    Back to back, at 90 % with a fraction, and with the receiver's clock 100 ppm away, which may take a cycle from each arrival.
    """
    wrong, spread, most, frames = 0, 0, 0, 0
    for count in size.of((100,), (100, 1000), (1000, 10_000)):
        for length in SIZES:
            slot, frame = length + 24, ProbeFrame(length)
            programs = [
                Program(count, length=length),
                Program(count, 1, slot * 10 // 9, slot * 10 % 9 * 2**32 // 9, 0, length),
            ]
            for rx_fs in (6_400_000, 6_400_640, 6_399_360):
                done = train.run(programs[rx_fs != 6_400_000 :], frame, Loop(DELAY_CYCLES, rx_fs))
                found = train.wrong(programs[rx_fs != 6_400_000 :], frame, done)
                found += train.wrong_records(frame, done, 0 if rx_fs == 6_400_000 else 6.4)
                note(*(f"# {length} octets: {one[:200]}" for one in found[:3]))
                wrong += len(found)
                frames += len(done.records)
                if rx_fs != 6_400_000:
                    continue
                owd = done.records["arrival"].astype(int) - done.records["sent"].astype(int)
                spread = max(spread, int(abs(owd - round(6.4 * (DELAY_CYCLES - 1))).max()))
                most = max(most, abs(done.starts[count - 1] - done.starts[0] - slot * (count - 1)))
    yield Figure("trains_records", frames, "frames", 3_000, is_least=True)
    yield Figure("trains_starts_octets_stamps_or_records_wrong", wrong, "", 0)
    yield Figure("trains_delay_off_theory", spread, "ns", 1)
    yield Figure("trains_span_off_theory", most, "octets", 3)


@row("tengig")
def test_schedule(size: Size) -> Iterator[Figure]:
    """Frames of 60 to 1514 octets with exponential gaps at 8 Gb/s: starts off their column. ``--full``: a million of them.

    Descriptors come by pins; `replay` reads frames from a memory.
    """
    frames = schedule.poisson(size.of(2_000, 50_000, 1_000_000), 0.8, drawn().randrange(2**32))
    done = schedule.run(frames)
    note(f"# {10 * (frames['length'] + 24).sum() / done.starts[-1]:.3f} Gb/s with overhead")
    yield Figure("schedule_frames", done.sent, "frames", len(frames), is_least=True)
    yield Figure("schedule_starts_off", schedule.off_schedule(frames, done), "frames", 0)


# Replay -------------------------------------------------------------------------------------------

PROGRAM_FRAMES = 50_000  # Of a program: their octets are held here.
#: A DDR3's: 256 ns to what is asked for, and a refresh of up to 400 ns each 7 us or so.
DDR3 = replay.Memory(latency=40, stall_every=1000, stall=63)


@row("tengig")
def test_replay(size: Size) -> Iterator[Figure]:
    """Traces with exponential gaps at 8 Gb/s, frames of 60 to 1514 octets without FCS, from a memory: starts off, octets.

    ``--full``: a million of them.
    """
    chance, left = drawn(), size.of(2_000, 50_000, 1_000_000)
    frames, off, wrong, octets, ticks = 0, 0, 0, 0, 0
    while left:
        count = min(left, PROGRAM_FRAMES)
        sent = replay.poisson(count, 0.8, chance.randrange(2**32))
        program = replay.Program(sent, replay.words_of(sent), memory=DDR3)
        [done] = replay.run([program], chance.randrange(2**16))
        found = replay.wrong(program, done)
        note(*(f"# {one[:200]}" for one in found[:3]))
        frames, left = frames + len(done.frames), left - count
        off, wrong = off + replay.off_schedule(program, done), wrong + len(found)
        octets += sum(len(one) + 20 for one in done.frames[:-1])
        ticks += done.places[-1] - done.places[0]
    note(f"# {10 * octets / ticks:.3f} Gb/s with overhead")
    yield Figure("replay_frames", frames, "frames", size.of(2_000, 50_000, 1_000_000), is_least=True)
    yield Figure("replay_starts_off_their_column", off, "frames", 0)
    yield Figure("replay_octets_starts_or_counts_wrong", wrong, "", 0)


# Streams ------------------------------------------------------------------------------------------


def filling(lengths: Sequence[int], frames: int) -> list[Stream]:
    """Return streams for both ports that fill the line, one of each length, each with an equal share; so many frames a port."""
    share = Fraction(1, len(lengths))
    slots = [length + OVERHEAD for length in lengths]
    return [
        Stream(
            f"{port}-{number}",
            number + 1,
            Fixed(length),
            Interval(share=share),
            max(2, frames * max(slots) // len(lengths) // slots[number]),
            port=port,
            fill="counting",
            line=TEN_GIGABIT,
        )
        for port in (0, 1)
        for number, length in enumerate(lengths)
    ]


@row("tengig")
def test_streams(size: Size) -> Iterator[Figure]:
    """1 and 16 streams on both ports at once, by the host's means: starts, octets, FCS and stamps at the pins; share of the line.

    One stream of 60 to 67 octets, of 508, 1514 and 9000; 16 streams of each of these, and of 16 lengths together: of all from 60
    to 1514 with ``--full``, else of every fifteenth such set.
    """
    alone = [60, 63, 1514] if not size else [*range(60, 68), 508, 1514, 9000]
    mixed = [range(first, first + 16) for first in range(60, 1499, size.of(700, 240, 16))]
    asked = [[length] for length in alone] + [[length] * 16 for length in alone] + [list(one) for one in mixed]
    found, frames, slots, span, late = [], 0, 0, 0, 0
    with TemporaryDirectory() as name, streams.opened("cable?delay=1us", build_probe("generator"), Path(name)) as probe:
        counts = [0, 0]
        for lengths in asked:
            sent = filling(lengths, size.of(32, 96, 320))
            result = probe.send(sent).result()
            late += sum(row.late or 0 for row in result.rows)
            found += [f"{row.name}: {row.received} of {row.sent}" for row in result.rows if row.received != row.sent]
            for port in (0, 1):
                own = [one for one in sent if one.port == port]
                left = streams.left_of(probe, Path(name), port)
                wanted = streams.wanted(own, MANY)
                found += streams.wrong(left.since(counts[port]), own, wanted)
                counts[port] = len(left.frames)
                part, whole = streams.share_of_line(wanted)
                frames, slots, span = frames + len(wanted), slots + part, span + whole
        rows = truth.read_truth(Path(name) / "truth")
        bad = sum(int((truth.frames_out(rows, port)["flags"] & truth.BAD_FCS != 0).sum()) for port in (0, 1))
    note(*(f"# {one[:200]}" for one in found[:5]))
    yield Figure("streams_frames", frames, "frames", 500 if not size else 4_000, is_least=True)
    yield Figure("streams_utilisation", round(100 * slots / span, 3), "%", 99.99, is_least=True)
    yield Figure("streams_starts_octets_stamps_or_counts_wrong", len(found), "", 0)
    yield Figure("streams_fcs_wrong", bad, "", 0)
    yield Figure("streams_late_though_the_line_was_free", late, "", 0)


# The probe -----------------------------------------------------------------------------------------


def delays_in_theory(wire: str, length: int, count: int) -> list[int]:
    """Return the one-way delay of each frame of a train back to back (octets).

    A loopback has a column. The switch stores a frame whole, so the next one leaves it a slot later; frames start in columns: those
    that leave the probe in the one of their octet or before, those that come to it in theirs or after.
    """
    if wire == "loopback":
        return [COLUMN] * count
    slot, through = length + 24, 8 + length + 4 + round(SWITCH_NS / OCTET_NS)
    return [-(-(through + n * slot) // COLUMN) * COLUMN - n * slot // COLUMN * COLUMN for n in range(count)]


@row("tengig")
def test_paper(size: Size) -> Iterator[Figure]:
    """The packet-train paper's tables by `liteprobe train`'s own sweep on sim10g://: N of 100 and 1000, seven sizes, two wires.

    Throughput by the dispersion of each train, and the delay of each frame, against arithmetic; theirs are 0 to 64 ns off.
    """
    records, missing, span_off, delay_off = 0, 0, 0.0, 0.0
    for wire, url in WIRES.items():
        programs = sweep.programs_for(SIZES, size.of((100,), (100, 1000), (100, 1000, 10_000)), TrainProgram(60, 1))
        done = sweep.run(sweep.SweepRequest(wire, url, programs))
        for result, one in zip(done.results, done.rows, strict=True):
            program = result.program
            theory = np.array(delays_in_theory(wire, program.length, program.count))
            found = result.records["rx_stamp"].astype(np.int64) - result.records["tx_stamp"].astype(np.int64)
            records += len(found)
            missing += program.count - len(found) + one["late"]
            if len(found) != program.count:
                continue
            span = float(result.records["rx_stamp"][-1] - result.records["rx_stamp"][0])
            due = OCTET_NS * (program.count - 1) * (program.length + 24)
            span_off = max(span_off, abs(span - due))
            delay_off = max(delay_off, float(np.abs(found - OCTET_NS * theory).max()))
            note(
                f"# {wire}, {program.length + 4} octets, N = {program.count}: "
                f"{1e4 * due / span:.3f} of {one['theory_bps'] / 1e6:.3f} Mb/s, "
                f"{one['owd_ns']['mean']:.2f} of {OCTET_NS * theory.mean():.2f} ns"
            )
    yield Figure("paper_records", records, "frames", 1_400, is_least=True)
    yield Figure("paper_frames_late_or_without_record", missing, "frames", 0)
    yield Figure("paper_train_off_theory", round(span_off, 2), "ns", 4.2)
    yield Figure("paper_delay_off_theory", round(delay_off, 2), "ns", 1.02)


# Area ---------------------------------------------------------------------------------------------


@cache
def cells(write: Callable[[Path], None]) -> dict[str, Any]:
    """Return the cells that Yosys makes of a module for the 7 series, without pads."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        (folder / "core.ys").write_text(YOSYS.replace("; ", "\n") + "\n", encoding="utf-8")
        done = run_group([sys.executable, native_yosys.__file__, "-q", "core.ys"], folder)
        if done.returncode:
            raise RuntimeError(f"yosys failed: {done.stderr[-1000:]}")
        modules: dict[str, Any] = json.loads((folder / "core.json").read_text(encoding="utf-8"))["modules"]
        return dict(modules[TOP]["cells"])


def levels(found: dict[str, Any]) -> int:
    """Return the LUTs on the longest path between two registers; a carry chain between two of them counts none."""
    drivers: dict[int, str] = {}
    inputs: dict[str, list[int]] = {}
    for name, cell in found.items():
        if not cell["type"].startswith(("LUT", "CARRY", "MUXF", "INV")):
            continue
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "output":
                drivers.update({bit: name for bit in bits if isinstance(bit, int)})
            else:
                inputs.setdefault(name, []).extend(bit for bit in bits if isinstance(bit, int))

    @cache
    def depth(name: str) -> int:
        own = int(found[name]["type"].startswith("LUT"))
        return own + max((depth(drivers[bit]) for bit in inputs.get(name, []) if bit in drivers), default=0)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        return max(map(depth, set(drivers.values())))
    finally:
        sys.setrecursionlimit(limit)


@row("tengig")
@pytest.mark.parametrize("part", PARTS)
def test_area(part: str) -> Iterator[Figure]:
    """LUTs, flip-flops and the longest chain of LUTs by Yosys alone: a port's MAC, a port with its clock, probes of two ports.

    What replays is measured with its pacer and the MAC's transmitter.

    The probes have all that the simulated ones have: registers, accumulators, rings or streams and histograms, management.
    """
    write, luts_most, flip_flops_most, levels_most = PARTS[part]
    found = cells(write)
    kinds = Counter(str(cell["type"]) for cell in found.values())
    luts = sum(each * kinds[kind] for kind, each in LUTS.items())
    note(
        f"# {dict(sorted(kinds.items()))}",
        f"# {100 * luts / DEVICE_LUTS:.2f} % of the LUTs of an XC7K325T, "
        f"{sum(each * kinds[kind] for kind, each in BLOCK_RAMS.items()):g} block RAMs; nothing was placed",
    )
    yield Figure(f"area_{part}_luts", luts, "LUTs", luts_most)
    yield Figure(
        f"area_{part}_flip_flops",
        sum(count for kind, count in kinds.items() if kind.startswith("FD")),
        "",
        flip_flops_most,
    )
    yield Figure(f"area_{part}_levels", levels(found), "LUTs", levels_most)
