# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A transmit port that replays as a Verilog module with plain pins, from the port of the memory to the PHY's octets."""

from migen import *

from litex.gen import *

from liteprobe.cores.memory.sdram import BurstPort
from liteprobe.cores.timebase.clock import ProbeClock
from liteprobe.cores.transmit.path import TransmitPath
from liteprobe.cores.transmit.sources.replay import ReplayPort, ReplaySource
from liteprobe.cores.transmit.sources.streams.streams import StreamSource
from liteprobe.cores.transmit.pace import StartGate
from liteprobe.sim.bench.tools.module import write_module
from liteprobe.sim.system.combinatorial import own_combinatorial_blocks

RING_ADDRESS = 0x50040  # Of the ring in the memory, words.
RING_WORDS = 1 << 13  # Far fewer than a probe has, so that it goes round often.
IN_PATH = [("stop", 1), ("clear", 1)]
OUT_PATH = [("state", 3), ("sent", 32), ("late", 32), ("first_late", 32), ("underruns", 16)]
# Of the replay; their pins begin with that word.
IN_REPLAY = [("open", 1), ("arm", 1), ("prime", 18), ("loops", 16), ("restart", 1), ("written", 32)]
OUT_REPLAY = [
    ("opens", 1),
    ("is_restarted", 1),
    ("fetched", 32),
    ("keeps", 1),
    ("frames", 32),
    ("errors", 1),
    ("underruns", 16),
    ("first_underrun", 32),
    ("is_starved", 1),
    ("is_running", 1),
]

# Port Bench ---------------------------------------------------------------------------------------


class PortBench(LiteXModule):
    """A port of `TransmitPath` with `ReplayPort`, at pins of a `BurstPort` and of what fills the ring.

    Pins: ``<domain>_clk``, ``<domain>_rst`` of ``sys`` and ``timebase``; those of the lists above; ``asks``, ``takes``,
    ``address``, ``rest``, ``gives``, ``word``; ``start_request``; ``now``; ``tx_valid``, ``tx_data``.
    """

    def __init__(self, with_streams=False):
        self.pins = set()
        for name in ["sys", "timebase"]:
            domain = ClockDomain(name)
            setattr(self, f"cd_{name}", domain)
            self.pins |= {domain.clk, domain.rst}
        streams     = [StreamSource()] if with_streams else []
        self.clock  = clock  = ProbeClock()
        self.gate   = gate   = StartGate(1)
        self.port   = port   = BurstPort()
        self.path   = path   = TransmitPath(clock, sources=[*streams, ReplaySource()])
        self.replay = replay = ReplayPort(path, port, RING_ADDRESS, RING_WORDS)
        self.comb += [
            *[getattr(path, name).eq(self.pin(name, width)) for name, width in IN_PATH],
            *[self.pin(name, width).eq(getattr(path, name)) for name, width in OUT_PATH],
            *[getattr(replay, name).eq(self.pin(f"replay_{name}", width)) for name, width in IN_REPLAY],
            *[self.pin(f"replay_{name}", width).eq(getattr(replay, name)) for name, width in OUT_REPLAY],
            gate.mask.eq(1),
            gate.request.eq(self.pin("start_request", 1)),
            path.start_strobe.eq(gate.strobe[0]),
            gate.ready[0].eq(path.ready),
            self.pin("now", 64).eq(clock.now),
            self.pin("tx_valid", 1).eq(path.source.valid),
            self.pin("tx_data", 8).eq(path.source.data),
        ]
        self.add_port(port)

    def add_port(self, port):
        """Join the memory's port to pins."""
        request = port.request
        self.comb += [
            self.pin("asks", 1).eq(request.valid),
            self.pin("address", 20).eq(request.address),
            self.pin("rest", 6).eq(request.rest),
            request.ready.eq(self.pin("takes", 1)),
            port.gives.eq(self.pin("gives", 1)),
            port.read_data.eq(self.pin("word", 32)),
        ]

    def pin(self, name, width):
        """Return a new pin of that name."""
        pin = Signal(width, name=name, name_override=name)
        self.pins.add(pin)
        return pin


def write_verilog(path, with_streams=False):
    """Write the bench to ``path`` as module ``replay_bench``."""
    bench = PortBench(with_streams)
    with own_combinatorial_blocks():
        write_module(bench, "replay_bench", path)
