# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""PCIe: enumeration, registers through BAR0, and blocks into rings in the host's memory."""

import random

import cocotb
from cocotb.triggers import ClockCycles

from liteprobe.cores.formats import DMA_BLOCK_BYTES
from liteprobe.sim.bench.compiled import REPOSITORY
from liteprobe.sim.bench.pcie import Host, PinsRing, map_of_run
from liteprobe.sim.bench.pcie_probe import TOP, writer
from liteprobe.sim.bench.wire import run_wire_test

CHANNELS = 3


def test_registers_and_blocks_over_pcie():
    folder = REPOSITORY / "build" / "wire" / "pcie"
    folder.mkdir(parents=True, exist_ok=True)
    map_file = folder / "csr.json"
    run_wire_test(__file__, TOP, writer(CHANNELS, map_file), "pcie", {"PCIE_MAP": str(map_file)})


@cocotb.test()
async def the_root_complex_finds_a_probe_and_its_map_is_ours(dut):
    host = Host(dut, map_of_run())
    await host.boot()
    assert await host.read("probe_map_hash") == host.hash()
    assert await host.read("probe_ports") == 1
    assert await host.read("capture_dma_slots") == 256


def blocks(channel, count, seed=0, words=368):
    """Return ``count`` blocks that differ in every word."""
    source = random.Random(f"{channel} {seed}")
    return [number.to_bytes(4, "little") + source.randbytes(4 * words - 4) for number in range(count)]


def filled(block):
    """Return what a slot must hold of a block."""
    return block.ljust(DMA_BLOCK_BYTES, b"\0")


async def running(dut, **options):
    """Return a host that has booted, and the ring on the pins."""
    host = Host(dut, map_of_run(), **options)
    await host.boot()
    ring = PinsRing(dut, CHANNELS)
    ring.start()
    return host, ring


@cocotb.test()
async def blocks_of_all_channels_arrive_octet_for_octet(dut):
    host, ring = await running(dut)
    sent = [blocks(channel, 20) for channel in range(CHANNELS)]
    for channel in range(CHANNELS):
        await host.start(channel)
        ring.waiting[channel].extend(sent[channel])
    while any(ring.waiting) or any(ring.given):
        await ClockCycles(dut.clk_sys, 100)
    for channel in range(CHANNELS):
        assert await host.read(f"capture_dma_written{channel}") == 20
        for number, block in enumerate(sent[channel]):
            assert host.block(channel, number) == filled(block), (channel, number)
