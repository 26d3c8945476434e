# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What of a port's words has been sent, accepted and lost: go-back-N against the probe's one comparator.

The probe takes the datagram that it waits for if it has room, and does nothing but answer otherwise; so a wrong guess here
costs time and never a word. Source: docs/design/replay.md.
"""

import time
from dataclasses import dataclass

from liteprobe.cores.formats import DATAGRAM_WORDS, StatusFlag
from liteprobe.host.device.link.etherbone import RoundTrip
from liteprobe.host.replay.datagrams import HEADER_OCTETS, POSITIONS, SLOT_OCTETS, Session, Status, ask
from liteprobe.host.replay.slots import Cell, Fault, Slots

BURST = 44  # Datagrams at once: what the kernel cuts up is 64 KiB at most.
TIMEOUT_LEAST_S, TIMEOUT_MOST_S = 0.002, 0.25
FLIGHT_LEAST = 48  # Datagrams that may be on their way where many get lost: each loss costs as many.
FLIGHT_GAIN = 0.25  # By which that grows with each one that is accepted.
PATIENCE_S = 3.0
SILENCE_S = 0.1  # Without an answer, while the probe has no room: it answers each 10 ms.
COUNTS = 1 << 16  # Of the counts in an answer.


@dataclass(frozen=True)
class Pace:
    """How words are sent to a probe.

    Parameters
    ----------
    patience_s : float
        Without an answer for so long, the probe is gone.
    flight : int
        Datagrams of a port that may be on their way; 0: as many as there is room for.
    timeout_s : float
        For so long at least an answer is waited for before anything is sent again.
    """

    patience_s: float = PATIENCE_S
    flight: int = 0
    timeout_s: float = TIMEOUT_LEAST_S


class Flow:
    """The words of one port on their way.

    Parameters
    ----------
    slots : Slots
        Where its datagrams are.
    session : Session
    pace : Pace
    """

    def __init__(self, slots: Slots, session: Session, pace: Pace | None = None) -> None:
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
        self._moved_s = self._heard_s = self._asked_s = time.monotonic()
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
        """Return the datagrams that are to be sent now, all but the last one of ``SLOT_OCTETS``; None: there is no room."""
        if self.fault:
            return None
        count = self._sendable() if self._asked is None else 0
        if not count:
            return self._overdue()
        now_s = time.monotonic()
        first, at = self._next, self._next % self.slots.count
        if first == self._accepted // DATAGRAM_WORDS:  # Nothing is outstanding: the clock starts now.
            self._moved_s = now_s
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
        """Return how many datagrams there are with room at the probe."""
        written = self._cells[Cell.WRITTEN]
        count = min(written - self._next, BURST, self.slots.count - self._next % self.slots.count)
        count = min(count, int(self._flight) - (self._next - self._accepted // DATAGRAM_WORDS))
        room = self._limit - self._next * DATAGRAM_WORDS
        if count > 0 and room < count * DATAGRAM_WORDS:
            count = room // DATAGRAM_WORDS
            is_last = self._next + count == written - 1 and bool(self._cells[Cell.IS_ALL])
            count += is_last and room >= self._cells[Cell.WORDS] - self._next * DATAGRAM_WORDS
        is_starved = written == self._next and room >= DATAGRAM_WORDS and not self._cells[Cell.IS_ALL]
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
        if now_s - self._heard_s > self._patience_s and now_s - self._moved_s > self._patience_s:
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

    def take(self, status: Status) -> None:
        """Take an answer."""
        now_s = time.monotonic()
        if self._is_strange(status):
            return
        self._heard_s = now_s
        self._cells[Cell.ANSWERS] += 1
        gain = (status.accepted - self._accepted) % POSITIONS
        room = (status.limit - status.accepted) % POSITIONS
        if gain >= POSITIONS // 2:
            return  # Another answer has overtaken it.
        accepted = self._accepted + gain
        if accepted > min(self._furthest * DATAGRAM_WORDS, self._cells[Cell.WORDS]):
            self.fail(Fault.BROKEN)
            return
        self._accepted = accepted
        self._limit = max(self._limit, accepted + room)
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

    def _is_strange(self, status: Status) -> bool:
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
        self._timed = None  # Whether the first or the second one was answered can't be told.

    def _note(self, status: Status) -> None:
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
