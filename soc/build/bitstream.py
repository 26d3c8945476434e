# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Builds a bitstream and its report from a board and a configuration: ``python -m liteprobe.soc.build.bitstream BOARD``."""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from liteprobe.boards import VERILOG_ONLY, board
from liteprobe.cores.formats import DEFAULT_PRESET
from liteprobe.soc.build import openxc7
from liteprobe.soc.build.arguments import board_for, check_together, config_of, left_out, parse
from liteprobe.soc.build.flagships import first_seed, out_folder
from liteprobe.soc.build.load import LoadTarget, backup_only, detect, flash_options_of, load_or_flash, restore_only
from liteprobe.soc.build.record import record
from liteprobe.soc.build.toolchain import BuildError, require, run_tool, tail, version_of
from liteprobe.soc.config import ProbeConfig
from liteprobe.soc.export import identity, write_map
from liteprobe.soc.extension import extend_with
from liteprobe.soc.probe import ProbeSoC


# Our name of a resource -> nextpnr's. A TRELLIS_COMB is one LUT4, whether used for logic, carry or RAM.
RESOURCES = {
    "lut4": "TRELLIS_COMB",
    "ff": "TRELLIS_FF",
    "ebr": "DP16KD",
    "dsp": "MULT18X18D",
    "pll": "EHXPLLL",
    "io": "TRELLIS_IO",
}
# Nets of clocks, as nextpnr names them -> domain. Outputs of the PLL are in the order of boards/ecp5.py.
CLOCK_NETS = [
    (re.compile(r"sys_clk|(\w+_)?clkout0"), "sys"),
    (re.compile(r"timebase_clk|(\w+_)?clkout1"), "timebase"),
    (re.compile(r"timebase2x_clk"), "timebase2x"),
    (re.compile(r"memory_clk|\w+_legalpll_clkout"), "memory"),
    (re.compile(r"eth_clocks(\d+)_rx"), r"eth_rx\1"),
]
# Of the clocks of a board's PLL nextpnr is asked for so much more than a build is held to: asked for just that, it once ended
# 0.1 MHz short. The clocks of PHYs have more than that to spare.
GUARD = 1.02
# What is routed anew is asked for less: each arc that is late by that is ripped up round after round, and others with it. On
# 2026-11-28 all that was left of a `replay` of the i9 after 401 rounds were four arcs within the 2 %.
RIPUP_GUARD = 1.005
ROUNDING = 0.002 # Of a constraint: nextpnr takes periods in whole picoseconds.
# From a clock to one that rises with it, which nextpnr takes for unrelated: what a path may take (ns). Of the 4 ns between two
# edges something is left for the skew of two global nets.
CROSSINGS_NS = {("timebase2x", "timebase"): 3.5}


@dataclass(frozen=True)
class ClockTiming:
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


def clocks_of(report: Mapping[str, Any]) -> list[ClockTiming]:
    """Return the clocks of nextpnr's report, by name, without its ``guard``, the factor of their constraints (GUARD if unsaid)."""
    clocks, guard = [], report.get("guard", GUARD)
    for net, entry in report["fmax"].items():
        name = domain_of(net)
        asked_mhz = entry["constraint"] / (1 if name.startswith("eth_rx") else guard)
        clocks.append(ClockTiming(name, round(entry["achieved"], 2), round(asked_mhz, 1)))
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


def guarded(constraints: str, guard: float) -> str:
    """Return the text of a .lpf with ``guard`` times its frequencies, but those of PHYs."""
    pattern = r'(FREQUENCY PORT "(?!eth_)\S+) ([\d.]+) MHz'
    return re.sub(pattern, lambda line: f"{line[1]} {guard * float(line[2]):g} MHz", constraints)


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


def misses(clocks: list[ClockTiming], asked_mhz: Mapping[str, float]) -> list[str]:
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


