# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The Containerfile, read: each instruction is known, and what it names is there. Nothing is built."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTRUCTIONS = {"FROM", "RUN", "COPY", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}


def steps() -> list[tuple[str, str]]:
    """Return each instruction and what it says."""
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [tuple(line.split(" ", 1)) for line in lines if line and not line.startswith("#")]  # type: ignore[misc]


def test_each_instruction_is_known_and_what_it_runs_is_shell() -> None:
    assert {name for name, _ in steps()} == INSTRUCTIONS
    for name, said in steps():
        if name == "RUN":
            done = subprocess.run(["sh", "-n"], input=said, text=True, check=False, capture_output=True)
            assert (done.returncode, done.stderr) == (0, ""), said


def test_the_system_that_builds_has_what_the_set_up_asks_for_and_the_one_that_runs_has_no_compiler() -> None:
    builds, runs = [said for name, said in steps() if name == "RUN" and said.startswith("apt-get")]
    asked = re.findall(
        r"\|\| printf '([^']+) '", re.search(r"^missing_packages.*?^\}", (ROOT / "run").read_text(), re.M | re.S)[0]
    )
    base = {package for each in asked[2:4] for package in each.split()}
    assert base == {"python3", "python3-venv", "g++"} and base <= set(builds.split())
    assert "g++" not in runs.split()


def test_what_it_calls_is_a_command_of_run_and_what_it_leaves_out_is_what_git_leaves_out() -> None:
    help_text = subprocess.run([ROOT / "run", "help"], check=True, capture_output=True, text=True).stdout
    called = [word for name, said in steps() if name == "RUN" for word in re.findall(r"\./run (\w+)", said)]
    assert called == ["wheel"] and "\n  wheel " in help_text
    names = set((ROOT / ".dockerignore").read_text().splitlines()[1:])  # podman reads it, too.
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines()}
    assert names - {".git"} <= ignored
