# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Decides keep or drop of each frame, and its channel, once every stage has said what it found."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import DAMAGE, UnifiedFlag
from liteprobe.cores.measure.measured import ERROR_BITS, measured_layout
from liteprobe.cores.receive.unified.key import probe_layout

# Sampler ------------------------------------------------------------------------------------------

shift_max = 4 # One frame in 16.

class Sampler(LiteXModule):
    """Chooses one frame in 2^``shift``: by count, the first of each; or by the hash of the packet.

    Attributes
    ----------
    shift : Signal(3), in
        Up to 4; more is taken for 4.
    by_hash : Signal(), in
        By the hash, not by count.
    hash : Signal(32), in
        Of the packet: those below 2^(32 - ``shift``) are chosen.
    frame : Signal(), in
        There is one to choose from.
    clear : Signal(), in
        The next frame is the first of a count.
    is_chosen : Signal(), out
        With ``frame``.
    """
    def __init__(self):
        self.shift     = Signal(3)
        self.by_hash   = Signal()
        self.hash      = Signal(32)
        self.frame     = Signal()
        self.clear     = Signal()
        self.is_chosen = Signal()

        # # #

        count     = Signal(shift_max)
        looked_at = Signal(shift_max)
        bits      = Signal(shift_max)
        self.comb += [
            # The highest bit of the hash counts first, the lowest of the count.
            bits.eq(Mux(self.by_hash, Cat(*reversed(self.hash[-shift_max:])), count)),
            looked_at.eq(Cat(*[self.shift > place for place in range(shift_max)])),
            self.is_chosen.eq((bits & looked_at) == 0),
        ]
        self.sync += [
            If(self.frame, count.eq(count + 1)),
            If(self.clear, count.eq(0)),
        ]

# Layouts ------------------------------------------------------------------------------------------

def finding_layout():
    """Return the fields that the stages found of a frame."""
    return [
        ("length",    16),
        ("flags",     16), # Up to PROBE.
        ("stamp",     64), # ns.
        ("hash",      32), # Of the flow.
        ("is_probe",   1), # It has all of a probe's fields.
        *probe_layout(),
        ("is_own",     1), # For the probe itself.
        ("snapped",   16), # Octets of it that are stored so far.
        ("is_lost",    1), # Or they found no space.
        ("place",      4), # Of its unified header.
        ("has_place",  1),
        ("bit_errors", ERROR_BITS), # As of `measured_layout`, as the next one.
        ("head",       2),
    ]

def answer_layout():
    """Return the fields of the filter's answer about a frame."""
    return [("matched", 1), ("passed", 1), ("rule", 8), ("names_channel", 1), ("channel", 3)]

def verdict_layout():
    """Return the fields that say what is recorded of a frame, and where it goes."""
    return [
        ("keep",       1), # A record of it.
        ("has_header", 1), # With all of its unified header.
        ("rule",       8),
        ("channel",    3),
        ("hash",      32),
        ("snapped",   16),
        ("is_lost",    1),
        ("place",      4),
        ("has_place",  1),
    ]

# Decision -----------------------------------------------------------------------------------------

# From ``ended`` to the cycle in which the stages' findings are taken: the flow hash is done, the next frame has not ended.
wait_cycles = 31
# Then until the channel table has answered.
table_cycles = 3

