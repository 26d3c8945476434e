# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Receives what a host streams by UDP, and writes it to rings in a memory, past the management stack."""

import ipaddress

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description

from liteprobe.cores.assign import copied
from liteprobe.cores.capture.export import FrameArbiter
from liteprobe.cores.formats import DATAGRAM_HEADER_WORDS, DATAGRAM_MAGIC, REPLAY_PORT, RING_WORDS, DatagramFlag
from liteprobe.cores.memory.ring_writer import RingWriter
from liteprobe.cores.octets import number, swapped
from liteprobe.cores.receive.datagrams.counts import *
from liteprobe.cores.receive.datagrams.ring import RingFiller
from liteprobe.cores.receive.datagrams.status import DatagramStatus
from liteprobe.cores.rewind_fifo import RewindFIFO

IP_OCTETS, UDP_OCTETS = 20, 8
MOST_WORDS = 384 # A datagram of so many isn't sound: it is easier to see than more than DATAGRAM_WORDS.
OVERHEAD = IP_OCTETS + UDP_OCTETS + 4*DATAGRAM_HEADER_WORDS
ASK_BIT  = 8 + log2_int(DatagramFlag.ASK) # Of the first word.
PORT_LINE     = 8  # Aligned word with the UDP ports: from then on it is known whose the frame is.
POSITION_LINE = 12 # The last one of the header.

# Head ---------------------------------------------------------------------------------------------

