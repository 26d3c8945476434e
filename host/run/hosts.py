# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Gives test ports addresses, and finds the MAC addresses of their neighbours, before frames are sent to these.

Gateware answers for the addresses (docs/design/hosts-and-reflector.md); requests and announcements are whole frames that the
port's mailbox sends.

Source: RFC 826 (ARP); RFC 5227, 3 (announcement); RFC 4861, 4.3, 4.4 and 7.2 (neighbour discovery); RFC 792, RFC 4443, 4 (echo).
"""

import ipaddress
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from liteprobe.cores.formats import Part
from liteprobe.cores.formats.reflect import (
    ACCESS_ENTRIES,
    ACCESS_WORD,
    HEARD_WORD,
    MAIL_WORDS,
    PAGE_WORD,
    SEND_WORD,
    STAMP_PORT,
    HostCount,
    HostEnable,
    HostWords,
    access_words,
    count_register,
    error_estimate,
    mail_frame,
    mail_words,
)
from liteprobe.host.base.defaults import SOURCE_MAC
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.clock.timebase import Timebase
from liteprobe.host.device.link.base import Link
from liteprobe.host.device.registers import Registers
from liteprobe.host.traffic.headers import IPAddress, ip_address, mac_octets, ones_complement_sum
from liteprobe.host.traffic.stream import Stream

ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN = 0x0806, 0x0800, 0x86DD, 0x8100
ICMPV6, SOLICITATION, ADVERTISEMENT = 58, 135, 136
ICMP, ECHO, ECHO_REPLY, ECHO6, ECHO6_REPLY = 1, 8, 0, 128, 129
ECHO_DATA = bytes(range(18))  # With it an echo request of IPv4 fills the shortest frame.
ECHO_OCTETS, ECHO6_OCTETS = 42, 62  # From the destination to the sequence number, without a tag.
BROADCAST = b"\xff" * 6
ALL_NODES_MAC, ALL_NODES = bytes.fromhex("333300000001"), ipaddress.IPv6Address("ff02::1")
OVERRIDE = 0x20
TRIES = 3
LOOKS = 20  # In the time that an answer may take.
TEND_NS = 20_000_000_000  # From one reminder to the next: hosts forget a neighbour after 30 s or more (RFC 4861, 10).
MAC_BASE = bytes.fromhex("024c50540100")  # Of port 0's host; the port is added.


class HostDevice(Protocol):
    """Names what the hosts of a probe need of it."""

    url: str
    link: Link
    registers: Registers
    timebase: Timebase
    port_count: int

    def need(self, part: Part) -> None:
        """Raise UsageError unless a part is built in."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""


@dataclass(frozen=True)
class HostSettings:
    """Settings of the host on a test port; UsageError where they can't be."""

    ipv4: str | None = None
    ipv6: str | None = None
    mac: str | None = None  # None: the port's own.
    vlan: int | None = None  # Identifier of the VLAN that it is in; None: untagged.
    answers_ping: bool = True
    reflects: bool = False  # Whether it answers STAMP.
    stamp_port: int = STAMP_PORT
    is_stateful: bool = False  # Whether STAMP answers are counted for each session.
    has_tlvs: bool = False  # Whether what follows the base of STAMP are TLVs (RFC 8972); else it comes back as it is.
    access: tuple[str, ...] = ()  # Networks whose hosts may use the reflector, like 192.0.2.0/24; none: all.
    rate_per_ms: int = 0  # STAMP and ping answers in a millisecond at most; 0: no limit.

    def __post_init__(self) -> None:
        for text, version in ((self.ipv4, 4), (self.ipv6, 6)):
            if text is not None and (found := ip_address(text)).version != version:
                raise UsageError(f"{found} is not an IPv{version} address: give it as ipv{found.version}")
        for address in self.addresses:
            if address.is_multicast or address.is_unspecified:
                raise UsageError(f"{address} can't be the address of a host: give a unicast address")
        if self.mac is not None and (octets := mac_octets(self.mac)) and (octets[0] & 1 or not any(octets)):
            raise UsageError(f"{self.mac} is not the address of one host: its first octet must be even")
        if self.vlan is not None and not 0 <= self.vlan <= 0xFFF:
            raise UsageError(f"VLAN {self.vlan} is out of range: give 0 to 4095")
        for kind in (4, 6):
            if (count := sum((":" in text) == (kind == 6) for text in self.access)) > ACCESS_ENTRIES:
                raise UsageError(
                    f"{count} IPv{kind} networks are too many for the access list: give {ACCESS_ENTRIES} at most"
                )

    @property
    def addresses(self) -> list[IPAddress]:
        """IP addresses that the host has."""
        return [ip_address(text) for text in (self.ipv4, self.ipv6) if text is not None]

    @property
    def enable(self) -> HostEnable:
        """Bits of what the gateware is to answer."""
        found = HostEnable.NONE
        for has, own in (
            (self.ipv4, (HostEnable.ARP, HostEnable.PING4, HostEnable.STAMP4)),
            (self.ipv6, (HostEnable.ND, HostEnable.PING6, HostEnable.STAMP6)),
        ):
            if has is not None:
                found |= own[0] | own[1] * self.answers_ping | own[2] * self.reflects
        found |= HostEnable.STATEFUL * self.is_stateful | HostEnable.ACCESS * bool(self.access)
        found |= HostEnable.TLV * self.has_tlvs
        return found | HostEnable.TAGGED * (self.vlan is not None)


