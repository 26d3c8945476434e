# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Simulated probes that send trains, streams and captures, and what stood on their pins against program, model or file."""

import random
import signal
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import OVERHEAD, REPLAY_PORT, TICK_NS
from liteprobe.host import Probe, TrainProgram, TrainResult
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.device.link.etherbone import DEFAULT_PORT
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.run.replay import ReplayResult
from liteprobe.host.run.streamed import StreamLook
from liteprobe.host.traffic.stream import Stream
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.models.traffic import streams as traffic

# Trains -------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Run:
    """Holds what the probe said, and what was on its pins."""

    result: TrainResult
    rows: NDArray[np.void]
    transmit: int = 0

    def sent(self, port: int | None = None) -> NDArray[np.void]:
        """Return the frames that left a port: the one of the train, unless another is named."""
        return truth.frames_out(self.rows, self.transmit if port is None else port)

    def received(self, port: int = 1) -> NDArray[np.void]:
        """Return the frames that came to a port."""
        return truth.frames_in(self.rows, port)


def run(folder: Path, wire: str, program: TrainProgram, files: Path, link: str = "own", transmit: int = 0) -> Run:
    """Send a program from a port and read the truth of it."""
    path = files / "truth & more"  # What parts options in a URL.
    with Probe(sim_url(wire, build=folder, truth=path, pcap=files / "pins", link=link)) as probe:
        result = probe.train(program, transmit=transmit)
    return Run(result, truth.read_truth(path), transmit)


def slots(program: TrainProgram) -> list[int]:
    """Return the ticks from start to start of a back-to-back program."""
    gap = round((program.gap_ns or 0) / 8)
    starts = program.count * program.repeats - 1
    return [program.length + OVERHEAD + (gap if (k + 1) % program.count == 0 else 0) for k in range(starts)]


# Streams ------------------------------------------------------------------------------------------

CABLE = "cable?delay=1us"
FRAMES_MOST = 100_000
MANAGEMENT = {port.to_bytes(2, "big") for port in (DEFAULT_PORT, REPLAY_PORT)}  # UDP: Etherbone, rings of a replay.

Frames = list[tuple[int, bytes]]


@dataclass
class Sent:
    """A simulated tester, and what was on its pins."""

    probe: Probe
    files: Path

    @property
    def link(self) -> SimLink:
        """Its link."""
        assert isinstance(self.probe.link, SimLink)
        return self.probe.link

    def pins(self, port: int, direction: str = "out") -> Frames:
        """Return time of the SFD (ns) and octets of each frame of a port, those of management left out."""
        return [
            (stamp, octets)
            for stamp, octets in self.all_pins(port, direction)
            if octets[12:14] != b"\x08\x06" and not MANAGEMENT & {octets[34:36], octets[36:38]}
        ]

    def all_pins(self, port: int, direction: str = "out") -> Frames:
        """Return the same of all frames: for management with a port of its own."""
        self.link.sync()
        stamps, frames = truth.read_pcap(self.files / f"pins.port{port}.{direction}.pcap")
        return list(zip(stamps.tolist(), frames, strict=True))


@contextmanager
def joined(folder: Path, files: Path, wire: str = CABLE, link: str = "shared", network: str = "") -> Iterator[Sent]:
    """A simulated probe, built in ``folder``, whose two ports are joined by a wire; ``files``: where its captures go.

    ``link``: its management shares a port ("shared"), or has one of its own ("own"). ``network``: what befalls its datagrams.
    """
    more = {"network": network} if network else {}
    with Probe(sim_url(wire, build=folder, link=link, pcap=files / "pins", **more)) as probe:
        yield Sent(probe, files)


def wrong_streams(frames: Frames, streams: Sequence[Stream]) -> list[str]:
    """Compare what left a port with the model, tick by tick and octet by octet; return what differs."""
    wanted = traffic.schedule(streams, FRAMES_MOST)
    if len(frames) != len(wanted):
        return [f"{len(frames)} frames left, not {len(wanted)}"]
    first_ns, first = frames[0][0], int(wanted["start"][0])
    octets = traffic.octets(streams, wanted, lambda start: first_ns + TICK_NS * (start - first))
    wrong = []
    for number, ((stamp, found), right, row) in enumerate(zip(frames, octets, wanted, strict=True)):
        if (stamp - first_ns) // TICK_NS != row["start"] - first:
            wrong.append(f"frame {number} of stream {row['stream']} starts at another tick")
        if found != right:
            wrong.append(f"frame {number} of stream {row['stream']} has other octets")
    return wrong


# Captures -----------------------------------------------------------------------------------------

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


def write(path: Path, made: Iterable[Packet]) -> None:
    """Write a pcap of nanoseconds."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", NANOSECONDS, 2, 4, 0, 0, 1 << 18, 1))
        for time_ns, octets in made:
            file.write(struct.pack("<IIII", *divmod(time_ns, 10**9), len(octets), len(octets)) + octets)


def stop_replay(sent: Sent, trace: Trace, after: int = 60) -> tuple[ReplayResult, Frames]:
    """Replay a trace without an end, stop it after so many frames, and return its result and what left port 0."""

    def stop(look: StreamLook) -> None:
        if look.frames[0] > after:
            raise Interrupted(signal.SIGINT)

    try:
        sent.probe.replay(trace, loops=None, show=stop)
    except Interrupted as end:
        (result,) = end.results
        return result, sent.all_pins(0)
    raise AssertionError("a replay without an end has ended")


def wrong_packets(frames: Frames, made: Sequence[Packet], snap: int | None = None) -> list[str]:
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
