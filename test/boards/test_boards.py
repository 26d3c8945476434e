# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Each board elaborates to Verilog with each link; pins, clocks and margins of I/O are those of boards and data sheets."""

import logging
import re
from collections import Counter
from functools import cache
from types import SimpleNamespace

import pytest
from boards_page import margin_table

from liteprobe.boards import BOARDS, OTHER_NAMES, board, io_timing
from liteprobe.cores.memory.sdram import T_RCD, T_RP
from liteprobe.soc.build.arguments import board_for
from liteprobe.soc.build.bitstream import summary
from liteprobe.soc.config import ProbeConfig

FAMILIES = ("colorlight_5a_75b", "colorlight_i9", "versa_ecp5")  # Others of a family wait for --full.
NAMES = [pytest.param(name, marks=[] if name in FAMILIES else [pytest.mark.full]) for name in BOARDS]
CASES = [pytest.param(one.values[0], ProbeConfig(), marks=one.marks) for one in NAMES]
OTHER_CASES = [
    ("versa_ecp5", ProbeConfig(ports=1, link="own")),
    ("colorlight_i5", ProbeConfig(link="uart")),
    pytest.param("colorlight_5a_75b", ProbeConfig(with_cpu=False), marks=pytest.mark.full),
]


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)


def pins(constraints):
    """Return the site of each top-level port of an lpf file."""
    return dict(re.findall(r'LOCATE COMP "([^"]+)" SITE "([^"]+)";', constraints))


@pytest.mark.parametrize(("name", "config"), CASES + OTHER_CASES)
def test_board_elaborates_and_constrains_every_clock(name, config, gateware):
    made = gateware(name, config)
    assert made.facts["board"] == name
    for port in range(config.phys):
        assert f'FREQUENCY PORT "eth_clocks{port}_rx" 125.0 MHz;' in made.constraints
        assert f"posedge eth_rx{port}_clk" in made.verilog
    assert "posedge timebase_clk" in made.verilog
    assert ("VexRiscv VexRiscv" in made.verilog) == config.with_cpu
    sites = list(pins(made.constraints).values())
    assert len(sites) == len(set(sites)), "a pin is used twice"


@pytest.mark.parametrize("name", NAMES)
def test_no_light_of_a_board_is_driven(name, gateware):
    """The pages of docs/boards say so; only a serial link, which no build has by default, shares a pin with one."""
    lights = {
        pin
        for resource, _, *parts in board(name).platform.constraint_manager.available
        if resource.startswith("user_led")
        for pin in parts[0].identifiers
    }
    assert lights and lights & set(pins(gateware(name, ProbeConfig()).constraints).values()) == set()


@pytest.mark.parametrize("name", NAMES)
def test_pll_gives_exactly_the_frequencies_that_are_asked_for(name, gateware):
    verilog = gateware(name, ProbeConfig()).verilog
    [pll] = plls_of(verilog)
    vco_mhz = vco_of(pll, 100.0 if name.startswith("versa") else 25.0)
    asked = {"CLKOP": board(name).sys_clk_freq / 1e6, "CLKOS": 125.0, "CLKOS2": 250.0}
    assert {output: vco_mhz / pll[f"{output}_DIV"] for output in asked} == asked
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


def test_pinout_of_the_5a_75b_v8_is_that_of_the_card(gateware):
    sites = pins(gateware("colorlight_5a_75b", ProbeConfig()).constraints)
    # From q3k/chubby75, hardware_V8.0.md.
    found = {"clk25": "P6", "eth_clocks0_rx": "J1", "eth_clocks1_tx": "J16", "eth1_tx_data[3]": "K15"}
    found |= {"eth0_mdc": "R5", "eth0_mdio": "T4"}
    assert {port: sites[port] for port in found} == found
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


# Receiver cards -----------------------------------------------------------------------------------


