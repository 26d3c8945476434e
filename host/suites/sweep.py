# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sweeps: one program of trains after the other through one probe, or through several at once."""

import multiprocessing
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.analysis import arrivals, summary, truth
from liteprobe.host.analysis.capacity import Capacity, together
from liteprobe.host.analysis.rows import Row, RowsResult
from liteprobe.host.analysis.summary import TrainResult
from liteprobe.host.base import interrupt
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.line import GIGABIT, Line
from liteprobe.host.base.validate import validated
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.probe import Probe
from liteprobe.host.traffic.train import (
    RATE_TOLERANCE,
    TrainProgram,
    interval_ns_for_rate,
    schedule,
)

Progress = Callable[[int, int], None]  # Frames sent, frames to send.
Take = Callable[["Sweep"], None]


@dataclass(frozen=True, repr=False)
class Sweep(RowsResult):
    """Measurements of one probe: all of `Result`; its parts are the programs, by length and count, like ``1514x100``."""

    name: str  # What was measured, for headings.
    url: str  # The probe.
    probe: dict[str, int | float | str | bool]  # What the probe said of itself.
    results: list[TrainResult]  # In the order of the programs.
    rows: list[Row]  # Their figures (``summary.row``); with ``wire`` and ``pins`` where the simulation wrote its truth.
    #: What the pairs of each program alone tell; the rows have what all tell together.
    alone: list[Capacity] = field(default_factory=list)

    @property
    def parts(self) -> dict[str, Row]:
        """Rows by length, or by length and count where there are several."""
        is_plain = len({row["count"] for row in self.rows}) < 2
        names = [str(row["length"]) if is_plain else f"{row['length']}x{row['count']}" for row in self.rows]
        if len(set(names)) < len(names):
            names = [f"{name} #{number}" for number, name in enumerate(names, 1)]
        return dict(zip(names, self.rows, strict=True))

    @property
    def delays_by_part(self) -> dict[str, NDArray[np.int64]]:
        """Delays of the packets that count, by program (ns)."""
        found = zip(self.parts, self.results, strict=True)
        return {name: one.delays_ns for name, one in found}

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        return {"name": self.name, "url": self.url, "probe": self.probe, "trains": [dict(row) for row in self.rows]}


