# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""``liteprobe replay`` over a model of the probe: what it prints and writes, and how it ends when something is wrong."""

import gzip
import io
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.replay.udp import Pace, UdpTarget
from liteprobe.host.run.replay import PortReplay
from liteprobe.host.run.streamed import DELAYS, Delays, StreamedRun, StreamLook
from liteprobe.sim.drivers.replay.capture_files import Packet, pcap, pcapng
from liteprobe.sim.drivers.replay.fake_probe import FakeReceiver, ReplayLink, fake_probe
from liteprobe.sim.models.probe.replay import ReplayModel

Run = Callable[..., tuple[int, str, str]]
Fake = tuple[ReplayModel, ReplayLink, FakeReceiver]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """A probe that replays; every URL leads to it."""
    with fake_probe(tmp_path) as found:
        monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: found[1])
        yield found


def packets(gap_us: int = 100, count: int = 20, length: int = 100) -> list[Packet]:
    return [Packet(Fraction(number * gap_us, 10**6), bytes([number]) * length, length) for number in range(count)]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two captures of 20 and of 10 frames."""
    found = []
    for name, content in (("a.pcap", pcap(packets())), ("b.pcapng", pcapng(packets(count=10)))):
        (tmp_path / name).write_bytes(content)
        found.append(str(tmp_path / name))
    return found


def ticks(model: ReplayModel, port: int) -> list[int]:
    first = model.frames[0].tick
    return [one.tick - first for one in model.frames if one.port == port]


# What goes well -----------------------------------------------------------------------------------


def test_two_files_on_two_ports_start_in_one_tick(run: Run, fake: Fake, files: list[str], tmp_path: Path) -> None:
    code, out, err = run(
        "replay", *files, "--transmit", "1,0", "--json", str(tmp_path / "r.json"), "--report", str(tmp_path / "r.html")
    )
    assert (code, err) == (0, f"report: {tmp_path / 'r.html'}\n")
    assert ticks(fake[0], 1) == [12_500 * number for number in range(20)]
    assert ticks(fake[0], 0) == [12_500 * number for number in range(10)]
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["format"] == "liteprobe-replay"
    assert (content["end"], content["is_complete"], content["capture"], content["notes"]) == ("sent", True, None, [])
    rows = [(row["port"], row["asked"], row["frames"], row["late"], row["underruns"]) for row in content["ports"]]
    assert rows == [(0, 10, 10, 0, 0), (1, 20, 20, 0, 0)]
    assert content["ports"][1]["planned"]["last_start_ns"] == 19 * 100_000
    lines = [line.split() for line in out.splitlines()]
    assert ["1", "20", "20", "0", "0", "0", "-"] in [line[:7] for line in lines]
    assert "All was sent within " in out and re.search(r"within [0-9.]+ [mµ]s\. Clock free-running", out)
    page = (tmp_path / "r.html").read_text()
    assert "<h1>Traces, replayed</h1>" in page and "<td>20</td>" in page


@pytest.mark.parametrize(
    ("options", "interval"),
    [
        (("--speed", "2"), Fraction(6250)),
        (("--speed", "3"), Fraction(12_500, 3)),
        (("--rate", "500M"), Fraction(248)),
        (("--top",), Fraction(124)),
        (("--top", "--margin-ppm", "5000"), Fraction(124) * Fraction(1005, 1000)),
    ],
)
def test_times_are_those_that_are_asked_for(
    run: Run, fake: Fake, files: list[str], options: tuple[str, ...], interval: Fraction
) -> None:
    code, _, _ = run("replay", files[0], *options)
    assert code == 0
    assert ticks(fake[0], 0) == [int((number * interval + Fraction(1, 2)) // 1) for number in range(20)]


def test_all_is_sent_as_often_as_asked(run: Run, fake: Fake, files: list[str]) -> None:
    code, out, _ = run("replay", files[0], "--loop", "3", "--json")
    assert code == 0
    assert ticks(fake[0], 0) == [12_500 * number for number in range(60)]
    assert json.loads(out)["ports"][0]["asked"] == 60


def test_frames_are_cut_and_stamped_as_asked(run: Run, fake: Fake, files: list[str]) -> None:
    code, _, _ = run("replay", files[0], "--snap", "70", "--stamp", "octet:42:32", "--stamp-tick", "1")
    assert code == 0
    assert [one.octets for one in fake[0].frames] == [bytes([number]) * 70 + bytes(30) for number in range(20)]
    records = fake[0]._traces[0]
    assert {one.stamp for one in records} == {42 | 3 << 8 | 1 << 11}


def test_files_are_looked_through_without_a_probe(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "dense.pcap"
    path.write_bytes(pcap(packets(gap_us=1, count=100, length=300)))
    code, out, err = run("replay", str(path), "--check", "--stamp", "ipv6.flow_label")
    assert (code, err) == (0, "")
    words = out.split()
    assert (
        "port 0: 99 frames can't start when they are due, number 1 first: the frame before is still on the line" in out
    )
    assert "port 0: 100 frames have no place for the stamp" in out
    assert words[words.index("0") + 1 : words.index("0") + 3] == ["100", "30,000"]


@pytest.mark.parametrize("where", [(), ("--probe", "etherbone://probe")], ids=["no probe", "a probe"])
def test_a_check_says_in_json_and_report_what_a_run_says(
    run: Run, fake: Fake, files: list[str], tmp_path: Path, where: tuple[str, ...]
) -> None:
    """Of all files, on a probe that is named or without one; and nothing is sent, nor is the probe taken."""
    made = ("--json", str(tmp_path / "c.json"), "--report", str(tmp_path / "c.html"))
    code, _, err = run("replay", *files, "--transmit", "1,0", "--loop", "3", "--check", *made, *where)
    assert (code, err, fake[0].frames) == (0, f"report: {tmp_path / 'c.html'}\n", [])
    checked = json.loads((tmp_path / "c.json").read_text())
    assert (checked["format"], checked["end"]) == ("liteprobe-replay", "checked")
    code, out, _ = run("replay", *files, "--transmit", "1,0", "--loop", "3", "--json")
    rows = json.loads(out)["ports"]
    assert [{name: row[name] for name in ("port", "asked", "planned")} for row in rows] == checked["ports"]
    assert [row["asked"] for row in checked["ports"]] == [30, 60]
    often = "the figures are of one turn; it is to be sent 3 times, {} frames in all"
    assert checked["notes"] == [f"port 0: {often.format(30)}", f"port 1: {often.format(60)}"]
    page = (tmp_path / "c.html").read_text()
    assert "Nothing was sent" in page and "<td>20</td>" in page


def test_what_a_check_does_not_do_is_said(run: Run, files: list[str], tmp_path: Path) -> None:
    code, _, err = run("replay", files[0], "--check", "--capture", str(tmp_path / "seen.pcapng"))
    assert (code, err) == (0, f"nothing is written to {tmp_path / 'seen.pcapng'}: --check sends nothing\n")
    assert not (tmp_path / "seen.pcapng").exists()


@pytest.mark.parametrize("kind", ["pipe", "stdin"])
def test_a_pipe_and_standard_input_are_replayed_as_a_file_is(
    run: Run, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Packed, too, and as often as asked, though what comes from them can be read but once."""
    path, content = tmp_path / "pipe", gzip.compress(pcap(packets()))
    if kind == "stdin":
        path = Path("-")
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: False))
    else:
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(content,))
        writer.start()
    code, _, err = run("replay", str(path), "--loop", "2")
    assert (code, err) == (0, "")
    assert ticks(fake[0], 0) == [12_500 * number for number in range(40)]


