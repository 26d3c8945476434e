# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Compares the answers of a datagram receiver with the model: what they say, to whom, and that each that must be is there."""

import struct
from dataclasses import dataclass, field

from liteprobe.sim.models.datagrams import EACH, MAGIC, PORT, SHARES, DatagramModel, Judged, Verdict

HEADER = 42
GAP, STRANGER, RUNNING, UNDERRUN = 1, 2, 4, 8
FRAMES, UNDERRUNS = (0x11223344, 0x55667788), (0x99AA, 0xBBCC)  # Constants of the bench.
RUNS = (RUNNING, UNDERRUN)
#: Cycles: from an answer's choice to its first word, and from a frame's end to its judgement; until it leaves, at most.
SLACK, SOON = 40, 2500
OPENING = 3000  # At most, of a ring that is emptied.


@dataclass(frozen=True)
class State:
    """A ring as an answer may show it, from cycle ``at`` on."""

    at: int
    session: int
    accepted: int
    refused: int
    has_gap: bool
    peer: bytes


@dataclass
class RingCheck:
    """What is known of a ring's answers. ``cause``: the first one since the last answer, if any; likewise ``accepted``."""

    states: list[State] = field(default_factory=list)
    session: int = 0
    peer: bytes = b""
    is_open: bool = False
    cause: int | None = None
    accepted: int = 0
    share: int = 0
    last: int = 0
    total: int = 0
    answers: int = 0
    causes: int = 0


