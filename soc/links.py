# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The management stack: answers ARP, ping and Etherbone over two frame streams, one request after the other."""

import ipaddress

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream, wishbone

from liteeth.common import eth_phy_description

from liteprobe.cores.octets import swapped
from liteprobe.cores.management.stack import Answer, Request

STORE_WORDS = 512 # One block RAM; the longest frame has 380.
BASE_LINE   = 13  # Aligned word behind the header of an Etherbone record.
SHARE_BITS  = 3   # Every eighth word that is read, the bus is left to others for a cycle.

# Stack --------------------------------------------------------------------------------------------

class ManagementStack(LiteXModule):
    """Answers ARP and ping, and reads and writes the bus for Etherbone requests on UDP port 1234.

    A request is stored and answered to whoever sent it. What is read leaves as the bus gives it. Nothing is asked of the
    network. What is broken, or meant for another, is dropped. A third of the size of a stack that could also call.

    Reads are for everybody. Writes are done once and in order: those of a host that holds no lease, or of a request that
    comes a second time or behind a later one, are left out, and the answer tells (`cores/formats/lease.py`). While nobody
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
        As of `Lease`.
    heard : Signal(), out
        One pulse for each request of the present lease.
    skipped : Signal(), out
        One pulse for each request whose writes were left out.

    Limits: one record a request, within a frame; no Etherbone discovery; no fragments, no options of IP.
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
        self.request = Request(mac, ip)
        self.answer  = Answer(mac, ip, self.request)
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
        self.line  = line  = Signal(max=STORE_WORDS)
        self.left  = Signal(8, reset_less=True)
        # Between the store and the bus: a block RAM answers late in the cycle, and the bus wants all of one.
        self.address  = Signal(30, reset_less=True)
        self.word     = Signal(32, reset_less=True)
        self.is_first = Signal(reset=1)
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
            bus.adr.eq(self.address),
            bus.dat_w.eq(self.word),
            leaving.eq(Mux(self.is_reading, self.word, answer.word)),
            source.data.eq(Cat(carry, leaving[:16])),
            source.last.eq(line == answer.last_line),
            source.last_be.eq(Replicate(source.last, 4) & answer.last_be),
        ]

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
            NextValue(request.words, place + 1),
            NextState("DECIDE"),
        )
        fsm.act("DECIDE",
            NextValue(place, 0),
            NextValue(self.line, 0),
            If(request.is_arp | request.is_ping,
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
        fsm.act("SKIP",
            self.if_reads(),
        )
        fsm.act("WRITE-BASE",
            NextValue(address, swapped(read.dat_r)[2:]),
            NextValue(place, place + 1),
            NextState("WRITE-FETCH"),
        )
        fsm.act("WRITE-FETCH",
            If(left == 0,
                self.if_reads(),
            ).Else(
                NextState("WRITE-DATA"),
            )
        )
        fsm.act("WRITE-DATA",
            NextValue(self.word, swapped(read.dat_r)),
            NextState("WRITE"),
        )
        fsm.act("WRITE",
            bus.cyc.eq(1),
            bus.stb.eq(1),
            bus.we.eq(1),
            If(bus.ack,
                NextValue(address, address + 1),
                NextValue(place, place + 1),
                NextValue(left, left - 1),
                NextState("WRITE-FETCH"),
            )
        )

    def add_read(self):
        """Do the reads of a record as the answer leaves: a word is read while the one before it is sent."""
        fsm, bus, source = self.fsm, self.bus, self.source
        left, word       = self.left, self.word
        is_full  = Signal() # ``word`` was read and has not left.
        is_taken = Signal()
        shares   = Signal() # The bus is left to others for a cycle.
        self.comb += [
            is_taken.eq(is_full & source.ready),
            shares.eq(is_full & (left[:SHARE_BITS] == 0)),
        ]
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
            bus.cyc.eq((~is_full | source.ready) & ~shares),
            bus.stb.eq(bus.cyc),
            If(bus.cyc & bus.ack,
                NextValue(word, swapped(bus.dat_r)),
                NextValue(is_full, 1),
                NextValue(self.address, swapped(self.read.dat_r)[2:]),
                NextValue(left, left - 1),
                *self.next_place(),
                If(left == 1, NextState("READ-LAST")),
            )
        )
        fsm.act("READ-LAST",
            *send,
            If(is_taken, NextState("SEND")),
        )

    def add_send(self):
        """Send the answer, and go back to receiving."""
        fsm, source, carry, line = self.fsm, self.source, self.carry, self.line
        fsm.act("HEAD",
            NextValue(carry, self.request.peer_mac[:16]),
            NextState("SEND"),
        )
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
