# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends blocks as UDP datagrams, beside the answers of the management stack."""

import ipaddress

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import *

from liteeth.common import eth_phy_description

from liteprobe.cores.capture.ring import block_description
from liteprobe.cores.formats import CHANNELS
from liteprobe.cores.octets import TTL, number, swapped, udp_header_sum
from liteprobe.cores.bus import WriteOnlyCSR

SOURCE_PORT  = 1235 # Of UDP; Etherbone has the one before.
DEFAULT_PORT = 1235 # Of channel 0 at the host.
IP_OCTETS, UDP_OCTETS = 20, 8

# Datagram Header ----------------------------------------------------------------------------------

class DatagramHeader(LiteXModule):
    """Makes the header of a datagram: Ethernet, IPv4, UDP. The checksum of UDP is 0, as RFC 768 allows.

    Words are aligned: word k holds octets 4*k + 2 to 4*k + 5, so that IP and UDP fall on words; ``start`` is before them.

    Parameters
    ----------
    mac, ip : bytes, addresses of the probe
    source_port : int
        Of UDP, at the probe.

    Attributes
    ----------
    peer_mac, peer_ip : Signal(48), Signal(32), in
        To whom, as on the wire.
    port, words : Signal(16), Signal(9), in
        Of UDP at the destination; words of the payload. All of these from ``line`` 0 on.
    line : Signal(4), in
        From 0 to 9, each at least a cycle; beyond, ``word`` is 0.
    start, word : Signal(16), Signal(32), out

    Source: RFC 791, 3.1; RFC 768; RFC 1071.
    """
    lines = 10

    def __init__(self, mac, ip, source_port=SOURCE_PORT):
        self.peer_mac = Signal(48)
        self.peer_ip  = Signal(32)
        self.port     = Signal(16)
        self.words    = Signal(9)
        self.line     = Signal(4)
        self.start    = Signal(16)
        self.word     = Signal(32)

        # # #

        line       = self.line
        length     = Signal(16)
        udp_length = Signal(16)
        self.comb += [
            length.eq(Cat(C(0, 2), self.words) + IP_OCTETS + UDP_OCTETS),
            udp_length.eq(Cat(C(0, 2), self.words) + UDP_OCTETS),
        ]

        # The checksum, an addition a line: the address, the length, then the carry; what is always there comes first.
        line_d   = Signal(4)
        sum_     = Signal(17, reset=udp_header_sum(ip))
        operand  = Signal(16)
        unused   = Signal()
        ip_words = [swapped(self.peer_ip[:16]), swapped(self.peer_ip[16:])]
        self.comb += Case(line, {1: operand.eq(ip_words[0]), 2: operand.eq(ip_words[1]), 3: operand.eq(length)})
        self.sync += [
            line_d.eq(line),
            If(line != line_d, Cat(unused, sum_).eq(Cat(sum_[16], sum_[:16]) + Cat(sum_[16], operand))),
            If(line == 0, sum_.eq(udp_header_sum(ip))),
        ]

        # What is always there, and what isn't.
        always = {
            1: number(*mac[:4]),
            2: number(*mac[4:], 8, 0),
            3: number(0x45, 0, 0, 0),
            4: number(0, 0, 0x40, 0),
            5: number(TTL, 17, 0, 0),
            6: number(*ip),
            8: number(*source_port.to_bytes(2, "big"), 0, 0),
        }
        fixed  = Signal(32)
        varies = [
            (0, self.peer_mac[16:]),
            (3, Cat(C(0, 16), swapped(length))),
            (5, Cat(C(0, 16), swapped(~sum_[:16]))),
            (7, self.peer_ip),
            (8, Cat(C(0, 16), swapped(self.port))),
            (9, Cat(swapped(udp_length), C(0, 16))),
        ]
        self.comb += [
            self.start.eq(self.peer_mac[:16]),
            Case(line, {place: fixed.eq(value) for place, value in always.items()}),
            self.word.eq(Reduce("OR", [fixed, *[Mux(line == place, value, 0) for place, value in varies]])),
        ]

# Datagram Framer ----------------------------------------------------------------------------------

class DatagramFramer(LiteXModule):
    """Puts the header of a datagram before the words of its payload.

    Parameters
    ----------
    mac, ip, source_port
        As of `DatagramHeader`.

    Attributes
    ----------
    header : DatagramHeader
        Its ``peer_mac``, ``peer_ip``, ``port`` and ``words`` are given from outside.
    sink : Endpoint([("data", 32)]), in
        Words of the payload; ``last`` with the last one.
    source : Endpoint(eth_phy_description(32)), out
        Frames of 42 octets and the payload, without padding and FCS; a word a cycle, if ``sink`` has one.
    """
    def __init__(self, mac, ip, source_port=SOURCE_PORT):
        self.header = header = DatagramHeader(mac, ip, source_port)
        self.sink   = sink   = stream.Endpoint([("data", 32)])
        self.source = source = stream.Endpoint(eth_phy_description(32))

        # # #

        carry = Signal(16, reset_less=True) # Half a word, between the aligned datagram and the wire.
        word  = Signal(32)
        out   = Signal()                    # A word leaves.
        self.sync += If(out, carry.eq(word[16:]))
        self.comb += [
            source.data.eq(Cat(carry, word[:16])),
            out.eq(source.valid & source.ready),
        ]
        self.fsm = fsm = FSM(reset_state="WAIT")
        fsm.act("WAIT",
            NextValue(header.line, 0),
            NextValue(carry, header.start),
            If(sink.valid, NextState("HEADER")),
        )
        self.comb += word.eq(header.word | Mux(fsm.ongoing("PAYLOAD"), sink.data, 0))
        fsm.act("HEADER",
            source.valid.eq(1),
            If(out,
                NextValue(header.line, header.line + 1),
                If(header.line == header.lines - 1, NextState("PAYLOAD")),
            )
        )
        fsm.act("PAYLOAD",
            source.valid.eq(sink.valid),
            sink.ready.eq(source.ready),
            If(out & sink.last, NextState("END")),
        )
        fsm.act("END",
            source.valid.eq(1),
            source.last.eq(1),
            source.last_be.eq(0b0010),
            If(out, NextState("WAIT")),
        )

