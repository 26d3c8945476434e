# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Whether a record finds room in the ring of its channel; if not, what gives way."""

from migen import *

from litex.gen import *

from liteprobe.cores.capture.open_block import COUNT_BITS, FILL_BITS, TIME_BITS, OpenBlock
from liteprobe.cores.capture.trigger import CaptureTrigger
from liteprobe.cores.formats import *

HEADER_REST = UNIFIED_WORDS - RECORD_HEAD_WORDS
NEED_SHIFT  = 8 # A record may take a block for each 256 words that there must be room for, and one more.

# Record Room --------------------------------------------------------------------------------------

class RecordAdmission(OpenBlock):
    """Makes room for a record: frees the oldest blocks while a trigger is waited for, else drops the frame.

    Parameters
    ----------
    channels, ports, clk_freq : as of `OpenBlock`

    Attributes
    ----------
    flush_us : Signal(16), in
        A block that isn't full closes as long after its first word (microseconds; up to 1.7 % and 90 us more).
    trigger : CaptureTrigger
        Its ``wanted``, ``channels``, ``before`` are settings.
    """
    def __init__(self, channels, ports, clk_freq):
        OpenBlock.__init__(self, channels, ports, clk_freq)
        self.flush_us = Signal(TIME_BITS, reset=10_000)
        self.trigger  = CaptureTrigger()

        # # #

        self.add_load()
        self.add_free()
        self.add_drop()

    def add_load(self):
        """Read what is known of the channel, and see whether the record finds room."""
        fsm, step, read, records = self.fsm, self.step, self.memory.read_data, self.records
        words = [ChannelWord.READ, ChannelWord.NUMBER, ChannelWord.TAKEN, ChannelWord.POSITION, ChannelWord.DROPPED,
            ChannelWord.OPENED]
        needs_gap = 2*RECORD_HEAD_WORDS
        length    = Mux(self.is_scan, 0, records.words + Mux(records.has_header, HEADER_REST, 0))
        self.comb += If(fsm.ongoing("LOAD"), Case(step, {number: self.ask(word) for number, word in enumerate(words)}))
        fsm.act("LOAD",
            NextValue(step, step + 1),
            Case(step, {
                1: [NextValue(self.total, length + needs_gap), NextValue(self.has_data, records.words != 0)],
                2: NextValue(self.used, read[:COUNT_BITS]),
                3: [NextValue(self.number, read), NextValue(self.used, read[:COUNT_BITS] - self.used)],
                4: [NextValue(self.blocks, read[:COUNT_BITS]),
                    NextValue(self.wanted, self.used + self.total[NEED_SHIFT:] + 1)],
                5: [NextValue(self.excess, self.wanted - self.trigger.limit(self.blocks)),
                    NextValue(self.fill, read[:FILL_BITS]), NextValue(self.first, read[FILL_BITS:2*FILL_BITS]),
                    NextValue(self.pending, read[2*FILL_BITS]), NextValue(self.place, read[2*FILL_BITS + 1:]),
                    NextValue(self.fits, (self.wanted < self.blocks) & (self.is_scan | ~records.lost))],
                6: [NextValue(self.dropped, read),
                    If(~self.is_scan,
                        NextState("DROP"),
                        NextValue(step, 0),
                        If(self.fits, *self.begin_record()),
                        If(self.trigger.waits & ~records.lost & (self.excess[-1] == 0), NextState("FREE")),
                    )],
                7: NextValue(self.is_aged, (self.now - read[:TIME_BITS])[:TIME_BITS] >= self.flush_us),
                8: [NextState("IDLE"),
                    NextValue(step, 0),
                    If(self.fits & self.pending,
                        NextState("GAP-READ"),
                    ).Elif(~self.is_empty & (self.is_aged | ~self.active),
                        *self.close("END"),
                    )],
            })
        )

    def begin_record(self):
        """Return what goes on with a record that has room."""
        return [If(self.pending, NextState("GAP-READ")).Else(NextState("RECORD"))]

    def add_free(self):
        """Free as many of the oldest blocks as are too many, and one; if all of them were too few, the frame is dropped."""
        step, used = self.step, self.used
        self.fsm.act("FREE",
            NextValue(step, step + 1),
            Case(step, {
                0: NextValue(self.excess, used - self.excess - 1),
                1: [
                    NextValue(step, 0),
                    NextState("DROP"),
                    If(self.excess[-1] == 0,
                        *self.keep(ChannelWord.READ, self.number - self.excess[:COUNT_BITS]),
                        *self.begin_record(),
                    )],
            })
        )

    def add_drop(self):
        """Count a frame that finds no room; of the first one the stamp is kept."""
        fsm, step, records = self.fsm, self.step, self.records
        self.comb += records.skip.eq(fsm.ongoing("DROP"))
        fsm.act("DROP",
            NextValue(step, step + 1),
            NextValue(self.pending, 1),
            NextValue(self.part, step), # The stamp.
            Case(step, {
                0: [*self.keep(ChannelWord.DROPPED, self.dropped + 1),
                    If(self.pending, records.take.eq(1), NextState("IDLE"))],
                1: self.keep(ChannelWord.STAMP_LOW, records.source.data),
                2: self.keep(ChannelWord.STAMP_HIGH, records.source.data),
                3: [*self.keep(ChannelWord.POSITION, self.position), records.take.eq(1), NextState("IDLE")],
            })
        )
