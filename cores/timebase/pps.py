# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Stamps each edge of the PPS input in the time and in the ticks of the probe."""

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import TICK_NS_BITS
from liteprobe.cores.timebase.clock import FRACTION_BITS
from liteprobe.cores.timebase.word_window import WORD_BITS

# From a tick to that in which its samples are given.
SAMPLE_TICKS = 2
# Samples a tick that are of use: the PPS input knows the part of a tick by two bits.
SAMPLES = (1, 2, 4)

# Pin Samples --------------------------------------------------------------------------------------

class PinSamples(LiteXModule):
    """Samples a pin as each tick ends. Boards that can do better have a module with the same attribute.

    Parameters
    ----------
    pad : Signal(), asynchronous

    Attributes
    ----------
    samples : Signal(1), out, ``timebase``
        The pin as the tick SAMPLE_TICKS before ended.
    """
    def __init__(self, pad):
        self.samples = Signal()

        # # #

        self.specials += MultiReg(pad, self.samples, "timebase", n=SAMPLE_TICKS)

# From the tick in which the pin rises to the first in which ``is_high`` is high.
LATENCY_TICKS = SAMPLE_TICKS + 2

# Pulse Detector -----------------------------------------------------------------------------------

class PulseDetector(LiteXModule):
    """Tells pulses from glitches by their width; in ``timebase``.

    A pulse that is already there as the detector is enabled does not count. One that begins while ``hold`` is high is a glitch.
    Pulses are what the last sample of each tick says; the others only tell when in its first tick a pulse began.

    Parameters
    ----------
    samples : int
        Samples of the pin a tick: 1, 2 or 4.

    Attributes
    ----------
    samples : Signal(samples), in
        The pin during the tick SAMPLE_TICKS before, at even distances, the earliest in bit 0, the last one as the tick ends.
    enable, invert : Signal(), in
        Must stand still; ``invert``: a pulse is low.
    min_width : Signal(16), in
        Ticks that a pulse must last; 0 is taken as 1. Must stand still.
    hold : Signal(), in
        Whoever captures the time of a rise could not do so in the next tick of ``is_high``.
    is_high : Signal(), out
        The pin, LATENCY_TICKS late. Registered.
    early : Signal(max=samples), out
        A tick before ``is_high`` rises: samples that were high already before the last one of the tick of the rise, without a
        gap. Else anything. Registered; of one sample 0.
    accepted : Signal(), out
        One tick for each pulse as it has lasted ``min_width`` ticks: ``is_high`` was high in the tick before. Registered.
    glitch : Signal(), out
        One tick for each pulse that ended before, or began too soon. Registered.
    width : Signal(32), out
        Ticks that the last accepted pulse has lasted so far; new in the tick of ``accepted``. Wraps after 34 s.

    Limits: a gap between two last samples is not seen, a pulse between two last samples neither.
    """
    def __init__(self, samples=1):
        self.samples   = Signal(samples)
        self.enable    = Signal()
        self.invert    = Signal()
        self.min_width = Signal(16)
        self.hold      = Signal()
        self.is_high   = Signal()
        self.early     = Signal(max=max(samples, 2), reset_less=True)
        self.accepted  = Signal()
        self.glitch    = Signal()
        self.width     = Signal(32, reset_less=True)

        # # #

        level      = Signal()
        level_d    = Signal()
        was_high   = Signal()
        count      = Signal(32, reset_less=True)
        lasted     = Signal(32, reset_less=True) # In step with ``is_high``.
        is_longest = Signal() # Beyond all that can be asked for.
        is_long    = Signal()
        is_blocked = Signal(reset=1) # Until the pin was low once.
        is_early   = Signal()        # Nobody knows when it began.
        is_done    = Signal()        # This pulse was accepted.
        counts     = Signal()
        early      = 0
        self.comb += [
            level.eq(self.samples[-1] ^ self.invert),
            counts.eq(self.is_high & is_long & ~is_blocked & ~is_early),
        ]
        for n in range(samples - 1):
            early = Mux(self.samples[n] ^ self.invert, 1 + early, 0)
        self.sync.timebase += [
            level_d.eq(level),
            self.early.eq(early),
            self.is_high.eq(level_d),
            was_high.eq(self.is_high),
            If(level, count.eq(count + 1)).Else(count.eq(0)),
            lasted.eq(count),
            is_longest.eq(level & (is_longest | (count[:16] == 0xffff))),
            is_long.eq(is_longest | ~(count[:16] < self.min_width)), # Of ``>=`` Yosys makes two comparisons here.
            If(~self.enable, is_blocked.eq(1)).Elif(~self.is_high, is_blocked.eq(0)),
            If(~self.is_high, is_early.eq(self.hold)),
            is_done.eq(counts),
            self.accepted.eq(counts & ~is_done),
            self.glitch.eq(was_high & ~self.is_high & ~is_done & ~is_blocked),
            If(counts, self.width.eq(lasted)),
        ]

