# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Bit errors in the fill of a probe frame."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import PRBS_BITS
from liteprobe.cores.measure.measured import ERROR_BITS
from liteprobe.cores.prbs import LANE, first_word, place_of, prbs_advance

# Fill Check ---------------------------------------------------------------------------------------

class FillCheck(LiteXModule):
    """Counts the bits of a frame's fill that are not those of PRBS-31, which starts anew in each frame.

    The fill begins with the word behind ``starts`` and ends with the frame, whatever its IP header says; with ``is_ipv6`` two
    octets before that, which mend the UDP checksum.

    Attributes
    ----------
    valid, data, last, last_be : Signal(), Signal(32), Signal(), Signal(4), in
        Words of the frame, as of the receive MAC.
    starts : Signal(), in
        The word that passes is the last one before the fill.
    is_ipv6 : Signal(), in
        With ``last``: of the frame.
    ended : Signal(), in
        Two cycles after ``last``: take what was counted.
    errors : Signal(17), out
        Of the frame that ``ended`` was for, from two cycles after it to one after the next one. Wraps beyond giants.
    """
    def __init__(self):
        self.valid   = Signal()
        self.data    = Signal(LANE)
        self.last    = Signal()
        self.last_be = Signal(LANE//8)
        self.starts  = Signal()
        self.is_ipv6 = Signal()
        self.ended   = Signal()
        self.errors  = Signal(ERROR_BITS, reset_less=True)

        # # #

        # Difference.
        # -----------
        in_fill    = Signal()
        checks     = Signal()
        expected   = Signal(LANE, reset_less=True) # The next word of the fill.
        difference = Signal(LANE, reset_less=True)
        has_word   = Signal() # ``difference`` isn't counted yet.
        ends       = Signal() # It is the frame's last.
        keep       = self.add_mask()
        # The generator's state is what was sent last, the last bit lowest.
        following, _ = prbs_advance(Cat(*[expected[place_of(LANE - 1 - n)] for n in range(PRBS_BITS)]))
        self.comb += checks.eq(self.valid & in_fill)
        self.sync += [
            If(self.valid, in_fill.eq((self.starts | in_fill) & ~self.last)),
            If(checks,
                expected.eq(following),
                difference.eq((self.data ^ expected) & Cat(*[Replicate(keeps, 8) for keeps in keep])),
            ),
            If(self.valid & self.starts, expected.eq(first_word())),
            has_word.eq((has_word & ~ends) | checks),
            ends.eq(checks & self.last),
        ]
        self.add_count(difference, has_word & (checks | ends), checks & self.hides_before)

    def add_mask(self):
        """Return which octets of a word are of the fill, and tell whether the one before this word isn't."""
        keep  = [Signal(name=f"keeps_{octet}") for octet in range(4)]
        three = self.last_be[2] | self.last_be[3] # Octets of the last word, or more.
        four  = self.last_be[3]
        two   = self.last_be[1:] != 0
        self.hides_before = Signal()
        for octet, (plain, shorter) in enumerate([(1, three), (two, four), (three, 0), (four, 0)]):
            self.comb += keep[octet].eq(~self.last | Mux(self.is_ipv6, shorter, plain))
        self.comb += self.hides_before.eq(self.last & self.is_ipv6 & ~two)
        return keep

    def add_count(self, difference, counts, hides):
        """Add up what differs."""
        octets  = [Signal(4, name=f"wrong_{octet}", reset_less=True) for octet in range(4)]
        counted = Signal()
        total   = Signal(ERROR_BITS, reset_less=True)
        is_done = Signal()
        for octet, wrong in enumerate(octets):
            self.sync += wrong.eq(sum(difference[8*octet + bit] for bit in range(8)))
        self.sync += [
            If(hides, octets[3].eq(0)),
            counted.eq(counts),
            If(counted, total.eq(total + (octets[0] + octets[1]) + (octets[2] + octets[3]))),
            If(self.valid & self.starts, total.eq(0)),
            is_done.eq(self.ended),
            If(is_done, self.errors.eq(total)),
        ]
