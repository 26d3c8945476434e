# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Puts the top level of a board behind the pins of the simulated board: PHYs at RGMII, an SDRAM, ideal clocks of its PLL."""

import re
from math import ceil
from typing import Any, NamedTuple

PORTS = 2
MANAGEMENT_PORT = 2  # Of the harness, where management has a port of its own.
TICK_NS, HALF_NS = 8, 2  # HALF_NS: least half period of a clock of the harness.
OUTPUTS = ("CLKOP", "CLKOS", "CLKOS2", "CLKOS3")  # Of an EHXPLLL, in LiteX's order.
ARTIX_OUTPUTS = tuple(f"CLKOUT{n}" for n in range(6))  # Of a PLLE2_ADV.

ECP5_PLL = """\
module EHXPLLL #({parameters}) (
    input CLKI, RST, STDBY, PHASESEL0, PHASESEL1, PHASEDIR, PHASESTEP, PHASELOADREG, PLLWAKESYNC, ENCLKOP, CLKFB,
    input ENCLKOS, ENCLKOS2, ENCLKOS3, output CLKOP, CLKOS, CLKOS2, CLKOS3, LOCK, INTLOCK, REFCLK, CLKINTFB
);
    assign {{CLKOS3, CLKOS2, CLKOS, CLKOP}} = {first} ? liteprobe_sim.pll[3:0] : liteprobe_sim.memory_pll[3:0];
    assign LOCK = ~RST;
endmodule
"""
ARTIX_PLL = """\
module PLLE2_ADV #({parameters}) (
    input CLKIN1, CLKFBIN, PWRDWN, RST, output CLKFBOUT, CLKOUT0, CLKOUT1, CLKOUT2, CLKOUT3, CLKOUT4, CLKOUT5, LOCKED
);
    assign {{CLKOUT5, CLKOUT4, CLKOUT3, CLKOUT2, CLKOUT1, CLKOUT0}} = {first} ? liteprobe_sim.pll : liteprobe_sim.memory_pll;
    assign LOCKED = ~RST;
endmodule
"""
#: The name of a family's PLL, the parameters that two of a board differ in, its Verilog.
PLLS = (
    ("EHXPLLL", ("CLKFB_DIV", "CLKOP_DIV"), ECP5_PLL),
    ("PLLE2_ADV", ("CLKFBOUT_MULT", "CLKOUT0_DIVIDE"), ARTIX_PLL),
)
WRAPPER = """\
// The one that makes ``sys``, or that of a memory with a clock of its own.
{pll}
module liteprobe_sim (
    input  [5:0] pll, memory_pll,
    input        half,
    input  [1:0] rx_clk, rx_half, valid, mdio_drive,
    input  [7:0] data0, data1,
    input  [3:0] in_band0, in_band1,
    input signed [15:0] skew_ps,
    input        noise,
    output       mdc, mdio, phy_reset_n,
    output [1:0] sent_valid,
    output [7:0] sent_data0, sent_data1,
    input        pps, gnss_rx, serial_rx, flash_miso,
    output       pps_out, gnss_tx, serial_tx, flash_cs_n, flash_mosi,
    output reg   flash_clk
);
{wires}
{phys}
{sdram}
    {top} board (
        {connections}
    );
endmodule
"""
PHY = """\
    rgmii_phy phy{n} (
        .half(half), .rx_half(rx_half[{n}]), .in_band(in_band{n}),
        .tx_ctl(eth{n}_tx_ctl), .tx_data(eth{n}_tx_data), .rx_ctl(eth{n}_rx_ctl), .rx_data(eth{n}_rx_data),
        .sent_valid(sent_valid[{n}]), .sent_data(sent_data{n}), .valid(valid[{n}]), .data(data{n})
    );
"""
SDRAM = """\
    sdram_chip #(.BANK_BITS($bits(sdram_ba))) sdram (
        .clk(sdram_clock), .ras_n(sdram_ras_n), .cas_n(sdram_cas_n), .we_n(sdram_we_n),
        .a(sdram_a[10:0]), .ba(sdram_ba), .dq(sdram_dq)
    );
"""
# Pins of a board: what the harness names them.
HARNESS = {
    "gnss_rx": "gnss_rx",
    "gnss_tx": "gnss_tx",
    "pps_out": "pps_out",
    "serial_rx": "serial_rx",
    "serial_tx": "serial_tx",
    "spiflash_cs_n": "flash_cs_n",
    "spiflash_mosi": "flash_mosi",
    "spiflash_miso": "flash_miso",
    **{f"eth_clocks{port}_rx": f"rx_clk[{port}]" for port in range(PORTS)},
}


