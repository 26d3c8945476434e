# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A probe with PCIe whose two small rings are filled from the host's memory and emptied by pins, as a Verilog module for cocotb."""

from collections.abc import Callable
from pathlib import Path

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import *

from litex.build.generic_platform import Pins, Subsignal

from liteprobe.sim.bench.memory.block_memory import BlockMemory
from liteprobe.cores.memory.ports import BurstPorts
from liteprobe.cores.memory.ring_reader import RingReader
from liteprobe.cores.receive.datagrams.counts import COUNTS
from liteprobe.cores.receive.datagrams.slot_reader import SlotReader, SlotRegisters
from liteprobe.cores.receive.datagrams.slots import SlotReceiver
from liteprobe.sim.bench.pcie.board import Board
from liteprobe.sim.system import build
from liteprobe.soc.config import ProbeConfig
from liteprobe.soc.datagrams import count_registers
from liteprobe.soc.export import write_map
from liteprobe.soc.probe import ProbeSoC

TOP   = build.TOP
RINGS = 2
WORDS = 1024          # Of a ring: it wraps often.
FIRST = 2**32 - 5*WORDS # Position at which a session begins: it wraps too.

def ring_pins(number):
    """Return the pins by which a ring is emptied."""
    return ("ring", number, Subsignal("valid", Pins(1)), Subsignal("ready", Pins(1)), Subsignal("data", Pins(32)))

# Ring ---------------------------------------------------------------------------------------------

class Ring(LiteXModule):
    """Stands in for a port that replays: the session, and the ring's reader, whose words leave by pins."""
    def __init__(self, port, pins):
        self.opens, self.closes   = Signal(), Signal()
        self.session              = Signal(16)
        self.restart              = Signal()
        self.is_restarted         = Signal()
        self.written, self.fetched = Signal(32), Signal(32)
        self.keeps                = Signal()
        self._session = CSRStorage(16, name="session")
        self._open    = CSR(name="open")
        self._close   = CSR(name="close")
        self._keeps   = CSRStorage(1, name="keeps")

        # # #

        self.reader = reader = RingReader(port, 0, WORDS)
        self.comb += [
            self.session.eq(self._session.storage),
            self.opens.eq(self._open.re),
            self.closes.eq(self._close.re),
            self.keeps.eq(self._keeps.storage),
            self.is_restarted.eq(reader.ready),
            reader.restart.eq(self.restart),
            # The reader's positions begin at 0.
            reader.written.eq(self.written - FIRST),
            self.fetched.eq(reader.fetched + FIRST),
            pins.valid.eq(reader.source.valid),
            pins.data.eq(reader.source.data),
            reader.source.ready.eq(pins.ready),
        ]

# Probe --------------------------------------------------------------------------------------------

class LateReceiver(SlotReceiver):
    """A `SlotReceiver` whose sessions begin near the position's wrap."""
    first = FIRST

class PcieSlots(ProbeSoC):
    """A probe of one port, without processor, with two small rings beside it, each in a block RAM of its own."""
    def __init__(self):
        board = Board()
        board.platform.add_extension([ring_pins(number) for number in range(RINGS)])
        ProbeSoC.__init__(self, board, ProbeConfig(
            ports           = 1,
            link            = "pcie",
            with_cpu        = False,
            with_discipline = False,
            dma_channels    = RINGS,
        ))
        self.replay_dma = registers = SlotRegisters()
        for number in range(RINGS):
            self.add_ring(number, registers)

    def add_ring(self, number, registers):
        """Add a ring, what fills it, and what empties it."""
        memory = BlockMemory(WORDS)
        ports  = BurstPorts(memory.burst, 2)
        reader = SlotReader(self.pcie_endpoint, 64)
        self.capture_dma.channels[number].reader = reader
        ring     = Ring(ports.ports[0], self.platform.request("ring", number))
        receiver = LateReceiver(number, ports.ports[1], 0, WORDS)
        for name, module in (("memory", memory), ("ports", ports), ("ring", ring), ("slots", receiver)):
            self.add_module(name=f"{name}{number}", module=module)
        receiver.join_reader(reader)
        receiver.join_ring(0, ring)
        receiver.join_lease(self.probe.lease)
        registers.add_csr(number, reader)
        self.add_memory(f"slots{number}", receiver.bus, 2*COUNTS) # As large as its LUT RAM, or addresses would be others.
        self.words_as_registers[f"slots{number}"] = count_registers(number)

def writer(register_map: Path) -> Callable[[Path], None]:
    """Return a function that writes the probe's Verilog to a path, and its map to ``register_map``."""
    def write_verilog(path: Path) -> None:
        soc = PcieSlots()
        soc.finalize()
        build.write_verilog(soc, path.parent)
        write_map(soc, register_map)
    return write_verilog
