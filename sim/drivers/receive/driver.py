# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Drives the pins of a receive path with cocotb and holds it against the model of a port."""

import math
import os
import random
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from cocotb.utils import get_sim_time

from migen import *

from litex.gen import *

from liteprobe.cores.formats import RECORD_WORDS, STREAM_ACCUMULATORS, STREAM_SLOT_WORDS, TICK_NS
from liteprobe.cores.receive.path import RecordPath
from liteprobe.cores.timebase.clock import TimebaseClock
from liteprobe.sim.drivers.frames.gmii import GmiiSource, on_wire, with_fcs
from liteprobe.sim.drivers.frames.gmii import probe_frame
from liteprobe.sim.drivers.tools.pins import PinnedBench, write_bench
from liteprobe.sim.drivers.tools.wire import run_wire_test
from liteprobe.sim.models.receive.port import PortModel, Symbol, WireFrame, frames_of
from liteprobe.sim.models.receive.port import Record, record_of

RECORD_DEPTH = 128 # A ring that is full soon.

# Receive Bench ------------------------------------------------------------------------------------

class ReceiveBench(PinnedBench):
    """A receive path and a clock, on pins.

    ``is_synchronous`` runs the receive clock and the timebase from one pin, without ``eth_rx``.

    Pins: ``<domain>_clk``, ``<domain>_rst`` of ``sys``, ``timebase`` and ``eth_rx``; ``rx_dv``, ``rx_data``, ``rx_er``;
    inputs of `RecordPath` by their names; ``records_*`` of the ring and its bus; ``streams_*`` and ``snapshot_*`` of the
    other two; ``management_*``; ``now``; ``paired`` and ``stamp`` (each RX stamp of a frame that is classified); ``seen``
    and ``classified`` of each frame that wasn't cut.
    """
    inputs  = ("stream_id", "clear", "latch", "records_read", "records_enable")

    def __init__(self, with_management=True, record_depth=RECORD_DEPTH, is_synchronous=False):
        PinnedBench.__init__(self, "sys", "timebase", *([] if is_synchronous else ["eth_rx"]))
        self.clock = clock = TimebaseClock()
        path = RecordPath(clock, with_management, record_depth)
        if is_synchronous:
            path = ClockDomainsRenamer({"eth_rx": "timebase"})(path)
        self.path = path

        arrivals, records = path.arrivals, path.records
        for name, signal in zip(["dv", "data", "er"], [path.sink.valid, path.sink.data, path.sink.error]):
            self.add_input(f"rx_{name}", signal)
        self.add_inputs(path, self.inputs)
        for name, bus in [("records", records.bus), ("streams", path.streams.bus), ("snapshot", path.tally.bus)]:
            self.add_inputs(bus, ["stb", "adr"], f"{name}_")
            self.add_output(f"{name}_ack", bus.ack)
            self.add_output(f"{name}_data", bus.dat_r)
            self.comb += bus.cyc.eq(bus.stb)
        self.add_outputs(clock, ["now"])
        self.add_outputs(arrivals.pairing, ["paired", "stamp"])
        self.add_outputs(arrivals.parser, ["seen"])
        self.add_output("classified", arrivals.parser.frame.is_classified)
        self.add_outputs(records, ["written", "lost"], "records_")
        self.add_source("management", path.management_source, ["last", "data", "last_be"])

write_verilog = partial(write_bench, ReceiveBench, "receive_bench")

# Driver -------------------------------------------------------------------------------------------

TICK_FS = 8_000_000
PPM_FS = TICK_FS // 1_000_000

#: Clocks: sys (MHz), and how far timebase and eth_rx are off (ppm). ``None``: one clock for both.
CLOCKS: dict[str, tuple[float, int, int | None]] = {
    "synchronous": (50.0, 0, None),
    "asynchronous": (48.0, -50, 50),
    "slow_wire": (62.5, 50, -50),
    "slowest_sys": (48.0, -50, 50),  # That the receive path is made for.
    "slow_sys": (12.5, 0, 0),
}
#: Clocks that tests of what crosses clocks run with. With the second one the receive clock is the timebase; both tick
#: together in the simulated probe, too, whose tests are always run.
VARIANTS = [
    "asynchronous",
    pytest.param("synchronous", marks=pytest.mark.full),
    pytest.param("slow_wire", marks=pytest.mark.full),
]

