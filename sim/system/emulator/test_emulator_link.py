# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Links of the whole simulated emulator that a network takes down: nothing passes meanwhile, all does again after."""

from pathlib import Path

from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.probe import Probe
from liteprobe.host.traffic.network.document import read_network
from liteprobe.sim.drivers.frames.truth import CUT, OUT, read_truth
from liteprobe.sim.drivers.system.emulator import NOWHERE
from liteprobe.sim.drivers.system.senders import Packet, write

NETWORK = "changes: [{at: 500us, both: {link: down}}, {at: 900us, both: {link: up}}]"
EVERY_NS = 10_000


def test_no_frame_comes_or_leaves_while_a_link_is_down(emulator_build: Path, tmp_path: Path) -> None:
    url = sim_url(NOWHERE, build=emulator_build, link="own", pcap=tmp_path / "pins", truth=tmp_path / "truth")
    frames = [Packet(10**18 + EVERY_NS * n, b"\x02" + n.to_bytes(2, "big") + bytes(57)) for n in range(150)]
    write(tmp_path / "play.pcap", frames)
    with Probe(url) as probe, probe.emulate(read_network(NETWORK)) as emulation:
        link = probe.link
        assert isinstance(link, SimLink)
        for port in range(2):
            link.play(port, tmp_path / "play.pcap", link.now_ns() + 5000)
        seen: list[tuple[float, bool]] = []
        emulation.wait(1.6e-3, lambda look: seen.append((look.there.seconds, look.there.is_link_up)), 50e-6)
        arrived = [way["rest"].arrived for way in emulation.counts.values()]
        link.sync()
        rows = read_truth(tmp_path / "truth")
    down = [at for at, is_up in seen if not is_up]
    assert 0.5e-3 <= min(down) and max(down) < 1.2e-3
    # Down for 0.4 ms: 40 of 150; the host sees to it after each tick, within a look.
    for port, count in enumerate(arrived):
        assert 100 <= count <= 125, count
        left = rows[(rows["port"] == port) & (rows["direction"] == OUT)]
        ticks = left["sfd_tick"][left["fate"] == CUT]
        assert len(ticks) <= 30  # While one of both is down: the host takes one after the other.
        assert len(left) == arrived[1 - port]
