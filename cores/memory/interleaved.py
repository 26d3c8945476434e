# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Controls SDRAM for several users whose bursts follow each other without a pause: rows of all banks stay open."""

from migen import *
from migen.genlib.roundrobin import SP_CE, RoundRobin

from litex.gen import *

from litex.soc.interconnect import wishbone

from liteprobe.cores.crossing import LevelCrossing, NumberCrossing
from liteprobe.cores.memory.ports import NUMBERS, QUEUE, REQUESTS, MemoryCrossing, QueuedPort
from liteprobe.cores.memory.sdram import (
    ACTIVATE,
    BANKS,
    BURST_WORDS,
    COLUMNS,
    PRECHARGE,
    PRECHARGE_ALL,
    READ,
    REFRESH,
    ROWS,
    T_RAS,
    T_RCD,
    T_RFC,
    T_RP,
    T_WR,
    WRITE,
    BurstPort,
    SdramPace,
    cycles,
    start_command,
)

TURN_WORDS = 4*BURST_WORDS # A port goes on for so many words, where it has them, before the next one's turn.
REQUEST_WORDS = 8 # That a request counts for, besides its words, less one.

# Ports --------------------------------------------------------------------------------------------

class UserPort(BurstPort):
    """Is a port of an `InterleavedController`: a burst port that has ``done`` in the place of ``busy``.

    Attributes
    ----------
    done : Signal(); from the controller
        Pulse: the last column of a request was given. They come in the order of requests.
    writes : bool; it is not only for reading.
    """
    def __init__(self, banks=BANKS, writes=True):
        BurstPort.__init__(self, banks)
        self.writes = writes
        self.done   = Signal()

class CrossedPort(QueuedPort):
    """Is the side in ``sys`` of a `PortCrossing`.

    What another port asks for may be done before it: a word is there for others once its request `is_through`.
    """
    is_ordered = False

# Controller ---------------------------------------------------------------------------------------

