# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The PCIe link and the DMA rings, against a stand-in for the driver that obeys its ioctls and its checks."""

import errno
import json
import os
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from liteprobe.cores.formats import BLOCK_WORDS, DMA_SLOT_BYTES, DMA_SLOTS, map_hash
from liteprobe.host.base.errors import NoProbeError, ProbeError, UsageError
from liteprobe.host.device.link.dma import (
    IOCTL_DMA_INFO,
    IOCTL_DMA_WRITER,
    IOCTL_LOCK,
    DmaCapture,
    DmaRing,
    device_of_channel,
)
from liteprobe.host.device.link.pcie import IOCTL_REG, DeviceFile, PcieLink
from liteprobe.host.device.link.url import open_link
from liteprobe.host.device.registers import Registers, open_registers
from liteprobe.host.probe import Probe
from liteprobe.sim.drivers.tools.refusals import refusal

BAR0_BYTES = 16 << 20
CSR_BASE = 0xF0000000
NAMES = ["probe_map_hash", "capture_dma_written0", "capture_dma_taken0", "capture_dma_written1", "capture_dma_taken1"]
NAMES += ["pcie_dma0_writer_enable", "pcie_dma1_writer_enable"]
MAP: dict[str, Any] = {
    "csr_registers": {name: {"addr": CSR_BASE + 4 * n, "size": 1, "type": "rw"} for n, name in enumerate(NAMES)},
    "memories": {"port0_records": {"base": 0x80008000, "size": 64, "type": "io"}},
    "constants": {},
}
HASH = map_hash(MAP)


class Driver:
    """A probe behind LitePCIe's driver: BAR0, and a ring a channel."""

    def __init__(self) -> None:
        self.bar0 = {0: HASH, 20: 2, 24: 2}
        self.memory = [bytearray(DMA_SLOT_BYTES * DMA_SLOTS) for _ in range(2)]
        self.locked = [False, False]
        self.running = [False, False]
        self.is_gone = False
        self.buffers = (DMA_SLOT_BYTES, DMA_SLOTS)
        self.sent = [0, 0]
        self.files: list[File] = []

    def open(self, path: str) -> "File":
        return File(self, int(path.removeprefix("/dev/litepcie")))

    def write_block(self, channel: int, block: bytes) -> None:
        """Do as the probe does: only where a slot is free."""
        written, taken = (self.bar0.get(4 * (1 + 2 * channel + which), 0) for which in (0, 1))
        assert self.running[channel] and (written - taken) % 2**32 < DMA_SLOTS
        at = written % DMA_SLOTS * DMA_SLOT_BYTES
        self.memory[channel][at : at + 1536] = block.ljust(1536, b"\0")
        self.bar0[4 * (1 + 2 * channel)] = (written + 1) % 2**32


class File:
    """One of its device files."""

    def __init__(self, driver: Driver, channel: int) -> None:
        self.driver, self.channel, self.is_closed = driver, channel, False
        self.driver.files.append(self)

    def ioctl(self, request: int, argument: bytearray) -> None:
        driver, channel = self.driver, self.channel
        if driver.is_gone:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        if request == IOCTL_REG:
            address, word, is_write = struct.unpack("=IIB3x", argument)
            offset = address - CSR_BASE
            assert 0 <= offset < BAR0_BYTES, f"the kernel would crash: {address:#x}"
            if is_write:
                driver.bar0[offset] = word
            argument[:] = struct.pack("=IIB3x", address, driver.bar0.get(offset, 0), is_write)
        elif request == IOCTL_LOCK:
            _, wants, _, releases, _, _ = argument
            is_ours = not (wants and driver.locked[channel])
            driver.locked[channel] = bool((driver.locked[channel] or wants) and not releases)
            argument[4:] = bytes([1, is_ours])
        elif request == IOCTL_DMA_INFO:
            size, count = driver.buffers
            argument[:] = struct.pack("=6Q", 0, size, count, size * count, size, count)
        elif request == IOCTL_DMA_WRITER:
            is_on = bool(argument[0])
            if is_on and not driver.running[channel]:
                driver.bar0[4 * (1 + 2 * channel)] = 0
            driver.running[channel] = is_on
            driver.bar0[4 * (5 + channel)] = 1 if is_on else 2  # Idle.
        else:
            raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))

    def map(self, length: int, offset: int, is_writable: bool = False) -> memoryview:
        size, count = self.driver.buffers
        assert (length, offset) == (size * count, size * count), "the driver maps nothing else"
        return memoryview(self.driver.memory[self.channel])

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def driver() -> Driver:
    return Driver()


