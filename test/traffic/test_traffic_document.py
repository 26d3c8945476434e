# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Documents of streams: what is read, written, refused with its line, and shown on the page."""

import importlib.util
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest
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
    tcp: {source: 1, destination: 2, flags: 2}
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
        traffic_class=0x28,
        vlan_tags=(100, 5 << 13 | 1 << 12 | 200),
        mpls_labels=(MplsLabel(16), MplsLabel(17, 3, 9)),
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


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("traffic_page", ROOT / "tools/traffic_page.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_the_page_are_those_of_the_code() -> None:
    """Run tools/traffic_page.py where this fails."""
    assert load_tool().current(PAGE) == PAGE
    assert re.findall(r"^<!-- keys: (.*) -->$", PAGE, re.MULTILINE) == [section.title for section in SECTIONS]


def test_the_schemas_of_the_documents_are_those_of_the_code() -> None:
    """Run tools/traffic_page.py where this fails."""
    files = load_tool().schemas()
    assert sorted(path.name for path in files) == ["network.json", "sets.json", "streams.json"]
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
