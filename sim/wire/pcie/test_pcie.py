# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""PCIe: enumeration, registers through BAR0, and blocks into rings in the host's memory."""

import random
from pathlib import Path

import cocotb
from cocotb.triggers import ClockCycles

from liteprobe.cores.formats import DMA_BLOCK_BYTES, DMA_SLOT_BYTES, DMA_SLOTS
from liteprobe.sim.drivers.tools.compiled import REPOSITORY
from liteprobe.sim.drivers.pcie.host import Host, PinsRing, map_of_run
from liteprobe.sim.drivers.pcie.probes import TOP, PcieCapture, writer
from liteprobe.sim.drivers.tools.wire import is_full, run_wire_test, with_full

CHANNELS = 3
BLOCKS = 20 if is_full() else 8 # Of each channel.
MANY = 30 if is_full() else 10


def test_registers_blocks_and_captures_over_pcie():
    folder = REPOSITORY / "build" / "wire" / "pcie"
    folder.mkdir(parents=True, exist_ok=True)
    map_file = folder / "csr.json"
    modules = [Path(__file__).stem, "cocotb_pcie_capture"]
    run_wire_test(__file__, TOP, writer(PcieCapture, map_file), "pcie", {"PCIE_MAP": str(map_file)}, modules=modules)


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
    sent = [blocks(channel, BLOCKS) for channel in range(CHANNELS)]
    for channel in range(CHANNELS):
        await host.start(channel, BLOCKS)
        ring.waiting[channel].extend(sent[channel])
    while any(ring.waiting) or any(ring.given):
        await ClockCycles(dut.clk_sys, 100)
    for channel in range(CHANNELS):
        assert await host.read(f"capture_dma_written{channel}") == BLOCKS
        for number, block in enumerate(sent[channel]):
            assert host.block(channel, number) == filled(block), (channel, number)


async def drained(dut, ring):
    """Wait until all blocks are done."""
    while any(ring.waiting) or any(ring.given):
        await ClockCycles(dut.clk_sys, 50)


@cocotb.test()
@cocotb.parametrize(max_payload=with_full([0], [1, 2]))
async def blocks_of_any_length_fill_slots_of_their_own(dut, max_payload):
    host, ring = await running(dut, max_payload=max_payload)
    sent = [block for words in (1, 2, 3, 4, 5, 31, 32, 33, 367, 368, 383, 384) for block in blocks(0, 2, words, words)]
    await host.start(0, len(sent))
    ring.waiting[0].extend(sent)
    await drained(dut, ring)
    assert await host.read("capture_dma_written0") == len(sent) # The answer comes behind the last block.
    assert [host.block(0, number) for number in range(len(sent))] == [filled(block) for block in sent]
    slot = host.rings[0][1][DMA_BLOCK_BYTES:DMA_SLOT_BYTES]
    assert bytes(slot) == b"\xa5" * len(slot), "what is behind a block was written to"


@cocotb.test()
async def ring_wraps_and_never_overtakes_the_host(dut):
    host, ring = await running(dut, max_payload=2) # Few packets a block, for there are many blocks.
    await host.start(1)
    sent = blocks(1, DMA_SLOTS + 9, words=8)
    ring.waiting[1].extend(sent)
    taken, found = 0, []
    source = random.Random(cocotb.RANDOM_SEED)
    while taken < len(sent):
        await ClockCycles(dut.clk_sys, source.randrange(20, 20_000))
        written = await host.read("capture_dma_written1")
        assert written - taken <= DMA_SLOTS
        found += [host.block(1, number) for number in range(taken, written)]
        taken = written
        await host.write("capture_dma_taken1", taken)
    assert found == [filled(block) for block in sent]


@cocotb.test(skip=not is_full())
async def full_ring_holds_its_own_channel_and_no_other(dut):
    host, ring = await running(dut)
    for channel in (0, 2):
        await host.start(channel)
    sent = [blocks(channel, DMA_SLOTS + 40, words=8) for channel in range(CHANNELS)]
    ring.waiting[0].extend(sent[0])
    ring.waiting[1].extend(sent[1][:5]) # Its DMA was never started.
    for number in range(0, len(sent[2]), 50):
        ring.waiting[2].extend(sent[2][number : number + 50])
        await ClockCycles(dut.clk_sys, 20_000)
        await host.write("capture_dma_taken2", number)
    await ClockCycles(dut.clk_sys, 20_000)
    assert [await host.read(f"capture_dma_written{channel}") for channel in range(CHANNELS)] == [DMA_SLOTS, 0, DMA_SLOTS + 40]
    assert list(ring.waiting[0]) == sent[0][DMA_SLOTS:] and len(ring.waiting[1]) == 5
    assert [host.block(0, number) for number in range(DMA_SLOTS)] == [filled(block) for block in sent[0][:DMA_SLOTS]]
    await host.write("capture_dma_taken0", 3) # Three slots are free again: as many blocks come.
    await ClockCycles(dut.clk_sys, 20_000)
    assert await host.read("capture_dma_written0") == DMA_SLOTS + 3
    assert [host.block(0, DMA_SLOTS + number) for number in range(3)] == [filled(block) for block in sent[0][DMA_SLOTS:][:3]]


@cocotb.test()
@cocotb.parametrize(part=with_full([0.5], [0.02]))
async def slow_root_complex_loses_nothing(dut, part):
    host, ring = await running(dut)
    source = random.Random(cocotb.RANDOM_SEED)
    sent = [blocks(channel, 6) for channel in range(CHANNELS)]
    for channel in range(CHANNELS):
        await host.start(channel, 6)
    host.endpoint.stall = lambda: source.random() > part
    for channel in range(CHANNELS):
        ring.waiting[channel].extend(sent[channel])
    await drained(dut, ring)
    for channel in range(CHANNELS):
        assert await host.read(f"capture_dma_written{channel}") == 6 # The answer comes behind the last block.
        assert [host.block(channel, number) for number in range(6)] == [filled(block) for block in sent[channel]]


@cocotb.test()
@cocotb.parametrize(cycles=with_full([2500], [150, 1000]))
async def stop_and_restart_at_any_time_lose_and_repeat_nothing(dut, cycles):
    host, ring = await running(dut)
    sent, found = blocks(0, MANY), []
    ring.waiting[0].extend(sent)
    while len(found) < len(sent):
        await host.start(0, len(sent))
        await ClockCycles(dut.clk_sys, cycles)
        written = await host.stop(0)
        found += [host.block(0, number) for number in range(written)]
        cycles += 137
    assert found == [filled(block) for block in sent]


@cocotb.test()
async def pointer_that_is_read_is_behind_the_blocks_it_counts(dut):
    host, ring = await running(dut)
    await host.start(0, MANY)
    sent = blocks(0, MANY)
    ring.waiting[0].extend(sent)
    checked = 0
    while checked < len(sent):
        written = await host.read("capture_dma_written0")
        for number in range(checked, written): # At once, with no time passing.
            assert host.block(0, number) == filled(sent[number]), number
        checked = written


@cocotb.test()
async def interrupt_comes_each_32_blocks_of_a_channel(dut):
    host, ring = await running(dut)
    await host.start(0, 70)
    await host.write("pcie_msi_enable", 1)
    ring.waiting[0].extend(blocks(0, 70, words=8))
    await drained(dut, ring)
    await ClockCycles(dut.clk_sys, 500)
    assert host.interrupts == 2
    assert await host.read("pcie_msi_vector") == 1
    await host.write("pcie_msi_clear", 1)
    assert await host.read("pcie_msi_vector") == 0
