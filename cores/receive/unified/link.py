# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Steps of the walk below and beside IP: Ethernet, tags, labels, ARP."""

from migen import *

from liteprobe.cores.formats import LABELS_MAX, TAG_KINDS, TAGS_MAX, Layer3
from liteprobe.cores.receive.unified.numbers import *

# Link Steps ---------------------------------------------------------------------------------------

class LinkSteps:
    """What a word of each of these headers does to a `UnifiedWalk`: lists of statements."""

    def walk_type(self):
        """The ethertype in the last half of the word says what the next one is."""
        low    = self.low
        is_tag = any_of(low, *TAG_KINDS)
        return [
            self.ethertype.eq(low),
            *self.leave(done),
            self.versions.eq(Cat(low == 0x0800, low == 0x86dd)),
            If(any_of(low, 0x0800, 0x86dd), self.state.eq(ip)),
            If(any_of(low, 0x8847, 0x8848), self.state.eq(label), self.versions.eq(0b11)),
            If(low == 0x0806, self.state.eq(arp)),
            If(is_tag, self.state.eq(tag)),
            If(is_tag & (self.state == tag) & (self.tags == TAGS_MAX - 1), *self.stop()),
        ]

    def walk_link(self):
        """Ethernet: the type is in the fourth word of the stream."""
        return [If(self.position == 3, self.has_link.eq(1), *self.walk_type())]

    def walk_tag(self):
        """A tag; ``ethertype`` still says of which kind: 0x8100, 0x88a8 and 0x9100 differ in bits 11 and 12."""
        kind = Cat(~self.ethertype[11], self.ethertype[11] | self.ethertype[12])
        return [
            Case(self.tags, {number: self.kinds[2*number:2*number + 2].eq(kind) for number in range(TAGS_MAX)}),
            self.tags.eq(self.tags + 1),
            *self.walk_type(),
        ]

    def walk_label(self):
        """A label; IP may be behind the last."""
        return [
            self.labels.eq(self.labels + 1),
            If(self.octets[2][0], *self.leave(ip)).Elif(self.labels == LABELS_MAX - 1, *self.stop()),
        ]

    def walk_arp(self):
        """ARP, of IPv4 over Ethernet."""
        return [Case(self.position, {
            0 : If((self.high != 1) | (self.low != 0x0800), *self.stop()),
            1 : If(self.high != 0x0604, *self.stop()),
            6 : [self.layer3.eq(int(Layer3.ARP)), *self.leave(done)],
        })]
