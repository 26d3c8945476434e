# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what a packet train is held to: every figure against its target, from the simulated probe and the builds.

Prints one line a figure (``name value unit target ok|short``), writes build/bench/train.json, and ends with 1 when one
falls short. Truth is what the simulation saw at the pins; the probe's own figures never judge themselves.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import board_builds
import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.host.analysis import arrivals, summary, truth
from liteprobe.host.analysis.calibration import calibrate, fit_line
from liteprobe.host.base.defaults import PAPER_LENGTHS, PAPER_REPEATS
from liteprobe.host.base.line import INCREMENT_ONE
from liteprobe.host.cli.commands import demo
from liteprobe.host.device.link import sim
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.probe import Probe
from liteprobe.host.suites import sweep
from liteprobe.host.traffic.train import FRACTION_ONE, TrainProgram, interval_ns_for_rate, schedule
from liteprobe.sim.drivers.tools.figures import ROOT, Figure, row

OVERHEAD = 24
TICK_NS = 8
LENGTHS = (*PAPER_LENGTHS, 9000)


class Bench:
    """Shares simulated probes between the measurements: built once, each run with its truth.

    Parameters
    ----------
    is_full : bool
        Whether the longer measurements run, too.
    folder : Path
        For truth files.
    """

    def __init__(self, is_full: bool, folder: Path) -> None:
        self.is_full = is_full
        self.folder = folder
        self._builds: dict[str, Path] = {}

    def build(self, link: str) -> Path:
        """Return the folder of a simulated probe."""
        if link not in self._builds:
            self._builds[link] = sim.build(sim.SimOptions(link=link))
        return self._builds[link]

    @contextmanager
    def probe(self, wire: str, link: str = "own") -> Iterator[tuple[Probe, Callable[[], NDArray[np.void]]]]:
        """Open a simulated probe; the second value returns its truth so far."""
        file = self.folder / "truth"
        with Probe(sim_url(wire, build=self.build(link), link=link, truth=file)) as probe:

            def rows() -> NDArray[np.void]:
                assert isinstance(probe.link, SimLink)
                probe.link.sync()
                return truth.read(file).copy()

            yield probe, rows


@pytest.fixture
def bench(is_full: bool, tmp_path: Path) -> Bench:
    """The simulated probes of a row."""
    return Bench(is_full, tmp_path)


# Transmit -----------------------------------------------------------------------------------------


@row("train")
def test_utilisation(bench: Bench) -> Iterator[Figure]:
    """Both ports at once, back to back: every start L + 24 octets after the last, at the pins."""
    programs = [TrainProgram(length, 1000, stream_id=7) for length in LENGTHS]
    with bench.probe("cable?delay=1us") as (probe, rows):
        for program in programs:
            probe.trains([(program, 0, 1), (program, 1, 0)])
        table = rows()
    totals = [program.total for program in programs]
    ports = [truth.programs(table, port, 1 - port, totals) for port in (0, 1)]
    for number, program in enumerate(programs):
        steps = np.concatenate([np.diff(found[number].sent) for found in ports])
        on_tick = 100 * float(np.mean(steps == program.slot_ticks))
        used = 100 * program.slot_ticks * len(steps) / int(steps.sum())
        yield Figure(f"utilisation_{program.length}", used, "%", 100, is_least=True)
        yield Figure(f"starts_on_octet_{program.length}", on_tick, "%", 100, is_least=True)
    apart = max(abs(int(one.sent[0]) - int(other.sent[0])) for one, other in zip(*ports, strict=True))
    yield Figure("ports_start_apart", apart, "ticks", 0)


