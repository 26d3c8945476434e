# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a management frame asks, and the words of the answer: ARP, ping, Etherbone."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.octets import TTL, number, swapped, udp_header_sum

ETHERBONE_PORT = 1234

# Request ------------------------------------------------------------------------------------------

class Request(LiteXModule):
    """Looks at the words of a frame as they pass, and knows at its end what is asked.

    Frames come aligned: word k holds octets 4*k + 2 to 4*k + 5, so that IP, UDP and Etherbone fall on words.

    Parameters
    ----------
    mac, ip : bytes, addresses of the probe

    Attributes
    ----------
    begin : Signal(), in
        With the first two octets of a frame on ``start``.
    start : Signal(16), in
    take, line, word : Signal(), Signal(9), Signal(32), in
        A word of the aligned frame and its number.
    words : Signal(10), in
        Words of the aligned frame that came, at its end.
    is_arp, is_ping, is_etherbone : Signal(), out
        What is asked, at most one; right at the end of the frame.
    peer_mac, peer_ip, peer_port, checksum : Signal(48), Signal(32), Signal(16), Signal(16), out
        As on the wire; ``checksum`` is that of ICMP.
    length : Signal(16), out
        Of IP, as a number.
    writes, reads : Signal(8), Signal(8), out
        Of the Etherbone record.
    lease, order : Signal(16), Signal(16), out
        Under which lease, and which of its requests this is (`cores/formats/lease.py`).

    Source: RFC 826; RFC 791, 3.1; RFC 792; RFC 768; CERN "Etherbone 1.0".
    """
    def __init__(self, mac, ip):
        self.begin        = Signal()
        self.start        = Signal(16)
        self.take         = Signal()
        self.line         = Signal(9)
        self.word         = Signal(32)
        self.words        = Signal(10)
        self.is_arp       = Signal()
        self.is_ping      = Signal()
        self.is_etherbone = Signal()
        self.peer_mac     = Signal(48, reset_less=True)
        self.peer_ip      = Signal(32, reset_less=True)
        self.peer_port    = Signal(16, reset_less=True)
        self.checksum     = Signal(16, reset_less=True)
        self.length       = Signal(16, reset_less=True)
        self.writes       = Signal(8, reset_less=True)
        self.reads        = Signal(8, reset_less=True)
        self.lease        = Signal(16, reset_less=True)
        self.order        = Signal(16, reset_less=True)

        # # #

        word       = self.word
        to_probe   = Signal()
        to_all     = Signal()
        arp        = Signal()
        ip_only    = Signal()
        ping       = Signal()
        etherbone  = Signal()
        is_whole   = Signal()
        self.lines = {
            0:  [self.keep(to_probe, word == number(*mac[2:])), self.keep(to_all, word == 0xffffffff)],
            1:  [self.peer_mac[:32].eq(word)],
            2:  [self.peer_mac[32:].eq(word[:16]),
                 arp.eq((to_probe | to_all) & (word[16:] == number(8, 6))),
                 ip_only.eq(to_probe & (word[16:] == number(8, 0)))],
            3:  [self.keep(arp, word == number(0, 1, 8, 0)), self.keep(ip_only, word[:8] == 0x45),
                 self.length.eq(swapped(word[16:]))],
            4:  [self.keep(arp, word == number(6, 4, 0, 1)),
                 self.keep(ip_only, Cat(word[16:22], word[24:]) == 0)], # No fragment.
            5:  [ping.eq(ip_only & (word[8:16] == 1)), etherbone.eq(ip_only & (word[8:16] == 17))],
            6:  [If(ip_only, self.peer_ip.eq(word)).Else(self.peer_ip[:16].eq(word[16:]))],
            7:  [If(~ip_only, self.peer_ip[16:].eq(word[:16])),
                 self.keep(ping, word == number(*ip)), self.keep(etherbone, word == number(*ip))],
            8:  [self.keep(ping, word[:16] == number(8, 0)), self.checksum.eq(word[16:]),
                 self.keep(etherbone, word[16:] == number(*ETHERBONE_PORT.to_bytes(2, "big"))),
                 self.peer_port.eq(word[:16])],
            9:  [self.keep(arp, word == number(*ip))],
            10: [self.keep(etherbone, word == number(0x4e, 0x6f, 0x10, 0x44))],
            11: [self.lease.eq(swapped(word[:16])), self.order.eq(swapped(word[16:]))],
            12: [self.writes.eq(word[16:24]), self.reads.eq(word[24:])],
        }
        self.sync += [
            If(self.begin,
                to_probe.eq(self.start == number(*mac[:2])),
                to_all.eq(self.start == 0xffff),
            ),
            If(self.take, Case(self.line, self.lines)),
        ]

        # A record is believed only if its counts, the length of IP and the frame agree.
        record = Signal(10)
        self.comb += [
            record.eq(1 + Mux(self.writes != 0, self.writes + 1, 0) + Mux(self.reads != 0, self.reads + 1, 0)),
            is_whole.eq(((self.length + 15) >> 2) <= self.words),
            self.is_arp.eq(arp),
            self.is_ping.eq(ping & is_whole & (self.length >= 28)),
            self.is_etherbone.eq(etherbone & is_whole & (self.length == Cat(0, 0, record + 9)) & (record != 1)),
        ]

    def keep(self, flag, condition):
        """Clear a flag unless the condition holds."""
        return If(~condition, flag.eq(0))

