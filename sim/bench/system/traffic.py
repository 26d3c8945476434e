# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Streams that a whole simulated tester sends, as they are on its pins, against the model."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from liteprobe.cores.formats import TICK_NS
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.probe import Probe
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.bench.frames.truth import read_pcap
from liteprobe.sim.models.traffic import streams as traffic

CABLE = "cable?delay=1us"
FRAMES_MOST = 100_000

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
        self.link.sync()
        stamps, frames = read_pcap(self.files / f"pins.port{port}.{direction}.pcap")
        return [
            (int(stamp), octets)
            for stamp, octets in zip(stamps, frames, strict=True)
            if octets[36:38] != b"\x04\xd2" and octets[34:36] != b"\x04\xd2" and octets[12:14] != b"\x08\x06"
        ]


@contextmanager
def joined(folder: Path, files: Path, wire: str = CABLE) -> Iterator[Sent]:
    """A simulated tester, built in ``folder``, whose two ports are joined by a wire; ``files``: where its captures go."""
    with Probe(sim_url(wire, build=folder, link="shared", pcap=files / "pins")) as probe:
        yield Sent(probe, files)


def wrong_frames(frames: Frames, streams: Sequence[Stream]) -> list[str]:
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
