# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The tool for pScheduler (docs/examples/pscheduler): its programs as they are installed, its results against true delays."""

import json
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from liteprobe.host import Probe
from liteprobe.sim.drivers.labs.examples import EXAMPLES, load
from liteprobe.sim.drivers.system.fake_link import DELAY_TICKS, FakeLink, some
from liteprobe.sim.drivers.system.fleet import FleetBench
from liteprobe.sim.models.probe.fleet import FleetTester
from liteprobe.sim.models.probe.streams import TrafficProbe
from liteprobe.sim.models.probe.trains import ModelFrame, ModelProbe, cable

Json = dict[str, Any]
NOW = datetime.now(UTC).isoformat()
PORTS = """
ports:
  10.0.1.2: {url: "sim://one", port: 0}
  10.0.2.2: {url: "sim://one", port: 1}
  10.0.0.1: {url: "0"}
  10.0.0.2: {url: "1"}
  "2001:db8::1": {url: "sim://one", port: 0}
  2001:db8::2: {url: "sim://one", port: 1}
  far.example: {url: 192.168.9.50, port: 0, ip: 10.0.9.2}
  far-too.example: {url: 192.168.9.50, port: 1, ip: 10.0.9.3}
"""
TWO = {"schema": 1, "source": "10.0.1.2", "dest": "10.0.2.2"}
SENT = TWO | {"udp": True, "bandwidth": 1_000_000}


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the tool, with a configuration of its own."""
    found = load("pscheduler/liteprobe_tool")
    (tmp_path / "liteprobe.yaml").write_text(PORTS)
    monkeypatch.setattr(found, "CONFIGURATION", tmp_path / "liteprobe.yaml")
    return found


def task(kind: str, spec: Json) -> Json:
    """Return what ``run`` is given of a test that starts now."""
    schedule = {"start": NOW, "duration": "PT60S"}
    return {"participant": 0, "participant-data": [{}], "schedule": schedule, "test": {"type": kind, "spec": spec}}


def opener(model: ModelProbe, folder: Path) -> Callable[[Any], Probe]:
    return lambda _: Probe(FakeLink(model, folder))


def seen(keep: Callable[[ModelFrame], list[tuple[int, ModelFrame]]]) -> tuple[ModelProbe, list[ModelFrame]]:
    """Return a model of a probe with a cable that does as ``keep`` says, and the list of frames that leave."""
    left: list[ModelFrame] = []

    def wire(frame: ModelFrame) -> list[tuple[int, int, ModelFrame]]:
        left.append(frame)
        return [(1 - frame.port, delay, one) for delay, one in keep(frame)]

    return ModelProbe(wire), left


# What it refuses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "spec", "words"),
    [
        ("rtt", TWO, ["liteprobe measures latency and throughput, not 'rtt'"]),
        ("latency", None, ["the test has no specification"]),
        ("latency", TWO | {"schema": 5}, ["schema 5 of latency is not known: give 4 or less"]),
        ("latency", TWO | {"schema": "1"}, ["schema 1 of latency"]),
        ("latency", {"dest": "10.0.2.2"}, ["source: there is none"]),
        ("latency", TWO | {"dest": "10.0.1.2"}, ["are the same port"]),
        ("latency", TWO | {"dest": "10.7.7.7"}, ["dest: no probe has a port with the address 10.7.7.7: name it in "]),
        ("latency", TWO | {"dest": "2001:db8::2"}, ["IPv"]),
        ("latency", TWO | {"ip-version": 6}, ["ip-version: source and dest have addresses of IPv4"]),
        ("latency", TWO | {"protocol": "twamp"}, ["protocol: frames are LiteProbe's own"]),
        (
            "latency",
            TWO | {"output-raw": True, "ctrl-port": 861, "traverse-nat": True, "x": 1},
            ["output-raw: ", "ctrl-port: ", "traverse-nat: ", "x: liteprobe does not know it"],
        ),
        ("latency", TWO | {"packet-interval": 1e-9}, ["interval"]),
        ("latency", TWO | {"packet-interval": 1e4}, ["interval"]),
        ("latency", TWO | {"packet-interval": math.inf}, ["the specification can't be read: "]),
        ("latency", TWO | {"packet-padding": 9000}, ["length 9060 is out of range"]),
        ("latency", TWO | {"packet-count": 2**33}, ["count"]),
        (
            "latency",
            TWO | {"packet-timeout": 3601},
            ["packet-timeout: a probe waits 0 to 3600 whole seconds, not 3601"],
        ),
        ("latency", TWO | {"packet-timeout": 0.5}, ["packet-timeout: a probe waits 0 to 3600 whole seconds, not 0.5"]),
        ("latency", TWO | {"ip-tos": 256}, ["256"]),
        ("latency", TWO | {"packet-count": "many"}, ["count"]),
        ("latency", TWO | {"data-ports": {"lower": 70_000, "upper": 70_001}}, ["70000"]),
        ("throughput", TWO, ["udp: a probe sends no TCP", "bandwidth: without it"]),
        ("throughput", SENT | {"udp": False}, ["udp: "]),
        (
            "throughput",
            SENT | {"dest": "10.0.0.1", "interval": "PT1S"},
            ["interval: between two probes there is one figure"],
        ),
        ("throughput", SENT | {"bandwidth": 10**9}, ["of the line"]),
        ("throughput", SENT | {"bandwidth": 400_000_000, "parallel": 3}, ["add up to "]),
        ("throughput", SENT | {"parallel": 17}, ["17"]),
        ("throughput", SENT | {"duration": "10 s"}, ["'10 s' is not a duration"]),
        ("throughput", SENT | {"duration": "PT0S"}, ["out of range"]),
        ("throughput", SENT | {"flow-label": 5}, ["flow-label: IPv4 has none"]),
        ("throughput", SENT | {"buffer-length": 4}, ["length"]),
        ("throughput", SENT | {"bandwidth": 0}, ["0"]),
        ("throughput", SENT | {"buffer-length": 0}, ["can't be read: ZeroDivisionError"]),
        ("throughput", SENT | {"omit": "PT2S", "congestion": "bbr"}, ["omit: ", "congestion: "]),
        (
            "throughput",
            SENT | {"source": "far.example", "dest": "far-too.example", "interval": "PT0.5S"},
            ["interval: 0.5 s is less than between two looks"],
        ),
    ],
)
def test_what_cant_be_done_as_it_says_is_refused_with_all_reasons(
    tool: Any, kind: str, spec: Json | None, words: list[str]
) -> None:
    found = tool.can_run({"type": kind, "spec": spec})
    assert found["can-run"] is False and len(found["reasons"]) == len(words)
    for reason, word in zip(found["reasons"], words, strict=True):
        assert word in reason
    asked = task(kind, spec if spec is not None else {})
    result = tool.run(asked, lambda _: pytest.fail("a probe was opened"))
    assert result["succeeded"] is False and result["error"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ports: {10.0.1.2: {url: a}, 10.0.2.2: {}}", "liteprobe.yaml:1: a port needs 'url'"),
        ("ports: {10.0.1.2: {url: a, mac: zz}}", "liteprobe.yaml:1: "),
        ("ports: {a.example: {url: a}}", "'a.example' is a name: give its address with ip"),
        ("ports: {10.0.1.2: {url: a, role: sends}}", "role"),
        ("", "the document is empty"),
        (None, "No such file"),
    ],
)
def test_a_configuration_that_is_wrong_is_said_with_its_line(tool: Any, text: str | None, words: str) -> None:
    tool.CONFIGURATION.unlink()
    if text is not None:
        tool.CONFIGURATION.write_text(text)
    found = tool.can_run({"type": "latency", "spec": TWO})
    assert found["can-run"] is False and words in found["reasons"][0]


def test_keys_that_ask_for_nothing_are_no_reason(tool: Any) -> None:
    spec = TWO | {"output-raw": False, "traverse-nat": False, "flip": False, "source-node": "x", "dest-node": "y:8443"}
    assert tool.can_run({"type": "latency", "spec": spec | {"schema": 4}}) == {"can-run": True}
    spec = SENT | {"omit": "P0D", "zero-copy": False, "link-rtt": "PT0.1S", "bandwidth-strict": True, "schema": 7}
    assert tool.can_run({"type": "throughput", "spec": spec}) == {"can-run": True}


# What it measures ---------------------------------------------------------------------------------


def test_latency_of_two_ports_is_that_of_the_wire(tool: Any, tmp_path: Path) -> None:
    """Send a train through a wire that loses, doubles, delays and swaps known frames."""
    delays = [DELAY_TICKS + 125 * (number % 4) for number in range(60)]
    lost, doubled = {7, 30, 31}, {12: 2, 50: 3}

    def keep(frame: ModelFrame) -> list[tuple[int, ModelFrame]]:
        number = frame.sequence
        return [] if number in lost else [(delays[number], frame)] * doubled.get(number, 1)

    model, left = seen(keep)
    spec = TWO | {
        "packet-count": 60,
        "packet-interval": 20e-6,
        "packet-padding": 40,
        "bucket-width": 1e-6,
        "ip-tos": 184,
    }
    found = tool.run(task("latency", spec | {"data-ports": {"lower": 8760, "upper": 8761}}), opener(model, tmp_path))
    times_us = Counter(f"{8 * delays[number] / 1000:.2f}" for number in range(60) if number not in lost)
    diags = found.pop("diags")
    assert found == {
        "schema": 1,
        "succeeded": True,
        "packets-sent": 60,
        "packets-received": 57,
        "packets-lost": 3,
        "packets-duplicated": 3,
        "packets-reordered": 0,
        "histogram-latency": dict(times_us),
        "max-clock-error": 8e-6,
    }
    assert "60 frames of 100 octets, 20000 ns from start to start" in diags and "free-running" in diags
    assert {frame.length for frame in left} == {100}
    stamps = [frame.stamp for frame in left]
    assert {late - early for early, late in pairwise(stamps)} == {20_000}


def test_a_frame_beyond_the_timeout_is_lost(tool: Any, tmp_path: Path) -> None:
    """The last of ten frames takes longer than the timeout of a second; it comes, and doesn't count."""
    late = round(1.2e9 / 8)
    model, left = seen(lambda frame: [(late if frame.sequence == 9 else DELAY_TICKS, frame)])
    spec = TWO | {"packet-count": 10, "packet-interval": 1e-5, "packet-timeout": 1, "reverse": True}
    found = tool.run(task("latency", spec), opener(model, tmp_path))
    assert (found["packets-sent"], found["packets-received"], found["packets-lost"]) == (10, 9, 1)
    assert found["histogram-latency"] == {"0.00": 9} and {frame.port for frame in left} == {1}


