# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Streams as data and as words: what a port adds up to, and fields of the memories worked out by hand and read again."""

import struct
from collections.abc import Iterator
from fractions import Fraction

import pytest

from liteprobe.cores.formats import (
    HEADER_WORDS_OF_STREAM,
    MODIFIER_FIELDS,
    MODIFIER_WORDS,
    MODIFIERS,
    STREAM_FIELDS,
    STREAM_WORDS,
    STREAMS,
    Fill,
    LengthKind,
    ModifierOp,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.due import Timing
from liteprobe.host.traffic.layout import PortWords, port_words, random_state, timing
from liteprobe.host.traffic.load import check_port, percent, receiver_settings, share_of
from liteprobe.host.traffic.stream import (
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
    vlan_tag,
    weighted,
)
from liteprobe.sim.drivers.frames.random_streams import StreamMaker
from liteprobe.sim.drivers.traffic.interpreter import SETTINGS, Contents, ExpectedFrame, Program
from liteprobe.sim.models.traffic.octets import filling
from liteprobe.sim.models.traffic.streams import octets, schedule
from liteprobe.sim.models.traffic.trains import ProbeFrame, ones_sum

NOMINAL = 8 << 40
SLOW = NOMINAL * 1_000_100 // 1_000_000  # A clock that runs 100 ppm slow: fewer ticks in a second.
IPV6 = Headers(source_ip="2001:2::1", destination_ip="2001:2::2")


def fields(words: PortWords, number: int = 0) -> dict[str, int]:
    its = words.schedule[16 * number : 16 * number + 16]
    return {name: field.value(its) for name, field in STREAM_FIELDS.items()}


def modifier(words: PortWords, number: int) -> dict[str, int]:
    its = words.modifiers[8 * number : 8 * number + 8]
    return {name: field.value(its) for name, field in MODIFIER_FIELDS.items()}


def having(found: dict[str, int], **wanted: int) -> bool:
    assert {name: found[name] for name in wanted} == wanted
    return True


# Times -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interval", "length", "increment", "times"),
    [
        (Interval(), Fixed(60), NOMINAL, Timing(84, 0, 0, 0, 0)),
        (Interval(), Stepped(60, 62, 1), NOMINAL, Timing(84 + 85 + 86, 0, 3, 0, 0)),
        (Interval(share=1), Lengths((60, 100)), SLOW, Timing(84 + 124, 0, 2, 0, 0)),
        (Interval(share=0.3), Fixed(60), SLOW, Timing(280, 0, 0, 0, 0)),
        (Interval(interval_ns=1000.5), Fixed(60), NOMINAL, Timing(125, 2**28, 0, 0, 0)),
        (Interval(pps=3), Fixed(60), NOMINAL, Timing(41_666_666, 2_863_311_531, 0, 0, 0)),
        (Interval(pps=1000, burst=Burst(4, 1004)), Fixed(60), NOMINAL, Timing(500_000, 0, 4, 126, 0)),
        (Interval(pps=1000, burst=Burst(4, 672)), Fixed(60), SLOW, Timing(499950, 21473537, 4, 0, 0)),
        (Interval(pps=1000, exponential=True), Fixed(60), NOMINAL, Timing(4_000_000, 0, 0, 0, 0)),
    ],
)
def test_times_are_exact_in_ticks(interval: Interval, length: Fixed, increment: int, times: Timing) -> None:
    found = timing(Stream("a", 1, length, interval), increment)
    if increment == SLOW and interval.pps:
        exact = Fraction(4 * 10**6 * 2**40, increment)
        assert abs(found.interval + Fraction(found.fraction, 2**32) - exact) <= Fraction(1, 2**33)
        times = Timing(found.interval, found.fraction, times.burst, times.inner, times.phase)
    assert found == times


def test_a_start_is_in_whole_ticks_of_the_clock() -> None:
    assert timing(Stream("a", 1, Fixed(60), start_ns=1_000_000_000), SLOW).phase == 124_987_501


