# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The ring that a capture waits in, as a host sees it: which blocks there are, which may be overwritten, which are sent.

All names of registers and memories are here and nowhere else.

Source: docs/design/monitor.md ("Ring").
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from liteprobe.cores.formats import BLOCK_WORDS, CHANNELS
from liteprobe.host.capture.stream import Blocks
from liteprobe.host.errors import UsageError
from liteprobe.host.registers import Registers

CHANNEL_MEMORY = "capture_channels"
RING_MEMORY = "capture_ring"
ENABLE = "capture_enable"
FLUSH = "capture_flush_us"
EXPORT = ("capture_export_ip", "capture_export_port", "capture_export_enable")

CHANNEL_WORDS = 16
WRAP = 1 << 32


class ChannelWord(IntEnum):
    """Words of a channel that a host needs."""

    BASE = 0
    BLOCKS = 1
    READ = 2
    SENT = 3
    WRITTEN = 4
    DROPPED = 5


@dataclass(frozen=True)
class ChannelState:
    """Pointers of a channel (blocks, 32 bits, free-running), and the frames that it dropped for want of room."""

    blocks: int
    read: int
    sent: int
    written: int
    dropped: int

    @property
    def waiting(self) -> int:
        """Blocks that the host has not freed yet."""
        return (self.written - self.read) % WRAP


class CaptureRing:
    """The ring of a probe of preset ``monitor``.

    Parameters
    ----------
    registers : Registers

    Raises
    ------
    UsageError
        When the probe has none.
    """

    def __init__(self, registers: Registers) -> None:
        if CHANNEL_MEMORY not in registers.memory_names:
            raise UsageError("this probe captures nothing: use one that was built with --preset monitor")
        self._registers = registers
        self.blocks = registers.memory(RING_MEMORY).words // BLOCK_WORDS

    def start(self, channels: Sequence[int], flush_us: int = 1000) -> None:
        """Share the ring out evenly to ``channels``, and begin: all pointers are 0 then.

        Raises
        ------
        UsageError
            When there are more channels than blocks for them.
        """
        share = self.blocks // len(channels)
        if share < 2:
            raise UsageError(
                f"the ring has {self.blocks} blocks, too few for {len(channels)} channels: give fewer (--channels)"
            )
        self.stop()
        for channel in range(CHANNELS):
            place = channels.index(channel) * share if channel in channels else 0
            words = [place, share if channel in channels else 0, 0, 0]
            self._registers.write_memory(CHANNEL_MEMORY, CHANNEL_WORDS * channel, words)
        self._registers.write_many({FLUSH: flush_us})
        self._registers.write_many({ENABLE: 1})

    def stop(self) -> None:
        """Take no more frames, and close the blocks that are open."""
        self._registers.write_many({ENABLE: 0})

    def states(self) -> list[ChannelState]:
        """Return how it is with each of the 8 channels."""
        words = self._registers.read_memory(CHANNEL_MEMORY, 0, CHANNEL_WORDS * CHANNELS)
        return [
            ChannelState(*row[ChannelWord.BLOCKS : ChannelWord.DROPPED + 1])
            for row in words.reshape(CHANNELS, CHANNEL_WORDS).tolist()
        ]

    def free(self, channel: int, number: int) -> None:
        """Let all blocks of a channel before ``number`` be overwritten."""
        self._write(channel, ChannelWord.READ, number)

    def resend(self, channel: int, number: int) -> None:
        """Have all blocks of a channel from ``number`` on sent (again)."""
        self._write(channel, ChannelWord.SENT, number)

    def send_to(self, address: int, port: int) -> None:
        """Have closed blocks sent to an IPv4 address and a UDP port; 0 and 0: to nobody."""
        self._registers.write_many(dict(zip(EXPORT, (address, port, int(port != 0)), strict=True)))

    def fetch(self, channel: int, numbers: Iterable[int]) -> Blocks:
        """Return blocks of a channel over the bus, shape (blocks, 368)."""
        base, blocks = self._registers.read_memory(CHANNEL_MEMORY, CHANNEL_WORDS * channel, 2).tolist()
        found = [
            self._registers.read_memory(RING_MEMORY, (base + number % blocks) * BLOCK_WORDS, BLOCK_WORDS)
            for number in numbers
        ]
        return np.array(found, np.uint32).reshape(-1, BLOCK_WORDS)

    def _write(self, channel: int, word: ChannelWord, value: int) -> None:
        # Not checked: ``sent`` has gone on before it can be read back.
        memory = self._registers.memory(CHANNEL_MEMORY)
        address = memory.address + 4 * (CHANNEL_WORDS * channel + word)
        self._registers.link.write(address, [value % WRAP])
