# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Queues and the link they share: what happens to each frame, event by event, on time stamps."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.emulate.admission import MEAN_BITS, add_admission
from liteprobe.cores.emulate.choice import add_choice
from liteprobe.cores.emulate.draws import field, link_address, word_address
from liteprobe.cores.emulate.entries import EntryLists
from liteprobe.cores.emulate.kept import lut_ports
from liteprobe.cores.emulate.layouts import (
    CLASS_BITS, DELAY_BITS, DUE_BITS, FRAMES_BITS, LENGTH_BITS, OCTETS_BITS, TICKS_BITS, WAITING_MOST, counted_layout,
    damage_layout, fate_layout, ghost_layout, ring_layout, served_layout, verdict_layout,
)
from liteprobe.cores.emulate.rooms import RingRooms
from liteprobe.cores.emulate.service import add_service
from liteprobe.cores.formats.emulate import CLASS_FIELDS, CLASSES, LANES, LINK_FIELDS, TIME_BITS

entry_layout = damage_layout + [ # Of a frame or ghost that waits.
    ("length",  LENGTH_BITS),
    ("ghost",   1),
    ("lost",    1), # Behind the queue.
    ("held",    1),
    ("delay",   DELAY_BITS),
    ("arrival", DUE_BITS),
]

queue_layout = [ # What is known of the queue of a class.
    ("frames", FRAMES_BITS),
    ("octets", OCTETS_BITS),
    ("mean",   FRAMES_BITS + MEAN_BITS), # Frames; never less than 0, nor more than they were.
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
        Frames and ghosts that can wait for service; a power of two, at most WAITING_MOST.
    departures : int
        Frames that can wait for service or for their departure.
    with_trace : bool
        A link can be served by a trace; else its setting is ignored.

    Attributes
    ----------
    safe : Signal(32), in
        Every frame that came before this tick has been given to ``arrivals``.
    arrivals : Endpoint(fate_layout), in
    ghosts : BackgroundTraffic's ``valid``, ``ready``, ``is_known``, ``ghost``
        As ``ghost_valid``, ``ghost_ready``, ``ghost_known``, ``ghost``; the first three Signal(), the last Record(ghost_layout).
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
        As of `RingRooms`.

    What comes takes 8 cycles, with RED 12, and what is served 11, where counters and lanes don't stall it. Where something
    waits, the search for what is served takes one cycle more, with token buckets up to 9.

    Source: docs/design/emulator.md, "Queue".
    """
    def __init__(self, settings, switch, entries, departures, with_trace=True):
        self.safe          = Signal(TICKS_BITS)
        self.arrivals      = stream.Endpoint(fate_layout)
        self.ghost_valid   = Signal()
        self.ghost_ready   = Signal()
        self.ghost_known   = Signal()
        self.ghost         = Record(ghost_layout)
        self.opportunities = stream.Endpoint([("ticks", 32), ("octets", 32)])
        self.verdicts      = stream.Endpoint(verdict_layout)
        self.served        = stream.Endpoint(served_layout)
        self.counted       = stream.Endpoint(counted_layout)
        self.rings         = stream.Endpoint(ring_layout)
        self.left          = Signal()
        self.rooms         = rooms = RingRooms()
        self.freed, self.freed_lane, self.freed_words = rooms.freed, rooms.freed_lane, rooms.freed_words

        # # #

        assert entries <= WAITING_MOST
        self.switch   = switch
        self.bank     = switch.banks["engine"]
        self.data     = settings.values["engine"]
        self.address  = settings.words["engine"]
        self.number   = Signal(CLASS_BITS)           # Of the class at hand.
        self.waiting  = EntryLists(entry_layout, entries, CLASSES)
        self.base     = Signal(TIME_BITS)            # No service begins before: the end of the last one, the last event.
        self.time     = Signal(TIME_BITS)            # Of the event at hand.
        self.service  = Signal()                     # Of the link: formats.emulate.Service,
        self.trace    = Signal() if with_trace else Constant(0) # by a trace.
        self.next_opportunity = Signal(TIME_BITS)
        self.octets_next      = Signal(32)           # It brings so many.
        self.is_started       = Signal()             # It is known.
        self.room     = Signal(max=departures + 1, reset=departures)
        self.admitted = Signal()
        self.places   = Signal(max=entries + 1, reset=entries) # For what waits.
        self.fsm      = FSM(reset_state="SEED")
        self.comb += [
            self.waiting.number.eq(self.number),
            self.address.eq(word_address(self.bank, CLASS_FIELDS["flags"].word, self.number)),
        ]
        self.sync += [
            self.room.eq(self.room + self.left - self.admitted),
            self.places.eq(self.places + self.waiting.drop - self.waiting.put),
        ]
        self.with_trace = with_trace
        self.add_queues()
        self.add_seeds()
        add_choice(self)
        add_admission(self)
        add_service(self)

    def read(self, name):
        """Return the statement that reads the word of a field of the class at hand."""
        return self.address.eq(word_address(self.bank, CLASS_FIELDS[name].word, self.number))

    def read_link(self, name):
        """Return the statement that reads the word of a field of the link."""
        return self.address.eq(link_address(self.bank, LINK_FIELDS[name].word))

    def of(self, name):
        """Return a field of the word that was read."""
        return field(CLASS_FIELDS, name, self.data)

    def add_queues(self):
        """Keep what is known of the queues."""
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

    def add_seeds(self):
        """Learn the rings of the lanes; empty them and the queues; then what the link does."""
        fsm, rings, rooms = self.fsm, self.rings, self.rooms
        lane = Signal.like(rings.lane)
        base = Signal.like(rings.base)
        self.seeds   = Signal()
        is_last = Signal()
        self.comb += [
            is_last.eq(lane == LANES - 1),
            rings.lane.eq(lane),
            rings.base.eq(base),
            rings.bits.eq(rooms.bits),
            rooms.bits.eq(Mux(is_last, field(LINK_FIELDS, "store_bits", self.data), self.of("store_bits"))),
            If(self.seeds, rooms.lane.eq(lane)),
        ]
        fsm.act("SEED",
            self.seeds.eq(1),
            If(is_last, self.read_link("store_start")).Else(self.read("store_start")),
            NextState("SEED_START"),
        )
        fsm.act("SEED_START",
            self.seeds.eq(1),
            If(is_last, self.read_link("store_bits")).Else(self.read("store_bits")),
            NextValue(base, Mux(is_last, field(LINK_FIELDS, "store_start", self.data), self.of("store_start"))),
            NextState("SEED_BITS"),
        )
        fsm.act("SEED_BITS",
            self.seeds.eq(1),
            rings.valid.eq(1),
            rooms.clear.eq(1),
            self.writes.eq(~is_last),
            NextValue(lane, lane + 1),
            NextValue(self.number, self.number + 1),
            NextState("SEED"),
            If(is_last, NextState("READ_LINK")),
        )
        fsm.act("READ_LINK",
            self.read_link("service"),
            NextState("LINK"),
        )
        fsm.act("LINK",
            NextValue(self.service, field(LINK_FIELDS, "service", self.data)),
            *([NextValue(self.trace, field(LINK_FIELDS, "trace", self.data))]*self.with_trace),
            NextState("PICK"),
        )
