# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Controls SDRAM as main RAM: a word at a time, any octets of it, on chips whose data masks are tied."""

from math import ceil

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream, wishbone

# What the slowest of these chips ask for (M12L16161A, M12L64322A, W9816G6JH, EM638325), seconds; but -7 of M12L64322A and
# EM638325, which no board is known to have, ask for a tRCD and a tRP of 21 ns (docs/design/io-timing.md).
T_RCD, T_RP, T_RAS, T_WR, T_RFC, T_MRD = 20e-9, 20e-9, 49e-9, 30e-9, 80e-9, 40e-9
T_REFRESH  = 64e-3/4096
T_POWER_UP = 200e-6
REFRESHES_AT_START = 8
START_CYCLES       = 3 # From the last command of the start to the first one after it, at least.
# Of the smallest of them, M12L16161A; of the others, which have 4 banks, these are a half, and plenty for most.
BANKS, ROWS, COLUMNS = 2, 2048, 256
PRECHARGE_ALL = 1 << 10 # Of the address.

# Commands, RAS, CAS and WE from bit 0.
ACTIVATE, READ, WRITE, PRECHARGE, REFRESH, LOAD_MODE = 0b001, 0b010, 0b110, 0b101, 0b011, 0b111

def cycles(seconds, clk_freq):
    """Return the whole cycles of at least ``seconds``."""
    return max(1, ceil(seconds*clk_freq - 1e-6))

# Pace ---------------------------------------------------------------------------------------------

class SdramPace(LiteXModule):
    """Counts the steps of a SDRAM's start, and asks for its refreshes: one of either each 15.6 us.

    Attributes
    ----------
    tick : Signal(), out; a step ends.
    step : Signal(), out; from ``first`` to ``last`` each has a command.
    ready : Signal(), out; the start is over.
    is_due : Signal(), out; a refresh. ``is_refreshed`` : Signal(), in; it is given in this cycle.
    slow : Signal(), in; the clock has ``slow_clk_freq``. None where that is None.

    with_early_tick : bool; ``tick`` is of a register, as ever in the same cycle: where its way to the chip's pins is long.
    """
    def __init__(self, clk_freq, slow_clk_freq=None, with_early_tick=False):
        self.first = ceil(T_POWER_UP/T_REFRESH)
        self.last  = self.first + REFRESHES_AT_START + 1

        self.tick         = Signal(reset=with_early_tick) # The timer begins with 0.
        self.step         = Signal(max=self.last + 2)
        self.ready        = Signal()
        self.is_due       = Signal()
        self.is_refreshed = Signal()
        self.slow         = None if slow_clk_freq is None else Signal()

        # # #

        period = int(T_REFRESH*clk_freq)
        timer  = Signal(max=period)
        if with_early_tick:
            self.sync += self.tick.eq(timer == 1)
        else:
            self.comb += self.tick.eq(timer == 0)
        self.sync += [
            self.ready.eq(self.step == self.last + 1),
            timer.eq(timer - 1),
            If(self.is_refreshed, self.is_due.eq(0)),
            If(self.tick,
                timer.eq(period - 1 if self.slow is None else Mux(self.slow, int(T_REFRESH*slow_clk_freq) - 1, period - 1)),
                self.is_due.eq(self.ready),
                If(~self.ready, self.step.eq(self.step + 1)),
            ),
        ]

def start_command(pace, cl, command, address):
    """Return what gives the commands of the start, one a step."""
    return [
        If(pace.tick & (pace.step >= pace.first),
            command.eq(REFRESH),
            If(pace.step == pace.first, command.eq(PRECHARGE)),
            If(pace.step == pace.last, command.eq(LOAD_MODE)),
        ),
        address.eq(Mux(pace.step == pace.last, cl << 4, PRECHARGE_ALL)),
    ]

# Burst Port ---------------------------------------------------------------------------------------

BURST_WORDS = 64 # At most; all of one row.
BURST_LEAST = 16 # So many go before the processor's turn, if it waits.

class BurstPort:
    """Asks a `SdramController` that uses so many banks for several words that follow one another.

    Attributes
    ----------
    request : Endpoint([("address", 20 with two banks), ("rest", 6), ("write", 1)])
        First word, words less one, all within a row (256 words). Taken when the one before it is through.
    write_data, takes : Signal(32), Signal(); to the controller, and from it
        Word to write; must be there from the request on. The next one in the cycle after ``takes``.
    read_data, gives : Signal(32), Signal(); from the controller
        A word that was read; must be taken at once.
    busy : Signal(); from the controller
        A request was taken and is not through: words that were written are in the SDRAM once it has fallen.
    is_ordered : bool
        What another port reads after ``takes`` of a word is that word.
    """
    is_ordered = True

    def __init__(self, banks=BANKS):
        bits = log2_int(banks*ROWS*COLUMNS)
        self.banks      = banks
        self.request    = stream.Endpoint([("address", bits), ("rest", log2_int(BURST_WORDS)), ("write", 1)])
        self.write_data = Signal(32)
        self.takes      = Signal()
        self.read_data  = Signal(32)
        self.gives      = Signal()
        self.busy       = Signal()

