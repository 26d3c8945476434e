# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the bench ``suites``: hosts on test ports and the reflector, at the pins of the core, against a model of the RFCs."""

import random
from collections.abc import Callable, Iterator

from liteprobe.cores.formats.reflect import HostCount, HostEnable
from liteprobe.sim.drivers.reflect.host import Sent, at_line_rate, compared, run
from liteprobe.sim.drivers.reflect.requests import Requests
from liteprobe.sim.drivers.tools.figures import Figure, note, row
from liteprobe.sim.models.reflect.host import Enable, Host

LOTS = 10  # Runs that the frames of a row are spread over, each from another seed.
MIXED = 0.02  # Part of the frames that are broken on the wire.


def host(vlan: int | None = None, enable: int = 0) -> Host:
    """Return a host that answers all."""
    address = bytes.fromhex("20010db8000000000000000000abc102")
    return Host(
        bytes.fromhex("02aabbccdd01"),
        bytes([10, 0, 1, 2]),
        address,
        enable=int(Enable.ALL) | enable,
        vlan=vlan,
        information=0x04010401,
    )


def lots(
    name: str, count: int, draw: Callable[[Requests], bytes], most: int = 1514, vlan: int | None = None, enable: int = 0
) -> Iterator[Figure]:
    """Play ``count`` frames back to back, and compare each answer, its T2 and T3, and each counter."""
    answers = octets = differences = 0
    for seed in range(LOTS):
        of, rng = host(vlan, enable), random.Random(f"{name} {seed}")
        requests = Requests(of, rng, most)
        drawn = [draw(requests) for _ in range(count // LOTS)]
        frames = at_line_rate(of, drawn, [rng.random() < MIXED for _ in drawn])
        found = compared(of, frames, run(of, frames))
        answers += found.expected
        octets += found.octets
        differences += len(found.differences)
    yield Figure(f"{name}_answers", answers, "answers", count // 4, is_least=True)
    yield Figure(f"{name}_octets", octets, "octets", count, is_least=True)
    yield Figure(f"{name}_off", differences, "answers and counters", 0)


def malformed(requests: Requests) -> bytes:
    """Return a STAMP request, each second one cut, lengthened, or with some octets changed anywhere in it."""
    rng, frame = requests.rng, bytearray(requests.stamp())
    if rng.random() < 0.5:
        return bytes(frame)
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        place = rng.randrange(14, len(frame))
        frame[place] = rng.choice([0, 0xFF, frame[place] ^ 1 << rng.randrange(8), rng.getrandbits(8)])
    if rng.random() < 0.3:
        frame = frame[: rng.randint(60, len(frame))]
    return bytes(frame) + rng.randbytes(rng.choice([0, 0, 1, 2, 3, 5]))


@row("suites")
def test_stamp_at_the_pins(is_full: bool) -> Iterator[Figure]:
    """STAMP at line rate, back to back, T2 and T3 from the pins: sizes, TLVs, sessions, malformed ones; in full 10^5 requests."""
    note("left out: HMAC, direct measurement of no session, follow-up telemetry of one, which are answered as unknown")
    count = 100_000 if is_full else 10_000
    of_sessions = HostEnable.TLV | HostEnable.STATEFUL
    yield from lots("stamp4", count // 5, lambda requests: requests.stamp(44, False))
    yield from lots("stamp6", count // 5, lambda requests: requests.stamp(44, True))
    yield from lots("stamp_all_sizes", count // 5, lambda requests: requests.stamp())
    yield from lots("stamp_vlan", count // 10, lambda requests: requests.stamp(), vlan=100)
    yield from lots("stamp_tlvs", count // 10, lambda requests: requests.stamp(), enable=HostEnable.TLV)
    yield from lots("stamp_sessions", count // 10, lambda requests: requests.stamp(), enable=of_sessions)
    yield from lots("stamp_malformed", count // 10, malformed, enable=HostEnable.TLV)


@row("suites")
def test_hosts_at_the_pins(is_full: bool) -> Iterator[Figure]:
    """ARP, ND, ping, STAMP, good and malformed, for the host and for others, back to back."""
    count = 100_000 if is_full else 10_000
    yield from lots("hosts_any", count, Requests.any, most=200)
    yield from lots("hosts_any_sizes", count // 4, Requests.any)
    yield from lots("hosts_vlan", count // 4, Requests.any, most=200, vlan=7)


@row("suites")
def test_hosts_beside_trains(is_full: bool) -> Iterator[Figure]:
    """ARP, ND and ping at line rate beside trains of 10 to 99 % of the line: what has no place in the gaps is counted."""
    count = 3000 if is_full else 600
    off = uncounted = answered = 0
    for length, interval in ((60, 85), (60, 168), (60, 840), (512, 600), (1514, 1560), (1514, 6000)):
        of = host()
        requests = Requests(of, random.Random(length * interval), 100)
        kinds = [requests.arp, requests.ping4, requests.ping6, requests.solicitation]
        frames = [Sent(kinds[number % 4]()) for number in range(count)]
        trains = count * 110 // interval
        found = run(of, frames, train=(length, trains, interval))
        first = found.program[0][0]
        off += sum(tick != first + number * interval for number, (tick, _) in enumerate(found.program))
        off += found.late + found.underruns + abs(len(found.program) - trains)
        given = sum(found.counts[kind] for kind in HostCount if kind <= HostCount.STAMP6)
        answered += given
        uncounted += count - given - found.counts[HostCount.FULL] - found.counts[HostCount.OVERRUN]
        uncounted += abs(len(found.answers) - given)
    yield Figure("beside_trains_off_their_tick", off, "frames", 0)
    yield Figure("beside_trains_answered", answered, "answers", count, is_least=True)
    yield Figure("beside_trains_uncounted", uncounted, "requests", 0)
