# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures whether pScheduler's own programs take what docs/examples/pscheduler reads and prints.

LITEPROBE_PSCHEDULER names a checkout of perfsonar/pscheduler. Of it the tests ``latency`` and ``throughput`` are run as they are,
with those modules of its library that they need: their schemas, validators, lists of participants and formats. Its server and
its database are not run.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from liteprobe.sim.drivers.labs.examples import EXAMPLES, load
from liteprobe.sim.drivers.system.fleet import FleetBench
from liteprobe.sim.drivers.tools.figures import Figure, Size, drawn, note, row
from liteprobe.sim.models.probe.fleet import FleetProbe, FleetTester

Json = dict[str, Any]
VARIABLE = "LITEPROBE_PSCHEDULER"
#: Runs a program of pScheduler, or its validators over a list, with the modules of its library that need no database.
RUNNER = """
import importlib, json, logging, runpy, sys, types
from pathlib import Path
tree, kind, program, *arguments = sys.argv[1:]
package = types.ModuleType("pscheduler")
package.__path__ = [f"{tree}/python-pscheduler/pscheduler/pscheduler"]
sys.modules["pscheduler"] = package
for name in ("exitstatus", "psjson", "jsonval"):
    vars(package).update(vars(importlib.import_module(f"pscheduler.{name}")))
package.Log = lambda **_: logging.getLogger("pscheduler")
folder = f"{tree}/pscheduler-test-{kind}/{kind}"
sys.path.insert(0, folder)
if program in ("spec_is_valid", "result_is_valid"):
    import validate
    print(json.dumps([getattr(validate, program)(one) for one in json.load(sys.stdin)]))
elif program == "enumeration":
    schema = {"local": {}, "$ref": "#/pScheduler/PluginEnumeration/Tool"}
    print(json.dumps(package.json_validate(json.load(sys.stdin), schema)))
else:
    sys.argv = [program, *arguments]
    runpy.run_path(f"{folder}/{program}", run_name="__main__")
"""
ONE, TWO = "sim://cable?delay=400ns&cpu=0", "sim://cable?delay=400ns&preset=tester&cpu=0"
PORTS = f"""
ports:
  10.0.1.2: {{url: "{ONE}", port: 0}}
  10.0.2.2: {{url: "{ONE}", port: 1}}
  10.1.1.2: {{url: "{TWO}", port: 0}}
  10.1.2.2: {{url: "{TWO}", port: 1}}
  10.0.0.1: {{url: "0"}}
  10.0.0.2: {{url: "1"}}
"""
LATENCY: Json = {"schema": 1, "source": "10.0.1.2", "dest": "10.0.2.2", "packet-count": 100, "packet-interval": 1e-5}
THROUGHPUT: Json = {"schema": 1, "source": "10.1.1.2", "dest": "10.1.2.2", "udp": True, "bandwidth": 200_000_000}
THROUGHPUT |= {"duration": "PT0.004S"}
#: Test, specification, and what pScheduler's own words of the result have, by arithmetic.
CASES: list[tuple[str, Json, tuple[str, ...]]] = [
    ("latency", LATENCY, ("Sent ......... 100 packets", "Lost ......... 0 packets", "    0.00 ms: 100 packets")),
    (
        "latency",
        LATENCY | {"schema": 2, "bucket-width": 1e-7, "reverse": True},
        ("    0.000400 ms: 100 packets",),
    ),  # Of 400 ns.
    ("latency", LATENCY | {"schema": 4, "ip-tos": 184, "packet-padding": 1000, "flip": True}, ("Received ..... 100",)),
    ("throughput", THROUGHPUT, ("200.00 Mbps", "0 / ")),
    ("throughput", THROUGHPUT | {"schema": 7, "parallel": 4, "interval": "PT0.001S"}, ("800.00 Mbps", "Stream ID 4")),
    (
        "throughput",
        THROUGHPUT | {"schema": 7, "buffer-length": 100, "single-ended": True, "reverse": True},
        ("200.00 Mbps",),
    ),
]
#: Values of keys of specifications: good ones, and ones that their schemas refuse.
VALUES: list[Any] = [
    *(True, False, None, 0, 1, 4, 6, 7, 60, 861, 70_000, 2**40, -1, 1e-5, 0.5, 1e9, ""),
    *("10.0.1.2", "10.0.2.2", "10.1.1.2", "10.1.2.2", "::1", "x.example", "PT10S", "P1D", "PT0S", "owamp", "bbr"),
    *({"lower": 1000, "upper": 1001}, {"lower": 5}, [], [1]),
]


