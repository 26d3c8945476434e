# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Puts frames on XGMII: start, preamble, padding, FCS, terminate, and the idle that clause 46 asks for between them."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream
from litex.soc.interconnect.stream import EndpointDescription

from liteprobe.cores.formats import MIN_LENGTH, PREAMBLE_OCTET, SFD_OCTET
from liteprobe.cores.formats.xgmii import COLUMN, LANES, Control, LinkState
from liteprobe.cores.xgmii.crc import addend, advanced, stepped_back

IDLE_WORD     = int.from_bytes(bytes([Control.IDLE]*LANES), "little")
PREAMBLE_WORD = int.from_bytes(bytes([Control.START] + [PREAMBLE_OCTET]*6 + [SFD_OCTET]), "little")
REMOTE_FAULT  = int.from_bytes(bytes([Control.SEQUENCE, 0, 0, LinkState.REMOTE_FAULT]*2), "little")

MIN_LAST    = MIN_LENGTH//LANES # Word in which the shortest frame ends,
MIN_OCTETS  = MIN_LENGTH%LANES  # and its octets there.

TURN_AGE      = 5 # Cycles from a word to its FCS, stepped back to the last octet,
MERGE_AGE     = TURN_AGE + 1 # and turned to its lanes.
SEALER_CYCLES = MERGE_AGE + 2
START_CYCLES  = 1 + SEALER_CYCLES + 1 # From the decision to start to the start at the pins.

def transmit_description():
    """Octets of a frame, as LiteEth's words; ``error``, with the last one: wrong FCS. ``lane_4``, with the first: not in lane 0."""
    return EndpointDescription([("data", 8*LANES), ("last_be", LANES), ("error", 1), ("lane_4", 1)])

def word_layout():
    """Return what the words of a frame are, on their way through the transmitter."""
    return [
        ("data",        8*LANES), # Zeros after the last octet.
        ("is_preamble", 1),
        ("lane_4",      1),       # With the preamble: in which lane the frame starts.
        ("is_first",    1),       # Octets of the frame begin.
        ("is_last",     1),
        ("octets",      3),       # Of the last word; 0 is all eight.
        ("is_bad",      1),       # With the last word: the FCS shall be wrong.
    ]

# Frame Starter ------------------------------------------------------------------------------------

