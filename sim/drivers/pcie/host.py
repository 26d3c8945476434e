# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The root complex on the other side of the probe's PCIe pins, and what a driver does there, for cocotb."""

import json
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, First, RisingEdge, ValueChange, with_timeout
from cocotbext.pcie.core import Device, Endpoint, RootComplex
from cocotbext.pcie.core.caps import MsiCapability
from cocotbext.pcie.core.tlp import Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId

from liteprobe.cores.formats import (
    BAR0_SEGMENT_BYTES, BAR0_SEGMENTS, DMA_BLOCK_BYTES, DMA_SLOT_BYTES, DMA_SLOTS, map_hash,
)

VENDOR, DEVICE = 0x10EE, 0x7021 # Of Xilinx, and one lane: what the driver looks for.
SYS_NS = 8
MEMORY_REQUESTS = (TlpType.MEM_READ, TlpType.MEM_READ_64, TlpType.MEM_WRITE, TlpType.MEM_WRITE_64)
COMPLETIONS = (TlpType.CPL, TlpType.CPL_DATA)
BEAT = 8
REST_CYCLES = 20 # Until it is looked again whether there is a block to give.


class PinsEndpoint(Endpoint): # type: ignore[misc]
    """Takes the configuration itself, as the hard block does, and passes all else between the link and the pins."""

    def __init__(self, dut: Any, bar0_bytes: int) -> None:
        super().__init__()
        self.dut = dut
        self.vendor_id, self.device_id = VENDOR, DEVICE
        self.msi_cap = MsiCapability()
        self.register_capability(self.msi_cap)
        self.configure_bar(0, bar0_bytes)
        self.requests: Queue[Tlp] = Queue()
        self.stall: Callable[[], bool] = lambda: False
        self.busy_beats = 0 # In which the probe sent a word.
        self.out: Queue[Tlp] = Queue(2)
        for kind in MEMORY_REQUESTS:
            self.register_rx_tlp_handler(kind, self.requests.put)

    def start(self) -> None:
        """Begin to move words."""
        dut = self.dut
        dut.pcie_rx_valid.value = dut.pcie_tx_ready.value = 0
        for run in (self._to_probe, self._from_probe, self._to_link, self._interrupts, self._configuration):
            cocotb.start_soon(run())

    async def handle_tlp(self, tlp: Tlp) -> None:
        """Give the probe the answers to what it read, too."""
        if tlp.fmt_type in COMPLETIONS:
            tlp.release_fc()
            await self.requests.put(tlp)
        else:
            await super().handle_tlp(tlp)

    async def _configuration(self) -> None:
        dut = self.dut
        while True:
            dut.pcie_id.value = int(self.pcie_id)
            dut.pcie_max_payload_size.value = 128 << min(self.pcie_cap.max_payload_size, 2)
            dut.pcie_max_request_size.value = 128 << min(self.pcie_cap.max_read_request_size, 2)
            await ClockCycles(dut.clk_sys, 50)

    async def _to_probe(self) -> None:
        dut = self.dut
        while True:
            octets = bytes((await self.requests.get()).pack())
            for at in range(0, len(octets), BEAT):
                words = [int.from_bytes(octets[n : n + 4], "big") for n in range(at, min(at + BEAT, len(octets)), 4)]
                dut.pcie_rx_valid.value = 1
                dut.pcie_rx_dat.value = words[0] | (words[1] << 32 if len(words) > 1 else 0)
                dut.pcie_rx_be.value = 0xFF if len(words) > 1 else 0x0F
                dut.pcie_rx_last.value = at + BEAT >= len(octets)
                await RisingEdge(dut.clk_sys)
                while not dut.pcie_rx_ready.value:
                    await RisingEdge(dut.clk_sys)
            dut.pcie_rx_valid.value = 0

    async def _from_probe(self) -> None:
        dut, octets = self.dut, bytearray()
        valid, data, enables, last = dut.pcie_tx_valid, dut.pcie_tx_dat, dut.pcie_tx_be, dut.pcie_tx_last # Looked up once.
        begin, beat = RisingEdge(valid), RisingEdge(dut.clk_sys)
        dut.pcie_tx_ready.value = ready = 1
        while True:
            if not valid.value:
                await begin
            await beat
            if ready and valid.value:
                self.busy_beats += 1
                value = int(data.value)
                octets += (value & 0xFFFFFFFF).to_bytes(4, "big")
                if int(enables.value) & 0xF0:
                    octets += (value >> 32).to_bytes(4, "big")
                if last.value:
                    tlp = Tlp.unpack(octets)
                    assert tlp.check(), tlp
                    octets = bytearray()
                    if not self.out.empty():
                        dut.pcie_tx_ready.value = ready = 0
                    await self.out.put(tlp) # Waits for credits of the link.
            wanted = int(not self.stall())
            if wanted != ready:
                dut.pcie_tx_ready.value = ready = wanted

    async def _to_link(self) -> None:
        while True:
            await self.send(await self.out.get())

    async def _interrupts(self) -> None:
        while True:
            await RisingEdge(self.dut.pcie_msi_valid)
            if self.msi_cap.msi_enable:
                cocotb.start_soon(self.msi_cap.issue_msi_interrupt(0))


