# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Finding probes: listeners on addresses of localhost, whose requests and replies LiteX's own codec reads and writes."""

import json
import random
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from litex.tools.remote.etherbone import EtherbonePacket, EtherboneRecord, EtherboneWrites

from liteprobe.cores.formats import PRESETS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.cli import main as cli
from liteprobe.host.device import discover as networks
from liteprobe.host.device.discover import LARGEST_NETWORK, FoundProbe, ProbeAddress, discover, places

SEED = 5
CSR, PAGE, PAGES = 0xF0000000, 0x800, 32
TICKS_PER_SECOND = 125_000_000
IP = json.dumps(
    [
        {"ifname": "lo", "flags": ["LOOPBACK", "UP"], "addr_info": [{"local": "127.0.0.1", "prefixlen": 8}]},
        {"ifname": "eth0", "flags": ["BROADCAST", "UP"], "addr_info": [{"local": "192.168.1.7", "prefixlen": 29}]},
        {"ifname": "eth1", "flags": ["BROADCAST"], "addr_info": [{"local": "10.1.1.1", "prefixlen": 24}]},
        {"ifname": "eth2", "flags": ["BROADCAST", "UP"], "addr_info": [{"local": "10.9.0.1", "prefixlen": 16}]},
    ]
)


class Listener:
    """A probe's registers behind a UDP socket: pages of modules in an order of its own."""

    def __init__(
        self, address: str, port: int, identifier: str, facts: tuple[int, int, int] | None, with_start: bool
    ) -> None:
        self.memory: dict[int, int] = {}
        random_order = random.Random(f"{SEED} {address}")
        pages = random_order.sample(range(PAGES), 3)
        self._put(pages[0], [ord(character) for character in identifier] + [0])
        self._put(pages[1], [ord("l"), 3, 5])  # A register that happens to hold the identifier's first letter.
        if facts:
            self._put(pages[2], [*facts, 0, *([0] if with_start else []), TICKS_PER_SECOND, 8])
        self.requests = 0
        self.copies = 1
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, port))
        self.port: int = self._socket.getsockname()[1]
        self._address = address
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _put(self, page: int, words: list[int]) -> None:
        self.memory |= {CSR + PAGE * page + 4 * number: word for number, word in enumerate(words)}

    def _serve(self) -> None:
        while (arrived := self._socket.recvfrom(2048))[0] != b"end":
            packet = EtherbonePacket(32, bytearray(arrived[0]))
            packet.decode()
            (record,) = packet.records
            assert (record.wcount, record.rcount <= 128) == (0, True)
            self.requests += 1
            answer = EtherboneRecord()
            datas = [self.memory.get(address, 0) for address in record.reads.get_addrs()]
            answer.writes = EtherboneWrites(base_addr=int.from_bytes(arrived[0][12:16], "big"), datas=datas)
            reply = EtherbonePacket(32)
            reply.records = [answer]
            reply.encode()
            for _ in range(self.copies):
                self._socket.sendto(bytes(reply.bytes), arrived[1])

    def close(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.sendto(b"end", (self._address, self.port))
        self._thread.join(5)
        self._socket.close()


@pytest.fixture
def listeners() -> Iterator[tuple[Listener, Listener]]:
    """A trainer and a monitor at two addresses, one port."""
    parts = PRESETS["train"], PRESETS["monitor"]
    one = Listener("127.0.0.2", 0, "liteprobe on colorlight_5a_75b", (0x12345678, parts[0], 2), True)
    other = Listener("127.0.0.3", one.port, "liteprobe on versa_ecp5", (0x9ABCDEF0, parts[1], 1), False)
    yield one, other
    one.close()
    other.close()


def test_two_probes_of_a_network_are_found_with_what_they_are(listeners: tuple[Listener, Listener]) -> None:
    one, _ = listeners
    asked, left_out = places(["127.0.0.0/29"], one.port)
    assert [place.address for place in asked] == [f"127.0.0.{number}" for number in range(1, 7)]
    found = discover(asked, 0.3)
    assert found == [
        FoundProbe(
            ProbeAddress("127.0.0.2", one.port), "liteprobe on colorlight_5a_75b", "train", 2, 0x12345678, (), 1
        ),
        FoundProbe(ProbeAddress("127.0.0.3", one.port), "liteprobe on versa_ecp5", "monitor", 1, 0x9ABCDEF0, (), 1),
    ]
    assert (left_out, found[1].url, found[1].is_shared) == ([], f"etherbone://127.0.0.3:{one.port}", False)


def test_the_command_prints_them_and_writes_them(
    listeners: tuple[Listener, Listener], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, _ = listeners
    file = tmp_path / "found.json"
    asked = [f"127.0.0.3:{one.port}", f"127.0.0.2:{one.port}"]
    assert cli.main(["discover", *asked, "--wait", "300ms", "--json", str(file)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["etherbone://" + asked[0], "liteprobe", "on", "versa_ecp5", "monitor", "1", "9abcdef0", "-"] in lines
    written = json.loads(file.read_text())
    assert (written["asked"], [probe["url"] for probe in written["probes"]]) == (
        2,
        [f"etherbone://{at}" for at in asked],
    )
    assert written["probes"][1] == {
        **{
            "url": f"etherbone://127.0.0.2:{one.port}",
            "address": "127.0.0.2",
            "port": one.port,
            "interface": "",
            "own": "",
        },
        **{"identifier": "liteprobe on colorlight_5a_75b", "preset": "train", "ports": 2, "map_hash": 0x12345678},
        **{"macs": [], "answers": 1, "is_shared": False},
    }


def test_two_answers_to_one_request_are_two_devices(
    listeners: tuple[Listener, Listener], capsys: pytest.CaptureFixture[str]
) -> None:
    one, _ = listeners
    one.copies = 2
    assert cli.main(["discover", "127.0.0.2", "--udp-port", str(one.port), "--wait", "300ms"]) == 1
    assert capsys.readouterr().err == (
        "liteprobe: two devices have the address 127.0.0.2 (2 answers to one request): unplug one, and build it with "
        "another (liteprobe build BOARD --ip-address A.B.C.D --mac-address MAC)\n"
    )


def test_two_mac_addresses_are_two_devices(
    listeners: tuple[Listener, Listener], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The neighbour's entry changes meanwhile: another one answered."""
    tables = iter([{"127.0.0.2": "10:e2:d5:ab:00:00"}, {"127.0.0.2": "10:e2:d5:ab:00:01"}])
    monkeypatch.setattr(networks, "neighbours", lambda: next(tables))
    assert cli.main(["discover", "127.0.0.2", "--udp-port", str(listeners[0].port), "--wait", "300ms"]) == 1
    printed = capsys.readouterr()
    assert "(MAC addresses 10:e2:d5:ab:00:00, 10:e2:d5:ab:00:01)" in printed.err
    assert " 10:e2:d5:ab:00:00, 10:e2:d5:ab:00:01" in printed.out


def test_what_answers_and_is_no_probe_is_said_to_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    other = Listener("127.0.0.4", 0, "somebody's SoC", None, False)
    assert cli.main(["discover", f"127.0.0.4:{other.port}", "--wait", "300ms"]) == 0
    other.close()
    assert " no LiteProbe " in capsys.readouterr().out


def test_where_nobody_answers_the_next_step_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["discover", "127.0.0.5:9", "--wait", "50ms"]) == 3
    assert (
        "no probe answers at the one address that was asked: give this host an address in the probe's network"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("10.0.0.0/8", f"give a network of {LARGEST_NETWORK} or fewer"),
        ("10.0.0/x", "is not a network"),
        ("127.0.0.1:0", "has no port: write it like 192.168.1.50:1234"),
        ("127.0.0.1:99999", "has no port"),
        ("a..b", "has no address"),
    ],
)
def test_a_target_that_cannot_be_is_refused(target: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        places([target])


def test_all_networks_of_this_host_are_asked_but_the_largest_and_its_own_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = networks.interfaces(IP)
    assert {name: [str(one) for one in addresses] for name, addresses in here.items()} == {
        **{"eth0": ["192.168.1.7/29"], "eth2": ["10.9.0.1/16"]}
    }
    monkeypatch.setattr(networks, "interfaces", lambda: here)
    asked, left_out = places()
    assert [place.address for place in asked] == [*(f"192.168.1.{number}" for number in range(1, 7)), "127.0.0.1"]
    assert asked[0] == ProbeAddress("192.168.1.1", 1234, "eth0", "192.168.1.7")
    assert left_out == ["10.9.0.0/16 (eth2) is too large to ask each address: name one, or a part of it"]


def test_neighbours_are_those_that_have_answered() -> None:
    table = (
        "IP address       HW type     Flags       HW address            Mask     Device\n"
        "192.168.1.50     0x1         0x2         10:e2:d5:00:00:00     *        eth0\n"
        "192.168.1.51     0x1         0x0         00:00:00:00:00:00     *        eth0\n"
    )
    assert networks.neighbours(table) == {"192.168.1.50": "10:e2:d5:00:00:00"}


class ArpLine:
    """Stands in for a packet socket; ``arrivals`` is how long each frame is waited for (s), and the frame."""

    def __init__(self, arrivals: list[tuple[float, bytes]], clock: SimpleNamespace) -> None:
        self.arrivals, self.clock = arrivals, clock
        self.bound: tuple[str, int] | None = None
        self.sent: list[bytes] = []
        self.left_s = 0.0

    def __enter__(self) -> "ArpLine":
        return self

    def __exit__(self, *_: object) -> None: ...

    def bind(self, address: tuple[str, int]) -> None:
        self.bound = address

    def getsockname(self) -> tuple[str, int, int, int, bytes]:
        return ("eth0", 0x0806, 0, 1, OWN_MAC)

    def send(self, frame: bytes) -> None:
        self.sent.append(frame)

    def settimeout(self, left_s: float) -> None:
        self.left_s = left_s

    def recv(self, _: int) -> bytes:
        if not self.arrivals or self.arrivals[0][0] > self.left_s:
            self.clock.now_s += self.left_s
            raise TimeoutError
        waited_s, frame = self.arrivals.pop(0)
        self.clock.now_s += waited_s
        return frame


OWN_MAC = bytes.fromhex("020000000001")


@pytest.mark.parametrize(
    ("waits_s", "answer"),
    [
        ([], set()),
        ([0.2, 0.2], {"10:e2:d5:00:00:00", "10:e2:d5:00:00:01"}),
        ([0.2, 0.9], {"10:e2:d5:00:00:00"}),
        ([1.0, 0.0], {"10:e2:d5:00:00:00"}),  # The time is over with the first.
    ],
)
def test_all_who_answer_arp_in_time_are_named(
    monkeypatch: pytest.MonkeyPatch, waits_s: list[float], answer: set[str]
) -> None:
    clock = SimpleNamespace(now_s=100.0)
    frames = [
        bytes.fromhex(f"020000000001 10e2d500000{number} 0806 0001 0800 06 04 0002")
        + bytes.fromhex(f"10e2d500000{number} c0a80132 020000000001 c0a80101")
        for number in range(2)
    ]
    line = ArpLine(list(zip(waits_s, frames, strict=False)), clock)
    monkeypatch.setattr(networks.socket, "socket", lambda *_: line)
    monkeypatch.setattr(networks.time, "monotonic", lambda: clock.now_s)
    assert networks.arp_macs("eth0", "192.168.1.1", "192.168.1.50", 1.0) == answer
    assert line.bound == ("eth0", 0x0806) and line.sent == [
        networks.arp_request(OWN_MAC, "192.168.1.1", "192.168.1.50")
    ]


def test_arp_is_as_rfc_826_has_it() -> None:
    mac = bytes.fromhex("020000000001")
    request = networks.arp_request(mac, "192.168.1.1", "192.168.1.50")
    assert request.hex() == "ffffffffffff020000000001" + "0806" + "0001080006040001" + (
        "020000000001" + "c0a80101" + "000000000000" + "c0a80132"
    )
    reply = bytes.fromhex("020000000001" + "10e2d5000000" + "0806" + "0001080006040002") + bytes.fromhex(
        "10e2d5000000" + "c0a80132" + "020000000001" + "c0a80101"
    )
    assert networks.sender_of(reply + bytes(18), "192.168.1.50") == "10:e2:d5:00:00:00"
    others = [request, reply[:41], reply[:20] + struct.pack(">H", 1) + reply[22:]]
    assert [networks.sender_of(frame, "192.168.1.50") for frame in others] == [None, None, None]
    assert networks.sender_of(reply, "192.168.1.51") is None
