# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``engine`` of the bench ``emulator``: the compiled emulation of a direction against the reference, frame by frame.

200 random networks, each with 10^4 frames (``--full``: 10^5): the outcome of each frame, where its octets go, its tick of departure
and all that is done to it, and every counter. Networks have all features and extremes, ties made on purpose, background beyond the
link, switches in mid-traffic, bandwidth traces, jumbo frames, and times that pass 2^32 ticks.
"""

import sys
from collections import Counter
from collections.abc import Iterator

from _figures import Figure

from liteprobe.cores.formats.emulate import Outcome
from liteprobe.sim.bench.emulator.engine import compare, random_plan

NETWORKS, FRAMES = 200, 10_000
LEAST_OF_AN_OUTCOME = 1000


def engine(is_full: bool) -> Iterator[Figure]:
    """What is off, and whether every outcome was among what was compared."""
    count = FRAMES * (10 if is_full else 1)
    off = sent = frames = switches = cycles = 0
    outcomes: Counter[Outcome] = Counter()
    for seed in range(NETWORKS):
        done = compare(random_plan(seed, count))
        for found in done.found:
            print(f"network {seed}: {found}", file=sys.stderr)
        if is_full:  # Takes an hour: what is done is known when it is ended before.
            line = f"network {seed} of 0 to {NETWORKS - 1}: {done.frames} frames, {done.sent} left, {done.off} off"
            print(
                f"{line}; all up to it: {frames + done.frames} frames, {off + done.off} off",
                file=sys.stderr,
                flush=True,
            )
        off, frames, sent = off + done.off, frames + done.frames, sent + done.sent
        switches, cycles = switches + done.switches, cycles + done.cycles
        outcomes.update(done.outcomes)
    yield Figure("engine_off", off, "findings", 0)
    yield Figure("engine_frames", frames, "frames", NETWORKS * count, is_least=True)
    yield Figure("engine_departures", sent, "frames", NETWORKS * count / 10, is_least=True)
    yield Figure("engine_switches", switches, "switches", NETWORKS, is_least=True)
    for outcome in (Outcome.DISCARDED, Outcome.LOST, Outcome.FULL, Outcome.EARLY):
        yield Figure(f"engine_{outcome.name.lower()}", outcomes[outcome], "frames", LEAST_OF_AN_OUTCOME, is_least=True)