class Pin(NamedTuple):
    """A port of a module: ``input`` or ``output``, its range (``[3:0]``, or empty) and its name."""

    direction: str
    width: str
    name: str


def pins_of(verilog: str, top: str) -> list[Pin]:
    """Return the ports of a module that LiteX or Yosys wrote."""
    found = re.search(rf"^module {top}\s*\((.*?)\);", verilog, re.S | re.M)
    if not found:
        raise ValueError(f"this Verilog has no module {top}")
    header = found[1]
    if "input" in header or "output" in header:
        lines = re.findall(r"(input|output|inout)\s+(?:wire|reg)?\s*(\[\d+:\d+\])?\s*(\w+)", header)
    else:  # Yosys declares them in the body.
        body = verilog[found.end() : verilog.index("endmodule", found.end())]
        lines = re.findall(r"^\s*(input|output|inout)\s+(?:wire|reg)?\s*(\[\d+:\d+\])?\s*(\w+)\s*;", body, re.M)
    return [Pin(*line) for line in lines]


def pps_pin(pins: list[Pin]) -> str:
    """Return the name of the PPS input: the 5A-75B takes it by its button."""
    names = [pin.name for pin in pins if pin.name in ("pps", "user_btn_n0", "user_btn_n")]
    return names[0] if names else ""


def pll_of(verilog: str, pll: Any) -> str:
    """Return the Verilog of the PLL that a board instantiates; ``pll``: LiteX's, finalized, the one that makes ``sys``."""
    name, key, text = next(one for one in PLLS if re.search(rf"^\s*{one[0]}\b", verilog, re.M))
    first = " && ".join(f"{parameter} == {pll.params[f'p_{parameter}']}" for parameter in key)
    parameters = sorted(parameters_of(verilog, name) | set(key))
    return text.format(parameters=", ".join(f"parameter {parameter} = 0" for parameter in parameters), first=first)


def parameters_of(verilog: str, cell: str) -> set[str]:
    """Return the names of the parameters that the instances of a cell are given."""
    names: set[str] = set()
    for block in re.findall(rf"^\s*{cell}\s*#\((.*?)\)\s*\w+\s*\(", verilog, re.S | re.M):
        names |= set(re.findall(r"\.(\w+)\s*\(", block))
    return names


def wrapper(verilog: str, top: str, pll: Any) -> str:
    """Return the Verilog of ``liteprobe_sim``: the module ``top`` and what is at its pins; ``pll``: as of `pll_of`."""
    pins = pins_of(verilog, top)
    names = {pin.name for pin in pins}
    pps = pps_pin(pins)
    wires, connections = [], []
    for pin in pins:
        if pin.name == pps:
            target = "pps"
        elif pin.name in HARNESS:
            target = HARNESS[pin.name]
        elif pin.direction == "input" and not pin.name.startswith(("eth", "sdram")):
            target = "1'b1" if pin.name.endswith("_n") else "1'b0"
        else:
            target = pin.name
            wires.append(f"    wire {pin.width} {pin.name};")
        connections.append(f".{pin.name}({target})")
    idle = [
        ("serial_tx", "1'b1"),
        ("pps_out", "1'b0"),
        ("gnss_tx", "1'b1"),
        ("flash_cs_n", "1'b1"),
        ("flash_mosi", "1'b0"),
    ]
    driven = {HARNESS.get(name) for name in names}
    wires += [f"    assign {name} = {level};" for name, level in idle if name not in driven]
    phys = [PHY.format(n=port) for port in range(PORTS) if f"eth{port}_tx_ctl" in names]
    for port in range(PORTS):
        if f"eth{port}_tx_ctl" not in names:
            wires.append(f"    assign sent_valid[{port}] = 0, sent_data{port} = 0;")
    mdio = next((port for port in range(PORTS) if f"eth{port}_mdio" in names), None)
    if mdio is None:
        wires.append("    assign mdc = 0, mdio = 1;")
    else:
        wires.append(f"    pullup (eth{mdio}_mdio);")
        wires.append(f"    assign eth{mdio}_mdio = mdio_drive[1] ? 1'bz : mdio_drive[0];")
        wires.append(f"    assign mdc = eth{mdio}_mdc, mdio = eth{mdio}_mdio;")
    reset = [pin.name for pin in pins if pin.name.endswith("_rst_n") and pin.direction == "output"]
    wires.append(f"    assign phy_reset_n = {' & '.join(reset) or 1};")
    sdram = SDRAM if "sdram_clock" in names else ""
    return WRAPPER.format(
        pll=pll_of(verilog, pll),
        wires="\n".join(wires),
        phys="\n".join(phys),
        sdram=sdram,
        top=top,
        connections=",\n        ".join(connections),
    )


