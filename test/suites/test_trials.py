# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Trials: what came is counted apart by a device whose truth is known; what can't be believed is marked; what ended is kept."""

import copy
import json
import multiprocessing
from fractions import Fraction
from pathlib import Path

import pytest

from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.suites.trials import (
    LIES,
    VALID,
    Journal,
    Offer,
    SuitePlan,
    SuiteStep,
    Trial,
    Trials,
    TrialSettings,
    conformance,
    lasting,
    parted,
)
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import IMIX, Fixed, Length, RandomLength
from liteprobe.host.traffic.load import check_port
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.suites.fake_probe import FakeProbe
from liteprobe.sim.drivers.tools.processes import LIMIT_S
from liteprobe.sim.models.forwarder import Device, Hostile, Lossy, Policer, Switch

SLOT = 24
SIX_TENTHS = Fraction(6, 10)
SHORTEST = Fixed(60)


def stream(share: Fraction, seconds: float = 0.02, length: Length = SHORTEST, port: int = 0) -> Stream:
    """Return a stream that takes a share of the line for a time."""
    cycle = length.cycle or (60,)
    count = int(seconds * 125_000_000 * share / (length.mean + SLOT)) // len(cycle) * len(cycle)
    return Stream(
        name=f"way {port}", stream_id=1 + port, length=length, interval=Interval(share=share), count=count, port=port
    )


def offer(share: Fraction, seconds: float = 0.02, length: Length = SHORTEST) -> Offer:
    """Return a trial one way."""
    return Offer("trial", (stream(share, seconds, length),))


def one(device: Device, share: Fraction, seconds: float = 0.02, lengthened: int = 1) -> Trial:
    """Run a trial through a device that has seen nothing before."""
    return Trials(FakeProbe(copy.deepcopy(device)), TrialSettings(lengthened=lengthened)).run(offer(share, seconds))


@pytest.mark.parametrize("share", [Fraction(1), Fraction(7, 10), Fraction(599, 1000)])
@pytest.mark.parametrize("length", [60, 64, 1514])
def test_parts_of_a_stream_leave_as_the_whole_would(share: Fraction, length: int) -> None:
    whole = stream(share, length=Fixed(length))
    parts = parted(whole, 4)
    interval = (length + SLOT) / share
    starts = [Fraction(part.start_ns) / 8 + number * interval for part in parts for number in range(part.count or 0)]
    assert len(starts) == whole.count
    off = [start - number * interval for number, start in enumerate(starts)]
    assert 0 <= min(off) <= max(off) < 3  # Ticks: less than one at each seam, from where they would be.
    assert check_port(Offer("trial", (whole,)).parts()[0])[parts[0].name] == share


def test_parts_of_a_mix_begin_with_its_first_length() -> None:
    whole = stream(Fraction(1), length=IMIX)
    parts = parted(whole, 4)
    assert [(part.count or 0) % len(IMIX.entries) for part in parts] == [0] * 4
    assert sum(part.count or 0 for part in parts) == whole.count


def test_no_part_of_a_long_trial_starts_later_than_a_probe_can_count() -> None:
    parts = parted(stream(Fraction(1), 120.0, Fixed(1514)), 4)
    assert [round(float(part.start_ns) / 1e9, 1) for part in parts] == [0.0, 11.3, 22.7, 34.0]


def test_what_has_no_order_is_not_parted() -> None:
    random = Stream(name="random", stream_id=1, length=RandomLength(60, 1514), interval=Interval(share=0.5), count=1000)
    assert parted(random, 4) == [random]
    few = stream(Fraction(1), length=Fixed(60), seconds=672e-9 * 7)
    assert parted(few, 4) == [few]


def test_a_trial_without_an_end_is_refused() -> None:
    with pytest.raises(UsageError, match="give each stream a count, endless"):
        Offer("trial", (Stream(name="endless", stream_id=1, length=Fixed(60)),))


def test_a_device_of_line_rate_loses_nothing_and_each_delay_is_its_latency() -> None:
    found = one(Device(latency=375), Fraction(1))
    assert (found.verdict, found.lost, found.sent) == (VALID, 0, 29761)
    way = found.streams[0]
    delay_ns = 8 * (60 + 12 + 375)
    assert (way.least_ns, way.mean_ns, way.p50_ns, way.p99_9_ns, way.most_ns) == (
        delay_ns, delay_ns, (delay_ns, delay_ns), (delay_ns, delay_ns), delay_ns,
    )  # fmt: skip


