# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Speaks Etherbone over UDP, as the probe's stack does: 32-bit addresses and data, one record a datagram.

A request may write and then read; its reply says whether the writes were done, so every write is acknowledged. Under a lease
requests are numbered: the probe does the writes of each once and in order, whatever the network loses, doubles or delays
(``cores/formats/probe.py``).
"""

import contextlib
import errno
import socket
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from liteprobe.cores.formats import ORDERS, REPLAY_PORT
from liteprobe.host.base.errors import NetworkError, NoProbeError, ProbeError
from liteprobe.host.device.link.base import Link, Words

DEFAULT_PORT = 1234
# Words a record. Four such requests find room in the 1,024 words of the probe's receiver; a write is read back.
READ_WORDS = 128
WRITE_WORDS = 64
LEAST_TIMEOUT_S = 0.01
SHORT_WORDS = 16  # A request of so few words, read or written, and its reply pass any network.
ORDERS_AHEAD = 1024  # By which an earlier life of the same lease may be ahead of this link, at most.
TRIALS = 64  # Of `EtherboneLink.prove`, as a probe is opened, taken, and has run: one datagram changed in 100 passes all in 2 %.
SILENT_TRIES = 6  # As many replies as a port in band may hold back without dropping any.

# Magic, version 1 without flags, 32-bit addresses and data; then the lease and the order of a request, or zeros.
MAGIC = struct.pack(">HBB", 0x4E6F, 1 << 4, 0x44)
GUARD = struct.Struct(">HH")
RECORD_HEADER = struct.Struct(">BBBB")  # Flags, byte enable, writes, reads.
BASE_ADDRESS = struct.Struct(">I")
RECORD_OFFSET = len(MAGIC) + GUARD.size
WORDS_OFFSET = RECORD_OFFSET + RECORD_HEADER.size + BASE_ADDRESS.size


@dataclass(frozen=True)
class Write:
    """Words that a request writes, from byte ``address`` upwards."""

    address: int
    words: Sequence[int]


@dataclass(frozen=True)
class Reply:
    """Holds what came back: the request's identifier, what it read, the probe's present lease and the last order that it did."""

    identifier: int
    words: Words
    lease: int
    order: int


def encode(
    identifier: int, addresses: Iterable[int], write: Write | None = None, guard: tuple[int, int] = (0, 0)
) -> bytes:
    """Return a datagram that writes, then reads ``addresses``; the reply carries ``identifier`` (32 bits) back.

    The identifier is the record's base return address, which the probe puts into the reply as it came. A datagram that reads
    nothing gets no reply. ``guard``: lease and order of the request.
    """
    reads = np.fromiter(addresses, dtype=">u4")
    words = np.asarray(write.words if write else [], dtype=">u4")
    parts = [MAGIC, GUARD.pack(*guard), RECORD_HEADER.pack(0, 0xF, len(words), len(reads))]
    if write:
        parts += [BASE_ADDRESS.pack(write.address), words.tobytes()]
    if len(reads):
        parts += [BASE_ADDRESS.pack(identifier), reads.tobytes()]
    return b"".join(parts)


def decode_reply(datagram: bytes) -> Reply | None:
    """Return a reply taken apart, or None when ``datagram`` is something else."""
    if len(datagram) < WORDS_OFFSET or datagram[: len(MAGIC)] != MAGIC:
        return None
    lease, order = GUARD.unpack_from(datagram, len(MAGIC))
    _, _, writes, reads = RECORD_HEADER.unpack_from(datagram, RECORD_OFFSET)
    if reads or len(datagram) < WORDS_OFFSET + 4 * writes:
        return None
    (identifier,) = BASE_ADDRESS.unpack_from(datagram, WORDS_OFFSET - BASE_ADDRESS.size)
    words = np.frombuffer(datagram, dtype=">u4", count=writes, offset=WORDS_OFFSET)
    return Reply(identifier, words.astype(np.uint32), lease, order)


@dataclass
class _Request:
    """Holds what is asked in a datagram, sent again until its reply comes; ``guard``: lease and order, which a repeat may raise."""

    addresses: Sequence[int]
    write: Write | None = None
    guard: tuple[int, int] = (0, 0)
    tries: int = 0
    other_lease: int = 0  # Under which a reply came that may have been changed on its way; 0: none.
    first_sent_s: float = field(default_factory=time.monotonic)
    first_order: int = field(init=False)

    def __post_init__(self) -> None:
        self.first_order = self.guard[1]


@dataclass(frozen=True)
class Patience:
    """Says how long a link waits, and how much it asks at once."""

    #: Longest time without any reply after which what is outstanding is sent again (s); as long as replies come sooner,
    #: it is what RFC 6298 makes of their times.
    timeout_s: float = 0.25
    tries: int = 12  # A request that was sent so often, for ``tries * timeout_s`` or longer, counts as lost for good.
    window: int = 4  # Datagrams outstanding at once.


class RoundTrip:
    """The time after which a datagram counts as lost.

    Source: RFC 6298, section 2, with a least value that suits a local network; Karn's rule is the caller's.
    """

    def __init__(self, most_s: float, least_s: float = LEAST_TIMEOUT_S) -> None:
        self._most_s, self._least_s = most_s, least_s
        self._mean_s: float | None = None
        self._deviation_s = 0.0
        self._backoff = 1.0

    @property
    def timeout_s(self) -> float:
        """The present timeout (s)."""
        if self._mean_s is None:
            return self._most_s
        timeout_s = max(self._mean_s + 4 * self._deviation_s, self._least_s)
        return min(timeout_s * self._backoff, self._most_s)

    def add(self, round_trip_s: float) -> None:
        """Take the round trip of a datagram that was sent once (s)."""
        if self._mean_s is None:
            self._mean_s, self._deviation_s = round_trip_s, round_trip_s / 2
        else:
            self._deviation_s += (abs(round_trip_s - self._mean_s) - self._deviation_s) / 4
            self._mean_s += (round_trip_s - self._mean_s) / 8
        self._backoff = 1.0

    def go_on(self) -> None:
        """Wait no longer than what was measured says: something came."""
        self._backoff = 1.0

    def back_off(self) -> None:
        """Wait twice as long next time: nothing came."""
        self._backoff = min(2 * self._backoff, 64.0)


class EtherboneLink(Link):
    """A probe behind a UDP port.

    Several requests are outstanding at once; each reply is matched by the identifier that the probe echoes.

    ``host``: name or IPv4 address of the probe.
    Raises NoProbeError when the name has no address.
    """

    def __init__(self, host: str, port: int = DEFAULT_PORT, patience: Patience | None = None) -> None:
        self.host = host
        self.port = port
        self.patience = patience or Patience()
        self._identifier = int(time.monotonic_ns() & 0x7FFFFFFF)  # A late reply to an earlier process matches none.
        self._first_identifier = self._identifier
        self._answered = False
        self._order = 0
        self._round_trip = RoundTrip(self.patience.timeout_s)
        self._silence_until = 0.0
        self._socket = self._connect()

    def replay_address(self) -> tuple[str, int] | None:
        """Return where the probe takes what is streamed to it, by UDP: address and port."""
        return self.host, REPLAY_PORT

    def _connect(self) -> socket.socket:
        try:
            address = socket.gethostbyname(self.host)
        except (OSError, UnicodeError):  # UnicodeError: no host can have such a name, like '.a'.
            raise NoProbeError(
                f"'{self.host}' has no address: check the name, or give the probe's IP address (etherbone://192.168.1.50)"
            ) from None
        connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            connection.connect((address, self.port))
        except OSError as error:
            connection.close()
            raise self._unreachable(error) from None
        return connection

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        bursts = [addresses[first : first + READ_WORDS] for first in range(0, len(addresses), READ_WORDS)]
        return self._exchange([_Request(burst, guard=(self.lease, 0)) for burst in bursts])

    def write(self, address: int, words: Sequence[int]) -> Words:
        requests = []
        for first in range(0, len(words), WRITE_WORDS):
            burst = Write(address + 4 * first, words[first : first + WRITE_WORDS])
            read_back = range(burst.address, burst.address + 4 * len(burst.words), 4)
            requests.append(_Request(read_back, burst, (self.lease, self._next_order())))
        return self._exchange(requests)

    def write_scattered(self, words: Mapping[int, int]) -> bool:
        """Write words by address, all under way at once; return whether each was done once, in this order."""
        requests = [
            _Request([each], Write(each, [word]), (self.lease, self._next_order())) for each, word in words.items()
        ]
        self._exchange(requests)
        return all(request.tries == 1 for request in requests)  # One that another overtook was sent again.

    def claim(self, address: int, word: int, lease: int) -> None:
        """Write a claim, which holds only while ``lease`` is the present one, and wait until it has arrived."""
        self._exchange([_Request([address], Write(address, [word]), (lease, 0))])

    def prove(self, address: int) -> None:
        """Read a word that never changes again and again; raises NetworkError unless each reply says the same."""
        words = self._exchange([_Request([address]) for _ in range(TRIALS)])
        if np.any(words != words[0]):
            raise self._changes("words that never change came back different")

    def hold(self, lease: int) -> None:
        super().hold(lease)
        self._order = 0

    def post(self, address: int, words: Sequence[int]) -> None:
        """Write ``words`` from ``address`` upwards, out of order, and don't wait: they may get lost. Any thread may call it."""
        self._send_datagram(encode(0, [], Write(address, words), (self.lease, 0)))

    def expect_silence(self, seconds: float) -> None:
        self._silence_until = time.monotonic() + seconds if seconds > 0 else 0.0

    def close(self) -> None:
        self._socket.close()

    # # #

    def _next_order(self) -> int:
        """Return the order of the next write under a lease: 1 to 65535, over and over."""
        if not self.lease:
            return 0
        self._order = self._order % (ORDERS - 1) + 1
        return self._order

    def _exchange(self, requests: Sequence[_Request]) -> Words:
        """Send ``requests``, some at once, repeat what gets lost, and return their words in order."""
        first = self._identifier
        self._identifier = (first + len(requests)) & 0xFFFFFFFF
        number_of = {(first + number) & 0xFFFFFFFF: number for number in range(len(requests))}
        waiting = list(reversed(number_of))
        outstanding: dict[int, _Request] = {}
        replies: dict[int, Words] = {}
        while waiting or outstanding:
            if waiting and self._asks_more(len(outstanding)):
                new = [waiting.pop() for _ in range(min(len(waiting), self.patience.window - len(outstanding)))]
                outstanding |= {identifier: requests[number_of[identifier]] for identifier in new}
                self._send_datagrams([self._datagram(identifier, outstanding[identifier]) for identifier in new])
            datagram = self._receive(self._round_trip.timeout_s)
            if datagram is None:
                self._repeat(outstanding)
                continue
            reply = decode_reply(datagram)
            self._check(datagram, reply, outstanding)
            request = outstanding.get(reply.identifier) if reply else None
            self.repeats += request is None
            if reply and request and self._is_done(request, reply):
                self._answered = True
                del outstanding[reply.identifier]
                replies[number_of[reply.identifier]] = reply.words
        words = [replies[number] for number in range(len(requests))]
        return np.concatenate(words) if words else np.empty(0, dtype=np.uint32)

    def _is_done(self, request: _Request, reply: Reply) -> bool:
        """Return whether a reply says that its request was done; one that another overtook is sent again."""
        if request.tries == 1:
            self._round_trip.add(time.monotonic() - request.first_sent_s)
        lease, order = request.guard
        if not (self.lease and lease == self.lease):
            return True
        if reply.lease != lease and not request.other_lease:
            request.other_lease = reply.lease
            self._send(reply.identifier, request)
            return False
        if reply.lease != lease == self.lease and reply.lease == request.other_lease:
            raise self.lease_lost()
        if request.other_lease:
            raise self._changes("one reply says that another host has the probe, the next one doesn't")
        behind = (request.first_order - reply.order) % ORDERS
        if ORDERS_AHEAD < (reply.order - self._order) % ORDERS < ORDERS // 2 or (order and 0 < behind < ORDERS // 2):
            raise self._changes("a reply has a number that no request of this host had")
        if order and reply.order != order:
            request.guard = (lease, self._next_order())
            self._send(reply.identifier, request)
            return False
        return True

    def _check(self, datagram: bytes, reply: Reply | None, outstanding: Mapping[int, _Request]) -> None:
        """Raise NetworkError where a datagram was a reply to this host before something on its way changed or cut it."""
        if len(datagram) < WORDS_OFFSET:
            return
        (identifier,) = BASE_ADDRESS.unpack_from(datagram, WORDS_OFFSET - BASE_ADDRESS.size)
        request = outstanding.get(identifier)
        whole = WORDS_OFFSET + 4 * len(request.addresses) if request else 0
        if request and len(datagram) < whole:
            raise NetworkError(
                f"the network cuts datagrams: {len(datagram)} of {whole} octets of a reply of {self.host}:{self.port} arrive; "
                f"look for what does so on the way (a tunnel, a firewall, a faulty network card), or connect the probe directly"
            )
        head = RECORD_HEADER.pack(0, 0xF, len(request.addresses), 0) if request else b""
        if request and (reply is None or datagram[RECORD_OFFSET:][: len(head)] != head):
            raise self._changes("the header of a reply is broken")
        if (
            reply
            and (identifier - self._first_identifier) % 2**32 >= (self._identifier - self._first_identifier) % 2**32
        ):
            raise self._changes("a reply names a request that this host never sent")

    def _changes(self, how: str) -> NetworkError:
        """Return what to say where datagrams are changed, though their checksums are right."""
        return NetworkError(
            f"the network changes datagrams between this host and {self.host}:{self.port} ({how}), so no figure that comes over it "
            f"can be believed: look for what does so on the way (a tunnel, a proxy, a faulty switch), or connect the probe directly"
        )

    def _asks_more(self, outstanding: int) -> bool:
        """Return whether more is asked while so many requests are outstanding."""
        return outstanding < self.patience.window

    def _datagram(self, identifier: int, request: _Request) -> bytes:
        """Return what is sent for a request, which is counted as sent."""
        if not request.tries:
            request.first_sent_s = time.monotonic()
        request.tries += 1
        self.repeats += request.tries > 1
        return encode(identifier, request.addresses, request.write, request.guard)

    def _send(self, identifier: int, request: _Request) -> None:
        self._send_datagram(self._datagram(identifier, request))

    def _send_datagrams(self, datagrams: Sequence[bytes]) -> None:
        for datagram in datagrams:
            self._send_datagram(datagram)

    def _send_datagram(self, datagram: bytes) -> None:
        try:
            self._socket.send(datagram)
        except ConnectionRefusedError:
            pass  # The refusal of an earlier datagram; this one counts as lost, and is repeated.
        except OSError as error:
            raise self._unreachable(error) from None

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
        """After a timeout: send again what is outstanding, or give up, unless silence was expected."""
        self._round_trip.back_off()
        is_silent = self._is_silent()
        least_s = self.patience.tries * self.patience.timeout_s
        for identifier, request in outstanding.items():
            if is_silent:
                request.first_sent_s = time.monotonic()
                if request.tries >= SILENT_TRIES:
                    continue
            elif request.tries >= self.patience.tries and time.monotonic() - request.first_sent_s >= least_s:
                raise self._given_up(request)
            self._send(identifier, request)

    def _given_up(self, request: _Request) -> ProbeError:
        """Return what to say of a request that was never answered: the probe is gone, or the network lets no long ones pass."""
        words = len(request.addresses) + (len(request.write.words) if request.write else 0)
        if self._answered and words > SHORT_WORDS:
            with contextlib.suppress(NoProbeError):
                self._exchange([_Request(request.addresses[:1])])
                return NetworkError(
                    f"{self.host}:{self.port} answers short requests, but none of {words} words: something on the way cuts or "
                    f"drops datagrams above some 100 octets (a tunnel, a firewall): let 600 octets pass, or connect directly"
                )
        return NoProbeError(self._no_answer())

    def _is_silent(self) -> bool:
        return time.monotonic() < self._silence_until

    def _unreachable(self, error: OSError) -> NoProbeError:
        if error.errno == errno.EMSGSIZE:
            return NoProbeError(f"cannot reach {self.host}:{self.port}: its network takes no datagrams of 600 octets")
        return NoProbeError(f"cannot reach {self.host}:{self.port} ({error.strerror}): check the network")

    def _no_answer(self) -> str:
        return (
            f"no probe answers at {self.host}:{self.port}: check power, cable and address (ping {self.host}), "
            f"and that its bitstream is loaded (liteprobe build BOARD --load); where both ports stay dark "
            f"then, the board is of another revision: compare what is printed on it with BOARD"
        )
