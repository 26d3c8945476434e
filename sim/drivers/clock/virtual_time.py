# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs the firmware's servo against modelled oscillators and receivers, hours in seconds.

A run is a list of events in the order of ticks (pulses as the gateware captures them, silences, looks at the truth).
What the events are doesn't depend on the servo, so every servo can be run on the same ones.
"""

import os
import shutil
import subprocess
from dataclasses import astuple, dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.models.clock.oscillator import Oscillator
from liteprobe.sim.models.clock.other_servos import OtherServo
from liteprobe.sim.models.clock.receiver import Pulses
from liteprobe.sim.system.compile_once import kept_object

ROOT = Path(__file__).resolve().parents[3]
LIBRARY = ROOT / "firmware" / "lib"
PROGRAMS = ROOT / "firmware" / "tests" / "host"
BUILD = ROOT / "build" / "firmware-host"
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror")

EDGE, SILENCE, TRUTH, STEP = range(4)
QERR, SECOND, BUSY = 1, 2, 4
FREE_RUNNING, ACQUIRING, LOCKED, HOLDOVER = 1, 2, 3, 4

TICK_NS = 8
# A PPS is at a whole second; any will do.
START_NS = 1_700_000_000 * 10**9

EVENT = np.dtype([
    ("kind", "u4"), ("flags", "u4"), ("ticks", "u8"), ("fraction", "u4"), ("qerr_ps", "i4"), ("latency", "u4"),
    ("latency_true", "u4"), ("value", "i8"),
])
ANSWER = np.dtype([
    ("error", "i8"), ("increment", "u8"), ("behind", "i8"), ("state", "u4"), ("is_used", "u4"), ("uncertainty", "u4"),
    ("offset", "i4"), ("rate", "i4"), ("drift", "i4"), ("rejected", "u4"), ("has_adjust", "u4"), ("jumps", "u4"),
    ("has_jumped", "u4"),
])


@dataclass(frozen=True)
class ServoConfig:
    """``struct lp_servo_config``, in its order and with its defaults."""

    increment: int = 8 << 40
    period_ns: int = 10**9
    quantum_ps: int = 8000
    noise_ps: int = 2000
    sawtooth_ps: int = 25_000
    wander_ps: int = 700
    phase_walk_ps: int = 300
    rate_walk_ppq: int = 60_000
    drift_walk_ppq: int = 14_000
    jerk_ppq: int = 2500
    rate_limit_ppm: int = 200
    lock_ns: int = 60
    jump_ns: int = 2000
    lost_ns: int = 1_000_000


@dataclass(frozen=True)
class Timing:
    """Times things that are not a pulse.

    Parameters
    ----------
    period_s : of the pulse.
    tick_ns : of the oscillator, nominal.
    latency_s, jitter_s : from a pulse until the new increment is in force, and how far off the servo's idea of it is.
    quantum_ns : of the capture, a tick or a part of one.
    """

    period_s: float = 1.0
    tick_ns: float = 8.0
    latency_s: float = 2.5e-3
    jitter_s: float = 0.25e-3
    quantum_ns: float = 8.0


@dataclass(frozen=True)
class Run:
    """Holds the result of a run.

    Attributes
    ----------
    answers : ANSWER of each event.
    time_s, error_ns, bound_ns, state : at each look at the truth; the bound is the one reported last.
    edges : ANSWER of each pulse.
    """

    answers: NDArray[np.void]
    time_s: NDArray[np.float64]
    error_ns: NDArray[np.float64]
    bound_ns: NDArray[np.float64]
    state: NDArray[np.uint32]
    edges: NDArray[np.void] = field(repr=False)


def compile_program(name: str, sanitize: bool = False) -> Path:
    """Compile firmware/tests/host/<name>.c with the libraries; the path of the program, cached by content.

    The libraries are one object, which all programs share.
    """
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("there is no C compiler: install gcc (./run does), or name one in CC")
    sources, source = sorted(LIBRARY.glob("*/*.c")), PROGRAMS / f"{name}.c"
    options = ["-std=c11", "-g", *WARNINGS, *(SANITIZERS if sanitize else ()), "-O2", f"-I{LIBRARY}"]
    headers = sorted(LIBRARY.glob("*/*.h"))
    texts: list[str | bytes] = [repr([compiler, options]), *(path.read_bytes() for path in [*sources, *headers])]

    def compile_(*more: Path | str) -> None:
        subprocess.run([compiler, *options, *more], check=True)

    library = kept_object(BUILD, "libraries", texts, lambda new: compile_("-r", "-nostdlib", *sources, "-o", new))
    texts.append(source.read_bytes())
    return kept_object(BUILD, name, texts, lambda new: compile_(source, library, "-o", new), suffix="")


def events(
    oscillator: Oscillator,
    received: Pulses,
    count: int,
    timing: Timing | None = None,
    seed: int = 0,
    exact: bool = False,
) -> NDArray[np.void]:
    """Return the events of ``count`` periods: pulses, silences where there was none, four looks at the truth each.

    ``exact``: pulses keep the fraction of their tick, which no gateware knows (for ``run_other(on_grid=True)``).
    """
    timing = timing or Timing()
    generator = np.random.default_rng([seed, 3])
    period = timing.period_s
    looks = (np.arange(1, count + 1)[:, None] + np.array([-0.5, -0.25, 0, 0.25])).ravel() * period
    true_pulse = ~received.is_spurious
    with_pulse = np.isin(np.rint(np.arange(1, count + 1)), np.rint(received.time_s[true_pulse] / period))
    silences = (np.arange(1, count + 1)[~with_pulse] + 0.4) * period

    table = np.zeros(len(looks) + len(silences) + len(received.time_s), EVENT)
    table["kind"] = np.repeat([TRUTH, SILENCE, EDGE], [len(looks), len(silences), len(received.time_s)])
    true_s = np.concatenate([looks, silences, received.time_s])
    late_ns = np.zeros(len(table))
    late_ns[len(looks) + len(silences) :] = received.late_ns
    # Whole ticks of true time and the rest apart: a double alone would lose picoseconds.
    whole = np.rint(true_s * 1e9 / timing.tick_ns)
    rest = (
        true_s * 1e9 - whole * timing.tick_ns + late_ns + oscillator.ahead_ns(true_s + 1e-9 * late_ns)
    ) / timing.tick_ns
    ticks = whole.astype(np.int64) + np.floor(rest).astype(np.int64)
    fraction = rest - np.floor(rest)
    is_look = table["kind"] == TRUTH
    keeps = is_look | exact
    table["ticks"] = np.where(keeps, ticks, ticks + (fraction > 0))
    # A finer capture sees the first quantum that ends after the edge, and how long before the tick that was.
    early_ps = 1e3 * timing.quantum_ns * np.floor((1 - fraction) * timing.tick_ns / timing.quantum_ns) * (fraction > 0)
    table["fraction"] = np.where(keeps, np.floor(fraction * 2**32), np.rint(early_ps))
    table["value"] = START_NS + np.rint(true_s * 1e9).astype(np.int64)
    qerr = np.concatenate([np.full(len(table) - len(received.qerr_ns), np.nan), received.qerr_ns])
    table["flags"] = np.where(np.isnan(qerr), 0, QERR)
    table["qerr_ps"] = np.rint(np.nan_to_num(qerr) * 1e3)
    off_s = generator.uniform(-timing.jitter_s, timing.jitter_s, len(table))
    table["latency_true"] = np.rint(timing.latency_s * 1e9 / timing.tick_ns)
    table["latency"] = np.rint((timing.latency_s + off_s) * 1e9 / timing.tick_ns)
    return table[np.argsort(table["ticks"], kind="stable")]


def run_servo(table: NDArray[np.void], config: ServoConfig, start_ns: int = 300_000_000, sanitize: bool = False) -> Run:
    """Run the firmware's servo on events; `now` is ``start_ns`` ahead at the start."""
    program = compile_program("virtual_time", sanitize)
    words = np.array([START_NS + start_ns, *astuple(config), 0, 0, 0], np.uint64)
    done = subprocess.run([program], input=words.tobytes() + table.tobytes(), stdout=subprocess.PIPE, check=True)
    return result(table, np.frombuffer(done.stdout, ANSWER))


