# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Stands for the memory of a board of 10 Gb/s, and its controller: read in pairs of words by each port, written by bursts."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.memory.sdram import BurstPort
from liteprobe.cores.xgmii.replay import PairPort

LATENCY_CYCLES = 40  # Of ``timebase``, from what is asked for to the pair: 256 ns.
REFRESH_CYCLES = 1219  # From refresh to refresh, 7.8 us,
STALL_CYCLES = 60  # in which nothing is taken, 384 ns.


class RingMemory(LiteXModule):
    """Holds the rings of ports that replay at 10 Gb/s.

    Each of ``ports`` reads a pair a cycle, as LiteDRAM's crossbar would have it from DDR3 of 64 bits, with a latency and refreshes.

    Parameters
    ----------
    ports : int
    words : int
        Of 32 bits, of all rings.

    Attributes
    ----------
    ports : list of PairPort, ``timebase``
    burst : BurstPort, ``sys``
        Only written to. A word is in the memory in the cycle after ``takes``.
    """

    def __init__(self, ports, words):
        self.ports = [PairPort() for _ in range(ports)]
        self.burst = burst = BurstPort()

        # # #

        self.autocsr_exclude = {"memory"}
        self.memory = memory = Memory(64, words // 2, name="rings")
        self.specials += memory
        refresh = Signal(max=REFRESH_CYCLES)
        is_open = Signal()
        self.sync.timebase += [
            refresh.eq(refresh + 1),
            If(refresh == REFRESH_CYCLES - 1, refresh.eq(0)),
            is_open.eq(refresh >= STALL_CYCLES),
        ]
        for number, port in enumerate(self.ports):
            self.add_reader(f"reader{number}", memory, port, is_open)
        self.add_writer(memory, burst)

    def add_reader(self, name, memory, port, is_open):
        """Give a port its pairs, some cycles late."""
        reader = memory.get_port(clock_domain="timebase")
        self.specials += reader
        late = stream.SyncFIFO([("data", 64)], 2 * LATENCY_CYCLES)
        self.add_module(name=name, module=ClockDomainsRenamer("timebase")(late))
        asked = Signal(LATENCY_CYCLES, name=f"{name}_asked")
        read = Signal(name=f"{name}_read")
        self.comb += [
            reader.adr.eq(port.cmd.addr),
            port.cmd.ready.eq(is_open),
            late.sink.valid.eq(read),
            late.sink.data.eq(reader.dat_r),
            port.rdata.valid.eq(asked[-1]),
            port.rdata.data.eq(late.source.data),
            late.source.ready.eq(asked[-1]),
        ]
        self.sync.timebase += [
            read.eq(port.cmd.valid & port.cmd.ready),
            asked.eq(Cat(read, asked)),
        ]

    def add_writer(self, memory, burst):
        """Take a word a cycle."""
        writer = memory.get_port(write_capable=True, we_granularity=32)
        self.specials += writer
        address = Signal.like(burst.request.address)
        rest = Signal.like(burst.request.rest)
        self.comb += [
            burst.request.ready.eq(~burst.busy),
            burst.takes.eq(burst.busy),
            writer.adr.eq(address[1:]),
            writer.dat_w.eq(Cat(burst.write_data, burst.write_data)),
            writer.we.eq(Mux(burst.busy, Mux(address[0], 2, 1), 0)),
        ]
        self.sync += [
            If(
                burst.request.valid & burst.request.ready,
                burst.busy.eq(1),
                address.eq(burst.request.address),
                rest.eq(burst.request.rest),
            ).Elif(
                burst.busy,
                address.eq(address + 1),
                rest.eq(rest - 1),
                If(rest == 0, burst.busy.eq(0)),
            ),
        ]
