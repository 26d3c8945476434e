# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Filter expressions over every frame, tagged, labelled or broken: what differs from libpcap is what is said to differ."""

import random
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.cores.formats import UnifiedFlag
from liteprobe.host.packets.filter import differences, libpcap
from liteprobe.host.packets.filter.differences import said
from liteprobe.host.packets.filter.expression import parse
from liteprobe.host.packets.filter.fit import Filter
from liteprobe.host.packets.filter.nodes import Depth
from liteprobe.host.packets.unified import unified_headers
from liteprobe.sim.drivers.filter import faults
from liteprobe.sim.drivers.filter.expressions import (
    DEEP,
    EXPRESSIONS,
    OCTETS,
    ON_HOST,
    Frames,
    RandomExpressions,
    rare,
    varied,
)
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.models.receive.filter import FilterModel

SEED = random.randrange(1000)
UNPARSED = UnifiedFlag.UNPARSED
MULTICAST = 0x8848


@cache
def every() -> Frames:
    rng = random.Random(SEED)
    return Frames.of([*stacks.stacks()[::4], *stacks.fuzz(400, SEED), *varied(100, rng), *rare(60, rng)])


def on_host(text: str, frames: Frames) -> NDArray[np.bool_]:
    return parse(text).matches(unified_headers(frames.packed()))


def in_tables(wanted: Filter, frames: Frames) -> NDArray[np.bool_]:
    model = FilterModel(wanted.words())
    return np.array([model.decide(key).passed for key in frames.keys])


def test_what_differs_from_libpcap_is_said() -> None:
    headers = unified_headers(every().packed())
    maker = RandomExpressions(random.Random(SEED), every().keys)
    for text in [*EXPRESSIONS, *ON_HOST, *DEEP, *OCTETS, *(maker.expression() for _ in range(30))]:
        expression = parse(text)
        here, there = expression.matches(headers), libpcap.matches(text, every().octets)
        unsaid = here != there
        for one in expression.differences():
            unsaid &= ~one.explains(headers, here, there)
        assert not unsaid.any(), (SEED, text)


@pytest.mark.parametrize(
    ("text", "behind_macs"),
    [
        ("mpls 16 or mpls 17", "0800 45000000 00011100"),
        (
            "mpls 16 or mpls 17",
            "8100d9b0 8800 0001 1c8b7188",
        ),  # A type that is none of labels: found by `./run bench monitor`.
        ("vlan 6 or vlan 7", "0800 4500 8100 0007"),
        ("vlan or vlan", "0800 4500 8100 0007"),
    ],
)
def test_an_inner_one_that_libpcap_sees_where_there_is_none_is_said(text: str, behind_macs: str) -> None:
    frames = Frames.of([bytes.fromhex("024c50000002 0e4c50aabb01" + behind_macs) + bytes(60)])
    headers, expression = unified_headers(frames.packed()), parse(text)
    here, there = expression.matches(headers), libpcap.matches(text, frames.octets)
    assert (here.tolist(), there.tolist()) == ([False], [True])
    assert any(one.explains(headers, here, there).all() for one in expression.differences())


CUT = "may differ for frames that are cut, malformed, or of more tags, labels or extension headers than 4, 4, 2"
CUT_LINK = "may differ for frames that are cut or malformed before layer 3, or of more tags or labels than 4"
THROUGH = "frames behind VLAN tags and labels"
EXTENDED = "frames behind extension headers of IPv6"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("tcp", f"also holds for {THROUGH}, {EXTENDED}; {CUT}"),
        ("not udp", f"doesn't hold for {THROUGH}, {EXTENDED}; {CUT}"),
        ("net 10.0.0.0/8", f"also holds for {THROUGH}; doesn't hold for RARP; {CUT_LINK}"),
        ("ip host 10.0.0.1", f"also holds for {THROUGH}; {CUT_LINK}"),
        ("ip6 host 2001:db8::1 and len > 5", f"also holds for {THROUGH}; {CUT_LINK}"),
        ("icmp[icmptype] = 8", f"also holds for {THROUGH}; {CUT}"),
        ("not arp and ip", f"{CUT_LINK.replace('frames that', THROUGH + ', frames that')}"),
        ("ether host 02:00:00:00:00:01", "may differ for frames of fewer than 14 octets"),
        ("vlan", CUT_LINK),
        (
            "vlan and arp",
            CUT_LINK.replace("frames that", "frames behind other tags or labels than 1 VLAN tags, frames that"),
        ),
    ],
)
def test_differences_are_said_with_their_direction(text: str, line: str) -> None:
    assert said(parse(text).differences()) == f"other than in tcpdump, the filter {line}: --host-filter is exact"
    assert said(parse(text).differences(), is_trigger=True) == f"other than in tcpdump, the trigger {line}"
    assert said(parse("").differences()) == said(parse("greater 100").differences()) == ""


