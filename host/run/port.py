# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A test port: its transmit program, its receive counters and its ring of records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import RECORD_DTYPE, RECORD_WORDS, TransmitState, lost_frames
from liteprobe.host.defaults import FILLS
from liteprobe.host.device.link.base import Words
from liteprobe.host.device.registers import Registers
from liteprobe.host.device.timebase import Timebase
from liteprobe.host.errors import ProbeError
from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.measure.streams import read_accumulators, read_stream
from liteprobe.host.traffic.headers import header_words
from liteprobe.host.traffic.train import Schedule, TrainProgram

TRANSMIT_COUNTERS = (
    "sent",
    "late",
    "first_late",
    "underruns",
    "management_sent",
    "management_held",
    "management_dropped",
    "disturbed",
)
#: What a port counts of any frame.
EVENTS = (
    "all_frames",
    "all_octets",
    "fcs_errors",
    "length_errors",
    "bad_probes",
    "runts",
    "giants",
    "preamble_errors",
    "symbol_errors",
    "overflows",
    "stamp_errors",
    "unclassified",
    "management_frames",
    "management_dropped",
)
WORD = 2**32
SAMPLE_RECORDS = 60  # Fetched to see how long that takes: six datagrams.
HALT_TIMEOUT_NS = 20_000_000
DRAIN_RECORDS = 256  # Read at once, before their places are free: a quarter of the usual ring.


def decode_records(words: Words) -> NDArray[np.void]:
    """Return the records that ``words`` of a ring hold, shape (records,), of ``RECORD_DTYPE``."""
    table = words.reshape(-1, RECORD_WORDS).astype(np.uint64)
    records = np.empty(len(table), dtype=RECORD_DTYPE)
    records["sequence"] = table[:, 0]
    records["tx_stamp"] = table[:, 1] | table[:, 2] << np.uint64(32)
    records["rx_stamp"] = table[:, 3] | table[:, 4] << np.uint64(32)
    records["length"] = table[:, 5] & np.uint64(0xFFFF)
    records["flags"] = table[:, 5] >> np.uint64(16)
    return records


class TransmitPort:
    """The transmit side of a port.

    Parameters
    ----------
    registers : Registers
        Of the probe.
    number : int
        Of the port.
    """

    def __init__(self, registers: Registers, number: int) -> None:
        self._registers = registers
        self._prefix = f"port{number}_tx_"
        self._header = f"port{number}_header"

    def load(self, program: TrainProgram, schedule: Schedule, is_attached: bool = True) -> None:
        """Write a program and its headers; nothing is sent before ``arm`` and a start.

        An attached program ends when this host lets go of the probe, or is gone.
        """
        headers = program.headers
        words = header_words(headers.octets(program.length, program.stream_id))
        self._registers.write_memory(self._header, 0, words)
        self._write_many(
            length=program.length,
            count=program.count,
            repeats=program.repeats,
            interval_ticks=schedule.interval_ticks,
            interval_fraction=schedule.interval_fraction,
            gap_ticks=schedule.gap_ticks,
            start_time=program.start_time_ns or 0,
            timed=int(program.start_time_ns is not None),
            fill=FILLS[program.fill],
            payload_offset=headers.payload_offset,
            checksum_enable=int(headers.is_ipv6),
            checksum_seed=headers.checksum_seed(program.length),
            attached=int(is_attached),
        )

    def clear(self) -> None:
        """Set the counters to zero."""
        self._registers.write(self._prefix + "clear", 1)

    def arm(self) -> None:
        """Take the program, and build its first frames."""
        self._registers.write(self._prefix + "arm", 1)

    def stop(self) -> None:
        """End the program after the present frame."""
        self._registers.write(self._prefix + "stop", 1)

    def look(self) -> tuple[TransmitState, int, bool]:
        """Return what the port does, the frames of its program whose SFD has left, and whether its link is up."""
        # One datagram, read in this order: what is idle has counted its last frame.
        values = self._registers.read_many(self._prefix + name for name in ("state", "sent", "link_up"))
        state, sent, is_up = values.values()
        return TransmitState(state), sent, bool(is_up)

    @property
    def is_link_up(self) -> bool:
        """Whether the PHY has a link, as far as the board can tell."""
        return bool(self._registers.read(self._prefix + "link_up"))

    def counters(self) -> dict[str, int]:
        """Return all counters, by register name."""
        values = self._registers.read_many(self._prefix + name for name in TRANSMIT_COUNTERS)
        return {name.removeprefix(self._prefix): value for name, value in values.items()}

    def _write_many(self, **values: int) -> None:
        self._registers.write_many({self._prefix + name: value for name, value in values.items()})


