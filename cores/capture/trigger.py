# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Waits for a record, so that a capture keeps what came before it."""

from migen import *

from litex.gen import *

from liteprobe.cores.capture.channels import CHANNEL_BITS
from liteprobe.cores.formats import CHANNELS

# Capture Trigger ----------------------------------------------------------------------------------

class CaptureTrigger(LiteXModule):
    """Fires on the first record that is kept for one of some channels; the filter says which frames go there.

    Until then a channel holds the newest of what came, in a part of its blocks; the rest is for what comes after, until it is
    full. So what is nearest to the trigger stays, however late the host comes for it.

    Attributes
    ----------
    wanted : Signal(), in
        A capture waits for a trigger. Taken at ``begin``.
    channels : Signal(8), in
        Whose records fire.
    before : Signal(2), in
        Quarters of a channel's blocks that are for what came before, less one.
    enable, begin : Signal(), in
        Of the capture; it begins.
    record, channel : Signal(), Signal(3), in
        A record begins, and whose.
    waits, fired : Signal(), out
        Since ``begin``. A capture that ends doesn't wait.
    """
    def __init__(self):
        self.wanted   = Signal()
        self.channels = Signal(CHANNELS)
        self.before   = Signal(2)
        self.enable   = Signal()
        self.begin    = Signal()
        self.record   = Signal()
        self.channel  = Signal(CHANNEL_BITS)
        self.waits    = Signal()
        self.fired    = Signal()

        # # #

        chosen = Signal()
        self.comb += chosen.eq(self.channels >> self.channel)
        self.sync += [
            If(self.waits & self.record & chosen, self.waits.eq(0), self.fired.eq(1)),
            If(self.begin, self.waits.eq(self.wanted), self.fired.eq(0)),
            If(~self.enable, self.waits.eq(0)),
        ]

    def limit(self, blocks):
        """Return how many of a channel's blocks there are for what came before."""
        return Array([blocks >> 2, blocks >> 1, (blocks >> 1) + (blocks >> 2), blocks])[self.before]
