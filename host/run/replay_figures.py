# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What came of a replay: typed, and as plain data."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import TICK_NS
from liteprobe.host.capture.request import CaptureResult
from liteprobe.host.run.replay_port import ReplayCounts
from liteprobe.host.traffic.trace.summary import Summary
from liteprobe.host.traffic.trace.trace import Trace

PERCENTILES = (50.0, 99.0, 99.9)
CLOCK_PPM = 100  # Of an end, as IEEE 802.3 allows.
ROUNDING = 5e-6  # Of starts to ticks, in a short trace.


@dataclass(frozen=True)
class Sent:
    """How the stream to a port went.

    Attributes
    ----------
    datagrams, resent, starved : int
        Datagrams, each as often as it was sent; those that had been sent before; times that nothing was ready.
    accepted : int
        Words that the probe has taken.
    is_all : bool
        Those are all.
    """

    datagrams: int
    resent: int
    starved: int
    accepted: int
    is_all: bool


@dataclass(frozen=True)
class Delays:
    """Delays of captured frames, from their stamps to their reception (ns).

    Attributes
    ----------
    frames : int
        That have one.
    without : int
        Frames that came to the port without a stamp.
    values : array, shape (frames,)
        In the order in which they came; the first 20 million.
    """

    frames: int
    without: int
    values: NDArray[np.int64]

    @property
    def least_ns(self) -> int | None:
        """The least of them."""
        return int(self.values.min()) if len(self.values) else None

    @property
    def mean_ns(self) -> float | None:
        """Their mean."""
        return float(self.values.mean()) if len(self.values) else None

    @property
    def most_ns(self) -> int | None:
        """The greatest of them."""
        return int(self.values.max()) if len(self.values) else None

    def percentiles(self) -> tuple[float | None, ...]:
        """Return P50, P99 and P99.9."""
        if not len(self.values):
            return (None,) * len(PERCENTILES)
        return tuple(float(one) for one in np.percentile(self.values, PERCENTILES, method="inverted_cdf"))


@dataclass(frozen=True)
class ScheduledDelays:
    """Delays of captured frames without a stamp, from when the trace had them start to their reception.

    Attributes
    ----------
    delays : Delays
    missing : int
        Frames of the trace that did not come, or are not in the capture with as many octets as it keeps.
    repeated : int
        Captured frames that the trace has less often.
    strange : int
        Those that it hasn't: the device under test has changed or made them.
    ambiguous : int
        Those of which it can't be said which of several equal frames they are, or when that one started.
    """

    delays: Delays
    missing: int
    repeated: int
    strange: int
    ambiguous: int


@dataclass(frozen=True)
class PortReplay:
    """What a port sent.

    Attributes
    ----------
    port : int
    trace : Trace
    increment : int
        Nanoseconds a tick of the probe's clock, in 8.40 fixed point, by which its times became ticks.
    summary : Summary or None
        What the trace comes to, once; None: it has no end.
    asked : int or None
        Frames that were to be sent; None: without an end.
    frames : int
        That were sent.
    late : int
        Frames that started after their tick, because the line was taken or they came too late.
    first_late : int or None
        Number of the first one.
    expected_late : int or None
        Frames that the line can't start when they are due, by arithmetic; None: not known.
    underruns : int
        Frames whose words came too late from this host.
    first_underrun : int or None
    sent : Sent
    counts : ReplayCounts
    receive : int
        Port that the wire leads to.
    fetched_late : int
        Frames whose octets the probe did not have in time for its line.
    delays : Delays or None
        Where frames had stamps and were captured.
    scheduled : ScheduledDelays or None
        Where frames had none and were captured; None, too, where it isn't known when they started.
    """

    port: int
    trace: Trace
    increment: int
    summary: Summary | None
    asked: int | None
    frames: int
    late: int
    first_late: int | None
    expected_late: int | None
    underruns: int
    first_underrun: int | None
    sent: Sent
    counts: ReplayCounts
    receive: int
    fetched_late: int = 0
    delays: Delays | None = None
    scheduled: ScheduledDelays | None = None

    @property
    def known_delays(self) -> Delays | None:
        """Delays by stamps, or else by the trace's schedule."""
        return self.delays or (self.scheduled.delays if self.scheduled else None)

    def planned_starts(self) -> Iterator[NDArray[np.int64]]:
        """Yield the tick at which each frame of the trace starts, from the first one on, some thousands at once."""
        return self.trace.starts(self.increment)

    @property
    def is_whole(self) -> bool:
        """Whether all frames were sent, each when the line let it."""
        is_late = self.expected_late is not None and self.late > self.expected_late
        return not (
            is_late or self.underruns or self.counts.errors or (self.asked is not None and self.frames != self.asked)
        )


