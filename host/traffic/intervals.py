# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Says when the frames of a stream are due: intervals by time, rate, frames a second or share of the line; bursts."""

from dataclasses import InitVar, dataclass
from fractions import Fraction

from liteprobe.cores.formats import MEAN_FRACTION_BITS, OVERHEAD
from liteprobe.host.base.document import Entries, Flag, Quantity, Whole, build, check_fields, key, part
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.line import FASTEST, GIGABIT, INCREMENT_ONE
from liteprobe.host.base.units import PACKET_RATES, PER_CENT, PREFIXES, RATES, TIMES, Number, exact
from liteprobe.host.base.validate import in_unit, validated
from liteprobe.host.traffic.lengths import Length

BURST_MAX = 2**16 - 1
SECOND_NS = 10**9
TICKS_MAX = 2**32 - 1
MEAN_MAX = Fraction(2**32 - 1, 2**MEAN_FRACTION_BITS)  # Of exponential intervals (ticks).
NOMINAL = int(GIGABIT.nominal)  # The increment of a clock without an error, at 1 Gb/s.

TIME_MOST = TICKS_MAX * GIGABIT.octet_ns
TIME = Quantity(
    "a time", "a time with ns, us, ms or s, above 0, up to 34.359 s; no unit: ns", TIMES, TIME_MOST, plain="ns"
)
START = Quantity("a time", "a time with ns, us, ms or s, up to 34.359 s; no unit: ns", TIMES, TIME_MOST, True, "ns")
RATE = Quantity(
    "a rate",
    f"b/s, with k, M or G, above 0, up to {FASTEST.most}",
    {**PREFIXES, **RATES},
    Fraction(FASTEST.rate_bps),
    plain="",
)
PACKETS = Quantity(
    "packets a second",
    "frames a second, with k or M, above 0, up to 20M",
    {unit: size for unit, size in PACKET_RATES.items() if "G" not in unit},
    Fraction(2 * 10**7),
    plain="",
)
SHARE = Quantity("a share of the line", "per cent like 12.5%, above 0%, up to 100%", PER_CENT, Fraction(1))
PACES = {
    "interval_ns": "an interval (ns)",
    "rate_bps": "a rate (b/s)",
    "pps": "packets a second",
    "share": "a share of the line",
}


@validated
@dataclass(frozen=True)
class Burst:
    """Frames that come in bursts; ``inner_ns`` (ns) is rounded to ticks, None is back to back."""

    count: int = key("count", Whole(1, BURST_MAX), "Frames of a burst.")
    inner_ns: Number | None = key(
        "interval", TIME, "From start to start within a burst, rounded to ticks of 8 ns.", None, "back to back"
    )

    def __post_init__(self) -> None:
        check_fields(self, " of a burst")


BURST = part(Burst, "burst")


