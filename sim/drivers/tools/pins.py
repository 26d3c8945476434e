# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Brings a core to plain pins, as one Verilog file, for benches that C++ or cocotb drive."""

from migen import *

from litex.gen import *
from litex.gen.fhdl.verilog import convert

from liteprobe.sim.system.build import inline_memories
from liteprobe.sim.system.combinatorial import own_combinatorial_blocks

BUS_BITS = 16 # Of ``adr`` that each bus has; those above choose the bus.
KEYWORDS = {"begin": "begin_", "end": "end_"} # Of Verilog: pins have other names.

# Pinned Bench -------------------------------------------------------------------------------------

class PinnedBench(LiteXModule):
    """A bench with pins ``<domain>_clk``, ``<domain>_rst`` of its clock domains, and those that are added."""
    def __init__(self, *domains):
        self.pins = set()
        for name in domains or ["sys"]:
            domain = ClockDomain(name)
            setattr(self, f"cd_{name}", domain)
            self.pins |= {domain.clk, domain.rst}

    def add_pin(self, name, width=1):
        """Return a new pin of that name."""
        name = KEYWORDS.get(name, name)
        pin = Signal(width, name=name, name_override=name)
        self.pins.add(pin)
        return pin

    def add_input(self, name, signal):
        """Drive a signal from a new pin."""
        self.comb += signal.eq(self.add_pin(name, len(signal)))

    def add_output(self, name, value):
        """Show a value on a new pin."""
        self.comb += self.add_pin(name, len(value)).eq(value)

    def add_inputs(self, module, names, prefix=""):
        """Drive signals of a module from pins of their names."""
        for name in names:
            self.add_input(f"{prefix}{name}", getattr(module, name))

    def add_outputs(self, module, names, prefix=""):
        """Show signals of a module on pins of their names."""
        for name in names:
            self.add_output(f"{prefix}{name}", getattr(module, name))

    def add_sink(self, name, end, fields=None):
        """Give an endpoint that takes words pins ``<name>_valid``, ``_ready`` and fields: its payload, unless they are named."""
        self.add_inputs(end, ["valid", *(fields_of(end) if fields is None else fields)], f"{name}_")
        self.add_output(f"{name}_ready", end.ready)

    def add_source(self, name, end, fields=None):
        """Give an endpoint that gives words pins, as `add_sink`."""
        self.add_outputs(end, ["valid", *(fields_of(end) if fields is None else fields)], f"{name}_")
        self.add_input(f"{name}_ready", end.ready)

    def add_bus(self, buses):
        """Bring the buses to one: pins ``adr``, ``stb``, ``we``, ``dat_w``, ``ack``, ``dat_r``.

        Bits of ``adr`` from BUS_BITS on choose a bus, by its place in a list or by its key.
        """
        numbered   = buses if isinstance(buses, dict) else dict(enumerate(buses))
        adr        = self.add_pin("adr", BUS_BITS + bits_for(max(numbered)))
        stb, we    = self.add_pin("stb"), self.add_pin("we")
        dat_w      = self.add_pin("dat_w", 32)
        ack, dat_r = self.add_pin("ack"), self.add_pin("dat_r", 32)
        for n, bus in numbered.items():
            is_chosen = adr[BUS_BITS:] == n
            self.comb += [
                bus.adr.eq(adr[:BUS_BITS]),
                bus.stb.eq(stb & is_chosen),
                bus.cyc.eq(stb & is_chosen),
                bus.we.eq(we),
                bus.sel.eq(15),
                bus.dat_w.eq(dat_w),
                If(is_chosen, ack.eq(bus.ack), dat_r.eq(bus.dat_r)),
            ]

def fields_of(end):
    """Return the names of an endpoint's payload."""
    return [name for name, *_ in end.description.payload_layout]

# Verilog ------------------------------------------------------------------------------------------

def write_module(bench, name, path):
    """Write ``bench``, whose pins are ``bench.pins``, to ``path`` as module ``name``, with the contents of its memories."""
    with own_combinatorial_blocks():
        output = convert(bench, ios=bench.pins, name=name)
    path.write_text(inline_memories(output.main_source, output.data_files), encoding="utf-8")

def write_bench(kind, name, path, **parameters):
    """Write a bench of a kind to ``path`` as module ``name``."""
    write_module(kind(**parameters), name, path)
