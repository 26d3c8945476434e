# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Small memories in LUT RAM: a word is shown at once, and changed at the end of the cycle."""

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.layouts import CLASS_BITS
from liteprobe.cores.formats.emulate import CLASSES

def lut_ports(module, name, bits, depth, readers=1):
    """Give ``module`` a memory; return its port to write, then the ports that show a word at once.

    The module doesn't get it as an attribute: LiteX would give it a page of the CSR bus.
    """
    memory = Memory(bits, depth, name=name)
    ports  = [memory.get_port(write_capable=True), *[memory.get_port(async_read=True) for _ in range(readers)]]
    module.specials += memory, *ports
    return ports

# Kept Classes -------------------------------------------------------------------------------------

class KeptClasses(LiteXModule):
    """Keeps fields of each class, a memory a field: so any of them is read, changed and written in one cycle.

    Parameters
    ----------
    layout : list
        Of the fields.
    name : str
        Of the memories.

    Attributes
    ----------
    reads : dict of Signal(3), in
        Of each field: the class that ``kept`` shows.
    kept : Record(layout), out
    number : Signal(3), in
        Class that `put` changes.
    """
    def __init__(self, layout, name):
        self.reads  = {field: Signal(CLASS_BITS, name=f"read_{field}") for field, _ in layout}
        self.kept   = Record(layout)
        self.number = Signal(CLASS_BITS)

        # # #

        self.puts   = {field: Signal(name=f"puts_{field}")        for field, _    in layout}
        self.values = {field: Signal(bits, name=f"value_{field}") for field, bits in layout}
        for field, bits in layout:
            write, read = lut_ports(self, f"{name}_{field}", bits, CLASSES)
            self.comb += [
                read.adr.eq(self.reads[field]),
                getattr(self.kept, field).eq(read.dat_r),
                write.adr.eq(self.number),
                write.dat_w.eq(self.values[field]),
                write.we.eq(self.puts[field]),
            ]

    def put(self, field, value, condition=1):
        """Return the statements that change a field where the condition holds."""
        return [self.puts[field].eq(condition), self.values[field].eq(value)]
