# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Documents of streams: what is read, written, refused with its line, and shown on the page."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import traffic_page
import yaml
from jsonschema import Draft202012Validator

from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.units import exact
from liteprobe.host.traffic.document import SECTIONS, read_document, schema, write_document
from liteprobe.host.traffic.modifiers import FIELD_NAMES
from liteprobe.host.traffic.stamps import PLACES
from liteprobe.host.traffic.stream import (
    CHECKSUMS,
    IMIX,
    Burst,
    Decrement,
    Field,
    Fixed,
    Headers,
    Increment,
    Interval,
    Lengths,
    MplsLabel,
    Random,
    RandomLength,
    Stamp,
    Stepped,
    Stream,
    Values,
    weighted,
)
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.frames.random_streams import StreamMaker

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "traffic.md").read_text()
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def one(text: str) -> Stream:
    """Return the only stream of keys in braces."""
    (stream,) = read_document(f"streams:\n  - {{{text}}}\n")
    return stream


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read_document(text)
    return str(caught.value)


# What is read ------------------------------------------------------------------------------------------


DOCUMENT = """\
defaults:
  rate: 10M
  fill: prbs
  ipv4: {tos: 0x28}
streams:
  - name: first
    length: [76, 590]
    vlan: [100, {id: 200, priority: 5, drop_eligible: true}]
    mpls: [16, {label: 17, traffic_class: 3, ttl: 9}]
    modify:
      - {field: ipv4.source, op: increment, first: 10.0.0.1, step: 2, count: 10}
      - {field: "vlan[1].id", op: values, values: [1, 0xfff], order: random}
      - {offset: 2, mask: 0xff, op: decrement}
      - {field: udp.source, op: random}
  - id: 77
    length: {least: 100, greatest: 200, order: random}
    pps: 1.5k
    exponential: true
    burst: {count: 4, interval: 2us}
    count: 12
    start: 1.5ms
    port: 1
    ipv6: {flow_label: 0xabcde, hop_limit: 3}
    tcp: {source: 1, destination: 2, flags: 2, sequence: 0xffffffff, acknowledgment: 7, window: 0}
    mac: {source: 10:20:30:40:50:10}
    stamp: {place: ipv6.flow_label, tick: 2}
    seed: 9
"""

FIRST = Stream(
    "first",
    1,
    Lengths((76, 590)),
    Interval(rate_bps=Fraction(10**7)),
    headers=Headers(
        traffic_class=0x28, vlan_tags=(100, 5 << 13 | 1 << 12 | 200), mpls_labels=(MplsLabel(16), MplsLabel(17, 3, 9))
    ),
    modifiers=(
        Increment("ipv4.source", "10.0.0.1", 2, 10),
        Values("vlan[1].id", (1, 0xFFF), random=True),
        Decrement(Field(2, 0xFF)),
        Random("udp.source"),
    ),
    fill="prbs",
)

SECOND = Stream(
    "stream-77",
    77,
    RandomLength(100, 200),
    Interval(pps=Fraction(1500), exponential=True, burst=Burst(4, Fraction(2000))),
    count=12,
    start_ns=Fraction(1_500_000),
    port=1,
    headers=Headers(
        source_mac="10:20:30:40:50:10",
        source_ip="2001:2::1",
        destination_ip="2001:2::2",
        flow_label=0xABCDE,
        ttl=3,
        transport="tcp",
        source_port=1,
        destination_port=2,
        tcp_flags=2,
        tcp_sequence=0xFFFFFFFF,
        tcp_acknowledgment=7,
        tcp_window=0,
    ),
    fill="prbs",
    probe=False,
    stamp=Stamp("ipv6.flow_label", tick=2),
    seed=9,
)


def test_a_document_gives_the_streams_that_it_says() -> None:
    assert read_document(DOCUMENT) == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("512", Fixed(512)),
        ("imix", IMIX),
        ("[60, 1514]", Lengths((60, 1514))),
        ("{least: 60, greatest: 70}", Stepped(60, 70, 1)),
        ("{least: 60, greatest: 70, step: 5}", Stepped(60, 70, 5)),
        ("{least: 60, greatest: 70, order: random}", RandomLength(60, 70)),
        ("{weights: {60: 1, 90: 3}}", weighted({60: 1, 90: 3})),
        ("{table: imix, order: random}", Lengths(IMIX.entries, random=True)),
        ("{table: [61, 60], order: random}", Lengths((61, 60), random=True)),
    ],
)
def test_each_form_of_length_is_read(text: str, length: Fixed) -> None:
    assert one(f"length: {text}, pps: 1").length == length


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("interval: 1.5us", Interval(interval_ns=Fraction(1500))),
        ("interval: 1344", Interval(interval_ns=Fraction(1344))),
        ("rate: 0.5G", Interval(rate_bps=Fraction(5 * 10**8))),
        ("share: 12.5 %", Interval(share=Fraction(1, 8))),
        ("pps: 1k", Interval(pps=Fraction(1000))),
        ("seed: 1", Interval()),
    ],
)
def test_each_form_of_interval_is_read_exactly(text: str, interval: Interval) -> None:
    assert one(f"length: 100, {text}").interval == interval


