# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What was sent of each stream of a port."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

from liteprobe.cores.formats import NO_SEQUENCE, SENT_WORDS, STREAMS

WORD_BITS        = 32
LATE, FIRST_LATE = 2, 3 # Words of a stream; those before are sent, the low word first.

# Sent Counters ------------------------------------------------------------------------------------

class SentCounters(LiteXModule):
    """Counts the frames of each stream that were sent, and those that were late, in a block RAM; in ``sys``.

    Attributes
    ----------
    taken : Signal(), in
        One pulse for each frame as the pacer takes it: ``stream`` and ``sequence`` are its own.
    stream, sequence : Signal(4), Signal(32), in
    late, sent : Signal(), in
        One pulse each, as of `TransmitCounters`: for the frame that is taken at about the same time. ``sent`` comes two cycles
        or more after both others, and 10 cycles or more before those of the next frame.
    clear : Signal(), in
        One pulse: all is 0. A frame that is being counted leaves no trace.
    bus : wishbone.Interface, slave
        SENT_WORDS words a stream, to be read only; an access may wait until a frame is counted, eight cycles.
    """
    def __init__(self):
        self.taken    = Signal()
        self.stream   = Signal(log2_int(STREAMS))
        self.sequence = Signal(32)
        self.late     = Signal()
        self.sent     = Signal()
        self.clear    = Signal()
        self.bus      = wishbone.Interface(data_width=WORD_BITS, address_width=32, addressing="word")

        # # #

        self.autocsr_exclude = {"memory"}
        words         = STREAMS*SENT_WORDS
        self.memory   = memory = Memory(WORD_BITS, words, init=[0]*words, name="sent_memory")
        self.port     = port   = memory.get_port(write_capable=True, mode=NO_CHANGE)
        self.specials += memory, port
        self.word     = Signal(2)                # Of the stream, that is counted in.
        self.of       = Signal(len(self.stream)) # Stream of the frame.
        self.seen     = Signal(STREAMS)          # Streams that have words in the memory.
        self.was      = Signal(WORD_BITS)        # The word that was read, or what counts for it.
        self.value    = Signal(WORD_BITS)        # What is written.
        self.is_busy  = Signal()
        self.done     = Signal()                 # The last word is written.
        self.add_steps()
        self.add_value()
        self.add_bus()

    def add_steps(self):
        """Read and write each word of the stream, for each frame."""
        is_due   = Signal()
        is_write = Signal()
        self.comb += [
            self.port.we.eq(self.is_busy & is_write & ~self.clear),
            self.done.eq(self.port.we & (self.word == SENT_WORDS - 1)),
        ]
        self.sync += [
            If(self.sent, is_due.eq(1)),
            If(self.is_busy,
                is_write.eq(~is_write),
                self.word.eq(self.word + is_write),
            ).Elif(is_due,
                self.is_busy.eq(1),
                is_due.eq(0),
            ),
            If(self.done,
                self.is_busy.eq(0),
                self.seen.eq(self.seen | (1 << self.of)),
            ),
            If(self.clear,
                self.seen.eq(0),
                self.is_busy.eq(0),
                self.word.eq(0),
                is_write.eq(0),
            ),
        ]

    def add_value(self):
        """Keep what is known of the frame, and form each word of its stream from what it was."""
        is_late  = Signal()
        carry    = Signal()
        is_first = Signal() # Late frame of its stream.
        sequence = Signal(32, reset_less=True)
        adds     = Signal()
        total    = Signal(WORD_BITS + 1)
        self.comb += [
            Case(self.word, {0: adds.eq(1), 1: adds.eq(carry), LATE: adds.eq(is_late), FIRST_LATE: adds.eq(0)}),
            total.eq(self.was + adds),
            self.value.eq(total),
            If((self.word == FIRST_LATE) & is_first, self.value.eq(sequence)),
        ]
        self.sync += [
            If(self.taken,
                self.of.eq(self.stream),
                sequence.eq(self.sequence),
            ),
            # It may come before ``taken``.
            If(self.done | (self.clear & self.is_busy), is_late.eq(0)),
            If(self.late, is_late.eq(1)),
            If(self.port.we,
                carry.eq(total[-1]),
                is_first.eq(is_late & (self.was == 0)), # Of the word before the last, where it counts.
            ),
        ]

    def add_bus(self):
        """Read for the bus where no frame is counted."""
        bus, port = self.bus, self.port
        number    = Signal(len(port.adr)) # Of the word that is read or written.
        read      = Signal(len(port.adr)) # Likewise, a cycle ago.
        is_seen   = Signal()
        self.comb += [
            number.eq(Mux(self.is_busy, Cat(self.word, self.of), bus.adr)),
            port.adr.eq(number),
            port.dat_w.eq(self.value),
            self.was.eq(Mux(is_seen, port.dat_r, Mux(read[:2] == FIRST_LATE, NO_SEQUENCE, 0))),
            bus.dat_r.eq(self.was),
        ]
        self.sync += [
            read.eq(number),
            is_seen.eq((self.seen >> number[2:]) & 1),
            bus.ack.eq(bus.cyc & bus.stb & ~bus.ack & ~self.is_busy),
        ]
