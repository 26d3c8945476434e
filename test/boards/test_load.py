# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Programs that reach a board by a JTAG cable: loading, and writing its flash, with what is checked and kept before."""

import hashlib
from pathlib import Path

import pytest

from liteprobe.boards import BOARDS, board
from liteprobe.cores.formats import FLASH_MAGIC
from liteprobe.host.base import programs
from liteprobe.host.cli import main as cli
from liteprobe.sim.drivers.tools.fake_loaders import (
    DONE,
    FOUND_5G_45,
    FOUND_25,
    FOUND_45,
    FOUND_UM_45,
    I5_BYTES,
    LOCKED,
    LOCKED_BY_ECPDAP,
    NO_CABLE,
    NO_CMSISDAP,
    NO_PROBE,
    NO_SUCH_CABLE,
    OF_25,
    OF_45,
    SCAN_25,
    VENDOR_I5,
    bitstream,
    fails,
    file_of,
)
from liteprobe.soc.build import bitstream as soc_build
from liteprobe.soc.build import load as loading
from liteprobe.soc.build import load as soc_load
from liteprobe.soc.build.load import FlashOptions, detect, flash_bitstream, flash_firmware, load, restore
from liteprobe.soc.build.toolchain import BuildError

# The board on the cable ---------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [NO_CABLE, (0, "empty"), (0, "No device found"), (1, "Error: no device found")])
def test_no_board_is_exit_code_3_and_says_what_to_look_at(machine, answer):
    machine.has("openFPGALoader", detect=answer)
    code, said = fails(detect, board("colorlight_5a_75b"), FlashOptions())
    assert (
        code == 3 and "no board answers on JTAG cable ft232:" in said and "connect the cable, power the board" in said
    )
    assert "J50" not in said


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("versa_ecp5", NO_CABLE, "no board answers on JTAG cable ft2232"),
        ("versa_ecp5", NO_CABLE, "J50 must bypass the ispClock"),
        ("versa_ecp5", (0, FOUND_5G_45[1] + "\nindex 1:\n\tidcode 0x00191043"), "2 devices are in the chain of"),
        ("versa_ecp5", (0, FOUND_5G_45[1] + "\nindex 1:\n\tidcode 0x00191043"), "J50 must bypass the ispClock"),
        ("versa_ecp5", (1, "unable to open ftdi device: -4 (usb_open() failed)"), "you may not use JTAG cable ft2232"),
        ("versa_ecp5", FOUND_25, "has an LFE5U-25, not an LFE5UM5G-45: connect the one that you named"),
        ("versa_ecp5", FOUND_UM_45, "has an LFE5UM-45, not an LFE5UM5G-45"),
        ("colorlight_5a_75b", FOUND_45, "has an LFE5U-45, not an LFE5U-25"),
        ("colorlight_5a_75b", (0, FOUND_25[1].replace("0x4", "0x2")), "has an LFE5U-12, not an LFE5U-25"),
    ],
)
def test_a_cable_that_wont_load_is_found_before_minutes_of_building(machine, monkeypatch, capsys, name, answer, said):
    machine.has("openFPGALoader", detect=answer)
    monkeypatch.setattr(soc_build, "build", lambda *arguments: pytest.fail("it was built first"))
    for option in ("--load", "--flash"):
        assert soc_build.main([name, option]) == 3
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("colorlight_5a_75b", FOUND_25),
        ("colorlight_i9", FOUND_45),
        ("colorlight_i9", FOUND_UM_45),
        ("versa_ecp5", FOUND_5G_45),
    ],
)
def test_the_board_is_known_by_its_idcode_also_where_an_old_loader_drops_the_top_of_it(machine, name, answer):
    machine.has("openFPGALoader", detect=answer)
    assert detect(board(name), FlashOptions()).name == "openFPGALoader"


def test_loader_that_lacks_a_library_says_what_to_install(machine):
    machine.has("openFPGALoader", detect=(127, "error while loading shared libraries: libftdi1.so.2: cannot open"))
    code, said = fails(detect, board("colorlight_5a_75b"), FlashOptions())
    assert code == 1 and "apt-get install libftdi1-2" in said


