# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Makes an answer, line by line, of what the store has of the request and what the memory of the host has; tables say of which."""

from enum import IntEnum

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats.reflect import (
    PAGE_LINES, PAGE_WORD, RECEIVED_WORD, SESSION_WORD, TAG_LINE, Own, Page, line_word,
)
from liteprobe.cores.reflect.complement import ComplementSum
from liteprobe.cores.reflect.request import LAST_LINE, LINE_BITS, PAGE_BITS, LineSequence
from liteprobe.cores.transmit.departure import Departure

# Tables -------------------------------------------------------------------------------------------

OFFSET_BITS = 6
PLACE_BITS  = 10

class High(IntEnum):
    """Says what the first half of a line is."""
    STORE  = 0 # First half of the request's line that the offset says.
    CROSS  = 1 # Second half of the line that the offset of the second half says.
    MEMORY = 2
    TTL    = 3 # TTL or hop limit of the request, then 0.

class Low(IntEnum):
    """Says what the second half is."""
    STORE  = 0
    CROSS  = 1
    MEMORY = 2
    SUM    = 3 # The checksum.

class Only(IntEnum):
    """Says when a half is of the memory, which else is of the store."""
    ALWAYS     = 0
    SHORT_HIGH = 1 # The first half: of a short STAMP.
    SHORT_LOW  = 2
    OPTION     = 3
    STATEFUL   = 4
    NO_SESSION = 5 # The second half.
    RECEIVED   = 6 # Always; it is the session's count of requests,
    SENT       = 7 # or of answers.

class By(IntEnum):
    """Says what changes the number of the memory's word."""
    NOTHING = 0
    MESSAGE = 1 # Its number is by one more for STAMP, by two for neighbour discovery.
    VERSION = 2 # By one more for IPv6.

class Prologue(IntEnum):
    """Lines that are added up before an answer, by what it is."""
    PING4, PING6, ND, ND_OPTION, STAMP4, STAMP6, SHORT4, SHORT6 = range(8)

#: Its first line; the last one is `LAST_LINE`.
FIRST_OF_PROLOGUE = {
    Prologue.PING4: 13, Prologue.PING6: 15, Prologue.ND: 15, Prologue.ND_OPTION: 14,
    Prologue.STAMP4: 9, Prologue.STAMP6: 10, Prologue.SHORT4: 6, Prologue.SHORT6: 9,
}
FIELDS = (
    ("off_high", OFFSET_BITS), ("off_low", OFFSET_BITS), ("high", 2), ("low", 2), ("word", 7), ("by", 2), ("only", 3), ("mark", 3),
    ("begins", 1), # The sum.
    ("takes",  1), # That of the request then.
    ("of_header", 1), # The checksum is that of the IPv4 header.
)
HOST_WORD = line_word(Page.LINK, 2) # The first four octets of our MAC address.

def line(high="store", low="store", word=Own.ZERO, off=(0, 0), **more):
    """Return the fields of a line."""
    return {
        "high": int(High[high.upper()]), "low": int(Low[low.upper()]), "word": word - PAGE_WORD,
        "off_high": off[0] % 2**OFFSET_BITS, "off_low": off[1] % 2**OFFSET_BITS,
        **{name: int(value) for name, value in more.items()},
    }

def memory(word, **more):
    """Return the fields of a line that is of the memory."""
    return line("memory", "memory", word, **more)