def test_latency_between_two_probes_has_the_bound_of_both_clocks(tool: Any, tmp_path: Path) -> None:
    bench = FleetBench(2, 77, tmp_path)
    spec = {"source": "10.0.0.1", "dest": "10.0.0.2", "packet-count": 50, "packet-interval": 1e-5, "bucket-width": 1e-5}
    found = tool.run(task("latency", spec | {"flip": True}), bench.open_one)
    true_ns, lost = bench.truth(0, 1)
    assert (found["succeeded"], found["packets-sent"], found["packets-lost"]) == (True, 50, lost)
    assert sum(found["histogram-latency"].values()) == len(true_ns) == 50 - lost
    bound_ns = found["max-clock-error"] * 1e6
    assert 8 < bound_ns < 1000
    mean_ns = sum(float(middle) * 1e4 * count for middle, count in found["histogram-latency"].items()) / len(true_ns)
    # A bin is given to its hundredth, 100 ns.
    assert abs(mean_ns - sum(true_ns) / len(true_ns)) < 2.5 * bound_ns + 50
    assert "clock of source: locked" in found["diags"] and "clock of dest: locked" in found["diags"]


def test_a_clock_that_is_not_locked_gives_no_latency(tool: Any, tmp_path: Path) -> None:
    bench = FleetBench(2, 77, tmp_path)
    bench.fault("unlocked", 1, 1.0)
    found = tool.run(task("latency", {"source": "10.0.0.1", "dest": "10.0.0.2"}), bench.open_one)
    assert found["succeeded"] is False and "not locked: its clock is free-running" in found["error"]
    assert "histogram-latency" not in found


