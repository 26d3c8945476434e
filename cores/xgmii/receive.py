# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes frames from XGMII: finds start, SFD and end in any lane that clause 46 allows, checks the FCS and takes it off."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import MIN_LENGTH, PREAMBLE_OCTET, SFD_OCTET
from liteprobe.cores.formats.xgmii import COLUMN, LANES, Control, LinkState
from liteprobe.cores.receive.frames import frame_layout, number_bits
from liteprobe.cores.xgmii.crc import RESIDUE, addend, advanced, stepped

START_COLUMN = int.from_bytes(bytes([Control.START] + [PREAMBLE_OCTET]*3), "little")
SFD_COLUMN   = int.from_bytes(bytes([PREAMBLE_OCTET]*3 + [SFD_OCTET]), "little")
SFD_CYCLES   = 3
RUNT_WORDS   = (MIN_LENGTH + 4)//LANES # With FCS: a frame of fewer words is shorter than the shortest.

# Column Decoder -----------------------------------------------------------------------------------

class ColumnDecoder(LiteXModule):
    """Says what four lanes mean; registered.

    Attributes
    ----------
    data, control : Signal(32), Signal(4), in
    octets : Signal(32), out
        The data.
    is_start, is_clean : Signal(), Signal(), out
        A start in the first lane; with the preamble's next octets, as they must be.
    is_sfd : Signal(), out
        The second half of a preamble.
    ends, terminates, errors : Signal(4), Signal(4), Signal(4), out
        Lanes that end a frame, those of them that do so by a terminate, and lanes with an error.
    is_misplaced : Signal(), out
        A start in another lane than the first.
    is_local, is_remote : Signal(), Signal(), out
        Local fault and remote fault ordered sets.
    """
    def __init__(self):
        self.data         = Signal(8*COLUMN)
        self.control      = Signal(COLUMN)
        self.octets       = Signal(8*COLUMN, reset_less=True)
        self.is_start     = Signal()
        self.is_clean     = Signal()
        self.is_sfd       = Signal()
        self.ends         = Signal(COLUMN)
        self.terminates   = Signal(COLUMN)
        self.errors       = Signal(COLUMN)
        self.is_misplaced = Signal()
        self.is_local     = Signal()
        self.is_remote    = Signal()

        # # #

        def lanes(character):
            """Return the lanes with a control character."""
            return Cat(*((self.data[8*n:8*n + 8] == int(character)) & self.control[n] for n in range(COLUMN)))

        def sequence(fault):
            """Return whether this is the ordered set of a fault."""
            return (self.control == 1) & (self.data == int.from_bytes(bytes([Control.SEQUENCE, 0, 0, fault]), "little"))

        starts = Signal(COLUMN)
        errors = Signal(COLUMN)
        self.comb += [
            starts.eq(lanes(Control.START)),
            errors.eq(lanes(Control.ERROR)),
        ]
        self.sync += [
            self.octets.eq(self.data),
            self.is_start.eq(starts[0]),
            self.is_clean.eq((self.control == 1) & (self.data == START_COLUMN)),
            self.is_sfd.eq((self.control == 0) & (self.data == SFD_COLUMN)),
            self.ends.eq(self.control & ~errors),
            self.terminates.eq(lanes(Control.TERMINATE)),
            self.errors.eq(errors),
            self.is_misplaced.eq(starts[1:] != 0),
            self.is_local.eq(sequence(LinkState.LOCAL_FAULT)),
            self.is_remote.eq(sequence(LinkState.REMOTE_FAULT)),
        ]

# Frame Finder -------------------------------------------------------------------------------------