# Pins that q3k/chubby75 found on the cards: those of each port are clock, data and control of TX, then of RX.
# 5a-75b/hardware_V8.0.md and hardware_V8.2.md (U11 is port 0, U13 port 1), 5a-75e/hardware_V6.0.md, which is of V8.0,
# too (U32, U40).
V8_0 = {"clock": "P6", "key": "R7", "j1": "C4 D4 E4", "sdram_clock": "C8", "reset": "R6"}
V8_0["ports"] = [
    ["L1", "M2 M1 P1 R1", "L2", "J1", "K2 J3 K1 K3", "J2"],
    ["J16", "K16 J15 J14 K15", "K14", "M16", "M15 R16 L15 L16", "P16"],
]
# 5a-75b/hardware_V7.0.md and 5a-75e/hardware_V7.1.md (U3 is port 0, U7 port 1).
V7_0 = {"clock": "P6", "key": "M13", "j1": "F3 F1 G3", "sdram_clock": "C6", "reset": "P5"}
V7_0["ports"] = [
    ["M2", "L1 L3 P2 L4", "M3", "M1", "N1 M5 N5 M6", "N6"],
    ["M12", "T14 R12 R13 R14", "R15", "M16", "P13 N13 P14 M15", "L15"],
]
CARDS = dict.fromkeys((f"colorlight_5a_{card}" for card in ("75b", "75b_v8_2", "75e_v6_0", "75e_v8_0")), V8_0)
CARDS |= {"colorlight_5a_75b_v7_0": V7_0, "colorlight_5a_75e": V7_0}


def requested(name):
    """Return what a probe takes of a card: its platform, once all is asked for."""
    card = board(name)
    card.crg()
    for port in range(card.ports):
        card.phy(port)
    card.pps()
    card.pps_out()
    card.gnss()
    card.sdram()
    card.flash()
    return card.platform


def sites_of(platform):
    """Return the sites of each pin by resource, number and part ("" where it has none)."""
    found = {}
    for _, pins, _, (resource, number, part) in platform.constraint_manager.get_sig_constraints():
        found[resource, number, part or ""] = " ".join(pins)
    return found


@pytest.mark.parametrize("name", CARDS)
def test_pins_of_a_card_are_those_that_were_found_on_it(name):
    rows, sites = CARDS[name], sites_of(requested(name))
    assert sites["clk25", 0, ""] == rows["clock"]
    assert sites["user_btn_n", 0, ""] == rows["key"]
    assert sites["sdram_clock", 0, ""] == rows["sdram_clock"]
    assert " ".join([sites["pps_out", 0, ""], sites["gnss", 0, "tx"], sites["gnss", 0, "rx"]]) == rows["j1"]
    for port, pins in enumerate(rows["ports"]):
        of_direction = [
            (
                sites["eth_clocks", port, direction],
                sites["eth", port, f"{direction}_data"],
                sites["eth", port, f"{direction}_ctl"],
            )
            for direction in ("tx", "rx")
        ]
        assert [*of_direction[0], *of_direction[1]] == pins


@pytest.mark.parametrize("name", CARDS)
def test_the_reset_of_the_phys_is_never_driven(name):
    """One of them makes the FPGA's own clock, from revision 8.0 on (6.0 on the 5A-75E)."""
    used = {pin for pins in sites_of(requested(name)).values() for pin in pins.split()}
    assert CARDS[name]["reset"] not in used and "P6" in used


def test_each_card_was_compared():
    cards = {name for name in [*BOARDS, *OTHER_NAMES] if name.startswith("colorlight_5a")}
    assert set(CARDS) == cards


def test_another_name_is_of_a_board_that_there_is():
    assert {name: board(name).name for name in OTHER_NAMES} == OTHER_NAMES


WITHOUT_EXTRAS = ProbeConfig(with_cpu=False, with_discipline=False)
WITH_SDRAM = [one for name, one in zip(BOARDS, NAMES, strict=True) if board(name).sdram_bytes]
PLL_CASES = [*CASES, pytest.param("colorlight_i5", WITHOUT_EXTRAS, marks=pytest.mark.full)]


