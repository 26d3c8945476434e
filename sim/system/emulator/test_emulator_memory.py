# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The memories of a whole simulated emulator: bandwidth traces, and frames that wait in the SDRAM, against the reference."""

import random
from pathlib import Path

import pytest

from liteprobe.cores.formats.emulate import ClassCounter
from liteprobe.sim.drivers.system.emulator import bank, emulating, packets, rings
from liteprobe.sim.models.emulator.settings import Settings
from liteprobe.sim.system.build import build_probe

WORDS = {"block": 1 << 15, "sdram": 1 << 19}
BITS = {"block": dict.fromkeys(range(7), 11) | {7: 14}, "sdram": dict.fromkeys(range(7), 15) | {7: 18}}
ENTRIES = {"block": 64, "sdram": 4096}
MS = 125_000  # Ticks.
LATE = (ClassCounter.LATE, ClassCounter.NO_STORE)


@pytest.fixture(scope="module", params=["block", pytest.param("sdram", marks=pytest.mark.full)])
def build(request: pytest.FixtureRequest, emulator_build: Path) -> tuple[Path, str]:
    """A probe whose frames and traces are in block RAM, or in the SDRAM with the boards' clock."""
    store = request.param
    if store == "block":
        return emulator_build, store
    options = {"store": store, "store_words": WORDS[store], "trace_entries": ENTRIES[store]}
    return build_probe("own", with_cpu=False, preset="emulator", memory_mhz=80, **options), store


def traced(store: str, trace: list[tuple[int, int]], delay: int, **classes: int) -> Settings:
    """Return a network whose links serve by a trace."""
    plain = {number: dict(classes) for number in range(8)}
    return Settings(bank(plain, {"trace": 1}, rings(BITS[store], WORDS[store]), delay), trace=trace)


def hostile(seed: int, count: int) -> list[tuple[int, int]]:
    """Return a trace with gaps and octets of all kinds, none among them; the SDRAM takes some microseconds for each on the mean."""
    chance = random.Random(seed)
    gaps = [chance.choice([0, 0, 1, 5000, 9000]) for _ in range(count - 1)]
    return [(gap, chance.choice([0, 1, 64, 1500, 3000, 2**32 - 1])) for gap in [*gaps, 9000]]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.full)])
def test_what_a_hostile_trace_serves_is_what_the_reference_does_and_it_wraps(
    build: tuple[Path, str], tmp_path: Path, seed: int
) -> None:
    folder, store = build
    traces = [hostile(seed, 7), hostile(seed + 10, ENTRIES["block"])]
    with emulating(folder, tmp_path) as emulated:
        emulated.name_classes()
        settings = [traced(store, trace, 12_000, limit_frames=4) for trace in traces]
        emulated.start(dict(enumerate(settings)))
        emulated.play({port: packets(100, seed + port, 0.5) for port in range(2)}, 0.3e-3)
        assert [emulated.compare(number, one) for number, one in enumerate(settings)] == [[], []]
        assert [emulated.total(number, one) for number in range(2) for one in LATE] == [0] * 4


def test_a_trace_of_900_megabits_a_second_is_served_and_a_second_program_begins_it_anew(
    build: tuple[Path, str], tmp_path: Path
) -> None:
    folder, store = build
    opportunities = [(MS // 4, 18 * 1500), (MS // 4, 19 * 1500), (MS // 2, 38 * 1500)]
    settings = traced(store, opportunities, 12_000, limit_frames=32)
    with emulating(folder, tmp_path) as emulated:
        for program in range(2):
            emulated.start({0: settings, 1: settings})
            emulated.play({0: packets(150, 3 + program, 1.0, (1514, 1514), [7])}, 2.2e-3)
            assert emulated.compare(0, settings) == []
            assert emulated.total(0, ClassCounter.SENT) > 100
            assert [emulated.total(0, one) for one in LATE] == [0, 0]
            emulated.stop([0, 1])
