# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the firmware for a gateware: Zephyr, by CMake and Ninja, from the register map."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from liteprobe.cores.formats import map_hash
from liteprobe.host.base import folders, programs
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.output import in_turn
from liteprobe.host.base.programs import end_group
from liteprobe.host.device.firmware import Image, read_image
from liteprobe.host.device.registers import candidates, load_map

FIRMWARE = folders.ROOT / "firmware"
GENERATOR = "liteprobe.soc.build.devicetree"
IMAGE = "liteprobe.bin"
BOARD = "liteprobe"
COMPILER = "riscv64-unknown-elf-gcc"  # Debian's package gcc-riscv64-unknown-elf.
MACHINE = ("-march=rv32im", "-mabi=ilp32")
PYTHON_VARIABLE = "ZEPHYR_PYTHON"
MODULES = ("elftools", "yaml", "pykwalify", "packaging")  # Of Zephyr's scripts.
LAST_LINES = 25
DAY_S = 24 * 60 * 60
NOT_BEFORE = 1767225600  # POSIX time, the default of LITEPROBE_NOT_BEFORE.
EPOCH_VARIABLE = "SOURCE_DATE_EPOCH"


@dataclass(frozen=True)
class Tools:
    """Lists what a build of Zephyr needs of this machine."""

    zephyr: Path  # Zephyr's sources.
    python: Path  # A Python that has what Zephyr's scripts import.
    options: tuple[str, ...]  # Options of CMake that name the compiler.
    environment: Mapping[str, str]  # What CMake and Ninja are run with.


def find_tools(zephyr: Path | None = None) -> Tools:
    """Return what a build needs, or say what is missing.

    ``zephyr``: Zephyr's sources; None: those of ZEPHYR_BASE, or the workspace that ``west update`` made in ``build/``.
    Raises ProbeError when something is missing: the message says how to get it.
    """
    base = _find_zephyr(zephyr)
    for program in ("cmake", "ninja", "dtc"):
        if not shutil.which(program):
            raise ProbeError(f"{program} is missing: apt-get install cmake ninja-build device-tree-compiler")
    options, environment = _compiler()
    return Tools(base, _find_python(base), options, {**os.environ, "ZEPHYR_BASE": str(base), **environment})


def _find_zephyr(asked: Path | None) -> Path:
    variable = os.environ.get("ZEPHYR_BASE")
    base = asked or (Path(variable) if variable else folders.products() / "zephyr")
    if not (base / "VERSION").is_file():
        raise ProbeError(
            f"Zephyr is not in {base}: name its sources in ZEPHYR_BASE; in a clone of LiteProbe "
            f"'pip install west && west init -l firmware && west update' gets them"
        )
    return base.resolve()


def _find_python(zephyr: Path) -> Path:
    """Return the first Python that has what Zephyr's scripts need: ZEPHYR_PYTHON, this one, or the system's."""
    named = os.environ.get(PYTHON_VARIABLE)
    tried = [named] if named else [sys.executable, shutil.which("python3")]
    for python in tried:
        script = f"import {', '.join(MODULES)}"
        if python and subprocess.run([python, "-c", script], capture_output=True, check=False).returncode == 0:
            return Path(python)
    raise ProbeError(
        f"no Python here has what Zephyr's scripts import: pip install -r {zephyr}/scripts/requirements-base.txt into "
        f"an environment, and set {PYTHON_VARIABLE} to its python"
    )


def _compiler() -> tuple[tuple[str, ...], dict[str, str]]:
    """Return options and environment of the compiler: what the user has chosen, Debian's, or Zephyr's SDK."""
    if "ZEPHYR_TOOLCHAIN_VARIANT" in os.environ or "ZEPHYR_SDK_INSTALL_DIR" in os.environ:
        return (), {}
    gcc = shutil.which(COMPILER)
    if not gcc:
        raise ProbeError(f"{COMPILER} is missing: apt-get install gcc-riscv64-unknown-elf, or install Zephyr's SDK")
    # Its multilibs have names without the extensions that Zephyr gives, so it doesn't find them alone.
    said = subprocess.run([gcc, *MACHINE, "-print-libgcc-file-name"], capture_output=True, text=True, check=True).stdout
    environment = {"ZEPHYR_TOOLCHAIN_VARIANT": "cross-compile", "CROSS_COMPILE": gcc.removesuffix("gcc")}
    return (f"-DEXTRA_LDFLAGS=-L{Path(said.strip()).parent}",), environment


def find_map(path: Path | None = None) -> Path:
    """Return the register map to build for: ``path``, or the latest of the builds at hand that can run firmware."""
    if path:
        return path
    for candidate in candidates():
        if "main_ram" in load_map(candidate).get("memories", {}):
            return candidate
    raise UsageError(
        "no build at hand has a processor with RAM for firmware: give --map FILE, the csr.json of the gateware "
        "(liteprobe build BOARD, or python -m liteprobe.sim.system.build)"
    )


