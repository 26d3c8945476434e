# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Delay, its variation and percentiles, against the vectors of the RFCs and arithmetic."""

import numpy as np
import pytest

from liteprobe.host.analysis.delay import interarrival_jitter, ipdv, owd, pdv, percentile

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
