# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Configuration sets on the host: their octets, settings, documents, and what is refused."""

import pickle
from collections.abc import Iterator
from itertools import count, islice
from typing import Any, cast

import numpy as np
import pytest

from liteprobe.cores.formats import SET_PLACES, SET_SUMMED, STREAM_FIELDS, SetError, SetField
from liteprobe.host.base.errors import UsageError
from liteprobe.host.device.registers import Registers
from liteprobe.host.run.sets import SetsCounts, SetsPort
from liteprobe.host.traffic.document import read_sets, sets_schema
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.sets import Repeat, Sets
from liteprobe.host.traffic.stream import Burst, Fixed, Increment, Interval, RandomLength, Stream
from liteprobe.sim.drivers.tools.refusals import refusal

V4 = Stream("v4", 1, Fixed(60))
TAGGED = Stream("tagged", 1, Fixed(100), headers=Headers(vlan_tags=(5, 0x2006)))
V6 = Stream("v6", 1, Fixed(100), headers=Headers(source_ip="2001:2::1", destination_ip="2001:2::2", vlan_tags=(5, 6)))


def stream_of(sets: Sets) -> bytes:
    """Return all octets of a stream without what is ignored."""
    octets = b""
    for chunk in sets.octets():
        assert len(chunk) % 4 == 0
        octets += chunk.rstrip(b"\xff")
    return octets


def patterns() -> Iterator[dict[str, int | str]]:
    """Yield what a device's simulation is driven with, too."""
    for n in range(5):
        yield {"address": f"198.18.7.{n}"}


# Octets -------------------------------------------------------------------------------------------


def test_a_set_is_a_control_octet_and_its_fields_as_on_the_wire() -> None:
    sets = Sets(
        TAGGED,
        [{"index": 1, "length": 0x123, "inner_vlan": 0x4567, "vlan": 0x89AB, "address": "1.2.3.4"}, {"vlan": 7}, {}],
        entry="mac.source",
        table=[0, 0],
    )
    assert stream_of(sets).hex() == "3d01020304" + "89ab" + "4567" + "0123" + "0001" + "040007" + "00" + "c0"


def test_an_ipv6_address_has_16_octets() -> None:
    sets = Sets(V6, [{"address": "2001:2::1:2"}, {"address": 5}])
    assert stream_of(sets).hex() == "02" + "20010002000000000000000000010002" + "02" + "00" * 15 + "05" + "c0"


def test_four_sets_and_more_of_one_kind_say_their_control_octet_once() -> None:
    assert stream_of(Sets(TAGGED, [{"vlan": n} for n in range(3)])).hex() == "040000" + "040001" + "040002" + "c0"
    assert stream_of(Sets(TAGGED, [{"vlan": n} for n in range(4)])).hex() == "a0000304" + "0000000100020003" + "c0"
    assert stream_of(Sets(TAGGED, [{}] * 5, fields=())).hex() == "00" * 5 + "c0"


def test_a_repeat_stands_where_it_was_said() -> None:
    sets = Sets(TAGGED, [Repeat(3), {"vlan": 1}, Repeat(0x102), {"vlan": 2}])
    assert stream_of(sets).hex() == "800003" + "040001" + "800102" + "040002" + "c0"


def test_the_first_set_is_completed_from_the_headers() -> None:
    sets = Sets(TAGGED, [{}, {"vlan": 1}], fields=("length", "vlan", "inner_vlan", "address"))
    assert stream_of(sets).hex() == "1d" + "c6120001" + "0005" + "2006" + "0064" + "040001" + "c0"


def test_columns_are_the_octets_of_their_rows() -> None:
    chance = np.random.default_rng(3)
    for rows in (1, 3, 4, 10_000):
        columns: dict[str, Any] = {
            "length": chance.integers(100, 9001, rows),
            "address": chance.integers(0, 256, (rows, 16)),
            "vlan": chance.integers(0, 1 << 16, rows),
        }
        listed: list[dict[str, int | str]] = [
            {
                "length": int(columns["length"][n]),
                "address": int.from_bytes(bytes(columns["address"][n].tolist())),
                "vlan": int(columns["vlan"][n]),
            }
            for n in range(rows)
        ]
        assert list(Sets.from_columns(V6, columns).octets()) == list(Sets(V6, listed).octets())


