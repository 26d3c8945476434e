# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lays out trains and streams: payload of a probe frame and its record, states of a port, the words that describe streams.

Bus memories of 32-bit words: ``port<n>_schedule`` (`STREAM_FIELDS`), ``port<n>_modifiers`` (`MODIFIER_FIELDS`),
``port<n>_lists`` and ``port<n>_header``. What is *state* is written by the host once and kept by the gateware.
"""

import math
from collections.abc import Mapping, Sequence
from enum import IntEnum, IntFlag
from typing import Final, NamedTuple

import numpy as np

# Trains: the payload of a probe frame. --------------------------------------------------------------

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
    """Names what stands after the TX stamp, to the end of the frame; it starts anew in each frame."""

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


# Streams. ---------------------------------------------------------------------------------------------

STREAMS: Final = 16  # Of a port.
STREAM_WORDS: Final = 16  # In ``port<n>_schedule``; stream s from word STREAM_WORDS*s.
MODIFIERS: Final = 4  # Of a stream.
MODIFIER_WORDS: Final = 8  # In ``port<n>_modifiers``; modifier k of stream s from word (MODIFIERS*s + k)*MODIFIER_WORDS.
LIST_WORDS: Final = 512  # In ``port<n>_lists``, shared by lengths and modifiers of all streams.
LIST_ENTRIES_MAX: Final = 64  # Of one list.
HEADER_WORDS_OF_STREAM: Final = 32  # In ``port<n>_header``; stream s from word 32*s, octet 0 in bits 7..0 of word 0.

# When a frame leaves. Ticks, in 64 bits, two's complement. -------------------------------------------

HORIZON: Final = 8192  # A frame is let out of its source when it is due in fewer ticks.
OVERDUE_MAX: Final = 1 << 17  # One that is overdue by more is shown as overdue by so many.
BEGIN_TICKS: Final = HORIZON  # From the begin of a stream in a running program to its phase 0: no frame that is due later has left.

#: The earliest octet of a frame at which a stamp can be written: the flow label of IPv6 without tags.
STAMP_OFFSET_MIN: Final = 15


class LengthKind(IntEnum):
    """Names the ways in which the length of each frame of a stream is chosen."""

    FIXED = 0
    STEPPED = 1  # Each is the one before and a step, or the least when that is above the greatest.
    RANDOM = 2  # least + (r16 * range >> 16).
    LIST = 3  # Entries of the lists, in turn or drawn: r16 * entries >> 16.


class ModifierOp(IntEnum):
    """Names what a modifier puts into its window of 32 bits."""

    NONE = 0  # No more modifiers of this stream.
    STEP = 1  # Its value, to which the step is added then; the first value again after a number of frames.
    RANDOM = 2
    LIST = 3  # Entries of the lists, in turn.
    DRAWN = 4  # Entries of the lists, drawn: r16 * entries >> 16.


class WordField(NamedTuple):
    """Places a number in the words of a stream or of a modifier: ``bits`` of ``word`` from bit ``low``."""

    word: int
    low: int = 0
    bits: int = 32

    @property
    def high(self) -> int:
        """Bit after its highest."""
        return self.low + self.bits

    def value(self, words: Sequence[int]) -> int:
        """Return its value in words, without a sign."""
        return int(words[self.word]) >> self.low & (1 << self.bits) - 1


#: Of a stream. Flags are fields of one bit.
STREAM_FIELDS: Final = {
    "fill": WordField(0, 0, 2),  # `Fill`.
    #: Sequence and place of the stamp follow the header; payload_offset is 4*header_words - 6.
    "with_probe": WordField(0, 2, 1),
    "checksum_enable": WordField(0, 3, 1),  # The last two octets are the complement of all from payload_offset.
    "length_kind": WordField(0, 4, 2),  # `LengthKind`.
    "exponential": WordField(0, 6, 1),  # Intervals are drawn from an exponential distribution.
    "list_drawn": WordField(0, 7, 1),  # Lengths of a list in random order.
    "endless": WordField(0, 8, 1),
    "stamp_enable": WordField(0, 9, 1),
    "stamp_nibble": WordField(0, 10, 1),  # The high nibble of the stamp's first octet stays.
    "stamp_mend": WordField(0, 11, 1),  # The two octets from stamp_offset + 6 are lowered by the stamp.
    "stamp_octets_less_1": WordField(0, 12, 3),
    "stamp_shift": WordField(0, 16, 4),  # Nibbles.
    "header_words": WordField(0, 20, 6),
    "seed_lengths": WordField(0, 26, 2),  # Times that length - transport_offset enters the checksum seed (0 to 2).
    "payload_offset": WordField(1, 0, 8),
    "stamp_offset": WordField(1, 8, 8),
    "checksum_seed": WordField(1, 16, 16),  # One's complement sum of all that does not vary.
    "network_halfword": WordField(2, 0, 6),  # Of the network length field, = length - network_base where it is written.
    "network_write": WordField(2, 7, 1),
    "udp_halfword": WordField(2, 8, 6),  # Of the UDP length field, = length - transport_offset where it is written.
    "udp_write": WordField(2, 15, 1),
    "ipv4_halfword": WordField(2, 16, 6),  # Of the IPv4 header checksum.
    "ipv4_write": WordField(2, 23, 1),
    "network_base": WordField(2, 24, 8),
    "ipv4_sum": WordField(3, 0, 16),  # One's complement sum of the IPv4 header without checksum and all that varies.
    "transport_offset": WordField(3, 16, 8),
    "length_least": WordField(4, 0, 14),  # Fixed: the length.
    "length_greatest": WordField(4, 16, 14),  # Stepped.
    "length_range": WordField(4, 16, 14),  # Random: greatest - least + 1.
    "list_base": WordField(4, 0, 10),  # First entry in the lists; the length is bits 13..0 of an entry.
    "list_entries": WordField(4, 16, 14),  # 1 to LIST_ENTRIES_MAX.
    "length_next": WordField(5, 0, 14),  # State: stepped.
    "length_step": WordField(5, 16, 14),
    "list_index": WordField(5, 0, 6),  # State: list in turn.
    "length_random": WordField(6),  # State of xorshift32, never 0.
    "interval": WordField(7),  # Whole ticks; exponential: the mean, in 2^-5 ticks.
    "interval_fraction": WordField(8),  # 2^-32 ticks; constant intervals only.
    "burst_frames": WordField(9, 0, 16),  # 0 and 1: no bursts.
    "burst_left": WordField(9, 16, 16),  # State: frames left in the present burst, this one included; from 1.
    "burst_interval": WordField(10),  # Ticks between frames of a burst; 0: back to back.
    "phase": WordField(11),  # Ticks from arm or begin to the first frame; from then on state: ticks since the head of the burst.
    "due_fraction": WordField(12),  # State: 2^-32 ticks.
    "interval_random": WordField(13),  # State of xorshift32, never 0.
    "sequence": WordField(14),  # State: number of the next frame.
    "frames_left": WordField(15),  # State; the stream ends at 0.
}

#: Of a modifier. Halfword h of a header is octets 2h and 2h + 1; the window is halfwords h (its bits 31..16) and h + 1.
MODIFIER_FIELDS: Final = {
    "op": WordField(0, 0, 3),  # `ModifierOp`.
    "halfword": WordField(0, 8, 6),
    "high_in_ipv4": WordField(0, 14, 1),  # The high halfword, all 16 bits of it, is part of the sum of the IPv4 header.
    "low_in_ipv4": WordField(0, 15, 1),
    "high_in_seed": WordField(0, 16, 1),  # It is part of the checksum seed.
    "low_in_seed": WordField(0, 17, 1),
    "mask": WordField(1),  # Bits of the window that change.
    "step": WordField(2),  # Added modulo 2^32.
    "first": WordField(3),  # STEP: first value.
    "list_base": WordField(3, 0, 10),  # LIST, DRAWN: first entry in the lists.
    "number": WordField(4),  # STEP: values until the first again, 0: never. LIST, DRAWN: entries, 1 to LIST_ENTRIES_MAX.
    "value": WordField(5),  # State: value of the next frame. LIST: index of the next entry.
    "left": WordField(6),  # State: values left until the first again.
    "random": WordField(7),  # State of xorshift32, never 0.
}


def packed_words(fields: Mapping[str, WordField], count: int, values: Mapping[str, int]) -> list[int]:
    """Return ``count`` words that hold ``values``; negative ones in two's complement, all that isn't named as 0.

    Raises
    ------
    ValueError
        If a value needs more bits than its field has, or two fields that share bits are both given.
    """
    words, taken = [0] * count, [0] * count
    for name, value in values.items():
        field = fields[name]
        mask = (1 << field.bits) - 1
        if not -(1 << field.bits - 1) <= value <= mask:
            raise ValueError(f"{name} of {value} does not fit into {field.bits} bits")
        if taken[field.word] & mask << field.low:
            raise ValueError(f"{name} shares bits with a field that is given too")
        taken[field.word] |= mask << field.low
        words[field.word] |= (value & mask) << field.low
    return words


# Random numbers: the same on a board, in simulation and in the model. ---------------------------------

XORSHIFT: Final = (13, 17, 5)  # Left, right, left. Source: Marsaglia, Xorshift RNGs, 2003.

#: Exponential intervals: E = z*LN2 + T[i] in 5.27 fixed point; z leading zeros of u, i the nine bits after its first 1.
EXPONENTIAL_BITS: Final = 27
EXPONENTIAL_INDEX_BITS: Final = 9
MEAN_FRACTION_BITS: Final = 5  # Of the mean interval; the product with E has 32 fraction bits.
LN2: Final[int] = round(math.log(2) * 2**EXPONENTIAL_BITS)


def next_random(state: int) -> int:
    """Return the next state of xorshift32, which is its output too; never 0 after a state that isn't."""
    left, right, last = XORSHIFT
    state ^= state << left & 0xFFFFFFFF
    state ^= state >> right
    return state ^ (state << last & 0xFFFFFFFF)


def exponential_table() -> tuple[int, ...]:
    """Return T: -ln((512 + i + 0.5)/1024) in 27 fraction bits, the middle of each of 512 parts of [0.5, 1)."""
    half = 1 << EXPONENTIAL_INDEX_BITS
    return tuple(round(-math.log((half + i + 0.5) / (2 * half)) * 2**EXPONENTIAL_BITS) for i in range(half))


# What was sent, ``port<n>_sent``: read only. ----------------------------------------------------------

SENT_WORDS: Final = 4  # Of a stream: sent (64 bits, the low word first), late, and the sequence of the first late frame.
