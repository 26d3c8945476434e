# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Brings frames from the octets of a PHY to words in ``sys``: detects SFD and end of frame, checks the FCS, packs, crosses."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description
from liteeth.mac.crc import LiteEthMACCRCEngine

from liteprobe.cores.assign import copied
from liteprobe.cores.crossing import EventCrossing, StreamCrossing
from liteprobe.cores.formats import FCS_POLYNOMIAL, FCS_RESIDUE, PREAMBLE_OCTET, SFD_OCTET
from liteprobe.cores.receive.frames import frame_layout, number_bits

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
        self.octet          = Signal(8, reset_less=True)
        self.end            = Signal()
        self.symbol_error   = Signal()
        self.preamble_error = Signal()

        # # #

        carrier = Signal()
        octet   = Signal(8, reset_less=True)
        symbol  = Signal(reset_less=True)
        self.spacing = spacing = Signal(max=least_sfd_spacing) # Ticks in which no SFD is taken.
        refused = Signal()
        # Comparisons are registers: their verdict goes far.
        is_sfd      = Signal(reset_less=True)
        is_preamble = Signal(reset_less=True)
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
            If(carrier, self.symbol_error.eq(symbol | (self.symbol_error & ~(fsm.ongoing("PREAMBLE") & ~in_preamble)))),
        ]

# FCS Checker --------------------------------------------------------------------------------------

class FCSChecker(LiteXModule):
    """Checks the FCS and takes it off: octets leave four octets after they came.

    Attributes
    ----------
    clear : Signal(), in
        Before the first octet of each frame.
    octet_valid, octet, end : Signal(), Signal(8), Signal(), in
        Octets with their FCS, as from `SFDDetector`.
    source_valid, source_octet : Signal(), Signal(8), out
        Octets without FCS, two ticks after the octet that pushed them out.
    source_end, fcs_error : Signal(), Signal(), out
        Two ticks after ``end``. ``fcs_error`` is valid then; 1 for fewer than four octets too.

    Source: IEEE 802.3, 3.2.9.
    """
    def __init__(self):
        self.clear        = Signal()
        self.octet_valid  = Signal()
        self.octet        = Signal(8)
        self.end          = Signal()
        self.source_valid = Signal()
        self.source_octet = Signal(8, reset_less=True)
        self.source_end   = Signal()
        self.fcs_error    = Signal(reset_less=True)

        # # #

        crc      = Signal(32, reset=0xffffffff, reset_less=True) # Each SFD sets it.
        delayed  = [Signal(8, reset_less=True, name=f"delayed_by_{age + 1}") for age in range(4)]
        filled   = Signal(4, reset_less=True) # One bit a place of ``delayed``.
        crc_low  = Signal(reset_less=True)
        crc_high = Signal(reset_less=True)
        has_fcs  = Signal(reset_less=True)
        end      = Signal()
        valid    = Signal()
        octet    = Signal(8, reset_less=True)

        self.engine = engine = LiteEthMACCRCEngine(8, 32, FCS_POLYNOMIAL)
        self.comb += [
            engine.data.eq(self.octet),
            engine.crc_prev.eq(crc),
        ]
        self.sync += [
            valid.eq(self.octet_valid & filled[3]),
            octet.eq(delayed[3]),
            If(self.octet_valid,
                crc.eq(engine.crc_next),
                Cat(*delayed).eq(Cat(self.octet, *delayed)),
                filled.eq(Cat(1, filled)),
            ),
            If(self.clear,
                crc.eq(crc.reset),
                filled.eq(0),
            ),
            # The comparison of 32 bits takes two ticks; octets keep in step.
            crc_low.eq( crc[:16] == (FCS_RESIDUE & 0xffff)),
            crc_high.eq(crc[16:] == (FCS_RESIDUE >> 16)),
            has_fcs.eq(filled[3]),
            end.eq(self.end),
            self.source_valid.eq(valid),
            self.source_octet.eq(octet),
            self.source_end.eq(end),
            self.fcs_error.eq(~(crc_low & crc_high & has_fcs)),
        ]

# Word Packer --------------------------------------------------------------------------------------

