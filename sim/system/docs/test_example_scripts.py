# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The ten short scripts of docs/examples print what arithmetic, the wire and scapy say, and nothing else."""

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import lint
import pytest
from scapy.layers.inet import UDP
from scapy.utils import rdpcap

from liteprobe.host.device.link.url import sim_url
from liteprobe.sim.drivers.labs.examples import EXAMPLES, load
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row

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


@pytest.mark.full
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
    found = re.fullmatch(r"voice: (\d+) sent, (\d+) received, 0 lost, \d+ after their tick", lines[0])
    assert found and found[1] == found[2] and int(found[1]) >= 0.002 * 20_000
    assert re.fullmatch(r"bulk: 60 sent, 60 received, 0 lost, \d+ after their tick", lines[2])
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
    assert lines[1] == f"{late} waited until the frame before had left the line, 0 were late"
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


# Twelve lines -------------------------------------------------------------------------------------

TWELVE = {path.stem: path for path in sorted((EXAMPLES / "twelve").glob("*.py"))}


def code_lines(path: Path) -> int:
    """Return the lines of a script that aren't blank, its licence and the sentence that says what it is for left out."""
    text = path.read_text().split('"""', 2)[2]
    return len([line for line in text.splitlines() if line.strip()])


@row("people", "scripts", is_test=True)
def test_five_scripts_of_users_are_short_and_typed(size: Size) -> Iterator[Figure]:
    yield Figure("scripts", len(TWELVE), "scripts", 5, is_least=True)
    yield Figure("scripts_longest", max(map(code_lines, TWELVE.values())), "lines", 12)
    if size > Size.TEST:  # ./run lint does it, too.
        lint.link_package()
        command = [sys.executable, "-m", "mypy", "--strict", *map(str, TWELVE.values())]
        done = subprocess.run(command, cwd=EXAMPLES.parents[1], capture_output=True, text=True, check=False)
        note(done.stdout)
        yield Figure("scripts_type_errors", done.stdout.count(": error:") + done.returncode, "errors", 0)


def lines_of(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> list[str]:
    """Run one of the five; return the lines that it prints."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(TWELVE[name]), run_name="__main__")
    return capsys.readouterr().out.splitlines()


@pytest.mark.full
def test_the_five_print_what_arithmetic_says(
    tester: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = sim_url("switch?rate=400M&queue=4", build=tester, link="shared")
    monkeypatch.chdir(tmp_path)
    # 40 % of the line, and what four places let pass of 400 frames: 40 / (1 - 4/400).
    assert lines_of("throughput_search", capsys, monkeypatch, slow) == ["throughput 40.4 % of the line"]
    losses = lines_of("loss", capsys, monkeypatch, slow)
    assert [line.split(":")[0] for line in losses] == [
        f"{n:4} octets at {p:3} %" for n in (60, 1514) for p in (100, 80, 60, 40)
    ]
    ratios = [float(line.split()[-2].rstrip("%")) for line in losses]
    assert ratios[3] == ratios[7] == 0 and ratios[:4] == sorted(ratios[:4], reverse=True)
    assert abs(ratios[0] - 60) < 1.5  # All but the 40 % of the output, and the four that wait.
    delays = lines_of("load_latency", capsys, monkeypatch, sim_url("switch?rate=400M", build=tester, link="shared"))
    means = [float(line.split()[5].replace(",", "")) for line in delays]
    assert len(means) == 4 and means == sorted(means)
    assert (
        len(lines_of("soak", capsys, monkeypatch, sim_url("loopback", build=tester, link="shared"), "2", "s.jsonl"))
        == 2
    )
    kept = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [one["round"] for one in kept] == [0, 1] and all(one["streams"][0]["lost"] == 0 for one in kept)


@pytest.mark.full
def test_a_replay_is_compared_with_one_at_twice_its_speed(
    replay_build: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    office = str(EXAMPLES / "office.pcapng")
    lines = lines_of("replay_compare", capsys, monkeypatch, sim_url("cable?delay=1us", build=replay_build), office)
    assert [line.split(" in ")[0] for line in lines] == [
        "as captured: 129 sent, 0 lost, p99 1000.0 ns",
        "twice as fast: 129 sent, 0 lost, p99 1000.0 ns",
    ]
