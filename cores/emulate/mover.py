# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Brings the octets of the frames that are kept from where they came in to the store."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.capture.descriptors import descriptor_layout
from liteprobe.cores.emulate.kept import lut_ports
from liteprobe.cores.emulate.layouts import LANE_BITS, POSITION_BITS, verdict_layout
from liteprobe.cores.formats.emulate import LANES

# Frame Mover --------------------------------------------------------------------------------------

class FrameMover(LiteXModule):
    """Takes the frame at hand for each verdict, and writes its words to the store, or lets them go.

    Attributes
    ----------
    drains : Signal(), in
        Level: no program runs; all frames go, and so do verdicts.
    anew : Signal(), in
        Pulse, while ``drains``: the rings are empty from some cycles after the store is idle.
    verdicts : Endpoint(verdict_layout), in
    descriptor, data, skip : Endpoint(descriptor_layout()), Endpoint([("data", 32)]), Signal(), in, in and out
        Of `Staging`: each frame that came in, in order.
    store : FrameStore
        ``write``, ``write_data``, ``written`` and ``is_idle`` of it are driven and looked at.
    lane, position : Signal(4), Signal(22), in and out
        Up to where the words of a lane are in the store, or on their way there before any read that is asked for later.

    A frame takes its words in cycles, and some five more.
    """
    def __init__(self, store):
        # The engine gives a verdict where it is taken at once, and only then: whether is known in its cycle.
        self.queue      = queue      = stream.Buffer(verdict_layout, pipe_valid=True, pipe_ready=True)
        self.verdicts   = queue.sink
        self.descriptor = descriptor = stream.Endpoint(descriptor_layout())
        self.data       = data       = stream.Endpoint([("data", 32)])
        self.skip       = Signal()
        self.drains     = Signal()
        self.anew       = Signal()
        self.lane       = Signal(LANE_BITS)
        self.position   = Signal(POSITION_BITS)

        # # #

        write_moved, look = lut_ports(self, "moved", POSITION_BITS, LANES)
        verdict  = queue.source
        write    = store.write
        clear    = Signal(LANE_BITS)
        clears   = Signal()
        is_asked = Signal() # For empty rings.
        keeps    = Signal()
        self.comb += [
            look.adr.eq(self.lane),
            self.position.eq(look.dat_r),
            write_moved.adr.eq(Mux(clears, clear, store.written_lane)),
            write_moved.dat_w.eq(Mux(clears, 0, store.written_position)),
            write_moved.we.eq(clears | store.written),
            keeps.eq(verdict.keep & ~self.drains),
            self.skip.eq(~keeps),
            write.lane.eq(verdict.lane),
            write.position.eq(verdict.position),
            write.words.eq(descriptor.words),
            store.write_data.data.eq(data.data),
        ]
        self.sync += If(self.anew, is_asked.eq(1)).Elif(clears, is_asked.eq(0))
        self.fsm = fsm = FSM(reset_state="CLEAR")
        fsm.act("CLEAR",
            clears.eq(1),
            NextValue(clear, clear + 1),
            If(clear == LANES - 1, NextValue(clear, 0), NextState("WAIT")),
        )
        fsm.act("WAIT",
            If(is_asked & store.is_idle,
                NextState("CLEAR"),
            ).Elif(self.drains,
                verdict.ready.eq(1),
                descriptor.ready.eq(1),
            ).Elif(verdict.valid & descriptor.valid,
                write.valid.eq(keeps),
                If(write.ready | ~keeps,
                    verdict.ready.eq(1),
                    descriptor.ready.eq(1),
                    If(keeps, NextState("MOVE")),
                ),
            ),
        )
        fsm.act("MOVE",
            data.connect(store.write_data, keep={"valid", "ready"}),
            If(data.valid & data.ready & data.last, NextState("WAIT")),
        )
