# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Models what the PPS input must make of pulses, in whole ticks, event by event."""

from collections.abc import Sequence
from dataclasses import dataclass

SAMPLE_TICKS = 2  # From a tick to that in which its samples are given.
LOST_AFTER = 4  # Periods without an edge, after which the next one sets the phase.
EARLY_TICKS = 5  # After an edge is accepted; a pulse that rises within them is a glitch.


@dataclass(frozen=True)
class Pulse:
    """The pin is high from the tick ``rise`` on, for ``width`` ticks."""

    rise: int
    width: int


@dataclass(frozen=True)
class Settings:
    """Of the input, in ticks; a ``window`` of 0 refuses nothing."""

    period: int
    min_width: int = 1
    window: int = 0


@dataclass(frozen=True)
class Outcome:
    """Lists the pulses that are edges, those that are spurious (numbers of pulses), and counts."""

    edges: list[int]
    spurious: list[int]
    glitches: int
    missing: int
    is_present: bool


def seen(samples: Sequence[int], count: int) -> tuple[list[Pulse], list[int]]:
    """Return the pulses that samples of the pin tell, ``count`` a tick from tick 0 on, and how early in its tick each rose.

    A tick is as its last sample is. A pulse rose as many samples before the end of its first tick as that one's samples are
    high without a gap, less one.
    """
    ticks = [samples[first : first + count] for first in range(0, len(samples), count)]
    levels = [tick[-1] for tick in ticks]
    pulses, early = [], []
    for tick, level in enumerate(levels):
        if level and not (tick and levels[tick - 1]):
            width = (*levels[tick:], 0).index(0)
            pulses.append(Pulse(tick, width))
            early.append((*reversed(ticks[tick][:-1]), 0).index(0))
    return pulses, early


def judge(pulses: Sequence[Pulse], settings: Settings, enabled: int, end: int) -> Outcome:
    """Judge all pulses from the tick ``enabled`` to the tick ``end``; ``missing`` and ``is_present`` are of ``end``.

    A period is missed half a period after its edge was due. No pulse may rise within a few ticks of such a moment.
    """
    edges: list[int] = []
    spurious: list[int] = []
    good: int | None = None  # Tick of the edge that the phase is counted from.
    missing = 0

    def missed(tick: int) -> int:
        """Periods missed by ``tick`` since the last good edge, or since the start."""
        if good is None:
            return (tick - enabled + settings.period // 2) // settings.period
        return max(0, (tick - good - settings.period // 2) // settings.period)

    for number, pulse in enumerate(pulses):
        free = pulses[edges[-1]].rise + max(1, settings.min_width) + EARLY_TICKS if edges else 0
        if pulse.width < settings.min_width or pulse.rise <= free:
            continue
        edges.append(number)
        if settings.window and good is not None and missed(pulse.rise) < LOST_AFTER:
            distance = (pulse.rise - good) % settings.period
            if min(distance, settings.period - distance) > settings.window:
                spurious.append(number)
                continue
        missing += missed(pulse.rise)
        good = pulse.rise
    return Outcome(
        edges, spurious, len(pulses) - len(edges), missing + missed(end), good is not None and missed(end) == 0
    )
