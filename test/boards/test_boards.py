# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Each board and each management link elaborates to Verilog; pins and clocks are what the board has."""

import logging
import re

import pytest

from liteprobe.boards import BOARDS, board
from liteprobe.soc.build.arguments import board_for
from liteprobe.soc.config import ProbeConfig

CASES = [(name, ProbeConfig()) for name in BOARDS] + [
    ("versa_ecp5", ProbeConfig(ports=1, link="own")),
    ("colorlight_i5", ProbeConfig(link="uart")),
    ("colorlight_5a_75b", ProbeConfig(with_cpu=False)),
]


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)


def pins(constraints):
    """Return the site of each top-level port of an lpf file."""
    return dict(re.findall(r'LOCATE COMP "([^"]+)" SITE "([^"]+)";', constraints))


@pytest.mark.parametrize(("name", "config"), CASES)
def test_board_elaborates_and_constrains_every_clock(name, config, elaborated):
    design, facts = elaborated(name, config)
    verilog = (design.folder / "liteprobe.v").read_text()
    constraints = (design.folder / "liteprobe.lpf").read_text()
    assert facts["board"] == name
    for port in range(config.phys):
        assert f'FREQUENCY PORT "eth_clocks{port}_rx" 125.0 MHz;' in constraints
        assert f"posedge eth_rx{port}_clk" in verilog
    assert "posedge timebase_clk" in verilog
    assert ("VexRiscv VexRiscv" in verilog) == config.with_cpu
    sites = list(pins(constraints).values())
    assert len(sites) == len(set(sites)), "a pin is used twice"


@pytest.mark.parametrize("name", BOARDS)
def test_no_light_of_a_board_is_driven(name, elaborated):
    """The pages of docs/boards say so; only a serial link, which no build has by default, shares a pin with one."""
    design, _ = elaborated(name, ProbeConfig())
    lights = {
        pin
        for resource, _, *parts in board(name).platform.constraint_manager.available
        if resource.startswith("user_led")
        for pin in parts[0].identifiers
    }
    assert lights and lights & set(pins((design.folder / "liteprobe.lpf").read_text()).values()) == set()


def test_pll_gives_exactly_the_frequencies_that_are_asked_for(elaborated):
    for name in BOARDS:
        design, _ = elaborated(name, ProbeConfig())
        verilog = (design.folder / "liteprobe.v").read_text()
        value = {key: int(found) for key, found in re.findall(r"\.(CLK\w+_DIV)\s*\(\s*\d*'?d?(\d+)", verilog)}
        oscillator = 100.0 if name.startswith("versa") else 25.0
        feedback = re.search(r'\.FEEDBK_PATH\s*\("INT_(O[PS]\d?)"\)', verilog).group(1)
        vco = oscillator / value["CLKI_DIV"] * value["CLKFB_DIV"] * value[f"CLK{feedback}_DIV"]
        assert vco / value["CLKOP_DIV"] == board(name).sys_clk_freq / 1e6
        assert vco / value["CLKOS_DIV"] == 125.0
        assert vco / value["CLKOS2_DIV"] == 250.0
        assert "DCCA" in verilog


def test_an_emulator_of_both_directions_has_a_clock_of_its_own_on_the_i9():
    two_ways = ProbeConfig(preset="emulator", with_cpu=False, with_discipline=False, directions=2)
    assert board_for("colorlight_i9", two_ways).sys_clk_freq == 625e6 / 13  # Of the VCO that makes 125 MHz: 625 / 5.
    for name, config in (
        ("colorlight_i9", ProbeConfig(preset="emulator", with_cpu=False, with_discipline=False, directions=1)),
        ("colorlight_i9", ProbeConfig(preset="train", with_cpu=False, with_discipline=False)),
        ("colorlight_5a_75b", ProbeConfig(preset="emulator", with_cpu=False, with_discipline=False, directions=1)),
    ):
        assert board_for(name, config).sys_clk_freq == board(name).sys_clk_freq


def test_pinout_of_the_5a_75b_v8_is_that_of_the_card(elaborated):
    design, _ = elaborated("colorlight_5a_75b", ProbeConfig())
    sites = pins((design.folder / "liteprobe.lpf").read_text())
    # From q3k/chubby75, hardware_V8.0.md.
    ports = ("clk25", "eth_clocks0_rx", "eth_clocks1_tx", "eth1_tx_data[3]", "eth0_mdc", "eth0_mdio")
    assert {port: sites[port] for port in ports} == {
        "clk25": "P6",
        "eth_clocks0_rx": "J1",
        "eth_clocks1_tx": "J16",
        "eth1_tx_data[3]": "K15",
        "eth0_mdc": "R5",
        "eth0_mdio": "T4",
    }
    assert "eth1_mdio" not in sites and not [port for port in sites if "rst_n" in port]


def test_unknown_board_names_those_there_are():
    with pytest.raises(ValueError, match="choose one of colorlight_5a_75b, .*versa_ecp5"):
        board("colorlight_5a_75c")


def test_the_pps_is_sampled_four_times_a_tick():
    for name in BOARDS:
        one = board(name)
        one.crg()
        assert len(one.pps_samples().samples) == 4


def test_limits_are_said():
    assert all(board(name).limits for name in BOARDS)