class DatagramHead(LiteXModule):
    """Looks at the words of a frame as they pass.

    Words come aligned: word k holds octets 4*k + 2 to 4*k + 5, so that IP, UDP and its payload fall on words.

    Parameters
    ----------
    mac, ip : bytes, addresses of the probe
    rings : int

    Attributes
    ----------
    begin, start : Signal(), Signal(16), in
        The first two octets of a frame.
    take, line, word : Signal(), Signal(4), Signal(32), in
        A word of the aligned frame and its number, up to POSITION_LINE.
    sessions : list of Signal(16), in
        Of each ring, while it is open.
    is_open : Signal(rings), in
    lease, is_held : Signal(16), Signal(), in
        As of `ManagementStack`.
    is_datagram : Signal(), out
        To this probe's REPLAY_PORT; right in the cycle after word PORT_LINE.
    is_sound : Signal(), out
        Lengths agree, it has the magic, and its ring is there. This, and all below, in the cycle after word POSITION_LINE.
    is_present : Signal(), out
        It is of the present session of its ring, and of the present lease; or of none, with the number 0.
    asks : Signal(), out
    ring, words : Signal, Signal(9), out
        Words after the header, fewer than MOST_WORDS. The ring is known with word POSITION_LINE, which is the position.

    Source: RFC 791, 3.1; RFC 768; `cores/formats/replay.py`. Limits: as of `DatagramReceiver`.
    """
    def __init__(self, mac, ip, rings):
        self.begin       = Signal()
        self.start       = Signal(16)
        self.take        = Signal()
        self.line        = Signal(4)
        self.word        = Signal(32)
        self.sessions    = [Signal(16, name=f"session{n}") for n in range(rings)]
        self.is_open     = Signal(rings)
        self.lease       = Signal(16)
        self.is_held     = Signal()
        self.is_datagram = Signal()
        self.is_sound    = Signal()
        self.is_present  = Signal()
        self.asks        = Signal(reset_less=True)
        self.ring        = Signal(max=max(rings, 2), reset_less=True)
        self.words       = Signal(9)

        # # #

        word        = self.word
        is_datagram = self.is_datagram
        is_sound    = self.is_sound
        more        = Signal(14, reset_less=True) # Words of IP beyond OVERHEAD; many, if it is less.
        is_session  = Signal(reset_less=True)
        is_lease    = Signal(reset_less=True)
        port        = C(number(*REPLAY_PORT.to_bytes(2, "big")), 16)
        self.lines = {
            0:  [self.keep(is_datagram, word == number(*mac[2:]))],
            2:  [self.keep(is_datagram, word[16:] == number(8, 0))],
            3:  [self.keep(is_datagram, word[:8] == 0x45), self.keep(is_sound, word[24:26] == 0),
                 more.eq(swapped(word[16:])[2:] - OVERHEAD//4)],
            4:  [self.keep(is_datagram, Cat(word[16:22], word[24:]) == 0), # No fragment.
                 self.keep(is_sound, (more[8:] == 0) | ((more[8:] == 1) & ~more[7]))],
            5:  [self.keep(is_datagram, word[8:16] == 17)],
            7:  [self.keep(is_datagram, word == number(*ip))],
            8:  [self.keep(is_datagram, word[16:] == port)],
            9:  [self.keep(is_sound, swapped(word[:16]) == Cat(C(0, 2), more + (OVERHEAD - IP_OCTETS)//4))],
            10: [self.keep(is_sound, (word[16:] == DATAGRAM_MAGIC) & (word[:8] < rings)),
                 self.ring.eq(word if rings > 1 else 0), self.asks.eq(word[ASK_BIT])],
            11: [is_session.eq((word[16:] == Array(self.sessions)[self.ring]) & Array(self.is_open)[self.ring]),
                 is_lease.eq((word[:16] == self.lease) | ((word[:16] == 0) & ~self.is_held))],
        }
        self.comb += [
            self.is_present.eq(is_session & is_lease),
            self.words.eq(more),
        ]
        self.sync += [
            If(self.begin,
                is_datagram.eq(self.start == number(*mac[:2])),
                is_sound.eq(1),
            ),
            If(self.take, Case(self.line, self.lines)),
        ]

    def keep(self, flag, condition):
        """Clear a flag unless the condition holds."""
        return If(~condition, flag.eq(0))

# Management Bypass -----------------------------------------------------------------------------------

PASS_WORDS = 512 # One block RAM.
HEAD_WORDS = 16  # More than the words of a frame by which it is known whose it is: they always find space.

class ManagementBypass(LiteXModule):
    """Keeps the frames that go on to the management stack, and the first words of each frame until it is known whose it is.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(32)), in
        It is never stalled for less than HEAD_WORDS words after a frame that went on.
    is_head : Signal(), in
        These are the first words of a frame.
    keep, rewind : Signal(), in
        As of `RewindFIFO`.
    source : Endpoint(eth_phy_description(32)), out
        Straight from the block RAM.
    """
    def __init__(self):
        self.sink    = sink   = stream.Endpoint(eth_phy_description(32))
        self.is_head = Signal()
        self.keep    = Signal()
        self.rewind  = Signal()
        self.source  = stream.Endpoint(eth_phy_description(32))

        # # #

        self.fifo = fifo = RewindFIFO(32 + 3, PASS_WORDS)
        out    = self.source
        octets = Signal(2) # Of the last word, less one.
        self.comb += [
            sink.ready.eq(self.is_head | (fifo.level < PASS_WORDS - HEAD_WORDS)),
            fifo.write.eq(sink.valid & sink.ready),
            fifo.write_data.eq(Cat(sink.data, sink.last, sink.last_be[1] | sink.last_be[3], sink.last_be[2] | sink.last_be[3])),
            *copied(fifo, self, "keep", "rewind"),
            out.valid.eq(fifo.is_there),
            Cat(out.data, out.last, octets).eq(fifo.read_data),
            out.last_be.eq(Mux(out.last, 1 << octets, 0)),
            fifo.step.eq(out.valid & out.ready),
        ]

# Receiver -----------------------------------------------------------------------------------------

class DatagramReceiver(RingFiller):
    """Takes the datagrams to UDP port REPLAY_PORT out of received frames, and writes what they carry into rings.

    A datagram says with which word of its session it begins. It is accepted if that is the one that the ring waits for, and
    all of it finds space; else it changes nothing. So loss, duplication and reordering can't put a wrong word anywhere. What
    was accepted and up to where there is space is reported to the host: each STATUS_DATAGRAMS datagrams, whenever the ring
    is free up to another 1/STATUS_SHARES of it, at once when a datagram comes ahead (once, until one is accepted) or asks, and
    once in a period while the session is open and has sent anything. Whoever sends for another session or lease is
    answered that it is a stranger, once in a period.

    Parameters
    ----------
    rings : int
        1 or 2; one of each test port.
    port : BurstPort
        Of the memory.
    address : int
        Of ring 0 in the memory (words, a multiple of 64); ring 1 follows.
    mac_address : int, 48 bits
    ip_address : str, dotted
        Of the probe.
    period : int
        Cycles: STATUS_PERIOD_S.
    words : int
        Of a ring, a power of two from 1024 on.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(32)), in
        Whole good frames without preamble and FCS, as `FrameStore` gives them. It stalls for some seven cycles a datagram; where
        512 words wait for the memory, or 496 for whoever takes ``source``; and while a ring is emptied.
    source : Endpoint(eth_phy_description(32)), out
        All other frames, unchanged and in their order.
    status : Endpoint(eth_phy_description(32)), out
        Answers of 66 octets, without padding and FCS, for `FrameArbiter`. May be stalled for ever.
    lease, is_held : Signal(16), Signal(), in
        As of `ManagementStack`: a datagram has the number of the present lease, or 0 while nobody holds it.
    open, close : Signal(rings), in
        Pulses. ``open`` empties the ring, sets its counts to 0 and begins a session, once what came for the last one is in the
        memory and `RingReader` has begun anew. ``close``: what comes is a stranger's.
    session : list of Signal(16), in
        With ``open``.
    is_open : Signal(rings), out
        From the end of an opening to ``close``, or the next ``open``.
    written : list of Signal(32), out
        Of each ring: position up to which the memory has its words; wraps.
    restart, is_restarted : Signal(rings), Signal(rings), out and in
        Of `RingReader`: pulse, with ``written`` back at 0; it is through. Looked at from two cycles after ``restart`` on.
    fetched : list of Signal(32), in
        Position up to which the ring is needed no more.
    keeps : Signal(rings), in
        The ring is needed from position 0 on, whatever was fetched.
    frames, underruns : list of Signal(32), list of Signal(16), in
    is_running, is_starved : Signal(rings), in
        For answers.
    first_underrun, is_bad : list of Signal(32), Signal(rings), in
        For the bus.
    bus : wishbone.Interface, slave
        Of each ring, 8 words: ``accepted``, ``datagrams``, ``repeated`` (behind), ``early`` (ahead), ``full`` (no space), and
        ``refused`` (these three). Word 6: ``strange``: datagrams whose lengths, magic, port, session or lease is wrong; it
        is never set to 0. From word 16 on, as of `DatagramStatus`, what is ``frames``, ``underruns`` and so on of each ring.

    Limits: IPv4 without options or fragments, untagged; UDP's checksum isn't looked at (the frame's was). A frame may be
    longer than its datagram. A datagram of more than 383 words is strange.
    Source: docs/design/replay.md ("Interfaces"); `cores/formats/replay.py`.
    """
    first = 0 # Position at which a session begins; tests begin near the wrap.

    def __init__(self, rings, port, address, mac_address, ip_address, period, words=RING_WORDS):
        self.sink       = stream.Endpoint(eth_phy_description(32))
        self.source     = stream.Endpoint(eth_phy_description(32))
        self.lease      = Signal(16, reset=1)
        self.is_held    = Signal()
        self.open       = Signal(rings)
        self.close      = Signal(rings)
        self.session    = [Signal(16, name=f"session{n}") for n in range(rings)]
        self.is_open    = Signal(rings)
        self.restart    = Signal(rings)
        self.is_restarted = Signal(rings, reset=2**rings - 1)
        self.fetched    = [Signal(32, name=f"fetched{n}") for n in range(rings)]
        self.keeps      = Signal(rings)
        self.frames     = [Signal(32, name=f"frames{n}") for n in range(rings)]
        self.underruns  = [Signal(16, name=f"underruns{n}") for n in range(rings)]
        self.is_running = Signal(rings)
        self.is_starved = Signal(rings)
        self.first_underrun = [Signal(32, name=f"first_underrun{n}") for n in range(rings)]
        self.is_bad     = Signal(rings)

        # # #

        mac = mac_address.to_bytes(6, "big")
        ip  = ipaddress.IPv4Address(ip_address).packed
        self.head    = DatagramHead(mac, ip, rings)
        self.passing = ManagementBypass()
        self.writer  = RingWriter(port, address, words, rings, self.first)
        self.counts  = DatagramCounts(rings, self.first)
        self.answers = DatagramStatus(mac, ip, rings, words, period)
        self.written = self.writer.written
        self.status  = self.answers.source
        self.bus     = self.answers.bus
        self.fsm     = FSM(reset_state="HEAD")

        self.line     = Signal(4)                     # Words of the frame that were taken, at most of its head.
        self.carry    = Signal(16, reset_less=True)   # Half a word, between the wire and the aligned frame.
        self.kind     = Signal(max=COUNTS)            # What a datagram counts as.
        self.is_over  = Signal(reset_less=True)       # The frame's last word was taken.
        self.left     = Signal(9, reset_less=True)    # Words of the payload to come.
        self.opening  = Signal(rings)                 # Rings that are to be opened.
        self.new_ring = Signal(max=max(rings, 2))     # The one that is.
        self.taken    = self.sink.valid & self.sink.ready
        self.is_cut   = self.sink.last & (self.sink.last_be == 0b0001) # The last aligned word isn't whole.
        self.add_sessions(rings)
        self.add_head()
        self.add_judgement(words)
        self.add_payload()
        self.add_verdict()
        self.add_opening(rings)
        self.add_answers()

    def add_sessions(self, rings):
        """Know what is open."""
        self.sessions = [Signal(16, name=f"present_session{n}", reset_less=True) for n in range(rings)]
        self.given    = [Signal(16, name=f"given_session{n}", reset_less=True) for n in range(rings)] # Until then answers are old.
        self.released = [Signal(32, name=f"released{n}") for n in range(rings)] # As ``fetched``, if anything is.
        for n in range(rings):
            self.sync += [
                # What was closed or opened anew meanwhile is so.
                If(self.fsm.ongoing("SETTLE-OPEN") & (self.new_ring == n) & self.opening[n],
                    self.is_open[n].eq(1),
                    self.opening[n].eq(0),
                    self.sessions[n].eq(self.given[n]),
                ),
                If(self.close[n], self.is_open[n].eq(0), self.opening[n].eq(0)),
                If(self.open[n], self.is_open[n].eq(0), self.opening[n].eq(1), self.given[n].eq(self.session[n])),
            ]
            self.comb += self.released[n].eq(Mux(self.keeps[n], self.first, self.fetched[n]))

    def add_head(self):
        """Take the first words of a frame, and let it go on or take the header of its datagram."""
        fsm, sink, head, passing, line = self.fsm, self.sink, self.head, self.passing, self.line
        may_begin = Signal()
        self.comb += [
            may_begin.eq((line != 0) | (self.opening == 0)),
            head.begin.eq(fsm.ongoing("HEAD") & (line == 0)),
            head.start.eq(sink.data[:16]),
            head.take.eq(self.taken & (line != 0)), # Behind the header ``line`` stands still.
            head.line.eq(line - 1),
            head.word.eq(Cat(self.carry, sink.data[:16])),
            *copied(head, self, "lease", "is_held", "is_open"),
            *[to.eq(session) for to, session in zip(head.sessions, self.sessions)],
            *copied(passing.sink, sink, "data", "last", "last_be"),
            passing.is_head.eq(fsm.ongoing("HEAD")),
            passing.source.connect(self.source),
        ]
        self.sync += If(self.taken, self.carry.eq(sink.data[16:]), self.is_over.eq(sink.last))
        fsm.act("HEAD",
            passing.sink.valid.eq(sink.valid & may_begin),
            sink.ready.eq(may_begin),
            If(self.opening != 0, If(line == 0, NextState("DRAIN"))),
            If(self.taken,
                NextValue(line, line + 1),
                If((line == PORT_LINE + 1) | sink.last, NextState("CHOOSE")),
            )
        )
        fsm.act("CHOOSE",
            If(head.is_datagram & ~self.is_over,
                passing.rewind.eq(1),
                NextState("HEADER"),
            ).Else(
                passing.keep.eq(1),
                NextState("PASS"),
                If(self.is_over, NextValue(line, 0), NextState("HEAD")),
            )
        )
        fsm.act("PASS",
            sink.connect(passing.sink, keep={"valid", "ready"}),
            passing.keep.eq(1),
            NextValue(line, 0),
            If(self.taken & sink.last, NextState("HEAD")),
        )

    def add_judgement(self, words):
        """Decide what becomes of a datagram: compare its position with the ring's, then the ring's space with its words."""
        fsm, sink, head, counts, line = self.fsm, self.sink, self.head, self.counts, self.line
        bits     = log2_int(words) + 1
        sum_     = Signal(32, reset_less=True)
        is_next  = Signal(reset_less=True)
        is_ahead = Signal(reset_less=True)
        has_space = Signal(reset_less=True)
        is_whole = Signal(reset_less=True) # All of the header was there.
        is_there = Signal()                # Its last word is: the position.
        space     = Signal(bits)            # What is left, or a little below 0.
        limit    = Signal(bits)
        self.comb += [
            is_there.eq(line == POSITION_LINE + 1),
            counts.position.eq(head.word),
            limit.eq(Array(self.released)[head.ring][:bits] ^ words),
            space.eq(limit - sum_[:bits]),
        ]
        fsm.act("HEADER",
            sink.ready.eq(1),
            counts.uses.eq(sink.valid & is_there),
            counts.kind.eq(ACCEPTED),
            counts.subtracts.eq(1),
            If(sink.valid,
                NextValue(line, line + 1),
                NextValue(is_whole, is_there),
                NextValue(sum_, counts.sum),
                If(is_there | sink.last, NextState("ADD")),
            )
        )
        fsm.act("ADD",
            counts.uses.eq(1),
            counts.kind.eq(ACCEPTED),
            counts.adds.eq(head.words),
            NextValue(sum_, counts.sum),
            NextValue(is_next, sum_ == 0),
            NextValue(is_ahead, sum_[-1]),
            NextState("SUBTRACT"),
        )
        fsm.act("SUBTRACT", NextValue(has_space, space[-2:] != 0b11), NextState("JUDGE"))
        fsm.act("JUDGE",
            NextValue(self.left, head.words),
            NextState("REST"),
            If(~(head.is_sound & head.is_present & is_whole),
                NextValue(self.kind, STRANGE),
            ).Elif(~is_next,
                NextValue(self.kind, REPEATED),
                If(is_ahead, NextValue(self.kind, EARLY)),
            ).Elif(~has_space,
                NextValue(self.kind, FULL),
            ).Else(
                NextValue(self.kind, DATAGRAMS),
                If(head.words != 0, NextState("ENTER")),
            ),
        )

    def add_payload(self):
        """Give the words of an accepted datagram to the writer, and drop those of the others."""
        fsm, sink, head, writer = self.fsm, self.sink, self.head, self.writer
        self.comb += [
            writer.ring.eq(head.ring),
            writer.count.eq(head.words),
            writer.sink.data.eq(head.word),
        ]
        fsm.act("ENTER",
            writer.sink.data.eq(writer.piece),
            writer.sink.valid.eq(1),
            If(writer.sink.ready, NextState("PAYLOAD")),
        )
        fsm.act("PAYLOAD",
            # Once the frame is over nothing comes any more.
            writer.sink.valid.eq(sink.valid & ~self.is_over),
            sink.ready.eq(writer.sink.ready & ~self.is_over),
            If(self.taken,
                NextValue(self.left, self.left - 1),
                If(self.left == 1, NextState("REST")),
                If(sink.last & ((self.left != 1) | self.is_cut), NextValue(self.kind, STRANGE)),
            ),
            If(self.taken & sink.last, NextState("REST")),
            If(self.is_over, NextValue(self.kind, STRANGE), NextState("REST")),
        )
        fsm.act("REST",
            sink.ready.eq(~self.is_over),
            If(self.is_over, NextState("SETTLE")),
        )

    def add_verdict(self):
        """Count a datagram, and with it what was accepted."""
        fsm, head, writer, counts, line = self.fsm, self.head, self.writer, self.counts, self.line
        is_accepted = Signal()
        self.comb += is_accepted.eq(self.kind == DATAGRAMS)
        fsm.act("SETTLE",
            writer.keep.eq(is_accepted),
            writer.rewind.eq(~is_accepted),
            counts.uses.eq(1),
            counts.kind.eq(ACCEPTED),
            counts.adds.eq(head.words),
            counts.write.eq(is_accepted),
            NextState("COUNT"),
        )
        fsm.act("COUNT",
            counts.uses.eq(1),
            counts.kind.eq(self.kind),
            counts.adds.eq(1),
            counts.write.eq(1),
            NextState("REFUSE"),
        )
        fsm.act("REFUSE",
            counts.uses.eq(1),
            counts.kind.eq(REFUSED),
            counts.adds.eq(1),
            counts.write.eq(~is_accepted & (self.kind != STRANGE)),
            self.answers.judged.eq(head.is_sound & (~head.is_present | (self.kind != STRANGE))),
            NextValue(line, 0),
            NextState("HEAD"),
        )
        self.comb += [
            self.answers.accepted.eq(is_accepted),
            self.answers.is_early.eq(self.kind == EARLY),
        ]

    def add_opening(self, rings):
        """Begin a session, once the last one's words are with the memory."""
        fsm, counts, line = self.fsm, self.counts, self.line
        ring = self.new_ring
        # The counts of all rings but for ``strange``, which is the first one's.
        self.comb += counts.ring.eq(Mux(fsm.ongoing("CLEAR"), ring, Mux(counts.kind == STRANGE, 0, self.head.ring)))
        fsm.act("DRAIN",
            NextValue(ring, 0),
            [If(self.opening[n], NextValue(ring, n)) for n in range(rings)],
            If(self.writer.is_empty, NextState("CLEAR")),
            If(self.opening == 0, NextState("HEAD")), # It was closed again.
        )
        fsm.act("CLEAR",
            counts.uses.eq(1),
            counts.kind.eq(line),
            counts.clear.eq(1),
            NextValue(line, line + 1),
            If(line == REFUSED, NextValue(line, 0), NextState("RESTART")),
        )
        fsm.act("RESTART",
            [If(ring == n, self.restart[n].eq(1), self.writer.clear[n].eq(1)) for n in range(rings)],
            NextState("RESTARTING"),
        )
        fsm.act("RESTARTING", NextState("RESTARTING-2"))
        fsm.act("RESTARTING-2",
            If(Array(self.is_restarted)[ring], NextState("SETTLE-OPEN")), # ``released`` follows the reader.
        )
        fsm.act("SETTLE-OPEN", NextState("HEAD"))

    def add_answers(self):
        """Tell the hosts."""
        head, counts, answers = self.head, self.counts, self.answers
        self.comb += [
            *copied(answers, head, "take", "line", "word", "ring", "is_present", "asks"),
            *copied(answers, self, "is_open", "lease", "is_running", "is_starved"),
            answers.is_bad.eq(self.is_bad),
            *copied(counts, answers, "read_ring", "read_kind"),
            answers.can_read.eq(counts.can_read),
            answers.count.eq(counts.data),
        ]
        for n, session in enumerate(self.sessions):
            self.comb += [
                answers.sessions[n].eq(session),
                answers.fetched[n].eq(self.released[n]),
                answers.frames[n].eq(self.frames[n]),
                answers.underruns[n].eq(self.underruns[n]),
                answers.first_underrun[n].eq(self.first_underrun[n]),
            ]

    def join_ring(self, ring, port):
        """Join ring number ``ring`` to a `RingReaderPort`, whose counts are in answers."""
        RingFiller.join_ring(self, ring, port)
        self.comb += [
            self.frames[ring].eq(port.frames),
            self.underruns[ring].eq(port.underruns),
            self.first_underrun[ring].eq(port.first_underrun),
            self.is_bad[ring].eq(port.errors),
            self.is_running[ring].eq(port.is_running),
            self.is_starved[ring].eq(port.is_starved),
        ]

    def join_link(self, receive, transmit, has_space):
        """Take datagrams out of ``receive``, and answer on ``transmit`` before all others; return the sink for theirs."""
        self.arbiter = arbiter = FrameArbiter(is_quiet=False)
        self.comb += [
            receive.connect(self.sink),
            self.status.connect(arbiter.first),
            arbiter.source.connect(transmit),
            arbiter.has_space.eq(has_space),
        ]
        return arbiter.second
