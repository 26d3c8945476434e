# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Settings stay in the flash over the loss of power at any octet of a write; sanitizers watch."""

import errno
import random
import subprocess
import zlib

import pytest

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
