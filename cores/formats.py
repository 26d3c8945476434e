# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Layouts of what leaves the board, shared by gateware, host and simulation; needs numpy, never Migen.

Source: docs/design/interfaces.md ("Probe payload", "Record", "Identity").
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from enum import IntEnum, IntFlag
from typing import Any, Final, NamedTuple

import numpy as np

# Probe payload: octets from the start of the UDP payload, big-endian on the wire. ----------------

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


# PCIe: docs/pcie.md. ----------------------------------------------------------------------------------

#: What of the bus lies in BAR0, side by side: registers, memories, main RAM, and what is at 0. Each begins at a multiple of it.
BAR0_SEGMENTS: Final = (0xF000_0000, 0x8000_0000, 0x4000_0000, 0x0000_0000)
BAR0_SEGMENT_BYTES: Final = 4 * 1024 * 1024

#: Ring of a channel in the host's memory: slots of a page, of which a block takes the first octets.
DMA_SLOTS: Final = 256
DMA_SLOT_BYTES: Final = 4096
#: A multiple of the largest payload of a request (512), so that no part of a block has to wait for the next one.
DMA_BLOCK_BYTES: Final = 1536

# Firmware in flash: words, little-endian, then the image; see docs/design/boot.md. ---------------------

FLASH_MAGIC: Final = 0x5746504C  # "LPFW"
FLASH_HEADER_WORDS: Final = 6


class BootState(IntEnum):
    """Register ``boot_state``: what became of firmware since the processor's last reset."""

    NOTHING = (
        0  # The program in ROM waits for the RAM, reads the flash, or found neither firmware to look for nor a flash.
    )
    STARTED = 1  # As a host has asked for.
    STARTED_FROM_FLASH = 2
    NO_IMAGE = 3  # The flash holds no firmware.
    OTHER_GATEWARE = 4  # What it holds is for another gateware.
    DAMAGED = 5  # Its CRC-32, length or addresses are wrong, or the RAM doesn't keep it.


def flash_image(octets: bytes, start: int, entry: int, gateware: int) -> bytes:
    """Return firmware as it is written into the flash.

    Parameters
    ----------
    octets : the image; padded with zeros to whole words.
    start, entry : address that it is copied to, and address of its first instruction.
    gateware : map hash that it was built for.
    """
    padded = octets + bytes(-len(octets) % 4)
    fields = b"".join(value.to_bytes(4, "little") for value in (len(padded), start, entry, gateware))
    check = zlib.crc32(fields + padded)
    return FLASH_MAGIC.to_bytes(4, "little") + fields + check.to_bytes(4, "little") + padded


# Record ------------------------------------------------------------------------------------------

RECORD_WORDS: Final = 6  # 32-bit words, little-endian in the bus memory ``port<n>_records``.
RECORD_OCTETS: Final = 24
RECORD_DEPTH: Final = 1024  # Default records of a ring.

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

# Unified header ----------------------------------------------------------------------------------

UNIFIED_WORDS: Final = 32  # 32-bit words, octet 0 in bits 7..0.
UNIFIED_OCTETS: Final = 4 * UNIFIED_WORDS
#: What the parser took out of a frame. Fields that are copied from it stand as on the wire (">").
UNIFIED_DTYPE: Final = np.dtype(
    [
        ("stamp", "<u8"),
        ("length", "<u2"),
        ("snap_length", "<u2"),
        ("flags", "<u2"),
        ("rule", "u1"),
        ("way", "u1"),
        ("ethertype", "<u2"),
        ("protocol", "u1"),
        ("layers", "u1"),
        ("tag_kinds", "u1"),
        ("reserved", "u1"),
        ("extensions", "u1", 2),
        ("hash", "<u4"),
        ("sequence", ">u4"),
        ("tags", [("tci", ">u2"), ("type", ">u2")], 4),
        ("labels", ">u4", 4),
        ("source", "u1", 16),
        ("destination", "u1", 16),
        ("source_port", ">u2"),
        ("destination_port", ">u2"),
        ("ip", ">u4", 3),
        ("destination_mac", "u1", 6),
        ("source_mac", "u1", 6),
        ("detail", ">u2", 2),
    ]
)
#: Where each field is: word of the unified header, and octet in it.
UNIFIED_PLACES: Final = {name: divmod(int(field[1]), 4) for name, field in (UNIFIED_DTYPE.fields or {}).items()}

