# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes a line of text for each record, as tcpdump does: stamp, port, tags, source > destination, protocol, length.

The words are those of the probe's unified header: no frame is decoded a second time on this host.
"""

import socket
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import IpProtocol, Layer3, UnifiedFlag
from liteprobe.host.capture.write.output import Output
from liteprobe.host.packets import unified
from liteprobe.host.packets.batch import Batch
from liteprobe.host.packets.filter.relations import NAMES
from liteprobe.host.packets.filter.words import PROTOCOLS
from liteprobe.host.packets.frames import WORD_OCTETS

PROTOCOL_NAMES = {number: name.upper() for name, number in reversed(PROTOCOLS.items())}
#: Types of ICMP and of ICMPv6, by protocol and number.
ICMP_TYPES: dict[tuple[int, int], str] = {
    (IpProtocol.ICMPV6 if name.startswith("icmp6-") else IpProtocol.ICMP, number): name.partition("-")[2]
    for name, number in NAMES.items()
    if name.startswith("icmp")
}
TYPES = {
    0x8035: "RARP", 0x8808: "MAC control", 0x8809: "slow protocol", 0x8863: "PPPoE discovery", 0x8864: "PPPoE", 0x888E: "EAPOL",
    0x88CC: "LLDP", 0x88E5: "MACsec", 0x88F7: "PTP",
}  # fmt: skip
LENGTH_MOST = 1500  # Types up to it are lengths: LLC is behind them.
ARP_OPERATIONS = {1: "request", 2: "reply"}
TCP_LETTERS = "FSRP.UEWe"
#: What is said of a frame, by its flags.
REMARKS = {
    UnifiedFlag.FCS_ERROR: "FCS error",
    UnifiedFlag.SYMBOL_ERROR: "symbol error",
    UnifiedFlag.RUNT: "runt",
    UnifiedFlag.GIANT: "giant",
    UnifiedFlag.LENGTH_ERROR: "length of IP is wrong",
    UnifiedFlag.TRUNCATED: "cut within a header",
    UnifiedFlag.UNPARSED: "not read to the end of its headers",
}
#: Fields that no word of a line depends on.
UNSAID = ("stamp", "length", "snap_length", "rule", "way", "hash")
KNOWN_MOST = 1 << 16  # Headers whose words are kept.
MAC_OCTETS, HEAD_OCTETS = 6, 14
SECOND_NS, DAY_S = 10**9, 86_400


@lru_cache(KNOWN_MOST)
def address(kind: int, octets: bytes) -> str:
    """Return an IP address as text; ``kind``: the `Layer3` that it is of."""
    family, size = (socket.AF_INET6, 16) if kind == Layer3.IPV6 else (socket.AF_INET, 4)
    return socket.inet_ntop(family, octets[:size])


@lru_cache(KNOWN_MOST)
def mac(octets: bytes) -> str:
    """Return a MAC as text."""
    return octets.hex(":")


@lru_cache(16)
def _day_time(second: int) -> str:
    minute, second = divmod(second % DAY_S, 60)
    return f"{minute // 60:02}:{minute % 60:02}:{second:02}"


class LineWriter:
    """Writes lines, in the order in which records are given, each frame at once.

    Parameters
    ----------
    shift_ns : int
        Added to every stamp: less 37 s, TAI becomes UTC.
    """

    def __init__(self, output: Output, shift_ns: int = 0) -> None:
        self._output = output
        self._shift = np.uint64(shift_ns % 2**64)
        self._known: dict[bytes, str] = {}  # Words of headers, by what they depend on.

    def write(self, batch: Batch) -> None:
        """Write a line for each frame, and one for each gap: `Output.parts` counts those of frames."""
        if not len(batch):
            return
        said, octets = iter(self._words(batch.headers())), batch.words.view(np.uint8)
        is_gap = batch.is_gap
        columns = (
            batch.heads["stamp"] + self._shift, batch.port, batch.heads["length"], is_gap, batch.has_header, batch.missing,
            batch.channel, WORD_OCTETS * batch.octets_at, batch.snap_length,
        )  # fmt: skip
        lines = []
        for stamp, port, length, is_missing, is_read, missing, channel, at, kept in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            second, rest = divmod(stamp, SECOND_NS)
            time = f"{_day_time(second)}.{rest:09}"
            if is_missing:
                lines.append(f"{time} {missing:,} frames dropped by the probe, for want of space (channel {channel})\n")
            else:
                what = next(said) if is_read else _unread(octets[at : at + min(kept, HEAD_OCTETS)].tobytes())
                lines.append(f"{time} port{port} {what}, length {length}\n")
        starts = np.array([0, *accumulate(map(len, lines))][:-1])
        self._output.write("".join(lines).encode(), starts[~is_gap])

    # # #

    def _words(self, headers: NDArray[np.void]) -> list[str]:
        """Return the words of headers: each that isn't known is made once."""
        plain = headers.copy()
        for name in UNSAID:
            plain[name] = 0
        has_ip_words = unified.has(plain, UnifiedFlag.FRAGMENT) | (unified.layer3(plain) == Layer3.ARP)
        plain["ip"][~has_ip_words] = 0
        is_probe = unified.has(plain, UnifiedFlag.PROBE)
        plain["sequence"][~is_probe] = 0
        plain["detail"][~is_probe, 1] = 0  # TCP's window.
        size, octets = plain.dtype.itemsize, plain.tobytes()
        keys = [octets[at : at + size] for at in range(0, len(octets), size)]
        if len(self._known) > KNOWN_MOST:
            self._known.clear()
        new = list({key: None for key in keys if key not in self._known})
        if new:
            self._known |= zip(new, made(np.frombuffer(b"".join(new), plain.dtype)), strict=True)
        return [self._known[key] for key in keys]


