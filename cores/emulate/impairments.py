# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Draws the impairments of each frame before its queue, from the random state of its class: loss, duplicates, corruption, delay."""

from enum import IntEnum, auto

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.emulate.layouts import CLASS_BITS, TICKS_BITS, arrival_layout, impairment_layout
from liteprobe.cores.emulate.memories import ClassState, lut_ports
from liteprobe.cores.emulate.settings import field, word_address
from liteprobe.cores.formats.emulate import CLASS_FIELDS, CLASSES, DELAY_ENTRIES, NO_LIMIT, XORSHIFT64, ClassFlag
from liteprobe.cores.prbs import xorshift

ENTRY_BITS  = log2_int(DELAY_ENTRIES)
COUNT_BITS  = CLASS_FIELDS["pattern_count"].bits
START_BITS  = CLASS_FIELDS["pattern_start"].bits
NUMBER_BITS = 32 # Of a frame's number.
SHARE_BITS  = 5  # Of a bit in a word.

USERS      = ("impairments", "background")
STATE_BITS = 64

class_layout = [ # State of a class from frame to frame.
    ("number",   NUMBER_BITS), # Of the next frame.
    ("is_bad",   1),           # Gilbert-Elliott.
    ("quantile", ENTRY_BITS),  # Of the frame before.
    ("position", COUNT_BITS),  # In the pattern
    ("start",    START_BITS),  # that was this one,
    ("count",    COUNT_BITS),
    ("is_list",  1),
]

class Step(IntEnum):
    """Numbers the steps for a frame, a cycle each. The word that a step reads is there in the next one."""
    READ_FLAGS  = 0
    READ_CHANGE = auto()
    STATE       = auto()
    READ_LOSS   = auto()
    LOSS        = auto()
    DUPLICATE   = auto()
    CORRUPT     = auto()
    BIT         = auto()
    REORDER     = auto()
    REPEAT      = auto()
    QUANTILE    = auto()
    RED         = auto()
    PATTERN     = auto()
    PLACE       = auto()
    AIM         = auto()
    FETCH       = auto()
    LOOK        = auto()
    KEEP        = auto()

DRAWS = (Step.STATE, Step.LOSS, Step.DUPLICATE, Step.CORRUPT, Step.BIT, Step.REORDER, Step.REPEAT, Step.QUANTILE, Step.RED)

# Draws --------------------------------------------------------------------------------------------

def next_state(state):
    """Return the state of a class's generator after ``state``; the draw is its high half."""
    return xorshift(state, XORSHIFT64)

def happens(draw, share):
    """Return whether a share, in parts of 2^32 and all ones for 1, happens by a draw."""
    return (draw < share) | (share == NO_LIMIT)

# Class Generators ---------------------------------------------------------------------------------

class ClassGenerators(LiteXModule):
    """Keeps a generator of each class for each of two users; ``background`` goes before ``impairments``.

    Attributes
    ----------
    uses : Signal(), in
        ``background`` has this cycle; else ``impairments`` has.
    numbers : dict of Signal(3), in
        Of each user: its class.
    state : Signal(64), out
        Of whose cycle it is.
    draw : Signal(32), out
        What the step draws.
    steps, puts, seeds : dict of Signal(), Signal(), Signal(64), in
        Of each user, in its cycle: the generator takes a step; or its state becomes the seed.
    """
    def __init__(self):
        self.uses    = Signal()
        self.numbers = {user: Signal(CLASS_BITS, name=f"number_{user}") for user in USERS}
        self.state   = Signal(STATE_BITS)
        self.draw    = Signal(32)
        self.steps   = {user: Signal(name=f"steps_{user}") for user in USERS}
        self.puts    = {user: Signal(name=f"puts_{user}")  for user in USERS}
        self.seeds   = {user: Signal(STATE_BITS, name=f"seed_{user}") for user in USERS}

        # # #

        frames, background = USERS
        write, read = lut_ports(self, "generators", STATE_BITS, len(USERS)*CLASSES)
        following   = Signal(STATE_BITS)
        def of_user(signals):
            return Mux(self.uses, signals[background], signals[frames])
        self.comb += [
            read.adr.eq(Cat(of_user(self.numbers), self.uses)),
            self.state.eq(read.dat_r),
            following.eq(next_state(self.state)),
            self.draw.eq(following[32:]),
            write.adr.eq(read.adr),
            write.we.eq(of_user(self.steps) | of_user(self.puts)),
            write.dat_w.eq(Mux(of_user(self.puts), of_user(self.seeds), following)),
        ]

# Impairment Sampler -------------------------------------------------------------------------------