def test_sets_may_have_no_end_and_are_made_as_they_are_needed() -> None:
    made = Sets(V4, ({"address": n} for n in count()))
    assert sum(len(chunk) for chunk in islice(made.octets(), 5)) >= 5 * 4 * 4096


def test_the_patterns_of_a_bench_are_sets_and_go_to_another_process() -> None:
    sets = Sets.from_bench(V4, patterns)
    assert stream_of(sets).hex() == "a0000401" + "".join(f"c61207{n:02x}" for n in range(5)) + "c0"
    other = pickle.loads(pickle.dumps(sets))
    assert list(other.octets()) == list(sets.octets())
    assert [words.dtype for words in sets.chunks()] == [np.dtype(np.uint32)] * 2
    assert "give the function that yields them" in refusal(pickle.dumps, Sets(V4, patterns()))


def test_a_bad_set_is_named_behind_the_octets_of_those_before_it() -> None:
    made = Sets(TAGGED, [{"vlan": 1}, Repeat(1), {"vlan": 2}, {"vlan": 1 << 16}])
    chunks = made.octets()
    assert next(chunks).rstrip(b"\xff").hex() == "040001" + "800001" + "040002"
    with pytest.raises(UsageError, match="^set 2: vlan 65536 is out of range: give 0 to 65535$"):
        next(chunks)


# Settings -----------------------------------------------------------------------------------------


def field(words: tuple[int, ...], name: str) -> int:
    """Return a field of the template."""
    return STREAM_FIELDS[name].value(words)


