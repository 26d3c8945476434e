# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Answers ARP, ping and Etherbone over two frame streams, a request after the other; a port can be its own."""

import ipaddress

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream, wishbone
from litex.soc.interconnect.csr import *

from liteeth.common import eth_phy_description

from liteprobe.cores.octets import TTL, number, swapped, udp_header_sum
from liteprobe.cores.receive.management import ManagementReceive
from liteprobe.cores.transmit.management import ManagementTransmit

ETHERBONE_PORT = 1234
STORE_WORDS    = 512 # One block RAM; the longest frame has 380.
BASE_LINE      = 13  # Aligned word after the header of an Etherbone record.

# Request ------------------------------------------------------------------------------------------

class ManagementRequest(LiteXModule):
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
    last_octet : Signal(11), in
        Number of the frame's last octet, at its end.
    is_arp, is_ping, is_etherbone : Signal(), out
        What is asked, at most one; right at the end of the frame.
    is_probe : Signal(), out
        Etherbone asks whether somebody is there, and for nothing else.
    peer_mac, peer_ip, peer_port, checksum : Signal(48), Signal(32), Signal(16), Signal(16), out
        As on the wire; ``checksum`` is that of ICMP.
    length : Signal(16), out
        Of IP, as a number.
    writes, reads : Signal(8), Signal(8), out
        Of the Etherbone record.
    lease, order : Signal(16), Signal(16), out
        Under which lease, and which of its requests this is (`cores/formats/probe.py`).

    Source: RFC 826; RFC 791, 3.1; RFC 792; RFC 768; CERN "Etherbone 1.0".
    """
    def __init__(self, mac, ip):
        self.begin        = Signal()
        self.start        = Signal(16)
        self.take         = Signal()
        self.line         = Signal(9)
        self.word         = Signal(32)
        self.last_octet   = Signal(11, reset_less=True)
        self.is_arp       = Signal()
        self.is_ping      = Signal()
        self.is_etherbone = Signal()
        self.is_probe     = Signal()
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
            10: [self.keep(etherbone, Cat(word[:16], C(0, 1), word[17:]) == number(0x4e, 0x6f, 0x10, 0x44)),
                 self.is_probe.eq(word[16])],
            11: [self.lease.eq(swapped(word[:16])), self.order.eq(swapped(word[16:]))],
            12: [If(self.is_probe, self.writes.eq(0), self.reads.eq(0)).Else(
                    self.writes.eq(word[16:24]), self.reads.eq(word[24:]))],
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
            is_whole.eq((self.length + 13) <= self.last_octet),
            self.is_arp.eq(arp),
            self.is_ping.eq(ping & is_whole & (self.length >= 28)),
            self.is_etherbone.eq(etherbone & is_whole & (self.length == Cat(0, 0, record + 9)) &
                (self.is_probe == (record == 1))),
        ]

    def keep(self, flag, condition):
        """Clear a flag unless the condition holds."""
        return If(~condition, flag.eq(0))

# Answer -------------------------------------------------------------------------------------------

class ManagementAnswer(LiteXModule):
    """Makes the words of an answer, of what the request says and what the store holds.

    Attributes
    ----------
    line, stored : Signal(9), Signal(32), in
        Which word of the aligned answer; what the store holds for it.
    lease, order : Signal(16), Signal(16), in
        The present lease, and the last of its requests whose writes were done.
    word : Signal(32), out
    last_line, last_be : Signal(9), Signal(4), out
        Of the frame on the wire; right three cycles after the request was.

    Source: as of `ManagementRequest`; RFC 1071 for the checksums.
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
            length.eq(Cat(0, 0, 11 - request.is_probe + request.reads)),
            header_sum.eq(udp_header_sum(ip) + length + swapped(peer_ip[:16]) + swapped(peer_ip[16:])),
            header_fold.eq(header_sum[:16] + header_sum[16:]),
            header_checksum.eq(~(header_fold[:16] + header_fold[16])),
            echo_sum.eq(swapped(request.checksum) + 0x0800),
            echo_checksum.eq(echo_sum[:16] + echo_sum[16]),
            self.last_line.eq(14 - request.is_probe + request.reads),
            self.last_be.eq(0b0010),
            If(request.is_arp, self.last_line.eq(10)),
            If(request.is_ping,
                self.last_line.eq((request.length + 13) >> 2),
                self.last_be.eq(Cat(*[request.length[:2] == (n + 3) % 4 for n in range(4)])),
            ),
        ]

        # Words.
        # ------
        # What is asked, a cycle later: it is known at the end of a long way, and begins another one here.
        is_arp       = Signal(reset_less=True)
        is_ping      = Signal(reset_less=True)
        is_etherbone = Signal(reset_less=True)
        self.sync += [
            is_arp.eq(request.is_arp),
            is_ping.eq(request.is_ping),
            is_etherbone.eq(request.is_etherbone),
        ]
        ethertype = Mux(is_arp, C(number(8, 6), 16), C(number(8, 0), 16))
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
            10: Cat(C(number(0x4e, 0x6f), 16), C(0, 1), request.is_probe, C(4, 6), C(0x44, 8)),
        }
        # What follows in a probe returns as it came.
        record    = {
            11: Cat(swapped(self.lease), swapped(self.order)), 12: Cat(C(0, 8), C(0x0f, 8), request.reads, C(0, 8)),
        }
        self.comb += [
            udp_length.eq(length - 20),
            self.word.eq(self.stored),
            If(is_arp, self.choose(arp)),
            If(is_ping, self.choose(ping)),
            If(is_etherbone,
                self.choose(etherbone),
                If(~request.is_probe, self.choose(record)),
            ),
            self.choose(always),
        ]

    def choose(self, words):
        """Show the word of the present line, if it is one of these."""
        return Case(self.line, {line: self.word.eq(word) for line, word in words.items()})

