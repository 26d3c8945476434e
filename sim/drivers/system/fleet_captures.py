# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Gives the probes of a modelled fleet a capture: what is in its files is held against what came to the probe."""

import struct
from pathlib import Path
from typing import Any

from scapy.utils import RawPcapNgReader

from liteprobe.cores.formats import BLOCK_WORDS, CHANNEL_WORDS, CHANNELS, PRESETS, ChannelWord, map_hash
from liteprobe.sim.drivers.capture.blocks import Captured, ChannelWriter
from liteprobe.host.fleet.experiment import ExperimentResult
from liteprobe.sim.drivers.system.fleet import Hostile, befallen
from liteprobe.sim.models.probe.fleet import TAI_NS, Fleet, FleetProbe, FleetTester
from liteprobe.sim.models.probe.trains import ModelFrame, registers

RING = registers("enable:1 running:1 flush_us trigger trigger_state ring_blocks ring_address")
KEEP = registers("keep:3 snap_length:16 sample:4 clear:1 link_up:1 line_latch:1 line_count line_now:64")
CHANNELS_BASE, RING_BASE, RING_BLOCKS = 0x8C000000, 0x90000000, 4096


class FleetCapturer(FleetTester):
    """A probe of a fleet that captures, too; preset ``tester``. Its ring has a channel, whose blocks are closed at once."""

    def __init__(
        self, fleet: Fleet, number: int, ppm: float, bound_ns: float, error_ns: float, phase_ns: float
    ) -> None:
        super().__init__(fleet, number, ppm, bound_ns, error_ns, phase_ns)
        self.extend("capture", RING, RING.keys() - {"running", "ring_blocks", "ring_address", "trigger_state"})
        self.extend("export", registers("udp_port:16 start:8"), {"udp_port", "start"})
        self.extend("filter", registers("control"), {"control"})
        for port in range(2):
            self.extend(f"port{port}_monitor", KEEP, KEEP.keys() - {"link_up", "line_count", "line_now"})
            self.values[f"port{port}_monitor_link_up"] = 1
            counted = self.map["csr_registers"]  # A count that stays 0 here becomes that of frames that are kept.
            counted[f"port{port}_rx_sampled"] = counted.pop(f"port{port}_rx_management_dropped")
        self.extend_memories(0, {"channels": (CHANNELS_BASE, CHANNEL_WORDS * CHANNELS)}, "capture")
        memories = self.map["memories"]
        memories["capture_channels"] = memories.pop("capture0_channels")
        self.values |= {"probe_parts": PRESETS["tester"], "capture_ring_blocks": RING_BLOCKS, "capture_ring_address": RING_BASE}
        self.values["probe_map_hash"] = map_hash(self.map)
        self.captured: list[tuple[int, int]] = []  # Stream ids and numbers of frames that were kept.
        self._writer = ChannelWriter(0)

    def _act(self, name: str, word: int) -> None:
        if name == "capture_enable" and word:
            self._writer = ChannelWriter(0)
            share = self._memory.get(CHANNELS_BASE + 4 * ChannelWord.BLOCKS, 0)
            for place in range(ChannelWord.READ, CHANNEL_WORDS):
                self._memory[CHANNELS_BASE + 4 * place] = 0
            self._memory[CHANNELS_BASE + 4 * ChannelWord.TAKEN] = share
        elif name.startswith(("capture_", "export_", "filter_")) or ("_monitor_" in name and not name.endswith("_line_latch")):
            return
        else:
            super()._act(name, word)

    def _receive(self, port: int, frame: ModelFrame) -> None:
        super()._receive(port, frame)
        if self.values[f"port{port}_monitor_keep"] and self.values["capture_enable"]:
            self._add(port, management_dropped=1)
            self._keep(port, frame)

    def _keep(self, port: int, frame: ModelFrame) -> None:
        """Write a frame into a block of its own: what there is of it, its stream id and number."""
        octets = frame.stream_id.to_bytes(2) + frame.sequence.to_bytes(4)
        record = Captured(self.now(), octets.ljust(frame.length, b"\0"), port).record()
        words = {name: CHANNELS_BASE + 4 * place for name, place in ChannelWord.__members__.items()}
        written, read, size = (self._memory[words[name]] for name in ("WRITTEN", "READ", "TAKEN"))
        if written - read >= size:
            self._memory[words["DROPPED"]] += 1
            self._writer.dropped += 1
            return
        self.captured.append((frame.stream_id, frame.sequence))
        for block in [*self._writer.add(record), *self._writer.flush()]:
            place = self._memory[words["WRITTEN"]] % size
            self.show(RING_BASE + 4 * BLOCK_WORDS * place, list(struct.unpack(f"<{BLOCK_WORDS}I", block)))
            self._memory[words["WRITTEN"]] += 1


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
