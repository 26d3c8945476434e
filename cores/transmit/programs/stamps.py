# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a transmit port has where its frames leave with stamps."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import STAMP_OCTETS, STAMP_OFFSET

def add_stamp_settings(path, shown):
    """Tell the stamp of the program of a TransmitPath: its settings stand still."""
    stamp = path.stamp
    path.comb += [
        stamp.payload_offset.eq(shown.payload_offset),
        stamp.checksum_enable.eq(shown.checksum_enable),
        stamp.checksum_seed.eq(shown.checksum_seed),
        stamp.enable.eq(1),
        stamp.is_late.eq(0),
        stamp.offset.eq(shown.payload_offset + STAMP_OFFSET),
        stamp.octets.eq(STAMP_OCTETS - 1),
        stamp.shift.eq(0),
        stamp.nibble.eq(0),
        stamp.mend.eq(0),
    ]