def test_a_stream_that_gives_one_of_a_group_takes_none_from_the_defaults() -> None:
    text = "defaults: {rate: 1M, ipv6: {}, tcp: {}}\nstreams: [{length: 100, pps: 5, ethertype: 0x88b5, udp: {}}]\n"
    assert "'udp' does not follow 'ethertype'" in refusal(text)
    (stream,) = read_document(text.replace(", udp: {}", ", ipv4: {}").replace(", ethertype: 0x88b5", ""))
    assert (stream.interval, stream.headers) == (Interval(pps=Fraction(5)), Headers(transport="tcp"))


def test_streams_of_two_ports_do_not_add_up() -> None:
    text = "streams:\n  - {length: 512}\n  - {length: 512, port: 1}\n"
    assert [stream.port for stream in read_document(text)] == [0, 1]


@pytest.mark.parametrize("key", ["length", "interval", "rate", "pps", "count", "ethertype", "seed"])
def test_a_number_of_thousands_of_digits_is_refused_with_its_line(key: str) -> None:
    number = "9" * 5000
    text = f"streams:\n  - {{length: 60, {key}: {number}}}\n".replace("length: 60, length", "length")
    assert refusal(text).startswith("streams.yaml:2: '")


# And back ----------------------------------------------------------------------------------------------


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(20))
def test_a_document_that_was_written_gives_the_same_streams(seed: int) -> None:
    streams = StreamMaker(seed).streams(16)
    assert [as_read(stream) for stream in read_document(write_document(streams))] == [as_read(one) for one in streams]


def as_read(stream: Stream) -> Stream:
    """Return a stream without what is the same by another word, or doesn't matter."""
    headers, usual = stream.headers, Headers()
    if headers.ethertype is not None:
        headers = replace(headers, ttl=0, traffic_class=0, transport="udp", source_port=0, flow_label=0)
    if headers.transport == "none":
        headers = replace(headers, source_port=usual.source_port)
    interval = stream.interval
    burst = interval.burst and replace(
        interval.burst, inner_ns=interval.burst.inner_ns and exact(interval.burst.inner_ns)
    )
    return replace(stream, headers=headers, interval=replace(interval, burst=burst), start_ns=exact(stream.start_ns))


def test_a_written_document_has_no_more_than_it_needs() -> None:
    stream = Stream("voice", 3, Fixed(512), Interval(share=0.125), start_ns=1500)
    assert write_document([stream]) == ("streams:\n- {name: voice, id: 3, length: 512, share: 12.5%, start: 1500ns}\n")


@pytest.mark.parametrize(
    ("interval", "written"),
    [
        (Interval(interval_ns=1_000_000), "interval: 1ms"),
        (Interval(interval_ns=Fraction(1, 3) + 9000), "interval: 9000.333333333333333333ns"),
        (Interval(rate_bps=1e8), "rate: 100M"),
        (Interval(pps=0.1), "pps: 0.1"),
        (Interval(share=Fraction(1, 3)), "share: 33.333333333333333333%"),
    ],
)
def test_numbers_are_written_in_the_largest_unit_that_fits(interval: Interval, written: str) -> None:
    text = write_document([Stream("a", 1, Fixed(512), interval)])
    assert written in re.split(", |[{}]", text)


# Schema and page ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_each_document_of_the_page_is_read_and_fits_the_schema(text: str) -> None:
    assert read_document(text)
    assert Draft202012Validator(schema()).is_valid(yaml.safe_load(text))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_fits_the_schema(seed: int) -> None:
    assert Draft202012Validator(schema()).is_valid(yaml.safe_load(write_document(StreamMaker(seed).streams(16))))


@pytest.mark.parametrize(
    "text", ["lenght: 60", "length: 59", "length: mix", "length: 60, share: 10", "length: 60, vlan: [{priority: 1}]"]
)
def test_the_schema_refuses_what_is_refused(text: str) -> None:
    document = f"streams: [{{{text}}}]"
    assert not Draft202012Validator(schema()).is_valid(yaml.safe_load(document))
    refusal(document)


