# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lets frames leave the emulated network, as a program of a transmit port."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.emulate.layouts import (
    BIT_BITS, CLASS_BITS, DUE_BITS, IP_BITS, LANE_BITS, LENGTH_BITS, POSITION_BITS, departure_layout, late_layout,
    words_of,
)
from liteprobe.cores.emulate.store import WORDS_BITS, request_layout
from liteprobe.cores.transmit.frames import descriptor_description

AHEAD       = 8   # Frames that are read ahead.
SHOW_TICKS  = 128 # From a frame that is shown to its first start.
# A network has no end, and its line may be full: a management frame goes after 1 ms (2^17 ticks) all the same.
PATIENCE_BITS = 17

frame_layout = [ # That is read.
    ("due",     DUE_BITS),
    ("lane",    LANE_BITS),
    ("number",  CLASS_BITS),
    ("length",  LENGTH_BITS),
    ("corrupt", 1),
    ("mended",  1),
    ("bit",     BIT_BITS),
    ("marked",  1),
    ("ip",      IP_BITS),
    ("gone",    1), # Nothing of it was read.
    ("again",   1), # The same frame comes once more.
]

class ForwardSource(LiteXModule):
    """Describes the frames that leave to a transmit port, and brings their octets; a program without an end.

    For a `ForwardTransmit`.

    Parameters
    ----------
    buffer_words : int
        As ``buffer`` of the `RingStore`.
    shown_words : int
        Of a frame that are here before it is shown: the rest must come as fast as it leaves.
    with_marks : bool
        Frames that are marked leave with CE.

    Attributes
    ----------
    departures : Endpoint(departure_layout), in
    read, read_data, level : as of `RingStore`
        Endpoint(request_layout), out, Endpoint([("data", 32)]), in, Signal, in.
    is_idle : Signal(), in
        Likewise.
    lane, position : Signal(4), Signal(22), out and in
        Up to where the words of a lane are in the store.
    freed, freed_lane, freed_words : Signal(), Signal(4), Signal(22), out
        Pulse: the words of a frame have left the store.
    elapsed : Signal(32), in
        Ticks of the program, modulo.
    is_taken : Signal(), in
        Pulse: the pacer took the descriptor that is shown.
    is_late, is_sent : Signal(), in
        Pulses, as of `TransmitCounters`: the frame that was taken last started after its tick; it starts.
    late : Endpoint(late_layout), out
        Of each frame that started after its tick; must be taken before the next one starts. ``ticks`` are some 30 too few.
    spoils : Signal(), out
        The frame at ``source`` wants a wrong FCS; a level that stands while it is shown.
    source : Endpoint(descriptor_description(True, DUE_BITS)), out
    fetch : Endpoint([("data", 32)]), out
    start, stop : Signal(), in
        As of `ReplaySource`.
    is_primed, is_active : Signal(), out
        From ``start`` until the end is taken, the first one once nothing is left of a program before.

    While it isn't active all departures go, and so does what was read.
    """
    patience_bits = PATIENCE_BITS # As of `TrainPacer`.

    def __init__(self, buffer_words, shown_words, with_marks=True):
        self.departures  = stream.Endpoint(departure_layout)
        self.read        = stream.Endpoint(request_layout)
        self.read_data   = stream.Endpoint([("data", 32)])
        self.level       = Signal(max=buffer_words + 1)
        self.lane        = Signal(LANE_BITS)
        self.position    = Signal(POSITION_BITS)
        self.freed       = Signal()
        self.freed_lane  = Signal(LANE_BITS)
        self.freed_words = Signal(POSITION_BITS)
        self.elapsed     = Signal(DUE_BITS)
        self.is_idle     = Signal()
        self.is_taken    = Signal()
        self.is_late     = Signal()
        self.is_sent     = Signal()
        self.late        = stream.Endpoint(late_layout)
        self.spoils      = Signal()
        self.source      = stream.Endpoint(descriptor_description(True, DUE_BITS))
        self.fetch       = stream.Endpoint([("data", 32)])
        self.start       = Signal()
        self.stop        = Signal()
        self.is_primed   = Signal()
        self.is_active   = Signal()

        # # #

        self.with_marks = with_marks
        self.frames = ResetInserter()(stream.SyncFIFO(frame_layout, AHEAD))
        self.frame  = Record(frame_layout, reset_less=True) # That is shown.
        self.had_to = Signal() # Its octets were not there when it was its turn,
        self.shown_late = Signal() # It was due already when it was shown, and had to wait for them.
        self.add_read()
        self.add_show(shown_words)
        self.add_octets()
        self.add_late()

    def add_read(self):
        """Ask for the octets of frames ahead, once they are in the store; of one that leaves twice, twice."""
        departures, read, frames = self.departures, self.read, self.frames
        again  = Signal() # The second time.
        words  = Signal(WORDS_BITS)
        end    = Signal(POSITION_BITS)
        short  = Signal(POSITION_BITS)
        is_in  = Signal() # The store has it.
        reads  = Signal() # Or passes it by, where it was dropped.
        self.comb += [
            words.eq(words_of(departures.length)),
            end.eq(departures.position + words),
            self.lane.eq(departures.lane),
            short.eq(self.position - end),
            is_in.eq(~short[-1]),
            *copied(read, departures, "lane", "position"),
            read.words.eq(words),
            *[getattr(frames.sink, name).eq(getattr(departures, name)) for name, _ in frame_layout if name != "again"],
            frames.sink.again.eq(departures.twice & ~again & ~departures.gone),
            reads.eq(departures.valid & is_in & frames.sink.ready & self.is_active),
            read.valid.eq(reads & ~departures.gone),
            frames.sink.valid.eq(reads & (read.ready | departures.gone)),
            frames.reset.eq(~self.is_active),
            departures.ready.eq((frames.sink.valid & ~frames.sink.again) | ~self.is_active),
        ]
        self.sync += If(frames.sink.valid, again.eq(frames.sink.again)).Elif(~self.is_active, again.eq(0))

    def add_show(self, shown_words):
        """Show a frame once enough of it is here."""
        source, frame = self.source, self.frame
        words    = Signal(WORDS_BITS)
        is_here  = Signal()
        is_due   = Signal() # Or so soon that it can't be shown in time.
        to_go    = Signal(DUE_BITS)
        self.comb += [
            words.eq(words_of(frame.length)),
            is_here.eq((self.level >= shown_words) | (self.level >= words)),
            to_go.eq(frame.due - self.elapsed - SHOW_TICKS),
            is_due.eq(to_go[-1]),
            *copied(source, frame, "due", "length"),
            source.first.eq(1),
            source.last.eq(1),
            self.freed_lane.eq(frame.lane),
            self.freed_words.eq(words),
        ]
        self.add_show_states(is_here, is_due)

    def add_show_states(self, is_here, is_due):
        """Take frames, wait for their octets and show them, from the start to the end."""
        source, frames, frame = self.source, self.frames, self.frame
        was_idle = Signal()
        self.sync += was_idle.eq(self.is_active & (was_idle | self.is_idle))
        self.fsm = fsm = FSM(reset_state="IDLE")
        self.comb += [
            self.is_active.eq(~fsm.ongoing("IDLE")),
            self.is_primed.eq(was_idle),
        ]
        fsm.act("IDLE", If(self.start, NextState("TAKE")))
        fsm.act("TAKE",
            NextValue(self.had_to, 1),
            If(self.stop,
                NextState("END"),
            ).Elif(frames.source.valid,
                frames.source.ready.eq(1),
                NextValue(self.had_to, self.had_to),
                NextValue(frame.raw_bits(), frames.source.payload.raw_bits()),
                NextState("ARRIVE"),
                If(frames.source.gone, NextState("FREE")),
            ),
        )
        fsm.act("FREE", self.freed.eq(1), NextState("TAKE"))
        fsm.act("ARRIVE",
            If(self.stop,
                NextState("END"),
            ).Elif(is_here,
                NextValue(self.shown_late, self.had_to & is_due),
                NextState("SHOW"),
            ).Else(
                NextValue(self.had_to, 1),
            ),
        )
        fsm.act("SHOW",
            source.valid.eq(1),
            self.spoils.eq(frame.corrupt & ~frame.mended),
            If(source.ready,
                NextValue(self.had_to, 0),
                self.freed.eq(~frame.again),
                NextState("TAKE"),
            ),
        )
        fsm.act("END",
            source.valid.eq(1),
            source.final.eq(1),
            source.empty.eq(1),
            If(source.ready, NextState("IDLE")),
        )

    def add_octets(self):
        """Give the words of the frame that is shown, with CE where it is marked, one bit inverted where it is corrupt."""
        fetch, data, frame = self.fetch, self.read_data, self.frame
        word   = Signal(WORDS_BITS)
        is_at  = Signal()
        marked = Signal(32)
        shows  = self.fsm.ongoing("SHOW")
        if self.with_marks:
            self.add_mark(word, marked)
        else:
            self.comb += marked.eq(data.data)
        self.comb += [
            is_at.eq(frame.corrupt & (word == frame.bit[5:])),
            fetch.data.eq(marked ^ Mux(is_at, 1 << frame.bit[:5], 0)),
            fetch.valid.eq(data.valid & shows),
            data.ready.eq((fetch.ready & shows) | ~self.is_active),
        ]
        self.sync += [
            If(fetch.valid & fetch.ready, word.eq(word + 1)),
            If(~shows, word.eq(0)),
        ]

    def add_mark(self, word, marked):
        """Set the codepoint, in the last octet of the word in which the IP header begins; three words later its checksum.

        Source: RFC 3168, 5 and 23.2; RFC 1624, 3: of ~HC' = ~HC + ~m + m' what m' is more than m goes on ~HC.
        """
        data, frame = self.read_data.data, self.frame
        is_ipv6 = frame.ip[-1]
        is_tos  = Signal(reset_less=True) # The word at hand is that: known a cycle before.
        is_sum  = Signal(reset_less=True)
        more   = Signal(2, reset_less=True)
        sum_   = Signal(17)
        mended = Signal(16)
        at     = Signal(WORDS_BITS)
        goes   = self.fetch.valid & self.fetch.ready
        self.comb += [
            at.eq(Mux(self.fsm.ongoing("SHOW"), word + goes, 0)),
            sum_.eq(Cat(~data[8:16], ~data[:8]) + more),
            mended.eq(~(sum_[:16] + sum_[16])),
            marked.eq(data),
            If(is_tos,
                If(is_ipv6, marked[28:30].eq(3)).Else(marked[24:26].eq(3)),
            ),
            If(is_sum, marked[:16].eq(Cat(mended[8:], mended[:8]))),
        ]
        self.sync += [
            is_tos.eq(frame.marked & (at == frame.ip[:-1] + 3)),
            is_sum.eq(frame.marked & ~is_ipv6 & (at == frame.ip[:-1] + 6)),
            If(is_tos & goes, more.eq(3 - data[24:26])),
        ]

    def add_late(self):
        """Tell of frames that start after their tick, why and by how much."""
        late     = self.late
        was_late = Signal()
        number   = Signal(CLASS_BITS, reset_less=True)
        waited   = Signal(reset_less=True)
        ticks    = Signal(DUE_BITS, reset_less=True)
        lag      = Signal(DUE_BITS)
        self.comb += lag.eq(self.elapsed - self.frame.due)
        self.sync += [
            If(self.is_late, was_late.eq(1)),
            If(self.is_taken,
                number.eq(self.frame.number),
                waited.eq(~self.shown_late),
                ticks.eq(Mux(lag[-1], 0, lag)),
            ),
            If(late.ready, late.valid.eq(0)),
            If(self.is_sent,
                was_late.eq(0),
                late.valid.eq(was_late),
                late.number.eq(number),
                late.waited.eq(waited),
                late.ticks.eq(ticks),
            ),
        ]
