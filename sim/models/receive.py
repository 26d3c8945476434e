# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for the receive path: from octets on a GMII to counters and records."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from liteprobe.cores.formats import (
    DAMAGE,
    FCS,
    GIANT_LENGTH,
    MIN_LENGTH,
    PREAMBLE_OCTET,
    SFD_OCTET,
    SIGNATURE,
    RecordFlag,
)
from liteprobe.sim.models.delay import DelayModel
from liteprobe.sim.models.record import Record, RingModel
from liteprobe.sim.models.sequence import SequenceModel

LEAST_SFD_SPACING = 8
"""Octets between two SFDs that are taken."""

TRUNK_TYPES = (0x8100, 0x88A8)
"""VLAN tags: C-tag and S-tag."""


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
        """What is wrong with the frame, whatever it carries."""
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


@dataclass(frozen=True)
class ProbeHeader:
    """What a probe frame says of itself; fields that it ends before are 0."""

    stream_id: int
    sequence: int
    tx_stamp: int
    length_error: bool


def probe_header(data: bytes) -> ProbeHeader | None:
    """Return the probe header of a frame (without FCS), or None where no signature is recognised."""
    offset = 12
    while int.from_bytes(data[offset : offset + 2]) in TRUNK_TYPES and offset < 12 + 2 * 4:
        offset += 4
    ethertype, ip = int.from_bytes(data[offset : offset + 2]), offset + 2
    if ethertype == 0x0800 and data[ip : ip + 1] == b"\x45":
        fragment, protocol, udp = int.from_bytes(data[ip + 6 : ip + 8]) & 0x3FFF, data[ip + 9 : ip + 10], ip + 20
        claimed = int.from_bytes(data[ip + 2 : ip + 4])
    elif ethertype == 0x86DD and data[ip : ip + 1] and data[ip] >> 4 == 6:
        fragment, protocol, udp = 0, data[ip + 6 : ip + 7], ip + 40
        claimed = int.from_bytes(data[ip + 4 : ip + 6]) + 40
    else:
        return None
    payload = data[udp + 8 :]
    if fragment or protocol != b"\x11" or len(payload) < 6 or int.from_bytes(payload[:4]) != SIGNATURE:
        return None
    udp_length = int.from_bytes(data[udp + 4 : udp + 6])
    fits = len(data) == max(ip + claimed, MIN_LENGTH) and udp_length == claimed - (udp - ip)

    def whole(offset: int) -> int:
        """Return four octets of the payload, 0 where the frame ends before or in them."""
        return int.from_bytes(payload[offset : offset + 4]) if len(payload) >= offset + 4 else 0

    return ProbeHeader(
        stream_id=int.from_bytes(payload[4:6]),
        sequence=whole(6),
        tx_stamp=(whole(10) << 32) | whole(14),
        length_error=not (fits and len(payload) >= 18),
    )


PORT_COUNTERS = {
    RecordFlag.FCS_ERROR: "fcs_errors",
    RecordFlag.RUNT: "runts",
    RecordFlag.GIANT: "giants",
    RecordFlag.SYMBOL_ERROR: "symbol_errors",
}


@dataclass
class PortModel:
    """A port's registers and ring, frame by frame."""

    stream_id: int | None = None
    depth: int = 1024
    counters: dict[str, int] = field(default_factory=dict)
    sequence: SequenceModel = field(default_factory=SequenceModel)
    delay: DelayModel = field(default_factory=DelayModel)
    management: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Set up what depends on the parameters."""
        self.ring = RingModel(self.depth)
        names = ["frames", "octets", "first_stamp", "last_stamp", "length_errors", "foreign_streams"]
        names += ["all_frames", "all_octets", "preamble_errors", "management_frames", *PORT_COUNTERS.values()]
        names += ["overflows", "stamp_errors", "management_dropped"]
        self.counters = dict.fromkeys(names, 0)

    @staticmethod
    def is_probe(frame: WireFrame) -> bool:
        """Tell whether the frame carries the signature: such frames get a stamp and a record."""
        return probe_header(frame.data) is not None

    def receive(self, frame: WireFrame, rx_stamp: int) -> None:
        """Take one frame and its stamp (ns)."""
        length = min(len(frame.data), 0xFFFF)
        faults = frame.faults
        self.counters["all_frames"] += 1
        self.counters["all_octets"] += length
        for flag, name in PORT_COUNTERS.items():
            self.counters[name] += bool(faults & flag)
        header = probe_header(frame.data)
        if header is not None:
            self.measure(header, faults, length, rx_stamp)
        elif not faults & DAMAGE:
            self.management.append(frame.data)
            self.counters["management_frames"] += 1

    def measure(self, header: ProbeHeader, faults: RecordFlag, length: int, rx_stamp: int) -> None:
        """Take one probe frame."""
        flags = faults | (RecordFlag.LENGTH_ERROR if header.length_error else RecordFlag.NONE)
        is_foreign = self.stream_id is not None and header.stream_id != self.stream_id
        if is_foreign:
            flags |= RecordFlag.FOREIGN_STREAM
        if not faults & DAMAGE:
            self.counters["length_errors"] += header.length_error
            self.counters["foreign_streams"] += is_foreign and not header.length_error
        if flags == RecordFlag.NONE:
            flags |= self.sequence.arrive(header.sequence)
            self.delay.arrive(rx_stamp, header.tx_stamp)
            if self.counters["frames"] == 0:
                self.counters["first_stamp"] = rx_stamp
            self.counters["frames"] += 1
            self.counters["octets"] += length
            self.counters["last_stamp"] = rx_stamp
        self.ring.keep(Record(header.sequence, header.tx_stamp, rx_stamp, length, flags))

    def registers(self) -> dict[str, int]:
        """Return every accumulator by its register name; signed ones as signed numbers."""
        return self.counters | {
            "lost": self.sequence.lost,
            "duplicated": self.sequence.duplicated,
            "reordered": self.sequence.reordered,
            "beyond_window": self.sequence.beyond_window,
            "expected": self.sequence.expected,
            "delay_min": self.delay.least,
            "delay_max": self.delay.most,
            "delay_sum": self.delay.total,
            "delay_square_sum": self.delay.squares,
        }
