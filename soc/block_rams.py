# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Block RAMs that a probe takes, so that what a board can't hold is refused before it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from liteprobe.soc.board_limits import BoardLimits
from liteprobe.soc.emulator_limits import emulator_block_rams

if TYPE_CHECKING:
    from liteprobe.soc.config import ProbeConfig

BLOCK_RAM_BITS = 16 * 1024  # One ECP5 EBR holds 18 kbit; the parity bits are of no use to 32-bit words.
RECORD_BITS = 6 * 32
# Block RAMs of a monitor, of each of its ports, of what writes a ring into SDRAM, and of a processor besides its memories.
MONITOR_RAMS, MONITOR_PORT_RAMS, SDRAM_RING_RAMS, CPU_RAMS = 22, 15, 2, 5
# The same of a probe that measures streams, besides its processor.
MEASURE_RAMS, MEASURE_PORT_RAMS = 8, 8
# Of each port that sends, that monitors and takes stamps from fields, that sends many streams.
GENERATE_PORT_RAMS, FIELDS_PORT_RAMS, STREAMS_PORT_RAMS = 2, 1, 6
REPLAY_RAMS, REPLAY_PORT_RAMS = 2, 2  # Of a probe that replays; of each of its ports.
MORE_STREAMS_RAMS  = {8: 0, 16: 5, 32: 15}  # Of each port, by slots of its meter.


def block_rams(config: ProbeConfig, board: BoardLimits) -> int:
    """Return how many block RAMs of ``board`` a probe takes at least; with meters up to one, as Yosys counts them."""
    bits = 8 * (config.rom_bytes + config.ram_bytes + config.main_ram_block_bytes(board)) if config.with_cpu else 0
    if not (config.monitors or config.measures or config.emulates):
        return -(-(bits + config.ports * config.record_depth * RECORD_BITS) // BLOCK_RAM_BITS)
    cpu = CPU_RAMS + -(-bits // BLOCK_RAM_BITS) if config.with_cpu else 0
    if config.emulates:
        return emulator_block_rams(config) + cpu
    send = GENERATE_PORT_RAMS * config.generates + STREAMS_PORT_RAMS * config.sends_streams
    port = MORE_STREAMS_RAMS[config.slots(board)] + send
    if config.measures:
        return MEASURE_RAMS + (MEASURE_PORT_RAMS + port) * config.ports + cpu
    ring = config.capture_blocks * 384 * 32 // BLOCK_RAM_BITS if config.ring_kind(board) == "block" else SDRAM_RING_RAMS
    fields = FIELDS_PORT_RAMS * config.sends_streams
    replay = (REPLAY_RAMS + REPLAY_PORT_RAMS * config.ports) * config.replays
    return MONITOR_RAMS + (MONITOR_PORT_RAMS + fields + port) * config.ports + replay + ring + cpu
