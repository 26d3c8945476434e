# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives the ECP5 boards what they share: clocks, two RGMII PHYs, a timing header, a flash, and on most an SDRAM."""

from types import SimpleNamespace

from migen import *
from migen.genlib.resetsync import AsyncResetSynchronizer

from litex.gen import *

from litex.build.io import DDRInput, DDROutput, SDRInput, SDROutput, SDRTristate
from litex.soc.cores.clock import ECP5PLL

from litedram.phy import GENSDRPHY

from liteprobe.boards.family import LateDataPin, LatePin, RgmiiBoard, make_fast, replaced_pins
from liteprobe.boards.io_timing import EYE_CLOCK_PHASE, margins
from liteprobe.boards.rgmii import RgmiiPort
from liteprobe.cores.assign import copied
from liteprobe.cores.memory.eye import REACH, STEP_TAPS, SampleQueue

# Clocks -------------------------------------------------------------------------------------------

class LegalPLL(ECP5PLL):
    """Keeps every output of LiteX's PLL, the one to itself too, at most at half the VCO: 400 MHz, the data sheet's limit.

    Source: FPGA-DS-02012-1.9, table 3.23 (fIN, which is that of CLKFB, too, and fOUT).
    """
    clko_div_range = (2, 128 + 1)

class ProbeClocks(LiteXModule):
    """Makes ``sys`` and ``timebase`` from the oscillator.

    Parameters
    ----------
    clock : Signal, the oscillator; ``clock_freq`` its frequency (Hz).
    sys_clk_freq, timebase_freq : float, Hz
        Must be exact ratios of the oscillator: a rounded timebase would be a wrong rate.
    reset : Signal or 0, active high.

    Attributes
    ----------
    rst : Signal(), in
        Resets everything; driven by the SoC controller.

    Outputs of the PLL that are whole ratios of each other rise together: all have phase 0 but ``sdram``.
    """
    def __init__(self, clock, clock_freq, sys_clk_freq, timebase_freq=125e6, reset=0):
        self.rst         = Signal()
        self.cd_sys      = ClockDomain()
        self.cd_timebase = ClockDomain()
        self.sys_clk_freq  = sys_clk_freq
        self.timebase_freq = timebase_freq

        # # #

        self.oscillator = clock, clock_freq
        self.is_reset   = self.rst | reset
        self.pll = pll = self.new_pll()
        pll.create_clkout(self.cd_sys,      sys_clk_freq,  margin=0)
        pll.create_clkout(self.cd_timebase, timebase_freq, margin=0)

    def new_pll(self):
        """Return a PLL of the oscillator."""
        pll = LegalPLL()
        self.comb += pll.reset.eq(self.is_reset)
        pll.register_clkin(*self.oscillator)
        return pll

    def add_double(self):
        """Add the domain ``timebase2x``: twice the frequency of ``timebase``, whose every edge is one of its own. No reset."""
        self.cd_timebase2x = ClockDomain(reset_less=True)
        self.add_global(self.cd_timebase2x, 2*self.timebase_freq)

    def add_sdram(self, phase):
        """Add the domain ``sdram``, of the SDRAM's clock pin alone: ``sys``, ``phase`` degrees later. No reset."""
        self.cd_sdram = ClockDomain(reset_less=True)
        self.add_global(self.cd_sdram, self.sys_clk_freq, phase)

    def add_memory(self, freq, phase):
        """Add the domain ``memory``, and ``sdram``, ``phase`` degrees later, by a PLL of their own: the first has no output left.

        ``memory`` is reset with ``sys``: whatever resets one PLL resets the other.
        """
        self.memory_pll = pll = self.new_pll()
        self.cd_memory  = ClockDomain()
        self.cd_sdram   = ClockDomain(reset_less=True)
        pll.create_clkout(self.cd_memory, freq, margin=0)
        self.add_global(self.cd_sdram, freq, phase, pll)

    def add_memory_eye(self, freq, slow_freq, phase):
        """Add the domains ``memory``, of ``freq`` or while ``slow`` of ``slow_freq``, and ``sdram``, of the chip's clock pin.

        That begins ``phase`` degrees behind ``memory``, and can be moved; while ``slow`` it is ``memory``.
        """
        self.memory_pll    = pll = self.new_pll()
        self.slow          = Signal()
        self.phase_step    = Signal()
        self.phase_advance = Signal()
        self.cd_memory      = ClockDomain()
        self.cd_sdram       = ClockDomain(reset_less=True)
        self.cd_memory_fast = ClockDomain(reset_less=True)
        self.cd_sdram_fast  = ClockDomain(reset_less=True)
        self.cd_memory_slow = ClockDomain(reset_less=True)
        pll.expose_dpa()
        pll.create_clkout(self.cd_memory_fast, freq, margin=0, with_reset=False, uses_dpa=False)
        pll.create_clkout(self.cd_sdram_fast,  freq, phase=phase, margin=0, with_reset=False)
        pll.create_clkout(self.cd_memory_slow, slow_freq, margin=0, with_reset=False, uses_dpa=False)
        self.specials += AsyncResetSynchronizer(self.cd_memory, ~pll.locked)
        for domain in (self.cd_memory, self.cd_sdram):
            self.specials += Instance("DCSC",
                p_DCSMODE = "POS",
                i_CLK0    = ClockSignal(f"{domain.name}_fast"),
                i_CLK1    = ClockSignal("memory_slow"),
                i_SEL0    = ~self.slow,
                i_SEL1    = self.slow,
                i_MODESEL = 0,
                o_DCSOUT  = domain.clk,
            )
        self.comb += [
            pll.phase_sel.eq(0), # CLKOS: FPGA-TN-02200, dynamic phase adjustment.
            pll.phase_dir.eq(self.phase_advance),
            pll.phase_step.eq(self.phase_step),
            pll.phase_load.eq(1),
        ]

    def add_global(self, domain, freq, phase=0, pll=None):
        """Clock ``domain`` by an output of a PLL, the first one by default, on a global net."""
        output = ClockDomain(f"{domain.name}_pll", reset_less=True)
        (pll or self.pll).create_clkout(output, freq, phase=phase, margin=0, with_reset=False)
        # A few registers are too few for nextpnr to take a global net by itself, and another net would be late.
        self.specials += Instance("DCCA", i_CLKI=output.clk, i_CE=1, o_CLKO=domain.clk)

