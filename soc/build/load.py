# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Loads a bitstream into a board, or writes it, or firmware, into the board's flash, whose content is kept before.

``python -m liteprobe.soc.build.load BOARD FILE`` writes firmware (``liteprobe firmware pack``).
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from liteprobe.boards import BOARDS, OTHER_NAMES, VERILOG_ONLY, board
from liteprobe.soc.build.backup import WITHOUT, back_up
from liteprobe.soc.build.images import check_backup, check_bitstream, check_firmware
from liteprobe.soc.build.loaders import LOCKED, NO_PERMISSION, Answer, Loader, is_of, loader_for, name_of, part_of, run_loader
from liteprobe.soc.build.toolchain import BuildError

NO_BOARD = 3


@dataclass(frozen=True)
class Way:
    """How a board is reached, and what may be done to its flash.

    Attributes
    ----------
    cable : str or None, JTAG cable by openFPGALoader's name; None: the board's own.
    unprotect : bool, whether blocks of the flash that are write-protected may be unlocked.
    backup : Path or None, where the flash is kept; None: in the folder of backups, once a board.
    with_backup : bool
    """

    cable: str | None = None
    unprotect: bool = False
    backup: Path | None = None
    with_backup: bool = True


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that make a `Way`."""
    parser.add_argument("--cable", metavar="NAME", help="JTAG cable, by openFPGALoader's name (default: the board's own)")
    parser.add_argument("--unprotect", action="store_true", help="unlock a flash that is write-protected, as new i5 and i9 are")
    parser.add_argument("--backup", metavar="FILE", type=Path, help="keep the flash in FILE before it is written (default: in the user's data folder, once)")
    parser.add_argument("--no-backup", dest="with_backup", action="store_false", help="write without keeping what is in the flash")


def way_of(args: argparse.Namespace) -> Way:
    """Return what the options ask for; ValueError when two contradict each other."""
    if args.backup and not args.with_backup:
        raise ValueError("--backup and --no-backup contradict each other: leave one out")
    return Way(args.cable, args.unprotect, args.backup, args.with_backup)


def detect(target: Any, way: Way) -> Loader:
    """Look for the board ``target`` on its cable; return the program that can load it.

    Raises BuildError: exit code 3 when no cable or no device answers, or when it is another one, 1 when no program here can
    drive the cable, 2 when no loader knows it.
    """
    cable = way.cable or target.cable
    loader, answer = loader_for(cable)
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


def check_chain(target: Any, cable: str, answer: Answer) -> None:
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
    if not is_of(answer.idcodes[0], target.platform.device):
        raise BuildError(
            f"the board on JTAG cable {cable} has an {name_of(answer.idcodes[0])}, not an {part_of(target.platform.device)}: "
            f"connect the one that you named, or name that one",
            NO_BOARD,
        )


def load(target: Any, file: Path, way: Way) -> None:
    """Load a bitstream into the SRAM of the board ``target``.

    Raises BuildError: exit code 3 when no cable or no device answers, 1 when loading itself fails.
    """
    check_bitstream(file, target)
    loader = detect(target, way)
    answer = run_loader(loader, loader.load(way.cable or target.cable, file))
    if answer.code != 0:
        raise BuildError(f"loading {file} failed:\n{answer.tail}")


def flash_bitstream(target: Any, file: Path, way: Way) -> None:
    """Write a bitstream into the flash of ``target``; BuildError as of ``load``."""
    check_bitstream(file, target)
    _write(target, file, 0, way)


def flash_firmware(target: Any, file: Path, way: Way) -> None:
    """Write packed firmware into the flash of ``target``; BuildError as of ``load``."""
    check_firmware(file, target)
    _write(target, file, target.flash_offset, way)


def keep(target: Any, file: Path, way: Way) -> None:
    """Read the flash of ``target`` into ``file``, and write nothing to the board; BuildError as of ``load``."""
    loader, cable, advice = detect(target, way), way.cable or target.cable, "look at cable and power, and run this again"
    back_up(target, lambda copy: _dump(loader, cable, copy, target.flash_bytes, advice), file, advice)


def restore(target: Any, file: Path, way: Way) -> None:
    """Write a backup into the flash of ``target``, and keep nothing of what is there; BuildError as of ``load``."""
    check_backup(file, target)
    _write(target, file, 0, Way(way.cable, way.unprotect, with_backup=False))


def load_or_flash(args: argparse.Namespace, target: Any, file: Path, way: Way) -> None:
    """Write a bitstream into the flash, or load it, as was asked for, and say when it is there."""
    cable = way.cable or target.cable
    if args.flash:
        print(f"writing the flash, JTAG cable {cable}", file=sys.stderr, flush=True)
        flash_bitstream(target, file, way)
        print(f"{file} is in the flash of {args.board}: switch it off and on")
    else:
        print(f"loading, JTAG cable {cable}", file=sys.stderr, flush=True)
        load(target, file, way)
        print(f"{file} is loaded into {args.board}, until its power goes")


def backup_only(args: argparse.Namespace, target: Any, way: Way) -> int:
    """Keep the flash in a file; return the exit code."""
    if args.board in VERILOG_ONLY:
        raise ValueError(f"nothing here can reach {args.board}: use its vendor's tool")
    keep(target, args.backup, way)
    return 0


def restore_only(args: argparse.Namespace, target: Any, way: Way) -> int:
    """Write a backup of the flash back; return the exit code."""
    if args.board in VERILOG_ONLY:
        raise ValueError(f"nothing here can reach {args.board}: use its vendor's tool")
    check_backup(args.restore, target)
    print(f"writing the whole flash, JTAG cable {way.cable or target.cable}: this takes minutes", file=sys.stderr, flush=True)
    restore(target, args.restore, way)
    print(f"{args.restore} is in the flash of {args.board}: switch it off and on")
    return 0


def _write(target: Any, file: Path, offset: int, way: Way) -> None:
    loader, cable = detect(target, way), way.cable or target.cable
    if way.with_backup:
        back_up(target, lambda copy: _dump(loader, cable, copy, target.flash_bytes), way.backup)
    for arguments in loader.write(cable, file, offset, way.unprotect):
        answer = run_loader(loader, arguments)
        if answer.code == 0:
            continue
        if answer.says(*LOCKED) and not way.unprotect:
            raise BuildError(f"the flash of {target.name} is write-protected:\n{answer.tail}\nrun this again with --unprotect")
        raise BuildError(f"writing {file} failed:\n{answer.tail}")


def _dump(loader: Loader, cable: str, copy: Path, length: int, advice: str = WITHOUT) -> None:
    answer = run_loader(loader, loader.read(cable, copy, length))
    if answer.code != 0:
        raise BuildError(f"reading the flash for a backup failed, and nothing was written:\n{answer.tail}\n{advice}")


def main(arguments: list[str] | None = None) -> int:
    """Write firmware into a board's flash; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m liteprobe.soc.build.load", description="Write firmware into a board's flash.")
    parser.add_argument("board", choices=[*BOARDS, *OTHER_NAMES], help="which board is on the cable")
    parser.add_argument("file", type=Path, help="what 'liteprobe firmware pack' has made")
    add_options(parser)
    args = parser.parse_args(arguments)
    target = board(args.board)
    try:
        flash_firmware(target, args.file, way_of(args))
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
