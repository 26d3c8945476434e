# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Walks over the TLVs of a STAMP request, flags each, and fills those that the reflector knows."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats.reflect import StampTlv, TlvFlag

OCTETS   = 4  # Of a line, of a TLV's flags, type and length, and of most values that are filled.
DIRECT_OCTETS, FOLLOW_UP_OCTETS = 12, 16
TLV_LINE = 13 # Of the transport, in which the first TLV begins.
REFUSED  = 1  # RP of class of service: the answer's own class is the request's.

class TlvWalk(LiteXModule):
    """Changes what TLVs have in the lines of a request.

    Flags are set of every TLV: U of a type that it doesn't know, M of one that doesn't fit, none of the others. One that is longer
    than what is left is the last.

    Attributes
    ----------
    now, held, is_last : Signal(), Signal(32), Signal(), in
        A line, the first octet highest; it is the last one of its frame.
    coming : Signal(32), in
        The next one, unless it is the last.
    left, tail : Signal(14), Signal(2), in
        Octets of the payload of IP from this line on: whole words, and some after them.
    begins : Signal(), in
        The first TLV begins with this line.
    traffic_class : Signal(8), in
        Of the request.
    ports : Signal(32), in
        Destination and source port of the request, the first in the high half.
    is_stateful : Signal(), in
        Sessions are counted.
    has_direct : Signal(), in
        Direct measurement was found already: another one is not known.
    finds_direct : Signal(), out
        With ``now``: the line is the header of direct measurement; the second and third line after it are for the counts, 0 so far.
    has_information, information : Signal(), Signal(32), in
        Timestamp information is known; its value, its first octet highest.
    changed : Signal(32), out
        The line as the answer has it.

    Limits: of a location, the ports are filled, sub-TLVs are not. Direct measurement is known where sessions are counted, the
    first one of a request, if it begins with a line; follow-up telemetry where they aren't.

    Source: RFC 8972, section 4, 4.1 to 4.7.
    """
    def __init__(self):
        self.now           = now  = Signal()
        self.held          = held = Signal(32)
        self.is_last       = Signal()
        self.coming        = Signal(32)
        self.left          = left = Signal(14)
        self.tail          = tail = Signal(2)
        self.begins        = begins = Signal()
        self.traffic_class = Signal(8)
        self.ports         = Signal(32)
        self.is_stateful   = Signal()
        self.has_direct    = Signal()
        self.finds_direct  = Signal()
        self.has_information = Signal()
        self.information   = Signal(32)
        self.changed       = Signal(32)

        # # #

        def octet(word, number):
            return word[24 - 8*number:32 - 8*number]

        # Header.
        # -------
        # It may begin in any octet of a line, and be over in the next one.
        walks   = Signal()
        place   = Signal(2, reset_less=True)         # Octet in which the next header begins,
        line    = Signal(14, reset_less=True)        # and ``left`` of its line.
        lane    = Signal(2)
        is_tlv  = Signal()
        octets  = [octet(word, number) for word in (held, self.coming) for number in range(4)]
        kind    = Signal(8)
        length  = Signal(16)
        wanted  = Signal(6) # The first six bits of the value.
        ahead   = Signal(17) # Octets from the next line's begin to the next header.
        to      = Signal((15, True))
        is_cut    = Signal()
        is_known  = Signal()
        is_small  = Signal()
        is_class  = Signal()
        is_time   = Signal()
        is_place  = Signal()
        is_filled = Signal()
        is_direct = Signal()
        is_blank  = Signal()
        is_report = Signal()
        self.comb += [
            lane.eq(Mux(begins, 0, place)),
            is_tlv.eq(begins | (walks & (line == left))),
            Case(lane, {n: [kind.eq(octets[n + 1]), length.eq(Cat(octets[n + 3], octets[n + 2])), wanted.eq(octets[n + 4][2:])]
                for n in range(4)}),
            ahead.eq(length + lane),
            to.eq(left - 1 - ahead[2:]),
            is_cut.eq((to < 0) | ((to == 0) & (ahead[:2] > tail))),
            is_time.eq((kind == int(StampTlv.TIMESTAMP_INFORMATION)) & self.has_information),
            is_class.eq(kind == int(StampTlv.CLASS_OF_SERVICE)),
            is_place.eq(kind == int(StampTlv.LOCATION)),
            is_direct.eq((kind == int(StampTlv.DIRECT_MEASUREMENT)) & self.is_stateful & ~self.has_direct & (lane == 0)),
            is_blank.eq((kind == int(StampTlv.FOLLOW_UP_TELEMETRY)) & ~self.is_stateful),
            is_report.eq(kind == int(StampTlv.ACCESS_REPORT)),
            is_filled.eq(is_time | is_class | is_place | is_blank),
            is_known.eq((kind == int(StampTlv.EXTRA_PADDING)) | is_filled | is_direct | is_report),
            is_small.eq(is_known & (kind != int(StampTlv.EXTRA_PADDING))
                & (length < Mux(is_direct, DIRECT_OCTETS, Mux(is_blank, FOLLOW_UP_OCTETS, OCTETS)))),
            self.finds_direct.eq(is_tlv & is_direct & ~is_cut & ~is_small),
        ]
        self.sync += If(now,
            If(is_tlv,
                walks.eq((to > 0) | ((to == 0) & (ahead[:2] < tail))),
                line.eq(to),
                place.eq(ahead[:2]),
            ),
            If(self.is_last, walks.eq(0)),
        )

        # Value.
        # ------
        # It begins in the same octet, a line later.
        is_first = Signal() # Lines that have some of the value,
        is_last  = Signal()
        is_whole = Signal(2)                   # and those that have nothing else.
        of_class = Signal(reset_less=True)
        of_place = Signal(reset_less=True)
        of_blank = Signal(reset_less=True)
        direct = Signal(3) # Lines of direct measurement: of the sender's count, and of those that are 0 up to here.
        from_   = Signal(2, reset_less=True)
        asked   = Signal(6, reset_less=True)
        differs = Signal(reset_less=True)
        value   = Signal(32)
        dscp, ecn = self.traffic_class[2:], self.traffic_class[:2]
        self.comb += [
            value.eq(Mux(of_place, self.ports, self.information) & Replicate(~of_blank, 32)),
            If(of_class, value.eq(Cat(Constant(0, 16), Mux(differs, REFUSED, 0), Constant(0, 1), ecn, dscp, asked))),
        ]
        self.sync += If(now,
            is_first.eq(is_tlv & is_filled & ~is_cut & ~is_small & ~self.is_last),
            is_whole.eq(Cat(is_first & of_blank & ~self.is_last, is_whole[0])),
            direct.eq(Mux(self.is_last, 0, Cat(self.finds_direct, direct))),
            is_last.eq(Mux(of_blank, is_whole[1], is_first) & ~self.is_last),
            If(is_tlv,
                of_class.eq(is_class),
                of_place.eq(is_place),
                of_blank.eq(is_blank),
                from_.eq(lane),
                asked.eq(wanted),
                differs.eq(wanted != dscp),
            ),
        )

        # Line.
        # -----
        # One octet of the header changes, its first.
        unknown = Signal(2) # Its upper two bits.
        upper = {flag: int(flag) >> 6 for flag in TlvFlag}
        self.comb += unknown.eq(
            Mux(is_cut | is_small, upper[TlvFlag.MALFORMED], Mux(is_known, 0, upper[TlvFlag.UNRECOGNIZED])))
        for number in range(4):
            old, new, filled = octet(held, number), octet(self.changed, number), Signal(8)
            is_filled_here = (is_first & (number >= from_)) | (is_last & (number < from_)) | (is_whole != 0)
            self.comb += [
                Case(from_, {n: filled.eq(octet(value, (number - n) % 4)) for n in range(4)}),
                new.eq(Mux(is_filled_here, filled, old & Replicate(direct[1:] == 0, 8))),
                If(is_tlv & (lane == number), new.eq(Cat(old[:6] & Replicate(is_cut, 6), unknown))),
            ]
