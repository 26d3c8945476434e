# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Packet trains are checked and turned into ticks here; what came back is held."""

import math
from dataclasses import InitVar, dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import MAX_LENGTH, MIN_LENGTH, OVERHEAD
from liteprobe.host.base.defaults import FILLS
from liteprobe.host.base.document import Whole
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.line import FASTEST, GIGABIT, INCREMENT_ONE, Line
from liteprobe.host.base.validate import in_unit, validated
from liteprobe.host.traffic.headers import HALFWORD, Headers, sourced

COUNT_MAX = 2**32 - 1
TICKS_MAX = 2**32 - 1
VLAN_TAGS_OF_TRAIN = 2  # That the receiver of trains finds a payload after.

FRACTION_ONE = 2**32  # One tick, in the fraction of an interval.
# A crystal is off by 100 ppm at most, and so are two ends by 200: "at line rate" is meant up to that.
RATE_TOLERANCE = Fraction(200, 10**6)


@validated
@dataclass(frozen=True)
class TrainProgram:
    """A program makes one port send ``repeats`` trains of ``count`` frames; UsageError, naming the fix, when no probe can.

    >>> Train(60, count=1000, interval="1us").interval_ns, Train(60, 1000, rate="500Mbit").interval_ns
    (1000.0, 1344.0)
    """

    length: int  # Length of a frame without FCS (octets), 60 to 9000.
    count: int  # Frames in a train, 1 to 2^32-1.
    repeats: int = 1  # Trains; count x repeats is 2^32-1 at most, because every frame has its own sequence number.
    interval_ns: float | None = None  # SFD to SFD within a train (ns of the probe's clock); None: back to back.
    #: Extra time between the slot of a train's last frame and the next head (ns); None: as long as it takes to fetch
    #: the records of a train, so that its successor finds the ring empty.
    gap_ns: float | None = None
    start_time_ns: int | None = None  # Time of the first SFD on the probe's clock (ns); None: at once.
    stream_id: int = 1  # Number that the frames carry, 0 to 65535.
    fill: str = "zero"  # Payload after the probe fields: ``zero``, ``counting`` or ``prbs``.
    headers: Headers = field(default_factory=Headers)  # Addresses, VLAN tags, TTL.
    interval: InitVar[str | None] = None  # In the place of ``interval_ns``: a time with its unit.
    rate: InitVar[str | None] = None  # Likewise: a rate on the wire, preamble, SFD, FCS and IFG included.
    #: Address of the port that sends, and of the router on the way: the probe then finds MAC addresses before the run.
    source: str | None = None
    via: str | None = None

    def __post_init__(self, interval: str | None, rate: str | None) -> None:
        given = [one for one in (self.interval_ns, interval, rate) if one is not None]
        if len(given) > 1:
            raise UsageError("interval_ns, interval and rate say the same: give one of them")
        interval_ns = in_unit("interval", interval, "ns", "1us")
        if rate_bps := in_unit("rate", rate, "bps", "500Mbit"):
            interval_ns = Fraction(interval_ns_for_rate(self.length, float(rate_bps), FASTEST))
        if interval_ns is not None:
            object.__setattr__(self, "interval_ns", float(interval_ns))
        object.__setattr__(self, "headers", sourced(self.headers, self.source, self.via))
        _check(self)

    @property
    def total(self) -> int:
        """Frames of the whole program."""
        return self.count * self.repeats

    @property
    def slot_ticks(self) -> int:
        """Octets that a frame takes on the wire, overhead included: ticks of the program, back to back."""
        return self.length + OVERHEAD


Train = TrainProgram  # A short name, for scripts.


@dataclass(frozen=True)
class TrainRecords:
    """Holds what came back of a train; `TrainResult` makes figures of it."""

    program: TrainProgram  # What was sent.
    #: Shape (frames received and recorded,). One row a frame, in order of arrival, of ``RECORD_DTYPE``; stamps in ns.
    #: Flags of order (duplicate, reordered, beyond the window) come from probes with the part ``record`` alone.
    records: NDArray[np.void]
    #: Transmit and receive counters of the two ports, by register name without the port (``sent``, ``delay_sum``);
    #: where both have one, the transmit port's begins with ``transmit_``.
    counters: dict[str, int]
    sent: int  # Frames that left.
    late: int  # Those among them that started after their tick.
    clock_state: str  # ``free-running``, ``locked`` or ``holdover``.
    uncertainty_ns: float  # Bound of the error of one delay (ns).
    complete: bool  # Whether every frame was sent and every frame that arrived is in ``records``.
    notes: tuple[str, ...]  # What the reader of the figures must know, a sentence each.
    line: Line = GIGABIT  # Of the port that sent.


@dataclass(frozen=True)
class Schedule:
    """A program's times in ticks, octets of the line, as the registers take them, and what had to be said about them."""

    interval_ticks: int  # Start to start, in ticks.
    interval_fraction: int  # And in 2^-32 ticks; both 0: back to back.
    gap_ticks: int  # Extra ticks between trains.
    duration_ns: Fraction  # First SFD to the end of the last slot (ns).
    notes: tuple[str, ...] = ()  # Sentences for the result.


