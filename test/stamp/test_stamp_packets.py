# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Test packets of STAMP: packed and taken apart here, answered by a reflector that was written apart from the RFCs."""

import random
import struct
from fractions import Fraction

import numpy as np
import pytest

from liteprobe.host.base.errors import DataError, UsageError
from liteprobe.host.packets.stamp import (
    ANSWER_DTYPE,
    ASKED,
    LEAST_ANSWER,
    ErrorEstimate,
    ReflectorPacket,
    SenderPacket,
    StampTlv,
    Tlv,
    TlvFlag,
    nanoseconds,
    ntp_time,
    ptp_time,
    requested,
    tlv_places,
    unpack_tlvs,
)
from liteprobe.sim.models.reflector import Host, Received, Reflector, joined, total_of

SEED = random.randrange(2**32)
CAME_NS = 1_795_000_000_123_456_789


def any_packet(chance: random.Random, tlvs: tuple[Tlv, ...] = ()) -> SenderPacket:
    error = ErrorEstimate(chance.random() < 0.5, chance.random() < 0.5, chance.randrange(64), chance.randrange(1, 256))
    return SenderPacket(chance.randrange(2**32), chance.randrange(1, 2**64), error, chance.randrange(2**16), tlvs)


def reflected(one: SenderPacket, reflector: Reflector, sent_ns: int = CAME_NS + 1000) -> ReflectorPacket:
    answer = reflector.answer(Received(one.pack(), "192.0.2.1", 5000, 862, 63, 46 << 2, CAME_NS), sent_ns)
    assert answer is not None
    return ReflectorPacket.unpack(answer)


@pytest.mark.parametrize("is_ptp", [False, True])
def test_an_answer_of_the_reference_is_what_the_rfc_says(is_ptp: bool) -> None:
    chance = random.Random(SEED)
    reflector = Reflector(is_stateful=True, is_ptp=is_ptp, error=0x8A21)
    for number in range(200):
        one = any_packet(chance)
        one = SenderPacket(one.sequence, one.timestamp, one.error, 77)
        stamp = ptp_time if is_ptp else ntp_time
        assert reflected(one, reflector) == ReflectorPacket(
            sequence=number,
            timestamp=stamp(CAME_NS + 1000),
            error=ErrorEstimate(True, is_ptp, 10, 0x21),
            ssid=77,
            received=stamp(CAME_NS),
            sender_sequence=one.sequence,
            sender_timestamp=one.timestamp,
            sender_error=one.error,
            sender_ttl=63,
        ), SEED


def test_octets_are_where_the_figures_of_the_rfc_have_them() -> None:
    one = SenderPacket(0x01020304, 0x1112131415161718, ErrorEstimate(True, True, 0x2A, 0x55), 0xABCD)
    assert one.pack().hex() == "01020304" + "1112131415161718" + "ea55" + "abcd" + 28 * "00"
    answer = ReflectorPacket(1, 2, ErrorEstimate(), 3, 4, 5, 6, ErrorEstimate(False, True, 1, 2), 7)
    fields = (
        "00000001",
        f"{2:016x}",
        "0001",
        "0003",
        f"{4:016x}",
        "00000005",
        f"{6:016x}",
        "4102",
        "0000",
        "07",
        "000000",
    )
    assert answer.pack().hex() == "".join(fields)
    row = np.frombuffer(answer.pack(), ANSWER_DTYPE)[0]
    assert (row["sequence"], row["ssid"], row["sender_sequence"], row["sender_ttl"]) == (1, 3, 5, 7)
    assert (row["t3_fraction"], row["t2_fraction"], row["sender_timestamp"], row["sender_error"]) == (2, 4, 6, 0x4102)


def test_packets_come_back_as_they_were() -> None:
    chance = random.Random(SEED)
    for _ in range(300):
        tlvs = tuple(
            Tlv(chance.randrange(256), chance.randbytes(chance.randrange(40)), chance.randrange(256)) for _ in range(3)
        )
        one = any_packet(chance, tlvs)
        assert SenderPacket.unpack(one.pack()) == one, SEED
        answer = reflected(one, Reflector())
        assert ReflectorPacket.unpack(answer.pack()) == answer, SEED


