# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""An SDRAM with a clock of its own, at its pins: words over the bus, a trace that is replayed, a network's store."""

import random
from pathlib import Path

import pytest

from liteprobe.host import Probe
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.traffic.network.netem import from_netem
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.frames.gmii import with_fcs
from liteprobe.sim.drivers.system.senders import packets, write
from liteprobe.sim.pins.build import build_board

PREAMBLE = b"\x55" * 7 + b"\xd5"
SMALL = {"with_cpu": False, "with_discipline": False}
REPLAY = {"preset": "replay", "with_sets": False, "with_hash": False, "ports": 1, "link": "own", **SMALL}
EMULATOR = {"preset": "emulator", "directions": 1, "with_spill": False, "trace_entries": 0, "with_aqm": False, **SMALL}


@pytest.mark.full
def test_words_and_a_trace_pass_the_sdram_as_they_were(tmp_path: Path) -> None:
    """On a board of which management has the other port; frames against the file, octet for octet and tick for tick."""
    folder = build_board("colorlight_5a_75b", **REPLAY)
    write(tmp_path / "trace.pcap", packets(100, 5, 0.5))
    rng = random.Random(6)
    with Probe(sim_url("loopback?delay=1us", build=folder, link="own", pcap=tmp_path / "pins")) as probe:
        base = probe.registers.memory("sdram").address
        words = [rng.getrandbits(32) for _ in range(64)]
        for n in (0, 32):
            probe.link.write(base + 128 * n, words[n : n + 32])
        assert [int(word) for n in (0, 32) for word in probe.link.read(base + 128 * n, 32)] == words
        result = probe.replay(Trace.from_pcap(tmp_path / "trace.pcap"))
        assert result.is_complete
    stamps, frames = truth.read_pcap(tmp_path / "pins.port0.out.pcap")
    due, wanted = truth.read_pcap(tmp_path / "trace.pcap")
    assert frames == wanted
    # A frame that is due before the line is free is late, by what the frames before it take.
    free = 0
    for frame, start, asked in zip(frames, (stamps - stamps[0]).tolist(), (due - due[0]).tolist(), strict=True):
        ideal = max(free, asked)
        assert abs(start - ideal) <= 8
        free = start + 8 * (len(frame) + 24)


@pytest.mark.full
def test_frames_wait_in_the_sdram_of_an_emulator(tmp_path: Path) -> None:
    """200 frames of all lengths: each comes out once, with its octets, the delay later."""
    folder = build_board("colorlight_5a_75b", **EMULATOR)
    rng = random.Random(7)
    sent = [b"\x02" + rng.randbytes(rng.randint(59, 1513)) for _ in range(200)]
    network, _ = from_netem("delay 200us")
    with Probe(sim_url("cable?delay=1us&loss=1", build=folder, link="shared", pcap=tmp_path / "pins")) as probe:
        assert isinstance(probe.link, SimLink)
        with probe.emulate(network):
            probe.wait(1e-3)  # It begins within that.
            for frame in sent:
                probe.link.inject(0, PREAMBLE + with_fcs(frame))
            probe.wait(3e-3)
    came_at, came = truth.read_pcap(tmp_path / "pins.port0.in.pcap")
    left_at, left = truth.read_pcap(tmp_path / "pins.port1.out.pcap")
    arrivals = [time for time, frame in zip(came_at.tolist(), came, strict=True) if frame in set(sent)]
    assert left == sent and len(arrivals) == len(sent)
    delays = {time - arrival for time, arrival in zip(left_at.tolist(), arrivals, strict=True)}
    assert max(delays) - min(delays) <= 16 and abs(min(delays) - 200_000) <= 100
