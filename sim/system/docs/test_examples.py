# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The examples of docs/examples run, shorter than on the page, and show what they are meant to show."""

import json
import math
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from liteprobe.host.cli import main as cli
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.probe import Probe
from liteprobe.host.traffic.document import read_document, write_document
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.labs.examples import EXAMPLES, load
from liteprobe.sim.models.traffic import streams as traffic

PORT = 1  # Management is in band on port 0.
PORT_OPTION = str(PORT)

Send = Callable[..., dict[str, Any]]


@pytest.fixture
def send(tester: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Send:
    """Sends the streams of an example from port 1, so many of each at the most; returns the document of the result."""

    def run(name: str, count: int, wire: str) -> dict[str, Any]:
        streams = read_document((EXAMPLES / f"{name}.yaml").read_text(), f"{name}.yaml")
        shorter = [replace(one, port=PORT, count=min(one.count or count, count)) for one in streams]
        path, url = tmp_path / f"{name}.yaml", sim_url(wire, build=tester, link="shared", pcap=tmp_path / "pins")
        path.write_text(write_document(shorter))
        assert cli.main(["send", str(path), "--probe", url, "--json", "--report", str(tmp_path / "report.html")]) == 0
        assert (tmp_path / "report.html").read_text().count("<svg") == 2
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return run


def test_imix_beside_a_voice_call(send: Send) -> None:
    mix, voice = send("imix", 40, "switch?latency=3us")["streams"]
    assert (mix["received"], mix["lost"], mix["bit_errors"], voice["lost"]) == (40, 0, 0, 0)
    assert voice["latency_ns"]["least"] == 8 * (214 + 12) + 3000


def test_a_sweep_through_vlans(send: Send, tmp_path: Path) -> None:
    content = send("vlan_sweep", 100, "cable?delay=1us")
    assert [(row["sent"], row["received"], row["lost"]) for row in content["streams"]] == [(100, 100, 0)] * 2
    from liteprobe.sim.drivers.frames.truth import read_pcap

    tagged = [octets for octets in read_pcap(tmp_path / f"pins.port{PORT}.out.pcap")[1] if octets[12:14] == b"\x81\0"]
    assert [int.from_bytes(octets[14:16]) for octets in tagged] == [5 << 13 | number for number in range(100, 200)]
    assert len({octets[6:12] for octets in tagged}) == 100


def test_a_link_test_counts_the_bits_that_were_wrong(send: Send) -> None:
    content = send("prbs", 200, "switch?latency=3us&corrupt=10%")
    long = content["streams"][0]
    assert long["sent"] == 200 and long["received"] + long["lost"] == 200 and long["lost"] > 5
    assert long["bit_errors"] == 0 and 0 < long["damaged_bit_errors"] <= long["lost"]
    assert long["checked_bits"] == 8 * long["received"] * (1514 - 60)
    clean = send("prbs", 100, "cable?delay=1us")["streams"]
    assert [(row["lost"], row["bit_errors"], row["damaged_bit_errors"]) for row in clean] == [(0, 0, 0)] * 2


def test_poisson_load_waits_as_the_recursion_of_lindley_says(tester: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = load("poisson")
    url = sim_url("switch?latency=3us&rate=100M&queue=1000", build=tester, link="shared")
    options = ["--probe", url, "--loads", "0.6", "--count", "150", "--runs", "2", "--port", PORT_OPTION]
    example.main(options)
    load_, wait_us, _, theory_us = map(float, capsys.readouterr().out.splitlines()[1].split())
    assert (load_, theory_us) == (0.6, round(0.6 * 6.72 / 0.8, 2))
    waits = []
    for seed in (1, 2):
        pace = Interval(rate_bps=0.6 * 1e8, exponential=True)
        starts = 8 * traffic.schedule([Stream("x", 1, Fixed(60), pace, 150, seed=seed)], 150)["start"]
        wait = [0.0]
        for gap in np.diff(starts):
            wait.append(max(0.0, wait[-1] + 6720 - gap))
        waits.append(np.mean(wait))
    assert wait_us * 1e3 == pytest.approx(np.mean(waits), rel=0.02)  # Requests of the host delay some frames a little.


def test_throughput_is_that_of_the_slow_output(tester: Path) -> None:
    example = load("throughput")
    with Probe(sim_url("switch?rate=400M&queue=4", build=tester, link="shared")) as probe:
        probe.link.arrival_timeout_s = 5e-4  # No frame of this switch takes longer.
        found = example.throughput(probe, 60, count=40, port=PORT)
    assert 0.4 <= found <= 0.4 / (1 - 6 / 40)


def test_the_same_patterns_and_expectations_hold_on_a_probe(tester: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load("reuse/on_probe").main(sim_url("switch?latency=3us", build=tester, link="shared"), PORT_OPTION)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines] == [
        ["short", "30", "of", "30"], ["long", "9", "of", "9"], ["changing", "20", "of", "20"],
    ]  # fmt: skip


def test_another_latency_is_not_what_the_patterns_expect(tester: Path) -> None:
    with pytest.raises(AssertionError, match="short: least delay of 4576 ns"):
        load("reuse/on_probe").main(sim_url("switch?latency=4us", build=tester, link="shared"), PORT_OPTION)


@pytest.mark.full
def test_the_same_patterns_and_expectations_hold_in_simulation() -> None:
    load("reuse/bench").run()


def lindley(load: float, queue_length: int, frames: int) -> tuple[int, int, float]:
    """Return frames forwarded and dropped, and their mean wait (us), by the recursion of the work that is left."""
    chance, service_us = random.Random(1), 6.72
    work_us = waited_us = 0.0
    forwarded = 0
    for _ in range(frames):
        work_us = max(0.0, work_us - chance.expovariate(load / service_us))
        if math.ceil(work_us / service_us - 1e-6) <= queue_length:
            forwarded, waited_us, work_us = forwarded + 1, waited_us + work_us, work_us + service_us
    return forwarded, frames - forwarded, waited_us / forwarded


def test_a_queue_of_the_device_is_set_and_read_back_at_each_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    router = ["agent", "run", str(EXAMPLES / "agent_queue" / "router.py"), "--address", "tcp://127.0.0.1:0"]
    process = subprocess.Popen([sys.executable, "-m", "liteprobe.host.cli", *router], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        address = process.stdout.readline().split()[2].rstrip(":")
        files = ["--json", str(tmp_path / "agent.json"), "--parquet", str(tmp_path / "agent.parquet")]
        load("agent_queue/sweep").main(["--agent", address, "--lengths", "2,16", "--loads", "0.5,0.95,1.2", *files])
    finally:
        process.terminate()
        process.wait()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    points = [(length, share) for length in (2, 16) for share in (0.5, 0.95, 1.2)]
    for (length, share), row in zip(points, rows, strict=True):
        forwarded, dropped, wait_us = lindley(share, length, 20_000)
        assert (row[:4], float(row[5])) == (
            [str(length), f"{share:.2f}", str(forwarded), str(dropped)], pytest.approx(wait_us, abs=0.0051),
        )  # fmt: skip
    kept = json.loads((tmp_path / "agent.json").read_text())["rows"]
    assert [row["value"] for row in kept if row["name"] == "queue_length_now"] == [length for length, _ in points]
    assert [row["value"] for row in kept if row["name"] == "traffic_load"] == [share for _, share in points]
    assert process.returncode == 143 and (tmp_path / "agent.parquet").stat().st_size > 1000
