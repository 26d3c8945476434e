# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Filter expressions, by hand and at random, and frames to ask them of."""

import ipaddress
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from liteprobe.sim.drivers.frames.stacks import stacks
from liteprobe.sim.models.receive.filter import FilterKey, key_of
from liteprobe.sim.models.receive.unified import UnifiedHeader, unified_header

UNICAST, MULTICAST = b"\x88\x47", b"\x88\x48"  # Types of MPLS.
EXPRESSIONS = """
ip
ip6
arp
tcp
udp
sctp
icmp
icmp6
igmp
not icmp
ip or arp
ip and not tcp
ip6 and udp
ether proto 0x0806
ether proto \\ip6
ip proto 17
ip proto 6
ip6 proto 58
proto 132
host 198.18.0.1
src host 198.18.0.1
src 198.18.0.1 and dst 203.0.113.77
src and dst 198.18.0.1
src or dst 198.18.0.1
not host 198.18.0.1
ip host 198.18.0.1
arp host 192.0.2.1
net 198
net 198.18
net 198.18.0.0/15
src net 198.18.0.0 mask 255.254.0.0
dst net 203.0.113.64/26
dst net 0.0.0.0/1
net 192.0.2.0/24 and not host 192.0.2.1
ip6 host 2001:db8::1234:5
src net 2001:db8::/32
dst net 2001:2:0:aa::/127
net ::/0
not net 2001:db8::/32
port 80
src port 53
dst port 443
portrange 1024-49151
src portrange 1-1023 and dst portrange 1024-65535
tcp port 80
udp src port 53
port 80 or 443
port (80 or 443)
not port 80
not (tcp and port 80)
host (198.18.0.1 or 192.0.2.1) and not arp
host 198.18.0.1 or 192.0.2.1 and not arp
ether host 02:4c:50:00:00:02
ether src 0e:4c:50:aa:bb:01
ether dst 02:4c:50:00:00:02 and ip
ether broadcast
ip multicast
ip6 multicast
!tcp && !udp
tcp or udp and port 53
tcp and (port 80 or port 443) and net 0.0.0.0/2
not (host 198.18.0.1 and tcp) or icmp6
""".strip().splitlines()

#: What tables can't hold, but this host can tell.
ON_HOST = """
len > 100
less 60
greater 200
len != 60
tcp port 80 or udp port 53
ether multicast
ether proto 0x88cc
tcp[tcpflags] & (tcp-syn|tcp-ack) != 0
tcp[13] = 2
tcp[tcpflags] & tcp-syn != 0 and not tcp[tcpflags] & tcp-ack != 0
ether host 02:4c:50:00:00:02 or ether host 0e:4c:50:00:00:07
""".strip().splitlines()

#: What looks behind tags and labels, or at octets that are fields.
DEEP = """
vlan
vlan and tcp
vlan and vlan
vlan 5 or vlan 7
tcp or vlan
vlan or tcp
not (vlan and tcp)
vlan and not vlan and tcp
mpls
not mpls
mpls and ip
mpls and mpls and ip6
mpls 16 or mpls 17
vlan and mpls
ether proto 0x8848
not ether proto 0x88cc
vlan and tcp[13] & 2 = 0
not tcp[0:2] < 1024
ip6 proto 44
ip6 proto 0
ah
mpls 291954 and mpls 407360
mpls and mpls
ether proto 0x8100
ip[9] = 6
tcp[2:2] > 1024
ether[12:2] = 0x0800
(tcp[tcpflags] & tcp-syn) != 0
60 < len
port 0x50
""".strip().splitlines()

#: Octets of headers by their place, as far as unified headers have them.
OCTETS = """
ip[8] < 5
ip[8] = 64
64 > ip[8]
ip[0] & 0xf != 5
ip[1] & 0xfc = 0x20
ip[2:2] > 100
ip[6] & 0x40 != 0
not ip[6:2] & 0x1fff = 0
ip[9] > 6
ip[9] & 1 = 1
ip[8:2] = 0x4006
ip[12:4] & 0xffff0000 = 0xc6120000
ip[16] >= 224
ip[15:2] < 0x8000
ip6[6] = 44
ip6[7] < 64
ip6[4:2] > 40
ip6[0:4] & 0xfffff != 0
ip6[24] = 0xff
icmp[icmptype] = icmp-echo
icmp[icmptype] = 8
icmp[icmptype] != icmp-echoreply
icmp[0:2] = 0x0800
icmp[icmpcode] < 4 and ip[8] > 1
icmp6[icmp6type] = icmp6-echo
not icmp6[icmp6type] = icmp6-echoreply
arp[6:2] = 1
arp[7] != 2
arp[2:2] = 0x800
arp[14:4] = 0xc0000201
arp[24] < 200
tcp[4:4] > 0x80000000
tcp[12] & 0xf0 = 0x50
tcp[13] & (tcp-syn|tcp-fin) = tcp-syn
tcp[14:2] < 1000
udp[0:4] & 0xffff < 1024
ether[0] & 1 = 0 and ip[16] >= 224
ether[6:4] = 0x0e4c50aa
ether[12:2] > 1500
ether[12] & 0xf0 = 0x80
vlan and ip[8] = 63
mpls and ip[9] & 1 = 0
""".strip().splitlines()

