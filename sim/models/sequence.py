# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for the order of a stream: loss, duplication and reordering.

Source: RFC 4737, section 3; RFC 5560.
"""

from dataclasses import dataclass, field

from liteprobe.cores.formats import RecordFlag

MODULUS = 1 << 32


@dataclass
class SequenceModel:
    """Follows arrivals; remembers, if at all, the latest frame on each place of its window.

    Within ``window`` frames that is every frame. It matters where numbers leap about all 2^32 of them, as those of strangers
    in one slot do: a number that comes again a round later is a new frame, unless nothing took its place meanwhile.
    """

    window: int = 1024
    remembers: bool = True
    expected: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    beyond_window: int = 0
    seen: dict[int, int] = field(default_factory=dict)

    def arrive(self, sequence: int) -> RecordFlag:
        """Take one frame and return its flag (NONE when it is in order)."""
        ahead = (sequence - self.expected) % MODULUS
        if ahead < MODULUS // 2:
            self.lost = (self.lost + ahead) % MODULUS
            self.expected = (sequence + 1) % MODULUS
            self.seen[sequence % self.window] = sequence
            return RecordFlag.NONE
        if MODULUS - ahead > self.window:
            self.beyond_window += 1
            return RecordFlag.BEYOND_WINDOW
        if self.remembers and self.seen.get(sequence % self.window) == sequence:
            self.duplicated += 1
            return RecordFlag.DUPLICATE
        self.seen[sequence % self.window] = sequence
        self.reordered += 1
        self.lost = (self.lost - 1) % MODULUS
        return RecordFlag.REORDERED
