# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a suite of RFC 2544 in a process of its own, on a device of plain Python, and kills it in the midst: does it go on?

As a program: ``kept_suite JOURNAL RESULT``; it goes on from the journal where that is there.
"""

import json
import random
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

from liteprobe.host.suites.rfc2544 import TESTS, Rfc2544, Rfc2544Request
from liteprobe.host.suites.search import Goal
from liteprobe.host.suites.trials import Journal
from liteprobe.sim.drivers.suites.fake_probe import FakeProbe
from liteprobe.sim.models.forwarder import Switch

REQUEST = Rfc2544Request(
    tests=TESTS[:5], sizes=("64", "512", "1518"), ways=((0, 1), (1, 0)), goal=Goal(seconds=0.01), latency_s=0.01, latency_repeats=3,
    burst_s=0.01, burst_repeats=4, pause_s=0.001,
)
TIMEOUT_S = 600.0


def run(path: Path, result: Path) -> None:
    """Run the suite, or go on with it, and write its result."""
    is_there = path.exists()
    with Journal(path, {"request": REQUEST.to_dict()}, resume=is_there) as journal:
        found = Rfc2544(FakeProbe(Switch(rate=Fraction(6, 10), queue=40)), REQUEST, journal).run()
    result.write_text(json.dumps(found.to_dict()))


def command(path: Path, result: Path) -> list[str]:
    """Return the command line of such a process."""
    return [sys.executable, "-m", "liteprobe.sim.drivers.suites.kept_suite", str(path), str(result)]


def killed(folder: Path, seed: int, trials: int) -> tuple[str, int]:
    """Run the suite of so many trials, killed by SIGKILL in a random one, and on to its end; return its result and those kept."""
    chance, path, result = random.Random(seed), folder / f"{seed}.jsonl", folder / f"{seed}.json"
    process = subprocess.Popen(command(path, result))
    until = chance.randrange(trials - 1)
    while process.poll() is None and kept_in(path) < until:
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.05))
    process.kill()
    process.wait()
    kept = kept_in(path)
    subprocess.run(command(path, result), check=True, timeout=TIMEOUT_S)
    return result.read_text(), kept


def kept_in(path: Path) -> int:
    """Return how many whole trials a journal has."""
    return max(path.read_bytes().count(b"\n") - 1, 0) if path.exists() else 0


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]))
