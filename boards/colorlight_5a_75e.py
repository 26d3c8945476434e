# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Colorlight 5A-75E, revisions 6.0, 7.1 and 8.0: the 5A-75B with sixteen LED connectors, and other pins."""

from litex_boards.platforms import colorlight_5a_75e

from liteprobe.boards.colorlight_5a_75b import ReceiverCard
from liteprobe.boards.io_timing import B50612D, GRADE_6, M12L16161A_5, M12L64322A_5, Parts, RTL8211F, W25Q32JV

# IOs, CRG: those of the 5A-75B. -------------------------------------------------------------------

# By q3k/chubby75, hardware_V6.0.md and hardware_V7.1.md.
_parts = {
    "6.0": Parts(GRADE_6, RTL8211F, W25Q32JV, (M12L64322A_5,)),
    "7.1": Parts(GRADE_6, B50612D,  W25Q32JV, (M12L16161A_5,)),
}

# Board --------------------------------------------------------------------------------------------

class Colorlight5A75E(ReceiverCard):
    """Describes the 5A-75E. An 8.0 seems to have the pins of the 6.0 (q3k/chubby75)."""
    names = {"7.1": "colorlight_5a_75e", "6.0": "colorlight_5a_75e_v6_0"}

    def __init__(self, revision="7.1", toolchain="trellis"):
        if revision not in self.names:
            raise ValueError(f"revision {revision} of the 5A-75E is not supported: use {' or '.join(self.names)}")
        super().__init__(self.names[revision], colorlight_5a_75e.Platform(revision=revision, toolchain=toolchain), _parts[revision])
