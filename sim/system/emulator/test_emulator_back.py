# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A whole simulated probe with a network of one direction: frames of port 1 leave port 0 as they came."""

import random
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from liteprobe.cores.formats import TransmitState
from liteprobe.sim.drivers.system.emulator import (
    ORDINARY,
    RESERVED,
    Emulated,
    bank,
    delays,
    emulating,
    frame_with,
    packets,
    rings,
)
from liteprobe.sim.drivers.system.senders import write
from liteprobe.sim.models.emulator.settings import Settings
from liteprobe.sim.models.emulator.direction import Arrival, is_good, leaving
from liteprobe.sim.system.build import build_probe

WORDS = 1 << 15
LONGEST = 9018


def one_way(link: str) -> Path:
    """Return the folder of the probe, which test_emulator_in_band.py uses, too."""
    options: dict[str, Any] = {"store": "block", "store_words": WORDS, "longest": LONGEST, "directions": 1}
    return build_probe(link, with_cpu=False, preset="emulator", **options)


@pytest.fixture(scope="module")
def shared() -> Path:
    """The probe of preset ``emulator`` with one direction, whose frames wait in block RAM, with Etherbone in band."""
    return one_way("shared")


@pytest.fixture(scope="module", params=["shared", pytest.param("own", marks=pytest.mark.full)])
def build(request: pytest.FixtureRequest) -> tuple[str, Path]:
    """The link and the folder of such a probe; its way back has no other part in band or with a port of its own."""
    link = request.param
    if link == "shared":
        return link, request.getfixturevalue("shared")
    return link, one_way(link)


def came(emulated: Emulated) -> list[Arrival]:
    """Return the frames that came to port 1."""
    return [Arrival(seen.tick, seen.octets, seen.is_bad) for seen in emulated.pins(1, "in", anew=False)]


def counted(emulated: Emulated, *names: str) -> list[int]:
    """Return registers of the way back."""
    return [emulated.probe.registers.read(f"port0_tx_{name}") for name in names]


def check(emulated: Emulated, empty: int = 0) -> None:
    """Hold what left port 0 and what was counted against the model; ``empty``: SFDs without an octet, which no capture shows."""
    frames = came(emulated)
    wanted = leaving(frames, LONGEST)
    found = emulated.pins(0, "out", anew=False)
    assert [seen.octets for seen in found] == [one.octets for one in wanted]
    pairs = zip(found, wanted, strict=True)
    assert [n for n, (seen, one) in enumerate(pairs) if not one.first <= seen.tick <= one.last] == []
    assert not any(seen.is_bad for seen in found)
    assert counted(emulated, "sent", "damaged", "full") == [len(wanted), len(frames) - len(wanted) + empty, 0]


@pytest.mark.parametrize(
    ("lengths", "count"),
    [((60, 60), 300), *(pytest.param(*one, marks=pytest.mark.full) for one in (((1514, 1514), 30), ((60, 1514), 80)))],
)
def test_line_rate_goes_back_as_it_came_beside_a_line_rate_through_the_network(
    build: tuple[str, Path], tmp_path: Path, lengths: tuple[int, int], count: int
) -> None:
    with emulating(build[1], tmp_path, build[0]) as emulated:
        emulated.name_classes()
        settings = Settings(bank({}, {}, rings(11, WORDS), emulated.read(0, "least_delay")))
        emulated.start({0: settings})
        emulated.play({port: packets(count, port, 1.0, lengths) for port in range(2)}, 200e-6)
        check(emulated)
        assert emulated.compare(0, settings) == []
        assert set(delays(emulated, 0).tolist()) == {emulated.read(0, "least_delay")}
        assert counted(emulated, "state", "link_up") == [TransmitState.IDLE, 1]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2))])
