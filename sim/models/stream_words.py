# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for what a port sends of the words that are in its memories: lengths and dues of each stream's frames.

Source: docs/traffic.md; Marsaglia, Xorshift RNGs, 2003.
"""

from collections.abc import Callable
from dataclasses import dataclass

from liteprobe.cores.formats import BEGIN_TICKS, STREAM_FIELDS, STREAM_WORDS, LengthKind
from liteprobe.sim.models.traffic import AROUND, Xorshift, exponential


@dataclass
class StreamWords:
    """A stream that runs by its words.

    Parameters
    ----------
    read : callable
        Returns a word of the schedule of its port.
    read_list : callable
        Returns a word of the lists.
    number : int
        Of the stream.

    Attributes
    ----------
    due : int
        Tick of the program in which the next frame is due.
    length, sequence : int
        Of that frame.
    """

    read: Callable[[int], int]
    read_list: Callable[[int], int]
    number: int

    def __post_init__(self) -> None:
        """Take the words as they are."""
        self.is_begun = False
        self.sequence = self.field("sequence")
        self.draw_length = Xorshift(self.field("length_random"))
        self.draw_interval = Xorshift(self.field("interval_random"))
        self.length_next = self.field("length_next")
        self.list_index = 0
        self.left = 0

    def field(self, name: str) -> int:
        """Return a field of its words, as they are now."""
        field = STREAM_FIELDS[name]
        return self.read(STREAM_WORDS * self.number + field.word) >> field.low & (1 << field.bits) - 1

    def begin(self, elapsed: int | None = None) -> bool:
        """Begin with the program, or in it when ``elapsed`` ticks have passed; return whether it has a frame."""
        self.left = self.field("frames_left")
        self.burst_left = self.field("burst_left")
        start = self.field("phase") + (0 if elapsed is None else elapsed + BEGIN_TICKS)
        self.head = self.due = start
        self.fraction = 0
        if self.left or self.field("endless"):
            self.length = self._length()
            return True
        return False

    def advance(self) -> bool:
        """Go on to the next frame; return whether there is one."""
        self.sequence = (self.sequence + 1) % (1 << 32)
        self.left -= 1
        if not self.left and not self.field("endless"):
            return False
        self.burst_left -= 1
        if self.burst_left > 0:
            self.due += self.field("burst_interval") or self.length + AROUND
        else:
            self.burst_left = max(1, self.field("burst_frames"))
            whole, part = divmod(self._gap() + self.fraction, 1 << 32)
            self.head, self.fraction = self.head + whole, part
            self.due = self.head
        self.length = self._length()
        return True

    # # #

    def _gap(self) -> int:
        """Return the time from head to head, in 2^-32 ticks."""
        if self.field("exponential"):
            return self.field("interval") * exponential(self.draw_interval.draw())
        return self.field("interval") << 32 | self.field("interval_fraction")

    def _length(self) -> int:
        least = self.field("length_least")
        match LengthKind(self.field("length_kind")):
            case LengthKind.STEPPED:
                found = self.length_next
                self.length_next = found + self.field("length_step")
                if self.length_next > self.field("length_greatest"):
                    self.length_next = least
                return found
            case LengthKind.RANDOM:
                return least + self.draw_length.below(self.field("length_range"))
            case LengthKind.LIST:
                entries = self.field("list_entries")
                if self.field("list_drawn"):
                    index = self.draw_length.below(entries)
                else:
                    index, self.list_index = self.list_index, (self.list_index + 1) % entries
                return self.read_list(self.field("list_base") + index) & 0x3FFF
        return least
