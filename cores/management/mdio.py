# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Talks to the PHYs over MDIO: sets them up after reset, then reads and writes what the host asks for."""

from math import ceil

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from litex.soc.interconnect.csr import *

from liteprobe.cores.bus import WriteOnlyCSR
from liteprobe.cores.formats import MDIO_ADDRESSES

PREAMBLE  = 32
FRAME     = 32
TURN      = 18 # Bits that are left where a read turns the line around.
MDC_FREQ  = 2.5e6
RESET_S   = 20e-3  # Of a PHY; RTL8211F asks for 10 ms.
START_S   = 160e-3 # From there to the first access; RTL8211F asks for 72 ms.

class Mdio(LiteXModule):
    """Reads and writes registers of PHYs, a table of writes to each address first of all.

    Parameters
    ----------
    pads : ``mdc`` and ``mdio``
    clk_freq : float, Hz
    start : list of (register, value)
        Written after reset to each PHY of MDIO_ADDRESSES.
    ports : int
    reset_s, start_s : float, seconds
        How long ``phy_reset`` lasts, and when the first register is written.

    Attributes
    ----------
    phy_reset : Signal(), out
        For the PHYs' reset pins.
    status : Array of Signal(5), in, asynchronous
        In-band status of each port, as of ``formats.PhyStatus``.
    delay : Signal(3*ports), out
        Of each port: load its receive delay, move it by a tap, down instead of up.

    Source: IEEE 802.3, 22.2.4.5 (frames of MDIO).
    """
    def __init__(self, pads, clk_freq, start, ports, reset_s=RESET_S, start_s=START_S):
        self.phy_reset = Signal(reset=1)
        self.status    = [Signal(5, name=f"status{port}") for port in range(ports)]
        self.delay     = Signal(3*ports)
        self._command  = WriteOnlyCSR(27, name="command", description="A write begins an access: see formats.mdio_command.")
        self._answer   = CSRStatus(18, name="answer", description="Data of the last read; bit 16: no PHY answered; 17: busy.")
        self._status   = CSRStatus(8*ports, name="status", description="In-band status, a byte a port: see formats.PhyStatus.")
        self._delay    = CSRStorage(3*ports, name="delay", description="Receive delay, 3 bits a port: load, move, down.")

        # # #

        self.shift   = Signal(FRAME, reset_less=True)
        self.left    = Signal(max=PREAMBLE + FRAME + 1)
        self.is_read = Signal()
        self.mdc     = Signal()
        self.sample  = Signal()
        self.begin   = Signal()
        self.is_busy = Signal(reset=1)
        self.frame   = Signal(FRAME) # As it begins.
        self.comb   += [
            self._answer.status.eq(Cat(self.shift[:17], self.is_busy)),
            self.delay.eq(self._delay.storage),
        ]
        for port, status in enumerate(self.status):
            self.specials += MultiReg(status, self._status.status[8*port:8*port + 5])
        self.add_bits(pads, clk_freq)
        self.add_start(clk_freq, start, reset_s, start_s)

    def add_bits(self, pads, clk_freq):
        """Send a frame bit by bit, and take the bits of a PHY."""
        half    = ceil(clk_freq/MDC_FREQ/2)
        divider = Signal(max=half)
        is_half = Signal()
        mdio    = TSTriple()
        self.specials += mdio.get_tristate(pads.mdio)
        self.comb += [
            is_half.eq(divider == half - 1),
            pads.mdc.eq(self.mdc),
            mdio.o.eq(self.shift[-1] | (self.left > FRAME)),
            mdio.oe.eq((self.left != 0) & ~(self.is_read & (self.left <= TURN))),
        ]
        self.sync += [
            If(is_half, divider.eq(0)).Else(divider.eq(divider + 1)),
            If(is_half & (self.left != 0),
                self.mdc.eq(~self.mdc),
                If(self.mdc,
                    self.left.eq(self.left - 1),
                    If(self.left <= FRAME, self.shift.eq(Cat(self.sample, self.shift))),
                ).Else(
                    self.sample.eq(mdio.i),
                )
            ),
            If(self.begin,
                self.shift.eq(self.frame),
                self.is_read.eq(self.frame[29]), # 10 is a read.
                self.left.eq(PREAMBLE + FRAME),
            )
        ]

    def add_start(self, clk_freq, start, reset_s, start_s):
        """Write the table to each address, then do what the host asks for."""
        command = self._command.storage
        first   = Signal(max=ceil(start_s*clk_freq) + 1)
        number  = Signal(max=max(len(start), 2))
        address = Signal(max=MDIO_ADDRESSES)
        entry   = Signal(21) # Data and register.
        word    = Signal(27)
        code    = Signal(2)
        self.fsm = fsm = FSM(reset_state="RESET")
        self.comb += [
            Case(number, {n: entry.eq(register << 16 | value) for n, (register, value) in enumerate(start)}),
            word.eq(Mux(fsm.ongoing("HOST"), command, Cat(entry, address, Constant(0, 2), Constant(1, 1)))),
            code.eq(Mux(word[26], 0b01, 0b10)),
            self.frame.eq(Cat(word[:16], Constant(0b10, 2), word[16:26], code, Constant(0b01, 2))),
        ]
        self.sync += [
            first.eq(first + 1),
            If(first == ceil(reset_s*clk_freq), self.phy_reset.eq(0)),
        ]
        fsm.act("RESET", If(first == ceil(start_s*clk_freq), NextState("WRITE")))
        fsm.act("WRITE",
            self.begin.eq(self.left == 0),
            If(self.left == 0,
                NextValue(number, number + 1),
                If(number == len(start) - 1,
                    NextValue(number, 0),
                    NextValue(address, address + 1),
                    If(address == MDIO_ADDRESSES - 1, NextState("LAST")),
                ),
            )
        )
        fsm.act("LAST", If(self.left == 0, NextState("HOST")))
        fsm.act("HOST",
            self.is_busy.eq(self._command.re | (self.left != 0)),
            self.begin.eq(self._command.re & (self.left == 0)),
        )
