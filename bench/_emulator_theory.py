# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``theory`` of the bench ``emulator``: the reference against the theory of queues, of loss models and of shapers.

Each figure is a mean of a run of 10^6 frames (``--full``: four times as many); it is how far it is from what the theory says, in
halves of the interval of 99.9 % that the means of batches give. What must be exact counts 2 for each frame that is off.
"""

from collections.abc import Iterator

from _figures import Figure

from liteprobe.sim.bench.emulator.theory import EXPERIMENTS

FRAMES = 1_000_000


def theory(is_full: bool) -> Iterator[Figure]:
    """Waits, losses, bursts, correlations, rates."""
    count = FRAMES * (4 if is_full else 1)
    for experiment in EXPERIMENTS:
        for one in experiment(count):
            yield Figure(f"theory_{one.name}", one.reach, "of 99.9 %", 1)
