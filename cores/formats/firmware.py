# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Firmware in flash."""

import zlib
from enum import IntEnum
from typing import Final

FLASH_MAGIC: Final = 0x5746504C  # "LPFW"
FLASH_HEADER_WORDS: Final = 6


class BootState(IntEnum):
    """Register ``boot_state``: what became of firmware since the processor's last reset."""

    NOTHING = (
        0  # The program in ROM waits for the RAM, reads the flash, or found neither firmware to look for nor a flash.
    )
    STARTED = 1  # As a host has asked for.
    STARTED_FROM_FLASH = 2
    NO_IMAGE = 3  # The flash holds no firmware.
    OTHER_GATEWARE = 4  # What it holds is for another gateware.
    DAMAGED = 5  # Its CRC-32, length or addresses are wrong, or the RAM doesn't keep it.


def flash_image(octets: bytes, start: int, entry: int, gateware: int) -> bytes:
    """Return firmware as it is written into the flash.

    Parameters
    ----------
    octets : the image; padded with zeros to whole words.
    start, entry : address that it is copied to, and address of its first instruction.
    gateware : map hash that it was built for.
    """
    padded = octets + bytes(-len(octets) % 4)
    fields = b"".join(value.to_bytes(4, "little") for value in (len(padded), start, entry, gateware))
    check = zlib.crc32(fields + padded)
    return FLASH_MAGIC.to_bytes(4, "little") + fields + check.to_bytes(4, "little") + padded
