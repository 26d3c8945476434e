# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The Etherbone link against LiteX's own codec, over a network that loses, delays, doubles and reorders datagrams."""

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from litex.tools.remote.etherbone import EtherbonePacket, EtherboneRecord, EtherboneWrites

from liteprobe.host.base.errors import LeaseLostError, NetworkError, NoProbeError
from liteprobe.host.device.link import etherbone
from liteprobe.host.device.link.etherbone import EtherboneLink, Patience, Write

SEED = 20240601

Fate = Callable[[int], int]
"""How many times the reply to request number n (from 0) is sent: 0 loses it."""


class Server:
    """A bus behind a UDP socket; LiteX's codec reads the requests and writes the replies.

    Writes are done once and in order, as cores/formats/probe.py has it.
    """

    def __init__(self) -> None:
        self.memory: dict[int, int] = {}
        self.writes: list[tuple[int, list[int]]] = []
        self.reads: list[list[int]] = []
        self.fate: Fate = lambda number: 1
        self.hold = 0  # Replies kept back, to be sent in reversed order.
        self.lease, self.done = 0x8000, 0
        self.network: random.Random | None = None  # Which loses, doubles and delays, both ways.
        self._late: list[tuple[bytes, tuple[str, int]]] = []
        self.mute_until = 0.0
        self.change: Callable[[bytes], bytes] = lambda reply: reply
        self.longest = 65536  # Octets of a request that arrives.
        self._held: list[tuple[bytes, tuple[str, int]]] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"end", ("127.0.0.1", self.port))
        self._thread.join(5)
        self._socket.close()

    def _serve(self) -> None:
        while (datagram := self._socket.recvfrom(65536))[0] != b"end":
            for arrived in self._meet_network(datagram):
                if len(arrived[0]) <= self.longest:
                    self._take(arrived)

    def _meet_network(self, datagram: tuple[bytes, tuple[str, int]]) -> list[tuple[bytes, tuple[str, int]]]:
        """Return what arrives now: a fifth is lost, doubled or late each."""
        if self.network is None:
            return [datagram]
        arrived = [datagram] if self.network.random() > 0.2 else []
        late = self._late if self.network.random() < 0.3 else []
        self._late = [one for one in self._late if one not in late]
        if self.network.random() < 0.2:
            self._late.append(datagram)  # Doubled.
        if arrived and self.network.random() < 0.2:
            self._late += arrived
            arrived = []
        return arrived + late

    def _take(self, datagram: tuple[bytes, tuple[str, int]]) -> None:
        packet = EtherbonePacket(32, bytearray(datagram[0]))
        packet.decode()
        (record,) = packet.records  # LiteEth takes one a datagram.
        assert (packet.magic, packet.version, packet.addr_size, packet.port_size) == (0x4E6F, 1, 4, 4)
        assert record.byte_enable == 0xF
        assert record.wcount <= 64 and record.rcount <= 128
        if record.wcount and self._may_write(datagram[0]):
            words = record.writes.get_datas()
            self.writes.append((record.writes.base_addr, words))
            self.memory |= {record.writes.base_addr + 4 * n: word for n, word in enumerate(words)}
        if record.rcount:
            # LiteX's decoder drops the base return address, which stands behind the writes.
            at = 12 + 4 * (record.wcount + bool(record.wcount))
            self._answer(record, int.from_bytes(datagram[0][at : at + 4], "big"), datagram[1])

    def _may_write(self, datagram: bytes) -> bool:
        lease, order = int.from_bytes(datagram[4:6], "big"), int.from_bytes(datagram[6:8], "big")
        if lease != self.lease:
            return (lease, order) == (0, 0)
        if order and not 0 < (order - self.done) % 65536 < 32768:
            return False
        self.done = order or self.done
        return True

    def _answer(self, request: EtherboneRecord, base: int, client: tuple[str, int]) -> None:
        addresses = request.reads.get_addrs()
        self.reads.append(addresses)
        if time.monotonic() < self.mute_until:
            return
        record = EtherboneRecord()
        record.writes = EtherboneWrites(base_addr=base, datas=[self.memory.get(address, 0) for address in addresses])
        packet = EtherbonePacket(32)
        packet.records = [record]
        packet.encode()
        reply = bytes(packet.bytes)
        reply = self.change(reply[:4] + self.lease.to_bytes(2, "big") + self.done.to_bytes(2, "big") + reply[8:])
        if self.network is None or self.network.random() > 0.2:
            self._held += [(reply, client)] * self.fate(len(self.reads) - 1)
        if len(self._held) >= self.hold:
            for reply, address in reversed(self._held):
                self._socket.sendto(reply, address)
            self._held = []


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def link_to(server: Server, timeout_s: float = 0.1, tries: int = 6) -> EtherboneLink:
    return EtherboneLink("127.0.0.1", server.port, Patience(timeout_s, tries))


