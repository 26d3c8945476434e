# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Stations with a real TCP/IP stack on models of the emulator; `./run bench emulator cern` has the whole experiment."""

import statistics
import struct
from collections.abc import Sequence
from itertools import islice, pairwise

import pytest

from liteprobe.cores.formats.emulate import ClassCounter
from liteprobe.host.device.link.sim_stations import CLIENT, SERVER
from liteprobe.sim.drivers.emulator import cern
from liteprobe.sim.drivers.emulator.cern import DELAY, Case, Kind, Transfer
from liteprobe.sim.drivers.emulator.stations import build
from liteprobe.sim.drivers.emulator.stations.network import CLASS, PREAMBLE, Simulation
from liteprobe.sim.models.emulator.direction import Direction
from liteprobe.sim.models.emulator.fifo import FifoDirection, background_times
from liteprobe.sim.models.emulator.settings import Bank, Settings, bank_words

FILES, OCTETS = 60, 200_000
SITE = cern.site(FILES, OCTETS)
LIMIT_S = 300.0
OCTET = 100 # Ticks, at 10 Mb/s.

@pytest.fixture(scope="module", autouse=True)
def stack() -> None:
    reason = build.lacking()
    if reason:
        pytest.skip(reason)

def fetched(kind: Kind, load: float, is_kept: bool, seed: int = 0) -> Transfer:
    found = cern.transfer(Case(kind, load, is_kept, seed), SITE, LIMIT_S)
    assert (found.is_complete, found.wrong, found.repeats, found.connections) == (True, 0, 0, 1 if is_kept else FILES)
    return found

def through(lengths: Sequence[int] = SITE, is_kept: bool = True, **own: int) -> Simulation:
    """Return a simulation on a network of one class, at 10 Mb/s."""
    both = Settings(bank_words({CLASS: {"delay": DELAY, "overhead": 24, **own}}, {"octet": OCTET << 16}))
    return Simulation(both, both, list(lengths), is_kept, 1)

def test_a_site_is_as_long_as_it_is_said_to_be() -> None:
    assert (len(cern.site()), sum(cern.site()), cern.site() == cern.site()) == (499, 1_600_000, True)

def way(length: int) -> int:
    """Return the ticks from one station to the other: service, delay, and the frame's own octets with its FCS."""
    return PREAMBLE + (length + 24) * OCTET + DELAY + length + 4

def test_frames_come_on_their_ticks() -> None:
    one = through([1])
    one.run(10 * DELAY)
    # Both say at tick 0 who they are; the client asks for the server, too, and knows it before the answer comes.
    asked = way(60) + (60 + 24) * OCTET
    opened = [way(60) + way(62), way(60) + 2 * way(62), 2 * way(60) + 2 * way(62)] # SYN, SYN and ACK, ACK.
    assert [(tick, number) for tick, number, _ in one.sent[:7]] == [
        (way(60), SERVER), (way(60), CLIENT), (asked, SERVER), (opened[0], SERVER), (asked + way(60), CLIENT),
        (opened[1], CLIENT), (opened[2], SERVER),
    ]
    assert [frame[47] for _, _, frame in (one.sent[3], one.sent[5], one.sent[6])] == [0x02, 0x12, 0x10]

def test_sums_of_all_packets_are_right() -> None:
    one = through()
    assert one.run(30 * cern.TICKS_S)
    packets = [frame[14:] for _, _, frame in one.sent if frame[12:14] == b"\x08\x00"]
    assert len(packets) > OCTETS // 1460
    for packet in packets:
        length = int.from_bytes(packet[2:4], "big")
        whole = packet[12:20] + struct.pack(">HH", 6, length - 20) + packet[20:length] + b"\0" * (length % 2)
        assert sum(struct.unpack(f">{len(whole) // 2}H", whole)) % 0xFFFF == 0
        assert sum(struct.unpack(">10H", packet[:20])) % 0xFFFF == 0

