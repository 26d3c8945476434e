# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends what is ready for all ports over one socket, and takes the probe's answers: the loop, and its process."""

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Sequence

from liteprobe.host import interrupt
from liteprobe.host.capture.receive import SharedMemory
from liteprobe.host.replay.datagrams import SLOT_OCTETS, Session, decode_status
from liteprobe.host.replay.flow import Flow, Pace
from liteprobe.host.replay.slots import REAL_TIME, Cell, Fault, Slots

UDP_SEGMENT = 103  # Of linux/udp.h: the kernel cuts what is sent at once into datagrams of so many octets.
ROOM_OCTETS = 4 << 20  # Asked of the kernel, for what it sends and receives.
WAIT_S = 0.001
ANSWERS_MOST = 64  # At once: then it is sent again.


def open_sender(address: str, port: int) -> socket.socket:
    """Return a socket that sends to a probe.

    Raises
    ------
    OSError
        When there is no route to it.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM_OCTETS)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ROOM_OCTETS)
        made.connect((address, port))
    except OSError:
        made.close()
        raise
    return made


class Sender:
    """Sends until it is stopped.

    Parameters
    ----------
    sock : socket
        Of ``open_sender``; closed by who opened it.
    flows : sequence of Flow
        One a port.
    with_segments : bool
        Let the kernel cut large pieces into datagrams, where it can: a tenth of the work.

    Attributes
    ----------
    has_segments : bool
        Whether it does.
    """

    def __init__(self, sock: socket.socket, flows: Sequence[Flow], with_segments: bool = True) -> None:
        self._socket, self._flows = sock, flows
        self._by_port = {flow.session.port: flow for flow in flows}
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._is_full = False  # The kernel takes no more for now.
        sock.setblocking(False)
        self.has_segments = with_segments and self._cut(SLOT_OCTETS)

    def run(self, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Send, until every flow is stopped or it is not wanted any more."""
        while not all(flow.slots.cells[Cell.STOP] for flow in self._flows) and is_wanted():
            has_sent = False
            for flow in self._flows:
                if not flow.slots.cells[Cell.STOP]:
                    has_sent |= self._pump(flow)
            self._poll.modify(self._socket, select.POLLIN | (select.POLLOUT if self._is_full else 0))
            if self._poll.poll(0 if has_sent else 1000 * WAIT_S):
                self._is_full = False
                self._take()

    # # #

    def _pump(self, flow: Flow) -> bool:
        """Send what a flow has to send; return whether there was anything."""
        if flow.slots.cells[Cell.ERROR]:
            flow.fail(Fault.PREPARATION)
        if self._is_full or (octets := flow.burst()) is None:
            return False
        try:
            self._send(octets)
        except BlockingIOError:
            self._is_full = True  # What was not sent counts as lost: the probe asks for it.
        except ConnectionRefusedError:
            pass  # The refusal of an earlier datagram.
        except OSError:
            flow.fail(Fault.SOCKET)
        return True

    def _send(self, octets: memoryview) -> None:
        if self.has_segments or len(octets) <= SLOT_OCTETS:
            try:
                self._socket.send(octets)
                return
            except OSError as error:
                if isinstance(error, BlockingIOError | ConnectionRefusedError) or len(octets) <= SLOT_OCTETS:
                    raise
                self.has_segments = False  # Its interface can't.
                self._cut(0)
        for first in range(0, len(octets), SLOT_OCTETS):
            self._socket.send(octets[first : first + SLOT_OCTETS])

    def _cut(self, octets: int) -> bool:
        try:
            self._socket.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, octets)
        except OSError:
            return False
        return True

    def _take(self) -> None:
        """Take answers that have come."""
        for _ in range(ANSWERS_MOST):
            try:
                datagram = self._socket.recv(2048)
            except BlockingIOError:
                return
            except ConnectionRefusedError:
                time.sleep(WAIT_S)
                return
            except OSError:
                for flow in self._flows:
                    flow.fail(Fault.SOCKET)
                return
            status = decode_status(datagram)
            if status and status.session.port in self._by_port:
                self._by_port[status.session.port].take(status)


def send(
    sock: socket.socket,
    parts: Sequence[tuple[Session, int, SharedMemory]],
    pace: Pace,
    with_segments: bool,
    parent: int,
) -> None:
    """Send until stopped, or until the parent has gone: the process.

    ``parts``: of each port its session, its places for datagrams and their memory.
    """
    interrupt.be_worker()
    with contextlib.suppress(
        OSError
    ):  # Where the system lets it: the probe holds 4 ms of a line, and this mostly sleeps.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(REAL_TIME + 1))
    slots = [Slots(count, memory) for _, count, memory in parts]
    flows = [Flow(one, session, pace) for one, (session, _, _) in zip(slots, parts, strict=True)]
    Sender(sock, flows, with_segments).run(lambda: os.getppid() == parent)
    sock.close()
    del flows
    for one in slots:
        one.close()