#: What neither tables nor unified headers can tell.
BY_LIBPCAP = """
icmp[4:2] = 1
udp[4:2] > 100
tcp[8:4] = 0
tcp[16:2] = 0
ip[20] = 7
arp[18:4] = 0
ip[2:2] - 20 > 40
stp
llc
isis
rarp
ip protochain 17
ether proto 0x42
ether[14:2] = 5
len - 14 > ip[2:2]
""".strip().splitlines()


@dataclass(frozen=True)
class Frames:
    """Frames, their unified headers and their keys."""

    octets: tuple[bytes, ...]
    headers: tuple[UnifiedHeader, ...]
    keys: tuple[FilterKey, ...]

    @classmethod
    def of(cls, frames: Sequence[bytes]) -> "Frames":
        """Parse frames."""
        headers = tuple(unified_header(frame) for frame in frames)
        return cls(tuple(frames), headers, tuple(map(key_of, headers)))

    def packed(self) -> bytes:
        """Return all headers as they leave the board."""
        return b"".join(header.octets() for header in self.headers)


class RandomExpressions:
    """Expressions whose addresses and ports are those of frames, so that they hold for some."""

    def __init__(self, rng: random.Random, keys: Sequence[FilterKey]) -> None:
        self.rng = rng
        self.addresses = [key.addresses for key in keys if key.addresses]
        self.ports = [key.ports for key in keys if key.ports]
        self.macs = [key.macs for key in keys if key.macs]

    def direction(self) -> str:
        """Return a direction, or none."""
        return self.rng.choice(["", "", "src ", "dst ", "src or dst ", "src and dst "])

    def network(self) -> str:
        """Return a host or a network."""
        address = ipaddress.ip_address(self.rng.choice(self.rng.choice(self.addresses)))
        if self.rng.randrange(2):
            return f"{self.direction()}host {address}"
        length = self.rng.randrange(address.max_prefixlen + 1)
        return f"{self.direction()}net {ipaddress.ip_network((address, length), strict=False)}"

    def port(self) -> str:
        """Return a port or a range."""
        rng = self.rng
        protocol, number = rng.choice(["", "", "tcp ", "udp "]), rng.choice(rng.choice(self.ports))
        if rng.randrange(3):
            return f"{protocol}{self.direction()}port {number}"
        return f"{protocol}{self.direction()}portrange {rng.randrange(number + 1)}-{rng.randrange(number, 65536)}"

    def primitive(self) -> str:
        """Return a primitive."""
        rng = self.rng
        mac = rng.choice(rng.choice(self.macs)).to_bytes(6).hex(":")
        alone = ["ip", "ip6", "arp", "tcp", "udp", "icmp", "icmp6", f"ip proto {rng.choice([1, 2, 6, 17, 132])}"]
        kinds: list[Callable[[], str]] = [self.network, self.network, self.port]
        kinds += [lambda: rng.choice(alone)] * 2
        kinds.append(lambda: f"ether {rng.choice(['src', 'dst', 'host'])} {mac}")
        return rng.choice(kinds)()

    def expression(self, depth: int = 2) -> str:
        """Return an expression."""
        rng = self.rng
        if not depth or not rng.randrange(4):
            return rng.choice(["", "", "", "not "]) + self.primitive()
        parts = [self.expression(depth - 1) for _ in range(rng.randrange(2, 4))]
        joined = parts[0]
        for part in parts[1:]:
            joined += rng.choice([" and ", " or ", " && ", " || "]) + part
        return rng.choice(["", "not "]) + f"({joined})" if rng.randrange(2) else joined