@validated
def interval_ns_for_rate(length: int, rate_bps: float, line: Line = GIGABIT) -> float:
    """Return the interval (ns) at which frames of ``length`` octets fill ``rate_bps`` on the wire.

    The rate counts preamble, SFD, FCS and IFG: 1e9 is the line rate of Gigabit Ethernet.
    """
    if not (math.isfinite(rate_bps) and 0 < rate_bps <= line.rate_bps * (1 + RATE_TOLERANCE)):
        raise UsageError(
            f"rate {rate_bps:g} b/s is out of range: give a rate above 0, up to {line.most}, or none for back to back"
        )
    return float(Fraction(8 * 10**9 * (length + OVERHEAD)) / Fraction(rate_bps))


def _check(program: TrainProgram) -> None:
    headers = program.headers
    _check_headers(headers)
    shortest = max(MIN_LENGTH, headers.length_min)
    why = "" if shortest == MIN_LENGTH else " with these headers"
    Whole(shortest, MAX_LENGTH, note=f" octets without FCS{why}").check(program.length, "length")
    Whole(1, COUNT_MAX).check(program.count, "count")
    if program.repeats < 1:
        raise UsageError(f"repeats {program.repeats} is out of range: give 1 or more")
    if program.total > COUNT_MAX:
        raise UsageError(
            f"count {program.count} x repeats {program.repeats} is {program.total} frames: give {COUNT_MAX} at most"
        )
    HALFWORD.check(program.stream_id, "stream id")
    if program.fill not in FILLS:
        raise UsageError(f"fill '{program.fill}' is unknown: give one of {', '.join(FILLS)}")
    if program.start_time_ns is not None and not 0 <= program.start_time_ns < 2**64:
        raise UsageError(f"start time {program.start_time_ns} ns is out of range: give a time of the probe's clock")
    for name, time_ns in (("interval", program.interval_ns), ("gap", program.gap_ns)):
        if time_ns is not None and time_ns < 0:
            raise UsageError(f"{name} {time_ns} ns is out of range: give 0 or more")


def _check_headers(headers: Headers) -> None:
    if len(headers.vlan_tags) > VLAN_TAGS_OF_TRAIN:
        raise UsageError(f"{len(headers.vlan_tags)} VLAN tags are too many: a train has up to {VLAN_TAGS_OF_TRAIN}")
    if headers.mpls_labels or not headers.has_transport or headers.transport != "udp":
        raise UsageError("a train has UDP over IP, without MPLS: send a stream with these headers")


def schedule(program: TrainProgram, increment: int, line: Line = GIGABIT) -> Schedule:
    """Turn the times of ``program`` into ticks, exact to 2^-32 of a tick.

    Raises UsageError when an interval is below the length plus 24 octets (a rate above the line) or above what the
    registers hold.

    Parameters
    ----------
    increment : int
        Nanoseconds a tick of the probe's clock, in 8.40 fixed point: an interval asked for in nanoseconds is one
        of disciplined time. A gap of None is none: ``gap_for`` says how long it should be.
    line : Line
        Of the probe. A tick of a program is an octet of it.
    """
    interval, notes = _interval_ticks(program, increment, line)
    octet = Fraction(
        increment, line.octets_per_tick * INCREMENT_ONE
    )  # Time of one, in nanoseconds of the probe's clock.
    gap_ticks = round(line.octets_of(program.gap_ns or 0.0, increment))
    interval_ticks, interval_fraction = divmod(round((interval or 0) * FRACTION_ONE), FRACTION_ONE)
    if max(interval_ticks, gap_ticks) > TICKS_MAX:
        most = float(TICKS_MAX * octet / 10**9)
        raise UsageError(f"an interval or gap is above {most:.3f} s, the most that the probe holds: make it shorter")
    slot = interval if interval is not None else Fraction(program.slot_ticks)
    ticks = program.total * slot + (program.repeats - 1) * gap_ticks
    return Schedule(interval_ticks, interval_fraction, gap_ticks, ticks * octet, notes)


def gap_for(program: TrainProgram, record_ns: float, look_ns: float, is_in_band: bool, line: Line = GIGABIT) -> float:
    """Return the gap (ns) in which the records of a train of ``program`` are fetched before the next train.

    Parameters
    ----------
    record_ns, look_ns : float
        Time that the host takes for a record, and from one look at the probe to the next (ns).
    is_in_band : bool
        Whether the host may have to wait for the end of a train before it gets any record.
    """
    interval_ns = program.interval_ns or float(line.octet_ns * program.slot_ticks)
    fetched_meanwhile = 0.0 if is_in_band else program.count * interval_ns
    return max(program.count * record_ns - fetched_meanwhile, 0.0) + look_ns


def _interval_ticks(program: TrainProgram, increment: int, line: Line) -> tuple[Fraction | None, tuple[str, ...]]:
    """Return the interval in ticks (None: back to back), and the notes about it."""
    if program.interval_ns is None:
        return None, ()
    interval = line.octets_of(program.interval_ns, increment)
    least = program.slot_ticks
    if interval >= least:
        return interval, ()
    if increment != line.increment and interval >= least * (1 - RATE_TOLERANCE):
        ppm = float((1 - interval / least) * 10**6)
        return None, (f"the line is {ppm:.1f} ppm slower than the rate asked for, by the probe's clock: back to back",)
    least_ns = float(Fraction(least * increment, line.octets_per_tick * INCREMENT_ONE))
    raise UsageError(
        f"interval {program.interval_ns:g} ns is above the line rate for length {program.length}: "
        f"give {least_ns:g} ns or more, or none for back to back"
    )