class Host:
    """A computer with the probe in a slot: registers by name, rings in its memory, as the driver has them.

    ``takes_pins``: the probe's blocks come from pins, not from its capture; None: it has no such pins.
    """

    takes_pins: bool | None = True

    def __init__(self, dut: Any, map_file: Path, max_payload: int = 1) -> None:
        self.dut = dut
        self.map = json.loads(map_file.read_text())
        self.endpoint = PinsEndpoint(dut, len(BAR0_SEGMENTS) * BAR0_SEGMENT_BYTES)
        self.root = RootComplex()
        self.root.max_payload_size = max_payload # 128 << n octets.
        self.device = Device(self.endpoint)
        self.device.upstream_port.max_link_speed = 2
        self.device.upstream_port.max_link_width = 4
        self.root.make_port().connect(self.device)
        self.rings: dict[int, tuple[int, Any]] = {}
        self.reader_rings: dict[int, tuple[int, Any]] = {} # To the probe.
        self.slots_of: dict[int, int] = {}
        self.interrupts = 0

    async def boot(self) -> None:
        """Start clocks, enumerate, enable memory, bus master and MSI."""
        dut = self.dut
        Clock(dut.clk_sys, SYS_NS, unit="ns").start()
        Clock(dut.clk_timebase, 8, unit="ns").start()
        if self.takes_pins is not None:
            dut.block_is_used.value = self.takes_pins
            dut.block_valid.value = 0
        dut.rst_sys.value = 1
        await ClockCycles(dut.clk_sys, 8)
        dut.rst_sys.value = 0
        self.endpoint.start()
        await ClockCycles(dut.clk_sys, 8)
        await with_timeout(self.root.enumerate(), 500, "us")
        self.slot = self.root.find_device(self.endpoint.pcie_id)
        await self.slot.enable_device()
        await self.slot.set_master()
        await self.slot.alloc_irq_vectors(1, 1)
        self.slot.msi_vectors[0].cb.append(self._interrupted)

    async def _interrupted(self) -> None:
        self.interrupts += 1

    # Registers, by their address on the bus -----------------------------------------------------

    def offset(self, address: int) -> int:
        """Return where in BAR0 an address of the bus is."""
        for number, base in enumerate(BAR0_SEGMENTS):
            if base <= address < base + BAR0_SEGMENT_BYTES:
                return number * BAR0_SEGMENT_BYTES + address - base
        raise ValueError(f"{address:#x} is not in BAR0")

    async def read_address(self, address: int) -> int:
        """Return the word at an address of the bus."""
        return await with_timeout(self.slot.bar_window[0].read_dword(self.offset(address)), 500, "us")

    async def write_address(self, address: int, word: int) -> None:
        """Write a word."""
        await self.slot.bar_window[0].write_dword(self.offset(address), word)

    async def put(self, address: int, word: int) -> None:
        """Write a word behind the link, whose model takes longer than all else: for the hundreds of writes of a table."""
        tlp = Tlp()
        tlp.fmt_type = TlpType.MEM_WRITE
        tlp.requester_id = PcieId(0, 0, 0)
        tlp.set_addr_be_data(self.slot.bar_addr[0] + self.offset(address), word.to_bytes(4, "little"))
        await self.endpoint.requests.put(tlp)

    def address(self, name: str) -> int:
        """Return the address of a register."""
        return int(self.map["csr_registers"][name]["addr"])

    async def read(self, name: str) -> int:
        """Return a register of one word."""
        return await self.read_address(self.address(name))

    async def write(self, name: str, value: int) -> None:
        """Write a register of one word."""
        await self.write_address(self.address(name), value)

    def hash(self) -> int:
        """Return what the identity register must read."""
        return map_hash(self.map)

    # Rings, as litepcie_dma_writer_start and _stop of the driver treat them -----------------------

    def ring(self, channel: int) -> tuple[int, Any]:
        """Return address and memory of a channel's ring."""
        if channel not in self.rings:
            self.rings[channel] = self.root.alloc_region(DMA_SLOTS * DMA_SLOT_BYTES)
        return self.rings[channel]

    async def start(self, channel: int, slots: int = DMA_SLOTS) -> None:
        """Give a channel a ring in memory and start its DMA; a run that fills fewer ``slots`` than all needs no more of them."""
        base, memory = self.ring(channel)
        self.slots_of[channel] = slots
        memory[:] = b"\xa5" * len(memory)
        await self.write(f"capture_dma_taken{channel}", 0)
        await self._start(f"pcie_dma{channel}_writer_", base, slots)

    async def _start(self, writer: str, base: int, slots: int) -> None:
        """Start a DMA on a ring: as the driver does, whichever way it goes."""
        await self.write(writer + "enable", 0)
        await self.write(writer + "table_reset", 1)
        await self.write(writer + "table_loop_prog_n", 0)
        await self.read("probe_ports") # Behind which all of that has happened: what follows doesn't come over the link.
        value, enable = self.address(writer + "table_value"), self.address(writer + "table_we")
        for slot in range(slots):
            address = base + slot * DMA_SLOT_BYTES
            await self.put(value, DMA_SLOT_BYTES | (1 << 24)) # No interrupt; `last` ends a block.
            await self.put(value + 4, address & 0xFFFFFFFF)
            await self.put(enable, address >> 32)
        assert await self.read(writer + "table_level") == slots
        await self.write(writer + "table_loop_prog_n", 1)
        await self.write(writer + "enable", 1)
        await self.read("probe_ports") # Behind which all of that has happened.

    async def stop(self, channel: int) -> int:
        """Stop a channel's DMA; return how many blocks are in its ring in all."""
        await self._stop(f"pcie_dma{channel}_writer_")
        return await self.read(f"capture_dma_written{channel}")

    async def start_reader(self, channel: int, slots: int = DMA_SLOTS) -> None:
        """Give a channel's reader a ring in memory, as litepcie_dma_reader_start does, and start it."""
        base, memory = self.reader_ring(channel)
        memory[:] = b"\xa5" * len(memory)
        await self.write(f"replay_dma_filled{channel}", 0)
        await self._start(f"pcie_dma{channel}_reader_", base, slots)

    async def stop_reader(self, channel: int) -> None:
        """Stop it, as litepcie_dma_reader_stop does."""
        await self._stop(f"pcie_dma{channel}_reader_")

    def reader_ring(self, channel: int) -> tuple[int, Any]:
        """Return address and memory of the ring of a channel's reader."""
        if channel not in self.reader_rings:
            self.reader_rings[channel] = self.root.alloc_region(DMA_SLOTS * DMA_SLOT_BYTES)
        return self.reader_rings[channel]

    async def _stop(self, writer: str) -> None:
        await self.write(writer + "table_loop_prog_n", 0)
        await self.write(writer + "table_reset", 1)
        await ClockCycles(self.dut.clk_sys, 1000)
        await self.write(writer + "enable", 0)
        await self.write(writer + "table_reset", 1)

    def block(self, channel: int, number: int) -> bytes:
        """Return what the ring holds of block ``number`` of this run."""
        at = number % self.slots_of[channel] * DMA_SLOT_BYTES
        return bytes(self.rings[channel][1][at : at + DMA_BLOCK_BYTES])


