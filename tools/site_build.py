# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the site in build/site, says where it is, and serves it if asked: ``./run docs [--serve [PORT]]``."""

import argparse
import functools
import http.server
import sys
from pathlib import Path

import site_check

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"
LOCAL = "127.0.0.1"
PORTS = range(8000, 8100)  # The first that is free.


class Pages(http.server.SimpleHTTPRequestHandler):
    """Hands out files of the site; says nothing of those that are there."""

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Leave the terminal to the address; errors are still logged."""


def server(ports: range, site: Path = SITE) -> http.server.ThreadingHTTPServer:
    """Return a server of the site for this machine alone, at the first of these ports that is free.

    Raises
    ------
    OSError
        If all of them are taken.
    """
    http.server.ThreadingHTTPServer.allow_reuse_address = sys.platform != "win32"
    for port in ports:
        try:
            return http.server.ThreadingHTTPServer((LOCAL, port), functools.partial(Pages, directory=str(site)))
        except OSError as error:
            reason = error
    raise OSError(
        f"ports {ports.start} to {ports.stop - 1} of {LOCAL} can't be used: {reason}; name another: --serve PORT"
    )


def main(arguments: list[str] | None = None) -> int:
    """Build the site and print its address; return an exit code."""
    parser = argparse.ArgumentParser(prog="./run docs", description="Build these pages as a site in build/site.")
    parser.add_argument(
        "--serve", nargs="?", type=int, const=0, metavar="PORT", help="serve it to this machine's browsers until Ctrl-C"
    )
    asked = parser.parse_args(arguments)
    if faults := site_check.build(SITE):
        print(*faults, sep="\n", file=sys.stderr)
        return 1
    print(f"the site is built; open it in a browser: {(SITE / 'index.html').as_uri()}")
    if asked.serve is None:
        return 0
    try:
        with server(range(asked.serve, asked.serve + 1) if asked.serve else PORTS) as pages:
            print(f"and served, until Ctrl-C: http://{LOCAL}:{pages.server_port}/", flush=True)
            pages.serve_forever()
    except OSError as error:
        print(f"./run docs: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
