# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The wires of the simulation, frame by frame, against their model in plain Python (sim/models/switch.py)."""

import subprocess
import zlib
from pathlib import Path
from shutil import which

import numpy as np
import pytest

from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system.harness import PREAMBLE, Harness, frame
from liteprobe.sim.drivers.system.wire_run import play, probe_content, traffic
from liteprobe.sim.models import switch
from liteprobe.sim.drivers.tools.processes import LIMIT_S


def departures(rows: np.ndarray, port: int, frames: list[tuple[bytes, int]]) -> list[switch.Departure]:
    """Return what left a port, as the model wants it: the SFD tick is from the pins, the octets are what was injected."""
    left = truth.frames_out(rows, port)
    assert list(left["frame"]) == list(range(len(frames)))
    sfds = [octets.find(0xD5) for octets, _ in frames]
    return [
        switch.Departure(int(row["sfd_tick"]) - sfd, len(octets), sfd)
        for row, sfd, (octets, _) in zip(left, sfds, frames, strict=True)
    ]


def assert_as_modelled(
    rows: np.ndarray, spec: str, frames: list[tuple[bytes, int]], from_port: int, to_port: int
) -> None:
    """Every frame's fate, tick, order and content as the model says."""
    left = departures(rows, from_port, frames)
    expected = switch.passage(spec, from_port, left)
    assert list(truth.frames_out(rows, from_port)["fate"]) == expected.fates
    came = truth.frames_in(rows, to_port)
    got = [tuple(int(row[name]) for name in ("sfd_tick", "fate", "origin_tick", "sequence", "length")) for row in came]
    assert got == [
        (
            arrival.sfd_tick,
            arrival.fate,
            left[arrival.number].sfd_tick,
            arrival.number,
            left[arrival.number].content - 4,
        )
        for arrival in expected.arrivals
    ]
    assert [bool(row["flags"] & truth.BAD_FCS) for row in came] == [a.flipped is not None for a in expected.arrivals]
    assert truth.balance(rows, from_port, to_port).holds


def flip(content: bytes, where: tuple[int, int] | None) -> bytes:
    """The content with the model's bit gone wrong."""
    if where is None:
        return content
    octet, bit = where
    return content[:octet] + bytes([content[octet] ^ 1 << bit]) + content[octet + 1 :]


LENGTHS = [60, 61, 64, 128, 512, 1514]
SPECS = [
    "loopback",
    "loopback?delay=777ns&corrupt=0.1&loss=10%&seed=3",
    "cable?delay=1us",
    "cable?delay=500ns&loss=0.2&corrupt=0.2&seed=18446744073709551615",
    "cable?cut_after=57",
    "switch",
    "switch?latency=8ns&queue=1&seed=2",
    "switch?latency=1.5us&loss=0.1&duplicate=0.1&corrupt=0.1&reorder=0.1&reorder_by=9us&seed=5",
    "switch?rate=100M&queue=7&latency2=333ns",
    "switch?rate=300M&queue=16&cross=0.3&cross2=0.4&cross_size=200&duplicate=0.05&seed=8",
    "switch?rate=999999937&cross=0.9&cross_model=cbr&cross_size=9014&queue=9",
    "switch?cross=0.95&queue=5&reorder=0.2&reorder_by=2us&seed=77",
    "switch?cross=3&queue=3&seed=4",
    "switch?cross2=0.8&cut_after=120&seed=9",
]


@pytest.mark.parametrize(
    ("spec", "idle_ns"),
    [
        pytest.param(spec, idle_ns, marks=[pytest.mark.full] * (number % 2 == place))
        for place, idle_ns in enumerate((0, 9000))
        for number, spec in enumerate(SPECS)
    ],
)
def test_every_frame_passes_the_wire_as_the_model_says(stand_in: Path, tmp_path: Path, spec: str, idle_ns: int) -> None:
    frames = traffic(seed=SPECS.index(spec) + idle_ns, count=150, lengths=LENGTHS, idle_ns=idle_ns)
    rows = play(stand_in, spec, frames, tmp_path)
    loop = spec.startswith("loopback")
    for port in (0, 1):
        assert_as_modelled(rows, spec, frames, port, port if loop else 1 - port)


