# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Tells frames that no bridge forwards, for both paths of an emulator: so the file stands alone."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats.emulate import MAC_CONTROL_TYPE, RESERVED_MACS
from liteprobe.cores.octets import swapped

class ReservedFrames(LiteXModule):
    """Tells frames to 01-80-C2-00-00-0X, and MAC control (PAUSE) to any address.

    Attributes
    ----------
    valid, last, data : Signal(), Signal(), Signal(32), in
        Words of frames, as of the receive MAC.
    is_reserved : Signal(), out
        Of the frame, from its fifth word to the first of the next one; then it is anything.

    Source: IEEE 802.1D-2004, 7.12.6; IEEE 802.3, clause 31.
    """
    def __init__(self):
        self.valid       = Signal()
        self.last        = Signal()
        self.data        = Signal(32)
        self.is_reserved = Signal()

        # # #

        word       = Signal(3) # Stops after the type.
        is_group   = Signal(reset_less=True)
        is_control = Signal(reset_less=True)
        high, low  = RESERVED_MACS >> 16, RESERVED_MACS >> 8 & 0xff
        self.comb += self.is_reserved.eq(is_group | is_control)
        self.sync += If(self.valid,
            If(self.last, word.eq(0)).Elif(word != 4, word.eq(word + 1)),
            Case(word, {
                0 : [is_group.eq(swapped(self.data) == high), is_control.eq(0)],
                1 : is_group.eq(is_group & (self.data[:8] == low) & (self.data[12:16] == 0)),
                3 : is_control.eq(swapped(self.data[:16]) == MAC_CONTROL_TYPE),
            }),
        )
