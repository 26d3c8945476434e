# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Steps of the walk through IP and what is behind it."""

from migen import *

from liteprobe.cores.formats import EXTENSION, SIGNATURE, Layer3
from liteprobe.cores.receive.unified.numbers import *

# IP Steps -----------------------------------------------------------------------------------------

class IPSteps:
    """What a word of each of these headers does to a `UnifiedWalk`: lists of statements."""

    def walk_ip(self):
        """The first word of IP: which version, and how long."""
        version, words, total = self.octets[0][4:], self.octets[0][:4], self.low
        is_ipv4  = Signal()
        is_ipv6  = Signal()
        is_short = Signal()
        self.comb += [
            is_ipv4.eq((version == 4) & self.versions[0]),
            is_ipv6.eq((version == 6) & self.versions[1]),
            is_short.eq((total != 0) & (total[6:] == 0) & (total[2:6] < words)),
            self.bound.load_ipv4.eq(self.take & (self.state == ip) & is_ipv4),
            self.bound.length.eq(Mux(self.state == ip, total, self.high)),
        ]
        return [
            self.is_ipv6.eq(is_ipv6),
            self.is_later.eq(0),
            self.is_more.eq(0),
            self.skipped.eq(words - 5),
            self.position.eq(1),
            If(is_ipv4,
                self.state.eq(ipv4),
                If(words < 5, *self.stop()).Elif(is_short, self.bad_total.eq(1), *self.stop()),
            ).Elif(is_ipv6,
                self.state.eq(ipv6),
            # Behind labels may be anything.
            ).Elif(self.versions == 0b11,
                self.state.eq(done),
            ).Else(*self.stop()),
        ]

    def walk_ipv4(self):
        """IPv4 from its second word on."""
        return [Case(self.position, {
            1 : [self.is_later.eq(self.low[:13] != 0), self.is_more.eq(self.low[13])],
            2 : self.walked.eq(self.octets[1]),
            4 : [
                self.layer3.eq(int(Layer3.IPV4)),
                *self.walk_next(),
                # ``skipped`` is less one already, with options.
                If(self.skipped != 0, *self.leave(skip), self.skipped.eq(self.skipped - 1)),
            ],
        })]

    def walk_ipv6(self):
        """IPv6 from its second word on."""
        self.comb += [
            self.bound.load_ipv6.eq(self.take & (self.state == ipv6) & (self.position == 1)),
            self.bound.is_jumbogram.eq((self.high == 0) & (self.octets[2] == hop_by_hop)),
        ]
        return [Case(self.position, {
            1 : self.walked.eq(self.octets[2]),
            9 : [self.layer3.eq(int(Layer3.IPV6)), *self.walk_next()],
        })]

    def walk_next(self):
        """Whole headers lie behind: ``walked`` says what comes."""
        is_extension = self.is_ipv6 & any_of(self.walked, hop_by_hop, routing, fragment, authentication, destination_options)
        return [
            *self.leave(done),
            If(~self.is_later,
                If(any_of(self.walked, icmp, tcp, udp, icmpv6, sctp), self.state.eq(transport)),
                If(is_extension,
                    self.state.eq(extension),
                    If(self.extensions[-1][-1], *self.stop()), # One too many.
                ),
            ),
        ]

    def walk_extension(self):
        """The first word of an extension header of IPv6."""
        octets, (first, second) = self.octets, self.extensions
        return [
            If(first[-1], second.eq(self.walked | EXTENSION)).Else(first.eq(self.walked | EXTENSION)),
            self.walked.eq(octets[0]),
            *self.leave(skip),
            self.skipped.eq(Cat(0, octets[1])), # Length in pairs of words, without the first pair.
            Case(self.walked, {
                authentication : self.skipped.eq(octets[1]), # In words, without the first two.
                fragment       : [
                    self.skipped.eq(0),
                    self.has_fragment.eq(1),
                    self.is_later.eq(self.low[3:] != 0),
                    self.is_more.eq(self.low[0]),
                ],
            }),
        ]

    def walk_skip(self):
        """A word that nothing is taken from."""
        return [
            self.skipped.eq(self.skipped - 1),
            If(self.skipped == 0, *self.walk_next()),
        ]

    def walk_transport(self):
        """What is behind IP: ports, and some of what is behind them."""
        is_tcp, is_udp = self.walked == tcp, self.walked == udp
        return [Case(self.position, {
            0 : [self.has_transport.eq(1), If(~is_tcp & ~is_udp, *self.leave(done))],
            2 : If(is_udp & (Cat(self.low, self.high) != SIGNATURE), *self.leave(done)),
            3 : If(is_tcp,
                If(self.octets[0][4:] < 5, *self.stop()).Else(self.has_tcp.eq(1), *self.leave(done))
            ),
            4 : self.has_probe.eq(1),
            # The stamp ends half a word behind this one.
            5 : [self.has_stamp.eq(self.bound.has_half_more & self.is_raw_whole), *self.leave(done)],
        })]
