# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs each kind of thing that a server runs, on a model of a probe that has the parts for it, and goes on until it is stopped."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether

from liteprobe.cores.formats import PRESETS
from liteprobe.cores.formats.emulate import UNMATCHED_CLASS
from liteprobe.host.traffic.document import read_sets
from liteprobe.sim.drivers.capture.blocks import Captured
from liteprobe.sim.drivers.capture.ring import WithRing
from liteprobe.sim.drivers.replay.capture_files import Packet, pcap
from liteprobe.sim.drivers.replay.fake_probe import fake_probe
from liteprobe.sim.drivers.replay.sets_maker import template_of
from liteprobe.sim.drivers.serve.client import Serving, ask
from liteprobe.sim.models.probe.emulator import EmulatorProbe
from liteprobe.sim.models.probe.meters import MonitorProbe
from liteprobe.sim.models.probe.replay import ReplayModel, SetsModel
from liteprobe.sim.models.probe.streams import TrafficProbe
from liteprobe.sim.models.probe.trains import ModelProbe, cable
from liteprobe.sim.models.receive.meters import MeasuredFrame

STREAMS = {
    "streams": [{"name": "voice", "length": 214, "pps": 5000}, {"name": "bulk", "length": "imix", "share": "30%"}]
}
SOAK = {"streams": [{"length": 1514, "share": "1%"}]}
NETWORK = """\
both: {rate: 10Mbit, delay: 5ms, queue: 100}
there: {classes: [{name: voice, match: udp port 5060, delay: 1ms}]}
"""
SETS = {
    "stream": {"name": "hosts", "length": 60, "interval": "1s", "probe": False},
    "fields": ["address"],
    "sets": [{"address": f"10.0.{number >> 8}.{number & 255}"} for number in range(3000)],
}
FRAMES = 3000  # Of a replay, and of sets: one a second.


def network() -> ModelProbe:
    """Return an emulator with frames that wait."""
    model = EmulatorProbe()
    model.values["probe_parts"] = PRESETS["emulator"]
    model.offer(0, 0, 100, 125_000)
    model.offer(0, UNMATCHED_CLASS, 1000, 125_000, 62_500)
    model.offer(1, UNMATCHED_CLASS, 60, 12_500)
    return model


#: Frames that come to a monitor, one of each four: what they carry is in their headers.
CARRIED = [
    bytes(Ether() / carried)
    for carried in (
        IP() / TCP(sport=50000, dport=443),
        IP() / UDP(sport=50000, dport=53),
        Dot1Q(vlan=7) / IPv6() / UDP(sport=40000, dport=40001),
        ARP(),
    )
]


class Monitored(WithRing, MonitorProbe):
    """Frames of three streams come to port 1 as time passes, and intervals of rates end; each 50th frame is damaged."""

    came, is_prompt = 0, False

    def advance(self, ticks: int) -> None:
        super().advance(ticks)
        stamp, self.came = 1_800_000_000_000_000_000 + 2000 * self.came, self.came + 1
        number = self.came % 500
        self.arrive(1, MeasuredFrame(stamp, 60 + number, 0, True, self.came % 3, self.came // 3, stamp - 500 - number))
        self.keep(Captured(stamp, CARRIED[self.came % 4].ljust(60 + number, b"\0"), 1))
        if self.came % 50 == 0:
            self._add(1, fcs_errors=1)
            self.end_interval([0, 50], [0, 50 * 300])


def monitor() -> ModelProbe:
    """Return a monitor to which frames come."""
    return Monitored(preset="monitor")


def disciplined() -> ModelProbe:
    """Return a probe whose clock is locked, to 10 ns."""
    model = ModelProbe(cable(37), with_clock=True)
    model.values |= {"clock_state": 3, "clock_alive": 1, "clock_updates": 7, "clock_uncertainty": 10 * 256}
    model.values |= {"pps_period": 10**9, "pps_control": 1, "pps_present": 1}
    return model


class Way(NamedTuple):
    """A kind of run: its model (None: the usual one), document and options, and when it is seen."""

    model: Callable[[], ModelProbe] | None
    document: Any
    options: dict[str, Any]
    ready: str  # JavaScript, of the page.


CHARTS = "document.querySelectorAll('canvas').length === 3"
FRAMES_SEEN = "(/[1-9][0-9,]* (of 3,000 )?frames/.exec(document.querySelector('main').innerText) ?? [''])[0]"
#: By kind; replay and sets have other links.
WAYS = {
    "streams": Way(None, STREAMS, {}, CHARTS),
    "network": Way(network, NETWORK, {}, "document.querySelectorAll('svg rect.fill').length >= 3"),
    "monitor": Way(monitor, None, {"rates": "1ms"}, "document.querySelectorAll('svg rect.fill').length > 3"),
    "train": Way(
        disciplined,
        None,
        {"lengths": [60, 1514], "repeat": 4000, "interval": "1ms"},
        "/[1-9][0-9,]* of [0-9,]+ frames/.test(document.querySelector('main').innerText)",
    ),
    "stamp": Way(
        lambda: TrafficProbe(lambda frame: [(frame.port, 37, frame)]),
        None,
        {"address": "198.18.0.2", "count": 100_000},
        CHARTS,
    ),
    "soak": Way(None, SOAK, {"duration": "1h", "segment": "20ms"}, "document.querySelectorAll('tbody tr').length > 2"),
    "replay": Way(None, None, {"name": "trace.pcap"}, FRAMES_SEEN),
    "sets": Way(None, SETS, {}, FRAMES_SEEN),
    "capture": Way(monitor, None, {}, FRAMES_SEEN),
}


@contextmanager
def running(kind: str, folder: Path, has_begun: bool = True) -> Iterator[Serving]:
    """Serve a probe on which a run of a kind is under way, of an owner named Ann; else it can begin."""
    way = WAYS[kind]
    with ExitStack() as stack:
        link = None
        if kind in ("replay", "sets"):
            made = ReplayModel if kind == "replay" else SetsModel
            model, link, _ = stack.enter_context(fake_probe(folder, made))
            if isinstance(model, SetsModel):
                model.template = template_of(read_sets(json.dumps(SETS)))
        served = stack.enter_context(Serving(folder, way.model, link, rate=1e6, burst=10**6))
        served.claim(patience_s=3600)
        options = dict(way.options)
        if kind == "replay":
            packets = [Packet(Fraction(number), bytes(60), 60) for number in range(FRAMES)]
            said = ask(served.port, "/api/captures", pcap(packets), **{"X-LiteProbe-Key": served.key})[2]
            options["file"] = json.loads(said)["file"]
        if has_begun:
            served.start(kind, way.document, **options)
        yield served
        served.call("POST", "/api/runs/current/stop")
        served.ended()
