# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Puts the probe into Wireshark's list of interfaces: answers what Wireshark asks of an extcap program, and captures for it.

Source: doc/extcap.adoc and extcap(4) of Wireshark.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from pathlib import Path

from liteprobe.host.base import interrupt
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.output import named
from liteprobe.host.base.probe_url import full_url
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import DEFAULT_PROBE, PROBE_VARIABLE, Parser, add, usual_probe
from liteprobe.host.cli.commands import capture
from liteprobe.host.cli.lazy import lazily

with lazily():
    from liteprobe.host.capture.write import output

HELP = "put the probe into Wireshark's list of interfaces (--install); what else is here, Wireshark asks"
EXAMPLES = """
liteprobe extcap --install --probe 192.168.1.50
liteprobe extcap --uninstall
liteprobe extcap --extcap-interface liteprobe --extcap-config
"""
INTERFACE, NAME = "liteprobe", "liteprobe"
MARK = "# Written by liteprobe extcap --install; liteprobe extcap --uninstall deletes it."
ALL, SNAP_MOST = "all", "65535"  # What fields have that nobody sets.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    group = parser.add_argument_group("for you")
    add(group, "--install", bool, "write a small program into Wireshark's personal folder of extcap programs")
    add(group, "--uninstall", bool, "delete it")
    add(group, "--folder FOLDER", Path, "another folder than the personal ones (Wireshark: Help > About > Folders)")
    add(group, "--probe URL", full_url, f"with --install: what is proposed (default: {PROBE_VARIABLE})")
    group = parser.add_argument_group("what Wireshark asks")
    add(group, "--extcap-interfaces", bool, "which interfaces there are")
    add(group, "--extcap-version VERSION", str, "its own version")
    add(group, "--extcap-interface NAME", str, f"which one it asks about: {INTERFACE}")
    add(group, "--extcap-dlts", bool, "what its frames are")
    add(group, "--extcap-config", bool, "which fields it has")
    add(group, "--extcap-capture-filter EXPR", str, "a filter: is it one? With --capture: capture what passes")
    add(group, "--capture", bool, "capture into --fifo, until it is closed, or until SIGTERM or Ctrl-C")
    add(group, "--fifo FILE", Path, "pipe that takes pcapng")
    group = parser.add_argument_group("fields, as of liteprobe capture")
    add(group, "--port N", str, f"port of the probe, or {ALL}")
    add(group, "--filter EXPR", str, "like tcpdump's")
    add(group, "--snap N", str, "octets of a frame at the most")
    add(group, "--utc", bool, "stamps are UTC, as the probe knows it")
    add(group, "--read FILE", str, "the blocks of a recording, in the place of a probe")


def fields() -> list[str]:
    """Return what Wireshark shows of an interface to be set, a line each."""
    url = usual_probe(DEFAULT_PROBE)
    return [
        f"arg {{number=0}}{{call=--probe}}{{display=Probe}}{{type=string}}{{default={url}}}"
        "{tooltip=Its address, like 192.168.1.50, or its URL}",
        f"arg {{number=1}}{{call=--port}}{{display=Port}}{{type=selector}}{{default={ALL}}}"
        "{tooltip=Port of the probe; the frames name it as their interface}",
        f"value {{arg=1}}{{value={ALL}}}{{display=All}}{{default=true}}",
        *(f"value {{arg=1}}{{value={port}}}{{display=Port {port}}}{{default=false}}" for port in (0, 1)),
        "arg {number=2}{call=--filter}{display=Filter}{type=string}"
        "{tooltip=In the probe, like tcpdump's: udp port 53 and net 10.0.0.0/8}",
        "arg {number=3}{call=--snap}{display=Snap length}{type=integer}{range=0,65535}"
        f"{{default={SNAP_MOST}}}"
        "{tooltip=Octets of a frame at the most}",
        "arg {number=4}{call=--utc}{display=Stamps in UTC}{type=boolflag}{default=false}"
        "{tooltip=TAI - UTC as the probe knows it; else stamps are the probe's own time}",
        "arg {number=5}{call=--read}{display=Recording}{type=fileselect}{mustexist=true}"
        "{tooltip=A file that 'liteprobe capture --blocks' wrote, in the place of a probe}",
    ]


