# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Transmit ports as a Verilog module with plain pins, for cocotb and for timing runs."""

from migen import *

from litex.gen import *

from liteprobe.cores.timebase.clock import ProbeClock
from liteprobe.cores.transmit.frames import program_layout
from liteprobe.cores.transmit.pace import StartGate
from liteprobe.cores.transmit.path import COUNTERS, TransmitPath
from liteprobe.sim.bench.tools.module import write_module
from liteprobe.sim.system.build import own_combinatorial_blocks

PORT_INPUTS = [(name, width) for name, width in program_layout] + [
    ("arm", 1),
    ("stop", 1),
    ("clear", 1),
    ("header_adr", 5),
    ("header_dat", 32),
    ("header_we", 1),
    ("management_valid", 1),
    ("management_last", 1),
    ("management_data", 32),
    ("management_last_be", 4),
]
PORT_OUTPUTS = [(name, 32) for name in COUNTERS] + [("state", 3), ("tx_valid", 1), ("tx_data", 8)]

# Transmit Bench -----------------------------------------------------------------------------------


class TransmitBench(LiteXModule):
    """Transmit ports, a clock and a start gate, on pins.

    Pins: ``<domain>_clk``, ``<domain>_rst`` of ``sys`` and ``timebase``; ``p<n>_<name>`` for each name of
    PORT_INPUTS and PORT_OUTPUTS; ``start_mask``, ``start_request``; ``now``, ``ticks``, ``set``, ``set_time``, ``increment``.
    """

    def __init__(self, ports=2, data_width=32, with_management=True):
        self.pins = set()
        for name in ["sys", "timebase"]:
            domain = ClockDomain(name)
            setattr(self, f"cd_{name}", domain)
            self.pins |= {domain.clk, domain.rst}
        self.clock = clock = ProbeClock()
        self.gate = gate = StartGate(ports)
        for number in range(ports):
            self.add_port(number, clock, data_width, with_management)
        for name, signal in [
            ("now", clock.now),
            ("ticks", clock.ticks),
            ("set", clock.set),
            ("set_time", clock.set_time),
            ("increment", clock.increment),
            ("start_mask", gate.mask),
            ("start_request", gate.request),
        ]:
            self.add_pin(name, signal, is_input=name not in ["now", "ticks"])

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
        signals = {name: getattr(path.program, name) for name, _ in program_layout}
        signals.update({name: getattr(path, name) for name in ["arm", "stop", "clear"]})
        signals.update(header_adr=write.adr, header_dat=write.dat_w, header_we=write.we)
        if with_management:
            sink = path.management_sink
            signals.update(
                management_valid=sink.valid,
                management_last=sink.last,
                management_data=sink.data,
                management_last_be=sink.last_be,
            )
        for name, _ in PORT_INPUTS:
            if name in signals:
                self.add_pin(f"p{number}_{name}", signals[name], is_input=True)
        outputs = {name: getattr(path, name) for name in COUNTERS}
        outputs.update(state=path.state, tx_valid=path.source.valid, tx_data=path.source.data)
        for name, _ in PORT_OUTPUTS:
            self.add_pin(f"p{number}_{name}", outputs[name], is_input=False)
        self.comb += [
            path.start_strobe.eq(self.gate.strobe[number]),
            self.gate.ready[number].eq(path.ready),
        ]

    def add_pin(self, name, signal, is_input):
        """Connect a signal to a pin of that name."""
        pin = Signal(len(signal), name=name, name_override=name)
        self.pins.add(pin)
        self.comb += signal.eq(pin) if is_input else pin.eq(signal)


def write_verilog(path, **kwargs):
    """Write the bench to ``path`` as module ``transmit_bench``; keywords as of TransmitBench."""
    bench = TransmitBench(**kwargs)
    with own_combinatorial_blocks():
        write_module(bench, "transmit_bench", path)
