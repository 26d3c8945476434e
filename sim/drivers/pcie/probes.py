# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Probes with PCIe as Verilog modules for cocotb: one that captures, one of two small rings filled from the host's memory, one that
replays from rings in SDRAM.
"""

from collections.abc import Callable
from pathlib import Path

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import *
from litex.build.generic_platform import Pins, Subsignal

from litepcie.common import get_bar_mask, msi_layout, phy_layout

from liteprobe.cores.capture.blocks import RecordPort
from liteprobe.cores.capture.capture import BlockCapture
from liteprobe.cores.capture.ring_memory import BlockRamRing
from liteprobe.cores.memory.ports import BurstPorts
from liteprobe.cores.memory.ring_reader import RingReader
from liteprobe.cores.receive.datagrams.counts import COUNTS
from liteprobe.cores.receive.datagrams.slot_reader import SlotReader, SlotRegisters
from liteprobe.cores.receive.datagrams.slots import SlotReceiver
from liteprobe.sim.drivers.memory.block_memory import BlockMemory
from liteprobe.sim.models.receive.capture import CaptureRecord
from liteprobe.sim.system import board, build
from liteprobe.soc.config import ProbeConfig
from liteprobe.soc.export import write_map
from liteprobe.soc.probe import ProbeSoC, connect_ring, count_registers

# PHY ----------------------------------------------------------------------------------------------

DATA_WIDTH = 64

pcie_pins = ("pcie", 0,
    Subsignal("rx_valid",         Pins(1)),
    Subsignal("rx_ready",         Pins(1)),
    Subsignal("rx_last",          Pins(1)),
    Subsignal("rx_dat",           Pins(DATA_WIDTH)),
    Subsignal("rx_be",            Pins(DATA_WIDTH//8)),
    Subsignal("tx_valid",         Pins(1)),
    Subsignal("tx_ready",         Pins(1)),
    Subsignal("tx_last",          Pins(1)),
    Subsignal("tx_dat",           Pins(DATA_WIDTH)),
    Subsignal("tx_be",            Pins(DATA_WIDTH//8)),
    Subsignal("msi_valid",        Pins(1)),
    Subsignal("id",               Pins(16)),
    Subsignal("max_payload_size", Pins(16)),
    Subsignal("max_request_size", Pins(16)),
)

class PinsPhy(LiteXModule):
    """Gives LitePCIe what `S7PCIEPHY` gives it, from pins that a model of the root complex drives.

    Parameters
    ----------
    pads : Record, `pcie_pins`
        ``rx_*`` are TLPs for the probe, ``tx_*`` from it: words in the order of the hard block of the 7 series.
    bar0_size : int, octets
    """
    endianness    = "big"
    qword_aligned = False
    def __init__(self, pads, bar0_size):
        self.sink             = sink   = stream.Endpoint(phy_layout(DATA_WIDTH))
        self.source           = source = stream.Endpoint(phy_layout(DATA_WIDTH))
        self.msi              = stream.Endpoint(msi_layout())
        self.data_width       = DATA_WIDTH
        self.bar0_size        = bar0_size
        self.bar0_mask        = get_bar_mask(bar0_size)
        self.id               = Signal(16)
        self.max_request_size = Signal(16)
        self.max_payload_size = Signal(16)

        # # #

        self.comb += [
            source.valid.eq(pads.rx_valid),
            source.last.eq(pads.rx_last),
            source.dat.eq(pads.rx_dat),
            source.be.eq(pads.rx_be),
            pads.rx_ready.eq(source.ready),
            pads.tx_valid.eq(sink.valid),
            pads.tx_last.eq(sink.last),
            pads.tx_dat.eq(sink.dat),
            pads.tx_be.eq(sink.be),
            sink.ready.eq(pads.tx_ready),
            pads.msi_valid.eq(self.msi.valid),
            self.msi.ready.eq(1),
            self.id.eq(pads.id),
            self.max_request_size.eq(pads.max_request_size),
            self.max_payload_size.eq(pads.max_payload_size),
        ]


# Board --------------------------------------------------------------------------------------------

# Board --------------------------------------------------------------------------------------------

block_pins = ("block", 0,
    Subsignal("is_used", Pins(1)), # 1: blocks come from here, not from the capture.
    Subsignal("valid",   Pins(1)),
    Subsignal("ready",   Pins(1)),
    Subsignal("last",    Pins(1)),
    Subsignal("data",    Pins(32)),
    Subsignal("channel", Pins(3)),
    Subsignal("is_open", Pins(8)),
    Subsignal("done",    Pins(8)),
    Subsignal("rewind",  Pins(8)),
)

class Board(board.Board):
    """The simulated board with a PCIe connector, as fast as the one that has it."""
    name         = "simulated_pcie"
    sys_clk_freq = 125e6
    with_pcie    = True

    def __init__(self):
        board.Board.__init__(self)
        self.platform.add_extension([pcie_pins, block_pins])

    def pcie_phy(self, bar0_size):
        """Return the PHY of PCIe."""
        return PinsPhy(self.platform.request("pcie"), bar0_size)

# Blocks -------------------------------------------------------------------------------------------

class CaptureOrPins(LiteXModule):
    """A capture, in whose place pins may give blocks.

    Parameters
    ----------
    capture : Capture
    pins : Record; as ``block_pins`` names them.

    Attributes
    ----------
    block, send, channels, bus
        As those of `Capture`.
    """
    def __init__(self, capture, pins):
        self.block    = block = stream.Endpoint(capture.block.description)
        self.send     = Signal(len(capture.send))
        self.channels = capture.channels
        self.bus      = capture.bus

        # # #

        self.comb += If(pins.is_used,
            *[getattr(block, name).eq(getattr(pins, name)) for name in ("valid", "last", "data", "channel")],
            pins.ready.eq(block.ready),
        ).Else(
            capture.block.connect(block),
            capture.send.eq(self.send),
        )


# Probes --------------------------------------------------------------------------------------------

TOP   = build.TOP
LINES = 2
RING_BLOCKS = 32
HELD_FRAMES = 8  # That a line holds while the capture is busy; what comes then is lost, and reported so.
FRAME_STEP, WORD_STEP, LINE_STEP = 0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35
RINGS = 2
WORDS = 1024            # Of a ring: it wraps often.
FIRST = 2**32 - 5*WORDS # Position at which a session begins: it wraps too.
PORTS = 2
REPLAY = ProbeConfig(preset="replay", ports=PORTS, link="pcie", with_cpu=False, with_discipline=False, dma_channels=PORTS)

def writer(kind, register_map: Path) -> Callable[[Path], None]:
    """Return a function that writes the Verilog of a kind of probe to a path, and its map to ``register_map``."""
    def write_verilog(path: Path) -> None:
        soc = kind()
        soc.finalize()
        build.write_verilog(soc, path.parent)
        write_map(soc, register_map)
    return write_verilog

def words_of_frame(line: int, number: int, words: int) -> tuple[int, ...]:
    """Return the octets of a frame, as words: all that a `Line` sends differ."""
    start = line * LINE_STEP + number * FRAME_STEP
    return tuple(start + n * WORD_STEP & 0xFFFFFFFF for n in range(words))


def record(line: int, number: int, length: int, channel: int) -> CaptureRecord:
    """Return the record of a frame."""
    head = (number, line, length << 16 | length, line << 28 | channel << 24)
    return CaptureRecord(head, (), words_of_frame(line, number, length // 4))


# Line ---------------------------------------------------------------------------------------------

class Line(LiteXModule):
    """Stands in for a port's path up to its staging: frames at an even pace, each with a record.

    ``port``: RecordPort, out.
    """

    def __init__(self, number):
        self.port = port = RecordPort()
        self._length = CSRStorage(14, name="length", description="Octets of a frame, a multiple of 4.")
        self._spacing = CSRStorage(16, name="spacing", description="Cycles from frame to frame.")
        self._mask = CSRStorage(1, name="mask", description="Of the frame's number: which of the line's two channels.")
        self._count = CSRStorage(32, name="count", description="Frames to send in all.")
        self._sent = CSRStatus(32, name="sent", description="Frames that the capture has taken, or dropped.")
        self._clear = CSR(name="clear")

        # # #

        sent, taken = Signal(32), Signal(32)
        wait, held = Signal(16), Signal(max=HELD_FRAMES + 1)
        start, word = Signal(32, reset=number * LINE_STEP), Signal(32)
        left = Signal(12)
        is_due = Signal()
        self.queue = queue = stream.SyncFIFO([("lost", 1)], 64, buffered=False)
        takes = port.descriptor.valid & port.descriptor.ready
        channel = Cat(taken[0] & self._mask.storage, C(number, 2))
        self.comb += [
            self._sent.status.eq(taken),
            # Faster than the capture can even drop, the line waits: no frame is missing without a trace.
            is_due.eq((wait == 0) & (sent != self._count.storage) & queue.sink.ready),
            queue.sink.valid.eq(is_due),
            queue.sink.lost.eq(held == HELD_FRAMES),
            queue.source.ready.eq(takes),
            port.descriptor.valid.eq(queue.source.valid & (left == 0)),
            port.descriptor.lost.eq(queue.source.lost),
            port.descriptor.head0.eq(taken),
            port.descriptor.head1.eq(number),
            port.descriptor.head2.eq(Cat(self._length.storage, C(0, 2), self._length.storage, C(0, 2))),
            port.descriptor.head3.eq(Cat(C(0, 24), channel, C(0, 1), C(number, 4))),
            port.descriptor.words.eq(self._length.storage >> 2),
            port.data.valid.eq(left != 0),
            port.data.last.eq(left == 1),
            port.data.data.eq(word),
        ]
        self.sync += [
            If(wait != 0, wait.eq(wait - 1)),
            If(is_due, wait.eq(self._spacing.storage - 1), sent.eq(sent + 1)),
            held.eq(held + (is_due & ~queue.sink.lost) - (takes & ~port.descriptor.lost)),
            If(
                takes,
                taken.eq(taken + 1),
                start.eq(start + FRAME_STEP),
                word.eq(start),
                If(~port.skip, left.eq(self._length.storage >> 2)),
            ),
            If(
                port.data.valid & port.data.ready,
                left.eq(left - 1),
                word.eq(word + WORD_STEP),
            ),
            If(self._clear.re, sent.eq(0), taken.eq(0), start.eq(number * LINE_STEP)),
        ]


# Capture Probe --------------------------------------------------------------------------------------------

class PcieCapture(ProbeSoC):
    """A probe of one port, without processor, with two `Line` in front of its capture, or blocks from pins."""

    def __init__(self):
        ProbeSoC.__init__(
            self,
            Board(),
            ProbeConfig(
                ports=1,
                link="pcie",
                with_cpu=False,
                with_discipline=False,
                dma_channels=2 * LINES,
            ),
        )
        self.capture = capture = BlockCapture(LINES, BlockRamRing(RING_BLOCKS), self.sys_clk_freq)
        capture.add_csr()
        for number, port in enumerate(capture.ports):
            line = Line(number)
            self.add_module(name=f"line{number}", module=line)
            for name in ("descriptor", "header", "data"):
                self.comb += getattr(line.port, name).connect(getattr(port, name))
            self.comb += line.port.skip.eq(port.skip)
        pins, dma = self.platform.request("block"), self.capture_dma
        self.blocks = blocks = CaptureOrPins(capture, pins)
        table = connect_ring(self, blocks)
        self.comb += [pins.is_open.eq(dma.is_open), pins.done.eq(dma.done), pins.rewind.eq(dma.rewind)]
        self.add_memory("capture_channels", table, capture.channels.words)

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

# Slots Probe --------------------------------------------------------------------------------------------

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

# Replay Probe -------------------------------------------------------------------------------------

class PcieReplay(ProbeSoC):
    """The preset replay with PCIe, its rings in SDRAM: two ports, without processor."""
    def __init__(self):
        ProbeSoC.__init__(self, Board(), REPLAY)
