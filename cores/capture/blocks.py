# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gathers records of all ports, one after the other, into the blocks of their channels; a trigger may keep what came before it."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.capture.channels import *
from liteprobe.cores.capture.descriptors import descriptor_layout, words_bits
from liteprobe.cores.formats import *

CHANNEL_BIT = 24 # Of word 3 of a record.
HEADER_BIT  = log2_int(UnifiedFlag.HEADER)
# Parts of a record: its four first words, then these.
HEADER_PART, DATA_PART = RECORD_HEAD_WORDS, RECORD_HEAD_WORDS + 1

class RecordPort:
    """Carries what a port's `Staging` gives: endpoints ``descriptor``, ``header``, ``data``; and takes: ``skip``.

    See docs/design/monitor.md, "From `Staging` to `BlockWriter`".
    """
    def __init__(self):
        self.descriptor = stream.Endpoint(descriptor_layout())
        self.header     = stream.Endpoint([("data", 32)])
        self.data       = stream.Endpoint([("data", 32)])
        self.skip       = Signal()

# Record Ports -------------------------------------------------------------------------------------

class RecordPorts(LiteXModule):
    """Shows one record after the other; ports that have one take turns.

    Parameters
    ----------
    ports : int

    Attributes
    ----------
    ports : list of RecordPort, in
    is_waiting, waiting_channel : Signal(), Signal(3), out
        There is a record, and whose.
    choose : Signal(), in
        One cycle: it is the present one from the next cycle on.
    lost, has_header, words : Signal(), Signal(), Signal(14), out
        Of the present one, until ``take``.
    take, skip : Signal(), in
        Takes the descriptor of the present one; with ``skip`` nothing of it follows.
    discard : Signal(), in
        Throws away whatever comes.
    part : Signal(3), in
        What ``source`` shows of the present one: word 0 to 3 of the record, the rest of its header (4), or its octets (5).
    source : Endpoint([("data", 32)]), out
        ``last`` with the last word of part 4 or 5. Words 0 to 3 stay until ``take``.
    """
    def __init__(self, ports):
        self.ports           = ports = [RecordPort() for _ in range(ports)]
        self.is_waiting      = Signal()
        self.waiting_channel = Signal(CHANNEL_BITS)
        self.choose          = Signal()
        self.lost            = Signal()
        self.has_header      = Signal()
        self.words           = Signal(words_bits)
        self.take            = Signal()
        self.skip            = Signal()
        self.discard         = Signal()
        self.part            = Signal(3)
        self.source          = source = stream.Endpoint([("data", 32)])

        # # #

        present = Signal(max=max(2, len(ports)))
        chosen  = Signal.like(present)
        count   = len(ports)
        for number in range(count): # What is said last counts: the port after the present one.
            self.comb += If(present == number, *[
                If(ports[other].descriptor.valid, chosen.eq(other), self.is_waiting.eq(1))
                for other in [(number - step) % count for step in range(count)]
            ])
        channels = Array([port.descriptor.head3[CHANNEL_BIT:CHANNEL_BIT + CHANNEL_BITS] for port in ports])
        self.comb += self.waiting_channel.eq(channels[chosen])
        self.sync += If(self.choose, present.eq(chosen))
        self.comb += Case(present, {number: self.show(port) for number, port in enumerate(ports)})
        for number, port in enumerate(ports):
            mine = present == number
            self.comb += [
                port.descriptor.ready.eq((self.take & mine) | self.discard),
                port.skip.eq(self.skip | self.discard),
                port.header.ready.eq(source.ready & mine & (self.part == HEADER_PART)),
                port.data.ready.eq(source.ready & mine & (self.part == DATA_PART)),
            ]

    def show(self, port):
        """Return what shows the record of a port."""
        descriptor, source = port.descriptor, self.source
        heads = [getattr(descriptor, f"head{n}") for n in range(RECORD_HEAD_WORDS)]
        return [
            *copied(self, descriptor, "lost", "has_header", "words"),
            source.valid.eq(1),
            Case(self.part, {
                **{number: source.data.eq(head) for number, head in enumerate(heads[:-1])},
                "default":   source.data.eq(heads[-1] | descriptor.has_header << HEADER_BIT),
                HEADER_PART: [
                    source.valid.eq(port.header.valid), source.data.eq(port.header.data), source.last.eq(port.header.last)],
                DATA_PART:   [
                    source.valid.eq(port.data.valid), source.data.eq(port.data.data), source.last.eq(port.data.last)],
            }),
        ]

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

ADDRESS_BITS = PLACE_BITS + 9 # Of a word of the ring.
FILL_BITS    = 9              # Of a word of a block.
NO_FIRST     = 2**FILL_BITS - 1
COUNT_BITS   = 16             # Of the blocks of a channel.
TIME_BITS    = 16             # Of microseconds.
# Cycles between two looks at open blocks: where no record waits, and at the most.
SOON, LATEST = 64, 512
HEADER_REST  = UNIFIED_WORDS - RECORD_HEAD_WORDS
NEED_SHIFT   = 8  # A record may take a block for each 256 words that there must be space for, and one more.

