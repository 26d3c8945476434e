# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What is counted of a direction's classes."""

from liteprobe.cores.formats.emulate import (
    CLASSES,
    COUNTER_WORDS,
    HISTOGRAM_BINS,
    HISTOGRAM_WORD,
    ClassCounter,
    ClassGauge,
    Outcome,
)
from liteprobe.sim.models.emulator.draws import Frame

MASK = 2**32 - 1
COUNTER_OF = {
    Outcome.DISCARDED: int(ClassCounter.DISCARDED),
    Outcome.LOST: int(ClassCounter.LOST),
    Outcome.FULL: int(ClassCounter.FULL),
    Outcome.EARLY: int(ClassCounter.EARLY),
    Outcome.NO_STORE: int(ClassCounter.NO_STORE),
}
ARRIVED, ARRIVED_OCTETS, SENT, SENT_OCTETS, DUPLICATED, CORRUPTED, HELD_BACK, BACKGROUND, BACKGROUND_DROPPED, WAITED = (
    int(counter)
    for counter in (
        ClassCounter.ARRIVED,
        ClassCounter.ARRIVED_OCTETS,
        ClassCounter.SENT,
        ClassCounter.SENT_OCTETS,
        ClassCounter.DUPLICATED,
        ClassCounter.CORRUPTED,
        ClassCounter.HELD_BACK,
        ClassCounter.BACKGROUND,
        ClassCounter.BACKGROUND_DROPPED,
        ClassCounter.WAITED,
    )
)
QUEUE_FRAMES, QUEUE_OCTETS, QUEUE_MOST, DELAY_LEAST, DELAY_MOST = (
    int(gauge)
    for gauge in (
        ClassGauge.QUEUE_FRAMES,
        ClassGauge.QUEUE_OCTETS,
        ClassGauge.QUEUE_MOST,
        ClassGauge.DELAY_LEAST,
        ClassGauge.DELAY_MOST,
    )
)


class Counts:
    """The words of ``direction<n>_counts``, a list a class; they don't wrap here."""

    def __init__(self) -> None:
        self.of_class = [[0] * COUNTER_WORDS for _ in range(CLASSES)]
        for words in self.of_class:
            words[DELAY_LEAST] = MASK

    def arrived(self, klass: int, length: int) -> None:
        """Count a frame that came in."""
        words = self.of_class[klass]
        words[ARRIVED] += 1
        words[ARRIVED_OCTETS] += length

    def dropped(self, klass: int, outcome: Outcome, is_background: bool) -> None:
        """Count what is dropped, for this reason."""
        self.of_class[klass][BACKGROUND_DROPPED if is_background else COUNTER_OF[outcome]] += 1

    def queued(self, klass: int, frames: int, octets: int) -> None:
        """Note what waits in a class."""
        words = self.of_class[klass]
        words[QUEUE_FRAMES], words[QUEUE_OCTETS] = frames, octets
        if frames > words[QUEUE_MOST]:
            words[QUEUE_MOST] = frames

    def joined(self, frame: Frame, is_held: bool) -> None:
        """Count what was drawn of a frame that waits, and will be sent."""
        words = self.of_class[frame.klass]
        words[DUPLICATED] += frame.is_twice
        words[CORRUPTED] += frame.is_corrupt
        words[HELD_BACK] += is_held

    def sent(self, frame: Frame, due: int) -> None:
        """Count a frame whose departure is known."""
        words, delay = self.of_class[frame.klass], due - frame.time & MASK
        words[SENT] += 1 + frame.is_twice
        words[SENT_OCTETS] += frame.length * (1 + frame.is_twice)
        words[DELAY_LEAST] = min(words[DELAY_LEAST], delay)
        words[DELAY_MOST] = max(words[DELAY_MOST], delay)
        words[HISTOGRAM_WORD + min(delay.bit_length(), HISTOGRAM_BINS - 1)] += 1

    def released(self, frame: Frame, waited: bool) -> None:
        """Count a frame that is released to the port."""
        self.of_class[frame.klass][WAITED] += waited

    def words(self, klass: int) -> list[int]:
        """Return the words of a class as a probe shows them."""
        return [word & MASK for word in self.of_class[klass]]
