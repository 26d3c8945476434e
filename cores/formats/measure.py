# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lays out what a port measures without keeping frames."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

#: Of a port that measures: slot 0 has the port and the probe frames of no stream, each other slot has a stream. A small
#: build has `STREAM_SLOTS`, one with space more of them, up to `STREAM_SLOTS_MAX`.
STREAM_SLOTS: Final = 8
STREAM_SLOTS_MAX: Final = 32
STREAM_SLOT_COUNTS: Final = (8, 16, 32)
STREAM_SLOT_WORDS: Final = 32  # In the bus memory ``port<n>_streams``.
STREAM_WINDOW: Final = 128  # Frames that the memory of a slot's sequence numbers covers.


class Accumulator(NamedTuple):
    """Places an accumulator in its slot: ``words`` of 32 bits from ``first``, the lowest word first."""

    first: int
    words: int = 1
    is_signed: bool = False

    def value(self, words: Sequence[int]) -> int:
        """Return its value in the words of a slot."""
        found = words[self.first : self.first + self.words]
        value = sum(int(word) << 32 * number for number, word in enumerate(found))
        return value - (1 << 32 * self.words) if self.is_signed and value >> (32 * self.words - 1) else value


#: In slot 0: every frame of the port.
PORT_ACCUMULATORS: Final = {
    "frames": Accumulator(0, 2),
    "octets": Accumulator(2, 2),
    "first_stamp": Accumulator(4, 2),
    "last_stamp": Accumulator(6, 2),
}
#: In each slot: good probe frames of its stream. ``lost`` follows from the others (`lost_frames`). `BIT_ERRORS` are counted
#: where the fill is checked, else 0: bits of it that are not PRBS-31's; damaged are frames with a bad FCS.
STREAM_ACCUMULATORS: Final = {
    "expected": Accumulator(8),
    "duplicated": Accumulator(9),
    "reordered": Accumulator(10),
    "beyond_window": Accumulator(11),
    "damaged_bit_errors": Accumulator(12),
    "delay_square_sum": Accumulator(13, 3),
    "octets": Accumulator(16, 2),
    "first_stamp": Accumulator(18, 2),
    "last_stamp": Accumulator(20, 2),
    "delay_min": Accumulator(22, 2, is_signed=True),
    "delay_max": Accumulator(24, 2, is_signed=True),
    "delay_sum": Accumulator(26, 2, is_signed=True),
    "frames": Accumulator(28, 2),
    "bit_errors": Accumulator(30, 2),
}
BIT_ERRORS: Final = ("damaged_bit_errors", "bit_errors")


def lost_frames(accumulators: Mapping[str, int]) -> int:
    """Return the frames of a stream that are lost, modulo 2^32.

    Each frame in order moves ``expected`` past itself and those that it passes over, and takes one frame; each reordered one
    was passed over before: so the lost ones are what is expected, less all frames but duplicates and those beyond the window.
    """
    came = accumulators["frames"] - accumulators["duplicated"] - accumulators["beyond_window"]
    return (accumulators["expected"] - came) % (1 << 32)


HEAD_OCTETS: Final = 256  # Of a frame, in which a field with a stamp may lie.
PLACE_WORDS: Final = 32  # In the bus memory ``port<n>_places``, a word a slot.
#: Bits of such a word: first and number of each field. ``shift`` is in nibbles; with ``nibble`` the first four bits of the
#: field are not of the stamp.
PLACE_FIELDS: Final = {"offset": (0, 8), "octets": (8, 3), "shift": (11, 4), "nibble": (15, 1), "enable": (16, 1)}


def stamp_range_ns(bits: int, nibbles: int) -> int | None:
    """Return what delays by a stamp of ``bits`` bits of 16^``nibbles`` ns are known modulo; None: longer than any run."""
    return 1 << bits + 4 * nibbles if bits + 4 * nibbles < 63 else None


class StampPlace(NamedTuple):
    """Places the TX stamp of a frame, in the place of a probe's header: ``octets`` octets from octet ``offset`` on.

    The field has bits from 4 * ``shift`` on of the stamp (ns), the highest first. With ``is_nibble`` the upper half of its
    first octet belongs to something else.
    """

    offset: int
    octets: int
    shift: int = 0
    is_nibble: bool = False

    @property
    def bits(self) -> int:
        """Bits of the stamp that the field has."""
        return 8 * self.octets - 4 * self.is_nibble

    @property
    def word(self) -> int:
        """The word of ``port<n>_places``; 0 is none: the stamp is that of the probe's header."""
        values = {"offset": self.offset, "octets": self.octets - 1, "shift": self.shift, "nibble": self.is_nibble, "enable": 1}
        return sum(int(value) << PLACE_FIELDS[name][0] for name, value in values.items())

    @property
    def range_ns(self) -> int | None:
        """Delays are known modulo this by it; None: it is longer than any run."""
        return stamp_range_ns(self.bits, self.shift)

    @classmethod
    def of(cls, word: int) -> "StampPlace | None":
        """Return the place of a word; None: it is none."""
        at = {name: word >> first & (1 << bits) - 1 for name, (first, bits) in PLACE_FIELDS.items()}
        return cls(at["offset"], at["octets"] + 1, at["shift"], bool(at["nibble"])) if at["enable"] else None


class BinKind(IntEnum):
    """Names the quantities of histograms."""

    LENGTH = 0  # Octets without FCS.
    DELAY = 1  # RX stamp less TX stamp (ns), signed. In slot 0: of the good probe frames of all streams.
    ARRIVAL = 2  # RX stamp less that of the frame before in the slot (ns), signed: a clock may be set back.


class Bins(NamedTuple):
    """Places a histogram in its slot: ``words`` words from ``first``; the first bin is "below", the last one "above"."""

    first: int
    words: int

    @property
    def regular(self) -> int:
        """Bins between these two: bin k of them has values from origin + k * 2^shift, up to one less than the next."""
        return self.words - 2


BIN_SLOT_WORDS: Final = 128  # In the bus memory ``port<n>_bins``.
BINS: Final = {BinKind.LENGTH: Bins(0, 32), BinKind.DELAY: Bins(32, 48), BinKind.ARRIVAL: Bins(80, 48)}
BIN_SHIFT_MAX: Final = 31

RATE_INTERVAL_MIN_NS: Final = 1_000_000
RATE_INTERVAL_NS: Final = 1_000_000_000  # Unless a host says otherwise.
