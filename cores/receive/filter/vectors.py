# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Finds all rows of a table of addresses whose prefix an address has."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import FILTER_ROWS, FILTER_VECTORS
from liteprobe.cores.receive.filter.layouts import access_layout

# Prefix Vectors -----------------------------------------------------------------------------------

class PrefixVectors(LiteXModule):
    """Looks an address up, an octet a cycle.

    A word says which rows may match, by what half an octet of the address is: those that match are left when all words are
    and'ed. Two block RAMs, of high and low halves, hold the words. (T. Ganegedara, V. K. Prasanna: StrideBV: Single chip 400G+
    packet classification, HPSR 2012; stride 4.)

    Parameters
    ----------
    table : int
        Of source addresses (0) or destination addresses (1).

    Attributes
    ----------
    access : Record(access_layout()), in
        Words are written; the bus reads a copy (`FilterSets`).
    address : Signal(128), in
        As on the wire, the first octet in the lowest bits; all of it counts, so where it has but four octets, words of
        the others say that all rows may match.
    octet : Signal(4), in
        Which octet is looked up: from 0 to 15.
    rows : Signal(32), out
        A bit a row. Right two cycles after the last octet has been asked for.
    """
    def __init__(self, table):
        self.access  = access = Record(access_layout())
        self.address = Signal(128)
        self.octet   = Signal(4)
        self.rows    = Signal(FILTER_ROWS, reset_less=True)

        # # #

        value = Signal(8)
        self.comb += Case(self.octet, {octet: value.eq(self.address[8*octet:8*octet + 8]) for octet in range(16)})

        found = []
        for is_low, half in enumerate([value[4:], value[:4]]):
            memory = Memory(FILTER_ROWS, 256)
            memory.attr = {("ram_style", "block")}
            writer, reader = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
            self.specials += memory, writer, reader
            self.comb += [
                writer.we.eq(access.write & (access.address[9:] == FILTER_VECTORS[table] >> 9) & (access.address[4] == is_low)),
                writer.adr.eq(Cat(access.address[:4], access.address[5:9])),
                writer.dat_w.eq(access.data),
                reader.adr.eq(Cat(half, self.octet)),
            ]
            found.append(reader.dat_r)

        is_first = Signal()
        self.sync += [
            is_first.eq(self.octet == 0),
            self.rows.eq(found[0] & found[1] & (self.rows | Replicate(is_first, FILTER_ROWS))),
        ]