def test_a_long_gap_is_refused_until_somebody_says_what_to_make_of_it(run: Run, fake: Fake, tmp_path: Path) -> None:
    """As replayed: at a speed that makes it short enough it is none."""
    path = tmp_path / "gap.pcap"
    path.write_bytes(
        pcap([*packets(count=2), Packet(Fraction(65_536), bytes(60), 60), Packet(Fraction(65_537), bytes(60), 60)])
    )
    said = f"{path}: packet 3 (at octet 272) comes 18.2044 hours after the one before: give --max-gap 1s"
    for more in ((), ("--check",)):
        code, _, err = run("replay", str(path), *more)
        assert code == 2 and said in err and fake[0].frames == []
    code, out, _ = run("replay", str(path), "--max-gap", "1ms", "--json")
    assert code == 0
    assert ticks(fake[0], 0) == [0, 12_500, 137_500, 262_500]
    assert json.loads(out)["notes"] == ["port 0: 2 gaps are shortened to 0.001 s, by 18.2047 hours in all"]
    assert json.loads(out)["ports"][0]["planned"]["shortened"] == 2
    fake[0].frames.clear()
    assert run("replay", str(path), "--speed", "100000")[0] == 0
    assert ticks(fake[0], 0)[2:] == [81_920_000, 81_921_250]


