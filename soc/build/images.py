# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Looks into what is about to be written: is it for this board, and does it fit its place in the flash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from liteprobe.cores.formats import FLASH_MAGIC
from liteprobe.soc.build.loaders import IDCODES, name_of, part_of
from liteprobe.soc.build.toolchain import BuildError

# ECP5 sysCONFIG Usage Guide, FPGA-TN-02039: what a bitstream begins with, and the command that names its device.
PREAMBLE = b"\xff\xff\xbd\xb3"
VERIFY_ID = b"\xe2\x00\x00\x00"
NEAR = 64 # Octets behind the preamble in which the command stands.


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
    found, wanted = idcode_in(octets), part_of(target.platform.device)
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
    room = target.flash_bytes - target.flash_offset
    if len(octets) > room:
        raise BuildError(f"{file} has {len(octets)} bytes, and the flash of {target.name} has {room} for firmware: nothing was written")


def check_backup(file: Path, target: Any) -> None:
    """Raise BuildError unless ``file`` can be a copy of the whole flash of ``target``."""
    octets = read(file, "give the file that a build with --flash named when it made the backup")
    if len(octets) != target.flash_bytes:
        raise BuildError(
            f"{file} has {len(octets)} bytes, and the flash of {target.name} has {target.flash_bytes}: "
            f"it is not a copy of it, and nothing was written"
        )
    check_device(file, octets, target)
