# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sampling: the hash of packets against CRC-32C, who is chosen, and the table of channels."""

import random

import pytest
from migen import run_simulation

from liteprobe.cores.receive.hashes import RssTable
from liteprobe.cores.receive.decide import Sampler
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.models.receive.monitor import SamplerModel, crc32c, packet_hash, packet_octets
from liteprobe.sim.models.receive.monitor import flow_hash
from liteprobe.sim.models.receive.unified import unified_header
from liteprobe.sim.drivers.tools.steps import assign, wait_cycles


def test_crc_is_crc_32c():
    """Check value of RFC 3720, B.4, and of the catalogue: "123456789"."""
    assert crc32c(b"123456789", 0xFFFFFFFF) ^ 0xFFFFFFFF == 0xE3069283
    assert crc32c(bytes(32), 0xFFFFFFFF) ^ 0xFFFFFFFF == 0x8A9136AA


def test_packet_octets_are_what_the_contract_says():
    """One packet, octet by octet: flags, id and TTL of the IP header left out, but id and length."""
    ip = bytes.fromhex("4528002e12344000400600000a0000010a000002")
    body = bytes(range(26))
    header = unified_header(bytes(12) + b"\x08\x00" + ip + body)
    assert packet_octets(header, 0xAABBCCDD) == bytes.fromhex("0000002e 12340000") + body[:16] + bytes.fromhex("ddccbbaa")
    ipv6 = bytes.fromhex("6a5432100009 11 40") + bytes(31) + b"\x01"
    header = unified_header(bytes(12) + b"\x86\xdd" + ipv6 + body[:9])
    assert packet_octets(header, 1) == bytes.fromhex("00043210 00090000") + body[:8] + bytes(8) + b"\x01\0\0\0"


def test_other_seeds_choose_others():
    headers = [unified_header(frame) for frame in stacks.stacks()[:200]]
    hashes = [[packet_hash(header, flow_hash(header), seed) for header in headers] for seed in (1, 2)]
    assert all(one != other for one, other in zip(*hashes))


def chosen(shift, by_hash, hashes, clear_at=()):
    """Return which frames the gateware chooses."""
    dut, found = Sampler(), []

    def drive():
        yield dut.shift.eq(shift)
        yield dut.by_hash.eq(by_hash)
        for number, value in enumerate(hashes):
            yield dut.clear.eq(number in clear_at)
            yield
            yield from assign(dut, clear=0, hash=value, frame=1)
            yield
            found.append((yield dut.is_chosen))
            yield dut.frame.eq(0)

    run_simulation(dut, drive())
    return found


@pytest.mark.parametrize("shift", range(8))
@pytest.mark.parametrize("by_hash", [0, 1])
def test_sampler_is_the_model(shift, by_hash):
    rng = random.Random(shift)
    edges = [(1 << 32 - bits) + step & 0xFFFFFFFF for bits in range(6) for step in (-1, 0, 1)]
    hashes = [*edges, *(rng.getrandbits(32) for _ in range(60))]
    model = SamplerModel(shift, bool(by_hash))
    assert chosen(shift, by_hash, hashes) == [model.is_chosen(value) for value in hashes]


def test_clear_begins_a_new_count():
    assert chosen(2, 0, [0] * 9, clear_at=(3,)) == [1, 0, 0, 1, 0, 0, 0, 1, 0]


def test_table_begins_with_the_hash_modulo_eight_and_keeps_what_is_written():
    dut, found = RssTable(), {}

    def look():
        for number in range(128):
            yield dut.hash.eq(0xABCDEF80 | number)
            yield from wait_cycles(3)
            found[number] = yield dut.channel

    def drive():
        yield from look()
        assert found == {number: number % 8 for number in range(128)}
        for number in range(0, 128, 7):
            yield from assign(dut, write=1, number=number, value=7 - number % 8)
            yield
        yield dut.write.eq(0)
        yield from look()
        assert found == {number: 7 - number % 8 if number % 7 == 0 else number % 8 for number in range(128)}

    run_simulation(dut, drive())
