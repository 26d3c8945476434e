# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The faults that are put into the product to try its tests (tools/faults.py)."""

import ast
import subprocess
from pathlib import Path

import faults
import pytest


def test_faults_repeat_with_a_seed_and_each_is_another_line_that_can_still_be_read() -> None:
    some = faults.chosen(40, 7)
    assert some == faults.chosen(40, 7) != faults.chosen(40, 8)
    assert [fault.path.split("/")[0] for fault in some].count("firmware") == 8
    for fault in some:
        lines = (faults.ROOT / fault.path).read_text(encoding="utf-8").splitlines()
        assert lines[fault.line - 1] != fault.instead
        lines[fault.line - 1] = fault.instead
        if fault.path.endswith(".py"):
            ast.parse("\n".join(lines))


def test_a_seed_chooses_the_same_faults_after_other_lines_have_changed_and_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "host").mkdir()
    monkeypatch.setattr(faults, "ROOT", tmp_path)
    lines = [f"return a < {number} and b != {number}" for number in range(50)]
    chosen = []
    for name, kept in (("one", lines), ("other", lines[30:] + lines[:10] + lines[15:30])):
        functions = [f"def f(a, b):\n    {line}\n" for line in kept]
        (tmp_path / "host" / f"{name}.py").write_text("\n\n".join(functions))
        first = faults.ranked(list(faults.faults_of_python(f"host/{name}.py")), 1)[:20]
        chosen.append({(faults.line_of(fault).strip(), fault.instead.strip()) for fault in first})
    still_there = {(line, instead) for line, instead in chosen[0] if line not in lines[10:15]}
    assert len(chosen[0]) == len(chosen[1]) == 20
    assert still_there <= chosen[1]


def test_a_fault_that_changes_nothing_is_left_out_and_still_there_with_its_reason() -> None:
    every = {
        (fault.path, faults.line_of(fault).strip(), fault.instead.strip()): fault
        for group in faults.candidates()
        for fault in group
    }
    for path, line, instead, why in faults.EQUIVALENT:
        assert (
            faults.ranked([every[path, line, instead]], 1) == []
        )  # Where it isn't: the line has changed, take it out.
        assert why.endswith(".")


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("cores/emulate/engine.py", "sim/unit/emulator/test_emulator_engine.py"),
        ("host/analysis/beta.py", "test/analysis/test_analysis_regression.py"),
        ("firmware/lib/servo/servo.c", "test/clock/test_servo.py"),
    ],
)
def test_tests_of_a_module_are_found_through_its_drivers(path: str, test: str) -> None:
    assert test in faults.tests_of(path)


def test_a_fault_is_seen_or_not_and_taken_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a tree of its own: others read this one meanwhile."""
    (tmp_path / "host").mkdir()
    (tmp_path / "test").mkdir()
    sound = "def least(a, b):\n    return a if a < b else b\n\ndef unused(a):\n    return a < 1\n"
    (tmp_path / "host" / "x.py").write_text(sound)
    test = "import runpy\nleast = runpy.run_path('host/x.py')['least']\ndef named():\n    import liteprobe.host.x\n"
    (tmp_path / "test" / "test_x.py").write_text(f"{test}def test_least():\n    assert least(1, 2) == 1\n")
    for command in (["git", "init", "-q"], ["git", "add", "-A"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    monkeypatch.setattr(faults, "ROOT", tmp_path)
    first, second = faults.faults_of_python("host/x.py")
    assert first == faults.Fault("host/x.py", 2, "    return a if a >= b else b")
    assert faults.is_seen(first, 1) == "test/test_x.py::test_least"
    assert faults.is_seen(second, 1) == ""
    assert (tmp_path / "host" / "x.py").read_text() == sound
