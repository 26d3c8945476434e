# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Area that the parts of a probe take, so that what a board can't hold is refused before it is built."""

from __future__ import annotations

from typing import NamedTuple

from liteprobe.cores.formats import Part


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


#: Differences of whole netlists (tools/arcs.py): docs/design/parts.md names them. ``..._PORT``: of each port.
BASE = Area(2610, 11915)  # Bus, identity, lease, timebase, and Etherbone in band.
OWN_LINK = Area(467, 2459)
PROCESSOR = Area(3291, 13454)  # With SDRAM as its main RAM.
DISCIPLINE = Area(2063, 8886)
TRAIN_PORT = Area(4551, 21285)
MONITOR, MONITOR_PORT = Area(3466, 13196), Area(5246, 26954)
HASH_PORT = Area(1020, 3830)  # Of that, what hashes the frames of a port.
RATES = Area(493, 2474)  # Of a probe that monitors and does not replay.
MEASURE, MEASURE_PORT = Area(135, 705), Area(3134, 15539)  # With bit errors, and stamps in fields.
SENDER_PORT = Area(2015, 9434)  # Of trains, in a port that monitors or measures.
FIELDS_PORT = Area(623, 2932)  # Bit errors, and stamps in fields, of a port that monitors.
STREAMS_SOURCE = Area(3102, 13084) # Of each port that sends many streams: its source, stamps at any place, counters of each.
REPLAY, REPLAY_PORT = Area(1524, 6116), Area(1426, 5328)  # What takes datagrams; of each port, with stamps of each frame.
SETS_PORT = Area(1820, 7230)  # Of each port that makes frames of configuration sets, without streams.
EMULATOR = Area(2441, 11946)  # The filter, and the way back where there is one direction.
DIRECTION = Area(10261, 39758)  # Of each direction of the emulated network, with its paths, and its store in block RAM.
SDRAM_STORE = Area(786, 3214)  # Of an emulator whose frames wait in the SDRAM.
MORE_STREAMS = {8: Area(0, 0), 16: Area(106, 427), 32: Area(417, 1909)}  # Slots of a port's meter, in the place of 8.

#: Beyond so many arcs for each LUT site of a device nextpnr places a probe, but finds no way for all of them.
ARCS_A_SITE = 3.2
SITES = 0.8  # Part of a device's LUT sites that is taken at most.


def area(
    parts: Part, ports: int, has_own_link: bool, with_cpu: bool, with_discipline: bool, slots: int, more: tuple[int, bool, bool]
) -> Area:
    """Return what a probe of these parts takes.

    Parameters
    ----------
    slots : of the meter of each port that has one.
    more : directions of an emulated network, whether its frames wait in the SDRAM; whether frames that are monitored are hashed.
    """
    directions, in_sdram, with_hash = more
    has_meters = bool(parts & (Part.MONITOR | Part.MEASURE))
    of_port = [
        (Part.RECORD in parts, TRAIN_PORT),
        (Part.MONITOR in parts, MONITOR_PORT),
        (Part.MEASURE in parts, MEASURE_PORT),
        (Part.GENERATE in parts and has_meters, SENDER_PORT),
        (Part.STREAMS in parts, STREAMS_SOURCE),
        (Part.STREAMS in parts and Part.MONITOR in parts, FIELDS_PORT),
        (Part.REPLAY in parts, REPLAY_PORT),
        (Part.SETS in parts, SETS_PORT),
        (has_meters, MORE_STREAMS[slots]),
    ]
    once = [
        (True, BASE),
        (has_own_link, OWN_LINK),
        (with_cpu, PROCESSOR),
        (with_discipline, DISCIPLINE),
        (Part.MONITOR in parts, MONITOR),
        (Part.MONITOR in parts and Part.REPLAY not in parts, RATES),
        (Part.MEASURE in parts, MEASURE),
        (Part.REPLAY in parts, REPLAY),
        (Part.EMULATE in parts, EMULATOR),
        (in_sdram, SDRAM_STORE),
        *[(True, DIRECTION)] * directions,
    ]
    taken = [part for is_in, part in [*once, *of_port * ports] if is_in]
    if Part.MONITOR in parts and not with_hash:
        taken += [Area(-HASH_PORT.sites, -HASH_PORT.arcs)] * ports
    return Area(sum(part.sites for part in taken), sum(part.arcs for part in taken))


def room(lut_sites: int) -> Area:
    """Return what can be placed and routed on a device of so many LUT sites."""
    return Area(int(SITES * lut_sites), int(ARCS_A_SITE * lut_sites))
