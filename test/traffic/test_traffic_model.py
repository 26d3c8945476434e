# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The model of streams: its schedule by arithmetic and by the laws of its random numbers, its octets by scapy and tshark."""

import ipaddress
import math
import re
import shutil
import subprocess
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6, in6_chksum
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Packet
from scapy.utils import checksum as internet_checksum

from liteprobe.host.traffic.stream import (
    IMIX,
    Burst,
    Coverage,
    Decrement,
    Field,
    Fixed,
    Headers,
    Increment,
    Interval,
    Lengths,
    Random,
    RandomLength,
    Stamp,
    Stepped,
    Stream,
    Values,
)
from liteprobe.sim.drivers.frames.random_streams import StreamMaker
from liteprobe.sim.drivers.frames.tshark import write_pcap
from liteprobe.sim.models.traffic.streams import Xorshift, dues, exponential, logarithms, octets, schedule, state_of


def rows(streams: list[Stream], count: int) -> list[tuple[int, int, int, int, bool, int]]:
    found: list[tuple[int, int, int, int, bool, int]] = schedule(streams, count).tolist()
    return found


# Schedule ----------------------------------------------------------------------------------------------


def test_a_schedule_of_two_streams_is_that_of_a_worked_example() -> None:
    # Slots of 84 and 1024 ticks. The second stream's frame is due in the same tick as the first's, and comes after it.
    first = Stream("a", 1, Fixed(60), Interval(interval_ns=8 * 500), count=4)
    second = Stream("b", 2, Fixed(1000), Interval(interval_ns=8 * 1100), start_ns=8 * 500, count=2)
    assert rows([first, second], 99) == [
        (0, 0, 0, 0, False, 60),
        (0, 1, 500, 500, False, 60),
        (1, 0, 500, 584, True, 1000),
        (0, 2, 1000, 1608, True, 60),
        (0, 3, 1500, 1692, True, 60),
        (1, 1, 1600, 1776, True, 1000),
    ]


@pytest.mark.parametrize(("due", "start"), [(83, 84), (84, 84), (85, 85)])
def test_a_frame_is_late_by_a_tick_and_no_less(due: int, start: int) -> None:
    streams = [Stream(f"s{n}", n, Fixed(60), Interval(pps=1000), start_ns=8 * due * n, count=1) for n in range(2)]
    assert rows(streams, 9)[1] == (1, 0, due, start, start > due, 60)


def test_the_first_frame_of_a_program_is_never_late_and_a_tie_goes_to_the_lowest_number() -> None:
    streams = [Stream(f"s{n}", n, Fixed(60), Interval(pps=1000), start_ns=80, count=1) for n in range(3)]
    assert rows(streams, 9) == [(0, 0, 10, 10, False, 60), (1, 0, 10, 94, True, 60), (2, 0, 10, 178, True, 60)]


def test_a_burst_begins_at_its_interval_whatever_is_within_it() -> None:
    bursts = Interval(interval_ns=8 * 1000, burst=Burst(3, 8 * 100))
    assert [row[2] for row in rows([Stream("a", 1, Fixed(60), bursts)], 7)] == [0, 100, 200, 1000, 1100, 1200, 2000]
    close = Interval(interval_ns=8 * 1000, burst=Burst(3))
    stream = Stream("a", 1, Stepped(60, 80, 20), close)
    assert [row[2] for row in rows([stream], 7)] == [0, 84, 188, 1000, 1104, 1188, 2000]
    assert not schedule([stream], 1000)["late"].any()


@pytest.mark.parametrize("length", [Fixed(60), Fixed(1514), Stepped(64, 1514, 7), IMIX, Lengths((60, 9000, 61))])
@pytest.mark.parametrize("interval", [Interval(), Interval(share=1), Interval(rate_bps=1e9)])
def test_back_to_back_fills_the_line_and_nothing_is_late(length: Fixed, interval: Interval) -> None:
    frames = schedule([Stream("a", 1, length, interval)], 3000)
    slots = frames["length"].astype(np.int64) + 24
    assert (np.diff(frames["start"]) == slots[:-1]).all()
    assert not frames["late"].any()


