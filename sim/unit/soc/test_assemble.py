# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The assembler of the program in ROM, against the manual's encodings and, where there is one, the GNU assembler."""

import random
import shutil
import struct
import subprocess

import pytest

from liteprobe.soc.boot import BETWEEN, BRANCHES, IMMEDIATE, REGISTERS, SHIFTS, Firmware, assemble, boot_program

GNU = "riscv64-unknown-elf-"
ROM_WORDS = 256
PLACES = Firmware(0x123456, 0x40000000, ram_bytes=1 << 22, map_hash=0xF0001800, ram_ready=0xF0000808, flash=0xF000080C)


def test_words_are_those_of_the_manual():
    lines = ["a", ("lui", "t0", 0xF0003), ("lw", "t1", -4, "t0"), ("sw", "zero", 2047, "t0"), ("bne", "t1", "zero", "a")]
    assert assemble([*lines, ("fence.i",), ("wfi",), ("j", "a"), ("jr", "t1")]) == [
        0xF00032B7, 0xFFC2A303, 0x7E02AFA3, 0xFE031AE3, 0x0000100F, 0x10500073, 0xFE9FF06F, 0x00030067,
    ]  # fmt: skip


@pytest.mark.parametrize("value", [0, 1, 0x7FF, 0x800, 0xFFF, 0x1000, 0xEDB88320, 0xFFFFF800, 0xFFFFFFFF, 0x80000000])
def test_li_makes_the_number(value):
    lui, addi = assemble([("li", "t0", value)])
    low = addi >> 20
    assert ((lui & 0xFFFFF000) + (low - 4096 if low & 0x800 else low)) & 0xFFFFFFFF == value
    assert (lui & 0xFFF, addi & 0xFFFFF) == (0x2B7, 0x28293)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (("addi", "t0", "t0", 2048), "2048 doesn't fit"),
        (("lw", "t0", -2049, "t0"), "-2049 doesn't fit"),
        (("j", "nowhere"), "label nowhere is nowhere"),
        (("mul", "t0", "t0", "t0"), "is not an instruction"),
        (("slli", "t0", "t0", 32), "is not an instruction"),
    ],
)
def test_what_cannot_be_encoded_is_refused(line, text):
    with pytest.raises(ValueError, match=text):
        assemble([line])
    with pytest.raises(ValueError, match="twice"):
        assemble(["x", "x"])


def test_branch_that_is_too_far_is_refused():
    with pytest.raises(ValueError, match="4096 doesn't fit"):
        assemble([("beq", "t0", "t1", "far"), *[("wfi",)] * 1023, "far"])


def some_program(rand):
    """Return lines of every instruction, and the same for the GNU assembler."""
    lines, text = ["start"], ["start:"]

    def add(line, written):
        lines.append(line)
        text.append(written)

    for _ in range(20):
        one, two, three = (rand.choice(list(REGISTERS)) for _ in range(3))
        number, shift, upper = rand.randrange(-2048, 2048), rand.randrange(32), rand.randrange(1 << 20)
        for name in IMMEDIATE:
            add((name, one, two, number), f"{name} {one}, {two}, {number}")
        for name in SHIFTS:
            add((name, one, two, shift), f"{name} {one}, {two}, {shift}")
        for name in BETWEEN:
            add((name, one, two, three), f"{name} {one}, {two}, {three}")
        for name in BRANCHES:
            label = rand.choice(["start", "end"])
            add((name, one, two, label), f"{name} {one}, {two}, {label}")
        for name in ("lw", "sw"):
            add((name, one, number, two), f"{name} {one}, {number}({two})")
        add(("lui", one, upper), f"lui {one}, {upper}")
        add(("jal", one, "end"), f"jal {one}, end")
        add(("jalr", one, two), f"jalr {one}, {two}, 0")
    return [*lines, "end", ("fence.i",), ("wfi",)], [*text, "end:", "fence.i", "wfi"]


def test_gnu_assembler_makes_the_same(tmp_path):
    if not shutil.which(GNU + "as"):
        pytest.skip(f"{GNU}as is missing: apt-get install gcc-riscv64-unknown-elf")
    seed = random.randrange(2**32)
    print("seed", seed)
    lines, text = some_program(random.Random(seed))
    (tmp_path / "x.s").write_text("\n".join([".option norvc", ".option norelax", *text, ""]))
    subprocess.run([GNU + "as", "-march=rv32i_zifencei", "-o", "x.o", "x.s"], cwd=tmp_path, check=True)
    subprocess.run([GNU + "ld", "-melf32lriscv", "-Ttext=0", "-e0", "--no-relax", "-o", "x.elf", "x.o"], cwd=tmp_path, check=True)
    subprocess.run([GNU + "objcopy", "-O", "binary", "-j", ".text", "x.elf", "x.bin"], cwd=tmp_path, check=True)
    octets = (tmp_path / "x.bin").read_bytes()
    assert list(struct.unpack(f"<{len(octets) // 4}I", octets)) == assemble(lines)


def test_program_fits_the_rom_and_is_short_without_a_flash():
    assert len(boot_program(0xF0000800, 0xF0000804, PLACES)) <= ROM_WORDS
    assert len(boot_program(0xF0000800, 0xF0000804)) == 14
