# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Streams datagrams to a receiver of two rings over a hostile network, and compares all that happens with the model."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from migen import *

from litex.gen import *

from liteprobe.cores.memory.sdram import BurstPort
from liteprobe.cores.receive.datagrams.receiver import DatagramReceiver
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.models.receive.datagrams import EACH, MAGIC, PORT, SHARES, DatagramModel, Judged, Verdict

RINGS   = 2
WORDS   = 2048                # Of a ring: it wraps often.
ADDRESS = 0x40000             # Of ring 0.
MAC, IP = 0x10e2d5000001, "192.168.1.50"
PERIOD  = 20_000              # Cycles.
FIRST   = 2**32 - 50_000      # Position at which a session begins: it wraps too.

# Datagram Bench -----------------------------------------------------------------------------------

class LateReceiver(DatagramReceiver):
    """A `DatagramReceiver` whose sessions begin near the position's wrap."""
    first = FIRST

class DatagramBench(PinnedBench):
    """A `DatagramReceiver`: its streams, its counts' bus, the memory's port (``request_*``, ``write_data``, ``takes``).

    All other ports have pins of their names, those of ring n with the number n.
    """
    def __init__(self):
        PinnedBench.__init__(self)
        port = BurstPort()
        self.receiver = receiver = LateReceiver(RINGS, port, ADDRESS, MAC, IP, PERIOD, WORDS)
        fields = ["data", "last", "last_be"]
        self.add_sink("sink", receiver.sink, fields)
        self.add_source("source", receiver.source, fields)
        self.add_source("status", receiver.status, fields)
        self.add_inputs(receiver, ["lease", "is_held", "open", "close", "is_restarted", "keeps", "is_running", "is_starved"])
        self.add_outputs(receiver, ["is_open", "restart"])
        for n in range(RINGS):
            for name in ["session", "fetched", "frames", "underruns"]:
                self.add_input(f"{name}{n}", getattr(receiver, name)[n])
            self.add_output(f"written{n}", receiver.written[n])
        self.add_outputs(port.request, ["valid", "address", "rest", "write"], "request_")
        self.add_input("request_ready", port.request.ready)
        self.add_outputs(port, ["write_data"])
        self.add_inputs(port, ["takes"])
        self.add_bus([receiver.bus])

BENCH = CompiledBench(DatagramBench, Path(__file__).with_name("datagrams.cpp"))

# Answers ------------------------------------------------------------------------------------------

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
    """Checks a ring's answers. ``cause``: the first one since the last answer, if any; likewise ``accepted``."""

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
            what = [hex(word) for word in words]
            self.off.append(f"cycle {at}: ring {number} is reported as {what}, which it was not: {states[-3:]}")

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


# Runs ---------------------------------------------------------------------------------------------

RECORD_HEAD = struct.Struct("<III")
COUNTS_OF_RING = 8
HOSTILE, LINE, FLAT_OUT = range(3)
SYS_HZ = 50e6
PAYLOAD_OCTETS = 4 * 365  # Of a datagram of 1472 octets of UDP, without its header.


@dataclass(frozen=True)
class DatagramRun:
    """Holds what a run did, and how far it is from the model: all lists should be empty.

    Attributes
    ----------
    cycles, datagrams, lost : int
        Until so many datagrams were accepted; frames that found no free space in the store before the receiver.
    verdicts : frames, by what the model took them for.
    passed_off, rings_off, counts_off, answers_off : what is off, in words.
    """

    cycles: int
    datagrams: int
    lost: int
    words: int
    verdicts: dict[Verdict, int]
    answers: int
    passed_off: list[str]
    rings_off: list[str]
    counts_off: list[str]
    answers_off: list[str]

    @property
    def off(self) -> list[str]:
        """All that should not be."""
        return self.passed_off + self.rings_off + self.counts_off + self.answers_off

    @property
    def payload_bps(self) -> float:
        """Octets of records that the memory took, in bits a second at SYS_HZ."""
        return 32 * self.words / self.cycles * SYS_HZ


def run(seed: int, datagrams: int, mode: int = HOSTILE) -> DatagramRun:
    """Stream until so many datagrams were accepted; RuntimeError if the bench itself sees something wrong."""
    log, numbers = logged(seed, datagrams, mode)
    cycles, accepted, lost, words = numbers
    replay = Replay()
    for kind, at, what in log:
        replay.take(kind, at, what)
    return DatagramRun(
        cycles,
        accepted,
        lost,
        words,
        replay.verdicts,
        replay.answers.count,
        replay.passed_off,
        replay.rings_off,
        replay.counts_off,
        replay.answers.finish(),
    )


def changed(seed: int, datagrams: int) -> dict[str, list[str]]:
    """Return what is off, by what was changed in the log of a run that was right."""
    log, _ = logged(seed, datagrams, HOSTILE)
    found = {}
    for name, kind, number, place in (
        ("frame", "P", 30, 20),
        ("answer, accepted", "A", 100, 12 + 50),
        ("answer, limit", "A", 120, 12 + 57),
        ("answer, peer", "A", 140, 12 + 5),
        ("answer, checksum", "A", 160, 12 + 24),
        ("count", "Z", 0, 4),
        ("written", "Z", 0, 64),
        ("ring", "Z", 0, 4 * 18 + 400),
    ):
        places = [at for at, one in enumerate(log) if one[0] == kind]
        replay = Replay()
        for at, (its_kind, cycle, what) in enumerate(log):
            is_it = at == places[number]
            replay.take(its_kind, cycle, what[:place] + bytes([what[place] ^ 0x40]) + what[place + 1 :] if is_it else what)
        found[name] = replay.passed_off + replay.rings_off + replay.counts_off + replay.answers.finish()
    replay = Replay()
    missing = [at for at, one in enumerate(log) if one[0] == "A"][50:80]
    for at, (kind, cycle, what) in enumerate(log):
        if at not in missing:
            replay.take(kind, cycle, what)
    found["answers that are missing"] = replay.answers.finish()
    return found


