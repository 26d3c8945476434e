# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Streams words to one or several ports of a probe, while the program that started it does something else."""

import multiprocessing
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from liteprobe.cores.formats import StatusFlag
from liteprobe.host.base import interrupt
from liteprobe.host.base.errors import LeaseLostError, ProbeError, UsageError
from liteprobe.host.replay.slots import (
    SLOT_OCTETS,
    Cell,
    Fault,
    Parts,
    ReplaySession,
    Shape,
    Slots,
    WordSource,
    prepare,
)

END_S = 2.0
#: What a state has of the cells, by its own names.
COUNTED = ("accepted", "words", "resent", "gaps", "timeouts", "starved", "refused", "answers", "underruns", "frames")


class Target(Protocol):
    """A path to the rings of a probe; it goes along to the process that sends.

    Attributes
    ----------
    shape : Shape
        Of what carries the words.
    slots : int
        How many of them each port may have ready.
    """

    @property
    def shape(self) -> Shape: ...

    @property
    def slots(self) -> int: ...

    def open(self) -> socket.socket | None:
        """Return the socket that goes along, too, where there is one; NoProbeError where there is no route."""

    def send(self, sock: socket.socket | None, parts: Parts, parent: int) -> None:
        """Send until stopped, or until the parent has gone: the process. ``parts``: of each port session and memory."""

    def error(self, fault: Fault, accepted: int) -> ProbeError | None:
        """Return what to say of a fault of this path after so many words; None: it is none of this path."""


@dataclass(frozen=True)
class StreamState:
    """The state of the stream of a port."""

    accepted: int = 0  # Words that the probe has taken.
    words: int = 0  # Words that were prepared so far.
    is_all: bool = False  # The probe has all of them.
    datagrams: int = 0  # Each as often as it was sent.
    resent: int = 0  # Datagrams among them that had been sent before.
    gaps: int = 0  # Times that the probe missed a datagram.
    timeouts: int = 0  # Times that no answer came in time.
    starved: int = 0  # Times that the probe had space, and nothing was ready.
    refused: int = 0  # Datagrams that the probe did not take: it had them, had no space, or missed one before.
    answers: int = 0
    is_running: bool = False  # The program of the port has begun.
    underruns: int = 0  # Frames that came too late for their time, as of the last answer.
    frames: int = 0  # That were sent, as of the last answer.
    round_trip_s: float = 0.0  # From a datagram to its answer, the last one that was measured.

    @property
    def octets(self) -> int:
        """Octets of UDP payload that were sent, at most."""
        return self.datagrams * SLOT_OCTETS


class Streamer:
    """Streams words to ports; a context manager that stops at once.

    One process makes the datagrams of each port, another one sends them all, as the target says, and looks how far the probe is.
    A script whose traces hold functions or classes of its own begins with ``if __name__ == "__main__":``, for these processes
    load it then.

    Raises NoProbeError when there is no route to the probe.

    Parameters
    ----------
    sources : mapping of ReplaySession to WordSource
        One a port. The sessions are open at the probe.
    """

    def __init__(self, target: Target, sources: Mapping[ReplaySession, WordSource]) -> None:
        self.target = target
        shape = target.shape
        sock = target.open()
        self.slots = {session.port: Slots(target.slots, shape=shape) for session in sources}
        self._processes: list[multiprocessing.process.BaseProcess] = []
        context = multiprocessing.get_context("spawn")
        try:
            for session, source in sources.items():
                given = (source, session, self.slots[session.port].memory, shape, os.getpid())
                self._processes.append(
                    context.Process(target=prepare, args=given, daemon=True, name="liteprobe-prepare")
                )
            parts = [(session, self.slots[session.port].memory) for session in sources]
            args = (sock, parts, os.getpid())
            self._processes.append(context.Process(target=target.send, args=args, daemon=True, name="liteprobe-send"))
            for process in self._processes:
                interrupt.start_worker(process)
        except BaseException:
            self.stop()
            raise
        finally:
            if sock:
                sock.close()

    def state(self, port: int) -> StreamState:
        """Return how the stream of a port is.

        Raises UsageError when what is streamed is wrong; NoProbeError when nothing answers; LeaseLostError when another
        host has the probe; ProbeError when sending has ended otherwise.
        """
        cells = self.slots[port].cells
        self._check(port)
        # Another process writes them meanwhile: once this is set the words stay, so it is read first, and each of them once.
        has_all = bool(cells[Cell.IS_ALL])
        counts = {name: cells[Cell[name.upper()]] for name in COUNTED}
        return StreamState(
            **counts,
            is_all=has_all and counts["accepted"] == counts["words"],
            datagrams=cells[Cell.SENT],
            is_running=bool(cells[Cell.FLAGS] & StatusFlag.RUNNING),
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
        cells = self.slots[port].cells
        fault, error = Fault(cells[Cell.FAULT]), self.slots[port].error
        if fault == Fault.DEVICE:
            raise ProbeError(error)
        if error:
            raise UsageError(error)
        if found := self.target.error(fault, cells[Cell.ACCEPTED]):
            raise found
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
        if not all(process.is_alive() for process in self._processes) and not cells[Cell.STOP]:
            interrupt.pass_on()
            raise ProbeError("a process that streams has ended: run again")
