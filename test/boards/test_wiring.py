# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""docs/wiring.md names the pins that the boards have."""

import re

import pytest

from liteprobe.boards import BOARDS, board
from liteprobe.host.base.folders import ROOT

PAGE = ROOT / "docs" / "wiring.md"
SIGNALS = {"PPS in": "pps", "PPS out": "pps_out", "UART out": "tx", "UART in": "rx"}
# Connectors as litex-boards and as people call them; number of the pin that litex-boards counts as 0.
CONNECTORS = {"j1": ("J1", 1), "pmode": ("PMOD E", 1), "X3": ("X3", 0)}


def page_rows(name: str) -> dict[str, list[str]]:
    """Return connector and site of each signal, from the table of a board."""
    (section,) = re.findall(rf"^### {name}\n(.*?)(?=^#|\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")]
    return {signal: row[1:3] for row in rows for signal in SIGNALS if row[0].startswith(signal)}


def asked_for(name: str) -> dict[str, str]:
    """Return the place on a connector of each signal, as the board's file asks for it."""
    places = {}
    for resource, _, *parts in board(name).platform.constraint_manager.available:
        if resource in ("pps", "pps_out"):
            places[resource] = parts[0].identifiers[0]
        elif resource == "gnss":
            places |= {part.name: part.constraints[0].identifiers[0] for part in parts if hasattr(part, "constraints")}
    return places


def sites(name: str) -> dict[str, str]:
    """Return the site of each signal, as it goes into the constraints of a build."""
    one = board(name)
    uart = one.gnss()
    signals = {"pps": one.pps(), "pps_out": one.pps_out(), "tx": uart.tx, "rx": uart.rx}
    found = {signal: pins[0] for signal, pins, *_ in one.platform.constraint_manager.get_sig_constraints()}
    for record, pins, _, (_, _, part) in one.platform.constraint_manager.get_sig_constraints():
        if part:
            found[getattr(record, part, record)] = pins[0]
    return {what: found[signal] for what, signal in signals.items()}


@pytest.mark.parametrize("name", BOARDS)
def test_page_has_the_sites_of_the_board(name: str) -> None:
    rows = page_rows(name)
    assert {SIGNALS[signal]: site for signal, (_, site) in rows.items()} == sites(name)


@pytest.mark.parametrize("name", BOARDS)
def test_page_has_the_connectors_of_the_board(name: str) -> None:
    said = {SIGNALS[signal]: place for signal, (place, _) in page_rows(name).items()}
    wanted = {}
    for what, place in asked_for(name).items():
        connector, number = place.split(":")
        called, first = CONNECTORS[connector]
        wanted[what] = f"{called} pin {int(number) + first}"
    # The 5A-75B has its input on the button, which is on no connector of litex-boards.
    assert said == {"pps": "J19 KEY+"} | wanted
