# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Recorded captures: frames as the blocks that a probe hands over, written word by word from the page of the format.

Source: docs/design/monitor.md ("Record", "Block").
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    BLOCK_DTYPE, BLOCK_MAGIC, BLOCK_VERSION, BLOCK_WORDS, NO_RECORD, NO_RULE, UNIFIED_DTYPE, UnifiedFlag,
)
from liteprobe.sim.models.receive.monitor import flow_hash
from liteprobe.sim.models.receive.unified import unified_header

PAYLOAD_WORDS = BLOCK_WORDS - 4
LINE_NS = 8  # An octet at 1 Gb/s.


@dataclass(frozen=True)
class Captured:
    """A frame of a capture, or (``missing``) frames that were dropped at this place."""

    stamp: int
    octets: bytes = b""
    port: int = 0
    channel: int = 0
    flags: UnifiedFlag = UnifiedFlag.NONE
    rule: int = NO_RULE
    snap: int = 65535
    with_header: bool = False
    missing: int = 0
    with_hash: bool = True

    @property
    def kept(self) -> bytes:
        """Octets that are kept."""
        return self.octets[: self.snap]

    def record(self) -> bytes:
        """Return the record."""
        way = self.channel | self.port << 4
        if self.missing:
            return struct.pack("<QIHBB", self.stamp, self.missing, UnifiedFlag.GAP, 0, way)
        kept = self.kept
        padded = kept + bytes(-len(kept) % 4)
        if not self.with_header:
            head = struct.pack("<QHHHBB", self.stamp, len(self.octets), len(kept), self.flags, self.rule, way)
            return head + padded
        made = unified_header(self.octets, self.port)
        made.hash = flow_hash(made) if self.with_hash else 0
        header = np.frombuffer(made.octets(), UNIFIED_DTYPE).copy()
        flags = int(header["flags"][0]) | self.flags | UnifiedFlag.HEADER
        header["stamp"], header["flags"], header["rule"], header["way"] = self.stamp, flags, self.rule, way
        header["snap_length"] = len(kept)
        return header.tobytes() + padded


@dataclass
class ChannelWriter:
    """Cuts the records of a channel into blocks."""

    channel: int
    number: int = 0
    dropped: int = 0
    _words: list[int] = field(default_factory=list)
    _begins: list[int] = field(default_factory=list)

    def add(self, record: bytes, missing: int = 0) -> list[bytes]:
        """Append a record; return the blocks that it fills."""
        self.dropped += missing
        self._begins.append(len(self._words))
        self._words += struct.unpack(f"<{len(record) // 4}I", record)
        made = []
        while len(self._words) >= PAYLOAD_WORDS:
            made.append(self._close(PAYLOAD_WORDS))
        return made

    def flush(self) -> list[bytes]:
        """Close the block that is open, if there is something in it."""
        return [self._close(len(self._words))] if self._words else []

    def _close(self, count: int) -> bytes:
        first = min((begin for begin in self._begins if begin < count), default=NO_RECORD)
        kind = BLOCK_VERSION << 12 | self.channel << 8
        header = struct.pack("<IHHIHH", self.number, count, first, self.dropped, kind, BLOCK_MAGIC)
        payload = struct.pack(f"<{count}I", *self._words[:count])
        self._words = self._words[count:]
        self._begins = [begin - count for begin in self._begins if begin >= count]
        self.number = (self.number + 1) & 0xFFFFFFFF
        return (header + payload).ljust(4 * BLOCK_WORDS, b"\0")


def blocks_of(frames: Iterable[Captured], flush_every: int = 0, first_number: int = 0) -> NDArray[np.uint32]:
    """Return the blocks of a capture, shape (blocks, 368), as they leave; ``flush_every`` frames all are closed."""
    writers: dict[int, ChannelWriter] = {}
    made: list[bytes] = []
    for number, frame in enumerate(frames, start=1):
        writer = writers.setdefault(frame.channel, ChannelWriter(frame.channel, first_number))
        made += writer.add(frame.record(), frame.missing)
        if flush_every and number % flush_every == 0:
            made += [block for each in writers.values() for block in each.flush()]
    made += [block for each in writers.values() for block in each.flush()]
    return np.frombuffer(b"".join(made), np.uint32).reshape(-1, BLOCK_WORDS)