def test_the_tables_of_the_page_are_those_of_the_code() -> None:
    """Run tools/traffic_page.py where this fails."""
    assert traffic_page.current(PAGE) == PAGE
    assert re.findall(r"^<!-- keys: (.*) -->$", PAGE, re.MULTILINE) == [section.title for section in SECTIONS]


def test_the_schemas_of_the_documents_are_those_of_the_code() -> None:
    """Run tools/traffic_page.py where this fails."""
    files = traffic_page.schemas()
    assert sorted(path.name for path in files) == [
        "experiment.json",
        "network.json",
        "services.json",
        "sets.json",
        "streams.json",
    ]
    for path, text in files.items():
        assert path.read_text() == text
        jsonschema.Draft202012Validator.check_schema(json.loads(text))


@pytest.mark.parametrize("name", ["imix.yaml", "prbs.yaml", "vlan_sweep.yaml"])
def test_each_example_fits_the_schema_that_editors_take(name: str) -> None:
    wanted = json.loads((ROOT / "docs/schema/streams.json").read_text())
    document = yaml.safe_load((ROOT / "docs/examples" / name).read_text())
    assert list(jsonschema.Draft202012Validator(wanted).iter_errors(document)) == []


def test_the_page_has_each_field_place_and_checksum() -> None:
    shown = {name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for name in re.findall(r"`(.*?)`", row)}
    assert {*FIELD_NAMES, *PLACES, *CHECKSUMS} <= shown


GOOD = "streams:\n  - name: voice\n    length: 512\n    pps: 100\n"

