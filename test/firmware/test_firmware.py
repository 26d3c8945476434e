# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Images, their loading and packing, against a model of the loader's registers; the firmware's plain C, against the host."""

import ctypes
import io
import json
import math
import re
import shutil
import struct
import subprocess
import sys
import time
import zlib
from calendar import timegm
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import cast

import pytest

from liteprobe.cores.formats import FLASH_MAGIC, BootState, map_hash
from liteprobe.host.base import programs
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.cli import main as cli
from liteprobe.host.cli.commands import firmware as command
from liteprobe.host.device import firmware_build
from liteprobe.host.device.firmware import FIELDS, SIGNATURE, Console, Image, load, read_image
from liteprobe.host.device.firmware_build import DAY_S, FIRMWARE, NOT_BEFORE, Tools, build, dated, find_tools, folder_of
from liteprobe.host.device.link.base import Link
from liteprobe.host.device.registers import Registers
from liteprobe.host.traffic.headers import Headers
from liteprobe.sim.drivers.system.fake_link import MemoryLink
from liteprobe.soc.build.devicetree import write_formats

ROOT = Path(__file__).resolve().parents[2]
RAM, RAM_BYTES = 0x40000000, 0x8000
NAMES = ("ctrl_reset", "boot_entry", "boot_state", "probe_map_hash", "boot_ram")
MAP = {
    "csr_registers": {name: {"addr": 0xF0000000 + 4 * n, "size": 1, "type": "rw"} for n, name in enumerate(NAMES)},
    "memories": {"main_ram": {"base": RAM, "size": RAM_BYTES, "type": "cached"}},
}
CPU_RESET, ENTRY, STATE, _, RAM_READY = (0xF0000000 + 4 * n for n in range(5))


class Processor(MemoryLink):
    """A bus with RAM, and what the program in ROM does when the processor's reset ends."""

    def __init__(self, starts: bool = True, ready_after: float = 0) -> None:
        super().__init__()
        self.words[RAM_READY] = int(ready_after == 0)
        self.starts = starts
        self.ready_after = ready_after  # Waits.
        self.ran: dict[int, int] | None = None

    def put(self, address: int, word: int) -> None:
        held = self.words.get(CPU_RESET, 0)
        assert held == 2 or address == CPU_RESET, f"{address:#x} while the CPU runs"
        super().put(address, word)
        if address == CPU_RESET and word == 0 and held == 2 and self.words.get(ENTRY) and self.starts:
            self.ran = {a: w for a, w in self.words.items() if RAM <= a < RAM + RAM_BYTES}
            self.words |= {ENTRY: 0, STATE: 1}

    def wait(self, seconds: float) -> None:
        """The RAM becomes ready when its time has come."""
        self.ready_after -= 1
        self.words[RAM_READY] |= int(self.ready_after == 0)


def write_image(folder: Path, map_hash: int, size: int = 1001, **changes: int) -> Path:
    fields = {"format": 1, "map_hash": map_hash, "start": RAM, "end": RAM + 0x4000} | changes
    body = Random(1).randbytes(size)
    path = folder / "image.bin"
    path.write_bytes(body[:100] + FIELDS.pack(SIGNATURE, *fields.values(), b"1.2.3") + body[100:])
    return path


def registers(link: Link) -> Registers:
    return Registers(link, MAP, "csr.json")


def test_image_is_in_the_ram_when_the_processor_starts_and_not_before(tmp_path: Path) -> None:
    link = Processor()
    probe = registers(link)
    image = read_image(write_image(tmp_path, probe.map_hash))
    load(probe, image)
    octets = b"".join(struct.pack("<I", word) for _, word in sorted((link.ran or {}).items()))
    assert octets[: len(image.octets)] == image.octets and not any(octets[len(image.octets) :])
    assert (image.version, link.words[CPU_RESET]) == ("1.2.3", 0)
    # Held first, let go last.
    assert link.writes[0] == (CPU_RESET, 2) and link.writes[-1] == (CPU_RESET, 0) and link.writes[-2] == (ENTRY, RAM)


def test_processor_that_does_not_start_is_held_and_told(tmp_path: Path) -> None:
    link = Processor(starts=False)
    probe = registers(link)
    with pytest.raises(ProbeError, match="the processor doesn't start: reset the probe"):
        load(probe, read_image(write_image(tmp_path, probe.map_hash)))
    assert link.words[CPU_RESET] == 2


