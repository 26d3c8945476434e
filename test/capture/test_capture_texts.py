# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Addresses as text, a column at once, against `socket.inet_ntop` one by one."""

import socket

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import Layer3
from liteprobe.host.capture.write.columns import ips, macs


def hostile(count: int) -> NDArray[np.uint8]:
    """Return addresses of all kinds in one column: each set of IPv6 groups that are 0, mapped ones, random ones."""
    rng = np.random.default_rng(20)
    octets = rng.integers(0, 256, (count, 17), np.uint8)
    octets[:, 0] = rng.choice([Layer3.ARP, Layer3.IPV4, Layer3.IPV6], count)
    groups = octets[:, 1:].reshape(-1, 8, 2)
    groups[rng.random((count, 8)) < 0.5] = 0
    groups[rng.random((count, 8)) < 0.2, 0] = 0
    sets = np.arange(256)[:, np.newaxis] >> np.arange(8) & 1
    octets[:256, 0] = Layer3.IPV6
    groups[:256] = np.where(sets[..., np.newaxis], 0, rng.integers(1, 256, (256, 8, 2)))
    octets[256:400, 0] = Layer3.IPV6
    octets[256:400, 1:13] = np.frombuffer(bytes(10) + b"\xff\xff", np.uint8)
    return octets


def test_ip_addresses_are_as_inet_ntop_writes_them() -> None:
    octets = hostile(70_000)  # More than are taken at once.
    wanted = [
        socket.inet_ntop(socket.AF_INET6, row[1:])
        if row[0] == Layer3.IPV6
        else socket.inet_ntop(socket.AF_INET, row[1:5])
        for row in map(bytes, octets)
    ]
    assert ips(octets).to_pylist() == wanted
    is_ipv4 = octets[:, 0] != Layer3.IPV6
    assert ips(octets[is_ipv4]).to_pylist() == [text for text in wanted if ":" not in text]
    assert ips(octets[:0]).to_pylist() == []


def test_mac_addresses_are_pairs_of_hexadecimal_digits() -> None:
    octets = hostile(1000)[:, 1:7]
    assert macs(octets).to_pylist() == [bytes(row).hex(":") for row in octets]