def start_errors(program: TrainProgram, starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how far each start is behind the absolute schedule (ticks), exact to 2^-32 of a tick.

    A start on its tick, which is floor(number x interval), is behind by more than -1 and by 0 at most.
    """
    asked = schedule(program, 8 * INCREMENT_ONE)
    step = asked.interval_ticks * FRACTION_ONE + asked.interval_fraction
    ideal = [step * number for number in range(len(starts))]
    late = [int(start) * FRACTION_ONE - due for start, due in zip(starts - starts[0], ideal, strict=True)]
    return np.array([float(Fraction(part, FRACTION_ONE)) for part in late])


def on_tick(errors: NDArray[np.float64]) -> float:
    """Return which part of the starts is on its tick."""
    return float(np.mean((errors > -1) & (errors <= 0)))


@row("train")
def test_intervals(bench: Bench) -> Iterator[Figure]:
    """Intervals of any fraction of a tick: the absolute schedule is kept, and does not drift."""
    random = np.random.default_rng(2)
    count = 10_000 if bench.is_full else 2_000
    asked = [TrainProgram(60, 100_000, interval_ns=interval_ns_for_rate(60, 9.7e8))]
    for length in (60, 61, 300, 1514):
        rates = [1e9 / 3, *(1e9 * random.uniform(0.2, 0.9999, 2))]
        asked += [TrainProgram(length, count, interval_ns=interval_ns_for_rate(length, rate)) for rate in rates]
    errors = []
    with bench.probe("loopback") as (probe, rows):
        for program in asked:
            probe.train(program)
        found = truth.programs(rows(), 0, 0, [program.total for program in asked])
    for program, true in zip(asked, found, strict=True):
        errors.append(start_errors(program, true.sent))
    late = np.concatenate(errors)
    yield Figure("starts_on_tick", 100 * on_tick(late), "%", 100, is_least=True)
    yield Figure("starts_within_octet", 100 * float(np.mean(np.abs(late) <= 1)), "%", 100, is_least=True)
    yield Figure("start_error", float(np.abs(late).max()), "ticks", 1)
    # The error lies within a tick throughout: what its mean moves from the first tenth to the last is drift.
    tenth = len(errors[0]) // 10
    yield Figure("drift_over_100000", abs(errors[0][-tenth:].mean() - errors[0][:tenth].mean()), "ticks", 0.01)


@row("train")
def test_stamps(bench: Bench) -> Iterator[Figure]:
    """Stamps against the SFD at the pins, in a synchronous loopback."""
    programs = [TrainProgram(length, 200, stream_id=3) for length in LENGTHS]
    with bench.probe("loopback?delay=40ns") as (probe, rows):
        results = [probe.train(program) for program in programs]
        found = truth.programs(rows(), 0, 0, [program.total for program in programs])
    sent, came = [], []
    for result, true in zip(results, found, strict=True):
        arrived = arrivals.packets(result)
        sent.append(arrived.tx_stamp.astype(np.int64) - TICK_NS * true.departure_tick)
        came.append(arrived.rx_stamp.astype(np.int64) - TICK_NS * true.arrival_tick)
    yield Figure("tx_stamp_spread", float(np.ptp(np.concatenate(sent))) / TICK_NS, "ticks", 0)
    yield Figure("rx_stamp_spread", float(np.ptp(np.concatenate(came))) / TICK_NS, "ticks", 0)


@row("train")
def test_asynchronous() -> Iterator[Figure]:
    """RX stamps with every clock domain 100 ppm from the others: cocotb at the pins."""
    test = "sim/wire/receive/test_stamp_spread.py"
    subprocess.run([sys.executable, "-m", "pytest", "-q", test], cwd=ROOT, capture_output=True, check=False)
    for clocks in ("fast_wire", "slow_wire"):
        file = ROOT / "build" / "wire" / "stamp_spread" / f"{clocks}.json"
        spread = json.loads(file.read_text())["spread_ns"] / TICK_NS if file.exists() else float("nan")
        yield Figure(f"rx_stamp_spread_{clocks}", spread, "ticks", 1)


# Measurement --------------------------------------------------------------------------------------


@row("train")
def test_delay(bench: Bench) -> Iterator[Figure]:
    """The delay of each packet through a switch with other traffic, loss, copies and reordering."""
    wire = "switch?latency=3us&cross=0.4&loss=0.01&duplicate=0.01&reorder=0.02&reorder_by=30us&queue=200&seed=5"
    programs = [
        TrainProgram(length, 1000, 3 if bench.is_full else 1, interval_ns=interval_ns_for_rate(length, 5e8))
        for length in PAPER_LENGTHS
    ]
    with bench.probe(wire) as (probe, rows):
        results = [probe.train(program) for program in programs]
        found = truth.programs(rows(), 0, 1, [result.sent for result in results])
    worst, missing = 0, 0
    for result, true in zip(results, found, strict=True):
        arrived = arrivals.packets(result)
        worst = max(worst, int(np.abs(truth.deviations_ns(arrived.sequence, arrived.owd_ns, true)).max()))
        missing += len(np.unique(true.sequence)) - len(arrived.sequence)
    yield Figure("delay_error", worst, "ns", 8)
    yield Figure("packets_not_measured", missing, "packets", 0)


@row("train")
def test_capacity(bench: Bench) -> Iterator[Figure]:
    """Capacity of trains of 100 frames of 1514 octets, and by pairs behind loaded hops."""
    program = TrainProgram(1514, 100, 5, gap_ns=2e6)
    for name, wire, rate in (("line", "switch?rate=1G", 1e9), ("narrow", "switch?rate=100M&queue=200", 1e8)):
        with bench.probe(wire) as (probe, rows):
            probe.link.arrival_timeout_s = 0.02  # The narrow link takes 12 ms for a train.
            result = probe.train(replace(program, gap_ns=1.2e7 if rate < 1e9 else 1e5))
            true = truth.programs(rows(), 0, 1, [result.sent])[0]
        known = truth.pin_figures(true, program.count, program.length, np.zeros(0, np.int64))["dispersion_rate_bps"]
        mean = summary.row(result)["dispersion_rate_bps"]["mean"]
        assert mean is not None and known is not None
        yield Figure(f"capacity_{name}_off_pins", 1e6 * abs(mean / known - 1), "ppm", 10)
        yield Figure(f"capacity_{name}_off_rate", 1e6 * abs(mean / rate - 1), "ppm", 10)
    for load in (0.5, 0.7) if bench.is_full else (0.5,):
        wire = f"switch?rate=100M&cross2={load}&queue=1000&seed=3"
        programs = sweep.programs_for((60, 1514), (10,), TrainProgram(60, 1, 100, gap_ns=1.4e6))
        with bench.probe(wire) as (probe, _):
            done = sweep.run(sweep.SweepRequest(wire, wire, programs, waiting_time_ns=20_000_000), probe=probe)
        found = done.rows[-1]["capacity"]["bps"] or float("nan")  # Of both lengths: one alone claims nothing here.
        yield Figure(f"capacity_behind_load_{load:g}", 100 * abs(found / 1e8 - 1), "%", 0.1)


@row("train")
def test_calibration(bench: Bench) -> Iterator[Figure]:
    """The line of calibration through a loopback of 1 us, against the same line through the truth."""
    programs = [TrainProgram(length, 100, 10) for length in PAPER_LENGTHS]
    with bench.probe("loopback?delay=1us") as (probe, rows):
        results = [probe.train(program) for program in programs]
        found = truth.programs(rows(), 0, 0, [result.sent for result in results])
    line = calibrate([summary.row(result) for result in results]).line
    lengths = np.concatenate(
        [np.full(len(true.owd_ns), program.length) for program, true in zip(programs, found, strict=True)]
    )
    known = fit_line(lengths, np.concatenate([true.owd_ns for true in found]))
    yield Figure("calibration_slope", abs(line.slope - known.slope), "ns/B", 0.001)
    yield Figure("calibration_intercept", abs(line.intercept - known.intercept), "ns", 1)
    yield Figure("calibration_off_wire", abs(line.intercept - 1000), "ns", 1)


# Speed --------------------------------------------------------------------------------------------


@row("train")
def test_speed(bench: Bench) -> Iterator[Figure]:
    """Simulated ticks a second of the whole SoC, its softcore included, with both ports at line rate."""
    program = TrainProgram(1514, 1000, 1, stream_id=2)
    bench.build("own")
    spent = cpu_seconds()
    with bench.probe("cable?delay=1us") as (probe, _):
        before, started = probe.timebase.ticks, time.monotonic()
        probe.trains([(program, 0, 1), (program, 1, 0)])
        ticks = probe.timebase.ticks - before
        seconds = time.monotonic() - started
    yield Figure("simulation_speed", ticks / seconds / 1e6, "Mticks/s", 0.5, is_least=True)
    # On a machine that does other things, too, the time on the wall says less than that on the core.
    yield Figure("simulation_speed_of_core", ticks / (cpu_seconds() - spent) / 1e6, "Mticks/s", 0.5, is_least=True)


def cpu_seconds() -> float:
    """Return the processor time of all processes that were started and have ended (s)."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@row("train", is_long=True)
def test_paper(bench: Bench) -> Iterator[Figure]:
    """The paper's table 1 (and a loaded switch): 7 sizes, 100 and 1000 frames, 10 repeats, loopback and switch."""
    requests = demo.requests(bench.folder, bench.build("own"), PAPER_REPEATS)
    started = time.monotonic()
    sweep.run_together(requests, lambda number, sent, total: None)
    yield Figure("paper_table_1", time.monotonic() - started, "s", 300)


# Management in band -------------------------------------------------------------------------------


@row("train")
def test_in_band(bench: Bench) -> Iterator[Figure]:
    """A storm of register reads over the port that sends: every start keeps its tick, and no read fails."""
    for load in (50, 99):
        interval_ns = interval_ns_for_rate(1514, 1e7 * load)
        program = TrainProgram(1514, 1000 if bench.is_full else 300, interval_ns=interval_ns)
        reads = 0

        def storm(sent: int, total: int) -> None:
            nonlocal reads
            for _ in range(50):
                reads += probe.registers.read("probe_ports") == len(probe.ports)

        with bench.probe("cable?delay=1us", "shared") as (probe, rows):
            result = probe.train(program, 0, 1, storm)
            true = truth.programs(rows(), 0, 1, [result.sent])[0]
        kept = on_tick(start_errors(program, true.sent)) * (result.sent == program.total)
        yield Figure(f"in_band_starts_on_tick_{load}", 100 * kept, "%", 100, is_least=True)
        yield Figure(f"in_band_late_{load}", result.late, "frames", 0)
        yield Figure(f"in_band_dropped_{load}", result.counters["transmit_management_dropped"], "replies", 0)
        yield Figure(f"in_band_reads_{load}", reads, "reads", 50, is_least=True)
        if load == 99:
            yield Figure("in_band_held_99", result.counters["management_held"], "replies", 1, is_least=True)


# Boards -------------------------------------------------------------------------------------------


@row("train", is_long=True)
def test_board() -> Iterator[Figure]:
    """Colorlight 5A-75B with two ports, VexRiscv and Etherbone in band, no discipline: three seeds in strict timing."""
    folder = Path("build/colorlight_5a_75b_train")
    yield from board_builds.figures(folder, "--no-discipline")
    report = board_builds.build(folder, "--no-discipline")
    if report:
        yield Figure("source_to_bitstream", report["seconds"]["total"], "s", 300)
