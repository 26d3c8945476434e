# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Colorlight i9 (7.2): the i5's module with a LFE5U-45F, on the same extension board."""

from liteprobe.boards.colorlight_i5 import SodimmModule
from liteprobe.boards.io_timing import B50612D, EM638325_6, FLASH_NOT_AT_HAND, GRADE_6, M12L64322A_5, Parts

# IOs, CRG: those of the i5. -----------------------------------------------------------------------

# Board --------------------------------------------------------------------------------------------

class ColorlightI9(SodimmModule):
    """Describes the i9 7.2: 43,848 LUTs, which hold everything that a probe can be made of."""
    name         = "colorlight_i9"
    # By wuxx/Colorlight-FPGA-Projects, colorlight_i9_v7.2.md: a M12L64322A, grade not said; others were seen with an EM638325.
    parts        = Parts(GRADE_6, B50612D, FLASH_NOT_AT_HAND, (M12L64322A_5, EM638325_6))
    lut_sites    = 43848 # LFE5U-45F.
    block_rams   = 108
    two_way_clk_freq = 625e6/13 # 48.1 MHz, of the VCO that makes `timebase`; two engines ask for 46.
    placer       = "static"
    with_late_sdram = True
    flash_bytes  = 0x800000 # W25Q64JV.
    flash_offset = 0x200000 # A bitstream of the LFE5U-45F takes 1.3 MB at most.

    def __init__(self, toolchain="trellis"):
        super().__init__("7.2", toolchain)
