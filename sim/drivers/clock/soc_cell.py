# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Cells of the matrix on the whole simulated probe: its firmware follows an oscillator and a receiver as they are at their worst.

A "second" of the models is a period of 10 ms here, so what takes 100 s in a cell takes 1 s in the simulation.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import ClockState
from liteprobe.sim.drivers.clock.clock_runs import OFFSET_PPM
from liteprobe.sim.drivers.clock.matrix import OSCILLATORS, RECEIVERS
from liteprobe.sim.drivers.system.firmware_run import FIRST_NS, PERIOD_NS, Receiver, Running, Work, boot
from liteprobe.sim.models.clock.oscillator import Oscillator
from liteprobe.sim.models.clock.receiver import pulses

Floats = NDArray[np.float64]

HOUR_S = 3600
# Pulses before the rate changes most, and after; the clock begins with the first.
BEFORE, AFTER = 35, 35
BEND_S = 30


@dataclass(frozen=True)
class SocCell:
    """A cell on the probe: at each pulse after the lock, what the clock was off by, and its bound (ns).

    Attributes
    ----------
    error_ns, bound_ns : array, shape (pulses,)
    unlocked : int, looks after the first lock at which it wasn't locked.
    refused : int, pulses.
    work : Work, CPU time of an edge.
    """

    error_ns: Floats
    bound_ns: Floats
    unlocked: int
    refused: int
    work: Work


def worst_part(oscillator: str, receiver: str, seed: int) -> tuple[Floats, Floats]:
    """Return how early the oscillator has each pulse (ns, without its constant rate), and how late the receiver sends it (ns).

    Both have the shape (BEFORE + AFTER,): the part of an hour in the middle of which the oscillator's rate changes most.
    """
    sent = pulses(RECEIVERS[receiver], HOUR_S, seed)
    ahead = (
        Oscillator(OSCILLATORS[oscillator].spec, HOUR_S + 2, seed).ahead_ns(sent.time_s)
        - 1e3 * OFFSET_PPM * sent.time_s
    )
    bend = np.abs(ahead[2 * BEND_S :] - 2 * ahead[BEND_S:-BEND_S] + ahead[: -2 * BEND_S])
    middle = int(np.clip(np.argmax(bend) + BEND_S, BEFORE, HOUR_S - AFTER))
    part = slice(middle - BEFORE, middle + AFTER)
    slope = ahead[part][1] - ahead[part][0]
    return ahead[part] - ahead[part][0] - slope * np.arange(BEFORE + AFTER), sent.late_ns[part]


class CellReceiver(Receiver):
    """A receiver whose pulses come when a cell has them."""

    def follow(self, running: Running, oscillator: str, receiver: str, seed: int) -> SocCell:
        """Give all pulses of a cell, and look at the clock at each."""
        ahead, late = worst_part(oscillator, receiver, seed)
        found = []
        for n, at_ns in enumerate(FIRST_NS + PERIOD_NS * np.arange(len(late)) + np.rint(ahead + late).astype(np.int64)):
            self.link.receive(f"pps {at_ns} 8000")
            # The bound is that of the clock before this pulse has moved it, so it is read before.
            running.probe.wait((int(at_ns) - 20_000 - self.link.now_ns()) / 1e9)
            clock = running.clock()
            running.probe.wait(40e-6)
            found.append((running.edge()[1] + 1 - late[n], clock["uncertainty"] / 256, clock["state"]))
        error, bound, state = np.array(found).T
        first = int(np.argmax(state == ClockState.LOCKED))
        if state[first] != ClockState.LOCKED:
            raise AssertionError(f"{oscillator} {receiver}: no lock in {len(late)} pulses")
        refused = running.clock()["rejected"]
        self.number = len(late)  # Those of the shell's look are regular again.
        return SocCell(
            error[first:], bound[first:], int(np.sum(state[first:] != ClockState.LOCKED)), refused, running.work()
        )


def cell(build: Path, image: Path, oscillator: str, receiver: str, seed: int = 1) -> SocCell:
    """Boot a simulated probe, and let it follow a cell."""
    with boot(build, image) as running:
        running.receiver = CellReceiver(running.receiver.link)
        return running.receiver.follow(running, oscillator, receiver, seed)