class ReceivePort:
    """The receive side of a port, with its ring of records.

    Parameters
    ----------
    registers : Registers
        Of the probe.
    number : int
        Of the port.
    depth : int
        Records that the ring holds.
    """

    def __init__(self, registers: Registers, number: int, depth: int) -> None:
        self._registers = registers
        self._number = number
        self._prefix = f"port{number}_rx_"
        self._memory = f"port{number}_records"
        self.depth = depth
        self._read = 0

    def start(self, stream_id: int, with_records: bool = True) -> None:
        """Begin anew: counters, sequence window and ring cleared, taking ``stream_id`` only."""
        self._registers.write_many(
            {self._prefix + "stream_id": stream_id, self._prefix + "records_enable": int(with_records)}
        )
        self._registers.write(self._prefix + "clear", 1)
        # Cleared or not, the ring is empty when both counts agree.
        self._read = self._registers.read(self._prefix + "records_written")
        self._registers.write_many({self._prefix + "records_read": self._read})

    def drain(self) -> NDArray[np.void]:
        """Take the records that have come since the last time, and free their places in the ring.

        Raises
        ------
        ProbeError
            When the ring holds more than it can: it was cleared by another.
        """
        written = self._registers.read(self._prefix + "records_written")
        if (waiting := (written - self._read) % WORD) > self.depth:
            raise ProbeError(
                f"the ring of records was cleared while it was read ({waiting} records wait in {self.depth} places): "
                f"was the probe reset, or do you use it from its console? Run again"
            )
        parts = []
        while waiting := (written - self._read) % WORD:
            first = self._read % self.depth
            count = min(waiting, self.depth - first, DRAIN_RECORDS)
            parts.append(self.fetch(first, count))
            self._read = (self._read + count) % WORD
            self._registers.write_many({self._prefix + "records_read": self._read})
        return concatenated(parts)

    def missing(self, sent: int) -> int:
        """Return how many of ``sent`` frames have not come yet."""
        self._registers.write(self._prefix + "latch", 1)
        return _missing(sent, read_stream(self._registers, self._number))

    def fetch(self, first: int, count: int) -> NDArray[np.void]:
        """Return ``count`` records from place ``first`` of the ring, whatever they hold."""
        return decode_records(self._registers.read_memory(self._memory, RECORD_WORDS * first, RECORD_WORDS * count))

    def record_ns(self, timebase: Timebase) -> float:
        """Return the time that a record takes to fetch, by fetching some (ns of the probe's clock)."""
        count = min(SAMPLE_RECORDS, self.depth)
        before_ns = timebase.now_ns
        self.fetch(0, count)
        return (timebase.now_ns - before_ns) / count

    @property
    def records_lost(self) -> int:
        """Records that found the ring full."""
        return self._registers.read(self._prefix + "records_lost")

    @property
    def is_link_up(self) -> bool:
        """Whether the PHY has a link, as far as the board can tell."""
        return bool(self._registers.read(self._prefix + "link_up"))

    def latch_line(self) -> tuple[int, int]:
        """Return a tick of the line's clock, and its time (ns), as `_latch_line` does."""
        return _latch_line(self._registers, self._prefix)

    def counters(self) -> dict[str, int]:
        """Return what the port counts, accumulators of the stream and the counts of the ring, by name.

        Accumulators are of one moment, and so are the port's counts, up to some microseconds later.
        """
        self._registers.write(self._prefix + "latch", 1)
        names = (*EVENTS, "records_written", "records_lost")
        values = self._registers.read_many(self._prefix + name for name in names)
        found = {name.removeprefix(self._prefix): value for name, value in values.items()}
        return found | _stream_counters(read_accumulators(self._registers, self._number))


@dataclass
class Meters:
    """What `Monitor` must know of a probe."""

    registers: Registers
    port_count: int


