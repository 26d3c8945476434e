# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Captures that a whole simulated probe replays, as they are on its pins, against the file alone."""

import random
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from liteprobe.cores.formats import OVERHEAD, TICK_NS
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.probe import Probe
from liteprobe.sim.bench.frames.truth import read_pcap
from liteprobe.sim.bench.system.traffic import CABLE, Frames, Sent

NANOSECONDS = 0xA1B23C4D
BEGIN_NS = 1_700_000_000 * 10**9


class Packet(NamedTuple):
    """A packet of a file: its time (ns) and its octets."""

    time_ns: int
    octets: bytes


def packets(count: int, seed: int, load: float, shortest: int = 60, longest: int = 1514) -> Iterator[Packet]:
    """Yield random frames at exponential intervals, which load a line so far on the mean; 1 or more is back to back."""
    chance = random.Random(seed)
    mean_ns = TICK_NS * ((shortest + longest) / 2 + OVERHEAD) / load
    now = 0.0
    for _ in range(count):
        octets = b"\x02" + chance.randbytes(chance.randint(shortest, longest) - 1)  # To a station, not to all.
        yield Packet(BEGIN_NS + int(now), octets)
        now += chance.expovariate(1 / mean_ns) if load < 1 else TICK_NS * (len(octets) + OVERHEAD)


def write(path: Path, made: Sequence[Packet]) -> None:
    """Write a pcap of nanoseconds."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", NANOSECONDS, 2, 4, 0, 0, 1 << 18, 1))
        for time_ns, octets in made:
            file.write(struct.pack("<IIII", *divmod(time_ns, 10**9), len(octets), len(octets)) + octets)


@contextmanager
def replaying(folder: Path, files: Path, wire: str = CABLE, network: str = "") -> Iterator[Sent]:
    """A simulated probe that replays, built in ``folder``, its two ports joined by a wire; ``files``: where its captures go."""
    more = {"network": network} if network else {}
    with Probe(sim_url(wire, build=folder, link="own", pcap=files / "pins", **more)) as probe:
        yield Sent(probe, files)


def pins(sent: Sent, port: int, direction: str = "out") -> Frames:
    """Return time of the SFD (ns) and octets of each frame of a port, all of them: management has a port of its own."""
    sent.link.sync()
    stamps, frames = read_pcap(sent.files / f"pins.port{port}.{direction}.pcap")
    return list(zip(stamps.tolist(), frames, strict=True))


def wrong_frames(frames: Frames, made: Sequence[Packet], snap: int | None = None) -> list[str]:
    """Compare what left a port with a file, tick by tick and octet by octet; return what differs.

    A frame starts when it is due, counted from the first one and rounded to ticks, or when the line is free.
    """
    if len(frames) != len(made):
        return [f"{len(frames)} frames left, not {len(made)}"]
    wrong, free = [], 0
    for number, ((stamp, found), (time_ns, octets)) in enumerate(zip(frames, made, strict=True)):
        due = (time_ns - made[0].time_ns + TICK_NS // 2) // TICK_NS
        start = max(due, free)
        free = start + len(octets) + OVERHEAD
        right = octets if snap is None else octets[:snap].ljust(len(octets), b"\0")
        if (stamp - frames[0][0]) // TICK_NS != start:
            wrong.append(f"frame {number} starts at tick {(stamp - frames[0][0]) // TICK_NS}, not {start}")
        if found != right:
            wrong.append(f"frame {number} has other octets")
    return wrong
