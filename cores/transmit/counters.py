# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Counts what happens to the frames of a port, in a LUT RAM, one count a cycle."""

from migen import *

from litex.gen import *
from liteprobe.cores.bus import WordStatus
from liteprobe.cores.crossing import PulseCrossing

# Words of the memory, in the order in which a clear comes to them: those of a program first. ``disturbed`` leads, because
# writes may follow each other faster than the clear takes.
WORDS = ["disturbed", "sent", "late", "first_late", "underruns", "management_sent", "management_held", "management_dropped"]
OF_PROGRAM = 5
# Of those that are narrower than 32; they stop at their highest count.
COUNTER_BITS = dict.fromkeys(["underruns", "management_held", "management_dropped", "disturbed"], 16)
# In the order of their registers.
COUNTERS = ["sent", "late", "first_late", "underruns", "management_sent", "management_held", "management_dropped", "disturbed"]
EVENTS   = ["late", "sent", "underruns", "management_sent", "management_held"]
# What is counted first, where several wait: what may come again soon; and ``late`` before ``sent`` of the same frame.
ORDER = ["management_dropped", "disturbed", "late", "sent", "underruns", "management_sent", "management_held"]
SOON  = ORDER[:2]

# Transmit Counters --------------------------------------------------------------------------------

class TransmitCounters(LiteXModule):
    """Counts events of ``timebase`` in ``sys``; counters of 32 bits wrap, those of 16 stop at 65535.

    Events of one kind are a slot apart (84 ticks) or more, so each crosses as a pulse; it is counted some cycles later.

    Attributes
    ----------
    events : dict of Signal(), in, ``timebase``
        ``late``, ``sent``, ``underruns``, ``management_sent``, ``management_held``: one pulse each. ``late`` must
        come eight ticks before ``sent`` of the same frame or earlier.
    dropped, disturbs : Signal(), in, ``sys``
        At most three of each in ten cycles.
    clear, clear_program : Signal(), in, ``sys``
        Clear all, in eight cycles; clear what belongs to a program, in five: ``disturbed``, ``sent``, ``late``, ``first_late``,
        ``underruns``.
    asks : Signal(8), in, ``sys``
        At most one bit: asks for the counter of its place in ``COUNTERS``.
    word : Signal(32), out, ``sys``
        What is asked for, in the same cycle. ``first_late`` is the sequence of the first late frame, NO_SEQUENCE if there was
        none.
    pulses : dict of Signal(), out, ``sys``
        One pulse for each event, some cycles before it is counted.
    """
    def __init__(self):
        self.events        = {name: Signal(name=name) for name in EVENTS}
        self.dropped       = Signal()
        self.disturbs      = Signal()
        self.clear         = Signal()
        self.clear_program = Signal()
        self.asks          = Signal(len(COUNTERS))
        self.word          = Signal(32)

        # # #

        self.pulses = {"management_dropped": self.dropped, "disturbed": self.disturbs}
        for name in EVENTS:
            crossing = PulseCrossing("timebase", "sys")
            self.submodules += crossing
            self.comb += crossing.i.eq(self.events[name])
            self.pulses[name] = crossing.o

        # Clear.
        # ------
        # A reset clears all.
        self.place    = Signal(max=len(WORDS))
        self.is_clear = is_clear = Signal(reset=1)
        clears_all    = Signal(reset=1)
        self.sync += [
            self.place.eq(self.place + 1),
            If(self.place == Mux(clears_all, len(WORDS), OF_PROGRAM) - 1, is_clear.eq(0)),
            If(~is_clear, clears_all.eq(0)),
            If(self.clear | self.clear_program, self.place.eq(0), is_clear.eq(1)),
            If(self.clear, clears_all.eq(1)),
        ]

        # Count.
        # ------
        self.counts = Signal() # What waits is counted.
        self.comb  += self.counts.eq(~is_clear)
        self.add_word(*self.add_waiting())

    def add_waiting(self):
        """Keep what waits; return the words of the present event: where it is counted, what is read; and whether that is copied."""
        target, read = (Signal(max=len(WORDS), name=name) for name in ("target", "read"))
        is_copied    = Signal() # ``sent`` is the sequence of the first late frame.
        was_late     = Signal() # There is a late one, and it was.
        self.is_any  = Signal()
        choice       = None
        for name in ORDER:
            waiting = Signal(2 if name in SOON else 1, name=f"{name}_waiting")
            is_done = Signal(name=f"{name}_done")
            clears  = self.clear if name.startswith("management") else self.clear | self.clear_program
            number  = WORDS.index(name)
            chosen  = [target.eq(number), read.eq(number), self.is_any.eq(1), is_done.eq(self.counts)]
            if name == "late":
                chosen.append(If(~was_late,
                    is_copied.eq(1), is_done.eq(0), read.eq(WORDS.index("sent")), target.eq(WORDS.index("first_late"))))
                self.sync += [
                    If(is_copied & self.counts, was_late.eq(1)),
                    If(clears, was_late.eq(0)),
                ]
            step = waiting.eq(waiting + self.pulses[name] - is_done) if name in SOON else \
                waiting.eq(self.pulses[name] | (waiting & ~is_done))
            self.sync += [step, If(clears, waiting.eq(0))]
            choice = choice.Elif(waiting != 0, *chosen) if choice else If(waiting != 0, *chosen)
        self.comb += choice
        return target, read, is_copied

    def add_word(self, target, read, is_copied):
        """Read a word, add one where it isn't full, and write it, all in one cycle; show the bus what it asks for."""
        memory = Memory(len(self.word), 2*len(WORDS), init=[0]*2*len(WORDS), name="counters")
        reader = memory.get_port(async_read=True)
        # A port of its own, another copy of the memory: else the way from the bus would go on through the adder.
        shower = memory.get_port(async_read=True)
        writer = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += memory, reader, shower, writer
        word    = reader.dat_r
        is_full = Signal()
        lessens = Signal()
        adds    = Signal()
        total   = Signal(len(self.word) + 1)
        self.comb += [
            *[If(self.asks[COUNTERS.index(name)], shower.adr.eq(number)) for number, name in enumerate(WORDS)],
            self.word.eq(shower.dat_r),
            # A clear reads what nobody writes.
            reader.adr.eq(Mux(self.is_clear, len(WORDS), read)),
            is_full.eq(Reduce("OR", [(read == WORDS.index(name)) & (word[:bits] == 2**bits - 1)
                for name, bits in COUNTER_BITS.items()])),
            adds.eq(~self.is_clear & ~is_copied & ~is_full),
            lessens.eq(self.is_clear & (self.place == WORDS.index("first_late"))),
            writer.adr.eq(Mux(self.is_clear, self.place, target)),
            # One adder: the carry comes in through an extra lowest bit.
            total.eq(Cat(Constant(1, 1), word) + Cat(adds, Replicate(lessens, len(word)))),
            writer.dat_w.eq(total[1:]),
            writer.we.eq(self.is_clear | self.is_any),
        ]

    def status(self, name, description):
        """Return the register of a counter, which asks for it; ``asks`` is then driven from here."""
        register = WordStatus(COUNTER_BITS.get(name, 32), name=name, description=description)
        self.comb += [
            register.status.eq(self.word),
            self.asks[COUNTERS.index(name)].eq(register.asked),
        ]
        return register
