# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a ghost draws, and how long after the ghost before it it comes."""

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.draws import happens
from liteprobe.cores.formats.emulate import FINE_BITS, Background
from liteprobe.cores.transmit.sources.streams.exponential import ExponentialInterval

MEAN_BITS = 5 # Of a fraction of a tick, as ExponentialInterval has it.

def add_draws(ghosts):
    """Let BackgroundTraffic draw for a ghost, while what it takes is read."""
    fsm = ghosts.fsm
    ghosts.u      = Signal(32, reset_less=True)
    ghosts.ends   = Signal(reset_less=True) # By the draw, the burst is over.
    ghosts.burst  = Signal(32, reset_less=True)
    ghosts.ticks  = Signal(32, reset_less=True)
    ghosts.rest   = Signal(FINE_BITS, reset_less=True)
    generators   = ghosts.generators
    draw         = generators.draw
    step         = [generators.uses.eq(1), generators.steps["ghosts"].eq(1)]
    fsm.act("READ",
        ghosts.at("background"),
        NextState("READ_BURST"),
    )
    fsm.act("READ_BURST",
        ghosts.at("ghost_burst"),
        NextValue(ghosts.kind, ghosts.of("background")),
        NextValue(ghosts.u, Mux(draw == 0, 1, draw)),
        *step,
        NextState("READ_TICKS"),
    )
    fsm.act("READ_TICKS",
        ghosts.at("ghost_ticks"),
        NextValue(ghosts.burst, ghosts.data),
        NextValue(ghosts.ends, happens(draw, ghosts.data)),
        *step,
        NextState("READ_REST"),
    )
    fsm.act("READ_REST",
        ghosts.at("ghost_fraction"),
        NextValue(ghosts.ticks, ghosts.data),
        *step,
        NextState("READ_PAUSE"),
    )
    fsm.act("READ_PAUSE",
        ghosts.at("ghost_pause"),
        NextValue(ghosts.rest, ghosts.of("ghost_fraction")),
        ghosts.put("length", ghosts.of("ghost_length")),
        NextState("CHOOSE"),
    )

def add_interval(ghosts):
    """Let it work out how long after the ghost before it this one comes."""
    fsm, kept = ghosts.fsm, ghosts.kept
    ghosts.exponential = exponential = ExponentialInterval()
    is_over = Signal()
    waited  = Cat(ghosts.rest, ghosts.ticks) # First the interval of the settings, then what comes of it.
    at_none = [NextValue(waited, 0), NextState("ADD")]
    at_once = NextState("ADD")
    paused  = NextValue(waited, Cat(Constant(0, FINE_BITS), ghosts.data))
    drawn   = NextState("DRAW")
    ghosts.comb += [
        is_over.eq(kept.count >= Mux(ghosts.burst == 0, 1, ghosts.burst)),
        exponential.u.eq(ghosts.u),
        exponential.mean.eq(Cat(ghosts.rest[FINE_BITS - MEAN_BITS:], ghosts.ticks)),
    ]
    fsm.act("CHOOSE",
        ghosts.at("ghost_start"),
        Case(ghosts.kind, {
            int(Background.CONSTANT): If(ghosts.is_first, at_none).Else(at_once),
            int(Background.EXPONENTIAL): drawn,
            int(Background.ON_OFF): [
                ghosts.put("count", Mux(is_over | ghosts.is_first, 1, kept.count + 1)),
                at_once,
                If(is_over, paused),
                If(ghosts.is_first, at_none),
            ],
            int(Background.RANDOM_ON_OFF): [
                at_once,
                If(ghosts.ends, paused, drawn),
                If(ghosts.is_first, at_none),
            ],
            "default": NextState("PATTERN"),
        }),
    )
    fsm.act("DRAW",
        exponential.start.eq(1),
        NextState("DRAWN"),
    )
    fsm.act("DRAWN",
        If(exponential.is_ready,
            NextValue(waited, Cat(exponential.fraction[32 - FINE_BITS:], exponential.ticks)),
            NextState("ADD"),
        ),
    )
    fsm.act("ADD",
        ghosts.put("time", kept.time + waited),
        If(ghosts.is_seeding | ghosts.is_switching,
            NextState("ADVANCE"),
        ).Else(
            NextState("FIND"),
        )
    )
    add_pattern(ghosts, waited)

def add_pattern(ghosts, waited):
    """Take time and length from the pattern memory."""
    fsm, kept = ghosts.fsm, ghosts.kept
    place = Signal(max=512, reset_less=True)
    start, count = ghosts.of("ghost_start"), ghosts.of("ghost_count")
    ghosts.comb += ghosts.settings.patterns["ghosts"].eq(place)
    fsm.act("PATTERN",
        NextValue(place, start + Cat(Constant(0, 1), Mux(kept.count < count, kept.count, 0))),
        ghosts.put("count", Mux(kept.count < count, kept.count, 0) + 1),
        NextState("PATTERN_TICKS"),
    )
    fsm.act("PATTERN_TICKS",
        NextValue(place, place + 1),
        NextState("PATTERN_LENGTH"),
    )
    fsm.act("PATTERN_LENGTH",
        NextValue(waited, Cat(Constant(0, FINE_BITS), ghosts.settings.pattern_values["ghosts"])),
        NextState("PATTERN_END"),
    )
    fsm.act("PATTERN_END",
        ghosts.put("length", ghosts.settings.pattern_values["ghosts"]),
        NextState("ADD"),
    )
