# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Unified headers: the model against tshark, its limits, frames that end anywhere; what the host reads in them."""

import numpy as np
import pytest

from liteprobe.cores.formats import EXTENSION, UNIFIED_DTYPE, UNIFIED_OCTETS, Layer3, UnifiedFlag
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.packets import unified as host
from liteprobe.sim.drivers.frames import stacks, tshark
from liteprobe.sim.models.receive.unified import UnifiedHeader, unified_header
from liteprobe.sim.models.traffic.trains import ProbeFrame

MACS = bytes.fromhex("024c50000002024c50000001")
IPV4 = bytes.fromhex("4500002800070000400600000a0000010a000002")
IPV6_UDP = bytes.fromhex("6000000000081140") + bytes(15) + b"\x01" + bytes(15) + b"\x02"
PORTS = bytes.fromhex("1234567800080000")

CUT = UnifiedFlag.TRUNCATED | UnifiedFlag.UNPARSED
RUNT = UnifiedFlag.RUNT


def flags(frame: bytes) -> UnifiedFlag:
    return unified_header(frame).flags & ~RUNT


def test_dtype_is_32_words() -> None:
    assert UNIFIED_DTYPE.itemsize == UNIFIED_OCTETS == 128


def test_tshark_reads_the_same_in_every_stack() -> None:
    frames = stacks.stacks()
    result = tshark.compare(frames, b"".join(unified_header(frame).octets() for frame in frames))
    assert result.found == []
    assert result.compared == len(frames) == 906


def test_tshark_reads_the_same_in_broken_frames_but_for_causes_that_are_counted() -> None:
    frames = list(stacks.fuzz(3000, seed=20))
    result = tshark.compare(frames, b"".join(unified_header(frame).octets() for frame in frames))
    assert result.found == []
    assert result.compared == len(frames) and 0 < result.causes.total() < len(frames) // 20


@pytest.mark.parametrize(
    ("octet", "bits"), [(4 * 24, 1), (12, 2), (12, 4), (12, 8), (12, 64), (13, 1), (13, 8), (20, 1), (20, 4), (35, 1)],
    ids=[
        "port", "length_error", "runt", "giant", "fragment", "first_fragment", "probe", "first_kind", "second_kind",
        "type_behind_tag",
    ],
)  # fmt: skip
def test_field_that_is_changed_disagrees_with_tshark(octet: int, bits: int) -> None:
    probe = ProbeFrame(60).octets(5, 6)
    frame = probe[:12] + bytes.fromhex("88a8000781000008") + probe[12:]
    octets = bytearray(unified_header(frame).octets())
    assert tshark.compare([frame], bytes(octets)).found == []
    octets[octet] ^= bits
    assert len(tshark.compare([frame], bytes(octets)).found) == 1


def test_sctp_and_icmp_are_truncated_until_their_header_is_whole() -> None:
    """12 octets (RFC 9260, 3.1), 8 (RFC 792), 4 (RFC 4443); ports, type and code are taken once they are there."""
    for protocol, whole in ((132, 12), (1, 8), (58, 4), (17, 8), (6, 16)):
        for count in range(25):
            ip = IPV4[:3] + bytes([20 + count]) + IPV4[4:9] + bytes([protocol]) + IPV4[10:]
            payload = bytes([0, 5, 0, 6, *bytes(8), 0x50, *bytes(20)])[:count]
            found = flags((MACS + b"\x08\x00" + ip + payload).ljust(60, b"\0"))
            assert (UnifiedFlag.TRANSPORT in found) == (count >= 4), (protocol, count)
            assert found & CUT == (UnifiedFlag.NONE if count >= whole else CUT), (protocol, count)


@pytest.mark.parametrize("kind", ["8100", "88a8", "9100"])
def test_fifth_tag_ends_the_walk(kind: str) -> None:
    tag = bytes.fromhex(kind) + b"\x00\x07"
    four, five = (unified_header(MACS + tag * count + b"\x08\x00" + IPV4 + bytes(20)) for count in (4, 5))
    assert (four.layer3, len(four.tags), four.ethertype) == (Layer3.IPV4, 4, 0x0800)
    assert (five.layer3, len(five.tags), five.ethertype) == (Layer3.NONE, 4, int(kind, 16))
    assert five.flags == UnifiedFlag.UNPARSED


def test_fifth_label_ends_the_walk() -> None:
    label, bottom = bytes.fromhex("00010040"), bytes.fromhex("00010140")
    four, five = (
        unified_header(MACS + b"\x88\x47" + label * (count - 1) + bottom + IPV4 + bytes(20)) for count in (4, 5)
    )
    assert (four.layer3, len(four.labels)) == (Layer3.IPV4, 4)
    assert (five.layer3, len(five.labels), five.flags) == (Layer3.NONE, 4, UnifiedFlag.UNPARSED)


