# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Reads the slots that a host has filled in its memory, with LitePCIe's DMA reader, and no others.

Stands alone: LitePCIe is only needed here.
"""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import *

from litepcie.frontend.dma import LitePCIeDMAReader, LitePCIeDMAScatterGather

from liteprobe.cores.formats import DMA_SLOT_BYTES, DMA_SLOTS

BEATS = DMA_SLOT_BYTES//8 # Words of 64 bits of a slot.

# Slot Reader --------------------------------------------------------------------------------------

class SlotReader(LitePCIeDMAReader):
    """Reads the slots of a ring in the host's memory, one after the other, as far as they are filled.

    Registers are those of a `LitePCIeDMAReader` with a table, for LitePCIe's driver: it writes one descriptor of a whole slot for
    each of DMA_SLOTS, and lets the table go round. Slot n since the start is slot n mod DMA_SLOTS of the ring.

    Parameters
    ----------
    endpoint : LitePCIeEndpoint
    address_width : int, bits

    Attributes
    ----------
    source : Endpoint(dma_layout(64)), out
        Words of slots, BEATS of each. May be stalled for ever: no more is asked for than the reader has space for, so that
        others of the endpoint go on.
    filled : Signal(32), in
        Slots that the host has filled since the start. A slot is asked for once it is among them.
    taken : Signal(32), out
        Slots of which all words have left ``source``: the host may fill them anew. Since the last start; stays when it is stopped.
    enable : Signal(), out
        It runs. While it doesn't, what was under way is thrown away.

    Limits: it must not be started within 100 cycles after it was stopped (the driver takes a millisecond).
    """
    def __init__(self, endpoint, address_width):
        port = endpoint.crossbar.get_master_port(read_only=True)
        LitePCIeDMAReader.__init__(self, endpoint, port, with_table=False, address_width=address_width)
        self._enable.storage.reset = Constant(0, 2) # Without its own table it would run from power-up on.
        self.table  = table = LitePCIeDMAScatterGather(DMA_SLOTS, address_width)
        self.filled = Signal(32)
        self.taken  = Signal(32)

        # # #

        asked       = Signal(32) # Slots that were asked for.
        beat        = Signal(max=BEATS)
        may_ask     = Signal()
        was_running = Signal()
        self.comb += [
            may_ask.eq(self.enable & (asked != self.filled)),
            table.source.connect(self.desc_sink, omit={"valid", "ready"}),
            self.desc_sink.valid.eq(table.source.valid & may_ask),
            table.source.ready.eq(self.desc_sink.ready & may_ask),
        ]
        self.sync += [
            was_running.eq(self.enable),
            If(table.source.valid & table.source.ready, asked.eq(asked + 1)),
            If(self.source.valid & self.source.ready,
                beat.eq(beat + 1),
                If(beat == BEATS - 1, self.taken.eq(self.taken + 1)),
            ),
            If(~self.enable | ~was_running,
                asked.eq(0),
                beat.eq(0),
            ),
            If(self.enable & ~was_running, self.taken.eq(0)),
        ]

# Registers ----------------------------------------------------------------------------------------

class SlotRegisters(LiteXModule):
    """Has the pointers of the rings in the host's memory: ``filled<n>`` and ``taken<n>``."""
    def add_csr(self, number, reader):
        """Add those of a `SlotReader`."""
        filled = CSRStorage(32, name=f"filled{number}", description="Slots that the host has filled. Write 0 before a start.")
        taken  = CSRStatus(32,  name=f"taken{number}",
            description="Slots that were read, since the DMA's start: the host may fill them anew. Wraps.")
        setattr(self, f"_filled{number}", filled)
        setattr(self, f"_taken{number}", taken)
        self.comb += [
            reader.filled.eq(filled.storage),
            taken.status.eq(reader.taken),
        ]