def random_words(count: int) -> list[int]:
    print(f"seed {SEED}")
    return [random.Random(SEED + count).getrandbits(32) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 128, 129, 1000])
def test_words_written_are_the_words_read(server: Server, count: int) -> None:
    words = random_words(count)
    with_link = link_to(server)
    assert with_link.write(0x40000000, words).tolist() == words
    assert with_link.read(0x40000000, count).tolist() == words
    assert [server.memory[0x40000000 + 4 * n] for n in range(count)] == words
    with_link.close()


def test_scattered_reads_come_in_the_order_asked(server: Server) -> None:
    addresses = [0xF0000010, 0xF0000000, 0x50000004, 0xF0000010]
    server.memory = {0xF0000010: 1, 0xF0000000: 2, 0x50000004: 3}
    assert link_to(server).read_scattered(addresses).tolist() == [1, 2, 3, 1]
    assert server.reads == [addresses]


def test_nothing_asked_is_nothing_sent(server: Server) -> None:
    link = link_to(server)
    assert link.read_scattered([]).tolist() == []
    assert link.write(0, []).tolist() == []
    assert (server.reads, server.writes) == ([], [])


def test_replies_out_of_order_are_matched_to_their_requests(server: Server) -> None:
    server.memory = dict(zip(range(0, 4 * 1024, 4), random_words(1024), strict=True))
    server.hold = 4
    assert link_to(server).read(0, 1024).tolist() == list(server.memory.values())


@pytest.mark.parametrize(
    "fate", [lambda n: n % 3 != 1, lambda n: 2, lambda n: (n % 5 != 0) * 3], ids=["lost", "twice", "both"]
)
def test_lost_and_repeated_replies_change_nothing(server: Server, fate: Fate) -> None:
    words = random_words(700)
    server.fate = lambda number: int(fate(number))
    link = link_to(server, timeout_s=0.2)
    assert link.write(0x1000, words).tolist() == words
    assert link.read(0x1000, 700).tolist() == words


def test_what_is_no_reply_is_ignored(server: Server) -> None:
    whole = etherbone.encode(0, [], Write(7, [1, 2]))
    assert etherbone.decode_reply(whole) is not None
    for datagram in (b"", b"short", etherbone.encode(1, [0]), bytes(64), whole[:-1]):
        assert etherbone.decode_reply(datagram) is None


def test_a_write_is_done_once_when_its_reply_is_lost(server: Server) -> None:
    server.fate = lambda number: int(number == 2)
    link = link_to(server, timeout_s=0.02)
    link.hold(server.lease)
    assert link.write(0x20, [5]).tolist() == [5]
    assert (server.writes, len(server.reads)) == ([(0x20, [5])], 3)


@pytest.mark.parametrize("seed", range(5))
def test_every_write_is_done_once_and_in_order_over_a_network_that_loses_doubles_and_delays(
    server: Server, seed: int
) -> None:
    print(f"seed {seed}")
    link = link_to(server, timeout_s=0.02, tries=40)
    link.hold(server.lease)
    server.network = random.Random(seed)
    expected = []
    for number in range(60):
        assert link.write(4 * (number % 7), [number]).tolist() == [number]
        expected.append((4 * (number % 7), [number]))
    assert server.writes == expected


def test_a_burst_of_many_datagrams_arrives_whole_over_a_bad_network(server: Server) -> None:
    words = random_words(1500)
    link = link_to(server, timeout_s=0.02, tries=40)
    link.hold(server.lease)
    server.network = random.Random(SEED)
    assert link.write(0x1000, words).tolist() == words
    assert [server.memory[0x1000 + 4 * n] for n in range(1500)] == words


def test_the_order_of_writes_goes_on_behind_65535(server: Server) -> None:
    link = link_to(server)
    link.hold(server.lease)
    link._order = server.done = 65_530
    for number in range(12):
        link.write(0, [number])
    assert [words for _, words in server.writes] == [[number] for number in range(12)]
    assert server.done == 7


@pytest.mark.parametrize("act", [lambda link: link.read(0), lambda link: link.write(0, [1])], ids=["read", "write"])
def test_an_answer_under_another_lease_is_an_error(server: Server, act: Callable[[EtherboneLink], object]) -> None:
    link = link_to(server)
    link.lease_lost = lambda: LeaseLostError("gone")
    link.hold(server.lease)
    link.write(0, [7])
    server.lease += 1
    with pytest.raises(LeaseLostError, match="gone"):
        act(link)
    assert server.memory == {0: 7}