# Answer -------------------------------------------------------------------------------------------

class Answer(LiteXModule):
    """Makes the words of an answer, of what the request told and what the store holds.

    Attributes
    ----------
    line, stored : Signal(9), Signal(32), in
        Which word of the aligned answer; what the store holds for it.
    lease, order : Signal(16), Signal(16), in
        The present lease, and the last of its requests whose writes were done.
    word : Signal(32), out
    last_line, last_be : Signal(9), Signal(4), out
        Of the frame on the wire; right three cycles after the request was.

    Source: as of `Request`; RFC 1071 for the checksums.
    """
    def __init__(self, mac, ip, request):
        self.line      = Signal(9)
        self.stored    = Signal(32)
        self.lease     = Signal(16)
        self.order     = Signal(16)
        self.word      = Signal(32)
        self.last_line = Signal(9)
        self.last_be   = Signal(4)

        # # #

        peer_mac, peer_ip = request.peer_mac, request.peer_ip
        mac_high, mac_low, my_ip = number(*mac[:4]), C(number(*mac[4:]), 16), C(number(*ip), 32)
        length          = Signal(16)
        header_sum      = Signal(18)
        echo_sum        = Signal(17)
        header_fold     = Signal(17)
        header_checksum = Signal(16)
        echo_checksum   = Signal(16)

        for unreset in [length, header_sum, echo_sum, header_fold, header_checksum, echo_checksum]:
            stream.set_reset_less(unreset) # Follow the request at once.

        # Lengths and checksums.
        # ----------------------
        self.sync += [
            length.eq(44 + Cat(0, 0, request.reads)),
            header_sum.eq(udp_header_sum(ip) + length + swapped(peer_ip[:16]) + swapped(peer_ip[16:])),
            header_fold.eq(header_sum[:16] + header_sum[16:]),
            header_checksum.eq(~(header_fold[:16] + header_fold[16])),
            echo_sum.eq(swapped(request.checksum) + 0x0800),
            echo_checksum.eq(echo_sum[:16] + echo_sum[16]),
            self.last_line.eq(14 + request.reads),
            self.last_be.eq(0b0010),
            If(request.is_arp, self.last_line.eq(10)),
            If(request.is_ping,
                self.last_line.eq((request.length + 13) >> 2),
                self.last_be.eq(Cat(*[request.length[:2] == (n + 3) % 4 for n in range(4)])),
            ),
        ]

        # Words.
        # ------
        ethertype = Mux(request.is_arp, C(number(8, 6), 16), C(number(8, 0), 16))
        port      = C(number(*ETHERBONE_PORT.to_bytes(2, "big")), 16)
        udp_length = Signal(16)
        always    = {0: peer_mac[16:], 1: mac_high, 2: Cat(mac_low, ethertype)}
        arp       = {
            3: number(0, 1, 8, 0), 4: number(6, 4, 0, 2), 5: mac_high, 6: Cat(mac_low, my_ip[:16]),
            7: Cat(my_ip[16:], peer_mac[:16]), 8: peer_mac[16:], 9: peer_ip,
        }
        # TTL, identification and checksum of IP may stay: exchanging the addresses doesn't change the sum.
        ping      = {6: my_ip, 7: peer_ip, 8: Cat(C(0, 16), swapped(echo_checksum))}
        etherbone = {
            3:  Cat(C(0x45, 8), C(0, 8), swapped(length)), 4: number(0, 0, 0x40, 0),
            5:  Cat(C(TTL, 8), C(17, 8), swapped(header_checksum)), 6: my_ip, 7: peer_ip,
            8:  Cat(port, request.peer_port), 9: Cat(swapped(udp_length), C(0, 16)),
            10: number(0x4e, 0x6f, 0x10, 0x44), 11: Cat(swapped(self.lease), swapped(self.order)),
            12: Cat(C(0, 8), C(0x0f, 8), request.reads, C(0, 8)),
        }
        self.comb += [
            udp_length.eq(length - 20),
            self.word.eq(self.stored),
            If(request.is_arp, self.choose(arp)),
            If(request.is_ping, self.choose(ping)),
            If(request.is_etherbone, self.choose(etherbone)),
            self.choose(always),
        ]

    def choose(self, words):
        """Show the word of the present line, if it is one of these."""
        return Case(self.line, {line: self.word.eq(word) for line, word in words.items()})