def test_third_extension_header_ends_the_walk() -> None:
    option = bytes([60, 0, 1, 4, 0, 0, 0, 0])
    last = b"\x11" + option[1:]
    frames = []
    for count in (2, 3):
        chain = option * (count - 1) + last
        ip = bytes.fromhex("60000000") + (len(chain) + 8).to_bytes(2) + b"\x3c\x40" + IPV6_UDP[8:]
        frames.append(MACS + b"\x86\xdd" + ip + chain + PORTS)
    two, three = map(unified_header, frames)
    assert (two.extensions, two.protocol, two.flags) == ([EXTENSION | 60] * 2, 17, UnifiedFlag.TRANSPORT)
    assert (three.extensions, three.protocol, three.flags) == ([EXTENSION | 60] * 2, 60, UnifiedFlag.UNPARSED)
    assert three.ports == bytes(4)


@pytest.mark.parametrize("octet", ["55", "44", "65", "05"])
def test_ip_of_another_version_or_without_a_header_is_not_parsed(octet: str) -> None:
    frame = MACS + b"\x08\x00" + bytes.fromhex(octet) + IPV4[1:] + bytes(20)
    assert unified_header(frame).layer3 == Layer3.NONE
    assert flags(frame) == UnifiedFlag.UNPARSED


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        (0, UnifiedFlag.TRANSPORT | UnifiedFlag.TCP | UnifiedFlag.LENGTH_ERROR),  # By the frame.
        (19, UnifiedFlag.UNPARSED | UnifiedFlag.LENGTH_ERROR),
        (20, CUT),
        (23, CUT),
        (24, CUT | UnifiedFlag.TRANSPORT),
        (35, CUT | UnifiedFlag.TRANSPORT),
        (36, UnifiedFlag.TRANSPORT | UnifiedFlag.TCP),
        (50, UnifiedFlag.TRANSPORT | UnifiedFlag.TCP),
        (51, UnifiedFlag.TRANSPORT | UnifiedFlag.TCP | UnifiedFlag.LENGTH_ERROR),
        (65535, UnifiedFlag.TRANSPORT | UnifiedFlag.TCP | UnifiedFlag.LENGTH_ERROR),
    ],
)
def test_ports_lie_within_the_length_that_ip_says(total: int, expected: UnifiedFlag) -> None:
    ip = IPV4[:2] + total.to_bytes(2) + IPV4[4:]
    assert flags(MACS + b"\x08\x00" + ip + bytes(12) + b"\x50" + bytes(17)) == expected


def test_probe_header_is_found() -> None:
    for ipv6, tags in ((False, ()), (True, ()), (True, (1, 2, 3))):
        header = unified_header(ProbeFrame(100, ipv6, tags, stream_id=0xBEEF).octets(0x01020304, 5))
        assert header.flags == UnifiedFlag.TRANSPORT | UnifiedFlag.PROBE
        array = host.unified_headers(header.octets())
        assert (array["sequence"].tolist(), host.stream_id(array).tolist()) == ([0x01020304], [0xBEEF])


def without_verdict(header: UnifiedHeader) -> UnifiedHeader:
    """Return the header without what says where the frame ended."""
    length_flags = UnifiedFlag.LENGTH_ERROR | CUT | RUNT
    return UnifiedHeader(**{**vars(header), "flags": header.flags & ~length_flags, "length": 0, "snap_length": 0})


@pytest.mark.parametrize("number", range(0, 906, 37))
def test_frame_that_ends_anywhere_says_a_part_of_what_the_whole_says(number: int) -> None:
    frame = stacks.stacks()[number]
    whole = np.frombuffer(without_verdict(unified_header(frame)).octets(), np.uint8)
    for end in range(len(frame)):
        header = unified_header(frame[:end])
        part = np.frombuffer(without_verdict(header).octets(), np.uint8)
        # Octets that were taken are those of the whole: only the types of headers not reached yet differ.
        differing = {int(word) for word in np.flatnonzero((part != whole) & (part != 0)) // 4}
        assert differing <= {3, 4, 5}, (end, differing)
        assert (UnifiedFlag.TRUNCATED in header.flags) <= (UnifiedFlag.UNPARSED in header.flags)
        if end < 14:
            assert header.flags == CUT | RUNT


def test_fuzzed_frames_all_have_a_header() -> None:
    seen = UnifiedFlag.NONE
    for frame in stacks.fuzz(5000, seed=3):
        header = unified_header(frame)
        assert len(header.octets()) == UNIFIED_OCTETS, frame.hex()
        seen |= header.flags
    every = UnifiedFlag.LENGTH_ERROR | CUT | RUNT | UnifiedFlag.FRAGMENT | UnifiedFlag.FIRST_FRAGMENT
    assert seen == every | UnifiedFlag.TRANSPORT | UnifiedFlag.TCP | UnifiedFlag.PROBE


def test_octets_that_are_no_whole_headers_are_refused() -> None:
    with pytest.raises(ProbeError, match="200 octets are not whole unified headers"):
        host.unified_headers(bytes(200))