@pytest.mark.parametrize(
    ("interval", "exact_ticks"),
    [
        (Interval(rate_bps=123_456_789), Fraction(8 * 536 * 10**9, 8 * 123_456_789)),
        (Interval(pps=7), Fraction(10**9, 8 * 7)),
        (Interval(share=0.3), Fraction(5360, 3)),
        (Interval(interval_ns=1234.567), Fraction(1234567, 8000)),
        (Interval(pps=300_000, burst=Burst(20)), Fraction(20 * 10**9, 8 * 300_000)),
    ],
)
def test_rates_hold_packet_by_packet_without_drift(interval: Interval, exact_ticks: Fraction) -> None:
    size = interval.burst.count if interval.burst else 1
    length = 60 if interval.interval_ns or interval.burst else 512
    heads = [due for due, _ in _first(Stream("a", 1, Fixed(length), interval), 100_000)][::size]
    assert len(heads) == 100_000 // size
    # 2^-33 of a tick is the most that each interval is off by its rounding.
    for number in range(0, len(heads), 97):
        assert abs(heads[number] + Fraction(1, 2) - number * exact_ticks) <= Fraction(1, 2) + number * Fraction(
            1, 2**33
        )


def _first(stream: Stream, count: int) -> list[tuple[int, int]]:
    source = dues(stream, 8 << 40)
    return [next(source) for _ in range(count)]


def test_a_schedule_crosses_2_to_the_32_and_2_to_the_48_ticks() -> None:
    ticks = 2**32 - 1 - Fraction(1, 3)
    frames = schedule([Stream("a", 1, Fixed(60), Interval(interval_ns=8 * ticks))], 65_600)
    step = round(ticks * 2**32)
    assert frames["due"].tolist() == [number * step >> 32 for number in range(65_600)]
    assert frames["due"][-1] > 2**48
    assert (frames["start"] == frames["due"]).all()


def test_a_clock_that_is_fast_has_more_ticks_in_a_microsecond() -> None:
    increment = (8 << 40) * 999_999 // 1_000_000
    stream = Stream("a", 1, Fixed(60), Interval(interval_ns=1_000_000))
    assert schedule([stream], 1001, increment)["due"][-1] == 125_000_125


def test_what_fills_the_line_by_the_clock_still_does_where_the_clock_is_slow() -> None:
    increment = (8 << 40) * 1_000_050 // 1_000_000
    half = Stream("a", 1, Fixed(976), Interval(rate_bps=5e8))
    other = Stream("b", 2, Fixed(976), Interval(rate_bps=5e8), start_ns=8000)
    frames = schedule([half, other], 100_000, increment)
    assert (np.diff(frames["start"]) >= 1000).all()
    assert frames["start"][-1] == pytest.approx(99_999 * 1000, abs=2)
    assert (frames["start"] - frames["due"]).max() <= 1


# Lengths and random numbers ----------------------------------------------------------------------------


def test_xorshift_is_that_of_its_author() -> None:
    # Marsaglia's example: y = 2463534242 gives 723471715 first.
    draws = Xorshift(2463534242)
    assert [draws.draw() for _ in range(3)] == [723471715, 2497366906, 2064144800]


def test_streams_of_different_ids_or_seeds_draw_different_numbers() -> None:
    streams = [Stream("a", number, Fixed(60), seed=seed) for number in range(100) for seed in (0, 1, 2**32 - 1)]
    states = {state_of(stream, purpose) for stream in streams for purpose in range(6)}
    assert len(states) == 100 * 3 * 6
    assert 0 not in states


def test_imix_has_its_shares_and_is_spread() -> None:
    lengths = [length for _, length in _first(Stream("a", 1, IMIX, Interval(pps=1)), 12_000)]
    assert Counter(lengths) == {60: 7000, 590: 4000, 1514: 1000}
    assert max(len(run) for run in "".join("s" if length == 60 else " " for length in lengths).split()) <= 2


def test_drawn_lengths_have_the_frequencies_of_the_table() -> None:
    drawn = Stream("a", 1, Lengths(IMIX.entries, random=True), Interval(pps=1))
    counts = Counter(length for _, length in _first(drawn, 120_000))
    for length, share in {60: 7 / 12, 590: 4 / 12, 1514: 1 / 12}.items():
        sigma = math.sqrt(120_000 * share * (1 - share))
        assert abs(counts[length] - 120_000 * share) < 4 * sigma


