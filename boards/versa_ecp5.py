# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lattice Versa ECP5(-5G): two gigabit ports (88E1512) and a speed grade 8 device."""

from litex_boards.platforms import lattice_versa_ecp5

from liteprobe.boards.ecp5 import Ecp5Board
from liteprobe.boards.family import timing_header
from liteprobe.boards.io_timing import FLASH_NOT_AT_HAND, GRADE_8, PHY_88E1512, Parts

# IOs ----------------------------------------------------------------------------------------------

# Expansion header X3, 3.3 V: pin 4 (EXPCON_IO29) takes the PPS, 5 gives one, 6 goes to the receiver's RX, 7 takes its TX.
_timing = timing_header(pps="X3:4", pps_out="X3:5", tx="X3:6", rx="X3:7")
# Both PHYs are on one MDIO bus, which is port 0's.
_left_out = [[], ["mdio", "mdc"]]

# Board --------------------------------------------------------------------------------------------

class VersaEcp5(Ecp5Board):
    """Has a device of twice the size, faster, and PHYs that delay both clocks; its DDR3 isn't wired."""
    name         = "versa_ecp5"
    parts        = Parts(GRADE_8, PHY_88E1512, FLASH_NOT_AT_HAND)
    oscillator   = ("clk100", 100e6)
    reset_pin    = "rst_n"
    timing, left_out = _timing, _left_out
    sys_clk_freq = 62.5e6
    lut_sites    = 43848 # LFE5UM5G-45F.
    block_rams   = 108
    sdram_bytes  = 0
    eye_clk_freqs = None
    spare_bytes  = 104*1024 # 52 block RAMs, beside 51 for all else,
    spare_records = 512 # or 64 beside 39, which firmware takes that keeps settings.
    flash_offset = 0x200000 # A bitstream of the LFE5UM5G-45F takes 1.3 MB at most.
    flash_bytes  = 0x1000000
    cable        = "ft2232" # On board.
    jtag_advice  = "J50 must bypass the ispClock, which else is in the JTAG chain: jumpers on its pins 1-2 and 3-5"
    loading      = "[J50](wiring.md#lattice-versa-ecp5) must bypass the ispClock, or nothing can be loaded."
    limits       = (
        "1 Gb/s full duplex only. Some boards have a LFE5UM-45F (no 5G) and are refused: this build is for the LFE5UM5G-45F."
    )

    def __init__(self, toolchain="trellis"):
        super().__init__(lattice_versa_ecp5.Platform(device="LFE5UM5G", toolchain=toolchain))