TOP = "liteprobe"
REPLACED = ("gateware", "netlists", "driver", "seed*") # In the folder of a build: each build makes them anew.
MARK = ".liteprobe-build"
# Area is what is scarce. Nothing reads a word of a block RAM in the cycle that another port writes it, or else uses
# what it read, so yosys needn't build a bypass; wide multiplexers and a single pass of abc take more LUTs.
OPTIONS = f"-no-rw-check -abc2 -nowidelut -top {TOP}"
# The flip-flops of an ECP5, as synth_ecp5 has them. Enables and resets of few of them become logic: a tile has two resets and
# four enables, and hundreds of groups of one or two crowd the chip so that nets go long ways around.
FLIP_FLOPS = " ".join(f"-cell {cell}" for cell in (
    "$_DFF_?_ 01", "$_DFF_?P?_ r", "$_SDFF_?P?_ r", "$_DFFE_??_ 01", "$_DFFE_?P??_ r", "$_SDFFE_?P??_ r",
))
LEAST_GROUP = 6
# abc takes the longest path of all, the processor's, for the depth that all logic may have; so it maps what ends in a
# register of a 125 MHz clock apart, and before the rest.
SYNTHESIS = f"""\
read_verilog *.v
attrmap -tocase keep -imap keep="true" keep=1 -imap keep="false" keep=0 -remove keep=0
setattr -set ram_style "block" {TOP}/m:header*
synth_ecp5 {OPTIONS} -run begin:map_ffs
opt_clean
dfflegalize {FLIP_FLOPS} -mince {LEAST_GROUP} -minsrst {LEAST_GROUP}
synth_ecp5 {OPTIONS} -run map_ffs:map_luts
select -set clocks w:timebase_clk w:eth_rx*_clk %u %ci2
select -set registers @clocks %co1:+TRELLIS_FF[CLK] t:TRELLIS_FF %i
select -assert-min 1000 @registers
select -set cone @registers %ci1:-TRELLIS_FF[CLK] %ci*:-TRELLIS_FF,DP16KD,TRELLIS_DPR16X4
select -set logic @cone t:$_* %i
select -assert-min 1000 @logic
abc -lut 4 @logic
synth_ecp5 {OPTIONS} -run map_luts:
write_json {TOP}.json
"""
TIMING_RIPUP = "--tmg-ripup"
# The static placer leaves the shorter wires, so routing is quicker, too; but it spreads cells until 70 % of each place are
# taken, and a probe with discipline and processor fills more than that of a LFE5U-25F: then each board says which placer
# comes through.
PLACER = "static"
# router1 rips up arcs for many minutes on a full device; router2 settles them together. Only when a constraint is missed after
# that, it routes anew (--tmg-ripup) what had to make way: where an arc can't meet its constraint that never ends, and crowds
# out the others. sys and timebase come from one PLL, but nothing relies on it: all crossings
# are those of cores/crossing.py.
# It is asked for more than a build is held to (GUARD, RIPUP_GUARD), so it may fall short of that.
PLACE_AND_ROUTE = ("--router", "router2", "--ignore-rel-clk", "--timing-allow-fail")
# On a full device a few wires stayed in use twice for ever: what a wire costs that another net has too rose by 2 a round until
# nothing else counted. It rises by 0.5, and a net may leave the box around its pins by 5 tiles in place of 3.
ROUTER_SETTINGS = {"router2/currCongWeightMult": "0.5", "router2/bbMargin/x": "5", "router2/bbMargin/y": "5"}
# It would try 1500 rounds; the boards of docs/boards.md met their constraints in 46 to 154. Twice as many where hardly a wire
# is left: a round takes a second then, and one was done after 201.
ROUTER_ROUNDS = 200
FEW_WIRES = 50
SEEDS_TRIED = 3 # Where none is asked for.
AT_ONCE = min(2, os.cpu_count() or 1) # A seed takes a core, and 1.5 GB on a full device.


class NotMetError(BuildError):
    """A seed with which not all is routed, or not in time."""


class EndedError(BuildError):
    """Ends a seed because another one was met, or the build was interrupted."""

    def __init__(self) -> None:
        super().__init__("it was ended, as another seed was met")


@dataclass(frozen=True)
class Design:
    """Holds what goes into the tools, all in one folder and named relative to it; ``seed`` is for who asks for none.

    ``router`` are settings of nextpnr that it takes from the netlist.
    """

    folder: Path
    device: str
    place_arguments: tuple[str, ...]
    asked_mhz: dict[str, float]
    seed: int = 1
    router: dict[str, str] = field(default_factory=dict)

    def digest(self, *more: str) -> str:
        """Return a hash of the sources and of ``more``, without comments, which hold the date and LiteX's tree of modules."""
        total = hashlib.sha256(json.dumps(more).encode())
        for path in sorted(self.folder.iterdir()):
            if path.suffix in (".v", ".init", ".lpf", ".ys"):
                lines = path.read_text(encoding="utf-8").splitlines()
                kept = [line for line in lines if not line.startswith("//") and "\u2500" not in line]
                total.update("\n".join([path.name, *kept]).encode())
        return total.hexdigest()


