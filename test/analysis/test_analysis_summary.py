# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of figures, with all records and without some, and the truth beside them: every figure is known by arithmetic."""

import json
from dataclasses import replace

import numpy as np
import pytest

from liteprobe.cores.formats import NO_SEQUENCE, RECORD_DTYPE
from liteprobe.host.analysis import truth
from liteprobe.host.analysis.arrivals import packets
from liteprobe.host.analysis.calibration import Calibration, calibrate, fit_line, load
from liteprobe.host.analysis.summary import TrainResult, row
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.report.files import flat
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.tools.refusals import refusal
from liteprobe.sim.models.receive.meters import DelayModel, SequenceModel

SLOT_NS = 672  # Of a frame of 60 octets.


def result_of(arrivals: list[tuple[int, int]], program: TrainProgram) -> TrainResult:
    """Return a result of (sequence, delay in ns) in order of arrival, sent back to back from 1000 ns on."""
    records = np.zeros(len(arrivals), dtype=RECORD_DTYPE)
    for record, (number, delay_ns) in zip(records, arrivals, strict=True):
        record["sequence"], record["length"] = number, program.length
        record["tx_stamp"] = 1000 + SLOT_NS * number
        record["rx_stamp"] = record["tx_stamp"] + np.uint64(delay_ns)
    return TrainResult(program, records, {}, program.total, 0, "free-running", 8.0, True, ())


def counted_result(arrivals: list[tuple[int, int]], program: TrainProgram) -> TrainResult:
    """Return the same with what a probe counts and flags, as its models do."""
    result, order, delays = result_of(arrivals, program), SequenceModel(), DelayModel()
    for record in (records := result.records):
        record["flags"] = order.arrive(int(record["sequence"]))
        delays.arrive(int(record["rx_stamp"]), int(record["tx_stamp"]))
    counters = {name: getattr(order, name) for name in ("lost", "duplicated", "reordered", "beyond_window", "expected")}
    counters |= {"delay_min": delays.least, "delay_max": delays.most}
    counters |= {"delay_sum": delays.total, "delay_square_sum": delays.squares, "frames": len(records)}
    counters |= {"first_stamp": int(records["rx_stamp"][0]), "last_stamp": int(records["rx_stamp"][-1])}
    return replace(result, counters=counters)


def test_figures_of_two_trains():
    # Trains of four; their dispersions are 3 slots, and 3 slots and 24 ns.
    delays = [100, 108, 100, 100, 100, 100, 100, 124]
    found = row(result_of(list(enumerate(delays)), TrainProgram(60, 4, 2)))
    rates = [1e9, 3 * 672e9 / (3 * SLOT_NS + 24)]
    assert found["dispersion_rate_bps"]["mean"] == pytest.approx(sum(rates) / 2, rel=1e-14)
    assert found["dispersion_rate_bps"]["std"] == pytest.approx((rates[0] - rates[1]) / 2**0.5, rel=1e-12)
    assert found["frame_bps"] == pytest.approx(found["dispersion_rate_bps"]["mean"] * 60 / 84, rel=1e-14)
    assert found["udp_payload_bps"] == pytest.approx(found["dispersion_rate_bps"]["mean"] * 18 / 84, rel=1e-14)
    assert found["theory_bps"] == 1e9 and found["utilisation"] == 1.0
    owd = found["owd_ns"]
    assert (owd["mean"], owd["min"], owd["max"], owd["p50"], owd["p99"]) == (104.0, 100, 124, 100, 124)
    assert owd["std"] == pytest.approx(np.std(delays, ddof=1), rel=1e-14)
    assert found["pdv_ns"]["max"] == 24 and found["pdv_ns"]["min"] == 0
    # From the last of a train to the first of the next there is no pair: 8, -8, 0 and 0, 0, 24.
    assert (found["ipdv_ns"]["min"], found["ipdv_ns"]["max"], found["ipdv_ns"]["mean"]) == (-8, 24, 4.0)
    assert [train["dispersion_ns"]["total"] for train in found["trains"]] == [3 * SLOT_NS, 3 * SLOT_NS + 24]
    assert [train["owd_mean_ns"] for train in found["trains"]] == [102.0, 106.0]


