# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``memory`` of the bench ``replay``: the SDRAM controller, its burst ports and its bus, against a model of the chip."""

from collections.abc import Iterator

from liteprobe.sim.drivers.memory import ports
from liteprobe.sim.drivers.memory.ports import PORTS, Setting
from liteprobe.sim.drivers.tools.figures import Figure, row

#: Frequency of the SDRAM (MHz) and, where it has a clock of its own, period of ``sys``. Ports at 50 MHz carry 3.2 Gb/s at the most.
MEMORIES = {
    "50": Setting(50),
    "80": Setting(80, 20_000, late=2),  # The boards.
    "100": Setting(100, 20_000),
    "125": Setting(125, 16_000),
    "125_sys_50": Setting(125, 20_000),
}
#: The servo's CPU time with main RAM of block RAM, and how many accesses to it become accesses to the SDRAM, which take 5.5 cycles
#: alone at 50 MHz (docs/design/ring-in-sdram.md).
SERVO_CYCLES, SERVO_ACCESSES, SERVO_ACCESS_CYCLES, SERVO_MOST_MS = 97_000, 7_000, 5.5, 5.0
MEAN_WORDS = 32.5  # Of bursts of 1 to 64.
#: Accesses of a processor and of Etherbone: lengths of bursts, pauses, rates of the bus.
MIXES: tuple[dict[str, int], ...] = (
    {"bus": 256},
    {"bus": 40, "idle": 20, "most": 8},
    {"bus": 100, "idle": 100, "most": 1},
    {"bus": 256, "fixed": 64},
)


@row("replay")
def test_memory(is_full: bool) -> Iterator[Figure]:
    """Words, rate and waits of a SDRAM at each clock; ``--full``: ten times as many seeds."""
    for name, setting in MEMORIES.items():
        yield from _memory(f"memory_{name}", setting, 30 if is_full else 3)


def _memory(name: str, setting: Setting, seeds: int) -> Iterator[Figure]:
    most = setting.arithmetic
    sys_ps = setting.sys_ps or setting.memory_ps
    cycles = 100_000
    full = ports.run(setting, fixed=64, mix=1, cycles=cycles)
    mbps = full["total"] * 32e6 / (cycles * sys_ps)
    yield Figure(f"{name}_rate", mbps, "Mb/s", 0.95 * most.mbps(), is_least=True)
    yield Figure(f"{name}_rate_of_arithmetic", 100 * mbps / most.mbps(), "%", 95, is_least=True)
    # Any length, either way: where two of a kind follow each other, the ports' word a cycle is the limit.
    mixed = ports.run(setting, cycles=cycles)["total"] * 32e6 / (cycles * sys_ps)
    yield Figure(f"{name}_rate_random_of_arithmetic", 100 * mixed / most.mbps(MEAN_WORDS), "%", 80, is_least=True)
    found = [ports.run(setting, seed=seed + 1, cycles=cycles, **mix) for seed in range(seeds) for mix in MIXES]
    words = sum(one["total"] + one["bus"][2] + one["bus_ordered"][2] for one in found)
    yield Figure(f"{name}_words_right", words, "words", 1e5, is_least=True)
    worst = max(max(one["bus"][0], one["bus_ordered"][0]) for one in found)
    yield Figure(f"{name}_bus_worst", worst, "cycles", most.bus)
    total, count = (sum(one["bus"][part] for one in found if one["total"] > cycles / 2) for part in (1, 2))
    mean = total / count
    yield Figure(f"{name}_bus_mean", mean, "cycles", most.bus)
    for what, limit in (("wait", most.wait(PORTS, with_bus=True)), ("whole", most.whole(PORTS, with_bus=True))):
        longest = max(one[f"{what}{port}"][0] for one in found for port in range(PORTS))
        yield Figure(f"{name}_port_{what}_worst", longest, "cycles", limit)
    servo_cycles = SERVO_CYCLES + SERVO_ACCESSES * (mean - SERVO_ACCESS_CYCLES)
    yield Figure(f"{name}_servo", servo_cycles * sys_ps / 1e9, "ms", SERVO_MOST_MS)
