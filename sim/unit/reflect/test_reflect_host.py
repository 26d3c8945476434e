# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The host of a test port, from octets in to octets out: each answer as the RFCs say, T2 and T3 to the tick, at the line's rate."""

import random
from dataclasses import replace

import pytest

from liteprobe.cores.formats.reflect import HEARD_WORD, MAIL_OCTETS, RECEIVED_WORD, SESSION_WORD, HostCount, HostEnable, mail_frame
from liteprobe.sim.drivers.reflect.host import GAP, Sent, at_line_rate, compared, run
from liteprobe.sim.drivers.reflect.requests import PEER4, PEER6, Requests
from liteprobe.sim.models.reflect.host import Enable, Host

SLOT = 24  # Octets of a frame's slot beyond its length.


def host_of(vlan=None, enable=0, **options):
    return Host(
        bytes.fromhex("02aabbccdd01"), bytes([10, 0, 1, 2]), bytes.fromhex("20010db8000000000000000000abc102"),
        enable=int(Enable.ALL) | enable, vlan=vlan, **options,
    )


def drawn(host, seed, count, kind, most=1514):
    """Return frames at line rate, one of fifty broken."""
    rng = random.Random(seed)
    requests = Requests(host, rng, most)
    return at_line_rate(host, [getattr(requests, kind)() for _ in range(count)], [rng.random() < 0.02 for _ in range(count)])


def check(host, frames, **options):
    """Assert that all is as the model says; return the run."""
    found = run(host, frames, **options)
    assert compared(host, frames, found).differences == []
    return found


@pytest.mark.parametrize(("vlan", "seed", "kind", "most"), [
    (None, 11, "any", 200), (33, 12, "any", 1514), (None, 13, "good", 1514), (4095, 14, "good", 120),
])
def test_every_frame_of_any_kind_is_answered_octet_by_octet_or_counted_for_its_reason(vlan, seed, kind, most):
    host = host_of(vlan)
    found = check(host, drawn(host, seed, 700, kind, most))
    assert len(found.answers) > 250


@pytest.mark.parametrize(("kind", "least"), [("arp", 84), ("ping4", 84), ("solicitation", 102), ("stamp4", 110), ("stamp6", 130)])
def test_the_shortest_requests_are_all_answered_at_the_rate_of_the_line(kind, least):
    host = host_of()
    requests = Requests(host, random.Random(15), 60)
    make = {"stamp4": lambda: requests.stamp(44, False), "stamp6": lambda: requests.stamp(44, True)}.get(kind)
    frames = [Sent((make or getattr(requests, kind))()) for _ in range(600)]
    found = check(host, frames)
    assert len(found.answers) == 600
    ticks = [two[0] - one[0] for one, two in zip(found.answers, found.answers[1:])]
    slots = [len(octets) + SLOT for _, _, octets in found.answers]
    assert min(slots) == least
    # No answer waits for long: all leave as fast as they come.
    assert abs(sum(ticks) - sum(slots[:-1])) <= 8


@pytest.mark.parametrize(("length", "interval"), [(60, 168), (60, 400), (1514, 2000), (300, 324)])
def test_a_train_beside_a_host_keeps_every_tick_and_each_request_is_answered_or_counted(length, interval):
    host = host_of()
    requests = Requests(host, random.Random(16), 100)
    frames = at_line_rate(host, [requests.good() for _ in range(500)])
    count = 60_000 // interval
    found = run(host, frames, train=(length, count, interval))
    starts = [tick - found.program[0][0] for tick, _ in found.program]
    assert starts == [number * interval for number in range(count)]
    assert (found.sent, found.late, found.underruns, found.fcs_off, found.dropped) == (count, 0, 0, 0, 0)
    outcomes = [host.outcome(one.octets)[0] for one in frames]
    for kind in (HostCount.ARP, HostCount.PING4, HostCount.ND, HostCount.PING6, HostCount.STAMP4, HostCount.STAMP6):
        assert found.counts[kind] <= outcomes.count(kind)
    answered = sum(found.counts[kind] for kind in HostCount if kind <= HostCount.STAMP6)
    assert len(found.answers) == answered
    assert answered + found.counts[HostCount.FULL] + found.counts[HostCount.HEARD] + found.counts[HostCount.OVERRUN] == len(frames)
    assert answered > 0


@pytest.mark.parametrize(("information", "seed", "most"), [(0x04010401, 23, 200), (0, 24, 400), (0x05020502, 25, 1514)])
def test_tlvs_are_flagged_and_those_that_are_known_are_filled(information, seed, most):
    host = host_of(enable=HostEnable.TLV, information=information)
    requests = Requests(host, random.Random(seed), most)
    frames = at_line_rate(host, [requests.stamp() for _ in range(500)])
    found = check(host, frames)
    assert len(found.answers) == 500


@pytest.mark.parametrize(("seed", "most"), [(26, 200), (27, 1514)])
def test_direct_measurement_has_the_counts_of_its_session(seed, most):
    host = host_of(enable=HostEnable.TLV | HostEnable.STATEFUL)
    requests = Requests(host, random.Random(seed), most)
    frames = at_line_rate(host, [requests.stamp(44 + 16*(n % 5)) if n % 3 == 0 else requests.stamp() for n in range(500)])
    found = check(host, frames)
    assert len(found.answers) == 500
    assert found.memory[RECEIVED_WORD:RECEIVED_WORD + 256] == [host.received.get(number, 0) for number in range(256)]


