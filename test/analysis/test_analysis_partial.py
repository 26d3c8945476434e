# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Figures of a program of which records are missing: each as with all records, or none."""

from dataclasses import replace

import numpy as np
import pytest

from liteprobe.cores.formats import RECORD_DTYPE
from liteprobe.host.analysis.summary import row
from liteprobe.host.traffic.train import TrainProgram, TrainResult
from liteprobe.sim.models.receive.meters import DelayModel, SequenceModel

SLOT_NS = 672  # Of a frame of 60 octets.


def result_of(arrivals: list[tuple[int, int]], program: TrainProgram) -> TrainResult:
    """Return what a probe says of (sequence, delay in ns) in order of arrival, sent back to back, with all records."""
    records = np.zeros(len(arrivals), dtype=RECORD_DTYPE)
    order, delays = SequenceModel(), DelayModel()
    for record, (number, delay_ns) in zip(records, arrivals, strict=True):
        record["sequence"], record["length"], record["tx_stamp"] = number, program.length, 1000 + SLOT_NS * number
        record["rx_stamp"] = 1000 + SLOT_NS * number + delay_ns
        record["flags"] = order.arrive(number)
        delays.arrive(int(record["rx_stamp"]), int(record["tx_stamp"]))
    counters = {name: getattr(order, name) for name in ("lost", "duplicated", "reordered", "beyond_window", "expected")}
    counters |= {"delay_min": delays.least, "delay_max": delays.most}
    counters |= {"delay_sum": delays.total, "delay_square_sum": delays.squares, "frames": len(records)}
    counters |= {"first_stamp": int(records["rx_stamp"][0]), "last_stamp": int(records["rx_stamp"][-1])}
    return TrainResult(program, records, counters, program.total, 0, "free-running", 8.0, True, ())


def without(result: TrainResult, *numbers: int) -> TrainResult:
    """Return a result without the records of these numbers."""
    missing = np.isin(result.records["sequence"], numbers)
    return replace(result, records=result.records[~missing], complete=False)


def test_rate_of_a_train_comes_from_the_probe_when_records_are_missing():
    whole = result_of([(number, 100 + 8 * (number % 3)) for number in range(11)], TrainProgram(60, 11))
    found, known = row(without(whole, *range(3, 11))), row(whole)
    assert found["dispersion_rate_bps"] == known["dispersion_rate_bps"] != dict.fromkeys(known["dispersion_rate_bps"])
    assert [found[name] for name in ("received", "lost", "duplicated", "reordered")] == [11, 0, 0, 0]
    for name in ("mean", "std", "min", "max"):
        assert found["owd_ns"][name] == pytest.approx(known["owd_ns"][name], rel=1e-12)
        assert found["pdv_ns"][name] == pytest.approx(known["pdv_ns"][name], rel=1e-12)
    assert found["records"] == {"held": 3, "counted": 11} and not found["complete"]


def test_figures_of_packets_that_are_not_there_are_not_given():
    found = row(without(result_of([(number, 100) for number in range(10)], TrainProgram(60, 10)), 5))
    assert [found["owd_ns"][name] for name in ("p50", "p99", "p99_9")] == [None] * 3
    assert (set(found["ipdv_ns"].values()), found["jitter_ns"]) == ({None}, None)


def test_trains_whose_ends_are_known_keep_their_rate_when_nothing_was_lost():
    whole = result_of([(number, 100 + number) for number in range(8)], TrainProgram(60, 4, 2))
    assert row(without(whole, 1, 6))["dispersion_rate_bps"] == row(whole)["dispersion_rate_bps"]
    one = row(without(whole, 3))
    assert one["dispersion_rate_bps"]["mean"] is None
    assert one["trains"][1] == row(whole)["trains"][1] and one["trains"][0]["dispersion_rate_bps"] is None


def test_lost_frames_are_not_mistaken_for_missing_records():
    whole = result_of([(number, 100) for number in range(8) if number != 2], TrainProgram(60, 4, 2))
    found = row(without(whole, 1))
    assert (found["received"], found["lost"]) == (7, 1)
    assert [train["received"] for train in found["trains"]] == [None, 4]


def test_copies_spoil_what_the_probe_sums_up():
    whole = result_of([(0, 100), (1, 100), (1, 900), (3, 140), (2, 900)], TrainProgram(60, 4))
    found = row(without(whole, 3))
    assert [found[name] for name in ("received", "lost", "duplicated", "reordered")] == [4, 0, 1, 1]
    assert {name: value for name, value in found["owd_ns"].items() if value is not None} == {"min": 100}
    assert (found["dispersion_rate_bps"]["mean"], found["capacity"]["bps"]) == (None, None)
    assert found["reordering_extent_max"] is None


def test_waiting_time_that_may_have_passed_leaves_counts_open():
    whole = result_of([(0, 100), (1, 100), (2, 5001)], TrainProgram(60, 3))
    found = row(without(whole, 1), waiting_time_ns=5000)
    assert [found[name] for name in ("received", "lost", "expired")] == [None] * 3
    assert (found["owd_ns"]["min"], found["owd_ns"]["mean"]) == (100, None)
    assert row(without(whole, 1), waiting_time_ns=5001)["received"] == 3


def test_frames_later_than_the_probe_remembers_are_not_told_from_copies():
    arrivals = [(number, 100) for number in range(1, 1500)] + [(0, 10**6)]
    whole = result_of(arrivals, TrainProgram(60, 1500))
    found = row(without(whole, 700))
    assert [found[name] for name in ("received", "lost", "duplicated", "reordered")] == [None] * 4


def test_a_delay_beyond_what_the_probe_squares_gives_no_deviation():
    whole = result_of([(0, 100), (1, 2**32)], TrainProgram(60, 2))
    found = row(without(whole, 0))["owd_ns"]
    assert (found["std"], found["max"]) == (None, 2**32)


def test_records_that_are_fewer_than_the_probe_counted_are_missing_whatever_the_ring_says():
    whole = result_of([(number, 100) for number in range(10)], TrainProgram(60, 10))
    found = row(replace(whole, records=whole.records[:9]))
    assert found["records"] == {"held": 9, "counted": 10} and not found["complete"] and found["received"] == 10
