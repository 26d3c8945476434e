# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Gives the model of a probe a ring: frames that a port keeps are in blocks of one channel, which a host reads over the bus."""

import struct
from dataclasses import replace
from typing import Any

from liteprobe.cores.formats import BLOCK_WORDS, CHANNEL_WORDS, CHANNELS, PRESETS, ChannelWord, map_hash
from liteprobe.host.capture.request import Keep
from liteprobe.sim.drivers.capture.blocks import Captured, ChannelWriter
from liteprobe.sim.models.probe.trains import ModelProbe, registers

RING = registers("enable:1 running:1 flush_us trigger trigger_state ring_blocks ring_address")
KEEP = registers("keep:3 snap_length:16 sample:4 clear:1 link_up:1 line_latch:1 line_count line_now:64")
CHANNELS_BASE, RING_BASE, RING_BLOCKS = 0x8C000000, 0x90000000, 4096
WORDS = {name: CHANNELS_BASE + 4 * place for name, place in ChannelWord.__members__.items()}


class WithRing(ModelProbe):
    """A probe that captures, too, as of a preset; it can sample one frame in 2, 4 and so on.

    ``is_prompt``: a block is closed as soon as a frame is in it; else where it is full, or none waits for the host.
    """

    is_prompt = True

    def __init__(self, *arguments: Any, preset: str = "tester", **more: Any) -> None:
        super().__init__(*arguments, **more)
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
        self.values |= {"probe_parts": PRESETS[preset], "capture_ring_blocks": RING_BLOCKS, "capture_ring_address": RING_BASE}
        self.values["probe_map_hash"] = map_hash(self.map)
        self._writer = ChannelWriter(0)
        self._passed = [0, 0]  # Frames of each port that were to be sampled.

    def keep(self, frame: Captured) -> bool:
        """Have a frame that comes written into a block of its own, if its port keeps it; return whether it is in the ring."""
        prefix = f"port{frame.port}_monitor_"
        keep = self.values[prefix + "keep"] & Keep.BOTH
        if not (keep and self.values["capture_enable"]):
            return False
        self._passed[frame.port] += 1
        if self._passed[frame.port] % (1 << (self.values[prefix + "sample"] & 7)):
            return False
        self._add(frame.port, management_dropped=1)
        written, read, size = (self._memory[WORDS[name]] for name in ("WRITTEN", "READ", "TAKEN"))
        if written - read >= size:
            self._memory[WORDS["DROPPED"]] += 1
            self._writer.dropped += 1
            return False
        snap = self.values[prefix + "snap_length"] if keep & Keep.PACKETS else 0
        record = replace(frame, snap=snap, with_header=bool(keep & Keep.HEADERS)).record()
        made = self._writer.add(record)
        if self.is_prompt or (written == read and not made):
            made += self._writer.flush()
        for block in made:
            place = self._memory[WORDS["WRITTEN"]] % size
            self.show(RING_BASE + 4 * BLOCK_WORDS * place, list(struct.unpack(f"<{BLOCK_WORDS}I", block)))
            self._memory[WORDS["WRITTEN"]] += 1
        return True

    # # #

    def _act(self, name: str, word: int) -> None:
        if name == "capture_enable" and word:
            self._writer = ChannelWriter(0)
            share = self._memory.get(CHANNELS_BASE + 4 * ChannelWord.BLOCKS, 0)
            for place in range(ChannelWord.READ, CHANNEL_WORDS):
                self._memory[CHANNELS_BASE + 4 * place] = 0
            self._memory[CHANNELS_BASE + 4 * ChannelWord.TAKEN] = share
        elif name.endswith("_monitor_clear"):
            port = int(name[4])
            self._live[port], self._passed[port] = {}, 0
        elif name.startswith(("capture_", "export_", "filter_")) or ("_monitor_" in name and not name.endswith("_line_latch")):
            return
        else:
            super()._act(name, word)
