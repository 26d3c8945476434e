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
    ACCESS4_WORD, ACCESS6_WORD, ACCESS_ENTRIES, ACCESS_WORD, COUNT_WORD, FIRST_LINE, FRAMES_WORDS, HEARD_WORD, LEAST_MAIL_OCTETS,
    MAIL_OCTETS, MAIL_WORDS, PAGE_WORD, RECEIVED_WORD, SESSION_WORD, STAMP_BASE, HostCount, HostEnable, HostWords, Own, Page,
    access_words, line_word,
)
from liteprobe.cores.octets import last_be_of_length, swapped
from liteprobe.cores.receive.frames import frame_layout
from liteprobe.cores.reflect.answer import AnswerLines, Prologue
from liteprobe.cores.reflect.request import LINE_BITS, PAGE_BITS, UDP_HEADER, HostRequest, asked_layout
from liteprobe.cores.timebase.seconds import NS_BITS, SECOND_NS, SECONDS_BITS
from liteprobe.cores.transmit.management import FRAME_WORDS

# Numbers ------------------------------------------------------------------------------------------

STORE_WORDS = 1024 # Of requests in waiting: two block RAMs.
JOBS        = 16   # Requests in waiting.
MS_HZ       = 1000
LAST_ANSWERED = int(HostCount.STAMP6)
# Octets of the whole frames of the shortest answers of STAMP, IPv4 and IPv6, untagged.
SHORT_OCTETS = {False: 14 + 20 + UDP_HEADER + STAMP_BASE, True: 14 + 40 + UDP_HEADER + STAMP_BASE}
SHORT_BE     = 0b0010 # All of them end there.

ENABLE_BITS  = 11
PAGES_BITS   = PAGE_BITS + LINE_BITS
PAGES_WORDS  = 1 << PAGES_BITS
CLASSIFIED_CYCLES = 4 # From that until the request is known.
NODE_WORD = line_word(Page.IPV6, 13) # Its low bits are those of our IPv6 address.
# Lines of a request that has no tag: the source address, the session identifier.
SOURCE4, SOURCE6 = FIRST_LINE + 3, FIRST_LINE + 2
SESSION4, SESSION6 = 9 + 5, 14 + 5

def job_layout():
    """Return what is known of a request that waits."""
    return [
        ("last_line", log2_int(STORE_WORDS)), # Its last line, counted from 0.
        ("last_be", 4),
        ("stamp", NS_BITS), # T2.
        ("is_kept", 1),     # Its lines are in the store.
        *asked_layout(),
    ]

# Request Store ------------------------------------------------------------------------------------

