# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Which event of a direction comes next."""

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.kept import lut_ports
from liteprobe.cores.emulate.layouts import TICKS_BITS
from liteprobe.cores.emulate.service import by_trace
from liteprobe.cores.formats.emulate import CLASSES, FINE_BITS, TIME_BITS, Service

OLD = 30 # Bits of ticks: a bucket is full by then, which never is ahead by more than half of it.

def add_choice(engine):
    """Let a QueueEngine find its next event: what comes, service, an opportunity, a switch of the settings.

    States: PICK -> COMPARE -> (SCAN ->) DECIDE -> ARRIVE, SERVE, OPPORTUNITY, SWITCH or PICK.
    """
    arrivals, waiting = engine.arrivals, engine.waiting
    engine.comes      = Signal() # A frame or a ghost does,
    engine.is_ghost   = Signal() # the latter,
    engine.come_time  = Signal(TIME_BITS, reset_less=True)
    engine.serves     = Signal() # Something can be served,
    engine.serve_time = Signal(TIME_BITS, reset_less=True)
    engine.chosen     = Signal.like(engine.number) # of this class.
    engine.scans_opportunity = Signal() # Only what can be served at once counts.
    safe      = Signal(TICKS_BITS, reset_less=True)
    frame     = Signal(TIME_BITS)
    until     = Signal(TIME_BITS)
    first     = Signal() # The frame comes first.
    gap       = Signal(TICKS_BITS)
    engine.is_any = Signal() # Something waits.
    engine.comb += [
        frame.eq(Cat(Constant(0, FINE_BITS), arrivals.time)),
        until.eq(Cat(Constant(0, FINE_BITS), engine.safe)),
        gap.eq(engine.ghost.time[FINE_BITS:] - arrivals.time),
        first.eq(arrivals.valid & (~engine.ghost_valid | ~gap[-1])),
        engine.is_any.eq(waiting.is_there != 0),
    ]
    add_eligibility(engine, until)
    add_pick(engine, safe, frame, until, first)
    add_comparison(engine)
    add_scan(engine)
    add_decision(engine, safe)

def add_pick(engine, safe, frame, until, first):
    """Take what comes next; begin a trace."""
    fsm, arrivals = engine.fsm, engine.arrivals
    idle_gap = Signal(TICKS_BITS)
    engine.comb += idle_gap.eq(engine.base[FINE_BITS:] - until[FINE_BITS:])
    fsm.act("PICK",
        NextValue(engine.is_ghost, ~first),
        NextValue(engine.come_time, Mux(first, frame, engine.ghost.time)),
        NextValue(engine.comes, arrivals.valid | engine.ghost_valid),
        NextValue(safe, Mux(arrivals.valid, arrivals.time, engine.safe)),
        NextValue(engine.serves, 0),
        engine.sweeps.eq(1),
        # Nothing comes before: so no time is ever older than a comparison takes.
        If(~engine.is_any & ~engine.trace & idle_gap[-1] & ~arrivals.valid & ~engine.ghost_valid & engine.ghost_known,
            NextValue(engine.base, until),
        ),
        If(engine.trace & ~engine.is_started,
            engine.opportunities.ready.eq(1),
            If(engine.opportunities.valid,
                NextValue(engine.next_opportunity, Cat(Constant(0, FINE_BITS), engine.opportunities.ticks)),
                NextValue(engine.octets_next, engine.opportunities.octets),
                NextValue(engine.is_started, 1),
            ),
        ).Elif(engine.ghost_known,
            NextState("COMPARE"),
        ),
    )

def add_comparison(engine):
    """Scan the classes, where what can be served may come before what comes."""
    fsm  = engine.fsm
    wait = Signal(TIME_BITS)
    engine.is_past = Signal(reset_less=True) # What comes does so before the link is free.
    engine.comb += wait.eq(engine.come_time - engine.base)
    fsm.act("COMPARE",
        NextValue(engine.is_past, wait[-1]),
        If(engine.trace,
            NextValue(engine.serves, 1),
            NextValue(engine.serve_time, engine.next_opportunity),
            NextState("DECIDE"),
        ).Elif(~engine.is_any | (engine.comes & wait[-1]),
            NextState("DECIDE"),
        ).Else(
            NextValue(engine.scans_opportunity, 0),
            NextState("SCAN"),
        )
    )

