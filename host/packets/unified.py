# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads unified headers as one array a field, whatever the frames carried, and finds the payloads of probe frames.

Source: docs/design/unified-header.md; RFC 791, 8200, 2474, 3168 (IP), 9293 (TCP).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    EXTENSION,
    EXTENSION_HEADERS,
    EXTENSIONS_MAX,
    LABEL_KINDS,
    LABELS_MAX,
    TAG_KINDS,
    TAGS_MAX,
    UNIFIED_DTYPE,
    UNIFIED_OCTETS,
    IpProtocol,
    Layer3,
    UnifiedFlag,
)
from liteprobe.host.base.errors import ProbeError

FRAGMENT_HEADER = EXTENSION | 44
_FOLD = 64


def unified_headers(octets: bytes) -> NDArray[np.void]:
    """Return a view of unified headers as they left the board; ProbeError if the octets are not whole headers."""
    if len(octets) % UNIFIED_OCTETS:
        raise ProbeError(
            f"{len(octets)} octets are not whole unified headers of {UNIFIED_OCTETS}: give all that the probe sent"
        )
    return np.frombuffer(octets, UNIFIED_DTYPE)


#: Headers, or what stands for them: arrays by the name of a field, in which what all headers share may be there once.
Fields = NDArray[np.void] | Mapping[str, NDArray[Any]]


