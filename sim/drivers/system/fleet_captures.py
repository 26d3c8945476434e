# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Gives the probes of a modelled fleet a capture: what is in its files is held against what came to the probe."""

from pathlib import Path
from typing import Any

from scapy.utils import RawPcapNgReader

from liteprobe.sim.drivers.capture.blocks import Captured
from liteprobe.sim.drivers.capture.ring import WithRing
from liteprobe.host.fleet.experiment import ExperimentResult
from liteprobe.sim.drivers.system.fleet import Hostile, befallen
from liteprobe.sim.models.probe.fleet import TAI_NS, Fleet, FleetProbe, FleetTester
from liteprobe.sim.models.probe.trains import ModelFrame


class FleetCapturer(WithRing, FleetTester):
    """A probe of a fleet that captures, too; preset ``tester``."""

    def __init__(
        self, fleet: Fleet, number: int, ppm: float, bound_ns: float, error_ns: float, phase_ns: float
    ) -> None:
        super().__init__(fleet, number, ppm, bound_ns, error_ns, phase_ns)
        self.captured: list[tuple[int, int]] = []  # Stream ids and numbers of frames that were kept.

    def _act(self, name: str, word: int) -> None:
        super()._act(name, word)
        if name == "capture_enable" and word:  # Of the host before, which was killed, nobody has them.
            self.captured.clear()

    def _receive(self, port: int, frame: ModelFrame) -> None:
        super()._receive(port, frame)
        octets = frame.stream_id.to_bytes(2) + frame.sequence.to_bytes(4)
        if self.keep(Captured(self.now(), octets.ljust(frame.length, b"\0"), port)):
            self.captured.append((frame.stream_id, frame.sequence))


def frames_of(path: Path) -> list[tuple[int, int, int]]:
    """Return the frames in a pcapng, as scapy reads it: stamp (ns), stream id and number of each."""
    with RawPcapNgReader(str(path)) as reader:
        found = []
        octets: bytes
        about: Any  # Its type doesn't say what pcapng has.
        for octets, about in reader:
            stamp = (about.tshigh << 32 | about.tslow) * 10**9 // about.tsresol
            found.append((stamp, int.from_bytes(octets[:2]), int.from_bytes(octets[2:6])))
        return found


def check_files(fleet: Fleet, result: ExperimentResult, victim: str, found: Hostile) -> None:
    """Hold captures against what came to their probes: no frame that didn't come, none missing in silence, stamps true."""
    for one in result.captures:
        probe = fleet.probes[int(one.probe[1:])]
        assert isinstance(probe, FleetCapturer)
        found.unnamed += [f"capture at {one.probe}"]*(one.result is None and not one.why)
        is_concerned = victim == one.probe or found.kind == "interrupt"
        found.missing += [f"{one.said}"]*(not one.is_complete and not is_concerned)
        if not Path(one.files[0]).exists():
            continue
        came = {(each.stream_id, each.sequence): each.came_ns for each in fleet.passages if each.receiver == probe.number}
        held = frames_of(Path(one.files[0]))
        for stamp, stream_id, sequence in held:
            true_ns = came.get((stream_id, sequence))
            is_off = true_ns is not None and abs(stamp - TAI_NS - true_ns) > 2.5*probe.bound_ns + 8
            if true_ns is None or (is_off and not is_concerned):
                found.wrong.append(f"capture at {one.probe}: stream {stream_id}, number {sequence}, {stamp}")
        if one.result and one.result.frames != len(held):
            found.wrong.append(f"capture at {one.probe}: {one.result.frames} frames are said, {len(held)} are there")
        if one.is_complete and sorted(probe.captured) != sorted(each[1:] for each in held):
            found.wrong.append(f"capture at {one.probe}: {len(held)} of {len(probe.captured)} frames, and nothing is said")
        if one.is_complete and not is_concerned and len(held) != sum(each is not None for each in came.values()):
            found.wrong.append(f"capture at {one.probe}: {len(held)} frames are not all that came")


def hostile(seed: int, folder: Path, of: type[FleetProbe] = FleetCapturer) -> Hostile:
    """Run an experiment with streams and captures at two probes, of which a random fault befalls one, as `fleet.hostile` does."""
    return befallen(seed, folder, of, check_files)