LEAST_SPACING = 32  # Cycles between two frames that are classified.
DOMAINS = ("sys", "timebase", "eth_rx")
MEMORIES = ("records", "streams", "snapshot")
INPUTS = ("stream_id", "clear", "latch", "records_read", *[f"{memory}_{pin}" for memory in MEMORIES for pin in ("stb", "adr")])


def run_receive_test(test_file: str, clocks: str, filter_: str | None = None) -> None:
    """Run the cocotb tests of ``test_file`` on a receive path with these clocks; ``filter_`` as of `run_wire_test`."""
    run_wire_test(
        test_file,
        "receive_bench",
        partial(write_verilog, is_synchronous=CLOCKS[clocks][2] is None),
        f"{os.path.basename(test_file).removesuffix('.py')}_{clocks}",
        {"LITEPROBE_CLOCKS": clocks},
        filter_,
    )


def train(count: int, first: int = 0) -> list[Symbol]:
    """Return the symbols of the shortest probe frames, back to back, numbered from ``first`` on."""
    return [
        symbol for number in range(first, first + count) for symbol in on_wire(with_fcs(probe_frame(number, number)))
    ]


async def watch_management(dut: Any, frames: list[bytes]) -> None:
    """Append what leaves for management to ``frames``."""
    frame = b""
    while True:
        # Looking at each cycle costs more than all else: without a frame, wait for one.
        await RisingEdge(dut.sys_clk if int(dut.management_valid.value) else dut.management_valid)
        await ReadOnly()
        if not (int(dut.management_valid.value) and int(dut.management_ready.value)):
            continue
        word = int(dut.management_data.value).to_bytes(4, "little")
        if int(dut.management_last.value):
            word = word[: int(dut.management_last_be.value).bit_length()]
            frames.append(frame + word)
            frame = b""
        else:
            frame += word


