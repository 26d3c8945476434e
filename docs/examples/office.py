# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Traffic of a small office: what a probe beside its router sees on the LAN (port 0) and on the uplink (port 1).

Writes lan.pcap and uplink.pcap, 4.4 ms of each, with scapy (./run setup test). office.pcapng and office.blocks are what the
simulated probe captured of them (README.md, "A small office").
"""

from decimal import Decimal

from scapy.layers.dns import DNS, DNSQR, DNSRR
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

ROUTER, PUBLIC, VOICE_VLAN, UPLINK_VLAN = "10.0.1.1", "198.51.100.2", 20, 100
BEGIN_S = Decimal(1_764_000_000)
BRIDGE = Ether(src="02:00:00:00:01:fe", dst="01:80:c2:00:00:00") / Raw(bytes(46))  # Before and after all others.
QUIET_US, ENDS_US = 1200, 4400  # While the capture is set up, and until the traffic begins anew.
Timed = tuple[float, Packet]  # Microseconds, frame.


def mac(host: int) -> str:
    """Return the MAC address of host 10.0.1.``host``."""
    return f"02:00:00:00:01:{host:02x}"


def on_lan(packet: Packet, sender: int, receiver: int = 1) -> Packet:
    """Return a frame between two hosts of the LAN; 1 is the router."""
    return Ether(src=mac(sender), dst=mac(receiver)) / packet


def on_uplink(packet: Packet, is_out: bool) -> Packet:
    """Return a frame between the router and the provider, in the provider's VLAN."""
    ends = ["02:00:00:00:02:01", "02:00:00:00:02:fe"]
    source, target = ends if is_out else ends[::-1]
    return Ether(src=source, dst=target) / Dot1Q(vlan=UPLINK_VLAN) / packet


def session(host: int, server: str, begin_us: float, port: int, answers: list[int]) -> tuple[list[Timed], list[Timed]]:
    """Return a TCP session of a host as both lines see it: a request, and answers of so many octets each."""
    lan, uplink, now, sent, got = [], [], begin_us, 1000, 5000
    source_port = 49152 + 7 * host

    def step(flags: str, octets: int, is_out: bool) -> None:
        nonlocal now, sent, got
        load, ttl = Raw(bytes(at * 31 % 251 for at in range(octets))), 64 if is_out else 56
        ends = (f"10.0.1.{host}", server) if is_out else (server, f"10.0.1.{host}")
        public = (PUBLIC, server) if is_out else (server, PUBLIC)
        ports = (source_port, port) if is_out else (port, source_port)
        numbers = (sent, got) if is_out else (got, sent)
        tcp = TCP(sport=ports[0], dport=ports[1], seq=numbers[0], ack=numbers[1], flags=flags, window=64240)
        inside = IP(src=ends[0], dst=ends[1], ttl=ttl, id=host * 100 + int(now) % 97, flags="DF") / tcp / load
        outside = IP(src=public[0], dst=public[1], ttl=ttl - 1, id=host * 100 + int(now) % 97, flags="DF") / tcp / load
        first = on_lan(inside, host) if is_out else on_lan(inside, 1, host)
        lan.append((now + (0 if is_out else 9), first))
        uplink.append((now + (9 if is_out else 0), on_uplink(outside, is_out)))
        length = octets + ("S" in flags or "F" in flags)
        sent, got = (sent + length, got) if is_out else (sent, got + length)
        now += 41 if is_out else 23

    step("S", 0, True)
    step("SA", 0, False)
    step("A", 0, True)
    step("PA", 120, True)
    for octets in answers:
        step("A", octets, False)
    step("A", 0, True)
    step("FA", 0, True)
    step("FA", 0, False)
    step("A", 0, True)
    return lan, uplink


def names(host: int, begin_us: float, name: str, address: str, number: int) -> list[Timed]:
    """Return a question to the router's name server, and its answer."""
    ask = DNS(id=number, rd=1, qd=DNSQR(qname=name))
    tell = DNS(id=number, qr=1, rd=1, ra=1, qd=DNSQR(qname=name), an=DNSRR(rrname=name, ttl=300, rdata=address))
    there = IP(src=f"10.0.1.{host}", dst=ROUTER, id=number) / UDP(sport=40000 + host, dport=53) / ask
    back = IP(src=ROUTER, dst=f"10.0.1.{host}", id=number + 1) / UDP(sport=53, dport=40000 + host) / tell
    return [(begin_us, on_lan(there, host)), (begin_us + 17, on_lan(back, 1, host))]


