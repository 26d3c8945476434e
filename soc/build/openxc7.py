# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Makes the bitstream of an Artix-7 by openXC7, where it is on PATH: Yosys, nextpnr-xilinx and Project X-Ray.

Stands alone: programs, databases and constraints of another family of FPGAs than all else here.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from liteprobe.soc.build.toolchain import BuildError, require

# Of them no registry has a build; Yosys can be PyPI's.
PROGRAMS = ("nextpnr-xilinx", "fasm2frames", "xc7frames2bit")
FAMILY   = "artix7"
SYNTHESIS = """\
read_verilog *.v
synth_xilinx -flatten -abc9 -family xc7 -top {top}
write_json {top}.json
"""
ROUTED_CLOCK = re.compile(r"Max frequency for clock\s+'([^']+)': +([\d.]+) MHz")


def is_here() -> bool:
    """Return whether its programs are on PATH."""
    return all(shutil.which(name) for name in PROGRAMS)


def folder_of(variable: str, what: str) -> Path:
    """Return the folder that an environment variable names; BuildError, saying ``what`` is needed, where it names none."""
    folder = Path(os.environ.get(variable) or "")
    if not os.environ.get(variable) or not folder.is_dir():
        raise BuildError(f"{what}: export {variable}=FOLDER, then run this again")
    return folder


def chip_database(part: str) -> Path:
    """Return nextpnr's file of a part; BuildError where there is none."""
    folder = folder_of("CHIPDB", "openXC7 needs its chip databases")
    files  = [folder / f"{name}.bin" for name in (part, part.rsplit("-", 1)[0])]
    found  = [file for file in files if file.exists()]
    if not found:
        raise BuildError(f"{folder} holds no {files[0].name}: make it by bbaexport.py --device {part}, and bbasm")
    return found[0]


def constraints_of(xdc: str, asked_mhz: Mapping[str, float]) -> str:
    """Return what nextpnr-xilinx takes of Vivado's constraints, and the frequency of each clock by its net.

    It derives no clock from a PLL, and would route it for 12 MHz.
    """
    kept = [line for line in xdc.splitlines() if line.startswith("set_property ") and "[get_ports " in line]
    made = [f"create_clock -period {1e3 / mhz:.3f} [get_nets {name}_clk]" for name, mhz in asked_mhz.items()]
    return "\n".join([*kept, *made, ""])


def clocks_of(log: str) -> dict[str, float]:
    """Return what each net of a clock reached after routing (MHz), by the log of nextpnr: its last word on each."""
    return {net.removesuffix("_clk"): float(mhz) for net, mhz in ROUTED_CLOCK.findall(log)}


def misses(reached_mhz: Mapping[str, float], asked_mhz: Mapping[str, float]) -> list[str]:
    """Return a line for each clock that misses, or that nextpnr says nothing of; none when timing is met."""
    lines = [f"clock {name} is not in nextpnr's log, {mhz:g} MHz asked for"
        for name, mhz in asked_mhz.items() if name not in reached_mhz]
    return lines + [
        f"clock {name} reaches {reached_mhz[name]:.2f} MHz, {mhz:g} MHz asked for"
        for name, mhz in asked_mhz.items()
        if reached_mhz.get(name, mhz) < mhz
    ]


def build(folder: Path, top: str, part: str, asked_mhz: Mapping[str, float]) -> Path:
    """Return the bitstream that is made of the Verilog in ``folder``; BuildError names a tool that fails, or a missed clock."""
    chips    = chip_database(part).resolve()
    database = folder_of("PRJXRAY_DB_DIR", "openXC7 needs Project X-Ray's database").resolve() / FAMILY
    (folder / "openxc7.ys").write_text(SYNTHESIS.format(top=top), encoding="utf-8")
    xdc = (folder / f"{top}.xdc").read_text(encoding="utf-8")
    (folder / "openxc7.xdc").write_text(constraints_of(xdc, asked_mhz), encoding="utf-8")
    require("yosys", ["-q", "openxc7.ys"], folder, folder / "yosys.log")
    place = ["--chipdb", str(chips), "--xdc", "openxc7.xdc", "--json", f"{top}.json", "--fasm", f"{top}.fasm"]
    place += ["--timing-allow-fail"]
    require("nextpnr-xilinx", place, folder, folder / "nextpnr.log")
    log = (folder / "nextpnr.log").read_text(encoding="utf-8")
    if missed := misses(clocks_of(log), asked_mhz):
        raise BuildError("\n".join([*missed, "timing is not met: leave a part out, or use Vivado"]))
    frames = ["--part", part, "--db-root", str(database), f"{top}.fasm", f"{top}.frames"]
    require("fasm2frames", frames, folder, folder / "fasm2frames.log")
    pack = ["--part_file", str(database / part / "part.yaml"), "--part_name", part, "--frm_file", f"{top}.frames"]
    require("xc7frames2bit", [*pack, "--output_file", f"{top}.bit"], folder, folder / "xc7frames2bit.log")
    return folder / f"{top}.bit"
