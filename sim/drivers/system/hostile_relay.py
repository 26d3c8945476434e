# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A network that loses, doubles, reorders, delays, changes and cuts datagrams both ways, and stands still now and then.

What it changes or cuts has right checksums again, as after a device that rewrites packets.
"""

import heapq
import random
import select
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class Hostility:
    """Describes how bad the network is.

    Attributes
    ----------
    loss, doubling, reordering : share of the datagrams, each way.
    changing : share of which one octet is another one.
    delaying : share that comes ``delay_s`` later.
    longest : octets of a datagram that pass; None: all.
    stall_each_s : from one time that it stands still to the next; None: never.
    stalls_s : (float, float); how long it stands still, at random.
    """

    loss: float = 0.0
    doubling: float = 0.0
    reordering: float = 0.0
    changing: float = 0.0
    delaying: float = 0.0
    delay_s: float = 0.0
    longest: int | None = None
    stall_each_s: float | None = None
    stalls_s: tuple[float, float] = (0.001, 0.1)
    seed: int = 1


class HostileRelay:
    """Passes datagrams on between one sender and a receiver on this machine; a context manager.

    ``receiver``: UDP port.

    ``port``: UDP port that the sender is given. ``counts``: datagrams by what became of them, and how often it stood still.
    """

    def __init__(self, receiver: int, hostility: Hostility) -> None:
        self._hostility = hostility
        self._chance = random.Random(hostility.seed)
        self._front, self._back = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        for one in (self._front, self._back):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            one.setblocking(False)
        self._front.bind(("127.0.0.1", 0))
        self._back.connect(("127.0.0.1", receiver))
        self.port = int(self._front.getsockname()[1])
        self.counts = Counter[str]()
        self._peer: tuple[str, int] | None = None
        self._held: dict[bool, list[tuple[int, bytes]]] = {True: [], False: []}
        self._late: list[tuple[float, int, bool, bytes]] = []  # Due, number, which way.
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "HostileRelay":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ended.set()
        self._thread.join()
        self._front.close()
        self._back.close()

    # # #

    def _run(self) -> None:
        each_s = self._hostility.stall_each_s
        stall_s = time.monotonic() + (each_s or 0)
        while not self._is_ended.is_set():
            ready, _, _ = select.select([self._front, self._back], [], [], 0.002)
            if not ready:
                self._release(True, all_of_them=True)
                self._release(False, all_of_them=True)
            for one in ready:
                for _ in range(64):
                    try:
                        datagram, peer = one.recvfrom(65536)
                    except (BlockingIOError, ConnectionRefusedError):
                        break
                    if one is self._front:
                        self._peer = peer
                    self._pass_on(one is self._front, datagram)
            while self._late and self._late[0][0] <= time.monotonic():
                self._send(*heapq.heappop(self._late)[2:])
            if each_s and time.monotonic() >= stall_s:
                self.counts["stalls"] += 1
                time.sleep(self._chance.uniform(*self._hostility.stalls_s))
                stall_s = time.monotonic() + each_s

    def _pass_on(self, is_forward: bool, datagram: bytes) -> None:
        chance, how = self._chance, self._hostility
        datagram = self._spoilt(datagram)
        if chance.random() < how.loss:
            self.counts["lost"] += 1
        elif chance.random() < how.delaying:
            self.counts["delayed"] += 1
            heapq.heappush(self._late, (time.monotonic() + how.delay_s, self.counts["delayed"], is_forward, datagram))
        elif chance.random() < how.reordering:
            self.counts["reordered"] += 1
            self._held[is_forward].append((chance.randint(1, 20), datagram))
        else:
            self._send(is_forward, datagram)
            if chance.random() < how.doubling:
                self.counts["doubled"] += 1
                self._held[is_forward].append((chance.randint(0, 20), datagram))
        self._release(is_forward)

    def _spoilt(self, datagram: bytes) -> bytes:
        chance, how = self._chance, self._hostility
        if how.longest is not None and len(datagram) > how.longest:
            self.counts["cut"] += 1
            datagram = datagram[: how.longest]
        if datagram and chance.random() < how.changing:
            self.counts["changed"] += 1
            place = chance.randrange(len(datagram))
            datagram = datagram[:place] + bytes([datagram[place] ^ chance.randrange(1, 256)]) + datagram[place + 1 :]
        return datagram

    def _release(self, is_forward: bool, all_of_them: bool = False) -> None:
        held = [(left - 1, datagram) for left, datagram in self._held[is_forward]]
        for left, datagram in held:
            if left < 0 or all_of_them:
                self._send(is_forward, datagram)
        self._held[is_forward] = [] if all_of_them else [one for one in held if one[0] >= 0]

    def _send(self, is_forward: bool, datagram: bytes) -> None:
        try:
            if is_forward:
                self._back.send(datagram)
            elif self._peer:
                self._front.sendto(datagram, self._peer)
        except OSError:
            self.counts["lost"] += 1
