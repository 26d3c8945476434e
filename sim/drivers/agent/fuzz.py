# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Messages from seeds that no agent should be content with, right ones between them, and what agents make of them."""

import random
import struct
from dataclasses import dataclass, field

from liteprobe.sim.drivers.agent.raw import GET, HELLO, SET, Controller, Reply, frame, header
from liteprobe.sim.models.agent import SETTINGS, VALUES, AgentModel, Expected, Value

BATCH = 200  # Messages that are under way at once.
NAMES = [name for name in (*SETTINGS, *VALUES) if name not in (b"hang_ms", b"reads")]
INITIAL: dict[str, Value] = {
    "queue_length": 1, "gain": 0.5, "enabled": True, "label": "ü", "blob": b"\0", "any": -(2**63),
}  # fmt: skip
EDGES = (-(2**63), -1, 0, 1, 1000, 1001, 2**63 - 1)
TEXTS = ("", "a", "é" * 512, "😀" * 256, "x" * 1024, "x" * 1025, "a\0b")
BROKEN = (b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80", b"\xff", b"\xf0\x80\x80\x80", b"\xef\xbf\xbf")
BITS = (0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, 1, 1 << 63, 0x7FEF << 48)


@dataclass
class Tally:
    """Counts what was found.

    Attributes
    ----------
    messages : that were sent, those that only set up and end batches left out.
    accepted, refused, ignored : by what the grammar says of them.
    wrong : answers that are not what the model expects, and answers that are missing.
    """

    messages: int = 0
    accepted: int = 0
    refused: int = 0
    ignored: int = 0
    wrong: list[str] = field(default_factory=list)


class Fuzzer:
    """Makes messages."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def message(self) -> list[bytes]:
        """Return a message, of a session of its own."""
        way = self.chance.random()
        if way < 0.15:
            return [self.noise() for _ in range(self.chance.randint(1, 5))]
        frames = self.right()
        if way < 0.35:
            return frames
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            self.mutate(frames)
        return frames or [b""]

    def right(self) -> list[bytes]:
        """Return a request as the grammar has it, of any name and value."""
        kind = self.chance.choice((HELLO, SET, SET, SET, GET))
        frames = [header(kind, self.chance.randint(1, 2**64 - 1), self.chance.choice((1, 2, 2**64 - 1)))]
        if kind != HELLO:
            frames.append(self.chance.choice(NAMES) if self.chance.random() < 0.9 else self.name())
        if kind == SET:
            frames.append(self.value())
        return frames

    def name(self) -> bytes:
        """Return a name that may be one."""
        letters = b"abcXYZ019_.- \x00\xc3/*"
        return bytes(self.chance.choices(letters, k=self.chance.choice((0, 1, 2, 10, 62, 63, 64, 200))))

    def value(self) -> bytes:
        """Return a frame of a value that may be one."""
        way = self.chance.randrange(8)
        if way == 0:
            return frame(self.chance.choice((self.chance.choice(EDGES), self.chance.randint(-10, 1100))))
        if way == 1:
            return frame(self.chance.uniform(-11, 11))
        if way == 2:
            return b"\x02" + struct.pack("<Q", self.chance.choice(BITS))
        if way == 3:
            return frame(self.chance.random() < 0.5)
        if way == 4:
            return frame(self.chance.choice(TEXTS))
        if way == 5:
            return b"\x04" + b"ab" * self.chance.randint(0, 2) + self.chance.choice(BROKEN) + b"c" * self.chance.randint(0, 2)
        if way == 6:
            return frame(self.chance.randbytes(self.chance.choice((0, 1, 8, 1023, 1024, 1025))))
        return bytes([self.chance.randrange(256)]) + self.noise()

    def noise(self) -> bytes:
        """Return octets without sense; some begin as a header does."""
        start = b"LPAG\x01" if self.chance.random() < 0.3 else b""
        return start + self.chance.randbytes(self.chance.choice((0, 1, 4, 8, 9, 19, 23, 24, 43, 100, 2000)))

    def mutate(self, frames: list[bytes]) -> None:
        """Change something in a message."""
        at = self.chance.randrange(len(frames)) if frames else 0
        one = bytearray(frames[at]) if frames else bytearray()
        way = self.chance.randrange(9)
        if way == 0 and one:
            one[self.chance.randrange(len(one))] ^= 1 << self.chance.randrange(8)
        elif way == 1 and one:
            one[self.chance.randrange(min(len(one), 8))] = self.chance.choice((0, 1, 2, 3, 4, 0x7F, 0x80, 0x81, 0xFF))
        elif way == 2:
            del one[self.chance.randint(0, len(one)) :]
        elif way == 3:
            one += self.chance.randbytes(self.chance.choice((1, 2, 8, 900)))
        elif way == 4 and len(one) >= 16:
            first = self.chance.choice((8, 16))
            one[first : first + 8] = bytes(8)
        elif way == 5:
            frames.insert(at, self.noise())
            return
        elif way == 6 and frames:
            del frames[at]
            return
        elif way == 7 and frames:
            frames.append(frames[at])
            return
        elif way == 8:
            self.chance.shuffle(frames)
            return
        if frames:
            frames[at] = bytes(one)[:2048]


def run(address: str, count: int, seed: int) -> Tally:
    """Send messages, and compare every answer with what the grammar says; the agent's counters, too.

    Parameters
    ----------
    address : of an example device that nobody else talks to, just started.
    count : messages.
    """
    tally, model, fuzzer = Tally(), AgentModel(), Fuzzer(seed)
    with Controller(address, session=2**64 - 1 - seed) as controller:
        for name, value in INITIAL.items():
            _right(controller, model, SET, name, value)
        while tally.messages < count:
            model.settle()
            batch = [fuzzer.message() for _ in range(min(BATCH, count - tally.messages))]
            _batch(controller, model, batch, tally)
        expected = {"sets": model.sets, "agent.malformed": model.malformed, "agent.timeouts": 0, "agent.unsent": 0}
        for name, wanted in expected.items():
            found = _right(controller, model, GET, name, None).value
            if found != wanted:
                tally.wrong.append(f"{name} is {found!r}, not {wanted}")
        model.settle()
    return tally


def _right(controller: Controller, model: AgentModel, kind: int, name: str, value: Value | None) -> Reply:
    frames = [header(kind, controller.session, controller.number + 1), name.encode()]
    model.expect([*frames, *([frame(value)] if value is not None else [])])
    return controller.ask(kind, name, value)


def _batch(controller: Controller, model: AgentModel, batch: list[list[bytes]], tally: Tally) -> None:
    """Send messages and a right one, and take the answers."""
    waiting: dict[tuple[int, int], list[tuple[Expected, list[bytes]]]] = {}
    for frames in batch:
        expected = model.expect(frames)
        tally.messages += 1
        tally.ignored += expected is None
        if expected:
            tally.accepted += expected.status == 0
            tally.refused += expected.status != 0
            waiting.setdefault((expected.session, expected.number), []).append((expected, frames))
        controller.send(*frames)
    for _ in range(sum(map(len, waiting.values()))):
        reply = controller.take()
        if reply is None:
            tally.wrong += [f"no answer to {frames}" for some in waiting.values() for _, frames in some]
            return
        some = waiting.get((reply.session, reply.number), [])
        if not some:
            tally.wrong.append(f"an answer to nothing: {reply}")
            continue
        place = next((n for n, (expected, _) in enumerate(some) if agrees(expected, reply, model)), None)
        if place is None:
            tally.wrong.append(f"{reply} to {some[0][1]}, not {some[0][0]}")
        some.pop(place or 0)
        if not some:
            del waiting[reply.session, reply.number]
    if extra := controller.take(0):
        tally.wrong.append(f"an answer too many: {extra}")


def agrees(expected: Expected, reply: Reply, model: AgentModel) -> bool:
    """Return whether an answer is what is expected."""
    if (reply.kind, reply.status) != (expected.kind, expected.status):
        return False
    if reply.status:
        return len(reply.body) == 1 and 0 < len(reply.body[0]) <= 256
    if reply.kind == 0x80 | HELLO:
        return len(reply.body) == 2 + len(SETTINGS) + len(VALUES)
    if not expected.values:
        return isinstance(reply.value, int)
    return any(type(value) is type(reply.value) and value == reply.value for value in expected.values)