class RandomRules(RandomExpressions):
    """Expressions over all that rules of an emulator are compared with: octets under a mask, types, tags, labels, lengths too."""

    OCTETS: ClassVar = {
        "ip": [*range(20)],
        "ip6": [*range(40)],
        "tcp": [*range(8), *range(12, 16)],
        "udp": [*range(4)],
        "sctp": [*range(4)],
        "icmp": [0, 1],
        "icmp6": [0, 1],
        "arp": [*range(8), *range(14, 18), *range(24, 28)],
        "ether": [*range(14)],
    }

    def relation(self) -> str:
        """Return a relation of one, two or four octets under a mask, or of none."""
        rng = self.rng
        protocol = rng.choice(["ip", "ip", "ip6", "ip6", "tcp", *self.OCTETS])
        count = rng.choice([1, 1, 2, 4])
        places = [
            place for place in self.OCTETS[protocol] if {*range(place, place + count)} <= {*self.OCTETS[protocol]}
        ]
        if not places:
            return self.relation()
        most = (1 << 8 * count) - 1
        mask = rng.choice([None, 0xFC, 1, 0xF0, rng.randint(0, most), most << 4 & most])
        value = rng.choice([rng.randint(0, most), 64, 0, 0x0800, 6, 0x45, rng.randint(0, most) & (mask or most)])
        compare = rng.choice(["=", "==", "!=", "<", "<=", ">", ">=", "="])
        size = rng.choice(["", ":1"]) if count == 1 else f":{count}"
        return f"{protocol}[{rng.choice(places)}{size}]{'' if mask is None else f' & {mask:#x}'} {compare} {value}"

    def primitive(self) -> str:
        """Return a primitive."""
        rng = self.rng
        kinds: list[Callable[[], str]] = [super().primitive] * 4 + [self.relation] * 3
        dscp = rng.randrange(64)
        kinds += [
            lambda: f"ip[1] & 0xfc == {dscp << 2:#x}",
            lambda: f"ip6[0:2] & 0x0fc0 == {dscp << 6:#x}",
            lambda: f"ether proto {rng.choice(['0x88f7', '0x88cc', '0x8035', '0x8100', '0x8847', '0x0806', '35020'])}",
            lambda: rng.choice(["len <= ", "less ", "greater ", "len != ", "len > "]) + str(rng.randrange(58, 400)),
            lambda: rng.choice(["ether multicast", "ether broadcast", "ip multicast", "ip6 multicast", "sctp", "igmp", "ah"]),
            lambda: f"{rng.choice(['', 'ip ', 'ip6 '])}proto {rng.choice([0, 2, 6, 17, 43, 44, 51, 58, 60, 132])}",
        ]
        return rng.choice(kinds)()

    def expression(self, depth: int = 2) -> str:
        """Return an expression, some behind tags or labels."""
        rng = self.rng
        found = super().expression(depth)
        if depth == 2 and not rng.randrange(6):
            behind = rng.choice(["vlan", f"vlan {rng.randrange(4096)}", "vlan and vlan", "mpls", "vlan and mpls"])
            return f"{behind} and ({found})"
        return found


def varied(count: int, rng: random.Random) -> list[bytes]:
    """Return frames of a few hosts that talk to one another in every protocol; fragments among those of IPv4."""
    hosts = [
        [bytes([198, 18, *rng.randbytes(2)]) for _ in range(6)] + [bytes([192, 0, 2, 1]), bytes([224, 0, 0, 9])],
        [bytes.fromhex("20010db8") + rng.randbytes(12) for _ in range(6)] + [bytes.fromhex("ff02") + bytes(13) + b"\1"],
    ]
    macs = [bytes.fromhex("024c50") + rng.randbytes(3) for _ in range(4)] + [b"\xff" * 6, bytes.fromhex("01005e000009")]
    ports = [80, 443, 53, 22, *(rng.randrange(1 << 16) for _ in range(6))]
    frames = []
    for _ in range(count):
        is_ipv6 = rng.random() < 0.4
        source, destination = (rng.choice(hosts[is_ipv6]) for _ in range(2))
        macs_of = rng.choice(macs) + rng.choice(macs)
        if rng.random() < 0.1:
            source, destination = (rng.choice(hosts[0]) for _ in range(2))
            octets = bytes.fromhex("08060001080006040001") + macs_of[6:] + source + bytes(6) + destination
            frames.append((macs_of + octets).ljust(60, b"\0"))
            continue
        protocol = rng.choice([6, 6, 17, 17, 132, 58 if is_ipv6 else 1, 2, 47])
        ends = b"".join(rng.choice(ports).to_bytes(2) for _ in range(2))
        payload = ends + rng.randbytes(8) + b"\x50" + rng.randbytes(rng.randrange(7, 200))
        if is_ipv6:
            packet = b"\x60\0\0\0" + len(payload).to_bytes(2) + bytes([protocol, 64]) + source + destination + payload
        else:
            more = rng.choice([0, 0, 0, 0, 0x4000, 0x2000, 0x2005, 5])
            head = b"\x45\0" + (20 + len(payload)).to_bytes(2) + rng.randbytes(2) + more.to_bytes(2)
            packet = head + bytes([64, protocol, 0, 0]) + source + destination + payload
        frames.append((macs_of + (b"\x86\xdd" if is_ipv6 else b"\x08\x00") + packet).ljust(60, b"\0"))
    return frames


def rare(count: int, rng: random.Random) -> list[bytes]:
    """Return RARP, plain and tagged, and MPLS multicast, of hosts that `varied` and `stacks` have, too."""
    hosts = [bytes([192, 0, 2, 1]), bytes([198, 18, 0, 1]), bytes([224, 0, 0, 9]), bytes([198, 18, *rng.randbytes(2)])]
    labelled = [frame for frame in stacks(rng.randrange(1000)) if frame[12:14] == UNICAST]
    frames = []
    for _ in range(count // 2):
        macs = bytes.fromhex("024c50") + rng.randbytes(3) + bytes.fromhex("0e4c50aabb01")
        tag = rng.choice([b"", b"", b"\x81\x00" + rng.randbytes(2)])
        ends = macs[6:] + rng.choice(hosts) + macs[:6] + rng.choice(hosts)
        reverse = bytes.fromhex("803500010800060400")  # Ethernet, IPv4, their sizes.
        frames.append((macs + tag + reverse + bytes([rng.choice([3, 4])]) + ends).ljust(60, b"\0"))
        frame = rng.choice(labelled)
        frames.append(frame[:12] + MULTICAST + frame[14:])
    return frames
