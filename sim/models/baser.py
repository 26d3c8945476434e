# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes and reads blocks of 66 bits bit by bit, by the tables of clause 49 alone: the truth beside the PCS of 10 Gb/s.

A word is eight octets with their control flags, as of a `Line`; a block is a header and 64 bits, all in their order on the line.
"""

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.models.xgmii import ERROR, IDLE, SEQUENCE, START, TERMINATE, Line

Bits = list[int]
DATA, CONTROL = [0, 1], [1, 0]  # Headers.
CODES = {IDLE: 0x00, ERROR: 0x1E}
#: Figure 49-7: type of a block, then what each of its octets is: C a control character of 7 bits, O an ordered set's of 4,
#: D an octet, - a bit that is zero. S and T are said by the type.
FORMATS = {
    ("CCCCCCCC", 0x1E): "C0 C1 C2 C3 C4 C5 C6 C7",
    ("CCCCODDD", 0x2D): "C0 C1 C2 C3 O4 D5 D6 D7",
    ("CCCCSDDD", 0x33): "C0 C1 C2 C3 - - - - D5 D6 D7",
    ("ODDDSDDD", 0x66): "D1 D2 D3 O0 - - - - D5 D6 D7",
    ("ODDDODDD", 0x55): "D1 D2 D3 O0 O4 D5 D6 D7",
    ("SDDDDDDD", 0x78): "D1 D2 D3 D4 D5 D6 D7",
    ("ODDDCCCC", 0x4B): "D1 D2 D3 O0 C4 C5 C6 C7",
    ("TCCCCCCC", 0x87): "- - - - - - - C1 C2 C3 C4 C5 C6 C7",
    ("DTCCCCCC", 0x99): "D0 - - - - - - C2 C3 C4 C5 C6 C7",
    ("DDTCCCCC", 0xAA): "D0 D1 - - - - - C3 C4 C5 C6 C7",
    ("DDDTCCCC", 0xB4): "D0 D1 D2 - - - - C4 C5 C6 C7",
    ("DDDDTCCC", 0xCC): "D0 D1 D2 D3 - - - C5 C6 C7",
    ("DDDDDTCC", 0xD2): "D0 D1 D2 D3 D4 - - C6 C7",
    ("DDDDDDTC", 0xE1): "D0 D1 D2 D3 D4 D5 - C7",
    ("DDDDDDDT", 0xFF): "D0 D1 D2 D3 D4 D5 D6",
}
BY_SHAPE = {shape: (number, parts.split()) for (shape, number), parts in FORMATS.items()}
BY_TYPE = {number: (shape, parts.split()) for (shape, number), parts in FORMATS.items()}
WIDTHS = {"C": 7, "O": 4, "D": 8, "-": 1}
#: Figures 49-16 and 49-17: what may come after what, by the first letter of control, start, data, terminate, error.
FOLLOWS = {"C": "CS", "S": "DT", "D": "DT", "T": "CS", "E": "CSDT"}
ERRORS = ([ERROR] * 8, [1] * 8)
LOCAL_FAULT = ([SEQUENCE, 0, 0, 1] * 2, [1, 0, 0, 0] * 2)


def bits_of(value: int, count: int) -> Bits:
    """Return bits, the lowest first."""
    return [value >> place & 1 for place in range(count)]


def value_of(bits: Bits) -> int:
    """Return the number of bits, the lowest first."""
    return sum(bit << place for place, bit in enumerate(bits))


def kind_of(shape: str | None) -> str:
    """Return what a block of a shape is to the state machines: C, S, D, T, E."""
    if shape is None:
        return "E"
    return next((one for one in "ST" if one in shape), "D" if shape == "DDDDDDDD" else "C")


def shape_of(octets: list[int], control: list[int]) -> str | None:
    """Return what stands in each lane, if a block can say it."""
    letters = {IDLE: "C", ERROR: "C", START: "S", TERMINATE: "T", SEQUENCE: "O"}
    shape = "".join(letters.get(octet, "?") if tells else "D" for octet, tells in zip(octets, control, strict=True))
    return shape if shape in BY_SHAPE or shape == "DDDDDDDD" else None


def encoded(line: Line) -> NDArray[np.uint8]:
    """Return the bits of a line, not scrambled, a row of 66 for each word."""
    words, before, rows = line.words(), "C", []
    for word in words:
        octets, control = word["octets"].tolist(), bits_of(int(word["control"]), 8)
        shape = shape_of(octets, control)
        before = kind if (kind := kind_of(shape)) in FOLLOWS[before] else "E"
        if before == "E" or shape is None:
            octets, shape = ERRORS[0], "CCCCCCCC"
        if shape == "DDDDDDDD":
            rows.append(DATA + [bit for octet in octets for bit in bits_of(octet, 8)])
            continue
        number, parts = BY_SHAPE[shape]
        block = CONTROL + bits_of(number, 8)
        for part in parts:
            lane = int(part[1:] or 0)
            block += bits_of(
                {"C": CODES.get(octets[lane], 0), "O": 0, "D": octets[lane], "-": 0}[part[0]], WIDTHS[part[0]]
            )
        rows.append(block)
    return np.array(rows, np.uint8)


def decoded(rows: NDArray[np.uint8]) -> Line:
    """Return the line of blocks that are not scrambled, from a time without a frame on; the last block has idle behind it."""
    found = [read(row.tolist()) for row in rows]
    kinds = [kind_of(shape) for shape, *_ in found] + ["C"]
    before, octets, control = "C", [], []
    for (_, data, tells), kind, after in zip(found, kinds, kinds[1:], strict=False):
        fits = kind in FOLLOWS[before] and (kind != "T" or after in "CS")
        before = kind if fits else "E"
        octets += data if fits else ERRORS[0]
        control += tells if fits else ERRORS[1]
    return Line(np.array(octets, np.uint8), np.array(control, bool))


def read(block: Bits) -> tuple[str | None, list[int], list[int]]:
    """Return the shape of a block, None where it is none, its octets, and which of them are control characters."""
    header, bits = block[:2], block[2:]
    if header == DATA:
        return "DDDDDDDD", [value_of(bits[8 * n : 8 * n + 8]) for n in range(8)], [0] * 8
    number, bits = value_of(bits[:8]), bits[8:]
    if header != CONTROL or number not in BY_TYPE:
        return None, *ERRORS
    shape, parts = BY_TYPE[number]
    characters = {code: character for character, code in CODES.items()}
    octets = [{"S": START, "T": TERMINATE, "O": SEQUENCE}.get(letter, 0) for letter in shape]
    for part in parts:
        value, bits = value_of(bits[: WIDTHS[part[0]]]), bits[WIDTHS[part[0]] :]
        if part[0] == "D":
            octets[int(part[1:])] = value
        elif part[0] == "C" and value in characters:
            octets[int(part[1:])] = characters[value]
        elif part[0] == "C" or (part[0] == "O" and value):
            return None, *ERRORS
    return shape, octets, [int(letter != "D") for letter in shape]


def scrambled(rows: NDArray[np.uint8], seed: int = 2**58 - 1) -> NDArray[np.uint8]:
    """Return rows with scrambled payloads, by x^58 + x^39 + 1; ``seed``: the 58 bits before, the oldest in bit 0."""
    line = np.array([*bits_of(seed, 58), *rows[:, 2:].reshape(-1)], np.uint8)
    for place in range(58, len(line)):
        line[place] ^= line[place - 39] ^ line[place - 58]
    return np.hstack([rows[:, :2], line[58:].reshape(-1, 64)])


def plain(rows: NDArray[np.uint8], seed: int = 2**58 - 1) -> NDArray[np.uint8]:
    """Return rows whose payloads are brought back."""
    line = np.array([*bits_of(seed, 58), *rows[:, 2:].reshape(-1)], np.uint8)
    return np.hstack([rows[:, :2], (line[58:] ^ line[19:-39] ^ line[:-58]).reshape(-1, 64)])
