# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Brings transmit ports to pins, and runs programs on them with cocotb."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer
from cocotb.utils import get_sim_time
from numpy.typing import NDArray

from migen import *

from litex.gen import *

from liteprobe.cores.formats import HEADER_OCTETS, TransmitState
from liteprobe.cores.timebase.clock import TimebaseClock
from liteprobe.cores.transmit.counters import COUNTERS
from liteprobe.cores.transmit.frames import program_layout
from liteprobe.cores.transmit.pace import StartGate
from liteprobe.cores.transmit.path import TransmitPath
from liteprobe.cores.transmit.sources.train import NUMBERS, WORD_BITS
from liteprobe.sim.drivers.frames.gmii import GmiiSink
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench, write_bench
from liteprobe.sim.drivers.transmit.shown import ShownCounters, StillNumbers
from liteprobe.sim.models.traffic.trains import ProbeFrame

PORT_INPUTS  = [*program_layout, *((name, WORD_BITS) for name in NUMBERS)] + [
    ("arm", 1), ("stop", 1), ("clear", 1), ("header_adr", 5), ("header_dat", 32), ("header_we", 1),
    ("management_valid", 1), ("management_last", 1), ("management_data", 32), ("management_last_be", 4)]
PORT_OUTPUTS = [(name, 32) for name in COUNTERS] + [("state", 3), ("tx_valid", 1), ("tx_data", 8)]

# Transmit Bench -----------------------------------------------------------------------------------

class TransmitBench(PinnedBench):
    """Transmit ports, a clock and a start gate, on pins.

    Pins: ``<domain>_clk``, ``<domain>_rst`` of ``sys`` and ``timebase``; ``p<n>_<name>`` for each name of
    PORT_INPUTS and PORT_OUTPUTS; ``start_mask``, ``start_request``; ``now``, ``ticks``, ``set``, ``set_time``, ``increment``.
    """
    def __init__(self, ports=2, data_width=32, with_management=True):
        PinnedBench.__init__(self, "sys", "timebase")
        self.clock = clock = TimebaseClock()
        self.gate  = gate  = StartGate(ports)
        for number in range(ports):
            self.add_port(number, clock, data_width, with_management)
        self.add_outputs(clock, ["now", "ticks"])
        self.add_inputs(clock, ["set", "set_time", "increment"])
        self.add_inputs(gate, ["mask", "request"], "start_")

    def path(self, number, clock, data_width, with_management):
        """Return the path of a port."""
        return TransmitPath(clock, data_width, with_management)

    def header_port(self, path):
        """Return a port that writes the headers of a path."""
        return path.header.get_port(write_capable=True)

    def add_port(self, number, clock, data_width, with_management):
        """Bring out one port."""
        path = self.path(number, clock, data_width, with_management)
        setattr(self, f"path{number}", path)
        write = self.header_port(path)
        self.specials += write
        shown, numbers = ShownCounters(path.counters), StillNumbers(path)
        self.submodules += shown, numbers
        signals = {name: getattr(path.program, name) for name, _ in program_layout}
        signals.update({name: getattr(numbers, name) for name in NUMBERS})
        signals.update({name: getattr(path, name) for name in ["arm", "stop", "clear"]})
        signals.update(header_adr=write.adr, header_dat=write.dat_w, header_we=write.we)
        if with_management:
            sink = path.management_sink
            signals.update(management_valid=sink.valid, management_last=sink.last,
                management_data=sink.data, management_last_be=sink.last_be)
        for name, _ in PORT_INPUTS:
            if name in signals:
                self.add_input(f"p{number}_{name}", signals[name])
        outputs = {name: getattr(shown, name) for name in COUNTERS}
        outputs.update(state=path.state, tx_valid=path.source.valid, tx_data=path.source.data)
        for name, _ in PORT_OUTPUTS:
            self.add_output(f"p{number}_{name}", outputs[name])
        self.comb += [
            path.start_strobe.eq(self.gate.strobe[number]),
            self.gate.ready[number].eq(path.ready),
        ]

