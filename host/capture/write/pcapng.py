# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes records to pcapng: nanoseconds, an interface for each port, what was dropped and where.

Source: draft-ietf-opsawg-pcapng, sections 4.1 (section), 4.2 (interface), 4.3 (enhanced packet), 4.6 (statistics).
"""

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import UNIFIED_PLACES, UnifiedFlag
from liteprobe.host.capture.write.output import Output
from liteprobe.host.packets.batch import Batch
from liteprobe.host.packets.frames import WORD_OCTETS, Index, move, put, starts

SECTION, INTERFACE, PACKET, STATISTICS = 0x0A0D0D0A, 1, 6, 5
BYTE_ORDER = 0x1A2B3C4D
ETHERNET = 1
NANOSECONDS = 9
TOEPLITZ = 5  # Of the hash algorithms.
INBOUND = 1
PORTS = 16  # That a record can name.
PART = 1 << 12  # Packets at once: what the caches hold of the shortest ones.

#: Errors of a frame, and the bit of ``epb_flags`` that says so.
LINK_ERRORS = {
    UnifiedFlag.FCS_ERROR: 24,
    UnifiedFlag.GIANT: 25,
    UnifiedFlag.RUNT: 26,
    UnifiedFlag.SYMBOL_ERROR: 31,
}
ERRORS = sum(LINK_ERRORS)

HEAD = np.dtype([(name, "<u4") for name in ("type", "size", "interface", "high", "low", "captured", "length")])
TAIL = np.dtype([("queue", "<u2", 2), ("channel", "<u4"), ("end", "<u4"), ("size", "<u4")])
FLAGS = np.dtype([("option", "<u2", 2), ("flags", "<u4")])
DROPS = np.dtype([("option", "<u2", 2), ("low", "<u4"), ("high", "<u4")])
# The hash stands as it is written down, its highest octet first; three octets fill the last word.
HASH = np.dtype([("option", "<u2", 2), ("algorithm", "u1"), ("hash", "u1", 4), ("fill", "u1", 3)])
HASH_WORD = UNIFIED_PLACES["hash"][0]


@dataclass(frozen=True)
class PortInterface:
    """A port of the probe, as the file names it."""

    name: str  # Like ``port0``.
    description: str = ""  # What probe it belongs to.
    filter: str = ""  # Expression that its frames passed; empty: none.
    comment: str = ""  # What must be known of its stamps.
    snap_length: int = 0  # Octets kept of a frame at the most; 0: all.


@dataclass(frozen=True)
class Statistics:
    """Counts what became of the frames of a port; None: not known."""

    received: int | None = None  # Frames that the port saw.
    accepted: int | None = None  # Frames that passed the filter.
    dropped: int | None = None  # Frames that were dropped for want of space.
    delivered: int | None = None  # Frames in this file; None: those that were written.
    comment: str = ""


def option(code: int, value: bytes) -> bytes:
    """Return an option, padded to whole words."""
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % WORD_OCTETS)


def text(code: int, value: str) -> bytes:
    """Return an option of text; nothing where there is none."""
    return option(code, value.encode()) if value else b""


def number(code: int, value: int | None) -> bytes:
    """Return an option of 64 bits; nothing where the number isn't known."""
    return b"" if value is None else option(code, struct.pack("<Q", value))


def block(kind: int, body: bytes) -> bytes:
    """Return a block with its lengths."""
    size = len(body) + 12
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


def section(hardware: str, comment: str) -> bytes:
    """Return a section header block."""
    system = os.uname()
    application = f"liteprobe {metadata.version('liteprobe')}"
    options = text(1, comment) + text(2, hardware) + text(3, f"{system.sysname} {system.release}")
    head = struct.pack("<IHHq", BYTE_ORDER, 1, 0, -1)
    return block(SECTION, head + options + text(4, application) + option(0, b""))


def interface(port: PortInterface) -> bytes:
    """Return an interface description block."""
    expression = b"\0" + port.filter.encode() if port.filter else b""
    options = [
        text(1, port.comment),
        text(2, port.name),
        text(3, port.description),
        number(8, 10**9),  # Speed, b/s.
        option(9, bytes([NANOSECONDS])),
        option(11, expression) if expression else b"",
        option(13, b"\0"),  # Octets of FCS that are kept: none.
        option(0, b""),
    ]
    return block(INTERFACE, struct.pack("<HHI", ETHERNET, 0, port.snap_length) + b"".join(options))