# DDR Samples --------------------------------------------------------------------------------------

class DdrSamples(LiteXModule):
    """Samples a pin each quarter of a tick (2 ns).

    ``timebase2x`` and ``timebase`` come from one PLL and rise together, so which sample belongs to which part of a tick is
    so by construction: there is nothing to align and nothing to reset.

    Parameters
    ----------
    pad : Signal(), asynchronous

    Attributes
    ----------
    samples : Signal(4), out, ``timebase``
        The pin 2, 4, 6 and 8 ns after the tick SAMPLE_TICKS before began; the earliest in bit 0.

    Limits: from ``timebase2x`` to ``timebase`` there are 4 ns, which nextpnr does not check; ``soc/build/bitstream.py`` does.
    Source: Lattice FPGA-TN-02035 (ECP5 High-Speed I/O), GDDRX1_RX.SCLK, which all sides have; simulation library, IDDRX1F:
    the samples of a rising edge and of the falling one after it come out together, at the next rising edge.
    """
    def __init__(self, pad):
        self.samples = Signal(4)

        # # #

        pair   = Signal(2) # Of the rising edge before the last one, and the falling one after it.
        before = Signal(2, reset_less=True)
        word   = Signal(4, reset_less=True)
        late   = Signal(reset_less=True)
        self.add_input(pad, pair)
        self.sync.timebase2x += before.eq(pair)
        # What is taken as tick t + 2 begins was sampled 4, 6, 8 and 10 ns after tick t began.
        self.sync.timebase += [
            word.eq(Cat(before, pair)),
            late.eq(word[3]),
        ]
        self.comb += self.samples.eq(Cat(late, word[:3]))

    def add_input(self, pad, pair):
        """Add the register of the pin, whose samples of a rising edge and of the falling one behind it come together."""
        self.specials += DDRInput(clk=ClockSignal("timebase2x"), i=pad, o1=pair[0], o2=pair[1])

