# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs ports that send what this host streams to them: open, fill the rings, start all in one tick, stream and capture, count."""

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    NO_SEQUENCE,
    REPLAY_PORT,
    RING_WORDS,
    SIGNATURE,
    STAMP_OFFSET,
    TransmitState,
)
from liteprobe.host.analysis.columns import MEGA, Column, Columns, delays
from liteprobe.host.analysis.result import PartFigures, Result, ratio
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.base.line import GIGABIT, Line
from liteprobe.host.base.output import OutputError
from liteprobe.host.base.validate import validated
from liteprobe.host.capture.request import CaptureRequest, CaptureResult
from liteprobe.host.capture.session import Sink
from liteprobe.host.device.registers import Registers
from liteprobe.host.packets.batch import Batch
from liteprobe.host.packets.frames import WORD_OCTETS
from liteprobe.host.replay.dma import DmaTarget, PortAddresses
from liteprobe.host.replay.slots import ReplaySession, WordSource
from liteprobe.host.replay.streamer import Streamer, StreamState, Target
from liteprobe.host.replay.udp import Pace, UdpTarget
from liteprobe.host.run.engine import IN_BAND_PORT, PortEnd, PortRun, RunDevice, is_shared, noted
from liteprobe.host.run.figures import RESULTS
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.records import delays_ns, has_octets

PRIME_WORDS = RING_WORDS - RING_WORDS // 16  # All that is sure to be taken: the rest may be in the next datagram.
PRIME_S = 30.0
LOOK_S = 0.005
CAPTURE_LOOK_S = 0.02  # While this host has a capture to take.
SHARED_LOAD = 0.9  # Of a line that the probe's answers leave by, too.
DELAYS_MOST = 20_000_000
PERCENTILES = (50.0, 99.0, 99.9)
SENT = ("datagrams", "resent", "starved", "accepted", "is_all")  # What files have of a stream to a port.


@dataclass(frozen=True)
class ReplayCounts:
    """Counts of a port that replays."""

    frames: int  # That were sent.
    underruns: int  # Frames whose last word came into the ring after they were due.
    first_underrun: int | None  # Number of the first of them, from 0.
    errors: int  # Records that no frame can be made of; the program ends there.
    accepted: int  # Position (words, modulo 2^32) up to which words are in the ring.
    datagrams: int  # Datagrams that were taken.
    repeated: int  # That were there already.
    early: int  # That were ahead of a missing one.
    full: int  # That found no space.
    strange: int  # Of another session, lease, port or length.


@dataclass(frozen=True)
class Delays:
    """Delays of captured frames, from their stamps to their reception (ns)."""

    frames: int  # That have one.
    without: int  # Frames that came to the port without a stamp.
    values: NDArray[np.int64]  # Shape (frames,). In the order in which they came; the first 20 million.
    modulo_ns: int | None = None  # They are known modulo this alone, the range of their stamp; None: they are known.

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
        return {"frames": self.frames, "without": self.without, **self.figures, "modulo": self.modulo_ns}