# Stack --------------------------------------------------------------------------------------------

class ManagementStack(LiteXModule):
    """Answers ARP and ping, and reads and writes the bus for Etherbone requests on UDP port 1234.

    A request is stored and answered to whoever sent it. What is read leaves as the bus gives it. Nothing is asked of the
    network. What is broken, or meant for another, is dropped. A third of the size of a stack that could also call.

    Reads are for everybody. Writes are done once and in order: those of a host that holds no lease, or of a request that
    comes a second time or after a later one, are left out, and the answer tells (`cores/formats/probe.py`). While nobody
    holds the lease, requests without a number may write.

    Parameters
    ----------
    mac_address : int, 48 bits
    ip_address : str, dotted

    Attributes
    ----------
    sink, source : Endpoint(eth_phy_description(32)), in and out, ``sys``
        Frames without preamble and FCS, answers without padding. ``sink`` stalls while a request is worked off.
    bus : wishbone.Interface, master
        What Etherbone reads and writes.
    lease : Signal(16), in
        Number of the present lease.
    is_held, granted : Signal(), in
        As of `WriteLease`.
    heard : Signal(), out
        One pulse for each request of the present lease.
    skipped : Signal(), out
        One pulse for each request whose writes were left out.

    Limits: one record a request, within a frame; no fragments, no options of IP. A probe of Etherbone is answered where it
    has four octets behind its header, as LiteX sends it.
    """
    def __init__(self, mac_address, ip_address):
        self.sink   = stream.Endpoint(eth_phy_description(32))
        self.source = stream.Endpoint(eth_phy_description(32))
        self.bus    = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.lease   = Signal(16, reset=1)
        self.is_held = Signal()
        self.granted = Signal()
        self.heard   = Signal()
        self.skipped = Signal()

        # # #

        mac          = mac_address.to_bytes(6, "big")
        ip           = ipaddress.IPv4Address(ip_address).packed
        self.request = ManagementRequest(mac, ip)
        self.answer  = ManagementAnswer(mac, ip, self.request)
        self.fsm     = FSM(reset_state="RECEIVE")
        self.add_store()
        self.add_receive()
        self.add_order()
        self.add_write()
        self.add_read()
        self.add_send()

    def add_store(self):
        """Keep the request, and what goes with it from state to state."""
        memory     = Memory(32, STORE_WORDS)
        self.write = write = memory.get_port(write_capable=True)
        self.read  = read  = memory.get_port()
        self.specials += memory, write, read
        self.autocsr_exclude = {"memory"}

        self.place = place = Signal(max=STORE_WORDS) # Present word of the store.
        self.go_on = Signal()                        # To the next one, which the store shows a cycle later.
        self.is_reading = Signal() # What leaves was read from the bus.
        self.leaving    = leaving = Signal(32)
        self.carry = carry = Signal(16, reset_less=True) # Half a word, between the wire and the aligned frame.
        self.line  = line  = Signal(max=STORE_WORDS, reset_less=True)
        self.left  = Signal(8, reset_less=True)
        # Between the store and the bus: a block RAM answers late in the cycle, and the bus wants all of one.
        self.address  = Signal(30, reset_less=True)
        self.word     = Signal(32, reset_less=True)
        self.is_first = Signal(reset=1)
        # The bus forms its answer of all slaves, in most of a cycle: what follows from it, but for the word itself, comes in the
        # next one, in which the bus is left to others.
        self.answered = answered = Signal()
        request, answer, sink, source, bus = self.request, self.answer, self.sink, self.source, self.bus
        self.comb += [
            write.adr.eq(place),
            read.adr.eq(place + self.go_on),
            request.begin.eq(self.is_first & sink.valid),
            request.start.eq(sink.data[:16]),
            request.line.eq(place),
            request.word.eq(Cat(carry, sink.data[:16])),
            answer.line.eq(line),
            answer.stored.eq(read.dat_r),
            bus.sel.eq(0b1111),
            bus.stb.eq(bus.cyc),
            bus.adr.eq(self.address),
            bus.dat_w.eq(self.word),
            leaving.eq(Mux(self.is_reading, self.word, answer.word)),
            source.data.eq(Cat(carry, leaving[:16])),
            source.last.eq(line == answer.last_line),
            source.last_be.eq(Replicate(source.last, 4) & answer.last_be),
        ]
        self.sync += answered.eq(bus.cyc & bus.ack)

    def next_place(self):
        """Go to the next word of the store, which shows it in the next cycle."""
        return [self.go_on.eq(1), NextValue(self.place, self.place + 1)]

    def add_receive(self):
        """Store a request, and decide what it is."""
        fsm, sink, write, request = self.fsm, self.sink, self.write, self.request
        place, carry, is_first = self.place, self.carry, self.is_first
        fsm.act("RECEIVE",
            sink.ready.eq(request.begin | ~is_first),
            write.dat_w.eq(request.word),
            If(sink.valid,
                NextValue(carry, sink.data[16:]),
                NextValue(is_first, sink.last),
                NextValue(request.last_octet[:2], Cat(sink.last_be[1] | sink.last_be[3], sink.last_be[2:] != 0)),
                If(~is_first,
                    # What is too long stays at the last place, and is taken for nothing.
                    request.take.eq(1),
                    write.we.eq(1),
                    If(place != STORE_WORDS - 1, NextValue(place, place + 1)),
                ),
                If(sink.last, NextState("FINISH")),
            ),
        )
        fsm.act("FINISH",
            write.dat_w.eq(carry),
            write.we.eq(1),
            NextValue(request.last_octet[2:], place),
            NextState("DECIDE"),
        )
        fsm.act("DECIDE",
            NextValue(place, 0),
            NextValue(self.line, 0),
            If(request.is_arp | request.is_ping | (request.is_etherbone & request.is_probe),
                NextState("HEAD"),
            ).Elif(request.is_etherbone,
                NextValue(place, BASE_LINE),
                NextState("RECORD"),
            ).Else(
                NextState("RECEIVE"),
            )
        )

    def add_order(self):
        """Decide whether the writes of a request are done, while it is still being received."""
        request   = self.request
        last      = Signal(16)                   # The last request whose writes were done.
        ahead     = Signal(16, reset_less=True)  # Of it, modulo 2^16.
        is_lease  = Signal(reset_less=True)
        is_plain  = Signal(reset_less=True)
        self.may_write = Signal(reset_less=True)
        self.sync += [
            is_lease.eq(request.lease == self.lease),
            is_plain.eq(Cat(request.lease, request.order) == 0),
            ahead.eq(request.order - last),
            self.may_write.eq(Mux(is_lease,
                (request.order == 0) | ((ahead != 0) & ~ahead[-1]),
                is_plain & ~self.is_held,
            )),
            If(self.fsm.ongoing("RECORD"),
                self.heard.eq(is_lease),
                self.skipped.eq((request.writes != 0) & ~self.may_write),
                If((request.writes != 0) & self.may_write & is_lease & (request.order != 0), last.eq(request.order)),
            ).Else(
                self.heard.eq(0),
                self.skipped.eq(0),
            ),
            If(self.granted, last.eq(0)),
        ]
        self.comb += [
            self.answer.lease.eq(self.lease),
            self.answer.order.eq(last),
        ]

    def if_reads(self):
        """Return what goes from the writes of a record to its reads, or to its end."""
        return If(self.request.reads != 0,
            NextValue(self.left, self.request.reads),
            # The answer's line BASE_LINE is the base address of the reads, and the store shows it by then.
            NextValue(self.place, self.place - BASE_LINE),
            NextState("HEAD"),
        ).Else(
            NextValue(self.place, 0),
            NextState("RECEIVE"),
        )

    def add_write(self):
        """Do the writes of a record."""
        fsm, bus, read = self.fsm, self.bus, self.read
        place, left, address = self.place, self.left, self.address
        fsm.act("RECORD",
            NextValue(left, self.request.writes),
            If(self.request.writes == 0,
                self.if_reads(),
            ).Elif(self.may_write,
                NextState("WRITE-BASE"),
            ).Else(
                NextValue(place, place + self.request.writes + 1),
                NextState("SKIP"),
            )
        )
        fsm.act("SKIP", self.if_reads())
        fsm.act("WRITE-BASE",
            NextValue(address, swapped(read.dat_r)[2:]),
            *self.next_place(),
            NextState("WRITE-DATA"),
        )
        fsm.act("WRITE-DATA",
            NextValue(self.word, swapped(read.dat_r)),
            NextValue(left, left - 1),
            *self.next_place(),
            NextState("WRITE"),
        )
        fsm.act("WRITE",
            bus.cyc.eq(~self.answered),
            bus.we.eq(1),
            If(self.answered,
                NextValue(address, address + 1),
                If(left == 0, self.if_reads()).Else(NextState("WRITE-DATA")),
            )
        )

    def add_read(self):
        """Do the reads of a record as the answer leaves: a word is read while the one before it is sent."""
        fsm, bus, source = self.fsm, self.bus, self.source
        left, word       = self.left, self.word
        is_full  = Signal() # ``word`` was read and has not left.
        is_taken = Signal()
        self.comb += is_taken.eq(is_full & source.ready)
        send = [
            source.valid.eq(is_full),
            self.is_reading.eq(1),
            If(is_taken,
                NextValue(is_full, 0),
                NextValue(self.carry, self.leaving[16:]),
                NextValue(self.line, self.line + 1),
            ),
        ]
        fsm.act("READ-ADDRESS",
            NextValue(self.address, swapped(self.read.dat_r)[2:]),
            *self.next_place(),
            NextState("READ"),
        )
        fsm.act("READ",
            *send,
            # An access that has begun isn't taken back: ``is_full`` rises with an answer alone.
            bus.cyc.eq((~is_full | source.ready) & ~self.answered),
            If(bus.cyc,
                NextValue(word, swapped(bus.dat_r)),
                If(bus.ack, NextValue(is_full, 1)),
            ),
            If(self.answered,
                NextValue(self.address, swapped(self.read.dat_r)[2:]),
                NextValue(left, left - 1),
                *self.next_place(),
                If(left == 1, If(is_taken, NextState("SEND")).Else(NextState("READ-LAST"))),
            )
        )
        fsm.act("READ-LAST",
            *send,
            If(is_taken, NextState("SEND")),
        )

    def add_send(self):
        """Send the answer, and go back to receiving."""
        fsm, source, carry, line = self.fsm, self.source, self.carry, self.line
        fsm.act("HEAD", NextValue(carry, self.request.peer_mac[:16]), NextState("SEND"))
        fsm.act("SEND",
            source.valid.eq(1),
            If(source.ready,
                NextValue(carry, self.leaving[16:]),
                NextValue(line, line + 1),
                *self.next_place(),
                If(self.request.is_etherbone & (line == BASE_LINE), NextState("READ-ADDRESS")),
                If(source.last,
                    NextValue(self.place, 0),
                    NextState("RECEIVE"),
                ),
            )
        )