@pytest.mark.parametrize("is_kept", [False, True])
def test_constant_background_does_little_and_exponential_much_more(is_kept: bool) -> None:
    free, constant, exponential, bursts = (
        fetched(kind, load, is_kept).seconds
        for kind, load in ((Kind.CONSTANT, 0), (Kind.CONSTANT, 0.8), (Kind.EXPONENTIAL, 0.9), (Kind.BURSTS, 0.8))
    )
    assert constant < 1.25 * free
    assert free < constant < exponential < bursts
    assert exponential - free > 2 * (constant - free)

@pytest.mark.parametrize("case", [
    Case(Kind.CONSTANT, 0, False),
    Case(Kind.EXPONENTIAL, 0.9, True, 2),
    Case(Kind.BURSTS, 0.8, True, 1),
    Case(Kind.PATTERN, 0.9, False, 1, 16),
    Case(Kind.PATTERN, 0.95, True, 4, 64), # More than the link carries.
], ids=lambda case: f"{case.kind.value}{case.gaps or ''}")
def test_both_models_of_a_direction_carry_the_same_frames_on_the_same_ticks(case: Case) -> None:
    runs = []
    for model in (FifoDirection, Direction):
        one = cern.simulation(case, SITE, model)
        one.run(15 * cern.TICKS_S)
        runs.append((one.sent, [path.direction.departures for path in one.paths.values()], one.count(ClassCounter.FULL)))
    assert runs[0] == runs[1]
    assert bool(runs[0][2]) is (case.gaps == 64 or case.kind is Kind.BURSTS)

def test_a_pattern_repeats_and_asks_for_its_own_share() -> None:
    """The experiment's large deviations come of it: of 16 intervals the sum is off by a quarter, of 4096 by a sixty-fourth."""
    case = Case(Kind.PATTERN, 0.8, False, 0, 16)
    one = cern.settings(case, 0)
    words = one.patterns
    bank = Bank.of(one.words).classes[CLASS]
    times = [time >> 16 for time in islice(background_times(bank, list(words)), 48)]
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[:16] == [*words[2::2], words[0]] and gaps[16:32] == gaps[:16] and words[1::2] == [1514] * 16
    shares = [[count * 1538 * OCTET / sum(cern.pattern(count, 1, seed)[::2]) for seed in range(40)] for count in (16, 4096)]
    deviations = [statistics.stdev(1 / share for share in several) for several in shares]
    assert deviations == pytest.approx([1 / 4, 1 / 64], rel=0.3)

def test_a_run_repeats() -> None:
    first, again, other = (fetched(Kind.EXPONENTIAL, 0.8, True, seed) for seed in (3, 3, 4))
    assert first == again
    assert first != other

def test_what_is_lost_is_sent_again() -> None:
    clean, lossy = through(), through(loss_good=2**32 // 25)
    assert clean.run(30 * cern.TICKS_S) and lossy.run(600 * cern.TICKS_S)
    for one in (clean, lossy):
        progress = one.stations[CLIENT].progress()
        assert (progress.files, progress.octets, progress.wrong) == (FILES, OCTETS, 0)
    assert lossy.tick > clean.tick

def test_codel_keeps_the_wait_of_tcp_near_its_target() -> None:
    """A window of 44 segments on a path that holds 20 makes a queue of 26 ms that stands; CoDel's target is 5 ms."""
    means = []
    for own in ({}, {"codel": 1, "codel_target": 625_000, "codel_interval": 12_500_000}):
        one = through([3_000_000], limit_frames=128, **own)
        assert one.run(20 * cern.TICKS_S)
        frames = [frame for path in one.paths.values() for frame in path.direction.frames if frame.length > 1000]
        waits = [frame.due - frame.time - way(frame.length) + PREAMBLE + frame.length + 4 for frame in frames if frame.due]
        means.append(sum(waits) / len(waits) / 125_000)
    assert means[0] > 20 and 3 < means[1] < 8

def test_a_network_without_delay_is_refused() -> None:
    with pytest.raises(ValueError, match=f"give class {CLASS} a delay"):
        through(delay=0)