def test_tlvs_are_asked_for_and_filled_in() -> None:
    tlvs = (*(requested(name, dscp=12) for name in ASKED), Tlv(199, b"abc"), Tlv(StampTlv.EXTRA_PADDING, bytes(5)))
    reflector = Reflector(is_stateful=True)
    first = SenderPacket(40, 1, tlvs=tlvs)
    reflected(first, reflector)
    answer = reflected(SenderPacket(41, 1, tlvs=tlvs), reflector, CAME_NS + 2000)
    assert [(one.name, one.flags) for one in answer.tlvs] == [
        *((name, 0) for name in ASKED), ("199", TlvFlag.UNRECOGNIZED), ("extra-padding", 0)
    ]  # fmt: skip
    values = {one.name: one.value for one in answer.tlvs}
    assert values["location"] == struct.pack(">HH", 862, 5000)
    assert values["class-of-service"] == struct.pack(">I", 12 << 26 | 46 << 20)
    assert values["direct-measurement"] == struct.pack(">III", 0, 2, 2)
    assert values["access-report"] == bytes([0x10, 1, 0, 0])
    assert values["follow-up-telemetry"] == struct.pack(">IQI", 0, ntp_time(CAME_NS + 1000), 1 << 24)
    assert (values["199"], values["extra-padding"]) == (b"abc", bytes(5))
    assert tlv_places(tlvs) == [44, 52, 60, 68, 84, 92, 112, 119]


def test_a_tlv_that_is_cut_is_flagged_and_what_follows_it_is_copied() -> None:
    one = SenderPacket(1, 1, tlvs=(requested("location"),), rest=b"\x80\x05\x00\x20abc")
    answer = reflected(one, Reflector())
    assert [tlv.flags for tlv in answer.tlvs] == [0]
    assert answer.rest == bytes([TlvFlag.MALFORMED]) + b"\x05\x00\x20abc"


def test_twamp_light_is_answered_with_the_base_and_understood_with_less() -> None:
    answer = Reflector().answer(Received(SenderPacket(9, 5).pack()[:14], "192.0.2.1", 1, 862, 64, 0, CAME_NS), CAME_NS)
    assert answer is not None and len(answer) == 44
    short = ReflectorPacket.unpack(answer[:LEAST_ANSWER])
    assert (short.sender_sequence, short.sender_timestamp, short.sender_ttl) == (9, 5, 0)
    assert SenderPacket.unpack(SenderPacket(9, 5).pack()[:14]) == SenderPacket(9, 5)


def test_what_is_no_packet_is_an_error_and_nothing_else_raises() -> None:
    chance = random.Random(SEED)
    for length in range(120):
        octets = chance.randbytes(length)
        for kind, least in ((SenderPacket, 14), (ReflectorPacket, LEAST_ANSWER)):
            if length < least:
                with pytest.raises(DataError, match=f"{length} octets are no"):
                    kind.unpack(octets)
            else:
                kind.unpack(octets)
        tlvs, rest = unpack_tlvs(octets)
        assert b"".join(one.pack() for one in tlvs) + rest == octets, SEED
    authenticated = (5).to_bytes(4, "big") + bytes(12) + chance.randbytes(96)
    assert Reflector().answer(Received(authenticated, "192.0.2.1", 1, 862, 64, 0, 0), 0) is None