# Controller ---------------------------------------------------------------------------------------

class SdramController(LiteXModule):
    """Joins a SDR SDRAM to the bus, one access after the other.

    It starts the SDRAM by itself, keeps it refreshed, and closes each row after its access. A write of less than a word
    reads the word first and writes all of it, because the boards tie the chip's data masks.

    Parameters
    ----------
    phy : LiteDRAM's PHY of the chip, at full rate: ``dfi`` and ``settings``.
    clk_freq : float, Hz, frequency at which the chip's times are kept.
    with_bursts : bool, whether it has ``burst``.
    with_late_answer : bool
        Answer the bus a cycle later, from registers: where the chip's pins are far from what asks.
    banks : int, that are used.
    with_early_tick : bool
        As of `SdramPace`.

    Attributes
    ----------
    bus : wishbone.Interface(32)
        Latency of the answer at 50 MHz, when nothing is under way: a word read 4 cycles, written 1, octets written 4; one
        more ``with_late_answer``. No answer before ``ready``. Bursts, which give way after 16 words, make it 29 at the most,
        with a refresh.
    burst : BurstPort, or None
        Takes turns with ``bus``. n words take n + 4 cycles at 50 MHz, and n + 2 where nobody else is served.
    ready : Signal(), out
        1 once the SDRAM is started, about 24 times 15.6 us after reset.

    Limits: no open rows; BL = 1.
    Source: JEDEC 21-C, section 3.11.5 (SDRAM commands and start); LiteDRAM's DFI, and its delays (litedram/core/crossbar.py).
    """
    def __init__(self, phy, clk_freq, with_bursts=False, with_late_answer=False, banks=BANKS, with_early_tick=False):
        self.bus   = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.burst = BurstPort(banks) if with_bursts else None
        self.ready = Signal()

        # # #

        dfi = phy.dfi.p0
        self.command = Signal(3)
        self.address = Signal.like(dfi.address)
        self.pace    = SdramPace(clk_freq, with_early_tick=with_early_tick)

        self.banks = banks
        self.column, bank, self.row = self.split(bus.adr)
        self.bank = Signal.like(dfi.bank)
        self.comb += [
            self.ready.eq(self.pace.ready),
            dfi.cke.eq(1),
            dfi.cs_n.eq(0),
            Cat(dfi.ras_n, dfi.cas_n, dfi.we_n).eq(~self.command),
            dfi.bank.eq(Mux(self.ready, self.bank, 0)),
            self.bank.eq(bank),
            dfi.address.eq(self.address),
            dfi.wrdata_en.eq(self.command == WRITE),
            dfi.rddata_en.eq(self.command == READ),
        ]
        self.answers = Signal() # In this cycle, or with_late_answer in the next one.
        answer       = [bus.ack.eq(self.answers), bus.dat_r.eq(dfi.rddata)]
        if with_late_answer:
            self.sync += answer
        else:
            self.comb += answer
        # What isn't written goes back as it was read; of a whole word all is written.
        for n in range(4):
            octet = slice(8*n, 8*n + 8)
            self.comb += dfi.wrdata[octet].eq(Mux(bus.sel[n], bus.dat_w[octet], dfi.rddata[octet]))

        self.fsm = FSM(reset_state="START")
        self.add_start(phy.settings.cl)
        self.add_waits(clk_freq, phy.settings.read_latency)
        if cycles(T_MRD, clk_freq) > START_CYCLES:
            self.fsm.act("START", self.wait(cycles(T_MRD, clk_freq)))
        self.burst_first = Signal() # It goes before the bus, and before nothing.
        self.burst_open  = [] # What opens its row.
        if with_bursts:
            self.add_burst(dfi, phy.settings.read_latency)
        self.add_accesses(phy.settings.read_latency)

    def split(self, address):
        """Return column, bank and row of the address of a word."""
        bits = [log2_int(n) for n in (COLUMNS, self.banks, ROWS)]
        return [address[sum(bits[:n]):sum(bits[:n + 1])] for n in range(3)]

    def add_start(self, cl):
        """Give the commands of the start, one a step."""
        self.fsm.act("START",
            *start_command(self.pace, cl, self.command, self.address),
            If(self.ready, NextState("IDLE")),
        )

    def add_waits(self, clk_freq, latency):
        """Know how many cycles it is from one command to the next; a row that is read is open longer than tRAS."""
        self.column_at  = cycles(T_RCD, clk_freq)
        self.close_at   = max(cycles(T_WR, clk_freq), cycles(T_RAS, clk_freq) - self.column_at)
        self.open_at    = cycles(T_RP, clk_freq)
        self.refresh_at = cycles(T_RFC, clk_freq)
        longest   = max(self.column_at, self.close_at, self.open_at, self.refresh_at, latency)
        self.left = Signal(max=longest + 1) # Cycles to wait, less one.

    def wait(self, n):
        """Return what waits ``n`` cycles before the next command."""
        return NextValue(self.left, n - 1)

    def add_accesses(self, latency):
        """Give the commands of an access, or of a refresh, one after the other."""
        bus, pace, fsm, wait, left = self.bus, self.pace, self.fsm, self.wait, self.left
        column_at, close_at, open_at, refresh_at = self.column_at, self.close_at, self.open_at, self.refresh_at

        fsm.act("IDLE",
            self.address.eq(self.row),
            If(left != 0,
                NextValue(left, left - 1),
            ).Elif(pace.is_due,
                self.command.eq(REFRESH),
                pace.is_refreshed.eq(1),
                wait(refresh_at),
            ).Elif(self.burst_first,
                *self.burst_open,
            ).Elif(bus.cyc & bus.stb,
                self.command.eq(ACTIVATE),
                wait(column_at),
                NextState("COLUMN"),
            )
        )
        fsm.act("COLUMN",
            self.address.eq(self.column),
            If(left != 0,
                NextValue(left, left - 1),
            ).Elif(bus.we & (bus.sel == 0b1111),
                self.command.eq(WRITE),
                self.answers.eq(1),
                wait(close_at),
                NextState("CLOSE"),
            ).Else(
                self.command.eq(READ),
                wait(latency),
                NextState("DATA"),
            )
        )
        fsm.act("DATA",
            self.address.eq(self.column),
            NextValue(left, left - 1),
            If(left == 0,
                self.answers.eq(1),
                wait(1),
                NextState("CLOSE"),
                If(bus.we, self.command.eq(WRITE), wait(close_at)),
            )
        )
        fsm.act("CLOSE",
            self.address.eq(PRECHARGE_ALL),
            NextValue(left, left - 1),
            If(left == 0,
                self.command.eq(PRECHARGE),
                wait(open_at),
                NextState("IDLE"),
            )
        )

    def add_burst(self, dfi, latency):
        """Give the commands of a burst: a column each cycle, until it is through or, after a while, someone else waits."""
        bus, burst, fsm = self.bus, self.burst, self.fsm
        request  = burst.request
        active   = burst.busy
        is_write = Signal(reset_less=True)
        column, bank, row = [Signal.like(part, reset_less=True) for part in self.split(request.address)]
        rest     = Signal.like(request.rest, reset_less=True)
        run      = Signal(max=BURST_LEAST + 1) # Words since the row was opened.
        is_turn  = Signal() # The bus was served last.
        arrives  = Signal(latency)
        reads    = Signal()
        self.comb += [
            request.ready.eq(~active),
            burst.read_data.eq(dfi.rddata),
            burst.gives.eq(arrives[-1]),
            self.burst_first.eq(active & (is_turn | ~(bus.cyc & bus.stb))),
            If(fsm.ongoing("BURST") | (fsm.ongoing("IDLE") & self.burst_first), self.bank.eq(bank)),
            If(fsm.ongoing("BURST"), dfi.wrdata.eq(burst.write_data)),
        ]
        self.sync += [
            arrives.eq(Cat(reads, arrives)),
            If(request.valid & request.ready,
                active.eq(1),
                is_write.eq(request.write),
                rest.eq(request.rest),
                *[part.eq(value) for part, value in zip((column, bank, row), self.split(request.address))],
            ),
            If(self.answers, is_turn.eq(1)),
            If(fsm.ongoing("BURST"), is_turn.eq(0)),
        ]
        self.burst_open += [
            self.address.eq(row),
            self.command.eq(ACTIVATE),
            self.wait(self.column_at),
            NextValue(run, 0),
            NextState("BURST"),
        ]
        fsm.act("BURST",
            self.address.eq(column),
            If(self.left != 0,
                NextValue(self.left, self.left - 1),
            ).Else(
                self.command.eq(Mux(is_write, WRITE, READ)),
                burst.takes.eq(is_write),
                reads.eq(~is_write),
                NextValue(column, column + 1),
                NextValue(rest, rest - 1),
                If(run != BURST_LEAST, NextValue(run, run + 1)),
                If(rest == 0, NextValue(active, 0)),
                If((rest == 0) | ((run >= BURST_LEAST - 1) & ((bus.cyc & bus.stb) | self.pace.is_due)),
                    self.wait(self.close_at),
                    NextState("CLOSE"),
                ),
            )
        )
