# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Two ports of the whole simulated probe joined by emulated networks: each frame at the pins is the reference's."""

from itertools import zip_longest
from pathlib import Path
from random import Random

import numpy as np
import pytest

from liteprobe.cores.formats.emulate import RULES, UNMATCHED_CLASS, ClassCounter, ClassFlag
from liteprobe.host.packets.filter import libpcap
from liteprobe.host.packets.filter.expression import parse
from liteprobe.host.packets.filter.rules import class_rules
from liteprobe.host.run.emulate import EmulatorDirection
from liteprobe.sim.drivers.filter.expressions import varied
from liteprobe.sim.drivers.system import emulator
from liteprobe.sim.drivers.system.emulator import (
    ORDINARY,
    RESERVED,
    back_to_back,
    bank,
    emulating,
    frame_with,
    packets,
    rings,
)
from liteprobe.sim.models.emulator.direction import is_reserved
from liteprobe.sim.models.emulator.rules import RulesModel, headers_of
from liteprobe.sim.models.emulator.settings import Settings

WORDS = 1 << 15
LATE = (ClassCounter.LATE, ClassCounter.NO_STORE)


def plain(delay: int) -> Settings:
    """Return a network that delays all frames alike, in any order of classes."""
    return Settings(bank({}, {}, rings(11, WORDS), delay))


@pytest.mark.parametrize(
    ("lengths", "count"), [((60, 60), 300), pytest.param((1514, 1514), 30, marks=pytest.mark.full), ((60, 1514), 80)]
)
def test_line_rate_both_ways_leaves_after_the_least_delay_exactly(
    emulator_build: Path, tmp_path: Path, lengths: tuple[int, int], count: int
) -> None:
    with emulating(emulator_build, tmp_path) as emulated:
        emulated.name_classes()
        settings = plain(emulated.read(0, "least_delay"))
        emulated.start({0: settings, 1: settings})
        emulated.play({port: packets(count, port, 1.0, lengths) for port in range(2)})
        for number in range(2):
            assert emulated.compare(number, settings) == []
            assert set(emulator.delays(emulated, number).tolist()) == {emulated.read(number, "least_delay")}
            assert [emulated.total(number, counter) for counter in LATE] == [0, 0]


@pytest.mark.parametrize(
    "phases",
    ["0,1000,0", "4100,7999,0", *(pytest.param(one, marks=pytest.mark.full) for one in ("0,0,0", "3900,7700,0"))],
)
def test_a_receive_clock_of_another_phase_changes_no_tick_and_the_origin_is_that_of_the_background(
    emulator_build: Path, tmp_path: Path, phases: str
) -> None:
    background = {"background": 1, "background_ticks": 3001, "background_length": 700, "background_phase": 100}
    busy = Settings(bank({3: background}, {"octet": 80000}, rings(11, WORDS), 5000))
    with emulating(emulator_build, tmp_path, clocks=f"--phase {phases}") as emulated:
        emulated.name_classes()
        emulated.start({0: busy, 1: plain(5000)})
        emulated.play({port: packets(60, port, 0.3) for port in range(2)})
        assert [emulated.compare(0, busy), emulated.compare(1, plain(5000))] == [[], []]
        assert set(emulator.delays(emulated, 1).tolist()) == {5000}


def test_frames_that_no_bridge_forwards_are_counted_and_dropped_unless_they_are_asked_for(
    emulator_build: Path, tmp_path: Path
) -> None:
    settings = plain(4000)
    with emulating(emulator_build, tmp_path) as emulated:
        frames = [one for pair in zip_longest(RESERVED, ORDINARY) for one in pair if one]
        for is_forwarded, wanted in ((0, ORDINARY), (1, frames)):
            emulated.probe.registers.write("direction0_forward_reserved", is_forwarded)
            emulated.start({0: settings})
            for one in frames:
                emulated.link.inject(0, frame_with(one))
            emulated.link.inject(0, frame_with(RESERVED[0], 1))  # Damaged, and nothing else.
            emulated.probe.wait(60e-6)
            assert emulated.compare(0, settings) == []
            assert [seen.octets for seen in emulated.pins(1, "out")] == wanted
            assert [emulated.read(0, name) for name in ("reserved", "damaged")] == [len(RESERVED), 1 + is_forwarded]
            emulated.stop([0])