class FrameFinder(LiteXModule):
    """Finds frames that start in lane 0 or 4, and turns their words so that each frame starts with its first octet in lane 0.

    A preamble is a start, six octets 0x55 and the SFD; anything else refuses the frame. A frame ends at the first control
    character but an error. The next one may start in the next column, whatever the gap.

    Attributes
    ----------
    data, control : Signal(64), Signal(8), in
        XGMII, registered at the pads.
    valid : Signal(), out
        A word of a frame, its FCS included, or its end.
    word : Signal(64), out
        Zeros from the end on.
    is_first, is_last : Signal(), Signal(), out
        First word of a frame; its end, which has 0 to 7 ``octets``.
    octets : Signal(3), out
    symbol_error : Signal(), out
        With ``is_last``: an error character was in the frame, or something else than a terminate ended it.
    is_runt : Signal(), out
        With ``is_last``: shorter than 60 octets.
    number : Signal(number_bits), out
        Which SFD; stands with the frame.
    sfd, sfd_high : Signal(), Signal(), out
        Each SFD that was accepted, two cycles after it stood on ``data``; in lane 7, else in lane 3.
    refused : Signal(2), out
        Starts without a right preamble, in this cycle.
    is_misplaced : Signal(), out
        A start in a lane where none may be.
    local, remote : Signal(2), Signal(2), out
        Columns of this cycle, the first in bit 0, that are ordered sets of a local or remote fault.

    Source: IEEE 802.3, 46.2, 46.3.2 and 46.3.3.
    """
    def __init__(self):
        self.data         = Signal(8*LANES)
        self.control      = Signal(LANES)
        self.valid        = Signal()
        self.word         = Signal(8*LANES, reset_less=True)
        self.is_first     = Signal()
        self.is_last      = Signal()
        self.octets       = Signal(3)
        self.symbol_error = Signal()
        self.is_runt      = Signal()
        self.number       = Signal(number_bits)
        self.sfd          = Signal()
        self.sfd_high     = Signal()
        self.refused      = Signal(2)
        self.is_misplaced = Signal()
        self.local        = Signal(2)
        self.remote       = Signal(2)

        # # #

        self.low  = ColumnDecoder() # The present word,
        self.high = ColumnDecoder()
        self.comb += [
            Cat(self.low.data, self.high.data).eq(self.data),
            Cat(self.low.control, self.high.control).eq(self.control),
        ]
        self.add_starts()
        self.add_words()
        self.add_ends()

    def add_starts(self):
        """Accept a start in either column, or refuse it, and follow the frame up to its end."""
        low, high = self.low, self.high
        self.in_frame  = Signal() # The present columns belong to a frame,
        self.is_turned = Signal() # that started in lane 4: the high column of the word before, and this low one.
        self.is_begun  = Signal()
        was_start = Signal() # Of the high column of the word before.
        was_clean = Signal()
        has_ended = Signal() # In that column.
        accepts   = Signal(2) # In lane 0, in lane 4.
        is_over   = Signal()
        self.comb += [
            accepts.eq(Cat(low.is_clean & high.is_sfd, was_clean & low.is_sfd)),
            is_over.eq((low.ends != 0) | Mux(self.is_turned, has_ended, high.ends != 0)),
        ]
        self.sync += [
            was_start.eq(high.is_start),
            was_clean.eq(high.is_clean),
            has_ended.eq(high.ends != 0),
            self.is_begun.eq(accepts != 0),
            If(accepts != 0,
                self.in_frame.eq(1),
                self.is_turned.eq(accepts[1]),
            ).Elif(is_over,
                self.in_frame.eq(0),
            ),
            self.sfd.eq(accepts != 0),
            self.sfd_high.eq(accepts[0]),
            self.refused.eq((low.is_start & ~accepts[0]) + (was_start & ~accepts[1])),
            self.is_misplaced.eq(low.is_misplaced | high.is_misplaced),
            self.local.eq(Cat(low.is_local, high.is_local)),
            self.remote.eq(Cat(low.is_remote, high.is_remote)),
        ]

    def add_words(self):
        """Turn the columns of a frame."""
        low, high = self.low, self.high
        self.turned       = Signal(8*LANES, reset_less=True)
        self.ends         = Signal(LANES)
        self.terminates   = Signal(LANES)
        self.errors       = Signal(LANES)
        self.turned_valid = Signal()
        self.turned_first = Signal()
        for name, turned in [
            ("octets",     self.turned),
            ("ends",       self.ends),
            ("terminates", self.terminates),
            ("errors",     self.errors),
        ]:
            half   = len(turned)//2
            before = Signal(half, name=f"{name}_before")
            self.sync += [
                before.eq(getattr(high, name)),
                If(self.is_turned,
                    turned.eq(Cat(before, getattr(low, name))),
                ).Else(
                    turned.eq(Cat(getattr(low, name), getattr(high, name))),
                ),
            ]
        self.sync += [
            self.turned_valid.eq(self.in_frame),
            self.turned_first.eq(self.is_begun),
        ]

    def add_ends(self):
        """Find the first lane that ends the frame, and whether there was an error before."""
        is_kept   = Signal(LANES) # Lanes before the end.
        is_wrong  = Signal() # Since the frame began.
        was_wrong = Signal()
        index     = Signal(max=RUNT_WORDS + 1) # Words of the frame so far, up to the shortest whole one.
        present   = Signal(max=RUNT_WORDS + 1)
        number    = Signal(number_bits)
        ends      = [self.ends[:lane + 1] != 0 for lane in range(LANES)]
        first     = [self.ends[0]] + [self.ends[lane] & ~(self.ends[:lane] != 0) for lane in range(1, LANES)]
        self.comb += [
            *(is_kept[lane].eq(~end) for lane, end in enumerate(ends)),
            is_wrong.eq(
                ((self.errors & is_kept) != 0)
                | Reduce("OR", [one & ~self.terminates[lane] for lane, one in enumerate(first)])
                | (was_wrong & ~self.turned_first)),
            present.eq(Mux(self.turned_first, 0, index)),
        ]
        self.sync += [
            self.valid.eq(self.turned_valid),
            self.is_first.eq(self.turned_first),
            self.is_last.eq(self.turned_valid & (self.ends != 0)),
            *(self.word[8*lane:8*lane + 8].eq(self.turned[8*lane:8*lane + 8] & Replicate(kept, 8))
            for lane, kept in enumerate(is_kept)),
            *(self.octets[bit].eq(Reduce("OR", [one for lane, one in enumerate(first) if lane >> bit & 1])) for bit in range(3)),
            was_wrong.eq(is_wrong),
            self.symbol_error.eq(is_wrong),
            If(self.turned_valid & (present != RUNT_WORDS), index.eq(present + 1)).Else(index.eq(present)),
            self.is_runt.eq(present != RUNT_WORDS),
            If(self.turned_valid & self.turned_first, self.number.eq(number), number.eq(number + 1)),
        ]