class RegisteredPin(LiteXModule):
    """Drives and reads a data pin with output, enable and input in registers of the I/O.

    LiteX keeps the enable in a register of the fabric; its way to the pins has no bound, so written data could be late.
    """
    def __init__(self, pin):
        output   = Signal()
        disabled = Signal()
        input    = Signal()
        self.specials += [
            SDROutput(i=pin.o,   o=output,   clk=pin.clk),
            SDROutput(i=~pin.oe, o=disabled, clk=pin.clk),
            SDRInput(i=input,    o=pin.i,    clk=pin.clk),
            Instance("TRELLIS_IO", p_DIR="BIDIR", i_B=pin.io, i_I=output, i_T=disabled, o_O=input),
        ]

class SampledPin(LiteXModule):
    """Drives a data pin as `LateDataPin` does, and samples it with both edges, behind a delay that can be moved.

    ``rising``, ``falling``, ``word`` : Signal(); what both edges have, and what the controller has of it.
    ``walker`` : SampleWalker, of the delay.

    One clock serves all registers of a pin: so it is its data that move.
    """
    def __init__(self, pin, walker, rising, falling, word):
        before   = Signal()
        enabled  = Signal()
        output   = Signal()
        disabled = Signal()
        input    = Signal()
        delayed  = Signal()
        self.sync += [before.eq(pin.o), enabled.eq(pin.oe)]
        self.comb += pin.i.eq(word)
        self.specials += [
            DDROutput(i1=before, i2=pin.o, o=output, clk=pin.clk),
            SDROutput(i=~(pin.oe | enabled), o=disabled, clk=pin.clk),
            Instance("DELAYF",
                p_DEL_MODE  = "USER_DEFINED",
                p_DEL_VALUE = STEP_TAPS*(REACH - 1),
                i_A         = input,
                o_Z         = delayed,
                i_LOADN     = walker.load_n,
                i_MOVE      = walker.move,
                i_DIRECTION = walker.direction,
                o_CFLAG     = Signal(),
            ),
            DDRInput(i=delayed, o1=rising, o2=falling, clk=pin.clk),
            Instance("TRELLIS_IO", p_DIR="BIDIR", i_B=pin.io, i_I=output, i_T=disabled, o_O=input),
        ]

def sdram_phy(platform, clk_freq, is_late=False):
    """Return LiteDRAM's PHY of the SDRAM of ``platform``.

    The chip's clock is that of the domain ``sdram``, which is behind ``sys`` (io_timing.py says how far, and why). ``is_late``:
    what goes to the chip changes with the falling edge, and words that are read come two cycles later, for a faster clock.
    """
    make_fast(platform, "sdram_clock", 0)
    phy = GENSDRPHY(platform.request("sdram"), clk_freq, cl=2)
    if is_late:
        phy.submodules += replaced_pins(phy, SDROutput, LatePin)
        phy.submodules += replaced_pins(phy, SDRTristate, LateDataPin)
        phy.settings.read_latency += 2
    else:
        phy.submodules += replaced_pins(phy, SDRTristate, RegisteredPin)
    phy.specials += DDROutput(i1=1, i2=0, o=platform.request("sdram_clock"), clk=ClockSignal("sdram"))
    return phy

EYE_CL = 3 # At more than 100 MHz these chips have no other.
# From a command to its word: out 2, CL, in 2, the queue 3, and 4 of its 16 ages, since the way there and back takes 1 to 2.
EYE_LATENCY = EYE_CL + 10

