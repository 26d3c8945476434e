# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives gateware, host and firmware the octets and ticks of the wire, from one place. Lengths are in octets.

Source: IEEE 802.3-2022, clauses 3.1.1 (frame), 4.4.2 (interPacketGap, minFrameSize), 35.2.3 (GMII).
"""

from enum import IntFlag
from typing import Final, NamedTuple


PREAMBLE_OCTET: Final = 0x55
SFD_OCTET: Final = 0xD5

PREAMBLE: Final = 7  # Octets of 0x55 before the SFD, as sent.
SFD: Final = 1
FCS: Final = 4
IFG: Final = 12  # From the end of the FCS to the next preamble, at least.

#: What a frame takes on the wire beyond its own length (length never counts the FCS).
OVERHEAD: Final = PREAMBLE + SFD + FCS + IFG

MIN_LENGTH: Final = 60  # Shortest frame, without FCS; shorter ones are padded.
MAX_LENGTH: Final = 9000  # Longest frame that a program may ask for, without FCS.
GIANT_LENGTH: Final = 9018  # Longest frame that a receiver takes for good, without FCS.

FCS_POLYNOMIAL: Final = 0x04C11DB7
FCS_RESIDUE: Final = 0xC704DD7B  # CRC register after a good frame with its FCS.

LINE_RATE_BPS: Final = 1_000_000_000

# Time: a tick of the timebase is one octet of the line. --------------------------------------------

TICK_NS_BITS: Final = 3  # A tick is a power of two of nanoseconds, so gateware cuts bits off.
TICK_NS: Final = 1 << TICK_NS_BITS
TICK_PS: Final = 1000 * TICK_NS
TICKS_PER_SECOND: Final = 10**9 // TICK_NS


def slot_octets(length: int) -> int:
    """Return the octets that a frame of ``length`` (without FCS) takes on the wire, gap included."""
    return max(length, MIN_LENGTH) + OVERHEAD


# PHYs behind MDIO: their registers, and what a probe sets in them at its start. ----------------------

MDIO_ADDRESSES: Final = 8  # That PHYs of the boards can be strapped to.

# Registers of IEEE 802.3, clause 22, and of clause 45 by the two of them that lead there.
BMCR, BMSR, PHYID1, PHYID2, PARTNER, GIGABIT_PARTNER = 0, 1, 2, 3, 5, 10
MMD_CONTROL, MMD_DATA = 13, 14
RESTART: Final = 0x1340  # BMCR: negotiate, begin anew, full duplex, 1 Gb/s.
NEGOTIATION, EEE_ADVERTISEMENT, EEE_PARTNER = 7, 60, 61  # MMD and two of its registers.
EEE_BITS: Final = 0b110  # 100BASE-TX and 1000BASE-T.
EEE_FEATURE: Final = 0x803D  # Of a B50612D, in the MMD of negotiation: bit 15 on.

Write = tuple[int, int]


def mmd_write(device: int, register: int, value: int) -> list[Write]:
    """Return the writes of clause 22 that set a register of clause 45 (IEEE 802.3, 22.2.4.3.11)."""
    return [(MMD_CONTROL, device), (MMD_DATA, register), (MMD_CONTROL, 0x4000 | device), (MMD_DATA, value)]


EEE_OFF: Final = mmd_write(NEGOTIATION, EEE_ADVERTISEMENT, 0)


class PhyKind(NamedTuple):
    """A kind of PHY.

    Parameters
    ----------
    name : str
    id : int
        Registers 2 and 3, without the revision in the last four bits.
    start : list of (register, value)
        Written at the start of a probe, in order.
    """

    name: str
    id: int
    start: list[Write]


#: Broadcom, data sheet B50612D-DS100-R: p. 93 and 100 (frames above 4.5 kB), p. 106 (in-band status, skew of RXC), p. 146.
B50612D: Final = PhyKind(
    "B50612D",
    0x03625E60,
    [
        *EEE_OFF,
        *mmd_write(NEGOTIATION, EEE_FEATURE, 0),  # AutogrEEEn, too.
        (0x10, 1),  # Transmit FIFO for 9 kB: 16 ns more on the way.
        (0x18, 0x4400),  # Shadow 000: long frames; normal operation.
        (0x18, 0x8107),  # Shadow 111: in-band status on, RXC 1.9 ns behind RXD.
        (BMCR, RESTART),
    ],
)
#: Realtek: data sheet RTL8211F 1.1 names no setting for in-band status or long frames.
RTL8211F: Final = PhyKind("RTL8211F", 0x001CC910, [*EEE_OFF, (BMCR, RESTART)])
#: Marvell: its data sheet was not at hand, so only what IEEE 802.3 has is set.
M88E1512: Final = PhyKind("88E1512", 0x01410DD0, [*EEE_OFF, (BMCR, RESTART)])
PHY_KINDS: Final = (B50612D, RTL8211F, M88E1512)


def kind_of(identifier: int) -> PhyKind | None:
    """Return the kind of a PHY with this identifier (registers 2 and 3, 32 bits); None: none that is known."""
    return next((kind for kind in PHY_KINDS if kind.id == identifier & ~0xF), None)


class PhyStatus(IntFlag):
    """A port's byte of register ``phy_status``: the last in-band status (RGMII 2.0, section 3.4.1)."""

    LINK = 1 << 0
    SPEED_LOW = 1 << 1  # 00: 10 Mb/s, 01: 100 Mb/s, 10: 1 Gb/s.
    SPEED_HIGH = 1 << 2
    FULL_DUPLEX = 1 << 3
    HEARD = 1 << 4  # The PHY has sent some, once.


class MdioAnswer(IntFlag):
    """Bits of register ``phy_answer`` above the 16 of data."""

    SILENT = 1 << 16  # No PHY answered a read.
    BUSY = 1 << 17


#: Register ``phy_command``: data in bits 15..0, register in 20..16, PHY in 25..21, 1 in bit 26 to write.
MDIO_WRITE: Final = 1 << 26


def mdio_command(address: int, register: int, value: int | None = None) -> int:
    """Return what register ``phy_command`` takes to read a register of a PHY, or to write ``value`` into it."""
    return address << 21 | register << 16 | (0 if value is None else MDIO_WRITE | value)

#: Register ``phy_delay``, three bits a port from bit 3n on: back to the build's delay, a tap as it falls, less instead of more.
DELAY_BITS: Final = 3
DELAY_LOAD, DELAY_MOVE, DELAY_DOWN = 1, 2, 4
DELAY_TAPS: Final = 128
TAP_NS: Final = 0.025  # Nominal: FPGA-TN-02035-1.2, 3.11.
#: Half a period of RGMII at 1 Gb/s, less setup and hold of an ECP5 (FPGA-DS-02012-1.9, table 3.22, GDDRX1_RX.SCLK.Centered).
EYE_NS: Final = 4.0 - 2 * 0.52
