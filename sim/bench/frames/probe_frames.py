# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Probe frames made by scapy: an independent witness of headers, lengths and checksums."""

import struct

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

from liteprobe.cores.formats import SIGNATURE


def headers_length(tags: int = 0, version: int = 4) -> int:
    """Return the octets before the UDP payload."""
    return 14 + 4 * tags + (20 if version == 4 else 40) + 8


def probe_frame(
    sequence: int,
    tx_stamp: int,
    length: int = 60,
    stream_id: int = 1,
    tags: int = 0,
    version: int = 4,
) -> bytes:
    """Return a probe frame of ``length`` octets without FCS (of its least length, where that is more).

    ``tags`` VLAN tags (the outer of two is an S-tag); ``version`` of IP, 4 or 6; ``tx_stamp`` in ns.
    """
    payload = struct.pack(">IHIQ", SIGNATURE, stream_id, sequence, tx_stamp)
    payload = payload.ljust(length - headers_length(tags, version), b"\xd5")
    frame = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
    for tag in range(tags):
        frame /= (Dot1AD if tags == 2 and tag == 0 else Dot1Q)(vlan=100 + tag, prio=3)
    frame /= IP(src="10.0.0.1", dst="10.0.0.2") if version == 4 else IPv6(src="2001:db8::1", dst="2001:db8::2")
    return bytes(frame / UDP(sport=50000, dport=50001) / payload)


def other_frame(number: int, length: int = 60) -> bytes:
    """Return a UDP frame that is not a probe, told by ``number``."""
    payload = struct.pack(">I", number).ljust(length - headers_length(), b"\x55")
    return bytes(
        Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
        / IP(src="10.0.0.1", dst="10.0.0.2")
        / UDP(sport=1234, dport=1234)
        / payload
    )