class NetworkHost:
    """The host on a test port.

    Raises UsageError where the probe has none, or has no such port.
    """

    def __init__(self, probe: HostDevice, number: int) -> None:
        probe.need(Part.HOSTS)
        if not 0 <= number < probe.port_count:
            raise UsageError(f"there is no port {number}: give 0 to {probe.port_count - 1}")
        self._probe, self.number = probe, number
        self._registers = probe.registers
        self._prefix = f"port{number}_host_"
        if self._prefix + "enable" not in self._registers.names:
            ports = [one for one in range(probe.port_count) if f"port{one}_host_enable" in self._registers.names]
            raise UsageError(
                f"port {number} of {probe.url} has no host, port {' and '.join(map(str, ports))} has: use that one, or build "
                f"and load one with --hosts {','.join(map(str, sorted([*ports, number])))}, where its board has room"
            )
        self._memory = f"port{number}_frames"
        self.settings = HostSettings()

    @property
    def mac(self) -> str:
        """MAC address that it has."""
        if self.settings.mac is not None:
            return self.settings.mac
        return (int.from_bytes(MAC_BASE) + self.number).to_bytes(6).hex(":")

    def set(self, settings: HostSettings) -> None:
        """Have the host be as ``settings`` say, and announce its addresses to all who know another one for them."""
        self._write(enable=0)
        self.settings = settings
        state, bound_ns = self._probe.timebase.trust()
        words = HostWords(
            mac_octets(self.mac),
            ip_address(settings.ipv4).packed if settings.ipv4 else bytes(4),
            ip_address(settings.ipv6).packed if settings.ipv6 else bytes(16),
            settings.vlan or 0,
            settings.stamp_port,
            error_estimate(bound_ns, state == "locked"),
        ).words
        access = access_words(_entry(text) for text in settings.access)
        self._registers.write_memory(self._memory, ACCESS_WORD, access)
        self._registers.write_memory(self._memory, PAGE_WORD, words)
        self._write(rate=settings.rate_per_ms)
        self._write(enable=int(settings.enable))
        self.announce()

    @property
    def is_free(self) -> bool:
        """Whether the last frame of the mailbox has left."""
        return not self._registers.read(self._prefix + "sending")

    def counts(self) -> dict[str, int]:
        """Return what the host has answered, sent, heard and refused since power-up, by name; each wraps at 2^32."""
        names = {one.name.lower(): f"port{self.number}_{count_register(one)}" for one in HostCount}
        values = self._registers.read_many(names.values())
        return {name: values[register] for name, register in names.items()}

    def announce(self, waits: bool = True) -> None:
        """Tell the network which MAC address has the host's addresses: gratuitous ARP, unsolicited advertisement.

        ``waits``: until the line has space for each; else those that find none are left out.
        """
        for address in self.settings.addresses:
            if waits or self.is_free:
                self._send(self._announcement(address))

    def remind(self, address: str) -> None:
        """Ask a neighbour again, so that it keeps the host's address; nobody waits for what it answers."""
        self._send(self._question(ip_address(address)))

    def resolve(self, address: str) -> str:
        """Return the MAC address of a neighbour; ProbeError, which names it, where it doesn't answer."""
        asked = ip_address(address)
        own = [one for one in self.settings.addresses if one.version == asked.version]
        if not own:
            raise UsageError(
                f"the host of port {self.number} has no IPv{asked.version} address to ask {asked} from: give it one"
            )
        if asked in own:
            raise UsageError(f"{asked} is the address of port {self.number} itself: give that of a neighbour")
        wait_s = self._probe.link.arrival_timeout_s / LOOKS
        before = self._heard_count()
        for _ in range(TRIES):
            self._send(self._question(asked))
            for _ in range(LOOKS):
                if (now := self._heard_count()) != before:
                    before = now
                    if (found := self._answer_of(asked)) is not None:
                        return found
                self._probe.wait(wait_s)
        what = "ARP" if asked.version == 4 else "neighbour discovery"
        tag = "" if self.settings.vlan is None else f" in VLAN {self.settings.vlan}"
        raise ProbeError(
            f"{asked} did not answer {what} on port {self.number}{tag} (asked {TRIES} times from {own[0]}): check its address, "
            "the cable, and that both are in one network"
        )

    def echo(self, address: str, mac: str, identifier: int, sequence: int) -> None:
        """Send an echo request to a host, by way of who has ``mac``; `echo_answer` knows what answers it."""
        asked = ip_address(address)
        own = self._own(asked.version)
        body = struct.pack(">BBHHH", ECHO if asked.version == 4 else ECHO6, 0, 0, identifier, sequence) + ECHO_DATA
        if asked.version == 6:
            self._send(self._icmpv6(mac_octets(mac), own, asked, body))
            return
        body = body[:2] + (0xFFFF - ones_complement_sum(body)).to_bytes(2) + body[4:]
        head = struct.pack(">BBHIBBH", 0x45, 0, 20 + len(body), 0, 64, ICMP, 0) + own.packed + asked.packed
        head = head[:10] + (0xFFFF - ones_complement_sum(head)).to_bytes(2) + head[12:]
        self._send(self._frame(mac_octets(mac), ETHERTYPE_IPV4, head + body))

    # # #

    def _write(self, **values: int) -> None:
        self._registers.write_many({self._prefix + name: value for name, value in values.items()})

    def _heard_count(self) -> int:
        return self._registers.read(f"port{self.number}_{count_register(HostCount.HEARD)}")

    def _send(self, frame: bytes) -> None:
        """Have a frame sent, when the line has space for it."""
        wait_s = self._probe.link.arrival_timeout_s / LOOKS
        for _ in range(TRIES * LOOKS):
            if self.is_free:
                break
            self._probe.wait(wait_s)
        else:
            raise ProbeError(
                f"port {self.number} has no space on its line for a frame of its host: send less, or see to its link"
            )
        self._registers.write_memory(self._memory, SEND_WORD, mail_words(frame))
        self._registers.write(self._prefix + "send", len(frame))

    def _answer_of(self, asked: IPAddress) -> str | None:
        """Return the MAC address in the frame that was heard last, where it is the answer of ``asked``."""
        words = self._registers.read_memory(self._memory, HEARD_WORD, MAIL_WORDS)
        frame = mail_frame(words)
        at = 16 if frame[12:14] == ETHERTYPE_VLAN.to_bytes(2) else 12
        kind, packet = int.from_bytes(frame[at : at + 2]), frame[at + 2 :]
        if kind == ETHERTYPE_ARP and asked.version == 4 and packet[14:18] == asked.packed:
            return packet[8:14].hex(":")
        if (
            kind == ETHERTYPE_IPV6
            and asked.version == 6
            and packet[40] == ADVERTISEMENT
            and packet[48:64] == asked.packed
        ):
            # The option of the target's link-layer address, else who the frame is from.
            return (packet[66:72] if packet[64:66] == b"\2\1" else frame[6:12]).hex(":")
        return None

    def _frame(self, to: bytes, kind: int, packet: bytes) -> bytes:
        vlan = self.settings.vlan
        tag = b"" if vlan is None else struct.pack(">HH", ETHERTYPE_VLAN, vlan)
        return to + mac_octets(self.mac) + tag + kind.to_bytes(2) + packet

    def _own(self, version: int) -> IPAddress:
        return next(one for one in self.settings.addresses if one.version == version)

    def _question(self, asked: IPAddress) -> bytes:
        """Return the frame that asks for a MAC address."""
        own = self._own(asked.version)
        if isinstance(asked, ipaddress.IPv4Address):
            return self._frame(BROADCAST, ETHERTYPE_ARP, self._arp(own, asked))
        group = ipaddress.IPv6Address(ipaddress.IPv6Address("ff02::1:ff00:0").packed[:13] + asked.packed[13:])
        body = bytes([SOLICITATION, 0, 0, 0, 0, 0, 0, 0]) + asked.packed + b"\1\1" + mac_octets(self.mac)
        return self._icmpv6(b"\x33\x33" + group.packed[12:], own, group, body)

    def _announcement(self, address: IPAddress) -> bytes:
        if address.version == 4:
            return self._frame(BROADCAST, ETHERTYPE_ARP, self._arp(address, address))
        body = bytes([ADVERTISEMENT, 0, 0, 0, OVERRIDE, 0, 0, 0]) + address.packed + b"\2\1" + mac_octets(self.mac)
        return self._icmpv6(ALL_NODES_MAC, address, ALL_NODES, body)

    def _arp(self, sender: IPAddress, target: IPAddress) -> bytes:
        return (
            struct.pack(">HHBBH", 1, ETHERTYPE_IPV4, 6, 4, 1)
            + mac_octets(self.mac)
            + sender.packed
            + bytes(6)
            + target.packed
        )

    def _icmpv6(self, to: bytes, source: IPAddress, target: IPAddress, body: bytes) -> bytes:
        pseudo = source.packed + target.packed + struct.pack(">II", len(body), ICMPV6)
        total = 0xFFFF - ones_complement_sum(pseudo + body)
        head = struct.pack(">IHBB", 6 << 28, len(body), ICMPV6, 255) + source.packed + target.packed
        return self._frame(to, ETHERTYPE_IPV6, head + body[:2] + total.to_bytes(2) + body[4:])