@pytest.fixture(scope="module")
def gateware(elaborated):
    """Gives Verilog and constraints of a board with a configuration, once."""

    @cache
    def make(name, config):
        design, facts = elaborated(name, config)
        verilog, constraints = [(design.folder / f"liteprobe.{suffix}").read_text() for suffix in ("v", "lpf")]
        return SimpleNamespace(verilog=verilog, constraints=constraints, facts=facts)

    return make


def by_what(margins):
    """Return worst and typical margins by what they are."""
    return {margin.what: (pytest.approx(margin.worst_ns), pytest.approx(margin.typical_ns)) for margin in margins}


# Arithmetic, in nanoseconds -----------------------------------------------------------------------


def test_two_nanoseconds_in_the_fpga_leave_no_setup_behind_a_phy_that_delays_its_clock():
    margins = by_what(io_timing.rgmii_receive(io_timing.B50612D, 2.0, tap_spread=0))
    # The PHY's setup, less the FPGA's, less the 41 taps of 25 ps that are beyond the centred interface.
    assert margins["setup"] == (1.2 - 0.52 - 1.025, 2.0 - 0.52 - 1.025)
    assert [round(float(value.expected), 3) for value in margins["setup"]] == [-0.345, 0.455]
    assert margins["hold"] == (1.2 - 0.52 + 1.025, 2.0 - 0.52 + 1.025)


def test_no_delay_in_the_fpga_leaves_no_hold():
    margins = by_what(io_timing.rgmii_receive(io_timing.PHY_88E1512, 0, tap_spread=0))
    assert margins == {"setup": (0.68 + 0.975, 1.48 + 0.975), "hold": (0.68 - 0.975, 1.48 - 0.975)}


def test_what_taps_may_be_off_by_counts_beyond_the_centre_alone():
    assert by_what(io_timing.rgmii_receive(io_timing.B50612D, 2.0))["setup"] == (1.2 - 0.52 - 1.3 * 1.025, 0.455)
    assert by_what(io_timing.rgmii_receive(io_timing.B50612D, 0.975))["setup"] == (0.68, 1.48)


def test_sent_data_is_held_until_the_earliest_next_edge():
    # 45 % of 8 ns, half of 0.1 ns of jitter, 0.3 ns of skew; the PHYs want -0.9 and 2.9, or 1 either way of 2 ns.
    assert by_what(io_timing.rgmii_transmit(io_timing.B50612D)) == {"setup": (0.6, 0.9), "hold": (0.35, 1.1)}
    assert by_what(io_timing.rgmii_transmit(io_timing.RTL8211F)) == {"setup": (0.7, 1.0), "hold": (0.25, 1.0)}


def test_an_inverted_clock_of_the_sdram_leaves_no_time_to_read():
    margins = by_what(io_timing.sdram(io_timing.GRADE_6, io_timing.M12L64322A_5, 20, phase=180))
    assert margins["read setup"][1] == 10 - 4.1 - 6 - 0.85
    assert round(margins["read setup"][1].expected, 2) == -0.95


def test_a_quarter_of_a_period_leaves_time_to_read_and_to_write():
    margins = by_what(io_timing.sdram(io_timing.GRADE_6, io_timing.M12L64322A_7, 20, phase=90))
    # The clock may be off by 5 % of its period and half of 2.5 % of jitter: 1.25 ns. Registers are 0.505 + 0.3 ns apart.
    assert margins == {
        "write setup": (5 - 2 - 1.25 - 0.805, 3.0),
        "write hold": (15 - 1.5 - 1.25 - 0.805, 13.5),
        "read setup": (15 - 4.1 - 8 - 0.85 - 1.25, 2.05),
        "read hold": (5 + 2 - 0.98 - 1.25, 6.02),
    }