def result(table: NDArray[np.void], answers: NDArray[np.void]) -> Run:
    """Sort out the answers to events."""
    look = table["kind"] == TRUTH
    return Run(
        answers=answers,
        time_s=(table["value"][look] - START_NS) / 1e9,
        error_ns=answers["error"][look] / 2**16,
        bound_ns=answers["uncertainty"][look] / 2**8,
        state=answers["state"][look],
        edges=answers[table["kind"] == EDGE],
    )


class FloatClock:
    """The timebase in floating point, kept small: `now` less nominal time, for servos in Python."""

    def __init__(self, tick_ns: float) -> None:
        self._tick_ns = tick_ns
        self._ticks = 0.0
        self._ahead = 0.0
        self._steering = 0.0
        self._due: tuple[float, float] | None = None

    def _run(self, ticks: float) -> None:
        self._ahead += (ticks - self._ticks) * self._tick_ns * self._steering * 1e-9
        self._ticks = ticks

    def ahead_ns(self, ticks: float) -> float:
        """Return `now` less the oscillator's nominal time (ns) at a tick."""
        if self._due is not None and self._due[0] <= ticks:
            self._run(self._due[0])
            self._steering = self._due[1]
            self._due = None
        self._run(ticks)
        return self._ahead

    def steer(self, ticks: float, steering_ppb: float) -> None:
        """Have the clock run faster by ``steering_ppb`` from a tick on."""
        self._due = (ticks, steering_ppb)

    def jump(self, ns: float) -> None:
        """Step `now`."""
        self._ahead += ns


