# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What an emulated network can be built of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from liteprobe.soc.board_limits import BoardLimits

if TYPE_CHECKING:
    from liteprobe.soc.config import ProbeConfig

STORES = ("sdram", "block")
LONGEST = (1536, 9018)  # Octets of a frame without FCS.
LEAST_STORE_WORDS = 1 << 13  # Of a direction: each of nine lanes has a ring of 512 or more.
LARGEST_STORE_WORDS = {"sdram": 1 << 18, "block": 1 << 15}
# Block RAMs of an emulator, of each direction, of each 512 entries of one, and of a store in the SDRAM.
RAMS, DIRECTION_RAMS, ENTRIES_RAMS, SDRAM_RAMS = 33, 24, 3, 3
STORE_RAM_WORDS = 512  # In a block RAM.
LEAST_ENTRIES, LARGEST_ENTRIES = 64, 4096


def emulator_block_rams(config: ProbeConfig) -> int:
    """Return the block RAMs of an emulator besides its processor, as Yosys counts them for 512 entries, scaled."""
    in_store = 0 if config.stores_in_sdram else config.store_words // STORE_RAM_WORDS
    direction = DIRECTION_RAMS + ENTRIES_RAMS * max(1, config.entries // 512) + in_store
    return RAMS + SDRAM_RAMS * config.stores_in_sdram + config.directions * direction


def check_emulator(config: ProbeConfig, board: BoardLimits) -> None:
    """Raise ValueError, naming the fix, when ``board`` cannot hold the network of a probe that emulates one."""
    if not config.emulates:
        return
    if config.ports != 2:
        raise ValueError(f"an emulated network joins two ports, not {config.ports}: set ports to 2")
    if config.directions not in (1, 2):
        raise ValueError(f"directions {config.directions} is out of range: use 1 (from port 0 to port 1) or 2")
    if config.store not in STORES:
        raise ValueError(f"store {config.store!r} is unknown: choose one of {', '.join(STORES)}")
    if config.store == "sdram" and not board.sdram_bytes:
        raise ValueError(f"{board.name} has no SDRAM for frames in the network: use store=block")
    if config.longest not in LONGEST:
        raise ValueError(f"longest {config.longest} is not supported: use {LONGEST[0]}, or {LONGEST[1]} for jumbo frames")
    for name, value, least, most in (
        ("store_words", config.store_words, LEAST_STORE_WORDS, LARGEST_STORE_WORDS[config.store]),
        ("entries", config.entries, LEAST_ENTRIES, LARGEST_ENTRIES),
    ):
        if not least <= value <= most or value & (value - 1):
            raise ValueError(f"{name} {value} is not a power of two from {least} to {most}: use {most}")
