# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Checks which addresses of MDIO the host takes for PHYs, over buses that are tables."""

from typing import cast

import pytest

from liteprobe.cores.formats import MDIO_ADDRESSES, MDIO_WRITE, MdioAnswer
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.device.phy import LOOK_S, LOOKS, Phys
from liteprobe.host.device.registers import Registers

RTL8211F = 0x001CC910  # OUI 00:07:32 of Realtek, model 0x11: IEEE 802.3, 22.2.4.3.1.
BROADCOM = 0x600D84A2


class Bus:
    """Stands in for the registers of a probe: ``identifiers`` are those of PHYs by address, the others are silent."""

    def __init__(self, identifiers: dict[int, int], busy_looks: int = 0) -> None:
        self.identifiers = identifiers
        self.busy_looks = busy_looks
        self.looks = 0
        self.answer = 0

    def write(self, name: str, command: int) -> None:
        assert name == "phy_command" and not command & MDIO_WRITE
        address, register = command >> 21 & 31, command >> 16 & 31
        assert address < MDIO_ADDRESSES and register in (2, 3)
        whole = self.identifiers.get(address)
        self.answer = MdioAnswer.SILENT | 0xFFFF if whole is None else (whole >> 16, whole & 0xFFFF)[register - 2]
        self.looks = 0

    def read(self, name: str) -> int:
        assert name == "phy_answer"
        self.looks += 1
        return MdioAnswer.BUSY if self.looks <= self.busy_looks else self.answer


def found(bus: Bus) -> dict[int, int]:
    waits: list[float] = []
    phys = Phys(cast(Registers, bus), waits.append).found()
    assert waits.count(LOOK_S) == len(waits)
    return phys


@pytest.mark.parametrize(
    ("there", "phys"),
    [
        ({}, {}),
        ({1: RTL8211F}, {1: RTL8211F}),
        ({0: RTL8211F, 7: BROADCOM}, {0: RTL8211F, 7: BROADCOM}),
        ({2: 0x0000FFFF, 3: 0xFFFFFFFF, 4: BROADCOM}, {4: BROADCOM}),  # A line that is held low, and one that floats.
        ({0: RTL8211F, 1: RTL8211F, 2: RTL8211F}, {1: RTL8211F, 2: RTL8211F}),  # Address 0 is everybody's.
        ({0: RTL8211F, 1: RTL8211F}, {0: RTL8211F, 1: RTL8211F}),
        ({0: BROADCOM, 1: BROADCOM, 2: BROADCOM}, {0: BROADCOM, 1: BROADCOM, 2: BROADCOM}),
    ],
)
def test_a_phy_is_what_answers_with_an_identifier_of_its_own(there: dict[int, int], phys: dict[int, int]) -> None:
    assert found(Bus(there)) == found(Bus(there, busy_looks=3)) == phys


def test_mdio_that_stays_busy_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ProbeError, match="MDIO does not end an access: reset the probe"):
        found(Bus({}, busy_looks=LOOKS))