def test_classes_are_those_of_the_expressions_frame_by_frame(emulator_build: Path, tmp_path: Path) -> None:
    """The whole way: an expression becomes rules, these name classes of frames at line rate, and each class has a delay."""
    chance = Random(7)
    frames = [one for one in varied(400, chance) if not is_reserved(one)]
    matches = [
        "arp",
        "udp portrange 1-1023",
        "ip[1] & 0xfc = 0 and tcp",
        "not ip and not port 443",
        "len > 200",
        "sctp",
        "icmp",
    ]
    rules = class_rules({number: (match, parse(match)) for number, match in enumerate(matches)})
    classes = RulesModel(
        {first + n: word for first, words in rules.blocks(RULES) for n, word in enumerate(words)}, rules.looks
    )
    wanted = np.full(len(frames), UNMATCHED_CLASS)
    for number in reversed(range(len(matches))):
        wanted[libpcap.matches(matches[number], frames)] = number
    assert classes.classes(headers_of(frames)).tolist() == wanted.tolist()
    with emulating(emulator_build, tmp_path) as emulated:
        EmulatorDirection(emulated.probe.registers, 0).load_rules(rules, False)
        emulated.start({0: plain(4000)})
        emulated.play({0: back_to_back(frames)})
        assert [words[ClassCounter.ARRIVED] for words in emulated.counts(0)] == np.bincount(
            wanted, minlength=8
        ).tolist()
        assert emulated.read(0, "overflows") == 0


def test_a_step_of_the_clock_moves_no_frame_that_waits_or_comes(emulator_build: Path, tmp_path: Path) -> None:
    """All that an emulator does is by ticks since its start: firmware may step the clock meanwhile."""
    settings = plain(40_000)
    with emulating(emulator_build, tmp_path) as emulated:
        emulated.name_classes()
        emulated.start({0: settings, 1: settings})
        emulated.play({0: packets(20, 1, 0.5), 1: packets(20, 2, 0.5)})
        assert emulated.pins(1, "out") == []
        emulated.probe.timebase.adjust(123_456)
        emulated.play({0: packets(20, 3, 0.5)}, 400e-6)
        emulated.probe.timebase.set_time(1_778_720_000 * 10**9)
        emulated.play({1: packets(20, 4, 0.5)}, 400e-6)
        for number in range(2):
            assert emulated.compare(number, settings) == []
            assert emulator.delays(emulated, number).tolist() == [40_000] * 40


def test_damage_loss_reordering_and_background_are_those_of_the_reference(emulator_build: Path, tmp_path: Path) -> None:
    share = 2**32 // 5
    classes = {
        0: {"corrupt": share, "duplicate": share, "flags": int(ClassFlag.MENDED)},
        1: {"corrupt": share, "reorder": share, "reorder_ticks": 4000},
        2: {"loss_good": share, "flags": int(ClassFlag.LOSS_LATE), "limit_frames": 3},
        3: {
            "background": 2,
            "background_ticks": 4000,
            "background_length": 800,
            "background_phase": 100,
            "limit_frames": 5,
        },
        4: {"flags": int(ClassFlag.JITTER), "delay_repeat": 2**31, "loss_good": share},
        5: {"token_octet": 150000, "token_burst_low": 2**27},
    }
    settings = Settings(bank(classes, {"octet": 80000, "service": 1}, rings(11, WORDS), 6000), list(range(0, 4096, 4)))
    with emulating(emulator_build, tmp_path) as emulated:
        emulated.name_classes()
        emulated.start({0: settings, 1: settings})
        emulated.play({port: packets(120, 3 + port, 0.5) for port in range(2)}, 300e-6)
        assert [emulated.compare(number, settings) for number in range(2)] == [[], []]


def test_bad_frames_go_no_further_and_a_second_program_knows_nothing_of_the_first(
    emulator_build: Path, tmp_path: Path
) -> None:
    with emulating(emulator_build, tmp_path) as emulated:
        slow, settings = plain(100_000), plain(4000)
        emulated.start({0: slow})
        emulated.play({0: packets(30, 5, 0.8)})
        emulated.stop([0])
        emulated.start({0: settings})
        good = b"\x02" + bytes(range(99))
        for octets in (
            frame_with(good),
            frame_with(good, 1),
            frame_with(good[:50]),
            frame_with(good * 20),
            frame_with(good * 10),
        ):
            emulated.link.inject(0, octets)
            emulated.probe.wait(40e-6)
        assert emulated.compare(0, settings) == []
        assert len(emulated.pins(1, "out")) == 2
        assert emulated.read(0, "damaged") == 3
