# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The flow hash, model and gateware: Microsoft's vectors, both directions, fragments, imbalance."""

import ipaddress
import random

import numpy as np
import pytest
from migen import run_simulation

from liteprobe.cores.formats import UNIFIED_PLACES, Layer3, UnifiedFlag
from liteprobe.cores.receive.toeplitz import FlowHash
from liteprobe.sim.models.toeplitz import flow_hash, toeplitz
from liteprobe.sim.models.unified import UnifiedHeader

# Source, port, destination, port, hash of the addresses, hash with ports.
VECTORS = [
    ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x323E8FC2, 0x51CCC178),
    ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xD718262A, 0xC626B0EA),
    ("24.19.198.95", 12898, "12.22.207.184", 38024, 0xD2D0A5DE, 0x5C2B394A),
    ("38.27.205.30", 48228, "209.142.163.6", 2217, 0x82989176, 0xAFC7327F),
    ("153.39.163.191", 44251, "202.188.127.2", 1303, 0x5D1809C5, 0x10E828A2),
    ("3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2CC18CD5, 0x40207D3D),
    ("3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0F0C461C, 0xDDE51BBF),
    ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, "fe80::200:f8ff:fe21:67cf", 38024, 0x4B61E985, 0x02D1FEEF),
]
TCP = UnifiedFlag.TRANSPORT | UnifiedFlag.TCP


def header_of(source, source_port, destination, destination_port, flags=TCP):
    ends = [ipaddress.ip_address(end).packed for end in (source, destination)]
    kind = Layer3.IPV4 if len(ends[0]) == 4 else Layer3.IPV6
    ports = source_port.to_bytes(2) + destination_port.to_bytes(2)
    return UnifiedHeader(layer3=kind, protocol=6, flags=flags, source=ends[0], destination=ends[1], ports=ports)


def hashes(headers, sorts=1):
    """Return the hash of each header and the cycles that it took."""
    dut = FlowHash()
    found = []

    def write(name, octets):
        for number in range(0, len(octets), 4):
            yield dut.write.eq(1)
            yield dut.address.eq(UNIFIED_PLACES[name][0] + number // 4)
            yield dut.data.eq(int.from_bytes(octets[number : number + 4], "little"))
            yield

    def drive():
        yield dut.sorts.eq(sorts)
        for header in headers:
            for name, octets in (
                ("destination", header.destination),
                ("source", header.source),
                ("source_port", header.ports),
                ("ip", b"noise"),
            ):
                yield from write(name, octets)
            yield dut.write.eq(0)
            yield dut.start.eq(1)
            yield dut.is_ipv6.eq(header.layer3 == Layer3.IPV6)
            yield dut.has_ports.eq(UnifiedFlag.TRANSPORT in header.flags and UnifiedFlag.FRAGMENT not in header.flags)
            yield
            yield dut.start.eq(0)
            yield
            cycles = 1
            while not (yield dut.done):
                yield
                cycles += 1
                assert cycles < 40
            found.append(((yield dut.hash), cycles))

    run_simulation(dut, drive())
    return found


@pytest.mark.parametrize("vector", VECTORS)
def test_model_gives_microsofts_vectors(vector):
    source, source_port, destination, destination_port, addresses, ports = vector
    ends = ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed
    assert toeplitz(ends) == addresses
    assert toeplitz(ends + source_port.to_bytes(2) + destination_port.to_bytes(2)) == ports


def test_gateware_gives_microsofts_vectors():
    whole = [header_of(*vector[:4]) for vector in VECTORS]
    bare = [header_of(*vector[:4], flags=UnifiedFlag.NONE) for vector in VECTORS]
    assert [found for found, _ in hashes(whole, sorts=0)] == [vector[5] for vector in VECTORS]
    assert [found for found, _ in hashes(bare, sorts=0)] == [vector[4] for vector in VECTORS]


def random_headers(count, seed):
    rng = random.Random(seed)
    headers = []
    for _ in range(count):
        octets = rng.choice([4, 16])
        common = rng.randbytes(rng.choice([0, 3, octets - 1, octets]))
        ends = [(common + rng.randbytes(octets))[:octets] for _ in range(2)]
        flags = rng.choice([TCP, TCP, UnifiedFlag.NONE, TCP | UnifiedFlag.FRAGMENT | UnifiedFlag.FIRST_FRAGMENT])
        headers.append(
            UnifiedHeader(
                layer3=Layer3.IPV4 if octets == 4 else Layer3.IPV6,
                protocol=6,
                flags=flags,
                source=ends[0],
                destination=ends[1],
                ports=rng.randbytes(4),
            )
        )
    return headers


def turned(header):
    """Return the same of the other direction."""
    return UnifiedHeader(
        **{
            **vars(header),
            "source": header.destination,
            "destination": header.source,
            "ports": header.ports[2:] + header.ports[:2],
        }
    )


def test_gateware_is_the_model_and_both_directions_meet():
    headers = random_headers(24, seed=5)
    both = [header for one in headers for header in (one, turned(one))]
    found = hashes(both)
    assert [value for value, _ in found] == [flow_hash(header) for header in both]
    assert [value for value, _ in found[::2]] == [value for value, _ in found[1::2]]
    assert max(cycles for _, cycles in found) <= 28


def test_fragments_meet_whatever_they_carry():
    vector = VECTORS[0]
    first = header_of(*vector[:4], flags=TCP | UnifiedFlag.FRAGMENT | UnifiedFlag.FIRST_FRAGMENT)
    later = header_of(vector[0], 0, vector[2], 0, flags=UnifiedFlag.FRAGMENT)
    assert flow_hash(first) == flow_hash(later) == vector[4]


def test_eight_channels_differ_by_less_than_5_percent_over_random_flows():
    rng = np.random.default_rng(6)
    windows = np.array([toeplitz(bytes(place // 8) + bytes([0x80 >> place % 8])) for place in range(96)], np.uint32)
    ends = np.sort(rng.integers(0, 1 << 48, (100_000, 2)))  # Address and port: the lower endpoint first.
    fields = [(ends[:, 0] >> 16, 32), (ends[:, 1] >> 16, 32), (ends[:, 0] & 0xFFFF, 16), (ends[:, 1] & 0xFFFF, 16)]
    bits = np.stack([field >> place & 1 for field, size in fields for place in reversed(range(size))], axis=1)
    hashed = np.bitwise_xor.reduce(bits * windows[None, :].astype(np.int64), axis=1)
    load = np.bincount(hashed % 8, minlength=8) / len(hashed) * 8
    assert np.abs(load - 1).max() <= 0.05, load
