# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lays out what a host streams to a probe while it sends: datagrams into a ring, records of a trace, configuration sets.

All words are 32 bits, little-endian: octet 0 of a datagram's payload, of a frame, of a set is in bits 7..0 of its word.
See docs/design/replay.md.
"""

from enum import IntEnum, IntFlag
from typing import Final

from liteprobe.cores.formats.probe import DMA_SLOT_BYTES

# Ring: what a host streams lies in the SDRAM, a ring a port. -----------------------------------------

RING_WORDS: Final = 1 << 17  # 512 KiB a port. A position counts words of a session and wraps at 2^32.
TABLE_ENTRIES: Final = 1 << 16  # Of configuration sets, 32 bits each; one table a probe.

# Datagrams, by UDP. -----------------------------------------------------------------------------------

REPLAY_PORT: Final = 1236  # At the probe, both ways.
DATAGRAM_MAGIC: Final = 0x4C52  # "RL" on the wire.
DATAGRAM_HEADER_WORDS: Final = 3  # DATAGRAM_MAGIC << 16 | flags << 8 | port; session << 16 | lease; position.
DATAGRAM_WORDS: Final = 365  # Of payload at most: 1500 octets of IP.
STATUS_WORDS: Final = 6  # Of an answer: the first two words as above; accepted, limit, counts, frames.
STATUS_DATAGRAMS: Final = 4  # Accepted since the last answer: time for one.
STATUS_SHARES: Final = 16  # Likewise, whenever the ring is free up to another multiple of this part of it.
STATUS_PERIOD_S: Final = 0.01  # Likewise, after so long; strangers are answered once in this time at most.


class DatagramFlag(IntFlag):
    """Bits of the flags of a datagram to the probe."""

    NONE = 0
    ASK = 1 << 0  # Answer at once.


class StatusFlag(IntFlag):
    """Bits of the flags of an answer."""

    NONE = 0
    GAP = 1 << 0  # Since the last datagram that was accepted one was ahead: something is missing, so go back to it.
    STRANGER = 1 << 1  # To whoever sent a datagram of another session or lease than these, and was not taken for a host's.
    RUNNING = 1 << 2  # The port's program of a trace or of sets has begun.
    UNDERRUN = 1 << 3  # It was kept waiting at least once.


# Slots, by LitePCIe's DMA reader: a datagram each, with its length. ------------------------------------

SLOT_HEADER_WORDS: Final = 4  # Those of a datagram, whose flags are ignored; then how many words follow, 1 to SLOT_WORDS.
SLOT_WORDS: Final = DMA_SLOT_BYTES // 4 - SLOT_HEADER_WORDS  # What a slot has after its words is ignored.

# Trace: a record a frame. -----------------------------------------------------------------------------

TRACE_HEADER_WORDS: Final = 2  # Ticks to the start of this frame from that of the one before, or of the program; then bits:
TRACE_LENGTH_BIT: Final = 0  # 14 bits: octets on the wire without FCS, 60 to 9000.
TRACE_SNAP_BIT: Final = 14  # 14 bits: octets that follow, at most the length; the rest of the frame is zero.
TRACE_FLAGS_BIT: Final = 28


class TraceFlag(IntFlag):
    """Bits from TRACE_FLAGS_BIT of the second word of a record."""

    NONE = 0
    WAIT = 1 << 0  # Not a frame: its ticks are added to those of the next record. Length and snap are 0.
    STAMP = 1 << 1  # A third word follows, before the octets: where the TX stamp goes.
    END = 1 << 3  # The last record of the trace.


# The third word: bits of ``stamp_layout``. The stamp's last octet is within the snap octets.
TRACE_STAMP_OFFSET_BIT: Final = 0  # 8 bits: first octet in the frame.
TRACE_STAMP_OCTETS_BIT: Final = 8  # 3 bits: less one.
TRACE_STAMP_SHIFT_BIT: Final = 11  # 4 bits: nibbles by which the time is shifted right.
TRACE_STAMP_NIBBLE_BIT: Final = 15  # The high nibble of the first octet stays.
TRACE_STAMP_MEND_BIT: Final = 16  # It is in the identification of an IPv4 header, whose checksum is mended.

# Configuration sets: a control octet, then what its bits name, in this order. ------------------------


class SetField(IntFlag):
    """Bits of the control octet of a set; a field is as on the wire, most significant octet first.

    What a set doesn't name is as in the set before; the first set of a program has every field that the program uses.
    """

    NONE = 0
    ADDRESS4 = 1 << 0  # 4 octets.
    ADDRESS6 = 1 << 1  # 16 octets.
    TAG = 1 << 2  # 2 octets: TCI of the first VLAN tag.
    INNER_TAG = 1 << 3  # 2 octets: of the second.
    LENGTH = 1 << 4  # 2 octets: of the frame, without FCS.
    INDEX = 1 << 5  # 2 octets: of the table's entry, whose 4 octets are a field; the first one is in bits 31..24 of the entry.


#: Octets of each field in the stream, and in the frame (the length has no place of its own).
SET_FIELD_OCTETS: Final = {
    SetField.ADDRESS4: (4, 4),
    SetField.ADDRESS6: (16, 16),
    SetField.TAG: (2, 2),
    SetField.INNER_TAG: (2, 2),
    SetField.LENGTH: (2, 0),
    SetField.INDEX: (2, 4),
}
#: Control octets that are not of a set.
SET_REPEAT: Final = 0x80  # 2 octets: how often in a row the last frame is repeated when no set is there in time.
SET_RUN: Final = 0xA0  # 2 octets: so many sets after the next one have its control octet without saying so; it has a field.
SET_END: Final = 0xC0  # No set follows; the rest of its word is ignored.
SET_NOTHING: Final = 0xFF  # Ignored: fills a datagram up to a whole word.

#: What has a byte in the register ``places``, from the lowest on: even octet in the header, below 128. SET_SUMMED is the first
#: octet that enters the checksum of UDP or TCP, 0 where the descriptor of the template has no checksum_enable.
SET_PLACES: Final = (SetField.ADDRESS4, SetField.ADDRESS6, SetField.TAG, SetField.INNER_TAG, SetField.INDEX)
SET_SUMMED: Final = len(SET_PLACES)

#: Words 0 to 3 of STREAM_FIELDS describe the template, whose octets are the header of stream 0.
SET_TEMPLATE_WORDS: Final = 4

#: A set that isn't there so many ticks before its frame is due is not there in time.
SET_LEAD_TICKS: Final = 256
SETS_AHEAD: Final = 16  # Parsed before their frames are due, at most.
BLOCK_TABLE_ENTRIES: Final = 512  # Of a table in block RAM, where there is no SDRAM.


class SetError(IntEnum):
    """Why a program of sets ended before its SET_END; the bad set is number ``sets``, from 0."""

    NONE = 0
    CONTROL = 1  # Unknown control octet, or a run of sets without fields.
    FIELD = 2  # A field that the program doesn't use.
    INCOMPLETE = 3  # The first set lacks a field that the program uses.
    LENGTH = 4  # Below 60 or above 9000.
    INDEX = 5  # The table has no such entry.
