# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Serves a probe as an Open Traffic Generator, for clients like snappi and gosnappi."""

from __future__ import annotations

import argparse
import time
from fractions import Fraction
from functools import partial
from pathlib import Path

from liteprobe.host.base import folders
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_probe, open_probe
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, whole

with lazily():
    from liteprobe.host.otg import flows, server, session

HELP = "serve a probe to clients of Open Traffic Generator (snappi, gosnappi)"
EXAMPLES = """
liteprobe otg
liteprobe otg --probe 192.168.1.50 --address 192.168.1.2 --tls server.pem key.pem
liteprobe otg --time-scale 1000 --location veth1=0 --location veth2=1
"""
DEFAULT_PROBE = "sim://cable?preset=tester"
HTTPS_PORT, GRPC_PORT = 8443, 40051  # As of ixia-c.
LOOK_S = 0.2
MEGA = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser, DEFAULT_PROBE)
    group = parser.add_argument_group("server")
    add(group, "--address ADDRESS", str, "where it listens (default: 127.0.0.1, for this host alone)", "127.0.0.1")
    add(group, "--https-port PORT", whole, f"of HTTPS (default: {HTTPS_PORT}; 0: a free one)", HTTPS_PORT)
    add(group, "--grpc-port PORT", whole, f"of gRPC (default: {GRPC_PORT}; 0: a free one)", GRPC_PORT)
    add(group, "--tls", Path, "certificate and key, PEM (default: made on the first start)", nargs=2)
    add(group, "--insecure-http", bool, "HTTP in the place of HTTPS, for this host alone")
    group = parser.add_argument_group("clients")
    add(
        group,
        "--location NAME=PORT",
        _location,
        "another name of a port of the probe (again for more)",
        [],
        action="append",
    )
    add(group, "--time-scale N", _scale, "a second of the client is 1/N s of the probe (default: 1)", Fraction(1))
    add(group, "--replace", bool, "a new configuration stops flows that transmit (default: it is refused)")
    add(
        group,
        "--idle TIME",
        duration_ns,
        "stop flows without an end after so long without a request (default: 1h)",
        3600e9,
    )
    add(group, "--capture-limit MIB", whole, "of each port, on disk (default: 1024)", 1024)


def _location(text: str) -> tuple[str, int]:
    name, mark, port = text.rpartition("=")
    if not mark or not name:
        raise argparse.ArgumentTypeError(f"'{text}' is not a location: write it like veth1=0")
    return name, whole(port)


def _scale(text: str) -> Fraction:
    try:
        found = Fraction(text)
    except (ValueError, ZeroDivisionError):
        found = Fraction(0)
    if not 0 < found <= 10**9:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time scale: give a number above 0, like 1000")
    return found


def run(args: argparse.Namespace) -> None:
    """Serve until Ctrl-C."""
    pair = tuple(args.tls) if args.tls else None
    if args.insecure_http:
        if pair:
            raise UsageError("--insecure-http does without a certificate: leave out one of it and --tls")
        if args.address != "127.0.0.1":
            raise UsageError(f"--insecure-http serves this host alone, not {args.address}: give --tls in its place")
    elif pair is None and args.address == "127.0.0.1":
        folder = folders.build_folder() / "otg"
        is_new = not (folder / server.NAMES[0]).exists()
        pair = server.own_certificate(folder, args.address)
        say(f"{'made a' if is_new else 'the'} certificate: {pair[0]}. It is self-signed: set clients to accept it")
    chosen = session.SessionSettings(
        flows.TimeScale(args.time_scale), args.replace, args.idle / 1e9, args.capture_limit * MEGA
    )
    https = server.http_settings(args.address, args.https_port, pair)
    grpc = server.http_settings(args.address, args.grpc_port, pair)
    settings = server.OtgSettings(https, grpc, chosen, dict(args.location))
    with server.serving(partial(open_probe, args), settings) as found:
        say(f"Open Traffic Generator: {found.url}, gRPC {args.address}:{found.grpc_port}; Ctrl-C ends it")
        if args.time_scale != 1:
            say(
                f"time scale {float(args.time_scale):g}: a second of a client is {1 / float(args.time_scale):g} s of the probe"
            )
        while True:
            time.sleep(LOOK_S)
