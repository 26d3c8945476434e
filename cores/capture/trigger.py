# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Waits for a record, so that a capture keeps what came before it, and so much after it."""

from migen import *

from litex.gen import *

from liteprobe.cores.capture.channels import CHANNEL_BITS
from liteprobe.cores.formats import CHANNELS

AFTER_BITS = 32 # Of microseconds.

# Capture Trigger ----------------------------------------------------------------------------------

class CaptureTrigger(LiteXModule):
    """Fires on the first record that is kept for one of some channels; the filter says which frames go there.

    Until then a channel holds the newest of what came, in a part of its blocks; the rest is for what comes after.

    Attributes
    ----------
    wanted : Signal(), in
        A capture waits for a trigger. Taken at ``begin``.
    channels : Signal(8), in
        Whose records fire.
    before : Signal(2), in
        Quarters of a channel's blocks that are for what came before, less one.
    after_us : Signal(32), in
        How long the capture goes on (microseconds, the first up to one short). Taken at ``begin``.
    enable, begin, tick : Signal(), in
        Of the capture; it begins; a microsecond is over.
    record, channel : Signal(), Signal(3), in
        A record begins, and whose.
    waits, fired : Signal(), out
        Since ``begin``. A capture that ends doesn't wait.
    ends : Signal(), out
        It is time to end; until ``enable`` is 0.
    """
    def __init__(self):
        self.wanted   = Signal()
        self.channels = Signal(CHANNELS)
        self.before   = Signal(2)
        self.after_us = Signal(AFTER_BITS)
        self.enable   = Signal()
        self.begin    = Signal()
        self.tick     = Signal()
        self.record   = Signal()
        self.channel  = Signal(CHANNEL_BITS)
        self.waits    = Signal()
        self.fired    = Signal()
        self.ends     = Signal()

        # # #

        left, chosen = Signal(AFTER_BITS, reset_less=True), Signal()
        self.comb += chosen.eq(self.channels >> self.channel)
        self.sync += [
            If(self.waits & self.record & chosen, self.waits.eq(0), self.fired.eq(1)),
            If(self.fired & self.tick,
                left.eq(left - 1),
                If(left == 0, self.ends.eq(1)),
            ),
            If(self.begin, self.waits.eq(self.wanted), self.fired.eq(0), left.eq(self.after_us)),
            If(~self.enable, self.waits.eq(0), self.ends.eq(0)),
        ]

    def limit(self, blocks):
        """Return how many of a channel's blocks there are for what came before."""
        return Array([blocks >> 2, blocks >> 1, (blocks >> 1) + (blocks >> 2), blocks])[self.before]
