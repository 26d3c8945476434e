# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Inputs of a stranger in the first hour: networks, circuits of one's own, results of a lab, a clock without an error."""

import errno
import json
import os
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure
from migen import Module

from liteprobe.host.base import doctor, extras
from liteprobe.host.base.doctor import State
from liteprobe.host.base.errors import UsageError
from liteprobe.host.device import discover
from liteprobe.host.device.discover import places
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import open_link
from liteprobe.host.report import clock_plots
from liteprobe.sim.drivers.labs import notebook
from liteprobe.soc.export import soc_map
from liteprobe.soc.extension import extend_with


def program(path: Path, text: str) -> Path:
    """Write a program of the shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


# Networks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "BusyBox v1.36", "null", "{}", "7", '[{"flags": ["UP"], "addr_info": [{}]}]', '[{"flags": 1}]']
)
def test_an_ip_that_cannot_be_understood_is_done_without(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discover, "_guess", lambda: {"default": []})
    assert discover.interfaces(text) in ({"default": []}, {})


def test_an_ip_that_hangs_or_cannot_start_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discover, "TIMEOUT_S", 0.2)
    monkeypatch.setattr(discover, "_guess", lambda: {"default": []})
    monkeypatch.setattr(discover, "ARP_TABLE", tmp_path / "none")
    for text in ("exec sleep 60", "printf '\\377'"):
        for name in ("ip", "arp"):
            program(tmp_path / name, text)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
        assert (discover.interfaces(), discover.neighbours()) == ({"default": []}, {})


@pytest.mark.parametrize("target", ["fd00::2", "[fd00::2]:1234", "fd00::/64", "1:2:3:4:5:6:7:8"])
def test_an_address_of_ipv6_is_said_to_be_one(target: str) -> None:
    with pytest.raises(UsageError, match=r"is an IPv6 address, and probes speak IPv4 alone: write it like 192\.168"):
        places([target])
    with pytest.raises(UsageError, match="that is an IPv6 address, and probes speak IPv4 alone"):
        open_link(f"etherbone://{target.replace('/', '')}")


def test_the_doctor_says_which_networks_were_left_out() -> None:
    checks = doctor.probes([], 1, ["10.4.0.0/16 (eth0) is too large"])
    assert [(check.name, check.state, check.said) for check in checks] == [
        ("network", State.NONE, "10.4.0.0/16 (eth0) is too large"),
        ("probe", State.NONE, "none answers at the one address that was asked"),
    ]


def test_without_a_loopback_interface_the_simulated_probe_says_what_to_do() -> None:
    link = SimLink.__new__(SimLink)
    link.host, link.port = "127.0.0.1", 7
    error = link._unreachable(OSError(errno.ENETUNREACH, "Network is unreachable"))
    assert str(error) == (
        "cannot reach the simulated probe at 127.0.0.1:7 (Network is unreachable): it is on this host's loopback interface, "
        "which must be up (ip link set lo up)"
    )


# Circuits of one's own ---------------------------------------------------------------------------

ALONE = ". It is loaded on its own, without what lies beside it: put all that it needs into one file, or install it"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def extend(soc:\n", "can't be loaded: line 1: '(' was never closed"),
        ("def extend(soc):\n    raise KeyError('boo')\n", "can't extend the probe: line 2: KeyError: 'boo'"),
        ("\n1 / 0\n", "can't be loaded: line 2: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(0)\n", "can't be loaded: line 2: SystemExit: 0"),
        ("import beside\n", f"can't be loaded: line 1: ModuleNotFoundError: No module named 'beside'{ALONE}"),
        (
            "from . import x\n",
            f"can't be loaded: line 1: ImportError: attempted relative import with no known parent package{ALONE}",
        ),
        (
            "from migen import Module\ndef extend(soc):\n    soc.add_module('timebase', Module())\n",
            "can't extend the probe: line 3: the probe has a 'timebase' already: give the module another name",
        ),
        ("x = 1\n", "has no function extend(soc): see docs/labs/octet_counter.py"),
    ],
)
def test_what_is_wrong_with_a_circuit_of_ones_own_is_said_with_its_line(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litex.gen import LiteXModule

    soc = LiteXModule()
    soc.add_module("timebase", Module())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").touch()
    path = Path("my circuit.py")
    path.write_text(text)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    with pytest.raises(ValueError) as error:
        extend_with(soc, path)
    assert str(error.value) == f"my circuit.py {why}"


def test_two_registers_of_one_name_are_refused() -> None:
    """LiteX's map would have one of them, and a host would read that one for both."""

    def soc(snapshots: dict[str, dict[str, tuple[int, int]]], **regions: list[str]) -> SimpleNamespace:
        made = {
            name: SimpleNamespace(obj=[SimpleNamespace(name=each) for each in names]) for name, names in regions.items()
        }
        memory = SimpleNamespace(origin=0)
        return SimpleNamespace(csr_regions=made, snapshots=snapshots, mem_regions={"port0_snapshot": memory})

    with pytest.raises(
        ValueError, match="^two registers have the name mine_a: give one of them, or its module, another$"
    ):
        soc_map(soc({}, mine=["a", "b", "a"]))
    with pytest.raises(ValueError, match="the name port0_rx_clear:"):
        soc_map(soc({}, port0=["rx_clear"], port0_rx=["clear"]))
    with pytest.raises(ValueError, match="the name port0_rx_frames:"):
        soc_map(soc({"port0": {"frames": (0, 1)}}, port0=["rx_frames"]))


