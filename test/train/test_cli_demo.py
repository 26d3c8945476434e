# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The demo on the simulated probe: every figure against the truth at the pins."""

import json
import re
from pathlib import Path

import pytest

from liteprobe.host.base.defaults import PAPER_COUNTS, PAPER_LENGTHS
from liteprobe.host.cli import main as cli
from liteprobe.host.cli.commands import demo
from liteprobe.host.device.link.url import sim_options
from liteprobe.host.report.page import SIZE_MAX

ROOT = Path(__file__).resolve().parents[2]


def _plain(text: str) -> str:
    """Return a text without blank lines, spaces at the ends of lines, the seconds that it took and its folder."""
    text = re.sub(r"in (\d+|\.\.\.) s\. Report: .*", "in a time", text)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def test_demo_finds_its_files_in_a_folder_of_any_name(tmp_path: Path) -> None:
    out, build = tmp_path / "this & that=100%", tmp_path / "a&b"
    for request in demo.requests(out, build, 1):
        options = sim_options(request.url)
        assert (options.truth, options.build) == (request.truth, build)
        assert options.truth is not None and options.truth.parent == out
        assert options.wire in (
            "loopback",
            "switch?latency=3000ns",
            "switch?latency=3000ns&queue=1000&cross=0.3&seed=1",
        )


@pytest.mark.parametrize("repeats", [1, pytest.param(2, marks=pytest.mark.full, id="as it is shown")])
def test_demo_agrees_with_truth_and_theory(
    repeats: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = PAPER_COUNTS if repeats > 1 else (20, 100)  # The paper's trains of 100 and 1000 are simulated by --full.
    lengths = PAPER_LENGTHS if repeats > 1 else PAPER_LENGTHS[::6]
    monkeypatch.setattr(demo, "PAPER_COUNTS", counts)
    monkeypatch.setattr(demo, "PAPER_LENGTHS", lengths)
    conditions = ["--expect=lost == 0", "--expect=loopback.1514x100.most < 20ns", "--junit", str(tmp_path / "j.xml")]
    assert cli.main(["demo", "--out", str(tmp_path), "--repeat", str(repeats), *conditions]) == 0
    assert "loopback.1514x100.most" in (tmp_path / "j.xml").read_text()
    loopback, switch, loaded = json.loads((tmp_path / "trains.json").read_text())["sweeps"]
    assert (len(loopback["rows"]), len(switch["rows"]), len(loaded["rows"])) == (2 * len(lengths), 2 * len(lengths), 1)
    for row in loopback["rows"] + switch["rows"]:
        assert (row["complete"], row["notes"]) == (True, [])  # More than the ring holds, and none lost.
        assert (row["lost"], row["duplicated"], row["reordered"], row["late"]) == (0, 0, 0, 0)
        assert row["dispersion_rate_bps"]["mean"] == row["pins"]["dispersion_rate_bps"] == 1e9
        assert row["capacity"]["bps"] == row["wire"]["capacity_bps"] == 1e9
        assert row["owd_ns"]["mean"] == row["wire"]["owd_ns"] == row["theory_owd_ns"]
    for sweep in (loopback, switch, loaded):
        for row in sweep["rows"]:
            assert (row["pins"]["deviation_ns"]["min"], row["pins"]["deviation_ns"]["max"]) == (0, 0)
            assert row["wire"]["lost"] == row["lost"] == 0
    (row,) = loaded["rows"]
    assert round(row["theory_bps"] / 1e6, 3) == 770.607  # 25 trains of 100 come near, and know how near.
    assert row["dispersion_rate_bps"]["ci95_low"] < row["theory_bps"] < row["dispersion_rate_bps"]["ci95_high"]
    assert row["capacity"]["bps"] == 1e9 and row["capacity"]["near"] >= 2
    assert (tmp_path / "report.html").stat().st_size < SIZE_MAX
    out = capsys.readouterr().out
    assert f"{2 * len(lengths) * sum(counts) * repeats + 2500} frames in" in out
    shown = re.search(r"^```\n(switch \(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert shown and (repeats == 1 or _plain(shown[1]) in _plain(out))
    assert len([line for line in out.splitlines() if line.strip().startswith("1514")]) == 5
