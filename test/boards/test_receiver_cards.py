# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Pins of the Colorlight receiver cards are those that q3k/chubby75 found on them, not those that litex-boards says."""

import pytest

from liteprobe.boards import BOARDS, OTHER_NAMES, board

# Rows of q3k/chubby75, 5a-75b/hardware_V8.0.md and hardware_V8.2.md (U11 is port 0, U13 port 1).
V8_0 = {
    "clock": "P6",
    "key": "R7",
    "j1": "C4 D4 E4",
    "sdram_clock": "C8",
    "reset": "R6",
    "ports": [
        {"txc": "L1", "txd": "M2 M1 P1 R1", "txctl": "L2", "rxc": "J1", "rxd": "K2 J3 K1 K3", "rxctl": "J2"},
        {
            "txc": "J16",
            "txd": "K16 J15 J14 K15",
            "txctl": "K14",
            "rxc": "M16",
            "rxd": "M15 R16 L15 L16",
            "rxctl": "P16",
        },
    ],
}
# 5a-75b/hardware_V7.0.md (U3 is port 0, U7 port 1).
V7_0 = {
    "clock": "P6",
    "key": "M13",
    "j1": "F3 F1 G3",
    "sdram_clock": "C6",
    "reset": "P5",
    "ports": [
        {"txc": "M2", "txd": "L1 L3 P2 L4", "txctl": "M3", "rxc": "M1", "rxd": "N1 M5 N5 M6", "rxctl": "N6"},
        {
            "txc": "M12",
            "txd": "T14 R12 R13 R14",
            "txctl": "R15",
            "rxc": "M16",
            "rxd": "P13 N13 P14 M15",
            "rxctl": "L15",
        },
    ],
}
# 5a-75e/hardware_V7.1.md (U3 is port 0, U7 port 1).
E7_1 = {
    "clock": "P6",
    "key": "M13",
    "j1": "F3 F1 G3",
    "sdram_clock": "C6",
    "reset": "P5",
    "ports": [
        {"txc": "M2", "txd": "L1 L3 P2 L4", "txctl": "M3", "rxc": "M1", "rxd": "N1 M5 N5 M6", "rxctl": "N6"},
        {
            "txc": "M12",
            "txd": "T14 R12 R13 R14",
            "txctl": "R15",
            "rxc": "M16",
            "rxd": "P13 N13 P14 M15",
            "rxctl": "L15",
        },
    ],
}
# 5a-75e/hardware_V6.0.md, which is of V8.0, too (U32 is port 0, U40 port 1).
E6_0 = {
    "clock": "P6",
    "key": "R7",
    "j1": "C4 D4 E4",
    "sdram_clock": "C8",
    "reset": "R6",
    "ports": [
        {"txc": "L1", "txd": "M2 M1 P1 R1", "txctl": "L2", "rxc": "J1", "rxd": "K2 J3 K1 K3", "rxctl": "J2"},
        {
            "txc": "J16",
            "txd": "K16 J15 J14 K15",
            "txctl": "K14",
            "rxc": "M16",
            "rxd": "M15 R16 L15 L16",
            "rxctl": "P16",
        },
    ],
}
CARDS = {
    "colorlight_5a_75b": V8_0,
    "colorlight_5a_75b_v8_2": V8_0,
    "colorlight_5a_75b_v7_0": V7_0,
    "colorlight_5a_75e": E7_1,
    "colorlight_5a_75e_v6_0": E6_0,
    "colorlight_5a_75e_v8_0": E6_0,
}


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
        assert {
            "txc": sites["eth_clocks", port, "tx"],
            "txd": sites["eth", port, "tx_data"],
            "txctl": sites["eth", port, "tx_ctl"],
            "rxc": sites["eth_clocks", port, "rx"],
            "rxd": sites["eth", port, "rx_data"],
            "rxctl": sites["eth", port, "rx_ctl"],
        } == pins


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