def logged(seed: int, datagrams: int, mode: int) -> tuple[list[tuple[str, int, bytes]], list[int]]:
    """Run the bench; return its log and the numbers that it prints."""
    done = BENCH.run(options={"seed": seed, "datagrams": datagrams, "mode": mode, "first": FIRST})
    return list(records(done.files["log"])), done.numbers


def records(log: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Give kind, cycle and content of each record."""
    place = 0
    while place < len(log):
        kind, at, octets = RECORD_HEAD.unpack_from(log, place)
        place += RECORD_HEAD.size
        yield chr(kind), at, log[place : place + octets]
        place += octets


class Replay:
    """Follows a log with the model."""

    def __init__(self) -> None:
        self.model = DatagramModel(MAC, IP, RINGS, WORDS, FIRST)
        self.answers = AnswerCheck(self.model, PERIOD)
        self.verdicts = dict.fromkeys(Verdict, 0)
        self.to_open: dict[int, int] = {}
        self.shut: dict[int, int | None] = {}  # Closed within the present frame: its session before.
        self.expected: list[bytes] = []
        self.passed = 0
        self.passed_off: list[str] = []
        self.rings_off: list[str] = []
        self.counts_off: list[str] = []

    def take(self, kind: str, at: int, what: bytes) -> None:
        """Take a record."""
        if kind in "OC":
            self.change(kind, at, what)
        elif kind == "F":
            self.frame(at, what)
        elif kind == "P":
            self.passes(what)
        elif kind == "S":
            self.answers.begins(at)
        elif kind == "A":
            self.answers.answer(at, self.released(what), what[12:])
        else:
            self.end(what)

    def change(self, kind: str, at: int, what: bytes) -> None:
        """Close a ring, or open it before the next frame. What has its session's words already is judged as before."""
        number, words_taken, session = struct.unpack("<III", what)
        if words_taken > 12:
            self.shut.setdefault(number, self.model.rings[number].session)
        self.model.close(number)
        self.answers.closed(number, at)
        self.to_open.pop(number, None)
        if kind == "O":
            self.to_open[number] = session
            if not words_taken:
                self.open_rings(at)

    def open_rings(self, at: int) -> None:
        for number, session in self.to_open.items():
            self.model.open(number, session)
            self.answers.opened(number, at)
        self.to_open.clear()

    @staticmethod
    def released(what: bytes) -> list[int]:
        """Return up to where each ring is needed no more, of the first words of a record."""
        *fetched, keeps = struct.unpack_from("<3I", what)
        return [FIRST if keeps >> number & 1 else value for number, value in enumerate(fetched)]

    def frame(self, at: int, what: bytes) -> None:
        """Judge a frame."""
        is_held, lease = struct.unpack_from("<2I", what, 12)
        frame, released = what[20:], self.released(what)
        for number, session in self.shut.items():
            self.model.rings[number].session = session
        judged = self.model.frame(frame, released, lease, bool(is_held))
        for number in self.shut:
            self.model.close(number)
        self.verdicts[judged.verdict] += 1
        if judged.verdict is Verdict.OTHER:
            self.expected.append(frame)
        self.answers.judged(at, frame, judged, released, set(self.shut))
        self.shut.clear()
        self.open_rings(at)

    def passes(self, frame: bytes) -> None:
        """Compare a frame that goes on with the next one that should."""
        if self.passed >= len(self.expected) or self.expected[self.passed] != frame:
            self.passed_off.append(f"frame {self.passed} of those that go on is another one")
        self.passed += 1

    def end(self, what: bytes) -> None:
        """Compare what the receiver and the memory have at the end."""
        if self.passed != len(self.expected):
            self.passed_off.append(f"{self.passed} frames went on, not {len(self.expected)}")
        words = struct.unpack(f"<{len(what) // 4}I", what)
        counts, written, memory = words[: 2 * COUNTS_OF_RING], words[16:18], words[18:]
        for number, ring in enumerate(self.model.rings):
            kinds = (Verdict.ACCEPTED, Verdict.REPEATED, Verdict.EARLY, Verdict.FULL)
            truth = (ring.accepted, *(ring.counts[kind] for kind in kinds), ring.refused)
            found = counts[COUNTS_OF_RING * number :][: len(truth)]
            if found != truth or written[number] != ring.accepted:
                self.counts_off.append(f"ring {number} counts {found}, written {written[number]:#x}, not {truth}")
            if list(memory[number * WORDS : (number + 1) * WORDS]) != ring.words:
                self.rings_off.append(f"ring {number} holds other words")
        if counts[6] != self.model.strange:
            self.counts_off.append(f"{counts[6]} datagrams are strange, not {self.model.strange}")