def test_times_of_both_formats_are_right_to_their_last_digit() -> None:
    chance = random.Random(SEED)
    times = [0, 10**9 - 1, 2**32 * 10**9 - 1, *(chance.randrange(2**62) for _ in range(500))]
    for time_ns in times:
        exact = Fraction(time_ns, 10**9) + 2_208_988_800
        assert abs(Fraction(ntp_time(time_ns), 2**32) - exact % 2**32) * 2**33 <= 1
        assert ptp_time(time_ns) == (time_ns // 10**9 % 2**32 << 32) + time_ns % 10**9
    assert ntp_time(37 * 10**9, 37) == 2_208_988_800 << 32
    near = [time_ns for time_ns in times if time_ns < 2_000_000_000 * 10**9]
    for is_ptp, stamp, epoch_s in ((True, ptp_time, 0), (False, ntp_time, 2_208_988_800)):
        words = np.array([stamp(one) for one in near], np.uint64)
        flags = np.full(len(near), is_ptp)
        back = nanoseconds(words >> np.uint64(32), words & np.uint64(0xFFFFFFFF), flags) - epoch_s * 10**9
        assert back.tolist() == near, SEED


def test_error_estimates_say_what_they_bound() -> None:
    for word in range(0, 1 << 16, 37):
        assert ErrorEstimate.of(word).word == word
    assert ErrorEstimate(multiplier=1, scale=0).bound_ns == pytest.approx(0.2328306, rel=1e-6)
    assert ErrorEstimate(multiplier=255, scale=63).bound_ns == pytest.approx(255 * 2**31 * 1e9)
    assert ErrorEstimate(multiplier=0).bound_ns is None


def test_a_tlv_that_there_is_not_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"there is no TLV 'locaton' to ask for: did you mean 'location'"):
        requested("locaton")


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7"])
def test_the_host_of_the_reference_answers_frames_as_scapy_makes_and_reads_them(address: str) -> None:
    from scapy.layers.inet import IP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.l2 import Dot1Q, Ether

    host, chance = Host((address,)), random.Random(SEED)
    is_v6 = ":" in address
    for number in range(40):
        one = any_packet(chance, (Tlv(1, bytes(chance.randrange(30))),))
        ip = (
            IPv6(src="2001:db8::1", dst=address, tc=9, hlim=7)
            if is_v6
            else IP(src="192.0.2.1", dst=address, tos=9, ttl=7)
        )
        frame = Ether(dst="02:4c:50:54:aa:01") / Dot1Q(vlan=number) / ip / UDP(sport=99, dport=862) / one.pack()
        (answer,) = host.take(bytes(frame), CAME_NS, lambda _: CAME_NS + 5)
        told = Ether(answer)
        came = ReflectorPacket.unpack(bytes(told[UDP].payload)[: told[UDP].len - 8])
        assert (told.dst, told[Dot1Q].vlan, told[UDP].sport, told[UDP].dport) == (frame.src, number, 862, 99), SEED
        assert (came.sender_sequence, came.sender_ttl, came.received) == (one.sequence, 7, ntp_time(CAME_NS)), SEED
        assert (told[IPv6].tc if is_v6 else told[IP].tos) == 9
        again = Ether(answer)
        del again[UDP].chksum
        assert bytes(Ether(bytes(again)))[:60] == answer[:60], SEED
    for spoilt in (bytes(frame)[:-1] + b"\x99", bytes(frame)[:50]):
        assert host.take(spoilt, CAME_NS, lambda _: CAME_NS) == []
    assert host.counts["stamp"] == 40


def test_who_must_not_be_answered_is_not() -> None:
    host = Host(("192.0.2.7",))
    for source, port in (("192.0.2.7", 9), ("255.255.255.255", 9), ("224.0.0.1", 9), ("0.0.0.0", 9), ("192.0.2.1", 0)):
        octets = bytes(map(int, source.split(".")))
        udp = joined(port, 862, SenderPacket(1, 1).pack(), b"", has_sum=False)
        ip = (
            bytes([0x45, 0])
            + (20 + len(udp)).to_bytes(2, "big")
            + bytes(4)
            + b"\x40\x11\0\0"
            + octets
            + bytes([192, 0, 2, 7])
        )
        ip = ip[:10] + (0xFFFF - total_of(ip)).to_bytes(2, "big") + ip[12:]
        assert host.take(host.mac + bytes(6) + b"\x08\0" + ip + udp, CAME_NS, lambda _: CAME_NS) == []
    assert host.counts == {"refused": 5}