def test_a_memory_of_its_own_clock_is_read_in_the_third_cycle_and_written_with_the_falling_edge():
    margins = by_what(io_timing.late_sdram(io_timing.GRADE_6, io_timing.M12L64322A_5, 12.5, phase=9))
    # The chip's clock is 12.5 + 0.3125 ns behind the edge of the command, which leaves 6.25 ns after it. Off are 5 % and half of
    # 2.5 % of 12.5 ns, for what is written 0.505 + 0.3 ns and another 5 % of the duty cycle, too.
    assert margins == {
        "write setup": (6.5625 - 1.5 - 0.78125 - 0.805 - 0.625, 5.0625),
        "write hold": (18.75 - 12.8125 - 1 - 0.78125 - 0.805 - 0.625, 4.9375),
        "read setup": (25 - 12.8125 - 4.1 - 6 - 0.85 - 0.78125, 1.2375),
        "read hold": (0.3125 + 2 - 0.98 - 0.78125, 1.3325),
    }


def test_no_faster_memory_leaves_as_much_to_the_slowest_chip_of_the_boards():
    def least(mhz):
        """Return the best of the least margins, over all phases."""
        found = [
            min(
                one.worst_ns
                for one in io_timing.late_sdram(io_timing.GRADE_6, io_timing.M12L64322A_5, 1e3 / mhz, phase)
            )
            for phase in range(-60, 90)
        ]
        return max(found)

    assert least(80) > 0.4 and least(87.5) > 0 > least(88.5)
    assert least(100) == pytest.approx(-0.6, abs=0.1)


def test_the_flash_has_half_a_bit_to_take_and_a_whole_one_to_give():
    margins = by_what(io_timing.flash(io_timing.GRADE_6, io_timing.W25Q32JV, 20))
    assert margins == {
        "write setup": (40 - 15 - 2, 38),
        "write hold": (40 - 15 - 3, 37),
        "select setup": (40 - 15 - 5, 35),
        "read setup": (80 - 30 - 6, 74),
        "read hold": (1.5 - 0.505, 1.5),
    }


def test_a_delay_out_of_reach_is_refused():
    assert [io_timing.taps_of(delay) for delay in (0, 0.975, 3.175)] == [0, 39, 127]
    with pytest.raises(ValueError, match="use 0 to 3.175 ns"):
        io_timing.taps_of(3.2)


# Boards -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOARDS)
def test_each_margin_of_a_board_is_positive_in_the_worst_case(name):
    margins = board(name).io_margins()
    buses = {margin.bus.split(" ")[0] for margin in margins}
    assert buses == {"RGMII", "flash"} | ({"SDRAM"} if board(name).sdram_bytes else set())
    assert [margin for margin in margins if margin.worst_ns <= 0 or margin.typical_ns < margin.worst_ns] == []


@pytest.mark.parametrize("name", [name for name in BOARDS if board(name).sdram_bytes])
def test_each_margin_of_a_memory_of_its_own_clock_is_positive_in_the_worst_case(name):
    margins = [margin for margin in board(name).io_margins(has_clock=True) if margin.bus.startswith("SDRAM")]
    assert {margin.bus.split(" ", 2)[2] for margin in margins} == {"at 80 MHz"}
    assert len(margins) == 4 * len(board(name).parts.sdrams) and min(margin.worst_ns for margin in margins) > 0.4


def test_every_grade_of_the_sdrams_is_read_and_written_in_time_but_two_ask_for_more_between_commands():
    chips = [chip for chip in vars(io_timing).values() if isinstance(chip, io_timing.Sdram)]
    assert len(chips) == 9
    for chip in chips:
        assert min(margin.worst_ns for margin in io_timing.sdram(io_timing.GRADE_6, chip, 20, 90)) > 0.75, chip.name
    assert {chip.name for chip in chips if max(chip.rcd / T_RCD, chip.rp / T_RP) > 1e9} == {
        "M12L64322A-7",
        "EM638325-7",
    }