class AnswerCheck:
    """Follows judgements and answers; ``period`` in cycles."""

    def __init__(self, model: DatagramModel, period: int) -> None:
        self.model, self.period = model, period
        self.rings = [RingCheck() for _ in model.rings]
        self.off: list[str] = []
        self.count = 0
        self.start = self.end = self.chosen = 0
        self.released = self.released_then = [model.first] * len(model.rings)
        self.seen = 0
        self.strangers: list[tuple[int, bytes]] = []
        self.stranger_answers = 0
        self.last_stranger = -period
        self.stranger_due: int | None = None
        for number in range(len(self.rings)):
            self.remember(number, 0)

    def remember(self, number: int, at: int) -> None:
        """Note what a ring is now."""
        ring, check = self.model.rings[number], self.rings[number]
        check.states.append(State(at, check.session, ring.accepted, ring.refused, ring.has_gap, check.peer))

    def opened(self, number: int, at: int) -> None:
        """A session begins."""
        check = self.rings[number]
        check.session, check.is_open, check.share = self.model.rings[number].session or 0, True, -1
        self.forget(number)
        self.remember(number, at)

    def closed(self, number: int, at: int) -> None:
        """It ends: nobody is answered any more."""
        self.rings[number].is_open = False
        self.forget(number)
        self.remember(number, at)

    def forget(self, number: int) -> None:
        check = self.rings[number]
        check.peer, check.cause, check.accepted = b"", None, 0

    def judged(self, at: int, frame: bytes, judged: Judged, fetched: list[int], shut: set[int]) -> None:
        """A frame was judged."""
        self.end = at
        self.see_shares(at, fetched)
        self.look_for_missing(at)
        sender = frame[6:12] + frame[26:30] + frame[34:36]
        if judged.is_stranger:
            self.strangers.append((at, sender))
            if at - self.last_stranger > self.period + SLACK and self.stranger_due is None:
                self.stranger_due = at
        number = judged.ring
        if number is None or judged.is_stranger:
            return
        check = self.rings[number]
        if number in shut: # It counts, but nobody is answered any more.
            self.remember(number, at)
            return
        check.peer = sender
        if judged.verdict is Verdict.ACCEPTED:
            check.accepted += 1
            check.total += 1
        if judged.asks_answer or check.accepted > EACH:
            check.causes += 1
            check.cause = at if check.cause is None else check.cause
        self.remember(number, at)

    def see_shares(self, at: int, fetched: list[int]) -> None:
        """Note which rings are free up to another share."""
        for check, released in zip(self.rings, fetched, strict=True):
            share = released % self.model.size * SHARES // self.model.size
            if check.peer and check.share not in (-1, share):
                check.causes += 1
                if check.last < self.seen: # Else that answer may have been for it.
                    check.cause = at if check.cause is None else check.cause
            check.share = share
        self.seen, self.released = at, fetched

    def look_for_missing(self, at: int) -> None:
        """Complain of answers that should have come."""
        for number, check in enumerate(self.rings):
            if check.cause is not None and at - check.cause > SOON:
                self.off.append(f"cycle {at}: ring {number} was not answered since {check.cause}")
                check.cause = None
            if check.is_open and check.peer and at - max(check.last, self.peer_since(check)) > self.period + SOON:
                self.off.append(f"cycle {at}: ring {number} was not answered for a period")
                check.last = at
        if self.stranger_due is not None and at - self.stranger_due > SOON:
            self.off.append(f"cycle {at}: a stranger was not answered since {self.stranger_due}")
            self.stranger_due = None

    @staticmethod
    def peer_since(check: RingCheck) -> int:
        """Return when the present session's first datagram came."""
        mine = [state.at for state in check.states if state.session == check.session and state.peer]
        return mine[0] if mine else 0

    def begins(self, at: int) -> None:
        """An answer's first word is shown. It may have been chosen as soon as the one before was all but gone."""
        self.chosen, self.start = min(self.start, at - SLACK), at
        self.released_then = self.released

    def answer(self, at: int, fetched: list[int], frame: bytes) -> None:
        """An answer has left."""
        self.count += 1
        self.see_shares(at, fetched)
        words = struct.unpack_from("<6I", frame, HEADER)
        number, flags = words[0] & 0xFF, words[0] >> 8 & 0xFF
        self.check_header(frame)
        if words[0] >> 16 != MAGIC or number >= len(self.rings) or flags & 0xF0:
            self.off.append(f"cycle {at}: answer of another kind: {words[0]:#010x}")
            return
        is_stranger = bool(flags & STRANGER)
        self.check_words(at, number, words, is_stranger, fetched[number])
        (self.check_stranger if is_stranger else self.check_peer)(at, number, frame)

    def check_header(self, frame: bytes) -> None:
        """Check what is the same in all answers, and the checksum of IP."""
        fixed = frame[6:12] == self.model.mac and frame[12:18] == bytes.fromhex("080045000034") and frame[23] == 17
        fixed &= frame[26:30] == self.model.ip and frame[34:36] == PORT.to_bytes(2, "big") and len(frame) == HEADER + 24
        total = sum(struct.unpack_from(">10H", frame, 14))
        fixed &= total % 0xFFFF == 0 and total > 0 and frame[38:42] == bytes([0, 32, 0, 0])
        if not fixed:
            self.off.append(f"an answer's header: {frame[:HEADER].hex()}")

    def window(self, number: int, since: int) -> list[State]:
        """Return what a ring was since a cycle."""
        states = self.rings[number].states
        last_before = max((place for place, state in enumerate(states) if state.at <= since), default=0)
        return states[last_before:]

    def check_words(self, at: int, number: int, words: tuple[int, ...], is_stranger: bool, fetched: int) -> None:
        """Check each word against what the ring was while the answer was made."""
        states = self.window(number, self.start - (OPENING if is_stranger else SLACK))
        session = words[1] >> 16
        sessions = [place for place, state in enumerate(states) if state.session == session]
        flags = words[0] >> 8 & 0xF
        good = bool(sessions) and flags & (RUNNING | UNDERRUN) == RUNS[number]
        if sessions:
            rest = states[sessions[0] :]
            good &= words[2] in {state.accepted for state in rest}
            good &= words[4] in {(state.refused & 0xFFFF) << 16 | UNDERRUNS[number] for state in rest}
            good &= bool(flags & GAP) in {state.has_gap for state in states}
        good &= words[5] == FRAMES[number]
        if len({state.session for state in states}) == 1:  # Else the ring is opened just now, and not what it was.
            limit, then = ((value - self.released_then[number]) % 2**32 for value in (words[3] - self.model.size, fetched))
            good &= limit <= then
        if not good:
            self.off.append(f"cycle {at}: ring {number} is told {[hex(word) for word in words]}, which it was not: {states[-3:]}")

    def check_peer(self, at: int, number: int, frame: bytes) -> None:
        """Check that an answer goes to the session's host, and strike out its causes."""
        check = self.rings[number]
        to = frame[:6] + frame[30:34] + frame[36:38]
        if to not in {state.peer for state in self.window(number, self.chosen)}:
            self.off.append(f"cycle {at}: ring {number} answers another host")
        del check.states[:-200]
        check.answers += 1
        check.last, check.cause, check.accepted = self.start, None, 0

    def check_stranger(self, at: int, _number: int, frame: bytes) -> None:
        """Check that an answer goes to a stranger that came since the last one was answered."""
        to = frame[:6] + frame[30:34] + frame[36:38]
        if to not in {sender for _, sender in self.strangers}:
            self.off.append(f"cycle {at}: a stranger is answered that never came")
        self.strangers = [(seen, sender) for seen, sender in self.strangers if seen > self.start - SLACK]
        self.stranger_answers += 1
        self.last_stranger, self.stranger_due = self.start, None

    def finish(self) -> list[str]:
        """Return what was off; with it, whether there were more answers than causes."""
        periods = self.end // self.period + 2
        for number, check in enumerate(self.rings):
            most = check.causes + check.total // EACH + periods
            if check.answers > most:
                self.off.append(f"ring {number} was answered {check.answers} times with {most} causes")
        if self.stranger_answers > periods:
            self.off.append(f"{self.stranger_answers} strangers were answered in {periods} periods")
        return self.off
