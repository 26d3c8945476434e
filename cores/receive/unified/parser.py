# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Classifies each frame at its end, and keeps its unified header."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import GIANT_LENGTH, MIN_LENGTH, IpProtocol, UnifiedFlag
from liteprobe.cores.octets import bytes_of_last_be
from liteprobe.cores.receive.frames import frame_layout, number_bits
from liteprobe.cores.receive.unified.key import KeyFields, ProbeFields, key_layout, probe_layout
from liteprobe.cores.receive.unified.walk import UnifiedWalk, any_of
from liteprobe.cores.receive.unified.store import HeaderStore, internal_layout

# Numbers ------------------------------------------------------------------------------------------

least_spacing  = 32 # Cycles between the ends of two frames that are classified.
# From the end of a frame until the next one may have come to a probe's fields: 50 octet times at 48 MHz, less the crossing.
passing_cycles = 14

# Layout -------------------------------------------------------------------------------------------

def seen_layout():
    """Return the fields that are known of every frame."""
    return [
        ("number",       number_bits), # Which SFD.
        ("length",       16),          # Bytes without FCS; saturates.
        ("fcs_error",    1),
        ("symbol_error", 1),
        ("runt",         1),           # Fewer than 60 bytes.
        ("giant",        1),           # More than 9018 bytes.
        ("is_classified", 1),          # Or it came too soon after the last one that was.
    ]

# Unified Parser -----------------------------------------------------------------------------------

