# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Filter expressions over every frame, tagged, labelled or broken: what differs from libpcap is what is said to differ."""

import random
from functools import cache

import pytest

from liteprobe.host.capture.decode.unified import unified_headers
from liteprobe.host.capture.filter import libpcap, parse
from liteprobe.host.capture.filter.differences import said
from liteprobe.sim.bench.filter.expressions import EXPRESSIONS, ON_HOST, Frames, RandomExpressions, varied
from liteprobe.sim.bench.frames import stacks

SEED = random.randrange(1000)
DEEP = """
vlan
vlan and tcp
vlan and vlan
vlan 5 or vlan 7
tcp or vlan
vlan or tcp
not (vlan and tcp)
vlan and not vlan and tcp
mpls
not mpls
mpls and ip
mpls and mpls and ip6
mpls 16 or mpls 17
vlan and mpls
ether proto 0x8848
not ether proto 0x88cc
vlan and tcp[13] & 2 = 0
not tcp[0:2] < 1024
""".strip().splitlines()


@cache
def every() -> Frames:
    rng = random.Random(SEED)
    return Frames.of([*stacks.stacks()[::4], *stacks.fuzz(400, SEED), *varied(100, rng)])


def test_what_differs_from_libpcap_is_said() -> None:
    headers = unified_headers(every().packed())
    maker = RandomExpressions(random.Random(SEED), every().keys)
    for text in [*EXPRESSIONS, *ON_HOST, *DEEP, *(maker.expression() for _ in range(30))]:
        expression = parse(text)
        here, there = expression.matches(headers), libpcap.matches(text, every().octets)
        unsaid = here != there
        for one in expression.differences():
            unsaid &= ~one.explains(headers, here, there)
        assert not unsaid.any(), (SEED, text)


CUT = "may differ for frames that are cut, malformed, or of more tags, labels or extension headers than 4, 4, 2"
THROUGH = "frames behind VLAN tags and labels"
EXTENDED = "frames behind extension headers of IPv6"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("tcp", f"also holds for {THROUGH}, {EXTENDED}; {CUT}"),
        ("not udp", f"doesn't hold for {THROUGH}, {EXTENDED}; {CUT}"),
        ("net 10.0.0.0/8", f"also holds for {THROUGH}; doesn't hold for RARP; {CUT}"),
        ("ip host 10.0.0.1", f"also holds for {THROUGH}; {CUT}"),
        ("not arp and ip", f"{CUT.replace('frames that', THROUGH + ', frames that')}"),
        ("ether host 02:00:00:00:00:01", CUT),
        ("vlan", CUT),
        (
            "vlan and arp",
            CUT.replace("frames that", "frames behind other tags or labels than 1 VLAN tags, frames that"),
        ),
    ],
)
def test_differences_are_said_with_their_direction(text: str, line: str) -> None:
    assert said(parse(text).differences()) == f"other than in tcpdump, the filter {line}: --host-filter is exact"
    assert said(parse("").differences()) == said(parse("greater 100").differences()) == ""
