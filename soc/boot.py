# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""How firmware starts: a program in ROM of ten instructions, and the registers by which a host tells it where to go."""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import *

# A host holds the processor in reset (`ctrl_reset` bit 1), writes an image into its RAM, writes `entry`, lets go.
# Numbers of RISC-V's registers (Unprivileged ISA 20191213, chapter 25).
T0, T1, T2 = 5, 6, 7
WFI    = 0x10500073
FENCEI = 0x0000100f

class BootRegisters(LiteXModule):
    """Tells the program in ROM where firmware is, and the host what became of it.

    Attributes
    ----------
    entry : CSRStorage(32), address to jump to after reset; 0 (reset): sleep. Taken once: the program clears it.
    state : CSRStorage(8), 0: nothing was started since power-up; 1: firmware was jumped to. Written by the program.
    """
    def __init__(self):
        self.entry = CSRStorage(32, description="Address that the processor jumps to when its reset ends; 0: sleep.")
        self.state = CSRStorage(8,  description="1 once firmware was started; written by the program in ROM.")

def boot_program(registers):
    """Return the words of the program for `BootRegisters` at address ``registers``: see docs/design/idle-rom.md.

    Firmware is jumped to once a load: its data has changed since, so it can't be started again as it is.
    """
    high  = (registers + 0x800) >> 12 # Offsets are signed.
    entry = registers & 0xfff
    state = (registers + 4) & 0xfff
    return [
        high  << 12 | T0 << 7 | 0x37,                                # 0x00: lui   t0, registers
        entry << 20 | T0 << 15 | 0b010 << 12 | T1 << 7 | 0x03,       # 0x04: lw    t1, entry(t0)
        0b000 << 12 | T1 << 15 | (24 >> 1) << 8 & 0xf00 | 24 >> 5 << 25 | 0x63, # 0x08: beqz t1, 0x20
        store(entry, 0),                                             # 0x0c: sw    zero, entry(t0)
        1 << 20 | T2 << 7 | 0x13,                                    # 0x10: li    t2, 1
        store(state, T2),                                            # 0x14: sw    t2, state(t0)
        FENCEI,                                                      # 0x18: fence.i
        T1 << 15 | 0x67,                                             # 0x1c: jr    t1
        WFI,                                                         # 0x20: wfi
        0xffdff06f,                                                  # 0x24: j     0x20
    ]

def store(offset, source):
    """Return ``sw source, offset(t0)``."""
    return (offset >> 5) << 25 | source << 20 | T0 << 15 | 0b010 << 12 | (offset & 0x1f) << 7 | 0x23
