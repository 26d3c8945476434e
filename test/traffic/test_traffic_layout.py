# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Streams as words: fields of the memories worked out by hand."""

import struct
from fractions import Fraction

import pytest

from liteprobe.cores.formats import MODIFIER_FIELDS, STREAM_FIELDS, Fill, LengthKind, ModifierOp
from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.layout import PortWords, Timing, port_words, random_state, timing
from liteprobe.host.traffic.load import receiver_settings
from liteprobe.host.traffic.stream import (
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
)
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
