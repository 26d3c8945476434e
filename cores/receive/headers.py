# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Walks through headers, up to the fields of a probe frame."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.formats import SIGNATURE
from liteprobe.cores.receive.frames import frame_layout

# Header Parser ------------------------------------------------------------------------------------

# Which header a word belongs to.
link, ethertype, ipv4, ipv6, udp, other = range(6)

class HeaderParser(LiteXModule):
    """Walks through the headers of a frame, four bytes a step, and keeps the probe's fields.

    Recognised: up to two VLAN tags (0x8100, 0x88a8), IPv4 without options or fragments, or IPv6 without extension
    headers, then UDP to any port, then the signature. In all of them the fields lie alike in words of four bytes,
    because VLAN tags and both IP headers shift them by multiples of four: the walk needs no shifter. A wider stream
    walks several steps a cycle.

    Attributes
    ----------
    sink : Endpoint(frame_layout(data_width)), in
        Frames; always ready.
    has_signature, is_complete : Signal(), out
        Signature seen; whole header up to the TX stamp seen. Like all below, of the last frame until the cycle after
        the next one's first word.
    stream_id, sequence, tx_stamp : Signal(16), Signal(32), Signal(64), out
        Fields of the frame; 0 where it ends before them.
    expected_length : Signal(17), out
        Length of the frame (bytes, without padding) by its IP header.
    udp_fits : Signal(), out
        UDP length agrees with the IP header's.

    Source: IEEE 802.1Q, 9.6; RFC 791; RFC 8200; RFC 768; docs/design/interfaces.md, "Probe payload".
    """
    def __init__(self, data_width=32):
        self.sink            = sink = stream.Endpoint(frame_layout(data_width))
        self.has_signature   = Signal()
        self.is_complete     = Signal()
        self.stream_id       = Signal(16, reset_less=True)
        self.sequence        = Signal(32, reset_less=True)
        self.tx_stamp        = Signal(64, reset_less=True)
        self.expected_length = Signal(17, reset_less=True)
        self.udp_fits        = Signal()

        # # #

        self.tags       = Signal(2)
        self.is_ipv6    = Signal(reset_less=True)
        self.ip_length  = Signal(16, reset_less=True)
        self.udp_length = Signal(16, reset_less=True)

        # Walk.
        # -----
        is_first = Signal(reset=1)
        header   = Signal(max=other + 1)
        position = Signal(4)
        self.comb += sink.ready.eq(1)
        self.sync += If(sink.valid,
            is_first.eq(sink.last),
            If(is_first,
                self.has_signature.eq(0),
                self.is_complete.eq(0),
            )
        )
        step = (header, position, self.tags & Replicate(~is_first, 2))
        for lane in range(data_width//32):
            octets = [sink.data[8*byte:8*byte + 8] for byte in range(4*lane, 4*lane + 4)]
            # Only a last word has parts that aren't whole, and nothing is taken from them.
            taken  = sink.valid & (~sink.last | (sink.last_be[4*lane + 3:] != 0))
            self.add_captures(step, octets, taken)
            step   = self.add_step(step, octets)
        self.sync += If(sink.valid,
            header.eq(Mux(sink.last, link, step[0])),
            position.eq(Mux(sink.last, 0, step[1])),
            self.tags.eq(step[2]),
        )

        # Lengths.
        # --------
        self.sync += [
            self.expected_length.eq(self.ip_length + Mux(self.is_ipv6, 14 + 40, 14) + Cat(0, 0, self.tags)),
            self.udp_fits.eq(self.udp_length + Mux(self.is_ipv6, 0, 20) == self.ip_length),
        ]

    def add_step(self, step, octets):
        """Return where the next four bytes belong to."""
        header, position, tags = step
        next_header   = Signal.like(header)
        next_position = Signal.like(position)
        next_tags     = Signal.like(tags)
        high, low = Cat(octets[1], octets[0]), Cat(octets[3], octets[2])

        def leave(condition, to):
            return If(condition, next_header.eq(to), next_position.eq(0))

        self.comb += [
            next_header.eq(header),
            next_position.eq(position + 1),
            next_tags.eq(tags),
            Case(header, {
                link      : leave(position == 2, ethertype),
                ethertype : [
                    next_position.eq(0),
                    next_header.eq(other),
                    If(((high == 0x8100) | (high == 0x88a8)) & ~tags[1],
                        next_tags.eq(tags + 1),
                        next_header.eq(ethertype),
                    ),
                    If((high == 0x0800) & (octets[2] == 0x45),   next_header.eq(ipv4)),
                    If((high == 0x86dd) & (octets[2][4:] == 6),  next_header.eq(ipv6)),
                ],
                ipv4      : [
                    leave(position == 4, udp),
                    leave((position == 1) & ((high[:14] != 0) | (octets[3] != 17)), other),
                ],
                ipv6      : [
                    leave(position == 9, udp),
                    leave((position == 1) & (octets[0] != 17), other),
                ],
                udp       : [
                    leave(position == 5, other),
                    leave((position == 1) & (low  != SIGNATURE >> 16), other),
                    leave((position == 2) & (high != SIGNATURE & 0xffff), other),
                ],
            }),
        ]
        return next_header, next_position, next_tags

    def add_captures(self, step, octets, taken):
        """Keep what is wanted of four bytes."""
        header, position, _ = step
        high, low, whole = Cat(octets[1], octets[0]), Cat(octets[3], octets[2]), Cat(*octets[::-1])
        self.sync += If(taken,
            If((header == ipv4) & (position == 0), self.ip_length.eq(high), self.is_ipv6.eq(0)),
            If((header == ipv6) & (position == 0), self.ip_length.eq(low),  self.is_ipv6.eq(1)),
            If(header == udp,
                Case(position, {
                    0 : self.udp_length.eq(low),
                    2 : [
                        self.has_signature.eq(high == SIGNATURE & 0xffff),
                        self.stream_id.eq(low),
                        self.sequence.eq(0),
                        self.tx_stamp.eq(0),
                    ],
                    3 : self.sequence.eq(whole),
                    4 : self.tx_stamp[32:].eq(whole),
                    5 : [self.tx_stamp[:32].eq(whole), self.is_complete.eq(1)],
                })
            )
        )
