# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""How long the link takes for a frame, and when it leaves then."""

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.layouts import DAMAGE_FIELDS, DUE_BITS, LENGTH_BITS
from liteprobe.cores.formats.emulate import FINE_BITS, REORDER_LANE, TIME_BITS, Fate

OCTETS_BITS = LENGTH_BITS + 1
BURST_BITS  = 45

def add_service(engine):
    """Let a QueueEngine serve the head of the queue ``number``, at the time ``time``.

    States: SERVE -> HEAD -> OCTETS_OF -> TOKENS -> BURST -> BUCKET -> LEAVE -> DEPART (or TRANSIT) -> PICK.
    """
    fsm, waiting = engine.fsm, engine.waiting
    frame    = Record(waiting.entry.layout, reset_less=True) # That is served,
    of_frame = Signal.like(engine.number)                    # of this class.
    octets   = Signal(OCTETS_BITS, reset_less=True)          # That it takes of the link.
    overhead = Signal(8, reset_less=True)
    factor   = Signal(32, reset_less=True)
    product  = Signal(OCTETS_BITS + 32, reset_less=True)
    tokens   = Signal(OCTETS_BITS + 32, reset_less=True)
    burst    = Signal(BURST_BITS, reset_less=True)
    is_limited = Signal(reset_less=True)
    bucket   = Signal(TIME_BITS, reset_less=True) # When it would be full, less the burst.
    ends     = Signal(TIME_BITS, reset_less=True)
    missing  = Signal(OCTETS_BITS) # Octets that a frame in transit lacks,
    engine.transits = Signal()     # where one is.
    engine.sync += product.eq(octets*factor)
    fsm.act("SERVE",
        engine.read("overhead"),
        NextState("HEAD"),
    )
    fsm.act("HEAD",
        engine.read("token_octet"),
        NextValue(overhead, engine.of("overhead")),
        NextValue(burst[32:], engine.of("token_burst_high")),
        NextState("OCTETS_OF"),
    )
    fsm.act("OCTETS_OF",
        engine.read_link("octet"),
        NextValue(frame.raw_bits(), waiting.head.raw_bits()),
        NextValue(of_frame, engine.number),
        NextValue(octets, waiting.head.length + overhead),
        NextValue(factor, engine.data),
        NextValue(is_limited, engine.data != 0),
        waiting.drop.eq(1),
        NextState("TOKENS"),
    )
    fsm.act("TOKENS",
        engine.read("token_burst_low"),
        NextValue(factor, engine.data),
        NextState("BURST"),
    )
    add_bucket(engine, product, tokens, burst, bucket, ends)
    add_leave(engine, frame, of_frame, is_limited, bucket + tokens, by_trace(engine, [
        NextValue(engine.transits, 1),
        NextValue(missing, octets),
        NextState("TRANSIT"),
    ], [
        NextValue(engine.base, ends),
        NextState("DEPART"),
    ]))
    add_departure(engine, frame, of_frame, ends)
    if engine.with_trace:
        add_trace(engine, octets, ends, missing)

def by_trace(engine, statements, others):
    """Return what is done on a link with a trace, and on one without."""
    return [If(engine.trace, *statements).Else(*others)] if engine.with_trace else others

def add_bucket(engine, product, tokens, burst, bucket, ends):
    """Work out when the link is free again, and how full the bucket was; count the turns."""
    fsm = engine.fsm
    empty    = Signal(TIME_BITS) # From when on an idle class would have all of its burst now.
    is_ahead = Signal(TIME_BITS)
    engine.comb += [
        empty.eq(engine.time - burst),
        is_ahead.eq(engine.may - empty),
    ]
    fsm.act("BURST",
        engine.read("service_weight"),
        NextValue(burst[:32], engine.data),
        NextValue(tokens, product),
        NextState("BUCKET"),
    )
    was_limited = Signal()
    engine.comb += was_limited.eq((engine.is_limited >> engine.number)[0])
    fsm.act("BUCKET",
        engine.looked.eq(engine.number),
        # The link's product is there.
        If(~engine.trace, NextValue(ends, engine.time + product)),
        NextValue(bucket, Mux(was_limited & ~is_ahead[-1], engine.may, empty)),
        If((engine.turn == engine.number) & (engine.rest != 0),
            NextValue(engine.rest, engine.rest - 1),
        ).Else(
            NextValue(engine.turn, engine.number),
            NextValue(engine.rest, engine.of("service_weight") - 1),
        ),
        NextState("LEAVE"),
    )

def add_leave(engine, frame, of_frame, is_limited, may_next, follow):
    """Take a frame out of its queue and count it; then do what is to follow."""
    fsm, queue, after = engine.fsm, engine.queue, engine.after
    counted = engine.counted
    fsm.act("LEAVE",
        engine.may_next.eq(may_next),
        after.mean.eq(queue.mean),
        after.frames.eq(queue.frames - 1),
        after.octets.eq(queue.octets - frame.length),
        counted.valid.eq(1),
        counted.number.eq(of_frame),
        counted.fate.eq(Mux(frame.lost & ~frame.ghost, Fate.LOST, Fate.SENT)),
        If(counted.ready,
            engine.limits.eq(is_limited),
            engine.frees.eq(~is_limited),
            engine.writes.eq(1),
            *follow,
        ),
    )

def add_departure(engine, frame, of_frame, ends):
    """Hand a frame that was served to its lane; a ghost goes, and what is lost."""
    fsm, served = engine.fsm, engine.served
    engine.comb += [
        *[getattr(served, name).eq(getattr(frame, name)) for name in (*DAMAGE_FIELDS, "length", "arrival")],
        served.due.eq(ends[FINE_BITS:FINE_BITS + DUE_BITS] + frame.delay),
        served.lane.eq(Mux(frame.held, REORDER_LANE, of_frame)),
        served.number.eq(of_frame),
    ]
    fsm.act("DEPART",
        served.valid.eq(~frame.ghost & ~frame.lost),
        If(served.ready | ~served.valid,
            *by_trace(engine, [NextState("TRANSIT")], [NextState("PICK")]),
        ),
    )

def add_trace(engine, octets, ends, missing):
    """Serve by the opportunities of a trace."""
    fsm  = engine.fsm
    left = Signal(32) # Octets of the opportunity.
    fsm.act("OPPORTUNITY",
        NextValue(left, engine.octets_next),
        NextValue(ends, engine.time),
        NextValue(engine.base, engine.time),
        engine.opportunities.ready.eq(1),
        If(engine.opportunities.valid,
            NextValue(engine.next_opportunity[FINE_BITS:], engine.next_opportunity[FINE_BITS:] + engine.opportunities.ticks),
            NextValue(engine.octets_next, engine.opportunities.octets),
            NextState("TRANSIT"),
        ),
    )
    fsm.act("TRANSIT",
        If(engine.transits,
            If(missing <= left,
                NextValue(left, left - missing),
                NextValue(engine.transits, 0),
                NextState("DEPART"),
            ).Else(
                NextValue(missing, missing - left),
                NextState("PICK"),
            ),
        ).Elif((left == 0) | ~engine.is_any,
            NextState("PICK"),
        ).Else(
            NextValue(engine.scans_opportunity, 1),
            NextState("SCAN"),
        ),
    )