def echo_answer(frame: bytes, own: str, asked: str) -> tuple[int, int] | None:
    """Return identifier and sequence number of an echo reply from ``asked`` to ``own``; None where the frame is none."""
    source, target = ip_address(asked), ip_address(own)
    at = 16 if frame[12:14] == ETHERTYPE_VLAN.to_bytes(2) else 12
    kind, packet = int.from_bytes(frame[at : at + 2]), frame[at + 2 :]
    if source.version == 4:
        head = 4 * (packet[0] & 15) if packet else 0
        is_reply = (
            kind == ETHERTYPE_IPV4 and packet[9:10] == bytes([ICMP]) and packet[head : head + 1] == bytes([ECHO_REPLY])
        )
        pair = packet[12:16] + packet[16:20]
    else:
        head = 40
        is_reply = kind == ETHERTYPE_IPV6 and packet[6:7] == bytes([ICMPV6]) and packet[40:41] == bytes([ECHO6_REPLY])
        pair = packet[8:40]
    if not is_reply or pair != source.packed + target.packed or len(packet) < head + 8:
        return None
    identifier, sequence = struct.unpack_from(">HH", packet, head + 4)
    return identifier, sequence


def _entry(text: str) -> tuple[bytes, int]:
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        raise UsageError(f"'{text}' is not a network: write it like 192.0.2.0/24") from None
    return network.network_address.packed, network.prefixlen


