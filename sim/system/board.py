# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The simulated board: three GMII ports whose pins the harness drives, and every clock from outside."""

from fractions import Fraction

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from litex.build.generic_platform import GenericPlatform, Pins, Subsignal
from litex.build.sim.common import sim_special_overrides
from litex.soc.interconnect import stream

from litedram.common import PhySettings
from litedram.modules import M12L64322A
from litedram.phy.model import SDRAMPHYModel

from liteeth.common import eth_phy_description

from liteprobe.boards.family import SDRAM_BYTES
from liteprobe.cores.timebase.pps import SAMPLE_TICKS
from liteprobe.sim.system import FLASH_OFFSET

PORTS = 3
SAMPLES = 4  # Of the PPS input, a tick: what boards have.
SDRAM_CLK_FREQ = 50e6  # Of the boards that have one.
LINE_FREQ = 125e6
TICKS_FREQ = 2 * SDRAM_CLK_FREQ  # Of a clock that has each tick, where ``sys`` has 50 MHz, as it does on boards.
RESET_TICKS = 1000  # Shorter than any PLL needs, longer than any clock-domain crossing.

# IOs ----------------------------------------------------------------------------------------------

_io = [
    (
        "clk",
        0,
        Subsignal("sys", Pins(1)),
        Subsignal("timebase", Pins(1)),
        *[Subsignal(f"eth_rx{port}", Pins(1)) for port in range(PORTS)],
    ),
    ("rst_sys", 0, Pins(1)),
    *[
        (
            "gmii",
            port,
            Subsignal("tx_en", Pins(1)),
            Subsignal("tx_data", Pins(8)),
            Subsignal("rx_dv", Pins(1)),
            Subsignal("rx_er", Pins(1)),
            Subsignal("rx_data", Pins(8)),
            Subsignal("link_up", Pins(1)),
        )
        for port in range(PORTS)
    ],
    (
        "serial",
        0,
        Subsignal("tx", Pins(1)),
        Subsignal("rx", Pins(1)),
    ),
    ("pps", 0, Pins(SAMPLES)),  # Samples of this tick, the earliest in bit 0.
    ("pps_out", 0, Pins(1)),
    (
        "gnss",
        0,
        Subsignal("tx", Pins(1)),
        Subsignal("rx", Pins(1)),
    ),
    (
        "flash",
        0,
        Subsignal("clk", Pins(1)),
        Subsignal("cs_n", Pins(1)),
        Subsignal("mosi", Pins(1)),
        Subsignal("miso", Pins(1)),
    ),
]


class Platform(GenericPlatform):
    """Gives Verilog only: the harness is built by sim/system/build.py."""

    def __init__(self):
        GenericPlatform.__init__(self, device="simulated", io=_io, name="liteprobe_sim")

    def get_verilog(self, *args, special_overrides=None, **kwargs):
        self.request("serial", loose=True)  # The harness is the same for all, so all pins exist in every build.
        overrides = {**sim_special_overrides, **(special_overrides or {})}
        return GenericPlatform.get_verilog(self, *args, special_overrides=overrides, **kwargs)

    def add_period_constraint(self, clk, period, **kwargs):
        """Do nothing: the harness makes the clocks."""

    def add_false_path_constraint(self, from_, to):
        """Do nothing: simulation has no paths."""


# CRG ----------------------------------------------------------------------------------------------

class SimulatedClocks(LiteXModule):
    """Takes ``sys`` and ``timebase`` from the pins; ``memory``, once it is asked for, has all ticks of ``timebase`` or some.

    Attributes
    ----------
    rst : Signal(), in
        Resets ``sys`` and ``timebase`` for RESET_TICKS, as a board's PLL does while it locks again; driven by the SoC controller.

    Only ``sys`` is reset at power-up (the CPU needs it): the timebase counts from its first edge, so that
    the harness's tick is the SoC's tick.
    """

    def __init__(self, clocks, rst_sys):
        self.rst = Signal()
        self.cd_sys = ClockDomain()
        self.cd_timebase = ClockDomain()
        self.cd_lock = cd_lock = ClockDomain(reset_less=True)

        # # #

        left = Signal(max=RESET_TICKS + 1)
        is_reset = Signal()
        self.comb += [
            self.cd_sys.clk.eq(clocks.sys),
            self.cd_sys.rst.eq(rst_sys | is_reset),
            self.cd_timebase.clk.eq(clocks.timebase),
            self.cd_timebase.rst.eq(is_reset),
            cd_lock.clk.eq(clocks.timebase),
        ]
        self.sync.lock += [
            If(
                self.rst,
                left.eq(RESET_TICKS),
            ).Elif(
                left != 0,
                left.eq(left - 1),
            ),
            is_reset.eq(left != 0),  # Registered: a reset without glitches.
        ]

    def add_memory(self, share):
        """Add the domain ``memory``, which has this share of the ticks, a `Fraction`; it is reset as ``sys`` is."""
        self.cd_memory = ClockDomain()
        has_tick = Signal(reset=1)
        self.comb += [
            self.cd_memory.clk.eq(ClockSignal("timebase") & has_tick),
            self.cd_memory.rst.eq(ResetSignal("sys")),
        ]
        if share == 1:
            return
        self.cd_between = cd_between = ClockDomain(reset_less=True)
        count = Signal(max=share.denominator)
        self.comb += cd_between.clk.eq(~ClockSignal("timebase"))  # So that no tick is cut short.
        self.sync.between += [
            count.eq(count + 1),
            If(count == share.denominator - 1, count.eq(0)),
            has_tick.eq(count < share.numerator),
        ]