TAGS_MAX: Final = 4  # VLAN tags that are taken.
LABELS_MAX: Final = 4  # MPLS labels.
EXTENSIONS_MAX: Final = 2  # Extension headers of IPv6 that are walked through.
EXTENSION: Final = 0x80  # Beside the number of an extension header: number 0 (hop by hop) is one, too.


class UnifiedFlag(IntFlag):
    """Bits of ``flags`` in a unified header; errors of the frame as in a record."""

    NONE = 0
    FCS_ERROR = 1 << 0
    LENGTH_ERROR = 1 << 1  # IP says more octets than the frame has, or fewer than its own header.
    RUNT = 1 << 2
    GIANT = 1 << 3
    TRUNCATED = 1 << 4  # The frame, or its IP packet, ends within a header.
    UNPARSED = 1 << 5  # The walk ended before the headers did: cut, malformed or beyond a limit.
    FRAGMENT = 1 << 6  # Of an IP packet in several: fragment offset or "more" are not 0.
    SYMBOL_ERROR = 1 << 7
    FIRST_FRAGMENT = 1 << 8  # And its offset is 0.
    TRANSPORT = 1 << 9  # Ports, or ICMP type and code, are there.
    TCP = 1 << 10  # ``detail`` and ``sequence`` are TCP's.
    PROBE = 1 << 11  # ``detail`` and ``sequence`` are a probe's.
    MATCHED = 1 << 12  # ``rule`` matched.
    SAMPLED = 1 << 13  # Others like it were left out.
    HEADER = 1 << 14  # In a record: all words of the unified header, not the first four alone.
    GAP = 1 << 15  # In a record: it stands for frames that were dropped here.


class Layer3(IntEnum):
    """Bits 0 and 1 of ``layers``; the tags are counted in bits 2 to 4, the labels in bits 5 to 7."""

    NONE = 0
    ARP = 1
    IPV4 = 2
    IPV6 = 3


#: ``tag_kinds``: two bits a tag, the outermost in bits 0 and 1; 0 is no tag.
TAG_KINDS: Final = {0x8100: 1, 0x88A8: 2, 0x9100: 3}
NO_RULE: Final = 0xFF  # ``rule`` where nothing was asked, or what matches is dropped.
DESTINATION_RULES: Final = 32  # ``rule`` of the first destination row; source rows from 0 on.
TERM_RULES: Final = 64  # ``rule`` of the first term.

# Filter: words of its bus memory, 32 bits each; see docs/cores/filter.md. -----------------------------

FILTER_WORDS: Final = 0x2000
FILTER_ROWS: Final = 32  # Of each of the two tables of addresses: source and destination.
FILTER_TERMS: Final = 8
#: Sets of 65536 ports, source and destination: port n is bit n mod 32 of word n / 32.
FILTER_PORTS: Final = (0x0000, 0x0800)
#: Prefixes, source and destination: four words a row, octets as on the wire, the first in bits 7..0.
FILTER_PREFIXES: Final = (0x1000, 0x1080)
#: The rest of each row: length (7..0), terms (15..8), channel (18..16), whether it names that channel (19).
FILTER_LENGTHS: Final = (0x1100, 0x1120)
FILTER_IPV4: Final = 0xC0  # Beside the length of an IPv4 prefix.
#: Protocol n is octet n mod 4 of word n / 4; bit t: it is in the set of term t.
FILTER_PROTOCOLS: Final = 0x1140
#: VLAN id n is bit n mod 32 of word n / 32.
FILTER_VLANS: Final = 0x1180
#: Counters: of rows of each table, of terms.
FILTER_ROW_HITS: Final = (0x1800, 0x1820)
FILTER_TERM_HITS: Final = 0x1840
FILTER_TERM_WORDS: Final = 0x1848
#: Limits of MACs, source and destination, least and most: four words each, 16 bits in each of three, the lowest first.
FILTER_MACS: Final = ((0x1850, 0x1854), (0x1858, 0x185C))


class FilterCondition(IntEnum):
    """What a term asks of a set."""

    IGNORED = 0
    IN = 1
    NOT_IN = 2


