# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Programs that reach a board by a JTAG cable, and what is said where none does."""

import pytest

from liteprobe.boards import board
from liteprobe.sim.drivers.tools.fake_loaders import (
    DONE,
    FOUND_5G_45,
    FOUND_25,
    FOUND_45,
    FOUND_UM_45,
    I5_BYTES,
    NO_CABLE,
    NO_CMSISDAP,
    NO_PROBE,
    NO_SUCH_CABLE,
    OF_25,
    SCAN_25,
    VENDOR_I5,
    fails,
    file_of,
)
from liteprobe.soc.build import bitstream as soc_build
from liteprobe.soc.build import load as loading
from liteprobe.soc.build.load import FlashOptions, detect, flash_bitstream, load
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
    assert [asked[:3] for asked in machine.asked if asked[0] == "ecpdap"] == [
        ["ecpdap", "scan"],
        ["ecpdap", "program", "x.bit"],
        ["ecpdap", "scan"],
        ["ecpdap", "flash", "read"],
        ["ecpdap", "flash", "unprotect"],
        ["ecpdap", "flash", "write"],
    ]
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
