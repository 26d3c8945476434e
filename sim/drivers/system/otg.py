# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A simulated tester that is served as an Open Traffic Generator, and what was on its pins while clients used it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.otg.server import OtgServer, OtgSettings, http_settings, own_certificate, serving
from liteprobe.host.otg.session import SessionSettings
from liteprobe.host.probe import Probe
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.models.traffic import otg as model

Json = dict[str, Any]
Frames = list[tuple[int, bytes]]
CABLE = "cable?delay=1us"
ETHERBONE, ARP = b"\x04\xd2", b"\x08\x06"
MANAGEMENT = b"\xc0\xa8\x01"  # The network of the probe's own host, 192.168.1.0/24.
LOOK_S = 0.05
LIMIT_S = 300.0


class OtgDesk:
    """Asks a served probe by HTTP or HTTPS, and reads its pins.

    Parameters
    ----------
    files : Path
        Where the simulation writes what is on the pins.
    certificate : Path or None
        That the server must have; None: it serves HTTP.
    """

    def __init__(self, server: OtgServer, files: Path, certificate: Path | None = None) -> None:
        self.server, self.files = server, files
        self._session = requests.Session()
        if certificate:
            self._session.trust_env, self._session.verify = False, str(certificate)  # Before what the environment says.

    def post(self, path: str, body: Json, method: str = "POST") -> requests.Response:
        """Send a request."""
        return self._session.request(method, self.server.url + path, json=body, timeout=LIMIT_S)

    def good(self, path: str, body: Json) -> Json:
        """Send a request that must succeed; return its answer."""
        answer = self.post(path, body)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def transmit(self, state: str) -> Json:
        """Start or stop all flows."""
        return self.good(
            "/control/state",
            {"choice": "traffic", "traffic": {"choice": "flow_transmit", "flow_transmit": {"state": state}}},
        )

    def capture(self, state: str) -> Json:
        """Start or stop all captures."""
        return self.good("/control/state", {"choice": "port", "port": {"choice": "capture", "capture": {"state": state}}})

    def captured(self, port: str, **more: Any) -> bytes:
        """Return the file of a port's capture."""
        answer = self.post("/monitor/capture", {"port_name": port, **more})
        assert answer.status_code == 200, answer.text
        return answer.content

    def metrics(self, kind: str = "flow") -> list[Json]:
        """Return the metrics of all flows or ports."""
        found: list[Json] = self.good("/monitor/metrics", {"choice": kind, kind: {}}).get(f"{kind}_metrics", [])
        return found

    def finished(self) -> list[Json]:
        """Return the metrics of all flows as soon as all have ended."""
        ends_s = time.monotonic() + LIMIT_S
        while True:
            found = self.metrics()
            if all(one["transmit"] == "stopped" for one in found):
                return found
            assert time.monotonic() < ends_s, found
            time.sleep(LOOK_S)

    def pins(self, port: int, direction: str = "out") -> Frames:
        """Return time of the SFD (ns) and octets of each frame of a port, those of management and its ARP left out."""

        def sync(probe: Probe) -> None:
            assert isinstance(probe.link, SimLink)
            probe.link.sync()

        self.server.worker.call(sync).result(LIMIT_S)
        stamps, frames = truth.read_pcap(self.files / f"pins.port{port}.{direction}.pcap")
        return [
            (stamp, octets)
            for stamp, octets in zip(stamps.tolist(), frames, strict=True)
            if ETHERBONE not in (octets[34:36], octets[36:38])
            and not (octets[12:14] == ARP and MANAGEMENT in (octets[28:31], octets[38:41]))
        ]

    def run(self, config: Json, tx: int, rx: int) -> tuple[list[Json], Frames, Frames]:
        """Send what a configuration says; return the metrics of its flows, and what left and came at the pins of two ports."""
        self.good("/config", config)
        before = len(self.pins(tx)), len(self.pins(rx, "in"))
        self.transmit("start")
        found = self.finished()
        return found, self.pins(tx)[before[0] :], self.pins(rx, "in")[before[1] :]


def wrong_run(config: Json, found: list[Json], sent: Frames, came: Frames, scale: int = 1) -> list[str]:
    """Compare a configuration of one flow, its metrics, and the pins of both ends; return what differs."""
    (flow,), (metric,) = config["flows"], found
    wrong = model.wrong_frames(flow, sent, scale)
    octets = sum(len(frame) + 4 for _, frame in sent)
    wanted = {"frames_tx": len(sent), "bytes_tx": octets}
    if flow["metrics"].get("enable"):
        wanted |= {"frames_rx": len(came), "bytes_rx": sum(len(frame) + 4 for _, frame in came)}
    wrong += [f"{name} is {metric[name]}, not {value}" for name, value in wanted.items() if int(metric[name]) != value]
    if "latency" in metric:
        delays = [after - before for (before, _), (after, _) in zip(sent, came, strict=True)]
        less = 8 * flow["size"]["fixed"] if flow["metrics"]["latency"]["mode"] == "store_forward" else 0
        ends: dict[str, float] = {"minimum_ns": min(delays) - less, "maximum_ns": max(delays) - less}
        ends["average_ns"] = sum(delays) / len(delays) - less
        said = metric["latency"]
        wrong += [f"{name}: {said[name]}, not {one}" for name, one in ends.items() if abs(said[name] - one) > 1e-6]
    if "timestamps" in metric:
        span = came[-1][0] - came[0][0]
        stamps = metric["timestamps"]
        if stamps["last_timestamp_ns"] - stamps["first_timestamp_ns"] != span:
            wrong.append(f"time stamps span {stamps}, not {span} ns")
    return wrong


@contextmanager
def served(
    build: Path, files: Path, link: str = "own", wire: str = CABLE, has_tls: bool = False, **settings: Any
) -> Iterator[OtgDesk]:
    """Serve a simulated tester, built in ``build``, whose two ports are joined by a wire."""
    url = sim_url(wire, build=build, link=link, pcap=files / "pins", preset="tester")
    pair = own_certificate(files / "certificate", "127.0.0.1") if has_tls else None
    local = http_settings("127.0.0.1", 0, pair)
    with serving(lambda: Probe(url), OtgSettings(local, local, SessionSettings(**settings))) as found:
        yield OtgDesk(found, files, pair[0] if pair else None)
