# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Streams words to one or several ports of a probe, while the program that started it does something else."""

import multiprocessing
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType

from liteprobe.cores.formats import REPLAY_PORT, StatusFlag
from liteprobe.host import interrupt
from liteprobe.host.errors import LeaseLostError, NoProbeError, ProbeError, UsageError
from liteprobe.host.replay.datagrams import SLOT_OCTETS, Session
from liteprobe.host.replay.flow import Fault, Pace
from liteprobe.host.replay.sender import open_sender, send
from liteprobe.host.replay.slots import SLOTS, Cell, Slots, WordSource, prepare

END_S = 2.0


@dataclass(frozen=True)
class Target:
    """Where a probe takes words: its address, its UDP port; and how they are sent, the flight that of all ports together."""

    address: str
    port: int = REPLAY_PORT
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True)
class StreamState:
    """How the stream of a port is.

    Attributes
    ----------
    accepted : int
        Words that the probe has taken.
    words : int
        Words that were prepared so far.
    is_done : bool
        The probe has all of them.
    datagrams, resent : int
        Datagrams, each as often as it was sent; those among them that had been sent before.
    gaps, timeouts : int
        Times that the probe missed one; that no answer came in time.
    starved : int
        Times that there was room at the probe, and nothing ready.
    refused : int
        Datagrams that the probe did not take: it had them, had no room, or missed one before.
    answers : int
    is_running : bool
        The program of the port has begun.
    underruns, frames : int
        Frames that came too late for their time; that were sent. As of the last answer.
    round_trip_s : float
        From a datagram to its answer, the last one that was measured.
    """

    accepted: int
    words: int
    is_done: bool
    datagrams: int
    resent: int
    gaps: int
    timeouts: int
    starved: int
    refused: int
    answers: int
    is_running: bool
    underruns: int
    frames: int
    round_trip_s: float

    @property
    def octets(self) -> int:
        """Octets of UDP payload that were sent, at most."""
        return self.datagrams * SLOT_OCTETS


class Streamer:
    """Streams words to ports; a context manager that stops at once.

    One process makes the datagrams of each port, another one sends them all over one socket and takes the answers. A script
    that uses it begins with ``if __name__ == "__main__":``, for these processes load it.

    Parameters
    ----------
    target : Target
    sources : mapping of Session to WordSource
        One a port. The sessions are open at the probe.
    slots : int
        Datagrams of each port that may be ready.
    with_segments : bool
        Let the kernel cut large pieces into datagrams, where it can.

    Raises
    ------
    NoProbeError
        When there is no route to the probe.
    """

    def __init__(
        self,
        target: Target,
        sources: Mapping[Session, WordSource],
        slots: int = SLOTS,
        with_segments: bool = True,
    ) -> None:
        self.target = target
        try:
            sock = open_sender(target.address, target.port)
        except OSError as error:
            raise NoProbeError(
                f"can't send to {target.address}, UDP port {target.port} ({error.strerror}): check the address and the network"
            ) from None
        self.slots = {session.port: Slots(slots) for session in sources}
        self._processes: list[multiprocessing.process.BaseProcess] = []
        context = multiprocessing.get_context("spawn")
        try:
            for session, source in sources.items():
                given = (source, session, slots, self.slots[session.port].memory, os.getpid())
                self._processes.append(
                    context.Process(target=prepare, args=given, daemon=True, name="liteprobe-prepare")
                )
            pace = replace(target.pace, flight=target.pace.flight // len(sources))
            parts = [(session, slots, self.slots[session.port].memory) for session in sources]
            args = (sock, parts, pace, with_segments, os.getpid())
            self._processes.append(context.Process(target=send, args=args, daemon=True, name="liteprobe-send"))
            for process in self._processes:
                interrupt.start_worker(process)
        except BaseException:
            self.stop()
            raise
        finally:
            sock.close()

    def state(self, port: int) -> StreamState:
        """Return how the stream of a port is.

        Raises
        ------
        UsageError
            When what is streamed is wrong.
        NoProbeError
            When nothing answers.
        LeaseLostError
            When another host has the probe.
        ProbeError
            When sending has ended otherwise.
        """
        cells = self.slots[port].cells
        self._check(port)
        return StreamState(
            accepted=cells[Cell.ACCEPTED],
            words=cells[Cell.WORDS],
            is_done=bool(cells[Cell.IS_ALL]) and cells[Cell.ACCEPTED] == cells[Cell.WORDS],
            datagrams=cells[Cell.SENT],
            resent=cells[Cell.RESENT],
            gaps=cells[Cell.GAPS],
            timeouts=cells[Cell.TIMEOUTS],
            starved=cells[Cell.STARVED],
            refused=cells[Cell.REFUSED],
            answers=cells[Cell.ANSWERS],
            is_running=bool(cells[Cell.FLAGS] & StatusFlag.RUNNING),
            underruns=cells[Cell.UNDERRUNS],
            frames=cells[Cell.FRAMES],
            round_trip_s=cells[Cell.ROUND_TRIP_NS] / 1e9,
        )

    @property
    def pids(self) -> list[int]:
        """Numbers of its processes."""
        return [process.pid or 0 for process in self._processes]

    def stop(self) -> None:
        """Send nothing more, and end the processes; stopping twice is harmless."""
        for one in self.slots.values():
            one.cells[Cell.STOP] = 1
        ends = time.monotonic() + END_S
        for process in self._processes:
            if process.pid is None:
                continue
            process.join(max(ends - time.monotonic(), 0.1))
            if process.is_alive():
                process.kill()
                process.join()

    def close(self) -> None:
        """Stop, and give the memory back; closing twice is harmless."""
        if not self.slots:
            return
        self.stop()
        for one in self.slots.values():
            one.close()
        self.slots = {}

    def __enter__(self) -> "Streamer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # # #

    def _check(self, port: int) -> None:
        cells, target = self.slots[port].cells, self.target
        where = f"{target.address}, UDP port {target.port}"
        fault = Fault(cells[Cell.FAULT])
        if error := self.slots[port].error:
            raise UsageError(error)
        if fault == Fault.SILENT:
            raise NoProbeError(
                f"nothing answers at {where}: let the firewalls of this host and on the way pass UDP port {target.port} both "
                "ways, and check that the probe's gateware has the part replay (liteprobe info)"
            )
        if fault == Fault.GONE:
            raise ProbeError(
                f"the probe has not answered for {target.pace.patience_s:g} s after {cells[Cell.ACCEPTED]} words: check its power "
                "and the cable of its management port; it stops at the underrun"
            )
        if fault == Fault.LEASE:
            raise LeaseLostError(
                "the probe was taken from this host, or its lease has ended, while it replayed: run again"
            )
        if fault == Fault.SESSION:
            raise ProbeError(
                f"another program of this host streams to port {port} now, so this one has ended: let one at a time use the port"
            )
        if fault == Fault.BROKEN:
            raise ProbeError("the probe answers that it has words which were never sent: reset it, and report this")
        if fault == Fault.SOCKET:
            raise ProbeError(f"the network to {where} has broken: check the cable and the address, and run again")
        if not all(process.is_alive() for process in self._processes) and not cells[Cell.STOP]:
            interrupt.pass_on()
            raise ProbeError("a process that streams has ended: run again")
