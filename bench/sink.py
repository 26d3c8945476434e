# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A process that takes all words that are streamed to it, as fast as it can or as a line empties a ring, and says what came."""

import contextlib
import os
import select
import socket
import struct
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

UDP_GRO = 104  # Of linux/udp.h: datagrams that came one after the other are given at once.
MAGIC, RING, ASK_BIT = 0x4C52, 1 << 17, 8
ANSWER_WORDS = RING // 16
POSITIONS = 1 << 32
KEEP_ALIVE_S = 0.01


@dataclass
class Drain:
    """Empties a ring at a constant rate, once it was full for the first time; None: at once.

    Attributes
    ----------
    fetched : int
        Words that were taken out.
    dry_s : float
        How long the ring had no word.
    dry : int
        How often that happened.
    """

    words_a_second: float | None
    fetched: int = 0
    dry_s: float = 0.0
    dry: int = 0
    least: int = RING
    _is_running: bool = False
    _since_s: float = field(default_factory=time.monotonic)

    def run(self, accepted: int) -> None:
        """Let time pass."""
        if self.words_a_second is None:
            self.fetched = accepted
            return
        now_s = time.monotonic()
        if not self._is_running:
            self._is_running, self._since_s = accepted > RING - ANSWER_WORDS, now_s
            return
        wanted = int((now_s - self._since_s) * self.words_a_second)
        step = min(wanted, accepted - self.fetched)
        if step < wanted:
            self.dry += 1
            self.dry_s += (wanted - step) / self.words_a_second
            self._since_s = now_s
        else:
            self._since_s += step / self.words_a_second
        self.fetched += step
        self.least = min(self.least, accepted - self.fetched)


def sink(pipe: Connection, words_a_second: float | None) -> None:
    """Take words until something comes by ``pipe``.

    Sends its UDP port first; then words, and how often, how long (s) and how nearly (words) the ring was empty.
    """
    with contextlib.suppress(OSError):  # A probe doesn't wait for a core of this machine.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(3))
    taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    taker.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
    taker.bind(("127.0.0.1", 0))
    pipe.send(taker.getsockname()[1])
    drain = Drain(words_a_second)
    accepted = answered = 0
    answered_s = 0.0
    peer, second = None, 0
    is_missing = wants = False
    dry = (0, 0.0, RING)
    while not pipe.poll():
        if select.select([taker], [], [], 0.0005)[0]:
            octets, rest, _, peer = taker.recvmsg(65536, 64)
            size = struct.unpack("<i", rest[0][2])[0] if rest else len(octets)
            for at in range(0, len(octets), size):
                first, second, position = struct.unpack_from("<III", octets, at)
                is_missing |= 0 < (position - accepted) % POSITIONS < POSITIONS // 2
                count = (min(size, len(octets) - at) - 12) // 4
                if position == accepted % POSITIONS and count <= RING - (accepted - drain.fetched):
                    accepted += count
                    dry = (drain.dry, drain.dry_s, drain.least)  # What is dry after the last word is not.
                wants |= bool(first >> ASK_BIT & 1)
        drain.run(accepted)
        now_s = time.monotonic()
        has_room = drain.fetched + RING - answered >= ANSWER_WORDS
        if peer and (is_missing or wants or has_room or now_s - answered_s >= KEEP_ALIVE_S):
            answered = drain.fetched + RING
            words = (MAGIC << 16 | is_missing << ASK_BIT, second, accepted % POSITIONS, answered % POSITIONS, 0, 0)
            taker.sendto(struct.pack("<6I", *words), peer)
            answered_s, is_missing, wants = now_s, False, False
    pipe.send((accepted, *dry))
    taker.close()
