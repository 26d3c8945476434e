# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Prints the LUT sites and the arcs of netlists that Yosys wrote for an ECP5, as ``soc/area.py`` counts them.

``./run python tools/arcs.py build/*/netlists/*.json``
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from liteprobe.soc.build.stages import LUTS

CLOCKS = {"CLK", "CLKA", "CLKB", "WCK", "SCLK", "ECLK"}


def counted(netlist: dict[str, Any]) -> Counter[str]:
    """Return sites, block RAMs and arcs of the top module of a netlist."""
    top = next(one for one in netlist["modules"].values() if int(one.get("attributes", {}).get("top", "0"), 2))
    found = Counter[str]()
    for cell in top["cells"].values():
        found["sites"] += LUTS.get(cell["type"], 0)
        found["block RAMs"] += cell["type"] == "DP16KD"
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input" and port not in CLOCKS:
                found["arcs"] += sum(isinstance(bit, int) for bit in bits)
    return found


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        print(path, dict(counted(json.loads(path.read_text()))))