# Frame Checker ------------------------------------------------------------------------------------

class FrameChecker(LiteXModule):
    """Checks the FCS of frames of `FrameFinder` and takes it off.

    Attributes
    ----------
    valid, word, is_first, is_last, octets, symbol_error, number : in
        From `FrameFinder`.
    source : Endpoint(frame_layout(64)), out
        Frames without FCS; ``ready`` is not looked at, ``overflow`` is 0. The last word comes seven or eight cycles after the
        frame's end.

    Source: IEEE 802.3, 3.2.9.
    """
    def __init__(self):
        self.valid        = Signal()
        self.word         = Signal(8*LANES)
        self.is_first     = Signal()
        self.is_last      = Signal()
        self.octets       = Signal(3)
        self.symbol_error = Signal()
        self.number       = Signal(number_bits)
        self.source       = source = stream.Endpoint(frame_layout(8*LANES))

        # # #

        # Verdict: three cycles after the end.
        # ------------------------------------
        added    = Signal(32, reset_less=True)
        crc      = Signal(32, reset_less=True)
        is_wrong = Signal()
        first    = Signal()
        octets   = [Signal(3, name=f"octets_{age}", reset_less=True) for age in (1, 2)]
        is_tiny  = [Signal(name=f"is_tiny_{age}") for age in (1, 2)] # Fewer octets than an FCS has.
        residue  = Signal(32)
        self.comb += Case(octets[1], {n : residue.eq(stepped(RESIDUE, LANES - n)) for n in range(LANES)})
        self.sync += [
            first.eq(self.is_first),
            added.eq(addend(self.word ^ Replicate(self.is_first, 32))),
            crc.eq(added ^ (advanced(crc) & Replicate(~first, 32))),
            octets[0].eq(self.octets),
            octets[1].eq(octets[0]),
            is_tiny[0].eq(self.is_first & ~self.octets[2]),
            is_tiny[1].eq(is_tiny[0]),
            is_wrong.eq((crc != residue) | is_tiny[1]),
        ]

        # Words: each goes out as the next one comes, or is the last and a cycle late.
        # ----------------------------------------------------------------------------
        kept     = Signal(8*LANES, reset_less=True)
        is_late  = Signal() # What is kept is the last one, with ``left`` octets.
        left     = Signal(3)
        out      = Signal(8*LANES, reset_less=True)
        is_out   = Signal()
        ends_now = Signal() # The frame ends within the kept word, by four octets or fewer of the present one.
        lasts    = Signal()
        last_be  = Signal(LANES)
        count    = Signal(4)
        self.comb += [
            ends_now.eq(self.is_last & ~self.is_first & (~self.octets[2] | (self.octets[:2] == 0))),
            count.eq(Mux(is_late, left, self.octets + COLUMN)),
        ]
        self.sync += [
            If(self.valid, kept.eq(self.word)),
            is_late.eq(self.is_last & ~ends_now),
            left.eq(Mux(self.octets[2], self.octets[:2], 0)),
            out.eq(kept),
            is_out.eq(is_late | (self.valid & ~self.is_first)),
            lasts.eq(is_late | ends_now),
            *(last_be[n].eq((count == n + 1) & (is_late | ends_now)) for n in range(LANES)),
        ]

        # Together.
        # ---------
        # A word that came late has the verdict of a cycle before.
        marks  = Cat(out, is_out, lasts, last_be)
        stages = [Signal(len(marks), name=f"words_{age}", reset_less=True) for age in (2, 3)]
        late   = [Signal(name=f"is_late_{age}") for age in (1, 2, 3)]
        says   = [Signal(1 + number_bits, name=f"says_{age}", reset_less=True) for age in (1, 2, 3, 4)]
        was_wrong = Signal()
        data, valid, last, be = Signal(8*LANES), Signal(), Signal(), Signal(LANES)
        self.comb += Cat(data, valid, last, be).eq(stages[-1])
        self.sync += [
            stages[0].eq(marks), stages[1].eq(stages[0]),
            late[0].eq(is_late), late[1].eq(late[0]), late[2].eq(late[1]),
            says[0].eq(Cat(self.symbol_error, self.number)),
            says[1].eq(says[0]), says[2].eq(says[1]), says[3].eq(says[2]),
            was_wrong.eq(is_wrong),
            source.valid.eq(valid),
            source.last.eq(last),
            source.data.eq(data),
            source.last_be.eq(be),
            If(late[2],
                source.fcs_error.eq(was_wrong),
                Cat(source.symbol_error, source.number).eq(says[3]),
            ).Else(
                source.fcs_error.eq(is_wrong),
                Cat(source.symbol_error, source.number).eq(says[2]),
            ),
        ]