# Which program ------------------------------------------------------------------------------------


def test_a_cable_that_nothing_here_can_drive_names_both_programs_that_could(machine):
    machine.has("openFPGALoader", detect=NO_CMSISDAP)
    code, said = fails(detect, board("colorlight_i5"), FlashOptions())
    assert code == 1
    assert "nothing here can drive JTAG cable cmsisdap: openFPGALoader was built without it" in said
    assert "ecpdap is not installed" in said
    assert "apt-get install openfpgaloader" in said and "cargo install ecpdap" in said and "power" not in said


def test_ecpdap_is_not_offered_for_a_cable_that_it_cannot_drive(machine, monkeypatch):
    machine.has("ecpdap", scan=SCAN_25)

    def none(name):
        raise BuildError(f"{name} is missing")

    monkeypatch.setattr(loading, "find_tool", none)
    code, said = fails(detect, board("colorlight_5a_75b"), FlashOptions())
    assert code == 1 and "openFPGALoader is not installed" in said and "ecpdap" not in said
    assert detect(board("colorlight_i5"), FlashOptions()).name == "ecpdap"


def test_ecpdap_loads_and_writes_where_openfpgaloader_cannot(machine):
    machine.has("openFPGALoader", detect=NO_CMSISDAP)
    machine.has("ecpdap", VENDOR_I5, scan=SCAN_25, program=DONE, read=DONE, unprotect=DONE, write=DONE)
    file = file_of(OF_25)
    load(board("colorlight_i5"), file, FlashOptions())
    flash_bitstream(board("colorlight_i5"), file, FlashOptions(unprotect=True))
    asked = [" ".join(words[1:3]) for words in machine.asked if words[0] == "ecpdap"]
    assert asked == ["scan", "program x.bit", "scan", "flash read", "flash unprotect", "flash write"]
    assert machine.asked[-1] == ["ecpdap", "flash", "write", "--offset", "0", "x.bit"]
    assert machine.asked[-3][3:5] == ["--length", str(I5_BYTES)]
    assert [path.read_bytes() for path in machine.backups] == [VENDOR_I5]


def test_no_daplink_is_no_board_for_ecpdap_too(machine):
    machine.has("openFPGALoader", detect=NO_CMSISDAP)
    machine.has("ecpdap", scan=NO_PROBE)
    code, said = fails(detect, board("colorlight_i5"), FlashOptions())
    assert code == 3 and "no board answers on JTAG cable cmsisdap:\n  Error: no CMSIS-DAP probes found" in said


def test_openfpgaloader_that_knows_the_cable_goes_before_ecpdap(machine):
    machine.has("openFPGALoader", detect=FOUND_25)
    machine.has("ecpdap", scan=SCAN_25)
    assert detect(board("colorlight_i5"), FlashOptions()).name == "openFPGALoader"
    assert machine.asked == [["openFPGALoader", "--cable", "cmsisdap", "--detect"]]


def test_another_cable_than_the_boards_own(machine, monkeypatch, capsys):
    machine.has("openFPGALoader", detect=FOUND_25, x_bit=DONE)
    load(board("colorlight_i5"), file_of(OF_25), FlashOptions(cable="tigard"))
    assert machine.asked == [
        ["openFPGALoader", "--cable", "tigard", "--detect"],
        ["openFPGALoader", "--cable", "tigard", "x.bit"],
    ]
    machine.has("openFPGALoader", detect=NO_SUCH_CABLE)
    assert soc_build.main(["colorlight_i5", "--load", "--cable", "nonsense"]) == 2
    assert "there is no JTAG cable nonsense: 'openFPGALoader --list-cables'" in capsys.readouterr().err


# Loading and writing ------------------------------------------------------------------------------


