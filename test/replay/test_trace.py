# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Traces: every word of every record against a model, every start against exact fractions; files that can't be replayed."""

import bz2
import gc
import gzip
import lzma
import random
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import lz4.frame
import numpy as np
import pytest
import zstandard
from scapy.utils import RawPcapReader

from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.extras import MissingExtraError
from liteprobe.host.device.link.sim import SimLink, SimOptions
from liteprobe.host.packets import files, window
from liteprobe.host.packets.files import as_pcap
from liteprobe.host.traffic.intervals import NOMINAL, Burst, Interval
from liteprobe.host.traffic.lengths import Fixed, RandomLength
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.trace import Trace, fitting, scaled
from liteprobe.sim.drivers.replay.capture_files import (
    Interface,
    Packet,
    block,
    epb,
    pcap,
    pcapng,
    random_packets,
    section,
)
from liteprobe.sim.drivers.replay.capture_truth import Differs, hostile_file, judged
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row
from liteprobe.sim.drivers.tools.refusals import refusal
from liteprobe.sim.models.traffic.replay import Record, decode

TICK_S = Fraction(8, 10**9)


def written(folder: Path, content: bytes) -> Path:
    path = folder / "frames"
    path.write_bytes(content)
    return path


def decoded(trace: Trace, **given: int) -> list[Record]:
    return decode([int(word) for words in trace.records(**given) for word in words])


