# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for the record ring: what lies where, and what is lost."""

from dataclasses import dataclass, field

from liteprobe.cores.formats import RECORD_WORDS, RecordFlag


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
