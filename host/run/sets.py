# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs programs of configuration sets: open, fill the rings, start all ports in one tick, stream meanwhile, count."""

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from liteprobe.cores.formats import NO_SEQUENCE, Part, TransmitState
from liteprobe.host.errors import ProbeError, UsageError
from liteprobe.host.interrupt import Interrupted
from liteprobe.host.replay.datagrams import Session
from liteprobe.host.replay.streamer import Streamer
from liteprobe.host.run.port import Port, check_own
from liteprobe.host.run.replay import LOOK_S, PRIME_S, PRIME_WORDS, ReplayDevice, target_of
from liteprobe.host.run.replay_figures import Sent
from liteprobe.host.run.replay_port import ReplayPort
from liteprobe.host.run.routes import check_ports
from liteprobe.host.run.sets_port import SetsCounts, SetsPort
from liteprobe.host.run.start import await_ready, check_links, start_together
from liteprobe.host.run.streamed import look_at
from liteprobe.host.traffic.sets import Sets


@dataclass(frozen=True)
class SetsOptions:
    """How sets are sent.

    Parameters
    ----------
    count : int or None
        Frames at most, repeated ones included; None: until the sets end.
    prime_words : int
        Words that are in the ring before it starts, or all.
    patience_s : float
        Without an answer for so long, the probe is gone.
    """

    count: int | None = None
    prime_words: int = PRIME_WORDS
    patience_s: float = 3.0


@dataclass(frozen=True)
class PortSets:
    """What a port sent: frames in all, those that started late and the first of them, what it counts, how its stream went."""

    port: int
    frames: int
    late: int
    first_late: int | None
    counts: SetsCounts
    sent: Sent


@dataclass(frozen=True)
class SetsResult:
    """What came of sets; ``end``: ``sent``, ``stopped`` or ``interrupted``.

    ``is_complete``: all sets were sent, and none of them was waited for.
    """

    ports: tuple[PortSets, ...]
    duration_s: float
    end: str
    is_complete: bool
    notes: tuple[str, ...]


@dataclass
class Job:
    """Sets on their port."""

    port: Port
    sets: Sets
    transmit: SetsPort
    ring: ReplayPort
    session: Session
    state: TransmitState = TransmitState.IDLE
    frames: int = 0
    sent: Sent = field(default_factory=lambda: Sent(0, 0, 0, 0, False))


Show = Callable[[dict[int, int]], None]