def sampled_sdram_phy(platform, clk_freq):
    """Return LiteDRAM's PHY of the SDRAM of ``platform``, with ``queue``, a `SampleQueue`, and ``delays``, signals as of a walker.

    What goes to the chip changes with the falling edge; the chip's clock is that of the domain ``sdram``.
    """
    make_fast(platform, "sdram_clock", 0)
    phy = GENSDRPHY(platform.request("sdram"), clk_freq, cl=EYE_CL)
    phy.delays = delays = SimpleNamespace(load_n=Signal(), move=Signal(), direction=Signal())
    phy.submodules.queue = queue = SampleQueue()
    bits = iter(zip(queue.rising, queue.falling, queue.word))
    phy.submodules += replaced_pins(phy, SDROutput, LatePin)
    phy.submodules += replaced_pins(phy, SDRTristate, lambda pin: SampledPin(pin, delays, *next(bits)))
    phy.settings.read_latency = EYE_LATENCY
    phy.specials += DDROutput(i1=1, i2=0, o=platform.request("sdram_clock"), clk=ClockSignal("sdram"))
    return phy

def join_eye(phy, eye):
    """Return what joins a `sampled_sdram_phy` to a `ReadEye`."""
    walker = eye.walker
    return [*copied(phy.delays, walker, "load_n", "move", "direction"), *copied(phy.queue, walker, "is_falling", "age")]

class FlashPins(LiteXModule):
    """Pads of the configuration flash, whose clock pin belongs to the configuration.

    Attributes
    ----------
    clk, cs_n, mosi : Signal(), in
    miso : Signal(), out
    """
    def __init__(self, pads):
        self.clk  = Signal()
        self.cs_n = pads.cs_n
        self.mosi = pads.mosi
        self.miso = pads.miso

        # # #

        self.specials += Instance("USRMCLK", i_USRMCLKI=self.clk, i_USRMCLKTS=0)
        for name in ("wp", "hold"): # Active low.
            if hasattr(pads, name):
                self.comb += getattr(pads, name).eq(1)

# Board --------------------------------------------------------------------------------------------

class Ecp5Board(RgmiiBoard):
    """Gives a board of an ECP5 its clocks, PHYs, SDRAM and flash."""
    clocks_kind = ProbeClocks
    port_kind   = RgmiiPort

    def pps_samples(self):
        """Return a module with four samples a tick of the PPS input; after ``crg()``."""
        self.clocks.add_double()
        return DdrSamples(self.pps())

    def sdram(self, has_clock=False):
        """Return the PHY of the SDRAM, in ``memory`` where ``has_clock``, and the frequency of its times; after ``crg()``."""
        if has_clock:
            self.clocks.add_memory(self.memory_clk_freq, self.memory_clock_phase)
            phy = sdram_phy(self.platform, self.memory_clk_freq, is_late=True)
            return ClockDomainsRenamer("memory")(phy), self.memory_clk_freq
        self.clocks.add_sdram(self.sdram_clock_phase)
        return sdram_phy(self.platform, self.sys_clk_freq), self.sys_clk_freq

    def eye_sdram(self):
        """Return the PHY of the SDRAM in ``memory``, as of `sampled_sdram_phy`; after ``crg()``.

        The clocks have ``slow``, ``phase_step`` and ``phase_advance`` then.
        """
        self.clocks.add_memory_eye(*self.eye_clk_freqs, EYE_CLOCK_PHASE)
        return ClockDomainsRenamer("memory")(sampled_sdram_phy(self.platform, self.eye_clk_freqs[0]))

    def join_eye(self, phy, eye):
        """Return what joins the PHY of `eye_sdram` to a `ReadEye`."""
        return join_eye(phy, eye)

    def flash(self):
        """Return the pads of the SPI flash."""
        return FlashPins(self.platform.request("spiflash"))

    def io_margins(self, has_clock=False, has_eye=False):
        """Return the margins of the buses to the PHYs, the flash and the SDRAM, in ``memory`` where ``has_clock``."""
        if has_eye:
            return margins(self.parts, self.sys_clk_freq, self.rx_delay, eye_clk_freqs=self.eye_clk_freqs)
        if has_clock and self.memory_clk_freq:
            return margins(self.parts, self.sys_clk_freq, self.rx_delay, self.memory_clock_phase, self.memory_clk_freq)
        return margins(self.parts, self.sys_clk_freq, self.rx_delay, self.sdram_clock_phase)
