# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""How firmware starts: a program in ROM, and the registers by which a host tells it where to go."""

from dataclasses import dataclass

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import *

from liteprobe.cores.formats import FLASH_MAGIC, BootState
from liteprobe.soc.assemble import assemble
from liteprobe.cores.memory.flash import FlashOctets

SELECT       = 1 << 8 # Of `boot_flash`, written: the flash is selected, from now on.
BUSY         = 1 << 8 # Read: the octet is not there yet.
READ_COMMAND = 0x03
POLYNOMIAL   = 0xedb88320 # CRC-32 of IEEE 802.3, bits reversed.

# Registers ----------------------------------------------------------------------------------------

class BootRegisters(LiteXModule):
    """Tells the program in ROM where firmware is, and the host what became of it.

    Parameters
    ----------
    ram_ready : Signal() or 1, whether the main RAM is started.
    flash : pads of the SPI flash, or None.

    Attributes
    ----------
    entry : CSRStorage(32), address to jump to after reset; 0 (reset): look into the flash, else sleep. Taken once: the
        program clears it.
    state : CSRStorage(8), a `BootState`. Written by the program.
    ram : CSRStatus(1), 1 once the main RAM is started.
    flash : CSR(9), exchanges an octet with the flash (`FlashOctets`): written ``send``, read ``received``.
    """
    def __init__(self, ram_ready=1, flash=None):
        self.entry = CSRStorage(32, description="Address that the processor jumps to when its reset ends; 0: flash, or sleep.")
        self.state = CSRStorage(8,  description="What became of firmware; written by the program in ROM.")
        self.ram   = CSRStatus(1,   description="1 once the main RAM is started.")
        self.comb += self.ram.status.eq(ram_ready)
        if flash is not None:
            self.flash  = CSR(9)
            self.flash.description = "Octet to the flash; bit 8 selects it. Read: the octet that came; bit 8: not yet."
            self.octets = octets = FlashOctets(flash)
            self.comb += [
                octets.send.eq(self.flash.r),
                octets.start.eq(self.flash.re),
                self.flash.w.eq(octets.received),
            ]

# Program ------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Firmware:
    """Where firmware is, and where it goes: addresses on the bus, octets."""
    flash_offset : int # In the flash.
    ram          : int
    ram_bytes    : int
    map_hash     : int # Address of the register.
    ram_ready    : int # Address of the register.
    flash        : int # Address of the register.

def boot_program(entry, state, firmware=None):
    """Return the words of the program in ROM: see docs/design/boot.md.

    Firmware that a host has loaded is jumped to once: its data has changed since, so it can't be started again as it is.

    Parameters
    ----------
    entry, state : int, addresses of these `BootRegisters`
    firmware : Firmware, or None where there is no flash, or no RAM, to start firmware from.
    """
    return assemble([
        ("li", "s0", entry),
        ("li", "s1", state),
        ("lw", "a0", 0, "s0"),
        ("beq", "a0", "zero", "look"),
        ("sw", "zero", 0, "s0"),
        ("addi", "a1", "zero", BootState.STARTED),
        "jump", # To a0, with the state a1.
        ("sw", "a1", 0, "s1"),
        ("fence.i",),
        ("jr", "a0"),
        "sleep",
        ("wfi",),
        ("j", "sleep"),
        "look",
        *(from_flash(firmware) if firmware else [("j", "sleep")]),
    ])

