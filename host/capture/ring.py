# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Controls the ring that a capture waits in, block by block, and writes the filter before it.

All names of registers and memories are here and nowhere else.

Source: docs/design/monitor.md ("Ring").
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from liteprobe.cores.formats import (
    BLOCK_WORDS,
    CHANNEL_WORDS,
    CHANNELS,
    FILTER_ROWS,
    FILTER_TERMS,
    TERM_RULES,
    ChannelWord,
    FilterControl,
    TriggerState,
)
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.capture.decode import Blocks
from liteprobe.host.device.bitstreams import how_to_get
from liteprobe.host.device.link.base import Words
from liteprobe.host.device.registers import Registers
from liteprobe.host.packets.filter.fit import HIT_BLOCK, Filter

CHANNEL_MEMORY = "capture_channels"
ENABLE, RUNNING, FLUSH = "capture_enable", "capture_running", "capture_flush_us"
TRIGGER, TRIGGER_STATE = "capture_trigger", "capture_trigger_state"
RING_BLOCKS, RING_ADDRESS = "capture_ring_blocks", "capture_ring_address"
UDP_PORT, START = "export_udp_port", "export_start"
FILTER_MEMORY, FILTER_CONTROL = "filter", "filter_control"

LEAST_BLOCKS = 4  # Of a channel: what a frame of 1514 octets needs.
CLOSE_S, CLOSE_TRIES = 0.001, 50
WRAP = 1 << 32


@dataclass(frozen=True)
class ChannelState:
    """Pointers of a channel (blocks, 32 bits, free-running), frames that it dropped for want of space, and its blocks."""

    read: int
    sent: int
    written: int
    dropped: int
    taken: int

    @property
    def waiting(self) -> int:
        """Blocks that the host has not freed yet."""
        return (self.written - self.read) % WRAP


class CaptureRing:
    """Controls the ring of a probe that captures; UsageError when the probe has none."""

    def __init__(self, registers: Registers) -> None:
        if CHANNEL_MEMORY not in registers.memory_names:
            raise UsageError(f"this probe captures nothing: {how_to_get(registers.identifier, ('monitor', 'tester'))}")
        self._registers = registers
        self._keeps = [name for name in registers.names if name.endswith("_monitor_keep")]
        self.blocks = registers.read(RING_BLOCKS)
        self._address = registers.read(RING_ADDRESS)

    def start(self, channels: Sequence[int], flush_us: int = 1000, trigger: int = 0) -> None:
        """Share the ring out evenly to ``channels``, and begin: all pointers are 0 then. ``trigger``: the register.

        Raises UsageError when there are more channels than blocks for them; ProbeError when the probe doesn't take
        them.
        """
        share = 1 << (self.blocks // len(channels)).bit_length() - 1 if self.blocks >= len(channels) else 0
        if share < LEAST_BLOCKS * (2 if trigger else 1):
            raise UsageError(
                f"the ring has {self.blocks} blocks, too few for {len(channels)} channels: give fewer (--channels)"
            )
        self._registers.write_many({ENABLE: 0})
        for channel in range(CHANNELS):
            words = [channels.index(channel) * share, share] if channel in channels else [0, 0]
            self._registers.write_memory(CHANNEL_MEMORY, CHANNEL_WORDS * channel, words)
        self._registers.write_many({FLUSH: flush_us, TRIGGER: trigger})
        self._registers.write_many({ENABLE: 1})
        states = self.states()
        if any(states[channel].taken != share for channel in channels):
            raise ProbeError("the probe doesn't take its channels: is another capture running? Try again")

    def stop(self, wait: Callable[[float], None] | None = None) -> None:
        """Take no more frames, and wait until the blocks that are open are closed.

        Ports let go first: what they have counted as kept is in the ring, or counted as dropped.
        """
        self._registers.write_many(dict.fromkeys(self._keeps, 0))
        if wait and self._keeps:
            wait(CLOSE_S)  # Frames wait to be written into blocks: some 20, where the memory is slower than the lines.
        self._registers.write_many({ENABLE: 0})
        for _ in range(CLOSE_TRIES if wait else 0):
            if not self._registers.read(RUNNING):
                return
            assert wait
            wait(CLOSE_S)

    @property
    def is_running(self) -> bool:
        """Whether blocks may still be closed."""
        return bool(self._registers.read(RUNNING))

    @property
    def has_fired(self) -> bool:
        """Whether the trigger that the capture was started with has fired."""
        return bool(TriggerState(self._registers.read(TRIGGER_STATE)) & TriggerState.FIRED)

    def states(self) -> list[ChannelState]:
        """Return how it is with each of the 8 channels."""
        words = self._registers.read_memory(CHANNEL_MEMORY, 0, CHANNEL_WORDS * CHANNELS)
        return [
            ChannelState(*row[ChannelWord.READ : ChannelWord.TAKEN + 1])
            for row in words.reshape(CHANNELS, CHANNEL_WORDS).tolist()
        ]

    def free(self, channel: int, number: int) -> None:
        """Let all blocks of a channel before ``number`` be overwritten."""
        self._write(channel, ChannelWord.READ, number)

    def resend(self, channel: int, number: int) -> None:
        """Have all blocks of a channel from ``number`` on sent (again)."""
        self._write(channel, ChannelWord.SENT, number)

    def send_to(self, port: int, channels: Sequence[int]) -> None:
        """Have closed blocks of ``channels`` (none: of no channel) sent to this host, those of channel n to ``port`` + n."""
        self._registers.write_many({UDP_PORT: port})
        self._registers.write(START, sum(1 << channel for channel in channels))

    def fetch(self, channel: int, numbers: Iterable[int]) -> Blocks:
        """Return blocks of a channel over the bus, shape (blocks, 368)."""
        base = int(self._registers.read_memory(CHANNEL_MEMORY, CHANNEL_WORDS * channel, 1)[0])
        size = self.states()[channel].taken
        found = [self.fetch_place(base + number % size) for number in numbers]
        return np.array(found, np.uint32).reshape(-1, BLOCK_WORDS)

    def fetch_place(self, place: int) -> Words:
        """Return what is at one of the places of the ring, whatever it holds."""
        return self._registers.link.read(self._address + 4 * BLOCK_WORDS * place, BLOCK_WORDS)

    def _write(self, channel: int, word: ChannelWord, value: int) -> None:
        # Not checked: ``sent`` has gone on before it can be read back.
        memory = self._registers.memory(CHANNEL_MEMORY)
        address = memory.address + 4 * (CHANNEL_WORDS * channel + word)
        self._registers.link.write(address, [value % WRAP])


# Filter -------------------------------------------------------------------------------------------


def write_filter(registers: Registers, wanted: Filter) -> None:
    """Put a filter in force; until it is, every frame passes."""
    registers.write(FILTER_CONTROL, FilterControl.NONE)
    for first, words in wanted.blocks():
        registers.write_memory(FILTER_MEMORY, first, words)
    registers.write(FILTER_CONTROL, wanted.control())


def clear_filter(registers: Registers) -> None:
    """Let every frame pass."""
    registers.write(FILTER_CONTROL, FilterControl.NONE)


def read_hits(registers: Registers) -> dict[int, int]:
    """Return how many frames each row and term has matched, by the number that is its ``rule``; those of 0 are left out."""
    first, count = HIT_BLOCK
    words = [int(word) for word in registers.read_memory(FILTER_MEMORY, first, count)]
    numbers = [*range(2 * FILTER_ROWS), *range(TERM_RULES, TERM_RULES + FILTER_TERMS)]
    return {number: hits for number, hits in zip(numbers, words, strict=True) if hits}
