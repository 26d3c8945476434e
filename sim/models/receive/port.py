# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for the receive path: from octets on a GMII to counters and records."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from liteprobe.cores.formats import (
    DAMAGE,
    FAULTS,
    FCS,
    GIANT_LENGTH,
    MIN_LENGTH,
    PREAMBLE_OCTET,
    RECORD_SLOTS,
    RECORD_WINDOW,
    RECORD_WORDS,
    SFD_OCTET,
    RecordFlag,
    UnifiedFlag,
)
from liteprobe.sim.models.receive.meters import MeasuredFrame, PortMeterModel
from liteprobe.sim.models.receive.unified import UnifiedHeader, unified_header

# Record ring --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """One frame as the host sees it; stamps in ns, length in bytes without FCS."""

    sequence: int
    tx_stamp: int
    rx_stamp: int
    length: int
    flags: RecordFlag = RecordFlag.NONE

    def words(self) -> list[int]:
        """Return the record's words in the bus memory."""
        low = 0xFFFFFFFF
        return [
            self.sequence,
            self.tx_stamp & low,
            self.tx_stamp >> 32,
            self.rx_stamp & low,
            self.rx_stamp >> 32,
            self.length | self.flags << 16,
        ]


def record_of(words: list[int]) -> Record:
    """Return the record of six words."""
    sequence, tx_low, tx_high, rx_low, rx_high, tail = words
    return Record(sequence, tx_high << 32 | tx_low, rx_high << 32 | rx_low, tail & 0xFFFF, RecordFlag(tail >> 16))


@dataclass
class RingModel:
    """A ring of ``depth`` records with free-running counts."""

    depth: int = 1024
    read: int = 0
    written: int = 0
    lost: int = 0
    memory: dict[int, int] = field(default_factory=dict)

    def keep(self, record: Record) -> None:
        """Write a record, or lose it where the ring is full."""
        if self.written - self.read >= self.depth:
            self.lost += 1
            return
        start = RECORD_WORDS * (self.written % self.depth)
        self.memory.update(enumerate(record.words(), start))
        self.written += 1


# Port ---------------------------------------------------------------------------------------------


LEAST_SFD_SPACING = 8
"""Octets between two SFDs that are taken."""


@dataclass(frozen=True)
class Symbol:
    """One octet time at a GMII."""

    carrier: bool = False
    octet: int = 0
    error: bool = False


@dataclass(frozen=True)
class WireFrame:
    """A frame whose SFD was taken; ``sfd_tick`` counts octet times from the first symbol."""

    sfd_tick: int
    octets: bytes
    symbol_error: bool

    @property
    def data(self) -> bytes:
        """The frame without its FCS (its last four octets, whatever they are)."""
        return self.octets[: max(0, len(self.octets) - FCS)]

    @property
    def faults(self) -> RecordFlag:
        """Faults of the frame, whatever it carries."""
        faults = RecordFlag.NONE
        fcs = zlib.crc32(self.data).to_bytes(FCS, "little")
        if len(self.octets) < FCS or self.octets[-FCS:] != fcs:
            faults |= RecordFlag.FCS_ERROR
        if self.symbol_error:
            faults |= RecordFlag.SYMBOL_ERROR
        if len(self.data) < MIN_LENGTH:
            faults |= RecordFlag.RUNT
        if len(self.data) > GIANT_LENGTH:
            faults |= RecordFlag.GIANT
        return faults


def frames_of(symbols: Iterable[Symbol]) -> tuple[list[WireFrame], int]:
    """Return the frames that a receiver takes from the wire, and how many carriers it refuses.

    A preamble is octets 0x55 and then the SFD; any other octet, no SFD at all, or an SFD fewer than
    ``LEAST_SFD_SPACING`` octets after the last one refuses the carrier.
    """
    frames: list[WireFrame] = []
    refused = 0
    carrier: list[tuple[int, Symbol]] = []
    last_sfd = -LEAST_SFD_SPACING
    for tick, symbol in enumerate([*symbols, Symbol()]):
        if symbol.carrier:
            carrier.append((tick, symbol))
            continue
        if not carrier:
            continue
        start = next((k for k, (_, s) in enumerate(carrier) if s.octet != PREAMBLE_OCTET), None)
        if start is None or carrier[start][1].octet != SFD_OCTET or carrier[start][0] - last_sfd < LEAST_SFD_SPACING:
            refused += 1
        else:
            last_sfd = carrier[start][0]
            octets = bytes(s.octet for _, s in carrier[start + 1 :])
            frames.append(WireFrame(last_sfd, octets, any(s.error for _, s in carrier)))
        carrier = []
    return frames, refused


PORT_COUNTERS = {
    RecordFlag.FCS_ERROR: "fcs_errors",
    RecordFlag.RUNT: "runts",
    RecordFlag.GIANT: "giants",
    RecordFlag.SYMBOL_ERROR: "symbol_errors",
}


@dataclass
class PortModel:
    """A port's counters, meters and ring of records, frame by frame."""

    stream_id: int = 1
    depth: int = 128
    management: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Set up what depends on the parameters."""
        self.ring = RingModel(self.depth)
        self.meter = PortMeterModel(self.stream_id, slots=RECORD_SLOTS, window=RECORD_WINDOW)
        names = ["length_errors", "all_frames", "all_octets", "preamble_errors", "management_frames", "unclassified"]
        names += [*PORT_COUNTERS.values(), "bad_probes", "overflows", "stamp_errors", "management_dropped"]
        self.counters = dict.fromkeys(names, 0)

    @property
    def stream(self) -> dict[str, int]:
        """Accumulators of the stream, and ``lost`` beside them."""
        return self.meter.streams[1].accumulators()

    def receive(self, frame: WireFrame, rx_stamp: int, is_classified: bool = True) -> None:
        """Take one frame and its stamp (ns); one that comes too soon after another is not classified."""
        faults = frame.faults
        header = unified_header(frame.data, verdict=UnifiedFlag(int(faults)))
        self.counters["all_frames"] += 1
        self.counters["all_octets"] += header.length
        for flag, name in PORT_COUNTERS.items():
            self.counters[name] += bool(faults & flag)
        if not header.flags & UnifiedFlag.PROBE and not faults & DAMAGE:
            self.management.append(frame.data)
            self.counters["management_frames"] += 1
        if is_classified:
            self.measure(header, faults, rx_stamp)
        else:
            self.counters["unclassified"] += 1

    def measure(self, header: UnifiedHeader, faults: RecordFlag, rx_stamp: int) -> None:
        """Take one frame that is classified; keep a record of it where it is a probe's."""
        flags = faults | (RecordFlag.LENGTH_ERROR if header.flags & UnifiedFlag.LENGTH_ERROR else RecordFlag.NONE)
        is_probe = header.tx_stamp is not None
        is_bad = RecordFlag.LENGTH_ERROR in flags or not is_probe
        self.counters["length_errors"] += bool(header.flags & UnifiedFlag.PROBE and is_bad and not faults & DAMAGE)
        self.counters["bad_probes"] += bool(is_probe and flags & FAULTS)
        stream_id, tx_stamp = int.from_bytes(header.detail[2:]), header.tx_stamp or 0
        order = self.meter.arrive(
            MeasuredFrame(rx_stamp, header.length, int(flags), is_probe, stream_id, header.sequence, tx_stamp)
        )
        if is_probe:
            flags |= order if stream_id == self.stream_id else RecordFlag.FOREIGN_STREAM
            self.ring.keep(Record(header.sequence, tx_stamp, rx_stamp, header.length, flags))