class InterleavedController(LiteXModule):
    """Joins a SDR SDRAM to ports and a bus; a row is opened while the burst before it goes on, in another bank.

    Ports take turns, those that write before those that only read: from reading to writing the pins need a pause. Each goes on
    for 256 words where it has them. The bus goes first after each burst of a port. A write of less than a word reads
    the word first and writes all of it, because the boards tie the chip's data masks.

    Parameters
    ----------
    phy : LiteDRAM's PHY of the chip, at full rate: ``dfi`` and ``settings``.
    clk_freq : float, Hz, frequency at which the chip's times are kept.
    banks : int, that are used.
    slow_clk_freq : float, Hz, while ``slow``; None: never.

    Attributes
    ----------
    ports : list of UserPort
        Of `add_port`, until the module is finalized; at least one.
    bus : wishbone.Interface(32)
    started : Signal(), out
        The SDRAM is started; nothing is served before.
    slow : Signal(), in
        The clock has ``slow_clk_freq``: refreshes come after fewer cycles.
    hold : Signal(), in
        Nobody is served but port 0.
    held : Signal(), out
        Nothing is under way; of what port 0 asks for, too.

    Limits: BL = 1. An opening and a closing of a row take a cycle of a burst each.
    Source: JEDEC 21-C, section 3.11.5.
    """
    def __init__(self, phy, clk_freq, banks=BANKS, slow_clk_freq=None):
        self.phy      = phy
        self.clk_freq = clk_freq
        self.banks    = banks
        self.ports    = []
        self.bus      = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.started  = Signal()
        self.slow     = Signal()
        self.hold     = Signal()
        self.held     = Signal()
        self.pace     = SdramPace(clk_freq, slow_clk_freq)

    def add_port(self, writes=True):
        """Return a new port."""
        assert not self.finalized
        self.ports.append(UserPort(self.banks, writes))
        return self.ports[-1]

    def do_finalize(self):
        self.ports.sort(key=lambda port: not port.writes)
        dfi = self.phy.dfi.p0
        self.command = Signal(3)
        self.address = Signal.like(dfi.address)
        self.bank    = Signal.like(dfi.bank)
        self.word    = Signal(32)
        if self.pace.slow is not None:
            self.comb += self.pace.slow.eq(self.slow)
        self.comb += [dfi.cke.eq(1), dfi.cs_n.eq(0), self.started.eq(self.pace.ready)]
        # From registers: the pins are far.
        self.sync += [
            Cat(dfi.ras_n, dfi.cas_n, dfi.we_n).eq(~self.command),
            dfi.address.eq(self.address),
            dfi.bank.eq(self.bank),
            dfi.wrdata.eq(self.word),
            dfi.wrdata_en.eq(self.command == WRITE),
            dfi.rddata_en.eq(self.command == READ),
        ]
        self.names = range(len(self.ports) + 1) # The last one is the bus.
        self.add_times()
        self.add_bus()
        self.add_next()
        self.add_burst()
        self.add_turns()
        self.add_reads(dfi)
        self.add_main()

    def add_times(self):
        """Know the cycles from one command to the next, and count them since the last one of each bank."""
        freq = self.clk_freq
        self.column_at, self.open_at, self.refresh_at = cycles(T_RCD, freq), cycles(T_RP, freq), cycles(T_RFC, freq)
        self.close_at = max(cycles(T_WR, freq), cycles(T_RAS, freq) - self.column_at)
        self.row_at   = cycles(T_RAS, freq)
        bits = bits_for(max(self.row_at, self.close_at))
        self.timers  = Array(Signal(bits, name=f"timer{n}") for n in range(self.banks)) # Cycles until it may be closed.
        self.is_open = Array(Signal(name=f"is_open{n}") for n in range(self.banks))
        self.rows    = Array(Signal(log2_int(ROWS), name=f"row{n}", reset_less=True) for n in range(self.banks))
        self.may_refresh = Signal()
        self.opens, self.gives_column, self.closes_all = Signal(), Signal(), Signal()
        self.next_bank, self.burst_bank = Signal(log2_int(self.banks)), Signal(log2_int(self.banks))
        self.next_row  = Signal(log2_int(ROWS))
        for n, timer in enumerate(self.timers):
            self.sync += [
                If(timer != 0, timer.eq(timer - 1)),
                If(self.opens & (self.next_bank == n),
                    timer.eq(self.row_at - 1),
                    self.rows[n].eq(self.next_row),
                    self.is_open[n].eq(1),
                ),
                If(self.gives_column & (self.burst_bank == n), timer.eq(self.close_at - 1)),
                If(self.closes_all, self.is_open[n].eq(0)),
            ]
        busy = [self.opens, self.gives_column, *[timer != 0 for timer in self.timers]]
        self.sync += self.may_refresh.eq(~Reduce("OR", busy))

    def add_bus(self):
        """Make one or two requests of a word of each access of the bus."""
        bus = self.bus
        self.bus_asks   = Signal()
        self.bus_writes = Signal()
        self.bus_taken  = Signal()
        self.bus_takes  = Signal()
        self.bus_gives  = Signal()
        self.bus_word   = Signal(32)
        read   = Signal(32, reset_less=True)
        for n in range(4):
            octet = slice(8*n, 8*n + 8)
            self.comb += self.bus_word[octet].eq(Mux(bus.sel[n], bus.dat_w[octet], read[octet]))
        self.comb += bus.dat_r.eq(read)
        self.sync += If(self.bus_gives, read.eq(self.phy.dfi.p0.rddata))
        self.bus_fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            If(bus.cyc & bus.stb & self.started,
                If(bus.we & (bus.sel == 0b1111), NextState("WRITE")).Else(NextState("READ")),
            )
        )
        fsm.act("READ",
            self.bus_asks.eq(1),
            If(self.bus_taken, NextState("DATA")),
        )
        fsm.act("DATA",
            If(self.bus_gives,
                If(bus.we, NextState("WRITE")).Else(NextState("ANSWER")),
            )
        )
        fsm.act("WRITE",
            self.bus_asks.eq(1),
            self.bus_writes.eq(1),
            If(self.bus_taken, NextState("TAKEN")),
        )
        fsm.act("TAKEN", If(self.bus_takes, NextState("ANSWER")))
        fsm.act("ANSWER", bus.ack.eq(1), NextState("IDLE"))

    def split(self, address):
        """Return column, bank and row of the address of a word."""
        bits = [log2_int(n) for n in (COLUMNS, self.banks, ROWS)]
        return [address[sum(bits[:n]):sum(bits[:n + 1])] for n in range(3)]

    def add_next(self):
        """Open the row of the burst after the present one."""
        self.take         = Signal() # A request, into these:
        self.next_write   = Signal(reset_less=True)
        self.next_port    = Signal(max=len(self.names), reset_less=True)
        self.next_column  = Signal(log2_int(COLUMNS), reset_less=True)
        self.next_rest    = Signal(log2_int(BURST_WORDS), reset_less=True)
        self.burst_active = Signal()
        self.begins       = Signal() # The burst, with the next cycle.
        left     = Signal(max=max(self.open_at, self.column_at, 2))
        is_same  = Signal(reset_less=True)
        has_row  = Signal(reset_less=True)
        bank     = self.next_bank
        self.next = fsm = FSM(reset_state="EMPTY")
        self.burst_stays = Signal()
        self.steals      = Signal()
        self.comb += [
            self.opens.eq(fsm.ongoing("ACTIVATE")),
            self.begins.eq(fsm.ongoing("READY") & ~self.burst_stays),
            self.steals.eq(fsm.ongoing("PRECHARGE") | fsm.ongoing("ACTIVATE")),
        ]
        fsm.act("EMPTY", If(self.take, NextState("LOOK")))
        fsm.act("LOOK",
            NextValue(is_same, self.rows[bank] == self.next_row),
            NextValue(has_row, self.is_open[bank]),
            NextState("DECIDE"),
        )
        fsm.act("DECIDE",
            NextValue(left, 0),
            If(~has_row, NextState("OPEN")).Elif(is_same, NextState("READY")).Else(NextState("CLOSE")),
        )
        fsm.act("CLOSE",
            # Nobody begins a burst meanwhile, but the one after this.
            If((self.timers[bank] == 0) & ~(self.burst_active & (self.burst_bank == bank)), NextState("PRECHARGE")),
        )
        fsm.act("PRECHARGE", NextValue(left, max(0, self.open_at - 2)), NextState("OPEN"))
        fsm.act("OPEN",
            NextValue(left, left - 1),
            If(left == 0, NextState("ACTIVATE")),
        )
        fsm.act("ACTIVATE", NextValue(left, max(0, self.column_at - 3)), NextState("ROW"))
        fsm.act("ROW",
            NextValue(left, left - 1),
            If(left == 0, NextState("READY")),
        )
        fsm.act("READY", If(self.begins, NextState("EMPTY")))

    def add_burst(self):
        """Give a column each cycle, but in those of a row, and after a pause from reading to writing."""
        ports  = self.ports
        write  = Signal(reset_less=True)
        column = Signal(log2_int(COLUMNS), reset_less=True)
        rest   = Signal(log2_int(BURST_WORDS), reset_less=True)
        self.burst_port  = Signal(max=len(self.names), reset_less=True)
        self.burst_write = write
        self.column = column
        # A word that is read is on the pins CL cycles after its column, and the pins of what is written are driven a cycle before.
        turn  = self.phy.settings.cl + 2
        pause = Signal(max=turn)
        is_last = Signal(reset_less=True)
        self.comb += [
            self.gives_column.eq(self.burst_active & ~self.steals & ~(write & (pause != 0))),
            self.burst_stays.eq(self.burst_active & ~(self.gives_column & is_last)),
        ]
        self.sync += [
            If(pause != 0, pause.eq(pause - 1)),
            If(self.gives_column & ~write, pause.eq(turn - 1)),
            If(self.gives_column,
                column.eq(column + 1),
                rest.eq(rest - 1),
                is_last.eq(rest == 1),
                If(is_last, self.burst_active.eq(0)),
            ),
            If(self.begins,
                self.burst_active.eq(1),
                write.eq(self.next_write),
                column.eq(self.next_column),
                rest.eq(self.next_rest),
                is_last.eq(self.next_rest == 0),
                self.burst_port.eq(self.next_port),
                self.burst_bank.eq(self.next_bank),
            ),
        ]
        words = {n: self.word.eq(port.write_data) for n, port in enumerate(ports)}
        self.comb += Case(self.burst_port, {**words, "default": self.word.eq(self.bus_word)})
        takes = [port.takes for port in ports] + [self.bus_takes]
        self.comb += [one.eq(self.gives_column & write & (self.burst_port == n)) for n, one in enumerate(takes)]
        self.sync += [port.done.eq(self.gives_column & is_last & (self.burst_port == n)) for n, port in enumerate(ports)]

    def add_turns(self):
        """Take the request of one port after another, and of the bus after each."""
        ports = self.ports
        valid = Signal(len(ports))
        asks  = Signal()
        write = Signal()
        rest  = Signal(log2_int(BURST_WORDS))
        run   = Signal(bits_for(TURN_WORDS)) # Words of this turn.
        is_over  = Signal()
        others   = Signal() # Another port asks, or any does: known a cycle late, so that paths are short.
        is_any   = Signal()
        is_free  = Signal()
        by_bus   = Signal()
        by_port  = Signal()
        bus_turn = Signal()
        address  = Signal(len(ports[0].request.address))
        self.stops = Signal()
        self.turns = turns = RoundRobin(len(ports), SP_CE)
        mine = Signal(len(ports))
        self.comb += [
            valid.eq(Cat(port.request.valid & (~self.hold if n else 1) for n, port in enumerate(ports))),
            mine.eq(1 << turns.grant),
            asks.eq((valid & mine) != 0),
            is_over.eq(run[-1]),
            is_free.eq(self.next.ongoing("EMPTY") & ~self.stops),
            by_bus.eq(is_free & self.bus_asks & ~self.hold & (bus_turn | ~is_any)),
            by_port.eq(is_free & ~by_bus & asks & ~(is_over & others)),
            turns.request.eq(valid),
            turns.ce.eq(is_free & ~by_bus & ~by_port & others),
            self.take.eq(by_bus | by_port),
            self.bus_taken.eq(by_bus),
            Case(turns.grant, {n: [
                address.eq(port.request.address),
                rest.eq(port.request.rest),
                write.eq(port.request.write),
                port.request.ready.eq(by_port),
            ] for n, port in enumerate(ports)}),
        ]
        self.sync += [
            others.eq((valid & ~mine) != 0),
            is_any.eq(valid != 0),
            If(by_port, bus_turn.eq(1), run.eq(Mux(is_over, 0, run + rest + REQUEST_WORDS))),
            If(by_bus,  bus_turn.eq(0)),
            If(turns.ce, run.eq(0)),
            If(self.take,
                self.next_write.eq(write),
                self.next_rest.eq(rest),
                self.next_port.eq(turns.grant),
                *[into.eq(part) for into, part in zip((self.next_column, self.next_bank, self.next_row), self.split(address))],
            ),
            If(by_bus,
                self.next_write.eq(self.bus_writes),
                self.next_rest.eq(0),
                self.next_port.eq(len(ports)),
                *[into.eq(part) for into, part in zip((self.next_column, self.next_bank, self.next_row), self.split(self.bus.adr))],
            ),
        ]

    def add_reads(self, dfi):
        """Give each word that was read to who asked."""
        latency = self.phy.settings.read_latency
        valid   = Signal(latency)
        names   = [Signal.like(self.burst_port) for _ in range(latency)]
        gives   = [port.gives for port in self.ports] + [self.bus_gives]
        self.comb += [port.read_data.eq(dfi.rddata) for port in self.ports]
        self.sync += [
            valid.eq(Cat(self.gives_column & ~self.burst_write, valid)),
            *[name.eq(before) for before, name in zip([self.burst_port, *names], names)],
            *[one.eq(valid[-1] & (names[-1] == n)) for n, one in enumerate(gives)],
        ]
        self.comb += self.held.eq(
            self.next.ongoing("EMPTY") & ~self.burst_active & (valid == 0) & ~Reduce("OR", gives))

    def add_main(self):
        """Start the SDRAM, then refresh it when that is due and nothing is under way."""
        pace, next_, cl = self.pace, self.next, self.phy.settings.cl
        left = Signal(max=max(self.open_at, self.refresh_at))
        self.fsm = fsm = FSM(reset_state="START")
        self.comb += [
            self.stops.eq(~fsm.ongoing("RUN") | pace.is_due),
            self.bank.eq(self.burst_bank),
            self.address.eq(self.column),
            If(self.gives_column, self.command.eq(Mux(self.burst_write, WRITE, READ))),
            If(self.steals, self.bank.eq(self.next_bank)),
            If(next_.ongoing("PRECHARGE"), self.command.eq(PRECHARGE), self.address.eq(0)),
            If(self.opens, self.command.eq(ACTIVATE), self.address.eq(self.next_row)),
        ]
        fsm.act("START",
            *start_command(pace, cl, self.command, self.address),
            self.bank.eq(0),
            If(pace.ready, NextState("RUN")),
        )
        fsm.act("RUN", If(pace.is_due, NextState("DRAIN")))
        fsm.act("DRAIN",
            If(next_.ongoing("EMPTY") & ~self.burst_active & self.may_refresh, NextState("CLOSE")),
        )
        fsm.act("CLOSE",
            self.command.eq(PRECHARGE),
            self.address.eq(PRECHARGE_ALL),
            self.closes_all.eq(1),
            NextValue(left, max(1, self.open_at - 1)),
            NextState("CLOSED"),
        )
        fsm.act("CLOSED",
            NextValue(left, left - 1),
            If(left == 1, NextState("REFRESH")),
        )
        fsm.act("REFRESH",
            self.command.eq(REFRESH),
            pace.is_refreshed.eq(1),
            NextValue(left, self.refresh_at - 1),
            NextState("REFRESHED"),
        )
        fsm.act("REFRESHED",
            NextValue(left, left - 1),
            # To the next row it is some cycles more.
            If(left <= 3, NextState("RUN")),
        )

