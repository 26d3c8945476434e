# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Loads a bitstream into a board, by openFPGALoader."""

from __future__ import annotations

import subprocess
from pathlib import Path

from liteprobe.soc.toolchain import LOG_TAIL_LINES, BuildError, find_tool

NO_BOARD = 3


def run_loader(arguments: list[str]) -> tuple[int, str]:
    """Run openFPGALoader; return its exit code and the end of what it said."""
    result = subprocess.run([find_tool("openFPGALoader"), *arguments], capture_output=True, text=True, timeout=120, check=False)
    lines = (result.stdout + result.stderr).strip().splitlines()
    return result.returncode, "\n".join(f"  {line}" for line in lines[-LOG_TAIL_LINES:])


def load(cable: str, bitstream: Path) -> None:
    """Load ``bitstream`` into the SRAM of the board behind ``cable``.

    Raises BuildError: exit code 3 when no cable or no device answers, 1 when loading itself fails.
    """
    code, said = run_loader(["--cable", cable, "--detect"])
    if "shared libraries" in said:
        raise BuildError(f"openFPGALoader can't start:\n{said}\ninstall what it lacks: apt-get install libftdi1-2")
    # Some cables exit with 0 though no device is in the chain.
    if code != 0 or "idcode" not in said.lower():
        raise BuildError(
            f"no board answers on JTAG cable {cable}:\n{said}\n"
            f"connect the cable, power the board and check that you may use its USB device, then run this again",
            NO_BOARD,
        )
    code, said = run_loader(["--cable", cable, str(bitstream)])
    if code != 0:
        raise BuildError(f"loading {bitstream} failed:\n{said}")