def nominal_ns(table: NDArray[np.void], on_grid: bool = False) -> NDArray[np.float64]:
    """Return the oscillator's nominal time less true time of each event, exact where a double of each wouldn't be."""
    is_early = (table["kind"] == EDGE) & (not on_grid)
    return np.asarray(
        (table["ticks"].astype(np.int64) * TICK_NS - (table["value"] - START_NS))
        + np.where(is_early, -1e-3 * table["fraction"], table["fraction"] * (TICK_NS / 2**32))
    )


def run_other(
    table: NDArray[np.void], servo: OtherServo, quantum_ns: float = 8.0, on_grid: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Run a servo in Python on the same events; times (s) and errors (ns) at the looks at the truth.

    ``quantum_ns``: of the capture.
    ``on_grid``: the pulse is captured without error, and `now` is then cut to a whole number of quanta, as if ticks lay
    on a grid of the disciplined clock. No counter does that; published figures that assume it look better.
    """
    clock = FloatClock(TICK_NS)
    offsets: list[float] = []
    errors: list[float] = []
    last = 0.0
    nominal = nominal_ns(table, on_grid)
    columns = (table["kind"], table["ticks"].astype(float), nominal, table["qerr_ps"] / 1e3, table["latency_true"], table["value"])
    for kind, ticks, ahead, qerr, latency, value in zip(*(column.tolist() for column in columns), strict=True):
        error = ahead + clock.ahead_ns(ticks)
        if kind == TRUTH:
            errors.append(error)
        elif kind == EDGE:
            if on_grid:
                error = float(np.ceil(error / quantum_ns) * quantum_ns)
            offset = error - quantum_ns / 2 - qerr
            offsets.append(offset)
            if len(offsets) == 2:
                rate = (offset - offsets[0]) * 1e9 / (value - last)
                servo.start(rate)
                clock.jump(-offset - rate * latency * TICK_NS * 1e-9)
                clock.steer(ticks + latency, -rate)
            elif len(offsets) > 2:
                clock.steer(ticks + latency, servo.sample(offset, round((value - last) / 1e9)))
            last = value
    look = table["kind"] == TRUTH
    return (table["value"][look] - START_NS) / 1e9, np.array(errors)
