# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Walks over the TLVs of a STAMP request, flags each, and fills those that the reflector knows."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats.reflect import StampTlv, TlvFlag
from liteprobe.cores.octets import swapped
from liteprobe.cores.reflect.complement import ComplementSum

HEADER   = 4  # Octets: flags, type, length.
VALUE    = 4  # Octets that are filled.
FIRST    = 13 # Word of the transport in whose second half the first TLV begins.
REFUSED  = 1  # RP of class of service: the answer's own class is the request's.

class TlvWalk(LiteXModule):
    """Holds each word of a frame until the next one is there, and changes what TLVs have in it.

    Flags are set of every TLV: U of a type that it doesn't know, M of one that doesn't fit, none of the others. One that is longer
    than what is left is the last.

    Attributes
    ----------
    valid, last, data : Signal(), Signal(), Signal(32), in
        Words of all frames.
    step, in_transport, left : Signal(5), Signal(), Signal(17), in
        With them: which word of the transport, if it is one, and octets of the payload of IP from its first octet on.
    has_tlvs : Signal(), in
        With word FIRST: TLVs follow.
    traffic_class : Signal(8), in
        Of the request.
    ports : Signal(32), in
        Destination and source port of the request, the first in the high half.
    information : Signal(32), in
        Value of timestamp information, its first octet highest; 0: this TLV is not known.
    source_valid, source_last, source_data : Signal(), Signal(), Signal(32), out
        The same words, each with the next one, the last one a cycle later.
    plus, minus : Signal(16), out
        One's complement sums of what was put into the words, and of what was in its place, inverted; from a cycle after the last.

    Limits: of a location, the ports are filled, sub-TLVs are not.

    Source: RFC 8972, section 4, 4.1 to 4.4.
    """
    def __init__(self):
        self.valid         = Signal()
        self.last          = Signal()
        self.data          = Signal(32)
        self.step          = Signal(5)
        self.in_transport  = Signal()
        self.left          = Signal(17)
        self.has_tlvs      = Signal()
        self.traffic_class = Signal(8)
        self.ports         = Signal(32)
        self.information   = Signal(32)
        self.source_valid  = Signal()
        self.source_last   = Signal()
        self.source_data   = Signal(32)

        # # #

        held    = Signal(32, reset_less=True)
        is_held = Signal()
        is_last = Signal()
        left    = Signal(17, reset_less=True)
        begins  = Signal()
        walks   = Signal()
        skip    = Signal(18, reset_less=True) # Octets from the held word's first to the next TLV.
        now     = Signal()
        self.comb += [
            now.eq(is_held & (self.valid | is_last)),
            self.source_valid.eq(now),
            self.source_last.eq(is_last),
        ]
        self.sync += [
            If(now, is_held.eq(0)),
            If(self.valid,
                held.eq(self.data),
                is_held.eq(1),
                is_last.eq(self.last),
                left.eq(self.left),
                begins.eq(self.in_transport & (self.step == FIRST) & self.has_tlvs),
            ),
        ]

        # Header.
        # -------
        # It may begin in any octet of the held word, and be over in the next one.
        lane    = Signal(2)
        window  = Cat(held, Mux(is_last, 0, self.data))
        octets  = Signal(5*8) # Flags, type, length, first octet of the value.
        flags, kind = octets[:8], octets[8:16]
        length  = Cat(octets[24:32], octets[16:24])
        is_here = Signal()
        remains = Signal(18)
        needs   = Signal(17)
        is_cut, is_known, is_small = Signal(), Signal(), Signal()
        is_class, is_time, is_place = Signal(), Signal(), Signal()
        is_filled = Signal()
        flagged = Signal(8)
        self.comb += [
            lane.eq(Mux(begins, 2, skip[:2])),
            is_here.eq(begins | (walks & (skip[2:] == 0))),
            Case(lane, {n: octets.eq(window[8*n:8*n + 40]) for n in range(4)}),
            remains.eq(left - lane),
            needs.eq(length + HEADER),
            is_cut.eq((remains < HEADER) | (needs > remains[:17])),
            is_time.eq((kind == int(StampTlv.TIMESTAMP_INFORMATION)) & (self.information != 0)),
            is_class.eq(kind == int(StampTlv.CLASS_OF_SERVICE)),
            is_place.eq(kind == int(StampTlv.LOCATION)),
            is_filled.eq(is_time | is_class | is_place),
            is_known.eq((kind == int(StampTlv.EXTRA_PADDING)) | is_filled),
            is_small.eq(is_filled & (length < VALUE)),
            If(is_cut,
                flagged.eq((flags & (0xff ^ int(TlvFlag.UNRECOGNIZED))) | int(TlvFlag.MALFORMED)),
            ).Elif(~is_known,
                flagged.eq(int(TlvFlag.UNRECOGNIZED)),
            ).Elif(is_small,
                flagged.eq(int(TlvFlag.MALFORMED)),
            ),
        ]
        is_tlv = Signal() # There is one, not the end.
        self.comb += is_tlv.eq(is_here & (left > lane))
        self.sync += If(now,
            If(is_here,
                walks.eq(is_tlv & ~is_cut),
                skip.eq(lane + needs - 4),
            ).Else(
                skip.eq(skip - 4),
            ),
            If(is_last, walks.eq(0)),
        )

        # Value.
        # ------
        # It begins in the lane of the header, a word later.
        dscp, ecn = self.traffic_class[2:], self.traffic_class[:2]
        wanted    = octets[34:40]
        value     = Signal(32)
        fills     = Signal(8)
        filling   = Signal(64)
        patch     = Signal(64, reset_less=True)
        patches   = Signal(8)
        self.comb += [
            value.eq(swapped(Mux(is_place, self.ports, self.information))),
            If(is_class, value.eq(Cat(dscp[4:], wanted, Mux(wanted == dscp, 0, REFUSED), Constant(0, 1), ecn, dscp[:4]))),
            Case(lane, {n: [filling.eq(Cat(Constant(0, 8*n), value) if n else value), fills.eq(0b1111 << n)] for n in range(4)}),
        ]
        self.sync += If(now,
            patch.eq(patch[32:]),
            patches.eq(patches[4:]),
            If(is_tlv & ~is_cut & ~is_small & is_filled,
                patch.eq(filling),
                patches.eq(fills),
            ),
            If(is_last, patches.eq(0)),
        )
        self.comb += [
            [self.source_data[8*n:8*n + 8].eq(Mux(patches[n], patch[8*n:8*n + 8],
                Mux(is_tlv & (lane == n), flagged, held[8*n:8*n + 8]))) for n in range(4)],
        ]

        # Sums.
        # -----
        self.more, self.less = more, less = ComplementSum(), ComplementSum()
        self.plus, self.minus = more.total, less.total
        first = Signal(reset=1)
        def number(word):
            return Cat(word[8:16], word[:8])
        self.sync += If(now, first.eq(is_last))
        changes = Signal()
        self.comb += [
            changes.eq(self.source_data != held),
            *[one.begin.eq(now & first) for one in (more, less)],
            *[one.add.eq(now) for one in (more, less)],
            If(changes & ~first,
                more.a.eq(number(self.source_data[:16])), more.b.eq(number(self.source_data[16:])),
                less.a.eq(~number(held[:16])),            less.b.eq(~number(held[16:])),
            ),
        ]
