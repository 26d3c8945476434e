# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Two ports of the whole simulated probe joined by networks that change under load, and by extreme ones."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from liteprobe.cores.formats.emulate import BANK_WORDS, ClassCounter
from liteprobe.sim.drivers.system.emulator import bank, emulating, frame_with, packets, rings
from liteprobe.sim.models.emulator.settings import Settings

WORDS = 1 << 15
ALL = 2**32 - 1
LANES = rings(11, WORDS)
BUSY = {"octet": 90_000}  # 0.73 of the line.
FEW = {"limit_octets": 3000}  # Of each class: all that waits finds space.
GOOD = b"\x02" + bytes(range(99))


def words(classes: Mapping[int, Mapping[str, int]], link: Mapping[str, int]) -> list[int]:
    """Return a bank whose classes have short queues, but for what is said of them."""
    return bank({one: {**FEW, **classes.get(one, {})} for one in range(8)}, link, LANES, 4000)


def test_changes_under_load_touch_only_what_they_name(emulator_build: Path, tmp_path: Path) -> None:
    first = {0: {"corrupt": ALL // 9, "flags": 1}, 2: {"limit_frames": 9}, 5: {"duplicate": ALL // 3}}
    banks = [
        words(first, BUSY),
        words({**first, 0: {"loss_good": ALL // 4}}, BUSY),
        words({**first, 3: {"delay": 9000}}, {"octet": 70_000, "service": 1}),
        words(first, BUSY),
    ]
    ticks = [30_000, 70_000, 110_000]
    with emulating(emulator_build, tmp_path) as emulated:
        emulated.name_classes()
        emulated.start({0: Settings(banks[0]), 1: Settings(banks[0])}, {0: banks[1]})
        write, memory = emulated.probe.registers.write, "direction0_settings"
        made = {port: packets(250, 11 + port, 1.0, (60, 1000)) for port in range(2)}
        emulated.probe.registers.write_burst({"direction0_switch_at": ticks[0]})
        write("direction0_switch", 1)
        emulated.play(made, -1.05e-3)
        for number, tick in enumerate(ticks[1:], 2):
            while emulated.read(0, "bank") != (number - 1) & 1:  # Also: none is to come.
                emulated.probe.wait(20e-6)
            emulated.probe.registers.write_memory(memory, BANK_WORDS * (number & 1), banks[number])
            emulated.probe.registers.write_burst({"direction0_switch_at": tick})
            write("direction0_switch", 1)
        emulated.probe.wait(2e-3)
        assert emulated.read(0, "bank") == 1
        switches = list(zip(ticks, banks[1:], strict=True))
        assert emulated.compare(0, Settings(banks[0]), switches) == []
        # Each of them was seen.
        assert all(emulated.compare(0, Settings(banks[0]), switches[:count]) for count in range(len(switches)))
        assert emulated.compare(1, Settings(banks[0])) == []
        assert emulated.total(0, ClassCounter.ARRIVED) == len(made[0])


@pytest.mark.parametrize(
    ("classes", "link"),
    [
        # Background of 120 % of the link: a queue that is never empty.
        (
            {1: {"background": 1, "background_ticks": 2000, "background_length": 1500, "limit_frames": 4}},
            {"octet": 104_000},
        ),
        pytest.param({one: {"limit_frames": 0} for one in range(4)}, BUSY, marks=pytest.mark.full),
        pytest.param({one: {"limit_octets": 59} for one in range(3, 8)}, BUSY, marks=pytest.mark.full),
        ({one: {"limit_frames": 1 + one} for one in range(8)}, {"octet": 300_000, "service": 1}),
        pytest.param({one: {"loss_good": ALL} for one in range(8)}, {}, marks=pytest.mark.full),
    ],
)
def test_extreme_networks_do_what_the_reference_does(
    emulator_build: Path, tmp_path: Path, classes: dict[int, dict[str, int]], link: dict[str, int]
) -> None:
    settings = Settings(words(classes, link))
    with emulating(emulator_build, tmp_path) as emulated:
        emulated.name_classes()
        emulated.start({0: settings, 1: settings})
        emulated.play({port: packets(120, 21 + port, 0.9, (60, 1000)) for port in range(2)}, 1.2e-3)
        assert [emulated.compare(number, settings) for number in range(2)] == [[], []]
        assert [emulated.total(number, ClassCounter.ARRIVED) for number in range(2)] == [120, 120]


def test_ghosts_alone_are_counted_and_send_nothing(emulator_build: Path, tmp_path: Path) -> None:
    background = {"background": 1, "background_ticks": 3000, "background_length": 1000, "limit_frames": 2}
    settings = Settings(words({4: background}, {"octet": 80_000}))
    with emulating(emulator_build, tmp_path) as emulated:
        emulated.start({0: settings})
        emulated.probe.wait(1e-3)
        # A read of ``bank`` takes the time; a background frame comes at 0, and is counted some ticks later.
        banks, nows = [emulated.read(0, "bank")], [emulated.read(0, "now")]
        count = emulated.counts(0)[4]
        banks, nows = [*banks, emulated.read(0, "bank")], [*nows, emulated.read(0, "now")]
        assert banks == [0, 0]
        assert nows[0] // 3000 <= count[ClassCounter.BACKGROUND] <= nows[1] // 3000 + 1
        assert emulated.pins(1, "out") == [] and emulated.total(0, ClassCounter.SENT) == 0


def test_frames_of_other_preambles_gaps_and_lengths_go_through_or_are_counted(
    emulator_build: Path, tmp_path: Path
) -> None:
    settings = Settings(bank({}, {}, rings({7: 13}, WORDS), 4000))
    whole = frame_with(GOOD)
    begins = {count: bytes([0x55] * count) + whole[7:] for count in (1, 2, 6, 8, 15, 30)}
    longest = {length: frame_with(bytes([2]) * length) for length in (60, 1535, 1536, 1537, 1540)}
    broken = {"cut": whole[:60], "runt": frame_with(GOOD[:59]), "fcs": frame_with(GOOD, 1), "no end": whole[:-1]}
    with emulating(emulator_build, tmp_path) as emulated:
        emulated.start({0: settings})
        before = emulated.read(0, "damaged")
        for octets in [*begins.values(), *longest.values(), *broken.values()]:
            emulated.link.inject(0, octets)
            emulated.probe.wait(40e-6)
        assert emulated.compare(0, settings) == []
        lengths = sorted(len(seen.octets) for seen in emulated.pins(1, "out"))
        assert lengths == sorted([100] * len(begins) + [60, 1535, 1536])
        assert emulated.read(0, "damaged") - before == 2 + len(broken)
