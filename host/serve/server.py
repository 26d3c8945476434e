# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Serves an ASGI application, and nothing by accident: address, TLS, token, Host, Origin, sizes, rates, headers of responses.

It knows nothing of probes: what a server does with one is in a file of its own (`liteprobe.host.serve.worker` has the probe).
"""

import asyncio
import contextlib
import ipaddress
import json
import os
import secrets
import socket
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from liteprobe.host.base import extras
from liteprobe.host.base.errors import ProbeError, UsageError

with extras.named():
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LOCAL = "127.0.0.1"
TOKEN_LEAST = 16  # Characters of a token.
BODY_MOST = 1 << 20  # Octets of a body.
HEAD_S = 10.0  # For all headers of a request, and from one part of its body to the next.
CLIENTS_MOST = 1024  # Addresses whose rate is kept.
CONNECTIONS_MOST = 256
WRONG_TOKEN = 20  # Requests that one with a wrong token counts as.
BEARER = "bearer."  # A WebSocket of a browser has no header of its own: the token is a protocol that it offers.
STOP_S = 3.0  # For responses that are on their way when the server ends.
#: Of every response: nothing from elsewhere, nothing inline, in no frame, kept by no cache.
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class ServerSettings:
    """Says where a server listens, and whom it serves.

    Raises UsageError, with what to type, where it would be open to a network without a token and a certificate, or the
    certificate can't be used.
    """

    address: str = LOCAL
    port: int = 0  # 0: a free one.
    #: Clients must have it (``Authorization: Bearer``); None: none is asked for, on this host's own address alone.
    token: str | None = None
    certificate: Path | None = None  # PEM, with its chain; None: no TLS.
    key: Path | None = None
    names: tuple[str, ...] = ()  # Names by which clients reach it, besides this host's own.
    bodies: Mapping[str, int] = field(default_factory=dict)  # Octets of a body at most, by the beginning of the path.
    is_open: Callable[[str], bool] = lambda path: False  # Whether a path needs no token.
    rate: float = 100.0  # Requests a second, of one address.
    burst: int = 400  # Requests at once, of one address.
    keep_alive_s: int = (
        5  # For so long a connection is kept between requests: a client that polls must not meet its end.
    )
    needs_token: bool = True  # Whether an address of a network needs a token; a protocol may have no place for one.

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 0xFFFF:
            raise UsageError(f"port {self.port} is out of range: give 0 to 65535 (0: a free one)")
        if self.token is not None and len(self.token) < TOKEN_LEAST:
            raise UsageError(f"the token has {len(self.token)} characters: give {TOKEN_LEAST} or more")
        if not is_loopback(self.address):
            lacking = ["--token FILE"] * (self.needs_token and self.token is None)
            lacking += ["--tls CERTIFICATE.pem KEY.pem"] * (self.certificate is None)
            if lacking:
                raise UsageError(
                    f"{self.address} is open to the network, so it takes {' and '.join(lacking)}: give that, or leave out "
                    f"--address, which serves this host alone ({LOCAL})"
                )
        if self.certificate:
            self.tls()

    def tls(self) -> ssl.SSLContext:
        """Return what TLS is done with; UsageError where the files can't be read, don't match, or have expired."""
        assert self.certificate
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
            first, last = validity(self.certificate.read_text())
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError.
            raise UsageError(
                f"the certificate {self.certificate} and its key can't be used ({error}): give two PEM files that belong together"
            ) from None
        now = datetime.now(UTC)
        if now > last:
            raise UsageError(
                f"the certificate {self.certificate} expired on {last:%Y-%m-%d %H:%M} UTC: give a new one "
                "(--tls CERTIFICATE.pem KEY.pem)"
            )
        if now < first:
            raise UsageError(
                f"the certificate {self.certificate} is valid from {first:%Y-%m-%d %H:%M} UTC on: see to the time of this host"
            )
        return context


def is_loopback(address: str) -> bool:
    """Return whether an address is reached from this host alone."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(address).is_loopback
    return address == "localhost"


def token_of(path: Path) -> str:
    """Return the token that a file holds; where there is none, a new one is written, for its owner to read.

    Raises UsageError where it can't be read or written.
    """
    try:
        if not path.exists():
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(made, "w") as stream:
                stream.write(secrets.token_urlsafe(24) + "\n")
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the token's file {path} can't be used ({error}): name one that you can write") from None


