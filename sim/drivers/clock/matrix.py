# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Oscillators and receivers of many kinds, each with each, and the same settings of the servo for all."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.drivers.clock.clock_runs import BOARD, OFFSET_PPM, SETTLED_S
from liteprobe.sim.drivers.clock.virtual_time import (
    EDGE, LOCKED, SILENCE, TRUTH, ServoConfig, events, nominal_ns, run_other, run_servo,
)
from liteprobe.sim.models.clock import other_servos
from liteprobe.sim.models.clock.oscillator import Bends, Oscillator, OscillatorSpec
from liteprobe.sim.models.clock.receiver import IDEAL, PLAIN, TIMING, TIMING_QERR, WANDERING, ReceiverSpec, pulses

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Crystal:
    """An oscillator, and the walk of phase (ns), rate (ppb) and drift (ppb a second) that a Kalman filter does best with."""

    spec: OscillatorSpec
    walk: tuple[float, float, float]


def crystal(bends: Bends) -> OscillatorSpec:
    """Return the cheap crystal with another temperature."""
    return OscillatorSpec(OFFSET_PPM, thermal_ppb=0.0, bends=bends)


OSCILLATORS = {
    "xo": Crystal(OscillatorSpec(OFFSET_PPM), (0.3, 0.06, 0.014)),
    "tcxo": Crystal(OscillatorSpec(1.0137, 1e-10, 3e-11, thermal_ppb=0.0), (0.1, 0.01, 1e-5)),
    "ocxo": Crystal(OscillatorSpec(0.1137, 1e-11, 3e-12, thermal_ppb=0.0), (0.01, 1e-3, 1e-6)),
    "kinked": Crystal(crystal(Bends(60.0, (60.0, 900.0), has_two_values=False)), (0.3, 0.1, 0.01)),
    "thermostat": Crystal(crystal(Bends(100.0, (1.0, 1.0), (240.0, 480.0), settle_s=150.0)), (0.3, 0.06, 0.02)),
    "fan": Crystal(crystal(Bends(100.0, (60.0, 60.0), (300.0, 1500.0), gust_ppb=1.0)), (0.3, 0.3, 0.1)),
}
OCXO = OSCILLATORS["ocxo"].spec
# Held to the bound alone: five of the above, and an OCXO that does what published ones do besides.
RESTLESS = {name: OSCILLATORS[name].spec for name in ("xo", "tcxo", "ocxo", "kinked", "fan")} | {
    "popcorn": replace(OCXO, popcorn_ppb=0.5),
    "vibration": replace(OCXO, vibration_ppb=2.0),
    "ageing": replace(OCXO, ageing_ppb=5.0),
}
RECEIVERS = {"ideal": IDEAL, "qerr": TIMING_QERR, "sawtooth": TIMING, "plain": PLAIN, "wandering": WANDERING}
# With skies from clear to poor.
SKIES = {f"qerr_{ns}ns": replace(TIMING_QERR, wander_ns=ns) for ns in (0, 2, 3, 6, 10)} | {
    "clean_6ns": ReceiverSpec(white_ns=1.0, wander_ns=6.0),
    "steps_20.83ns": replace(TIMING, grid_ns=20.83),
    "faulty": replace(TIMING_QERR, missing=0.05, spurious=0.05, outliers=0.01),
}
CALM = ("tcxo", "ocxo", "ageing"), ("qerr_0ns", "qerr_2ns", "qerr_3ns", "steps_20.83ns")
# One for all: the firmware's defaults, with the capture of boards.
CONFIG = ServoConfig(quantum_ps=2000)


def noise_ns(receiver: ReceiverSpec) -> float:
    """Return the noise of a pulse, what is slow included: the setting of a rival."""
    grid_ns = 0.0 if receiver.has_qerr else receiver.grid_ns
    parts = [receiver.white_ns, receiver.wander_ns, grid_ns / np.sqrt(12), BOARD.quantum_ns / np.sqrt(12)]
    return float(np.hypot.reduce(parts))


def rivals(receiver: ReceiverSpec) -> dict[str, Callable[[], other_servos.OtherServo]]:
    """Return the servos of others, by name."""
    noise = noise_ns(receiver)
    return {
        "pi_fast": other_servos.ProportionalIntegral,
        "pi_slow": partial(other_servos.ProportionalIntegral, 0.1, 0.003),
        "regression": other_servos.Regression,
        "two_states": partial(other_servos.TwoStates, noise),
        "three_states": partial(other_servos.ThreeStates, noise),
    }


