# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A host that refuses reads of its memory (UR, CA): LitePCIe's endpoint goes on, for the one that asked and for the others.

Faults that LitePCIe had until 2026-06: issues 166 (a request that ends with an error was never retired, nor its tag freed) and
167 (data converters kept a part of a beat over a stop).
"""

import random

import pytest
from litepcie.common import get_bar_mask, msi_layout, phy_layout
from litepcie.core import LitePCIeEndpoint
from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.receive.datagrams.slot_reader import SlotReader
from liteprobe.soc.pcie import ends_failed_reads

BITS = 64
TAGS = 4
SUCCESS, UNSUPPORTED, ABORTED = 0b000, 0b001, 0b100
PATIENCE = 200 # Cycles.

class Phy(LiteXModule):
    """Gives an endpoint what it asks of a PHY; TLPs as a hard block of the 7 series has them."""
    endianness    = "big"
    qword_aligned = False
    def __init__(self):
        self.sink       = stream.Endpoint(phy_layout(BITS))
        self.source     = stream.Endpoint(phy_layout(BITS))
        self.msi        = stream.Endpoint(msi_layout())
        self.data_width = BITS
        self.bar0_size  = 1 << 20
        self.bar0_mask  = get_bar_mask(1 << 20)
        self.id               = Signal(16, reset=0x0100)
        self.max_request_size = Signal(16, reset=128)
        self.max_payload_size = Signal(16, reset=128)

class Bench(LiteXModule):
    """Has two ports that read, at an endpoint."""
    def __init__(self, is_mended=True):
        self.phy      = Phy()
        self.endpoint = LitePCIeEndpoint(self.phy, endianness="big", address_width=64, max_pending_requests=TAGS)
        if is_mended:
            self.endpoint.comb += ends_failed_reads(self.endpoint)
        self.ports = [self.endpoint.crossbar.get_master_port(read_only=True) for _ in range(2)]

def answers(tag, status, words):
    """Return the beats of a completion, two dwords each: TLP 3DW header (PCIe base 2.0, 2.2.9), then data."""
    count = len(words)
    octets = 4*count if status == SUCCESS else 16
    kind   = 0b10_01010 if status == SUCCESS else 0b00_01010
    header = [kind << 24 | count, 0x0000_0000 | status << 13 | octets, 0x0100_0000 | tag << 8]
    dwords = header + list(words)
    dwords += [0]*(len(dwords) % 2)
    return [(dwords[n] | dwords[n + 1] << 32, n + 2 >= len(dwords)) for n in range(0, len(dwords), 2)]

def run(statuses, is_mended=True):
    """Ask by two ports for four dwords each time, and answer the requests in their order with ``statuses``.

    Returns what each port got, beats of (error, data), and the tag and the number of each request.
    """
    bench = Bench(is_mended)
    found, asked, waiting = [[], []], [], []
    def ask(number):
        port = bench.ports[number]
        yield port.source.first.eq(1)
        yield port.source.last.eq(1)
        yield port.source.channel.eq(port.channel)
        yield port.source.len.eq(4)
        for n in range(number, len(statuses), 2):
            yield port.source.adr.eq(0x1000*(n + 1))
            yield port.source.valid.eq(1)
            yield
            yield
            for _ in range(PATIENCE):
                if (yield port.source.ready):
                    break
                yield
            else:
                return
            yield port.source.valid.eq(0)
            yield
    def host():
        beats, idle = [], 0
        yield bench.phy.sink.ready.eq(1)
        while idle < 2*PATIENCE:
            yield
            idle += 1
            if (yield bench.phy.sink.valid):
                beats.append((yield bench.phy.sink.dat))
                if (yield bench.phy.sink.last):
                    asked.append((beats[0] >> 40 & 0xff, beats[1] % 2**32//0x1000 - 1))
                    waiting.append(asked[-1])
                    beats, idle = [], 0
    def root():
        idle = 0
        for status in statuses:
            while not waiting:
                yield
                idle += 1
                if idle > 2*PATIENCE:
                    return
            idle = 0
            tag, number = waiting.pop(0)
            for word, is_last in answers(tag, status, words_of(number) if status == SUCCESS else []):
                yield bench.phy.source.valid.eq(1)
                yield bench.phy.source.dat.eq(word)
                yield bench.phy.source.be.eq(0xff)
                yield bench.phy.source.last.eq(int(is_last))
                yield
                while not (yield bench.phy.source.ready):
                    yield
            yield bench.phy.source.valid.eq(0)
    def watch(number):
        port = bench.ports[number]
        yield port.sink.ready.eq(1)
        while True:
            yield
            if (yield port.sink.valid):
                found[number].append(((yield port.sink.err), (yield port.sink.dat)))
    run_simulation(bench, [ask(0), ask(1), host(), root(), passive(watch)(0), passive(watch)(1)])
    return found, asked

def words_of(number):
    """Return the data of a request."""
    return [random.Random(number).getrandbits(32) for _ in range(4)]

def beats_of(number):
    """Return the beats of an answer, as a port has them: octets of a dword in the order of memory."""
    dwords = [int.from_bytes(word.to_bytes(4, "big"), "little") for word in words_of(number)]
    return [(0, low | high << 32) for low, high in zip(dwords[::2], dwords[1::2])]

@pytest.mark.parametrize("seed", range(4))
def test_reads_that_the_host_refuses_end_and_all_others_are_whole(seed):
    """Errors of both kinds, in runs longer than there are tags, at a port or at both."""
    statuses = random.Random(seed).choices((SUCCESS, UNSUPPORTED, ABORTED), (2, 2, 1), k=24)
    found, asked = run(statuses)
    assert sorted(number for _, number in asked) == list(range(24))
    assert [tag for tag, _ in asked][:TAGS] == list(range(TAGS)) and max(tag for tag, _ in asked) < TAGS
    for port in range(2):
        wanted = []
        for status, (_, number) in zip(statuses, asked):
            if number % 2 == port:
                wanted += beats_of(number) if status == SUCCESS else [None]
        # What a refused read has in place of data is not looked at.
        assert [None if error else (error, data) for error, data in found[port]] == wanted

def test_data_converters_keep_nothing_over_a_stop():
    """LitePCIe 167 is one of a stream that is narrower than the endpoint; ours are as wide."""
    bench  = Bench()
    reader = SlotReader(bench.endpoint, 64)
    fragment = reader.data_conv.get_fragment()
    assert (fragment.sync, fragment.specials) == ({}, set())