# What is added to GOOD, or changed in it, and what is said of that.
CHANGES = r"""
length -> lenght
! 3: unknown key 'lenght' of a stream: did you mean 'length'?
    zz: 1
! 5: unknown key 'zz' of a stream: give one of name, id, port, length, interval, rate, pps, share, exponential, burst, count,
! start, mac, vlan, mpls, ipv4, ipv6, ethertype, udp, tcp, payload, fill, probe, stamp, checksum, coverage, from, via, modify, seed
    pps: 5
! 5: key 'pps' of a stream is given twice: leave out one
    rate: 1M
! 5: 'pps' and 'rate' of a stream are both given: leave out one
512 -> 59
! 3: length 59 is out of range: give 60 to 9000 octets without FCS
512 -> 9001
! 3: length 9001 is out of range: give 60 to 9000 octets without FCS
512 -> 64B
! 3: 'length' is a whole number, not '64B': give 60 to 9000 octets without FCS
512 -> mix
! 3: length 'mix' is unknown: did you mean 'imix'?
512 -> {least: 60}
! 3: a length needs 'least' and 'greatest', or 'weights', or 'table': give one of these
512 -> {least: 70, greatest: 60}
! 3: the least length 70 is above the greatest, 60: exchange them
512 -> {table: imix, least: 60}
! 3: 'table' and 'least' of a length are both given: leave out one
512 -> {weights: {60: 41, 61: 25}}
! 3: weights add up to 66 entries: give smaller ones, 64 at most in all
512 -> {weights: 7}
! 3: 'weights' is a mapping of lengths to weights of 1 to 64 each, which in lowest terms add up to 64 at most, like {60: 7,
! 590: 4, 1514: 1}
pps: 100 -> interval: 5 min
! 4: 'interval' is a time, not '5 min': give a time with ns, us, ms or s, above 0, up to 34.359 s; no unit: ns
pps: 100 -> rate: 0
! 4: rate 0 is out of range: give b/s, with k, M or G, above 0, up to 10G
pps: 100 -> rate: 20G
! 4: rate 20G is out of range: give b/s, with k, M or G, above 0, up to 10G
pps: 100 -> share: 10
! 4: 'share' is a share of the line, not '10': give per cent like 12.5%, above 0%, up to 100%
pps: 100 -> exponential: true
! 4: exponential intervals need a length of time: give an interval (ns), a rate (b/s), packets a second, a share of the line
    exponential: maybe
! 5: 'exponential' is true or false, not 'maybe'
    burst: 5
! 5: 'burst' is a mapping with keys of a burst: count, interval
    burst: {interval: 1us}
! 5: a burst needs 'count': give 1 to 65535
    burst: {count: 2, interval: 1us}
! 5: stream 'voice': an interval of 1000 ns within bursts is too short for frames of 512 octets: give 4288 ns or more, or none
! for back to back
    count: 0
! 5: count 0 is out of range: give 1 to 4294967295, or none for an endless stream
    start: [1]
! 5: 'start' is a list: give a time with ns, us, ms or s, up to 34.359 s; no unit: ns
    mac: {source: 02:00}
! 5: 'source' is not '02:00': give a MAC address like 02:4c:50:54:00:01
    ipv4:
      source: 1.2.3
! 6: '1.2.3' is not an IP address: write it like 198.18.0.1 or 2001:2::1
    ipv6: {source: "1.2.3.4"}
! 5: '1.2.3.4' is not an IPv6 address: write it like 2001:2::1
    ipv4: {source: abc}
! 5: 'source' is not 'abc': give an IPv4 address
    vlan: [4096]
! 5: vlan 4096 is out of range: give 0 to 4095
    vlan: [1, 2, 3, 4, 5]
! 5: 'vlan' has 5 items: give 1 to 4
    ethertype: 0x88b5
    mpls: [1]
! 5: MPLS labels have an ethertype of their own: leave out the ethertype or the labels
    ipv4: {protocol: 1}
    udp: {}
! 6: 'udp' does not follow 'protocol', which the payload follows: leave out one
    probe: true
    tcp: {}
! 5: stream 'voice': a probe header is found on reception behind UDP alone: give UDP headers, or set probe to false
    payload: 0g
! 5: 'payload' is not '0g': give octets in hexadecimal, like 00ff 12
    payload: 00
! 5: stream 'voice': a probe header takes the place of the payload: leave out the payload, or set probe to false
    fill: pbrs
! 5: fill 'pbrs' is unknown: did you mean 'prbs'?
    ipv6: {}
    checksum: none
! 6: stream 'voice': UDP over IPv6 has a checksum always: give checksum complement, or host where nothing varies that enters
! it
    checksum: host
! 5: stream 'voice': the host can't work out the checksum: its probe header varies: give complement
    stamp: ipv6.flow_label
! 5: stream 'voice': a stamp in ipv6.flow_label needs IPv6 headers: give IPv6 addresses or another place
    stamp: octet
! 5: the place 'octet' of a stamp needs the number of the octet: add it
    stamp: {place: octet, octet: 30}
! 5: stream 'voice': a stamp of 8 octets at octet 30 is not in the payload of the shortest frame: give octet 60 to 248
    stamp: {place: octet, octet: 100, width: 17}
! 5: a stamp of 17 bits is out of range: give 16 to 64 in steps of 8
    stamp: {place: probe, width: 32}
! 5: a stamp in the place 'probe' has 64 bits: leave out the width
    ethertype: 0x88b5
    stamp: {place: octet, octet: 14}
! 6: stream 'voice': a stamp at octet 14 is too early, the frame has left by then: give 15 or more
    modify: [{field: udp.source}]
! 5: a modifier needs 'op': give increment, decrement, random, values
    modify: [{op: random}]
! 5: a modifier needs 'field', or 'offset' and 'mask': say what changes
    modify: [{op: random, field: udp.source, mask: 1}]
! 5: a mask belongs to 'offset', a field has its own: leave it out
    modify: [{op: random, field: udp.source, step: 1}]
! 5: 'step' is not of op 'random': leave it out, or change op
    modify:
      - {op: random, field: udp.source}
      - {op: random, field: tcp.source}
! 7: stream 'voice': field 'tcp.source' needs TCP, which these headers don't have: change them, or the field
    modify: [{op: random, field: udp.sorce}]
! 5: stream 'voice': 'udp.sorce' is not a field: did you mean 'udp.source'?; any other bits have an offset and a mask
    modify: [{op: random, field: "vlan[0].id"}]
! 5: stream 'voice': field 'vlan[0].id' is not in the headers, which have 0 VLAN tags: add it there
    modify: [{op: increment, field: udp.source, first: 65536}]
! 5: stream 'voice': value 65536 does not fit into field 'udp.source': give 0 to 65535
    modify: [{op: increment, field: ipv4.source, first: abcd}]
! 5: stream 'voice': 'abcd' is not an IPv4 address, which field 'ipv4.source' takes
    modify: [{op: increment, field: mac.source, first: "02:00:00:00:00:01"}]
! 5: stream 'voice': '02:00:00:00:00:01' differs from 02:4c:50:54:00:01 of the headers in more than its last four octets:
! field 'mac.source' changes these alone
    modify: [{op: random, offset: 15, mask: 1}]
! 5: offset 15 of a field is out of range: give an even number and move the mask
    modify: [{op: random, offset: 46, mask: 1}]
! 5: stream 'voice': the four octets of field 'mask 0x00000001 at octet 46' reach beyond the headers: give an offset of 44 or
! less, and move the mask
    modify: [{op: random, offset: 40, mask: 1}]
! 5: stream 'voice': field 'mask 0x00000001 at octet 40' is in the probe header: end before octet 42
    modify: [{op: random, offset: 24, mask: 0x10000}]
! 5: stream 'voice': field 'mask 0x00010000 at octet 24' is the header checksum of IPv4, which is kept right by itself: leave
! it out
    modify:
      - {op: random, field: ipv4.source}
      - {op: random, offset: 28, mask: 0x00010000}
! 7: stream 'voice': fields 'ipv4.source' and 'mask 0x00010000 at octet 28' both change octets 28 and 29: give one modifier
! for both, by offset and mask
    stamp: ipv4.identification
    modify: [{op: random, field: ipv4.identification}]
! 5: stream 'voice': field 'ipv4.identification' is where the stamp stands: move one
  - {name: voice, length: 60, pps: 1}
! 1: 2 streams have a name in common, 'voice': give each a name of its own
  - {id: 1, length: 60, pps: 1}
! 1: 2 streams have an id in common, '1': give each an id of its own
"""


