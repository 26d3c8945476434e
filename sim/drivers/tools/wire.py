# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs cocotb tests on a Verilog module."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from liteprobe.sim.drivers.tools.compiled import MODELS, REPOSITORY, compiled, verilator_environment

#: cocotb's runner makes each signal of a model public, which keeps Verilator from simplifying anything: pins are enough here.
BUILD_ARGS = ["-Wno-fatal", "-Wno-WIDTH", "-Wno-CASEINCOMPLETE", "-O3", "--no-public-flat-rw"]
PIN = re.compile(r"^\s*(?:input|output|inout)\s+(?:wire|reg)?\s*(?:signed)?\s*(?:\[[^\]]*\])?\s*(\w+)", re.MULTILINE)
FULL_VARIABLE = "LITEPROBE_FULL"  # Set by ./run test --full, in conftest.py.
TIMESCALE = ("1ns", "1fs")


def is_full() -> bool:
    """Return whether cocotb runs what takes long, too: ``./run test --full``."""
    return FULL_VARIABLE in os.environ


def with_full(values: list[Any], full: list[Any]) -> list[Any]:
    """Return the values that a cocotb test is run with: ``values``, and in a full run those of ``full``, too."""
    return [*values, *full] if is_full() else values


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Run what follows with some environment variables: cocotb's runner takes them from nowhere else."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def public_pins(top: str, verilog: str) -> str:
    """Return Verilator's configuration that makes the pins of module ``top``, and nothing else, known to cocotb."""
    start = verilog.index(f"module {top}")
    pins = PIN.findall(verilog[start : verilog.index(");", start)])
    return "`verilator_config\n" + "".join(f'public_flat_rw -module "{top}" -var "{pin}"\n' for pin in pins)


def compile_model(top: str, folder: Path) -> None:
    """Compile ``<folder>/<top>.v`` with cocotb inside into ``<folder>/obj``."""
    source = folder / f"{top}.v"
    pins = folder / "pins.vlt"
    pins.write_text(public_pins(top, source.read_text(encoding="utf-8")), encoding="utf-8")
    get_runner("verilator").build(
        sources=[pins, source],
        hdl_toplevel=top,
        build_dir=folder / "obj",
        build_args=BUILD_ARGS,
        timescale=TIMESCALE,
        log_file=MODELS / f"{top}.log",
    )


def run_wire_test(
    test_file: str,
    top: str,
    write_verilog: Callable[[Path], None],
    name: str,
    parameters: Mapping[str, str] | None = None,
    filter_: str | None = None,
    modules: Sequence[str] = (),
) -> None:
    """Compile ``top``, unless that was done already, and run the cocotb tests of ``test_file``.

    Parameters
    ----------
    write_verilog : writes the module to a path.
    name : of the run: its results are in build/wire/``name``.
    parameters : environment variables for the tests.
    filter_ : regular expression: which tests to run.
    modules : sequence of str
        Files beside ``test_file``, by their names without ``.py``, whose cocotb tests are run; its own unless given.

    Raises AssertionError where a test fails, or where none ran.
    """
    folder = REPOSITORY / "build" / "wire" / name
    folder.mkdir(parents=True, exist_ok=True)
    with environment(verilator_environment()):
        model = compiled(top, write_verilog, lambda folder: compile_model(top, folder), [*BUILD_ARGS, *TIMESCALE])
        results = get_runner("verilator").test(
            test_module=list(modules) or Path(test_file).stem,
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            build_dir=model / "obj",
            test_dir=Path(test_file).parent,
            results_xml=str(folder / "results.xml"),
            extra_env={**(parameters or {}), "PYTHONPATH": str(Path(test_file).parent)},
            test_filter=filter_,
            timescale=TIMESCALE,
        )
    ran, failed = get_results(results)
    assert ran > 0, f"no test of {test_file} ran"
    assert failed == 0, f"{failed} of {ran} tests failed: see {results}"