write_verilog = partial(write_bench, TransmitBench, "transmit_bench")

# Driver -------------------------------------------------------------------------------------------

TICK_FS = 8_000_000
PORTS = 2


@dataclass(frozen=True)
class Program:
    """Describes what the registers of a transmit port ask for, beside the frame itself."""

    count: int = 1
    repeats: int = 1
    interval_ticks: int = 0
    interval_fraction: int = 0
    gap_ticks: int = 0
    start_time: int | None = None


class TransmitDriver:
    """Clocks, resets and drives the bench.

    Parameters
    ----------
    dut : cocotb handle of ``transmit_bench``
    ppm : how much faster than asked for ``sys`` runs; the timebase is exact, so ticks are 8 ns.
    look_at : frames of each port whose octets are read; None: all.
    """

    def __init__(self, dut: Any, sys_mhz: float = 50, ppm: float = 100, look_at: int | None = None) -> None:
        self.dut = dut
        self.sys_fs = round(1e9 / sys_mhz / (1 + ppm * 1e-6)) // 2 * 2
        self.sinks = [
            GmiiSink(dut.timebase_clk, self.pin(port, "tx_valid"), self.pin(port, "tx_data"), dut.now, TICK_FS, look_at)
            for port in range(PORTS)
        ]

    def pin(self, port: int, name: str) -> Any:
        """Return a pin of a port."""
        return getattr(self.dut, f"p{port}_{name}")

    async def reset(self) -> None:
        """Start the clocks, all inputs 0, and watch both ports."""
        dut = self.dut
        for port in range(PORTS):
            for name, _ in PORT_INPUTS:
                self.pin(port, name).value = 0
        dut.set.value = dut.set_time.value = dut.start_mask.value = dut.start_request.value = 0
        dut.increment.value = 8 << 40
        dut.sys_rst.value = dut.timebase_rst.value = 1
        origin_fs = int(get_sim_time("fs"))
        Clock(dut.timebase_clk, TICK_FS, unit="fs").start()
        Clock(dut.sys_clk, self.sys_fs, unit="fs").start()
        await Timer(200, unit="ns")
        await FallingEdge(dut.timebase_clk)
        dut.timebase_rst.value = 0
        await FallingEdge(dut.sys_clk)
        dut.sys_rst.value = 0
        for sink in self.sinks:
            sink.origin_fs = origin_fs
            cocotb.start_soon(sink.run())
        await self.cycles(10)

    async def set_time(self, time_ns: int) -> None:
        """Set the clock."""
        await FallingEdge(self.dut.timebase_clk)
        self.dut.set_time.value = time_ns
        self.dut.set.value = 1
        await FallingEdge(self.dut.timebase_clk)
        self.dut.set.value = 0

    async def cycles(self, count: int) -> None:
        """Wait for ``count`` cycles of ``sys``; returns in the middle of one, where inputs may change."""
        for _ in range(count):
            await FallingEdge(self.dut.sys_clk)

    async def pulse(self, pin: Any) -> None:
        """Raise a pin of ``sys`` for a cycle."""
        await self.cycles(1)
        pin.value = 1
        await self.cycles(1)
        pin.value = 0

    async def arm(self, port: int, frame: ProbeFrame, program: Program) -> None:
        """Write header and program, and arm."""
        header = frame.header()
        header += bytes(HEADER_OCTETS - len(header))
        for word in range(HEADER_OCTETS // 4):
            self.pin(port, "header_adr").value = word
            self.pin(port, "header_dat").value = int.from_bytes(header[4 * word : 4 * word + 4], "little")
            self.pin(port, "header_we").value = 1
            await self.cycles(1)
        self.pin(port, "header_we").value = 0
        values = {
            "length": frame.length,
            "count": program.count,
            "repeats": program.repeats,
            "interval_ticks": program.interval_ticks,
            "interval_fraction": program.interval_fraction,
            "gap_ticks": program.gap_ticks,
            "start_time": program.start_time or 0,
            "timed": int(program.start_time is not None),
            "fill": int(frame.fill),
            "payload_offset": frame.payload_offset,
            "checksum_enable": int(frame.ipv6),
            "checksum_seed": frame.checksum_seed if frame.ipv6 else 0,
        }
        for name, value in values.items():
            self.pin(port, name).value = value
        await self.pulse(self.pin(port, "arm"))
        await self.cycles(5)

    async def start(self, ports: Sequence[int]) -> None:
        """Ask for a start of all ``ports`` in one tick, once they are ready."""
        for port in ports:
            await self.until(port, TransmitState.READY)
        await self.request_start(ports)

    async def request_start(self, ports: Sequence[int]) -> None:
        """Ask for a start, whatever the ports do."""
        await self.cycles(1)
        self.dut.start_mask.value = sum(1 << port for port in ports)
        self.dut.start_request.value = 1
        await self.cycles(1)
        self.dut.start_request.value = 0

    def state(self, port: int) -> TransmitState:
        """Return the state that the register shows."""
        return TransmitState(int(self.pin(port, "state").value))

    async def until(self, port: int, state: TransmitState, limit_us: float = 1000) -> None:
        """Wait for a state, looking every microsecond; AssertionError after the limit."""
        waited = 0.0
        while self.state(port) != state:
            assert waited < limit_us, f"port {port} is {self.state(port).name}, not {state.name}, after {limit_us} us"
            await Timer(1, unit="us")
            waited += 1
        await self.cycles(1)

    async def run(self, port: int, frame: ProbeFrame, program: Program, limit_us: float = 1000) -> None:
        """Arm, start and wait for the end."""
        await self.arm(port, frame, program)
        await self.start([port])
        await self.until(port, TransmitState.IDLE, limit_us)

    def counters(self, port: int) -> dict[str, int]:
        """Return the counters of a port by name."""
        names = ["sent", "late", "first_late", "underruns", "management_sent", "management_held", "management_dropped"]
        return {name: int(self.pin(port, name).value) for name in names}

    async def manage(self, port: int, frame: bytes) -> None:
        """Hand a management frame to the port, a word a cycle."""
        await self.cycles(1)
        for place in range(0, len(frame), 4):
            word = frame[place : place + 4]
            is_last = place + 4 >= len(frame)
            self.pin(port, "management_valid").value = 1
            self.pin(port, "management_data").value = int.from_bytes(word, "little")
            self.pin(port, "management_last").value = int(is_last)
            self.pin(port, "management_last_be").value = 1 << len(word) - 1 if is_last else 0
            await self.cycles(1)
        self.pin(port, "management_valid").value = 0


# Programs of many frames, without cocotb: ten times faster -----------------------------------------

BENCH = CompiledBench(TransmitBench, Path(__file__).with_name("long.cpp"))


@dataclass(frozen=True)
class LongProgram:
    """A program for both ports at once; ``sys_half_ps`` is half a period of ``sys``."""

    length: int
    count: int
    repeats: int = 1
    ticks: int = 0
    fraction: int = 0
    gap: int = 0
    sys_half_ps: int = 10_668


@dataclass(frozen=True)
class PortRun:
    """Holds what one port did: ticks at which TX_EN rose and fell, counters at the end."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    sent: int
    late: int
    underruns: int


def run(program: LongProgram) -> list[PortRun]:
    """Run a program to its end and return what each port did."""
    done = BENCH.run(options=vars(program))
    ports = []
    for port, line in enumerate(done.output.splitlines()):
        rows = done.array(f"starts{port}", np.int64).reshape(-1, 2)
        ports.append(PortRun(rows[:, 0], rows[:, 1], *map(int, line.split())))
    return ports
