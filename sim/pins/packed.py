# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes a netlist that nextpnr has packed back to the cells that Yosys maps to, by what the FPGA does with each of them.

So the models are those of Yosys' netlist, and what is compared is nextpnr's packing: constants that became settings of
multiplexers, registers that went into pads, RAM that went into slices. Source: Project Trellis (cells, multiplexers, the pins
that TRELLIS_RAMW passes on), FPGA-TN-02032 (registers of pads).
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

Cell = dict[str, Any]
HIGH, LOW = ["1"], ["0"]
# An input that nothing drives is 1; its multiplexer makes 0 of it, or a constant.
CONSTANTS = {"0": LOW, "1": HIGH}
INVERTER = "0101010101010101"
FOLLOWER = "1010101010101010"
# What a TRELLIS_RAMW passes on to the words that are written.
WRITE_PINS = {
    **{f"WADO{bit}": f"{pin}0" for bit, pin in enumerate("DBCA")},
    **{f"WDO{bit}": f"{pin}1" for bit, pin in enumerate("CADB")},
}
READ_PINS = "DBCA"  # Of an address, from bit 0 on.
DELAY_PINS = ("LOADN", "MOVE", "DIRECTION")


class Unpacker:
    """Takes one module back.

    ``module``: as nextpnr writes it after ``--pack-only``.
    """

    def __init__(self, module: dict[str, Any]) -> None:
        self.module = deepcopy(module)
        self._next = 1 + max(bit for one in module["netnames"].values() for bit in one["bits"] if isinstance(bit, int))
        self._more: dict[str, Cell] = {}

    def unpacked(self) -> dict[str, Any]:
        """Return the module, of cells that Yosys knows."""
        cells: dict[str, Cell] = {}
        for name, cell in self.module["cells"].items():
            for number, made in enumerate(self._cells(cell)):
                cells[f"{name}${number}"] = made
        self.module["cells"] = cells | self._more
        return self.module

    def _cells(self, cell: Cell) -> Iterator[Cell]:
        kind = cell["type"]
        if kind == "TRELLIS_COMB":
            yield from self._comb(cell)
        elif kind == "TRELLIS_RAMW":
            for out, pin in WRITE_PINS.items():
                if bits := cell["connections"].get(out):
                    yield _lut(FOLLOWER, self._pin(cell, pin), bits)
        elif kind == "TRELLIS_FF":
            data = "DI" if _text(cell, "SD") == "1" else "M"
            connections = {port: self._pin(cell, port, LOW if port == "LSR" else HIGH) for port in ("CLK", "CE", "LSR")}
            yield {**cell, "connections": {**connections, "DI": self._pin(cell, data), "Q": cell["connections"]["Q"]}}
        elif kind in ("DP16KD", "MULT18X18D"):
            yield self._block(cell)
        elif kind in ("IOLOGIC", "SIOLOGIC"):
            yield from self._pad_registers(cell)
        elif kind == "TRELLIS_IO":
            yield from self._pad(cell)
        elif kind == "USRMCLK":
            of = cell["connections"]
            yield {**cell, "connections": {"USRMCLKI": of["PADDO"], "USRMCLKTS": of["PADDT"]}}
        else:
            yield cell

    # Pins -------------------------------------------------------------------------------------

    def _pin(self, cell: Cell, port: str, undriven: list[Any] = HIGH) -> list[Any]:
        """Return what arrives behind the multiplexer of a pin; constants and inversions of clock, enable and reset of a
        register stay parameters, which both netlists have.
        """
        bits: list[Any] = cell["connections"].get(port) or undriven
        way = _text(cell, f"{port}MUX")
        if way in CONSTANTS:
            return CONSTANTS[way]
        if way != "INV" or cell["type"] == "TRELLIS_FF":
            return bits
        if bits == HIGH:
            return LOW
        out = [self._next]
        self._next += 1
        self._more[f"$inverted${out[0]}"] = _lut(INVERTER, bits, out)
        return out

    # Cells ------------------------------------------------------------------------------------

    def _comb(self, cell: Cell) -> Iterator[Cell]:
        """Return what a LUT of a slice is: logic, one bit of a carry chain, or one bit of a RAM."""
        mode = _text(cell, "MODE") or "LOGIC"
        of = cell["connections"]
        if of.get("OFX"):
            raise ValueError("a wide multiplexer has no model: synthesize without (-nowidelut)")
        if mode == "LOGIC":
            yield {
                "type": "LUT4",
                "parameters": {"INIT": cell["parameters"]["INITVAL"]},
                "connections": {**{pin: self._pin(cell, pin) for pin in "ABCD"}, "Z": of["F"]},
            }
        elif mode == "CCU2":
            # The other half passes the carry on: its table is 1.
            init, inject = cell["parameters"]["INITVAL"], cell["parameters"].get("CCU2_INJECT1", "NO")
            yield {
                "type": "CCU2C",
                "parameters": {"INIT0": init, "INJECT1_0": inject, "INIT1": "1" * 16, "INJECT1_1": "NO"},
                "connections": {
                    **{f"{pin}0": self._pin(cell, pin) for pin in "ABCD"},
                    "CIN": of.get("FCI") or LOW,
                    "S0": of.get("F", []),
                    "COUT": of.get("FCO", []),
                },
            }
        elif mode == "DPRAM":
            table = _text(cell, "INITVAL").zfill(16)
            initial = ["0"] * 64
            for place in range(16):
                # Bit 3 of a table's place is pin D, which is bit 0 of the address; and so on.
                pins = {pin: place >> number & 1 for number, pin in enumerate("ABCD")}
                address = sum(pins[pin] << bit for bit, pin in enumerate(READ_PINS))
                initial[63 - address] = table[15 - place]
            yield {
                "type": "TRELLIS_DPR16X4",
                "parameters": {"INITVAL": "".join(initial)},
                "connections": {
                    "RAD": [self._pin(cell, pin)[0] for pin in READ_PINS],
                    "WAD": [self._pin(cell, f"WAD{bit}")[0] for bit in range(4)],
                    "DI": [*self._pin(cell, "WD"), "0", "0", "0"],
                    "DO": [*of["F"], *[self._unused() for _ in range(3)]],
                    "WRE": self._pin(cell, "WRE"),
                    "WCK": self._pin(cell, "WCK"),
                },
            }
        elif mode != "RAMW_BLOCK":  # That only keeps its place from being used.
            raise ValueError(f"a slice of mode {mode} has no model: write one into sim/pins/packed.py")

    def _block(self, cell: Cell) -> Cell:
        """Return a block RAM or a multiplier whose inputs are what arrives at them."""
        ins = {port for port, way in cell["port_directions"].items() if way == "input"}
        connections = {
            port: self._pin(cell, port) if port in ins else bits for port, bits in cell["connections"].items()
        }
        return {**cell, "connections": connections}

    def _pad_registers(self, cell: Cell) -> Iterator[Cell]:
        """Return the registers in a pad, of one edge or of both."""
        of, mode = cell["connections"], _text(cell, "MODE")
        clock, enable, reset = of["CLK"], of.get("CE") or HIGH, of.get("LSR") or LOW
        if mode == "IREG_OREG":
            for kind, data, out in (
                ("IFS1P3BX", "PADDI", "INFF"),
                ("OFS1P3BX", "TXDATA0", "IOLDO"),
                ("OFS1P3BX", "TSDATA0", "IOLTO"),
            ):
                if of.get(out):
                    yield {
                        "type": kind,
                        "parameters": {},
                        "connections": {"D": of[data], "SP": enable, "SCLK": clock, "PD": reset, "Q": of[out]},
                    }
        elif mode == "IDDRX1_ODDRX1":
            if of.get("RXDATA0"):
                late = [self._unused()]
                yield {
                    "type": "DELAYF",
                    "parameters": {"DEL_VALUE": str(int(_text(cell, "DELAY.DEL_VALUE"), 2))},
                    "connections": {"A": of["PADDI"], "Z": late, **{pin: of.get(pin) or HIGH for pin in DELAY_PINS}},
                }
                yield {
                    "type": "IDDRX1F",
                    "parameters": {},
                    "connections": {"D": late, "SCLK": clock, "RST": reset, "Q0": of["RXDATA0"], "Q1": of["RXDATA1"]},
                }
            if of.get("IOLDO"):
                yield {
                    "type": "ODDRX1F",
                    "parameters": {},
                    "connections": {
                        "D0": of["TXDATA0"],
                        "D1": of["TXDATA1"],
                        "SCLK": clock,
                        "RST": reset,
                        "Q": of["IOLDO"],
                    },
                }
        else:
            raise ValueError(f"a pad of mode {mode} has no model: write one into sim/pins/packed.py")

    def _pad(self, cell: Cell) -> Iterator[Cell]:
        """Return a pad: a wire where it has one direction."""
        of = cell["connections"]
        is_registered = "IOLDO" in {_text(cell, name) for name in cell["parameters"] if name.startswith("DATAMUX_")}
        out = of.get("IOLDO") if is_registered else of.get("I")
        off = of.get("IOLTO") if _text(cell, "TRIMUX_TSREG") == "IOLTO" else of.get("T")
        direction = _text(cell, "DIR")
        if direction == "INPUT":
            if of.get("O"):
                yield _lut(FOLLOWER, of["B"], of["O"])
        elif direction == "OUTPUT":
            yield _lut(FOLLOWER, out or LOW, of["B"])
        else:
            yield {
                "type": "TRELLIS_IO",
                "parameters": {},
                "connections": {"B": of["B"], "I": out or LOW, "T": off or LOW, "O": of.get("O") or [self._unused()]},
            }

    def _unused(self) -> int:
        self._next += 1
        return self._next - 1


def _lut(table: str, bits: list[Any], out: list[Any]) -> Cell:
    """Return a LUT of one input."""
    return {"type": "LUT4", "parameters": {"INIT": table}, "connections": {"A": bits, "Z": out}}


def _text(cell: Cell, name: str) -> str:
    """Return a parameter; nextpnr ends text that could be a number by a space."""
    return str(cell["parameters"].get(name, "")).strip()
