# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The softcore with what Zephyr needs of a SoC: memories, timer with uptime, UART, interrupts."""

from __future__ import annotations

from typing import Any

from liteprobe.soc.board_limits import BoardLimits
from liteprobe.soc.config import ProbeConfig

# What the CPU runs where no firmware can be started: it sleeps, and after any interrupt sleeps again.
IDLE_PROGRAM = [
    0x10500073,  # 0x0: wfi
    0xFFDFF06F,  # 0x4: j 0x0
]
ROM_IS_WRITTEN_LATER = [0]  # soc/boot.py has the program; it holds addresses, which are known only at the end.


def processor_parameters(config: ProbeConfig, board: BoardLimits) -> dict[str, Any]:
    """Return the arguments of SoCCore that build the processor in, or leave it out.

    The UART is a crossover: the host reads and writes the console through registers, over any link, so it
    takes no pins and is the same on every board.
    """
    if not config.with_cpu:
        return {"cpu_type": None, "integrated_sram_size": 0, "with_uart": False, "with_timer": False}
    return {
        "cpu_type": "vexriscv",
        "cpu_variant": config.cpu_variant,
        "integrated_rom_size": config.rom_bytes,
        "integrated_rom_init": ROM_IS_WRITTEN_LATER if config.with_discipline else IDLE_PROGRAM,
        "integrated_sram_size": config.ram_bytes,
        "integrated_main_ram_size": config.main_ram_block_bytes(board),  # SDRAM: main_ram.py.
        "with_uart": True,
        "uart_name": "crossover",
        "with_timer": True,
        "timer_uptime": True,
    }
