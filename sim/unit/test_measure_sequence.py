# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The sequence tracker against its model, and both against golden vectors of RFC 4737 and RFC 5560."""

import random

import pytest
from migen import run_simulation

from liteprobe.cores.formats import RecordFlag
from liteprobe.cores.measure.sequence import SequenceTracker
from liteprobe.sim.models.sequence import SequenceModel

COUNTS = ("expected", "lost", "duplicated", "reordered", "beyond_window")
IN_ORDER, DUPLICATE, LATE, BEYOND = (
    RecordFlag.NONE,
    RecordFlag.DUPLICATE,
    RecordFlag.REORDERED,
    RecordFlag.BEYOND_WINDOW,
)

# Arrivals, and places (from 0) of those that are reordered. METHODS.md 2; RFC 4737, section 7.
GOLDEN = {
    "RFC 4737, one late": ([1, 2, 3, 5, 6, 7, 8, 4, 9, 10], [7]),
    "RFC 4737, two early": ([1, 2, 3, 4, 7, 5, 6, 8], [5, 6]),
    "RFC 4737, block swapped": ([1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11], [7, 8, 9]),
    "RFC 4737, runs": ([1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 12, 13, 11], [5, 6, 12]),
}


def track(arrivals, window=1024, clears=()):
    """Run the tracker, and add up as a tally does; return the flag of each arrival and the counts after it.

    ``clears``: places before which.
    """
    dut = SequenceTracker(window)
    flags, counts = [], []
    sums = [0, 0, 0, 0]

    def generator():
        for place, sequence in enumerate(arrivals):
            if place in clears:
                yield dut.clear.eq(1)
                yield
                yield dut.clear.eq(0)
                sums[:] = [0, 0, 0, 0]
            yield dut.sequence.eq(sequence)
            for _ in range(5):
                yield
            is_duplicate, is_reordered = (yield dut.is_duplicate), (yield dut.is_reordered)
            is_beyond = yield dut.is_beyond
            flags.append(DUPLICATE * is_duplicate | LATE * is_reordered | BEYOND * is_beyond)
            addends = (yield dut.lost), is_duplicate, is_reordered, is_beyond
            sums[:] = [(total + addend) % 2**32 for total, addend in zip(sums, addends, strict=True)]
            yield dut.commit.eq(1)
            yield
            yield dut.commit.eq(0)
            yield
            counts.append(((yield dut.expected), *sums))

    run_simulation(dut, generator())
    return flags, counts


def modelled(arrivals, window=1024):
    model = SequenceModel(window)
    flags, counts = [], []
    for sequence in arrivals:
        flags.append(model.arrive(sequence))
        counts.append(tuple(getattr(model, name) for name in COUNTS))
    return flags, counts


@pytest.mark.parametrize(("arrivals", "late"), GOLDEN.values(), ids=GOLDEN)
def test_reordered_are_those_of_the_standard(arrivals, late):
    flags, counts = track(arrivals)
    assert [place for place, flag in enumerate(flags) if flag == LATE] == late
    # The vectors start at 1, so 0 is lost; everything else arrives in the end.
    assert counts[-1] == (max(arrivals) + 1, 1, 0, len(late), 0)


def test_each_arrival_after_the_first_is_a_duplicate():
    # RFC 5560: arrivals per packet 1, 3, 0, 2.
    flags, counts = track([0, 1, 1, 3, 1, 3])
    assert flags == [IN_ORDER, IN_ORDER, DUPLICATE, IN_ORDER, DUPLICATE, DUPLICATE]
    assert counts[-1] == (4, 1, 3, 0, 0)


def test_late_frame_that_comes_twice_is_reordered_once():
    flags, counts = track([0, 2, 1, 1])
    assert flags == [IN_ORDER, IN_ORDER, LATE, DUPLICATE]
    assert counts[-1] == (3, 0, 1, 1, 0)


@pytest.mark.parametrize(("behind", "flag"), [(1, DUPLICATE), (15, LATE), (16, LATE), (17, BEYOND), (100, BEYOND)])
def test_window_reaches_exactly_its_length_back(behind, flag):
    arrivals = [0, 200, 201 - behind]
    assert track(arrivals, window=16)[0] == [IN_ORDER, IN_ORDER, flag]


def test_slot_of_an_older_frame_is_no_duplicate():
    # 3, 19 and 35 share a slot of 16; 19 was lost, so the slot still holds 3.
    flags, counts = track([0, 1, 2, 3, 20, 19], window=16)
    assert flags[-1] == LATE
    assert counts[-1] == (21, 15, 0, 1, 0)


def test_sequence_wraps():
    top = 2**32
    arrivals = [2**31 - 1, top - 3, top - 1, 0, top - 2, 1, top - 2]
    flags, counts = track(arrivals)
    assert flags == [IN_ORDER, IN_ORDER, IN_ORDER, IN_ORDER, LATE, IN_ORDER, DUPLICATE]
    assert (flags, counts) == modelled(arrivals)


def test_clear_makes_old_frames_new():
    flags, counts = track([0, 1, 2, 1, 0, 1, 5, 2], clears=[4])
    assert flags == [IN_ORDER, IN_ORDER, IN_ORDER, DUPLICATE, IN_ORDER, IN_ORDER, IN_ORDER, LATE]
    assert counts[-1] == (6, 2, 0, 1, 0)


@pytest.mark.parametrize("seed", range(4))
def test_random_walk_agrees_with_the_model(seed):
    rng = random.Random(seed)
    arrivals, present = [], 0
    for _ in range(300):
        present += rng.choice([1, 1, 1, 2, 5])
        arrivals.append(max(0, present - rng.choice([0, 0, 0, 1, 3, 15, 16, 17, 30])))
    assert track(arrivals, window=16) == modelled(arrivals, window=16), f"seed {seed}"
