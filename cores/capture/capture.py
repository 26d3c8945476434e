# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Keeps what ports capture: records of ports in, closed blocks out.

Stands alone: it is what probes, tests and pages take of all files here.
"""

from migen import *

from litex.gen import *
from litex.soc.interconnect.csr import *

from liteprobe.cores.capture.blocks import BlockWriter
from liteprobe.cores.capture.channels import ChannelMemory
from liteprobe.cores.capture.ring import BlockRing
from liteprobe.cores.formats import CHANNELS, TRIGGER_CHANNELS_BIT
from liteprobe.cores.bus import WriteOnlyCSR

class BlockCapture(LiteXModule):
    """Keeps records in blocks, and blocks in a ring, until the host has done with them.

    Parameters
    ----------
    ports : int
    memory : BlockRamRing or BurstRing
    clk_freq : float, Hz
        Of ``sys``.
    first_number : int
        Of the first block, a multiple of what a channel has; a test begins where it will wrap.

    Attributes
    ----------
    ports : list of RecordPort, in
        Of each port what its `Staging` gives; see docs/design/monitor.md.
    block, send : as of `BlockRing`
    bus : wishbone.Interface, slave
        What is known of each channel: 128 words, docs/design/monitor.md ("capture_channels").
    enable, running, flush_us, trigger : as of `BlockWriter`
        While a trigger is waited for nothing is given away.
    """
    def __init__(self, ports, memory, clk_freq, first_number=0):
        self.channels = channels = ChannelMemory()
        self.writer   = writer   = BlockWriter(channels, ports, clk_freq, memory.blocks, first_number)
        self.ring     = ring     = BlockRing(channels, memory)
        self.ports    = writer.ports
        self.block    = ring.block
        self.send     = Signal(CHANNELS)
        self.bus      = channels.bus
        self.enable   = writer.enable
        self.running  = writer.running
        self.flush_us = writer.flush_us
        self.trigger  = writer.trigger

        # # #

        self.comb += [
            writer.source.connect(ring.sink),
            writer.is_still.eq(ring.is_still),
            ring.send.eq(self.send & ~Replicate(self.trigger.waits, CHANNELS)),
        ]

    def add_csr(self, address=0):
        """Add the registers; ``address``: where block 0 is on the bus."""
        self._enable       = CSRStorage(1, name="enable", description="1: begin a capture, all pointers 0. 0: end it.")
        self._running      = CSRStatus(1, name="running", description="0 once all blocks are closed.")
        self._flush_us     = WriteOnlyCSR(16, "flush_us", "A block that isn't full closes so long after its first word (us).",
            reset = self.flush_us.reset.value)
        self._ring_blocks  = CSRStatus(16, name="ring_blocks", reset=self.ring.memory.blocks,
            description = "Blocks of the ring's memory.")
        self._ring_address = CSRStatus(32, name="ring_address", reset=address, description="Where block 0 is on the bus.")
        self._trigger = WriteOnlyCSR(16, "trigger", "A capture waits for a trigger (bit 0), then keeps what came before in so many "
            "quarters of its blocks, less one (2..1); fires on a record for one of these channels (15..8).")
        self._trigger_state = CSRStatus(2, name="trigger_state", description="It waits (bit 0), the trigger has fired (1).")
        trigger, word = self.trigger, self._trigger.storage
        self.comb += [
            Cat(trigger.wanted, trigger.before).eq(word),
            trigger.channels.eq(word[TRIGGER_CHANNELS_BIT:]),
            self._trigger_state.status.eq(Cat(trigger.waits, trigger.fired)),
            self.enable.eq(self._enable.storage),
            self._running.status.eq(self.running),
            self.flush_us.eq(self._flush_us.storage),
        ]
