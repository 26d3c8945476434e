# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The simulated router, spoken to by scapy: what it answers, asks, forwards and refuses (docs/simulation.md, "Router")."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
)
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet

from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system.harness import frame
from liteprobe.sim.drivers.system.wire_run import play

ROUTER = ("02:00:00:00:52:00", "02:00:00:00:52:01")
HOST, PEER = "02:00:00:00:00:01", "02:00:00:00:00:02"
EVERYONE = "ff:ff:ff:ff:ff:ff"


@dataclass
class Seen:
    """Holds what a router did: fates of what came to each of its ports, and the packets that it sent, with their ticks."""

    rows: NDArray[np.void]
    fates: tuple[list[int], list[int]]
    packets: tuple[list[Packet], list[Packet]]
    stamps: tuple[list[int], list[int]]  # ns.


def speak(folder: Path, files: Path, packets: Sequence[tuple[Packet, int]], options: str = "") -> Seen:
    """Send packets to both ports of a router at once, each with the pause that follows it (ns)."""
    frames = [(frame(bytes(packet).ljust(60, b"\0")), pause) for packet, pause in packets]
    rows = play(folder, f"router?latency=1us{options}", frames, files)
    came = [truth.read_pcap(files / f"pins.port{port}.in.pcap") for port in (0, 1)]
    return Seen(
        rows,
        (list(truth.frames_out(rows, 0)["fate"]), list(truth.frames_out(rows, 1)["fate"])),
        ([Ether(octets) for octets in came[0][1]], [Ether(octets) for octets in came[1][1]]),
        (list(map(int, came[0][0])), list(map(int, came[1][0]))),
    )


def assert_sound(packet: Packet) -> None:
    """Checksums as scapy works them out."""
    again = packet.copy()
    for layer in (IP, ICMP):
        if layer in again:
            del again[layer].chksum
    if ICMPv6ND_NS in again or ICMPv6ND_NA in again or ICMPv6EchoReply in again:
        del again[IPv6].payload.cksum
    assert bytes(Ether(bytes(again))) == bytes(packet)


def ask(address: str, sender: str = "10.0.1.2", mac: str = HOST) -> Packet:
    return Ether(src=mac, dst=EVERYONE) / ARP(hwsrc=mac, psrc=sender, pdst=address)


def tell(address: str, mac: str, port: int = 1) -> Packet:
    """The answer of a host to the router."""
    return Ether(src=mac, dst=ROUTER[port]) / ARP(
        op=2, hwsrc=mac, psrc=address, hwdst=ROUTER[port], pdst=f"10.0.{port + 1}.1"
    )


def to_peer(port: int = 0, **fields: object) -> Packet:
    return (
        Ether(src=HOST, dst=ROUTER[port])
        / IP(src="10.0.1.2", dst="10.0.2.9", **fields)
        / UDP(sport=1, dport=2)
        / bytes(40)
    )


