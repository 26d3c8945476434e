# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Models the frames that a probe with rings receives: datagrams that are accepted, and what the rings then hold."""

import ipaddress
import struct
from dataclasses import dataclass, field
from enum import Enum

MAGIC, PORT, HEADER_WORDS, LARGEST_WORDS = 0x4C52, 1236, 3, 383
ETHERNET, IP, UDP = 14, 20, 8
EACH = 4  # Datagrams accepted since the last answer: then there is one.
SHARES = 16  # Of a ring: when it is free up to another one, likewise.
WRAP = 1 << 32


class Verdict(Enum):
    """Kinds of frames, in the words of the counts."""

    OTHER = "other"
    ACCEPTED = "datagrams"
    REPEATED = "repeated"
    EARLY = "early"
    FULL = "full"
    STRANGE = "strange"


@dataclass
class Ring:
    """A ring and the session that streams to it; ``has_gap``: since the last datagram that was accepted one was ahead."""

    words: list[int]
    accepted: int = 0
    session: int | None = None
    counts: dict[Verdict, int] = field(default_factory=lambda: dict.fromkeys(Verdict, 0))
    has_gap: bool = False

    @property
    def refused(self) -> int:
        """Datagrams of the session that were not accepted."""
        return sum(self.counts[verdict] for verdict in (Verdict.REPEATED, Verdict.EARLY, Verdict.FULL))


@dataclass(frozen=True)
class Judged:
    """Judges a frame. ``asks_answer``: the host of ``ring`` is to be answered at once, or, of a stranger, it itself."""

    verdict: Verdict
    ring: int | None = None
    asks_answer: bool = False
    is_stranger: bool = False


class DatagramModel:
    """A probe's rings, and what each frame does to them.

    Parameters
    ----------
    mac : int, 48 bits
    ip : str, dotted
    rings, words : how many, and words of each; a power of two.
    first : position at which a session begins.
    """

    def __init__(self, mac: int, ip: str, rings: int, words: int, first: int = 0) -> None:
        self.mac, self.ip = mac.to_bytes(6, "big"), ipaddress.IPv4Address(ip).packed
        self.size, self.first = words, first
        self.rings = [Ring([0] * words, first) for _ in range(rings)]
        self.strange = 0

    def open(self, number: int, session: int) -> None:
        """Begin a session: nothing came yet."""
        self.rings[number] = Ring(self.rings[number].words, self.first, session)

    def close(self, number: int) -> None:
        """End a session: what comes is a stranger's."""
        self.rings[number].session = None
        self.rings[number].has_gap = False

    def frame(self, frame: bytes, released: list[int], lease: int, is_held: bool) -> Judged:
        """Take a frame that was received; ``released``: of each ring, the position up to which it is needed no more."""
        if not self.is_datagram(frame):
            return Judged(Verdict.OTHER)
        payload = self.payload(frame)
        if payload is None:
            return self.count_strange()
        word, names, position = struct.unpack_from("<III", payload)
        number, asks = word & 0xFF, bool(word >> 8 & 1)
        if word >> 16 != MAGIC or number >= len(self.rings):
            return self.count_strange()
        ring, session = self.rings[number], names >> 16
        if session != ring.session or not (names & 0xFFFF == lease or (names & 0xFFFF == 0 and not is_held)):
            self.strange += 1
            return Judged(Verdict.STRANGE, number, is_stranger=True)
        words = struct.unpack_from(f"<{len(payload) // 4 - HEADER_WORDS}I", payload, 4 * HEADER_WORDS)
        room = (released[number] + self.size - ring.accepted) % WRAP
        is_whole = len(words) == self.words_said(frame)
        verdict = self.compare((position - ring.accepted) % WRAP, self.words_said(frame), room)
        if verdict is Verdict.ACCEPTED and not is_whole:
            return self.count_strange()
        return self.settle(number, verdict, words if is_whole else (), asks)

    def settle(self, number: int, verdict: Verdict, words: tuple[int, ...], asks: bool) -> Judged:
        """Do what a verdict says."""
        ring = self.rings[number]
        ring.counts[verdict] += 1
        is_cause = asks
        if verdict is Verdict.ACCEPTED:
            for offset, each in enumerate(words):
                ring.words[(ring.accepted + offset) % self.size] = each
            ring.accepted = (ring.accepted + len(words)) % WRAP
            ring.has_gap = False
        elif verdict is Verdict.EARLY:
            is_cause |= not ring.has_gap
            ring.has_gap = True
        return Judged(verdict, number, is_cause)

    def count_strange(self) -> Judged:
        """Count a datagram that nobody is answered for."""
        self.strange += 1
        return Judged(Verdict.STRANGE)

    def is_datagram(self, frame: bytes) -> bool:
        """Return whether a frame is a UDP datagram to the probe's port, in IPv4 without options or fragments."""
        ip = frame[ETHERNET:]
        return (
            frame[:6] == self.mac
            and frame[12:15] == b"\x08\x00\x45"
            and int.from_bytes(ip[6:8], "big") & 0x3FFF == 0
            and ip[9] == 17
            and ip[16:20] == self.ip
            and int.from_bytes(ip[22:24], "big") == PORT
        )

    def payload(self, frame: bytes) -> bytes | None:
        """Return the payload as far as it is there, with a whole header; None where lengths are wrong or don't agree."""
        length, udp = (int.from_bytes(frame[at : at + 2], "big") for at in (ETHERNET + 2, ETHERNET + IP + 4))
        overhead = IP + UDP + 4 * HEADER_WORDS
        if length % 4 or not overhead <= length <= overhead + 4 * LARGEST_WORDS or udp != length - IP:
            return None
        whole = frame[ETHERNET + IP + UDP : ETHERNET + length]
        return whole if len(whole) >= 4 * HEADER_WORDS else None

    def words_said(self, frame: bytes) -> int:
        """Return how many words a datagram says it has."""
        return (int.from_bytes(frame[ETHERNET + 2 : ETHERNET + 4], "big") - IP - UDP) // 4 - HEADER_WORDS

    @staticmethod
    def compare(ahead: int, words: int, room: int) -> Verdict:
        """Compare a position, which is so much ahead of what is waited for, and words with the room."""
        if ahead:
            return Verdict.EARLY if ahead < WRAP // 2 else Verdict.REPEATED
        return Verdict.ACCEPTED if words <= room else Verdict.FULL
