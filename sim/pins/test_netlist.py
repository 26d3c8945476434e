# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The netlist that Yosys makes of a board does what its RTL does, tick by tick; its cells' models against arithmetic."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from liteprobe.host import Probe, TrainProgram
from liteprobe.host.device.link.url import sim_url
from liteprobe.sim.drivers.system.senders import run
from liteprobe.sim.pins.build import build_board
from liteprobe.sim.pins.netlist import NetlistWriter, bits_of, number
from liteprobe.sim.pins.packed import Unpacker
from liteprobe.sim.pins.test_pins import CABLE_NS, LENGTHS

PPS_NS = 1_000_000
OPTIONS = [("colorlight_5a_75b", {}), ("colorlight_i9", {"preset": "tester", "with_streams": False})]


@pytest.mark.full
@pytest.mark.parametrize("source", ["yosys", "packed"])
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=[name for name, _ in OPTIONS])
def test_a_netlist_does_what_the_rtl_does(name: str, options: dict[str, Any], source: str, tmp_path: Path) -> None:
    """Map, trains of six lengths each way, records: every frame on the same tick, every record the same."""
    folders = {"rtl": build_board(name, **options), "netlist": build_board(name, source, **options)}
    assert (folders["rtl"] / "csr.json").read_text() == (folders["netlist"] / "csr.json").read_text()
    for length in LENGTHS:
        for transmit in (0, 1):
            found = {}
            for which, folder in folders.items():
                program = TrainProgram(length=length, count=50, repeats=2, gap_ns=20_000)
                files = tmp_path / f"{which}{length}{transmit}"
                files.mkdir()
                found[which] = run(folder, f"cable?delay={CABLE_NS}ns", program, files, "shared", transmit)
            rtl, netlist = found["rtl"], found["netlist"]
            assert np.array_equal(rtl.rows, netlist.rows), (length, transmit)
            assert np.array_equal(rtl.result.records, netlist.result.records)
            assert rtl.result.counters == netlist.result.counters and len(rtl.result.records) == 100


@pytest.mark.full
@pytest.mark.parametrize("source", ["yosys", "packed"])
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=[name for name, _ in OPTIONS])
def test_a_pps_is_stamped_as_in_the_rtl(name: str, options: dict[str, Any], source: str) -> None:
    """Edges 1 ms apart with a jitter, in steps of 2 ns: the same time, ticks, width and part of a tick."""
    found = []
    for folder in (build_board(name, **options), build_board(name, source, **options)):
        with Probe(sim_url("cable?delay=1us", build=folder, link="shared", pps="1ms", jitter="30ns")) as probe:
            probe.clock.enable_pps(PPS_NS)
            found.append(list(probe.clock.edges(10 * PPS_NS / 1e9, probe.wait)))
    assert found[0] == found[1] and len(found[0]) >= 8
    assert len({edge.early_ps for edge in found[0]}) > 1, "the jitter must show in parts of a tick"


def test_parameters_of_cells_are_read_as_yosys_writes_them() -> None:
    cell = {
        "parameters": {
            "INIT": "1000000000000001",
            "HEX": "0x00F",
            "WIDTH": "00000000000000000000000000010010",
            "TAPS": "39",
        }
    }
    assert bits_of(cell, "INIT", 16) == "1000000000000001"
    assert bits_of(cell, "HEX", 12) == "000000001111"
    assert (number(cell, "WIDTH"), number(cell, "TAPS"), number(cell, "NONE")) == (18, 39, 0)


def test_a_lut_and_a_carry_are_their_tables() -> None:
    """By random tables: the expression that is written, evaluated, against the table."""
    rng = random.Random(7)
    for _ in range(50):
        table = rng.getrandbits(16)
        connections = {port: [bit] for bit, port in enumerate("ABCDZ", 2)}
        cell = {"type": "LUT4", "parameters": {"INIT": f"{table:016b}"}, "connections": connections}
        writer = NetlistWriter({"ports": {}, "cells": {"one": cell}}, "top")
        (line,) = [line for line in writer.text().splitlines() if "assign" in line]
        assert line.split("=")[1].strip() == f"16'b{table:016b} >> {{n5, n4, n3, n2}};"