def add_eligibility(engine, until):
    """Keep from when on each class may be served."""
    write, read = lut_ports(engine, "eligible", TIME_BITS, CLASSES)
    engine.looked     = Signal.like(engine.number) # Whose ``may`` is.
    engine.may        = Signal(TIME_BITS)
    engine.is_limited = Signal(CLASSES) # Else always.
    engine.limits     = Signal()        # ``number`` is, from ``may_next`` on,
    engine.frees      = Signal()        # or isn't.
    engine.may_next   = Signal(TIME_BITS)
    engine.sweeps     = Signal()
    sweep = Signal.like(engine.number)
    age   = Signal(TICKS_BITS)
    engine.comb += [
        If(engine.sweeps, engine.looked.eq(sweep)),
        read.adr.eq(engine.looked),
        engine.may.eq(read.dat_r),
        write.adr.eq(engine.number),
        write.dat_w.eq(engine.may_next),
        write.we.eq(engine.limits),
        age.eq(until[FINE_BITS:] - engine.may[FINE_BITS:]),
    ]
    engine.sync += If(engine.sweeps, sweep.eq(sweep + 1))
    for n in range(CLASSES):
        engine.sync += [
            # So long ago that the bucket is full: no time is ever older than a comparison takes.
            If(engine.sweeps & (sweep == n) & ~age[-1] & (age[OLD:] != 0), engine.is_limited[n].eq(0)),
            If(engine.number == n,
                If(engine.limits, engine.is_limited[n].eq(1)),
                If(engine.frees, engine.is_limited[n].eq(0)),
            ),
        ]

def add_scan(engine):
    """Find the class that is served next, and when; a class a cycle, in the order of service."""
    fsm = engine.fsm
    engine.turn = turn = Signal(CLASSES.bit_length() - 1, reset=CLASSES - 1) # Class that was served last,
    engine.rest = rest = Signal(8) # and how many more it may send.
    to_scan  = Signal(CLASSES) # Classes to look at, but for
    at       = Signal.like(turn) # this one, which is looked at now.
    is_last  = Signal() # All were.
    left     = Signal(CLASSES)
    in_turn  = Signal(CLASSES)
    later    = Signal(CLASSES)
    ahead    = Signal(CLASSES)
    lowest   = Signal.like(turn)
    may_now  = Signal()
    wait     = Signal(TIME_BITS)
    sooner   = Signal(TIME_BITS)
    engine.comb += [
        # The next one is found while one is looked at; the first one before.
        left.eq(Mux(fsm.ongoing("SCAN"), to_scan, engine.waiting.is_there)),
        *[in_turn[n].eq((turn < n) | ((turn == n) & (rest != 0))) for n in range(CLASSES)],
        later.eq(left & in_turn),
        ahead.eq(Mux((engine.service == Service.STRICT) | (later == 0), left, later)),
        *[If(ahead[n], lowest.eq(n)) for n in reversed(range(CLASSES))],
        wait.eq(engine.base - engine.may),
        sooner.eq(engine.may - engine.serve_time),
        may_now.eq(~(engine.is_limited >> at)[0] | ~wait[-1]),
    ]
    engine.sync += [
        to_scan.eq(left & ~(1 << lowest)),
        at.eq(lowest),
        is_last.eq(left == 0),
    ]
    fsm.act("SCAN",
        engine.looked.eq(at),
        If(is_last,
            If(engine.scans_opportunity,
                NextState("PICK"),
            ).Else(
                NextState("DECIDE"),
            ),
        ).Elif(may_now,
            NextValue(engine.serves, 1),
            NextValue(engine.serve_time, engine.base),
            NextValue(engine.chosen, at),
            If(engine.scans_opportunity,
                NextValue(engine.number, at),
                NextState("SERVE"),
            ).Else(
                NextState("DECIDE"),
            ),
        ).Elif(~engine.scans_opportunity & (~engine.serves | sooner[-1]),
            NextValue(engine.serves, 1),
            NextValue(engine.serve_time, engine.may),
            NextValue(engine.chosen, at),
        )
    )

def add_decision(engine, safe):
    """Do what comes first; on a tie a switch, then a frame, a ghost, service."""
    fsm, switch = engine.fsm, engine.switch
    gap        = Signal(TIME_BITS)
    comes      = Signal() # First.
    event      = Signal(TIME_BITS)
    left       = Signal(TICKS_BITS)
    to_switch  = Signal(TICKS_BITS)
    is_event   = Signal()
    is_safe    = Signal()
    is_switch  = Signal()
    engine.comb += [
        gap.eq(engine.serve_time - engine.come_time),
        comes.eq(engine.comes & (~engine.serves | ~gap[-1])),
        event.eq(Mux(comes, engine.come_time, engine.serve_time)),
        is_event.eq(engine.comes | engine.serves),
        left.eq(event[FINE_BITS:] - safe),
        # What comes in the same tick as a frame that isn't here yet must wait for it.
        is_safe.eq(is_event & (left[-1] | (comes & ~engine.is_ghost))),
        to_switch.eq(Mux(is_safe, event[FINE_BITS:], safe) - switch.at),
        is_switch.eq(switch.pending["engine"] & ~to_switch[-1]),
    ]
    fsm.act("DECIDE",
        NextValue(engine.time, event),
        If(is_switch,
            switch.taken["engine"].eq(1),
            NextState("READ_LINK"),
        ).Elif(is_safe,
            If(comes,
                NextValue(engine.number, Mux(engine.is_ghost, engine.ghost.number, engine.arrivals.number)),
                NextState("ARRIVE"),
            ).Else(*by_trace(engine, [NextState("OPPORTUNITY")], [
                NextValue(engine.number, engine.chosen),
                NextState("SERVE"),
            ]))
        ).Else(
            NextState("PICK"),
        )
    )
