# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``agent`` of the bench ``replay``: fuzzed messages, conformance and keys of both agents."""

import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from liteprobe.sim.drivers.agent import fuzz, processes
from liteprobe.sim.drivers.agent.raw import GET, Controller
from liteprobe.sim.drivers.tools.figures import ROOT, Figure, note, row

AGENT_TESTS = tuple(f"test/agent/test_agent_{name}.py" for name in ("conformance", "keys"))


@row("replay")
def test_agent(is_full: bool) -> Iterator[Figure]:
    """10^5 fuzzed messages to each peer (``--full``: 10^6), the conformance script, CURVE negative tests, a round trip."""
    if lacking := processes.lacking():
        raise RuntimeError(f"the agent in C needs {lacking}")
    seeds = range(1, 11 if is_full else 2)
    for peer in processes.PEERS:
        found = []
        for seed in seeds:
            with processes.device(peer) as device:  # Raises when it crashes, or a sanitizer says something.
                found.append(fuzz.run(device.address, 100_000, seed))
        for line in [line for one in found for line in one.wrong][:5]:
            note(f"{peer}: {line}")
        yield Figure(f"agent_{peer}_fuzzed", sum(one.messages for one in found), "messages", 1e5, is_least=True)
        yield Figure(f"agent_{peer}_right_ones", sum(one.accepted for one in found), "messages", 1e3, is_least=True)
        yield Figure(f"agent_{peer}_answers_off", sum(len(one.wrong) for one in found), "answers", 0)
        with processes.device(peer) as device, Controller(device.address) as controller:
            taken_us = []
            for _ in range(2000):
                began_ns = time.perf_counter_ns()
                controller.ask(GET, "sets")
                taken_us.append((time.perf_counter_ns() - began_ns) / 1e3)
        yield Figure(f"agent_{peer}_round_trip", median(taken_us), "us", 1000)
    yield from _agent_tests()


def _agent_tests() -> Iterator[Figure]:
    """Run the script that both peers pass, and what has the wrong keys."""
    with TemporaryDirectory() as folder:
        for file in AGENT_TESTS:
            result = Path(folder) / "result.xml"
            command = [sys.executable, "-m", "pytest", "-n", "0", "-q", f"--junitxml={result}", file]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            suite = next(ElementTree.parse(result).getroot().iter("testsuite"))
            counts = {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
            if counts["failures"] + counts["errors"]:
                note(done.stdout[-2000:])
            name = Path(file).stem.removeprefix("test_")
            yield Figure(f"{name}_tests", counts["tests"] - counts["skipped"], "tests", 8, is_least=True)
            yield Figure(f"{name}_failed", counts["failures"] + counts["errors"], "tests", 0)