def test_lost_doubled_reordered_and_expired_are_told_apart():
    # 1 is lost, 3 comes twice, 4 after 5, 7 after the waiting time.
    arrivals = [(0, 100), (2, 100), (3, 100), (3, 140), (5, 100), (4, 900), (6, 1500), (7, 5001)]
    found = row(result_of(arrivals, TrainProgram(60, 8)), waiting_time_ns=5000)
    counts = {name: found[name] for name in ("sent", "received", "lost", "duplicated", "reordered", "expired", "late")}
    assert counts == {
        "sent": 8, "received": 6, "lost": 2, "duplicated": 1, "reordered": 1, "expired": 1, "late": 0,
    }  # fmt: skip
    assert found["reordering_extent_max"] == 1
    assert found["owd_ns"]["max"] == 1500


@pytest.mark.parametrize("flag", [1 << bit for bit in (0, 1, 2, 3, 7, 8)])
def test_damaged_and_foreign_frames_are_measured_by_nobody(flag):
    result = result_of([(0, 100), (1, 100), (2, 9999)], TrainProgram(60, 3))
    result.records["flags"][2] = flag
    found = row(result)
    assert (found["received"], found["lost"], found["owd_ns"]["max"]) == (2, 1, 100)


def test_numbers_that_were_never_sent_are_left_out():
    assert packets(result_of([(0, 100), (77, 100)], TrainProgram(60, 3))).sequence.tolist() == [0]


def test_nothing_received_gives_no_figure_and_valid_json():
    found = row(result_of([], TrainProgram(60, 10)))
    assert found["dispersion_rate_bps"]["mean"] is None and found["owd_ns"]["p50"] is None and found["lost"] == 10
    json.dumps(found, allow_nan=False)


def test_one_frame_has_a_delay_but_no_throughput():
    found = row(result_of([(0, 64)], TrainProgram(60, 1)))
    assert found["dispersion_rate_bps"]["mean"] is None and found["owd_ns"]["mean"] == 64.0


def test_row_has_all_that_was_promised():
    found = row(result_of([(0, 1), (1, 1)], TrainProgram(60, 2)))
    promised = (
        "length count repeat utilisation dispersion_rate_bps capacity theory_bps owd_ns ipdv_ns pdv_ns lost duplicated reordered "
        "late fcs_errors clock_state uncertainty_ns"
    )
    assert set(promised.split()) <= set(found)
    assert set(found["owd_ns"]) == {"mean", "std", "min", "max", "p50", "p99", "p99_9"}
    assert flat(found)["owd_ns.p99_9"] == 1.0 and "trains" not in flat(found)


# Calibration --------------------------------------------------------------------------------------


def rows_of(slope: float, intercept: float) -> list[dict]:
    programs = [TrainProgram(length, 2, 3) for length in (60, 100, 1000)]
    return [row(result_of([(n, int(intercept + slope * p.length)) for n in range(6)], p)) for p in programs]


def test_calibration_takes_the_set_up_out(tmp_path):
    found = calibrate(rows_of(8, 3000), slope=8, intercept=96)
    assert (found.line.slope, found.line.intercept) == pytest.approx((8, 3000), rel=1e-12)
    assert found.line.points == 9
    (tmp_path / "line.json").write_text(found.text())
    corrected = load(tmp_path / "line.json").correct(rows_of(8, 3100)[2])
    assert corrected["owd_ns"]["mean"] == pytest.approx(8 * 1000 + 96 + 100, rel=1e-12)
    assert corrected["owd_ns"]["std"] == 0.0 and corrected["calibration_ns"] == pytest.approx(2904, rel=1e-12)


def test_calibration_needs_two_lengths():
    assert "two lengths" in refusal(calibrate, rows_of(8, 0)[:1])