def word_description():
    """Return a word on its way into the ring.

    The header of a block comes last, as four words in their order, the first with ``head``, the last with ``close``.
    """
    return [("address", ADDRESS_BITS), ("data", 32), ("head", 1), ("close", 1)]

# Block Writer -------------------------------------------------------------------------------------

class BlockWriter(LiteXModule):
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
    flush_us : Signal(16), in
        A block that isn't full closes as long after its first word (microseconds; up to 1.7 % and 90 us more).
    trigger : CaptureTrigger
        Its ``wanted``, ``channels``, ``before`` are settings.

    Source: docs/design/monitor.md ("Record", "Block", "Ring").
    """
    resumes = ("END", "RECORD", "GAP-READ") # What goes on after the end of a block.

    def __init__(self, channels, ports, clk_freq, blocks, first_number=0):
        self.source   = stream.Endpoint(word_description())
        self.records  = RecordPorts(ports)
        self.ports    = self.records.ports
        self.is_still = Signal()
        self.enable   = Signal()
        self.running  = Signal()
        self.flush_us = Signal(TIME_BITS, reset=10_000)
        self.trigger  = CaptureTrigger()

        # # #

        self.memory = channels
        self.access = channels.writer
        self.out    = stream.Buffer(word_description())
        self.comb  += self.out.source.connect(self.source)
        self.fsm    = FSM(reset_state="OFF")
        self.add_state()
        self.add_time(clk_freq)
        self.add_words()
        self.add_gap()
        self.add_close()
        self.add_load()
        self.add_free()
        self.add_drop()
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
            9: self.keep(ChannelWord.REPORTED, 0),
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

    # Room for a record ----------------------------------------------------------------------------

    def add_load(self):
        """Read what is known of the channel, and see whether the record finds space."""
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
        """Return what goes on with a record that has space."""
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
        """Count a frame that finds no space; of the first one the stamp is kept."""
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

    # The open block -------------------------------------------------------------------------------

    def add_state(self):
        """Hold what is known of the present channel."""
        self.step    = Signal(4)
        self.part    = self.records.part
        self.channel = Signal(CHANNEL_BITS)
        self.is_scan = Signal()                          # No record: a look at the open block.
        self.active  = Signal()                          # Records are taken.
        self.left    = Signal(max=CHANNELS + 1)          # Channels to close before the end.
        self.number  = Signal(32, reset_less=True)
        self.blocks  = Signal(COUNT_BITS, reset_less=True)
        self.used    = Signal(COUNT_BITS, reset_less=True) # Closed blocks that the host has not read.
        self.reported    = Signal(32, reset_less=True)
        self.total   = Signal(15, reset_less=True)       # Words that there must be space for.
        self.wanted  = Signal(COUNT_BITS + 1, reset_less=True)
        self.excess  = Signal(COUNT_BITS + 2, reset_less=True) # Signed: blocks that are too many.
        self.fits    = Signal()
        self.is_aged = Signal()
        self.dropped = Signal(32, reset_less=True)
        self.value   = Signal(32, reset_less=True)
        # The word ``POSITION``. ``fill``: words of the block with its header, of which ``first`` are before the first record.
        self.place    = Signal(PLACE_BITS)
        self.pending  = Signal()                         # There are drops that no gap record has reported.
        self.first    = Signal(FILL_BITS)
        self.fill     = Signal(FILL_BITS)
        self.position = Cat(self.fill, self.first, self.pending, self.place)
        self.resume   = Signal(2)
        self.words    = Signal(FILL_BITS)
        self.has_data = Signal()
        self.is_full  = Signal()
        self.is_empty = Signal()
        self.comb += [
            self.access.channel.eq(self.channel),
            self.is_full.eq(self.fill == BLOCK_WORDS),
            self.is_empty.eq(self.fill == BLOCK_HEADER_WORDS),
            self.words.eq(self.fill - BLOCK_HEADER_WORDS),
        ]

    def ask(self, word):
        """Return what reads a word of the present channel."""
        return [self.access.valid.eq(1), self.access.word.eq(word)]

    def keep(self, word, data):
        """Return what writes a word of the present channel."""
        return [*self.ask(word), self.access.write.eq(1), self.access.data.eq(data)]

    def add_time(self, clk_freq):
        """Count microseconds, and say when an open block is to be looked at."""
        period      = round(clk_freq/1e6)
        cycle       = Signal(max=period)
        self.now    = Signal(TIME_BITS)
        timer       = Signal(max=LATEST)
        self.soon   = Signal()
        self.latest = Signal()
        self.sync += [
            cycle.eq(cycle + 1),
            If(cycle == period - 1, cycle.eq(0), self.now.eq(self.now + 1)),
            timer.eq(timer + 1),
            If(timer[:log2_int(SOON)] == 0, self.soon.eq(1)),
            If(timer == 0, self.latest.eq(1)),
        ]

    def add_words(self):
        """Put words where the present block lies, and count them."""
        sink, fsm = self.out.sink, self.fsm
        unit = Signal(PLACE_BITS + 5, reset_less=True)
        self.closing = Signal(2) # Word of the block's header.
        self.sync += unit.eq(unit_of_place(self.place))
        closes = fsm.ongoing("CLOSE")
        self.comb += sink.address.eq((unit << UNIT_BITS) + Mux(closes, self.closing, self.fill))
        self.given = Signal() # A word of the stream was taken.
        self.comb += If(fsm.ongoing("RECORD"), sink.data.eq(self.records.source.data)).Else(sink.data.eq(self.value))

    def emit(self, valid):
        """Return what gives a word away, if the block isn't full; ``self.given`` is 1 when it was taken."""
        return [
            self.out.sink.valid.eq(valid & ~self.is_full),
            self.given.eq(valid & ~self.is_full & self.out.sink.ready),
            If(self.is_empty, *self.keep(ChannelWord.OPENED, self.now)),
            If(self.given,
                NextValue(self.fill, self.fill + 1),
                If((self.part == 0) & (self.first == NO_FIRST), NextValue(self.first, self.fill - BLOCK_HEADER_WORDS)),
            ),
        ]

    def add_gap(self):
        """Write a gap record for what was dropped since the last one."""
        fsm, part, read = self.fsm, self.part, self.memory.read_data
        fsm.act("GAP-READ",
            Case(part, dict(enumerate(map(self.ask, (ChannelWord.STAMP_LOW, ChannelWord.STAMP_HIGH, ChannelWord.REPORTED))))),
            NextState("GAP-WAIT"),
            If(self.is_full, *self.close("GAP-READ")),
        )
        fsm.act("GAP-WAIT", NextState("GAP-TAKE"))
        fsm.act("GAP-TAKE",
            Case(part, {
                2:         NextValue(self.value, self.dropped - read),
                3:         NextValue(self.value, Cat(C(UnifiedFlag.GAP, CHANNEL_BIT), self.channel)),
                "default": NextValue(self.value, read),
            }),
            NextState("GAP"),
        )
        fsm.act("GAP",
            *self.emit(1),
            If(self.given,
                NextValue(part, part + 1),
                NextState("GAP-READ"),
                If(part == RECORD_HEAD_WORDS - 1, NextState("GAP-END")),
            )
        )
        fsm.act("GAP-END",
            *self.keep(ChannelWord.REPORTED, self.dropped),
            NextValue(self.pending, 0),
            NextValue(part, 0),
            NextState("RECORD"),
            If(self.is_scan,
                NextState("END"),
                If(~self.active, *self.close("END")),
            )
        )

    def close(self, state):
        """Return what closes the block and then goes on with a state."""
        return [
            NextValue(self.resume, self.resumes.index(state)),
            NextState("CLOSE-READ"),
        ]

    def add_close(self):
        """Write the header of a block, and open the next one."""
        fsm, sink, number, closing = self.fsm, self.out.sink, self.number, self.closing
        arrives = Signal(2)
        is_none = self.first == NO_FIRST
        kind    = Cat(C(0, 8), self.channel, C(0, 4 - CHANNEL_BITS), C(BLOCK_VERSION, 4))
        self.sync += [
            arrives.eq(Cat(fsm.ongoing("CLOSE-READ"), arrives[0])),
            If(arrives[1], self.reported.eq(self.memory.read_data)),
        ]
        fsm.act("CLOSE-READ",
            *self.ask(ChannelWord.REPORTED),
            NextValue(self.value, number),
            NextValue(closing, 0),
            NextState("CLOSE-WAIT"),
        )
        fsm.act("CLOSE-WAIT", NextState("CLOSE"))
        fsm.act("CLOSE",
            sink.valid.eq(1),
            sink.head.eq(closing == 0),
            sink.close.eq(closing == 3),
            If(sink.ready,
                NextValue(closing, closing + 1),
                Case(closing, {
                    0: NextValue(self.value, Cat(C(0, 16), self.first, Replicate(is_none, 16 - FILL_BITS)) | self.words),
                    1: NextValue(self.value, self.reported),
                    2: NextValue(self.value, Cat(kind, C(BLOCK_MAGIC, 16))),
                    3: NextState("CLOSE-STEP"),
                })
            )
        )
        fsm.act("CLOSE-STEP",
            *self.keep(ChannelWord.NUMBER, number + 1),
            NextValue(number, number + 1),
            NextValue(self.place, self.place + 1),
            NextValue(self.fill, BLOCK_HEADER_WORDS),
            NextValue(self.first, NO_FIRST),
            NextState("CLOSE-WRAP"),
        )
        fsm.act("CLOSE-WRAP",
            If((number[:COUNT_BITS] & (self.blocks - 1)[:COUNT_BITS]) == 0, NextValue(self.place, self.place - self.blocks)),
            NextState("CLOSE-PLACE"),
        )
        fsm.act("CLOSE-PLACE", Case(self.resume, {number: NextState(state) for number, state in enumerate(self.resumes)}))
