# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends streams for hours and says what went wrong when: soak tests, and tests of bit errors (BERT) with a confidence.

A run is sent in segments, each kept as it ends; between two of them is a pause of some milliseconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import ceil, log
from typing import Any

from liteprobe.cores.formats import OVERHEAD, PAYLOAD_MIN, TICK_NS
from liteprobe.host.analysis.columns import Column, Columns, time_text
from liteprobe.host.analysis.confidence import poisson_bounds
from liteprobe.host.analysis.result import PartFigures
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.probe_url import is_simulated
from liteprobe.host.base.validate import validated
from liteprobe.host.measure.percentiles import Bounds
from liteprobe.host.run.figures import TrafficLook
from liteprobe.host.suites.suite import Suite, SuiteLook, SuiteRequest, SuiteResult, Verdict
from liteprobe.host.suites.trials import Offer, SuitePlan, SuiteStep, Trial
from liteprobe.host.traffic.document import write_document
from liteprobe.host.traffic.load import share_of
from liteprobe.host.traffic.stream import Stream

SEGMENT_S = 60.0
USUAL_S = (3600.0, 60.0)  # The whole, and a segment of it.
SIMULATED_S = (0.02, 0.005)
BLOCK_S = 1.0
BLOCKS = 50  # Of a segment that has fewer seconds.
EVENTS_SHOWN = 20


def usual_s(url: str) -> tuple[float, float]:
    """Return how long the whole and a segment are on the probe of a URL, where nobody says it (s)."""
    return SIMULATED_S if is_simulated(url) else USUAL_S


