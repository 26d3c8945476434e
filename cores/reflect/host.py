# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Is the host of a test port: keeps what asks for an answer, and gives the answers, and frames of a host's program, to the line."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream, wishbone
from litex.soc.interconnect.csr import *

from liteeth.common import eth_phy_description

from liteprobe.cores.assign import copied
from liteprobe.cores.bus import WriteOnlyCSR
from liteprobe.cores.formats.reflect import (
    ACCESS_ENTRIES, ACCESS_ENTRY_WORDS, ACCESS_WORD, COUNT_WORD, ERROR_UNKNOWN, FRAMES_WORDS, HEARD_WORD, LEAST_MAIL_OCTETS,
    MAIL_OCTETS, MAIL_WORDS, PING_TTL, SEND_WORD, SESSION_WORD, STAMP_BASE, STAMP_PORT, STAMP_TTL, AccessKind, HostCount,
    HostEnable,
)
from liteprobe.cores.octets import last_be_of_length, swapped
from liteprobe.cores.receive.frames import frame_layout
from liteprobe.cores.reflect.request import (
    LAST_LINE, TRANSPORT4, TRANSPORT6, UDP_HEADER, HostRequest, asked_layout, settings_layout,
)
from liteprobe.cores.reflect.tlv import TlvWalk
from liteprobe.cores.timebase.seconds import NS_BITS, SECONDS_BITS, SecondOf
from liteprobe.cores.transmit.departure import Departure
from liteprobe.cores.transmit.management import FRAME_WORDS

# Numbers ------------------------------------------------------------------------------------------

STORE_WORDS = 1024 # Of requests in waiting: two block RAMs.
JOBS        = 16   # Requests in waiting.
STAMP_CYCLES = 5   # From its stamp until T2 is in the sum, less one.
MS_HZ       = 1000
LAST_ANSWERED = int(HostCount.STAMP6)
# Octets of the whole frames of the shortest answers of STAMP, IPv4 and IPv6, untagged.
SHORT_OCTETS = {False: 14 + 20 + UDP_HEADER + STAMP_BASE, True: 14 + 40 + UDP_HEADER + STAMP_BASE}

def job_layout():
    """Return what is known of a request that waits."""
    return [
        ("start",   log2_int(STORE_WORDS)),
        ("last_word", log2_int(STORE_WORDS)), # Its last word, counted from 0.
        ("last_be", 4),
        ("second",     SECONDS_BITS),       # T2.
        ("nanosecond", NS_BITS),
        ("is_kept", 1), # Its words are in the store.
        *asked_layout(),
    ]

# Request Store ------------------------------------------------------------------------------------

class RequestStore(LiteXModule):
    """Keeps the words of requests, in two banks of halfwords that are read apart; never stalls what comes in.

    Attributes
    ----------
    valid, last, data : Signal(), Signal(), Signal(32), in
        Words of all frames.
    ended, keep : Signal(), in
        A cycle after the last word; the frame is kept if it was whole.
    start, words : Signal(10), Signal(10), out
        With ``ended``: where it begins, and how many words it has, less one.
    is_whole : Signal(), out
        With ``ended``: it found space.
    freed : Signal(10), in
        Words before this one are not needed any more.
    read : Signal(), in
        Read both banks at ``even_word`` and ``odd_word`` : Signal(10), in; ``even``, ``odd`` : Signal(16), out, are held from the
        next cycle on.
    """
    def __init__(self):
        bits = log2_int(STORE_WORDS)
        self.valid     = Signal()
        self.last      = Signal()
        self.data      = Signal(32)
        self.ended     = Signal()
        self.keep      = Signal()
        self.start     = Signal(bits)
        self.words     = Signal(bits, reset_less=True)
        self.is_whole  = Signal()
        self.freed     = Signal(bits)
        self.read      = Signal()
        self.even_word = Signal(bits)
        self.odd_word  = Signal(bits)
        self.even      = Signal(16)
        self.odd       = Signal(16)

        # # #

        self.autocsr_exclude = {"even_bank", "odd_bank"}
        written = Signal(bits)
        is_cut  = Signal()
        fits    = Signal()
        count   = Signal(bits)
        first   = Signal(reset=1)
        place   = Signal(bits)
        # A frame that ended in the cycle before is settled in this one.
        self.comb += [
            place.eq(Mux(self.ended, Mux(self.keep & self.is_whole, written, self.start), written)),
            fits.eq(((place + 1)[:bits] != self.freed) & ~(is_cut & ~first)),
        ]
        for name, half in (("even", self.data[:16]), ("odd", self.data[16:])):
            bank  = Memory(16, STORE_WORDS, name=f"{name}_halves")
            write = bank.get_port(write_capable=True, mode=READ_FIRST)
            read  = bank.get_port(has_re=True, mode=READ_FIRST)
            setattr(self, f"{name}_bank", bank)
            self.specials += bank, write, read
            self.comb += [
                write.adr.eq(place),
                write.dat_w.eq(half),
                write.we.eq(self.valid & fits),
                read.adr.eq(getattr(self, f"{name}_word")),
                read.re.eq(self.read),
                getattr(self, name).eq(read.dat_r),
            ]
        self.sync += [
            written.eq(place),
            If(self.ended, self.start.eq(place)),
            If(self.valid,
                first.eq(self.last),
                count.eq(Mux(first, 1, count + 1)),
                is_cut.eq(~fits),
                If(fits, written.eq(place + 1)),
                If(self.last, self.words.eq(Mux(first, 0, count)), self.is_whole.eq(fits)),
            ),
        ]

