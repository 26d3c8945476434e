# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Writes the time at which it leaves into a frame that is not of a program: T3 of STAMP."""

from enum import IntEnum

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.octets import swapped
from liteprobe.cores.timebase.seconds import NS_BITS, SECONDS_BITS, SecondOf
from liteprobe.cores.transmit.frames import word_description

MARK_BITS = 3

class Departure(IntEnum):
    """Says what of the time goes into a word of a frame: seconds, then nanoseconds, 32 bits each, from its second half on."""

    NONE     = 0
    CHECKSUM = 1 # The first half is the UDP checksum of the frame whose time is 0 so far.
    FIRST    = 2 # The second half takes the high half of the seconds.
    MIDDLE   = 3 # Low half of the seconds, high half of the nanoseconds.
    LAST     = 4 # The first half takes the low half of the nanoseconds.

def marked_description():
    """Words of a frame with their marks."""
    words = word_description(32)
    return stream.EndpointDescription([*words.payload_layout, ("marks", MARK_BITS)])

class DepartureStamp(LiteXModule):
    """Writes the time of a frame's own SFD into its marked words; in ``timebase``.

    Attributes
    ----------
    sink : Endpoint(marked_description()), in
        Words of frames. The word of the checksum, and all that are marked after it, must come 12 ticks after the SFD or later.
    source : Endpoint(word_description(32)), out
        A tick later, the checksum three.
    now : Signal(64), in
        Present time (ns), a tick late.
    sfd : Signal(), in
        High in the tick in which an SFD, of whatever frame, stands at the PHY's pads.
    seconds, base : Signal(32), in
        As of `SecondsClock`, in ``timebase``.

    Source: RFC 8762, 4.3.1; RFC 1624, equation 3; RFC 768 (a checksum of 0 is sent as 0xffff).
    """
    def __init__(self):
        self.sink    = sink   = stream.Endpoint(marked_description())
        self.source  = source = stream.Endpoint(word_description(32))
        self.now     = Signal(64)
        self.sfd     = Signal()
        self.seconds = Signal(SECONDS_BITS)
        self.base    = Signal(NS_BITS)

        # # #

        # Time.
        # -----
        take  = Signal()
        stamp = Signal(NS_BITS, reset_less=True)
        self.second_of = second_of = ClockDomainsRenamer("timebase")(SecondOf())
        of_second     = Signal(17, reset_less=True)
        of_nanosecond = Signal(17, reset_less=True)
        sums  = Signal(18, reset_less=True)
        once  = Signal(17, reset_less=True)
        total = Signal(16, reset_less=True)
        second, nanosecond = second_of.second, second_of.nanosecond
        self.comb += [
            second_of.time.eq(stamp),
            second_of.seconds.eq(self.seconds),
            second_of.base.eq(self.base),
        ]
        self.sync.timebase += [
            take.eq(self.sfd),
            If(take, stamp.eq(self.now)),
            of_second.eq(second[:16] + second[16:]),
            of_nanosecond.eq(nanosecond[:16] + nanosecond[16:]),
            sums.eq(of_second + of_nanosecond),
            once.eq(sums[:16] + sums[16:]),
            total.eq(once[:16] + once[16]),
        ]

        # Words.
        # ------
        is_held = Signal()
        is_sum  = Signal()  # Of the checksum,
        is_once = Signal()  # whose sum is known.
        mended  = Signal(17, reset_less=True)
        final   = Signal(16)
        for unreset in [source.payload, is_once]:
            stream.set_reset_less(unreset)
        self.comb += [
            sink.ready.eq(~is_held),
            source.valid.eq(is_held & ~is_sum),
            final.eq(~(mended[:16] + mended[16])),
        ]
        self.sync.timebase += [
            If(sink.ready,
                is_held.eq(sink.valid),
                is_sum.eq(sink.marks == int(Departure.CHECKSUM)),
                is_once.eq(0),
                source.data.eq(sink.data),
                source.last_be.eq(sink.last_be),
                source.last.eq(sink.last),
                If((sink.marks == int(Departure.FIRST)) | (sink.marks == int(Departure.MIDDLE)),
                    source.data[16:].eq(swapped(Mux(sink.marks[0], nanosecond[16:], second[16:]))),
                ),
                If((sink.marks == int(Departure.MIDDLE)) | (sink.marks == int(Departure.LAST)),
                    source.data[:16].eq(swapped(Mux(sink.marks[0], second[:16], nanosecond[:16]))),
                ),
            ).Elif(is_sum,
                mended.eq(swapped(~source.data[:16]) + total),
                is_once.eq(1),
                If(is_once,
                    is_sum.eq(0),
                    source.data[:16].eq(Mux(final == 0, 0xffff, swapped(final))),
                ),
            ).Elif(source.ready,
                is_held.eq(0),
            ),
        ]
