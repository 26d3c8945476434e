# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for the capture: records to blocks, gaps, and back from blocks to records. Plain and slow.

Source: docs/design/monitor.md ("Record", "Block", "Ring").
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from liteprobe.cores.formats import (
    BLOCK_HEADER_WORDS,
    BLOCK_MAGIC,
    BLOCK_VERSION,
    BLOCK_WORDS,
    CHANNELS,
    NO_RECORD,
    RECORD_HEAD_WORDS,
    UNIFIED_WORDS,
    UnifiedFlag,
)

STREAM_WORDS = BLOCK_WORDS - BLOCK_HEADER_WORDS
WORDS_A_BLOCK_OF_ROOM = 256


@dataclass(frozen=True)
class CaptureRecord:
    """A frame that is kept: ``head`` are words 0 to 3 of the record, ``rest`` words 4 to 31 or none, ``octets`` as words."""

    head: tuple[int, int, int, int]
    rest: tuple[int, ...] = ()
    octets: tuple[int, ...] = ()

    @property
    def channel(self) -> int:
        """Channel that it goes to."""
        return self.head[3] >> 24 & 15

    @property
    def stamp(self) -> int:
        """Time at which it came (ns)."""
        return self.head[0] | self.head[1] << 32

    def words(self) -> list[int]:
        """Return the words of the record in the stream of its channel."""
        flag = UnifiedFlag.HEADER if self.rest else 0
        return [*self.head[:3], self.head[3] | flag, *self.rest, *self.octets]


@dataclass(frozen=True)
class Gap:
    """Frames of a channel that were dropped in one place."""

    stamp: int
    count: int
    channel: int

    def words(self) -> list[int]:
        """Return the gap record."""
        return [self.stamp & 0xFFFFFFFF, self.stamp >> 32, self.count, UnifiedFlag.GAP | self.channel << 24]


@dataclass
class ChannelModel:
    """Blocks of one channel: records in, closed blocks out."""

    channel: int
    blocks: int
    closed: list[list[int]] = field(default_factory=list)
    read: int = 0
    dropped: int = 0
    told: int = 0
    gap_stamp: int = 0
    first: int = NO_RECORD
    stream: list[int] = field(default_factory=list)

    @staticmethod
    def needed(words: int) -> int:
        """Return the blocks of room that a record of so many words needs: with a gap record before it."""
        return (words + RECORD_HEAD_WORDS) // WORDS_A_BLOCK_OF_ROOM + 1

    def finds_room(self, words: int) -> bool:
        """Whether a record of so many words finds room, besides the open block."""
        return len(self.closed) - self.read + self.needed(words) < self.blocks

    def make_room(self, words: int, most: int) -> bool:
        """Free the oldest blocks, so that less than ``most`` are in use; whether that did."""
        first = len(self.closed) + self.needed(words) - most + 1
        if first > len(self.closed):
            return False
        self.read = max(self.read, first)
        return True

    def keep(self, record: CaptureRecord, is_lost: bool = False, most: int | None = None) -> None:
        """Write a record, or drop its frame; ``most``: blocks that may be in use while a trigger is waited for."""
        words = record.words()
        if is_lost or not (self.finds_room(len(words)) if most is None else self.make_room(len(words), most)):
            if self.dropped == self.told:
                self.gap_stamp = record.stamp
            self.dropped += 1
            return
        self.tell()
        self.write(words)

    def tell(self) -> None:
        """Write a gap record, if there is something to tell."""
        if self.dropped != self.told:
            gap = Gap(self.gap_stamp, self.dropped - self.told, self.channel)
            self.write(gap.words())
            self.told = self.dropped

    def write(self, words: Sequence[int]) -> None:
        """Write a record into the open block, and on into the next ones."""
        for number, word in enumerate(words):
            if len(self.stream) == STREAM_WORDS:
                self.close()
            if number == 0 and self.first == NO_RECORD:
                self.first = len(self.stream)
            self.stream.append(word)

    def finish(self) -> None:
        """Close a block that is full."""
        if len(self.stream) == STREAM_WORDS:
            self.close()

    def close(self) -> None:
        """Close the open block."""
        kind = self.channel << 8 | BLOCK_VERSION << 12 | BLOCK_MAGIC << 16
        head = [len(self.closed), len(self.stream) | self.first << 16, self.told, kind]
        self.closed.append([*head, *self.stream])
        self.stream, self.first = [], NO_RECORD


