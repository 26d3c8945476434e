# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The program in ROM on the simulated SoC with SDRAM: it starts what is in the flash, and nothing that isn't right."""

import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import FLASH_HEADER_WORDS, BootState, flash_image, map_hash
from liteprobe.host import Probe
from liteprobe.host.device.firmware import Image, boot_state, load
from liteprobe.host.device.flash import PAGE, ProbeFlash
from liteprobe.host.device.registers import load_map
from liteprobe.sim.system import FLASH_OFFSET
from liteprobe.soc.boot import Line, assemble

RAM, RAM_BYTES = 0x40000000, 4 * 1024 * 1024
MARK = 0x600D600D
HEADER_OCTETS = 4 * FLASH_HEADER_WORDS
LENGTH = 1  # Its word in the header.
OTHER = 0  # Of `timer0_load` after reset; nothing here uses the timer.


def program(probe_map: Path, *lines: Line | str, padding: int = 0) -> bytes:
    """Return a program that does some lines and then leaves its mark, after so many words that are not instructions."""
    mark = load_map(probe_map)["csr_registers"]["timer0_load"]["addr"]
    words = assemble([*lines, ("li", "t0", mark), ("li", "t1", MARK), ("sw", "t1", 0, "t0"), "end", ("j", "end")])
    return struct.pack(f"<{padding + len(words)}I", *[0] * padding, *words)


@contextmanager
def powered_up(build: Path, flash: bytes | None, folder: Path, options: str = "") -> Iterator[Probe]:
    """Give a probe with this in its flash, once its ROM has made up its mind; ``options``: more of the URL."""
    if flash is not None:
        (folder / "x.flash").write_bytes(flash)
        options += f"&flash={folder / 'x.flash'}"
    with Probe(f"sim://loopback?build={build}{options}") as probe:
        settle(probe)
        yield probe


def settle(probe: Probe) -> None:
    """Wait for the ROM: a small image takes it 1 ms, one whose length is wrong by 64 KiB 0.2 s."""
    for _ in range(400):
        if boot_state(probe.registers) != BootState.NOTHING:
            return
        probe.wait(1e-4 if probe.registers.link.now_ns() < 10_000_000 else 1e-3)
    raise AssertionError("the ROM looks at its flash for more than 0.3 s")


def found(build: Path, flash: bytes | None, folder: Path) -> tuple[BootState, int]:
    """Return what became of it, and the mark of a program that runs."""
    with powered_up(build, flash, folder) as probe:
        probe.wait(1e-4)
        return boot_state(probe.registers), probe.registers.read("timer0_load")