def test_hostile_frames_go_no_further_and_hurt_no_other(build: tuple[str, Path], tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with emulating(build[1], tmp_path, build[0]) as emulated:
        edges = [(length, 0) for length in (59, 60, LONGEST, LONGEST + 1)]  # Nothing else is wrong with them.
        others = [(chance.randint(1, 3072), chance.choice([0, 0, 1 << chance.randrange(32)])) for _ in range(12)]
        for length, fcs_error in edges + others:
            emulated.link.inject(1, frame_with(b"\x02" + chance.randbytes(length - 1), fcs_error))
            emulated.probe.wait(30e-6 + 8e-9 * length)
        emulated.link.inject(1, frame_with(bytes(70))[:8])  # No frame behind its SFD.
        emulated.probe.wait(30e-6)
        check(emulated, empty=1)
        assert 0 < counted(emulated, "damaged")[0] < len(came(emulated))


def test_frames_that_no_bridge_forwards_are_counted_and_dropped_unless_they_are_asked_for(
    build: tuple[str, Path], tmp_path: Path
) -> None:
    with emulating(build[1], tmp_path, build[0]) as emulated:
        frames = [one for pair in zip_longest(RESERVED, ORDINARY) for one in pair if one]
        for is_forwarded, wanted in ((0, ORDINARY), (1, frames)):
            emulated.probe.registers.write("direction0_forward_reserved", is_forwarded)
            before = len(emulated.pins(0, "out", anew=False))
            for one in frames:
                emulated.link.inject(1, frame_with(one))
            emulated.link.inject(1, frame_with(RESERVED[0], 1))  # Damaged, and nothing else.
            emulated.probe.wait(60e-6)
            assert [seen.octets for seen in emulated.pins(0, "out", anew=False)][before:] == wanted
            assert counted(emulated, "reserved", "damaged") == [len(RESERVED), 1 + is_forwarded]


@pytest.mark.parametrize(
    "clocks",
    [
        "--ppm 100,-100,0",
        *(pytest.param(one, marks=pytest.mark.full) for one in ("--phase 0,1000,0", "--ppm -100,100,0")),
    ],
)
def test_clocks_of_another_phase_or_rate_lose_nothing(build: tuple[str, Path], tmp_path: Path, clocks: str) -> None:
    with emulating(build[1], tmp_path, build[0], clocks=clocks) as emulated:
        emulated.play({1: packets(60, 3, 1.0)})
        found = [seen.octets for seen in emulated.pins(0, "out", anew=False)]
        assert found == [frame.octets for frame in came(emulated)]
        assert len(found) == 60 and counted(emulated, "sent", "damaged", "full") == [60, 0, 0]


def test_management_in_band_goes_first_and_what_finds_no_space_is_counted(shared: Path, tmp_path: Path) -> None:
    with emulating(shared, tmp_path, link="shared") as emulated:
        made, path = packets(400, 4, 1.0, (1514, 1514)), tmp_path / "back.pcap"
        write(path, made)
        assert emulated.link.play(1, path, emulated.link.now_ns() + 5000) == len(made)
        before = emulated.link.now_ns()
        words = emulated.probe.registers.read_memory("direction0_settings", 0, 1000)
        while emulated.link.now_ns() < before + made[-1].time_ns - made[0].time_ns:
            assert (emulated.probe.registers.read_memory("direction0_settings", 0, 1000) == words).all()
        emulated.probe.wait(600e-6)  # All that waits leaves.
        good = [frame.octets for frame in came(emulated) if is_good(frame, LONGEST)]
        back = [seen.octets for seen in emulated.pins(0, "out", anew=False)]
        answers = emulated.pins(0, "out", anew=False, is_own=True)
        assert len(good) == len(made)
        rest = iter(good)
        assert all(octets in rest for octets in back)  # In order, each at most once.
        sent, damaged, full, dropped = counted(emulated, "sent", "damaged", "full", "management_dropped")
        assert (sent, damaged, full, dropped) == (len(back), 0, len(good) - len(back), 0)
        assert full > 0
        assert len(answers) > 5
