# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""From the octets of a PHY to words in sys: SFD, FCS, words, one crossing."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description

from liteprobe.cores.crossing import EventCrossing, StreamCrossing
from liteprobe.cores.receive.wire.fcs import FCSChecker
from liteprobe.cores.receive.frames import frame_layout, number_bits
from liteprobe.cores.receive.wire.sfd import SFDDetector
from liteprobe.cores.receive.wire.words import WordPacker

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
        Frames without preamble and FCS, bad ones too. Should always be ready: there are 16 words of room.
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
            fcs.octet_valid.eq(detector.octet_valid),
            fcs.octet.eq(detector.octet),
            fcs.end.eq(detector.end),
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
        stages  = [Signal(len(present), name=f"mark_{age}_ago") for age in (1, 2, 3)]
        fcs_error = Signal()
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
            If(packer.source_valid,
                is_cut.eq(~push.ready | (is_cut & ~packer.source_last))
            ),
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
