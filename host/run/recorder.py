# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Takes the records of trains from a probe's capture, which keeps of each probe frame the octets up to its TX stamp."""

from collections.abc import Callable

import numpy as np

from liteprobe.cores.formats import (
    FAULTS,
    FILL_OFFSET,
    PAYLOAD_OFFSET_IPV6,
    RECORD_DTYPE,
    RECORD_HEAD_WORDS,
    SIGNATURE,
    VLAN_TAG,
    RecordFlag,
    UnifiedFlag,
)
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.capture.decode import PAYLOAD_WORDS, BlockDecoder
from liteprobe.host.capture.request import CaptureSettings, Keep
from liteprobe.host.capture.ring import CaptureRing, clear_filter
from liteprobe.host.clock.timebase import Timebase
from liteprobe.host.device.registers import Registers
from liteprobe.host.packets.batch import Batch
from liteprobe.host.packets.frames import take
from liteprobe.host.packets.unified import payload_places
from liteprobe.host.run.receive import EVENTS, MeterPort, Records, concatenated
from liteprobe.host.traffic.train import TrainProgram

CHANNEL = 0
SNAP_SPARE = 2 * VLAN_TAG  # For tags and labels that the network puts before a frame's own.
SNAP_MOST = PAYLOAD_OFFSET_IPV6 + 2 * VLAN_TAG + FILL_OFFSET + SNAP_SPARE
WORDS_MOST = RECORD_HEAD_WORDS + -(-SNAP_MOST // 4)  # Of a record.
WRAP = 1 << 32
#: Frames that the capture has no record of (no place for it), or none of their octets.
UNRECORDED = ("unplaced", "staging_dropped")
PAYLOAD_DTYPE = np.dtype([("signature", ">u4"), ("stream_id", ">u2"), ("sequence", ">u4"), ("tx_stamp", ">u8")])
PROBE, GAP, FOREIGN = int(UnifiedFlag.PROBE), int(UnifiedFlag.GAP), int(RecordFlag.FOREIGN_STREAM)
NOT_OF_THE_STREAM = int(FAULTS) | FOREIGN


class Recorder:
    """Takes the records of a probe's trains from its capture, whose filter and channels it sets; they come over the bus.

    ``ports``: test ports of the probe; ``wait``: lets so many seconds of the probe's time pass.
    """

    def __init__(self, registers: Registers, ports: int, wait: Callable[[float], None]) -> None:
        self._registers = registers
        self._ports = ports
        self._wait = wait
        self._ring = CaptureRing(registers)
        blocks = 1 << self._ring.blocks.bit_length() - 1
        #: Records of each port that wait at the most, when all ports record.
        self.depth = (blocks - 1) * PAYLOAD_WORDS // WORDS_MOST // ports  # A block is open.
        self.dropped = 0  # Frames that found the ring full, of all ports, as of the last look.
        self._is_running = False
        self._read = 0
        self._decoder = BlockDecoder()
        self._streams: dict[int, int] = {}
        self._records: dict[int, list[Records]] = {}

    def begin(self, port: int, program: TrainProgram) -> None:
        """Record the probe frames that come to ``port`` from now on, too; those not of the program's stream are flagged.

        Kept of each are the octets up to its TX stamp, and space for two tags or labels of the network.
        """
        if not self._is_running:
            clear_filter(self._registers)
            self._registers.write_many({f"port{number}_monitor_keep": 0 for number in range(self._ports)})
            self._ring.start((CHANNEL,))
            self._is_running, self._read = True, 0
            self._decoder, self._streams, self._records = BlockDecoder({CHANNEL: 0}), {}, {}
        self._streams[port] = program.stream_id
        snap = program.headers.payload_offset + FILL_OFFSET + SNAP_SPARE
        settings = CaptureSettings((CHANNEL,), snap, Keep.PACKETS, with_damaged=True)
        settings.write(self._registers, [port])
        settings.begin(self._registers, [port])

    def take(self, port: int) -> Records:
        """Return the records of ``port`` that have come since the last time, of ``RECORD_DTYPE``.

        Raises ProbeError when the capture was begun anew by another.
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
        return (timebase.now_ns - before_ns) * WORDS_MOST / PAYLOAD_WORDS

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
        payload = np.take_along_axis(table[here], columns, axis=1).view(PAYLOAD_DTYPE).reshape(-1)
        records["sequence"][chosen], records["tx_stamp"][chosen] = payload["sequence"], payload["tx_stamp"]
        records["flags"][chosen] |= np.where(payload["stream_id"] == stream_id, 0, FOREIGN).astype(np.uint16)
        is_whole[chosen] = payload["signature"] == SIGNATURE
    return records[is_whole]


class CapturePort(MeterPort):
    """A port that monitors: its records come by the capture of the probe, and a stream of its meters measures the train.

    ``recorder``: of the probe: all its ports share one.
    """

    keeps_records = True

    def __init__(self, registers: Registers, number: int, recorder: Recorder) -> None:
        super().__init__(registers, number, "monitor", recorder.depth)
        self._recorder = recorder
        self._with_records = False
        self._records = 0  # Good ones of the stream.

    def start(self, program: TrainProgram, with_records: bool = True) -> None:
        """Begin anew, as of `MeterPort`."""
        self._with_records, self._records = with_records, 0
        if with_records:
            self._recorder.begin(self._number, program)
        super().start(program, with_records)

    def drain(self) -> Records:
        """Take the records that have come, as of `ReceivePort`."""
        records = self._recorder.take(self._number)
        self._records += int(np.count_nonzero(records["flags"] & NOT_OF_THE_STREAM == 0))
        return records

    def finish(self) -> Records:
        """Take the last records; the capture ends."""
        self._recorder.stop()
        return self.drain()

    def end(self) -> None:
        """End the capture."""
        self._recorder.stop()

    def record_ns(self, timebase: Timebase) -> float:
        """Return the time that a record takes to fetch, as of `ReceivePort`."""
        return self._recorder.record_ns(timebase)

    def counters(self) -> dict[str, int]:
        """Return what the port counts, as of `ReceivePort`.

        ``records_lost``: good frames of the stream without a record, or records without a frame. ``records_refused``: of
        any frames, those that came faster than the capture takes them. ``records_dropped``: those of all ports that found
        the ring full.
        """
        since = self._since()
        self._latch()
        found = {name: since[name] for name in EVENTS} | self._stream_counters()
        if not self._with_records:
            return found | dict.fromkeys(("records_written", "records_lost", "records_refused", "records_dropped"), 0)
        return found | {
            "records_written": self._records,
            "records_lost": abs(found["frames"] - self._records),
            "records_refused": sum(since[name] for name in UNRECORDED),
            "records_dropped": self._recorder.dropped,
        }
