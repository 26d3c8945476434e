# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Numbers of IEEE 802.3 that the cores, the models and the tests share. Lengths are in octets.

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

OCTET_NS: Final = 8  # One octet at 1 Gb/s, and one tick of the timebase.


def slot_octets(length: int) -> int:
    """Return the octets that a frame of ``length`` (without FCS) takes on the wire, gap included."""
    return max(length, MIN_LENGTH) + OVERHEAD