def answer_table():
    """Return the fields of the lines of answers, by page and line."""
    def same(lines, **more):
        return {number: line(**more) for number in lines}
    def tail(first):
        return same(range(first, PAGE_LINES))
    first, rest = HOST_WORD, HOST_WORD + 1 # Of our MAC address.
    return {
        Page.LINK: {
            0: line("store", "cross", off=(2, 0)), 1: line("cross", "cross", off=(2, 1)), 2: memory(first),
            3: line("memory", "store", rest), TAG_LINE: line(),
        },
        Page.ARP: {
            4: line(), 5: line("store", "memory", Own.ARP_REPLY), 6: memory(first), 7: line("memory", "cross", rest, (3, 0)),
            8: line("cross", "cross", off=(-2, 2)), **same((9, 10), high="cross", low="cross", off=(-2, -3)),
            **{number: memory(Own.ZERO) for number in range(11, PAGE_LINES)},
        },
        Page.IPV4: {
            4: line("store", "memory", Own.TTL_STAMP, only=Only.SHORT_LOW), 5: line(),
            6: line("memory", "sum", Own.TTL_PING, by=By.MESSAGE, of_header=1), 7: line(off=(1, 1)), 8: line(off=(-1, -1)),
        },
        Page.IPV6: {
            4: line(), 5: line("memory", "memory", Own.HOPS_PING, by=By.MESSAGE, only=Only.SHORT_HIGH),
            **{number: memory(line_word(Page.IPV6, number)) for number in range(6, 10)},
            **same(range(10, 14), off=(-4, -4)),
        },
        Page.UDP: {
            0: line("cross", "cross"), 1: line("memory", "sum", Own.SHORT, only=Only.SHORT_HIGH),
            2: memory(Own.SEQUENCE, only=Only.STATEFUL, mark=Departure.CHECKSUM),
            3: memory(Own.ZERO, mark=Departure.FIRST), 4: memory(Own.ZERO, mark=Departure.MIDDLE),
            5: memory(Own.ERROR, only=Only.NO_SESSION, mark=Departure.LAST),
            6: memory(Own.SECOND), 7: memory(Own.NANOSECOND), **same((8, 9, 10), off=(-6, -6)),
            11: line("store", "memory", off=(-6, 0)), 12: line("ttl", "memory", off=(-15, -21)), **tail(13),
        },
        Page.ICMP: {0: line("memory", "sum", Own.ECHO4, by=By.VERSION), **tail(1)},
        Page.ND: {
            0: line("memory", "sum", Own.ADVERTISEMENT), 1: memory(Own.ND_FLAGS), **same(range(2, 6)),
            6: memory(Own.OPTION, only=Only.OPTION), 7: memory(line_word(Page.LINK, 1), only=Only.OPTION), **tail(8),
        },
        Page.OTHER: tail(0),
    }

def prologue_table():
    """Return the fields of the lines that are added up, by what is answered and line."""
    header = {"off": (6, 6), "begins": 1}
    begin  = {"begins": 1, "takes": 1}
    def stamp(sequence, protocol, **more):
        return {
            0: memory(Own.ZERO, only=Only.RECEIVED), 1: memory(Own.ZERO, only=Only.SENT), # Of direct measurement, the last ones.
            11: memory(Own.SEQUENCE, only=Only.STATEFUL, off=(sequence, sequence), **more), 12: memory(Own.ERROR),
            13: line("ttl", "memory", protocol, (6, 5)), 14: memory(Own.SECOND), 15: memory(Own.NANOSECOND),
        }
    return {
        Prologue.PING4: {13: line(**header), 14: memory(Own.SUM_TTL_PING), 15: memory(Own.ZERO, **begin)},
        Prologue.PING6: {15: memory(Own.SUM_ECHO6, **begin)},
        Prologue.ND: {15: memory(Own.SUM_ND, **begin)},
        Prologue.ND_OPTION: {14: memory(Own.SUM_ND, **begin), 15: memory(Own.SUM_OPTION)},
        Prologue.STAMP4: {9: line(**header), 10: memory(Own.SUM_TTL_STAMP), **stamp(11, Own.UDP, **begin)},
        Prologue.STAMP6: {10: memory(Own.SUM_STAMP6, **begin), **stamp(16, Own.ZERO)},
        Prologue.SHORT4: {
            6: line(**header), 7: memory(Own.SUM_SHORT_HEADER), 8: line("memory", "store", off=(0, 4)),
            9: memory(Own.SUM_SHORT, **begin), 10: memory(Own.ZERO), **stamp(11, Own.UDP),
        },
        Prologue.SHORT6: {9: memory(Own.SUM_SHORT, **begin), 10: memory(Own.SUM_STAMP6), **stamp(16, Own.ZERO)},
    }

