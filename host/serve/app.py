# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Is what ``liteprobe serve`` serves: a page, REST with an OpenAPI document, lines by WebSocket, metrics, files of results.

One table of endpoints makes the routes and the OpenAPI document.
"""

import asyncio
import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from liteprobe.host.base import extras
from liteprobe.host.base.errors import BusyError, ProbeError, UsageError
from liteprobe.host.probe import Probe, lacking
from liteprobe.host.report import files
from liteprobe.host.run.emulate import Emulation
from liteprobe.host.serve.kinds import KINDS, FieldError, Place, RunKind
from liteprobe.host.serve.metrics import ServerMetrics
from liteprobe.host.serve.store import FILES, Store, dumps
from liteprobe.host.serve.worker import Line, Owners, ProbeRun, ProbeWorker, busy_or

with extras.named():
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import FileResponse, RedirectResponse, Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.websockets import WebSocket, WebSocketDisconnect

PAGE = Path(__file__).parent / "page"
PAGE_FILES = {
    "style.css": "text/css",
    "app.js": "text/javascript",
    "form.js": "text/javascript",
    "views.js": "text/javascript",
    "uPlot.iife.min.js": "text/javascript",
    "uPlot.min.css": "text/css",
    "icon.svg": "image/svg+xml",
    "LICENSE.uPlot": "text/plain; charset=utf-8",
}
KEY_HEADER = "x-liteprobe-key"
UPLOAD_MOST = 256 << 20  # Octets of a capture that is uploaded.
BODIES = {"/api/captures": UPLOAD_MOST}
WATCHERS_MOST = 32
WAITING_MOST = 64  # Lines that wait for a reader; then looks are left out, and counted.
SLOW_S = 20.0  # A reader that takes nothing for so long is let go.
STATE_S = 1.0
CALL_S = 15.0  # For what is done between two looks.
CHECK_WAIT_S = 1.0
CHECKS_MOST = 2  # Documents that are checked at once: that is work of this host's.
#: Of a report: styles and pictures that it has itself, and no script.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; frame-ancestors 'none'; sandbox"
)


def is_open(path: str) -> bool:
    """Return whether a path needs no token: the page itself, and a result, whose address nobody can guess."""
    return path in ("/", "/favicon.ico") or path.startswith(("/page/", "/r/"))


class Watcher:
    """A WebSocket that lines go to: what it takes too slowly is left out, looks first, and counted."""

    def __init__(self) -> None:
        self.lines: deque[tuple[str, str]] = deque()  # Kind and text.
        self.skipped = 0
        self.wake = asyncio.Event()

    def put(self, kind: str, text: str) -> None:
        """Take a line to be sent."""
        if len(self.lines) >= WAITING_MOST:
            oldest = next((place for place, (name, _) in enumerate(self.lines) if name == "look"), 0)
            del self.lines[oldest]
            self.skipped += 1
        self.lines.append((kind, text))
        self.wake.set()


class Hub:
    """Gives lines to all who watch, from any thread."""

    def __init__(self) -> None:
        self.watchers: set[Watcher] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def join(self) -> Watcher:
        """Return a new watcher, of the loop that runs."""
        self._loop = asyncio.get_running_loop()
        watcher = Watcher()
        self.watchers.add(watcher)
        return watcher

    def tell(self, line: Line) -> None:
        """Give a line to all; it becomes text once."""
        if not self.watchers or self._loop is None:
            return
        text = dumps(line, separators=(",", ":"))
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            self._loop.call_soon_threadsafe(self._spread, str(line["kind"]), text)

    def _spread(self, kind: str, text: str) -> None:
        for watcher in self.watchers:
            watcher.put(kind, text)


@dataclass(frozen=True)
class Endpoint:
    """A path, what it is for, and what does it: a function of the application, the request and its body."""

    method: str
    path: str
    about: str
    act: Callable[["App", Request, Any], Any]
    needs_owner: bool = False
    body: Mapping[str, Any] | None = None  # JSON Schema of the body; None: it has none.
    status: int = 200


class App:
    """All that is served of one probe; open while the ``with`` block runs.

    Parameters
    ----------
    url : str
        The probe.
    open_probe : callable
        Opens it.
    folder : Path
        Where results are kept.
    """

    def __init__(self, url: str, open_probe: Callable[[], Probe], folder: Path) -> None:
        self.url, self.store, self.hub = url, Store(folder), Hub()
        self.worker = ProbeWorker(open_probe, self._tell)
        self.owners = Owners(self._owner_ended)
        self.metrics = ServerMetrics(lambda: self.worker.status(), self._last_run)
        self._registry = CollectorRegistry()
        self._registry.register(self.metrics)
        self._last: Line = {}  # The last look, for who comes later.
        self._checks = threading.Semaphore(CHECKS_MOST)
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="owners", daemon=True)
        routes: list[Any] = [_route(self, one) for one in ENDPOINTS]
        routes += [
            Route("/", self._page),
            Route("/page/{name}", self._page),
            Route("/r/{number}", self._result),
            Route("/r/{number}/{name}", self._result),
            Route("/metrics", self._metrics),
            Route("/api/captures", self._upload, methods=["POST"]),
            WebSocketRoute("/api/lines", self._lines),
        ]
        self.asgi = Starlette(routes=routes, exception_handlers={404: _missing, 405: _missing, 500: _broken})

    def __enter__(self) -> Self:
        self.worker.__enter__()
        self._ticker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self.worker.__exit__(kind, error, at)

    def state(self) -> Line:
        """Return what is known of the probe, its owner and what runs, as a line."""
        claims, owner, run = self.owners.claims, self.owners.holder(), self.worker.run
        return {
            "kind": "state",
            "probe": self.worker.status(),
            "claims": owner.claim if owner else claims,
            "owner": owner and {"name": owner.name, "since": owner.since.isoformat(timespec="seconds")},
            "run": run and run.document(),
            "watchers": len(self.hub.watchers),
            "version": metadata.version("liteprobe"),
        }

    def start(self, kind: RunKind, body: Mapping[str, Any], owner: str) -> ProbeRun:
        """Check what is asked for and start it; raises as `RunKind.asked` and `ProbeWorker.start`."""
        parts = self.worker.status().get("parts")
        if parts is not None and not any(str(part.name).lower() in parts for part in kind.needs):
            held = self.worker.call(lambda probe: (probe.parts, probe.registers.identifier)).result(CALL_S)
            raise UsageError(lacking(self.url, held[0], kind.needs, held[1]))
        number, folder = self.store.new()
        place = Place(self.url, self.store.uploads, folder, self._measured)
        try:
            with self._checking():
                asked = kind.asked(body.get("document"), body.get("options"), place)

            def finish(run: ProbeRun) -> Line:
                return self._keep(run, kind, asked.document, asked.page)

            run = ProbeRun(number, kind.name, asked.name, owner, asked.act, finish)
            self.worker.start(run)
        except BaseException:
            self.store.forget(number)
            raise
        self.hub.tell(self.state())
        return run

    def check(self, kind: RunKind, body: Mapping[str, Any]) -> Line:
        """Check what is asked for, and return what ``--check`` says."""
        with self._checking():
            asked = kind.asked(
                body.get("document"), body.get("options"), Place(self.url, self.store.uploads, self.store.folder)
            )
        return {"name": asked.name, "said": asked.said}

    # # #

    @contextlib.contextmanager
    def _checking(self) -> Iterator[None]:
        """Check with no more than `CHECKS_MOST` others; BusyError where these go on: who waits keeps others from being served."""
        if not self._checks.acquire(timeout=CHECK_WAIT_S):
            raise BusyError(f"{CHECKS_MOST} documents are being checked already: try again in a moment")
        try:
            yield
        finally:
            self._checks.release()

    def _tell(self, line: Line) -> None:
        is_news = line["kind"] == "result" or self._last.get("run") != line["run"]
        if line["kind"] == "look":
            self._last = line
        self.hub.tell(line)
        if is_news:
            self.hub.tell(self.state())

    def _measured(self, look: Any) -> None:
        self.metrics.look = look

    def _last_run(self) -> tuple[str, bool, Line] | None:
        """Return kind, whether it runs, and the last look of what runs or ran last."""
        run = self.worker.run
        return (run.kind, not run.is_over, run.last) if run else None

    def _owner_ended(self, name: str) -> None:
        self.worker.stop(f"its owner, {name}, has gone")

    def _tick(self) -> None:
        while not self._ended.wait(0.5):
            self.owners.holder()

    def _keep(self, run: ProbeRun, kind: RunKind, document: str, page: tuple[str, ...]) -> Line:
        """Write the files of a run that has ended, and return its result as plain data."""
        result, facts = run.result, self.worker.status().get("facts", {})
        content = files.of_run(kind.form, self.url, facts, ["liteprobe", "serve"])
        content |= {"document": document} if document else {}
        content |= result.to_dict() if result is not None else {}
        meta = {**run.document(), "state": "failed" if result is None else "ended"}
        if result is not None and page:
            module, *forms = page
            self.store.keep_report(run.number, module, result, *(getattr(files, form) for form in forms), content)
        self.store.keep(run.number, meta, {**content, "run": meta}, document)
        return content

    # What is no JSON ------------------------------------------------------------------------------

    async def _page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        kind = "text/html; charset=utf-8" if name == "index.html" else PAGE_FILES.get(name)
        if kind is None or (name == "index.html" and "name" in request.path_params):
            return _said(404, f"there is no {ascii(name)[:80]} here: open /")
        return FileResponse(PAGE / name, media_type=kind)

    async def _result(self, request: Request) -> Response:
        number, name = request.path_params["number"], request.path_params.get("name")
        if name is None:
            for one in ("report.html", "result.json"):
                if await _away(self.store.file, number, one):
                    return RedirectResponse(f"/r/{number}/{one}", 303)
            return _said(404, "there is no such result")
        try:
            path = await _away(self.store.file, number, name)
        except ProbeError as error:
            return _said(500, str(error))
        if path is None:
            return _said(404, f"there is no such result, or it has no such file: it may have {', '.join(FILES)}")
        headers = {"content-security-policy": REPORT_POLICY} if name.endswith(".html") else {}
        if not name.endswith(".html"):
            headers["content-disposition"] = f'attachment; filename="{number[:6]}-{name}"'
        return FileResponse(path, media_type=FILES[name], headers=headers)

    async def _upload(self, request: Request) -> Response:
        """Write a capture as it comes."""
        try:
            self.owners.check(request.headers.get(KEY_HEADER))
        except ProbeError as error:
            return _said(busy_or(error), str(error))
        path, size = self.store.upload(), 0
        try:
            with path.open("xb") as stream:
                async for part in request.stream():
                    size += len(part)
                    await _away(stream.write, part)
        except BaseException as error:
            path.unlink(missing_ok=True)
            if isinstance(error, ClientDisconnect):
                return _said(400, "the client went before all of it came")
            raise
        return Response(dumps({"file": path.name, "octets": size}), 201, media_type="application/json")

    async def _metrics(self, request: Request) -> Response:
        return Response(await _away(generate_latest, self._registry), media_type=CONTENT_TYPE_LATEST)

    async def _lines(self, socket: WebSocket) -> None:
        """Send state now and then, and all lines, until the client goes; it may say once whose key it has."""
        offered = socket.scope.get("subprotocols", [])
        if len(self.hub.watchers) >= WATCHERS_MOST:
            await socket.close(1013, "too many watch already")
            return
        await socket.accept("liteprobe" if "liteprobe" in offered else None)
        watcher, keys = self.hub.join(), list[str]()
        reading = asyncio.create_task(self._read(socket, keys))
        reading.add_done_callback(lambda _: watcher.wake.set())
        try:
            watcher.put("state", dumps(self.state()))
            if self._last and self.worker.is_busy:
                watcher.put("look", dumps(self._last))
            while not reading.done():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(watcher.wake.wait(), STATE_S)
                watcher.wake.clear()
                if not watcher.lines:
                    watcher.put("state", dumps({**self.state(), "skipped": watcher.skipped}))
                    watcher.wake.clear()
                while watcher.lines:
                    _, text = watcher.lines.popleft()
                    await asyncio.wait_for(socket.send_text(text), SLOW_S)
        except (WebSocketDisconnect, TimeoutError, RuntimeError):
            pass
        finally:
            reading.cancel()
            self.hub.watchers.discard(watcher)
            for key in keys:
                self.owners.leave(key)
            with contextlib.suppress(Exception):
                await socket.close()

    async def _read(self, socket: WebSocket, keys: list[str]) -> None:
        """Take the key of an owner; anything else ends the connection."""
        with contextlib.suppress(
            WebSocketDisconnect, RuntimeError, ValueError, TypeError, AttributeError, RecursionError, KeyError
        ):
            while True:
                said = json.loads(await socket.receive_text())
                key = str(said.get("key") or "")
                if key not in keys and self.owners.enter(key):
                    keys.append(key)


# Endpoints ------------------------------------------------------------------------------------------


def _kind(body: Any) -> RunKind:
    """Return the kind that a body names."""
    name = body.get("kind") if isinstance(body, dict) else None
    if not isinstance(name, str) or name not in KINDS:
        raise UsageError(f"there is no kind {ascii(name)[:80]}: give one of {', '.join(KINDS)}")
    for part in ("document", "options"):
        if not isinstance(body.get(part), dict | str | None):
            raise UsageError(f"'{part}' is neither an object nor text: give what the schema of the kind says")
    return KINDS[name]


def _claim(app: App, request: Request, body: Any) -> Line:
    given = body if isinstance(body, dict) else {}
    name, patience = given.get("name"), given.get("patience_s", 30)
    if not isinstance(name, str) or isinstance(patience, bool) or not isinstance(patience, int | float):
        raise UsageError("give your 'name' as text, and 'patience_s' as a number")
    owner = app.owners.claim(name, float(patience))
    app.hub.tell(app.state())
    return {"name": owner.name, "key": owner.key, "patience_s": owner.patience_s, "claim": owner.claim}


def _release(app: App, request: Request, body: Any) -> Line:
    app.owners.release(request.headers.get(KEY_HEADER))
    app.hub.tell(app.state())
    return {}


def _start(app: App, request: Request, body: Any) -> Line:
    owner = app.owners.check(request.headers.get(KEY_HEADER))
    return app.start(_kind(body), body, owner.name).document()


def _stop(app: App, request: Request, body: Any) -> Line:
    return {"was_running": app.worker.stop()}


def _set(app: App, request: Request, body: Any) -> Line:
    words = body.get("words") if isinstance(body, dict) else None
    if not isinstance(words, list) or not 1 <= len(words) <= 32 or not all(isinstance(one, str) for one in words):
        raise UsageError("give 'words', a list of up to 32 like there.voice.delay=5ms")
    run = app.worker.run
    if run is None or run.is_over or run.kind != "network":
        raise UsageError("no network runs, so nothing can be set: start one")

    def act(probe: Probe) -> float:
        for port in probe.ports:
            if isinstance(port.sends_for, Emulation):
                return port.sends_for.set_words(*words)
        raise UsageError("the network doesn't run yet: set it in a moment")

    return {"holds_from_s": app.worker.call(act).result(CALL_S)}


def _now(app: App, request: Request, body: Any) -> Line:
    return app.state()


def _kinds(app: App, request: Request, body: Any) -> list[Line]:
    return [one.description() for one in KINDS.values()]


def _check(app: App, request: Request, body: Any) -> Line:
    return app.check(_kind(body), body)


def _results(app: App, request: Request, body: Any) -> list[Line]:
    return app.store.listed()


def _openapi(app: App, request: Request, body: Any) -> Line:
    return openapi()


_GIVEN = ["object", "string", "null"]
ASKED = {
    "type": "object",
    "required": ["kind"],
    "properties": {
        "kind": {"enum": list(KINDS)},
        "document": {"description": "YAML or JSON as text, or an object, by the schema of the kind.", "type": _GIVEN},
        "options": {"description": "By the schema of the kind's options.", "type": _GIVEN},
    },
}
KEY_PARAMETER = {
    "name": "X-LiteProbe-Key",
    "in": "header",
    "required": True,
    "description": "Of the owner.",
    "schema": {"type": "string"},
}
OWNER = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 64},
        "patience_s": {
            "description": "For how long you may be silent.",
            "type": "number",
            "minimum": 5,
            "maximum": 3600,
        },
    },
}
WORDS = {
    "type": "object",
    "required": ["words"],
    "properties": {"words": {"type": "array", "minItems": 1, "maxItems": 32, "items": {"type": "string"}}},
}
ENDPOINTS = (
    Endpoint("GET", "/api/state", "The probe, its owner, and what runs.", _now),
    Endpoint("GET", "/api/kinds", "What can be run: schemas of documents and options, examples.", _kinds),
    Endpoint(
        "POST", "/api/owner", "Claim the probe by your name; the key that you get starts and stops.", _claim, body=OWNER
    ),
    Endpoint("DELETE", "/api/owner", "Give the probe back; what you run ends.", _release, needs_owner=True),
    Endpoint("POST", "/api/check", "Check a document and its options, as --check does.", _check, body=ASKED),
    Endpoint("POST", "/api/runs", "Start what a document says.", _start, needs_owner=True, body=ASKED, status=201),
    Endpoint("GET", "/api/runs", "Results that are kept, the newest first.", _results),
    Endpoint(
        "POST", "/api/runs/current/stop", "Stop what runs; its result comes all the same.", _stop, needs_owner=True
    ),
    Endpoint("POST", "/api/runs/current/set", "Change the network that runs.", _set, needs_owner=True, body=WORDS),
    Endpoint("GET", "/openapi.json", "This description.", _openapi),
)


async def _away(act: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.to_thread(act, *arguments)


def _said(status: int, words: str, **more: Any) -> Response:
    return Response(dumps({"error": words, **more}), status, media_type="application/json")


async def _missing(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return _said(
        status, "there is no such path: see /openapi.json" if status == 404 else "that method isn't for this path"
    )


async def _broken(request: Request, error: Exception) -> Response:
    return _said(500, f"{error!r:.300}: report this with what was asked for")


def _route(app: App, endpoint: Endpoint) -> Route:
    async def handle(request: Request) -> Response:
        try:
            if endpoint.needs_owner:
                app.owners.check(request.headers.get(KEY_HEADER))
            body = None
            if endpoint.body is not None:
                body = json.loads(await request.body() or b"null")
            return Response(
                dumps(await _away(endpoint.act, app, request, body)), endpoint.status, media_type="application/json"
            )
        except (ValueError, RecursionError) as error:  # FieldError is no ValueError.
            if isinstance(error, ProbeError):
                return _said(busy_or(error), str(error))
            return _said(400, f"the body is not JSON that can be read: {str(error)[:200]}")
        except FieldError as error:
            return _said(400, str(error), part=error.part, line=error.line, path=error.path)
        except ProbeError as error:
            return _said(busy_or(error), str(error))
        except TimeoutError:
            return _said(503, f"the probe did not come to it within {CALL_S:g} s: try again")

    return Route(endpoint.path, handle, methods=[endpoint.method])


def openapi() -> Line:
    """Return the OpenAPI document of the endpoints, with the schemas of documents."""
    error = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
    paths: dict[str, Line] = {}
    for one in ENDPOINTS:
        said: Line = {
            "summary": one.about,
            "responses": {
                str(one.status): {"description": "Done.", "content": {"application/json": {"schema": {}}}},
                "default": {"description": "Why not.", "content": {"application/json": {"schema": error}}},
            },
        }
        if one.body is not None:
            said["requestBody"] = {"required": True, "content": {"application/json": {"schema": one.body}}}
        if one.needs_owner:
            said["parameters"] = [KEY_PARAMETER]
        paths.setdefault(one.path, {})[one.method.lower()] = said
    upload = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    paths["/api/captures"] = {
        "post": {
            "summary": f"Upload a capture to replay, up to {UPLOAD_MOST >> 20} MB.",
            "requestBody": {"required": True, "content": upload},
            "parameters": [KEY_PARAMETER],
            "responses": paths["/api/runs"]["post"]["responses"],
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "LiteProbe",
            "version": metadata.version("liteprobe"),
            "description": "One probe: watched by many, run by its owner. Lines of --jsonl come by WebSocket from /api/lines.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {one.name: one.schema() for one in KINDS.values() if one.schema},
        },
        "security": [{}, {"token": []}],
    }