class ReceiveDriver:
    """A receive path on clocks, and the truth of what it was sent.

    ``dut``: cocotb handle of ``receive_bench``.

    Attributes
    ----------
    source : drives the wire.
    stamps : stamps of frames that were classified (ns), so far.
    seen : of each frame that wasn't cut, the cycle of ``sys`` (ns) and whether it was classified, so far.
    management : frames that left for management, so far.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        sys_mhz, timebase_ppm, wire_ppm = CLOCKS[os.environ["LITEPROBE_CLOCKS"]]
        self.tolerance_ns = 0 if wire_ppm is None else TICK_NS
        wire_clock = dut.timebase_clk if wire_ppm is None else dut.eth_rx_clk
        Clock(dut.sys_clk, round(1e9 / sys_mhz / 2) * 2, unit="fs").start(start_high=False)
        Clock(dut.timebase_clk, TICK_FS + timebase_ppm * PPM_FS, unit="fs").start(start_high=False)
        if wire_ppm is not None:
            Clock(wire_clock, TICK_FS + wire_ppm * PPM_FS, unit="fs").start(start_high=False)
        self.source = GmiiSource(wire_clock, dut.rx_dv, dut.rx_data, dut.rx_er, lambda: int(dut.now.value))
        self.stamps: list[int] = []
        self.seen: list[tuple[float, bool]] = []
        self.sys_ns = 1e3 / sys_mhz
        self.management: list[bytes] = []
        self.layout = ReceiveBench().path.tally.layout
        self.random = random.Random(cocotb.RANDOM_SEED)

    async def reset(self, stream_id: int = 1) -> None:
        """Reset, take this stream, and watch frames, stamps and management."""
        dut = self.dut
        for name in INPUTS:
            getattr(dut, name).value = 0
        dut.records_enable.value = dut.management_ready.value = 1
        dut.stream_id.value = stream_id
        resets = [getattr(dut, f"{name}_rst") for name in DOMAINS if hasattr(dut, f"{name}_rst")]
        for level in (1, 0):
            for reset in resets:
                reset.value = level
            await ClockCycles(dut.sys_clk, 10)
        cocotb.start_soon(self.watch_stamps())
        cocotb.start_soon(self.watch_seen())
        cocotb.start_soon(watch_management(dut, self.management))

    async def watch_stamps(self) -> None:
        """Keep the stamp of each frame that is classified."""
        while True:
            await RisingEdge(self.dut.paired)
            await ReadOnly()
            self.stamps.append(int(self.dut.stamp.value))

    async def watch_seen(self) -> None:
        """Keep when each frame was seen, and whether it was classified."""
        while True:
            # Of two that are seen in successive cycles, the second one has no edge.
            await RisingEdge(self.dut.sys_clk if int(self.dut.seen.value) else self.dut.seen)
            await ReadOnly()
            if int(self.dut.seen.value):
                self.seen.append((get_sim_time("ns"), bool(int(self.dut.classified.value))))

    async def pulse(self, name: str) -> None:
        """Raise an input for a cycle of ``sys``."""
        pin = getattr(self.dut, name)
        await RisingEdge(self.dut.sys_clk)
        pin.value = 1
        await RisingEdge(self.dut.sys_clk)
        pin.value = 0
        await ClockCycles(self.dut.sys_clk, 2)

    async def registers(self, names: Iterable[str]) -> dict[str, int]:
        """Return counters as of now, and accumulators of the stream, read over the bus right behind the latch."""
        await self.pulse("latch")
        shown = {}
        for name in names:
            if name in self.layout:
                first, words = self.layout[name]
                shown[name] = 0
                for word in range(first, first + words):
                    shown[name] = shown[name] << 32 | await self.read_word(word, "snapshot")
            else:
                place = STREAM_ACCUMULATORS[name]
                words = range(place.first, place.first + place.words)
                slot = {word: await self.read_word(STREAM_SLOT_WORDS + word, "streams") for word in words}
                shown[name] = place.value([slot.get(word, 0) for word in range(STREAM_SLOT_WORDS)])
        return shown

    async def records(self, start: int, count: int) -> list[Record]:
        """Read records over the bus."""
        places = [RECORD_WORDS * (number % RECORD_DEPTH) for number in range(start, start + count)]
        return [record_of([await self.read_word(place + word) for word in range(RECORD_WORDS)]) for place in places]

    async def read_word(self, address: int, memory: str = "records") -> int:
        """Read a word of a memory over its bus."""
        dut = self.dut
        strobe, ack = getattr(dut, f"{memory}_stb"), getattr(dut, f"{memory}_ack")
        getattr(dut, f"{memory}_adr").value = address
        strobe.value = 1
        while True:
            await RisingEdge(dut.sys_clk)
            if int(ack.value):
                break
        value = int(getattr(dut, f"{memory}_data").value)
        strobe.value = 0
        return value

    async def check(self, model: PortModel) -> None:
        """Compare everything with the model, fed with stamps that were checked to be near the truth."""
        await ClockCycles(self.dut.sys_clk, 60)
        frames, refused = frames_of(self.source.symbols)
        model.counters["preamble_errors"] = refused
        assert model.depth == RECORD_DEPTH
        self.check_stamps(model, frames)
        expected = model.counters
        shown = await self.registers(expected)
        assert {name: value for name, value in shown.items() if value != expected[name]} == {}, expected
        words = model.meter.words()
        assert [await self.read_word(number, "streams") for number in range(len(words))] == words
        assert int(self.dut.records_written.value) == model.ring.written
        assert int(self.dut.records_lost.value) == model.ring.lost

    def check_stamps(self, model: PortModel, frames: Sequence[WireFrame]) -> None:
        """Hold each stamp against the moment of its SFD, and give frame and stamp to the model."""
        stamps = list(self.stamps)
        errors = []
        last_ns = -math.inf
        for frame, (seen_ns, is_classified) in zip(frames, self.seen, strict=True):
            truth = self.source.sfd_now[frame.sfd_tick]
            stamp = stamps.pop(0) if is_classified else truth
            errors.append(stamp - truth)
            assert is_classified == (seen_ns - last_ns > (LEAST_SPACING - 0.5) * self.sys_ns)
            last_ns = seen_ns if is_classified else last_ns
            model.receive(frame, stamp, is_classified)
        assert stamps == []
        assert max(map(abs, errors), default=0) <= self.tolerance_ns, errors
        assert max(errors, default=0) - min(errors, default=0) <= self.tolerance_ns, errors

    async def check_records(self, model: PortModel) -> list[Record]:
        """Compare the whole ring with the model's; return its records."""
        records = await self.records(0, model.ring.written)
        assert [word for record in records for word in record.words()] == list(model.ring.memory.values())
        return records
