# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The receive side of a test port: counts, accumulators of one stream, and a record of each probe frame where there are any."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import BIT_ERRORS, RECORD_DTYPE, RECORD_WORDS, lost_frames
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.clock.timebase import Timebase
from liteprobe.host.device.registers import Registers
from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.measure.streams import read_accumulators, read_stream
from liteprobe.host.traffic.train import TrainProgram

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
SAMPLE_RECORDS = 60  # Fetched to see how long that takes: six datagrams.
DRAIN_RECORDS = 256  # Read at once, before their places are free: a quarter of the usual ring.
COUNT_WRAP = 1 << 32

Records = NDArray[np.void]


def concatenated(records: Sequence[Records]) -> Records:
    """Return records that were taken one after the other, in one array of ``RECORD_DTYPE``."""
    return np.concatenate(records) if records else np.empty(0, dtype=RECORD_DTYPE)


@dataclass
class Meters:
    """The parts of a probe that `Monitor` needs."""

    registers: Registers
    port_count: int


class ReceivePort(ABC):
    """The receive side of a port; this base has no records.

    ``module``: whose registers ``port<n>_<module>_*`` are the port's; ``depth``: records of the port that wait for the
    host at the most.
    """

    keeps_records = False  # Each probe frame has a record.

    def __init__(self, registers: Registers, number: int, module: str, depth: int = 0) -> None:
        self.depth = depth
        self._registers = registers
        self._number = number
        self._prefix = f"port{number}_{module}_"

    @abstractmethod
    def start(self, program: TrainProgram, with_records: bool = True) -> None:
        """Begin anew with the stream of ``program`` alone: counters, sequence window and records cleared."""

    @abstractmethod
    def counters(self) -> dict[str, int]:
        """Return what the port counts, accumulators of the stream and what became of records, by name.

        Accumulators are of one moment, and so are the port's counts, up to some microseconds later.
        """

    def drain(self) -> Records:
        """Take the records that have come since the last time, and free their places.

        Raises ProbeError when more wait than can: they were cleared by another.
        """
        return concatenated([])

    def finish(self) -> Records:
        """Take the last records; none come after."""
        return self.drain()

    def end(self) -> None:
        """Let go of what ``start`` took; nothing here."""

    def record_ns(self, timebase: Timebase) -> float:
        """Return the time that a record takes to fetch, by fetching some (ns of the probe's clock)."""
        return 0.0

    @property
    def is_link_up(self) -> bool:
        """Whether the PHY has a link, as far as the board can tell."""
        return bool(self._registers.read(self._prefix + "link_up"))

    def latch_line(self) -> tuple[int, int]:
        """Return ``line_count`` and ``line_now`` (ns) of one tick of the clock of the line."""
        self._registers.write(self._prefix + "line_latch", 1)
        count, now_ns = self._registers.read_many((self._prefix + "line_count", self._prefix + "line_now")).values()
        return count, now_ns

    def missing(self, sent: int) -> int:
        """Return how many of ``sent`` frames have not come yet."""
        self._latch()
        stream = read_stream(self._registers, self._number)
        # A frame that is older than the window may be a copy of one that came, so it doesn't count as come.
        came = stream["frames"] - stream["duplicated"] - stream["beyond_window"]
        return max(sent - came, 0)

    def _latch(self) -> None:
        """Take a snapshot of the accumulators."""
        self._registers.write(self._prefix + "latch", 1)

    def _stream_counters(self) -> dict[str, int]:
        """Return the accumulators of the first stream at the last snapshot, and the frames of all others."""
        _, other, stream, *more = read_accumulators(self._registers, self._number)
        foreign = sum(slot["frames"] for slot in (other, *more))
        if f"port{self._number}_places" not in self._registers.memory_names:  # Nothing checks a fill.
            stream = {name: value for name, value in stream.items() if name not in BIT_ERRORS}
        return stream | {"lost": lost_frames(stream), "foreign_streams": foreign}


