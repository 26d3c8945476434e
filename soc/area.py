# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Area that the parts of a probe take, so that what a board can't hold is refused before it is built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from liteprobe.cores.formats import PRESETS

if TYPE_CHECKING:
    from liteprobe.soc.config import BoardLimits, ProbeConfig


class Area(NamedTuple):
    """What a part takes of an ECP5.

    Attributes
    ----------
    sites : int
        LUT sites, as Yosys counts them: a LUT4, a cell of carry two, a LUT RAM of 16 x 4 bits six.
    arcs : int
        From the pin that drives a net to each that it feeds, clocks left out: what the router has to find a way for.
    """

    sites: int
    arcs: int


#: Differences of whole netlists: docs/design/parts.md names them. ``..._PORT``: of each port.
BASE = Area(2610, 12484)  # Bus, identity, lease, timebase, and Etherbone in band.
OWN_LINK = Area(467, 2459)
PROCESSOR = Area(3291, 13454)  # With SDRAM as its main RAM.
DISCIPLINE = Area(2063, 8886)
TRAIN_PORT = Area(4749, 20841)
MONITOR, MONITOR_PORT = Area(4326, 16781), Area(4785, 24800)
TESTER_PORT = Area(6935, 34706)

#: Beyond so many arcs for each LUT site of a device nextpnr places a probe, but finds no way for all of them.
ARCS_A_SITE = 3.2
SITES = 0.8  # Part of a device's LUT sites that is taken at most.


def area(config: ProbeConfig) -> Area:
    """Return what a probe takes."""
    port = TRAIN_PORT if not config.monitors else TESTER_PORT if config.generates else MONITOR_PORT
    choices = [
        (config.link == "own", OWN_LINK),
        (config.with_cpu, PROCESSOR),
        (config.with_discipline, DISCIPLINE),
        (config.monitors, MONITOR),
    ]
    parts = [BASE, *[port] * config.ports, *[part for is_in, part in choices if is_in]]
    return Area(sum(part.sites for part in parts), sum(part.arcs for part in parts))


def fits(config: ProbeConfig, board: BoardLimits) -> bool:
    """Return whether ``board`` has room for a probe, and it can be routed."""
    if board.lut_sites is None:
        return True
    needed = area(config)
    return needed.sites <= SITES * board.lut_sites and needed.arcs <= ARCS_A_SITE * board.lut_sites


def smaller(config: ProbeConfig, board: BoardLimits) -> Iterator[str]:
    """Yield each thing that could be left out, alone, so that it fits."""
    others = {
        "no processor (--no-cpu)": replace(config, with_cpu=False),
        "no discipline of the clock (--no-discipline)": replace(config, with_discipline=False),
        **({"--link shared": replace(config, link="shared")} if config.link == "own" else {}),
        **{f"--ports {ports}": replace(config, ports=ports) for ports in range(config.ports - 1, 0, -1)},
        **{f"--preset {name}": replace(config, preset=name) for name in PRESETS if name != config.preset},
    }
    return (name for name, other in others.items() if other != config and fits(other, board))


def check_area(config: ProbeConfig, board: BoardLimits) -> None:
    """Raise ValueError, naming what to leave out, where ``board`` doesn't hold a probe."""
    if fits(config, board):
        return
    needed, found = area(config), list(smaller(config, board))
    raise ValueError(
        f"{board.name} is too small for preset {config.preset} with {config.ports} port{'s' * (config.ports > 1)}: it takes "
        f"{needed.sites} of {board.lut_sites} LUT sites and {needed.arcs} wires, of which nextpnr routes "
        f"{ARCS_A_SITE * board.lut_sites:.0f}: {'build with ' + ', or '.join(found) + ', or ' if found else ''}"
        "take the board colorlight_i9 or versa_ecp5"
    )
