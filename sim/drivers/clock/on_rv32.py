# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Counts the instructions of the servo on the processor it is for (rv32im), in QEMU, and estimates its cycles."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from liteprobe.sim.drivers.clock.virtual_time import BUILD, LIBRARY, ROOT

PREFIX = "riscv64-unknown-elf-"
COMPILER = f"{PREFIX}gcc"
EMULATOR = "qemu-riscv32"
FLAGS = ("-march=rv32im", "-mabi=ilp32", "-O2", "-std=c11", "-ffreestanding", "-nostdlib")
# A VexRiscv lite: a bit a cycle for products, quotients and shifts; 2 KiB of cache for instructions in lines of 32
# octets, none for data, and main RAM of block RAM. Cycles beyond the first of an instruction.
PRODUCT, LINE, LOAD, STORE, JUMP = 33, 40, 3, 1, 1
UNKNOWN_SHIFT = 12  # By a register: most are of whole and half words and small ones.
LINES, LINE_BITS = 64, 5


def is_available() -> bool:
    """Return whether compiler and emulator are on PATH (Debian: gcc-riscv64-unknown-elf, qemu-user)."""
    return shutil.which(COMPILER) is not None and shutil.which(EMULATOR) is not None


def build(edges: int) -> Path:
    """Compile a run of so many pulses; its program."""
    if not is_available():
        raise RuntimeError(f"{COMPILER} or {EMULATOR} is missing: apt-get install gcc-riscv64-unknown-elf qemu-user")
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / f"edges-{edges}"
    folder = ROOT / "firmware" / "tests" / "rv32"
    libraries = [path for name in ("servo", "wide") for path in sorted((LIBRARY / name).glob("*.c"))]
    includes = [f"-I{LIBRARY}", f"-I{folder / 'include'}"]
    command: list[str | Path] = [COMPILER, *FLAGS, *includes, f"-DEDGES={edges}", folder / "edges.c"]
    subprocess.run([*command, *libraries, "-lgcc", "-o", program], check=True)
    return program


def addresses(program: Path) -> Iterator[int]:
    """Yield the addresses of the instructions of a run; raises when the servo isn't locked at its end."""
    log = program.with_suffix(".log")
    # One instruction a block, each block a line of the log.
    subprocess.run([EMULATOR, "-singlestep", "-d", "exec,nochain", "-D", log, program], check=True)
    with log.open() as lines:
        for line in lines:
            yield int(line.split("[")[1].split("/")[1], 16)
    log.unlink()


def instructions(edges: int) -> int:
    """Return the instructions of a run of so many pulses."""
    return sum(1 for _ in addresses(build(edges)))


def instructions_per_edge(edges: int = 40) -> float:
    """Return the instructions of a pulse, the mean of ``edges``."""
    return (instructions(edges) - instructions(0)) / edges


def cycles_of_edges(edges: int) -> list[int]:
    """Return the estimated cycles of each pulse or silence of a run, the stamps of the test's own loop among them."""
    program = build(edges)
    listing = subprocess.run([f"{PREFIX}objdump", "-d", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    cost = {int(m[1], 16): cycles_of(m[2], m[3]) for m in re.finditer(r"^ *(\w+):\t\w+ *\t(\S+)(.*)$", listing, re.M)}
    starts = {int(m[1], 16) for m in re.finditer(r"^(\w+) <lp_servo_(?:edge|silence)>:$", listing, re.M)}
    cache: list[int | None] = [None] * LINES
    found: list[int] = []
    for address in addresses(program):
        if address in starts:
            found.append(0)
        line = address >> LINE_BITS
        misses = cache[line % LINES] != line
        cache[line % LINES] = line
        if found:
            found[-1] += cost[address] + LINE * misses
    return found


def cycles_of(name: str, arguments: str) -> int:
    """Return the cycles of an instruction that is in the cache."""
    if name.startswith(("mul", "div", "rem")):
        return 1 + PRODUCT
    if name in ("slli", "srli", "srai"):
        return 1 + int(arguments.rsplit(",", 1)[1], 0)
    if name in ("sll", "srl", "sra"):
        return 1 + UNKNOWN_SHIFT
    if name in ("lw", "lh", "lhu", "lb", "lbu"):
        return 1 + LOAD
    if name in ("sw", "sh", "sb"):
        return 1 + STORE
    return 1 + JUMP * (name[0] in "bj" or name == "ret")
