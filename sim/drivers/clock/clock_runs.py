# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The runs by which the servo is judged: oscillator B with receivers of all kinds, each from a printed seed.

Also feeds the firmware's libraries of the second and of qErr with pulses and octets, and reads what they make of them.
"""

import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.drivers.clock.virtual_time import Run, ServoConfig, Timing, compile_program, events, run_servo
from liteprobe.sim.models.clock.oscillator import Oscillator, OscillatorSpec
from liteprobe.sim.models.clock.receiver import IDEAL, PLAIN, TIMING, TIMING_QERR, ReceiverSpec, pulses

# The servo in virtual time ------------------------------------------------------------------------

HOUR_S = 3600
SETTLED_S = 600
# Neither a whole number of ticks a second, nor a round number of anything.
OFFSET_PPM = 20.0137
# What boards have: four samples of the PPS a tick (boards/ecp5.py).
BOARD = Timing(quantum_ns=2.0)


@dataclass(frozen=True)
class Kind:
    """A kind of receiver, and the firmware's settings for it."""

    receiver: ReceiverSpec
    config: ServoConfig


KINDS = {
    "ideal": Kind(IDEAL, ServoConfig(noise_ps=0, sawtooth_ps=0, wander_ps=0)),
    "timing_qerr": Kind(TIMING_QERR, ServoConfig()),
    "timing": Kind(TIMING, ServoConfig()),
    "plain": Kind(PLAIN, ServoConfig(noise_ps=7000, wander_ps=5500)),
}


def changed(kind: str, **changes: float | bool | tuple[tuple[float, float], ...]) -> Kind:
    """Return a kind with something changed in its receiver."""
    return replace(KINDS[kind], receiver=replace(KINDS[kind].receiver, **changes))  # type: ignore[arg-type]


def table(
    kind: Kind, seconds: int, seed: int, oscillator: OscillatorSpec | None = None, timing: Timing | None = None
) -> NDArray[np.void]:
    """Return the events of a run."""
    spec = oscillator or OscillatorSpec(offset_ppm=OFFSET_PPM)
    return events(Oscillator(spec, seconds + 2, seed), pulses(kind.receiver, seconds, seed), seconds, timing, seed)


def run(
    kind: Kind, seconds: int, seed: int, oscillator: OscillatorSpec | None = None, timing: Timing | None = None
) -> Run:
    """Run the firmware's servo; `now` starts 0.3 s off."""
    config = kind.config
    if timing is not None:
        config = replace(config, quantum_ps=round(1e3 * timing.quantum_ns))
    return run_servo(table(kind, seconds, seed, oscillator, timing), config)


@dataclass(frozen=True)
class Spread:
    """Errors of several runs: RMS and worst (ns), share inside the bound, states that were seen."""

    rms_ns: float
    worst_ns: float
    inside: float
    states: frozenset[int]


def spread(runs: Iterator[Run], from_s: float = SETTLED_S) -> Spread:
    """Put runs together from ``from_s`` on."""
    squares, count, worst, inside = 0.0, 0, 0.0, 0
    states: set[int] = set()
    for one in runs:
        later = one.time_s > from_s
        error = one.error_ns[later]
        squares += float(np.sum(error**2))
        count += len(error)
        worst = max(worst, float(np.abs(error).max()))
        inside += int(np.sum(np.abs(error) <= one.bound_ns[later]))
        states |= {int(state) for state in np.unique(one.state[later])}
    return Spread(float(np.sqrt(squares / count)), worst, inside / count, frozenset(states))


@dataclass(frozen=True)
class Outage:
    """Many holdovers: errors and bounds (ns) so many seconds after the last pulse, shape (runs, times)."""

    after_s: tuple[int, ...]
    error_ns: NDArray[np.float64]
    bound_ns: NDArray[np.float64]

    def rms_ns(self, after_s: int) -> float:
        """Return the RMS error at a time."""
        return float(np.sqrt(np.mean(self.error_ns[:, self.after_s.index(after_s)] ** 2)))

    def inside(self, after_s: int) -> float:
        """Return the share of runs inside their bound at a time."""
        column = self.after_s.index(after_s)
        return float(np.mean(np.abs(self.error_ns[:, column]) <= self.bound_ns[:, column]))


def outages(
    kind: str, count: int, after_s: tuple[int, ...] = (1, 3, 10, 30, 100, 300, 1000), timing: Timing | None = None
) -> Outage:
    """Let the receiver fall silent in ``count`` runs, at another phase of the temperature each."""
    errors, bounds = [], []
    for seed in range(count):
        last = SETTLED_S + seed * 37 % 300
        silent = changed(kind, outages=((last + 0.5, last + 1e6),))
        one = run(silent, last + max(after_s) + 2, seed, timing=timing)
        looks = [int(np.argmin(np.abs(one.time_s - last - after))) for after in after_s]
        errors.append(one.error_ns[looks])
        bounds.append(one.bound_ns[looks])
    return Outage(after_s, np.array(errors), np.array(bounds))


# The second of a receiver -------------------------------------------------------------------------

NO_PPS, NO_NMEA, WRONG, NO_FIX, UNKNOWN, LEAP, UNSURE = (1 << bit for bit in range(7))

ANSWER = np.dtype([("tai", "u8")] + [(name, "i4" if name in ("tai_utc", "late_ps") else "u4") for name in (
    "is_known", "tai_utc", "faults", "sentences", "unassigned", "wrong", "spurious", "corrections", "sound", "refused",
    "malformed", "times", "messages", "messages_refused", "pulses", "has_qerr", "late_ps", "qerr_used", "qerr_refused",
    "qerr_waits", "rollovers", "unused",
)])


class Feed:
    """Feeds in what comes, in the order of time."""

    def __init__(self) -> None:
        self._records: list[bytes] = []
        self.pulse_records: list[int] = []  # Which answers are those after a pulse.

    def pulse(self, ms: int) -> None:
        """A pulse comes."""
        self.pulse_records.append(len(self._records))
        self._records.append(struct.pack("<QII", ms, 0, 0))

    def octets(self, ms: int, octets: bytes) -> None:
        """The UART brings octets, at once or, after `restart`, one after the other; none: only look at what is known."""
        self._records.append(struct.pack("<QII", ms, 1, len(octets)) + octets)

    def announce(self, ms: int, tai_utc: int, until: datetime, leap: int = 0) -> None:
        """A host says what TAI less UTC is until a moment, and by how much it differs from then on."""
        self._records.append(struct.pack("<QIIqii", ms, 2, 16, int(until.timestamp()), tai_utc, leap))

    def restart(self, baud: int) -> None:
        """All is forgotten; from here on octets take their time."""
        self._records.append(struct.pack("<QII", baud, 3, 0))

    @property
    def count(self) -> int:
        """Return how many answers there will be."""
        return len(self._records)

    def run(
        self, tai_utc: int = 37, sure_until: datetime | None = None, not_before: datetime | None = None
    ) -> NDArray[np.void]:
        """Return the answer after each, from the library compiled with sanitizers."""
        program = compile_program("second", sanitize=True)
        arguments = [tai_utc]
        if sure_until and not_before:
            arguments += [int(sure_until.timestamp()), int(not_before.timestamp())]
        done = subprocess.run(
            [program, *map(str, arguments)], input=b"".join(self._records), stdout=subprocess.PIPE, check=True
        )
        return np.frombuffer(done.stdout, ANSWER)