def test_loss_of_a_short_queue_is_exact() -> None:
    """By the model of the queue, served frame by frame in whole numbers: 140 ticks each, one comes in 84."""
    found = one(Switch(rate=SIX_TENTHS, queue=64), Fraction(1))
    free, starts, lost = 0, list[int](), 0
    for number in range(found.sent):
        came = 84 * number
        if sum(start > came for start in starts[-70:]) >= 64:
            lost += 1
            continue
        starts.append(max(came, free))
        free = starts[-1] + 140
    assert (found.verdict, found.lost, found.received) == (VALID, lost, found.sent - lost)


@pytest.mark.sample(5)
@pytest.mark.parametrize("queue", [20_000, 200_000, 2_000_000])
@pytest.mark.parametrize("share", [Fraction(1), Fraction(7, 10), Fraction(61, 100), Fraction(602, 1000)])
@pytest.mark.parametrize("seconds", [0.0005, 0.02])
def test_a_queue_that_swallows_a_trial_is_caught(queue: int, share: Fraction, seconds: float) -> None:
    found = one(Switch(rate=SIX_TENTHS, queue=queue), share, seconds)
    assert (found.lost, found.verdict) == (0, LIES)
    assert "a queue fills" in found.reason
    assert found.shown_loss == pytest.approx(1 - float(SIX_TENTHS / share), abs=0.002)


@pytest.mark.parametrize("share", [Fraction(6, 10), Fraction(59, 100), Fraction(1, 10)])
def test_what_a_device_can_sustain_is_believed(share: Fraction) -> None:
    assert one(Switch(rate=SIX_TENTHS, queue=20_000), share).verdict == VALID


def test_a_trial_that_lies_is_run_again_longer() -> None:
    trials = Trials(FakeProbe(Switch(rate=SIX_TENTHS, queue=2000)))
    found = trials.run(offer(Fraction(61, 100), 0.05))
    assert [(one.verdict, one.seconds > 0.19, one.lost > 0) for one in trials.done] == [
        (LIES, False, False),
        (LIES, True, True),
    ]
    assert found is trials.done[-1]


def test_a_trial_that_lost_frames_is_not_run_again() -> None:
    trials = Trials(FakeProbe(Switch(rate=SIX_TENTHS, queue=2000)))
    trials.run(offer(Fraction(1), 0.02))
    assert len(trials.done) == 1


def test_a_pause_that_has_passed_is_no_queue_that_fills() -> None:
    """2 ms of 50, and a queue that holds them: the pause lies in the first part, and the queue is empty again."""
    assert one(Switch(queue=10_000, pause=(250_000, 6_250_000)), Fraction(8, 10), 0.2).verdict == VALID


@pytest.mark.parametrize(
    ("device", "share", "lost"),
    [
        (Policer(), Fraction(83, 100), 0),
        (Lossy(one_of=1000), Fraction(1, 2), 14),
        (Hostile(loses_all=True), Fraction(1, 10), 2976),
    ],
)
def test_loss_of_other_devices_is_exact(device: Device, share: Fraction, lost: int) -> None:
    found = one(device, share)
    assert (found.verdict, found.lost) == (VALID, lost)


def test_a_late_tester_is_not_believed() -> None:
    found = Trials(FakeProbe(Device(), is_late=True)).run(offer(Fraction(1)))
    assert (found.verdict, found.reason) == (LIES, "the tester started 4 frames of 'way 0' after their tick")


def test_both_ways_are_told_apart() -> None:
    device = Switch(rate=SIX_TENTHS, queue=64)
    found = Trials(FakeProbe(device)).run(Offer("trial", (stream(Fraction(1, 2)), stream(Fraction(1), port=1))))
    assert [way.lost > 0 for way in found.streams] == [False, True]
    assert found.loss_ratio == found.streams[1].loss_ratio