def test_an_interrupt_keeps_what_was_sent(
    run: Run, fake: Fake, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen(self: StreamedRun[PortReplay]) -> StreamLook:
        raise Interrupted

    monkeypatch.setattr(StreamedRun, "_seen", seen)
    code, out, err = run("replay", files[0], "--loop", "0", "--json")
    assert code == 130
    assert err == "liteprobe: interrupted; what was sent until then is incomplete\n"
    assert json.loads(out)["end"] == "interrupted"


def test_delays_are_shown_or_a_dash() -> None:
    def shown(delays: Delays | None) -> list[str]:
        port = SimpleNamespace(known_delays=delays)
        return [column.text(port) for column in DELAYS.of("least mean p50 p99 p99_9 most")]

    delays = Delays(3, 1, np.array([1000, 2001, 3000], np.int64))
    assert shown(delays) == ["1,000", "2,000.3", "2,001", "3,000", "3,000", "3,000"]
    assert shown(Delays(0, 0, np.empty(0, np.int64))) == ["-"] * 6
    assert shown(None) == ["-"] * 6


def test_a_narrow_terminal_shows_two_tables(
    run: Run, fake: Fake, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liteprobe.host.cli.tables.console", lambda: Console(highlight=False, width=80))
    code, out, _ = run("replay", files[0])
    assert code == 0
    assert max(len(line) for line in out.splitlines()) <= 80
    heads = [line.split() for line in out.splitlines() if line.strip().startswith("port ")]
    wanted = "sent of waited late underruns first Mb/s of line resent ns mean P50 P99 P99.9 most"
    assert [len(heads), " ".join(" ".join(head[1:]) for head in heads)] == [2, wanted] and "least" in out.split()


# What goes wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing.pcap",), "can't replay nothing.pcap: there is no such file"),
        (("A", "--transmit", "0,1"), "1 files can't be sent from ports 0,1: give as many ports as files, each once"),
        (
            ("A", "A", "--transmit", "1,1"),
            "2 files can't be sent from ports 1,1: give as many ports as files, each once",
        ),
        (("A", "--loop", "-1"), "--loop -1 is out of range: give 1 or more, or 0 for until Ctrl-C"),
        (("A", "--speed", "0"), "--speed 0 is out of range: give more than 0, like 2 for twice as fast"),
        (("A", "--rate", "2G"), "a rate of 2e+09 b/s is more than a line of 1 Gb/s: give a lower --rate, or --top"),
        (("A", "--speed", "2", "--top"), "not allowed with argument"),
        (("A", "--snap", "9001"), "snap length 9001 is out of range: give 0 to 9000"),
        (("A", "--stamp", "octet"), "'octet' is not a place of a stamp: write it like octet:42 or ipv4.identification"),
        (("A", "--stamp", "probe"), "frames of a trace have no stamp in the place 'probe'"),
        (("A", "--stamp", "octet:42:12"), "a stamp of 12 bits is out of range: give 16 to 64 in steps of 8"),
        (("A", "--transmit", "7"), "there is no transmit port 7: give 0 to 1"),
        (("A", "--transmit", "7", "--check"), "there is no transmit port 7: give 0 to 1"),
        (("A", "A", "A", "--check"), "there is no transmit port 2: give 0 to 1"),
        (("A", "--loop", "-1", "--check"), "--loop -1 is out of range: give 1 or more, or 0 for until Ctrl-C"),
        (("A", "--check", "--probe", "x", "--transmit", "7"), "there is no transmit port 7: give 0 to 1"),
        (("-", "-"), "standard input can be replayed once: give - for one file, and names for the others"),
        (
            ("A", "--max-gap", "7200000"),
            "a gap of 7200000 s at most is out of range: give more than 0, up to 3600000 s",
        ),
        (("A", "--max-gap", "2000h"), "a gap of 7200000 s at most is out of range"),
        (("A", "--max-gap", "120000min"), "a gap of 7200000 s at most is out of range"),
        (("A", "--capture", "A"), "what is replayed and --capture are the same file"),
        (("A", "A", "--transmit", "0,1", "--json", "A"), "what is replayed and --json are the same file"),
        (("A", "--margin-ppm", "-2000000"), "times can't be stretched by"),
        (("A", "--speed", "1e30", "--check"), "times can't be stretched by 1e-30: give 1e-9 to 1e6 in all"),
        (("A", "--speed", "1e-7", "--check"), "times can't be stretched by 1e+07: give 1e-9 to 1e6 in all"),
        (
            ("A", "--rate", "0.0001", "--check"),
            "a rate of 0.0001 b/s is out of range: give 1 to 1e9 (1e10 at 10 Gb/s), or have it back to back",
        ),
        (("A", "--stamp-tick", "3", "--check"), "--stamp-tick 3 is of no stamp: give --stamp, too"),
    ],
)
def test_what_can_not_be_is_refused(
    run: Run, fake: Fake, files: list[str], arguments: tuple[str, ...], words: str
) -> None:
    code, _, err = run("replay", *(files[0] if one == "A" else one for one in arguments))
    assert code == 2
    assert words in err
    assert fake[0].frames == []


