# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What is measured on probe frames: one frame after the other, all counts in one cycle."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import DAMAGE, RecordFlag
from liteprobe.cores.measure.counters import EventCounters, ProbeCounters
from liteprobe.cores.measure.delay import DelayAccumulator
from liteprobe.cores.measure.sequence import SequenceTracker

# Frame Meter --------------------------------------------------------------------------------------

# Cycles from a frame to its counts: the square of its delay takes that long.
count_cycles = 8

class FrameMeter(LiteXModule):
    """Measures good probe frames of the chosen stream, and says of each frame what its record needs.

    Attributes
    ----------
    frame : Signal(), in
        One cycle for each probe frame; from ``count_cycles`` apart.
    sequence, tx_stamp, rx_stamp, length, stream_id : Signal(32), Signal(64), Signal(64), Signal(16), Signal(16), in
    faults : Signal(16), in
        The frame, and what is wrong with it as flags of a record. Must stand still from ``frame`` to ``done``.
    stream_any, wanted_id : Signal(), Signal(16), in
        Measure every stream; or only this one.
    clear : Signal(), in
        Back to no frame at all; a frame under way leaves no trace.
    done : Signal(), out
        One cycle, ``count_cycles`` after ``frame``: all counts change with it, and ``flags`` are valid.
    flags : Signal(16), out
        As in a record; stay until the next frame.
    live : dict of name to Signal, out
        The accumulators by their register names.

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
        self.done         = Signal()
        self.flags        = Signal(16)

        # # #

        # Verdict.
        # --------
        is_damaged, is_foreign, is_counted = Signal(), Signal(), Signal()
        has_bad_length = self.faults[log2_int(int(RecordFlag.LENGTH_ERROR))]
        self.sync += [
            is_damaged.eq((self.faults & int(DAMAGE)) != 0),
            is_foreign.eq((self.stream_id != self.wanted_id) & ~self.stream_any),
            is_counted.eq(~is_damaged & ~has_bad_length & ~is_foreign),
        ]
        step = Signal(count_cycles)
        self.sync += step.eq(Cat(self.frame, step) & Replicate(~self.clear, count_cycles))
        self.comb += self.done.eq(step[-1] & ~self.clear)

        # Accumulators.
        # -------------
        self.probe    = probe    = ProbeCounters()
        self.tracker  = tracker  = SequenceTracker()
        self.delay    = delay    = DelayAccumulator()
        self.events   = events   = EventCounters(["length_errors", "foreign_streams"])
        for counter in (probe, tracker, delay):
            self.comb += counter.commit.eq(self.done & is_counted)
        for counter in (probe, tracker, delay, events):
            self.comb += counter.clear.eq(self.clear)
        self.comb += [
            probe.length.eq(self.length),
            probe.stamp.eq(self.rx_stamp),
            tracker.sequence.eq(self.sequence),
            delay.rx_stamp.eq(self.rx_stamp),
            delay.tx_stamp.eq(self.tx_stamp),
            delay.check.eq(self.frame),
            events.length_errors.eq(self.done & has_bad_length & ~is_damaged),
            events.foreign_streams.eq(self.done & is_foreign & ~has_bad_length & ~is_damaged),
        ]
        self.live = {
            "frames"          : probe.frames,
            "octets"          : probe.octets,
            "first_stamp"     : probe.first_stamp,
            "last_stamp"      : probe.last_stamp,
            "delay_min"       : delay.least,
            "delay_max"       : delay.most,
            "delay_sum"       : delay.total,
            "delay_square_sum": delay.squares,
            "lost"            : tracker.lost,
            "duplicated"      : tracker.duplicated,
            "reordered"       : tracker.reordered,
            "beyond_window"   : tracker.beyond_window,
            "expected"        : tracker.expected,
            **events.totals,
        }

        # Flags.
        # ------
        # Taken just before the frame is counted: afterwards the tracker would call it a duplicate.
        flags = Signal(16)
        self.comb += flags.eq(self.faults)
        for flag, condition in [
            (RecordFlag.DUPLICATE,      is_counted & tracker.is_duplicate),
            (RecordFlag.REORDERED,      is_counted & tracker.is_reordered),
            (RecordFlag.BEYOND_WINDOW,  is_counted & tracker.is_beyond),
            (RecordFlag.FOREIGN_STREAM, is_foreign),
        ]:
            self.comb += flags[log2_int(int(flag))].eq(condition)
        self.sync += If(step[-2], self.flags.eq(flags))
