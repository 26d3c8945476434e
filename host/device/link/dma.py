# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the rings of a capture in this machine's memory, which a probe in a PCIe slot writes by itself.

Source: ``driver/kernel/litepcie.h`` and ``main.c`` of ``liteprobe build sqrl_acorn`` (LitePCIe 2024.12).
"""

import struct
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import BLOCK_WORDS, DMA_SLOT_BYTES, DMA_SLOTS
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.device.link.pcie import Device, gone, ioctl_number
from liteprobe.host.device.registers import Registers

# struct litepcie_ioctl_dma_writer, and _reader: enable, buffers of hardware and of software.
DMA_ENABLE = struct.Struct("=B7xqq")
LOCK = struct.Struct("=6B")  # struct litepcie_ioctl_lock: request, release and status, of reader and writer.
DMA_INFO = struct.Struct("=6Q")  # struct litepcie_ioctl_mmap_dma_info: offset, size, count; to the probe, from it.

IOCTL_DMA_WRITER = ioctl_number(21, DMA_ENABLE.size)
IOCTL_DMA_READER = ioctl_number(22, DMA_ENABLE.size)
IOCTL_DMA_INFO = ioctl_number(24, DMA_INFO.size, writes=False)
IOCTL_LOCK = ioctl_number(25, LOCK.size)

ENABLED = 1  # Of ``pcie_dma<n>_writer_enable`` and ``_reader_enable``; bit 1 is the gateware's: idle.

Blocks = NDArray[np.uint32]


class DmaDevice:
    """One direction of a channel's device: who has it, its memory, and whether its DMA runs.

    ``is_reader``: the DMA reads this machine's memory, else it writes to it.
    """

    def __init__(self, device: Device, name: str, is_reader: bool) -> None:
        self.name, self.is_running = name, False
        self._device, self._is_reader = device, is_reader

    def lock(self) -> bool:
        """Take the DMA for this program; return whether no other one has it."""
        wanted = (1, 0) if self._is_reader else (0, 1)
        return bool(self._ioctl(IOCTL_LOCK, LOCK, *wanted, 0, 0, 0, 0)[4 if self._is_reader else 5])

    def map(self) -> Blocks:
        """Return the slots of the ring, shape (``DMA_SLOTS``, words of a slot).

        Raises ProbeError when the driver was made for other gateware.
        """
        info = self._ioctl(IOCTL_DMA_INFO, DMA_INFO, *[0] * 6)
        offset, size, count = info[:3] if self._is_reader else info[3:]
        if (size, count) != (DMA_SLOT_BYTES, DMA_SLOTS):
            raise ProbeError(
                f"the driver of {self.name} has {count} buffers of {size} octets, not {DMA_SLOTS} of {DMA_SLOT_BYTES}: "
                f"load the one that was made with this gateware (docs/pcie.md)"
            )
        memory = self._device.map(size * count, offset, self._is_reader)
        return np.frombuffer(memory, dtype="<u4").reshape(count, size // 4)

    def enable(self, is_on: bool) -> None:
        """Start the DMA from the first slot on, or stop it."""
        self._ioctl(IOCTL_DMA_READER if self._is_reader else IOCTL_DMA_WRITER, DMA_ENABLE, is_on, 0, 0)
        self.is_running = is_on

    def close(self) -> None:
        """Stop, and let the device go."""
        try:
            if self.is_running:
                self.enable(False)
        finally:
            self._device.close()

    # # #

    def _ioctl(self, request: int, layout: struct.Struct, *values: int) -> tuple[int, ...]:
        argument = bytearray(layout.pack(*values))
        try:
            self._device.ioctl(request, argument)
        except OSError as error:
            raise gone(self.name, error) from None
        return tuple(layout.unpack(argument))


def wrong_channel(name: str, channel: int) -> ProbeError:
    """Return what to say when another channel than ``channel`` was started: the first device wasn't given."""
    return ProbeError(f"{name} isn't the device of channel {channel}: give the probe's first one (ls /dev/litepcie*)")


