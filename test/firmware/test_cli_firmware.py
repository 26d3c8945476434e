# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The command ``firmware`` where it needs neither Zephyr nor a board: pack, flash, state."""

import io
import json
import struct
import sys
import zlib
from pathlib import Path
from typing import cast

import pytest

from liteprobe.cores.formats import FLASH_MAGIC, BootState, map_hash
from liteprobe.host.base import programs
from liteprobe.host.cli import main as cli
from liteprobe.host.cli.commands import firmware as command
from liteprobe.host.device.firmware import FIELDS, SIGNATURE, Console
from liteprobe.host.device.firmware_build import folder_of

RAM = 0x40000000
MAP = {
    "csr_registers": {"boot_entry": {"addr": 0xF0000000, "size": 1, "type": "rw"}},
    "memories": {"main_ram": {"base": RAM, "size": 0x8000, "type": "cached"}},
}


def write_image(folder: Path, octets: int) -> Path:
    path = folder / "liteprobe.bin"
    path.write_bytes(FIELDS.pack(SIGNATURE, 1, map_hash(MAP), RAM, RAM + 0x4000, b"1.2.3") + bytes(range(octets)))
    return path


def test_pack_writes_what_the_rom_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = write_image(tmp_path, 7)
    assert cli.main(["firmware", "pack", str(image), "--out", str(tmp_path / "out")]) == 0
    flash = (tmp_path / "out" / "liteprobe.flash").read_bytes()
    magic, length, start, entry, gateware, check = struct.unpack_from("<6I", flash)
    padded = image.read_bytes() + b"\0"
    assert (magic, length, start, entry, gateware) == (FLASH_MAGIC, len(padded), RAM, RAM, map_hash(MAP))
    assert flash[:4] == b"LPFW" and flash[24:] == padded
    assert check == zlib.crc32(flash[4:20] + padded)
    assert f"{len(flash)} bytes for the flash, version 1.2.3" in capsys.readouterr().out


def test_pack_takes_the_image_that_was_built_for_a_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    map_file = tmp_path / "csr.json"
    map_file.write_text(json.dumps(MAP))
    assert cli.main(["firmware", "pack", "--map", str(map_file)]) == 2
    assert f"can't read {folder_of(map_file) / 'liteprobe.bin'}" in capsys.readouterr().err


def test_flash_hands_the_packed_file_to_the_gatewares_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(arguments: list[str]) -> programs.Ended:
        asked.append(arguments)
        return programs.Ended(3, "", "")

    monkeypatch.setattr(programs, "run", run)
    image = write_image(tmp_path, 8)
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
    """A shell that repeats what is typed to it, in capitals."""

    def __init__(self) -> None:
        self.typed: list[bytes] = []
        self.printed = b"~$ "

    def follow(self, seconds: float, until: bytes | None = None) -> bytes:
        printed, self.printed = self.printed, b""
        return printed

    def write(self, text: bytes) -> None:
        self.typed.append(text)
        self.printed += text + text.upper().replace(b"\n", b"\r\n") + b"~$ "


def test_the_console_types_the_lines_of_stdin_until_it_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    console = FakeConsole()
    monkeypatch.setattr(sys, "stdin", io.StringIO("clock\r\ntrain status\n"))
    command.type_stdin(cast(Console, console))
    assert console.typed == [b"clock\n", b"train status\n"]
    assert capsys.readouterr().out == "~$ clock\nCLOCK\n~$ train status\nTRAIN STATUS\n~$ "
