# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Two ports of the whole simulated probe joined by emulated networks: each frame at the pins is the reference's."""

from pathlib import Path

import pytest

from liteprobe.cores.formats.emulate import ClassCounter, ClassFlag
from liteprobe.sim.drivers.system import emulator
from liteprobe.sim.drivers.system.emulator import bank, emulating, frame_with, packets, rings
from liteprobe.sim.models.emulator.settings import Settings

WORDS = 1 << 15
LATE = (ClassCounter.LATE, ClassCounter.NO_STORE)


def plain(delay: int) -> Settings:
    """Return a network that delays all frames alike, in any order of classes."""
    return Settings(bank({}, {}, rings(11, WORDS), delay))


@pytest.mark.parametrize(("lengths", "count"), [((60, 60), 300), ((1514, 1514), 30), ((60, 1514), 80)])
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


@pytest.mark.parametrize("phases", ["0,0,0", "0,1000,0", "3900,7700,0", "4100,7999,0"])
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
