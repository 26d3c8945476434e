# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Labs of a class: notebooks by one command, figures of their own for each student, marks as CSV."""

import csv
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import labs
import pytest

from liteprobe.sim.drivers.labs import notebook

CHECK = notebook.load("teacher/check")
NAMES = ["Ada Lovelace", "Grace Hopper", "Åsa Öberg"]


@pytest.fixture(autouse=True)
def without_jupyter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labs, "install", lambda: None)


def seeds(folder: Path, student: str | None) -> list[int]:
    """Return what seeds 3 and 5 are in a folder of notebooks, by Python's own import of it."""
    environment = {**os.environ, **({"STUDENT": student} if student is not None else {})}
    code = "import student; print([student.seed(3), student.seed(5)])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_each_student_of_a_class_has_eight_notebooks_and_seeds_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = tmp_path / "names.txt"
    names.write_text("\n".join(NAMES) + "\n\n")
    assert labs.main(["--class", str(names), str(tmp_path / "out")]) == 0
    folders = ["Ada-Lovelace", "Grace-Hopper", "Åsa-Öberg"]
    assert [line.split(": ")[0] for line in capsys.readouterr().out.splitlines()] == [
        str(tmp_path / "out" / folder) for folder in folders
    ]
    for folder, name in zip(folders, NAMES, strict=True):
        place = tmp_path / "out" / folder
        assert sorted(path.stem for path in place.glob("*.ipynb")) == notebook.names()
        assert all("teacher" not in path.name for path in place.iterdir())
        assert seeds(place, None) == [1 + zlib.crc32(f"{name} {number}".encode()) for number in (3, 5)]
    assert all("student.named(results)" in path.read_text() for path in (tmp_path / "out" / folders[0]).glob("*.ipynb"))
    assert seeds(notebook.LABS, "Ada Lovelace") == seeds(tmp_path / "out" / folders[0], None)
    assert seeds(notebook.LABS, "") == [3, 5]


def test_work_that_is_in_a_notebook_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert labs.main(["--make", str(tmp_path / "mine")]) == 0
    (tmp_path / "mine" / "lab4_queues.ipynb").write_text("mine")
    assert labs.main(["--make", str(tmp_path / "mine")]) == 0
    assert "10 files that were there are as they were" in capsys.readouterr().out
    assert (tmp_path / "mine" / "lab4_queues.ipynb").read_text() == "mine"


@pytest.mark.parametrize("text", ["", "A B\nA-B\n"], ids=["nobody", "two names of one folder"])
def test_names_that_give_no_folder_each_are_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "names.txt").write_text(text)
    with pytest.raises(SystemExit):
        labs.main(["--class", str(tmp_path / "names.txt"), str(tmp_path / "out")])
    assert "write a name a line, each another one" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_marks_of_a_class_are_a_line_a_student(tmp_path: Path) -> None:
    """13 figures of lab 1, of which 13, 11, 7 and 6 are right; one who copied lab 6; one file that can't be read."""
    one, six = (
        {name: answer["value"] for name, answer in CHECK.answers()[lab].items()}
        for lab in ("lab1_line_rate", "lab6_loss")
    )
    wrong = {"a": 0, "b": 2, "c": 6, "d": 7}
    files = {f"{name}/lab1.json": {**one, **dict.fromkeys(list(one)[:count], -1)} for name, count in wrong.items()}
    files |= {
        "a/lab6.json": six,
        "b/lab-results/lab6.json": dict(six),
        "x/lab6.json": {"student": "c", **six, next(iter(six)): 1e9},
    }
    for name, results in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(results))
    (tmp_path / "d/lab6.json").write_text("{")
    marks = tmp_path / "marks.csv"
    assert CHECK.main(["--csv", str(marks), *map(str, sorted(tmp_path.glob("**/lab?.json")))]) == 1
    with marks.open(newline="", encoding="utf-8") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    count = len(six)
    assert {
        name: (row["lab1"], row["lab6"], row["lab2"], row["points"], row["figures"], row["same_as"])
        for name, row in rows.items()
    } == {
        "a": ("3", "3", "", "6", f"{13 + count} of {13 + count}", "b"),
        "b": ("2", "3", "", "5", f"{11 + count} of {13 + count}", "a"),
        "c": ("1", "2", "", "3", f"{7 + count - 1} of {13 + count}", ""),
        "d": ("0", "0", "", "0", f"6 of {13 + count}", ""),
    }
    with pytest.raises(SystemExit):
        CHECK.main(["--csv", str(marks), str(tmp_path / "a/lab1.json"), str(tmp_path / "a/../a/lab1.json")])
