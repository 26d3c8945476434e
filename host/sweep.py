# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sweeps: one program of trains after the other through one probe, or through several at once."""

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from liteprobe.host.analysis import summary, truth
from liteprobe.host.errors import ProbeError
from liteprobe.host.link.sim import SimLink
from liteprobe.host.probe import Probe
from liteprobe.host.train import (
    INCREMENT_ONE,
    RATE_TOLERANCE,
    TrainProgram,
    TrainResult,
    check,
    interval_ns_for_rate,
    schedule,
)

Row = dict[str, Any]
Progress = Callable[[int, int], None]  # Frames sent, frames to send.

PAPER_LENGTHS = (60, 64, 128, 256, 512, 1024, 1514)  # Ruiz et al. 2015, Table 1 (octets without FCS).
PAPER_COUNTS = (100, 1000)
PAPER_REPEATS = 10


@dataclass(frozen=True)
class Sweep:
    """What one probe measured.

    Attributes
    ----------
    name, url : str
        What was measured, for headings; the probe.
    probe : dict
        What the probe said of itself.
    results : list of TrainResult
        In the order of the programs.
    rows : list of dict
        Their figures (``summary.row``); with ``truth`` where the simulation wrote one.
    """

    name: str
    url: str
    probe: Row
    results: list[TrainResult]
    rows: list[Row]


@dataclass(frozen=True)
class SweepRequest:
    """A sweep that is still to be run.

    Attributes
    ----------
    name, url : str
        What is measured, for headings; the probe.
    programs : tuple of TrainProgram
        What to send, one after the other.
    map : Path or None
        Register map; None: the one at hand whose hash the probe confirms.
    transmit, receive : int or None
        Ports; receive None: the one that the wire leads to.
    waiting_time_ns : int or None
        T_max of RFC 7680: how long the probe listens after the last frame was due, and the greatest delay that
        counts; None: as long as its link listens by itself.
    truth : Path or None
        Where the simulation writes its truth; also an option of ``url``.
    theory_bps : float or None
        Rate at which theory says that the trains arrive; None: as they were sent.
    theory_delay : (float, float) or None
        Slope (ns/B) and intercept (ns) that theory says of the delay; None: it says nothing.
    """

    name: str
    url: str
    programs: tuple[TrainProgram, ...]
    map: Path | None = None
    transmit: int = 0
    receive: int | None = None
    waiting_time_ns: int | None = None
    truth: Path | None = None
    theory_bps: float | None = None
    theory_delay: tuple[float, float] | None = None

    @property
    def total(self) -> int:
        """Frames of all programs."""
        return sum(program.total for program in self.programs)


def programs_for(
    lengths: Iterable[int], counts: Iterable[int], template: TrainProgram, rate_bps: float | None = None
) -> tuple[TrainProgram, ...]:
    """Return one program for each length and count, all else as in ``template``.

    ``rate_bps`` (on the wire, overhead included) sets the interval of each length; None: as in ``template``.
    """
    made = []
    for length, count in product(lengths, counts):
        interval_ns = template.interval_ns if rate_bps is None else interval_ns_for_rate(length, rate_bps)
        made.append(replace(template, length=length, count=count, interval_ns=interval_ns))
    return tuple(made)


def check_programs(programs: Iterable[TrainProgram]) -> None:
    """Raise UsageError, naming the fix, for what no probe can send, before one is opened.

    What hangs on the rate of the probe's clock (200 ppm about the line rate) is left to the probe.
    """
    for program in programs:
        check(program)
        is_near = program.interval_ns is not None and program.interval_ns >= 8 * program.slot_ticks * (
            1 - RATE_TOLERANCE
        )
        if not is_near:
            schedule(program, 8 * INCREMENT_ONE)


def run(request: SweepRequest, progress: Progress | None = None, probe: Probe | None = None) -> Sweep:
    """Run a sweep, on ``probe`` if it is open already, and return what was measured."""
    if probe is None:
        with Probe(request.url, request.map) as opened:
            return run(request, progress, opened)
    report = progress or (lambda sent, total: None)
    if request.waiting_time_ns is not None:
        probe.link.arrival_timeout_s = request.waiting_time_ns / 1e9
    results, done = [], 0
    for program in request.programs:

        def count(sent: int, total: int, before: int = done) -> None:
            report(before + sent, request.total)

        results.append(probe.train(program, request.transmit, request.receive, count))
        done += program.total
        report(done, request.total)
    rows = [summary.row(result, request.waiting_time_ns) for result in results]
    for row in rows:
        _add_theory(row, request)
    if request.truth is not None and isinstance(probe.link, SimLink):
        probe.link.sync()
        _add_truth(rows, results, request, probe)
    return Sweep(
        request.name, request.url, {**probe.info(), "arrival_timeout_s": probe.link.arrival_timeout_s}, results, rows
    )


def run_together(requests: Sequence[SweepRequest], progress: Callable[[int, int, int], None]) -> list[Sweep]:
    """Run sweeps at once, each in a process of its own, so that simulations take a core each.

    Parameters
    ----------
    requests : sequence of SweepRequest
        What to run.
    progress : callable
        Called with the number of the request, the frames sent and the frames to send.

    Raises
    ------
    ProbeError
        What the first sweep that failed raised; the others are ended.
    """
    context = multiprocessing.get_context("spawn")
    pipes: dict[Connection, int] = {}
    workers = []
    found: dict[int, Sweep] = {}
    try:
        for number, request in enumerate(requests):
            ours, theirs = context.Pipe(duplex=False)
            worker = context.Process(target=_work, args=(request, theirs), daemon=True)
            with _deaf_to_interrupts():
                worker.start()
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
                worker.terminate()  # Its simulation ends with its input.
            worker.join()
    return [found[number] for number in range(len(requests))]


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Have processes that start here ignore Ctrl-C: it reaches all of them, and this one ends the others."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
    try:
        pipe.send(run(request, lambda sent, total: pipe.send((sent, total))))
    except ProbeError as error:
        pipe.send(ProbeError(str(error), error.exit_code))


def _add_theory(row: Row, request: SweepRequest) -> None:
    """Put beside a row what theory says of this path."""
    if request.theory_bps is not None:
        row["theory_bps"] = request.theory_bps
    if request.theory_delay is not None:
        slope, intercept = request.theory_delay
        row["theory_owd_ns"] = intercept + slope * row["length"]


def _add_truth(rows: list[Row], results: list[TrainResult], request: SweepRequest, probe: Probe) -> None:
    """Put beside each row what was at the pins."""
    assert request.truth is not None
    receive = request.receive
    if receive is None:
        receive = probe.link.receive_port(request.transmit, len(probe.ports))
    table = truth.read(request.truth)
    found = truth.programs(table, request.transmit, receive, [result.sent for result in results])
    for row, result, true in zip(rows, results, found, strict=True):
        arrived = summary.packets(result, request.waiting_time_ns)
        program = result.program
        row["truth"] = truth.figures(arrived.sequence, arrived.owd_ns, program.count, program.length, true)
