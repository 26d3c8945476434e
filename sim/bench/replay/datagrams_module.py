# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A datagram receiver of two rings as a Verilog module with plain pins."""

from migen import *

from litex.gen import *

from liteprobe.cores.memory.sdram import BurstPort
from liteprobe.cores.receive.datagrams.receiver import DatagramReceiver
from liteprobe.sim.bench.tools.module import write_module
from liteprobe.sim.bench.tools.pins import PinnedBench
from liteprobe.sim.system.combinatorial import own_combinatorial_blocks

RINGS   = 2
WORDS   = 2048                # Of a ring: it wraps often.
ADDRESS = 0x40000             # Of ring 0.
MAC, IP = 0x10e2d5000001, "192.168.1.50"
PERIOD  = 20_000              # Cycles.
FIRST   = 2**32 - 50_000      # Position at which a session begins: it wraps too.

# From Near the Wrap ----------------------------------------------------------------------------------

class LateReceiver(DatagramReceiver):
    """A `DatagramReceiver` whose sessions begin near the position's wrap."""
    first = FIRST

# Datagram Bench -----------------------------------------------------------------------------------

class DatagramBench(PinnedBench):
    """A `DatagramReceiver`.

    Pins: ``sys_clk``, ``sys_rst``; ``<stream>_valid``, ``_ready``, ``_data``, ``_last``, ``_last_be`` of ``sink``, ``source`` and
    ``status``; ``request_valid``, ``_ready``, ``_address``, ``_rest``, ``_write``, ``write_data``, ``takes``; ``adr``, ``stb``,
    ``ack``, ``dat_r``; all other ports, those of ring n with the number n.
    """
    def __init__(self, rings=RINGS, words=WORDS, period=PERIOD, kind=LateReceiver):
        PinnedBench.__init__(self)
        port = BurstPort()
        self.receiver = receiver = kind(rings, port, ADDRESS, MAC, IP, period, words)
        self.add_streams()
        for name in ["lease", "is_held", "open", "close", "is_restarted", "keeps", "is_running", "is_starved"]:
            self.add_input(name, getattr(receiver, name))
        for name in ["is_open", "restart"]:
            self.add_output(name, getattr(receiver, name))
        for n in range(rings):
            for name in ["session", "fetched", "frames", "underruns"]:
                self.add_input(f"{name}{n}", getattr(receiver, name)[n])
            self.add_output(f"written{n}", receiver.written[n])
        for name in ["valid", "address", "rest", "write"]:
            self.add_output(f"request_{name}", getattr(port.request, name))
        self.add_input("request_ready", port.request.ready)
        self.add_output("write_data", port.write_data)
        self.add_input("takes", port.takes)
        self.add_counts_bus(receiver.bus)

    def add_streams(self):
        """Give the streams of frames their pins."""
        for stream in ["sink", "source", "status"]:
            end = getattr(self.receiver, stream)
            one, other = (self.add_input, self.add_output) if stream == "sink" else (self.add_output, self.add_input)
            for name in ["valid", "data", "last", "last_be"]:
                one(f"{stream}_{name}", getattr(end, name))
            other(f"{stream}_ready", end.ready)

    def add_counts_bus(self, bus):
        """Give the counts' bus its pins."""
        self.add_input("adr", bus.adr)
        self.add_output("ack", bus.ack)
        self.add_output("dat_r", bus.dat_r)
        stb = self.add_pin("stb", 1)
        self.comb += bus.cyc.eq(stb), bus.stb.eq(stb)

    def add_input(self, name, signal):
        self.comb += signal.eq(self.add_pin(name, len(signal)))

    def add_output(self, name, signal):
        self.comb += self.add_pin(name, len(signal)).eq(signal)

def write_verilog(path, rings=RINGS, words=WORDS, period=PERIOD, kind=LateReceiver):
    """Write the bench to ``path`` as module ``datagram_bench``."""
    bench = DatagramBench(rings, words, period, kind)
    with own_combinatorial_blocks():
        write_module(bench, "datagram_bench", path)
