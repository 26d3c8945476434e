# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What an emulated network can be built of."""

from __future__ import annotations

from dataclasses import dataclass

from liteprobe.cores.formats.emulate import TRACE_ENTRY_WORDS
from liteprobe.soc.board_limits import BoardLimits

STORES = ("sdram", "block")
LONGEST = (1536, 9018)  # Octets of a frame without FCS.
LEAST_STORE_WORDS = 1 << 13  # Of a direction: each of nine lanes has a ring of 512 or more.
LARGEST_STORE_WORDS = {"sdram": 1 << 20, "block": 1 << 15}
# Block RAMs of an emulator, of each direction, of each 512 entries of one, and of a store in the SDRAM.
RAMS, DIRECTION_RAMS, ENTRIES_RAMS, SDRAM_RAMS = 22, 25, 3, 2
JUMBO_RAMS = 14  # More of each port that takes frames in, where they may be jumbo frames.
STORE_RAM_WORDS = 512  # In a block RAM.
LEAST_ENTRIES, LARGEST_ENTRIES = 64, 4096
LARGEST_TRACE = {"sdram": 1 << 17, "block": 1 << 12}


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Sizes of an emulated network.

    Parameters
    ----------
    directions : 1 (from port 0 to port 1) or 2.
    store : where frames wait: ``sdram``, or ``block`` (block RAM: short delays).
    store_words, entries : of each direction: words of the store, and frames that can be in the network; powers of two.
    longest : octets of the longest frame without FCS, 1536 or 9018.
    trace_entries : opportunities of a bandwidth trace that each direction holds, a power of two, beside the store; 0: none.
    """

    directions: int = 2
    store: str = "sdram"
    store_words: int = 1 << 19
    entries: int = 1024
    longest: int = 1536
    trace_entries: int = 0

    @property
    def network_rams(self) -> int:
        """Block RAMs of an emulator besides its processor, as Yosys counts them for 512 entries, scaled."""
        words = self.store_words + TRACE_ENTRY_WORDS * self.trace_entries
        in_store = 0 if self.store == "sdram" else -(-words // STORE_RAM_WORDS)
        direction = DIRECTION_RAMS + ENTRIES_RAMS * max(1, self.entries // 512) + in_store
        jumbo = 2 * JUMBO_RAMS * (self.longest > LONGEST[0])  # One of them is the way back's, where there is one direction.
        return RAMS + SDRAM_RAMS * (self.store == "sdram") + jumbo + self.directions * direction

    def check_network(self, board: BoardLimits, ports: int) -> None:
        """Raise ValueError, naming the fix, when ``board`` cannot hold this network between so many ports."""
        if ports != 2:
            raise ValueError(f"an emulated network joins two ports, not {ports}: set ports to 2")
        if self.directions not in (1, 2):
            raise ValueError(f"directions {self.directions} is out of range: use 1 (from port 0 to port 1) or 2")
        if self.store not in STORES:
            raise ValueError(f"store {self.store!r} is unknown: choose one of {', '.join(STORES)}")
        if self.store == "sdram" and not board.sdram_bytes:
            raise ValueError(f"{board.name} has no SDRAM for frames in the network: use store=block")
        if self.longest not in LONGEST:
            raise ValueError(f"longest {self.longest} is not supported: use {LONGEST[0]}, or {LONGEST[1]} for jumbo frames")
        for name, value, least, most in (
            ("store_words", self.store_words, LEAST_STORE_WORDS, LARGEST_STORE_WORDS[self.store]),
            ("entries", self.entries, LEAST_ENTRIES, LARGEST_ENTRIES),
        ):
            if not least <= value <= most or value & (value - 1):
                raise ValueError(f"{name} {value} is not a power of two from {least} to {most}: use {most}")
        most = LARGEST_TRACE[self.store]
        if self.trace_entries and (not 0 < self.trace_entries <= most or self.trace_entries & (self.trace_entries - 1)):
            raise ValueError(f"trace_entries {self.trace_entries} is not 0 or a power of two up to {most}: use {most}")