class DmaRing:
    """The ring of one channel; ``device``: its own, open: ``/dev/litepcie<first + channel>``.

    Raises ProbeError when another program has the ring, or the driver was made for other gateware, NoProbeError when
    the device is gone.
    """

    def __init__(self, device: Device, registers: Registers, channel: int, name: str) -> None:
        self.channel = channel
        self.taken = 0
        self._device = DmaDevice(device, name, is_reader=False)
        self._registers = registers
        self._name = name
        self._written = 0
        if not self._device.lock():
            raise ProbeError(f"another program takes what {name} captures: end it (fuser {name})")
        self._slots = self._device.map()

    def start(self) -> None:
        """Let the probe write blocks into the ring, from slot 0 on.

        Raises ProbeError when the device is another channel's: the first one wasn't given.
        """
        self.taken = self._written = 0
        self._registers.write(f"capture_dma_taken{self.channel}", 0)
        self._device.enable(True)
        if not self._registers.read(f"pcie_dma{self.channel}_writer_enable") & ENABLED:
            raise wrong_channel(self._name, self.channel)

    def stop(self) -> None:
        """Let it write no more. What is in the ring can still be taken; all else stays in the probe and is lost to nobody."""
        if self._device.is_running:
            self._device.enable(False)

    def blocks(self) -> list[Blocks]:
        """Return all blocks that came and weren't taken, the oldest first: no copy, valid until ``take``.

        Raises ProbeError when the pointers make no sense: the probe was reset meanwhile.

        Returns
        -------
        list of arrays, shape (blocks, BLOCK_WORDS)
            None, one, or two where the ring wraps. What is behind a block's own words is 0.
        """
        now = self._registers.read(f"capture_dma_written{self.channel}")
        self._written += (now - self._written) & 0xFFFFFFFF
        count = self._written - self.taken
        if count > DMA_SLOTS:
            raise ProbeError(
                f"{self._name} counts {count} blocks in {DMA_SLOTS} slots: the probe was reset, start the capture anew"
            )
        first = self.taken % DMA_SLOTS
        parts = [(first, min(first + count, DMA_SLOTS)), (0, max(0, first + count - DMA_SLOTS))]
        return [self._slots[begin:end, :BLOCK_WORDS] for begin, end in parts if end > begin]

    def take(self, count: int) -> None:
        """Give the slots of the ``count`` oldest blocks back to the probe."""
        if not 0 <= count <= self._written - self.taken:
            raise ValueError(f"{count} blocks can't be taken: {self._written - self.taken} are there")
        self.taken += count
        self._registers.write(f"capture_dma_taken{self.channel}", self.taken & 0xFFFFFFFF)

    def close(self) -> None:
        """Stop, and let the device go."""
        self._device.close()


class DmaCapture:
    """The rings of some channels of a probe.

    ``path``: the probe's first device, ``/dev/litepcie0``; channel n has the n-th behind it.

    ``rings``: by channel.
    Raises NoProbeError when a device can't be opened, ProbeError as of `DmaRing`. What was opened is closed again.
    """

    def __init__(
        self, registers: Registers, path: str, channels: Sequence[int], open_device: Callable[[str], Device]
    ) -> None:
        self.rings: dict[int, DmaRing] = {}
        with ExitStack() as stack:
            for channel in channels:
                name = device_of_channel(path, channel)
                device = open_device(name)
                stack.callback(device.close)
                self.rings[channel] = DmaRing(device, registers, channel, name)
            stack.pop_all()

    def start(self) -> None:
        for ring in self.rings.values():
            ring.start()

    def close(self) -> None:
        """Stop all rings, and let their devices go: all of them, even where one fails."""
        with ExitStack() as stack:
            for ring in self.rings.values():
                stack.callback(ring.close)


def device_of_channel(path: str, channel: int) -> str:
    """Return the device of a channel: the driver numbers them from the probe's first one on."""
    stem = path.rstrip("0123456789")
    return f"{stem}{int(path[len(stem) :] or 0) + channel}"