TICK_BITS   = 32 - TICK_NS_BITS
LOST_BITS   = 3
LOST_AFTER  = 1 << (LOST_BITS - 1) # Periods without an edge, after which the next one sets the phase.

# PpsWatchdog -----------------------------------------------------------------------------------------

class PpsWatchdog(LiteXModule):
    """Compares edges with a period, by the oscillator's own ticks; in ``timebase``.

    An edge that is neither spurious nor the first one sets the phase anew, so the oscillator's error counts over one
    period only. After LOST_AFTER periods without any such edge, the next one sets the phase whenever it comes.

    Attributes
    ----------
    enable : Signal(), in
        While low, everything is forgotten.
    period : Signal(32), in
        ns, taken in whole ticks; from 64 ticks. Must stand still.
    window : Signal(32), in
        ns, taken in whole ticks; 0: no edge is spurious. Must stand still.
    edge : Signal(), in
        One tick for each edge, a fixed time after it.
    is_spurious : Signal(), out
        With ``edge``: it is further than ``window`` from a whole number of periods after the last one that was not. Registered.
    missed : Signal(), out
        One tick for each period without an edge: 1.5 periods after the last one, and so on. Registered.
    is_present : Signal(), out
        An edge that was not spurious came within the last 1.5 periods. Registered.
    """
    def __init__(self):
        self.enable      = Signal()
        self.period      = Signal(32)
        self.window      = Signal(32)
        self.edge        = Signal()
        self.is_spurious = Signal()
        self.missed      = Signal()
        self.is_present  = Signal()

        # # #

        left   = Signal(TICK_BITS, reset_less=True) # Ticks to the end of the lap, which is half a period after the edge.
        period = Signal(TICK_BITS)
        center = Signal(TICK_BITS) # Ticks left at an edge; its two lowest bits are 0.
        near   = Signal() # Three ticks before the end of the lap were left a tick ago.
        lap    = Signal()
        accept = Signal()
        was_accepted = Signal()
        silent = Signal(LOST_BITS, reset=LOST_AFTER)
        seen   = Signal()
        self.comb += [
            period.eq(self.period[TICK_NS_BITS:]),
            center.eq(Cat(Constant(0, 2), self.period[TICK_NS_BITS + 3:])),
            accept.eq(self.edge & ~self.is_spurious),
        ]
        self.sync.timebase += [
            was_accepted.eq(accept),
            near.eq(left == 3),
            lap.eq(near & ~accept & ~was_accepted),
            left.eq(left - 1),
            If(lap, left.eq(period)),
            If(accept | ~self.enable, left.eq(center)),

            self.missed.eq(0),
            If(accept,
                seen.eq(1),
            ).Elif(lap,
                seen.eq(0),
                self.missed.eq(~seen),
            ),
            # A tick after what it follows, for its logic is long.
            If(was_accepted, silent.eq(0)).Elif(self.missed & ~silent[-1], silent.eq(silent + 1)),
            If(~self.enable,
                seen.eq(0),
                silent.eq(LOST_AFTER),
                lap.eq(0),
                self.missed.eq(0),
            ),
            self.is_present.eq(silent == 0),
        ]
        self.add_verdict(left, center, silent[-1])

    def add_verdict(self, left, center, is_lost):
        """Form |left - center| - window in three steps.

        The verdict is of ``left`` three ticks before, and ``left`` is set to the center in the tick after an edge: so an edge
        after exactly one period finds ``center + 4`` there, and 4 is what the lowest bits leave out.
        """
        low      = 2
        distance = Signal(TICK_BITS + 1, reset_less=True)
        size     = Signal(TICK_BITS, reset_less=True) # One less than the distance, where that is negative.
        negative = Signal(reset_less=True)
        above    = Signal(TICK_BITS - low + 2)
        excess   = Signal(TICK_BITS + 2)
        is_on    = Signal()
        self.comb += [
            # One subtraction each: the borrow comes in through an extra lowest bit.
            above.eq(Cat(Constant(0, 1), left[low:]) - Cat(Constant(1, 1), center[low:])),
            excess.eq(Cat(Constant(0, 1), self.window[TICK_NS_BITS:]) - Cat(negative, size)),
        ]
        self.sync.timebase += [
            distance.eq(Cat(left[:low], above[1:])),
            size.eq(Mux(distance[-1], ~distance[:-1], distance[:-1])),
            negative.eq(distance[-1]),
            is_on.eq((self.window != 0) & ~is_lost),
            self.is_spurious.eq(excess[-1] & is_on),
        ]

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
    clock : TimebaseClock
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
            *copied(detector, self, "enable", "invert", "min_width"),
            *copied(watchdog, self, "enable", "period", "window"),
            watchdog.edge.eq(detector.accepted),
            self.glitch.eq(detector.glitch),
            *copied(self, watchdog, "missed", "is_present"),
        ]
        self.sync.timebase += [
            self.accepted.eq(detector.accepted),
            self.spurious.eq(detector.accepted & watchdog.is_spurious),
        ]
        # One bit for each word that is fetched: a number would be decoded anew for each of the 32 bits, in one tick.
        self.fetches   = Signal(EDGE_WORDS)
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
            self.fetches.eq(self.fetches[1:]),
            If(self.fetches[0], self.is_active.eq(0)),
            If(shows,
                is_asked.eq(0),
                self.shown.eq(self.shown ^ self.is_fresh),
                self.is_known.eq(self.is_known | self.is_fresh),
                self.is_fresh.eq(0),
                self.is_active.eq(1),
                self.fetches.eq(1 << edge_numbers("width")[0]),
            ),
            If(accepted, self.is_active.eq(1), self.fetches.eq(1 << EDGE_WORDS - 1), self.is_fresh.eq(1)),
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
        of_rise  = EDGE_WORDS - EARLY_TICKS + 1 # From this word on the words are of the time of the rise.
        is_kept  = Signal()                     # One of them is fetched.
        self.sync.timebase += is_kept.eq(detector.accepted | (self.fetches[of_rise + 1:] != 0))
        self.comb += detector.hold.eq(detector.accepted | is_kept)
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
        chosen       = [] # Of each word, or 0.
        for name, _ in EDGE:
            for n, number in enumerate(reversed(edge_numbers(name))):
                part = parts[name][WORD_BITS*n:WORD_BITS*(n + 1)]
                chosen.append(part & Replicate(self.fetches[number], len(part)))
        high, low = edge_numbers("ticks")
        self.sync.timebase += [
            fetched.eq(Reduce("OR", chosen)),
            is_low.eq(self.fetches[low]),
            takes_borrow.eq(self.fetches[high]),
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
            number.eq(Reduce("OR", [Replicate(self.fetches[n], len(number)) & n for n in range(EDGE_WORDS)])),
            write.we.eq(self.is_active),
        ]
        self.comb += [
            write.adr.eq(Cat(number, self.shown ^ self.is_fresh)),
            write.dat_w.eq(word),
            read.adr.eq(Cat(self.number, self.shown)),
            self.word.eq(Mux(self.is_known, read.dat_r, 0)),
        ]
