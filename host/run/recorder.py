# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Records of trains on a probe that captures: of each probe frame the capture keeps the octets up to its TX stamp."""

from collections.abc import Callable, Iterable

from liteprobe.cores.formats import FILL_OFFSET, PAYLOAD_OFFSET_IPV6, RECORD_HEAD_WORDS, VLAN_TAG
from liteprobe.host.capture.decode.stream import PAYLOAD_WORDS, BlockDecoder
from liteprobe.host.capture.filter.fit import clear_filter
from liteprobe.host.capture.request import CaptureSettings, Keep
from liteprobe.host.capture.ring import CaptureRing
from liteprobe.host.clock.timebase import Timebase
from liteprobe.host.device.registers import Registers
from liteprobe.host.errors import ProbeError
from liteprobe.host.run.records import Records, concatenated, records_of
from liteprobe.host.traffic.train import TrainProgram

CHANNEL = 0
SNAP_SPARE = 2 * VLAN_TAG  # For tags and labels that the network puts before a frame's own.
SNAP_MOST = PAYLOAD_OFFSET_IPV6 + 2 * VLAN_TAG + FILL_OFFSET + SNAP_SPARE
WORDS_MOST = RECORD_HEAD_WORDS + -(-SNAP_MOST // 4)  # Of a record.
WRAP = 1 << 32


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
        self.depth = (blocks - 1) * PAYLOAD_WORDS // WORDS_MOST // ports  # A block is open.
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


def keep_nothing(registers: Registers, ports: Iterable[int]) -> None:
    """Have a capture keep no frame of ``ports``."""
    registers.write_many({f"port{port}_monitor_keep": 0 for port in ports})
