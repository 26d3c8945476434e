# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs trials, of which suites are made: what is offered, what came, and whether that can be believed; each is kept as it ends.

A device with a long queue may pass a short trial that it can't sustain: what it could not forward still waits in it when the trial
ends. So each stream of a trial is sent in parts, one after the other, each measured apart: where the delay grows from part to part,
or frames come more slowly than they are sent, the trial lies. It is run again, longer; if it still lies, it counts as failed.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, inf
from pathlib import Path
from typing import Any, Protocol

from liteprobe.cores.formats import OVERHEAD, STREAM_SLOTS, TICK_NS
from liteprobe.host.analysis.columns import time_text
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.line import GIGABIT
from liteprobe.host.base.output import hold
from liteprobe.host.base.units import exact
from liteprobe.host.base.validate import validated
from liteprobe.host.measure.percentiles import Bounds, Cells
from liteprobe.host.run.figures import NONE_CAME, StreamFigures, TrafficLook, TrafficResult
from liteprobe.host.traffic.document import write_document
from liteprobe.host.traffic.intervals import NOMINAL, head_ticks, is_back_to_back
from liteprobe.host.traffic.load import share_of
from liteprobe.host.traffic.stream import Stream

VALID, LIES = "valid", "lies"
FORMAT, VERSION = "liteprobe-trials", 1
PARTS = 4  # Of a stream, in time.
MEASURED = STREAM_SLOTS - 1  # Streams that each probe's port can measure.
PART_FRAMES = 2  # Of each of them, at least.
START_MOST_NS = 34 * 10**9  # A stream starts no later: the last part of a longer trial is longer than the others.
END_SHARE = 0.4  # Of the trial: parts that make up its end.
GROWTH_MOST = 2e-4  # Of the time: the delay of a trial that lies grows by more; two crystals may be so far apart.
NOISE_NS = 4 * TICK_NS  # A growth of less is none.
LENGTHENED = 4  # Times as long is a trial that lies when it is run again.
CONFORMANT_S = 60.0  # RFC 2544, section 24.
SIMULATED_SPEED = 500  # Seconds of this machine that a second of a simulated probe takes, about.

Progress = Callable[[TrafficLook], None]


class Sent(Protocol):
    """Streams that run, as trials see them: a `Traffic`, or what stands for one."""

    def __enter__(self) -> "Sent": ...

    def __exit__(self, *_: Any) -> None: ...

    def wait(self, show: Progress | None = None) -> None:
        """Wait until all has been sent; look now and then."""

    def result(self) -> TrafficResult:
        """Return what came of them."""


class Sender(Protocol):
    """A probe as trials see it: a `Probe`, or what stands for one."""

    url: str
    port_count: int

    def send(self, streams: Sequence[Stream], receive: Mapping[int, int] | None = None) -> Sent:
        """Start streams."""

    def wait(self, seconds: float) -> None:
        """Let ``seconds`` of the probe's time pass."""


# What is offered --------------------------------------------------------------------------------


