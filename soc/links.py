# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The management stack: answers ARP, ping and Etherbone over two frame streams, one request after the other."""

import ipaddress

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream, wishbone

from liteeth.common import eth_phy_description

from liteprobe.soc.management import Answer, Request, reverse

STORE_WORDS = 512 # One block RAM; the longest frame has 380.
BASE_LINE   = 13  # Aligned word behind the header of an Etherbone record.

# Stack --------------------------------------------------------------------------------------------

class ManagementStack(LiteXModule):
    """Answers ARP and ping, and reads and writes the bus for Etherbone requests on UDP port 1234.

    A request is stored, worked off in place, and answered to whoever sent it: nothing is asked, nothing remembered.
    What is broken, or meant for another, is dropped. A sixth of the size of a stack that could also call.

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

    Limits: one record a request, within a frame; no Etherbone discovery; no fragments, no options of IP.
    """
    def __init__(self, mac_address, ip_address):
        self.sink   = sink   = stream.Endpoint(eth_phy_description(32))
        self.source = source = stream.Endpoint(eth_phy_description(32))
        self.bus    = bus    = wishbone.Interface(data_width=32, address_width=32, addressing="word")

        # # #

        mac          = mac_address.to_bytes(6, "big")
        ip           = ipaddress.IPv4Address(ip_address).packed
        self.request = request = Request(mac, ip)
        self.answer  = answer  = Answer(mac, ip, request)

        # Store.
        # ------
        memory = Memory(32, STORE_WORDS)
        write  = memory.get_port(write_capable=True)
        read   = memory.get_port()
        self.specials += memory, write, read
        self.autocsr_exclude = {"memory"}

        place = Signal(max=STORE_WORDS) # Present word of the store.
        start = Signal(max=STORE_WORDS) # Where the answer of Etherbone begins.
        carry = Signal(16)              # Half a word, between the wire and the aligned frame.
        line  = Signal(max=STORE_WORDS)
        left  = Signal(8)
        # Between the store and the bus: a block RAM answers late in the cycle, and the bus wants all of one.
        address = Signal(30)
        word    = Signal(32)
        is_first = Signal(reset=1)
        self.comb += [
            write.adr.eq(place),
            read.adr.eq(place),
            request.begin.eq(is_first & sink.valid),
            request.start.eq(sink.data[:16]),
            request.line.eq(place),
            request.word.eq(Cat(carry, sink.data[:16])),
            answer.line.eq(line),
            answer.stored.eq(read.dat_r),
            bus.sel.eq(0b1111),
            bus.adr.eq(address),
            bus.dat_w.eq(word),
            source.data.eq(Cat(carry, answer.word[:16])),
            source.last.eq(line == answer.last_line),
            source.last_be.eq(Replicate(source.last, 4) & answer.last_be),
        ]

        # Receive.
        # --------
        self.fsm = fsm = FSM(reset_state="RECEIVE")
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
            NextValue(line, 0),
            If(request.is_arp | request.is_ping,
                NextState("HEAD"),
            ).Elif(request.is_etherbone,
                NextValue(place, BASE_LINE),
                NextState("RECORD"),
            ).Else(
                NextState("RECEIVE"),
            )
        )
        if_reads = If(request.reads != 0,
            NextValue(left, request.reads),
            NextValue(start, place),
            NextState("READ-BASE"),
        ).Else(
            NextValue(place, 0),
            NextState("RECEIVE"),
        )

        # Write.
        # ------
        fsm.act("RECORD",
            NextValue(left, request.writes),
            If(request.writes != 0,
                NextState("WRITE-BASE"),
            ).Else(
                if_reads,
            )
        )
        fsm.act("WRITE-BASE",
            NextValue(address, reverse(read.dat_r)[2:]),
            NextValue(place, place + 1),
            NextState("WRITE-FETCH"),
        )
        fsm.act("WRITE-FETCH",
            If(left == 0,
                if_reads,
            ).Else(
                NextState("WRITE-DATA"),
            )
        )
        fsm.act("WRITE-DATA",
            NextValue(word, reverse(read.dat_r)),
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

        # Read.
        # -----
        # What was read takes the place of its address.
        fsm.act("READ-BASE",
            NextValue(place, place + 1),
            NextState("READ-FETCH"),
        )
        fsm.act("READ-FETCH",
            If(left == 0,
                NextValue(place, start - BASE_LINE),
                NextState("HEAD"),
            ).Else(
                NextState("READ-ADDRESS"),
            )
        )
        fsm.act("READ-ADDRESS",
            NextValue(address, reverse(read.dat_r)[2:]),
            NextState("READ"),
        )
        fsm.act("READ",
            bus.cyc.eq(1),
            bus.stb.eq(1),
            If(bus.ack,
                NextValue(word, bus.dat_r),
                NextState("READ-KEEP"),
            )
        )
        fsm.act("READ-KEEP",
            write.dat_w.eq(reverse(word)),
            write.we.eq(1),
            NextValue(place, place + 1),
            NextValue(left, left - 1),
            NextState("READ-FETCH"),
        )

        # Send.
        # -----
        fsm.act("HEAD",
            NextValue(carry, request.peer_mac[:16]),
            NextState("SEND-FETCH"),
        )
        fsm.act("SEND-FETCH",
            NextState("SEND"),
        )
        fsm.act("SEND",
            source.valid.eq(1),
            If(source.ready,
                NextValue(carry, answer.word[16:]),
                NextValue(place, place + 1),
                NextValue(line, line + 1),
                NextState("SEND-FETCH"),
                If(source.last,
                    NextValue(place, 0),
                    NextState("RECEIVE"),
                ),
            )
        )
