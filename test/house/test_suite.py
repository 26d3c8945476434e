# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The suite itself: what waits for ``--full``, and a folder that takes more CPU time than planned."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pathlib, subprocess, sys, time
import pytest
SPIN = "import time\\nwhile time.process_time() < 0.6: pass"

def test_in_a_child():
    subprocess.run([sys.executable, "-c", SPIN], check=True)

def test_that_waits():
    time.sleep(1)

@pytest.mark.full
def test_of_minutes():
    pathlib.Path("ran").touch()

@pytest.mark.sample(2)
@pytest.mark.parametrize("n", range(4))
def test_of_many_cases(n):
    assert n != 1 or pathlib.Path("ran").exists()  # With --full alone, where that has run before.
"""

#: From here on the yardstick takes 500 times as long as it is written down, and is measured each time.
SLOWS_DOWN = """
def test_first(request):
    keeper = next(one for one in request.config.pluginmanager.get_plugins() if hasattr(one, "next_yard_s"))
    keeper.next_yard_s = 0.0
    keeper.measure.__globals__.update(YARD_S=0.0001, YARD_EVERY_S=0.0)
"""


#: A limit of time fails the first test, once, on a machine that stands still meanwhile; the second and third fail by themselves.
STANDS_STILL = """
import os, subprocess, time
STOP = f"kill -STOP {os.getpid()}; sleep 0.7; kill -CONT {os.getpid()}"
ran = []

def test_limit():
    ran.append("limit")
    started_s = time.monotonic()
    if len(ran) == 1:
        subprocess.run(["sh", "-c", STOP])
    assert time.monotonic() - started_s < 0.6

def test_wrong():
    ran.append("wrong")
    assert False

def test_wrong_and_stopped():
    ran.append("stopped")
    subprocess.run(["sh", "-c", STOP])
    assert False

def test_what_ran():
    assert ran == ["limit", "limit", "wrong", *["stopped"] * 3]