# Management Port ----------------------------------------------------------------------------------

class ManagementPort(LiteXModule):
    """Joins the two sides of a management port to its PHY, and counts what they lose.

    Parameters
    ----------
    phy : PHY
        ``sink`` in ``timebase``, ``source`` in ``eth_rx<number>``.
    number : int
        Of the PHY.
    count_bits : int
        Of each counter.

    Attributes
    ----------
    source, sink : Endpoint(eth_phy_description(32)), out and in, ``sys``
        Whole frames, received and to be sent.
    received, receive_dropped, receive_cut, receive_refused, transmit_dropped : CSRStatus(count_bits)
    """
    def __init__(self, phy, number, count_bits=32):
        self.transmit = transmit = ManagementTransmit()
        self.receive  = receive  = ClockDomainsRenamer({"eth_rx": f"eth_rx{number}"})(ManagementReceive())
        self.source   = receive.source
        self.sink     = transmit.sink
        self.received         = CSRStatus(count_bits, description="Frames received and kept. Wraps, as all below.")
        self.receive_dropped  = CSRStatus(count_bits, description="Good frames that found no space.")
        self.receive_cut      = CSRStatus(count_bits, description="Frames cut because sys was too slow.")
        self.receive_refused  = CSRStatus(count_bits, description="Carriers without an SFD.")
        self.transmit_dropped = CSRStatus(count_bits, description="Answers that found no space, or were too long.")

        # # #

        self.comb += [
            transmit.source.connect(phy.sink),
            phy.source.connect(receive.sink),
        ]
        for register, events in [
            (self.received,         receive.stored),
            (self.receive_dropped,  receive.dropped),
            (self.receive_cut,      receive.cut),
            (self.receive_refused,  receive.refused),
            (self.transmit_dropped, transmit.dropped),
        ]:
            self.sync += register.status.eq(register.status + events)