def rom():
    """Return the words of both tables, that of answers first."""
    words = []
    for table, pages in ((answer_table(), Page), (prologue_table(), Prologue)):
        for page in pages:
            for number in range(PAGE_LINES):
                fields, at, word = table[page].get(number, {}), 0, 0
                for name, bits in FIELDS:
                    word |= fields.get(name, 0) << at
                    at += bits
                words.append(word)
    return words + [0]*(512 - len(words))

# Answer Lines -------------------------------------------------------------------------------------

class AnswerLines(LiteXModule):
    """Reads the lines of an answer, or of a frame as it is, one a cycle.

    Attributes
    ----------
    begin : Signal(), in
        Begin; all others of what is answered stay up to ``done``.
    has_prologue, prologue : Signal(), Signal(3), in
        `Prologue`.
    last_line : Signal(10), in
    first : Signal(10), in
        Line of the store with line 0 of the request.
    network, transport : Signal(3), in
        Pages after the link and the IP header; a frame that is read as it is has none.
    is_plain, is_sent : Signal(), in
        A frame of the store, or of the mailbox, as it is.
    tagged, is_v6, is_udp, is_nd, is_short, has_option, is_stateful, has_session, has_checksum : Signal(), in
    sum : Signal(16), in
        Of what the answer keeps; with all that is added up here its checksum is complete but for T3.
    session : Signal(8), in
    direct : Signal(10), in
        Line of direct measurement's count of what was received; 0: none.
    look, place : Signal(), Signal(6), in
        While nothing is read: read a line of the request.
    read, high_line, low_line, high, low : as of `RequestStore`, which they are joined to.
    reads, address, shown : Signal(), Signal(10), out, Signal(32), in
        Read a word of the memory; it is there in the next cycle, and stays while ``holds``.
    holds : Signal(), out
    line_valid, number : Signal(), Signal(10), out
        Each line.
    source : Endpoint([("data", 32), ("mark", 3)]), out
        Words of the frame.
    done : Signal(), out
        One cycle: the last one was taken.
    """
    def __init__(self):
        self.begin        = Signal()
        self.has_prologue = Signal()
        self.prologue     = Signal(3)
        self.last_line    = Signal(PLACE_BITS)
        self.first        = Signal(PLACE_BITS)
        self.network      = Signal(PAGE_BITS)
        self.transport    = Signal(PAGE_BITS)
        self.is_plain     = Signal()
        self.is_sent      = Signal()
        for name in ("tagged", "is_v6", "is_udp", "is_nd", "is_short", "has_option", "is_stateful", "has_session", "has_checksum"):
            setattr(self, name, Signal(name=name))
        self.sum          = Signal(16)
        self.session      = Signal(8)
        self.direct       = Signal(PLACE_BITS)
        self.look         = Signal()
        self.place        = Signal(OFFSET_BITS)
        self.read         = Signal()
        self.high_line    = Signal(PLACE_BITS)
        self.low_line     = Signal(PLACE_BITS)
        self.high         = Signal(16)
        self.low          = Signal(16)
        self.reads        = Signal()
        self.address      = Signal(PLACE_BITS)
        self.shown        = Signal(32)
        self.holds        = Signal()
        self.line_valid   = Signal()
        self.number       = Signal(PLACE_BITS, reset_less=True)
        self.source       = stream.Endpoint([("data", 32), ("mark", 3)])
        self.done         = Signal()

        # # #

        self.add_order()
        self.add_places()
        self.add_line()

    def add_order(self):
        """Look up a line after the other."""
        self.advance = advance = Signal()
        self.sequence = sequence = LineSequence()
        is_on       = Signal()
        is_prologue = Signal(reset_less=True)
        page   = Signal(PAGE_BITS, reset_less=True)
        line   = Signal(LINE_BITS, reset_less=True)
        number = Signal(PLACE_BITS, reset_less=True)
        self.read_on       = Signal()
        self.read_prologue = Signal(reset_less=True)
        self.read_number = Signal(PLACE_BITS, reset_less=True)
        self.read_last = Signal(reset_less=True)
        table = Memory(sum(bits for _, bits in FIELDS), 512, init=rom(), name="answers")
        port  = table.get_port(has_re=True)
        self.autocsr_exclude = {"table"}
        self.table = table
        self.specials += table, port
        self.fields, at = {}, 0
        for name, bits in FIELDS:
            self.fields[name] = port.dat_r[at:at + bits]
            at += bits
        is_end = number == self.last_line
        self.has_direct = Signal()
        self.comb += self.has_direct.eq(self.direct != 0)
        self.comb += [
            sequence.page.eq(page),
            sequence.line.eq(line),
            *[getattr(sequence, name).eq(getattr(self, name)) for name in ("tagged", "network", "transport")],
            port.adr.eq(Cat(line, page, is_prologue)),
            port.re.eq(advance),
        ]
        starts = [page.eq(Mux(self.is_plain | self.is_sent, Page.OTHER, Page.LINK)), line.eq(0), number.eq(0), is_prologue.eq(0)]
        self.sync += [
            If(advance,
                self.read_on.eq(is_on),
                self.read_prologue.eq(is_prologue),
                self.read_number.eq(number),
                self.read_last.eq(is_end & ~is_prologue),
                If(is_prologue,
                    line.eq(line + 1),
                    If((line == 1) | ((line == LAST_LINE) & ~self.has_direct), *starts),
                ).Else(
                    page.eq(sequence.next_page),
                    line.eq(sequence.next_line),
                    number.eq(number + 1),
                    If(is_end, is_on.eq(0)),
                ),
            ),
            If(self.begin,
                is_on.eq(1),
                *starts,
                If(self.has_prologue,
                    is_prologue.eq(1),
                    page.eq(self.prologue),
                    Case(self.prologue, {int(kind): line.eq(first) for kind, first in FIRST_OF_PROLOGUE.items()}),
                    number.eq(self.tagged),
                ),
            ),
        ]

    def add_places(self):
        """Read what a line is made of."""
        f = self.fields
        place = Signal(PLACE_BITS)
        off_high = Signal((OFFSET_BITS, True))
        off_low  = Signal((OFFSET_BITS, True))
        is_received = Signal() # The line is one of direct measurement.
        is_answered = Signal(reset_less=True)
        self.is_counted = Signal()
        self.sync += If(self.advance, is_answered.eq(is_received))
        self.comb += [
            place.eq(self.first + Mux(self.read_on, self.read_number, self.tagged)),
            off_high.eq(Mux(self.read_on, f["off_high"], self.place)),
            off_low.eq(Mux(self.read_on, f["off_low"], self.place)),
            self.high_line.eq(place + off_high),
            self.low_line.eq(place + off_low),
            self.read.eq((self.read_on & self.advance) | self.look),
            is_received.eq(self.has_direct & self.read_on & ~self.read_prologue & (self.read_number == self.direct)),
            self.is_counted.eq(self.is_sent | is_received | is_answered),
            self.reads.eq(self.read_on & self.advance & ((f["high"] == High.MEMORY) | f["low"][1] | self.is_counted)),
            self.address.eq(Cat(
                f["word"] ^ Mux(f["by"] == By.MESSAGE, Cat(self.is_udp, self.is_nd), Mux(f["by"] == By.VERSION, self.is_v6, 0)),
                Constant(PAGE_WORD >> 7, 3))),
            If(is_answered | (f["only"] == Only.SENT), self.address.eq(Cat(self.session, Constant(SESSION_WORD >> 8, 2)))),
            If(is_received | (f["only"] == Only.RECEIVED), self.address.eq(Cat(self.session, Constant(RECEIVED_WORD >> 8, 2)))),
            If(self.is_sent, self.address.eq(self.read_number[:5])),
        ]

    def add_line(self):
        """Put a line together; add it up, or give it to the line."""
        f = self.fields
        names = ("high", "low", "only", "mark", "begins", "takes", "of_header")
        now = {name: Signal(len(f[name]), reset_less=True, name=f"line_{name}") for name in names}
        is_on       = Signal()
        is_prologue = Signal(reset_less=True)
        is_last   = Signal(reset_less=True)
        is_first  = Signal(reset_less=True)
        rest      = Signal(16, reset_less=True)
        high = Signal(16)
        low  = Signal(16)
        high_other = Signal() # It is of the store, after all.
        low_other  = Signal()
        only   = now["only"]
        header = Signal(16, reset_less=True)
        final  = Signal(16)
        self.total = total = ComplementSum()
        is_full = Signal()
        source = self.source
        self.sync += If(self.advance,
            is_on.eq(self.read_on),
            is_prologue.eq(self.read_prologue),
            is_last.eq(self.read_last),
            is_first.eq(self.read_number == 0),
            self.number.eq(self.read_number),
            *[now[name].eq(f[name]) for name in names],
            If(self.is_counted, now["high"].eq(High.MEMORY), now["low"].eq(Low.MEMORY)),
        )
        both = ((only == Only.OPTION) & ~self.has_option) | ((only == Only.STATEFUL) & ~self.is_stateful)
        self.comb += [
            high_other.eq(both | ((only == Only.SHORT_HIGH) & ~self.is_short)),
            low_other.eq(both | ((only == Only.SHORT_LOW) & ~self.is_short) | ((only == Only.NO_SESSION) & self.has_session)),
            Case(Cat(now["high"][0], now["high"][1] & (now["high"][0] | ~high_other)), {
                int(High.STORE):  high.eq(self.high),
                int(High.CROSS):  high.eq(self.low),
                int(High.MEMORY): high.eq(self.shown[16:]),
                int(High.TTL):    high.eq(Cat(Constant(0, 8), Mux(self.is_v6, self.low[:8], self.high[8:]))),
            }),
            is_full.eq(total.total == 0xffff),
            # Of an echo reply that is all 0, a checksum of 0 would be wrong; its other form is right of any.
            final.eq(~total.total | Replicate(is_full & ~self.is_v6 & ~self.is_udp, 16)),
            Case(Cat(now["low"][0], now["low"][1] & (now["low"][0] | ~low_other)), {
                int(Low.STORE):  low.eq(self.low),
                int(Low.CROSS):  low.eq(self.high),
                int(Low.MEMORY): low.eq(self.shown[:16]),
                int(Low.SUM):    low.eq(Mux(now["of_header"], header, final & Replicate(self.has_checksum | ~self.is_udp, 16))),
            }),
            self.line_valid.eq(is_on & ~is_prologue),
            source.valid.eq(self.line_valid & ~is_first & ~self.is_plain),
            source.data.eq(Cat(high, rest)),
            source.last.eq(is_last),
            source.mark.eq(now["mark"]),
            If((now["mark"] == Departure.CHECKSUM) & ~self.has_checksum, source.mark.eq(Departure.NONE)),
            self.advance.eq(~source.valid | source.ready),
            self.holds.eq(~self.advance),
            self.done.eq(self.line_valid & is_last & self.advance),
            total.a.eq(high),
            total.b.eq(low),
            total.add.eq(is_on & is_prologue),
            total.begin.eq(is_on & is_prologue & now["begins"]),
            total.initial.eq(self.sum & Replicate(now["takes"], 16)),
        ]
        self.sync += If(self.advance,
            rest.eq(low),
            If(now["takes"] & is_on & is_prologue, header.eq(total.total & Replicate(~is_full, 16))),
        )
