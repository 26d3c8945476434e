# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Loads a bitstream into a board, or writes it, or firmware, into the board's flash, of which a backup is made before.

``python -m liteprobe.soc.build.load BOARD FILE`` writes firmware (``liteprobe firmware pack``); with ``--load`` or ``--flash``
FILE is a bitstream. One of a release brings what must be known of its board, so that it is loaded without any gateware installed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from liteprobe.boards import BOARDS, OTHER_NAMES, VERILOG_ONLY, board
from liteprobe.cores.formats import FLASH_MAGIC
from liteprobe.soc.build.toolchain import LOG_TAIL_LINES, BuildError, find_tool


LONGEST_S = 3600 # A chip of 16 MB by a slow cable takes tens of minutes.
# What they say.
NO_PERMISSION = ("permission", "access denied", "error_access", "-4 (usb_open() failed)", "insufficient")
LOCKED = ("block protection is set", "--unprotect-flash", "write-protected")
REPORT = "report.json" # Beside a bitstream.
# Lattice: bits 27 to 0 by size, the top ones by family.
SIZES = {"25": 0x1111043, "45": 0x1112043, "85": 0x1113043}
FAMILIES = {"LFE5U": 0x4, "LFE5UM": 0x0, "LFE5UM5G": 0x8}
IDCODES = {f"{family}-{size}": top << 28 | low for family, top in FAMILIES.items() for size, low in SIZES.items()}
IDCODES["LFE5U-12"] = 0x21111043


@dataclass(frozen=True)
class LoadTarget:
    """Says what must be known of a board to load it: a board has it all, and so has the report of a released bitstream.

    Attributes
    ----------
    name : str, of the board; ``device``: of its FPGA, as its maker orders it.
    cable : str, JTAG cable by openFPGALoader's name.
    flash_bytes, flash_offset : int, size of its flash, and where firmware begins in it.
    jtag_advice : str, what to look at when no FPGA answers; "": nothing.
    """

    name: str
    device: str
    cable: str
    flash_bytes: int
    flash_offset: int
    jtag_advice: str

    @classmethod
    def of(cls, one: Any) -> LoadTarget:
        """Return what must be known of a board."""
        return cls(one.name, one.device, one.cable, one.flash_bytes, one.flash_offset, one.jtag_advice)

    @property
    def facts(self) -> dict[str, str | int]:
        """All of it, as a report has it."""
        return asdict(self)


def target_for(name: str, file: Path) -> Any:
    """Return what must be known of a board by its name: the board, or what the report beside ``file`` says of it.

    Raises BuildError where the report says that the bitstream is for another board.
    """
    name = OTHER_NAMES.get(name, name)
    report = file.with_name(REPORT)
    facts = json.loads(report.read_text(encoding="utf-8")) if report.is_file() else {}
    theirs = str(facts.get("board", name))
    if OTHER_NAMES.get(theirs, theirs) != name:
        raise BuildError(f"{file} is for {theirs}, not {name}: nothing was written", 2)
    return LoadTarget(**facts["target"]) if "target" in facts else board(name)


@dataclass(frozen=True)
class LoaderOutput:
    """Holds what a program said, and its exit code."""

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