@pytest.mark.parametrize("name", BOARDS)
def test_the_sdrams_of_a_board_have_the_time_between_commands_that_they_ask_for(name):
    assert all(chip.rcd <= T_RCD * 1e9 and chip.rp <= T_RP * 1e9 for chip in board(name).parts.sdrams)


# Gateware -----------------------------------------------------------------------------------------


def plls_of(verilog):
    """Return the parameters of each PLL."""
    found = re.findall(r"EHXPLLL #\((.*?)^\)", verilog, re.MULTILINE | re.DOTALL)
    return [
        {
            name: int(number) if number else text
            for name, number, text in re.findall(r"\.(\w+)\s*\((?:\d+'d(\d+)|\"(\w+)\")\)", pll)
        }
        for pll in found
    ]


def vco_of(pll, oscillator_mhz):
    """Return the frequency of the VCO (MHz)."""
    path = pll["FEEDBK_PATH"].removeprefix("INT_")
    return oscillator_mhz / pll["CLKI_DIV"] * pll["CLKFB_DIV"] * pll[f"CLK{path}_DIV"]


def outputs_of(pll, vco_mhz):
    """Return frequency (MHz) and phase (ns behind the input's edge) of each output of a PLL."""
    outputs = {}
    for name in ("CLKOP", "CLKOS", "CLKOS2", "CLKOS3"):
        if pll.get(f"{name}_ENABLE") == "ENABLED":
            cycles = pll[f"{name}_CPHASE"] - (pll[f"{name}_DIV"] - 1) + pll[f"{name}_FPHASE"] / 8
            outputs[name] = (vco_mhz / pll[f"{name}_DIV"], cycles * 1000 / vco_mhz)
    return outputs


@pytest.mark.parametrize(("name", "config"), PLL_CASES)
def test_the_pll_is_within_its_data_sheet_and_its_ratios_are_exact(name, config, gateware):
    oscillator_mhz = 100.0 if name.startswith("versa") else 25.0
    made = gateware(name, config)
    [pll] = plls_of(made.verilog)
    vco_mhz = vco_of(pll, oscillator_mhz)
    outputs = outputs_of(pll, vco_mhz)
    assert 400 <= vco_mhz <= 800  # FPGA-DS-02012-1.9, table 3.23: fVCO, fPFD and fIN, fOUT.
    assert 10 <= oscillator_mhz / pll["CLKI_DIV"] <= 400
    assert all(3.125 <= mhz <= 400 for mhz, _ in outputs.values())
    assert outputs["CLKOP"] == (board(name).sys_clk_freq / 1e6, 0)
    assert outputs["CLKOS"] == (125.0, 0)
    if config.with_discipline:
        assert outputs["CLKOS2"] == (250.0, 0)
    wants_sdram = config.main_ram_kind(board(name)) == "sdram"
    if wants_sdram:
        assert outputs["CLKOS3"] == (50.0, 5.0)
    assert ("sdram_clk" in made.verilog) == wants_sdram