def test_load_that_fails_on_a_board_has_exit_code_1(machine):
    machine.has("openFPGALoader", detect=FOUND_25, x_bit=(1, "CRC error"))
    code, said = fails(load, board("colorlight_5a_75b"), file_of(OF_25), FlashOptions())
    assert code == 1 and said == "loading x.bit failed:\n  CRC error"


def test_bitstream_and_firmware_are_written_at_their_places_in_the_flash(machine, capsys):
    machine.has("openFPGALoader", detect=FOUND_5G_45, write_flash=DONE)
    flash_bitstream(board("versa_ecp5"), file_of(bitstream(0x81112043)), FlashOptions(with_backup=False))
    file_of(FLASH_MAGIC.to_bytes(4, "little") + bytes(20), "liteprobe.flash")
    assert soc_load.main(["versa_ecp5", "liteprobe.flash", "--no-backup"]) == 0
    write = ["openFPGALoader", "--cable", "ft2232", "--write-flash", "--verify", "--offset"]
    assert machine.asked[1] == [*write, "0x0", "x.bit"]
    assert machine.asked[3] == [*write, "0x200000", "--file-type", "raw", "liteprobe.flash"]
    assert "in the flash of versa_ecp5, from 0x200000 on" in capsys.readouterr().out


def test_a_locked_flash_says_to_run_again_with_unprotect(machine):
    machine.has("openFPGALoader", detect=FOUND_25, unprotect_flash=DONE, write_flash=LOCKED)
    target, file = board("colorlight_i5"), file_of(OF_25)
    code, said = fails(flash_bitstream, target, file, FlashOptions(with_backup=False))
    assert code == 1 and said.startswith("the flash of colorlight_i5 is write-protected:\n")
    assert said.endswith("\nrun this again with --unprotect")
    flash_bitstream(target, file, FlashOptions(with_backup=False, unprotect=True))
    assert machine.asked[-1][3:6] == ["--write-flash", "--verify", "--unprotect-flash"]
    assert "--unprotect-flash" not in machine.asked[1]


def test_a_flash_that_is_locked_by_what_ecpdap_says(machine):
    machine.has("openFPGALoader", detect=NO_CMSISDAP)
    machine.has("ecpdap", scan=SCAN_25, write=LOCKED_BY_ECPDAP)
    code, said = fails(flash_bitstream, board("colorlight_i5"), file_of(OF_25), FlashOptions(with_backup=False))
    assert code == 1 and said.endswith("run this again with --unprotect")


def test_any_other_failure_to_write_is_shown_as_it_is(machine):
    machine.has("openFPGALoader", detect=FOUND_25, write_flash=(1, "Erasing: 1 %\rErasing: 50 %\nflash overflow"))
    code, said = fails(flash_bitstream, board("colorlight_i5"), file_of(OF_25), FlashOptions(with_backup=False))
    assert (code, said) == (1, "writing x.bit failed:\n  Erasing: 50 %\n  flash overflow")


LARGE = bitstream(0x41111043, (1 << 20) + 1)
FIRMWARE = FLASH_MAGIC.to_bytes(4, "little").ljust((1 << 20) + 1, b"\x11")


@pytest.mark.parametrize(
    ("call", "octets", "said"),
    [
        (load, OF_45, "x.bit is for an LFE5U-45, and colorlight_i5 has an LFE5U-25: nothing was written"),
        (flash_bitstream, OF_45, "x.bit is for an LFE5U-45, and colorlight_i5 has an LFE5U-25: nothing was written"),
        (flash_bitstream, bytes(100), "x.bit is not a bitstream of an ECP5"),
        (flash_bitstream, LARGE, "x.bit has 1048577 bytes, and firmware begins at 1048576: nothing was written"),
        (flash_bitstream, None, "x.bit is not there: build it again"),
        (flash_firmware, OF_25, "x.bit is not firmware for the flash: make it by 'liteprobe firmware pack'"),
        (flash_firmware, FIRMWARE, "has 1048577 bytes, and the flash of colorlight_i5 has 1048576 for firmware"),
        (flash_firmware, None, "x.bit is not there: make it by 'liteprobe firmware pack'"),
        (restore, OF_25, "has 200 bytes, and the flash of colorlight_i5 has 2097152: it is not a copy of it"),
        (restore, OF_45.ljust(I5_BYTES), "is for an LFE5U-45, and colorlight_i5 has an LFE5U-25: nothing was written"),
        (restore, None, "x.bit is not there: give the file that a build with --flash named"),
    ],
)
def test_a_file_of_the_wrong_kind_size_or_device_is_refused_before_anything_is_asked(machine, call, octets, said):
    machine.has("openFPGALoader", VENDOR_I5, detect=FOUND_25, write_flash=DONE, dump_flash=DONE, x_bit=DONE)
    file = Path("x.bit") if octets is None else file_of(octets)
    code, message = fails(call, board("colorlight_i5"), file, FlashOptions())
    assert code == 1 and said in message
    assert machine.asked == []