# Port Host ----------------------------------------------------------------------------------------

class PortHost(LiteXModule):
    """Answers ARP, neighbour solicitations, ping and STAMP for a port, and sends frames of the host's program.

    Parameters
    ----------
    clk_freq : float
        Of ``sys`` (Hz).

    Attributes
    ----------
    sink : Endpoint(frame_layout(32)), in
        Words of all frames, as of the receive MAC; ``ready`` is 1.
    classified : Signal(), in
        In the cycle after a frame's last word: its stamp will come.
    has_stamp, no_stamp, stamp : Signal(), Signal(), Signal(32), in
        From two cycles after that on: it is there; it will not come; its low word (ns).
    seconds, base : Signal(32), in
        As of `SecondsClock`.
    source : Endpoint(eth_phy_description(32)), out
        Answers, whole frames without padding and FCS; ``error`` says what of `Departure` a word takes.
    has_space : Signal(), in
        A whole frame finds space after ``source``. Else its answer is dropped and counted.
    settings : Record(settings_layout()), in
        As the registers.
    rate : Signal(16), in
        Answers of ping and STAMP in a millisecond, at most; 0: no limit.
    send, send_octets : Signal(), Signal(8), in
        One cycle: send the first so many octets of the memory.
    sending : Signal(), out
        That frame waits to be taken.
    bus : wishbone.Interface, slave
        The memory (`cores/formats/reflect.py`).

    An answer begins to leave some ten cycles after the request's last word, where none waits before it. A request takes the
    words of its answer and eight cycles more; four more where sessions are counted, two for each entry of the access list and
    one for each word of IPv6 that is alike.

    Limits: 4 KiB of requests and 16 of them wait; what is more is counted as OVERRUN. sys from 48 MHz for gigabit.
    """
    def __init__(self, clk_freq):
        self.sink        = stream.Endpoint(frame_layout(32))
        self.classified  = Signal()
        self.has_stamp   = Signal()
        self.no_stamp    = Signal()
        self.stamp       = Signal(NS_BITS)
        self.seconds     = Signal(SECONDS_BITS)
        self.base        = Signal(NS_BITS)
        self.source      = stream.Endpoint(eth_phy_description(32))
        self.has_space   = Signal()
        self.settings    = Record(settings_layout())
        self.rate        = Signal(16)
        self.send        = Signal()
        self.send_octets = Signal(8)
        self.sending     = Signal()

        # # #

        self.request = HostRequest()
        self.tlvs    = TlvWalk()
        self.store   = RequestStore()
        self.jobs    = stream.SyncFIFO(job_layout(), JOBS)
        self.fsm     = FSM(reset_state="IDLE")
        self.comb   += self.request.settings.raw_bits().eq(self.settings.raw_bits())
        self.add_memory()
        self.add_intake()
        self.add_rate(clk_freq)
        self.add_places()
        self.add_words()
        self.add_order()
        self.add_access()
        self.add_session()

    # Memory ---------------------------------------------------------------------------------------

    def add_memory(self):
        """Keep what the host and its program share."""
        self.autocsr_exclude = {"memory"}
        self.memory  = memory = Memory(32, FRAMES_WORDS, init=[0]*FRAMES_WORDS, name="host_frames")
        self.bus     = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.reads   = Signal() # The word at ``address``, which ``shown`` is in the next cycle.
        self.writes  = Signal() # ``written`` to ``address``.
        self.address = Signal(log2_int(FRAMES_WORDS))
        self.written = Signal(32)
        read  = memory.get_port(mode=READ_FIRST)
        write = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.shown = read.dat_r
        self.specials += memory, read, write
        # The bus has it in cycles in which nobody else does.
        step  = Signal(2)
        take  = Signal()
        self.comb += [
            take.eq(bus.cyc & bus.stb & (step == 0) & ~self.reads & ~self.writes),
            bus.ack.eq(step[1]),
            read.adr.eq(Mux(self.reads, self.address, bus.adr)),
            write.adr.eq(Mux(self.writes, self.address, bus.adr)),
            write.dat_w.eq(Mux(self.writes, self.written, bus.dat_w)),
            write.we.eq(self.writes | (take & bus.we)),
        ]
        self.sync += [
            step.eq(Cat(take & ~bus.we, step[0] | (take & bus.we))),
            bus.dat_r.eq(read.dat_r),
        ]

    # Requests -------------------------------------------------------------------------------------

    def add_intake(self):
        """Keep a request, wait for its stamp, and put it in line."""
        sink, request, store, jobs = self.sink, self.request, self.store, self.jobs
        asked   = request.asked
        job     = Record(job_layout(), reset_less=True) # It waits for its stamp.
        is_busy = Signal()                              # There is one.
        age     = Signal(STAMP_CYCLES + 1)              # Since its stamp is there, one-hot.
        last_be = Signal(4, reset_less=True)
        wanted, answered, is_stamp = Signal(), Signal(), Signal()
        takes     = Signal() # This frame is the next job; the store has its last word by the next cycle.
        is_taken  = Signal()
        tlv_sum   = Signal(17, reset_less=True)
        tlvs      = self.tlvs
        self.lost = Signal()
        self.comb += [
            sink.connect(request.sink),
            *copied(tlvs, sink, "valid", "last", "data"),
            *copied(tlvs, request, "step", "in_transport", "has_tlvs", "traffic_class"),
            tlvs.left.eq(request.offset),
            tlvs.information.eq(self.settings.information),
            tlvs.ports.eq(Cat(request.port, self.settings.stamp_port)),
            store.valid.eq(tlvs.source_valid),
            store.last.eq(tlvs.source_last),
            store.data.eq(tlvs.source_data),
            wanted.eq(request.ended & request.is_ours),
            answered.eq(asked.outcome <= int(HostCount.HEARD)),
            # What is refused takes no space.
            takes.eq(wanted & self.classified & ~is_busy),
            self.lost.eq(wanted & (~self.classified | is_busy)),
            is_stamp.eq((job.outcome == int(HostCount.STAMP4)) | (job.outcome == int(HostCount.STAMP6))),
        ]
        self.second_of = second_of = SecondOf()
        sums  = Signal(19, reset_less=True)
        once  = Signal(17)
        whole = Signal(17)
        of_second     = Signal(17, reset_less=True)
        of_nanosecond = Signal(17, reset_less=True)
        self.comb += [
            second_of.time.eq(self.stamp),
            *copied(second_of, self, "seconds", "base"),
        ]
        arrives = Signal()
        waits   = Signal(2) # The stamp may come from here on.
        self.comb += arrives.eq(is_busy & waits[-1] & (age == 0) & (self.has_stamp | self.no_stamp))
        self.sync += [
            If(sink.valid, last_be.eq(sink.last_be)),
            waits.eq(Cat(is_busy, waits) & Replicate(is_busy, 2)),
            If(is_busy, age.eq(Cat(arrives, age[:-1])), If(age[-1], age[-1].eq(1))).Else(age.eq(0)),
            store.ended.eq(request.ended),
            store.keep.eq(takes & answered),
            is_taken.eq(takes),
            If(takes,
                is_busy.eq(1),
                *copied(job, asked, *[name for name, _ in asked_layout()]),
                job.last_be.eq(last_be),
            ),
            If(is_taken,
                job.start.eq(store.start),
                job.last_word.eq(store.words),
                job.is_kept.eq(store.keep & store.is_whole),
                If(store.keep & ~store.is_whole, job.outcome.eq(int(HostCount.OVERRUN))),
                tlv_sum.eq(tlvs.plus + tlvs.minus),
            ),
            If(arrives & is_stamp & ~self.has_stamp, job.outcome.eq(int(HostCount.OVERRUN))),
            of_second.eq(second_of.second[:16] + second_of.second[16:]),
            of_nanosecond.eq(second_of.nanosecond[:16] + second_of.nanosecond[16:]),
            sums.eq(of_second + of_nanosecond + job.sum + tlv_sum),
            If(age[STAMP_CYCLES - 2], job.second.eq(second_of.second), job.nanosecond.eq(second_of.nanosecond)),
            If(age[STAMP_CYCLES - 1] & is_stamp, job.sum.eq(whole)),
            If(jobs.sink.valid & jobs.sink.ready, is_busy.eq(0)),
        ]
        self.comb += [
            once.eq(sums[:16] + sums[16:]),
            whole.eq(once[:16] + once[16]),
            *[getattr(jobs.sink, name).eq(getattr(job, name)) for name, _ in job_layout()],
            jobs.sink.valid.eq(is_busy & age[-1]),
        ]

    # Rate -----------------------------------------------------------------------------------------

    def add_rate(self, clk_freq):
        """Count the answers that a millisecond has left."""
        cycles    = int(clk_freq/MS_HZ)
        countdown = Signal(max=cycles)
        self.left = left = Signal(16)
        self.spends   = Signal()
        self.is_limited = Signal()
        self.comb += self.is_limited.eq((self.rate != 0) & (left == 0))
        self.sync += [
            If(self.spends, left.eq(left - 1)),
            countdown.eq(countdown - 1),
            If(countdown == 0, countdown.eq(cycles - 1), left.eq(self.rate)),
        ]

    # Places of octets -----------------------------------------------------------------------------

    def add_places(self):
        """Say for each word of an answer where the request has its halfwords."""
        job, store = self.jobs.source, self.store
        self.is_stamp = is_stamp = Signal()
        self.word = word = Signal(log2_int(STORE_WORDS)) # Of the answer, that is read.
        self.line = line = Signal(max=LAST_LINE + 1)     # Which line it is,
        self.is_tag = is_tag = Signal()                  # or it is the tag.
        self.step = step = Signal(max=LAST_LINE + 1)     # Of the transport.
        self.is_plain = is_plain = Signal()              # Read as it is.
        even, odd = (Signal((5, True)) for _ in range(2))
        self.comb += [
            is_stamp.eq((job.outcome == int(HostCount.STAMP4)) | (job.outcome == int(HostCount.STAMP6))),
            is_tag.eq((word == 3) & job.is_tagged),
            line.eq(Mux(word > LAST_LINE, LAST_LINE, word) - ((word > 3) & job.is_tagged)),
            step.eq(line - Mux(job.is_v6, TRANSPORT6, TRANSPORT4)),
            store.even_word.eq(job.start + word + even),
            store.odd_word.eq(job.start + word + odd),
        ]
        def both(places):
            return [even.eq(places), odd.eq(places)]
        arp = {7: [odd.eq(2), even.eq(3)], **{n: [odd.eq(-3), even.eq(-2)] for n in (8, 9, 10)}}
        v4  = {6: [odd.eq(1)], 7: [even.eq(1), odd.eq(-1)], 8: [even.eq(-1)]}
        def v6(ahead):
            return {
                5: [odd.eq(ahead)], **{n: both(ahead) for n in (6, 7, 8)}, 9: [even.eq(ahead), odd.eq(-4)],
                **{n: both(-4) for n in (10, 11, 12)}, 13: [even.eq(-4)],
            }
        stamp = {8: [odd.eq(-6)], **{n: both(-6) for n in (9, 10, 11)}}
        self.comb += If(~is_plain & ~is_tag,
            If(line < 3,
                Case(line, {0: [odd.eq(1), even.eq(2)], 1: [odd.eq(1)], "default": []}),
            ).Elif(job.is_arp,
                Case(line, {**arp, "default": []}),
            ).Elif(job.is_ns,
                Case(line, {**v6(10), "default": []}),
            ).Elif(job.is_v6,
                Case(line, {**v6(4), "default": []}),
            ).Else(
                Case(line, {**v4, "default": []}),
            ),
            If(is_stamp, Case(step, {**stamp, "default": []})),
        )

    # Words ----------------------------------------------------------------------------------------

    def add_words(self):
        """Make the words of an answer, of what the store gives and what the host knows."""
        job, store, s = self.jobs.source, self.store, self.settings
        is_stamp = self.is_stamp
        self.out_line = line = Signal(max=LAST_LINE + 1, reset_less=True) # Of the word that the store shows.
        self.out_step = step = Signal(max=LAST_LINE + 1, reset_less=True)
        self.out_tag  = is_tag = Signal(reset_less=True)
        self.sequence = sequence = Signal(32, reset_less=True) # Of a session.
        self.checksum = checksum = Signal(16, reset_less=True) # Of the transport.
        self.data  = Signal(32)
        self.marks = Signal(4) # What of `Departure` goes into it.
        even, odd  = Signal(16), Signal(16) # Numbers.
        stored_even, stored_odd = Signal(16), Signal(16)
        swaps = Signal()
        is_stateful = s.enable[log2_int(int(HostEnable.STATEFUL))]
        in_transport = Signal()
        self.comb += [
            in_transport.eq(~job.is_arp & Mux(job.is_v6, line >= TRANSPORT6, line >= TRANSPORT4)),
            swaps.eq((line < 2) | (job.is_arp & (line >= 7) & (line <= 10))),
            stored_even.eq(swapped(store.even)),
            stored_odd.eq(swapped(store.odd)),
            even.eq(Mux(swaps, stored_odd, stored_even)),
            odd.eq(Mux(swaps, stored_even, stored_odd)),
            self.data.eq(Cat(swapped(even), swapped(odd))),
        ]
        def choose(of, table):
            return Case(of, {**table, "default": []})
        mac  = {1: odd.eq(s.mac[32:]), 2: [even.eq(s.mac[16:32]), odd.eq(s.mac[:16])]}
        arp  = {5: [even.eq(2), odd.eq(s.mac[32:])], 6: [even.eq(s.mac[16:32]), odd.eq(s.mac[:16])], 10: odd.eq(0),
            **{n: [even.eq(0), odd.eq(0)] for n in range(11, LAST_LINE + 1)}}
        short_payload = UDP_HEADER + STAMP_BASE
        ttl = Mux(job.is_udp | job.is_ns, STAMP_TTL, PING_TTL)
        v4  = {
            4: If(job.is_short, even.eq(20 + short_payload)),
            5: odd[8:].eq(ttl),
            6: even.eq(job.header),
        }
        v6  = {
            4: If(job.is_short, odd.eq(short_payload)),
            5: even[:8].eq(ttl),
        }
        udp = {
            0: odd.eq(s.stamp_port),
            1: [even.eq(job.port), If(job.is_short, odd.eq(short_payload))],
            2: [even.eq(Mux(job.has_checksum, checksum, 0)), If(is_stateful, odd.eq(sequence[16:])),
                If(job.has_checksum, self.marks.eq(int(Departure.CHECKSUM)))],
            3: [If(is_stateful, even.eq(sequence[:16])), odd.eq(0), self.marks.eq(int(Departure.FIRST))],
            4: [even.eq(0), odd.eq(0), self.marks.eq(int(Departure.MIDDLE))],
            5: [even.eq(0), odd.eq(s.error_estimate), self.marks.eq(int(Departure.LAST))],
            6: [If(~job.has_session, even.eq(0)), odd.eq(job.second[16:])],
            7: [even.eq(job.second[:16]), odd.eq(job.nanosecond[16:])],
            8: even.eq(job.nanosecond[:16]),
            12: [even.eq(0), odd.eq(Cat(Constant(0, 8), job.ttl))],
            13: even.eq(0),
        }
        icmp = {0: odd.eq(Mux(job.is_v6, 0x8100, 0)), 1: even.eq(checksum)}
        nd   = {
            0: odd.eq(0x8800), 1: [even.eq(checksum), odd.eq(0x6000)], 2: even.eq(0),
            6: If(job.has_option, odd.eq(0x0201)),
            7: If(job.has_option, even.eq(s.mac[32:]), odd.eq(s.mac[16:32])),
            8: If(job.has_option, even.eq(s.mac[:16])),
        }
        self.comb += If(~is_tag & ~self.is_plain,
            If(line < 3, choose(line, mac))
            .Elif(job.is_arp, choose(line, arp))
            .Elif(job.is_v6, choose(line, v6))
            .Else(choose(line, v4)),
            If(in_transport,
                If(is_stamp, choose(step, udp))
                .Elif(job.is_ns, choose(step, nd))
                .Else(choose(step, icmp)),
            ),
        )

    # Order ----------------------------------------------------------------------------------------

    def add_order(self):
        """Take a request after the other, answer or refuse it, and count it."""
        fsm, job, store, source = self.fsm, self.jobs.source, self.store, self.source
        lost    = Signal(4)  # Frames not counted yet that found no place in line.
        counted = Signal()
        self.outcome = outcome = Signal(5, reset_less=True)
        self.takes   = Signal() # A job is through.
        last_word = Signal(log2_int(STORE_WORDS), reset_less=True)
        last_be   = Signal(4, reset_less=True)
        octets    = Signal(8, reset_less=True)  # Of a frame to send.
        is_send   = Signal(reset_less=True)
        is_heard  = Signal(reset_less=True)
        is_open, is_ahead, advance = Signal(), Signal(), Signal()
        out_last  = Signal()
        out_word  = Signal(log2_int(STORE_WORDS), reset_less=True)
        taken     = Signal()
        short     = Mux(job.is_v6, SHORT_OCTETS[True], SHORT_OCTETS[False]) + Cat(Constant(0, 2), job.is_tagged)
        short_octets = Signal(8)
        freed = Signal(log2_int(STORE_WORDS), reset=STORE_WORDS - 1)
        is_limited = self.is_limited & (job.outcome != int(HostCount.ARP)) & (job.outcome != int(HostCount.ND))
        self.comb += [
            self.is_plain.eq(is_send | is_heard),
            short_octets.eq(short),
            store.freed.eq(freed),
            self.jobs.source.ready.eq(self.takes),
            advance.eq(is_open & (taken | ~is_ahead)),
            store.read.eq(advance),
            taken.eq(is_ahead & (source.ready | is_heard)),
            source.valid.eq(is_ahead & ~is_heard),
            source.last.eq(out_last),
            source.last_be.eq(Mux(out_last, last_be, 0)),
            source.data.eq(Mux(is_send, self.shown, self.data)),
            source.error.eq(self.marks),
        ]
        self.sync += [
            lost.eq(lost + (self.lost & (lost != 15)) - counted),
            If(self.send, octets.eq(self.send_octets), self.sending.eq(1)),
            If(taken, is_ahead.eq(0)),
            If(advance,
                is_ahead.eq(1),
                self.out_line.eq(self.line),
                self.out_step.eq(self.step),
                self.out_tag.eq(self.is_tag),
                out_word.eq(self.word),
                out_last.eq(self.word == last_word),
                self.word.eq(self.word + 1),
                If(self.word == last_word, is_open.eq(0)),
            ),
        ]
        is_answer = job.outcome <= LAST_ANSWERED
        self.begin = begin = [
            NextValue(self.word, 0),
            NextValue(is_open, 1),
            NextState("WORDS"),
        ]
        fsm.act("IDLE",
            NextValue(is_send, 0),
            NextValue(is_heard, 0),
            NextValue(outcome, job.outcome),
            # Of an echo reply that is all 0, a checksum of 0 would be wrong; its other form is right of any.
            NextValue(self.checksum, Mux((job.outcome == int(HostCount.PING4)) & (job.sum == 0xffff), 0xffff, ~job.sum)),
            If(self.jobs.source.valid,
                NextValue(last_word, job.last_word),
                NextValue(last_be, job.last_be),
                If(job.is_short & self.is_stamp,
                    NextValue(last_word, ((short_octets + 3) >> 2) - 1),
                    NextValue(last_be, 0b0010), # All of them end there.
                ),
                If(job.outcome == int(HostCount.HEARD),
                    NextValue(is_heard, 1),
                    If(job.last_word >= MAIL_WORDS, NextValue(last_word, MAIL_WORDS - 1)),
                    *begin,
                ).Elif(is_answer,
                    If(self.is_stamp & self.settings.enable[log2_int(int(HostEnable.ACCESS))],
                        NextState("ACCESS"),
                    ).Else(
                        NextState("DECIDE"),
                    ),
                ).Else(
                    NextState("COUNT"),
                ),
            ).Elif(self.sending & self.has_space,
                NextValue(is_send, 1),
                NextValue(outcome, int(HostCount.SENT)),
                NextValue(last_word, ((octets + 3) >> 2) - 1),
                NextValue(last_be, last_be_of_length(octets, 32)),
                NextValue(self.sending, 0),
                *begin,
            ).Elif(lost != 0,
                counted.eq(1),
                NextValue(outcome, int(HostCount.OVERRUN)),
                NextState("COUNT-OTHER"),
            ),
        )
        is_stateful = self.settings.enable[log2_int(int(HostEnable.STATEFUL))]
        fsm.act("DECIDE",
            If(is_limited,
                NextValue(outcome, int(HostCount.RATE)),
                NextState("COUNT"),
            ).Elif(~self.has_space | (job.last_word >= FRAME_WORDS),
                NextValue(outcome, int(HostCount.FULL)),
                NextState("COUNT"),
            ).Else(
                self.spends.eq((self.rate != 0) & (job.outcome != int(HostCount.ARP)) & (job.outcome != int(HostCount.ND))),
                If(self.is_stamp & is_stateful, NextState("SESSION")).Else(*begin),
            ),
        )
        address = self.address
        fsm.act("WORDS",
            If(is_send, self.reads.eq(1), address.eq(SEND_WORD + Mux(is_ahead & ~taken, out_word, self.word)[:5])),
            If(is_heard,
                address.eq(HEARD_WORD + out_word[:5]),
                self.written.eq(Cat(store.even, store.odd)),
                self.writes.eq(is_ahead),
            ),
            If(taken & out_last, If(is_send, NextState("COUNT-OTHER")).Else(NextState("COUNT"))),
        )
        fsm.act("COUNT",
            self.takes.eq(1),
            If(job.is_kept, NextValue(freed, job.start + job.last_word)),
            NextState("COUNT-OTHER"),
        )
        fsm.act("COUNT-OTHER",
            self.reads.eq(1),
            address.eq(COUNT_WORD + outcome),
            NextState("ADD"),
        )
        fsm.act("ADD",
            address.eq(COUNT_WORD + outcome),
            self.written.eq(self.shown + 1),
            self.writes.eq(1),
            NextState("IDLE"),
        )

    # Access list ----------------------------------------------------------------------------------

    def add_access(self):
        """Look for the source address in the access list."""
        fsm, job, store, shown = self.fsm, self.jobs.source, self.store, self.shown
        entry = Signal(max=ACCESS_ENTRIES)
        part  = Signal(2)
        bits  = Signal(8, reset_less=True) # Of the prefix that are not compared yet.
        mask  = Signal(32)
        differs = Signal()
        kind  = shown[8:16]
        source_line = Mux(job.is_v6, TRANSPORT6 - 8, TRANSPORT4 - 2) + job.is_tagged # Whose odd half the address begins in.
        address = Cat(swapped(store.even), swapped(store.odd)) # Number: the odd half comes first.
        self.comb += [
            mask.eq(Mux(bits >= 32, 2**32 - 1, ~((Constant(2**32 - 1, 32) >> bits[:5])[:32]))),
            differs.eq(((address ^ shown) & mask) != 0),
        ]
        next_entry = [
            NextValue(entry, entry + 1),
            If(entry == ACCESS_ENTRIES - 1,
                NextValue(self.outcome, int(HostCount.NO_ACCESS)),
                NextValue(entry, 0),
                NextState("COUNT"),
            ).Else(
                NextState("ACCESS"),
            ),
        ]
        def entry_at(word):
            return [self.reads.eq(1), self.address.eq(ACCESS_WORD + Cat(Constant(0, log2_int(ACCESS_ENTRY_WORDS)), entry) + word)]
        granted = [NextValue(entry, 0), NextState("DECIDE")]
        self.access_reads = Signal()
        self.access_part  = Signal(2)
        fsm.act("ACCESS",
            *entry_at(4),
            NextState("ACCESS-KIND"),
        )
        fsm.act("ACCESS-KIND",
            NextValue(bits, shown[:8]),
            NextValue(part, 0),
            *entry_at(0),
            self.access_reads.eq(1),
            If(kind == Mux(job.is_v6, int(AccessKind.IPV6), int(AccessKind.IPV4)),
                If(shown[:8] == 0, *granted).Else(NextState("ACCESS-WORD")),
            ).Else(*next_entry),
        )
        fsm.act("ACCESS-WORD",
            NextValue(part, part + 1),
            NextValue(bits, bits - 32),
            self.access_part.eq(part + 1),
            *entry_at(self.access_part),
            self.access_reads.eq(1),
            If(differs,
                *next_entry,
            ).Elif((bits <= 32) | (~job.is_v6) | (part == 3),
                *granted,
            ),
        )
        self.comb += If(self.access_reads,
            store.read.eq(1),
            store.odd_word.eq(job.start + source_line + self.access_part),
            store.even_word.eq(job.start + source_line + self.access_part + 1),
        )

    # Sessions -------------------------------------------------------------------------------------

    def add_session(self):
        """Take the count of a session, and count it on."""
        fsm, job, store, shown = self.fsm, self.jobs.source, self.store, self.shown
        session = Signal(8, reset_less=True)
        found   = Signal(8)
        reads   = Signal()
        once    = Signal(18, reset_less=True)
        twice   = Signal(17)
        place   = Mux(job.is_v6, TRANSPORT6 + 6, TRANSPORT4 + 6) + job.is_tagged
        self.comb += [
            If(reads,
                store.read.eq(1),
                store.even_word.eq(job.start + place),
            ),
            twice.eq(once[:16] + once[16:]),
            found.eq(Mux(job.has_session, swapped(store.even)[:8], 0)),
        ]
        fsm.act("SESSION",
            reads.eq(1),
            NextState("SESSION-READ"),
        )
        fsm.act("SESSION-READ",
            NextValue(session, found),
            self.reads.eq(1),
            self.address.eq(SESSION_WORD + found),
            NextState("SESSION-COUNT"),
        )
        fsm.act("SESSION-COUNT",
            NextValue(self.sequence, shown),
            NextValue(once, job.sum + shown[:16] + shown[16:]),
            self.address.eq(SESSION_WORD + session),
            self.written.eq(shown + 1),
            self.writes.eq(1),
            NextState("SESSION-SUM"),
        )
        fsm.act("SESSION-SUM",
            NextValue(self.checksum, ~(twice[:16] + twice[16])),
            *self.begin,
        )

    # Joints ---------------------------------------------------------------------------------------

    def join_port(self, arrivals, seconds):
        """Return what takes the frames of a port's `Arrivals` in, and gives it the time of a `SecondsClock`."""
        return [
            *copied(self.sink, arrivals.mac.source, "valid", "last", "payload"),
            self.classified.eq(arrivals.parser.asks),
            self.has_stamp.eq(arrivals.has_stamp),
            self.no_stamp.eq(arrivals.ready & ~arrivals.has_stamp),
            self.stamp.eq(arrivals.pairing.stamp),
            *copied(self, seconds, "seconds", "base"),
        ]

    def join_line(self, sink, has_space, stamp, seconds):
        """Return what gives answers to the sink of a queue that has space for them, and the time to its `DepartureStamp`."""
        return [
            self.source.connect(sink),
            self.has_space.eq(has_space),
            stamp.seconds.eq(seconds.timebase_seconds),
            stamp.base.eq(seconds.timebase_base),
        ]

    # Registers ------------------------------------------------------------------------------------

    def add_csr(self):
        """Add the registers (docs/design/hosts-and-reflector.md)."""
        settings = self.settings
        self._enable = CSRStorage(9, name="enable", description="What is answered: bits of HostEnable.")
        self.comb += settings.enable.eq(self._enable.storage)
        for name, size, reset, description in [
            ("mac",            48,   0, "MAC address of the port."),
            ("ipv4",           32,   0, "IPv4 address."),
            ("ipv6",           128,  0, "IPv6 address."),
            ("vlan",           13,   0, "Bit 12: frames with the tag of the VLAN in bits 11..0 alone; else untagged ones alone."),
            ("stamp_port",     16,   STAMP_PORT, "UDP port of the reflector."),
            ("error_estimate", 16,   ERROR_UNKNOWN, "In each STAMP answer."),
            ("information",    32,   0, "Value of the TLV timestamp information, the first octet highest; 0: not known."),
            ("rate",           16,   0, "Answers of ping and STAMP in a millisecond, at most; 0: no limit."),
        ]:
            register = WriteOnlyCSR(size, name=name, reset=reset, description=description)
            setattr(self, f"_{name}", register)
            self.comb += (self.rate if name == "rate" else getattr(settings, name)).eq(register.storage)
        self._send    = CSRStorage(8, name="send", description="Write: send the first so many octets of the memory (14 to 128).")
        self._sending = CSRStatus(1, name="sending", description="A frame of send waits to be taken.")
        length = self._send.storage
        self.comb += [
            self.send.eq(self._send.re & (length >= LEAST_MAIL_OCTETS) & (length <= MAIL_OCTETS)),
            self.send_octets.eq(length),
            self._sending.status.eq(self.sending),
        ]
