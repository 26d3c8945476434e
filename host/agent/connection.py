# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Connects to an agent: sends requests, returns their answers, and says in words why there is none."""

import math
import socket
import time
from collections.abc import Iterable

import zmq
from zmq.utils.monitor import recv_monitor_message

from liteprobe.host.agent import message
from liteprobe.host.agent.keys import HOW, Keys, check_address
from liteprobe.host.agent.message import AgentAnswer, AgentRequest
from liteprobe.host.base.errors import ProbeError, UsageError

SIGNATURE = b"\xff" + bytes(8) + b"\x7f"
MAJOR = 3
MECHANISM = slice(12, 32)
TIME_S = 1.0


def mechanism_at(host: str, port: int) -> str | None:
    """Return the security mechanism of a ZeroMQ socket, such as "CURVE" or "NULL"; None: it is not one, or doesn't say.

    Source: ZMTP 3.1 (ZeroMQ RFC 37), greeting: each end says its mechanism, whatever that of the other is.
    """
    greeting = b""
    try:
        with socket.create_connection((host.strip("[]"), port), TIME_S) as stream:
            stream.settimeout(TIME_S)
            stream.sendall(SIGNATURE + bytes([MAJOR]))
            while len(greeting) < MECHANISM.stop and (octets := stream.recv(MECHANISM.stop - len(greeting))):
                greeting += octets
    except OSError:
        return None
    if len(greeting) < MECHANISM.stop or (greeting[0], greeting[9]) != (SIGNATURE[0], SIGNATURE[9]):
        return None
    return greeting[MECHANISM].rstrip(b"\0").decode("ascii", "replace")


LATE_MOST = 100  # Messages and news that had come in time, and are looked at after it.
FAILURES = 2  # Of a handshake without a reason: one may be an agent that just ended.
POLL_MOST_S = 10**6  # More milliseconds than ZeroMQ can count, nearly.
PUSHES_KEPT = 100_000  # Not yet taken by the script.
HEARTBEAT_MS = 1000  # From one question to the next whether a connection for values is there.
SILENCE_MS = 3000  # Without an answer for so long it is lost.


class AgentUnreachableError(ProbeError):
    """No agent answers at this address, or it takes nobody without the right keys: exit code 3."""

    exit_code = 3