class WordPacker(LiteXModule):
    """Packs octets into words; keeps each word until it is known whether it is the last.

    Attributes
    ----------
    octet_valid, octet, end : Signal(), Signal(8), Signal(), in
        Octets, and one tick of ``end`` after the last one of each frame.
    source_valid, source_last : Signal(), Signal(), out
        One tick for each word, one tick after the octet or ``end`` that completed it; can't be stalled.
    source_data, source_last_be : Signal(data_width), Signal(data_width//8), out
        The word. ``last_be`` is 0 but with ``last``, and there too for a frame of no octets.
    """
    def __init__(self, data_width):
        self.octet_valid    = Signal()
        self.octet          = Signal(8)
        self.end            = Signal()
        self.source_valid   = Signal()
        self.source_last    = Signal()
        self.source_data    = Signal(data_width, reset_less=True)
        self.source_last_be = Signal(data_width//8)

        # # #

        lanes  = data_width//8
        word   = Signal(data_width, reset_less=True)
        newest = Signal(lanes) # One-hot lane of the newest octet; 0 before the first.

        self.sync += [
            self.source_valid.eq(self.end | (self.octet_valid & newest[-1])),
            self.source_last.eq(self.end),
            self.source_data.eq(word),
            self.source_last_be.eq(newest & Replicate(self.end, lanes)),
            If(self.octet_valid, newest.eq(Cat(newest[-1] | (newest == 0), newest[:-1]))),
            If(self.end, newest.eq(0)),
        ]
        for lane in range(lanes):
            is_next = newest[lane - 1] | ((newest == 0) if lane == 0 else 0)
            self.sync += If(self.octet_valid & is_next, word[8*lane:8*lane + 8].eq(self.octet))

# Receive MAC --------------------------------------------------------------------------------------

class ReceiveMAC(LiteXModule):
    """Takes frames from a PHY in ``eth_rx`` and gives words with a verdict in ``sys``.

    Every SFD that is accepted gives one pulse of ``sfd`` and one frame at ``source``, whatever follows it, so that
    stamps and frames can be paired by number. Where sys is too slow, the frame's end says ``overflow``.

    Parameters
    ----------
    data_width : int
        32 or 64 (bits).

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(8)), in, eth_rx
        The PHY's source.
    source : Endpoint(frame_layout(data_width)), out, sys
        Frames without preamble and FCS, bad ones too. Should always be ready: there are 16 words of space.
    sfd : Signal(), out, eth_rx
        One tick for each SFD accepted, one tick after it stood on ``sink``.
    preamble_errors, overflows : Signal(4), out, sys
        Carriers refused; frames cut because sys was too slow: as many as arrived in this cycle.
    """
    def __init__(self, data_width=32):
        self.sink            = stream.Endpoint(eth_phy_description(8))
        self.source          = stream.Endpoint(frame_layout(data_width))
        self.sfd             = Signal()
        self.preamble_errors = Signal(4)
        self.overflows       = Signal(4)

        # # #

        # Octets.
        # -------
        self.detector = detector = ClockDomainsRenamer("eth_rx")(SFDDetector())
        self.fcs      = fcs      = ClockDomainsRenamer("eth_rx")(FCSChecker())
        self.packer   = packer   = ClockDomainsRenamer("eth_rx")(WordPacker(data_width))
        self.comb += [
            self.sink.connect(detector.sink),
            *copied(fcs, detector, "octet_valid", "octet", "end"),
            packer.octet_valid.eq(fcs.source_valid),
            packer.octet.eq(fcs.source_octet),
            packer.end.eq(fcs.source_end),
        ]

        # A tick late, and a tick before the first octet.
        self.sync.eth_rx += fcs.clear.eq(detector.sfd)

        # Verdict.
        # --------
        # In step with the packer: three ticks after the detector's ``end``.
        number  = Signal(number_bits)
        present = Cat(detector.symbol_error, number)
        stages  = [Signal(len(present), name=f"mark_{age}_ago", reset_less=True) for age in (1, 2, 3)]
        fcs_error = Signal(reset_less=True)
        self.sync.eth_rx += [
            If(detector.sfd, number.eq(number + 1)),
            stages[0].eq(present), stages[1].eq(stages[0]), stages[2].eq(stages[1]),
            fcs_error.eq(fcs.fcs_error),
        ]
        self.comb += self.sfd.eq(detector.sfd)

        # Crossing.
        # ---------
        # A frame that loses a word loses the rest too, but for its end, which tells so.
        self.crossing = crossing = StreamCrossing(frame_layout(data_width), "eth_rx", "sys", depth=16)
        is_cut = Signal()
        push   = crossing.sink
        self.comb += [
            push.valid.eq(packer.source_valid & (packer.source_last | ~is_cut)),
            push.last.eq(packer.source_last),
            push.data.eq(packer.source_data),
            push.last_be.eq(packer.source_last_be),
            push.fcs_error.eq(fcs_error),
            Cat(push.symbol_error, push.number).eq(stages[2]),
            push.overflow.eq(is_cut),
            crossing.source.connect(self.source),
        ]
        cut = Signal()
        self.sync.eth_rx += [
            cut.eq(packer.source_valid & packer.source_last & (is_cut | ~push.ready)),
            If(packer.source_valid, is_cut.eq(~push.ready | (is_cut & ~packer.source_last))),
        ]

        # Events.
        # -------
        for pulse, count in [(detector.preamble_error, self.preamble_errors), (cut, self.overflows)]:
            events = EventCrossing("eth_rx", "sys")
            self.submodules += events
            self.comb += [
                events.event.eq(pulse),
                count.eq(events.count),
            ]
