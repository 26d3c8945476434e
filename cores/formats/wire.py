# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Octets and ticks of the wire: the one place where gateware, host and firmware have them from. Lengths are in octets.

Source: IEEE 802.3-2022, clauses 3.1.1 (frame), 4.4.2 (interPacketGap, minFrameSize), 35.2.3 (GMII).
"""

from typing import Final

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