def nearest(exact: Fraction) -> int:
    """Return the nearest whole number, halves upwards."""
    return int((exact + Fraction(1, 2)) // 1)


def with_octets(packets: list[Packet], fcs: int = 0) -> list[Packet]:
    """Return the packets that can be sent."""
    return [one for one in packets if one.octets and one.length > fcs]


def expected(packets: list[Packet], snap: int = 9000, factor: Fraction = Fraction(1), fcs: int = 0) -> list[Record]:
    """Return what is to be sent of packets that have octets, by arithmetic."""
    found = []
    packets = with_octets(packets, fcs)
    for one in packets:
        length = max(one.length - fcs, 0)
        kept = min(len(one.octets), length, snap)
        tick = nearest((one.time_s - packets[0].time_s) * factor / TICK_S)
        found.append(Record(tick, one.octets[:kept] + bytes(max(length, 60) - kept), kept, None))
    return found


# Files --------------------------------------------------------------------------------------------


@pytest.mark.sample(5)
@pytest.mark.parametrize("size", [200, 3000, 4 << 20])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("per_second", [10**6, 10**9])
def test_each_word_of_a_pcap_is_as_the_model_has_it(
    tmp_path: Path, per_second: int, order: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its byte order and its unit of time, and wherever it is cut into windows."""
    monkeypatch.setattr(window, "WINDOW", size)
    packets = random_packets(seed=size, count=400)
    trace = Trace.from_pcap(written(tmp_path, pcap(packets, per_second, order)))
    assert decoded(trace) == expected(packets)
    assert decoded(trace.snapped(61)) == expected(packets, snap=61)


@pytest.mark.sample(7)
@pytest.mark.parametrize("size", [300, 3000, 4 << 20])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("resolutions", [(6,), (9,), (12,), (6, 9, 3), (0x80 | 20, 9)])
def test_each_word_of_a_pcapng_is_as_the_model_has_it(
    tmp_path: Path, resolutions: tuple[int, ...], order: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several interfaces have resolutions and offsets of their own; comments stand behind the packets."""
    monkeypatch.setattr(window, "WINDOW", size)
    origin_s = 1_699_999_000 if resolutions == (12,) else 0  # Picoseconds of 64 bits last 213 days.
    interfaces = [Interface(one, offset_s=origin_s + 1000 * number) for number, one in enumerate(resolutions)]
    found = random_packets(seed=size, count=200, interfaces=len(interfaces), gap_ns=2_000_000)
    units = [interfaces[one.interface].per_second for one in found]
    packets = [  # As the file can have their times.
        Packet(Fraction(int(one.time_s * unit), unit), one.octets, one.length, one.interface)
        for one, unit in zip(found, units, strict=True)
    ]
    packets.sort(key=lambda one: one.time_s)
    trace = Trace.from_pcap(written(tmp_path, pcapng(packets, interfaces, order, comment=b"a comment")))
    assert decoded(trace) == expected(packets)


def test_sections_of_both_byte_orders_follow_one_another(tmp_path: Path) -> None:
    packets = random_packets(seed=3, count=60)
    content = (
        pcapng(packets[:25], order="<") + pcapng(packets[25:26], (Interface(6),), ">") + pcapng(packets[26:], order="<")
    )
    assert decoded(Trace.from_pcap(written(tmp_path, content))) == expected(packets)


def test_a_block_longer_than_a_window_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "WINDOW", 4096)
    packets = random_packets(seed=3, count=60)
    long = struct.pack("<II", 0x0BAD, 20012) + bytes(20000) + struct.pack("<I", 20012)
    first = pcapng(packets[:30])
    begun = len(section([Interface()]))
    for content in (first + long + pcapng(packets[30:])[begun:], long.join([first[:begun], pcapng(packets)[begun:]])):
        assert decoded(Trace.from_pcap(written(tmp_path, content))) == expected(packets)
    with pytest.raises(UsageError, match="the block before packet 31 is cut: 14012 octets are missing"):
        decoded(Trace.from_pcap(written(tmp_path, first + long[:6000])))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("count", [63, 64, 65, 200, 500])
def test_packets_of_one_length_are_found_at_once_and_none_behind_them(
    tmp_path: Path, count: int, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the first one that is longer or shorter, or the end of the window."""
    monkeypatch.setattr(window, "WINDOW", 30_000)
    alike = [Packet(Fraction(number, 1000), bytes([number % 251]) * 61, 61) for number in range(count)]
    others = [Packet(Fraction(number, 1000), bytes(62 - number % 2), 62) for number in range(count, count + 9)]
    for packets in (
        alike,
        alike + others,
        others[:1] + [Packet(one.time_s + 1, one.octets, one.length) for one in alike],
    ):
        packets = [Packet(Fraction(at, 1000), one.octets, one.length) for at, one in enumerate(packets)]
        assert decoded(Trace.from_pcap(written(tmp_path, pcap(packets, order=order)))) == expected(packets)


def test_scapy_reads_the_same_packets(tmp_path: Path) -> None:
    path = written(tmp_path, pcap(random_packets(seed=4, count=100), 10**9))
    found = decoded(Trace.from_pcap(path))
    assert [one.octets[: one.snap] for one in found] == [octets for octets, _ in RawPcapReader(str(path))]


@pytest.mark.parametrize("fcs", [2, 4])
def test_an_fcs_in_the_file_is_left_out(tmp_path: Path, fcs: int) -> None:
    """As many octets as the file says, in a pcap's link type, or of an interface, in octets or bits."""
    packets = random_packets(seed=5, count=200)
    interfaces = [(Interface(fcs=fcs),), (Interface(fcs=8 * fcs),)]
    for content in (pcap(packets, fcs=fcs), *(pcapng(packets, one) for one in interfaces)):
        trace = Trace.from_pcap(written(tmp_path, content))
        assert decoded(trace) == expected(packets, fcs=fcs)
        assert trace.summary().counts["fcs"] == len(expected(packets, fcs=fcs))


def test_a_trace_is_read_in_pieces_and_never_kept(tmp_path: Path) -> None:
    packets = random_packets(seed=6, count=2000)
    words = Trace.from_pcap(written(tmp_path, pcap(packets * 3)), sort=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window, "WINDOW", 1 << 16)
        longest = max(len(chunk.octets) for chunk in words.source.frames())
    assert longest <= (1 << 16) + 4


# Times --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1, 2, Fraction(1, 3), 0.7, "1.0002", Fraction(10**9 + 7, 10**9)])
def test_every_start_is_within_half_a_tick_of_its_time(tmp_path: Path, factor: float) -> None:
    """Over days, and whatever the factor: nothing drifts."""
    chance = random.Random(7)
    time_ns, packets = 0, []
    for _ in range(500):
        packets.append(Packet(Fraction(time_ns, 10**9), bytes(60), 60))
        time_ns += chance.choice((1, 7, 999_999_999, 10**12 + 1))
    exact = Fraction(str(factor))
    trace = Trace.from_pcap(written(tmp_path, pcap(packets))).stretched(exact)
    for record, packet in zip(decoded(trace), packets, strict=True):
        assert abs(record.tick - packet.time_s * exact / TICK_S) <= Fraction(1, 2)


def test_the_probes_clock_stretches_times_and_never_the_line(tmp_path: Path) -> None:
    packets = random_packets(seed=8, count=300)
    trace = Trace.from_pcap(written(tmp_path, pcap(packets)))
    increment = NOMINAL * 10001 // 10000  # 100 ppm more nanoseconds a tick: fewer ticks.
    assert decoded(trace, increment=increment) == expected(packets, factor=Fraction(NOMINAL, increment))
    assert decoded(trace.at_top(), increment=increment) == decoded(trace.at_top())


def test_scaling_is_exact_or_off_by_less_than_a_part_in_2_60() -> None:
    chance = random.Random(9)
    for _ in range(300):
        ratio = Fraction(2) ** chance.randint(-39, 38) * Fraction(
            chance.randint(2**60, 2**61), 2**60 + chance.randint(0, 2**58)
        )
        near = fitting(ratio)
        assert abs(near / ratio - 1) < Fraction(1, 2**58)
        times = [chance.randrange(int(2**60 / max(ratio, 1))) for _ in range(50)]
        assert scaled(np.array(times, np.int64), near).tolist() == [nearest(time * near) for time in times]


def test_at_a_rate_and_back_to_back_the_slots_follow_one_another(tmp_path: Path) -> None:
    packets = with_octets(random_packets(seed=10, count=300))
    trace = Trace.from_pcap(written(tmp_path, pcap(packets)))
    ends = np.cumsum([0, *(max(one.length, 60) + 24 for one in packets)]).tolist()
    assert [one.tick for one in decoded(trace.at_top())] == ends[:-1]
    assert [one.tick for one in decoded(trace.at_rate(3e8))] == [nearest(Fraction(10 * end, 3)) for end in ends[:-1]]
    slower = [nearest(end * Fraction(10002, 10000)) for end in ends[:-1]]
    assert [one.tick for one in decoded(trace.at_top().with_margin(200))] == slower
    assert trace.at_top().summary().expected_late == 0


def test_repeats_follow_after_a_mean_interval(tmp_path: Path) -> None:
    packets = with_octets(random_packets(seed=11, count=101))
    trace = Trace.from_pcap(written(tmp_path, pcap(packets)))
    once, thrice = decoded(trace), decoded(trace.repeated(3))
    span_ns = (packets[-1].time_s - packets[0].time_s) * 10**9
    turn_ns = span_ns + span_ns / (len(packets) - 1)
    ticks = [
        nearest(turn_ns * turn / 8 + (one.time_s - packets[0].time_s) / TICK_S) for turn in range(3) for one in packets
    ]
    assert [one.tick for one in thrice] == ticks
    assert [one.octets for one in thrice] == 3 * [one.octets for one in once]
    assert trace.turn_ticks() == nearest(turn_ns / 8) - once[-1].tick
    assert decoded(trace, first_ticks=12)[0].tick == 12
    single = Trace.from_pcap(written(tmp_path, pcap(packets[:1]))).repeated(4)
    slot = max(packets[0].length, 60) + 24
    assert [one.tick for one in decoded(single)] == [0, slot, 2 * slot, 3 * slot]


def test_long_times_are_waited_for(tmp_path: Path) -> None:
    """A record has 32 bits of ticks: 34 s."""
    gaps_s = [0, Fraction(2**32 - 1) * TICK_S, Fraction(2**32) * TICK_S, 1000, 35]
    times_s = [sum(gaps_s[: number + 1], Fraction(0)) for number in range(len(gaps_s))]
    packets = [Packet(Fraction(time_s), bytes(61), 61) for time_s in times_s]
    assert decoded(Trace.from_pcap(written(tmp_path, pcap(packets)))) == expected(packets)


# Late by arithmetic -------------------------------------------------------------------------------


def test_frames_that_the_line_can_not_start_in_time_are_counted_beforehand(tmp_path: Path) -> None:
    packets = with_octets(random_packets(seed=12, count=1010, gap_ns=8000))[:1000]
    trace = Trace.from_pcap(written(tmp_path, pcap(packets)))
    free = late = 0
    first = None
    for number, one in enumerate(expected(packets)):
        start = max(one.tick, free)
        if start > one.tick:
            late += 1
            first = number if first is None else first
        free = start + len(one.octets) + 24
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window, "WINDOW", 5000)
        found = trace.summary()
    assert late > 100
    assert (found.expected_late, found.first_late) == (late, first)
    assert found.last_start + len(expected(packets)[-1].octets) + 24 == free
    assert found.frames == 1000
    assert found.octets == sum(max(one.length, 60) for one in packets)
    assert found.words == sum(len(words) for words in trace.records())
    assert found.cut == sum(len(one.octets) < one.length for one in packets)


# Made ---------------------------------------------------------------------------------------------


def test_a_constant_rate_has_no_drift_and_numbers_its_frames() -> None:
    interval_ns = Fraction(1_000_000, 7)
    found = decoded(Trace.cbr(Interval(interval_ns=interval_ns), 60, 20_000))
    assert [one.tick for one in found] == [nearest(number * interval_ns / 8) for number in range(20_000)]
    assert [int.from_bytes(one.octets[48:52]) for one in found] == list(range(20_000))
    assert {one.octets[:48] + one.octets[52:] for one in found} == {found[0].octets[:48] + found[0].octets[52:]}


def test_a_mix_has_its_lengths_and_only_their_headers_are_streamed() -> None:
    found = decoded(Trace.imix(Interval(), 24))
    assert sorted(len(one.octets) for one in found) == 14 * [60] + 8 * [590] + 2 * [1514]
    assert {one.snap for one in found} == {60}
    assert [one.tick for one in found] == np.cumsum([0, *(len(one.octets) + 24 for one in found[:-1])]).tolist()


def test_exponential_intervals_have_their_mean_and_are_the_same_each_time() -> None:
    trace = Trace.poisson(Interval(pps=100_000), RandomLength(60, 200), 40_000, seed=5)
    ticks = [one.tick for one in decoded(trace)]
    gaps = np.diff(ticks)
    assert ticks == [one.tick for one in decoded(trace)]
    assert abs(gaps.mean() / 1250 - 1) < 4 / 200  # Four times the error of the mean of 40,000.
    assert abs((gaps > 1250).mean() - np.exp(-1)) < 0.01


def test_a_trace_without_an_end_goes_on() -> None:
    endless = Trace.cbr(Interval(pps=1e5), Fixed(60), None).records()
    assert sum(len(next(endless)) for _ in range(20)) > 10**6


# Stamps -------------------------------------------------------------------------------------------


def frame(kind: str, tags: int) -> bytes:
    """Return a frame with VLAN tags: IPv4, IPv6 or ARP."""
    types = {"4": b"\x08\x00", "6": b"\x86\xdd", "arp": b"\x08\x06"}
    return bytes(12) + b"\x81\x00\x00\x05" * tags + types[kind] + bytes(range(60))


@pytest.mark.parametrize(
    ("place", "kind", "inner", "word"),
    [
        ("ipv4.identification", "4", 4, 1 << 8 | 2 << 11 | 1 << 16),
        ("ipv4.checksum", "4", 10, 1 << 8 | 2 << 11),
        ("ipv6.flow_label", "6", 1, 2 << 8 | 2 << 11 | 1 << 15),
    ],
)
def test_a_stamp_stands_in_the_field_of_those_frames_that_have_it(
    tmp_path: Path, place: str, kind: str, inner: int, word: int
) -> None:
    shapes = [(one, tags) for one in ("4", "6", "arp") for tags in range(4)]
    packets = [Packet(Fraction(number), frame(*shape), 90) for number, shape in enumerate(shapes)]
    packets.append(Packet(Fraction(len(shapes)), frame(kind, 0)[: 14 + inner], 90))  # Cut before its end.
    trace = Trace.from_pcap(written(tmp_path, pcap(packets))).stamped(Stamp(place, tick=2))
    wanted = [word | 14 + 4 * tags + inner if one == kind else None for one, tags in shapes]
    found = decoded(trace)
    assert [one.stamp for one in found] == [*wanted, None]
    assert [one.octets for one in found] == [one.octets for one in expected(packets)]
    assert trace.summary().stamped == 4
    assert trace.summary().words == sum(len(words) for words in trace.records())


def test_a_stamp_at_an_octet_stands_where_there_is_room(tmp_path: Path) -> None:
    packets = [Packet(Fraction(number), bytes(size), size) for number, size in enumerate((49, 50, 51, 600))]
    trace = Trace.from_pcap(written(tmp_path, pcap(packets))).stamped(Stamp("octet", octet=42))
    assert [one.stamp for one in decoded(trace)] == [None, *3 * [42 | 7 << 8]]
    assert [one.stamp for one in decoded(trace.snapped(49))] == 4 * [None]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda trace: trace.stamped(Stamp("probe")),
            "give one of octet, ipv4.identification, ipv4.checksum, ipv6.flow_label",
        ),
        (lambda trace: trace.stamped(Stamp("octet", octet=256)), "octet 256 of a stamp is out of range: give 0 to 255"),
        (lambda trace: trace.snapped(9001), "snap length 9001 is out of range: give 0 to 9000"),
        (lambda trace: trace.stretched(0), "times can't be stretched by 0: give more than 0"),
        (lambda trace: trace.at_rate(1.1e10), r"give 1 to 1e9 \(1e10 at 10 Gb/s\), or have it back to back"),
        (lambda trace: trace.repeated(0), "can't be sent 0 times: give 1 or more"),
        (lambda _: Trace.cbr(Interval(pps=1, burst=Burst(2)), 60, 1), "a trace is made without bursts"),
        (lambda _: Trace.cbr(Interval(), 60, 0), "a trace of 0 frames is out of range"),
        (lambda _: Trace.cbr(Interval(), 60, None).summary(), "a trace without an end has no summary"),
    ],
)
def test_what_no_trace_can_be_is_refused(change, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=words):
        change(Trace.cbr(Interval(), 60, 3))


