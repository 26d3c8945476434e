# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Answers a host that streams: what came, and up to where there is space."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream, wishbone

from liteprobe.cores.assign import copied
from liteprobe.cores.capture.export import DatagramFramer
from liteprobe.cores.formats import DATAGRAM_MAGIC, REPLAY_PORT, STATUS_DATAGRAMS, STATUS_SHARES, STATUS_WORDS
from liteprobe.cores.octets import swapped
from liteprobe.cores.receive.datagrams.counts import ACCEPTED, COUNTS, NOTHING, REFUSED

PEER_WORDS = 4

# Peers --------------------------------------------------------------------------------------------

class DatagramPeers(LiteXModule):
    """Remembers who sent the last datagram to each of several owners.

    Each frame's addresses are written where no owner's are; where it counts for one, the two places are exchanged.

    Parameters
    ----------
    owners : int
        Up to 3.

    Attributes
    ----------
    take, line, word : Signal(), Signal(4), Signal(32), in
        As of `DatagramHead`.
    assign, owner : Signal(), Signal(2), in
        The last frame's sender is this owner's peer now.
    find, find_owner : Signal(), Signal(2), in
        Whose peer is read; the four words in the next four cycles are those of one frame.
    read_word, data : Signal(2), Signal(32), in and out
        Of that peer: octets 0 to 3 of the MAC address, 4 and 5, UDP port (15:0), IP address; as on the wire.
    """
    def __init__(self, owners):
        self.take       = Signal()
        self.line       = Signal(4)
        self.word       = Signal(32)
        self.assign     = Signal()
        self.owner      = Signal(2)
        self.find       = Signal()
        self.find_owner = Signal(2)
        self.read_word  = Signal(2)
        self.data       = Signal(32)

        # # #

        memory = Memory(32, 4*PEER_WORDS)
        write  = memory.get_port(write_capable=True, mode=READ_FIRST)
        read   = memory.get_port(async_read=True)
        spare  = Signal(2, reset=owners)
        places = [Signal(2, reset=n, name=f"place{n}") for n in range(owners)]
        found  = Signal(2)
        self.autocsr_exclude = {"memory"}
        self.specials += memory, write, read
        self.comb += [
            write.adr.eq(Cat(self.line[1], self.line[2] | self.line[3], spare)), # Lines 1, 2, 8 and 6.
            write.dat_w.eq(self.word),
            write.we.eq(self.take & ((self.line == 1) | (self.line == 2) | (self.line == 6) | (self.line == 8))),
            read.adr.eq(Cat(self.read_word, found)),
            self.data.eq(read.dat_r),
        ]
        self.sync += [
            If(self.find, found.eq(Array(places)[self.find_owner])),
            If(self.assign,
                spare.eq(Array(places)[self.owner]),
                [If(self.owner == n, place.eq(spare)) for n, place in enumerate(places)],
            ),
        ]

# Words that can be shown of a ring: first those of an answer, then two more. The bus has them after the counts of two rings.
COUNT_WORD, UNDERRUNS_WORD, FRAMES_WORD, FIRST_UNDERRUN_WORD, ERRORS_WORD = 2, 4, 5, 6, 7
SHOWN_WORDS = 8

# Ring Answers -------------------------------------------------------------------------------------