"""


def suite(folder: Path, budget_s: float, *arguments: str, yard_s: str = "0.05", tests: str = TESTS) -> tuple[int, str]:
    """Run a suite of four tests under our conftest.py; return its exit code and what it prints."""
    (folder / "slow").mkdir()
    (folder / "slow" / "test_three.py").write_text(tests)
    (folder / "pytest.ini").write_text(f"[pytest]\ncpu_budgets =\n    slow {budget_s}\n")
    text = (ROOT / "conftest.py").read_text()
    (folder / "conftest.py").write_text(text.replace("\nYARD_S = 0.05 ", f"\nYARD_S = {yard_s} "))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "slow", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_folder_that_takes_more_cpu_time_than_planned_fails_the_run(tmp_path: Path, workers: tuple[str, ...]) -> None:
    code, text = suite(tmp_path, 0.05, *workers)
    assert code == 1
    assert re.search(r"^FAILED: the tests of slow took [1-9] s of CPU, [0-9.]+ s are planned", text, re.MULTILINE)
    assert "5 passed, 2 skipped" in text


def test_waiting_is_free_and_what_takes_minutes_is_skipped_and_counted(tmp_path: Path) -> None:
    code, text = suite(tmp_path, 60)
    assert code == 0
    assert "2 tests were skipped that take minutes of CPU each: ./run test --full" in text
    assert not (tmp_path / "ran").exists()


def test_a_slower_machine_has_as_much_larger_a_budget(tmp_path: Path) -> None:
    """The yardstick of a machine that is a thousand times as fast stands in for that."""
    code, text = suite(tmp_path, 0.5, "-p", "no:xdist", yard_s="0.0001")
    assert code == 0, text
    assert re.search(r"^slow +5 tests +\d+ s of [1-9]\d\d+ s$", text, re.MULTILINE)


def test_a_machine_that_becomes_slower_in_mid_run_has_a_larger_budget_too(tmp_path: Path) -> None:
    code, text = suite(tmp_path, 0.5, "-p", "no:xdist", tests=SLOWS_DOWN + TESTS)
    assert code == 0, text


def test_full_runs_all_and_holds_no_budget(tmp_path: Path) -> None:
    code, text = suite(tmp_path, 0.05, "--full")
    assert (code, "7 passed" in text, (tmp_path / "ran").exists()) == (0, True, True)


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "worker"])
def test_what_fails_while_the_machine_stands_still_runs_again(tmp_path: Path, workers: tuple[str, ...]) -> None:
    code, text = suite(tmp_path, 60, *workers, tests=STANDS_STILL)
    assert (code, "2 failed, 2 passed" in text) == (1, True), text
    again = re.findall(
        r"^ran again, the machine stood still for (\d\.\d) s in it: slow/test_three.py::(\w+)$", text, re.M
    )
    assert [name for _, name in again] == ["test_limit", "test_wrong_and_stopped"]
    assert 0.6 < float(again[0][0]) < float(again[1][0])


# Areas --------------------------------------------------------------------------------------------


def areas() -> dict[str, tuple[str, ...]]:
    """Return the folders and files of each area."""
    found: dict[str, tuple[str, ...]] = runpy.run_path(str(ROOT / "tools" / "areas.py"))["AREAS"]
    return found


def test_each_test_is_in_an_area_and_each_area_has_tests() -> None:
    listed = subprocess.run(["git", "ls-files", "*test_*.py"], cwd=ROOT, check=True, capture_output=True, text=True)
    tests = {Path(line) for line in listed.stdout.splitlines() if (ROOT / line).exists()}
    of_areas = {
        area: {path for path in tests if any(path.is_relative_to(top) for top in tops)}
        for area, tops in areas().items()
    }
    assert tests - set().union(*of_areas.values()) == set()
    assert [area for area, found in of_areas.items() if not found] == []
    assert [top for tops in areas().values() for top in tops if not (ROOT / top).exists()] == []


def test_help_names_each_area() -> None:
    usage = subprocess.run([ROOT / "run", "help"], check=True, capture_output=True, text=True).stdout
    named = re.search(r"those of an area: ([a-z, \n]+?)\n  release", usage)
    assert named and re.split(r",\s+", named[1].strip()) == sorted(areas())


def test_an_area_is_its_folders_and_files_for_pytest() -> None:
    chosen = runpy.run_path(str(ROOT / "tools" / "areas.py"))["chosen"]
    assert chosen(["clock", "-k", "step"]) == ["test/clock", "sim/unit/timebase", "sim/system/clock", "-k", "step"]


# Another LiteX ------------------------------------------------------------------------------------


def test_a_checkout_of_litex_comes_first_in_tests_and_in_what_they_type(tmp_path: Path) -> None:
    for name, package in (("litex", "litex"), ("litex-boards", "litex_boards"), ("liteeth", "elsewhere")):
        (tmp_path / "other" / name / package).mkdir(parents=True)
        (tmp_path / "other" / name / package / "__init__.py").touch()
    test = tmp_path / "test_where.py"
    test.write_text(
        "import subprocess\n"
        "def test_where():\n"
        "    import litex, litex_boards, liteeth\n"
        "    print('imported', litex.__file__, litex_boards.__file__, liteeth.__file__)\n"
        "    program = 'import litex; print(\"typed\", litex.__file__)'\n"
        f"    subprocess.run(['{ROOT}/run', 'python', '-c', program], check=True)\n"
    )
    command = [ROOT / "run", "test", "--litex", "other", "-n", "0", "-s", "-p", "no:cacheprovider", str(test)]
    text = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert [line.split()[:3] for line in text.splitlines()[:4]] == [
        ["litex", "no", "revision,"],
        ["litex-boards", "no", "revision,"],
        ["migen", "as", "pinned"],
        ["liteeth", "as", "pinned"],
    ]
    other = tmp_path / "other"
    assert f"imported {other}/litex/litex/__init__.py {other}/litex-boards/litex_boards/__init__.py {ROOT}" in text
    assert f"typed {other}/litex/litex/__init__.py" in text


def test_a_folder_without_litex_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "run", "test", "--litex", "."], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (
        2,
        f"test: {tmp_path} holds no checkout of LiteX in 'litex': clone it, and the cores, side by side\n",
    )
