# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Whether a frame came as it was sent."""

from migen import *

from litex.gen import *

from liteeth.mac.crc import LiteEthMACCRCEngine

from liteprobe.cores.formats import FCS_POLYNOMIAL, FCS_RESIDUE

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
        self.source_octet = Signal(8)
        self.source_end   = Signal()
        self.fcs_error    = Signal()

        # # #

        crc      = Signal(32, reset=0xffffffff, reset_less=True) # Each SFD sets it.
        delayed  = [Signal(8, reset_less=True, name=f"delayed_by_{age + 1}") for age in range(4)]
        filled   = Signal(4, reset_less=True) # One bit a place of ``delayed``.
        crc_low  = Signal()
        crc_high = Signal()
        has_fcs  = Signal()
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
