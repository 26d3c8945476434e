# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Builds the processor in, and starts its firmware: registers for a host, the flash, the program in ROM, its assembler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import *

from liteprobe.cores.bus import WriteOnlyCSR
from liteprobe.cores.formats import FLASH_MAGIC, BootState
from liteprobe.soc.config import BoardLimits, ProbeConfig

class FlashOctets(LiteXModule):
    """Exchanges an octet with a SPI flash (mode 0, most significant bit first).

    Parameters
    ----------
    pads : ``clk``, ``cs_n``, ``mosi``, ``miso``; ``clk`` is a fourth of the clock of the domain.

    Attributes
    ----------
    send : Signal(9), in
        The octet to send; bit 8 selects the flash, from now on.
    start : Signal(), in
        Sends, and gives up an exchange that runs.
    received : Signal(9), out
        The octet that came; bit 8 is 1 while the exchange runs, 32 cycles.
    """
    def __init__(self, pads):
        self.send     = Signal(9)
        self.start    = Signal()
        self.received = Signal(9)

        # # #

        # A bit takes 4 cycles: at 50 MHz half of one, 40 ns, covers the way out through the configuration's clock pin and
        # back. The clock is a bit of a register, so that it has no glitches.
        bits   = Signal(8)
        cycle  = Signal(6, reset=32)
        is_on  = Signal()
        is_end = cycle[-1]
        self.comb += [
            pads.cs_n.eq(~is_on),
            pads.clk.eq(cycle[1]),
            pads.mosi.eq(bits[-1]),
            self.received.eq(Cat(bits, ~is_end)),
        ]
        self.sync += [
            If(~is_end,
                cycle.eq(cycle + 1),
                If(cycle[:2] == 3, bits.eq(Cat(pads.miso, bits))),
            ),
            If(self.start,
                cycle.eq(0),
                Cat(bits, is_on).eq(self.send),
            ),
        ]

REGISTERS = {"zero": 0, "ra": 1, **{f"t{n}": n + 5 for n in range(3)}, "s0": 8, "s1": 9}
REGISTERS |= {f"a{n}": n + 10 for n in range(8)}
REGISTERS |= {f"s{n}": n + 16 for n in range(2, 12)}
REGISTERS |= {f"t{n}": n + 25 for n in range(3, 7)}
IMMEDIATE = {"addi": 0b000, "xori": 0b100, "ori": 0b110, "andi": 0b111}
SHIFTS = {"slli": 0b001, "srli": 0b101}
BETWEEN = {"add": (0, 0b000), "sub": (0x20, 0b000), "xor": (0, 0b100), "or": (0, 0b110), "and": (0, 0b111)}
BRANCHES = {"beq": 0b000, "bne": 0b001, "bltu": 0b110, "bgeu": 0b111}
FIXED = {"fence.i": 0x0000100F, "wfi": 0x10500073}

Line = tuple[str | int, ...]


def assemble(lines: Sequence[Line | str]) -> list[int]:
    """Return the words of a program that begins at any address.

    Parameters
    ----------
    lines : instructions as tuples, such as ``("addi", "t0", "t0", -4)``, ``("lw", "t0", 8, "s0")`` (``8(s0)``) and
        ``("bne", "t0", "zero", "label")``; labels as strings. ``li`` is always two instructions.

    Raises
    ------
    ValueError
        When an instruction or a label is unknown, or a number doesn't fit.
    """
    labels: dict[str, int] = {}
    flat: list[Line] = []
    for line in lines:
        if isinstance(line, str):
            if line in labels:
                raise ValueError(f"label {line} is there twice")
            labels[line] = 4 * len(flat)
        else:
            flat += _plain(line)
    return [_encode(line, 4 * number, labels) for number, line in enumerate(flat)]


def _plain(line: Line) -> list[Line]:
    """Return what a pseudo-instruction stands for, or the instruction."""
    match line:
        case ("li", str(register), int(value)):
            high = (value + 0x800) >> 12 & 0xFFFFF  # The low part is signed.
            return [("lui", register, high), ("addi", register, register, _signed(value & 0xFFF, 12))]
        case ("j", str(label)):
            return [("jal", "zero", label)]
        case ("call", str(label)):
            return [("jal", "ra", label)]
        case ("jr", str(register)):
            return [("jalr", "zero", register)]
        case ("mv", str(register), str(source)):
            return [("addi", register, source, 0)]
    return [line]


