# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Soak tests and tests of bit errors, against devices of plain Python that lose what is known, when it is known."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp, factorial
from pathlib import Path

import pytest

from liteprobe.host import ProbeError, UsageError
from liteprobe.host.analysis.confidence import poisson_bounds
from liteprobe.host.cli.main import main
from liteprobe.host.run.figures import StreamFigures
from liteprobe.host.suites.soak import Soak, SoakRequest, SoakResult, bits_needed, seconds_needed
from liteprobe.host.suites.trials import Journal
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.suites.fake_probe import LEAD, FakeProbe, FakeTraffic
from liteprobe.sim.models.forwarder import Device, Hostile, Lossy

STREAM = Stream("one", 1, Fixed(512), Interval(share=Fraction(1, 2)))
PRBS = replace(STREAM, fill="prbs")
BITS = 8 * (512 - 60)  # Of the fill of a frame: behind headers and probe header.


def run(device: Device, seconds: float = 0.02, segment_s: float = 0.005, **others: bool) -> SoakResult:
    return Soak(FakeProbe(device, **others), SoakRequest((STREAM,), seconds, segment_s)).run()


def test_a_run_without_an_error_passes_and_has_sent_all() -> None:
    result = run(Device())
    (row,) = result.rows
    frames = 4 * int(0.005 * 125e6 / 2 / 536)
    assert (row.sent, row.received, row.lost, row.events, row.first_error_s) == (frames, frames, 0, 0, None)
    assert (row.verdict, row.reason, row.mean_ns) == ("passed", "", 8.0 * (512 + 12 + 375))
    assert row.error_free_s == row.seconds == pytest.approx(4 * (frames // 4) * 2 * 536 * 8e-9)
    assert str(result.outcome) == "passed" and "passed, 0 events" in repr(result)


def test_what_is_lost_for_a_while_is_one_event_at_its_time() -> None:
    whole = run(Device())
    end = LEAD + round(whole.trials[0].seconds * 125e6)  # Of the first segment.
    away = (LEAD + 100_000, LEAD + 200_000)
    result = run(Hostile(away=away))
    lost = len([start for start in range(LEAD, end, 2 * 536) if away[0] <= start < away[1]])
    (event,), (row,) = result.events, result.rows
    assert (event.lost, row.lost, row.events) == (lost, lost, 1)
    assert event.at_s == row.first_error_s == 0.0  # The first block of the fake probe's two ends in the middle.
    assert event.until_s == pytest.approx(0.0025, rel=0.01)
    assert row.error_free_s == pytest.approx(row.seconds - event.until_s)
    assert row.verdict == "FAILED" and f"{lost} lost" in row.reason
    assert f"{lost} lost" in event.words()


def test_each_lost_frame_is_counted_once() -> None:
    result = run(Lossy(one_of=100))
    assert result.lost == sum(one.lost for one in result.events) == result.sent // 100
    assert str(result.outcome) == "FAILED"


@pytest.mark.parametrize("device", [Hostile(loses_all=True), Hostile(is_mirror=True)])
def test_a_device_that_gives_nothing_back_fails(device: Device) -> None:
    (row,) = run(device).rows
    assert (row.verdict, row.reason, row.received) == ("FAILED", "nothing came", 0)


def test_frames_that_come_twice_fail_it_too() -> None:
    (row,) = run(Hostile(times=2)).rows
    assert row.verdict == "FAILED" and "doubled" in row.reason


def test_a_bad_tester_is_no_fault_of_the_device() -> None:
    (row,) = run(Device(), is_late=True).rows
    assert row.verdict == "not known" and "the tester" in row.reason


def test_a_run_that_was_ended_goes_on_and_says_the_same(tmp_path: Path) -> None:
    request, head = SoakRequest((STREAM,), 0.02, 0.005), {"suite": "soak"}
    whole = Soak(FakeProbe(Lossy(one_of=70)), request).run()
    path = tmp_path / "segments.jsonl"
    device = Lossy(one_of=70)
    with Journal(path, head) as journal, pytest.raises(ProbeError, match="link of port 0"):
        one = Soak(FakeProbe(device, fails_at=3), request, journal)
        one.run()
    ended = one.result()
    assert not ended.is_complete and str(ended.outcome) == "FAILED" and len(ended.trials) == 2
    with Journal(path, head, resume=True) as journal:
        assert journal.kept == 2
        again = Soak(FakeProbe(device), request, journal).run()
    assert again.to_dict()["streams"] == whole.to_dict()["streams"]
    assert again.events == whole.events


# Bit errors ---------------------------------------------------------------------------------------


class PrbsProbe(FakeProbe):
    """A probe that finds so many wrong bits in each segment."""

    errors: Sequence[int] = ()

    def send(self, streams: Sequence[Stream], receive: Mapping[int, int] | None = None) -> "PrbsTraffic":
        self.sends += 1
        return PrbsTraffic(self, streams, receive or {0: 1, 1: 0})


class PrbsTraffic(FakeTraffic):
    """Traffic whose rows have what a checker of PRBS counts."""

    probe: PrbsProbe

    def _row(self, stream: Stream, until: int | None = None) -> StreamFigures:
        row = super()._row(stream, until)
        wrong = self.probe.errors[self.probe.sends - 1] if len(self.probe.errors) >= self.probe.sends else 0
        return replace(row, bit_errors=wrong, damaged_bit_errors=0, checked_bits=BITS * (row.received or 0))


def bert(
    errors: Sequence[int], ber: float | None, device: Device | None = None, confidence: float = 0.95
) -> SoakResult:
    probe = PrbsProbe(device or Device())
    probe.errors = errors
    return Soak(probe, SoakRequest((PRBS,), 0.02, 0.005, True, ber, confidence)).run()


def test_error_free_bits_bound_the_ratio_by_three_over_their_number() -> None:
    result = bert([], None)
    (row,) = result.rows
    assert row.checked_bits == BITS * row.received and row.bit_errors == 0
    assert row.bit_error_ratio is not None and row.bit_error_ratio.least == 0
    assert row.bit_error_ratio.most == pytest.approx(2.9957 / row.checked_bits, rel=1e-4)
    assert row.verdict == "passed"
    assert bert([], None, confidence=0.99).rows[0].bit_error_ratio.most == pytest.approx(
        4.6052 / row.checked_bits, rel=1e-4
    )


@pytest.mark.parametrize(
    ("errors", "ber", "verdict"),
    [
        ([], 1e-6, "passed"),
        ([], 1e-8, "not known"),
        ([0, 1, 0, 0], None, "FAILED"),
        ([0, 1, 0, 0], 1e-6, "passed"),  # 4.74 over 8,427,088 bits.
        ([5, 5, 5, 5], 1e-6, "FAILED"),
        ([1, 1, 1, 1], 3e-7, "not known"),
    ],
)
def test_a_ratio_is_held_to_a_limit_with_a_confidence(errors: list[int], ber: float | None, verdict: str) -> None:
    result = bert(errors, ber)
    (row,) = result.rows
    assert (row.verdict, row.bit_errors) == (verdict, sum(errors))
    assert [one.bit_errors for one in result.events] == [number for number in errors if number] or errors == [5] * 4
    assert (row.reason == "") == (verdict == "passed")


def test_a_lost_frame_counts_as_a_wrong_bit_at_least() -> None:
    (row,) = bert([], 1e-9, Lossy(one_of=50)).rows
    assert row.lost > 20 and row.bit_errors == 0
    assert row.bit_error_ratio is not None
    assert row.bit_error_ratio.least == pytest.approx(poisson_bounds(row.lost)[0] / row.checked_bits)
    assert row.verdict == "FAILED"


@pytest.mark.parametrize(("found", "confidence"), [(0, 0.95), (1, 0.95), (7, 0.9), (40, 0.99)])
def test_the_bounds_of_a_count_have_the_tails_of_the_poisson_distribution(found: int, confidence: float) -> None:
    def at_most(count: int, mean: float) -> float:
        return sum(exp(-mean) * mean**n / factorial(n) for n in range(count + 1))

    low, high = poisson_bounds(found, confidence)
    assert at_most(found, high) == pytest.approx(1 - confidence)
    assert low == 0 if not found else at_most(found - 1, low) == pytest.approx(confidence)
    # What is approximated above 1,000 goes on from what is summed below.
    assert [b - a for a, b in zip(poisson_bounds(1000), poisson_bounds(1001), strict=True)] == pytest.approx(
        [1, 1], rel=0.03
    )


def test_how_long_it_takes_follows_from_the_ratio() -> None:
    assert bits_needed(1e-12) == pytest.approx(2.9957e12, rel=1e-4)
    fill_bps = BITS / (2 * 536 * 8e-9)
    assert seconds_needed((PRBS,), 1e-9) == pytest.approx(2.9957e9 / fill_bps, rel=0.02)


@pytest.mark.parametrize(
    ("streams", "others", "culprit"),
    [
        ((), {}, "no stream"),
        ((replace(STREAM, count=5),), {}, "count"),
        ((replace(STREAM, probe=False),), {}, "probe header"),
        ((STREAM,), {"is_bert": True}, "fill prbs"),
        ((STREAM,), {"seconds": 0.0}, "seconds"),
        ((PRBS,), {"ber": 1.5, "is_bert": True}, "ratio"),
        ((PRBS,), {"confidence": 1.0, "is_bert": True}, "confidence"),
    ],
)
def test_what_cannot_be_is_refused(streams: tuple[Stream, ...], others: dict[str, object], culprit: str) -> None:
    with pytest.raises(UsageError, match=culprit):
        SoakRequest(**{"streams": streams, "seconds": 1.0, **others})  # type: ignore[arg-type]


def test_the_commands_say_what_they_would_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["soak", "--length", "512", "--rate", "500M", "--duration", "2s", "--segment", "1s", "--check"]) == 0
    assert "2 segments, 2 s of the probe's time" in capsys.readouterr().out
    assert main(["bert", "--length", "1514", "--ber", "1e-12", "--check", "--probe", "etherbone://192.0.2.1"]) == 0
    assert "54 segments, 53 min 29 s" in capsys.readouterr().out
    for words in (
        ["soak", "--count", "5"],
        ["bert", "--fill", "zero"],
        ["bert", "--ber", "2"],
        ["bert", "--confidence", "0"],
    ):
        assert main([*words, "--check"]) == 2, words


def test_results_are_plain_data() -> None:
    content = json.loads(json.dumps(bert([0, 3, 0, 0], 1e-3).to_dict()))
    assert content["verdict"] == "passed" and content["events"][0]["bit_errors"] == 3