def test_an_unknown_cell_is_named() -> None:
    cell = {"type": "OSCG", "parameters": {}, "connections": {}}
    with pytest.raises(ValueError, match="cells of type OSCG have no model"):
        NetlistWriter({"ports": {}, "cells": {"one": cell}}, "top").text()


def unpacked(kind: str, parameters: dict[str, str], connections: dict[str, list[int]]) -> list[dict[str, Any]]:
    """Return what a cell of nextpnr is taken back to."""
    names = {f"n{bit}": {"bits": [bit]} for bits in connections.values() for bit in bits}
    directions = {port: "output" if port in ("F", "Q", "O", "DOA0") else "input" for port in connections}
    cell = {"type": kind, "parameters": parameters, "connections": connections, "port_directions": directions}
    return list(Unpacker({"ports": {}, "netnames": names, "cells": {"one": cell}}).unpacked()["cells"].values())


def test_constants_of_multiplexers_are_taken_back() -> None:
    """An input that nothing drives is 1, or 0 behind an inverter; one that is driven gets an inverter."""
    (ram, inverter) = unpacked(
        "DP16KD",
        {"WEAMUX": "INV", "CEAMUX": "CEA", "ADA0MUX": "0 ", "ADA1MUX": "1 ", "OCEAMUX": "INV"},
        {"WEA": [], "CEA": [], "ADA0": [5], "ADA1": [], "OCEA": [7], "DOA0": [9]},
    )
    assert {port: ram["connections"][port] for port in ("WEA", "CEA", "ADA0", "ADA1", "DOA0")} == {
        "WEA": ["0"],
        "CEA": ["1"],
        "ADA0": ["0"],
        "ADA1": ["1"],
        "DOA0": [9],
    }
    assert inverter["connections"] == {"A": [7], "Z": ram["connections"]["OCEA"]}
    assert ram["connections"]["OCEA"] not in ([7], [9])


def test_a_register_takes_what_its_multiplexer_says() -> None:
    ports = {"DI": [3], "M": [4], "CLK": [5], "CE": [], "LSR": [], "Q": [6]}
    for choice, bit in (("1 ", 3), ("0 ", 4)):
        (register,) = unpacked("TRELLIS_FF", {"SD": choice, "CEMUX": "CE", "LSRMUX": "LSR"}, ports)
        assert register["connections"] == {"DI": [bit], "CLK": [5], "CE": ["1"], "LSR": ["0"], "Q": [6]}


def test_a_slice_of_ram_reads_what_its_table_holds() -> None:
    """By pins, as a LUT reads its table; the address of a write has its bits on other pins."""
    table = random.Random(3).getrandbits(16)
    ports = {pin: [bit] for bit, pin in enumerate("ABCD", 2)} | {"F": [6], "WD": [7], "WRE": [8], "WCK": [9]}
    ports |= {f"WAD{bit}": [10 + bit] for bit in range(4)}
    (ram,) = unpacked("TRELLIS_COMB", {"MODE": "DPRAM", "INITVAL": f"{table:016b}"}, ports)
    words = ram["parameters"]["INITVAL"][-16:]
    for place in range(16):
        level = {bit: place >> number & 1 for number, bit in enumerate((2, 3, 4, 5))}
        address = sum(level[bit] << number for number, bit in enumerate(ram["connections"]["RAD"]))
        assert words[15 - address] == str(table >> place & 1)


def test_half_of_a_carry_cell_becomes_one_whose_other_half_passes_the_carry_on() -> None:
    ports = {"A": [2], "B": [3], "FCI": [4], "F": [5], "FCO": [6]}
    (carry,) = unpacked("TRELLIS_COMB", {"MODE": "CCU2", "CCU2_INJECT1": "NO", "INITVAL": "1001011010101010"}, ports)
    assert carry["parameters"]["INIT0"] == "1001011010101010"
    assert carry["parameters"]["INIT1"] == "1" * 16
    assert carry["connections"]["COUT"] == [6] and carry["connections"]["CIN"] == [4]


def test_a_mode_without_a_model_is_named() -> None:
    with pytest.raises(ValueError, match="a slice of mode RIPPLE has no model"):
        unpacked("TRELLIS_COMB", {"MODE": "RIPPLE"}, {"F": [3]})
    with pytest.raises(ValueError, match="a pad of mode IDDRX2 has no model"):
        unpacked("IOLOGIC", {"MODE": "IDDRX2"}, {"CLK": [3]})
