# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Shows each frame to the pacer ahead of its octets.

Stands alone: it is where frames go from ``sys`` to ``timebase``, which tests of its own hold to.
"""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.crossing import PulseCrossing, StillCrossing
from liteprobe.cores.formats import HORIZON, OVERDUE_MAX, OVERHEAD
from liteprobe.cores.transmit.frames import DUE_BITS, descriptor_description, pace_description
from liteprobe.cores.transmit.line import LINE_TICKS

class Announcer(LiteXModule):
    """Shows each frame to the pacer while it is built, once it is due soon; from ``sys`` to ``timebase``.

    A descriptor stands still until its frame is built and the pacer has taken it, so nothing is stored, and no octets of
    the next frame come before that. An ``empty`` descriptor is shown, and nothing is built. Some 30 ticks pass from a
    descriptor that is taken to the first octet of the next frame: less than the shortest slot, 84.

    The pacer compares ticks modulo 2^20. So a frame is held back, and not built either, until it is due in fewer than
    HORIZON ticks; one that is overdue by more than OVERDUE_MAX is shown as if by so many.

    Parameters
    ----------
    with_stamps : bool
        Show what the stamp needs to know of each frame, too.
    with_replay : bool
        Descriptors may ask for octets of the ring.
    due_bits : int
        Of ``due`` in descriptors; with fewer than 64 it is modulo, and none may be due in half of that range.

    Attributes
    ----------
    sink : Endpoint(descriptor_description(with_replay, due_bits)), in, ``sys``
    build : Endpoint(descriptor_description(with_replay, due_bits)), out, ``sys``
        The same, without the empty ones.
    source : Endpoint(pace_description(with_stamps)), out, ``timebase``
    elapsed : Signal((due_bits, True)), in, ``sys``
        Ticks since the start of the program, never ahead of those of the pacer.
    stop : Signal(), in, ``sys``
        Level: hold nothing back, for the pacer throws it away.
    is_past : Signal(), out, ``sys``
        With replay: the descriptor at ``sink``, valid or not, was due before ``elapsed``.
    """
    def __init__(self, with_stamps=False, with_replay=False, due_bits=64):
        self.sink    = sink   = stream.Endpoint(descriptor_description(with_replay, due_bits))
        self.build   = build  = stream.Endpoint(descriptor_description(with_replay, due_bits))
        self.source  = source = stream.Endpoint(pace_description(with_stamps))
        self.elapsed = Signal((due_bits, True))
        self.stop    = Signal()
        if with_replay:
            self.is_past = Signal()

        # # #

        shown     = Record(pace_description(with_stamps).payload_layout)
        stream.set_reset_less(shown)
        is_open  = Signal() # It is due soon; ``shown`` is of this descriptor and stands still.
        is_built = Signal()
        is_taken = Signal()
        is_shown  = Signal()
        self.crossing = crossing = StillCrossing(len(shown), "sys", "timebase")
        self.taken    = taken    = PulseCrossing("timebase", "sys")
        self.add_due()
        self.comb += [
            sink.connect(build, omit={"valid", "ready"}),
            build.valid.eq(is_open & ~is_built & ~sink.empty),
            sink.ready.eq(is_open & (is_built | sink.empty) & is_taken),
            crossing.i.eq(shown.raw_bits()),
            crossing.take.eq(is_open & ~is_shown),
            source.payload.raw_bits().eq(crossing.o),
            taken.i.eq(source.valid & source.ready),
        ]
        self.sync += [
            If(~is_open,
                shown.hold.eq(sink.length + OVERHEAD - LINE_TICKS),
                shown.due.eq(self.due),
                *[getattr(shown, name).eq(getattr(sink, name)) for name, _ in shown.layout if name not in ("hold", "due")],
            ),
            If(sink.valid & (self.is_near | self.stop | sink.empty), is_open.eq(1)),
            If(crossing.take, is_shown.eq(1)),
            If(build.valid & build.ready, is_built.eq(1)),
            If(taken.o, is_taken.eq(1)),
            If(sink.ready,
                is_open.eq(0),
                is_shown.eq(0),
                is_built.eq(0),
                is_taken.eq(0),
            ),
        ]
        self.sync.timebase += [
            If(source.ready, source.valid.eq(0)),
            If(crossing.taken, source.valid.eq(1)),
        ]

    def add_due(self):
        """Tell whether the frame is due soon, and when, within what the pacer can tell apart."""
        near, most   = log2_int(HORIZON), log2_int(OVERDUE_MAX)
        ahead        = Signal(len(self.elapsed)) # Ticks until it is due, in two's complement.
        oldest       = Signal(DUE_BITS)
        is_overdue   = Signal()
        self.is_near = Signal()
        self.due     = Signal(DUE_BITS)
        self.comb += [
            ahead.eq(self.sink.due - self.elapsed),
            self.is_near.eq(ahead[-1] | (ahead[near:-1] == 0)),
            is_overdue.eq(ahead[-1] & (ahead[most:-1] != 2**(len(ahead) - 1 - most) - 1)),
            oldest.eq(self.elapsed[:DUE_BITS] - OVERDUE_MAX),
            self.due.eq(Mux(is_overdue, oldest, self.sink.due[:DUE_BITS])),
        ]
        if hasattr(self, "is_past"):
            self.comb += self.is_past.eq(ahead[-1])