def test_it_answers_for_its_own_addresses_alone(stand_in: Path, tmp_path: Path) -> None:
    local = "fe80::ff:fe00:5200"
    solicit = Ether(src=HOST, dst="33:33:ff:00:00:01") / IPv6(src="fd00:0:0:1::2", dst="ff02::1:ff00:1", hlim=255)
    seen = speak(
        stand_in,
        tmp_path,
        [
            (ask("10.0.1.1"), 20_000),
            (ask("10.0.1.3"), 20_000),
            (solicit / ICMPv6ND_NS(tgt="fd00:0:0:1::1") / ICMPv6NDOptSrcLLAddr(lladdr=HOST), 20_000),
            (
                Ether(src=HOST, dst="33:33:ff:00:52:00")
                / IPv6(src="::", dst="ff02::1:ff00:5200", hlim=255)
                / ICMPv6ND_NS(tgt=local),
                20_000,
            ),
            (
                Ether(src=HOST, dst="33:33:ff:00:00:01")
                / IPv6(src="fd00:0:0:1::2", dst="ff02::1:ff00:1", hlim=254)
                / ICMPv6ND_NS(tgt="fd00:0:0:1::1"),
                20_000,
            ),
            (
                Ether(src=HOST, dst=ROUTER[0]) / IP(src="10.0.1.2", dst="10.0.1.1") / ICMP(id=7, seq=3) / b"ping of 40",
                20_000,
            ),
            (
                Ether(src=HOST, dst=ROUTER[0])
                / IPv6(src="fd00:0:0:1::2", dst="fd00:0:0:1::1")
                / ICMPv6EchoRequest(id=7, seq=4, data=b"ping6"),
                20_000,
            ),
        ],
    )
    assert seen.packets[1] == []
    reply, advertised, tested, echo, echo6 = seen.packets[0]
    for packet in (advertised, tested, echo, echo6):
        assert_sound(packet)
    assert [packet.src for packet in seen.packets[0]] == [ROUTER[0]] * 5
    assert (reply.dst, reply[ARP].op, reply[ARP].psrc, reply[ARP].pdst) == (HOST, 2, "10.0.1.1", "10.0.1.2")
    assert (reply[ARP].hwsrc, reply[ARP].hwdst) == (ROUTER[0], HOST)
    assert (advertised.dst, advertised[IPv6].dst, advertised[IPv6].hlim) == (HOST, "fd00:0:0:1::2", 255)
    told = advertised[ICMPv6ND_NA]
    assert (told.tgt, told.R, told.S, told.O) == ("fd00:0:0:1::1", 1, 1, 1)
    assert advertised[ICMPv6NDOptDstLLAddr].lladdr == ROUTER[0]
    assert (tested.dst, tested[IPv6].dst, tested[ICMPv6ND_NA].tgt) == ("33:33:00:00:00:01", "ff02::1", local)
    assert (tested[ICMPv6ND_NA].R, tested[ICMPv6ND_NA].S) == (1, 0)
    assert (echo.dst, echo[ICMP].type, echo[ICMP].id, echo[ICMP].seq) == (HOST, 0, 7, 3)
    assert bytes(echo[ICMP].payload).startswith(b"ping of 40") and echo[IP].src == "10.0.1.1"
    assert (echo6[ICMPv6EchoReply].seq, echo6[ICMPv6EchoReply].data, echo6[IPv6].dst) == (4, b"ping6", "fd00:0:0:1::2")
    # A reply's first octet leaves 1 us after the last octet of the question.
    asked = int(truth.frames_out(seen.rows, 0)["sfd_tick"][0])
    assert seen.stamps[0][0] == 8 * (asked - 7 + 72 + 125 + 7)


def test_it_asks_for_the_next_hop_before_it_forwards(stand_in: Path, tmp_path: Path) -> None:
    seen = speak(
        stand_in,
        tmp_path,
        [
            (to_peer(ttl=9, tos=0xB8, id=1), 2_000),
            (to_peer(ttl=200, id=2), 30_000),
            (tell("10.0.2.9", PEER), 30_000),
            (to_peer(ttl=2, id=3), 30_000),
        ],
    )
    taken, refused, came = truth.TAKEN, truth.REFUSED, truth.DELIVERED
    assert seen.fates == ([came, came, refused, came], [refused, refused, taken, refused])
    assert seen.packets[0] == []
    question, *forwarded = seen.packets[1]
    assert (question.dst, question[ARP].op, question[ARP].psrc, question[ARP].pdst) == (
        EVERYONE,
        1,
        "10.0.2.1",
        "10.0.2.9",
    )
    assert [(packet.src, packet.dst, packet[IP].id, packet[IP].ttl) for packet in forwarded] == [
        (ROUTER[1], PEER, 1, 8),
        (ROUTER[1], PEER, 2, 199),
        (ROUTER[1], PEER, 3, 1),
    ]
    for packet in forwarded:
        assert_sound(packet)
    # The third finds the way known: latency alone, and 8 + 82 + 4 octets that are stored first.
    arrival = truth.frames_in(seen.rows, 1)[2]
    assert int(arrival["sfd_tick"]) - int(arrival["origin_tick"]) == 94 + 125


def test_ipv6_and_vlans_go_the_same_way(stand_in: Path, tmp_path: Path) -> None:
    hop = "fd00:0:0:2::9"
    inner = IPv6(src="fd00:0:0:1::2", dst=hop, hlim=64) / UDP(sport=1, dport=2) / bytes(30)
    answer = (
        IPv6(src=hop, dst="fd00:0:0:2::1", hlim=255) / ICMPv6ND_NA(tgt=hop, S=1) / ICMPv6NDOptDstLLAddr(lladdr=PEER)
    )
    seen = speak(
        stand_in,
        tmp_path,
        [
            (Ether(src=HOST, dst=ROUTER[0]) / Dot1Q(vlan=7) / inner, 30_000),
            (Ether(src=HOST, dst=ROUTER[0]) / inner, 30_000),  # Not in its VLAN.
            (Ether(src=PEER, dst=ROUTER[1]) / Dot1Q(vlan=4094) / answer, 30_000),
        ],
        "&vlan0=7&vlan1=4094",
    )
    question, forwarded = seen.packets[1]
    assert (question.dst, question[Dot1Q].vlan, question[IPv6].dst) == ("33:33:ff:00:00:09", 4094, "ff02::1:ff00:9")
    assert (question[ICMPv6ND_NS].tgt, question[ICMPv6NDOptSrcLLAddr].lladdr) == (hop, ROUTER[1])
    assert_sound(question)
    assert (forwarded.dst, forwarded[Dot1Q].vlan, forwarded[IPv6].hlim) == (PEER, 4094, 63)
    assert bytes(forwarded[UDP]) == bytes((IPv6(bytes(inner)))[UDP])
    assert seen.fates[0] == [truth.DELIVERED, truth.REFUSED, truth.REFUSED]