def _encode(line: Line, at: int, labels: dict[str, int]) -> int:
    match line:
        case (str(name),) if name in FIXED:
            return FIXED[name]
        case ("lui", str(rd), int(value)):
            return value << 12 | REGISTERS[rd] << 7 | 0x37
        case (str(name), str(rd), str(rs), int(value)) if name in IMMEDIATE:
            return _field(value, 12, line) << 20 | REGISTERS[rs] << 15 | IMMEDIATE[name] << 12 | REGISTERS[rd] << 7 | 0x13
        case (str(name), str(rd), str(rs), int(value)) if name in SHIFTS and 0 <= value < 32:
            return value << 20 | REGISTERS[rs] << 15 | SHIFTS[name] << 12 | REGISTERS[rd] << 7 | 0x13
        case (str(name), str(rd), str(one), str(two)) if name in BETWEEN:
            seven, three = BETWEEN[name]
            return seven << 25 | REGISTERS[two] << 20 | REGISTERS[one] << 15 | three << 12 | REGISTERS[rd] << 7 | 0x33
        case ("lw", str(rd), int(offset), str(base)):
            return _field(offset, 12, line) << 20 | REGISTERS[base] << 15 | 0b010 << 12 | REGISTERS[rd] << 7 | 0x03
        case ("sw", str(source), int(offset), str(base)):
            field = _field(offset, 12, line)
            registers = REGISTERS[source] << 20 | REGISTERS[base] << 15
            return field >> 5 << 25 | registers | 0b010 << 12 | (field & 0x1F) << 7 | 0x23
        case ("jalr", str(rd), str(base)):
            return REGISTERS[base] << 15 | REGISTERS[rd] << 7 | 0x67
        case ("jal", str(rd), str(label)):
            field = _field(_distance(label, at, labels), 21, line)
            bits = (field >> 20) << 31 | (field >> 1 & 0x3FF) << 21 | (field >> 11 & 1) << 20 | (field >> 12 & 0xFF) << 12
            return bits | REGISTERS[rd] << 7 | 0x6F
        case (str(name), str(one), str(two), str(label)) if name in BRANCHES:
            field = _field(_distance(label, at, labels), 13, line)
            bits = (field >> 12) << 31 | (field >> 5 & 0x3F) << 25 | (field >> 1 & 0xF) << 8 | (field >> 11 & 1) << 7
            return bits | REGISTERS[two] << 20 | REGISTERS[one] << 15 | BRANCHES[name] << 12 | 0x63
    raise ValueError(f"{line} is not an instruction that is known here")


def _distance(label: str, at: int, labels: dict[str, int]) -> int:
    if label not in labels:
        raise ValueError(f"label {label} is nowhere")
    return labels[label] - at


def _field(value: int, bits: int, line: Line) -> int:
    """Return a signed number as the bits of a field."""
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{value} doesn't fit into {line}")
    return value & (1 << bits) - 1


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value

# What the CPU runs where no firmware can be started: it sleeps, and after any interrupt sleeps again.
IDLE_PROGRAM = [
    0x10500073,  # 0x0: wfi
    0xFFDFF06F,  # 0x4: j 0x0
]
ROM_IS_WRITTEN_LATER = [0]  # soc/boot.py has the program; it holds addresses, which are known only at the end.


def processor_parameters(config: ProbeConfig, board: BoardLimits) -> dict[str, Any]:
    """Return the arguments of SoCCore that build the processor in, or leave it out.

    Console and timer are ours (`ProbeSoC.add_uart`, `ProbeSoC.add_timer`): the host reads and writes the console through
    registers, over any link, so it takes no pins and is the same on every board.
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
        "with_timer": True,
    }

SELECT       = 1 << 8 # Of `boot_flash`, written: the flash is selected, from now on.
BUSY         = 1 << 8 # Read: the octet is not there yet.
READ_COMMAND = 0x03
POLYNOMIAL   = 0xedb88320 # CRC-32 of IEEE 802.3, bits reversed.

# Registers ----------------------------------------------------------------------------------------

class BootRegisters(LiteXModule):
    """Tells the program in ROM where firmware is, and the host what became of it.

    What one of them writes and the other reads lies in the memory of `ReadBack` alone.

    Parameters
    ----------
    ram_ready : Signal() or 1, whether the main RAM is started.
    flash : pads of the SPI flash, or None.

    Attributes
    ----------
    entry : WriteOnlyCSR(32), address to jump to after reset; 0 (power-up): look into the flash, else sleep. Taken once: the
        program clears it.
    state : WriteOnlyCSR(8), a `BootState`. Written by the program.
    ram : CSRStatus(1), 1 once the main RAM is started.
    flash : CSR(9), exchanges an octet with the flash (`FlashOctets`): written ``send``, read ``received``.
    """
    def __init__(self, ram_ready=1, flash=None):
        self.entry = WriteOnlyCSR(32, "entry", "Address that the processor jumps to when its reset ends; 0: flash, or sleep.")
        self.state = WriteOnlyCSR(8, "state", "What became of firmware; written by the program in ROM.")
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
    """Places firmware in the flash and on the bus: addresses, octets."""
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
