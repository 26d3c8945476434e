# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The reference of the emulator, against examples that were worked out by hand."""

from collections.abc import Mapping, Sequence

import pytest

from liteprobe.cores.formats.emulate import ClassCounter, ClassFlag, ClassGauge, Outcome
from liteprobe.sim.models.emulator.direction import Direction
from liteprobe.sim.models.emulator.direction import Frame
from liteprobe.sim.models.emulator.settings import Settings, bank_words

TICK = 1 << 16
ALL = 2**32 - 1
END = 10**6
#: Draws of the first frame of a class with Marsaglia's first state, and the first draw of the second one; worked out in C.
SEED = {"frame_seed_low": 88172645463325252 & ALL, "frame_seed_high": 88172645463325252 >> 32}
DRAWN = {
    "STATE": 0x79690975,
    "LOSS": 0x2A337357,
    "DUPLICATE": 0x2FEF107A,
    "CORRUPT": 0xE4093DF8,
    "BIT": 0x71DD0913,
    "REORDER": 0xF70ABB34,
    "REPEAT": 0x61B97BCD,
    "QUANTILE": 0xE845105E,
    "RED": 0xE77B20AE,
}
SECOND_STATE = 0xC9DDC8F0
Classes = Mapping[int, Mapping[str, int]]
Arrivals = Sequence[tuple[int, int, int]]


def direction(
    classes: Classes, link: Mapping[str, int] | None = None, trace: Sequence[tuple[int, int]] = ()
) -> Direction:
    return Direction(Settings(bank_words(classes, link), trace=trace))


def run(arrivals: Arrivals, classes: Classes, octet_ticks: int = 0, **link: int) -> Direction:
    one = direction(classes, {"octet": octet_ticks * TICK, **link})
    one.finish(arrivals, END)
    return one


def dues(one: Direction) -> list[int | None]:
    return [frame.due for frame in one.frames]


def outcomes(one: Direction) -> list[Outcome | None]:
    return [frame.outcome for frame in one.frames]


# Queue and rate -----------------------------------------------------------------------------------------

def test_frames_are_served_one_after_another_and_then_delayed() -> None:
    done = run([(0, 100, 0), (50, 100, 0), (1000, 100, 0)], {0: {"delay": 500}}, 2)
    assert dues(done) == [200 + 500, 400 + 500, 1200 + 500]
    assert done.departures == [(700, 0), (900, 1), (1700, 2)]


