# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Stops what a probe sends, whoever started it."""

from __future__ import annotations

import argparse

from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_probe, open_probe
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import wholes

with lazily():
    from liteprobe.cores import formats
    from liteprobe.host.run import streams as runs

HELP = "stop what a probe sends"
EXAMPLES = """
liteprobe stop --probe 192.168.1.50
liteprobe stop --probe 192.168.1.50 --port 0
liteprobe stop --probe 192.168.1.50 --port 0,1 --steal
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    add(parser, "--port PORT[,PORT...]", wholes, "the ports to stop (default: all)")


def run(args: argparse.Namespace) -> None:
    """Stop a port, or all."""
    with open_probe(args) as probe:
        probe.need(formats.Part.GENERATE)
        running = (
            [stream for stream in probe.traffic() if stream.is_active] if formats.Part.STREAMS in probe.parts else []
        )
        for port in range(probe.port_count) if args.port is None else args.port:
            has_sent = probe.stop(port)
            is_back = probe.links.restore(port)
            said = "stopped" if has_sent else "nothing was sent"
            say(f"port {port}: {said}{', its link was down by a network, and comes up again' * is_back}")
            for stream in running:
                if stream.port == port and has_sent:
                    say(f"  {_words(stream)}")


def _words(stream: runs.RunningStream) -> str:
    """Return what a stream was, which another host may have named."""
    name = "without a probe header" if stream.stream_id is None else f"of id {stream.stream_id}"
    end = "without an end" if stream.is_endless else "with frames left"
    return f"stream {stream.number}, {name}, {end}: {stream.sent:,} frames were sent"
