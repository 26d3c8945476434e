# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The cache of compiled sources: what is the same for all models is compiled once, all else each time."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from liteprobe.sim.system import compile_once

COMPILER = """#!/bin/sh
[ "$1" != --version ] || exec echo "compiler 1"
echo "$*" >>{log}
[ ! -e {broken} ] || exit 3
while [ "$1" != -o ]; do case $1 in *.cpp) source=$1 ;; esac; shift; done
cp "${{source:-$3}}" "$2"
"""


@dataclass
class Workshop:
    """A compiler that writes down what it is asked for, and sources of Verilator and of a model."""

    folder: Path

    def compile(self, source: Path, target: str = "a.o", flag: str = "-std=gnu++17") -> int:
        """Run the script as make does."""
        command = [str(self.folder / "c++"), flag, "-c", "-o", target, str(source)]
        script = [sys.executable, compile_once.__file__, str(self.folder / "kept")]
        return subprocess.run(
            [*script, *command], cwd=self.folder, env={"PATH": "/usr/bin:/bin"}, check=False
        ).returncode

    def runs(self) -> int:
        """Return how often the compiler ran."""
        log = self.folder / "log"
        return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    compiler = tmp_path / "c++"
    compiler.write_text(COMPILER.format(log=tmp_path / "log", broken=tmp_path / "broken"))
    compiler.chmod(0o755)
    include = tmp_path / "verilator" / "include"
    include.mkdir(parents=True)
    (include / "verilated.cpp").write_text("shared")
    (include / "verilated.h").write_text("header")
    (tmp_path / "verilator.cpp").write_text("own")
    return Workshop(tmp_path)


def test_a_source_of_verilator_is_compiled_once(workshop: Workshop) -> None:
    source = workshop.folder / "verilator/include/verilated.cpp"
    for _ in range(3):
        (workshop.folder / "a.o").unlink(missing_ok=True)
        assert workshop.compile(source) == 0
        assert (workshop.folder / "a.o").read_text() == "shared"
    assert workshop.runs() == 1


def test_what_no_source_of_verilator_depends_on_makes_no_difference(workshop: Workshop) -> None:
    source = workshop.folder / "verilator/include/verilated.cpp"
    for flag in ("-O1", "-O3", "-I.", "-I/of/a/model", "-MMD", "-DVM_TIMING=1", "-DVM_TIMING=0"):
        assert workshop.compile(source, flag=flag) == 0
    assert workshop.runs() == 1


def test_another_flag_source_or_header_compiles_anew(workshop: Workshop) -> None:
    source = workshop.folder / "verilator/include/verilated.cpp"
    workshop.compile(source)
    workshop.compile(source, flag="-std=gnu++20")
    assert workshop.runs() == 2
    source.with_suffix(".h").write_text("another")
    workshop.compile(source)
    source.write_text("changed")
    workshop.compile(source)
    assert workshop.runs() == 4
    assert (workshop.folder / "a.o").read_text() == "changed"


def test_what_belongs_to_a_model_is_compiled_each_time(workshop: Workshop) -> None:
    for _ in range(2):
        workshop.compile(workshop.folder / "verilator.cpp")
        workshop.compile(Path("verilator.cpp"))
    assert workshop.runs() == 4


def test_a_failure_is_passed_on_and_not_kept(workshop: Workshop) -> None:
    source = workshop.folder / "verilator/include/verilated.cpp"
    (workshop.folder / "broken").touch()
    assert workshop.compile(source) == 3
    (workshop.folder / "broken").unlink()
    assert workshop.compile(source) == 0
    assert (workshop.folder / "a.o").read_text() == "shared"
