# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives gateware, host and models the characters and times of XGMII at 10 Gb/s, from one place.

Source: IEEE 802.3-2022, clauses 46.3.1 and 46.3.2 (characters, lanes), 46.3.1.4 (deficit idle count), 46.3.4 (link faults).
"""

from enum import IntEnum
from typing import Final

LANES: Final = 8  # Of 64 bits: two columns of the 32 bits that the standard has.
COLUMN: Final = 4  # Lanes of a column. A frame starts in the first lane of one.

XGMII_RATE_BPS: Final = 10_000_000_000
CYCLE_PS: Final = 6_400  # Of 156.25 MHz.
COLUMN_PS: Final = CYCLE_PS // 2  # What a stamp can tell apart: the lane in which a frame starts is known.


class Control(IntEnum):
    """Characters of XGMII whose control bit is set."""

    IDLE = 0x07
    SEQUENCE = 0x9C  # Lane 0 of an ordered set of four octets.
    START = 0xFB  # In the place of the first octet of the preamble.
    TERMINATE = 0xFD
    ERROR = 0xFE


class LinkState(IntEnum):
    """Last octet of a sequence ordered set, and what a link has."""

    OK = 0
    LOCAL_FAULT = 1  # The receiver hears nothing that makes sense.
    REMOTE_FAULT = 2  # The other end says so.


FAULT_SEQUENCES: Final = 4  # Of one type make a link fault,
FAULT_COLUMNS: Final = 128  # and so many columns without one end it.
