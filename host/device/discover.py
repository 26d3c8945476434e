# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Finds probes on the network: asks every address of it by Etherbone, and reads what answers says of itself, without a map.

A probe answers to nothing but requests to its own address, so each address is asked, and not all at once.
"""

import ipaddress
import json
import re
import socket
import struct
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from liteprobe.cores.formats import TICKS_PER_SECOND, preset_of
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.device.link.base import Words
from liteprobe.host.device.link.etherbone import DEFAULT_PORT, EtherboneLink, Patience, decode_reply, encode
from liteprobe.host.device.registers import IDENTIFIER, IDENTIFIER_WORDS, characters

ARP_TABLE = Path("/proc/net/arp")
COMPLETE = 0x2
TIMEOUT_S = 5.0
ETHERTYPE_ARP, BROADCAST = 0x0806, b"\xff" * 6
#: Of ARP for IPv4 over Ethernet (RFC 826): Ethernet header, kinds and lengths, operation, sender, target.
ARP = struct.Struct(">6s6sH2sH2sH6s4s6s4s")
REQUEST, REPLY = 1, 2
ETHERNET, IPV4, LENGTHS = b"\x00\x01", 0x0800, b"\x06\x04"


def interfaces(said: str | None = None) -> dict[str, list[ipaddress.IPv4Interface]]:
    """Return the IPv4 addresses of each interface that is up, loopback left out.

    ``said``: what ``ip -json -4 addr`` printed; None: ask it. Where there is no ``ip`` that can be understood, the
    network is guessed from the address that this host would send from: /24.
    """
    if said is None:
        said = _said("ip", "-json", "-4", "addr")
    try:
        return _read(json.loads(said))
    except (ValueError, LookupError, TypeError, AttributeError):  # Of another ip, as of BusyBox.
        return _guess()


def neighbours(text: str | None = None) -> dict[str, str]:
    """Return the MAC address of each neighbour that this host knows, by IPv4 address; ``text``: Linux's table, else it is read."""
    if text is None and not ARP_TABLE.exists():
        return _neighbours_of_arp()
    text = ARP_TABLE.read_text(encoding="utf-8") if text is None else text
    rows = [line.split() for line in text.splitlines()[1:]]
    return {row[0]: row[3] for row in rows if len(row) >= 6 and int(row[2], 16) & COMPLETE}


def arp_macs(interface: str, own: str, address: str, wait_s: float) -> set[str] | None:
    """Ask by ARP who has ``address``, and return the MAC addresses of all who say so; None: this user may not ask.

    ``own``: IPv4 address of this host there.
    ``wait_s``: for answers (s).
    """
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE_ARP)) as line:
            line.bind((interface, ETHERTYPE_ARP))
            mac = line.getsockname()[4]
            line.send(arp_request(mac, own, address))
            frames = []
            end_s = time.monotonic() + wait_s
            while (left_s := end_s - time.monotonic()) > 0:
                line.settimeout(left_s)
                try:
                    frames.append(line.recv(2048))
                except TimeoutError:
                    break
    except (AttributeError, OSError):  # Not Linux; no right to.
        return None
    return {mac for frame in frames if (mac := sender_of(frame, address))}


def arp_request(mac: bytes, own: str, address: str) -> bytes:
    """Return the frame that asks who has ``address``."""
    packed, asked = socket.inet_aton(own), socket.inet_aton(address)
    return ARP.pack(BROADCAST, mac, ETHERTYPE_ARP, ETHERNET, IPV4, LENGTHS, REQUEST, mac, packed, bytes(6), asked)


def sender_of(frame: bytes, address: str) -> str | None:
    """Return the MAC address of who says in ``frame`` to have ``address``; None: it says something else."""
    if len(frame) < ARP.size:
        return None
    _, _, kind, hardware, protocol, lengths, operation, mac, sender, _, _ = ARP.unpack_from(frame)
    is_reply = (kind, hardware, protocol, lengths, operation) == (ETHERTYPE_ARP, ETHERNET, IPV4, LENGTHS, REPLY)
    return ":".join(f"{octet:02x}" for octet in mac) if is_reply and sender == socket.inet_aton(address) else None


# # #