def test_places_and_the_template_are_those_of_the_headers() -> None:
    sets = Sets(
        V6, [], fields=("address", "vlan", "inner_vlan", "length", "index"), address="destination", entry="mac.destination",
        table=[1],
    )  # fmt: skip
    settings = sets.settings()
    places = [settings.places >> 8 * n & 0xFF for n in range(SET_SUMMED + 1)]
    ip = 14 + 8
    expected = {SetField.ADDRESS6: ip + 24, SetField.TAG: 14, SetField.INNER_TAG: 18, SetField.INDEX: 2}
    assert places == [*(expected.get(one, 0) for one in SET_PLACES), ip + 8]
    assert settings.fields == 0x3E
    template = settings.template
    assert (field(template, "network_halfword"), field(template, "network_write")) == ((ip + 4) // 2, 1)
    assert (field(template, "seed_lengths"), field(template, "header_words")) == (2, (ip + 48 + 6) // 4)
    assert (settings.length, settings.interval, settings.fraction) == (100, 0, 0)


@pytest.mark.parametrize(
    ("interval", "ticks"),
    [
        (Interval(interval_ns=1000), (125, 0)),
        (Interval(pps=10**6), (125, 0)),
        (Interval(share=0.75), (165, (1 << 32) // 3)),
        (Interval(share=1), (0, 0)),
    ],
)  # fmt: skip
def test_the_interval_is_that_of_the_stream(interval: Interval, ticks: tuple[int, int]) -> None:
    settings = Sets(Stream("a", 1, Fixed(100), interval), [{"address": 1}]).settings()
    assert (settings.interval, settings.fraction) == ticks


class Recorded:
    """Registers that only remember what is written."""

    def __init__(self, values: dict[str, int]) -> None:
        self.values, self.memories = values, dict[str, list[int]]()

    def write(self, name: str, value: int) -> None:
        """Write one."""
        self.values[name] = value

    def write_many(self, values: dict[str, int]) -> None:
        """Write several."""
        self.values |= values

    def write_memory(self, name: str, first: int, words: list[int]) -> None:
        """Write words of a memory."""
        assert first == 0
        self.memories[name] = words

    def read_many(self, names: list[str]) -> dict[str, int]:
        """Read several."""
        return {name: self.values[name] for name in names}


def test_a_port_is_told_what_is_the_same_in_all_frames() -> None:
    registers = Recorded({})
    sets = Sets(TAGGED, [{"index": 1}], entry="mac.source", table=[7, 8], repeats=9)
    port = SetsPort(cast(Registers, registers), 3)
    port.load_sets(sets, count=100)
    port.arm_sets()
    settings = sets.settings()
    assert registers.memories == {"port3_header": list(settings.header), "sets_table": [7, 8]}
    expected = {
        **{"length": 100, "count": 100, "repeats": 1, "interval_ticks": 0, "interval_fraction": 0, "gap_ticks": 0},
        **{"start_time": 0, "timed": 0, "attached": 1},
    }
    own = {"fields": 32, "places": settings.places, "first_repeats_allowed": 9, "arm": 1}
    own |= {f"template{n}": word for n, word in enumerate(settings.template)}
    of_path = {f"port3_tx_{name}": value for name, value in expected.items()}
    assert registers.values == of_path | {f"port3_sets_{name}": value for name, value in own.items()}
    assert settings.places >> 8 * SET_PLACES.index(SetField.INDEX) & 0xFF == 8


def test_a_port_says_what_it_counts_and_which_set_is_bad() -> None:
    values = {"sets": 5, "repeats": 2, "underruns": 1, "first_underrun": 3, "error": 4}
    port = SetsPort(cast(Registers, Recorded({f"port0_sets_{name}": value for name, value in values.items()})), 0)
    counts = port.sets_counts()
    assert counts == SetsCounts(5, 2, 1, 3, SetError.LENGTH)
    assert counts.fault == "set 5 can't be sent: its length is out of range: give 60 to 9000"
    assert SetsCounts(5, 2, 0, None, SetError.NONE).fault == ""


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "sets", "settings", "message"),
    [
        (V4, [{"adress": 1}], {}, "'adress' is not a field of a set: did you mean 'address'?"),
        (V4, [{"vlan": 1}], {}, "sets have 'vlan', the headers 0 VLAN tags: give 1 or more"),
        (V4, [{"index": 0}], {}, "sets have an index, its entry no place"),
        (V4, [{"index": 0}], {"entry": "mac.source"}, "sets have an index, and the table is empty"),
        (
            V4,
            [{"index": 0}],
            {"entry": "udp.source", "table": [1]},
            "field 'udp.source' has fewer than the four octets",
        ),
        (V4, [{"index": 0}], {"entry": 16, "table": [1]}, "total length of IPv4"),
        (V4, [{"index": 0}], {"entry": 40, "table": [1]}, "is in the probe header"),
        (V4, [{"index": 0, "address": 0}], {"entry": 28, "table": [1]}, "are in the same place"),
        (V6, [{"index": 0, "address": 0}], {"entry": 32, "table": [1]}, "are in the same place"),
        (Stream("a", 1, Fixed(60), Interval(interval_ns=600)), [{}], {}, "add up to 112 % of the line"),
        (V4, [{}], {"address": "both"}, "address 'both' of sets is unknown: give one of source, destination"),
        (V4, [{}], {"repeats": 65536}, "65536 repeats are out of range"),
        (V4, [{}], {"table": [1 << 32]}, "entry 0 of the table, 4294967296, is out of range"),
        (Stream("a", 1, RandomLength(60, 99), Interval(share=0.5)), [{}], {}, "has several lengths"),
        (Stream("a", 1, Fixed(60), modifiers=(Increment("udp.source"),)), [{}], {}, "has modifiers"),
        (Stream("a", 1, Fixed(60), Interval(pps=9, burst=Burst(2))), [{}], {}, "are due at a constant interval"),
        (Stream("a", 1, Fixed(60), Interval(rate_bps=10**6)), [{"length": 60}], {}, "so a rate has no interval"),
        (
            Stream("a", 1, Fixed(60), probe=False, checksum="host"),
            [{"address": 1}],
            {},
            "enters the checksum, which the host can't work out",
        ),
        (Stream("a", 1, Fixed(60), headers=Headers(ethertype=0x88B5), probe=False), [{"address": 1}], {}, "no IP"),
    ],
)
def test_what_no_probe_can_send_is_refused(stream: Stream, sets: list[Any], settings: Any, message: str) -> None:
    assert message in refusal(Sets, stream, sets, **settings)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"length": 59}, "length 59 is out of range: give 60 to 9000"),
        ({"address": "2001:2::5"}, "2001:2::5 is not an IPv4 address, which the headers have: give one"),
        ({"address": -1}, "address -1 is out of range: give 0 to 4294967295"),
        ({"lenght": 60}, "'lenght' is not a field of these sets: did you mean 'length'?"),
        ({"length": "60"}, "length '60' is not a number: give 60 to 9000"),
    ],
)
def test_a_bad_value_says_what_would_be_right(values: dict[str, int | str], message: str) -> None:
    made = Sets(V4, [{"address": 1}, values], fields=("address", "length"))
    assert refusal(list, made.octets()) == f"set 1: {message}"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"vlan": [1, 2], "length": [100]}, "columns have {'vlan': 2, 'length': 1} entries"),
        ({"vlan": []}, "columns have {'vlan': 0} entries"),
        ({"vlan": [1.5]}, "column 'vlan' is not an array of whole numbers of shape (1,)"),
        ({"address": [1]}, "column 'address' is not an array of whole numbers of shape (1, 16)"),
        ({"length": [98, 97]}, "set 1: length 97 is out of range: give 98 to 9000"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: dict[str, list[int]], message: str) -> None:
    stream = Stream(
        "v6",
        1,
        Fixed(100),
        headers=Headers(source_ip="::1", destination_ip="::2", vlan_tags=(1,)),
        payload=bytes(30),
        probe=False,
    )
    assert message in refusal(Sets.from_columns, stream, columns)