class FrameStarter(LiteXModule):
    """Starts frames as soon as the gap allows, in lane 0 or 4, and pads them to 60 octets; in ``timebase``.

    The gap is 12 octets on average of frames back to back: each is cut by up to three so that the next frame starts in a
    column, as long as no more than three are cut altogether (deficit idle count). So frames back to back start in the columns
    in which they would start octet by octet, and the line has no bubble at any length.

    Attributes
    ----------
    sink : Endpoint(transmit_description()), in
        A word a cycle, from ``ready`` on. ``lane_4`` is sampled in the cycle before, in which the start is decided.
    starts, lane_4 : Signal(), Signal(), out
        The frame in waiting starts: decided in this cycle, and in which lane.
    source : Endpoint(word_layout()), out
        Words of frames whose starts are aligned; ``ready`` is not looked at. Registered: the preamble comes a cycle after
        the decision.
    underrun : Signal(), out
        One pulse when a frame has no word in time: it ends there with a wrong FCS, and its rest is thrown away.

    Source: IEEE 802.3, 46.3.1.4 (alignment of start), 4.2.3.3 (padding).
    """
    def __init__(self):
        self.sink     = sink   = stream.Endpoint(transmit_description())
        self.source   = source = stream.Endpoint(word_layout())
        self.starts   = Signal()
        self.lane_4   = Signal()
        self.underrun = Signal()

        # # #

        self.fsm           = fsm = ClockDomainsRenamer("timebase")(FSM(reset_state="IDLE"))
        self.ends          = Signal()
        self.octets        = Signal(4) # Of the last word, 1 to 8.
        self.is_discarding = Signal()
        index    = Signal(max=MIN_LAST + 2) # Of the word; stops above the shortest frame's last one.
        in_frame = Signal()
        is_empty = Signal() # The frame has no word in time.
        is_short = Signal() # It ends here, but would be too short.
        is_bad   = Signal() # It shall have a wrong FCS, as far as is known.
        was_bad  = Signal()
        stream.set_reset_less(source.payload)

        # Length.
        # -------
        given = Signal(4) # Octets of the sink's last word.
        self.comb += [
            given.eq(LANES),
            [If(sink.last_be[n], given.eq(n + 1)) for n in reversed(range(LANES))],
            is_empty.eq(fsm.ongoing("DATA") & ~sink.valid),
            is_short.eq(index < MIN_LAST),
            is_bad.eq(Mux(fsm.ongoing("DATA"), ~sink.valid | sink.error, was_bad)),
            self.octets.eq(given),
            If(fsm.ongoing("PAD") | ((index == MIN_LAST) & (given < MIN_OCTETS)), self.octets.eq(MIN_OCTETS)),
            If(is_empty, self.octets.eq(LANES)),
        ]
        self.sync.timebase += [
            If(self.starts, index.eq(0)).Elif(in_frame & (index != MIN_LAST + 1), index.eq(index + 1)),
            self.underrun.eq(is_empty),
            If(is_empty, self.is_discarding.eq(1)).Elif(sink.valid & sink.last, self.is_discarding.eq(0)),
        ]

        # Words.
        # ------
        self.add_gap()
        fsm.act("IDLE",
            sink.ready.eq(self.is_discarding),
            If(sink.valid & ~self.is_discarding,
                self.starts.eq(1),
                NextState("DATA"),
            ),
        )
        fsm.act("DATA",
            sink.ready.eq(1),
            in_frame.eq(1),
            If(is_empty,
                self.ends.eq(1),
            ).Elif(sink.last,
                If(is_short, NextState("PAD")).Else(self.ends.eq(1)),
            ),
            If(self.ends, NextState("GAP")),
        )
        fsm.act("PAD",
            in_frame.eq(1),
            If(~is_short,
                self.ends.eq(1),
                NextState("GAP"),
            ),
        )
        is_kept = [~sink.last | (sink.last_be == 0) | (sink.last_be[lane:] != 0) for lane in range(LANES)]
        self.sync.timebase += [
            source.valid.eq(self.starts | in_frame),
            source.is_preamble.eq(self.starts),
            source.lane_4.eq(self.lane_4),
            source.is_first.eq(in_frame & (index == 0)),
            source.is_last.eq(self.ends),
            source.octets.eq(self.octets),
            source.is_bad.eq(is_bad),
            was_bad.eq(is_bad),
            *(source.data[8*lane:8*lane + 8].eq(
                Replicate(sink.valid & fsm.ongoing("DATA") & kept, 8) & sink.data[8*lane:8*lane + 8])
            for lane, kept in enumerate(is_kept)),
        ]

    def add_gap(self):
        """Find the first column after a frame in which the next one may start, and the deficit that this leaves."""
        fsm, sink = self.fsm, self.sink
        lane_4      = Signal() # Where the present or last one started.
        octets      = Signal(4)
        deficit     = Signal(2) # Octets by which the gaps so far were cut.
        place       = Signal(5) # Of the next start, in octets from two cycles after the last word, were there no columns.
        is_odd      = Signal()  # The first column to start in is that of lane 4.
        remainder   = Signal(2)
        is_soonest  = Signal()  # The next cycle is the first one in which a frame may start.
        # The last word ends 4*lane_4 + octets after it begins; FCS and gap are 16 octets more, the two cycles that pass.
        self.comb += [
            place.eq(Cat(deficit, lane_4) + octets),
            self.lane_4.eq(sink.lane_4 | (is_soonest & is_odd)),
        ]
        self.sync.timebase += [
            If(self.ends, octets.eq(self.octets)),
            If(fsm.ongoing("GAP"),
                is_odd.eq(place[2]),
                remainder.eq(place[:2]),
            ),
            is_soonest.eq((fsm.ongoing("GAP") & ~place[3]) | fsm.ongoing("WAIT")),
            If(self.starts,
                lane_4.eq(self.lane_4),
                deficit.eq(Mux(is_soonest & (self.lane_4 == is_odd), remainder, 0)),
            ),
        ]
        discards = sink.ready.eq(self.is_discarding)
        fsm.act("GAP",  discards, If(place[3], NextState("WAIT")).Else(NextState("IDLE")))
        fsm.act("WAIT", discards, NextState("IDLE"))

# Frame Sealer -------------------------------------------------------------------------------------