def test_a_probe_that_never_answers_is_no_probe(server: Server) -> None:
    server.fate = lambda number: 0
    with pytest.raises(NoProbeError, match=r"no probe answers at 127\.0\.0\.1:\d+: check power") as error:
        link_to(server, timeout_s=0.01, tries=3).read(0)
    assert error.value.exit_code == 3
    assert "where both ports stay dark then, the board is of another revision" in str(error.value)
    assert len(server.reads) >= 3


def test_a_port_that_refuses_is_no_probe() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(NoProbeError, match="no probe answers"):
        EtherboneLink("127.0.0.1", port, Patience(0.01, 3)).read(0)


def test_a_name_without_address_is_no_probe() -> None:
    with pytest.raises(NoProbeError, match=r"'no-such-host\.invalid' has no address"):
        EtherboneLink("no-such-host.invalid")


def test_expected_silence_is_waited_out_with_few_repetitions(server: Server) -> None:
    server.memory = {8: 42}
    server.hold = 7  # The reply comes only when the link asks for a seventh time, after the silence.
    link = link_to(server, timeout_s=0.02, tries=2)
    begun = time.monotonic()
    link.expect_silence(0.5)
    assert link.read(8).tolist() == [42]
    assert time.monotonic() - begun >= 0.5
    assert len(server.reads) == 7


def test_two_links_of_one_machine_have_ports_of_their_own(server: Server) -> None:
    links = [link_to(server), link_to(server)]
    assert len({link._socket.getsockname()[1] for link in links}) == 2


def test_silence_that_is_over_is_not_waited_for(server: Server) -> None:
    server.fate = lambda number: 0
    link = link_to(server, timeout_s=0.01, tries=2)
    link.expect_silence(60)
    link.expect_silence(0)
    with pytest.raises(NoProbeError):
        link.read(0)


# What bad networks do beside losing ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(lambda reply: b"\x4e\x6e" + reply[2:], "header of a reply is broken", id="magic"),
        pytest.param(lambda reply: reply[:9] + b"\x1f" + reply[10:], "header of a reply is broken", id="record"),
        pytest.param(lambda reply: reply[:10] + b"\x01\x00" + reply[12:], "header of a reply is broken", id="count"),
        pytest.param(lambda reply: reply[:12] + b"\x7f" + reply[13:], "that this host never sent", id="identifier"),
        pytest.param(lambda reply: reply[:6] + b"\x20\x00" + reply[8:], "that no request of this host had", id="ahead"),
        pytest.param(
            lambda reply: reply[:6] + b"\x00\x01" + reply[8:], "that no request of this host had", id="behind"
        ),
        pytest.param(lambda reply: reply[:20], r"cuts datagrams: 20 of 24 octets of a reply", id="cut"),
    ],
)
def test_a_reply_that_was_changed_on_its_way_is_named_as_such(
    server: Server, change: Callable[[bytes], bytes], said: str
) -> None:
    link = link_to(server)
    link.hold(server.lease)
    for number in range(3):
        link.write(4 * number, [number, number])
    server.change = change
    with pytest.raises(NetworkError, match=said):
        link.write(0, [1, 2])


def test_one_reply_with_another_lease_is_asked_for_again_and_is_not_taken_for_a_theft(server: Server) -> None:
    link = link_to(server)
    link.hold(server.lease)
    link.lease_lost = lambda: LeaseLostError("gone")
    changes = iter([lambda reply: reply[:4] + b"\x80\x07" + reply[6:]])
    server.change = lambda reply: next(changes, lambda same: same)(reply)
    with pytest.raises(NetworkError, match="one reply says that another host has the probe, the next one doesn't"):
        link.read(0)


def test_constants_that_differ_are_a_network_that_changes(server: Server) -> None:
    link = link_to(server)
    link.prove(0x40)
    server.change = lambda reply: reply[:-1] + bytes([reply[-1] ^ (len(server.reads) == 100)])
    with pytest.raises(NetworkError, match="words that never change came back different"):
        link.prove(0x40)


def test_requests_that_are_too_long_for_the_network_are_named_and_silence_is_not(server: Server) -> None:
    link = link_to(server, timeout_s=0.01, tries=3)
    link.read(0)
    server.longest = 300
    with pytest.raises(
        NetworkError, match="answers short requests, but none of 128 words: something on the way cuts or drops"
    ):
        link.read(0, 128)
    server.longest = 0
    with pytest.raises(NoProbeError, match="check power"):
        link.read(0, 128)
