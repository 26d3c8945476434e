# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Counts the instructions of the servo on the processor it is for (rv32im), in QEMU."""

import shutil
import subprocess
from pathlib import Path

from liteprobe.sim.bench.clock.virtual_time import BUILD, LIBRARY, ROOT

COMPILER = "riscv64-unknown-elf-gcc"
EMULATOR = "qemu-riscv32"
FLAGS = ("-march=rv32im", "-mabi=ilp32", "-O2", "-std=c11", "-ffreestanding", "-nostdlib")


def is_available() -> bool:
    """Return whether compiler and emulator are on PATH (Debian: gcc-riscv64-unknown-elf, qemu-user)."""
    return shutil.which(COMPILER) is not None and shutil.which(EMULATOR) is not None


def instructions(edges: int) -> int:
    """Return the instructions of a run of so many pulses; raises when the servo isn't locked at its end."""
    BUILD.mkdir(parents=True, exist_ok=True)
    program, log = BUILD / f"edges-{edges}", BUILD / f"edges-{edges}.log"
    folder = ROOT / "firmware" / "tests" / "rv32"
    libraries = [path for name in ("servo", "wide") for path in sorted((LIBRARY / name).glob("*.c"))]
    includes = [f"-I{LIBRARY}", f"-I{folder / 'include'}"]
    command: list[str | Path] = [COMPILER, *FLAGS, *includes, f"-DEDGES={edges}", folder / "edges.c"]
    command += [*libraries, "-lgcc", "-o", program]
    subprocess.run(command, check=True)
    # One instruction a block, each block a line of the log.
    subprocess.run([EMULATOR, "-singlestep", "-d", "exec,nochain", "-D", log, program], check=True)
    with log.open("rb") as lines:
        count = sum(1 for _ in lines)
    log.unlink()
    return count


def instructions_per_edge(edges: int = 40) -> float:
    """Return the instructions of a pulse, the mean of ``edges``."""
    if not is_available():
        raise RuntimeError(f"{COMPILER} or {EMULATOR} is missing: apt-get install gcc-riscv64-unknown-elf qemu-user")
    return (instructions(edges) - instructions(0)) / edges