def write_sources(name: str, config: ProbeConfig, out: Path, extension: Path | None = None) -> tuple[Any, Path]:
    """Write Verilog, constraints and register map of a board, with what ``extension`` adds, into ``out``; and its driver, if any.

    Returns the SoC and the folder of all but the map and the driver, which are beside it: ``csr.json``, ``driver``.
    """
    soc = ProbeSoC(board_for(name, config), config)
    if extension:
        extend_with(soc, extension)
    folder = (out / "gateware").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    soc.finalize()
    write_map(soc, out / "csr.json")
    soc.build(build_dir=str(folder), build_name=TOP, run=False)
    for source, *_ in soc.platform.sources:
        if Path(source).parent != folder:
            shutil.copy(source, folder)
    if config.link == "pcie":
        from liteprobe.soc.pcie import write_driver # LitePCIe is only needed here.

        write_driver(soc, out / "driver")
    return soc, folder


def asked_of(soc: Any) -> dict[str, float]:
    """Return what each clock of a SoC must reach (MHz)."""
    target, config = soc.board, soc.probe_config
    asked = {"sys": target.sys_clk_freq / 1e6, "timebase": 125.0}
    asked |= {f"eth_rx{number}": 125.0 for number in range(config.phys)}
    if hasattr(soc.crg, "cd_timebase2x"):
        asked["timebase2x"] = 250.0
    if hasattr(soc.crg, "cd_memory"):
        asked["memory"] = target.memory_clk_freq / 1e6
    if config.has_eye:
        asked["memory"] = target.eye_clk_freqs[0] / 1e6
    return asked


def elaborate(name: str, config: ProbeConfig, out: Path, extension: Path | None = None) -> tuple[Design, dict[str, Any]]:
    """Write Verilog, constraints, script and register map of a board into ``out``; return them and the facts."""
    soc, folder = write_sources(name, config, out, extension)
    target = soc.board
    (folder / f"{TOP}.ys").write_text(SYNTHESIS, encoding="utf-8")
    asked = asked_of(soc)
    placer = target.placer if config.with_discipline and config.with_cpu else PLACER
    arguments = (*device_arguments(soc.platform), "--placer", placer, *PLACE_AND_ROUTE)
    design = Design(folder, soc.platform.device, arguments, asked, first_seed(name, config), ROUTER_SETTINGS)
    margins = [margin._asdict() for margin in target.io_margins(config.replays, config.has_eye)]
    facts = {"board": name, "target": LoadTarget.of(target).facts, "device": design.device}
    facts |= {"config": asdict(config), "map_hash": identity(soc), "io_margins": margins}
    return design, facts


def device_arguments(platform: Any) -> tuple[str, ...]:
    """Return nextpnr's arguments for the device of a platform."""
    toolchain = platform.toolchain
    family, size, speed, package = toolchain.nextpnr_ecp5_parse_device(platform.device)
    architecture = toolchain.nextpnr_ecp5_architectures[f"{family}-{size}"]
    return (f"--{architecture}", "--package", package, "--speed", speed)


def synthesize(design: Design, versions: dict[str, str]) -> tuple[Path, float]:
    """Return the netlist and the seconds it took; a netlist of the same sources is used again."""
    netlists = design.folder.parent / "netlists"
    netlist = netlists / f"{design.digest(versions['yosys'])[:16]}.json"
    seconds = netlist.with_suffix(".seconds")
    if not netlist.exists() or not seconds.exists():
        say(f"synthesis, yosys {versions['yosys']}")
        started = time.monotonic()
        require("yosys", ["-q", f"{TOP}.ys"], design.folder, design.folder / "yosys.log")
        shutil.rmtree(netlists, ignore_errors=True)
        netlists.mkdir()
        shutil.move(design.folder / f"{TOP}.json", netlist)
        seconds.write_text(f"{time.monotonic() - started:.1f}", encoding="utf-8")
    return netlist, float(seconds.read_text(encoding="utf-8"))


