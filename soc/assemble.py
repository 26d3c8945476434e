# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""An assembler of the few instructions that the program in ROM is made of, so that a build needs no RISC-V compiler.

Source: RISC-V Unprivileged ISA 20191213, chapters 2, 24 and 25.
"""

from __future__ import annotations

from collections.abc import Sequence

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