def from_flash(firmware):
    """Return the lines that start firmware from the flash: it is copied, then checked where it will run."""
    octets = [firmware.flash_offset >> shift & 0xff for shift in (16, 8, 0)]
    return [
        ("sw", "zero", 0, "s1"), # What became of it before the reset is past.
        ("li", "t0", firmware.ram_ready),
        "start",
        ("lw", "a0", 0, "t0"),
        ("beq", "a0", "zero", "start"),
        ("li", "s2", firmware.flash),
        ("addi", "s3", "zero", -1), # CRC-32.
        ("li", "s4", POLYNOMIAL),
        ("addi", "a0", "zero", 0), # The first clocks, with nobody selected.
        ("call", "exchange"),
        *[line for octet in [READ_COMMAND, *octets] for line in [
            ("addi", "a0", "zero", SELECT | octet),
            ("call", "exchange"),
        ]],
        *header(firmware),
        ("mv", "t0", "s6"),
        ("add", "s9", "s6", "s5"), # The end.
        "copy",
        ("call", "word"),
        ("sw", "a0", 0, "t0"),
        ("addi", "t0", "t0", 4),
        ("bne", "t0", "s9", "copy"),
        ("addi", "a0", "zero", 0),
        ("call", "exchange"),
        "check",
        ("lw", "a0", 0, "s6"),
        ("call", "crc"),
        ("addi", "s6", "s6", 4),
        ("bne", "s6", "s9", "check"),
        ("xori", "s3", "s3", -1),
        ("addi", "a1", "zero", BootState.DAMAGED),
        ("bne", "s3", "s8", "refuse"),
        ("mv", "a0", "s7"),
        ("addi", "a1", "zero", BootState.STARTED_FROM_FLASH),
        ("j", "jump"),
        "refuse", # With the state a1.
        ("sw", "a1", 0, "s1"),
        ("sw", "zero", 0, "s2"),
        ("j", "sleep"),
        *subroutines(),
    ]

def header(firmware):
    """Return the lines that read and check the header: length s5, start s6, entry s7, CRC s8."""
    return [
        ("call", "word"),
        ("addi", "a1", "zero", BootState.NO_IMAGE),
        ("li", "t0", FLASH_MAGIC),
        ("bne", "a0", "t0", "refuse"),
        *[line for register in ("s5", "s6", "s7", "s8") for line in [
            ("call", "word"),
            ("mv", register, "a0"),
            ("call", "crc"),
        ]],
        ("addi", "a1", "zero", BootState.OTHER_GATEWARE),
        ("li", "t0", firmware.map_hash),
        ("lw", "t0", 0, "t0"),
        ("bne", "s8", "t0", "refuse"),
        ("addi", "a1", "zero", BootState.DAMAGED),
        ("li", "t0", firmware.ram),
        ("bne", "s6", "t0", "refuse"),
        ("addi", "t1", "s5", -1), # A length of 0 is too long, too.
        ("li", "t2", firmware.ram_bytes),
        ("bgeu", "t1", "t2", "refuse"),
        ("sub", "t1", "s7", "t0"),
        ("bgeu", "t1", "s5", "refuse"),
        ("or", "t1", "s5", "s7"),
        ("andi", "t1", "t1", 3),
        ("bne", "t1", "zero", "refuse"),
        ("call", "word"),
        ("mv", "s8", "a0"),
    ]

def subroutines():
    """Return the lines of: ``exchange`` an octet a0; read a ``word`` a0; take a word a0 into the ``crc`` s3."""
    return [
        "exchange",
        ("sw", "a0", 0, "s2"),
        "wait",
        ("lw", "a0", 0, "s2"),
        ("andi", "t1", "a0", BUSY),
        ("bne", "t1", "zero", "wait"),
        ("jr", "ra"),
        "word",
        ("mv", "t2", "ra"),
        ("addi", "t3", "zero", 4),
        "octet",
        ("addi", "a0", "zero", SELECT),
        ("call", "exchange"),
        ("slli", "a0", "a0", 24), # The least significant octet comes first.
        ("srli", "t4", "t4", 8),
        ("or", "t4", "t4", "a0"),
        ("addi", "t3", "t3", -1),
        ("bne", "t3", "zero", "octet"),
        ("mv", "a0", "t4"),
        ("jr", "t2"),
        "crc",
        ("xor", "s3", "s3", "a0"),
        ("addi", "t3", "zero", 32),
        "bit",
        ("andi", "t1", "s3", 1),
        ("sub", "t1", "zero", "t1"),
        ("and", "t1", "t1", "s4"),
        ("srli", "s3", "s3", 1),
        ("xor", "s3", "s3", "t1"),
        ("addi", "t3", "t3", -1),
        ("bne", "t3", "zero", "bit"),
        ("jr", "ra"),
    ]