class Decision(LiteXModule):
    """Decides on each frame once the filter has answered: 56 cycles after ``ended``, while the next frame may have ended.

    Attributes
    ----------
    enable, keep_headers, keep_damaged, keep_own : Signal(), in
        Keep records at all; with unified headers; of frames with errors, runts and giants; of frames for the probe.
    sampler : Sampler
        Its ``shift`` and ``by_hash`` are settings; ``hash`` comes from `PacketHash`.
    takes, found : Signal(), Record(finding_layout()), in
        One cycle, ``wait_cycles`` after a frame's ``ended``, in which ``found`` is of this frame. From 32 cycles apart.
    answered, answer : Signal(), Record(answer_layout()), in
        One cycle, up to 54 cycles after ``ended`` and 31 or more after the last one; ``answer`` is held until the next one.
    flow, flow_channel : Signal(32), Signal(3), out and in
        A hash for the channel table, and what it says two cycles later.
    measured : Endpoint(measured_layout), out
        One cycle of ``valid`` for each frame, in order; all is held until the next one. Can't be stalled.
    verdict : Record(verdict_layout()), out
        With ``measured``.
    matched, sampled, damaged, own : Signal(), out
        With ``measured.valid``: the filter matched; passed and chosen; passed, but left out as damaged; or as the probe's own.
    """
    def __init__(self):
        self.enable       = Signal(reset=1)
        self.keep_headers = Signal()
        self.keep_damaged = Signal()
        self.keep_own     = Signal()
        self.sampler      = Sampler()
        self.takes        = Signal()
        self.found        = Record(finding_layout())
        self.answered     = Signal()
        self.answer       = Record(answer_layout())
        self.flow         = Signal(32)
        self.flow_channel = Signal(3)
        self.measured     = stream.Endpoint(measured_layout)
        self.verdict      = Record(verdict_layout(), reset_less=True)
        self.matched      = Signal()
        self.sampled      = Signal()
        self.damaged      = Signal()
        self.own          = Signal()

        # # #

        # Take over.
        # ----------
        # The stages go on with the next frame, so what they found moves on.
        takes      = self.takes
        taken      = Record(finding_layout(), reset_less=True)
        waits      = Signal(table_cycles)
        is_due     = Signal()
        has_answer = Signal()
        decides    = Signal()
        self.comb += [
            self.flow.eq(taken.hash),
            decides.eq(is_due & has_answer),
        ]
        self.sync += [
            If(takes, taken.eq(self.found)),
            waits.eq(Cat(takes, waits)),
            If(decides, is_due.eq(0), has_answer.eq(0)),
            If(waits[-1], is_due.eq(1)),
            If(self.answered, has_answer.eq(1)),
        ]
        self.add_verdict(taken, decides)

    def add_verdict(self, taken, decides):
        """Decide, and hold it."""
        answer, sampler, verdict, measured = self.answer, self.sampler, self.verdict, self.measured
        is_damaged   = Signal()
        is_whole     = Signal()
        is_candidate = Signal()
        keeps        = Signal()
        has_header   = Signal()
        flags        = Signal(16)
        self.comb += [
            is_damaged.eq(((taken.flags & int(DAMAGE)) != 0) & ~self.keep_damaged),
            is_whole.eq(~is_damaged & ~(taken.is_own & ~self.keep_own)),
            is_candidate.eq(answer.passed & is_whole & self.enable),
            sampler.frame.eq(decides & is_candidate),
            keeps.eq(is_candidate & sampler.is_chosen),
            has_header.eq(self.keep_headers & taken.has_place & ~taken.is_lost),
            flags.eq(taken.flags),
        ]
        for flag, condition in [
            (UnifiedFlag.MATCHED, answer.matched),
            (UnifiedFlag.SAMPLED, sampler.shift != 0),
            (UnifiedFlag.HEADER,  has_header),
        ]:
            self.comb += flags[log2_int(int(flag))].eq(condition)
        self.sync += [
            measured.valid.eq(decides),
            If(decides,
                *copied(measured, taken, "stamp", "length", "is_probe", "stream_id", "sequence", "tx_stamp", "bit_errors", "head"),
                measured.flags.eq(flags),
                measured.passed.eq(answer.passed),
                *copied(verdict, taken, "hash", "snapped", "is_lost", "place", "has_place"),
                verdict.keep.eq(keeps),
                verdict.has_header.eq(has_header),
                verdict.rule.eq(answer.rule),
                verdict.channel.eq(Mux(answer.names_channel, answer.channel, self.flow_channel)),
                self.matched.eq(answer.matched),
                self.sampled.eq(keeps),
                self.damaged.eq(answer.passed & self.enable & is_damaged),
                self.own.eq(answer.passed & self.enable & ~is_damaged & ~is_whole),
            ),
        ]
        stream.set_reset_less(measured.payload)
