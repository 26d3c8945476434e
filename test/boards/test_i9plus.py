# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The i9+: Verilog and constraints of its Artix-7, pins as found on the module, and openXC7 where its programs are on PATH."""

import json
import random
import re
import stat
from pathlib import Path

import pytest
from migen import Record, run_simulation
from migen.genlib.cdc import MultiReg

from liteprobe.boards import board
from liteprobe.boards.artix7 import ArtixReceive
from liteprobe.soc.build import openxc7
from liteprobe.soc.build.bitstream import main
from liteprobe.soc.build.toolchain import BuildError

NAME = "colorlight_i9plus"
# wuxx/Colorlight-FPGA-Projects, colorlight_i9plus_v6.1.md; TX clock, data, control, then RX, of U5 and U9.
PORTS = [
    ["A1", "B2 B1 C2 D2", "D1", "H4", "E3 E2 E1 F3", "F1"],
    ["M6", "M5 M2 N4 P4", "N5", "L3", "N2 N3 P1 P2", "R1"],
]
OTHERS = {"clk25": "K4", "eth0_mdc": "G1", "eth0_mdio": "G2", "sdram_clock": "E14", "sdram_we_n": "D17"}
OTHERS |= {"spiflash_cs_n": "T19", "spiflash_miso": "R22", "spiflash_mosi": "P22", "eth0_rst_n": "H2"}
SDRAM = {
    "a": "C20 C19 C13 F13 G13 G15 F14 F18 E13 E18 C14",
    "ba": "D19 B13",
    "dq": (
        "F21 E22 F20 E21 F19 D22 E19 D21 K21 L21 K22 M21 L20 M22 N20 M20 "
        "B18 D20 A19 A21 A20 B21 C22 B22 G21 G22 H20 H22 J20 J22 G20 J21"
    ),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("i9plus")
    assert main([NAME, "--no-compile", "--out", str(out)]) == 0
    return out


def text_of(built, suffix):
    return (built / "gateware" / f"liteprobe.{suffix}").read_text()


def test_pins_are_those_of_the_module_and_none_is_used_twice(built):
    text = text_of(built, "xdc")
    sites = {port: site for site, port in re.findall(r"set_property LOC (\w+) \[get_ports \{(\S+?)\}\]", text)}
    assert len(set(sites.values())) == len(sites) == text.count("set_property LOC")
    for port, wanted in enumerate(PORTS):
        found = [
            row
            for way in ("tx", "rx")
            for row in (
                sites[f"eth_clocks{port}_{way}"],
                " ".join(sites[f"eth{port}_{way}_data[{bit}]"] for bit in range(4)),
                sites[f"eth{port}_{way}_ctl"],
            )
        ]
        assert found == wanted
    assert {port: sites[port] for port in OTHERS} == OTHERS
    for part, wanted in SDRAM.items():
        assert " ".join(sites[f"sdram_{part}[{bit}]"] for bit in range(len(wanted.split()))) == wanted
    # P2 of the extension board, by its drawing: free pins of the header, none of which the module uses itself.
    assert [sites[name] for name in ("pps", "pps_out", "gnss_tx", "gnss_rx")] == ["U2", "V2", "U3", "V3"]
    assert "SLEWRATE" not in text and text.count("SLEW FAST") == 11 + 1 + 2 + 32 + 3 + 1  # A11, too, which no chip has.


def test_every_clock_that_comes_in_is_constrained_and_no_two_domains_are_timed_together(built):
    text = text_of(built, "xdc")
    clocks = dict(re.findall(r"create_clock -name (\w+) -period (\S+) \[get_ports \w+\]", text))
    assert clocks == {"clk25": "40.0", "eth_clocks0_rx": "8.0", "eth_clocks1_rx": "8.0"}
    groups = re.findall(r"set_clock_groups .*?get_nets (\w+)\]\] .*?get_nets (\w+)\]\] -asynchronous", text)
    domains = ["sys_clk", "timebase_clk", "eth_rx0_clk", "eth_rx1_clk"]
    pairs = {frozenset((a, b)) for n, a in enumerate(domains) for b in domains[n + 1 :]}
    assert {frozenset(pair) for pair in groups} == pairs and len(groups) == len(pairs)


def parameters(verilog, cell):
    """Return the parameters of each instance of a cell, numbers as such."""
    found = re.findall(rf"^{cell} #\((.*?)^\)", verilog, re.MULTILINE | re.DOTALL)
    pairs = [re.findall(r"\.(\w+)\s*\((?:\d+'d)?\"?([\w.]+)\"?\)", block) for block in found]
    return [{name: float(value) if value[0].isdigit() else value for name, value in block} for block in pairs]


def test_the_pll_is_within_its_data_sheet_and_its_ratios_are_exact(built):
    (pll,) = parameters(text_of(built, "v"), "PLLE2_ADV")
    vco_mhz = 25 * pll["CLKFBOUT_MULT"] / pll["DIVCLK_DIVIDE"]
    assert 800 <= vco_mhz <= 1600  # UG472 and DS181, grade -1.
    outputs = [(vco_mhz / pll[f"CLKOUT{n}_DIVIDE"], pll[f"CLKOUT{n}_PHASE"]) for n in range(5)]
    # sys, timebase, idelay, the double of timebase, the SDRAM's clock.
    assert sorted(outputs) == sorted([(62.5, 0), (125, 0), (200, 0), (250, 0), (62.5, 90)])


def test_received_data_is_delayed_by_two_nanoseconds_and_taken_in_pairs(built):
    verilog = text_of(built, "v")
    delays = parameters(verilog, "IDELAYE2")
    assert len(delays) == 10 and {delay["IDELAY_TYPE"] for delay in delays} == {"VAR_LOAD"}
    # 25 taps of 1/(64*200 MHz) are 1.95 ns.
    assert {delay["IDELAY_VALUE"] / (2 * 32 * 0.2) for delay in delays} == {1.953125}
    modes = [row["DDR_CLK_EDGE"] for row in parameters(verilog, "IDDR")]
    assert modes.count("SAME_EDGE_PIPELINED") == 10 + 1
    assert len(re.findall(r"^(IDELAYCTRL|STARTUPE2)\b.*\(", verilog, re.MULTILINE)) == 2


def test_the_window_of_the_sdrams_clock_that_was_seen_on_hardware_holds_with_ours():
    """litex-boards 739: at 100 MHz 27 degrees work, to 120 MHz, and 90 don't: the way out and back takes 7.5 to 7.7 ns."""
    least, most = 10 - 10 * 90 / 360, 1e3 / 120 * (1 - 27 / 360)
    assert (least, round(most, 2)) == (7.5, 7.71)
    one = board(NAME)
    period = 1e9 / one.sys_clk_freq
    late = period * one.sdram_clock_phase / 360
    assert late == 4.0 and period - late - most > 4  # What is left to read.
    assert late - max(chip.setup for chip in one.parts.sdrams) > 2  # And to write.


def test_what_is_said_to_be_next_without_openxc7(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([NAME, "--out", str(tmp_path / "out")]) == 0
    assert "next: sh build_liteprobe.sh there, by Vivado, or" in capsys.readouterr().out
    assert (tmp_path / "out" / "gateware" / "build_liteprobe.sh").exists()


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_walk_of_the_receive_delay_stays_in_reach_of_the_pins(seed):
    """25 ps a step, of which 3.125 are a tap; loads, steps up and down at random, and long walks to either end."""
    rng = random.Random(seed)
    dut = ArtixReceive(Record([("rx_ctl", 1), ("rx_data", 4)]), 2.0)
    dut._fragment.specials = {one for one in dut._fragment.specials if isinstance(one, MultiReg)}
    moves = [rng.choice(["load", "up", "down"]) for _ in range(60)] + ["up"] * 140 + ["down"] * 140
    found, wanted = [], []

    def walk():
        step = 80
        for move in moves:
            bits = {"load": 0b001, "up": 0b010, "down": 0b110}[move]
            yield dut.delay.eq(bits)
            yield from [None] * 4
            yield dut.delay.eq(bits & 0b100)
            yield from [None] * 6
            step = {"load": 80, "up": min(step + 1, 127), "down": max(step - 1, 0)}[move]
            found.append((yield dut.taps))
            wanted.append(min(31, step * 41 // 128))

    run_simulation(dut, {"sys": walk()}, clocks={"sys": 16, "eth_rx": 8})
    assert found == wanted and {0, 31} < set(found)


# openXC7 ------------------------------------------------------------------------------------------

CLOCKS = {"sys": 62.5, "timebase": 125.0, "eth_rx0": 125.0}
PART = "xc7a50tfgg484-1"
FAKE = """#!/bin/sh
echo "$(basename "$0") $*" >> "{asked}"
case "$(basename "$0")" in
nextpnr-xilinx) cat "{log}" ;;
fasm2frames) : > liteprobe.frames ;;
xc7frames2bit) echo bits > liteprobe.bit ;;
esac
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Give a machine with programs in place of openXC7's; ``log`` is what nextpnr says."""
    programs, database, gateware = (tmp_path / name for name in ("bin", "db", "gateware"))
    for folder in (programs, database / "artix7", gateware):
        folder.mkdir(parents=True)
    (tmp_path / "chips").mkdir()
    (tmp_path / "chips" / "xc7a50tfgg484.bin").touch()
    for name in ("yosys", *openxc7.PROGRAMS):
        path = programs / name
        path.write_text(FAKE.format(asked=tmp_path / "asked", log=tmp_path / "log"))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{programs}:/bin:/usr/bin")
    monkeypatch.setenv("CHIPDB", str(tmp_path / "chips"))
    monkeypatch.setenv("PRJXRAY_DB_DIR", str(database))
    (gateware / "liteprobe.xdc").write_text(
        "set_property LOC K4 [get_ports {clk25}]\ncreate_clock -name clk25 -period 40.0 [get_ports clk25]\n"
        "set_clock_groups -group [get_clocks sys]\n"
    )
    return tmp_path


def said(reached):
    early = [f"Info: Max frequency for clock '{name}_clk': 9.00 MHz (FAIL at 12.00 MHz)" for name in reached]
    late = [
        f"Info: Max frequency for clock       '{name}_clk': {mhz:.2f} MHz (PASS at 9.0 MHz)"
        for name, mhz in reached.items()
    ]
    return "\n".join([*early, *late, ""])


def test_its_programs_are_run_in_order_with_files_of_the_part(machine):
    (machine / "log").write_text(said({"sys": 62.5, "timebase": 130.0, "eth_rx0": 200.0}))
    assert openxc7.is_here()
    made = openxc7.build(machine / "gateware", "liteprobe", PART, CLOCKS)
    assert made.read_text() == "bits\n"
    database = machine / "db" / "artix7"
    assert (machine / "asked").read_text().splitlines() == [
        "yosys -q openxc7.ys",
        f"nextpnr-xilinx --chipdb {machine}/chips/xc7a50tfgg484.bin --xdc openxc7.xdc --json liteprobe.json "
        "--fasm liteprobe.fasm --timing-allow-fail",
        f"fasm2frames --part {PART} --db-root {database} liteprobe.fasm liteprobe.frames",
        f"xc7frames2bit --part_file {database}/{PART}/part.yaml --part_name {PART} --frm_file liteprobe.frames "
        "--output_file liteprobe.bit",
    ]
    assert (machine / "gateware" / "openxc7.xdc").read_text().splitlines() == [
        "set_property LOC K4 [get_ports {clk25}]",
        "create_clock -period 16.000 [get_nets sys_clk]",
        "create_clock -period 8.000 [get_nets timebase_clk]",
        "create_clock -period 8.000 [get_nets eth_rx0_clk]",
    ]


def test_a_clock_that_misses_or_is_not_told_ends_the_build(machine):
    (machine / "log").write_text(said({"sys": 62.49, "timebase": 130.0}))
    with pytest.raises(BuildError) as caught:
        openxc7.build(machine / "gateware", "liteprobe", PART, CLOCKS)
    assert str(caught.value).splitlines() == [
        "clock eth_rx0 is not in nextpnr's log, 125 MHz asked for",
        "clock sys reaches 62.49 MHz, 62.5 MHz asked for",
        "timing is not met: leave a part out, or use Vivado",
    ]
    assert not list(Path(machine).rglob("*.bit"))


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("CHIPDB", None, "openXC7 needs its chip databases: export CHIPDB=FOLDER"),
        ("CHIPDB", "gateware", "holds no xc7a50tfgg484-1.bin: make it by bbaexport.py"),
        ("PRJXRAY_DB_DIR", "nowhere", "needs Project X-Ray's database: export PRJXRAY_DB_DIR=FOLDER"),
    ],
)
def test_a_database_that_is_not_there_is_asked_for_before_any_tool_runs(machine, monkeypatch, variable, value, words):
    if value is None:
        monkeypatch.delenv(variable)
    else:
        monkeypatch.setenv(variable, str(machine / value))
    with pytest.raises(BuildError, match=re.escape(words)):
        openxc7.build(machine / "gateware", "liteprobe", PART, CLOCKS)
    assert not (machine / "asked").exists()


def test_the_build_copies_the_bitstream_beside_the_map(machine, monkeypatch, capsys, built):
    clocks = dict.fromkeys(("sys", "timebase", "timebase2x", "eth_rx0", "eth_rx1"), 300.0)
    (machine / "log").write_text(said(clocks))
    out = machine / "out"
    assert main([NAME, "--out", str(out)]) == 0
    assert (out / "liteprobe.bit").read_text() == "bits\n" and "bitstream: " in capsys.readouterr().out
    assert json.loads((out / "csr.json").read_text()) == json.loads((built / "csr.json").read_text())