@pytest.mark.parametrize("change", [lambda trace: trace.at_top(), lambda trace: trace.at_rate(1e8)])
def test_what_changes_nothing_at_a_rate_is_said(tmp_path: Path, change: Callable[[Trace], Trace]) -> None:
    path = written(tmp_path, pcap([Packet(Fraction(0), bytes(60), 60), Packet(Fraction(9), bytes(60), 60)]))
    trace = Trace.from_pcap(path, sort=True).limited(1)
    assert trace.summary().notes == ("1 gaps are shortened to 1 s, by 8 s in all",)
    assert change(trace).summary().notes == (
        "without effect: --sort and --max-gap; at a rate, and back to back, frames go as they stand in the file",
    )


def test_names_of_link_types_are_told() -> None:
    assert files.LINKS[113] == "Linux cooked"


# Files that can't be replayed as they are ---------------------------------------------------------


Write = Callable[[list[Packet]], bytes]
KINDS: list[Write] = [pcap, pcapng]


@pytest.fixture(params=KINDS, ids=["pcap", "pcapng"])
def write(request: pytest.FixtureRequest) -> Write:
    """Writes a file of either kind."""
    return request.param  # type: ignore[no-any-return]


def read(folder: Path, content: bytes, **how: bool) -> list[Record]:
    path = folder / "frames.pcap"
    path.write_bytes(content)
    return decode([int(word) for words in Trace.from_pcap(path, **how).records() for word in words])


