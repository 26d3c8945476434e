# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The background of the emulator's reference comes when arithmetic says."""

import math

import pytest

from liteprobe.cores.formats.emulate import BackgroundKind, ClassCounter
from liteprobe.sim.models.emulator.direction import Direction
from liteprobe.sim.models.emulator.settings import Settings, bank_words

TICK = 1 << 16
ALL = 2**32 - 1
#: Draws INTERVAL and BURST of the first three background frames of a class with Marsaglia's first state, worked out in C.
SEED = {"background_seed_low": 88172645463325252 & ALL, "background_seed_high": 88172645463325252 >> 32}
INTERVALS = (0x79690975, 0xE4093DF8, 0x61B97BCD)
BURSTS = (0x2A337357, 0x71DD0913, 0xE845105E)


def comes(
    count: int, background: BackgroundKind, patterns: tuple[int, ...] = (), **own: int
) -> list[tuple[float, int]]:
    """Return the tick at which each background frame comes, and its length."""
    words = bank_words({2: {"background": background, "background_length": 100, **SEED, **own}})
    one = Direction(Settings(words, patterns=patterns))
    background, found = one.background[2], []
    for _ in range(count):
        assert background.time is not None
        found.append((background.time / TICK, background.length))
        background.schedule(one.bank.classes[2])
    return found


def times(count: int, background: BackgroundKind, **own: int) -> list[float]:
    return [time for time, _ in comes(count, background, **own)]


def test_constant_ghosts_come_at_an_interval_of_fine_time() -> None:
    assert times(4, BackgroundKind.CONSTANT, background_ticks=10, background_fraction=0x4000, background_phase=7) == [
        7,
        17.25,
        27.5,
        37.75,
    ]


@pytest.mark.parametrize(
    ("burst", "expected"), [(3, [0, 5, 10, 110, 115, 120, 220]), (1, [0, 100, 200]), (0, [0, 100, 200])]
)
def test_bursts_of_a_number_are_apart_by_a_pause(burst: int, expected: list[float]) -> None:
    assert (
        times(len(expected), BackgroundKind.ON_OFF, background_ticks=5, background_burst=burst, background_pause=100)
        == expected
    )


def about(draw: int, mean: float) -> float:
    """Return an exponential interval; the table of logarithms has 512 entries."""
    return pytest.approx(-mean * math.log(draw / 2**32), abs=mean / 512)  # type: ignore[no-any-return]


def test_exponential_ghosts_come_after_drawn_intervals() -> None:
    found = times(3, BackgroundKind.EXPONENTIAL, background_ticks=100, background_fraction=0x8000, background_phase=7)
    gaps = [after - before for before, after in zip([7, *found], found, strict=False)]
    assert gaps == [about(draw, 100.5) for draw in INTERVALS]


def test_an_interval_of_the_mean_counts_whole_parts_of_32() -> None:
    small = times(1, BackgroundKind.EXPONENTIAL, background_ticks=0, background_fraction=0xFFFF)  # 31/32.
    assert small == [about(INTERVALS[0], 31 / 32)]
    assert times(1, BackgroundKind.EXPONENTIAL, background_ticks=0, background_fraction=0x07FF) == [0]


def test_bursts_of_a_drawn_number_end_by_a_share_of_ghosts() -> None:
    own = {"background_ticks": 5, "background_pause": 1000}
    assert times(3, BackgroundKind.RANDOM_ON_OFF, background_burst=BURSTS[1], **own) == [0, 5, 10]
    second = about(INTERVALS[1], 1000)
    found = times(3, BackgroundKind.RANDOM_ON_OFF, background_burst=BURSTS[1] + 1, **own)
    assert (found[0], found[1] == second, found[2] - found[1]) == (0, True, 5)
    found = times(3, BackgroundKind.RANDOM_ON_OFF, background_burst=ALL, **own)
    assert (found[1], found[2] - found[1]) == (second, about(INTERVALS[2], 1000))


def test_a_pattern_has_intervals_and_lengths_and_repeats() -> None:
    memory = (30, 61, *[0] * 508, 10, 60)  # Entry 0 at 510, entry 1 at 0.
    own = {"background_start": 510, "background_phase": 3}
    expected = [(13.0, 60), (43.0, 61), (53.0, 60), (83.0, 61)]
    words = {**own, "background_count": 2}
    assert comes(4, BackgroundKind.PATTERN, memory, **words) == expected
    assert comes(2, BackgroundKind.PATTERN, memory, **own) == [(13.0, 60), (23.0, 60)]  # 0 counts as 1.


def background_of(switched: dict[str, int], until: int) -> int:
    """Return how many background frames came until a tick, where the settings change at tick 1000."""
    before = {
        "background": BackgroundKind.CONSTANT,
        "background_ticks": 300,
        "background_length": 60,
    }  # 0, 300, 600, 900, (1200).
    one = Direction(Settings(bank_words({1: before})))
    one.switch(1000, bank_words({1: switched}))
    one.advance(until)
    return one.counts.words(1)[ClassCounter.BACKGROUND]


def test_a_switch_keeps_the_ghost_that_is_scheduled() -> None:
    faster = {"background": BackgroundKind.CONSTANT, "background_ticks": 10, "background_length": 60}
    assert [background_of(faster, until) for until in (1200, 1201, 1210, 1211)] == [4, 5, 5, 6]


def test_a_new_kind_of_background_begins_with_the_switch() -> None:
    other = {
        "background": BackgroundKind.ON_OFF,
        "background_ticks": 10,
        "background_burst": 2,
        "background_pause": 50,
        "background_phase": 20,
    }
    # 1020, 1030, 1080, 1090, ...
    assert [background_of(other, until) for until in (1020, 1021, 1031, 1080, 1081)] == [4, 5, 6, 6, 7]
    assert background_of({"background": BackgroundKind.NONE}, 10**5) == 4


def test_ghosts_of_several_classes_in_a_tick_come_from_the_lowest_on() -> None:
    background = {"background": BackgroundKind.CONSTANT, "background_ticks": 10**5, "background_length": 100}
    one = Direction(Settings(bank_words({3: background, 5: background, 6: {}}, {"octet": TICK})))
    assert (one.background_class, one.background_time) == (3, 0)
    one.take_background()
    assert (one.background_class, one.background_time) == (5, 0)
    one.take_background()
    assert (one.background_class, one.background_time) == (3, 10**5 * TICK)
