# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reaches a probe in a PCIe slot: registers through BAR0, by the ioctl of LitePCIe's driver.

Source: ``driver/kernel/litepcie.h`` and ``main.c`` of ``liteprobe build sqrl_acorn`` (LitePCIe 2024.12).
"""

import errno
import mmap
import os
import struct
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from liteprobe.cores.formats import BAR0_SEGMENT_BYTES, BAR0_SEGMENTS
from liteprobe.host.base.errors import NoProbeError, UsageError
from liteprobe.host.device.link.base import Link, Words

REG = struct.Struct("=IIB3x")  # struct litepcie_ioctl_reg: address, value, whether it is written.


def ioctl_number(number: int, size: int, reads: bool = True, writes: bool = True) -> int:
    """Return the number of an ioctl of the driver, type 'S'; ``writes``: data goes to the kernel, ``reads``: it comes back.

    Source: Linux, include/uapi/asm-generic/ioctl.h.
    """
    return (reads << 1 | writes) << 30 | size << 16 | ord("S") << 8 | number


IOCTL_REG = ioctl_number(0, REG.size)

NO_DEVICE = (
    "is the probe in its slot (lspci -d 10ee:), and its driver loaded? Build it once, 'make -C build/sqrl_acorn/driver/kernel', "
    "then load it: 'sudo build/sqrl_acorn/driver/kernel/init.sh' (docs/pcie.md)"
)


class Device(Protocol):
    """Names what is used of a device file of the driver."""

    def ioctl(self, request: int, argument: bytearray) -> None:
        """Exchange ``argument`` with the driver; OSError when it refuses."""

    def map(self, length: int, offset: int, is_writable: bool = False) -> memoryview:
        """Return the driver's memory from ``offset`` on, for reading, or for writing, too."""

    def close(self) -> None:
        """Close the file; closing twice is harmless."""


class DeviceFile:
    """A device file of the driver; raises NoProbeError when it can't be opened; the message says what to do."""

    def __init__(self, path: str) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise NoProbeError(f"can't open {path} ({error.strerror}): {_advice(error)}") from None
        self._maps: list[mmap.mmap] = []

    def ioctl(self, request: int, argument: bytearray) -> None:
        import fcntl  # Linux has PCIe devices; other systems load this module, too.

        fcntl.ioctl(self._file, request, argument, True)

    def map(self, length: int, offset: int, is_writable: bool = False) -> memoryview:
        access = mmap.PROT_READ | (mmap.PROT_WRITE if is_writable else 0)
        self._maps.append(mmap.mmap(self._file, length, mmap.MAP_SHARED, access, offset=offset))
        return memoryview(self._maps[-1])

    def close(self) -> None:
        """Close the file; what was mapped stays as long as something looks at it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _advice(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "run as root, or let a udev rule give your group the device (docs/pcie.md)"
    return NO_DEVICE


def gone(name: str, error: OSError) -> NoProbeError:
    """Return what to say of a device that answers no more, or never was one."""
    if error.errno == errno.ENOTTY:
        return NoProbeError(
            f"{name} is not a device of LitePCIe's driver: give the probe's first one (ls /dev/litepcie*)"
        )
    return NoProbeError(f"{name} is gone ({error.strerror}): {NO_DEVICE}")


def bar0_address(address: int) -> int:
    """Return what the driver calls an address of the probe's bus: where BAR0 begins is that of the registers.

    The driver checks nothing, and would read beyond BAR0.
    Raises UsageError when BAR0 doesn't reach ``address``, or it isn't that of a word.
    """
    for number, base in enumerate(BAR0_SEGMENTS):
        if base <= address < base + BAR0_SEGMENT_BYTES and address % 4 == 0:
            return BAR0_SEGMENTS[0] + number * BAR0_SEGMENT_BYTES + address - base
    raise UsageError(
        f"address {address:#x} can't be reached over PCIe: give one of a word in the register map (liteprobe regs)"
    )


class PcieLink(Link):
    """A probe in a PCIe slot; ``device``: of its first channel, open."""

    look_ns = 1e6
    is_in_band = False

    def __init__(self, device: Device, name: str) -> None:
        self.name = name
        self._device = device

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        return np.array([self._exchange(address) for address in addresses], dtype=np.uint32)

    def write(self, address: int, words: Sequence[int]) -> Words:
        self.post(address, words)
        return self.read(address, len(words))

    def post(self, address: int, words: Sequence[int]) -> None:
        for number, word in enumerate(words):
            self._exchange(address + 4 * number, int(word))

    def replay_device(self) -> str | None:
        return self.name

    def close(self) -> None:
        self._device.close()

    # # #

    def _exchange(self, address: int, word: int | None = None) -> int:
        argument = bytearray(REG.pack(bar0_address(address), word or 0, word is not None))
        try:
            self._device.ioctl(IOCTL_REG, argument)
        except OSError as error:
            raise gone(self.name, error) from None
        return int(REG.unpack(argument)[1])