def test_random_lengths_reach_both_ends_and_all_between() -> None:
    lengths = [length for _, length in _first(Stream("a", 1, RandomLength(60, 187), Interval(pps=1)), 20_000)]
    counts = np.bincount(np.array(lengths) - 60, minlength=128)
    assert len(counts) == 128
    # 127 degrees of freedom: the mean of chi square is 127, its standard deviation 16.
    assert float(((counts - 156.25) ** 2 / 156.25).sum()) < 127 + 4 * 16


def test_the_law_of_the_gaps_has_the_mean_of_an_exponential() -> None:
    """Over all 2^32 - 1 numbers: those of z leading zeros are 2^(31-z), and the table's parts are alike among them."""
    ln2, table = logarithms()
    total = Fraction(0)
    for zeros in range(32):
        numbers = 2 ** (31 - zeros)
        if numbers >= 512:
            total += numbers * (zeros * ln2 + Fraction(sum(table), 512))
        else:
            step = 512 // numbers
            total += sum(zeros * ln2 + table[part] for part in range(0, 512, step))
    mean = total / (2**32 - 1) / 2**27
    assert abs(mean - 1) < Fraction(1, 10**6)


def test_gaps_are_exponential_by_their_distance_from_the_law() -> None:
    stream = Stream("a", 1, Fixed(60), Interval(interval_ns=8 * 10_000, exponential=True))
    frames = schedule([stream], 100_001)
    gaps = np.sort(np.diff(frames["due"])) / 10_000
    law = 1 - np.exp(-gaps)
    ranks = np.arange(1, len(gaps) + 1) / len(gaps)
    distance = max(np.abs(ranks - law).max(), np.abs(ranks - 1e-5 - law).max())
    assert distance < 0.006  # One sample in a thousand of a true exponential is beyond 0.0062.
    assert abs(gaps.mean() - 1) < 3.3 / math.sqrt(len(gaps))


@pytest.mark.parametrize("u", [1, 2, 3, 0x12345, 2**31 - 1, 2**31, 2**32 - 1, 0x80400000, 0x803FFFFF])
def test_a_gap_is_the_logarithm_of_its_number(u: int) -> None:
    # A part of the table is 1/1024 wide: half of it, over the least value in it, is the most that it is off.
    assert exponential(u) / 2**27 == pytest.approx(-math.log(u / 2**32), abs=1 / 1000)


def test_gaps_of_bursts_are_drawn_once_a_burst() -> None:
    single = Stream("a", 1, Fixed(60), Interval(interval_ns=800_000, exponential=True))
    bursts = Stream("a", 1, Fixed(60), Interval(interval_ns=800_000, exponential=True, burst=Burst(5)))
    assert [due for due, _ in _first(bursts, 500)][::5] == [due for due, _ in _first(single, 100)]


# Octets -------------------------------------------------------------------------------------------


SEED = 1916
NOW = 0x0123_4567_89AB_CDEF  # Far from 0 in all of its octets.


def frames_of(stream: Stream, count: int) -> list[bytes]:
    return list(octets([stream], schedule([stream], count), lambda start: NOW + 8 * start))


def test_octets_of_a_probe_frame_are_those_of_a_worked_example() -> None:
    frame = frames_of(Stream("a", 0xBEEF, Fixed(64), Interval(), fill="counting"), 2)[1]
    ip = "45000032000040004011ae93c6120001c6120002"
    assert frame.hex() == (
        "024c50540002"
        "024c50540001"
        "0800" + ip + "c020c021001e0000"
        "4c50524fbeef00000001" + f"{NOW + 8 * 88:016x}" + "00010203"
    )


RANDOM_STREAMS = [stream for seed in range(30) for stream in StreamMaker(SEED + seed, any_bits=0).streams(10)]


@pytest.fixture(scope="module")
def dissected() -> list[tuple[Stream, list[bytes]]]:
    """300 random streams, the first frames of each, whatever the others do."""
    print(f"seed {SEED}")
    return [(stream, frames_of(stream, 3)) for stream in RANDOM_STREAMS]