# PHY ----------------------------------------------------------------------------------------------

class SimulatedPhy(LiteXModule):
    """A PHY as a port sees it, with no register of its own: the pins are the timestamp points.

    Parameters
    ----------
    pads : GMII pads with ``link_up``.
    clock : Signal, receive clock of this port.
    number : int, names the receive domain.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(8)), in, ``timebase``; always ready. Latency: 0 cycles to the pins.
    source : Endpoint(eth_phy_description(8)), out, ``eth_rx<number>``; ``last`` is never set.
    link_up : Signal(), out, asynchronous
    """

    rx_clk_freq = 125e6
    tx_clk_freq = 125e6
    tx_ticks = 0
    rx_ticks = 0

    def __init__(self, pads, clock, number):
        self.sink = sink = stream.Endpoint(eth_phy_description(8))
        self.source = source = stream.Endpoint(eth_phy_description(8))
        self.link_up = Signal()

        # # #

        cd_eth_rx = ClockDomain(f"eth_rx{number}")
        setattr(self, f"cd_eth_rx{number}", cd_eth_rx)
        self.comb += [
            cd_eth_rx.clk.eq(clock),
            cd_eth_rx.rst.eq(ResetSignal("timebase")),
            pads.tx_en.eq(sink.valid),
            pads.tx_data.eq(sink.data),
            sink.ready.eq(1),
            source.valid.eq(pads.rx_dv),
            source.data.eq(pads.rx_data),
            source.error.eq(pads.rx_er),
            self.link_up.eq(pads.link_up),
        ]


# PPS ----------------------------------------------------------------------------------------------

class SimulatedSamples(LiteXModule):
    """Takes the samples of the PPS input from the pins, as late as a board's.

    ``samples``: Signal(SAMPLES), out, ``timebase``.
    """

    def __init__(self, pads):
        self.samples = Signal(SAMPLES)

        # # #

        self.specials += MultiReg(pads, self.samples, "timebase", n=SAMPLE_TICKS)


# Board --------------------------------------------------------------------------------------------

class Board:
    """Gives a SoC what it may ask of the simulated board; the same as of a real one.

    Parameters
    ----------
    memory_clk_freq : float, Hz; frequency of the SDRAM's own clock where ``sys`` has 50 MHz, up to 100 MHz.
    at_pace : bool; ``sys`` has 50 MHz by the line's clock: the harness must give it so.
    """

    name = "simulated"
    ports = PORTS
    sys_clk_freq = 62.5e6
    lut_sites = None  # No limit.
    block_rams = None
    with_serial = True
    with_pcie = False
    sdram_bytes = SDRAM_BYTES
    sdram_banks = 4
    memory_clk_freq = TICKS_FREQ
    eye_clk_freqs = None
    with_late_sdram = False
    spare_bytes = 0
    spare_records = 1024
    flash_offset = FLASH_OFFSET
    pps_is_serial_rx = False
    cable = None
    limits = "Simulation: no delays of PHYs, no clock error unless asked for (--ppm)."

    def __init__(self, memory_clk_freq=TICKS_FREQ, at_pace=False):
        self.memory_clk_freq = memory_clk_freq
        self.ticks_freq = LINE_FREQ if at_pace else TICKS_FREQ
        if at_pace:
            self.sys_clk_freq = SDRAM_CLK_FREQ
        self.platform = Platform()
        self.clocks = self.platform.request("clk")
        self.rst = self.platform.request("rst_sys")
        self.gmii = [self.platform.request("gmii", port) for port in range(PORTS)]
        self.timing = {name: self.platform.request(name) for name in ("pps", "pps_out", "gnss")}
        self.pins_of_flash = self.platform.request("flash")

    def crg(self):
        """Return the clocks and resets."""
        self.domains = SimulatedClocks(self.clocks, self.rst)
        return self.domains

    def phy(self, port):
        """Return the PHY of one port."""
        return SimulatedPhy(self.gmii[port], getattr(self.clocks, f"eth_rx{port}"), port)

    def pps_samples(self):
        """Return a module with the samples of the PPS input."""
        return SimulatedSamples(self.timing["pps"])

    def pps_out(self):
        """Return the pad of the PPS output."""
        return self.timing["pps_out"]

    def gnss(self):
        """Return the pads of the GNSS receiver's UART."""
        return self.timing["gnss"]

    def sdram(self, has_clock=False):
        """Return LiteDRAM's model of PHY and chip, and the frequency at which the chip's times are kept; after ``crg()``.

        That is the frequency of the boards, so that an access takes as many cycles as it does there.
        """
        clk_freq = self.memory_clk_freq if has_clock else SDRAM_CLK_FREQ
        settings = PhySettings(
            phytype="GENSDRPHY",
            memtype="SDR",
            databits=32,
            dfi_databits=32,
            nphases=1,
            rdphase=0,
            wrphase=0,
            cl=2,
            read_latency=3,
            write_latency=0,
        )
        phy = SDRAMPHYModel(M12L64322A(clk_freq, "1:1"), settings, clk_freq=clk_freq)
        if has_clock:
            self.domains.add_memory(Fraction(int(clk_freq), int(self.ticks_freq)))
            phy = ClockDomainsRenamer("memory")(phy)
        return phy, clk_freq

    def flash(self):
        """Return the pads of the SPI flash, which the harness models."""
        return self.pins_of_flash
