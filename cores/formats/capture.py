# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Records, blocks and channels of a capture."""

from enum import IntEnum, IntFlag
from typing import Final

import numpy as np

# Capture: what leaves the board, see docs/design/monitor.md.

RECORD_HEAD_WORDS: Final = 4  # Of the unified header, that every record has.
CHANNELS: Final = 8
BLOCK_WORDS: Final = 368  # With its header; one block fits a UDP datagram.
BLOCK_HEADER_WORDS: Final = 4
BLOCK_MAGIC: Final = 0x4C50  # "LP"
BLOCK_VERSION: Final = 1
NO_RECORD: Final = 0xFFFF  # ``first`` of a block in which no record begins.
#: The header of a block. ``kind``: channel in bits 11..8, version in bits 15..12.
BLOCK_DTYPE: Final = np.dtype(
    [("number", "<u4"), ("words", "<u2"), ("first", "<u2"), ("dropped", "<u4"), ("kind", "<u2"), ("magic", "<u2")]
)

TRIGGER_WANTED: Final = 1 << 0  # Of the register ``trigger`` of the capture.
TRIGGER_BEFORE_BIT: Final = 1  # Two bits: quarters of the blocks, less one.
TRIGGER_CHANNELS_BIT: Final = 8


class TriggerState(IntFlag):
    """Of the register ``trigger_state``."""

    NONE = 0
    WAITS = 1 << 0
    FIRED = 1 << 1


CHANNEL_WORDS: Final = 16  # Of the bus memory ``capture_channels``, a channel.


class ChannelWord(IntEnum):
    """Words of a channel in ``capture_channels``; those behind ``TAKEN`` are the gateware's own."""

    BASE = 0
    BLOCKS = 1
    READ = 2
    SENT = 3
    WRITTEN = 4
    DROPPED = 5
    TAKEN = 6
    NUMBER = 7  # Blocks closed, whether they are in the memory yet or not.
    POSITION = 8  # In the open block.
    TOLD = 9  # Drops that gap records have reported.
    STAMP_LOW = 10  # Of the first drop that none has reported.
    STAMP_HIGH = 11
    OPENED = 12  # When the first word came into the open block (us).
