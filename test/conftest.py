# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures that several tests of the host need."""

import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from liteprobe.host.cli import arguments as arguments_of_cli
from liteprobe.host.cli import main as cli
from liteprobe.sim.drivers.agent import processes
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.fake_loaders import Machine
from liteprobe.sim.models.probe.streams import TrafficProbe
from liteprobe.sim.models.probe.trains import ModelProbe, cable


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line tool with some arguments; returns exit code, what it printed, and its errors.

    However long it takes, it prints no lines of how far it is, but with ``--every``.
    """
    monkeypatch.setattr(arguments_of_cli, "EVERY_S", math.inf)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each command has a new probe, whose ports are joined by a cable of 37 ticks: of trains, or with preset=tester of streams."""

    def link(url: str) -> FakeLink:
        is_tester = "tester" in url
        made = TrafficProbe(lambda one: [(1 - one.port, 37, one)]) if is_tester else ModelProbe(cable(37))
        return FakeLink(made, tmp_path)

    monkeypatch.setattr("liteprobe.host.probe.open_link", link)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with no program on its PATH that loads boards, until the test installs one."""
    one = Machine(tmp_path)
    monkeypatch.setenv("PATH", f"{one.bin}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("XDG_DATA_HOME", str(one.data))
    monkeypatch.chdir(tmp_path)
    return one


@pytest.fixture(params=processes.PEERS)
def agent_peer(request: pytest.FixtureRequest) -> str:
    """An agent in Python, and one in C where it can be compiled."""
    if request.param == "c" and (what := processes.lacking()):
        pytest.skip(f"the C peer can't be compiled: install {what}")
    name: str = request.param
    return name