class StreamPort:
    """The receive side of a port that keeps no records of trains: one stream of its meters takes their place.

    Parameters
    ----------
    registers : Registers
        Of the probe.
    number : int
        Of the port.
    """

    depth = 0

    def __init__(self, registers: Registers, number: int) -> None:
        self._registers = registers
        self._prefix = f"port{number}_monitor_"
        self._meter = Monitor(Meters(registers, number + 1), number)

    def start(self, stream_id: int, with_records: bool = True) -> None:
        """Begin anew, taking ``stream_id`` only; the counters of all frames go on, and are taken from here on."""
        del with_records
        self._meter.watch(stream_id)
        self._before = self._meter.events()

    def drain(self) -> NDArray[np.void]:
        """Return no records."""
        return concatenated([])

    def missing(self, sent: int) -> int:
        """Return how many of ``sent`` frames have not come yet."""
        return _missing(sent, self._meter.accumulators()[2])

    def record_ns(self, timebase: Timebase) -> float:
        """Return the time that a record takes to fetch: none."""
        del timebase
        return 0.0

    @property
    def is_link_up(self) -> bool:
        """Whether the PHY has a link, as far as the board can tell."""
        return bool(self._registers.read(self._prefix + "link_up"))

    def latch_line(self) -> tuple[int, int]:
        """Return a tick of the line's clock, and its time (ns), as `_latch_line` does."""
        return _latch_line(self._registers, self._prefix)

    def counters(self) -> dict[str, int]:
        """Return what `ReceivePort` does, but for the ring, which is not there."""
        now = self._meter.events()
        found = {name: (now[name] - self._before[name]) % 2**64 for name in EVENTS}
        return found | _stream_counters(self._meter.accumulators()) | {"records_written": 0, "records_lost": 0}


def _latch_line(registers: Registers, prefix: str) -> tuple[int, int]:
    """Return ``line_count`` and ``line_now`` (ns) of one tick of the clock of the line."""
    registers.write(prefix + "line_latch", 1)
    count, now_ns = registers.read_many((prefix + "line_count", prefix + "line_now")).values()
    return count, now_ns


def _missing(sent: int, stream: Mapping[str, int]) -> int:
    return max(sent - (stream["frames"] - stream["duplicated"]), 0)


def _stream_counters(accumulators: Sequence[dict[str, int]]) -> dict[str, int]:
    """Return those of the first stream, and the frames of all others."""
    _, other, stream, *more = accumulators
    foreign = sum(slot["frames"] for slot in (other, *more))
    return stream | {"lost": lost_frames(stream), "foreign_streams": foreign}


class Port:
    """A test port.

    Parameters
    ----------
    registers : Registers
    number : int
    depth : int
        Records that its ring holds; 0: it has none.

    Attributes
    ----------
    transmit : TransmitPort
    receive : ReceivePort or StreamPort
    """

    def __init__(self, registers: Registers, number: int, depth: int) -> None:
        self.number = number
        self.transmit = TransmitPort(registers, number)
        self.receive = ReceivePort(registers, number, depth) if depth else StreamPort(registers, number)

    def halt(self, timebase: Timebase) -> bool:
        """Stop what the port sends, wait until its last frame has left, and return whether it sent anything.

        Raises
        ------
        ProbeError
            When it goes on.
        """
        if self.transmit.look()[0] == TransmitState.IDLE:
            return False
        self.transmit.stop()
        deadline_ns = timebase.now_ns + HALT_TIMEOUT_NS
        while self.transmit.look()[0] != TransmitState.IDLE:
            if timebase.now_ns > deadline_ns:
                raise ProbeError(f"port {self.number} doesn't stop sending: reset the probe, and report this")
        return True


def joint_counters(transmit: TransmitPort, receive: ReceivePort | StreamPort) -> dict[str, int]:
    """Return the counters of both ends of a program; where both have one of a name, the sender's is ``transmit_<name>``."""
    received = receive.counters()
    sent = {("transmit_" + name if name in received else name): value for name, value in transmit.counters().items()}
    return sent | received


def concatenated(records: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    """Return what was drained, in one array of ``RECORD_DTYPE``."""
    return np.concatenate(records) if records else np.empty(0, dtype=RECORD_DTYPE)
