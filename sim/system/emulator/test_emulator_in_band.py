# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""An emulated network of jumbo frames whose probe is reached in band: by port 0, beside the frames of the network.

In every run it has one direction, and what comes to port 1 leaves port 0 as it came, which `test_emulator_back.py` holds against
its model, too; ``--full`` adds one of two directions.
"""

import random
from pathlib import Path
from typing import Any

import pytest

from liteprobe.cores.formats.emulate import ClassCounter
from liteprobe.sim.drivers.system.emulator import (
    PROBE_MAC,
    Emulated,
    bank,
    delays,
    emulating,
    frame_with,
    packets,
    rings,
)
from liteprobe.sim.models.emulator.settings import Settings
from liteprobe.sim.system.build import build_probe

WORDS = 1 << 15
LONGEST = 9018
TWO = (0, 1)  # Classes: their rings then hold several of the longest frames.
STATION, PROBE_IP, STATION_IP = b"\x02\x53\0\0\0\x09", bytes([192, 168, 1, 50]), bytes([192, 168, 1, 9])
ARP = bytes.fromhex("0806 0001 0800 0604 0001") + STATION + STATION_IP + bytes(6) + PROBE_IP
ASKS = b"\xff" * 6 + STATION + ARP + bytes(18)


@pytest.fixture(scope="module", params=[1, pytest.param(2, marks=pytest.mark.full)])
def build(request: pytest.FixtureRequest) -> Path:
    """A probe of so many directions for jumbo frames, which wait in block RAM, with Etherbone in band on port 0."""
    options: dict[str, Any] = {"store": "block", "store_words": WORDS, "longest": LONGEST, "directions": request.param}
    return build_probe("shared", with_cpu=False, preset="emulator", **options)


def directions_of(emulated: Emulated) -> int:
    """Return how many directions the probe has."""
    return sum(f"direction{number}_arm" in emulated.probe.registers.names for number in range(2))


def plain(delay: int, link: dict[str, int] | None = None) -> Settings:
    """Return a network that delays all frames alike."""
    return Settings(bank({}, link or {}, rings({0: 14, 1: 13}, WORDS), delay))


def start(emulated: Emulated) -> Settings:
    """Start all directions with the least delay."""
    emulated.name_classes()
    settings = plain(emulated.read(0, "least_delay"))
    emulated.start(dict.fromkeys(range(directions_of(emulated)), settings))
    return settings


def read_while_it_runs(emulated: Emulated, seconds: float) -> int:
    """Read registers over and over for so long, and return how often."""
    end, reads = emulated.link.now_ns() + seconds * 1e9, 0
    while emulated.link.now_ns() < end:
        assert emulated.probe.registers.read("probe_ports") == 2
        emulated.probe.wait(10e-6)
        reads += 1
    return reads


# Jumbo frames ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lengths", "count"), [((60, LONGEST), 40), pytest.param((LONGEST - 4, LONGEST), 16, marks=pytest.mark.full)]
)
def test_jumbo_frames_at_line_rate_both_ways_leave_after_the_least_delay_exactly(
    build: Path, tmp_path: Path, lengths: tuple[int, int], count: int
) -> None:
    with emulating(build, tmp_path, link="shared") as emulated:
        settings = start(emulated)
        emulated.play({port: packets(count, port, 1.0, lengths, TWO) for port in range(2)}, 200e-6)
        for number in range(directions_of(emulated)):
            assert emulated.compare(number, settings) == []
            assert set(delays(emulated, number).tolist()) == {emulated.read(number, "least_delay")}
            assert emulated.total(number, ClassCounter.ARRIVED) == count
        came = [seen.octets for seen in emulated.pins(1, "in")]
        assert len(came) == count and [seen.octets for seen in emulated.pins(0, "out")] == came


def test_of_all_lengths_those_that_the_probe_holds_go_through_and_others_are_counted(
    build: Path, tmp_path: Path
) -> None:
    lengths = [60, 61, 62, 63, 64, 1535, 1536, 1537, 4095, 4096, 9014, 9015, 9016, 9017, 9018]
    wrong = [14, 59, LONGEST + 1, LONGEST + 2, LONGEST + 82, 12_000]
    mixed = random.Random(3).sample(lengths + wrong, len(lengths + wrong))
    with emulating(build, tmp_path, link="shared") as emulated:
        settings = start(emulated)
        before = emulated.read(0, "damaged")
        for number, length in enumerate(mixed):
            (made,) = packets(1, number, 1.0, (max(60, length),) * 2, TWO)
            emulated.link.inject(0, frame_with(made.octets[:length]))
            emulated.probe.wait(110e-6)
        emulated.probe.wait(200e-6)
        assert emulated.compare(0, settings) == []
        assert sorted(len(seen.octets) for seen in emulated.pins(1, "out")) == lengths
        assert emulated.read(0, "damaged") - before == len(wrong)


# Management in band ------------------------------------------------------------------------------------


def test_management_is_counted_and_goes_where_it_delays_no_frame(build: Path, tmp_path: Path) -> None:
    with emulating(build, tmp_path, link="shared") as emulated:
        settings = start(emulated)
        emulated.play({port: packets(100, 7 + port, 0.7, classes=TWO) for port in range(2)}, -1.3e-3)
        assert read_while_it_runs(emulated, 1.5e-3) > 20
        registers = emulated.probe.registers
        directions = directions_of(emulated)
        assert [emulated.compare(number, settings) for number in range(directions)] == [[]] * directions
        asked = len(emulated.pins(0, "in", is_own=True))
        assert emulated.read(0, "management") == asked  # Its own request is counted after it was done.
        assert directions == 1 or emulated.read(1, "management") == 0
        assert registers.read("port0_tx_management_dropped") == 0
        assert emulated.pins(1, "out", is_own=True) == []


def test_a_line_that_is_full_lets_management_go_after_a_while_and_counts_what_waited(
    build: Path, tmp_path: Path
) -> None:
    count = 400  # 4.9 ms.
    with emulating(build, tmp_path, link="shared") as emulated:
        settings = start(emulated)
        if directions_of(emulated) == 1:
            pytest.skip("what goes back finds no space then: test_emulator_back.py")
        made = packets(count, 3, 1.0, (1514, 1514), TWO)
        emulated.play({0: packets(count, 4, 1.0, (1514, 1514), TWO), 1: made}, -4.5e-3)
        reads = read_while_it_runs(emulated, 4e-3)
        assert 3 <= reads <= 4
        emulated.probe.wait(1e-3)
        assert emulated.compare(0, settings) == []
        assert [seen.octets for seen in emulated.pins(0, "out")] == [one.octets for one in made]
        late = delays(emulated, 1) - emulated.read(1, "least_delay")
        # What has the line meanwhile is a reply of 60 octets, for each of these reads.
        assert late.max() <= 84 * (reads + 2) and late.min() == 0
        assert emulated.total(1, ClassCounter.WAITED) == (late > 0).sum() > 0
        assert [emulated.total(number, ClassCounter.LATE) for number in range(2)] == [0, 0]


def test_a_broadcast_arp_is_answered_and_forwarded(build: Path, tmp_path: Path) -> None:
    with emulating(build, tmp_path, link="shared") as emulated:
        settings = start(emulated)
        before = emulated.read(0, "management")
        emulated.link.inject(0, frame_with(ASKS))
        emulated.probe.wait(400e-6)
        # One read, which comes before it: what is forwarded is counted by its class.
        assert emulated.read(0, "management") - before == 1
        assert emulated.compare(0, settings) == []
        assert [seen.octets for seen in emulated.pins(1, "out")] == [ASKS]
        answers = [seen.octets for seen in emulated.pins(0, "out", is_own=True) if seen.octets[:6] == STATION]
        assert [one[20:22] + one[22:32] for one in answers] == [b"\x00\x02" + PROBE_MAC + PROBE_IP]
        assert emulated.total(0, ClassCounter.ARRIVED) == 1


def test_from_the_other_side_all_goes_through_the_network_and_the_probe_is_not_there(
    build: Path, tmp_path: Path
) -> None:
    to_probe = PROBE_MAC + STATION + bytes.fromhex("0800") + bytes(60)
    with emulating(build, tmp_path, link="shared") as emulated:
        settings = start(emulated)
        for octets in (ASKS, to_probe):
            emulated.link.inject(1, frame_with(octets))
            emulated.probe.wait(400e-6)
        is_two_way = directions_of(emulated) == 2
        assert not is_two_way or emulated.compare(1, settings) == []
        assert [seen.octets for seen in emulated.pins(0, "out")] == [ASKS, to_probe]
        assert [seen for seen in emulated.pins(0, "out", is_own=True) if seen.octets[:6] == STATION] == []
        assert emulated.pins(1, "out") == [] and not (is_two_way and emulated.read(1, "management"))