def capture(
    records: Iterable[CaptureRecord], blocks: Sequence[int], trigger: int = 0, quarters: int = 0
) -> list[list[list[int]]]:
    """Return the blocks of each channel of a capture that nobody reads and that ends with all blocks closed.

    ``blocks``: of each channel. ``trigger``: a bit for each channel whose records fire; until then ``quarters`` of the blocks
    hold the newest of what came.
    """
    channels = [ChannelModel(number, blocks[number]) for number in range(CHANNELS)]
    waits = quarters > 0
    for record in records:
        channel = channels[record.channel]
        channel.keep(record, most=channel.blocks * quarters // 4 if waits else None)
        channel.finish()
        waits = waits and not trigger >> record.channel & 1
    for channel in channels:
        if channel.finds_room(RECORD_HEAD_WORDS):
            channel.tell()
        if channel.stream:
            channel.close()
    return [channel.closed[channel.read :] for channel in channels]


# Back --------------------------------------------------------------------------------------------


class BrokenBlockError(ValueError):
    """A block, or what is in it, isn't as it should be."""


def require(holds: bool, what: str) -> None:
    """Raise BrokenBlockError unless it holds."""
    if not holds:
        raise BrokenBlockError(what)


def record_of(stream: Sequence[int], at: int) -> tuple[CaptureRecord | Gap, int] | None:
    """Return the record that begins at a word of a channel's stream, and where the next one does; None if it isn't whole."""
    head = stream[at : at + RECORD_HEAD_WORDS]
    if len(head) < RECORD_HEAD_WORDS:
        return None
    flags, channel = head[3] & 0xFFFF, head[3] >> 24 & 15
    if flags & UnifiedFlag.GAP:
        require(flags == UnifiedFlag.GAP, "a gap record with other flags")
        return Gap(head[0] | head[1] << 32, head[2], channel), at + RECORD_HEAD_WORDS
    rest = UNIFIED_WORDS - RECORD_HEAD_WORDS if flags & UnifiedFlag.HEADER else 0
    octets = -(-(head[2] >> 16) // 4)
    start, end = at + RECORD_HEAD_WORDS, at + RECORD_HEAD_WORDS + rest + octets
    if end > len(stream):
        return None
    plain = (head[0], head[1], head[2], head[3] & ~int(UnifiedFlag.HEADER))
    return CaptureRecord(plain, tuple(stream[start : start + rest]), tuple(stream[start + rest : end])), end


def decode(blocks: Iterable[Sequence[int]], channel: int, number: int = 0) -> Iterator[CaptureRecord | Gap]:
    """Yield the records and gaps of a channel's blocks, from block ``number`` on.

    Raises BrokenBlockError where a header, ``first`` or ``dropped`` doesn't say what is in a block.
    """
    stream: list[int] = []
    at = told = 0
    for block in blocks:
        require(block[0] == number & 0xFFFFFFFF, f"block {block[0]} in the place of {number}")
        require(block[3] == channel << 8 | BLOCK_VERSION << 12 | BLOCK_MAGIC << 16, f"magic or channel {block[3]:x}")
        words, first = block[1] & 0xFFFF, block[1] >> 16
        require(
            0 < words == len(block) - BLOCK_HEADER_WORDS <= STREAM_WORDS, f"{words} words in a block of {len(block)}"
        )
        start = len(stream)
        stream += block[BLOCK_HEADER_WORDS:]
        begins = []  # Records that begin in this block.
        while True:
            begins += [at - start] if start <= at < len(stream) else []
            found = record_of(stream, at)
            if found is None:
                break
            record, at = found
            told += record.count if isinstance(record, Gap) else 0
            yield record
        require(first == (begins[0] if begins else NO_RECORD), f"first is {first}, records begin at {begins[:3]}")
        require(block[2] == told & 0xFFFFFFFF, f"dropped is {block[2]}, gaps tell of {told}")
        stream, at = stream[at:], 0
        number += 1
    require(not stream, "the last record isn't whole")