@dataclass(frozen=True)
class ReplayResult:
    """What came of a replay.

    Attributes
    ----------
    ports : tuple of PortReplay
    duration_s : float
        From the start to the look that saw the end (s of the probe's clock).
    end : str
        ``sent``, ``stopped``, ``interrupted`` or ``failed``.
    is_complete : bool
        All was sent, each frame when the line let it, and all was captured that was to be.
    clock_state : str
        ``free-running``, ``locked`` or ``holdover``.
    uncertainty_ns : float
        Bound of the error of one delay.
    capture : CaptureResult or None
    notes : tuple of str
        What the reader must know, a sentence each.
    """

    ports: tuple[PortReplay, ...]
    duration_s: float
    end: str
    is_complete: bool
    clock_state: str
    uncertainty_ns: float
    capture: CaptureResult | None
    notes: tuple[str, ...]

    def __getitem__(self, port: int) -> PortReplay:
        """Return what a port sent; KeyError where it sent nothing."""
        return {one.port: one for one in self.ports}[port]


def notes_of(one: PortReplay, was_stopped: bool) -> list[str]:
    """Return what must be known of a port."""
    expected, asked = one.expected_late or 0, one.asked or 0
    said = {
        f"{one.underruns} frames came too late from this host, number {one.first_underrun} first: give --snap, a lower --speed, or "
        "a faster network to the probe": one.underruns,
        f"{one.late} frames started after their tick, number {one.first_late} first; {expected} of them had to, because the frame "
        "before was still on the line": one.late and one.expected_late is not None,
        f"{one.late} frames started after their tick, number {one.first_late} first": one.late
        and one.expected_late is None,
        f"{one.fetched_late} frames were fetched from the ring too late for the line: report this with the file": one.fetched_late,
        f"{one.counts.errors} records were no frames, so it ended there: report this with the file": one.counts.errors,
        f"{asked - one.frames} of {asked} frames were not sent": one.asked is not None
        and one.frames < asked
        and not was_stopped,
        f"{one.delays.without if one.delays else 0} frames came to port {one.receive} without a stamp": one.delays
        and one.delays.without,
        _without_delay(one): one.scheduled and one.scheduled.delays.without,
    }
    found = [f"port {one.port}: {note}" for note, holds in said.items() if holds]
    return found + [f"port {one.port}: {note}" for note in (one.summary.notes if one.summary else ())]


def _without_delay(one: PortReplay) -> str:
    if one.scheduled is None:
        return ""
    found = one.scheduled
    return (
        f"{found.delays.without} captured frames without a stamp have no delay: {found.strange} are not in the trace, "
        f"{found.repeated} are copies, of {found.ambiguous} it can't be told which they are; {found.missing} did not come"
    )


def margin_note(one: PortReplay) -> str:
    """Return what must be said of a load that a slower device can't take; empty: nothing."""
    if one.summary is None or one.summary.load * (1 + 2 * CLOCK_PPM / 1e6) <= 1 + ROUNDING:
        return ""
    return (
        f"port {one.port}: {100 * one.summary.load:.3f} % of the line; clocks of both ends may be {CLOCK_PPM} ppm off, so a "
        f"device that is {2 * CLOCK_PPM} ppm slower drops frames that it has no fault in: give --margin-ppm {2 * CLOCK_PPM}"
    )


# As plain data ------------------------------------------------------------------------------------


def document(result: ReplayResult) -> dict[str, Any]:
    """Return a result as what JSON can hold."""
    return {
        "duration_s": result.duration_s,
        "end": result.end,
        "is_complete": result.is_complete,
        "clock_state": result.clock_state,
        "uncertainty_ns": result.uncertainty_ns,
        "notes": list(result.notes),
        "ports": [_port(one) for one in result.ports],
        "capture": result.capture.counts if result.capture else None,
    }


def _port(one: PortReplay) -> dict[str, Any]:
    names = (
        "port",
        "asked",
        "frames",
        "late",
        "first_late",
        "expected_late",
        "underruns",
        "first_underrun",
        "receive",
        "fetched_late",
    )
    return {
        **{name: getattr(one, name) for name in names},
        "is_whole": one.is_whole,
        "planned": _planned(one.summary) if one.summary else None,
        "sent": asdict(one.sent),
        "counts": asdict(one.counts),
        "latency_ns": _delays(one.delays) if one.delays else None,
        "latency_by_schedule_ns": _scheduled(one.scheduled) if one.scheduled else None,
    }


def _planned(summary: Summary) -> dict[str, Any]:
    names = ("frames", "octets", "duration_s", "share", "rate_bps", "cut", "stamped")
    starts = {"last_due_ns": summary.last_due * TICK_NS, "last_start_ns": summary.last_start * TICK_NS}
    return {name: getattr(summary, name) for name in names} | starts


def _delays(delays: Delays) -> dict[str, Any]:
    p50, p99, p99_9 = delays.percentiles()
    ends = {"least": delays.least_ns, "mean": delays.mean_ns, "most": delays.most_ns}
    return {"frames": delays.frames, "without": delays.without, **ends, "p50": p50, "p99": p99, "p99_9": p99_9}


def _scheduled(found: ScheduledDelays) -> dict[str, Any]:
    names = ("missing", "repeated", "strange", "ambiguous")
    return _delays(found.delays) | {name: getattr(found, name) for name in names}
