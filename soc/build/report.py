# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Area and timing of a build, from nextpnr's report, held against what was asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Our name of a resource -> nextpnr's. A TRELLIS_COMB is one LUT4, whether used for logic, carry or RAM.
RESOURCES = {
    "lut4": "TRELLIS_COMB",
    "ff": "TRELLIS_FF",
    "ebr": "DP16KD",
    "dsp": "MULT18X18D",
    "pll": "EHXPLLL",
    "io": "TRELLIS_IO",
}
# Nets of clocks, as nextpnr names them -> domain. Outputs of the PLL are in the order of boards/clocks.py.
CLOCK_NETS = [
    (re.compile(r"sys_clk|(\w+_)?clkout0"), "sys"),
    (re.compile(r"timebase_clk|(\w+_)?clkout1"), "timebase"),
    (re.compile(r"timebase2x_clk"), "timebase2x"),
    (re.compile(r"memory_clk"), "memory"),
    (re.compile(r"eth_clocks(\d+)_rx"), r"eth_rx\1"),
]
# Of the clocks of a board's PLL nextpnr is asked for so much more than a build is held to: asked for just that, it once ended
# 0.1 MHz short. The clocks of PHYs have more than that to spare.
GUARD = 1.02
ROUNDING = 0.002 # Of a constraint: nextpnr takes periods in whole picoseconds.
# From a clock to one that rises with it, which nextpnr takes for unrelated: what a path may take (ns). Of the 4 ns between two
# edges something is left for the skew of two global nets.
CROSSINGS_NS = {("timebase2x", "timebase"): 3.5}


@dataclass(frozen=True)
class Clock:
    """A clock domain: what was reached and what it is held to (MHz)."""

    name: str
    fmax_mhz: float
    constraint_mhz: float


def domain_of(net: str) -> str:
    """Return the clock domain of a net of nextpnr's report; the net itself when it is none of ours."""
    plain = net.removeprefix("$glbnet$").split("$TRELLIS")[0]
    for pattern, name in CLOCK_NETS:
        match = pattern.fullmatch(plain)
        if match:
            return match.expand(name)
    return plain


def clocks_of(report: Mapping[str, Any]) -> list[Clock]:
    """Return the clocks of nextpnr's report, by name, without the guard band of their constraints."""
    clocks = []
    for net, entry in report["fmax"].items():
        name = domain_of(net)
        asked_mhz = entry["constraint"] / (1 if name.startswith("eth_rx") else GUARD)
        clocks.append(Clock(name, round(entry["achieved"], 2), round(asked_mhz, 1)))
    return sorted(clocks, key=lambda clock: clock.name)


def area_of(report: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return used, available and percent of each resource."""
    area = {}
    for name, theirs in RESOURCES.items():
        entry = report["utilization"].get(theirs)
        if entry:
            used, available = entry["used"], entry["available"]
            area[name] = {"used": used, "available": available, "percent": round(100 * used / available, 1)}
    return area


def guarded(constraints: str) -> str:
    """Return the text of a .lpf with GUARD times its frequencies, but those of PHYs."""
    pattern = r'(FREQUENCY PORT "(?!eth_)\S+) ([\d.]+) MHz'
    return re.sub(pattern, lambda line: f"{line[1]} {GUARD * float(line[2]):g} MHz", constraints)


def late_crossings(report: Mapping[str, Any]) -> list[str]:
    """Return a line for each path between two clocks that takes longer than CROSSINGS_NS; none when all is well."""
    lines = []
    for path in report["critical_paths"]:
        edges = [path[end].split() for end in ("from", "to")]
        domains = tuple(domain_of(edge[-1]) for edge in edges)
        delay_ns = sum(part["delay"] for part in path["path"])
        limit_ns = CROSSINGS_NS.get(domains)  # type: ignore[arg-type]
        if limit_ns is not None and delay_ns > limit_ns:
            lines.append(f"a path from {domains[0]} to {domains[1]} takes {delay_ns:.2f} ns, {limit_ns:g} ns asked for")
    return lines


def misses(clocks: list[Clock], asked_mhz: Mapping[str, float]) -> list[str]:
    """Return a line for each clock that misses, lacks or has a wrong constraint; none when timing is met.

    Parameters
    ----------
    asked_mhz : what each domain must be constrained to (MHz). A domain that nextpnr doesn't report, or reports
        with another constraint, is a miss: nextpnr gives 12 MHz to a clock that nobody constrained.
    """
    lines = []
    found = {clock.name: clock for clock in clocks}
    for name, mhz in asked_mhz.items():
        if name not in found:
            lines.append(f"clock {name} is not in the timing report, {mhz:g} MHz asked for")
    for clock in clocks:
        mhz = asked_mhz.get(clock.name, clock.constraint_mhz)
        if abs(clock.constraint_mhz - mhz) > ROUNDING * mhz or clock.name not in asked_mhz:
            lines.append(f"clock {clock.name} was constrained to {clock.constraint_mhz:g} MHz by mistake")
        elif clock.fmax_mhz < mhz:
            lines.append(f"clock {clock.name} reaches {clock.fmax_mhz:.2f} MHz, {mhz:g} MHz asked for")
    return lines


def least_margins(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the least margin of each bus of our report, as `Margin` has it, by data sheets; none of a report without."""
    least: dict[str, dict[str, Any]] = {}
    for margin in report.get("io_margins", []):
        bus = margin["bus"]
        if bus not in least or margin["worst_ns"] < least[bus]["worst_ns"]:
            least[bus] = margin
    return list(least.values())


def margin_lines(report: Mapping[str, Any]) -> list[str]:
    """Return a line that says the least of all margins, as a summary has it; none of a report without."""
    least = sorted(least_margins(report), key=lambda margin: float(margin["worst_ns"]))[:1]
    return [
        f"  least margin of I/O, by data sheets: {one['worst_ns']:.2f} ns, {one['bus']}, {one['what']} "
        f"(typically {one['typical_ns']:.2f} ns)"
        for one in least
    ]
