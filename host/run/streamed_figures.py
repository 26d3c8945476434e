# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the figures of ports that this host streamed to, traces or sets: typed, and as plain data."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import LINE_RATE_BPS
from liteprobe.host.analysis.columns import MEGA, Column, Columns, delays
from liteprobe.host.analysis.rows import finite
from liteprobe.host.capture.request import CaptureResult

PERCENTILES = (50.0, 99.0, 99.9)


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
class ReplayCounts:
    """Counts of a port that replays.

    Attributes
    ----------
    frames : int
        That were sent.
    underruns : int
        Frames whose last word came into the ring after they were due.
    first_underrun : int or None
        Number of the first of them, from 0.
    errors : int
        Records that no frame can be made of; the program ends there.
    accepted : int
        Position (words, modulo 2^32) up to which words are in the ring.
    datagrams, repeated, early, full : int
        Datagrams that were taken; that were there already; that were ahead of a missing one; that found no space.
    strange : int
        Of another session, lease, port or length.
    """

    frames: int
    underruns: int
    first_underrun: int | None
    errors: int
    accepted: int
    datagrams: int
    repeated: int
    early: int
    full: int
    strange: int


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

    @cached_property
    def figures(self) -> dict[str, float | None]:
        """Least, mean and greatest of them, P50, P99 and P99.9; None where there are none."""
        if not len(self.values):
            return dict.fromkeys(("least", "mean", "most", "p50", "p99", "p99_9"))
        ends = {"least": int(self.values.min()), "mean": float(self.values.mean()), "most": int(self.values.max())}
        percentiles = np.percentile(self.values, PERCENTILES, method="inverted_cdf").tolist()
        return ends | dict(zip(("p50", "p99", "p99_9"), percentiles, strict=True))

    @property
    def least_ns(self) -> float | None:
        """The least of them."""
        return self.figures["least"]

    @property
    def mean_ns(self) -> float | None:
        """Their mean."""
        return self.figures["mean"]

    @property
    def most_ns(self) -> float | None:
        """The greatest of them."""
        return self.figures["most"]

    def percentiles(self) -> tuple[float | None, ...]:
        """Return P50, P99 and P99.9."""
        return tuple(self.figures[name] for name in ("p50", "p99", "p99_9"))

    def document(self) -> dict[str, Any]:
        """Return the figures as what JSON can hold."""
        return {"frames": self.frames, "without": self.without, **self.figures}


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

    def document(self) -> dict[str, Any]:
        """Return the figures as what JSON can hold."""
        names = ("missing", "repeated", "strange", "ambiguous")
        return self.delays.document() | {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class PortFigures(ABC):
    """What a port sent.

    Attributes
    ----------
    port : int
    asked : int or None
        Frames that were to be sent; None: without an end, or not known.
    frames : int
        That were sent.
    late : int
        Frames that started after their tick.
    first_late : int or None
        Number of the first one.
    underruns : int
        Frames whose words came too late from this host.
    first_underrun : int or None
    sent : Sent
    receive : int
        Port that the wire leads to.
    delays : Delays or None
        Where frames had stamps and were captured.
    """

    port: int
    asked: int | None
    frames: int
    late: int
    first_late: int | None
    underruns: int
    first_underrun: int | None
    sent: Sent
    receive: int
    delays: Delays | None = None

    @property
    def known_delays(self) -> Delays | None:
        """Those by stamps, or, where a kind of program knows others, these."""
        return self.delays

    @property
    @abstractmethod
    def is_whole(self) -> bool:
        """Whether all was sent as it was to be."""

    @property
    @abstractmethod
    def rate_bps(self) -> float | None:
        """Of its frames, as planned (on the wire, frame + 24 octets)."""

    @abstractmethod
    def notes(self, was_stopped: bool) -> list[str]:
        """Return what the reader of the figures must know, a sentence each."""

    def without_stamp(self) -> list[str]:
        """Return what is to be said of captured frames that have no delay."""
        if not self.delays or not self.delays.without:
            return []
        return [f"{self.delays.without} frames came to port {self.receive} without a stamp"]

    def row(self) -> dict[str, Any]:
        """Return the figures as what JSON can hold."""
        return {
            **PORTS.document(self),
            "is_whole": self.is_whole,
            "sent": asdict(self.sent),
            "latency_ns": self.delays.document() if self.delays else None,
        }


#: Of every port, in the order of JSON; then those of a page or a table alone.
PORTS = Columns(
    Column("port", "port", "Port"),
    Column("asked", "of", "Frames"),
    Column("frames", "sent", "Sent"),
    Column("late", "late", "Late", is_fault=True),
    Column("first_late"),
    Column("underruns", "underruns", "Underruns", is_fault=True),
    Column("first_underrun", "first", "First\nunderrun"),
    Column("receive"),
)
STREAM = Columns(
    Column("datagrams", "", "Datagrams", of=lambda one: one.sent.datagrams),
    Column("resent", "resent", "Sent again", of=lambda one: one.sent.resent),
    Column("starved", "", "Ready\ntoo late", of=lambda one: one.sent.starved),
    Column("rate_bps", "Mb/s", "Mb/s", 3, MEGA),
    Column("share", "of line", of=lambda one: one.rate_bps and f"{100 * one.rate_bps / LINE_RATE_BPS:.2f} %"),
)
DELAYS = delays(lambda one: one.known_delays and {**one.known_delays.figures, "std": None})
CAPTURED = Columns(
    Column("with_delay", "", "Frames", of=lambda one: one.delays.frames),
    Column("without", "", "Without\nstamp", of=lambda one: one.delays.without),
)

FiguresT = TypeVar("FiguresT", bound=PortFigures)


@dataclass(frozen=True)
class StreamedResult(Generic[FiguresT]):
    """What came of a streamed run.

    Attributes
    ----------
    ports : tuple of PortReplay, or of PortSets
    duration_s : float
        From the start to the look that saw the end (s of the probe's clock).
    end : str
        ``sent``, ``stopped`` or ``interrupted``; empty: it did not start.
    is_complete : bool
        Each port sent all as it was to be, and all was captured that was to be.
    clock_state : str
        ``free-running``, ``locked`` or ``holdover``.
    uncertainty_ns : float
        Bound of the error of one delay.
    capture : CaptureResult or None
    notes : tuple of str
        What the reader must know, a sentence each.
    """

    ports: tuple[FiguresT, ...]
    duration_s: float
    end: str
    is_complete: bool
    clock_state: str
    uncertainty_ns: float
    capture: CaptureResult | None
    notes: tuple[str, ...]

    def __getitem__(self, port: int) -> FiguresT:
        """Return what a port sent; KeyError where it sent nothing."""
        return {one.port: one for one in self.ports}[port]

    def document(self) -> dict[str, Any]:
        """Return the result as what JSON can hold."""
        return {
            "duration_s": self.duration_s,
            "end": self.end,
            "is_complete": self.is_complete,
            "clock_state": self.clock_state,
            "uncertainty_ns": finite(self.uncertainty_ns),
            "notes": list(self.notes),
            "ports": [one.row() for one in self.ports],
            "capture": self.capture.counts if self.capture else None,
        }