def plain(count: int = 20, length: int = 100) -> list[Packet]:
    return [Packet(Fraction(number, 1000), bytes([number]) * length, length) for number in range(count)]


# Cut and corrupt ----------------------------------------------------------------------------------


def test_a_file_that_is_cut_anywhere_is_refused_or_kept_up_to_there(tmp_path: Path, write: Write) -> None:
    """At every octet of its last packets; between two of them it is whole."""
    packets = plain(4, 61)
    whole = write(packets)
    ends = {len(write(packets[: count + 1])): count + 1 for count in range(4)}
    for size in range(len(write(packets[:2])), len(whole) + 1):
        count = max(found for end, found in ends.items() if end <= size)
        if size in ends:
            assert len(read(tmp_path, whole[:size])) == count
            continue
        with pytest.raises(
            UsageError, match=rf"packet {count + 1} \(at octet \d+\) can't be read: it.* cut after \d+ of \d+ oct"
        ):
            read(tmp_path, whole[:size])
        assert [one.octets for one in read(tmp_path, whole[:size], repair=True)] == [
            one.octets for one in packets[:count]
        ]


def test_the_octet_that_is_named_is_that_of_the_packet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write
) -> None:
    packets = plain(20)
    whole = write(packets)
    at = len(write(packets[:13]))
    for size in (300, 4 << 20):
        monkeypatch.setattr(window, "WINDOW", size)
        with pytest.raises(UsageError, match=rf"packet 14 \(at octet {at}\)"):
            read(tmp_path, whole[: at + 50])


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (8, 262_145, "packet 3 .* it would be 262145 octets long"),
        (8, 0x7FFFFFFF, "packet 3 .* it would be 2147483647 octets long"),
        (8, 116, "packet 4 .* it would be"),  # Among the octets of the next one.
    ],
)
def test_a_corrupt_header_of_a_pcap_is_named(tmp_path: Path, place: int, value: int, words: str) -> None:
    content = bytearray(pcap(plain()))
    struct.pack_into("<I", content, 24 + 2 * 116 + place, value)
    with pytest.raises(UsageError, match=words):
        read(tmp_path, bytes(content))
    assert len(read(tmp_path, bytes(content), repair=True)) == int(words.split()[1]) - 1


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (4, 133, "packet 3 .* a block can't be 133 octets long"),
        (4, 0, "packet 3 .* a block can't be 0 octets long"),
        (4, 1 << 20, "packet 3 .* a packet can't be 1048576 octets long"),
        (4, 24, "packet 3 .* can't be 24 octets long"),
        (8, 7, "packet 3 .* is corrupt"),  # Interface.
        (20, 120, "packet 3 .* is corrupt"),  # Kept.
        (128, 128, "packet 3 .* is corrupt"),  # Size once more.
    ],
)
def test_a_corrupt_block_of_a_pcapng_is_named(tmp_path: Path, place: int, value: int, words: str) -> None:
    content = bytearray(pcapng(plain()))
    struct.pack_into("<I", content, len(section([Interface()])) + 2 * 132 + place, value)
    with pytest.raises(UsageError, match=words):
        read(tmp_path, bytes(content))
    assert len(read(tmp_path, bytes(content), repair=True)) == 2