def bidirectional(verilog: str) -> str:
    """Return Verilog of LiteX whose SDRAM data and MDIO go both ways, as they do: it calls them inputs."""
    return re.sub(r"\binput\s+wire(\s+(?:\[\d+:0\]\s+)?(?:sdram_dq|eth\d_mdio)\b)", r"inout  wire\1", verilog)


def board_header(clocks: Any, phy_id: int, has_own_link: bool = False) -> str:
    """Return the C++ of ``board.h``: the clocks of a board's finalized PLLs, in whole nanoseconds, and the PHYs.

    These have an identifier, and ports of the harness: the second one is a test port, or the one of management. The harness
    has steps of 2 ns: so the clock of a memory, which shares no edge with others, has the even half period next to its own, and
    what is late by less than a step is late by one.
    """
    memory_pll = getattr(clocks, "memory_pll", None)
    rows = [f"{{{round(period_ns)}, {round(late_ns)}}}" for period_ns, late_ns in pll_clocks(clocks.pll, is_whole=True)]
    of_memory = [(0.0, 0.0)] if memory_pll is None else pll_clocks(memory_pll)
    memory_rows = [
        f"{{{2 * HALF_NS * round(period_ns / 2 / HALF_NS)}, {HALF_NS * ceil(late_ns / HALF_NS)}}}"
        for period_ns, late_ns in of_memory
    ]
    lines = ["#pragma once", "#include <cstdint>", "namespace liteprobe {"]
    lines += ["struct Clock { uint64_t period_ns, late_ns; };"]
    lines += [f"constexpr Clock PLL[] = {{{', '.join(rows)}}}, MEMORY_PLL[] = {{{', '.join(memory_rows)}}};"]
    lines.append(f"constexpr unsigned PORT_OF_PHY[] = {{0, {MANAGEMENT_PORT if has_own_link else 1}}};")
    return "\n".join([*lines, f"constexpr uint32_t PHY_ID = {phy_id:#x};", "}", ""])


def pll_clocks(pll: Any, is_whole: bool = False) -> list[tuple[float, float]]:
    """Return period and delay (ns) of each output of a PLL. ``is_whole``: periods must be whole numbers, else ValueError."""
    of = pll.params
    if "p_CLKFBOUT_MULT" in of:
        return artix_clocks(pll)
    feedback = "CLK" + of["p_FEEDBK_PATH"].removeprefix("INT_")
    vco_ghz = pll.clkin_freq / 1e9 / of["p_CLKI_DIV"] * of["p_CLKFB_DIV"] * of[f"p_{feedback}_DIV"]
    clocks = []
    for name in OUTPUTS:
        if f"p_{name}_DIV" not in of:
            break
        divider = of[f"p_{name}_DIV"]
        period_ns = divider / vco_ghz
        late_ns = (of[f"p_{name}_CPHASE"] - (divider - 1) + of[f"p_{name}_FPHASE"] / 8) / vco_ghz
        if is_whole and name != feedback and abs(period_ns - round(period_ns)) > 1e-6:
            raise ValueError(f"{name} has a period of {period_ns} ns: the harness keeps whole nanoseconds")
        clocks.append((period_ns, late_ns))
    return clocks


def artix_clocks(pll: Any) -> list[tuple[float, float]]:
    """Return period and delay (ns) of each output of a PLL of an Artix-7; ValueError where they aren't whole.

    A period that isn't one of whole steps of the harness, such as the 5 ns that delays of pins are kept by, is 0: it stands still.
    """
    of = pll.params
    vco_ghz = pll.clkin_freq / 1e9 / of["p_DIVCLK_DIVIDE"] * of["p_CLKFBOUT_MULT"]
    clocks = []
    for name in ARTIX_OUTPUTS:
        if f"p_{name}_DIVIDE" not in of:
            break
        period_ns = of[f"p_{name}_DIVIDE"] / vco_ghz
        if abs(period_ns - round(period_ns)) > 1e-6:
            raise ValueError(f"{name} has a period of {period_ns} ns: the harness keeps whole nanoseconds")
        is_of_steps = round(period_ns) % (2 * HALF_NS) == 0
        clocks.append((period_ns if is_of_steps else 0.0, period_ns * of[f"p_{name}_PHASE"] / 360))
    return clocks