def test_loader_waits_for_the_ram_before_it_touches_anything(tmp_path: Path) -> None:
    link = Processor(ready_after=4)
    probe = registers(link)
    load(probe, read_image(write_image(tmp_path, probe.map_hash)))
    assert link.ran and link.ready_after <= 0
    link = Processor(ready_after=math.inf)
    with pytest.raises(ProbeError, match="the probe's RAM isn't ready 5 ms after .* switch the probe off and on"):
        load(registers(link), read_image(tmp_path / "image.bin"))
    assert link.writes == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"map_hash": 1}, r"was built for another gateware \(hash 00000001.*liteprobe firmware build --map csr.json"),
        ({"start": RAM + 0x100}, "build it for this probe's map"),
        ({"end": RAM + RAM_BYTES + 4}, "the probe has 32768 from 0x40000000"),
    ],
)
def test_image_that_cannot_run_here_is_refused_untouched(changes: dict[str, int], text: str, tmp_path: Path) -> None:
    link = Processor()
    probe = registers(link)
    path = write_image(tmp_path, changes.pop("map_hash", probe.map_hash), **changes)
    with pytest.raises(UsageError, match=text):
        load(probe, read_image(path))
    assert link.writes == []


def test_probe_without_processor_or_ram_is_told_what_to_build(tmp_path: Path) -> None:
    image = Image(tmp_path, b"", 0, RAM, RAM, "")
    bare = Registers(Processor(), {"csr_registers": {}, "memories": {}})
    with pytest.raises(UsageError, match="can't start firmware: build its gateware without --no-discipline"):
        load(bare, image)
    without = Registers(Processor(), {**MAP, "memories": {}})
    with pytest.raises(UsageError, match="no RAM for firmware"):
        load(without, Image(tmp_path, b"", without.map_hash, RAM, RAM, ""))


def test_what_a_build_misses_is_told_with_the_way_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("ZEPHYR_BASE", str(tmp_path))
    monkeypatch.setenv("ZEPHYR_PYTHON", str(programs / "dtc"))
    for variable in ("ZEPHYR_TOOLCHAIN_VARIANT", "ZEPHYR_SDK_INSTALL_DIR"):
        monkeypatch.delenv(variable, raising=False)

    def says(text: str, *made: Path) -> None:
        with pytest.raises(ProbeError, match=text):
            find_tools()
        for path in made:
            path.write_text("#!/bin/sh\nexit 1\n")
            path.chmod(0o755)

    says(
        "Zephyr is not in .* in a clone of LiteProbe 'pip install west && west init -l firmware && west update' gets them",
        tmp_path / "VERSION",
    )
    for program in ("cmake", "ninja", "dtc"):
        says(f"{program} is missing: apt-get install cmake ninja-build", programs / program)
    says("riscv64-unknown-elf-gcc is missing: apt-get install")
    monkeypatch.setenv("ZEPHYR_SDK_INSTALL_DIR", str(tmp_path))
    says("no Python here has what Zephyr's scripts import: pip install -r")