@pytest.mark.parametrize("spec", ["switch?corrupt=0.3&duplicate=0.2&rate=500M&seed=6", "cable?corrupt=0.5&seed=2"])
def test_the_pcap_holds_what_the_model_says_octet_by_octet(stand_in: Path, tmp_path: Path, spec: str) -> None:
    frames = traffic(seed=1, count=80, lengths=LENGTHS, idle_ns=3000)
    rows = play(stand_in, spec, frames, tmp_path)
    for port in (0, 1):
        left = departures(rows, port, frames)
        stamps, contents = truth.read_pcap(tmp_path / f"pins.port{port}.out.pcap")
        assert list(stamps) == [8 * departure.sfd_tick for departure in left]
        assert contents == [octets[8:-4] for octets, _ in frames]
        expected = switch.passage(spec, port, left).arrivals
        stamps, contents = truth.read_pcap(tmp_path / f"pins.port{1 - port}.in.pcap")
        assert list(stamps) == [8 * arrival.sfd_tick for arrival in expected]
        assert contents == [flip(frames[a.number][0][8:], a.flipped)[:-4] for a in expected]


def test_cross_traffic_is_delivered_at_the_ticks_of_the_model(stand_in: Path, tmp_path: Path) -> None:
    spec = "switch?cross=0.6&cross_deliver=1&cross_size=300&queue=8&seed=11"
    frames = traffic(seed=2, count=60, lengths=LENGTHS, idle_ns=20000)
    rows = play(stand_in, spec, frames, tmp_path)
    for port in (0, 1):
        assert_as_modelled(rows, spec, frames, port, 1 - port)
        foreign = rows[
            (rows["port"] == 1 - port) & (rows["flags"] & truth.FOREIGN > 0) & (rows["fate"] == truth.DELIVERED)
        ]
        end = int(foreign["sfd_tick"][-1])
        model = switch.passage(spec, port, departures(rows, port, frames), until=end).cross
        assert list(foreign["sfd_tick"]) == [tick for tick in model if tick <= end]
        assert len(foreign) > 200
        assert set(foreign["length"]) == {300}


@pytest.mark.parametrize(("model", "load"), [("poisson", "0.5"), ("cbr", "0.9"), ("poisson", "0.1")])
def test_cross_traffic_takes_its_part_of_the_line(model: str, load: str) -> None:
    wire = switch.parse(f"switch?cross={load}&cross_model={model}&cross_size=1000")
    ticks = list(switch.CrossTraffic(wire, wire.cross, switch.Fraction(1), 17).until(125_000_000))
    expected = 125e6 * float(load) / 1024
    # Poisson: the count has a deviation of its root; cbr none beyond one frame.
    assert abs(len(ticks) - expected) < (4 * expected**0.5 if model == "poisson" else 2)
    gaps = np.diff(ticks)
    assert abs(gaps.std() / gaps.mean() - (1 if model == "poisson" else 0)) < 0.02


def test_frames_that_the_wire_may_not_mend_come_as_they_left(stand_in: Path, tmp_path: Path) -> None:
    runt = frame(probe_content(0, 60)[:20])
    bad_fcs = bytes([*frame(probe_content(1, 64))[:-1], 0])
    giant = frame(probe_content(2, 10_000))
    short_preamble = frame(probe_content(3, 64), b"\x55\xd5")
    long_preamble = frame(probe_content(4, 64), b"\x55" * 20 + b"\xd5")
    no_sfd = b"\x55" * 80
    frames = [(octets, 0) for octets in (runt, bad_fcs, giant, short_preamble, long_preamble, no_sfd)]
    rows = play(stand_in, "cable?delay=2us", frames, tmp_path)
    came = truth.frames_in(rows, 1)
    assert list(came["length"]) == [20, 64, 10_000, 64, 64, 0]
    assert list(came["flags"] & truth.BAD_FCS > 0) == [False, True, False, False, False, True]
    assert list(came["flags"] & truth.MISSING_SFD > 0) == [False] * 5 + [True]
    assert list(came["sequence"]) == [truth.NO_SEQUENCE, 1, 2, 3, 4, truth.NO_SEQUENCE]
    assert set(truth.delays_ns(came)) == {2000}


def test_injected_frames_keep_gaps_of_twelve_octets(stand_in: Path, tmp_path: Path) -> None:
    frames = traffic(seed=4, count=40, lengths=[60, 1514], idle_ns=0)
    rows = play(stand_in, "loopback", frames, tmp_path)
    ticks = truth.frames_out(rows, 0)["sfd_tick"].astype(int)
    assert list(np.diff(ticks)) == [len(octets) + 12 for octets, _ in frames[:-1]]