# Streams ------------------------------------------------------------------------------------------


class Neighbours:
    """Gives the ports of streams their addresses, and the streams the MAC addresses of who is next.

    Parameters
    ----------
    host : callable
        Returns the host of a port.
    now_ns : callable
        Returns the time (ns).
    """

    def __init__(self, host: Callable[[int], NetworkHost], now_ns: Callable[[], int]) -> None:
        self._host, self._now_ns = host, now_ns
        self._asked: list[tuple[NetworkHost, str]] = []
        self._due_ns = 0

    def resolved(self, streams: Sequence[Stream], receivers: Mapping[int, int]) -> list[Stream]:
        """Return the streams with their MAC addresses; those without ``from`` as they are.

        ``receivers``: the port that measures what each port sends; it gets a stream's destination as its address, unless it has
        one of that family, so that a router finds it. Raises UsageError where streams contradict each other, ProbeError, which
        names it, where a neighbour doesn't answer.
        """
        known = [stream for stream in streams if stream.source is not None]
        if not known:
            return list(streams)
        hosts = {number: self._host(number) for number in sorted({one.port for one in known})}
        wanted = {number: _settings_of(number, [one for one in known if one.port == number]) for number in hosts}
        for stream in known:
            other = receivers[stream.port]
            if other == stream.port:
                continue
            hosts.setdefault(other, self._host(other))
            given, address = wanted.get(other, HostSettings()), stream.headers.destination_ip
            if stream.headers.is_ipv6 and given.ipv6 is None:
                given = replace(given, ipv6=address)
            elif not stream.headers.is_ipv6 and given.ipv4 is None:
                given = replace(given, ipv4=address)
            wanted[other] = given
        for number, settings in wanted.items():
            if hosts[number].settings != settings:
                hosts[number].set(settings)
        found = {(one.port, _next(one)): "" for one in known}
        for port, address in found:
            found[port, address] = hosts[port].resolve(address)
            self._asked.append((hosts[port], address))
        self._due_ns = self._now_ns() + TEND_NS
        return [
            stream
            if stream.source is None
            else replace(
                stream,
                headers=replace(
                    stream.headers,
                    source_mac=hosts[stream.port].mac,
                    destination_mac=found[stream.port, _next(stream)],
                ),
            )
            for stream in streams
        ]

    def tend(self) -> None:
        """Remind neighbours of the ports' addresses, now and then, while streams run."""
        if self._asked and self._now_ns() >= self._due_ns:
            self._due_ns = self._now_ns() + TEND_NS
            for host in dict.fromkeys(host for host, _ in self._asked):
                host.announce(waits=False)  # On a line that is full nothing may wait, and no stream be stopped.
            for host, address in self._asked:
                if host.is_free:
                    host.remind(address)


