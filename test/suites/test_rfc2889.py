# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of RFC 2889 on a learning switch of plain Python: what it knows, learns, filters and floods, and what nobody sees."""

import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from liteprobe.host.base.defaults import DESTINATION_MAC
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.suites.rfc2544 import OVERSIZE, Rfc2544, Rfc2544Request, Rfc2544Result
from liteprobe.host.suites.rfc2889 import NEEDS_MORE, AddressSettings
from liteprobe.host.suites.search import Goal
from liteprobe.host.suites.trials import Journal
from liteprobe.sim.drivers.suites.fake_probe import FakeProbe
from liteprobe.sim.models.forwarder import Learner, Switch

SEEDS = range(6)
TABLE = AddressSettings(ageing_s=0.01, most=400, fps=100_000, learned=40)
LINE_FPS = 10**9 / 8 / 84


def request(*tests: str, **others: Any) -> Rfc2544Request:
    """Return a request of short trials."""
    asked = {"sizes": ("64",), "goal": Goal(seconds=0.005), "pause_s": 0.001, "table": TABLE, **others}
    return Rfc2544Request(tests=tests, **asked)


def measured(device: Switch, *tests: str, **others: Any) -> Rfc2544Result:
    """Return what comes of tests on a device."""
    return Rfc2544(FakeProbe(device), request(*tests, **others)).run()


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_capacity_is_exact_to_an_address_and_the_rate_within_the_precision(seed: int) -> None:
    chance = random.Random(f"addresses {seed}")
    size, rate = chance.randrange(60, 400), chance.randrange(110_000, 400_000)
    found = measured(Learner(spec=f"device?table={size}&learn={rate}&age=9ms"), "address-capacity", "learning-rate")[
        "64"
    ]
    assert (found.addresses, found.notes) == ((size, size + 1), ())
    lower, upper = found.learning_fps or (None, None)
    assert lower is not None and upper is not None
    # Frames are due on whole ticks: one may come a tick sooner than their rate says.
    assert lower <= rate * 1.0001 and rate <= upper * (1 + upper * 8e-9) and upper - lower <= 0.005 * upper


def test_a_table_that_holds_all_and_learns_at_line_rate_is_said_to_hold_as_many_as_were_asked() -> None:
    found = measured(Learner(spec="device?table=5000&age=9ms"), "address-capacity", "learning-rate")["64"]
    assert found.addresses == (400, None)
    assert found.learning_fps == (pytest.approx(LINE_FPS), None)
    assert found.notes == ("address capacity: 400 or more, as many as were asked for (--addresses-most)",)


@pytest.mark.parametrize(
    "device",
    [
        Learner(spec="device?table=100&age=9ms", floods=False),
        Learner(spec="device?table=100"),
        Learner(spec="device?table=100&age=20ms"),
    ],
    ids=["floods nothing", "never forgets", "forgets too late"],
)
def test_a_table_that_two_ports_do_not_show_has_no_figure(device: Learner) -> None:
    device.table.entries[int(DESTINATION_MAC.replace(":", ""), 16)] = 1, 0  # It has sent a frame before.
    found = measured(device, "address-capacity", "learning-rate")["64"]
    assert (found.addresses, found.learning_fps) == (None, None)
    assert len(found.notes) == 1 and found.notes[0].startswith("the address table is not measured: ")


def test_a_hub_knows_no_address() -> None:
    found = measured(Switch(), "address-capacity", "learning-rate")["64"]
    assert found.addresses == (1, 2)  # No fewer than two are tried.
    assert found.learning_fps == (None, pytest.approx(LINE_FPS, rel=1))


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", SEEDS)
def test_broadcasts_have_a_throughput_of_their_own(seed: int) -> None:
    chance = random.Random(f"broadcast {seed}")
    limit, size = chance.randrange(100_000, 700_000), chance.choice(["64", "128"])
    found = measured(Learner(spec=f"device?table=9&storm={limit}"), "throughput", "broadcast", sizes=(size,))[size]
    truth = limit * (int(size) + 20) * 8e-9
    assert found.share == 1.0 and found.broadcast is not None and found.broadcast.share is not None
    bounds = found.broadcast.share.bounds
    assert (
        bounds.least <= min(truth, 1) <= bounds.most * (1 + 1 / 84)
        and bounds.most - bounds.least <= 0.005 * bounds.most
    )
    (way,) = found.broadcast_latency
    assert {way.least, way.most} == {8 * (int(size) - 4 + 12 + 375)}


@pytest.mark.parametrize("largest", [1518, 1522, 1999, 9004])
def test_frames_that_are_too_long_are_told_by_size(largest: int) -> None:
    found = measured(Learner(spec=f"device?table=9&largest={largest}"), "oversize")["64"]
    assert [(one.size, one.received) for one in found.oversize] == [
        (size, one.sent if size <= largest else 0) for size, one in zip(OVERSIZE, found.oversize, strict=True)
    ]
    assert all(one.sent for one in found.oversize)


@pytest.mark.parametrize("rate", [Fraction(6, 10), Fraction(97, 100), Fraction(1)])
def test_forwarding_rates_are_those_of_the_device_whatever_its_queue_holds(rate: Fraction) -> None:
    for queue in (5, 100_000):
        found = measured(Switch(rate=rate, queue=queue), "loss")["64"]
        assert found.forwarding is not None
        for step in found.forwarding:
            assert step.forwarded_fps == pytest.approx(float(rate) * LINE_FPS, rel=2e-4)
        assert found.forwarding[0].load == 1.0


def test_an_interrupted_suite_goes_on_to_the_same_table(tmp_path: Path) -> None:
    def run(path: str, resume: bool = False, fails_at: int | None = None) -> Rfc2544Result:
        asked = request("address-capacity", "learning-rate", "oversize")
        device = Learner(spec="device?table=77&learn=250k&age=9ms")
        with Journal(tmp_path / path, {"request": asked.to_dict()}, resume) as journal:
            return Rfc2544(FakeProbe(device, fails_at=fails_at), asked, journal).run()

    whole = run("whole.jsonl")
    for number in random.Random(2889).sample(range(2, len(whole.trials)), 4):
        (tmp_path / "cut.jsonl").unlink(missing_ok=True)
        with pytest.raises(ProbeError, match="went down"):
            run("cut.jsonl", fails_at=number)
        assert run("cut.jsonl", resume=True).sizes == whole.sizes


@pytest.mark.parametrize(
    ("make", "culprit"),
    [
        *[(lambda test=test: request(test), f"'{test}' of RFC 2889") for test in NEEDS_MORE],
        (lambda: request("broadcasts"), "did you mean 'broadcast'|give one of"),
        (lambda: request("broadcast", hosts=("10.0.0.1", "10.0.0.2")), "leave out --from"),
        (lambda: AddressSettings(most=1), "most 1 is out of range"),
        (lambda: AddressSettings(fps=0), "fps 0 is out of range"),
        (lambda: AddressSettings(ageing_s=1.0), "teach them faster, or fewer"),
    ],
)
def test_what_two_ports_can_not_do_is_refused_by_name(make: Callable[[], object], culprit: str) -> None:
    with pytest.raises(UsageError, match=culprit):
        make()


def test_a_suite_takes_no_more_trials_than_its_plan_says() -> None:
    asked = request("broadcast", "oversize", "address-capacity", "learning-rate")
    found = Rfc2544(FakeProbe(Learner(spec="device?table=77&learn=120k&age=9ms&storm=150k")), asked).run()
    assert asked.plan().least <= len(found.trials) + 1 <= asked.plan().most
