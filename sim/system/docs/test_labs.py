# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The labs, executed from end to end on the simulated probe, against the teacher's answers, which no probe has given."""

import ast
import re
import shlex
from pathlib import Path

import pytest

from liteprobe.host.cli.main import make_parser
from liteprobe.sim.drivers.labs import notebook

NAMES = notebook.names()
QUICK = ("lab6_loss",)  # As a notebook; lab 3 is run as a script.
CHECK = notebook.load("teacher/check")
ANSWERS = CHECK.answers()


def cells(name: str, kind: str) -> list[str]:
    """Return the cells of a lab: ``markdown`` (without the signs of a comment) or ``code``."""
    text = (notebook.LABS / f"{name}.py").read_text(encoding="utf-8")
    parts = re.split(r"^# %%", text, flags=re.MULTILINE)[1:]
    if kind == "markdown":
        found = [part.split("\n", 1)[1] for part in parts if part.startswith(" [markdown]")]
        return [re.sub(r"^# ?", "", part, flags=re.MULTILINE) for part in found]
    return [part for part in parts if not part.startswith(" [markdown]")]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in NAMES]
)
def test_a_lab_run_as_a_notebook_finds_the_teachers_answers(name: str, own: Path, tmp_path: Path) -> None:
    assert own.exists()
    assert CHECK.faults(ANSWERS[name], notebook.execute(name, tmp_path)) == []


@pytest.mark.full
def test_a_lab_run_as_a_script_finds_the_teachers_answers(own: Path, tmp_path: Path) -> None:
    assert own.exists()
    assert CHECK.faults(ANSWERS["lab3_stamps"], notebook.run_script("lab3_stamps", tmp_path)) == []


def test_there_are_eight_labs_and_answers_for_each() -> None:
    assert [name.split("_")[0] for name in NAMES] == [f"lab{number}" for number in range(1, 9)]
    assert list(ANSWERS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_lab_has_all_that_a_lab_has(name: str) -> None:
    text = "\n".join(cells(name, "markdown"))
    assert re.findall(r"^# .*$", text, re.MULTILINE) == [f"# Lab {name[3]}: {re.search(r'# Lab .: (.*)', text)[1]}"]  # type: ignore[index]
    assert re.search(r"\*\*Aim\.\*\*", text) and "Sources: " in text
    minutes = int(re.search(r"\*\*Time\.\*\* (\d+) minutes", text)[1])  # type: ignore[index]
    assert 60 <= minutes <= 90
    assert re.findall(r"^## (Background|Your plot|Questions)$", text, re.MULTILINE) == [
        "Background",
        "Your plot",
        "Questions",
    ]
    assert len(re.findall(r"^\d\. ", text.split("## Questions")[1], re.MULTILINE)) == 6
    assert "PROBE = None" in cells(name, "code")[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_results_of_a_lab_have_the_names_of_its_answers(name: str) -> None:
    """Those that are written plainly; the others are compared when the lab is run."""
    trees = [ast.parse(cell.split("\n", 1)[1]) for cell in cells(name, "code")]
    stored = {
        node.slice.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
        if isinstance(node.value, ast.Name) and node.value.id == "results"
    }
    assert stored and stored <= set(ANSWERS[name])


@pytest.mark.parametrize("name", NAMES)
def test_the_commands_of_a_lab_are_commands(name: str) -> None:
    blocks = re.findall(r"^```\n(.*?)^```$", "\n".join(cells(name, "markdown")), re.MULTILINE | re.DOTALL)
    commands = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    for command in commands:
        words = shlex.split(command)
        assert words[:2] == ["./run", "liteprobe"]
        make_parser().parse_args(words[2:])


def test_what_a_student_hands_in_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = {name: answer["value"] for name, answer in ANSWERS["lab1_line_rate"].items()}
    file = tmp_path / "lab1.json"
    file.write_text(str(right).replace("'", '"'))
    assert CHECK.main([str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: 13 of 13\n"
    wrong = {**right, "slot_60_ns": 480, "more": 1}
    del wrong["cycles_per_frame"]
    file.write_text(str(wrong).replace("'", '"'))
    assert CHECK.main([str(file)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{file}: 11 of 13",
        "  more: not asked for",
        "  slot_60_ns: 480, not 672 +- 0.001 (8 ns * (60 + 24))",
        "  cycles_per_frame: missing; 2016 (3 GHz * 672 ns)",
    ]
    with pytest.raises(SystemExit):
        CHECK.main([str(tmp_path / "lab9.json")])
    assert "there is no lab of that name: give lab1.json, lab2.json" in capsys.readouterr().err
