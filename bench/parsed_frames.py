# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends frames of captures, or any, through a parser of the gateware; holds the headers against the model's and tshark's."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from liteprobe.cores.formats import UNIFIED_OCTETS
from liteprobe.sim.drivers.frames import corpora, tshark
from liteprobe.sim.drivers.receive.unified import UnifiedRun, differing
from liteprobe.sim.drivers.tools.figures import Figure, note

Parser = Callable[[Sequence[bytes]], UnifiedRun]  # At line rate.


@cache
def captured() -> tuple[bytes, ...]:
    """Return every Ethernet frame of the captures."""
    return tuple(
        octets
        for path in corpora.captures()
        for link, _, octets in corpora.packets(path)
        if link == corpora.LINK_ETHERNET
    )


def off_model(name: str, frames: Sequence[bytes], parser: Parser) -> tuple[bytes, Iterator[Figure]]:
    """Send frames through a parser; return its headers, and how many are not the model's."""
    done = parser(frames)
    wrong = differing(frames, done.octets)
    for number in wrong[:3]:
        note(f"{name} {number}: {frames[number][:100].hex()}")
    figures = [
        Figure(f"gateware_off_model_{name}", len(wrong), "headers", 0),
        Figure(f"gateware_lost_{name}", done.lost, "headers", 0),
        Figure(f"gateware_frames_{name}", len(done.octets) / UNIFIED_OCTETS, "headers", len(frames), is_least=True),
    ]
    return done.octets, iter(figures)


def parsed(name: str, sent: Sequence[bytes], parser: Parser) -> Iterator[Figure]:
    """Send frames through a parser; compare its headers with the model's and with tshark."""
    octets, figures = off_model(name, sent, parser)
    yield from figures
    result = tshark.compare(sent, octets)
    for found in result.found[:3]:
        note(f"{name}: {found}")
    yield Figure(f"tshark_disagreements_{name}", len(result.found), "frames", 0)
    yield Figure(f"tshark_compared_{name}", result.compared, "frames", len(sent) - result.skipped, is_least=True)
    for cause, count in sorted(result.causes.items()):
        note(f"{name}: {count} frames compared in part: {cause}")
    yield Figure(f"tshark_no_ethernet_{name}", result.skipped, "frames", len(sent) // 10_000)
