# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what a tester is held to: both ports send at line rate, while both see, capture and measure all that arrives.

Prints one line a figure (``name value unit target ok|short``), writes build/bench/tester.json, and ends with 1 when one
falls short. The tester is the whole simulated probe, Etherbone in band on port 0, its ports joined by a cable, or, in
``hostile``, by a switch that loses, doubles and reorders. Not compared are the histograms of all frames of port 0, which
count requests of the host, too.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.cores.formats import MIN_LENGTH, TICK_NS, slot_octets
from liteprobe.host import Probe, TrainProgram
from liteprobe.host.base.defaults import PAPER_COUNTS
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.suites.sweep import programs_for
from liteprobe.sim.drivers.system.monitoring import PORTS
from liteprobe.sim.drivers.system.tester import CABLE, Findings, joined, send_and_see
from liteprobe.sim.drivers.tools.figures import Figure, note, row
from liteprobe.sim.system.build import build_probe

LENGTHS = (60, 64, 512, 1514)
LINE_TICKS = 250_000  # Of each length: 2 ms of the line.
HOSTILE_TICKS = 125_000


def measured(lengths: tuple[int, int], count: int, snap: int, wire: str = CABLE, spare_ticks: int = 0) -> Findings:
    """Return what became of ``count`` frames a port; what is off is printed."""
    build = build_probe("shared", with_cpu=False, preset="tester")
    with TemporaryDirectory() as files, joined(build, Path(files), wire) as tester:
        found = send_and_see(tester, lengths, count, snap, spare_ticks)
    for line in found.measures_off:
        note(f"{lengths} octets, {wire}: {line}")
    return found


def figures(name: str, found: Findings, frames: int) -> Iterator[Figure]:
    """Return what holds in every run."""
    yield Figure(f"{name}_frames", found.frames, "frames", frames, is_least=True)
    yield Figure(f"{name}_starts_off", found.starts_off, "frames", 0)
    yield Figure(f"{name}_stamps_off", found.stamps_off, "frames", 0)
    yield Figure(f"{name}_records_off", found.records_off, "records", 0)
    yield Figure(f"{name}_uncounted", abs(found.uncounted), "frames", 0)


@row("tester")
def test_line_rate(is_full: bool) -> Iterator[Figure]:
    """All frames are kept with 0 octets (short frames) or 64 of each: within what the ring takes at line rate."""
    for length in LENGTHS:
        count = LINE_TICKS * (10 if is_full else 1) // slot_octets(length)
        found = measured((length, length), count, 0 if length < 512 else 64)
        name = f"line_rate_{length}"
        yield from figures(name, found, PORTS * count)
        yield Figure(f"{name}_dropped", found.dropped, "frames", 0)
        yield Figure(f"{name}_measures_off", len(found.measures_off), "counters", 0)


@row("tester")
def test_beyond(is_full: bool) -> Iterator[Figure]:
    """Whole frames of 1514 octets at line rate are more than the ring takes: what is dropped is counted exactly."""
    count = LINE_TICKS * (20 if is_full else 4) // slot_octets(1514)
    found = measured((1514, 1514), count, 65535)
    yield from figures("beyond", found, PORTS * count)
    yield Figure("beyond_dropped", found.dropped, "frames", 1, is_least=True)


@row("tester")
def test_hostile(is_full: bool) -> Iterator[Figure]:
    """Random lengths and gaps from seeds, another length on each port, over a switch with faults of random strength."""
    for seed in range(1, 11 if is_full else 4):
        chance = random.Random(seed)
        lengths = (chance.randint(MIN_LENGTH, 1514), chance.randint(MIN_LENGTH, 1514))
        spare_ticks = chance.randint(16, 400)
        faults = "&".join(f"{fault}={chance.randint(1, 20)}%" for fault in ("loss", "duplicate", "reorder"))
        wire = f"switch?latency=2us&queue=1000&{faults}&reorder_by={chance.randint(1, 60)}us&seed={seed}"
        count = HOSTILE_TICKS // (slot_octets(max(lengths)) + spare_ticks)
        found = measured(lengths, count, 64, wire, spare_ticks)
        yield from figures(f"hostile_{seed}", found, count)
        yield Figure(f"hostile_{seed}_dropped", found.dropped, "frames", 0)
        yield Figure(f"hostile_{seed}_measures_off", len(found.measures_off), "counters", 0)


@row("tester")
def test_ticks(is_full: bool) -> Iterator[Figure]:
    """The demo's trains of 60 octets through a loopback: simulated ticks that carry frames; in the others records are fetched."""
    template = TrainProgram(length=60, count=1, repeats=100 if is_full else 10)
    programs = programs_for((60,), PAPER_COUNTS, template)
    with Probe(f"sim://loopback?build={build_probe('own')}") as probe:
        assert isinstance(probe.link, SimLink)
        start_ns = probe.link.now_ns()
        for program in programs:
            assert probe.train(program).complete
        passed = (probe.link.now_ns() - start_ns) / TICK_NS
    carry = sum(program.count * program.repeats * slot_octets(program.length) for program in programs)
    yield Figure("ticks_that_carry_frames", 100 * carry / passed, "%", 60, is_least=True)