def test_gateware_without_ram_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    path = tmp_path / "csr.json"
    path.write_text(json.dumps({**MAP, "memories": {}}))
    tools = Tools(tmp_path, tmp_path, (), {})
    with pytest.raises(UsageError, match="no RAM for firmware: build it with a processor and --main-ram"):
        build(path, tools, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"", "is not a firmware of LiteProbe"),
        (SIGNATURE, "is not a firmware of LiteProbe"),
        (FIELDS.pack(SIGNATURE, 2, 0, RAM, RAM + 99, b""), "is an image of format 2"),
        (FIELDS.pack(SIGNATURE, 1, 0, RAM, RAM + 9, b""), "is damaged"),
        (2 * FIELDS.pack(SIGNATURE, 1, 0, RAM, RAM + 999, b""), "is not a firmware of LiteProbe"),
    ],
)
def test_file_that_is_no_image_is_refused(octets: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(octets)
    with pytest.raises(UsageError, match=text):
        read_image(tmp_path / "x.bin")


# Plain C of the application -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if not shutil.which("gcc"):
        pytest.skip("gcc is missing")
    folder = tmp_path_factory.mktemp("frame")
    write_formats(folder)
    target = folder / "frame.so"
    source = ROOT / "firmware/app/src/frame.c"
    command = ["gcc", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", f"-I{folder / 'include'}"]
    command += [str(source), "-o", str(target)]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(target))
    library.frame_rate.restype = ctypes.c_uint64
    return library


@pytest.mark.parametrize("length", [60, 61, 1514, 9018])
def test_headers_of_the_firmware_are_those_of_the_host(frame: ctypes.CDLL, length: int) -> None:
    header = ctypes.create_string_buffer(48)
    frame.frame_header(header, ctypes.c_uint16(length), ctypes.c_uint16(0xFFFE))
    assert header.raw == Headers().octets(length, 0xFFFE)


def test_interval_in_ticks_is_right_to_a_part_in_2_31(frame: ctypes.CDLL) -> None:
    seed = 20261121
    random = Random(seed)
    for _ in range(1000):
        interval, increment = random.randrange(2**32), (8 << 40) + random.randrange(-(2**33), 2**33)
        ticks, fraction = ctypes.c_uint32(), ctypes.c_uint32()
        arguments = (ctypes.c_uint32(interval), ctypes.c_uint64(increment), ctypes.byref(ticks), ctypes.byref(fraction))
        frame.frame_interval(*arguments)
        exact = Fraction(interval << 40, increment)
        found = ticks.value + Fraction(fraction.value, 2**32)
        assert abs(found - exact) <= exact / 2**31 + Fraction(2, 2**32), (seed, interval, increment)


@pytest.mark.parametrize(
    ("frames", "length", "span"), [(2, 60, 672), (1000, 1514, 12304 * 999), (10**6, 9018, 72336 * 999_999)]
)
def test_train_back_to_back_has_the_rate_of_the_line(frame: ctypes.CDLL, frames: int, length: int, span: int) -> None:
    arguments = (ctypes.c_uint32(frames), ctypes.c_uint16(length), ctypes.c_uint64(span))
    assert frame.frame_rate(*arguments) == (frames - 1) * 8 * (length + 24) * 10**9 // span == 10**9


def test_rate_of_no_span_is_none(frame: ctypes.CDLL) -> None:
    for frames, span in [(0, 100), (1, 100), (5, 0)]:
        assert frame.frame_rate(ctypes.c_uint32(frames), ctypes.c_uint16(60), ctypes.c_uint64(span)) == 0


def test_libraries_compile_for_the_processor(tmp_path: Path) -> None:
    """Every plain C source, for rv32im: no floating point, no 128-bit integer, no header that isn't there."""
    gcc = shutil.which("riscv64-unknown-elf-gcc")
    if not gcc:
        pytest.skip("riscv64-unknown-elf-gcc is missing: apt-get install gcc-riscv64-unknown-elf")
    sources = sorted(ROOT.glob("firmware/lib/*/*.c"))
    assert sources
    flags = ["-march=rv32im", "-mabi=ilp32", "-O2", "-ffreestanding", "-Wall", "-Wextra", "-Werror", "-c"]
    # The compiler has no C library: what the libraries take of one, the firmware has from Zephyr's.
    (tmp_path / "string.h").write_text(
        "#include <stddef.h>\nvoid *memset(void *, int, size_t);\nvoid *memcpy(void *, const void *, size_t);\n"
        "void *memmove(void *, const void *, size_t);\nint memcmp(const void *, const void *, size_t);\n"
        "size_t strlen(const char *);\nint strncmp(const char *, const char *, size_t);\nint strcmp(const char *, const char *);\n"
        "char *strchr(const char *, int);\nsize_t strspn(const char *, const char *);\n"
    )
    (tmp_path / "errno.h").write_text(
        "#define EINVAL 22\n#define EIO 5\n#define ENOENT 2\n#define ENOSPC 28\n#define ENODATA 61\n"
    )
    for source in sources:
        target = tmp_path / f"{source.stem}.o"
        include = [f"-I{tmp_path}", f"-I{ROOT / 'firmware/lib'}"]
        command = [gcc, *flags, *include, str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), source
        undefined = subprocess.run(
            [gcc.removesuffix("gcc") + "nm", "-u", str(target)], capture_output=True, text=True, check=True
        )
        floats = [
            name for name in undefined.stdout.split() if name.startswith("__") and name[-3:] in ("sf3", "df3", "dfi")
        ]
        assert floats == [], source


# The command --------------------------------------------------------------------------------------


MAP_OF_BOOT = {
    "csr_registers": {"boot_entry": {"addr": 0xF0000000, "size": 1, "type": "rw"}},
    "memories": {"main_ram": {"base": RAM, "size": 0x8000, "type": "cached"}},
}


def write_small_image(folder: Path, octets: int) -> Path:
    path = folder / "liteprobe.bin"
    path.write_bytes(
        FIELDS.pack(SIGNATURE, 1, map_hash(MAP_OF_BOOT), RAM, RAM + 0x4000, b"1.2.3") + bytes(range(octets))
    )
    return path


def test_pack_writes_what_the_rom_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = write_small_image(tmp_path, 7)
    assert cli.main(["firmware", "pack", str(image), "--out", str(tmp_path / "out")]) == 0
    flash = (tmp_path / "out" / "liteprobe.flash").read_bytes()
    magic, length, start, entry, gateware, check = struct.unpack_from("<6I", flash)
    padded = image.read_bytes() + b"\0"
    assert (magic, length, start, entry, gateware) == (FLASH_MAGIC, len(padded), RAM, RAM, map_hash(MAP_OF_BOOT))
    assert flash[:4] == b"LPFW" and flash[24:] == padded
    assert check == zlib.crc32(flash[4:20] + padded)
    assert f"{len(flash)} bytes for the flash, version 1.2.3" in capsys.readouterr().out


def test_pack_takes_the_image_that_was_built_for_a_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    map_file = tmp_path / "csr.json"
    map_file.write_text(json.dumps(MAP_OF_BOOT))
    assert cli.main(["firmware", "pack", "--map", str(map_file)]) == 2
    assert f"can't read {folder_of(map_file) / 'liteprobe.bin'}" in capsys.readouterr().err


def test_flash_hands_the_packed_file_to_the_gatewares_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(arguments: list[str]) -> programs.Ended:
        asked.append(arguments)
        return programs.Ended(3, "", "")

    monkeypatch.setattr(programs, "run", run)
    image = write_small_image(tmp_path, 8)
    assert cli.main(["firmware", "flash", str(image), "--board", "colorlight_i5"]) == 3
    file = str(tmp_path / "liteprobe.flash")
    assert asked == [[*programs.module("liteprobe.soc.build.load"), "colorlight_i5", file]]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["flash", "x.bin"], "which board is it"),
        (["load", "--board", "colorlight_i5"], "takes no --board"),
        (["state", "x.bin"], "firmware state takes no image"),
        (["build", "x.bin"], "takes no image"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["firmware", *arguments]) == 2
    assert text in capsys.readouterr().err


