# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Each refusal of a document of streams: its line, what is wrong, and what would be right."""

import re
from pathlib import Path

import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.document import read_document

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "traffic.md").read_text()


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read_document(text)
    return str(caught.value)


GOOD = "streams:\n  - name: voice\n    length: 512\n    pps: 100\n"

REFUSALS = [
    ("", "streams.yaml:1: the document is empty: give streams, as docs/traffic.md shows"),
    ("a: [\n", "streams.yaml:2: this is not YAML: expected the node content, but found '<stream end>'"),
    ("a: \x00", "streams.yaml:1: this is not YAML: unacceptable character #x0000: special characters are not allowed"),
    ("- 1\n", "streams.yaml:1: 'document' is a mapping with keys of a document: defaults, streams"),
    ("{}\n", "streams.yaml:1: a document needs 'streams': give a list of 1 to 256: the keys of a stream"),
    ("streams: []\n", "streams.yaml:1: 'streams' has 0 items: give 1 to 256"),
    ("streams: 3\n", "streams.yaml:1: 'streams' is a list: put it in square brackets, or one item a line after a dash"),
    ("stream: 3\n", "streams.yaml:1: unknown key 'stream' of a document: did you mean 'streams'?"),
    (
        GOOD.replace("length", "lenght"),
        "streams.yaml:3: unknown key 'lenght' of a stream: did you mean 'length'?",
    ),
    (
        GOOD + "    zz: 1\n",
        "streams.yaml:5: unknown key 'zz' of a stream: give one of name, id, port, length, interval, rate, pps, share, "
        "exponential, burst, count, start, mac, vlan, mpls, ipv4, ipv6, ethertype, udp, tcp, payload, fill, probe, stamp, "
        "checksum, modify, seed",
    ),
    (GOOD + "    pps: 5\n", "streams.yaml:5: key 'pps' of a stream is given twice: leave out one"),
    (GOOD + "    rate: 1M\n", "streams.yaml:5: 'pps' and 'rate' of a stream are both given: leave out one"),
    ("streams: [{pps: 5}]\n", "streams.yaml:1: a stream needs 'length': give octets without FCS, like 512"),
    (GOOD.replace("512", "59"), "streams.yaml:3: length 59 is out of range: give 60 to 9000 octets without FCS"),
    (GOOD.replace("512", "9001"), "streams.yaml:3: length 9001 is out of range: give 60 to 9000 octets without FCS"),
    (
        GOOD.replace("512", "64B"),
        "streams.yaml:3: 'length' is a whole number, not '64B': give 60 to 9000 octets without FCS",
    ),
    (GOOD.replace("512", "mix"), "streams.yaml:3: length 'mix' is unknown: did you mean 'imix'?"),
    (
        GOOD.replace("512", "{least: 60}"),
        "streams.yaml:3: a length needs 'least' and 'greatest', or 'weights', or 'table': give one of these",
    ),
    (
        GOOD.replace("512", "{least: 70, greatest: 60}"),
        "streams.yaml:3: the least length 70 is above the greatest, 60: exchange them",
    ),
    (
        GOOD.replace("512", "{table: imix, least: 60}"),
        "streams.yaml:3: 'table' and 'least' of a length are both given: leave out one",
    ),
    (
        GOOD.replace("512", "{weights: {60: 41, 61: 25}}"),
        "streams.yaml:3: weights add up to 66 entries: give smaller ones, 64 at most in all",
    ),
    (
        GOOD.replace("512", "{weights: 7}"),
        "streams.yaml:3: 'weights' is a mapping of lengths to weights of 1 to 64 each, which in lowest terms add up to 64 at "
        "most, like {60: 7, 590: 4, 1514: 1}",
    ),
    (
        GOOD.replace("pps: 100", "interval: 5 min"),
        "streams.yaml:4: 'interval' is a time, not '5 min': give a time with ns, us, ms or s, above 0, up to 34.359 s; no unit: ns",
    ),
    (
        GOOD.replace("pps: 100", "rate: 0"),
        "streams.yaml:4: rate 0 is out of range: give b/s, with k, M or G, above 0, up to 1G",
    ),
    (
        GOOD.replace("pps: 100", "rate: 2G"),
        "streams.yaml:4: rate 2G is out of range: give b/s, with k, M or G, above 0, up to 1G",
    ),
    (
        GOOD.replace("pps: 100", "share: 10"),
        "streams.yaml:4: 'share' is a share of the line, not '10': give per cent like 12.5%, above 0%, up to 100%",
    ),
    (
        GOOD.replace("pps: 100", "exponential: true"),
        "streams.yaml:4: exponential intervals need a length of time: give an interval (ns), a rate (b/s), packets a second, "
        "a share of the line",
    ),
    (GOOD + "    exponential: maybe\n", "streams.yaml:5: 'exponential' is true or false, not 'maybe'"),
    (GOOD + "    burst: 5\n", "streams.yaml:5: 'burst' is a mapping with keys of a burst: count, interval"),
    (GOOD + "    burst: {interval: 1us}\n", "streams.yaml:5: a burst needs 'count': give 1 to 65535"),
    (
        GOOD + "    burst: {count: 2, interval: 1us}\n",
        "streams.yaml:5: stream 'voice': an interval of 1000 ns within bursts is too short for frames of 512 octets: "
        "give 4288 ns or more, or none for back to back",
    ),
    (
        GOOD + "    count: 0\n",
        "streams.yaml:5: count 0 is out of range: give 1 to 4294967295, or none for an endless stream",
    ),
    (
        GOOD + "    start: [1]\n",
        "streams.yaml:5: 'start' is a list: give a time with ns, us, ms or s, up to 34.359 s; no unit: ns",
    ),
    (
        GOOD + "    mac: {source: 02:00}\n",
        "streams.yaml:5: 'source' is not '02:00': give a MAC address like 02:4c:50:54:00:01",
    ),
    (
        GOOD + "    ipv4:\n      source: 1.2.3\n",
        "streams.yaml:6: '1.2.3' is not an IP address: write it like 198.18.0.1 or 2001:2::1",
    ),
    (
        GOOD + '    ipv6: {source: "1.2.3.4"}\n',
        "streams.yaml:5: '1.2.3.4' is not an IPv6 address: write it like 2001:2::1",
    ),
    (GOOD + "    ipv4: {source: abc}\n", "streams.yaml:5: 'source' is not 'abc': give an IPv4 address"),
    (GOOD + "    vlan: [4096]\n", "streams.yaml:5: vlan 4096 is out of range: give 0 to 4095"),
    (GOOD + "    vlan: [1, 2, 3, 4, 5]\n", "streams.yaml:5: 'vlan' has 5 items: give 1 to 4"),
    (
        GOOD + "    ethertype: 0x88b5\n    mpls: [1]\n",
        "streams.yaml:5: MPLS labels have an ethertype of their own: leave out the ethertype or the labels",
    ),
    (
        GOOD + "    ipv4: {protocol: 1}\n    udp: {}\n",
        "streams.yaml:6: 'udp' does not follow 'protocol', which the payload follows: leave out one",
    ),
    (
        GOOD + "    probe: true\n    tcp: {}\n",
        "streams.yaml:5: stream 'voice': a probe header is found on reception behind UDP alone: give UDP headers, or set probe to "
        "false",
    ),
    (GOOD + "    payload: 0g\n", "streams.yaml:5: 'payload' is not '0g': give octets in hexadecimal, like 00ff 12"),
    (
        GOOD + "    payload: 00\n",
        "streams.yaml:5: stream 'voice': a probe header takes the place of the payload: leave out the payload, or set probe to "
        "false",
    ),
    (
        GOOD + f"    probe: false\n    payload: {'00' * 87}\n",
        "streams.yaml:6: stream 'voice': headers and payload of 132 octets are too long: give 128 at most, the fill comes after "
        "them",
    ),
    (GOOD + "    fill: pbrs\n", "streams.yaml:5: fill 'pbrs' is unknown: did you mean 'prbs'?"),
    (
        GOOD + "    ipv6: {}\n    checksum: none\n",
        "streams.yaml:6: stream 'voice': UDP over IPv6 has a checksum always: give checksum complement, or host where nothing "
        "varies that enters it",
    ),
    (
        GOOD + "    checksum: host\n",
        "streams.yaml:5: stream 'voice': the host can't work out the checksum: its probe header varies: give complement",
    ),
    (
        GOOD + "    stamp: ipv6.flow_label\n",
        "streams.yaml:5: stream 'voice': a stamp in ipv6.flow_label needs IPv6 headers: give IPv6 addresses or another place",
    ),
    (GOOD + "    stamp: octet\n", "streams.yaml:5: the place 'octet' of a stamp needs the number of the octet: add it"),
    (
        GOOD + "    stamp: {place: octet, octet: 30}\n",
        "streams.yaml:5: stream 'voice': a stamp of 8 octets at octet 30 is not in the payload of the shortest frame: give octet "
        "60 to 248",
    ),
    (
        GOOD + "    stamp: {place: octet, octet: 100, width: 17}\n",
        "streams.yaml:5: a stamp of 17 bits is out of range: give 16 to 64 in steps of 8",
    ),
    (
        GOOD + "    stamp: {place: probe, width: 32}\n",
        "streams.yaml:5: a stamp in the place 'probe' has 64 bits: leave out the width",
    ),
    (
        GOOD + "    ethertype: 0x88b5\n    stamp: {place: octet, octet: 14}\n",
        "streams.yaml:6: stream 'voice': a stamp at octet 14 is too early, the frame has left by then: give 15 or more",
    ),
    (
        GOOD + "    modify: [{field: udp.source}]\n",
        "streams.yaml:5: a modifier needs 'op': give increment, decrement, random, values",
    ),
    (
        GOOD + "    modify: [{op: random}]\n",
        "streams.yaml:5: a modifier needs 'field', or 'offset' and 'mask': say what changes",
    ),
    (
        GOOD + "    modify: [{op: random, field: udp.source, mask: 1}]\n",
        "streams.yaml:5: a mask belongs to 'offset', a field has its own: leave it out",
    ),
    (
        GOOD + "    modify: [{op: random, field: udp.source, step: 1}]\n",
        "streams.yaml:5: 'step' is not of op 'random': leave it out, or change op",
    ),
    (
        GOOD + "    modify:\n      - {op: random, field: udp.source}\n      - {op: random, field: tcp.source}\n",
        "streams.yaml:7: stream 'voice': field 'tcp.source' needs TCP, which these headers don't have: change them, or the field",
    ),
    (
        GOOD + "    modify: [{op: random, field: udp.sorce}]\n",
        "streams.yaml:5: stream 'voice': 'udp.sorce' is not a field: did you mean 'udp.source'?; any other bits have an offset "
        "and a mask",
    ),
    (
        GOOD + '    modify: [{op: random, field: "vlan[0].id"}]\n',
        "streams.yaml:5: stream 'voice': field 'vlan[0].id' is not in the headers, which have 0 VLAN tags: add it there",
    ),
    (
        GOOD + "    modify: [{op: increment, field: udp.source, first: 65536}]\n",
        "streams.yaml:5: stream 'voice': value 65536 does not fit into field 'udp.source': give 0 to 65535",
    ),
    (
        GOOD + "    modify: [{op: increment, field: ipv4.source, first: abcd}]\n",
        "streams.yaml:5: stream 'voice': 'abcd' is not an IPv4 address, which field 'ipv4.source' takes",
    ),
    (
        GOOD + '    modify: [{op: increment, field: mac.source, first: "02:00:00:00:00:01"}]\n',
        "streams.yaml:5: stream 'voice': '02:00:00:00:00:01' differs from 02:4c:50:54:00:01 of the headers in more than its last "
        "four octets: field 'mac.source' changes these alone",
    ),
    (
        GOOD + "    modify: [{op: random, offset: 15, mask: 1}]\n",
        "streams.yaml:5: offset 15 of a field is out of range: give an even number and move the mask",
    ),
    (
        GOOD + "    modify: [{op: random, offset: 46, mask: 1}]\n",
        "streams.yaml:5: stream 'voice': the four octets of field 'mask 0x00000001 at octet 46' reach beyond the headers: give an "
        "offset of 44 or less, and move the mask",
    ),
    (
        GOOD + "    modify: [{op: random, offset: 40, mask: 1}]\n",
        "streams.yaml:5: stream 'voice': field 'mask 0x00000001 at octet 40' is in the probe header: end before octet 42",
    ),
    (
        GOOD + "    modify: [{op: random, offset: 24, mask: 0x10000}]\n",
        "streams.yaml:5: stream 'voice': field 'mask 0x00010000 at octet 24' is the header checksum of IPv4, which is kept right "
        "by itself: leave it out",
    ),
    (
        GOOD
        + "    modify:\n      - {op: random, field: ipv4.source}\n      - {op: random, offset: 28, mask: 0x00010000}\n",
        "streams.yaml:7: stream 'voice': fields 'ipv4.source' and 'mask 0x00010000 at octet 28' both change octets 28 and 29: "
        "give one modifier for both, by offset and mask",
    ),
    (
        GOOD + "    modify:\n" + "      - {op: random, offset: 2, mask: 1}\n" * 5,
        "streams.yaml:6: 'modify' has 5 items: give 1 to 4",
    ),
    (
        GOOD + "    stamp: ipv4.identification\n    modify: [{op: random, field: ipv4.identification}]\n",
        "streams.yaml:5: stream 'voice': field 'ipv4.identification' is where the stamp stands: move one",
    ),
    (
        GOOD + "  - {name: voice, length: 60, pps: 1}\n",
        "streams.yaml:1: 2 streams have a name in common, 'voice': give each a name of its own",
    ),
    (
        GOOD + "  - {id: 1, length: 60, pps: 1}\n",
        "streams.yaml:1: 2 streams have an id in common, '1': give each an id of its own",
    ),
    (
        "streams:\n" + "".join(f"  - {{length: 60, pps: 1, seed: {n}}}\n" for n in range(17)),
        "streams.yaml:1: 17 streams are out of range: give 1 to 16 a port",
    ),
    (
        "# Too much.\nstreams:\n  - {name: a, length: 512, share: 60%}\n  - {name: b, length: 512, rate: 400.1M}\n",
        "streams.yaml:2: the streams of port 0 add up to 100.01 % of the line (a 60 %, b 40.01 %): lower the rates",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSALS, ids=[message.split(": ", 1)[1][:60] for _, message in REFUSALS])
def test_what_cannot_be_is_refused_with_its_line_and_the_way_out(text: str, message: str) -> None:
    assert refusal(text) == message


def test_messages_of_the_page_are_those_that_come() -> None:
    (first, second) = re.findall(r"^```\n(streams\.yaml.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    messages = {message for _, message in REFUSALS}
    lines = [line.replace("20 m'", "5 min'") for line in first.splitlines()]
    assert set(lines) <= messages
    two = "streams:\n  - {name: voice, length: 60, share: 60%}\n  - {name: bulk, length: 60, share: 50%}\n"
    assert refusal(two) == second.strip()