class Connection:
    """Sends requests to an agent, one at a time.

    A connection that was lost and is there again gets the request that waits for its answer once more; the agent knows it by
    its number.

    ``agent_key``: public key of the agent. Raises UsageError when the address isn't one, or keys are missing.
    """

    def __init__(self, address: str, keys: Keys | None, agent_key: bytes | None) -> None:
        if (keys is None) != (agent_key is None):
            raise UsageError("the keys of this end and the public key of the agent belong together: give both, or none")
        self.host, self._port = check_address(address, keys is not None, is_agent=False)
        self.address = address
        self._keys, self._agent_key = keys, agent_key
        self._context = zmq.Context()
        self._socket = self._connector(zmq.DEALER)
        self._monitor = self._socket.get_monitor_socket()
        self._is_connected = False
        self._was_connected = False
        self._failures = 0
        self._values: zmq.Socket[bytes] | None = None
        self._values_port = 0
        #: When (monotonic) the connection for values was found to be lost; None: it is not.
        self.lost_s: float | None = None
        self._socket.connect(address)

    def ask(self, request: AgentRequest, limit_s: float) -> AgentAnswer:
        """Send a request and return its answer, which may be an error of the device.

        Raises AgentUnreachableError when there is none in time, or the keys are wrong; MessageError when something else
        than an agent of this version answers.
        """
        frames = message.request_frames(request)
        end_s = time.monotonic() + limit_s
        self._send(frames)
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._monitor, zmq.POLLIN)
        late = 0  # What came in time counts, though this program, or its whole machine, stood still until now.
        while late < LATE_MOST:
            left_s = max(0.0, end_s - time.monotonic())
            late += left_s == 0
            ready = dict(poller.poll(math.ceil(left_s * 1e3)))
            if self._socket in ready:
                answer = message.answer_of(self._socket.recv_multipart())
                if (answer.session, answer.number) == (request.session, request.number):
                    return answer
            elif self._monitor in ready:
                if self._heed():
                    self._send(frames)
            elif left_s == 0:
                break
        raise AgentUnreachableError(self._why(limit_s))

    def watch(self, topics: Iterable[bytes], port: int) -> None:
        """Have values of topics pushed, from this port from now on."""
        if port != self._values_port:
            self._drop_values()
            self._values, self._values_port = self._connector(zmq.SUB), port
            self._values.setsockopt(zmq.RCVHWM, PUSHES_KEPT)
            # A device whose power was cut says no goodbye.
            self._values.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
            self._values.setsockopt(zmq.HEARTBEAT_TIMEOUT, SILENCE_MS)
            self._values_news = self._values.get_monitor_socket()
            self._values.connect(f"tcp://{self.host}:{port}")
        assert self._values
        for topic in topics:
            self._values.setsockopt(zmq.SUBSCRIBE, topic)

    def unwatch(self, topic: bytes) -> None:
        """Have them pushed no more."""
        if self._values is not None:
            self._values.setsockopt(zmq.UNSUBSCRIBE, topic)

    def pushed(self, wait_s: float) -> list[bytes] | None:
        """Return the next message that was pushed; None when none comes in time, or the connection is lost (``lost_s``)."""
        if self._values is None:
            return None
        end_s = time.monotonic() + wait_s
        poller = zmq.Poller()
        poller.register(self._values, zmq.POLLIN)
        poller.register(self._values_news, zmq.POLLIN)
        while True:
            ready = dict(poller.poll(max(0, round((end_s - time.monotonic()) * 1e3))))
            if self._values in ready:
                return self._values.recv_multipart()
            if self._values_news not in ready:
                return None
            if recv_monitor_message(self._values_news)["event"] == zmq.EVENT_DISCONNECTED:
                self.lost_s = time.monotonic()
                return None

    def forget_values(self) -> None:
        """Let go of a connection for values that was lost: the next `watch` makes it anew."""
        self.lost_s = None
        self._drop_values()

    def close(self) -> None:
        """Close it."""
        self._drop_values()
        self._socket.disable_monitor()
        self._context.destroy(linger=0)

    # # #

    def _drop_values(self) -> None:
        if self._values is not None:
            self._values.disable_monitor()
            self._values.close()
            self._values, self._values_port = None, 0

    def _connector(self, kind: int) -> "zmq.Socket[bytes]":
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RECONNECT_IVL, 50)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        socket.setsockopt(zmq.IPV6, self.host.startswith("["))
        if self._keys and self._agent_key:
            socket.setsockopt(zmq.CURVE_SERVERKEY, self._agent_key)
            socket.setsockopt(zmq.CURVE_PUBLICKEY, self._keys.public)
            socket.setsockopt(zmq.CURVE_SECRETKEY, self._keys.secret)
        return socket

    def _send(self, frames: list[bytes]) -> None:
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:
            raise AgentUnreachableError(self._why(0)) from None

    def _heed(self) -> bool:
        """Take news of the connection; return whether it is there anew.

        Raises AgentUnreachableError when the handshake failed for a reason that waiting doesn't mend.
        """
        news = recv_monitor_message(self._monitor)
        event, value = news["event"], news["value"]
        if event == zmq.EVENT_CONNECTED:
            self._is_connected = True
        elif event == zmq.EVENT_DISCONNECTED:
            self._is_connected = False
        elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            again, self._was_connected = self._was_connected, True
            self._failures = 0
            return again
        elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            raise AgentUnreachableError(
                f"the agent at {self.address} does not know the key of this end: give it to those who run the agent (--clients), "
                "and start the agent again"
            )
        elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL and value == zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH:
            raise AgentUnreachableError(self._mismatch())
        elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
            raise AgentUnreachableError(self._failed())
        elif event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL:
            self._failures += 1
            if self._failures >= FAILURES:
                raise AgentUnreachableError(self._failed())
        return False

    def _mismatch(self) -> str:
        if self._keys:
            return f"the agent at {self.address} has no keys: start it with keys, or leave them out at both ends (loopback only)"
        return (
            f"the agent at {self.address} talks to those with keys alone: {HOW}, have the agent's owner add NAME.key to its "
            "clients, and give keys=Keys.read(...) and agent_key=..."
        )

    def _failed(self) -> str:
        """Return why a handshake ended, of which libzmq only says that it did."""
        mechanism = mechanism_at(self.host, self._port)
        if mechanism not in ("NULL", "CURVE"):
            return f"what listens at {self.address} is not an agent: check address and port"
        if (mechanism == "CURVE") != (self._keys is not None):
            return self._mismatch()
        if self._keys:
            return f"the agent at {self.address} breaks off the handshake: check that agent_key is its public key"
        return f"the agent at {self.address} breaks off the handshake: start it again"

    def _why(self, limit_s: float) -> str:
        if self._failures:
            return self._failed()
        if self._was_connected:
            return f"the agent at {self.address} gave no answer in {limit_s:g} s: see whether its program still runs"
        if self._is_connected:
            return f"what listens at {self.address} gave no answer in {limit_s:g} s: check that it is an agent"
        return f"nothing listens at {self.address}: start 'liteprobe agent run' there, and check address and port"