@validated
@dataclass(frozen=True)
class SoakRequest(SuiteRequest):
    """Says what is sent, and for how long; with ``ber`` it is a test of bit errors, and nothing else is judged.

    Raises
    ------
    UsageError
        When a stream has a count, or is to be checked for bit errors and has no PRBS.
    """

    streams: tuple[Stream, ...]
    seconds: float
    segment_s: float = SEGMENT_S
    is_bert: bool = False
    ber: float | None = None  # The bit error ratio that isn't to be exceeded; None: no bit may be wrong.
    confidence: float = 0.95
    receive: Mapping[int, int] | None = None

    def __post_init__(self) -> None:
        if not self.streams:
            raise UsageError("there is no stream: give one at least")
        for stream in self.streams:
            if stream.count is not None:
                raise UsageError(f"stream '{stream.name}' has a count, and is sent for a time: leave out the count")
            if not stream.probe:
                raise UsageError(
                    f"stream '{stream.name}' has no probe header, so nobody can count it: set probe to true"
                )
            if self.is_bert and not stream.has_checked_fill:
                raise UsageError(
                    f"the fill of stream '{stream.name}' can't be checked for bit errors: give it fill prbs, and no stamp in it"
                )
        for name in ("seconds", "segment_s"):
            if not 0 < getattr(self, name) <= 10**8:
                raise UsageError(f"{name} {getattr(self, name):g} is out of range: give more than 0 s")
        if self.ber is not None and not 0 < self.ber < 1:
            raise UsageError(f"a bit error ratio of {self.ber:g} is out of range: give one like 1e-12")
        if not 0 < self.confidence < 1:
            raise UsageError(f"a confidence of {self.confidence:g} is out of range: give more than 0, less than 1")

    @property
    def segments(self) -> list[float]:
        """Time of each segment (s)."""
        count = max(ceil(self.seconds / self.segment_s - 1e-9), 1)
        return [min(self.segment_s, self.seconds - number * self.segment_s) for number in range(count)]

    def plan(self) -> SuitePlan:
        """Return how many segments it takes, and how long."""
        steps = (SuiteStep(f"segment {n}", 1, 1, each) for n, each in enumerate(self.segments, 1))
        return SuitePlan(tuple(steps), what="segments")

    def offer(self, number: int) -> Offer:
        """Return what a segment sends, from 1."""
        seconds = self.segments[number - 1]
        ticks = Fraction(str(seconds)) * 10**9 / TICK_NS
        streams = []
        for stream in self.streams:
            cycle = len(stream.length.cycle or (0,))
            frames = int(ticks * share_of(stream) / (stream.length.mean + OVERHEAD))
            streams.append(replace(stream, count=max(frames // cycle, 1) * cycle))
        block_s = min(BLOCK_S, seconds / BLOCKS)
        return Offer(f"segment {number}", tuple(streams), self.receive, is_sustained=False, block_s=block_s)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data: a run goes on only with the same."""
        return {**asdict(self), "streams": write_document(self.streams), "receive": None}


def bits_needed(ber: float, confidence: float = 0.95) -> float:
    """Return how many bits without an error show that the ratio of errors isn't above ``ber``: 3.0 / BER for 95 %.

    >>> round(bits_needed(1e-9) / 1e9, 3)
    2.996

    Source: Poisson statistics of no event; ITU-T O.201, appendix.
    """
    return -log(1 - confidence) / ber


def seconds_needed(streams: Sequence[Stream], ber: float, confidence: float = 0.95) -> float:
    """Return for how long streams are sent until the slowest of them has sent so many bits of its fill (s)."""
    return max(bits_needed(ber, confidence) / _fill_bps(stream) for stream in streams)


def _fill_bps(stream: Stream) -> float:
    octets = max(float(stream.length.mean) - stream.headers.payload_offset - PAYLOAD_MIN - 4, 1.0)
    slot_s = TICK_NS * (float(stream.length.mean) + OVERHEAD) / 1e9
    return 8 * octets * float(share_of(stream)) / slot_s


# Figures ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SoakEvent:
    """Holds what went wrong with a stream in a while; times are since the start, without the pauses between segments (s)."""

    stream: str
    at_s: float  # The block before was free of errors.
    until_s: float
    lost: int
    bit_errors: int
    is_silent: bool  # Whether nothing came in some of it.

    @property
    def what(self) -> str:
        """Words for what went wrong."""
        said = [f"{self.lost:,} lost"] * bool(self.lost) + [f"{self.bit_errors:,} bit errors"] * bool(self.bit_errors)
        return ", ".join([*said, *["nothing came"] * self.is_silent])

    def words(self) -> str:
        """Return it as a sentence."""
        span = f"{time_text(1e9 * self.at_s)} to {time_text(1e9 * self.until_s)}"
        return f"{span}: {self.stream}: {self.what}"


@dataclass(frozen=True)
class SoakStream(PartFigures):
    """Holds what came of a stream in all segments."""

    name: str
    sent: int
    received: int
    lost: int
    duplicated: int
    reordered: int
    late: int
    bit_errors: int | None  # In good frames; None: its fill isn't PRBS.
    damaged_bit_errors: int  # In frames with a bad FCS, which count as lost.
    checked_bits: int
    seconds: float
    error_free_s: float  # In blocks without an event.
    first_error_s: float | None  # When the block of the first one began; None: there was none.
    events: int
    least_ns: float | None
    mean_ns: float | None
    most_ns: float | None
    bit_error_ratio: Bounds | None  # With the confidence that was asked for, each end; None: no bits were checked.
    verdict: str
    reason: str

    @property
    def loss_ratio(self) -> float | None:
        """Lost over sent."""
        return self.lost / self.sent if self.sent else None

    @property
    def delay_figures(self) -> Mapping[str, Any]:
        """Figures of its delays (ns)."""
        return {"least": self.least_ns, "mean": self.mean_ns, "most": self.most_ns}


SOAK_COLUMNS = Columns(
    Column("name", "stream", "Stream"),
    Column("verdict", "verdict", "Verdict"),
    Column("sent", "sent", "Sent"),
    Column("received", "received", "Received"),
    Column("lost", "lost", "Lost", is_fault=True),
    Column("loss_ratio", "", "Loss ratio", 6),
    Column("duplicated", "dup", "Doubled", is_fault=True),
    Column("reordered", "reord", "Reordered", is_fault=True),
    Column("late", "late", "Late", is_fault=True),
    Column("bit_errors", "bit err", "Bit errors", is_fault=True),
    Column("damaged_bit_errors"),
    Column("checked_bits", "bits", "Bits checked"),
    Column("bit_error_ratio"),
    Column("ber", "BER", "Bit error ratio", of=lambda row: _ber_words(row.bit_error_ratio)),
    Column("seconds"),
    Column("events", "events", "Events", is_fault=True),
    Column("first_error_s", "first error s", "First error,\ns", 6),
    Column("error_free_s", "error-free s", "Error-free,\ns", 6),
    Column("least", "", "Least,\nns", of=lambda row: row.least_ns),
    Column("mean", "mean ns", "Mean,\nns", 1, of=lambda row: row.mean_ns),
    Column("most", "most ns", "Greatest,\nns", of=lambda row: row.most_ns),
    Column("reason"),
)


def shown_columns(rows: Sequence[SoakStream], keys: str) -> list[Column]:
    """Return the columns of these that a reader is shown: those of bit errors where bits were checked."""
    found = SOAK_COLUMNS.known(rows, keys, "bit_errors ber first_error_s")
    return [one for one in found if one.key != "checked_bits" or any(row.checked_bits for row in rows)]


def _ber_words(bounds: Bounds | None) -> str | None:
    if bounds is None:
        return None
    return f"< {bounds.most:.2e}" if not bounds.least else f"{bounds.least:.2e} to {bounds.most:.2e}"


@dataclass(frozen=True, repr=False)
class SoakResult(SuiteResult):
    """Holds what came of the run: all of `Result`; its parts are the streams."""

    rows: tuple[SoakStream, ...]
    events: tuple[SoakEvent, ...]

    @property
    def parts(self) -> dict[str, SoakStream]:
        """Streams by name."""
        return {row.name: row for row in self.rows}

    @property
    def outcome(self) -> Verdict:
        """Verdict on all streams: the worst of theirs."""
        return Verdict.of_all((row.verdict for row in self.rows), self.is_complete)

    def __repr__(self) -> str:
        kind = "BERT" if self.request.is_bert else "soak"
        return f"<SoakResult: {kind} {self.outcome.lower()}, {len(self.events)} events{'; incomplete' * (not self.is_complete)}>"

    def figures_dict(self) -> dict[str, Any]:
        """Return its own figures as plain data."""
        return {
            "verdict": str(self.outcome),
            "streams": [SOAK_COLUMNS.document(row) for row in self.rows],
            "events": [asdict(one) for one in self.events],
        }


SoakResult.COLUMNS = Columns(
    *SOAK_COLUMNS.of(
        "sent received lost loss_ratio duplicated reordered late bit_errors checked_bits bit_error_ratio events"
    ),
    *SOAK_COLUMNS.of("least mean most"),
)


def events_of(request: SoakRequest, trials: Sequence[Trial]) -> list[SoakEvent]:
    """Return what went wrong, by the blocks of all segments: blocks with errors that follow one another are one event."""
    found: list[SoakEvent] = []
    for number, stream in enumerate(request.streams):
        at_s, current = 0.0, None
        for block in (block for trial in trials for block in trial.blocks):
            until_s = at_s + block.seconds
            lost, errors = max(block.lost[number], 0), max(block.bit_errors[number], 0)
            is_silent = block.sent[number] > 0 and not block.received[number] and not _is_first(trials, block)
            if lost or errors or is_silent:
                if current:
                    lost, errors, is_silent = (
                        lost + current.lost,
                        errors + current.bit_errors,
                        is_silent or current.is_silent,
                    )
                current = SoakEvent(stream.name, current.at_s if current else at_s, until_s, lost, errors, is_silent)
            elif current:
                found.append(current)
                current = None
            at_s = until_s
        found += [current] if current else []
    return sorted(found, key=lambda one: one.at_s)


def _is_first(trials: Sequence[Trial], block: object) -> bool:
    """Return whether a block is the first of its segment: what it sent may still be on the way."""
    return any(trial.blocks and trial.blocks[0] is block and len(trial.blocks) > 1 for trial in trials)


# The run ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SoakLook(SuiteLook):
    """Says how far a run is, and what was wrong until now, with all streams."""

    lost: int
    bit_errors: int

    @property
    def words(self) -> str:
        """Line that says how far it is."""
        wrong = f"{self.lost:,} lost, {self.bit_errors:,} bit errors"
        return f"segment {self.done + 1} of {self.most}, {time_text(1e9 * self.elapsed_s)}: {wrong}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, without its figures."""
        return {**super().to_dict(), "lost": self.lost, "bit_errors": self.bit_errors}


class Soak(Suite):
    """Sends all segments, and looks for errors: see `Suite`."""

    def run(self) -> SoakResult:
        """Send all of it; raises ProbeError when a link goes down: `result` has what was measured until then."""
        for number in range(1, len(self._request.segments) + 1):
            self._trials.run(self._request.offer(number), -1.0)
            self._rows = list(self.result().rows)
        return self.result(is_complete=True)

    def result(self, is_complete: bool = False) -> SoakResult:
        """Return what was measured until now."""
        done = self._trials.done
        events = events_of(self._request, done)
        rows = [
            _row_of(self._request, number, done, [one for one in events if one.stream == stream.name], is_complete)
            for number, stream in enumerate(self._request.streams)
        ]
        return SoakResult(rows=tuple(rows) if done else (), events=tuple(events), **self._common(is_complete))

    # # #

    def _look(self, offer: Offer, look: TrafficLook) -> None:
        done = self._trials.done
        lost = sum(trial.lost for trial in done) + sum(row.lost or 0 for row in look.rows)
        errors = sum(one.bit_errors for trial in done for one in trial.streams) + sum(
            row.bit_errors or 0 for row in look.rows
        )
        elapsed_s = sum(trial.seconds for trial in done) + look.elapsed_s
        self._show(SoakLook(offer.name, len(done), self._most, elapsed_s, tuple(self._rows), lost, errors))


def _row_of(
    request: SoakRequest, number: int, trials: Sequence[Trial], events: Sequence[SoakEvent], is_complete: bool
) -> SoakStream:
    parts = [trial.streams[number] for trial in trials]
    counts = {
        name: sum(getattr(part, name) for part in parts)
        for name in (
            "sent",
            "received",
            "lost",
            "duplicated",
            "reordered",
            "late",
            "damaged_bit_errors",
            "checked_bits",
        )
    }
    errors = sum(part.bit_errors for part in parts)
    means = [(part.mean_ns, part.received) for part in parts if part.mean_ns is not None and part.received]
    seconds = sum(block.seconds for trial in trials for block in trial.blocks)
    ratio = None
    if counts["checked_bits"]:
        # A frame that is lost had one wrong bit at least, if it is the line that lost it.
        least, most = poisson_bounds(errors + max(counts["lost"], counts["damaged_bit_errors"]), request.confidence)
        ratio = Bounds(least / counts["checked_bits"], min(most / counts["checked_bits"], 1.0))
    reasons = [trial.reason for trial in trials if trial.reason]
    verdict, reason = _judged(request, counts, errors, ratio, events)
    if reasons and verdict is Verdict.PASSED:
        verdict, reason = Verdict.UNKNOWN, reasons[0]
    if not is_complete and verdict is Verdict.PASSED:
        verdict, reason = Verdict.UNKNOWN, "it was ended before its end"
    return SoakStream(
        name=request.streams[number].name,
        **counts,
        bit_errors=errors if counts["checked_bits"] or request.is_bert else None,
        seconds=seconds,
        error_free_s=seconds - sum(one.until_s - one.at_s for one in events),
        first_error_s=events[0].at_s if events else None,
        events=len(events),
        least_ns=min((part.least_ns for part in parts if part.least_ns is not None), default=None),
        mean_ns=sum(mean * count for mean, count in means) / sum(count for _, count in means) if means else None,
        most_ns=max((part.most_ns for part in parts if part.most_ns is not None), default=None),
        bit_error_ratio=ratio,
        verdict=verdict,
        reason=reason,
    )


def _judged(
    request: SoakRequest, counts: Mapping[str, int], errors: int, ratio: Bounds | None, events: Sequence[SoakEvent]
) -> tuple[Verdict, str]:
    """Return the verdict on a stream, and why it isn't passed."""
    if counts["sent"] and not counts["received"]:
        return Verdict.FAILED, "nothing came"
    if request.is_bert and ratio is None:
        return Verdict.UNKNOWN, "no bits were checked"
    if request.is_bert and request.ber is not None and ratio is not None:
        if ratio.most <= request.ber:
            return Verdict.PASSED, ""
        words = f"with {100 * request.confidence:g} % the bit error ratio is"
        if ratio.least > request.ber:
            return Verdict.FAILED, f"{words} above {ratio.least:.2e}"
        needed = bits_needed(request.ber, request.confidence)
        return (
            Verdict.UNKNOWN,
            f"{words} below {ratio.most:.2e} alone: {needed:.3g} bits without an error would show it",
        )
    wrong = {
        "lost": counts["lost"],
        "bit errors": errors,
        "doubled": counts["duplicated"],
        "reordered": counts["reordered"],
    }
    said = [f"{count:,} {name}" for name, count in wrong.items() if count]
    if not said:
        return Verdict.PASSED, ""
    first = f", the first within a block from {time_text(1e9 * events[0].at_s)} on" if events else ""
    return Verdict.FAILED, f"{', '.join(said)}{first}"