class PcapngWriter:
    """Writes records into a pcapng file, in the order in which they are given.

    Parameters
    ----------
    ports : sequence of PortInterface
        PortInterface k is port k; a port that isn't named gets its interface when its first frame comes.
    hardware, comment : str
        What the section says of the probe and of the capture.
    shift_ns : int
        Added to every stamp: less 37 s, TAI becomes UTC.
    """

    def __init__(
        self, output: Output, ports: Sequence[PortInterface], hardware: str = "", comment: str = "", shift_ns: int = 0
    ) -> None:
        self._output = output
        self._shift = np.uint64(shift_ns % 2**64)
        self.written = np.zeros(PORTS, np.int64)  # Shape (16,). Packets of each port.
        #: Shape (16,). Frames that gaps of the stream stand for, at the port whose packet comes next.
        self.dropped = np.zeros(PORTS, np.int64)
        self._pending = np.zeros(PORTS, np.int64)  # Dropped since the last packet of each channel.
        self._span = [0, 0]
        self._form, self._form_of = np.zeros((0, 0), np.uint32), (-1, False)
        self._numbers = np.full(PORTS, -1)
        self._numbers[: len(ports)] = range(len(ports))
        output.write(section(hardware, comment) + b"".join(interface(port) for port in ports))

    def write(self, batch: Batch) -> None:
        """Write packets; gaps become the drop count of the next packet of their channel: they have no port."""
        if not len(batch):
            return
        is_gap = batch.is_gap
        drops = None
        if is_gap.any() or self._pending.any():
            drops = self._drops(batch, is_gap)
            batch = batch.select(~is_gap)
        if not len(batch):
            return
        of_port = np.bincount(batch.port, minlength=PORTS)
        self._name(of_port)
        for first in range(0, len(batch), PART):
            part = slice(first, first + PART)
            words, at = self._packets(batch.select(part), None if drops is None else drops[part])
            self._output.write(words, at * WORD_OCTETS)  # Its ``parts``: packets of all ports.
        stamps = batch.heads["stamp"]
        self._span = [self._span[0] or int(stamps[0]), max(self._span[1], int(stamps[-1]))]
        self.written += of_port

    def close(self, statistics: Sequence[Statistics] = ()) -> None:
        """Write the statistics of each interface."""
        self.dropped[0] += self._pending.sum()  # No packet came behind them.
        self._pending[:] = 0
        blocks = []
        for port in np.flatnonzero(self._numbers >= 0).tolist():
            known = statistics[port] if port < len(statistics) else Statistics()
            blocks.append(self._statistics(port, known))
        self._output.write(b"".join(blocks))

    # # #

    def _statistics(self, port: int, known: Statistics) -> bytes:
        shift = int(self._shift)
        start, end = ((stamp + shift) % 2**64 if stamp else 0 for stamp in self._span)
        dropped = int(self.dropped[port]) if known.dropped is None else known.dropped
        delivered = int(self.written[port]) if known.delivered is None else known.delivered
        times = [
            option(code, struct.pack("<II", time >> 32, time & 0xFFFFFFFF)) for code, time in ((2, start), (3, end))
        ]
        options = [
            text(1, known.comment),
            *times,
            number(4, known.received),
            number(5, dropped),
            number(6, known.accepted),
            number(8, delivered),
            option(0, b""),
        ]
        head = struct.pack("<III", int(self._numbers[port]), end >> 32, end & 0xFFFFFFFF)
        return block(STATISTICS, head + b"".join(options))

    def _name(self, of_port: NDArray[np.int64]) -> None:
        """Write an interface for every port that has none, by how many packets each has."""
        for port in np.flatnonzero((of_port > 0) & (self._numbers < 0)).tolist():
            self._numbers[port] = self._numbers.max() + 1
            self._output.write(interface(PortInterface(f"port{port}")))

    def _drops(self, batch: Batch, is_gap: NDArray[np.bool_]) -> Index:
        """Return how many frames of its channel were dropped before each packet; what is behind the last one waits."""
        channels, missing = batch.channel, batch.missing
        counts = np.zeros(len(batch), np.int64)
        for channel in np.unique(channels).tolist():
            packets = np.flatnonzero((channels == channel) & ~is_gap)
            gaps = np.flatnonzero((channels == channel) & is_gap)
            sums = np.zeros(len(packets) + 1, np.int64)
            np.add.at(sums, np.searchsorted(packets, gaps), missing[gaps])
            sums[0] += self._pending[channel]
            counts[packets] = sums[:-1]
            self._pending[channel] = sums[-1]
        np.add.at(self.dropped, batch.port, counts)
        return counts[~is_gap]

    def _packets(self, batch: Batch, drops: Index | None) -> tuple[NDArray[np.uint32], Index]:
        """Return packet blocks, and the word that each begins at; they are overwritten by the next ones."""
        heads = batch.heads
        flags = heads["flags"]
        if batch.step and drops is None and not (flags & ERRORS).any():
            hashes = batch.rows()[:, HASH_WORD] if batch.select(slice(0, 1)).has_header.all() else None
            if hashes is None or (has := hashes != 0).all() or not has.any():
                return self._alike(batch, hashes if hashes is not None and hashes[0] else None)
        data_words = -(-heads["snap_length"].astype(np.int64) // WORD_OCTETS)
        has_error, has_hash = flags & ERRORS != 0, _has_hash(batch)
        has_drops = np.zeros(len(batch), bool) if drops is None else drops > 0
        options = [(has_error, _flags(flags)), (has_hash, _hashes(batch, has_hash)), (has_drops, _dropped(drops))]
        sizes = data_words + (HEAD.itemsize + TAIL.itemsize) // WORD_OCTETS
        for has, items in options:
            if has.any():
                sizes += has * (items.dtype.itemsize // WORD_OCTETS)
        at = starts(sizes)
        words = np.empty(int(at[-1] + sizes[-1]), np.uint32)
        put(words, at, self._heads(batch, sizes))
        move(batch.words, batch.octets_at, words, at + HEAD.itemsize // WORD_OCTETS, data_words)
        place = at + HEAD.itemsize // WORD_OCTETS + data_words
        for has, items in options:
            if has.any():
                put(words, place[has], items if len(items) == np.count_nonzero(has) else items[has])
                place += has * (items.dtype.itemsize // WORD_OCTETS)
        put(words, place, _tails(batch.channel, sizes))
        return words, at

    def _alike(self, batch: Batch, hashes: NDArray[np.uint32] | None) -> tuple[NDArray[np.uint32], Index]:
        """Return packet blocks of one form: what all have in common is there from the last ones on."""
        heads, rows = batch.heads, batch.rows()
        captured = int(heads["snap_length"][0])
        end = HEAD.itemsize // WORD_OCTETS - (-captured // WORD_OCTETS)
        if self._form_of != (form_of := (captured, hashes is not None)):
            self._form_of = form_of
            options = np.zeros(0, HASH) if hashes is None else _hashes_of(np.zeros(1, np.uint32))
            size = end + (options.nbytes + TAIL.itemsize) // WORD_OCTETS
            self._form = np.zeros((PART, size), np.uint32)
            self._form[:, :end] = np.concatenate([(PACKET, size * WORD_OCTETS, 0, 0, 0, captured), np.zeros(end - 6)])
            self._form[:, end:] = np.concatenate(
                [options.view(np.uint32), _tails(np.zeros(1, np.uint8), np.array([size])).view(np.uint32)]
            )
        made = self._form[: len(batch)]
        made[:, 2] = self._numbers[batch.port]
        stamps = heads["stamp"] + self._shift
        made[:, 3], made[:, 4] = stamps.view(np.uint32).reshape(-1, 2)[:, ::-1].T
        made[:, 6] = heads["length"]
        made[:, HEAD.itemsize // WORD_OCTETS : end] = rows[:, batch.step + HEAD.itemsize // WORD_OCTETS - end :]
        if hashes is not None:
            made[:, end : end + HASH.itemsize // WORD_OCTETS] = (
                _hashes_of(hashes).view(np.uint32).reshape(len(batch), -1)
            )
        made[:, -3] = batch.channel
        return made.reshape(-1), np.arange(0, made.size, made.shape[1])

    def _heads(self, batch: Batch, sizes: Index) -> NDArray[np.void]:
        stamps = batch.heads["stamp"] + self._shift
        made = np.empty(len(batch), HEAD)
        made["type"] = PACKET
        made["size"] = sizes * WORD_OCTETS
        made["interface"] = self._numbers[batch.port]
        made["high"] = stamps >> np.uint64(32)
        made["low"] = stamps & np.uint64(0xFFFFFFFF)
        made["captured"] = batch.heads["snap_length"]
        made["length"] = batch.heads["length"]
        return made


def _tails(channels: NDArray[np.uint8], sizes: Index) -> NDArray[np.void]:
    made = np.zeros(len(channels), TAIL)
    made["queue"] = (6, 4)
    made["channel"] = channels
    made["size"] = sizes * WORD_OCTETS
    return made


def _flags(flags: NDArray[np.uint16]) -> NDArray[np.void]:
    """Return the flags of the frames that are damaged."""
    chosen = flags[flags & ERRORS != 0]
    made = np.zeros(len(chosen), FLAGS)
    made["option"] = (2, 4)
    made["flags"] = INBOUND
    for error, bit in LINK_ERRORS.items():
        made["flags"] |= np.where(chosen & int(error) != 0, np.uint32(1 << bit), np.uint32(0))
    return made


def _has_hash(batch: Batch) -> NDArray[np.bool_]:
    """Return which frames have a header with a flow hash; 0 is none: no IP, or no part of the probe that hashes."""
    found = batch.has_header.copy()
    found[found] = batch.words[batch.at[found] + HASH_WORD] != 0
    return found


def _hashes(batch: Batch, has_hash: NDArray[np.bool_]) -> NDArray[np.void]:
    """Return the flow hashes of the frames that have one."""
    return _hashes_of(batch.words[batch.at[has_hash] + HASH_WORD])


def _hashes_of(hashes: NDArray[np.uint32]) -> NDArray[np.void]:
    made = np.zeros(len(hashes), HASH)
    made["option"] = (3, 5)
    made["algorithm"] = TOEPLITZ
    made["hash"] = hashes.astype(">u4").view(np.uint8).reshape(-1, 4)
    return made


def _dropped(drops: Index | None) -> NDArray[np.void]:
    """Return the drop counts that are not 0."""
    chosen = np.empty(0, np.int64) if drops is None else drops[drops > 0]
    made = np.zeros(len(chosen), DROPS)
    made["option"] = (4, 8)
    made["low"], made["high"] = chosen & 0xFFFFFFFF, chosen >> 32
    return made
