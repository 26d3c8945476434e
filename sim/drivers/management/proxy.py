# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Stands between a host and a simulated probe, and does to their datagrams what bad networks do; checksums are right again."""

import heapq
import random
import select
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class Faults:
    """Describes what happens to datagrams, each way: parts of them, from 0 to 1."""

    change: float = 0.0  # One octet is another one.
    double: float = 0.0
    reorder: float = 0.0  # It comes ``delay_s`` later than others.
    cut: int = 0  # Octets that pass; 0: all.
    delay_s: float = 0.0  # Of all, or of what is reordered.


class Proxy:
    """A UDP port that leads to another one, over a network with faults."""

    def __init__(self, port: int, faults: Faults, seed: int = 1) -> None:
        self.faults, self.counts = faults, Counter[str]()
        self._random = random.Random(seed)
        self._client: tuple[str, int] | None = None
        self._front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._front.bind(("127.0.0.1", 0))
        self._back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._back.connect(("127.0.0.1", port))
        self.port: int = self._front.getsockname()[1]
        self._late: list[tuple[float, int, bool, bytes]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._front.close()
        self._back.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            wait_s = max(0.0, self._late[0][0] - time.monotonic()) if self._late else 0.05
            for ready in select.select([self._front, self._back], [], [], min(wait_s, 0.05))[0]:
                try:
                    datagram, address = ready.recvfrom(4096)
                except ConnectionError:
                    continue
                self._client = address if ready is self._front else self._client
                self._take(datagram, ready is self._front)
            while self._late and self._late[0][0] <= time.monotonic():
                _, _, is_request, datagram = heapq.heappop(self._late)
                self._send(datagram, is_request)

    def _take(self, datagram: bytes, is_request: bool) -> None:
        faults, rand = self.faults, self._random
        self.counts["passed"] += 1
        if faults.cut and len(datagram) > faults.cut:
            self.counts["cut"] += 1
            datagram = datagram[: faults.cut]
        if datagram and rand.random() < faults.change:
            self.counts["changed"] += 1
            place = rand.randrange(len(datagram))
            datagram = datagram[:place] + bytes([datagram[place] ^ rand.randrange(1, 256)]) + datagram[place + 1 :]
        for _ in range(1 + (rand.random() < faults.double)):
            if faults.delay_s and (not faults.reorder or rand.random() < faults.reorder):
                self.counts["late"] += 1
                heapq.heappush(
                    self._late, (time.monotonic() + faults.delay_s, self.counts["late"], is_request, datagram)
                )
            else:
                self._send(datagram, is_request)

    def _send(self, datagram: bytes, is_request: bool) -> None:
        try:
            if is_request:
                self._back.send(datagram)
            elif self._client:
                self._front.sendto(datagram, self._client)
        except ConnectionError:
            pass