def test_scapy_finds_all_checksums_of_random_streams_right(dissected: list[tuple[Stream, list[bytes]]]) -> None:
    seen: Counter[str] = Counter()
    for stream, frames in dissected:
        for frame in frames:
            packet = Ether(frame)
            if stream.headers.is_ipv4 and (stream.stamp is None or stream.stamp.place != "ipv4.checksum"):
                assert internet_checksum(bytes(packet[IP])[:20]) == 0, stream
                seen["ip"] += 1
            transport = packet.getlayer(UDP) or packet.getlayer(TCP)
            if stream.coverage and stream.used_checksum == "complement":
                assert covered_checksum(packet, frame, stream.coverage) in (0, 0xFFFF), stream
                seen["coverage"] += 1
                continue
            if stream.used_checksum == "none":
                assert transport is None or (transport.name, transport.chksum) == ("UDP", 0)
                continue
            assert transport is not None
            assert transport_checksum(packet, transport) in (0, 0xFFFF), stream
            seen[f"{transport.name} of {stream.used_checksum}"] += 1
    kinds = {"coverage", "ip", "UDP of complement", "UDP of host", "TCP of complement", "TCP of host"}
    assert {kind for kind, count in seen.items() if count >= 3} == kinds, seen


def transport_checksum(packet: Packet, transport: Packet) -> int:
    """Return the sum over UDP or TCP with its pseudo-header, which is 0 where it is right."""
    octets_of_it = bytes(transport)
    protocol = 17 if transport.name == "UDP" else 6
    if IPv6 in packet:
        found: int = in6_chksum(protocol, packet[IPv6], octets_of_it)
        return found
    pseudo = bytes(packet[IP])[12:20] + bytes([0, protocol]) + len(octets_of_it).to_bytes(2)
    found = internet_checksum(pseudo + octets_of_it)
    return found


def covered_checksum(packet: Packet, frame: bytes, coverage: Coverage) -> int:
    """Return the sum over a coverage with what stands before it, which is 0 where it is right."""
    rest = frame[coverage.start :]
    if IPv6 in packet and len(packet[IPv6].payload) == len(rest):
        found: int = in6_chksum(packet[IPv6].nh, packet[IPv6], rest)
        return found
    before = frame[coverage.addresses : coverage.addresses + coverage.octets] + coverage.constant.to_bytes(2)
    found = internet_checksum(before + rest)
    return found


def test_scapy_reads_the_fields_that_were_asked_for(dissected: list[tuple[Stream, list[bytes]]]) -> None:
    for stream, frames in dissected:
        for sequence, frame in enumerate(frames):
            assert_fields(stream, sequence, frame)


Named = dict[str, object]

BITS = {
    **{"vlan.id": 12, "vlan.priority": 3, "mpls.label": 20, "ipv4.tos": 8, "ipv4.identification": 16},
    **{"ipv6.flow_label": 20, "tcp.sequence": 32, "mac.source": 32, "mac.destination": 32},
    **{
        f"{name}.{end}": bits
        for name, bits in (("ipv4", 32), ("ipv6", 32), ("udp", 16), ("tcp", 16))
        for end in ("source", "destination")
    },
}


def assert_fields(stream: Stream, sequence: int, frame: bytes) -> None:
    """Hold what scapy reads against the headers, with what each modifier should have put there by now."""
    found, expected = as_found(frame, stream.headers), as_asked(stream.headers, len(frame))
    if stream.stamp is not None and stream.stamp.place in expected:
        time = NOW + 8 * int(schedule([stream], sequence + 1)["start"][sequence])
        expected[stream.stamp.place] = (time >> 4 * stream.stamp.tick) % 2 ** BITS[stream.stamp.place]
    for modifier in stream.modifiers:
        assert isinstance(modifier.field, str)
        now, asked = (low_bits(one.pop(modifier.field), modifier.field) for one in (found, expected))
        if isinstance(modifier, Values):
            turn = as_number(modifier.values[sequence % len(modifier.values)])
            assert now == turn or (modifier.random and now in map(as_number, modifier.values)), (stream, modifier)
        elif isinstance(modifier, Increment):
            first = asked if modifier.first is None else as_number(modifier.first)
            turns = sequence % modifier.count if modifier.count else sequence
            step = -modifier.step if isinstance(modifier, Decrement) else modifier.step
            bits = BITS[re.sub(r"\[.\]", "", modifier.field)]
            assert now == (first + turns * step) % 2**bits, (stream, modifier)
    assert found == expected, stream
    if stream.probe and not (stream.stamp and stream.stamp.place == "octet"):
        probe = frame[stream.headers.payload_offset :]
        stamp = bytes(8) if stream.stamp and stream.stamp.place != "probe" else probe[10:18]
        assert probe[:18] == b"LPRO" + stream.stream_id.to_bytes(2) + sequence.to_bytes(4) + stamp


