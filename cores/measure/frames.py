# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What is measured on probe frames, one frame after the other, and what of it is added up."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import DAMAGE, RecordFlag
from liteprobe.cores.measure.delay import DelayMeter
from liteprobe.cores.measure.sequence import SequenceTracker
from liteprobe.cores.measure.tally import Entry, Event

# Frame Meter --------------------------------------------------------------------------------------

# Cycles from a frame to its flags: the verdict takes some of them; then its fields stand still for a record's six.
count_cycles = 8

class FrameMeter(LiteXModule):
    """Measures good probe frames of the chosen stream, and says of each frame what its record needs.

    Attributes
    ----------
    frame : Signal(), in
        One cycle for each probe frame; from 15 cycles apart.
    sequence, tx_stamp, rx_stamp, length, stream_id : Signal(32), Signal(64), Signal(64), Signal(16), Signal(16), in
    faults : Signal(16), in
        The frame, and what is wrong with it as flags of a record. All must stand still from ``frame`` to 14 cycles
        later.
    stream_any, wanted_id : Signal(), Signal(16), in
        Measure every stream; or only this one.
    clear : Signal(), in
        Back to no frame at all; a frame under way leaves no trace.
    start : Signal(), out
        One cycle for each frame that is counted: ``entries`` can be added, one word in each of the next 15 cycles.
    done : Signal(), out
        One cycle, ``count_cycles`` after ``frame``: ``flags`` are valid, and the frame is known from now on.
    flags : Signal(16), out
        As in a record; stay until the next frame.
    entries, events : list of Entry, list of Event
        What a `Tally` must add up, by the names of the registers. A word of an entry is right in the cycle in which
        its turn comes; events come while the entries of their frame are added, or on their own.

    Damaged and foreign frames enter no accumulator but ``length_errors`` (FCS good, lengths broken) and
    ``foreign_streams``. Duplicates and late frames do enter ``frames`` and the delays.
    """
    def __init__(self):
        self.frame        = Signal()
        self.sequence     = Signal(32)
        self.tx_stamp     = Signal(64)
        self.rx_stamp     = Signal(64)
        self.length       = Signal(16)
        self.stream_id    = Signal(16)
        self.faults       = Signal(16)
        self.stream_any   = Signal()
        self.wanted_id    = Signal(16)
        self.clear        = Signal()
        self.start        = Signal()
        self.done         = Signal()
        self.flags        = Signal(16)

        # # #

        # Verdict.
        # --------
        self.is_damaged = is_damaged = Signal()
        self.is_foreign = is_foreign = Signal()
        self.is_counted = is_counted = Signal()
        self.has_bad_length = has_bad_length = self.faults[log2_int(int(RecordFlag.LENGTH_ERROR))]
        self.sync += [
            is_damaged.eq((self.faults & int(DAMAGE)) != 0),
            is_foreign.eq((self.stream_id != self.wanted_id) & ~self.stream_any),
            is_counted.eq(~is_damaged & ~has_bad_length & ~is_foreign),
        ]
        self.step = step = Signal(count_cycles)
        self.sync += step.eq(Cat(self.frame, step) & Replicate(~self.clear, count_cycles))
        self.comb += [
            self.start.eq(step[1] & is_counted & ~self.clear),
            self.done.eq(step[-1] & ~self.clear),
        ]

        # Parts.
        # ------
        self.tracker = tracker = SequenceTracker()
        self.delay   = delay   = DelayMeter()
        for part in (tracker, delay):
            self.comb += [
                part.commit.eq(self.done & is_counted),
                part.clear.eq(self.clear),
            ]
        self.comb += [
            tracker.sequence.eq(self.sequence),
            delay.rx_stamp.eq(self.rx_stamp),
            delay.tx_stamp.eq(self.tx_stamp),
            delay.check.eq(self.frame),
        ]

        # What becomes of them.
        # ---------------------
        self.add_entries()
        self.add_events()
        self.add_flags()

    def add_entries(self):
        """Name what a counted frame adds to, or replaces."""
        tracker, delay = self.tracker, self.delay
        is_first = Signal(reset=1)
        squares  = Signal(96)
        self.sync += [
            If(self.done & self.is_counted, is_first.eq(0)),
            If(self.clear, is_first.eq(1)),
        ]
        self.comb += squares.eq(delay.square)
        # Seven words up to the cycle after ``done``: behind it, the parts know the frame as a past one. Then what changes
        # with the next frame, up to 13 cycles after ``frame``.
        self.entries = [
            Entry("lost",             tracker.lost),
            Entry("first_stamp",      self.rx_stamp, is_first),
            Entry("delay_min",        delay.delay,   delay.is_least),
            Entry("delay_max",        delay.delay,   delay.is_most),
            Entry("delay_sum",        delay.delay),
            Entry("last_stamp",       self.rx_stamp, Constant(1, 1)),
            Entry("delay_square_sum", squares),
            Entry("expected",         tracker.expected, Constant(1, 1)),
        ]

    def add_events(self):
        """Name what else is counted: what comes while entries are added is of the same instant."""
        counted = self.done & self.is_counted
        octets  = Signal(16)
        self.comb += If(counted, octets.eq(self.length))
        # Frames with a good FCS come 15 cycles apart: few in a pass.
        self.events = [
            Event("frames",          counted, 5),
            Event("octets",          octets, 18, words=2),
            Event("duplicated",      counted & self.tracker.is_duplicate, 5),
            Event("reordered",       counted & self.tracker.is_reordered, 5),
            Event("beyond_window",   counted & self.tracker.is_beyond,    5),
            Event("length_errors",   self.done & self.has_bad_length & ~self.is_damaged, 5),
            Event("foreign_streams", self.done & self.is_foreign & ~self.has_bad_length & ~self.is_damaged, 5),
        ]

    def add_flags(self):
        """Hold the flags of each frame for its record."""
        # Taken just before the tracker knows the frame: afterwards it would call it a duplicate.
        flags = Signal(16)
        self.comb += flags.eq(self.faults)
        for flag, condition in [
            (RecordFlag.DUPLICATE,      self.is_counted & self.tracker.is_duplicate),
            (RecordFlag.REORDERED,      self.is_counted & self.tracker.is_reordered),
            (RecordFlag.BEYOND_WINDOW,  self.is_counted & self.tracker.is_beyond),
            (RecordFlag.FOREIGN_STREAM, self.is_foreign),
        ]:
            self.comb += flags[log2_int(int(flag))].eq(condition)
        self.sync += If(self.step[-2], self.flags.eq(flags))
