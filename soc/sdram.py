# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""SDRAM as main RAM: a word at a time, any octets of it, on chips whose data masks are tied."""

from math import ceil

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

# What the slowest of these chips ask for (-7 of M12L16161A, M12L64322A, EM638325), seconds.
T_RCD, T_RP, T_RAS, T_WR, T_RFC = 20e-9, 20e-9, 49e-9, 30e-9, 80e-9
T_REFRESH  = 64e-3/4096
T_POWER_UP = 200e-6
REFRESHES_AT_START = 8
# Of the smallest of them, M12L16161A; of the others, which have 4 banks, these are a half: 4 MiB are plenty.
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
    """
    def __init__(self, clk_freq):
        self.first = ceil(T_POWER_UP/T_REFRESH)
        self.last  = self.first + REFRESHES_AT_START + 1

        self.tick         = Signal()
        self.step         = Signal(max=self.last + 2)
        self.ready        = Signal()
        self.is_due       = Signal()
        self.is_refreshed = Signal()

        # # #

        period = int(T_REFRESH*clk_freq)
        timer  = Signal(max=period)
        self.comb += self.tick.eq(timer == 0)
        self.sync += [
            self.ready.eq(self.step == self.last + 1),
            timer.eq(timer - 1),
            If(self.is_refreshed, self.is_due.eq(0)),
            If(self.tick,
                timer.eq(period - 1),
                self.is_due.eq(self.ready),
                If(~self.ready, self.step.eq(self.step + 1)),
            ),
        ]

# Controller ---------------------------------------------------------------------------------------

class SdramController(LiteXModule):
    """Joins a SDR SDRAM to the bus, one access after the other.

    It starts the SDRAM by itself, keeps it refreshed, and closes each row after its access. A write of less than a word
    reads the word first and writes all of it, because the boards tie the chip's data masks.

    Parameters
    ----------
    phy : LiteDRAM's PHY of the chip, at full rate: ``dfi`` and ``settings``.
    clk_freq : float, Hz
        Frequency at which the chip's times are kept.

    Attributes
    ----------
    bus : wishbone.Interface(32)
        Latency of the answer at 50 MHz, when nothing is under way: a word read 4 cycles, written 1, octets written 4.
        No answer before ``ready``.
    ready : Signal(), out
        1 once the SDRAM is started, about 24 times 15.6 us after reset.

    Limits: no bursts, no open rows; BL = 1.
    Source: JEDEC 21-C, section 3.11.5 (SDRAM commands and start); LiteDRAM's DFI, and its delays (litedram/core/crossbar.py).
    """
    def __init__(self, phy, clk_freq):
        self.bus   = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.ready = Signal()

        # # #

        dfi = phy.dfi.p0
        self.command = Signal(3)
        self.address = Signal.like(dfi.address)
        self.pace    = SdramPace(clk_freq)

        bits = [log2_int(n) for n in (COLUMNS, BANKS, ROWS)]
        self.column, bank, self.row = (bus.adr[sum(bits[:n]):sum(bits[:n + 1])] for n in range(3))
        self.comb += [
            self.ready.eq(self.pace.ready),
            dfi.cke.eq(1),
            dfi.cs_n.eq(0),
            Cat(dfi.ras_n, dfi.cas_n, dfi.we_n).eq(~self.command),
            dfi.bank.eq(Mux(self.ready, bank, 0)),
            dfi.address.eq(self.address),
            dfi.wrdata_en.eq(self.command == WRITE),
            dfi.rddata_en.eq(self.command == READ),
            bus.dat_r.eq(dfi.rddata),
        ]
        # What isn't written goes back as it was read; of a whole word all is written.
        for n in range(4):
            octet = slice(8*n, 8*n + 8)
            self.comb += dfi.wrdata[octet].eq(Mux(bus.sel[n], bus.dat_w[octet], dfi.rddata[octet]))

        self.fsm = FSM(reset_state="START")
        self.add_start(phy.settings.cl)
        self.add_accesses(clk_freq, phy.settings.read_latency)

    def add_start(self, cl):
        """Give the commands of the start, one a step."""
        pace = self.pace
        self.fsm.act("START",
            If(pace.tick & (pace.step >= pace.first),
                self.command.eq(REFRESH),
                If(pace.step == pace.first, self.command.eq(PRECHARGE)),
                If(pace.step == pace.last, self.command.eq(LOAD_MODE)),
            ),
            self.address.eq(Mux(pace.step == pace.last, cl << 4, PRECHARGE_ALL)),
            If(self.ready, NextState("IDLE")),
        )

    def add_accesses(self, clk_freq, latency):
        """Give the commands of an access, or of a refresh, one after the other."""
        bus, pace, fsm = self.bus, self.pace, self.fsm
        # From one command to the next, cycles; a row that is read is open longer than tRAS, while its word comes.
        column_at  = cycles(T_RCD, clk_freq)
        close_at   = max(cycles(T_WR, clk_freq), cycles(T_RAS, clk_freq) - column_at)
        open_at    = cycles(T_RP, clk_freq)
        refresh_at = cycles(T_RFC, clk_freq)
        left       = Signal(max=max(column_at, close_at, open_at, refresh_at, latency) + 1) # Cycles to wait, less one.
        def wait(n):
            return NextValue(left, n - 1)

        fsm.act("IDLE",
            self.address.eq(self.row),
            If(left != 0,
                NextValue(left, left - 1),
            ).Elif(pace.is_due,
                self.command.eq(REFRESH),
                pace.is_refreshed.eq(1),
                wait(refresh_at),
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
                bus.ack.eq(1),
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
                bus.ack.eq(1),
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
