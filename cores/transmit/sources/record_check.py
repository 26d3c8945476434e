# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Whether a frame can be made of a record of a trace."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import MAX_LENGTH, MIN_LENGTH, STAMP_OFFSET_MIN, TraceFlag
from liteprobe.cores.transmit.frames import LENGTH_BITS

def is_above(signal, most):
    """Return whether ``signal`` is greater than a constant, in fewer LUTs than by a carry chain."""
    found = Constant(0, 1)
    for n, bit in enumerate(signal):
        found = bit & found if most >> n & 1 else bit | found
    return found

# Record Check -------------------------------------------------------------------------------------

class RecordCheck(LiteXModule):
    """Tells what a record is, and whether it breaks a rule of formats/replay.py; no latency.

    Attributes
    ----------
    length, snap : Signal(14), in
    flags : Signal(4), in
        ``formats.TraceFlag``.
    stamp_offset, stamp_octets : Signal(8), Signal(3), in
        Octets less one; count only where ``has_stamp``.
    has_stamp, is_wait, is_end : Signal(), out
    is_bad : Signal(), out
        Of a WAIT only its flags count.
    """
    def __init__(self):
        self.length       = Signal(LENGTH_BITS)
        self.snap         = Signal(LENGTH_BITS)
        self.flags        = Signal(4)
        self.stamp_offset = Signal(8)
        self.stamp_octets = Signal(3)
        self.has_stamp    = Signal()
        self.is_wait      = Signal()
        self.is_end       = Signal()
        self.is_bad       = Signal()

        # # #

        last       = Signal(9) # Octet of the stamp.
        is_strange = Signal()  # Flags that no record has.
        is_off     = Signal()  # A length.
        is_outside = Signal()  # The stamp.
        known      = TraceFlag.WAIT | TraceFlag.STAMP | TraceFlag.END
        self.comb += [
            self.has_stamp.eq((self.flags & TraceFlag.STAMP) != 0),
            self.is_wait.eq((self.flags & TraceFlag.WAIT) != 0),
            self.is_end.eq((self.flags & TraceFlag.END) != 0),
            is_strange.eq(((self.flags & (15 - known)) != 0) | (self.is_wait & self.has_stamp)),
            is_off.eq(~is_above(self.length, MIN_LENGTH - 1) | is_above(self.length, MAX_LENGTH) | (self.snap > self.length)),
            last.eq(self.stamp_offset + self.stamp_octets),
            is_outside.eq(
                ~is_above(self.stamp_offset, STAMP_OFFSET_MIN - 1)
                | ((self.snap[len(last):] == 0) & (last >= self.snap[:len(last)]))),
            self.is_bad.eq(is_strange | (~self.is_wait & (is_off | (self.has_stamp & is_outside)))),
        ]
