# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a host sees of a probe behind PCIe."""

from typing import Final

#: What of the bus lies in BAR0, side by side: registers, memories, main RAM, and what is at 0. Each begins at a multiple of it.
BAR0_SEGMENTS: Final = (0xF000_0000, 0x8000_0000, 0x4000_0000, 0x0000_0000)
BAR0_SEGMENT_BYTES: Final = 4 * 1024 * 1024

#: Ring of a channel in the host's memory: slots of a page, of which a block takes the first octets.
DMA_SLOTS: Final = 256
DMA_SLOT_BYTES: Final = 4096
#: A multiple of the largest payload of a request (512), so that no part of a block has to wait for the next one.
DMA_BLOCK_BYTES: Final = 1536
