# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What becomes of a frame or ghost that comes to a queue."""

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.layouts import DAMAGE_FIELDS, DUE_BITS, FRAMES_BITS, LENGTH_BITS, OCTETS_BITS, words_of
from liteprobe.cores.formats.emulate import FINE_BITS, REORDER_LANE, ClassFlag, Fate

MEAN_BITS = 16 # Behind the point.

def add_admission(engine):
    """Let a QueueEngine admit or drop what comes; its class is ``number``, its time ``time``.

    States: ARRIVE -> FLAGS -> FRAMES -> OCTETS -> (MEAN -> RED -> SLOPE -> DRAW ->) ADMIT -> PICK.
    """
    arrivals, ghost, rooms = engine.arrivals, engine.ghost, engine.rooms
    length   = Signal(LENGTH_BITS)
    is_full  = Signal(reset_less=True) # For what comes.
    is_early = Signal(reset_less=True)
    mean     = Signal(FRAMES_BITS + MEAN_BITS, reset_less=True) # Of the queue, with what comes,
    words    = Signal(LENGTH_BITS)
    sum_octets = Signal(OCTETS_BITS + 1)           # and its octets then.
    is_gone  = Signal() # Before it comes to the queue.
    is_sent  = Signal() # It will be, and needs a place for its octets.
    engine.comb += [
        length.eq(Mux(engine.is_ghost, ghost.length, arrivals.length)),
        words.eq(words_of(arrivals.length)),
        is_gone.eq(~engine.is_ghost & (arrivals.discarded | (arrivals.lost & ~arrivals.behind))),
        is_sent.eq(~engine.is_ghost & ~arrivals.lost),
        If(~engine.seeds,
            rooms.lane.eq(Mux(arrivals.held, REORDER_LANE, engine.number)),
            rooms.words.eq(words),
        ),
    ]
    add_limits(engine, length, sum_octets, is_gone, is_full, is_early, mean)
    add_red(engine, mean, is_early)
    add_entry(engine, length)
    add_admit(engine, length, sum_octets, is_sent, mean, add_fate(engine, is_sent, is_full, is_early))

def add_limits(engine, length, sum_octets, is_gone, is_full, is_early, mean):
    """Hold the queue against its limits, and work its mean out."""
    fsm, queue = engine.fsm, engine.queue
    flags  = Signal(8, reset_less=True)
    weight = Signal(4, reset_less=True)
    fsm.act("ARRIVE",
        engine.read("flags"),
        NextState("FLAGS"),
    )
    fsm.act("FLAGS",
        engine.read("limit_frames"),
        NextValue(flags, engine.of("flags")),
        NextValue(weight, engine.of("red_weight")),
        NextState("FRAMES"),
    )
    fsm.act("FRAMES",
        engine.read("limit_octets"),
        NextValue(is_full, queue.frames >= engine.of("limit_frames")),
        NextState("OCTETS"),
    )
    long   = Signal(FRAMES_BITS + MEAN_BITS) # The queue, as the mean is written,
    behind = Signal((FRAMES_BITS + MEAN_BITS + 1, True)) # and what the mean lags it.
    engine.comb += [
        sum_octets.eq(queue.octets + length),
        long.eq(Cat(Constant(0, MEAN_BITS), queue.frames)),
        behind.eq(long - queue.mean),
    ]
    fsm.act("OCTETS",
        engine.read("red_least"),
        NextValue(is_full, is_full | (sum_octets > engine.of("limit_octets"))),
        NextValue(is_early, 0),
        NextValue(mean, queue.mean),
        NextState("ADMIT"),
        If(((flags & int(ClassFlag.RED)) != 0) & ~is_gone,
            NextState("MEAN"),
        ),
    )
    # A multiplier shifts.
    power  = Signal(2**len(weight))
    shifted = Signal((len(behind) + len(power), True), reset_less=True)
    engine.comb += [power[n].eq(weight == len(power) - 1 - n) for n in range(len(power))]
    engine.sync += shifted.eq(behind*Cat(power, Constant(0, 1)))
    fsm.act("MEAN",
        engine.read("red_least"),
        NextValue(mean, queue.mean + (shifted >> (len(power) - 1))),
        NextState("RED"),
    )

def add_fate(engine, is_sent, is_full, is_early):
    """Return what becomes of what comes."""
    arrivals, rooms = engine.arrivals, engine.rooms
    fate     = Signal(3)
    has_room = Signal()
    engine.comb += [
        has_room.eq((engine.places != 0) & (~is_sent | (rooms.fits & (engine.room != 0)))),
        fate.eq(Fate.SENT),
        If(~has_room, fate.eq(Fate.NO_STORE)),
        If(is_full, fate.eq(Fate.FULL)),
        If(is_early, fate.eq(Fate.EARLY)),
        If(~engine.is_ghost & arrivals.lost & ~arrivals.behind, fate.eq(Fate.LOST)),
        If(~engine.is_ghost & arrivals.discarded, fate.eq(Fate.DISCARDED)),
    ]
    return fate

