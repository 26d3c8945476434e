# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Streams datagrams to a compiled receiver over a hostile network, and compares all that happens with the model."""

import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.sim.bench.replay.datagrams_check import AnswerCheck
from liteprobe.sim.bench.replay.datagrams_module import FIRST, IP, MAC, PERIOD, RINGS, WORDS, write_verilog
from liteprobe.sim.bench.tools.compiled import compiled_program
from liteprobe.sim.models.datagrams import DatagramModel, Verdict

MAIN = Path(__file__).with_name("datagrams_run.cpp")
PARTS = [MAIN.with_name(f"datagrams_{name}.h") for name in ("wire", "port", "hosts")]
HEAD = struct.Struct("<III")
COUNTS_OF_RING = 8
HOSTILE, LINE, FLAT_OUT = range(3)
SYS_HZ = 50e6
PAYLOAD_OCTETS = 4 * 365  # Of a datagram of 1472 octets of UDP, without its header.


@dataclass(frozen=True)
class DatagramRun:
    """What a run did, and how far it is from the model: all lists should be empty.

    Attributes
    ----------
    cycles, datagrams, lost : int
        Until so many datagrams were accepted; frames that found no room in the store before the receiver.
    verdicts : frames, by what the model took them for.
    answers : int
    passed_off, rings_off, counts_off, answers_off : list of str
        What is off, in words.
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


@cache
def build() -> Path:
    """Return the executable, compiled if need be."""
    return compiled_program("datagram_bench", write_verilog, MAIN, PARTS)


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
    executable = build()
    with TemporaryDirectory(dir=executable.parent) as folder:
        log = Path(folder) / "log"
        arguments = [str(executable), str(log), str(seed), str(datagrams), str(mode), str(FIRST)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the bench with seed {seed} ended with {done.returncode}: {done.stderr}")
        return list(records(log)), [int(word) for word in done.stdout.split()]


def records(log: Path) -> Iterator[tuple[str, int, bytes]]:
    """Give kind, cycle and content of each record."""
    with log.open("rb") as file:
        while head := file.read(HEAD.size):
            kind, at, octets = HEAD.unpack(head)
            yield chr(kind), at, file.read(octets)


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
            self.shut[number] = self.model.rings[number].session
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