def place_and_route(design: Design, netlist: Path, seed: int, run: Path, is_over: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Place and route in the folder ``run``, strictly; return nextpnr's report.

    Raises BuildError, naming clock, Fmax and target, when a constraint is missed, EndedError once ``is_over``.
    """
    (run / f"{TOP}.json").write_text(with_settings(netlist.read_text(encoding="utf-8"), design.router), encoding="utf-8")
    constraints = (design.folder / f"{TOP}.lpf").read_text(encoding="utf-8")
    arguments = placing(design, seed)
    log, report_file = run / "nextpnr.log", run / "nextpnr.json"
    lines: list[str] = []
    for more, guard in (((), GUARD), ((TIMING_RIPUP,), RIPUP_GUARD)):
        (run / f"{TOP}.lpf").write_text(guarded(constraints, guard), encoding="utf-8")
        if more:
            say(f"a constraint is missed ({lines[0]}); once more, and what is late is routed anew")
            for path in (report_file, log):
                path.replace(path.with_stem("nextpnr_once")) # With the paths that were late.
        code = run_tool("nextpnr-ecp5", [*arguments, *more], run, run / "nextpnr.out", lambda: is_over() or is_hopeless(log))
        if is_over():
            raise EndedError
        if report_file.exists():
            report: dict[str, Any] = json.loads(report_file.read_text(encoding="utf-8")) | {"guard": guard}
            lines = misses(clocks_of(report), design.asked_mhz) + late_crossings(report)
            if not lines and code == 0:
                (run / f"{TOP}.json").unlink()
                return report
        elif is_lost(log):
            raise NotMetError("nextpnr's placer does not settle: try another --seed, or a newer nextpnr-ecp5 (PyPI has 0.11)")
        elif not more and is_hopeless(log):
            raise NotMetError(f"nextpnr has not routed all in {router_rounds(log)} rounds: leave a part out, or try another --seed")
        if not lines:
            raise BuildError(f"nextpnr-ecp5 failed, the end of {run / 'nextpnr.out'}:\n{tail(run / 'nextpnr.out')}")
    raise NotMetError("timing is not met:\n  " + "\n  ".join(lines) + f"\nsee {log}, or try another --seed")


def placing(design: Design, seed: int) -> list[str]:
    """Return nextpnr's arguments."""
    arguments = [*design.place_arguments, "--seed", str(seed), "--json", f"{TOP}.json", "--lpf", f"{TOP}.lpf"]
    return [*arguments, "--textcfg", f"{TOP}.config", "--report", "nextpnr.json", "-q", "-l", "nextpnr.log"]


def with_settings(netlist: str, settings: dict[str, str]) -> str:
    """Return a netlist with settings of nextpnr, which it takes from the top level alone."""
    design: dict[str, Any] = json.loads(netlist)
    for module in design["modules"].values():
        if int(module["attributes"].get("top", "0"), 2):
            module["settings"] = module.get("settings", {}) | settings
    return json.dumps(design)


def router_rounds(log: Path) -> int:
    """Return how many rounds router2 has made so far, by nextpnr's log, in which the placer counts its own, too."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return max((int(number) for number in re.findall(r"\biter=(\d+) wires=", text)), default=0)


def is_lost(log: Path) -> bool:
    """Return whether the static placer will never end, by nextpnr's log: its step has become NaN.

    nextpnr 0.7 did so on 2026-11-27.
    """
    return log.exists() and re.search(r"\bsteplen=-?nan\b", log.read_text(encoding="utf-8", errors="replace")) is not None


def is_hopeless(log: Path) -> bool:
    """Return whether nextpnr should be ended, by its log: its placer is lost, or its router has used up its rounds.

    A router with few wires left gets twice as many rounds.
    """
    if is_lost(log):
        return True
    rounds = router_rounds(log)
    if rounds <= ROUTER_ROUNDS:
        return False
    text = log.read_text(encoding="utf-8", errors="replace")
    overused, late = re.findall(r"\biter=\d+ wires=\d+ overused=(\d+)(?: overuse=\d+ tmgfail=(\d+))?", text)[-1]
    return rounds > 2 * ROUTER_ROUNDS or int(overused) + int(late or 0) > FEW_WIRES


def build(name: str, config: ProbeConfig | None = None, seed: int | None = None, out: Path | None = None,
    extension: Path | None = None, at_once: int = AT_ONCE) -> dict[str, Any]:
    """Build a board to a bitstream and return its report; the same sources, tools and seed are built once.

    Writes under ``out`` (``build/<board>``): csr.json, report.json, liteprobe.bit, liteprobe.svf, and the same with all
    logs for each seed in ``seed<N>``. Without ``seed`` it is the one that is known to meet timing, and others, ``at_once`` of
    them side by side: the first that is met ends the rest.

    Raises
    ------
    ValueError
        If the board can't hold the configuration.
    NotMetError
        If not all is routed, or a timing constraint is missed, with the last seed that was tried.
    BuildError
        If a tool fails.
    """
    out = out or out_folder(name, DEFAULT_PRESET)
    claim(out)
    started = time.monotonic()
    say(f"Verilog of {name}, into {out}")
    design, facts = elaborate(name, config or ProbeConfig(), out, extension)
    versions = {tool: version_of(tool) for tool in ("yosys", "nextpnr-ecp5", "ecppack")}
    facts |= {"date": date.today().isoformat(), "tools": versions, "seconds": {"elaborate": since(started)}}
    facts["record"] = record(design.folder, design.place_arguments, design.router)
    how = json.dumps([design.place_arguments, design.router, design.asked_mhz, GUARD, RIPUP_GUARD])
    seeds = seeds_of(design.seed) if seed is None else [seed]
    keys = {number: design.digest(*versions.values(), str(number), how) for number in seeds}
    built = next((number for number in seeds if is_current(out / f"seed{number}", keys[number])), None)
    if built is None:
        built = first_met(design, facts, keys, out, at_once)
    for product in ("report.json", f"{TOP}.bit", f"{TOP}.svf"):
        shutil.copy(out / f"seed{built}" / product, out / product)
    report: dict[str, Any] = json.loads((out / "report.json").read_text(encoding="utf-8"))
    return report


def first_met(design: Design, facts: dict[str, Any], keys: Mapping[int, str], out: Path, at_once: int) -> int:
    """Implement seeds, in their order and ``at_once`` side by side; return the first that is met, which ends the others.

    ``keys``: of each seed, what tells its products from others. Raises NotMetError, of the last one, where none is met.
    """
    is_over, tried, lock = threading.Event(), [], threading.Lock()

    def attempt(seed: int) -> None:
        if is_over.is_set():
            raise EndedError
        with lock:
            tried.append(seed)
        run = out / f"seed{seed}"
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir()
        own = {"seconds": dict(facts["seconds"]), "seed": seed, "key": keys[seed], "seeds_tried": tried}
        implement(design, facts | own, seed, run, is_over.is_set)
        is_over.set() # Here, so that its worker begins no other one.

    if len(keys) > 1 and at_once > 1:
        synthesize(design, facts["tools"]) # Once, for all.
    with ThreadPoolExecutor(min(at_once, len(keys))) as pool:
        runs = {pool.submit(attempt, seed): seed for seed in keys}
        left = len(runs)
        try:
            for run in as_completed(runs):
                left -= 1
                try:
                    run.result()
                except EndedError:
                    continue
                except NotMetError as error:
                    if not left:
                        raise
                    say(f"seed {runs[run]}: {str(error).splitlines()[0].removesuffix(':')}; another one is tried")
                else:
                    return runs[run]
        finally: # Those that run are ended, those that wait never begin.
            is_over.set()
            pool.shutdown(wait=False, cancel_futures=True)
    raise AssertionError("a seed was neither met nor missed")


def seeds_of(own: int) -> list[int]:
    """Return the seeds that are tried where none is asked for: the board's own, then others."""
    return [own, *(number for number in range(1, SEEDS_TRIED + 1) if number != own)][:SEEDS_TRIED]


def implement(design: Design, facts: dict[str, Any], seed: int, run: Path, is_over: Callable[[], bool]) -> None:
    """Synthesize, place, route and pack into ``run``; the report is written last. Raises EndedError once ``is_over``."""
    netlist, facts["seconds"]["synthesis"] = synthesize(design, facts["tools"])
    facts["netlist_sha256"] = hashlib.sha256(netlist.read_bytes()).hexdigest()
    say(f"place and route, nextpnr {facts['tools']['nextpnr-ecp5']}, seed {seed}")
    started = time.monotonic()
    report = place_and_route(design, netlist, seed, run, is_over)
    facts["seconds"]["place_and_route"] = since(started)
    facts["routed_anew"] = (run / "nextpnr_once.log").exists() # With TIMING_RIPUP.
    say(f"bitstream, ecppack {facts['tools']['ecppack']}")
    started = time.monotonic()
    arguments = ["--compress", f"{TOP}.config", "--svf", f"{TOP}.svf", "--bit", f"{TOP}.bit"]
    require("ecppack", arguments, run, run / "ecppack.log")
    facts["seconds"]["pack"] = since(started)
    facts["seconds"]["total"] = round(sum(facts["seconds"].values()), 1)
    facts["bitstream_sha256"] = hashlib.sha256((run / f"{TOP}.bit").read_bytes()).hexdigest()
    facts["area"] = area_of(report)
    facts["clocks"] = {c.name: {"fmax_mhz": c.fmax_mhz, "constraint_mhz": c.constraint_mhz} for c in clocks_of(report)}
    (run / "report.json").write_text(json.dumps(facts, indent=4) + "\n", encoding="utf-8")


def claim(out: Path) -> None:
    """Make the folder ``out``; raise ValueError where a build would replace what no build has made."""
    out.mkdir(parents=True, exist_ok=True)
    mark = out / MARK
    taken = [path.name for pattern in REPLACED for path in out.glob(pattern)]
    if taken and not mark.exists() and not (out / "csr.json").exists():
        raise ValueError(f"{out} holds '{taken[0]}', which no build has made and this one would replace: give --out a new folder")
    mark.touch()


def is_current(run: Path, key: str) -> bool:
    """Whether ``run`` holds the products of the sources and tools with this key."""
    report = run / "report.json"
    return report.exists() and json.loads(report.read_text(encoding="utf-8"))["key"] == key


def since(started: float) -> float:
    """Return the seconds since ``started``, to a tenth."""
    return round(time.monotonic() - started, 1)


def say(line: str) -> None:
    """Tell the progress."""
    print(line, file=sys.stderr, flush=True)


def summary(report: dict[str, Any]) -> str:
    """Return a report in a few lines."""
    lines = [f"{report['board']} ({report['device']}), seed {report['seed']}, {report['seconds']['total']} s"]
    for name, entry in report["area"].items():
        lines.append(f"  {name:<10} {entry['used']:>6} of {entry['available']:>6} {entry['percent']:>6} %")
    for name, entry in report["clocks"].items():
        lines.append(f"  {name:<10} {entry['fmax_mhz']:>7.2f} MHz, {entry['constraint_mhz']:g} MHz asked for")
    return "\n".join(lines + margin_lines(report))


def write_only(args: argparse.Namespace, config: ProbeConfig, out: Path) -> int:
    """Write what the tools take, run none of them, and say what is next; return the exit code."""
    if args.load or args.flash:
        raise ValueError("nothing is compiled, so there is nothing to load: leave --load and --flash out")
    claim(out)
    say(f"Verilog of {args.board}, into {out}")
    soc, folder = write_sources(args.board, config, out, args.extend)
    print(f"Verilog, constraints and script: {out / 'gateware'}\nregister map: {out / 'csr.json'}")
    if config.link == "pcie":
        print(f"Linux driver and C library: {out / 'driver'}\nnext: docs/pcie.md says how to make the bitstream and the driver")
    elif getattr(soc.board, "with_openxc7", False):
        if args.no_compile or not openxc7.is_here():
            print(f"next: sh build_{TOP}.sh there, by Vivado, or the same command where openXC7 is on PATH "
                "(docs/boards/colorlight-i9plus.md)")
        else:
            say("bitstream, by openXC7")
            bitstream = openxc7.build(folder, TOP, soc.platform.device, asked_of(soc))
            shutil.copy(bitstream, out)
            print(f"bitstream: {out / bitstream.name}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Build, report and, if asked for, load or write into the flash; return the exit code."""
    args = parse(arguments)
    logging.disable(logging.INFO)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler) # Tools are in process groups of their own, and are ended.
    out = args.out or out_folder(args.board, args.preset)
    try:
        check_together(args)
        options = flash_options_of(args)
        target = board(args.board)
        if args.restore:
            return restore_only(args, target, options)
        if args.backup and not args.flash:
            return backup_only(args, target, options)
        config = config_of(args, target)
        if missing := left_out(config):
            say("not built in: " + ", ".join(f"{what} ({option})" for what, option in missing.items()))
        if args.no_compile or args.board in VERILOG_ONLY:
            return write_only(args, config, out)
        config.check(target)
        if args.load or args.flash: # Before minutes are spent on what couldn't be loaded.
            detect(target, options)
        report = build(args.board, config, args.seed, out, args.extend, args.at_once)
        print(summary(report), flush=True)
        if args.load or args.flash:
            load_or_flash(args, target, out / f"{TOP}.bit", options)
    except ValueError as error:
        say(f"build: {error}")
        return 2
    except BuildError as error:
        say(f"build: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say("build: interrupted")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
