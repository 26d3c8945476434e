# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The PPS input: each edge of a reference, in the time and in the ticks of the probe."""

from migen import *

from litex.gen import *

from liteprobe.cores.timebase.clock import FRACTION_BITS
from liteprobe.cores.timebase.pps_watchdog import PpsWatchdog
from liteprobe.cores.timebase.pulse import LATENCY_TICKS, PulseDetector
from liteprobe.cores.timebase.word_window import WORD_BITS

# Edge ---------------------------------------------------------------------------------------------

# What is known of an edge, as words of 32 bits: name, words, the highest first. They are written from the last one to the
# first: what follows the time comes first, the low word of the ticks before the high one, which takes its borrow.
EDGE = [
    ("flags",    1), # Bit 0: spurious; from EARLY_BIT on: `PulseDetector.early`.
    ("width",    1), # Ticks that the pulse had lasted as it was taken.
    ("count",    1), # Edges accepted since reset, this one included. Wraps.
    ("now",      2), # ns.
    ("fraction", 1), # 2^-32 ns.
    ("ticks",    2),
]
EDGE_WORDS  = sum(words for _, words in EDGE)
EARLY_BIT   = 4
EARLY_TICKS = 5 # After an edge was accepted, until all words of its time are fetched.

def edge_numbers(name):
    """Return the numbers of the words of a part of an edge, the highest word first."""
    names = [entry for entry, words in EDGE for _ in range(words)]
    return [number for number, entry in enumerate(names) if entry == name]

# PPS Input ----------------------------------------------------------------------------------------

