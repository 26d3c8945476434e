# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Looks at the lines of a frame as they pass, and knows at its end what is asked of a host, and the sum of what it gets back."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import MIN_LENGTH
from liteprobe.cores.formats.reflect import (
    FIRST_LINE, ICMP, ICMPV6, PAGE_LINES, SHORT_UDP, STAMP_LEAST, TAG_LINE, UDP, HostCount, HostEnable, Page,
)
from liteprobe.cores.octets import bytes_of_last_be, swapped
from liteprobe.cores.receive.frames import frame_layout
from liteprobe.cores.reflect.complement import ComplementSum
from liteprobe.cores.reflect.tlv import TLV_LINE, TlvWalk

# Numbers ------------------------------------------------------------------------------------------

ARP_TYPE, IPV4_TYPE, IPV6_TYPE = 0x0806, 0x0800, 0x86dd
EXTENSIONS = (0, 43, 44, 60) # Headers of IPv6 that are options, a route or a fragment.
LAST_LINE  = PAGE_LINES - 1  # All later lines have this number, too.
UDP_HEADER = 8
LINE_BITS  = log2_int(PAGE_LINES)
PAGE_BITS  = 3
LAST_OF_HEADER = {Page.IPV4: 8, Page.IPV6: 13}
GROUP24 = 0xff # Octet before the low 24 bits of our IPv6 address, in solicited-node addresses, and their MAC addresses.

# Layouts ------------------------------------------------------------------------------------------

def asked_layout():
    """Return what is known of a frame at its end."""
    return [
        ("outcome",      5), # `HostCount`: what is answered, heard, or refused and why.
        ("is_short",     1), # STAMP with less than its base.
        ("has_session",  1), # STAMP with a session identifier.
        ("has_checksum", 1), # Of UDP.
        ("has_option",   1), # A neighbour solicitation with the sender's MAC address.
        ("direct",      10), # Line of direct measurement's count of what was received; 0: none.
        ("sum",         16), # One's complement sum of what the answer keeps, of what its checksum covers.
    ]

# Lines --------------------------------------------------------------------------------------------

#: What is done with a line, by names. Of comparisons: FIRST begins anew, else what was found must hold, too; HIGH and LOW: only
#: that half counts. CHECK adds to the sum of all; KEEP_... to that of what an answer keeps.
CONTROLS = (
    "first", "high", "low", "mac", "sender", "group", "type", "tag", "arp", "operation", "own", "empty", "to", "solicited",
    "target", "version", "fragment", "protocol", "address", "check", "check_begin", "keep_high", "keep_low", "keep_begin",
    "keep_ping", "snap", "header", "udp_port", "udp_length", "kind", "option", "whole",
)

def line_table():
    """Return the controls of each line, by page and line."""
    table = {
        Page.LINK: {
            0: "mac first low", 1: "mac", 2: "sender group first", 3: "sender high type tag", TAG_LINE: "type tag",
        },
        Page.ARP: {
            4: "arp", 5: "arp high operation", 6: "group", 7: "own first low", 8: "own high", 10: "to first",
        },
        Page.IPV4: {
            4: "check check_begin version", 5: "check fragment", 6: "check protocol",
            7: "check snap own address first keep_begin keep_high keep_low", 8: "check to first keep_high keep_low",
        },
        Page.IPV6: {
            4: "version", 5: "protocol",
            6: "check check_begin own address first keep_begin keep_high keep_low",
            **dict.fromkeys((7, 8, 9), "check own address keep_high keep_low"),
            10: "check to solicited first", **dict.fromkeys((11, 12, 13), "check to solicited"),
        },
        Page.UDP: {
            0: "check header keep_high keep_low udp_port", 1: "check keep_high udp_length", 2: "check keep_high keep_low",
            3: "check keep_high keep_low empty first", 4: "check keep_high keep_low empty",
            5: "check keep_high keep_low empty high",
            **dict.fromkeys(range(6, 13), "check"),
            **dict.fromkeys(range(13, 16), "check keep_high keep_low"),
        },
        Page.ICMP: {0: "check header kind keep_ping", **dict.fromkeys(range(1, 16), "check keep_high keep_low")},
        Page.ND: {
            1: "check", 2: "check keep_high keep_low target first",
            **dict.fromkeys((3, 4), "check keep_high keep_low target"), 5: "check keep_high keep_low target whole",
            6: "check keep_high keep_low option high", 7: "check keep_high keep_low option",
            **dict.fromkeys(range(8, 16), "check keep_high keep_low"),
        },
        Page.OTHER: {},
    }
    return {page: {line: names.split() for line, names in of.items()} for page, of in table.items()}

