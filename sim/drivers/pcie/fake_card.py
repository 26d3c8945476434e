# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A probe in a PCIe slot behind a stand-in for LitePCIe's driver: what a host captures of it by DMA, or over the bus.

Source: docs/pcie.md ("Rings"); ``driver/kernel/main.c`` of ``liteprobe build sqrl_acorn`` (LitePCIe 2024.12).
"""

import errno
import json
import threading
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from liteprobe.cores.formats import (
    BAR0_SEGMENT_BYTES, BAR0_SEGMENTS, BLOCK_WORDS, CHANNEL_WORDS, CHANNELS, DMA_BLOCK_BYTES, DMA_SLOT_BYTES, DMA_SLOTS,
    ChannelWord, map_hash,
)
from liteprobe.host.capture.decode import Blocks, block_headers, channels_of
from liteprobe.host.base.errors import NoProbeError
from liteprobe.host.device.link.dma import IOCTL_DMA_INFO, IOCTL_DMA_WRITER, IOCTL_LOCK
from liteprobe.host.device.link.pcie import IOCTL_REG, REG
from liteprobe.sim.models.probe.meters import MonitorProbe

PATH = "/dev/litepcie"
RING_BYTES = DMA_SLOTS * DMA_SLOT_BYTES
TABLE, FILTER, RING = 0x80001000, 0x80002000, 0x80100000
CLOSE_STEPS = 20  # From the end of a capture to its last block, and as many more until nothing is open.
POISON = 0xA5  # What a slot holds that was given back.
WRITER_IDLE = 2
PORT = [f"monitor_{name}" for name in ("snap_length", "sample", "sample_seed", "channel_table", "clear", "keep")]
PORT += ["rx_sampled"]
OF_HASH = ("monitor_sample_seed", "monitor_channel_table")


class CardProbe(MonitorProbe):
    """Registers and memories of a monitor with a capture, and rings of the first ``rings`` channels in the host's memory.

    ``with_hash``: its ports hash frames, so they have the registers of that.

    ``writes``: registers that were written, in order.
    """

    def __init__(self, ring_blocks: int, rings: int, with_hash: bool) -> None:
        super().__init__()
        of_port = [name for name in PORT if with_hash or name not in OF_HASH]
        names = [f"capture_{name}" for name in ("enable", "running", "flush_us", "trigger", "ring_blocks", "ring_address")]
        names += ["filter_control", *(f"port{port}_{name}" for port in range(2) for name in of_port)]
        for channel in range(rings):
            names += [f"capture_dma_written{channel}", f"capture_dma_taken{channel}", f"pcie_dma{channel}_writer_enable"]
        registers, first = self.map["csr_registers"], max(self._words) + 4
        for number, name in enumerate(names):
            registers[name] = {"addr": first + 4 * number, "size": 1, "type": "rw"}
            self._words[first + 4 * number] = (name, 0)
        for port in range(2):  # Its snapshot has ``rx_sampled``, too.
            snapshot, last = self.map["memories"][f"port{port}_snapshot"], registers[f"port{port}_rx_sampled"]
            snapshot["size"] = last["addr"] + 4 - snapshot["base"]
        self.map["memories"] |= {
            "capture_channels": {"base": TABLE, "size": 4 * CHANNEL_WORDS * CHANNELS, "type": "io"},
            "filter": {"base": FILTER, "size": 4096, "type": "io"},
        }
        self.values |= dict.fromkeys(names, 0) | {"probe_map_hash": map_hash(self.map)}
        self.values |= {"capture_ring_blocks": ring_blocks, "capture_ring_address": RING}
        self.values |= {f"pcie_dma{channel}_writer_enable": WRITER_IDLE for channel in range(rings)}
        self.writes: list[str] = []

    def _act(self, name: str, word: int) -> None:
        if name.startswith("probe_lease"):
            return super()._act(name, word)
        self.writes.append(name)
        if name.startswith(("port0_rx", "port1_rx", "timebase")):
            super()._act(name, word)

    def table(self, channel: int, word: ChannelWord) -> int:
        """Return a word of the table of channels."""
        return self._memory.get(TABLE + 4 * (CHANNEL_WORDS * channel + word), 0)

    def set_table(self, channel: int, word: ChannelWord, value: int) -> None:
        """Write it, as the gateware does."""
        self._memory[TABLE + 4 * (CHANNEL_WORDS * channel + word)] = value

    def put(self, block: int, words: Sequence[int]) -> None:
        """Write a block of the probe's own ring."""
        self._memory |= {RING + 4 * (BLOCK_WORDS * block + number): word for number, word in enumerate(words)}


