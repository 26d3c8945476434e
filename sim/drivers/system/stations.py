# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""CERN's experiment, shortened, through the whole simulated probe: stations at its pins, each frame against the reference.

Held twice. What left each port, against the reference given the frames that stood on the pins of the other one. And the whole
run, against the same stations on the reference alone, which is given nothing of the probe's: each frame of both stations at its
tick, each frame that reached them, and the tick at which the client had all files.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from liteprobe.cores.formats import TICK_NS
from liteprobe.cores.formats.emulate import FINE_BITS, ClassCounter
from liteprobe.host.device.link.sim_stations import CLIENT, SERVER, Station
from liteprobe.sim.drivers.emulator.cern import Kind, Line, fields
from liteprobe.sim.drivers.emulator.stations import build
from liteprobe.sim.drivers.emulator.stations.network import CLASS, Simulation
from liteprobe.sim.drivers.system.emulator import Emulated, bank, rings
from liteprobe.sim.models.emulator.settings import Settings

AHEAD_TICKS = 20_000  # From the start of the network to that of the stations.
STEP_S = 1e-3


@dataclass(frozen=True)
class Fetch:
    """A site, and the network through which it is fetched.

    Attributes
    ----------
    kind, load : Kind, float; of the background, both ways.
    lengths : of the files (octets).
    is_kept : one connection for all.
    """

    line: Line
    kind: Kind
    load: float
    lengths: Sequence[int]
    is_kept: bool
    seed: int = 0

    def settings(self, number: int, words: int) -> Settings:
        """Return those of a direction whose store has so many words."""
        own = fields(self.kind, self.load, 2 * self.seed + number, self.line)
        lanes = rings({CLASS: (words - 1).bit_length() - 1}, words)
        return Settings(bank({CLASS: own}, {"octet": self.line.octet << FINE_BITS}, lanes, self.line.delay))

    @property
    def way_ticks(self) -> int:
        """The longest way of a frame: behind a full queue."""
        return self.line.delay + (self.line.queue + 2) * 1538 * self.line.octet


@dataclass(frozen=True)
class Fetched:
    """Holds the result.

    Attributes
    ----------
    differences : from the reference.
    seconds : until the client had all files.
    frames, lost, resent, wrong : int
        Of the stations, both ways; that found the queue full; segments sent again; octets of content that aren't the site's.
    late : frames that left after their tick for the probe's sake.
    """

    differences: list[str]
    seconds: float
    frames: int
    lost: int
    resent: int
    wrong: int
    late: int


def fetch(emulated: Emulated, asked: Fetch, limit_s: float) -> Fetched:
    """Fetch the site through a probe that was just started, and hold all of it against the reference.

    Raises RuntimeError when it isn't fetched in ``limit_s`` of the simulated time.
    """
    ways = [asked.settings(number, emulated.read(number, "store_words")) for number in range(2)]
    emulated.start(dict(enumerate(ways)))
    origins = [emulated.read(number, "origin") - 1 for number in range(2)]
    start = emulated.link.now_ns() // TICK_NS + AHEAD_TICKS
    for port, number in enumerate((CLIENT, SERVER)):
        seed = 2 * (asked.seed + 1) + number
        station = Station(build.library(), number, tuple(asked.lengths), asked.is_kept, seed)
        emulated.link.put_station(port, station, start * TICK_NS)
    while not emulated.link.seen(0).done_ticks:
        if emulated.link.now_ns() > limit_s * 1e9:
            raise RuntimeError(f"the site isn't fetched after {limit_s:g} s: {emulated.link.seen(0)}")
        emulated.probe.wait(STEP_S)
    while under_way(emulated):  # A connection closes, after the last file.
        emulated.probe.wait(STEP_S)
    seen = [emulated.link.seen(port) for port in range(2)]
    now = emulated.link.now_ns() // TICK_NS - origins[0]
    differences = [f"directions start at ticks {origins}"] if len(set(origins)) > 1 else []
    for number, settings in enumerate(ways):
        found = emulated.compare(number, settings, drained=asked.way_ticks)
        differences += [f"direction {number}: {text}" for text in found]
    alone = Simulation(ways[0], ways[1], list(asked.lengths), asked.is_kept, asked.seed + 1, start - origins[0])
    if not alone.run(round(limit_s * 1e9) // TICK_NS):
        differences.append("on the reference alone the site isn't fetched")
    ended = alone.tick - alone.start
    if ended != seen[0].done_ticks:
        differences.append(f"the client had all files after {seen[0].done_ticks} ticks, not {ended}")
    alone.go_on(now)
    differences += beside(emulated, alone, origins[0])
    return Fetched(
        differences,
        seen[0].done_ticks * TICK_NS * 1e-9,
        sum(one.sent for one in seen),
        lost(emulated),
        sum(one.resent for one in seen),
        seen[0].misread,
        sum(emulated.total(number, ClassCounter.LATE) for number in range(2)),
    )


def lost(emulated: Emulated) -> int:
    """Return how many frames found a queue full, both ways."""
    return sum(emulated.total(number, ClassCounter.FULL) for number in range(2))


def under_way(emulated: Emulated) -> int:
    """Return how many of the stations' frames haven't arrived, and aren't lost."""
    seen = [emulated.link.seen(port) for port in range(2)]
    return sum(one.sent - one.frames for one in seen) - lost(emulated)


def beside(emulated: Emulated, alone: Simulation, origin: int) -> list[str]:
    """Hold the pins against the run on the reference alone: every frame of both stations, as it was sent and as it came."""
    differences = []
    for port, number in enumerate((CLIENT, SERVER)):
        path = alone.paths[number]
        sent = [(path.direction.frames[n].time, octets) for n, octets in enumerate(path.octets)]
        came = [(tick, path.octets[index]) for tick, index in path.direction.departures]
        for way, at, wanted in (("in", port, sent), ("out", 1 - port, came)):
            found = [(seen.tick - origin, seen.octets) for seen in emulated.pins(at, way)]
            if len(found) != len(wanted):
                differences.append(f"port {at} {way}: {len(found)} frames, not {len(wanted)}")
            for index, (one, other) in enumerate(zip(found, wanted, strict=False)):
                if one != other:
                    what = "other octets" if one[0] == other[0] else f"tick {one[0]}, not {other[0]}"
                    differences.append(f"port {at} {way}: frame {index} has {what}")
                    break
    return differences