def test_what_is_longer_than_a_frame_that_the_line_takes_is_counted_and_harms_nobody():
    host = host_of()
    requests = Requests(host, random.Random(29), 100)
    ping = requests.ping4()
    lengths = [1535, 1536, 1537, 2000, 4000, 5000, 9000, 1536]
    frames = []
    for length in lengths:
        requests._size = lambda least, length=length: length - 42  # Octets of data of the next echo request.
        frames += [Sent(requests.ping4(), 20), Sent(ping, 20)]
    found = run(host, frames)
    short = sum(length <= 1536 for length in lengths)
    assert [len(octets) for _, _, octets in found.answers] == [
        size for length in lengths for size in ([length, len(ping)] if length <= 1536 else [len(ping)])
    ]
    assert found.counts[HostCount.PING4] == short + len(lengths)
    assert found.counts[HostCount.FULL] + found.counts[HostCount.OVERRUN] == len(lengths) - short
    assert (found.dropped, found.fcs_off, found.underruns) == (0, 0, 0)


def test_sessions_are_counted_each_by_itself():
    host = host_of(enable=HostEnable.STATEFUL)
    rng = random.Random(17)
    requests = Requests(host, rng, 200)
    octets = [requests.stamp(rng.choice([15, 44, 60])) for _ in range(300)]
    frames = [replace(one, gap=one.gap + 40) for one in at_line_rate(host, octets)]
    found = check(host, frames)
    assert found.memory[SESSION_WORD : SESSION_WORD + 256] == [host.sessions.get(number, 0) for number in range(256)]
    assert sum(host.sessions.values()) == 300


@pytest.mark.parametrize(("access", "may4", "may6"), [
    ([(bytes([10, 0, 1, 1]), 32)], True, False),
    ([(bytes([10, 0, 0, 0]), 15), (PEER6, 128)], True, True),
    ([(bytes([10, 0, 2, 0]), 24), (PEER6[:8] + bytes(8), 64), (bytes([11, 0, 0, 0]), 8), (bytes([10, 0, 1, 3]), 31)], False, True),
    ([(PEER6[:15] + b"\2", 127), (PEER6[:15] + b"\2", 126), (bytes(4), 0)], True, True),
    ([], False, False),
])
def test_stamp_is_for_those_on_the_list(access, may4, may6):
    host = host_of(enable=HostEnable.ACCESS, access=access)
    requests = Requests(host, random.Random(18), 100)
    frames = [Sent(requests.stamp(44, bool(n & 1)), GAP + 60) for n in range(40)]
    found = check(host, frames)
    assert (found.counts[HostCount.STAMP4], found.counts[HostCount.STAMP6]) == (20 * may4, 20 * may6)
    assert Requests(host, random.Random(1)).ipv4(17, b"")[12:16] == PEER4


def test_stamp_and_ping_are_limited_each_millisecond_and_arp_is_not():
    host = host_of()
    requests = Requests(host, random.Random(19), 70)
    frames = [Sent(requests.stamp(44, False) if n % 3 else requests.arp(), 1000) for n in range(450)]
    found = run(host, frames, rate=20)
    # 450 frames in 3.9 ms; in the millisecond in which the limit is set there are none.
    assert found.counts[HostCount.ARP] == 150
    assert found.counts[HostCount.STAMP4] in (60, 80)
    assert found.counts[HostCount.STAMP4] + found.counts[HostCount.RATE] == 300


def test_what_the_hosts_program_sends_leaves_as_it_is_and_what_is_heard_is_kept():
    host = host_of()
    rng = random.Random(20)
    requests = Requests(host, rng, 70)
    mail = rng.randbytes(MAIL_OCTETS)
    frames = [Sent(requests.heard() if n % 2 else requests.ping4(), 200) for n in range(12)]
    frames.append(Sent(requests.heard(), 200))
    found = run(host, frames, mail=[(1, mail), (4, mail[:61]), (8, mail[:14])])
    sent = [octets for _, _, octets in found.answers if octets[:12] == mail[:12]]
    assert sent == [mail, mail[:61], mail[:14].ljust(60, b"\0")]
    assert (found.counts[HostCount.SENT], found.counts[HostCount.HEARD], found.counts[HostCount.PING4]) == (3, 7, 6)
    last = frames[-1].octets
    kept = mail_frame(found.memory[HEARD_WORD : HEARD_WORD + 32])
    assert kept[: len(last)] == last


@pytest.mark.parametrize("vlan", [None, 7])
def test_nothing_of_a_frame_is_left_for_the_next_one(vlan):
    host = host_of(vlan)
    requests = Requests(host, random.Random(30), 120)
    kinds = [requests.solicitation, requests.ping6, requests.ping4]
    kinds += [lambda is_v6=is_v6: requests.stamp(60, is_v6) for is_v6 in (False, True)]
    octets = []
    for length in [*range(60, 90), 60, 61, 62, 63]:
        for kind in kinds:
            octets += [kind(), requests.arp(), kind()[:length]]
    found = check(host, at_line_rate(host, octets))
    assert found.counts[HostCount.MALFORMED] > 60


def test_a_port_whose_host_is_off_is_silent_and_counts_nothing():
    host = host_of()
    host.enable = 0
    frames = [Sent(Requests(host_of(), random.Random(21), 100).any()) for _ in range(100)]
    found = check(host, frames)
    assert found.answers == []
    assert set(found.counts.values()) == {0}


def test_the_comparison_sees_a_wrong_octet_and_a_wrong_tick():
    host = host_of()
    frames = drawn(host, 22, 60, "good", 100)
    found = run(host, frames)
    assert compared(host_of(error_estimate=0x7FFE), frames, found).differences
    later = replace(found, answers=[(tick, now + 1, octets) for tick, now, octets in found.answers])
    assert compared(host, frames, later).differences