def test_what_is_more_than_the_line_by_a_slow_clock_is_lowered_and_said() -> None:
    rates = [Stream("a", 1, Fixed(976), Interval(rate_bps=6e8)), Stream("b", 2, Fixed(976), Interval(rate_bps=3e8))]
    shared = Stream("c", 3, Fixed(976), Interval(share=0.1))
    words = port_words([*rates, shared], SLOW)
    first, second, third = (fields(words, number) for number in range(3))
    ticks = [one["interval"] + one["interval_fraction"] / 2**32 for one in (first, second, third)]
    assert ticks[2] == 10_000
    assert sum(1000 / one for one in ticks) == pytest.approx(1, abs=1e-9)
    assert ticks[1] / ticks[0] == pytest.approx(2, abs=1e-9)
    assert words.notes == (
        "the line is 100.0 ppm slower than the rates asked for, by the probe's clock: they are lowered so much",
    )
    assert port_words([*rates, shared]).notes == ()


# Words -------------------------------------------------------------------------------------------------


def test_words_of_the_plainest_stream() -> None:
    macs = Headers(destination_mac="02:4c:50:00:00:02", source_mac="02:4c:50:00:00:01")
    words = port_words([Stream("a", 5, Fixed(60), Interval(share=0.5), headers=macs)])
    assert words.mask == 1
    assert words.lists == ()
    assert words.modifiers == (0,) * 32
    assert struct.pack("<32I", *words.headers) == ProbeFrame(60, stream_id=5).header().ljust(128, b"\0")
    found = fields(words)
    nonzero = {name: value for name, value in found.items() if value}
    shared_bits = {"list_base", "length_random", "interval_random", "ipv4_sum"}
    assert {name: value for name, value in nonzero.items() if name not in shared_bits} == {
        "with_probe": 1,
        "endless": 1,
        "stamp_enable": 1,
        "stamp_octets_less_1": 7,
        "stamp_offset": 52,
        "header_words": 12,
        "payload_offset": 42,
        "network_halfword": 8,
        "network_base": 14,
        "udp_halfword": 19,
        "ipv4_halfword": 12,
        "transport_offset": 34,
        "length_least": 60,
        "interval": 168,
        "burst_left": 1,
    }


def test_lengths_that_vary_are_written_into_each_frame() -> None:
    lengths = Lengths((100, 200, 300), random=True)
    stepped = Stream("a", 1, Stepped(82, 99, 4), Interval(pps=1), headers=IPV6, count=9)
    drawn = Stream("b", 2, lengths, Interval(pps=1))
    ranged = Stream("c", 3, RandomLength(60, 187), Interval(pps=1))
    words = port_words([stepped, drawn, ranged])
    assert words.lists == (100, 200, 300)
    first, second, third = (fields(words, number) for number in range(3))
    having(first, length_kind=LengthKind.STEPPED, length_least=82, length_greatest=99, length_step=4, length_next=82)
    having(first, network_write=1, network_halfword=9, network_base=54, udp_write=1, transport_offset=54, ipv4_write=0)
    having(first, checksum_enable=1, seed_lengths=2, endless=0, frames_left=9)
    # Addresses, protocol, ports and all ones in the place of the checksum: no length.
    udp = struct.pack(">HHHH", 49184, 49185, 0, 0xFFFF)
    addresses = struct.pack(">8H8H", 0x2001, 2, 0, 0, 0, 0, 0, 1, 0x2001, 2, 0, 0, 0, 0, 0, 2)
    having(first, checksum_seed=ones_sum(addresses + bytes([0, 17]) + udp))
    having(
        second, length_kind=LengthKind.LIST, list_drawn=1, list_base=0, list_entries=3, ipv4_write=1, network_write=1
    )
    # The header without total length and checksum.
    having(second, ipv4_sum=ones_sum(bytes.fromhex("4500000000004000401100 00c6120001c6120002")), checksum_enable=0)
    having(third, length_kind=LengthKind.RANDOM, length_least=60, length_range=128)