def test_every_state_of_the_boot_is_told() -> None:
    assert {BootState[name] for name in command.STATES} == set(BootState)


class FakeConsole:
    """A shell that repeats what is typed to it, in capitals, 20 ms later; ``seconds`` of the probe's time went by."""

    def __init__(self, waits: float = 0.005, printed: bytes = b"", answer_s: float = 0.02) -> None:
        self.typed: list[bytes] = []
        self.seconds = 0.0
        self.printed = printed
        self.answer_s = answer_s
        self.later = [(waits, b"~$ ")] if waits else []

    def follow(self, seconds: float, until: bytes | None = None) -> bytes:
        end = self.seconds + seconds
        while self.later and self.later[0][0] <= end and not (until and until in self.printed):
            at, octets = self.later.pop(0)
            self.seconds, self.printed = max(self.seconds, at), self.printed + octets
        printed, self.printed = self.printed, b""
        if not (until and until in printed):
            self.seconds = end
        return printed

    def write(self, text: bytes) -> None:
        self.typed.append(text)
        self.later.append((self.seconds, text))
        self.later.append((self.seconds + self.answer_s, text.upper().replace(b"\n", b"\r\n") + b"~$ "))


def test_the_console_types_the_lines_of_stdin_until_it_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    console = FakeConsole()
    monkeypatch.setattr(sys, "stdin", io.StringIO("clock\r\ntrain status\n"))
    command.talk(cast(Console, console), ["-"], 0)
    assert console.typed == [b"clock\n", b"train status\n"]
    assert capsys.readouterr().out == "~$ clock\nCLOCK\n~$ train status\nTRAIN STATUS\n~$ "