# Marking -----------------------------------------------------------------------------------------


def test_one_bad_file_does_not_end_the_marking_of_a_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check = notebook.load("teacher/check")
    expected = check.answers()["lab1_line_rate"]
    right = {name: answer["value"] for name, answer in expected.items()}
    handed_in = {
        "right": json.dumps(right).encode(),
        "of_windows": b"\xef\xbb\xbf" + json.dumps(right).encode(),
        "empty": b"",
        "octets": b"\xff\xfe",
        "list": b"[1]",
        "nothing": b"null",
        "deep": b"[" * 100_000,
        "words": json.dumps(right | {"slot_60_ns": "672"}).encode(),
        "truth": json.dumps(right | {"slot_60_ns": True}).encode(),
        "not_a_number": json.dumps(right | {"slot_60_ns": float("nan")}).encode(),
        "huge": json.dumps(right | {"slot_60_ns": 10**400}).encode(),
    }
    for name, octets in handed_in.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "lab1.json").write_bytes(octets)
    files = [f"{tmp_path}/{name}/lab1.json" for name in [*handed_in, "absent"]]
    assert check.main(files) == 1
    lines = capsys.readouterr().out.splitlines()
    scores = {line.split("/")[-2]: line.split(": ")[1] for line in lines if not line.startswith(" ")}
    full, count = f"{len(right)} of {len(right)}", len(right)
    assert scores == {
        **dict.fromkeys(("right", "of_windows"), full),
        **dict.fromkeys(("empty", "octets", "list", "nothing", "deep", "absent"), f"0 of {count}"),
        **dict.fromkeys(("words", "truth", "not_a_number", "huge"), f"{count - 1} of {count}"),
    }
    assert '  slot_60_ns: "672" is not a number; 672 (8 ns * (60 + 24))' in lines


# Plots, and what to type ---------------------------------------------------------------------------


def test_a_clock_that_is_never_off_is_plotted_without_a_warning() -> None:
    """A newcomer plots that of a simulated probe on a simulated PPS first."""
    axes = Figure().subplots()
    axes.errorbar([1, 2], [0, 0], [0, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clock_plots._logarithmic(axes)
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
        axes.plot([1, 2], [0, 3])
        clock_plots._logarithmic(axes)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_where_there_is_no_pip_uv_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "pip")
    assert extras.install("x") == f"uv pip install --python {extras.quoted(sys.executable)} x"
