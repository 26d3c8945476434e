# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Stores management frames and brings them to the line: between frames of a program, or on a port of their own."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description

from liteprobe.cores.assign import copied
from liteprobe.cores.crossing import StreamCrossing
from liteprobe.cores.formats import MIN_LENGTH, OVERHEAD
from liteprobe.cores.octets import bytes_of_last_be
from liteprobe.cores.transmit.departure import MARK_BITS, DepartureStamp, marked_description
from liteprobe.cores.transmit.frames import octet_description, word_description
from liteprobe.cores.transmit.line import LINE_TICKS, LineGrant
from liteprobe.cores.transmit.mac import TransmitMAC, WidthConverter

STORE_WORDS = 1024
STORE_FRAMES = 16
HOST_FRAMES  = 32 # Where a host answers at the rate of the line: of the shortest, 18 come while the longest one leaves.
SPARE_FRAMES, SPARE_WORDS = 4, 16 # That frames which may wait leave to others.
FRAME_WORDS = 384 # Longest management frame: 1536 octets.
WORD_OCTETS = 4

# Frame Store --------------------------------------------------------------------------------------

class ManagementStore(LiteXModule):
    """Holds whole frames until they may leave; in ``sys``.

    Parameters
    ----------
    words : int
        That it holds; a power of two, more than those of the longest frame.
    with_marks : bool
        Each word has ``marks``, as ``error`` of the sink says.

    Never stalls its sink: while a train keeps the line busy, requests must still be obeyed (``stop``!), so a
    reply that finds no space is dropped whole and counted.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(32)), in
        ``ready`` is constant 1.
    source : Endpoint(word_description(32)), out
        Words of whole frames.
    holds : Endpoint([("hold", 11)]), out
        For each frame that is whole: ticks that it takes on the line, padding and gap included, less LINE_TICKS.
    dropped : Signal(), out
        One pulse for each frame dropped: store full or frame above 1536 octets.
    has_space : Signal(), out
        A frame of 1536 octets finds space, if it begins now; two cycles late.
    has_spare : Signal(), out
        Likewise, and some after it: what may wait must leave others their place.
    """
    def __init__(self, words=STORE_WORDS, with_marks=False):
        self.sink    = stream.Endpoint(eth_phy_description(8*WORD_OCTETS))
        self.source  = stream.Endpoint(marked_description() if with_marks else word_description(8*WORD_OCTETS))
        self.holds   = stream.Endpoint([("hold", 11)])
        self.dropped  = Signal()
        self.has_space = Signal()
        self.has_spare = Signal()

        # # #

        self.with_marks = with_marks

        # Without this LiteX gives the memory a page of the CSR bus, wherever no path above excludes the store.
        self.autocsr_exclude = {"memory"}

        bits          = log2_int(words)
        self.read     = Signal(bits) # Next word to read.
        self.memory   = Memory(8*WORD_OCTETS + MARK_BITS*with_marks, words)
        frames        = HOST_FRAMES if with_marks else STORE_FRAMES
        self.lengths  = stream.SyncFIFO([("words", 9), ("last_be", WORD_OCTETS), ("hold", 11)], frames)
        self.spare    = frames - SPARE_FRAMES
        self.specials += self.memory
        self.add_write(bits)
        self.add_read(bits)

    def add_write(self, bits):
        """Write words at once, and take the frame back if it doesn't fit."""
        sink    = self.sink
        write   = Signal(bits) # Next word to write.
        begin   = Signal(bits) # First word of the present frame.
        words   = Signal(9)    # Of the present frame, before this one.
        is_lost = Signal()
        fits    = Signal()
        length  = Signal(11)
        port    = self.memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += port
        self.comb += [
            sink.ready.eq(1),
            fits.eq(~is_lost & ((write + 1)[:bits] != self.read) & (words != FRAME_WORDS) & self.lengths.sink.ready),
            port.adr.eq(write),
            port.dat_w.eq(Cat(sink.data, sink.error[:MARK_BITS]) if self.with_marks else sink.data),
            port.we.eq(sink.valid & fits),
            length.eq(Cat(Constant(0, 2), words) + Mux(sink.last_be == 0, WORD_OCTETS, bytes_of_last_be(sink.last_be))),
            self.lengths.sink.valid.eq(sink.valid & sink.last & fits),
            self.lengths.sink.words.eq(words),
            self.lengths.sink.last_be.eq(Mux(sink.last_be == 0, 1 << (WORD_OCTETS - 1), sink.last_be)),
            self.lengths.sink.hold.eq(Mux(length < MIN_LENGTH, MIN_LENGTH, length) + OVERHEAD - LINE_TICKS),
            self.dropped.eq(sink.valid & sink.last & ~fits),
        ]
        level = Signal(bits)
        self.comb += level.eq(write - self.read)
        self.sync += [
            self.has_space.eq((level < 2**bits - FRAME_WORDS) & self.lengths.sink.ready),
            self.has_spare.eq((level < 2**bits - FRAME_WORDS - SPARE_WORDS) & (self.lengths.level < self.spare)),
        ]
        self.sync += If(sink.valid,
            write.eq(write + 1),
            words.eq(words + 1),
            If(~fits,
                is_lost.eq(1),
                write.eq(begin),
            ),
            If(sink.last,
                is_lost.eq(0),
                words.eq(0),
                If(fits, begin.eq(write + 1)),
            ),
        )

    def add_read(self, bits):
        """Read out frames that are whole, and announce each as its words begin to leave."""
        lengths, source, holds = self.lengths.source, self.source, self.holds
        port      = self.memory.get_port(has_re=True, mode=READ_FIRST)
        self.specials += port
        left      = Signal(9)
        is_open   = Signal() # The frame was announced.
        is_ahead  = Signal() # The memory's output is the next word.
        advance   = Signal()
        self.comb += [
            holds.valid.eq(lengths.valid & ~is_open),
            holds.hold.eq(lengths.hold),
            advance.eq(is_open & (source.ready | ~is_ahead)),
            port.adr.eq(self.read),
            port.re.eq(advance),
            source.valid.eq(is_ahead),
            (Cat(source.data, source.marks) if self.with_marks else source.data).eq(port.dat_r),
            lengths.ready.eq(advance & (left == 0)),
        ]
        self.sync += [
            If(source.ready, is_ahead.eq(0)),
            If(holds.valid & holds.ready,
                is_open.eq(1),
                left.eq(lengths.words),
            ),
            If(advance,
                is_ahead.eq(1),
                source.last.eq(left == 0),
                source.last_be.eq(Mux(left == 0, lengths.last_be, 0)),
                self.read.eq(self.read + 1),
                left.eq(left - 1),
                If(left == 0, is_open.eq(0)),
            ),
        ]

