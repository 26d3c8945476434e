# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Builds a simulation of a board at its pins: the top level that would be synthesized, in the harness of the simulated probe."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from liteprobe.boards import BOARDS, VERILOG_ONLY
from liteprobe.cores.formats import MDIO_ADDRESSES
from liteprobe.sim.pins.netlist import NetlistWriter, top_of
from liteprobe.sim.pins.packed import Unpacker
from liteprobe.sim.pins.top import bidirectional, board_header, wrapper
from liteprobe.sim.system.build import ROOT, Design, build, content_key, harness_files, write_verilog
from liteprobe.sim.system.variant import harness_variant

HERE = Path(__file__).resolve().parent
TOP = "liteprobe"
MODEL = tuple(HERE / name for name in ("model.cpp", "phy.cpp", "phy.h"))
PHY_TIMES = {"reset_s": 10e-6, "start_s": 50e-6}  # 20 and 160 ms on a board.
WRITE_TICKS = 3300  # Of a write over MDIO: 64 bits of 400 ns, and a little.
SETUP_TICKS = 20_000  # Reset, start and negotiation of the PHYs.
PACKED = "packed.json"
PACK = ("--pack-only", "--write", PACKED, "-q", "-l", "nextpnr.log")
CELLS = [HERE / name for name in ("cells.v", "cells_artix7.v", "phy.v", "sdram.v")]


def build_board(name: str, source: str = "rtl", **options: Any) -> Path:
    """Return the folder with ``liteprobe-sim`` and ``csr.json`` of a board at its RGMII pins.

    Parameters
    ----------
    name : of the board.
    source : ``rtl``; or, of an ECP5, what Yosys makes of it (``yosys``), or what nextpnr places of that (``packed``), a minute
        or more.
    options : fields of ProbeConfig.
    """
    files = [path for folder in ("boards", "cores", "soc") for path in (ROOT / folder).rglob("*.py")]
    own = [path for path in HERE.iterdir() if path.suffix in (".py", ".v", ".cpp", ".h")]
    key = content_key(name, [*files, *own, *harness_files()], json.dumps([source, options], sort_keys=True))

    def make() -> Design:
        from liteprobe.boards import board
        from liteprobe.boards.family import RgmiiBoard
        from liteprobe.soc.config import ProbeConfig
        from liteprobe.soc.probe import ProbeSoC

        RgmiiBoard.phy_times = PHY_TIMES
        config = ProbeConfig(**options)
        soc = ProbeSoC(board(name), config)
        soc.finalize()
        bauds = (config.uart_baud, config.gnss_baud)
        # Until the probe has set up its PHYs, and they have a link.
        start_ticks = SETUP_TICKS + MDIO_ADDRESSES * len(soc.board.phy_kind.start) * WRITE_TICKS
        variant = harness_variant(config.link, config.ip_address, *bauds, start_ticks)
        return Design(soc, variant, WRITERS[source], MODEL)

    return build(key, make)


def netlist_at_pins(soc: Any, folder: Path, is_packed: bool = False) -> list[Path]:
    """Write what Yosys makes of a board, or what nextpnr packs of it, as Verilog, and all that is at its pins."""
    from liteprobe.soc.build import bitstream

    gateware = folder / "gateware"
    gateware.mkdir()
    soc.build(build_dir=str(gateware), build_name=TOP, run=False)
    for source, *_ in soc.platform.sources:
        if Path(source).parent != gateware:
            shutil.copy(source, gateware)
    (gateware / f"{TOP}.ys").write_text(bitstream.SYNTHESIS, encoding="utf-8")
    design = bitstream.Design(gateware, soc.platform.device, (), {})
    netlist, _ = bitstream.synthesize(design, {"yosys": bitstream.version_of("yosys")})
    module = top_of(netlist)
    if is_packed:
        shutil.copy(netlist, gateware / f"{TOP}.json")
        arguments = [*bitstream.device_arguments(soc.platform), "--json", f"{TOP}.json", "--lpf", f"{TOP}.lpf"]
        bitstream.require("nextpnr-ecp5", [*arguments, *PACK], gateware, gateware / "nextpnr.out")
        module = Unpacker(top_of(gateware / PACKED)).unpacked()
    top = folder / f"{TOP}.v"
    top.write_text(bidirectional(NetlistWriter(module, TOP).text()), encoding="utf-8")
    return [*surroundings(soc, folder, top), *CELLS, HERE / "netlist.v"]


def at_pins(soc: Any, folder: Path) -> list[Path]:
    """Write the Verilog of a board, and of all that is at its pins."""
    (top, *others) = write_verilog(soc, folder, TOP)
    top.write_text(bidirectional(top.read_text(encoding="utf-8")), encoding="utf-8")
    return [*surroundings(soc, folder, top), *others, *CELLS]


WRITERS: dict[str, Callable[[Any, Path], list[Path]]] = {
    "rtl": at_pins,
    "yosys": netlist_at_pins,
    "packed": partial(netlist_at_pins, is_packed=True),
}


def surroundings(soc: Any, folder: Path, top: Path) -> list[Path]:
    """Write what is at the pins of the module in ``top``, and what the harness must know of its clocks; return all sources."""
    text = top.read_text(encoding="utf-8")
    header = board_header(soc.crg, soc.board.phy_kind.id | 2, soc.probe_config.link == "own")
    (folder / "board.h").write_text(header, encoding="utf-8")
    (folder / "wrapper.v").write_text(wrapper(text, TOP, soc.crg.pll), encoding="utf-8")
    return [folder / "wrapper.v", top]


def main() -> int:
    """Build a board and print its folder."""
    parser = argparse.ArgumentParser(prog="python -m liteprobe.sim.pins.build", description=__doc__.splitlines()[0])
    parser.add_argument("board", choices=[*BOARDS, *VERILOG_ONLY])
    parser.add_argument(
        "--source", choices=list(WRITERS), default="rtl", help="its RTL, or Yosys' or nextpnr's netlist"
    )
    parser.add_argument("--fields", type=json.loads, default={}, help="fields of ProbeConfig (JSON)")
    arguments = parser.parse_args()
    print(build_board(arguments.board, arguments.source, **arguments.fields))
    return 0


if __name__ == "__main__":
    sys.exit(main())