# Backup -------------------------------------------------------------------------------------------


def test_the_flash_is_kept_once_before_it_is_written(machine, capsys):
    machine.has("openFPGALoader", VENDOR_I5, detect=FOUND_25, dump_flash=DONE, write_flash=DONE)
    target, file = board("colorlight_i5"), file_of(OF_25)
    flash_bitstream(target, file, FlashOptions())
    assert [asked[3] for asked in machine.asked] == ["--detect", "--dump-flash", "--write-flash"]
    assert machine.asked[1][4:8] == ["--offset", "0", "--file-size", str(I5_BYTES)]
    (backup,) = machine.backups
    assert backup.name == f"colorlight_i5-{hashlib.sha256(VENDOR_I5).hexdigest()[:12]}.bin"
    assert backup.read_bytes() == VENDOR_I5
    assert f"'liteprobe build colorlight_i5 --restore {backup}' writes it back" in capsys.readouterr().err
    flash_bitstream(target, file, FlashOptions())
    assert [asked[3] for asked in machine.asked[3:]] == ["--detect", "--write-flash"]
    assert f"the flash of a colorlight_i5 was backed up before: {backup}" in capsys.readouterr().err


def test_a_backup_of_one_board_is_none_of_another(machine):
    machine.has("openFPGALoader", bytes([1, 2]) * (2 << 20), detect=FOUND_25, dump_flash=DONE, write_flash=DONE)
    for name in ("colorlight_5a_75b_v7_0", "colorlight_5a_75b"):
        flash_bitstream(board(name), file_of(OF_25), FlashOptions())
    assert [path.name.partition("-")[0] for path in machine.backups] == ["colorlight_5a_75b", "colorlight_5a_75b_v7_0"]


def test_a_backup_where_the_user_wants_it_replaces_nothing(machine):
    machine.has("openFPGALoader", VENDOR_I5, detect=FOUND_25, dump_flash=DONE, write_flash=DONE)
    target, file, wanted = board("colorlight_i5"), file_of(OF_25), Path("kept/vendor.bin")
    flash_bitstream(target, file, FlashOptions(backup=wanted))
    assert wanted.read_bytes() == VENDOR_I5 and machine.backups == []
    asked = len(machine.asked)
    code, said = fails(flash_bitstream, target, file, FlashOptions(backup=wanted))
    assert code == 2 and "kept/vendor.bin is there already, and is not replaced" in said
    assert [words[3] for words in machine.asked[asked:]] == ["--detect"]


def test_no_backup_reads_nothing(machine):
    machine.has("openFPGALoader", detect=FOUND_25, write_flash=DONE)
    flash_bitstream(board("colorlight_i5"), file_of(OF_25), FlashOptions(with_backup=False))
    assert [asked[3] for asked in machine.asked] == ["--detect", "--write-flash"] and machine.backups == []