def test_throughput_is_of_payload_by_interval_and_in_the_whole(tool: Any, tmp_path: Path) -> None:
    """Send two streams for 40 ms through a wire that loses every tenth frame of each."""
    model = TrafficProbe(some(lambda frame: [] if frame.sequence % 10 == 9 else [(DELAY_TICKS, frame)]))
    spec = SENT | {
        "bandwidth": 40_000_000,
        "parallel": 2,
        "duration": "PT0.04S",
        "interval": "PT0.01S",
        "buffer-length": 500,
    }
    found = tool.run(task("throughput", spec), opener(model, tmp_path))
    frames = 40_000_000 // (8 * 500) * 40 // 1000
    assert found["succeeded"] is True and "frames of 542 octets" in found["diags"]
    whole = found["summary"]["summary"]
    assert {frame.length for frame in model.frames} == {542} and len(model.frames) == 2 * frames
    assert (whole["sent"], whole["lost"], whole["throughput-bytes"]) == (2 * frames, 2 * frames // 10, 1000 * frames)
    assert whole["throughput-bits"] == pytest.approx(80e6, rel=0.01)
    assert whole["receiver-throughput-bits"] == pytest.approx(72e6, rel=0.02)
    assert (whole["start"], whole["end"], whole["jitter"]) == (0.0, 0.04, None)
    assert [(one["stream-id"], one["sent"], one["lost"]) for one in found["summary"]["streams"]] == [
        (1, frames, frames // 10),
        (2, frames, frames // 10),
    ]
    intervals = found["intervals"]
    assert len(intervals) == 4
    for early, late in pairwise(intervals):
        assert early["summary"]["end"] == late["summary"]["start"]
    for number, one in enumerate(intervals):
        assert one["summary"]["end"] == pytest.approx(0.01 * (number + 1), abs=0.002)
        assert one["summary"]["throughput-bits"] == pytest.approx(80e6, rel=0.1)
    for name in ("sent", "lost", "throughput-bytes"):
        assert sum(one["summary"][name] for one in intervals) == whole[name]
        for one in intervals:
            assert sum(stream[name] for stream in one["streams"]) == one["summary"][name]


def test_throughput_from_a_probe_to_another_is_that_of_its_streams(tool: Any, tmp_path: Path) -> None:
    bench = FleetBench(2, 77, tmp_path, FleetTester)
    spec = {"source": "10.0.0.2", "dest": "10.0.0.1", "udp": True, "bandwidth": 20_000_000, "duration": "PT0.01S"}
    found = tool.run(task("throughput", spec | {"parallel": 2, "buffer-length": 500}), bench.open_one)
    assert (found["succeeded"], found["intervals"]) == (True, []), found
    for number, one in enumerate(found["summary"]["streams"], 1):
        true_ns, lost = bench.truth(1, 0, number)
        assert (one["stream-id"], one["sent"], one["lost"]) == (number, 50, lost) and len(true_ns) == 50 - lost
        assert one["throughput-bits"] == pytest.approx(20e6, rel=0.02)
    whole = found["summary"]["summary"]
    assert (whole["sent"], whole["throughput-bytes"]) == (100, 50_000)


def test_a_link_that_is_down_is_a_failure_in_words(tool: Any, tmp_path: Path) -> None:
    model = TrafficProbe(cable(DELAY_TICKS))
    model.values["port0_tx_link_up"] = 0
    found = tool.run(task("throughput", SENT | {"duration": "PT0.01S"}), opener(model, tmp_path))
    assert (found["succeeded"], found["intervals"], found["summary"]) == (False, [], {}) and "link" in found["error"]


def test_it_waits_for_the_start_with_the_probe_open(tool: Any, tmp_path: Path) -> None:
    events: list[Any] = []
    model, left = seen(lambda frame: [(DELAY_TICKS, frame)])

    def opened(one: Any) -> Probe:
        events.append("open")
        return Probe(FakeLink(model, tmp_path))

    def sleep(seconds: float) -> None:
        events.append((seconds, len(left)))

    asked = task("latency", TWO | {"packet-count": 2, "packet-interval": 1e-5})
    asked["schedule"]["start"] = datetime.fromtimestamp(time.time() + 1000, UTC).isoformat().replace("+00:00", "Z")
    assert tool.run(asked, opened, sleep)["succeeded"] is True
    (first, (seconds, frames)) = events
    assert first == "open" and 900 < seconds <= 1000 and frames == 0 and len(left) == 2


# Its programs -------------------------------------------------------------------------------------


def test_its_programs_as_they_are_installed(tmp_path: Path) -> None:
    """Install with its Makefile, for the Python of this environment, and run each by what it reads and prints."""
    programs, configured = tmp_path / "classes", tmp_path / "etc"
    command = ["make", "-C", str(EXAMPLES / "pscheduler"), "install"]
    subprocess.run(
        [*command, f"DESTDIR={programs}", f"CONFDIR={configured}", f"PYTHON={sys.executable}"],
        check=True,
        capture_output=True,
    )

    def ran(name: str, given: object, code: int = 0) -> Any:
        ended = subprocess.run(
            [programs / name],
            input=json.dumps(given) if name != "enumerate" else "",
            capture_output=True,
            text=True,
            check=False,
            env={"LITEPROBE_PSCHEDULER_CONFIGURATION": str(configured / "liteprobe.yaml"), "PATH": "/usr/bin:/bin"},
        )
        assert ended.returncode == code, ended.stderr
        return json.loads(ended.stdout) if code == 0 else ended.stderr

    latency = {"type": "latency", "spec": {"schema": 1, "source": "10.0.1.2", "dest": "10.0.3.2"}}
    assert ran("enumerate", None)["tests"] == ["latency", "throughput"]
    assert ran("can-run", latency) == {"can-run": True}
    assert ran("duration", latency) == {"duration": "PT25S"}  # 100 packets in 10 s, and 15 s.
    assert ran("participant-data", {"participant": 0, "test": latency}) == {}
    empty = ran("run", {"participant": 1, "test": latency, "schedule": {"start": NOW}})
    assert empty["succeeded"] is True
    assert ran("merged-results", {"test": latency, "results": [{"succeeded": True, "x": 1}, empty]})["x"] == 1
    merged = load("pscheduler/liteprobe_tool").merged_results
    assert merged({"test": latency, "results": [None, empty]})["succeeded"] is False
    assert "can-run: AttributeError: " in ran("can-run", [], 1)
    assert "KeyError: 'participant'" in ran("run", {}, 1)