class PpsInput(LiteXModule):
    """Stamps each edge of the PPS with the tick in which the pin rose; in ``timebase``.

    ``now``, ``fraction`` and ``ticks`` of an edge are those of the beginning of that tick: at most a tick before the edge
    itself, half a tick in the mean. With several samples a tick, ``early`` in the flags tells between which of them the pin
    rose: the last one before the end of the tick, or one so many before it, found it high, and the one before that low.
    Edges are kept in a memory of two pages: one is written, the other one is read.

    Parameters
    ----------
    clock : Clock
        Gives ``now``, ``fraction`` and ``ticks``.
    samples : int
        Samples of the pin a tick: 1, 2 or 4.

    Attributes
    ----------
    samples : Signal(samples), in
        Of the pin, as `PulseDetector` takes them.
    enable, invert : Signal(), in; ``period``, ``window`` : Signal(32), in; ``min_width`` : Signal(16), in
        As in `PulseDetector` and `PpsWatchdog`; must stand still.
    take : Signal(), in
        One pulse: show the last edge. From 16 ticks apart.
    taken : Signal(), out
        One pulse, a tick after ``take``, or up to ten while an edge is stored: ``word`` is of that edge from then on, its width
        three ticks later.
    number : Signal(3), in, sys
        Word of the edge, as EDGE counts them.
    word : Signal(32), out, sys
        In the same cycle; 0 before the first edge.
    accepted, glitch, missed, spurious : Signal(), out
        One tick for each; ``accepted`` comes for spurious edges, too. A ``take`` from the tick of ``accepted`` on shows the edge.
    is_present : Signal(), out

    Limits: a pulse that rises within EARLY_TICKS ticks of the acceptance of another one is a glitch. As long as edges are
    accepted fewer than ten ticks apart, ``take`` waits.
    """
    def __init__(self, clock, samples=1):
        self.samples    = Signal(samples)
        self.enable     = Signal()
        self.invert     = Signal()
        self.period     = Signal(32)
        self.window     = Signal(32)
        self.min_width  = Signal(16)
        self.take       = Signal()
        self.taken      = Signal()
        self.number     = Signal(max=EDGE_WORDS)
        self.word       = Signal(WORD_BITS)
        self.accepted   = Signal()
        self.glitch     = Signal()
        self.missed     = Signal()
        self.spurious   = Signal()
        self.is_present = Signal()

        # # #

        self.detector = detector = PulseDetector(samples)
        self.watchdog = watchdog = PpsWatchdog()
        self.comb += [
            detector.samples.eq(self.samples),
            *[getattr(detector, name).eq(getattr(self, name)) for name in ("enable", "invert", "min_width")],
            *[getattr(watchdog, name).eq(getattr(self, name)) for name in ("enable", "period", "window")],
            watchdog.edge.eq(detector.accepted),
            self.glitch.eq(detector.glitch),
            self.missed.eq(watchdog.missed),
            self.is_present.eq(watchdog.is_present),
        ]
        self.sync.timebase += [
            self.accepted.eq(detector.accepted),
            self.spurious.eq(detector.accepted & watchdog.is_spurious),
        ]
        self.step      = Signal(max=EDGE_WORDS) # Number of the word that is fetched.
        self.is_active = Signal()
        # ``sys`` takes the page as it is, like what a HeldCrossing holds: it stands still before a bus can ask.
        self.shown     = Signal()
        self.is_fresh  = Signal() # The last edge is on the other page.
        self.is_known  = Signal() # There was an edge since reset, which leaves the memory as it is.
        self.add_order()
        self.add_memory(self.add_words(self.add_capture(clock)))

    def add_order(self):
        """Write each edge; when it is asked for, show it, and write its width once more."""
        accepted = self.detector.accepted
        is_asked = Signal()
        shows    = Signal()
        self.comb += shows.eq((self.take | is_asked) & ~self.is_active)
        self.sync.timebase += [
            self.taken.eq(shows),
            If(self.take, is_asked.eq(1)),
            If(self.is_active,
                self.step.eq(self.step - 1),
                If(self.step == 0, self.is_active.eq(0)),
            ),
            If(shows,
                is_asked.eq(0),
                self.shown.eq(self.shown ^ self.is_fresh),
                self.is_known.eq(self.is_known | self.is_fresh),
                self.is_fresh.eq(0),
                self.is_active.eq(1),
                self.step.eq(*edge_numbers("width")),
            ),
            If(accepted, self.is_active.eq(1), self.step.eq(EDGE_WORDS - 1), self.is_fresh.eq(1)),
        ]

    def add_capture(self, clock):
        """Follow the time while the pin is low, as late as the pin; keep it from the rise until it is written.

        Returns now and fraction of the rise, the ticks as they were when ``is_high`` rose, and how early in its tick it was.
        """
        delayed = Cat(clock.now, clock.fraction[FRACTION_BITS - 32:])
        # The receive paths keep the same old values of ``now``: Yosys makes one register of two that are alike.
        for _ in range(LATENCY_TICKS - 1):
            later = Signal(len(delayed), reset_less=True)
            self.sync.timebase += later.eq(delayed)
            delayed = later
        now      = Signal(64, reset_less=True)
        fraction = Signal(WORD_BITS, reset_less=True)
        ticks    = Signal(64, reset_less=True)
        early    = Signal(len(self.detector.early), reset_less=True)
        detector = self.detector
        self.comb += detector.hold.eq(detector.accepted | (self.is_active & (self.step > EDGE_WORDS - EARLY_TICKS)))
        self.sync.timebase += If(~detector.is_high & ~detector.hold,
            Cat(now, fraction).eq(delayed),
            ticks.eq(clock.ticks),
            early.eq(detector.early),
        )
        return now, fraction, ticks, early

    def add_words(self, captured):
        """Fetch a word of the edge, and return it a tick later, right."""
        now, fraction, ticks, early = captured
        detector, watchdog = self.detector, self.watchdog
        count       = Signal(WORD_BITS)
        flags       = Signal(EARLY_BIT + len(early)) # Written last, when the time of the rise is held no more.
        self.sync.timebase += If(detector.accepted,
            count.eq(count + 1),
            flags.eq(Cat(watchdog.is_spurious, Constant(0, EARLY_BIT - 1), early)),
        )

        fetched      = Signal(WORD_BITS, reset_less=True)
        word         = Signal(WORD_BITS + 1)
        is_low       = Signal()
        takes_borrow = Signal()
        borrow       = Signal()
        parts        = {"flags": flags, "width": detector.width, "count": count, "now": now, "fraction": fraction, "ticks": ticks}
        cases        = {}
        for name, _ in EDGE:
            for n, number in enumerate(reversed(edge_numbers(name))):
                cases[number] = fetched.eq(parts[name][WORD_BITS*n:WORD_BITS*(n + 1)])
        high, low = edge_numbers("ticks")
        self.sync.timebase += [
            Case(self.step, cases),
            is_low.eq(self.step == low),
            takes_borrow.eq(self.step == high),
            borrow.eq(word[-1]),
        ]
        # The ticks are those of LATENCY_TICKS - 1 ticks later.
        self.comb += word.eq(fetched - Mux(is_low, LATENCY_TICKS - 1, takes_borrow & borrow))
        return word[:WORD_BITS]

    def add_memory(self, word):
        """Write the words as they come, and let ``sys`` read those of the page that is shown."""
        memory = Memory(WORD_BITS, 2*EDGE_WORDS)
        write  = memory.get_port(write_capable=True, clock_domain="timebase", mode=READ_FIRST)
        read   = memory.get_port(async_read=True, clock_domain="sys")
        number = Signal(max=EDGE_WORDS)
        self.specials += memory, write, read
        self.shown.attr.add("no_retiming")
        self.sync.timebase += [
            number.eq(self.step),
            write.we.eq(self.is_active),
        ]
        self.comb += [
            write.adr.eq(Cat(number, self.shown ^ self.is_fresh)),
            write.dat_w.eq(word),
            read.adr.eq(Cat(self.number, self.shown)),
            self.word.eq(Mux(self.is_known, read.dat_r, 0)),
        ]
