# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Hosts on test ports, over a model of their registers whose neighbour was written from the RFCs: addresses, questions, errors."""

import random
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from liteprobe.cores.formats import Part
from liteprobe.cores.formats.reflect import HEARD_WORD, HostCount, HostEnable, access_words, count_register
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.probe import lacking
from liteprobe.host.run.hosts import (
    ECHO6_OCTETS,
    ECHO_OCTETS,
    TEND_NS,
    HostSettings,
    Neighbours,
    NetworkHost,
    echo_answer,
)
from liteprobe.host.traffic.document import read_document, write_document
from liteprobe.sim.models.reflector import Host

SEED = random.randrange(2**32)
Run = Callable[..., tuple[int, str, str]]


class Port:
    """Registers and memory of a port's host, with a neighbour at the end of its line."""

    def __init__(self, neighbour: Host, loses: int = 0) -> None:
        self.neighbour, self.loses = neighbour, loses
        self.sent: list[bytes] = []
        self.values = {f"port0_{count_register(one)}": 0 for one in HostCount} | {"port0_host_sending": 0}
        self.memory = np.zeros(512, np.uint32)
        self.now_ns = 0

    @property
    def names(self) -> list[str]:
        return ["port0_host_enable", *self.values]

    def read(self, name: str) -> int:
        return self.values[name]

    def read_many(self, names: Any) -> dict[str, int]:
        return {name: self.values[name] for name in names}

    def write_many(self, values: dict[str, int]) -> None:
        self.values.update(values)

    def write_memory(self, name: str, first: int, words: list[int]) -> None:
        assert name == "port0_frames"
        self.memory[first : first + len(words)] = words

    def read_memory(self, name: str, first: int, count: int) -> Any:
        assert name == "port0_frames"
        return self.memory[first : first + count]

    def write(self, name: str, value: int) -> None:
        assert name == "port0_host_send"
        frame = self.memory[:32].astype(">u4").tobytes()[2 : value + 2]
        self.sent.append(frame)
        if self.loses:
            self.loses -= 1
            return
        for answer in self.neighbour.take(frame.ljust(60, b"\0"), 0, lambda _: 0):
            heard = (bytes(2) + answer[:126]).ljust(128, b"\0")
            self.memory[HEARD_WORD : HEARD_WORD + 32] = np.frombuffer(heard, ">u4")
            self.values[f"port0_{count_register(HostCount.HEARD)}"] += 1

    def device(self) -> Any:
        def wait(seconds: float) -> None:
            self.now_ns += round(1e9 * seconds)

        return SimpleNamespace(
            url="model",
            link=SimpleNamespace(arrival_timeout_s=0.002),
            registers=self,
            timebase=SimpleNamespace(trust=lambda: ("free-running", None)),
            port_count=2,
            need=lambda part: None,
            wait=wait,
        )


def host_of(neighbour: Host, settings: HostSettings, loses: int = 0) -> tuple[NetworkHost, Port]:
    port = Port(neighbour, loses)
    host = NetworkHost(port.device(), 0)
    host.set(settings)
    return host, port


@pytest.mark.parametrize("vlan", [None, 100])
@pytest.mark.parametrize(("own", "asked"), [("10.0.1.2", "10.0.1.1"), ("fd00::2", "fd00::ab:cdef")])
def test_a_neighbour_is_found_by_frames_that_it_understands(own: str, asked: str, vlan: int | None) -> None:
    neighbour = Host((asked,), bytes.fromhex("02aabbccddee"))
    name = "ipv6" if ":" in own else "ipv4"
    host, port = host_of(neighbour, HostSettings(**{name: own}, vlan=vlan))  # type: ignore[arg-type]
    assert host.resolve(asked) == "02:aa:bb:cc:dd:ee"
    assert neighbour.counts == {"announced": 1, "solicited" if name == "ipv6" else "arp": 1}
    tag = b"" if vlan is None else struct.pack(">HH", 0x8100, vlan)
    assert all(frame[12:].startswith(tag) and frame[6:12].hex(":") == host.mac for frame in port.sent)
    assert port.memory[128 + 5] == (0 if vlan is None else vlan << 16)
    assert port.values["port0_host_enable"] >> 9 == (vlan is not None)


