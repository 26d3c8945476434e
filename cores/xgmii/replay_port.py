# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives what replays at 10 Gb/s the registers of a port that replays at 1 Gb/s, and joins it to what fills its ring.

Stands alone: it is in ``sys``, and what it joins runs without it.
"""

from migen import *

from litex.gen import *

from liteprobe.cores.crossing import PulseCrossing, WordCrossing
from liteprobe.cores.formats import TransmitState
from liteprobe.cores.memory.ring_reader import AHEAD_BITS
from liteprobe.cores.transmit.sources.replay import LOOPS_BITS, UNDERRUN_BITS, ReplayBank
from liteprobe.cores.xgmii.replay import POSITION_BITS

# XGMII Replay Port --------------------------------------------------------------------------------

class XgmiiReplayPort(ReplayBank):
    """Joins an `XgmiiReplaySource` to registers and to what fills its ring: a `RingReaderPort`; in ``sys``.

    Parameters
    ----------
    path : XgmiiTransmitPath
        With the source, in ``timebase``.

    Attributes
    ----------
    session, prime, loops, open, close, arm, opens, closes, restart, is_restarted, written, fetched, keeps, is_running
        As of `ReplayPort`.
    frames, underruns, first_underrun, errors, is_starved : Signal(32), Signal(16), Signal(32), Signal(), Signal(), out
        As of `XgmiiReplaySource`, some cycles late.
    """
    def __init__(self, path):
        self.session        = Signal(16)
        self.prime          = Signal(AHEAD_BITS)
        self.loops          = Signal(LOOPS_BITS)
        self.open           = Signal()
        self.close          = Signal()
        self.arm            = Signal()
        self.opens          = Signal()
        self.closes         = Signal()
        self.restart        = Signal()
        self.is_restarted   = Signal()
        self.written        = Signal(POSITION_BITS)
        self.fetched        = Signal(POSITION_BITS)
        self.keeps          = Signal()
        self.is_running     = Signal()
        self.frames         = Signal(32)
        self.underruns      = Signal(UNDERRUN_BITS)
        self.first_underrun = Signal(32)
        self.errors         = Signal()
        self.is_starved     = Signal()

        # # #

        source     = path.replay
        is_opening = Signal() # From ``opens`` on,
        restarts   = Signal() # and from ``restart`` on, until the reader begins anew.
        self.comb += [
            source.request.eq(self.arm),
            self.opens.eq(self.open & ~(path.is_busy & source.is_asked)),
            self.closes.eq(self.close),
            self.keeps.eq(self.loops != 1),
            self.is_running.eq(source.is_asked & (path.state == TransmitState.RUNNING)),
        ]
        self.sync += [
            If(restarts & self.is_restarted, is_opening.eq(0), restarts.eq(0)),
            If(self.restart, restarts.eq(1)),
            If(self.opens, is_opening.eq(1), restarts.eq(0)),
        ]
        self.add_ring(source)
        self.add_begin(path, source, is_opening)

    def add_ring(self, source):
        """Tell the reader what is written, and in which session; and what fills the ring what was read in it."""
        session  = Signal() # Of one and the next: what comes of another one is old.
        present  = Signal() # Of the reader.
        asked    = Signal()
        shown    = [self.fetched, self.frames, self.underruns, self.first_underrun, self.errors, self.is_starved]
        counted  = ["fetched", "frames", "underruns", "first_underrun", "is_bad", "is_starved"]
        is_of    = Signal()
        self.wraps = Signal()
        self.to   = to   = WordCrossing(POSITION_BITS + 2, "sys", "timebase")
        self.back = back = WordCrossing(1 + sum(map(len, shown)), "timebase", "sys")
        self.comb += [
            to.i.eq(Cat(self.written, self.wraps, session)),
            Cat(source.written, source.wraps, asked).eq(to.o),
            source.restart.eq(asked != present),
            source.loops.eq(self.loops),
            back.i.eq(Cat(present, *(getattr(source, name) for name in counted))),
            Cat(is_of, *shown).eq(back.o),
            self.is_restarted.eq(is_of == session),
        ]
        self.sync += If(self.restart, session.eq(~session))
        self.sync.timebase += If(source.restart & source.is_restarted, present.eq(asked))

    def add_begin(self, path, source, is_opening):
        """Have a program begin once its words are there: those of a session at its begin."""
        missing    = Signal(AHEAD_BITS + 1) # Words, less one.
        is_there   = Signal()
        has_enough = Signal()
        is_waiting = Signal()
        self.begins   = begins   = PulseCrossing("sys", "timebase")
        self.comb += [
            missing.eq(self.prime - self.written[:AHEAD_BITS] - 1),
            # A loop starts over after what is written: that must be its end.
            is_there.eq(missing[-1] & (~self.keeps | (missing[:-1] == 2**AHEAD_BITS - 1))),
            begins.i.eq(is_waiting & has_enough & ~is_opening),
            source.begins.eq(begins.o & path.is_armed),
        ]
        self.sync += [
            If(begins.i | ~path.is_busy | path.is_stopped, is_waiting.eq(0)),
            If(source.taken, is_waiting.eq(1)),
            If(is_there & is_waiting, has_enough.eq(1)),
            self.wraps.eq(has_enough & self.keeps),
            If(is_opening, has_enough.eq(0), self.wraps.eq(0)),
        ]
