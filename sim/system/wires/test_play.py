# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Captures that are played into a port: what stood on the pins, and when."""

import random
from pathlib import Path

import pytest
from scapy.utils import PcapWriter

from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system.harness import Harness

OVERHEAD = 24  # Octet times of a frame on the line: preamble, SFD, FCS, gap.


def capture(path: Path, count: int, mean_gap_ns: int, seed: int, nano: bool = True) -> list[tuple[int, bytes]]:
    """Write a capture of random frames; return time (ns) and octets of each."""
    generator = random.Random(seed)
    now, frames = generator.randrange(10**12), []
    with PcapWriter(str(path), nano=nano, linktype=1) as writer:
        writer.write_header(b"")
        for _ in range(count):
            octets = generator.randbytes(generator.choice((60, 61, 62, 63, 64, 200, 1514)))
            frames.append((now, octets))
            writer.write_packet(octets, sec=now // 10**9, usec=now % 10**9 // (1 if nano else 1000))
            now += generator.randrange(2 * mean_gap_ns + 1) // 8 * 8
    return frames


def expected(frames: list[tuple[int, bytes]], start_ns: int) -> list[int]:
    """Times of the SFDs (ns): as in the capture, or as soon as the line is free."""
    times, free = [], 0
    for time, octets in frames:
        sfd = max(start_ns + time - frames[0][0], free)
        times.append(sfd)
        free = sfd + 8 * (len(octets) + OVERHEAD)
    return times


@pytest.mark.parametrize(("mean_gap_ns", "seed"), [(20_000, 1), (2_000, 2), (0, 3)])
def test_frames_come_at_their_times_or_back_to_back(
    stand_in: Path, tmp_path: Path, mean_gap_ns: int, seed: int
) -> None:
    paths = [tmp_path / f"{port}.pcap" for port in (0, 1)]
    sent = [capture(path, 200, mean_gap_ns, seed + 10 * port) for port, path in enumerate(paths)]
    with Harness(stand_in, "--pcap", str(tmp_path / "pins")) as harness:
        for port, path in enumerate(paths):
            assert harness.command(f"play {port} 40000 1 {path}") == "ok 200"
        harness.run(10_000_000)
    for port, frames in enumerate(sent):
        stamps, contents = truth.read_pcap(tmp_path / f"pins.port{port}.in.pcap")
        assert contents == [octets for _, octets in frames]
        assert list(stamps) == expected(frames, 40_000)


def test_a_capture_is_repeated_as_often_as_asked(stand_in: Path, tmp_path: Path) -> None:
    frames = capture(tmp_path / "one.pcap", 7, 3_000, seed=4, nano=False)
    with Harness(stand_in, "--pcap", str(tmp_path / "pins")) as harness:
        assert harness.command(f"play 1 0 3 {tmp_path / 'one.pcap'}") == "ok 7"
        harness.run(1_000_000)
    _, contents = truth.read_pcap(tmp_path / "pins.port1.in.pcap")
    assert contents == [octets for _, octets in frames] * 3


@pytest.mark.parametrize(
    ("octets", "why"),
    [(None, "it can't be opened"), (b"no capture at all, but long enough", "it is none"), (b"", "it is none")],
)
def test_what_is_no_capture_is_refused(stand_in: Path, tmp_path: Path, octets: bytes | None, why: str) -> None:
    if octets is not None:
        (tmp_path / "file").write_bytes(octets)
    with Harness(stand_in) as harness:
        answer = harness.command(f"play 0 0 1 {tmp_path / 'file'}")
        assert answer.startswith("error can't play") and why in answer and "editcap" in answer
        assert harness.command("play 2 0 1 x").startswith("error")
        assert harness.command("time").startswith("ok")