def add_admit(engine, length, sum_octets, is_sent, mean, fate):
    """Admit or drop: tell the counters, and whoever has the octets."""
    fsm, arrivals, rooms, queue, after = engine.fsm, engine.arrivals, engine.rooms, engine.queue, engine.after
    is_in    = Signal()
    is_taken = Signal()
    is_told, is_told_before       = Signal(), Signal() # To the counters,
    is_decided, is_decided_before = Signal(), Signal() # and the verdict to whoever has the octets.
    verdicts, counted = engine.verdicts, engine.counted
    engine.arrive_counts = [
        counted.number.eq(engine.number),
        counted.length.eq(length),
        counted.arrives.eq(~engine.is_ghost),
        counted.ghost.eq(engine.is_ghost),
        counted.fate.eq(fate),
        counted.twice.eq(arrivals.twice & is_sent & is_in),
        counted.corrupt.eq(arrivals.corrupt & is_sent & is_in),
        counted.held.eq(arrivals.held & is_sent & is_in),
    ]
    engine.comb += [
        is_in.eq(fate == Fate.SENT),
        verdicts.keep.eq(is_in & is_sent),
        verdicts.lane.eq(rooms.lane),
        verdicts.position.eq(rooms.position),
        counted.frames.eq(after.frames),
        counted.octets.eq(after.octets),
    ]
    fsm.act("ADMIT",
        after.mean.eq(mean),
        after.frames.eq(queue.frames + is_in),
        after.octets.eq(Mux(is_in, sum_octets, queue.octets)),
        *engine.arrive_counts,
        counted.valid.eq(~is_told_before),
        verdicts.valid.eq(~engine.is_ghost & ~is_decided_before),
        is_told.eq(is_told_before | counted.ready),
        is_decided.eq(engine.is_ghost | is_decided_before | verdicts.ready),
        is_taken.eq(is_told & is_decided),
        NextValue(is_told_before, is_told & ~is_taken),
        NextValue(is_decided_before, is_decided & ~is_taken),
        If(is_taken,
            engine.writes.eq(1),
            engine.waiting.put.eq(is_in),
            rooms.take.eq(is_in & is_sent),
            engine.admitted.eq(is_in & is_sent),
            engine.ghost_ready.eq(engine.is_ghost),
            arrivals.ready.eq(~engine.is_ghost),
            If(~engine.is_past, NextValue(engine.base, engine.time)),
            NextState("PICK"),
        ),
    )

def add_red(engine, mean, is_early):
    """Drop by chance, where the mean queue is long."""
    fsm     = engine.fsm
    above   = Signal(33, reset_less=True)
    is_most = Signal(reset_less=True)
    product = Signal(len(mean) + 32, reset_less=True)
    chance  = Signal(len(mean) + 32 - MEAN_BITS)
    draw    = Signal(32)
    engine.comb += [
        chance.eq(product[MEAN_BITS:]),
        draw.eq(Mux(engine.is_ghost, engine.ghost.red, engine.arrivals.red)),
    ]
    frames   = mean[MEAN_BITS:]
    gap_most = Signal(17)
    engine.comb += gap_most.eq(frames - engine.of("red_most"))
    fsm.act("RED",
        engine.read("red_slope"),
        NextValue(above[:MEAN_BITS], mean[:MEAN_BITS]),
        NextValue(above[MEAN_BITS:], frames - engine.of("red_least")),
        NextValue(is_most, ~gap_most[-1]),
        NextState("SLOPE"),
    )
    fsm.act("SLOPE",
        NextValue(product, above[:len(mean)]*engine.data),
        NextState("DRAW"),
    )
    fsm.act("DRAW",
        NextValue(is_early, is_most | (~above[-1] & Mux(chance[32:] != 0, draw != 2**32 - 1, draw < chance[:32]))),
        NextState("ADMIT"),
    )

def add_entry(engine, length):
    """Say of what waits what must be known when it is served."""
    arrivals, entry = engine.arrivals, engine.waiting.entry
    engine.comb += [
        *[getattr(entry, name).eq(getattr(arrivals, name)) for name in (*DAMAGE_FIELDS, "held", "delay")],
        entry.length.eq(length),
        entry.ghost.eq(engine.is_ghost),
        entry.lost.eq(arrivals.lost),
        entry.arrival.eq(engine.time[FINE_BITS:FINE_BITS + DUE_BITS]),
    ]