def neighbours(begin_us: float) -> list[Timed]:
    """Return how host 22 finds the router by IPv6, and an echo."""
    host, router = "2001:db8:1::22", "2001:db8:1::1"
    ask = IPv6(src=host, dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(tgt=router)
    tell = IPv6(src=router, dst=host, hlim=255) / ICMPv6ND_NA(tgt=router, R=1, S=1)
    echo = IPv6(src=host, dst=router) / ICMPv6EchoRequest(id=22, seq=1, data=bytes(32))
    reply = IPv6(src=router, dst=host) / ICMPv6EchoReply(id=22, seq=1, data=bytes(32))
    multicast = Ether(src=mac(22), dst="33:33:ff:00:00:01") / ask
    frames = [multicast, on_lan(tell, 1, 22), on_lan(echo, 22), on_lan(reply, 1, 22)]
    return [(begin_us + 12 * at, frame) for at, frame in enumerate(frames)]


def office() -> tuple[list[Timed], list[Timed]]:
    """Return the frames of the LAN and of the uplink."""
    lan, uplink = [], []
    for at in range(14):  # A call between two telephones, sped up.
        voice = IP(src="10.0.1.31", dst="10.0.1.40", tos=184, id=at) / UDP(sport=16384, dport=16384) / Raw(bytes(52))
        lan.append((200 * at + 5, Ether(src=mac(31), dst=mac(40)) / Dot1Q(vlan=VOICE_VLAN, prio=5) / voice))
    ask = ARP(op=1, hwsrc=mac(22), psrc="10.0.1.22", pdst=ROUTER)
    lan.append((1195, Ether(src=mac(22), dst="ff:ff:ff:ff:ff:ff") / ask))
    lan.append((1207, on_lan(ARP(op=2, hwsrc=mac(1), psrc=ROUTER, hwdst=mac(22), pdst="10.0.1.22"), 1, 22)))
    lan += neighbours(1480)
    for host, begin_us, name, server, port, answers in (
        (20, 30, "www.example.org", "192.0.2.80", 443, [500, 180]),
        (21, 310, "mail.example.net", "203.0.113.25", 993, [90]),
        (22, 1230, "www.example.com", "192.0.2.44", 443, [620, 620, 75]),
        (23, 2050, "updates.example.com", "192.0.2.44", 80, [260]),
        (20, 2360, "www.example.com", "192.0.2.44", 443, [310]),
    ):
        lan += names(host, begin_us, name, server, 7 * host + int(begin_us))
        inside, outside = session(host, server, begin_us + 40, port, answers)
        lan += inside
        uplink += outside
    time_server = IP(src=PUBLIC, dst="203.0.113.123", id=5) / UDP(sport=123, dport=123) / Raw(bytes([0x23]) + bytes(47))
    uplink.append((700, on_uplink(time_server, True)))
    ping = IP(src="203.0.113.9", dst=PUBLIC, id=9) / ICMP(id=1, seq=1) / Raw(bytes(32))
    pong = IP(src=PUBLIC, dst="203.0.113.9", id=10) / ICMP(type=0, id=1, seq=1) / Raw(bytes(32))
    uplink += [(1900, on_uplink(ping, False)), (1911, on_uplink(pong, True))]
    return lan, uplink


def main() -> None:
    """Write both files."""
    for name, frames in zip(("lan.pcap", "uplink.pcap"), office(), strict=True):
        packets = []
        shifted = [(QUIET_US + microseconds, frame) for microseconds, frame in frames]
        for microseconds, frame in sorted([(0, BRIDGE), *shifted, (ENDS_US, BRIDGE)], key=lambda timed: timed[0]):
            octets = bytes(frame)
            packet = Ether(octets.ljust(60, b"\0"))
            packet.time = BEGIN_S + Decimal(round(1000 * microseconds)) / 10**9
            packets.append(packet)
        wrpcap(name, packets, nano=True)
        print(f"{name}: {len(packets)} frames, {sum(map(len, packets))} octets")


if __name__ == "__main__":
    main()
