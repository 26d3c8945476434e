# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Admits frames to queues (tail drop, RED and PIE) and serves them on one link (CoDel drops or marks them there).

A state machine that works off events in time order.

An event is a frame or background frame that comes, service of a class, an opportunity of a trace, or a switch of the settings.
"""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.emulate.layouts import (
    CLASS_BITS, DAMAGE_FIELDS, DELAY_BITS, DUE_BITS, FRAMES_BITS, KEPT_FIELDS, LANE_BITS, LENGTH_BITS, OCTETS_BITS, PLACE_BITS,
    POSITION_BITS, RING_BITS, TICKS_BITS, WAITING_MOST, background_layout, counted_layout, impairment_layout, kept_layout,
    ring_layout, served_layout, verdict_layout, words_of,
)
from liteprobe.cores.emulate.memories import EntryLists, SpilledLists, lut_ports
from liteprobe.cores.emulate.settings import field, link_address, word_address
from liteprobe.cores.formats.emulate import (
    CLASS_FIELDS, CLASSES, CODEL_BACKLOG, CODEL_COUNT_MAX, CODEL_ROOTS, ENTRY_SPACE, FINE_BITS, LANES, LINK_FIELDS, PIE_BACKLOG,
    PIE_CHANGE_MAX, PIE_FIFTH, PIE_IDLE, PIE_SHIFTS, PIE_TENTH, PIE_WAIT_MAX, REORDER_LANE, TIME_BITS, ClassFlag, Outcome, Service,
)

OLD        = 30 # Bits of ticks: a bucket is full by then, which never is ahead by more than half of it.
MEAN_BITS  = 16 # Of the mean queue, after the point.
TAKEN_BITS = LENGTH_BITS + 1 # Of the octets that a frame takes of the link.
BURST_BITS = 45

entry_layout = kept_layout + [ # Of a frame or background frame that waits.
    ("length",  LENGTH_BITS),
    ("background",   1),
    ("lost",    1), # Behind the queue.
    ("held",    1),
    ("delay",   DELAY_BITS),
    ("arrival", DUE_BITS),
    ("ect",     1),
]

COUNT_BITS = CODEL_COUNT_MAX.bit_length()

codel_layout = [ # What CoDel keeps of a class: ticks, modulo; numbers of drops or marks.
    ("above",     TICKS_BITS), # When it is too late to go below the target,
    ("is_above",  1),          # where it isn't there.
    ("following", TICKS_BITS), # The next drop,
    ("drops",     1),          # where it drops.
    ("count",     COUNT_BITS),
    ("last",      COUNT_BITS), # As it began to drop.
]

WAIT_BITS = PIE_WAIT_MAX.bit_length()

pie_layout = [ # What PIE keeps of a class.
    ("share",     32),
    ("following", TICKS_BITS), # The next update.
    ("wait",      WAIT_BITS),  # Of the frame that was served last,
    ("before",    WAIT_BITS),  # and as it was at the last update.
    ("burst",     8),          # Updates in which nothing is dropped.
    ("is_begun",  1),          # It is PIE's; never where CoDel has it.
]

queue_layout = [ # What is known of the queue of a class.
    ("frames", FRAMES_BITS),
    ("octets", OCTETS_BITS),
    ("mean",   FRAMES_BITS + MEAN_BITS), # Frames; never less than 0, nor more than they were.
]

# Free Space ---------------------------------------------------------------------------------------

class FreeSpace(LiteXModule):
    """Counts the words that are promised to frames of each lane, and those that are free again.

    After a reset its counts must be cleared, lane by lane.

    Parameters
    ----------
    least : int
        A frame of fewer words counts as one of so many; a power of two.

    Attributes
    ----------
    lane, words : Signal(4), Signal(POSITION_BITS), in
        Of the frame that is asked for.
    position : Signal(22), out
        Where its words would go.
    fits : Signal(), out
        They find space. Two cycles after ``lane`` and ``words``; free words may be known some cycles late.
    take : Signal(), in
        They are promised; ``position`` and ``fits`` know it two cycles later.
    clear, bits : Signal(), Signal(5), in
        The ring of ``lane`` is empty, and has 2^bits words.
    freed, freed_lane, freed_words : Signal(), Signal(4), Signal(POSITION_BITS), in
        Words of a lane are free again; not in the cycle after another ``freed``, nor with ``clear``.
    """

    def __init__(self, least=1):
        self.lane        = Signal(LANE_BITS)
        self.words       = Signal(POSITION_BITS)
        self.position    = Signal(POSITION_BITS)
        self.fits        = Signal()
        self.take        = Signal()
        self.clear       = Signal()
        self.bits        = Signal(RING_BITS)
        self.freed       = Signal()
        self.freed_lane  = Signal(LANE_BITS)
        self.freed_words = Signal(POSITION_BITS)

        # # #

        put_write, put   = lut_ports(self, "promised", POSITION_BITS, LANES)
        free_write, free = lut_ports(self, "free", POSITION_BITS, LANES)
        # What was freed is counted when nothing else changes the space.
        is_freed = Signal()
        lane     = Signal(LANE_BITS, reset_less=True)
        words    = Signal(POSITION_BITS, reset_less=True)
        counts   = Signal()
        takes    = Signal() # What is promised is counted, a cycle later.
        taken    = Signal(LANE_BITS, reset_less=True)
        until    = Signal(POSITION_BITS, reset_less=True)
        less     = Signal(POSITION_BITS, reset_less=True)
        size     = Signal(POSITION_BITS)
        change   = Signal(POSITION_BITS)
        def counted(words):
            return Mux(words[log2_int(least):] == 0, least, words) if least > 1 else words
        counts_as = Signal(POSITION_BITS, reset_less=True)
        self.comb += [
            put.adr.eq(self.lane),
            self.position.eq(put.dat_r),
            put_write.adr.eq(Mux(self.clear, self.lane, taken)),
            put_write.we.eq(takes | self.clear),
            put_write.dat_w.eq(Mux(self.clear, 0, until)),
            counts.eq(is_freed & ~takes),
            free.adr.eq(Mux(takes, taken, Mux(counts, lane, self.lane))),
            free_write.adr.eq(free.adr),
            free_write.we.eq(takes | self.clear | counts),
            size.eq(1 << self.bits),
            change.eq(Mux(counts, words, ~less)),
            free_write.dat_w.eq(Mux(self.clear, size, free.dat_r + change + (counts == 0))),
        ]
        self.sync += [
            counts_as.eq(counted(self.words)),
            takes.eq(self.take),
            taken.eq(self.lane),
            until.eq(put.dat_r + self.words),
            less.eq(counts_as),
            If(self.freed,
                is_freed.eq(1),
                lane.eq(self.freed_lane),
                words.eq(counted(self.freed_words)),
            ).Elif(counts,
                is_freed.eq(0),
            ),
            If(~counts & ~takes, self.fits.eq(counts_as <= free.dat_r)),
        ]

# Queue Engine -------------------------------------------------------------------------------------

class QueueEngine(LiteXModule):
    """Works out when each frame leaves, or that it doesn't, by the events of a direction in the order of their times.

    After a reset all queues are empty, and the settings of bank 0 hold.

    Parameters
    ----------
    settings : SettingsMemory
    switch : BankSwitch
        Both as user ``engine``.
    entries : int
        Frames and background frames that can wait for service; a power of two, at most WAITING_MOST.
    departures : int
        Frames that can wait for service or for their departure.
    spills : bool
        More of them wait in the memory: ``waiting`` is a `SpilledLists`, whose ends are to be connected. A class has an entry for
        each ENTRY_SPACE words of its ring, a frame takes so many at least, and ``departures`` is not looked at.
    without : tuple of str
        ``trace``: no link can be served by one; ``aqm``: queues have no CoDel and PIE, and mark nothing (`Feature`). Their
        settings are ignored then.

    Attributes
    ----------
    safe : Signal(32), in
        Every frame that came before this tick has been given to ``arrivals``.
    arrivals : Endpoint(fate_layout), in
    background : BackgroundTraffic's ``valid``, ``ready``, ``is_known``, ``frame``
        As ``background_valid``, ``background_ready``, ``background_known``, ``background``; the first three Signal(), the last
        Record(background_layout).
    opportunities : Endpoint([("ticks", 32), ("octets", 32)]), in
        Of the trace, in a circle; without a trace none is taken.
    verdicts : Endpoint(verdict_layout), out
        Of each frame, in the order of arrivals.
    served : Endpoint(served_layout), out
        Each frame that leaves.
    counted : Endpoint(counted_layout), out
    rings : Endpoint(ring_layout), out
        Where the rings are; after a reset, ``ready`` is not looked at.
    left : Signal(), in
        Pulse: a frame that was served has been handed on.
    freed, freed_lane, freed_words : in
        As of `FreeSpace`.

    What comes takes 8 cycles, with RED 13, with PIE 12, and what is served 11, with PIE 16, with CoDel 16, 21 where it is marked;
    14 to 20 more for each drop of CoDel, 11 for each update of PIE; where counters and lanes don't stall it. Where something waits,
    the search for what is served takes one cycle more, with token buckets up to 9.

    Source: docs/design/emulator.md, "Queue".
    """

    def __init__(self, settings, switch, entries, departures, without=(), spills=False):
        self.safe          = Signal(TICKS_BITS)
        self.arrivals      = stream.Endpoint(impairment_layout)
        self.background_valid   = Signal()
        self.background_ready   = Signal()
        self.background_known   = Signal()
        self.background         = Record(background_layout)
        self.opportunities = stream.Endpoint([("ticks", 32), ("octets", 32)])
        self.verdicts      = stream.Endpoint(verdict_layout)
        self.served        = stream.Endpoint(served_layout)
        self.counted       = stream.Endpoint(counted_layout)
        self.rings         = stream.Endpoint(ring_layout)
        self.left          = Signal()
        self.space         = space = FreeSpace(ENTRY_SPACE if spills else 1)
        self.freed, self.freed_lane, self.freed_words = space.freed, space.freed_lane, space.freed_words

        # # #

        assert entries <= WAITING_MOST
        self.switch   = switch
        self.bank     = switch.banks["engine"]
        self.data     = settings.values["engine"]
        self.address  = settings.words["engine"]
        self.number   = Signal(CLASS_BITS)           # Of the class at hand.
        self.spills   = spills
        self.waiting  = (SpilledLists if spills else EntryLists)(entry_layout, entries, CLASSES)
        self.base     = Signal(TIME_BITS)            # No service begins before: the end of the last one, the last event.
        self.time     = Signal(TIME_BITS)            # Of the event at hand.
        self.service  = Signal()                     # Of the link: formats.emulate.Service,
        self.trace    = Constant(0) if "trace" in without else Signal() # by a trace.
        self.next_opportunity = Signal(TIME_BITS)
        self.octets_next      = Signal(32)           # It brings so many.
        self.is_started       = Signal()             # It is known.
        self.departures_left = Signal(max=departures + 1, reset=departures)
        self.admitted = Signal()
        self.entries_left    = Signal(max=entries + 1, reset=entries) # For what waits.
        self.fsm      = FSM(reset_state="SEED")
        self.comb += [
            self.waiting.number.eq(self.number),
            self.address.eq(word_address(self.bank, CLASS_FIELDS["flags"].word, self.number)),
        ]
        self.sync += [
            self.departures_left.eq(self.departures_left + self.left - self.admitted),
            self.entries_left.eq(self.entries_left + self.waiting.drop - self.waiting.put),
        ]
        self.with_trace = "trace" not in without
        self.with_aqm   = "aqm" not in without
        self.add_queues()
        self.add_seeds()
        self.add_schedule()
        self.add_admission()
        self.add_service()
        if self.with_aqm:
            self.add_codel()
            self.add_pie()

    def read(self, name):
        """Return the statement that reads the word of a field of the class at hand."""
        return self.address.eq(word_address(self.bank, CLASS_FIELDS[name].word, self.number))

    def read_link(self, name):
        """Return the statement that reads the word of a field of the link."""
        return self.address.eq(link_address(self.bank, LINK_FIELDS[name].word))

    def of(self, name):
        """Return a field of the word that was read."""
        return field(CLASS_FIELDS, name, self.data)

    def by_aqm(self, *statements):
        """Return what is done where queues have CoDel and PIE."""
        return statements if self.with_aqm else ()

    def by_trace(self, statements, others):
        """Return what is done on a link with a trace, and on one without."""
        return [If(self.trace, *statements).Else(*others)] if self.with_trace else others

    # Start ----------------------------------------------------------------------------------------

    def add_queues(self):
        """Keep what is known of the queues, and how many may wait in each."""
        self.seeds  = Signal(reset=1) # It learns the rings.
        self.queue  = Record(queue_layout) # Of the class at hand; and what it becomes.
        self.after  = Record(queue_layout)
        self.writes = Signal()
        write, read = lut_ports(self, "queues", len(self.queue.raw_bits()), CLASSES)
        self.comb += [
            read.adr.eq(self.number),
            self.queue.raw_bits().eq(read.dat_r),
            write.adr.eq(self.number),
            write.dat_w.eq(self.after.raw_bits()),
            write.we.eq(self.writes),
        ]
        self.has_place = Signal(reset_less=True) # For one more that waits.
        if self.spills:
            write, places = lut_ports(self, "places", PLACE_BITS, CLASSES)
            self.comb += [
                write.adr.eq(self.number),
                write.dat_w.eq((1 << self.space.bits)[log2_int(ENTRY_SPACE):]),
                write.we.eq(self.seeds & self.writes),
                places.adr.eq(self.number),
            ]
            self.sync += self.has_place.eq(self.queue.frames < places.dat_r)
        else:
            self.comb += self.has_place.eq(self.entries_left != 0)
        self.codel       = Record(codel_layout) # Likewise.
        self.codel_after = Record(codel_layout)
        self.codel_writes = Signal()
        self.has_codel   = Signal() # Or PIE, of the class that is served,
        self.marks_ect   = Signal() # which may be marked.
        self.marks       = Signal() # It is,
        self.gone        = Signal() # or was dropped at its turn.
        self.is_first    = Signal() # Nothing was, at this turn;
        self.again       = Signal() # something was, and not for the first time.
        self.marks_in    = Signal() # What comes is marked.
        self.comes_now   = Signal() # PIE deals with what comes; else with what is served.
        self.pie         = Record(pie_layout) # In the place of CoDel's.
        self.pie_after   = Record(pie_layout)
        self.pie_writes  = Signal()
        write, read = lut_ports(self, "early", len(self.pie.raw_bits()), CLASSES)
        self.comb += [
            read.adr.eq(self.number),
            self.codel.raw_bits().eq(read.dat_r),
            self.pie.raw_bits().eq(read.dat_r),
            write.adr.eq(self.number),
            write.dat_w.eq(Mux(self.pie_writes, self.pie_after.raw_bits(), self.codel_after.raw_bits())),
            write.we.eq(self.codel_writes | self.pie_writes),
        ]

    def add_seeds(self):
        """Learn the rings of the lanes; empty them and the queues; then what the link does."""
        fsm, rings, space = self.fsm, self.rings, self.space
        lane = Signal(len(rings.lane)) # Not "like": in a later LiteX no reset clears fields of an endpoint.
        base = Signal(len(rings.base))
        is_last = Signal()
        self.comb += [
            is_last.eq(lane == LANES - 1),
            rings.lane.eq(lane),
            rings.base.eq(base),
            rings.bits.eq(space.bits),
            space.bits.eq(Mux(is_last, field(LINK_FIELDS, "store_bits", self.data), self.of("store_bits"))),
            If(self.seeds, space.lane.eq(lane)),
        ]
        fsm.act("SEED",
            If(is_last, self.read_link("store_start")).Else(self.read("store_start")),
            NextState("SEED_START"),
        )
        fsm.act("SEED_START",
            If(is_last, self.read_link("store_bits")).Else(self.read("store_bits")),
            NextValue(base, Mux(is_last, field(LINK_FIELDS, "store_start", self.data), self.of("store_start"))),
            NextState("SEED_BITS"),
        )
        fsm.act("SEED_BITS",
            rings.valid.eq(1),
            space.clear.eq(1),
            self.writes.eq(~is_last),
            self.codel_writes.eq(~is_last),
            NextValue(lane, lane + 1),
            NextValue(self.number, self.number + 1),
            NextState("SEED"),
            If(is_last, NextState("READ_LINK")),
        )
        fsm.act("READ_LINK", self.read_link("service"), NextValue(self.seeds, 0), NextState("LINK"))
        fsm.act("LINK",
            NextValue(self.service, field(LINK_FIELDS, "service", self.data)),
            *([NextValue(self.trace, field(LINK_FIELDS, "trace", self.data))]*self.with_trace),
            NextState("PICK"),
        )

    # Next event -----------------------------------------------------------------------------------

    def add_schedule(self):
        """Find the next event: what comes, service, an opportunity, a switch of the settings.

        States: PICK -> COMPARE -> (SCAN ->) DECIDE -> ARRIVE, SERVE, OPPORTUNITY, SWITCH or PICK.
        """
        arrivals, waiting = self.arrivals, self.waiting
        self.comes      = Signal() # A frame or a background frame does,
        self.is_background   = Signal() # the latter,
        self.come_time  = Signal(TIME_BITS, reset_less=True)
        self.serves     = Signal() # Something can be served,
        self.serve_time = Signal(TIME_BITS, reset_less=True)
        self.chosen     = Signal.like(self.number) # of this class.
        self.scans_opportunity = Signal() # Only what can be served at once counts.
        safe      = Signal(TICKS_BITS, reset_less=True)
        frame     = Signal(TIME_BITS)
        until     = Signal(TIME_BITS)
        first     = Signal() # The frame comes first.
        gap       = Signal(TICKS_BITS)
        self.is_any = Signal() # Something waits.
        self.comb += [
            frame.eq(Cat(Constant(0, FINE_BITS), arrivals.time)),
            until.eq(Cat(Constant(0, FINE_BITS), self.safe)),
            gap.eq(self.background.time[FINE_BITS:] - arrivals.time),
            first.eq(arrivals.valid & (~self.background_valid | ~gap[-1])),
            self.is_any.eq(waiting.is_there != 0),
        ]
        self.add_eligibility(until)
        self.add_pick(safe, frame, until, first)
        self.add_scan()
        self.add_decision(safe)

    def add_eligibility(self, until):
        """Keep from when on each class may be served."""
        write, read = lut_ports(self, "eligible", TIME_BITS, CLASSES)
        self.looked     = Signal.like(self.number) # Whose ``may`` is.
        self.may        = Signal(TIME_BITS)
        self.is_limited = Signal(CLASSES) # Else always.
        self.limits     = Signal()        # ``number`` is, from ``may_next`` on,
        self.frees      = Signal()        # or isn't.
        self.may_next   = Signal(TIME_BITS)
        self.sweeps     = Signal()
        self.sweep = sweep = Signal.like(self.number)
        age = Signal(TICKS_BITS)
        self.comb += [
            read.adr.eq(self.looked),
            self.may.eq(read.dat_r),
            write.adr.eq(self.number),
            write.dat_w.eq(self.may_next),
            write.we.eq(self.limits),
            age.eq(until[FINE_BITS:] - self.may[FINE_BITS:]),
        ]
        self.sync += If(self.sweeps, sweep.eq(sweep + 1))
        for n in range(CLASSES):
            self.sync += [
                # So long ago that the bucket is full: no time is ever older than a comparison takes.
                If(self.sweeps & (self.looked == n) & ~age[-1] & (age[OLD:] != 0), self.is_limited[n].eq(0)),
                If(self.number == n,
                    If(self.limits, self.is_limited[n].eq(1)),
                    If(self.frees, self.is_limited[n].eq(0)),
                ),
            ]

    def add_pick(self, safe, frame, until, first):
        """Take what comes next, or begin a trace; then scan the classes, where one may be served before what comes."""
        fsm, arrivals = self.fsm, self.arrivals
        idle_gap = Signal(TICKS_BITS)
        self.comb += idle_gap.eq(self.base[FINE_BITS:] - until[FINE_BITS:])
        fsm.act("PICK",
            NextValue(self.is_background, ~first),
            NextValue(self.come_time, Mux(first, frame, self.background.time)),
            NextValue(self.comes, arrivals.valid | self.background_valid),
            NextValue(safe, Mux(arrivals.valid, arrivals.time, self.safe)),
            NextValue(self.serves, 0),
            # Nothing comes before: so no time is ever older than a comparison takes.
            If(~self.is_any & ~self.trace & idle_gap[-1] & ~arrivals.valid & ~self.background_valid & self.background_known,
                NextValue(self.base, until),
            ),
            If(self.trace & ~self.is_started,
                self.opportunities.ready.eq(1),
                If(self.opportunities.valid,
                    NextValue(self.next_opportunity, Cat(Constant(0, FINE_BITS), self.opportunities.ticks)),
                    NextValue(self.octets_next, self.opportunities.octets),
                    NextValue(self.is_started, 1),
                ),
            ).Elif(self.background_known,
                NextState("COMPARE"),
            ),
        )
        wait = Signal(TIME_BITS)
        self.is_past = Signal(reset_less=True) # What comes does so before the link is free.
        self.comb += wait.eq(self.come_time - self.base)
        fsm.act("COMPARE",
            self.sweeps.eq(1),
            NextValue(self.is_past, wait[-1]),
            If(self.trace,
                NextValue(self.serves, 1),
                NextValue(self.serve_time, self.next_opportunity),
                NextState("DECIDE"),
            ).Elif(~self.is_any | (self.comes & wait[-1]),
                NextState("DECIDE"),
            ).Else(
                NextValue(self.scans_opportunity, 0),
                NextState("SCAN"),
            )
        )

    def add_scan(self):
        """Find the class that is served next, and when; a class a cycle, in the order of service."""
        fsm = self.fsm
        self.turn = turn = Signal(CLASSES.bit_length() - 1, reset=CLASSES - 1) # Class that was served last,
        self.rest = rest = Signal(8) # and how many more it may send.
        to_scan  = Signal(CLASSES) # Classes to look at, but for
        at       = self.looked # this one, which is looked at now.
        is_last  = Signal() # All were.
        left     = Signal(CLASSES)
        in_turn  = Signal(CLASSES)
        later    = Signal(CLASSES)
        ahead    = Signal(CLASSES)
        lowest   = Signal.like(turn)
        may_now  = Signal()
        wait     = Signal(TIME_BITS)
        sooner   = Signal(TIME_BITS)
        self.comb += [
            # The next one is found while one is looked at; the first one before.
            left.eq(Mux(fsm.ongoing("SCAN"), to_scan, self.waiting.is_there)),
            *[in_turn[n].eq((turn < n) | ((turn == n) & (rest != 0))) for n in range(CLASSES)],
            later.eq(left & in_turn),
            ahead.eq(Mux((self.service == Service.STRICT) | (later == 0), left, later)),
            *[If(ahead[n], lowest.eq(n)) for n in reversed(range(CLASSES))],
            wait.eq(self.base - self.may),
            sooner.eq(self.may - self.serve_time),
            may_now.eq(~(self.is_limited >> at)[0] | ~wait[-1]),
        ]
        self.sync += [
            to_scan.eq(left & ~(1 << lowest)),
            at.eq(lowest),
            If(fsm.ongoing("PICK"), at.eq(self.sweep)),
            If(fsm.ongoing("BURST"), at.eq(self.number)),
            is_last.eq(left == 0),
        ]
        fsm.act("SCAN",
            If(is_last,
                If(self.scans_opportunity, NextState("PICK")).Else(NextState("DECIDE")),
            ).Elif(may_now,
                NextValue(self.serves, 1),
                NextValue(self.serve_time, self.base),
                NextValue(self.chosen, at),
                If(self.scans_opportunity,
                    NextValue(self.number, at),
                    NextState("SERVE"),
                ).Else(
                    NextState("DECIDE"),
                ),
            ).Elif(~self.scans_opportunity & (~self.serves | sooner[-1]),
                NextValue(self.serves, 1),
                NextValue(self.serve_time, self.may),
                NextValue(self.chosen, at),
            )
        )

    def add_decision(self, safe):
        """Do what comes first; on a tie a switch, then a frame, a background frame, service."""
        fsm, switch = self.fsm, self.switch
        gap        = Signal(TIME_BITS)
        comes      = Signal() # First.
        event      = Signal(TIME_BITS)
        is_safe    = Signal()
        is_switch  = Signal()
        is_pending = Signal()
        is_before  = Signal() # What is served, what comes: before ``safe``.
        comes_before = Signal(reset_less=True)
        is_early   = Signal() # Before the switch: what is served, what comes, ``safe``.
        comes_early, safe_early = Signal(reset_less=True), Signal(reset_less=True)
        def goes_before(one, other):
            gap = Signal(TICKS_BITS)
            self.comb += gap.eq(one - other)
            return gap[-1]
        served, come = self.serve_time[FINE_BITS:], self.come_time[FINE_BITS:]
        # What comes has been known for a cycle, and so has a switch.
        self.sync += [
            is_pending.eq(switch.pending["engine"]),
            comes_before.eq(goes_before(come, safe) | ~self.is_background),
            comes_early.eq(goes_before(come, switch.at)),
            safe_early.eq(goes_before(safe, switch.at)),
        ]
        self.comb += [
            is_before.eq(goes_before(served, safe)),
            is_early.eq(goes_before(served, switch.at)),
            gap.eq(self.serve_time - self.come_time),
            comes.eq(self.comes & (~self.serves | ~gap[-1])),
            event.eq(Mux(comes, self.come_time, self.serve_time)),
            # What comes in the same tick as a frame that isn't here yet must wait for it.
            is_safe.eq(Mux(comes, comes_before, self.serves & is_before)),
            is_switch.eq(is_pending & switch.pending["engine"] & ~Mux(is_safe, Mux(comes, comes_early, is_early), safe_early)),
        ]
        fsm.act("DECIDE",
            NextValue(self.time, event),
            If(is_switch,
                switch.taken["engine"].eq(1),
                NextState("READ_LINK"),
            ).Elif(is_safe,
                If(comes,
                    NextValue(self.number, Mux(self.is_background, self.background.number, self.arrivals.number)),
                    NextState("ARRIVE"),
                ).Else(*self.by_trace([NextState("OPPORTUNITY")], [
                    NextValue(self.number, self.chosen),
                    NextState("SERVE"),
                ]))
            ).Else(
                NextState("PICK"),
            )
        )
    # What comes -----------------------------------------------------------------------------------

    def add_admission(self):
        """Admit or drop what comes: tail drop, RED, want of memory; its class is ``number``, its time ``time``.

        States: ARRIVE -> FLAGS -> FRAMES -> OCTETS -> (MEAN -> RED -> SLOPE -> CHANCE_OF_RED -> DRAW ->) ADMIT -> PICK.
        """
        arrivals, background, space = self.arrivals, self.background, self.space
        length   = Signal(LENGTH_BITS)
        is_full  = Signal(reset_less=True) # For what comes.
        is_early = Signal(reset_less=True)
        mean     = Signal(FRAMES_BITS + MEAN_BITS, reset_less=True) # Of the queue, with what comes,
        words    = Signal(LENGTH_BITS)
        sum_octets = Signal(OCTETS_BITS + 1)           # and its octets then.
        is_gone  = Signal() # Before it comes to the queue.
        is_sent  = Signal() # It will be, and needs a place for its octets.
        self.comb += [
            length.eq(Mux(self.is_background, background.length, arrivals.length)),
            words.eq(words_of(arrivals.length)),
            is_gone.eq(~self.is_background & (arrivals.discarded | (arrivals.lost & ~arrivals.lost_late))),
            is_sent.eq(~self.is_background & ~arrivals.lost),
            If(~self.seeds,
                space.lane.eq(Mux(arrivals.held, REORDER_LANE, self.number)),
                space.words.eq(words),
            ),
        ]
        self.add_limits(length, sum_octets, is_gone, is_full, is_early, mean)
        self.add_red(mean, is_early)
        self.is_early = is_early
        outcome = self.add_outcome(length, is_sent, is_full, is_early)
        self.add_admit(length, sum_octets, is_sent, mean, outcome)

    def add_limits(self, length, sum_octets, is_gone, is_full, is_early, mean):
        """Hold the queue against its limits, and work its mean out."""
        fsm, queue = self.fsm, self.queue
        self.flags = flags = Signal(8, reset_less=True)
        weight = Signal(4, reset_less=True)
        fsm.act("ARRIVE", self.read("flags"), NextState("FLAGS"))
        fsm.act("FLAGS",
            self.read("limit_frames"),
            NextValue(flags, self.of("flags")),
            NextValue(weight, self.of("red_weight")),
            NextState("FRAMES"),
        )
        fsm.act("FRAMES",
            self.read("limit_octets"),
            NextValue(is_full, queue.frames >= self.of("limit_frames")),
            NextState("OCTETS"),
        )
        long   = Signal(FRAMES_BITS + MEAN_BITS) # The queue, as the mean is written,
        lag    = Signal((FRAMES_BITS + MEAN_BITS + 1, True)) # and what the mean lags it.
        self.comb += [
            sum_octets.eq(queue.octets + length),
            long.eq(Cat(Constant(0, MEAN_BITS), queue.frames)),
            lag.eq(long - queue.mean),
        ]
        fsm.act("OCTETS",
            self.read("red_least"),
            NextValue(is_full, is_full | (sum_octets > self.of("limit_octets"))),
            NextValue(is_early, 0),
            NextValue(self.marks_in, 0),
            NextValue(mean, queue.mean),
            NextState("ADMIT"),
            NextValue(self.comes_now, 1),
            If(~is_gone,
                If((flags & int(ClassFlag.RED)) != 0,
                    NextState("MEAN"),
                ),
                *self.by_aqm(If((flags & int(ClassFlag.RED | ClassFlag.PIE)) == int(ClassFlag.PIE),
                    NextState("PIE"),
                )),
            ),
        )
        # A multiplier shifts.
        power  = Signal(2**len(weight))
        shifted = Signal((len(lag) + len(power), True), reset_less=True)
        self.comb += [power[n].eq(weight == len(power) - 1 - n) for n in range(len(power))]
        self.sync += shifted.eq(lag*Cat(power, Constant(0, 1)))
        fsm.act("MEAN",
            self.read("red_least"),
            NextValue(mean, queue.mean + (shifted >> (len(power) - 1))),
            NextState("RED"),
        )

    def add_red(self, mean, is_early):
        """Drop by chance, where the mean queue is long."""
        fsm     = self.fsm
        above   = Signal(33, reset_less=True)
        is_most = Signal(reset_less=True)
        # The multiplier is for CoDel, too: the upper half of what it takes is a word of the settings.
        self.shares  = Signal(len(mean), reset_less=True)
        self.product = product = Signal(len(mean) + 32, reset_less=True)
        factor = Signal(32, reset_less=True) # From a register: block RAM and multiplier take most of a cycle each.
        self.sync   += factor.eq(self.data), product.eq(self.shares*factor)
        chance  = Signal(len(mean) + 32 - MEAN_BITS)
        self.draw  = draw  = Signal(32)
        self.marks_comer = marks = Signal()
        is_hit  = Signal()
        self.comb += [
            chance.eq(product[MEAN_BITS:]),
            draw.eq(Mux(self.is_background, self.background.red, self.arrivals.red)),
            is_hit.eq(~above[-1] & Mux(chance[32:] != 0, draw != 2**32 - 1, draw < chance[:32])),
            *self.by_aqm(
                marks.eq(((self.flags & int(ClassFlag.ECN)) != 0) & ~self.is_background & self.arrivals.ect)),
        ]
        frames   = mean[MEAN_BITS:]
        gap_most = Signal(17)
        self.comb += gap_most.eq(frames - self.of("red_most"))
        fsm.act("RED",
            self.read("red_slope"),
            NextValue(above[:MEAN_BITS], mean[:MEAN_BITS]),
            NextValue(above[MEAN_BITS:], frames - self.of("red_least")),
            NextValue(self.shares, Cat(mean[:MEAN_BITS], frames - self.of("red_least"))),
            NextValue(is_most, ~gap_most[-1]),
            NextState("SLOPE"),
        )
        fsm.act("SLOPE", NextState("CHANCE_OF_RED"))
        fsm.act("CHANCE_OF_RED", NextState("DRAW"))
        fsm.act("DRAW",
            NextValue(is_early, is_most | (is_hit & ~marks)),
            NextValue(self.marks_in, is_hit & marks),
            NextState("ADMIT"),
        )

    def add_outcome(self, length, is_sent, is_full, is_early):
        """Return what becomes of what comes; say of it what must be known when it is served."""
        arrivals, entry, space = self.arrivals, self.waiting.entry, self.space
        self.comb += [
            *[getattr(entry, name).eq(getattr(arrivals, name)) for name in (*DAMAGE_FIELDS, "ip", "ect", "held", "delay")],
            entry.marked.eq(self.marks_in),
            entry.length.eq(length),
            entry.background.eq(self.is_background),
            entry.lost.eq(arrivals.lost),
            entry.arrival.eq(self.time[FINE_BITS:FINE_BITS + DUE_BITS]),
        ]
        outcome     = Signal(3)
        has_space = Signal()
        self.comb += [
            has_space.eq(self.has_place & (~is_sent | (space.fits & ((self.departures_left != 0) | self.spills)))),
            outcome.eq(Outcome.SENT),
            If(~has_space, outcome.eq(Outcome.NO_STORE)),
            If(is_full, outcome.eq(Outcome.FULL)),
            If(is_early, outcome.eq(Outcome.EARLY)),
            If(~self.is_background & arrivals.lost & ~arrivals.lost_late, outcome.eq(Outcome.LOST)),
            If(~self.is_background & arrivals.discarded, outcome.eq(Outcome.DISCARDED)),
        ]
        return outcome

    def add_admit(self, length, sum_octets, is_sent, mean, outcome):
        """Admit or drop: report to the counters, and to whoever has the octets."""
        fsm, arrivals, space, queue, after = self.fsm, self.arrivals, self.space, self.queue, self.after
        is_in    = Signal()
        is_taken = Signal()
        is_counted  = Signal() # It was reported to the counters,
        was_counted = Signal() # before this cycle;
        is_decided  = Signal() # and the verdict to whoever has the octets,
        was_decided = Signal() # likewise.
        verdicts, counted = self.verdicts, self.counted
        self.arrive_counts = [
            counted.number.eq(self.number),
            counted.length.eq(length),
            counted.arrives.eq(~self.is_background),
            counted.background.eq(self.is_background),
            counted.outcome.eq(outcome),
            counted.twice.eq(arrivals.twice & is_sent & is_in),
            counted.corrupt.eq(arrivals.corrupt & is_sent & is_in),
            counted.held.eq(arrivals.held & is_sent & is_in),
        ]
        self.comb += [
            is_in.eq(outcome == Outcome.SENT),
            verdicts.keep.eq(is_in & is_sent),
            *copied(verdicts, space, "lane", "position"),
            *copied(counted, after, "frames", "octets"),
        ]
        fsm.act("ADMIT",
            after.mean.eq(mean),
            after.frames.eq(queue.frames + is_in),
            after.octets.eq(Mux(is_in, sum_octets, queue.octets)),
            *self.arrive_counts,
            counted.valid.eq(~was_counted),
            verdicts.valid.eq(~self.is_background & ~was_decided),
            is_counted.eq(was_counted | counted.ready),
            is_decided.eq(self.is_background | was_decided | verdicts.ready),
            is_taken.eq(is_counted & is_decided & (self.waiting.accepts | ~is_in)),
            NextValue(was_counted, is_counted & ~is_taken),
            NextValue(was_decided, is_decided & ~is_taken),
            If(is_taken,
                self.writes.eq(1),
                self.waiting.put.eq(is_in),
                space.take.eq(is_in & is_sent),
                self.admitted.eq(is_in & is_sent),
                self.background_ready.eq(self.is_background),
                arrivals.ready.eq(~self.is_background),
                If(~self.is_past, NextValue(self.base, self.time)),
                NextState("PICK"),
            ),
        )

    # What is served -------------------------------------------------------------------------------

    def add_service(self):
        """Serve the head of the queue ``number``, at the time ``time``.

        States: SERVE -> HEAD (-> CODEL) -> OCTETS_OF -> TOKENS -> BURST -> BUCKET -> LEAVE -> DEPART (or TRANSIT) -> PICK.
        """
        fsm, waiting, queue, after = self.fsm, self.waiting, self.queue, self.after
        counted, served = self.counted, self.served
        frame    = Record(waiting.entry.layout, reset_less=True) # That is served,
        of_frame = Signal.like(self.number)                      # of this class.
        octets   = Signal(TAKEN_BITS, reset_less=True)           # That it takes of the link.
        overhead = Signal((9, True), reset_less=True)
        factor   = Signal(32, reset_less=True)
        product  = Signal(TAKEN_BITS + 32, reset_less=True)
        tokens   = Signal(TAKEN_BITS + 32, reset_less=True)
        burst    = Signal(BURST_BITS, reset_less=True)
        is_limited = Signal(reset_less=True)
        bucket   = Signal(TIME_BITS, reset_less=True) # When it would be full, less the burst.
        ends     = Signal(TIME_BITS, reset_less=True)
        missing  = Signal(TAKEN_BITS) # Octets that a frame in transit lacks,
        self.transits = Signal()      # where one is.
        self.ends, self.served_frame, self.served_class = ends, frame, of_frame
        self.sync += product.eq(octets*factor)
        fsm.act("SERVE",
            self.read("overhead"),
            If(waiting.lacks, waiting.idle.eq(1)).Else(NextState("HEAD")),
        )
        # Nothing is done with the lists then, nor soon after. The lanes may wait for what comes back behind this.
        for state in ("PICK", "COMPARE", "SCAN", "DECIDE"):
            fsm.act(state, waiting.idle.eq(1))
        fsm.act("DEPART", waiting.idle.eq(served.valid & ~served.ready))
        fsm.act("HEAD",
            self.read("token_octet"),
            NextValue(overhead, self.of("overhead")),
            NextValue(burst[32:], self.of("token_burst_high")),
            NextValue(self.comes_now, 0),
            *self.by_aqm(
                NextValue(self.has_codel, self.of("codel") | self.of("pie")),
                NextValue(self.marks_ect, self.of("codel_ecn")),
            ),
            NextValue(self.marks, 0),
            NextValue(self.gone, 0),
            NextValue(self.again, 0),
            NextValue(self.is_first, 1),
            NextState("OCTETS_OF"),
            *self.by_aqm(If(self.of("codel"),
                NextState("CODEL"),
                If(self.pie.is_begun, NextState("FORGET")),
            ).Elif(self.of("pie"),
                NextState("PIE_HEAD"),
            )),
        )
        fsm.act("OCTETS_OF",
            self.read_link("octet"),
            NextValue(frame.raw_bits(), waiting.head.raw_bits()),
            NextValue(of_frame, self.number),
            NextValue(octets, waiting.head.length + overhead),
            NextValue(factor, self.data),
            NextValue(is_limited, self.data != 0),
            waiting.drop.eq(1),
            NextState("TOKENS"),
        )
        fsm.act("TOKENS",
            self.read("token_burst_low"),
            NextValue(factor, self.data),
            NextState("BURST"),
        )

        # When the link is free again, and how full the bucket was; the turns are counted.
        # ------------------------------------------------------------------------------------
        empty    = Signal(TIME_BITS) # From when on an idle class would have all of its burst now.
        is_ahead = Signal(TIME_BITS)
        self.comb += [
            empty.eq(self.time - burst),
            is_ahead.eq(self.may - empty),
        ]
        fsm.act("BURST",
            self.read("service_weight"),
            NextValue(burst[:32], self.data),
            NextValue(tokens, product),
            NextState("BUCKET"),
        )
        was_limited = Signal()
        self.comb += was_limited.eq((self.is_limited >> self.number)[0])
        fsm.act("BUCKET",
            # The link's product is there.
            If(~self.trace, NextValue(ends, self.time + product)),
            NextValue(bucket, Mux(was_limited & ~is_ahead[-1], self.may, empty)),
            If((self.turn == self.number) & (self.rest != 0),
                NextValue(self.rest, self.rest - 1),
            ).Else(
                NextValue(self.turn, self.number),
                NextValue(self.rest, self.of("service_weight") - 1),
            ),
            NextState("LEAVE"),
        )

        # It leaves its queue, and is counted.
        # ------------------------------------
        fsm.act("LEAVE",
            self.may_next.eq(bucket + tokens),
            after.mean.eq(queue.mean),
            after.frames.eq(queue.frames - 1),
            after.octets.eq(queue.octets - frame.length),
            counted.valid.eq(1),
            counted.number.eq(of_frame),
            counted.outcome.eq(Mux(frame.lost & ~frame.background, Outcome.LOST, Outcome.SENT)),
            counted.marked.eq((frame.marked | self.marks) & ~frame.lost),
            If(self.gone,
                counted.outcome.eq(Outcome.EARLY),
                counted.marked.eq(0),
                counted.arrives.eq(frame.background), # Both of them.
                counted.background.eq(frame.background),
            ),
            If(counted.ready,
                self.writes.eq(1),
                If(self.gone,
                    NextState("DEPART"),
                ).Else(
                    self.limits.eq(is_limited),
                    self.frees.eq(~is_limited),
                    self.codel_writes.eq(~self.has_codel),
                    *self.by_trace([
                        NextValue(self.transits, 1),
                        NextValue(missing, octets),
                        NextState("TRANSIT"),
                    ], [
                        NextValue(self.base, ends),
                        NextState("DEPART"),
                    ]),
                ),
            ),
        )

        # It goes to its lane; a background frame, and what is lost, goes nowhere.
        # -------------------------------------------------------------
        self.comb += [
            *[getattr(served, name).eq(getattr(frame, name)) for name in (*KEPT_FIELDS, "length", "arrival")],
            served.marked.eq(frame.marked | self.marks),
            served.gone.eq(self.gone),
            served.due.eq(ends[FINE_BITS:FINE_BITS + DUE_BITS] + Mux(self.gone, 0, frame.delay)),
            served.lane.eq(Mux(frame.held, REORDER_LANE, of_frame)),
            served.number.eq(of_frame),
        ]
        fsm.act("DEPART",
            served.valid.eq(~frame.background & ~frame.lost),
            If(served.ready | ~served.valid,
                *self.by_trace([NextState("TRANSIT")], [NextState("PICK")]),
                # Something is left behind what is dropped.
                *self.by_aqm(If(self.gone,
                    NextValue(self.gone, 0),
                    NextState("REFILL"),
                )),
            ),
        )
        if self.with_aqm:
            fsm.act("REFILL", waiting.idle.eq(waiting.lacks), If(~waiting.lacks, NextState("CODEL")))
        if self.with_trace:
            self.add_trace(ends, missing)

    def add_trace(self, ends, missing):
        """Serve by the opportunities of a trace."""
        fsm  = self.fsm
        left = Signal(32) # Octets of the opportunity.
        fsm.act("OPPORTUNITY",
            NextValue(left, self.octets_next),
            NextValue(ends, self.time),
            NextValue(self.base, self.time),
            self.opportunities.ready.eq(1),
            If(self.opportunities.valid,
                NextValue(self.next_opportunity[FINE_BITS:], self.next_opportunity[FINE_BITS:] + self.opportunities.ticks),
                NextValue(self.octets_next, self.opportunities.octets),
                NextState("TRANSIT"),
            ),
        )
        fsm.act("TRANSIT",
            If(self.transits,
                If(missing <= left,
                    NextValue(left, left - missing),
                    NextValue(self.transits, 0),
                    NextState("DEPART"),
                ).Else(
                    NextValue(missing, missing - left),
                    NextState("PICK"),
                ),
            ).Elif((left == 0) | ~self.is_any,
                NextState("PICK"),
            ).Else(
                NextValue(self.scans_opportunity, 1),
                NextState("SCAN"),
            ),
        )

    # CoDel ----------------------------------------------------------------------------------------

    def add_codel(self):
        """Let CoDel look at the head of the queue: serve it, mark it, or drop it and look at the next.

        States: CODEL -> WAITED -> OVER -> JUDGE -> (ROOT -> TABLE -> PRODUCT -> STEP -> STEPPED ->) PASS -> OCTETS_OF, or
        DROP -> LEAVE -> DEPART -> REFILL -> CODEL.

        Source: RFC 8289, 5; Linux, include/net/codel_impl.h (marks). docs/design/emulator.md, "CoDel".
        """
        fsm, queue, state, after, head = self.fsm, self.queue, self.codel, self.codel_after, self.waiting.head
        now = self.time[FINE_BITS:]
        waited    = Signal(TICKS_BITS, reset_less=True)
        behind    = Signal(OCTETS_BITS, reset_less=True) # Octets, behind the head.
        since     = Signal(TICKS_BITS, reset_less=True)  # It has been too late to go below the target.
        overdue   = Signal(TICKS_BITS, reset_less=True)  # The next drop is, by so much.
        is_below  = Signal(reset_less=True)
        is_over   = Signal(reset_less=True) # The head may be dropped.
        more      = Signal(COUNT_BITS, reset_less=True)  # Drops, the last time that it dropped;
        idle      = Signal(TICKS_BITS)                   # since then, less 16 intervals.
        is_recent = Signal(reset_less=True)
        interval  = self.of("codel_interval")
        fsm.act("FORGET", self.codel_writes.eq(1), NextState("CODEL"))
        fsm.act("CODEL",
            self.read("codel_target"),
            NextValue(waited, now - head.arrival),
            NextValue(behind, queue.octets - head.length),
            NextValue(since, now - state.above),
            NextValue(overdue, now - state.following),
            NextValue(more, state.count - state.last),
            NextState("WAITED"),
        )
        fsm.act("WAITED",
            self.read("codel_interval"),
            NextValue(is_below, (waited < self.of("codel_target")) | (behind <= CODEL_BACKLOG)),
            NextState("OVER"),
        )
        self.comb += idle.eq(overdue - Cat(Constant(0, 4), interval))
        fsm.act("OVER",
            self.read("codel_interval"),
            NextValue(is_over, ~is_below & state.is_above & ~since[-1]),
            NextValue(is_recent, idle[-1]),
            after.eq(state),
            after.is_above.eq(~is_below),
            If(~state.is_above, after.above.eq(now + interval)),
            self.codel_writes.eq(1),
            NextState("JUDGE"),
        )
        self.add_judge(is_over, overdue, more, is_recent)

    def add_judge(self, is_over, overdue, more, is_recent):
        """Begin to drop or mark, go on or end with it."""
        fsm, state, after, head = self.fsm, self.codel, self.codel_after, self.waiting.head
        now = self.time[FINE_BITS:]
        count    = Signal(COUNT_BITS, reset_less=True)
        basis    = Signal(TICKS_BITS, reset_less=True) # The next drop is a step later.
        rejudges = Signal(reset_less=True)
        can_mark = Signal()
        start    = Signal(COUNT_BITS)
        up       = Signal(COUNT_BITS)
        def step(number, of, again=0):
            return [NextValue(count, number), NextValue(basis, of), NextValue(rejudges, again), NextState("ROOT")]
        self.comb += [
            can_mark.eq(self.marks_ect & head.ect & ~head.background),
            start.eq(Mux(is_recent & (more > 1), more, 1)),
            up.eq(state.count + (state.count != CODEL_COUNT_MAX)),
        ]
        fsm.act("JUDGE",
            self.read("codel_interval"),
            after.eq(state),
            self.codel_writes.eq(1),
            NextState("PASS"),
            If(state.drops & ~is_over,
                after.drops.eq(0),
            ).Elif(state.drops & self.again,
                NextValue(self.again, 0),
                NextValue(self.is_first, 1),
                *step(state.count, state.following, 1),
            ).Elif(state.drops & self.is_first & ~overdue[-1],
                after.count.eq(up),
                NextValue(self.marks, can_mark),
                NextValue(self.again, 1),
                If(can_mark, *step(up, state.following)).Else(NextState("DROP")),
            ).Elif(~state.drops & is_over & self.is_first,
                after.drops.eq(1),
                after.count.eq(start),
                after.last.eq(start),
                NextValue(self.marks, can_mark),
                *step(start, now),
            ),
        )
        self.add_steps(count, basis, rejudges, overdue)

    def add_steps(self, count, basis, rejudges, overdue):
        """Work out when the next drop is: interval / sqrt(count) after ``basis``."""
        fsm, state, after = self.fsm, self.codel, self.codel_after
        roots = Memory(max(CODEL_ROOTS).bit_length(), len(CODEL_ROOTS), init=CODEL_ROOTS, name="roots")
        root  = roots.get_port()
        self.specials += roots, root
        shift  = Signal(3)
        shifts = COUNT_BITS // 2 - 3
        later  = Signal(TICKS_BITS, reset_less=True)
        self.comb += [
            *[If(count[6 + 2*n:] != 0, shift.eq(n)) for n in range(1, shifts)],
            Case(shift, {n: root.adr.eq(count[2*n:]) for n in range(shifts)}),
        ]
        fsm.act("ROOT",    self.read("codel_interval"), NextState("TABLE"))
        fsm.act("TABLE",   self.read("codel_interval"), NextValue(self.shares, root.dat_r), NextState("PRODUCT"))
        fsm.act("PRODUCT", NextState("STEP"))
        fsm.act("STEP",
            Case(shift, {n: NextValue(later, self.product[16 + n:]) for n in range(shifts)}),
            NextState("STEPPED"),
        )
        fsm.act("STEPPED",
            after.eq(state),
            after.following.eq(basis + later),
            self.codel_writes.eq(1),
            If(rejudges, NextState("OVERDUE")).Elif(self.marks, NextState("PASS")).Else(NextState("DROP")),
        )
        fsm.act("OVERDUE", NextValue(overdue, self.time[FINE_BITS:] - state.following), NextState("JUDGE"))
        fsm.act("PASS", self.read("token_octet"), NextState("OCTETS_OF"))
        fsm.act("DROP",
            NextValue(self.served_frame.raw_bits(), self.waiting.head.raw_bits()),
            NextValue(self.served_class, self.number),
            NextValue(self.ends, self.time),
            NextValue(self.gone, 1),
            NextValue(self.is_first, 0),
            self.waiting.drop.eq(1),
            NextState("LEAVE"),
        )

    # PIE ------------------------------------------------------------------------------------------

    def add_pie(self):
        """Let PIE look at what comes, which it may drop or mark, or see how long what is served has waited.

        States: (PIE_HEAD ->) PIE -> UPDATE -> DUE (-> for each update ERROR -> ... -> DUE) -> CHANCE -> ADMIT, or SEEN ->
        OCTETS_OF.

        Source: RFC 8033, 4 and 5.1; docs/design/emulator.md, "PIE".
        """
        fsm, queue, state, after, head = self.fsm, self.queue, self.pie, self.pie_after, self.waiting.head
        now = self.time[FINE_BITS:]
        target   = Signal(WAIT_BITS, reset_less=True)
        update   = Signal(27, reset_less=True)
        overdue  = Signal(TICKS_BITS, reset_less=True) # The next update is.
        idle     = Signal(TICKS_BITS, reset_less=True) # Less than nothing, where it can still catch up.
        waited   = Signal(TICKS_BITS, reset_less=True)
        is_low   = Signal(reset_less=True)             # The wait is less than half of the target,
        was_low  = Signal(reset_less=True)             # or was.
        is_calm  = Signal(reset_less=True)             # Nothing is to be dropped.
        is_hit   = Signal(reset_less=True)
        can_mark = Signal(reset_less=True)
        starts   = Signal(reset_less=True)             # A burst may come again.
        burst    = self.of("pie_burst")
        fsm.act("PIE_HEAD", self.read("pie_target"), NextState("PIE"))
        # Of what comes the word of the target was read as that of RED.
        fsm.act("PIE",
            self.read("pie_update"),
            NextValue(target, self.of("pie_target")),
            NextValue(overdue, now - state.following),
            NextValue(waited, now - head.arrival),
            NextState("UPDATE"),
        )
        fsm.act("UPDATE",
            self.read("pie_burst"),
            NextValue(update, self.of("pie_update")),
            NextValue(idle, overdue - (self.of("pie_update") << log2_int(PIE_IDLE))),
            NextState("DUE"),
        )
        fsm.act("DUE",
            self.read("pie_burst"),
            If(~state.is_begun | (~overdue[-1] & ~idle[-1]),
                after.is_begun.eq(1),
                after.following.eq(now + update),
                after.burst.eq(burst),
                self.pie_writes.eq(1),
                NextValue(overdue, -1),
            ).Elif(~overdue[-1],
                NextState("ERROR"),
            ).Elif(self.comes_now,
                NextState("CHANCE"),
            ).Else(
                NextState("SEEN"),
            ),
            NextValue(is_low, state.wait < target[1:]),
            NextValue(was_low, state.before < target[1:]),
            NextValue(is_calm, state.share < PIE_FIFTH),
            NextValue(starts, state.share == 0),
            NextValue(is_hit, (self.draw < state.share) & (queue.octets > PIE_BACKLOG)),
            NextValue(can_mark, self.marks_comer & (state.share < PIE_TENTH)),
        )
        is_burst = Signal()
        fsm.act("CHANCE",
            after.eq(state),
            If(starts & is_low & was_low, after.burst.eq(burst)),
            self.pie_writes.eq(1),
            is_burst.eq(after.burst != 0),
            NextValue(self.is_early, is_hit & ~is_burst & ~(is_calm & was_low) & ~can_mark),
            NextValue(self.marks_in, is_hit & ~is_burst & ~(is_calm & was_low) & can_mark),
            NextState("ADMIT"),
        )
        fsm.act("SEEN",
            self.read("token_octet"),
            after.eq(state),
            after.wait.eq(Mux(queue.frames == 1, 0, Mux(waited[WAIT_BITS:] != 0, PIE_WAIT_MAX, waited))),
            self.pie_writes.eq(1),
            NextState("OCTETS_OF"),
        )
        self.add_update(target, update, overdue)

    def add_update(self, target, update, overdue):
        """Change the share of drops, by how far the wait is from its target, and how it grew."""
        fsm, state, after = self.fsm, self.pie, self.pie_after
        off    = Signal((WAIT_BITS + 1, True), reset_less=True)
        grown  = Signal((WAIT_BITS + 1, True), reset_less=True)
        error  = Signal((WAIT_BITS + 5, True), reset_less=True)
        most   = Signal((WAIT_BITS + 8, True), reset_less=True) # Of the change, and
        least  = Signal((WAIT_BITS + 8, True), reset_less=True) # what is left of it.
        change = Signal((WAIT_BITS + 9, True), reset_less=True)
        shift  = Signal(4, reset_less=True)
        total  = Signal((WAIT_BITS + 10, True), reset_less=True)
        share  = Signal(32, reset_less=True)
        steps  = [
            [
                NextValue(off, state.wait - target),
                NextValue(grown, state.wait - state.before),
                *[NextValue(shift, 0)],
                *[If(state.share < below, NextValue(shift, bits)) for below, bits in reversed(PIE_SHIFTS)],
            ],
            [NextValue(error, off + (grown << 3) + (grown << 1))],
            [NextValue(most, (error << 2) + (error >> 2)), NextValue(least, (error >> 5) + (error >> 6))],
            [NextValue(change, most + least)],
            [Case(shift, {bits: NextValue(change, change >> bits) for bits in (*[bits for _, bits in PIE_SHIFTS], 0)})],
            [If((state.share >= PIE_TENTH) & (change > PIE_CHANGE_MAX), NextValue(change, PIE_CHANGE_MAX))],
            [NextValue(total, state.share + change)],
            [NextValue(share, Mux(total < 0, 0, Mux(total > 2**32 - 1, 2**32 - 1, total)))],
            [If((state.wait == 0) & (state.before == 0), NextValue(share, share - (share >> 6)))],
        ]
        names = ["ERROR", *[f"ERROR_{n}" for n in range(1, len(steps))], "UPDATED"]
        for name, following, step in zip(names, names[1:], steps):
            fsm.act(name, *step, NextState(following))
        fsm.act("UPDATED",
            self.read("pie_burst"),
            after.eq(state),
            after.share.eq(share),
            after.before.eq(state.wait),
            after.following.eq(state.following + update),
            If(state.burst != 0, after.burst.eq(state.burst - 1)),
            self.pie_writes.eq(1),
            NextValue(overdue, overdue - update),
            NextState("DUE"),
        )
