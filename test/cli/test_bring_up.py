# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The command bring-up: its report is that of all commands, its conditions are judged, and a failed check fails it."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from liteprobe.host.cli.commands import bring_up
from liteprobe.host.suites.bring_up import BringUp, BringUpCheck, BringUpResult
from liteprobe.host.suites.suite import Verdict

Run = Callable[..., tuple[int, str, str]]


def of_frames(sent: int, lost: int, least: int, most: int) -> dict[str, int]:
    return {"sent": sent, "frames": sent - lost, "lost": lost, "delay_min": least, "delay_max": most}


CHECKS = [
    BringUpCheck("management link", Verdict.PASSED, "200 reads", {"reads": 200}),
    BringUpCheck("SDRAM", Verdict.SKIPPED, "no RAM <here>"),
    BringUpCheck(
        "frames 0 to 1",
        Verdict.PASSED,
        "all whole",
        {"length_60": of_frames(500, 0, 3000, 3008), "length_1514": of_frames(500, 2, 15_000, 15_200)},
    ),
    BringUpCheck("PPS", Verdict.FAILED, "3 glitches: check the wire"),
]


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[BringUpCheck]], None]:
    """Gives the command a board on which these checks are made."""

    def give(checks: list[BringUpCheck]) -> None:
        def made(self: BringUp) -> list[BringUpCheck]:
            for check in checks:
                self._done(check)
            return checks

        class Open:
            def __enter__(self) -> Any:
                return SimpleNamespace(info=lambda: {"build": "liteprobe on a board", "ports": 2})

            def __exit__(self, *error: object) -> None:
                pass

        monkeypatch.setattr(bring_up, "open_probe", lambda args: Open())
        monkeypatch.setattr(BringUp, "run", made)

    return give


def test_all_outputs_have_the_checks(run: Run, board: Callable[..., None], tmp_path: Path) -> None:
    board(CHECKS[:3])
    names = {
        "report": "r.html",
        "markdown": "r.md",
        "json": "r.json",
        "jsonl": "r.jsonl",
        "csv": "r.csv",
        "junit": "r.xml",
    }
    files = {name: tmp_path / file for name, file in names.items()}
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    code, out, err = run(
        "bring-up", *options, "--expect", "failed == 0", "--expect", "most < 16us", "--expect", "lost == 2"
    )
    assert code == 0 and out.count(": held: ") == 3 and f"report: {files['report']}" in err
    page = files["report"].read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and "no RAM &lt;here&gt;" in page and "15200" in page
    assert "| SDRAM | not done | no RAM <here> |" in files["markdown"].read_text(encoding="utf-8")
    content = json.loads(files["json"].read_text(encoding="utf-8"))
    assert [check["name"] for check in content["checks"]] == ["management link", "SDRAM", "frames 0 to 1"]
    assert [one["holds"] for one in content["expect"]] == [True] * 3
    lines = [json.loads(line) for line in files["jsonl"].read_text(encoding="utf-8").splitlines()]
    assert [line["kind"] for line in lines] == ["look"] * 3 + ["result"] and lines[1]["verdict"] == "not done"
    (row,) = [row for row in csv.DictReader(files["csv"].open(encoding="utf-8")) if row["name"] == "frames 0 to 1"]
    assert [row[name] for name in ("passed", "sent", "received", "lost", "least", "most")] == [
        "1",
        "1000",
        "998",
        "2",
        "3000",
        "15200",
    ]
    assert len(ElementTree.parse(files["junit"]).findall(".//testcase")) == 3


@pytest.mark.parametrize(
    ("checks", "conditions", "code"),
    [
        (CHECKS, (), 1),
        (CHECKS, ("failed <= 1",), 1),
        (CHECKS, ("failed == 0",), 4),
        (CHECKS[:3], ("not_done == 0",), 4),
        (CHECKS[:2], ("lost == 0",), 5),
        (CHECKS[:3], ("loss < 1%", "passed == 2"), 0),
        (CHECKS[:3], ("p99 < 1us",), 2),
    ],
)
def test_exit_codes(
    run: Run, board: Callable[..., None], checks: list[BringUpCheck], conditions: tuple[str, ...], code: int
) -> None:
    board(checks)
    done = run("bring-up", *[word for one in conditions for word in ("--expect", one)])
    assert done[0] == code
    if code == 1:
        assert "1 of 4 checks failed: PPS" in done[2]


def test_a_report_is_html_and_markdown_has_an_option_of_its_own(run: Run, tmp_path: Path) -> None:
    code, _, err = run("bring-up", "--report", str(tmp_path / "board.md"))
    assert code == 2 and "--report writes HTML: give --markdown" in err


def test_a_result_counts_its_checks() -> None:
    result = BringUpResult(CHECKS)
    assert [result.count(name) for name in ("passed", "failed", "not_done", "sent", "lost")] == [2, 1, 1, 1000, 2]
    assert (result.loss_ratio, BringUpResult(CHECKS[:2]).lost) == (0.002, None)
    assert repr(result) == "<BringUpResult: 1,000 sent, 998 received, 2 lost>"
