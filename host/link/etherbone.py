# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Etherbone over UDP, as LiteEth speaks it: 32-bit addresses and data, one record a datagram."""

import errno
import socket
import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from liteprobe.host.errors import NoProbeError, ProbeError
from liteprobe.host.link.base import Link, Words

DEFAULT_PORT = 1234
BURST_WORDS = 64  # Words a record: the depth of the probe's buffer.

# Magic, version 1 without flags, 32-bit addresses and data, padding to 8 octets.
PACKET_HEADER = struct.pack(">HBB4x", 0x4E6F, 1 << 4, 0x44)
RECORD_HEADER = struct.Struct(">BBBB")  # Flags, byte enable, writes, reads.
BASE_ADDRESS = struct.Struct(">I")
WORDS_OFFSET = len(PACKET_HEADER) + RECORD_HEADER.size + BASE_ADDRESS.size


def encode_read(identifier: int, addresses: Iterable[int]) -> bytes:
    """Return a datagram that reads ``addresses``; the reply carries ``identifier`` (32 bits) back.

    The identifier is the record's base return address, which LiteEth puts into the reply as it came.
    """
    words = np.fromiter(addresses, dtype=">u4")
    header = RECORD_HEADER.pack(0, 0xF, 0, len(words))
    return PACKET_HEADER + header + BASE_ADDRESS.pack(identifier) + words.tobytes()


def encode_write(address: int, words: Sequence[int]) -> bytes:
    """Return a datagram that writes ``words`` from ``address`` upwards. No reply comes."""
    header = RECORD_HEADER.pack(0, 0xF, len(words), 0)
    return PACKET_HEADER + header + BASE_ADDRESS.pack(address) + np.asarray(words, dtype=">u4").tobytes()


def decode_reply(datagram: bytes) -> tuple[int, Words] | None:
    """Return the identifier and the words of a reply, or None when ``datagram`` is something else."""
    if len(datagram) < WORDS_OFFSET or datagram[:4] != PACKET_HEADER[:4]:
        return None
    _, _, writes, reads = RECORD_HEADER.unpack_from(datagram, len(PACKET_HEADER))
    if reads or len(datagram) < WORDS_OFFSET + 4 * writes:
        return None
    (identifier,) = BASE_ADDRESS.unpack_from(datagram, WORDS_OFFSET - BASE_ADDRESS.size)
    words = np.frombuffer(datagram, dtype=">u4", count=writes, offset=WORDS_OFFSET)
    return identifier, words.astype(np.uint32)


@dataclass
class _Request:
    """A read, and the write that goes before it; sent again until the reply comes."""

    addresses: Sequence[int]
    write: bytes | None = None
    repeatable: bool = True
    tries: int = 0


@dataclass(frozen=True)
class Patience:
    """How long a link waits, and how much it asks at once.

    Parameters
    ----------
    timeout_s : float
        Time without any reply after which what is outstanding is sent again (s).
    tries : int
        Times a request is sent before the probe counts as gone.
    window : int
        Datagrams outstanding at once.
    """

    timeout_s: float = 0.25
    tries: int = 6
    window: int = 4