# Frame Arbiter ------------------------------------------------------------------------------------

class FrameArbiter(LiteXModule):
    """Lets two streams of frames share the way to a line; where both wait, the first one goes.

    Parameters
    ----------
    is_quiet : bool
        ``source`` is 0 while it is not valid. Without, it takes a wire less for each bit.

    Attributes
    ----------
    first, second : Endpoint(eth_phy_description(32)), in
        Answers, and what may wait.
    source : Endpoint(eth_phy_description(32)), out
    has_space : Signal(), in
        A whole frame finds space after ``source``. Else nothing begins.
    """
    def __init__(self, is_quiet=True):
        self.first    = stream.Endpoint(eth_phy_description(32))
        self.second   = stream.Endpoint(eth_phy_description(32))
        self.source   = stream.Endpoint(eth_phy_description(32))
        self.has_space = Signal()

        # # #

        ends = self.source.valid & self.source.ready & self.source.last
        self.fsm = fsm = FSM(reset_state="CHOOSE")
        fsm.act("CHOOSE",
            If(self.has_space, If(self.first.valid, NextState("FIRST")).Elif(self.second.valid, NextState("SECOND")))
        )
        handshake = {"keep": None if is_quiet else {"valid", "ready"}}
        fsm.act("FIRST",  self.first.connect(self.source, **handshake),  If(ends, NextState("AGAIN")))
        fsm.act("SECOND", self.second.connect(self.source, **handshake), If(ends, NextState("AGAIN")))
        if not is_quiet:
            self.comb += If(fsm.ongoing("SECOND"),
                self.second.connect(self.source, omit={"valid", "ready"}),
            ).Else(
                self.first.connect(self.source, omit={"valid", "ready"}),
            )
        fsm.act("AGAIN",  NextState("SETTLE")) # Until ``has_space`` knows of the last frame.
        fsm.act("SETTLE", NextState("CHOOSE"))

# Block Export -------------------------------------------------------------------------------------

class BlockExport(LiteXModule):
    """Sends each block of the ring as a UDP datagram to whoever asked for it.

    Parameters
    ----------
    mac_address : int, 48 bits
    ip_address : str, dotted
        Of the probe.

    Attributes
    ----------
    sink : Endpoint(block_description()), in
        `BlockRing.block`.
    source : Endpoint(eth_phy_description(32)), out
        Frames of 42 octets and a block, without padding and FCS; a word a cycle, if the ring gives one.
    peer_mac, peer_ip : Signal(48), Signal(32), in
        Who wrote the last request: of `ManagementStack.request`.
    start, mask : Signal(), Signal(8), in
        Send blocks of these channels from now on to that peer; none ends it.
    send : Signal(8), out
        For `BlockRing.send`.
    udp_port : Signal(16), in
        At the peer, of channel 0; channel n has n more. Comes from SOURCE_PORT.

    Source: docs/design/monitor.md ("Ring").
    """
    def __init__(self, mac_address, ip_address):
        self.sink     = sink   = stream.Endpoint(block_description())
        self.source   = source = stream.Endpoint(eth_phy_description(32))
        self.peer_mac = Signal(48)
        self.peer_ip  = Signal(32)
        self.start    = Signal()
        self.mask     = Signal(CHANNELS)
        self.send     = Signal(CHANNELS)
        self.udp_port = Signal(16, reset=DEFAULT_PORT)

        # # #

        self.framer = framer = DatagramFramer(mac_address.to_bytes(6, "big"), ipaddress.IPv4Address(ip_address).packed)
        header = framer.header
        self.sync += [
            If(self.start,
                self.send.eq(self.mask),
                header.peer_mac.eq(self.peer_mac),
                header.peer_ip.eq(self.peer_ip),
            ),
            header.port.eq(self.udp_port + sink.channel),
        ]
        self.comb += [
            header.words.eq(sink.words),
            sink.connect(framer.sink, keep={"valid", "ready", "first", "last", "data"}),
            framer.source.connect(source),
        ]

    def add_csr(self):
        """Add the registers ``udp_port``, ``start``, ``sending``."""
        self._port    = WriteOnlyCSR(16, "udp_port", "UDP port of channel 0 at the host; channel n has n more.", reset=DEFAULT_PORT)
        self._start   = CSR(CHANNELS, name="start")
        self._sending = CSRStatus(CHANNELS, name="sending", description="Channels whose blocks are sent.")
        self.comb += [
            self.udp_port.eq(self._port.storage),
            self.start.eq(self._start.re),
            self.mask.eq(self._start.r),
            self._sending.status.eq(self.send),
        ]
