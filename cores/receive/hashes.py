# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Hashes every frame that is classified, its flow and the packet itself, and finds the channel of a flow."""

from collections import Counter

from migen import *

from litex.gen import *

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import CHANNELS, FLOW_KEY, UNIFIED_PLACES, Layer3
from liteprobe.cores.receive.unified.key import swapped
from liteprobe.cores.receive.unified.walk import place

# Numbers ------------------------------------------------------------------------------------------

step_bits = 16 # Of data that are hashed a cycle: the 36 octets of IPv6 and ports take 18.

def key_bits(start, count):
    """Return bits of the key, the first one lowest."""
    bits = [FLOW_KEY[place//8] >> (7 - place % 8) & 1 if place < 8*len(FLOW_KEY) else 0 for place in range(start, start + count)]
    return sum(bit << place for place, bit in enumerate(bits))

# Flow Hash ----------------------------------------------------------------------------------------

class FlowHash(LiteXModule):
    """Toeplitz hash of addresses and ports of a frame, the lower endpoint first.

    Takes 3 + 6 cycles for IPv4 and 3 to 9 + 18 for IPv6, from ``start`` to ``done``: it may start each 32 cycles. Addresses
    of the next frame may be written meanwhile, but not those of the one after.

    Attributes
    ----------
    write, address, data : Signal(), Signal(5), Signal(32), in
        Words of the unified header; those of addresses and ports are kept.
    start : Signal(), in
        They are all there. One cycle.
    has_addresses, is_ipv6, has_ports, sorts : Signal(), in
        There is something to hash; addresses of 16 octets, not of four; ports count; endpoints are sorted. Held until
        ``done``.
    hash, done : Signal(32), Signal(), out
        One cycle of ``done``; ``hash`` stays until the next ``start``. Without addresses 0, and no ``done``.

    Source: Microsoft, "RSS hashing functions"; sim/models/receive/monitor.py.
    """
    def __init__(self):
        self.write     = Signal()
        self.address   = Signal(5)
        self.data      = Signal(32)
        self.start     = Signal()
        self.has_addresses = Signal(reset=1)
        self.is_ipv6   = Signal()
        self.has_ports = Signal()
        self.sorts     = Signal(reset=1)
        self.hash      = Signal(32)
        self.done      = Signal()

        # # #

        # What is being done.
        self.compares = Signal()
        self.hashes   = Signal()
        # The word that is looked at: of the address, and of which one.
        self.number     = Signal(2)
        self.is_second  = Signal()
        self.is_swapped = Signal()
        self.is_last    = Mux(self.is_ipv6, self.number == 3, 1)
        self.word       = Signal(32) # First octet highest.
        self.add_words()
        self.add_compare()
        self.add_hash()

    def add_words(self):
        """Keep addresses and ports of two frames: one that passes and one that is hashed."""
        memory = Memory(32, 16)
        writer, reader = memory.get_port(write_capable=True), memory.get_port(async_read=True)
        self.specials += memory, writer, reader
        bank  = Signal()
        ports = [Signal(32, reset_less=True, name=f"ports_of_bank{number}") for number in range(2)]
        is_address = self.address[3:] == UNIFIED_PLACES["source"][0] >> 3
        is_ports   = self.address == UNIFIED_PLACES["source_port"][0]
        self.comb += [
            writer.we.eq(self.write & is_address),
            writer.adr.eq(Cat(self.address[:3], bank)),
            writer.dat_w.eq(self.data),
            reader.adr.eq(Cat(self.number, self.is_second ^ (self.hashes & self.is_swapped), ~bank)),
            self.word.eq(swapped(reader.dat_r)),
        ]
        self.sync += [
            If(self.write & is_ports, ports[0].eq(self.data)),
            If(self.start, bank.eq(~bank), ports[1].eq(ports[0])),
        ]
        self.source_port, self.destination_port = swapped(ports[1][:16]), swapped(ports[1][16:])

    def add_compare(self):
        """Find which endpoint is lower, word by word: the source's, then the destination's beside it."""
        word = self.word
        last = Signal(32, reset_less=True)
        self.sync += [
            last.eq(word),
            If(self.compares,
                self.is_second.eq(~self.is_second),
                If(self.is_second,
                    self.number.eq(self.number + 1),
                    If((word != last) | self.is_last,
                        self.compares.eq(0), self.hashes.eq(1), self.number.eq(0),
                        self.is_swapped.eq(self.sorts & ((word < last) |
                            ((word == last) & self.has_ports & (self.destination_port < self.source_port)))),
                    )
                )
            )
        ]

    def add_hash(self):
        """Take half a word a cycle: addresses, then ports."""
        is_ports = Signal() # Ports are hashed.
        is_low   = Signal() # Second half of a word.
        part     = Signal(step_bits)
        window   = Signal(step_bits + 32, reset_less=True)
        chunk    = Signal(step_bits)
        step     = Signal(5)
        self.comb += [
            part.eq(Mux(is_low, self.word[:16], self.word[16:])),
            If(is_ports, part.eq(Mux(is_low ^ self.is_swapped, self.destination_port, self.source_port))),
            Case(step, {
                **{number: chunk.eq(key_bits(step_bits*(number + 3), step_bits)) for number in range(18)},
                "default": chunk.eq(0),
            }),
        ]
        added = Signal(32)
        for bit in range(32):
            terms = [part[step_bits - 1 - place] & window[place + bit] for place in range(step_bits)]
            self.comb += added[31 - bit].eq(Reduce("XOR", terms))
        self.sync += [
            self.done.eq(0),
            If(self.hashes,
                self.hash.eq(self.hash ^ added),
                window.eq(Cat(window[step_bits:], chunk)),
                step.eq(step + 1),
                is_low.eq(~is_low),
                If(is_low,
                    self.number.eq(self.number + 1),
                    If(self.is_last,
                        self.number.eq(0),
                        self.is_second.eq(1),
                        is_ports.eq(self.is_second),
                    ),
                    If(is_ports | (self.is_last & self.is_second & ~self.has_ports),
                        self.hashes.eq(0),
                        self.done.eq(1),
                    ),
                ),
            ),
            If(self.start,
                self.compares.eq(self.has_addresses), self.hashes.eq(0), self.number.eq(0), self.is_second.eq(0),
                is_ports.eq(0), is_low.eq(0), step.eq(0),
                self.hash.eq(0),
                window.eq(key_bits(0, len(window))),
            ),
        ]

# Numbers ------------------------------------------------------------------------------------------

polynomial = 0x82f63b78 # CRC-32C, the lowest bit first.

# Of the octets, four a word: two words of IP, four after it, then the flow hash, once it is there.
step_behind = 4*2
step_rest   = 4*6
step_flow   = 28
steps       = 32

# Octet CRC ----------------------------------------------------------------------------------------

def crc_step(crc, octet):
    """Return the expressions of the bits of a CRC-32C, the lowest first, after one octet more."""
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
    """CRC-32C of the IP id (IPv6: flow label) and length, the first words after the IP header, and the flow hash.

    An octet a cycle, 33 cycles after ``start`` it is done; it may start each 32 cycles.

    Attributes
    ----------
    write, address : Signal(), Signal(5), in
        A word passes that goes there in the unified header.
    write_after_ip : Signal(), in
        A word after the IP header passes.
    aligned : Signal(32), in
        That word.
    start : Signal(), in
        They are all there. One cycle.
    layer3, after_ip : Signal(2), Signal(3), in
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
        self.write_after_ip = Signal()
        self.aligned      = Signal(32)
        self.start        = Signal()
        self.layer3       = Signal(2)
        self.after_ip       = Signal(3)
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
            # Words of IP come alone, or with what is after IP in no cycle.
            writes_ip.eq(is_first | is_second),
            writer.we.eq(writes_ip | self.write_after_ip),
            writer.adr.eq(Mux(writes_ip, Cat(is_second, Constant(0, 2), bank), Cat(number, Constant(1, 1), bank))),
            writer.dat_w.eq(self.aligned),
            number_read.eq(Cat(step[2], ~step[3])),
            reader.adr.eq(Mux(step < step_behind, Cat(step[2], Constant(0, 2), ~bank), Cat(number_read, Constant(1, 1), ~bank))),
        ]
        self.sync += [
            If(writes_ip, number.eq(0)).Elif(self.write_after_ip, number.eq(number + 1)),
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
        self.comb += If(step >= step_flow,
            holds.eq(0xff)
        ).Elif(~self.layer3[1],
            holds.eq(0)
        ).Elif(step >= step_behind,
            If(number < self.after_ip, holds.eq(0xff))
        ).Elif(step[2],
            If(~step[1], holds.eq(0xff))
        ).Else(
            If(step[1], holds.eq(0xff)).Elif(step[0] & is_ipv6, holds.eq(0x0f))
        )
        return holds

# Frame Hashes -------------------------------------------------------------------------------------

class FrameHashes(LiteXModule):
    """Hashes what a parser finds, from its ``ended`` on.

    Parameters
    ----------
    parser : UnifiedParser

    Attributes
    ----------
    seed : Signal(32), in
        Of the hash of packets.
    flow : Signal(32), out
        0 for frames without layer 3. From 29 to 32 cycles after ``ended``.
    packet : Signal(32), out
        From 33 cycles after ``ended`` to 33 after the next one.
    """
    def __init__(self, parser):
        self.seed   = Signal(32)
        self.flow   = Signal(32)
        self.packet = Signal(32)

        # # #

        walk = parser.walk
        self.flow_hash   = flow   = FlowHash()
        self.packet_hash = packet = PacketHash()
        self.comb += [
            flow.write.eq(walk.sink.valid),
            *copied(flow, walk, "address", "data"),
            flow.start.eq(parser.ended),
            flow.has_addresses.eq(parser.layer3 != Layer3.NONE),
            flow.is_ipv6.eq(parser.layer3 == Layer3.IPV6),
            flow.has_ports.eq(parser.is_hashed),
            self.flow.eq(flow.hash),
            packet.write.eq(walk.sink.valid),
            packet.address.eq(walk.address),
            packet.write_after_ip.eq(walk.is_after_ip),
            packet.aligned.eq(walk.aligned),
            packet.start.eq(parser.ended),
            *copied(packet, parser, "layer3", "after_ip"),
            packet.flow_hash.eq(flow.hash),
            packet.seed.eq(self.seed),
            self.packet.eq(packet.hash),
        ]

# Channel Table ------------------------------------------------------------------------------------

entries = 128 # A flow's is the last seven bits of its hash.

class RssTable(LiteXModule):
    """Says which channel a flow goes to; a host writes it.

    At power-up entry n is channel n mod 8. A reset leaves the table as it is.

    Attributes
    ----------
    hash : Signal(32), in
        Of the flow.
    channel : Signal(3), out
        Two cycles later.
    write, number, value : Signal(), Signal(7), Signal(3), in
        Entry ``number`` becomes ``value``.
    """
    def __init__(self):
        self.hash    = Signal(32)
        self.channel = Signal(max=CHANNELS)
        self.write   = Signal()
        self.number  = Signal(max=entries)
        self.value   = Signal(max=CHANNELS)

        # # #

        memory = Memory(len(self.value), entries, init=[number % CHANNELS for number in range(entries)])
        writer, reader = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
        self.specials += memory, writer, reader
        self.comb += [
            writer.we.eq(self.write),
            writer.adr.eq(self.number),
            writer.dat_w.eq(self.value),
            reader.adr.eq(self.hash[:len(reader.adr)]),
        ]
        self.sync += self.channel.eq(reader.dat_r)