@pytest.mark.parametrize(
    ("dump", "answer", "said"),
    [
        (VENDOR_I5[:-1], DONE, "read 2097151 of 2097152 bytes of flash: nothing was written"),
        (b"\xff" * I5_BYTES, DONE, "all that was read of the flash is 0xff: it may be blank; nothing was written"),
        (VENDOR_I5, (1, "Failed to read flash"), "reading the flash for a backup failed, and nothing was written:"),
    ],
)
def test_without_a_good_backup_nothing_is_written(machine, dump, answer, said):
    machine.has("openFPGALoader", dump, detect=FOUND_25, dump_flash=answer, write_flash=DONE)
    code, message = fails(flash_bitstream, board("colorlight_i5"), file_of(OF_25), FlashOptions())
    assert code == 1 and said in message and "--no-backup" in message
    assert [asked[3] for asked in machine.asked] == ["--detect", "--dump-flash"] and machine.backups == []


def test_a_folder_that_takes_no_backup_is_said_and_nothing_is_written(machine):
    machine.has("openFPGALoader", VENDOR_I5, detect=FOUND_25, dump_flash=DONE, write_flash=DONE)
    machine.data.write_text("a file, not a folder")
    code, said = fails(flash_bitstream, board("colorlight_i5"), file_of(OF_25), FlashOptions())
    assert code == 1 and "can't keep the backup in" in said and "--backup FILE" in said
    assert [asked[3] for asked in machine.asked] == ["--detect", "--dump-flash"]


def test_a_backup_alone_reads_the_flash_and_neither_builds_nor_writes(machine, monkeypatch, capsys):
    machine.has("openFPGALoader", VENDOR_I5, detect=FOUND_25, dump_flash=DONE, write_flash=DONE)
    monkeypatch.setattr(soc_build, "build", lambda *arguments: pytest.fail("it was built"))
    assert soc_build.main(["colorlight_i5", "--backup", "vendor.bin", "--cable", "tigard"]) == 0
    assert Path("vendor.bin").read_bytes() == VENDOR_I5 and machine.backups == []
    assert [asked[2:4] for asked in machine.asked] == [["tigard", "--detect"], ["tigard", "--dump-flash"]]
    said = capsys.readouterr()
    line = "backup of the flash: vendor.bin; 'liteprobe build colorlight_i5 --restore vendor.bin' writes it back"
    assert (said.out, said.err.splitlines()[1:]) == ("", [line])
    assert soc_build.main(["colorlight_i5", "--backup", "vendor.bin"]) == 2
    assert "vendor.bin is there already, and is not replaced" in capsys.readouterr().err


@pytest.mark.parametrize("answer", [DONE, (1, "Failed to read flash")])
def test_a_backup_alone_that_fails_gives_no_advice_for_a_write(machine, capsys, answer):
    machine.has("openFPGALoader", VENDOR_I5[:-1], detect=FOUND_25, dump_flash=answer)
    assert soc_build.main(["colorlight_i5", "--backup", "vendor.bin"]) == 1
    said = capsys.readouterr().err
    assert said.rstrip().endswith("look at cable and power, and run this again") and "--no-backup" not in said
    assert not Path("vendor.bin").exists()


def test_restore_writes_the_whole_flash_back_and_builds_nothing(machine, monkeypatch, capsys):
    machine.has("openFPGALoader", detect=FOUND_25, write_flash=DONE)
    monkeypatch.setattr(soc_build, "build", lambda *arguments: pytest.fail("it was built"))
    file_of(VENDOR_I5, "vendor.bin")
    assert soc_build.main(["colorlight_i5", "--restore", "vendor.bin", "--unprotect"]) == 0
    write = ["--write-flash", "--verify", "--unprotect-flash", "--offset", "0x0", "--file-type", "raw", "vendor.bin"]
    assert machine.asked[1:] == [["openFPGALoader", "--cable", "cmsisdap", *write]]
    assert "vendor.bin is in the flash of colorlight_i5: switch it off and on" in capsys.readouterr().out


