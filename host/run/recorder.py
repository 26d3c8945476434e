# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Records of trains on a probe that captures: of each probe frame the capture keeps the octets up to its TX stamp."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    EXTENSIONS_MAX,
    FAULTS,
    FILL_OFFSET,
    LABELS_MAX,
    PAYLOAD_OFFSET_IPV6,
    RECORD_DTYPE,
    RECORD_HEAD_WORDS,
    SIGNATURE,
    TAG_KINDS,
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
from liteprobe.host.traffic.train import TrainProgram

CHANNEL = 0
SNAP_SPARE = 2 * VLAN_TAG  # For tags and labels that the network puts before a frame's own.
SNAP_MOST = PAYLOAD_OFFSET_IPV6 + 2 * VLAN_TAG + FILL_OFFSET + SNAP_SPARE
RECORD_WORDS = RECORD_HEAD_WORDS + -(-SNAP_MOST // 4)  # The most.
MPLS = (0x8847, 0x8848)
FRAGMENT, AUTHENTICATION = 44, 51
EXTENSIONS = (0, 43, FRAGMENT, AUTHENTICATION, 60)  # Of IPv6, that the probe walks through.
UDP_OCTETS = 8
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
        Records of each port that wait at the most, when all ports record.
    dropped : int
        Frames that found the ring full, of all ports, as of the last look.
    """

    def __init__(self, registers: Registers, ports: int, wait: Callable[[float], None]) -> None:
        self._registers = registers
        self._ports = ports
        self._wait = wait
        self._ring = CaptureRing(registers)
        blocks = 1 << self._ring.blocks.bit_length() - 1
        self.depth = (blocks - 1) * PAYLOAD_WORDS // RECORD_WORDS // ports  # A block is open.
        self.dropped = 0
        self._is_running = False
        self._read = 0
        self._decoder = BlockDecoder()
        self._streams: dict[int, int] = {}
        self._records: dict[int, list[Records]] = {}

    def begin(self, port: int, program: TrainProgram) -> None:
        """Record the probe frames that come to ``port`` from now on, too; those not of the program's stream are flagged.

        Kept of each are the octets up to its TX stamp, and room for two tags or labels of the network.
        """
        if not self._is_running:
            clear_filter(self._registers)
            keep_nothing(self._registers, range(self._ports))
            self._ring.start((CHANNEL,))
            self._is_running, self._read = True, 0
            self._decoder, self._streams, self._records = BlockDecoder({CHANNEL: 0}), {}, {}
        self._streams[port] = program.stream_id
        snap = program.headers.payload_offset + FILL_OFFSET + SNAP_SPARE
        CaptureSettings((CHANNEL,), snap, Keep.PACKETS, with_damaged=True).write(self._registers, [port])

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
            self._is_running = False  # Whatever comes of it: the next one begins anew.
            self._ring.stop(self._wait)
            self._fetch()

    def record_ns(self, timebase: Timebase) -> float:
        """Return the time that a record takes to fetch, by fetching a block (ns of the probe's clock)."""
        before_ns = timebase.now_ns
        self._ring.fetch_place(0)
        return (timebase.now_ns - before_ns) * RECORD_WORDS / PAYLOAD_WORDS

    def _fetch(self) -> None:
        """Fetch the blocks that are closed, sort their records by port, and free their places."""
        state = self._ring.states()[CHANNEL]
        self.dropped = state.dropped
        waiting = (state.written - self._read) % WRAP
        if waiting > state.taken:
            raise ProbeError("the capture began anew while it was read: is another program capturing, too? Run again")
        if not waiting:
            return
        blocks = self._ring.fetch(CHANNEL, range(self._read, self._read + waiting))
        self._read = (self._read + waiting) % WRAP  # Before they are decoded: an interrupt must not bring them twice.
        batch = self._decoder.decode(blocks)
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
        places = payload_places(table)
        here = places + FILL_OFFSET <= size
        chosen, columns = of_size[here], places[here, np.newaxis] + np.arange(FILL_OFFSET)
        payload = np.ascontiguousarray(table[here][np.arange(len(chosen))[:, np.newaxis], columns]).view(PAYLOAD_DTYPE)[
            :, 0
        ]
        records["sequence"][chosen], records["tx_stamp"][chosen] = payload["sequence"], payload["tx_stamp"]
        records["flags"][chosen] |= np.where(payload["stream_id"] == stream_id, 0, FOREIGN).astype(np.uint16)
        is_whole[chosen] = payload["signature"] == SIGNATURE
    return records[is_whole]


def payload_places(table: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return where the UDP payload of each frame begins, walking through its headers as the probe's parser does.

    Parameters
    ----------
    table : array, shape (frames, octets)
        The first octets of frames that the parser found to be a probe's.

    Returns
    -------
    array, shape (frames,)
        Places (octets); beyond the octets that are there where the headers end beyond them.
    """
    rows, last = np.arange(len(table)), table.shape[1] - 1

    def octet(places: NDArray[np.int64]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = table[rows, np.minimum(places, last)].astype(np.int64)
        return found

    def pair(places: NDArray[np.int64]) -> NDArray[np.int64]:
        return octet(places) << 8 | octet(places + 1)

    at = np.full(len(table), 12)
    for _ in range(TAGS_MAX):
        at += 4 * np.isin(pair(at), list(TAG_KINDS))
    is_label = np.isin(pair(at), MPLS)
    at += 2
    for _ in range(LABELS_MAX):
        is_bottom = octet(at + 2) & 1 == 1
        at += 4 * is_label
        is_label &= ~is_bottom
    version, length, following = octet(at) >> 4, octet(at) & 15, octet(at + 6)
    at += np.where(version == 4, 4 * length, 40)
    is_walking = version == 6
    for _ in range(EXTENSIONS_MAX):
        is_walking &= np.isin(following, EXTENSIONS)
        size = np.where(following == AUTHENTICATION, 4 * (octet(at + 1) + 2), 8 * (octet(at + 1) + 1))
        size = np.where(following == FRAGMENT, 8, size)
        following = np.where(is_walking, octet(at), following)
        at += np.where(is_walking, size, 0)
    return at + UDP_OCTETS


def keep_nothing(registers: Registers, ports: Iterable[int]) -> None:
    """Have a capture keep no frame of ``ports``."""
    registers.write_many({f"port{port}_monitor_keep": 0 for port in ports})


def concatenated(records: Sequence[Records]) -> Records:
    """Return records that were taken one after the other, in one array of ``RECORD_DTYPE``."""
    return np.concatenate(records) if records else np.empty(0, dtype=RECORD_DTYPE)