def run(args: argparse.Namespace) -> None:
    """Install, uninstall, or do what Wireshark asks.

    Raises UsageError for what it can't mean; ProbeError where a file of another program is in the way.
    """
    if args.install or args.uninstall:
        _install(args)
    elif args.extcap_interfaces:
        say(f"extcap {{version={_version()}}}{{help=https://www.wireshark.org/docs/man-pages/extcap.html}}")
        say(f"interface {{value={INTERFACE}}}{{display=LiteProbe, a network tester}}")
    elif args.extcap_interface is None:
        raise UsageError("give --install, which puts the probe into Wireshark's list of interfaces, or --uninstall")
    elif args.extcap_interface != INTERFACE:
        raise UsageError(f"there is no interface '{args.extcap_interface}': give --extcap-interface {INTERFACE}")
    elif args.extcap_dlts:
        say("dlt {number=1}{name=EN10MB}{display=Ethernet}")
    elif args.extcap_config:
        say("\n".join(fields()))
    elif args.capture:
        _capture(args)
    elif args.extcap_capture_filter is not None:
        _judge(args)
    else:
        raise UsageError(
            "nothing is asked of the interface: give --extcap-dlts, --extcap-config, or --capture --fifo FILE"
        )


# # #


def _version() -> str:
    from importlib import metadata  # Takes a moment.

    return metadata.version("liteprobe")


def _folders() -> list[Path]:
    """Return where Wireshark looks: before 4.2 beside its configuration, then beside other programs of the user."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return [Path.home() / ".local/lib/wireshark/extcap", settings / "wireshark/extcap"]


def _install(args: argparse.Namespace) -> None:
    """Write the program, or delete it; what another has written is left alone."""
    if args.install and args.uninstall:
        raise UsageError("--install and --uninstall undo one another: give one of them")
    if os.name != "posix":
        raise UsageError(
            "Wireshark's pipes are other ones on this system: capture with 'liteprobe capture -w FILE.pcapng'"
        )
    paths = [folder / NAME for folder in ([args.folder] if args.folder else _folders())]
    for path in paths:
        if path.exists() and MARK.encode() not in path.read_bytes():
            raise ProbeError(f"{path} is not LiteProbe's: move it away, or give another --folder")
    for path in paths:
        with named(path):
            if args.install:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(_program(args.probe), encoding="utf-8")
                path.chmod(0o755)
            else:
                path.unlink(missing_ok=True)
        say(f"{'wrote' if args.install else 'no longer there:'} {path}")
    if args.install:
        say("Wireshark lists 'LiteProbe, a network tester' when it starts; tshark has it as: tshark -i liteprobe")


def _program(probe: str | None) -> str:
    """Return the program that Wireshark starts: this command, by this Python."""
    url = probe or os.environ.get(PROBE_VARIABLE)
    known = f"{PROBE_VARIABLE}={shlex.quote(url)}\nexport {PROBE_VARIABLE}\n" if url else ""
    command = shlex.join([sys.executable, "-P", "-m", "liteprobe.host.cli", "extcap"])
    return f'#!/bin/sh\n{MARK}\n{known}exec {command} "$@"\n'


def _filter(args: argparse.Namespace) -> str | None:
    """Return the filter of the field and that of Wireshark's own line, both of which must hold."""
    given = [one for one in (args.filter, args.extcap_capture_filter) if one and one.strip()]
    return " and ".join(f"({one})" for one in given) if len(given) > 1 else (given or [None])[0]


def _wanted(args: argparse.Namespace, file: str) -> argparse.Namespace:
    """Return the arguments of the capture that the fields ask for; an empty field is none."""
    snap, port = (None if value in (ALL, SNAP_MOST) else value for value in (args.snap, args.port))
    options = {
        "-w": file,
        "--probe": args.probe,
        "--read": args.read,
        "--filter": _filter(args),
        "--snap": snap,
        "--port": port,
    }
    words = [f"{name}={value}" if name != "-w" else f"-w{value}" for name, value in options.items() if value]
    parser = Parser(prog="liteprobe extcap", allow_abbrev=False)
    capture.add_arguments(parser)
    return parser.parse_args([*words, *["--utc"] * args.utc])


def _judge(args: argparse.Namespace) -> None:
    """Print why a filter isn't one; nothing where it is."""
    try:
        capture.request_of(_wanted(args, "-"))
    except UsageError as error:
        say(error)


def _capture(args: argparse.Namespace) -> None:
    """Capture into the pipe. On stderr is only what is missing or wrong: Wireshark shows it as an error."""
    if args.fifo is None:
        raise UsageError("--capture needs a pipe: give --fifo FILE")
    try:
        wanted = _wanted(args, str(args.fifo))
        capture.check(wanted)
        found, failed = capture.captured(wanted, capture.request_of(wanted), None, None)
    except BaseException:
        _let_go(args.fifo)
        raise
    for line in capture.report(wanted, found.counts | {"filtered": 0})[1:]:
        say(line, stream=sys.stderr)
    if failed and not str(failed).startswith(output.GONE):  # It goes when its user stops it.
        raise failed


def _let_go(fifo: Path) -> None:
    """Open the pipe and close it: who reads it waits for a first writer, and else would wait for ever."""
    interrupt.ignore()  # The reader ends this then, and the error is yet to be said.
    with contextlib.suppress(OSError):
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