class FakeCard:
    """The card and its driver. A step of its time passes with each access to a register.

    A capture has all of its ``blocks`` in the probe's ring at once, as far as there is room, but the last of each channel,
    which is closed when the capture ends. Slots that the host gives back are poisoned.

    Parameters
    ----------
    blocks : array, shape (blocks, 368); numbers of each channel from 0.
    folder : where the register map is written to.
    pace : blocks of a channel that the DMA writes in a step, at the most.
    ring_blocks, rings : blocks of the probe's ring; channels that have a ring in the host's memory.
    with_hash : ports hash frames.

    Attributes
    ----------
    files : all that were opened.
    absent : paths that can't be opened.
    locked : channels whose ring a program has.
    taken : blocks of each channel that the host has given back.
    is_gone, is_stuck : whether the card was pulled out; whether its DMA writes no more.
    """

    def __init__(
        self,
        blocks: Blocks,
        folder: Path,
        pace: int = 3,
        ring_blocks: int = 4096,
        rings: int = CHANNELS,
        with_hash: bool = True,
    ) -> None:
        channels = channels_of(block_headers(blocks))
        self._blocks = {n: blocks[channels == n] for n in range(CHANNELS)}
        self._pace = pace
        self.rings = rings
        self.probe = CardProbe(ring_blocks, rings, with_hash)
        self.map_file = folder / "csr.json"
        self.map_file.write_text(json.dumps(self.probe.map))
        self.memory = [bytearray(RING_BYTES) for _ in range(rings)]
        self.locked: set[int] = set()
        self.files: list[CardFile] = []
        self.absent: set[str] = set()
        self.is_gone = self.is_stuck = False
        self._put = [0] * CHANNELS
        self._lock = threading.Lock()
        self.taken = [0] * rings
        self._steps_left = 0
        self._was_enabled = False

    def open(self, path: str) -> "CardFile":
        """Open the device of a channel, as `DeviceFile` does."""
        number = int(path.removeprefix(PATH))
        if path in self.absent or number >= self.rings:
            raise NoProbeError(f"can't open {path} (absent)")
        self.files.append(CardFile(self, number))
        return self.files[-1]

    @property
    def running(self) -> list[int]:
        """Channels whose DMA runs."""
        return [n for n in range(self.rings) if self.probe.values[f"pcie_dma{n}_writer_enable"] & 1]

    def step(self) -> None:
        """Let some time pass; one thread at a time, as a card does."""
        with self._lock:
            self._note_enable()
            for channel in range(CHANNELS):
                self._capture(channel)
            for channel in range(self.rings):
                self._note_taken(channel)
                room = 0 if self.is_stuck or channel not in self.running else self._pace
                while room and self._send(channel):
                    room -= 1

    def exchange(self, address: int, word: int, is_write: bool) -> int:
        """Write a register, or read it; some time passes."""
        if is_write:
            self.probe.write(address, word)
        self.step()
        return self.probe.read(address)

    def enable(self, channel: int, is_on: bool) -> None:
        """Start the DMA of a channel, or stop it."""
        values = self.probe.values
        if is_on and channel not in self.running:
            values[f"capture_dma_written{channel}"] = 0
            self.taken[channel] = values[f"capture_dma_taken{channel}"]
        values[f"pcie_dma{channel}_writer_enable"] = 1 if is_on else WRITER_IDLE

    # # #

    def _note_enable(self) -> None:
        probe, values = self.probe, self.probe.values
        if values["capture_enable"] and not self._was_enabled:
            self._put = [0] * CHANNELS
            for channel in range(CHANNELS):
                for word in (ChannelWord.READ, ChannelWord.SENT, ChannelWord.WRITTEN, ChannelWord.DROPPED):
                    probe.set_table(channel, word, 0)
                probe.set_table(channel, ChannelWord.TAKEN, probe.table(channel, ChannelWord.BLOCKS))
            values["capture_running"] = 1
        elif self._was_enabled and not values["capture_enable"]:
            self._steps_left = 2 * CLOSE_STEPS
        self._was_enabled = bool(values["capture_enable"])
        if self._steps_left:
            self._steps_left -= 1
            values["capture_running"] = int(self._steps_left > 0)

    def _capture(self, channel: int) -> None:
        """Put blocks into the probe's ring."""
        probe, blocks = self.probe, self._blocks[channel]
        if not probe.values["capture_running"]:
            return
        is_closing = not self._was_enabled and self._steps_left < CLOSE_STEPS
        size = probe.table(channel, ChannelWord.TAKEN)
        most = min(probe.table(channel, ChannelWord.READ) + size, len(blocks) - (not is_closing))
        while self._put[channel] < most:
            number = self._put[channel]
            place = probe.table(channel, ChannelWord.BASE) + number % size
            probe.put(place, blocks[number].tolist())
            self._put[channel] += 1
        probe.set_table(channel, ChannelWord.WRITTEN, self._put[channel])

    def _note_taken(self, channel: int) -> None:
        """Poison what the host gives back."""
        taken = self.probe.values[f"capture_dma_taken{channel}"]
        for number in range(self.taken[channel], taken):
            at = number % DMA_SLOTS * DMA_SLOT_BYTES
            self.memory[channel][at : at + DMA_SLOT_BYTES] = bytes([POISON]) * DMA_SLOT_BYTES
        self.taken[channel] = taken

    def _send(self, channel: int) -> bool:
        """Write a block into the host's memory, if there is one, and a slot for it; return whether there was."""
        written = self.probe.values[f"capture_dma_written{channel}"]
        read = self.probe.table(channel, ChannelWord.READ)
        if read == self._put[channel] or written - self.taken[channel] == DMA_SLOTS:
            return False
        block = self._blocks[channel][read].tobytes()
        at = written % DMA_SLOTS * DMA_SLOT_BYTES
        self.memory[channel][at : at + DMA_BLOCK_BYTES] = block.ljust(DMA_BLOCK_BYTES, b"\0")
        self.probe.values[f"capture_dma_written{channel}"] = written + 1
        for word in (ChannelWord.READ, ChannelWord.SENT):
            self.probe.set_table(channel, word, read + 1)
        return True