#: The lowest bit of each condition in the word of a term, in the order of their bits.
FILTER_CONDITIONS: Final = {
    "source": 0,
    "destination": 2,
    "protocol": 4,
    "source_port": 6,
    "destination_port": 8,
    "vlan": 10,
    "source_mac": 12,
    "destination_mac": 14,
}
FILTER_KINDS_BIT: Final = 16  # Four bits, by `Layer3`.
FILTER_PROBE_PORTS_BIT: Final = 20  # Two bits.
FILTER_NAMES_BIT: Final = 22
FILTER_CHANNEL_BIT: Final = 23  # Three bits.
FILTER_ENABLED_BIT: Final = 26


class FilterControl(IntFlag):
    """Bits of ``filter_control``."""

    NONE = 0
    ENABLE = 1 << 0  # Else every frame passes, and nothing is counted.
    DROP = 1 << 1  # What matches is dropped; else what doesn't.


# Capture: what leaves the board, see docs/design/monitor.md.

RECORD_HEAD_WORDS: Final = 4  # Of the unified header, that every record has.
CHANNELS: Final = 8
BLOCK_WORDS: Final = 368  # With its header; one block fits a UDP datagram.
BLOCK_HEADER_WORDS: Final = 4
BLOCK_MAGIC: Final = 0x4C50  # "LP"
BLOCK_VERSION: Final = 1
NO_RECORD: Final = 0xFFFF  # ``first`` of a block in which no record begins.
#: The header of a block. ``kind``: channel in bits 11..8, version in bits 15..12.
BLOCK_DTYPE: Final = np.dtype(
    [("number", "<u4"), ("words", "<u2"), ("first", "<u2"), ("dropped", "<u4"), ("kind", "<u2"), ("magic", "<u2")]
)

# Measured without keeping: docs/design/monitor.md, docs/cores/measure-streams.md. ------------------------

STREAM_SLOTS: Final = (
    8  # Of a port. Slots 1 to 7: one stream each; slot 0: the port, and the probe frames of all other streams.
)
STREAM_SLOT_WORDS: Final = 32  # In the bus memory ``port<n>_streams``.
STREAM_WINDOW: Final = 128  # Frames that the memory of a slot's sequence numbers covers.


class Accumulator(NamedTuple):
    """Where an accumulator lies in its slot: ``words`` of 32 bits from ``first``, the lowest word first."""

    first: int
    words: int = 1
    is_signed: bool = False

    def value(self, words: Sequence[int]) -> int:
        """Return its value in the words of a slot."""
        found = words[self.first : self.first + self.words]
        value = sum(int(word) << 32 * number for number, word in enumerate(found))
        return value - (1 << 32 * self.words) if self.is_signed and value >> (32 * self.words - 1) else value


#: In slot 0: every frame of the port. ``bad_probes``: probe frames that are damaged or not as long as they say, in no stream.
PORT_ACCUMULATORS: Final = {
    "frames": Accumulator(0),
    "bad_probes": Accumulator(1),
    "octets": Accumulator(2, 2),
    "first_stamp": Accumulator(4, 2),
    "last_stamp": Accumulator(6, 2),
}
#: In each slot: good probe frames of its stream. ``lost`` follows from the others (`lost_frames`).
STREAM_ACCUMULATORS: Final = {
    "expected": Accumulator(8),
    "duplicated": Accumulator(9),
    "reordered": Accumulator(10),
    "beyond_window": Accumulator(11),
    "frames": Accumulator(12),
    "delay_square_sum": Accumulator(13, 3),
    "octets": Accumulator(16, 2),
    "first_stamp": Accumulator(18, 2),
    "last_stamp": Accumulator(20, 2),
    "delay_min": Accumulator(22, 2, is_signed=True),
    "delay_max": Accumulator(24, 2, is_signed=True),
    "delay_sum": Accumulator(26, 2, is_signed=True),
}


def lost_frames(accumulators: Mapping[str, int]) -> int:
    """Return the frames of a stream that are lost, modulo 2^32.

    Each frame in order moves ``expected`` past itself and those that it passes over, and takes one frame; each reordered one
    was passed over before: so the lost ones are what is expected, less all frames but duplicates and those beyond the window.
    """
    came = accumulators["frames"] - accumulators["duplicated"] - accumulators["beyond_window"]
    return (accumulators["expected"] - came) % (1 << 32)


