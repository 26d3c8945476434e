# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Trains: the payload of a probe frame, a port's states, and the record of a frame."""

from enum import IntEnum, IntFlag
from typing import Final

import numpy as np

SIGNATURE: Final = 0x4C50524F  # "LPRO"
SIGNATURE_OFFSET: Final = 0
STREAM_ID_OFFSET: Final = 4
SEQUENCE_OFFSET: Final = 6
STAMP_OFFSET: Final = 10
STAMP_OCTETS: Final = 8
FILL_OFFSET: Final = 18
PAYLOAD_MIN: Final = 18  # Shortest UDP payload of a probe frame.
CHECKSUM_OCTETS: Final = 2  # Complement at the end of the payload, where the UDP checksum is on.

#: UDP payload offset in the frame without VLAN tags; each tag (two at most) adds VLAN_TAG.
PAYLOAD_OFFSET_IPV4: Final = 14 + 20 + 8
PAYLOAD_OFFSET_IPV6: Final = 14 + 40 + 8
VLAN_TAG: Final = 4

# Header memory: everything before the sequence (MACs to stream id), byte 0 in bits 7..0 of word 0. --

HEADER_WORDS: Final = 32
HEADER_OCTETS: Final = 4 * HEADER_WORDS

NO_SEQUENCE: Final = 0xFFFFFFFF  # ``first_late`` while no frame was late.


class Fill(IntEnum):
    """What stands behind the TX stamp, to the end of the frame; starts anew in each frame."""

    ZERO = 0
    COUNTING = 1  # Octet k of the fill is k mod 256.
    PRBS = 2  # PRBS-31, see PRBS_TAPS.


#: x^31 + x^28 + 1 (ITU-T O.150), not inverted, all ones at the first octet, first bit in bit 7.
PRBS_BITS: Final = 31
PRBS_TAPS: Final = (31, 28)
PRBS_SEED: Final = (1 << PRBS_BITS) - 1


class TransmitState(IntEnum):
    """Register ``state`` of a transmit port."""

    IDLE = 0
    ARMED = 1  # Building the first frames.
    READY = 2
    WAITING = 3  # Started, waits for ``start_time``.
    RUNNING = 4


# Record ------------------------------------------------------------------------------------------

RECORD_WORDS: Final = 6  # 32-bit words, little-endian in the bus memory ``port<n>_records``.
RECORD_OCTETS: Final = 24
RECORD_DEPTH: Final = 1024  # Default records of a ring.
RECORD_SLOTS: Final = 2  # Of the meter beside a ring: slot 1 is the stream that is measured, slot 0 has all others.
RECORD_WINDOW: Final = 1024  # Frames that its memory of sequence numbers covers.

#: A record as the host holds it.
RECORD_DTYPE: Final = np.dtype(
    [("sequence", "<u4"), ("tx_stamp", "<u8"), ("rx_stamp", "<u8"), ("length", "<u2"), ("flags", "<u2")]
)


class RecordFlag(IntFlag):
    """Bits of ``flags`` in a record."""

    NONE = 0
    FCS_ERROR = 1 << 0
    LENGTH_ERROR = 1 << 1
    RUNT = 1 << 2
    GIANT = 1 << 3
    DUPLICATE = 1 << 4
    REORDERED = 1 << 5
    BEYOND_WINDOW = 1 << 6
    SYMBOL_ERROR = 1 << 7
    FOREIGN_STREAM = 1 << 8


#: Flags of a frame that is damaged: its record enters no delay, sequence or frames accumulator.
DAMAGE: Final = RecordFlag.FCS_ERROR | RecordFlag.RUNT | RecordFlag.GIANT | RecordFlag.SYMBOL_ERROR
#: Flags of a probe frame that is in no stream; records and unified headers have them alike.
FAULTS: Final = DAMAGE | RecordFlag.LENGTH_ERROR