class UnifiedParser(LiteXModule):
    """Classifies frames: flags, length, what a probe says; and fields for a filter and a unified header, where asked for.

    A frame that ends fewer than ``spacing`` cycles after the last one that was classified is not. Neither are frames
    that were cut by an overflow: they are counted where they were cut.

    Parameters
    ----------
    with_headers : bool
        With ``key``, ``probe``, ``layer3``, ``is_hashed``, ``after_ip`` and ``headers``.
    with_rarp, with_skip : bool
        As of `UnifiedWalk`.
    spacing : int
        Cycles from end to end, 2 at the least; ``least_spacing`` or more where anyone works on a frame after its end.

    Attributes
    ----------
    sink : Endpoint(frame_layout(32)), in
        Always ready.
    rest, is_busy : Signal, Signal(), out
        A frame that ends in this cycle is classified where both are 0.
    skip, skipped : Signal(), Signal(14), in
        With ``with_skip``, as of `PacketBound`.
    classifies : Signal(), out
        With the last word of a frame: it will be classified.
    seen, frame : Signal(), Record(seen_layout()), out
        One cycle for every frame that wasn't cut, two cycles after its last word: what is known of it.
    asks, key : Signal(), Record(key_layout()), out
        One cycle for each frame that is classified, the one before ``ended``: fields for a filter, in this cycle only.
    walk : UnifiedWalk
        Of the frame that passes, up to ``asks``.
    ended : Signal(), out
        One cycle for each frame that is classified, with ``seen``. From here to the next ``ended``:
    length, flags, is_probe : Signal(16), Signal(16), Signal(), out
        As in the unified header, ``flags`` up to PROBE; and whether it has all of a probe's fields.
    layer3, is_hashed : Signal(2), Signal(), out
        As in the unified header; and whether ports count for the flow: of a frame that has them and is not a fragment.
    passing : Record(probe_layout()), out
        What a probe says, where it says all of it; up to `passing_cycles` after ``ended``, when the next frame may have come
        so far.
    probe : Record(probe_layout()), out
        The same, held.
    after_ip : Signal(3), out
        As of `UnifiedWalk`.
    headers : HeaderStore
        Where its header is (``place``, ``has_place``) and how to read it. Words 0 to 3 and 6 are not in it.
    """
    def __init__(self, with_headers=True, with_rarp=False, with_skip=False, spacing=least_spacing):
        self.sink       = sink = stream.Endpoint(frame_layout(32))
        self.classifies = Signal()
        self.seen       = Signal()
        self.frame      = Record(seen_layout(), reset_less=True)
        self.asks       = Signal()
        self.ended      = Signal()
        self.length     = Signal(16, reset_less=True)
        self.flags      = Signal(16)
        self.is_probe   = Signal(reset_less=True)

        # # #

        self.walk = walk = UnifiedWalk(with_headers, with_rarp, with_skip)
        self.comb += sink.connect(walk.sink)

        # Which frames.
        # -------------
        ends         = Signal()
        just_ended   = Signal()
        classified   = self.asks
        rest         = Signal(max=spacing) # Cycles in which no frame is classified.
        is_busy      = Signal()
        self.rest, self.is_busy = rest, is_busy
        self.comb += [
            ends.eq(sink.valid & sink.last & ~sink.overflow),
            self.classifies.eq(ends & (rest == 0) & ~is_busy),
        ]
        self.sync += [
            If(rest != 0, rest.eq(rest - 1)),
            If(self.classifies, rest.eq(spacing - 1)),
            just_ended.eq(ends),
            classified.eq(self.classifies),
            self.seen.eq(just_ended),
            self.ended.eq(classified),
        ]

        # What they are.
        # --------------
        self.add_length(classified, with_skip)
        self.add_flags(classified)
        self.probe_fields = ProbeFields()
        self.passing      = self.probe_fields.fields
        self.add_probe(classified)
        if with_headers:
            self.headers = HeaderStore()
            self.comb   += is_busy.eq(self.headers.busy)
            self.add_headers(classified)
            self.add_key(classified)

    def add_length(self, classified, with_skip):
        """Count the words of the frame, and keep what the MAC says of it."""
        sink    = self.sink
        length  = Signal(16, reset_less=True)
        words   = Signal(14)
        full    = 2**len(words) - 1
        number  = Signal(number_bits, reset_less=True)
        verdict = Signal(2, reset_less=True)
        self.sync += [
            If(sink.valid,
                If(sink.last, words.eq(0)).Elif(words != full, words.eq(words + 1)),
                length.eq(Cat(Constant(0, 2), words) + bytes_of_last_be(sink.last_be)),
                If(words == full, length.eq(0xffff)),
                verdict.eq(Cat(sink.fcs_error, sink.symbol_error)),
                number.eq(sink.number),
            ),
            self.frame.number.eq(number),
            self.frame.length.eq(length),
            self.frame.fcs_error.eq(verdict[0]),
            self.frame.symbol_error.eq(verdict[1]),
            self.frame.runt.eq(length < MIN_LENGTH),
            self.frame.giant.eq(length > GIANT_LENGTH),
            self.frame.is_classified.eq(classified),
            If(classified, self.length.eq(length)),
        ]
        if with_skip:
            bound = self.walk.bound
            self.skip, self.skipped = bound.skip, bound.skipped
            passed = Signal(len(words) + 1)
            self.comb += passed.eq(words + self.skipped)
            self.sync += If(self.skip, words.eq(passed), If(passed[-1], words.eq(full)))
        self.last_length, self.verdict = length, verdict

    def add_flags(self, classified):
        """Hold the flags of the frame that has just ended."""
        walk   = self.walk
        length = self.last_length
        flags  = Signal(12)
        for flag, condition in [
            (UnifiedFlag.FCS_ERROR,      self.verdict[0]),
            (UnifiedFlag.SYMBOL_ERROR,   self.verdict[1]),
            (UnifiedFlag.RUNT,           length < MIN_LENGTH),
            (UnifiedFlag.GIANT,          length > GIANT_LENGTH),
            (UnifiedFlag.LENGTH_ERROR,   walk.is_bad_length),
            (UnifiedFlag.TRUNCATED,      walk.is_cut),
            (UnifiedFlag.UNPARSED,       walk.is_unparsed),
            (UnifiedFlag.FRAGMENT,       walk.is_fragment),
            (UnifiedFlag.FIRST_FRAGMENT, walk.is_first_fragment),
            (UnifiedFlag.TRANSPORT,      walk.has_transport),
            (UnifiedFlag.TCP,            walk.has_tcp),
            (UnifiedFlag.PROBE,          walk.has_probe),
        ]:
            self.comb += flags[log2_int(int(flag))].eq(condition)
        held_flags = Signal(len(flags), reset_less=True)
        self.comb += self.flags.eq(held_flags)
        self.sync += If(classified, held_flags.eq(flags))

    def add_probe(self, classified):
        """Take what a probe says."""
        walk, fields = self.walk, self.probe_fields
        self.comb += [
            *copied(fields, walk, "take", "state", "position"),
            fields.raw.eq(self.sink.data),
        ]
        self.sync += If(classified, self.is_probe.eq(walk.has_stamp))

    def add_headers(self, classified):
        """Hold what the walk found, and let the header have it."""
        self.layer3 = Signal(2)
        walk     = self.walk
        headers  = self.headers
        internal = Record(internal_layout(), reset_less=True)
        in_frame = Signal()
        known    = {
            "ethertype": walk.ethertype, "protocol": walk.protocol, "layers": Cat(walk.layer3, walk.tags, walk.labels),
            "kinds": walk.kinds, "first": walk.extensions[0], "second": walk.extensions[1],
        }
        held     = [Signal(len(value), reset_less=True, name=f"held_{name}") for name, value in known.items()]
        ethertype, protocol, layers, kinds, first, second = held
        self.comb += [
            headers.write.eq(walk.sink.valid),
            *copied(headers, walk, "address", "data"),
            headers.is_idle.eq(~in_frame & ~self.sink.valid),
            headers.close.eq(self.classifies),
            headers.status.eq(Cat(ethertype, protocol, layers, kinds, internal.raw_bits(), Constant(0, 3), first, second)),
            self.layer3.eq(layers[:2]),
        ]
        self.sync += [
            If(self.sink.valid, in_frame.eq(~self.sink.last)),
            If(classified,
                *[to.eq(value) for to, value in zip(held, known.values())],
                *copied(internal, walk, "has_link", "has_fragment", "has_transport"),
                internal.is_tcp.eq(walk.has_tcp),
                internal.is_probe.eq(walk.has_probe),
            ),
        ]

    def add_key(self, classified):
        """Show the fields of a filter, and hold what others ask for."""
        walk           = self.walk
        self.probe     = Record(probe_layout(), reset_less=True)
        self.key       = key = Record(key_layout())
        self.is_hashed = Signal(reset_less=True)
        self.after_ip    = Signal(3, reset_less=True)
        self.fields    = fields = KeyFields()
        self.comb += [
            fields.write.eq(walk.sink.valid),
            *copied(fields, walk, "address", "data"),
            key.eq(fields.key),
            *copied(key, walk, "layer3", "protocol"),
            key.has_ports.eq(walk.has_transport & any_of(walk.protocol, IpProtocol.TCP, IpProtocol.UDP, IpProtocol.SCTP)),
            key.has_tag.eq(walk.tags != 0),
            key.has_macs.eq(walk.has_link),
        ]
        self.sync += If(classified,
            self.probe.eq(self.passing),
            self.is_hashed.eq(key.has_ports & ~walk.is_fragment),
            self.after_ip.eq(walk.after_ip),
        )
