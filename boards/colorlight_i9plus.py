# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Colorlight i9+ (6.1) on its extension board: the i9's module with an Artix-7 (XC7A50T) and a flash of 16 MB."""

from litex.build.generic_platform import IOStandard, Pins, Subsignal

from litex_boards.platforms import colorlight_i9plus

from liteprobe.boards.artix7 import Artix7Board, renew
from liteprobe.boards.family import timing_header
from liteprobe.boards.io_timing import B50612D, FLASH_NOT_AT_HAND, GRADE_6, M12L64322A_5, Parts

# IOs ----------------------------------------------------------------------------------------------

# Header P2 of the extension board, 3.3 V (wuxx/Colorlight-FPGA-Projects, doc/i9plus-v6.1-pinout.png; P2 is numbered as litex-boards
# does): pin 24 takes the PPS, 22 gives one, 21 goes to the receiver's RX, 19 takes its TX. Pin 25 is serial TX, 23 serial RX.
_timing = timing_header(pps="U2", pps_out="V2", tx="U3", rx="V3")
# Both PHYs are on one MDIO bus and one reset: those of port 0, which every probe has.
_left_out = [[], ["mdio", "mdc", "rst_n"]]
# As of litex-boards' later `colorlight_i9plus`: the flash has one bit, and its clock is the configuration's.
_flash = ("spiflash", 0,
    Subsignal("cs_n", Pins("T19")),
    Subsignal("mosi", Pins("P22")),
    Subsignal("miso", Pins("R22")),
    IOStandard("LVCMOS33"),
)
_serial   = ("serial", 0, Subsignal("tx", Pins("R2")), Subsignal("rx", Pins("T4")), IOStandard("LVCMOS33"))
_one_wide = ["set_property BITSTREAM.CONFIG.SPI_BUSWIDTH 1 [current_design]"]
_image    = [
    "write_cfgmem -force -format bin -interface spix1 -size 16 "
    "-loadbit \"up 0x0 {build_name}.bit\" -file {build_name}.bin"
]

# Board --------------------------------------------------------------------------------------------

class ColorlightI9Plus(Artix7Board):
    """Describes the i9+ 6.1."""
    name         = "colorlight_i9plus"
    parts        = Parts(GRADE_6, B50612D, FLASH_NOT_AT_HAND, (M12L64322A_5,)) # By wuxx, colorlight_i9plus_v6.1.md.
    timing, left_out = _timing, _left_out
    sys_clk_freq = 62.5e6
    # XC7A50T: 32,600 LUTs of six inputs. What takes 100 sites of a LFE5U takes 64 to 66 of them (docs/design/other-fpgas.md).
    lut_sites    = 49000
    block_rams   = 150 # RAMB18E1.
    cable        = "ch347_jtag" # Of the extension board.
    flash_bytes  = 0x1000000 # MX25L128.
    flash_offset = 0x300000 # A bitstream of the XC7A50T takes 2.2 MB.
    limits       = (
        "Never seen on hardware with this gateware. 1 Gb/s full duplex only. The bitstream takes openXC7 or Vivado. The extension "
        "board has neither RJ45 nor magnetics: it links only with two magnetic jacks wired to its header P1."
    )

    def __init__(self, toolchain="vivado"):
        platform = colorlight_i9plus.Platform(toolchain=toolchain)
        renew(platform, _flash, _serial)
        platform.toolchain.bitstream_commands  = _one_wide
        platform.toolchain.additional_commands = _image
        super().__init__(platform)
