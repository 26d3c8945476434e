# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Looks at the words of a frame as they pass, and knows at its end what is asked of a host, and what the answer's checksums are."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import MIN_LENGTH
from liteprobe.cores.formats.reflect import PING_TTL, STAMP_BASE, STAMP_LEAST, STAMP_TTL, HostCount, HostEnable
from liteprobe.cores.octets import bytes_of_last_be, swapped
from liteprobe.cores.receive.frames import frame_layout
from liteprobe.cores.reflect.complement import ComplementSum

# Numbers ------------------------------------------------------------------------------------------

ARP_TYPE, IPV4_TYPE, IPV6_TYPE, VLAN_TYPE = 0x0806, 0x0800, 0x86dd, 0x8100
ICMP, UDP, ICMPV6 = 1, 17, 58
EXTENSIONS = (0, 43, 44, 60) # Headers of IPv6 that are options, a route or a fragment.
# Lines are words of an untagged frame; that of the first octets of a transport header, which are the odd half of it.
TRANSPORT4, TRANSPORT6 = 8, 13
LAST_LINE  = 31 # Those after it aren't told apart.
UDP_HEADER = 8

# Layouts ------------------------------------------------------------------------------------------

def settings_layout():
    """Return the settings of a host, as its registers have them."""
    return [
        ("enable",          9),
        ("mac",            48),
        ("ipv4",           32),
        ("ipv6",          128),
        ("vlan",           13),
        ("stamp_port",     16),
        ("error_estimate", 16),
        ("information",    32),
    ]

def asked_layout():
    """Return what is known of a frame at its end."""
    return [
        ("outcome",      5), # `HostCount`: what is answered, heard, or refused and why.
        ("is_v6",        1),
        ("is_ns",        1), # What is answered is a neighbour solicitation.
        ("is_udp",       1),
        ("is_arp",       1),
        ("is_tagged",    1),
        ("is_short",     1), # STAMP with less than its base.
        ("has_session",  1), # STAMP with a session identifier.
        ("has_checksum", 1), # Of UDP.
        ("has_option",   1), # A neighbour solicitation with the sender's MAC address.
        ("port",        16), # Of the sender.
        ("ttl",          8), # Or hop limit.
        ("header",      16), # Checksum of the answer's IPv4 header.
        ("sum",         16), # One's complement sum of what the checksum of the answer's transport covers; of STAMP without T2, T3.
    ]

# Host Request -------------------------------------------------------------------------------------

