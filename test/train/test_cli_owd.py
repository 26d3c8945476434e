# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The command owd over two models of a probe: what it refuses, before anything is sent."""

from collections.abc import Callable
from pathlib import Path

import pytest

from liteprobe.host.cli import main as cli
from liteprobe.host.device.link.base import Link
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.trains import ModelProbe, cable

LOCKED = {"clock_state": 3, "clock_alive": 1, "clock_updates": 1, "clock_uncertainty": 2560, "pps_period": 10**9}
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, ModelProbe]:
    """Two probes with locked clocks; ``etherbone://a`` leads to one, ``etherbone://b`` to the other."""
    made = {name: ModelProbe(cable(), with_clock=True) for name in "ab"}
    for model in made.values():
        model.values |= LOCKED

    def open_link(url: str) -> Link:
        return FakeLink(made[url[-1]], tmp_path)

    monkeypatch.setattr("liteprobe.host.probe.open_link", open_link)
    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str]:
        return cli.main(["owd", "--from", "etherbone://a", *arguments]), capsys.readouterr().err

    return command


def test_what_makes_no_sense_is_a_usage_error(run: Run, models: dict[str, ModelProbe]) -> None:
    to = ("--to", "etherbone://b")
    for arguments, said in (
        ((), "--to URL"),
        ((*to, "--known-delay", "1us"), "go together"),
        ((*to, "--receive", "2"), "there is no receive port 2 in etherbone://b"),
        ((*to, "--transmit", "7"), "there is no transmit port 7 in etherbone://a"),
        ((*to, "--length", "59"), "length 59"),
    ):
        code, err = run(*arguments)
        assert (code, said in err) == (2, True), err


@pytest.mark.parametrize("state", [0, 1, 2])
@pytest.mark.parametrize("which", "ab")
def test_a_clock_that_is_not_to_be_trusted_is_named(
    run: Run, models: dict[str, ModelProbe], which: str, state: int
) -> None:
    models[which].values |= {"clock_state": state, "clock_alive": int(state > 0)}
    code, err = run("--to", "etherbone://b")
    assert (code, f"the clock of etherbone://{which} is" in err) == (1, True), err


def test_clocks_of_different_seconds_are_refused(run: Run, models: dict[str, ModelProbe]) -> None:
    models["b"].advance(125_000_000 * 3)
    code, err = run("--to", "etherbone://b")
    assert code == 1 and "differ by 3.00" in err, err


def test_a_link_that_is_down_is_named(run: Run, models: dict[str, ModelProbe]) -> None:
    models["b"].values["port0_tx_link_up"] = 0
    code, err = run("--to", "etherbone://b")
    assert code == 1 and "the link of port 0 of etherbone://b is down" in err, err
