# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What the pacer must know of a frame goes ahead of its octets."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.crossing import StreamCrossing
from liteprobe.cores.formats import OVERHEAD
from liteprobe.cores.transmit.frames import descriptor_description, pace_description, timing_layout
from liteprobe.cores.transmit.line import LINE_TICKS

DEPTH = 4 # More frames than the words between the two ends can hold.

# Announcer ----------------------------------------------------------------------------------------

class Announcer(LiteXModule):
    """Tells the pacer of each frame, then lets it be built; from ``sys`` to ``timebase``.

    Octets of a frame come only once the pacer's side of the queue has room for its descriptor, so both ends count the
    same frames. An ``empty`` descriptor is told, and nothing is built.

    Attributes
    ----------
    sink : Endpoint(descriptor_description()), in, ``sys``
    build : Endpoint(descriptor_description()), out, ``sys``
        The same, without the empty ones.
    source : Endpoint(pace_description()), out, ``timebase``
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(descriptor_description())
        self.build  = build  = stream.Endpoint(descriptor_description())
        self.source = source = stream.Endpoint(pace_description())

        # # #

        self.queue = queue = StreamCrossing(pace_description(), "sys", "timebase", depth=DEPTH, rests="timebase")
        is_told = Signal()
        self.comb += [
            queue.sink.valid.eq(sink.valid & ~is_told),
            queue.sink.hold.eq(sink.length + OVERHEAD - LINE_TICKS),
            *[getattr(queue.sink, name).eq(getattr(sink, name)) for name, _ in timing_layout],
            sink.connect(build, omit={"valid", "ready"}),
            build.valid.eq(sink.valid & is_told & ~sink.empty),
            sink.ready.eq(is_told & (build.ready | sink.empty)),
            queue.source.connect(source),
        ]
        self.sync += [
            If(sink.valid & sink.ready, is_told.eq(0)),
            If(queue.sink.valid & queue.sink.ready, is_told.eq(1)),
        ]
