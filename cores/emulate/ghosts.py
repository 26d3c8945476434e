# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Background traffic: frames that take a queue's space and the link's time, and never were."""

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.draws import STATE_BITS, field, happens, word_address, xorshift64
from liteprobe.cores.emulate.layouts import CLASS_BITS, LENGTH_BITS, TICKS_BITS, ghost_layout
from liteprobe.cores.formats.emulate import CLASS_FIELDS, CLASSES, FINE_BITS, TIME_BITS, Background
from liteprobe.cores.transmit.sources.exponential import ExponentialInterval

COUNT_BITS = 32
MEAN_BITS  = 5 # Of a fraction of a tick, as ExponentialInterval has it.

class_layout = [ # What is kept of a class from ghost to ghost.
    ("state", STATE_BITS), # Of its draws.
    ("count", COUNT_BITS), # Ghosts of the burst, or position in the pattern.
]

next_layout = [ # The ghost that comes next.
    ("time",   TIME_BITS), # Fine.
    ("length", LENGTH_BITS),
    ("red",    32),
]

# Background Traffic -------------------------------------------------------------------------------

class BackgroundTraffic(LiteXModule):
    """Gives the ghosts of all classes in the order of their times, of one time those of the lowest class first.

    After a reset all begins anew with the settings and seeds of bank 0. At most 45 cycles a ghost.

    Parameters
    ----------
    settings : SettingsMemory
    switch : BankSwitch
        Both as user ``ghosts``.

    Attributes
    ----------
    safe : Signal(32), in
        Nothing that is taken later has a time before this tick.
    valid, ready : Signal(), out and in
        A ghost is there, or is taken. One that is there is taken back where the settings change before it.
    ghost : Record(ghost_layout), out
    is_known : Signal(), out
        ``valid`` and ``ghost`` are of the ghost that comes next, if any comes at all; low while it is worked out.

    Source: docs/design/emulator.md, "Ghosts".
    """
    def __init__(self, settings, switch):
        self.safe     = Signal(TICKS_BITS)
        self.valid    = Signal()
        self.ready    = Signal()
        self.ghost    = Record(ghost_layout)
        self.is_known = Signal()

        # # #

        self.settings = settings
        self.switch   = switch
        self.bank     = switch.banks["ghosts"]
        self.data     = settings.values["ghosts"]
        self.number   = Signal(CLASS_BITS)  # Of the class at hand.
        self.live     = Signal(CLASSES)     # Classes with a ghost to come.
        self.kept     = Record(class_layout, reset_less=True)
        self.next     = Record(next_layout, reset_less=True)
        self.kind     = Signal(3, reset_less=True)
        self.is_first = Signal()            # The ghost at hand is the first of its kind.
        self.word     = Signal(5)
        self.fsm      = FSM(reset_state="SEED")
        self.add_memories()
        self.add_search()
        self.add_seeds()
        self.add_switch()
        self.add_draws()
        self.add_interval()
        self.comb += settings.words["ghosts"].eq(word_address(self.bank ^ self.looks_back, self.word, self.number))

    def at(self, name):
        """Return the statement that reads the word of a field."""
        return self.word.eq(CLASS_FIELDS[name].word)

    def of(self, name):
        """Return a field of the word that was read."""
        return field(CLASS_FIELDS, name, self.data)

    def add_memories(self):
        """Keep what is known of the classes, and of the ghost of each that comes next."""
        # Else LiteX gives the memories a page of the CSR bus.
        self.autocsr_exclude = {"memory", "nexts"}
        self.keeps  = Signal()
        self.memory = memory = Memory(len(self.kept.raw_bits()), CLASSES, name="ghosts")
        self.nexts  = nexts  = Memory(len(self.next.raw_bits()), CLASSES, name="nexts")
        read,  write  = memory.get_port(async_read=True), memory.get_port(write_capable=True)
        look,  put    = nexts.get_port(async_read=True), nexts.get_port(write_capable=True)
        self.specials += memory, nexts, read, write, look, put
        self.found  = Record(class_layout) # Of the class at hand, as it was kept.
        self.coming = Record(next_layout)
        self.looked = Signal(CLASS_BITS)   # Whose ``coming`` is.
        self.comb += [
            read.adr.eq(self.number),
            write.adr.eq(self.number),
            write.dat_w.eq(self.kept.raw_bits()),
            write.we.eq(self.keeps),
            self.found.raw_bits().eq(read.dat_r),
            look.adr.eq(self.looked),
            put.adr.eq(self.number),
            put.dat_w.eq(self.next.raw_bits()),
            put.we.eq(self.keeps),
            self.coming.raw_bits().eq(look.dat_r),
        ]

    def add_search(self):
        """Look at the classes from the lowest on, and show the first ghost."""
        fsm, ghost = self.fsm, self.ghost
        left   = Signal(CLASSES) # Classes to look at.
        first  = Record(ghost_layout, reset_less=True)
        is_any = Signal()
        lead   = Signal(TIME_BITS)
        lowest = Signal(CLASS_BITS)
        after  = Signal(TICKS_BITS)  # Of the switch: the ghost, or, where there is none, what can come.
        self.comb += [
            *[If(left[n], lowest.eq(n)) for n in reversed(range(CLASSES))],
            lead.eq(self.coming.time - first.time),
            ghost.eq(first),
            after.eq(Mux(is_any, first.time[FINE_BITS:], self.safe) - self.switch.at),
        ]
        self.is_switching = Signal()
        fsm.act("FIND",
            NextValue(left, self.live),
            NextValue(is_any, 0),
            NextState("LOOK"),
        )
        fsm.act("LOOK",
            self.looked.eq(lowest),
            If(left == 0,
                NextState("SHOW"),
            ).Else(
                If(~is_any | lead[-1],
                    NextValue(is_any, 1),
                    NextValue(first.time, self.coming.time),
                    NextValue(first.length, self.coming.length),
                    NextValue(first.red, self.coming.red),
                    NextValue(first.number, lowest),
                ),
                NextValue(left, left & (left - 1)),
            )
        )
        fsm.act("SHOW",
            If(self.switch.pending["ghosts"] & ~after[-1],
                NextValue(self.number, 0),
                NextState("CHANGE"),
            ).Else(
                self.is_known.eq(1),
                self.valid.eq(is_any),
                If(is_any & self.ready,
                    NextValue(self.number, first.number),
                    NextValue(self.next.time, first.time),
                    NextValue(self.is_first, 0),
                    NextState("READ"),
                ),
            )
        )

    def add_seeds(self):
        """Begin each class: seed, kind of background, its first ghost."""
        fsm = self.fsm
        self.is_seeding = Signal(reset=1)
        fsm.act("SEED",
            self.at("ghost_seed_low"),
            NextState("SEED_LOW"),
        )
        fsm.act("SEED_LOW",
            self.at("ghost_seed_high"),
            NextValue(self.kept.state[:32], self.data),
            NextState("SEED_HIGH"),
        )
        fsm.act("SEED_HIGH",
            self.at("background"),
            NextValue(self.kept.state[32:], self.data),
            NextValue(self.next.time, 0),
            NextState("BEGIN"),
        )
        # From here on for a change of kind, too.
        fsm.act("BEGIN",
            self.at("ghost_phase"),
            NextValue(self.is_first, 1),
            NextValue(self.kept.count, 0),
            NextState("PHASE"),
            If(self.of("background") == Background.NONE,
                self.keeps.eq(1),
                *[If(self.number == n, NextValue(self.live[n], 0)) for n in range(CLASSES)],
                NextState("ADVANCE"),
            ),
        )
        fsm.act("PHASE",
            NextValue(self.next.time[FINE_BITS:], self.next.time[FINE_BITS:] + self.data),
            *[If(self.number == n, NextValue(self.live[n], 1)) for n in range(CLASSES)],
            NextState("READ"),
        )
        fsm.act("ADVANCE",
            NextValue(self.number, self.number + 1),
            If(self.number == CLASSES - 1,
                NextValue(self.is_seeding, 0),
                NextValue(self.is_switching, 0),
                NextState("FIND"),
            ).Elif(self.is_seeding,
                NextState("SEED"),
            ).Else(
                NextState("CHANGE"),
            )
        )

    def add_switch(self):
        """Go over to the other bank: a class whose kind of background changes begins anew, others go on."""
        fsm, switch = self.fsm, self.switch
        before = Signal(3, reset_less=True)
        self.looks_back = Signal() # Read what held before the switch.
        fsm.act("CHANGE",
            If(~self.is_switching, switch.taken["ghosts"].eq(1)),
            NextValue(self.is_switching, 1),
            self.looks_back.eq(self.is_switching),
            self.at("background"),
            NextState("CHANGE_OLD"),
        )
        fsm.act("CHANGE_OLD",
            self.at("background"),
            NextValue(before, self.of("background")),
            NextState("CHANGE_NEW"),
        )
        fsm.act("CHANGE_NEW",
            self.at("background"),
            NextValue(self.kept.raw_bits(), self.found.raw_bits()),
            NextValue(self.next.time, Cat(Constant(0, FINE_BITS), switch.at)),
            If(self.of("background") == before,
                NextState("ADVANCE"),
            ).Else(
                NextState("BEGIN"),
            )
        )

    def add_draws(self):
        """Draw for a ghost, while what it takes is read."""
        fsm = self.fsm
        following = Signal(STATE_BITS)
        draw      = Signal(32)
        self.u      = Signal(32, reset_less=True)
        self.ends   = Signal(reset_less=True) # By the draw, the burst is over.
        self.burst  = Signal(32, reset_less=True)
        self.ticks  = Signal(32, reset_less=True)
        self.rest   = Signal(FINE_BITS, reset_less=True)
        step        = NextValue(self.kept.state, following)
        self.comb += [
            following.eq(xorshift64(self.kept.state)),
            draw.eq(following[32:]),
        ]
        fsm.act("READ",
            self.at("background"),
            If(~self.is_first, NextValue(self.kept.raw_bits(), self.found.raw_bits())),
            NextState("READ_BURST"),
        )
        fsm.act("READ_BURST",
            self.at("ghost_burst"),
            NextValue(self.kind, self.of("background")),
            NextValue(self.u, Mux(draw == 0, 1, draw)),
            step,
            NextState("READ_TICKS"),
        )
        fsm.act("READ_TICKS",
            self.at("ghost_ticks"),
            NextValue(self.burst, self.data),
            NextValue(self.ends, happens(draw, self.data)),
            step,
            NextState("READ_REST"),
        )
        fsm.act("READ_REST",
            self.at("ghost_fraction"),
            NextValue(self.ticks, self.data),
            NextValue(self.next.red, draw),
            step,
            NextState("READ_PAUSE"),
        )
        fsm.act("READ_PAUSE",
            self.at("ghost_pause"),
            NextValue(self.rest, self.of("ghost_fraction")),
            NextValue(self.next.length, self.of("ghost_length")),
            NextState("CHOOSE"),
        )

    def add_interval(self):
        """Work out how long after the ghost before it this one comes."""
        fsm, kept = self.fsm, self.kept
        self.exponential = exponential = ExponentialInterval()
        is_over = Signal()
        mean    = Signal(32, reset_less=True)
        waited  = Signal(32 + FINE_BITS, reset_less=True)
        at_none = [NextValue(waited, 0), NextState("ADD")]
        at_once = [NextValue(waited, Cat(self.rest, self.ticks)), NextState("ADD")]
        pause   = Signal(32)
        drawn   = NextState("DRAW")
        place   = Signal(max=512, reset_less=True)
        start, count = self.of("ghost_start"), self.of("ghost_count")
        self.comb += [
            pause.eq(self.data),
            is_over.eq(kept.count >= Mux(self.burst == 0, 1, self.burst)),
            exponential.u.eq(self.u),
            exponential.mean.eq(mean),
            self.settings.patterns["ghosts"].eq(place),
        ]
        fsm.act("CHOOSE",
            self.at("ghost_start"),
            NextValue(mean, Cat(self.rest[FINE_BITS - MEAN_BITS:], self.ticks)),
            Case(self.kind, {
                int(Background.CONSTANT): If(self.is_first, at_none).Else(at_once),
                int(Background.EXPONENTIAL): drawn,
                int(Background.ON_OFF): [
                    NextValue(kept.count, Mux(is_over, 1, kept.count + 1)),
                    at_once,
                    If(is_over, NextValue(waited, Cat(Constant(0, FINE_BITS), pause))),
                    If(self.is_first, at_none, NextValue(kept.count, 1)),
                ],
                int(Background.RANDOM_ON_OFF): [
                    at_once,
                    If(self.ends, NextValue(mean, Cat(Constant(0, MEAN_BITS), pause)), drawn),
                    If(self.is_first, at_none),
                ],
                "default": NextState("PATTERN"),
            }),
        )
        fsm.act("DRAW",
            exponential.start.eq(1),
            NextState("DRAWN"),
        )
        fsm.act("DRAWN",
            NextValue(waited, Cat(exponential.fraction[32 - FINE_BITS:], exponential.ticks)),
            If(exponential.is_ready, NextState("ADD")),
        )
        fsm.act("PATTERN",
            NextValue(place, start + Cat(Constant(0, 1), Mux(kept.count < count, kept.count, 0))),
            NextValue(kept.count, Mux(kept.count < count, kept.count, 0) + 1),
            NextState("PATTERN_TICKS"),
        )
        fsm.act("PATTERN_TICKS",
            NextValue(place, place + 1),
            NextState("PATTERN_LENGTH"),
        )
        fsm.act("PATTERN_LENGTH",
            NextValue(waited, Cat(Constant(0, FINE_BITS), self.settings.pattern_values["ghosts"])),
            NextState("PATTERN_END"),
        )
        fsm.act("PATTERN_END",
            NextValue(self.next.length, self.settings.pattern_values["ghosts"]),
            NextState("ADD"),
        )
        fsm.act("ADD",
            NextValue(self.next.time, self.next.time + waited),
            NextState("KEEP"),
        )
        fsm.act("KEEP",
            self.keeps.eq(1),
            If(self.is_seeding | self.is_switching,
                NextState("ADVANCE"),
            ).Else(
                NextState("FIND"),
            )
        )