def test_a_link_that_is_down_cuts_and_says_so(stand_in: Path, tmp_path: Path) -> None:
    path = tmp_path / "truth"
    with Harness(stand_in, "--wire", "cable?delay=100us", "--truth", str(path)) as harness:
        for sequence, command in enumerate(["link 1 up", "link 1 down", "link 1 up", "link 0 down"]):
            assert harness.command(command) == "ok"
            harness.inject(2, frame(probe_content(sequence, 64)))
            harness.run(10_000)
            if command == "link 1 down":
                harness.run(85_000)  # Frame 0 finds the link of its receiver down.
        harness.run(200_000)
    rows = truth.read_truth(path)
    assert list(truth.frames_out(rows, 0)["fate"]) == [truth.DELIVERED] * 3 + [truth.CUT]
    assert list(truth.frames_out(rows, 1)["fate"]) == [truth.DELIVERED, truth.CUT, truth.DELIVERED, truth.DELIVERED]
    assert list(truth.frames_in(rows, 1)["sequence"]) == [1, 2]
    # Port 0 went down before frames 2 and 3 of port 1 came; frame 0 came in time.
    assert list(truth.frames_in(rows, 0)["sequence"]) == [0]
    assert truth.balance(rows, 0, 1).holds
    assert truth.balance(rows, 0, 1).cut == 2
    assert truth.balance(rows, 1, 0).holds


def test_a_link_that_drops_in_mid_frame_ends_the_frame_there(stand_in: Path, tmp_path: Path) -> None:
    path = tmp_path / "truth"
    content = probe_content(0, 1514)
    with Harness(
        stand_in, "--wire", "cable?delay=1us", "--truth", str(path), "--pcap", str(tmp_path / "pins")
    ) as harness:
        harness.inject(2, frame(content))
        harness.run(6_000)
        assert harness.command("link 0 down") == "ok"
        harness.run(100)
        assert harness.command("link 0 up") == "ok"  # What is left of the frame doesn't follow.
        harness.run(20_000)
        harness.inject(2, frame(probe_content(1, 64)))
        harness.run(20_000)
    rows = truth.read_truth(path)
    # Port 0 was sending to port 1, and getting a frame from it: both end where the link dropped.
    assert list(truth.frames_out(rows, 0)["fate"]) == [truth.CUT, truth.DELIVERED]
    assert list(truth.frames_out(rows, 1)["fate"]) == [truth.DELIVERED] * 2
    for port in (0, 1):
        came = rows[(rows["port"] == port) & (rows["direction"] == truth.IN)]
        assert list(came["fate"]) == [truth.CUT, truth.DELIVERED] and list(came["sequence"]) == [0, 1]
        assert list(came["flags"]) == [truth.BAD_FCS, 0]
        _, seen = truth.read_pcap(tmp_path / f"pins.port{port}.in.pcap")
        assert 400 < len(seen[0]) == came["length"][0] < 800 and content.startswith(seen[0])
        assert truth.balance(rows, port, 1 - port).holds
    # The last octet that left is 1 us of cable further on than the last that came when the link dropped.
    cut_at_0, cut_at_1 = (
        int(rows[(rows["port"] == p) & (rows["fate"] == truth.CUT) & (rows["direction"] == truth.IN)]["length"][0])
        for p in (0, 1)
    )
    assert cut_at_1 - cut_at_0 == 1000 // 8


def test_frames_under_way_at_the_end_are_told(stand_in: Path, tmp_path: Path) -> None:
    path = tmp_path / "truth"
    with Harness(stand_in, "--wire", "switch?latency=1ms", "--truth", str(path)) as harness:
        harness.inject(2, frame(probe_content(0, 64)))
        harness.run(10_000)
    balance = truth.balance(truth.read_truth(path), 0, 1)
    assert (balance.sent, balance.in_flight, balance.arrived) == (1, 1, 0)
    assert balance.holds


def test_two_runs_write_the_same_truth(stand_in: Path, tmp_path: Path) -> None:
    frames = traffic(seed=6, count=60, lengths=LENGTHS, idle_ns=5000)
    texts = []
    for run in ("one", "two"):
        files = tmp_path / run
        files.mkdir()
        play(stand_in, "switch?cross=0.7&loss=0.05&seed=12", frames, files)
        texts.append((files / "truth").read_bytes())
    assert texts[0] == texts[1]
    assert len(texts[0]) > 120 * truth.TRUTH_DTYPE.itemsize


@pytest.mark.parametrize("ppm", ["100,-100,0", "-200,200,0"])
def test_a_cable_into_another_clock_moves_no_frame_by_more_than_its_drift(
    stand_in: Path, tmp_path: Path, ppm: str
) -> None:
    frames = traffic(seed=7, count=40, lengths=[60, 1514, 9018], idle_ns=3000)
    rows = play(stand_in, "cable?delay=1us", frames, tmp_path, "--ppm", ppm)
    for port in (0, 1):
        came = truth.frames_in(rows, port)
        assert list(came["sequence"]) == list(range(40))
        assert not np.any(came["flags"])
        # 1 us, four ticks of room for drift, the next edge of the receive clock; more where the gap was used up.
        assert truth.delays_ns(came).min() >= 1032
        assert np.median(truth.delays_ns(came)) <= 1048