class FrameSealer(LiteXModule):
    """Adds preamble, FCS and terminate to the words of frames, shifts them to their lane; in ``timebase``.

    Attributes
    ----------
    sink : Endpoint(word_layout()), in
        From `FrameStarter`: no stall, and from the last word of a frame to the next preamble three cycles or more, less one.
    data, control : Signal(64), Signal(8), out
        XGMII, idle where no frame is. The start stands there ``SEALER_CYCLES`` after the preamble on ``sink``.
    sfd, sfd_high : Signal(), Signal(), out
        An SFD stands there, in lane 7 where ``sfd_high``, else in lane 3.
    begins, ends : Signal(), Signal(), out
        A frame's start stands there, or its terminate did in this cycle or one before.

    Source: IEEE 802.3, 46.2 and 46.3.1 (start, terminate, lanes), 3.2.9 (FCS).
    """
    def __init__(self):
        self.sink     = stream.Endpoint(word_layout())
        self.data     = Signal(8*LANES, reset=IDLE_WORD)
        self.control  = Signal(LANES, reset=2**LANES - 1)
        self.sfd      = Signal()
        self.sfd_high = Signal()
        self.begins   = Signal()
        self.ends     = Signal()

        # # #

        # The words of each age, in cycles.
        self.words = words = [self.sink] + [stream.Endpoint(word_layout()) for _ in range(MERGE_AGE)]
        for before, after in zip(words, words[1:]):
            stream.set_reset_less(after.payload)
            self.sync.timebase += [after.valid.eq(before.valid), after.payload.eq(before.payload)]
        self.add_fcs()
        self.add_merge()
        self.add_shift()

    def add_fcs(self):
        """Run the CRC over whole words, step it back to the last octet, and turn it to the lanes in which it stands."""
        added = Signal(32, reset_less=True)
        crc   = Signal(32, reset_less=True)
        back  = [Signal(32, reset_less=True, name=f"back_{octets}") for octets in (4, 2, 1)]
        word, first = self.words[0], self.words[1]
        self.sync.timebase += [
            # The register begins with ones: as if the first four octets were inverted.
            added.eq(addend(word.data ^ Replicate(word.is_first, 32))),
            crc.eq(added ^ (advanced(crc) & Replicate(~first.is_first, 32))),
        ]
        before = crc
        for age, (octets, after) in enumerate(zip((4, 2, 1), back), 2):
            # So many zeros were taken for octets: eight less those that there are.
            zeros = Signal(3, name=f"zeros_{age}")
            self.comb += zeros.eq(-self.words[age].octets)
            self.sync.timebase += after.eq(Mux(zeros[log2_int(octets)], stepped_back(before, octets), before))
            before = after
        last     = self.words[TURN_AGE]
        self.fcs = Signal(32, reset_less=True) # Turned: octet n is for lane n or n + 4. Stands for the next word too.
        octets   = [before[8*n:8*n + 8] for n in range(4)]
        turned   = Signal(32)
        self.comb += Case(last.octets[:2], {
            turn : turned.eq(Cat(*(octets[(lane - turn)%4] for lane in range(4)))) for turn in range(4)
        })
        self.sync.timebase += If(last.is_last, self.fcs.eq(turned ^ Replicate(~last.is_bad, 32)))

    def add_merge(self):
        """Choose for each lane between octets, FCS and control characters; what each has is found a cycle before."""
        word, last = self.words[TURN_AGE], self.words[MERGE_AGE]
        self.merged         = Signal(8*LANES, reset=IDLE_WORD)
        self.merged_control = Signal(LANES, reset=2**LANES - 1)
        self.is_preamble    = Signal()
        self.is_lane_4      = Signal()
        self.is_after       = Signal(2) # The merged word is the first, or second, after the last one.
        was_last = Signal()
        data     = Signal(LANES)
        fcs      = Signal(LANES)
        idle     = Signal(LANES, reset=2**LANES - 1) # Idle or terminate.
        end      = Signal(LANES)
        preamble = Signal()

        def has(word, count):
            """Return whether a word is the last of its frame, and has so many octets."""
            return (word.octets == count%LANES) & word.is_last

        for lane in range(LANES):
            is_data = word.valid & ~word.is_preamble & ~Reduce("OR", [0] + [has(word, n) for n in range(1, lane + 1)])
            is_fcs  = Reduce("OR", [0]
                + [has(word, n) for n in range(max(1, lane - 3), lane + 1)]
                + [has(last, n) for n in range(lane + 5, LANES + 1)])
            is_end  = Reduce("OR", [0]
                + [has(word, n) for n in [lane - 4] if n >= 1]
                + [has(last, n) for n in [lane + 4] if n <= LANES])
            self.sync.timebase += [
                data[lane].eq(is_data),
                fcs[lane].eq(is_fcs),
                end[lane].eq(is_end),
                idle[lane].eq(~(is_data | is_fcs | (word.valid & word.is_preamble))),
            ]
            self.sync.timebase += self.merged[8*lane:8*lane + 8].eq(
                (Replicate(data[lane], 8) & last.data[8*lane:8*lane + 8])
                | (Replicate(fcs[lane], 8) & self.fcs[8*(lane%4):8*(lane%4) + 8])
                | (Replicate(idle[lane], 8) & Mux(end[lane], int(Control.TERMINATE), int(Control.IDLE)))
                | (Replicate(preamble, 8) & (PREAMBLE_WORD >> 8*lane & 0xff)))
        self.sync.timebase += [
            preamble.eq(word.valid & word.is_preamble),
            self.merged_control.eq(Cat(idle[0] | preamble, idle[1:])),
            self.is_preamble.eq(preamble),
            If(preamble, self.is_lane_4.eq(last.lane_4)),
            self.is_after.eq(Cat(was_last, self.is_after[0])),
            was_last.eq(last.valid & last.is_last),
        ]

    def add_shift(self):
        """Put words into the column in which their frame starts."""
        high         = Signal(4*8, reset=IDLE_WORD >> 32) # Of the word before.
        high_control = Signal(4, reset=2**4 - 1)
        is_delayed   = Signal() # The preamble's second half goes out now.
        was_lane_4   = Signal()
        self.sync.timebase += [
            high.eq(self.merged[32:]),
            high_control.eq(self.merged_control[4:]),
            If(self.is_lane_4,
                self.data.eq(Cat(high, self.merged[:32])),
                self.control.eq(Cat(high_control, self.merged_control[:4])),
            ).Else(
                self.data.eq(self.merged),
                self.control.eq(self.merged_control),
            ),
            is_delayed.eq(self.is_preamble & self.is_lane_4),
            self.sfd.eq((self.is_preamble & ~self.is_lane_4) | is_delayed),
            self.sfd_high.eq(~is_delayed),
            self.begins.eq(self.is_preamble),
            was_lane_4.eq(self.is_lane_4),
            self.ends.eq(Mux(was_lane_4, self.is_after[1], self.is_after[0])),
        ]

