# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The test of SDRAM finds lines that are stuck, joined or swapped, and names them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.device.link.base import Link, Words
from liteprobe.host.device.ram import check_ram
from liteprobe.host.device.registers import Registers

BASE, WORDS = 0x40000000, 8192
MAP: dict[str, Any] = {"csr_registers": {}, "memories": {"main_ram": {"base": BASE, "size": 4 * WORDS}}}
Fault = Callable[[int, int], tuple[int, int]]


class FaultyRam(Link):
    """A RAM whose lines do to place and word what ``fault`` says; rows in ``forgets`` lose a bit while time passes."""

    def __init__(self, fault: Fault = lambda place, word: (place, word), forgets: Sequence[int] = ()) -> None:
        self._words = np.zeros(WORDS, np.uint32)
        self._fault, self._forgets = fault, forgets

    def read(self, address: int, count: int = 1) -> Words:
        places = [self._fault((address - BASE) // 4 + n, 0)[0] for n in range(count)]
        return self._words[places].copy()

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        return np.concatenate([self.read(address) for address in addresses])

    def write(self, address: int, words: Sequence[int]) -> Words:
        for number, word in enumerate(words):
            place, kept = self._fault((address - BASE) // 4 + number, word)
            self._words[place] = kept
        return self.read(address, len(words))

    def wait(self, seconds: float) -> None:
        for place in self._forgets:
            self._words[place] &= 0xFFFFFFFE

    def close(self) -> None:
        pass


def result_of(ram: FaultyRam, words: int | None = None) -> Any:
    return check_ram(Registers(ram, MAP), "main_ram", ram.wait, words)


def test_a_sound_ram_passes() -> None:
    result = result_of(FaultyRam())
    assert (result.words, result.bad, result.first) == (WORDS, 0, None)
    assert result.text == "32768 octets keep what is written"


@pytest.mark.parametrize("place", [0, 1023, 1024, WORDS - 1])
def test_a_single_bad_word_is_found_wherever_it_is(place: int) -> None:
    result = result_of(FaultyRam(forgets=[place]))
    assert (result.bad, result.first, result.swapped) == (1, place, 0)


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("line", [0, 13, 31])
def test_a_data_line_that_is_stuck_is_named(line: int, level: int) -> None:
    mask = 1 << line
    result = result_of(FaultyRam(lambda place, word: (place, word | mask if level else word & ~mask)))
    assert (result.bad, result.data_lines & mask) == (WORDS, mask)
    assert f"{line}" in result.text


@pytest.mark.parametrize("line", [0, 5, 12])
def test_an_address_line_that_is_stuck_is_named(line: int) -> None:
    result = result_of(FaultyRam(lambda place, word: (place & ~(1 << line), word)))
    assert (result.bad, result.data_lines, result.address_lines) == (WORDS // 2, 0, 1 << line)
    assert f"address bits {line}" in result.text


def test_rows_that_are_not_refreshed_are_found() -> None:
    result = result_of(FaultyRam(forgets=range(256, 512)))
    assert (result.bad, result.first, result.data_lines) == (256, 256, 1)


def test_no_more_words_than_there_are() -> None:
    assert result_of(FaultyRam(), 16).words == 16
    for words in (0, WORDS + 1):
        with pytest.raises(UsageError, match=f"give 1 to {WORDS}"):
            result_of(FaultyRam(), words)
