# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What frames and background frames draw, from the random states of a class.

Source: docs/design/emulator.md; Marsaglia, Xorshift RNGs, 2003.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from liteprobe.cores.formats.emulate import PATTERN_WORDS, REORDER_LANE, BackgroundKind, Outcome
from liteprobe.sim.models.emulator.settings import ClassSettings
from liteprobe.sim.models.traffic import exponential

MASK = 2**64 - 1
FINE = 16


@dataclass(slots=True)
class Frame:
    """A frame: when it came (tick of its SFD), its length without FCS, its class; what it drew; what became of it.

    ``is_kept``: it waits, or did, and is to be sent. ``due`` is None until it is known, and of a frame that isn't sent;
    ``leaves``: tick of its SFD at the port, of its first copy's.
    """

    number: int
    time: int
    length: int
    klass: int
    lane: int = 0
    delay: int = 0
    red: int = 0
    is_lost: bool = False
    is_late: bool = False
    is_twice: bool = False
    is_corrupt: bool = False
    is_mended: bool = False
    bit: int = 0
    outcome: Outcome | None = None
    is_kept: bool = False
    due: int | None = None
    leaves: int | None = None


def draws(state: int, count: int) -> list[int]:
    """Return ``count`` draws from a state, and the state after them."""
    found = []
    for _ in range(count):
        state ^= state << 13 & MASK
        state ^= state >> 7
        state ^= state << 17 & MASK
        found.append(state >> 32)
    found.append(state)
    return found


class ClassDraws:
    """The states that a class keeps from frame to frame."""

    def __init__(self, settings: ClassSettings, delays: Sequence[int], patterns: Sequence[int]) -> None:
        self.state = settings.frame_seed
        self.delays, self.patterns = delays, patterns
        self.count = 0
        self.is_bad = False
        self.quantile = 0
        self.pattern: tuple[int, int, bool] | None = None
        self.pattern_began = 0  # With this frame of the class.
        self.listed: frozenset[int] = frozenset()

    def draw(self, frame: Frame, own: ClassSettings) -> None:
        """Let the next frame of the class draw."""
        state, loss, twice, corrupt, bit, reorder, repeat, quantile, frame.red, self.state = draws(self.state, 9)
        self.is_bad = state >= own.loss_leave if self.is_bad else state < own.loss_enter
        frame.is_lost = loss < (own.loss_bad if self.is_bad else own.loss_good)
        pattern = (own.pattern_start, own.pattern_count, own.has_list)
        if pattern != self.pattern:
            self.pattern, self.pattern_began = pattern, self.count
            self.listed = frozenset(self.word(own, n) for n in range(own.pattern_count if own.has_list else 0))
        if own.pattern_count and self.is_named(own):
            frame.is_lost = True
        self.count += 1
        frame.is_late = own.loses_late
        frame.is_twice = twice < own.duplicate
        frame.is_corrupt = corrupt < own.corrupt
        frame.is_mended = own.is_mended
        frame.bit = bit * 8 * frame.length >> 32
        if repeat >= own.delay_repeat:
            self.quantile = quantile >> 22
        frame.lane, frame.delay = frame.klass, own.delay
        if own.has_jitter:
            frame.delay += self.delays[self.quantile]
        if reorder < own.reorder:
            frame.lane = REORDER_LANE
            frame.delay += own.reorder_ticks

    def is_named(self, own: ClassSettings) -> bool:
        """Whether the pattern names the frame at hand."""
        if own.has_list:
            return self.count in self.listed
        place = (self.count - self.pattern_began) % own.pattern_count
        return bool(self.word(own, place // 32) >> place % 32 & 1)

    def word(self, own: ClassSettings, place: int) -> int:
        """Return a word of the pattern."""
        return self.patterns[(own.pattern_start + place) % PATTERN_WORDS]


class ClassBackground:
    """The background of a class: the background frame that is scheduled, and what is kept from one to the next.

    Attributes
    ----------
    time : fine time of the background frame that is scheduled; None where there is no background.
    length, red : its length and draw.
    """

    def __init__(self, settings: ClassSettings, patterns: Sequence[int]) -> None:
        self.state = settings.background_seed
        self.patterns = patterns
        self.kind = BackgroundKind.NONE
        self.place = 0  # Of the background frame that is scheduled, in its burst or pattern.
        self.is_first = True
        self.time: int | None = None
        self.length = self.red = 0

    def settle(self, tick: int, own: ClassSettings) -> None:
        """Begin anew where the kind isn't what it was."""
        if own.background is self.kind:
            return
        self.kind, self.time = own.background, None
        if self.kind is not BackgroundKind.NONE:
            self.time, self.is_first = tick + own.background_phase << FINE, True
            self.schedule(own)

    def schedule(self, own: ClassSettings) -> None:
        """Schedule the background frame after the one that is scheduled."""
        assert self.time is not None
        interval, burst, self.red, self.state = draws(self.state, 3)
        self.length = own.background_length
        match self.kind:
            case BackgroundKind.CONSTANT:
                self.time += 0 if self.is_first else own.background_fine
            case BackgroundKind.EXPONENTIAL:
                self.time += drawn(own.background_mean_32, interval)
            case BackgroundKind.ON_OFF:
                self.advance(own.background_burst)
                if not self.is_first:
                    self.time += own.background_fine if self.place else own.background_pause << FINE
            case BackgroundKind.RANDOM_ON_OFF:
                pauses = burst < own.background_burst or own.background_burst == 2**32 - 1
                if not self.is_first:
                    self.time += (
                        drawn(own.background_pause * 32 & 2**32 - 1, interval) if pauses else own.background_fine
                    )
            case BackgroundKind.PATTERN:
                self.advance(own.background_count)
                ticks, length = (
                    self.patterns[(own.background_start + 2 * self.place + n) % PATTERN_WORDS] for n in (0, 1)
                )
                self.time += ticks << FINE
                self.length = length & 2**14 - 1
        self.is_first = False

    def advance(self, count: int) -> None:
        """Go to the next place of a burst or a pattern."""
        self.place = 0 if self.is_first or self.place + 1 >= count else self.place + 1


def drawn(mean_32: int, draw: int) -> int:
    """Return an exponential interval, fine time; the mean in 2^-5 ticks."""
    return mean_32 * exponential(draw or 1) >> 16