def test_who_does_not_answer_is_asked_three_times(stand_in: Path, tmp_path: Path) -> None:
    packets = [(to_peer(id=number), 10_000) for number in range(5)]
    seen = speak(
        stand_in, tmp_path, [*packets[:-1], (packets[-1][0], 5_000_000), (to_peer(id=9), 100_000)], "&arp_hold=2"
    )
    assert all(ARP in packet for packet in seen.packets[1])
    stamps = seen.stamps[1]
    assert [later - stamps[0] for later in stamps[:3]] == [0, 1_000_000, 2_000_000]
    assert seen.fates[0] == [truth.REFUSED] * 5 + [truth.REFUSED]
    assert len(stamps) == 6  # The last packet has it asked again.


def test_a_neighbour_is_forgotten_after_its_life(stand_in: Path, tmp_path: Path) -> None:
    steps = [
        (ask("10.0.2.1", "10.0.2.9", PEER), 50_000),  # Who asks is known.
        (to_peer(id=1), 100_000),
        (to_peer(id=2), 40_000),
        (tell("10.0.2.9", PEER), 50_000),
    ]
    seen = speak(stand_in, tmp_path, steps, "&arp_life=100us")
    assert [ARP in packet and packet[ARP].op for packet in seen.packets[1]] == [2, False, 1, False]
    assert [packet[IP].id for packet in seen.packets[1] if IP in packet] == [1, 2]


def test_what_is_not_sound_or_has_no_way_is_refused(stand_in: Path, tmp_path: Path) -> None:
    wrong_sum = to_peer(chksum=0x1234)
    steps = [
        (tell("10.0.2.9", PEER), 10_000),  # Nobody asked.
        (ask("10.0.2.1", "10.0.2.9", PEER), 10_000),
        (to_peer(ttl=1), 10_000),
        (wrong_sum, 10_000),
        (Ether(src=HOST, dst=PEER) / to_peer().payload, 10_000),
        (Ether(src=HOST, dst=EVERYONE) / to_peer().payload, 10_000),
        (Ether(src=HOST, dst=ROUTER[0]) / IP(src="10.0.1.2", dst="192.0.2.1") / UDP() / bytes(30), 10_000),
        (Ether(src=HOST, dst=ROUTER[0]) / IP(src="10.0.1.2", dst="10.0.1.77") / UDP() / bytes(30), 10_000),
        (Ether(src=HOST, dst=ROUTER[0]) / IP(src="10.0.1.2", dst="224.0.0.9") / UDP() / bytes(30), 10_000),
        (Ether(src=HOST, dst=ROUTER[0], type=0x86DD) / bytes(10), 10_000),
        (Ether(src=HOST, dst=ROUTER[0], type=0x0800) / bytes.fromhex("4f00"), 10_000),
        (Ether(src=HOST, dst=ROUTER[0], type=0x88B5) / bytes(50), 10_000),
        (to_peer(id=77), 10_000),
    ]
    seen = speak(stand_in, tmp_path, steps)
    assert seen.fates[0] == [truth.REFUSED, truth.TAKEN, *[truth.REFUSED] * 10, truth.DELIVERED]
    assert [packet[IP].id for packet in seen.packets[1] if IP in packet] == [77]
    for port in (0, 1):
        assert truth.balance(seen.rows, port, 1 - port).holds


def test_the_hop_that_is_set_takes_what_is_not_connected(stand_in: Path, tmp_path: Path) -> None:
    far = Ether(src=HOST, dst=ROUTER[0]) / IP(src="10.0.1.2", dst="198.19.3.4", ttl=33) / UDP() / bytes(30)
    seen = speak(stand_in, tmp_path, [(far, 30_000), (tell("10.0.2.2", PEER), 30_000)], "&next_hop4_1=10.0.2.2")
    question, forwarded = seen.packets[1]
    assert question[ARP].pdst == "10.0.2.2"
    assert (forwarded.dst, forwarded[IP].dst, forwarded[IP].ttl) == (PEER, "198.19.3.4", 32)
    assert_sound(forwarded)
