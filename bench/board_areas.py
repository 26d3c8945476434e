# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Estimates what each flagship takes of its FPGA, by the table of parts; nothing is synthesized."""

from collections.abc import Iterator

from liteprobe.boards import board
from liteprobe.sim.drivers.tools.figures import Figure, note, row
from liteprobe.soc.build.flagships import FLAGSHIPS
from liteprobe.soc.config import Area, capacity

ROOM = 0.95  # Of what can be placed and routed.
SMALL = 24288  # LUT sites of a LFE5U-25F, whose train is to take no more than this.
TRAIN = Area(16_500, 70_000)


@row("boards")
def test_areas() -> Iterator[Figure]:
    """Arcs and sites of each flagship against 95 % of what its FPGA holds; of a train on a LFE5U-25F, against its own goal."""
    note(
        f"by the table of parts in soc/config.py, of {len(FLAGSHIPS)} flagships; netlists: tools/arcs.py, ./run test --full"
    )
    for one in FLAGSHIPS:
        sites = board(one.board).lut_sites
        most = capacity(sites)
        goal = Area(int(ROOM * most.sites), int(ROOM * most.arcs))
        if one.preset == "train" and sites == SMALL:
            goal = TRAIN
        name, area = f"{one.board}_{one.preset}", one.config.area
        yield Figure(f"{name}_arcs", area.arcs, "arcs", goal.arcs)
        yield Figure(f"{name}_sites", area.sites, "sites", goal.sites)