def test_tcp_adds_its_length_once_and_has_no_length_of_its_own() -> None:
    found = fields(
        port_words([Stream("a", 1, Stepped(90, 99), Interval(pps=1), headers=Headers(transport="tcp"), probe=False)])
    )
    having(found, checksum_enable=1, seed_lengths=1, udp_write=0, with_probe=0, stamp_enable=0)
    having(found, header_words=14, payload_offset=54)


def test_modifiers_say_in_which_sums_their_halves_are() -> None:
    changes = (
        Increment("ipv4.source", "198.18.0.7", step=3, count=5),
        Decrement("ipv4.tos", 7),
        Values("udp.source", (1, 2)),
        Random("mac.source"),
    )
    plain = Stream("a", 1, Fixed(82), Interval(share=0.5), modifiers=changes)
    summed = Stream("b", 2, Fixed(82), Interval(share=0.5), modifiers=changes, checksum="complement")
    words = port_words([plain, summed])
    source, tos, ports, mac = (modifier(words, number) for number in range(4))
    having(source, op=ModifierOp.STEP, halfword=13, mask=0xFFFFFFFF, step=3, number=5, left=5)
    having(source, first=0xC6120007, value=0xC6120007, high_in_ipv4=1, low_in_ipv4=1, high_in_seed=0, low_in_seed=0)
    having(tos, op=ModifierOp.STEP, halfword=6, mask=0xFF, step=0xFFFFFFFF, first=7, high_in_ipv4=0, low_in_ipv4=1)
    having(ports, op=ModifierOp.LIST, halfword=16, mask=0xFFFF, number=2, list_base=0, low_in_ipv4=0, low_in_seed=0)
    having(mac, op=ModifierOp.RANDOM, halfword=4, mask=0xFFFFFFFF, high_in_ipv4=0, low_in_ipv4=0)
    source, tos, ports, mac = (modifier(words, number) for number in range(4, 8))
    having(source, high_in_ipv4=1, low_in_ipv4=1, high_in_seed=1, low_in_seed=1)
    having(tos, low_in_ipv4=1, low_in_seed=0)
    having(ports, high_in_ipv4=0, low_in_ipv4=0, high_in_seed=0, low_in_seed=1)
    assert words.lists == (1, 2)
    # Without what changes: version and TOS, and the source.
    having(
        fields(words, 1),
        ipv4_write=1,
        ipv4_sum=ones_sum(bytes.fromhex("0044 0000 4000 4011 c612 0002".replace(" ", ""))),
    )
    fixed = struct.pack(">HH", 0xC612, 2) + struct.pack(">HH", 17, 48) + struct.pack(">HHH", 49185, 48, 0xFFFF)
    having(fields(words, 1), checksum_seed=ones_sum(fixed))


def test_a_field_within_a_pair_is_shifted_to_its_place() -> None:
    headers = Headers(vlan_tags=(vlan_tag(5, 3),), mpls_labels=(MplsLabel(77),))
    changes = (
        Increment("vlan[0].priority", step=2),
        Values("mpls[0].label", (1, 0xFFFFF)),
        Increment(Field(4, 0x0FF0), 9),
    )
    words = port_words([Stream("a", 1, Fixed(99), Interval(), headers=headers, modifiers=changes)])
    having(modifier(words, 0), halfword=6, mask=0xE000, step=2 << 13, first=3 << 13, value=3 << 13, number=0)
    having(modifier(words, 1), halfword=9, mask=0xFFFFF000, op=ModifierOp.LIST)
    having(modifier(words, 2), halfword=2, mask=0x0FF0, step=1 << 4, first=9 << 4)
    assert words.lists == (1 << 12, 0xFFFFF << 12)