@validated
@dataclass(frozen=True)
class Offer:
    """Says what a trial offers: streams with a count each, and which port measures what each port sends."""

    name: str  # For people, and to tell trials of one suite apart: ``throughput 64``.
    streams: tuple[Stream, ...]
    receive: Mapping[int, int] | None = None  # None: the port that the wire leads to.
    #: Whether the device must sustain it: then streams are sent in parts, where they can be, and a queue that fills is found out.
    is_sustained: bool = True
    pause_s: float = 0.0  # After it, at least.
    #: Names of streams that the device may filter: no note is made where nothing of them came.
    filtered: tuple[str, ...] = ()
    block_s: float = 0.0  # What was sent and came in each so many seconds is kept; 0: it isn't.

    def __post_init__(self) -> None:
        endless = [stream.name for stream in self.streams if stream.count is None]
        if endless or not self.streams:
            raise UsageError(
                f"a trial ends by itself: give each stream a count, {' and '.join(endless) or 'and one stream'}"
            )
        if any(stream.line != GIGABIT for stream in self.streams):
            raise UsageError(f"tests of trials are for ports of {GIGABIT} so far: use liteprobe send, or another probe")

    @property
    def seconds(self) -> float:
        """Time for which it is sent (s)."""
        return float(max(_end_ticks(stream) for stream in self.streams) * TICK_NS / 10**9)

    @property
    def key(self) -> dict[str, Any]:
        """Values that tell it from other trials, as plain data."""
        text = json.dumps([write_document(list(self.streams)), sorted((self.receive or {}).items()), self.is_sustained])
        return {"name": self.name, "seconds": self.seconds, "digest": hashlib.sha256(text.encode()).hexdigest()[:16]}

    def longer(self, factor: int) -> "Offer":
        """Return the same for ``factor`` times as long."""
        streams = tuple(replace(one, count=(one.count or 1) * factor) for one in self.streams)
        return replace(self, streams=streams)

    def parts(self) -> list[list[Stream]]:
        """Return the parts of each stream, one after the other on the line; one that can't be parted is its own part."""
        together = max(sum(one.port == port for one in self.streams) for port in {one.port for one in self.streams})
        count = min(PARTS, max(1, MEASURED // together)) if self.is_sustained else 1
        first = min(stream.stream_id for stream in self.streams)
        found, number = [], 0
        for stream in self.streams:
            made = parted(stream, count)
            found.append([replace(one, stream_id=first + number + place) for place, one in enumerate(made)])
            number += len(made)
        return found


def parted(stream: Stream, parts: int) -> list[Stream]:
    """Return a stream in parts, one after the other on the line, each due within a tick of the end of the one before.

    One of bursts or of random intervals or lengths, and one of a few frames, stays whole.
    """
    count, cycle = stream.count or 0, stream.length.cycle
    is_plain = not stream.interval.exponential and stream.interval.burst is None and cycle is not None
    turns = count // len(cycle) if cycle else 0
    if parts < 2 or not is_plain or not cycle or turns < parts * PART_FRAMES:
        return [stream]
    ticks = _interval_ticks(stream)
    most = START_MOST_NS / TICK_NS / float(ticks * count)
    share = min(Fraction(1, parts), Fraction(most / (parts - 1)))
    ends = [int(turns * share * place) * len(cycle) for place in range(parts)] + [count]
    start, found = ceil(exact(stream.start_ns) / TICK_NS), []
    for place, (first, end) in enumerate(pairwise(ends), 1):
        name = f"{stream.name} {place}/{parts}"
        found.append(replace(stream, name=name, count=end - first, start_ns=start * TICK_NS))
        start += ceil((end - first) * ticks)
    return found


def _interval_ticks(stream: Stream) -> Fraction:
    """Return the mean ticks from frame to frame."""
    if is_back_to_back(stream.interval, stream.length):
        return Fraction(stream.length.mean) + OVERHEAD
    return head_ticks(stream.interval, stream.length, NOMINAL) / stream.interval.frames


def _end_ticks(stream: Stream) -> Fraction:
    return exact(stream.start_ns) / TICK_NS + (stream.count or 0) * _interval_ticks(stream)


# What came --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrialPart:
    """Holds what came of a part of a stream."""

    at_s: float  # The middle of it, from the start of the trial.
    seconds: float  # How long it was sent.
    sent: int
    received: int
    lost: int
    mean_ns: float | None  # Of its delays; None: nothing came.
    sent_fps: float | None
    received_fps: float | None  # From the first to the last that came.


@dataclass(frozen=True)
class TrialBlock:
    """Holds what was sent and came within a while of a trial."""

    seconds: float
    sent: tuple[int, ...]  # Frames, of each stream.
    received: tuple[int, ...]
    lost: tuple[int, ...]  # That were missing before the last one that came.
    bit_errors: tuple[int, ...]  # Of the fill, in good frames.


@dataclass(frozen=True)
class TrialStream:
    """Holds what came of a stream of a trial; bounds are lists of the least and the greatest value."""

    name: str
    port: int
    receive: int | None
    asked: int  # Frames.
    sent: int
    received: int
    lost: int
    duplicated: int
    reordered: int
    late: int  # That the tester started after their tick: a fault of it.
    least_ns: float | None
    mean_ns: float | None
    p50_ns: tuple[float, float] | None
    p99_ns: tuple[float, float] | None
    p99_9_ns: tuple[float, float] | None
    most_ns: float | None
    share: float  # Of the line, by what was asked for.
    parts: tuple[TrialPart, ...]
    bit_errors: int = 0  # Of the fill, in good frames.
    damaged_bit_errors: int = 0  # In frames with a bad FCS.
    checked_bits: int = 0  # Of the fill, in good frames.

    @property
    def loss_ratio(self) -> float:
        """Lost over sent."""
        return self.lost / self.sent if self.sent else 0.0

    @property
    def end_parts(self) -> tuple[TrialPart, ...]:
        """Its last parts, about a half of it."""
        total, found = sum(part.seconds for part in self.parts), 0.0
        for number in range(len(self.parts) - 1, -1, -1):
            found += self.parts[number].seconds
            if found >= END_SHARE * total:
                return self.parts[number:]
        return self.parts

    @property
    def growth_ns(self) -> float | None:
        """By how much its mean delay is longer in the last part than in the second one; None: not known."""
        ends = (self._settled.mean_ns, self.parts[-1].mean_ns)
        return None if ends[0] is None or ends[1] is None or len(self.parts) < 2 else ends[1] - ends[0]

    @property
    def trend(self) -> float | None:
        """The growth of its delay over the time in which it grew; None: not known."""
        span_ns = 1e9 * (self.parts[-1].at_s - self._settled.at_s)
        return None if self.growth_ns is None or span_ns <= 0 else self.growth_ns / span_ns

    @property
    def deficit(self) -> float | None:
        """By which part of it frames that came, came more slowly than they were sent, in its end; None: not known."""
        sent_s = came_s = 0.0
        for part in self.end_parts:
            frames = part.received - 1
            if frames < 1 or not part.sent_fps or not part.received_fps or part.sent <= 1:
                return None
            sent_s += (part.sent - 1) / part.sent_fps * frames / (part.sent - 1 - part.lost or 1)
            came_s += frames / part.received_fps
        return 1 - sent_s / came_s if came_s > 0 else None

    @property
    def _settled(self) -> TrialPart:
        return self.parts[1 if len(self.parts) > 2 else 0]


@dataclass(frozen=True)
class Trial:
    """A trial that has ended: what was offered, what came, and whether that can be believed."""

    number: int  # In its suite, from 1.
    key: Mapping[str, Any]  # Of its offer.
    seconds: float  # How long it was sent.
    streams: tuple[TrialStream, ...]
    after_end: int | None  # Frames that came after the first look at which all had been sent; None: nobody looked.
    uncertainty_ns: float  # Bound of the error of one delay.
    verdict: str  # ``valid`` or ``lies``.
    reason: str  # Why it lies.
    notes: tuple[str, ...]  # What the reader must know.
    blocks: tuple[TrialBlock, ...] = ()  # Where they were asked for.

    @property
    def name(self) -> str:
        """Of its offer."""
        return str(self.key["name"])

    @property
    def load(self) -> float:
        """Share of the line that its first stream takes."""
        return self.streams[0].share

    @property
    def sent(self) -> int:
        """Frames of all streams."""
        return sum(one.sent for one in self.streams)

    @property
    def received(self) -> int:
        """Frames that came, of all streams."""
        return sum(one.received for one in self.streams)

    @property
    def lost(self) -> int:
        """Frames that did not come, of all streams."""
        return sum(one.lost for one in self.streams)

    @property
    def loss_ratio(self) -> float:
        """Lost over sent, of the stream that has lost the most."""
        return max((one.loss_ratio for one in self.streams), default=0.0)

    @property
    def is_valid(self) -> bool:
        """Whether it can be believed."""
        return self.verdict == VALID

    @property
    def shown_loss(self) -> float:
        """The loss ratio that a search takes: of a trial that lies, what it would lose with a full queue, if that is more."""
        if self.is_valid:
            return self.loss_ratio
        grown = [value for one in self.streams for value in (one.trend, one.deficit) if value is not None]
        return max([self.loss_ratio, GROWTH_MOST, *(value / (1 + value) for value in grown if value > 0)])

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**asdict(self), "loss_ratio": self.loss_ratio}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "Trial":
        """Return the trial that `to_dict` made plain data of; KeyError or TypeError where it is none."""
        streams = []
        for one in content["streams"]:
            bounds = {name: one[name] and tuple(one[name]) for name in ("p50_ns", "p99_ns", "p99_9_ns")}
            streams.append(TrialStream(**{**one, **bounds, "parts": tuple(TrialPart(**part) for part in one["parts"])}))
        own = {name: value for name, value in content.items() if name not in ("loss_ratio", "kind")}
        names = ("sent", "received", "lost", "bit_errors")
        blocks = [TrialBlock(one["seconds"], *(tuple(one[name]) for name in names)) for one in content["blocks"]]
        own |= {"streams": tuple(streams), "notes": tuple(content["notes"]), "blocks": tuple(blocks)}
        return cls(**own)


def _stream_of(stream: Stream, parts: Sequence[StreamFigures]) -> TrialStream:
    """Return what came of a stream that was sent in parts."""
    latencies = [row.latency for row in parts if row.latency is not None]
    cells = latencies[0].cells.and_those(*(one.cells for one in latencies[1:])) if latencies else Cells.of(())
    came = sum(row.received or 0 for row in parts)
    means = [(row.latency.mean_ns, row.received or 0) for row in parts if row.latency]
    known = [mean * frames for mean, frames in means if mean is not None]
    return TrialStream(
        name=stream.name,
        port=stream.port,
        receive=parts[0].receive,
        asked=stream.count or 0,
        sent=sum(row.sent for row in parts),
        received=came,
        lost=sum(row.lost or 0 for row in parts),
        duplicated=sum(row.duplicated or 0 for row in parts),
        reordered=sum(row.reordered or 0 for row in parts),
        late=sum(row.late or 0 for row in parts),
        least_ns=min((one.least_ns for one in latencies if one.least_ns is not None), default=None),
        mean_ns=sum(known) / came if came and len(known) == len(means) and known else None,
        p50_ns=_pair(cells.percentile(50)),
        p99_ns=_pair(cells.percentile(99)),
        p99_9_ns=_pair(cells.percentile(99.9)),
        most_ns=max((one.most_ns for one in latencies if one.most_ns is not None), default=None),
        share=float(share_of(stream)),
        parts=tuple(_part_of(row) for row in parts),
        bit_errors=sum(row.bit_errors or 0 for row in parts),
        damaged_bit_errors=sum(row.damaged_bit_errors or 0 for row in parts),
        checked_bits=sum(row.checked_bits or 0 for row in parts),
    )


def _part_of(row: StreamFigures) -> TrialPart:
    start, end = exact(row.stream.start_ns) / TICK_NS, _end_ticks(row.stream)
    return TrialPart(
        at_s=float((start + end) / 2 * TICK_NS / 10**9),
        seconds=float((end - start) * TICK_NS / 10**9),
        sent=row.sent,
        received=row.received or 0,
        lost=row.lost or 0,
        mean_ns=row.latency.mean_ns if row.latency else None,
        sent_fps=_middle(row.sent_fps),
        received_fps=_middle(row.received_fps),
    )


def _middle(fps: Bounds | None) -> float | None:
    """Return a rate over a span that is known to a tick: bounds are frames over the longest and the shortest span."""
    return None if fps is None or not fps.least or not fps.most else 2 / (1 / fps.least + 1 / fps.most)


def _pair(bounds: Bounds | None) -> tuple[float, float] | None:
    return None if bounds is None else (float(bounds.least), float(bounds.most))


# Whether it can be believed ---------------------------------------------------------------------


def reason_of(streams: Sequence[TrialStream], after_end: int | None, is_complete: bool, growth_most: float) -> str:
    """Return why a trial can't be believed; empty: it can.

    Parameters
    ----------
    streams : sequence of TrialStream
    after_end : int or None
        Frames that came after all had been sent.
    is_complete : bool
        Whether all that came was measured.
    growth_most : float
        By how much the delay may grow (s a second), or frames come more slowly than they are sent.
    """
    for one in streams:
        if one.sent != one.asked:
            return f"the tester sent {one.sent:,} of {one.asked:,} frames of '{one.name}'"
        if one.late:
            return f"the tester started {one.late:,} frames of '{one.name}' after their tick"
    if not is_complete:
        return "the tester has not measured all that came"
    for one in streams:
        growth_ns, trend, deficit = one.growth_ns, one.trend or 0.0, one.deficit or 0.0
        is_noise = growth_ns is not None and abs(growth_ns) < NOISE_NS
        if max(trend, deficit) > growth_most and not is_noise:
            said = [f"the delay of '{one.name}' grew by {time_text(growth_ns or 0.0)}"] * (trend > 0)
            said += [f"its last frames came {100 * deficit:.3f} % more slowly than they were sent"] * (deficit > 0)
            said += [f"{after_end:,} frames came after the end"] * bool(after_end)
            return f"{', '.join(said)}: a queue fills"
    return ""


# Kept trials ------------------------------------------------------------------------------------


class Journal:
    """Keeps the trials of a suite in a file, a line of JSON each, written to the disk as it ends; another run goes on from it.

    Parameters
    ----------
    path : Path
        The file.
    head : mapping
        What the suite was asked for, as plain data: a run with anything else can't go on from it.
    resume : bool
        Whether to go on with the trials that are there; a last line that is torn is left out. Else there must be no such file.

    Raises
    ------
    UsageError
        When there is nothing to go on from, or it is of another suite; or when there is such a file, and nobody asked to go on.
    """

    def __init__(self, path: Path, head: Mapping[str, Any], resume: bool = False) -> None:
        self.path = path
        self.trials: list[Trial] = []  # Those that were there, and those since.
        self._taken = 0
        self.take: Callable[[TrafficResult], None] | None = (
            None  # Given what came of each trial that is measured, whole.
        )
        if not resume and path.exists() and path.stat().st_size:
            raise UsageError(f"{path} has trials already: go on from them with --resume {path}, or name another file")
        if resume and not path.exists():
            raise UsageError(f"there is no {path} to go on from: leave out --resume, or name the file of the suite")
        self._stream = path.open("r+b" if path.exists() else "w+b")
        hold(
            self._stream.fileno(),
            f"another suite writes to {path}: wait until it has ended, or name another file",
        )
        head = json.loads(json.dumps({"kind": "head", "format": FORMAT, "version": VERSION, **head}))
        lines = self._whole_lines()
        if not lines:
            self._append(head)
        else:
            self._take(head, lines)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    @property
    def kept(self) -> int:
        """Trials that were there and have not been taken yet."""
        return len(self.trials) - self._taken

    def next(self, key: Mapping[str, Any]) -> Trial | None:
        """Return the next trial that was kept; None: there is no more.

        Raises UsageError where it is another one than ``key`` says: the suite would not have come to it.
        """
        if self._taken == len(self.trials):
            return None
        found = self.trials[self._taken]
        if dict(found.key) != dict(key):
            raise UsageError(
                f"trial {found.number} in {self.path} is '{found.name}' of {found.seconds:g} s, not '{key['name']}' of "
                f"{key['seconds']:g} s: it was kept by another version or another suite: begin anew with another file"
            )
        self._taken += 1
        return found

    def keep(self, trial: Trial) -> None:
        """Write a trial to the disk."""
        self._append({"kind": "trial", **trial.to_dict()})
        self.trials.append(trial)
        self._taken = len(self.trials)

    # # #

    def _append(self, content: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(content).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def _whole_lines(self) -> list[bytes]:
        """Return the lines of the file, and cut off a last one that is torn."""
        content = self._stream.read()
        end = content.rfind(b"\n") + 1
        self._stream.seek(end)
        self._stream.truncate(end)
        return content[:end].splitlines()

    def _take(self, head: Mapping[str, Any], lines: Sequence[bytes]) -> None:
        for number, line in enumerate(lines, 1):
            try:
                content = json.loads(line)
                if number == 1:
                    self._check(head, content)
                else:
                    self.trials.append(Trial.of(content))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise UsageError(
                    f"line {number} of {self.path} is not one of a suite's trials: name the right file"
                ) from None

    def _check(self, head: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        if found.get("format") != FORMAT:
            raise ValueError
        for name in dict.fromkeys([*head, *found]):
            if head.get(name) != found.get(name):
                raise UsageError(
                    f"{self.path} was kept with {name} {json.dumps(found.get(name))}, and this is {json.dumps(head.get(name))}: "
                    "go on with the same command, or begin anew with another file"
                )


# Trials -----------------------------------------------------------------------------------------


@validated
@dataclass(frozen=True)
class TrialSettings:
    """Says how trials are run."""

    pause_s: float = 0.0  # After each, of the probe's time (RFC 2544, section 23: 5 s).
    #: By how much the delay may grow in a trial that is believed (s a second).
    growth_most: float = GROWTH_MOST
    lengthened: int = LENGTHENED  # Times as long is a trial that lies when it is run again; 1: it isn't.


class Trials:
    """Runs the trials of a suite, one after the other, or takes them from where they were kept.

    Parameters
    ----------
    probe : Sender
    settings : TrialSettings or None
    journal : Journal or None
        Where they are kept; None: nowhere.
    progress : callable or None
        Given the offer of a trial and each look, while it runs.
    """

    def __init__(
        self,
        probe: Sender,
        settings: TrialSettings | None = None,
        journal: Journal | None = None,
        progress: Callable[[Offer, TrafficLook], None] | None = None,
    ) -> None:
        self.probe, self.settings, self.journal = probe, settings or TrialSettings(), journal
        self._progress = progress or (lambda offer, look: None)
        self.done: list[Trial] = []  # In the order in which they were run.

    def run(self, offer: Offer, loss_most: float = 0.0, during: Callable[[], None] | None = None) -> Trial:
        """Run a trial; one that lies is run again, longer, where it lost no more than ``loss_most``: it seems to pass.

        Returns the last of them. ``during``: called once while it is sent, but not for one that was kept.

        Raises
        ------
        ProbeError
            When a link is down, or the probe fails: trials before it are kept.
        """
        found = self._one(offer, during)
        if not found.is_valid and self.settings.lengthened > 1 and found.loss_ratio <= loss_most:
            found = self._one(offer.longer(self.settings.lengthened))
        return found

    # # #

    def _one(self, offer: Offer, during: Callable[[], None] | None = None) -> Trial:
        key = offer.key
        found = self.journal.next(key) if self.journal else None
        if found is None:
            found = self._measure(offer, key, during)
            if self.journal:
                self.journal.keep(found)
            self.probe.wait(max(self.settings.pause_s, offer.pause_s))
        self.done.append(found)
        return found

    def _measure(self, offer: Offer, key: Mapping[str, Any], during: Callable[[], None] | None) -> Trial:
        parts = offer.parts()
        came_at_end: int | None = None
        blocks = _Blocks(offer, [len(part) for part in parts])

        def show(look: TrafficLook) -> None:
            nonlocal came_at_end, during
            if during and look.is_running:
                act, during = during, None
                act()
            if not look.is_running and came_at_end is None:
                came_at_end = sum(row.received or 0 for row in look.rows)
            blocks.take(look)
            self._progress(offer, look)

        traffic = self.probe.send([one for part in parts for one in part], offer.receive)
        with traffic:
            traffic.wait(show)
            result = traffic.result()
        if self.journal and self.journal.take:
            self.journal.take(result)
        rows = result.parts
        streams = tuple(
            _stream_of(stream, [rows[one.name] for one in of]) for stream, of in zip(offer.streams, parts, strict=True)
        )
        after_end = None if came_at_end is None else max(sum(one.received for one in streams) - came_at_end, 0)
        growth_most = self.settings.growth_most if offer.is_sustained else inf
        reason = reason_of(streams, after_end, result.is_complete, growth_most)
        quiet = tuple(
            f"stream '{part.name}': {NONE_CAME}" for of in parts for part in of if of[0].name.startswith(offer.filtered)
        )
        return Trial(
            number=len(self.done) + 1,
            key=key,
            seconds=offer.seconds,
            streams=streams,
            after_end=after_end,
            uncertainty_ns=result.uncertainty_ns,
            verdict=LIES if reason else VALID,
            reason=reason,
            notes=tuple(one for one in result.notes if not one.startswith(quiet)),
            blocks=blocks.found(streams),
        )


class _Blocks:
    """Parts a trial in time, by looks at it; ``parts``: of each of its streams."""

    def __init__(self, offer: Offer, parts: Sequence[int]) -> None:
        self._block_s, self._seconds = offer.block_s, offer.seconds
        self._ends = list(accumulate(parts))
        self._last_s, self._counts = 0.0, [[0] * 4 for _ in parts]
        self._blocks: list[TrialBlock] = []

    def take(self, look: TrafficLook) -> None:
        if self._block_s and look.is_running and look.elapsed_s - self._last_s >= self._block_s:
            rows = [look.rows[first:end] for first, end in pairwise([0, *self._ends])]
            self._add(look.elapsed_s, [[sum(one) for one in zip(*map(_counts, of), strict=True)] for of in rows])

    def found(self, streams: Sequence[TrialStream]) -> tuple[TrialBlock, ...]:
        """Return all blocks: what is left when all has come is the last one."""
        if self._block_s:
            if self._blocks and self._seconds - self._last_s < self._block_s / 2:  # Too short to be a block.
                last = self._blocks.pop()
                self._last_s -= last.seconds
                taken = zip(last.sent, last.received, last.lost, last.bit_errors, strict=True)
                self._counts = [
                    [a - b for a, b in zip(*both, strict=True)] for both in zip(self._counts, taken, strict=True)
                ]
            counts = [[one.sent, one.received, one.lost, one.bit_errors] for one in streams]
            self._add(max(self._seconds, self._last_s), counts)
        return tuple(self._blocks)

    def _add(self, at_s: float, counts: list[list[int]]) -> None:
        since = [[a - b for a, b in zip(*both, strict=True)] for both in zip(counts, self._counts, strict=True)]
        self._blocks.append(TrialBlock(at_s - self._last_s, *(tuple(of) for of in zip(*since, strict=True))))
        self._last_s, self._counts = at_s, counts


def _counts(row: StreamFigures) -> list[int]:
    return [row.sent, row.received or 0, row.lost or 0, row.bit_errors or 0]


# Words and plans --------------------------------------------------------------------------------


def conformance(seconds: float) -> str:
    """Return what must stand beside figures of trials of ``seconds`` (s); empty: they are as long as RFC 2544 asks.

    >>> conformance(0.02), conformance(60)
    ('20 ms trials: not conformant', '')
    """
    if seconds >= CONFORMANT_S:
        return ""
    size, unit = (1e3, "ms") if seconds < 1 else (1, "s")
    return f"{size * seconds:.6g} {unit} trials: not conformant"


@dataclass(frozen=True)
class SuiteStep:
    """A part of a suite before it is run: so many trials of so many seconds, as far as that can be said."""

    name: str
    #: ``least``, ``most``: trials; a search takes as many as it needs.
    least: int
    most: int
    seconds: float  # Of each.


@dataclass(frozen=True)
class SuitePlan:
    """Says how many trials a suite takes, and how long: before anything is sent.

    >>> plan = SuitePlan((SuiteStep("throughput", 70, 98, 60.0),), pause_s=7.0)
    >>> plan.most, plan.words()
    (98, "70 to 98 trials, 1 h 18 min to 1 h 49 min of the probe's time")
    """

    steps: tuple[SuiteStep, ...]
    pause_s: float = 0.0  # After each trial.
    shorter: tuple[str, ...] = ()  # What would make it shorter, a sentence each.
    what: str = "trials"  # Or segments.

    @property
    def least(self) -> int:
        """Trials, at least."""
        return sum(step.least for step in self.steps)

    @property
    def most(self) -> int:
        """Trials, at most."""
        return sum(step.most for step in self.steps)

    @property
    def seconds(self) -> tuple[float, float]:
        """Time that they take, at least and at most (s of the probe's)."""
        each = [(step.least, step.most, step.seconds + self.pause_s) for step in self.steps]
        return sum(least * one for least, _, one in each), sum(most * one for _, most, one in each)

    def words(self, is_simulated: bool = False) -> str:
        """Return how many trials, and how long, in words; ``is_simulated``: in time of this machine, too."""
        least, most = self.seconds
        trials = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        said = f"{trials} {self.what}, {_span(least, most)} of the probe's time"
        if is_simulated:
            said += f", about {_span(SIMULATED_SPEED * least, SIMULATED_SPEED * most)} of this machine's, which simulates it"
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "least": self.least,
            "most": self.most,
            "seconds": list(self.seconds),
            "steps": [asdict(one) for one in self.steps],
        }


def _span(least_s: float, most_s: float) -> str:
    ends = list(dict.fromkeys((lasting(least_s), lasting(most_s))))
    return " to ".join(ends)


def lasting(seconds: float) -> str:
    """Return how long something takes, in words.

    >>> lasting(0.02), lasting(75), lasting(144_000)
    ('20 ms', '1 min 15 s', '40 h 0 min')
    """
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
