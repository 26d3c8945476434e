# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The schedule of the model of streams, by arithmetic and by the laws of its random numbers."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from liteprobe.host.traffic.stream import IMIX, Burst, Fixed, Interval, Lengths, RandomLength, Stepped, Stream
from liteprobe.sim.models.traffic.streams import Xorshift, dues, exponential, logarithms, schedule, state_of


def rows(streams: list[Stream], count: int) -> list[tuple[int, int, int, int, bool, int]]:
    found: list[tuple[int, int, int, int, bool, int]] = schedule(streams, count).tolist()
    return found


# Schedule ----------------------------------------------------------------------------------------------


def test_a_schedule_of_two_streams_is_that_of_a_worked_example() -> None:
    # Slots of 84 and 1024 ticks. The second stream's frame is due in the same tick as the first's, and comes after it.
    first = Stream("a", 1, Fixed(60), Interval(interval_ns=8 * 500), count=4)
    second = Stream("b", 2, Fixed(1000), Interval(interval_ns=8 * 1100), start_ns=8 * 500, count=2)
    assert rows([first, second], 99) == [
        (0, 0, 0, 0, False, 60),
        (0, 1, 500, 500, False, 60),
        (1, 0, 500, 584, True, 1000),
        (0, 2, 1000, 1608, True, 60),
        (0, 3, 1500, 1692, True, 60),
        (1, 1, 1600, 1776, True, 1000),
    ]


@pytest.mark.parametrize(("due", "start"), [(83, 84), (84, 84), (85, 85)])
def test_a_frame_is_late_by_a_tick_and_no_less(due: int, start: int) -> None:
    streams = [Stream(f"s{n}", n, Fixed(60), Interval(pps=1000), start_ns=8 * due * n, count=1) for n in range(2)]
    assert rows(streams, 9)[1] == (1, 0, due, start, start > due, 60)


def test_the_first_frame_of_a_program_is_never_late_and_a_tie_goes_to_the_lowest_number() -> None:
    streams = [Stream(f"s{n}", n, Fixed(60), Interval(pps=1000), start_ns=80, count=1) for n in range(3)]
    assert rows(streams, 9) == [(0, 0, 10, 10, False, 60), (1, 0, 10, 94, True, 60), (2, 0, 10, 178, True, 60)]


def test_a_burst_begins_at_its_interval_whatever_is_within_it() -> None:
    bursts = Interval(interval_ns=8 * 1000, burst=Burst(3, 8 * 100))
    assert [row[2] for row in rows([Stream("a", 1, Fixed(60), bursts)], 7)] == [0, 100, 200, 1000, 1100, 1200, 2000]
    close = Interval(interval_ns=8 * 1000, burst=Burst(3))
    stream = Stream("a", 1, Stepped(60, 80, 20), close)
    assert [row[2] for row in rows([stream], 7)] == [0, 84, 188, 1000, 1104, 1188, 2000]
    assert not schedule([stream], 1000)["late"].any()


@pytest.mark.parametrize("length", [Fixed(60), Fixed(1514), Stepped(64, 1514, 7), IMIX, Lengths((60, 9000, 61))])
@pytest.mark.parametrize("interval", [Interval(), Interval(share=1), Interval(rate_bps=1e9)])
def test_back_to_back_fills_the_line_and_nothing_is_late(length: Fixed, interval: Interval) -> None:
    frames = schedule([Stream("a", 1, length, interval)], 3000)
    slots = frames["length"].astype(np.int64) + 24
    assert (np.diff(frames["start"]) == slots[:-1]).all()
    assert not frames["late"].any()


@pytest.mark.parametrize(
    ("interval", "exact_ticks"),
    [
        (Interval(rate_bps=123_456_789), Fraction(8 * 536 * 10**9, 8 * 123_456_789)),
        (Interval(pps=7), Fraction(10**9, 8 * 7)),
        (Interval(share=0.3), Fraction(5360, 3)),
        (Interval(interval_ns=1234.567), Fraction(1234567, 8000)),
        (Interval(pps=300_000, burst=Burst(20)), Fraction(20 * 10**9, 8 * 300_000)),
    ],
)
def test_rates_hold_packet_by_packet_without_drift(interval: Interval, exact_ticks: Fraction) -> None:
    size = interval.burst.count if interval.burst else 1
    length = 60 if interval.interval_ns or interval.burst else 512
    heads = [due for due, _ in _first(Stream("a", 1, Fixed(length), interval), 100_000)][::size]
    assert len(heads) == 100_000 // size
    # 2^-33 of a tick is the most that each interval is off by its rounding.
    for number in range(0, len(heads), 97):
        assert abs(heads[number] + Fraction(1, 2) - number * exact_ticks) <= Fraction(1, 2) + number * Fraction(
            1, 2**33
        )


def _first(stream: Stream, count: int) -> list[tuple[int, int]]:
    source = dues(stream, 8 << 40)
    return [next(source) for _ in range(count)]


def test_a_schedule_crosses_2_to_the_32_and_2_to_the_48_ticks() -> None:
    ticks = 2**32 - 1 - Fraction(1, 3)
    frames = schedule([Stream("a", 1, Fixed(60), Interval(interval_ns=8 * ticks))], 65_600)
    step = round(ticks * 2**32)
    assert frames["due"].tolist() == [number * step >> 32 for number in range(65_600)]
    assert frames["due"][-1] > 2**48
    assert (frames["start"] == frames["due"]).all()


