# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the SDRAM of a probe from the host: each word, each data line, each address line, and its refresh.

Stands alone: it needs registers alone, and knows nothing of a new board's other tests.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.base.errors import UsageError
from liteprobe.host.device.link.base import Words
from liteprobe.host.device.registers import Memory, Registers

BURST_WORDS = 1024
KEEP_S = 0.2  # Three times the 64 ms in which each row must be refreshed.
FACTOR = 0x9E3779B1  # Odd, so that each word has a value of its own, from which its place can be found again.
FACTOR_INVERSE = pow(FACTOR, -1, 2**32)
WORD_MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class RamResult:
    """Holds what a test of RAM found."""

    name: str  # Of the memory.
    words: int  # Tested, from the first one on.
    bad: int  # Words that were wrong at least once.
    first: int | None  # The first of them.
    data_lines: int  # Bits that were wrong where a word did not hold what belongs to another one.
    swapped: int  # Words that held what belongs to another word.
    address_lines: int  # Bits of a word's number in which those two differ.

    @property
    def text(self) -> str:
        if not self.bad:
            return f"{4 * self.words} octets keep what is written"
        found = [f"{self.bad} of {self.words} words are wrong, word {self.first} first"]
        if self.data_lines:
            found.append(f"data lines {_bits(self.data_lines)}")
        if self.swapped:
            found.append(f"{self.swapped} hold what belongs to another word: address bits {_bits(self.address_lines)}")
        return "; ".join(found)


def check_ram(
    registers: Registers,
    name: str,
    wait: Callable[[float], None],
    words: int | None = None,
    keep_s: float = KEEP_S,
) -> RamResult:
    """Write a memory full twice, each word with a value of its own and with its complement, and read it after a while.

    What the memory held is lost, so nothing may use it.

    Raises UsageError when the probe has no such memory, or not so many words.

    ``wait`` lets so many seconds of the probe's time pass; ``words``: how many, from the first one on, None: all;
    ``keep_s``: how long each round must be kept (probe time).
    """
    memory = registers.memory(name)
    count = memory.words if words is None else words
    if not 1 <= count <= memory.words:
        raise UsageError(f"{count} words of {name} can't be tested: give 1 to {memory.words}")
    numbers = np.arange(count, dtype=np.uint64)
    values = (numbers * FACTOR & WORD_MASK).astype(np.uint32)
    wrong = np.zeros(count, bool)
    data_lines = address_lines = swapped = 0
    for flip in (0, WORD_MASK):
        wanted = values ^ np.uint32(flip)
        _fill(registers, memory, wanted)
        wait(keep_s)
        found = _read(registers, memory, count)
        bad = np.flatnonzero(found != wanted)
        wrong[bad] = True
        owner = (found[bad].astype(np.uint64) ^ flip) * FACTOR_INVERSE & WORD_MASK
        is_swapped = owner < count
        swapped += int(is_swapped.sum())
        address_lines |= _union(owner[is_swapped] ^ numbers[bad[is_swapped]])
        data_lines |= _union(found[bad[~is_swapped]] ^ wanted[bad[~is_swapped]])
    first_bad = int(wrong.argmax()) if wrong.any() else None
    return RamResult(name, count, int(wrong.sum()), first_bad, data_lines, swapped, address_lines)


def _fill(registers: Registers, memory: Memory, words: Words) -> None:
    """Write words from the first one on, whatever is read back."""
    registers.own()
    for first in range(0, len(words), BURST_WORDS):
        registers.link.write(memory.address + 4 * first, words[first : first + BURST_WORDS].tolist())


def _read(registers: Registers, memory: Memory, count: int) -> Words:
    """Return so many words from the first one on."""
    found = np.empty(count, np.uint32)
    for first in range(0, count, BURST_WORDS):
        part = found[first : first + BURST_WORDS]
        part[:] = registers.read_memory(memory.name, first, len(part))
    return found


def _union(masks: NDArray[np.integer]) -> int:
    return int(np.bitwise_or.reduce(masks)) if len(masks) else 0


def _bits(mask: int) -> str:
    return ", ".join(str(bit) for bit in range(mask.bit_length()) if mask >> bit & 1)
