# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Opens the sockets of an agent: for requests, for values that are pushed, and one that says whose keys are good.

Stands alone: what an agent's end of ZeroMQ needs, as connection.py is that of a script; the agent knows neither.
"""

import os
from collections.abc import Iterator

import zmq
from zmq.utils import z85

from liteprobe.host.agent import message
from liteprobe.host.agent.keys import Keys
from liteprobe.host.base.errors import ProbeError

DOMAIN = b"liteprobe"
FRAMES_READ = max(message.FRAMES.values()) + 1  # Frames of a message that are read: one more is too many already.
HANDSHAKE_MS = 10_000
QUEUE = 10_000  # Messages to one peer that wait to be sent.


class Sockets:
    """Listens at an address, and at another port for pushes; ``clients``: public keys that may connect."""

    def __init__(self, address: str, keys: Keys | None, clients: list[bytes]) -> None:
        self._context = zmq.Context()
        self._clients = {z85.decode(key) for key in clients}
        #: Connections with a key that isn't in the list. Answers whose controller had gone, or takes no more.
        self.denied = self.unsent = 0
        try:
            self._access = self._context.socket(zmq.REP)
            self._access.bind("inproc://zeromq.zap.01")
            # libzmq binds to numbers and interfaces alone.
            host, _, port = address.replace("//localhost:", "//127.0.0.1:").rpartition(":")
            is_ipv6 = host.endswith("]")
            self._requests = self._listener(zmq.ROUTER, keys, is_ipv6)
            self._requests.setsockopt(zmq.ROUTER_MANDATORY, 1)
            self._requests.bind(f"{host}:{port}")
            self.address = self._requests.get_string(zmq.LAST_ENDPOINT)
            self._values = self._listener(zmq.XPUB, keys, is_ipv6)
            self._values.bind(f"{host}:*")
            self.values_port = int(self._values.get_string(zmq.LAST_ENDPOINT).rpartition(":")[2])
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            raise ProbeError(
                f"cannot listen at {address} ({os.strerror(error.errno or 0)}): give another address or port"
            ) from None

    def poll(self, fd: int, wait_ns: int | None, with_requests: bool) -> set[object]:
        """Wait for something to do, ``wait_ns`` at most, and answer who asks whose keys are good; return what is ready."""
        poller = zmq.Poller()
        for one in (fd, self._access, self._values, *((self._requests,) if with_requests else ())):
            poller.register(one, zmq.POLLIN)
        ready = {one for one, _ in poller.poll(None if wait_ns is None else -(-wait_ns // 10**6))}
        if self._access in ready:
            self._say_access()
        return ready

    def receive(self) -> tuple[bytes, list[bytes]] | None:
        """Return the identity of a controller and its message, cut after too many frames; None: nothing came."""
        try:
            identity = self._requests.recv(zmq.NOBLOCK)
        except zmq.Again:
            return None
        frames: list[bytes] = []
        while self._requests.getsockopt(zmq.RCVMORE):
            frame = self._requests.recv()
            if len(frames) < FRAMES_READ:
                frames.append(frame)
        return identity, frames

    def send(self, identity: bytes, frames: list[bytes]) -> None:
        """Send an answer."""
        try:
            self._requests.send_multipart([identity, *frames], zmq.NOBLOCK)
        except zmq.ZMQError:
            self.unsent += 1

    def push(self, frames: list[bytes]) -> None:
        """Send a value to all who watch it; who takes no more misses it, and sees that by its number."""
        self._values.send_multipart(frames, zmq.NOBLOCK)

    def subscriptions(self) -> Iterator[tuple[bytes, bool]]:
        """Yield topics that somebody began to watch (True), or that nobody watches any more."""
        while True:
            try:
                change = self._values.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            if change[:1] in (b"\0", b"\1"):
                yield change[1:], change[:1] == b"\1"

    def close(self) -> None:
        """Close all; answers have a moment to leave."""
        self._context.destroy(linger=200)

    # # #

    def _listener(self, kind: int, keys: Keys | None, is_ipv6: bool) -> "zmq.Socket[bytes]":
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        socket.setsockopt(zmq.MAXMSGSIZE, message.FRAME_MOST)
        socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
        socket.setsockopt(zmq.SNDHWM, QUEUE)
        socket.setsockopt(zmq.IPV6, is_ipv6)
        if keys:
            socket.setsockopt(zmq.CURVE_SERVER, 1)
            socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)
            socket.setsockopt(zmq.ZAP_DOMAIN, DOMAIN)
        return socket

    def _say_access(self) -> None:
        """Answer libzmq, which asks of each connection whether its key is good (ZeroMQ RFC 27)."""
        version, number, _, _, _, mechanism, *credentials = self._access.recv_multipart()
        is_good = mechanism == b"CURVE" and credentials[:1] != [] and credentials[0] in self._clients
        self.denied += not is_good
        status = (b"200", b"OK") if is_good else (b"400", b"this key is not in the list of the agent")
        self._access.send_multipart([version, number, *status, b"", b""])
