# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends up to 16 streams at 10 Gb/s: has all words of a stream at once, and a frame every eight cycles; in ``timebase``."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream, wishbone

from liteprobe.cores.assign import copied
from liteprobe.cores.crossing import AccessCrossing, LevelCrossing, PulseCrossing, StreamCrossing, WordCrossing
from liteprobe.cores.formats import (
    BEGIN_TICKS, EXPONENTIAL_BITS, EXPONENTIAL_INDEX_BITS, HORIZON, LIST_WORDS, LN2, NO_SEQUENCE, OVERHEAD, SENT_WORDS,
    STREAM_FIELDS, STREAM_WORDS, STREAMS, LengthKind, exponential_table,
)
from liteprobe.cores.formats.xgmii import LANES
from liteprobe.cores.prbs import xorshift
from liteprobe.cores.transmit.frames import LENGTH_BITS, descriptor_description
from liteprobe.cores.transmit.sources.streams.exponential import ExponentialInterval
from liteprobe.cores.transmit.sources.streams.streams import StreamPrograms
from liteprobe.cores.xgmii.train import PATCHES, patch_layout

WORD_BITS = 32
TICK_BITS = log2_int(LANES)
STREAM_BITS = log2_int(STREAMS)
DEPTH     = 16 # Frames that wait for the line at most.
CLEARS    = 64 # Cycles in which the tree is cleared.
DRAW_CYCLES = 7 # From a draw until the interval is written.

# Due Tree -----------------------------------------------------------------------------------------

class DueTree(LiteXModule):
    """Knows the stream that is due first, the lowest number on a tie; in ``timebase``.

    A memory has a node for each pair of nodes or streams, with the earlier one of them. A change goes from its stream to the root,
    a level a cycle, and meets the other one of the pair at each.

    Parameters
    ----------
    due_bits : int

    Attributes
    ----------
    change : Signal(), in
        One cycle, while not ``is_busy``: ``stream`` is due at ``due``, or never unless ``is_valid``.
    stream, is_valid, due : Signal(4), Signal(), Signal(due_bits), in
    clear : Signal(), in
        While high, for 32 cycles or more: no stream is due.
    is_busy : Signal(), out
        The four cycles after a change: what follows isn't known.
    found, number, first : Signal(), Signal(4), Signal(due_bits), out
        A stream is due; which one is first, and when.
    """
    def __init__(self, due_bits):
        self.change   = Signal()
        self.stream   = Signal(STREAM_BITS)
        self.is_valid = Signal()
        self.due      = Signal(due_bits)
        self.clear    = Signal()
        self.is_busy  = Signal()
        self.found    = Signal()
        self.number   = Signal(STREAM_BITS, reset_less=True)
        self.first    = Signal(due_bits, reset_less=True)

        # # #

        # Else LiteX gives the memory a page of the CSR bus.
        self.autocsr_exclude = {"memory"}
        node         = [self.found, self.number, self.first]
        other        = [Signal.like(one, name=f"other_{n}") for n, one in enumerate(node)]
        self.memory  = memory = Memory(len(Cat(*node)), 2*STREAMS, name="due_tree")
        read         = memory.get_port(async_read=True, clock_domain="timebase")
        write        = memory.get_port(write_capable=True, clock_domain="timebase")
        self.specials += memory, read, write
        place        = Signal(STREAM_BITS + 1) # In the memory: the root is 1, the children of n are 2n and 2n + 1.
        is_left      = Signal()
        is_earlier   = Signal()
        self.comb += [
            self.is_busy.eq(place[1:] != 0),
            is_left.eq(~place[0]),
            read.adr.eq(place ^ 1),
            Cat(*other).eq(read.dat_r),
            # One more in the comparison: on a tie the left one is first.
            is_earlier.eq(Cat(Constant(0, 1), self.first) < Cat(is_left, other[2])),
            write.adr.eq(place),
            write.dat_w.eq(Cat(*node)),
            write.we.eq(self.is_busy | self.clear),
        ]
        self.sync.timebase += [
            If(self.change,
                place.eq(Cat(self.stream, 1)),
                self.found.eq(self.is_valid),
                self.number.eq(self.stream),
                self.first.eq(self.due),
            ).Elif(self.is_busy,
                place.eq(place[1:]),
                If(other[0] & ~(self.found & is_earlier), Cat(*node).eq(Cat(*other))),
            ),
            If(self.clear,
                self.found.eq(0),
                place.eq(place + 1),
            ),
        ]