def test_firmware_in_flash_starts_with_no_host(sdram: Path, tmp_path: Path) -> None:
    map_file = sdram / "csr.json"
    flash = flash_image(program(map_file, padding=300), RAM, RAM + 4 * 300, map_hash(load_map(map_file)))
    with powered_up(sdram, flash, tmp_path) as probe:
        probe.wait(1e-4)
        registers = probe.registers
        assert boot_state(registers) == BootState.STARTED_FROM_FLASH
        assert registers.read("timer0_load") == MARK
        copied = registers.read_memory("main_ram", 0, len(flash) // 4 - FLASH_HEADER_WORDS)
        assert np.asarray(copied, dtype="<u4").tobytes() == flash[HEADER_OCTETS:]
        # And again, whenever the processor's reset ends.
        registers.write("timer0_load", 0)
        registers.write("ctrl_reset", 2)
        registers.write("boot_state", 0)
        registers.write("ctrl_reset", 0)
        settle(probe)
        probe.wait(1e-4)
        assert (boot_state(registers), registers.read("timer0_load")) == (BootState.STARTED_FROM_FLASH, MARK)


def test_empty_flash_lets_the_processor_sleep(sdram: Path, tmp_path: Path) -> None:
    assert found(sdram, None, tmp_path) == (BootState.NO_IMAGE, OTHER)


def test_firmware_of_another_gateware_is_refused_and_not_copied(sdram: Path, tmp_path: Path) -> None:
    map_file = sdram / "csr.json"
    flash = flash_image(program(map_file), RAM, RAM, map_hash(load_map(map_file)) ^ 1)
    with powered_up(sdram, flash, tmp_path) as probe:
        probe.wait(1e-4)
        assert boot_state(probe.registers) == BootState.OTHER_GATEWARE
        assert probe.registers.read("timer0_load") == OTHER
        assert not np.any(probe.registers.read_memory("main_ram", 0, 16))


@pytest.mark.parametrize(
    "network", [pytest.param("", marks=pytest.mark.full), "&network=loss=3%,duplicate=5%,reorder=5%,seed=SEED"]
)
def test_a_host_writes_the_flash_through_the_probe_and_the_processor_starts_what_it_wrote(
    network: str, sdram: Path, tmp_path: Path
) -> None:
    """Firmware of another gateware lies there; the flash's model counts as busy for some looks after each change.

    By a bad network, too: an octet that is lost, doubled or late must not become another command or address.
    """
    seed = random.randrange(2**32)
    print("seed", seed)
    map_file = sdram / "csr.json"
    wrong = flash_image(program(map_file), RAM, RAM, map_hash(load_map(map_file)) ^ 1)
    right = flash_image(program(map_file, padding=90), RAM, RAM + 4 * 90, map_hash(load_map(map_file)))
    assert PAGE < len(right) < 2 * PAGE
    with powered_up(sdram, wrong, tmp_path, network.replace("SEED", str(seed))) as probe:
        assert boot_state(probe.registers) == BootState.OTHER_GATEWARE
        with ProbeFlash(probe.registers) as flash:
            assert flash.read(FLASH_OFFSET, len(wrong)) == wrong
            flash.erase(FLASH_OFFSET + 100)
            assert flash.read(FLASH_OFFSET, len(wrong)) == b"\xff" * len(wrong)
            flash.program(FLASH_OFFSET, right[:PAGE])
            flash.program(FLASH_OFFSET + PAGE, right[PAGE:])
            assert flash.read(FLASH_OFFSET, len(right)) == right
            probe.registers.write("boot_state", 0)
        settle(probe)
        probe.wait(1e-4)
        assert (boot_state(probe.registers), probe.registers.read("timer0_load")) == (
            BootState.STARTED_FROM_FLASH,
            MARK,
        )


def test_a_wrong_bit_anywhere_is_found(sdram: Path, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    rand = random.Random(seed)
    map_file = sdram / "csr.json"
    right = flash_image(program(map_file, padding=20), RAM, RAM + 80, map_hash(load_map(map_file)))
    expected = {0: BootState.NO_IMAGE, 4: BootState.OTHER_GATEWARE}
    words = (*range(FLASH_HEADER_WORDS), FLASH_HEADER_WORDS, rand.randrange(FLASH_HEADER_WORDS, len(right) // 4))
    flips = [(word, rand.randrange(32)) for word in words if word != LENGTH]
    # Of the length: one that is copied in no time, one that takes 12 ms (higher ones take seconds), one beyond the RAM.
    flips += [(LENGTH, rand.randrange(12)), (LENGTH, 12), (LENGTH, rand.randrange(22, 32))]
    for word, bit in flips:
        wrong = bytearray(right)
        wrong[4 * word + bit // 8] ^= 1 << bit % 8
        assert found(sdram, bytes(wrong), tmp_path) == (expected.get(word, BootState.DAMAGED), OTHER), (word, bit)


@pytest.mark.parametrize(
    ("length", "start", "entry"),
    [
        (0, RAM, RAM),
        (RAM_BYTES + 4, RAM, RAM),
        (2**32 - 4, RAM, RAM),
        (46, RAM, RAM),
        (48, RAM + 4, RAM + 4),
        (48, 0x10000000, 0x10000000),
        (48, RAM, RAM + 48),
        (48, RAM, RAM - 4),
        (48, RAM, RAM + 2),
    ],
)
def test_what_does_not_fit_the_ram_is_refused_though_its_sum_is_right(
    length: int, start: int, entry: int, sdram: Path, tmp_path: Path
) -> None:
    map_file = sdram / "csr.json"
    octets = program(map_file, padding=5)[:48]
    flash = bytearray(flash_image(octets, start, entry, map_hash(load_map(map_file))))
    flash[4:8] = length.to_bytes(4, "little")
    assert found(sdram, bytes(flash), tmp_path) == (BootState.DAMAGED, OTHER)


def narrowed(octets: bytes) -> bytes:
    """Return a program whose first two stores are of an octet and of a half word, which the assembler doesn't know."""
    words = list(struct.unpack(f"<{len(octets) // 4}I", octets))
    stores = [number for number, word in enumerate(words) if word & 0x7F == 0x23]
    for number, kind in zip(stores, (0b000, 0b001), strict=False):
        words[number] = words[number] & ~(0b111 << 12) | kind << 12
    return struct.pack(f"<{len(words)}I", *words)


def test_processor_stores_octets_and_halves_and_nothing_beside_them(sdram: Path, tmp_path: Path) -> None:
    """The chip's data masks are tied, so the rest of each word must go back as it was."""
    map_file = sdram / "csr.json"
    offset, halves, count = 0x10000, 400, 40
    lines: list[Line | str] = [("li", "s0", RAM + offset), ("li", "s2", RAM + offset + halves)]
    lines += [("addi", "s1", "zero", count), "next", ("sw", "s1", 0, "s0"), ("sw", "s1", 0, "s2")]
    lines += [("addi", "s0", "s0", 7), ("addi", "s2", "s2", 6), ("addi", "s1", "s1", -1), ("bne", "s1", "zero", "next")]
    octets = narrowed(program(map_file, *lines))
    image = Image(tmp_path, octets, map_hash(load_map(map_file)), RAM, RAM + len(octets), "")
    seed = random.randrange(2**32)
    print("seed", seed)
    before = np.random.default_rng(seed).integers(0, 2**32, 200, dtype=np.uint32)
    expected = bytearray(before.astype("<u4").tobytes())
    for number in range(count):
        expected[7 * number] = count - number
        expected[halves + 6 * number : halves + 6 * number + 2] = bytes([count - number, 0])
    with powered_up(sdram, None, tmp_path) as probe:
        registers = probe.registers
        registers.write_memory("main_ram", offset // 4, [int(word) for word in before])
        load(registers, image)
        probe.wait(2e-4)
        assert (boot_state(registers), registers.read("timer0_load")) == (BootState.STARTED, MARK)
        after = np.asarray(registers.read_memory("main_ram", offset // 4, 200), dtype="<u4").tobytes()
    assert after == bytes(expected)