def link_of(driver: Driver) -> PcieLink:
    return PcieLink(driver.open("/dev/litepcie0"), "/dev/litepcie0")


def ring_of(driver: Driver, channel: int = 0) -> DmaRing:
    registers = Registers(link_of(driver), MAP)
    return DmaRing(driver.open(f"/dev/litepcie{channel}"), registers, channel, f"/dev/litepcie{channel}")


def blocks(count: int, seed: int) -> list[bytes]:
    source = random.Random(seed)
    return [source.randbytes(4 * source.randrange(5, BLOCK_WORDS + 1)) for _ in range(count)]


def octets(parts: list[np.ndarray[Any, Any]]) -> list[bytes]:
    return [row.tobytes() for part in parts for row in part]


def filled(block: bytes) -> bytes:
    return block.ljust(4 * BLOCK_WORDS, b"\0")


def test_words_go_to_where_bar0_has_each_region(driver: Driver) -> None:
    link = link_of(driver)
    assert list(link.write(0xF0000010, [7, 8])) == [7, 8]
    link.write(0x80008004, [9])
    link.write(0x40000000, [10])
    link.write(0x00000100, [11])
    places = {0x10: 7, 0x14: 8, 0x400000 + 0x8004: 9, 0x800000: 10, 0xC00000 + 0x100: 11}
    assert {offset: driver.bar0[offset] for offset in places} == places
    assert list(link.read_scattered([0x80008004, 0xF0000010])) == [9, 7]


@pytest.mark.parametrize("address", [0xF0400000, 0x80400000, 0x20000000, 0x00400000, 0xFFFFFFFC, 0xF0000002])
def test_address_beyond_bar0_never_reaches_the_kernel(driver: Driver, address: int) -> None:
    with pytest.raises(UsageError, match="can't be reached over PCIe: give one of a word in the register map"):
        link_of(driver).read(address)


def test_probe_is_confirmed_by_its_map(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "csr.json"
    path.write_text(json.dumps(MAP))
    assert open_registers(link_of(driver), path).read("probe_map_hash") == HASH


def test_no_such_device_says_how_to_load_the_driver(tmp_path: Path) -> None:
    with pytest.raises(
        NoProbeError, match=r"No such file.*lspci -d 10ee:.*make -C build/sqrl_acorn/driver/kernel.*init.sh"
    ):
        open_link(f"pcie://{tmp_path}/litepcie0")


def test_device_of_another_user_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)
    assert "run as root, or let a udev rule" in refusal(DeviceFile, "/dev/litepcie0", error=NoProbeError)


def test_file_that_is_no_device_of_the_driver_is_no_probe(tmp_path: Path) -> None:
    path = tmp_path / "litepcie0"
    path.write_bytes(b"")
    with pytest.raises(NoProbeError, match="is not a device of LitePCIe's driver"), Probe(f"pcie://{path}"):
        pass


def test_probe_that_is_pulled_out_is_said_to_be_gone(driver: Driver) -> None:
    link, ring = link_of(driver), ring_of(driver)
    driver.is_gone = True
    assert "is gone" in refusal(link.read, CSR_BASE, error=NoProbeError)
    assert "is gone" in refusal(ring.start, error=NoProbeError)


