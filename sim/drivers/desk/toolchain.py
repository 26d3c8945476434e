# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Programs that stand in for yosys, nextpnr-ecp5 and ecppack: files in and out are those of the real ones, at once, and empty.

The stand-in for yosys finds the clocks of the Verilog on its own: which nets clock a register, from which output of a PLL or
which pin each comes, and at what frequency. That of nextpnr says that each meets what it is asked for.
"""

import json
import re
import sys
from pathlib import Path

from liteprobe.sim.drivers.tools.fake_loaders import bitstream

VERSION = "0.0"
TOP = "liteprobe"
NAMES = ("yosys", "nextpnr-ecp5", "ecppack")
#: Option of nextpnr that names the device -> what JTAG tells of it (Lattice, FPGA-TN-02039, table of device IDs).
IDCODES = {"--25k": 0x41111043, "--45k": 0x41112043, "--um5g-45k": 0x81112043}
#: Places of each kind in a device: LUT4, flip-flops, block RAMs, multipliers, PLLs, pins.
PLACES = {
    "--25k": (24288, 24288, 56, 28, 2, 197),
    "--45k": (43848, 43848, 108, 72, 4, 245),
    "--um5g-45k": (43848, 43848, 108, 72, 4, 245),
}
KINDS = ("TRELLIS_COMB", "TRELLIS_FF", "DP16KD", "MULT18X18D", "EHXPLLL", "TRELLIS_IO")
PROGRAM = """#!{python}
from liteprobe.sim.drivers.desk.toolchain import main

main()
"""


def install(folder: Path) -> None:
    """Put the programs into a folder of PATH."""
    for name in NAMES:
        (folder / name).write_text(PROGRAM.format(python=sys.executable))
        (folder / name).chmod(0o755)


def main() -> None:
    """Do what the program does by whose name this one is called."""
    name, arguments = Path(sys.argv[0]).name, sys.argv[1:]
    if arguments == ["--version"]:
        print(f"{name} {VERSION} (stand-in)")
        return
    options = dict(zip(arguments, [*arguments[1:], ""], strict=True))
    {"yosys": synthesize, "nextpnr-ecp5": place, "ecppack": pack}[name](options)


def synthesize(_: dict[str, str]) -> None:
    """Write a netlist without cells, with the clocks as an attribute of its own."""
    module = {"attributes": {"top": "1"}, "cells": {}, "clocks": clocks(Path(f"{TOP}.v").read_text(encoding="utf-8"))}
    Path(f"{TOP}.json").write_text(json.dumps({"modules": {TOP: module}}))


def place(options: dict[str, str]) -> None:
    """Write a report in which each clock reaches what it is constrained to, and the device into the configuration."""
    netlist = json.loads(Path(options["--json"]).read_text(encoding="utf-8"))["modules"][TOP]
    constraints = Path(options["--lpf"]).read_text(encoding="utf-8")
    asked = {name: float(mhz) for name, mhz in re.findall(r'FREQUENCY PORT "(\S+)" ([\d.]+) MHz', constraints)}
    fmax = {}
    for net, (pin, ratio) in netlist["clocks"].items():
        mhz = ratio * asked[pin]
        fmax[net] = {"achieved": mhz, "constraint": mhz}
    device = next(option for option in options if option in IDCODES)
    used = {kind: {"used": 0, "available": count} for kind, count in zip(KINDS, PLACES[device], strict=True)}
    report = {"fmax": fmax, "utilization": used, "critical_paths": []}
    Path(options["--report"]).write_text(json.dumps(report))
    Path(options["--textcfg"]).write_text(device)


def pack(options: dict[str, str]) -> None:
    """Write a bitstream that begins as one of the device does, and nothing for SVF."""
    device = Path(f"{TOP}.config").read_text(encoding="utf-8")
    Path(options["--bit"]).write_bytes(bitstream(IDCODES[device]))
    Path(options["--svf"]).touch()


def clocks(verilog: str) -> dict[str, tuple[str, float]]:
    """Return each clock of a register: the pin that it comes from, and its frequency over that of the pin."""
    drivers = dict(re.findall(r"^assign (\w+) = (\w+);$", verilog, re.MULTILINE))
    buffered = dict(re.findall(r"^DCCA .*?\.CLKI\s*\((\w+)\).*?\.CLKO\s*\((\w+)\)", verilog, re.MULTILINE | re.DOTALL))
    ratios: dict[str, tuple[str, float]] = {}
    for attributes, ports in re.findall(r"^\(\* (FREQUENCY_PIN_CLKI.*?) \*\).*?^\) EHXPLLL\w* \((.*?)^\);", verilog, re.M | re.S):
        mhz = {pin: float(text) for pin, text in re.findall(r'FREQUENCY_PIN_(\w+) = "([\d.]+)"', attributes)}
        nets = dict(re.findall(r"\.(CLK\w+)\s*\((\w+)\)", ports))
        pin = root(nets["CLKI"], drivers, {})
        ratios |= {nets[port]: (pin, mhz[port] / mhz["CLKI"]) for port in mhz if port != "CLKI" and port in nets}
    inputs = {output: net for net, output in buffered.items()}
    groups: dict[str, list[str]] = {}
    for net in set(re.findall(r"\bposedge (\w+)", verilog)):
        groups.setdefault(root(net, drivers, inputs), []).append(net)
    # Names as those of nextpnr: of the pin, or of the domain, of whose nets others are copies.
    return {
        min(nets, key=len) if source in ratios else source: ratios.get(source, (source, 1.0))
        for source, nets in groups.items()
    }


def root(net: str, drivers: dict[str, str], buffers: dict[str, str]) -> str:
    """Return the net that drives ``net``, through assignments and ``buffers``."""
    while net in drivers or net in buffers:
        net = drivers.get(net) or buffers[net]
    return net