# Crossings ----------------------------------------------------------------------------------------

class PortCrossing(MemoryCrossing):
    """Gives ``sys`` a port of an `InterleavedController` in ``memory``, which other ports don't wait for.

    Parameters
    ----------
    to : UserPort
    writes, reads : bool, whether it is for that.

    Attributes
    ----------
    burst : CrossedPort

    Limits: both domains are reset together.
    """
    def __init__(self, to, writes=True, reads=True):
        self.burst = CrossedPort(to.banks)

        # # #

        assert QUEUE >= REQUESTS*BURST_WORDS
        self.add_requests(to)
        self.add_words(to, writes, reads)
        self.add_numbers(to)

    def add_numbers(self, to):
        """Count requests, and the words that were asked for and are not given."""
        burst = self.burst
        under_way = Signal(NUMBERS)
        asked     = Signal(max=QUEUE + 1)
        more      = Signal.like(asked)
        self.through = through = NumberCrossing(NUMBERS, "memory", "sys")
        self.comb += [
            through.step.eq(to.done),
            burst.through.eq(through.o),
            under_way.eq(burst.last - burst.through),
            burst.busy.eq(under_way != 0),
            self.has_space.eq((under_way < REQUESTS) & (asked <= QUEUE - BURST_WORDS)),
            If(self.begins & ~burst.request.write, more.eq(burst.request.rest + 1)),
        ]
        self.sync += [
            burst.last.eq(burst.last + self.begins),
            asked.eq(asked + more - burst.gives),
        ]

class BusCrossing(MemoryCrossing):
    """Gives ``sys`` the bus of an `InterleavedController` in ``memory``, and whether it is ready.

    Parameters
    ----------
    sdram : InterleavedController
    is_ready : Signal(), ``memory``

    Attributes
    ----------
    bus, ready : as of `MemoryCrossing`.
    """
    def __init__(self, sdram, is_ready):
        self.bus   = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.ready = Signal()

        # # #

        self.sdram_ready = crossing = LevelCrossing("sys")
        self.comb += [crossing.i.eq(is_ready), self.ready.eq(crossing.o)]
        self.add_bus(sdram.bus)