class Theirs:
    """Runs pScheduler's programs."""

    def __init__(self, tree: str) -> None:
        self._tree = tree

    def ran(self, kind: str, program: str, given: object, *arguments: str) -> str:
        """Return what a program prints; RuntimeError where it ends with a failure."""
        command = [sys.executable, "-W", "ignore", "-c", RUNNER, self._tree, kind, program, *arguments]
        ended = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RuntimeError(f"{kind} {program}: {ended.stderr[-600:]}")
        return ended.stdout

    def valid(self, kind: str, program: str, given: list[Json]) -> list[tuple[bool, str]]:
        """Return what a validator says of each."""
        return [(bool(one), said) for one, said in json.loads(self.ran(kind, program, given))]


class Tool:
    """Runs the programs of the tool as its Makefile installs them."""

    def __init__(self, folder: Path) -> None:
        self._programs, configured = folder / "classes", folder / "etc"
        command = ["make", "-C", str(EXAMPLES / "pscheduler"), "install"]
        places = (f"DESTDIR={self._programs}", f"CONFDIR={configured}", f"PYTHON={sys.executable}")
        subprocess.run([*command, *places], check=True, capture_output=True)
        self.configuration = configured / "liteprobe.yaml"
        self.configuration.write_text(PORTS)

    def ran(self, name: str, given: object = None) -> Any:
        """Return the JSON that a program prints."""
        ended = subprocess.run(
            [self._programs / name],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"LITEPROBE_PSCHEDULER_CONFIGURATION": str(self.configuration)},
        )
        if ended.returncode:
            raise RuntimeError(f"{name}: {ended.stderr[-600:]}")
        return json.loads(ended.stdout)

    def result(self, test: Json, participants: int) -> Json:
        """Return the merged result of a test that starts now."""
        schedule = {"start": datetime.now(UTC).isoformat(), **self.ran("duration", test)}
        data = [self.ran("participant-data", {"participant": one, "test": test}) for one in range(participants)]
        given = {"test": test, "schedule": schedule, "participant-data": data}
        results = [self.ran("run", {**given, "participant": one}) for one in range(participants)]
        found: Json = self.ran("merged-results", {"test": test, "results": results})
        return found


