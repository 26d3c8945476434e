# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Writes lengths and checksums into a header, and makes the descriptor of its frame."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import STREAM_FIELDS
from liteprobe.cores.transmit.frames import build_layout, descriptor_description, stamp_layout
from liteprobe.cores.transmit.sources.edits import edit_description
from liteprobe.cores.transmit.sources.length import field
from liteprobe.cores.transmit.sources.streams.scheduler import frame_layout

HALF_BITS = 16

PASSED_ON = ["stream", "sequence", "length", "due", "final", "empty"]

# Where the settings of a descriptor come from; its checksum seed is worked out.
SETTINGS = {name: {"stamp_octets": "stamp_octets_less_1"}.get(name, name)
    for name, _ in build_layout + stamp_layout if name not in ("stream", "checksum_seed")}

# Ones Sum -----------------------------------------------------------------------------------------

class OnesSum(LiteXModule):
    """Adds up halfwords in one's complement, one a cycle; one more cycle of 0 and the sum is whole.

    One is enough: a carry never comes with a sum of 0xffff, for that takes one before.

    Attributes
    ----------
    value : Signal(16), in
    clear : Signal(), in
    sum : Signal(16), out
        Never 0 once anything but 0 was added.

    Source: RFC 1071.
    """
    def __init__(self):
        self.value = Signal(HALF_BITS)
        self.clear = Signal()
        self.sum   = Signal(HALF_BITS)

        # # #

        carry = Signal()
        self.sync += [
            Cat(self.sum, carry).eq(self.sum + self.value + carry),
            If(self.clear,
                self.sum.eq(0),
                carry.eq(0),
            ),
        ]

# Frame Finish -------------------------------------------------------------------------------------

class FrameFinish(LiteXModule):
    """Writes what depends on the whole of a header, and passes its frame on when the header is ready.

    Attributes
    ----------
    sink : Endpoint(frame_layout), in
    source : Endpoint(descriptor_description()), out
    may_edit : Signal(), out
        The edits and sums of the next frame to come may come, or those of the frame that is here and waits for them.
    is_modified : Signal(), in
        From the cycle after `sink` is taken on, at the latest: the modifiers of its frame are done, but for one more half.
    half, in_ipv4, in_seed : Signal(16), Signal(), Signal(), in
        As of `ModifierEngine`.
    edit : Endpoint(edit_description()), out
        To be taken at once.
    is_written : Signal(), in
        All edits are written.
    """
    def __init__(self):
        self.sink        = sink   = stream.Endpoint(frame_layout)
        self.source      = source = stream.Endpoint(descriptor_description())
        stream.set_reset_less(source.payload)
        self.may_edit    = Signal()
        self.is_modified = Signal()
        self.half        = Signal(HALF_BITS)
        self.in_ipv4     = Signal()
        self.in_seed     = Signal()
        self.edit        = edit = stream.Endpoint(edit_description())
        self.is_written  = Signal()

        # # #

        self.frame = frame = Record(sink.payload.layout)
        stream.set_reset_less(frame)
        self.ipv4  = OnesSum()
        self.seed  = OnesSum()
        self.steps = steps = [Signal(name=f"is_step_{n}") for n in range(3)]
        words      = [frame.control, frame.places, frame.fields, frame.sums]
        def setting(name):
            return field(words[STREAM_FIELDS[name].word], name)

        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            self.may_edit.eq(1),
            sink.ready.eq(1),
            If(sink.valid, If(sink.final, NextState("PASS")).Else(NextState("WAIT"))),
        )
        fsm.act("WAIT",
            self.may_edit.eq(1),
            If(self.is_modified, NextState("NETWORK")),
        )
        for n, (state, next_state) in enumerate([
            ("NETWORK", "UDP"), ("UDP", "FOLD"), ("FOLD", "CHECKSUM")]):
            fsm.act(state, steps[n].eq(1), NextState(next_state))
        fsm.act("CHECKSUM", edit.valid.eq(setting("ipv4_write")), NextState("WRITE"))
        fsm.act("WRITE", If(self.is_written, NextState("PASS")))
        fsm.act("PASS",
            If(~source.valid | source.ready,
                self.ipv4.clear.eq(1),
                self.seed.clear.eq(1),
                NextState("IDLE"),
            ),
        )
        self.sync += [
            If(fsm.ongoing("IDLE"), frame.eq(sink.payload)),
            If(source.ready, source.valid.eq(0)),
            If(fsm.ongoing("PASS") & (~source.valid | source.ready),
                source.valid.eq(1),
                *[getattr(source, name).eq(getattr(frame, name)) for name in PASSED_ON],
                *[getattr(source, name).eq(setting(origin)) for name, origin in SETTINGS.items()],
                source.checksum_seed.eq(self.seed.sum),
            ),
        ]
        self.comb += [
            source.first.eq(1),
            source.last.eq(1),
        ]
        self.add_sums(setting)

    def add_sums(self, setting):
        """Add up the sums, and make edits of the lengths and the checksum."""
        frame, edit, steps = self.frame, self.edit, self.steps
        part = Signal(HALF_BITS) # A length, without what comes before.
        is_network, is_udp, is_fold = steps
        def only(when, value):
            return Replicate(when, HALF_BITS) & value
        self.comb += [
            part.eq(frame.length - Mux(is_network, setting("network_base"), setting("transport_offset"))),
            self.ipv4.value.eq(
                only(self.in_ipv4, self.half) |
                only(is_network & setting("network_write"), part) |
                only(is_udp, setting("ipv4_sum"))),
            self.seed.value.eq(
                only(self.in_seed, self.half) |
                only(is_network, setting("checksum_seed")) |
                only((is_udp & (setting("seed_lengths") != 0)) | (is_fold & setting("seed_lengths")[1]), part)),
            edit.stream.eq(frame.stream),
            edit.writes.eq(0b10),
            edit.halfword.eq(setting("ipv4_halfword")),
            edit.window[16:].eq(~self.ipv4.sum),
            If(is_network,
                edit.valid.eq(setting("network_write")),
                edit.halfword.eq(setting("network_halfword")),
                edit.window[16:].eq(part),
            ),
            If(is_udp,
                edit.valid.eq(setting("udp_write")),
                edit.halfword.eq(setting("udp_halfword")),
                edit.window[16:].eq(part),
            ),
        ]
