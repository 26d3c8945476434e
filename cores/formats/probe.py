# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Names the parts of a probe and its map, and lays out the lease, the window in PCIe, and firmware in flash."""

import json
import zlib
from collections.abc import Mapping
from enum import IntEnum, IntFlag
from typing import Any, Final


class Part(IntFlag):
    """Register ``probe_parts``: what is built in."""

    GENERATE = 1  # Ports send trains.
    RECORD = 2  # Ports keep a record of each frame of a train, and nothing else.
    MONITOR = 4  # Ports parse, filter, measure and capture all frames.
    STREAMS = 8  # Ports send many streams.
    MEASURE = 16  # Ports measure streams (accumulators, histograms), and keep nothing.
    REPLAY = 32  # Ports send traces that the host streams to them.
    SETS = 64  # Ports make frames of configuration sets that the host streams; with REPLAY.
    EMULATE = 128  # Ports are joined by an emulated network.
    HOSTS = 256  # Ports answer ARP, ND, ping and STAMP.


#: The parts of each preset; the first one is the default.
PRESETS: Final = {
    "train": Part.GENERATE | Part.RECORD,
    "monitor": Part.MONITOR,
    "generator": Part.GENERATE | Part.STREAMS | Part.MEASURE,
    "tester": Part.GENERATE | Part.STREAMS | Part.MONITOR,
    "replay": Part.GENERATE | Part.MONITOR | Part.REPLAY | Part.SETS,
    "emulator": Part.GENERATE | Part.EMULATE,
}
DEFAULT_PRESET: Final = "train"


def preset_of(parts: int) -> str:
    """Return the preset of a probe with ``parts``, with or without what may be chosen; ValueError where there is none."""
    optional = Part.STREAMS | Part.REPLAY | Part.SETS
    parts &= ~Part.HOSTS  # In any preset whose ports are not joined.
    for name, its_parts in PRESETS.items():
        if parts == its_parts:
            return name
    for name, its_parts in PRESETS.items():
        if parts & ~optional == its_parts & ~optional and not parts & ~(its_parts | Part.REPLAY | Part.SETS):
            return name
    raise ValueError(f"no preset has the parts {parts:#x}: was the gateware built by a later version?")


def map_hash(register_map: Mapping[str, Any]) -> int:
    """Return the CRC-32 that tells one register map from another.

    Parameters
    ----------
    register_map : mapping
        LiteX's ``csr.json`` as loaded: ``csr_registers`` and ``memories`` are read.

    Returns
    -------
    int
        CRC-32 (zlib) over the canonical JSON of registers (name, addr, size, type) and memories
        (name, base, size), both sorted.

    Raises
    ------
    KeyError
        If the map has no ``csr_registers`` or an entry lacks a field: it is not a register map.
    """
    registers = sorted(
        [name, entry["addr"], entry["size"], entry["type"]] for name, entry in register_map["csr_registers"].items()
    )
    memories = sorted([name, entry["base"], entry["size"]] for name, entry in register_map.get("memories", {}).items())
    return zlib.crc32(json.dumps([registers, memories], sort_keys=True).encode())


# The lease, and the order of requests under it. ------------------------------------------------------
# The four octets that Etherbone's packet header leaves to padding (4 to 7, big-endian) hold the number of the lease (31:16)
# and the order of the request under this lease (15:0). All 0 is a request of a host that knows of no leases. In an answer
# they hold the number of the present lease and the order of the last request whose writes were done.

LEASE_NAME_WORDS = 16
LEASE_UNIT_BITS = 20  # Times of a lease are in 2^20 cycles of ``sys``.
ORDER_BITS = 16
ORDERS = 2**ORDER_BITS


# PCIe. ------------------------------------------------------------------------------------------------

#: What of the bus lies in BAR0, side by side: registers, memories, main RAM, and what is at 0. Each begins at a multiple of it.
BAR0_SEGMENTS: Final = (0xF000_0000, 0x8000_0000, 0x4000_0000, 0x0000_0000)
BAR0_SEGMENT_BYTES: Final = 4 * 1024 * 1024

#: Ring of a channel in the host's memory: slots of a page, of which a block takes the first octets.
DMA_SLOTS: Final = 256
DMA_SLOT_BYTES: Final = 4096
#: A multiple of the largest payload of a request (512), so that no part of a block has to wait for the next one.
DMA_BLOCK_BYTES: Final = 1536


# Firmware in flash. -----------------------------------------------------------------------------------

FLASH_MAGIC: Final = 0x5746504C  # "LPFW"
FLASH_HEADER_WORDS: Final = 6


class EyeState(IntEnum):
    """Says what became of the search for the eye of what the SDRAM gives."""

    SEARCHING = 0
    FOUND = 1  # The clock of the read registers is in its middle.
    SLOW = 2  # There is none: the SDRAM has the slow clock, whose phase is right on paper.
    FAILED = 3  # Nor is what is read then right.


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
