# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends the frames of the reverse direction past an emulator of one direction to the other port, as they came."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description

from liteprobe.cores.assign import copied
from liteprobe.cores.bus import RegisterBank
from liteprobe.cores.crossing import LevelCrossing, PulseCrossing, StreamCrossing
from liteprobe.cores.emulate.reserved import ReservedFrames
from liteprobe.cores.formats import MIN_LENGTH, OVERHEAD
from liteprobe.cores.octets import bytes_of_last_be
from liteprobe.cores.receive.management import FrameStore
from liteprobe.cores.receive.mac import ReceiveMAC
from liteprobe.cores.transmit.frames import octet_description, word_description
from liteprobe.cores.transmit.management import ManagementQueue
from liteprobe.cores.transmit.mac import TransmitMAC, WidthConverter

STATUS = {
    "state":              (3,  "Always 0: this port runs no program."),
    "sent":               (32, "Frames of the reverse bypass whose SFD has left. Wraps, as all below."),
    "reserved":           (32, "Frames that no bridge forwards (IEEE 802.1D), PAUSE among them: dropped."),
    "damaged":            (32, "Frames with a wrong FCS, runts, and frames longer than longest: dropped."),
    "full":               (32, "Good frames that found no space: dropped."),
    "management_sent":    (32, "Management frames that started."),
    "management_dropped": (16, "Management frames that found no space while waiting."),
    "link_up":            (1,  "The PHY's link is up."),
}

STORE_WORDS = 512 # For management, which waits for a frame at most: one answer beside that which leaves.

# Free Line ----------------------------------------------------------------------------------------

class FreeLine(LiteXModule):
    """Sends frames as soon as the line is free, those of ``first`` before those of ``second``; in ``timebase``.

    Attributes
    ----------
    first, second : Endpoint(octet_description()), in
        Whole frames: once one begins it must not pause. Those of ``second`` have 60 octets or more.
    is_waiting : Signal(), in
        ``first`` may begin a frame.
    starts : Signal(), out
        One pulse as a frame of ``first`` starts.
    source : Endpoint(octet_description()), out
        ``ready`` is not looked at; ``probe`` tells those of ``second``.
    """
    def __init__(self):
        self.first      = first  = stream.Endpoint(octet_description())
        self.second     = second = stream.Endpoint(octet_description())
        self.source     = source = stream.Endpoint(octet_description())
        self.is_waiting = Signal()
        self.starts     = Signal()

        # # #

        left       = Signal(max=MIN_LENGTH + OVERHEAD) # Ticks of the slot, but that the gap comes after the last octet.
        is_free    = Signal()
        is_sending = Signal()
        of_first   = Signal()
        begins     = Signal()
        self.comb += [
            is_free.eq((left == 0) & ~is_sending),
            self.starts.eq(is_free & first.valid & self.is_waiting),
            begins.eq(self.starts | (is_free & second.valid)),
            first.ready.eq(is_sending & of_first),
            second.ready.eq(is_sending & ~of_first),
            source.valid.eq(is_sending),
            source.data.eq(Mux(of_first, first.data, second.data)),
            source.last.eq(Mux(of_first, first.last, second.last)),
            source.probe.eq(~of_first),
        ]
        self.sync.timebase += [
            If(begins,
                is_sending.eq(1),
                of_first.eq(self.starts),
                left.eq(MIN_LENGTH + OVERHEAD - 1),
            ).Elif((left != 0) & ~(is_sending & (left == OVERHEAD - 1)),
                left.eq(left - 1),
            ),
            If(is_sending & source.last, is_sending.eq(0)),
        ]

# Reverse Bypass -----------------------------------------------------------------------------------