class DriverFile:
    """A device file of channel ``channel``, as LitePCIe's driver has it; ``dma``: what starts and stops its DMA.

    ``place``: of the lock of that DMA among what is asked for and answered.
    """

    dma, place = IOCTL_DMA_WRITER, 1

    def __init__(self, card: Any, channel: int) -> None:
        self.card, self.channel = card, channel
        self.is_open, self.has_lock = True, False

    def ioctl(self, request: int, argument: bytearray) -> None:
        """Do as the driver does."""
        assert self.is_open, "used after it was closed"
        if self.card.is_gone:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        if request == IOCTL_REG:
            address, word, is_write = REG.unpack(argument)
            segment, offset = divmod(address - BAR0_SEGMENTS[0], BAR0_SEGMENT_BYTES)
            assert 0 <= segment < len(BAR0_SEGMENTS), f"the kernel would crash: {address:#x}"
            found = self.card.exchange(BAR0_SEGMENTS[segment] + offset, word, is_write)
            argument[:] = REG.pack(address, found, is_write)
        elif request == IOCTL_LOCK:
            is_ours = not (argument[self.place] and self.channel in self.card.locked)
            if argument[self.place] and is_ours:
                self.card.locked.add(self.channel)
                self.has_lock = True
            argument[4:] = bytes([1, 1])
            argument[4 + self.place] = is_ours
        elif request == IOCTL_DMA_INFO:
            argument[:] = struct.pack("=6Q", 0, DMA_SLOT_BYTES, DMA_SLOTS, RING_BYTES, DMA_SLOT_BYTES, DMA_SLOTS)
        elif request == self.dma:
            assert self.has_lock, "a DMA of nobody"
            self.card.enable(self.channel, bool(argument[0]))
        else:
            raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))

    def close(self) -> None:
        """Stop what this file has started, and let its lock go: LitePCIe's ``litepcie_release``."""
        if self.is_open and self.has_lock:
            self.card.enable(self.channel, False)
            self.card.locked.remove(self.channel)
        self.is_open = self.has_lock = False


class CardFile(DriverFile):
    """A device file of a card that captures."""

    def map(self, length: int, offset: int, is_writable: bool = False) -> memoryview:
        """Return the memory of the ring."""
        assert length == offset == RING_BYTES
        return memoryview(self.card.memory[self.channel]).toreadonly()