# Stream Rows --------------------------------------------------------------------------------------

class StreamRows(LiteXModule):
    """Keeps rows of words, one for each stream, which the engine has all at once and the bus one by one.

    Parameters
    ----------
    words : int
        Of a stream.

    Attributes
    ----------
    stream, uses : Signal(4), Signal(), in
        The engine has the row of this stream; in other cycles the bus may have one.
    values : list of Signal(32), out
        Read, in the same cycle.
    writes, news : lists of Signal() and Signal(32), in
        While it ``uses`` the row: words that it writes.
    bus : wishbone.Interface, slave, ``sys``
        Whole words: ``sel`` is ignored. An access takes some ten cycles of both clocks.
    wrote, writer : Signal(), Signal(4), out
        The bus writes a word of this stream.
    """
    def __init__(self, words):
        self.stream = Signal(STREAM_BITS)
        self.uses   = Signal()
        self.values = [Signal(WORD_BITS, name=f"value_{n}") for n in range(words)]
        self.writes = [Signal(name=f"write_{n}")            for n in range(words)]
        self.news   = [Signal(WORD_BITS, name=f"new_{n}")   for n in range(words)]
        self.crossing = crossing = AccessCrossing("timebase")
        self.bus      = crossing.bus

        # # #

        self.autocsr_exclude = {f"memory_{n}" for n in range(words)}
        low   = log2_int(words)
        has   = Signal() # The bus has the row.
        row   = Signal(STREAM_BITS)
        which = Signal(low)
        self.comb += [
            has.eq(crossing.asked & ~self.uses),
            which.eq(crossing.adr[:low]),
            row.eq(Mux(self.uses, self.stream, crossing.adr[low:low + STREAM_BITS])),
            crossing.answer.eq(has),
            crossing.dat_r.eq(Array(self.values)[which]),
        ]
        for n in range(words):
            memory = Memory(WORD_BITS, STREAMS, name=f"words_{n}")
            read   = memory.get_port(async_read=True, clock_domain="timebase")
            write  = memory.get_port(write_capable=True, clock_domain="timebase")
            setattr(self, f"memory_{n}", memory)
            self.specials += memory, read, write
            self.comb += [
                read.adr.eq(row),
                self.values[n].eq(read.dat_r),
                write.adr.eq(row),
                write.dat_w.eq(Mux(self.uses, self.news[n], crossing.dat_w)),
                write.we.eq(Mux(self.uses, self.writes[n], has & crossing.we & (which == n))),
            ]

# Sent Counters ------------------------------------------------------------------------------------

class XgmiiSentCounters(LiteXModule):
    """Counts the frames of each stream that were sent, and those that were late, as `SentCounters` does.

    Attributes
    ----------
    starts, late : Signal(), Signal(), in
        A frame starts, after its column; two frames are four cycles or more apart.
    stream, sequence : Signal(4), Signal(32), in
        With ``starts``.
    clear : Signal(), in
        One cycle: all is 0, 17 cycles later; frames that start meanwhile don't count.
    bus : wishbone.Interface, slave, ``sys``
        SENT_WORDS words a stream, to be read only.
    """
    def __init__(self):
        self.starts   = Signal()
        self.late     = Signal()
        self.stream   = Signal(STREAM_BITS)
        self.sequence = Signal(WORD_BITS)
        self.clear    = Signal()
        self.rows     = rows = StreamRows(SENT_WORDS)
        self.bus      = rows.bus

        # # #

        sequence = Signal(WORD_BITS, reset_less=True)
        is_late  = Signal()
        steps    = Signal(2)
        clears   = Signal(reset=1)
        low      = Signal(WORD_BITS + 1, reset_less=True)
        was      = [Signal(WORD_BITS, name=f"was_{n}", reset_less=True) for n in range(1, SENT_WORDS)]
        after    = [low[:WORD_BITS], was[0] + low[WORD_BITS], was[1] + is_late, Mux(is_late & (was[1] == 0), sequence, was[2])]
        nothing  = [0, 0, 0, NO_SEQUENCE]
        self.comb += [
            rows.uses.eq(clears | (steps != 0)),
            *[write.eq(clears | steps[1]) for write in rows.writes],
            *[new.eq(Mux(clears, none, word)) for new, none, word in zip(rows.news, nothing, after)],
        ]
        self.sync.timebase += [
            steps.eq(Cat(self.starts & ~clears, steps[0])),
            If(self.starts,
                rows.stream.eq(self.stream),
                sequence.eq(self.sequence),
                is_late.eq(self.late),
            ),
            low.eq(rows.values[0] + 1),
            *[old.eq(value) for old, value in zip(was, rows.values[1:])],
            If(clears,
                rows.stream.eq(rows.stream + 1),
                If(rows.stream == STREAMS - 1, clears.eq(0)),
            ),
            If(self.clear,
                clears.eq(1),
                rows.stream.eq(0),
                steps.eq(0),
            ),
        ]