class HostRequest(LiteXModule):
    """Decides what each frame asks of the host of a port, and prepares the checksums of the answer.

    Attributes
    ----------
    sink : Endpoint(frame_layout(32)), in
        Words of all frames, as of the receive MAC; ``ready`` is 1.
    settings : Record(settings_layout()), in
    ended : Signal(), out
        One cycle after the last word of each frame:
    asked : Record(asked_layout()), out
        With ``ended``.
    is_ours : Signal(), out
        With ``ended``: the frame is good, and for this host; else ``asked`` says nothing.
    step, in_transport, offset : Signal(5), Signal(), Signal(17), out
        Of the word that passes, as `TlvWalk` wants it.
    has_tlvs, traffic_class, port : Signal(), Signal(8), Signal(16), out
        Likewise; ``port`` is the sender's.

    Limits: the order of reasons is that of docs/design/hosts-and-reflector.md.

    Source: RFC 826; RFC 791, 3.1; RFC 792; RFC 768; RFC 8200; RFC 4443, 4.1; RFC 4861, 7.1.1 and 7.2.4; RFC 8762; RFC 1624.
    """
    def __init__(self):
        self.sink     = sink = stream.Endpoint(frame_layout(32))
        self.settings = Record(settings_layout())
        self.ended    = Signal()
        self.asked    = Record(asked_layout())
        self.is_ours  = Signal()
        self.offset   = Signal(17)
        self.has_tlvs = Signal()
        self.traffic_class = Signal(8, reset_less=True)

        # # #

        self.take  = Signal()                    # A word of the frame, other than the tag.
        self.line  = Signal(max=LAST_LINE + 1)   # Which.
        self.even  = Signal(16)                  # Its halfwords, as numbers.
        self.odd   = Signal(16)
        self.whole = Signal(32)
        self.step  = Signal(max=LAST_LINE + 1)   # Which word of the transport; its header begins in the odd half of 0.
        self.in_transport = Signal()
        self.flags = {}
        self.comb += [
            sink.ready.eq(1),
            self.even.eq(swapped(sink.data[:16])),
            self.odd.eq(swapped(sink.data[16:])),
            self.whole.eq(Cat(self.odd, self.even)),
        ]
        self.add_lines()
        self.add_link()
        self.add_addresses()
        self.add_ip()
        self.add_arp()
        self.add_transport()
        self.add_length()
        self.add_check()
        self.add_answer_sums()
        self.add_outcome()

    # Lines ----------------------------------------------------------------------------------------

    def add_lines(self):
        """Count the words, the tag left out."""
        sink, settings = self.sink, self.settings
        is_tag      = Signal()
        tag_due     = Signal()
        is_first    = Signal(reset=1)
        self.is_tag_bad = is_tag_bad = Signal()
        self.words  = words  = Signal(5) # Of the frame so far, up to what makes it no runt.
        self.comb += [
            is_tag.eq((self.line == 3) & tag_due),
            self.take.eq(sink.valid & ~is_tag),
            self.step.eq(self.line - Mux(self.is_v6, TRANSPORT6, TRANSPORT4)),
            self.in_transport.eq(Mux(self.is_v6, self.line >= TRANSPORT6, self.is_v4 & (self.line >= TRANSPORT4))),
        ]
        self.sync += [
            self.ended.eq(sink.valid & sink.last),
            If(sink.valid,
                is_first.eq(sink.last),
                If(~words[4], words.eq(words + 1)),
                If(is_first, tag_due.eq(settings.vlan[12]), is_tag_bad.eq(0), words.eq(1)),
                If(is_tag,
                    tag_due.eq(0),
                    is_tag_bad.eq((self.even != VLAN_TYPE) | (self.odd[:12] != settings.vlan[:12])),
                ).Elif(self.line != LAST_LINE, self.line.eq(self.line + 1)),
                If(sink.last, self.line.eq(0)),
            ),
        ]

    @property
    def is_v4(self):
        return self.flag("is_v4")

    @property
    def is_v6(self):
        return self.flag("is_v6")

    def flag(self, name):
        """Return what is known of the frame, by its name."""
        if name not in self.flags:
            self.flags[name] = Signal(name=name, reset_less=True)
        return self.flags[name]

    def at(self, line, *statements):
        """Do something with a line."""
        self.sync += If(self.take & (self.line == line), *statements)

    def at_step(self, step, *statements):
        """Do something with a word of the transport."""
        self.sync += If(self.take & self.in_transport & (self.step == step), *statements)

    def keep(self, name, condition):
        """Clear a flag unless the condition holds."""
        return If(~condition, self.flag(name).eq(0))

    def found(self, name, condition):
        """Set a flag if the condition holds."""
        return If(condition, self.flag(name).eq(1))

    # Ethernet -------------------------------------------------------------------------------------

    def add_link(self):
        """Look at the MAC addresses and the type."""
        even, odd, whole, s = self.even, self.odd, self.whole, self.settings
        flag, keep = self.flag, self.keep
        self.at(0,
            flag("to_us").eq(whole == s.mac[16:]),
            flag("to_all").eq(whole == 0xffffffff),
            flag("to_node").eq(whole == Cat(s.ipv6[16:24], Constant(0x3333ff, 24))),
            *[flag(name).eq(0) for name in (
                "is_unsupported", "is_malformed", "is_bad_length", "is_cut", "is_icmp", "is_udp", "is_echo", "is_ns", "is_na",
                "is_stamp_port", "is_target")],
        )
        self.at(1,
            keep("to_us", even == s.mac[:16]),
            keep("to_all", even == 0xffff),
            keep("to_node", even == s.ipv6[:16]),
            flag("from_group").eq(odd[8]),
            flag("from_us").eq(odd == s.mac[32:]),
        )
        self.at(2, keep("from_us", whole == s.mac[:32]))
        self.at(3,
            flag("is_arp").eq(even == ARP_TYPE),
            flag("is_v4").eq(even == IPV4_TYPE),
            flag("is_v6").eq(even == IPV6_TYPE),
            flag("is_unsupported").eq(((even == IPV4_TYPE) & (odd[8:] != 0x45)) | ((even == IPV6_TYPE) & (odd[12:] != 6))),
            flag("is_malformed").eq((even == ARP_TYPE) & (odd != 1)),
        )

    # Addresses ------------------------------------------------------------------------------------

    def add_addresses(self):
        """Compare the addresses of IP with our own."""
        even, odd, whole, s = self.even, self.odd, self.whole, self.settings
        flag, keep = self.flag, self.keep
        # Which part of our IPv6 address goes with each half of a line: its parts begin in the odd half.
        own_even, own_odd = Signal(16), Signal(16)
        part      = Signal(2) # Of 32 bits, whose last halfword is even.
        parts     = [s.ipv6[at:at + 16] for at in reversed(range(0, 128, 16))]
        self.comb += [
            part.eq(self.line + Mux(self.line >= 14, 0, 2)), # Target from line 15 on; else source or destination, from 5 and 9.
            Case(part, {n: [own_even.eq(parts[2*n + 1]), own_odd.eq(parts[(2*n + 2) % 8])] for n in range(4)}),
        ]
        both = (even == own_even) & (odd == own_odd)
        self.own_even, self.own_odd, self.both = own_even, own_odd, both
        def v6(line, *statements):
            return self.at(line, If(flag("is_v6"), *statements))
        def v4(line, *statements):
            return self.at(line, If(flag("is_v4"), *statements))
        v4(6, flag("ip_group").eq(odd[13:] == 7), flag("ip_zero").eq(odd == 0), flag("ip_us").eq(odd == s.ipv4[16:]))
        v4(7, keep("ip_zero", even == 0), keep("ip_us", even == s.ipv4[:16]), flag("to_ip").eq(odd == s.ipv4[16:]),
            flag("to_solicited").eq(0))
        v4(8, keep("to_ip", even == s.ipv4[:16]))
        v6(5, flag("ip_group").eq(odd[8:] == 0xff), flag("ip_zero").eq(odd == 0), flag("ip_us").eq(odd == own_odd))
        for line in (6, 7, 8):
            v6(line, keep("ip_zero", whole == 0), keep("ip_us", both))
        v6(9, keep("ip_zero", even == 0), keep("ip_us", even == own_even),
            flag("to_ip").eq(odd == own_odd), flag("to_solicited").eq(odd == 0xff02))
        for line in (10, 11):
            v6(line, keep("to_ip", both), keep("to_solicited", whole == 0))
        v6(12, keep("to_ip", both), keep("to_solicited", whole == Cat(s.ipv6[16:24], Constant(0x01ff, 24))))
        v6(13, keep("to_ip", even == own_even), keep("to_solicited", even == s.ipv6[:16]))

    # IP -------------------------------------------------------------------------------------------

    def add_ip(self):
        """Look at the headers of IP."""
        even, odd, flag, found = self.even, self.odd, self.flag, self.found
        self.payload = payload = Signal(16, reset_less=True) # Octets of IP's payload.
        self.ttl     = Signal(8, reset_less=True)
        self.at(3, self.traffic_class.eq(Mux(even == IPV4_TYPE, odd[:8], odd[4:12])))
        self.at(4,
            If(flag("is_v4"),
                payload.eq(even - 20),
                found("is_bad_length", even < 20 + UDP_HEADER),
            ).Elif(flag("is_v6"),
                payload.eq(odd),
                found("is_bad_length", odd < UDP_HEADER),
            ),
        )
        self.at(5,
            If(flag("is_v4"),
                found("is_unsupported", (even[:14] & 0x3fff) != 0),
                flag("is_icmp").eq(odd[:8] == ICMP),
                flag("is_udp").eq(odd[:8] == UDP),
                self.ttl.eq(odd[8:]),
            ).Else(
                found("is_unsupported", flag("is_v6") & Reduce("OR", [even[8:] == header for header in EXTENSIONS])),
                flag("is_icmp").eq(even[8:] == ICMPV6),
                flag("is_udp").eq(even[8:] == UDP),
                self.ttl.eq(even[:8]),
            ),
        )

    # ARP ------------------------------------------------------------------------------------------

    def add_arp(self):
        """Look at what ARP says."""
        even, odd, whole, s = self.even, self.odd, self.whole, self.settings
        flag, keep, found = self.flag, self.keep, self.found
        def arp(line, *statements):
            return self.at(line, If(flag("is_arp"), *statements))
        arp(4, found("is_malformed", (even != IPV4_TYPE) | (odd != 0x0604)))
        arp(5,
            found("is_malformed", (even != 1) & (even != 2)),
            flag("is_request").eq(even == 1),
            found("from_group", odd[8]),
        )
        arp(7, flag("ip_us").eq(whole == s.ipv4))
        arp(9, flag("to_ip").eq(odd == s.ipv4[16:]))
        arp(10, keep("to_ip", even == s.ipv4[:16]))

    # Transport ------------------------------------------------------------------------------------

    def add_transport(self):
        """Look at ICMP, UDP, and the fields of STAMP."""
        even, odd, whole, s = self.even, self.odd, self.whole, self.settings
        flag, keep, at = self.flag, self.keep, self.at_step
        is_v6 = flag("is_v6")
        self.port = Signal(16, reset_less=True)
        self.comb += self.has_tlvs.eq(flag("is_stamp_port") & (self.payload > UDP_HEADER + STAMP_BASE)
            & s.enable[log2_int(int(HostEnable.TLV))])
        at(0,
            flag("is_echo").eq(flag("is_icmp") & (odd == Mux(is_v6, 0x8000, 0x0800))),
            flag("is_ns").eq(flag("is_icmp") & is_v6 & (odd == 0x8700)),
            flag("is_na").eq(flag("is_icmp") & is_v6 & (odd == 0x8800)),
            self.port.eq(odd),
        )
        at(1,
            flag("is_stamp_port").eq(flag("is_udp") & (even == s.stamp_port)),
            flag("is_udp_length").eq(odd == self.payload),
        )
        at(2, flag("has_checksum").eq(even != 0), flag("target_begins").eq(odd == self.own_odd))
        # Target of a solicitation; timestamp and error estimate of STAMP.
        at(3, keep("target_begins", self.both), flag("is_empty").eq(odd == 0))
        at(4, keep("target_begins", self.both), keep("is_empty", whole == 0))
        at(5, keep("target_begins", self.both), keep("is_empty", whole == 0))
        at(6, flag("is_target").eq(flag("target_begins") & (even == self.own_even)), flag("has_option").eq(odd == 0x0101))

    # Length ---------------------------------------------------------------------------------------

    def add_length(self):
        """Follow what is left of IP's payload, and mask what comes after it."""
        sink, flag = self.sink, self.flag
        left    = Signal(17, reset_less=True)
        valid   = Signal(3)
        begins  = Signal() # The word with the first two octets, which are its second half.
        self.masked_even, self.masked_odd = masked_even, masked_odd = Signal(16), Signal(16)
        offset  = self.offset # Octets of the payload from the begin of this word on.
        self.comb += [
            begins.eq(self.step == 0),
            offset.eq(Mux(begins, self.payload + 2, left)),
            valid.eq(Mux(sink.last, bytes_of_last_be(sink.last_be), 4)),
            masked_even.eq(self.even & Cat(Replicate(offset >= 2, 8), Replicate(offset >= 1, 8))),
            masked_odd.eq(self.odd & Cat(Replicate(offset >= 4, 8), Replicate(offset >= 3, 8))),
            If(begins, masked_even.eq(0)),
        ]
        self.sync += If(self.take & self.in_transport,
            left.eq(Mux(offset > 4, offset - 4, 0)),
            flag("is_cut").eq(sink.last & (offset > valid)),
        )

    # Checksums of the request ---------------------------------------------------------------------

    def add_check(self):
        """Check the checksums of IPv4 and of the transport."""
        even, odd, flag, line = self.even, self.odd, self.flag, self.line
        is_v4, is_v6 = flag("is_v4"), flag("is_v6")
        self.head = head = ComplementSum()
        self.body = body = ComplementSum()
        self.comb += [
            head.begin.eq(self.take & (line == 3)),
            head.add.eq(self.take & (line <= 8)),
            head.a.eq(Mux(line == 3, 0, even)),
            head.b.eq(Mux(line == 8, 0, odd)),
        ]
        # Pseudo header: addresses, protocol, and the payload's length; ICMP has none.
        pseudo_even = Signal(16)
        pseudo_odd  = Signal(16)
        self.comb += [
            If(is_v4,
                Case(line, {
                    6: [pseudo_even.eq(self.payload + UDP), pseudo_odd.eq(odd)],
                    7: [pseudo_even.eq(even), pseudo_odd.eq(odd)],
                    8: pseudo_even.eq(even),
                    "default": [],
                }),
                If(flag("is_icmp"), pseudo_even.eq(0), pseudo_odd.eq(0)),
            ).Elif(is_v6,
                Case(line, {
                    5: [pseudo_even.eq(self.payload + even[8:]), pseudo_odd.eq(odd)],
                    **{n: [pseudo_even.eq(even), pseudo_odd.eq(odd)] for n in range(6, 13)},
                    13: pseudo_even.eq(even),
                    "default": [],
                }),
            ),
            body.begin.eq(self.take & (line == 4)),
            body.add.eq(self.take),
            If(line > 4,
                body.a.eq(pseudo_even | Mux(self.in_transport & (self.step != 0), self.masked_even, 0)),
                body.b.eq(pseudo_odd  | Mux(self.in_transport, self.masked_odd, 0)),
            ),
        ]

    # Checksums of the answer ----------------------------------------------------------------------

    def add_answer_sums(self):
        """Mend the checksums: take away what the answer has not, add what it has (RFC 1624, equation 3)."""
        even, odd, flag, line, s = self.even, self.odd, self.flag, self.line, self.settings
        is_v6 = flag("is_v6")
        is_short = Signal()
        missing  = Signal(6) # Octets that a short request lacks.
        self.is_short = is_short
        self.comb += [
            is_short.eq(flag("is_udp") & (self.payload < STAMP_BASE + UDP_HEADER)),
            missing.eq(Mux(is_short, STAMP_BASE + UDP_HEADER - self.payload, 0)),
        ]
        # IPv4 header.
        # ------------
        self.header = header = ComplementSum()
        self.comb += [
            header.begin.eq(self.take & (line == 5)),
            header.add.eq(self.take & ((line == 6) | (line == 7))),
            Case(line, {
                5: [header.a.eq(~odd), header.b.eq(Cat(odd[:8], Mux(odd[:8] == UDP, STAMP_TTL, PING_TTL)))],
                6: header.a.eq(~even),
                "default": header.a.eq(missing),
            }),
        ]
        # Transport.
        # ----------
        self.mended = mended = ComplementSum()
        stateless = ~s.enable[log2_int(int(HostEnable.STATEFUL))]
        mac_once  = Signal(18, reset_less=True)
        mac_twice = Signal(17, reset_less=True)
        mac_sum   = Signal(16, reset_less=True)
        self.sync += [
            mac_once.eq(s.mac[:16] + s.mac[16:32] + s.mac[32:]),
            mac_twice.eq(mac_once[:16] + mac_once[16:]),
            mac_sum.eq(mac_twice[:16] + mac_twice[16]),
        ]
        a, b, add = mended.a, mended.b, mended.add
        masked_even, masked_odd = self.masked_even, self.masked_odd
        has_option = flag("has_option")
        steps = {
            "is_ns": {
                1: [a.eq(~even), b.eq(~odd), add.eq(1)],
                2: [a.eq(~even), b.eq(odd), add.eq(1)],
                **{n: [a.eq(even), b.eq(odd), add.eq(1)] for n in (3, 4, 5)},
                6: [a.eq(even), b.eq(Mux(odd == 0x0101, 0x0100, 0)), add.eq(1)],
                7: [a.eq(~even), b.eq(~odd), add.eq(has_option)],
                8: [a.eq(~even), b.eq(mac_sum), add.eq(has_option)],
            },
            "is_echo": {
                1: [a.eq(~even), b.eq(Mux(is_v6, 0x0100, 0xf7ff)), mended.begin.eq(1)],
            },
            "is_udp": {
                1: [a.eq(Cat(Constant(0, 8), self.ttl)), b.eq(s.error_estimate), mended.begin.eq(1)],
                2: [a.eq(~even), b.eq(Mux(stateless, odd, 0)), add.eq(1)],
                3: [a.eq(Mux(stateless, even, 0)), b.eq(Cat(Constant(0, 1), missing)), add.eq(1)],
                # What is left of a session identifier that isn't whole goes, too.
                6: [a.eq(Mux(self.payload < UDP_HEADER + 16, ~masked_even, 0)), b.eq(~masked_odd), add.eq(1)],
                **{n: [a.eq(~masked_even), b.eq(~masked_odd), add.eq(1)] for n in range(7, 13)},
                13: [a.eq(~masked_even), add.eq(1)],
            },
        }
        cases = [If(flag(name), Case(self.step, {**table, "default": []})) for name, table in steps.items()]
        # The destination of a solicitation becomes the source, and that is the target.
        destination = {
            9:  [b.eq(~odd), mended.begin.eq(1)],
            **{n: [a.eq(~even), b.eq(~odd), add.eq(1)] for n in (10, 11, 12)},
            13: [a.eq(~even), b.eq(0x0100 + 0x6000), add.eq(1)], # The type, and the flags that were 0 or not looked at.
        }
        self.comb += If(self.take,
            If(self.in_transport & (self.step != 0), *cases).Elif(is_v6, Case(line, {**destination, "default": []})),
        )

    # Outcome --------------------------------------------------------------------------------------

    def add_outcome(self):
        """Decide, a cycle after the end."""
        flag, s, asked = self.flag, self.settings, self.asked
        good = Signal()
        self.sync += good.eq(
            ~(self.sink.fcs_error | self.sink.symbol_error | self.sink.overflow) & (
                (self.words >= MIN_LENGTH//4) | ((self.words == MIN_LENGTH//4 - 1) & self.sink.last_be[3])))
        is_arp, is_v4, is_v6, is_udp = (flag(name) for name in ("is_arp", "is_v4", "is_v6", "is_udp"))
        is_ip = is_v4 | is_v6
        enabled = {name: s.enable[log2_int(int(HostEnable[name]))] for name in ("ARP", "PING4", "ND", "PING6", "STAMP4", "STAMP6")}
        self.comb += self.is_ours.eq(good & ~self.is_tag_bad & (s.enable != 0) & (
            (flag("to_us") & (is_arp | is_ip)) | (flag("to_all") & is_arp) | (flag("to_node") & is_v6)))

        is_ns, is_na, is_echo = flag("is_ns"), flag("is_na"), flag("is_echo")
        is_stamp    = flag("is_stamp_port") & Mux(is_v6, enabled["STAMP6"], enabled["STAMP4"])
        is_ping     = is_echo & Mux(is_v6, enabled["PING6"], enabled["PING4"])
        is_nd       = is_ns & enabled["ND"]
        is_heard    = Mux(is_arp, ~flag("is_request"), is_na)
        is_service  = Mux(is_arp, is_heard | enabled["ARP"], is_stamp | is_ping | is_nd | is_na)
        is_to_group = flag("to_solicited") & ~flag("to_ip")
        not_ours    = Mux(is_arp, ~flag("to_ip") | (is_heard & ~flag("to_us")),
            ~flag("to_ip") & ~(flag("to_solicited") & is_ns) | (is_ns & ~flag("is_target")))
        has_option  = (self.payload >= 32) & flag("has_option")
        bad_option  = ((self.payload > 24) & (self.payload < 32)) | (is_to_group & ~has_option)
        bad_nd      = (is_ns | is_na) & ((self.ttl != 255) | (self.payload < 24) | (is_ns & bad_option))
        bad_udp     = is_udp & (~flag("is_udp_length") | (self.payload < UDP_HEADER + STAMP_LEAST))
        no_sum      = is_udp & ~flag("has_checksum")
        bad_sum     = Mux(no_sum, is_v6, self.body.total != 0xffff)
        bad_source  = flag("from_group") | flag("from_us") | flag("ip_us") | (~is_arp & (flag("ip_group") | flag("ip_zero"))) | (
            is_udp & (self.port == 0))
        reasons = [
            (not_ours & ~flag("is_malformed"),                       HostCount.NOT_OURS),
            (flag("is_unsupported"),                                 HostCount.UNSUPPORTED),
            (flag("is_malformed") | (is_ip & (flag("is_bad_length") | flag("is_cut"))), HostCount.MALFORMED),
            (~is_service,                                            HostCount.NO_SERVICE),
            (is_ip & (bad_nd | bad_udp),                             HostCount.MALFORMED),
            (is_ip & (bad_sum | (is_v4 & (self.head.total != 0xffff))), HostCount.CHECKSUM),
            (bad_source,                                             HostCount.SOURCE),
            (is_udp & flag("is_empty"),                              HostCount.AUTHENTICATED),
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
            asked.is_v6.eq(is_v6), asked.is_arp.eq(is_arp), asked.is_ns.eq(is_ns), asked.is_udp.eq(is_udp & is_ip),
            asked.is_tagged.eq(s.vlan[12]),
            asked.is_short.eq(self.is_short & is_ip),
            asked.has_session.eq(self.payload >= UDP_HEADER + 16),
            asked.has_checksum.eq(flag("has_checksum")),
            asked.has_option.eq(has_option),
            asked.port.eq(self.port),
            asked.ttl.eq(self.ttl),
            asked.header.eq(~self.header.total),
            asked.sum.eq(self.mended.total),
        ]