def _unread(octets: bytes) -> str:
    """Return what is said of a frame without a unified header, by its first octets."""
    if len(octets) < HEAD_OCTETS:
        return "no header"
    ends = f"{mac(octets[MAC_OCTETS : 2 * MAC_OCTETS])} > {mac(octets[:MAC_OCTETS])}"
    return f"{ends}: {type_name(int.from_bytes(octets[2 * MAC_OCTETS :], 'big'))}, no header"


def type_name(number: int) -> str:
    """Return what a type of Ethernet is called; one up to 1500 is a length: LLC."""
    return "LLC" if number <= LENGTH_MOST else TYPES.get(number, f"type 0x{number:04x}")


def made(headers: NDArray[np.void]) -> list[str]:
    """Return the words of unified headers: tags and labels, source > destination, protocol, what is wrong."""
    fields = unified.ip_fields(headers)
    columns: list[list[Any]] = [
        unified.layer3(headers).tolist(), unified.tag_count(headers).tolist(), unified.label_count(headers).tolist(),
        (headers["tags"]["tci"] & 0xFFF).tolist(), (headers["labels"] >> 12).tolist(),
        [fields["arp_operation"].tolist(), fields["fragment_offset"].tolist()],
    ]  # fmt: skip
    layers, tag_counts, label_counts, tags, labels, (operations, offsets) = columns
    found = []
    for at, header in enumerate(headers):
        flags, kind = UnifiedFlag(int(header["flags"])), layers[at]
        words = [f"vlan {one}" for one in tags[at][: tag_counts[at]]] + [
            f"mpls {one}" for one in labels[at][: label_counts[at]]
        ]
        if kind == Layer3.NONE:
            ends = f"{mac(header['source_mac'].tobytes())} > {mac(header['destination_mac'].tobytes())}"
            what = type_name(int(header["ethertype"]))
        else:
            source, destination = (address(kind, header[side].tobytes()) for side in ("source", "destination"))
            ends, what = _of_ip(header, flags, (source, destination))
            if kind == Layer3.ARP:
                what = ARP_OPERATIONS.get(operations[at], f"operation {operations[at]}")
            words.append({Layer3.ARP: "ARP", Layer3.IPV4: "IP", Layer3.IPV6: "IP6"}[kind])
        remarks = [said for flag, said in REMARKS.items() if flags & flag]
        if flags & UnifiedFlag.FRAGMENT:
            remarks.insert(0, f"fragment from octet {offsets[at]}")
        found.append(" ".join([*words, ", ".join([f"{ends}: {what}", *remarks])]))
    return found


def _of_ip(header: np.void, flags: UnifiedFlag, ends: tuple[str, str]) -> tuple[str, str]:
    """Return ends with their ports, and what is behind IP."""
    protocol = int(header["protocol"])
    what = PROTOCOL_NAMES.get(protocol, f"protocol {protocol}")
    numbers = int(header["source_port"]), int(header["destination_port"])
    if flags & UnifiedFlag.TRANSPORT and protocol in (IpProtocol.ICMP, IpProtocol.ICMPV6):
        kind, code = divmod(numbers[0], 256)
        what = f"{what} {ICMP_TYPES.get((protocol, kind), f'type {kind}')}{f' code {code}' if code else ''}"
    elif flags & UnifiedFlag.TRANSPORT:
        ends = (f"{ends[0]}.{numbers[0]}", f"{ends[1]}.{numbers[1]}")
    if flags & UnifiedFlag.TCP:
        bits = int(header["detail"][0])
        what = f"{what} [{''.join(letter for bit, letter in enumerate(TCP_LETTERS) if bits >> bit & 1) or 'none'}]"
    if flags & UnifiedFlag.PROBE:
        what = f"{what}, stream {header['detail'][1]}, number {header['sequence']}"
    return " > ".join(ends), what