def _said(*command: str) -> str:
    """Return what a program prints; "": it isn't here, can't run, or doesn't end."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=TIMEOUT_S
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _read(entries: list[dict[str, Any]]) -> dict[str, list[ipaddress.IPv4Interface]]:
    found: dict[str, list[ipaddress.IPv4Interface]] = {}
    for entry in entries:
        flags = entry.get("flags", [])
        if "UP" not in flags or "LOOPBACK" in flags:
            continue
        addresses = [
            ipaddress.IPv4Interface(f"{info['local']}/{info['prefixlen']}") for info in entry.get("addr_info", [])
        ]
        if addresses:
            found[entry["ifname"]] = addresses
    return found


def _neighbours_of_arp() -> dict[str, str]:
    """Return what the program arp prints, which macOS and Windows have."""
    said = _said("arp", "-a")
    pairs = re.findall(r"(\d+\.\d+\.\d+\.\d+)\W+(?:at )?((?:[0-9a-f]{1,2}[:-]){5}[0-9a-f]{1,2})", said.lower())
    return {address: mac.replace("-", ":") for address, mac in pairs}


def _guess() -> dict[str, list[ipaddress.IPv4Interface]]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # Nothing is sent: RFC 5737.
        except OSError:
            return {}
        return {"default": [ipaddress.IPv4Interface(f"{asking.getsockname()[0]}/24")]}


# Registers lie in pages; which module has which page is another one in each build.
CSR_BASE, PAGE, PAGES = 0xF0000000, 0x800, 32
#: Words of each page that are read first. The first one tells the identifier; in one of the others the probe's own module has
#: ticks_per_second: behind map_hash, parts, ports, record_depth, and start, where it can send.
LOOKED_AT = (0, 4, 5)
LARGEST_NETWORK = 1024  # Addresses.
PACE, PACE_S = 16, 0.002  # So many requests, then a pause: a host has room for few addresses that it doesn't know yet.
LOCALHOST = "127.0.0.1"
PATIENCE = Patience(timeout_s=0.2, tries=5)


@dataclass(frozen=True)
class ProbeAddress:
    """Says where a probe may be."""

    address: str  # IPv4.
    port: int = DEFAULT_PORT
    #: ``interface``, ``own``: through which interface of this host it is reached, and this host's address there; "": not
    #: known.
    interface: str = ""
    own: str = ""


@dataclass(frozen=True)
class FoundProbe:
    """Describes a probe that has answered."""

    place: ProbeAddress
    #: What the build calls itself: ``liteprobe on <board>``; "": it isn't a LiteProbe, or of another make.
    identifier: str
    preset: str  # What is built in; "": not known.
    ports: int  # Test ports; 0: not known.
    map_hash: int  # Of its register map, which tells one build from another; 0: not known.
    #: MAC addresses that answered for its address; of localhost and behind a router there are none.
    macs: tuple[str, ...]
    answers: int  # To the one request that was sent: more than 1 where two have one address.

    @property
    def url(self) -> str:
        port = "" if self.place.port == DEFAULT_PORT else f":{self.place.port}"
        return f"etherbone://{self.place.address}{port}"

    @property
    def is_shared(self) -> bool:
        """Whether two have this address."""
        return len(self.macs) > 1 or self.answers > 1


def places(targets: Iterable[str] = (), port: int = DEFAULT_PORT) -> tuple[list[ProbeAddress], list[str]]:
    """Return where to look, and what was left out.

    ``targets``: addresses, names, networks (``192.168.1.0/24``), each of the first two with or without ``:PORT``; none:
    all networks that this host is in, and localhost.
    ``port``: UDP port where a target names none.
    Raises UsageError when a target can't be understood.
    """
    found: list[ProbeAddress] = []
    skipped: list[str] = []
    here = interfaces()
    for target in targets:
        if "::" in target or target.count(":") > 1:
            raise UsageError(
                f"'{target}' is an IPv6 address, and probes speak IPv4 alone: write it like 192.168.1.50:{DEFAULT_PORT}"
            )
        if "/" in target:
            found += _within(_network(target), here, port)
        else:
            host, colon, number = target.partition(":")
            if colon and not (number.isdecimal() and 0 < int(number) < 1 << 16):
                raise UsageError(f"'{target}' has no port: write it like 192.168.1.50:{DEFAULT_PORT}")
            found.append(_place(_address(host), int(number) if colon else port, here))
    if targets:
        return list(dict.fromkeys(found)), skipped
    for name, addresses in here.items():
        for address in addresses:
            if address.network.num_addresses > LARGEST_NETWORK:
                skipped.append(
                    f"{address.network} ({name}) is too large to ask each address: name one, or a part of it"
                )
            else:
                found += _within(address.network, here, port)
    return list(dict.fromkeys([*found, ProbeAddress(LOCALHOST, port)])), skipped


def discover(asked: Iterable[ProbeAddress], wait_s: float = 1.0) -> list[FoundProbe]:
    """Return the probes at these places, in their order; ``wait_s``: for answers, after the last request (s)."""
    before = neighbours()
    answers = _ask(list(asked), wait_s)
    after = neighbours()
    found = []
    for place, (count, words) in answers.items():
        known = {table[place.address] for table in (before, after) if place.address in table}
        if place.interface:
            known |= arp_macs(place.interface, place.own, place.address, min(wait_s, 0.3)) or set()
        found.append(_look(place, count, words, tuple(sorted(known))))
    return found


# # #


def _network(text: str) -> ipaddress.IPv4Network:
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError as error:
        raise UsageError(f"'{text}' is not a network ({error}): write it like 192.168.1.0/24") from None
    if network.num_addresses > LARGEST_NETWORK:
        raise UsageError(
            f"{text} has {network.num_addresses} addresses: give a network of {LARGEST_NETWORK} or fewer (/22)"
        )
    return network


def _address(host: str) -> str:
    try:
        return socket.gethostbyname(host)
    except (OSError, UnicodeError):
        raise UsageError(f"'{host}' has no address: give an IP address, or a network like 192.168.1.0/24") from None


Interfaces = Mapping[str, list[ipaddress.IPv4Interface]]


def _place(address: str, port: int, here: Interfaces) -> ProbeAddress:
    for name, addresses in here.items():
        for own in addresses:
            if ipaddress.IPv4Address(address) in own.network:
                return ProbeAddress(address, port, name, str(own.ip))
    return ProbeAddress(address, port)


def _within(network: ipaddress.IPv4Network, here: Interfaces, port: int) -> list[ProbeAddress]:
    own = {str(address.ip) for addresses in here.values() for address in addresses}
    hosts = network.hosts() if network.prefixlen < 31 else iter(network)
    return [_place(str(host), port, here) for host in hosts if str(host) not in own]


def _ask(asked: list[ProbeAddress], wait_s: float) -> dict[ProbeAddress, tuple[int, Words]]:
    """Ask each place once, and return how often it answered, and with what."""
    addresses = [CSR_BASE + PAGE * page + 4 * word for page in range(PAGES) for word in LOOKED_AT]
    answers: dict[ProbeAddress, tuple[int, Words]] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        for number, place in enumerate(asked):
            try:
                line.sendto(encode(number, addresses), (place.address, place.port))
            except OSError:
                continue  # No way to it.
            if number % PACE == PACE - 1:
                _take(line, asked, answers, PACE_S)
        _take(line, asked, answers, wait_s)
    return {place: answers[place] for place in asked if place in answers}


def _take(
    line: socket.socket, asked: list[ProbeAddress], answers: dict[ProbeAddress, tuple[int, Words]], wait_s: float
) -> None:
    """Take what comes in a time."""
    end_s = time.monotonic() + wait_s
    while (left_s := end_s - time.monotonic()) > 0:
        line.settimeout(left_s)
        try:
            datagram, (address, port) = line.recvfrom(2048)
        except TimeoutError:
            return
        except OSError:
            continue  # The refusal of an earlier datagram (Windows).
        reply = decode_reply(datagram)
        if reply is None or reply.identifier >= len(asked) or len(reply.words) != PAGES * len(LOOKED_AT):
            continue
        place = asked[reply.identifier]
        if (place.address, place.port) == (address, port):
            count, words = answers.get(place, (0, reply.words))
            answers[place] = (count + 1, words)


def _look(place: ProbeAddress, count: int, words: Words, macs: tuple[str, ...]) -> FoundProbe:
    """Return what a probe says of itself: of its first answer, and of what is read more."""
    table = words.reshape(PAGES, len(LOOKED_AT))
    identifier, facts = "", [0, 0, 0]
    try:
        link = EtherboneLink(place.address, place.port, PATIENCE)
    except ProbeError:
        return FoundProbe(place, identifier, "", 0, 0, macs, count)
    try:
        for page in np.flatnonzero(table[:, 0] == ord(IDENTIFIER[0])):
            text = characters(link.read(CSR_BASE + PAGE * int(page), IDENTIFIER_WORDS))
            identifier = text if text.startswith(IDENTIFIER) else identifier
        for page in np.flatnonzero((table[:, 1:] == TICKS_PER_SECOND).any(axis=1)):
            facts = link.read(CSR_BASE + PAGE * int(page), 3).tolist()
    except ProbeError:
        pass  # It has answered once, and no more: that is said.
    finally:
        link.close()
    map_hash, parts, ports = facts
    return FoundProbe(place, identifier, _preset(parts), ports, map_hash, macs, count)


def _preset(parts: int) -> str:
    try:
        return preset_of(parts) if parts else ""
    except ValueError:
        return ""
