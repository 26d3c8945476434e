# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Memories of the firmware: settings in the flash over the loss of power at any octet, and the test of SDRAM."""

import errno
import random
import subprocess
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.device.link.base import Link, Words
from liteprobe.host.device.ram import check_ram
from liteprobe.host.device.registers import Registers
from liteprobe.sim.drivers.clock.virtual_time import compile_program

SECTOR = 4096
RECORD = 128
ERASED = b"\xff" * 2 * SECTOR
NEVER = -1


def flash(
    contents: bytes, numbers: list[int], cut: int = NEVER, seed: int = 0, is_protected: bool = False
) -> tuple[bytes, list[int]]:
    """Return the flash after records were saved, and what was said: of each save, and the number loaded at the end."""
    program = compile_program("store", sanitize=True)
    done = subprocess.run(
        [program, str(cut), str(seed), str(int(is_protected))],
        input=contents + " ".join(map(str, numbers)).encode(), capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout, [int(line) for line in done.stderr.split()]


def loaded(contents: bytes) -> int:
    """Return the number of the record that a probe finds when it is switched on, or a negative errno."""
    return flash(contents, [])[1][-1]


def test_an_erased_flash_and_one_of_garbage_hold_nothing() -> None:
    assert loaded(ERASED) == loaded(random.Random(1).randbytes(2 * SECTOR)) == -errno.ENOENT


def test_the_last_of_many_records_is_found_again() -> None:
    contents, said = flash(ERASED, list(range(1, 40)))
    assert said == [0] * 39 + [39] and loaded(contents) == 39


def test_a_record_is_what_it_says_it_is() -> None:
    """Its sum is that of everybody: zlib's."""
    contents, _ = flash(ERASED, [7])
    assert int.from_bytes(contents[:4], "little") == zlib.crc32(contents[4:RECORD])
    assert contents[16 : 16 + 90] == bytes([7]) * 90


def test_what_is_kept_already_is_not_written_again() -> None:
    contents, _ = flash(ERASED, [1, 2])
    assert flash(contents, [2, 2, 2])[0] == contents


@pytest.mark.parametrize("before", [[], [5], [4, 5], [3, 4, 5]])
@pytest.mark.parametrize("seed", range(2))
def test_power_lost_at_any_octet_of_a_write_leaves_the_old_record_or_the_new(before: list[int], seed: int) -> None:
    contents, _ = flash(ERASED, before)
    found = []
    for cut in [0, 1, 2, 3, 4, 5, 12, 16, 17, 60, 105, 106, 126, 127, 128, 129]:
        lost, _ = flash(contents, [9], cut, seed)
        found.append(loaded(lost))
        # And the next write works.
        assert loaded(flash(lost, [11])[0]) == 11
    old = 5 if before else -errno.ENOENT
    assert set(found[:-1]) <= {old, 9} and found[0] == old and found[-1] == 9
    assert found[: found.index(9)] == [old] * found.index(9)


def test_a_bit_that_falls_over_in_the_latest_brings_back_the_one_before() -> None:
    contents, _ = flash(ERASED, [1, 2])
    for place in (0, 5, 9, 13, 40, 127):
        broken = bytearray(contents)
        broken[SECTOR + place] ^= 4
        assert loaded(bytes(broken)) == 1


def test_a_write_protected_flash_is_said() -> None:
    contents, said = flash(ERASED, [1], is_protected=True)
    assert said == [-errno.EIO, -errno.ENOENT] and contents == ERASED


# SDRAM --------------------------------------------------------------------------------------------


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