# Documents ----------------------------------------------------------------------------------------

DOCUMENT = """\
stream:
  length: 100
  interval: 2us
  vlan: [5]
fields: [address, vlan, index]
entry: ipv4.destination
table: [198.18.0.9, 0xc612000a]
repeats: 2
sets:
  - {address: 198.18.1.1, vlan: 0x2005, index: 1}
  - {vlan: 6}
  - {repeat: 0}
  - {address: 3}
"""


def test_a_document_is_read() -> None:
    sets = read_sets(DOCUMENT)
    assert stream_of(sets).hex() == "25" + "c6120101" + "2005" + "0001" + "040006" + "800000" + "01" + "00000003" + "c0"
    assert sets.table.tolist() == [0xC6120009, 0xC612000A]
    assert (sets.settings().interval, sets.settings().repeats, sets.settings().length) == (250, 2, 100)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("repeats: 2", "repeat: 2", "sets.yaml:8: unknown key 'repeat' of a document: did you mean 'repeats'?"),
        ("  - {vlan: 6}", "  - {vlna: 6}", "sets.yaml:11: unknown key 'vlna' of a set: did you mean 'vlan'?"),
        ("  - {vlan: 6}", "  - {length: 60}", "sets.yaml:11: 'length' is not among the fields of these sets"),
        ("{vlan: 6}", "{address: '::5'}", "sets.yaml:11: ::5 is not an IPv4 address"),
        ("{vlan: 6}", "{index: 2}", "sets.yaml:11: index 2 is out of range: give 0 to 1"),
        ("{repeat: 0}", "{repeat: 0, vlan: 1}", "sets.yaml:12: 'repeat' stands alone"),
        ("  vlan: [5]", "  burst: {count: 2}", "sets.yaml:4: unknown key 'burst' of a stream"),
        ("entry: ipv4.destination", "entry: ipv4.destinaton", "did you mean 'ipv4.destination'?"),
        ("entry: ipv4.destination", "entry: {offset: 3}", "offset 3 of a field is out of range: give an even number"),
        ("  length: 100\n", "", "sets.yaml:2: a stream needs 'length'"),
        ("sets:", "stets:", "did you mean 'sets'?"),
        (DOCUMENT, "", "sets.yaml:1: the document is empty: give a stream and sets, as docs/sets.md shows"),
        (DOCUMENT, "a: [", "this is not YAML"),
    ],
)
def test_what_is_wrong_in_a_document_is_said_with_its_line(old: str, new: str, message: str) -> None:
    assert old in DOCUMENT
    assert message in refusal(read_sets, DOCUMENT.replace(old, new))


def test_the_schema_has_the_keys_that_are_read() -> None:
    schema = sets_schema()
    assert set(schema["properties"]) == {"stream", "fields", "address", "entry", "table", "repeats", "sets"}
    assert set(schema["properties"]["sets"]["items"]["properties"]) == {
        "address",
        "vlan",
        "inner_vlan",
        "length",
        "index",
        "repeat",
    }
    assert schema["required"] == ["stream", "sets"]