class RingAnswers(LiteXModule):
    """Decides when the host of a ring is to be answered.

    Parameters
    ----------
    words : int, of the ring

    Attributes
    ----------
    judged, accepted, is_early, asks : Signal(), in
        A datagram of the present session was judged; it was accepted, or ahead; it asks.
    is_open : Signal(), in
    fetched : Signal(32), in
    tick : Signal(), in
        It is time for an answer without a cause.
    answer : Signal(), in
        An answer begins.
    is_due : Signal(), out
    has_gap : Signal(), out
        Since the last datagram that was accepted, one was ahead.
    """
    def __init__(self, words):
        self.judged   = Signal()
        self.accepted = Signal()
        self.is_early = Signal()
        self.asks     = Signal()
        self.is_open  = Signal()
        self.fetched  = Signal(32)
        self.tick     = Signal()
        self.answer   = Signal()
        self.is_due   = Signal()
        self.has_gap  = Signal()

        # # #

        has_peer = Signal()
        count    = Signal(max=STATUS_DATAGRAMS) # Accepted since the last answer.
        share    = Signal(log2_int(STATUS_SHARES))
        answered = Signal.like(share)
        self.comb += share.eq(self.fetched[log2_int(words//STATUS_SHARES):])
        self.sync += [
            If(self.answer,
                self.is_due.eq(0),
                count.eq(0),
                answered.eq(share),
            ),
            If(has_peer & (self.tick | ((share != answered) & ~self.answer)), self.is_due.eq(1)),
            If(self.judged,
                has_peer.eq(1),
                If(self.accepted,
                    self.has_gap.eq(0),
                    count.eq(Mux(self.answer, 1, count + 1)),
                    If((count == STATUS_DATAGRAMS - 1) & ~self.answer, self.is_due.eq(1)),
                ),
                If(self.is_early, self.has_gap.eq(1)),
                If(self.asks | (self.is_early & ~self.has_gap), self.is_due.eq(1)),
            ),
            If(~self.is_open,
                has_peer.eq(0),
                self.has_gap.eq(0),
                self.is_due.eq(0),
                count.eq(0),
                answered.eq(share),
            ),
        ]

# Status -------------------------------------------------------------------------------------------

class DatagramStatus(LiteXModule):
    """Answers the hosts of several rings, each in its turn.

    Parameters
    ----------
    mac, ip : bytes, addresses of the probe
    rings, words : int
    period : int
        Cycles from one answer without a cause to the next; and at least from one stranger's to the next.

    Attributes
    ----------
    take, line, word : Signal(), Signal(4), Signal(32), in
        As of `DatagramHead`.
    judged, ring, is_present, accepted, is_early, asks : Signal(), Signal, Signal(), in
        A sound datagram was judged: for which ring; whether it is of the present session; and as of `RingAnswers`.
    sessions, is_open, lease : list of Signal(16), Signal(rings), Signal(16), in
        As of `DatagramHead`.
    fetched, frames, underruns : list of Signal(32), Signal(32), Signal(16), in
    is_running, is_starved : Signal(rings), in
    first_underrun, is_bad : list of Signal(32), Signal(rings), in
        For the bus.
    read_kind, read_ring : Signal(3), Signal, out
        Which number is wanted in ``count``, as of `DatagramCounts`.
    count, can_read : Signal(32), Signal(), in
    bus : wishbone.Interface, slave
        The first 16 words are the numbers of `DatagramCounts`. Then 8 words of each ring, of which these can be read: 4
        ``underruns``, 5 ``frames``, 6 ``first_underrun``, 7 ``is_bad``. Writes do nothing.
    source : Endpoint(eth_phy_description(32)), out
    """
    def __init__(self, mac, ip, rings, words, period):
        bits = len(Signal(max=max(rings, 2)))
        self.take       = Signal()
        self.line       = Signal(4)
        self.word       = Signal(32)
        self.judged     = Signal()
        self.ring       = Signal(bits)
        self.is_present = Signal()
        self.accepted   = Signal()
        self.is_early   = Signal()
        self.asks       = Signal()
        self.sessions   = [Signal(16, name=f"session{n}") for n in range(rings)]
        self.is_open    = Signal(rings)
        self.lease      = Signal(16)
        self.fetched    = [Signal(32, name=f"fetched{n}") for n in range(rings)]
        self.frames     = [Signal(32, name=f"frames{n}") for n in range(rings)]
        self.underruns  = [Signal(16, name=f"underruns{n}") for n in range(rings)]
        self.is_running = Signal(rings)
        self.is_starved = Signal(rings)
        self.first_underrun = [Signal(32, name=f"first_underrun{n}") for n in range(rings)]
        self.is_bad     = Signal(rings)
        self.read_kind  = Signal(max=COUNTS)
        self.read_ring  = Signal(bits)
        self.count      = Signal(32)
        self.can_read   = Signal()
        self.bus        = wishbone.Interface(data_width=32, address_width=32, addressing="word")

        # # #

        self.framer = DatagramFramer(mac, ip, REPLAY_PORT)
        # A register between words and framer: who may send is decided far away, and what a word is, too.
        self.buffer = stream.Buffer([("data", 32)])
        self.peers  = DatagramPeers(rings + 1)
        self.rings  = [RingAnswers(words) for _ in range(rings)]
        for number, ring in enumerate(self.rings):
            self.add_module(name=f"ring{number}", module=ring)
        self.source = self.framer.source
        header = self.framer.header
        for unreset in (header.peer_mac, header.peer_ip, header.port): # Of no use before a peer is there.
            stream.set_reset_less(unreset)
        self.turn   = Signal(2)    # Whose turn it is: a ring's, or the last stranger's.
        self.ring_answered = Signal(bits)
        self.is_bus = Signal()     # The bus reads.
        self.stranger_due  = Signal()
        self.stranger_ring = Signal(bits)
        self.add_causes(rings, period)
        self.add_words(words)
        self.add_turns(rings)

    def add_causes(self, rings, period):
        """Know who is to be answered."""
        stranger = rings
        timer    = Signal(max=period)
        tick     = Signal()
        may_tell = Signal(reset=1) # No stranger was answered since the last tick.
        peers    = self.peers
        self.comb += [
            *copied(peers, self, "take", "line", "word"),
            peers.owner.eq(Mux(self.is_present, self.ring, stranger)),
            peers.assign.eq(self.judged & (self.is_present | may_tell)),
        ]
        self.sync += [
            tick.eq(timer == 0),
            timer.eq(timer - 1),
            If(timer == 0, timer.eq(period - 1)),
            If(tick, may_tell.eq(1)),
            If(self.judged & ~self.is_present & may_tell,
                may_tell.eq(0),
                self.stranger_due.eq(1),
                self.stranger_ring.eq(self.ring),
            ),
        ]
        for number, ring in enumerate(self.rings):
            self.comb += [
                ring.judged.eq(self.judged & self.is_present & (self.ring == number)),
                *copied(ring, self, "accepted", "is_early", "asks"),
                ring.is_open.eq(self.is_open[number]),
                ring.fetched.eq(self.fetched[number]),
                ring.tick.eq(tick),
            ]

    def add_words(self, words):
        """Show the words of an answer, as things are when they leave for the framer."""
        ring, payload, bus = self.read_ring, self.buffer.sink, self.bus
        self.to_stranger = Signal()
        self.place       = Signal(max=STATUS_WORDS)
        is_live = bus.adr[log2_int(COUNTS) + len(ring)] # The bus asks for a word that is not a number of `DatagramCounts`.
        place   = Signal(max=SHOWN_WORDS)
        limit = Signal(32)
        gaps  = [one.has_gap for one in self.rings]
        flags = Cat(Array(gaps)[ring], self.to_stranger, Array(self.is_running)[ring], Array(self.is_starved)[ring])
        self.comb += [
            limit.eq(Array(self.fetched)[ring] + words),
            self.framer.header.words.eq(STATUS_WORDS),
            self.is_bus.eq(bus.cyc & bus.stb & ~bus.ack & self.can_read),
            If(self.is_bus,
                ring.eq(bus.adr[log2_int(COUNTS):]),
                place.eq(Mux(is_live, bus.adr[:len(place)], COUNT_WORD)),
                self.read_kind.eq(Mux(is_live, NOTHING, bus.adr[:len(self.read_kind)])),
            ).Else(
                ring.eq(self.ring_answered),
                place.eq(self.place),
                self.read_kind.eq(Mux(self.place[2], REFUSED, ACCEPTED)),
            ),
            payload.last.eq(self.place == STATUS_WORDS - 1),
        ]
        shown = [
            Cat(ring, C(0, 8 - len(ring)), flags, C(0, 4), C(DATAGRAM_MAGIC, 16)),
            Cat(self.lease, Array(self.sessions)[ring]),
            self.count,
            limit,
            Cat(Array(self.underruns)[ring], self.count[:16]),
            Array(self.frames)[ring],
            Array(self.first_underrun)[ring],
            Array(self.is_bad)[ring],
        ]
        self.comb += Case(place, {number: payload.data.eq(word) for number, word in enumerate(shown)})
        self.sync += bus.ack.eq(self.is_bus), bus.dat_r.eq(payload.data)

    def add_turns(self, rings):
        """Answer one after the other: look up the peer, then give the words."""
        turn, place, peers, header, payload = self.turn, self.place, self.peers, self.framer.header, self.buffer.sink
        self.fsm = fsm = FSM(reset_state="CHOOSE")
        self.comb += peers.find.eq(fsm.ongoing("CHOOSE")), peers.find_owner.eq(turn), peers.read_word.eq(place)
        fsm.act("CHOOSE",
            NextValue(turn, turn + 1),
            If(turn == rings, NextValue(turn, 0)),
            NextValue(self.ring_answered, turn),
            NextValue(self.to_stranger, turn == rings),
            NextValue(place, 0),
            *[If((turn == number) & ring.is_due,
                ring.answer.eq(1),
                NextValue(turn, turn),
                NextState("PEER"),
            ) for number, ring in enumerate(self.rings)],
            If((turn == rings) & self.stranger_due,
                NextValue(self.stranger_due, 0),
                NextValue(self.ring_answered, self.stranger_ring),
                NextValue(turn, turn),
                NextState("PEER"),
            ),
        )
        fsm.act("PEER",
            NextValue(place, place + 1),
            Case(place, {
                0: NextValue(header.peer_mac[:32], peers.data),
                1: NextValue(header.peer_mac[32:], peers.data),
                2: NextValue(header.port, swapped(peers.data[:16])),
                3: [NextValue(header.peer_ip, peers.data), NextValue(place, 0), NextState("WORDS")],
            }),
        )
        # The first word leaves once its frame has begun, and not while the frame before it is on its way.
        framer, waiting = self.framer, self.buffer.source
        is_begun = Signal()
        self.comb += [
            is_begun.eq((framer.fsm.ongoing("HEADER") & (header.line != 0)) | (framer.fsm.ongoing("PAYLOAD") & ~waiting.valid)),
            waiting.connect(framer.sink),
            If(framer.fsm.ongoing("WAIT"), framer.sink.valid.eq(fsm.ongoing("WORDS") & (place == 0))),
        ]
        fsm.act("WORDS",
            payload.valid.eq(self.can_read & ~self.is_bus & (is_begun | (place != 0))),
            If(payload.valid & payload.ready,
                NextValue(place, place + 1),
                If(payload.last,
                    NextValue(turn, turn + 1),
                    If(turn == rings, NextValue(turn, 0)),
                    NextState("CHOOSE"),
                ),
            ),
        )