@pytest.mark.parametrize(
    ("stamp", "headers", "wanted"),
    [
        (Stamp(tick=3), Headers(), {"stamp_offset": 52, "stamp_octets_less_1": 7, "stamp_shift": 3}),
        (Stamp("octet", 70, 24), Headers(), {"stamp_offset": 70, "stamp_octets_less_1": 2}),
        (Stamp("ipv4.identification"), Headers(), {"stamp_offset": 18, "stamp_octets_less_1": 1, "stamp_mend": 1}),
        (
            Stamp("ipv4.checksum"),
            Headers(vlan_tags=(1,)),
            {"stamp_offset": 28, "stamp_octets_less_1": 1, "stamp_mend": 0},
        ),
        (
            Stamp("ipv6.flow_label", tick=2),
            IPV6,
            {"stamp_offset": 15, "stamp_octets_less_1": 2, "stamp_nibble": 1, "stamp_shift": 2},
        ),
    ],
)
def test_stamps_stand_where_they_were_asked_for(stamp: Stamp, headers: Headers, wanted: dict[str, int]) -> None:
    having(fields(port_words([Stream("a", 1, Fixed(99), headers=headers, stamp=stamp)])), stamp_enable=1, **wanted)


def test_fill_count_bursts_and_start_are_in_their_fields() -> None:
    bursts = Interval(interval_ns=80_000, exponential=True, burst=Burst(9, 1000))
    stream = Stream("a", 1, Fixed(64), bursts, count=2**32 - 1, start_ns=800, fill="prbs")
    found = fields(port_words([Stream("z", 9, Fixed(60), Interval(pps=1)), stream]), 1)
    having(found, fill=Fill.PRBS, exponential=1, interval=320_000, burst_frames=9, burst_left=9, burst_interval=125)
    having(found, phase=100, frames_left=2**32 - 1, endless=0, sequence=0, due_fraction=0)


def test_random_states_are_those_of_murmur_hash() -> None:
    # fmix32(1) and fmix32(fmix32(1) ^ 8 * 5 + 1), with the constants of MurmurHash3.
    assert random_state(Stream("a", 0, Fixed(60), seed=0), 0) == 1
    one = 0x514E28B7
    assert fmix32(1) == one
    assert random_state(Stream("a", 5, Fixed(60)), 1) == fmix32(one ^ 41)


def fmix32(number: int) -> int:
    number = (number ^ number >> 16) * 2246822507 % 2**32
    number = (number ^ number >> 13) * 3266489909 % 2**32
    return number ^ number >> 16


# The receiving port ------------------------------------------------------------------------------------


def test_a_receiver_knows_prbs_and_places_by_slot() -> None:
    streams = [
        Stream("a", 10, Fixed(99), fill="prbs"),
        Stream("b", 11, Fixed(99), stamp=Stamp("ipv4.identification", tick=3)),
        Stream("c", 40, Fixed(99), fill="prbs", headers=IPV6, stamp=Stamp("ipv6.flow_label")),
        Stream("d", 5000, Fixed(99), probe=False, fill="prbs", stamp=Stamp("octet", 64, 64)),
    ]
    found = receiver_settings(streams, 10)
    assert found.prbs == {1, 31}
    wanted = {0: 64 | 7 << 8 | 1 << 16, 2: 18 | 1 << 8 | 3 << 11 | 1 << 16, 31: 15 | 2 << 8 | 1 << 15 | 1 << 16}
    assert {slot: place.word for slot, place in found.places.items()} == wanted


def test_ids_wrap_among_the_slots() -> None:
    assert receiver_settings([Stream("a", 1, Fixed(99), fill="prbs")], 65535).prbs == {3}


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ([Stream("a", 41, Fixed(99))], "id 41 is not among the 31 that are measured: give an id from 10 to 40"),
        ([Stream("a", 9, Fixed(99))], "id 9 is not among the 31"),
        ([Stream("a", 11, Fixed(99)), Stream("b", 11, Fixed(99), port=1)], "'a' and 'b' of id 11 come to one port"),
        (
            [
                Stream("a", 1, Fixed(99), probe=False, stamp=Stamp("octet", 64)),
                Stream("b", 2, Fixed(99), probe=False, stamp=Stamp("octet", 66)),
            ],
            "stream 'b' has no probe header, and its stamp another place than those of others without",
        ),
    ],
)
def test_streams_that_one_port_cannot_tell_apart_are_refused(streams: list[Stream], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        receiver_settings(streams, 10)


# What a port adds up to --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "interval", "share"),
    [
        (Fixed(60), Interval(pps=1_488_095), Fraction(84 * 1_488_095, 125_000_000)),
        (Fixed(1226), Interval(interval_ns=100_000), Fraction(1, 10)),
        (Fixed(1226), Interval(interval_ns=100_000, burst=Burst(5)), Fraction(1, 2)),
        (IMIX, Interval(rate_bps=2e8), Fraction(1, 5)),
        (Stepped(60, 100, 20), Interval(pps=1000), Fraction(104 * 1000, 125_000_000)),
        (RandomLength(60, 100), Interval(pps=1000, exponential=True), Fraction(104 * 1000, 125_000_000)),
        (Lengths((60, 100, 80)), Interval(pps=1000, burst=Burst(7)), Fraction(104 * 1000, 125_000_000)),
        (Fixed(60), Interval(), Fraction(1)),
    ],
)
def test_the_share_of_a_stream_is_that_of_its_octets(length: Fixed, interval: Interval, share: Fraction) -> None:
    assert share_of(Stream("a", 1, length, interval)) == share


