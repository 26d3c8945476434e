# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The hash that tells flows apart, the same for both of their directions."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import FLOW_KEY, UNIFIED_PLACES

# Numbers ------------------------------------------------------------------------------------------

step_bits = 16 # Of data that are hashed a cycle: the 36 octets of IPv6 and ports take 18.

def key_bits(start, count):
    """Return bits of the key, the first one lowest."""
    bits = [FLOW_KEY[place//8] >> (7 - place % 8) & 1 if place < 8*len(FLOW_KEY) else 0 for place in range(start, start + count)]
    return sum(bit << place for place, bit in enumerate(bits))

# Flow Hash ----------------------------------------------------------------------------------------

class FlowHash(LiteXModule):
    """Toeplitz hash of addresses and ports of a frame, the lower endpoint first.

    Takes 3 + 6 cycles for IPv4 and 3 to 9 + 18 for IPv6, from ``start`` to ``done``. Addresses of the next frame may be
    written meanwhile, but not those of the one after.

    Attributes
    ----------
    write, address, data : Signal(), Signal(5), Signal(32), in
        Words of the unified header; those of addresses and ports are kept.
    start : Signal(), in
        They are all there. One cycle.
    is_ipv6, has_ports, sorts : Signal(), in
        Addresses of 16 octets, not of four; ports count; endpoints are sorted. Held until ``done``.
    hash, done : Signal(32), Signal(), out
        One cycle of ``done``; ``hash`` stays until the next ``start``.

    Source: Microsoft, "RSS hashing functions"; sim/models/toeplitz.py.
    """
    def __init__(self):
        self.write     = Signal()
        self.address   = Signal(5)
        self.data      = Signal(32)
        self.start     = Signal()
        self.is_ipv6   = Signal()
        self.has_ports = Signal()
        self.sorts     = Signal(reset=1)
        self.hash      = Signal(32)
        self.done      = Signal()

        # # #

        # Addresses.
        # ----------
        # Of two frames: one that passes and one that is hashed.
        memory = Memory(32, 16)
        writer, reader = memory.get_port(write_capable=True), memory.get_port(async_read=True)
        self.specials += memory, writer, reader
        bank, place = Signal(), Signal(3)
        ports = [Signal(32, reset_less=True) for _ in range(2)]
        is_address = self.address[3:] == UNIFIED_PLACES["source"][0] >> 3
        is_ports   = self.address == UNIFIED_PLACES["source_port"][0]
        octets     = reader.dat_r
        word, last = Signal(32), Signal(32, reset_less=True) # First octet highest.
        self.comb += [
            writer.we.eq(self.write & is_address),
            writer.adr.eq(Cat(self.address[:3], bank)),
            writer.dat_w.eq(self.data),
            reader.adr.eq(Cat(place, ~bank)),
            word.eq(Cat(octets[24:], octets[16:24], octets[8:16], octets[:8])),
        ]
        self.sync += [
            last.eq(word),
            If(self.write & is_ports, ports[0].eq(self.data)),
            If(self.start, bank.eq(~bank), ports[1].eq(ports[0])),
        ]
        octets = [ports[1][8*number:8*number + 8] for number in range(4)]
        source_port, destination_port = Cat(octets[1], octets[0]), Cat(octets[3], octets[2])

        # Which endpoint is lower.
        # ------------------------
        # Word by word: the source's, then the destination's beside it.
        compares, hashes = Signal(), Signal()
        number, is_second, is_swapped = Signal(2), Signal(), Signal()
        is_last  = Mux(self.is_ipv6, number == 3, 1)
        is_ports = Signal() # Ports are hashed.
        is_low   = Signal() # Second half of a word.
        self.comb += place.eq(Cat(number, is_second ^ (hashes & is_swapped)))
        self.sync += If(compares,
            is_second.eq(~is_second),
            If(is_second,
                number.eq(number + 1),
                If((word != last) | is_last,
                    compares.eq(0), hashes.eq(1), number.eq(0),
                    is_swapped.eq(self.sorts & ((word < last) |
                        ((word == last) & self.has_ports & (destination_port < source_port)))),
                )
            )
        )

        # Hash.
        # -----
        part, window = Signal(step_bits), Signal(step_bits + 32, reset_less=True)
        chunk, step  = Signal(step_bits), Signal(5)
        self.comb += [
            part.eq(Mux(is_low, word[:16], word[16:])),
            If(is_ports, part.eq(Mux(is_low ^ is_swapped, destination_port, source_port))),
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
            If(hashes,
                self.hash.eq(self.hash ^ added),
                window.eq(Cat(window[step_bits:], chunk)),
                step.eq(step + 1),
                is_low.eq(~is_low),
                If(is_low,
                    number.eq(number + 1),
                    If(is_last,
                        number.eq(0),
                        is_second.eq(1),
                        is_ports.eq(is_second),
                    ),
                    If(is_ports | (is_last & is_second & ~self.has_ports),
                        hashes.eq(0),
                        self.done.eq(1),
                    ),
                ),
            ),
            If(self.start,
                compares.eq(1), hashes.eq(0), number.eq(0), is_second.eq(0), is_ports.eq(0), is_low.eq(0), step.eq(0),
                self.hash.eq(0),
                window.eq(key_bits(0, len(window))),
            ),
        ]
