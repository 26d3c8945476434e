# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Delay, loss, reordering, dispersion and capacity of packets, against the vectors of the RFCs and arithmetic."""

import numpy as np
import pytest

from liteprobe.host.analysis import theory
from liteprobe.host.analysis.capacity import Capacity, dispersion_rate, dispersions, pair_capacity, together
from liteprobe.host.analysis.delay import interarrival_jitter, ipdv, owd, pdv, percentile
from liteprobe.host.analysis.sequence import arrivals, first_arrivals, in_time, reordering

RFC_5481 = np.array([20, 10, 20, 25, 20])  # Section 4: delays of five packets.


def test_ipdv_of_rfc_5481():
    assert ipdv(np.arange(5), RFC_5481).tolist() == [-10, 10, 5, -5]


def test_pdv_of_rfc_5481():
    assert pdv(RFC_5481).tolist() == [10, 0, 10, 15, 10]


def test_ipdv_goes_by_sequence_and_needs_both_packets():
    sequences = np.array([4, 0, 1, 3], dtype=np.uint32)  # Packet 2 is lost, 4 came first.
    assert ipdv(sequences, np.array([100, 10, 13, 50])).tolist() == [3, 50]


def test_delay_is_negative_when_the_receiver_is_behind():
    tx, rx = np.array([1000, 5], dtype=np.uint64), np.array([992, 13], dtype=np.uint64)
    assert owd(tx, rx).tolist() == [-8, 8]


def test_delay_is_exact_where_a_double_would_round():
    tx = np.array([2**62 + 1], dtype=np.uint64)
    assert owd(tx, tx + np.uint64(3)).tolist() == [3]


def test_an_empty_stream_has_no_least_delay():
    with pytest.raises(ValueError, match="no least delay"):
        pdv(np.array([], dtype=np.int64))


def test_jitter_moves_by_a_sixteenth_of_what_is_new():
    jitter = [0.0]
    for step in [10, 10, 5, 5]:
        jitter.append(jitter[-1] + (step - jitter[-1]) / 16)
    assert interarrival_jitter(RFC_5481).tolist() == pytest.approx(jitter, rel=1e-14)


def test_jitter_of_many_packets_is_the_recursion():
    delays = np.random.default_rng(3).integers(0, 10_000, 1000)
    jitter = [0.0]
    for step in np.abs(np.diff(delays)):
        jitter.append(jitter[-1] + (step - jitter[-1]) / 16)
    assert interarrival_jitter(delays).tolist() == pytest.approx(jitter, rel=1e-12)


def test_jitter_of_no_packets_is_nothing():
    assert interarrival_jitter(np.array([], dtype=np.int64)).tolist() == []


@pytest.mark.parametrize(
    "percent, value", [(0, 1), (50, 500), (50.1, 501), (50.05, 501), (99, 990), (99.9, 999), (100, 1000)]
)
def test_percentile_is_an_observed_value(percent, value):
    assert percentile(np.arange(1000, 0, -1), percent) == value


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


@pytest.mark.sample(7)
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
    octets = [length, length + 4, length - theory.MAC_HEADER, length - theory.UDP_HEADERS]
    assert [round(100 * theory.share(length, part), 3) for part in octets] == [frame, with_fcs, ip, udp]


def test_ten_gigabit_takes_a_tenth_of_the_time():
    assert theory.slot_ns(1514, 1e10) == 1230.4


@pytest.mark.parametrize("load, rate", [(0.1, 909), (0.3, 769), (0.5, 667), (0.8, 556)])
def test_asymptotic_dispersion_rate_of_a_gigabit_hop(load, rate):
    assert round(theory.asymptotic_dispersion_rate(1e9, load, 1e9) / 1e6) == rate


def test_dispersion_rate_of_a_slow_train_into_a_fast_hop():
    assert theory.asymptotic_dispersion_rate(1e9, 0.5, 2e8) == 1e9 / 3.5


@pytest.mark.parametrize("length, count, ppm", [(1514, 100, 6.6), (1514, 1000, 0.65), (60, 100, 120), (60, 1000, 12)])
def test_one_tick_is_this_error_of_a_train(length, count, ppm):
    assert float(f"{1e6 * theory.tick_error(length, count):.2g}") == ppm


