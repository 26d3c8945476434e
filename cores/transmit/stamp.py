# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""When the frame left, and the checksum that this takes."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import STAMP_OCTETS, STAMP_OFFSET
from liteprobe.cores.transmit.frames import octet_description

STAGES = 4 # Octets between the sum and the place of its complement, and the two octets themselves.

# Stamp --------------------------------------------------------------------------------------------

class Stamp(LiteXModule):
    """Writes the time of its own SFD, and the checksum complement, into each probe frame; in ``timebase``.

    The checksum complement stands in the last two octets of the UDP payload (here: of the frame) and makes
    the one's complement sum of pseudo-header, UDP header and payload 0xffff, at even and odd lengths.

    Attributes
    ----------
    sink : Endpoint(octet_description()), in
        No stall: an octet a tick while valid; frames at least a tick apart.
    source : Endpoint(octet_description()), out
        Five ticks later.
    now : Signal(64), in
        Present time (ns), a tick late.
    sfd : Signal(), in
        High in the tick in which the SFD of this frame stands at the PHY's pads; must come before octet
        ``payload_offset + 9`` enters.
    payload_offset : Signal(8), in
        Start of the UDP payload (bytes), from 24; must stand still during a frame, as all below.
    checksum_enable : Signal(), in
    checksum_seed : Signal(16), in
        One's complement sum of pseudo-header and UDP header, its checksum field included.

    Source: RFC 7820, section 3 (checksum complement); RFC 1071 (one's complement sum).
    """
    def __init__(self):
        self.sink            = stream.Endpoint(octet_description())
        self.source          = stream.Endpoint(octet_description())
        self.now             = Signal(64)
        self.sfd             = Signal()
        self.payload_offset  = Signal(8)
        self.checksum_enable = Signal()
        self.checksum_seed   = Signal(16)

        # # #

        self.stages     = [stream.Endpoint(octet_description()) for _ in range(STAGES)]
        self.in_payload = Signal(STAGES) # Octet of the stage belongs to a probe's payload.
        self.is_odd     = Signal(STAGES) # It has an odd place there.
        self.complement = Signal(16)
        for unreset in [*(octet.payload for octet in [*self.stages, self.source]), self.in_payload, self.is_odd, self.complement]:
            stream.set_reset_less(unreset) # Count only with ``valid``.
        self.add_stamp()
        self.add_sum()
        self.add_complement()

    def add_stamp(self):
        """Count octets to the place of the stamp and shift it in, highest octet first."""
        sink      = self.sink
        stage     = self.stages[0]
        stamp     = Signal(64, reset_less=True)
        countdown = Signal(8, reset_less=True)
        is_inside = Signal() # This octet belongs to the payload.
        is_odd    = Signal()
        place     = Signal(max=STAMP_OFFSET + STAMP_OCTETS + 1)
        is_stamp  = Signal()
        starts    = Signal() # So it is with the next octet.
        ends      = Signal()
        take      = Signal()
        moves     = Signal() # Takes, or shifts: 64 bits need to know it at once, far apart.
        self.comb += [
            starts.eq(is_inside & (place == STAMP_OFFSET - 1) & sink.probe),
            ends.eq(is_inside & (place == STAMP_OFFSET + STAMP_OCTETS - 1)),
        ]
        self.sync.timebase += [
            self.forward(sink, stage),
            self.in_payload.eq(Cat(is_inside & sink.probe & sink.valid, self.in_payload)),
            self.is_odd.eq(Cat(is_odd, self.is_odd)),
            If(~sink.valid,
                countdown.eq(self.payload_offset - 1),
                is_inside.eq(0),
                is_odd.eq(0),
                place.eq(0),
                is_stamp.eq(0),
            ).Else(
                countdown.eq(countdown - 1),
                If(countdown == 0, is_inside.eq(1)),
                If(is_inside,
                    is_odd.eq(~is_odd),
                    If(place != STAMP_OFFSET + STAMP_OCTETS, place.eq(place + 1)),
                ),
                is_stamp.eq(starts | (is_stamp & ~ends)),
            ),
            If(is_stamp, stage.data.eq(stamp[-8:])),
            take.eq(self.sfd),
            moves.eq(self.sfd | (sink.valid & (starts | (is_stamp & ~ends)))),
            If(moves, stamp.eq(Mux(take, self.now, stamp << 8))),
        ]

    def add_sum(self):
        """Sum up the payload but for its last two octets, the carry one octet late."""
        octet  = self.stages[2]
        before = self.stages[1] # What ``octet`` is a tick later.
        total  = Signal(16)
        carry  = Signal()
        high   = Signal(8) # Of ``octet``, where it counts; else zero.
        low    = Signal(8)
        keep   = Signal()
        unused = Signal()
        for unreset in [total, carry, high, low]:
            stream.set_reset_less(unreset) # Set up between frames.
        self.comb += keep.eq(self.in_payload[1] & ~before.last & ~self.stages[0].last)
        self.sync.timebase += [
            low.eq(0),
            high.eq(0),
            If(keep & self.is_odd[1], low.eq(before.data)),
            If(keep & ~self.is_odd[1], high.eq(before.data)),
            Cat(unused, total, carry).eq(Cat(Constant(1, 1), total) + Cat(carry, low, high)),
            If(~octet.valid,
                total.eq(self.checksum_seed),
                carry.eq(0),
            ),
            # No carry is left over: after one, total is below 0xffff.
            self.complement.eq(~(total + carry)),
        ]

    def add_complement(self):
        """Move octets on, and put the complement in place of the last two."""
        last = self.stages[3]
        for stage, after in zip(self.stages, self.stages[1:]):
            self.sync.timebase += self.forward(stage, after)
        self.sync.timebase += [
            self.forward(last, self.source),
            If(self.checksum_enable & self.in_payload[3] & (self.stages[2].last | last.last),
                self.source.data.eq(Mux(self.is_odd[3], self.complement[:8], self.complement[8:])),
            ),
        ]

    def forward(self, sink, source):
        """Copy an octet."""
        return [getattr(source, name).eq(getattr(sink, name)) for name in ["valid", "data", "last", "error", "probe"]]