def test_ten_tenths_are_the_whole_line() -> None:
    streams = [Stream(f"s{n}", n, Fixed(60), Interval(share=0.1)) for n in range(10)]
    assert sum(check_port(streams).values()) == 1


def test_streams_that_follow_one_another_do_not_add_up() -> None:
    # 1000 frames of 1000 ticks: the second one begins in the tick in which the first has ended.
    first = Stream("a", 1, Fixed(976), Interval(), count=1000)
    assert check_port([first, Stream("b", 2, Fixed(976), Interval(), start_ns=8_000_000)]) == {"a": 1, "b": 1}
    with pytest.raises(UsageError, match=r"add up to 200 % of the line \(a 100 %, b 100 %\)"):
        check_port([first, Stream("b", 2, Fixed(976), Interval(), start_ns=7_999_992)])


@pytest.mark.parametrize(
    ("share", "text"), [(Fraction(1, 3), "33.3333 %"), (Fraction(3, 2), "150 %"), (Fraction(1, 2**30), "0 %")]
)
def test_shares_are_said_in_per_cent(share: Fraction, text: str) -> None:
    assert percent(share) == text


def test_lists_that_are_equal_count_once() -> None:
    tables = [Lengths(tuple(range(60 + n, 124 + n))) for n in range(9)]
    streams = [Stream(f"s{n}", n, table, Interval(pps=1)) for n, table in enumerate(tables)]
    assert len(port_words([*streams[:8], Stream("t", 99, tables[0], Interval(pps=1))]).lists) == 512
    with pytest.raises(
        UsageError, match="tables and lists of port 0 have 576 entries: give 512 at most; equal ones count once"
    ):
        check_port(streams)


