# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The ten short scripts of docs/examples print what arithmetic, the wire and scapy say, and nothing else."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from scapy.layers.inet import UDP
from scapy.utils import rdpcap

from liteprobe.host.device.link.url import sim_url
from liteprobe.sim.drivers.labs.examples import EXAMPLES, load

SCRIPTS = ("calibrate", "capture", "emulate", "histogram", "owd", "replay", "send", "sweep", "train", "trigger")
LINES_MAX = 40
LATENCY_NS = 3000

Run = Callable[..., list[str]]


def switched_ns(length: int) -> int:
    """Return what a store-and-forward switch of 3 us takes for a frame: its octets, FCS and a new preamble at 1 Gb/s."""
    return 8 * (length + 4 + 8) + LATENCY_NS


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs an example with these arguments; returns the lines that it prints."""

    def lines(name: str, *arguments: str | Path) -> list[str]:
        load(name).main(*map(str, arguments))
        return capsys.readouterr().out.splitlines()

    return lines


def stamps_ns(path: Path) -> tuple[list[int], list[bytes]]:
    """Return the times after that of the first frame, and the octets, of each frame of a file, as scapy reads it."""
    packets = rdpcap(str(path))
    times = [int(packet.time * 10**9) for packet in packets]
    return [time - times[0] for time in times], packets


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_short_and_has_nothing_of_tests(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text()
    assert len(text.splitlines()) <= LINES_MAX
    imported = re.findall(r"^(?:from|import) ([\w.]+)", text, re.MULTILINE)
    assert [one for one in imported if one.startswith(("liteprobe.sim", "test", "pytest"))] == []


def test_train(run: Run, replay_build: Path) -> None:
    delay = switched_ns(1514)
    assert run("train", sim_url("switch?latency=3us", build=replay_build)) == [
        "100 sent, 0 late, 100 received, 0 lost",
        "rate 1000.000 Mb/s on the wire",
        f"delay {delay} to {delay} ns, mean {delay}.0 ns",
        "a delay is known to 8 ns; the clock is free-running",
    ]


def test_calibrate(run: Run, replay_build: Path) -> None:
    assert run("calibrate", sim_url("cable?delay=1us", build=replay_build)) == [
        "slope 0.0000 ± 0.0000 ns an octet, 9 trains",
        "intercept 1000.00 ± 0.00 ns",
        "256 octets: 1000.00 ns raw, 5.00 ns corrected",
    ]


@pytest.mark.full
def test_owd(run: Run, own: Path) -> None:
    wire = "pair?oscillators=20,-30&delay=1us&pps=1ms"
    lines = run("owd", *(sim_url(wire, build=own, cpu="0", probe=probe) for probe in "ab"))
    assert len(lines) == 2
    for name, line in zip(("there", "back"), lines, strict=True):
        found = re.fullmatch(rf"{name} +20 of 20: ([\d.]+) ± ([\d.]+) ns, locked", line)
        assert found, line
        mean, bound = map(float, found.groups())
        assert abs(mean - 1000) <= bound <= 50


def test_capture(run: Run, replay_build: Path, tmp_path: Path) -> None:
    path = tmp_path / "dns.pcapng"
    lines = run("capture", sim_url("cable?delay=1us", build=replay_build), path)
    assert lines == [f"20 frames, 4000 octets in {path}, complete"]
    times, packets = stamps_ns(path)
    assert [(len(packet), packet[UDP].dport) for packet in packets] == [(200, 53)] * 20
    assert times == [10_000 * number for number in range(20)]


@pytest.mark.full
def test_trigger(run: Run, replay_build: Path, tmp_path: Path) -> None:
    """Frames come each 10 us and the one of the trigger 5 us after one of them: 10 lie before it, and 5 after it."""
    path = tmp_path / "near.pcapng"
    assert run("trigger", sim_url("cable?delay=1us", build=replay_build), path) == [
        f"16 frames around udp port 53, {140 + 8 * (200 + 24) / 1000:.1f} us"
    ]
    times, packets = stamps_ns(path)
    assert times == [*range(0, 100_000, 10_000), 95_000, *range(100_000, 150_000, 10_000)]
    assert [number for number, packet in enumerate(packets) if packet[UDP].dport == 53] == [10]


def test_histogram(run: Run, replay_build: Path) -> None:
    *looks, last = run("histogram", sim_url("switch?latency=3us", build=replay_build))
    bins = {1024 * (switched_ns(length) // 1024): count for length, count in ((60, 40), (700, 20), (1514, 10))}
    assert last == str(bins)
    found = [re.fullmatch(r" *(\d+) frames \|(.*)\|", look) for look in looks]
    totals = [int(look[1]) for look in found if look]
    assert (len(totals), totals == sorted(totals), totals[2::3]) == (9, True, [40, 60, 70])
    assert found[-1] and found[-1][2] == "   █    ▄     ▂"  # 40, 20 and 10 frames.


def test_send(run: Run, tester: Path) -> None:
    """Management is in band on port 0, so port 1 sends, and a frame may wait for a request of the host."""
    lines = run("send", sim_url(f"switch?latency={LATENCY_NS}ns", build=tester, link="shared"), "1")
    assert len(lines) == 4
    found = re.fullmatch(r"voice: (\d+) sent, (\d+) received, 0 lost, \d+ late", lines[0])
    assert found and found[1] == found[2] and int(found[1]) >= 0.002 * 20_000
    assert re.fullmatch(r"bulk: 60 sent, 60 received, 0 lost, \d+ late", lines[2])
    for length, bits, line in ((214, None, lines[1]), (60, 0, lines[3])):
        assert re.fullmatch(rf"  delay {switched_ns(length)} to \d+ ns, bit errors: {bits}", line)


@pytest.mark.full
def test_replay(run: Run, replay_build: Path, tmp_path: Path) -> None:
    path = tmp_path / "seen.pcapng"
    planned, *lines, delays = run("replay", sim_url("cable?delay=1us", build=replay_build), "", path)
    times, packets = stamps_ns(path)
    slot_ns = 8 * (300 + 24)
    late = sum(after - before == slot_ns for before, after in zip(times, times[1:], strict=False))
    found = re.fullmatch(r"200 frames in ([\d.]+) us: ([\d.]+)% of the line", planned)
    assert found and float(found[1]) == pytest.approx((times[-1] + slot_ns) / 1e3, abs=slot_ns / 1e3)
    assert float(found[2]) == pytest.approx(100 * 200 * slot_ns / (times[-1] + slot_ns), abs=0.1)
    assert [len(packet) for packet in packets] == [300] * 200
    assert lines[0] == "200 sent, 0 came too late from this host, 200 captured"
    assert lines[1] == f"{late} started late: {late} had to, the frame before was still on the line"
    assert delays == "delay 1000 to 1000 ns, mean 1000.0 ns"


def test_emulate(run: Run, emulator_build: Path, stack: None) -> None:
    """Delays are those that were asked for, on each way; what leaves is what a client and a server on TCP need for two files."""
    said = run("emulate", sim_url("emulator?files=2&octets=3000", build=emulator_build))
    *ways, last = [line for line in said if not line.startswith("note: ")]
    counts = [re.fullmatch(r"(\w+): (\d+) arrived, (\d+) sent, 0 dropped, 0 late", line) for line in ways[::2]]
    assert [(way[1], way[2] == way[3]) for way in counts if way] == [("there", True), ("back", True)]
    assert ways[1::2] == ["  delay 1000000 to 1000000 ns", "  delay 500000 to 500000 ns"]
    found = re.fullmatch(
        r"2 of 2 files, 3,000 octets in ([\d.]+) ms, each as the server has it; connections: 1\.", last
    )
    # The server's address comes after 1 ms; then a round trip of 1.5 ms for the SYN, and one for each file.
    assert found and 5.5 < float(found[1]) < 5.55


@pytest.mark.full
def test_sweep(run: Run, replay_build: Path, tmp_path: Path) -> None:
    head, *rows = run("sweep", sim_url("switch?latency=3us", build=replay_build), tmp_path)
    assert head == "length count     Mb/s  delay ns  lost"
    programs = [(length, count) for length in (60, 256, 1514) for count in (20, 100)]
    assert [row.split() for row in rows] == [
        [str(length), str(count), "1000.000", f"{switched_ns(length)}.0", "0"] for length, count in programs
    ]
    written = json.loads((tmp_path / "sweep.json").read_text())["rows"]
    assert [(row["length"], row["count"]) for row in written] == programs
    assert (tmp_path / "sweep.html").read_text().count("<svg") == 5
