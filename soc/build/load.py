# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Loads a bitstream into a board, or writes it, or firmware, into the board's flash, by openFPGALoader.

``python -m liteprobe.soc.build.load BOARD FILE`` writes firmware (``liteprobe firmware pack``).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from liteprobe.boards import BOARDS, board
from liteprobe.soc.build.toolchain import LOG_TAIL_LINES, BuildError, find_tool

NO_BOARD = 3
NO_PERMISSION = ("permission", "access denied", "error_access", "-4 (usb_open() failed)", "insufficient")


def run_loader(arguments: list[str]) -> tuple[int, str]:
    """Run openFPGALoader; return its exit code and the end of what it said."""
    result = subprocess.run([find_tool("openFPGALoader"), *arguments], capture_output=True, text=True, timeout=600, check=False)
    lines = (result.stdout + result.stderr).strip().splitlines()
    return result.returncode, "\n".join(f"  {line}" for line in lines[-LOG_TAIL_LINES:])


def detect(cable: str, device: str | None = None) -> None:
    """Look for the board behind ``cable``, whose FPGA should be ``device`` (``LFE5U-25F-6BG256C``; None: any).

    Raises BuildError, exit code 3, when no cable or no device answers, or when it is another one.
    """
    code, said = run_loader(["--cable", cable, "--detect"])
    if "shared libraries" in said:
        raise BuildError(f"openFPGALoader can't start:\n{said}\ninstall what it lacks: apt-get install libftdi1-2")
    if any(word in said.lower() for word in NO_PERMISSION):
        raise BuildError(
            f"you may not use JTAG cable {cable}:\n{said}\n"
            f"give yourself its USB device: copy openFPGALoader's 99-openfpgaloader.rules to /etc/udev/rules.d, plug it in again",
            NO_BOARD,
        )
    # Some cables exit with 0 though no device is in the chain.
    if code != 0 or "idcode" not in said.lower():
        raise BuildError(
            f"no board answers on JTAG cable {cable}:\n{said}\n"
            f"connect the cable, power the board and check that you may use its USB device, then run this again",
            NO_BOARD,
        )
    model = re.search(r"model\s+(LFE5\S+)", said)
    if device and model and not device.startswith(model[1]):
        raise BuildError(
            f"the board on JTAG cable {cable} has an {model[1]}, not an {device}: connect the one that you named, or name that one",
            NO_BOARD,
        )


def load(cable: str, file: Path, flash_offset: int | None = None) -> None:
    """Load a bitstream into the SRAM of the board behind ``cable``, or write ``file`` into its flash at ``flash_offset``.

    Raises BuildError: exit code 3 when no cable or no device answers, 1 when loading itself fails.
    """
    detect(cable)
    how = [] if flash_offset is None else ["--write-flash", "--verify", "--offset", f"{flash_offset:#x}"]
    how += ["--file-type", "raw"] if flash_offset else []
    code, said = run_loader(["--cable", cable, *how, str(file)])
    if code != 0:
        raise BuildError(f"{'loading' if flash_offset is None else 'writing'} {file} failed:\n{said}")


def main(arguments: list[str] | None = None) -> int:
    """Write firmware into a board's flash; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m liteprobe.soc.build.load", description="Write firmware into a board's flash.")
    parser.add_argument("board", choices=list(BOARDS), help="which board is on the cable")
    parser.add_argument("file", type=Path, help="what 'liteprobe firmware pack' has made")
    args = parser.parse_args(arguments)
    target = board(args.board)
    try:
        if not args.file.is_file():
            raise BuildError(f"there is no file {args.file}: make it by 'liteprobe firmware pack'")
        load(target.cable, args.file, target.flash_offset)
    except BuildError as error:
        print(f"load: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{args.file} is in the flash of {args.board}, from {target.flash_offset:#x} on")
    return 0


if __name__ == "__main__":
    sys.exit(main())