# Drawn Intervals ----------------------------------------------------------------------------------

class QuickInterval(ExponentialInterval):
    """Turns a random number into an interval as `ExponentialInterval` does, six cycles after ``u`` came, whatever it is.

    Attributes
    ----------
    u, mean : Signal(32), in
        As of `ExponentialInterval`; they must stand still.
    ticks, fraction : Signal(32), out
    """
    def __init__(self):
        self.u        = Signal(WORD_BITS)
        self.mean     = Signal(WORD_BITS)
        self.ticks    = Signal(WORD_BITS)
        self.fraction = Signal(WORD_BITS)

        # # #

        # Else LiteX gives the memory a page of the CSR bus.
        self.autocsr_exclude = {"table"}
        self.table = table = Memory(EXPONENTIAL_BITS, 2**EXPONENTIAL_INDEX_BITS, init=exponential_table(), name="logarithms")
        port       = table.get_port(mode=READ_FIRST)
        self.specials += table, port
        found  = Signal(log2_int(WORD_BITS))
        zeros  = Signal(log2_int(WORD_BITS), reset_less=True) # That lead.
        m      = Signal(WORD_BITS, reset_less=True)           # ``u`` without them.
        whole  = Signal(WORD_BITS, reset_less=True)           # What they are of -ln.
        e      = Signal(WORD_BITS, reset_less=True)           # -ln, in 5.27 fixed point.
        self.comb += [
            [If(self.u[WORD_BITS - 1 - n], found.eq(n)) for n in reversed(range(WORD_BITS))],
            port.adr.eq(m[-1 - EXPONENTIAL_INDEX_BITS:-1]),
        ]
        self.sync += [
            zeros.eq(found),
            m.eq(self.u << zeros),
            whole.eq(zeros*LN2),
            e.eq(whole + port.dat_r),
        ]
        self.add_product(e)

class DrawnIntervals(LiteXModule):
    """Keeps for each stream an interval of an exponential distribution, drawn when the one before was used.

    Attributes
    ----------
    stream : Signal(4), in
    draw, u, mean : Signal(), Signal(32), Signal(32), in
        One cycle: the interval of ``stream`` is drawn anew, as of `ExponentialInterval`; the next draw comes eight cycles later.
    is_ready : Signal(), out
        The interval of ``stream`` is there.
    ticks, fraction : Signal(32), out
        It, a cycle later.
    """
    def __init__(self):
        self.stream   = Signal(STREAM_BITS)
        self.draw     = Signal()
        self.u        = Signal(WORD_BITS)
        self.mean     = Signal(WORD_BITS)
        self.is_ready = Signal()
        self.ticks    = Signal(WORD_BITS, reset_less=True)
        self.fraction = Signal(WORD_BITS, reset_less=True)

        # # #

        # Else LiteX gives the memory a page of the CSR bus.
        self.autocsr_exclude = {"memory", "engine"}
        self.engine   = engine = ClockDomainsRenamer("timebase")(QuickInterval())
        self.memory   = memory = Memory(2*WORD_BITS, STREAMS, name="drawn")
        read          = memory.get_port(async_read=True, clock_domain="timebase")
        write         = memory.get_port(write_capable=True, clock_domain="timebase")
        self.specials += memory, read, write
        steps  = Signal(DRAW_CYCLES + 1) # Since a draw; in the one before the last it is written.
        u      = Signal(WORD_BITS, reset_less=True)
        mean   = Signal(WORD_BITS, reset_less=True)
        number = Signal(STREAM_BITS)
        self.comb += [
            self.is_ready.eq((steps == 0) | (number != self.stream)),
            engine.u.eq(u),
            engine.mean.eq(mean),
            read.adr.eq(self.stream),
            write.adr.eq(number),
            write.dat_w.eq(Cat(engine.fraction, engine.ticks)),
            write.we.eq(steps[DRAW_CYCLES - 1]),
        ]
        self.sync.timebase += [
            steps.eq(Cat(self.draw, steps)),
            If(self.draw,
                u.eq(self.u),
                mean.eq(self.mean),
                number.eq(self.stream),
            ),
            Cat(self.fraction, self.ticks).eq(read.dat_r),
        ]