def test_utilisation_counts_what_is_around_a_frame():
    assert theory.utilisation(60, None) == 1.0
    assert theory.utilisation(60, 1344) == 0.5


@pytest.mark.parametrize("overhead, rate", [(24, 1e9), (0, 1e9 * 1514 / 1538), (-14, 1e9 * 1500 / 1538)])
def test_dispersion_rate_is_octets_after_the_first_frame_over_their_time(overhead, rate):
    stamps = 1_000_000_007 + 12304 * np.arange(100, dtype=np.uint64)
    assert dispersion_rate(stamps, 1514, overhead) == pytest.approx(rate, rel=1e-15)


def test_one_tick_more_lowers_the_rate_by_one_octet_in_all_of_the_train():
    stamps = 12304 * np.arange(100, dtype=np.uint64)
    stamps[-1] += 8
    assert dispersion_rate(stamps, 1514) == 1e9 * 99 * 1538 / (99 * 1538 + 1)


def test_order_of_arrival_does_not_change_the_rate():
    stamps = np.array([1344, 0, 672], dtype=np.uint64)
    assert dispersion_rate(stamps, 60) == 1e9
    assert dispersions(stamps).tolist() == [672, 672]


@pytest.mark.parametrize("stamps", [[], [5], [5, 5]])
def test_less_than_a_time_between_two_frames_is_no_rate(stamps):
    assert np.isnan(dispersion_rate(np.array(stamps, dtype=np.uint64), 60))


# Capacity by pairs --------------------------------------------------------------------------------

SLOT_NS = 12304  # Of a frame of 1514 octets at 1 Gb/s.


def asked(waits: list[list[int]], slot_ns: int = SLOT_NS, interval_ns: int = SLOT_NS, length: int = 1514) -> Capacity:
    """Return the capacity of trains of which each frame waited so long (ns) beside the times of the narrow link."""
    count = len(waits[0])
    place = np.arange(count)
    sent = np.array([10**9 * number + interval_ns * place for number in range(len(waits))], dtype=np.uint64)
    arrived = sent + np.array([3000 + (slot_ns - interval_ns) * place + np.array(wait) for wait in waits], np.uint64)
    numbers = np.arange(sent.size)
    return pair_capacity(numbers, count, sent.ravel(), arrived.ravel(), length)


