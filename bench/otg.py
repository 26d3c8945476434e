# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures a probe that is served as an Open Traffic Generator: configurations against the pins, and requests of any kind.

``configs``: each configuration of `otg_configs` is sent by HTTP to the simulated tester; frames, starts and metrics are held
against the pins. Not compared: starts of frames whose sizes are drawn (the model doesn't know these). ``hostile``: requests
that are drawn from bodies of every kind, half of them by HTTP and half by gRPC, against a served model of a probe; what is good
must be answered all the while.
"""

import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
import otg_configs
import requests
from google.protobuf import json_format

from liteprobe.host.base import interrupt
from liteprobe.host.otg.messages import pb
from liteprobe.host.otg.server import OtgServer, OtgSettings, http_settings, serving
from liteprobe.host.probe import Probe
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.system.otg import served, wrong_run
from liteprobe.sim.drivers.tools.figures import Figure, drawn, note, row
from liteprobe.sim.models.probe.streams import TrafficProbe
from liteprobe.sim.system.build import build_probe

PATHS = (
    *(("POST", path) for path in ("/config", "/control/state", "/control/action")),
    *(("POST", path) for path in ("/monitor/metrics", "/monitor/states", "/monitor/capture")),
    *(("PATCH", path) for path in ("/config", "/config/append", "/config/delete")),
    *(("GET", path) for path in ("/config", "/capabilities/version", "/", "/config/../config", "/monitor/%00")),
)
REQUESTS, FULL_REQUESTS = 2_000, 100_000


@row("otg")
def test_configs(is_full: bool) -> Iterator[Figure]:
    """Configurations in the style of public examples, each against the pins; others, which are refused by their path."""
    interrupt.install()
    wrong = frames = 0
    with TemporaryDirectory() as folder, served(build_probe("own", preset="tester"), Path(folder)) as desk:
        for name, config in otg_configs.RUNS.items():
            found, sent, came = desk.run(config, 0, 1)
            frames += len(sent)
            if differs := wrong_run(config, found, sent, came):
                wrong += 1
                note(f"{name}: {'; '.join(differs)[:300]}")
        refused = 0
        for name, (config, path) in otg_configs.REFUSED.items():
            answer = desk.post("/config", config)
            errors = answer.json().get("errors", [])
            if answer.status_code == 400 and any(error.startswith(f"{path}: ") for error in errors):
                refused += 1
            else:
                note(f"{name}: {answer.status_code} {errors}")
    yield Figure("configs_run", len(otg_configs.RUNS), "configurations", 40, is_least=True)
    yield Figure("configs_frames", frames, "frames", 1000, is_least=True)
    yield Figure("configs_wrong", wrong, "configurations", 0)
    yield Figure("configs_refused_by_path", refused, "configurations", len(otg_configs.REFUSED), is_least=True)


def body(rng: random.Random) -> bytes:
    """Return a body: a good configuration with something else in one place, a message of any fields, or octets."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randbytes(rng.randrange(200))
    if kind == 1:
        return json.dumps(_any(rng, 4)).encode()
    rows = list(otg_configs.RUNS.values()) + [config for config, _ in otg_configs.REFUSED.values()]
    text = json.dumps(rng.choice(rows))
    if kind == 2:
        at = rng.randrange(len(text))
        return (text[:at] + rng.choice(["", "-1", '"', "null", "1e400", "{}", "[]", "\x00"]) + text[at + 1 :]).encode()
    given = json.loads(text)
    _change(rng, given)
    return json.dumps(given).encode()


def _any(rng: random.Random, depth: int) -> Any:
    names = ["flows", "choice", "name", "ports", "traffic", "flow_transmit", "state", "packet", "value", "rate", "x"]
    plain = [None, True, -1, 2**70, 1.5, "", "start", "1" * 300, "\u0000", "p1"]
    kind = rng.randrange(3) if depth else 2
    if kind == 0:
        return {rng.choice(names): _any(rng, depth - 1) for _ in range(rng.randrange(4))}
    if kind == 1:
        return [_any(rng, depth - 1) for _ in range(rng.randrange(4))]
    return rng.choice(plain)


def _change(rng: random.Random, given: Any) -> None:
    """Put something else into one place of a document."""
    while True:
        keys = list(given) if isinstance(given, dict) else list(range(len(given)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(given[key], dict | list) and rng.random() < 0.8:
            given = given[key]
            continue
        given[key] = rng.choice([_any(rng, 2), 0, 2**32, 2**64 - 1, -5, 1e-9, "zz", "ff" * 3000])
        return


class Hostile:
    """Sends requests that are drawn, and keeps what came of them."""

    def __init__(self, server: OtgServer, count: int) -> None:
        self.server, self.count = server, count
        self.statuses: dict[str, int] = {}
        self.faults = self.starts = 0  # Answers that the models don't have; transitions that were taken.

    def http(self, rng: random.Random) -> None:
        """Send them by HTTP."""
        session = requests.Session()
        for _ in range(self.count):
            method, path = rng.choice(PATHS)
            kind = rng.choice(["application/json"] * 9 + ["text/plain"])
            url, content = self.server.url + path, body(rng)
            answer = session.request(method, url, data=content, headers={"Content-Type": kind}, timeout=LIMIT_S)
            status = answer.status_code
            self._note(f"HTTP {status}", path == "/control/state" and status == 200)
            wrong = status >= 500
            if 400 <= status < 500 and status not in (421, 429):
                error = answer.json()
                wrong = not error.get("errors") or error["code"] != status
            if wrong:
                self.faults += 1
                note(method, path, content[:200], answer.text[:300])

    def grpc(self, rng: random.Random) -> None:
        """Send them by gRPC: messages of the models with one octet changed, lost or added, and octets of no message."""
        good = [json_format.ParseDict(one, pb.Config()) for one in otg_configs.RUNS.values()]
        whole = [pb.SetConfigRequest(config=one).SerializeToString() for one in good]
        with grpc.insecure_channel(f"127.0.0.1:{self.server.grpc_port}") as channel:
            calls = {name: channel.unary_unary(f"/otg.Openapi/{name}") for name in METHODS}
            for _ in range(self.count):
                name, content = rng.choice(METHODS), _octets(rng, whole)
                try:
                    calls[name](content, timeout=LIMIT_S)
                    self._note("gRPC OK", name == "SetControlState")
                except grpc.RpcError as error:
                    self._note(f"gRPC {error.code().name}")
                    if error.code() not in REFUSALS or not json.loads(error.details()).get("errors"):
                        self.faults += 1
                        note(name, content[:200], error.code(), str(error.details())[:300])

    # # #

    def _note(self, status: str, is_start: bool = False) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.starts += is_start


METHODS: tuple[str, ...] = (
    "SetConfig",
    "UpdateConfig",
    "AppendConfig",
    "DeleteConfig",
    "SetControlState",
    "SetControlAction",
)
METHODS += ("GetMetrics", "GetStates", "GetCapture", "GetConfig", "GetVersion")
REFUSALS = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION)
LIMIT_S = 60.0


def _octets(rng: random.Random, whole: list[bytes]) -> bytes:
    kind = rng.randrange(5)
    if kind == 0:
        return rng.randbytes(rng.randrange(100))
    content = bytearray(rng.choice(whole))
    for _ in range(rng.randrange(3)):
        at = rng.randrange(len(content))
        content[at : at + rng.randrange(2)] = rng.randbytes(rng.randrange(3))
    return bytes(content[: rng.randrange(len(content))] if kind == 1 else content)


@row("otg")
def test_hostile(is_full: bool) -> Iterator[Figure]:
    """Requests of any kind: each is answered as the models say, and a good client beside them always gets its answer."""
    rng, count = drawn(), FULL_REQUESTS if is_full else REQUESTS
    missed, good = 0, 0
    ended = threading.Event()
    models = []

    def open_probe() -> Probe:
        models.append(TrafficProbe(lambda frame: [(1 - frame.port, 37, frame)]))
        return Probe(FakeLink(models[-1], Path(folder)))

    def ask(url: str) -> None:
        nonlocal missed, good
        session = requests.Session()
        while not ended.is_set():
            answer = session.post(url + "/monitor/metrics", json={"choice": "port", "port": {}}, timeout=LIMIT_S)
            good, missed = good + 1, missed + (answer.status_code != 200)
            time.sleep(0.05)

    local = http_settings("127.0.0.1", 0, None)
    with TemporaryDirectory() as folder, serving(open_probe, OtgSettings(local, local)) as server:
        asking = threading.Thread(target=ask, args=(server.url,), daemon=True)
        asking.start()
        hostile = Hostile(server, count // 2)
        rngs = random.Random(rng.random()), random.Random(rng.random())
        start_s = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(hostile.http, rngs[0]), pool.submit(hostile.grpc, rngs[1])]:
                done.result()
        span_s = time.monotonic() - start_s
        ended.set()
        asking.join()
        config = requests.post(server.url + "/config", json=otg_configs.config(), timeout=LIMIT_S)
    sent = sum(len(one.frames) for one in models)
    note(
        "answers",
        dict(sorted(hostile.statuses.items())),
        f"{span_s:.0f} s, {hostile.starts} transitions taken, {sent} frames",
    )
    yield Figure("hostile_requests", count, "requests", REQUESTS, is_least=True)
    yield Figure("hostile_ms", 1e3 * span_s / count, "ms a request", 9)
    yield Figure("hostile_faults", hostile.faults, "requests", 0)
    yield Figure("hostile_frames_without_a_start", 0 if hostile.starts else sent, "frames", 0)
    yield Figure("hostile_good_requests_missed", missed, f"of {good}", 0)
    yield Figure("hostile_served_afterwards", config.status_code in (200, 409), "", 1, is_least=True)
