# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The row of signals: Ctrl-C and SIGTERM at random moments of real commands, from the first millisecond of Python on."""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from liteprobe.host.device.link.sim import SimOptions, build
from liteprobe.sim.drivers.system import signals
from liteprobe.sim.drivers.tools.figures import Figure, row
from liteprobe.sim.drivers.tools.processes import pass_on_signals

SEED = 20261122
TIMES, TIMES_IN_FULL = 60, 300


@row("hostile")
def test_signals(is_full: bool) -> Iterator[Figure]:
    """Yield how many of the ends were not what they should be."""
    pass_on_signals()
    own, monitor = build(SimOptions()), build(SimOptions(preset="monitor"))
    train = ["train", "--probe", f"sim://loopback?build={own}"]
    watched = f"sim://loopback?preset=monitor&build={monitor}"
    commands = [
        (["train", "--help"], 0.3, False),
        ([*train, "--count", "1000", "--repeat", "3000", "--json", "t.json"], 4.0, False),
        ([*train, "--length", "60,99,1514", "--csv", "t.csv", "--report", "r.html"], 5.0, False),
        (["calibrate", "--probe", f"sim://loopback?build={own}"], 4.0, False),
        (["capture", "--probe", watched, "-w", "c.pcapng"], 3.0, True),
        (["monitor", "--probe", watched], 3.0, True),
        (["demo", "--repeat", "1", "--out", "demo", "--sim", str(own)], 8.0, False),
    ]
    chance = random.Random(SEED)
    before = signals.shared_memory()
    times = TIMES_IN_FULL if is_full else TIMES
    wrong = at_work = 0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(times):
            arguments, span_s, may_end_well = chance.choice(commands)
            sent = signals.moment(chance, span_s)
            ended = signals.run(arguments, sent, Path(folder))
            at_work += ended.went_on_s is not None and ended.code >= 0
            found = signals.faults(ended, sent, may_end_well)
            wrong += bool(found)
            if found:
                print(f"  {' '.join(arguments[:1])} {sent}: {'; '.join(found)}", flush=True)
    print(f"  seed {SEED}: {times} signals, {at_work} of them to a program that had begun", flush=True)
    yield Figure("signals.wrong_ends", wrong, "ends", 0)
    yield Figure("signals.shared_memory_left", len(signals.shared_memory() - before), "files", 0)
