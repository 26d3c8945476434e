# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Serves a probe as an Open Traffic Generator, over HTTPS and gRPC.

Stands alone: tests and benches serve a simulated probe by it, without the command.
"""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.otg.api import OtgApi
from liteprobe.host.otg.config import OtgPorts
from liteprobe.host.otg.rest import CONFIG_MOST, application
from liteprobe.host.otg.rpc import GrpcServer
from liteprobe.host.otg.session import Session, SessionSettings
from liteprobe.host.probe import Probe
from liteprobe.host.serve.server import Server, ServerSettings, validity
from liteprobe.host.serve.worker import ProbeWorker

DAYS = 365  # Of a certificate that is made here.
REQUESTS = 1000.0  # A second, of one address: clients of tests poll.
KEEP_S = 300  # Clients keep one connection, and take its end for an error.
NAMES = ("certificate.pem", "key.pem")


@dataclass(frozen=True)
class OtgSettings:
    """Says where an Open Traffic Generator is served, and how."""

    https: ServerSettings
    grpc: ServerSettings | None  # None: it is not served.
    session: SessionSettings = field(default_factory=SessionSettings)
    locations: Mapping[str, int] = field(default_factory=dict)  # Further names of ports.


@dataclass(frozen=True)
class OtgServer:
    """An Open Traffic Generator that is served."""

    worker: ProbeWorker
    session: Session
    url: str
    grpc_port: int | None


@contextmanager
def serving(open_probe: Callable[[], Probe], settings: OtgSettings) -> Iterator[OtgServer]:
    """Serve a probe while the body runs; what it sends for clients ends with it.

    Raises ProbeError when the probe can't be reached, UsageError when a port is taken.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="liteprobe-otg-")))
        worker = stack.enter_context(ProbeWorker(open_probe))
        facts = _opened(worker)
        ports = OtgPorts(len(facts["ports"]), settings.locations, str(facts["url"]))
        session = Session(worker, ports, folder, settings.session)
        api = OtgApi(worker, session, settings.session.scale)
        server = stack.enter_context(Server(application(api), settings.https))
        grpc = stack.enter_context(GrpcServer(api, settings.grpc)) if settings.grpc else None
        yield OtgServer(worker, session, server.url, grpc.port if grpc else None)


def _opened(worker: ProbeWorker) -> dict[str, list[object]]:
    """Return the status of the probe when it is there: a simulated one may be built first, for minutes."""
    while (found := worker.status())["state"] == "opening":
        time.sleep(0.02)
    if found["state"] != "here":
        raise ProbeError(str(found["error"]))
    return found


def http_settings(address: str, port: int, pair: tuple[Path, Path] | None) -> ServerSettings:
    """Return where HTTP is served; ``pair``: certificate and key, None: without TLS."""
    certificate, key = pair or (None, None)
    return ServerSettings(
        address,
        port,
        certificate=certificate,
        key=key,
        bodies={"/config": CONFIG_MOST},
        rate=REQUESTS,
        burst=int(4 * REQUESTS),
        keep_alive_s=KEEP_S,
        needs_token=False,
    )


def own_certificate(folder: Path, address: str) -> tuple[Path, Path]:
    """Return a certificate of this host and its key, which are made where there are none that are valid.

    It is self-signed: clients must be set to accept it.

    Raises UsageError where there is no openssl to make it with, or the folder can't be written to.
    """
    certificate, key = (folder / name for name in NAMES)
    if key.exists() and certificate.exists() and _is_valid(certificate):
        return certificate, key
    if shutil.which("openssl") is None:
        raise UsageError(
            "there is no openssl here to make a certificate with: give one (--tls CERTIFICATE.pem KEY.pem), or --insecure-http"
        )
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1" + (f",IP:{address}" if address != "127.0.0.1" else "")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", str(DAYS), "-subj", "/CN=liteprobe otg", "-addext", names]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = subprocess.run(
            [*command, "-keyout", str(key), "-out", str(certificate)], capture_output=True, text=True, check=False
        )
        key.chmod(0o600)
    except OSError as error:
        raise UsageError(f"a certificate can't be written to {folder} ({error.strerror}): give one (--tls)") from None
    if made.returncode:
        raise UsageError(f"openssl can't make a certificate ({made.stderr.strip()[-200:]}): give one (--tls)")
    return certificate, key


def _is_valid(certificate: Path) -> bool:
    with suppress(OSError, ValueError, IndexError):
        return validity(certificate.read_text())[1] > datetime.now(UTC)
    return False