class ImpairmentSampler(LiteXModule):
    """Draws for each frame, in the order of arrivals, what its class's settings say.

    It takes 21 cycles a frame; three more for each entry of a list that is of a frame before.

    After a reset all states are those of the seeds.

    Parameters
    ----------
    settings : SettingsMemory
    switch : BankSwitch
    generators : ClassGenerators
        All as user ``impairments``.

    Attributes
    ----------
    safe : Signal(32), in
        Every frame that came before this tick has been given to ``sink``; the time of the frame that is there, a cycle later.
    sink : Endpoint(arrival_layout), in
    source : Endpoint(fate_layout), out

    Source: docs/design/emulator.md, "Frames".
    """
    def __init__(self, settings, switch, generators):
        self.safe   = Signal(TICKS_BITS)
        self.sink   = sink   = stream.Endpoint(arrival_layout)
        self.source = source = stream.Endpoint(impairment_layout)

        # # #

        self.settings   = settings
        self.generators = generators
        self.bank     = switch.banks["impairments"]
        self.data     = settings.values["impairments"]
        self.classes  = classes = ClassState(class_layout, "impairments")
        self.state     = classes.state
        self.put      = classes.put
        self.drawn    = Record(impairment_layout, reset_less=True)
        self.flags    = Signal(8, reset_less=True)
        self.step     = Signal(max=len(Step))
        self.draw     = generators.draw
        self.draws    = Signal() # In this step,
        self.waits    = Signal() # which is for the generators.
        self.looks_on = Signal() # For the frame's number in a list.
        self.does     = Signal() # What the step before drew happens.
        self.is_seed  = Signal()
        self.seed     = Signal(max=4*CLASSES) # Class, and what is done of it.
        self.add_reads()
        self.add_draws()
        self.add_delay()
        self.add_pattern()
        self.add_seeds()
        ahead     = Signal(TICKS_BITS)
        was_valid = Signal() # The frame was there before: ``safe`` is its time.
        self.sync += was_valid.eq(sink.valid & ~sink.ready)
        self.comb += ahead.eq(self.safe - switch.at)
        self.comb += [getattr(source, name).eq(getattr(self.drawn, name)) for name, _ in impairment_layout]
        self.comb += [getattr(source, name).eq(getattr(sink, name)) for name, _ in arrival_layout]
        self.fsm = fsm = FSM(reset_state="SEED")
        fsm.act("SEED",
            self.is_seed.eq(1),
            self.waits.eq(generators.uses),
            If(~self.waits,
                NextValue(self.seed, self.seed + 1),
                If(self.seed == 4*CLASSES - 1, NextState("WAIT")),
            ),
        )
        fsm.act("WAIT",
            If(switch.pending["impairments"] & ~ahead[-1],
                switch.taken["impairments"].eq(1),
            ).Elif(sink.valid & was_valid,
                NextState("DRAW"),
            )
        )
        fsm.act("DRAW",
            self.waits.eq(self.draws & generators.uses),
            If(~self.waits, NextValue(self.step, Mux(self.looks_on, Step.AIM, self.step + 1))),
            If(self.step == Step.KEEP,
                NextValue(self.step, 0),
                NextState("GIVE"),
            ),
        )
        fsm.act("GIVE",
            source.valid.eq(1),
            sink.ready.eq(source.ready),
            If(source.ready, NextState("WAIT")),
        )

    def add_reads(self):
        """Read a word in each step."""
        word = Signal(5)
        names = {
            Step.READ_FLAGS: "flags",
            Step.LOSS:       "duplicate",
            Step.DUPLICATE:  "corrupt",
            Step.BIT:        "reorder",
            Step.REORDER:    "delay_repeat",
            Step.REPEAT:     "delay",
            Step.QUANTILE:   "reorder_ticks",
            Step.RED:        "pattern_start",
        }
        def at(name):
            return word.eq(CLASS_FIELDS[name].word)
        cases = {int(step): at(name) for step, name in names.items()}
        cases[int(Step.READ_CHANGE)] = If(self.state.is_bad, at("loss_leave")).Else(at("loss_enter"))
        cases[int(Step.READ_LOSS)]   = If(self.state.is_bad ^ self.does, at("loss_bad")).Else(at("loss_good"))
        self.comb += [
            Case(self.step, cases),
            self.settings.words["impairments"].eq(word_address(self.bank, word, self.sink.number)),
            If(self.is_seed,
                If(self.seed[:2] == 0, at("frame_seed_low")).Else(at("frame_seed_high")),
                self.settings.words["impairments"].eq(word_address(self.bank, word, self.seed[2:])),
            ),
        ]
        self.sync += If(self.step == Step.READ_CHANGE, self.flags.eq(field(CLASS_FIELDS, "flags", self.data)))

    def add_draws(self):
        """Draw in the steps of ``DRAWS``, and see in the step after each what happens."""
        state, drawn = self.state, self.drawn
        does      = self.does
        draw      = Signal(32, reset_less=True) # Of the step before,
        share     = Signal(32, reset_less=True) # and what it is compared with.
        product   = Signal(32 + len(self.sink.length), reset_less=True)
        self.comb += [
            self.draws.eq(Reduce("OR", [self.step == step for step in DRAWS])),
            self.settings.holds.eq(self.waits),
            self.generators.numbers["impairments"].eq(self.classes.number),
            self.generators.steps["impairments"].eq(self.draws),
            does.eq(happens(draw, share)),
            drawn.bit.eq(product[32 - 3:]),
        ]
        self.comb += [
            *self.put("is_bad", state.is_bad ^ does, self.step == Step.READ_LOSS),
            *self.put("number", state.number + 1, self.step == Step.KEEP),
        ]
        self.sync += [
            If(~self.waits,
                draw.eq(self.draw),
                share.eq(self.data),
            ),
            Case(self.step, {
                int(Step.LOSS + 1):      drawn.lost.eq(does),
                int(Step.DUPLICATE + 1): drawn.twice.eq(does),
                int(Step.CORRUPT + 1):   drawn.corrupt.eq(does),
                int(Step.BIT + 1):       product.eq(draw*self.sink.length),
                int(Step.REORDER + 1):   drawn.held.eq(does),
                int(Step.RED):           drawn.red.eq(self.draw),
            }),
        ]
        self.comb += [
            drawn.discarded.eq((self.flags & int(ClassFlag.DISCARD)) != 0),
            drawn.lost_late.eq((self.flags & int(ClassFlag.LOSS_LATE)) != 0),
            drawn.mended.eq((self.flags & int(ClassFlag.MENDED)) != 0),
        ]

    def add_delay(self):
        """Sum up the delay."""
        state, drawn = self.state, self.drawn
        has_jitter  = Signal()
        self.comb += [
            has_jitter.eq((self.flags & int(ClassFlag.JITTER)) != 0),
            self.settings.quantile.eq(state.quantile),
        ]
        self.comb += self.put("quantile", self.draw[-ENTRY_BITS:], (self.step == Step.QUANTILE) & ~self.does & ~self.waits)
        self.sync += [
            If(self.step == Step.QUANTILE, drawn.delay.eq(field(CLASS_FIELDS, "delay", self.data))),
            If((self.step == Step.RED) & drawn.held & ~self.waits,
                drawn.delay.eq(drawn.delay + field(CLASS_FIELDS, "reorder_ticks", self.data)),
            ),
            If((self.step == Step.PATTERN) & has_jitter, drawn.delay.eq(drawn.delay + self.settings.delay)),
        ]

    def add_pattern(self):
        """Look the frame up in the pattern of its class."""
        state   = self.state
        start   = field(CLASS_FIELDS, "pattern_start", self.data)
        count   = field(CLASS_FIELDS, "pattern_count", self.data)
        is_list = Signal()
        is_same = Signal()
        entry   = Signal(32, reset_less=True)
        is_hit  = Signal()
        is_in   = Signal() # There is something at the position.
        is_past = Signal() # The entry of a list is of a frame that came before.
        self.comb += [
            is_list.eq((self.flags & int(ClassFlag.LIST)) != 0),
            is_same.eq((state.start == start) & (state.count == count) & (state.is_list == is_list)),
            self.settings.patterns["impairments"].eq(state.start + Mux(state.is_list, state.position, state.position[SHARE_BITS:])),
            is_in.eq(state.position < state.count),
            is_hit.eq(Mux(state.is_list, entry == state.number, (entry >> state.position[:SHARE_BITS])[0])),
            is_past.eq(state.is_list & is_in & (entry < state.number)),
            self.looks_on.eq((self.step == Step.LOOK) & is_past),
        ]
        moves = (is_in & (is_hit | is_past | ~state.is_list)) & (self.step == Step.LOOK)
        # Bits begin anew after the last one.
        wraps = (self.step == Step.PLACE) & ~is_in & ~state.is_list
        now   = self.step == Step.PATTERN
        self.comb += [
            *self.put("start", start, now),
            *self.put("count", count, now),
            *self.put("is_list", is_list, now),
            *self.put("position", Mux(self.step == Step.LOOK, state.position + 1, 0), moves | wraps | (now & ~is_same)),
        ]
        self.sync += [
            entry.eq(self.settings.pattern_values["impairments"]),
            If((self.step == Step.LOOK) & is_in & is_hit, self.drawn.lost.eq(1)),
        ]

    def add_seeds(self):
        """Begin each class with its seed, all else 0; no step changes anything meanwhile."""
        low = Signal(32, reset_less=True)
        self.comb += [
            *[read.eq(self.sink.number) for read in self.classes.reads.values()],
            self.classes.number.eq(Mux(self.is_seed, self.seed[2:], self.sink.number)),
            self.generators.seeds["impairments"].eq(Cat(low, self.data)),
            # The last statement holds.
            If(self.is_seed & (self.seed[:2] == 2),
                self.generators.puts["impairments"].eq(1),
                *[self.put(name, 0) for name, _ in class_layout],
            ),
        ]
        self.sync += If(self.is_seed & (self.seed[:2] == 1), low.eq(self.data))
