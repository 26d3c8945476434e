# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Programs that drive a JTAG cable, openFPGALoader and ecpdap: what each is asked, and what it means by its answers."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from liteprobe.soc.build.toolchain import LOG_TAIL_LINES, BuildError, find_tool

LONGEST_S = 3600 # A chip of 16 MB by a slow cable takes tens of minutes.
# What they say.
NO_PERMISSION = ("permission", "access denied", "error_access", "-4 (usb_open() failed)", "insufficient")
LOCKED = ("block protection is set", "--unprotect-flash", "write-protected")
# Lattice: bits 27 to 0 by size, the top ones by family.
SIZES = {"25": 0x1111043, "45": 0x1112043, "85": 0x1113043}
FAMILIES = {"LFE5U": 0x4, "LFE5UM": 0x0, "LFE5UM5G": 0x8}
IDCODES = {f"{family}-{size}": top << 28 | low for family, top in FAMILIES.items() for size, low in SIZES.items()}
IDCODES["LFE5U-12"] = 0x21111043


@dataclass(frozen=True)
class Answer:
    """What a program said, and its exit code."""

    code: int
    text: str

    @property
    def tail(self) -> str:
        """The last lines, indented; of a progress bar its end."""
        lines = [line.split("\r")[-1] for line in self.text.strip().split("\n")]
        return "\n".join(f"  {line}" for line in lines[-LOG_TAIL_LINES:])

    def says(self, *words: str) -> bool:
        """Whether any of ``words`` is in it, in capitals or not."""
        return any(word in self.text.lower() for word in words)

    @property
    def idcodes(self) -> list[int]:
        """The devices in the JTAG chain."""
        return [int(code, 16) for code in re.findall(r"0x([0-9a-f]{7,8})\b", self.text.lower())]


class OpenFpgaLoader:
    """openFPGALoader: any cable that it was built with."""

    name = "openFPGALoader"

    def path(self) -> str | None:
        """Return where it is, or None."""
        try:
            return find_tool(self.name)
        except BuildError:
            return None

    def drives(self, cable: str) -> bool:
        """Whether it knows ``cable``; which ones it was built without it says when it is asked to use one."""
        return bool(cable)

    def detect(self, cable: str) -> list[str]:
        """Return what shows the devices in the chain."""
        return ["--cable", cable, "--detect"]

    def load(self, cable: str, file: Path) -> list[str]:
        """Return what loads a bitstream into the FPGA."""
        return ["--cable", cable, str(file)]

    def write(self, cable: str, file: Path, offset: int, unprotect: bool) -> list[list[str]]:
        """Return what writes ``file`` into the flash, in order. Only a bitstream is looked into; all else is raw."""
        how = ["--write-flash", "--verify", *(["--unprotect-flash"] if unprotect else []), "--offset", f"{offset:#x}"]
        how += [] if file.suffix == ".bit" else ["--file-type", "raw"]
        return [["--cable", cable, *how, str(file)]]

    def read(self, cable: str, file: Path, length: int) -> list[str]:
        """Return what reads the flash into ``file``."""
        return ["--cable", cable, "--dump-flash", "--offset", "0", "--file-size", str(length), str(file)]


class Ecpdap:
    """ecpdap: CMSIS-DAP cables (a DAPLink), and no other."""

    name = "ecpdap"

    def path(self) -> str | None:
        """Return where it is, or None."""
        return shutil.which(self.name)

    def drives(self, cable: str) -> bool:
        """Whether it knows ``cable``, by openFPGALoader's name."""
        return cable == "cmsisdap"

    def detect(self, cable: str) -> list[str]:
        """Return what shows the devices in the chain."""
        return ["scan"]

    def load(self, cable: str, file: Path) -> list[str]:
        """Return what loads a bitstream into the FPGA."""
        return ["program", str(file)]

    def write(self, cable: str, file: Path, offset: int, unprotect: bool) -> list[list[str]]:
        """Return what writes ``file`` into the flash, in order; it verifies by itself."""
        first = [["flash", "unprotect"]] if unprotect else []
        return [*first, ["flash", "write", "--offset", str(offset), str(file)]]

    def read(self, cable: str, file: Path, length: int) -> list[str]:
        """Return what reads the flash into ``file``."""
        return ["flash", "read", "--length", str(length), str(file)]


Loader = OpenFpgaLoader | Ecpdap
LOADERS: tuple[Loader, ...] = (OpenFpgaLoader(), Ecpdap())


def run_loader(loader: Loader, arguments: list[str]) -> Answer:
    """Run a loader; return what it said."""
    path = loader.path()
    if path is None:
        raise BuildError(f"{loader.name} is missing")
    try:
        result = subprocess.run([path, *arguments], capture_output=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        raise BuildError(f"{loader.name} {' '.join(arguments)} had not ended after {LONGEST_S // 60} minutes: look at the cable") from None
    return Answer(result.returncode, (result.stdout + result.stderr).decode(errors="replace"))


def loader_for(cable: str) -> tuple[Loader, Answer]:
    """Return the first loader here that can drive ``cable``, and what it found there.

    Raises BuildError, naming what could, when nothing here can.
    """
    lacks = []
    for loader in LOADERS:
        if not loader.drives(cable):
            continue
        if loader.path() is None:
            lacks.append(f"{loader.name} is not installed")
            continue
        answer = run_loader(loader, loader.detect(cable))
        if answer.says(f"support for {cable.lower()} was not enabled"):
            lacks.append(f"{loader.name} was built without it, as PyPI's is")
        else:
            return loader, answer
    raise BuildError(
        f"nothing here can drive JTAG cable {cable}: {'; '.join(lacks)}\n"
        f"install one that can, on PATH: {how_to_get(cable)}; then run this again"
    )


def how_to_get(cable: str) -> str:
    """Return how to install a loader that can drive ``cable``."""
    ways = ["openFPGALoader of your system (apt-get install openfpgaloader)"]
    ways += ["ecpdap (cargo install ecpdap)"] if any(loader.name == "ecpdap" and loader.drives(cable) for loader in LOADERS) else []
    return ", or ".join(ways)


def part_of(device: str) -> str:
    """Return the part of a device that its IDCODE tells (``LFE5U-25`` of ``LFE5U-25F-6BG256C``)."""
    return "-".join(device.split("-")[:2]).rstrip("F")


def name_of(idcode: int) -> str:
    """Return the part that has an IDCODE, or the number."""
    return next((part for part, code in IDCODES.items() if code == idcode), f"{idcode:#010x}")


def is_of(idcode: int, device: str) -> bool:
    """Whether a device that shows ``idcode`` can be a ``device``.

    openFPGALoader before 2023 takes an LFE5U for an LFE5UM: it leaves the top four bits out.
    """
    wanted = IDCODES[part_of(device)]
    return idcode == wanted or (device.startswith("LFE5U-") and idcode == wanted & 0x0FFFFFFF)
