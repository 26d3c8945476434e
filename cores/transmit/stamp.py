# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Inserts the TX time stamp and updates the checksum."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.transmit.frames import octet_description

STAGES      = 4 # Octets between the sum and the place of its complement, and the two octets themselves.
STAMP_BITS  = 64
STAMP_TICKS = 5 # From octet to octet.
PLACE_TICKS = 3 # From where the walk is decided upon to the first octet of the stamp.
PART        = 16 # Bits of the time in which an octet is looked for at first.
MEND_OFFSET = 6 # From the identification of IPv4 to the checksum of its header.

class StampInserter(LiteXModule):
    """Writes the time of its own SFD, and the checksum complement, into each probe frame; in ``timebase``.

    The stamp is ``octets`` + 1 octets of the time, shifted right, the highest first. The checksum complement stands in the
    last two octets of the UDP payload (here: of the frame) and makes the one's complement sum of pseudo-header, UDP header
    and payload 0xffff, at even and odd lengths.

    Attributes
    ----------
    sink : Endpoint(octet_description()), in
        No stall: an octet a tick while valid; frames at least a tick apart.
    source : Endpoint(octet_description()), out
        Five ticks later.
    now : Signal(64), in
        Present time (ns), a tick late.
    sfd : Signal(), in
        High in the tick in which the SFD of this frame stands at the PHY's pads: at most 14 ticks after its first octet
        entered, or 15 where ``is_late``.
    payload_offset : Signal(8), in
        Start of the UDP payload (bytes), from 1; must stand still during a frame and the tick before, as all below.
    checksum_enable : Signal(), in
    checksum_seed : Signal(16), in
        One's complement sum of pseudo-header and UDP header, its checksum field included.
    enable : Signal(), in
        There is a stamp.
    is_late : Signal(), in
        The checksum complement does not cover any octet of the stamp, which may lie nearer to the frame's begin then.
    offset : Signal(8), in
        Of the first octet of the stamp in the frame: from 18 (with ``sfd`` in tick 14), or from 15 where ``is_late``.
    octets : Signal(3), in
        Of the stamp, less one.
    shift : Signal(4), in
        Nibbles by which the time is shifted right.
    nibble : Signal(), in
        The high nibble of the first octet stays as it is in the frame.
    mend : Signal(), in
        The stamp is the identification of IPv4, two octets, 0 so far: makes the checksum of that header right. Only where
        ``is_late``.

    Source: RFC 7820, section 3 (checksum complement); RFC 1071 (one's complement sum); RFC 1624 (eqn. 3).
    """
    def __init__(self):
        self.sink            = stream.Endpoint(octet_description())
        self.source          = stream.Endpoint(octet_description())
        self.now             = Signal(STAMP_BITS)
        self.sfd             = Signal()
        self.payload_offset  = Signal(8)
        self.checksum_enable = Signal()
        self.checksum_seed   = Signal(16)
        self.enable          = Signal()
        self.is_late         = Signal()
        self.offset          = Signal(8)
        self.octets          = Signal(3)
        self.shift           = Signal(4)
        self.nibble          = Signal()
        self.mend            = Signal()

        # # #

        self.stages     = [stream.Endpoint(octet_description()) for _ in range(STAGES)]
        self.in_payload = Signal(STAGES) # Octet of the stage belongs to a probe's payload.
        self.is_odd     = Signal(STAGES) # It has an odd place there.
        self.complement = Signal(16)
        self.position   = Signal(5) # Of the octet of the time that is chosen, in nibbles.
        self.octet      = Signal(8, reset_less=True) # It, two ticks later.
        self.is_stamp   = Signal()  # It belongs into the stamp,
        self.is_first   = Signal()  # as the first octet of it.
        for unreset in [*(octet.payload for octet in [*self.stages, self.source]), self.in_payload, self.is_odd, self.complement]:
            stream.set_reset_less(unreset) # Count only with ``valid``.
        self.add_payload()
        self.add_walk()
        self.add_octet()
        self.add_sum()
        self.add_complement()
        self.add_late()

    def add_payload(self):
        """Tell which octets belong to the payload, and put the stamp in there."""
        sink      = self.sink
        countdown = Signal(8, reset_less=True)
        is_inside = Signal() # This octet belongs to the payload.
        is_odd    = Signal()
        self.sync.timebase += [
            self.forward(sink, self.stages[0]),
            If(self.is_stamp & ~self.is_late, self.stages[0].data.eq(self.stamped(sink.data))),
            self.in_payload.eq(Cat(is_inside & sink.probe & sink.valid, self.in_payload)),
            self.is_odd.eq(Cat(is_odd, self.is_odd)),
            If(~sink.valid,
                countdown.eq(self.payload_offset - 1),
                is_inside.eq(0),
                is_odd.eq(0),
            ).Else(
                countdown.eq(countdown - 1),
                If(countdown == 0, is_inside.eq(1)),
                If(is_inside, is_odd.eq(~is_odd)),
            ),
        ]

    def stamped(self, data):
        """Return what stands in the place of an octet of the frame."""
        return Cat(self.octet[:4], Mux(self.nibble & self.is_first, data[4:], self.octet[4:]))

    def add_walk(self):
        """Count octets to the place of the stamp, then walk over those of the time, the highest first."""
        sink      = self.sink
        countdown = Signal(8, reset_less=True)
        is_passed = Signal()
        begins    = Signal()
        later     = Signal(STAGES) # Where the frame has passed all stages before it is written into.
        goes      = Signal()
        walks     = Signal(PLACE_TICKS)
        firsts    = Signal(PLACE_TICKS)
        left      = Signal(3, reset_less=True)
        self.comb += [
            begins.eq(sink.valid & sink.probe & self.enable & (countdown == 0) & ~is_passed),
            goes.eq(Mux(self.is_late, later[-1], begins)),
            self.position.eq(self.shift + Cat(Constant(0, 1), left)),
            self.is_stamp.eq(walks[-1]),
            self.is_first.eq(firsts[-1]),
        ]
        self.sync.timebase += [
            If(~sink.valid,
                countdown.eq(self.offset - PLACE_TICKS),
                is_passed.eq(0),
            ).Else(
                countdown.eq(countdown - 1),
                If(countdown == 0, is_passed.eq(1)),
            ),
            later.eq(Cat(begins, later)),
            walks.eq(Cat(goes | (walks[0] & (left != 0)), walks)),
            firsts.eq(Cat(goes, firsts)),
            left.eq(left - 1),
            If(goes, left.eq(self.octets)),
        ]

    def add_octet(self):
        """Take the time at the SFD, and choose an octet of it: first a part, then an octet of that."""
        stamp    = Signal(STAMP_BITS, reset_less=True)
        take     = Signal()
        part     = Signal(PART + 4, reset_less=True) # An octet may begin at the last nibble.
        position = Signal(2, reset_less=True) # Nibble within the part.
        above    = Cat(stamp, Constant(0, 4))
        # The index of Case: bits 2 and 3 of the position.
        parts    = {n: part.eq(above[PART*n:PART*n + len(part)]) for n in range(STAMP_BITS//PART)}
        nibbles  = {n: self.octet.eq(part[4*n:4*n + 8]) for n in range(PART//4)}
        self.sync.timebase += [
            take.eq(self.sfd),
            If(take, stamp.eq(self.now)),
            Case(self.position[2:4], parts),
            If(self.position[4], part.eq(0)),
            position.eq(self.position),
            Case(position, nibbles),
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

    def add_late(self):
        """Put a stamp that is in no sum in as the frame leaves, and mend the checksum of IPv4 after it."""
        last     = self.stages[3]
        written  = Signal(16, reset_less=True) # The last two octets of the stamp.
        total    = Signal(17, reset_less=True)
        mended   = Signal(16, reset_less=True)
        low      = Signal(8, reset_less=True) # Octet of it, a tick later.
        since   = Signal(MEND_OFFSET + 1) # Octets from the first one of the stamp to ``last``, one-hot, less one.
        checksum = Cat(self.stages[0].data, self.stages[1].data)
        self.sync.timebase += [
            since.eq(Cat(self.is_first & self.is_late & self.mend, since)),
            If(self.is_stamp, written.eq(Cat(self.octet, written))),
            # The checksum is the inverted sum.
            total.eq((checksum ^ 0xffff) + written),
            mended.eq((total[:16] + total[16]) ^ 0xffff),
            low.eq(mended),
            If(self.is_stamp & self.is_late, self.source.data.eq(self.stamped(last.data))),
            If(since[-2], self.source.data.eq(mended[8:])),
            If(since[-1], self.source.data.eq(low)),
        ]

    def forward(self, sink, source):
        """Copy an octet."""
        return [getattr(source, name).eq(getattr(sink, name)) for name in ["valid", "data", "last", "error", "probe"]]