# Management Queue ---------------------------------------------------------------------------------

class ManagementQueue(LiteXModule):
    """Stores management frames and shows the next one, whole, to the line.

    Parameters
    ----------
    words : as of `ManagementStore`
    with_stamp : bool
        With ``stamp``: a `DepartureStamp`, whose marks are in ``error`` of the sink. Rename its domain with that of the queue.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(32)), in, ``sys``
        Never stalls; see ManagementStore.
    source : Endpoint(octet_description()), out, ``timebase``
    waiting : Signal(), out, ``timebase``
        A whole frame is in waiting.
    hold : Signal(11), out, ``timebase``
        Ticks that it takes on the line, less LINE_TICKS.
    start : Signal(), in, ``timebase``
        One pulse as it starts.
    dropped : Signal(), out, ``sys``
        One pulse for each frame that found no space.
    has_space, has_spare : Signal(), out, ``sys``
        As of ManagementStore.
    """
    def __init__(self, words=STORE_WORDS, with_stamp=False):
        self.sink    = stream.Endpoint(eth_phy_description(32))
        self.source  = stream.Endpoint(octet_description())
        self.waiting = Signal()
        self.hold    = Signal(11)
        self.start   = Signal()
        self.dropped  = Signal()
        self.has_space = Signal()
        self.has_spare = Signal()

        # # #

        self.store  = store  = ManagementStore(words, with_stamp)
        self.words  = words  = StreamCrossing(store.source.description, "sys", "timebase", rests="timebase")
        self.holds  = holds  = StreamCrossing([("hold", 11)], "sys", "timebase", depth=4, rests="timebase")
        self.converter = converter = WidthConverter(32)
        if with_stamp:
            self.stamp = DepartureStamp()
        started = Signal() # ``hold`` may go a tick late: the line is busy.
        self.sync.timebase += started.eq(self.start)
        self.comb += [
            self.sink.connect(store.sink),
            store.source.connect(words.sink),
            *([words.source.connect(self.stamp.sink), self.stamp.source.connect(converter.sink)] if with_stamp else
                [words.source.connect(converter.sink)]),
            converter.source.connect(self.source),
            store.holds.connect(holds.sink),
            self.waiting.eq(holds.source.valid),
            self.hold.eq(holds.source.hold),
            holds.source.ready.eq(started),
            *copied(self, store, "dropped", "has_space", "has_spare"),
        ]

def delayed(module, signal, ticks):
    """Return a signal of one bit so many ticks late, by registers of a module."""
    for _ in range(ticks):
        later = Signal()
        module.sync.timebase += later.eq(signal)
        signal = later
    return signal

# Management Transmit ------------------------------------------------------------------------------

class ManagementTransmit(LiteXModule):
    """Sends management frames on a port of their own, each as soon as the line is free.

    Parameters
    ----------
    clock : TimebaseClock or None
        With it frames can be stamped as they leave: ``queue.stamp``.
    pad_ticks : int
        Whole ticks from ``source`` to the PHY's pads.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(32)), in, ``sys``
        Never stalls; see ManagementStore.
    source : Endpoint(eth_phy_description(8)), out, ``timebase``
        To the PHY, registered.
    dropped : Signal(), out, ``sys``
        One pulse for each frame that found no space.
    has_space, has_spare : Signal(), out, ``sys``
        As of ManagementStore.
    """
    def __init__(self, clock=None, pad_ticks=0):
        self.sink    = stream.Endpoint(eth_phy_description(32))
        self.source  = stream.Endpoint(eth_phy_description(8))
        self.dropped  = Signal()
        self.has_space = Signal()
        self.has_spare = Signal()

        # # #

        self.queue = queue = ManagementQueue(with_stamp=clock is not None)
        self.line  = line  = LineGrant()
        self.mac   = mac   = TransmitMAC()
        self.comb += [
            self.sink.connect(queue.sink),
            queue.source.connect(line.management),
            line.source.connect(mac.sink, omit={"ready"}),
            mac.source.connect(self.source, omit={"ready"}),
            line.choose_management.eq(1),
            line.start.eq(queue.waiting & queue.source.valid & line.is_free),
            line.management_hold.eq(queue.hold),
            queue.start.eq(line.start),
            *copied(self, queue, "dropped", "has_space", "has_spare"),
        ]
        if clock is not None:
            now = Signal(64, reset_less=True)
            self.sync.timebase += now.eq(clock.now)
            self.comb += [
                queue.stamp.now.eq(now),
                queue.stamp.sfd.eq(delayed(self, mac.sfd, pad_ticks)),
            ]
