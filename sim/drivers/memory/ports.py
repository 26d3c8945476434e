# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs masters at the burst ports and at the bus of a memory against a chip that knows its times, beside what arithmetic says."""

import json
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from migen import *

from litex.gen import *

from litedram.phy.dfi import Interface

from liteprobe.cores.memory.interleaved import BusCrossing, InterleavedController, PortCrossing
from liteprobe.cores.memory.ports import BurstPorts, MemoryCrossing
from liteprobe.cores.memory.sdram import SdramController
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench

CL    = 2
PORTS = 4
INTERLEAVED_CL, INTERLEAVED_BANKS = 3, 4

# Memory Bench -------------------------------------------------------------------------------------

class MemoryBench(PinnedBench):
    """Has PORTS burst ports and the bus at ``sys``, and the chip's pins; ``with_crossing``: the controller is in ``memory``.

    ``late`` : int, cycles that a word takes more from the chip to the controller: 2 with the boards' late pins.
    ``cl`` : int; 3: the controller is an `InterleavedController`, of all banks.
    """
    def __init__(self, clk_freq, with_crossing, late, cl=CL):
        PinnedBench.__init__(self, "sys", "memory")
        dfi   = Interface(11, cl - 1, 1, 32)
        phy   = SimpleNamespace(dfi=dfi, settings=SimpleNamespace(cl=cl, read_latency=cl + 1 + late))
        lost, empty = Signal(), Signal()
        if cl == CL:
            sdram = SdramController(phy, clk_freq, with_bursts=True)
        if cl != CL:
            self.sdram = sdram = InterleavedController(phy, clk_freq, INTERLEAVED_BANKS)
            ClockDomainsRenamer("memory")(sdram)
            users = [sdram.add_port() for _ in range(PORTS)]
            self.crossings = crossings = [PortCrossing(user) for user in users]
            self.joined = BusCrossing(sdram, sdram.started)
            self.submodules += crossings
            bus = self.joined.bus
            self.comb += [
                lost.eq(Reduce("OR", [one.read_queue.sink.valid & ~one.read_queue.sink.ready for one in crossings])),
                empty.eq(Reduce("OR", [user.takes & ~one.write_queue.source.valid for user, one in zip(users, crossings)])),
            ]
            ports = SimpleNamespace(ports=[one.burst for one in crossings])
        elif with_crossing:
            self.sdram    = ClockDomainsRenamer("memory")(sdram)
            self.crossing = crossing = MemoryCrossing(sdram)
            memory, bus   = crossing.burst, crossing.bus
            self.comb += [
                lost.eq(crossing.read_queue.sink.valid & ~crossing.read_queue.sink.ready),
                empty.eq(sdram.burst.takes & ~crossing.write_queue.source.valid),
            ]
        else:
            self.sdram  = sdram
            memory, bus = sdram.burst, sdram.bus
        if cl == CL:
            self.ports = ports = BurstPorts(memory, PORTS)
        self.add_output("sdram_ready", sdram.ready if cl == CL else sdram.started)
        self.add_output("lost", lost)
        self.add_output("empty", empty)
        self.add_outputs(dfi.p0, ["address", "bank", "ras_n", "cas_n", "we_n", "wrdata", "wrdata_en"], "dfi_")
        words = [self.add_pin("dfi_rddata", 32), *[Signal(32) for _ in range(late)]]
        self.comb += dfi.p0.rddata.eq(words[-1])
        sync = self.sync.memory if with_crossing else self.sync
        sync += [word.eq(before) for before, word in zip(words, words[1:])]
        for number, port in enumerate(ports.ports):
            self.add_inputs(port.request, ["valid", "address", "rest", "write"], f"p{number}_")
            self.add_output(f"p{number}_ready", port.request.ready)
            self.add_inputs(port, ["write_data"], f"p{number}_")
            self.add_outputs(port, ["takes", "read_data", "gives", "busy"], f"p{number}_")
        self.add_inputs(bus, ["adr", "dat_w", "sel", "we", "stb"], "bus_")
        self.add_outputs(bus, ["ack", "dat_r"], "bus_")
        self.comb += bus.cyc.eq(bus.stb)

BENCH = CompiledBench(MemoryBench, Path(__file__).with_name("ports.cpp"))

# Arithmetic: what a SDRAM can do at most, its commands one after the other, and how long a user waits at most, in cycles ----------

WORD_BITS = 32
LONGEST, LEAST = 64, 16  # Words of a burst; so many before it gives way.
READ_LATENCY = 3  # From a column to its word, at CL 2.
REQUESTS = 8  # Behind a crossing.
REFRESH_US = 64e3 / 4096
GRANT = 1  # Of a port.
CROSSING = 12  # Of ``sys``: a request to the controller, and its last word back.


