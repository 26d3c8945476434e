# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What Yosys makes of a board does what its RTL does, tick by tick; and the models of its cells against arithmetic."""

import random
from pathlib import Path

import numpy as np
import pytest

from liteprobe.host import TrainProgram
from liteprobe.sim.bench.system.trains import run
from liteprobe.sim.board.build import build_board
from liteprobe.sim.board.netlist import NetlistWriter, bits_of, number
from liteprobe.sim.board.test_pins import CABLE_NS, LENGTHS

OPTIONS = [("colorlight_5a_75b", {}), ("colorlight_i9", {"preset": "tester"})]


@pytest.mark.full
@pytest.mark.parametrize("source", ["yosys", "packed"])
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=[name for name, _ in OPTIONS])
def test_a_netlist_does_what_the_rtl_does(name: str, options: dict[str, str], source: str, tmp_path: Path) -> None:
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
