# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The flow hash, model and gateware: Microsoft's vectors, both directions, fragments, imbalance."""

import ipaddress
import random

import numpy as np
import pytest

from liteprobe.cores.formats import Layer3, UnifiedFlag
from liteprobe.sim.drivers.receive.toeplitz import TCP, VECTORS, hashes, header_of
from liteprobe.sim.models.receive.monitor import flow_hash, toeplitz
from liteprobe.sim.models.receive.unified import UnifiedHeader

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