def test_a_trial_is_the_same_when_it_is_read_again() -> None:
    found = one(Switch(rate=SIX_TENTHS, queue=20_000), Fraction(1))
    assert Trial.of(json.loads(json.dumps(found.to_dict()))) == found


# Kept trials ------------------------------------------------------------------------------------

SHARES = [Fraction(number, 10) for number in range(10, 3, -1)]


def suite(path: Path, resume: bool, fails_at: int | None = None) -> tuple[list[Trial], int]:
    """Run a small suite on a device, kept in a file; return its trials, and how many were sent now."""
    probe = FakeProbe(Switch(rate=SIX_TENTHS, queue=64), fails_at=fails_at)
    with Journal(path, {"suite": "test", "size": 60}, resume) as journal:
        trials = Trials(probe, journal=journal)
        for share in SHARES:
            trials.run(offer(share, 0.002))
        return trials.done, probe.sends


def test_a_suite_that_failed_goes_on_and_comes_to_the_same(tmp_path: Path) -> None:
    whole, _ = suite(tmp_path / "whole.jsonl", False)
    with pytest.raises(ProbeError, match="link of port 0 went down"):
        suite(tmp_path / "cut.jsonl", False, fails_at=4)
    found, sends = suite(tmp_path / "cut.jsonl", True)
    assert (found, sends) == (whole, len(SHARES) - 3)


def test_a_torn_last_line_is_left_out_wherever_it_is_torn(tmp_path: Path) -> None:
    whole, _ = suite(tmp_path / "whole.jsonl", False)
    content = (tmp_path / "whole.jsonl").read_bytes()
    for cut in range(1, len(content), 997):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(content[:cut])
        found, sends = suite(path, True)
        assert (found, sends) == (whole, len(SHARES) - max(content[:cut].count(b"\n") - 1, 0))
        assert path.read_bytes() == content


def test_another_suite_does_not_go_on_from_it(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    suite(path, False)
    with pytest.raises(UsageError, match=r"was kept with size 60, and this is 64: go on with the same command"):
        Journal(path, {"suite": "test", "size": 64}, resume=True)
    with (
        Journal(path, {"suite": "test", "size": 60}, resume=True) as journal,
        pytest.raises(UsageError, match="begin anew"),
    ):
        Trials(FakeProbe(Device()), journal=journal).run(offer(Fraction(1), 0.003))


@pytest.mark.parametrize("content", ["x\n", "[]\n", "{}\n", '{"kind": "head"}\n', '"a"\nb\n'])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError, match=r"line 1 of .* is not one of a suite's trials"):
        Journal(path, {}, resume=True)
    assert path.read_text() == content


def test_a_file_is_neither_written_over_nor_missed(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    with pytest.raises(UsageError, match="there is no .* to go on from"):
        Journal(path, {}, resume=True)
    suite(path, False)
    with pytest.raises(UsageError, match="has trials already: go on from them with --resume"):
        Journal(path, {})


def _open(path: Path, said: "multiprocessing.queues.Queue[str]") -> None:
    try:
        Journal(path, {"suite": "test"}, resume=True)
        said.put("")
    except UsageError as error:
        said.put(str(error))


def test_two_suites_do_not_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    context = multiprocessing.get_context("fork")
    said = context.Queue()
    with Journal(path, {"suite": "test"}):
        worker = context.Process(target=_open, args=(path, said))
        worker.start()
        assert (
            said.get(timeout=LIMIT_S)
            == f"another suite writes to {path}: wait until it has ended, or name another file"
        )
        worker.join()


# Words and plans --------------------------------------------------------------------------------


def test_a_plan_of_forty_hours_is_said() -> None:
    plan = SuitePlan((SuiteStep("loss", 2000, 2000, 60.0), SuiteStep("search", 100, 200, 60.0)), pause_s=7.0)
    assert plan.seconds == (2100 * 67.0, 2200 * 67.0)
    assert plan.words() == "2100 to 2200 trials, 39 h 5 min to 40 h 56 min of the probe's time"
    assert lasting(86_400) == "24 h 0 min"


def test_short_trials_are_said_not_to_conform() -> None:
    assert (conformance(0.02), conformance(10), conformance(60)) == (
        "20 ms trials: not conformant", "10 s trials: not conformant", "",
    )  # fmt: skip
