# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Makes background traffic: frames that take a queue's space and the link's time, and leave nowhere."""

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.impairments import happens
from liteprobe.cores.emulate.layouts import CLASS_BITS, LENGTH_BITS, TICKS_BITS, background_layout
from liteprobe.cores.emulate.memories import ClassState
from liteprobe.cores.emulate.settings import field, word_address
from liteprobe.cores.formats.emulate import CLASS_FIELDS, CLASSES, FINE_BITS, TIME_BITS, BackgroundKind
from liteprobe.cores.transmit.sources.streams.exponential import ExponentialInterval

COUNT_BITS = 32
MEAN_BITS  = 5 # Of a fraction of a tick, as ExponentialInterval has it.

class_layout = [ # State of a class from frame to frame.
    ("count",  COUNT_BITS), # Background frames of the burst, or position in the pattern.
    ("time",   TIME_BITS),  # Of the background frame that comes next, fine;
    ("length", LENGTH_BITS),
]

class BackgroundTraffic(LiteXModule):
    """Gives the background frames of all classes in the order of their times, of one time those of the lowest class first.

    After a reset all begins anew with the settings and seeds of bank 0. At most 36 cycles a background frame.

    Parameters
    ----------
    settings : SettingsMemory
    switch : BankSwitch
    generators : ClassGenerators
        All as user ``background``.

    Attributes
    ----------
    safe : Signal(32), in
        Nothing that is taken later has a time before this tick.
    valid, ready : Signal(), out and in
        A background frame is there, or is taken. One that is there is taken back where the settings change before it.
    frame : Record(background_layout), out
    is_known : Signal(), out
        ``valid`` and ``frame`` are of the background frame that comes next, if any comes at all; low while it is worked out.

    Source: docs/design/emulator.md, "Background frames".
    """
    def __init__(self, settings, switch, generators):
        self.safe     = Signal(TICKS_BITS)
        self.valid    = Signal()
        self.ready    = Signal()
        self.frame    = Record(background_layout)
        self.is_known = Signal()

        # # #

        self.settings   = settings
        self.generators = generators
        self.switch   = switch
        self.bank     = switch.banks["background"]
        self.data     = settings.values["background"]
        self.number   = Signal(CLASS_BITS)  # Of the class at hand.
        self.live     = Signal(CLASSES)     # Classes with a background frame to come.
        self.looks    = Signal()            # At another class:
        self.looked   = Signal(CLASS_BITS)  # whose background frame is searched for the first one.
        self.classes  = classes = ClassState(class_layout, "background")
        self.state     = classes.state
        self.put      = classes.put
        self.kind     = Signal(3, reset_less=True)
        self.is_first = Signal()            # The background frame at hand is the first of its kind.
        self.word     = Signal(5)
        self.fsm      = FSM(reset_state="SEED")
        self.add_search()
        self.add_seeds()
        self.add_switch()
        self.add_draws()
        self.add_interval()
        self.comb += [
            settings.words["background"].eq(word_address(self.bank ^ self.looks_back, self.word, self.number)),
            classes.number.eq(self.number),
            generators.numbers["background"].eq(Mux(self.looks, self.looked, self.number)),
            # No search is for this one.
            *[read.eq(self.number if name == "count" else Mux(self.looks, self.looked, self.number))
                for name, read in classes.reads.items()],
        ]

    def at(self, name):
        """Return the statement that reads the word of a field."""
        return self.word.eq(CLASS_FIELDS[name].word)

    def of(self, name):
        """Return a field of the word that was read."""
        return field(CLASS_FIELDS, name, self.data)

    def add_search(self):
        """Look at the classes from the lowest on, and show the first background frame."""
        fsm, frame = self.fsm, self.frame
        to_look = Signal(CLASSES)    # Classes to look at, but for
        at      = Signal(CLASS_BITS) # this one, which is looked at now.
        is_last = Signal()           # All were.
        left    = Signal(CLASSES)
        first   = Signal(TIME_BITS, reset_less=True)  # Of those that were looked at,
        chosen  = Signal(CLASS_BITS, reset_less=True) # whose it is.
        is_any  = Signal()
        length  = Signal(LENGTH_BITS, reset_less=True)
        red     = Signal(32, reset_less=True) # The last draw for it: its generator has stood since.
        lead    = Signal(TIME_BITS)
        lowest  = Signal(CLASS_BITS)
        after   = Signal(TICKS_BITS) # Of the switch: the background frame, or, where there is none, what can come.
        self.comb += [
            # The next one is found while one is looked at; the first one before.
            left.eq(Mux(fsm.ongoing("LOOK"), to_look, self.live)),
            *[If(left[n], lowest.eq(n)) for n in reversed(range(CLASSES))],
            lead.eq(self.state.time - first),
            frame.time.eq(first),
            frame.number.eq(chosen),
            frame.length.eq(length),
            frame.red.eq(red),
            after.eq(Mux(is_any, first[FINE_BITS:], self.safe) - self.switch.at),
        ]
        self.sync += [
            to_look.eq(left & (left - 1)),
            at.eq(lowest),
            is_last.eq(left == 0),
        ]
        self.is_switching = Signal()
        fsm.act("FIND", NextValue(is_any, 0), NextState("LOOK"))
        fsm.act("LOOK",
            self.looks.eq(1),
            self.looked.eq(at),
            If(is_last,
                NextState("SHOW"),
            ).Else(
                # In any case: so the generators needn't wait for the comparison.
                self.generators.uses.eq(1),
                If(~is_any | lead[-1],
                    NextValue(is_any, 1),
                    NextValue(red, self.generators.state[32:]),
                    NextValue(first, self.state.time),
                    NextValue(length, self.state.length),
                    NextValue(chosen, at),
                ),
            )
        )
        self.add_show(is_any, chosen, after)

    def add_show(self, is_any, chosen, after):
        """Show the background frame that was found, until it is taken or the settings switch."""
        fsm = self.fsm
        fsm.act("SHOW",
            self.looks.eq(1),
            self.looked.eq(chosen),
            If(self.switch.pending["background"] & ~after[-1],
                NextValue(self.number, 0),
                NextState("CHANGE"),
            ).Else(
                self.is_known.eq(1),
                self.valid.eq(is_any),
                If(is_any & self.ready,
                    NextValue(self.number, chosen),
                    NextValue(self.is_first, 0),
                    NextState("READ"),
                ),
            )
        )

    def add_seeds(self):
        """Begin each class: seed, kind of background, its first background frame."""
        fsm = self.fsm
        self.is_seeding = Signal(reset=1)
        low = Signal(32, reset_less=True)
        fsm.act("SEED", self.at("background_seed_low"), NextState("SEED_LOW"))
        fsm.act("SEED_LOW",
            self.at("background_seed_high"),
            NextValue(low, self.data),
            NextState("SEED_HIGH"),
        )
        fsm.act("SEED_HIGH",
            self.at("background"),
            self.generators.uses.eq(1),
            self.generators.puts["background"].eq(1),
            self.generators.seeds["background"].eq(Cat(low, self.data)),
            self.put("time", 0),
            NextState("BEGIN"),
        )
        # From here on for a change of kind, too.
        fsm.act("BEGIN",
            self.at("background_phase"),
            NextValue(self.is_first, 1),
            self.put("count", 0),
            NextState("PHASE"),
            If(self.of("background") == BackgroundKind.NONE,
                *[If(self.number == n, NextValue(self.live[n], 0)) for n in range(CLASSES)],
                NextState("ADVANCE"),
            ),
        )
        fsm.act("PHASE",
            self.put("time", Cat(self.state.time[:FINE_BITS], self.state.time[FINE_BITS:] + self.data)),
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
            If(~self.is_switching, switch.taken["background"].eq(1)),
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
            If(self.of("background") == before,
                NextState("ADVANCE"),
            ).Else(
                self.put("time", Cat(Constant(0, FINE_BITS), switch.at)),
                NextState("BEGIN"),
            )
        )

    def add_draws(self):
        """Draw for a background frame, while what it takes is read."""
        fsm = self.fsm
        self.u      = Signal(32, reset_less=True)
        self.ends   = Signal(reset_less=True) # By this draw, the burst is over.
        drawn       = Signal(32, reset_less=True)
        self.burst  = Signal(32, reset_less=True)
        self.ticks  = Signal(32, reset_less=True)
        self.rest   = Signal(FINE_BITS, reset_less=True)
        generators   = self.generators
        draw         = generators.draw
        step         = [generators.uses.eq(1), generators.steps["background"].eq(1)]
        fsm.act("READ", self.at("background"), NextState("READ_BURST"))
        fsm.act("READ_BURST",
            self.at("background_burst"),
            NextValue(self.kind, self.of("background")),
            NextValue(self.u, draw),
            *step,
            NextState("READ_TICKS"),
        )
        fsm.act("READ_TICKS",
            self.at("background_ticks"),
            NextValue(self.burst, self.data),
            NextValue(drawn, draw),
            *step,
            NextState("READ_REST"),
        )
        fsm.act("READ_REST",
            self.at("background_fraction"),
            NextValue(self.ticks, self.data),
            NextValue(self.ends, happens(drawn, self.burst)),
            *step,
            NextState("READ_PAUSE"),
        )
        fsm.act("READ_PAUSE",
            self.at("background_pause"),
            NextValue(self.rest, self.of("background_fraction")),
            self.put("length", self.of("background_length")),
            NextState("CHOOSE"),
        )

    def add_interval(self):
        """Work out how long after the background frame before it this one comes."""
        fsm, state = self.fsm, self.state
        self.exponential = exponential = ExponentialInterval()
        is_over = Signal()
        waited  = Cat(self.rest, self.ticks) # First the interval of the settings, then what comes of it.
        at_none = [NextValue(waited, 0), NextState("ADD")]
        at_once = NextState("ADD")
        paused  = NextValue(waited, Cat(Constant(0, FINE_BITS), self.data))
        drawn   = NextState("DRAW")
        self.comb += [
            is_over.eq(state.count >= Mux(self.burst == 0, 1, self.burst)),
            exponential.u.eq(Mux(self.u == 0, 1, self.u)),
            exponential.mean.eq(Cat(self.rest[FINE_BITS - MEAN_BITS:], self.ticks)),
        ]
        fsm.act("CHOOSE",
            self.at("background_start"),
            Case(self.kind, {
                int(BackgroundKind.CONSTANT): If(self.is_first, at_none).Else(at_once),
                int(BackgroundKind.EXPONENTIAL): drawn,
                int(BackgroundKind.ON_OFF): [
                    self.put("count", Mux(is_over | self.is_first, 1, state.count + 1)),
                    at_once,
                    If(is_over, paused),
                    If(self.is_first, at_none),
                ],
                int(BackgroundKind.RANDOM_ON_OFF): [
                    at_once,
                    If(self.ends, paused, drawn),
                    If(self.is_first, at_none),
                ],
                "default": NextState("PATTERN"),
            }),
        )
        fsm.act("DRAW", exponential.start.eq(1), NextState("DRAWN"))
        fsm.act("DRAWN",
            If(exponential.is_ready,
                NextValue(waited, Cat(exponential.fraction[32 - FINE_BITS:], exponential.ticks)),
                NextState("ADD"),
            ),
        )
        fsm.act("ADD",
            self.put("time", state.time + waited),
            If(self.is_seeding | self.is_switching, NextState("ADVANCE")).Else(NextState("FIND"))
        )
        self.add_pattern(waited)

    def add_pattern(self, waited):
        """Take time and length from the pattern memory."""
        fsm, state = self.fsm, self.state
        place = Signal(max=512, reset_less=True)
        start, count = self.of("background_start"), self.of("background_count")
        self.comb += self.settings.patterns["background"].eq(place)
        fsm.act("PATTERN",
            NextValue(place, start + Cat(Constant(0, 1), Mux(state.count < count, state.count, 0))),
            self.put("count", Mux(state.count < count, state.count, 0) + 1),
            NextState("PATTERN_TICKS"),
        )
        fsm.act("PATTERN_TICKS", NextValue(place, place + 1), NextState("PATTERN_LENGTH"))
        fsm.act("PATTERN_LENGTH",
            NextValue(waited, Cat(Constant(0, FINE_BITS), self.settings.pattern_values["background"])),
            NextState("PATTERN_END"),
        )
        fsm.act("PATTERN_END",
            self.put("length", self.settings.pattern_values["background"]),
            NextState("ADD"),
        )