def instances(verilog, module):
    """Return the text of each instance of a module."""
    return re.findall(rf"^{module}(?: #\(.*?\))? {module}(?:_\d+)? ?\(.*?^\);", verilog, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", NAMES)
def test_received_data_is_delayed_as_the_margins_say_and_sent_data_is_not(name, gateware):
    verilog = gateware(name, ProbeConfig()).verilog
    taps = [int(value) for value in re.findall(r"\.DEL_VALUE \(\d+'d(\d+)\)", verilog)]
    assert sorted(taps) == [0] * 12 + [39] * 10  # Two ports: clock, control and data out; control and data in.
    assert board(name).rx_delay == pytest.approx(39 * 0.025)


def test_the_memory_of_a_probe_that_replays_has_a_pll_of_its_own_and_late_pins(elaborated):
    config = ProbeConfig(preset="replay", ports=1, with_cpu=False)
    design, facts = elaborated("colorlight_i9", config)
    verilog = (design.folder / "liteprobe.v").read_text()
    first, second = plls_of(verilog)
    outputs = outputs_of(first, vco_of(first, 25))
    assert [outputs[name] for name in ("CLKOP", "CLKOS", "CLKOS2")] == [(50.0, 0), (125.0, 0), (250.0, 0)]
    outputs = outputs_of(second, vco_of(second, 25))
    assert (outputs["CLKOP"], outputs["CLKOS"]) == ((80.0, 0), (80.0, pytest.approx(12.5 * 9 / 360)))
    assert design.asked_mhz["memory"] == 80.0 and "SDRAM M12L64322A-5 at 80 MHz" in {
        one["bus"] for one in facts["io_margins"]
    }
    late = [text for text in instances(verilog, "ODDRX1F") if "memory_clk" in text]
    assert len(late) == 32 + 11 + 2 + 3  # Data, address, banks, commands; cke and cs_n are tied on the board.


@pytest.mark.parametrize("name", WITH_SDRAM)
def test_the_pin_of_the_sdram_clock_is_fast_rises_with_its_domain_and_has_a_global_net(name, gateware):
    made = gateware(name, ProbeConfig())
    assert 'IOBUF PORT "sdram_clock" SLEWRATE=FAST;' in made.constraints
    [pin] = [text for text in instances(made.verilog, "ODDRX1F") if "sdram_clk" in text]
    assert re.search(r"\.D0\s+\(1'd1\),\s+\.D1\s+\(1'd0\),\s+\.SCLK\s+\(sdram_clk\)", pin)
    assert re.search(r"\.Q\s+\(sdram_clock\)", pin)
    assert [text for text in instances(made.verilog, "DCCA") if re.search(r"\.CLKO\s+\(sdram_clk\)", text)]


@pytest.mark.parametrize("name", WITH_SDRAM)
def test_data_pins_of_the_sdram_have_output_enable_and_input_in_registers_of_the_io(name, gateware):
    """nextpnr puts a register into the I/O only where nothing else is on the net between them."""
    verilog = gateware(name, ProbeConfig()).verilog
    driven_by = {re.search(r"\.Q\s+\(([^)]+)\)", text)[1] for text in instances(verilog, "OFS1P3BX")}
    taken_by = {re.search(r"\.D\s+\(([^)]+)\)", text)[1] for text in instances(verilog, "IFS1P3BX")}
    ports = [dict(re.findall(r"\.(\w+)\s+\((.+)\)", text)) for text in instances(verilog, "TRELLIS_IO")]
    ports = [port for port in ports if port["B"].startswith("sdram_dq")]
    assert {port["B"] for port in ports} == {f"sdram_dq[{bit}]" for bit in range(32)}
    words = Counter(re.findall(r"\w+", verilog))
    for port in ports:
        assert {port["I"], port["T"]} <= driven_by and port["O"] in taken_by
        assert all(words[port[end]] == 3 for end in "ITO")  # Declared, driven, taken.


# Reports ------------------------------------------------------------------------------------------


def test_a_report_has_the_margins_and_its_summary_the_least(gateware):
    facts = dict(gateware("colorlight_5a_75b", ProbeConfig()).facts)
    assert facts["io_margins"] == [margin._asdict() for margin in board("colorlight_5a_75b").io_margins()]
    report = {"seed": 1, "seconds": {"total": 1.0}, "area": {}, "clocks": {}}
    line = summary(facts | report).splitlines()[-1]
    assert line == "  least margin of I/O, by data sheets: 0.25 ns, RGMII transmit, hold (typically 1.00 ns)"
    assert margin_table(facts).splitlines()[2:] == [
        "| RGMII receive | setup | 0.68 ns | 1.48 ns |",
        "| RGMII transmit | hold | 0.25 ns | 1.00 ns |",
        "| flash W25Q32JV | read hold | 0.99 ns | 1.50 ns |",
        "| SDRAM M12L64322A-5 | write setup | 1.45 ns | 3.50 ns |",
    ]
    del facts["io_margins"]  # As in a report of before.
    assert len(summary(facts | report).splitlines()) == 1
