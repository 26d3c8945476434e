# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Loss, duplication and reordering, against the examples of RFC 4737 and RFC 5560."""

import numpy as np
import pytest

from liteprobe.host.analysis.sequence import arrivals, first_arrivals, in_time, reordering

ONE = np.array([1, 2, 3, 5, 6, 7, 8, 4, 9, 10])  # RFC 4737, 7.1
TWO = np.array([1, 2, 3, 4, 7, 5, 6, 8])  # 7.2
THREE = np.array([1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11])  # 7.3
TWO_DISCONTINUITIES = np.array([1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 12, 13, 11])  # 7.4


@pytest.mark.parametrize(
    "numbers, extents",
    [(ONE, [4]), (TWO, [1, 2]), (THREE, [4, 5, 6]), (TWO_DISCONTINUITIES, [2, 3, 2]), (np.arange(9), [])],
)
def test_extents_of_rfc_4737(numbers, extents):
    assert reordering(numbers).extents.tolist() == extents


def test_single_packet_of_rfc_4737_is_late_by_62_ms_and_400_octets():
    arrival_ms = np.array([68, 88, 108, 148, 168, 188, 208, 210, 258, 278])  # Its table, DstTime.
    found = reordering(ONE)
    assert found.late_times(arrival_ms * 10**6).tolist() == [62 * 10**6]
    assert found.byte_offsets(ONE, np.full(10, 100)).tolist() == [400]
    assert found.n_reordering.tolist() == [4]


def test_octets_stored_leave_out_what_is_before_the_packet():
    found = reordering(TWO_DISCONTINUITIES)
    assert found.byte_offsets(TWO_DISCONTINUITIES, np.arange(100, 113)).tolist() == [103 + 104, 103 + 104, 110 + 111]


def test_n_reordering_ends_at_the_first_smaller_number():
    assert reordering(THREE).n_reordering.tolist() == [4, 0, 0]
    assert reordering(TWO_DISCONTINUITIES).n_reordering.tolist() == [2, 0, 2]


def test_gap_and_runs_of_rfc_4737():
    found = reordering(TWO_DISCONTINUITIES)
    assert found.gaps.tolist() == [7]
    assert found.runs.tolist() == [5, 0, 5]


def by_definition(numbers: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Return positions, extents and n-reordering, word for word as RFC 4737 defines them."""
    expected, positions, extents, n_reordering = 0, [], [], []
    for i, number in enumerate(numbers):
        if number >= expected:
            expected = number + 1
            continue
        positions.append(i)
        extents.append(i - min(j for j in range(i) if numbers[j] > number))
        n = 0
        while n < i and numbers[i - n - 1] > number:
            n += 1
        n_reordering.append(n)
    return positions, extents, n_reordering


@pytest.mark.parametrize("seed", range(20))
def test_random_orders_agree_with_the_definition(seed):
    numbers = np.random.default_rng(seed).permutation(200)
    found = reordering(numbers)
    result = (found.positions.tolist(), found.extents.tolist(), found.n_reordering.tolist())
    assert result == by_definition(numbers.tolist()), f"seed {seed}"


def test_arrivals_a_packet_tell_lost_from_doubled():
    assert arrivals(np.array([0, 2, 2, 4, 2], dtype=np.uint32), 6).tolist() == [1, 0, 3, 0, 1, 0]


def test_a_number_that_was_not_sent_is_refused():
    with pytest.raises(ValueError, match="sequence 6 arrived, but 6 frames were sent"):
        arrivals(np.array([6], dtype=np.uint32), 6)


def test_first_arrival_of_each_packet_counts():
    assert first_arrivals(np.array([3, 1, 3, 1, 0])).tolist() == [True, True, False, False, True]


def test_waiting_time_parts_late_from_lost():
    delays = np.array([999, 1000, 1001])
    assert in_time(delays, 1000).tolist() == [True, True, False]
    assert in_time(delays, None).tolist() == [True, True, True]