# Independent witnesses ----------------------------------------------------------------------------


def test_scapy_reads_the_pcaps(stand_in: Path, tmp_path: Path) -> None:
    from scapy.layers.inet import IP, UDP
    from scapy.utils import PcapReader

    frames = traffic(seed=8, count=12, lengths=LENGTHS, idle_ns=900)
    rows = play(stand_in, "cable?delay=1us", frames, tmp_path)
    with PcapReader(str(tmp_path / "pins.port0.in.pcap")) as reader:
        packets = list(reader)
    assert [round(float(packet.time) * 10**9) for packet in packets] == list(
        8 * truth.frames_in(rows, 0)["sfd_tick"].astype(int)
    )
    assert [bytes(packet) for packet in packets] == [octets[8:-4] for octets, _ in frames]
    assert all(IP in packet and UDP not in packet for packet in packets)  # The protocol field is 0.


@pytest.mark.skipif(which("tshark") is None, reason="tshark is not installed: no second witness of the pcap files")
def test_tshark_reads_the_pcaps(stand_in: Path, tmp_path: Path) -> None:
    frames = traffic(seed=9, count=12, lengths=LENGTHS, idle_ns=900)
    rows = play(stand_in, "cable?delay=1us", frames, tmp_path)
    fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len", "-e", "eth.src"]
    command = ["tshark", "-r", str(tmp_path / "pins.port1.in.pcap"), *fields]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    told = [line.split("\t") for line in lines if line]
    came = truth.frames_in(rows, 1)
    assert [round(float(stamp) * 10**9) for stamp, _, _ in told] == list(8 * came["sfd_tick"].astype(int))
    assert [int(length) for _, length, _ in told] == [len(octets) - 12 for octets, _ in frames]
    assert {source for *_, source in told} == {"02:00:00:00:00:01"}


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        (["--wire", "hub"], "hub"),
        (["--wire", "switch?latencie=1us"], "latencie"),
        (["--wire", "switch?latency=1parsec"], "latency=1parsec"),
        (["--wire", "switch?latency=-1us"], "latency=-1us"),
        (["--wire", "switch?latency=1.0000000001us"], "latency"),
        (["--wire", "switch?loss=1.1"], "loss=1.1"),
        (["--wire", "switch?rate=2G"], "rate=2G"),
        (["--wire", "switch?rate=0"], "rate=0"),
        (["--wire", "switch?queue=0"], "queue=0"),
        (["--wire", "switch?queue=lots"], "queue=lots"),
        (["--wire", "switch?seed=18446744073709551616"], "seed"),
        (["--wire", "switch?cross_model=fractal"], "fractal"),
        (["--wire", "switch?cross_size=59"], "cross_size=59"),
        (["--wire", "switch?loss"], "loss"),
        (["--wire", "cable?delay=1ns"], "delay=1ns"),
        (["--wire", "cable?duplicate=0.1"], "duplicate"),
        (["--truth", "/nowhere/truth"], "/nowhere/truth"),
        (["--port", "70000"], "70000"),
        (["--ppm", "1000"], "1000"),
        (["--wire"], "--wire"),
        (["--fast"], "--fast"),
    ],
)
def test_bad_options_end_with_2_and_name_the_culprit(stand_in: Path, options: list[str], culprit: str) -> None:
    command = [str(stand_in / "liteprobe-sim"), *options]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=LIMIT_S, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert culprit in done.stderr
    assert done.stdout == ""


def test_bad_commands_are_answered_and_change_nothing(stand_in: Path) -> None:
    with Harness(stand_in) as harness:
        before = harness.command("time")
        for line in [
            "",
            "walk 3",
            "run",
            "run -1",
            "run 1x",
            "link 3 up",
            "link 0 sideways",
            "inject 0 abc",
            "inject 0 zz",
            "inject",
        ]:
            assert harness.command(line).startswith("error "), line
        assert harness.command("time") == before


def test_the_fcs_of_the_bench_is_the_one_of_the_simulation() -> None:
    # A frame with its FCS has this residue: IEEE 802.3, 3.2.9.
    assert zlib.crc32(frame(probe_content(1, 99))[len(PREAMBLE) :]) == 0x2144DF1C
