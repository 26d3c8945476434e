# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Brings the octets of the frames that are kept from where they came in to the store."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.capture.descriptors import descriptor_layout
from liteprobe.cores.emulate.layouts import LANE_BITS, POSITION_BITS, verdict_layout
from liteprobe.cores.emulate.store import request_layout
from liteprobe.cores.formats.emulate import LANES

# Frame Mover --------------------------------------------------------------------------------------

class FrameMover(LiteXModule):
    """Takes the frame at hand for each verdict, and writes its words to the store, or lets them go.

    After a reset the rings are empty.

    Attributes
    ----------
    verdicts : Endpoint(verdict_layout), in
    descriptor, data, skip : Endpoint(descriptor_layout()), Endpoint([("data", 32)]), Signal(), in, in and out
        Of `Staging`: each frame that came in, in order.
    write, write_data : Endpoint(request_layout), Endpoint([("data", 32)]), out
        Of a `FrameStore`.
    lane, position : Signal(4), Signal(22), in and out
        Up to where the words of a lane are in the store, or on their way there before any read that is asked for later.

    A frame takes its words in cycles, and some eight more.
    """
    def __init__(self):
        # The engine gives a verdict where it is taken at once, and only then.
        self.queue      = queue      = stream.Buffer(verdict_layout)
        self.verdicts   = queue.sink
        self.descriptor = descriptor = stream.Endpoint(descriptor_layout())
        self.data       = data       = stream.Endpoint([("data", 32)])
        self.skip       = Signal()
        self.write      = write      = stream.Endpoint(request_layout)
        self.write_data = stream.Endpoint([("data", 32)])
        self.lane       = Signal(LANE_BITS)
        self.position   = Signal(POSITION_BITS)

        # # #

        # Else LiteX gives the memory a page of the CSR bus.
        self.autocsr_exclude = {"moved"}
        verdicts = queue.source
        self.moved  = moved = Memory(POSITION_BITS, LANES, name="moved")
        look, write_moved = moved.get_port(async_read=True), moved.get_port(write_capable=True)
        self.specials += moved, look, write_moved
        clear    = Signal(LANE_BITS)
        clears   = Signal()
        is_moved = Signal()
        end      = Signal(POSITION_BITS, reset_less=True)
        lane     = Signal(LANE_BITS, reset_less=True)
        self.comb += [
            look.adr.eq(self.lane),
            self.position.eq(look.dat_r),
            write_moved.adr.eq(Mux(clears, clear, lane)),
            write_moved.dat_w.eq(Mux(clears, 0, end)),
            write_moved.we.eq(clears | is_moved),
            self.skip.eq(~verdicts.keep),
            write.lane.eq(verdicts.lane),
            write.position.eq(verdicts.position),
            write.words.eq(descriptor.words),
            data.connect(self.write_data, omit={"valid", "ready"}),
        ]
        self.fsm = fsm = FSM(reset_state="CLEAR")
        fsm.act("CLEAR",
            clears.eq(1),
            NextValue(clear, clear + 1),
            If(clear == LANES - 1, NextState("WAIT")),
        )
        fsm.act("WAIT",
            NextValue(lane, verdicts.lane),
            NextValue(end, verdicts.position + descriptor.words),
            If(verdicts.valid & descriptor.valid,
                write.valid.eq(verdicts.keep),
                If(write.ready | ~verdicts.keep,
                    verdicts.ready.eq(1),
                    descriptor.ready.eq(1),
                    If(verdicts.keep, NextState("MOVE")),
                ),
            ),
        )
        fsm.act("MOVE",
            data.connect(self.write_data, keep={"valid", "ready"}),
            If(data.valid & data.ready & data.last, NextState("MOVED")),
        )
        # The store takes the next request when these words are with the memory.
        fsm.act("MOVED",
            If(write.ready,
                is_moved.eq(1),
                NextState("WAIT"),
            ),
        )