def shared(headers: NDArray[np.void]) -> dict[str, NDArray[Any]]:
    """Return the fields of headers that lie one after the other by name; of words that all share, the first alone.

    Whatever is worked out of them, value by value, broadcasts. ``ip`` becomes ``ip0`` to ``ip2``.
    """
    words = headers.view(np.uint32).reshape(len(headers), -1)
    differs = words ^ words[0]
    whole = len(words) // _FOLD * _FOLD  # Folded, so that long rows are compared.
    found = np.bitwise_or.reduce(differs[:whole].reshape(_FOLD, -1), axis=0).reshape(-1, words.shape[1])
    is_same = (np.bitwise_or.reduce(found, axis=0) | np.bitwise_or.reduce(differs[whole:], axis=0)) == 0
    fields = {}
    for name, (kind, place, *_) in (headers.dtype.fields or {}).items():
        parts = {name: headers[name]} if name != "ip" else {f"ip{k}": headers[name][:, k] for k in range(3)}
        size = kind.itemsize // len(parts)
        for number, (part, values) in enumerate(parts.items()):
            at = place + number * size
            fields[part] = values[: 1 if is_same[at // 4 : -(-(at + size) // 4)].all() else None]
    return fields


def layer3(headers: Fields) -> NDArray[np.uint8]:
    """Return the `Layer3` of each header."""
    return np.asarray(headers["layers"] & 3)


def tag_count(headers: Fields) -> NDArray[np.uint8]:
    """Return how many VLAN tags each frame has (of those taken)."""
    return np.asarray(headers["layers"] >> 2 & 7)


def label_count(headers: Fields) -> NDArray[np.uint8]:
    """Return how many MPLS labels each frame has (of those taken)."""
    return np.asarray(headers["layers"] >> 5)


def has(headers: Fields, flag: UnifiedFlag) -> NDArray[np.bool_]:
    """Return which headers have ``flag``."""
    return np.asarray(headers["flags"] & int(flag) != 0)


def ip_fields(headers: Fields) -> dict[str, NDArray[np.uint32]]:
    """Return what both versions of IP say, and what only one does, by name; 0 where a frame has none of it.

    Returns
    -------
    dict of arrays, shape (headers,)
        ``dscp``, ``ecn``, ``ttl`` (hop limit), ``ip_length`` (octets with the IP header; IPv6: header and payload, as
        the packet says), ``ip_id``, ``flow_label``, ``fragment_offset`` (octets), ``more_fragments``,
        ``dont_fragment``, ``ip_checksum``, ``arp_operation``.
    """
    words = headers["ip"].T if isinstance(headers, np.ndarray) else [headers[f"ip{k}"] for k in range(3)]
    first, second, third = (word.astype(np.uint32) for word in words)
    kind = layer3(headers)
    is_arp, is_ipv4, is_ipv6 = (kind == value for value in (Layer3.ARP, Layer3.IPV4, Layer3.IPV6))
    # IPv6 has no third word: there, it is the first of the fragment header.
    is_fragment_header = is_ipv6 & (headers["extensions"] == FRAGMENT_HEADER).any(axis=1)

    def pick(ipv4: NDArray[Any] | int, ipv6: NDArray[Any] | int) -> NDArray[np.uint32]:
        """Return the field of either version."""
        return np.where(is_ipv4, ipv4, np.where(is_ipv6, ipv6, np.uint32(0))).astype(np.uint32, copy=False)

    traffic_class = pick(first >> 16 & 0xFF, first >> 20 & 0xFF)
    return {
        "dscp": traffic_class >> np.uint32(2),
        "ecn": traffic_class & np.uint32(3),
        "ttl": pick(third >> 24, second & 0xFF),
        "ip_length": pick(first & 0xFFFF, (second >> 16) + 40),
        "ip_id": pick(second >> 16, 0),
        "flow_label": pick(0, first & 0xFFFFF),
        "fragment_offset": pick(8 * (second & 0x1FFF), np.where(is_fragment_header, third & 0xFFF8, 0)),
        "more_fragments": pick(second >> 13 & 1, np.where(is_fragment_header, third & 1, 0)),
        "dont_fragment": pick(second >> 14 & 1, 0),
        "ip_checksum": pick(third & 0xFFFF, 0),
        "arp_operation": np.where(is_arp, first & 0xFFFF, 0).astype(np.uint32),
    }


def tcp_flags(headers: NDArray[np.void]) -> NDArray[np.uint16]:
    """Return TCP's twelve bits of flags, reserved ones included; 0 where a frame is not TCP."""
    return np.where(has(headers, UnifiedFlag.TCP), headers["detail"][:, 0] & 0xFFF, 0).astype(np.uint16)


def tcp_window(headers: NDArray[np.void]) -> NDArray[np.uint16]:
    """Return TCP's window as it stands in the header, not scaled; 0 where a frame is not TCP."""
    return np.where(has(headers, UnifiedFlag.TCP), headers["detail"][:, 1], 0).astype(np.uint16)


def stream_id(headers: NDArray[np.void]) -> NDArray[np.uint16]:
    """Return the stream of each probe frame; 0 where a frame is none."""
    return np.where(has(headers, UnifiedFlag.PROBE), headers["detail"][:, 1], 0).astype(np.uint16)


UDP_OCTETS = 8


def payload_places(table: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return where the UDP payload of each frame begins, walking through its headers as the probe's parser does.

    Parameters
    ----------
    table : array, shape (frames, octets)
        The first octets of frames that the parser found to be a probe's.

    Returns
    -------
    array, shape (frames,)
        Places (octets); beyond the octets that are there where the headers end beyond them.
    """
    rows, last = np.arange(len(table)), table.shape[1] - 1

    def octet(places: NDArray[np.int64]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = table[rows, np.minimum(places, last)].astype(np.int64)
        return found

    def pair(places: NDArray[np.int64]) -> NDArray[np.int64]:
        return octet(places) << 8 | octet(places + 1)

    at = np.full(len(table), 12)
    for _ in range(TAGS_MAX):
        at += 4 * np.isin(pair(at), list(TAG_KINDS))
    is_label = np.isin(pair(at), LABEL_KINDS)
    at += 2
    for _ in range(LABELS_MAX):
        is_bottom = octet(at + 2) & 1 == 1
        at += 4 * is_label
        is_label &= ~is_bottom
    version, length, following = octet(at) >> 4, octet(at) & 15, octet(at + 6)
    at += np.where(version == 4, 4 * length, 40)
    is_walking = version == 6
    for _ in range(EXTENSIONS_MAX):
        is_walking &= np.isin(following, EXTENSION_HEADERS)
        size = np.where(following == IpProtocol.AUTHENTICATION, 4 * (octet(at + 1) + 2), 8 * (octet(at + 1) + 1))
        size = np.where(following == IpProtocol.FRAGMENT, 8, size)
        following = np.where(is_walking, octet(at), following)
        at += np.where(is_walking, size, 0)
    return at + UDP_OCTETS