def run_loader(loader: Loader, arguments: list[str], usb: str | None = None) -> LoaderOutput:
    """Run a loader, with the cable at BUS:DEVICE where ``usb`` says so; return what it said."""
    path = loader.path()
    if path is None:
        raise BuildError(f"{loader.name} is missing")
    if usb and loader.name != OpenFpgaLoader.name:
        raise BuildError(
            f"{loader.name} takes the first cable, not the one at {usb}: unplug the other, or install openFPGALoader", 2)
    arguments = [*(["--busdev-num", usb] if usb else []), *arguments]
    try:
        result = subprocess.run([path, *arguments], capture_output=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        raise BuildError(
            f"{loader.name} {' '.join(arguments)} had not ended after {LONGEST_S // 60} minutes: look at the cable") from None
    return LoaderOutput(result.returncode, (result.stdout + result.stderr).decode(errors="replace"))


def loader_for(cable: str, usb: str | None = None) -> tuple[Loader, LoaderOutput]:
    """Return the first loader here that can drive ``cable``, and what it found there; ``usb``: as of `run_loader`.

    Raises BuildError, naming what could, when nothing here can.
    """
    lacks = []
    for loader in LOADERS:
        if not loader.drives(cable):
            continue
        if loader.path() is None:
            lacks.append(f"{loader.name} is not installed")
            continue
        answer = run_loader(loader, loader.detect(cable), usb)
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


# ECP5 sysCONFIG Usage Guide, FPGA-TN-02039: what a bitstream begins with, and the command that names its device.
PREAMBLE = b"\xff\xff\xbd\xb3"
VERIFY_ID = b"\xe2\x00\x00\x00"
NEAR = 64 # Octets after the preamble in which the command stands.


def idcode_in(octets: bytes) -> int | None:
    """Return the IDCODE that the first bitstream in ``octets`` is for; None where it names none."""
    start = octets.find(PREAMBLE)
    place = octets.find(VERIFY_ID, start, start + NEAR) if start >= 0 else -1
    return int.from_bytes(octets[place + 4 : place + 8], "big") if place >= 0 else None


def read(file: Path, how_to_make: str) -> bytes:
    """Return the octets of a file; BuildError where there is none, saying ``how_to_make`` it."""
    if not file.is_file():
        raise BuildError(f"{file} is not there: {how_to_make}")
    return file.read_bytes()


def check_device(file: Path, octets: bytes, target: Any) -> None:
    """Raise BuildError when a bitstream in ``octets`` is for another device than that of the board ``target``."""
    found, wanted = idcode_in(octets), part_of(target.device)
    if found is not None and found != IDCODES[wanted]:
        raise BuildError(f"{file} is for an {name_of(found)}, and {target.name} has an {wanted}: nothing was written")


def check_bitstream(file: Path, target: Any) -> None:
    """Raise BuildError unless ``file`` is a bitstream for ``target`` that ends before its firmware begins."""
    octets = read(file, "build it again")
    if idcode_in(octets) is None:
        raise BuildError(f"{file} is not a bitstream of an ECP5: build it again")
    check_device(file, octets, target)
    if len(octets) > target.flash_offset:
        raise BuildError(f"{file} has {len(octets)} bytes, and firmware begins at {target.flash_offset}: nothing was written")


def check_firmware(file: Path, target: Any) -> None:
    """Raise BuildError unless ``file`` is packed firmware that ends within the flash of ``target``."""
    octets = read(file, "make it by 'liteprobe firmware pack'")
    if int.from_bytes(octets[:4], "little") != FLASH_MAGIC:
        raise BuildError(f"{file} is not firmware for the flash: make it by 'liteprobe firmware pack'")
    space = target.flash_bytes - target.flash_offset
    if len(octets) > space:
        raise BuildError(
            f"{file} has {len(octets)} bytes, and the flash of {target.name} has {space} for firmware: nothing was written")


def check_backup(file: Path, target: Any) -> None:
    """Raise BuildError unless ``file`` can be a copy of the whole flash of ``target``."""
    octets = read(file, "give the file that a build with --flash named when it made the backup")
    if len(octets) != target.flash_bytes:
        raise BuildError(
            f"{file} has {len(octets)} bytes, and the flash of {target.name} has {target.flash_bytes}: "
            f"it is not a copy of it, and nothing was written"
        )
    check_device(file, octets, target)


DIGITS = 12 # Of the hash, in the name.
WITHOUT = "--no-backup goes without" # What else a user can do before a write.


def folder() -> Path:
    """Return where backups are kept: in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "liteprobe" / "flash"


def kept(name: str) -> list[Path]:
    """Return the backups of a board that were made before."""
    return sorted(folder().glob(f"{name}-*.bin"))


def back_up(target: Any, dump: Callable[[Path], None], file: Path | None = None, advice: str = WITHOUT) -> Path:
    """Read the whole flash of ``target`` by ``dump`` into ``file``, or into the folder of backups; return the file.

    Without ``file`` a board that was backed up before is not read again. Raises BuildError, which ends with ``advice``, when
    the flash can't be read or kept, and exit code 2 when ``file`` is there already.
    """
    if file is None and (before := kept(target.name)):
        print(f"the flash of a {target.name} was backed up before: {before[-1]} (--backup FILE makes another)", file=sys.stderr)
        return before[-1]
    if file and file.exists():
        raise BuildError(f"{file} is there already, and is not replaced: give --backup another name", 2)
    what = f"reading the {target.flash_bytes >> 20} MB of flash for a backup, which may take some minutes"
    print(what, file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "flash.bin"
        dump(copy)
        octets = copy.read_bytes() if copy.is_file() else b""
        if len(octets) != target.flash_bytes:
            raise BuildError(f"read {len(octets)} of {target.flash_bytes} bytes of flash: nothing was written; {advice}")
        if len(set(octets)) == 1:
            raise BuildError(f"all that was read of the flash is {octets[0]:#04x}: it may be blank; nothing was written; {advice}")
        file = file or folder() / f"{target.name}-{hashlib.sha256(octets).hexdigest()[:DIGITS]}.bin"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_name(file.name + ".part")
            shutil.copyfile(copy, part)
            part.replace(file) # At once: half a backup would pass for one.
        except OSError as error:
            raise BuildError(
                f"can't keep the backup in {file} ({error.strerror}): give --backup FILE a place for it; {advice}") from None
    print(f"backup of the flash: {file}; 'liteprobe build {target.name} --restore {file}' writes it back", file=sys.stderr)
    return file


NO_BOARD = 3


@dataclass(frozen=True)
class FlashOptions:
    """Says by which cable a board is reached, and what may be done to its flash.

    Attributes
    ----------
    cable : str or None, JTAG cable by openFPGALoader's name; None: the board's own.
    usb : str or None, ``BUS:DEVICE`` of the cable where several of a kind are plugged in; None: the first.
    unprotect : bool, whether blocks of the flash that are write-protected may be unlocked.
    backup : Path or None, where the flash is kept; None: in the folder of backups, once a board.
    with_backup : bool
    """

    cable: str | None = None
    unprotect: bool = False
    backup: Path | None = None
    with_backup: bool = True
    usb: str | None = None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that make a `FlashOptions`."""
    parser.add_argument("--cable", metavar="NAME", help="JTAG cable, by openFPGALoader's name (default: the board's own)")
    parser.add_argument("--usb", metavar="BUS:DEVICE", help="which cable, where several of a kind are plugged in (lsusb)")
    parser.add_argument("--unprotect", action="store_true", help="unlock a flash that is write-protected, as new i5 and i9 are")
    parser.add_argument("--backup", metavar="FILE", type=Path,
        help="keep the flash in FILE before it is written (default: in the user's data folder, once)")
    parser.add_argument("--no-backup", dest="with_backup", action="store_false", help="write without keeping what is in the flash")


def flash_options_of(args: argparse.Namespace) -> FlashOptions:
    """Return what the options ask for; ValueError when two contradict each other."""
    if args.backup and not args.with_backup:
        raise ValueError("--backup and --no-backup contradict each other: leave one out")
    return FlashOptions(args.cable, args.unprotect, args.backup, args.with_backup, args.usb)


def detect(target: Any, options: FlashOptions) -> Loader:
    """Look for the board ``target`` on its cable; return the program that can load it.

    Raises BuildError: exit code 3 when no cable or no device answers, or when it is another one, 1 when no program here can
    drive the cable, 2 when no loader knows it.
    """
    cable = options.cable or target.cable
    loader, answer = loader_for(cable, options.usb)
    if answer.says("shared libraries"):
        raise BuildError(f"{loader.name} can't start:\n{answer.tail}\ninstall what it lacks: apt-get install libftdi1-2")
    if answer.says(f"{cable.lower()} not found"):
        raise BuildError(f"there is no JTAG cable {cable}: '{loader.name} --list-cables' names those there are", 2)
    if answer.says(*NO_PERMISSION):
        raise BuildError(
            f"you may not use JTAG cable {cable}:\n{answer.tail}\n"
            f"give yourself its USB device: copy openFPGALoader's 99-openfpgaloader.rules to /etc/udev/rules.d, plug it in again",
            NO_BOARD,
        )
    check_chain(target, cable, answer)
    return loader


def check_chain(target: Any, cable: str, answer: LoaderOutput) -> None:
    """Raise BuildError unless the FPGA of ``target`` is the one device in the JTAG chain."""
    advice = f"\n{target.jtag_advice}" if target.jtag_advice else ""
    # Some cables exit with 0 though no device is in the chain.
    if answer.code != 0 or not answer.idcodes:
        raise BuildError(
            f"no board answers on JTAG cable {cable}:\n{answer.tail}\n"
            f"connect the cable, power the board and check that you may use its USB device, then run this again{advice}",
            NO_BOARD,
        )
    if len(answer.idcodes) > 1:
        found = ", ".join(name_of(idcode) for idcode in answer.idcodes)
        raise BuildError(
            f"{len(answer.idcodes)} devices are in the chain of JTAG cable {cable}: {found}\n"
            f"take all but the FPGA out of it, then run this again{advice}",
            NO_BOARD,
        )
    if not is_of(answer.idcodes[0], target.device):
        raise BuildError(
            f"the board on JTAG cable {cable} has an {name_of(answer.idcodes[0])}, not an {part_of(target.device)}: "
            f"connect the one that you named, or name that one",
            NO_BOARD,
        )


def load(target: Any, file: Path, options: FlashOptions) -> None:
    """Load a bitstream into the SRAM of the board ``target``.

    Raises BuildError: exit code 3 when no cable or no device answers, 1 when loading itself fails.
    """
    check_bitstream(file, target)
    loader = detect(target, options)
    answer = run_loader(loader, loader.load(options.cable or target.cable, file), options.usb)
    if answer.code != 0:
        raise BuildError(f"loading {file} failed:\n{answer.tail}")


def flash_bitstream(target: Any, file: Path, options: FlashOptions) -> None:
    """Write a bitstream into the flash of ``target``; BuildError as of ``load``."""
    check_bitstream(file, target)
    _write(target, file, 0, options)


def flash_firmware(target: Any, file: Path, options: FlashOptions) -> None:
    """Write packed firmware into the flash of ``target``; BuildError as of ``load``."""
    check_firmware(file, target)
    _write(target, file, target.flash_offset, options)


def keep(target: Any, file: Path, options: FlashOptions) -> None:
    """Read the flash of ``target`` into ``file``, and write nothing to the board; BuildError as of ``load``."""
    loader, cable, advice = detect(target, options), options.cable or target.cable, "look at cable and power, and run this again"
    back_up(target, lambda copy: _dump(loader, (cable, options.usb), copy, target.flash_bytes, advice), file, advice)


def restore(target: Any, file: Path, options: FlashOptions) -> None:
    """Write a backup into the flash of ``target``, and keep nothing of what is there; BuildError as of ``load``."""
    check_backup(file, target)
    _write(target, file, 0, replace(options, backup=None, with_backup=False))


def load_or_flash(args: argparse.Namespace, target: Any, file: Path, options: FlashOptions) -> None:
    """Write a bitstream into the flash, or load it, as was asked for, and say when it is there."""
    cable = options.cable or target.cable
    if args.flash:
        print(f"writing the flash, JTAG cable {cable}", file=sys.stderr, flush=True)
        flash_bitstream(target, file, options)
        print(f"{file} is in the flash of {args.board}: switch it off and on")
    else:
        print(f"loading, JTAG cable {cable}", file=sys.stderr, flush=True)
        load(target, file, options)
        print(f"{file} is loaded into {args.board}, until its power goes")


def backup_only(args: argparse.Namespace, target: Any, options: FlashOptions) -> int:
    """Keep the flash in a file; return the exit code."""
    if args.board in VERILOG_ONLY:
        raise ValueError(f"nothing here can reach {args.board}: use its vendor's tool")
    keep(target, args.backup, options)
    return 0


def restore_only(args: argparse.Namespace, target: Any, options: FlashOptions) -> int:
    """Write a backup of the flash back; return the exit code."""
    if args.board in VERILOG_ONLY:
        raise ValueError(f"nothing here can reach {args.board}: use its vendor's tool")
    check_backup(args.restore, target)
    print(f"writing the whole flash, JTAG cable {options.cable or target.cable}: this takes minutes", file=sys.stderr, flush=True)
    restore(target, args.restore, options)
    print(f"{args.restore} is in the flash of {args.board}: switch it off and on")
    return 0


def _write(target: Any, file: Path, offset: int, options: FlashOptions) -> None:
    loader, cable = detect(target, options), options.cable or target.cable
    if options.with_backup:
        back_up(target, lambda copy: _dump(loader, (cable, options.usb), copy, target.flash_bytes), options.backup)
    for arguments in loader.write(cable, file, offset, options.unprotect):
        answer = run_loader(loader, arguments, options.usb)
        if answer.code == 0:
            continue
        if answer.says(*LOCKED) and not options.unprotect:
            raise BuildError(f"the flash of {target.name} is write-protected:\n{answer.tail}\nrun this again with --unprotect")
        raise BuildError(f"writing {file} failed:\n{answer.tail}")


def _dump(loader: Loader, at: tuple[str, str | None], copy: Path, length: int, advice: str = WITHOUT) -> None:
    cable, usb = at
    answer = run_loader(loader, loader.read(cable, copy, length), usb)
    if answer.code != 0:
        raise BuildError(f"reading the flash for a backup failed, and nothing was written:\n{answer.tail}\n{advice}")


def main(arguments: list[str] | None = None) -> int:
    """Load a bitstream, or write it, or firmware, into a board's flash; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m liteprobe.soc.build.load", description="Load a board, or write its flash.")
    parser.add_argument("board", choices=[*BOARDS, *OTHER_NAMES], help="which board is on the cable")
    parser.add_argument("file", type=Path, help="what 'liteprobe firmware pack' has made; with --load or --flash a bitstream")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--load", action="store_true", help="load the bitstream FILE into the board (volatile)")
    what.add_argument("--flash", action="store_true", help="write the bitstream FILE into the board's flash")
    add_options(parser)
    args = parser.parse_args(arguments)
    try:
        options, target = flash_options_of(args), target_for(args.board, args.file)
        if args.load or args.flash:
            load_or_flash(args, target, args.file, options)
            return 0
        flash_firmware(target, args.file, options)
    except ValueError as error:
        print(f"load: {error}", file=sys.stderr)
        return 2
    except BuildError as error:
        print(f"load: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("load: interrupted", file=sys.stderr)
        return 130
    print(f"{args.file} is in the flash of {args.board}, from {target.flash_offset:#x} on")
    return 0


if __name__ == "__main__":
    sys.exit(main())
