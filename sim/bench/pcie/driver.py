# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Device files of the driver in front of the root complex of the bench: the host library runs on it as it is, for cocotb.

What uses them runs in a thread, by `cocotb.task.bridge`.
"""

import struct
from collections.abc import Callable
from typing import Any

from cocotb.task import resume
from cocotb.triggers import ClockCycles

from liteprobe.cores.formats import BAR0_SEGMENTS, DMA_SLOT_BYTES, DMA_SLOTS
from liteprobe.host.device.link.dma import IOCTL_DMA_INFO, IOCTL_DMA_WRITER, IOCTL_LOCK
from liteprobe.host.device.link.pcie import IOCTL_REG, REG, PcieLink
from liteprobe.sim.bench.pcie.host import Host

PATH = "/dev/litepcie"
RING_BYTES = DMA_SLOT_BYTES * DMA_SLOTS
LOOK_CYCLES = 1000 # That pass where the library waits.

class DriverFile:
    """The device file of a channel.

    Parameters
    ----------
    host : Host
        Booted.
    path : str
    """

    def __init__(self, host: Host, path: str) -> None:
        self._host = host
        self._channel = int(path.removeprefix(PATH))
        self._is_running = False

    def ioctl(self, request: int, argument: bytearray) -> None:
        """Do as the driver does."""
        if request == IOCTL_REG:
            address, word, is_write = REG.unpack(argument)
            offset, window = address - BAR0_SEGMENTS[0], self._host.slot.bar_window[0]
            if is_write:
                resume(window.write_dword)(offset, word)
            else:
                argument[:] = REG.pack(address, resume(window.read_dword)(offset), False)
        elif request == IOCTL_LOCK:
            argument[4:] = bytes([1, 1])
        elif request == IOCTL_DMA_INFO:
            argument[:] = struct.pack("=6Q", 0, DMA_SLOT_BYTES, DMA_SLOTS, RING_BYTES, DMA_SLOT_BYTES, DMA_SLOTS)
        else:
            assert request == IOCTL_DMA_WRITER
            self._is_running = bool(argument[0])
            resume(self._host.start if self._is_running else self._host.stop)(self._channel)

    def map(self, length: int, offset: int, is_writable: bool = False) -> memoryview:
        """Return the memory of the ring."""
        assert length == offset == RING_BYTES
        return memoryview(self._host.ring(self._channel)[1])

    def close(self) -> None:
        """Stop what runs."""
        if self._is_running:
            self.ioctl(IOCTL_DMA_WRITER, bytearray(24))

class BenchLink(PcieLink):
    """The link of the library; where it waits, cycles pass."""

    def __init__(self, host: Host) -> None:
        super().__init__(DriverFile(host, f"{PATH}0"), f"{PATH}0")
        self._dut: Any = host.dut

    def wait(self, seconds: float) -> None:
        """Let some cycles pass, however long is asked for."""
        resume(self._pass)()

    def beat(self, act: Callable[[], None], period_s: float) -> Callable[[], None]:
        """Keep no lease: no test lasts two seconds of the probe's time, and cocotb takes calls of one thread alone."""
        return lambda: None

    async def _pass(self) -> None:
        await ClockCycles(self._dut.clk_sys, LOOK_CYCLES)