class SetsRun:
    """One start of sets on one port or several, all in the same tick.

    Parameters
    ----------
    probe : ReplayDevice
    sets : Sets or mapping of int to Sets
        By port, all from the same tick; one alone is sent from the port of its stream. Other processes go through them: a script
        begins with ``if __name__ == "__main__":``.
    options : SetsOptions or None
    show : callable or None
        Given the frames that were sent, by port, now and then.

    Raises
    ------
    UsageError
        When the probe, its link or a port can't.
    """

    def __init__(
        self,
        probe: ReplayDevice,
        sets: Sets | Mapping[int, Sets],
        options: SetsOptions | None = None,
        show: Show | None = None,
    ) -> None:
        self._probe, self._options, self._show = probe, options or SetsOptions(), show
        given = {sets.stream.port: sets} if isinstance(sets, Sets) else sets
        probe.need(Part.SETS)
        if not given:
            raise UsageError("there are no sets to send: give some")
        tables = [one.table.tolist() for one in given.values() if "index" in one.fields]
        if any(table != tables[0] for table in tables):
            raise UsageError(
                "sets of several ports have different tables, the probe has one: give all of them the same"
            )
        check_ports([(probe, number) for number in given], "transmit", False)
        self._target = target_of(probe, self._options.patience_s)
        registers = probe.registers
        self._jobs = [
            Job(
                probe.ports[number],
                one,
                SetsPort(registers, number),
                ReplayPort(registers, number),
                Session(number, secrets.randbelow(0xFFFF) + 1, 0),
            )
            for number, one in sorted(given.items())
        ]
        self._began_ns = self._ended_ns = 0
        self._end = ""

    def run(self) -> SetsResult:
        """Send all, and return what came of it.

        Raises
        ------
        ProbeError
            When a link is down, nothing answers or a set is wrong: all ports have stopped then.
        KeyboardInterrupt
            Passed on after the ports were stopped; Interrupted has the result until then.
        """
        probe, ports = self._probe, [job.port for job in self._jobs]
        check_links((probe, port, f"port {port.number}") for port in ports)
        try:
            self._open()
            with Streamer(self._target, {job.session: job.sets for job in self._jobs}) as streamer:
                try:
                    self._prime(streamer)
                    self._began_ns = self._ended_ns = probe.timebase.now_ns
                    start_together(probe, ports, 0.0)
                    while self._look(streamer):
                        probe.link.wait(LOOK_S)
                    self._end = "sent"
                finally:
                    self._halt()
        except Interrupted as end:
            self._end = "interrupted"
            with suppress(ProbeError):
                end.results = [self._result()]
            raise
        return self._result()

    # # #

    def _open(self) -> None:
        """Open the sessions under this host's lease, and load what is the same in all frames."""
        probe, options = self._probe, self._options
        probe.registers.own()
        for job in self._jobs:
            job.port.halt(probe.timebase)  # What was detached may still run.
            job.port.sends_for = self
            job.session = Session(job.port.number, job.session.number, probe.link.lease & 0xFFFF)
            job.transmit.clear()
            job.ring.open(job.session.number, 1, options.prime_words)
            job.transmit.load_sets(job.sets, probe.timebase.increment, options.count)
            job.transmit.arm_sets()

    def _prime(self, streamer: Streamer) -> None:
        """Wait until the rings are full, or hold all: then less is enough for the probe, too."""
        ends_s = time.monotonic() + PRIME_S
        waiting = list(self._jobs)
        while waiting:
            if time.monotonic() > ends_s:
                raise ProbeError(
                    f"the rings of the probe were not full after {PRIME_S:g} s: find out what makes the network to it this slow, "
                    "or what the sets wait for"
                )
            for job in list(waiting):
                state = streamer.state(job.port.number)
                if state.is_done and state.accepted < self._options.prime_words:
                    self._probe.registers.write(f"port{job.port.number}_replay_prime", state.accepted)
                if state.is_done or state.accepted >= self._options.prime_words:
                    waiting.remove(job)
            self._probe.link.wait(LOOK_S)
        await_ready(self._probe, [job.port for job in self._jobs], "its first frames")

    def _look(self, streamer: Streamer) -> bool:
        """Return whether a port still sends."""
        check_own(self, [job.port for job in self._jobs], [])
        look_at(self._jobs, streamer, ("sent", "left", "send"))
        self._ended_ns = self._probe.timebase.now_ns
        if self._show:
            self._show({job.port.number: job.frames for job in self._jobs})
        return any(job.state != TransmitState.IDLE for job in self._jobs)

    def _halt(self) -> None:
        """Stop all ports, whatever state they are in, and close their sessions."""
        with suppress(ProbeError):
            for job in self._jobs:
                if job.port.sends_for is self:
                    was_running = job.port.halt(self._probe.timebase)
                    self._end = "stopped" if was_running and not self._end else self._end
                    job.ring.close()

    def _result(self) -> SetsResult:
        ports = tuple(self._port_result(job) for job in self._jobs)
        notes = [f"port {one.port}: {note}" for one in ports for note in notes_of(one)]
        is_whole = all(one.sent.is_all or self._options.count is not None for one in ports)
        is_complete = self._end == "sent" and is_whole and not notes
        return SetsResult(ports, (self._ended_ns - self._began_ns) / 1e9, self._end, is_complete, tuple(notes))

    def _port_result(self, job: Job) -> PortSets:
        counters = job.transmit.counters()
        first = counters["first_late"]
        return PortSets(
            port=job.port.number,
            frames=counters["sent"],
            late=counters["late"],
            first_late=None if first == NO_SEQUENCE else first,
            counts=job.transmit.sets_counts(),
            sent=job.sent,
        )


def notes_of(one: PortSets) -> list[str]:
    """Return what the reader of the figures must know of a port, a sentence each."""
    counts = one.counts
    notes = [counts.fault] if counts.fault else []
    if counts.underruns:
        notes.append(
            f"{counts.underruns} frames were waited for after they were due, number {counts.first_underrun} first: "
            "lower the rate, or allow repeats"
        )
    return notes
