# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Capacity, theory and the estimators over many trains, against arithmetic and a queue in plain Python."""

import numpy as np
import pytest

from liteprobe.host.analysis import theory
from liteprobe.host.analysis.capacity import dispersions, half_sample_mode, train_capacity

# Length, ns at 1G, frames/s, then the shares (%) of frame, frame with FCS, IP and UDP payload.
LINK = [
    (60, 672, 1488095.24, 71.429, 76.190, 54.762, 21.429),
    (64, 704, 1420454.55, 72.727, 77.273, 56.818, 25.000),
    (128, 1216, 822368.42, 84.211, 86.842, 75.000, 56.579),
    (256, 2240, 446428.57, 91.429, 92.857, 86.429, 76.429),
    (512, 4288, 233208.96, 95.522, 96.269, 92.910, 87.687),
    (1024, 8384, 119274.81, 97.710, 98.092, 96.374, 93.702),
    (1514, 12304, 81274.38, 98.440, 98.700, 97.529, 95.709),
]


@pytest.mark.parametrize("length, slot, frames, frame, with_fcs, ip, udp", LINK)
def test_link_carries_what_the_octets_allow(length, slot, frames, frame, with_fcs, ip, udp):
    assert theory.slot_ns(length) == slot
    assert round(theory.frames_per_second(length), 2) == frames
    octets = [length, length + theory.FCS, length - theory.MAC_HEADER, length - theory.UDP_HEADERS]
    assert [round(100 * theory.share(length, part), 3) for part in octets] == [frame, with_fcs, ip, udp]


def test_ten_gigabit_takes_a_tenth_of_the_time():
    assert theory.slot_ns(1514, 1e10) == 1230.4


@pytest.mark.parametrize("load, rate", [(0.1, 909), (0.3, 769), (0.5, 667), (0.8, 556)])
def test_asymptotic_dispersion_rate_of_a_gigabit_hop(load, rate):
    assert round(theory.dispersion_rate(1e9, load, 1e9) / 1e6) == rate


def test_dispersion_rate_of_a_slow_train_into_a_fast_hop():
    assert theory.dispersion_rate(1e9, 0.5, 2e8) == 1e9 / 3.5


@pytest.mark.parametrize("length, count, ppm", [(1514, 100, 6.6), (1514, 1000, 0.65), (60, 100, 120), (60, 1000, 12)])
def test_one_tick_is_this_error_of_a_train(length, count, ppm):
    assert float(f"{1e6 * theory.tick_error(length, count):.2g}") == ppm


def test_utilisation_counts_what_is_around_a_frame():
    assert theory.utilisation(60, None) == 1.0
    assert theory.utilisation(60, 1344) == 0.5


@pytest.mark.parametrize("overhead, rate", [(24, 1e9), (0, 1e9 * 1514 / 1538), (-14, 1e9 * 1500 / 1538)])
def test_capacity_is_octets_after_the_first_frame_over_their_time(overhead, rate):
    stamps = 1_000_000_007 + 12304 * np.arange(100, dtype=np.uint64)
    assert train_capacity(stamps, 1514, overhead) == pytest.approx(rate, rel=1e-15)


def test_one_tick_more_lowers_the_capacity_by_one_octet_in_all_of_the_train():
    stamps = 12304 * np.arange(100, dtype=np.uint64)
    stamps[-1] += 8
    assert train_capacity(stamps, 1514) == 1e9 * 99 * 1538 / (99 * 1538 + 1)


def test_order_of_arrival_does_not_change_the_capacity():
    stamps = np.array([1344, 0, 672], dtype=np.uint64)
    assert train_capacity(stamps, 60) == 1e9
    assert dispersions(stamps).tolist() == [672, 672]


@pytest.mark.parametrize("stamps", [[], [5], [5, 5]])
def test_less_than_a_time_between_two_frames_is_no_capacity(stamps):
    assert np.isnan(train_capacity(np.array(stamps, dtype=np.uint64), 60))


@pytest.mark.parametrize(
    "values, mode",
    [
        ([3.0], 3.0),
        ([1.0, 4.0], 2.5),
        ([1.0, 2.0, 9.0], 1.5),
        ([1.0, 8.0, 9.0], 8.5),
        ([1.0, 2.0, 3.0], 2.0),
        ([1.0, 5.0, 5.1, 9.0], 5.05),
        ([0.0, 10.0, 11.0, 11.5, 20.0, 30.0, 11.25], 11.375),  # 10 to 11.5, then the last two.
        ([7.0] * 9 + [1.0, 2.0], 7.0),
    ],
)
def test_half_sample_mode_is_the_middle_of_the_densest_halves(values, mode):
    assert half_sample_mode(np.array(values)) == mode
    assert half_sample_mode(np.array(values[::-1])) == mode


def test_an_empty_sample_has_no_mode():
    with pytest.raises(ValueError, match="empty sample"):
        half_sample_mode(np.array([]))


def pairs_through_a_loaded_hop(load: float, pairs: int, seed: int) -> np.ndarray:
    """Return the rates (Mb/s) of packet pairs that leave a 100 Mb/s link and share a 1 Gb/s one (Lindley recursion)."""
    random = np.random.default_rng(seed)
    slot = 8 * 1538.0  # Each frame's service time at 1 Gb/s (ns); the pair comes ten times slower.
    rates = []
    for _ in range(pairs):
        own = np.array([0.0, 10 * slot])
        cross = random.uniform(-1e6, own[-1] + slot, random.poisson(load * (1e6 + own[-1] + slot) / slot))
        arrivals = np.concatenate([own, cross])
        free, departures = -np.inf, np.empty(len(arrivals))
        for packet in np.argsort(arrivals):
            free = max(free, arrivals[packet]) + slot
            departures[packet] = free
        rates.append(1e3 * 8 * 1538 / (departures[1] - departures[0]))
    return np.array(rates)


@pytest.mark.parametrize("load", [0.5, 0.7])
def test_half_sample_mode_finds_the_narrow_link_behind_a_loaded_hop(load):
    seed = 2015
    rates = pairs_through_a_loaded_hop(load, pairs=1000, seed=seed)
    assert half_sample_mode(rates) == pytest.approx(100, rel=1e-3), f"seed {seed}"
    assert rates.max() > 150, f"seed {seed}: the least dispersion must mislead, or this is no loaded hop"