def _next(stream: Stream) -> str:
    """Return the address whose MAC a stream's frames go to."""
    return stream.via if stream.via is not None else stream.headers.destination_ip


def _settings_of(port: int, streams: Sequence[Stream]) -> HostSettings:
    """Return what the host of a port must be for its streams."""

    def one(what: str, values: Iterable[object]) -> object:
        found = list(dict.fromkeys(values))
        if len(found) > 1:
            names = " and ".join("no tag" if value is None else str(value) for value in found[:2])
            raise UsageError(f"streams of port {port} have {names}, and its host has one {what}: give them the same")
        return found[0] if found else None

    for stream in streams:
        if len(stream.headers.vlan_tags) > 1:
            raise UsageError(
                f"stream '{stream.name}' has several VLAN tags, and a host is in one VLAN: leave out 'from', or tags"
            )
    own = {
        name: one(
            f"IPv{name[-1]} address", (each.source for each in streams if each.headers.is_ipv6 == (name == "ipv6"))
        )
        for name in ("ipv4", "ipv6")
    }
    tags = (each.headers.vlan_tags[0] & 0xFFF if each.headers.vlan_tags else None for each in streams)
    macs = [each.headers.source_mac for each in streams if each.headers.source_mac != SOURCE_MAC]
    return HostSettings(
        ipv4=own["ipv4"],  # type: ignore[arg-type]
        ipv6=own["ipv6"],  # type: ignore[arg-type]
        mac=one("MAC address", macs),  # type: ignore[arg-type]
        vlan=one("VLAN", tags),  # type: ignore[arg-type]
    )
