# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Serves a probe as a page in the browser, by REST and by WebSocket, until Ctrl-C."""

from __future__ import annotations

import argparse
import threading
from pathlib import Path

from liteprobe.host.base.interrupt import is_ctrl_c
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_probe, open_probe
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import whole

with lazily():
    from liteprobe.host.base import folders
    from liteprobe.host.serve import app as apps
    from liteprobe.host.serve import server as servers

HELP = "serve a probe as a page in the browser: shows what happens, starts and stops"
EXAMPLES = """
liteprobe serve --probe 'sim://loopback?preset=tester'
liteprobe serve --probe etherbone://192.168.1.50 --port 8080
liteprobe serve --probe 192.168.1.50 --address 10.0.0.5 --token serve.token --tls cert.pem key.pem
"""
PORT = 8080


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    group = parser.add_argument_group("server")
    add(
        group,
        "--address ADDRESS",
        str,
        "where it listens (default: 127.0.0.1, this host alone); another one takes --token and --tls",
    )
    add(group, "--port PORT", whole, f"TCP port; 0: a free one (default: {PORT})", PORT)
    add(group, "--token FILE", Path, "clients must have the token in it; made where there is no such file")
    add(group, "--tls FILE", Path, "certificate, with its chain, and key, PEM", nargs=2, metavar=("CERT", "KEY"))
    add(group, "--name NAME", str, "a name by which browsers reach it (again for more)", [], action="append")
    add(group, "--folder FOLDER", Path, "where results are kept (default: in the build folder)")
    add_probe(parser)


def run(args: argparse.Namespace) -> None:
    """Serve until a signal ends it; Ctrl-C is the end that is meant."""
    certificate, key = args.tls or (None, None)
    settings = servers.ServerSettings(
        address=args.address or servers.LOCAL,
        port=args.port,
        token=servers.token_of(args.token) if args.token else None,
        certificate=certificate,
        key=key,
        names=tuple(args.name),
        bodies=apps.BODIES,
        is_open=apps.is_open,
    )
    folder = args.folder or folders.build_folder() / "serve"
    try:
        with (
            apps.App(args.probe, lambda: open_probe(args), folder) as app,
            servers.Server(app.asgi, settings) as server,
        ):
            say(f"serving {args.probe} on {server.url}; Ctrl-C ends it", flush=True)
            if settings.token:
                say(f"with its token in the address: {server.url}/#token={settings.token}", flush=True)
            threading.Event().wait()
    except KeyboardInterrupt as end:
        if not is_ctrl_c(end):
            raise
