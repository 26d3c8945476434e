# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The transmit side of a port that sends many streams: their words, their starts and stops, what was sent of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from liteprobe.cores.formats import (
    HEADER_WORDS_OF_STREAM,
    NO_SEQUENCE,
    SENT_WORDS,
    SEQUENCE_OFFSET,
    STREAM_FIELDS,
    STREAM_ID_OFFSET,
    STREAM_WORDS,
    STREAMS,
    TransmitState,
)
from liteprobe.host.device.registers import Registers
from liteprobe.host.run.port import TransmitPort
from liteprobe.host.traffic.layout import PortWords

WORD = 1 << 32
#: Frames in which a count is read twice: its low word may wrap between the two reads of it.
NEAR_WRAP = 1 << 24
#: State that a stream begins anew with, as it was written first; what isn't named goes on.
ANEW = ("phase", "burst_left", "due_fraction", "frames_left")


@dataclass(frozen=True)
class StreamCounts:
    """What was sent of a stream.

    Attributes
    ----------
    sent, late : int
        Frames that left; those among them that started after their tick.
    first_late : int or None
        Number of the first late one.
    """

    sent: int
    late: int
    first_late: int | None


@dataclass(frozen=True)
class RunningStream:
    """A stream as a port has it, whoever loaded it.

    Attributes
    ----------
    port, number : int
        Its port, and its place there.
    stream_id : int or None
        That its frames carry; None: they have no probe header.
    is_active : bool
        Whether it still has frames.
    is_endless : bool
    is_attached : bool
        Whether it ends with the host that started it.
    sent, late : int
        Frames that left; those among them that started after their tick.
    """

    port: int
    number: int
    stream_id: int | None
    is_active: bool
    is_endless: bool
    is_attached: bool
    sent: int
    late: int


class StreamsPort(TransmitPort):
    """The transmit side of a port with streams.

    Parameters
    ----------
    registers, number : as of `TransmitPort`
    """

    def __init__(self, registers: Registers, number: int) -> None:
        super().__init__(registers, number)
        self._number = number
        self._schedule = f"port{number}_schedule"
        self._modifiers = f"port{number}_modifiers"
        self._lists = f"port{number}_lists"
        self._sent = f"port{number}_sent"

    def load_streams(self, words: PortWords, is_attached: bool) -> None:
        """Write streams; nothing is sent before ``arm_streams`` and a start.

        Attached ones end when this host lets go of the probe, or is gone; and the program of the port goes on when none of
        them is active, until ``let_end``.
        """
        memories = {
            self._schedule: words.schedule,
            self._modifiers: words.modifiers,
            self._lists: words.lists,
            self._header: words.headers,
        }
        for name, content in memories.items():
            if content:
                self._registers.write_memory(name, 0, list(content))
        self._write_many(
            streams_mask=words.mask, streams_hold=int(is_attached), attached=int(is_attached), timed=0, start_time=0
        )

    def arm_streams(self) -> None:
        """Take the streams, and build their first frames."""
        self._registers.write(self._prefix + "streams_arm", 1)

    def let_end(self) -> None:
        """Let the program of the port end when no stream is active."""
        self._write_many(streams_hold=0)

    def end(self, number: int) -> None:
        """Let a stream send nothing more."""
        self._registers.write(self._prefix + "streams_end", 1 << number)

    def begin(self, number: int, words: PortWords) -> None:
        """Start a stream that has ended, while the program runs: its numbers go on, and what of it is random.

        One that had sent all of its frames sends as many again.
        """
        first = STREAM_WORDS * number
        own = words.schedule[first : first + STREAM_WORDS]
        frames_left = STREAM_FIELDS["frames_left"]
        left = int(self._registers.read_memory(self._schedule, first + frames_left.word, 1)[0])
        for name in ANEW:
            field = STREAM_FIELDS[name]
            if name == "phase":
                self._registers.write_memory(self._schedule, first + field.word, [0])
            elif name != "frames_left" or left == 0:
                self._registers.write_memory(self._schedule, first + field.word, [own[field.word]])
        self._registers.write(self._prefix + "streams_begin", 1 << number)

    def look_streams(self) -> tuple[TransmitState, bool, int]:
        """Return what the port does, whether its link is up, and the mask of the streams that still have frames."""
        values = self._registers.read_many(self._prefix + name for name in ("state", "link_up", "streams_active"))
        state, is_up, active = values.values()
        return TransmitState(state), bool(is_up), active

    def counts(self, streams: int = STREAMS) -> list[StreamCounts]:
        """Return what was sent of the first ``streams`` streams."""
        first = self._read_counts(streams)
        rows = self._read_counts(streams) if any(_is_near_wrap(row) for row in first) else first
        found = []
        for early, late in zip(first, rows, strict=True):
            # Of two reads no more than one met the wrap: where the high words agree, the later one did not.
            low, high, late_frames, first_late = late if early[1] == late[1] else early
            found.append(StreamCounts(high << 32 | low, late_frames, None if first_late == NO_SEQUENCE else first_late))
        return found

    def running(self) -> list[RunningStream]:
        """Return the streams that were started last, by what the port's memories say."""
        mask, is_attached = self._registers.read_many(
            (self._prefix + "streams_mask", self._prefix + "attached")
        ).values()
        active = self.look_streams()[2]
        schedule = self._registers.read_memory(self._schedule, 0, STREAMS * STREAM_WORDS).reshape(STREAMS, -1).tolist()
        counts = self.counts()
        return [
            RunningStream(
                port=self._number,
                number=number,
                stream_id=self._stream_id(number, schedule[number]),
                is_active=bool(active >> number & 1),
                is_endless=bool(STREAM_FIELDS["endless"].value(schedule[number])),
                is_attached=bool(is_attached),
                sent=counts[number].sent,
                late=counts[number].late,
            )
            for number in range(STREAMS)
            if mask >> number & 1
        ]

    # # #

    def _read_counts(self, streams: int) -> list[list[int]]:
        words = self._registers.read_memory(self._sent, 0, SENT_WORDS * streams)
        rows: list[list[int]] = words.reshape(-1, SENT_WORDS).tolist()
        return rows

    def _stream_id(self, number: int, words: Sequence[int]) -> int | None:
        """Return the stream id that stands in the headers of a stream."""
        if not STREAM_FIELDS["with_probe"].value(words):
            return None
        at = 4 * STREAM_FIELDS["header_words"].value(words) - SEQUENCE_OFFSET + STREAM_ID_OFFSET
        first = HEADER_WORDS_OF_STREAM * number + at // 4
        octets = int(self._registers.read_memory(self._header, first, 1)[0]).to_bytes(4, "little")
        return int.from_bytes(octets[at % 4 : at % 4 + 2])


def _is_near_wrap(row: Sequence[int]) -> bool:
    low, high = row[:2]
    return low >= WORD - NEAR_WRAP or (high > 0 and low < NEAR_WRAP)
