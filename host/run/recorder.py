# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Records of trains on a probe that captures: of each probe frame the capture keeps the octets up to its TX stamp."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    FAULTS,
    FILL_OFFSET,
    LABELS_MAX,
    PAYLOAD_OFFSET_IPV4,
    PAYLOAD_OFFSET_IPV6,
    RECORD_DTYPE,
    RECORD_HEAD_WORDS,
    SIGNATURE,
    TAGS_MAX,
    VLAN_TAG,
    RecordFlag,
    UnifiedFlag,
)
from liteprobe.host.capture.batch import Batch
from liteprobe.host.capture.copy_ranges import take
from liteprobe.host.capture.filter import clear_filter
from liteprobe.host.capture.ring import CaptureRing
from liteprobe.host.capture.settings import CaptureSettings, Keep
from liteprobe.host.capture.stream import PAYLOAD_WORDS, BlockDecoder
from liteprobe.host.device.registers import Registers
from liteprobe.host.device.timebase import Timebase
from liteprobe.host.errors import ProbeError

CHANNEL = 0
#: Octets kept of a frame: its headers, whatever tags and labels the network has put before them, and the TX stamp.
SNAP_OCTETS = PAYLOAD_OFFSET_IPV6 + FILL_OFFSET + VLAN_TAG * (TAGS_MAX + LABELS_MAX)
RECORD_WORDS = RECORD_HEAD_WORDS + SNAP_OCTETS // 4  # The most.
SETTINGS = CaptureSettings((CHANNEL,), SNAP_OCTETS, Keep.PACKETS, with_damaged=True)
FIRST_PLACE = PAYLOAD_OFFSET_IPV4  # Of a signature: from there on every four octets.
SIGNATURE_OCTETS = np.frombuffer(SIGNATURE.to_bytes(4, "big"), np.uint8)
PAYLOAD_DTYPE = np.dtype([("signature", ">u4"), ("stream_id", ">u2"), ("sequence", ">u4"), ("tx_stamp", ">u8")])
PROBE, GAP, FOREIGN = int(UnifiedFlag.PROBE), int(UnifiedFlag.GAP), int(RecordFlag.FOREIGN_STREAM)
WRAP = 1 << 32

Records = NDArray[np.void]


class Recorder:
    """Takes the records of a probe's trains from its capture, whose filter and channels it sets; they come over the bus.

    Parameters
    ----------
    registers : Registers
        Of a probe that monitors.
    ports : int
        Test ports of the probe.
    wait : callable
        Lets so many seconds of the probe's time pass.

    Attributes
    ----------
    depth : int
        Records that wait at the most, of all ports together.
    """

    def __init__(self, registers: Registers, ports: int, wait: Callable[[float], None]) -> None:
        self._registers = registers
        self._ports = ports
        self._wait = wait
        self._ring = CaptureRing(registers)
        blocks = 1 << self._ring.blocks.bit_length() - 1
        self.depth = blocks * PAYLOAD_WORDS // RECORD_WORDS
        self._is_running = False
        self._read = 0
        self._decoder = BlockDecoder()
        self._streams: dict[int, int] = {}
        self._records: dict[int, list[Records]] = {}

    def begin(self, port: int, stream_id: int) -> None:
        """Record the probe frames that come to ``port`` from now on, too; those not of ``stream_id`` are flagged."""
        if not self._is_running:
            clear_filter(self._registers)
            keep_nothing(self._registers, range(self._ports))
            self._ring.start((CHANNEL,))
            self._is_running, self._read = True, 0
            self._decoder, self._streams, self._records = BlockDecoder({CHANNEL: 0}), {}, {}
        self._streams[port] = stream_id
        SETTINGS.write(self._registers, [port])

    def take(self, port: int) -> Records:
        """Return the records of ``port`` that have come since the last time, of ``RECORD_DTYPE``.

        Raises
        ------
        ProbeError
            When the capture was begun anew by another.
        """
        if self._is_running:
            self._fetch()
        return concatenated(self._records.pop(port, []))

    def stop(self) -> None:
        """End the capture; what came until now can still be taken."""
        if self._is_running:
            self._ring.stop(self._wait)
            self._fetch()
            self._is_running = False

    def record_ns(self, timebase: Timebase) -> float:
        """Return the time that a record takes to fetch, by fetching a block (ns of the probe's clock)."""
        before_ns = timebase.now_ns
        self._ring.fetch_place(0)
        return (timebase.now_ns - before_ns) * RECORD_WORDS / PAYLOAD_WORDS

    def _fetch(self) -> None:
        """Fetch the blocks that are closed, sort their records by port, and free their places."""
        state = self._ring.states()[CHANNEL]
        waiting = (state.written - self._read) % WRAP
        if waiting > state.taken:
            raise ProbeError("the capture began anew while it was read: is another program capturing, too? Run again")
        if not waiting:
            return
        batch = self._decoder.decode(self._ring.fetch(CHANNEL, range(self._read, self._read + waiting)))
        self._read = (self._read + waiting) % WRAP
        self._ring.free(CHANNEL, self._read)
        for port, stream_id in self._streams.items():
            self._records.setdefault(port, []).append(records_of(batch.select(batch.port == port), stream_id))


def records_of(batch: Batch, stream_id: int) -> Records:
    """Return a record of each probe frame in a capture of their octets, in order; gaps and frames without a stamp have none.

    Flags of sequence (duplicate, reordered, beyond the window) are not set: a host that has all records needs none.
    """
    flags = batch.heads["flags"]
    frames = batch.select((flags & PROBE != 0) & (flags & GAP == 0) & (batch.stamp != 0))
    records = np.empty(len(frames), RECORD_DTYPE)
    records["rx_stamp"], records["length"] = frames.heads["stamp"], frames.heads["length"]
    records["flags"] = frames.heads["flags"] & int(FAULTS)
    is_whole = np.zeros(len(frames), bool)
    for size in np.unique(frames.snap_length).tolist():
        of_size = np.flatnonzero(frames.snap_length == size)
        octets = take(frames.words, frames.octets_at[of_size], np.dtype((np.void, -(-size // 4) * 4)))
        table = octets.view(np.uint8).reshape(len(of_size), -1)[:, :size]
        for place in range(FIRST_PLACE, size - FILL_OFFSET + 1, 4):
            here = ~is_whole[of_size] & (table[:, place : place + 4] == SIGNATURE_OCTETS).all(axis=1)
            payload = np.ascontiguousarray(table[here, place : place + FILL_OFFSET]).view(PAYLOAD_DTYPE)[:, 0]
            chosen = of_size[here]
            records["sequence"][chosen], records["tx_stamp"][chosen] = payload["sequence"], payload["tx_stamp"]
            records["flags"][chosen] |= np.where(payload["stream_id"] == stream_id, 0, FOREIGN).astype(np.uint16)
            is_whole[chosen] = True
    return records[is_whole]


def keep_nothing(registers: Registers, ports: Iterable[int]) -> None:
    """Have a capture keep no frame of ``ports``."""
    registers.write_many({f"port{port}_monitor_keep": 0 for port in ports})


def concatenated(records: Sequence[Records]) -> Records:
    """Return records that were taken one after the other, in one array of ``RECORD_DTYPE``."""
    return np.concatenate(records) if records else np.empty(0, dtype=RECORD_DTYPE)
