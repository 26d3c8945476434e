# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The server that all others stand on, at its socket: what is refused before an application runs, and that others are served."""

import http.client
import json
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.serve import server as served
from liteprobe.host.serve.server import (
    HEADERS,
    Receive,
    RequestRates,
    Scope,
    Send,
    Server,
    ServerSettings,
    token_of,
    validity,
)
from liteprobe.sim.drivers.tools.processes import LIMIT_S

TOKEN = "a-token-of-26-characters-x"
OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(
    OPENSSL is None, reason="no openssl is here to make certificates: apt install openssl"
)


class Echo:
    """Answers with what it was sent, and notes it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", scope["type"] == "http"
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})


Answer = tuple[int, dict[str, str], bytes]


def ask(port: int, path: str = "/", body: Any = None, method: str = "", **headers: str) -> Answer:
    """Return status, headers and body of the answer to a request with these headers alone."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    link.request(method or ("GET" if body is None else "POST"), path, body, given)
    answer = link.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    link.close()
    return found


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def port(echo: Echo) -> Iterator[int]:
    settings = ServerSettings(
        token=TOKEN, is_open=lambda path: path == "/open", bodies={"/large": 1 << 24}, names=("probe.lab",)
    )
    with Server(echo, settings) as server:
        yield server.port


BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("headers", "status", "words"),
    [
        (BEARER, 200, ""),
        (BEARER | {"Host": "PROBE.lab:99"}, 200, ""),
        (BEARER | {"Host": "[::1]"}, 200, ""),
        (BEARER | {"Host": "192.168.1.7:8080"}, 200, ""),
        (BEARER | {"Host": "rebound.example"}, 421, "this server is not 'rebound.example'"),
        (BEARER | {"Host": "127.0.0.1.rebound.example"}, 421, "--name NAME"),
        (BEARER | {"Host": "[::1"}, 421, "this server is not"),
        (BEARER | {"Host": "probe.lab", "Origin": "http://probe.lab"}, 200, ""),
        (BEARER | {"Host": "probe.lab", "Origin": "https://probe.lab"}, 403, "a page of 'https://probe.lab'"),
        (BEARER | {"Host": "probe.lab", "Origin": "http://probe.lab.example"}, 403, "may not use this server"),
        (BEARER | {"Origin": "null"}, 403, "a page of 'null'"),
        (BEARER | {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403, "another site"),
        (BEARER | {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200, ""),
        ({}, 401, "asks for its token"),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401, "not the token"),
        ({"Authorization": "Bearer ä"}, 401, "not the token"),
        ({"Authorization": f"Basic {TOKEN}"}, 401, "asks for its token"),
        ({"Sec-WebSocket-Protocol": f"liteprobe, bearer.{TOKEN}"}, 200, ""),
    ],
)
def test_who_is_served(port: int, echo: Echo, headers: Mapping[str, str], status: int, words: str) -> None:
    found = ask(port, **headers)
    assert (found[0], words in found[2].decode(), len(echo.bodies)) == (status, True, int(status == 200))
    assert HEADERS.items() <= found[1].items() and "server" not in found[1] and "set-cookie" not in found[1]


def test_what_is_open_needs_no_token(port: int) -> None:
    assert (ask(port, "/open")[0], ask(port, "/opened")[0]) == (200, 401)


