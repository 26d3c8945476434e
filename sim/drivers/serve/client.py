# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Serves a model of a probe, and asks the server as strangers do: by sockets, with headers of their own choice."""

import http.client
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets import Subprotocol
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from liteprobe.sim.drivers.tools.processes import wait_for
from liteprobe.host.probe import Probe
from liteprobe.host.serve import app as apps
from liteprobe.host.serve.kinds import KINDS
from liteprobe.host.serve.server import Server, ServerSettings
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.streams import TrafficProbe
from liteprobe.sim.models.probe.trains import ModelProbe

Answer = tuple[int, dict[str, str], bytes]


def ask(port: int, path: str = "/", body: Any = None, method: str = "", **headers: str) -> Answer:
    """Return status, headers and body of the answer to a request with these headers alone."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        link.request(method or ("GET" if body is None else "POST"), path, body, given)
        answer = link.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        link.close()


class Serving:
    """``liteprobe serve`` on a model, or on a link to one; ``link`` is the one that is open, ``error`` what it raises."""

    def __init__(
        self, folder: Path, model: Callable[[], ModelProbe] | None = None, to: FakeLink | None = None, **settings: Any
    ) -> None:
        self.folder = folder
        self._model = model or (lambda: TrafficProbe(lambda frame: [(1 - frame.port, 37, frame)]))
        self._to = to
        self.error: Exception | None = None
        self.app = apps.App("sim://cable?preset=tester", self._open, folder / "results")
        self.server = Server(self.app.asgi, ServerSettings(bodies=apps.BODIES, is_open=apps.is_open, **settings))
        self.port, self.key = self.server.port, ""

    def _open(self) -> Probe:
        if self.error:
            raise self.error
        self.link = self._to or FakeLink(self._model(), self.folder)
        read = self.link.read_scattered

        def read_or_not(addresses: Any) -> Any:
            if self.error:
                raise self.error
            return read(addresses)

        self.link.read_scattered = read_or_not  # type: ignore[method-assign]
        return Probe(self.link)

    def __enter__(self) -> Self:
        self.app.__enter__()
        self.server.__enter__()
        wait_for(lambda: self.app.worker.status()["state"] == "here")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.app.__exit__(kind, error, at)
        self.server.__exit__(kind, error, at)

    def call(self, method: str, path: str, content: Any = None, **headers: str) -> tuple[int, Any]:
        """Return status and content of an answer in JSON, asked with the key of `claim`."""
        given = {**({"X-LiteProbe-Key": self.key} if self.key else {}), **headers}
        body = None if content is None else json.dumps(content)
        status, _, said = ask(self.port, path, body, method, **given)
        return status, json.loads(said)

    def claim(self, name: str = "Ann", **more: Any) -> str:
        """Claim the probe, and return the key."""
        status, said = self.call("POST", "/api/owner", {"name": name, **more})
        assert status == 200, said
        self.key = said["key"]
        return self.key

    def start(self, kind: str, document: Any = None, **options: Any) -> str:
        """Start something, and return its number."""
        status, said = self.call("POST", "/api/runs", {"kind": kind, "document": document, "options": options})
        assert status == 201, said
        return str(said["number"])

    def ended(self) -> Any:
        """Return the run as it has ended."""
        return wait_for(lambda: (run := self.app.worker.run) and run.is_over and run)

    def lines(self, **more: Any) -> ClientConnection:
        """Return a WebSocket that gets all lines."""
        made: ClientConnection = connect(
            f"ws://127.0.0.1:{self.port}/api/lines", subprotocols=[Subprotocol("liteprobe")], max_size=None, legacy=True, **more
        )
        return made


def line_of(socket: ClientConnection, kind: str, limit_s: float = 20.0) -> dict[str, Any]:
    """Return the next line of a kind; TimeoutError where none comes, whatever else does."""
    end_s = time.monotonic() + limit_s
    while True:
        line: dict[str, Any] = json.loads(socket.recv(max(0.0, end_s - time.monotonic())))
        if line["kind"] == kind:
            return line


PATHS = (
    "/", "/api/state", "/api/owner", "/api/check", "/api/runs", "/api/runs/current/set", "/api/captures", "/r/x", "/page/x",
    "/api/lines", "/metrics",
)  # fmt: skip
VALUES: tuple[Any, ...] = (None, True, -1, 1e308, "", "x", [], {}, [[]], {"kind": "streams"}, {"kind": []}, "\ud800", "9" * 400)
BODIES = (
    b"", b"{", b"\xff\xfe", b"[" * 5000, b'{"kind":"streams","document":' + b'{"a":' * 2000, b"null", b'"x"', b"1" * 5000, b"NaN",
)  # fmt: skip
KEYS = ("kind", "document", "options", "streams", "length", "words", "name", "patience_s", "duration", "\0", "x" * 200)
MESSAGES = ("", "{", "[]", '{"key":1}', "x" * 70_000, '{"key":"\u00e4"}', "[" * 3000)


def fuzzed(served: Serving, chance: random.Random, count: int) -> Counter[int]:
    """Send random requests, and WebSockets with random messages; return how many had which status."""

    def nested(depth: int) -> Any:
        pick = chance.randrange(4 if depth else 2)
        if pick < 2:
            return chance.choice(VALUES)
        several = [nested(depth - 1) for _ in range(3)]
        return several if pick == 2 else {chance.choice(KEYS): one for one in several}

    found: Counter[int] = Counter()
    for _ in range(count):
        body = chance.choice(BODIES) if chance.random() < 0.3 else json.dumps(nested(4)).encode()
        if chance.random() < 0.4:
            asked = {"kind": chance.choice([*KINDS]), "document": nested(4), "options": nested(2)}
            body = json.dumps(asked).encode()
        method = chance.choice(["POST", "POST", "POST", "GET", "DELETE", "PUT"])
        status, headers, _ = ask(served.port, chance.choice(PATHS), body, method)
        found[status if "content-security-policy" in headers else 999] += 1
        if chance.random() < 0.1:
            with suppress(WebSocketException, OSError), served.lines() as one:
                one.send(chance.choice(MESSAGES))
    return found
