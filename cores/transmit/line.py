# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Grants the line to one frame at a time and keeps it busy for the frame's slot."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.transmit.frames import HOLD_BITS, octet_description

LINE_TICKS = 4 # Of a slot, taken by the line's own registers.

class LineGrant(LiteXModule):
    """Sends one frame for each start and keeps the line busy for its slot; in ``timebase``.

    The first octet leaves ``source`` three ticks after ``start``; then one octet a tick.

    Attributes
    ----------
    probe, management : Endpoint(octet_description()), in
        Frames in waiting.
    source : Endpoint(octet_description()), out
        ``ready`` is not looked at. ``probe`` tells which of the two it came from.
    start : Signal(), in
        Begins a frame in this tick; only when ``is_free`` and the chosen frame is in waiting.
    choose_management : Signal(), in
        With ``start``: send the management frame.
    probe_hold, management_hold : Signal(14), in
        LINE_TICKS less than the ticks until the line is free again: the first counts in the tick after ``start``, the
        second in the tick of it.
    is_free : Signal(), out
        High again exactly that many ticks plus LINE_TICKS after ``start``.
    is_sending : Signal(), out
        Octets are being taken.
    is_management : Signal(), out
        The present, or else the last, frame is management.
    discard : Signal(), in
        While high and not sending, probe frames are taken and thrown away.
    discarded : Signal(), out
        One pulse as the last octet of a frame was thrown away by ``discard``.
    is_discarding : Signal(), out
        The rest of a broken probe frame is being thrown away: nothing new is in waiting.
    underrun : Signal(), out
        One pulse when a frame has no octet in time: it is cut there, with a wrong FCS.
    """
    def __init__(self):
        self.probe             = probe      = stream.Endpoint(octet_description())
        self.management        = management = stream.Endpoint(octet_description())
        self.source            = source     = stream.Endpoint(octet_description())
        self.start             = Signal()
        self.choose_management = Signal()
        self.probe_hold        = Signal(HOLD_BITS)
        self.management_hold   = Signal(HOLD_BITS)
        self.is_free           = Signal(reset=1)
        self.is_sending        = Signal()
        self.is_management     = Signal()
        self.discard           = Signal()
        self.discarded         = Signal()
        self.is_discarding     = Signal()
        self.underrun          = Signal()

        # # #

        left          = Signal(HOLD_BITS + 1, reset=2**HOLD_BITS) # Its top bit is set once it is through.
        hold          = Signal(HOLD_BITS)
        is_begun      = Signal() # A start is known late in its tick, and a frame takes many decisions: they come after.
        of_probe      = Signal() # Octets are being taken from one of the two.
        of_management = Signal()
        is_throwing   = Signal()
        valid         = Signal()
        last          = Signal()
        is_thrown     = Signal() # The last octet of a frame.
        # A reset that reaches everything is the longest path of the timebase; what only counts with another goes without.
        for unreset in [source.payload, left, hold]:
            stream.set_reset_less(unreset)

        # Occupation.
        # -----------
        self.sync.timebase += [
            is_begun.eq(self.start),
            hold.eq(self.management_hold),
            If(self.start,
                self.is_free.eq(0),
            ).Elif(is_begun,
                left.eq(Mux(self.is_management, hold, self.probe_hold)),
            ).Elif(left[-1],
                self.is_free.eq(1),
            ).Else(
                left.eq(left - 1),
            ),
        ]

        # Octets.
        # -------
        self.comb += [
            valid.eq(Mux(self.is_management, management.valid, probe.valid)),
            last.eq(Mux(self.is_management, management.last, probe.last)),
            management.ready.eq(of_management),
            probe.ready.eq(of_probe | is_throwing),
            is_thrown.eq(is_throwing & probe.valid & probe.last),
        ]
        self.sync.timebase += [
            self.underrun.eq(0),
            source.valid.eq(self.is_sending),
            source.data.eq(Mux(self.is_management, management.data, probe.data)),
            source.last.eq(last | ~valid),
            source.error.eq(~valid),
            source.probe.eq(~self.is_management),
            is_throwing.eq((self.discard & ~self.is_sending & ~is_begun) | (self.is_discarding & ~is_thrown)),
            If(self.start, self.is_management.eq(self.choose_management)),
            If(is_begun,
                self.is_sending.eq(1),
                of_probe.eq(~self.is_management),
                of_management.eq(self.is_management),
            ).Elif(self.is_sending & (last | ~valid),
                self.is_sending.eq(0),
                of_probe.eq(0),
                of_management.eq(0),
                If(~valid, self.underrun.eq(1), self.is_discarding.eq(~self.is_management)),
            ),
            If(is_thrown, self.is_discarding.eq(0)),
            self.discarded.eq(is_thrown & ~self.is_discarding),
        ]
