# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A hash of what stays the same of a packet on its way: probes with one seed sample the same packets."""

from collections import Counter

from migen import *

from litex.gen import *

from liteprobe.cores.formats import Layer3
from liteprobe.cores.receive.unified.words import place

# Numbers ------------------------------------------------------------------------------------------

polynomial = 0x82f63b78 # CRC-32C, the lowest bit first.

# Of the octets, four a word: two words of IP, four behind it, then the flow hash, once it is there.
step_behind = 4*2
step_rest   = 4*6
step_flow   = 28
steps       = 32

# Octet CRC ----------------------------------------------------------------------------------------

def crc_step(crc, octet):
    """Return the expressions of the bits of a CRC-32C, the lowest first, behind one octet more."""
    bits = [[crc[n]] for n in range(32)]
    for n in range(8):
        bits[n] = [crc[n], octet[n]]
    for _ in range(8):
        low  = bits[0]
        bits = [*bits[1:], []]
        for n in range(32):
            if polynomial >> n & 1:
                bits[n] = bits[n] + low
    return Cat(*[Reduce("XOR", once(column)) for column in bits])

def once(column):
    """Return the terms of a sum modulo 2, without those that are in it twice."""
    count = Counter(map(id, column))
    return [term for number, term in {id(term): term for term in column}.items() if count[number] % 2]

# Packet Hash --------------------------------------------------------------------------------------

class PacketHash(LiteXModule):
    """CRC-32C of the IP id (IPv6: flow label) and length, the first words behind the IP header, and the flow hash.

    An octet a cycle, 33 cycles after ``start`` it is done; it may start each 32 cycles.

    Attributes
    ----------
    write, address : Signal(), Signal(5), in
        A word passes that goes there in the unified header.
    write_behind : Signal(), in
        A word behind the IP header passes.
    aligned : Signal(32), in
        That word.
    start : Signal(), in
        They are all there. One cycle.
    layer3, behind : Signal(2), Signal(3), in
        As of the parser, held from ``start`` on for 32 cycles.
    flow_hash : Signal(32), in
        There from 29 cycles after ``start`` to 32 after it.
    seed : Signal(32), in
        What the CRC begins with.
    hash : Signal(32), out
        From 33 cycles after ``start`` to 33 after the next one.

    Source: RFC 5475, 6.2; RFC 3720, B.4 (CRC-32C); docs/design/monitor.md.
    """
    def __init__(self):
        self.write        = Signal()
        self.address      = Signal(5)
        self.write_behind = Signal()
        self.aligned      = Signal(32)
        self.start        = Signal()
        self.layer3       = Signal(2)
        self.behind       = Signal(3)
        self.flow_hash    = Signal(32)
        self.seed         = Signal(32)
        self.hash         = Signal(32, reset_less=True)

        # # #

        # Words of two packets.
        # ---------------------
        memory = Memory(32, 16)
        writer, reader = memory.get_port(write_capable=True), memory.get_port(async_read=True)
        self.specials += memory, writer, reader
        bank        = Signal()
        step        = Signal(max=steps)
        number      = Signal(2)
        number_read = Signal(2)
        is_first, is_second = self.write & (self.address == place("ip")), self.write & (self.address == place("ip", 1))
        writes_ip = Signal()
        self.comb += [
            # Words of IP come alone, or with what is behind IP in no cycle.
            writes_ip.eq(is_first | is_second),
            writer.we.eq(writes_ip | self.write_behind),
            writer.adr.eq(Mux(writes_ip, Cat(is_second, Constant(0, 2), bank), Cat(number, Constant(1, 1), bank))),
            writer.dat_w.eq(self.aligned),
            number_read.eq(Cat(step[2], ~step[3])),
            reader.adr.eq(Mux(step < step_behind, Cat(step[2], Constant(0, 2), ~bank), Cat(number_read, Constant(1, 1), ~bank))),
        ]
        self.sync += [
            If(writes_ip, number.eq(0)).Elif(self.write_behind, number.eq(number + 1)),
            If(self.start, bank.eq(~bank)),
        ]

        # Octets.
        # -------
        octet = Signal(8)
        word  = Signal(32)
        holds = Signal(8)
        self.comb += [
            word.eq(Mux(step >= step_flow, self.flow_hash, reader.dat_r)),
            Case(step[:2], {place: octet.eq(word[8*place:8*place + 8]) for place in range(4)}),
            holds.eq(self.held_bits(step, number_read)),
        ]

        # CRC.
        # ----
        crc   = Signal(32, reset_less=True)
        runs  = Signal()
        after = Signal(32)
        self.comb += after.eq(crc_step(crc, octet & holds))
        self.sync += [
            If(runs,
                step.eq(step + 1),
                If((step < step_rest) | (step >= step_flow), crc.eq(after)),
                If(step == steps - 1, runs.eq(0), self.hash.eq(after)),
            ),
            If(self.start, runs.eq(1), step.eq(0), crc.eq(self.seed)),
        ]

    def held_bits(self, step, number):
        """Return which bits of an octet count: of the first word, length or flow label; of the second, id or length."""
        holds   = Signal(8)
        is_ipv6 = self.layer3 == Layer3.IPV6
        self.comb += [
            If(step >= step_flow,
                holds.eq(0xff)
            ).Elif(~self.layer3[1],
                holds.eq(0)
            ).Elif(step >= step_behind,
                If(number < self.behind, holds.eq(0xff))
            ).Elif(step[2],
                If(~step[1], holds.eq(0xff))
            ).Else(
                If(step[1], holds.eq(0xff)).Elif(step[0] & is_ipv6, holds.eq(0x0f))
            ),
        ]
        return holds