@dataclass(frozen=True)
class ScheduledDelays:
    """Delays of captured frames without a stamp, from when the trace had them start to their reception."""

    delays: Delays
    missing: int  # Frames of the trace that did not come, or are not in the capture with as many octets as it keeps.
    repeated: int  # Captured frames that the trace has less often.
    strange: int  # Those that it hasn't: the device under test has changed or made them.
    ambiguous: int  # Those of which it can't be said which of several equal frames they are, or when that one started.

    def document(self) -> dict[str, Any]:
        """Return the figures as what JSON can hold."""
        names = ("missing", "repeated", "strange", "ambiguous")
        return self.delays.document() | {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class PortFigures(PartFigures, ABC):
    """Figures of what a port sent; ``p99`` and the like are numbers with ``.bounds`` (ns)."""

    port: int
    asked: int | None  # Frames that were to be sent; None: without an end, or not known.
    frames: int  # That were sent.
    #: Frames that started after their tick though the line was free: a fault. None: only those and the waiting ones together.
    late: int | None
    first_late: int | None  # Number of the first frame that started after its tick, late or waiting.
    underruns: int  # Frames whose words came too late from this host.
    first_underrun: int | None
    sent: StreamState  # How the stream to the port went.
    line: Line = GIGABIT  # Of the port.
    receive: int  # Port that the wire leads to.
    delays: Delays | None = None  # Where frames had stamps and were captured.

    @property
    def known_delays(self) -> Delays | None:
        """Those by stamps, or, where a kind of program knows others, these."""
        return self.delays

    @property
    def delay_figures(self) -> Mapping[str, Any]:
        """Figures of its delays by their names (ns)."""
        return self.known_delays.figures if self.known_delays else {}

    @property
    def received(self) -> int | None:
        """Frames with a stamp that came, copies too; None: nothing was captured, or it isn't known."""
        return self.delays.frames if self.delays else None

    @property
    def lost(self) -> int | None:
        """Frames that were sent and did not come; None: it isn't known."""
        return None if self.received is None else max(self.frames - self.received, 0)

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
        """Return what is to be said of captured frames that have no delay, or one that isn't known but modulo something."""
        without, modulo_ns = (self.delays.without, self.delays.modulo_ns or 0) if self.delays else (0, 0)
        said = {
            f"{without} frames came to port {self.receive} without a stamp": without,
            f"delays are modulo {modulo_ns:,} ns, the range of the stamp: give one of more bits, or of a slower tick": modulo_ns,
        }
        return noted(said)

    def row(self) -> dict[str, Any]:
        """Return the figures as what JSON can hold."""
        return {
            **PORTS.document(self),
            "is_whole": self.is_whole,
            "sent": {name: getattr(self.sent, name) for name in SENT},
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
    Column("share", "of line", of=lambda one: one.rate_bps and f"{100 * one.rate_bps / one.line.rate_bps:.2f} %"),
)
DELAYS = delays(lambda one: one.known_delays and {**one.known_delays.document(), "std": None}, modulo=True)
CAPTURED = Columns(
    Column("with_delay", "", "Frames", of=lambda one: one.delays.frames),
    Column("without", "", "Without\nstamp", of=lambda one: one.delays.without),
)

ARRIVED = ("received", "lost", "loss_ratio")  # Figures that a capture alone knows.
FiguresT = TypeVar("FiguresT", bound=PortFigures)


@dataclass(frozen=True, repr=False)
class StreamedResult(Result, Generic[FiguresT]):
    """Result of a replay or of sets: all of `Result`; its parts are the ports that send.

    What came is known with a capture that is complete, of frames with a stamp, and of those that the trace's schedule
    tells apart; else ``received`` and ``lost`` are None. A frame that came twice counts twice.

    >>> result = StreamedResult((), 0.5, "sent", True, "locked", 8.0, None, ())
    >>> result, result.to_dict()["ports"]
    (<StreamedResult: 0 sent, 0 received, 0 lost>, [])
    """

    ports: tuple[FiguresT, ...]
    duration_s: float  # From the start to the look that saw the end (s of the probe's clock).
    end: str  # ``sent``, ``stopped`` or ``interrupted``; empty: it did not start.
    is_complete: bool  # Each port sent all as it was to be, and all was captured that was to be.
    clock_state: str  # ``free-running``, ``locked`` or ``holdover``.
    uncertainty_ns: float  # Bound of the error of one delay.
    capture: CaptureResult | None
    notes: tuple[str, ...]  # What the reader must know, a sentence each.

    def __getitem__(self, port: int) -> FiguresT:
        """Return what a port sent; KeyError where it sent nothing."""
        return {one.port: one for one in self.ports}[port]

    @property
    def parts(self) -> dict[str, FiguresT]:
        """Ports by number."""
        return {f"port {one.port}": one for one in self.ports}

    def value(self, key: str, part: Any) -> Any:
        """Return a figure of a port; what came isn't known by a capture that misses something."""
        is_known = self.capture is None or self.capture.is_complete or key not in ARRIVED
        return super().value(key, part) if is_known else None

    @property
    def delays_by_part(self) -> dict[str, NDArray[np.int64]]:
        """Delays in the order in which the frames came (ns)."""
        return {name: one.known_delays.values for name, one in self.parts.items() if one.known_delays}

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        captured = self.capture.counts if self.capture else None
        return {**RESULTS.document(self), "ports": [one.row() for one in self.ports], "capture": captured}


StreamedResult.COLUMNS = Columns(
    Column("sent", "", "Sent", of=lambda one: one.frames),
    *(Column(name, "", name.capitalize()) for name in ARRIVED if name != "loss_ratio"),
    Column("loss_ratio", "", "Loss ratio", 6, of=lambda one: ratio(one.lost, one.frames)),
    *PORTS.of("late underruns"),
    *DELAYS.of("least mean p50 p99 p99_9 most"),
)


class ReplayRing:
    """The ring of a port that takes what the host streams to it."""

    def __init__(self, registers: Registers, number: int) -> None:
        self._registers = registers
        self._prefix = f"port{number}_replay_"

    def open(self, session: int, loops: int, prime: int) -> None:
        """Empty the ring and clear the counters for a session.

        Parameters
        ----------
        session : int
            Its number, 16 bits.
        loops : int
            How often what is in the ring is sent; 0: without an end; 1: it need not find space there.
        prime : int
            Words that must be in the ring, or the last record, before the program is ready.
        """
        self._registers.write_burst({self._prefix + "session": session})
        values = {"loops": loops, "prime": prime}
        self._registers.write_many({self._prefix + name: value for name, value in values.items()})
        self._registers.write(self._prefix + "open", 1)

    def prime(self, words: int) -> None:
        """Have the program start with so many words: there are no more."""
        self._registers.write(self._prefix + "prime", words)

    def close(self) -> None:
        """End the session: what is streamed to it is not taken any more."""
        self._registers.write(self._prefix + "close", 1)

    def arm(self) -> None:
        """Take the first records as soon as they are there."""
        self._registers.write(self._prefix + "arm", 1)

    def counts(self) -> ReplayCounts:
        """Return all counters."""
        values = self._registers.read_many(self._prefix + one.name for one in fields(ReplayCounts))
        found = {name.removeprefix(self._prefix): value for name, value in values.items()}
        first = found.pop("first_underrun")
        return ReplayCounts(first_underrun=None if first == NO_SEQUENCE else first, **found)


class DelaySink:
    """Takes records of a capture, and keeps the delays of the frames that have a stamp.

    Parameters
    ----------
    stamps : mapping of int to Stamp
        By the port that frames come to.
    signatures : mapping of int to int
        By port, the octet at which the signature of probe frames begins: others have no stamp. A stamp in the probe header needs
        it.
    """

    def __init__(self, stamps: Mapping[int, Stamp], signatures: Mapping[int, int] | None = None) -> None:
        self._signatures = dict(signatures or {})
        self._stamps = {port: self._placed(port, stamp) for port, stamp in stamps.items()}
        self._frames = dict.fromkeys(stamps, 0)
        self._without = dict.fromkeys(stamps, 0)
        self._found: dict[int, list[NDArray[np.int64]]] = {port: [] for port in stamps}

    def write(self, batch: Batch) -> None:
        """Take records."""
        octets = batch.words.view(np.uint8)
        at, snap, ports, stamps = WORD_OCTETS * batch.octets_at, batch.snap_length, batch.port, batch.stamp
        for port, stamp in self._stamps.items():
            own = (ports == port) & ~batch.is_gap
            count = int(np.count_nonzero(own))
            if port in self._signatures:
                own[own] = has_octets(SIGNATURE.to_bytes(4), self._signatures[port], octets, at[own], snap[own])
            delays = delays_ns(stamp, stamps[own], octets, at[own], snap[own])
            found = delays[delays >= 0]
            self._without[port] += count - len(found)
            if self._frames[port] < DELAYS_MOST:
                self._found[port].append(found[: DELAYS_MOST - self._frames[port]])
            self._frames[port] += len(found)

    def delays(self, port: int, age_ns: int) -> Delays | None:
        """Return the delays of the frames that came to a port, none older than ``age_ns``; None: none has stamps there."""
        if port not in self._stamps:
            return None
        parts, range_ns = self._found[port], self._stamps[port].range_ns
        values = np.concatenate(parts) if parts else np.empty(0, np.int64)
        return Delays(
            self._frames[port], self._without[port], values, range_ns if range_ns and age_ns >= range_ns else None
        )

    # # #

    def _placed(self, port: int, stamp: Stamp) -> Stamp:
        """Return a stamp whose place can be found in octets alone."""
        if stamp.place != "probe":
            return stamp
        return Stamp("octet", self._signatures[port] + STAMP_OFFSET, stamp.bits, stamp.tick)


@dataclass(frozen=True)
class StreamLook:
    """A look at a run, by port: frames sent, frames to be sent (None: not known), frames too late, datagrams sent again."""

    frames: dict[int, int]
    asked: dict[int, int | None]
    underruns: dict[int, int]
    resent: dict[int, int]


Show = Callable[[StreamLook], None]


@validated
@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """Options of streaming to ports."""

    capture: CaptureRequest | None = None  # What to capture meanwhile, on all ports.
    prime_words: int = PRIME_WORDS  # Words that are in the ring before it starts, or all.
    patience_s: float | None = None  # Without an answer for so long, the probe is gone; None: as the link says.
    remark: Callable[[str], None] | None = None  # Called with a line on what isn't as fast as it could be.


class StreamedPort(ABC, Generic[FiguresT]):
    """A port and what this host streams to it, and how far it is; a subclass is a kind of program."""

    #: What messages say of the kind of program, as in "... no room" and "use another port, or ...".
    leaves: ClassVar[str]
    slower: ClassVar[str]

    def __init__(self, probe: RunDevice, number: int) -> None:
        self.port, self._line = probe.ports[number], probe.line
        self.ring = ReplayRing(probe.registers, number)
        self.receive = probe.link.receive_port(number, len(probe.ports))  # Port that the wire leads to.
        self.session = ReplaySession(number, secrets.randbelow(0xFFFF) + 1, 0)
        #: How often what is in the ring is sent (0: without an end); words in it before it starts, fewer if there are no more.
        self.loops, self.prime = 1, PRIME_WORDS
        self.asked: int | None = None  # Frames that are to be sent.
        self.load = 1.0  # Share of the line, 0 to 1.
        self.stamp: Stamp | None = None  # Where frames have the time of their start.
        self.signature: int | None = None  # Octet of the signature in frames that have one: others have no stamp.
        self.state, self.frames, self.sent = TransmitState.IDLE, 0, StreamState()  # As of the last look.

    @property
    @abstractmethod
    def words(self) -> WordSource:
        """Words that are streamed."""

    def load_port(self) -> None:
        """Load what the port must know; its ring is open."""

    @abstractmethod
    def arm(self) -> None:
        """Take the program as its words come."""

    @abstractmethod
    def figures(self, delays: Delays | None) -> FiguresT:
        """Return what the port sent."""

    def common_figures(self, frames: int, late: int | None, first_late: int, delays: Delays | None) -> dict[str, Any]:
        """Return by name the figures that programs of all kinds have, but for their underruns."""
        return {
            **{"port": self.port.number, "asked": self.asked, "frames": frames, "late": late},
            **{"first_late": None if first_late == NO_SEQUENCE else first_late},
            **{"sent": self.sent, "receive": self.receive, "delays": delays, "line": self._line},
        }


class StreamedRun(PortRun, Generic[FiguresT]):
    """One start of one port or several, all in the same tick; a kind of program with more to do derives from it.

    Raises UsageError when the probe's answers share a line that has no room for them.

    Parameters
    ----------
    jobs : sequence of StreamedPort
        In the order of their ports.
    target : Target
        Where words go to (``target_of``).
    show : callable or None
        Given a look, now and then.
    """

    def __init__(
        self,
        probe: RunDevice,
        jobs: Sequence[StreamedPort[FiguresT]],
        target: Target,
        options: StreamOptions,
        show: Show | None = None,
    ) -> None:
        super().__init__([PortEnd.of(probe, job.port.number) for job in jobs])
        self._probe, self._jobs, self._options, self._show = probe, jobs, options, show
        self._target = target
        stamps = {one.receive: one.stamp for one in jobs if one.stamp}
        self._delays = DelaySink(stamps, {one.receive: one.signature for one in jobs if one.signature is not None})
        self._check_line()
        self._streamer: Streamer | None = None
        self._began_ns = self._ended_ns = 0
        self._settles_s: float | None = None
        self._look_due_s = 0.0
        self._look_s = min(LOOK_S, self.patience_s / 10)  # Time of a simulated probe is dear.
        self._captured: CaptureResult | None = None

    def run(self) -> StreamedResult[FiguresT]:
        """Send all, and return what came of it.

        Raises ProbeError when a link is down, nothing answers or what is streamed is wrong: all ports have stopped
        then; KeyboardInterrupt passed on after the ports were stopped; Interrupted has the result until then. OutputError, which
        has the result, when files of the capture could not be written to the end.
        """
        with self.stopped_at_errors():
            self.prepare()
            sources = {job.session: job.words for job in self._jobs}
            with Streamer(self._target, sources) as self._streamer:
                try:
                    self._prime()
                    if self._options.capture:
                        self._captured = self._capture(self._options.capture)
                        if self._captured.signal:
                            raise Interrupted(self._captured.signal)
                    else:
                        self._follow()
                finally:
                    with suppress(ProbeError):
                        if self.stop_ports(self._probe):
                            self.end = self.end or "stopped"
        result = self._result()
        if self._captured and self._captured.failed:
            raise OutputError(self._captured.failed, [result])
        return result

    def partial_results(self) -> list[StreamedResult[FiguresT]]:
        """Return what was sent until a signal came."""
        return [self._result()]

    # What a kind of program adds ------------------------------------------------------------------

    @property
    def sinks(self) -> list[Sink]:
        """Takers of records beside the files of a capture."""
        return [self._delays]

    @property
    def start_ns(self) -> int | None:
        """Time at which the first SFD is to leave; None: at once."""
        return None

    def look_at_clock(self) -> int:
        """Return the time of the probe's clock (ns)."""
        return self._probe.timebase.now_ns

    def figures_of(self, job: StreamedPort[FiguresT]) -> FiguresT:
        """Return what a port sent."""
        if not self._options.capture:
            return job.figures(None)
        return job.figures(self._delays.delays(job.receive, self._probe.timebase.now_ns - self._began_ns))

    # Begin ----------------------------------------------------------------------------------------

    def _check_line(self) -> None:
        """Raise UsageError where the probe's answers share a line that has no room for them."""
        for job in self._jobs:
            if job.port.number == IN_BAND_PORT and job.load > SHARED_LOAD and is_shared(self._probe):
                raise UsageError(
                    f"port {IN_BAND_PORT} is the one by which the probe answers this host, and {job.leaves} no room for "
                    f"that on its line (more than {100 * SHARED_LOAD:g} %): use another port, or {job.slower}"
                )

    def load(self) -> None:
        """Open the sessions, under this host's lease."""
        for job in self._jobs:
            job.session = replace(job.session, lease=self._probe.link.lease & 0xFFFF)
            job.port.transmit.clear()
            job.ring.open(job.session.number, job.loops, job.prime)
            job.load_port()

    def _prime(self) -> None:
        """Wait until the rings are full, or hold all."""
        ends_s = time.monotonic() + PRIME_S
        while not all(self._is_primed(job) for job in self._jobs):
            if time.monotonic() > ends_s:
                raise ProbeError(
                    f"the rings of the probe were not full after {PRIME_S:g} s: find out what makes the network to it this slow, "
                    "or what the words wait for"
                )
            self.let_pass(self._look_s)

    def _is_primed(self, job: StreamedPort[FiguresT]) -> bool:
        assert self._streamer
        state = self._streamer.state(job.port.number)
        if state.is_all and state.accepted < job.prime:
            job.prime = state.accepted  # There are no more.
            job.ring.prime(job.prime)
        return state.accepted >= job.prime

    def start_all(self) -> None:
        """Start all ports in one tick."""
        for job in self._jobs:
            job.port.transmit.attach(self.start_ns)
            job.arm()
        super().start_all()

    def starting(self, probe: RunDevice, now_ns: int) -> float:
        """Keep when it starts."""
        self._began_ns = self._ended_ns = now_ns
        return 0.0

    # While it runs --------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Look until all ports have ended."""
        self.start_all()
        while self._look():
            self.let_pass(self._look_s)
        self.end = self.end or "sent"

    def _capture(self, request: CaptureRequest) -> CaptureResult:
        """Capture while the ports send, and until what they sent has come."""
        from liteprobe.host.capture.run import capture_probe  # Its files take a while to load.

        return capture_probe(self._probe, request, remark=self._options.remark, companion=self)

    def stop(self) -> None:
        """Stop the ports, because a signal came while it is captured what they send."""
        if self.end:
            return
        self.end = "interrupted"
        if self.is_started:
            self.stop_ports(self._probe)
            self._look()

    def is_wanted(self) -> bool:
        """Start when the capture does; return whether it is to go on: until frames that were sent have had time to come."""
        if not self.is_started and not self.end:
            self.start_all()
        if not self.end and time.monotonic() < self._look_due_s:
            return True  # A look takes a millisecond, in which blocks wait.
        self._look_due_s = time.monotonic() + CAPTURE_LOOK_S
        if not self.end and self._look():
            return True
        self.end = self.end or "sent"
        now_s = self._probe.link.now_s()
        if self._settles_s is None:
            self._settles_s = now_s + self.patience_s
        return now_s < self._settles_s

    def _look(self) -> bool:
        """Return whether a port still sends."""
        self.check_own()
        for job in self._jobs:
            self._look_at(job)
        self._ended_ns = self.look_at_clock()
        if self._show:
            self._show(self._seen())
        return any(job.state != TransmitState.IDLE for job in self._jobs)

    def _look_at(self, job: StreamedPort[FiguresT]) -> None:
        """Keep how far a port and its stream are."""
        assert self._streamer
        number = job.port.number
        job.sent = self._streamer.state(number)  # First: what came too late is counted before it leaves.
        job.state, job.frames, is_up = job.port.transmit.look()
        if not is_up and job.state != TransmitState.IDLE:
            self.lose_link(f"port {number}", f"{job.frames} frames had been sent")

    def _seen(self) -> StreamLook:
        return StreamLook(
            {job.port.number: job.frames for job in self._jobs},
            {job.port.number: job.asked for job in self._jobs},
            {job.port.number: job.sent.underruns for job in self._jobs},
            {job.port.number: job.sent.resent for job in self._jobs},
        )

    # End ------------------------------------------------------------------------------------------

    def stop_ports(self, probe: RunDevice) -> bool:
        """Stop all ports, as of `PortRun`, and close their sessions."""
        was_running = super().stop_ports(probe)
        for job in self._jobs:
            if job.port.sends_for is self:
                job.ring.close()
        return was_running

    def _result(self) -> StreamedResult[FiguresT]:
        captured, was_stopped = self._captured, self.end != "sent"
        ports = tuple(self.figures_of(job) for job in self._jobs)
        notes = [*self.all_notes(), *[f"{self.end} before its end"] * (self.end in ("interrupted", "stopped"))]
        notes += [f"port {one.port}: {note}" for one in ports for note in one.notes(was_stopped)]
        notes += captured.failed if captured else ()
        if captured and not captured.is_complete:
            notes.append("the capture is incomplete: liteprobe capture says what is counted where")
        is_complete = not was_stopped and all(one.is_whole for one in ports)
        clock = self.clock
        most_ns = max((one.known_delays.most_ns or 0 for one in ports if one.known_delays), default=0)
        return StreamedResult(
            ports,
            duration_s=(self._ended_ns - self._began_ns) / 1e9,
            end=self.end,
            is_complete=is_complete and (captured is None or captured.is_complete),
            clock_state=clock.state,
            uncertainty_ns=self._probe.timebase.delay_bound_ns(most_ns, clock),
            capture=captured,
            notes=(*notes, *clock.notes),
        )


def target_of(probe: RunDevice, patience_s: float | None) -> Target:
    """Return where words go to; UsageError when the link has no way for them."""
    link = probe.link
    address, device = link.replay_address(), link.replay_device()
    if address is not None:
        pace = Pace(link.silence_s if patience_s is None else patience_s, link.replay_flight, link.replay_timeout_s)
        return UdpTarget(*address, pace)
    if device is not None and "replay_dma_filled0" in probe.registers.names:
        return DmaTarget(device, tuple(PortAddresses.of(probe.registers, port.number) for port in probe.ports))
    raise UsageError(
        f"what is replayed is streamed by UDP port {REPLAY_PORT} of the probe, or over PCIe where its gateware has a DMA reader, "
        f"and {probe.url} is another way to it: connect the probe's management port, and give --probe etherbone://ADDRESS"
    )