class EtherboneLink(Link):
    """A probe behind a UDP port.

    Several requests are outstanding at once; each reply is matched by the identifier that the probe echoes.
    LiteEth answers to its own UDP port number, so the local port has that number too, except on this machine
    (a simulated probe), where it is taken.

    Parameters
    ----------
    host : str
        Name or IPv4 address of the probe.
    port : int
        UDP port of the probe.
    patience : Patience
        Timeouts and window.

    Raises
    ------
    NoProbeError
        When the name has no address.
    """

    def __init__(self, host: str, port: int = DEFAULT_PORT, patience: Patience | None = None) -> None:
        self.host = host
        self.port = port
        self.patience = patience or Patience()
        self._identifier = int(time.monotonic_ns() & 0x7FFFFFFF)  # A late reply to an earlier process matches none.
        self._silence_until = 0.0
        self._socket = self._connect()

    def _connect(self) -> socket.socket:
        try:
            address = socket.gethostbyname(self.host)
        except OSError:
            raise NoProbeError(
                f"'{self.host}' has no address: check the name, or give the probe's IP address (etherbone://192.168.1.50)"
            ) from None
        connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            if not address.startswith("127."):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # One socket a probe.
                connection.bind(("", self.port))
            connection.connect((address, self.port))
        except OSError as error:
            connection.close()
            if error.errno == errno.EADDRINUSE:
                raise NoProbeError(
                    f"UDP port {self.port}, which the probe answers to, is taken here: close the program that holds it"
                ) from None
            raise NoProbeError(f"no way to {self.host}:{self.port} ({error.strerror}): check the network") from None
        return connection

    def read(self, address: int, count: int = 1) -> Words:
        """Return ``count`` words from ``address`` upwards."""
        return self.read_scattered(range(address, address + 4 * count, 4))

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        """Return the words at ``addresses``, in their order."""
        bursts = [addresses[first : first + BURST_WORDS] for first in range(0, len(addresses), BURST_WORDS)]
        return self._exchange([_Request(burst) for burst in bursts])

    def write(self, address: int, words: Sequence[int], repeatable: bool = True) -> Words:
        """Write ``words`` from ``address`` upwards, and return what a read of them gives afterwards."""
        requests = []
        for first in range(0, len(words), BURST_WORDS):
            burst = words[first : first + BURST_WORDS]
            base = address + 4 * first
            read_back = range(base, base + 4 * len(burst), 4)
            requests.append(_Request(read_back, encode_write(base, burst), repeatable))
        return self._exchange(requests)

    def expect_silence(self, seconds: float) -> None:
        """Say that the probe may not answer for ``seconds``, because a train holds its port; 0 ends it."""
        self._silence_until = time.monotonic() + seconds if seconds > 0 else 0.0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    # # #

    def _exchange(self, requests: Sequence[_Request]) -> Words:
        """Send ``requests``, some at once, repeat what gets lost, and return their words in order."""
        first = self._identifier
        self._identifier = (first + len(requests)) & 0xFFFFFFFF
        number_of = {(first + number) & 0xFFFFFFFF: number for number in range(len(requests))}
        waiting = list(reversed(number_of))
        outstanding: dict[int, _Request] = {}
        replies: dict[int, Words] = {}
        while waiting or outstanding:
            while waiting and len(outstanding) < self.patience.window:
                identifier = waiting.pop()
                outstanding[identifier] = requests[number_of[identifier]]
                self._send(identifier, outstanding[identifier])
            datagram = self._receive(self.patience.timeout_s)
            if datagram is None:
                self._repeat(outstanding)
                continue
            reply = decode_reply(datagram)
            if reply and reply[0] in outstanding and len(reply[1]) == len(outstanding[reply[0]].addresses):
                del outstanding[reply[0]]
                replies[number_of[reply[0]]] = reply[1]
        words = [replies[number] for number in range(len(requests))]
        return np.concatenate(words) if words else np.empty(0, dtype=np.uint32)

    def _send(self, identifier: int, request: _Request) -> None:
        if request.write and (request.repeatable or request.tries == 0):
            self._send_datagram(request.write)
        request.tries += 1
        self._send_datagram(encode_read(identifier, request.addresses))

    def _send_datagram(self, datagram: bytes) -> None:
        try:
            self._socket.send(datagram)
        except ConnectionRefusedError:
            pass  # The refusal of an earlier datagram; this one counts as lost, and is repeated.
        except OSError as error:
            raise NoProbeError(f"no way to {self.host}:{self.port} ({error.strerror}): check the network") from None

    def _receive(self, timeout_s: float) -> bytes | None:
        """Return the next datagram, or None when none came in time."""
        self._socket.settimeout(timeout_s)
        try:
            return self._socket.recv(2048)
        except ConnectionRefusedError:
            time.sleep(min(timeout_s, 0.05))
            return None
        except TimeoutError:
            return None
        except OSError as error:
            raise ProbeError(f"the link to {self.host}:{self.port} broke ({error.strerror}): connect again") from None

    def _repeat(self, outstanding: dict[int, _Request]) -> None:
        """After a timeout: send again what is outstanding, unless silence was expected, or give up."""
        if self._is_silent():
            return
        for identifier, request in outstanding.items():
            if request.tries >= self.patience.tries:
                raise NoProbeError(self._unreachable())
            self._send(identifier, request)

    def _is_silent(self) -> bool:
        return time.monotonic() < self._silence_until

    def _unreachable(self) -> str:
        return (
            f"no probe answers at {self.host}:{self.port}: check power, cable and address (ping {self.host}), "
            f"and that its bitstream is loaded (liteprobe build BOARD --load)"
        )