@dataclass(frozen=True)
class Arithmetic:
    """Of a controller at ``mhz``; ``sys_mhz`` is None where that is ``sys`` itself, else what its ports run at.

    Words that are read come ``late`` cycles after READ_LATENCY.
    """

    mhz: float
    sys_mhz: float | None = None
    late: int = 0

    def cycles(self, ns: float) -> int:
        """Return cycles of at least so many nanoseconds."""
        return ceil(ns * self.mhz / 1000 - 1e-9)

    @property
    def column(self) -> int:
        """From activate to the first column: tRCD."""
        return self.cycles(20)

    @property
    def close(self) -> int:
        """From the last column to precharge: tWR, or what is left of tRAS after one word."""
        return max(self.cycles(30), self.cycles(49) - self.column)

    @property
    def open(self) -> int:
        """From precharge to activate: tRP."""
        return self.cycles(20)

    @property
    def refresh(self) -> int:
        """From a refresh to the next command: tRFC."""
        return self.cycles(80)

    @property
    def _ratio(self) -> float:
        return 1 if self.sys_mhz is None else self.sys_mhz / self.mhz

    def burst(self, words: float) -> float:
        """From the activate of a burst to that of the next."""
        return self.column + words + self.close + self.open - 1

    @property
    def access(self) -> int:
        """The same of an access of the bus: octets are read, then written."""
        return self.column + READ_LATENCY + self.late + self.close + self.open

    def mbps(self, words: float = LONGEST) -> float:
        """Return what bursts of so many words move, reads and writes together; at the ports it is a word a cycle each way."""
        share = words / self.burst(words) * (1 - self.refresh / (REFRESH_US * self.mhz))
        at_ports = float("inf") if self.sys_mhz is None else 2 * WORD_BITS * self.sys_mhz
        return min(WORD_BITS * self.mhz * share, at_ports)

    @property
    def bus(self) -> int:
        """Return the longest that the bus waits for its answer (cycles of ``sys``).

        An access before it ends, a burst has just begun and goes on for 16 words, then a refresh is due.
        """
        last = self.close + self.open - 1
        waits = last + int(self.burst(LEAST)) + self.refresh + self.column + READ_LATENCY + self.late
        # Ask, two registers, the answer, two registers.
        return waits if self.sys_mhz is None else 1 + ceil((2 + waits + 1) * self._ratio) + 2

    def request(self, with_bus: bool) -> int:
        """Return the longest that a request of 64 words holds others up (cycles of ``sys``): its words, or its commands."""
        pieces = LONGEST // LEAST
        commands = pieces * (self.burst(LEAST) + self.access) if with_bus else self.burst(LONGEST) + self.burst(0)
        cycles = ceil((commands + self.refresh) * self._ratio)
        return (cycles if self.sys_mhz is None else max(cycles, LONGEST)) + GRANT

    def wait(self, ports: int, with_bus: bool) -> int:
        """Return the longest until a port's request is taken: one of each port goes before, the first has just begun."""
        return ports * self.request(with_bus) + CROSSING

    def whole(self, ports: int, with_bus: bool) -> int:
        """Return the longest from a request to its last word."""
        before = 1 if self.sys_mhz is None else REQUESTS + 1
        return self.wait(ports, with_bus) + before * self.request(with_bus) + CROSSING


# Runs ---------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Setting:
    """Clocks of a run.

    ``cl`` of INTERLEAVED_CL: an `InterleavedController`.

    ``mhz`` is of the SDRAM; ``sys_ps`` is None where it runs on ``sys``, else the period of ``sys``; words that are read come
    ``late`` cycles later than from LiteDRAM's PHY.
    """

    mhz: float
    sys_ps: int | None = None
    late: int = 0
    cl: int = CL

    @property
    def arithmetic(self) -> Arithmetic:
        """Return the most that it can do."""
        return Arithmetic(self.mhz, self.sys_ps and 1e6 / self.sys_ps, self.late)

    @property
    def memory_ps(self) -> int:
        """Period of the controller."""
        return round(1e6 / self.mhz)


def run(setting: Setting, **options: int) -> dict[str, Any]:
    """Run masters; return what the bench counted. RuntimeError when a word or a signal isn't as it should be.

    ``options`` are those of ports.cpp; spans are lists of worst, sum and count (cycles of ``sys``).
    """
    clocks = {"mhz": setting.mhz, "sys_ps": setting.sys_ps or setting.memory_ps}
    if setting.sys_ps is not None:
        clocks["memory_ps"] = setting.memory_ps
    if setting.cl != CL:
        clocks |= {"banks": INTERLEAVED_BANKS, "cl": setting.cl, "turn": setting.cl + 2, "slack": 400, "apart": 1}
    with_crossing = setting.sys_ps is not None
    built = {"clk_freq": setting.mhz * 1e6, "with_crossing": with_crossing, "late": setting.late, "cl": setting.cl}
    done = BENCH.run({}, {**clocks, **options}, **built)
    found: dict[str, Any] = json.loads(done.output)
    return found
