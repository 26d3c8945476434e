# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The probe: test ports, timebase, way in and processor on one bus."""

from migen import *

from litex.gen import *

from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect.csr import *

from liteprobe.soc.export import identity
from liteprobe.soc.links import ManagementStack
from liteprobe.soc.processor import processor_parameters

TICKS_PER_SECOND = 125_000_000
BUS_TIMEOUT      = 1024 # Cycles. A wrong address answers soon, so that Etherbone's client needn't wait.

# Identity -----------------------------------------------------------------------------------------

class ProbeIdentity(LiteXModule):
    """Says what is built in, and starts programs on several ports in one tick.

    Attributes
    ----------
    map_hash : CSRStatus(32), set when the SoC is finalized
    ports, record_depth, data_width, ticks_per_second : CSRStatus, constants of the build
    start : CSR(ports), write only; ports to start, bit n is port n
    """
    def __init__(self, config):
        self.map_hash         = CSRStatus(32)
        self.ports            = CSRStatus(8,  reset=config.ports)
        self.record_depth     = CSRStatus(32, reset=config.record_depth)
        self.start            = CSR(config.ports)
        self.ticks_per_second = CSRStatus(32, reset=TICKS_PER_SECOND)
        self.data_width       = CSRStatus(8,  reset=config.data_width)

# Probe --------------------------------------------------------------------------------------------

class ProbeSoC(SoCCore):
    """Builds a probe for a board.

    Parameters
    ----------
    board : Board
        Gives ``name``, ``platform``, ``ports``, ``sys_clk_freq``, ``block_rams``, ``with_serial``, ``crg()`` (a
        module with the domains ``sys`` and ``timebase``) and ``phy(number)`` (``sink`` in ``timebase``,
        ``source`` in ``eth_rx<number>``, ``link_up``).
    config : ProbeConfig

    Raises ValueError, before anything is built, when the board cannot hold the configuration.
    """
    def __init__(self, board, config):
        config.check(board)
        self.board        = board
        self.probe_config = config

        # SoCCore ----------------------------------------------------------------------------------
        SoCCore.__init__(self, board.platform, int(board.sys_clk_freq),
            ident       = f"liteprobe on {board.name}",
            bus_timeout = BUS_TIMEOUT,
            **processor_parameters(config),
        )
        self.crg = board.crg()

        # Identity and time ------------------------------------------------------------------------
        self.probe = ProbeIdentity(config)
        self.add_timebase()

        # Ports ------------------------------------------------------------------------------------
        for number in range(config.ports):
            self.add_port(number, board.phy(number))

        # Way in -----------------------------------------------------------------------------------
        {
            "own":    self.add_link_own,
            "shared": self.add_link_shared,
            "uart":   self.add_link_uart,
        }[config.link]()

    def finalize(self):
        if self.finalized:
            return
        SoCCore.finalize(self)
        # Known only now that every register has its address; the Verilog is written later.
        self.probe.map_hash.status.reset = Constant(identity(self), 32)

    # Way in ---------------------------------------------------------------------------------------

    def add_management(self, receive, transmit):
        """Answer the frames of ``receive`` on ``transmit``, and give Etherbone the bus."""
        config = self.probe_config
        self.management = ManagementStack(
            mac_address = config.mac_address,
            ip_address  = config.ip_address,
            clk_freq    = self.sys_clk_freq,
        )
        self.comb += [
            receive.connect(self.management.sink),
            self.management.source.connect(transmit),
        ]
        self.bus.add_master("etherbone", self.management.bus)

    def add_link_uart(self):
        """Reach the bus through the serial port."""
        self.add_uartbone(baudrate=self.probe_config.uart_baud)