class BinKind(IntEnum):
    """What a histogram is of."""

    LENGTH = 0  # Octets without FCS.
    DELAY = 1  # RX stamp less TX stamp (ns), signed. In slot 0: of the good probe frames of all streams.
    ARRIVAL = 2  # RX stamp less that of the frame before in the slot (ns), signed: a clock may be set back.


class Bins(NamedTuple):
    """Where a histogram lies in its slot: ``words`` words from ``first``; the first bin is "below", the last one "above"."""

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
CHANNEL_WORDS: Final = 16  # Of the bus memory ``capture_channels``, a channel.


class ChannelWord(IntEnum):
    """Words of a channel in ``capture_channels``; those behind ``TAKEN`` are the gateware's own."""

    BASE = 0
    BLOCKS = 1
    READ = 2
    SENT = 3
    WRITTEN = 4
    DROPPED = 5
    TAKEN = 6
    NUMBER = 7  # Blocks closed, whether they are in the memory yet or not.
    POSITION = 8  # In the open block.
    TOLD = 9  # Drops that gap records have told of.
    STAMP_LOW = 10  # Of the first drop that none has told of.
    STAMP_HIGH = 11
    OPENED = 12  # When the first word came into the open block (us).


#: Toeplitz key of the flow hash (Microsoft's, of the verification suite).
FLOW_KEY: Final = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")

# Clock -------------------------------------------------------------------------------------------


class ClockState(IntEnum):
    """Register ``clock_state``."""

    UNKNOWN = 0  # No firmware, or none that is alive.
    FREE_RUNNING = 1
    ACQUIRING = 2
    LOCKED = 3
    HOLDOVER = 4


class ClockMode(IntEnum):
    """Register ``clock_mode``, written by a host."""

    DISCIPLINE = 0
    LEAVE_ALONE = 1
    REACQUIRE = 2  # The firmware sets it back to DISCIPLINE.


class ClockError(IntFlag):
    """Bits of ``clock_error``."""

    NONE = 0
    NO_PPS = 1 << 0
    NO_NMEA = 1 << 1
    WRONG_SECOND = 1 << 2  # NMEA and clock disagree.
    WRONG_GATEWARE = 1 << 3  # The firmware was made for another map.
    NO_FIX = 1 << 4  # The receiver talks, but knows no time.
    BAD_NMEA = 1 << 5  # Sentences with a wrong checksum or form.
    STEP_REFUSED = 1 << 6  # The time is wrong, but a train runs.


#: Units of the block ``clock``: 1 LSB of uncertainty and offset (ns), rate (ppb), drift (ppt/s).
CLOCK_LSB: Final = 2.0**-8
UNCERTAINTY_UNKNOWN: Final = 0xFFFFFFFF  # That or more.


class PpsControl(IntFlag):
    """Bits of ``pps_control``."""

    NONE = 0
    ENABLE = 1 << 0
    INVERT = 1 << 1  # A pulse is low.


# Word ``clock_qerr``: bit 0, it is known; then low bits of the edge's ``pps_count``, and how late the edge was (signed, ps).
QERR_KNOWN: Final = 1
QERR_COUNT_BIT: Final = 1
QERR_COUNT_MASK: Final = 0x7F
QERR_BIT: Final = 8
PPS_SPURIOUS: Final = 1  # Bit of ``pps_flags``.
PPS_EARLY_BIT: Final = (
    4  # Of ``pps_flags``: from here on, samples between the pin's rise and the last sample of its tick.
)
PPS_EARLY_MASK: Final = 3

# Identity ----------------------------------------------------------------------------------------


def map_hash(register_map: Mapping[str, Any]) -> int:
    """Return the CRC-32 that tells one register map from another.

    Parameters
    ----------
    register_map : mapping
        LiteX's ``csr.json`` as loaded: ``csr_registers`` and ``memories`` are read.

    Returns
    -------
    int
        CRC-32 (zlib) over the canonical JSON of registers (name, addr, size, type) and memories
        (name, base, size), both sorted.

    Raises
    ------
    KeyError
        If the map has no ``csr_registers`` or an entry lacks a field: it is no register map.
    """
    registers = sorted(
        [name, entry["addr"], entry["size"], entry["type"]] for name, entry in register_map["csr_registers"].items()
    )
    memories = sorted([name, entry["base"], entry["size"]] for name, entry in register_map.get("memories", {}).items())
    return zlib.crc32(json.dumps([registers, memories], sort_keys=True).encode())