def test_every_octet_of_the_ring_is_seen_once_and_in_order_without_a_copy(driver: Driver) -> None:
    ring, source, found = ring_of(driver), random.Random(2), []
    sent = blocks(5 * DMA_SLOTS, seed=3)
    ring.start()
    waiting = list(sent)
    while waiting or ring.blocks():
        room = DMA_SLOTS - sum(len(part) for part in ring.blocks())
        for _ in range(min(len(waiting), source.randrange(room + 1))):
            driver.write_block(0, waiting.pop(0))
        parts = ring.blocks()
        assert len(parts) <= 2 and all(np.shares_memory(part, np.frombuffer(driver.memory[0], "<u4")) for part in parts)
        count = source.randrange(sum(map(len, parts)) + 1)
        found += octets(parts)[:count]
        ring.take(count)
    assert found == [filled(block) for block in sent]


def test_pointers_wrap_at_32_bits(driver: Driver) -> None:
    ring = ring_of(driver)
    ring.start()
    driver.bar0[4] = driver.bar0[8] = 2**32 - 3
    ring.taken = ring._written = 2**32 - 3
    sent = blocks(7, seed=5)
    for block in sent:
        driver.write_block(0, block)
    assert octets(ring.blocks()) == [filled(block) for block in sent]
    ring.take(7)
    assert driver.bar0[8] == 4 and ring.blocks() == []


def test_what_came_before_the_stop_can_still_be_taken(driver: Driver) -> None:
    ring = ring_of(driver)
    ring.start()
    sent = blocks(3, seed=7)
    for block in sent:
        driver.write_block(0, block)
    ring.stop()
    assert not driver.running[0] and octets(ring.blocks()) == [filled(block) for block in sent]
    ring.take(3)
    ring.start()
    assert ring.blocks() == [] and driver.bar0[8] == 0


def test_more_than_is_there_cannot_be_taken(driver: Driver) -> None:
    ring = ring_of(driver)
    ring.start()
    assert "1 blocks can't be taken: 0 are there" in refusal(ring.take, 1, error=ValueError)


def test_probe_that_was_reset_meanwhile_is_told(driver: Driver) -> None:
    ring = ring_of(driver)
    ring.start()
    driver.bar0[4] = 5
    ring.take(sum(map(len, ring.blocks())))
    driver.bar0[4] = 0
    assert "the probe was reset, start the capture anew" in refusal(ring.blocks, error=ProbeError)


def test_ring_of_another_program_is_refused(driver: Driver) -> None:
    ring_of(driver)
    assert "another program takes what /dev/litepcie0 captures: end it" in refusal(ring_of, driver, error=ProbeError)


def test_driver_of_other_gateware_is_refused(driver: Driver) -> None:
    driver.buffers = (8192, 256)
    with pytest.raises(
        ProbeError, match="256 buffers of 8192 octets, not 256 of 4096: load the one that was made with"
    ):
        ring_of(driver)


def test_channels_have_devices_of_their_own(driver: Driver) -> None:
    assert device_of_channel("/dev/litepcie8", 3) == "/dev/litepcie11"
    registers = Registers(link_of(driver), MAP)
    capture = DmaCapture(registers, "/dev/litepcie0", (0, 1), driver.open)
    capture.start()
    assert driver.running == [True, True]
    capture.close()
    assert driver.running == [False, False]


def test_ring_that_cant_be_had_leaves_no_device_open(driver: Driver) -> None:
    registers = Registers(link_of(driver), MAP)
    driver.locked[1] = True
    with pytest.raises(ProbeError, match="another program takes what /dev/litepcie1 captures"):
        DmaCapture(registers, "/dev/litepcie0", (0, 1), driver.open)
    assert [file.is_closed for file in driver.files] == [False, True, True], "all but the link's"


def test_all_devices_are_let_go_where_one_is_gone(driver: Driver) -> None:
    capture = DmaCapture(Registers(link_of(driver), MAP), "/dev/litepcie0", (0, 1), driver.open)
    capture.start()
    driver.is_gone = True
    assert "is gone" in refusal(capture.close, error=NoProbeError)
    assert [file.is_closed for file in driver.files] == [False, True, True]


def test_device_of_another_channel_is_told(driver: Driver) -> None:
    registers = Registers(link_of(driver), MAP)
    capture = DmaCapture(registers, "/dev/litepcie1", (0,), driver.open)
    with pytest.raises(ProbeError, match="/dev/litepcie1 isn't the device of channel 0: give the probe's first one"):
        capture.start()