@pytest.mark.parametrize("count", [1, 10])
def test_lines_are_typed_after_a_boot_as_soon_as_the_one_before_is_answered(
    count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    console = FakeConsole()
    command.talk(cast(Console, console), [f"line {n}" for n in range(count)], 0)
    assert console.typed == [b"line %d\n" % n for n in range(count)]
    assert capsys.readouterr().out == "~$ " + "".join(f"line {n}\nLINE {n}\n~$ " for n in range(count))
    assert console.seconds == pytest.approx(0.005 + 0.02 * count)


@pytest.mark.parametrize("printed", [b"", b"log of yesterday\n~$ "])
def test_a_shell_at_its_prompt_for_long_is_not_waited_for(printed: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """It shows its prompt again when asked; one that still waits to be read is enough."""
    console = FakeConsole(0, printed)
    command.talk(cast(Console, console), ["clock", "regs list"], 0, runs_already=True)
    assert console.typed == [*([] if printed else [b"\n"]), b"clock\n", b"regs list\n"]
    assert capsys.readouterr().out.endswith("clock\nCLOCK\n~$ regs list\nREGS LIST\n~$ ")
    assert console.seconds < 0.07


def test_a_line_after_one_that_takes_long_waits_for_its_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    console = FakeConsole(answer_s=1.1)
    command.talk(cast(Console, console), ["a", "b"], 1.2)
    assert capsys.readouterr().out == "~$ a\nA\n~$ b\nB\n~$ "


# Dates --------------------------------------------------------------------------------------------


OPTION = "-DCONFIG_LITEPROBE_NOT_BEFORE="
NOON = timegm((2031, 5, 7, 12, 0, 0))
EVE = timegm((2031, 5, 6, 0, 0, 0))


def test_the_date_is_the_day_before_the_build_s() -> None:
    assert dated({"SOURCE_DATE_EPOCH": str(NOON)}) == (f"{OPTION}{EVE}",)
    assert dated({"SOURCE_DATE_EPOCH": str(EVE + 2 * DAY_S - 1)}) == (f"{OPTION}{EVE}",)
    assert dated({"SOURCE_DATE_EPOCH": str(EVE + 2 * DAY_S)}) == (f"{OPTION}{EVE + DAY_S}",)


def test_without_one_it_is_today_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOON + 0.5)
    assert dated({}) == dated({"SOURCE_DATE_EPOCH": ""}) == (f"{OPTION}{EVE}",)


@pytest.mark.parametrize("seconds", [0, NOT_BEFORE, NOT_BEFORE + 2 * DAY_S - 1])
def test_one_that_is_not_after_the_default_is_the_default(seconds: int) -> None:
    """Said all the same: CMake keeps what the build before was given."""
    assert dated({"SOURCE_DATE_EPOCH": str(seconds)}) == (f"{OPTION}{NOT_BEFORE}",)


@pytest.mark.parametrize("text", ["-1", "1.5", "today", " 7"])
def test_what_is_no_number_of_seconds_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"SOURCE_DATE_EPOCH is {text!r}: give seconds since 1970")):
        dated({"SOURCE_DATE_EPOCH": text})


def test_the_default_is_that_of_kconfig_and_of_the_library() -> None:
    kconfig = (FIRMWARE / "app" / "Kconfig").read_text()
    header = (FIRMWARE / "lib" / "second" / "second.h").read_text()
    found = re.search(r"config LITEPROBE_NOT_BEFORE\n.*\n\tdefault (\d+)\n", kconfig)
    assert found and int(found[1]) == NOT_BEFORE == timegm((2026, 1, 1, 0, 0, 0))
    assert f"#define LP_SECOND_NOT_BEFORE {NOT_BEFORE}\n" in header


def test_cmake_is_given_the_date_before_what_the_user_defines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of two wins; the tools are stood in for."""
    soc = {"csr_registers": {}, "memories": {"main_ram": {"base": 0, "size": 4096}}}
    (tmp_path / "csr.json").write_text(json.dumps(soc))
    seen: list[list[str]] = []

    def run(command: list[str], environment: object, log: Path) -> None:
        seen.append(command)
        image = tmp_path / "out" / "zephyr" / "zephyr" / "zephyr.bin"
        image.parent.mkdir(parents=True, exist_ok=True)
        image.write_bytes(FIELDS.pack(SIGNATURE, 1, map_hash(soc), 0, 4096, b"1.2.3") + bytes(64))

    monkeypatch.setattr(firmware_build, "_run", run)
    tools = Tools(Path("zephyr"), Path("python"), (), {"SOURCE_DATE_EPOCH": str(NOON)})
    build(tmp_path / "csr.json", tools, tmp_path / "out", (f"{OPTION}1",))
    (configure,) = [command for command in seen if command[0] == "cmake"]
    assert [word for word in configure if word.startswith(OPTION)] == [f"{OPTION}{EVE}", f"{OPTION}1"]
