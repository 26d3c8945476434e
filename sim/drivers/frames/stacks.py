# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Frames with every stack of headers that the parser knows, made by scapy; and frames that are broken on purpose."""

import random
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import (
    ICMPv6EchoRequest, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, PadN,
)
from scapy.layers.ipsec import AH
from scapy.layers.l2 import ARP, GRE, Dot1AD, Dot1Q, Ether
from scapy.layers.sctp import SCTP
from scapy.packet import Packet, Raw

from liteprobe.cores.formats import SIGNATURE
from liteprobe.sim.models.traffic.trains import ProbeFrame

MACS: dict[str, Any] = {"dst": "02:4c:50:00:00:02", "src": "0e:4c:50:aa:bb:01"}
ENDS_IPV4: dict[str, Any] = {"src": "198.18.0.1", "dst": "203.0.113.77"}
NUMBERS = {
    IPv6ExtHdrHopByHop: 0,
    TCP: 6,
    UDP: 17,
    IPv6ExtHdrRouting: 43,
    IPv6ExtHdrFragment: 44,
    GRE: 47,
    ICMPv6EchoRequest: 58,
    IPv6ExtHdrDestOpt: 60,
    SCTP: 132,
}
ENDS_IPV6: dict[str, Any] = {"src": "2001:db8::1234:5", "dst": "2001:2:0:aa::fe"}


def tags(count: int, rng: random.Random) -> list[Packet]:
    """Return tags: a service tag, or none, before customer tags."""
    services = rng.randrange(2) if count else 0  # tshark reads two in a row as one tag of another kind.
    kinds = [Dot1AD] * services + [Dot1Q] * (count - services)
    return [kind(vlan=rng.randrange(1, 4095), prio=rng.randrange(8), dei=rng.randrange(2)) for kind in kinds]


def labels(count: int, rng: random.Random) -> list[Packet]:
    """Return a stack of labels with its bottom marked."""
    return [
        MPLS(label=rng.randrange(16, 1 << 20), cos=rng.randrange(8), s=place == count - 1, ttl=rng.randrange(256))
        for place in range(count)
    ]


def transports(rng: random.Random, *, ipv6: bool) -> list[Packet]:
    """Return what stands behind IP, with its payload."""
    ports: dict[str, Any] = {"sport": rng.randrange(1, 1 << 16), "dport": rng.randrange(1, 1 << 16)}
    probe = SIGNATURE.to_bytes(4) + rng.randbytes(14)
    return [
        TCP(**ports, seq=rng.randrange(1 << 32), flags=rng.randrange(512), window=rng.randrange(1 << 16)) / Raw(b"payload"),
        UDP(**ports) / Raw(probe),
        UDP(**ports) / Raw(rng.randbytes(9)),
        SCTP(**ports, tag=7) / Raw(bytes(16)),
        ICMPv6EchoRequest() / Raw(b"abc") if ipv6 else ICMP(type=8, code=0) / Raw(b"abc"),
        GRE(proto=0x6558) / Raw(bytes(20)),
    ]


def extensions(rng: random.Random) -> list[list[Packet]]:
    """Return chains of up to two extension headers."""
    options = [PadN(optdata=bytes(rng.choice([4, 12])))]
    one: list[Packet] = [
        IPv6ExtHdrHopByHop(options=options),
        IPv6ExtHdrRouting(addresses=["2001:db8::77"]),
        IPv6ExtHdrFragment(offset=0, m=1, id=99),
        IPv6ExtHdrFragment(offset=185, m=1, id=99),
        IPv6ExtHdrFragment(offset=0, m=0, id=98),
        IPv6ExtHdrDestOpt(options=options),
        AH(spi=1, seq=2, icv=bytes(12), payloadlen=4),
    ]
    chains = [(), *((first,) for first in one), *product(one, one)]
    return [[header.copy() for header in chain] for chain in chains if len({type(header) for header in chain}) == len(chain)]


def packets(rng: random.Random) -> Iterator[Packet]:
    """Yield every kind of layer 3 with every transport."""
    yield ARP(op=1, psrc="192.0.2.1", pdst="192.0.2.2")
    yield ARP(op=2, psrc="192.0.2.2", pdst="192.0.2.1", hwsrc=MACS["src"], hwdst=MACS["dst"])
    for transport in transports(rng, ipv6=False):
        common = {**ENDS_IPV4, "tos": rng.randrange(256), "id": rng.randrange(1 << 16), "ttl": 63}
        for more in ({}, {"flags": "DF"}, {"flags": "MF"}, {"frag": 185}, {"frag": 185, "flags": "MF"}):
            yield IP(**common, **more) / transport.copy()
        yield IP(**common, options=[IPOption_NOP()] * rng.randrange(1, 41)) / transport.copy()
    for transport in transports(rng, ipv6=True):
        for chain in extensions(rng):
            packet = IPv6(**ENDS_IPV6, tc=rng.randrange(256), fl=rng.randrange(1 << 20), hlim=rng.randrange(1, 256))
            for header in [*chain, transport]:
                if AH in packet and isinstance(packet.lastlayer(), AH):
                    packet[AH].nh = NUMBERS[type(header)]  # scapy knows it not by itself.
                packet = packet / header.copy()
            yield packet


@cache
def stacks(seed: int = 1) -> tuple[bytes, ...]:
    """Return frames of at least 60 octets: every packet plain, and each below every count of tags and labels in turn."""
    rng = random.Random(seed)
    counts = list(product(range(5), range(5)))
    frames = []
    for number, packet in enumerate(packets(rng)):
        for tag_count, label_count in [(0, 0), counts[number % len(counts)], (4, 4)]:
            frame = Ether(**MACS)
            for tag in tags(tag_count, rng):
                frame = frame / tag
            # No label protocol carries ARP.
            for label in [] if ARP in packet else labels(label_count, rng):
                frame = frame / label
            frames.append(bytes(frame / packet.copy()).ljust(60, b"\0"))
    return tuple(frames)


def broken(frame: bytes, rng: random.Random) -> bytes:
    """Return a frame with something wrong: octets changed, a part cut, doubled, or put into another place."""
    octets = bytearray(frame)
    for _ in range(rng.randrange(4)):
        octets[rng.randrange(12, min(90, len(octets)))] = rng.choice([0, 0xFF, rng.randrange(256)])
    kind = rng.randrange(6)
    if kind == 0:
        del octets[rng.randrange(1, len(octets)) :]
    elif kind == 1:
        place = rng.randrange(12, min(80, len(octets)))
        octets[place:place] = octets[place - rng.randrange(1, 9) : place]
    elif kind == 2:
        place = 2 * rng.randrange(6, min(80, len(octets)) // 2)
        octets[place : place + 2] = rng.choice([b"\x81\x00", b"\x88\xa8", b"\x91\x00", b"\x88\x47", b"\x08\x00", b"\x86\xdd"])
    elif kind == 3:
        return bytes(rng.choice([rng.randrange(256), 0x45, 0x60, 0x81, 0]) for _ in range(rng.randrange(1, 120)))
    return bytes(octets)


def fuzz(count: int, seed: int) -> Iterator[bytes]:
    """Yield broken frames, and whole ones among them; the seed is of what is broken (Scapy takes 1.5 s for stacks)."""
    rng = random.Random(seed)
    whole = [*stacks(), *(ProbeFrame(60 + length, ipv6=bool(length)).octets(length, 1 << 40) for length in (0, 20))]
    for _ in range(count):
        yield broken(rng.choice(whole), rng)