def test_announcements_are_those_of_the_rfcs_as_scapy_reads_them() -> None:
    from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6NDOptDstLLAddr, IPv6
    from scapy.layers.l2 import ARP, Ether

    _, port = host_of(Host(()), HostSettings("10.0.1.2", "fd00::2"))
    first, second = map(Ether, port.sent)
    assert (first.dst, first[ARP].op, first[ARP].psrc, first[ARP].pdst) == (
        "ff:ff:ff:ff:ff:ff",
        1,
        "10.0.1.2",
        "10.0.1.2",
    )
    assert (second.dst, second[IPv6].dst, second[IPv6].hlim) == ("33:33:00:00:00:01", "ff02::1", 255)
    told = second[ICMPv6ND_NA]
    assert (told.O, told.S, told.tgt, told[ICMPv6NDOptDstLLAddr].lladdr) == (1, 0, "fd00::2", "02:4c:50:54:01:00")


def test_questions_that_get_lost_are_asked_again_and_silence_is_named() -> None:
    host, port = host_of(Host(("10.0.1.1",)), HostSettings("10.0.1.2", vlan=7))
    port.loses = 2
    assert host.resolve("10.0.1.1") == "02:4c:50:54:aa:01"
    said = r"10.0.1.9 did not answer ARP on port 0 in VLAN 7 \(asked 3 times from 10.0.1.2\): check its address"
    with pytest.raises(ProbeError, match=said):
        host.resolve("10.0.1.9")
    with pytest.raises(UsageError, match="has no IPv6 address to ask fd00::1 from"):
        host.resolve("fd00::1")
    with pytest.raises(UsageError, match="is the address of port 0 itself"):
        host.resolve("10.0.1.2")


@pytest.mark.parametrize("vlan", [None, 100])
@pytest.mark.parametrize(("own", "asked"), [("10.0.1.2", "10.0.1.1"), ("fd00::2", "fd00::ab:cdef")])
def test_echoes_are_those_of_the_rfcs_as_scapy_reads_and_answers_them(own: str, asked: str, vlan: int | None) -> None:
    from scapy.layers.inet import ICMP, IP
    from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, IPv6
    from scapy.layers.l2 import Dot1Q, Ether

    is_six, mac = ":" in own, "02:aa:bb:cc:dd:ee"
    host, port = host_of(Host(()), HostSettings(**{"ipv6" if is_six else "ipv4": own}, vlan=vlan))  # type: ignore[arg-type]
    host.echo(asked, mac, 0xBEEF, 3)
    question = port.sent[-1]
    frame = Ether(question)
    network, echo = frame[IPv6 if is_six else IP], frame[ICMPv6EchoRequest if is_six else ICMP]
    assert (frame.dst, frame.src, network.src, network.dst) == (mac, host.mac, own, asked)
    assert (echo.type, echo.code, echo.id, echo.seq) == (128 if is_six else 8, 0, 0xBEEF, 3)
    if not is_six:
        network.delfieldval("chksum")
    echo.delfieldval("cksum" if is_six else "chksum")
    assert bytes(frame) == question and (len(question) == 60 or is_six or vlan is not None)
    head = Ether(src=mac, dst=host.mac) if vlan is None else Ether(src=mac, dst=host.mac) / Dot1Q(vlan=vlan)
    reply = ICMPv6EchoReply(id=0xBEEF, seq=3, data=b"x") if is_six else ICMP(type=0, id=0xBEEF, seq=3) / b"x"
    answer = bytes(head / (IPv6 if is_six else IP)(src=asked, dst=own) / reply)
    assert echo_answer(answer, own, asked) == (0xBEEF, 3)
    assert echo_answer(question, own, asked) is None and echo_answer(answer, asked, own) is None
    least = (ECHO6_OCTETS if is_six else ECHO_OCTETS) + 4 * (vlan is not None)
    assert [echo_answer(answer[:size], own, asked) for size in range(least + 1)] == [None] * least + [(0xBEEF, 3)]
    rng = random.Random(SEED)
    for _ in range(300):
        at = rng.randrange(len(answer))
        echo_answer(answer[:at] + rng.randbytes(rng.randrange(40)), own, asked)  # Whatever comes, it raises nothing.