@validated
@dataclass(frozen=True)
class Interval:
    """From the start of a frame to the start of the next; with bursts, from the head of a burst to the head of the next.

    One of the first four says how long it is; none of them: back to back. ``rate_bps`` (b/s on the wire, preamble, SFD, FCS
    and IFG included), ``pps`` and ``share`` (above 0, up to 1) are means over all frames of the stream, bursts or not,
    whatever their lengths. ``interval_ns`` and rates follow the probe's clock, a share follows the line: 1 is back to back.

    >>> Interval(rate="333.333Mbit") == Interval(rate_bps=333_333_000), Interval(interval="1us").interval_ns
    (True, Fraction(1000, 1))
    """

    interval_ns: Number | None = key(
        "interval",
        TIME,
        "From start to start; with `burst` from the head of a burst to the next.",
        None,
        "back to back",
    )
    rate_bps: Number | None = key(
        "rate", RATE, "In the place of `interval`: mean rate on the wire, with preamble, FCS and gap.", None
    )
    pps: Number | None = key("pps", PACKETS, "In the place of `interval`: mean number of frames a second.", None)
    share: Number | None = key(
        "share", SHARE, "In the place of `interval`: mean share of the line; 100% is back to back.", None
    )
    exponential: bool = key(
        "exponential",
        Flag(),
        "Intervals are drawn from an exponential distribution (Poisson); their mean is 1.073 s at most.",
        False,
    )
    burst: Burst | None = key("burst", BURST, "Frames come in bursts.", None)
    interval: InitVar[str | None] = None  # In the place of ``interval_ns``: a time with its unit.
    rate: InitVar[str | None] = None  # In the place of ``rate_bps``: a rate with its unit.

    def __post_init__(self, interval: str | None, rate: str | None) -> None:
        for name, found in (
            ("interval_ns", in_unit("interval", interval, "ns", "1us")),
            ("rate_bps", in_unit("rate", rate, "bps", "500Mbit")),
        ):
            if found is not None and getattr(self, name) is not None:
                raise UsageError(f"{name} is given twice, with and without its unit: give it once")
            if found is not None:
                object.__setattr__(self, name, found)
        given = [name for name in PACES if getattr(self, name) is not None]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(PACES[name] for name in given)} are given: give one of them")
        if not given and (self.exponential or self.burst):
            kind = "exponential intervals" if self.exponential else "bursts"
            raise UsageError(f"{kind} need a length of time: give {', '.join(PACES.values())}")
        check_fields(self)

    @classmethod
    def of_entries(cls, entries: Entries) -> "Interval":
        """Return that of a stream's keys."""
        with entries.source.line(entries.line_of("exponential", "burst")):
            made: Interval = build(cls, entries)
            return made

    @property
    def is_back_to_back(self) -> bool:
        """Whether no time is given."""
        return all(getattr(self, name) is None for name in PACES)

    @property
    def frames(self) -> int:
        """Frames from one head of a burst to the next."""
        return self.burst.count if self.burst else 1


def is_back_to_back(interval: Interval, length: Length, nominal: Fraction | int = NOMINAL) -> bool:
    """Whether frames fill the line without a pause, so that each is due when the one before has ended.

    ``nominal``: of a right clock, as `ticks_of` takes it.

    An interval without a time always does, one of the whole line where the lengths come in turn: due by the mean length,
    each frame after a longer one would be late.
    """
    if interval.is_back_to_back:
        return True
    is_plain = not interval.exponential and interval.burst is None
    return (
        is_plain and isinstance(length.cycle, tuple) and head_ticks(interval, length, nominal) == length.mean + OVERHEAD
    )


def back_to_back_cycle(length: Length) -> tuple[int, int] | None:
    """Return the frames and ticks until the lengths come again, back to back; None where they are drawn."""
    cycle = length.cycle
    return None if cycle is None else (len(cycle), sum(cycle) + OVERHEAD * len(cycle))


def ticks_of(time_ns: Number, increment: Fraction | int) -> Fraction:
    """Return the ticks, octets of the line, of a time by the probe's clock; ``increment``: its ns a tick, in 8.40 fixed point."""
    return exact(time_ns) * INCREMENT_ONE / increment


def head_ticks(
    interval: Interval, length: Length, increment: Fraction | int, factor: Fraction = Fraction(1)
) -> Fraction:
    """Return the (mean) ticks from the head of a burst, or of a frame, to the next.

    Times and rates follow the probe's clock, and are stretched by ``factor``; the share of the line follows the line.
    Raises UsageError when that is longer than a probe can count.
    """
    slots = interval.frames * (length.mean + OVERHEAD)
    ticks = Fraction(slots)
    if interval.interval_ns is not None:
        ticks = factor * ticks_of(interval.interval_ns, increment)
    elif interval.pps is not None:
        ticks = factor * ticks_of(interval.frames * SECOND_NS / exact(interval.pps), increment)
    elif interval.rate_bps is not None:
        ticks = factor * ticks_of(8 * slots * SECOND_NS / exact(interval.rate_bps), increment)
    elif interval.share is not None:
        ticks = slots / exact(interval.share)
    most = MEAN_MAX if interval.exponential else TICKS_MAX
    if ticks > most:
        kind = "the mean of exponential intervals" if interval.exponential else "an interval"
        tick_ns = Fraction(increment) / INCREMENT_ONE
        raise UsageError(
            f"{kind} of {float(ticks * tick_ns / SECOND_NS):.3f} s is out of range: give "
            f"{int(most * tick_ns // 10**6) / 1000:.3f} s at most, or a higher rate"
        )
    return ticks