# XGMII Receive MAC --------------------------------------------------------------------------------

class XgmiiReceiveMAC(LiteXModule):
    """Takes frames from XGMII, checks their FCS and counts what is wrong on the line.

    Every SFD that is accepted gives one pulse of ``sfd`` and one frame at ``source``, whatever follows it. A gap may be as
    short as the terminate alone.

    Attributes
    ----------
    data, control : Signal(64), Signal(8), in
        XGMII.
    source : Endpoint(frame_layout(64)), out
        Frames without preamble and FCS, bad ones too; ``ready`` is not looked at.
    sfd, sfd_high : Signal(), Signal(), out
        One cycle for each SFD accepted, ``SFD_CYCLES`` after it stood on ``data``: in lane 7 where ``sfd_high``, else in lane 3.
    local, remote : Signal(2), Signal(2), out
        Columns of a cycle that are ordered sets of a fault.
    frame_count, fcs_error_count, symbol_error_count, runt_count : Signal(32), out
        Frames at ``source``; of them with a wrong FCS, with an error character or without terminate, shorter than 60 octets.
    preamble_error_count, lane_error_count : Signal(32), out
        Starts that no right preamble followed; cycles with a start in another lane than 0 or 4.

    All counts wrap.

    Source: IEEE 802.3, clause 46.
    """
    def __init__(self):
        self.data    = Signal(8*LANES)
        self.control = Signal(LANES)
        self.source  = stream.Endpoint(frame_layout(8*LANES))
        self.sfd      = Signal()
        self.sfd_high = Signal()
        self.local    = Signal(2)
        self.remote   = Signal(2)
        self.frame_count          = Signal(32)
        self.fcs_error_count      = Signal(32)
        self.symbol_error_count   = Signal(32)
        self.runt_count           = Signal(32)
        self.preamble_error_count = Signal(32)
        self.lane_error_count     = Signal(32)

        # # #

        self.finder  = finder  = FrameFinder()
        self.checker = checker = FrameChecker()
        data    = Signal(8*LANES, reset_less=True) # At the pads.
        control = Signal(LANES)
        self.sync += [
            data.eq(self.data),
            control.eq(self.control),
        ]
        self.comb += [
            finder.data.eq(data),
            finder.control.eq(control),
            *copied(checker, finder, "valid", "word", "is_first", "is_last", "octets", "symbol_error", "number"),
            *copied(self, finder, "sfd", "sfd_high", "local", "remote"),
            checker.source.connect(self.source),
        ]
        end = self.source.valid & self.source.last
        for count, event in [
            (self.frame_count,          end),
            (self.fcs_error_count,      end & self.source.fcs_error),
            (self.symbol_error_count,   end & self.source.symbol_error),
            (self.runt_count,           finder.is_last & finder.is_runt),
            (self.preamble_error_count, finder.refused),
            (self.lane_error_count,     finder.is_misplaced),
        ]:
            self.sync += count.eq(count + event)