def test_who_answers_for_another_is_not_taken_for_it() -> None:
    class Impostor(Host):
        def take(self, frame: bytes, came_ns: int, leaves_ns: Callable[[int], int]) -> list[bytes]:
            return [
                one.replace(bytes([10, 0, 1, 1]), bytes([10, 0, 1, 3]))
                for one in super().take(frame, came_ns, leaves_ns)
            ]

    host, _ = host_of(Impostor(("10.0.1.1",)), HostSettings("10.0.1.2"))
    with pytest.raises(ProbeError, match=r"10.0.1.1 did not answer ARP"):
        host.resolve("10.0.1.1")


def test_settings_are_written_as_the_gateware_takes_them() -> None:
    settings = HostSettings(
        "192.168.1.50",
        "fd00::5",
        "02:00:00:00:00:09",
        5,
        reflects=True,
        is_stateful=True,
        has_tlvs=True,
        access=("10.0.0.0/8",),
        rate_per_ms=9,
    )
    _, port = host_of(Host(()), settings)
    own = {name.removeprefix("port0_host_"): value for name, value in port.values.items() if "count" not in name}
    assert own == {
        "enable": int(HostEnable(0x3FF)), "rate": 9, "sending": 0,
    }  # fmt: skip
    # Two octets and four of the MAC address; the same again; the VLAN.
    assert port.memory[128:134].tolist() == [0x0200, 0x00000009, 0x02000000, 0x00098100, 0, 5 << 16]
    assert port.memory[160 + 7 : 160 + 9].tolist() == [0xC0A80132] * 2
    assert port.memory[176 + 6 : 176 + 14].tolist() == [0xFD000000, 0, 0, 5] * 2
    assert port.memory[192] == 862
    assert port.memory[240 + 13] == 0x7FFF0000
    assert port.memory[88:96].tolist() == [0xFF000000, 0x0A000000, 0, 1, 0, 1, 0, 1]
    assert port.memory[96:128].tolist() == [0, 1] * 16
    assert HostSettings("10.0.0.1").enable == HostEnable.ARP | HostEnable.PING4


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ipv4": "fd00::1"}, "fd00::1 is not an IPv4 address: give it as ipv6"),
        ({"ipv4": "224.0.0.1"}, "224.0.0.1 can't be the address of a host"),
        ({"mac": "01:00:00:00:00:00"}, "is not the address of one host"),
        ({"vlan": 4096}, "VLAN 4096 is out of range: give 0 to 4095"),
        ({"access": ("10.0.0.0/8",) * 5}, "5 IPv4 networks are too many for the access list"),
    ],
)
def test_settings_that_can_not_be_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        HostSettings(**fields)


# Streams ------------------------------------------------------------------------------------------

DOCUMENT = """\
streams:
  - {name: there, from: 10.0.1.2, via: 10.0.1.1, ipv4: {destination: 10.0.2.2}, length: 100, pps: 1000, vlan: [9]}
  - {name: near, from: 10.0.1.2, ipv4: {destination: 10.0.1.7}, length: 100, pps: 1000, vlan: [9]}
  - {name: bare, length: 100, pps: 1000, id: 9}
"""


