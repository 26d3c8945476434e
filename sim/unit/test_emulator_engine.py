# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The emulation of a direction against its reference, in short; `./run bench emulator engine` has the long runs."""

from dataclasses import replace

import pytest

from liteprobe.sim.bench.emulator.engine_plans import random_plan
from liteprobe.sim.bench.emulator.engine_run import (
    DEPARTURE_DTYPE, EngineRun, compare, counts_off, departures_off, reference, run, verdicts_off,
)
from liteprobe.sim.models.emulator.direction import Direction

FRAMES = 1500
#: All services, loss, early drops, buckets, all backgrounds, traces, ties, jumbo frames, switches, and times beyond 2^32.
SEEDS = (0, 1, 9, 21, 32, 36, 39, 40, 48, 55)

@pytest.mark.parametrize("seed", SEEDS)
def test_what_becomes_of_each_frame_is_what_the_reference_says(seed: int) -> None:
    done = compare(random_plan(seed, FRAMES))
    assert (done.frames, done.found) == (FRAMES, [])

def test_what_becomes_of_a_frame_does_not_depend_on_how_it_is_run() -> None:
    plan = random_plan(12, FRAMES)
    runs = [run(plan), run(replace(plan, step_ticks=plan.step_ticks // 7, lag_ticks=0, stall_256=240))]
    names = [name for name in DEPARTURE_DTYPE.fields or {} if name != "now"]
    assert (runs[0].verdicts == runs[1].verdicts).all()
    assert (runs[0].departures[names] == runs[1].departures[names]).all()
    assert (runs[0].counts == runs[1].counts).all()

def found(done: EngineRun, one: Direction, left: list[int]) -> list[int]:
    return [len(list(kind)) for kind in (verdicts_off(done, one), departures_off(done, one, left), counts_off(done, one))]

def test_each_thing_that_is_off_is_seen() -> None:
    plan = random_plan(39, FRAMES)
    done = run(plan)
    one, left = reference(plan)
    assert found(done, one, left) == [0, 0, 0]
    kept = int(done.verdicts["keep"].argmax())
    for name in ("keep", "fate", "number", "position", "lane"):
        verdicts = done.verdicts.copy()
        verdicts[name][kept] ^= 1
        assert found(replace(done, verdicts=verdicts), one, left) == [1, 0, 0], name
    for name in ("due", "lane", "number", "length", "position", "twice", "corrupt"):
        departures = done.departures.copy()
        departures[name][7] ^= 1
        assert found(replace(done, departures=departures), one, left) == [0, 1, 0], name
    for word in range(len(done.counts)):
        counts = done.counts.copy()
        counts[word] += 1
        assert found(replace(done, counts=counts), one, left) == [0, 0, 1], word
    assert found(replace(done, departures=done.departures[:-1]), one, left) == [0, 1, 0]
    assert found(replace(done, verdicts=done.verdicts[:-1]), one, left) == [1, 0, 0]