def test_a_part_of_a_tick_counts_in_service_and_is_cut_off_at_the_end() -> None:
    one = direction({}, {"octet": TICK + TICK // 3})  # 21845 of 65536.
    one.finish([(0, 100, 0), (1, 100, 0), (2, 100, 0)], END)
    assert dues(one) == [133, 266, 399]  # 133.332, 266.664, 399.997.


def test_what_comes_as_service_begins_finds_the_queue_as_it_was() -> None:
    classes = {0: {"limit_frames": 1}}
    first = [(0, 100, 0), (10, 100, 0)]  # Served 0 to 100, and from 100.
    assert outcomes(run([*first, (100, 60, 0)], classes, 1)) == [Outcome.SENT, Outcome.SENT, Outcome.FULL]
    assert outcomes(run([*first, (101, 60, 0)], classes, 1)) == [Outcome.SENT] * 3


def test_a_limit_of_0_drops_all_and_one_of_octets_what_goes_beyond() -> None:
    assert outcomes(run([(0, 60, 0)], {0: {"limit_frames": 0}})) == [Outcome.FULL]
    arrivals = [(0, 100, 0), (1, 100, 0), (2, 101, 0), (3, 100, 0), (4, 60, 0)]  # The first one is served.
    assert outcomes(run(arrivals, {0: {"limit_octets": 200}}, 1)) == [
        Outcome.SENT,
        Outcome.SENT,
        Outcome.FULL,
        Outcome.SENT,
        Outcome.FULL,
    ]


def test_overhead_takes_time_of_the_link_and_no_place_in_the_queue() -> None:
    assert dues(run([(0, 100, 0), (1, 100, 0)], {0: {"overhead": 24, "limit_octets": 100}}, 1)) == [124, 248]


def test_a_ghost_in_the_same_tick_comes_behind_the_frame_but_before_service() -> None:
    background = {"background": 1, "background_ticks": 10**5, "background_length": 300, "background_phase": 100}
    assert dues(run([(100, 60, 0)], {0: background}, 1)) == [160]  # In one queue.
    assert dues(run([(100, 60, 1)], {0: background, 1: {}}, 1)) == [100 + 300 + 60]  # Strict priority: class 0 first.
    assert dues(run([(100, 60, 0)], {0: {}, 1: background}, 1)) == [160]


def test_ghosts_fill_the_queue_and_are_dropped_and_counted() -> None:
    background = {"background": 1, "background_ticks": 100, "background_length": 1000, "limit_frames": 1}
    done = run([(350, 100, 0)], {0: background}, 1)
    # Background frames at 0 (served to 1000), 100 (waits), 200, 300 and so on (dropped, but for one at 1000, then 2000 ...).
    assert outcomes(done) == [Outcome.FULL]
    words = done.counts.words(0)
    assert words[ClassCounter.BACKGROUND] == END // 100
    # At each thousand the one that comes finds one waiting, that is served just afterwards: the next one takes its place.
    assert words[ClassCounter.BACKGROUND_DROPPED] == END // 100 - END // 1000 - 1
    assert words[ClassCounter.FULL] == 1


# Service ------------------------------------------------------------------------------------------------

def test_strict_priority_never_stops_a_service() -> None:
    assert dues(run([(0, 1000, 3), (1, 100, 2), (2, 100, 1)], {}, 1)) == [1000, 1200, 1100]


def test_weighted_service_takes_turns_by_weights() -> None:
    weights = {0: {"service_weight": 2}, 1: {"service_weight": 1}, 5: {"service_weight": 3}}
    # One of class 7 is served while all others come.
    arrivals = [(0, 1000, 7)] + [(1 + n, 100, klass) for n, klass in enumerate((0, 0, 0, 1, 1, 5, 5, 5, 5))]
    done = run(arrivals, weights, 1, service=1)
    order = [done.frames[number].klass for _, number in sorted(zip(dues(done), range(10), strict=True))]
    assert order == [7, 0, 0, 1, 5, 5, 5, 0, 1, 5]


def test_a_weight_that_is_left_is_lost_when_another_class_is_served() -> None:
    weights = {0: {"service_weight": 3}, 1: {"service_weight": 1}}
    arrivals = [(0, 100, 0), (1, 100, 1), (150, 100, 0), (151, 100, 0), (152, 100, 0), (153, 100, 1), (154, 100, 0)]
    done = run(arrivals, weights, 1, service=1)
    # 0 at 0; at 100 only 1 waits; at 200 all do: three of 0, one of 1, one of 0.
    assert dues(done) == [100, 200, 300, 400, 500, 600, 700]


def test_a_bucket_lets_a_burst_pass_and_then_its_rate() -> None:
    bucket = {"token_octet": 4 * TICK, "token_burst_low": 400 * TICK}
    done = run([(n, 100, 0) for n in range(0, 50, 10)], {0: bucket})
    # E is 0, 400, 800, ... after each.
    assert dues(done) == [0, 10, 400, 800, 1200]


def test_a_bucket_leaves_the_link_to_other_classes() -> None:
    bucket = {"token_octet": 10 * TICK}
    done = run([(0, 100, 0), (1, 100, 0), (2, 500, 1), (3, 500, 1)], {0: bucket}, 1)
    # Class 0 again at 1000; class 1 from 100 to 600 and to 1100.
    assert dues(done) == [100, 1200, 600, 1100]


def test_opportunities_serve_by_octets_and_wrap() -> None:
    one = direction({0: {"delay": 7}}, {"trace": 1}, [(100, 1500), (50, 300)])
    one.finish([(0, 1000, 0), (1, 1000, 0), (2, 900, 0), (3, 60, 0), (160, 60, 0)], 200)
    # At 100: 1000, and 500 of the second. At 150: 300 of it. At 250: the last 200, then 900, 60, 60; 280 are lost. At 300: 300.
    assert (one.transit, one.transit_lacks) == ((1000, one.frames[1], 1), 200)
    one.arrive(300, 300, 0)
    one.advance(END)
    assert dues(one) == [107, 257, 257, 257, 257, 307]


def test_an_opportunity_with_nothing_to_serve_is_lost() -> None:
    one = direction({}, {"trace": 1}, [(100, 1500)])
    one.finish([(100, 1500, 0), (101, 1501, 0)], END)
    assert dues(one) == [100, 300]


# Early drops --------------------------------------------------------------------------------------------

def test_red_drops_by_the_mean_of_the_queue() -> None:
    red = {"flags": ClassFlag.RED, "red_weight": 1, "red_least": 1, "red_most": 2}
    # Waiting at each arrival: 0, 0, 1, 2, 3, 4, 5; mean 0, 0, 0.5, 1.25, 2.125 (dropped: 3 stay), 2.5625 (dropped), ...
    done = run([(n, 1000, 0) for n in range(7)], {0: red}, 1)
    assert outcomes(done) == [Outcome.SENT] * 4 + [Outcome.EARLY] * 3
    assert done.means[0] == int((((((0 / 2 + 1) / 2 + 2) / 2 + 3) / 2 + 3) / 2 + 3) / 2 * TICK)


@pytest.mark.parametrize(("slope", "outcome"), [(DRAWN["RED"] + 1, Outcome.EARLY), (DRAWN["RED"], Outcome.FULL)])
def test_red_drops_a_share_between_its_limits(slope: int, outcome: Outcome) -> None:
    # The background frame of tick 1 is served, that of tick 2 waits: the mean is 1, and the share is the slope.
    background = {
        "background": 1,
        "background_ticks": 1,
        "background_length": 500,
        "background_phase": 1,
        "limit_frames": 1,
    }
    red = {"flags": ClassFlag.RED, "red_least": 0, "red_most": 9, "red_slope": slope, **SEED, **background}
    one = direction({0: red}, {"octet": TICK})
    one.finish([(100, 60, 0)], 1000)  # A frame of the background comes in each tick.
    assert outcomes(one) == [outcome]


# Outcomes --------------------------------------------------------------------------------------------------

def first(length: int = 1000, **own: int) -> Frame:
    """Return the first frame, with draws that are known."""
    return run([(0, length, 3)], {3: {**SEED, **own}}).frames[0]


@pytest.mark.parametrize(
    ("name", "draw", "what"),
    [
        ("duplicate", "DUPLICATE", "is_twice"),
        ("corrupt", "CORRUPT", "is_corrupt"),
        ("reorder", "REORDER", "lane"),
        ("loss_good", "LOSS", "is_lost"),
    ],
)
def test_a_share_happens_below_it_and_all_ones_always_does(name: str, draw: str, what: str) -> None:
    usual = 3 if what == "lane" else False
    found = [getattr(first(**{name: share}), what) for share in (0, DRAWN[draw], DRAWN[draw] + 1, ALL)]
    assert [value != usual for value in found] == [False, False, True, True]


def test_the_bit_that_is_wrong_is_drawn_over_the_frame() -> None:
    assert first(1000).bit == DRAWN["BIT"] * 8000 // 2**32 == 3558
    assert first(60).bit == 213


def test_a_burst_of_loss_begins_and_ends_by_the_state() -> None:
    bad = {"loss_bad": ALL, **SEED}
    assert outcomes(run([(0, 60, 0)], {0: {**bad, "loss_enter": DRAWN["STATE"]}})) == [Outcome.SENT]
    assert outcomes(run([(0, 60, 0)], {0: {**bad, "loss_enter": DRAWN["STATE"] + 1}})) == [Outcome.LOST]
    two = [(0, 60, 0), (100, 60, 0)]
    enters = {**bad, "loss_enter": DRAWN["STATE"] + 1}
    assert outcomes(run(two, {0: {**enters, "loss_leave": SECOND_STATE}})) == [Outcome.LOST, Outcome.LOST]
    assert outcomes(run(two, {0: {**enters, "loss_leave": SECOND_STATE + 1}})) == [Outcome.LOST, Outcome.SENT]


def test_a_loss_at_arrival_takes_no_time_and_a_late_one_does() -> None:
    lost = {"loss_good": ALL}
    assert dues(run([(0, 1000, 0), (1, 100, 1)], {0: lost}, 1)) == [None, 101]
    late = run([(0, 1000, 0), (1, 100, 1)], {0: {**lost, "flags": ClassFlag.LOSS_LATE}}, 1)
    assert (dues(late), outcomes(late)) == ([None, 1100], [Outcome.LOST, Outcome.SENT])
    full = run([(0, 1000, 0)], {0: {**lost, "flags": ClassFlag.LOSS_LATE, "limit_frames": 0}}, 1)
    assert outcomes(full) == [Outcome.FULL]


def test_a_class_that_is_discarded_takes_no_time_and_draws_all_the_same() -> None:
    one = direction({0: {**SEED, "flags": ClassFlag.DISCARD}})
    one.arrive(0, 60, 0)
    one.switch(50, bank_words({0: {"loss_enter": SECOND_STATE + 1, "loss_bad": ALL}}))
    one.arrive(100, 60, 0)
    one.advance(END)
    assert outcomes(one) == [Outcome.DISCARDED, Outcome.LOST]
    assert one.draws[0].count == 2


def test_a_pattern_of_bits_repeats_and_begins_anew_where_it_changes() -> None:
    words = bank_words({0: {"pattern_start": 511, "pattern_count": 34}})
    one = Direction(Settings(words, patterns=[2, *[0] * 510, 1 << 3]))  # Bits 3 and 33: word 511 is followed by word 0.
    for n in range(80):
        one.arrive(100 * n, 60, 0)
    one.switch(
        7050, bank_words({0: {"pattern_start": 0, "pattern_count": 2}})
    )  # From frame 71: frames 72, 74 and so on.
    one.advance(END)
    lost = [frame.number for frame in one.frames if frame.outcome is Outcome.LOST]
    assert lost == [3, 33, 37, 67, 72, 74, 76, 78]


def test_a_list_names_frames_of_its_class() -> None:
    words = bank_words({0: {"flags": ClassFlag.LIST, "pattern_start": 4, "pattern_count": 3}})
    one = Direction(Settings(words, patterns=[1, 1, 1, 1, 0, 2, 5, 3]))
    one.finish([(100 * n, 60, n % 2) for n in range(20)], END)
    assert [frame.number for frame in one.frames if frame.outcome is Outcome.LOST] == [0, 4, 10]


# Delay and lanes ----------------------------------------------------------------------------------------

def test_a_frame_never_overtakes_in_its_lane() -> None:
    one = direction({0: {"delay": 1000}})
    one.arrive(0, 60, 0)
    one.switch(10, bank_words({0: {"delay": 100}}))
    for tick in (100, 200, 950):
        one.arrive(tick, 60, 0)
    one.advance(END)
    assert dues(one) == [1000, 1000, 1000, 1050]
    assert one.departures == [(1000, 0), (1084, 1), (1168, 2), (1252, 3)]  # The line takes 84 ticks each.


def test_what_is_held_back_is_overtaken() -> None:
    one = direction({0: {"delay": 10, "reorder": ALL, "reorder_ticks": 500}})
    one.arrive(0, 60, 0)
    one.switch(10, bank_words({0: {"delay": 10}}))
    one.arrive(100, 60, 0)
    one.advance(END)
    assert one.departures == [(110, 1), (510, 0)]


def test_in_a_lane_frames_leave_as_they_were_served() -> None:
    held = {"reorder": ALL, "delay": 5000}
    done = run([(0, 100, 7), (1, 100, 2), (2, 100, 1)], {1: held, 2: {**held, "reorder_ticks": 100}, 7: held}, 1)
    # Class 1 is served before class 2; due 5200 and, of class 2, 5400. Then all in one tick, by a lane that is late.
    assert [number for _, number in done.departures] == [0, 2, 1]
    done = run([(0, 100, 7), (1, 100, 2), (2, 100, 1)], {1: held, 2: held, 7: {**held, "reorder_ticks": 1000}}, 1)
    assert dues(done) == [6100, 6100, 6100]
    assert [number for _, number in done.departures] == [0, 2, 1]


def test_on_a_tie_the_lower_lane_leaves_first_and_the_line_is_busy_meanwhile() -> None:
    done = run([(0, 60, 1), (100, 60, 0)], {1: {"delay": 1000}, 0: {"delay": 900}})
    assert done.departures == [(1000, 1), (1084, 0)]
    assert [done.counts.words(k)[ClassCounter.WAITED] for k in (0, 1)] == [0, 1]


def test_a_frame_leaves_twice_one_behind_the_other() -> None:
    done = run([(0, 60, 1), (1, 60, 0)], {1: {"delay": 99, "duplicate": ALL}, 0: {"delay": 100}})
    assert done.departures == [(99, 0), (183, 0), (267, 1)]


def test_the_delay_has_an_entry_of_the_table_and_repeats_it() -> None:
    place = DRAWN["QUANTILE"] >> 22
    delays = [0] * 1024
    delays[place], delays[0] = 777, 5
    for repeat, added in (
        (DRAWN["REPEAT"], 777),
        (DRAWN["REPEAT"] + 1, 5),
    ):  # The quantile is 0 before the first frame.
        one = Direction(Settings(bank_words({0: {**SEED, "flags": ClassFlag.JITTER, "delay_repeat": repeat}}), delays))
        one.finish([(0, 60, 0)], END)
        assert dues(one) == [added]
    one = Direction(Settings(bank_words({0: SEED}), delays))  # Kept without jitter, too.
    one.arrive(0, 60, 0)
    one.switch(50, bank_words({0: {"flags": ClassFlag.JITTER, "delay_repeat": ALL}}))
    one.arrive(100, 60, 0)
    one.advance(END)
    assert dues(one) == [0, 877]


# Switch and time ----------------------------------------------------------------------------------------

def test_a_switch_comes_before_what_arrives_in_its_tick() -> None:
    for tick, due in ((99, 105), (100, 105), (101, 100)):
        one = direction({})
        one.arrive(100, 60, 0)
        one.switch(tick, bank_words({0: {"delay": 5}}))
        one.advance(END)
        assert dues(one) == [due]


def test_a_switch_leaves_a_bucket_what_the_last_service_left() -> None:
    one = direction({0: {"token_octet": 100 * TICK, "token_burst_low": 2000 * TICK}}, {"octet": TICK})
    for tick in (0, 1, 2, 3):
        one.arrive(tick, 100, 0)
    one.switch(5000, bank_words({0: {"token_octet": 10 * TICK, "token_burst_low": 3000 * TICK}}, {"octet": 2 * TICK}))
    one.switch(18_500, bank_words({}, {"octet": TICK}))
    one.advance(END)
    # Served at 0: E is 8000. At 8000, with 3000 of burst: 11,000 + 1000 - 3000 = 9000. At 9000: 10,000. At 10,000: 11,000.
    assert dues(one) == [100, 8200, 9200, 10_200]
    one.arrive(END, 100, 0)
    one.arrive(END + 1, 100, 0)
    one.advance(2 * END)
    assert dues(one)[4:] == [END + 100, END + 200]


def test_time_that_goes_on_in_steps_changes_nothing() -> None:
    arrivals = [(90 * n + n % 7, 60 + n % 900, n % 8) for n in range(2000)]
    own = {"delay": 300, "limit_frames": 20, "duplicate": 1 << 30, "reorder": 1 << 28, "reorder_ticks": 900}
    background = {"background": 2, "background_ticks": 400, "background_length": 200}
    classes = {k: {**own, **(background if k % 3 == 0 else {}), "delay": 300 + 90 * k} for k in range(8)}
    whole = run(arrivals, classes, 1)
    one, left, number = direction(classes, {"octet": TICK}), [], 0
    for until in [*range(0, arrivals[-1][0] + 1, 13), END]:
        while number < len(arrivals) and arrivals[number][0] < until:
            one.arrive(*arrivals[number])
            number += 1
        left += one.advance(until, 300)
    assert left == whole.departures
    assert one.frames == whole.frames
    assert [one.counts.words(k) for k in range(8)] == [whole.counts.words(k) for k in range(8)]


def test_what_comes_too_late_is_refused() -> None:
    one = direction({})
    one.arrive(10, 60, 0)
    with pytest.raises(ValueError, match="frame at tick 10 comes too late"):
        one.arrive(10, 60, 0)
    one.advance(20)
    with pytest.raises(ValueError, match="frame at tick 19 comes too late"):
        one.arrive(19, 60, 0)
    with pytest.raises(ValueError, match="switch at tick 19 comes too late"):
        one.switch(19, bank_words({}))
    with pytest.raises(ValueError, match="between a rate and a trace"):
        one.switch(30, bank_words({}, {"trace": 1}))
    one.advance(20, 100)
    one.arrive(30, 60, 0)
    with pytest.raises(ValueError, match="due at tick 30"):
        one.advance(40)


# Counts -------------------------------------------------------------------------------------------------

def test_all_is_counted() -> None:
    own = {"delay": 63, "duplicate": ALL, "corrupt": ALL, "reorder": ALL, "limit_frames": 1}
    done = run([(0, 100, 2), (1, 200, 2), (2, 300, 2)], {2: own}, 1)  # Due at 163 and 363: delays of 163 and 362.
    words = done.counts.words(2)
    names = {n.name: words[n] for n in ClassCounter if words[n]}
    assert names == {
        "ARRIVED": 3,
        "ARRIVED_OCTETS": 600,
        "SENT": 4,
        "SENT_OCTETS": 600,
        "FULL": 1,
        "DUPLICATED": 2,
        "CORRUPTED": 2,
        "HELD_BACK": 2,
        "WAITED": 3,  # 163, 287; 411 for 363, 635.
    }
    gauges = {n.name: words[n] for n in ClassGauge}
    assert gauges == {
        "QUEUE_FRAMES": 0,
        "QUEUE_OCTETS": 0,
        "QUEUE_MOST": 1,
        "DELAY_LEAST": 163,
        "DELAY_MOST": 362,
        "LATE_MOST": 0,
    }
    assert {n: word for n, word in enumerate(words[32:]) if word} == {8: 1, 9: 1}  # 128 to 255, 256 to 511.
    assert done.counts.words(3)[ClassGauge.DELAY_LEAST] == ALL
