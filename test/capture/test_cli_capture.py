# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The commands capture and monitor: what they write and print, and how they end when something is wrong."""

import contextlib
import io
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console
from scapy.utils import RawPcapNgReader

from liteprobe.cores.formats import BinKind, Layer3
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.capture.request import CaptureRequest, CaptureSettings, Keep, Sampling
from liteprobe.host.capture.write import parquet
from liteprobe.host.cli import main as cli
from liteprobe.host.cli.commands import capture
from liteprobe.host.cli.commands.monitor import view
from liteprobe.host.measure.monitor import BinSetting, Monitor
from liteprobe.host.probe import Probe
from liteprobe.host.serve.metrics import Metrics, serve
from liteprobe.host.serve.poll import Look, Poller
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of, line_rate, mixed
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.full_disk import room_of_each
from liteprobe.sim.drivers.tools.processes import wait_for
from liteprobe.sim.models.probe.meters import MonitorProbe
from liteprobe.sim.models.receive.meters import MeasuredFrame
from liteprobe.sim.models.receive.unified import unified_header

Run = Callable[..., tuple[int, str, str]]
SEED = 20261122
FIRST = 1_800_000_000_000_000_000


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording of all stacks with their headers, a microsecond apart."""
    path = tmp_path / "stacks.blocks"
    frames = [Captured(FIRST + 1000 * at, frame, with_header=True) for at, frame in enumerate(stacks.stacks())]
    blocks_of(frames).tofile(path)
    return path


def test_a_disk_that_is_full_from_the_start_keeps_no_other_output_from_being_written(
    run: Run, recording: Path, tmp_path: Path
) -> None:
    headers, counts = tmp_path / "h.parquet", tmp_path / "z.json"
    files = ["-w", "/dev/full", "--headers", str(headers), "--json", str(counts)]
    code, _, said = run("capture", "--read", str(recording), *files)
    frames = len(stacks.stacks())
    assert code == 1 and "the disk is full: /dev/full holds nothing; make room" in said
    assert pq.read_metadata(headers).num_rows == frames
    assert json.loads(counts.read_text())["unwritten"] == {"/dev/full": frames}


def stamps(path: Path) -> list[int]:
    with RawPcapNgReader(str(path)) as reader:
        return [meta.tshigh << 32 | meta.tslow for _, meta in reader]


# Capture ------------------------------------------------------------------------------------------


def test_recording_becomes_frames_headers_and_counts(run: Run, recording: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("c.pcapng", "h.parquet", "c.json")]
    code, out, err = run(
        "capture", "-r", str(recording), "-w", str(paths[0]), "--headers", str(paths[1]), "--json", str(paths[2])
    )
    assert (code, out) == (0, "")
    assert stamps(paths[0]) == [FIRST + 1000 * at for at in range(906)]
    assert pq.read_table(paths[1]).num_rows == 906
    counts = json.loads(paths[2].read_text())
    assert (counts["frames"], counts["records"], counts["missing"], counts["damaged"]) == (906, 906, 0, 0)
    assert err.splitlines() == [f"906 frames, {counts['octets']:,} octets, in {paths[0]}, {paths[1]}"]


def test_all_files_of_headers_are_named(
    run: Run, recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUPS", 1)
    monkeypatch.setattr(parquet, "HeaderWriter", partial(parquet.HeaderWriter, row_group=400))
    _, _, err = run("capture", "-r", str(recording), "--headers", str(tmp_path / "h.parquet"))
    paths = [tmp_path / name for name in ("h.parquet", "h-2.parquet", "h-3.parquet")]
    assert err.splitlines()[0].endswith(f" octets, in {', '.join(map(str, paths))}")
    assert [pq.read_table(path).num_rows for path in paths] == [400, 400, 106]


def test_gaps_and_lost_blocks_are_told(run: Run, tmp_path: Path) -> None:
    frames = [Captured(FIRST + at, bytes(60)) for at in range(100)]
    frames.insert(50, Captured(FIRST + 49, missing=7))
    blocks = blocks_of(frames)
    blocks = blocks[[at for at in range(len(blocks)) if at != 1]]
    blocks.tofile(tmp_path / "gaps.blocks")
    _, _, err = run("capture", "-r", str(tmp_path / "gaps.blocks"), "-w", str(tmp_path / "c.pcapng"))
    assert "1 blocks missing: the records in them are lost" in err
    assert "7 frames dropped for want of space, each gap marked at its place" in err
    assert "1 records lost with a part in a missing block" in err


def test_filter_keeps_what_matches(run: Run, recording: Path, tmp_path: Path) -> None:
    code, _, err = run("capture", "-r", str(recording), "--filter", "arp", "-w", str(tmp_path / "c.pcapng"))
    kept = stamps(tmp_path / "c.pcapng")
    arps = [at for at, frame in enumerate(stacks.stacks()) if unified_header(frame).layer3 == Layer3.ARP]
    assert code == 0 and kept == [FIRST + 1000 * at for at in arps] and len(kept) > 0
    assert f"{906 - len(kept)} frames taken out by the filter on this host" in err
    assert "other than in tcpdump, the filter also holds for frames behind VLAN tags and labels; " in err


def test_trigger_keeps_what_is_near(run: Run, recording: Path, tmp_path: Path) -> None:
    code, _, err = run(
        "capture", "-r", str(recording), "--trigger", "ip6", "--before", "3us", "--after", "5us",
        "-w", str(tmp_path / "c.pcapng"),
    )  # fmt: skip
    first = next(at for at, frame in enumerate(stacks.stacks()) if unified_header(frame).layer3 == Layer3.IPV6)
    assert code == 0
    assert "other than in tcpdump, the trigger also holds for frames behind VLAN tags and labels; " in err
    assert "--host-filter" not in err
    assert stamps(tmp_path / "c.pcapng") == [FIRST + 1000 * at for at in range(max(first - 3, 0), first + 6)]


def test_trigger_that_never_comes_is_told(run: Run, recording: Path, tmp_path: Path) -> None:
    _, _, err = run("capture", "-r", str(recording), "--trigger", "host 9.9.9.9", "-w", str(tmp_path / "c.pcapng"))
    assert "no frame matched the trigger: nothing was kept" in err and stamps(tmp_path / "c.pcapng") == []


@pytest.mark.parametrize("count", [1, 5, 905, 906, 2000])
def test_count_ends_the_capture(run: Run, recording: Path, tmp_path: Path, count: int) -> None:
    run("capture", "-r", str(recording), "--count", str(count), "-w", str(tmp_path / "c.pcapng"))
    assert stamps(tmp_path / "c.pcapng") == [FIRST + 1000 * at for at in range(min(count, 906))]


def test_blocks_written_again_are_the_same(run: Run, recording: Path, tmp_path: Path) -> None:
    run("capture", "-r", str(recording), "--blocks", str(tmp_path / "again.blocks"))
    assert (tmp_path / "again.blocks").read_bytes() == recording.read_bytes()


def test_utc_is_less(run: Run, recording: Path, tmp_path: Path) -> None:
    run("capture", "-r", str(recording), "--count", "1", "--utc", "37", "-w", str(tmp_path / "c.pcapng"))
    assert stamps(tmp_path / "c.pcapng") == [FIRST - 37 * 10**9]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "liteprobe.host.cli.main", *arguments]


def test_stdout_feeds_tshark(recording: Path) -> None:
    first = subprocess.Popen(command("capture", "-r", str(recording), "-w", "-"), stdout=subprocess.PIPE)
    done = subprocess.run(
        ["tshark", "-n", "-r", "-", "-T", "fields", "-e", "frame.number"],
        stdin=first.stdout, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert first.wait() == 0 and len(done.stdout.splitlines()) == 906


ROOMS = {"c.pcapng": 20_000, "h.parquet": 40_000, "b.blocks": 50_000}


@pytest.mark.parametrize("full", [names for count in (1, 2, 3) for names in itertools.combinations(ROOMS, count)])
def test_each_file_that_finds_the_disk_full_ends_by_itself_and_all_frames_are_accounted_for(
    run: Run, recording: Path, tmp_path: Path, full: tuple[str, ...]
) -> None:
    paths = {name: tmp_path / name for name in ROOMS}
    options = zip(("-w", "--headers", "--blocks"), map(str, paths.values()), strict=True)
    counts_to = tmp_path / "c.json"
    with room_of_each({name: ROOMS[name] for name in full}):
        code, _, err = run("capture", "-r", str(recording), *sum(options, ()), "--json", str(counts_to))
    said, *errors = err.splitlines()
    counts = json.loads(counts_to.read_text())
    assert code == 1 and said.startswith(f"{counts['frames']:,} frames") and len(errors) == len(full)
    assert [name for name in ROOMS if f"{paths[name]} holds" in err] == list(full)
    in_file = {"c.pcapng": len(stamps(paths["c.pcapng"])), "h.parquet": pq.read_table(paths["h.parquet"]).num_rows}
    for name, held in in_file.items():
        unwritten = counts["unwritten"].get(str(paths[name]), 0)
        assert held + unwritten == counts["frames"] and (unwritten > 0) == (name in full) and held > 100
        assert not unwritten or f"({unwritten:,} frames are missing in it)" in err
    whole = recording.read_bytes()
    raw = paths["b.blocks"].read_bytes()
    assert whole.startswith(raw) and (len(raw) < len(whole)) == ("b.blocks" in full)


def test_reader_that_goes_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    line_rate(200_000).tofile(tmp_path / "many.blocks")
    first = subprocess.Popen(
        command("capture", "-r", str(tmp_path / "many.blocks"), "-w", "-"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )  # fmt: skip
    assert first.stdout and first.stderr
    first.stdout.read(1000)
    first.stdout.close()
    said = first.stderr.read().decode()
    assert first.wait() == 1
    assert said.startswith("liteprobe: the reader of stdout has gone after ") and said.count("\n") == 1


def test_ctrl_c_ends_with_files_that_can_be_read(tmp_path: Path) -> None:
    read, write = os.pipe()
    path = tmp_path / "c.pcapng"
    first = subprocess.Popen(command("capture", "-r", "-", "-w", str(path)), stdin=read, stderr=subprocess.PIPE)
    os.close(read)
    octets = line_rate(100_000).tobytes()
    with open(write, "wb", buffering=0) as pipe:
        pipe.write(octets[: 2048 * 1472])
        wait_for(lambda: path.exists() and path.stat().st_size > 10_000)
        first.send_signal(signal.SIGINT)
        time.sleep(0.1)
        with contextlib.suppress(BrokenPipeError):  # It may have ended by now.
            pipe.write(octets[2048 * 1472 : 4096 * 1472])
        assert first.wait(20) == 0
    assert len(stamps(path)) > 2048 * 18


USAGE = [
    (("--keep", "packets"), "lines need headers: give --keep both"),
    (("-w", "x.pcapng", "--before", "1ms"), "need a --trigger"),
    (("-w", "x.pcapng", "--host-trigger"), "need a --trigger"),
    (("-w", "x.pcapng", "-r", "y", "--trigger", "ip", "--host-trigger"), "--host-trigger is for a probe"),
    (("-w", "x.pcapng", "--count", "0"), "count 0 is out of range"),
    (("-w", "x.pcapng", "--keep", "headers"), "pcapng needs packets: give --keep both"),
    (("--headers", "x", "--keep", "packets"), "needs headers: give --keep both"),
    (("-w", "x.pcapng", "--trigger", "ip", "--keep", "packets"), "looks at headers: give --keep both"),
    (("-w", "x.pcapng", "--host-filter"), "--host-filter needs a --filter EXPR"),
    (("--headers", "x", "--filter", "ip", "--host-filter", "--keep", "headers"), "octets of frames: give --keep both"),
    (
        ("-w", "x.pcapng", "--filter", "ip[8", "--host-filter"),
        "'ip[8' is refused by libpcap: can't parse filter expression: syntax error",
    ),
    (("-w", "x.pcapng", "-r", "y", "--sample", "2"), "--sample is for a probe, and --read takes a recording"),
    (
        ("-w", "x.pcapng", "-r", "/nowhere"),
        "can't read /nowhere (No such file or directory): give a file that --blocks wrote",
    ),
    (("-w", "x.pcapng", "-r", "y", "--utc"), "doesn't know TAI - UTC: give --utc 37"),
    (("-w", "x.pcapng", "--sample", "3"), "'3' is not a sampling: give 1, 2, 4, 8 or 16"),
    (("-w", "x.pcapng", "--sample", "hash:2:3:4"), "is not a sampling"),
    (("-w", "x.pcapng", "--snap", "-1"), "snap length -1 is out of range"),
    (("-w", "x.pcapng", "--channels", "8"), "channels are 0 to 7"),
    (("-w", "x.pcapng", "--channels", "1,1"), "a channel is named twice"),
    (("-w", "x.pcapng", "--trigger", "host"), "host"),
    (("-w", "-", "--json", "-"), "stdout can't take frames and counts"),
]


@pytest.mark.parametrize(
    ("arguments", "said"), USAGE, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_wrong_use_is_one_line_and_exit_code_2(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "y").write_bytes(b"")
    code, out, err = run("capture", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1) and said in err


@pytest.mark.parametrize("content", [b"x", bytes(5000), bytes.fromhex("0a0d0d0a1c000000") * 4000, b"PAR1" * 999])
def test_what_is_not_a_recording_is_refused_before_a_file_is_made(run: Run, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "no.blocks").write_bytes(content)
    code, out, err = run("capture", "-r", str(tmp_path / "no.blocks"), "-w", str(tmp_path / "c.pcapng"))
    assert (code, out) == (2, "") and "is not a recording (no blocks are in it): give a file that --blocks wrote" in err
    assert [path.name for path in tmp_path.iterdir()] == ["no.blocks"]


def test_empty_recording_has_no_frames(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.blocks").touch()
    assert run("capture", "-r", str(tmp_path / "empty.blocks"), "-w", str(tmp_path / "c.pcapng"))[0] == 0
    assert stamps(tmp_path / "c.pcapng") == []


def test_recording_without_headers_cant_be_filtered(run: Run, tmp_path: Path) -> None:
    blocks_of(mixed(50, SEED)).tofile(tmp_path / "plain.blocks")
    code, _, err = run(
        "capture", "-r", str(tmp_path / "plain.blocks"), "--filter", "ip", "-w", str(tmp_path / "c.pcapng")
    )
    assert code == 2 and "capture with --keep both, or give --host-filter" in err


def test_what_the_probe_keeps_is_what_the_files_need() -> None:
    def kept(*arguments: str) -> CaptureSettings:
        return capture.request_of(cli.make_parser().parse_args(["capture", *arguments])).wanted

    assert kept("-w", "x.pcapng").keep == Keep.PACKETS and kept("--blocks", "x").keep == Keep.PACKETS
    assert kept("--headers", "x").keep == Keep.HEADERS
    assert kept("-w", "x.pcapng", "--headers", "y").keep == kept("-w", "x.pcapng", "--trigger", "ip").keep == Keep.BOTH
    assert kept("-w", "x.pcapng", "--sample", "hash:8:0x12").sampling == Sampling(3, True, 0x12)
    assert kept("-w", "x.pcapng", "--channels", "2,5").table()[:3] == [2, 5, 2]


# Monitor ------------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MonitorProbe:
    """A probe that has measured 300 frames of stream 3 at port 1, 3 lost; every URL leads to it."""
    made = MonitorProbe()

    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: FakeLink(made, tmp_path))
    with Probe("sim://loopback") as probe:
        monitor = Monitor(probe, 1)
        monitor.watch(stream_base=3)
        monitor.set_bins({BinKind.LENGTH: BinSetting(0, 6), BinKind.DELAY: BinSetting(0, 5)})
    for number in range(300):
        stamp = FIRST + 2000 * number
        made.arrive(
            1,
            MeasuredFrame(stamp, 60 + 64 * (number % 3), 0, True, 3, number + 3 * (number > 99), stamp - 500 - number),
        )
    return made


def test_monitor_prints_what_was_measured(run: Run, model: MonitorProbe) -> None:
    code, out, err = run("monitor", "--once", "--from-start")
    assert (code, err) == (0, "")
    row = next(line.split() for line in out.splitlines() if " 300 " in line and "0.990" in line)
    assert row[1:8] == ["3", "300", "3", "0.990", "0", "0", "0"] and row[8:11] == ["500", "649.5", "799"]
    assert "300 frames, 37,200 octets" in out and "peak 0..63: 100" in out
    assert "port 0" in out and "\x1b" not in out


def test_monitor_prints_json(run: Run, model: MonitorProbe) -> None:
    code, out, _ = run("monitor", "--once", "--from-start", "--json", "--port", "1")
    (port,) = json.loads(out)["ports"]
    assert code == 0 and (port["port"], port["counters"]["frames"], port["streams"][1]["lost"]) == (1, 300, 3)
    code, out, _ = run("monitor", "--once", "--json", "--port", "1")  # It may have begun in mid-stream.
    (later,) = json.loads(out)["ports"]
    assert code == 0 and (later["streams"][1]["lost"], later["streams"][1]["missing_before"]) == (None, 3)
    histogram = port["histograms"][0]["length"]
    assert (histogram["origin"], histogram["width"], histogram["unit"]) == (0, 64, "octets")
    assert histogram["counts"][:4] == [100, 100, 100, 0]


def test_monitor_sets_streams_and_bins(run: Run, model: MonitorProbe) -> None:
    code, out, _ = run("monitor", "--once", "--json", "--streams", "7", "--bins", "delay=-100:64", "--port", "1")
    (port,) = json.loads(out)["ports"]
    assert code == 0 and port["counters"]["frames"] == 0
    assert [stream["stream_id"] for stream in port["streams"]] == [None, 7, 8, 9, 10, 11, 12, 13]
    assert (port["histograms"][0]["delay"]["origin"], port["histograms"][0]["delay"]["width"]) == (-100, 64)


def test_monitor_counts_rates_over_the_time_that_is_asked_for(run: Run, model: MonitorProbe) -> None:
    code, out, _ = run("monitor", "--once", "--json", "--rates", "10ms")
    assert code == 0 and model.values["rates_interval"] == 10_000_000
    assert json.loads(out)["ports"][1]["counters"]["frames"] == 300


def test_monitor_at_80_columns_leaves_its_bars_whole(model: MonitorProbe) -> None:
    screen = io.StringIO()
    Console(width=80, file=screen).print(view(Poller(Probe("sim://loopback"), [1]).look()))
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) == 80 and "…" not in screen.getvalue()
    assert any(re.search(r"length  0 .{30} 1,920 octets", line) for line in lines)


MONITOR_USAGE = [
    (("--port", "2"), "no port 2"),
    (("--refresh", "0"), "0 leaves no time: give one above 0"),
    (("--rates", "10us"), "no rates over 10000 ns: give 1000000 to"),
    (("--bins", "delay=0:63"), "invalid histogram 'delay=0:63': give length, delay, arrival like delay=0:64"),
    (("--bins", "width=0:64"), "invalid histogram"),
    (("--streams", "65536"), "there is no stream 65536"),
    (("--protocols", "16"), "--once looks once: leave one of them out"),
]


@pytest.mark.parametrize(("one_of", "said"), [("3", "give 1, 2, 4, 8 or 16"), ("16", "captures nothing")])
def test_protocols_of_no_such_sample_or_probe_are_refused(
    run: Run, model: MonitorProbe, one_of: str, said: str
) -> None:
    code, out, err = run("monitor", "--protocols", one_of)
    assert (code, out) == (2, "") and said in err


@pytest.mark.parametrize(("arguments", "said"), MONITOR_USAGE)
def test_wrong_use_of_monitor_is_exit_code_2(
    run: Run, model: MonitorProbe, arguments: tuple[str, ...], said: str
) -> None:
    code, _, err = run("monitor", "--once", *arguments)
    assert code == 2 and said in err


@pytest.mark.parametrize(
    ("bound_ns", "words", "metric"), [(None, "error not known", []), (12.5, "within 12.5 ns (95 %)", [1.25e-8])]
)
def test_bound_of_the_clock_is_its_own_or_none(bound_ns: float | None, words: str, metric: list[float]) -> None:
    look = Look("sim://x", "locked", bound_ns, 0, [], [])
    metrics = Metrics()
    metrics.look = look
    samples = [sample for family in metrics.collect() for sample in family.samples]
    assert [sample.value for sample in samples if sample.name == "liteprobe_clock_uncertainty_seconds"] == metric
    console = Console(width=100)
    with console.capture() as capture:
        console.print(view(look))
    assert f"clock locked, {words}" in capture.get()


def test_port_of_metrics_that_is_taken_is_told() -> None:
    server = serve(Metrics(), 0, "127.0.0.1")
    try:
        with pytest.raises(ProbeError, match="give another one"):
            serve(Metrics(), server.server_port, "127.0.0.1")
    finally:
        server.shutdown()
        server.server_close()


def test_settings_know_their_limits() -> None:
    with pytest.raises(UsageError, match="one or more of them"):
        CaptureSettings(channels=())
    with pytest.raises(UsageError, match="nothing would be written: give -w FILE.pcapng"):
        CaptureRequest()
    assert Sampling.of("1") == Sampling() and Sampling.of("hash:16") == Sampling(4, True)