@row("fleet", "pscheduler")
def test_pscheduler(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Run tests from pScheduler's check of a specification to its words of the result; then draw specifications of any kind."""
    if VARIABLE not in os.environ:
        pytest.skip(f"{VARIABLE} does not name a checkout of perfsonar/pscheduler")
    theirs, tool = Theirs(os.environ[VARIABLE]), Tool(tmp_path)
    taken, said = json.loads(theirs.ran("latency", "enumeration", tool.ran("enumerate")))
    note(f"# enumerate: {said}")
    wrong = int(not taken)
    results: dict[str, list[Json]] = {"latency": [], "throughput": []}
    for kind, spec, words in CASES:
        test = {"type": kind, "spec": spec}
        steps = [json.loads(theirs.ran(kind, "spec-is-valid", spec)) == {"valid": True}]
        participants = json.loads(theirs.ran(kind, "participants", spec))["participants"]
        steps += [tool.ran("can-run", test) == {"can-run": True}]
        result = tool.result(test, len(participants))
        results[kind].append(result)
        given = {"schema": 1, "spec": spec, "result": result}
        text = theirs.ran(kind, "result-format", given, "text/plain") if result["succeeded"] else ""
        steps += [result["succeeded"], *(word in text for word in words)]
        if not all(steps):
            wrong += 1
            note(f"# {kind} {spec}: {steps}\n{result}\n{text}")
    wrong += _between_probes(tool, tmp_path, results)
    for kind, found in results.items():
        for (taken, said), one in zip(theirs.valid(kind, "result_is_valid", found), found, strict=True):
            wrong += not taken
            note(*[f"# {kind}: {said}: {one}"] * (not taken))
    broken = [
        {**results["latency"][0], "packets-lost": -1},
        {**results["latency"][0], "histogram-latency": {"1e-3": 1}},
    ]
    refused = sum(not taken for taken, _ in theirs.valid("latency", "result_is_valid", broken))
    yield Figure(
        "tests of pScheduler, from its specification to its words of the result", len(CASES) + 2, "", 8, is_least=True
    )
    yield Figure("of these, with an answer that is refused or wrong", wrong, "", 0)
    yield Figure("results made wrong on purpose, which it refuses", refused, "", 2, is_least=True)
    yield from _drawn(theirs, tool, size.of(50, 2000, 10_000))


def _between_probes(tool: Tool, folder: Path, results: dict[str, list[Json]]) -> int:
    """Add latency and throughput between two modelled probes; return how many failed."""
    module, failed = load("pscheduler/liteprobe_tool"), 0
    vars(module)["CONFIGURATION"] = tool.configuration
    ends = {"source": "10.0.0.1", "dest": "10.0.0.2"}
    for kind, spec, probe in (("latency", LATENCY, FleetProbe), ("throughput", THROUGHPUT, FleetTester)):
        asked = {"participant": 0, "schedule": {"start": datetime.now(UTC).isoformat()}}
        bench = FleetBench(2, 77, folder, probe)
        found = module.run({**asked, "test": {"type": kind, "spec": spec | ends}}, bench.open_one)
        note(
            f"# {kind} between two modelled probes: {found}"
            if not found["succeeded"]
            else f"# {kind}: {found['diags']}"
        )
        results[kind].append(found)
        failed += not found["succeeded"]
    return failed


def _drawn(theirs: Theirs, tool: Tool, count: int) -> Iterator[Figure]:
    """Draw specifications, and hold what ``can-run`` says of those that pScheduler takes."""
    rng, module = drawn(), load("pscheduler/liteprobe_tool")
    vars(module)["CONFIGURATION"] = tool.configuration
    able = unable = silent = invalid = 0
    for kind, good in (("latency", LATENCY), ("throughput", THROUGHPUT)):
        keys = sorted({*module.DONE[kind], *module.NOT_DONE})
        specs = []
        for _ in range(count):
            spec = good | {rng.choice(keys): rng.choice(VALUES) for _ in range(rng.randrange(1, 4))}
            specs.append(spec | {"schema": rng.randrange(1, module.SCHEMAS[kind] + 1)})
        for spec, (taken, _) in zip(specs, theirs.valid(kind, "spec_is_valid", specs), strict=True):
            answer = module.can_run({"type": kind, "spec": spec})
            if answer["can-run"]:
                module.duration({"type": kind, "spec": spec})
            invalid += not taken
            able += taken and answer["can-run"]
            unable += taken and not answer["can-run"]
            silent += not answer["can-run"] and not all(
                re.search(r"[a-z]{3}", one) for one in answer["reasons"] or [""]
            )
    note(
        f"# of {2 * count} that were drawn, its schemas refuse {invalid}; of the others the tool takes {able} and refuses {unable}"
    )
    yield Figure("specifications that were drawn", 2 * count, "", 2 * count, is_least=True)
    yield Figure("of these, refused by the tool without a reason", silent, "", 0)
