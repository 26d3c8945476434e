# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Records of all ports, gathered into the blocks of their channels."""

from migen import *

from litex.gen import *

from liteprobe.cores.capture.channels import CHANNEL_BITS
from liteprobe.cores.capture.open_block import COUNT_BITS, NO_FIRST
from liteprobe.cores.capture.record_ports import DATA_PART, HEADER_PART
from liteprobe.cores.capture.admission import RecordAdmission
from liteprobe.cores.formats import *

# Block Writer -------------------------------------------------------------------------------------

class BlockWriter(RecordAdmission):
    """Writes records into the open blocks of their channels, whole or not at all, and closes blocks.

    A record of n words takes n + 9 cycles, two more where it frees blocks, a gap record before it 17, the end of a block 9; a
    frame that is dropped takes 9, or 12 where it is the first of a gap. Ports take turns, a record each.

    Parameters
    ----------
    channels : ChannelMemory
        Its ``writer`` is driven here.
    ports : int
    clk_freq : float, Hz
        Of ``sys``.
    blocks : int
        That the ring's memory holds; what a host asks for beyond is refused.
    first_number : int
        Of the first block, a multiple of what a channel has; a test begins where it will wrap.

    Attributes
    ----------
    ports : list of RecordPort, in
    source : Endpoint(word_description()), out
        Words for the ring's memory. May be stalled.
    is_still : Signal(), in
        All words that left ``source`` are in the memory.
    enable : Signal(), in
        1: begins a capture, all pointers 0. 0: closes what is open; what comes is thrown away, uncounted.
    running : Signal(), out
        From the beginning until all is closed and in the memory.
    flush_us, trigger : as of `RecordAdmission`

    Source: docs/design/monitor.md ("Record", "Block", "Ring").
    """
    def __init__(self, channels, ports, clk_freq, blocks, first_number=0):
        RecordAdmission.__init__(self, channels, ports, clk_freq)
        self.ports    = self.records.ports
        self.is_still = Signal()
        self.enable   = Signal()
        self.running  = Signal()

        # # #

        self.add_clear(blocks, first_number)
        self.add_choice()
        self.add_record()

    # Begin and end --------------------------------------------------------------------------------

    def add_clear(self, blocks, first_number):
        """Begin a capture: check what the host has set, and set all pointers to 0."""
        fsm, read, step = self.fsm, self.memory.read_data, self.step
        is_last  = Signal()
        is_right = Signal()
        numbers  = [ChannelWord.READ, ChannelWord.SENT, ChannelWord.WRITTEN, ChannelWord.NUMBER]
        steps    = {
            0: self.ask(ChannelWord.BASE),
            1: self.ask(ChannelWord.BLOCKS),
            2: [NextValue(self.wanted, read[:COUNT_BITS]), NextValue(is_right, read[COUNT_BITS:] == 0)], # The base.
            3: [NextValue(self.blocks, read[:COUNT_BITS]), NextValue(self.place, self.wanted),
                NextValue(is_right, is_right & (read[COUNT_BITS:] == 0) & ((read & (read - 1))[:COUNT_BITS] == 0))],
            4: NextValue(self.wanted, self.wanted[:COUNT_BITS] + self.blocks),
            5: NextValue(is_right, is_right & (self.wanted <= blocks)),
            6: self.keep(ChannelWord.TAKEN, Mux(is_right, self.blocks, 0)),
            7: self.keep(ChannelWord.POSITION, self.position),
            8: self.keep(ChannelWord.DROPPED, 0),
            9: self.keep(ChannelWord.TOLD, 0),
            **{10 + number: self.keep(word, first_number) for number, word in enumerate(numbers)},
        }
        fsm.act("OFF",
            NextValue(step, 0),
            NextValue(self.channel, 0),
            NextValue(self.fill, BLOCK_HEADER_WORDS),
            NextValue(self.first, NO_FIRST),
            NextValue(self.pending, 0),
            NextValue(self.left, CHANNELS),
            If(self.enable & self.is_still, NextState("CLEAR"))
        )
        fsm.act("CLEAR",
            Case(step, steps),
            NextValue(step, step + 1),
            If(is_last,
                NextValue(step, 0),
                NextValue(self.channel, self.channel + 1),
                If(self.channel == CHANNELS - 1,
                    NextValue(self.running, 1),
                    NextValue(self.active, 1),
                    self.trigger.begin.eq(1),
                    NextState("IDLE"),
                )
            )
        )
        self.comb += [
            is_last.eq(step == max(steps)),
            self.memory.clear.eq(fsm.ongoing("CLEAR")),
        ]
        self.sync += If(~self.enable, self.active.eq(0))

    def add_choice(self):
        """Take a record; or look at the open block of the next channel."""
        fsm, records = self.fsm, self.records
        scanned = Signal(CHANNEL_BITS)
        idle    = fsm.ongoing("OFF") | fsm.ongoing("CLEAR") | fsm.ongoing("IDLE")
        self.comb += records.discard.eq(~self.active & (idle | self.is_scan))
        fsm.act("IDLE",
            NextValue(self.step, 0),
            NextValue(self.part, 0),
            NextValue(self.is_scan, 0),
            If(~self.active & (self.left == 0),
                If(self.is_still & ~self.out.source.valid,
                    NextValue(self.running, 0),
                    NextState("OFF"),
                )
            ).Elif(self.active & records.is_waiting & ~self.latest,
                records.choose.eq(1),
                NextValue(self.channel, records.waiting_channel),
                NextState("LOAD"),
            ).Elif(self.soon | ~self.active,
                NextValue(self.is_scan, 1),
                NextValue(self.soon, 0),
                NextValue(self.latest, 0),
                NextValue(self.channel, scanned),
                NextValue(scanned, scanned + 1),
                NextValue(self.left, Mux(self.active, CHANNELS, self.left - 1)),
                NextState("LOAD"),
            )
        )

    # A record -------------------------------------------------------------------------------------

    def add_record(self):
        """Write a record: four words, the rest of its header, its octets."""
        fsm, records, part = self.fsm, self.records, self.part
        source = records.source
        self.comb += [
            self.trigger.enable.eq(self.enable),
            self.trigger.record.eq(fsm.ongoing("RECORD") & self.given & (part == 0)),
            self.trigger.channel.eq(self.channel),
        ]
        fsm.act("RECORD",
            *self.emit(source.valid),
            source.ready.eq(self.given),
            If(self.is_full, *self.close("RECORD")),
            If(self.given,
                Case(part, {
                    RECORD_HEAD_WORDS - 1: [
                        records.take.eq(1),
                        NextValue(part, HEADER_PART),
                        If(~records.has_header, NextValue(part, DATA_PART), If(~self.has_data, NextState("END"))),
                    ],
                    HEADER_PART: If(source.last, NextValue(part, DATA_PART), If(~self.has_data, NextState("END"))),
                    DATA_PART:   If(source.last, NextState("END")),
                    "default":   NextValue(part, part + 1),
                })
            )
        )
        fsm.act("END",
            If(self.is_full,
                *self.close("END"),
            ).Else(
                *self.keep(ChannelWord.POSITION, self.position),
                NextState("IDLE"),
            )
        )

