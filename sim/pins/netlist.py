# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Writes a netlist of Yosys as Verilog that simulates: LUTs and carries as expressions, registers by clock, memories as models."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Bit = int | str
#: Cells of cells.v and netlist.v, by the names of their ports; their parameters that a simulation needs.
MODELLED = {
    "DELAYF": ("DEL_VALUE",),
    "DELAYG": (),
    "IDDRX1F": (),
    "ODDRX1F": (),
    "DCCA": (),
    "FD1S3BX": (),
    "IFS1P3BX": (),
    "OFS1P3BX": (),
    "TRELLIS_IO": (),
    "USRMCLK": (),
    "EHXPLLL": ("CLKFB_DIV", "CLKOP_DIV"),
}
IGNORED = {"$scopeinfo", "VLO", "VHI"}
UNUSED = 10**9  # From here on, no bit of Yosys.
CHUNK_BYTES = 32  # Of an INITVAL_xx of a block RAM, each of nine bits in ten.


class NetlistWriter:
    """Writes one module.

    Parameters
    ----------
    module : as in Yosys' JSON, flat.
    name : of the module that is written.
    """

    def __init__(self, module: dict[str, Any], name: str) -> None:
        self.name = name
        self.ports = module["ports"]
        self.cells = {cell: of for cell, of in module["cells"].items() if of["type"] not in IGNORED}
        self.names: dict[int, str] = {}
        for port, of in self.ports.items():
            for place, bit in enumerate(of["bits"]):
                if isinstance(bit, int) and of["direction"] != "output":
                    self.names[bit] = port if len(of["bits"]) == 1 else f"{port}[{place}]"
        self.wires: set[int] = set()
        self.registers: set[int] = set()

    def net(self, bit: Bit) -> str:
        """Return the name of a bit, or its constant."""
        if isinstance(bit, str):
            return "1'b1" if bit == "1" else "1'b0"
        if bit not in self.names:
            self.wires.add(bit)
            self.names[bit] = f"n{bit}"
        return self.names[bit]

    def of(self, cell: dict[str, Any], port: str, without: str = "0") -> str:
        """Return what a port of a cell, of one bit, is connected to."""
        bits = cell["connections"].get(port) or [without]
        return self.net(bits[0])

    def text(self) -> str:
        """Return the Verilog."""
        body = [line for cell in self.cells.values() for line in self.cell(cell)]
        body += self.clocked()
        for port, of in self.ports.items():
            for place, bit in enumerate(of["bits"]):
                here = port if len(of["bits"]) == 1 else f"{port}[{place}]"
                if of["direction"] == "output":
                    body.append(f"    assign {here} = {self.net(bit)};")
        wires = [f"    {'reg' if bit in self.registers else 'wire'} n{bit};" for bit in sorted(self.wires)]
        header = []
        for port, of in self.ports.items():
            width = f" [{len(of['bits']) - 1}:0]" if len(of["bits"]) > 1 else ""
            header.append(f"    {of['direction']} wire{width} {port}")
        return "\n".join([f"module {self.name} (", ",\n".join(header), ");", *wires, *body, "endmodule", ""])

    def cell(self, cell: dict[str, Any]) -> Iterator[str]:
        """Return the lines of a cell, but for registers."""
        kind = cell["type"]
        if kind == "LUT4":
            yield f"    assign {self.of(cell, 'Z')} = {self.lut(cell, 'INIT', 'DCBA')};"
        elif kind == "CCU2C":
            yield from self.carry(cell)
        elif kind in MODELLED:
            parameters = [f".{name}({number(cell, name)})" for name in MODELLED[kind]]
            ports = [f".{port}({self.net(bits[0])})" for port, bits in cell["connections"].items() if bits]
            given = f" #({', '.join(parameters)})" if parameters else ""
            yield f"    {kind}{given} c{id(cell)} ({', '.join(ports)});"
        elif kind == "TRELLIS_DPR16X4":
            ports = [f".{port}({self.vector(cell, port)})" for port in ("DI", "WAD", "WRE", "WCK", "RAD", "DO")]
            yield f"    TRELLIS_DPR16X4 #(.INITVAL(64'b{bits_of(cell, 'INITVAL', 64)})) c{id(cell)} ({', '.join(ports)});"
        elif kind == "DP16KD":
            yield self.block_ram(cell)
        elif kind == "MULT18X18D":
            a, b = (self.row(cell, letter, 18) for letter in "AB")
            ports = [f".A({a})", f".B({b})", f".SIGNEDA({self.of(cell, 'SIGNEDA')})", f".P({self.row(cell, 'P', 36)})"]
            yield f"    MULT18X18D c{id(cell)} ({', '.join(ports)});"
        elif kind != "TRELLIS_FF":
            raise ValueError(f"cells of type {kind} have no model: write one into sim/pins/netlist.v")

    def lut(self, cell: dict[str, Any], init: str, ports: str) -> str:
        """Return the expression of a LUT, its highest input first."""
        return f"16'b{bits_of(cell, init, 16)} >> {{{', '.join(self.of(cell, port, '1') for port in ports)}}}"

    def carry(self, cell: dict[str, Any]) -> Iterator[str]:
        """Return the lines of two bits of a carry chain (Yosys, techlibs/lattice/cells_sim_ecp5.v, CCU2C)."""
        into = self.of(cell, "CIN")
        for half in "01":
            name = f"c{id(cell)}_{half}"
            inputs = ", ".join(self.of(cell, f"{port}{half}", "1") for port in "DCBA")
            low = ", ".join(self.of(cell, f"{port}{half}", "1") for port in "BA")
            init = f"16'b{bits_of(cell, f'INIT{half}', 16)}"
            injects = cell["parameters"].get(f"INJECT1_{half}", "YES") == "YES"
            yield f"    wire {name}_l = {init} >> {{{inputs}}};"
            generate = "0" if injects else f"{init} >> {{2'b00, {low}}}"
            yield f"    wire {name}_g = {generate};"
            if cell["connections"].get(f"S{half}"):
                yield f"    assign {self.of(cell, f'S{half}')} = {name}_l{'' if injects else f' ^ {into}'};"
            yield f"    wire {name}_c = {name}_l ? {into} : {name}_g;"
            into = f"{name}_c"
        if cell["connections"].get("COUT"):
            yield f"    assign {self.of(cell, 'COUT')} = {into};"

    def clocked(self) -> list[str]:
        """Return the registers, a block a clock."""
        blocks: dict[str, list[str]] = defaultdict(list)
        starts = []
        for cell in self.cells.values():
            if cell["type"] != "TRELLIS_FF":
                continue
            of = {name: str(value).strip() for name, value in cell["parameters"].items()}  # "1 ": text, for Yosys.
            (out,) = cell["connections"]["Q"]
            q, d = self.net(out), self.of(cell, "DI")
            self.registers.add(out)
            level = "1'b1" if of.get("REGSET", "RESET") == "SET" else "1'b0"
            starts.append(f"        {q} = {level};")
            enable = self.of(cell, "CE", "1")
            enable = {"1": "", "0": "1'b0", "INV": f"!{enable}"}.get(of.get("CEMUX", "CE"), enable)
            reset = self.of(cell, "LSR")
            reset = f"!{reset}" if of.get("LSRMUX", "LSR") == "INV" else reset
            clock = f"{'negedge' if of.get('CLKMUX', 'CLK') == 'INV' else 'posedge'} {self.of(cell, 'CLK')}"
            step = f"if ({enable}) {q} <= {d};" if enable not in ("", "1'b1") else f"{q} <= {d};"
            if reset != "1'b0":
                is_async = of.get("SRMODE", "LSR_OVER_CE") == "ASYNC"
                clock += f" or posedge {reset}" if is_async else ""
                step = f"if ({reset}) {q} <= {level}; else {step}"
            blocks[clock].append(f"        {step}")
        lines = ["    initial begin", *starts, "    end"]
        for clock, steps in blocks.items():
            lines += [f"    always @({clock}) begin", *steps, "    end"]
        return lines

    def vector(self, cell: dict[str, Any], port: str) -> str:
        """Return what a port of several bits is connected to."""
        bits = cell["connections"].get(port, [])
        return f"{{{', '.join(self.net(bit) for bit in reversed(bits))}}}" if bits else ""

    def row(self, cell: dict[str, Any], letter: str, count: int) -> str:
        """Return ports ``<letter>0``, ``<letter>1``, ... as one."""
        names = []
        for place in reversed(range(count)):
            bits = cell["connections"].get(f"{letter}{place}")
            unconnected = self.unused() if letter in ("DOA", "DOB", "P") else "1'b0"
            names.append(self.net(bits[0]) if bits else unconnected)
        return f"{{{', '.join(names)}}}"

    def unused(self) -> str:
        """Return a wire that nobody reads."""
        return self.net(UNUSED + len(self.wires))

    def block_ram(self, cell: dict[str, Any]) -> str:
        """Return a block RAM."""
        of = cell["parameters"]
        given = []
        for side in "AB":
            given += [f".WIDTH_{side}({number(cell, f'DATA_WIDTH_{side}') or 18})"]
            given += [f".REGISTERED_{side}({int(of.get(f'REGMODE_{side}', 'NOREG') == 'OUTREG')})"]
            given += [f".BEFORE_{side}({int(of.get(f'WRITEMODE_{side}') == 'READBEFOREWRITE')})"]
            given += [f".THROUGH_{side}({int(of.get(f'WRITEMODE_{side}') == 'WRITETHROUGH')})"]
        chunks = "".join(bits_of(cell, f"INITVAL_{place:02X}", 10 * CHUNK_BYTES) for place in reversed(range(64)))
        given.append(f".INIT({len(chunks)}'b{chunks})")
        ports = []
        for side in "AB":
            ports += [f".AD{side}({self.row(cell, f'AD{side}', 14)})", f".DI{side}({self.row(cell, f'DI{side}', 18)})"]
            ports += [f".DO{side}({self.row(cell, f'DO{side}', 18)})", f".CLK{side}({self.of(cell, f'CLK{side}')})"]
            ports += [f".CE{side}({self.of(cell, f'CE{side}', '1')})", f".WE{side}({self.of(cell, f'WE{side}')})"]
            ports += [f".OCE{side}({self.of(cell, f'OCE{side}', '1')})", f".RST{side}({self.of(cell, f'RST{side}')})"]
            decode = of.get(f"CSDECODE_{side}", "0b000").removeprefix("0b")
            selects = [self.of(cell, f"CS{side}{place}") for place in (2, 1, 0)]
            ports.append(f".CS{side}({{{', '.join(selects)}}} == 3'b{decode})")
        return f"    DP16KD #({', '.join(given)}) c{id(cell)} ({', '.join(ports)});"


def number(cell: dict[str, Any], name: str) -> int:
    """Return a parameter that is a number."""
    text = str(cell["parameters"].get(name, "0"))
    return int(text, 2) if set(text) <= {"0", "1"} and len(text) > 1 else int(text)


def bits_of(cell: dict[str, Any], name: str, width: int) -> str:
    """Return a parameter as binary digits, the highest first."""
    text = str(cell["parameters"].get(name, "0"))
    if text.startswith("0x"):
        return f"{int(text, 16):0{width}b}"
    return text.replace("x", "0").zfill(width)[-width:]


def top_of(netlist: Path) -> dict[str, Any]:
    """Return the top level of a netlist."""
    modules = json.loads(netlist.read_text(encoding="utf-8"))["modules"]
    top: dict[str, Any] = next(one for one in modules.values() if int(one.get("attributes", {}).get("top", "0"), 2))
    return top