def as_asked(headers: Headers, length: int) -> Named:
    """Return what the fields of a frame should be, before anything changes."""
    fields: Named = {"mac.destination": headers.destination_mac, "mac.source": headers.source_mac}
    for number, tci in enumerate(headers.vlan_tags):
        fields |= {f"vlan[{number}].id": tci & 0xFFF, f"vlan[{number}].priority": tci >> 13}
        fields[f"vlan[{number}] is service"] = number == 0 and len(headers.vlan_tags) > 1
    for number, label in enumerate(headers.mpls_labels, 1):
        others = (label.traffic_class, label.ttl, int(number == len(headers.mpls_labels)))
        fields |= {f"mpls[{number - 1}].label": label.label, f"mpls[{number - 1}] others": others}
    network = 14 + 4 * len(headers.vlan_tags) + 4 * len(headers.mpls_labels)
    ends: Named = {"source": headers.source_ip, "destination": headers.destination_ip}
    if headers.is_ipv4:
        fields |= {f"ipv4.{end}": address for end, address in ends.items()}
        fields |= {"ipv4.tos": headers.traffic_class, "ttl": headers.ttl, "ipv4.identification": 0}
        fields |= {"length": length - network}
    if headers.is_ipv6:
        fields |= {f"ipv6.{end}": address for end, address in ends.items()}
        fields |= {"traffic class": headers.traffic_class, "ttl": headers.ttl, "ipv6.flow_label": headers.flow_label}
        fields |= {"length": length - network - 40}
    kind = headers.transport if headers.has_transport else "none"
    if kind != "none":
        fields |= {f"{kind}.source": headers.source_port, f"{kind}.destination": headers.destination_port}
    if kind == "udp":
        fields["udp length"] = length - network - (20 if headers.is_ipv4 else 40)
    if kind == "tcp":
        fields |= {"tcp.sequence": 0, "flags": 0x10, "offset": 5}
    return fields


def as_found(frame: bytes, headers: Headers) -> Named:
    """Return what scapy reads."""
    packet = Ether(frame)
    fields: Named = {"mac.destination": packet.dst, "mac.source": packet.src}
    for number, tag in enumerate(_layers(packet, (Dot1AD, Dot1Q))):
        fields |= {f"vlan[{number}].id": tag.vlan, f"vlan[{number}].priority": tag.prio}
        fields[f"vlan[{number}] is service"] = isinstance(tag, Dot1AD)
    for number, label in enumerate(_layers(packet, (MPLS,))):
        fields |= {f"mpls[{number}].label": label.label, f"mpls[{number}] others": (label.cos, label.ttl, label.s)}
    if not headers.has_ip:
        return fields
    if IP in packet:
        ip = packet[IP]
        fields |= {"ipv4.source": ip.src, "ipv4.destination": ip.dst, "ipv4.tos": ip.tos, "ttl": ip.ttl}
        fields |= {"length": ip.len, "ipv4.identification": ip.id}
    if IPv6 in packet:
        ip = packet[IPv6]
        fields |= {"ipv6.source": ip.src, "ipv6.destination": ip.dst, "traffic class": ip.tc, "ttl": ip.hlim}
        fields |= {"length": ip.plen, "ipv6.flow_label": ip.fl}
    if UDP in packet:
        udp = packet[UDP]
        fields |= {"udp.source": udp.sport, "udp.destination": udp.dport, "udp length": udp.len}
    if TCP in packet:
        tcp = packet[TCP]
        fields |= {"tcp.source": tcp.sport, "tcp.destination": tcp.dport}
        fields |= {"tcp.sequence": tcp.seq, "flags": int(tcp.flags), "offset": tcp.dataofs}
    return fields


def _layers(packet: Packet, kinds: tuple[type[Packet], ...]) -> list[Packet]:
    """Return the layers of these kinds before anything that a payload was guessed to be."""
    found = []
    layer = packet.payload
    while layer and not isinstance(layer, (IP, IPv6)):
        if isinstance(layer, kinds):
            found.append(layer)
        layer = layer.payload
    return found


def as_number(value: int | str) -> int:
    return value if isinstance(value, int) else low_bits(value, "")


def low_bits(value: object, field: str) -> int:
    """Return the last 32 bits of an address, or a number as it is."""
    if isinstance(value, int):
        return value
    text = str(value)
    if text.count(":") == 5 and field.startswith("mac"):
        return int(text.replace(":", ""), 16) % 2**32
    return int(ipaddress.ip_address(text)) % 2**32