def test_a_clock_that_is_fast_has_more_ticks_in_a_microsecond() -> None:
    increment = (8 << 40) * 999_999 // 1_000_000
    stream = Stream("a", 1, Fixed(60), Interval(interval_ns=1_000_000))
    assert schedule([stream], 1001, increment)["due"][-1] == 125_000_125


def test_what_fills_the_line_by_the_clock_still_does_where_the_clock_is_slow() -> None:
    increment = (8 << 40) * 1_000_050 // 1_000_000
    half = Stream("a", 1, Fixed(976), Interval(rate_bps=5e8))
    other = Stream("b", 2, Fixed(976), Interval(rate_bps=5e8), start_ns=8000)
    frames = schedule([half, other], 100_000, increment)
    assert (np.diff(frames["start"]) >= 1000).all()
    assert frames["start"][-1] == pytest.approx(99_999 * 1000, abs=2)
    assert (frames["start"] - frames["due"]).max() <= 1


# Lengths and random numbers ----------------------------------------------------------------------------


def test_xorshift_is_that_of_its_author() -> None:
    # Marsaglia's example: y = 2463534242 gives 723471715 first.
    draws = Xorshift(2463534242)
    assert [draws.draw() for _ in range(3)] == [723471715, 2497366906, 2064144800]


def test_streams_of_different_ids_or_seeds_draw_different_numbers() -> None:
    streams = [Stream("a", number, Fixed(60), seed=seed) for number in range(100) for seed in (0, 1, 2**32 - 1)]
    states = {state_of(stream, purpose) for stream in streams for purpose in range(6)}
    assert len(states) == 100 * 3 * 6
    assert 0 not in states


def test_imix_has_its_shares_and_is_spread() -> None:
    lengths = [length for _, length in _first(Stream("a", 1, IMIX, Interval(pps=1)), 12_000)]
    assert Counter(lengths) == {60: 7000, 590: 4000, 1514: 1000}
    assert max(len(run) for run in "".join("s" if length == 60 else " " for length in lengths).split()) <= 2


def test_drawn_lengths_have_the_frequencies_of_the_table() -> None:
    drawn = Stream("a", 1, Lengths(IMIX.entries, random=True), Interval(pps=1))
    counts = Counter(length for _, length in _first(drawn, 120_000))
    for length, share in {60: 7 / 12, 590: 4 / 12, 1514: 1 / 12}.items():
        sigma = math.sqrt(120_000 * share * (1 - share))
        assert abs(counts[length] - 120_000 * share) < 4 * sigma


def test_random_lengths_reach_both_ends_and_all_between() -> None:
    lengths = [length for _, length in _first(Stream("a", 1, RandomLength(60, 187), Interval(pps=1)), 20_000)]
    counts = np.bincount(np.array(lengths) - 60, minlength=128)
    assert len(counts) == 128
    # 127 degrees of freedom: the mean of chi square is 127, its standard deviation 16.
    assert float(((counts - 156.25) ** 2 / 156.25).sum()) < 127 + 4 * 16


def test_the_law_of_the_gaps_has_the_mean_of_an_exponential() -> None:
    """Over all 2^32 - 1 numbers: those of z leading zeros are 2^(31-z), and the table's parts are alike among them."""
    ln2, table = logarithms()
    total = Fraction(0)
    for zeros in range(32):
        numbers = 2 ** (31 - zeros)
        if numbers >= 512:
            total += numbers * (zeros * ln2 + Fraction(sum(table), 512))
        else:
            step = 512 // numbers
            total += sum(zeros * ln2 + table[part] for part in range(0, 512, step))
    mean = total / (2**32 - 1) / 2**27
    assert abs(mean - 1) < Fraction(1, 10**6)


def test_gaps_are_exponential_by_their_distance_from_the_law() -> None:
    stream = Stream("a", 1, Fixed(60), Interval(interval_ns=8 * 10_000, exponential=True))
    frames = schedule([stream], 100_001)
    gaps = np.sort(np.diff(frames["due"])) / 10_000
    law = 1 - np.exp(-gaps)
    ranks = np.arange(1, len(gaps) + 1) / len(gaps)
    distance = max(np.abs(ranks - law).max(), np.abs(ranks - 1e-5 - law).max())
    assert distance < 0.006  # One sample in a thousand of a true exponential is beyond 0.0062.
    assert abs(gaps.mean() - 1) < 3.3 / math.sqrt(len(gaps))


@pytest.mark.parametrize("u", [1, 2, 3, 0x12345, 2**31 - 1, 2**31, 2**32 - 1, 0x80400000, 0x803FFFFF])
def test_a_gap_is_the_logarithm_of_its_number(u: int) -> None:
    # A part of the table is 1/1024 wide: half of it, over the least value in it, is the most that it is off.
    assert exponential(u) / 2**27 == pytest.approx(-math.log(u / 2**32), abs=1 / 1000)


def test_gaps_of_bursts_are_drawn_once_a_burst() -> None:
    single = Stream("a", 1, Fixed(60), Interval(interval_ns=800_000, exponential=True))
    bursts = Stream("a", 1, Fixed(60), Interval(interval_ns=800_000, exponential=True, burst=Burst(5)))
    assert [due for due, _ in _first(bursts, 500)][::5] == [due for due, _ in _first(single, 100)]
