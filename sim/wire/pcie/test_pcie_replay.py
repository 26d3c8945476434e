# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The preset replay behind PCIe: traces from the host's memory by DMA into SDRAM, and from there onto the lines of two ports."""

import json
import re

import cocotb
import pytest
from cocotb.triggers import ClockCycles

from liteprobe.cores.formats import TransmitState
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.frames.gmii import GmiiSink
from liteprobe.sim.drivers.pcie.host import Host, map_of_run
from liteprobe.sim.drivers.pcie.probes import PORTS, TOP, PcieReplay, writer
from liteprobe.sim.drivers.pcie.streaming import slots
from liteprobe.sim.drivers.replay.capture_files import pcap, random_packets
from liteprobe.sim.drivers.tools.compiled import REPOSITORY
from liteprobe.sim.drivers.tools.wire import run_wire_test
from liteprobe.sim.models.traffic.replay import decode
from liteprobe.soc.pcie import litepcie_sources

SESSION = 0x4321
PRIME   = 2000 # Words: the others come while frames leave.
TICK_FS = 8_000_000
FRAMES  = 120
OVERHEAD = 24 # Octets on the line beside those of a frame.


@pytest.mark.full
def test_traces_reach_the_lines_over_pcie():
    folder = REPOSITORY / "build" / "wire" / "pcie_replay"
    folder.mkdir(parents=True, exist_ok=True)
    map_file = folder / "csr.json"
    run_wire_test(__file__, TOP, writer(PcieReplay, map_file), "pcie_replay", {"PCIE_MAP": str(map_file)})
    assert_offsets_are_those_of_the_driver(json.loads(map_file.read_text())["csr_registers"])


def assert_offsets_are_those_of_the_driver(registers):
    """LitePCIe's driver has them as numbers."""
    text = (litepcie_sources() / "kernel" / "config.h").read_text()
    offsets = {name: int(value, 0) for name, value in re.findall(r"PCIE_DMA_(\w+)_OFFSET\s+(0x\w+)", text)}
    for channel in range(PORTS):
        base = registers[f"pcie_dma{channel}_writer_enable"]["addr"]
        for name in ("ENABLE", "TABLE_VALUE", "TABLE_WE", "TABLE_LOOP_PROG_N", "TABLE_LOOP_STATUS", "TABLE_LEVEL"):
            ours = registers[f"pcie_dma{channel}_reader_{name.lower()}"]["addr"]
            assert ours == base + offsets[f"READER_{name}"]
        assert registers[f"pcie_dma{channel}_reader_table_reset"]["addr"] == base + offsets["READER_TABLE_FLUSH"]


class NoPins(Host):
    """A host of a probe without pins for blocks."""

    takes_pins = None


def trace_words(seed):
    """Return the records of frames of all lengths and octets, by a file."""
    path = map_of_run().with_name("trace.pcap")
    path.write_bytes(pcap(random_packets(seed, FRAMES, gap_ns=9000)))
    return [int(word) for chunk in Trace.from_pcap(path).records() for word in chunk]


def starts(records):
    """Return the tick of each start: when it is due, or when the line is free."""
    free, found = 0, []
    for one in records:
        found.append(max(one.tick, free))
        free = found[-1] + len(one.octets) + OVERHEAD
    return found


async def is_state(host, state):
    """Wait until all ports are in a state."""
    for _ in range(600):
        if all([await host.read(f"port{port}_tx_state") == state for port in range(PORTS)]):
            return
        await ClockCycles(host.dut.clk_sys, 500)
    raise AssertionError(f"not {state!r}: {[await host.read(f'port{port}_tx_state') for port in range(PORTS)]}")


@cocotb.test()
async def traces_of_two_ports_leave_as_they_are_and_start_in_one_tick(dut):
    host = NoPins(dut, map_of_run())
    for port in range(PORTS):
        getattr(dut, f"gmii{port}_link_up").value = 1
    await host.boot()
    sinks = []
    for port in range(PORTS):
        pins = [getattr(dut, f"gmii{port}_tx_{name}") for name in ("en", "data")]
        sinks.append(GmiiSink(dut.clk_timebase, *pins, pins[1], TICK_FS))
        cocotb.start_soon(sinks[-1].run())
    words = [trace_words(f"{cocotb.RANDOM_SEED} {port}") for port in range(PORTS)]
    for port in range(PORTS):
        prefix = f"port{port}_replay_"
        settings = {"session": SESSION, "loops": 1, "prime": PRIME, "open": 1, "arm": 1}
        assert len(words[port]) > 2 * PRIME
        for name, value in settings.items():
            await host.write(prefix + name, value)
        await host.start_reader(port, 32)
        given = slots(port, SESSION, words[port], start=0)
        assert len(given) < 32
        for number, one in enumerate(given):
            host.reader_ring(port)[1][4096 * number : 4096 * (number + 1)] = one
        await host.write(f"replay_dma_filled{port}", len(given))
    await is_state(host, TransmitState.READY)
    await host.write("probe_start", 2**PORTS - 1)
    await is_state(host, TransmitState.IDLE)
    first = sinks[0].frames[0].start - decode(words[0])[0].tick
    for port, sink in enumerate(sinks):
        wanted = decode(words[port])
        assert [frame.data for frame in sink.frames] == [one.octets for one in wanted]
        assert [frame.start - first for frame in sink.frames] == starts(wanted)
        names = ("frames", "underruns", "errors", "accepted", "strange")
        counts = {name: await host.read(f"port{port}_replay_{name}") for name in names}
        # Less those of the file that have no octets, which no frame is made of.
        assert counts == {"frames": len(wanted), "underruns": 0, "errors": 0, "accepted": len(words[port]), "strange": 0}