def validity(pem: str) -> tuple[datetime, datetime]:
    """Return from when until when the first certificate of a PEM file is valid; ValueError where it is none.

    Source: RFC 5280, section 4.1 (TBSCertificate, Validity); X.690 (DER).
    """
    end = "-----END CERTIFICATE-----"
    if end not in pem or "-----BEGIN CERTIFICATE-----" not in pem:
        raise ValueError("no certificate is in it")
    start = pem.index("-----BEGIN CERTIFICATE-----")
    der = ssl.PEM_cert_to_DER_cert(pem[start : pem.index(end, start) + len(end)])
    whole = _children(der)[0][1]
    fields = [one for one in _children(_children(whole)[0][1]) if one[0] != 0xA0]  # Without the version.
    first, last = (_time(*one) for one in _children(fields[3][1])[:2])
    return first, last


def _children(der: bytes) -> list[tuple[int, bytes]]:
    """Return tag and content of each element of DER."""
    found, at = [], 0
    while at < len(der):
        tag, length = der[at], der[at + 1]
        at += 2
        if length & 0x80:
            octets = length & 0x7F
            length = int.from_bytes(der[at : at + octets])
            at += octets
        found.append((tag, der[at : at + length]))
        at += length
    return found


def _time(tag: int, content: bytes) -> datetime:
    """Return a UTCTime (0x17), whose years are 1950 to 2049, or a GeneralizedTime."""
    text = content.decode("ascii")
    if tag == 0x17:
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


# Whom it serves -------------------------------------------------------------------------------------


class RequestRates:
    """Counts requests of each address: a bucket that fills by ``rate`` a second, up to ``burst``."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # Requests that are left, and when that was.

    def take(self, address: str, count: int = 1) -> float:
        """Take requests of an address; return 0.0, or, where it has asked for too much, after how long it may again (s)."""
        now = self._clock()
        left, then = self._left.pop(address, (float(self._burst), now))
        left = min(left + (now - then) * self._rate, self._burst)
        wait = max(0.0, (1 - left) / self._rate)
        self._left[address] = (left if wait else max(left - count, -float(self._burst)), now)
        while len(self._left) > CLIENTS_MOST:
            self._left.popitem(last=False)
        return wait


class _Body:
    """Receives a body; one that is too long or too slow ends, and ``refusal`` says with what status and words."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._most, self._size, self._is_over = receive, most, 0, False
        self.refusal: tuple[int, str] | None = None

    async def receive(self) -> Message:
        """Return the next part."""
        if self._is_over:
            return await self._receive()  # That the client has gone.
        try:
            message = await asyncio.wait_for(self._receive(), HEAD_S)
        except TimeoutError:
            self.refusal = 408, f"the body of this request stopped for {HEAD_S:g} s: send it again"
            return {"type": "http.disconnect"}
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._is_over = not message.get("more_body", False)
        if self._size > self._most:
            self.refusal = 413, f"the body has more than {self._most} octets, which are allowed here"
            return {"type": "http.disconnect"}
        return message