class RingPort(ReceivePort):
    """A port with a ring of records of its own (part ``record``); ``depth``: records that the ring holds."""

    keeps_records = True

    def __init__(self, registers: Registers, number: int, depth: int) -> None:
        super().__init__(registers, number, "rx", depth)
        self._memory = f"port{number}_records"
        self._read = 0

    def start(self, program: TrainProgram, with_records: bool = True) -> None:
        """Begin anew, as of `ReceivePort`."""
        settings = {"stream_id": program.stream_id, "records_enable": int(with_records)}
        self._registers.write_many({self._prefix + name: value for name, value in settings.items()})
        self._registers.write(self._prefix + "clear", 1)
        # Cleared or not, the ring is empty when both counts agree.
        self._read = self._registers.read(self._prefix + "records_written")
        self._registers.write_many({self._prefix + "records_read": self._read})

    def drain(self) -> Records:
        """Take the records that have come, as of `ReceivePort`."""
        written = self._registers.read(self._prefix + "records_written")
        if (waiting := (written - self._read) % COUNT_WRAP) > self.depth:
            raise ProbeError(
                f"the ring of records was cleared while it was read ({waiting} records wait in {self.depth} places): "
                f"was the probe reset, or do you use it from its console? Run again"
            )
        parts = []
        while waiting := (written - self._read) % COUNT_WRAP:
            first = self._read % self.depth
            count = min(waiting, self.depth - first, DRAIN_RECORDS)
            parts.append(self._fetch(first, count))
            self._read = (self._read + count) % COUNT_WRAP
            self._registers.write_many({self._prefix + "records_read": self._read})
        return concatenated(parts)

    def record_ns(self, timebase: Timebase) -> float:
        """Return the time that a record takes to fetch, as of `ReceivePort`."""
        count = min(SAMPLE_RECORDS, self.depth)
        before_ns = timebase.now_ns
        self._fetch(0, count)
        return (timebase.now_ns - before_ns) / count

    def counters(self) -> dict[str, int]:
        """Return what the port counts, as of `ReceivePort`; ``records_lost``: those that found the ring full."""
        self._latch()
        names = (*EVENTS, "records_written", "records_lost")
        values = self._registers.read_many(self._prefix + name for name in names)
        return {name.removeprefix(self._prefix): value for name, value in values.items()} | self._stream_counters()

    def _fetch(self, first: int, count: int) -> Records:
        """Return ``count`` records from place ``first`` of the ring, whatever they hold, of ``RECORD_DTYPE``."""
        words = self._registers.read_memory(self._memory, RECORD_WORDS * first, RECORD_WORDS * count)
        table = words.reshape(-1, RECORD_WORDS).astype(np.uint64)
        records = np.empty(len(table), dtype=RECORD_DTYPE)
        records["sequence"] = table[:, 0]
        records["tx_stamp"] = table[:, 1] | table[:, 2] << np.uint64(32)
        records["rx_stamp"] = table[:, 3] | table[:, 4] << np.uint64(32)
        records["length"] = table[:, 5] & np.uint64(0xFFFF)
        records["flags"] = table[:, 5] >> np.uint64(16)
        return records


class MeterPort(ReceivePort):
    """A port that measures streams (part ``measure``): a stream of its meters measures the train, and no frame has a record."""

    def __init__(self, registers: Registers, number: int, module: str = "rx", depth: int = 0) -> None:
        super().__init__(registers, number, module, depth)
        self._meter = Monitor(Meters(registers, number + 1), number)
        self._before: Mapping[str, int] = {}

    def start(self, program: TrainProgram, with_records: bool = True) -> None:
        """Begin anew, as of `ReceivePort`; the counts of all frames go on, and are taken from here on.

        Bit errors are counted where the program's fill is PRBS-31, and the probe checks fills.
        """
        is_checked = program.fill == "prbs" and self._meter.has_fields
        self._meter.watch(program.stream_id, prbs=[1] if is_checked else [])
        self._before = self._meter.events()

    def counters(self) -> dict[str, int]:
        """Return what the port counts, as of `ReceivePort`."""
        since = self._since()
        self._latch()
        return (
            {name: since[name] for name in EVENTS} | self._stream_counters() | {"records_written": 0, "records_lost": 0}
        )

    def _since(self) -> dict[str, int]:
        """Return the counts of all frames since ``start``."""
        return {name: (count - self._before.get(name, 0)) % 2**64 for name, count in self._meter.events().items()}

    def _latch(self) -> None:
        self._registers.write(f"port{self._number}_measure_latch", 1)


class BlindPort(ReceivePort):
    """The receive side of a port that forwards what comes, and measures nothing."""

    def __init__(self, registers: Registers, number: int) -> None:
        super().__init__(registers, number, "arrive")

    def start(self, program: TrainProgram, with_records: bool = True) -> None:
        """Refuse."""
        raise UsageError(
            f"port {self._number} forwards what comes, and measures nothing: measure with another probe, or build this one with "
            "--preset train or tester"
        )

    def counters(self) -> dict[str, int]:
        """Return nothing."""
        return {}