class ReverseBypass(RegisterBank):
    """Sends the good frames of a port from another one, in their order, from power-up on.

    A frame leaves once all of it has come and the line is free. Management goes first; a frame that finds the store full
    meanwhile is dropped and counted.

    Parameters
    ----------
    longest : int
        Octets of a frame without FCS; a longer one is dropped.
    store_octets : int
        Of the frames that wait; a power of two, more than twice ``longest``.
    with_management : bool
        Send management, too.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(8)), in, ``eth_rx``
        Of the PHY by which they come.
    source : Endpoint(eth_phy_description(8)), out, ``timebase``
        To the PHY by which they leave, registered.
    phy_link_up : Signal(), in, asynchronous
        Of that one.
    forwards_reserved : Signal(), in, ``sys``
        As of `ForwardPath`.
    state, sent, reserved, damaged, full, management_sent, management_dropped, link_up : Signal(), out, ``sys``
        As the registers of these names.
    management_sink, management_has_space : as of `TransmitPath`
        With management.

    Limits: ``sys`` from 48 MHz for gigabit.
    """
    def __init__(self, longest=1536, store_octets=4096, with_management=False):
        assert 2*longest < store_octets
        self.sink        = stream.Endpoint(eth_phy_description(8))
        self.source      = stream.Endpoint(eth_phy_description(8))
        self.phy_link_up = Signal(reset=1)
        self.forwards_reserved = Signal()
        for name, (bits, _) in STATUS.items():
            setattr(self, name, Signal(bits, name=name))

        # # #

        self.autocsr_exclude = {"store", "management"} # LiteX would give their memories a page of the CSR bus.
        self.pulses = {}
        self.add_receive(longest, store_octets)
        self.add_line()
        if with_management:
            self.add_management()
        self.link = link = LevelCrossing("sys")
        self.comb += [
            link.i.eq(self.phy_link_up),
            self.link_up.eq(link.o),
        ]
        for name, pulse in self.pulses.items():
            counter = getattr(self, name)
            self.sync += If(pulse, counter.eq(counter + 1))

    def add_receive(self, longest, store_octets):
        """Keep good frames, and count the others."""
        self.mac   = mac   = ReceiveMAC()
        self.store = store = FrameStore(octets=store_octets, is_packed=True)
        self.frames = frames = ReservedFrames()
        words   = Signal(max=longest//4 + 2) # Before the present one; stops after the longest frame.
        is_long = Signal()
        is_kept = Signal() # Unless a bridge would not forward it.
        ended   = Signal()
        eaten   = Signal()
        last    = longest//4 # Word in which the longest frame would go on.
        self.comb += [
            self.sink.connect(mac.sink),
            mac.source.connect(store.sink),
            is_long.eq((words > last) | ((words == last) & (bytes_of_last_be(mac.source.last_be) > longest % 4))),
            store.refuse.eq(is_long | ~is_kept),
            *copied(frames, mac.source, "valid", "last", "data"),
            is_kept.eq(~frames.is_reserved | self.forwards_reserved),
        ]
        is_whole = (words > MIN_LENGTH//4 - 1) | ((words == MIN_LENGTH//4 - 1) & mac.source.last_be[3])
        is_good  = is_whole & ~is_long & ~(mac.source.fcs_error | mac.source.symbol_error | mac.source.overflow)
        self.sync += [
            If(mac.source.valid,
                If(words <= last, words.eq(words + 1)),
                If(mac.source.last, words.eq(0)),
            ),
            ended.eq(mac.source.valid & mac.source.last),
            eaten.eq(is_good & ~is_kept),
        ]
        self.pulses["reserved"] = ended & eaten
        self.pulses["damaged"]  = ended & ~store.stored & ~store.dropped & ~eaten
        self.pulses["full"]     = store.dropped

    def add_line(self):
        """Bring frames to the line: the store gives words faster than the line takes them."""
        self.crossing  = crossing  = StreamCrossing(word_description(32), "sys", "timebase", rests="timebase")
        self.converter = converter = WidthConverter(32)
        self.line      = line      = FreeLine()
        self.out       = out       = TransmitMAC()
        self.leaving   = leaving   = PulseCrossing("timebase", "sys")
        self.comb += [
            self.store.source.connect(crossing.sink, omit={"error"}),
            crossing.source.connect(converter.sink),
            converter.source.connect(line.second),
            line.source.connect(out.sink, omit={"ready"}),
            out.source.connect(self.source, omit={"ready"}),
            leaving.i.eq(out.sfd_probe),
        ]
        self.pulses["sent"] = leaving.o

    def add_management(self):
        """Send management before all else."""
        self.management = management = ManagementQueue(STORE_WORDS)
        self.started    = started    = PulseCrossing("timebase", "sys")
        self.management_sink, self.management_has_space = management.sink, management.has_space
        self.comb += [
            management.source.connect(self.line.first),
            self.line.is_waiting.eq(management.waiting),
            management.start.eq(self.line.starts),
            started.i.eq(self.line.starts),
        ]
        self.pulses["management_sent"]    = started.o
        self.pulses["management_dropped"] = management.dropped

    def add_csr(self):
        """Add the registers of the contract (docs/design/emulator.md), those of the bank of a transmit path."""
        has_management = hasattr(self, "management")
        self.add_status({name: text for name, (_, text) in STATUS.items() if has_management or not name.startswith("management")})
