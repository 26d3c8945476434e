# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Management frames, from ``sys`` to the line: beside a program, or on a port of their own."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description

from liteprobe.cores.crossing import StreamCrossing
from liteprobe.cores.transmit.frames import octet_description, word_description
from liteprobe.cores.transmit.line import Line
from liteprobe.cores.transmit.wire.mac import TransmitMAC
from liteprobe.cores.transmit.wire.width_converter import WidthConverter
from liteprobe.cores.transmit.management.store import STORE_WORDS, FrameStore

# Management Queue ---------------------------------------------------------------------------------

class ManagementQueue(LiteXModule):
    """Stores management frames and shows the next one, whole, to the line.

    Parameters
    ----------
    words : as of `FrameStore`

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(32)), in, ``sys``
        Never stalls; see FrameStore.
    source : Endpoint(octet_description()), out, ``timebase``
    waiting : Signal(), out, ``timebase``
        A whole frame is in waiting.
    hold : Signal(11), out, ``timebase``
        Ticks that it takes on the line, less LINE_TICKS.
    start : Signal(), in, ``timebase``
        One pulse as it starts.
    dropped : Signal(), out, ``sys``
        One pulse for each frame that found no room.
    has_room : Signal(), out, ``sys``
        As of FrameStore.
    """
    def __init__(self, words=STORE_WORDS):
        self.sink    = stream.Endpoint(eth_phy_description(32))
        self.source  = stream.Endpoint(octet_description())
        self.waiting = Signal()
        self.hold    = Signal(11)
        self.start   = Signal()
        self.dropped  = Signal()
        self.has_room = Signal()

        # # #

        self.store  = store  = FrameStore(words)
        self.words  = words  = StreamCrossing(word_description(32), "sys", "timebase", rests="timebase")
        self.holds  = holds  = StreamCrossing([("hold", 11)], "sys", "timebase", depth=4, rests="timebase")
        self.converter = converter = WidthConverter(32)
        started = Signal() # ``hold`` may go a tick late: the line is busy.
        self.sync.timebase += started.eq(self.start)
        self.comb += [
            self.sink.connect(store.sink),
            store.source.connect(words.sink),
            words.source.connect(converter.sink),
            converter.source.connect(self.source),
            store.holds.connect(holds.sink),
            self.waiting.eq(holds.source.valid),
            self.hold.eq(holds.source.hold),
            holds.source.ready.eq(started),
            self.dropped.eq(store.dropped),
            self.has_room.eq(store.has_room),
        ]

# Management Transmit ------------------------------------------------------------------------------

class ManagementTransmit(LiteXModule):
    """Sends management frames on a port of their own, each as soon as the line is free.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(32)), in, ``sys``
        Never stalls; see FrameStore.
    source : Endpoint(eth_phy_description(8)), out, ``timebase``
        To the PHY, registered.
    dropped : Signal(), out, ``sys``
        One pulse for each frame that found no room.
    has_room : Signal(), out, ``sys``
        As of FrameStore.
    """
    def __init__(self):
        self.sink    = stream.Endpoint(eth_phy_description(32))
        self.source  = stream.Endpoint(eth_phy_description(8))
        self.dropped  = Signal()
        self.has_room = Signal()

        # # #

        self.queue = queue = ManagementQueue()
        self.line  = line  = Line()
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
            self.dropped.eq(queue.dropped),
            self.has_room.eq(queue.has_room),
        ]