@dataclass(frozen=True, repr=False)
class Sweeps(RowsResult):
    """Several sweeps as one result: its parts are named by sweep and program, like ``there.1514``."""

    by_name: Mapping[str, Sweep]

    @property
    def parts(self) -> dict[str, Row]:
        """Rows by sweep and program."""
        return {f"{sweep}.{name}": row for sweep, one in self.by_name.items() for name, row in one.parts.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        return {name: one.to_dict() for name, one in self.by_name.items()}


@validated
@dataclass(frozen=True)
class SweepRequest:
    """A sweep that is still to be run."""

    name: str  # What is measured, for headings.
    url: str  # The probe.
    programs: tuple[TrainProgram, ...]  # What to send, one after the other.
    map: Path | None = None  # Register map; None: the one at hand whose hash the probe confirms.
    transmit: int = 0  # Port that sends.
    receive: int | None = None  # Port that measures; None: the one that the wire leads to.
    steal: bool = False  # Take the probe from another host that has it.
    #: T_max of RFC 7680: how long the probe listens after the last frame was due, and the greatest delay that counts;
    #: None: as long as its link listens by itself.
    waiting_time_ns: int | None = None
    truth: Path | None = None  # Where the simulation writes its truth; also an option of ``url``.
    theory_bps: float | None = None  # Rate at which theory says that the trains arrive; None: as they were sent.
    #: Slope (ns/B) and intercept (ns) that theory says of the delay; None: it says nothing.
    theory_delay: tuple[float, float] | None = None
    #: What the narrowest link of the simulated wire carries (b/s), for what ``truth`` tells; None: not known.
    wire_bps: float | None = None

    @property
    def total(self) -> int:
        """Frames of all programs."""
        return sum(program.total for program in self.programs)


@validated
def programs_for(
    lengths: Iterable[int],
    counts: Iterable[int],
    template: TrainProgram,
    rate_bps: float | None = None,
    line: Line = GIGABIT,
) -> tuple[TrainProgram, ...]:
    """Return one program for each length and count, all else as in ``template``.

    ``rate_bps`` (on the wire, overhead included, up to that of ``line``) sets the interval of each length; None: as in
    ``template``.
    """
    made = []
    for length, count in product(lengths, counts):
        interval_ns = template.interval_ns if rate_bps is None else interval_ns_for_rate(length, rate_bps, line)
        made.append(replace(template, length=length, count=count, interval_ns=interval_ns))
    return tuple(made)


def check_programs(programs: Iterable[TrainProgram], line: Line = GIGABIT) -> None:
    """Raise UsageError, naming the fix, for what no probe of such a line can send, before one is opened.

    What hangs on the rate of the probe's clock (200 ppm about the line rate) is left to the probe.
    """
    for program in programs:
        least_ns = line.octet_ns * program.slot_ticks * (1 - RATE_TOLERANCE)
        if program.interval_ns is None or program.interval_ns < least_ns:
            schedule(program, line.increment, line)


def run(
    request: SweepRequest, progress: Progress | None = None, probe: Probe | None = None, take: Take | None = None
) -> Sweep:
    """Run a sweep, on ``probe`` if it is open already, and return what was measured.

    ``take`` is given the sweep after each program, with what was measured so far.
    """
    if probe is None:
        with Probe(request.url, request.map, request.steal) as opened:
            return run(request, progress, opened, take)
    report = progress or (lambda sent, total: None)
    if request.waiting_time_ns is not None:
        probe.link.arrival_timeout_s = request.waiting_time_ns / 1e9
    sweep = Sweep(request.name, request.url, {}, [], [])
    try:
        _run_all(request, report, probe, sweep, take)
    finally:
        with suppress(ProbeError):  # Of a probe that fails, what it measured before counts.
            sweep.probe.update(probe.info(), arrival_timeout_s=probe.link.arrival_timeout_s)
    return sweep


def _run_all(request: SweepRequest, report: Progress, probe: Probe, sweep: Sweep, take: Take | None) -> None:
    """Run the programs one after the other; ``sweep`` grows."""
    done = 0
    for program in request.programs:

        def count(sent: int, total: int, before: int = done) -> None:
            report(before + sent, request.total)

        try:
            _append(sweep, probe.train(program, request.transmit, request.receive, count), request, take)
        except interrupt.Interrupted as end:
            for result in end.results:
                _append(sweep, result, request, take)
            raise
        done += program.total
        report(done, request.total)
    if request.truth is not None and isinstance(probe.link, SimLink):
        probe.link.sync()
        _add_truth(sweep.rows, sweep.results, request, probe)


def _append(sweep: Sweep, result: TrainResult, request: SweepRequest, take: Take | None) -> None:
    """Put a result and its figures into a sweep."""
    sweep.results.append(result)
    row = summary.row(result, request.waiting_time_ns)
    sweep.rows.append(row)
    sweep.alone.append(Capacity(**row["capacity"]))
    lengths = [each.program.length for each in sweep.results]
    for each, known in zip(sweep.rows, together(list(zip(lengths, sweep.alone, strict=True))), strict=True):
        each["capacity"] = known.figures()
    _add_theory(sweep.rows[-1], request)
    if take:
        take(sweep)


def run_together(requests: Sequence[SweepRequest], progress: Callable[[int, int, int], None]) -> list[Sweep]:
    """Run sweeps at once, each in a process of its own, so that simulations take a core each.

    ``progress``: called with the number of the request, the frames sent and the frames to send. Raises ProbeError what
    the first sweep that failed raised; the others are ended.
    """
    context = multiprocessing.get_context("spawn")
    pipes: dict[Connection, int] = {}
    workers = []
    found: dict[int, Sweep] = {}
    try:
        for number, request in enumerate(requests):
            ours, theirs = context.Pipe(duplex=False)
            worker = context.Process(target=_work, args=(request, theirs), daemon=True)
            interrupt.start_worker(worker)
            theirs.close()
            workers.append(worker)
            pipes[ours] = number
        while len(found) < len(requests):
            for pipe in wait(list(pipes)):
                assert isinstance(pipe, Connection)
                _take(pipe, pipes, found, progress)
    finally:
        for worker in workers:
            if len(found) < len(requests):
                worker.kill()  # Its simulation ends with its input.
            worker.join()
    return [found[number] for number in range(len(requests))]


def _take(
    pipe: Connection, pipes: dict[Connection, int], found: dict[int, Sweep], progress: Callable[[int, int, int], None]
) -> None:
    """Take one message of a worker."""
    number = pipes[pipe]
    try:
        message = pipe.recv()
    except EOFError:
        raise ProbeError("a sweep ended without a result: run it again, alone, with 'liteprobe train'") from None
    if isinstance(message, Sweep):
        found[number] = message
        del pipes[pipe]
    elif isinstance(message, BaseException):
        raise message
    else:
        progress(number, *message)


def _work(request: SweepRequest, pipe: Connection) -> None:
    """Run a sweep in its own process: progress, then the result or the error, go through the pipe."""
    interrupt.be_worker()
    try:
        pipe.send(run(request, lambda sent, total: pipe.send((sent, total))))
    except ProbeError as error:
        pipe.send(ProbeError(str(error), error.exit_code))
    except BrokenPipeError:
        pass  # Who wanted it was killed.


def _add_theory(row: Row, request: SweepRequest) -> None:
    """Put beside a row what theory says of this path."""
    if request.theory_bps is not None:
        row["theory_bps"] = request.theory_bps
    if request.theory_delay is not None:
        slope, intercept = request.theory_delay
        row["theory_owd_ns"] = intercept + slope * row["length"]


def _add_truth(rows: list[Row], results: list[TrainResult], request: SweepRequest, probe: Probe) -> None:
    """Put beside each row what the wire did, and what the times at the pins make of the stamps."""
    assert request.truth is not None
    receive = request.receive
    if receive is None:
        receive = probe.link.receive_port(request.transmit, len(probe.ports))
    table = truth.read(request.truth)
    found = truth.programs(table, request.transmit, receive, [result.sent for result in results], probe.line)
    for row, result, true in zip(rows, results, found, strict=True):
        program, arrived = result.program, arrivals.packets(result, request.waiting_time_ns)
        deviation_ns = truth.deviations_ns(arrived.sequence, arrived.owd_ns, true)
        if not arrivals.has_all_records(result):
            deviation_ns = deviation_ns[:0]
        row["wire"] = {"capacity_bps": request.wire_bps, **truth.wire_figures(true)}
        row["pins"] = truth.pin_figures(true, program.count, program.length, deviation_ns)