class LineSequence(LiteXModule):
    """Says which line comes after the present one.

    Attributes
    ----------
    page, line : Signal(3), Signal(4), in
        Of the present line.
    tagged : Signal(), in
        Frames have a tag.
    network, transport : Signal(3), in
        Pages after the link and the IP header.
    next_page, next_line : Signal(3), Signal(4), out
    ends_link, ends_header : Signal(), out
    """
    def __init__(self):
        self.page = Signal(PAGE_BITS)
        self.line = Signal(LINE_BITS)
        self.tagged      = Signal()
        self.network     = Signal(PAGE_BITS)
        self.transport   = Signal(PAGE_BITS)
        self.next_page   = Signal(PAGE_BITS)
        self.next_line   = Signal(LINE_BITS)
        self.ends_link   = Signal()
        self.ends_header = Signal()

        # # #

        page, line = self.page, self.line
        is_type = (page == Page.LINK) & (line == 3)
        self.comb += [
            self.ends_link.eq((is_type & ~self.tagged) | ((page == Page.LINK) & (line == TAG_LINE))),
            self.ends_header.eq(Reduce("OR", [(page == kind) & (line == last) for kind, last in LAST_OF_HEADER.items()])),
            self.next_page.eq(page),
            self.next_line.eq(Mux(line == LAST_LINE, LAST_LINE, line + 1)),
            If(is_type & self.tagged, self.next_line.eq(TAG_LINE)),
            If(self.ends_link, self.next_page.eq(self.network), self.next_line.eq(FIRST_LINE)),
            If(self.ends_header, self.next_page.eq(self.transport), self.next_line.eq(0)),
        ]

# Host Request -------------------------------------------------------------------------------------

