# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Holds what streams of 10 Gb/s left at the pins against the model: each start in its column, each octet, each stamp."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import OVERHEAD, STAMP_OFFSET
from liteprobe.host import Probe
from liteprobe.host.base.line import GIGABIT
from liteprobe.host.base.units import exact
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim10g_options
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.models import xgmii
from liteprobe.sim.models.traffic import streams as traffic

TIMES = 10 # As fast as the line of the model of streams, which counts octets, too.
HARNESS_TICK_NS, OCTET_NS, COLUMN = 8, 0.8, 4
STAMP_NS = 1.02 # Stamps are whole nanoseconds, and 16 ps.


@dataclass(frozen=True)
class Left:
    """Holds when frames left a port (octets of the line, of their SFD), and their octets without FCS."""

    ticks: NDArray[np.int64]
    frames: list[bytes]

    @classmethod
    def read(cls, path: Path) -> "Left":
        """Read the capture of a port's pins; frames with a wrong FCS are in it as well, with no frame to compare."""
        stamps, frames = truth.read_pcap(path)
        return cls(stamps // HARNESS_TICK_NS, frames)

    def since(self, first: int) -> "Left":
        """Return those from a number on."""
        return Left(self.ticks[first:], self.frames[first:])


@contextmanager
def opened(wire: str, build: Path, files: Path) -> Iterator[Probe]:
    """A simulated probe of 10 Gb/s that sends streams; it writes a capture of each port's pins and the truth into a folder."""
    mark = "&" if "?" in wire else "?"
    options = sim10g_options(f"sim10g://{wire}{mark}preset=generator&build={build}")
    with Probe(SimLink(replace(options, pcap=files / "pins", truth=files / "truth"))) as probe:
        yield probe


def left_of(probe: Probe, files: Path, port: int) -> Left:
    """Return what left a port so far."""
    assert isinstance(probe.link, SimLink)
    probe.link.sync()
    return Left.read(files / f"pins.port{port}.out.pcap")


def share_of_line(frames: NDArray[np.void]) -> tuple[int, int]:
    """Return the octets that frames take until the first stream has sent its last one, and the octets of the line from then."""
    last = min(int(np.flatnonzero(frames["stream"] == number)[-1]) for number in np.unique(frames["stream"]))
    return int((frames["length"][:last].astype(int) + OVERHEAD).sum()), int(frames["start"][last] - frames["start"][0])


def tenth(stream: Stream) -> Stream:
    """Return the same stream of octets on a line a tenth as fast: all its times are ten times as long."""
    timing = stream.interval
    burst = timing.burst
    if burst is not None and burst.inner_ns is not None:
        burst = replace(burst, inner_ns=TIMES * exact(burst.inner_ns))
    slow = replace(
        timing,
        interval_ns=None if timing.interval_ns is None else TIMES * exact(timing.interval_ns),
        rate_bps=None if timing.rate_bps is None else exact(timing.rate_bps) / TIMES,
        pps=None if timing.pps is None else exact(timing.pps) / TIMES,
        burst=burst,
    )
    return replace(stream, interval=slow, start_ns=TIMES * exact(stream.start_ns), line=GIGABIT)


def wanted(streams: Sequence[Stream], count: int) -> NDArray[np.void]:
    """Return the first frames of a port as of `traffic.schedule`; ``start`` is the octet of the column of each."""
    frames = traffic.schedule([tenth(stream) for stream in streams], count)
    dues = frames["due"] // COLUMN * COLUMN
    starts = xgmii.started(dues.tolist(), [False] * len(frames), frames["length"].tolist())
    frames["start"], frames["late"] = starts, np.array(starts, int) > dues
    return frames


def wrong(left: Left, streams: Sequence[Stream], frames: NDArray[np.void]) -> list[str]:
    """Compare what left a port with ``frames`` of its streams; return what differs."""
    if len(left.frames) != len(frames):
        return [f"{len(left.frames)} frames left, not {len(frames)}"]
    found = []
    starts = left.ticks - left.ticks[0] if len(left.ticks) else left.ticks
    for n in np.flatnonzero(starts != frames["start"] - frames["start"][:1]).tolist():
        due = frames["start"][n] - frames["start"][0]
        found.append(f"frame {n} of stream {frames['stream'][n]} starts at {starts[n]}, not {due}")
    stamps: list[int] = []
    numbers = iter(range(len(frames)))

    def stamp(_: int) -> int:
        """Return the stamp of the frame itself, and keep it."""
        n = next(numbers)
        place = streams[int(frames["stream"][n])].headers.payload_offset + STAMP_OFFSET
        stamps.append(int.from_bytes(left.frames[n][place : place + 8]))
        return stamps[-1]

    slow = [tenth(stream) for stream in streams]
    for n, right in enumerate(traffic.octets(slow, frames, stamp)):
        if left.frames[n] != right:
            found.append(f"frame {n} of stream {frames['stream'][n]} is {left.frames[n].hex()}, not {right.hex()}")
    has_stamp = np.array([streams[int(number)].used_stamp is not None for number in frames["stream"]], bool)
    if has_stamp.any():
        off = [number - OCTET_NS * Fraction(int(tick)) for number, tick in zip(stamps, left.ticks)]
        times = np.array([float(one - off[0]) for one in off])[has_stamp]
        if np.ptp(times) > STAMP_NS:
            found.append(f"stamps are {np.ptp(times):.2f} ns apart from the times of their SFDs")
    return found