def test_streams_of_two_ports_are_not_of_one() -> None:
    with pytest.raises(UsageError, match="streams of ports 0, 1 are not of one port"):
        check_port([Stream("a", 1, Fixed(60)), Stream("b", 2, Fixed(60), port=1)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Interval(pps=1, share=1), "packets a second and a share of the line are given: give one of them"),
        (lambda: Interval(pps=0), "pps 0 is out of range: give frames a second, with k or M, above 0"),
        (lambda: Interval(burst=Burst(2)), "bursts need a length of time"),
        (lambda: Burst(0), "count 0 of a burst is out of range: give 1 to 65535"),
        (lambda: Lengths(()), "a table of 0 lengths is out of range: give 1 to 64"),
        (lambda: weighted({}), "a table of 0 lengths is out of range"),
        (lambda: weighted({60: 0}), "a weight of 0 is out of range: give 1 or more, or leave the length out"),
        (lambda: Stepped(60, 70, 0), "step 0 of a length is out of range"),
        (lambda: Values("udp.source", ()), "'values' of a modifier has 0 items: give 1 to 64"),
        (lambda: Increment("udp.source", step=0), "step 0 of a modifier is out of range"),
        (lambda: Increment("udp.source", first=-1), "first -1 of a modifier is out of range"),
        (lambda: Field(0, 0), "mask 0x0 of a field is out of range"),
        (lambda: Stamp("somewhere"), "place 'somewhere' of a stamp is unknown: give one of probe, octet"),
        (lambda: Stamp("octet", 60, 0), "width 0 of a stamp is out of range"),
        (lambda: Stamp("probe", 60), "a stamp in the place 'probe' has no octet of its own"),
        (lambda: Stamp(tick=16), "tick 16 of a stamp is out of range: give 0 to 15"),
        (lambda: vlan_tag(4096), "VLAN id 4096 is out of range"),
        (lambda: MplsLabel(1 << 20), "label 1048576 of an MPLS label is out of range"),
        (lambda: Headers(mpls_labels=(MplsLabel(1),) * 5), "5 MPLS labels are too many: give up to 4"),
        (lambda: Headers(transport="sctp"), "transport 'sctp' is unknown: give one of udp, tcp, none"),
        (lambda: Headers(ethertype=100), "ethertype 0x64 is out of range: give 0x600 to 0xffff"),
        (lambda: Stream(" ", 1, Fixed(60)), "it has no name: give it one"),
        (lambda: Stream("a", 65536, Fixed(60)), "id 65536 is out of range"),
        (
            lambda: Stream("a", 1, RandomLength(60, 90)),
            "random lengths can't be due back to back: give a share of 100%",
        ),
        (
            lambda: Stream("a", 1, Fixed(60), Interval(pps=0.9, exponential=True)),
            "the mean of exponential intervals of 1.111 s is out of range: give 1.073 s at most",
        ),
        (
            lambda: Stream("a", 1, Fixed(60), Interval(pps=0.02)),
            "an interval of 50.000 s is out of range: give 34.359 s at most",
        ),
        (
            lambda: Stream("a", 1, Fixed(60), start_ns=2**35),
            "start 34359738368ns is out of range: give a time with ns, us, ms or s, up to 34.359 s",
        ),
        (
            lambda: Stream("a", 1, Fixed(60), start_ns=float("nan")),
            r"start_ns is nan \(float\): give a finite number, a time with ns",
        ),
        (lambda: Interval(pps=float("inf")), r"pps is inf \(float\): give a finite number, frames a second"),
        (lambda: Burst(2, float("nan")), r"inner_ns is nan \(float\): give a finite number, a time with ns"),
        (
            lambda: Stream("a", 1, Fixed(60), Interval(interval_ns=2000, burst=Burst(3, 800))),
            "a burst lasts 2272 ns, the next one begins after 2000 ns",
        ),
        (
            lambda: Stream("a", 1, Fixed(82), headers=IPV6, modifiers=(Random(Field(18, 0xFF00)),)),
            "changes the protocol, which the checksum must not",
        ),
        (
            lambda: Stream("a", 1, Fixed(82), probe=False, checksum="host", modifiers=(Random("ipv4.source"),)),
            "field 'ipv4.source' enters the checksum, which the host can't work out then",
        ),
        (
            lambda: Stream("a", 1, IMIX, probe=False, checksum="host"),
            "the host can't work out the checksum: its length varies",
        ),
        (
            lambda: Stream(
                "a", 1, Fixed(99), Interval(), headers=Headers(identification=5), stamp=Stamp("ipv4.identification")
            ),
            "the identification 5 is where the stamp stands: leave it out",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("stream", "is_checked"),
    [
        (Stream("a", 1, Fixed(100), fill="prbs"), True),
        (Stream("a", 1, Fixed(100)), False),
        (Stream("a", 1, Fixed(100), fill="prbs", probe=False), False),
        (Stream("a", 1, Fixed(100), fill="prbs", headers=IPV6), True),  # The receiver leaves its complement out.
        (Stream("a", 1, Fixed(100), fill="prbs", checksum="complement"), False),
        (Stream("a", 1, Fixed(100), fill="prbs", stamp=Stamp("ipv4.identification")), True),
        (Stream("a", 1, Fixed(100), fill="prbs", stamp=Stamp("octet", 60, 16)), False),
    ],
)
def test_a_fill_is_checked_where_nothing_else_stands_in_it(stream: Stream, is_checked: bool) -> None:
    assert stream.has_checked_fill == is_checked
    assert receiver_settings([stream], 1).prbs == ({1} if is_checked else set())


# Words against the model --------------------------------------------------------------------------


SEED = 20261124
FRAMES = 300
FILLS = {Fill.ZERO: "zero", Fill.COUNTING: "counting", Fill.PRBS: "prbs"}
CLOCKS = (8 << 40, (8 << 40) + 12345, (8 << 40) * 9999 // 10_000, (8 << 40) * 10_001 // 10_000)


def stamp_of(start: int) -> int:
    return 0x0123_4567_89AB_CDEF + 8 * start


def contents_of(words: PortWords) -> Contents:
    """Return the memories of a port, what isn't written as 0."""
    sizes = (STREAMS * STREAM_WORDS, STREAMS * MODIFIERS * MODIFIER_WORDS, 512, STREAMS * HEADER_WORDS_OF_STREAM)
    parts = (words.schedule, words.modifiers, words.lists, words.headers)
    return Contents(*([*part, *[0] * (size - len(part))] for part, size in zip(parts, sizes, strict=True)))


def frames_of(words: PortWords) -> Iterator[ExpectedFrame]:
    random_program = Program(contents_of(words), words.mask)
    while (frame := random_program.next_frame()) is not None:
        yield frame


def built(frame: ExpectedFrame, stamp_ns: int) -> bytes:
    """Return the octets of a frame, put together as its settings say."""
    settings = dict(zip((*SETTINGS, "stamp_octets_less_1"), frame.settings, strict=True))
    start = struct.pack(f"<{len(frame.header)}I", *frame.header)
    if settings["with_probe"]:
        start += frame.sequence.to_bytes(4) + bytes(8)
    sent = bytearray((start + filling(FILLS[Fill(settings["fill"])]))[: frame.length])
    if settings["stamp_enable"]:
        at, count = settings["stamp_offset"], settings["stamp_octets_less_1"] + 1
        stamp = (stamp_ns >> 4 * settings["stamp_shift"]) % 2 ** (8 * count)
        if settings["stamp_nibble"]:
            stamp = stamp % 2 ** (8 * count - 4) | sent[at] >> 4 << 8 * count - 4
        sent[at : at + count] = stamp.to_bytes(count)
        if settings["stamp_mend"]:
            lowered = int.from_bytes(sent[at + 6 : at + 8]) - stamp
            sent[at + 6 : at + 8] = (lowered + 0xFFFF * (lowered < 0)).to_bytes(2)
    if settings["checksum_enable"]:
        first = settings["payload_offset"]
        complement = ones_sum(bytes(sent[first:-2]), frame.checksum_seed) ^ 0xFFFF
        sent[-2:] = complement.to_bytes(2, "little" if (frame.length - first) % 2 else "big")
    return bytes(sent)


def random_program(seed: int) -> tuple[list[Stream], int]:
    maker = StreamMaker(SEED + seed)
    streams = maker.streams(maker.random.randint(1, STREAMS), maker.random.choice((0.5, 0.95, 1)))
    return streams, maker.random.choice(CLOCKS)


@pytest.mark.sample(7)
@pytest.mark.parametrize("seed", range(30))
def test_frames_of_the_words_are_those_of_the_model(seed: int) -> None:
    print(f"seed {SEED} + {seed}")
    streams, increment = random_program(seed)
    wanted = schedule(streams, FRAMES, increment)
    frames = [frame for frame, _ in zip(frames_of(port_words(streams, increment)), range(FRAMES), strict=False)]
    found = [(frame.stream, frame.sequence, frame.due, frame.length) for frame in frames]
    assert found == wanted[["stream", "sequence", "due", "length"]].tolist()
    sent = octets(streams, wanted, stamp_of)
    for frame, start, model in zip(frames, wanted["start"].tolist(), sent, strict=True):
        assert built(frame, stamp_of(start)).hex() == model.hex(), streams[frame.stream]
