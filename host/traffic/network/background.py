# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Background traffic of a class: frames that nobody sends, which take space in the queue and time of the link."""

from dataclasses import dataclass
from fractions import Fraction

from liteprobe.cores.formats import GIANT_LENGTH, MIN_LENGTH
from liteprobe.cores.formats.emulate import PATTERN_WORDS
from liteprobe.cores.formats.emulate import Background as Kind
from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.intervals import Number, exact

KINDS = {
    "constant": Kind.CONSTANT,
    "exponential": Kind.EXPONENTIAL,
    "on-off": Kind.ON_OFF,
    "random on-off": Kind.RANDOM_ON_OFF,
    "pattern": Kind.PATTERN,
}
BURSTS = ("on-off", "random on-off")
ENTRIES_MAX = PATTERN_WORDS // 2
BURST_MAX = 2**32 - 1


@dataclass(frozen=True)
class Background:
    """Frames of the background of a class.

    Parameters
    ----------
    kind : str
        ``constant`` (at each interval), ``exponential`` (a Poisson process), ``on-off`` (bursts of a fixed number of frames, then a
        pause), ``random on-off`` (bursts of a geometric number, exponential pauses) or ``pattern``.
    length : int
        Of each frame, octets without FCS.
    rate_bps, share, interval_ns : number or None
        One of them, but for ``pattern``: the rate of the frames with the class's overhead, which may be above that of the link; a
        share of the link's rate; or from frame to frame. Of bursts it is that within a burst.
    burst : number
        Of bursts: frames of one, or their mean.
    pause_ns : number
        Of bursts: from the last frame of one to the first of the next, or its mean.
    entries : tuple of (number, int)
        Of ``pattern``: time since the frame before (ns), length; they repeat.
    phase_ns : number
        From the start to the first frame; exponential ones draw it.
    """

    kind: str
    length: int = 1514
    rate_bps: Number | None = None
    share: Number | None = None
    interval_ns: Number | None = None
    burst: Number = 0
    pause_ns: Number = 0
    entries: tuple[tuple[Number, int], ...] = ()
    phase_ns: Number = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"no background is called '{self.kind}': give one of {', '.join(KINDS)}")
        for length in (self.length, *(length for _, length in self.entries)):
            if not MIN_LENGTH <= length <= GIANT_LENGTH:
                raise UsageError(
                    f"background frames of {length} octets are out of range: give {MIN_LENGTH} to {GIANT_LENGTH}"
                )
        given = [name for name in ("rate_bps", "share", "interval_ns") if getattr(self, name) is not None]
        self._check_pattern(given) if self.kind == "pattern" else self._check_pace(given)
        if exact(self.phase_ns) < 0 or exact(self.pause_ns) < 0:
            raise UsageError("a time of the background is below 0: give 0 or more")
        if self.kind == "exponential" and exact(self.phase_ns):
            raise UsageError("the first frame of an exponential background is drawn, too: leave out 'phase'")

    def _check_pattern(self, given: list[str]) -> None:
        if given:
            raise UsageError("a pattern of the background has its own times: leave out rate, share and interval")
        if not 1 <= len(self.entries) <= ENTRIES_MAX:
            raise UsageError(f"a pattern of {len(self.entries)} background frames: give 1 to {ENTRIES_MAX}; it repeats")
        times = [exact(time) for time, _ in self.entries]
        if min(times) < 0 or not sum(times):
            raise UsageError(
                "the times of a background pattern are 0 or more, and not all 0: give times since the frame before"
            )

    def _check_pace(self, given: list[str]) -> None:
        if self.entries:
            raise UsageError(f"a background '{self.kind}' has no entries: leave them out, or give 'pattern'")
        if len(given) != 1:
            raise UsageError(f"a background '{self.kind}' needs one of rate, share and interval: give one of them")
        if exact(getattr(self, given[0])) <= 0:
            raise UsageError(f"the {given[0].split('_')[0]} of a background is out of range: give more than 0")
        if self.kind not in BURSTS:
            if exact(self.burst) or exact(self.pause_ns):
                raise UsageError(
                    f"a background '{self.kind}' has no bursts: leave out burst and pause, or give 'on-off'"
                )
            return
        burst = exact(self.burst)
        if not 1 <= burst <= BURST_MAX or (self.kind == "on-off" and burst.denominator != 1):
            raise UsageError(f"bursts of {float(burst):g} background frames are out of range: give 1 to {BURST_MAX}")
        if not exact(self.pause_ns):
            raise UsageError("bursts of the background need a pause: give 'pause', or 'constant' for none")

    def ticks_between(self, rate_bps: Fraction | None, overhead: int, ticks_per_ns: Fraction) -> Fraction:
        """Return the (mean) ticks from frame to frame, within a burst, of a link of ``rate_bps``.

        Raises
        ------
        UsageError
            When it is a share of a link that has no rate.
        """
        if self.interval_ns is not None:
            return exact(self.interval_ns) * ticks_per_ns
        if self.rate_bps is not None:
            rate = exact(self.rate_bps)
        elif rate_bps is None:
            raise UsageError(
                "a share of a link without a rate is not known: give the background a rate, or the direction one"
            )
        else:
            assert self.share is not None
            rate = exact(self.share) * rate_bps
        return 8 * (self.length + overhead) * 10**9 * ticks_per_ns / rate