def test_a_bad_file_is_refused_or_mended(run: Run, fake: Fake, tmp_path: Path) -> None:
    """Each kind of fault with its packet; nothing is sent before it is found."""
    whole = packets()
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(pcap(whole)[:-10])
    code, _, err = run("replay", str(cut))
    assert code == 2 and "packet 20 (at octet 2228) can't be read: it is cut after 90 of 100 octets" in err
    assert fake[0].frames == []
    code, out, _ = run("replay", str(cut), "--repair")
    assert code == 0 and len(fake[0].frames) == 19
    assert "cut.pcap was read up to where it is broken: packet 20" in " ".join(out.split())
    back = tmp_path / "back.pcap"
    back.write_bytes(pcap([whole[1], whole[0], *whole[2:]]))
    code, _, err = run("replay", str(back))
    said = "the time of packet 2 (at octet 156) is 100,000 ns before that of the one before it: sort them with --sort"
    assert code == 2 and said in err
    fake[0].frames.clear()
    code, _, _ = run("replay", str(back), "--sort")
    assert code == 0 and [one.octets[0] for one in fake[0].frames] == list(range(20))


def test_an_underrun_is_said_with_its_frame(run: Run, fake: Fake, files: list[str]) -> None:
    fake[0].underrun_at[0] = 5
    code, out, _ = run("replay", files[0])
    assert code == 0
    assert "incomplete" in out
    said = "1 frames came too late from this host, number 5 first: give --snap, a lower --speed, or a faster network"
    assert said in " ".join(out.split())


def test_a_probe_that_never_answers_is_said_with_what_to_do(
    run: Run, fake: Fake, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake[2].is_mute = True
    target = UdpTarget("127.0.0.1", fake[2].port, Pace(patience_s=0.3))
    monkeypatch.setattr("liteprobe.host.run.replay.target_of", lambda *_: target)
    code, _, err = run("replay", files[0])
    assert code == 3
    assert "let the firewalls of this host and on the way pass UDP port" in err