def test_a_document_needs_no_mac() -> None:
    streams = read_document(DOCUMENT)
    assert read_document(write_document(streams)) == streams
    assert streams[0].headers.source_ip == "10.0.1.2"
    port = Port(Host(("10.0.1.1", "10.0.1.7"), bytes.fromhex("02aabbccddee")))
    host = NetworkHost(port.device(), 0)
    neighbours = Neighbours(lambda number: host, lambda: port.now_ns)
    found = neighbours.resolved(streams, {0: 0})
    assert [one.headers.destination_mac for one in found] == ["02:aa:bb:cc:dd:ee"] * 2 + ["02:4c:50:54:00:02"]
    assert [one.headers.source_mac for one in found] == [host.mac] * 2 + ["02:4c:50:54:00:01"]
    assert (host.settings.ipv4, host.settings.vlan) == ("10.0.1.2", 9)
    sent = len(port.sent)
    neighbours.tend()
    assert len(port.sent) == sent
    port.now_ns += TEND_NS
    neighbours.tend()
    assert len(port.sent) == sent + 3  # An announcement, and a question to each neighbour.
    port.values["port0_host_sending"] = 1  # The line is full: nothing is sent, and nothing stops the streams.
    port.now_ns += TEND_NS
    neighbours.tend()
    assert len(port.sent) == sent + 3


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("from: 10.0.1.2", "from: 10.0.1.3", "10.0.1.2 and 10.0.1.3, and its host has one IPv4 address"),
        ("from: 10.0.1.2", "from: 10.0.1.2, vlan: [5]", "no tag and 5, and its host has one VLAN"),
        ("from: 10.0.1.2, vlan: [3, 4]", "from: 10.0.1.2", "has several VLAN tags, and a host is in one VLAN"),
    ],
)
def test_streams_that_contradict_each_other_are_refused(first: str, second: str, message: str) -> None:
    more = "ipv4: {destination: 10.0.1.7}, length: 100, pps: 10"
    streams = read_document(f"streams:\n  - {{{first}, {more}}}\n  - {{{second}, {more}}}\n")
    host = NetworkHost(Port(Host(())).device(), 0)
    with pytest.raises(UsageError, match=message):
        Neighbours(lambda number: host, lambda: 0).resolved(streams, {0: 0})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("via: 10.0.1.1", "'via' names a router, which is asked from an address: give 'from', too"),
        ("from: 10.0.1.2, ipv4: {source: 10.0.1.3}", "'from' is in the place of the source of the IP header"),
        ("from: fd00::1", "are of different families: give all of IPv4 or all of IPv6"),
        ("from: 10.0.1.2, via: fd00::1", "are of different families"),
        ("from: 10.0.1.2, ethertype: 0x88b5, probe: false", "'from' is of IP, which these headers don't have"),
        ("from: nobody", "'from' is not 'nobody': give an IPv4 or IPv6 address"),
    ],
)
def test_keys_that_can_not_be_are_refused_with_their_line(keys: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        read_document(f"streams:\n  - {{length: 100, pps: 10, {keys}}}\n")
    assert "streams.yaml" in str(raised.value)


def test_a_probe_without_hosts_says_how_to_get_one() -> None:
    parts = Part.GENERATE | Part.STREAMS | Part.MEASURE
    assert "was built without the part hosts: build and load one with --hosts, where its board has room" in lacking(
        "etherbone://x", parts, Part.HOSTS
    )
    assert "preset=tester and generator have it" in lacking("sim://loopback", parts, Part.HOSTS)


def test_a_port_without_a_host_says_which_one_has() -> None:
    with pytest.raises(UsageError) as raised:
        NetworkHost(Port(Host(())).device(), 1)
    assert str(raised.value) == (
        "port 1 of model has no host, port 0 has: use that one, or build and load one with --hosts 0,1, where its board has room"
    )


def test_an_access_list_has_masks_and_addresses_and_refuses_a_fifth_of_a_kind() -> None:
    networks = [(bytes([10, 1, 2, 3]), 20), (bytes(range(16)), 72)]
    words = access_words(networks)
    assert words[:4] == [0xFFFFF000, 0x0A010000, 0, 1]
    assert words[8:18] == [0xFFFFFFFF, 0x00010203, 0xFFFFFFFF, 0x04050607, 0xFF000000, 0x08000000, 0, 0, 0, 1]
    with pytest.raises(ValueError, match="4 entries of a kind"):
        access_words([networks[0]] * 5)
    with pytest.raises(UsageError, match="5 IPv6 networks are too many for the access list: give 4 at most"):
        HostSettings("10.0.0.1", access=("fd00::/16",) * 5)
    assert len(HostSettings("10.0.0.1", access=("fd00::/16",) * 4 + ("10.0.0.0/8",) * 4).access) == 8
