# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The networks that this host is in, and its neighbours' MAC addresses."""

import ipaddress
import json
import re
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

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

    Parameters
    ----------
    said : str or None
        What ``ip -json -4 addr`` printed; None: ask it. Where there is no ``ip`` that can be understood, the network is guessed
        from the address that this host would send from: /24.
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

    Parameters
    ----------
    interface : str
    own : str
        IPv4 address of this host there.
    address : str
    wait_s : float
        For answers (s).
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
