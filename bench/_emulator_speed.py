# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``speed`` of the bench ``emulator``: the least clock at which frames of 60 octets, back to back, never wait for the engine.

The compiled emulation of a direction at real pace: ticks of 8 ns go on whatever it does. It keeps up where each of 4,000 frames is
handed on in time for the least delay that a probe names: its lead before it is due, or ENGINE_TICKS later.
"""

from collections.abc import Iterator, Mapping

from _figures import Figure

from liteprobe.cores.formats import OVERHEAD
from liteprobe.cores.formats.emulate import CLASSES, BackgroundKind, ClassFlag
from liteprobe.sim.bench.emulator.engine import ARRIVAL_TICKS, LEAD_TICKS, Plan, run
from liteprobe.sim.models.emulator.settings import Settings, bank_words

FRAMES, LENGTH = 4000, 60
ENGINE_TICKS = 256  # As of a probe (soc/emulate.py).
LAG_TICKS = LENGTH + 4 + 512  # From the SFD of a frame of this length until it is classified.
TICK_MHZ, BOARD_MHZ, LEAST_MHZ, MOST_MHZ = 125, 50, 30, 110

CASES: dict[str, tuple[int, Mapping[str, int]]] = {
    "one_class": (1, {}),
    "eight_classes": (CLASSES, {}),
    "red": (CLASSES, {"flags": ClassFlag.RED, "red_most": 0xFFFF, "red_least": 0xFFFE}),
    "bucket": (CLASSES, {"token_octet": 1, "token_burst_high": 1}),
    # In one class, a background frame for every four frames.
    "ghosts": (
        1,
        {
            "background": BackgroundKind.CONSTANT,
            "background_ticks": 4 * (LENGTH + OVERHEAD),
            "background_length": LENGTH,
        },
    ),
}


def plan_of(used: int, fields: Mapping[str, int], mhz: int) -> Plan:
    """Return frames back to back, in so many classes by turns, and the pace of a clock."""
    delay = ARRIVAL_TICKS + LEAD_TICKS + ENGINE_TICKS
    classes = {n: {"delay": delay, "store_bits": 21, **(fields if n < used else {})} for n in range(CLASSES)}
    arrivals = [(1000 + n * (LENGTH + OVERHEAD), LENGTH, n % used) for n in range(FRAMES)]
    settings = Settings(bank_words(classes, {"store_bits": 21}))
    return Plan(settings, [], arrivals, arrivals[-1][0] + 20_000, 1, LAG_TICKS, 0, 256 * TICK_MHZ // mhz)


def keeps_up(used: int, fields: Mapping[str, int], mhz: int) -> bool:
    """Return whether every frame is handed on in time at this clock."""
    try:
        departures = run(plan_of(used, fields, mhz)).departures
    except RuntimeError as error:
        if "frames come faster than they are taken" in str(error):
            return False
        raise
    behind = departures["now"].astype("int64") - departures["due"].astype("int64") + LEAD_TICKS
    return len(departures) == FRAMES and int(behind.max()) <= ENGINE_TICKS


def speed(_: bool) -> Iterator[Figure]:
    """The least clock of each case, MHz, beside that of the boards."""
    for name, (used, fields) in CASES.items():
        least, most = LEAST_MHZ, MOST_MHZ
        while least < most:
            middle = (least + most) // 2
            least, most = (least, middle) if keeps_up(used, fields, middle) else (middle + 1, most)
        yield Figure(f"speed_{name}", least, "MHz", BOARD_MHZ)
