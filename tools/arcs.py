# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Prints the LUT sites, block RAMs and arcs of probes, as ``soc/config.py`` counts them; each is synthesized for its board.

``./run python tools/arcs.py colorlight_i9 '{"preset": "tester"}' '{"preset": "tester", "ports": 1}'``: a board, then the
fields of `ProbeConfig`, one probe each. A file in their place is a netlist that is there already. With Yosys on PATH it
takes a minute or two each, else YoWASP's several.
"""

import json
import logging
import sys
import tempfile
from collections import Counter
from pathlib import Path

from stages import LUTS

from liteprobe.soc.build.bitstream import elaborate, synthesize, version_of
from liteprobe.soc.config import ProbeConfig

BUILD = Path(__file__).resolve().parent.parent / "build"
CLOCKS = {"CLK", "CLKA", "CLKB", "WCK", "SCLK", "ECLK"}


def counted(netlist: Path) -> Counter[str]:
    """Return sites, block RAMs and arcs of the top module of a netlist."""
    modules = json.loads(netlist.read_text())["modules"]
    top = next(one for one in modules.values() if int(one.get("attributes", {}).get("top", "0"), 2))
    found = Counter[str]()
    for cell in top["cells"].values():
        found["sites"] += LUTS.get(cell["type"], 0)
        found["block RAMs"] += cell["type"] == "DP16KD"
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input" and port not in CLOCKS:
                found["arcs"] += sum(isinstance(bit, int) for bit in bits)
    return found


def made(board: str, fields: str) -> Path:
    """Return the netlist of a probe."""
    BUILD.mkdir(exist_ok=True)
    out = Path(tempfile.mkdtemp(prefix="arcs-", dir=BUILD)) / "build"  # YoWASP's sandbox sees no /tmp.
    out.mkdir()
    design, _ = elaborate(board, ProbeConfig(**json.loads(fields)), out)
    return synthesize(design, {"yosys": version_of("yosys")})[0]


if __name__ == "__main__":
    logging.disable(logging.INFO)
    first, *more = sys.argv[1:]
    is_file = Path(first).is_file()
    for what in sys.argv[1:] if is_file else more:
        print(what, dict(counted(Path(what) if is_file else made(first, what))), flush=True)
