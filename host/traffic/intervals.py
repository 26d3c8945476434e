# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""When the frames of a stream are due: intervals by time, rate, packets a second or share of the line; bursts."""

import math
from dataclasses import dataclass
from fractions import Fraction

from liteprobe.cores.formats import LINE_RATE_BPS, MEAN_FRACTION_BITS, OVERHEAD, TICK_NS
from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.lengths import Length

Number = int | float | Fraction

BURST_MAX = 2**16 - 1
SECOND_NS = 10**9
TICKS_MAX = 2**32 - 1
MEAN_MAX = Fraction(2**32 - 1, 2**MEAN_FRACTION_BITS)  # Of exponential intervals (ticks).
INCREMENT_ONE = 2**40  # One nanosecond a tick, in the 8.40 fixed point of the clock's increment.
NOMINAL = TICK_NS * INCREMENT_ONE  # The increment of a clock without an error.

PACES = {
    "interval_ns": "an interval (ns)",
    "rate_bps": "a rate (b/s)",
    "pps": "packets a second",
    "share": "a share of the line",
}


def exact(number: Number) -> Fraction:
    """Return a number as it is written: 0.1 is a tenth.

    Raises
    ------
    UsageError
        When it is infinite, or no number.
    """
    if isinstance(number, float) and not math.isfinite(number):
        raise UsageError(f"{number} can't be counted with: give a finite number")
    return number if isinstance(number, Fraction) else Fraction(str(number))


@dataclass(frozen=True)
class Burst:
    """Frames that come in bursts.

    Parameters
    ----------
    count : int
        Frames of a burst, 1 to 65535.
    inner_ns : number or None
        Start to start within a burst (ns), rounded to whole ticks; None: back to back.
    """

    count: int
    inner_ns: Number | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.count <= BURST_MAX:
            raise UsageError(f"a burst of {self.count} frames is out of range: give 1 to {BURST_MAX}")
        if self.inner_ns is not None and exact(self.inner_ns) <= 0:
            raise UsageError(f"an interval of {self.inner_ns} ns within bursts is out of range: give more than 0")


@dataclass(frozen=True)
class Interval:
    """From the start of a frame to the start of the next; with bursts, from the head of a burst to the head of the next.

    One of the first four says how long it is; none of them: back to back. ``rate_bps``, ``pps`` and ``share`` are means over
    all frames of the stream, bursts or not, whatever their lengths.

    Parameters
    ----------
    interval_ns : number or None
        In ns of the probe's clock.
    rate_bps : number or None
        In b/s on the wire, preamble, SFD, FCS and IFG included: up to 1e9.
    pps : number or None
        In frames a second.
    share : number or None
        Of the line, above 0 and up to 1. It follows the line, not the probe's clock: 1 is back to back.
    exponential : bool
        Intervals are drawn from an exponential distribution of this mean: a Poisson process.
    burst : Burst or None
        Frames come in bursts.
    """

    interval_ns: Number | None = None
    rate_bps: Number | None = None
    pps: Number | None = None
    share: Number | None = None
    exponential: bool = False
    burst: Burst | None = None

    def __post_init__(self) -> None:
        given = [name for name in PACES if getattr(self, name) is not None]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(PACES[name] for name in given)} are given: give one of them")
        if not given and (self.exponential or self.burst):
            kind = "exponential intervals" if self.exponential else "bursts"
            raise UsageError(f"{kind} need a length of time: give {', '.join(PACES.values())}")
        if not given:
            return
        value = exact(getattr(self, given[0]))
        if value <= 0:
            raise UsageError(f"{PACES[given[0]]} of {getattr(self, given[0])} is out of range: give more than 0")

    @property
    def is_back_to_back(self) -> bool:
        """Whether no time is given."""
        return all(getattr(self, name) is None for name in PACES)

    @property
    def frames(self) -> int:
        """Frames from one head of a burst to the next."""
        return self.burst.count if self.burst else 1


def is_back_to_back(interval: Interval, length: Length) -> bool:
    """Whether frames fill the line without a pause, so that each is due when the one before has ended.

    An interval without a time always does, one of the whole line where the lengths come in turn: due by the mean length,
    each frame after a longer one would be late.
    """
    if interval.is_back_to_back:
        return True
    is_plain = not interval.exponential and interval.burst is None
    return (
        is_plain and isinstance(length.cycle, tuple) and head_ticks(interval, length, NOMINAL) == length.mean + OVERHEAD
    )


def back_to_back_cycle(length: Length) -> tuple[int, int] | None:
    """Return the frames and ticks until the lengths come again, back to back; None where they are drawn."""
    cycle = length.cycle
    return None if cycle is None else (len(cycle), sum(cycle) + OVERHEAD * len(cycle))


def ticks_of(time_ns: Number, increment: int) -> Fraction:
    """Return the ticks of a time by the probe's clock; ``increment``: its ns a tick, in 8.40 fixed point."""
    return exact(time_ns) * INCREMENT_ONE / increment


def head_ticks(interval: Interval, length: Length, increment: int) -> Fraction:
    """Return the (mean) ticks from the head of a burst, or of a frame, to the next.

    Times and rates follow the probe's clock, the share of the line follows the line.
    """
    slots = interval.frames * (length.mean + OVERHEAD)
    if interval.interval_ns is not None:
        return ticks_of(interval.interval_ns, increment)
    if interval.pps is not None:
        return ticks_of(interval.frames * SECOND_NS / exact(interval.pps), increment)
    if interval.rate_bps is not None:
        return ticks_of(TICK_NS * slots * LINE_RATE_BPS / exact(interval.rate_bps), increment)
    return slots / exact(interval.share) if interval.share is not None else slots


def check_ticks(interval: Interval, ticks: Fraction) -> None:
    """Raise UsageError when intervals of so many ticks are longer than a probe can count."""
    most = MEAN_MAX if interval.exponential else TICKS_MAX
    if ticks > most:
        kind = "the mean of exponential intervals" if interval.exponential else "an interval"
        raise UsageError(
            f"{kind} of {float(ticks * TICK_NS / SECOND_NS):.3f} s is out of range: give "
            f"{int(most * TICK_NS // 10**6) / 1000:.3f} s at most, or a higher rate"
        )