def test_pairs_that_nobody_delayed_have_the_capacity():
    # Ten trains of two, two of them queued: one by traffic between its frames, one by traffic before it.
    found = asked([[0, 0]] * 8 + [[0, SLOT_NS], [SLOT_NS // 2, 0]])
    assert found == Capacity(1e9, 8e9 * 1538 / (SLOT_NS + 8), 8e9 * 1538 / (SLOT_NS - 8), 10, 8)


SHORT_NS = 672  # The slot of 60 octets: nothing shorter comes between two such frames.


def test_short_pairs_after_a_narrow_link_have_its_rate():
    queued = [[30_000, 30_000]] * 7
    assert asked([[0, 0]] * 8 + queued, 10 * SHORT_NS, SHORT_NS, 60).bps == 1e8
    few = asked([[0, 0]] * 7 + queued, 10 * SHORT_NS, SHORT_NS, 60)
    assert few.bps is None and "only 7 trains began without a queue" in few.reason and few.near_ns == 6720


def test_long_pairs_may_all_have_had_short_frames_between():
    # One to three frames of 60 octets came between: pairs are as alike as those of a slower link, of 948 Mb/s.
    found = asked([[0, SHORT_NS]] * 9 + [[0, 2 * SHORT_NS]] * 9 + [[100, 2 * SHORT_NS]] * 2)
    assert found.bps is None and found.reason.endswith("send short ones, too (--length 60,1514)")
    assert found.at_least_bps == 8e9 * 1538 / (SLOT_NS + SHORT_NS + 8)
    short = asked([[0, 0]] * 2 + [[0, SHORT_NS]] * 9, SHORT_NS, SHORT_NS, 60)
    assert [one.bps for one in together([(1514, found), (60, short)])] == [1e9, 1e9]


@pytest.mark.parametrize("length", [60, 1514])
def test_pairs_that_are_all_alike_need_a_second_length(length):
    alike = asked([[0, 0]] * 20, 80 * (length + 24), 8 * (length + 24), length)
    assert alike.bps is None and "--length 60,1514" in alike.reason
    assert alike.at_least_bps == pytest.approx(1e8, rel=2e-3) and alike.at_least_bps < 1e8
    other = 1574 - length
    beside = asked([[0, 0]] * 20, 80 * (other + 24), 8 * (other + 24), other)
    assert [(one.bps, one.length) for one in together([(length, alike), (other, beside)])] == [
        (1e8, length),
        (1e8, other),
    ]


def test_lengths_that_disagree_have_no_capacity():
    fast, slow = asked([[0, 0]] * 20), asked([[0, 0]] * 8 + [[9000, 9000]] * 8, 2 * SHORT_NS, SHORT_NS, 60)
    assert (fast.bps, slow.bps) == (1e9, 5e8)
    for found in together([(1514, fast), (60, slow)]):
        assert found.bps is None and "lengths disagree" in found.reason


def test_two_delays_that_are_alike_by_chance_are_no_least_delay():
    # 40 trains waited for up to 2 us: two of them alike to a tick are no surprise.
    waits = [[50 * number, 50 * number] for number in range(40)]
    found = asked([*waits, waits[0]], SHORT_NS, SHORT_NS, 60)
    assert (found.bps, found.at_least_bps) == (None, None) and "too few trains began without a queue" in found.reason
    assert asked([*waits, *waits[:1] * 9], SHORT_NS, SHORT_NS, 60).bps == 1e9


def test_pairs_of_one_train_that_queued_together_are_one_occasion():
    found = asked([[0, 0, 0], [9000, 9100, 9200], [7000, 7100, 7200]], SHORT_NS, SHORT_NS, 60)
    assert found.near == 2 and found.bps is None


def test_trains_that_wait_for_one_another_need_a_gap():
    found = asked([[9000 * number, 9000 * number] for number in range(6)], 10 * SHORT_NS, SHORT_NS, 60)
    assert found.bps is None and "leave more time between them (--gap)" in found.reason


@pytest.mark.parametrize(
    ("waits", "reason"),
    [
        ([[0, 0], [50, 50]], "one pair alone"),
        ([[0, 500], [0, 500], [500, 500], [900, 100]], "every pair was queued, the least by 400 ns"),
        ([[0, 32], [16, 0], [8, 24]], "are 12288 to 12336 ns long"),
        # One frame of other traffic between the first two, and none between the others.
        ([[0, *[SLOT_NS] * 9]] * 3, "came too soon for them"),
        ([[0, SLOT_NS]] * 20, "shorter frames may have come between all pairs"),
        ([[0]] * 3, "no two frames that follow each other are in the records"),
    ],
)
def test_nothing_is_claimed_where_pairs_may_have_been_queued(waits, reason):
    found = asked(waits)
    assert found.bps is None and reason in found.reason


def test_pairs_that_were_sent_slowly_say_nothing_of_a_faster_link():
    found = asked([[0, 0]] * 8, slot_ns=2 * SLOT_NS, interval_ns=2 * SLOT_NS)
    assert found.bps is None and "send them back to back" in found.reason
    assert found.at_least_bps == 8e9 * 1538 / (2 * SLOT_NS + 8)
    few = asked([[0, 0]] * 8 + [[30_000, 30_000]] * 8, 4 * SHORT_NS, 2 * SHORT_NS, 60)
    assert few.bps == 2.5e8


def test_frames_of_two_trains_are_no_pair():
    sent = np.array([0, SLOT_NS], dtype=np.uint64)
    assert pair_capacity(np.array([9, 10]), 10, sent, sent + np.uint64(100), 1514).pairs == 0


# Dispersion rate ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("load", "count", "rate"), [(0.3, 100, 770.607), (0.0, 100, 1000.0), (0.3, 10**6, 769.231)])
def test_dispersion_rate_of_a_train_is_above_its_limit(load, count, rate):
    assert round(theory.expected_dispersion_rate(1e9, load, count) / 1e6, 3) == rate


def test_dispersion_rate_of_a_pair_is_a_sum_over_poisson():
    # 1 - e^-m over m: the mean of 1 / (1 + K).
    assert theory.expected_dispersion_rate(1.0, 0.7, 2) == pytest.approx((1 - np.exp(-0.7)) / 0.7, rel=1e-14)
