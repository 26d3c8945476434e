# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The suite itself: what waits for ``--full``, and a folder that takes more CPU time than planned."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pathlib, subprocess, sys, time
import pytest
SPIN = "import time\\nwhile time.process_time() < 1: pass"

def test_in_a_child():
    subprocess.run([sys.executable, "-c", SPIN], check=True)

def test_that_waits():
    time.sleep(1)

@pytest.mark.full
def test_of_minutes():
    pathlib.Path("ran").touch()
"""


def suite(folder: Path, budget_s: float, *arguments: str) -> tuple[int, str]:
    """Run a suite of three tests under our conftest.py; return its exit code and what it prints."""
    (folder / "slow").mkdir()
    (folder / "slow" / "test_three.py").write_text(TESTS)
    (folder / "pytest.ini").write_text(f"[pytest]\ncpu_budgets =\n    slow {budget_s}\n")
    shutil.copy(ROOT / "conftest.py", folder)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "slow", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_folder_that_takes_more_cpu_time_than_planned_fails_the_run(tmp_path: Path, workers: tuple[str, ...]) -> None:
    code, text = suite(tmp_path, 0.5, *workers)
    assert code == 1
    assert re.search(r"^FAILED: the tests of slow took [1-9] s of CPU, 0.5 s are planned", text, re.MULTILINE)
    assert "2 passed, 1 skipped" in text


def test_waiting_is_free_and_what_takes_minutes_is_skipped_and_counted(tmp_path: Path) -> None:
    code, text = suite(tmp_path, 60)
    assert code == 0
    assert "1 tests were skipped that take minutes of CPU each: ./run test --full" in text
    assert not (tmp_path / "ran").exists()


def test_full_runs_all_and_holds_no_budget(tmp_path: Path) -> None:
    code, text = suite(tmp_path, 0.5, "--full")
    assert (code, "3 passed" in text, (tmp_path / "ran").exists()) == (0, True, True)
