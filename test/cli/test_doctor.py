# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The doctor on machines that are made up: devices, rights, programs."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from liteprobe.host.base import doctor, extras
from liteprobe.host.base.doctor import Finding, State
from liteprobe.host.cli import main as cli
from liteprobe.host.cli.commands import doctor as command
from liteprobe.host.device.discover import FoundProbe, ProbeAddress

FOUND = FoundProbe(
    ProbeAddress("192.168.1.50"), "liteprobe on colorlight_5a_75b", "train", 2, 1, ("10:e2:d5:00:00:00",), 1
)


def usb(folder: Path, name: str, vendor: str, product: str) -> Path:
    """Put a USB device into a folder that is laid out as sysfs is; return where its file would be."""
    device = folder / "devices" / name
    device.mkdir(parents=True)
    number = len(list((folder / "devices").iterdir()))
    for file, text in {
        "idVendor": vendor,
        "idProduct": product,
        "product": "Thing",
        "busnum": "3",
        "devnum": f"{number}",
    }.items():
        (device / file).write_text(f"{text}\n")
    return folder / "files" / "003" / f"{number:03d}"


def test_a_cable_that_may_be_used_is_named_as_the_loader_calls_it(tmp_path: Path) -> None:
    file = usb(tmp_path, "3-1", "0403", "6014")
    usb(tmp_path, "3-2", "dead", "beef")
    (tmp_path / "devices" / "usb1").mkdir()
    file.parent.mkdir(parents=True)
    file.touch()
    assert doctor.cables(tmp_path / "devices", tmp_path / "files") == [
        Finding("JTAG cable", State.OK, "ft232 or digilent_hs2 (FT232H), USB 0403:6014 Thing")
    ]


def test_a_cable_that_may_not_be_used_has_its_rule_to_paste(tmp_path: Path) -> None:
    file = usb(tmp_path, "3-1", "0d28", "0204")
    assert doctor.cables(tmp_path / "devices", tmp_path / "files") == [
        Finding(
            "JTAG cable",
            State.MISSING,
            f"cmsisdap (DAPLink), USB 0d28:0204 Thing: you may not use {file}",
            'echo \'SUBSYSTEM=="usb", ATTR{idVendor}=="0d28", ATTR{idProduct}=="0204", MODE="0660", GROUP="plugdev", '
            'TAG+="uaccess"\' | sudo tee -a /etc/udev/rules.d/60-liteprobe.rules && sudo udevadm control --reload && '
            "sudo udevadm trigger",
        )
    ]
    assert [check.state for check in doctor.cables(tmp_path / "nothing")] == [State.NONE]


def test_a_serial_port_that_may_not_be_used_names_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = tmp_path / "ttyUSB0"
    port.touch()
    assert doctor.serial_ports([str(port)]) == [Finding("serial port", State.OK, str(port))]
    monkeypatch.setattr(os, "access", lambda *_: False)
    (check,) = doctor.serial_ports([str(port)])
    typed = f'sudo usermod -aG {port.group()} "$USER"   then log in again'
    assert (check.state, check.said, check.advice) == (State.MISSING, f"{port}: you may not use it", typed)
    (check,) = doctor.serial_ports([str(tmp_path / "ttyUSB1")])
    assert check.advice == 'sudo usermod -aG dialout "$USER"   then log in again'
    assert [check.state for check in doctor.serial_ports([])] == [State.NONE]


def test_cards_are_named_with_their_url_or_their_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.cards(tmp_path) == []
    (tmp_path / "litepcie0").touch()
    assert doctor.cards(tmp_path)[0].said == f"pcie://{tmp_path}/litepcie0"
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert 'KERNEL=="litepcie*", GROUP="plugdev", MODE="0660"' in doctor.cards(tmp_path)[0].advice


def test_probes_of_the_network_are_named_and_two_of_one_address_are_a_fault() -> None:
    shared = replace(FOUND, macs=("10:e2:d5:00:00:00", "10:e2:d5:00:00:01"))
    checks = doctor.probes([FOUND, shared], 10)
    assert checks[0] == Finding("probe", State.OK, "etherbone://192.168.1.50 liteprobe on colorlight_5a_75b train")
    assert (checks[1].state, "two devices have this address" in checks[1].said) == (State.MISSING, True)
    assert [(check.state, check.said) for check in doctor.probes([], 10)] == [
        (State.NONE, "none answers at 10 addresses")
    ]


@pytest.mark.parametrize(
    ("version", "state"), [((3, 10, 9), "missing"), ((3, 11, 0), "ok"), ((3, 14, 1), "ok"), ((3, 15, 0), "missing")]
)
def test_a_python_that_is_not_supported_is_what_the_host_lacks(version: tuple[int, int, int], state: str) -> None:
    check = doctor.python(version)
    assert (check.state, check.is_needed) == (state, state == "missing")
    assert state == "ok" or check.advice == "install Python 3.11 to 3.14, and LiteProbe into an environment of it"


def test_compilers_and_tools_that_are_missing_say_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert [(check.state, check.advice) for check in doctor.compilers()] == [
        ("missing", "apt-get install g++"),
        ("missing", "apt-get install gcc"),
    ]
    check = doctor.tool("yosys", None)
    assert (check.state, check.advice) == ("missing", f"install it on PATH, or type  {extras.command('build')}")
    loader = tmp_path / "loader"
    loader.write_text(
        "#!/bin/sh\necho 'error while loading shared libraries: libftdi1.so.2: no such file' >&2\nexit 127\n"
    )
    loader.chmod(0o755)
    check = doctor.tool("openFPGALoader", str(loader))
    assert (check.state, check.advice) == ("missing", "apt-get install libftdi1-2")


def test_the_gatewares_own_program_says_which_tools_are_here() -> None:
    names = [check.name for check in doctor.tools()]
    assert names == ["yosys", "nextpnr-ecp5", "ecppack", "openFPGALoader"]


def test_the_exit_code_is_that_of_what_the_host_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "doctor.json"
    fine = [Finding("Python", State.OK, "3.11"), Finding("extra sim", State.MISSING, "without migen", "pip install it")]
    monkeypatch.setattr(command, "look", lambda with_network: fine)
    assert cli.main(["doctor", "--json", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ok      Python     3.11",
        "missing extra sim  without migen",
        "        pip install it",
    ]
    written = json.loads(file.read_text())
    assert (written["is_ready"], written["checks"][1]["state"]) == (True, "missing")
    lacking = Finding("packages of the host", State.MISSING, "without numpy", "pip install numpy", is_needed=True)
    monkeypatch.setattr(command, "look", lambda with_network: [lacking])
    assert cli.main(["doctor", "--json", str(file)]) == 1
    assert capsys.readouterr().err == "liteprobe: packages of the host: without numpy: pip install numpy\n"
    assert json.loads(file.read_text())["is_ready"] is False


def test_each_extra_that_is_missing_has_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "lacking", lambda extra: ["migen"] if extra == "sim" else [])
    checks = {check.name: check for check in doctor.optional()}
    assert (checks["extra sim"].state, checks["extra sim"].advice) == ("missing", extras.command("sim"))
    assert {check.state for name, check in checks.items() if name != "extra sim"} == {"ok"}
    assert sys.executable in checks["extra sim"].advice or "./run" in checks["extra sim"].advice