class RequestStore(LiteXModule):
    """Keeps the lines of requests, in two banks of halfwords that are read apart; never stalls what comes in.

    Attributes
    ----------
    valid, last, data : Signal(), Signal(), Signal(32), in
        Lines of all frames.
    ended, keep : Signal(), in
        A cycle or more after the last line; the frame is kept if it was whole.
    words : Signal(10), out
        With ``ended``: how many lines it has, less one.
    is_whole : Signal(), out
        With ``ended``: it found space.
    kept : Signal(10), in
        Lines before this one are not needed any more.
    read : Signal(), in
        Read both banks at ``high_line`` and ``low_line`` : Signal(10), in; ``high``, ``low`` : Signal(16), out, are held from the
        next cycle on.
    """
    def __init__(self):
        bits = log2_int(STORE_WORDS)
        self.valid     = Signal()
        self.last      = Signal()
        self.data      = Signal(32)
        self.ended     = Signal()
        self.keep      = Signal()
        self.words     = Signal(bits, reset_less=True)
        self.is_whole  = Signal()
        self.kept      = Signal(bits)
        self.read      = Signal()
        self.high_line = Signal(bits)
        self.low_line  = Signal(bits)
        self.high      = Signal(16)
        self.low       = Signal(16)

        # # #

        self.autocsr_exclude = {"high_bank", "low_bank"}
        written = Signal(bits)
        start   = Signal(bits)
        is_cut  = Signal()
        fits    = Signal()
        count   = Signal(bits)
        first   = Signal(reset=1)
        place   = Signal(bits)
        # A frame that ended in the cycle before is settled in this one.
        self.comb += [
            place.eq(Mux(self.ended, Mux(self.keep & self.is_whole, written, start), written)),
            fits.eq(((place + 2)[:bits] != self.kept) & ~(is_cut & ~first)),
        ]
        for name, half in (("high", self.data[16:]), ("low", self.data[:16])):
            bank  = Memory(16, STORE_WORDS, name=f"{name}_halves")
            write = bank.get_port(write_capable=True, mode=READ_FIRST)
            read  = bank.get_port(has_re=True, mode=READ_FIRST)
            setattr(self, f"{name}_bank", bank)
            self.specials += bank, write, read
            self.comb += [
                write.adr.eq(place),
                write.dat_w.eq(half),
                write.we.eq(self.valid & fits),
                read.adr.eq(getattr(self, f"{name}_line")),
                read.re.eq(self.read),
                getattr(self, name).eq(read.dat_r),
            ]
        self.sync += [
            written.eq(place),
            If(self.ended, start.eq(place)),
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
    """Answers ARP, neighbour solicitations, ping and STAMP for a port, and sends frames of a host's program.

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
        From four cycles after that on: it is there; it will not come; its low word (ns).
    seconds, base : Signal(32), in
        As of `SecondsClock`.
    source : Endpoint(eth_phy_description(32)), out
        Answers, whole frames without padding and FCS; ``error`` says what of `Departure` a word takes.
    has_space : Signal(), in
        A whole frame finds space after ``source``. Else its answer is dropped and counted.
    enable : Signal(11), in
        `HostEnable`.
    rate : Signal(16), in
        Answers of ping and STAMP in a millisecond, at most; 0: no limit.
    send, send_octets : Signal(), Signal(8), in
        One cycle: send the first so many octets of the memory.
    sending : Signal(), out
        That frame waits to be taken.
    bus : wishbone.Interface, slave
        The memory (`cores/formats/reflect.py`).

    A request takes the lines of its answer, one more than words, and nine cycles; of STAMP six or seven more, of others up to
    three; six more where sessions are counted, and three for each word of the access list that is looked at.

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
        self.enable      = Signal(ENABLE_BITS)
        self.rate        = Signal(16)
        self.send        = Signal()
        self.send_octets = Signal(8)
        self.sending     = Signal()

        # # #

        self.request = HostRequest()
        self.store   = RequestStore()
        self.jobs    = stream.SyncFIFO(job_layout(), JOBS)
        self.answer  = AnswerLines()
        self.fsm     = FSM(reset_state="IDLE")
        self.comb   += self.request.enable.eq(self.enable)
        self.add_memory()
        self.add_intake()
        self.add_rate(clk_freq)
        self.add_answer()
        self.add_time()
        self.add_order()
        self.add_access()
        self.add_session()

    def enabled(self, name):
        """Return a bit of ``enable``."""
        return self.enable[log2_int(int(HostEnable[name]))]

    # Memory ---------------------------------------------------------------------------------------

    def add_memory(self):
        """Keep what the host and its program share."""
        self.autocsr_exclude = {"memory", "pages"}
        init = [0]*ACCESS_WORD + access_words([]) + HostWords(bytes(6)).words
        init += [0]*(FRAMES_WORDS - len(init))
        self.memory  = memory = Memory(32, FRAMES_WORDS, init=init, name="host_frames")
        self.bus     = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.reads   = Signal() # The word at ``address``, which ``shown`` is in the next cycle.
        self.writes  = Signal() # ``written`` to ``write_address``.
        self.address = Signal(log2_int(FRAMES_WORDS))
        self.write_address = Signal(log2_int(FRAMES_WORDS))
        self.written = Signal(32)
        read   = memory.get_port(has_re=True, mode=READ_FIRST)
        write  = memory.get_port(write_capable=True, mode=READ_FIRST)
        # Of what requests are compared with as they come there is another copy.
        self.pages = pages = Memory(32, PAGES_WORDS, init=init[PAGE_WORD:PAGE_WORD + PAGES_WORDS], name="host_pages")
        lines  = pages.get_port(mode=READ_FIRST)
        copies = pages.get_port(write_capable=True, mode=READ_FIRST)
        to_pages = Signal()
        request, answer = self.request, self.answer
        self.shown = read.dat_r
        self.specials += memory, read, write, pages, lines, copies
        # The bus has it in cycles in which nobody else does.
        step  = Signal(2)
        take  = Signal()
        node  = Signal(24, reset_less=True)
        self.comb += [
            take.eq(bus.cyc & bus.stb & (step == 0) & ~self.reads & ~answer.reads & ~answer.holds & ~self.writes),
            bus.ack.eq(step[1]),
            read.re.eq(self.reads | answer.reads | take),
            read.adr.eq(Mux(self.reads, self.address, Mux(answer.reads, answer.address, bus.adr))),
            write.adr.eq(Mux(self.writes, self.write_address, bus.adr)),
            write.dat_w.eq(Mux(self.writes, self.written, bus.dat_w)),
            write.we.eq(self.writes | (take & bus.we)),
            to_pages.eq(take & bus.we & (bus.adr[PAGES_BITS:len(self.address)] == PAGE_WORD >> PAGES_BITS)),
            copies.adr.eq(bus.adr),
            copies.dat_w.eq(bus.dat_w),
            copies.we.eq(to_pages),
            lines.adr.eq(request.address),
            request.expected.eq(lines.dat_r),
            request.node.eq(node),
            answer.shown.eq(self.shown),
        ]
        self.sync += [
            step.eq(Cat(take & ~bus.we, step[0] | (take & bus.we))),
            bus.dat_r.eq(read.dat_r),
            If(to_pages & (bus.adr[:PAGES_BITS] == NODE_WORD - PAGE_WORD), node.eq(bus.dat_w)),
        ]

    # Requests -------------------------------------------------------------------------------------

    def add_intake(self):
        """Keep a request, wait for its stamp, and put it in line."""
        sink, request, store, jobs = self.sink, self.request, self.store, self.jobs
        asked   = request.asked
        job     = Record(job_layout(), reset_less=True) # It waits for its stamp.
        is_busy = Signal()                              # There is one.
        is_ready = Signal()                             # Its lines are settled.
        classified = Signal(CLASSIFIED_CYCLES)
        last_be = Signal(4, reset_less=True)
        wanted   = Signal()
        answered = Signal()
        is_stamp = Signal()
        takes     = Signal() # This frame is the next job.
        is_taken  = Signal()
        self.lost = Signal()
        self.comb += [
            sink.connect(request.sink),
            store.valid.eq(request.source_valid),
            store.last.eq(request.source_last),
            store.data.eq(request.source_data),
            wanted.eq(request.ended & request.is_ours),
            answered.eq(asked.outcome <= int(HostCount.HEARD)),
            # What is refused takes no space.
            takes.eq(wanted & classified[-1] & ~is_busy & jobs.sink.ready),
            self.lost.eq(wanted & ~takes),
            is_stamp.eq((job.outcome == int(HostCount.STAMP4)) | (job.outcome == int(HostCount.STAMP6))),
        ]
        self.sync += [
            If(sink.valid, last_be.eq(sink.last_be)),
            classified.eq(Cat(self.classified, classified)),
            store.ended.eq(request.ended),
            store.keep.eq(takes & answered),
            is_taken.eq(takes),
            is_ready.eq(is_taken | (is_ready & ~(jobs.sink.valid & jobs.sink.ready))),
            If(takes,
                is_busy.eq(1),
                *copied(job, asked, *[name for name, _ in asked_layout()]),
                job.last_be.eq(last_be),
            ),
            If(is_taken,
                job.last_line.eq(store.words),
                job.is_kept.eq(store.keep & store.is_whole),
                If(store.keep & ~store.is_whole, job.outcome.eq(int(HostCount.OVERRUN))),
            ),
            If(jobs.sink.valid & jobs.sink.ready, is_busy.eq(0)),
        ]
        self.comb += [
            *[getattr(jobs.sink, name).eq(getattr(job, name)) for name, _ in job_layout()],
            jobs.sink.stamp.eq(self.stamp),
            If(is_stamp & ~self.has_stamp, jobs.sink.outcome.eq(int(HostCount.OVERRUN))),
            jobs.sink.valid.eq(is_ready & (self.has_stamp | self.no_stamp)),
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

    # Answers --------------------------------------------------------------------------------------

    def add_answer(self):
        """Say what the lines of an answer depend on."""
        job, store, answer = self.jobs.source, self.store, self.answer
        outcome = job.outcome
        self.is_stamp = is_stamp = Signal()
        self.is_v6    = is_v6    = Signal()
        self.is_counted = Signal() # In its session.
        is_nd = Signal()
        self.first = first = Signal(log2_int(STORE_WORDS)) # Line of the store with the first one of the job.
        self.is_send  = Signal(reset_less=True)
        self.is_heard = Signal(reset_less=True)
        self.last_be  = Signal(4, reset_less=True)
        self.session  = Signal(8, reset_less=True)
        kinds = {
            HostCount.PING4: (Prologue.PING4, Prologue.PING4), HostCount.ND: (Prologue.ND, Prologue.ND_OPTION),
            HostCount.PING6: (Prologue.PING6, Prologue.PING6), HostCount.STAMP4: (Prologue.STAMP4, Prologue.SHORT4),
            HostCount.STAMP6: (Prologue.STAMP6, Prologue.SHORT6),
        }
        other = Mux(is_nd, job.has_option, job.is_short)
        self.comb += [
            is_stamp.eq((outcome == int(HostCount.STAMP4)) | (outcome == int(HostCount.STAMP6))),
            is_nd.eq(outcome == int(HostCount.ND)),
            self.is_counted.eq(is_stamp & self.enabled("STATEFUL")),
            is_v6.eq(is_nd | (outcome == int(HostCount.PING6)) | (outcome == int(HostCount.STAMP6))),
            answer.has_prologue.eq((outcome != int(HostCount.ARP)) & ~self.is_send & ~self.is_heard),
            Case(outcome[:3], {
                **{int(kind): answer.prologue.eq(Mux(other, *reversed(of))) for kind, of in kinds.items()},
                "default": answer.prologue.eq(0),
            }),
            answer.network.eq(Mux(outcome == int(HostCount.ARP), Page.ARP, Mux(is_v6, Page.IPV6, Page.IPV4))),
            answer.transport.eq(Mux(is_stamp, Page.UDP, Mux(is_nd, Page.ND, Page.ICMP))),
            If(answer.is_plain | answer.is_sent, answer.network.eq(Page.OTHER), answer.transport.eq(Page.OTHER)),
            answer.is_plain.eq(self.is_heard),
            answer.is_sent.eq(self.is_send),
            answer.tagged.eq(self.enabled("TAGGED")),
            *copied(answer, self, "is_v6", "session", "first"),
            answer.is_udp.eq(is_stamp),
            answer.is_nd.eq(is_nd),
            answer.is_stateful.eq(self.enabled("STATEFUL")),
            *copied(answer, job, "has_option", "has_session", "has_checksum", "sum", "direct"),
            answer.is_short.eq(job.is_short & is_stamp),
            *copied(store, answer, "read", "high_line", "low_line"),
            *copied(answer, store, "high", "low"),
            store.kept.eq(first),
            self.source.valid.eq(answer.source.valid),
            answer.source.ready.eq(self.source.ready),
            self.source.last.eq(answer.source.last),
            self.source.last_be.eq(Mux(answer.source.last, self.last_be, 0)),
            self.source.data.eq(Cat(swapped(answer.source.data[16:]), swapped(answer.source.data[:16]))),
            self.source.error.eq(answer.source.mark),
        ]

    def add_time(self):
        """Write T2 into the memory as soon as a request is taken; count on; keep what was heard."""
        job, answer = self.jobs.source, self.answer
        since   = Signal(NS_BITS, reset_less=True)
        of      = Signal(SECONDS_BITS, reset_less=True)
        is_next = Signal() # The second after that has begun.
        self.starts  = Signal()
        self.counts  = Signal() # The word that is shown by one more,
        self.keeps   = Signal() # or as it is.
        steps   = Signal(2)     # After the start.
        what    = Signal(32)
        self.comb += [
            is_next.eq(since >= SECOND_NS),
            what.eq(self.shown),
            self.write_address.eq(self.address),
            If(answer.line_valid & self.is_heard,
                what.eq(Cat(self.store.low, self.store.high)), # A plain line is that of the store.
                self.write_address.eq(HEARD_WORD + answer.number[:5]),
            ),
            If(steps[0], what.eq(of),    self.write_address.eq(int(Own.SECOND))),
            If(steps[1], what.eq(since), self.write_address.eq(int(Own.NANOSECOND))),
            self.written.eq(what + (self.counts | (steps[0] & is_next)) + Mux(steps[1] & is_next, 2**32 - SECOND_NS, 0)),
            self.writes.eq(self.counts | self.keeps | (answer.line_valid & self.is_heard) | (steps != 0)),
        ]
        self.sync += [
            steps.eq(Cat(self.starts & self.is_stamp, steps)),
            If(self.starts,
                since.eq(job.stamp - self.base),
                of.eq(self.seconds),
            ),
        ]

    # Order ----------------------------------------------------------------------------------------

    def add_order(self):
        """Take a request after the other, answer or refuse it, and count it."""
        fsm, job, answer = self.fsm, self.jobs.source, self.answer
        lost    = Signal(4)  # Frames not counted yet that found no place in line.
        counted = Signal()
        self.outcome = outcome = Signal(5, reset_less=True)
        self.takes   = Signal() # A job is through.
        last_line = Signal(log2_int(STORE_WORDS), reset_less=True)
        octets    = Signal(8, reset_less=True)  # Of a frame to send.
        tagged    = self.enabled("TAGGED")
        short     = {is_v6: -(-count//4) for is_v6, count in SHORT_OCTETS.items()} # Words.
        is_other  = (job.outcome != int(HostCount.ARP)) & (job.outcome != int(HostCount.ND))
        is_limited = self.is_limited & is_other
        self.comb += [
            answer.last_line.eq(last_line),
            self.jobs.source.ready.eq(self.takes),
        ]
        self.sync += [
            lost.eq(lost + (self.lost & (lost != 15)) - counted),
            If(self.send, octets.eq(self.send_octets), self.sending.eq(1)),
        ]
        is_answer = job.outcome <= LAST_ANSWERED
        self.begin = begin = [answer.begin.eq(1), NextState("LINES")]
        fsm.act("IDLE",
            NextValue(self.is_send, 0),
            NextValue(self.is_heard, job.outcome == int(HostCount.HEARD)),
            NextValue(outcome, job.outcome),
            If(self.jobs.source.valid,
                self.starts.eq(1),
                NextValue(last_line, job.last_line),
                NextValue(self.last_be, job.last_be),
                If(job.is_short & self.is_stamp,
                    NextValue(last_line, Mux(self.is_v6, short[True], short[False]) + tagged),
                    NextValue(self.last_be, SHORT_BE),
                ),
                If(job.outcome == int(HostCount.HEARD),
                    If(job.last_line >= MAIL_WORDS, NextValue(last_line, MAIL_WORDS - 1)),
                    NextState("BEGIN"),
                ).Elif(is_answer,
                    NextState("DECIDE"),
                    If(self.is_counted, NextState("SESSION")),
                    If(self.is_stamp & self.enabled("ACCESS"), NextState("ACCESS")),
                ).Else(
                    NextState("COUNT"),
                ),
            ).Elif(self.sending & self.has_space,
                NextValue(self.is_send, 1),
                NextValue(self.is_heard, 0),
                NextValue(outcome, int(HostCount.SENT)),
                NextValue(last_line, (octets + 3) >> 2),
                NextValue(self.last_be, last_be_of_length(octets, 32)),
                NextValue(self.sending, 0),
                NextState("BEGIN"),
            ).Elif(lost != 0,
                counted.eq(1),
                NextValue(outcome, int(HostCount.OVERRUN)),
                NextState("COUNT-OTHER"),
            ),
        )
        fsm.act("BEGIN", *begin)
        fsm.act("DECIDE",
            If(is_limited,
                NextValue(outcome, int(HostCount.RATE)),
                NextState("COUNT"),
            ).Elif(~self.has_space | (job.last_line > FRAME_WORDS),
                NextValue(outcome, int(HostCount.FULL)),
                NextState("COUNT"),
            ).Else(
                self.spends.eq((self.rate != 0) & is_other),
                If(self.is_counted, NextState("SENT")).Else(*begin),
            ),
        )
        fsm.act("LINES",
            If(answer.done,
                If(self.is_send, NextState("COUNT-OTHER")).Else(NextState("COUNT")),
            ),
        )
        fsm.act("COUNT",
            self.takes.eq(1),
            If(job.is_kept, NextValue(self.first, self.first + job.last_line + 1)),
            NextState("COUNT-OTHER"),
        )
        fsm.act("COUNT-OTHER",
            self.reads.eq(1),
            self.address.eq(COUNT_WORD + outcome),
            NextState("ADD"),
        )
        fsm.act("ADD",
            self.address.eq(COUNT_WORD + outcome),
            self.counts.eq(1),
            NextState("IDLE"),
        )

    # Access list ----------------------------------------------------------------------------------

    def add_access(self):
        """Look for the source address in the access list."""
        fsm, answer, store, shown = self.fsm, self.answer, self.store, self.shown
        entry  = Signal(max=ACCESS_ENTRIES)
        part   = Signal(2) # Of an IPv6 address.
        masked = Signal(32, reset_less=True)
        def word(of):
            of = Constant(of, 1)
            return self.address.eq(Mux(self.is_v6, ACCESS6_WORD + Cat(of, part, entry), ACCESS4_WORD + Cat(of, entry)))
        fsm.act("ACCESS",
            self.reads.eq(1),
            word(0),
            answer.look.eq(1),
            answer.place.eq(Mux(self.is_v6, SOURCE6 + part, SOURCE4)),
            NextState("ACCESS-MASK"),
        )
        fsm.act("ACCESS-MASK",
            self.reads.eq(1),
            word(1),
            NextValue(masked, Cat(store.low, store.high) & shown),
            NextState("ACCESS-WORD"),
        )
        fsm.act("ACCESS-WORD",
            NextState("ACCESS"),
            NextValue(part, 0),
            If(masked != shown,
                NextValue(entry, entry + 1),
                If(entry == ACCESS_ENTRIES - 1,
                    NextValue(self.outcome, int(HostCount.NO_ACCESS)),
                    NextState("COUNT"),
                ),
            ).Elif(self.is_v6 & (part != 3),
                NextValue(part, part + 1),
            ).Else(
                NextValue(entry, 0),
                NextState("DECIDE"),
                If(self.is_counted, NextState("SESSION")),
            ),
        )

    # Sessions -------------------------------------------------------------------------------------

    def add_session(self):
        """Count a session's requests, and its answers before each begins."""
        fsm, job, answer, store = self.fsm, self.jobs.source, self.answer, self.store
        found = Signal(8)
        self.comb += found.eq(store.low[:8] & Replicate(job.has_session, 8))
        fsm.act("SESSION",
            answer.look.eq(1),
            answer.place.eq(Mux(self.is_v6, SESSION6, SESSION4)),
            NextState("SESSION-FOUND"),
        )
        fsm.act("SESSION-FOUND",
            NextValue(self.session, found),
            self.reads.eq(1),
            self.address.eq(RECEIVED_WORD + found),
            NextState("RECEIVED"),
        )
        fsm.act("RECEIVED",
            self.address.eq(RECEIVED_WORD + self.session),
            self.counts.eq(1),
            NextState("DECIDE"),
        )
        fsm.act("SENT",
            self.reads.eq(1),
            self.address.eq(SESSION_WORD + self.session),
            NextState("SEQUENCE"),
        )
        fsm.act("SEQUENCE",
            self.address.eq(int(Own.SEQUENCE)),
            self.keeps.eq(1),
            NextState("SENT-ONE"),
        )
        fsm.act("SENT-ONE",
            self.address.eq(SESSION_WORD + self.session),
            self.counts.eq(1),
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
        self._enable = CSRStorage(ENABLE_BITS, name="enable", description="What is answered: bits of HostEnable.")
        self._rate   = WriteOnlyCSR(16, name="rate",
            description="Answers of ping and STAMP in a millisecond, at most; 0: no limit.")
        self.comb += [
            self.enable.eq(self._enable.storage),
            self.rate.eq(self._rate.storage),
        ]
        self._send    = CSRStorage(8, name="send", description="Write: send the first so many octets of the memory (14 to 126).")
        self._sending = CSRStatus(1, name="sending", description="A frame of send waits to be taken.")
        length = self._send.storage
        self.comb += [
            self.send.eq(self._send.re & (length >= LEAST_MAIL_OCTETS) & (length <= MAIL_OCTETS)),
            self.send_octets.eq(length),
            self._sending.status.eq(self.sending),
        ]