def test_bits_of_any_place_change_and_no_others() -> None:
    place = Field(16, 0x00F0_0F00)
    plain = Stream("a", 1, Fixed(100), Interval(), headers=Headers(vlan_tags=(0, 0)), probe=False, fill="prbs")
    before = frames_of(plain, 1)[0]
    changes = (Increment(place, 3, 0x0F00), Values(Field(24, 0xFF), (0x80, 0x40)))
    for number, frame in enumerate(frames_of(Stream(**{**vars(plain), "modifiers": changes}), 8)):
        window = int.from_bytes(before[16:20]) & ~0x00F0_0F00 | (3 + 0x0F00 * number << 8) & 0x00F0_0F00
        assert frame[16:20] == window.to_bytes(4)
        assert frame[27] == (0x80, 0x40)[number % 2]
        changed = {n for n in range(100) if frame[n] != before[n]}
        assert changed <= {17, 18, 27, 32, 33}  # The last two: the checksum of the header, whose TTL or flags changed.


def test_random_bits_are_those_of_the_next_number() -> None:
    stream = Stream("a", 1, Fixed(60), modifiers=(Random("udp.source"), Random("ipv4.source")))
    frames = frames_of(stream, 50)
    for purpose, octet, count in ((2, 34, 2), (3, 26, 4)):
        draws = Xorshift(state_of(stream, purpose))
        expected = [(draws.draw() % 2 ** (8 * count)).to_bytes(count) for _ in range(50)]
        assert [frame[octet : octet + count] for frame in frames] == expected


@pytest.mark.parametrize("tick", [0, 3, 15])
def test_stamps_stand_where_they_were_asked_for(tick: int) -> None:
    ipv6 = Headers(source_ip="2001:2::1", destination_ip="2001:2::2", traffic_class=0xA5)
    for headers, stamp, octet, bits in (
        (Headers(), Stamp("octet", 50, 24, tick), 50, 24),
        (Headers(vlan_tags=(1,)), Stamp("ipv4.identification", tick=tick), 22, 16),
        (Headers(), Stamp("ipv4.checksum", tick=tick), 24, 16),
        (ipv6, Stamp("ipv6.flow_label", tick=tick), 14, 20),
    ):
        stream = Stream("a", 1, Fixed(100), Interval(), headers=headers, probe=False, stamp=stamp)
        for frame, start in zip(frames_of(stream, 2), [0, 124], strict=True):
            found = int.from_bytes(frame[octet : octet + -(-bits // 8) + (bits == 20)]) % 2**bits
            assert found == (NOW + 8 * start) // 16**tick % 2**bits


# tshark as a second witness ----------------------------------------------------------------------------


def test_tshark_accepts_every_checksum(tmp_path: Path, dissected: list[tuple[Stream, list[bytes]]]) -> None:
    assert shutil.which("tshark"), "tshark is missing: ./run setup test"
    listed = [(stream, frame) for stream, frames in dissected for frame in frames]
    write_pcap(tmp_path / "frames.pcap", [frame for _, frame in listed])
    fields = ("ip.checksum.status", "udp.checksum.status", "tcp.checksum.status", "frame.protocols")
    command = ["tshark", "-n", "-r", str(tmp_path / "frames.pcap"), "-T", "fields", "-E", "occurrence=f"]
    for checked in ("ip.check_checksum", "udp.check_checksum", "tcp.check_checksum"):
        command += ["-o", f"{checked}:TRUE"]
    command += [word for name in fields for word in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    counts: Counter[str] = Counter()
    for (stream, _), line in zip(listed, done.stdout.splitlines(), strict=True):
        ip, udp, tcp, protocols = line.split("\t")
        wrong = stream.stamp is not None and stream.stamp.place == "ipv4.checksum" and stream.headers.is_ipv4
        kind = stream.headers.transport if stream.headers.has_transport else ""
        assert ip == ("" if not stream.headers.is_ipv4 else "0" if wrong else "1"), (stream, protocols)
        absent = stream.used_checksum == "none"
        assert udp == ("" if kind != "udp" else "3" if absent else "1"), (stream, protocols)
        assert tcp == ("" if kind != "tcp" else "1"), (stream, protocols)
        counts[f"{kind} {udp}{tcp}"] += 1
    assert min(counts["udp 1"], counts["udp 3"], counts["tcp 1"]) > 30, counts
