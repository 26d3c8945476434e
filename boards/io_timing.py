# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Computes margins of the buses between an ECP5 and the chips beside it, by data sheets; what boards set by them stands here, too.

All times are in nanoseconds. ``worst`` takes every limit of the data sheets at once. ``typical`` takes typical figures where a
data sheet gives them, else its limits, and leaves jitter, skew, phase error and duty cycle out. See docs/design/io-timing.md.
"""

from dataclasses import dataclass
from typing import NamedTuple

# What the boards set ------------------------------------------------------------------------------

DELAY_TAP = 0.025 # Of DELAYG, nominal: FPGA-TN-02035-1.2, 3.11 ("~25 ps").
# Of received data: the taps of DEL_MODE=SCLK_CENTERED, for a clock that the sender has put into the middle of its data. The FPGA's
# own figures hold for these and for no other. nextpnr, ecp5/pack.cc, lookup_delay().
CENTRED_TAPS = 39
RX_DELAY     = CENTRED_TAPS*DELAY_TAP
# Of the SDRAM's clock behind sys, degrees: between its reads, which want it early, and its writes, which want it late.
SDRAM_CLOCK_PHASE = 90
# Of a SDRAM with a clock of its own: outputs change with the falling edge, and the chip's clock is between its reads of the next
# cycle but one, which want it early, and those of the cycle before, which want it late.
MEMORY_CLK_FREQ    = 80e6
MEMORY_CLOCK_PHASE = 9
# Of a SDRAM whose eye is found at start, and of one for which none is found: whole shares of a VCO of 750 MHz.
EYE_CLK_FREQS   = (125e6, 750e6/9)
EYE_STEP        = 1e3/750/8 # Of the phase of the chip's clock, ns.
EYE_SAMPLE_STEP = 4*DELAY_TAP # Of the time at which its words are sampled.
# Phases of the chip's clock, in the order in which they are tried: 1 ns apart, what the delays of its samples don't reach.
EYE_CLOCK_STEPS = (-1, 5, 10, -7)
EYE_CLOCK_PHASE = 360 + 360*EYE_CLOCK_STEPS[0]*EYE_STEP/8 # Degrees, at 125 MHz.

# Assumed: no document bounds them.
TAP_SPREAD = 0.3 # Of a tap, either way. Counts only for taps that are more or less than CENTRED_TAPS.
FABRIC     = 15.0 # From a register of the fabric to a pad, or back: the flash has no I/O registers, nor has the clock's pin.

# Parts --------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Fpga:
    """I/O registers of an ECP5 that are clocked by its PLL, on primary clocks.

    Source: FPGA-DS-02012-1.9, table 3.22 (tCOPLL, tSUPLL, tHPLL, tSKEW_PRI). The data sheet gives no minimum of tCOPLL: 0 is taken.
    """
    clock_to_output : float
    setup           : float
    hold            : float
    clock_skew      : float

GRADE_6 = Fpga(clock_to_output=4.1, setup=0.85, hold=0.98, clock_skew=0.505)
GRADE_8 = Fpga(clock_to_output=3.5, setup=0.70, hold=0.80, clock_skew=0.420)

# FPGA-DS-02012-1.9, table 3.22, the same for all grades: tSU and tHD_GDDRX1_centered; tDIB and tDIA_GDDRX1_aligned.
DDR_SETUP = DDR_HOLD = 0.52
DDR_OUTPUT_SKEW = 0.3
# FPGA-DS-02012-1.9, table 3.23: tPH and tDT, shares of a period; period jitter, peak to peak: ns at 100 MHz and above, share of a
# period below.
PHASE_ERROR = 0.05
DUTY_ERROR  = 0.05
JITTER_FAST = 0.1
JITTER_SLOW = 0.025

@dataclass(frozen=True)
class Phy:
    """RGMII of a PHY at 1 Gb/s with its delays on: what it gives around an edge of RXC, and asks for around one of TXC.

    ``tx_setup`` and ``tx_hold`` count from the edge at the pin, so a delay within the PHY makes the former negative.
    """
    name             : str
    rx_setup         : float
    rx_setup_typical : float
    rx_hold          : float
    rx_hold_typical  : float
    tx_setup         : float
    tx_hold          : float

# B50612D-DS100-R: RX skew on by default, table 51 (18h, shadow 111, bit 8), p. 106; GTXCLK delay, too, p. 119 (1Ch, shadow 00011,
# bit 9). Tables 92 (T_SUAVDLY, T_HAVDLY; no typical hold: 4 ns less the setup) and 90 (T_SETUPDLY, T_HOLDDLY).
B50612D = Phy("B50612D", 1.2, 2.0, 1.2, 2.0, tx_setup=-0.9, tx_hold=2.9)
# RTL8211F(I)/RTL8211FD(I) rev. 1.1: RXDLY is pulled up within the chip, TXDLY down, p. 9, so the board has to strap TXDLY, which
# it is taken to do. Table 58: TsetupT, TholdT; TsetupR and TholdR count from the clock that the PHY has delayed by 2 ns.
RTL8211F = Phy("RTL8211F", 1.2, 2.0, 1.2, 2.0, tx_setup=1.0 - 2.0, tx_hold=1.0 + 2.0)
# Its data sheet was not at hand: RGMII 2.0, table 2, of a PHY with both delays on (RGMII-ID), which litex-boards counts on.
PHY_88E1512 = Phy("88E1512", 1.2, 2.0, 1.2, 2.0, tx_setup=1.0 - 2.0, tx_hold=1.0 + 2.0)

@dataclass(frozen=True)
class Sdram:
    """A SDRAM at CL 2: access time, output hold, setup and hold of its inputs; tRCD and tRP; banks of 2 MiB."""
    name   : str
    access : float
    output : float
    setup  : float
    hold   : float
    rcd    : float
    rp     : float
    banks  : int = 4

# M12L64322A (2S) rev. 1.0, p. 6 and 7: tSAC (CL 2), tOH, tSS, tSH, tRCD, tRP.
M12L64322A_5 = Sdram("M12L64322A-5", 6.0, 2.0, 1.5, 1.0, 15.0, 15.0)
M12L64322A_6 = Sdram("M12L64322A-6", 7.0, 2.0, 2.0, 1.0, 18.0, 18.0)
M12L64322A_7 = Sdram("M12L64322A-7", 8.0, 2.0, 2.0, 1.5, 21.0, 21.0)
# M12L16161A (2R) rev. 1.0, p. 5 and 6: the same.
M12L16161A_5 = Sdram("M12L16161A-5", 5.0, 2.0, 2.0, 1.0, 15.0, 15.0, 2)
M12L16161A_7 = Sdram("M12L16161A-7", 6.0, 2.0, 2.0, 1.0, 20.0, 20.0, 2)
# W9816G6JH rev. A02, 9.5, p. 15: tAC (CL 2), tOH, the longest of tDS, tAS, tCKS and tCMS, and of tDH, tAH, tCKH and tCMH.
W9816G6JH_6 = Sdram("W9816G6JH-6", 5.5, 2.0, 1.5, 0.7, 18.0, 18.0, 2)
W9816G6JH_7 = Sdram("W9816G6JH-7", 5.5, 2.0, 1.5, 1.0, 20.0, 18.0, 2)
# EM638325 rev. 1.7, p. 18: tAC2, tOH, tIS, tIH. Grades 5 and 5.5 have no CL 2.
EM638325_6 = Sdram("EM638325-6", 6.0, 2.0, 1.5, 1.0, 18.0, 18.0)
EM638325_7 = Sdram("EM638325-7", 6.0, 2.5, 1.75, 1.0, 21.0, 21.0)

@dataclass(frozen=True)
class Flash:
    """A SPI flash: clock low to output valid, output hold, setup and hold of its input, setup of its select."""
    name   : str
    valid  : float
    output : float
    setup  : float
    hold   : float
    select : float

W25Q32JV = Flash("W25Q32JV", 6.0, 1.5, 2.0, 3.0, 5.0) # Rev. C, 9.6, p. 62.
GD25Q16C = Flash("GD25Q16C", 8.0, 0.7, 2.0, 2.0, 5.0) # Rev. 3.0, AC characteristics: the slowest of its ranges of temperature.
# W25Q64JV (i9) and the Versa's N25Q128A were not at hand: the worst of the others.
FLASH_NOT_AT_HAND = Flash("(data sheet not at hand)", 8.0, 0.7, 2.0, 3.0, 5.0)

@dataclass(frozen=True)
class Parts:
    """Names the chips of a board, with each SDRAM that is known to be fitted to it."""
    fpga   : Fpga
    phy    : Phy
    flash  : Flash
    sdrams : tuple[Sdram, ...] = ()

# Margins ------------------------------------------------------------------------------------------

class Margin(NamedTuple):
    """Holds what is left of a time of a bus (ns); below 0 it is violated."""
    bus        : str
    what       : str
    worst_ns   : float
    typical_ns : float

def taps_of(delay):
    """Return the DELAYG taps for ``delay``; ValueError above 3.175 ns."""
    taps = round(delay/DELAY_TAP)
    if not 0 <= taps < 128:
        raise ValueError(f"a delay of {delay} ns is not in reach of DELAYG: use 0 to 3.175 ns")
    return taps

def rgmii_receive(phy, delay, tap_spread=TAP_SPREAD):
    """Return the margins of received data that the FPGA delays by ``delay``; what is beyond CENTRED_TAPS moves setup to hold."""
    later  = (taps_of(delay) - CENTRED_TAPS)*DELAY_TAP
    spread = abs(later)*tap_spread
    return [
        Margin("RGMII receive", "setup", phy.rx_setup - DDR_SETUP - later - spread, phy.rx_setup_typical - DDR_SETUP - later),
        Margin("RGMII receive", "hold",  phy.rx_hold - DDR_HOLD + later - spread,   phy.rx_hold_typical - DDR_HOLD + later),
    ]

def rgmii_transmit(phy, period=8.0):
    """Return the margins of sent data whose edges are those of the clock: the PHY delays it."""
    shortest = period*(0.5 - DUTY_ERROR) - JITTER_FAST/2
    return [
        Margin("RGMII transmit", "setup", -DDR_OUTPUT_SKEW - phy.tx_setup,           -phy.tx_setup),
        Margin("RGMII transmit", "hold",  shortest - DDR_OUTPUT_SKEW - phy.tx_hold,  period/2 - phy.tx_hold),
    ]

def sdram(fpga, chip, period, phase):
    """Return the margins of a SDRAM whose clock is ``phase`` degrees behind that of the FPGA's I/O registers.

    The FPGA takes a read word two periods after its command left (GENSDRPHY, CL 2): the chip gives it out one period after it
    took the command.
    """
    delay = period*phase/360
    error = period*(PHASE_ERROR + JITTER_SLOW/2)
    skew  = fpga.clock_skew + DDR_OUTPUT_SKEW
    bus   = f"SDRAM {chip.name}"
    nominal = {
        "write setup": delay - chip.setup,
        "write hold":  period - delay - chip.hold,
        "read setup":  period - delay - fpga.clock_to_output - chip.access - fpga.setup,
        "read hold":   delay + chip.output - fpga.hold,
    }
    lost = {"write setup": error + skew, "write hold": error + skew}
    return [Margin(bus, what, left - lost.get(what, error), left) for what, left in nominal.items()]

def late_sdram(fpga, chip, period, phase):
    """Return the margins of a SDRAM as of `sdram`, but what goes to the chip leaves half a period later, with the falling edge.

    The chip's clock rises between the middle of this period and that of the next: ``phase`` degrees behind the FPGA's next edge.
    The FPGA takes a read word three periods after that of the command.
    """
    delay = period*(1 + phase/360)
    error = period*(PHASE_ERROR + JITTER_SLOW/2)
    skew  = fpga.clock_skew + DDR_OUTPUT_SKEW + period*DUTY_ERROR
    bus   = f"SDRAM {chip.name} at {1e3/period:g} MHz"
    nominal = {
        "write setup": delay - period/2 - chip.setup,
        "write hold":  period*3/2 - delay - chip.hold,
        "read setup":  2*period - delay - fpga.clock_to_output - chip.access - fpga.setup,
        "read hold":   delay - period + chip.output - fpga.hold,
    }
    lost = {"write setup": error + skew, "write hold": error + skew}
    return [Margin(bus, what, left - lost.get(what, error), left) for what, left in nominal.items()]

def eye_sdram(fpga, chip, period, slow_period):
    """Return the margins of a SDRAM whose eye is found: writes, half of the eye less a step, and all of the slow clock.

    What goes to the chip leaves half a period before the chip's clock, which is that of the FPGA. CL is 3, whose time of access is
    at most that of CL 2, which is taken. Writes have the worst of the phases that the chip's clock may get.
    """
    lost  = fpga.clock_skew + DDR_OUTPUT_SKEW + period*DUTY_ERROR + JITTER_FAST/2
    bus   = f"SDRAM {chip.name} at {1e3/period:g} MHz"
    eye   = (period + chip.output - chip.access - fpga.setup - fpga.hold)/2
    setup = period/2 - chip.setup + min(EYE_CLOCK_STEPS)*EYE_STEP
    hold  = period/2 - chip.hold - max(EYE_CLOCK_STEPS)*EYE_STEP
    return [
        Margin(bus, "write setup", setup - lost, setup),
        Margin(bus, "write hold",  hold - lost,  hold),
        Margin(bus, "read eye",    eye - EYE_SAMPLE_STEP - JITTER_FAST/2, eye),
        *late_sdram(fpga, chip, slow_period, 0),
    ]

def flash(fpga, chip, clock):
    """Return the margins of the flash: a bit takes four periods of ``clock``, two of them low (soc/boot.py)."""
    bus = f"flash {chip.name}"
    nominal = {
        "write setup":  2*clock - chip.setup,
        "write hold":   2*clock - chip.hold,
        "select setup": 2*clock - chip.select,
        "read setup":   4*clock - chip.valid,
        "read hold":    chip.output,
    }
    lost = {"read setup": 2*FABRIC, "read hold": fpga.clock_skew} # Out and back; the least hold is that of paths without delay.
    return [Margin(bus, what, left - lost.get(what, FABRIC), left) for what, left in nominal.items()]

def margins(parts, sys_clk_freq, rx_delay=RX_DELAY, sdram_phase=SDRAM_CLOCK_PHASE, memory_clk_freq=None, eye_clk_freqs=None):
    """Return the margins of all buses of a board with ``sys`` at so many hertz, and its SDRAM too, or at other frequencies."""
    period = 1e9/sys_clk_freq
    found  = [*rgmii_receive(parts.phy, rx_delay), *rgmii_transmit(parts.phy), *flash(parts.fpga, parts.flash, period)]
    for chip in parts.sdrams:
        if eye_clk_freqs is not None:
            found += eye_sdram(parts.fpga, chip, *[1e9/freq for freq in eye_clk_freqs])
        elif memory_clk_freq is None:
            found += sdram(parts.fpga, chip, period, sdram_phase)
        else:
            found += late_sdram(parts.fpga, chip, 1e9/memory_clk_freq, sdram_phase)
    return [Margin(bus, what, round(worst, 3), round(typical, 3)) for bus, what, worst, typical in found]