class Guard:
    """Stands before an application: refuses what isn't for it, by a status and ``{"error": ...}``, before the application runs.

    ``refused``: how many requests were refused, by status.
    """

    def __init__(self, inner: Application, settings: ServerSettings) -> None:
        self._inner, self._settings = inner, settings
        self._rates = RequestRates(settings.rate, settings.burst)
        own = socket.gethostname().lower()
        self._names = {"localhost", own, own.partition(".")[0], *(name.lower() for name in settings.names)}
        self.refused: dict[int, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._inner(scope, receive, send)
            return
        headers = _headers(scope)
        refusal = self._refusal(scope, headers)
        if refusal:
            await self._refuse(scope, receive, send, *refusal)
            return
        if scope["type"] == "websocket":
            await self._inner(scope, receive, send)
            return
        body, started = _Body(receive, self._most(scope["path"])), False

        async def send_more(message: Message) -> None:
            nonlocal started
            if body.refusal and not started:
                return  # Whatever the application makes of the end of its body.
            if message["type"] == "http.response.start":
                started = True
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in given),
                ]
            await send(message)

        try:
            await self._inner(scope, body.receive, send_more)
        except Exception:
            if not body.refusal:
                raise
        if body.refusal and not started:
            await self._refuse(scope, receive, send, *body.refusal)

    # # #

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return status and words with which a request is refused; None: it is not."""
        address = scope["client"][0] if scope.get("client") else ""
        if wait_s := self._rates.take(address):
            return 429, f"too many requests: wait {wait_s:.1f} s"
        if not self._is_own(headers.get("host", "")):
            names = ", ".join(sorted(self._names))
            return (
                421,
                f"this server is not {ascii(headers.get('host', ''))[:80]}: use its IP address, {names}, or --name NAME",
            )
        if not _is_same_origin(scope, headers):
            return (
                403,
                f"a page of {ascii(headers.get('origin', 'another site'))[:80]} may not use this server: open its own page",
            )
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdecimal():
            return 400, "Content-Length is not a number"
        if int(length[:20]) > (most := self._most(scope["path"])):
            return 413, f"the body has {length[:20]} octets: {most} are allowed here"
        if self._settings.token is not None and not self._settings.is_open(scope["path"]):
            given = token_given(headers)
            if given is None:
                return 401, "this server asks for its token: send it as 'Authorization: Bearer TOKEN'"
            if not secrets.compare_digest(given.encode(), self._settings.token.encode()):
                self._rates.take(address, WRONG_TOKEN)
                return 401, "this is not the token of this server"
        return None

    def _is_own(self, host: str) -> bool:
        """Return whether a Host names this server: a name that leads to it, and isn't its own, is of DNS rebinding."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        with contextlib.suppress(ValueError):
            ipaddress.ip_address(name)
            return True
        return name in self._names

    def _most(self, path: str) -> int:
        return max((most for begin, most in self._settings.bodies.items() if path.startswith(begin)), default=BODY_MOST)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, status: int, words: str) -> None:
        self.refused[status] = self.refused.get(status, 0) + 1
        if scope["type"] == "websocket":
            with contextlib.suppress(Exception):
                await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": words[:120]})
            return
        content = json.dumps({"error": words}).encode()
        given = {
            "content-type": "application/json",
            "content-length": str(len(content)),
            "connection": "close",
            **HEADERS,
        }
        given |= {"www-authenticate": "Bearer"} if status == 401 else {}
        head = [(name.encode(), value.encode()) for name, value in given.items()]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": content})


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def token_given(headers: Mapping[str, str]) -> str | None:
    """Return the token that headers have; None: they have none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        return token.strip()
    offered = (one.strip() for one in headers.get("sec-websocket-protocol", "").split(","))
    return next((one.removeprefix(BEARER) for one in offered if one.startswith(BEARER)), None)


def _is_same_origin(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Return whether a request is of no page, or of one that this server has given."""
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and "origin" not in headers:
        # A link from elsewhere to a page is harmless; anything else isn't asked for by this server's page.
        return scope["type"] == "http" and scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
    if "origin" not in headers:
        return True
    scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
    return headers["origin"].lower() == f"{scheme}://{headers.get('host', '').lower()}"


# The server -----------------------------------------------------------------------------------------


class _Protocol(H11Protocol):
    """Closes a connection on which no request comes to its end; one between two requests ends by ``keep_alive_s`` alone."""

    _is_partial = False  # At the last look a part of a request was there, and no more.

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.loop.call_later(HEAD_S, self._see)

    def _see(self) -> None:
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return  # It has ended, or become a WebSocket.
        is_idle = self.cycle is not None and self.cycle.response_complete
        was_partial, self._is_partial = self._is_partial, is_idle and bool(self.conn.trailing_data[0])
        if self.cycle is None or (was_partial and self._is_partial):
            self.transport.close()
        else:
            self.loop.call_later(HEAD_S, self._see)


class Server:
    """Serves an application from a thread of its own while the ``with`` block runs.

    Raises ProbeError when the address can't be taken.

    Attributes
    ----------
    url : str
        Where it is, with the port that it got.
    guard : Guard
        What stands before the application.
    """

    def __init__(self, app: Application, settings: ServerSettings) -> None:
        self.guard = Guard(app, settings)
        tls = settings.tls() if settings.certificate else None
        family = socket.AF_INET6 if ":" in settings.address else socket.AF_INET
        # With its protocol named: asyncio turns Nagle's algorithm off for such sockets alone, else each answer waits 40 ms.
        self._socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((settings.address, settings.port))
        except OSError as error:
            self._socket.close()
            raise ProbeError(
                f"can't serve on {settings.address}:{settings.port} ({error.strerror or error}): give another port, "
                "0 for a free one, or another address"
            ) from None
        self.port = int(self._socket.getsockname()[1])
        host = f"[{settings.address}]" if ":" in settings.address else settings.address
        self.url = f"{'https' if tls else 'http'}://{host}:{self.port}"
        config = uvicorn.Config(
            self.guard,
            http=_Protocol,
            ws="websockets-sansio",
            ws_max_size=1 << 16,
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # Who asks is known by the connection alone.
            limit_concurrency=CONNECTIONS_MOST,
            timeout_keep_alive=settings.keep_alive_s,
            timeout_graceful_shutdown=int(STOP_S),
            h11_max_incomplete_event_size=1 << 15,
        )
        config.load()
        config.ssl = tls
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="server", daemon=True)

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise ProbeError(f"the server on {self.url} did not start: report this with the command")
            time.sleep(0.005)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(2 * STOP_S)
        self._socket.close()