# Streams ------------------------------------------------------------------------------------------

# What is known of a frame while it waits, beside ``patch_layout``.
WAITING = [
    ("stream",       STREAM_BITS),
    ("sequence",     WORD_BITS),
    ("length",       LENGTH_BITS),
    ("header_words", 6),
    ("with_probe",   1),
    ("stamp_enable", 1),
    ("fill",         2),
]

class XgmiiStreams(LiteXModule):
    """Emits a descriptor for each frame of up to 16 streams, in the order of their due ticks, one every eight cycles or slower.

    What a stream is, and its state, are words as `StreamSource` has them. Up to 16 frames wait for the line.

    Attributes
    ----------
    source : Endpoint(descriptor_description(due_bits)), out
        Of two streams the one that is due first is first, the lower number on a tie.
    elapsed : Signal((46, True)), in
        Cycles since the start of the program, negative before it.
    arm, mask : Signal(), Signal(16), in
        Pulse: begins a program with the streams of ``mask``, which must stand still from then on; ignored while active.
    stop : Signal(), in
        While high, frames that wait are thrown away, and the program ends.
    hold : Signal(), in
        The program goes on when no stream is active, until ``stop``.
    changes : Endpoint([("begins", 1), ("mask", 16)]), in
        Streams join the program, first due BEGIN_TICKS and their phase after now, or leave it, but for frames that wait. Taken at
        once; ignored while no program runs. A stream that has no frames left doesn't join.
    patches : Record(patch_layout), out
        With ``source``: what in the header is other than in the one before.
    list_adr, list_word : Signal(9), Signal(32), out and in
        Reads a list; the word is there in the next cycle.
    is_primed : Signal(), out
        The due ticks of all streams of ``mask`` are known, and the first frame waits if it is due soon.
    is_active : Signal(), out
        From ``arm`` until all frames are taken.
    active : Signal(16), out
        Streams that have frames that don't wait yet.
    rows : StreamRows
        Words of a stream that is active are not for writing.

    A frame takes ten cycles where its length is one of a list, or its interval is drawn and the frame before is of its stream.

    Limits: modifiers, checksums of UDP and TCP, stamps elsewhere than in the probe header, and PRBS are left out: their fields
    are not looked at.
    """
    def __init__(self, due_bits):
        self.source    = stream.Endpoint(descriptor_description(due_bits=due_bits))
        self.elapsed   = Signal((due_bits - TICK_BITS + 1, True))
        self.arm       = Signal()
        self.mask      = Signal(STREAMS)
        self.stop      = Signal()
        self.hold      = Signal()
        self.changes   = stream.Endpoint([("begins", 1), ("mask", STREAMS)])
        self.patches   = Record(patch_layout)
        self.list_adr  = Signal(log2_int(LIST_WORDS))
        self.list_word = Signal(WORD_BITS)
        self.is_primed = Signal()
        self.is_active = Signal()
        self.active    = Signal(STREAMS)

        # # #

        self.rows       = StreamRows(STREAM_WORDS)
        self.tree       = DueTree(due_bits)
        self.drawn      = DrawnIntervals()
        self.fifo       = ClockDomainsRenamer("timebase")(
            stream.SyncFIFO(WAITING + patch_layout + [("due", due_bits)], DEPTH, buffered=True))
        self.row        = [Signal(WORD_BITS, name=f"row_{n}", reset_less=True) for n in range(STREAM_WORDS)]
        self.number     = Signal(STREAM_BITS) # The stream of the row.
        self.is_frame   = Signal()            # A frame of it leaves; else it begins or ends.
        self.is_kept    = Signal()            # It is due then: ``offset`` and ``carry`` after ``base``.
        self.base       = Signal(due_bits, reset_less=True)
        self.offset     = Signal((WORD_BITS + 2, True), reset_less=True)
        self.carry      = Signal()
        self.ends_burst = Signal()            # The frame is the last of its burst.
        self.begins     = Signal(STREAMS)     # Streams that are to begin,
        self.leaves     = Signal(STREAMS)     # and to end.
        self.is_armed   = Signal()            # They begin with the program.
        self.add_states()
        self.add_length()
        self.add_row()
        self.add_due(due_bits)
        self.add_changes()
        self.add_frames()

    def of(self, name):
        """Return a field of the row."""
        place = STREAM_FIELDS[name]
        return self.row[place.word][place.low:place.high]

    def add_states(self):
        """Go from frame to frame, or to a stream that begins or ends: each after a frame, if one is due soon."""
        tree, rows, fifo = self.tree, self.rows, self.fifo
        self.fsm   = fsm = ClockDomainsRenamer("timebase")(FSM(reset_state="IDLE"))
        ahead      = Signal((len(self.elapsed) + 1, True), reset_less=True) # Cycles until the first frame is due, a cycle ago.
        is_near    = Signal()
        turn       = Signal() # Of a change.
        clears     = Signal(max=CLEARS)
        self.first = Signal(STREAM_BITS) # Of the streams that change.
        changes    = Signal()
        self.comb += [
            is_near.eq(tree.found & (ahead[-1] | (ahead[log2_int(HORIZON//LANES):-1] == 0))),
            changes.eq((self.begins | self.leaves) != 0),
            [If(self.begins[n] | self.leaves[n], self.first.eq(n)) for n in reversed(range(STREAMS))],
            tree.clear.eq(fsm.ongoing("CLEAR")),
            rows.stream.eq(Mux(fsm.ongoing("LOOK"), tree.number, self.number)),
        ]
        self.sync.timebase += [
            ahead.eq(tree.first[TICK_BITS:] - self.elapsed),
            If(fsm.ongoing("CLEAR"), clears.eq(clears + 1)),
            If(fsm.ongoing("LOW"), turn.eq(self.is_frame)),
        ]
        fsm.act("IDLE",
            If(self.arm,
                NextValue(self.is_active, 1),
                NextValue(self.is_armed, 1),
                NextState("CLEAR"),
            ),
        )
        fsm.act("CLEAR", If(clears == CLEARS - 1, NextState("LOOK")))
        fsm.act("LOOK",
            rows.uses.eq(1),
            NextValue(self.number, tree.number),
            NextState("DECIDE"),
        )
        fsm.act("DECIDE",
            NextState("LOOK"),
            If(~self.is_armed & (fifo.source.valid | ~is_near), NextValue(self.is_primed, 1)),
            If(self.stop,
                NextState("END"),
            ).Elif(changes & (turn | self.is_armed | ~is_near),
                NextValue(self.number, self.first),
                NextState("CHANGE"),
            ).Elif(self.is_armed,
                NextValue(self.is_armed, 0),
            ).Elif(is_near,
                If(fifo.sink.ready & (self.drawn.is_ready | ~self.of("exponential")),
                    NextValue(self.is_frame, 1),
                    NextState("LOW"),
                    If(self.of("length_kind") == LengthKind.LIST, NextState("LIST")),
                ),
            ).Elif(~tree.found & ~self.hold,
                NextState("END"),
            ),
        )
        fsm.act("CHANGE",
            rows.uses.eq(1),
            NextValue(self.is_frame, 0),
            NextState("BASE"),
        )
        fsm.act("BASE", NextState("LOW"))
        fsm.act("LIST", NextState("ENTRY"))
        fsm.act("ENTRY", NextState("LOW"))
        fsm.act("LOW",
            rows.uses.eq(1),
            NextState("HIGH"),
        )
        fsm.act("HIGH",
            tree.change.eq(1),
            NextState("CLIMB_0"),
        )
        for level in range(STREAM_BITS):
            fsm.act(f"CLIMB_{level}", NextState(f"CLIMB_{level + 1}" if level + 1 < STREAM_BITS else "LOOK"))
        fsm.act("END",
            If(~fifo.source.valid,
                NextValue(self.is_active, 0),
                NextValue(self.is_primed, 0),
                NextState("IDLE"),
            ),
        )

    def add_length(self):
        """Choose the length of the frame, from LOW on, and work out what becomes of its words."""
        fsm, kind = self.fsm, self.of("length_kind")
        least, most, current = self.of("length_least"), self.of("length_range"), self.of("length_next")
        index     = self.of("list_index")
        next_one  = Signal(len(index) + 1)
        stepped   = Signal(LENGTH_BITS + 1)
        product   = Signal(16 + LENGTH_BITS, reset_less=True)
        entry     = Signal(LENGTH_BITS, reset_less=True)
        is_list   = Signal()
        self.length        = Signal(LENGTH_BITS)
        self.length_random = Signal(WORD_BITS)
        self.length_state  = Signal(WORD_BITS)
        self.is_picked     = Signal() # By a random number,
        self.is_in_turn    = Signal() # or by the length before.
        self.comb += [
            is_list.eq(kind == LengthKind.LIST),
            self.is_picked.eq((kind == LengthKind.RANDOM) | (is_list & self.of("list_drawn"))),
            self.is_in_turn.eq((kind == LengthKind.STEPPED) | (is_list & ~self.of("list_drawn"))),
            self.length_random.eq(xorshift(self.of("length_random"))),
            self.list_adr.eq(self.of("list_base") + Mux(self.of("list_drawn"), product[16:], index)),
            Case(kind, {
                int(LengthKind.FIXED):   self.length.eq(least),
                int(LengthKind.STEPPED): self.length.eq(current),
                int(LengthKind.RANDOM):  self.length.eq(least + product[16:]),
                int(LengthKind.LIST):    self.length.eq(entry),
            }),
            stepped.eq(current + self.of("length_step")),
            next_one.eq(index + 1),
            self.length_state.eq(self.row[STREAM_FIELDS["length_next"].word]),
            If(is_list,
                self.length_state[:len(index)].eq(Mux(next_one == most[:len(next_one)], 0, next_one)),
            ).Else(
                self.length_state[:LENGTH_BITS].eq(Mux(stepped > most, least, stepped)),
            ),
        ]
        self.sync.timebase += [
            If(fsm.ongoing("DECIDE"), product.eq(self.length_random[16:]*most)),
            entry.eq(self.list_word),
        ]

    def add_row(self):
        """Keep the row, and write what changes in it as a frame leaves, or the stream begins."""
        rows, fsm   = self.rows, self.fsm
        left, total = self.of("burst_left"), self.of("burst_frames")
        drawn       = self.drawn
        self.exponential = self.of("exponential")
        uses_drawn       = self.is_frame & self.ends_burst & self.exponential
        def written(name, when, value):
            word = STREAM_FIELDS[name].word
            return [
                rows.writes[word].eq(fsm.ongoing("LOW") & when),
                rows.news[word].eq(value),
            ]
        self.added = Signal(LENGTH_BITS)          # The frame's length, where the next one is back to back in its burst.
        self.part  = part = Signal(WORD_BITS + 1) # Of the interval's fraction.
        random     = Signal(WORD_BITS)
        self.comb += [
            drawn.stream.eq(rows.stream),
            drawn.mean.eq(self.of("interval")),
            drawn.u.eq(Mux(self.is_frame, xorshift(random), random)),
            drawn.draw.eq(fsm.ongoing("LOW") & self.is_kept & self.exponential & (uses_drawn | ~self.is_frame)),
            random.eq(xorshift(self.of("interval_random"))),
            part.eq(self.of("due_fraction") + Mux(self.exponential, drawn.fraction, self.of("interval_fraction"))),
            *written("interval_random", uses_drawn, random),
            *written("sequence",     self.is_frame, self.of("sequence") + 1),
            *written("frames_left",  self.is_frame & ~self.of("endless"), self.of("frames_left") - 1),
            *written("burst_left",   self.is_frame, Cat(total, Mux(self.ends_burst, total, left - 1))),
            *written("due_fraction", self.is_frame & self.ends_burst, part),
            *written("phase",        1, Mux(self.is_frame & ~self.ends_burst, self.of("phase") + self.offset + self.added, 0)),
            *written("length_next",   self.is_frame & self.is_in_turn, self.length_state),
            *written("length_random", self.is_frame & self.is_picked,  self.length_random),
        ]
        self.sync.timebase += If(fsm.ongoing("LOOK") | fsm.ongoing("CHANGE"),
            *[word.eq(value) for word, value in zip(self.row, rows.values)],
        )

    def add_due(self, due_bits):
        """Work out when the stream is due next, 32 bits a cycle, and whether it is."""
        fsm, tree  = self.fsm, self.tree
        ends_burst = Signal()
        is_last    = Signal()            # Frame of its stream.
        is_inner   = Signal()            # The next one follows back to back.
        low        = Signal(WORD_BITS + 2)
        low_sum    = Signal(WORD_BITS, reset_less=True)
        high_carry = Signal((3, True))   # With the sign of the offset.
        left       = self.of("frames_left")
        inner      = self.of("burst_interval")
        interval   = Mux(self.exponential, self.drawn.ticks, self.of("interval"))
        self.comb += [
            ends_burst.eq(self.of("burst_left")[1:] == 0),
            is_last.eq((left[1:] == 0) & ~self.of("endless")),
            self.added.eq(Replicate(is_inner, LENGTH_BITS) & self.length),
            low.eq(self.base[:WORD_BITS] + self.offset[:WORD_BITS] + self.added + self.carry),
            tree.stream.eq(self.number),
            tree.is_valid.eq(self.is_kept),
            tree.due.eq(Cat(low_sum, self.base[WORD_BITS:] + high_carry)),
        ]
        self.sync.timebase += [
            If(fsm.ongoing("DECIDE"),
                self.base.eq(tree.first),
                self.offset.eq(Mux(ends_burst, interval - self.of("phase"), Mux(inner == 0, OVERHEAD, inner))),
                self.carry.eq(self.part[-1] & ends_burst),
                self.ends_burst.eq(ends_burst),
                is_inner.eq(~ends_burst & (inner == 0)),
                self.is_kept.eq(~is_last),
            ),
            If(fsm.ongoing("BASE"),
                self.base.eq(Mux(self.is_armed, 0, Cat(Constant(0, TICK_BITS), self.elapsed[:-1]) + BEGIN_TICKS)),
                self.offset.eq(self.of("phase")),
                self.carry.eq(0),
                is_inner.eq(0),
                self.is_kept.eq((Array(self.begins)[self.number]) & (self.of("endless") | (left != 0))),
            ),
            If(fsm.ongoing("LOW"),
                low_sum.eq(low),
                high_carry.eq(low[WORD_BITS] - self.offset[-1]),
            ),
        ]

    def add_changes(self):
        """Keep which streams are to begin and to end, and which run."""
        fsm, changes = self.fsm, self.changes
        running = Signal(STREAMS)
        others  = Signal(STREAMS) # All but the one that begins or ends in this cycle.
        self.comb += [
            changes.ready.eq(1),
            others.eq(~(fsm.ongoing("BASE") << self.number)),
            self.active.eq(running | self.begins),
        ]
        self.sync.timebase += [
            self.begins.eq(self.begins & others),
            self.leaves.eq(self.leaves & others),
            If(fsm.ongoing("LOW"),
                *[If(self.number == n, running[n].eq(self.is_kept)) for n in range(STREAMS)],
            ),
            If(changes.valid,
                self.begins.eq((self.begins & others & ~changes.mask) | (changes.mask & Replicate(changes.begins, STREAMS))),
                self.leaves.eq((self.leaves & others & ~changes.mask) | (changes.mask & Replicate(~changes.begins, STREAMS))),
            ),
            If(~self.is_active,
                self.begins.eq(self.mask & Replicate(self.arm, STREAMS)),
                self.leaves.eq(0),
                running.eq(0),
            ),
        ]

    def add_frames(self):
        """Work out lengths and checksum of headers, a step a cycle, let frames wait, and throw them away at a stop."""
        fifo, source, fsm = self.fifo, self.source, self.fsm
        length, network, udp = Signal(LENGTH_BITS, reset_less=True), Signal(16, reset_less=True), Signal(16, reset_less=True)
        ipv4  = Signal(17, reset_less=True)
        self.sync.timebase += [
            If(fsm.ongoing("LOW"), length.eq(self.length)),
            network.eq(length - self.of("network_base")),
            udp.eq(length - self.of("transport_offset")),
            ipv4.eq(self.of("ipv4_sum") + Mux(self.of("network_write"), network, 0)),
        ]
        taken        = ("sequence", "header_words", "with_probe", "stamp_enable", "fill",
            *(name + end for name in PATCHES for end in ("_halfword", "_write"))) # From the row.
        self.comb += [
            fifo.sink.valid.eq(fsm.ongoing("CLIMB_1") & self.is_frame),
            fifo.sink.stream.eq(self.number),
            fifo.sink.length.eq(length),
            fifo.sink.due.eq(self.base),
            fifo.sink.network.eq(network),
            fifo.sink.udp.eq(udp),
            fifo.sink.ipv4.eq(~(ipv4[:16] + ipv4[16])),
            *[getattr(fifo.sink, name).eq(self.of(name)) for name in taken],
            *copied(source, fifo.source, *[name for name, _ in WAITING], "due"),
            *copied(self.patches, fifo.source, *[name for name, _ in patch_layout]),
            source.valid.eq(fifo.source.valid),
            source.first.eq(1),
            source.last.eq(1),
            fifo.source.ready.eq(source.ready | (self.fsm.ongoing("END") & self.stop)),
        ]

# Stream Source ------------------------------------------------------------------------------------

class XgmiiStreamSource(StreamPrograms):
    """Brings streams to a path of 10 Gb/s, and their registers and memories to ``sys``, as `StreamSource` does.

    Parameters
    ----------
    due_bits : int

    Attributes
    ----------
    engine : XgmiiStreams
    sent_counters : XgmiiSentCounters
    streams_bus, lists_bus : wishbone.Interface, slaves
    """
    def __init__(self, due_bits):
        StreamPrograms.__init__(self)
        self.engine        = engine = XgmiiStreams(due_bits)
        self.sent_counters = XgmiiSentCounters()
        self.streams_bus   = engine.rows.bus
        self.lists         = wishbone.SRAM(Memory(WORD_BITS, LIST_WORDS, name="lists"))
        self.lists_bus     = self.lists.bus

        # # #

        # Without this LiteX gives every memory in there a page of the CSR bus.
        self.autocsr_exclude = {"engine", "sent_counters", "lists"}
        reader = self.lists.mem.get_port(clock_domain="timebase")
        self.specials += reader
        self.holding = holding = LevelCrossing("timebase")
        self.running = running = WordCrossing(STREAMS, "timebase", "sys")
        self.changes = changes = StreamCrossing([("begins", 1), ("mask", STREAMS)], "sys", "timebase", depth=4)
        self.comb += [
            reader.adr.eq(engine.list_adr),
            engine.list_word.eq(reader.dat_r),
            engine.mask.eq(self.mask),
            holding.i.eq(self.hold),
            engine.hold.eq(holding.o),
            running.i.eq(engine.active),
            self.active.eq(running.o),
            changes.sink.valid.eq((self.begin | self.end) != 0),
            changes.sink.begins.eq(self.begin != 0),
            changes.sink.mask.eq(self.begin | self.end),
            changes.source.connect(engine.changes),
        ]

    def join(self, path):
        """Follow the programs of a path, and count what it sends of each stream."""
        StreamPrograms.join(self, path)
        engine, sent, port = self.engine, self.sent_counters, path.port
        self.clearing = clearing = PulseCrossing("sys", "timebase")
        self.comb += [
            port.of_streams.eq(self.is_chosen),
            engine.arm.eq(path.arming.o & self.is_chosen),
            engine.stop.eq(path.stopping.o),
            clearing.i.eq(path.clear | self.arm),
            sent.clear.eq(clearing.o),
            sent.starts.eq(port.starts & self.is_chosen),
            sent.late.eq(port.pacer.late),
            *copied(sent, port.descriptors, "stream", "sequence"),
        ]