# The command line ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--unprotect"], "--unprotect is for what writes the flash: give --flash, too"),
        (["--load", "--unprotect"], "--unprotect is for what writes the flash: give --flash, too"),
        (["--load", "--backup", "x"], "--backup is for what writes the flash"),
        (["--no-backup"], "--no-backup is for what writes the flash"),
        (["--cable", "ft232"], "--cable is for what reaches the board: give --load or --flash, too"),
        (["--flash", "--backup", "x", "--no-backup"], "--backup and --no-backup contradict each other"),
        (["--restore", "x", "--flash"], "--restore builds nothing: leave --load, --flash and --no-compile out"),
        (["--restore", "x", "--no-backup"], "--restore makes no backup"),
        (["--backup", "x", "--no-compile"], "--backup without --flash builds nothing: leave --no-compile out"),
    ],
)
def test_options_that_do_not_go_together_are_a_usage_error(machine, monkeypatch, capsys, options, said):
    machine.has("openFPGALoader")
    monkeypatch.setattr(soc_build, "build", lambda *arguments: pytest.fail("it was built"))
    assert soc_build.main(["colorlight_i5", *options]) == 2
    assert said in capsys.readouterr().err
    assert machine.asked == []


def test_firmware_takes_the_same_options(machine, capsys):
    machine.has("openFPGALoader", VENDOR_I5, detect=FOUND_25, dump_flash=DONE, write_flash=DONE)
    file_of(FLASH_MAGIC.to_bytes(4, "little"), "liteprobe.flash")
    options = ["--cable", "tigard", "--unprotect", "--backup", "vendor.bin"]
    assert soc_load.main(["colorlight_i5", "liteprobe.flash", *options]) == 0
    assert Path("vendor.bin").read_bytes() == VENDOR_I5
    write = ["--write-flash", "--verify", "--unprotect-flash"]
    assert machine.asked[-1][:6] == ["openFPGALoader", "--cable", "tigard", *write]
    assert soc_load.main(["colorlight_i5", "liteprobe.flash", "--backup", "x", "--no-backup"]) == 2
    assert "contradict" in capsys.readouterr().err


def test_a_build_writes_what_it_has_built_into_the_flash(machine, monkeypatch):
    machine.has("openFPGALoader", VENDOR_I5, detect=FOUND_25, dump_flash=DONE, write_flash=DONE)
    report = {"board": "colorlight_i5", "device": "", "seed": 1, "seconds": {"total": 1}, "area": {}, "clocks": {}}

    def build(name, config, seed, out, extension, at_once):
        out.mkdir(parents=True)
        (out / "liteprobe.bit").write_bytes(OF_25)
        return report

    monkeypatch.setattr(soc_build, "build", build)
    assert soc_build.main(["colorlight_i5", "--flash", "--unprotect", "--cable", "tigard"]) == 0
    assert [asked[3] for asked in machine.asked] == ["--detect", "--detect", "--dump-flash", "--write-flash"]
    assert machine.asked[-1][-1] == "build/colorlight_i5/liteprobe.bit" and "--unprotect-flash" in machine.asked[-1]
    assert all(asked[2] == "tigard" for asked in machine.asked)


def test_liteprobe_build_passes_its_options_on(monkeypatch):
    asked = []

    def run(arguments):
        assert arguments[:4] == programs.module("liteprobe.soc.build.bitstream")
        asked.append(arguments[4:])
        return programs.Ended(0, "", "")

    monkeypatch.setattr(programs, "run", run)
    before = ["--flash", "--unprotect", "--no-backup", "--cable", "tigard", "--backup", "f"]
    assert cli.main(["build", *before, "colorlight_i5", "--restore", "g"]) == 0
    (passed,) = asked
    assert passed[0] == "colorlight_i5" and passed[-2:] == ["--restore", "g"]
    assert sorted(passed[1:-2]) == sorted(before)


@pytest.mark.parametrize("name", BOARDS)
def test_each_board_says_what_loads_it_and_how_large_its_flash_is(name):
    target = board(name)
    assert target.cable in ("ft232", "ft2232", "cmsisdap")
    assert target.flash_offset < target.flash_bytes and target.flash_bytes % (1 << 20) == 0