def build(
    map_file: Path,
    tools: Tools,
    out: Path | None = None,
    options: tuple[str, ...] = (),
    say: Callable[[str], None] = lambda line: None,
) -> Image:
    """Build the firmware for the gateware with a register map, and return the image; one build of a folder at a time.

    Raises UsageError when the map is none that firmware could be built for, ProbeError when a tool fails; the message
    has the end of what it said.

    Parameters
    ----------
    map_file : Path
        csr.json of the gateware's build.
    out : Path or None
        Folder of the products (``build/firmware/<map hash>``); the image is ``liteprobe.bin`` in it.
    options : tuple of str
        More options of CMake, such as ``-DCONFIG_LITEPROBE_TAI_UTC=38``.
    say : callable
        Called with what is being done, a line at a time.
    """
    soc = load_map(map_file)
    if "main_ram" not in soc.get("memories", {}):
        raise UsageError(
            f"the gateware of {map_file} has no RAM for firmware: build it with a processor and --main-ram"
        )
    # CMake takes relative paths for its own.
    folder = (out or folder_of(map_file)).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with in_turn(folder / "lock"):  # CMake and Ninja take a folder for their own.
        return _build(soc, map_file, tools, folder, options, say)


def _build(
    soc: Mapping[str, Any],
    map_file: Path,
    tools: Tools,
    folder: Path,
    options: tuple[str, ...],
    say: Callable[[str], None],
) -> Image:
    log = folder / "build.log"
    log.write_text("", encoding="utf-8")
    generated = folder / "generated"
    say(f"devicetree of {map_file}")
    _run(programs.module(GENERATOR, str(map_file), "--out", str(generated)), os.environ, log)
    configure = ["cmake", "-GNinja", "-S", str(FIRMWARE / "app"), "-B", str(folder / "zephyr"), f"-DBOARD={BOARD}"]
    # Outside a workspace of west, EXTRA_ZEPHYR_MODULES is ignored.
    configure += [f"-DZEPHYR_MODULES={FIRMWARE}", f"-DDTS_ROOT={generated}", f"-DLITEPROBE_GENERATED={generated}"]
    configure += [f"-DPython3_EXECUTABLE={tools.python}", f"-DUSER_CACHE_DIR={folder / 'cache'}"]
    say(f"configuring Zephyr {tools.zephyr}, log {log}")
    # Of what is given twice CMake takes the last.
    _run([*configure, *tools.options, *dated(tools.environment), *options], tools.environment, log)
    say("compiling (about a minute the first time)")
    _run(["ninja", "-C", str(folder / "zephyr")], tools.environment, log)
    shutil.copy(folder / "zephyr" / "zephyr" / "zephyr.bin", folder / IMAGE)
    image = read_image(folder / IMAGE)
    if image.map_hash != map_hash(soc):
        raise ProbeError(
            f"{image.path} was built for a different gateware: build it again for this one, in another folder (--out FOLDER)"
        )
    return image


def dated(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the option that tells firmware before which day no receiver's date can be: a day before its own build.

    The build's date is ``SOURCE_DATE_EPOCH``, else today; none is before `NOT_BEFORE`, the default.
    Raises UsageError when SOURCE_DATE_EPOCH is not a whole number of seconds.
    """
    text = environment.get(EPOCH_VARIABLE, "")
    if text and not text.isdecimal():
        raise UsageError(f"{EPOCH_VARIABLE} is {text!r}: give seconds since 1970, or unset it")
    # By days, so that a second build has nothing to compile; a day less, for a machine whose clock is ahead.
    day = (int(text or time.time()) // DAY_S - 1) * DAY_S
    # Always given: what a build leaves out, CMake has from the one before.
    return (f"-DCONFIG_LITEPROBE_NOT_BEFORE={max(day, NOT_BEFORE)}",)


def folder_of(map_file: Path) -> Path:
    """Return the folder that firmware for a gateware is built in."""
    return folder_of_hash(map_hash(load_map(map_file)))


def folder_of_hash(number: int) -> Path:
    """Return the folder of the firmware for the gateware whose map has this hash."""
    return folders.products() / "firmware" / f"{number:08x}"


def ram_of(map_file: Path) -> int:
    """Return the RAM for firmware of a gateware (bytes)."""
    return int(load_map(map_file)["memories"]["main_ram"]["size"])


def _run(command: list[str], environment: Mapping[str, str], log: Path) -> None:
    """Run a tool, its output to the log; ProbeError with the end of it when it fails."""
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        process = subprocess.Popen(
            command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
        try:
            code = process.wait()
        finally:
            end_group(process)
    if code:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:])
        raise ProbeError(f"{Path(command[0]).name} failed; the end of {log}:\n{tail}")