def test_whatever_is_broken_nothing_else_than_an_error_comes_of_it(tmp_path: Path, write: Write) -> None:
    """Random octets of random files are changed: frames or a UsageError, and with repair what is before the first change."""
    for seed in range(150):
        chance = random.Random(seed)
        packets = random_packets(seed, 30, most=200)
        content = bytearray(write(packets))
        places = sorted(chance.randrange(24, len(content)) for _ in range(chance.randint(1, 3)))
        for place in places:
            content[place] = chance.randrange(256)
        try:
            read(tmp_path, bytes(content), sort=True)
        except UsageError as error:
            assert (
                "packet" in str(error)
                or "section" in str(error)
                or "can't be read" in str(error)
                or "FCS" in str(error)
            )


# Other kinds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty: give a file that tcpdump"),
        (b"\x1f\x8b\x08\x00" + bytes(40), r"is empty \(its gzip data are c"),
        (b"just text, and more of it than a header has", "is neither pcap nor pcapng"),
        (pcap(plain())[:20], "it ends within its header"),
        (
            pcap(plain(), link=113),
            r"packet 1 \(at octet 40\) is of link type 113 \(Linux cooked\), and a probe sends Ethernet",
        ),
        (pcapng(plain(), (Interface(link=127),)), r"packet 1 .* is of link type 127 \(radiotap\)"),
        (
            pcapng(plain()) + block(3, struct.pack("<I", 60) + bytes(60)),
            "packet 21 .* Simple Packet Block, which has no time",
        ),
        (pcap([]), "the trace has no frame: nothing would be sent"),
        (pcapng([]), "the trace has no frame: nothing would be sent"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read(tmp_path, content)


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    assert "there is no such file" in refusal(Trace.from_pcap, tmp_path / "nothing.pcap")
    assert "it is neither a file nor a pipe" in refusal(Trace.from_pcap, tmp_path)


@pytest.mark.parametrize(("length", "fcs"), [(9001, 0), (9005, 4), (65549, 0)])
def test_a_packet_that_is_too_long_is_refused_by_its_number(tmp_path: Path, length: int, fcs: int) -> None:
    packets = [*plain(6), Packet(Fraction(1), bytes(length), length)]
    at = 24 + 6 * 116 + 16
    advice = "a probe sends 9000 at most: leave it out with editcap, or capture with offloads off"
    with pytest.raises(UsageError, match=rf"packet 7 \(at octet {at}\) is {length - fcs} octets long, and {advice}"):
        read(tmp_path, pcap(packets, fcs=fcs))
    assert len(read(tmp_path, pcap([*plain(6), Packet(Fraction(1), bytes(9000 + fcs), 9000 + fcs)], fcs=fcs))) == 7


# Times that go back -------------------------------------------------------------------------------


def shuffled(seed: int, reach: int, count: int = 9000) -> list[Packet]:
    """Return packets that are up to ``reach`` places from where they belong, some of equal times."""
    chance = random.Random(seed)
    places = sorted(range(count), key=lambda number: (number + chance.uniform(0, reach), number))
    return [Packet(Fraction(number // 3, 10**6), number.to_bytes(4) * 16, 64) for number in places]


def test_times_that_go_back_are_refused_by_their_number(tmp_path: Path, write: Write) -> None:
    packets = plain(9)
    packets[5] = Packet(packets[4].time_s - Fraction(3, 10**6), bytes(60), 60)
    with pytest.raises(
        UsageError, match=r"the time of packet 6 \(at octet \d+\) is 3,000 ns before .*: sort them with --sort"
    ):
        read(tmp_path, write(packets))


@pytest.mark.parametrize("size", [5000, 100_000, 4 << 20])
def test_times_that_go_back_are_sorted_as_asked(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "WINDOW", size)
    packets = shuffled(1, 3000)
    assert [one.octets[:4] for one in read(tmp_path, pcap(packets), sort=True)] == [
        one.octets[:4] for one in sorted(packets, key=lambda one: one.time_s)
    ]


def test_times_that_go_back_too_far_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "WINDOW", 50_000)
    packets = [*(Packet(Fraction(number), bytes(60), 60) for number in range(9000)), Packet(Fraction(3), bytes(60), 60)]
    with pytest.raises(
        UsageError, match=r"packet 9001 .* more than 4096 packets before: sort the file with reordercap"
    ):
        read(tmp_path, pcap(packets), sort=True)


def test_a_time_that_jumps_by_days_is_refused(tmp_path: Path) -> None:
    packets = [Packet(Fraction(0), bytes(60), 60), Packet(Fraction(10**9), bytes(60), 60)]
    said = "packet 2 (at octet 116) comes 11,574.1 days after the one before: give --max-gap 1s"
    assert said in refusal(read, tmp_path, pcap(packets))


# One packet of each kind --------------------------------------------------------------------------


def records(
    *heads: tuple[int, int, int, bytes], field: int = 1, magic: int = 0xA1B2C3D4, version: tuple[int, int] = (2, 4)
) -> bytes:
    """Return a pcap of records: second, part, length, octets."""
    found = struct.pack("<IHHiIII", magic, *version, 0, 0, 1 << 16, field)
    for second, part, length, octets in heads:
        sizes = (length, len(octets)) if version[1] < 3 else (len(octets), length)
        more = bytes(8) if magic == 0xA1B2CD34 else b""
        found += struct.pack("<IIII", second, part, *sizes) + more + octets
    return found


A, B, C = bytes([1]) * 80, bytes([2]) * 54, bytes([3]) * 40
US = 125  # Ticks.
ONLY_FIRST = [(0, A)]
#: What is in a file; what is counted of it; ticks and octets of what is sent; what is said.
CASES: dict[str, tuple[bytes, dict[str, int], list[tuple[int, bytes]], list[str]]] = {
    "cut, and no longer than 60": (records((5, 0, 60, B)), {"cut": 1}, [(0, B + bytes(6))], []),
    "padded": (
        records((5, 0, 40, C)),
        {"padded": 1},
        [(0, C + bytes(20))],
        ["1 frames of less than 60 octets are padded with zeros"],
    ),
    "padded and cut": (
        records((5, 0, 50, C)),
        {"padded": 1, "cut": 1},
        [(0, C + bytes(20))],
        ["1 frames of less than 60 octets are padded with zeros"],
    ),
    "no octets": (
        records((5, 0, 80, A), (5, 1, 0, b""), (5, 2, 100, b"")),
        {"empty": 2},
        ONLY_FIRST,
        ["2 records without octets are left out"],
    ),
    "more octets than its length": (
        records((5, 0, 60, A)),
        {"longer": 1},
        [(0, A[:60])],
        ["1 frames have more octets in the file than they had on the wire: they are cut to their length"],
    ),
    "microseconds of a second and more": (
        records((5, 999_999, 80, A), (5, 1_000_001, 80, A), (5, 3_999_999, 80, A)),
        {"carried": 2},
        [(0, A), (2 * US, A), (3_000_000 * US, A)],
        ["2 times have a part of a second of more than one: what is more is carried into the seconds"],
    ),
    "FCS of the file": (
        records((5, 0, 80, A), field=1 | 1 << 26 | 2 << 28),
        {"fcs": 1},
        [(0, A[:76])],
        ["the FCS of 1 frames is left out, because the probe sends its own"],
    ),
    "changed libpcap": (records((5, 0, 80, A), (5, 1, 80, A), magic=0xA1B2CD34), {}, [(0, A), (US, A)], []),
    "lengths the other way round": (records((5, 0, 80, B), version=(2, 2)), {"cut": 1}, [(0, B + bytes(26))], []),
    "FCS of a packet": (
        section([Interface()]) + epb(0, A, flags=4 << 5) + epb(1000, A),
        {"fcs": 1},
        [(0, A[:76]), (US, A)],
        ["the FCS of 1 frames is left out, because the probe sends its own"],
    ),
    "obsolete packet": (
        section([Interface()]) + block(2, struct.pack("<HHIIII", 0, 9, 0, 5000, 80, 80) + A) + epb(6000, A),
        {},
        [(0, A), (US, A)],
        [],
    ),
    "2^-32 s for 40 minutes": (
        section([Interface(0x80 | 32), Interface(12)])
        + b"".join(epb(number * (1234 << 32 | 5), A) for number in (0, 1))
        + epb(2468 * 10**12 + 4_000, A, interface=1),
        {},
        [(0, A), (1234 * 125_000_000, A), (2468 * 125_000_000 + 1, A)],
        [],
    ),
    "half a tick more, exactly": (
        section([Interface(0x80 | 60), Interface(18)])
        + epb(0, A)
        + epb(4 * 10**9 - 1, A, interface=1)
        + epb(4 * 10**9, A, interface=1),
        {},
        [(0, A), (0, A), (1, A)],
        [],
    ),
    "seconds that only 64 bits hold": (
        section([Interface(0, offset_s=-(2**63))]) + epb(2**63 + 5, A) + epb(2**63 + 6, A),
        {},
        [(0, A), (125_000_000, A)],
        [],
    ),
}


# Packed -------------------------------------------------------------------------------------------


SKIPPED = bytes.fromhex("50 2a 4d 18 04 00 00 00 2a 00 00 00")  # What pzstd begins with.
PACKED = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "lz4": lz4.frame.compress,
}


@pytest.fixture(params=PACKED)
def packing(request: pytest.FixtureRequest) -> tuple[str, Callable[[bytes], bytes]]:
    """Name of a packing, and what packs."""
    return request.param, PACKED[request.param]


def test_a_packed_file_is_read_by_what_it_is_and_not_by_its_name(
    tmp_path: Path, packing: tuple[str, Callable[[bytes], bytes]]
) -> None:
    """Of one member or several, with zeros after them, as tapes have; and its copy is gone with the trace."""
    content = pcapng(plain())
    nothing = SKIPPED * (packing[0] in ("zstd", "lz4"))
    for before, parts in ((b"", [content]), (nothing, [content[:700], content[700:]])):
        path = written(tmp_path, before + b"".join(map(packing[1], parts)) + bytes(512 * (packing[0] == "gzip")))
        trace = Trace.from_pcap(path)
        copy = trace.source._plain.path  # type: ignore[attr-defined]
        assert decoded(trace) == expected(plain())
        assert copy.exists()
        del trace
        gc.collect()
        assert not copy.exists()


def test_a_packed_file_that_is_cut_or_corrupt_is_refused_or_kept_up_to_there(
    tmp_path: Path, packing: tuple[str, Callable[[bytes], bytes]]
) -> None:
    name, pack = packing
    chance = random.Random(3)
    packets = [Packet(Fraction(number, 1000), chance.randbytes(900), 900) for number in range(300)]
    content = pack(pcap(packets[:200])) + pack(pcap(packets)[len(pcap(packets[:200])) :])
    for broken, why in (
        (content[:-20], "cut before their end"),
        (content[: len(pack(pcap(packets[:200])))] + b"something else", "there is something else"),
    ):
        said = refusal(read, tmp_path, broken)
        assert f"{name} data" in said and why in said and "replay what is before with --repair" in said
        got = read(tmp_path, broken, repair=True)
        assert len(got) >= 200 and [one.octets for one in got] == [one.octets for one in packets[: len(got)]]
    if name in ("gzip", "bzip2", "xz"):  # Others have no checksum, unless asked.
        spoilt = bytearray(content)
        spoilt[len(spoilt) // 3] ^= 0x55
        assert f"{name} data are corrupt" in refusal(read, tmp_path, bytes(spoilt))


def test_what_unpacks_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setattr("liteprobe.host.base.folders.is_clone", lambda: False)
    with pytest.raises(
        MissingExtraError, match=r'captures packed with zstd or lz4 need zstandard.*"liteprobe\[packed\]"'
    ):
        read(tmp_path, PACKED["zstd"](pcap(plain())))


# As a reader has them that was written apart ------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_a_packet_of_each_kind_is_sent_or_left_out_as_it_should_be(tmp_path: Path, case: str) -> None:
    content, counts, sent, notes = CASES[case]
    trace = Trace.from_pcap(written(tmp_path, content))
    assert [(one.tick, one.octets) for one in decoded(trace)] == sent
    summary = trace.summary()
    assert {name: count for name, count in (summary.counts | {"cut": summary.cut}).items() if count} == counts
    assert list(summary.notes) == notes


def test_frames_that_are_called_damaged_are_sent_as_asked(tmp_path: Path) -> None:
    """Whichever error it is; direction, kind of reception and FCS length are none."""
    kinds = [0, *(1 << bit for bit in range(32) if not 5 <= bit <= 8)]
    content = section([Interface()]) + b"".join(
        epb(number, bytes([number]) * 70, flags=flags) for number, flags in enumerate(kinds)
    )
    good = [number for number, flags in enumerate(kinds) if flags < 1 << 24]
    for with_damaged, wanted, name in ((False, good, "damaged"), (True, [*range(len(kinds))], "mended")):
        trace = Trace.from_pcap(written(tmp_path, content), with_damaged=with_damaged)
        assert [one.octets[0] for one in decoded(trace)] == wanted
        assert {key: count for key, count in trace.summary().counts.items() if count} == {name: 8}


def test_simple_packets_have_no_times_of_their_own(tmp_path: Path) -> None:
    content = pcapng(plain(2)) + block(3, struct.pack("<I", 90) + bytes([7]) * 90)
    trace = Trace.from_pcap(written(tmp_path, content))
    said = "packet 3 (at octet 376) is a Simple Packet Block, which has no time: give it one with --rate or --top"
    assert said in refusal(decoded, trace)
    assert [(one.tick, one.octets) for one in decoded(trace.at_top())][2] == (248, bytes([7]) * 90)


@row("truth", "files", is_test=True)
def test_any_file_is_replayed_as_a_reader_has_it_that_was_written_apart(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Or refused for what it has; of all kinds of files, resolutions, sections, flags, lengths, times and packings."""
    kinds: Counter[str] = Counter()
    differ = 0
    for seed in range(size.of(60, 4000, 20_000)):
        path = written(tmp_path, hostile_file(random.Random(seed)))
        try:
            kinds[judged(path)] += 1
        except Differs as error:
            note(f"seed {seed}: {error}")
            differ += 1
    note(*(f"{count:6} {kind}" for kind, count in kinds.most_common()))
    yield Figure("files_differ", differ, "files", 0)


# Captures that are played into a simulated probe --------------------------------------------------


INTERFACES = (Interface(), Interface(6, offset_s=3600, fcs=4), Interface(0x80 | 20))


def read_capture(path: Path) -> list[tuple[Fraction, int, bytes]]:
    """Return time after the first packet (s), length and octets of each."""
    with RawPcapReader(str(path)) as reader:
        found = [(Fraction(meta.sec * 10**9 + meta.usec, 10**9), meta.wirelen, octets) for octets, meta in reader]
        assert (reader.nano, reader.linktype) == (True, 1)
    return [(time - found[0][0], *rest) for time, *rest in found]  # type: ignore[misc]


def wanted(packets: Sequence[Packet], fcs: Sequence[int]) -> list[tuple[Fraction, int, bytes]]:
    packets = [one for one in packets if one.octets and one.length > fcs[one.interface]]
    lengths = [one.length - fcs[one.interface] for one in packets]
    times = [one.time_s - packets[0].time_s for one in packets]
    return [(*pair, one.octets[: pair[1]]) for *pair, one in zip(times, lengths, packets, strict=True)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("seed", [1, 2])
def test_pcapng_is_played_as_pcap(tmp_path: Path, order: str, seed: int) -> None:
    packets = random_packets(seed, 300, interfaces=3)
    (tmp_path / "a.pcapng").write_bytes(pcapng(packets, INTERFACES, order))
    with as_pcap(tmp_path / "a.pcapng") as path:
        found = read_capture(path)
    fcs = [one.fcs for one in INTERFACES]
    assert [one[1:] for one in found] == [one[1:] for one in wanted(packets, fcs)]
    off = [abs(got[0] - one[0]) for got, one in zip(found, wanted(packets, fcs), strict=True)]
    assert max(off) < Fraction(2, 1 << 20)  # The coarsest clock of the three.
    assert not path.exists()


@pytest.mark.parametrize("per_second", [10**6, 10**9])
@pytest.mark.parametrize("order", ["<", ">"])
def test_pcap_of_either_byte_order_is_played_as_it_is_read(tmp_path: Path, per_second: int, order: str) -> None:
    packets = random_packets(3, 100)
    (tmp_path / "a.pcap").write_bytes(pcap(packets, per_second, order))
    with as_pcap(tmp_path / "a.pcap") as path:
        assert read_capture(path) == wanted(packets, [0])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (pcapng([Packet(Fraction(0), bytes(60), 60)], (Interface(link=101),)), "is of link type 101"),
        (pcapng(random_packets(5, 3))[:-5], "packet 3 .* can't be read"),
    ],
    ids=["raw IP", "cut"],
)
def test_pcapng_that_cant_be_played_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.pcapng").write_bytes(content)
    with pytest.raises(UsageError, match=said), as_pcap(tmp_path / "a.pcapng"):
        pass


def test_link_gives_its_player_a_pcap(tmp_path: Path) -> None:
    packets = random_packets(7, 5)
    (tmp_path / "a.pcapng").write_bytes(pcapng(packets))
    asked: list[tuple[str, list[tuple[Fraction, int, bytes]]]] = []

    class Process:
        def command(self, line: str) -> str:
            words = line.split()
            asked.append((" ".join(words[:-1]), read_capture(Path(words[-1]))))
            return str(len(packets))

    link = SimLink.__new__(SimLink)
    link._process, link._prefix, link.options = Process(), "", SimOptions()  # type: ignore[assignment]
    assert SimLink.play(link, 1, tmp_path / "a.pcapng", 40, 2) == 5
    assert asked == [("play 1 40 2", wanted(packets, [0]))]
