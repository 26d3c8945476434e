# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Where a frame starts and ends on the wire."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description

from liteprobe.cores.formats import PREAMBLE_OCTET, SFD_OCTET

# SFDs closer than this are refused: sys handles a frame, however short, in three of its cycles.
least_sfd_spacing = 8

# SFD Detector -------------------------------------------------------------------------------------

class SFDDetector(LiteXModule):
    """Finds where a frame starts and ends on the wire.

    A preamble is any number of octets 0x55, then the SFD. Anything else refuses the whole carrier, until RX_DV
    falls: a damaged SFD is never found later inside the frame, where it would give a wrong stamp.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(8)), in
        ``valid`` is RX_DV, ``error`` RX_ER; always ready; ``last`` is not looked at.
    sfd : Signal(), out
        One tick, one tick after the SFD stood on ``sink``. At least 8 ticks apart.
    octet_valid, octet, end : Signal(), Signal(8), Signal(), out
        Octets after the SFD; ``end`` for one tick after the last one (never together with an octet).
    symbol_error : Signal(), out
        RX_ER since the preamble began; valid with ``end``.
    preamble_error : Signal(), out
        One tick for each carrier that was refused.

    Source: IEEE 802.3, 4.2.5 and 35.2.3.
    """
    def __init__(self):
        self.sink           = sink = stream.Endpoint(eth_phy_description(8))
        self.sfd            = Signal()
        self.octet_valid    = Signal()
        self.octet          = Signal(8)
        self.end            = Signal()
        self.symbol_error   = Signal()
        self.preamble_error = Signal()

        # # #

        carrier = Signal()
        octet   = Signal(8)
        symbol  = Signal()
        self.spacing = spacing = Signal(max=least_sfd_spacing) # Ticks in which no SFD is taken.
        refused = Signal()
        # Comparisons are registers: their verdict goes far.
        is_sfd      = Signal()
        is_preamble = Signal()
        is_spaced   = Signal(reset=1)

        # Pads.
        # -----
        self.comb += sink.ready.eq(1)
        self.sync += [
            carrier.eq(sink.valid),
            octet.eq(sink.data),
            symbol.eq(sink.error),
            is_sfd.eq(sink.data == SFD_OCTET),
            is_preamble.eq(sink.data == PREAMBLE_OCTET),
        ]

        # Carrier.
        # --------
        self.fsm = fsm = FSM(reset_state="PREAMBLE")
        in_preamble = Signal() # The present carrier was seen, and is still undecided.
        fsm.act("PREAMBLE",
            NextValue(in_preamble, carrier),
            If(carrier,
                If(is_sfd & is_spaced,
                    self.sfd.eq(1),
                    NextValue(in_preamble, 0),
                    NextState("FRAME")
                ).Elif(~is_preamble,
                    refused.eq(1),
                    NextValue(in_preamble, 0),
                    NextState("REFUSED")
                )
            ).Elif(in_preamble,
                refused.eq(1)
            )
        )
        fsm.act("FRAME",   If(~carrier, NextState("PREAMBLE")))
        fsm.act("REFUSED", If(~carrier, NextState("PREAMBLE")))

        # Outputs.
        # --------
        self.sync += [
            If(self.sfd,
                spacing.eq(least_sfd_spacing - 1),
                is_spaced.eq(0),
            ).Else(
                If(spacing != 0, spacing.eq(spacing - 1)),
                is_spaced.eq((spacing == 0) | (spacing == 1)),
            ),
            self.preamble_error.eq(refused),
            self.octet_valid.eq(fsm.ongoing("FRAME") & carrier),
            self.octet.eq(octet),
            self.end.eq(fsm.ongoing("FRAME") & ~carrier),
            If(carrier,
                self.symbol_error.eq(symbol | (self.symbol_error & ~(fsm.ongoing("PREAMBLE") & ~in_preamble)))
            ),
        ]