# XGMII Transmit MAC -------------------------------------------------------------------------------

class XgmiiTransmitMAC(LiteXModule):
    """Sends frames at 10 Gb/s, back to back without a bubble, each with its exact start; in ``timebase``.

    Frames leave at a fixed latency, so that the cycle and lane of a start fix those of its SFD.

    Attributes
    ----------
    sink : Endpoint(transmit_description()), in
        Frames without preamble and FCS, shorter ones than 60 octets are padded. One that waits starts as soon as the gap
        allows, not before lane 4 where ``lane_4`` asks for it; its first word is taken a cycle after the decision, and from
        then on one a cycle. ``last_be`` of 0 takes the last word whole, as its last bit does.
    starts, starts_in_lane_4 : Signal(), Signal(), out
        The start of the frame in waiting is decided in this cycle, and its lane.
    data, control : Signal(64), Signal(8), out
        XGMII, registered: START_CYCLES from the decision to the start.
    local_fault, remote_fault : Signal(), Signal(), in
        Link faults that the receiver found: remote fault ordered sets are sent, or idle, and frames are lost.
    sfd, sfd_high : Signal(), Signal(), out
        An SFD stands at ``data``, in lane 7 where ``sfd_high``, else in lane 3.
    sent_count, lost_count : Signal(32), Signal(32), out
        Frames that left whole; that a link fault cut or kept. They wrap.
    underrun_count : Signal(32), out
        Frames that had no word in time: cut, with a wrong FCS. Of those in ``sent_count``, or ``lost_count``. Wraps.

    Source: IEEE 802.3, clause 46; 46.3.4 for link faults.
    """
    def __init__(self):
        self.sink             = stream.Endpoint(transmit_description())
        self.starts           = Signal()
        self.starts_in_lane_4 = Signal()
        self.data             = Signal(8*LANES, reset=IDLE_WORD)
        self.control          = Signal(LANES, reset=2**LANES - 1)
        self.local_fault      = Signal()
        self.remote_fault     = Signal()
        self.sfd              = Signal()
        self.sfd_high         = Signal()
        self.sent_count       = Signal(32)
        self.lost_count       = Signal(32)
        self.underrun_count   = Signal(32)

        # # #

        self.starter = starter = FrameStarter()
        self.sealer  = sealer  = FrameSealer()
        is_shut  = Signal() # A link fault is there, or was when the present frame began or since.
        was_shut = Signal()
        is_fault = self.local_fault | self.remote_fault
        self.comb += [
            self.sink.connect(starter.sink),
            starter.source.connect(sealer.sink),
            self.starts.eq(starter.starts),
            self.starts_in_lane_4.eq(starter.lane_4),
            is_shut.eq(is_fault | (was_shut & ~sealer.begins)),
        ]
        self.sync.timebase += [
            was_shut.eq(is_shut),
            self.data.eq(sealer.data),
            self.control.eq(sealer.control),
            If(is_shut,
                self.data.eq(IDLE_WORD),
                self.control.eq(2**LANES - 1),
            ),
            If(self.local_fault,
                self.data.eq(REMOTE_FAULT),
                self.control.eq(2**COLUMN + 1),
            ),
            self.sfd.eq(sealer.sfd & ~is_shut),
            self.sfd_high.eq(sealer.sfd_high),
            If(starter.underrun, self.underrun_count.eq(self.underrun_count + 1)),
            If(sealer.ends,
                If(is_fault | was_shut,
                    self.lost_count.eq(self.lost_count + 1),
                ).Else(
                    self.sent_count.eq(self.sent_count + 1),
                ),
            ),
        ]
