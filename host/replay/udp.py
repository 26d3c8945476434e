# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends words to a probe by UDP from a process of its own: go-back-N against the probe's one comparator, all ports by one socket.

The probe takes the datagram that it waits for if it has space, and does nothing but answer otherwise; so a wrong guess here
costs time and never a word. Source: docs/design/replay.md.
"""

import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from liteprobe.cores.formats import DATAGRAM_WORDS, REPLAY_PORT, StatusFlag
from liteprobe.host.base.errors import NoProbeError, ProbeError
from liteprobe.host.device.link.etherbone import RoundTrip
from liteprobe.host.replay.slots import (
    DATAGRAM,
    HEADER_OCTETS,
    POSITIONS,
    SLOT_OCTETS,
    SLOTS,
    Cell,
    Fault,
    Parts,
    ReplaySession,
    ReplayStatus,
    Shape,
    Slots,
    ask,
    decode_status,
    taken,
)

BURST = 44  # Datagrams at once: what the kernel cuts up is 64 KiB at most.
TIMEOUT_LEAST_S, TIMEOUT_MOST_S = 0.002, 0.25
FLIGHT_LEAST = 48  # Datagrams that may be on their way where many get lost: each loss costs as many.
FLIGHT_GAIN = 0.25  # By which that grows with each one that is accepted.
PATIENCE_S = 3.0
SILENCE_S = 0.1  # Without an answer, while the probe has no space: it answers each 10 ms.
COUNTS = 1 << 16  # Of the counts in an answer.
UDP_SEGMENT = 103  # Of linux/udp.h: the kernel cuts what is sent at once into datagrams of so many octets.
BUFFER_OCTETS = 4 << 20  # Asked of the kernel, for what it sends and receives.
WAIT_S = 0.001
LOOK_MOST_S = 0.1  # Of patience that one look may take: a host that stood still for longer has not listened meanwhile.
ANSWERS_MOST = 64  # At once: then it is sent again.


@dataclass(frozen=True)
class Pace:
    """Limits how words are sent to a probe."""

    #: Without an answer for so long, the probe is gone: seconds in which this host ran and listened.
    patience_s: float = PATIENCE_S
    flight: int = 0  # Datagrams of a port that may be on their way; 0: as many as there is space for.
    timeout_s: float = TIMEOUT_LEAST_S  # For so long at least an answer is waited for before anything is sent again.


class Flow:
    """The words of one port on their way; ``slots``: where its datagrams are."""

    def __init__(self, slots: Slots, session: ReplaySession, pace: Pace | None = None) -> None:
        pace = pace or Pace()
        self.slots, self.session = slots, session
        self._cells = slots.cells
        self._patience_s, self._silence_s = pace.patience_s, max(SILENCE_S, pace.timeout_s)
        self._round_trip = RoundTrip(max(TIMEOUT_MOST_S, pace.timeout_s), pace.timeout_s)
        self._accepted = 0  # Words.
        self._limit = DATAGRAM_WORDS  # Words; the first answer says more.
        self._next = self._furthest = 0  # Datagrams: that is sent next; that was never sent.
        self._freed = 0  # Datagrams that the probe has.
        self._most = min(pace.flight or slots.count, slots.count)
        self._flight = float(self._most)  # Datagrams that may be on their way.
        self._timed: tuple[int, float] | None = None  # A datagram that was sent once, and when.
        self._went_back = (-1, 0.0)
        self._moved_s = self._heard_s = self._asked_s = self._looked_s = time.monotonic()
        self._silent_s = 0.0  # Without an answer to what was sent.
        self._counts = (0, 0)  # Of the last answer.
        self._is_starved = False
        self._asked: int | None = None  # After a timeout, the datagram with which it is asked how far the probe is.

    @property
    def fault(self) -> Fault:
        """Why it has ended before its end."""
        return Fault(self._cells[Cell.FAULT])

    @property
    def is_done(self) -> bool:
        """Whether the probe has all words."""
        return bool(self._cells[Cell.IS_ALL]) and self._accepted == self._cells[Cell.WORDS]

    def fail(self, fault: Fault) -> None:
        """Send nothing more."""
        self._cells[Cell.FAULT] = fault

    # Out --------------------------------------------------------------------------------------

    def burst(self) -> memoryview | None:
        """Return the datagrams that are to be sent now, all but the last one of ``SLOT_OCTETS``; None: there is no space."""
        if self.fault:
            return None
        count = self._sendable() if self._asked is None else 0
        if not count:
            return self._overdue()
        now_s = time.monotonic()
        first, at = self._next, self._next % self.slots.count
        if first == self._accepted // DATAGRAM_WORDS:  # Nothing is outstanding: the clock starts now.
            self._moved_s, self._silent_s = now_s, 0.0
        self._cells[Cell.SENT] += count
        self._cells[Cell.RESENT] += max(min(self._furthest, first + count) - first, 0)
        if self._timed is None and first + count > self._furthest:
            self._timed = (first + count - 1, now_s)
        self._next = first + count
        self._furthest = max(self._furthest, self._next)
        start = at * SLOT_OCTETS
        if (self._next == self._cells[Cell.WRITTEN] and self._cells[Cell.IS_ALL]) or self._next == 1:
            ask(self.slots.octets, start + (count - 1) * SLOT_OCTETS)
        return self.slots.octets[start : start + (count - 1) * SLOT_OCTETS + self._octets(first + count - 1)]

    def _sendable(self) -> int:
        """Return how many datagrams there are with space at the probe."""
        written = self._cells[Cell.WRITTEN]
        count = min(written - self._next, BURST, self.slots.count - self._next % self.slots.count)
        count = min(count, int(self._flight) - (self._next - self._accepted // DATAGRAM_WORDS))
        space = self._limit - self._next * DATAGRAM_WORDS
        if count > 0 and space < count * DATAGRAM_WORDS:
            count = space // DATAGRAM_WORDS
            is_last = self._next + count == written - 1 and bool(self._cells[Cell.IS_ALL])
            count += is_last and space >= self._cells[Cell.WORDS] - self._next * DATAGRAM_WORDS
        is_starved = written == self._next and space >= DATAGRAM_WORDS and not self._cells[Cell.IS_ALL]
        if is_starved and not self._is_starved and self._next:
            self._cells[Cell.STARVED] += 1
        self._is_starved = is_starved
        return max(count, 0)

    def _octets(self, number: int) -> int:
        """Return how long a datagram is."""
        left = self._cells[Cell.WORDS] - number * DATAGRAM_WORDS
        return HEADER_OCTETS + 4 * min(left, DATAGRAM_WORDS)

    def _overdue(self) -> memoryview | None:
        """Return a datagram that asks what has become of the others, when they should have been accepted."""
        now_s = time.monotonic()
        first = self._accepted // DATAGRAM_WORDS
        if not self._furthest or self.is_done:
            return None
        self._silent_s += min(now_s - self._looked_s, LOOK_MOST_S)
        self._looked_s = now_s
        if self._silent_s > self._patience_s:
            self.fail(Fault.GONE if self._cells[Cell.ANSWERS] else Fault.SILENT)
            return None
        is_outstanding = self._next > first
        if is_outstanding and now_s - max(self._moved_s, self._asked_s) >= self._round_trip.timeout_s:
            self._cells[Cell.TIMEOUTS] += 1
            self._round_trip.back_off()
            self._asked = first
        elif not is_outstanding and first and now_s - max(self._heard_s, self._asked_s) >= self._silence_s:
            first -= 1  # It was accepted: it is only answered.
        else:
            return None
        self._asked_s = now_s
        self._cells[Cell.SENT] += 1
        self._cells[Cell.RESENT] += 1
        start = first % self.slots.count * SLOT_OCTETS
        ask(self.slots.octets, start)
        return self.slots.octets[start : start + self._octets(first)]

    # In ---------------------------------------------------------------------------------------

    def take(self, status: ReplayStatus) -> None:
        """Take an answer."""
        now_s = time.monotonic()
        if self._is_strange(status):
            return
        self._heard_s, self._silent_s = now_s, 0.0
        self._cells[Cell.ANSWERS] += 1
        gain = (status.accepted - self._accepted) % POSITIONS
        space = (status.limit - status.accepted) % POSITIONS
        if gain >= POSITIONS // 2:
            return  # Another answer has overtaken it.
        accepted = self._accepted + gain
        if accepted > min(self._furthest * DATAGRAM_WORDS, self._cells[Cell.WORDS]):
            self.fail(Fault.BROKEN)
            return
        self._accepted = accepted
        self._limit = max(self._limit, accepted + space)
        first = -(-accepted // DATAGRAM_WORDS) if self.is_done else accepted // DATAGRAM_WORDS
        if gain:
            self._move(first, now_s)
        is_missing = bool(status.flags & StatusFlag.GAP)
        if self._asked is not None and (gain or is_missing):
            if is_missing or first <= self._asked + 1:  # Else others came, too: they were late, and not lost.
                self._go_back(first, now_s)
            self._asked = None
        elif not gain and is_missing and self._next > first:
            self._miss(first, now_s)
        self._note(status)

    # # #

    def _is_strange(self, status: ReplayStatus) -> bool:
        """Return whether an answer is of another session or lease; the probe says so of ours, too."""
        if status.session == self.session:
            return False
        if status.flags & StatusFlag.STRANGER and not self.is_done:
            self.fail(Fault.LEASE if status.session.lease != self.session.lease else Fault.SESSION)
        return True

    def _move(self, first: int, now_s: float) -> None:
        """Note that the probe has all datagrams before number ``first``."""
        self._moved_s = now_s
        self._round_trip.go_on()
        self._flight = min(self._flight + FLIGHT_GAIN * (first - self._freed), self._most)
        self._freed = first
        self._next = max(self._next, first)
        if self._timed and self._timed[0] < first:
            self._round_trip.add(now_s - self._timed[1])
            self._cells[Cell.ROUND_TRIP_NS] = round(1e9 * (now_s - self._timed[1]))
            self._timed = None
        self._cells[Cell.ACCEPTED] = self._accepted
        self._cells[Cell.FREED] = max(first - 1, 0)  # The last one may have to be asked with.

    def _miss(self, first: int, now_s: float) -> None:
        """Go back, unless these are answers to what was sent before the last time."""
        number, since_s = self._went_back
        if first == number and now_s - since_s < self._round_trip.timeout_s:
            return
        self._cells[Cell.GAPS] += 1
        self._go_back(first, now_s)

    def _go_back(self, first: int, now_s: float) -> None:
        self._flight = max(min(self._flight, self._next - first) / 2, min(FLIGHT_LEAST, self._most))
        self._went_back = (first, now_s)
        self._next = first
        self._timed = None  # Whether the first or the second one was answered isn't known.

    def _note(self, status: ReplayStatus) -> None:
        """Keep what else an answer says; its counts wrap."""
        more = [(new - old) % COUNTS for new, old in zip((status.refused, status.underruns), self._counts, strict=True)]
        if max(more) >= COUNTS // 2:
            return  # Another answer has overtaken it.
        self._counts = (status.refused, status.underruns)
        self._cells[Cell.REFUSED] += more[0]
        self._cells[Cell.UNDERRUNS] += more[1]
        self._cells[Cell.FLAGS] = status.flags
        self._cells[Cell.FRAMES] = max(self._cells[Cell.FRAMES], status.frames)
        self._cells[Cell.LIMIT] = self._limit


class UdpSender:
    """Sends until it is stopped.

    Parameters
    ----------
    sock : socket
        Of `UdpTarget.open`; closed by who opened it.
    flows : sequence of Flow
        One a port.
    with_segments : bool
        Let the kernel cut large pieces into datagrams, where it can: a tenth of the work.
    """

    def __init__(self, sock: socket.socket, flows: Sequence[Flow], with_segments: bool = True) -> None:
        self._socket, self._flows = sock, flows
        self._by_port = {flow.session.port: flow for flow in flows}
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._is_full = False  # The kernel takes no more for now.
        sock.setblocking(False)
        self.has_segments = with_segments and self._cut(SLOT_OCTETS)  # Whether it does.

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


@dataclass(frozen=True)
class UdpTarget:
    """UDP: the probe's address, its UDP port; and how words are sent, the flight that of all ports together.

    ``with_segments``: the kernel cuts large pieces into datagrams, where it can.
    """

    address: str
    port: int = REPLAY_PORT
    pace: Pace = field(default_factory=Pace)
    with_segments: bool = True
    shape: ClassVar[Shape] = DATAGRAM
    slots: ClassVar[int] = SLOTS

    def open(self) -> socket.socket:
        """Return a socket that sends to the probe; NoProbeError where there is no route to it."""
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_OCTETS)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_OCTETS)
            made.connect((self.address, self.port))
        except OSError as error:
            made.close()
            raise NoProbeError(
                f"can't send to {self.address}, UDP port {self.port} ({error.strerror}): check the address and the network"
            ) from None
        return made

    def send(self, sock: socket.socket | None, parts: Parts, parent: int) -> None:
        """Send until stopped, or until the parent has gone: the process."""
        assert sock
        pace = replace(self.pace, flight=self.pace.flight // len(parts))
        with taken(parts, self.shape) as slots:
            flows = [Flow(one, session, pace) for one, (session, _) in zip(slots, parts, strict=True)]
            UdpSender(sock, flows, self.with_segments).run(lambda: os.getppid() == parent)
            sock.close()
            del flows

    def error(self, fault: Fault, accepted: int) -> ProbeError | None:
        """Return what to say of a fault of the network."""
        where = f"{self.address}, UDP port {self.port}"
        if fault == Fault.SILENT:
            return NoProbeError(
                f"nothing answers at {where}: let the firewalls of this host and on the way pass UDP port {self.port} both "
                "ways, and check that the probe's gateware has the part replay (liteprobe info)"
            )
        if fault == Fault.GONE:
            return ProbeError(
                f"the probe has not answered for {self.pace.patience_s:g} s after {accepted} words: check its power "
                "and the cable of its management port; it stops at the underrun"
            )
        if fault == Fault.SOCKET:
            return ProbeError(f"the network to {where} has broken: check the cable and the address, and run again")
        return None