@pytest.mark.parametrize("text", ["", "{}", '{"line": 1}', "[]"])
def test_a_file_that_is_no_calibration_is_refused(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    assert "is not a calibration" in refusal(load, tmp_path / "x.json")


def test_correction_is_measured_less_theory():
    line = fit_line(np.array([0, 100]), np.array([50, 850]))
    assert Calibration(line, 0.0, 10.0).correction_ns(200) == 50 + 8 * 200 - 10


# Truth --------------------------------------------------------------------------------------------


def truth_rows(*rows: tuple[int, int, int, int, int, int]) -> np.ndarray:
    """Return rows of (sfd_tick, port, direction, fate, sequence, origin_tick)."""
    table = np.zeros(len(rows), dtype=truth.TRUTH_DTYPE)
    for entry, values in zip(table, rows, strict=True):
        for name, value in zip(
            ("sfd_tick", "port", "direction", "fate", "sequence", "origin_tick"), values, strict=True
        ):
            entry[name] = value
    return table


TABLE = truth_rows(
    (100, 0, 0, 0, 0, 0), (184, 0, 0, 0, 1, 0), (268, 0, 0, 1, 2, 0),  # First program; 2 is lost.
    (900, 0, 0, 0, 0, 0), (1000, 0, 0, 0, 1, 0),  # Second program, the same numbers again.
    (950, 0, 0, 0, NO_SEQUENCE, 0), (960, 1, 1, 0, NO_SEQUENCE, 950),  # Management is none of them.
    (150, 1, 1, 0, 0, 100), (234, 1, 1, 0, 1, 184), (240, 1, 1, 3, 1, 184),  # 1 comes twice.
    (970, 1, 1, 0, 0, 900), (1080, 1, 1, 0, 1, 1000),
)  # fmt: skip


def test_truth_is_split_into_programs_that_use_the_same_numbers():
    first, second = truth.programs(TABLE, 0, 1, [3, 2])
    assert first.sent.tolist() == [100, 184, 268] and first.sequence.tolist() == [0, 1, 1]
    assert second.owd_ns.tolist() == [560, 640]


def test_deviation_is_measured_less_true_delay_of_the_first_arrival():
    first, second = truth.programs(TABLE, 0, 1, [3, 2])
    assert truth.deviations_ns(np.array([1, 0]), np.array([404, 398]), first).tolist() == [4, -2]
    assert truth.deviations_ns(np.array([1, 0]), np.array([641, 560]), second).tolist() == [1, 0]
    assert truth.wire_figures(first) == {"owd_ns": 400.0, "received": 2, "lost": 1}
    pins = truth.pin_figures(first, 3, 60, np.array([4, -2]))
    assert pins == {"dispersion_rate_bps": 1e9, "deviation_ns": {"mean": 1.0, "min": -2, "max": 4}}


def test_a_packet_that_truth_does_not_know_is_an_error():
    first, _ = truth.programs(TABLE, 0, 1, [3, 2])
    assert "doesn't know" in refusal(truth.deviations_ns, np.array([2]), np.array([400]), first, error=ProbeError)


def test_another_number_of_frames_than_sent_is_an_error():
    assert "holds 5 frames, but 6" in refusal(truth.programs, TABLE, 0, 1, [3, 3], error=ProbeError)


def test_truth_file_is_read_up_to_its_last_whole_row(tmp_path):
    (tmp_path / "t").write_bytes(TABLE.tobytes() + b"half")
    assert truth.read(tmp_path / "t").tolist() == TABLE.tolist()
    assert "can't be read" in refusal(truth.read, tmp_path / "none", error=ProbeError)


# Records that are missing -------------------------------------------------------------------------


def without(result: TrainResult, *numbers: int) -> TrainResult:
    """Return a result without the records of these numbers."""
    missing = np.isin(result.records["sequence"], numbers)
    return replace(result, records=result.records[~missing], complete=False)


def test_rate_of_a_train_comes_from_the_probe_when_records_are_missing():
    whole = counted_result([(number, 100 + 8 * (number % 3)) for number in range(11)], TrainProgram(60, 11))
    found, known = row(without(whole, *range(3, 11))), row(whole)
    assert found["dispersion_rate_bps"] == known["dispersion_rate_bps"] != dict.fromkeys(known["dispersion_rate_bps"])
    assert [found[name] for name in ("received", "lost", "duplicated", "reordered")] == [11, 0, 0, 0]
    for name in ("mean", "std", "min", "max"):
        assert found["owd_ns"][name] == pytest.approx(known["owd_ns"][name], rel=1e-12)
        assert found["pdv_ns"][name] == pytest.approx(known["pdv_ns"][name], rel=1e-12)
    assert found["records"] == {"held": 3, "counted": 11} and not found["complete"]


def test_figures_of_packets_that_are_not_there_are_not_given():
    found = row(without(counted_result([(number, 100) for number in range(10)], TrainProgram(60, 10)), 5))
    assert [found["owd_ns"][name] for name in ("p50", "p99", "p99_9")] == [None] * 3
    assert (set(found["ipdv_ns"].values()), found["jitter_ns"]) == ({None}, None)


def test_trains_whose_ends_are_known_keep_their_rate_when_nothing_was_lost():
    whole = counted_result([(number, 100 + number) for number in range(8)], TrainProgram(60, 4, 2))
    assert row(without(whole, 1, 6))["dispersion_rate_bps"] == row(whole)["dispersion_rate_bps"]
    one = row(without(whole, 3))
    assert one["dispersion_rate_bps"]["mean"] is None
    assert one["trains"][1] == row(whole)["trains"][1] and one["trains"][0]["dispersion_rate_bps"] is None


def test_lost_frames_are_not_mistaken_for_missing_records():
    whole = counted_result([(number, 100) for number in range(8) if number != 2], TrainProgram(60, 4, 2))
    found = row(without(whole, 1))
    assert (found["received"], found["lost"]) == (7, 1)
    assert [train["received"] for train in found["trains"]] == [None, 4]


def test_copies_spoil_what_the_probe_sums_up():
    whole = counted_result([(0, 100), (1, 100), (1, 900), (3, 140), (2, 900)], TrainProgram(60, 4))
    found = row(without(whole, 3))
    assert [found[name] for name in ("received", "lost", "duplicated", "reordered")] == [4, 0, 1, 1]
    assert {name: value for name, value in found["owd_ns"].items() if value is not None} == {"min": 100}
    assert (found["dispersion_rate_bps"]["mean"], found["capacity"]["bps"]) == (None, None)
    assert found["reordering_extent_max"] is None


def test_waiting_time_that_may_have_passed_leaves_counts_open():
    whole = counted_result([(0, 100), (1, 100), (2, 5001)], TrainProgram(60, 3))
    found = row(without(whole, 1), waiting_time_ns=5000)
    assert [found[name] for name in ("received", "lost", "expired")] == [None] * 3
    assert (found["owd_ns"]["min"], found["owd_ns"]["mean"]) == (100, None)
    assert row(without(whole, 1), waiting_time_ns=5001)["received"] == 3


def test_frames_later_than_the_probe_remembers_are_not_told_from_copies():
    arrivals = [(number, 100) for number in range(1, 1500)] + [(0, 10**6)]
    whole = counted_result(arrivals, TrainProgram(60, 1500))
    found = row(without(whole, 700))
    assert [found[name] for name in ("received", "lost", "duplicated", "reordered")] == [None] * 4


def test_a_delay_beyond_what_the_probe_squares_gives_no_deviation():
    whole = counted_result([(0, 100), (1, 2**32)], TrainProgram(60, 2))
    found = row(without(whole, 0))["owd_ns"]
    assert (found["std"], found["max"]) == (None, 2**32)


def test_records_that_are_fewer_than_the_probe_counted_are_missing_whatever_the_ring_says():
    whole = counted_result([(number, 100) for number in range(10)], TrainProgram(60, 10))
    found = row(replace(whole, records=whole.records[:9]))
    assert found["records"] == {"held": 9, "counted": 10} and not found["complete"] and found["received"] == 10
