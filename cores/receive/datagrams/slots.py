# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Receives what a host streams in slots of its memory, and writes it to the ring of a port: as by datagrams, over PCIe."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream, wishbone

from liteprobe.cores.formats import DATAGRAM_MAGIC, DMA_SLOT_BYTES, RING_WORDS, SLOT_HEADER_WORDS, SLOT_WORDS
from liteprobe.cores.memory.ring_writer import RingWriter
from liteprobe.cores.memory.sdram import BURST_WORDS
from liteprobe.cores.receive.datagrams.counts import *
from liteprobe.cores.receive.datagrams.ring import RingFiller

LINE_BITS = log2_int(BURST_WORDS)
LEFT_BITS = bits_for(SLOT_WORDS)

class SlotReceiver(RingFiller):
    """Writes what the slots of a `SlotReader` carry into the ring of a port, as `DatagramReceiver` does with datagrams.

    A slot begins with the header of a datagram, and says how many words follow. It is accepted if it is of the present session
    and lease, and begins with the word that the ring waits for; else it changes nothing, and is counted. Words of a slot go into
    the ring by lines of 64 as there is space: until then the stream stands still, and with it the host. So nothing is refused
    for want of space, and no credit is sent.

    Where the reader is stopped, or the session ends within a slot, the line that is under way isn't written; ``accepted`` says
    up to where words are in the ring, and a host may go on from there.

    Parameters
    ----------
    number : int
        Of the port, as slots name it.
    port : BurstPort
        Of the memory.
    address, words : int
        Of the ring in the memory (words, a multiple of 64); its words, a power of two from 1024 on.

    Attributes
    ----------
    sink : Endpoint([("data", 64)]), in
        Slots of DMA_SLOT_BYTES; the first word of two is in the low bits.
    is_running : Signal(), in
        The reader runs. While it doesn't, nothing is taken; the next word is the first one of a slot.
    lease, is_held, open, close, session, is_open, written, restart, is_restarted, fetched, keeps : Signal or list of Signal
        As of `DatagramReceiver`, of one ring.
    bus : wishbone.Interface, slave
        As of `DatagramReceiver`; a slot counts as a datagram once all its words are in the ring. ``full`` stays 0, and
        ``strange`` has those whose magic, port, session, lease or count is wrong, or whose session ended within them.

    Timing: a word a cycle, and four cycles more a line.
    Source: docs/design/replay.md ("Over PCIe"); `cores/formats/replay.py`.
    """
    first = 0 # Position at which a session begins; tests begin near the wrap.

    def __init__(self, number, port, address, words=RING_WORDS):
        self.sink         = stream.Endpoint([("data", 64)])
        self.is_running   = Signal()
        self.lease        = Signal(16, reset=1)
        self.is_held      = Signal()
        self.open         = Signal()
        self.close        = Signal()
        self.session      = [Signal(16, name="session")]
        self.is_open      = Signal()
        self.restart      = Signal()
        self.is_restarted = Signal(reset=1)
        self.fetched      = [Signal(32, name="fetched")]
        self.keeps        = Signal()

        # # #

        self.writer  = RingWriter(port, address, words, 1, self.first)
        self.counts  = DatagramCounts(1, self.first)
        self.written = self.writer.written
        self.bus     = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.fsm     = ResetInserter()(FSM(reset_state="HEAD"))
        self.opener  = FSM(reset_state="IDLE")

        self.opening  = Signal()
        self.sessions = Signal(16)                       # The present one.
        self.released = Signal(32)                       # As ``fetched``, if anything is.
        self.ends     = Signal()                         # The session, in this cycle.
        self.at       = Signal(max=DMA_SLOT_BYTES//4)    # Words of the slot that were taken.
        self.word     = Signal(32)
        self.is_there = Signal()                         # A word,
        self.takes    = Signal()                         # and it is taken.
        self.names    = Signal(32, reset_less=True)      # Session and lease of the slot,
        self.position = Signal(32, reset_less=True)      # of its next word,
        self.left     = Signal(LEFT_BITS, reset_less=True) # and words to come.
        self.line     = Signal(LINE_BITS + 1, reset_less=True) # Words of the line to come.
        self.size     = Signal(LINE_BITS + 1, reset_less=True) # Of the line in all.
        self.is_sound = Signal(reset_less=True)
        self.is_ours  = Signal()                         # Its words go into the ring.
        self.kind     = Signal(max=COUNTS, reset_less=True)
        self.add_words()
        self.add_session()
        self.add_head(number)
        self.add_judgement()
        self.add_lines(words)
        self.add_verdict()
        self.add_opening()
        self.add_bus()

    def add_words(self):
        """Take words of 32 bits, and know where in the slot they are."""
        sink, at = self.sink, self.at
        self.comb += [
            self.word.eq(Mux(at[0], sink.data[32:], sink.data[:32])),
            self.is_there.eq(sink.valid & self.is_running),
            sink.ready.eq(self.takes & at[0]),
            self.fsm.reset.eq(~self.is_running),
        ]
        self.sync += [
            If(self.takes, at.eq(at + 1)),
            If(~self.is_running, at.eq(0)),
        ]

    def add_session(self):
        """Know what is open."""
        given = Signal(16)
        self.comb += self.ends.eq(self.open | self.close)
        self.sync += [
            # What was closed or opened anew meanwhile is so.
            If(self.opener.ongoing("SETTLE") & self.opening,
                self.is_open.eq(1),
                self.opening.eq(0),
                self.sessions.eq(given),
            ),
            If(self.close, self.is_open.eq(0), self.opening.eq(0)),
            If(self.open, self.is_open.eq(0), self.opening.eq(1), given.eq(self.session[0])),
            self.released.eq(self.fetched[0]),
            If(self.keeps, self.released.eq(self.first)),
        ]

    def add_head(self, number):
        """Take the header of a slot."""
        at, word = self.at[:log2_int(SLOT_HEADER_WORDS)], self.word
        self.fsm.act("HEAD",
            self.takes.eq(self.is_there),
            If(self.takes & (at == SLOT_HEADER_WORDS - 1), NextState("COMPARE")),
        )
        self.sync += If(self.fsm.ongoing("HEAD") & self.takes, Case(at, {
            0: self.is_sound.eq((word[16:] == DATAGRAM_MAGIC) & (word[:8] == number)),
            1: self.names.eq(word),
            2: self.position.eq(word),
            3: [self.left.eq(word), If((word == 0) | (word > SLOT_WORDS), self.is_sound.eq(0))],
        }))

    def add_judgement(self):
        """Decide what becomes of a slot; while a session is being opened it waits."""
        fsm, counts, names = self.fsm, self.counts, self.names
        ahead      = Signal(32, reset_less=True)
        is_present = Signal()
        may_judge  = ~self.opening & ~self.opener.ongoing("CLEAR")
        self.comb += [
            counts.position.eq(self.position),
            is_present.eq(self.is_open & ~self.ends & (names[16:] == self.sessions)
                & ((names[:16] == self.lease) | ((names[:16] == 0) & ~self.is_held))),
        ]
        fsm.act("COMPARE",
            If(may_judge,
                counts.uses.eq(1),
                counts.kind.eq(ACCEPTED),
                counts.subtracts.eq(1),
                NextValue(ahead, counts.sum),
                NextState("JUDGE"),
            ),
        )
        fsm.act("JUDGE",
            NextState("COUNT"),
            If(~(self.is_sound & is_present),
                NextValue(self.kind, STRANGE),
            ).Elif(ahead != 0,
                NextValue(self.kind, REPEATED),
                If(ahead[-1], NextValue(self.kind, EARLY)),
            ).Else(
                NextValue(self.kind, DATAGRAMS),
                NextValue(self.is_ours, 1),
                NextState("MEASURE"),
            ),
        )

    def add_lines(self, words):
        """Give the words of a slot to the writer, up to the next multiple of 64 at once, when there is space for them."""
        fsm, writer, line = self.fsm, self.writer, self.line
        bits     = log2_int(words) + 1
        to_line  = Signal(LINE_BITS + 1)
        used     = Signal(bits) # Of the ring, with the line.
        has_space = Signal()
        self.comb += [
            to_line.eq(BURST_WORDS - self.position[:LINE_BITS]),
            used.eq(self.position[:bits] + line - self.released[:bits]),
            has_space.eq(used <= words),
            writer.count.eq(line),
            writer.sink.data.eq(Mux(fsm.ongoing("ENTER"), writer.piece, self.word)),
            # A line that is cut is taken back.
            writer.rewind.eq(~self.is_running | (fsm.ongoing("KEEP") & ~self.is_ours)),
        ]
        fsm.act("MEASURE", NextValue(line, Mux(self.left < to_line, self.left, to_line)), NextState("ROOM"))
        fsm.act("ROOM",
            NextValue(self.size, line),
            If(~self.is_ours, NextState("COUNT")).Elif(has_space, NextState("ENTER")),
        )
        fsm.act("ENTER",
            writer.sink.valid.eq(self.is_running),
            If(writer.sink.ready, NextState("LINE")),
        )
        fsm.act("LINE",
            writer.sink.valid.eq(self.is_there),
            self.takes.eq(self.is_there & writer.sink.ready),
            If(self.takes,
                NextValue(self.position, self.position + 1),
                NextValue(self.left, self.left - 1),
                NextValue(line, line - 1),
                If(line == 1, NextState("KEEP")),
            ),
        )

    def add_verdict(self):
        """Keep a line and count its words; count a slot, and pass over what is left of it."""
        fsm, counts, kind = self.fsm, self.counts, self.kind
        may_count = ~self.opener.ongoing("CLEAR")
        fsm.act("KEEP",
            If(self.is_ours & self.is_running,
                self.writer.keep.eq(1),
                counts.uses.eq(1),
                counts.kind.eq(ACCEPTED),
                counts.adds.eq(self.size),
                counts.write.eq(1),
            ),
            NextState("COUNT"),
            If(self.is_ours & (self.left != 0), NextState("MEASURE")),
        )
        fsm.act("COUNT",
            If(may_count,
                counts.uses.eq(1),
                counts.kind.eq(Mux((kind == DATAGRAMS) & ~self.is_ours, STRANGE, kind)),
                counts.adds.eq(1),
                counts.write.eq(self.is_running),
                NextState("REFUSE"),
            ),
        )
        fsm.act("REFUSE",
            If(may_count,
                counts.uses.eq(1),
                counts.kind.eq(REFUSED),
                counts.adds.eq(1),
                counts.write.eq(self.is_running & ((kind == REPEATED) | (kind == EARLY))),
                NextValue(self.is_ours, 0),
                NextState("REST"),
                If(self.at == 0, NextState("HEAD")),
            ),
        )
        fsm.act("REST",
            self.takes.eq(self.is_there),
            If(self.takes & (self.at == DMA_SLOT_BYTES//4 - 1), NextState("HEAD")),
        )
        self.sync += If(self.ends | ~self.is_running, self.is_ours.eq(0))

    def add_opening(self):
        """Begin a session, once the last one's words are with the memory."""
        fsm, opener, counts, writer = self.fsm, self.opener, self.counts, self.writer
        kind      = Signal(max=COUNTS)
        is_writing = Signal()
        self.comb += [
            is_writing.eq(fsm.ongoing("ENTER") | fsm.ongoing("LINE") | fsm.ongoing("KEEP")),
            If(opener.ongoing("CLEAR"),
                counts.uses.eq(1),
                counts.kind.eq(kind),
                counts.clear.eq(1),
            ),
        ]
        opener.act("IDLE",
            NextValue(kind, 0),
            If(self.opening, NextState("DRAIN")),
        )
        opener.act("DRAIN",
            If(~is_writing & writer.is_empty, NextState("CLEAR")),
            If(~self.opening, NextState("IDLE")), # It was closed again.
        )
        opener.act("CLEAR",
            NextValue(kind, kind + 1),
            If(kind == REFUSED, NextState("RESTART")),
        )
        opener.act("RESTART",
            self.restart.eq(1),
            writer.clear.eq(1),
            NextState("RESTARTING"),
        )
        opener.act("RESTARTING", NextState("RESTARTING-2"))
        opener.act("RESTARTING-2",
            If(self.is_restarted, NextState("SETTLE")), # ``released`` follows the reader.
        )
        opener.act("SETTLE", NextState("IDLE"))

    def add_bus(self):
        """Show the counts, while nothing is counted."""
        bus, counts = self.bus, self.counts
        answers = Signal()
        self.comb += [
            counts.read_kind.eq(bus.adr[:log2_int(COUNTS)]),
            answers.eq(bus.cyc & bus.stb & ~bus.ack & counts.can_read),
        ]
        self.sync += bus.ack.eq(answers), bus.dat_r.eq(counts.data)

    def join_reader(self, reader):
        """Take the slots of a `SlotReader`."""
        self.comb += [
            self.sink.valid.eq(reader.source.valid),
            self.sink.data.eq(reader.source.data),
            reader.source.ready.eq(self.sink.ready),
            self.is_running.eq(reader.enable),
        ]