def test_a_body_has_a_limit_however_its_length_is_said(port: int, echo: Echo) -> None:
    limit = served.BODY_MOST
    assert ask(port, "/", b"x" * limit, **BEARER)[0] == 200
    # Only announced: it is refused before a gigabyte is sent.
    assert ask(port, "/", b"", **BEARER | {"Content-Length": str(10**9)})[0] == 413
    assert ask(port, "/", b"", **BEARER | {"Content-Length": "1" * 18})[0] == 413
    parts = (b"x" * 65536 for _ in range(2 + limit // 65536))
    try:
        status = ask(port, "/", parts, "POST", **BEARER)[0]
    except OSError:  # It was cut off while it was sent.
        status = 413
    assert status == 413
    assert ask(port, "/large", b"x" * (limit + 1), **BEARER)[0] == 200
    assert [len(body) for body in echo.bodies] == [limit, limit + 1]


def test_garbage_ends_its_own_connection_alone(port: int) -> None:
    for octets in (
        b"\x16\x03\x01\x02\x00\x01" * 9,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"A" * 70000,
    ):
        with socket.create_connection(("127.0.0.1", port), 10) as link:
            link.sendall(octets)
            link.shutdown(socket.SHUT_WR)
            try:
                said = link.recv(100)
            except ConnectionError:
                said = b""
            assert said[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 421")
    assert ask(port, **BEARER)[0] == 200


def test_slow_requests_are_ended_and_others_served_meanwhile(
    monkeypatch: pytest.MonkeyPatch, port: int, echo: Echo
) -> None:
    monkeypatch.setattr(served, "HEAD_S", 0.2)
    head = (
        f"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\n12".encode()
    )
    links = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(3)]
    for link, octets in zip(links, (b"", b"GET / HT", head), strict=True):
        link.sendall(octets)
    assert ask(port, **BEARER)[0] == 200
    assert [link.recv(12) for link in links] == [b"", b"", b"HTTP/1.1 408"]
    for link in links:
        link.close()
    assert echo.bodies == [b""]


def test_a_connection_lives_on_between_requests_but_not_with_half_of_one(
    monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    monkeypatch.setattr(served, "HEAD_S", 0.1)
    whole = f"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", port), 10) as link:
        for _ in range(3):
            link.sendall(whole)
            said = b""
            while not said.endswith(b"0\r\n\r\n"):  # The last of its chunks.
                said += (more := link.recv(4096))
                assert more, "the connection has ended"
            assert said[:12] == b"HTTP/1.1 200"
            time.sleep(0.35)
        link.sendall(b"GET / HT")
        while link.recv(4096):
            pass


def test_rates_are_of_each_address_and_wrong_tokens_count_more(echo: Echo) -> None:
    now = [0.0]
    rates = RequestRates(10, 20, lambda: now[0])
    assert [rates.take("a") for _ in range(21)] == [0.0] * 20 + [pytest.approx(0.1)]
    assert rates.take("b") == 0.0
    now[0] = 0.11
    assert (rates.take("a"), rates.take("a") > 0) == (0.0, True)
    with Server(echo, ServerSettings(token=TOKEN, rate=1, burst=50)) as server:
        wrong = [ask(server.port, Authorization="Bearer not-this-one")[0] for _ in range(4)]
        assert wrong == [401, 401, 401, 429]
        assert (
            ask(server.port, **BEARER)[0] == 429
        )  # By this address alone the right one can't be guessed quickly, either.
        assert server.guard.refused == {401: 3, 429: 2}


def test_the_network_is_served_with_a_token_and_a_certificate_alone() -> None:
    with pytest.raises(UsageError, match=r"0.0.0.0 is open to the network, so it takes --token FILE and --tls CERT"):
        ServerSettings("0.0.0.0")
    with pytest.raises(UsageError, match=r"takes --tls CERTIFICATE.pem KEY.pem: give that"):
        ServerSettings("10.0.0.5", token=TOKEN)
    with pytest.raises(UsageError, match="the token has 5 characters: give 16 or more"):
        ServerSettings(token="short")
    assert ServerSettings("::1").token is None and ServerSettings("127.9.9.9")
    with (
        Server(Echo(), ServerSettings()) as one,
        pytest.raises(ProbeError, match=f"can't serve on 127.0.0.1:{one.port}"),
    ):
        Server(Echo(), ServerSettings(port=one.port))


def test_a_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    made = token_of(path)
    assert len(made) == 32 and token_of(path) == made and path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="the token's file"):
        token_of(tmp_path / "none" / "token")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of localhost that is valid for a day, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    made = folder / "made.pem", folder / "key.pem"
    command = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost -out {made[0]}"
    subprocess.run(
        [*command.split(), "-keyout", made[1], "-addext", "subjectAltName=DNS:localhost"],
        check=True,
        capture_output=True,
    )
    return made


@needs_openssl
def test_tls_is_served_and_plain_text_is_not(certificate: tuple[Path, Path], echo: Echo) -> None:
    with Server(echo, ServerSettings(certificate=certificate[0], key=certificate[1])) as server:
        assert server.url.startswith("https://")
        context = ssl.create_default_context(cafile=certificate[0])
        link = http.client.HTTPSConnection("localhost", server.port, timeout=LIMIT_S, context=context)
        link.request("GET", "/")
        assert link.getresponse().status == 200
        link.close()
        with pytest.raises((http.client.HTTPException, OSError)):
            ask(server.port)
    assert len(echo.bodies) == 1


@needs_openssl
def test_an_expired_certificate_is_named(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    printed = subprocess.run(
        ["openssl", "x509", "-noout", "-dates", "-in", certificate[0]], check=True, capture_output=True, text=True
    ).stdout
    dates = [datetime.strptime(line.partition("=")[2], "%b %d %H:%M:%S %Y GMT") for line in printed.splitlines()]
    assert validity(certificate[0].read_text()) == tuple(date.replace(tzinfo=UTC) for date in dates)
    for year, words in ((2099, "expired on"), (2001, "is valid from .* on: see to the time of this host")):

        class Then(datetime):
            @classmethod
            def now(cls, tz: Any = None, year: int = year) -> "Then":
                return cls(year, 1, 1, tzinfo=tz)

        monkeypatch.setattr(served, "datetime", Then)
        with pytest.raises(UsageError, match=words):
            ServerSettings(certificate=certificate[0], key=certificate[1])
    monkeypatch.undo()
    for first, second in (
        (tmp_path / "none.pem", certificate[1]),
        (certificate[1], certificate[1]),
        (certificate[0], None),
    ):
        with pytest.raises(UsageError, match="can't be used"):
            ServerSettings(certificate=first, key=second)


def test_answers_are_of_json(port: int) -> None:
    assert json.loads(ask(port)[2]).keys() == {"error"}


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_head(echo: Echo) -> None:
    """Head and body are two segments: by Nagle's algorithm the second waits 40 ms, until the client's delayed ACK."""
    spans = []
    with Server(echo, ServerSettings()) as server:
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT_S)
        for _ in range(60):
            start_s = time.perf_counter()
            link.request("POST", "/", b"{}")
            link.getresponse().read()
            spans.append(time.perf_counter() - start_s)
        link.close()
    assert min(spans[20:]) < 0.03, spans  # At first the client acknowledges at once.