class PinsRing:
    """Stands in for the capture's ring on the block pins: keeps what is not done, gives it again after a rewind."""

    def __init__(self, dut: Any, channels: int) -> None:
        self.dut = dut
        self.waiting: list[deque[bytes]] = [deque() for _ in range(channels)] # What was not given yet.
        self.given: list[deque[bytes]] = [deque() for _ in range(channels)]
        self.done = [0] * channels
        self.is_paused = False
        self.last_channel = 0

    def start(self) -> None:
        """Begin to give blocks."""
        cocotb.start_soon(self._give())
        cocotb.start_soon(self._note())

    async def _note(self) -> None:
        dut = self.dut
        beat, changes = RisingEdge(dut.clk_sys), [ValueChange(dut.block_done), ValueChange(dut.block_rewind)]
        while True:
            done, rewind = int(dut.block_done.value), int(dut.block_rewind.value)
            if not done and not rewind:
                await First(*changes)
            await beat
            done, rewind = int(dut.block_done.value), int(dut.block_rewind.value)
            for channel in range(len(self.waiting)):
                if done >> channel & 1:
                    self.given[channel].popleft()
                    self.done[channel] += 1
                if rewind >> channel & 1:
                    self.waiting[channel].extendleft(reversed(self.given[channel]))
                    self.given[channel].clear()

    def _next(self) -> int | None:
        count = len(self.waiting)
        if not any(self.waiting):
            return None
        is_open = int(self.dut.block_is_open.value)
        for step in range(1, count + 1):
            channel = (self.last_channel + step) % count
            if self.waiting[channel] and is_open >> channel & 1:
                return channel
        return None

    async def _give(self) -> None:
        dut = self.dut
        data, last, ready = dut.block_data, dut.block_last, dut.block_ready
        beat, rest = RisingEdge(dut.clk_sys), ClockCycles(dut.clk_sys, REST_CYCLES)
        while True:
            channel = None if self.is_paused else self._next()
            if channel is None:
                await rest
                continue
            await beat
            self.last_channel = channel
            block = self.waiting[channel].popleft()
            self.given[channel].append(block)
            dut.block_valid.value = 1
            dut.block_channel.value = channel
            for at in range(0, len(block), 4):
                data.value = int.from_bytes(block[at : at + 4], "little")
                last.value = at + 4 == len(block)
                await beat
                while not ready.value:
                    await beat
            dut.block_valid.value = 0


def map_of_run() -> Path:
    """Return the register map of the probe under test."""
    return Path(os.environ["PCIE_MAP"])