def line_rate(
    count: int,
    length: int = 60,
    start_ns: int = 10**18,
    with_header: bool = False,
    snap: int = 65535,
    frames: NDArray[np.uint8] | None = None,
) -> NDArray[np.uint32]:
    """Return the blocks of ``count`` frames of one length at line rate: UDP between 1024 pairs of addresses.

    All on channel 0, port 0; made without a walk through each frame, for speed. ``frames``: 1024 others, each of ``length``.
    """
    if frames is None:
        frames = np.random.default_rng(1).integers(0, 256, (1024, length), np.uint8)
        for number, frame in enumerate(frames):
            frame[:42] = np.frombuffer(_udp(number, length), np.uint8)
    models = [Captured(0, frame.tobytes(), with_header=with_header, snap=snap).record() for frame in frames]
    table = np.frombuffer(b"".join(models), np.uint32).reshape(1024, -1)
    stream = table[np.arange(count) % 1024]
    stamps = start_ns + LINE_NS * (length + 24) * np.arange(count, dtype=np.uint64)
    stream[:, 0], stream[:, 1] = stamps & 0xFFFFFFFF, stamps >> 32
    size = stream.shape[1]
    words = stream.reshape(-1)
    whole = len(words) // PAYLOAD_WORDS
    blocks = np.zeros((whole, BLOCK_WORDS), np.uint32)
    blocks[:, 4:] = words[: whole * PAYLOAD_WORDS].reshape(whole, PAYLOAD_WORDS)
    headers = np.zeros(whole, BLOCK_DTYPE)
    headers["number"] = np.arange(whole)
    headers["words"] = PAYLOAD_WORDS
    headers["first"] = -(PAYLOAD_WORDS * np.arange(whole)) % size
    headers["kind"], headers["magic"] = BLOCK_VERSION << 12, BLOCK_MAGIC
    blocks[:, :4] = headers.view(np.uint32).reshape(whole, 4)
    return blocks


def _udp(number: int, length: int) -> bytes:
    """Return the headers of a UDP frame of flow ``number``, no checksums."""
    ethernet = bytes.fromhex("020000000002020000000001") + b"\x08\x00"
    addresses = struct.pack(">II", 0x0A000000 + number, 0x0A010000 + number % 32)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, length - 14, number, 0, 64, 17, 0) + addresses
    return ethernet + ip + struct.pack(">HHHH", 1024 + number, 5001, length - 34, 0)


def mixed(count: int, seed: int, channels: Sequence[int] = (0,), gaps: float = 0.0) -> list[Captured]:
    """Return random frames of all lengths, headers and snap lengths, on both ports; the share ``gaps`` are gaps."""
    random = np.random.default_rng(seed)
    stamp = 1_700_000_000_000_000_000
    frames = []
    for _ in range(count):
        length = int(
            random.choice(np.array([random.integers(14, 1519), random.integers(60, 128), random.integers(1519, 9100)]))
        )
        channel, port = int(random.choice(np.array(channels))), int(random.integers(2))
        stamp += int(random.integers(1, 20_000))
        if random.random() < gaps:
            frames.append(Captured(stamp, channel=channel, port=port, missing=int(random.integers(1, 2**20))))
            continue
        snap = int(random.choice(np.array([65535, 0, random.integers(1, 300)])))
        flags = UnifiedFlag.MATCHED if random.random() < 0.5 else UnifiedFlag.NONE
        if random.random() < 0.1:
            flags |= UnifiedFlag.FCS_ERROR
        frames.append(
            Captured(
                stamp, random.bytes(length), port, channel, flags, rule=int(random.integers(72)), snap=snap,
                with_header=bool(random.random() < 0.3),
            )
        )  # fmt: skip
    return frames