@dataclass(frozen=True)
class Cell:
    """One oscillator with one receiver: RMS errors (ns), and what became of bound, pulses and lock."""

    rms_ns: float
    rivals_ns: dict[str, float]
    worst_ns: float
    inside: float
    bound_ns: float
    refused: int
    refused_in_a_row: int
    unlocked: int

    @property
    def ratio(self) -> float:
        """The RMS error over the best rival's."""
        return self.rms_ns / min(self.rivals_ns.values())


def rms(values: Floats) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(values**2)))


def cell(oscillator: str, receiver: str, seconds: int, seeds: int) -> Cell:
    """Run a cell; what came in the first ten minutes doesn't count, but for pulses and lock (the first minute)."""
    spec, received = OSCILLATORS[oscillator].spec, RECEIVERS[receiver]
    errors, bounds, states, used = [], [], [], []
    others: dict[str, list[Floats]] = {}
    for seed in range(seeds):
        table = events(Oscillator(spec, seconds + 2, seed), pulses(received, seconds, seed), seconds, BOARD, seed)
        run = run_servo(table, CONFIG)
        late = run.time_s > SETTLED_S
        errors.append(run.error_ns[late])
        bounds.append(run.bound_ns[late])
        states.append(run.state[run.time_s > SETTLED_S / 10])
        used.append(run.edges["is_used"][SETTLED_S // 10 :].astype(bool))
        for name, make in rivals(received).items():
            time_s, error_ns = run_other(table, make(), BOARD.quantum_ns)
            others.setdefault(name, []).append(error_ns[time_s > SETTLED_S])
    error, bound = np.concatenate(errors), np.concatenate(bounds)
    return Cell(
        rms(error),
        {name: rms(np.concatenate(each)) for name, each in others.items()},
        float(np.abs(error).max()),
        float(np.mean(np.abs(error) <= bound)),
        float(np.median(bound)),
        sum(int(np.sum(~one)) for one in used),
        sum(int(np.sum(~one[1:] & ~one[:-1])) for one in used),
        sum(int(np.sum(one != LOCKED)) for one in states),
    )


# Start --------------------------------------------------------------------------------------------

# The first bound is that of the second pulse, whose step is in force soon after it.
EARLY_S = ((2.25, 4), (4, 6), (6, 10), (10, 16), (16, 30), (30, 60), (60, 120), (120, 300))


def early(oscillator: str, receiver: str, seeds: int, first_seed: int = 0) -> dict[tuple[float, float], float]:
    """Start a cell ``seeds`` times; the share of looks inside the bound in each window of ``EARLY_S``."""
    seconds = int(EARLY_S[-1][1])
    spec, received = OSCILLATORS[oscillator].spec, RECEIVERS[receiver]
    inside = []
    for seed in range(first_seed, first_seed + seeds):
        table = events(Oscillator(spec, seconds + 2, seed), pulses(received, seconds, seed), seconds, BOARD, seed)
        run = run_servo(table, CONFIG)
        inside.append(np.abs(run.error_ns) <= run.bound_ns)
    shares = np.mean(inside, axis=0)
    return {window: float(np.mean(shares[(run.time_s >= window[0]) & (run.time_s < window[1])])) for window in EARLY_S}


# Holdover -----------------------------------------------------------------------------------------

AFTER_S = (100, 300, 1000)
# Pulses before the outage: at least, and spread over so many more.
BEFORE_S, SPREAD_S = 1800, 1800
MEAN_S = 300


@dataclass(frozen=True)
class Holdovers:
    """Of a cell, for each time after the last pulse: RMS errors (ns), and how often the bound held."""

    rms_ns: dict[int, float]
    mean_rate_ns: dict[int, float]
    three_states_ns: dict[int, float]
    inside: dict[int, float]

    def ratio(self, after_s: int) -> float:
        """The RMS error over the better rival's."""
        return self.rms_ns[after_s] / min(self.mean_rate_ns[after_s], self.three_states_ns[after_s])


def looks(oscillator: str, receiver: str, seconds: int, seed: int) -> tuple[Floats, Floats]:
    """Return error and bound (ns) of a cell of ``RESTLESS`` and ``SKIES`` from ten minutes after its start."""
    received = pulses(SKIES[receiver], seconds, seed)
    run = run_servo(events(Oscillator(RESTLESS[oscillator], seconds + 2, seed), received, seconds, BOARD, seed), CONFIG)
    late = run.time_s > SETTLED_S
    return run.error_ns[late], run.bound_ns[late]


def outages(oscillator: str, receiver: str, seeds: range) -> tuple[Floats, Floats]:
    """Let the receiver of such a cell fall silent; errors and bounds (ns), shape (seeds, times of ``AFTER_S``)."""
    found = []
    for seed in seeds:
        last = BEFORE_S + seed * 677 % SPREAD_S
        seconds = last + AFTER_S[-1] + 1
        received = pulses(SKIES[receiver], seconds, seed)
        table = events(Oscillator(RESTLESS[oscillator], seconds + 2, seed), received, seconds, BOARD, seed)
        run = run_servo(changed_to_silence(table, last), CONFIG)
        at = [int(np.argmin(np.abs(run.time_s - last - after))) for after in AFTER_S]
        found.append((np.abs(run.error_ns[at]), run.bound_ns[at]))
    errors, bounds = zip(*found, strict=True)
    return np.array(errors), np.array(bounds)


def holdovers(oscillator: str, receiver: str, starts: int) -> Holdovers:
    """Let the receiver of a cell fall silent ``starts`` times, each in a run of its own."""
    rows = np.array([row for seed in range(starts) for row in holdover(oscillator, receiver, seed)])
    of = {after: rows[n :: len(AFTER_S)] for n, after in enumerate(AFTER_S)}
    return Holdovers(
        {after: rms(row[:, 0]) for after, row in of.items()},
        {after: rms(row[:, 2]) for after, row in of.items()},
        {after: rms(row[:, 3]) for after, row in of.items()},
        {after: float(np.mean(np.abs(row[:, 0]) <= row[:, 1])) for after, row in of.items()},
    )


def holdover(oscillator: str, receiver: str, seed: int) -> Iterator[tuple[float, float, float, float]]:
    """Yield for each time after the last pulse: the error, its bound, and the errors of the two rivals (ns)."""
    kind = OSCILLATORS[oscillator]
    last = BEFORE_S + seed * 677 % SPREAD_S
    seconds = last + AFTER_S[-1] + 1
    table = events(
        Oscillator(kind.spec, seconds + 2, seed), pulses(RECEIVERS[receiver], seconds, seed), seconds, BOARD, seed
    )
    nominal = nominal_ns(table)
    is_edge = table["kind"] == EDGE
    phases = (nominal - table["qerr_ps"] / 1e3)[is_edge][:last] - BOARD.quantum_ns / 2
    silent = changed_to_silence(table, last)
    run = run_servo(silent, CONFIG)
    phase, rate, drift = estimate(other_servos.ThreeStates(noise_ns(RECEIVERS[receiver]), *kind.walk), phases.tolist())
    mean_rate = (phases[-1] - phases[-1 - MEAN_S]) / MEAN_S
    truth = nominal[table["kind"] == TRUTH]
    for after in AFTER_S:
        look = int(np.argmin(np.abs(run.time_s - last - after)))
        yield (
            float(run.error_ns[look]),
            float(run.bound_ns[look]),
            float(truth[look] - phases[-1] - mean_rate * after),
            float(truth[look] - phase - rate * after - drift * after**2 / 2),
        )


def changed_to_silence(table: NDArray[np.void], last: int) -> NDArray[np.void]:
    """Return the events with the pulses after the ``last`` one made silences, 0.4 periods later."""
    silent = table.copy()
    late = np.flatnonzero(table["kind"] == EDGE)[last:]
    silent["kind"][late] = SILENCE
    silent["fraction"][late] = 0
    silent["ticks"][late] += np.uint64(0.4e9 / BOARD.tick_ns)
    return silent[np.argsort(silent["ticks"], kind="stable")]


def estimate(servo: other_servos.ThreeStates, phases: list[float]) -> tuple[float, float, float]:
    """Return phase (ns), rate (ppb) and drift (ppb a second) of an oscillator after its phases, a second apart."""
    rate = phases[1] - phases[0]
    servo.start(rate)
    offset, steering = 0.0, -rate
    for before, now in zip(phases[1:], phases[2:], strict=False):
        offset += now - before + steering
        steering = servo.sample(offset, 1)
    return phases[-1] - offset + servo.phase_ns, servo.rate_ppb, servo.drift_ppb_s