class HostRequest(LiteXModule):
    """Decides what each frame asks of the host of a port, and adds up what the answer keeps.

    Attributes
    ----------
    sink : Endpoint(frame_layout(32)), in
        Words of all frames, as of the receive MAC; ``ready`` is 1.
    enable : Signal(11), in
        `HostEnable`.
    address, expected : Signal(7), out, Signal(32), in
        What the memory has at ``address`` after `PAGE_WORD`, a cycle later: what the next line is compared with.
    node : Signal(24), in
        Low bits of our IPv6 address.
    ended : Signal(), out
        One cycle, five after the last word of each frame:
    asked : Record(asked_layout()), out
        With ``ended``.
    is_ours : Signal(), out
        With ``ended``: the frame is good, and for this host; else ``asked`` says nothing.
    source_valid, source_last, source_data : Signal(), Signal(), Signal(32), out
        Lines of the frame, each a cycle after the next one came, TLVs as the answer has them. There is one more than words, the
        last three cycles after the last word or sooner; of the first one, the low half counts.

    Limits: the order of reasons is that of docs/design/hosts-and-reflector.md.

    Source: RFC 826; RFC 791, 3.1; RFC 792; RFC 768; RFC 8200; RFC 4443, 4.1; RFC 4861, 7.1.1 and 7.2.4; RFC 8762.
    """
    def __init__(self):
        self.sink     = stream.Endpoint(frame_layout(32))
        self.enable   = Signal(11)
        self.address  = Signal(PAGE_BITS + LINE_BITS)
        self.expected = Signal(32)
        self.node     = Signal(24)
        self.ended    = Signal()
        self.asked    = Record(asked_layout())
        self.is_ours  = Signal()
        self.source_valid = Signal()
        self.source_last  = Signal()
        self.source_data  = Signal(32, reset_less=True)

        # # #

        self.flags = {}
        self.add_lines()
        self.add_sequence()
        self.add_compare()
        self.add_link()
        self.add_ip()
        self.add_arp()
        self.add_transport()
        self.add_length()
        self.add_tlvs()
        self.add_sums()
        self.add_outcome()

    def enabled(self, name):
        """Return a bit of ``enable``."""
        return self.enable[log2_int(int(HostEnable[name]))]

    def flag(self, name):
        """Return what is known of the frame, by its name."""
        if name not in self.flags:
            self.flags[name] = Signal(name=name, reset_less=True)
        return self.flags[name]

    def follow(self, control, name, holds):
        """Let a flag be whether a condition holds in all lines with a control."""
        self.sync += If(self.now & self.controls[control], self.flag(name).eq(holds & (self.controls["first"] | self.flag(name))))

    def found(self, control, name, holds):
        """Set a flag where a condition holds in a line with a control; each frame begins without."""
        self.sync += If(self.now & self.controls[control] & holds, self.flag(name).eq(1))
        self.sync += If(self.begins, self.flag(name).eq(0))

    # Lines ----------------------------------------------------------------------------------------

    def add_lines(self):
        """Hold each line until the next one is there."""
        sink = self.sink
        rest    = Signal(16, reset_less=True) # Second half of the last word.
        flushes = Signal()
        self.held     = held = Signal(32, reset_less=True)
        self.coming   = Signal(32)  # The next line.
        self.is_last  = is_last = Signal()
        self.is_final = is_final = Signal() # It has the first half of the last word.
        self.count    = count = Signal(3, reset_less=True) # Octets of the last word.
        is_held = Signal()
        words   = Signal(4)                       # So far, up to what makes it no runt.
        self.good = good = Signal(reset_less=True)
        self.now  = now  = Signal()
        comes     = Signal()
        self.comb += [
            sink.ready.eq(1),
            comes.eq(sink.valid | flushes),
            self.coming.eq(Cat(swapped(sink.data[:16]), rest)),
            now.eq(is_held & (comes | is_last)),
        ]
        self.sync += [
            self.source_valid.eq(now),
            self.source_last.eq(is_last),
            If(now, is_held.eq(0)),
            flushes.eq(sink.valid & sink.last),
            If(sink.valid, rest.eq(swapped(sink.data[16:]))),
            If(comes,
                held.eq(self.coming),
                is_held.eq(1),
                is_last.eq(flushes),
                is_final.eq(sink.valid & sink.last),
            ),
            If(sink.valid,
                If(words != 15, words.eq(words + 1)),
                If(sink.last,
                    words.eq(0),
                    count.eq(bytes_of_last_be(sink.last_be)),
                    good.eq(~(sink.fcs_error | sink.symbol_error | sink.overflow)
                        & ((words == MIN_LENGTH//4) | ((words == MIN_LENGTH//4 - 1) & sink.last_be[3]))),
                ),
            ),
        ]

    def add_sequence(self):
        """Count the lines, and take what is done with each from a table."""
        self.page = page = Signal(PAGE_BITS)
        self.line = line = Signal(LINE_BITS)
        self.sequence = sequence = LineSequence()
        self.network, self.transport = sequence.network, sequence.transport
        next_page = Signal(PAGE_BITS)
        next_line = Signal(LINE_BITS)
        table = line_table()
        rom   = [
            sum(1 << CONTROLS.index(name) for name in table[Page(at // PAGE_LINES)].get(at % PAGE_LINES, []))
            for at in range(len(Page)*PAGE_LINES)
        ]
        memory = Memory(len(CONTROLS), 512, init=rom + [0]*(512 - len(rom)), name="lines")
        port   = memory.get_port()
        self.autocsr_exclude = {"memory"}
        self.memory = memory
        self.specials += memory, port
        self.controls = {name: port.dat_r[bit] for bit, name in enumerate(CONTROLS)}
        to_nd = Signal() # The message is of neighbour discovery.
        self.to_nd = to_nd
        self.begins = Signal()
        self.comb += [
            sequence.page.eq(page),
            sequence.line.eq(line),
            sequence.tagged.eq(self.enabled("TAGGED")),
            next_page.eq(page),
            next_line.eq(line),
            If(self.now,
                next_page.eq(Mux(to_nd, Page.ND, sequence.next_page)),
                next_line.eq(sequence.next_line),
                If(self.is_last, next_page.eq(Page.LINK), next_line.eq(0)),
            ),
            port.adr.eq(Cat(next_line, next_page)),
            self.address.eq(Cat(next_line, next_page)),
            self.begins.eq(self.now & self.controls["mac"] & self.controls["first"]),
        ]
        self.sync += [page.eq(next_page), line.eq(next_line)]

    # Comparisons ----------------------------------------------------------------------------------

    def add_compare(self):
        """Compare the line with what is expected, and with 0."""
        c = self.controls
        self.high, self.low = high, low = self.held[16:], self.held[:16]
        self.matches   = Signal()
        self.same_high = Signal()
        self.same_low  = Signal()
        self.is_zero   = Signal()
        self.high_zero = Signal()
        self.low_zero  = Signal()
        self.same_id   = Signal() # But for the upper four bits.
        same_four      = Signal()
        self.is_group  = Signal() # It is what solicited-node addresses end with.
        self.comb += [
            self.same_id.eq(high[:12] == self.expected[16:28]),
            same_four.eq(high[12:] == self.expected[28:]),
            self.same_high.eq(self.same_id & same_four),
            self.same_low.eq(low == self.expected[:16]),
            self.high_zero.eq(high == 0),
            self.low_zero.eq(low == 0),
            self.matches.eq((self.same_high | c["low"]) & (self.same_low | c["high"])),
            self.is_zero.eq((self.high_zero | c["low"]) & (self.low_zero | c["high"])),
            self.is_group.eq(self.held == Cat(self.node, Constant(GROUP24, 8))),
        ]

    # Ethernet -------------------------------------------------------------------------------------

    def add_link(self):
        """Look at the MAC addresses, the tag and the type."""
        c, low, high = self.controls, self.low, self.high
        tagged = self.enabled("TAGGED")
        self.follow("mac", "to_us", self.matches)
        self.follow("mac", "to_all", ((high == 0xffff) | c["low"]) & (low == 0xffff))
        self.follow("mac", "to_node", Mux(c["low"], low == 0x3333, self.is_group))
        self.follow("sender", "from_us", self.matches)
        self.found("group", "from_group", high[8])
        self.found("tag", "is_tag_bad", tagged & Mux(c["sender"], ~self.same_low, ~self.same_id))
        is_arp, is_v4, is_v6 = low == ARP_TYPE, low == IPV4_TYPE, low == IPV6_TYPE
        self.comb += self.network.eq(
            Mux(is_arp, Page.ARP, Mux(is_v4, Page.IPV4, Mux(is_v6, Page.IPV6, Page.OTHER))))
        self.sync += If(self.now & c["type"],
            self.flag("is_arp").eq(is_arp),
            self.flag("is_v4").eq(is_v4),
            self.flag("is_v6").eq(is_v6),
        )

    # IP -------------------------------------------------------------------------------------------

    def add_ip(self):
        """Look at the headers of IP."""
        c, low, high = self.controls, self.low, self.high
        is_v6 = self.flag("is_v6")
        self.payload = payload = Signal(16, reset_less=True) # Octets of IP's payload.
        self.traffic_class = Signal(8, reset_less=True)
        protocol = Signal(8)
        is_icmp, is_udp = self.flag("is_icmp"), self.flag("is_udp")
        self.comb += [
            protocol.eq(Mux(is_v6, low[8:], high[:8])),
            self.transport.eq(Mux(is_udp, Page.UDP, Mux(is_icmp, Page.ICMP, Page.OTHER))),
        ]
        self.sync += [
            If(self.now & c["version"], self.traffic_class.eq(Mux(is_v6, high[4:12], high[:8]))),
            If(self.now & Mux(is_v6, c["protocol"], c["version"]), payload.eq(Mux(is_v6, high, low - 20))),
            If(self.now & c["protocol"],
                is_icmp.eq(protocol == Mux(is_v6, ICMPV6, ICMP)),
                is_udp.eq(protocol == UDP),
                self.flag("is_farthest").eq(low[:8] == 255), # Hop limit.
            ),
        ]
        self.found("version", "is_unsupported", Mux(is_v6, high[12:] != 6, high[8:] != 0x45))
        self.found("fragment", "is_unsupported", (low & 0x3fff) != 0)
        self.found("protocol", "is_unsupported", is_v6 & Reduce("OR", [protocol == header for header in EXTENSIONS]))
        self.follow("own", "ip_us", self.matches)
        self.follow("address", "ip_zero", self.high_zero & self.low_zero)
        self.sync += If(self.now & c["address"] & c["first"],
            self.flag("ip_group").eq((high[13:] == 7) & (~is_v6 | (high[8:13] == 0x1f))))
        self.follow("to", "to_ip", self.matches)
        # ff02:0000, 0, 0000:0001, and the group's end.
        self.follow("solicited", "to_solicited", Mux(self.line[1],
            Mux(self.line[0], self.high_zero & self.low_zero, (high == 0xff02) & self.low_zero),
            Mux(self.line[0], self.is_group, self.high_zero & (low == 1))))

    # ARP ------------------------------------------------------------------------------------------

    def add_arp(self):
        """Look at what ARP says."""
        low = self.low
        self.found("arp", "is_malformed", ~self.matches)
        self.found("operation", "is_malformed", ~self.same_low & (low != 2))
        self.found("operation", "is_request", self.same_low)

    # Transport ------------------------------------------------------------------------------------

    def add_transport(self):
        """Look at ICMP, UDP, and the fields of STAMP."""
        c, low, high = self.controls, self.low, self.high
        is_v6 = self.flag("is_v6")
        self.ports = Signal(32, reset_less=True)
        is_echo = Signal()
        is_ns   = Signal()
        is_na   = Signal()
        self.comb += [
            is_echo.eq(high == Mux(is_v6, 0x8000, 0x0800)),
            is_ns.eq(is_v6 & (high == 0x8700)),
            is_na.eq(is_v6 & (high == 0x8800)),
            self.to_nd.eq(c["kind"] & (is_ns | is_na)),
        ]
        for name, holds in (("is_echo", is_echo), ("is_ns", is_ns), ("is_na", is_na)):
            self.found("kind", name, holds)
        self.found("udp_port", "is_stamp_port", self.same_low)
        self.sync += [
            If(self.now & c["udp_port"], self.ports.eq(Cat(high, low)), self.flag("from_zero").eq(self.high_zero)),
            If(self.now & c["udp_length"],
                self.flag("is_udp_length").eq(high == self.payload),
                self.flag("has_checksum").eq(~self.low_zero),
            ),
            If(self.now & c["option"] & c["high"], self.flag("has_option").eq(self.same_high)),
        ]
        self.follow("empty", "is_empty", self.is_zero)
        self.follow("target", "target_begins", self.matches)
        self.found("whole", "is_target", self.matches & self.flag("target_begins"))

    # Length ---------------------------------------------------------------------------------------

    def add_length(self):
        """Follow what is left of IP's payload, and mask what comes after it."""
        self.left = left = Signal(14, reset_less=True) # Whole words from this line on; ``payload`` has the octets after them.
        self.tail = tail = self.payload[:2]
        self.mask = mask = Signal(4)
        in_transport = self.page[2]
        is_over = Signal(reset_less=True) # All has passed.
        is_none = Signal()
        is_one  = Signal()
        self.comb += [
            is_none.eq(left == 0),
            is_one.eq(left[1:] == 0),
            *[mask[3 - n].eq(~in_transport | (~is_over & (~is_none | (tail > n)))) for n in range(4)],
        ]
        self.sync += If(self.now,
            If(~in_transport,
                left.eq(self.payload[2:]),
                is_over.eq(0),
                self.flag("is_cut").eq(self.is_final), # Of the payload there is not even a word.
            ).Else(
                left.eq(left - 1),
                If(is_none, is_over.eq(1)),
                # Two octets of the line before the last word's, and those of this word.
                If(self.is_final, self.flag("is_cut").eq(~is_over & ~is_none & (~is_one | ((tail + 2) > self.count)))),
            ),
        )

    # TLVs -----------------------------------------------------------------------------------------

    def add_tlvs(self):
        """Change what TLVs say."""
        self.walk = walk = TlvWalk()
        large  = self.payload[6:] != 0
        may_have = Signal(reset_less=True) # TLVs. The sum of what is long known is formed before their line.
        number = Signal(10) # Of the line.
        self.direct = direct = Signal(10)
        self.sync += may_have.eq(self.flag("is_stamp_port") & self.enabled("TLV") & (large | (self.payload[:6] > SHORT_UDP)))
        self.sync += If(self.now,
            number.eq(number + 1),
            If(self.is_last, number.eq(0)),
            If(walk.finds_direct, direct.eq(number + 2)),
            If(self.begins, direct.eq(0)),
        )
        self.comb += [
            walk.now.eq(self.now),
            walk.is_last.eq(self.is_last),
            walk.held.eq(self.held),
            walk.coming.eq(self.coming),
            walk.left.eq(self.left),
            walk.tail.eq(self.tail),
            walk.begins.eq((self.page == Page.UDP) & (self.line == TLV_LINE) & may_have),
            walk.traffic_class.eq(self.traffic_class),
            walk.ports.eq(self.ports),
            walk.is_stateful.eq(self.enabled("STATEFUL")),
            walk.has_direct.eq(direct != 0),
            walk.has_information.eq(self.enabled("INFORMATION")),
            walk.information.eq(self.expected),
        ]
        # What a line becomes is known late in its cycle: it is added up in the next one.
        self.sync += self.source_data.eq(walk.changed)

    # Sums -----------------------------------------------------------------------------------------

    def add_sums(self):
        """Add up all that a checksum covers, and what of it the answer has, too; the lengths of pseudo headers at the end."""
        c, flag = self.controls, self.flag
        is_v6, is_udp = flag("is_v6"), flag("is_udp")
        self.check = check = ComplementSum()
        self.keep  = keep  = ComplementSum()
        self.is_tail = is_tail = Signal()
        self.is_short = is_short = Signal()
        self.has_session = Signal()
        before = Signal(16, reset_less=True) # Sum of an IPv4 header without its addresses.
        keeps_high   = Signal()
        keeps_low    = Signal()
        pseudo       = Signal()
        keeps_pseudo = Signal()
        is_option = Signal()
        keeps_mask   = Signal(4, reset_less=True) # Octets of the line before that the answer keeps.
        def masked(half, mask):
            return half & Cat(*[Replicate(bit, 8) for bit in mask])
        new = self.source_data
        of_check = self.mask & Replicate(~is_tail, 4)
        self.comb += [
            is_short.eq(is_udp & (self.payload[6:] == 0) & (self.payload[:6] < SHORT_UDP)),
            self.has_session.eq(self.payload[3:] >= (UDP_HEADER + 16)//8),
            is_option.eq(c["option"] & Mux(c["high"], self.same_high, flag("has_option"))),
            keeps_high.eq(c["keep_high"] & ~is_option & ~(c["udp_length"] & is_short) & ~is_tail),
            keeps_low.eq(c["keep_low"] & ~is_option & (self.has_session | ~(c["empty"] & c["high"])) & ~is_tail),
            pseudo.eq(is_tail & (is_udp | is_v6)),
            check.a.eq(masked(self.high, of_check[2:]) | (Replicate(is_tail & is_udp & ~is_v6, 16) & ~before)),
            check.b.eq(masked(self.low, of_check[:2]) | (Replicate(pseudo, 16) & self.payload)),
            check.begin.eq(self.now & c["check_begin"]),
            check.add.eq((self.now & c["check"]) | is_tail),
            keep.a.eq(masked(new[16:], keeps_mask[2:])),
            keep.b.eq(masked(new[:16], keeps_mask[:2]) | (Replicate(keeps_pseudo, 16) & self.payload)),
        ]
        ends = Signal()
        self.sync += [
            keeps_mask.eq(self.mask & Cat(Replicate(keeps_low, 2), Replicate(keeps_high, 2))),
            keeps_pseudo.eq(pseudo & ~is_short),
            keep.begin.eq(self.now & (c["keep_begin"] | (c["keep_ping"] & ~is_v6))),
            keep.add.eq(self.now | is_tail),
            is_tail.eq(self.now & self.is_last),
            ends.eq(is_tail),
            self.ended.eq(ends),
            If(self.now & c["snap"], before.eq(check.total)),
            If(self.now & c["header"], flag("is_header").eq(is_v6 | (check.total == 0xffff))),
        ]

    # Outcome --------------------------------------------------------------------------------------

    def add_outcome(self):
        """Decide."""
        flag, asked, enabled, payload = self.flag, self.asked, self.enabled, self.payload
        is_arp, is_v4, is_v6, is_udp = (flag(name) for name in ("is_arp", "is_v4", "is_v6", "is_udp"))
        is_ip = is_v4 | is_v6
        self.comb += self.is_ours.eq(self.good & ~flag("is_tag_bad") & (self.enable[:9] != 0) & (
            (flag("to_us") & (is_arp | is_ip)) | (flag("to_all") & is_arp) | (flag("to_node") & is_v6)))
        is_ns, is_na, is_echo = flag("is_ns"), flag("is_na"), flag("is_echo")
        is_stamp    = flag("is_stamp_port") & Mux(is_v6, enabled("STAMP6"), enabled("STAMP4"))
        is_ping     = is_echo & Mux(is_v6, enabled("PING6"), enabled("PING4"))
        is_nd       = is_ns & enabled("ND")
        is_heard    = Mux(is_arp, ~flag("is_request"), is_na)
        is_service  = Mux(is_arp, is_heard | enabled("ARP"), is_stamp | is_ping | is_nd | is_na)
        is_to_group = flag("to_solicited") & is_v6 & ~flag("to_ip")
        not_ours    = Mux(is_arp, ~flag("to_ip") | (is_heard & ~flag("to_us")),
            ~flag("to_ip") & ~(is_to_group & is_ns) | (is_ns & ~flag("is_target")))
        is_24 = Signal() # As long as that at least.
        is_32 = Signal()
        is_22 = Signal()
        self.comb += [
            is_24.eq(self.has_session),
            is_32.eq(payload[5:] != 0),
            is_22.eq(is_24 | (payload[1:3] == (UDP_HEADER + STAMP_LEAST)//2 - 8) & payload[4]),
        ]
        has_option  = is_32 & flag("has_option")
        bad_option  = (is_24 & (payload[:5] != 24) & ~is_32) | (is_to_group & ~has_option)
        bad_nd      = (is_ns | is_na) & (~flag("is_farthest") | ~is_24 | (is_ns & bad_option))
        bad_udp     = is_udp & (~flag("is_udp_length") | ~is_22)
        no_sum      = is_udp & ~flag("has_checksum")
        # The sum lacks the number of the protocol.
        lacks       = Mux(is_udp, UDP, Mux(is_v6, ICMPV6, 0))
        bad_sum     = Mux(no_sum, is_v6, self.check.total != (0xffff ^ lacks))
        bad_source  = flag("from_group") | flag("from_us") | flag("ip_us") | (
            ~is_arp & (flag("ip_group") | flag("ip_zero") | (is_udp & flag("from_zero"))))
        reasons = [
            (not_ours & ~flag("is_malformed"),                       HostCount.NOT_OURS),
            (flag("is_unsupported"),                                 HostCount.UNSUPPORTED),
            (flag("is_malformed") | (is_ip & ((payload[3:] == 0) | flag("is_cut"))), HostCount.MALFORMED),
            (~is_service,                                            HostCount.NO_SERVICE),
            (is_ip & (bad_nd | bad_udp),                             HostCount.MALFORMED),
            (is_ip & (bad_sum | ~flag("is_header")),                 HostCount.CHECKSUM),
            (bad_source,                                             HostCount.SOURCE),
            (is_udp & flag("is_empty") & is_ip,                      HostCount.AUTHENTICATED),
            (is_heard,                                               HostCount.HEARD),
            (is_arp,                                                 HostCount.ARP),
            (is_ns,                                                  HostCount.ND),
            (is_echo & is_v6,                                        HostCount.PING6),
            (is_echo,                                                HostCount.PING4),
            (is_v6,                                                  HostCount.STAMP6),
        ]
        chain = If(reasons[0][0], asked.outcome.eq(int(reasons[0][1])))
        for condition, reason in reasons[1:]:
            chain = chain.Elif(condition, asked.outcome.eq(int(reason)))
        self.comb += [
            chain.Else(asked.outcome.eq(int(HostCount.STAMP4))),
            asked.is_short.eq(self.is_short),
            asked.has_session.eq(self.has_session),
            asked.has_checksum.eq(flag("has_checksum")),
            asked.has_option.eq(has_option),
            asked.direct.eq(self.direct),
            asked.sum.eq(self.keep.total),
        ]
