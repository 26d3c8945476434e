# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Frames of two lines through capture, ring and DMA into the host's memory: all of them, or exactly counted."""

from contextlib import ExitStack, closing
from unittest.mock import patch

import cocotb
from cocotb.task import bridge
from cocotb.triggers import ClockCycles
from scapy.utils import RawPcapNgReader

from liteprobe.cores.formats import DMA_SLOTS
from liteprobe.host.capture import live
from liteprobe.host.capture.request import Transport
from liteprobe.host.capture.write.output import Output
from liteprobe.host.capture.write.pcapng import PortInterface, PcapngWriter
from liteprobe.host.capture.session import CaptureSession
from liteprobe.host.capture.request import CaptureSettings
from liteprobe.host.capture.decode import BlockDecoder
from liteprobe.host.probe import Probe
from liteprobe.sim.drivers.pcie.host import map_of_run
from liteprobe.sim.drivers.pcie.probes import LINES, record
from liteprobe.sim.drivers.pcie.capturing import CHANNELS, GAP_AND_PREAMBLE, Capturing
from liteprobe.sim.drivers.pcie.capturing import BenchLink, DriverFile
from liteprobe.sim.drivers.tools.wire import is_full, with_full
from liteprobe.sim.models.receive.capture import Gap, decode


@cocotb.test()
@cocotb.parametrize((("length", "count"), with_full([(60, 300)], [(252, 250), (1516, 60)])))
async def both_lines_at_line_rate_arrive_octet_for_octet(dut, length, count):
    host = Capturing(dut)
    await host.begin(range(CHANNELS))
    await host.lines(length, count)
    while not await host.are_sent(count):
        await host.collect()
    await host.end()
    assert host.check(length, count) == [0] * CHANNELS
    assert [await host.dropped(channel) for channel in range(CHANNELS)] == [0] * CHANNELS


@cocotb.test()
async def host_that_takes_nothing_costs_its_own_frames_and_every_one_is_counted(dut):
    host = Capturing(dut, slots=8)
    await host.begin([0, 2])
    await host.lines(1020, 60, mask=0)
    while not await host.are_sent(60):
        await ClockCycles(dut.clk_sys, 500)
        for channel in (2,): # Channel 0 has nobody who takes it.
            await host.look(channel, await host.read(f"capture_dma_written{channel}"))
            await host.give_back(channel)
    assert host.taken[0] == 0 and await host.read("capture_dma_written0") == 8
    lost = await host.dropped(0)
    assert lost > 30 and await host.dropped(2) == 0
    await host.end()
    gaps = host.check(1020, 60, mask=0)
    assert gaps == [await host.dropped(channel) for channel in range(CHANNELS)] and gaps[0] == lost


@cocotb.test(skip=not is_full())
async def host_that_comes_back_finds_the_place_of_the_gap(dut):
    host = Capturing(dut, slots=8)
    await host.begin([0, 2])
    await host.lines(508, 250, mask=0)
    for _ in range(3):
        await ClockCycles(dut.clk_sys, 30_000) # Away.
        for _ in range(8): # Back.
            await host.collect()
    while not await host.are_sent(250):
        await host.collect()
    await host.end()
    gaps = host.check(508, 250, mask=0)
    assert gaps == [await host.dropped(channel) for channel in range(CHANNELS)]
    assert gaps[0] > 0 and sum(isinstance(one, Gap) for one in decode(host.found[0], 0)) >= 2


@cocotb.test(skip=not is_full())
@cocotb.parametrize(part=with_full([0.1], [0.5]))
async def slow_root_complex_loses_nothing_uncounted(dut, part):
    host = Capturing(dut)
    await host.begin(range(CHANNELS))
    turn = iter(range(1 << 60))
    host.endpoint.stall = lambda: next(turn) % 10 >= 10 * part
    await host.lines(252, 300)
    while not await host.are_sent(300):
        await host.collect()
    host.endpoint.stall = lambda: False # What is under way then comes soon.
    await host.end()
    gaps = host.check(252, 300)
    assert gaps == [await host.dropped(channel) for channel in range(CHANNELS)]
    assert (sum(gaps) > 0) == (part == 0.1)


