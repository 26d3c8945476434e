# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Colorlight 5A-75B, revisions 7.0, 8.0 and 8.2: a LED receiver card with two gigabit ports, about 20 dollars.

Stands alone: a file a board, with its pins, clocks and what the card can do.
"""

from litex_boards.platforms import colorlight_5a_75b

from liteprobe.boards.ecp5 import Ecp5Board
from liteprobe.boards.family import timing_header
from liteprobe.boards.io_timing import B50612D, GRADE_6, M12L16161A_5, M12L64322A_5, Parts, RTL8211F, W25Q32JV, W9816G6JH_6

# IOs ----------------------------------------------------------------------------------------------

# J19 carries 3.3 V, GND, DATA_LED- (serial TX) and KEY+ (serial RX, also the button). All other headers
# go through 74HC245 drivers, which only drive outwards, so KEY+ is the one input without rework: it takes the PPS.
# Header J1 (5 V levels): pin 1 is the PPS output, pin 2 goes to the receiver's RX. Pin 3 is for the receiver's TX (3.3 V);
# it reaches the FPGA only where its 74HC245 was replaced by a bus switch such as SN74CBT3245A.
_timing = timing_header(pps_out="j1:0", tx="j1:1", rx="j1:2")
# Both PHYs are on one MDIO bus, which is port 0's. Their reset is never driven: from revision 8.0 on (6.0 on the 5A-75E) one
# of them makes the FPGA's 25 MHz, which stops while they are held in reset.
_left_out = [["rst_n"], ["mdio", "mdc", "rst_n"]]

# By q3k/chubby75, hardware_V7.0.md and hardware_V8.0.md.
_parts = {
    "7.0": Parts(GRADE_6, B50612D,  W25Q32JV, (M12L16161A_5, W9816G6JH_6)),
    "8.0": Parts(GRADE_6, RTL8211F, W25Q32JV, (M12L64322A_5,)),
}

# Board --------------------------------------------------------------------------------------------

class ReceiverCard(Ecp5Board):
    """Has the two PHYs of a receiver card; the PPS comes by KEY+ of J19 (3.3 V)."""
    cable  = "ft232" # JTAG pads J27, J31, J32, J30 beside the FPGA.
    pps_is_serial_rx = True # Pin KEY+.
    limits = "1 Gb/s full duplex only. UARTBone takes the pin of the PPS. NMEA needs rework."
    loading = "A FT232H, or another cable by `--cable`, goes to pads J27 (TCK), J31 (TMS), J32 (TDI), J30 (TDO) and J34 (GND)."
    flash_bytes = 0x400000 # W25Q32JV.

    timing, left_out = _timing, _left_out

    def __init__(self, name, platform, parts):
        super().__init__(platform)
        self.name  = name
        self.parts = parts

    def pps(self):
        """Return the pad of the PPS input, KEY+."""
        return self.platform.request("user_btn_n", 0)

class Colorlight5A75B(ReceiverCard):
    """Describes the 5A-75B. An 8.2 has the pins of the 8.0, and a faster FPGA (LFE5U-25F-7BG256I) that takes the same bitstream."""
    names = {"7.0": "colorlight_5a_75b_v7_0", "8.0": "colorlight_5a_75b"}

    def __init__(self, revision="8.0", toolchain="trellis"):
        if revision not in self.names:
            raise ValueError(f"revision {revision} of the 5A-75B is not supported: use {' or '.join(self.names)}")
        super().__init__(self.names[revision], colorlight_5a_75b.Platform(revision=revision, toolchain=toolchain), _parts[revision])
