# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The hash that tells flows apart, the same for both of their directions."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import FLOW_KEY, UNIFIED_PLACES
from liteprobe.cores.receive.unified.key import swapped

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
