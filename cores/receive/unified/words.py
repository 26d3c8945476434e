# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Where each word of a header goes in the unified header."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import UNIFIED_PLACES
from liteprobe.cores.receive.unified.numbers import *

# Word Places --------------------------------------------------------------------------------------

def place(name, number=0):
    """Return a word of the unified header."""
    return UNIFIED_PLACES[name][0] + number

class WordPlaces(LiteXModule):
    """Finds a place for each word of a frame, and takes it as the stream has it or from half a word before.

    Attributes
    ----------
    raw, half : Signal(32), Signal(16), in
        A word of the stream, and the last half of the one before.
    is_first : Signal(), in
        It is the frame's first.
    state, position, walked, tags, labels : Signal(4), Signal(4), Signal(8), Signal(3), Signal(3), in
        As in `UnifiedWalk`.
    address, data : Signal(5), Signal(32), out
        Place in the unified header, 0 for none, and the word.
    """
    def __init__(self):
        self.raw      = Signal(32)
        self.half     = Signal(16)
        self.is_first = Signal()
        self.state    = Signal(4)
        self.position = Signal(4)
        self.walked   = Signal(8)
        self.tags     = Signal(3)
        self.labels   = Signal(3)
        self.address  = Signal(5)
        self.data     = Signal(32)

        # # #

        is_raw      = Signal()
        hides_first = Signal()
        hides_last  = Signal()
        is_udp      = self.walked == udp
        is_icmp     = any_of(self.walked, icmp, icmpv6)
        self.comb += [
            Case(self.state, {
                link      : [is_raw.eq(1), If(self.position != 3, self.at(place("destination_mac") | self.position[:2]))],
                tag       : self.at(place("tags")   | self.tags[:2]),
                label     : self.at(place("labels") | self.labels[:2]),
                ip        : self.at(place("ip")),
                ipv4      : self.at_position({
                    1: place("ip", 1), 2: place("ip", 2), 3: place("source"), 4: place("destination"),
                }),
                # Source and destination follow one another in both headers.
                ipv6      : self.at_position({
                    1: place("ip", 1), **{2 + number: place("source", number) for number in range(8)},
                }),
                extension : If(self.walked == fragment, self.at(place("ip", 2))),
                transport : [
                    # A probe's words lie half a word further.
                    is_raw.eq(is_udp & self.position[1]),
                    hides_first.eq(is_udp & (self.position == 2)),
                    hides_last.eq(is_icmp),
                    self.at_position({
                        0: place("source_port"),
                        1: place("sequence"),
                        2: Mux(is_udp, place("detail"), 0),
                        3: Mux(is_udp, place("sequence"), place("detail")),
                    }),
                ],
                arp       : [
                    is_raw.eq(self.position == 3),
                    self.at_position({1: place("ip"), 3: place("source"), 6: place("destination")}),
                ],
            }),
            If(self.is_first,
                self.at(place("destination_mac")),
                is_raw.eq(1), hides_first.eq(0), hides_last.eq(0),
            ),
            self.data[:16].eq(Mux(is_raw, self.raw[:16], self.half)      & Replicate(~hides_first, 16)),
            self.data[16:].eq(Mux(is_raw, self.raw[16:], self.raw[:16])  & Replicate(~hides_last,  16)),
        ]

    def at(self, address):
        """The word goes there."""
        return self.address.eq(address)

    def at_position(self, addresses):
        """Each word of a header has a place of its own, or none."""
        return Case(self.position, {position: self.at(address) for position, address in addresses.items()})
