# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The bring-up of boards at their pins: sound ones, and ones with a fault that the desk has made."""

import json
from pathlib import Path

import pytest

from liteprobe.host.cli.main import main
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.suites.bring_up import BringUp, BringUpCheck, Extent
from liteprobe.host.suites.suite import Verdict
from liteprobe.sim.pins.test_phys import probe_on

FEW = Extent(frames=40, ram_bytes=4096, seconds=0.002)
NAMES = ["management link", "oscillator", "PHYs", "link of port 0", "link of port 1"]
NAMES += ["frames 0 to 1", "frames 1 to 0", "SDRAM", "PPS"]


@pytest.mark.parametrize(
    ("board", "name"),
    [
        ("train_board", "colorlight_5a_75b"),
        pytest.param("tester_board", "colorlight_i9", marks=pytest.mark.full),
    ],
)
def test_a_sound_board_passes(board: str, name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The whole command, with a PPS each 1 ms from an oscillator that is 20 ppm fast."""
    url = sim_url("cable?delay=1us", build=request.getfixturevalue(board), link="shared", pps="1ms")
    files = [tmp_path / "report.md", tmp_path / "report.json"]
    few = ["--frames", "40", "--ram", "4096", "--duration", "6ms"]
    assert main(["bring-up", "--probe", url, *few, "--markdown", str(files[0]), "--json", str(files[1])]) == 0
    found = json.loads(files[1].read_text(encoding="utf-8"))
    checks = {check["name"]: check for check in found["checks"]}
    assert list(checks) == NAMES
    assert {check["verdict"] for check in checks.values()} == {"passed"}, checks
    assert found["probe"]["build"] == f"liteprobe on {name}"
    for way in ("frames 0 to 1", "frames 1 to 0"):
        for length in (60, 1514):
            count = checks[way]["figures"][f"length_{length}"]
            assert (count["sent"], count["frames"], count["lost"]) == (20, 20, 0)
    assert (checks["SDRAM"]["figures"]["words"], checks["SDRAM"]["figures"]["bad"]) == (1024, 0)
    assert checks["PPS"]["figures"]["edges"] >= 4
    page = files[0].read_text(encoding="utf-8")
    assert page.startswith(f"# Bring-up of liteprobe on {name}, ")
    assert all(f"| {name} | passed | " in page for name in NAMES)


@pytest.mark.parametrize(
    ("desk", "failing", "message"),
    [
        ("peer=100", {"link of port 1", "frames 0 to 1", "frames 1 to 0"}, "port 1 is up at 100 Mb/s"),
        ("silent=1", {"PHYs"}, "0 of 2 PHYs answer on MDIO"),
        pytest.param(
            "dead=1",
            {"link of port 1", "frames 0 to 1", "frames 1 to 0"},
            "gives no receive clock",
            marks=pytest.mark.full,
        ),
    ],
)
def test_what_is_wrong_is_named_and_the_rest_is_tried(
    train_board: Path, desk: str, failing: set[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with probe_on(train_board, monkeypatch, desk) as probe:
        checks = BringUp(probe, FEW).run()
    failed = [check for check in checks if check.verdict == Verdict.FAILED]
    assert {check.name for check in failed} == failing, checks
    assert message in failed[0].seen
    assert _named(checks, "SDRAM").verdict == Verdict.PASSED
    assert _named(checks, "PPS").verdict == Verdict.SKIPPED


def test_firmware_of_a_host_is_left_alone(train_board: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with probe_on(train_board, monkeypatch) as probe:
        probe.registers.write("boot_state", 1)
        check = _named(BringUp(probe, FEW).run(), "SDRAM")
    assert check.verdict == Verdict.SKIPPED and "firmware that a host has loaded" in check.seen


def _named(checks: list[BringUpCheck], name: str) -> BringUpCheck:
    return next(check for check in checks if check.name == name)