def refusals() -> Iterator[tuple[str, str]]:
    """Yield each document and its message: of CHANGES, and whole ones."""
    for change, said in re.findall(r"((?:^(?!! ).*\n)+)((?:^! .*\n)+)", CHANGES[1:], re.MULTILINE):
        old, is_replaced, new = change.removesuffix("\n").partition(" -> ")
        text = GOOD.replace(old, new) if is_replaced else GOOD + change
        yield text, "streams.yaml:" + " ".join(line[2:] for line in said.splitlines())


REFUSALS = [
    ("", "streams.yaml:1: the document is empty: give streams, as docs/traffic.md shows"),
    ("a: [\n", "streams.yaml:2: this is not YAML: expected the node content, but found '<stream end>'"),
    ("a: \x00", "streams.yaml:1: this is not YAML: character '\\x00' can't stand in it"),
    ("- 1\n", "streams.yaml:1: 'document' is a mapping with keys of a document: defaults, streams"),
    ("{}\n", "streams.yaml:1: a document needs 'streams': give a list of 1 to 256: the keys of a stream"),
    ("streams: []\n", "streams.yaml:1: 'streams' has 0 items: give 1 to 256"),
    ("streams: 3\n", "streams.yaml:1: 'streams' is a list: put it in square brackets, or one item a line after a dash"),
    ("stream: 3\n", "streams.yaml:1: unknown key 'stream' of a document: did you mean 'streams'?"),
    ("streams: [{pps: 5}]\n", "streams.yaml:1: a stream needs 'length': give octets without FCS, like 512"),
    (
        GOOD + f"    probe: false\n    payload: {'00' * 87}\n",
        "streams.yaml:6: stream 'voice': headers and payload of 132 octets are too long: give 128 at most, the fill comes after "
        "them",
    ),
    (
        GOOD + "    modify:\n" + "      - {op: random, offset: 2, mask: 1}\n" * 5,
        "streams.yaml:6: 'modify' has 5 items: give 1 to 4",
    ),
    (
        "streams:\n" + "".join(f"  - {{length: 60, pps: 1, seed: {n}}}\n" for n in range(17)),
        "streams.yaml:1: 17 streams are out of range: give 1 to 16 a port",
    ),
    (
        "# Too much.\nstreams:\n  - {name: a, length: 512, share: 60%}\n  - {name: b, length: 512, rate: 400.1M}\n",
        "streams.yaml:2: the streams of port 0 add up to 100.01 % of the line (a 60 %, b 40.01 %): lower the rates",
    ),
    *refusals(),
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


@pytest.mark.parametrize(
    ("given", "culprit"),
    [
        ({"via": "10.0.1.1"}, "give 'from', too"),
        ({"source": "10.0.1.2", "via": "fd00::1"}, "different families"),
        ({"source": "fd00::2"}, "different families"),
        ({"source": "10.0.1.2", "headers": Headers(source_ip="10.0.1.9")}, "give one of them"),
    ],
)
def test_a_stream_and_a_train_that_can_not_have_their_address_are_refused_alike(
    given: dict[str, Any], culprit: str
) -> None:
    with pytest.raises(UsageError, match=culprit):
        Stream("one", 1, Fixed(100), Interval(), **given)
    with pytest.raises(UsageError, match=culprit):
        TrainProgram(100, 5, **given)
    assert TrainProgram(100, 5, source="10.0.1.2").headers.source_ip == "10.0.1.2"