@cocotb.test(skip=not is_full())
async def stop_and_restart_in_full_flow_lose_nothing_uncounted(dut):
    host = Capturing(dut)
    await host.begin([0, 2])
    await host.lines(252, 300, mask=0)
    for cycles in (3000, 5000, 7000):
        await ClockCycles(dut.clk_sys, cycles)
        await host.collect()
        for channel in (0, 2):
            await host.halt(channel)
        for channel in (0, 2):
            await host.run(channel)
    while not await host.are_sent(300):
        await host.collect()
    await host.end()
    gaps = host.check(252, 300, mask=0)
    assert gaps == [await host.dropped(channel) for channel in range(CHANNELS)]


@cocotb.test()
async def second_capture_begins_anew(dut):
    host = Capturing(dut)
    await host.begin([0, 2])
    for _ in range(2):
        await host.lines(60, 100, mask=0)
        while not await host.are_sent(100):
            await host.collect()
        await host.end()
        assert host.check(60, 100, mask=0) == [0] * CHANNELS
        for line in range(LINES):
            await host.write(f"line{line}_count", 0)
            await host.write(f"line{line}_clear", 1)
        host.found = [[] for _ in range(CHANNELS)]
        await host.write("capture_enable", 1)
        await ClockCycles(dut.clk_sys, 1000)


class NoSettings(CaptureSettings):
    """For a probe whose frames come from `Line`: nothing chooses among them."""

    def write(self, registers, ports):
        """Tell the probe nothing."""

    def begin(self, registers, ports):
        """Tell the probe nothing."""


def captured(host, path, channels, length, count, mask):
    """Capture the frames of both lines as `liteprobe capture --via dma` does; return counters and blocks of each channel."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(live, "DeviceFile", lambda path: DriverFile(host, path)))
        probe = stack.enter_context(Probe(BenchLink(host), map_of_run()))
        transport = live.open_transport(probe, Transport(), channels, stack)
        begun = live.begin(probe, NoSettings(channels), transport, stack)
        assert transport.kind == "dma"
        for line in range(LINES):
            values = {"length": length, "spacing": length + GAP_AND_PREAMBLE, "mask": mask, "count": count}
            probe.registers.write_many({f"line{line}_{name}": value for name, value in values.items()})
        pcapng = PcapngWriter(
            stack.enter_context(closing(Output(path))), [PortInterface(f"port{line}") for line in range(LINES)])
        session = CaptureSession([pcapng], decoder=BlockDecoder(dict.fromkeys(channels, 0)))
        is_stopping = False
        for blocks, lengths in begun.source.batches():
            session.take(blocks, lengths)
            if not is_stopping and all(probe.registers.read(f"line{line}_sent") == count for line in range(LINES)):
                begun.source.stop()
                is_stopping = True
        session.finish()
        pcapng.close()
        return session.decoder.counters, {n: ring.taken for n, ring in transport.dma.rings.items()}


@cocotb.test()
@cocotb.parametrize((("length", "count", "mask"), with_full([(60, 200, 1)], [(1516, 280, 0)])))
async def host_library_brings_frames_from_the_gateware_into_pcapng(dut, length, count, mask):
    host = Capturing(dut)
    await host.boot()
    path = map_of_run().with_name("capture.pcapng")
    channels = (0, 1, 2, 3) if mask else (0, 2)
    counters, taken = await bridge(captured)(host, path, channels, length, count, mask)
    with RawPcapNgReader(str(path)) as reader:
        found = sorted((meta.tshigh << 32 | meta.tslow, octets) for octets, meta in reader)
    wanted = [record(line, number, length, 0) for line in range(LINES) for number in range(count)]
    assert found == [(one.stamp, b"".join(word.to_bytes(4, "little") for word in one.octets)) for one in wanted]
    assert (counters.missing, counters.damaged, counters.broken, counters.gaps) == (0, 0, 0, 0)
    assert mask or min(taken.values()) > DMA_SLOTS, "the rings wrap"
    assert [await host.read(f"pcie_dma{channel}_writer_enable") & 1 for channel in range(CHANNELS)] == [0] * CHANNELS
    assert await host.read("capture_enable") == 0