# Tags and labels -----------------------------------------------------------------------------------


def test_filter_sees_through_tags_and_labels() -> None:
    tagged = [number for number, header in enumerate(every().headers) if header.tags and header.protocol == 6]
    assert tagged
    assert on_host("tcp", every())[tagged].all()
    assert not libpcap.matches("tcp", every().octets)[tagged].any()


def test_vlan_is_the_outermost_tag_and_the_next_one_behind_and() -> None:
    headers = every().headers
    ids = [[int.from_bytes(tag[:2]) & 0xFFF for tag in header.tags] for header in headers]
    first, second = next(found[:2] for found in ids if len(found) > 1)
    for text, wanted in [
        ("vlan", [bool(found) for found in ids]),
        (f"vlan {first}", [found[:1] == [first] for found in ids]),
        (f"not vlan {first}", [found[:1] != [first] for found in ids]),
        (f"vlan {first} and vlan {second}", [found[:2] == [first, second] for found in ids]),
        (f"vlan {first} or vlan {second}", [found[:1] in ([first], [second]) for found in ids]),
        (f"vlan and not vlan {second}", [bool(found) and found[1:2] != [second] for found in ids]),
    ]:
        assert on_host(text, every()).tolist() == wanted
    either = f"vlan {first} or vlan {second}"
    assert np.array_equal(in_tables(parse(either).fit(), every()), on_host(either, every()))


def test_mpls_is_the_outermost_label() -> None:
    labels = [int.from_bytes(header.labels[0]) >> 12 if header.labels else None for header in every().headers]
    one = next(label for label in labels if label is not None)
    assert on_host("mpls", every()).tolist() == [label is not None for label in labels]
    assert on_host(f"mpls {one}", every()).tolist() == [label == one for label in labels]


def test_mpls_behind_and_is_the_next_label_as_in_libpcap() -> None:
    stacks_ = [[int.from_bytes(label) >> 12 for label in header.labels] for header in every().headers]
    first, second = next(found[:2] for found in stacks_ if len(found) > 1)
    headers = every().headers  # MPLS multicast has a test of its own.
    untagged = [
        n for n, one in enumerate(headers) if not (one.tags or one.flags & UNPARSED or one.ethertype == MULTICAST)
    ]
    for text, wanted in [
        ("mpls and mpls", [len(found) > 1 for found in stacks_]),
        (f"mpls {first} and mpls {second}", [found[:2] == [first, second] for found in stacks_]),
        ("mpls and mpls and mpls and mpls and mpls", [False] * len(stacks_)),
    ]:
        assert on_host(text, every()).tolist() == wanted
        assert np.array_equal(on_host(text, every())[untagged], libpcap.matches(text, every().octets)[untagged])


def test_type_of_a_tag_is_that_of_the_outermost_as_in_libpcap() -> None:
    whole = [number for number, frame in enumerate(every().octets) if len(frame) >= 14]
    for text in ("ether proto 0x8100", "ether proto 0x88a8", "not ether[12:2] = 0x9100"):
        found = on_host(text, every())[whole]
        assert np.array_equal(found, libpcap.matches(text, every().octets)[whole]) and found.any()


# Frames that the corpora don't have, and frames that are broken -----------------------------------------


def test_rarp_and_mpls_multicast_occur_and_are_what_is_said_of_them() -> None:
    types = [header.ethertype for header in every().headers]
    assert types.count(0x8035) > 9 and types.count(MULTICAST) > 9
    for text, kind, number in (("host 192.0.2.1", "RARP", 0x8035), ("mpls", "MPLS multicast", MULTICAST)):
        differs = on_host(text, every()) != libpcap.matches(text, every().octets)
        of_kind = np.array(types) == number
        assert differs[of_kind].any() and kind in said(parse(text).differences())


def test_what_a_broken_frame_excuses_is_broken_by_a_check_that_is_written_apart() -> None:
    headers = unified_headers(every().packed())
    broken = np.array([faults.fault(frame) != "" for frame in every().octets])
    assert 0.05 < broken.mean() < 0.9
    flagged = np.array([bool(header.flags & UNPARSED) for header in every().headers])
    assert np.array_equal(broken, flagged), SEED
    # What an expression doesn't look at excuses nothing.
    deep = differences.wrong(headers, Depth.TRANSPORT) & ~differences.wrong(headers, Depth.LINK)
    assert deep.any() and not parse("ip").differences()[-1].where(headers)[deep].any()
